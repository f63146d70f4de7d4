//! An element of the product of matrices of narrow floats, with a scale for each block along k or without (the manual's
//! "Matrix multiply-accumulate operation using mma instruction with block scaling").

use crate::format::{E2M1, E2M3, E3M2, E4M3, E5M2, Format};
use crate::value::{Rounding, Value};

/// The types of A's elements, B's, and of the scales.
#[derive(Clone, Copy, Debug)]
pub struct Narrow {
    a: Format,
    b: Format,
    scale: Option<Scale>,
}

#[derive(Clone, Copy, Debug)]
enum Scale {
    Ue8m0,
    Ue4m3,
}

impl Scale {
    fn decode(self, bits: u8) -> Value {
        match (self, bits) {
            (Scale::Ue8m0, 0xff) => Value::Nan,
            (Scale::Ue8m0, _) => {
                Value::Finite { negative: false, mantissa: 1, exponent: i32::from(bits) - 127, rest: false }
            }
            (Scale::Ue4m3, _) => E4M3.decode((bits & 0x7f).into()),
        }
    }
}

/// A block along k: the elements of a row of A and of a column of B that meet, and what both are scaled by.
pub struct Block<'b> {
    pub pairs: &'b [(u8, u8)],
    pub scales: (u8, u8),
}

impl Narrow {
    /// By the manual's names of the types; no scales without a name for them.
    pub fn new(a: &str, b: &str, scale: Option<&str>) -> Option<Narrow> {
        let scale = match scale {
            None => None,
            Some("ue8m0") => Some(Scale::Ue8m0),
            Some("ue4m3") => Some(Scale::Ue4m3),
            Some(_) => return None,
        };
        Some(Narrow { a: element(a)?, b: element(b)?, scale })
    }

    /// The exact sum, rounded once to `to`, of which `c` is a number too. The manual leaves open where sums are rounded on the way:
    /// whoever compares gives numbers whose sums need no rounding.
    pub fn element(&self, blocks: &[Block<'_>], c: u128, to: Format) -> u128 {
        let nearest = Rounding::Nearest;
        let mut total = to.decode(c);
        for block in blocks {
            let mut sum = Value::zero(false);
            for &(a, b) in block.pairs {
                let product = self.a.decode(a.into()).times(self.b.decode(b.into()));
                sum = reduced(sum.plus(product, nearest));
            }
            if let Some(scale) = self.scale {
                let (of_a, of_b) = (scale.decode(block.scales.0), scale.decode(block.scales.1));
                sum = sum.times(of_a.times(of_b));
            }
            total = reduced(total.plus(sum, nearest));
        }
        to.round(nearest, total)
    }
}

/// The same number with as few bits as it has, so that more can be added.
fn reduced(value: Value) -> Value {
    match value {
        Value::Finite { negative, mantissa, exponent, rest: false } if mantissa != 0 => {
            let zeros = mantissa.trailing_zeros();
            Value::Finite {
                negative,
                mantissa: mantissa >> zeros,
                exponent: exponent + zeros as i32,
                rest: false,
            }
        }
        _ => value,
    }
}

fn element(name: &str) -> Option<Format> {
    Some(match name {
        "e4m3" => E4M3,
        "e5m2" => E5M2,
        "e2m3" => E2M3,
        "e3m2" => E3M2,
        "e2m1" => E2M1,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::F32;

    #[test]
    fn scaled_sums_are_those_by_hand() {
        // 1.5 × -2 × 2^1 × 2^-2, and 6 × 0.5 × 2^0 × 2^3.
        let narrow = Narrow::new("e2m1", "e2m1", Some("ue8m0")).unwrap();
        let blocks = [
            Block { pairs: &[(0b0011, 0b1100), (0, 0)], scales: (128, 125) },
            Block { pairs: &[(0b0111, 0b0001)], scales: (127, 130) },
        ];
        let c = F32.round(Rounding::Nearest, Value::integer(5));
        assert_eq!(narrow.element(&blocks, c, F32), u128::from(27.5f32.to_bits()));
        // A sign of a scale says nothing, and its NaN is the result's.
        let narrow = Narrow::new("e4m3", "e5m2", Some("ue4m3")).unwrap();
        let scaled = |scales| narrow.element(&[Block { pairs: &[(0x38, 0x3c)], scales }], 0, F32);
        assert_eq!(scaled((0xb8, 0x40)), u128::from(2f32.to_bits()));
        assert_eq!(scaled((0x7f, 0x40)), F32.nan());
    }
}
