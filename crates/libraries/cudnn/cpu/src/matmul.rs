//! Products of matrices, of as many as the sizes in front of the last two say.

use cublas_cpu::{Op, gemm};

use crate::value::Value;

/// Whether `c = a · b` has these sizes; a batch of one factor is repeated, or one for several of the result's.
pub fn fits(a: &[usize], b: &[usize], c: &[usize]) -> bool {
    let n = c.len();
    if n < 2 || a.len() != n || b.len() != n {
        return false;
    }
    let batches = (0..n - 2).all(|at| c[at].is_multiple_of(a[at]) && c[at].is_multiple_of(b[at]));
    batches && a[n - 2] == c[n - 2] && b[n - 1] == c[n - 1] && a[n - 1] == b[n - 2]
}

/// `c = a · b`, rows behind each other.
pub fn product<V: Value>(a: (&[V], &[usize]), b: (&[V], &[usize]), c: (&mut [V], &[usize])) {
    let (c, sizes) = c;
    let n = sizes.len();
    let (rows, columns, depth) = (sizes[n - 2], sizes[n - 1], a.1[n - 1]);
    // Where the matrix of a batch begins, of which each of so many of the result's takes one.
    let first = |of: &[usize], mut batch: usize, size: usize| {
        let (mut at, mut stride) = (0, 1);
        for axis in (0..n - 2).rev() {
            let place = batch % sizes[axis];
            batch /= sizes[axis];
            at += place / (sizes[axis] / of[axis]) * stride;
            stride *= of[axis];
        }
        at * size
    };
    crate::pieces(c, rows * columns, rows * columns * depth, |batch, c| {
        let (a_at, b_at) = (first(a.1, batch, rows * depth), first(b.1, batch, depth * columns));
        let (m, n, k) = (columns as i64, rows as i64, depth as i64);
        let (a, b) = (a.0[a_at..].as_ptr(), b.0[b_at..].as_ptr());
        // By columns it is the product of the transposed ones.
        // SAFETY: the matrices are there in full, and c is apart.
        unsafe { gemm(Op::N, Op::N, m, n, k, V::one(), b, m, a, k, V::zero(), c.as_mut_ptr(), m) };
    });
}
