//! Products of a sparse matrix with a vector or a dense matrix.

#[cfg(target_arch = "x86_64")]
use crate::avx512::{self, Gather};
#[cfg(target_arch = "x86_64")]
use crate::isa::Avx512;
use crate::isa::{Loop, vectors};
use crate::parts::{on_cores, split};
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
    on_cores(split(y, &bounds, 1).into_iter().zip(&bounds), |(y, first)| {
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

    /// `sum` makes that of a row's products, in the order of [`dot`].
    #[inline(always)]
    fn by_rows<O: Index>(
        self,
        offsets: (&[O], usize),
        indices: &[I],
        values: &[C],
        mut sum: impl FnMut(&[I], &[C]) -> C,
    ) {
        let offsets = (&offsets.0[self.first..][..self.y.len() + 1], offsets.1);
        let mut begin = offsets.0[0].place(offsets.1);
        for (end, y) in offsets.0[1..].iter().zip(self.y) {
            let range = begin..end.place(offsets.1);
            begin = range.end;
            *y = blended(*y, sum(&indices[range.clone()], &values[range]), self.factors);
        }
    }

    /// A matrix by rows, one at a time.
    #[inline(always)]
    fn plainly<O: Index>(self, offsets: (&[O], usize), indices: &[I], values: &[C], base: usize) {
        let x = self.x;
        if self.conjugated {
            let product = |index: I, value: C| value.conj() * x[index.place(base)];
            self.by_rows(offsets, indices, values, |indices, values| dot(indices, values, product));
        } else {
            let product = |index: I, value: C| value * x[index.place(base)];
            self.by_rows(offsets, indices, values, |indices, values| dot(indices, values, product));
        }
    }

    /// As [`Self::plainly`], eight entries at a time.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn gathered<O: Index>(
        self,
        offsets: (&[O], usize),
        indices: &[I],
        values: &[C],
        base: usize,
        has: Avx512,
    ) {
        let Some(mut gather) = Gather::new(has, self.x, base) else {
            return self.plainly(offsets, indices, values, base);
        };
        let offsets = (&offsets.0[self.first..][..self.y.len() + 1], offsets.1);
        let mut begins = [offsets.0[0].place(offsets.1); 9];
        let (groups, rest) = self.y.as_chunks_mut::<8>();
        let (ends, ends_rest) = offsets.0[1..].as_chunks::<8>();
        for (ends, y) in ends.iter().zip(groups) {
            begins[0] = begins[8];
            for row in 0..8 {
                begins[row + 1] = ends[row].place(offsets.1);
            }
            let sums = gather.dots(&begins, indices, values);
            let mut made = *y;
            for row in 0..8 {
                made[row] = blended(made[row], sums[row], self.factors);
            }
            *y = made;
        }
        // Rows behind the last are empty.
        begins = [begins[8]; 9];
        for (row, end) in ends_rest.iter().enumerate() {
            begins[row + 1..].fill(end.place(offsets.1));
        }
        let sums = gather.dots(&begins, indices, values);
        for (y, sum) in rest.iter_mut().zip(sums) {
            *y = blended(*y, sum, self.factors);
        }
        gather.end();
    }
}

/// Eight sums at a time, so that none waits for the one before: those of [`Gather`].
#[inline(always)]
fn dot<C: Scalar, I: Index>(indices: &[I], values: &[C], product: impl Fn(I, C) -> C) -> C {
    let (eights, rest) = indices.as_chunks::<8>();
    let (value_eights, value_rest) = values.as_chunks::<8>();
    let mut sums = [C::ZERO; 8];
    for (indices, values) in eights.iter().zip(value_eights) {
        for k in 0..8 {
            sums[k] += product(indices[k], values[k]);
        }
    }
    let rest = rest.iter().zip(value_rest);
    rest.zip(&mut sums).for_each(|((index, value), sum)| *sum += product(*index, *value));
    let fours = [0, 1, 2, 3].map(|k| sums[k] + sums[k + 4]);
    (fours[0] + fours[2]) + (fours[1] + fours[3])
}

impl<C: Scalar, I: Index> Loop for Lines<'_, '_, C, I> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        match self.a {
            Matrix::Csr { base, offsets: Offsets::Narrow(offsets, first), indices, values, .. } => {
                self.plainly((offsets, *first), indices, values, *base);
            }
            Matrix::Csr { base, offsets: Offsets::Wide(offsets, first), indices, values, .. } => {
                self.plainly((offsets, *first), indices, values, *base);
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

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn run_avx512(self, has: Avx512) {
        match self.a {
            Matrix::Csr { base, offsets: Offsets::Narrow(offsets, first), indices, values, .. } => {
                self.gathered((offsets, *first), indices, values, *base, has);
            }
            Matrix::Csr { base, offsets: Offsets::Wide(offsets, first), indices, values, .. } => {
                self.gathered((offsets, *first), indices, values, *base, has);
            }
            _ => self.run(),
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
    let sums: Vec<Vec<C>> = on_cores(starts.windows(2), |bounds| {
        let mut sums = vec![C::ZERO; a.cols()];
        for (row, factor) in (bounds[0]..bounds[1]).zip(&x[bounds[0]..bounds[1]]) {
            a.row(row, |column, value| sums[column] += value.conj_if(conjugated) * *factor);
        }
        sums
    });
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
        on_cores(split(c.values, &ends, 1).into_iter().zip(bounds.windows(2)), |(to, bounds)| {
            vectors(Block { a, conjugated, b, width: cols, factors, rows: bounds[0]..bounds[1], to, ld });
        });
        return;
    }
    let mut computed = vec![C::ZERO; rows * cols];
    let plain = (C::ONE, C::ZERO);
    on_cores(split(&mut computed, &bounds, cols).into_iter().zip(bounds.windows(2)), |(to, bounds)| {
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
    /// `N` times `W` columns of a row, whose sums stay in registers.
    #[inline(always)]
    fn columns<const W: usize, const N: usize>(&mut self, row: usize, first: usize) {
        let (b, width, conjugated) = (self.b, self.width, self.conjugated);
        let mut sums = [[C::ZERO; W]; N];
        let line = |column: usize| b[column * width + first..].as_chunks().0.first_chunk();
        let lines = |column: usize| line(column).expect("as many columns");
        match self.a {
            Matrix::Csr { base, offsets, indices, values, .. } => {
                let range = offsets.at(row)..offsets.at(row + 1);
                for (index, value) in indices[range.clone()].iter().zip(&values[range]) {
                    add_scaled(&mut sums, value.conj_if(conjugated), lines(index.place(*base)));
                }
            }
            a => a.row(row, |column, value| {
                add_scaled(&mut sums, value.conj_if(conjugated), lines(column));
            }),
        }
        let at = (row - self.rows.start) * self.ld + first;
        let to = self.to[at..].as_chunks_mut::<W>().0.first_chunk_mut::<N>().expect("as many columns");
        for (to, sums) in to.iter_mut().zip(sums) {
            let mut made = *to;
            for (made, sum) in made.iter_mut().zip(sums) {
                *made = blended(*made, sum, self.factors);
            }
            *to = made;
        }
    }
}

/// `sums += factor · lines`
#[inline(always)]
pub(crate) fn add_scaled<C: Scalar, const W: usize, const N: usize>(
    sums: &mut [[C; W]; N],
    factor: C,
    lines: &[[C; W]; N],
) {
    for (sums, line) in sums.iter_mut().zip(lines) {
        // All is read before anything is written, so that nothing may be in the way of vectors.
        let mut made = *sums;
        for (made, value) in made.iter_mut().zip(line) {
            *made += factor * *value;
        }
        *sums = made;
    }
}

impl<C: Scalar, I: Index> Loop for Block<'_, '_, C, I> {
    type Out = ();

    #[inline(always)]
    fn run(mut self) {
        for row in self.rows.clone() {
            let mut first = 0;
            while first < self.width {
                first += match self.width - first {
                    32.. => {
                        self.columns::<16, 2>(row, first);
                        32
                    }
                    16.. => {
                        self.columns::<16, 1>(row, first);
                        16
                    }
                    8.. => {
                        self.columns::<8, 1>(row, first);
                        8
                    }
                    4.. => {
                        self.columns::<4, 1>(row, first);
                        4
                    }
                    _ => {
                        self.columns::<1, 1>(row, first);
                        1
                    }
                };
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn run_avx512(self, has: Avx512) {
        let Matrix::Csr { base, offsets, indices, values, .. } = self.a else { return self.run() };
        if !avx512::fills_vectors::<C>() {
            return self.run();
        }
        let Block { b, width, factors, ld, .. } = self;
        let rows = avx512::Rows { indices, values, base: *base, b, width, factors };
        for (row, to) in self.rows.zip(self.to.chunks_mut(ld)) {
            rows.multiply(has, offsets.at(row)..offsets.at(row + 1), to);
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
    use std::panic::AssertUnwindSafe;

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

    /// Rows of as many entries by turns.
    fn some<C: Scalar, I: Index>(
        base: usize,
        turns: &[usize],
        of: impl Fn(f32) -> C,
    ) -> (Vec<I>, Vec<I>, Vec<C>) {
        let (rows, cols) = (37, 23);
        let lengths = (0..rows).map(|row| turns[row % turns.len()]);
        let mut offsets: Vec<I> = vec![I::number(0, base)];
        offsets.extend(lengths.scan(0, |sum, length| {
            *sum += length;
            Some(I::number(*sum, base))
        }));
        let count = offsets[rows].place(base);
        let indices = (0..count).map(|at| I::number(at * 7 % cols, base)).collect();
        (offsets, indices, drawn(count, 1).into_iter().map(of).collect())
    }

    fn compared<C: Scalar, I: Index>(base: usize, of: impl Fn(f32) -> C) {
        // None, a few, and more than a vector has; and as many in nearly each row.
        let even = [3, 4, 5, 6, 7].map(|few| vec![few; 12]).map(|few| [few, vec![2, 9]].concat());
        for turns in even.into_iter().chain([vec![0, 3, 9, 16, 21]]) {
            compared_by::<C, I>(base, &turns, &of);
        }
    }

    fn compared_by<C: Scalar, I: Index>(base: usize, turns: &[usize], of: impl Fn(f32) -> C) {
        let (offsets, indices, values): (Vec<I>, Vec<I>, Vec<C>) = some(base, turns, &of);
        let offsets: Vec<i64> = offsets.into_iter().map(|offset| offset.place(base) as i64).collect();
        let (rows, cols) = (37, 23);
        let offsets_were: Vec<usize> = offsets.iter().map(|offset| *offset as usize).collect();
        let entries = (indices.clone(), values.clone());
        let a = Matrix::Csr {
            rows,
            cols,
            base,
            offsets: Offsets::Wide(offsets.into(), 0),
            indices: indices.into(),
            values: values.into(),
        };
        let drawn = |count: usize, seed: u64| drawn(count, seed).into_iter().map(&of).collect::<Vec<C>>();
        let x = drawn(cols, 2);
        for factors in [(of(1.5), of(-0.5)), (C::ONE, C::ZERO)] {
            let mut made = [drawn(rows, 3), drawn(rows, 3)];
            let [by_vectors, plainly] = &mut made;
            vectors(Lines { a: &a, conjugated: false, x: &x, factors, first: 0, y: by_vectors });
            Lines { a: &a, conjugated: false, x: &x, factors, first: 0, y: plainly }.run();
            assert_eq!(made[0], made[1]);
            let before = drawn(rows, 3);
            for (row, (made, before)) in made[0].iter().zip(before).enumerate() {
                let range = offsets_were[row]..offsets_were[row + 1];
                let (indices, values) = (&entries.0[range.clone()], &entries.1[range]);
                let sum = dot(indices, values, |index, value| value * x[index.place(base)]);
                assert_eq!(*made, blended(before, sum, factors), "{turns:?}");
            }
            // Several vectors, and some of their lanes; with a gap behind each row.
            for width in [1, 4, 7, 16, 39, 150] {
                let (b, ld) = (drawn(cols * width, 4), width + 3);
                let mut made = [drawn(rows * ld, 5), drawn(rows * ld, 5)];
                let [by_vectors, plainly] = &mut made;
                let block =
                    |to| Block { a: &a, conjugated: false, b: &b, width, factors, rows: 0..rows, to, ld };
                vectors(block(by_vectors));
                block(plainly).run();
                assert_eq!(made[0], made[1]);
                let gaps = drawn(rows * ld, 5);
                let is_kept = |row: usize| made[0][row * ld + width..][..3] == gaps[row * ld + width..][..3];
                assert!((0..rows).all(is_kept), "something was written between rows");
            }
        }
    }

    #[test]
    fn loops_for_vectors_give_the_same_numbers_as_those_for_any_processor() {
        compared::<f32, i32>(0, |it| it);
        compared::<f32, i64>(1, |it| it);
        compared::<f64, i32>(1, f64::from);
        compared::<f64, i64>(0, f64::from);
        compared::<crate::Complex<f32>, i32>(0, |it| crate::Complex::new(it, it - 1.0));
    }

    #[test]
    fn an_index_out_of_its_vector_ends_the_work() {
        fn ends<C: Scalar, I: Index>(index: usize, base: usize) {
            let (indices, values) = (vec![I::number(index, 0); 1], vec![C::ONE; 1]);
            let a = || Matrix::Csr {
                rows: 1,
                cols: 5,
                base,
                offsets: Offsets::Narrow(&[0, 1], 0),
                indices: indices.clone().into(),
                values: values.clone().into(),
            };
            let (x, factors) = ([C::ONE; 40], (C::ONE, C::ZERO));
            let product =
                AssertUnwindSafe(|| spmv(&a(), Operation::default(), &x[..5], factors, &mut [C::ZERO]));
            assert!(std::panic::catch_unwind(product).is_err(), "{index} counted from {base}");
            let layout = Layout { rows: 1, cols: 8, ld: 8, row_major: true };
            let product = AssertUnwindSafe(|| {
                let values = &mut [C::ZERO; 8];
                spmm(&a(), Operation::default(), &x, factors, DenseMut { layout, values });
            });
            assert!(std::panic::catch_unwind(product).is_err(), "{index} counted from {base}");
        }
        for (index, base) in [(5, 0), (0, 1), (6, 1), (i32::MAX as usize, 0)] {
            ends::<f32, i32>(index, base);
            ends::<f64, i32>(index, base);
            ends::<f32, i64>(index, base);
            ends::<f64, i64>(index, base);
        }
    }
}
