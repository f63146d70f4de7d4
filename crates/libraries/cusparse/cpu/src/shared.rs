//! A dense matrix by rows of which several threads have some columns each.

#![expect(
    unsafe_code,
    reason = "columns of one matrix are no slices: each access is checked against its size"
)]

/// A matrix by rows in memory.
#[derive(Clone, Copy)]
pub struct SharedRows<C> {
    at: *mut C,
    rows: usize,
    cols: usize,
    ld: usize,
}

// SAFETY: `SharedRows::new`'s caller has promised that threads may use it.
unsafe impl<C: Send> Send for SharedRows<C> {}
// SAFETY: as above.
unsafe impl<C: Send> Sync for SharedRows<C> {}

impl<C: Copy> SharedRows<C> {
    /// # Safety
    /// As long as this is used, values of these rows and columns are there, row after row `ld` apart; only those use it who were given this, and none
    /// writes to columns that another thread uses. Where nothing is written, others may read.
    pub unsafe fn new(at: *mut C, (rows, cols): (usize, usize), ld: usize) -> Self {
        SharedRows { at, rows, cols, ld }
    }

    /// All columns, about `count` at a time.
    pub(crate) fn columns_in_lines(self, count: usize) -> Vec<core::ops::Range<usize>> {
        (0..self.cols).step_by(count).map(|first| first..self.cols.min(first + count)).collect()
    }

    /// Where `count` values of a row are.
    #[inline(always)]
    pub(crate) fn line(self, row: usize, first: usize, count: usize) -> *mut C {
        assert!(row < self.rows && first + count <= self.cols, "values that the matrix does not have");
        self.at.wrapping_add(row * self.ld + first)
    }

    #[inline(always)]
    pub(crate) fn read<const W: usize>(self, row: usize, first: usize) -> [C; W] {
        // SAFETY: `new`'s caller has promised that they are there; an array is aligned as its values are.
        unsafe { self.line(row, first, W).cast::<[C; W]>().read() }
    }

    #[inline(always)]
    pub(crate) fn write<const W: usize>(self, row: usize, first: usize, values: [C; W]) {
        // SAFETY: as above.
        unsafe { self.line(row, first, W).cast::<[C; W]>().write(values) }
    }
}
