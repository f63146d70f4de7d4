//! What a handle is told: streams, work areas, properties, callbacks.

use core::ffi::{c_char, c_int, c_longlong, c_void};

use border::{OptOut, Out};

use crate::types::*;
use crate::{Error, Result, plan};

pub fn cufftSetStream(plan: cufftHandle, stream: cudaStream_t) -> Result {
    plan::get(plan)?.set_stream(stream);
    Ok(())
}

pub fn cufftSetWorkArea(plan: cufftHandle, workArea: *mut c_void) -> Result {
    plan::get(plan)?.set_work_area(workArea)
}

pub fn cufftSetAutoAllocation(plan: cufftHandle, autoAllocate: c_int) -> Result {
    plan::get(plan)?.set_auto_allocation(autoAllocate != 0)
}

/// The areas of a plan's devices, of which there is one.
///
/// # Safety
/// `workArea` has one address.
pub unsafe fn cufftXtSetWorkArea(plan: cufftHandle, workArea: *mut *mut c_void) -> Result {
    if workArea.is_null() {
        return Err(Error::Value("workArea"));
    }
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    plan.set_work_area(unsafe { workArea.read_unaligned() })
}

/// Every work area is as small as each policy asks: hipFFT has no such choice, and the CPU takes none.
pub fn cufftXtSetWorkAreaPolicy(
    plan: cufftHandle,
    policy: cufftXtWorkAreaPolicy,
    workSize: OptOut<'_, usize>,
) -> Result {
    plan::get(plan)?;
    match policy {
        cufftXtWorkAreaPolicy::CUFFT_WORKAREA_USER if !workSize.is_wanted() => Err(Error::Value("workSize")),
        cufftXtWorkAreaPolicy::CUFFT_WORKAREA_MINIMAL
        | cufftXtWorkAreaPolicy::CUFFT_WORKAREA_USER
        | cufftXtWorkAreaPolicy::CUFFT_WORKAREA_PERFORMANCE => Ok(()),
        _ => Err(Error::Value("policy")),
    }
}

pub fn cufftSetPlanPropertyInt64(
    plan: cufftHandle,
    property: cufftProperty,
    inputValueInt: c_longlong,
) -> Result {
    plan::get(plan)?.set_property(property, inputValueInt)
}

pub fn cufftGetPlanPropertyInt64(
    plan: cufftHandle,
    property: cufftProperty,
    returnPtrValue: Out<'_, c_longlong>,
) -> Result {
    returnPtrValue.write(plan::get(plan)?.property(property)?);
    Ok(())
}

pub fn cufftResetPlanProperty(plan: cufftHandle, property: cufftProperty) -> Result {
    plan::get(plan)?.reset_property(property)
}

/// Device functions of the program, which NVIDIA's kernels are linked with where the library is a static one: its shared
/// libraries answer `CUFFT_NOT_IMPLEMENTED`, whatever they are given.
pub fn cufftXtSetCallback(
    plan: cufftHandle,
    callback_routine: *mut *mut c_void,
    cbType: cufftXtCallbackType,
    caller_info: *mut *mut c_void,
) -> Result {
    _ = (plan, callback_routine, cbType, caller_info);
    Err(Error::NotImplemented("callbacks"))
}

pub fn cufftXtClearCallback(plan: cufftHandle, cbType: cufftXtCallbackType) -> Result {
    _ = (plan, cbType);
    Err(Error::NotImplemented("callbacks"))
}

pub fn cufftXtSetCallbackSharedSize(
    plan: cufftHandle,
    cbType: cufftXtCallbackType,
    sharedSize: usize,
) -> Result {
    plan::get(plan)?;
    _ = (cbType, sharedSize);
    Err(Error::NotImplemented("callbacks"))
}

/// LTO IR, which is bytecode of NVIDIA's compiler.
pub fn cufftXtSetJITCallback(
    plan: cufftHandle,
    lto_callback_symbol_name: *const c_char,
    lto_callback_fatbin: *const c_void,
    lto_callback_fatbin_size: usize,
    type_: cufftXtCallbackType,
    caller_info: *mut *mut c_void,
) -> Result {
    plan::get(plan)?;
    _ = (lto_callback_symbol_name, lto_callback_fatbin, lto_callback_fatbin_size, type_, caller_info);
    Err(Error::NotSupported("callbacks in LTO IR"))
}
