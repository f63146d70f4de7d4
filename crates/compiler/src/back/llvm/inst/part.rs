//! Operations that the CPU has for registers of one size: wider vectors go through them piece by piece, narrower ones
//! with zeros beside them.

use super::super::builder::{Builder, Val};
use super::super::ty::Type;

/// `each` of the arguments' pieces of `part` lanes, put together again.
pub fn in_parts(
    b: &mut Builder,
    args: &[&Val],
    part: u32,
    each: impl Fn(&mut Builder, &[Val]) -> Val,
) -> Val {
    let lanes = args[0].ty.lanes;
    let mut parts: Vec<Val> = (0..lanes.div_ceil(part))
        .map(|nth| {
            let pieces: Vec<Val> = args.iter().map(|arg| piece(b, arg, nth * part, part)).collect();
            each(b, &pieces)
        })
        .collect();
    while parts.len() > 1 {
        parts = parts
            .chunks(2)
            .map(|pair| shuffle(b, &pair[0], &pair[1].typed(), (0..2 * pair[0].ty.lanes).collect()))
            .collect();
    }
    let whole = parts.remove(0);
    if lanes == 1 {
        let ty = Type::new(whole.ty.scalar, 1);
        return b.assign(ty, format_args!("extractelement {}, i64 0", whole.typed()));
    }
    let poison = format!("{} poison", whole.ty);
    if whole.ty.lanes == lanes { whole } else { shuffle(b, &whole, &poison, (0..lanes).collect()) }
}

/// `n` lanes from `first` on, with zeros behind the last.
fn piece(b: &mut Builder, x: &Val, first: u32, n: u32) -> Val {
    let ty = Type::new(x.ty.scalar, n);
    match x.ty.lanes {
        lanes if lanes == n => x.clone(),
        1 => b.assign(ty, format_args!("insertelement {ty} zeroinitializer, {}, i64 0", x.typed())),
        // The lane behind the last is the first of the zeros.
        lanes => {
            let zeros = format!("{} zeroinitializer", x.ty);
            shuffle(b, x, &zeros, (first..first + n).map(|lane| lane.min(lanes)).collect())
        }
    }
}

fn shuffle(b: &mut Builder, low: &Val, high: &str, lanes: Vec<u32>) -> Val {
    let ty = Type::new(low.ty.scalar, lanes.len() as u32);
    let picks: Vec<String> = lanes.iter().map(|lane| format!("i32 {lane}")).collect();
    let picks = picks.join(", ");
    b.assign(ty, format_args!("shufflevector {}, {high}, <{} x i32> <{picks}>", low.typed(), lanes.len()))
}
