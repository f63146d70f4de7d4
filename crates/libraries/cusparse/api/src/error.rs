//! Why a call fails, cuSPARSE's number for it, and the border that says so.

use core::ffi::c_int;

use border::BadPointer;

use crate::types::cusparseStatus_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the handle or descriptor is not one that was created")]
    NotInitialized,
    #[error("invalid value: {0}")]
    InvalidValue(&'static str),
    #[error("the type of matrix is not supported: {0}")]
    MatrixType(&'static str),
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    #[error("a zero on the diagonal")]
    ZeroPivot,
    /// What there is not enough of.
    #[error("{0}")]
    InsufficientResources(&'static str),
    #[error("hipSPARSE answers {0}")]
    Hip(c_int),
    #[error("{0}")]
    Kit(kit::Error),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("{0} panicked")]
    Internal(&'static str),
}

impl Error {
    pub fn code(self) -> cusparseStatus_t {
        match self {
            Error::NotInitialized | Error::NoDevice(_) => cusparseStatus_t::CUSPARSE_STATUS_NOT_INITIALIZED,
            Error::InvalidValue(_) => cusparseStatus_t::CUSPARSE_STATUS_INVALID_VALUE,
            Error::MatrixType(_) => cusparseStatus_t::CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED,
            Error::ZeroPivot => cusparseStatus_t::CUSPARSE_STATUS_ZERO_PIVOT,
            Error::InsufficientResources(_) => cusparseStatus_t::CUSPARSE_STATUS_INSUFFICIENT_RESOURCES,
            Error::Hip(status) => crate::hip::convert::status(status),
            Error::Kit(_) => cusparseStatus_t::CUSPARSE_STATUS_EXECUTION_FAILED,
            Error::NotSupported(_) => cusparseStatus_t::CUSPARSE_STATUS_NOT_SUPPORTED,
            Error::Internal(_) => cusparseStatus_t::CUSPARSE_STATUS_INTERNAL_ERROR,
        }
    }
}

impl Error {
    /// Whether it is of arguments, so that nothing was done.
    pub fn is_refusal(self) -> bool {
        let code = self.code();
        [
            cusparseStatus_t::CUSPARSE_STATUS_INVALID_VALUE,
            cusparseStatus_t::CUSPARSE_STATUS_MATRIX_TYPE_NOT_SUPPORTED,
            cusparseStatus_t::CUSPARSE_STATUS_NOT_SUPPORTED,
        ]
        .contains(&code)
    }
}

impl From<kit::Error> for Error {
    fn from(error: kit::Error) -> Self {
        match error {
            kit::Error::Handle => Error::NotInitialized,
            kit::Error::NoDevice(what) => Error::NoDevice(what),
            kit::Error::NotSupported(what) => Error::NotSupported(what),
            kit::Error::Driver { .. } => Error::Kit(error),
        }
    }
}

impl From<BadPointer> for Error {
    fn from(BadPointer(name): BadPointer) -> Self {
        Error::InvalidValue(name)
    }
}

impl trace::Answer for cusparseStatus_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

kit::border! {
    target: "cudaway::sparse",
    span: "sparse",
    variable: sparse,
    status: cusparseStatus_t,
    success: cusparseStatus_t::CUSPARSE_STATUS_SUCCESS,
    error: Error,
    failed: crate::log::failed,
}

/// `INVALID_VALUE` unless it holds.
pub fn require(holds: bool, what: &'static str) -> Result {
    if holds { Ok(()) } else { Err(Error::InvalidValue(what)) }
}
