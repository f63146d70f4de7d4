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

/// Sums that grow beside each other.
const LANES: usize = 8;

#[inline(always)]
fn total<S: Scalar>(sums: &[S; LANES]) -> S {
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

/// As [`add_four`], and each column's [`dot`] with `x`: the columns are read once for both.
pub(crate) fn add_and_dot_four<S: Scalar, A: Stored<S>>(
    sums: &mut [S],
    columns: [&[A]; 4],
    factors: [S; 4],
    x: &[S],
    conjugates: bool,
) -> [S; 4] {
    if S::IS_COMPLEX && conjugates {
        add_and_dot(sums, columns, factors, x, |a: S, x: S| a.conj() * x)
    } else {
        add_and_dot(sums, columns, factors, x, |a: S, x: S| a * x)
    }
}

vectorized! {
    fn add_and_dot[S: Scalar, A: Stored<S>](
        sums: &mut [S],
        columns: [&[A]; 4],
        factors: [S; 4],
        x: &[S],
        product: impl Fn(S, S) -> S,
    ) -> [S; 4] {
        let n = columns.iter().fold(sums.len().min(x.len()), |n, column| n.min(column.len()));
        let mut dots = [[S::zero(); LANES]; 4];
        let mut row = 0;
        // SAFETY: rows are below `n`. By index, since LLVM leaves an iterator's adapters calls here.
        unsafe {
            while row + LANES <= n {
                let mut adds = [S::zero(); LANES];
                for at in 0..4 {
                    for lane in 0..LANES {
                        let value = columns[at].get_unchecked(row + lane).load();
                        adds[lane] += factors[at] * value;
                        dots[at][lane] += product(value, *x.get_unchecked(row + lane));
                    }
                }
                #[expect(clippy::needless_range_loop, reason = "slower otherwise")]
                for lane in 0..LANES {
                    *sums.get_unchecked_mut(row + lane) += adds[lane];
                }
                row += LANES;
            }
            let mut totals = [total(&dots[0]), total(&dots[1]), total(&dots[2]), total(&dots[3])];
            while row < n {
                for at in 0..4 {
                    let value = columns[at].get_unchecked(row).load();
                    *sums.get_unchecked_mut(row) += factors[at] * value;
                    totals[at] += product(value, *x.get_unchecked(row));
                }
                row += 1;
            }
            totals
        }
    }
}

/// Four columns' [`dot`] with `x`, which is read once for all of them.
pub(crate) fn dot_four<S: Scalar, A: Stored<S>>(columns: [&[A]; 4], x: &[S], conjugates: bool) -> [S; 4] {
    if S::IS_COMPLEX && conjugates {
        dot_some(columns, x, |a: S, x: S| a.conj() * x)
    } else {
        dot_some(columns, x, |a: S, x: S| a * x)
    }
}

vectorized! {
    fn dot_some[S: Scalar, A: Stored<S>](columns: [&[A]; 4], x: &[S], product: impl Fn(S, S) -> S) -> [S; 4] {
        let n = columns.iter().fold(x.len(), |n, column| n.min(column.len()));
        let mut dots = [[S::zero(); 2 * LANES]; 4];
        let mut row = 0;
        // SAFETY: rows are below `n`. By index, as above.
        unsafe {
            while row + 2 * LANES <= n {
                for at in 0..4 {
                    #[expect(clippy::needless_range_loop, reason = "slower otherwise")]
                    for lane in 0..2 * LANES {
                        let value = columns[at].get_unchecked(row + lane).load();
                        dots[at][lane] += product(value, *x.get_unchecked(row + lane));
                    }
                }
                row += 2 * LANES;
            }
            let mut totals = [S::zero(); 4];
            for at in 0..4 {
                let mut sums = [S::zero(); LANES];
                for lane in 0..LANES {
                    sums[lane] = dots[at][lane] + dots[at][lane + LANES];
                }
                totals[at] = total(&sums);
            }
            while row < n {
                for at in 0..4 {
                    totals[at] += product(columns[at].get_unchecked(row).load(), *x.get_unchecked(row));
                }
                row += 1;
            }
            totals
        }
    }
}
