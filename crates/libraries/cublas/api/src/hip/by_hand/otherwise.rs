//! What is done where a release of hipBLAS has no function that fits; `None` where that cannot be done either.

use core::ffi::c_int;

use crate::hip::call::check;
use crate::hip::convert::*;
use crate::hip::{HipCall, Release, calls};
use crate::*;

/// HIP differs: up to ROCm 5.5 B is overwritten, and so C gets a copy of B first.
macro_rules! products_in_place {
    ($($name:ident: $ty:ty, $one:expr, $copy:ident, $function:expr;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $name(
            hip: &HipCall,
            side: cublasSideMode_t,
            uplo: cublasFillMode_t,
            trans: cublasOperation_t,
            diag: cublasDiagType_t,
            m: i64,
            n: i64,
            alpha: *const $ty,
            A: *const $ty,
            lda: i64,
            B: *const $ty,
            ldb: i64,
            C: *mut $ty,
            ldc: i64,
        ) -> Option<Result> {
            type InPlace = unsafe extern "C" fn(
                hipblasHandle_t, hipblasSideMode_t, hipblasFillMode_t, hipblasOperation_t, hipblasDiagType_t, c_int, c_int,
                *const $ty, *const $ty, c_int, *mut $ty, c_int,
            ) -> hipblasStatus_t;
            if hip.release() > Release::Rocm5 {
                return None;
            }
            let run = || {
                // SAFETY: hipBLAS's signature in this release.
                let product: InPlace = unsafe { core::mem::transmute(hip.function($function)?) };
                let (side, uplo, trans) = (side_mode(side)?, fill_mode(uplo)?, operation(trans)?);
                let (diag, [m_int, n_int, lda, ldc_int]) =
                    (diagonal(diag)?, [narrow(m)?, narrow(n)?, narrow(lda)?, narrow(ldc)?]);
                if !core::ptr::eq(B, C) {
                    let (one, zero): ($ty, $ty) = ($one, <$ty>::default());
                    let same = cublasOperation_t::CUBLAS_OP_N;
                    // SAFETY: the caller's promise.
                    hip.with_factors_on_host(|| unsafe {
                        calls::$copy(hip, same, same, m, n, &one, B, ldb, &zero, B, ldb, C, ldc)
                    })?;
                }
                // SAFETY: the caller's promise.
                check(unsafe {
                    product(hip.handle, side, uplo, trans, diag, m_int, n_int, alpha, A, lda, C, ldc_int)
                })
            };
            Some(run())
        }
    )* };
}

products_in_place! {
    strmm: f32, 1., cublasSgeam_64, c"hipblasStrmm";
    dtrmm: f64, 1., cublasDgeam_64, c"hipblasDtrmm";
    ctrmm: cuComplex, cuComplex::new(1., 0.), cublasCgeam_64, c"hipblasCtrmm";
    ztrmm: cuDoubleComplex, cuDoubleComplex::new(1., 0.), cublasZgeam_64, c"hipblasZtrmm";
}

/// An index of 32 bits, from releases before 64-bit integers, for a caller on the host.
macro_rules! indices {
    ($($name:ident: $ty:ty, $function:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $name(hip: &HipCall, n: i64, x: *const $ty, incx: i64, result: *mut i64) -> Option<Result> {
            if hip.pointer_mode != hipblasPointerMode_t::HIPBLAS_POINTER_MODE_HOST {
                return None;
            }
            let run = || {
                let mut index: c_int = 0;
                // SAFETY: the caller's promise; hipBLAS waits for a result on the host.
                unsafe {
                    calls::$function(hip, narrow(n)?, x, narrow(incx)?, &mut index)?;
                    result.write(i64::from(index));
                }
                Ok(())
            };
            Some(run())
        }
    )* };
}

indices! {
    isamax: f32, cublasIsamax_v2;
    idamax: f64, cublasIdamax_v2;
    icamax: cuComplex, cublasIcamax_v2;
    izamax: cuDoubleComplex, cublasIzamax_v2;
    isamin: f32, cublasIsamin_v2;
    idamin: f64, cublasIdamin_v2;
    icamin: cuComplex, cublasIcamin_v2;
    izamin: cuDoubleComplex, cublasIzamin_v2;
}
