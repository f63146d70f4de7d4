//! Products with triangular matrices, and their solution.

use super::column;
use super::matrix::{Matrix, Split};
use crate::vector::{Vector, gather};
use crate::{Diag, Op, Scalar, Uplo};

macro_rules! full {
    ($(#[$doc:meta])* $name:ident, $act:expr) => {
        $(#[$doc])*
        pub unsafe fn $name<S: Scalar>(
            uplo: Uplo,
            op: Op,
            diag: Diag,
            n: i64,
            a: *const S,
            lda: i64,
            x: *mut S,
            incx: i64,
        ) {
            // SAFETY: this function's caller promises it.
            unsafe { on_vector(Triangle { a: Matrix::triangle(uplo, n, a, lda), uplo, op, diag }, x, incx, $act) }
        }
    };
}
full!(
    /// x = op(A) x, A triangular.
    trmv,
    Triangle::product
);
full!(
    /// The x for which op(A) x is what x was, A triangular.
    trsv,
    Triangle::solution
);

macro_rules! band {
    ($(#[$doc:meta])* $name:ident, $act:expr) => {
        $(#[$doc])*
        pub unsafe fn $name<S: Scalar>(
            uplo: Uplo,
            op: Op,
            diag: Diag,
            n: i64,
            k: i64,
            a: *const S,
            lda: i64,
            x: *mut S,
            incx: i64,
        ) {
            // SAFETY: this function's caller promises it.
            unsafe { on_vector(Triangle { a: Matrix::triangle_band(uplo, n, k, a, lda), uplo, op, diag }, x, incx, $act) }
        }
    };
}
band!(
    /// x = op(A) x, A triangular with `k` rows beside the diagonal.
    tbmv,
    Triangle::product
);
band!(
    /// The x for which op(A) x is what x was, A triangular with `k` rows beside the diagonal.
    tbsv,
    Triangle::solution
);

macro_rules! packed {
    ($(#[$doc:meta])* $name:ident, $act:expr) => {
        $(#[$doc])*
        pub unsafe fn $name<S: Scalar>(
            uplo: Uplo,
            op: Op,
            diag: Diag,
            n: i64,
            ap: *const S,
            x: *mut S,
            incx: i64,
        ) {
            // SAFETY: this function's caller promises it.
            unsafe { on_vector(Triangle { a: Matrix::packed(uplo, n, ap), uplo, op, diag }, x, incx, $act) }
        }
    };
}
packed!(
    /// x = op(A) x, A triangular and packed.
    tpmv,
    Triangle::product
);
packed!(
    /// The x for which op(A) x is what x was, A triangular and packed.
    tpsv,
    Triangle::solution
);

struct Triangle<S> {
    a: Matrix<S>,
    uplo: Uplo,
    op: Op,
    diag: Diag,
}

unsafe fn on_vector<S: Scalar>(a: Triangle<S>, x: *mut S, incx: i64, act: impl Fn(&Triangle<S>, &mut [S])) {
    // SAFETY: this function's caller promises it.
    let x = unsafe { Vector::new(a.a.n_columns() as i64, x, incx) };
    let mut gathered = gather(x);
    act(&a, &mut gathered);
    for (i, value) in gathered.into_iter().enumerate() {
        x.set(i, value);
    }
}

impl<S: Scalar> Triangle<S> {
    /// `forward` from the first column to the last.
    fn columns(&self, forward: bool, mut each: impl FnMut(usize, Split<'_, S>)) {
        let n = self.a.n_columns();
        for step in 0..n {
            let j = if forward { step } else { n - 1 - step };
            each(j, self.a.split(j));
        }
    }

    fn product(&self, x: &mut [S]) {
        // An element is replaced when no other column needs what it was.
        let forward = (self.uplo == Uplo::Upper) != self.op.transposes();
        self.columns(forward, |j, column| {
            let on_diagonal = match self.diag {
                Diag::Unit => x[j],
                Diag::NonUnit => column.diagonal.conj_if(self.op.conjugates()) * x[j],
            };
            if self.op.transposes() {
                x[j] = on_diagonal + column::dot(column.others, &x[column.rows], self.op.conjugates());
            } else {
                let factor = x[j];
                column::add(&mut x[column.rows], column.others, factor);
                x[j] = on_diagonal;
            }
        });
    }

    fn solution(&self, x: &mut [S]) {
        let forward = (self.uplo == Uplo::Lower) != self.op.transposes();
        self.columns(forward, |j, column| {
            if self.op.transposes() {
                x[j] -= column::dot(column.others, &x[column.rows.clone()], self.op.conjugates());
            }
            if self.diag == Diag::NonUnit {
                x[j] = x[j].over(column.diagonal.conj_if(self.op.conjugates()));
            }
            if !self.op.transposes() {
                let factor = -x[j];
                column::add(&mut x[column.rows], column.others, factor);
            }
        });
    }
}
