//! Textures and surfaces for the lanes of a group at once.
//!
//! The common fetches are vector code, once for all lanes with the same texture; the rest is done lane by lane.

mod fetch;
mod plan;
mod vector;
#[cfg(test)]
mod tests;

use compiler::texture::{Access, Geometry, Level, MAX_LANES, MAX_WORDS, Texel, column};

use super::{Answer, Image, run, status, texture};
use crate::exec::Launch;
use fetch::Lanes;
use plan::Plan;
use vector::{Avx2, Avx512, One};

/// Arguments and results of a group's access, lane by lane.
#[derive(Clone, Copy)]
struct Columns {
    at: *mut u8,
    lanes: usize,
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
/// `code` is an [`Access::code`], and `columns` has its arguments and room for its results, for `lanes` lanes each.
pub unsafe extern "C" fn access_group(
    _: *const Launch,
    code: u64,
    columns: *mut u8,
    active: u64,
    lanes: u32,
) -> i32 {
    let Some(access) = Access::of_code(code) else { return -1 };
    let columns = Columns { at: columns, lanes: lanes as usize };
    debug_assert!(columns.lanes <= MAX_LANES);
    // SAFETY: the caller's promise.
    let done = unsafe {
        match fetch(access, columns, active) {
            Ok(0) => Ok(()),
            Ok(left) => one_by_one(access, columns, left),
            Err(fault) => Err(fault),
        }
    };
    match done {
        Ok(()) => 0,
        Err(fault) => status(&fault),
    }
}

/// Does what vectors can do, and answers the lanes that are left.
///
/// # Safety
/// As for [`access_group`].
unsafe fn fetch(access: Access, columns: Columns, active: u64) -> Answer<u64> {
    let Access::Fetch { geometry, float, level, texel: Texel::Words, sampler: false, offset: false, compare: false } =
        access
    else {
        return Ok(active);
    };
    // SAFETY: the caller's promise.
    let handles = unsafe { std::slice::from_raw_parts(columns.at.cast::<u64>(), columns.lanes) };
    let first = handles[active.trailing_zeros() as usize % columns.lanes];
    let results = access.arguments();
    if handles.iter().fold(0, |all, handle| all | handle ^ first) == 0 {
        let image = texture(first)?;
        // SAFETY: the caller's promise.
        let to = unsafe { std::array::from_fn(|nth| columns.items(results + nth)) };
        return Ok(match planned(image, geometry, float, level) {
            // SAFETY: the caller's promise.
            Some(plan) => active & unsafe { sampled(&plan, geometry, float, columns, to) },
            None => active,
        });
    }
    let (mut waiting, mut left) = (active, 0);
    while waiting != 0 {
        let handle = handles[waiting.trailing_zeros() as usize];
        let own = lanes_of(waiting).filter(|&lane| handles[lane] == handle).fold(0, |own, lane| own | 1 << lane);
        waiting &= !own;
        let Some(plan) = planned(texture(handle)?, geometry, float, level) else {
            left |= own;
            continue;
        };
        let mut all = [[0u32; MAX_LANES]; 4];
        let to = all.each_mut().map(|items| items.as_mut_ptr());
        // SAFETY: the caller's promise.
        left |= own & unsafe { sampled(&plan, geometry, float, columns, to) };
        for lane in lanes_of(own) {
            for (nth, items) in all.iter().enumerate() {
                // SAFETY: the caller's promise.
                unsafe { columns.write(results + nth, false, lane, items[lane].into()) };
            }
        }
    }
    Ok(left)
}

fn planned(image: &Image, geometry: Geometry, float: bool, level: Level) -> Option<Plan> {
    let first = level == Level::Base || image.n_levels <= 1;
    if first { Plan::of(image, geometry, float) } else { None }
}

/// Fetches for all lanes into `to`, and answers those that it is nothing for.
///
/// # Safety
/// As for [`access_group`], and `to` has room for as many items, and for a vector at least.
unsafe fn sampled(plan: &Plan, geometry: Geometry, float: bool, columns: Columns, to: [*mut u32; 4]) -> u64 {
    let first = 1 + geometry.indices();
    // SAFETY: the caller's promise.
    let lanes = unsafe {
        Lanes {
            n: columns.lanes,
            layer: columns.items(1),
            coordinates: std::array::from_fn(|nth| columns.items(first + nth).cast_const()),
            results: to,
        }
    };
    // Columns have room for twice as many items as there are lanes.
    // SAFETY: the processor was asked; the rest is the caller's promise.
    unsafe {
        if columns.lanes >= 8
            && is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
        {
            by_sixteen(plan, float, &lanes)
        } else if columns.lanes >= 4 && is_x86_feature_detected!("avx2") {
            by_eight(plan, float, &lanes)
        } else {
            fetch::fetch::<One>(plan, float, &lanes)
        }
    }
}

#[target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")]
unsafe fn by_sixteen(plan: &Plan, float: bool, lanes: &Lanes) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { fetch::fetch::<Avx512>(plan, float, lanes) }
}

#[target_feature(enable = "avx2")]
unsafe fn by_eight(plan: &Plan, float: bool, lanes: &Lanes) -> u64 {
    // SAFETY: the caller's promise.
    unsafe { fetch::fetch::<Avx2>(plan, float, lanes) }
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
            *word = unsafe { columns.read(nth, access.is_wide_argument(nth), lane) };
        }
        run(access, &mut words)?;
        for (nth, word) in words.iter().enumerate().take(n_results) {
            // SAFETY: the caller's promise.
            unsafe { columns.write(n_arguments + nth, wide, lane, *word) };
        }
    }
    Ok(())
}
