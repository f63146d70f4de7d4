//! Plans with descriptors: cuFFT manual, "cuFFT support for multiple GPUs".

use core::ffi::{c_int, c_void};

use border::Out;
use cufft_cpu::{Kind, Precision};
use kit::driver::{check, driver, primary_context};
use kit::engine::{Engine, of_current_device};

use crate::descriptor::within;
use crate::types::*;
use crate::{Error, Result, descriptor, plan};

/// The manual: at least one and at most 16.
const MOST_DEVICES: c_int = 16;

/// # Safety
/// `whichGPUs` has `nGPUs` numbers.
pub unsafe fn cufftXtSetGPUs(handle: cufftHandle, nGPUs: c_int, whichGPUs: *mut c_int) -> Result {
    if whichGPUs.is_null() {
        return Err(Error::Value("whichGPUs"));
    }
    let plan = plan::get(handle)?;
    if !(1..=MOST_DEVICES).contains(&nGPUs) {
        return Err(Error::Value("nGPUs"));
    }
    if plan.bytes().is_ok() {
        return Err(Error::Plan("the devices of a plan that is made"));
    }
    let mut count = 0;
    // SAFETY: `count` outlives the call.
    check("cuDeviceGetCount", unsafe { (driver()?.cuDeviceGetCount)(&mut count) })?;
    // SAFETY: the caller's promise.
    let devices = (0..nGPUs as usize).map(|i| unsafe { *whichGPUs.add(i) });
    let devices: Vec<c_int> = devices.collect();
    if devices.iter().any(|device| !(0..count).contains(device)) {
        return Err(Error::Device("whichGPUs"));
    }
    if let [device] = devices[..] {
        return match plan.is_of(primary_context(device)?.0) {
            true => Ok(()),
            false => Err(Error::NotSupported("a plan of another device than the current one")),
        };
    }
    if devices.iter().enumerate().any(|(at, device)| devices[..at].contains(device)) {
        return Err(Error::Device("a device twice"));
    }
    for &device in &devices {
        let engine = within(primary_context(device)?.0, || Ok(of_current_device(&config::get().fft)?))?;
        if engine != Engine::Cpu {
            return Err(Error::NotSupported("a plan of several AMD GPUs"));
        }
    }
    plan.set_devices(devices)
}

pub fn cufftXtMalloc(
    plan: cufftHandle,
    descriptor: Out<'_, *mut cudaLibXtDesc>,
    format: cufftXtSubFormat,
) -> Result {
    descriptor.write(descriptor::allocate(&*plan::get(plan)?, format)?);
    Ok(())
}

/// NULL is let pass, as NVIDIA's library does.
pub fn cufftXtFree(descriptor: *mut cudaLibXtDesc) -> Result {
    if descriptor.is_null() { Ok(()) } else { descriptor::free(descriptor) }
}

/// # Safety
/// A descriptor is whole, and the host's memory as large.
pub unsafe fn cufftXtMemcpy(
    plan: cufftHandle,
    dstPointer: *mut c_void,
    srcPointer: *mut c_void,
    type_: cufftXtCopyType,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { descriptor::copy(&*plan::get(plan)?, dstPointer, srcPointer, type_) }
}

/// # Safety
/// The descriptors are whole.
unsafe fn execute(
    plan: cufftHandle,
    of: Option<(Kind, Precision)>,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
    direction: c_int,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { descriptor::execute(&*plan::get(plan)?, of, input, output, direction) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptorC2C(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
    direction: c_int,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, Some((Kind::C2C, Precision::Single)), input, output, direction) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptorR2C(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, Some((Kind::R2C, Precision::Single)), input, output, CUFFT_FORWARD) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptorC2R(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, Some((Kind::C2R, Precision::Single)), input, output, CUFFT_INVERSE) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptorZ2Z(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
    direction: c_int,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, Some((Kind::C2C, Precision::Double)), input, output, direction) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptorD2Z(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, Some((Kind::R2C, Precision::Double)), input, output, CUFFT_FORWARD) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptorZ2D(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, Some((Kind::C2R, Precision::Double)), input, output, CUFFT_INVERSE) }
}

/// # Safety
/// The descriptors are whole.
pub unsafe fn cufftXtExecDescriptor(
    plan: cufftHandle,
    input: *mut cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
    direction: c_int,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { execute(plan, None, input, output, direction) }
}
