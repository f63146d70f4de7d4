//! Elements of factors: how they lie in memory, and what numbers they are.

/// Type of an element of A or B.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    E2m3,
    E3m2,
    /// In bytes of its own.
    E2m1,
    /// Two in a byte.
    PackedE2m1,
    U8,
    S8,
}

impl Element {
    /// Elements in 16 bytes of shared memory. Those of 4 and 6 bits stand in front of padding, 16 of them.
    pub fn per_unit(self) -> usize {
        match self {
            Element::F16 | Element::Bf16 => 8,
            Element::Tf32 => 4,
            Element::PackedE2m1 => 32,
            _ => 16,
        }
    }

    /// Bits from one to the next in shared memory.
    pub fn bits(self) -> usize {
        match self {
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 => 32,
            Element::E2m3 | Element::E3m2 => 6,
            Element::E2m1 | Element::PackedE2m1 => 4,
            _ => 8,
        }
    }

    /// Whether neighbours in memory may be neighbours along m or n.
    pub fn may_be_transposed(self) -> bool {
        self.bits() >= 8
    }

    /// The element from `bit` on of a unit.
    pub fn of_unit(self, unit: u128, nth: usize) -> u32 {
        let bits = self.bits();
        (unit >> (bits * nth)) as u32 & (u32::MAX >> (32 - bits))
    }

    /// The element of a row in tensor memory, whose words `word` gives: what has less than 8 bits stands in a byte, in its
    /// lowest six bits, or of four in the middle.
    pub fn of_row(self, k: usize, word: impl Fn(usize) -> u32) -> u32 {
        let bits = if self == Element::PackedE2m1 { 4 } else { self.bits().max(8) };
        let per_word = 32 / bits;
        let found = word(k / per_word) >> (bits * (k % per_word));
        match self {
            Element::E2m1 => found >> 2 & 0xf,
            Element::E2m3 | Element::E3m2 => found & 0x3f,
            _ => found & (u32::MAX >> (32 - bits)),
        }
    }

    /// The number of the bits.
    pub fn number(self, bits: u32) -> f32 {
        match self {
            Element::F16 => float(bits, 5, 10, Top::Infinite),
            Element::Bf16 => f32::from_bits(bits << 16),
            Element::Tf32 => f32::from_bits(bits & 0xffff_e000),
            Element::E4m3 => float(bits, 4, 3, Top::OneNan),
            Element::E5m2 => float(bits, 5, 2, Top::Infinite),
            Element::E2m3 => float(bits, 2, 3, Top::Finite),
            Element::E3m2 => float(bits, 3, 2, Top::Finite),
            Element::E2m1 | Element::PackedE2m1 => float(bits, 2, 1, Top::Finite),
            Element::U8 => bits as f32,
            Element::S8 => f32::from(bits as i8),
        }
    }
}

/// What the largest exponent means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Top {
    /// Infinities and NaNs.
    Infinite,
    /// Numbers, and NaN where all bits are set.
    OneNan,
    Finite,
}

/// Sign, exponent, mantissa.
fn float(bits: u32, exponent_bits: u32, mantissa_bits: u32, top: Top) -> f32 {
    let exponent = bits >> mantissa_bits & ((1 << exponent_bits) - 1);
    let mantissa = bits & ((1 << mantissa_bits) - 1);
    let is_negative = bits >> (exponent_bits + mantissa_bits) & 1 == 1;
    let is_top = exponent == (1 << exponent_bits) - 1;
    let magnitude = match top {
        Top::Infinite if is_top && mantissa == 0 => f32::INFINITY,
        Top::Infinite if is_top => f32::NAN,
        Top::OneNan if is_top && mantissa == (1 << mantissa_bits) - 1 => f32::NAN,
        _ => {
            let bias = (1 << (exponent_bits - 1)) - 1;
            let (whole, power) = match exponent {
                0 => (mantissa, 1 - bias),
                _ => (mantissa | 1 << mantissa_bits, exponent as i32 - bias),
            };
            whole as f32 * 2f32.powi(power - mantissa_bits as i32)
        }
    };
    if is_negative { -magnitude } else { magnitude }
}

/// `.ue8m0`: a power of two, or NaN.
pub fn ue8m0(bits: u8) -> f64 {
    if bits == 0xff { f64::NAN } else { 2f64.powi(i32::from(bits) - 127) }
}

/// `.ue4m3`: as `e4m3`, without a sign.
pub fn ue4m3(bits: u8) -> f64 {
    float(u32::from(bits & 0x7f), 4, 3, Top::OneNan).into()
}

/// To nearest even; a NaN is the canonical one.
pub fn f16_bits(value: f32) -> u32 {
    crate::exec::tensor::half::to_bits(value).into()
}

pub fn f16_number(bits: u32) -> f32 {
    float(bits & 0xffff, 5, 10, Top::Infinite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_their_formats() {
        for (element, bits, number) in [
            (Element::E2m1, 0b0111, 6.0),
            (Element::E2m1, 0b1001, -0.5),
            (Element::E3m2, 0b01_1111, 28.0),
            (Element::E2m3, 0b11_1111, -7.5),
            (Element::E2m3, 0b00_0001, 0.125),
            (Element::E4m3, 0x7e, 448.0),
            (Element::E4m3, 0x01, 2f32.powi(-9)),
            (Element::E5m2, 0xfb, -57344.0),
            (Element::F16, 0x3c01, 1.000_976_6),
            (Element::Bf16, 0xc040, -3.0),
            (Element::Tf32, 0x3f80_1fff, 1.0),
            (Element::S8, 0x80, -128.0),
        ] {
            assert_eq!(element.number(bits), number, "{element:?} {bits:#x}");
        }
        assert!(Element::E4m3.number(0xff).is_nan() && Element::E5m2.number(0x7d).is_nan());
        assert_eq!([ue8m0(127), ue8m0(0), ue4m3(0x38)], [1.0, 2f64.powi(-127), 1.0]);
    }
}
