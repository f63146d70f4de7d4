//! `suld`, `sust`, `sured`: elements of an array by their place, in bytes or in elements.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use compiler::texture::{Bounds, Geometry, MAX_WORDS, ReduceOp};

use super::texel::{SIGNED_8, SIGNED_16, SIGNED_32};
use super::{Answer, Fault, Image, surface_of};

/// An image as accesses of one size find their places in it.
pub struct Places {
    data: *mut u8,
    /// Bytes from one to the next, by dimension.
    strides: [i64; 3],
    /// The last place of each dimension, in bytes and elements.
    most: [i64; 3],
    bytes: i64,
    /// Bytes that a step of the first coordinate is.
    scale: i64,
    bounds: Bounds,
}

impl Places {
    /// For accesses to `bytes` bytes.
    pub fn new(image: &Image, bytes: i64, scale: i64, bounds: Bounds) -> Places {
        let level = image.level(0);
        let row = i64::from(level.width) * image.element_bytes() as i64;
        let most = [row - bytes, i64::from(level.height.max(1)) - 1, i64::from(level.depth.max(1)) - 1];
        let strides = [1, level.pitch as i64, level.slice as i64];
        Places { data: level.data, strides, most, bytes, scale, bounds }
    }

    /// The place that coordinates lead to; `None` where the access has no effect.
    pub fn at(&self, [x, y, z]: [i64; 3]) -> Answer<Option<*mut u8>> {
        let most = &self.most;
        let at = [x * self.scale, y, z];
        let inside = at.iter().zip(most).all(|(&at, &most)| (0..=most).contains(&at));
        let at = match self.bounds {
            _ if inside => at,
            Bounds::Trap => return Err(Fault::Trap),
            Bounds::Zero => return Ok(None),
            // Rows shorter than the access have no place for it.
            Bounds::Clamp if most[0] < 0 => return Ok(None),
            Bounds::Clamp => std::array::from_fn(|nth| at[nth].clamp(0, most[nth])),
        };
        // PTX: the access may proceed by masking off low-order address bits.
        let x = at[0] & !(self.bytes - 1);
        let offset = at[2] * self.strides[2] + at[1] * self.strides[1] + x;
        // SAFETY: inside of the level, as checked.
        Ok(Some(unsafe { self.data.add(offset as usize) }))
    }
}

/// The coordinates among an access's arguments, of which `argument` gives the low half.
pub fn coordinates(geometry: Geometry, argument: impl Fn(usize) -> u32) -> [i64; 3] {
    let layered = geometry.indices();
    let coordinate = |nth: usize| match nth < geometry.coordinates() {
        true => i64::from(argument(1 + layered + nth).cast_signed()),
        false => 0,
    };
    // PTX: the layer is unsigned.
    let z = if layered == 1 { i64::from(argument(1)) } else { coordinate(2) };
    [coordinate(0), coordinate(1), z]
}

fn place(
    image: &Image,
    words: &[u64; MAX_WORDS],
    geometry: Geometry,
    bytes: i64,
    scale: i64,
    bounds: Bounds,
) -> Answer<Option<*mut u8>> {
    Places::new(image, bytes, scale, bounds).at(coordinates(geometry, |nth| words[nth] as u32))
}

pub fn load(
    words: &mut [u64; MAX_WORDS],
    geometry: Geometry,
    bits: u8,
    lanes: usize,
    bounds: Bounds,
) -> Answer {
    let image = surface_of(words[0])?;
    let bytes = usize::from(bits) / 8;
    let from = place(image, words, geometry, (bytes * lanes) as i64, 1, bounds)?;
    for (nth, word) in words.iter_mut().enumerate().take(lanes) {
        let mut value = [0u8; 8];
        if let Some(from) = from {
            // SAFETY: `place` found room for all lanes.
            unsafe { from.add(nth * bytes).copy_to_nonoverlapping(value.as_mut_ptr(), bytes.min(8)) }
        }
        *word = u64::from_le_bytes(value);
    }
    Ok(())
}

/// What a store writes.
pub struct Written {
    /// Of each value.
    pub bytes: usize,
    /// How many values.
    pub written: usize,
    /// All bytes that have to be inside.
    pub extent: i64,
    /// Bytes that a step of the first coordinate is.
    pub scale: i64,
}

impl Written {
    pub fn of(image: &Image, bits: u8, lanes: usize, formatted: bool) -> Written {
        if formatted {
            let scale = image.element_bytes() as i64;
            // Values that the element has no channel for are dropped.
            let written = lanes.min(image.channels as usize);
            return Written { bytes: image.channel_bytes() as usize, written, extent: scale, scale };
        }
        let bytes = usize::from(bits) / 8;
        Written { bytes, written: lanes, extent: (bytes * lanes) as i64, scale: 1 }
    }
}

pub fn store(
    words: &mut [u64; MAX_WORDS],
    geometry: Geometry,
    bits: u8,
    lanes: usize,
    bounds: Bounds,
    formatted: bool,
) -> Answer {
    let image = surface_of(words[0])?;
    let first = 1 + geometry.elements();
    let Written { bytes, written, extent, scale } = Written::of(image, bits, lanes, formatted);
    let Some(to) = place(image, words, geometry, extent, scale, bounds)? else { return Ok(()) };
    for nth in 0..written {
        let word = words.get(first + nth).copied().unwrap_or(0);
        let value = if formatted { image.encoded(word as u32).into() } else { word };
        let value = value.to_le_bytes();
        // SAFETY: `place` found room for all lanes.
        unsafe { to.add(nth * bytes).copy_from_nonoverlapping(value.as_ptr(), bytes.min(8)) }
    }
    Ok(())
}

pub fn reduce(
    words: &mut [u64; MAX_WORDS],
    geometry: Geometry,
    op: ReduceOp,
    bits: u8,
    signed: bool,
    bounds: Bounds,
    formatted: bool,
) -> Answer {
    let image = surface_of(words[0])?;
    let value = words.get(1 + geometry.elements()).copied().unwrap_or(0);
    // PTX: by sample, the surface's format says what the numbers are.
    let signed = match formatted {
        true => matches!(image.format, SIGNED_8 | SIGNED_16 | SIGNED_32),
        false => signed,
    };
    let scale = if formatted { image.element_bytes() as i64 } else { 1 };
    let Some(at) = place(image, words, geometry, i64::from(bits) / 8, scale, bounds)? else { return Ok(()) };
    // SAFETY: inside of the level, and `place` aligned it; other threads reach it through atomics too.
    unsafe {
        match (bits, signed) {
            (32, false) => apply(&*at.cast::<AtomicU32>(), op, value as u32),
            (32, true) => apply(&*at.cast::<AtomicI32>(), op, value as u32 as i32),
            (_, false) => apply(&*at.cast::<AtomicU64>(), op, value),
            (_, true) => apply(&*at.cast::<AtomicI64>(), op, value as i64),
        }
    }
    Ok(())
}

/// The atomics' common operations.
trait Reduce<T> {
    fn change(&self, op: ReduceOp, value: T);
}

macro_rules! reduce {
    ($($atomic:ty: $int:ty,)*) => {
        $(impl Reduce<$int> for $atomic {
            fn change(&self, op: ReduceOp, value: $int) {
                let order = Ordering::Relaxed;
                match op {
                    ReduceOp::Add => self.fetch_add(value, order),
                    ReduceOp::Min => self.fetch_min(value, order),
                    ReduceOp::Max => self.fetch_max(value, order),
                    ReduceOp::And => self.fetch_and(value, order),
                    ReduceOp::Or => self.fetch_or(value, order),
                };
            }
        })*
    };
}

reduce! { AtomicU32: u32, AtomicI32: i32, AtomicU64: u64, AtomicI64: i64, }

fn apply<T>(place: &impl Reduce<T>, op: ReduceOp, value: T) {
    place.change(op, value);
}
