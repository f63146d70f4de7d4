//! Triangles between the packed form and matrices.
//!
//! HIP differs: hipBLAS has no such routine; each column is a copy of its own.

use core::ffi::c_int;

use crate::hip::{HipCall, calls};
use crate::*;

/// Where a column of the triangle begins and how many elements it has: (in the packed form, in the matrix, elements).
fn columns(
    uplo: cublasFillMode_t,
    n: c_int,
    lda: c_int,
) -> Result<impl Iterator<Item = (usize, usize, usize)>> {
    let is_upper = match uplo {
        cublasFillMode_t::CUBLAS_FILL_MODE_UPPER => true,
        cublasFillMode_t::CUBLAS_FILL_MODE_LOWER => false,
        _ => return Err(Error::InvalidValue("a triangle is upper or lower")),
    };
    let n = usize::try_from(n).map_err(|_| Error::InvalidValue("n"))?;
    let lda = usize::try_from(lda).ok().filter(|&lda| lda >= n.max(1)).ok_or(Error::InvalidValue("lda"))?;
    Ok((0..n).map(move |column| {
        if is_upper {
            (column * (column + 1) / 2, column * lda, column + 1)
        } else {
            // The columns before it have n, n-1, … elements.
            (column * (2 * n + 1 - column) / 2, column * lda + column, n - column)
        }
    }))
}

macro_rules! packed {
    ($($unpack:ident $pack:ident: $ty:ty, $copy:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $unpack(
            hip: &HipCall,
            uplo: cublasFillMode_t,
            n: c_int,
            AP: *const $ty,
            A: *mut $ty,
            lda: c_int,
        ) -> Result {
            columns(uplo, n, lda)?.try_for_each(|(packed, full, len)| {
                // SAFETY: the caller's promise: both have the triangle.
                unsafe { calls::$copy(hip, len as i64, AP.add(packed), 1, A.add(full), 1) }
            })
        }

        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $pack(
            hip: &HipCall,
            uplo: cublasFillMode_t,
            n: c_int,
            A: *const $ty,
            lda: c_int,
            AP: *mut $ty,
        ) -> Result {
            columns(uplo, n, lda)?.try_for_each(|(packed, full, len)| {
                // SAFETY: as above.
                unsafe { calls::$copy(hip, len as i64, A.add(full), 1, AP.add(packed), 1) }
            })
        }
    )* };
}

packed! {
    cublasStpttr cublasStrttp: f32, cublasScopy_v2_64;
    cublasDtpttr cublasDtrttp: f64, cublasDcopy_v2_64;
    cublasCtpttr cublasCtrttp: cuComplex, cublasCcopy_v2_64;
    cublasZtpttr cublasZtrttp: cuDoubleComplex, cublasZcopy_v2_64;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_of_a_triangle_of_three() {
        // LAPACK's packed forms: upper a11 a12 a22 a13 a23 a33, lower a11 a21 a31 a22 a32 a33.
        let of = |uplo| columns(uplo, 3, 5).unwrap().collect::<Vec<_>>();
        assert_eq!(of(cublasFillMode_t::CUBLAS_FILL_MODE_UPPER), [(0, 0, 1), (1, 5, 2), (3, 10, 3)]);
        assert_eq!(of(cublasFillMode_t::CUBLAS_FILL_MODE_LOWER), [(0, 0, 3), (3, 6, 2), (5, 12, 1)]);
        assert!(columns(cublasFillMode_t::CUBLAS_FILL_MODE_FULL, 3, 5).is_err());
        assert!(columns(cublasFillMode_t::CUBLAS_FILL_MODE_LOWER, 3, 2).is_err());
    }
}
