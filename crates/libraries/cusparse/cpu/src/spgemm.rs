//! Products of two sparse matrices by rows (Gustavson): a row of the product is a sum of rows of the second matrix.

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

/// `A · B`; both are by rows.
pub fn multiply<C: Scalar, I: Index, J: Index>(a: &Matrix<'_, C, I>, b: &Matrix<'_, C, J>) -> Product<C> {
    let before = products(a, b);
    sum_rows((a.rows(), b.cols()), |row| before[row], |row, line| line.add_product(C::ONE, (a, b), row))
}

/// A matrix by rows of a size that is the sum of what `add` adds for each row, its columns in order. `before` says how much there is to
/// do in front of a row.
pub fn sum_rows<C: Scalar>(
    (rows, cols): (usize, usize),
    before: impl Fn(usize) -> usize + Sync,
    add: impl Fn(usize, &mut Row<C>) + Sync,
) -> Product<C> {
    let bounds = parts(rows, &before);
    // Rows that are not in use: a core takes one for a part.
    let lines = Mutex::new(Vec::new());
    let made = on_cores(bounds.windows(2), |bounds| {
        let mut line = lines.lock().pop().unwrap_or_else(|| Row::new(cols));
        let most = (before(bounds[1]) - before(bounds[0])).min((bounds[1] - bounds[0]).saturating_mul(cols));
        let mut part = Part {
            counts: Vec::with_capacity(bounds[1] - bounds[0]),
            indices: Vec::with_capacity(most),
            values: Vec::with_capacity(most),
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
