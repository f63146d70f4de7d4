//! Where the columns of a matrix lie: whole, as a band, or packed one behind the other. In all of them the rows that a
//! column has are neighbours, so the routines know columns only.

use std::ops::Range;
use std::slice;

use crate::Uplo;

#[derive(Clone, Copy)]
enum Storage {
    /// Columns begin this many elements apart.
    Full(usize),
    /// The same, with the diagonal in one row of the array.
    Band(usize),
    PackedUpper,
    PackedLower,
}

/// A matrix, or the triangle of it that is stored.
pub(crate) struct Matrix<T> {
    data: *mut T,
    m: usize,
    n: usize,
    /// How many rows above and below the diagonal are stored.
    above: usize,
    below: usize,
    storage: Storage,
}

// SAFETY: it is as good as the memory, which the caller of the routine lends to all that works on it.
unsafe impl<T: Sync> Sync for Matrix<T> {}

fn size(value: i64) -> usize {
    value.max(0) as usize
}

/// Who makes one promises that the memory is as it says, to be read, and written where the routine's result is,
/// until the routine returns.
impl<T> Matrix<T> {
    unsafe fn new(data: *const T, m: usize, n: usize, above: usize, below: usize, storage: Storage) -> Self {
        Self { data: data.cast_mut(), m, n, above, below, storage }
    }

    pub(crate) unsafe fn full(m: i64, n: i64, data: *const T, ld: i64) -> Self {
        let (m, n) = (size(m), size(n));
        // SAFETY: this function's caller promises it.
        unsafe { Self::new(data, m, n, n, m, Storage::Full(size(ld))) }
    }

    pub(crate) unsafe fn band(m: i64, n: i64, kl: i64, ku: i64, data: *const T, ld: i64) -> Self {
        // SAFETY: this function's caller promises it.
        unsafe { Self::new(data, size(m), size(n), size(ku), size(kl), Storage::Band(size(ld))) }
    }

    pub(crate) unsafe fn triangle(uplo: Uplo, n: i64, data: *const T, ld: i64) -> Self {
        // SAFETY: this function's caller promises it.
        unsafe { Self::one_sided(uplo, size(n), size(n), data, Storage::Full(size(ld))) }
    }

    pub(crate) unsafe fn triangle_band(uplo: Uplo, n: i64, k: i64, data: *const T, ld: i64) -> Self {
        // SAFETY: this function's caller promises it.
        unsafe { Self::one_sided(uplo, size(n), size(k), data, Storage::Band(size(ld))) }
    }

    pub(crate) unsafe fn packed(uplo: Uplo, n: i64, data: *const T) -> Self {
        let storage = match uplo {
            Uplo::Upper => Storage::PackedUpper,
            Uplo::Lower => Storage::PackedLower,
        };
        // SAFETY: this function's caller promises it.
        unsafe { Self::one_sided(uplo, size(n), size(n), data, storage) }
    }

    unsafe fn one_sided(uplo: Uplo, n: usize, k: usize, data: *const T, storage: Storage) -> Self {
        let (above, below) = match uplo {
            Uplo::Upper => (k, 0),
            Uplo::Lower => (0, k),
        };
        // SAFETY: this function's caller promises it.
        unsafe { Self::new(data, n, n, above, below, storage) }
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.m
    }

    pub(crate) fn n_columns(&self) -> usize {
        self.n
    }

    /// The rows that column `j` has.
    pub(crate) fn rows(&self, j: usize) -> Range<usize> {
        let end = self.m.min(j + self.below + 1);
        j.saturating_sub(self.above).min(end)..end
    }

    fn at(&self, row: usize, j: usize) -> *mut T {
        let offset = match self.storage {
            Storage::Full(ld) => j * ld + row,
            Storage::Band(ld) => j * ld + self.above + row - j,
            Storage::PackedUpper => j * (j + 1) / 2 + row,
            Storage::PackedLower => j * (2 * self.n + 1 - j) / 2 + row - j,
        };
        self.data.wrapping_add(offset)
    }

    /// Column `j`: the elements in `rows(j)`.
    pub(crate) fn column(&self, j: usize) -> &[T] {
        let rows = self.rows(j);
        if rows.is_empty() {
            return &[];
        }
        // SAFETY: who made this promised that they are there.
        unsafe { slice::from_raw_parts(self.at(rows.start, j), rows.len()) }
    }

    pub(crate) fn column_mut(&mut self, j: usize) -> &mut [T] {
        let rows = self.rows(j);
        if rows.is_empty() {
            return &mut [];
        }
        // SAFETY: as above; the routine's other operands are copies.
        unsafe { slice::from_raw_parts_mut(self.at(rows.start, j), rows.len()) }
    }
}

/// A triangle's column: the element on the diagonal and the others, which have these rows.
pub(crate) struct Split<'a, T> {
    pub(crate) diagonal: T,
    pub(crate) others: &'a [T],
    pub(crate) rows: Range<usize>,
}

impl<T: Copy> Matrix<T> {
    /// Column `j` of a triangle.
    pub(crate) fn split(&self, j: usize) -> Split<'_, T> {
        let (column, rows) = (self.column(j), self.rows(j));
        if self.below == 0 {
            let (diagonal, others) = column.split_last().expect("a triangle has its diagonal");
            Split { diagonal: *diagonal, others, rows: rows.start..j }
        } else {
            let (diagonal, others) = column.split_first().expect("a triangle has its diagonal");
            Split { diagonal: *diagonal, others, rows: j + 1..rows.end }
        }
    }
}
