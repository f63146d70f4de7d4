//! Products of two sparse matrices by rows (Gustavson): a row of the product is a sum of rows of the second matrix.

use rayon::prelude::*;

use crate::parts::{parts, split};
use crate::{Index, Matrix, Offsets, Scalar};

/// A product by rows, its columns in order and from 0.
pub struct Product<C> {
    pub offsets: Vec<i64>,
    pub indices: Vec<i64>,
    pub values: Vec<C>,
}

/// The sums of one row, and which of them there are.
struct Row<C> {
    sums: Vec<C>,
    /// The row that a sum is of, and one more.
    seen: Vec<usize>,
    columns: Vec<usize>,
}

impl<C: Scalar> Row<C> {
    fn new(cols: usize) -> Row<C> {
        Row { sums: vec![C::ZERO; cols], seen: vec![0; cols], columns: Vec::new() }
    }

    fn sum<I: Index, J: Index>(&mut self, a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>, row: usize) {
        let Row { sums, seen, columns } = self;
        columns.clear();
        a.row(row, |middle, factor| {
            b.row(middle, |column, value| {
                if seen[column] == row + 1 {
                    sums[column] += factor * value;
                } else {
                    seen[column] = row + 1;
                    sums[column] = factor * value;
                    columns.push(column);
                }
            });
        });
    }
}

/// How many products of entries lie in front of each row.
fn products<C: Scalar, I: Index, J: Index>(a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>) -> Vec<usize> {
    let mut before = vec![0; a.rows() + 1];
    for row in 0..a.rows() {
        let mut count = 0;
        a.row(row, |middle, _| count += b.before(middle + 1) - b.before(middle));
        before[row + 1] = before[row] + count;
    }
    before
}

/// `A · B`; both are by rows.
pub fn multiply<C: Scalar, I: Index, J: Index>(a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>) -> Product<C> {
    let before = products(a, b);
    let bounds = parts(a.rows(), |row| before[row]);
    let made: Vec<(Vec<i64>, Vec<i64>, Vec<C>)> = bounds
        .par_windows(2)
        .with_max_len(1)
        .map(|bounds| {
            let mut line = Row::new(b.cols());
            let (mut counts, mut indices, mut values) = (Vec::new(), Vec::new(), Vec::new());
            for row in bounds[0]..bounds[1] {
                line.sum(a, b, row);
                line.columns.sort_unstable();
                counts.push(line.columns.len() as i64);
                indices.extend(line.columns.iter().map(|column| *column as i64));
                values.extend(line.columns.iter().map(|column| line.sums[*column]));
            }
            (counts, indices, values)
        })
        .collect();
    let mut product = Product { offsets: vec![0], indices: Vec::new(), values: Vec::new() };
    let mut last = 0;
    for (counts, indices, values) in made {
        product.offsets.extend(counts.iter().map(|count| {
            last += count;
            last
        }));
        product.indices.extend(indices);
        product.values.extend(values);
    }
    product
}

/// The sums of [`multiply`] for a pattern that is known, in its order.
pub fn multiply_into<C: Scalar, I: Index, J: Index, K: Index>(
    a: &Matrix<'_, C, I>,
    b: &Matrix<'_, C, J>,
    (offsets, indices, base): (&Offsets<'_>, &[K], usize),
) -> Vec<C> {
    let before = products(a, b);
    let bounds = parts(a.rows(), |row| before[row]);
    let entries: Vec<usize> = bounds.iter().map(|row| offsets.at(*row)).collect();
    let mut values = vec![C::ZERO; indices.len()];
    let parts: Vec<_> = split(&mut values, &entries, 1).into_iter().zip(bounds.windows(2)).collect();
    parts.into_par_iter().with_max_len(1).for_each(|(part, bounds)| {
        let mut line = Row::new(b.cols());
        let first = offsets.at(bounds[0]);
        for row in bounds[0]..bounds[1] {
            line.sum(a, b, row);
            for entry in offsets.at(row)..offsets.at(row + 1) {
                let column = indices[entry].place(base);
                if line.seen[column] == row + 1 {
                    part[entry - first] = line.sums[column];
                }
            }
        }
    });
    values
}

/// How many products of entries are added.
pub fn count_products<C: Scalar, I: Index, J: Index>(a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>) -> usize {
    products(a, b)[a.rows()]
}
