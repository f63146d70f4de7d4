//! A matrix in memory, column after column: where it starts and how far apart its columns are.

use crate::{Op, Scalar};

/// Copies mean the same memory. What lies between the rows and the leading dimension is nobody's.
pub struct Matrix<S> {
    start: *mut S,
    ld: i64,
}

impl<S> Clone for Matrix<S> {
    fn clone(&self) -> Self {
        *self
    }
}
impl<S> Copy for Matrix<S> {}

// SAFETY: a matrix is an address; who makes threads of it (`parallel`) gives each its own columns.
unsafe impl<S> Send for Matrix<S> {}
// SAFETY: as above.
unsafe impl<S> Sync for Matrix<S> {}

impl<S: Copy> Matrix<S> {
    pub fn new(start: *mut S, ld: i64) -> Self {
        Self { start, ld }
    }

    /// Of a matrix that is only read.
    pub fn read(start: *const S, ld: i64) -> Self {
        Self::new(start.cast_mut(), ld)
    }

    pub fn at(self, row: i64, column: i64) -> *mut S {
        self.start.wrapping_offset((row + column * self.ld) as isize)
    }

    /// The part that starts there.
    pub fn from(self, row: i64, column: i64) -> Self {
        Self { start: self.at(row, column), ld: self.ld }
    }

    pub fn start(self) -> *mut S {
        self.start
    }

    pub fn ld(self) -> i64 {
        self.ld
    }

    /// # Safety
    /// The element is there.
    pub unsafe fn get(self, row: i64, column: i64) -> S {
        // SAFETY: the caller's word.
        unsafe { *self.at(row, column) }
    }

    /// # Safety
    /// The element is there and nobody else's now.
    pub unsafe fn set(self, row: i64, column: i64, value: S) {
        // SAFETY: the caller's word.
        unsafe { *self.at(row, column) = value }
    }

    /// # Safety
    /// Nobody writes the column's first `rows` elements meanwhile.
    pub unsafe fn column<'a>(self, column: i64, rows: i64) -> &'a [S] {
        // SAFETY: the caller's word.
        unsafe { std::slice::from_raw_parts(self.at(0, column), rows as usize) }
    }

    /// # Safety
    /// The column's first `rows` elements are nobody else's meanwhile.
    pub unsafe fn column_mut<'a>(self, column: i64, rows: i64) -> &'a mut [S] {
        // SAFETY: the caller's word.
        unsafe { std::slice::from_raw_parts_mut(self.at(0, column), rows as usize) }
    }
}

impl<S: Scalar> Matrix<S> {
    /// The element of `op` of this matrix.
    ///
    /// # Safety
    /// It is there.
    pub unsafe fn get_op(self, op: Op, row: i64, column: i64) -> S {
        // SAFETY: the caller's word.
        unsafe {
            match op {
                Op::N => self.get(row, column),
                Op::T => self.get(column, row),
                Op::C => self.get(column, row).conj(),
            }
        }
    }

    /// Multiplies `rows` by `columns` elements with `factor`; a factor of zero clears them unread.
    ///
    /// # Safety
    /// They are there and nobody else's.
    pub unsafe fn scale(self, rows: i64, columns: i64, factor: S) {
        if factor.is_one() {
            return;
        }
        crate::parallel(columns, rows, |column| {
            // SAFETY: the caller's word; a column for each call.
            scale_slice(unsafe { self.column_mut(column, rows) }, factor);
        });
    }
}

/// Multiplies with `factor`; a factor of zero clears unread.
pub fn scale_slice<S: Scalar>(elements: &mut [S], factor: S) {
    if factor.is_zero() {
        elements.fill(S::zero());
    } else if !factor.is_one() {
        for element in elements {
            *element *= factor;
        }
    }
}
