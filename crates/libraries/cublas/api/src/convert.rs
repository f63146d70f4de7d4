//! cuBLAS's enums as `cublas_cpu` has them; a number that is none of them is an invalid value.

use cublas_cpu::{Diag, Op, Side, Uplo};

use crate::{Error, Result, cublasDiagType_t, cublasFillMode_t, cublasOperation_t, cublasSideMode_t};

pub fn op(operation: cublasOperation_t) -> Result<Op> {
    match operation {
        cublasOperation_t::CUBLAS_OP_N => Ok(Op::N),
        cublasOperation_t::CUBLAS_OP_T => Ok(Op::T),
        cublasOperation_t::CUBLAS_OP_C => Ok(Op::C),
        _ => Err(Error::InvalidValue("there is no such operation")),
    }
}

pub fn uplo(fill: cublasFillMode_t) -> Result<Uplo> {
    match fill {
        cublasFillMode_t::CUBLAS_FILL_MODE_LOWER => Ok(Uplo::Lower),
        cublasFillMode_t::CUBLAS_FILL_MODE_UPPER => Ok(Uplo::Upper),
        _ => Err(Error::InvalidValue("there is no such fill mode")),
    }
}

pub fn diag(diag: cublasDiagType_t) -> Result<Diag> {
    match diag {
        cublasDiagType_t::CUBLAS_DIAG_NON_UNIT => Ok(Diag::NonUnit),
        cublasDiagType_t::CUBLAS_DIAG_UNIT => Ok(Diag::Unit),
        _ => Err(Error::InvalidValue("there is no such kind of diagonal")),
    }
}

pub fn side(side: cublasSideMode_t) -> Result<Side> {
    match side {
        cublasSideMode_t::CUBLAS_SIDE_LEFT => Ok(Side::Left),
        cublasSideMode_t::CUBLAS_SIDE_RIGHT => Ok(Side::Right),
        _ => Err(Error::InvalidValue("there is no such side")),
    }
}
