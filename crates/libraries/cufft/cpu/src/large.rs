//! One transform that is larger than a core's caches: an array of `n1` rows and `n2` columns, first all columns, then
//! all rows, each a tile at a time. Memory is gone through twice, on all cores.

use std::sync::Arc;

use num_complex::Complex;

use crate::axis::{MOST_LANES, gather};
use crate::columns::{Columns, Rows};
use crate::cores::Context;
use crate::element::{Direction, Real, root};
use crate::error::Result;
use crate::isa::Kernels;
use crate::kernel::Shear;
use crate::status::Status;
use crate::{scratch, tables};

/// Bytes of one line beyond which two goes over memory are faster than many over the caches.
const LARGE: usize = 512 << 10;

/// Bytes of a tile.
const TILE: usize = 256 << 10;

pub(crate) struct Large<T: 'static> {
    first: Arc<Columns<T>>,
    second: Arc<Columns<T>>,
    /// `w^(row * lane)`.
    lanes: Vec<Complex<T>>,
    /// `w^k` for small `k`, and for multiples of `2^bits`.
    low: Vec<Complex<T>>,
    high: Vec<Complex<T>>,
    bits: u32,
}

/// The memory of one transform.
#[derive(Clone, Copy)]
struct Memory<T> {
    from: *const Complex<T>,
    middle: *mut Complex<T>,
    to: *mut Complex<T>,
}

// SAFETY: `run`'s caller lends it to all threads.
unsafe impl<T: Send> Sync for Memory<T> {}

impl<T> Memory<T> {
    fn get(&self) -> &Self {
        self
    }
}

impl<T: Real> Large<T> {
    /// `None` where the length is not that large, or has no two parts that vectors divide.
    pub(crate) fn new(n: usize, direction: Direction, kernels: &'static Kernels<T>) -> Option<Self> {
        let lanes = kernels.lanes;
        if n * size_of::<Complex<T>>() <= LARGE {
            return None;
        }
        let divides = |part: &usize| {
            part.is_multiple_of(lanes) && n.is_multiple_of(*part) && (n / part).is_multiple_of(lanes)
        };
        let rows = (lanes..=n.isqrt()).rev().find(divides)?;
        let columns = n / rows;
        let first = tables::columns(rows, direction, kernels)?;
        let second = tables::columns(columns, direction, kernels)?;
        let bits = n.ilog2() / 2;
        let power = |k: usize| root(k as u64, n as u64, direction);
        Some(Self {
            first,
            second,
            lanes: (0..rows).flat_map(|row| (0..lanes).map(move |lane| power(row * lane))).collect(),
            low: (0..1 << bits).map(power).collect(),
            high: (0..=n >> bits).map(|k| power(k << bits)).collect(),
            bits,
        })
    }

    /// # Safety
    /// `from` and `to` have as many numbers as the length and are the same or apart.
    pub(crate) unsafe fn run(
        &self,
        from: *const Complex<T>,
        to: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        let (rows, columns) = (self.first.n, self.second.n);
        let lanes = self.first.kernels.lanes;
        // Rows of a power of two would share a few sets of a cache.
        let middle_row = columns + 2 * lanes;
        let tile_vectors = |n: usize| (TILE / (n * lanes * size_of::<Complex<T>>())).clamp(1, 4);
        let status = Status::default();
        context.areas.with(2 * rows * middle_row, |area: *mut T| {
            let memory = Memory { from, middle: area.cast(), to };

            let vectors = tile_vectors(rows);
            let wide = vectors * lanes;
            context.cores.each(columns.div_ceil(wide), &|block| {
                let memory = memory.get();
                let column = block * wide;
                let vectors = wide.min(columns - column) / lanes;
                let room = rows * wide;
                status.note(scratch::with(room + self.first.scratch(vectors), |tile| {
                    let shear = Shear {
                        from: tile,
                        from_row: vectors * lanes,
                        to: memory.middle.wrapping_add(column),
                        to_row: middle_row,
                        rows,
                        vectors,
                        column,
                        lanes: self.lanes.as_ptr(),
                        low: self.low.as_ptr(),
                        high: self.high.as_ptr(),
                        bits: self.bits,
                    };
                    let to = Rows { at: tile, row: vectors * lanes };
                    // SAFETY: the caller's promise, `middle_row * rows` numbers, and the tables of this length.
                    unsafe {
                        let from = Rows { at: memory.from.add(column), row: columns };
                        self.first.run(from, to, vectors, tile.add(room));
                        (self.first.kernels.shear)(&shear);
                    }
                }));
            });

            let vectors = tile_vectors(columns);
            let wide = vectors * lanes;
            context.cores.each(rows.div_ceil(wide), &|block| {
                let memory = memory.get();
                let row = block * wide;
                let vectors = wide.min(rows - row) / lanes;
                let room = columns * wide;
                status.note(scratch::with(room + self.second.scratch(vectors), |tile| {
                    for vector in 0..vectors {
                        let mut lines = [std::ptr::null_mut(); MOST_LANES];
                        for (lane, line) in lines[..lanes].iter_mut().enumerate() {
                            *line = memory.middle.wrapping_add((row + vector * lanes + lane) * middle_row);
                        }
                        // SAFETY: rows of the middle, and `columns * wide` numbers of the tile.
                        unsafe { gather(&self.second, &lines, 1, tile.add(vector * lanes), vectors * lanes) };
                    }
                    let from = Rows { at: tile.cast_const(), row: vectors * lanes };
                    // SAFETY: the caller's promise.
                    unsafe {
                        let to = Rows { at: memory.to.add(row), row: rows };
                        self.second.run(from, to, vectors, tile.add(room));
                    }
                }));
            });
        })?;
        status.into_result()
    }
}
