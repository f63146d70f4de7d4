//! Vectors as BLAS describes them: a pointer and an increment.

use std::ops::Range;

use crate::{Scalar, Stored};

/// `n` elements, `increment` apart.
///
/// Who makes one promises what it says; indices below `n` are then right, which debug builds check. It may overlap
/// with others: programs give the same vector twice, and reference BLAS goes from element to element.
pub(crate) struct Vector<T> {
    first: *mut T,
    increment: isize,
    n: usize,
}

impl<T> Clone for Vector<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Vector<T> {}

// SAFETY: it is as good as the memory, which the caller of the routine lends to all that works on it.
unsafe impl<T: Send> Send for Vector<T> {}
// SAFETY: as above; threads write to different elements.
unsafe impl<T: Sync> Sync for Vector<T> {}

impl<T: Copy> Vector<T> {
    /// With a negative increment the first element is the one that lies last.
    ///
    /// # Safety
    /// `data` has `n` elements that far apart, to be read, and to be written if they are, as long as this is used.
    pub(crate) unsafe fn new(n: i64, data: *const T, increment: i64) -> Self {
        let n = n.max(0) as usize;
        let increment = increment as isize;
        let skipped = if increment < 0 { (1 - n.max(1) as isize) * increment } else { 0 };
        Self { first: data.cast_mut().wrapping_offset(skipped), increment, n }
    }

    #[inline(always)]
    pub(crate) fn len(self) -> usize {
        self.n
    }

    pub(crate) fn is_unit(self) -> bool {
        self.increment == 1
    }

    /// The elements of `range`, of a vector that `is_unit`: the increment becomes a constant.
    #[inline(always)]
    pub(crate) fn unit(self, range: Range<usize>) -> Self {
        debug_assert!(self.is_unit() && range.start <= range.end && range.end <= self.n);
        Self { first: self.first.wrapping_add(range.start), increment: 1, n: range.len() }
    }

    /// The same to be read, while nobody writes.
    pub(crate) fn slice<'a>(self, range: Range<usize>) -> &'a [T] {
        let part = self.unit(range);
        if part.n == 0 {
            return &[];
        }
        // SAFETY: `new`'s caller promised the elements.
        unsafe { std::slice::from_raw_parts(part.first, part.n) }
    }

    #[inline(always)]
    fn at(self, i: usize) -> *mut T {
        debug_assert!(i < self.n);
        self.first.wrapping_offset(i as isize * self.increment)
    }

    #[inline(always)]
    pub(crate) fn get(self, i: usize) -> T {
        // SAFETY: `new`'s caller promised the elements below `n`.
        unsafe { self.at(i).read() }
    }

    #[inline(always)]
    pub(crate) fn set(self, i: usize, value: T) {
        // SAFETY: as above.
        unsafe { self.at(i).write(value) }
    }
}

/// The elements as numbers to compute with, neighbours.
pub(crate) fn gather<S: Scalar, X: Stored<S>>(x: Vector<X>) -> Vec<S> {
    (0..x.len()).map(|i| x.get(i).load()).collect()
}
