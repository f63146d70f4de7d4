//! Products with a symmetric or Hermitian matrix of which one triangle is stored.

use super::{BLOCK, blocks};
use crate::matrix::Matrix;
use crate::{Op, Scalar, Side, Uplo, gemm};

/// `C = alpha·A·B + beta·C`, or `B·A`; A is symmetric, B and C have m rows and n columns.
///
/// # Safety
/// The matrices are there; C overlaps neither A nor B.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn symm<S: Scalar>(
    side: Side,
    uplo: Uplo,
    m: i64,
    n: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S,
    c: *mut S,
    ldc: i64,
) {
    let (a, b, c) = (Matrix::read(a, lda), Matrix::read(b, ldb), Matrix::new(c, ldc));
    // SAFETY: the caller's word.
    unsafe { multiply(side, uplo, Op::T, m, n, alpha, a, b, beta, c) }
}

/// [`symm`] with a Hermitian A, the imaginary parts of whose diagonal are taken to be zero.
///
/// # Safety
/// As there.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn hemm<S: Scalar>(
    side: Side,
    uplo: Uplo,
    m: i64,
    n: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S,
    c: *mut S,
    ldc: i64,
) {
    let (a, b, c) = (Matrix::read(a, lda), Matrix::read(b, ldb), Matrix::new(c, ldc));
    // SAFETY: the caller's word.
    unsafe { multiply(side, uplo, Op::C, m, n, alpha, a, b, beta, c) }
}

/// `mirror` leads from the stored triangle to the other one.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
unsafe fn multiply<S: Scalar>(
    side: Side,
    uplo: Uplo,
    mirror: Op,
    m: i64,
    n: i64,
    alpha: S,
    a: Matrix<S>,
    b: Matrix<S>,
    beta: S,
    c: Matrix<S>,
) {
    // SAFETY: the caller's word holds for every block.
    unsafe {
        c.scale(m, n, beta);
        if alpha.is_zero() || m <= 0 || n <= 0 {
            return;
        }
        let order = if side == Side::Left { m } else { n };
        let mut full = vec![S::zero(); (BLOCK.min(order) * BLOCK.min(order)) as usize];
        for (start, size) in blocks(order) {
            write_out(a.from(start, start), size, uplo, mirror, &mut full);
            let diagonal = Matrix::read(full.as_ptr(), size);
            // The rest of the block's columns in the stored triangle.
            let (rest, n_rest) = match uplo {
                Uplo::Lower => (start + size, order - start - size),
                Uplo::Upper => (0, start),
            };
            let panel = a.from(rest, start);
            match side {
                Side::Left => {
                    let part = |row| (b.from(row, 0), c.from(row, 0));
                    let ((b_block, c_block), (b_rest, c_rest)) = (part(start), part(rest));
                    add(Op::N, size, n, size, alpha, diagonal, b_block, c_block);
                    add(mirror, size, n, n_rest, alpha, panel, b_rest, c_block);
                    add(Op::N, n_rest, n, size, alpha, panel, b_block, c_rest);
                }
                Side::Right => {
                    let part = |column| (b.from(0, column), c.from(0, column));
                    let ((b_block, c_block), (b_rest, c_rest)) = (part(start), part(rest));
                    add_right(Op::N, m, size, size, alpha, b_block, diagonal, c_block);
                    add_right(Op::N, m, size, n_rest, alpha, b_rest, panel, c_block);
                    add_right(mirror, m, n_rest, size, alpha, b_block, panel, c_rest);
                }
            }
        }
    }
}

/// A diagonal block with both its triangles.
unsafe fn write_out<S: Scalar>(block: Matrix<S>, size: i64, uplo: Uplo, mirror: Op, full: &mut [S]) {
    for column in 0..size {
        for row in 0..size {
            let stored = match uplo {
                Uplo::Lower => row >= column,
                Uplo::Upper => row <= column,
            };
            // SAFETY: the caller's word.
            let element = unsafe { block.get_op(if stored { Op::N } else { mirror }, row, column) };
            let real = row == column && mirror.conjugates();
            full[(row + column * size) as usize] = if real { S::from_real(element.real()) } else { element };
        }
    }
}

/// `C += alpha·op(A)·B`
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
unsafe fn add<S: Scalar>(op: Op, m: i64, n: i64, k: i64, alpha: S, a: Matrix<S>, b: Matrix<S>, c: Matrix<S>) {
    // SAFETY: the caller's word.
    unsafe {
        gemm(op, Op::N, m, n, k, alpha, a.start(), a.ld(), b.start(), b.ld(), S::one(), c.start(), c.ld())
    }
}

/// `C += alpha·B·op(A)`
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
unsafe fn add_right<S: Scalar>(
    op: Op,
    m: i64,
    n: i64,
    k: i64,
    alpha: S,
    b: Matrix<S>,
    a: Matrix<S>,
    c: Matrix<S>,
) {
    // SAFETY: the caller's word.
    unsafe {
        gemm(Op::N, op, m, n, k, alpha, b.start(), b.ld(), a.start(), a.ld(), S::one(), c.start(), c.ld())
    }
}
