//! Why a call fails, cuRAND's number for it, and the border that says so.

use border::BadPointer;

use crate::types::curandStatus_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("the generator is not one that was created")]
    NotInitialized,
    #[error("wrong type: {0}")]
    Type(&'static str),
    #[error("out of range: {0}")]
    OutOfRange(&'static str),
    #[error("the count is not a multiple of {0}")]
    LengthNotMultiple(&'static str),
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    #[error("cannot be done where the numbers should go: {0}")]
    Launch(&'static str),
    #[error("no memory")]
    Allocation,
    #[error("{0}")]
    Kit(kit::Error),
    #[error("{call} answered {code}")]
    Hip { call: &'static str, code: i32 },
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("{0} panicked")]
    Internal(&'static str),
}

impl Error {
    pub fn code(self) -> curandStatus_t {
        match self {
            Error::NotInitialized => curandStatus_t::CURAND_STATUS_NOT_INITIALIZED,
            Error::Type(_) => curandStatus_t::CURAND_STATUS_TYPE_ERROR,
            Error::OutOfRange(_) => curandStatus_t::CURAND_STATUS_OUT_OF_RANGE,
            Error::LengthNotMultiple(_) => curandStatus_t::CURAND_STATUS_LENGTH_NOT_MULTIPLE,
            Error::NoDevice(_) => curandStatus_t::CURAND_STATUS_INITIALIZATION_FAILED,
            Error::Launch(_) | Error::Kit(_) => curandStatus_t::CURAND_STATUS_LAUNCH_FAILURE,
            // hipRAND's numbers are cuRAND's, but for what it does not do yet.
            Error::Hip { code: code @ (100..=106 | 201..=204), .. } => curandStatus_t(code as u32),
            Error::Hip { .. } => curandStatus_t::CURAND_STATUS_INTERNAL_ERROR,
            Error::Allocation => curandStatus_t::CURAND_STATUS_ALLOCATION_FAILED,
            // There is no number for it.
            Error::NotSupported(_) | Error::Internal(_) => curandStatus_t::CURAND_STATUS_INTERNAL_ERROR,
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

impl From<curand_cpu::Error> for Error {
    fn from(error: curand_cpu::Error) -> Self {
        match error {
            curand_cpu::Error::Type(what) => Error::Type(what),
            curand_cpu::Error::OutOfRange(what) => Error::OutOfRange(what),
            curand_cpu::Error::LengthNotMultiple(_) => {
                Error::LengthNotMultiple("what the generator makes at once")
            }
        }
    }
}

/// Only where a generator is to be written: NVIDIA's library says so of no other place.
impl From<BadPointer> for Error {
    fn from(_: BadPointer) -> Self {
        Error::NotInitialized
    }
}

impl trace::Answer for curandStatus_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

kit::border! {
    target: "cudaway::rand",
    span: "rand",
    variable: rand,
    status: curandStatus_t,
    success: curandStatus_t::CURAND_STATUS_SUCCESS,
    error: Error,
    failed: |_, _| (),
}
