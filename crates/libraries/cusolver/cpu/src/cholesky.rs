//! `A = L·Lᴴ` or `Uᴴ·U`, what is solved by it, and inverses and products of triangles. Halves are done before wholes, so that nearly all work
//! is products.

use cublas_cpu::{Diag, Matrix, Op, Real, Scalar, Side, Uplo, level3, vectorized};
use num_traits::Zero as _;

use crate::dense::Dense;

/// So few columns are not halved any more.
const FEW: i64 = 128;

/// Factors n by n in the place of the triangle. The answer is the order of the first leading minor that is not positive, or 0.
///
/// # Safety
/// The triangle is there.
pub unsafe fn potrf<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) -> i64 {
    if n <= FEW {
        // SAFETY: the caller's word.
        return unsafe { factor_few(uplo, n, a) };
    }
    let half = n / 2;
    let rest = n - half;
    let ld = a.ld();
    // SAFETY: the caller's word holds for every part.
    unsafe {
        let info = potrf(uplo, half, a);
        if info != 0 {
            return info;
        }
        let corner = a.from(half, half);
        let (one, minus) = (<S::Real as num_traits::One>::one(), -<S::Real as num_traits::One>::one());
        match uplo {
            Uplo::Lower => {
                let below = a.from(half, 0).start();
                let (side, op, diag) = (Side::Right, Op::C, Diag::NonUnit);
                level3::trsm(side, uplo, op, diag, rest, half, S::one(), a.start(), ld, below, ld);
                level3::herk(uplo, Op::N, rest, half, minus, below, ld, one, corner.start(), ld);
            }
            Uplo::Upper => {
                let beside = a.from(0, half).start();
                let (side, op, diag) = (Side::Left, Op::C, Diag::NonUnit);
                level3::trsm(side, uplo, op, diag, half, rest, S::one(), a.start(), ld, beside, ld);
                level3::herk(uplo, Op::C, rest, half, minus, beside, ld, one, corner.start(), ld);
            }
        }
        match potrf(uplo, rest, corner) {
            0 => 0,
            info => half + info,
        }
    }
}

/// [`potrf`] of few columns; an upper triangle is factored as its conjugate transpose.
unsafe fn factor_few<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) -> i64 {
    if uplo == Uplo::Lower {
        // SAFETY: the caller's word.
        return unsafe { factor_lower(n, a) };
    }
    let mut lower = Dense::zeros(n, n);
    let matrix = lower.matrix();
    // SAFETY: the caller's word, and a matrix of this size.
    unsafe {
        for column in 0..n {
            let above = a.column(column, column + 1);
            (0..).zip(above).for_each(|(row, value)| matrix.set(column, row, value.conj()));
        }
        let info = factor_lower(n, matrix);
        for column in 0..n {
            let above = a.column_mut(column, column + 1);
            (0..).zip(above).for_each(|(row, value)| *value = matrix.get(column, row).conj());
        }
        info
    }
}

/// # Safety
/// The triangle is there.
unsafe fn factor_lower<S: Scalar>(n: i64, a: Matrix<S>) -> i64 {
    factor_columns(n as usize, a)
}

/// Columns that are made at a time, and rows that are at least worked on at a time in them.
const BESIDE: usize = 4;
const ROWS: usize = 8;

vectorized! {
    /// [`factor_lower`], whose caller's word this relies on. Four columns lose what the ones before have of them, then become part of L. What
    /// stands above the diagonal may be read with what is below, and is not written.
    fn factor_columns[S: Scalar](n: usize, a: Matrix<S>) -> i64 {
        let whole = if n < ROWS { 0 } else { n / BESIDE * BESIDE };
        // SAFETY: the caller's word, where rows and columns are below n.
        unsafe {
            for first in (0..whole).step_by(BESIDE) {
                let mut row = first;
                while first > 0 && row < n {
                    // On the diagonal, or the last rows: with some before them.
                    let start = row.min(n - ROWS);
                    let tile = Tile::read(a, start, first).less(a, start, first);
                    if row == first {
                        tile.write_below(a, start, first);
                    } else {
                        tile.write(a, start, first, row - start);
                    }
                    row = start + ROWS;
                }
                let mut l = Corner { l: [[S::zero(); BESIDE]; BESIDE], by: [S::Real::zero(); BESIDE] };
                let info = l.factor(a, first);
                if info > 0 {
                    return first as i64 + info;
                }
                let mut row = first + BESIDE;
                while row < n {
                    let start = row.min(n - ROWS);
                    Tile::read(a, start, first).solved(&l).write(a, start, first, row - start);
                    row = start + ROWS;
                }
            }
            for at in whole..n {
                for row in at..n {
                    let mut sum = *element(a, row, at);
                    for k in 0..at {
                        sum -= *element(a, row, k) * element(a, at, k).read().conj();
                    }
                    if row > at {
                        *element(a, row, at) = sum.over(*element(a, at, at));
                        continue;
                    }
                    let sum = sum.real();
                    if is_not_positive(sum) {
                        *element(a, at, at) = S::from_real(sum);
                        return at as i64 + 1;
                    }
                    *element(a, at, at) = S::from_real(num_traits::Float::sqrt(sum));
                }
            }
        }
        0
    }
}

/// What is no number is not positive.
fn is_not_positive<R: Real>(value: R) -> bool {
    num_traits::Float::is_nan(value) || value <= R::zero()
}

#[inline(always)]
fn element<S: Scalar>(a: Matrix<S>, row: usize, column: usize) -> *mut S {
    a.at(row as i64, column as i64)
}

/// Four columns' rows on the diagonal, of L, and what divides by the diagonal.
struct Corner<S: Scalar> {
    l: [[S; BESIDE]; BESIDE],
    by: [S::Real; BESIDE],
}

impl<S: Scalar> Corner<S> {
    /// Makes it of what is there and puts it there; the first minor that is not positive, or 0.
    ///
    /// # Safety
    /// The elements are there.
    #[inline(always)]
    unsafe fn factor(&mut self, a: Matrix<S>, first: usize) -> i64 {
        for at in 0..BESIDE {
            for row in at..BESIDE {
                let place = element(a, first + row, first + at);
                // SAFETY: the caller's word.
                let mut value = unsafe { *place };
                for k in 0..at {
                    value -= self.l[k][row] * self.l[k][at].conj();
                }
                if row > at {
                    value = value.times_real(self.by[at]);
                } else {
                    let sum = value.real();
                    if is_not_positive(sum) {
                        // SAFETY: as above.
                        unsafe { *place = S::from_real(sum) };
                        return at as i64 + 1;
                    }
                    let diagonal = num_traits::Float::sqrt(sum);
                    self.by[at] = num_traits::Float::recip(diagonal);
                    value = S::from_real(diagonal);
                }
                self.l[at][row] = value;
                // SAFETY: as above.
                unsafe { *place = value };
            }
        }
        0
    }
}

/// Some rows of four columns. By index and in whole, so that they stay in vectors.
struct Tile<S>([[S; ROWS]; BESIDE]);

impl<S: Scalar> Tile<S> {
    /// # Safety
    /// The rows are there.
    #[inline(always)]
    #[expect(clippy::needless_range_loop, reason = "by index, as all of it")]
    unsafe fn read(a: Matrix<S>, row: usize, first: usize) -> Self {
        let mut tile = [[S::zero(); ROWS]; BESIDE];
        for at in 0..BESIDE {
            let column = element(a, row, first + at);
            for lane in 0..ROWS {
                // SAFETY: the caller's word.
                tile[at][lane] = unsafe { *column.add(lane) };
            }
        }
        Self(tile)
    }

    /// Less what the columns before have of them.
    ///
    /// # Safety
    /// These are there.
    #[inline(always)]
    unsafe fn less(mut self, a: Matrix<S>, row: usize, first: usize) -> Self {
        for k in 0..first {
            let (column, by) = (element(a, row, k), element(a, first, k));
            for at in 0..BESIDE {
                // SAFETY: the caller's word.
                let by = unsafe { by.add(at).read() }.conj();
                for lane in 0..ROWS {
                    // SAFETY: as above.
                    self.0[at][lane] -= unsafe { *column.add(lane) } * by;
                }
            }
        }
        self
    }

    /// What becomes of them below a corner of L.
    #[inline(always)]
    fn solved(mut self, corner: &Corner<S>) -> Self {
        for at in 0..BESIDE {
            for k in 0..at {
                let by = corner.l[k][at].conj();
                for lane in 0..ROWS {
                    let value = self.0[k][lane] * by;
                    self.0[at][lane] -= value;
                }
            }
            for lane in 0..ROWS {
                self.0[at][lane] = self.0[at][lane].times_real(corner.by[at]);
            }
        }
        self
    }

    /// The rows from `skipped` on.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn write(self, a: Matrix<S>, row: usize, first: usize, skipped: usize) {
        if skipped > 0 {
            // SAFETY: the caller's word.
            unsafe { self.write_from(a, row, first, |_| skipped) };
            return;
        }
        for at in 0..BESIDE {
            let column = element(a, row, first + at);
            for lane in 0..ROWS {
                // SAFETY: the caller's word.
                unsafe { *column.add(lane) = self.0[at][lane] };
            }
        }
    }

    /// The rows on and below the diagonal.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn write_below(self, a: Matrix<S>, row: usize, first: usize) {
        // SAFETY: the caller's word.
        unsafe { self.write_from(a, row, first, |at| first + at - row) };
    }

    /// The rows of each column from one on.
    ///
    /// # Safety
    /// They are there.
    #[inline(always)]
    unsafe fn write_from(self, a: Matrix<S>, row: usize, first: usize, from: impl Fn(usize) -> usize) {
        // In memory: what is written one by one LLVM would compute one by one.
        let tile = std::hint::black_box(self);
        for at in 0..BESIDE {
            let from = from(at);
            // SAFETY: the caller's word.
            unsafe {
                let (source, to) = (tile.0[at].as_ptr().add(from), element(a, row + from, first + at));
                for lane in 0..ROWS - from {
                    *to.add(lane) = *source.add(lane);
                }
            }
        }
    }
}

/// Solves for `columns` right sides in B's place by what [`potrf`] made.
///
/// # Safety
/// The matrices are there.
pub unsafe fn potrs<S: Scalar>(uplo: Uplo, n: i64, columns: i64, a: Matrix<S>, b: Matrix<S>) {
    let (first, second) = if uplo == Uplo::Lower { (Op::N, Op::C) } else { (Op::C, Op::N) };
    for op in [first, second] {
        let (side, diag, one) = (Side::Left, Diag::NonUnit, S::one());
        // SAFETY: the caller's word.
        unsafe {
            level3::trsm(side, uplo, op, diag, n, columns, one, a.start(), a.ld(), b.start(), b.ld());
        }
    }
}

/// The inverse of a triangle in its place. The answer is the first diagonal element that is zero (then nothing is written), or 0.
///
/// # Safety
/// The triangle is there.
pub unsafe fn trtri<S: Scalar>(uplo: Uplo, diag: Diag, n: i64, a: Matrix<S>) -> i64 {
    if diag == Diag::NonUnit {
        // SAFETY: the caller's word.
        let zero = (0..n).find(|&i| unsafe { a.get(i, i) }.is_zero());
        if let Some(zero) = zero {
            return zero + 1;
        }
    }
    // SAFETY: the caller's word.
    unsafe { invert(uplo, diag, n, a) };
    0
}

unsafe fn invert<S: Scalar>(uplo: Uplo, diag: Diag, n: i64, a: Matrix<S>) {
    let (half, ld, one) = (n / 2, a.ld(), S::one());
    let rest = n - half;
    // SAFETY: the caller's word holds for every part.
    unsafe {
        if n <= 1 {
            if n == 1 && diag == Diag::NonUnit {
                a.set(0, 0, one.over(a.get(0, 0)));
            }
            return;
        }
        let (start, corner) = (a.start(), a.from(half, half).start());
        match uplo {
            Uplo::Lower => {
                let below = a.from(half, 0).start();
                level3::trsm(Side::Left, uplo, Op::N, diag, rest, half, -one, corner, ld, below, ld);
                level3::trsm(Side::Right, uplo, Op::N, diag, rest, half, one, start, ld, below, ld);
            }
            Uplo::Upper => {
                let beside = a.from(0, half).start();
                level3::trsm(Side::Left, uplo, Op::N, diag, half, rest, -one, start, ld, beside, ld);
                level3::trsm(Side::Right, uplo, Op::N, diag, half, rest, one, corner, ld, beside, ld);
            }
        }
        invert(uplo, diag, half, a);
        invert(uplo, diag, rest, a.from(half, half));
    }
}

/// `U·Uᴴ` or `Lᴴ·L` in the triangle's place.
///
/// # Safety
/// The triangle is there.
pub unsafe fn lauum<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) {
    let (half, ld, one) = (n / 2, a.ld(), S::one());
    let rest = n - half;
    // SAFETY: the caller's word holds for every part.
    unsafe {
        if n <= 1 {
            if n == 1 {
                let size = a.get(0, 0);
                a.set(0, 0, S::from_real(size.real() * size.real() + size.imag() * size.imag()));
            }
            return;
        }
        lauum(uplo, half, a);
        let (start, corner) = (a.start(), a.from(half, half).start());
        let real = <S::Real as num_traits::One>::one();
        match uplo {
            Uplo::Lower => {
                let below = a.from(half, 0).start();
                level3::herk(uplo, Op::C, half, rest, real, below, ld, real, start, ld);
                let (side, diag) = (Side::Left, Diag::NonUnit);
                level3::trmm(side, uplo, Op::C, diag, rest, half, one, corner, ld, below, ld, below, ld);
            }
            Uplo::Upper => {
                let beside = a.from(0, half).start();
                level3::herk(uplo, Op::N, half, rest, real, beside, ld, real, start, ld);
                let (side, diag) = (Side::Right, Diag::NonUnit);
                level3::trmm(side, uplo, Op::C, diag, half, rest, one, corner, ld, beside, ld, beside, ld);
            }
        }
        lauum(uplo, rest, a.from(half, half));
    }
}

/// The inverse's triangle by what [`potrf`] made. The answer is [`trtri`]'s.
///
/// # Safety
/// The triangle is there.
pub unsafe fn potri<S: Scalar>(uplo: Uplo, n: i64, a: Matrix<S>) -> i64 {
    // SAFETY: the caller's word.
    unsafe {
        let info = trtri(uplo, Diag::NonUnit, n, a);
        if info == 0 {
            lauum(uplo, n, a);
        }
        info
    }
}
