//! Systems with three or five diagonals.

use crate::Scalar;
use crate::parts::pieces;

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
    pieces(sides, ld, 1, &|_, side| {
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
    pieces(sides, ld, 1, &|_, side| {
        for row in 1..n {
            side[row] = side[row] - factors[row] * side[row - 1];
        }
        side[n - 1] = side[n - 1] / d[n - 1];
        for row in (0..n - 1).rev() {
            side[row] = (side[row] - upper[row] * side[row + 1]) / d[row];
        }
    });
}

/// One system with `width` diagonals on each side of the middle one, exchanging rows so that pivots are the greatest there are: `diagonals`
/// are from the lowest to the highest, and entry i of each is in row i. What would lie outside of the matrix does not count.
pub fn solve_banded<C: Scalar>(diagonals: &[&[C]], x: &mut [C]) {
    let (n, width) = (x.len(), diagonals.len() / 2);
    // Exchanges make rows longer to the right by as many entries as there are diagonals below.
    let length = 3 * width + 1;
    let mut rows = vec![C::ZERO; n * length];
    // Entry k of row i is of column i + k − width.
    for (k, diagonal) in diagonals.iter().enumerate() {
        for i in 0..n {
            if (width..n + width).contains(&(i + k)) {
                rows[i * length + k] = diagonal[i];
            }
        }
    }
    let at = |row: usize, column: usize| row * length + column + width - row;
    let size = |value: C| value.wide().norm();
    for step in 0..n {
        let (below, right) = (n.min(step + width + 1), n.min(step + 2 * width + 1));
        let mut pivot = step;
        for row in step + 1..below {
            if size(rows[at(row, step)]) > size(rows[at(pivot, step)]) {
                pivot = row;
            }
        }
        if pivot != step {
            (step..right).for_each(|column| rows.swap(at(pivot, column), at(step, column)));
            x.swap(pivot, step);
        }
        for row in step + 1..below {
            let factor = rows[at(row, step)] / rows[at(step, step)];
            for column in step + 1..right {
                rows[at(row, column)] = rows[at(row, column)] - factor * rows[at(step, column)];
            }
            x[row] = x[row] - factor * x[step];
        }
    }
    for row in (0..n).rev() {
        let mut rest = x[row];
        for column in row + 1..n.min(row + 2 * width + 1) {
            rest = rest - rows[at(row, column)] * x[column];
        }
        x[row] = rest / rows[at(row, row)];
    }
}
