//! Formats, numbers and comparisons.

use hip_sys::*;

#[derive(Clone, Copy, Debug)]
pub struct Format(pub hipArray_Format, pub u32);

impl Format {
    pub fn channel_bytes(self) -> usize {
        match self.0 {
            HIP_AD_FORMAT_UNSIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT8 => 1,
            HIP_AD_FORMAT_UNSIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_HALF => 2,
            _ => 4,
        }
    }

    pub fn bytes(self) -> usize {
        self.channel_bytes() * self.1 as usize
    }

    pub fn is_signed(self) -> bool {
        matches!(self.0, HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT32)
    }
}

/// The same numbers in every run.
pub struct Numbers(pub u64);

impl Numbers {
    pub fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as u32
    }

    /// In [low, high); no multiple of a 16th, where a mirrored axis could go either way.
    pub fn between(&mut self, low: f32, high: f32) -> f32 {
        let x = low + (high - low) * (self.next() as f32 / (1u64 << 31) as f32);
        if (x * 16.0).fract() == 0.0 { x + 0.004 } else { x }
    }
}

/// Small finite numbers for floats, all values for integers.
pub fn contents(format: Format, n_elements: usize) -> Vec<u8> {
    let mut numbers = Numbers(7 + n_elements as u64);
    let mut bytes = vec![];
    for _ in 0..n_elements * format.1 as usize {
        let number = numbers.next();
        match format.0 {
            HIP_AD_FORMAT_FLOAT => bytes.extend((number as f32 / (1u32 << 28) as f32 - 4.0).to_le_bytes()),
            // Exponents below infinity's.
            HIP_AD_FORMAT_HALF => bytes.extend((number as u16 & 0xbbff).to_le_bytes()),
            _ => bytes.extend(&(number ^ number.rotate_left(9)).to_le_bytes()[..format.channel_bytes()]),
        }
    }
    bytes
}
