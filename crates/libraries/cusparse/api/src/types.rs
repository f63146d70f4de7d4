//! The types of cusparse.h, of CUDA 11 to 13: a number means the same in all of them.

use core::ffi::{c_char, c_int, c_void};

pub use cuda_abi::runtime::v13::{cudaDataType, cudaStream_t};
use cusparse_cpu::Complex;
pub use half::f16 as __half;

pub type cuComplex = Complex<f32>;
pub type cuDoubleComplex = Complex<f64>;

kit::numbers! {
    cusparseStatus_t {
        CUSPARSE_STATUS_SUCCESS = 0,
        CUSPARSE_STATUS_NOT_INITIALIZED = 1,
        CUSPARSE_STATUS_ALLOC_FAILED = 2,
        CUSPARSE_STATUS_INVALID_VALUE = 3,
        CUSPARSE_STATUS_ARCH_MISMATCH = 4,
        CUSPARSE_STATUS_MAPPING_ERROR = 5,
        CUSPARSE_STATUS_EXECUTION_FAILED = 6,
        CUSPARSE_STATUS_INTERNAL_ERROR = 7,
        CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED = 8,
        CUSPARSE_STATUS_ZERO_PIVOT = 9,
        CUSPARSE_STATUS_NOT_SUPPORTED = 10,
        CUSPARSE_STATUS_INSUFFICIENT_RESOURCES = 11,
    }
    cusparsePointerMode_t {
        CUSPARSE_POINTER_MODE_HOST = 0,
        CUSPARSE_POINTER_MODE_DEVICE = 1,
    }
    cusparseAction_t {
        CUSPARSE_ACTION_SYMBOLIC = 0,
        CUSPARSE_ACTION_NUMERIC = 1,
    }
    cusparseMatrixType_t {
        CUSPARSE_MATRIX_TYPE_GENERAL = 0,
        CUSPARSE_MATRIX_TYPE_SYMMETRIC = 1,
        CUSPARSE_MATRIX_TYPE_HERMITIAN = 2,
        CUSPARSE_MATRIX_TYPE_TRIANGULAR = 3,
    }
    cusparseFillMode_t {
        CUSPARSE_FILL_MODE_LOWER = 0,
        CUSPARSE_FILL_MODE_UPPER = 1,
    }
    cusparseDiagType_t {
        CUSPARSE_DIAG_TYPE_NON_UNIT = 0,
        CUSPARSE_DIAG_TYPE_UNIT = 1,
    }
    cusparseIndexBase_t {
        CUSPARSE_INDEX_BASE_ZERO = 0,
        CUSPARSE_INDEX_BASE_ONE = 1,
    }
    cusparseOperation_t {
        CUSPARSE_OPERATION_NON_TRANSPOSE = 0,
        CUSPARSE_OPERATION_TRANSPOSE = 1,
        CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE = 2,
    }
    cusparseDirection_t {
        CUSPARSE_DIRECTION_ROW = 0,
        CUSPARSE_DIRECTION_COLUMN = 1,
    }
    cusparseSolvePolicy_t {
        CUSPARSE_SOLVE_POLICY_NO_LEVEL = 0,
        CUSPARSE_SOLVE_POLICY_USE_LEVEL = 1,
    }
    cusparseColorAlg_t {
        CUSPARSE_COLOR_ALG0 = 0,
        CUSPARSE_COLOR_ALG1 = 1,
    }
    /// Of 11 alone.
    cusparseAlgMode_t {
        CUSPARSE_ALG_MERGE_PATH = 0,
    }
    /// 2 is of 11 alone.
    cusparseCsr2CscAlg_t {
        CUSPARSE_CSR2CSC_ALG1 = 1,
        CUSPARSE_CSR2CSC_ALG2 = 2,
    }
    cusparseFormat_t {
        CUSPARSE_FORMAT_CSR = 1,
        CUSPARSE_FORMAT_CSC = 2,
        CUSPARSE_FORMAT_COO = 3,
        CUSPARSE_FORMAT_COO_AOS = 4,
        CUSPARSE_FORMAT_BLOCKED_ELL = 5,
        CUSPARSE_FORMAT_BSR = 6,
        CUSPARSE_FORMAT_SLICED_ELLPACK = 7,
    }
    cusparseOrder_t {
        CUSPARSE_ORDER_COL = 1,
        CUSPARSE_ORDER_ROW = 2,
    }
    cusparseIndexType_t {
        CUSPARSE_INDEX_16U = 1,
        CUSPARSE_INDEX_32I = 2,
        CUSPARSE_INDEX_64I = 3,
    }
    cusparseSpMatAttribute_t {
        CUSPARSE_SPMAT_FILL_MODE = 0,
        CUSPARSE_SPMAT_DIAG_TYPE = 1,
        CUSPARSE_SPMAT_STORAGE = 2,
        CUSPARSE_SPMAT_SYMMETRY_TYPE = 3,
    }
    cusparseSparseToDenseAlg_t {
        CUSPARSE_SPARSETODENSE_ALG_DEFAULT = 0,
    }
    cusparseDenseToSparseAlg_t {
        CUSPARSE_DENSETOSPARSE_ALG_DEFAULT = 0,
    }
    cusparseSpMVAlg_t {
        CUSPARSE_SPMV_ALG_DEFAULT = 0,
        CUSPARSE_SPMV_COO_ALG1 = 1,
        CUSPARSE_SPMV_CSR_ALG1 = 2,
        CUSPARSE_SPMV_CSR_ALG2 = 3,
        CUSPARSE_SPMV_COO_ALG2 = 4,
        CUSPARSE_SPMV_SELL_ALG1 = 5,
        CUSPARSE_SPMV_BSR_ALG1 = 6,
    }
    cusparseApiParam_t {
        CUSPARSE_PARAM_OP = 0,
        CUSPARSE_PARAM_ALG = 1,
        CUSPARSE_PARAM_BUFFER = 2,
    }
    cusparseSpMVOpAlg_t {
        CUSPARSE_SPMVOP_ALG_DEFAULT = 0,
        CUSPARSE_SPMVOP_ALG1 = 1,
        CUSPARSE_SPMVOP_ALG2 = 2,
    }
    cusparseSpMatConvertAlg_t {
        CUSPARSE_SPMAT_CONVERT_ALG_DEFAULT = 0,
    }
    cusparseSpSVAlg_t {
        CUSPARSE_SPSV_ALG_DEFAULT = 0,
        CUSPARSE_SPSV_ALG1 = 1,
        CUSPARSE_SPSV_ALG2 = 2,
    }
    cusparseSpSVUpdate_t {
        CUSPARSE_SPSV_UPDATE_GENERAL = 0,
        CUSPARSE_SPSV_UPDATE_DIAGONAL = 1,
    }
    cusparseSpSMAlg_t {
        CUSPARSE_SPSM_ALG_DEFAULT = 0,
    }
    cusparseSpSMUpdate_t {
        CUSPARSE_SPSM_UPDATE_GENERAL = 0,
        CUSPARSE_SPSM_UPDATE_DIAGONAL = 1,
    }
    cusparseSpMMAlg_t {
        CUSPARSE_SPMM_ALG_DEFAULT = 0,
        CUSPARSE_SPMM_COO_ALG1 = 1,
        CUSPARSE_SPMM_COO_ALG2 = 2,
        CUSPARSE_SPMM_COO_ALG3 = 3,
        CUSPARSE_SPMM_CSR_ALG1 = 4,
        CUSPARSE_SPMM_COO_ALG4 = 5,
        CUSPARSE_SPMM_CSR_ALG2 = 6,
        CUSPARSE_SPMM_CSR_ALG3 = 12,
        CUSPARSE_SPMM_BLOCKED_ELL_ALG1 = 13,
        CUSPARSE_SPMM_BSR_ALG1 = 14,
    }
    cusparseSpGEMMAlg_t {
        CUSPARSE_SPGEMM_DEFAULT = 0,
        CUSPARSE_SPGEMM_CSR_ALG_DETERMINITIC = 1,
        CUSPARSE_SPGEMM_CSR_ALG_NONDETERMINITIC = 2,
        CUSPARSE_SPGEMM_ALG1 = 3,
        CUSPARSE_SPGEMM_ALG2 = 4,
        CUSPARSE_SPGEMM_ALG3 = 5,
    }
    cusparseSpGEAMAlg_t {
        CUSPARSE_SPGEAM_ALG_DEFAULT = 0,
        CUSPARSE_SPGEAM_ALG1 = 1,
    }
    cusparseSDDMMAlg_t {
        CUSPARSE_SDDMM_ALG_DEFAULT = 0,
    }
    cusparseSpMMOpAlg_t {
        CUSPARSE_SPMM_OP_ALG_DEFAULT = 0,
    }
    /// library_types.h
    libraryPropertyType {
        MAJOR_VERSION = 0,
        MINOR_VERSION = 1,
        PATCH_LEVEL = 2,
    }
}

/// Handles look like pointers to something.
macro_rules! handles {
    ($($thing:ident $handle:ident,)*) => {$(
        pub enum $thing {}
        pub type $handle = *mut $thing;
    )*};
}

handles! {
    cusparseContext cusparseHandle_t,
    cusparseMatDescr cusparseMatDescr_t,
    csrsv2Info csrsv2Info_t,
    csrsm2Info csrsm2Info_t,
    bsrsv2Info bsrsv2Info_t,
    bsrsm2Info bsrsm2Info_t,
    csric02Info csric02Info_t,
    bsric02Info bsric02Info_t,
    csrilu02Info csrilu02Info_t,
    bsrilu02Info bsrilu02Info_t,
    csrgemm2Info csrgemm2Info_t,
    csru2csrInfo csru2csrInfo_t,
    cusparseColorInfo cusparseColorInfo_t,
    pruneInfo pruneInfo_t,
    cusparseSpVecDescr cusparseSpVecDescr_t,
    cusparseDnVecDescr cusparseDnVecDescr_t,
    cusparseSpMatDescr cusparseSpMatDescr_t,
    cusparseDnMatDescr cusparseDnMatDescr_t,
    cusparseSpMVDescr cusparseSpMVDescr_t,
    cusparseSpMVOpDescr cusparseSpMVOpDescr_t,
    cusparseSpMVOpPlan cusparseSpMVOpPlan_t,
    cusparseSpMatConvertDescr cusparseSpMatConvertDescr_t,
    cusparseSpSVDescr cusparseSpSVDescr_t,
    cusparseSpSMDescr cusparseSpSMDescr_t,
    cusparseSpGEMMDescr cusparseSpGEMMDescr_t,
    cusparseSpGEAMDescr cusparseSpGEAMDescr_t,
    cusparseSpMMOpPlan cusparseSpMMOpPlan_t,
}

// C's const forms are the same numbers.
pub type cusparseConstSpVecDescr_t = cusparseSpVecDescr_t;
pub type cusparseConstDnVecDescr_t = cusparseDnVecDescr_t;
pub type cusparseConstSpMatDescr_t = cusparseSpMatDescr_t;
pub type cusparseConstDnMatDescr_t = cusparseDnMatDescr_t;

/// Arrays of a matrix, in the order of its format's fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cusparseSpMatPointers_t {
    pub format: cusparseFormat_t,
    pub data: [*mut c_void; 8],
}

/// Sizes of a matrix, in the order of its format's fields.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct cusparseSpMatSizes_t {
    pub format: cusparseFormat_t,
    pub data: [i64; 8],
}

pub type cusparseLoggerCallback_t = Option<unsafe extern "C" fn(c_int, *const c_char, *const c_char)>;
