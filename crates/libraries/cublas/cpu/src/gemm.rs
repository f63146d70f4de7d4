//! The product that level 3 is made of: by the `gemm` crate, or by a CBLAS that was asked for ([`crate::cblas`]).
//!
//! The crate is the default even where a CBLAS is there. In GFLOP/s on one core of a busy Zen 5, square matrices of 256,
//! one run: gemm 0.19 S 243, D 117, C 241, Z 120; Debian 12's OpenBLAS 0.3.21, which takes a Zen 5 for a Haswell, S 118,
//! D 56, C 118, Z 58. Of 512, another run, OpenBLAS told to be SkylakeX: gemm S 231, D 115, C 228, Z 107; OpenBLAS S 221,
//! D 90, C 212, Z 84. Larger ones varied too much from run to run to rank them.
//! `benches/gemm.rs` measures it again.

use gemm::Parallelism;

use crate::matrix::Matrix;
use crate::{Op, Scalar, cblas, thin};

/// Below this many products the cores' start costs more than they save.
const SMALL: i64 = 96 * 96 * 96;

/// `C = alpha·op(A)·op(B) + beta·C`, where `op(A)` has m rows and k columns, and `op(B)` k rows and n columns.
///
/// # Safety
/// The matrices are there in full; C overlaps neither A nor B.
#[expect(clippy::too_many_arguments, reason = "the BLAS's own")]
pub unsafe fn gemm<S: Scalar>(
    op_a: Op,
    op_b: Op,
    m: i64,
    n: i64,
    k: i64,
    alpha: S,
    a: *const S,
    lda: i64,
    b: *const S,
    ldb: i64,
    beta: S,
    c: *mut S,
    ldc: i64,
) {
    if m <= 0 || n <= 0 {
        return;
    }
    if k <= 0 || alpha.is_zero() {
        // SAFETY: the caller's word.
        return unsafe { Matrix::new(c, ldc).scale(m, n, beta) };
    }
    if let Some(library) = cblas::current()
        && [m, n, k, lda, ldb, ldc].into_iter().all(|size| library.fits(size))
    {
        // SAFETY: the caller's word, and the sizes fit the library's integers.
        return unsafe { library.gemm(op_a, op_b, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc) };
    }
    if op_a == Op::N && n <= thin::FEW && m.saturating_mul(k) >= thin::WORTH {
        let c = Matrix::new(c, ldc);
        // SAFETY: the caller's word.
        return unsafe {
            c.scale(m, n, beta);
            thin::add((m, n, k), alpha, Matrix::read(a, lda), (op_b, Matrix::read(b, ldb)), c);
        };
    }
    let steps = |op: Op, ld: i64| if op.transposes() { (1, ld as isize) } else { (ld as isize, 1) };
    let ((a_column, a_row), (b_column, b_row)) = (steps(op_a, lda), steps(op_b, ldb));
    let parallelism =
        if m.saturating_mul(n).saturating_mul(k) < SMALL { Parallelism::None } else { Parallelism::Rayon(0) };
    let (read_c, conj_a, conj_b) = (!beta.is_zero(), op_a.conjugates(), op_b.conjugates());
    let (m, n, k) = (m as usize, n as usize, k as usize);
    // The crate's alpha is C's factor.
    // SAFETY: the caller's word.
    unsafe {
        gemm::gemm(
            m,
            n,
            k,
            c,
            ldc as isize,
            1,
            read_c,
            a,
            a_column,
            a_row,
            b,
            b_column,
            b_row,
            beta,
            alpha,
            false,
            conj_a,
            conj_b,
            parallelism,
        );
    }
}
