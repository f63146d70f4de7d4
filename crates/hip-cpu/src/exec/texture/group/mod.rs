//! Textures and surfaces for the lanes of a group at once.
//!
//! The common fetches are vector code, once for all lanes with the same texture; the rest is done lane by lane.

mod element;
mod fetch;
mod filter;
mod plan;
mod surface;
#[cfg(test)]
mod tests;
mod vector;

use compiler::texture::{Access, Geometry, Level, MAX_LANES, MAX_WORDS, Texel, column, group};

pub use plan::Plan;

use super::{Answer, Fault, Image, run, status, texture};
use crate::exec::Launch;
use fetch::{Lanes, by_eight, by_sixteen};

/// Arguments and results of a group's access, lane by lane.
#[derive(Clone, Copy)]
struct Columns {
    at: *mut u8,
    lanes: usize,
    /// All lanes have the first one's handle.
    one_handle: bool,
}

impl Columns {
    /// A column of 32-bit items.
    ///
    /// # Safety
    /// The access has that many columns.
    unsafe fn items(self, nth: usize) -> *mut u32 {
        // SAFETY: the caller's promise.
        unsafe { self.at.add(column(nth, self.lanes)).cast() }
    }

    /// # Safety
    /// The lane is one of the group's.
    unsafe fn handle(self, lane: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe { self.read(0, true, if self.one_handle { 0 } else { lane }) }
    }

    /// Whether all lanes have this handle.
    ///
    /// # Safety
    /// The first column is the handles'.
    unsafe fn is_same(self, handle: u64) -> bool {
        // SAFETY: the caller's promise.
        let handles = unsafe { std::slice::from_raw_parts(self.at.cast::<u64>(), self.lanes) };
        handles.iter().fold(0, |all, own| all | own ^ handle) == 0
    }

    /// A fetch's coordinates, and where its results belong.
    ///
    /// # Safety
    /// The columns are such a fetch's.
    unsafe fn fetched(self, geometry: Geometry, float: bool, level: Level) -> Lanes {
        let first = 1 + geometry.indices();
        let results = match level {
            Level::Base => first + geometry.coordinates(),
            Level::Explicit | Level::Gradient => words_of(geometry, float, level).arguments(),
        };
        // SAFETY: the caller's promise.
        unsafe {
            Lanes {
                n: self.lanes,
                layer: geometry.is_layered().then_some(self.items(1).cast_const()),
                coordinates: self.items(first),
                step: 2 * self.lanes,
                results: self.items(results),
                results_step: 2 * self.lanes,
            }
        }
    }

    /// # Safety
    /// The access has that many columns, and the lane is one of the group's.
    unsafe fn read(self, nth: usize, wide: bool, lane: usize) -> u64 {
        // SAFETY: the caller's promise.
        unsafe {
            let column = self.at.add(column(nth, self.lanes));
            if wide { *column.cast::<u64>().add(lane) } else { u64::from(*column.cast::<u32>().add(lane)) }
        }
    }

    /// # Safety
    /// As for `read`.
    unsafe fn write(self, nth: usize, wide: bool, lane: usize, value: u64) {
        // SAFETY: the caller's promise.
        unsafe {
            let column = self.at.add(column(nth, self.lanes));
            if wide {
                *column.cast::<u64>().add(lane) = value;
            } else {
                *column.cast::<u32>().add(lane) = value as u32;
            }
        }
    }
}

/// Some lane is active.
fn first_of(active: u64) -> usize {
    active.trailing_zeros() as usize & 63
}

/// The lanes of a mask, lowest first.
fn lanes_of(mut active: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = active.trailing_zeros() as usize;
        active &= active.wrapping_sub(1);
        (lane < 64).then_some(lane)
    })
}

/// The service for a group.
///
/// # Safety
/// `code` is an [`Access::code`], and `columns` has its arguments and room for its results, as `group` says.
pub unsafe extern "C" fn access_group(
    _: *const Launch,
    code: u64,
    columns: *mut u8,
    active: u64,
    group: u32,
) -> i32 {
    let columns = Columns {
        at: columns,
        lanes: (group & group::LANES) as usize,
        one_handle: group & group::ONE_HANDLE != 0,
    };
    debug_assert!(columns.lanes <= MAX_LANES);
    // Code that no lane runs may have come here all the same, with anything for a handle.
    if active == 0 {
        return 0;
    }
    // SAFETY: the caller's promise.
    let done = unsafe {
        match Access::plain_fetch(code) {
            Some((geometry, float)) => fetch(columns, active, geometry, float, Level::Base),
            None => other(code, columns, active),
        }
    };
    match done {
        Ok(()) => 0,
        Err(fault) => status(&fault),
    }
}

/// # Safety
/// As for [`access_group`].
#[inline(never)]
unsafe fn other(code: u64, columns: Columns, active: u64) -> Answer {
    let Some(access) = Access::of_code(code) else { return Err(Fault::Trap) };
    // SAFETY: the caller's promise.
    unsafe {
        match access {
            Access::Fetch {
                geometry,
                float,
                level,
                texel: Texel::Words,
                sampler: false,
                offset: false,
                compare: false,
            } if !geometry.is_cube() && !geometry.is_multisample() => {
                fetch(columns, active, geometry, float, level)
            }
            Access::Load { geometry, bits, lanes, bounds } => {
                surface::load(columns, active, geometry, bits, lanes.into(), bounds)
            }
            Access::Store { geometry, bits, lanes, bounds, formatted } => {
                surface::store(columns, active, geometry, bits, lanes.into(), bounds, formatted)
            }
            access => one_by_one(access, columns, active),
        }
    }
}

/// A fetch without more than coordinates and perhaps a level: vectors do what they can, the rest is done lane by lane.
///
/// # Safety
/// As for [`access_group`].
unsafe fn fetch(columns: Columns, active: u64, geometry: Geometry, float: bool, level: Level) -> Answer {
    // SAFETY: the caller's promise.
    unsafe {
        let handle = columns.handle(first_of(active));
        if !columns.one_handle && !columns.is_same(handle) {
            return fetch_from_several(columns, active, geometry, float, level);
        }
        let left = match planned(texture(handle)?, float, level) {
            Some(plan) => {
                let lanes = columns.fetched(geometry, float, level);
                active & sampled(plan, geometry.coordinates(), float, &lanes)
            }
            None => active,
        };
        if left == 0 { Ok(()) } else { one_by_one(words_of(geometry, float, level), columns, left) }
    }
}

/// The access that [`fetch`] is.
fn words_of(geometry: Geometry, float: bool, level: Level) -> Access {
    Access::Fetch {
        geometry,
        float,
        level,
        texel: Texel::Words,
        sampler: false,
        offset: false,
        compare: false,
    }
}

/// [`fetch`] from textures of which lanes have different ones.
///
/// # Safety
/// As for [`access_group`].
#[inline(never)]
unsafe fn fetch_from_several(
    columns: Columns,
    active: u64,
    geometry: Geometry,
    float: bool,
    level: Level,
) -> Answer {
    let access = words_of(geometry, float, level);
    // SAFETY: the caller's promise.
    unsafe {
        let mut lanes = columns.fetched(geometry, float, level);
        let (mut waiting, mut left) = (active, 0);
        while waiting != 0 {
            let handle = columns.handle(first_of(waiting));
            let is_own = |&lane: &usize| columns.handle(lane) == handle;
            let own = lanes_of(waiting).filter(is_own).fold(0, |own, lane| own | 1 << lane);
            waiting &= !own;
            let Some(plan) = planned(texture(handle)?, float, level) else {
                left |= own;
                continue;
            };
            let mut all = [[0u32; MAX_LANES]; 4];
            (lanes.results, lanes.results_step) = (all.as_mut_ptr().cast(), MAX_LANES);
            left |= own & sampled(plan, geometry.coordinates(), float, &lanes);
            for lane in lanes_of(own) {
                for (nth, items) in all.iter().enumerate() {
                    columns.write(access.arguments() + nth, false, lane, items[lane].into());
                }
            }
        }
        one_by_one(access, columns, left)
    }
}

fn planned(image: &Image, float: bool, level: Level) -> Option<&Plan> {
    let first = level == Level::Base || image.n_levels <= 1;
    if first { image.plans[usize::from(float)].as_ref() } else { None }
}

/// Fetches for all lanes, and answers those that it is nothing for.
///
/// # Safety
/// The plan's memory and the lanes' are there.
unsafe fn sampled(plan: &Plan, dimensions: usize, float: bool, lanes: &Lanes) -> u64 {
    // Columns have room for twice as many items as there are lanes.
    // SAFETY: the processor was asked; the rest is the caller's promise.
    unsafe {
        if lanes.n >= 8 && plan.widest == 16 {
            by_sixteen::fetch(plan, dimensions, float, lanes)
        } else if lanes.n >= 4 && plan.widest >= 8 {
            by_eight::fetch(plan, dimensions, float, lanes)
        } else {
            fetch::one_by_one::fetch(plan, dimensions, float, lanes)
        }
    }
}

/// A plain fetch of one lane, of arguments and results in words; `None` where `sample` has to do it.
pub fn fetch_one(geometry: Geometry, float: bool, words: &mut [u64; MAX_WORDS]) -> Answer<Option<()>> {
    let Some(plan) = planned(texture(words[0])?, float, Level::Base) else { return Ok(None) };
    let at = words.as_mut_ptr().cast::<u32>();
    let first = 1 + geometry.indices();
    let mut results = [0u32; 4];
    // SAFETY: words are two items each, of which the first is the low half; results are apart.
    let left = unsafe {
        let lanes = Lanes {
            n: 1,
            layer: geometry.is_layered().then_some(at.add(2).cast_const()),
            coordinates: at.add(2 * first),
            step: 2,
            results: results.as_mut_ptr(),
            results_step: 1,
        };
        fetch::one_by_one::fetch(plan, geometry.coordinates(), float, &lanes)
    };
    if left != 0 {
        return Ok(None);
    }
    for (word, result) in words.iter_mut().zip(results) {
        *word = result.into();
    }
    Ok(Some(()))
}

/// # Safety
/// As for [`access_group`].
unsafe fn one_by_one(access: Access, columns: Columns, active: u64) -> Answer {
    let n_arguments = access.arguments();
    let n_results = access.n_results();
    let wide = access.has_wide_results();
    for lane in lanes_of(active) {
        let mut words = [0; MAX_WORDS];
        for (nth, word) in words.iter_mut().enumerate().take(n_arguments) {
            // SAFETY: the caller's promise.
            *word = unsafe {
                match nth {
                    0 => columns.handle(lane),
                    _ => columns.read(nth, access.is_wide_argument(nth), lane),
                }
            };
        }
        run(access, &mut words)?;
        for (nth, word) in words.iter().enumerate().take(n_results) {
            // SAFETY: the caller's promise.
            unsafe { columns.write(n_arguments + nth, wide, lane, *word) };
        }
    }
    Ok(())
}
