//! `suld`, `sust`, `sured`: elements of an array by their place, in bytes or in elements.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU32, AtomicU64, Ordering};

use compiler::texture::{Bounds, Geometry, MAX_WORDS, ReduceOp};

use super::texel::{SIGNED_8, SIGNED_16, SIGNED_32};
use super::{Answer, Fault, Image, integer, surface_of};

/// The place of `bytes` bytes; `None` where the access has no effect.
fn place(
    image: &Image,
    words: &[u64; MAX_WORDS],
    geometry: Geometry,
    bytes: i64,
    scale: i64,
    bounds: Bounds,
) -> Answer<Option<*mut u8>> {
    let level = image.level(0);
    let layered = geometry.indices();
    let coordinate = |nth: usize| match nth < geometry.coordinates() {
        true => i64::from(integer(words[1 + layered + nth])),
        false => 0,
    };
    // PTX: the layer is unsigned.
    let z = if layered == 1 { i64::from(words[1] as u32) } else { coordinate(2) };
    let row = i64::from(level.width) * image.element_bytes() as i64;
    let at = [coordinate(0) * scale, coordinate(1), z];
    let most = [row - bytes, i64::from(level.height.max(1)) - 1, i64::from(level.depth.max(1)) - 1];
    let inside = at.iter().zip(&most).all(|(&at, &most)| (0..=most).contains(&at));
    let at = match bounds {
        _ if inside => at,
        Bounds::Trap => return Err(Fault::Trap),
        Bounds::Zero => return Ok(None),
        // Rows shorter than the access have no place for it.
        Bounds::Clamp if most[0] < 0 => return Ok(None),
        Bounds::Clamp => std::array::from_fn(|nth| at[nth].clamp(0, most[nth])),
    };
    // PTX: the access may proceed by masking off low-order address bits.
    let x = at[0] & !(bytes - 1);
    let offset = at[2] * level.slice as i64 + at[1] * level.pitch as i64 + x;
    // SAFETY: inside of the level, as checked.
    Ok(Some(unsafe { level.data.add(offset as usize) }))
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
    let (bytes, written, scale) = if formatted {
        // Values that the element has no channel for are dropped.
        (image.channel_bytes() as usize, lanes.min(image.channels as usize), image.element_bytes() as i64)
    } else {
        (usize::from(bits) / 8, lanes, 1)
    };
    let extent = if formatted { scale } else { (bytes * lanes) as i64 };
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
