//! cuBLAS's numbers as hipBLAS has them, and hipBLAS's answers as cuBLAS's. The numbers are equal in ROCm 5.2 to 7.2
//! (tools/data/hip/hipblas_numbers.json).

use core::ffi::{c_int, c_uint, c_void};

use crate::{
    Error, Result, cublasComputeType_t, cublasDiagType_t, cublasFillMode_t, cublasGemmAlgo_t,
    cublasOperation_t, cublasSideMode_t, cublasStatus_t, cudaDataType,
};

pub type hipblasHandle_t = *mut c_void;
pub type hipComplex = crate::cuComplex;
pub type hipDoubleComplex = crate::cuDoubleComplex;
pub type hipblasHalf = crate::__half;
pub type hipblasBfloat16 = crate::__nv_bfloat16;
/// HIP took CUDA's numbers.
pub type hipDataType = cudaDataType;

macro_rules! numbers {
    ($($(#[$meta:meta])* $name:ident { $($variant:ident = $value:expr),* $(,)? })*) => {
    $(
        $(#[$meta])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name(pub c_uint);

        impl $name {
            $(pub const $variant: $name = $name($value);)*
        }
    )*

        /// (enumeration, name, number)
        #[cfg(test)]
        pub const NUMBERS: &[(&str, &str, u32)] = &[$($((stringify!($name), stringify!($variant), $value)),*),*];
    };
}

numbers! {
    hipblasOperation_t { HIPBLAS_OP_N = 111, HIPBLAS_OP_T = 112, HIPBLAS_OP_C = 113 }
    hipblasFillMode_t { HIPBLAS_FILL_MODE_UPPER = 121, HIPBLAS_FILL_MODE_LOWER = 122, HIPBLAS_FILL_MODE_FULL = 123 }
    hipblasDiagType_t { HIPBLAS_DIAG_NON_UNIT = 131, HIPBLAS_DIAG_UNIT = 132 }
    hipblasSideMode_t { HIPBLAS_SIDE_LEFT = 141, HIPBLAS_SIDE_RIGHT = 142 }
    hipblasGemmAlgo_t { HIPBLAS_GEMM_DEFAULT = 160 }
    hipblasPointerMode_t { HIPBLAS_POINTER_MODE_HOST = 0, HIPBLAS_POINTER_MODE_DEVICE = 1 }
    hipblasAtomicsMode_t { HIPBLAS_ATOMICS_NOT_ALLOWED = 0, HIPBLAS_ATOMICS_ALLOWED = 1 }
    hipblasComputeType_t {
        HIPBLAS_COMPUTE_16F = 0,
        HIPBLAS_COMPUTE_16F_PEDANTIC = 1,
        HIPBLAS_COMPUTE_32F = 2,
        HIPBLAS_COMPUTE_32F_PEDANTIC = 3,
        HIPBLAS_COMPUTE_32F_FAST_16F = 4,
        HIPBLAS_COMPUTE_32F_FAST_16BF = 5,
        HIPBLAS_COMPUTE_32F_FAST_TF32 = 6,
        HIPBLAS_COMPUTE_64F = 7,
        HIPBLAS_COMPUTE_64F_PEDANTIC = 8,
        HIPBLAS_COMPUTE_32I = 9,
        HIPBLAS_COMPUTE_32I_PEDANTIC = 10,
    }
    /// hipBLAS's own data types, before those of HIP's `library_types.h`.
    hipblasDatatype_t {
        HIPBLAS_R_16F = 150,
        HIPBLAS_R_32F = 151,
        HIPBLAS_R_64F = 152,
        HIPBLAS_C_16F = 153,
        HIPBLAS_C_32F = 154,
        HIPBLAS_C_64F = 155,
        HIPBLAS_R_8I = 160,
        HIPBLAS_R_8U = 161,
        HIPBLAS_R_32I = 162,
        HIPBLAS_R_32U = 163,
        HIPBLAS_C_8I = 164,
        HIPBLAS_C_8U = 165,
        HIPBLAS_C_32I = 166,
        HIPBLAS_C_32U = 167,
        HIPBLAS_R_16B = 168,
        HIPBLAS_C_16B = 169,
    }
    #[must_use = "a hipBLAS call's answer says whether it did anything"]
    hipblasStatus_t {
        HIPBLAS_STATUS_SUCCESS = 0,
        HIPBLAS_STATUS_NOT_INITIALIZED = 1,
        HIPBLAS_STATUS_ALLOC_FAILED = 2,
        HIPBLAS_STATUS_INVALID_VALUE = 3,
        HIPBLAS_STATUS_MAPPING_ERROR = 4,
        HIPBLAS_STATUS_EXECUTION_FAILED = 5,
        HIPBLAS_STATUS_INTERNAL_ERROR = 6,
        HIPBLAS_STATUS_NOT_SUPPORTED = 7,
        HIPBLAS_STATUS_ARCH_MISMATCH = 8,
        HIPBLAS_STATUS_HANDLE_IS_NULLPTR = 9,
        HIPBLAS_STATUS_INVALID_ENUM = 10,
        HIPBLAS_STATUS_UNKNOWN = 11,
    }
}

impl hipblasStatus_t {
    pub fn as_cublas(self) -> cublasStatus_t {
        match self {
            hipblasStatus_t::HIPBLAS_STATUS_SUCCESS => cublasStatus_t::CUBLAS_STATUS_SUCCESS,
            hipblasStatus_t::HIPBLAS_STATUS_NOT_INITIALIZED
            | hipblasStatus_t::HIPBLAS_STATUS_HANDLE_IS_NULLPTR => {
                cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED
            }
            hipblasStatus_t::HIPBLAS_STATUS_ALLOC_FAILED => cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED,
            hipblasStatus_t::HIPBLAS_STATUS_INVALID_VALUE | hipblasStatus_t::HIPBLAS_STATUS_INVALID_ENUM => {
                cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE
            }
            hipblasStatus_t::HIPBLAS_STATUS_MAPPING_ERROR => cublasStatus_t::CUBLAS_STATUS_MAPPING_ERROR,
            hipblasStatus_t::HIPBLAS_STATUS_EXECUTION_FAILED => {
                cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED
            }
            hipblasStatus_t::HIPBLAS_STATUS_NOT_SUPPORTED => cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED,
            hipblasStatus_t::HIPBLAS_STATUS_ARCH_MISMATCH => cublasStatus_t::CUBLAS_STATUS_ARCH_MISMATCH,
            _ => cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR,
        }
    }
}

pub fn operation(operation: cublasOperation_t) -> Result<hipblasOperation_t> {
    match operation {
        cublasOperation_t::CUBLAS_OP_N => Ok(hipblasOperation_t::HIPBLAS_OP_N),
        cublasOperation_t::CUBLAS_OP_T => Ok(hipblasOperation_t::HIPBLAS_OP_T),
        cublasOperation_t::CUBLAS_OP_C => Ok(hipblasOperation_t::HIPBLAS_OP_C),
        cublasOperation_t::CUBLAS_OP_CONJG => {
            Err(Error::NotSupported("hipBLAS has no conjugate without transposing"))
        }
        _ => Err(Error::InvalidValue("there is no such operation")),
    }
}

pub fn fill_mode(fill: cublasFillMode_t) -> Result<hipblasFillMode_t> {
    match fill {
        cublasFillMode_t::CUBLAS_FILL_MODE_LOWER => Ok(hipblasFillMode_t::HIPBLAS_FILL_MODE_LOWER),
        cublasFillMode_t::CUBLAS_FILL_MODE_UPPER => Ok(hipblasFillMode_t::HIPBLAS_FILL_MODE_UPPER),
        cublasFillMode_t::CUBLAS_FILL_MODE_FULL => Ok(hipblasFillMode_t::HIPBLAS_FILL_MODE_FULL),
        _ => Err(Error::InvalidValue("there is no such fill mode")),
    }
}

pub fn diagonal(diagonal: cublasDiagType_t) -> Result<hipblasDiagType_t> {
    match diagonal {
        cublasDiagType_t::CUBLAS_DIAG_NON_UNIT => Ok(hipblasDiagType_t::HIPBLAS_DIAG_NON_UNIT),
        cublasDiagType_t::CUBLAS_DIAG_UNIT => Ok(hipblasDiagType_t::HIPBLAS_DIAG_UNIT),
        _ => Err(Error::InvalidValue("there is no such kind of diagonal")),
    }
}

pub fn side_mode(side: cublasSideMode_t) -> Result<hipblasSideMode_t> {
    match side {
        cublasSideMode_t::CUBLAS_SIDE_LEFT => Ok(hipblasSideMode_t::HIPBLAS_SIDE_LEFT),
        cublasSideMode_t::CUBLAS_SIDE_RIGHT => Ok(hipblasSideMode_t::HIPBLAS_SIDE_RIGHT),
        _ => Err(Error::InvalidValue("there is no such side")),
    }
}

/// HIP differs: there is one algorithm; cuBLAS's are hints, all with the same result.
pub fn algorithm(_: cublasGemmAlgo_t) -> hipblasGemmAlgo_t {
    hipblasGemmAlgo_t::HIPBLAS_GEMM_DEFAULT
}

/// A size for a release that has the function with 32-bit integers only.
pub fn narrow(size: i64) -> Result<c_int> {
    c_int::try_from(size).map_err(|_| Error::NotSupported("this hipBLAS has 32-bit sizes in that function"))
}

pub fn compute_type(compute: cublasComputeType_t) -> Result<hipblasComputeType_t> {
    use hipblasComputeType_t as Hip;
    Ok(match compute {
        cublasComputeType_t::CUBLAS_COMPUTE_16F => Hip::HIPBLAS_COMPUTE_16F,
        cublasComputeType_t::CUBLAS_COMPUTE_16F_PEDANTIC => Hip::HIPBLAS_COMPUTE_16F_PEDANTIC,
        cublasComputeType_t::CUBLAS_COMPUTE_32F => Hip::HIPBLAS_COMPUTE_32F,
        cublasComputeType_t::CUBLAS_COMPUTE_32F_PEDANTIC => Hip::HIPBLAS_COMPUTE_32F_PEDANTIC,
        // HIP differs: rocBLAS refuses what only permits less precision; more of it is always allowed.
        cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16F
        | cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_16BF
        | cublasComputeType_t::CUBLAS_COMPUTE_32F_FAST_TF32
        | cublasComputeType_t::CUBLAS_COMPUTE_32F_EMULATED_16BFX9 => Hip::HIPBLAS_COMPUTE_32F,
        cublasComputeType_t::CUBLAS_COMPUTE_64F => Hip::HIPBLAS_COMPUTE_64F,
        cublasComputeType_t::CUBLAS_COMPUTE_64F_PEDANTIC => Hip::HIPBLAS_COMPUTE_64F_PEDANTIC,
        // The same, for numbers made of several smaller ones.
        cublasComputeType_t::CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT => Hip::HIPBLAS_COMPUTE_64F,
        cublasComputeType_t::CUBLAS_COMPUTE_32I => Hip::HIPBLAS_COMPUTE_32I,
        cublasComputeType_t::CUBLAS_COMPUTE_32I_PEDANTIC => Hip::HIPBLAS_COMPUTE_32I_PEDANTIC,
        _ => return Err(Error::InvalidValue("there is no such compute type")),
    })
}

pub fn old_data_type(data: cudaDataType) -> Result<hipblasDatatype_t> {
    use hipblasDatatype_t as Hip;
    Ok(match data {
        cudaDataType::CUDA_R_16F => Hip::HIPBLAS_R_16F,
        cudaDataType::CUDA_R_32F => Hip::HIPBLAS_R_32F,
        cudaDataType::CUDA_R_64F => Hip::HIPBLAS_R_64F,
        cudaDataType::CUDA_C_16F => Hip::HIPBLAS_C_16F,
        cudaDataType::CUDA_C_32F => Hip::HIPBLAS_C_32F,
        cudaDataType::CUDA_C_64F => Hip::HIPBLAS_C_64F,
        cudaDataType::CUDA_R_8I => Hip::HIPBLAS_R_8I,
        cudaDataType::CUDA_R_8U => Hip::HIPBLAS_R_8U,
        cudaDataType::CUDA_R_32I => Hip::HIPBLAS_R_32I,
        cudaDataType::CUDA_R_32U => Hip::HIPBLAS_R_32U,
        cudaDataType::CUDA_C_8I => Hip::HIPBLAS_C_8I,
        cudaDataType::CUDA_C_8U => Hip::HIPBLAS_C_8U,
        cudaDataType::CUDA_C_32I => Hip::HIPBLAS_C_32I,
        cudaDataType::CUDA_C_32U => Hip::HIPBLAS_C_32U,
        cudaDataType::CUDA_R_16BF => Hip::HIPBLAS_R_16B,
        cudaDataType::CUDA_C_16BF => Hip::HIPBLAS_C_16B,
        _ => return Err(Error::NotSupported("hipBLAS of ROCm 5 has no such data type")),
    })
}

/// Before ROCm 6 a compute type was a data type: a complex one for complex matrices.
pub fn old_compute_type(compute: cublasComputeType_t, data: cudaDataType) -> Result<hipblasDatatype_t> {
    use hipblasComputeType_t as Hip;
    let is_complex = matches!(data, cudaDataType::CUDA_C_32F | cudaDataType::CUDA_C_64F);
    Ok(match compute_type(compute)? {
        Hip::HIPBLAS_COMPUTE_16F | Hip::HIPBLAS_COMPUTE_16F_PEDANTIC => hipblasDatatype_t::HIPBLAS_R_16F,
        Hip::HIPBLAS_COMPUTE_64F | Hip::HIPBLAS_COMPUTE_64F_PEDANTIC if is_complex => {
            hipblasDatatype_t::HIPBLAS_C_64F
        }
        Hip::HIPBLAS_COMPUTE_64F | Hip::HIPBLAS_COMPUTE_64F_PEDANTIC => hipblasDatatype_t::HIPBLAS_R_64F,
        Hip::HIPBLAS_COMPUTE_32I | Hip::HIPBLAS_COMPUTE_32I_PEDANTIC => hipblasDatatype_t::HIPBLAS_R_32I,
        _ if is_complex => hipblasDatatype_t::HIPBLAS_C_32F,
        _ => hipblasDatatype_t::HIPBLAS_R_32F,
    })
}
