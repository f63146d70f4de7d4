//! Reflections `I - tau·v·vᴴ`, and products of them in blocks of products of matrices.

use cublas_cpu::{Matrix, Op, Scalar, Side, gemm, vectorized};

use crate::dense::Dense;

/// Reflections that are applied at a time.
pub const BLOCK: i64 = 32;

/// The product of some reflections, `I - V·T·Vᴴ`, that change the rows from `from` on.
pub struct Block<S> {
    from: i64,
    v: Dense<S>,
    t: Dense<S>,
}

impl<S: Scalar> Block<S> {
    /// Of vectors that are stored in full, in the order of the product.
    pub fn new(from: i64, v: Dense<S>, tau: &[S]) -> Self {
        let count = v.columns;
        let gram = v.times(Op::C, &v, Op::N);
        let mut t = Dense::zeros(count, count);
        for i in 0..count {
            let minus = -tau[i as usize];
            for row in 0..i {
                let sum = (row..i).fold(S::zero(), |sum, k| sum + t.get(row, k) * gram.get(k, i));
                t.set(row, i, minus * sum);
            }
            t.set(i, i, tau[i as usize]);
        }
        Self { from, v, t }
    }

    /// Multiplies C, m by n, with the product or its conjugate transpose.
    ///
    /// # Safety
    /// C is there.
    pub unsafe fn apply(&self, side: Side, op: Op, m: i64, n: i64, c: Matrix<S>) {
        let (size, count) = (self.v.rows, self.v.columns);
        let (v, t) = (self.v.values.as_ptr(), self.t.values.as_ptr());
        let (one, zero) = (S::one(), S::zero());
        let (ldv, ldt) = (size.max(1), count.max(1));
        // SAFETY: the caller's word; the other matrices are of these sizes.
        unsafe {
            match side {
                Side::Left => {
                    let into = c.from(self.from, 0);
                    let (mut w, mut tw) = (Dense::zeros(count, n), Dense::zeros(count, n));
                    let (at, at_t) = (w.values.as_mut_ptr(), tw.values.as_mut_ptr());
                    let start = into.start();
                    gemm(Op::C, Op::N, count, n, size, one, v, ldv, start, c.ld(), zero, at, ldt);
                    gemm(op, Op::N, count, n, count, one, t, ldt, at, ldt, zero, at_t, ldt);
                    gemm(Op::N, Op::N, size, n, count, -one, v, ldv, at_t, ldt, one, start, c.ld());
                }
                Side::Right => {
                    let into = c.from(0, self.from);
                    let (mut w, mut wt) = (Dense::zeros(m, count), Dense::zeros(m, count));
                    let (at, at_t, ldw) = (w.values.as_mut_ptr(), wt.values.as_mut_ptr(), m.max(1));
                    let start = into.start();
                    gemm(Op::N, Op::N, m, count, size, one, start, c.ld(), v, ldv, zero, at, ldw);
                    gemm(Op::N, op, m, count, count, one, at, ldw, t, ldt, zero, at_t, ldw);
                    gemm(Op::N, Op::C, m, size, count, -one, at_t, ldw, v, ldv, one, start, c.ld());
                }
            }
        }
    }
}

/// A product of any number of reflections.
pub struct Product<S>(Vec<Block<S>>);

impl<S: Scalar> Product<S> {
    /// Of the vectors that `vector(i)` stores in full in a slice of zeros, `size` long; it tells where the slice's first element that is not
    /// zero stands at the earliest.
    pub fn new(size: i64, tau: &[S], vector: impl Fn(i64, &mut [S]) -> i64) -> Self {
        let count = tau.len() as i64;
        let blocks = (0..count).step_by(BLOCK as usize).map(|start| {
            let width = BLOCK.min(count - start);
            let mut v = Dense::zeros(size, width);
            let mut from = size;
            for i in 0..width {
                from = from.min(vector(start + i, v.column_mut(i)));
            }
            // SAFETY: a part of a matrix of ours.
            let v = unsafe { Dense::read(size - from, width, v.matrix().from(from, 0)) };
            Block::new(from, v, &tau[start as usize..(start + width) as usize])
        });
        Self(blocks.collect())
    }

    /// Multiplies C, m by n, with the product or its conjugate transpose.
    ///
    /// # Safety
    /// C is there.
    pub unsafe fn apply(&self, side: Side, op: Op, m: i64, n: i64, c: Matrix<S>) {
        let op = if op.transposes() { Op::C } else { Op::N };
        // The last one is the first to meet C from the left.
        let backwards = (side == Side::Left) != op.transposes();
        let count = self.0.len();
        for step in 0..count {
            let block = &self.0[if backwards { count - 1 - step } else { step }];
            // SAFETY: the caller's word.
            unsafe { block.apply(side, op, m, n, c) };
        }
    }

    /// The first columns of the product itself.
    pub fn columns(&self, size: i64, columns: i64) -> Dense<S> {
        let mut made = Dense::identity(size, columns);
        // SAFETY: a matrix of this size.
        unsafe { self.apply(Side::Left, Op::N, size, columns, made.matrix()) };
        made
    }
}

/// `C·(I - tau·v·vᴴ)`, v as many elements as C has columns. `along` is memory, as long as C's columns.
///
/// # Safety
/// C is there, and nothing of it is v's.
pub unsafe fn reflect_right<S: Scalar>(v: &[S], tau: S, along: &mut [S], c: Matrix<S>) {
    if !tau.is_zero() {
        reflect_rows(v, tau, along, c);
    }
}

vectorized! {
    /// [`reflect_right`], whose caller's word this relies on.
    fn reflect_rows[S: Scalar](v: &[S], tau: S, along: &mut [S], c: Matrix<S>) {
        // SAFETY: the caller's word.
        unsafe {
            multiply(c, v, along);
            for (at, v) in v.iter().enumerate() {
                let (by, into) = (tau * v.conj(), c.at(0, at as i64));
                for row in 0..along.len() {
                    *into.add(row) -= by * *along.get_unchecked(row);
                }
            }
        }
    }
}

/// `C·v`. Four columns at a time, and by index, since iterators' adapters stay calls in code for other vectors.
///
/// # Safety
/// C is there, with as many columns as v has elements and as many rows as the result.
#[inline(always)]
pub unsafe fn multiply<S: Scalar>(c: Matrix<S>, v: &[S], into: &mut [S]) {
    let (rows, columns) = (into.len(), v.len());
    let column = |at: usize| c.at(0, at as i64);
    into.fill(S::zero());
    let mut at = 0;
    // SAFETY: the caller's word; rows are below `rows`.
    unsafe {
        while at + 4 <= columns {
            let four = [column(at), column(at + 1), column(at + 2), column(at + 3)];
            let by = [v[at], v[at + 1], v[at + 2], v[at + 3]];
            for row in 0..rows {
                *into.get_unchecked_mut(row) += (by[0] * *four[0].add(row) + by[1] * *four[1].add(row))
                    + (by[2] * *four[2].add(row) + by[3] * *four[3].add(row));
            }
            at += 4;
        }
        while at < columns {
            for row in 0..rows {
                *into.get_unchecked_mut(row) += v[at] * *column(at).add(row);
            }
            at += 1;
        }
    }
}
