//! Real transforms along the innermost axis, which are complex ones of half the length, or two in one.

use std::ops::Range;
use std::sync::Arc;

use num_complex::Complex;

use crate::axis::Dims;
use crate::cores::Context;
use crate::element::{Direction, Real, root};
use crate::error::Result;
use crate::isa::{Isa, Kernels};
use crate::kernel::{Fold, Join};
use crate::line::Line;
use crate::{scratch, tables};

/// Which side is real; strides count real numbers there and complex ones on the other side.
pub(crate) struct RealAxis<T: 'static> {
    n: usize,
    from: usize,
    to: usize,
    lines: Dims,
    direction: Direction,
    line: Arc<Line<T>>,
    kernels: &'static Kernels<T>,
    /// Even lengths' factors; none for odd ones.
    factors: Vec<Complex<T>>,
}

impl<T: Real> RealAxis<T> {
    /// Forward from real to complex, inverse from complex to real.
    pub(crate) fn new(n: usize, from: usize, to: usize, lines: Dims, direction: Direction, isa: Isa) -> Self {
        let half = n / 2;
        let even = n.is_multiple_of(2);
        let line = tables::line(if even { half } else { n }, direction, isa);
        let factors =
            if even { (0..=half / 2).map(|k| factor(k, n, direction)).collect() } else { Vec::new() };
        Self { n, from, to, lines, direction, line, kernels: T::kernels(isa), factors }
    }

    pub(crate) fn units(&self) -> (usize, usize) {
        let lines = self.lines.count();
        if self.is_even() { (lines, self.n / 2) } else { (lines.div_ceil(2), self.n) }
    }

    fn is_even(&self) -> bool {
        self.n.is_multiple_of(2)
    }

    /// Does some of the units.
    ///
    /// # Safety
    /// The lines lie in memory that is there and nobody else uses. Lines on one side are apart from all others' on
    /// either side.
    pub(crate) unsafe fn run(
        &self,
        units: Range<usize>,
        from: *const T,
        to: *mut T,
        context: Context,
    ) -> Result<()> {
        let half = self.n / 2 + 1;
        let room = if self.is_even() { half } else { self.n + 2 * half };
        scratch::with(room + self.line.scratch(), |scratch| {
            let more = scratch.wrapping_add(room);
            for unit in units {
                // SAFETY: the caller's promise, and the room that was asked for.
                unsafe {
                    match (self.direction, self.is_even()) {
                        (Direction::Forward, true) => {
                            self.forward(unit, from, to.cast(), scratch, more, context)?
                        }
                        (Direction::Inverse, true) => {
                            self.inverse(unit, from.cast(), to, scratch, more, context)?
                        }
                        (Direction::Forward, false) => {
                            self.forward_pair(unit, from, to.cast(), scratch, context)?
                        }
                        (Direction::Inverse, false) => {
                            self.inverse_pair(unit, from.cast(), to, scratch, context)?
                        }
                    }
                }
            }
            Ok(())
        })?
    }

    /// Whether one line is work for several cores.
    pub(crate) fn is_large(&self) -> bool {
        self.line.is_large()
    }

    unsafe fn forward(
        &self,
        unit: usize,
        from: *const T,
        to: *mut Complex<T>,
        spare: *mut Complex<T>,
        scratch: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        let half = self.n / 2;
        let (read, written) = self.lines.at(unit);
        // SAFETY: `run`'s caller promises the lines; `spare` has room for a line of either kind.
        unsafe {
            let (from, to) = (from.add(read), to.add(written));
            let row = if self.to == 1 { to } else { spare };
            if self.from == 1 {
                self.line.run(from.cast(), row, scratch, context)?;
            } else {
                copy_reals(from, self.from, row.cast(), 1, self.n);
                self.line.run(row, row, scratch, context)?;
            }
            let first = *row;
            (self.kernels.fold)(&self.fold(row, row, T::of(0.5)));
            *row = Complex::new(first.re + first.im, T::zero());
            *row.add(half) = Complex::new(first.re - first.im, T::zero());
            if self.to != 1 {
                copy_complex(row, 1, to, self.to, half + 1);
            }
        }
        Ok(())
    }

    unsafe fn inverse(
        &self,
        unit: usize,
        from: *const Complex<T>,
        to: *mut T,
        spare: *mut Complex<T>,
        scratch: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        let half = self.n / 2;
        let (read, written) = self.lines.at(unit);
        // SAFETY: `run`'s caller promises the lines; `spare` has room for a line of either kind.
        unsafe {
            let (from, to) = (from.add(read), to.add(written));
            let row: *mut Complex<T> = if self.to == 1 { to.cast() } else { spare };
            let mut source = from;
            if self.from != 1 {
                copy_complex(from, self.from, spare, 1, half + 1);
                source = spare;
            }
            // Real by their symmetry: whatever stands in their imaginary parts has no meaning.
            let (first, middle) = ((*source).re, (*source.add(half)).re);
            (self.kernels.fold)(&self.fold(source, row, T::one()));
            *row = Complex::new(first + middle, first - middle);
            self.line.run(row, row, scratch, context)?;
            if self.to != 1 {
                copy_reals(row.cast(), 1, to, self.to, self.n);
            }
        }
        Ok(())
    }

    fn fold(&self, from: *const Complex<T>, to: *mut Complex<T>, weight: T) -> Fold<T> {
        Fold { from, to, half: self.n / 2, factors: self.factors.as_ptr(), weight }
    }

    /// The two lines of a unit, of which the last unit's may be the same.
    fn pair(&self, unit: usize) -> [(usize, usize); 2] {
        [2 * unit, (2 * unit + 1).min(self.lines.count() - 1)].map(|line| self.lines.at(line))
    }

    fn join(&self, scratch: *mut Complex<T>, inverse: bool) -> Join<T> {
        let first = scratch.wrapping_add(self.n);
        Join { first, second: first.wrapping_add(self.n / 2 + 1), both: scratch, n: self.n, inverse }
    }

    unsafe fn forward_pair(
        &self,
        unit: usize,
        from: *const T,
        to: *mut Complex<T>,
        scratch: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        let half = self.n / 2 + 1;
        let join = self.join(scratch, false);
        let [first, second] = self.pair(unit);
        // SAFETY: `run`'s caller promises the lines; the scratch has `n + 2 * half` numbers before the line's own.
        unsafe {
            copy_reals(from.add(first.0), self.from, scratch.cast(), 2, self.n);
            copy_reals(from.add(second.0), self.from, scratch.cast::<T>().add(1), 2, self.n);
            self.line.run(scratch, scratch, join.second.add(half), context)?;
            (self.kernels.join)(&join);
            *join.first = Complex::new((*scratch).re, T::zero());
            *join.second = Complex::new((*scratch).im, T::zero());
            copy_complex(join.first, 1, to.add(first.1), self.to, half);
            copy_complex(join.second, 1, to.add(second.1), self.to, half);
        }
        Ok(())
    }

    unsafe fn inverse_pair(
        &self,
        unit: usize,
        from: *const Complex<T>,
        to: *mut T,
        scratch: *mut Complex<T>,
        context: Context,
    ) -> Result<()> {
        let half = self.n / 2 + 1;
        let join = self.join(scratch, true);
        let [first, second] = self.pair(unit);
        // SAFETY: as `forward_pair`.
        unsafe {
            copy_complex(from.add(first.0), self.from, join.first, 1, half);
            copy_complex(from.add(second.0), self.from, join.second, 1, half);
            *scratch = Complex::new((*join.first).re, (*join.second).re);
            (self.kernels.join)(&join);
            self.line.run(scratch, scratch, join.second.add(half), context)?;
            copy_reals(scratch.cast(), 2, to.add(first.1), self.to, self.n);
            copy_reals(scratch.cast::<T>().add(1), 2, to.add(second.1), self.to, self.n);
        }
        Ok(())
    }
}

/// What the difference of a number and its mirror image is multiplied by.
fn factor<T: Real>(k: usize, n: usize, direction: Direction) -> Complex<T> {
    let root = root::<T>(k as u64, n as u64, direction);
    match direction {
        Direction::Forward => Complex::new(root.im, -root.re) * T::of(0.5),
        Direction::Inverse => Complex::new(-root.im, root.re),
    }
}

/// # Safety
/// There are `n` numbers so far apart on either side.
unsafe fn copy_reals<T: Real>(from: *const T, from_step: usize, to: *mut T, to_step: usize, n: usize) {
    // SAFETY: the caller's promise.
    (0..n).for_each(|j| unsafe { *to.add(j * to_step) = *from.add(j * from_step) });
}

/// # Safety
/// As `copy_reals`.
unsafe fn copy_complex<T: Real>(
    from: *const Complex<T>,
    from_step: usize,
    to: *mut Complex<T>,
    to_step: usize,
    n: usize,
) {
    // SAFETY: the caller's promise.
    (0..n).for_each(|j| unsafe { *to.add(j * to_step) = *from.add(j * from_step) });
}
