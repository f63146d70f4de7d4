//! The approximate functions: what the manual fixes of their results, and how far a result is from the exact one, which
//! MPFR gives to 120 bits. Section numbers are those of PTX ISA 9.

use rug::Float;
use rug::ops::Pow;

use crate::form::{Modifiers, Type};
use crate::format::{BF16, F16, F32, F64, Format};
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Function {
    Rcp,
    Sqrt,
    Rsqrt,
    Sin,
    Cos,
    Lg2,
    Ex2,
    Tanh,
    Div,
}

/// How an error is counted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Unit {
    /// Units in the last place of the exact result.
    Ulp,
    /// Relative to the exact result, or to the least normal number when it is smaller than that.
    Relative,
    Absolute,
}

/// A part of the operands with its own bound.
#[derive(Clone, Copy, Debug)]
pub struct Domain {
    pub name: &'static str,
    pub unit: Unit,
    /// As the manual writes it, and as a number; `None` where the manual promises nothing.
    pub bound: Option<(&'static str, f64)>,
}

/// An approximate instruction.
#[derive(Clone, Copy, Debug)]
pub struct Approximate {
    pub function: Function,
    pub format: Format,
    /// Elements in a register.
    pub n: u32,
    pub ftz: bool,
    /// `div.full`: accurate for every divisor.
    full: bool,
    /// The f64 ones that see and give the upper 32 bits only.
    upper: bool,
}

/// What is to be said of one result.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Verdict {
    /// The manual gives the result's bits, and these are not they.
    Wrong { wanted: u128 },
    /// It is one of the manual's special results.
    Special,
    /// The error, and the index of the domain.
    Error { domain: usize, error: f64 },
}

const PRECISION: u32 = 120;

const fn domain(name: &'static str, unit: Unit, bound: &'static str, value: f64) -> Domain {
    Domain { name, unit, bound: Some((bound, value)) }
}

const fn open(name: &'static str, unit: Unit) -> Domain {
    Domain { name, unit, bound: None }
}

/// 2^-20.5, 2^-14.7, 2^-22.9, 2^-10.987, 2^-9.9
const E20_5: f64 = 6.743_495_761_743_046e-7;
const E14_7: f64 = 3.757_154_581_741_079_6e-5;
const E22_9: f64 = 1.277_653_530_283_325e-7;
const E10_987: f64 = 4.927_009_930_882_233e-4;
const E9_9: f64 = 1.046_653_772_008_098_5e-3;
/// 2^-22, 2^-23, 2^-11, 2^-8, 2^-7
const E22: f64 = 1.0 / 4_194_304.0;
const E23: f64 = 1.0 / 8_388_608.0;
const E11: f64 = 1.0 / 2048.0;
const E8: f64 = 1.0 / 256.0;
const E7: f64 = 1.0 / 128.0;

const RCP: &[Domain] = &[domain("all", Unit::Ulp, "1 ulp (§9.7.3.13)", 1.0)];
const SQRT: &[Domain] = &[domain("positive finite", Unit::Relative, "2^-23 relative (§9.7.3.15)", E23)];
const RSQRT: &[Domain] = &[domain("positive finite", Unit::Relative, "2^-22.9 relative (§9.7.3.16)", E22_9)];
const SIN: &[Domain] = &[
    domain("[-2π, 2π]", Unit::Absolute, "2^-20.5 absolute (§9.7.3.18, cos: .19)", E20_5),
    domain("[-100π, 100π]", Unit::Absolute, "2^-14.7 absolute (§9.7.3.18, cos: .19)", E14_7),
    open("beyond 100π", Unit::Absolute),
];
const LG2: &[Domain] = &[
    domain("(0.5, 2)", Unit::Absolute, "2^-22 absolute (§9.7.3.20)", E22),
    domain("other positive finite", Unit::Relative, "2^-22 relative (§9.7.3.20)", E22),
];
const EX2: &[Domain] = &[domain("all", Unit::Ulp, "2 ulp (§9.7.3.21)", 2.0)];
const TANH: &[Domain] = &[domain("all", Unit::Relative, "2^-11 relative (§9.7.3.22)", E11)];
const TANH_F16: &[Domain] = &[domain("all", Unit::Absolute, "2^-10.987 absolute (§9.7.4.9)", E10_987)];
const TANH_BF16: &[Domain] = &[domain("all", Unit::Absolute, "2^-8 absolute (§9.7.4.9)", E8)];
const EX2_F16: &[Domain] = &[domain("all", Unit::Relative, "2^-9.9 relative (§9.7.4.10)", E9_9)];
const EX2_BF16: &[Domain] = &[domain("all", Unit::Relative, "2^-7 relative (§9.7.4.10)", E7)];
const DIV_APPROX: &[Domain] =
    &[domain("2^-126 ≤ |b| ≤ 2^126", Unit::Ulp, "2 ulp (§9.7.3.8)", 2.0), open("|b| < 2^-126", Unit::Ulp)];
const DIV_FULL: &[Domain] = &[domain("all", Unit::Ulp, "2 ulp (§9.7.3.8)", 2.0)];
const UPPER: &[Domain] = &[open("all, upper 32 bits", Unit::Relative)];
const RSQRT_F64: &[Domain] = &[open("positive finite", Unit::Relative)];

impl Approximate {
    /// `None` when the instruction is exact or not known.
    pub fn parse(opcode: &str, modifiers: &[&str]) -> Option<Approximate> {
        let mut m = Modifiers::new(modifiers);
        let function = match opcode {
            "rcp" => Function::Rcp,
            "sqrt" => Function::Sqrt,
            "rsqrt" => Function::Rsqrt,
            "sin" => Function::Sin,
            "cos" => Function::Cos,
            "lg2" => Function::Lg2,
            "ex2" => Function::Ex2,
            "tanh" => Function::Tanh,
            "div" => Function::Div,
            _ => return None,
        };
        let full = function == Function::Div && m.take("full");
        if !full && !m.take("approx") {
            return None;
        }
        let ftz = m.take("ftz");
        let (format, n) = match m.ty()? {
            Type::Float(format) => (format, 1),
            Type::PackedFloat(format, n) => (format, n),
            _ => return None,
        };
        let takes_format = match format {
            F32 => true,
            F16 => !ftz && matches!(function, Function::Tanh | Function::Ex2),
            BF16 => ftz && function == Function::Ex2 || !ftz && function == Function::Tanh,
            F64 => ftz && function == Function::Rcp || function == Function::Rsqrt,
            _ => false,
        };
        let upper = format == F64 && ftz;
        (takes_format && m.is_empty()).then_some(Approximate { function, format, n, ftz, full, upper })
    }

    pub fn n_operands(self) -> usize {
        if self.function == Function::Div { 2 } else { 1 }
    }

    pub fn domains(self) -> &'static [Domain] {
        match (self.function, self.format) {
            (Function::Rcp, F64) => UPPER,
            (Function::Rsqrt, F64) if self.upper => UPPER,
            (Function::Rsqrt, F64) => RSQRT_F64,
            (Function::Tanh, F16) => TANH_F16,
            (Function::Tanh, BF16) => TANH_BF16,
            (Function::Ex2, F16) => EX2_F16,
            (Function::Ex2, BF16) => EX2_BF16,
            (Function::Rcp, _) => RCP,
            (Function::Sqrt, _) => SQRT,
            (Function::Rsqrt, _) => RSQRT,
            (Function::Sin | Function::Cos, _) => SIN,
            (Function::Lg2, _) => LG2,
            (Function::Ex2, _) => EX2,
            (Function::Tanh, _) => TANH,
            (Function::Div, _) if self.full => DIV_FULL,
            (Function::Div, _) => DIV_APPROX,
        }
    }

    /// What one element's result is, for one element of each operand.
    pub fn judge(self, operands: &[u128], got: u128) -> Verdict {
        let format = self.format;
        let operand = |bits: u128| {
            let bits = if self.upper { bits >> 32 << 32 } else { bits };
            if self.ftz { format.flush(bits) } else { bits }
        };
        let a = format.decode(operand(operands[0]));
        let b = operands.get(1).map(|bits| format.decode(operand(*bits)));
        if let Some(wanted) = self.special(a, b) {
            return if got == wanted { Verdict::Special } else { Verdict::Wrong { wanted } };
        }
        let (x, y) = (number(a), b.map(number));
        let exact = self.exact(&x, y.as_ref());
        if exact.is_infinite() {
            // 2^a of an `a` so large that MPFR's own exponents end.
            let wanted = format.infinity(exact.is_sign_negative());
            return if got == wanted { Verdict::Special } else { Verdict::Wrong { wanted } };
        }
        let least = Float::with_val(PRECISION, 2).pow(format.least_exponent());
        let size = exact.clone().abs();
        if self.ftz && size < least && got == format.flush(got) && is_zero(format, got) {
            let wanted = if exact.is_sign_negative() { 1 << (format.bits - 1) } else { 0 };
            return if got == wanted { Verdict::Special } else { Verdict::Wrong { wanted } };
        }
        // An infinite result is as far away as the number that would follow the largest one.
        let result = match format.decode(got) {
            Value::Nan => return Verdict::Wrong { wanted: format.nan() },
            Value::Infinite { negative } => {
                let beyond = Float::with_val(PRECISION, 2).pow(1 << (format.exponent_bits - 1));
                let least_infinite = if size > beyond { size.clone() } else { beyond };
                if negative { -least_infinite } else { least_infinite }
            }
            value => number(value),
        };
        let domain = self.domain(&x, y.as_ref());
        let error = (result - &exact).abs();
        let error = match self.domains()[domain].unit {
            Unit::Absolute => error,
            Unit::Relative => error / size.max(&least),
            Unit::Ulp => {
                let exponent = size.max(&least).get_exp().unwrap_or(0) - 1 - format.fraction_bits as i32;
                error / Float::with_val(PRECISION, 2).pow(exponent)
            }
        };
        Verdict::Error { domain, error: error.to_f64() }
    }

    /// The results that the manual's tables fix, and those of IEEE division that are not numbers.
    fn special(self, a: Value, b: Option<Value>) -> Option<u128> {
        let format = self.format;
        let nan = if self.upper { 0x7fff_ffff_0000_0000 } else { format.nan() };
        let sign = |negative: bool| u128::from(negative) << (format.bits - 1);
        let negative = a.is_negative();
        if a.is_nan() || b.is_some_and(Value::is_nan) {
            // f64 results of `rsqrt.approx.f64` keep no payload that the manual names; 0x7fff… is what its ftz form has.
            return Some(nan);
        }
        let infinite = matches!(a, Value::Infinite { .. });
        let below = negative && !a.is_zero();
        Some(match self.function {
            Function::Rcp if infinite => sign(negative),
            Function::Rcp if a.is_zero() => format.infinity(negative),
            Function::Sqrt | Function::Rsqrt | Function::Lg2 if below => nan,
            Function::Sqrt if a.is_zero() => sign(negative),
            Function::Rsqrt if infinite => 0,
            Function::Rsqrt if a.is_zero() => format.infinity(negative),
            Function::Lg2 if a.is_zero() => format.infinity(true),
            Function::Sqrt | Function::Lg2 if infinite => format.infinity(false),
            Function::Sin | Function::Cos if infinite => nan,
            Function::Sin | Function::Tanh if a.is_zero() => sign(negative),
            Function::Cos | Function::Ex2 if a.is_zero() => format.one(),
            Function::Ex2 if infinite && negative => 0,
            Function::Ex2 if infinite => format.infinity(false),
            Function::Tanh if infinite => format.one() | sign(negative),
            Function::Div => return self.special_quotient(a, b?),
            _ => return None,
        })
    }

    fn special_quotient(self, a: Value, b: Value) -> Option<u128> {
        let format = self.format;
        let negative = a.is_negative() != b.is_negative();
        let infinite = |value| matches!(value, Value::Infinite { .. });
        let exact = a.over(b);
        // a · (1/b): beyond 2^126 the reciprocal is flushed to zero (§9.7.3.8).
        if !self.full
            && !infinite(b)
            && !b.is_zero()
            && number(b).abs() > Float::with_val(PRECISION, 2).pow(126)
        {
            let zero = u128::from(negative) << (format.bits - 1);
            return Some(if infinite(a) { format.nan() } else { zero });
        }
        let is_number = !infinite(a) && !infinite(b) && !a.is_zero() && !b.is_zero();
        (!is_number).then(|| format.round(crate::Rounding::Nearest, exact))
    }

    fn exact(self, x: &Float, y: Option<&Float>) -> Float {
        let x = x.clone();
        match self.function {
            Function::Rcp => x.recip(),
            Function::Sqrt => x.sqrt(),
            Function::Rsqrt => x.recip_sqrt(),
            Function::Sin => x.sin(),
            Function::Cos => x.cos(),
            Function::Lg2 => x.log2(),
            Function::Ex2 => x.exp2(),
            Function::Tanh => x.tanh(),
            Function::Div => x / y.expect("a division has a divisor"),
        }
    }

    fn domain(self, x: &Float, y: Option<&Float>) -> usize {
        let size = x.clone().abs().to_f64();
        match self.function {
            Function::Sin | Function::Cos => {
                let turns = size / std::f64::consts::PI;
                usize::from(turns > 2.0) + usize::from(turns > 100.0)
            }
            Function::Lg2 => usize::from(size <= 0.5 || size >= 2.0),
            Function::Div if !self.full => {
                usize::from(y.is_some_and(|y| y.clone().abs().to_f64() < f64::from(f32::MIN_POSITIVE)))
            }
            _ => 0,
        }
    }
}

fn is_zero(format: Format, bits: u128) -> bool {
    format.decode(bits).is_zero()
}

/// A finite value.
fn number(value: Value) -> Float {
    match value {
        Value::Finite { negative, mantissa, exponent, .. } => {
            let size = Float::with_val(PRECISION, mantissa) * Float::with_val(PRECISION, 2).pow(exponent);
            if negative { -size } else { size }
        }
        _ => Float::with_val(PRECISION, rug::float::Special::Nan),
    }
}
