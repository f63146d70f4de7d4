//! cuSOLVER's numbers as hipSOLVER has them, and hipSOLVER's answers as cuSOLVER's. The numbers are equal in ROCm 5.2 to 7.2
//! (tools/data/hip/hipsolver_numbers.json).

use core::ffi::{c_int, c_uint};

use crate::types::*;
use crate::{Error, Result};

fn one_of<T: Copy + PartialEq>(value: T, pairs: &[(T, c_uint)], what: &'static str) -> Result<c_uint> {
    let found = pairs.iter().find(|(ours, _)| *ours == value);
    found.map(|(_, theirs)| *theirs).ok_or(Error::InvalidValue(what))
}

pub const FILL_MODES: [(cublasFillMode_t, c_uint); 2] =
    [(cublasFillMode_t::CUBLAS_FILL_MODE_UPPER, 121), (cublasFillMode_t::CUBLAS_FILL_MODE_LOWER, 122)];

pub const OPERATIONS: [(cublasOperation_t, c_uint); 3] = [
    (cublasOperation_t::CUBLAS_OP_N, 111),
    (cublasOperation_t::CUBLAS_OP_T, 112),
    (cublasOperation_t::CUBLAS_OP_C, 113),
];

pub const SIDE_MODES: [(cublasSideMode_t, c_uint); 2] =
    [(cublasSideMode_t::CUBLAS_SIDE_LEFT, 141), (cublasSideMode_t::CUBLAS_SIDE_RIGHT, 142)];

pub const EIG_MODES: [(cusolverEigMode_t, c_uint); 2] = [
    (cusolverEigMode_t::CUSOLVER_EIG_MODE_NOVECTOR, 201),
    (cusolverEigMode_t::CUSOLVER_EIG_MODE_VECTOR, 202),
];

pub const EIG_TYPES: [(cusolverEigType_t, c_uint); 3] = [
    (cusolverEigType_t::CUSOLVER_EIG_TYPE_1, 211),
    (cusolverEigType_t::CUSOLVER_EIG_TYPE_2, 212),
    (cusolverEigType_t::CUSOLVER_EIG_TYPE_3, 213),
];

/// HIP differs: the range of values stands before that of places.
pub const EIG_RANGES: [(cusolverEigRange_t, c_uint); 3] = [
    (cusolverEigRange_t::CUSOLVER_EIG_RANGE_ALL, 221),
    (cusolverEigRange_t::CUSOLVER_EIG_RANGE_V, 222),
    (cusolverEigRange_t::CUSOLVER_EIG_RANGE_I, 223),
];

pub const DETERMINISTIC_MODES: [(cusolverDeterministicMode_t, c_uint); 2] = [
    (cusolverDeterministicMode_t::CUSOLVER_DETERMINISTIC_RESULTS, 241),
    (cusolverDeterministicMode_t::CUSOLVER_ALLOW_NON_DETERMINISTIC_RESULTS, 242),
];

/// hipSOLVER's statuses and cuSOLVER's. Its `INVALID_ENUM` is an argument's, its `UNKNOWN` is of a library behind it.
pub const STATUSES: [(c_int, cusolverStatus_t); 14] = [
    (0, cusolverStatus_t::CUSOLVER_STATUS_SUCCESS),
    (1, cusolverStatus_t::CUSOLVER_STATUS_NOT_INITIALIZED),
    (2, cusolverStatus_t::CUSOLVER_STATUS_ALLOC_FAILED),
    (3, cusolverStatus_t::CUSOLVER_STATUS_INVALID_VALUE),
    (4, cusolverStatus_t::CUSOLVER_STATUS_MAPPING_ERROR),
    (5, cusolverStatus_t::CUSOLVER_STATUS_EXECUTION_FAILED),
    (6, cusolverStatus_t::CUSOLVER_STATUS_INTERNAL_ERROR),
    (7, cusolverStatus_t::CUSOLVER_STATUS_NOT_SUPPORTED),
    (8, cusolverStatus_t::CUSOLVER_STATUS_ARCH_MISMATCH),
    (9, cusolverStatus_t::CUSOLVER_STATUS_NOT_INITIALIZED),
    (10, cusolverStatus_t::CUSOLVER_STATUS_INVALID_VALUE),
    (11, cusolverStatus_t::CUSOLVER_STATUS_INTERNAL_ERROR),
    (12, cusolverStatus_t::CUSOLVER_STATUS_ZERO_PIVOT),
    (13, cusolverStatus_t::CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED),
];

pub fn status(theirs: c_int) -> cusolverStatus_t {
    let found = STATUSES.iter().find(|(number, _)| *number == theirs);
    found.map_or(cusolverStatus_t::CUSOLVER_STATUS_INTERNAL_ERROR, |(_, ours)| *ours)
}

pub fn fill_mode(uplo: cublasFillMode_t) -> Result<c_uint> {
    one_of(uplo, &FILL_MODES, "there is no such triangle")
}

pub fn operation(trans: cublasOperation_t) -> Result<c_uint> {
    one_of(trans, &OPERATIONS, "there is no such operation")
}

pub fn side_mode(side: cublasSideMode_t) -> Result<c_uint> {
    one_of(side, &SIDE_MODES, "there is no such side")
}

pub fn eig_mode(jobz: cusolverEigMode_t) -> Result<c_uint> {
    one_of(jobz, &EIG_MODES, "there is no such job")
}

pub fn eig_type(itype: cusolverEigType_t) -> Result<c_uint> {
    one_of(itype, &EIG_TYPES, "there is no such problem")
}

pub fn eig_range(range: cusolverEigRange_t) -> Result<c_uint> {
    one_of(range, &EIG_RANGES, "there is no such range")
}

pub fn deterministic_mode(mode: cusolverDeterministicMode_t) -> Result<c_uint> {
    one_of(mode, &DETERMINISTIC_MODES, "there is no such mode")
}
