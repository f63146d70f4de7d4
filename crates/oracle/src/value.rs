//! Exact values between reading operands and rounding the result.

use std::cmp::Ordering;

/// A number, or what stands in for one. A finite one is `mantissa · 2^exponent`, and `rest` more than that in magnitude by
/// something less than one unit of the mantissa: as much as rounding needs to know of an infinite expansion.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    Nan,
    Infinite { negative: bool },
    Finite { negative: bool, mantissa: u128, exponent: i32, rest: bool },
}

/// How a result that lies between two numbers of its format is chosen (§9.7.3, table of rounding modifiers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    /// `.rn`
    Nearest,
    /// `.rna`
    NearestAway,
    /// `.rz`
    Zero,
    /// `.rm`
    Down,
    /// `.rp`
    Up,
}

impl Rounding {
    /// `mantissa · 2^shift`, and something less than a unit of the mantissa more if `rest`, as a whole number.
    pub fn units(self, negative: bool, mantissa: u128, shift: i32, rest: bool) -> u128 {
        if shift >= 0 {
            assert!(!rest, "{shift} places of an inexact mantissa are not known");
            return mantissa << shift;
        }
        let places = shift.unsigned_abs();
        let (whole, half, below) = if places > 128 {
            (0, false, mantissa != 0 || rest)
        } else if places == 128 {
            (0, mantissa >> 127 == 1, mantissa << 1 != 0 || rest)
        } else {
            let half = 1u128 << (places - 1);
            (mantissa >> places, mantissa & half != 0, mantissa & (half - 1) != 0 || rest)
        };
        let up = match self {
            Rounding::Nearest => half && (below || whole & 1 == 1),
            Rounding::NearestAway => half,
            Rounding::Zero => false,
            Rounding::Down => negative && (half || below),
            Rounding::Up => !negative && (half || below),
        };
        whole + u128::from(up)
    }
}

impl Value {
    pub fn zero(negative: bool) -> Value {
        Value::Finite { negative, mantissa: 0, exponent: 0, rest: false }
    }

    pub fn integer(value: i128) -> Value {
        Value::Finite { negative: value < 0, mantissa: value.unsigned_abs(), exponent: 0, rest: false }
    }

    pub fn is_nan(self) -> bool {
        self == Value::Nan
    }

    pub fn is_zero(self) -> bool {
        matches!(self, Value::Finite { mantissa: 0, rest: false, .. })
    }

    pub fn is_negative(self) -> bool {
        matches!(self, Value::Infinite { negative: true } | Value::Finite { negative: true, .. })
    }

    pub fn negated(self) -> Value {
        match self {
            Value::Nan => Value::Nan,
            Value::Infinite { negative } => Value::Infinite { negative: !negative },
            Value::Finite { negative, mantissa, exponent, rest } => {
                Value::Finite { negative: !negative, mantissa, exponent, rest }
            }
        }
    }

    pub fn abs(self) -> Value {
        if self.is_negative() { self.negated() } else { self }
    }

    /// The order of numbers, in which zeros are equal; `None` beside a NaN.
    pub fn compare(self, other: Value) -> Option<Ordering> {
        let difference = match (self, other) {
            (Value::Nan, _) | (_, Value::Nan) => return None,
            (Value::Infinite { negative: a }, Value::Infinite { negative: b }) => return Some(b.cmp(&a)),
            _ => self.plus(other.negated(), Rounding::Nearest),
        };
        Some(match difference {
            _ if difference.is_zero() => Ordering::Equal,
            _ if difference.is_negative() => Ordering::Less,
            _ => Ordering::Greater,
        })
    }

    /// The sum. A zero sum of numbers with unlike signs is -0 when rounding down, else +0 (IEEE 754 §6.3).
    /// Both mantissas must be exact and have at most 106 bits.
    pub fn plus(self, other: Value, rounding: Rounding) -> Value {
        let (a, b) = match (self, other) {
            (Value::Nan, _) | (_, Value::Nan) => return Value::Nan,
            (Value::Infinite { negative: a }, Value::Infinite { negative: b }) => {
                return if a == b { self } else { Value::Nan };
            }
            (Value::Infinite { .. }, _) => return self,
            (_, Value::Infinite { .. }) => return other,
            (a, b) => (a.exact(), b.exact()),
        };
        if a.1 == 0 && b.1 == 0 {
            return Value::zero(if a.0 == b.0 { a.0 } else { rounding == Rounding::Down });
        }
        if a.1 == 0 {
            return other;
        }
        if b.1 == 0 {
            return self;
        }
        // The larger one's first bit goes to position 120: no bit of it is lost, and a carry has room.
        let top =
            |(_, mantissa, exponent): (bool, u128, i32)| exponent + 127 - mantissa.leading_zeros() as i32;
        let (a, b) = if top(a) >= top(b) { (a, b) } else { (b, a) };
        let exponent = top(a) - 120;
        let large = a.1 << (a.2 - exponent);
        let places = exponent - b.2;
        let (small, lost) = match places {
            ..=0 => (b.1 << -places, false),
            1..128 => (b.1 >> places, b.1 << (128 - places) != 0),
            _ => (0, true),
        };
        if a.0 == b.0 {
            return Value::Finite { negative: a.0, mantissa: large + small, exponent, rest: lost };
        }
        // What was lost makes the difference less than a unit smaller: one unit less, and a rest.
        let difference = large as i128 - small as i128 - i128::from(lost);
        if difference == 0 && !lost {
            return Value::zero(rounding == Rounding::Down);
        }
        Value::Finite {
            negative: a.0 != (difference < 0),
            mantissa: difference.unsigned_abs(),
            exponent,
            rest: lost,
        }
    }

    /// The product of exact values with at most 64 bits each.
    pub fn times(self, other: Value) -> Value {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
            (Value::Infinite { .. }, _) if other.is_zero() => Value::Nan,
            (_, Value::Infinite { .. }) if self.is_zero() => Value::Nan,
            (Value::Infinite { .. }, _) | (_, Value::Infinite { .. }) => Value::Infinite { negative },
            _ => {
                let (a, b) = (self.exact(), other.exact());
                Value::Finite { negative, mantissa: a.1 * b.1, exponent: a.2 + b.2, rest: false }
            }
        }
    }

    /// The quotient of exact values with at most 53 bits each.
    pub fn over(self, other: Value) -> Value {
        let negative = self.is_negative() != other.is_negative();
        match (self, other) {
            (Value::Nan, _) | (_, Value::Nan) => Value::Nan,
            (Value::Infinite { .. }, Value::Infinite { .. }) => Value::Nan,
            (Value::Infinite { .. }, _) => Value::Infinite { negative },
            (_, Value::Infinite { .. }) => Value::zero(negative),
            _ if self.is_zero() && other.is_zero() => Value::Nan,
            _ if self.is_zero() => Value::zero(negative),
            _ if other.is_zero() => Value::Infinite { negative },
            _ => {
                let (a, b) = (self.exact(), other.exact());
                let places = a.1.leading_zeros();
                let dividend = a.1 << places;
                Value::Finite {
                    negative,
                    mantissa: dividend / b.1,
                    exponent: a.2 - places as i32 - b.2,
                    rest: dividend % b.1 != 0,
                }
            }
        }
    }

    /// The square root of an exact value; that of -0 is -0 (IEEE 754 §5.4.1).
    pub fn root(self) -> Value {
        match self {
            Value::Nan => Value::Nan,
            _ if self.is_zero() => self,
            _ if self.is_negative() => Value::Nan,
            Value::Infinite { .. } => self,
            Value::Finite { .. } => {
                let (_, mantissa, exponent) = self.exact();
                let places = mantissa.leading_zeros() as i32;
                // An even exponent can be halved.
                let places = if (exponent - places) % 2 == 0 { places } else { places - 1 };
                let square = mantissa << places;
                let root = square.isqrt();
                Value::Finite {
                    negative: false,
                    mantissa: root,
                    exponent: (exponent - places) / 2,
                    rest: root * root != square,
                }
            }
        }
    }

    /// The whole number that `rounding` chooses; `None` for NaN, infinities and what does not fit 126 bits.
    pub fn to_integer(self, rounding: Rounding) -> Option<i128> {
        let Value::Finite { negative, mantissa, exponent, rest } = self else { return None };
        if mantissa != 0 && exponent + 128 - mantissa.leading_zeros() as i32 > 126 {
            return None;
        }
        let units =
            if mantissa == 0 && !rest { 0 } else { rounding.units(negative, mantissa, exponent, rest) };
        Some(if negative { -(units as i128) } else { units as i128 })
    }

    /// Sign, mantissa and exponent.
    fn exact(self) -> (bool, u128, i32) {
        match self {
            Value::Finite { negative, mantissa, exponent, rest: false } => (negative, mantissa, exponent),
            _ => unreachable!("{self:?} is not exact"),
        }
    }
}
