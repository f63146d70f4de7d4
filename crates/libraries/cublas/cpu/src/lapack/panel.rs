//! `A = Q·R` and `A = P·L·U` of few columns, one after the other, in a copy whose columns are groups of eight rows: no loop has rows
//! left over, which in short columns would take longer than the others.

#![expect(
    clippy::needless_range_loop,
    reason = "iterators are calls, which LLVM leaves out of line in code for other vectors"
)]

use num_traits::{Float as _, Zero as _};

use super::larfg;
use crate::matrix::Matrix;
use crate::{Scalar, vectorized};

/// Rows of a group.
const ROWS: usize = 8;
type Group<S> = [S; ROWS];

/// Columns that are reflected at a time: v is read once for all of them.
const BESIDE: usize = 4;

/// A copy of a matrix; what fills a column's last group is zero.
struct Panel<S> {
    rows: usize,
    columns: usize,
    /// In each column.
    groups: usize,
    values: Vec<Group<S>>,
}

impl<S: Scalar> Panel<S> {
    /// # Safety
    /// The matrix is there.
    unsafe fn read(m: i64, n: i64, a: Matrix<S>) -> Self {
        let (rows, columns) = (m.max(0) as usize, n.max(0) as usize);
        let groups = rows.div_ceil(ROWS);
        let mut values = vec![[S::zero(); ROWS]; groups * columns];
        for column in 0..columns {
            let into = &mut values[column * groups..][..groups];
            // SAFETY: the caller's word.
            into.as_flattened_mut()[..rows].copy_from_slice(unsafe { a.column(column as i64, m) });
        }
        Self { rows, columns, groups, values }
    }

    /// # Safety
    /// The matrix is there.
    unsafe fn write(&self, a: Matrix<S>) {
        for column in 0..self.columns {
            let from = self.values[column * self.groups..][..self.groups].as_flattened();
            // SAFETY: the caller's word.
            unsafe { a.column_mut(column as i64, self.rows as i64) }.copy_from_slice(&from[..self.rows]);
        }
    }

    /// A column, and those behind it.
    fn split(&mut self, column: usize) -> (&mut [Group<S>], &mut [Group<S>]) {
        let (before, behind) = self.values.split_at_mut((column + 1) * self.groups);
        (&mut before[column * self.groups..], behind)
    }
}

/// Factors m by n in its place: R in the upper triangle, below it and in `tau` the reflections `I - tau·v·vᴴ` whose product Q is.
///
/// # Safety
/// The matrix is there, and room for min(m, n) values of `tau`.
pub unsafe fn reflections<S: Scalar>(m: i64, n: i64, a: Matrix<S>, tau: *mut S) {
    // SAFETY: the caller's word.
    let mut panel = unsafe { Panel::read(m, n, a) };
    let rows = panel.rows;
    for step in 0..rows.min(panel.columns) {
        let (column, beside) = panel.split(step);
        let factor = match reflection(step, column) {
            Some(factor) => factor,
            None => {
                let rest = &mut column.as_flattened_mut()[step..rows];
                let (first, others) = (rest.as_mut_ptr(), rest.as_mut_ptr().wrapping_add(1));
                // SAFETY: as many elements as the slice has.
                unsafe { larfg(rest.len() as i64, first, others, 1) }
            }
        };
        // SAFETY: the caller's word.
        unsafe { tau.add(step).write(factor) };
        if !factor.is_zero() {
            reflect(step, column, factor.conj(), beside);
        }
    }
    // SAFETY: the caller's word.
    unsafe { panel.write(a) };
}

/// Factors m by n in its place: U in the upper triangle, below it L without its ones. `pivot` is told of each row with which another one is
/// swapped, counted from 0, if there is pivoting. The answer is the first diagonal element of U, counted from 1, that is exactly zero, or
/// 0; what stands below a zero is taken off as it is.
///
/// # Safety
/// The matrix is there.
pub unsafe fn eliminations<S: Scalar>(
    m: i64,
    n: i64,
    a: Matrix<S>,
    pivoting: bool,
    mut pivot: impl FnMut(i64, i64),
) -> i64 {
    // SAFETY: the caller's word.
    let mut panel = unsafe { Panel::read(m, n, a) };
    let mut info = 0;
    for step in 0..panel.rows.min(panel.columns) {
        let (column, _) = panel.split(step);
        let other = if pivoting { largest(step, column) } else { step };
        pivot(step as i64, other as i64);
        if other != step {
            let all = panel.values.as_flattened_mut();
            for column in all.chunks_exact_mut(panel.groups * ROWS) {
                column.swap(step, other);
            }
        }
        let (column, beside) = panel.split(step);
        let divisor = column.as_flattened()[step];
        if divisor.is_zero() && info == 0 {
            info = step as i64 + 1;
        }
        eliminate(step, column, if divisor.is_zero() { S::one() } else { divisor }, beside);
    }
    // SAFETY: the caller's word.
    unsafe { panel.write(a) };
    info
}

/// The group's elements from `inside` on, or from one later, the others zero.
#[inline(always)]
fn from<S: Scalar>(group: Group<S>, inside: usize) -> Group<S> {
    let mut kept = [S::zero(); ROWS];
    for row in 0..ROWS {
        kept[row] = if row >= inside { group[row] } else { S::zero() };
    }
    kept
}

/// [`BESIDE`] columns, from a group on.
#[inline(always)]
fn apart<S>(columns: &mut [Group<S>], groups: usize, first: usize) -> [&mut [Group<S>]; BESIDE] {
    let (one, rest) = columns.split_at_mut(groups);
    let (two, rest) = rest.split_at_mut(groups);
    let (three, four) = rest.split_at_mut(groups);
    [&mut one[first..], &mut two[first..], &mut three[first..], &mut four[first..]]
}

/// Eight sums' sum.
#[inline(always)]
pub(super) fn total<N: Copy + std::ops::Add<Output = N>>(sums: [N; ROWS]) -> N {
    ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]))
}

vectorized! {
    /// [`larfg`] of a column from the row `step` on, unless squares of its elements are too large or too small.
    fn reflection[S: Scalar](step: usize, column: &mut [Group<S>]) -> Option<S> {
        let (first, inside) = (step / ROWS, step % ROWS);
        let square = |x: S| x.real() * x.real() + x.imag() * x.imag();
        let mut squares = [S::Real::zero(); ROWS];
        let top = from(column[first], inside + 1);
        for row in 0..ROWS {
            squares[row] = square(top[row]);
        }
        for group in &column[first + 1..] {
            for row in 0..ROWS {
                squares[row] += square(group[row]);
            }
        }
        let others = total(squares);
        let alpha = column[first][inside];
        let all = others + square(alpha);
        let small = S::Real::min_positive_value() / (S::Real::epsilon() * S::Real::epsilon());
        // Also where something is not a number.
        if !(others >= small && all < small.recip()) {
            return None;
        }
        let length = all.sqrt();
        let beta = if alpha.real() < S::Real::zero() { length } else { -length };
        let divisor = alpha - S::from_real(beta);
        let mut under = column[first];
        for row in 0..ROWS {
            under[row] = under[row].over(divisor);
        }
        column[first][inside + 1..].copy_from_slice(&under[inside + 1..]);
        for group in &mut column[first + 1..] {
            for row in 0..ROWS {
                group[row] = group[row].over(divisor);
            }
        }
        column[first][inside] = S::from_real(beta);
        Some(S::from_real((beta - alpha.real()) / beta).with_imag(-alpha.imag() / beta))
    }
}

vectorized! {
    /// `(I - tau·v·vᴴ)·C` for the columns of C, from the row `step` on; v's first element is one and not stored.
    fn reflect[S: Scalar](step: usize, v: &[Group<S>], tau: S, c: &mut [Group<S>]) {
        let (first, inside) = (step / ROWS, step % ROWS);
        let groups = v.len();
        let mut top = from(v[first], inside);
        top[inside] = S::one();
        let v = &v[first + 1..];
        let mut columns = c.chunks_exact_mut(BESIDE * groups);
        for four in &mut columns {
            reflect_few(inside, top, v, tau, apart(four, groups, first));
        }
        for column in columns.into_remainder().chunks_exact_mut(groups) {
            reflect_few(inside, top, v, tau, [&mut column[first..]]);
        }
    }
}

#[inline(always)]
fn reflect_few<S: Scalar, const N: usize>(
    inside: usize,
    top: Group<S>,
    v: &[Group<S>],
    tau: S,
    columns: [&mut [Group<S>]; N],
) {
    let rest = v.len();
    let mut sums = [[S::zero(); ROWS]; N];
    for at in 0..N {
        assert!(columns[at].len() == rest + 1, "a column is as long as the reflection");
        // What stands above is no number of this product's, and may be none at all.
        let under = from(columns[at][0], inside);
        for row in 0..ROWS {
            sums[at][row] = top[row].conj() * under[row];
        }
    }
    // SAFETY: groups are below the columns' length, which was looked at.
    unsafe {
        for group in 0..rest {
            let v = v.get_unchecked(group);
            for at in 0..N {
                let column = columns[at].get_unchecked(group + 1);
                for row in 0..ROWS {
                    sums[at][row] += v[row].conj() * column[row];
                }
            }
        }
        let mut by = [S::zero(); N];
        for at in 0..N {
            by[at] = tau * total(sums[at]);
        }
        for at in 0..N {
            let group = columns[at].get_unchecked_mut(0);
            for row in 0..ROWS {
                let less = group[row] - by[at] * top[row];
                group[row] = if row >= inside { less } else { group[row] };
            }
        }
        for group in 0..rest {
            let v = v.get_unchecked(group);
            for at in 0..N {
                let column = columns[at].get_unchecked_mut(group + 1);
                for row in 0..ROWS {
                    column[row] -= by[at] * v[row];
                }
            }
        }
    }
}

vectorized! {
    /// The row with the first of the largest elements from the row `step` on; one that is not a number counts as infinite.
    fn largest[S: Scalar](step: usize, column: &[Group<S>]) -> usize {
        let (first, inside) = (step / ROWS, step % ROWS);
        let (mut best, mut places) = ([S::Real::zero(); ROWS], [first as u32; ROWS]);
        let top = from(column[first], inside);
        for row in 0..ROWS {
            best[row] = size(top[row]);
        }
        for group in first + 1..column.len() {
            for row in 0..ROWS {
                let size = size(column[group][row]);
                let larger = size > best[row];
                best[row] = if larger { size } else { best[row] };
                places[row] = if larger { group as u32 } else { places[row] };
            }
        }
        let mut found = step;
        let mut most = S::Real::zero();
        for row in 0..ROWS {
            let place = places[row] as usize * ROWS + row;
            if best[row] > most || (best[row] == most && most > S::Real::zero() && place < found) {
                (most, found) = (best[row], place);
            }
        }
        found
    }
}

#[inline(always)]
fn size<S: Scalar>(of: S) -> S::Real {
    let size = of.abs1();
    if size.is_nan() { S::Real::infinity() } else { size }
}

vectorized! {
    /// Divides what stands below the row `step`, and takes as much of it off the columns beside.
    fn eliminate[S: Scalar](step: usize, column: &mut [Group<S>], divisor: S, beside: &mut [Group<S>]) {
        let (first, inside) = (step / ROWS, step % ROWS);
        let groups = column.len();
        let mut top = column[first];
        for row in 0..ROWS {
            let over = top[row].over(divisor);
            top[row] = if row > inside { over } else { top[row] };
        }
        column[first] = top;
        for group in &mut column[first + 1..] {
            for row in 0..ROWS {
                group[row] = group[row].over(divisor);
            }
        }
        let factors = &column[first..];
        let mut columns = beside.chunks_exact_mut(BESIDE * groups);
        for four in &mut columns {
            eliminate_few(inside, factors, apart(four, groups, first));
        }
        for column in columns.into_remainder().chunks_exact_mut(groups) {
            eliminate_few(inside, factors, [&mut column[first..]]);
        }
    }
}

#[inline(always)]
fn eliminate_few<S: Scalar, const N: usize>(
    inside: usize,
    factors: &[Group<S>],
    columns: [&mut [Group<S>]; N],
) {
    let groups = factors.len();
    let mut by = [S::zero(); N];
    for at in 0..N {
        assert!(columns[at].len() == groups, "a column is as long as the factors");
        by[at] = columns[at][0][inside];
        let group = &mut columns[at][0];
        for row in 0..ROWS {
            let less = group[row] - by[at] * factors[0][row];
            group[row] = if row > inside { less } else { group[row] };
        }
    }
    for group in 1..groups {
        // SAFETY: groups are below the columns' length, which was looked at.
        unsafe {
            let factors = factors.get_unchecked(group);
            for at in 0..N {
                let column = columns[at].get_unchecked_mut(group);
                for row in 0..ROWS {
                    column[row] -= by[at] * factors[row];
                }
            }
        }
    }
}
