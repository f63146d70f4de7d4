//! What a fetch does with each of its lanes, made out once, when the object is made.

use compiler::texture::address_mode;

use crate::exec::texture::sample::steps;
use crate::exec::texture::texel::{HALF, SIGNED_8, SIGNED_16, UNSIGNED_8, UNSIGNED_16};
use crate::exec::texture::{Image, flag};
use crate::jit::Target;

/// How a coordinate becomes elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// It counts them.
    Elements,
    /// A side is 1.
    Side,
    /// A side is 1, and only what is behind the point counts.
    Wrapped,
    /// As before, and every other time backwards.
    Mirrored,
}

/// Which element an index beyond the side means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Edge {
    /// The last one.
    Clamp,
    /// As far back from the side's end; no index is further away than one beyond twice the side.
    Mirror,
    /// The one on the other side.
    Wrap,
    Border,
}

#[derive(Clone, Copy, Debug)]
pub struct Axis {
    pub side: i32,
    /// Bytes from one element to the next along it.
    pub stride: i32,
    pub scale: Scale,
    pub edge: Edge,
    /// A filtered coordinate is clamped to the side first.
    pub clamped: bool,
    /// What normalised coordinates are counted in.
    pub steps: f64,
    /// How much of an element one of them is.
    pub step: f64,
    /// How a normalised coordinate becomes elements in `f32`, where that is exact.
    pub short: Option<Short>,
    /// Coordinates that are not so far from 0 are exact in the vectors' arithmetic.
    pub limit: f32,
}

/// `steps` and `step` of an [`Axis`] whose side is a power of two: a multiplication by either moves the exponent only.
#[derive(Clone, Copy, Debug)]
pub struct Short {
    pub steps: f32,
    pub step: f32,
    /// After so many steps all is the same again; 0 for no number.
    pub period: f32,
    pub per_period: f32,
}

impl Short {
    fn of(side: i32, scale: Scale, steps: f64) -> Option<Short> {
        let sides = match scale {
            Scale::Elements => return None,
            Scale::Side => 0.0,
            Scale::Wrapped => 1.0,
            Scale::Mirrored => 2.0,
        };
        let (steps, period) = (steps as f32, sides * steps as f32);
        // What is left of whole periods are whole numbers below one: floats of 24 bits.
        let is_exact = side.cast_unsigned().is_power_of_two() && steps <= 8_388_608.0;
        let per_period = if period == 0.0 { 0.0 } else { period.recip() };
        is_exact.then_some(Short { steps, step: side as f32 / steps, period, per_period })
    }
}

/// What bits of an element's channel are as bits of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decode {
    Same,
    Half,
    /// Signed integers of 8 or 16 bits.
    Signed,
    /// A fraction of a largest value.
    Fraction,
    SignedFraction,
}

/// Fetches from an object's only level, or from its first.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub data: *const u8,
    /// From `data` to the last element's end.
    pub bytes: i64,
    /// The last one's stride is from one layer to the next, too.
    pub axes: [Axis; 3],
    pub channels: usize,
    pub channel_bytes: u32,
    pub element_bytes: usize,
    pub decode: Decode,
    /// What fractions are fractions of.
    pub largest: f32,
    /// What filtered fractions are counted in, or 0: `Image::parts`.
    pub parts: f64,
    /// What there is in place of an element that a border has taken: its color, or 0.
    pub outside: [u32; 4],
    /// Channels that the format lacks.
    pub missing: [u32; 4],
    pub linear: bool,
    /// Lanes of the widest vectors that the processor has, and that code is made for.
    pub widest: usize,
    /// Elements are `f32`, or as many bits that stay as they are.
    pub is_plain_float: bool,
}

/// Below it, 512 times a coordinate is an `i32`, and so is what a filter takes from that.
const FAR: f32 = 4_194_303.5;

impl Plan {
    /// By coordinates that are `float`, else integers; `None` if vectors cannot do it.
    pub fn of(image: &Image, float: bool) -> Option<Plan> {
        if image.is(flag::CUBE) {
            return None;
        }
        let level = image.level(0);
        let fraction = image.is(flag::NORMALIZED_FLOAT);
        if fraction && image.is(flag::SRGB) && image.format == UNSIGNED_8 {
            return None;
        }
        let sides = [level.width, level.height, level.depth].map(|side| i32::try_from(side.max(1)));
        let [Ok(width), Ok(height), Ok(depth)] = sides else { return None };
        // Offsets are 32 bits wide, and narrow elements are read by the aligned word.
        let whole = level.slice.max(level.pitch.checked_mul(height as u64)?).checked_mul(depth as u64)?;
        let pitch = i32::try_from(level.pitch).ok()?;
        let slice = i32::try_from(level.slice).ok()?;
        let aligned = (level.data as u64 | level.pitch | level.slice).is_multiple_of(4);
        if level.data.is_null() || whole >= 1 << 31 || !aligned {
            return None;
        }
        let element_bytes = image.element_bytes() as i32;
        let sampler = &image.sampler;
        let normalized = sampler.normalized != 0;
        let linear = float && sampler.filter != 0 && image.reads_floats();
        if linear && image.parts().is_some_and(|(parts, made)| parts != made) {
            return None;
        }
        // Outside of the program's own memory, integer coordinates give 0 in all channels.
        let is_empty_outside = !float && image.is(flag::LINEAR);
        let axis = |nth: usize, side: i32, stride: i32| {
            let mut mode = sampler.address[nth];
            if matches!(mode, address_mode::WRAP | address_mode::MIRROR) && (!normalized || !float) {
                mode = address_mode::CLAMP_TO_EDGE;
            }
            let scale = match mode {
                _ if !normalized || !float => Scale::Elements,
                address_mode::WRAP => Scale::Wrapped,
                address_mode::MIRROR => Scale::Mirrored,
                _ => Scale::Side,
            };
            let edge = match mode {
                _ if is_empty_outside => Edge::Border,
                address_mode::WRAP => Edge::Wrap,
                address_mode::MIRROR => Edge::Mirror,
                address_mode::CLAMP_TO_BORDER => Edge::Border,
                address_mode::CLAMP_OGL if linear => Edge::Border,
                _ => Edge::Clamp,
            };
            let limit = if scale == Scale::Side { FAR / side as f32 } else { FAR };
            let clamped = mode == address_mode::CLAMP_OGL;
            let steps = steps(side.cast_unsigned());
            let step = f64::from(side) / steps;
            Axis {
                side,
                stride,
                scale,
                edge,
                clamped,
                steps,
                step,
                short: Short::of(side, scale, steps),
                limit,
            }
        };
        let axes = [axis(0, width, element_bytes), axis(1, height, pitch), axis(2, depth, slice)];
        // Exact as floats.
        if float && axes.iter().any(|axis| axis.side > 1 << 24) {
            return None;
        }
        let (decode, largest) = match image.format {
            HALF => (Decode::Half, 1.0),
            UNSIGNED_8 if fraction => (Decode::Fraction, 255.0),
            UNSIGNED_16 if fraction => (Decode::Fraction, 65_535.0),
            SIGNED_8 if fraction => (Decode::SignedFraction, 127.0),
            SIGNED_16 if fraction => (Decode::SignedFraction, 32_767.0),
            SIGNED_8 | SIGNED_16 => (Decode::Signed, 1.0),
            _ => (Decode::Same, 1.0),
        };
        let channel_bytes = image.channel_bytes() as u32;
        Some(Plan {
            data: level.data,
            bytes: i64::from(element_bytes)
                + axes.iter().map(|axis| i64::from(axis.side - 1) * i64::from(axis.stride)).sum::<i64>(),
            axes,
            channels: image.channels as usize,
            channel_bytes,
            element_bytes: element_bytes as usize,
            decode,
            largest,
            parts: image.parts().map_or(0.0, |(parts, _)| parts),
            outside: if is_empty_outside { [0; 4] } else { image.border(&sampler.border) },
            missing: image.missing(),
            linear,
            widest: widest(),
            is_plain_float: decode == Decode::Same && channel_bytes == 4,
        })
    }
}

/// Lanes of the widest vectors that the processor has.
fn widest() -> usize {
    let has_512 = Target::host().vector_bits >= 512
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512dq");
    if has_512 {
        16
    } else if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
        8
    } else {
        1
    }
}
