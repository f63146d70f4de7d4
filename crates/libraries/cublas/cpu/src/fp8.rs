//! Eight-bit floating point: one bit of sign, then exponent and mantissa as the types' names say.

/// CUDA's `__nv_fp8_e4m3`: no infinities, one NaN per sign, up to 448.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct E4M3(pub u8);

/// CUDA's `__nv_fp8_e5m2`: IEEE's rules, up to 57344.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct E5M2(pub u8);

impl E4M3 {
    pub const MAX: f32 = 448.0;

    pub fn to_f32(self) -> f32 {
        if self.0 & 0x7f == 0x7f { f32::NAN.copysign(sign(self.0)) } else { decode(self.0, 3, 7) }
    }

    /// The nearest value, ties to even; what is larger than the largest becomes that.
    pub fn from_f32(value: f32) -> Self {
        let sign = sign_bit(value);
        Self(if value.is_nan() { 0x7f | sign } else { sign | encode(value.abs().min(Self::MAX), 3, 7) })
    }
}

impl E5M2 {
    pub const MAX: f32 = 57344.0;

    pub fn to_f32(self) -> f32 {
        match self.0 & 0x7f {
            0x7c => f32::INFINITY.copysign(sign(self.0)),
            0x7d.. => f32::NAN.copysign(sign(self.0)),
            _ => decode(self.0, 2, 15),
        }
    }

    /// The nearest value, ties to even; what is larger than the largest becomes that.
    pub fn from_f32(value: f32) -> Self {
        let sign = sign_bit(value);
        Self(if value.is_nan() { 0x7f | sign } else { sign | encode(value.abs().min(Self::MAX), 2, 15) })
    }
}

fn sign(bits: u8) -> f32 {
    if bits & 0x80 == 0 { 1.0 } else { -1.0 }
}

fn sign_bit(value: f32) -> u8 {
    u8::from(value.is_sign_negative()) << 7
}

/// A power of two; `exponent` is one that `f32` has as a normal number.
fn power(exponent: i32) -> f32 {
    f32::from_bits(((exponent + 127) as u32) << 23)
}

fn decode(bits: u8, mantissa_bits: u32, bias: i32) -> f32 {
    let magnitude = u32::from(bits & 0x7f);
    let exponent = (magnitude >> mantissa_bits) as i32;
    let fraction = magnitude & ((1 << mantissa_bits) - 1);
    let significand = if exponent == 0 { fraction } else { fraction | 1 << mantissa_bits };
    significand as f32 * power(exponent.max(1) - bias - mantissa_bits as i32) * sign(bits)
}

/// Of a magnitude that, rounded, is finite.
fn encode(magnitude: f32, mantissa_bits: u32, bias: i32) -> u8 {
    let exponent = ((magnitude.to_bits() >> 23) as i32 - 127).max(1 - bias);
    // In units of the last place; a carry into the next exponent comes out right by itself.
    let units = (magnitude * power(mantissa_bits as i32 - exponent)).round_ties_even() as u32;
    (units + (((exponent - 1 + bias) as u32) << mantissa_bits)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formats' definition, by powers of two in f64.
    fn defined(bits: u8, mantissa_bits: i32, bias: i32) -> f64 {
        let fraction = f64::from(bits & ((1 << mantissa_bits) - 1)) / 2f64.powi(mantissa_bits);
        let value = match i32::from(bits & 0x7f) >> mantissa_bits {
            0 => fraction * 2f64.powi(1 - bias),
            exponent => (1.0 + fraction) * 2f64.powi(exponent - bias),
        };
        if bits & 0x80 == 0 { value } else { -value }
    }

    #[test]
    fn every_value_is_as_defined_and_comes_back() {
        for bits in 0..=255u8 {
            if bits & 0x7f != 0x7f {
                assert_eq!(f64::from(E4M3(bits).to_f32()), defined(bits, 3, 7));
                assert_eq!(E4M3::from_f32(E4M3(bits).to_f32()), E4M3(bits));
            }
            if bits & 0x7f < 0x7c {
                assert_eq!(f64::from(E5M2(bits).to_f32()), defined(bits, 2, 15));
                assert_eq!(E5M2::from_f32(E5M2(bits).to_f32()), E5M2(bits));
            }
        }
        assert!(E4M3(0x7f).to_f32().is_nan() && E4M3(0xff).to_f32().is_nan());
        assert_eq!(E5M2(0xfc).to_f32(), f32::NEG_INFINITY);
        assert!(E5M2(0x7d).to_f32().is_nan());
    }

    #[test]
    fn rounding_takes_the_nearest_and_of_two_the_even_one() {
        for low in 0..0x7e_u8 {
            let (a, b) = (E4M3(low).to_f32(), E4M3(low + 1).to_f32());
            let middle = (a + b) / 2.0;
            assert_eq!(E4M3::from_f32(middle).0, low + (low & 1), "{middle}");
            assert_eq!(E4M3::from_f32(middle.next_down()).0, low);
            assert_eq!(E4M3::from_f32(-middle.next_up()).0, (low + 1) | 0x80);
        }
        for low in 0..0x7b_u8 {
            let middle = (E5M2(low).to_f32() + E5M2(low + 1).to_f32()) / 2.0;
            assert_eq!(E5M2::from_f32(middle).0, low + (low & 1), "{middle}");
        }
    }

    #[test]
    fn what_is_too_large_becomes_the_largest() {
        assert_eq!(E4M3::from_f32(1e9).to_f32(), 448.0);
        assert_eq!(E4M3::from_f32(f32::NEG_INFINITY).to_f32(), -448.0);
        assert_eq!(E5M2::from_f32(60000.0).to_f32(), 57344.0);
        assert!(E5M2::from_f32(f32::NAN).to_f32().is_nan());
        assert_eq!(E4M3::from_f32(1e-30).0, 0);
        assert_eq!(E4M3::from_f32(-1e-30).0, 0x80);
    }
}
