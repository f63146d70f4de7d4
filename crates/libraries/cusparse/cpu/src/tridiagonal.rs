//! Systems with three diagonals.

use rayon::prelude::*;

use crate::Scalar;

/// Puts solutions in the places of right sides, which lie `ld` from each other, exchanging neighbouring rows where the lower one has the
/// greater pivot. The first of `lower` and the last of `upper` do not count.
pub fn solve_pivoting<C: Scalar>((lower, diagonal, upper): (&[C], &[C], &[C]), sides: &mut [C], ld: usize) {
    let n = diagonal.len();
    if n == 0 {
        return;
    }
    let size = |value: C| value.wide().norm();
    let (mut d, mut u, mut second) = (diagonal.to_vec(), upper.to_vec(), vec![C::ZERO; n]);
    // Of each step: whether rows were exchanged, and the factor of the upper one that the lower one loses.
    let mut steps = Vec::with_capacity(n);
    for row in 0..n - 1 {
        let below = lower[row + 1];
        if size(d[row]) >= size(below) {
            let factor = below / d[row];
            d[row + 1] = d[row + 1] - factor * u[row];
            steps.push((false, factor));
        } else {
            let factor = d[row] / below;
            let (next, beyond) = (d[row + 1], if row + 2 < n { u[row + 1] } else { C::ZERO });
            d[row] = below;
            d[row + 1] = u[row] - factor * next;
            (u[row], second[row]) = (next, beyond);
            if row + 2 < n {
                u[row + 1] = -(factor * beyond);
            }
            steps.push((true, factor));
        }
    }
    sides.par_chunks_mut(ld).for_each(|side| {
        for (row, (exchanged, factor)) in steps.iter().enumerate() {
            if *exchanged {
                side.swap(row, row + 1);
            }
            side[row + 1] = side[row + 1] - *factor * side[row];
        }
        for row in (0..n).rev() {
            let mut rest = side[row];
            if row + 1 < n {
                rest = rest - u[row] * side[row + 1];
            }
            if row + 2 < n {
                rest = rest - second[row] * side[row + 2];
            }
            side[row] = rest / d[row];
        }
    });
}

/// The same without exchanges.
pub fn solve_tridiagonal<C: Scalar>(
    (lower, diagonal, upper): (&[C], &[C], &[C]),
    sides: &mut [C],
    ld: usize,
) {
    let n = diagonal.len();
    if n == 0 {
        return;
    }
    let mut d = diagonal.to_vec();
    let mut factors = vec![C::ZERO; n];
    for row in 1..n {
        factors[row] = lower[row] / d[row - 1];
        d[row] = d[row] - factors[row] * upper[row - 1];
    }
    sides.par_chunks_mut(ld).for_each(|side| {
        for row in 1..n {
            side[row] = side[row] - factors[row] * side[row - 1];
        }
        side[n - 1] = side[n - 1] / d[n - 1];
        for row in (0..n - 1).rev() {
            side[row] = (side[row] - upper[row] * side[row + 1]) / d[row];
        }
    });
}
