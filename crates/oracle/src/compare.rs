//! Comparison and selection (§9.7.6), for half precision too (§9.7.7).

use std::cmp::Ordering;

use crate::float::elements;
use crate::form::{Form, Modifiers, Results, Type};
use crate::format::{BF16, F16, F32};

/// A comparison: which orders make it true, and whether operands that have no order do (§9.3.1).
#[derive(Clone, Copy)]
struct Comparison {
    less: bool,
    equal: bool,
    greater: bool,
    unordered: bool,
    /// For unsigned integers only, or floats only; `eq` and `ne` alone are for bit strings.
    kind: Kind,
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Any,
    Number,
    Unsigned,
    Float,
}

const fn comparison(less: bool, equal: bool, greater: bool, unordered: bool, kind: Kind) -> Comparison {
    Comparison { less, equal, greater, unordered, kind }
}

#[rustfmt::skip]
const COMPARISONS: [(&str, Comparison); 18] = [
    ("eq",  comparison(false, true,  false, false, Kind::Any)),
    ("ne",  comparison(true,  false, true,  false, Kind::Any)),
    ("lt",  comparison(true,  false, false, false, Kind::Number)),
    ("le",  comparison(true,  true,  false, false, Kind::Number)),
    ("gt",  comparison(false, false, true,  false, Kind::Number)),
    ("ge",  comparison(false, true,  true,  false, Kind::Number)),
    ("lo",  comparison(true,  false, false, false, Kind::Unsigned)),
    ("ls",  comparison(true,  true,  false, false, Kind::Unsigned)),
    ("hi",  comparison(false, false, true,  false, Kind::Unsigned)),
    ("hs",  comparison(false, true,  true,  false, Kind::Unsigned)),
    ("equ", comparison(false, true,  false, true,  Kind::Float)),
    ("neu", comparison(true,  false, true,  true,  Kind::Float)),
    ("ltu", comparison(true,  false, false, true,  Kind::Float)),
    ("leu", comparison(true,  true,  false, true,  Kind::Float)),
    ("gtu", comparison(false, false, true,  true,  Kind::Float)),
    ("geu", comparison(false, true,  true,  true,  Kind::Float)),
    ("num", comparison(true,  true,  true,  false, Kind::Float)),
    ("nan", comparison(false, false, false, true,  Kind::Float)),
];

impl Comparison {
    fn is_for(self, ty: Type) -> bool {
        match self.kind {
            Kind::Any => ty != Type::Pred,
            Kind::Number => !matches!(ty, Type::Bits(_)),
            Kind::Unsigned => matches!(ty, Type::Unsigned(_)),
            Kind::Float => elements(ty).is_some(),
        }
    }

    fn holds(self, order: Option<Ordering>) -> bool {
        match order {
            None => self.unordered,
            Some(Ordering::Less) => self.less,
            Some(Ordering::Equal) => self.equal,
            Some(Ordering::Greater) => self.greater,
        }
    }

    /// On element `lane` of two operands.
    fn test(self, ty: Type, ftz: bool, lane: u32, a: u128, b: u128) -> bool {
        let Some((format, _)) = elements(ty) else {
            return self.holds(Some(ty.integer(a).cmp(&ty.integer(b))));
        };
        let [a, b] = [a, b].map(|bits| {
            let bits = bits >> (lane * format.bits) & ((1 << format.bits) - 1);
            format.decode(if ftz { format.flush(bits) } else { bits })
        });
        self.holds(a.compare(b))
    }
}

/// `.and`, `.or`, `.xor` with a predicate.
#[derive(Clone, Copy)]
enum Combination {
    And,
    Or,
    Xor,
}

impl Combination {
    fn of(this: Option<Combination>, truth: bool, c: bool) -> bool {
        match this {
            None => truth,
            Some(Combination::And) => truth && c,
            Some(Combination::Or) => truth || c,
            Some(Combination::Xor) => truth != c,
        }
    }
}

pub(crate) fn parse(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    match opcode {
        "selp" => return selp(m),
        "slct" => return slct(m),
        _ => {}
    }
    let comparison = m.take_one(&COMPARISONS)?;
    let combination =
        m.take_one(&[("and", Combination::And), ("or", Combination::Or), ("xor", Combination::Xor)]);
    let negate = m.take("c.not");
    let ftz = m.take("ftz");
    let target = if opcode == "set" { m.ty()? } else { Type::Pred };
    let source = m.ty()?;
    if !comparison.is_for(source) || ftz && !matches!(elements(source), Some((F32 | F16, _))) {
        return None;
    }
    if source.bits() == 8 {
        return None;
    }
    let mut operands = vec![source, source];
    operands.extend(combination.map(|_| Type::Pred));
    let is_packed = matches!(source, Type::PackedFloat(..));
    // Two elements give two tests; one gives itself and its complement for `q`.
    let tests = move |x: &[u128]| {
        let c = x.get(2).is_some_and(|&c| (c != 0) != negate);
        let truth = comparison.test(source, ftz, 0, x[0], x[1]);
        let other = if is_packed { comparison.test(source, ftz, 1, x[0], x[1]) } else { !truth };
        [truth, other].map(|truth| Combination::of(combination, truth, c))
    };
    if opcode == "setp" {
        return Form::new(&[Type::Pred, Type::Pred], &operands, move |x| {
            Some(tests(x).map(u128::from) as Results)
        });
    }
    // True is all ones or 1.0, of each element of the result (§9.7.6.1, §9.7.7.1).
    let (yes, bits) = match target {
        Type::Unsigned(16 | 32) | Type::Signed(16 | 32) if !is_packed => (target.cut(-1), target.bits()),
        Type::Unsigned(32) | Type::Signed(32) => (0xffff_ffff, 32),
        Type::Float(format @ (F32 | F16 | BF16)) if !is_packed => (format.one(), target.bits()),
        Type::PackedFloat(format, 2) if target == source => (format.one(), format.bits),
        _ => return None,
    };
    let n = if matches!(target, Type::PackedFloat(..)) { 2 } else { 1 };
    if is_packed != (n == 2) {
        return None;
    }
    let is_half = matches!(elements(source), Some((F16 | BF16, _)));
    let small = matches!(target, Type::Unsigned(16) | Type::Signed(16) | Type::Float(F16 | BF16));
    if small && !is_half && !source.is_integer() && !matches!(source, Type::Float(_)) {
        return None;
    }
    Form::total(target, &operands, move |x| {
        let [low, high] = tests(x).map(|truth| if truth { yes } else { 0 });
        if n == 2 { low | high << bits } else { low }
    })
}

/// `selp` (§9.7.6.3)
fn selp(m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = m.ty()?;
    let fits = match ty {
        Type::Float(format) => format.bits >= 32,
        _ => ty.is_integer() && ty.bits() >= 16 && ty.bits() <= 64,
    };
    if !fits {
        return None;
    }
    Some(Form::total(ty, &[ty, ty, Type::Pred], |x| if x[2] != 0 { x[0] } else { x[1] })?.with_payloads())
}

/// `slct` (§9.7.6.4): an f32 `c` that is NaN selects `b`; with `.ftz` a subnormal one is a zero.
fn slct(m: &mut Modifiers<'_>) -> Option<Form> {
    let ftz = m.take("ftz");
    let (ty, by) = (m.ty()?, m.ty()?);
    if ty.bits() < 16 || !matches!(by, Type::Signed(32) | Type::Float(F32)) || ftz && by != Type::Float(F32) {
        return None;
    }
    let form = Form::total(ty, &[ty, ty, by], move |x| {
        let c = x[2];
        let takes_a = match by {
            Type::Float(format) => {
                let c = format.decode(if ftz { format.flush(c) } else { c });
                c.is_zero() || !c.is_nan() && !c.is_negative()
            }
            _ => by.integer(c) >= 0,
        };
        if takes_a { x[0] } else { x[1] }
    });
    Some(form?.with_payloads())
}
