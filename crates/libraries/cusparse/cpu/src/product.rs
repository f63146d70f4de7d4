//! Products of a sparse matrix with a vector or a dense matrix.

use rayon::prelude::*;

use crate::isa::{Loop, vectors};
use crate::parts::split;
use crate::{Dense, DenseMut, Index, Layout, Matrix, Offsets, Scalar};

/// How `op(A)` follows from the matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operation {
    pub transposed: bool,
    pub conjugated: bool,
}

impl Operation {
    /// The size of what it makes of a matrix of that size.
    #[must_use]
    pub fn size(self, rows: usize, cols: usize) -> (usize, usize) {
        if self.transposed { (cols, rows) } else { (rows, cols) }
    }

    /// The same of a matrix that lies transposed.
    pub fn of(self, is_transposed: bool) -> Operation {
        Operation { transposed: self.transposed != is_transposed, ..self }
    }
}

/// `y = alpha · op(A) · x + beta · y`. What is in `y` is not looked at where `beta` is 0.
pub fn spmv<C: Scalar, I: Index>(
    a: &Matrix<'_, C, I>,
    operation: Operation,
    x: &[C],
    (alpha, beta): (C, C),
    y: &mut [C],
) {
    let bounds = a.parts();
    if operation.transposed {
        for (y, sum) in y.iter_mut().zip(transposed(a, &bounds, operation.conjugated, x)) {
            *y = blended(*y, sum, (alpha, beta));
        }
        return;
    }
    let parts: Vec<_> = split(y, &bounds, 1).into_iter().zip(&bounds).collect();
    parts.into_par_iter().with_max_len(1).for_each(|(y, first)| {
        vectors(Lines { a, conjugated: operation.conjugated, x, factors: (alpha, beta), first: *first, y });
    });
}

/// What `alpha · sum + beta · before` is in memory.
#[inline(always)]
fn blended<C: Scalar>(before: C, sum: C, (alpha, beta): (C, C)) -> C {
    let product = alpha * sum;
    if beta == C::ZERO { product } else { product + beta * before }
}

/// Some rows of a product with a vector.
struct Lines<'a, 'm, C: Scalar, I: Index> {
    a: &'a Matrix<'m, C, I>,
    conjugated: bool,
    x: &'a [C],
    factors: (C, C),
    first: usize,
    y: &'a mut [C],
}

impl<C: Scalar, I: Index> Lines<'_, '_, C, I> {
    #[inline(always)]
    fn each(self, sum: impl Fn(usize) -> C) {
        for (row, y) in (self.first..).zip(self.y) {
            *y = blended(*y, sum(row), self.factors);
        }
    }

    #[inline(always)]
    fn by_rows<O: Index>(self, offsets: (&[O], usize), indices: &[I], values: &[C], base: usize) {
        let (x, conjugated) = (self.x, self.conjugated);
        let offsets = (&offsets.0[self.first..][..self.y.len() + 1], offsets.1);
        for (bounds, y) in offsets.0.windows(2).zip(self.y) {
            let range = bounds[0].place(offsets.1)..bounds[1].place(offsets.1);
            let (indices, values) = (&indices[range.clone()], &values[range]);
            let sum = if conjugated {
                dot(indices, values, |index, value| value.conj() * x[index.place(base)])
            } else {
                dot(indices, values, |index, value| value * x[index.place(base)])
            };
            *y = blended(*y, sum, self.factors);
        }
    }
}

/// Four sums at a time, so that none waits for the one before.
#[inline(always)]
fn dot<C: Scalar, I: Index>(indices: &[I], values: &[C], product: impl Fn(I, C) -> C) -> C {
    let (fours, rest) = indices.as_chunks::<4>();
    let (value_fours, value_rest) = values.as_chunks::<4>();
    let mut sums = [C::ZERO; 4];
    for (indices, values) in fours.iter().zip(value_fours) {
        for k in 0..4 {
            sums[k] += product(indices[k], values[k]);
        }
    }
    let mut sum = (sums[0] + sums[1]) + (sums[2] + sums[3]);
    rest.iter().zip(value_rest).for_each(|(index, value)| sum += product(*index, *value));
    sum
}

impl<C: Scalar, I: Index> Loop for Lines<'_, '_, C, I> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        match self.a {
            Matrix::Csr { base, offsets: Offsets::Narrow(offsets, first), indices, values, .. } => {
                self.by_rows((offsets, *first), indices, values, *base);
            }
            Matrix::Csr { base, offsets: Offsets::Wide(offsets, first), indices, values, .. } => {
                self.by_rows((offsets, *first), indices, values, *base);
            }
            a => {
                let (x, conjugated) = (self.x, self.conjugated);
                self.each(|row| {
                    let mut sum = C::ZERO;
                    a.row(row, |column, value| sum += value.conj_if(conjugated) * x[column]);
                    sum
                });
            }
        }
    }
}

/// `Aᵀ · x`, or of the conjugated matrix.
fn transposed<C: Scalar, I: Index>(
    a: &Matrix<'_, C, I>,
    bounds: &[usize],
    conjugated: bool,
    x: &[C],
) -> Vec<C> {
    // Each part has sums of its own, which are not worth more than the entries are.
    let most = (a.entries() / a.cols().max(1) + 1).min(rayon::current_num_threads());
    let step = bounds.len().div_ceil(most).max(1);
    let mut starts: Vec<usize> = bounds.iter().copied().step_by(step).collect();
    starts.push(a.rows());
    let sums: Vec<Vec<C>> = starts
        .par_windows(2)
        .with_max_len(1)
        .map(|bounds| {
            let mut sums = vec![C::ZERO; a.cols()];
            for (row, factor) in (bounds[0]..bounds[1]).zip(&x[bounds[0]..bounds[1]]) {
                a.row(row, |column, value| sums[column] += value.conj_if(conjugated) * *factor);
            }
            sums
        })
        .collect();
    let mut sums = sums.into_iter();
    let mut y = sums.next().unwrap_or_else(|| vec![C::ZERO; a.cols()]);
    for more in sums {
        y.iter_mut().zip(&more).for_each(|(y, more)| *y += *more);
    }
    y
}

/// `C = alpha · op(A) · B + beta · C`, of a matrix B by rows without gaps that has as many columns as C.
pub fn spmm<C: Scalar, I: Index>(
    a: &Matrix<'_, C, I>,
    operation: Operation,
    b: &[C],
    factors: (C, C),
    mut c: DenseMut<'_, C>,
) {
    let Layout { rows, cols, ld, row_major } = c.layout;
    if rows == 0 || cols == 0 {
        return;
    }
    if operation.transposed {
        return spmm(&a.transposed(), Operation { transposed: false, ..operation }, b, factors, c);
    }
    let (bounds, conjugated) = (a.parts(), operation.conjugated);
    if row_major {
        // The last row may end in front of the leading dimension.
        let ends: Vec<usize> = bounds.iter().map(|row| (row * ld).min(c.layout.len())).collect();
        let parts: Vec<_> = split(c.values, &ends, 1).into_iter().zip(bounds.windows(2)).collect();
        parts.into_par_iter().with_max_len(1).for_each(|(to, bounds)| {
            vectors(Block { a, conjugated, b, width: cols, factors, rows: bounds[0]..bounds[1], to, ld });
        });
        return;
    }
    let mut computed = vec![C::ZERO; rows * cols];
    let parts: Vec<_> = split(&mut computed, &bounds, cols).into_iter().zip(bounds.windows(2)).collect();
    let plain = (C::ONE, C::ZERO);
    parts.into_par_iter().with_max_len(1).for_each(|(to, bounds)| {
        let rows = bounds[0]..bounds[1];
        vectors(Block { a, conjugated, b, width: cols, factors: plain, rows, to, ld: cols });
    });
    c.blend(&computed, factors.0, factors.1);
}

/// Some rows of a product with a dense matrix.
struct Block<'a, 'm, C: Scalar, I: Index> {
    a: &'a Matrix<'m, C, I>,
    conjugated: bool,
    b: &'a [C],
    width: usize,
    factors: (C, C),
    rows: core::ops::Range<usize>,
    to: &'a mut [C],
    ld: usize,
}

impl<C: Scalar, I: Index> Block<'_, '_, C, I> {
    /// Some columns of a row.
    #[inline(always)]
    fn columns(&mut self, row: usize, first: usize, sums: &mut [C]) {
        sums.fill(C::ZERO);
        let (b, width, conjugated) = (self.b, self.width, self.conjugated);
        let mut add = |column: usize, value: C| {
            let line = &b[column * width + first..][..sums.len()];
            add_scaled(sums, value.conj_if(conjugated), line);
        };
        match self.a {
            Matrix::Csr { base, offsets, indices, values, .. } => {
                let range = offsets.at(row)..offsets.at(row + 1);
                for (index, value) in indices[range.clone()].iter().zip(&values[range]) {
                    add(index.place(*base), *value);
                }
            }
            a => a.row(row, add),
        }
        let at = (row - self.rows.start) * self.ld + first;
        for (to, sum) in self.to[at..].iter_mut().zip(sums) {
            *to = blended(*to, *sum, self.factors);
        }
    }
}

/// `sums += factor · line`, in lines of which the compiler makes one or two vectors each.
#[inline(always)]
pub(crate) fn add_scaled<C: Scalar>(sums: &mut [C], factor: C, line: &[C]) {
    let (sixteens, sums) = sums.as_chunks_mut::<16>();
    let (lines, line) = line.as_chunks::<16>();
    add_lines(sixteens, factor, lines);
    let (fours, sums) = sums.as_chunks_mut::<4>();
    let (lines, line) = line.as_chunks::<4>();
    add_lines(fours, factor, lines);
    sums.iter_mut().zip(line).for_each(|(sum, value)| *sum += factor * *value);
}

#[inline(always)]
fn add_lines<C: Scalar, const W: usize>(sums: &mut [[C; W]], factor: C, lines: &[[C; W]]) {
    for (sums, line) in sums.iter_mut().zip(lines) {
        // All is read before anything is written, so that nothing may be in the way of vectors.
        let mut made = *sums;
        for (made, value) in made.iter_mut().zip(line) {
            *made += factor * *value;
        }
        *sums = made;
    }
}

/// Columns whose sums are made together: they stay in the cache next to the core.
const WIDTH: usize = 256;

impl<C: Scalar, I: Index> Loop for Block<'_, '_, C, I> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        let mut sums = [C::ZERO; WIDTH];
        for row in self.rows.clone() {
            for first in (0..self.width).step_by(WIDTH) {
                let count = WIDTH.min(self.width - first);
                self.columns(row, first, &mut sums[..count]);
            }
        }
    }
}

/// `A · x` of a dense matrix and a sparse vector.
pub fn dense_times<C: Scalar, I: Index>(
    a: Dense<'_, C>,
    conjugated: bool,
    (indices, values, base): (&[I], &[C], usize),
) -> Vec<C> {
    let mut y = vec![C::ZERO; a.layout.rows];
    for (index, x) in indices.iter().zip(values) {
        let column = index.place(base);
        assert!(column < a.layout.cols, "an entry behind the last");
        for (row, y) in y.iter_mut().enumerate() {
            *y += a.get(row, column).conj_if(conjugated) * *x;
        }
    }
    y
}

/// Some rows of a matrix of square blocks, each with its own begin and end.
pub struct Subset<'a, C> {
    pub rows: &'a [i32],
    pub begins: &'a [i32],
    pub ends: &'a [i32],
    pub indices: &'a [i32],
    pub values: &'a [C],
    pub base: usize,
    pub size: usize,
    pub row_major: bool,
}

impl<C: Scalar> Subset<'_, C> {
    /// `y = alpha · A · x + beta · y` in these rows of blocks alone. What is in `y` is not looked at where `beta` is 0.
    pub fn multiply(&self, (alpha, beta): (C, C), x: &[C], y: &mut [C]) {
        let size = self.size;
        for row in self.rows.iter().map(|row| row.place(self.base)) {
            for inner in 0..size {
                let mut sum = C::ZERO;
                let (first, step) = if self.row_major { (inner * size, 1) } else { (inner, size) };
                for block in self.begins[row].place(self.base)..self.ends[row].place(self.base) {
                    let (column, at) =
                        (self.indices[block].place(self.base) * size, block * size * size + first);
                    (0..size).for_each(|k| sum += self.values[at + k * step] * x[column + k]);
                }
                let y = &mut y[row * size + inner];
                *y = if beta == C::ZERO { alpha * sum } else { alpha * sum + beta * *y };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers of all signs and sizes, the same in each run.
    fn drawn(count: usize, seed: u64) -> Vec<f32> {
        let mut state = seed;
        let mut next = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as f32 / 1e9 - 1.0
        };
        (0..count).map(|_| next()).collect()
    }

    #[test]
    fn loops_for_vectors_give_the_same_numbers_as_those_for_any_processor() {
        let (rows, cols, each) = (37, 23, 9);
        let offsets: Vec<i32> = (0..=rows).map(|row| row * each).collect();
        let indices: Vec<i32> = (0..rows * each).map(|at| at * 7 % cols).collect();
        let values = drawn(indices.len(), 1);
        let (rows, cols) = (rows as usize, cols as usize);
        let a = Matrix::Csr {
            rows,
            cols,
            base: 0,
            offsets: Offsets::Narrow(&offsets, 0),
            indices: indices.into(),
            values: values.into(),
        };
        let (x, factors) = (drawn(cols, 2), (1.5, -0.5));
        let mut made = [drawn(rows, 3), drawn(rows, 3)];
        let [by_vectors, plainly] = &mut made;
        vectors(Lines { a: &a, conjugated: false, x: &x, factors, first: 0, y: by_vectors });
        Lines { a: &a, conjugated: false, x: &x, factors, first: 0, y: plainly }.run();
        assert_eq!(made[0], made[1]);
        // Lines of sixteen, of four and of single values.
        let width = 39;
        let b = drawn(cols * width, 4);
        let mut made = [drawn(rows * width, 5), drawn(rows * width, 5)];
        let [by_vectors, plainly] = &mut made;
        let block =
            |to| Block { a: &a, conjugated: false, b: &b, width, factors, rows: 0..rows, to, ld: width };
        vectors(block(by_vectors));
        block(plainly).run();
        assert_eq!(made[0], made[1]);
    }
}
