//! One format to another.

use crate::{Index, Matrix, Scalar};

/// Row offsets of row numbers that are in order.
pub fn compress<I: Index, O: Index>(row_numbers: &[I], base: usize, offsets: &mut [O]) {
    let mut at = 0;
    for (row, offset) in offsets.iter_mut().enumerate() {
        while at < row_numbers.len() && row_numbers[at].place(base) < row {
            at += 1;
        }
        *offset = O::number(at, base);
    }
}

/// Row numbers of row offsets.
pub fn expand<I: Index, O: Index>(offsets: &[O], base: usize, row_numbers: &mut [I]) {
    for (row, bounds) in offsets.windows(2).enumerate() {
        row_numbers[bounds[0].place(base)..bounds[1].place(base)].fill(I::number(row, base));
    }
}

/// A dense matrix by rows of a sparse one: entries that are there twice are added.
pub fn to_dense<C: Scalar, I: Index>(a: &Matrix<'_, C, I>, transposed: bool) -> Vec<C> {
    let cols = if transposed { a.rows() } else { a.cols() };
    let mut sums = vec![C::ZERO; a.rows() * a.cols()];
    for row in 0..a.rows() {
        a.row(row, |column, value| {
            assert!(column < a.cols(), "a column behind the last");
            let (row, column) = if transposed { (column, row) } else { (row, column) };
            sums[row * cols + column] += value;
        });
    }
    sums
}

/// CSR to CSC: row numbers in order within each column, and with `values` what belongs to them.
pub fn transpose_arrays<I: Index, T: Copy>(
    (rows, cols, base): (usize, usize, usize),
    (offsets, indices, values): (&[I], &[I], Option<&[T]>),
    (column_offsets, row_numbers, mut to): (&mut [I], &mut [I], Option<&mut [T]>),
) {
    let mut next = vec![0; cols + 1];
    let entries = offsets[0].place(base)..offsets[rows].place(base);
    indices[entries].iter().for_each(|index| next[index.place(base) + 1] += 1);
    (0..cols).for_each(|column| next[column + 1] += next[column]);
    column_offsets.iter_mut().zip(&next).for_each(|(to, offset)| *to = I::number(*offset, base));
    for row in 0..rows {
        for entry in offsets[row].place(base)..offsets[row + 1].place(base) {
            let at = &mut next[indices[entry].place(base)];
            row_numbers[*at] = I::number(row, base);
            if let (Some(values), Some(to)) = (values, to.as_deref_mut()) {
                to[*at] = values[entry];
            }
            *at += 1;
        }
    }
}
