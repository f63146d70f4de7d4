//! What routines do with a column, for this processor's vectors.

use crate::level1::dot_part;
use crate::{Scalar, Stored, vectorized};

vectorized! {
    /// sums += factor · column
    pub(crate) fn add[S: Scalar, A: Stored<S>](sums: &mut [S], column: &[A], factor: S) {
        for (sum, element) in sums.iter_mut().zip(column) {
            *sum += factor * element.load();
        }
    }
}

vectorized! {
    /// sums += the sum of factor · column, for columns of one length: one pass over the sums for all of them.
    pub(crate) fn add_four[S: Scalar, A: Stored<S>](sums: &mut [S], columns: [&[A]; 4], factors: [S; 4]) {
        let n = columns.iter().fold(sums.len(), |n, column| n.min(column.len()));
        let [a, b, c, d] = columns.map(|column| &column[..n]);
        for (i, sum) in sums[..n].iter_mut().enumerate() {
            *sum += (factors[0] * a[i].load() + factors[1] * b[i].load())
                + (factors[2] * c[i].load() + factors[3] * d[i].load());
        }
    }
}

/// columnᵀ x, or columnᴴ x
pub(crate) fn dot<S: Scalar, A: Stored<S>>(column: &[A], x: &[S], conjugates: bool) -> S {
    if S::IS_COMPLEX && conjugates {
        dot_part(column, x, |a: S, x: S| a.conj() * x)
    } else {
        dot_part(column, x, |a: S, x: S| a * x)
    }
}
