//! An independent sampler, written from the formulas of the CUDA C++ Programming Guide's appendix "Texture Fetching", and where that leaves
//! open how much of a coordinate and of a weight is kept, from what an H200 gave (`tools/on-nvidia`).

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
    /// By the guide's formulas alone, with weights of 8 bits, of whose products all is kept: as AMD's ISA documents have it, not as an H200.
    pub is_exact: bool,
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

    /// x in elements, by the guide's rules for coordinates: N·frac(x), or for mirrored ones N·frac(x) and N·(1 - frac(x)) by turns, which is
    /// the same as elements that go on backwards. Of x, 21 bits behind the point are kept, or 8 more than numbers of elements have.
    fn scaled(&self, dimension: usize, x: f64) -> f64 {
        let n = self.size[dimension] as f64;
        if !self.is(HIP_TRSF_NORMALIZED_COORDINATES) {
            return x;
        }
        let units = 2f64.powf((n.log2().ceil() + 8.0).max(21.0));
        let x = if self.is_exact { x } else { (x * units).floor() / units };
        n * match self.mode(dimension) {
            hipAddressModeWrap => x.rem_euclid(1.0),
            hipAddressModeMirror => x.rem_euclid(2.0),
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
            self.interpolate(x, slice, offset)
        } else {
            let index = std::array::from_fn(|nth| {
                if nth < self.dimensions { self.scaled(nth, x[nth]).floor() as i64 } else { 0 }
            });
            self.at(index, slice, offset)
        }
    }

    /// What an H200 counts fractions in when it filters them, 16 bits whatever the element has.
    fn parts(&self) -> Option<f64> {
        match self.format.0 {
            _ if self.reads_integers() || self.is(HIP_TRSF_SRGB) => None,
            HIP_AD_FORMAT_UNSIGNED_INT8 | HIP_AD_FORMAT_UNSIGNED_INT16 => Some(65_535.0),
            HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 => Some(32_767.0),
            _ => None,
        }
    }

    /// Σ w T[i, j, k]. With α, β and γ in 256ths, what is behind in z and x has γα, that and behind in y has γαβ, each rounded to 256ths, ties
    /// up; what is in front has what is missing to γ and so on, but in front in x it is the one in front in y that is rounded.
    fn interpolate(&self, x: [f64; 3], slice: i64, offset: [i64; 3]) -> [f64; 4] {
        let feet: [(i64, f64); 3] =
            std::array::from_fn(|nth| if nth < self.dimensions { self.foot(nth, x[nth]) } else { (0, 0.0) });
        if self.is_exact {
            return self.mixed(feet, slice, offset);
        }
        let [alpha, beta, gamma] = feet.map(|(_, alpha)| 256.0 * alpha);
        let share = |of: f64, part: f64| (of * part / 256.0 + 0.5).floor();
        let mut sum = [0.0; 4];
        for corner in 0..8 {
            let [behind_x, behind_y, behind_z] = [0, 1, 2].map(|nth| corner >> nth & 1);
            let plane = if behind_z == 1 { gamma } else { 256.0 - gamma };
            let column = if behind_x == 1 { share(plane, alpha) } else { plane - share(plane, alpha) };
            let weight = match (behind_x, behind_y) {
                (1, 1) => share(column, beta),
                (1, _) => column - share(column, beta),
                (_, 0) => share(column, 256.0 - beta),
                _ => column - share(column, 256.0 - beta),
            };
            if weight > 0.0 {
                let index = std::array::from_fn(|nth| feet[nth].0 + (corner >> nth & 1));
                let element = self.at(index, slice, offset);
                let value = |value: f64| match self.parts() {
                    None => value,
                    // 8 bits more are made of the sum.
                    Some(_) if self.format.0 == HIP_AD_FORMAT_SIGNED_INT8 => (value * 127.0 + 0.5).floor(),
                    Some(parts) => (value * parts + 0.5).floor(),
                };
                sum.iter_mut().zip(element).for_each(|(sum, it)| *sum += weight / 256.0 * value(it));
            }
        }
        match self.parts() {
            // Ties up.
            Some(parts) if self.format.0 == HIP_AD_FORMAT_SIGNED_INT8 => {
                sum.map(|sum| (sum * parts / 127.0 + 0.5).floor() / parts)
            }
            Some(parts) => sum.map(|sum| (sum + 0.5).floor() / parts),
            None => sum,
        }
    }

    /// The guide's sum, of which nothing is rounded.
    fn mixed(&self, feet: [(i64, f64); 3], slice: i64, offset: [i64; 3]) -> [f64; 4] {
        let mut sum = [0.0; 4];
        for corner in 0..8 {
            let behind = [0, 1, 2].map(|nth| corner >> nth & 1);
            let weights =
                behind.iter().zip(feet).map(|(it, (_, alpha))| if *it == 1 { alpha } else { 1.0 - alpha });
            let weight: f64 = weights.product();
            if weight > 0.0 {
                let element = self.at(std::array::from_fn(|nth| feet[nth].0 + behind[nth]), slice, offset);
                sum.iter_mut().zip(element).for_each(|(sum, it)| *sum += weight * it);
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
