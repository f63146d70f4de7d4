//! One transform whose numbers lie side by side.
//!
//! Where the length allows, it is a tile with as many columns as a vector has lanes: the columns' transforms, then
//! across. Lengths beyond the caches are two such halves (`large`), and what has other primes goes to rustfft.

use std::sync::Arc;

use num_complex::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use crate::columns::{Columns, Rows};
use crate::cores::Context;
use crate::element::{Direction, Real, root};
use crate::error::Result;
use crate::isa::{Isa, Kernels};
use crate::kernel::Last;
use crate::large::Large;
use crate::tables;

pub(crate) struct Line<T: 'static> {
    pub(crate) n: usize,
    method: Method<T>,
}

enum Method<T: 'static> {
    Tile(Tiled<T>),
    Large(Large<T>),
    Library(Arc<dyn Fft<T>>),
}

struct Tiled<T: 'static> {
    columns: Arc<Columns<T>>,
    factors: Vec<Complex<T>>,
    roots: Vec<Complex<T>>,
    inverse: bool,
}

impl<T: Real> Line<T> {
    pub(crate) fn new(n: usize, direction: Direction, isa: Isa) -> Self {
        let wide = T::kernels(isa);
        if let Some(large) = Large::new(n, direction, wide) {
            return Self { n, method: Method::Large(large) };
        }
        let tiled =
            Tiled::new(n, direction, wide).or_else(|| Tiled::new(n, direction, T::narrow_kernels(isa)?));
        let method = match tiled {
            Some(tiled) => Method::Tile(tiled),
            None => Method::Library(library(n, direction)),
        };
        Self { n, method }
    }

    /// Whether vectors of so many lanes go along the line itself.
    pub(crate) fn is_wide(&self, lanes: usize) -> bool {
        match &self.method {
            Method::Tile(tiled) => tiled.columns.kernels.lanes == lanes,
            Method::Large(_) => true,
            Method::Library(_) => false,
        }
    }

    /// Whether one line is work for several cores.
    pub(crate) fn is_large(&self) -> bool {
        matches!(self.method, Method::Large(_))
    }

    pub(crate) fn scratch(&self) -> usize {
        match &self.method {
            Method::Tile(tiled) => self.n + tiled.columns.scratch(1),
            Method::Large(_) => 0,
            Method::Library(fft) => fft.get_inplace_scratch_len(),
        }
    }

    /// # Safety
    /// `from` and `to` have `n` numbers and are the same or apart; `scratch` has what `scratch()` says, apart from them.
    pub(crate) unsafe fn run(
        &self,
        from: *const Complex<T>,
        to: *mut Complex<T>,
        scratch: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        match &self.method {
            // SAFETY: the caller's promise.
            Method::Tile(tiled) => unsafe { tiled.run(from, to, scratch) },
            // SAFETY: as above.
            Method::Large(large) => unsafe { large.run(from, to, context)? },
            Method::Library(fft) => {
                // SAFETY: the caller's promise; rustfft asks for values in its scratch, any that are numbers.
                let (to, scratch) = unsafe {
                    if !std::ptr::eq(from, to) {
                        to.copy_from_nonoverlapping(from, self.n);
                    }
                    let room = fft.get_inplace_scratch_len();
                    scratch.write_bytes(0, room);
                    (
                        std::slice::from_raw_parts_mut(to, self.n),
                        std::slice::from_raw_parts_mut(scratch, room),
                    )
                };
                fft.process_with_scratch(to, scratch);
            }
        }
        Ok(())
    }
}

impl<T: Real> Tiled<T> {
    fn new(n: usize, direction: Direction, kernels: &'static Kernels<T>) -> Option<Self> {
        let lanes = kernels.lanes;
        if !n.is_multiple_of(lanes) || n < lanes * lanes {
            return None;
        }
        let rows = n / lanes;
        let columns = tables::columns(rows, direction, kernels)?;
        let factors = (0..rows)
            .flat_map(|row| (0..lanes).map(move |lane| root((row * lane) as u64, n as u64, direction)))
            .collect();
        let roots = (0..lanes).map(|k| root(k as u64, lanes as u64, direction)).collect();
        Some(Self { columns, factors, roots, inverse: direction == Direction::Inverse })
    }

    unsafe fn run(&self, from: *const Complex<T>, to: *mut Complex<T>, scratch: *mut Complex<T>) {
        let lanes = self.columns.kernels.lanes;
        let (tile, more) = (scratch, scratch.wrapping_add(self.columns.n * lanes));
        let last = Last {
            from: tile,
            to,
            rows: self.columns.n,
            factors: self.factors.as_ptr(),
            roots: self.roots.as_ptr(),
            inverse: self.inverse,
        };
        // SAFETY: `Line::run`'s caller promises the memory; `new` saw that there are enough rows.
        unsafe {
            self.columns.run(Rows { at: from, row: lanes }, Rows { at: tile, row: lanes }, 1, more);
            (self.columns.kernels.last)(&last);
        }
    }
}

/// A planner for each length: what rustfft's own would keep is not shared between threads, and never given back.
fn library<T: Real>(n: usize, direction: Direction) -> Arc<dyn Fft<T>> {
    let direction = match direction {
        Direction::Forward => FftDirection::Forward,
        Direction::Inverse => FftDirection::Inverse,
    };
    FftPlanner::new().plan_fft(n, direction)
}
