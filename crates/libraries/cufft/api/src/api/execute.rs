//! Transforms, in the order of the plan's stream: nothing here waits.

use core::ffi::{c_int, c_void};

use cufft_cpu::{Kind, Precision};

use crate::types::*;
use crate::{Result, plan};

/// # Safety
/// `idata` and `odata` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftExecC2C(
    plan: cufftHandle,
    idata: *mut cufftComplex,
    odata: *mut cufftComplex,
    direction: c_int,
) -> Result {
    let of = Some((Kind::C2C, Precision::Single));
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(of, idata.cast(), odata.cast(), direction) }
}

/// # Safety
/// `idata` and `odata` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftExecR2C(plan: cufftHandle, idata: *mut f32, odata: *mut cufftComplex) -> Result {
    let of = Some((Kind::R2C, Precision::Single));
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(of, idata.cast(), odata.cast(), CUFFT_FORWARD) }
}

/// # Safety
/// `idata` and `odata` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftExecC2R(plan: cufftHandle, idata: *mut cufftComplex, odata: *mut f32) -> Result {
    let of = Some((Kind::C2R, Precision::Single));
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(of, idata.cast(), odata.cast(), CUFFT_INVERSE) }
}

/// # Safety
/// `idata` and `odata` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftExecZ2Z(
    plan: cufftHandle,
    idata: *mut cufftDoubleComplex,
    odata: *mut cufftDoubleComplex,
    direction: c_int,
) -> Result {
    let of = Some((Kind::C2C, Precision::Double));
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(of, idata.cast(), odata.cast(), direction) }
}

/// # Safety
/// `idata` and `odata` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftExecD2Z(plan: cufftHandle, idata: *mut f64, odata: *mut cufftDoubleComplex) -> Result {
    let of = Some((Kind::R2C, Precision::Double));
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(of, idata.cast(), odata.cast(), CUFFT_FORWARD) }
}

/// # Safety
/// `idata` and `odata` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftExecZ2D(plan: cufftHandle, idata: *mut cufftDoubleComplex, odata: *mut f64) -> Result {
    let of = Some((Kind::C2R, Precision::Double));
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(of, idata.cast(), odata.cast(), CUFFT_INVERSE) }
}

/// Any plan; of real transforms the direction is the plan's.
///
/// # Safety
/// `input` and `output` are NULL, or have room for the plan's data, until the stream has done the work.
pub unsafe fn cufftXtExec(
    plan: cufftHandle,
    input: *mut c_void,
    output: *mut c_void,
    direction: c_int,
) -> Result {
    let plan = plan::get(plan)?;
    // SAFETY: the caller's promise.
    unsafe { plan.execute(None, input, output, direction) }
}
