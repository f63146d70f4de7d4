//! `suld` and `sust` for a group: what the surface is, is found out once; the lanes follow one after the other, as
//! stores to the same place have to.

use compiler::texture::{Bounds, Geometry};

use super::{Columns, lanes_of};
use crate::exec::texture::surface::{Places, Written, coordinates};
use crate::exec::texture::{Answer, Image, surface_of};

/// The surface that lanes have in turn, and what was made of it.
struct Current<'a, T> {
    handle: u64,
    image: &'a Image,
    made: T,
}

impl<'a, T> Current<'a, T> {
    /// What a lane with this handle has, behind one that had `before`.
    fn of(handle: u64, before: Option<Current<'a, T>>, make: impl Fn(&Image) -> T) -> Answer<Current<'a, T>> {
        if let Some(own) = before.filter(|own| own.handle == handle) {
            return Ok(own);
        }
        let image = surface_of(handle)?;
        Ok(Current { handle, image, made: make(image) })
    }
}

/// # Safety
/// The columns are those of a load, for the lanes in `active`.
pub unsafe fn load(
    columns: Columns,
    active: u64,
    geometry: Geometry,
    bits: u8,
    n: usize,
    bounds: Bounds,
) -> Answer {
    let bytes = usize::from(bits) / 8;
    let make = |image: &Image| Places::new(image, (bytes * n) as i64, 1, bounds);
    let results = 1 + geometry.elements();
    let mut current: Option<Current<Places>> = None;
    for lane in lanes_of(active) {
        // SAFETY: the caller's promise; `Places` found room for all values.
        unsafe {
            let own = Current::of(columns.handle(lane), current.take(), make)?;
            let from = own.made.at(coordinates(geometry, |nth| columns.read(nth, false, lane) as u32))?;
            for nth in 0..n {
                let value = from.map_or(0, |from| read(from.add(nth * bytes), bytes));
                columns.write(results + nth, bits == 64, lane, value);
            }
            current = Some(own);
        }
    }
    Ok(())
}

/// # Safety
/// The columns are those of a store, for the lanes in `active`.
pub unsafe fn store(
    columns: Columns,
    active: u64,
    geometry: Geometry,
    bits: u8,
    n: usize,
    bounds: Bounds,
    formatted: bool,
) -> Answer {
    let make = |image: &Image| {
        let written = Written::of(image, bits, n, formatted);
        (Places::new(image, written.extent, written.scale, bounds), written)
    };
    let first = 1 + geometry.elements();
    let mut current: Option<Current<(Places, Written)>> = None;
    for lane in lanes_of(active) {
        // SAFETY: the caller's promise; `Places` found room for all values.
        unsafe {
            let own = Current::of(columns.handle(lane), current.take(), make)?;
            let (places, Written { bytes, written, .. }) = &own.made;
            let to = places.at(coordinates(geometry, |nth| columns.read(nth, false, lane) as u32))?;
            for nth in 0..if to.is_some() { *written } else { 0 } {
                let value = columns.read(first + nth, bits == 64, lane);
                let value = if formatted { own.image.encoded(value as u32).into() } else { value };
                if let Some(to) = to {
                    write(to.add(nth * bytes), *bytes, value);
                }
            }
            current = Some(own);
        }
    }
    Ok(())
}

/// # Safety
/// So many bytes are there: 1, 2, 4 or 8.
unsafe fn read(from: *const u8, bytes: usize) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => from.read().into(),
            2 => from.cast::<u16>().read_unaligned().into(),
            4 => from.cast::<u32>().read_unaligned().into(),
            _ => from.cast::<u64>().read_unaligned(),
        }
    }
}

/// # Safety
/// As for `read`.
unsafe fn write(to: *mut u8, bytes: usize, value: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => to.write(value as u8),
            2 => to.cast::<u16>().write_unaligned(value as u16),
            4 => to.cast::<u32>().write_unaligned(value as u32),
            _ => to.cast::<u64>().write_unaligned(value),
        }
    }
}
