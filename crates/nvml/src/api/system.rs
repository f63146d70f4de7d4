//! System Queries.

use core::ffi::{c_char, c_int, c_uint};

use border::Out;

use super::write_text;
use crate::types::nvmlHwbcEntry_t;
use crate::{Error, Result, identity, version};

fn cuda_version() -> Result<u32> {
    u32::try_from(identity::cuda_version()?).map_err(|_| Error::DriverNotLoaded("its version is negative"))
}

/// The branch that came with the CUDA version that `cuDriverGetVersion` tells.
///
/// # Safety
/// `version` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlSystemGetDriverVersion(version: *mut c_char, length: c_uint) -> Result {
    // SAFETY: the caller's promise.
    unsafe { write_text(&version::driver(cuda_version()?), version, length, "version") }
}

/// # Safety
/// `version` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlSystemGetNVMLVersion(version: *mut c_char, length: c_uint) -> Result {
    // SAFETY: the caller's promise.
    unsafe { write_text(&version::nvml(cuda_version()?), version, length, "version") }
}

pub fn nvmlSystemGetCudaDriverVersion(cudaDriverVersion: Out<'_, c_int>) -> Result {
    cudaDriverVersion.write(identity::cuda_version()?);
    Ok(())
}

pub fn nvmlSystemGetCudaDriverVersion_v2(cudaDriverVersion: Out<'_, c_int>) -> Result {
    nvmlSystemGetCudaDriverVersion(cudaDriverVersion)
}

/// How the program was called, cut to the room there is.
///
/// # Safety
/// `name` is NULL, or has `length` bytes that may be written.
pub unsafe fn nvmlSystemGetProcessName(pid: c_uint, name: *mut c_char, length: c_uint) -> Result {
    if length == 0 {
        return Err(Error::InvalidArgument("length"));
    }
    let read = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).ok();
    let line = read("cmdline").ok_or(Error::NotFound("no such process"))?;
    let first = line.split(|&byte| byte == 0).next().filter(|first| !first.is_empty());
    // The kernel's own threads have no command line.
    let bytes = first.map(<[u8]>::to_vec).or_else(|| read("comm")).unwrap_or_default();
    let mut text = String::from_utf8_lossy(&bytes).trim_end().to_owned();
    let room = usize::try_from(length - 1).unwrap_or(0);
    while text.len() > room {
        text.pop();
    }
    // SAFETY: the caller's promise.
    unsafe { write_text(&text, name, length, "name") }
}

/// There is no host interface card.
///
/// # Safety
/// `hwbcCount` is NULL, or may be read and written; `hwbcEntries` is NULL, or has room for as many elements.
pub unsafe fn nvmlSystemGetHicVersion(hwbcCount: *mut c_uint, hwbcEntries: *mut nvmlHwbcEntry_t) -> Result {
    // SAFETY: the caller's promise.
    unsafe { super::write_list(&[], hwbcCount, hwbcEntries) }
}

/// There are no S-class units.
pub fn nvmlUnitGetCount(unitCount: Out<'_, c_uint>) -> Result {
    unitCount.write(0);
    Ok(())
}
