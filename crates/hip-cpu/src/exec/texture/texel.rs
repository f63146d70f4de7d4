//! Elements of an image as what a kernel gets: four channels, numbers or bits.

use super::{Image, Level, flag};

/// `hipArray_Format`, also CUDA's.
pub const UNSIGNED_8: u32 = 0x01;
pub const UNSIGNED_16: u32 = 0x02;
pub const UNSIGNED_32: u32 = 0x03;
pub const SIGNED_8: u32 = 0x08;
pub const SIGNED_16: u32 = 0x09;
pub const SIGNED_32: u32 = 0x0a;
pub const HALF: u32 = 0x10;
pub const FLOAT: u32 = 0x20;

/// Channels that an image lacks: OpenCL's rule, which PTX took its formats from.
const MISSING: [u32; 4] = [0, 0, 0, 1];

impl Image {
    /// Whether a fetch gives floats; else it gives integers.
    pub fn reads_floats(&self) -> bool {
        match self.format {
            HALF | FLOAT => true,
            UNSIGNED_8 | UNSIGNED_16 | SIGNED_8 | SIGNED_16 => self.is(flag::NORMALIZED_FLOAT),
            _ => false,
        }
    }

    /// What a filter counts elements in that are fractions of integers, and its sums: those have 16 bits on a GPU, whatever elements have.
    pub fn parts(&self) -> Option<(f64, f64)> {
        match self.format {
            _ if !self.is(flag::NORMALIZED_FLOAT) || self.is(flag::SRGB) => None,
            UNSIGNED_8 | UNSIGNED_16 => Some((65_535.0, 65_535.0)),
            SIGNED_8 => Some((127.0, 32_767.0)),
            SIGNED_16 => Some((32_767.0, 32_767.0)),
            _ => None,
        }
    }

    /// The bits of the four channels; the element is inside of the level.
    pub fn texel(&self, level: &Level, [x, y, z]: [i64; 3]) -> [u32; 4] {
        let at = z as u64 * level.slice + y as u64 * level.pitch + x as u64 * self.element_bytes();
        let mut channels = self.missing();
        for (nth, channel) in channels.iter_mut().enumerate().take(self.channels as usize) {
            let bytes = self.channel_bytes();
            // SAFETY: inside of the level's memory, which the object describes; unaligned is fine.
            *channel = unsafe {
                let at = level.data.add((at + nth as u64 * bytes) as usize);
                match bytes {
                    1 => u32::from(at.read()),
                    2 => u32::from(at.cast::<u16>().read_unaligned()),
                    _ => at.cast::<u32>().read_unaligned(),
                }
            };
            *channel = self.decoded(*channel, nth);
        }
        channels
    }

    /// What lies outside of a texture with a border.
    pub fn border(&self, color: &[f32; 4]) -> [u32; 4] {
        let mut channels = self.missing();
        for (channel, color) in channels.iter_mut().zip(color).take(self.channels as usize) {
            *channel = color.to_bits();
        }
        channels
    }

    pub fn missing(&self) -> [u32; 4] {
        if self.reads_floats() { MISSING.map(|it| (it as f32).to_bits()) } else { MISSING }
    }

    fn decoded(&self, raw: u32, channel: usize) -> u32 {
        let fraction = self.is(flag::NORMALIZED_FLOAT);
        match self.format {
            HALF => from_half(raw as u16).to_bits(),
            UNSIGNED_8 if fraction && self.is(flag::SRGB) && channel < 3 => linear(raw).to_bits(),
            UNSIGNED_8 if fraction => (raw as f32 / 255.0).to_bits(),
            UNSIGNED_16 if fraction => (raw as f32 / 65_535.0).to_bits(),
            // Two values mean -1.
            SIGNED_8 if fraction => (f32::from(raw as u8 as i8) / 127.0).max(-1.0).to_bits(),
            SIGNED_16 if fraction => (f32::from(raw as u16 as i16) / 32_767.0).max(-1.0).to_bits(),
            SIGNED_8 => i32::from(raw as u8 as i8) as u32,
            SIGNED_16 => i32::from(raw as u16 as i16) as u32,
            _ => raw,
        }
    }

    /// A 32-bit value as the format stores it (`sust.p`): integers keep their low bits.
    pub fn encoded(&self, value: u32) -> u32 {
        match self.format {
            HALF => u32::from(to_half(f32::from_bits(value))),
            _ => value,
        }
    }
}

/// sRGB's curve, IEC 61966-2-1, of an 8-bit fraction.
fn linear(raw: u32) -> f32 {
    let value = f64::from(raw) / 255.0;
    let linear = if value <= 0.040_45 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) };
    linear as f32
}

pub fn from_half(bits: u16) -> f32 {
    let sign = u32::from(bits >> 15) << 31;
    let (exponent, fraction) = (u32::from(bits >> 10) & 0x1f, u32::from(bits) & 0x3ff);
    let magnitude = match exponent {
        0 => (fraction as f32 / 16_777_216.0).to_bits(),
        0x1f => 0x7f80_0000 | fraction << 13,
        _ => (exponent + 112) << 23 | fraction << 13,
    };
    f32::from_bits(sign | magnitude)
}

/// To nearest even.
pub fn to_half(value: f32) -> u16 {
    let bits = value.to_bits();
    let sign = (bits >> 16) as u16 & 0x8000;
    let magnitude = bits & 0x7fff_ffff;
    let half = match magnitude {
        0x7f80_0001.. => 0x7fff,
        // 65520 and above, infinity too.
        0x477f_f000.. => 0x7c00,
        // Normal: the exponent moves by 112, the fraction loses 13 bits.
        0x3880_0000.. => {
            let moved = magnitude - (112 << 23);
            (moved + 0xfff + (moved >> 13 & 1)) >> 13
        }
        // Subnormal: multiples of 2^-24. The product is exact, and the sum rounds to nearest even.
        _ => ((f32::from_bits(magnitude) * 16_777_216.0 + 8_388_608.0) - 8_388_608.0) as u32,
    };
    sign | half as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The value of a half, from its definition.
    fn value(bits: u16) -> f64 {
        let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
        let magnitude = match exponent {
            0 => fraction * 2f64.powi(-24),
            0x1f if fraction == 0.0 => f64::INFINITY,
            0x1f => f64::NAN,
            _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
        };
        if bits >> 15 == 1 { -magnitude } else { magnitude }
    }

    #[test]
    fn halves_are_read_and_written_exactly() {
        for bits in 0..=u16::MAX {
            let read = from_half(bits);
            let expected = value(bits);
            assert!(f64::from(read) == expected || read.is_nan() && expected.is_nan(), "{bits:#x}");
            if !read.is_nan() {
                assert_eq!(to_half(read), bits);
                assert_eq!(read.is_sign_negative(), bits >> 15 == 1);
            }
        }
    }

    #[test]
    fn floats_become_the_nearest_half_and_ties_the_even_one() {
        for bits in 0..0x7bffu16 {
            let (low, high) = (from_half(bits), from_half(bits + 1));
            let middle = (low + high) / 2.0;
            let even = if bits & 1 == 0 { bits } else { bits + 1 };
            assert_eq!(to_half(middle), even, "{bits:#x}");
            assert_eq!(to_half(f32::from_bits(middle.to_bits() - 1)), bits);
            assert_eq!(to_half(f32::from_bits(middle.to_bits() + 1)), bits + 1);
        }
        assert_eq!(to_half(65_519.99), 0x7bff);
        assert_eq!(to_half(65_520.0), 0x7c00);
        assert_eq!(to_half(f32::NEG_INFINITY), 0xfc00);
        assert_eq!(to_half(f32::NAN) & 0x7fff, 0x7fff);
    }
}
