//! Why a call fails, and cuBLAS's number for it.

use border::BadPointer;
use cuda_abi::CUresult;

use crate::cublasStatus_t;
use crate::hip::convert::hipblasStatus_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the handle is not one that cublasCreate made")]
    NotInitialized,
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    #[error("invalid value: {0}")]
    InvalidValue(&'static str),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("no memory: {0}")]
    AllocFailed(&'static str),
    #[error("{call} answered {code:?}")]
    Driver { call: &'static str, code: CUresult },
    /// A copy that the driver refused.
    #[error("the copy failed: {0:?}")]
    Mapping(CUresult),
    /// What hipBLAS answered.
    #[error("hipBLAS answered {0:?}")]
    Hip(hipblasStatus_t),
    /// What the routine answered that does the work, and has said of itself.
    #[error("{0:?}")]
    Answered(cublasStatus_t),
    #[error("{0} panicked")]
    Internal(&'static str),
}

impl Error {
    pub fn code(self) -> cublasStatus_t {
        match self {
            Error::NotInitialized | Error::NoDevice(_) => cublasStatus_t::CUBLAS_STATUS_NOT_INITIALIZED,
            Error::InvalidValue(_) => cublasStatus_t::CUBLAS_STATUS_INVALID_VALUE,
            Error::NotSupported(_) => cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED,
            Error::AllocFailed(_) => cublasStatus_t::CUBLAS_STATUS_ALLOC_FAILED,
            Error::Driver { .. } => cublasStatus_t::CUBLAS_STATUS_EXECUTION_FAILED,
            Error::Mapping(_) => cublasStatus_t::CUBLAS_STATUS_MAPPING_ERROR,
            Error::Hip(status) => status.as_cublas(),
            Error::Answered(status) => status,
            Error::Internal(_) => cublasStatus_t::CUBLAS_STATUS_INTERNAL_ERROR,
        }
    }
}

impl From<BadPointer> for Error {
    fn from(BadPointer(name): BadPointer) -> Self {
        Error::InvalidValue(name)
    }
}

impl From<kit::Error> for Error {
    fn from(error: kit::Error) -> Self {
        match error {
            kit::Error::Handle => Error::NotInitialized,
            kit::Error::NoDevice(what) => Error::NoDevice(what),
            kit::Error::NotSupported(what) => Error::NotSupported(what),
            kit::Error::Driver { call, code } => Error::Driver { call, code },
        }
    }
}

impl trace::Answer for cublasStatus_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

/// `INVALID_VALUE` unless it holds.
pub fn require(holds: bool, what: &'static str) -> Result {
    if holds { Ok(()) } else { Err(Error::InvalidValue(what)) }
}
