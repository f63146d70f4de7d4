//! An independent sampler, written from the formulas of the CUDA C++ Programming Guide's appendix "Texture Fetching".

use super::support::Format;
use hip_sys::*;

/// One level of a texture: what its bytes mean, and how it is sampled.
#[derive(Clone)]
pub struct Model {
    pub bytes: Vec<u8>,
    pub format: Format,
    /// Elements in x, y, z. What a dimension lacks is 1.
    pub size: [usize; 3],
    /// How many of the dimensions are coordinates.
    pub dimensions: usize,
    pub desc: HIP_TEXTURE_DESC,
}

impl Model {
    fn is(&self, flag: u32) -> bool {
        self.desc.flags & flag != 0
    }

    pub fn reads_integers(&self) -> bool {
        match self.format.0 {
            HIP_AD_FORMAT_FLOAT | HIP_AD_FORMAT_HALF => false,
            HIP_AD_FORMAT_UNSIGNED_INT32 | HIP_AD_FORMAT_SIGNED_INT32 => true,
            _ => self.is(HIP_TRSF_READ_AS_INTEGER),
        }
    }

    /// The element's channels; missing ones are 0, 0, 1.
    pub fn element(&self, at: [i64; 3]) -> [f64; 4] {
        let [x, y, z] = at.map(|it| it as usize);
        let start = ((z * self.size[1] + y) * self.size[0] + x) * self.format.bytes();
        let mut channels = [0.0, 0.0, 0.0, 1.0];
        let n = self.format.channel_bytes();
        for (nth, channel) in channels.iter_mut().enumerate().take(self.format.1 as usize) {
            *channel = self.channel(&self.bytes[start + nth * n..][..n], nth);
        }
        channels
    }

    fn channel(&self, raw: &[u8], nth: usize) -> f64 {
        let mut wide = [0; 8];
        wide[..raw.len()].copy_from_slice(raw);
        let unsigned = u64::from_le_bytes(wide);
        let bits = 8 * raw.len() as u32;
        let signed = (unsigned << (64 - bits)).cast_signed() >> (64 - bits);
        let fraction = !self.reads_integers();
        let largest = |bits: u32| ((1u64 << bits) - 1) as f64;
        match self.format.0 {
            HIP_AD_FORMAT_FLOAT => f64::from(f32::from_bits(unsigned as u32)),
            HIP_AD_FORMAT_HALF => half(unsigned as u16),
            HIP_AD_FORMAT_UNSIGNED_INT8 | HIP_AD_FORMAT_UNSIGNED_INT16 if fraction => {
                let value = unsigned as f64 / largest(bits);
                if !self.is(HIP_TRSF_SRGB) || bits != 8 || nth == 3 {
                    value
                } else if value <= 0.04045 {
                    value / 12.92
                } else {
                    ((value + 0.055) / 1.055).powf(2.4)
                }
            }
            HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 if fraction => {
                (signed as f64 / largest(bits - 1)).max(-1.0)
            }
            HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT32 => {
                signed as f64
            }
            _ => unsigned as f64,
        }
    }

    fn mode(&self, dimension: usize) -> i32 {
        let mode = self.desc.addressMode[dimension];
        let repeats = mode == hipAddressModeWrap || mode == hipAddressModeMirror;
        if repeats && !self.is(HIP_TRSF_NORMALIZED_COORDINATES) { hipAddressModeClamp } else { mode }
    }

    /// T[i] for any i, in one dimension: `None` is the border.
    fn extended(&self, dimension: usize, i: i64) -> Option<i64> {
        let n = self.size[dimension] as i64;
        match self.mode(dimension) {
            hipAddressModeWrap => Some(((i % n) + n) % n),
            hipAddressModeMirror => {
                let mut i = i;
                // Reflected until it is inside.
                while !(0..n).contains(&i) {
                    i = if i < 0 { -1 - i } else { 2 * n - 1 - i };
                }
                Some(i)
            }
            hipAddressModeBorder if !(0..n).contains(&i) => None,
            _ => Some(i.max(0).min(n - 1)),
        }
    }

    /// x in elements, by the guide's rules for coordinates.
    fn scaled(&self, dimension: usize, x: f64) -> f64 {
        let n = self.size[dimension] as f64;
        if !self.is(HIP_TRSF_NORMALIZED_COORDINATES) {
            return x;
        }
        let frac = x - x.floor();
        n * match self.mode(dimension) {
            hipAddressModeWrap => frac,
            hipAddressModeMirror if x.floor() % 2.0 == 0.0 => frac,
            hipAddressModeMirror => 1.0 - frac,
            _ => x,
        }
    }

    fn at(&self, index: [i64; 3], slice: i64, offset: [i64; 3]) -> [f64; 4] {
        let mut at = [0, 0, slice];
        for nth in 0..self.dimensions {
            match self.extended(nth, index[nth] + offset[nth]) {
                Some(i) => at[nth] = i,
                None => {
                    let mut border = [0.0, 0.0, 0.0, 1.0];
                    let colors = self.desc.borderColor.iter().take(self.format.1 as usize);
                    for (channel, color) in border.iter_mut().zip(colors) {
                        *channel = f64::from(*color);
                    }
                    return border;
                }
            }
        }
        self.element(at)
    }

    /// The fetch at `x`; `slice` is the layer.
    pub fn fetch(&self, x: [f64; 3], slice: i64, offset: [i64; 3]) -> [f64; 4] {
        if self.desc.filterMode == hipFilterModeLinear && !self.reads_integers() {
            let mut index = [0; 3];
            self.interpolate(x, slice, offset, 0, &mut index)
        } else {
            let index = std::array::from_fn(|nth| {
                if nth < self.dimensions { self.scaled(nth, x[nth]).floor() as i64 } else { 0 }
            });
            self.at(index, slice, offset)
        }
    }

    /// (1 - α) T[i] + α T[i + 1], dimension by dimension.
    fn interpolate(
        &self,
        x: [f64; 3],
        slice: i64,
        offset: [i64; 3],
        dimension: usize,
        index: &mut [i64; 3],
    ) -> [f64; 4] {
        if dimension == self.dimensions {
            return self.at(*index, slice, offset);
        }
        let (i, alpha) = self.foot(dimension, x[dimension]);
        let mut sum = [0.0; 4];
        for (step, weight) in [(0, 1.0 - alpha), (1, alpha)] {
            index[dimension] = i + step;
            let part = self.interpolate(x, slice, offset, dimension + 1, index);
            for nth in 0..4 {
                sum[nth] += weight * part[nth];
            }
        }
        sum
    }

    /// i = floor(xB), α = frac(xB) in 8 fractional bits, xB = x - 0.5.
    fn foot(&self, dimension: usize, x: f64) -> (i64, f64) {
        let xb = self.scaled(dimension, x) - 0.5;
        let alpha = ((xb - xb.floor()) * 256.0 + 0.5).floor() / 256.0;
        (xb.floor() as i64, alpha)
    }

    /// The four elements that a 2-D filter would mix, from the lower left, counter-clockwise.
    pub fn gather(&self, x: [f64; 2], slice: i64, offset: [i64; 3], component: usize) -> [f64; 4] {
        let foot = |dimension: usize| {
            let (i, alpha) = self.foot(dimension, x[dimension]);
            // A weight of 1 is the next element's weight of 0.
            if alpha == 1.0 { i + 1 } else { i }
        };
        let (i, j) = (foot(0), foot(1));
        [[0, 1], [1, 1], [1, 0], [0, 0]]
            .map(|[dx, dy]| self.at([i + dx, j + dy, 0], slice, offset)[component])
    }
}

/// A half's value by its definition.
pub fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = if exponent == 0 {
        fraction * 2f64.powi(-24)
    } else {
        (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15)
    };
    if bits >> 15 == 1 { -magnitude } else { magnitude }
}

/// The guide's table of cubemap faces: face and coordinates.
pub fn face([x, y, z]: [f64; 3]) -> (i64, [f64; 2]) {
    let (face, m, s, t) = if x.abs() > y.abs() && x.abs() > z.abs() {
        if x >= 0.0 { (0, x, -z, -y) } else { (1, -x, z, -y) }
    } else if y.abs() > x.abs() && y.abs() > z.abs() {
        if y >= 0.0 { (2, y, x, z) } else { (3, -y, x, -z) }
    } else if z >= 0.0 {
        (4, z, x, -y)
    } else {
        (5, -z, -x, -y)
    };
    (face, [(s / m + 1.0) / 2.0, (t / m + 1.0) / 2.0])
}
