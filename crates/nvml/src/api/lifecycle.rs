//! Initialization and Cleanup, Error Reporting.

use core::ffi::{c_char, c_uint};

use crate::types::{NVML_INIT_FLAG_NO_GPUS, nvmlReturn_t};
use crate::{Result, error, session};

pub fn nvmlInit_v2() -> Result {
    session::open(false)
}

/// Before version 2 a device without permission made it fail; there is none such.
pub fn nvmlInit() -> Result {
    session::open(false)
}

pub fn nvmlInitWithFlags(flags: c_uint) -> Result {
    session::open(flags & NVML_INIT_FLAG_NO_GPUS != 0)
}

pub fn nvmlShutdown() -> Result {
    session::close()
}

pub fn nvmlErrorString(result: nvmlReturn_t) -> *const c_char {
    error::text(result).unwrap_or(c"Unknown Error").as_ptr()
}
