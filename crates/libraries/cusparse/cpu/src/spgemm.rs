//! Products of two sparse matrices by rows (Gustavson): a row of the product is a sum of rows of the second matrix.

use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use parking_lot::Mutex;

use crate::parts::{on_cores, parts, split};
use crate::{Index, Matrix, Offsets, Scalar};

/// A product by rows, its columns in order and from 0, in parts that lie one behind the other.
pub struct Product<C> {
    pub offsets: Vec<i64>,
    pub parts: Vec<Part<C>>,
}

/// Some rows of a product.
#[derive(Default)]
pub struct Part<C> {
    counts: Vec<u32>,
    pub indices: Vec<u32>,
    pub values: Vec<C>,
}

impl<C: Scalar> Product<C> {
    fn new(parts: Vec<Part<C>>) -> Product<C> {
        let mut offsets = Vec::with_capacity(parts.iter().map(|part| part.counts.len()).sum::<usize>() + 1);
        let mut last = 0;
        offsets.push(0);
        for count in parts.iter().flat_map(|part| &part.counts) {
            last += i64::from(*count);
            offsets.push(last);
        }
        Product { offsets, parts }
    }

    /// How many entries it has.
    pub fn len(&self) -> usize {
        self.parts.iter().map(|part| part.values.len()).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn copy_offsets<O: Index>(&self, base: usize, to: &mut [O]) {
        to.iter_mut().zip(&self.offsets).for_each(|(to, offset)| *to = O::number(*offset as usize, base));
    }

    pub fn copy_indices<I: Index>(&self, base: usize, to: &mut [I]) {
        self.with_parts(to, |part, to| {
            to.iter_mut().zip(&part.indices).for_each(|(to, column)| *to = I::number(*column as usize, base));
        });
    }

    pub fn copy_values(&self, to: &mut [C]) {
        self.with_parts(to, |part, to| to.copy_from_slice(&part.values));
    }

    /// Runs with each part and its places.
    pub fn with_parts<T: Send>(&self, to: &mut [T], run: impl Fn(&Part<C>, &mut [T]) + Sync) {
        let mut ends = vec![0];
        self.parts.iter().for_each(|part| ends.push(ends[ends.len() - 1] + part.values.len()));
        on_cores(self.parts.iter().zip(split(to, &ends, 1)), |(part, to)| run(part, to));
    }
}

/// The sums of one row, and which of them there are.
pub struct Row<C> {
    sums: Vec<C>,
    /// A bit for each column that has a sum.
    seen: Vec<u64>,
    columns: Vec<u32>,
}

impl<C: Scalar> Row<C> {
    fn new(cols: usize) -> Row<C> {
        assert!(u32::try_from(cols).is_ok(), "more columns than products have here");
        Row { sums: vec![C::ZERO; cols], seen: vec![0; cols.div_ceil(64)], columns: Vec::new() }
    }

    #[inline(always)]
    fn add(&mut self, column: usize, value: C) {
        let (word, bit) = (&mut self.seen[column / 64], 1 << (column % 64));
        if *word & bit != 0 {
            self.sums[column] += value;
        } else {
            *word |= bit;
            self.sums[column] = value;
            self.columns.push(column as u32);
        }
    }

    fn has(&self, column: usize) -> bool {
        self.seen[column / 64] & 1 << (column % 64) != 0
    }

    fn clear(&mut self) {
        self.columns.iter().for_each(|column| self.seen[*column as usize / 64] = 0);
        self.columns.clear();
    }

    /// Columns in order: found by their bits where these are near to each other, else sorted.
    fn finish(&mut self, part: &mut Part<C>) {
        let Row { sums, seen, columns } = self;
        let last = columns.iter().max().map_or(0, |last| *last as usize / 64 + 1);
        let first = columns.iter().min().map_or(0, |first| *first as usize / 64);
        part.counts.push(columns.len() as u32);
        if last - first <= 4 * columns.len() {
            for (number, word) in (first..).zip(&mut seen[first..last]) {
                let mut bits = core::mem::take(word);
                while bits != 0 {
                    let column = number * 64 + bits.trailing_zeros() as usize;
                    bits &= bits - 1;
                    part.indices.push(column as u32);
                    part.values.push(sums[column]);
                }
            }
            columns.clear();
        } else {
            columns.sort_unstable();
            part.indices.extend_from_slice(columns);
            part.values.extend(columns.iter().map(|column| sums[*column as usize]));
            self.clear();
        }
    }

    /// Adds a row of `alpha · A`, or of `alpha` times the conjugated matrix.
    pub fn add_row<I: Index>(&mut self, (alpha, conjugated): (C, bool), a: &Matrix<'_, C, I>, row: usize) {
        a.row(row, |column, value| self.add(column, alpha * value.conj_if(conjugated)));
    }

    /// Adds a row of `alpha · A · B`.
    pub fn add_product<I: Index, J: Index>(
        &mut self,
        alpha: C,
        (a, b): (&Matrix<'_, C, I>, &Matrix<'_, C, J>),
        row: usize,
    ) {
        a.row(row, |middle, factor| {
            let factor = alpha * factor;
            b.row(middle, |column, value| self.add(column, factor * value));
        });
    }
}

/// How many products of entries lie in front of each row.
pub fn products<C: Scalar, I: Index, J: Index>(a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>) -> Vec<usize> {
    let mut before = vec![0; a.rows() + 1];
    for row in 0..a.rows() {
        let mut count = 0;
        a.row(row, |middle, _| count += b.before(middle + 1) - b.before(middle));
        before[row + 1] = before[row] + count;
    }
    before
}

/// `A · B`; both are by rows. None if it has more than `most` entries: where that may be, they are counted first.
pub fn multiply<C: Scalar, I: Index, J: Index>(
    a: &Matrix<'_, C, I>,
    b: &Matrix<'_, C, J>,
    most: usize,
) -> Option<Product<C>> {
    let before = products(a, b);
    let size @ (rows, cols) = (a.rows(), b.cols());
    let before = |row: usize| before[row];
    let add = |row, line: &mut Row<C>| line.add_product(C::ONE, (a, b), row);
    let may_be_more = before(rows).min(rows.saturating_mul(cols)) > most;
    if may_be_more && !has_at_most(most, size, before, add) {
        return None;
    }
    Some(sum_rows_in(most, size, before, add))
}

/// Whether the matrix of [`sum_rows`] has no more than so many entries; all cores stop when it has.
fn has_at_most<C: Scalar>(
    most: usize,
    (rows, cols): (usize, usize),
    before: impl Fn(usize) -> usize,
    add: impl Fn(usize, &mut Row<C>) + Sync,
) -> bool {
    let entries = AtomicUsize::new(0);
    on_cores(parts(rows, before).windows(2), |bounds| {
        let mut line = Row::new(cols);
        for row in bounds[0]..bounds[1] {
            add(row, &mut line);
            let here = line.columns.len();
            line.clear();
            if entries.fetch_add(here, Relaxed) + here > most {
                break;
            }
        }
    });
    entries.into_inner() <= most
}

/// A matrix by rows of a size that is the sum of what `add` adds for each row, its columns in order. `before` says how much there is to
/// do in front of a row.
pub fn sum_rows<C: Scalar>(
    (rows, cols): (usize, usize),
    before: impl Fn(usize) -> usize + Sync,
    add: impl Fn(usize, &mut Row<C>) + Sync,
) -> Product<C> {
    sum_rows_in(usize::MAX, (rows, cols), before, add)
}

/// As [`sum_rows`], of a matrix that has no more entries than `most`.
fn sum_rows_in<C: Scalar>(
    most: usize,
    (rows, cols): (usize, usize),
    before: impl Fn(usize) -> usize + Sync,
    add: impl Fn(usize, &mut Row<C>) + Sync,
) -> Product<C> {
    let bounds = parts(rows, &before);
    // Rows that are not in use: a core takes one for a part.
    let lines = Mutex::new(Vec::new());
    let made = on_cores(bounds.windows(2), |bounds| {
        let mut line = lines.lock().pop().unwrap_or_else(|| Row::new(cols));
        let rows = bounds[1] - bounds[0];
        let room = (before(bounds[1]) - before(bounds[0])).min(rows.saturating_mul(cols)).min(most);
        let mut part = Part {
            counts: Vec::with_capacity(rows),
            indices: Vec::with_capacity(room),
            values: Vec::with_capacity(room),
        };
        for row in bounds[0]..bounds[1] {
            add(row, &mut line);
            line.finish(&mut part);
        }
        lines.lock().push(line);
        part
    });
    Product::new(made)
}

/// The sums of [`multiply`] for a pattern that is known, in its order.
pub fn multiply_into<C: Scalar, I: Index, J: Index, K: Index>(
    a: &Matrix<'_, C, I>,
    b: &Matrix<'_, C, J>,
    pattern: (&Offsets<'_>, &[K], usize),
) -> Vec<C> {
    let before = products(a, b);
    let size = (a.rows(), b.cols());
    sum_rows_into(size, |row| before[row], |row, line| line.add_product(C::ONE, (a, b), row), pattern)
}

/// The sums of [`sum_rows`] for a pattern that is known, in its order.
pub fn sum_rows_into<C: Scalar, K: Index>(
    (rows, cols): (usize, usize),
    before: impl Fn(usize) -> usize,
    add: impl Fn(usize, &mut Row<C>) + Sync,
    (offsets, indices, base): (&Offsets<'_>, &[K], usize),
) -> Vec<C> {
    let bounds = parts(rows, before);
    let entries: Vec<usize> = bounds.iter().map(|row| offsets.at(*row)).collect();
    let mut values = vec![C::ZERO; indices.len()];
    on_cores(split(&mut values, &entries, 1).into_iter().zip(bounds.windows(2)), |(part, bounds)| {
        let mut line = Row::new(cols);
        let first = offsets.at(bounds[0]);
        for row in bounds[0]..bounds[1] {
            add(row, &mut line);
            for entry in offsets.at(row)..offsets.at(row + 1) {
                let column = indices[entry].place(base);
                if line.has(column) {
                    part[entry - first] = line.sums[column];
                }
            }
            line.clear();
        }
    });
    values
}

/// How many products of entries are added.
pub fn count_products<C: Scalar, I: Index, J: Index>(a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>) -> usize {
    products(a, b)[a.rows()]
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use super::*;

    /// All entries of a matrix, which are 1.
    fn full(rows: usize, cols: usize) -> Matrix<'static, f32, i32> {
        let offsets = (0..=rows).map(|row| (row * cols) as i64).collect();
        let indices = (0..rows * cols).map(|entry| (entry % cols) as i32).collect();
        Matrix::Csr {
            rows,
            cols,
            base: 0,
            offsets: Offsets::Wide(Cow::Owned(offsets), 0),
            indices: Cow::Owned(indices),
            values: Cow::Owned(vec![1.0; rows * cols]),
        }
    }

    #[test]
    fn a_product_of_more_entries_than_there_may_be_is_none() {
        let size = |product: Option<Product<f32>>| product.map(|it| it.len());
        let (column, row) = (full(100, 1), full(1, 100));
        assert_eq!(size(multiply(&column, &row, 9_999)), None);
        assert_eq!(size(multiply(&column, &row, 10_000)), Some(10_000));
        // Eighteen products of entries, which are nine sums.
        let (tall, wide) = (full(3, 2), full(2, 3));
        assert_eq!(size(multiply(&tall, &wide, 8)), None);
        let product = multiply(&tall, &wide, 9).unwrap();
        let mut values = [0.0; 9];
        product.copy_values(&mut values);
        assert_eq!((product.offsets, values), (vec![0, 3, 6, 9], [2.0; 9]));
    }
}
