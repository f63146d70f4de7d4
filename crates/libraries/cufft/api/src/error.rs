//! Why a call fails, cuFFT's number for it, and the border that says so.

use core::ffi::c_int;

use border::BadPointer;

use crate::types::cufftResult;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("invalid plan: {0}")]
    Plan(&'static str),
    #[error("no memory for {0} bytes")]
    Allocation(usize),
    #[error("invalid type: {0}")]
    Type(&'static str),
    #[error("invalid value: {0}")]
    Value(&'static str),
    #[error("invalid size: {0}")]
    Size(&'static str),
    #[error("invalid device: {0}")]
    Device(&'static str),
    #[error("no CUDA driver or device: {0}")]
    NoDevice(&'static str),
    #[error("{0}")]
    Kit(kit::Error),
    /// hipFFT's statuses are cuFFT's.
    #[error("{call} of hipFFT answered {code}")]
    Hip { call: &'static str, code: c_int },
    /// What NVIDIA's shared libraries lack as well.
    #[error("only NVIDIA's static library has {0}")]
    NotImplemented(&'static str),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("{0} panicked")]
    Internal(&'static str),
}

impl Error {
    pub fn code(self) -> cufftResult {
        match self {
            Error::Plan(_) => cufftResult::CUFFT_INVALID_PLAN,
            Error::Allocation(_) => cufftResult::CUFFT_ALLOC_FAILED,
            Error::Type(_) => cufftResult::CUFFT_INVALID_TYPE,
            Error::Value(_) => cufftResult::CUFFT_INVALID_VALUE,
            Error::Size(_) => cufftResult::CUFFT_INVALID_SIZE,
            Error::Device(_) => cufftResult::CUFFT_INVALID_DEVICE,
            Error::Kit(_) => cufftResult::CUFFT_EXEC_FAILED,
            Error::Hip { code, .. } => {
                u32::try_from(code).map_or(cufftResult::CUFFT_INTERNAL_ERROR, cufftResult)
            }
            Error::NotImplemented(_) => cufftResult::CUFFT_NOT_IMPLEMENTED,
            Error::NotSupported(_) => cufftResult::CUFFT_NOT_SUPPORTED,
            // What NVIDIA's library answers where there is no driver.
            Error::NoDevice(_) | Error::Internal(_) => cufftResult::CUFFT_INTERNAL_ERROR,
        }
    }
}

impl From<kit::Error> for Error {
    fn from(error: kit::Error) -> Self {
        match error {
            kit::Error::Handle => Error::Plan("the handle is none that was created and is there still"),
            kit::Error::NoDevice(what) => Error::NoDevice(what),
            kit::Error::NotSupported(what) => Error::NotSupported(what),
            kit::Error::Driver { .. } => Error::Kit(error),
        }
    }
}

impl From<cufft_cpu::Error> for Error {
    fn from(error: cufft_cpu::Error) -> Self {
        match error {
            cufft_cpu::Error::InvalidSize(what) => Error::Size(what),
            cufft_cpu::Error::InvalidValue(what) => Error::Value(what),
            cufft_cpu::Error::InvalidType => Error::Type("input, output and execution do not go together"),
            cufft_cpu::Error::AllocFailed(bytes) => Error::Allocation(bytes),
            cufft_cpu::Error::NotSupported(what) => Error::NotSupported(what),
        }
    }
}

impl From<BadPointer> for Error {
    fn from(BadPointer(name): BadPointer) -> Self {
        Error::Value(name)
    }
}

impl trace::Answer for cufftResult {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

kit::border! {
    target: "cudaway::fft",
    span: "fft",
    variable: fft,
    status: cufftResult,
    success: cufftResult::CUFFT_SUCCESS,
    error: Error,
    failed: note,
}

/// A pointer that a call answers with: NULL where it fails, which is said as for other calls.
pub fn or_null<T>(name: &'static str, result: Result<*mut T>) -> *mut T {
    result.unwrap_or_else(|error| {
        border::refuse(&Border, name, &error);
        core::ptr::null_mut()
    })
}

/// What a call does that answers with nothing.
pub fn or_say(name: &'static str, result: Result) {
    if let Err(error) = result {
        border::refuse(&Border, name, &error);
    }
}

/// Says once what programs will miss that know it of NVIDIA's static library.
fn note(name: &'static str, error: &Error) {
    if let Error::NotImplemented(what) = error
        && border::is_news(name, what)
    {
        tracing::warn!(target: "cudaway::fft", "{name}: {error}, as with NVIDIA's shared libraries");
    }
}
