//! Why a call fails, and NVML's number for it.

use core::ffi::CStr;

use border::BadPointer;

use crate::types::nvmlReturn_t;

pub type Result<T = ()> = core::result::Result<T, Error>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("nvmlInit has not been called")]
    Uninitialized,
    #[error("invalid argument: {0}")]
    InvalidArgument(&'static str),
    /// What is missing.
    #[error("not supported: {0}")]
    NotSupported(&'static str),
    #[error("not found: {0}")]
    NotFound(&'static str),
    #[error("the buffer is too small")]
    InsufficientSize,
    #[error("no CUDA driver: {0}")]
    DriverNotLoaded(&'static str),
    #[error("no device")]
    GpuNotFound,
    #[error("nothing happened in the given time")]
    Timeout,
    #[error("unknown version of a structure")]
    ArgumentVersionMismatch,
}

impl Error {
    pub fn code(self) -> nvmlReturn_t {
        match self {
            Error::Uninitialized => nvmlReturn_t::NVML_ERROR_UNINITIALIZED,
            Error::InvalidArgument(_) => nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT,
            Error::NotSupported(_) => nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED,
            Error::NotFound(_) => nvmlReturn_t::NVML_ERROR_NOT_FOUND,
            Error::InsufficientSize => nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE,
            Error::DriverNotLoaded(_) => nvmlReturn_t::NVML_ERROR_DRIVER_NOT_LOADED,
            Error::Timeout => nvmlReturn_t::NVML_ERROR_TIMEOUT,
            Error::GpuNotFound => nvmlReturn_t::NVML_ERROR_GPU_NOT_FOUND,
            Error::ArgumentVersionMismatch => nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH,
        }
    }
}

impl From<BadPointer> for Error {
    fn from(BadPointer(name): BadPointer) -> Self {
        Error::InvalidArgument(name)
    }
}

impl trace::Answer for nvmlReturn_t {
    fn code(&self) -> i64 {
        i64::from(self.0)
    }
}

/// What `nvmlErrorString` says; `None` for a number that NVML does not have.
pub fn text(code: nvmlReturn_t) -> Option<&'static CStr> {
    Some(match code {
        nvmlReturn_t::NVML_SUCCESS => c"Success",
        nvmlReturn_t::NVML_ERROR_UNINITIALIZED => c"Uninitialized",
        nvmlReturn_t::NVML_ERROR_INVALID_ARGUMENT => c"Invalid Argument",
        nvmlReturn_t::NVML_ERROR_NOT_SUPPORTED => c"Not Supported",
        nvmlReturn_t::NVML_ERROR_NO_PERMISSION => c"Insufficient Permissions",
        nvmlReturn_t::NVML_ERROR_ALREADY_INITIALIZED => c"Already Initialized",
        nvmlReturn_t::NVML_ERROR_NOT_FOUND => c"Not Found",
        nvmlReturn_t::NVML_ERROR_INSUFFICIENT_SIZE => c"Insufficient Size",
        nvmlReturn_t::NVML_ERROR_INSUFFICIENT_POWER => c"Insufficient External Power",
        nvmlReturn_t::NVML_ERROR_DRIVER_NOT_LOADED => c"Driver Not Loaded",
        nvmlReturn_t::NVML_ERROR_TIMEOUT => c"Timeout",
        nvmlReturn_t::NVML_ERROR_IRQ_ISSUE => c"Interrupt Request Issue",
        nvmlReturn_t::NVML_ERROR_LIBRARY_NOT_FOUND => c"NVML Shared Library Not Found",
        nvmlReturn_t::NVML_ERROR_FUNCTION_NOT_FOUND => c"Function Not Found",
        nvmlReturn_t::NVML_ERROR_CORRUPTED_INFOROM => c"Corrupted infoROM",
        nvmlReturn_t::NVML_ERROR_GPU_IS_LOST => c"GPU is lost",
        nvmlReturn_t::NVML_ERROR_RESET_REQUIRED => c"GPU requires reset",
        nvmlReturn_t::NVML_ERROR_OPERATING_SYSTEM => c"Blocked by the operating system",
        nvmlReturn_t::NVML_ERROR_LIB_RM_VERSION_MISMATCH => c"Driver/library version mismatch",
        nvmlReturn_t::NVML_ERROR_IN_USE => c"In use by another client",
        nvmlReturn_t::NVML_ERROR_MEMORY => c"Insufficient Memory",
        nvmlReturn_t::NVML_ERROR_NO_DATA => c"No data",
        nvmlReturn_t::NVML_ERROR_VGPU_ECC_NOT_SUPPORTED => c"vGPU not supported with ECC enabled",
        nvmlReturn_t::NVML_ERROR_INSUFFICIENT_RESOURCES => c"Insufficient resources",
        nvmlReturn_t::NVML_ERROR_FREQ_NOT_SUPPORTED => c"Frequency not supported",
        nvmlReturn_t::NVML_ERROR_ARGUMENT_VERSION_MISMATCH => c"Unknown version of an argument",
        nvmlReturn_t::NVML_ERROR_DEPRECATED => c"Deprecated",
        nvmlReturn_t::NVML_ERROR_NOT_READY => c"Not ready",
        nvmlReturn_t::NVML_ERROR_GPU_NOT_FOUND => c"No GPU found",
        nvmlReturn_t::NVML_ERROR_INVALID_STATE => c"Invalid state",
        nvmlReturn_t::NVML_ERROR_RESET_TYPE_NOT_SUPPORTED => c"Reset type not supported",
        nvmlReturn_t::NVML_ERROR_UNKNOWN => c"Unknown Error",
        _ => return None,
    })
}
