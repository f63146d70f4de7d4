//! The types of cuSOLVER's headers, of CUDA 11 to 13: a number means the same in all of them.

use core::ffi::c_void;

pub use cublas_cpu::Complex;
pub use cuda_abi::runtime::v13::{cudaDataType, cudaStream_t};

pub type cuComplex = Complex<f32>;
pub type cuDoubleComplex = Complex<f64>;

kit::numbers! {
    cusolverStatus_t {
        CUSOLVER_STATUS_SUCCESS = 0,
        CUSOLVER_STATUS_NOT_INITIALIZED = 1,
        CUSOLVER_STATUS_ALLOC_FAILED = 2,
        CUSOLVER_STATUS_INVALID_VALUE = 3,
        CUSOLVER_STATUS_ARCH_MISMATCH = 4,
        CUSOLVER_STATUS_MAPPING_ERROR = 5,
        CUSOLVER_STATUS_EXECUTION_FAILED = 6,
        CUSOLVER_STATUS_INTERNAL_ERROR = 7,
        CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
        CUSOLVER_STATUS_NOT_SUPPORTED = 9,
        CUSOLVER_STATUS_ZERO_PIVOT = 10,
        CUSOLVER_STATUS_INVALID_LICENSE = 11,
        CUSOLVER_STATUS_IRS_PARAMS_NOT_INITIALIZED = 12,
        CUSOLVER_STATUS_IRS_PARAMS_INVALID = 13,
        CUSOLVER_STATUS_IRS_PARAMS_INVALID_PREC = 14,
        CUSOLVER_STATUS_IRS_PARAMS_INVALID_REFINE = 15,
        CUSOLVER_STATUS_IRS_PARAMS_INVALID_MAXITER = 16,
        CUSOLVER_STATUS_IRS_INTERNAL_ERROR = 20,
        CUSOLVER_STATUS_IRS_NOT_SUPPORTED = 21,
        CUSOLVER_STATUS_IRS_OUT_OF_RANGE = 22,
        CUSOLVER_STATUS_IRS_NRHS_NOT_SUPPORTED_FOR_REFINE_GMRES = 23,
        CUSOLVER_STATUS_IRS_INFOS_NOT_INITIALIZED = 25,
        CUSOLVER_STATUS_IRS_INFOS_NOT_DESTROYED = 26,
        CUSOLVER_STATUS_IRS_MATRIX_SINGULAR = 30,
        CUSOLVER_STATUS_INVALID_WORKSPACE = 31,
    }
    cusolverEigType_t {
        CUSOLVER_EIG_TYPE_1 = 1,
        CUSOLVER_EIG_TYPE_2 = 2,
        CUSOLVER_EIG_TYPE_3 = 3,
    }
    cusolverEigMode_t {
        CUSOLVER_EIG_MODE_NOVECTOR = 0,
        CUSOLVER_EIG_MODE_VECTOR = 1,
    }
    cusolverEigRange_t {
        CUSOLVER_EIG_RANGE_ALL = 1001,
        CUSOLVER_EIG_RANGE_I = 1002,
        CUSOLVER_EIG_RANGE_V = 1003,
    }
    cusolverEigComp_t {
        CUSOLVER_EIG_COMP_N = 10,
        CUSOLVER_EIG_COMP_I = 11,
        CUSOLVER_EIG_COMP_V = 12,
    }
    cusolverIRSRefinement_t {
        CUSOLVER_IRS_REFINE_NOT_SET = 1100,
        CUSOLVER_IRS_REFINE_NONE = 1101,
        CUSOLVER_IRS_REFINE_CLASSICAL = 1102,
        CUSOLVER_IRS_REFINE_CLASSICAL_GMRES = 1103,
        CUSOLVER_IRS_REFINE_GMRES = 1104,
        CUSOLVER_IRS_REFINE_GMRES_GMRES = 1105,
        CUSOLVER_IRS_REFINE_GMRES_NOPCOND = 1106,
    }
    cusolverPrecType_t {
        CUSOLVER_R_64F = 1203,
        CUSOLVER_R_32F = 1204,
        CUSOLVER_R_16F = 1205,
        CUSOLVER_R_16BF = 1206,
        CUSOLVER_R_TF32 = 1207,
        CUSOLVER_C_64F = 1213,
        CUSOLVER_C_32F = 1214,
        CUSOLVER_C_16F = 1215,
        CUSOLVER_C_16BF = 1216,
        CUSOLVER_C_TF32 = 1217,
    }
    cusolverAlgMode_t {
        CUSOLVER_ALG_0 = 0,
        CUSOLVER_ALG_1 = 1,
        CUSOLVER_ALG_2 = 2,
    }
    cusolverStorevMode_t {
        CUBLAS_STOREV_COLUMNWISE = 0,
        CUBLAS_STOREV_ROWWISE = 1,
    }
    cusolverDirectMode_t {
        CUBLAS_DIRECT_FORWARD = 0,
        CUBLAS_DIRECT_BACKWARD = 1,
    }
    cusolverDeterministicMode_t {
        CUSOLVER_DETERMINISTIC_RESULTS = 1,
        CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS = 2,
    }
    /// Of 13 alone, as are the emulations.
    cusolverMathMode_t {
        CUSOLVER_DEFAULT_MATH = 1,
        CUSOLVER_FP32_EMULATED_BF16X9_MATH = 2,
        CUSOLVER_FP64_EMULATED_FIXEDPOINT_MATH = 4,
        CUSOLVER_FP32_FP64_EMULATED_MATH = 6,
    }
    cudaEmulationStrategy_t {
        CUDA_EMULATION_STRATEGY_DEFAULT = 0,
        CUDA_EMULATION_STRATEGY_PERFORMANT = 1,
        CUDA_EMULATION_STRATEGY_EAGER = 2,
    }
    cudaEmulationMantissaControl_t {
        CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC = 0,
        CUDA_EMULATION_MANTISSA_CONTROL_FIXED = 1,
    }
    cudaEmulationSpecialValuesSupport_t {
        CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_NONE = 0,
        CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_INFINITY = 1,
        CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_NAN = 2,
        CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT = 0xFFFF,
    }
    cusolverDnFunction_t {
        CUSOLVERDN_GETRF = 0,
        CUSOLVERDN_POTRF = 1,
        CUSOLVERDN_SYEVBATCHED = 2,
        CUSOLVERDN_GEQRF = 3,
        CUSOLVERDN_SYEVD = 4,
        CUSOLVERDN_GESVD = 5,
        CUSOLVERDN_GEEV = 6,
    }
    cusolverRfResetValuesFastMode_t {
        CUSOLVERRF_RESET_VALUES_FAST_MODE_OFF = 0,
        CUSOLVERRF_RESET_VALUES_FAST_MODE_ON = 1,
    }
    cusolverRfMatrixFormat_t {
        CUSOLVERRF_MATRIX_FORMAT_CSR = 0,
        CUSOLVERRF_MATRIX_FORMAT_CSC = 1,
    }
    cusolverRfUnitDiagonal_t {
        CUSOLVERRF_UNIT_DIAGONAL_STORED_L = 0,
        CUSOLVERRF_UNIT_DIAGONAL_STORED_U = 1,
        CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_L = 2,
        CUSOLVERRF_UNIT_DIAGONAL_ASSUMED_U = 3,
    }
    cusolverRfFactorization_t {
        CUSOLVERRF_FACTORIZATION_ALG0 = 0,
        CUSOLVERRF_FACTORIZATION_ALG1 = 1,
        CUSOLVERRF_FACTORIZATION_ALG2 = 2,
    }
    cusolverRfTriangularSolve_t {
        CUSOLVERRF_TRIANGULAR_SOLVE_ALG1 = 1,
        CUSOLVERRF_TRIANGULAR_SOLVE_ALG2 = 2,
        CUSOLVERRF_TRIANGULAR_SOLVE_ALG3 = 3,
    }
    /// cusolverMg.h
    cusolverMgGridMapping_t {
        CUDALIBMG_GRID_MAPPING_COL_MAJOR = 0,
        CUDALIBMG_GRID_MAPPING_ROW_MAJOR = 1,
    }
    cusolverRfNumericBoostReport_t {
        CUSOLVERRF_NUMERIC_BOOST_NOT_USED = 0,
        CUSOLVERRF_NUMERIC_BOOST_USED = 1,
    }
    /// cublas_api.h
    cublasFillMode_t {
        CUBLAS_FILL_MODE_LOWER = 0,
        CUBLAS_FILL_MODE_UPPER = 1,
        CUBLAS_FILL_MODE_FULL = 2,
    }
    cublasSideMode_t {
        CUBLAS_SIDE_LEFT = 0,
        CUBLAS_SIDE_RIGHT = 1,
    }
    cublasOperation_t {
        CUBLAS_OP_N = 0,
        CUBLAS_OP_T = 1,
        CUBLAS_OP_C = 2,
    }
    cublasDiagType_t {
        CUBLAS_DIAG_NON_UNIT = 0,
        CUBLAS_DIAG_UNIT = 1,
    }
    /// library_types.h
    libraryPropertyType {
        MAJOR_VERSION = 0,
        MINOR_VERSION = 1,
        PATCH_LEVEL = 2,
    }
}

pub type cudaLibMgGrid_t = *mut c_void;
pub type cudaLibMgMatrixDesc_t = *mut c_void;

/// Handles look like pointers to something.
macro_rules! handles {
    ($($thing:ident $handle:ident,)*) => {$(
        pub enum $thing {}
        pub type $handle = *mut $thing;
    )*};
}

handles! {
    cusolverDnContext cusolverDnHandle_t,
    cusolverDnParams cusolverDnParams_t,
    cusolverDnIRSParams cusolverDnIRSParams_t,
    cusolverDnIRSInfos cusolverDnIRSInfos_t,
    syevjInfo syevjInfo_t,
    gesvdjInfo gesvdjInfo_t,
    cusolverSpContext cusolverSpHandle_t,
    cusolverRfCommon cusolverRfHandle_t,
    cusolverMgContext cusolverMgHandle_t,
    csrqrInfo csrqrInfo_t,
    csrcholInfo csrcholInfo_t,
    csrluInfoHost csrluInfoHost_t,
    csrqrInfoHost csrqrInfoHost_t,
    csrcholInfoHost csrcholInfoHost_t,
    cusparseMatDescr cusparseMatDescr_t,
}
