//! Why a call fails, and the one translation to `cudaError_t`.

use border::BadPointer;
use cuda_abi::CUresult;
use cuda_abi::runtime::cudaError_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{0} is not a valid value")]
    InvalidValue(&'static str),
    #[error("the launch configuration has a dimension of 0: {0}")]
    InvalidConfiguration(&'static str),
    #[error("the launch configuration is more than the device has: {0}")]
    TooLarge(&'static str),
    #[error("the device symbol was never registered")]
    InvalidSymbol,
    #[error("the kernel was never registered")]
    InvalidDeviceFunction,
    #[error("the pointer is no kernel's")]
    NoKernel,
    #[error("no texture is described")]
    NoTextureDescription,
    #[error("the driver is older than {0}")]
    NewerDriver(&'static str),
    #[error("the copy's direction is none of cudaMemcpyKind")]
    InvalidMemcpyDirection,
    #[error("a row is longer than its pitch")]
    InvalidPitchValue,
    #[error("there is no device {0}")]
    InvalidDevice(i32),
    #[error("no kernel call has been configured on this thread")]
    MissingConfiguration,
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("no texture reference was registered at this address")]
    InvalidTexture,
    #[error("the texture reference is not bound")]
    InvalidTextureBinding,
    #[error("no surface reference was registered at this address")]
    InvalidSurface,
    #[error("no format is described")]
    InvalidChannelDescriptor,
    #[error("what is read as integers is not filtered")]
    InvalidFilterSetting,
    #[error("32-bit integers are not read as normalized floats")]
    InvalidNormSetting,
    #[error("named symbol not found")]
    SymbolNotFound,
    #[error("the driver library cannot be used: {0}")]
    NoDriver(&'static str),
    /// The driver's own answer, which goes to the program unchanged: the numbers are shared.
    #[error("the driver answered {}", .0.0)]
    Driver(CUresult),
}

impl Error {
    pub fn code(self) -> cudaError_t {
        match self {
            Error::InvalidValue(_) => cudaError_t::cudaErrorInvalidValue,
            Error::InvalidConfiguration(_) | Error::TooLarge(_) => cudaError_t::cudaErrorInvalidConfiguration,
            Error::InvalidSymbol => cudaError_t::cudaErrorInvalidSymbol,
            Error::InvalidDeviceFunction | Error::NoKernel => cudaError_t::cudaErrorInvalidDeviceFunction,
            Error::NoTextureDescription => cudaError_t::cudaErrorInvalidResourceHandle,
            Error::NewerDriver(_) => cudaError_t::cudaErrorCallRequiresNewerDriver,
            Error::InvalidMemcpyDirection => cudaError_t::cudaErrorInvalidMemcpyDirection,
            Error::InvalidPitchValue => cudaError_t::cudaErrorInvalidPitchValue,
            Error::InvalidDevice(_) => cudaError_t::cudaErrorInvalidDevice,
            Error::MissingConfiguration => cudaError_t::cudaErrorMissingConfiguration,
            Error::NotSupported(_) => cudaError_t::cudaErrorNotSupported,
            Error::InvalidTexture => cudaError_t::cudaErrorInvalidTexture,
            Error::InvalidTextureBinding => cudaError_t::cudaErrorInvalidTextureBinding,
            Error::InvalidSurface => cudaError_t::cudaErrorInvalidSurface,
            Error::InvalidChannelDescriptor => cudaError_t::cudaErrorInvalidChannelDescriptor,
            Error::InvalidFilterSetting => cudaError_t::cudaErrorInvalidFilterSetting,
            Error::InvalidNormSetting => cudaError_t::cudaErrorInvalidNormSetting,
            Error::SymbolNotFound => cudaError_t::cudaErrorSymbolNotFound,
            Error::NoDriver(_) => cudaError_t::cudaErrorInsufficientDriver,
            Error::Driver(result) => cudaError_t(result.0),
        }
    }

    /// As CUDA 13 answers (measured with its runtime 13.5): what a launch asks of the driver, and what kernel it names,
    /// the driver judges alone.
    pub fn code_of_13(self) -> cudaError_t {
        match self {
            Error::InvalidConfiguration(_) | Error::TooLarge(_) => cudaError_t::cudaErrorInvalidValue,
            Error::NoKernel => cudaError_t::cudaErrorInvalidResourceHandle,
            other => other.code(),
        }
    }
}

impl From<BadPointer> for Error {
    fn from(missing: BadPointer) -> Self {
        Error::InvalidValue(missing.0)
    }
}

/// The driver's answer as a `Result`.
pub fn check(result: CUresult) -> Result {
    if result == CUresult::CUDA_SUCCESS { Ok(()) } else { Err(Error::Driver(result)) }
}
