//! Why a call fails, cuSOLVER's number for it, and the border that says so.

use border::BadPointer;

use crate::types::cusolverStatus_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the handle is not one that was created")]
    NotInitialized,
    #[error("invalid value: {0}")]
    InvalidValue(&'static str),
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    #[error("{0}")]
    Kit(kit::Error),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    /// A status of hipSOLVER's.
    #[error("hipSOLVER answers {0}")]
    Hip(core::ffi::c_int),
    #[error("only general matrices are taken")]
    NotGeneral,
    /// cuSOLVER's own number of what is wrong with what solvers that refine are given.
    #[error("{1}")]
    Refinement(cusolverStatus_t, &'static str),
    /// Numbers that are none, or a matrix that is singular wherever it is moved.
    #[error("the matrix has no factors")]
    NoFactors,
    /// A factorization came to a pivot that is none, which some calls answer.
    #[error("a pivot is zero")]
    ZeroPivot,
    #[error("there is not enough memory")]
    NoMemory,
    #[error("{0} panicked")]
    Internal(&'static str),
}

impl Error {
    pub fn code(self) -> cusolverStatus_t {
        match self {
            Error::NotInitialized | Error::NoDevice(_) => cusolverStatus_t::CUSOLVER_STATUS_NOT_INITIALIZED,
            Error::InvalidValue(_) => cusolverStatus_t::CUSOLVER_STATUS_INVALID_VALUE,
            Error::Kit(_) => cusolverStatus_t::CUSOLVER_STATUS_EXECUTION_FAILED,
            Error::NotSupported(_) => cusolverStatus_t::CUSOLVER_STATUS_NOT_SUPPORTED,
            Error::Hip(status) => crate::hip::convert::status(status),
            Error::NotGeneral => cusolverStatus_t::CUSOLVER_STATUS_MATRIX_TYPE_NOT_SUPPORTED,
            Error::Refinement(status, _) => status,
            Error::NoFactors => cusolverStatus_t::CUSOLVER_STATUS_INTERNAL_ERROR,
            Error::ZeroPivot => cusolverStatus_t::CUSOLVER_STATUS_ZERO_PIVOT,
            Error::NoMemory => cusolverStatus_t::CUSOLVER_STATUS_ALLOC_FAILED,
            Error::Internal(_) => cusolverStatus_t::CUSOLVER_STATUS_INTERNAL_ERROR,
        }
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

impl trace::Answer for cusolverStatus_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

kit::border! {
    target: "cudaway::solver",
    span: "solver",
    variable: solver,
    status: cusolverStatus_t,
    success: cusolverStatus_t::CUSOLVER_STATUS_SUCCESS,
    error: Error,
    failed: untold,
}

/// cuSOLVER's logger is in its header and in none of its objects.
fn untold(_name: &'static str, _reason: &Error) {}

/// `INVALID_VALUE` unless it holds.
pub fn require(holds: bool, what: &'static str) -> Result {
    if holds { Ok(()) } else { Err(Error::InvalidValue(what)) }
}
