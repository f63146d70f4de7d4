//! Transforms, in the order of the plan's stream: nothing here waits.

use core::ffi::{c_int, c_void};

use cufft_cpu::{Kind, Precision};

use crate::types::*;
use crate::{Result, plan};

pub fn cufftExecC2C(
    plan: cufftHandle,
    idata: *mut cufftComplex,
    odata: *mut cufftComplex,
    direction: c_int,
) -> Result {
    let of = Some((Kind::C2C, Precision::Single));
    plan::get(plan)?.execute(of, idata.cast(), odata.cast(), direction)
}

pub fn cufftExecR2C(plan: cufftHandle, idata: *mut f32, odata: *mut cufftComplex) -> Result {
    let of = Some((Kind::R2C, Precision::Single));
    plan::get(plan)?.execute(of, idata.cast(), odata.cast(), CUFFT_FORWARD)
}

pub fn cufftExecC2R(plan: cufftHandle, idata: *mut cufftComplex, odata: *mut f32) -> Result {
    let of = Some((Kind::C2R, Precision::Single));
    plan::get(plan)?.execute(of, idata.cast(), odata.cast(), CUFFT_INVERSE)
}

pub fn cufftExecZ2Z(
    plan: cufftHandle,
    idata: *mut cufftDoubleComplex,
    odata: *mut cufftDoubleComplex,
    direction: c_int,
) -> Result {
    let of = Some((Kind::C2C, Precision::Double));
    plan::get(plan)?.execute(of, idata.cast(), odata.cast(), direction)
}

pub fn cufftExecD2Z(plan: cufftHandle, idata: *mut f64, odata: *mut cufftDoubleComplex) -> Result {
    let of = Some((Kind::R2C, Precision::Double));
    plan::get(plan)?.execute(of, idata.cast(), odata.cast(), CUFFT_FORWARD)
}

pub fn cufftExecZ2D(plan: cufftHandle, idata: *mut cufftDoubleComplex, odata: *mut f64) -> Result {
    let of = Some((Kind::C2R, Precision::Double));
    plan::get(plan)?.execute(of, idata.cast(), odata.cast(), CUFFT_INVERSE)
}

/// Any plan; of real transforms the direction is the plan's.
pub fn cufftXtExec(plan: cufftHandle, input: *mut c_void, output: *mut c_void, direction: c_int) -> Result {
    plan::get(plan)?.execute(None, input, output, direction)
}
