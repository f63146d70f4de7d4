//! The `*Ex` forms of level 1 that hipBLAS lacks, for the types that its routines have.

use core::ffi::{c_int, c_void};

use super::narrow_forms;
use crate::hip::{HipCall, calls};
use crate::*;

const NO_SUCH_TYPE: Error =
    Error::NotSupported("hipBLAS has this routine for one type in 32 or 64 bits, real or complex");

/// `unsafe { one of the four }(…)` for vectors of one type.
macro_rules! of_type {
    ($data:expr, $single:ident $double:ident $complex:ident $double_complex:ident ($($value:expr),*)) => {
        // SAFETY: the caller's promise; the pointers are to what the type says.
        unsafe {
            match $data {
                cudaDataType::CUDA_R_32F => calls::$single($($value),*),
                cudaDataType::CUDA_R_64F => calls::$double($($value),*),
                cudaDataType::CUDA_C_32F => calls::$complex($($value),*),
                cudaDataType::CUDA_C_64F => calls::$double_complex($($value),*),
                _ => Err(NO_SUCH_TYPE),
            }
        }
    };
}

fn require_same(types: &[cudaDataType]) -> Result<cudaDataType> {
    let first = types[0];
    if types.iter().all(|&other| other == first) { Ok(first) } else { Err(NO_SUCH_TYPE) }
}

/// The type of the absolute value of a number.
fn real(data: cudaDataType) -> cudaDataType {
    match data {
        cudaDataType::CUDA_C_32F => cudaDataType::CUDA_R_32F,
        cudaDataType::CUDA_C_64F => cudaDataType::CUDA_R_64F,
        other => other,
    }
}

/// # Safety
/// cuBLAS's contract for the pointers.
pub unsafe fn cublasAsumEx_64(
    hip: &HipCall,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    result: *mut c_void,
    resultType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    require_same(&[real(xType), real(resultType), real(executiontype)])?;
    let result = result.cast::<c_void>();
    of_type!(xType, cublasSasum_v2_64 cublasDasum_v2_64 cublasScasum_v2_64 cublasDzasum_v2_64
        (hip, n, x.cast(), incx, result.cast()))
}

/// # Safety
/// cuBLAS's contract for the pointers.
pub unsafe fn cublasCopyEx_64(
    hip: &HipCall,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
) -> Result {
    of_type!(require_same(&[xType, yType])?, cublasScopy_v2_64 cublasDcopy_v2_64 cublasCcopy_v2_64 cublasZcopy_v2_64
        (hip, n, x.cast(), incx, y.cast(), incy))
}

/// # Safety
/// cuBLAS's contract for the pointers.
pub unsafe fn cublasSwapEx_64(
    hip: &HipCall,
    n: i64,
    x: *mut c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
) -> Result {
    of_type!(require_same(&[xType, yType])?, cublasSswap_v2_64 cublasDswap_v2_64 cublasCswap_v2_64 cublasZswap_v2_64
        (hip, n, x.cast(), incx, y.cast(), incy))
}

macro_rules! extreme {
    ($($name:ident of $int:ty: $single:ident $double:ident $complex:ident $double_complex:ident;)*) => { $(
        /// # Safety
        /// cuBLAS's contract for the pointers.
        pub unsafe fn $name(
            hip: &HipCall,
            n: $int,
            x: *const c_void,
            xType: cudaDataType,
            incx: $int,
            result: *mut $int,
        ) -> Result {
            of_type!(xType, $single $double $complex $double_complex (hip, n, x.cast(), incx, result))
        }
    )* };
}

extreme! {
    cublasIamaxEx of c_int: cublasIsamax_v2 cublasIdamax_v2 cublasIcamax_v2 cublasIzamax_v2;
    cublasIamaxEx_64 of i64: cublasIsamax_v2_64 cublasIdamax_v2_64 cublasIcamax_v2_64 cublasIzamax_v2_64;
    cublasIaminEx of c_int: cublasIsamin_v2 cublasIdamin_v2 cublasIcamin_v2 cublasIzamin_v2;
    cublasIaminEx_64 of i64: cublasIsamin_v2_64 cublasIdamin_v2_64 cublasIcamin_v2_64 cublasIzamin_v2_64;
}

/// # Safety
/// cuBLAS's contract for the pointers.
pub unsafe fn cublasRotgEx(
    hip: &HipCall,
    a: *mut c_void,
    b: *mut c_void,
    abType: cudaDataType,
    c: *mut c_void,
    s: *mut c_void,
    csType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    // SAFETY: the caller's promise; the pointers are to what the type says.
    unsafe {
        match require_same(&[abType, csType, executiontype])? {
            cudaDataType::CUDA_R_32F => calls::cublasSrotg_v2(hip, a.cast(), b.cast(), c.cast(), s.cast()),
            cudaDataType::CUDA_R_64F => calls::cublasDrotg_v2(hip, a.cast(), b.cast(), c.cast(), s.cast()),
            _ => Err(NO_SUCH_TYPE),
        }
    }
}

/// # Safety
/// cuBLAS's contract for the pointers.
pub unsafe fn cublasRotmEx_64(
    hip: &HipCall,
    n: i64,
    x: *mut c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
    param: *const c_void,
    paramType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    // SAFETY: the caller's promise; the pointers are to what the type says.
    unsafe {
        match require_same(&[xType, yType, paramType, executiontype])? {
            cudaDataType::CUDA_R_32F => {
                calls::cublasSrotm_v2_64(hip, n, x.cast(), incx, y.cast(), incy, param.cast())
            }
            cudaDataType::CUDA_R_64F => {
                calls::cublasDrotm_v2_64(hip, n, x.cast(), incx, y.cast(), incy, param.cast())
            }
            _ => Err(NO_SUCH_TYPE),
        }
    }
}

/// # Safety
/// cuBLAS's contract for the pointers.
pub unsafe fn cublasRotmgEx(
    hip: &HipCall,
    d1: *mut c_void,
    d1Type: cudaDataType,
    d2: *mut c_void,
    d2Type: cudaDataType,
    x1: *mut c_void,
    x1Type: cudaDataType,
    y1: *const c_void,
    y1Type: cudaDataType,
    param: *mut c_void,
    paramType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    // SAFETY: the caller's promise; the pointers are to what the type says.
    unsafe {
        match require_same(&[d1Type, d2Type, x1Type, y1Type, paramType, executiontype])? {
            cudaDataType::CUDA_R_32F => {
                calls::cublasSrotmg_v2(hip, d1.cast(), d2.cast(), x1.cast(), y1.cast(), param.cast())
            }
            cudaDataType::CUDA_R_64F => {
                calls::cublasDrotmg_v2(hip, d1.cast(), d2.cast(), x1.cast(), y1.cast(), param.cast())
            }
            _ => Err(NO_SUCH_TYPE),
        }
    }
}

narrow_forms! {
    fn cublasAsumEx(
        n: c_int,
        x: *const c_void,
        xType: cudaDataType,
        incx: c_int,
        result: *mut c_void,
        resultType: cudaDataType,
        executiontype: cudaDataType,
    ) = cublasAsumEx_64;
    fn cublasCopyEx(
        n: c_int,
        x: *const c_void,
        xType: cudaDataType,
        incx: c_int,
        y: *mut c_void,
        yType: cudaDataType,
        incy: c_int,
    ) = cublasCopyEx_64;
    fn cublasSwapEx(
        n: c_int,
        x: *mut c_void,
        xType: cudaDataType,
        incx: c_int,
        y: *mut c_void,
        yType: cudaDataType,
        incy: c_int,
    ) = cublasSwapEx_64;
    fn cublasRotmEx(
        n: c_int,
        x: *mut c_void,
        xType: cudaDataType,
        incx: c_int,
        y: *mut c_void,
        yType: cudaDataType,
        incy: c_int,
        param: *const c_void,
        paramType: cudaDataType,
        executiontype: cudaDataType,
    ) = cublasRotmEx_64;
}
