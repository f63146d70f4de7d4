//! Profiler Control. No profiler is attached, so start and stop only need a context.

use core::ffi::c_char;

use cuda_abi::CUoutput_mode;

use crate::object::Context;
use crate::{Error, Result};

pub fn cuProfilerStart() -> Result {
    Context::current().map(|_| ())
}

pub fn cuProfilerStop() -> Result {
    Context::current().map(|_| ())
}

/// Deprecated since CUDA 11 and without effect on NVIDIA's drivers since.
pub fn cuProfilerInitialize(
    _configFile: *const c_char,
    _outputFile: *const c_char,
    _outputMode: CUoutput_mode,
) -> Result {
    Err(Error::NotSupported("cuProfilerInitialize"))
}
