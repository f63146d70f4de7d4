//! Products that hipBLAS has as `hipblasGemmEx`, `hipblasGemmBatchedEx` and `hipblasGemmStridedBatchedEx`.

use core::ffi::{c_int, c_longlong, c_void};

use super::narrow_forms;
use crate::hip::{HipCall, calls};
use crate::*;

const ALGORITHM: cublasGemmAlgo_t = cublasGemmAlgo_t::CUBLAS_GEMM_DEFAULT;
const FLOAT: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_32F;

/// Products computed in 32-bit floating point: their factors' type says whether in complex numbers.
macro_rules! in_single_precision {
    ($($name:ident = $wide:ident of $factor:ty;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $wide(
            hip: &HipCall,
            transa: cublasOperation_t,
            transb: cublasOperation_t,
            m: i64,
            n: i64,
            k: i64,
            alpha: *const $factor,
            A: *const c_void,
            Atype: cudaDataType,
            lda: i64,
            B: *const c_void,
            Btype: cudaDataType,
            ldb: i64,
            beta: *const $factor,
            C: *mut c_void,
            Ctype: cudaDataType,
            ldc: i64,
        ) -> Result {
            let (alpha, beta) = (alpha.cast(), beta.cast());
            // SAFETY: the caller's promise.
            unsafe {
                calls::cublasGemmEx_64(
                    hip, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc, FLOAT,
                    ALGORITHM,
                )
            }
        }

        narrow_forms! {
            fn $name(
                transa: cublasOperation_t,
                transb: cublasOperation_t,
                m: c_int,
                n: c_int,
                k: c_int,
                alpha: *const $factor,
                A: *const c_void,
                Atype: cudaDataType,
                lda: c_int,
                B: *const c_void,
                Btype: cudaDataType,
                ldb: c_int,
                beta: *const $factor,
                C: *mut c_void,
                Ctype: cudaDataType,
                ldc: c_int,
            ) = $wide;
        }
    )* };
}

in_single_precision! {
    cublasSgemmEx = cublasSgemmEx_64 of f32;
    cublasCgemmEx = cublasCgemmEx_64 of cuComplex;
    // HIP differs: there is no way with three products; what it computes is the same.
    cublasCgemm3mEx = cublasCgemm3mEx_64 of cuComplex;
}

/// Updates of one triangle, which hipBLAS has for 32-bit complex numbers only.
macro_rules! rank_k {
    ($($name:ident = $wide:ident of $factor:ty: $same:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $wide(
            hip: &HipCall,
            uplo: cublasFillMode_t,
            trans: cublasOperation_t,
            n: i64,
            k: i64,
            alpha: *const $factor,
            A: *const c_void,
            Atype: cudaDataType,
            lda: i64,
            beta: *const $factor,
            C: *mut c_void,
            Ctype: cudaDataType,
            ldc: i64,
        ) -> Result {
            if (Atype, Ctype) != (cudaDataType::CUDA_C_32F, cudaDataType::CUDA_C_32F) {
                return Err(Error::NotSupported("hipBLAS has this update for CUDA_C_32F only"));
            }
            // SAFETY: the caller's promise.
            unsafe { calls::$same(hip, uplo, trans, n, k, alpha, A.cast(), lda, beta, C.cast(), ldc) }
        }

        narrow_forms! {
            fn $name(
                uplo: cublasFillMode_t,
                trans: cublasOperation_t,
                n: c_int,
                k: c_int,
                alpha: *const $factor,
                A: *const c_void,
                Atype: cudaDataType,
                lda: c_int,
                beta: *const $factor,
                C: *mut c_void,
                Ctype: cudaDataType,
                ldc: c_int,
            ) = $wide;
        }
    )* };
}

rank_k! {
    cublasCsyrkEx = cublasCsyrkEx_64 of cuComplex: cublasCsyrk_v2_64;
    cublasCsyrk3mEx = cublasCsyrk3mEx_64 of cuComplex: cublasCsyrk_v2_64;
    cublasCherkEx = cublasCherkEx_64 of f32: cublasCherk_v2_64;
    cublasCherk3mEx = cublasCherk3mEx_64 of f32: cublasCherk_v2_64;
}

/// A matrix with a vector as a product of matrices: yᵀ = xᵀ·op(A)ᵀ, where xᵀ and yᵀ have one row and the increments are
/// their leading dimensions.
struct RowProduct {
    op_a: cublasOperation_t,
    n: i64,
    k: i64,
}

impl RowProduct {
    fn of(trans: cublasOperation_t, m: i64, n: i64, incx: i64, incy: i64) -> Result<RowProduct> {
        if incx < 1 || incy < 1 {
            return Err(Error::NotSupported(
                "hipBLAS has mixed gemv as a product only, with increments from 1 on",
            ));
        }
        match trans {
            cublasOperation_t::CUBLAS_OP_N => {
                Ok(RowProduct { op_a: cublasOperation_t::CUBLAS_OP_T, n: m, k: n })
            }
            // The matrix is real.
            cublasOperation_t::CUBLAS_OP_T | cublasOperation_t::CUBLAS_OP_C => {
                Ok(RowProduct { op_a: cublasOperation_t::CUBLAS_OP_N, n, k: m })
            }
            _ => Err(Error::InvalidValue("there is no such operation")),
        }
    }
}

macro_rules! mixed_gemv {
    ($($batched:ident = $batched_wide:ident, $strided:ident = $strided_wide:ident:
        $x:ty as $x_type:ident, $y:ty as $y_type:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $batched_wide(
            hip: &HipCall,
            trans: cublasOperation_t,
            m: i64,
            n: i64,
            alpha: *const f32,
            Aarray: *const *const $x,
            lda: i64,
            xarray: *const *const $x,
            incx: i64,
            beta: *const f32,
            yarray: *const *mut $y,
            incy: i64,
            batchCount: i64,
        ) -> Result {
            let RowProduct { op_a, n, k } = RowProduct::of(trans, m, n, incx, incy)?;
            let (x_type, y_type) = (cudaDataType::$x_type, cudaDataType::$y_type);
            let (alpha, beta) = (alpha.cast(), beta.cast());
            // SAFETY: the caller's promise.
            unsafe {
                calls::cublasGemmBatchedEx_64(
                    hip, cublasOperation_t::CUBLAS_OP_N, op_a, 1, n, k, alpha, xarray.cast(), x_type, incx,
                    Aarray.cast(), x_type, lda, beta, yarray.cast(), y_type, incy, batchCount, FLOAT, ALGORITHM,
                )
            }
        }

        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $strided_wide(
            hip: &HipCall,
            trans: cublasOperation_t,
            m: i64,
            n: i64,
            alpha: *const f32,
            A: *const $x,
            lda: i64,
            strideA: c_longlong,
            x: *const $x,
            incx: i64,
            stridex: c_longlong,
            beta: *const f32,
            y: *mut $y,
            incy: i64,
            stridey: c_longlong,
            batchCount: i64,
        ) -> Result {
            let RowProduct { op_a, n, k } = RowProduct::of(trans, m, n, incx, incy)?;
            let (x_type, y_type) = (cudaDataType::$x_type, cudaDataType::$y_type);
            let (alpha, beta) = (alpha.cast(), beta.cast());
            // SAFETY: the caller's promise.
            unsafe {
                calls::cublasGemmStridedBatchedEx_64(
                    hip, cublasOperation_t::CUBLAS_OP_N, op_a, 1, n, k, alpha, x.cast(), x_type, incx, stridex,
                    A.cast(), x_type, lda, strideA, beta, y.cast(), y_type, incy, stridey, batchCount, FLOAT, ALGORITHM,
                )
            }
        }

        narrow_forms! {
            fn $batched(
                trans: cublasOperation_t,
                m: c_int,
                n: c_int,
                alpha: *const f32,
                Aarray: *const *const $x,
                lda: c_int,
                xarray: *const *const $x,
                incx: c_int,
                beta: *const f32,
                yarray: *const *mut $y,
                incy: c_int,
                batchCount: c_int,
            ) = $batched_wide;
            fn $strided(
                trans: cublasOperation_t,
                m: c_int,
                n: c_int,
                alpha: *const f32,
                A: *const $x,
                lda: c_int,
                strideA: c_longlong,
                x: *const $x,
                incx: c_int,
                stridex: c_longlong,
                beta: *const f32,
                y: *mut $y,
                incy: c_int,
                stridey: c_longlong,
                batchCount: c_int,
            ) = $strided_wide;
        }
    )* };
}

mixed_gemv! {
    cublasHSHgemvBatched = cublasHSHgemvBatched_64, cublasHSHgemvStridedBatched = cublasHSHgemvStridedBatched_64:
        __half as CUDA_R_16F, __half as CUDA_R_16F;
    cublasHSSgemvBatched = cublasHSSgemvBatched_64, cublasHSSgemvStridedBatched = cublasHSSgemvStridedBatched_64:
        __half as CUDA_R_16F, f32 as CUDA_R_32F;
    cublasTSTgemvBatched = cublasTSTgemvBatched_64, cublasTSTgemvStridedBatched = cublasTSTgemvStridedBatched_64:
        __nv_bfloat16 as CUDA_R_16BF, __nv_bfloat16 as CUDA_R_16BF;
    cublasTSSgemvBatched = cublasTSSgemvBatched_64, cublasTSSgemvStridedBatched = cublasTSSgemvStridedBatched_64:
        __nv_bfloat16 as CUDA_R_16BF, f32 as CUDA_R_32F;
}

/// Bytes of a factor.
fn factor_bytes(compute: cublasComputeType_t, data: cudaDataType) -> Result<usize> {
    let is_complex = matches!(data, cudaDataType::CUDA_C_32F | cudaDataType::CUDA_C_64F);
    let real_bytes = match compute {
        cublasComputeType_t::CUBLAS_COMPUTE_16F | cublasComputeType_t::CUBLAS_COMPUTE_16F_PEDANTIC => 2,
        cublasComputeType_t::CUBLAS_COMPUTE_64F | cublasComputeType_t::CUBLAS_COMPUTE_64F_PEDANTIC => 8,
        other => crate::hip::convert::compute_type(other).map(|_| 4)?,
    };
    Ok(if is_complex { 2 * real_bytes } else { real_bytes })
}

/// HIP differs: there are no groups; each is a batch of its own, enqueued one after the other.
macro_rules! grouped {
    ($($name:ident of $int:ty;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers: what belongs to groups is on the host.
        pub unsafe fn $name(
            hip: &HipCall,
            transa_array: *const cublasOperation_t,
            transb_array: *const cublasOperation_t,
            m_array: *const $int,
            n_array: *const $int,
            k_array: *const $int,
            alpha_array: *const c_void,
            Aarray: *const *const c_void,
            Atype: cudaDataType,
            lda_array: *const $int,
            Barray: *const *const c_void,
            Btype: cudaDataType,
            ldb_array: *const $int,
            beta_array: *const c_void,
            Carray: *const *mut c_void,
            Ctype: cudaDataType,
            ldc_array: *const $int,
            group_count: $int,
            group_size: *const $int,
            computeType: cublasComputeType_t,
        ) -> Result {
            let bytes = factor_bytes(computeType, Atype)?;
            let count = usize::try_from(group_count).map_err(|_| Error::InvalidValue("group_count"))?;
            let mut first = 0;
            for group in 0..count {
                // SAFETY: the caller's promise: `group_count` of each, and matrices for every problem of the groups.
                unsafe {
                    let n_problems = *group_size.add(group);
                    let size = usize::try_from(n_problems).map_err(|_| Error::InvalidValue("group_size"))?;
                    if size == 0 {
                        continue;
                    }
                    calls::cublasGemmBatchedEx_64(
                        hip,
                        *transa_array.add(group),
                        *transb_array.add(group),
                        (*m_array.add(group)).into(),
                        (*n_array.add(group)).into(),
                        (*k_array.add(group)).into(),
                        alpha_array.byte_add(group * bytes),
                        Aarray.add(first),
                        Atype,
                        (*lda_array.add(group)).into(),
                        Barray.add(first),
                        Btype,
                        (*ldb_array.add(group)).into(),
                        beta_array.byte_add(group * bytes),
                        Carray.add(first),
                        Ctype,
                        (*ldc_array.add(group)).into(),
                        n_problems.into(),
                        computeType,
                        ALGORITHM,
                    )?;
                    first += size;
                }
            }
            Ok(())
        }
    )* };
}

grouped! {
    cublasGemmGroupedBatchedEx of c_int;
    cublasGemmGroupedBatchedEx_64 of i64;
}

macro_rules! grouped_of_one_type {
    ($($name:ident of $int:ty, $ty:ty as $data:ident, $compute:ident: $general:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $name(
            hip: &HipCall,
            transa_array: *const cublasOperation_t,
            transb_array: *const cublasOperation_t,
            m_array: *const $int,
            n_array: *const $int,
            k_array: *const $int,
            alpha_array: *const $ty,
            Aarray: *const *const $ty,
            lda_array: *const $int,
            Barray: *const *const $ty,
            ldb_array: *const $int,
            beta_array: *const $ty,
            Carray: *const *mut $ty,
            ldc_array: *const $int,
            group_count: $int,
            group_size: *const $int,
        ) -> Result {
            let (data, compute) = (cudaDataType::$data, cublasComputeType_t::$compute);
            // SAFETY: the caller's promise.
            unsafe {
                $general(
                    hip, transa_array, transb_array, m_array, n_array, k_array, alpha_array.cast(), Aarray.cast(), data,
                    lda_array, Barray.cast(), data, ldb_array, beta_array.cast(), Carray.cast(), data, ldc_array,
                    group_count, group_size, compute,
                )
            }
        }
    )* };
}

grouped_of_one_type! {
    cublasSgemmGroupedBatched of c_int, f32 as CUDA_R_32F, CUBLAS_COMPUTE_32F: cublasGemmGroupedBatchedEx;
    cublasSgemmGroupedBatched_64 of i64, f32 as CUDA_R_32F, CUBLAS_COMPUTE_32F: cublasGemmGroupedBatchedEx_64;
    cublasDgemmGroupedBatched of c_int, f64 as CUDA_R_64F, CUBLAS_COMPUTE_64F: cublasGemmGroupedBatchedEx;
    cublasDgemmGroupedBatched_64 of i64, f64 as CUDA_R_64F, CUBLAS_COMPUTE_64F: cublasGemmGroupedBatchedEx_64;
}
