//! `tcgen05.mma`, `mma.sp`, `mma.ws` and `mma.ws.sp`. One thread asks for all of the product. Its shape and the types of its
//! elements stand in a descriptor that is known at run time only, so the host side computes it.

use ptx::ast::{OperandKind, Type};

use super::transfer::address;
use super::{I, L, group};
use crate::ir::{Op, Ty, Value};
use crate::lower::instruction::{Failure, Lower, fail};
use crate::lower::operand::immediate;
use crate::tensor_memory::{
    A_IN_TENSOR_MEMORY, BLOCK_16, KIND_SHIFT, Kind, MMA, PAIR, SCALE_D_SHIFT, SPARSE, WS,
};

/// `tcgen05.mma{.ws}{.sp}.cta_group.kind{.block_scale{.scale_vectorsize}}{.collector_usage} [d], a, b{, [metadata]}, idesc, …`
pub(super) fn mma<'i, 'a>(l: &mut L<'_, 'i, 'a>, i: &mut I<'i, 'a>) -> Lower {
    let (is_ws, is_sparse) = (i.take("ws"), i.take("sp"));
    // These are parts of the opcode's name; `.sp`, as ptxas has it, stands anywhere.
    let names = ["mma"].into_iter().chain(is_ws.then_some("ws"));
    if !names.zip(&i.ast.modifiers).all(|(name, written)| name == written.value) {
        return Err(Failure::Unsupported);
    }
    let group = group(i)?;
    let kind = i.take_map(Kind::of_name).ok_or(Failure::Unsupported)?;
    let vectors = scale_vectors(i, kind)?;
    let is_a_moved = i.take("ashift");
    let buffers: &[&str] = if is_ws { &["b0", "b1", "b2", "b3"] } else { &["a"] };
    // What the collector keeps changes no result.
    i.take_map(|word| {
        let (buffer, what) = word.strip_prefix("collector::")?.split_once("::")?;
        (buffers.contains(&buffer) && ["fill", "use", "lastuse", "discard"].contains(&what)).then_some(())
    });
    i.done()?;
    let is_scaled = kind.is_scaled();
    if is_ws && (is_scaled || group == PAIR) {
        return Err(Failure::Unsupported);
    }
    if is_a_moved {
        return fail(i.ast.span, "'.ashift' is not supported: the manual does not say which rows it moves");
    }

    // d, a, b, {metadata,} idesc and what stands behind.
    let n_before = 4 + usize::from(is_sparse);
    let rest = i.ast.operands.get(n_before..).unwrap_or_default();
    let d = address(l, i.operand(0)?)?;
    let a = i.operand(1)?;
    let is_in_tensor_memory = matches!(a.kind, OperandKind::Address(_));
    let a = if is_in_tensor_memory { address(l, a)? } else { l.value(a, Type::B64)? };
    let a = l.resize(a, Ty::B64, false);
    let b = l.value(i.operand(2)?, Type::B64)?;
    let metadata = if is_sparse { address(l, i.operand(3)?)? } else { l.word(0) };
    let descriptor = l.value(i.operand(n_before - 1)?, Type::B32)?;

    let mut flags = MMA | group | (kind as u64) << KIND_SHIFT | vectors;
    for (is_there, flag) in [(is_in_tensor_memory, A_IN_TENSOR_MEMORY), (is_sparse, SPARSE), (is_ws, WS)] {
        flags |= if is_there { flag } else { 0 };
    }
    let zero = l.word(0);
    let mut more: Vec<Value> = vec![];
    let enable = match rest {
        [a, b, enable] if is_scaled => {
            more = vec![address(l, a)?, address(l, b)?];
            enable
        }
        _ if is_scaled => return fail(i.ast.span, "expected the addresses of two scales and enable-input-d"),
        [enable] => enable,
        [enable, mask] if is_ws => {
            let mask = l.value(mask, Type::B64)?;
            more = l.b.emit(Op::Unpack, &[mask], &[Ty::B32, Ty::B32]);
            enable
        }
        [first, rest @ ..] if !is_ws && !rest.is_empty() => {
            let (enable, scale) = match (&first.kind, rest) {
                (OperandKind::Vector(list), [enable, scale @ ..]) => {
                    if list.len() != if group == PAIR { 8 } else { 4 } {
                        return fail(first.span, "expected a bit for each lane: 4 registers, or 8 of a pair");
                    }
                    more = list.iter().map(|it| l.value(it, Type::B32)).collect::<Lower<_>>()?;
                    (enable, scale)
                }
                _ => (first, rest),
            };
            match scale {
                [] => {}
                [scale] if matches!(kind, Kind::F16 | Kind::Tf32) => match immediate(scale) {
                    Some(log @ 0..=15) => flags |= log << SCALE_D_SHIFT,
                    _ => return fail(scale.span, "scale-input-d is a constant from 0 to 15"),
                },
                _ => return fail(i.ast.span, "too many operands"),
            }
            enable
        }
        _ => return fail(i.ast.span, "wrong number of operands"),
    };
    let enable = l.predicate(enable)?;
    let one = l.word(1);
    let enable = l.b.emit1(Op::Select, &[enable, one, zero], Ty::B32);
    more.resize(8, zero);
    let mut words = vec![];
    let pair = |l: &mut L<'_, 'i, 'a>, low: Value, high: Value| l.b.emit1(Op::Pack, &[low, high], Ty::B64);
    words.push(pair(l, d, descriptor));
    words.extend([a, b]);
    words.push(pair(l, metadata, enable));
    for two in more.chunks(2) {
        words.push(pair(l, two[0], two[1]));
    }
    let answer = l.asked(flags, &words);
    l.trap_below_zero(answer);
    Ok(())
}

/// `.block_scale{.scale_vec::NX}`, `.block_scale{.blockN}`: [`BLOCK_16`] where a scale is for 16 elements, 0 where it is for 32.
fn scale_vectors(i: &mut I<'_, '_>, kind: Kind) -> Lower<u64> {
    if i.take("block_scale") != kind.is_scaled() {
        return Err(Failure::Unsupported);
    }
    if !kind.is_scaled() {
        return Ok(0);
    }
    let rows = [
        ("scale_vec::1X", &[Kind::Mxf8f6f4][..], 0),
        ("scale_vec::2X", &[Kind::Mxf4, Kind::Mxf4nvf4], 0),
        ("scale_vec::4X", &[Kind::Mxf4nvf4], BLOCK_16),
        ("block32", &[Kind::Mxf8f6f4, Kind::Mxf4, Kind::Mxf4nvf4], 0),
        ("block16", &[Kind::Mxf4nvf4], BLOCK_16),
    ];
    let taken = i.take_map(|word| rows.iter().find(|row| row.0 == word));
    match taken {
        Some((_, kinds, flag)) if kinds.contains(&kind) => Ok(*flag),
        None if kind != Kind::Mxf4nvf4 => Ok(0),
        _ => Err(Failure::Unsupported),
    }
}
