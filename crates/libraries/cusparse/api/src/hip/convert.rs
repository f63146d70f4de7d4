//! cuSPARSE's numbers as hipSPARSE has them, and hipSPARSE's answers as cuSPARSE's (tools/data/hip/hipsparse_numbers.json).
//!
//! The rule: hipSPARSE ends the process for a number that it does not know, so no other than those of these tables reaches it.

use core::ffi::{c_int, c_uint};

use super::library::Generation;
use crate::types::*;
use crate::{Error, Result};

fn one_of<T: Copy + PartialEq>(value: T, pairs: &[(T, c_uint)]) -> Result<c_uint> {
    let found = pairs.iter().find(|(ours, _)| *ours == value);
    found.map(|(_, theirs)| *theirs).ok_or(Error::NotSupported("hipSPARSE has no such number"))
}

pub const OPERATIONS: [(cusparseOperation_t, c_uint); 3] = [
    (cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE, 0),
    (cusparseOperation_t::CUSPARSE_OPERATION_TRANSPOSE, 1),
    (cusparseOperation_t::CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE, 2),
];

pub const DIRECTIONS: [(cusparseDirection_t, c_uint); 2] =
    [(cusparseDirection_t::CUSPARSE_DIRECTION_ROW, 0), (cusparseDirection_t::CUSPARSE_DIRECTION_COLUMN, 1)];

pub const INDEX_BASES: [(cusparseIndexBase_t, c_uint); 2] =
    [(cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ZERO, 0), (cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ONE, 1)];

pub const ACTIONS: [(cusparseAction_t, c_uint); 2] =
    [(cusparseAction_t::CUSPARSE_ACTION_SYMBOLIC, 0), (cusparseAction_t::CUSPARSE_ACTION_NUMERIC, 1)];

pub const SOLVE_POLICIES: [(cusparseSolvePolicy_t, c_uint); 2] = [
    (cusparseSolvePolicy_t::CUSPARSE_SOLVE_POLICY_NO_LEVEL, 0),
    (cusparseSolvePolicy_t::CUSPARSE_SOLVE_POLICY_USE_LEVEL, 1),
];

pub const POINTER_MODES: [(cusparsePointerMode_t, c_uint); 2] = [
    (cusparsePointerMode_t::CUSPARSE_POINTER_MODE_HOST, 0),
    (cusparsePointerMode_t::CUSPARSE_POINTER_MODE_DEVICE, 1),
];

pub const FILL_MODES: [(cusparseFillMode_t, c_uint); 2] =
    [(cusparseFillMode_t::CUSPARSE_FILL_MODE_LOWER, 0), (cusparseFillMode_t::CUSPARSE_FILL_MODE_UPPER, 1)];

pub const DIAG_TYPES: [(cusparseDiagType_t, c_uint); 2] =
    [(cusparseDiagType_t::CUSPARSE_DIAG_TYPE_NON_UNIT, 0), (cusparseDiagType_t::CUSPARSE_DIAG_TYPE_UNIT, 1)];

/// Of others our own code says what cuSPARSE says.
pub const MATRIX_TYPES: [(cusparseMatrixType_t, c_uint); 1] =
    [(cusparseMatrixType_t::CUSPARSE_MATRIX_TYPE_GENERAL, 0)];

pub const CSR2CSC_ALGS: [(cusparseCsr2CscAlg_t, c_uint); 2] =
    [(cusparseCsr2CscAlg_t::CUSPARSE_CSR2CSC_ALG1, 1), (cusparseCsr2CscAlg_t::CUSPARSE_CSR2CSC_ALG2, 2)];

pub const INDEX_TYPES: [(cusparseIndexType_t, c_uint); 2] =
    [(cusparseIndexType_t::CUSPARSE_INDEX_32I, 2), (cusparseIndexType_t::CUSPARSE_INDEX_64I, 3)];

/// The types that every release takes; HIP's numbers of them are CUDA's.
pub const DATA_TYPES: [(cudaDataType, c_uint); 4] = [
    (cudaDataType::CUDA_R_32F, 0),
    (cudaDataType::CUDA_R_64F, 1),
    (cudaDataType::CUDA_C_32F, 4),
    (cudaDataType::CUDA_C_64F, 5),
];

/// Of each generation.
type Both<T, const N: usize> = [(T, [c_uint; 2]); N];

pub const ORDERS: Both<cusparseOrder_t, 2> =
    [(cusparseOrder_t::CUSPARSE_ORDER_COL, [1, 1]), (cusparseOrder_t::CUSPARSE_ORDER_ROW, [0, 2])];

/// What is missing has no number in most releases: hints, in whose place the default stands.
pub const SPMV_ALGS: Both<cusparseSpMVAlg_t, 5> = [
    (cusparseSpMVAlg_t::CUSPARSE_SPMV_ALG_DEFAULT, [4, 0]),
    (cusparseSpMVAlg_t::CUSPARSE_SPMV_COO_ALG1, [5, 1]),
    (cusparseSpMVAlg_t::CUSPARSE_SPMV_COO_ALG2, [6, 4]),
    (cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG1, [7, 2]),
    (cusparseSpMVAlg_t::CUSPARSE_SPMV_CSR_ALG2, [8, 3]),
];

pub const SPMM_ALGS: Both<cusparseSpMMAlg_t, 9> = [
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_ALG_DEFAULT, [5, 0]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_COO_ALG1, [6, 1]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_COO_ALG2, [7, 2]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_COO_ALG3, [8, 3]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_COO_ALG4, [9, 5]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG1, [10, 4]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG2, [11, 6]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_BLOCKED_ELL_ALG1, [12, 13]),
    (cusparseSpMMAlg_t::CUSPARSE_SPMM_CSR_ALG3, [13, 12]),
];

/// The first generation's are not used: its products of sparse matrices are another protocol.
pub const SPGEMM_ALGS: [(cusparseSpGEMMAlg_t, c_uint); 6] = [
    (cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_DEFAULT, 0),
    (cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_CSR_ALG_DETERMINITIC, 1),
    (cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_CSR_ALG_NONDETERMINITIC, 2),
    (cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG1, 3),
    (cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG2, 4),
    (cusparseSpGEMMAlg_t::CUSPARSE_SPGEMM_ALG3, 5),
];

/// hipSPARSE's statuses are cuSPARSE's.
pub const STATUSES: [(c_int, cusparseStatus_t); 12] = [
    (0, cusparseStatus_t::CUSPARSE_STATUS_SUCCESS),
    (1, cusparseStatus_t::CUSPARSE_STATUS_NOT_INITIALIZED),
    (2, cusparseStatus_t::CUSPARSE_STATUS_ALLOC_FAILED),
    (3, cusparseStatus_t::CUSPARSE_STATUS_INVALID_VALUE),
    (4, cusparseStatus_t::CUSPARSE_STATUS_ARCH_MISMATCH),
    (5, cusparseStatus_t::CUSPARSE_STATUS_MAPPING_ERROR),
    (6, cusparseStatus_t::CUSPARSE_STATUS_EXECUTION_FAILED),
    (7, cusparseStatus_t::CUSPARSE_STATUS_INTERNAL_ERROR),
    (8, cusparseStatus_t::CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED),
    (9, cusparseStatus_t::CUSPARSE_STATUS_ZERO_PIVOT),
    (10, cusparseStatus_t::CUSPARSE_STATUS_NOT_SUPPORTED),
    (11, cusparseStatus_t::CUSPARSE_STATUS_INSUFFICIENT_RESOURCES),
];

pub fn status(theirs: c_int) -> cusparseStatus_t {
    let found = STATUSES.iter().find(|(number, _)| *number == theirs);
    found.map_or(cusparseStatus_t::CUSPARSE_STATUS_INTERNAL_ERROR, |(_, ours)| *ours)
}

macro_rules! conversions {
    ($($function:ident($ty:ty) of $table:ident;)*) => {
        $(pub fn $function(value: $ty) -> Result<c_uint> {
            one_of(value, &$table)
        })*
    };
}

conversions! {
    operation(cusparseOperation_t) of OPERATIONS;
    direction(cusparseDirection_t) of DIRECTIONS;
    index_base(cusparseIndexBase_t) of INDEX_BASES;
    action(cusparseAction_t) of ACTIONS;
    solve_policy(cusparseSolvePolicy_t) of SOLVE_POLICIES;
    pointer_mode(cusparsePointerMode_t) of POINTER_MODES;
    fill_mode(cusparseFillMode_t) of FILL_MODES;
    diag_type(cusparseDiagType_t) of DIAG_TYPES;
    matrix_type(cusparseMatrixType_t) of MATRIX_TYPES;
    csr2csc_alg(cusparseCsr2CscAlg_t) of CSR2CSC_ALGS;
    index_type(cusparseIndexType_t) of INDEX_TYPES;
    data_type(cudaDataType) of DATA_TYPES;
    spgemm_alg(cusparseSpGEMMAlg_t) of SPGEMM_ALGS;
}

fn of_generation<T: Copy + PartialEq>(
    value: T,
    pairs: &[(T, [c_uint; 2])],
    which: Generation,
) -> Option<c_uint> {
    pairs.iter().find(|(ours, _)| *ours == value).map(|(_, theirs)| theirs[which as usize])
}

pub fn order(value: cusparseOrder_t, which: Generation) -> Result<c_uint> {
    of_generation(value, &ORDERS, which).ok_or(Error::NotSupported("hipSPARSE has no such order"))
}

pub fn spmv_alg(value: cusparseSpMVAlg_t, which: Generation) -> c_uint {
    of_generation(value, &SPMV_ALGS, which).unwrap_or(SPMV_ALGS[0].1[which as usize])
}

pub fn spmm_alg(value: cusparseSpMMAlg_t, which: Generation) -> c_uint {
    of_generation(value, &SPMM_ALGS, which).unwrap_or(SPMM_ALGS[0].1[which as usize])
}
