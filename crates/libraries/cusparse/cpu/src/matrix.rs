//! A sparse matrix by rows, whatever its format: those by columns are the transposed ones by rows.

use std::borrow::Cow;

use crate::Scalar;
use crate::parts::parts;

/// The type of row and column numbers.
pub trait Index: Copy + Default + Ord + Send + Sync + 'static {
    /// The place behind a number that counts from `base`. Negative numbers become places that no vector has.
    fn place(self, base: usize) -> usize;
    fn number(place: usize, base: usize) -> Self;
}

macro_rules! index {
    ($($ty:ty)*) => {$(
        impl Index for $ty {
            #[inline]
            fn place(self, base: usize) -> usize {
                (self as isize).wrapping_sub(base as isize) as usize
            }

            fn number(place: usize, base: usize) -> Self {
                (place + base) as $ty
            }
        }
    )*};
}

index! { i32 i64 }

/// Where rows begin.
#[derive(Clone)]
pub enum Offsets<'a> {
    Narrow(&'a [i32], usize),
    Wide(Cow<'a, [i64]>, usize),
}

impl Offsets<'_> {
    #[inline]
    pub fn at(&self, row: usize) -> usize {
        match self {
            Offsets::Narrow(offsets, base) => offsets[row].place(*base),
            Offsets::Wide(offsets, base) => offsets[row].place(*base),
        }
    }
}

/// One matrix. Its numbers count from `base`.
pub enum Matrix<'a, C: Scalar, I: Index> {
    Csr {
        rows: usize,
        cols: usize,
        base: usize,
        offsets: Offsets<'a>,
        indices: Cow<'a, [I]>,
        values: Cow<'a, [C]>,
    },
    /// Square blocks.
    Bsr {
        block_rows: usize,
        block_cols: usize,
        size: usize,
        base: usize,
        row_major: bool,
        offsets: Offsets<'a>,
        indices: Cow<'a, [I]>,
        values: Cow<'a, [C]>,
    },
    /// Slices of rows, each as wide as its longest row; a number below the base is padding.
    SlicedEll {
        rows: usize,
        cols: usize,
        slice: usize,
        base: usize,
        offsets: Offsets<'a>,
        indices: Cow<'a, [I]>,
        values: Cow<'a, [C]>,
    },
    /// As many square blocks in each row of blocks; a number below the base is padding. Values lie by rows, over all blocks of a row.
    BlockedEll {
        rows: usize,
        cols: usize,
        size: usize,
        ell_cols: usize,
        base: usize,
        indices: Cow<'a, [I]>,
        values: Cow<'a, [C]>,
    },
}

impl<'a, C: Scalar, I: Index> Matrix<'a, C, I> {
    pub fn rows(&self) -> usize {
        match self {
            Matrix::Csr { rows, .. } | Matrix::SlicedEll { rows, .. } | Matrix::BlockedEll { rows, .. } => {
                *rows
            }
            Matrix::Bsr { block_rows, size, .. } => block_rows * size,
        }
    }

    pub fn cols(&self) -> usize {
        match self {
            Matrix::Csr { cols, .. } | Matrix::SlicedEll { cols, .. } | Matrix::BlockedEll { cols, .. } => {
                *cols
            }
            Matrix::Bsr { block_cols, size, .. } => block_cols * size,
        }
    }

    /// Entries in front of a row, or about so many.
    pub fn before(&self, row: usize) -> usize {
        match self {
            Matrix::Csr { offsets, .. } => offsets.at(row),
            Matrix::Bsr { offsets, size, .. } => offsets.at(row / size) * size * size,
            Matrix::SlicedEll { offsets, slice, .. } => offsets.at(row / slice),
            Matrix::BlockedEll { ell_cols, .. } => row * ell_cols,
        }
    }

    /// All stored entries, padding included.
    pub fn entries(&self) -> usize {
        match self {
            Matrix::Csr { values, .. }
            | Matrix::Bsr { values, .. }
            | Matrix::SlicedEll { values, .. }
            | Matrix::BlockedEll { values, .. } => values.len(),
        }
    }

    pub fn parts(&self) -> Vec<usize> {
        parts(self.rows(), |row| if row == self.rows() { self.entries() } else { self.before(row) })
    }

    /// Calls `each` with every column of the row that has an entry, in the order of memory.
    #[inline]
    pub fn row(&self, row: usize, mut each: impl FnMut(usize, C)) {
        match self {
            Matrix::Csr { base, offsets, indices, values, .. } => {
                let range = offsets.at(row)..offsets.at(row + 1);
                let entries = indices[range.clone()].iter().zip(&values[range]);
                entries.for_each(|(index, value)| each(index.place(*base), *value));
            }
            Matrix::Bsr { size, base, row_major, offsets, indices, values, .. } => {
                let (block_row, inner) = (row / size, row % size);
                let (first, step) = if *row_major { (inner * size, 1) } else { (inner, *size) };
                for block in offsets.at(block_row)..offsets.at(block_row + 1) {
                    let (column, at) = (indices[block].place(*base) * size, block * size * size + first);
                    (0..*size).for_each(|k| each(column + k, values[at + k * step]));
                }
            }
            Matrix::SlicedEll { slice, base, offsets, indices, values, .. } => {
                let (number, inner) = (row / slice, row % slice);
                let mut at = offsets.at(number) + inner;
                while at < offsets.at(number + 1) {
                    let column = indices[at].place(*base);
                    if column as isize >= 0 {
                        each(column, values[at]);
                    }
                    at += slice;
                }
            }
            Matrix::BlockedEll { size, ell_cols, base, indices, values, .. } => {
                let (block_row, blocks) = (row / size, ell_cols / size);
                for block in 0..blocks {
                    let column = indices[block_row * blocks + block].place(*base);
                    if column as isize >= 0 {
                        let at = row * ell_cols + block * size;
                        (0..*size).for_each(|k| each(column * size + k, values[at + k]));
                    }
                }
            }
        }
    }

    /// Row and column of every entry, in the order of memory, of a matrix whose slices have no padding.
    pub fn places(&self) -> Vec<(usize, usize)> {
        let mut places = Vec::with_capacity(self.entries());
        if let Matrix::Bsr { block_rows, size, base, row_major, offsets, indices, .. } = self {
            for block_row in 0..*block_rows {
                for block in offsets.at(block_row)..offsets.at(block_row + 1) {
                    let (row, column) = (block_row * size, indices[block].place(*base) * size);
                    for at in 0..size * size {
                        let (major, minor) = (at / size, at % size);
                        let (i, j) = if *row_major { (major, minor) } else { (minor, major) };
                        places.push((row + i, column + j));
                    }
                }
            }
        } else {
            (0..self.rows()).for_each(|row| self.row(row, |column, _| places.push((row, column))));
        }
        places
    }

    /// The transposed matrix by rows, its numbers from 0.
    pub fn transposed(&self) -> Matrix<'static, C, i64> {
        let (rows, cols) = (self.cols(), self.rows());
        let mut offsets = vec![0i64; rows + 1];
        (0..cols).for_each(|row| self.row(row, |column, _| offsets[column + 1] += 1));
        (0..rows).for_each(|row| offsets[row + 1] += offsets[row]);
        let mut next = offsets.clone();
        let count = offsets[rows] as usize;
        let (mut indices, mut values) = (vec![0i64; count], vec![C::ZERO; count]);
        for row in 0..cols {
            self.row(row, |column, value| {
                let at = next[column] as usize;
                next[column] += 1;
                (indices[at], values[at]) = (row as i64, value);
            });
        }
        Matrix::Csr {
            rows,
            cols,
            base: 0,
            offsets: Offsets::Wide(offsets.into(), 0),
            indices: indices.into(),
            values: values.into(),
        }
    }
}

/// Of a matrix by coordinates the one by rows. Where rows are in order, as cuSPARSE asks for, columns and values stay where they are.
pub fn group_coordinates<'a, C: Scalar, I: Index>(
    (rows, cols): (usize, usize),
    base: usize,
    row_numbers: &[I],
    indices: Cow<'a, [I]>,
    values: Cow<'a, [C]>,
) -> Matrix<'a, C, I> {
    let mut offsets = vec![0i64; rows + 1];
    row_numbers.iter().for_each(|row| offsets[row.place(base) + 1] += 1);
    (0..rows).for_each(|row| offsets[row + 1] += offsets[row]);
    let (mut indices, mut values) = (indices, values);
    if !row_numbers.is_sorted() {
        let mut next = offsets.clone();
        let (mut sorted, mut sorted_values) =
            (vec![I::default(); indices.len()], vec![C::ZERO; values.len()]);
        for (at, row) in row_numbers.iter().enumerate() {
            let to = &mut next[row.place(base)];
            (sorted[*to as usize], sorted_values[*to as usize]) = (indices[at], values[at]);
            *to += 1;
        }
        (indices, values) = (sorted.into(), sorted_values.into());
    }
    Matrix::Csr { rows, cols, base, offsets: Offsets::Wide(offsets.into(), 0), indices, values }
}
