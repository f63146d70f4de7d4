//! Floating-point instructions (§9.7.3), half precision (§9.7.4), the mixed-precision ones (§9.7.5): everything that is
//! not approximate.

use std::cmp::Ordering;

use crate::form::{Form, Modifiers, Type};
use crate::format::{BF16, F16, F32, F64, Format};
use crate::value::{Rounding, Value};

/// What an instruction does around the exact operation.
#[derive(Clone, Copy)]
pub(crate) struct Mode {
    pub rounding: Rounding,
    pub ftz: bool,
    pub sat: bool,
    pub relu: bool,
}

impl Mode {
    pub fn take(m: &mut Modifiers<'_>) -> Mode {
        let rounding = m.take_one(&[
            ("rn", Rounding::Nearest),
            ("rna", Rounding::NearestAway),
            ("rz", Rounding::Zero),
            ("rm", Rounding::Down),
            ("rp", Rounding::Up),
        ]);
        Mode {
            rounding: rounding.unwrap_or(Rounding::Nearest),
            ftz: m.take("ftz"),
            sat: m.take("sat"),
            relu: m.take("relu"),
        }
    }

    /// An operand's value: `.ftz` flushes subnormal inputs.
    pub fn read(self, format: Format, bits: u128) -> Value {
        format.decode(if self.ftz { format.flush(bits) } else { bits })
    }

    /// A result's bits: rounded, flushed by `.ftz`, clamped by `.sat` (to [+0, 1], NaN to +0) or `.relu` (negative numbers
    /// to +0, NaN to the canonical one).
    pub fn write(self, format: Format, value: Value) -> u128 {
        let bits = format.round(self.rounding, value);
        let bits = if self.ftz { format.flush(bits) } else { bits };
        let value = format.decode(bits);
        if self.sat {
            let above = value.compare(Value::integer(1)) == Some(Ordering::Greater);
            return match value {
                _ if above => format.one(),
                _ if value.is_nan() || value.is_negative() => 0,
                _ => bits,
            };
        }
        if self.relu && value.is_negative() { 0 } else { bits }
    }
}

/// The element format and the number of elements of a float type.
pub(crate) fn elements(ty: Type) -> Option<(Format, u32)> {
    match ty {
        Type::Float(format) => Some((format, 1)),
        Type::PackedFloat(format, n) => Some((format, n)),
        _ => None,
    }
}

/// Which modifiers a type may have (§9.7.3, §9.7.4: `.ftz` and `.sat` are f32's and f16's).
fn allowed(ty: Format, mode: Mode) -> bool {
    match ty {
        F32 | F16 => true,
        BF16 => !mode.ftz && !mode.sat,
        _ => !mode.ftz && !mode.sat && !mode.relu,
    }
}

pub(crate) fn parse(opcode: &str, m: &mut Modifiers<'_>) -> Option<Form> {
    match opcode {
        "testp" => return testp(m),
        "copysign" => return copysign(m),
        "min" | "max" => return extremum(m, opcode == "max"),
        "abs" | "neg" => return sign(m, opcode == "neg"),
        _ => {}
    }
    let has_rounding = ["rn", "rz", "rm", "rp"].iter().any(|name| m.has(name));
    let mode = Mode::take(m);
    let oob = m.take("oob");
    let ty = m.ty()?;
    let (format, n) = elements(ty)?;
    if !allowed(format, mode) || mode.rounding == Rounding::NearestAway {
        return None;
    }
    // A second type is that of the operands which are widened first.
    let narrow = m.ty();
    if let Some(narrow) = narrow {
        return mixed(opcode, mode, format, narrow);
    }
    let r = move |x: u128| mode.read(format, x);
    let w = move |x: Value| mode.write(format, x);
    let rounding = mode.rounding;
    match opcode {
        "add" => lanes(ty, 2, move |x| w(r(x[0]).plus(r(x[1]), rounding))),
        "sub" => lanes(ty, 2, move |x| w(r(x[0]).plus(r(x[1]).negated(), rounding))),
        "mul" => lanes(ty, 2, move |x| w(r(x[0]).times(r(x[1])))),
        // For sm_20 and later `mad` is `fma` (§9.7.3.7).
        "fma" | "mad" if has_rounding && !oob => {
            lanes(ty, 3, move |x| w(r(x[0]).times(r(x[1])).plus(r(x[2]), rounding)))
        }
        "fma" if oob && matches!(format, F16 | BF16) => fma_oob(ty, format, n, mode),
        "div" if has_rounding && n == 1 => lanes(ty, 2, move |x| w(r(x[0]).over(r(x[1])))),
        "rcp" if has_rounding && n == 1 => lanes(ty, 1, move |x| w(Value::integer(1).over(r(x[0])))),
        "sqrt" if has_rounding && n == 1 => lanes(ty, 1, move |x| w(r(x[0]).root())),
        _ => None,
    }
}

/// `fma.rn.oob` (§9.7.4.4): 0 where a factor is the NaN that fills what lies beyond a tensor. The manual says an operand, and does not give
/// its bits; an H200 looks at factors, for 0x7ff7. Other NaNs are left open.
fn fma_oob(ty: Type, format: Format, n: u32, mode: Mode) -> Option<Form> {
    Form::new(&[ty], &[ty; 3], move |operands| {
        let mut open = false;
        let result = packed(format.bits, n, operands, |x| {
            if x[..2].iter().any(|bits| bits & 0x7fff == 0x7ff7) {
                return 0;
            }
            let [a, b, c] = [x[0], x[1], x[2]].map(|bits| mode.read(format, bits));
            open |= a.is_nan() || b.is_nan() || c.is_nan();
            mode.write(format, a.times(b).plus(c, mode.rounding))
        });
        (!open).then_some([result, 0])
    })
}

/// `{add,sub,fma}.f32.{f16,bf16}`: the narrow operands are widened, exactly (§9.7.5).
fn mixed(opcode: &str, mode: Mode, format: Format, narrow: Type) -> Option<Form> {
    let Type::Float(source @ (F16 | BF16)) = narrow else { return None };
    if format != F32 {
        return None;
    }
    let ty = Type::Float(format);
    let w = move |value: Value| mode.write(format, value);
    let rounding = mode.rounding;
    match opcode {
        "add" => Form::total(ty, &[narrow, ty], move |x| {
            w(source.decode(x[0]).plus(format.decode(x[1]), rounding))
        }),
        "sub" => Form::total(ty, &[narrow, ty], move |x| {
            w(source.decode(x[0]).plus(format.decode(x[1]).negated(), rounding))
        }),
        "fma" => Form::total(ty, &[narrow, narrow, ty], move |x| {
            w(source.decode(x[0]).times(source.decode(x[1])).plus(format.decode(x[2]), rounding))
        }),
        _ => None,
    }
}

/// A form of `n_operands` operands of one type, each element on its own.
pub(crate) fn lanes(
    ty: Type,
    n_operands: usize,
    each: impl Fn(&[u128]) -> u128 + Send + Sync + 'static,
) -> Option<Form> {
    let (format, n) = elements(ty)?;
    Form::total(ty, &vec![ty; n_operands], move |operands| packed(format.bits, n, operands, &each))
}

/// `each` on the elements at the same place, the results at that place.
pub(crate) fn packed(bits: u32, n: u32, operands: &[u128], mut each: impl FnMut(&[u128]) -> u128) -> u128 {
    let mut result = 0;
    let mut elements = [0; 3];
    for lane in 0..n {
        for (element, operand) in elements.iter_mut().zip(operands) {
            *element = operand >> (lane * bits) & ((1 << bits) - 1);
        }
        result |= each(&elements[..operands.len()]) << (lane * bits);
    }
    result
}

/// `abs` and `neg` (§9.7.3.9, .10; §9.7.4.6, .7): a sign of its own for NaN too, which the manual leaves open for all but f64.
fn sign(m: &mut Modifiers<'_>, negate: bool) -> Option<Form> {
    let mode = Mode::take(m);
    let ty = m.ty()?;
    let (format, _) = elements(ty)?;
    if !allowed(format, mode) || mode.sat || mode.relu {
        return None;
    }
    let mask = 1u128 << (format.bits - 1);
    let form = lanes(ty, 1, move |x| {
        let bits = if mode.ftz { format.flush(x[0]) } else { x[0] };
        if negate { bits ^ mask } else { bits & !mask }
    })?;
    Some(if format == F64 { form } else { form.with_any_nan() })
}

/// `min` and `max` (§9.7.3.11, .12; §9.7.4.8, .9): +0 is above -0.
fn extremum(m: &mut Modifiers<'_>, is_max: bool) -> Option<Form> {
    let mode = Mode::take(m);
    let (nan, xorsign) = (m.take("NaN"), m.take("xorsign"));
    let abs = m.take("abs");
    let ty = m.ty()?;
    let (format, _) = elements(ty)?;
    if !allowed(format, mode) || mode.sat || mode.relu || abs != xorsign || format == F64 && (nan || xorsign)
    {
        return None;
    }
    let sign = 1u128 << (format.bits - 1);
    lanes(ty, 2, move |x| {
        let flush = |bits| if mode.ftz { format.flush(bits) } else { bits };
        let (mut a, mut b) = (flush(x[0]), flush(x[1]));
        let negative = (a ^ b) & sign;
        if xorsign {
            (a, b) = (a & !sign, b & !sign);
        }
        let (x, y) = (format.decode(a), format.decode(b));
        let result = match (x.is_nan(), y.is_nan()) {
            (true, true) => return format.nan(),
            (true, _) | (_, true) if nan => return format.nan(),
            (true, _) => b,
            (_, true) => a,
            _ => {
                // Zeros of unlike sign are ordered by it.
                let order = x.compare(y).unwrap().then(y.is_negative().cmp(&x.is_negative()));
                if (order == Ordering::Less) != is_max { a } else { b }
            }
        };
        if xorsign { result | negative } else { result }
    })
}

/// `testp` (§9.7.3.1): zeros count as normal.
fn testp(m: &mut Modifiers<'_>) -> Option<Form> {
    let property = m.take_one(&[
        ("finite", 0),
        ("infinite", 1),
        ("number", 2),
        ("notanumber", 3),
        ("normal", 4),
        ("subnormal", 5),
    ])?;
    let ty = m.ty()?;
    let Type::Float(format @ (F32 | F64)) = ty else { return None };
    Form::total(Type::Pred, &[ty], move |x| {
        let value = format.decode(x[0]);
        let finite = matches!(value, Value::Finite { .. });
        u128::from(match property {
            0 => finite,
            1 => matches!(value, Value::Infinite { .. }),
            2 => !value.is_nan(),
            3 => value.is_nan(),
            4 => finite && !format.is_subnormal(x[0]),
            _ => format.is_subnormal(x[0]),
        })
    })
}

/// `copysign` (§9.7.3.2): a's sign, b's magnitude.
fn copysign(m: &mut Modifiers<'_>) -> Option<Form> {
    let ty = m.ty()?;
    let Type::Float(format @ (F32 | F64)) = ty else { return None };
    let sign = 1u128 << (format.bits - 1);
    Form::total(ty, &[ty, ty], move |x| x[0] & sign | x[1] & !sign)
}
