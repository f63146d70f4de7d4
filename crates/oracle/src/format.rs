//! Binary float formats, how their bits are read, and how a value is rounded to one (IEEE 754 §3.3, §4.3; the manual's
//! §5.2.3 for the alternate formats).

use crate::value::{Rounding, Value};

/// A format with a sign, an exponent field and a fraction field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Format {
    /// Bits of the register part that holds it.
    pub bits: u32,
    pub exponent_bits: u32,
    pub fraction_bits: u32,
    /// Zero bits below the fraction: tf32 fills a 32-bit register from the top.
    pub padding: u32,
    /// What the largest exponent field means.
    pub specials: Specials,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Specials {
    /// Infinities and NaNs.
    Ieee,
    /// One NaN, all ones; no infinity.
    NanOnly,
    /// Finite numbers.
    None,
}

const fn ieee(bits: u32, exponent_bits: u32, fraction_bits: u32, padding: u32) -> Format {
    Format { bits, exponent_bits, fraction_bits, padding, specials: Specials::Ieee }
}

const fn finite(bits: u32, exponent_bits: u32, fraction_bits: u32) -> Format {
    Format { bits, exponent_bits, fraction_bits, padding: 0, specials: Specials::None }
}

pub const F16: Format = ieee(16, 5, 10, 0);
pub const BF16: Format = ieee(16, 8, 7, 0);
pub const TF32: Format = ieee(32, 8, 10, 13);
pub const F32: Format = ieee(32, 8, 23, 0);
pub const F64: Format = ieee(64, 11, 52, 0);
pub const E5M2: Format = ieee(8, 5, 2, 0);
pub const E4M3: Format =
    Format { bits: 8, exponent_bits: 4, fraction_bits: 3, padding: 0, specials: Specials::NanOnly };
pub const E2M1: Format = finite(4, 2, 1);
pub const E2M3: Format = finite(8, 2, 3);
pub const E3M2: Format = finite(8, 3, 2);

impl Format {
    /// The exponent of the least normal number.
    pub fn least_exponent(self) -> i32 {
        2 - (1 << (self.exponent_bits - 1))
    }

    fn sign_bit(self) -> u32 {
        self.exponent_bits + self.fraction_bits
    }

    /// Exponent and fraction fields of the largest finite number.
    fn largest(self) -> u128 {
        let ones = (1u128 << self.sign_bit()) - 1;
        match self.specials {
            Specials::Ieee => (ones >> self.fraction_bits << self.fraction_bits) - 1,
            Specials::NanOnly => ones - 1,
            Specials::None => ones,
        }
    }

    /// The NaN that arithmetic gives (§9.7.3 for f32: `0x7fffffff`; §9.7.4: `0x7fff`; §9.7.9, cvt: `0x7f` for the
    /// 8-bit formats). f64's payload is the machine's.
    pub fn nan(self) -> u128 {
        match self {
            F64 => 0x7ff8_0000_0000_0000,
            _ => (1 << (self.bits - 1)) - 1,
        }
    }

    pub fn infinity(self, negative: bool) -> u128 {
        self.signed(negative, self.largest() + 1)
    }

    pub fn one(self) -> u128 {
        self.round(Rounding::Nearest, Value::integer(1))
    }

    fn signed(self, negative: bool, fields: u128) -> u128 {
        (fields | u128::from(negative) << self.sign_bit()) << self.padding
    }

    /// The value that bits stand for.
    pub fn decode(self, bits: u128) -> Value {
        let bits = bits >> self.padding;
        let negative = bits >> self.sign_bit() & 1 == 1;
        let field = bits >> self.fraction_bits & ((1 << self.exponent_bits) - 1);
        let fraction = bits & ((1 << self.fraction_bits) - 1);
        let ones = field == (1 << self.exponent_bits) - 1;
        let all_ones = ones && fraction == (1 << self.fraction_bits) - 1;
        match self.specials {
            Specials::Ieee if ones && fraction == 0 => return Value::Infinite { negative },
            Specials::Ieee if ones => return Value::Nan,
            Specials::NanOnly if all_ones => return Value::Nan,
            _ => {}
        }
        let hidden = u128::from(field != 0) << self.fraction_bits;
        let exponent = self.least_exponent() + (field as i32 - 1).max(0) - self.fraction_bits as i32;
        Value::Finite { negative, mantissa: hidden | fraction, exponent, rest: false }
    }

    /// The value's nearest number in this format by `rounding`. What is too large becomes infinite or the largest number,
    /// as the rounding says; formats without infinities, the largest.
    pub fn round(self, rounding: Rounding, value: Value) -> u128 {
        let (negative, mantissa, exponent, rest) = match value {
            Value::Nan => return self.nan(),
            Value::Infinite { negative } if self.specials == Specials::Ieee => {
                return self.infinity(negative);
            }
            Value::Infinite { negative } => return self.signed(negative, self.largest()),
            Value::Finite { negative, mantissa: 0, rest: false, .. } => return self.signed(negative, 0),
            Value::Finite { negative, mantissa, exponent, rest } => (negative, mantissa, exponent, rest),
        };
        let top = exponent + 127 - mantissa.leading_zeros() as i32;
        // The weight of the last fraction bit, which stops falling at the subnormal numbers.
        let quantum = top.max(self.least_exponent()) - self.fraction_bits as i32;
        let units = rounding.units(negative, mantissa, exponent - quantum, rest);
        // The hidden bit of a normal number adds one to the exponent field, as does a carry out of the fraction.
        let field = quantum + self.fraction_bits as i32 - self.least_exponent();
        let fields = ((field as u128) << self.fraction_bits) + units;
        if fields <= self.largest() {
            return self.signed(negative, fields);
        }
        let to_infinity = match rounding {
            Rounding::Nearest | Rounding::NearestAway => true,
            Rounding::Zero => false,
            Rounding::Down => negative,
            Rounding::Up => !negative,
        };
        let infinite = to_infinity && self.specials == Specials::Ieee;
        self.signed(negative, self.largest() + u128::from(infinite))
    }

    /// Like [`Format::round`], with the largest number in place of what is too large.
    pub fn round_finite(self, rounding: Rounding, value: Value) -> u128 {
        let bits = self.round(rounding, value);
        match self.decode(bits) {
            Value::Infinite { negative } => self.signed(negative, self.largest()),
            _ => bits,
        }
    }

    /// `.ftz`: a subnormal number becomes the zero of its sign.
    pub fn flush(self, bits: u128) -> u128 {
        let fields = bits >> self.padding & ((1 << self.sign_bit()) - 1);
        let is_subnormal = fields < 1 << self.fraction_bits;
        if is_subnormal { self.signed(bits >> (self.bits - 1) & 1 == 1, 0) } else { bits }
    }

    pub fn is_subnormal(self, bits: u128) -> bool {
        let fields = bits >> self.padding & ((1 << self.sign_bit()) - 1);
        fields != 0 && fields < 1 << self.fraction_bits
    }
}
