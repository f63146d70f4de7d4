//! Plans: cuFFT manual, "cuFFT Basic Plans", "cuFFT Extensible Plans", "cuFFT Plan API".

use core::ffi::{c_int, c_longlong};

use border::Out;

use crate::arguments::{Request, of_type, of_types};
use crate::plan::{self, Plan};
use crate::types::*;
use crate::{Error, Result};

pub fn cufftCreate(handle: Out<'_, cufftHandle>) -> Result {
    handle.write(plan::add(Plan::new()?)?);
    Ok(())
}

/// A handle that was never made is let pass, as NVIDIA's library does.
pub fn cufftDestroy(plan: cufftHandle) -> Result {
    if plan == CUFFT_PLAN_NULL {
        return Ok(());
    }
    plan::remove(plan)
}

/// A plan that is created and made at once: the handle is written when all has succeeded.
fn planned(handle: Out<'_, cufftHandle>, request: &Request) -> Result {
    request.description().check()?;
    let made = Plan::new()?;
    made.make(&request.description())?;
    handle.write(plan::add(made)?);
    Ok(())
}

fn made(plan: cufftHandle, request: &Request, size: Out<'_, usize>) -> Result {
    let plan = plan::get(plan)?;
    let made = plan.make(&request.description())?;
    let first = size.as_ptr();
    size.write(made);
    for other in 1..plan.devices().len() {
        // SAFETY: cuFFT's contract: a plan of several devices has a place for each.
        unsafe { first.add(other).write_unaligned(made) };
    }
    Ok(())
}

pub fn cufftPlan1d(plan: Out<'_, cufftHandle>, nx: c_int, type_: cufftType, batch: c_int) -> Result {
    planned(plan, &Request::basic(&[nx], type_, batch)?)
}

pub fn cufftPlan2d(plan: Out<'_, cufftHandle>, nx: c_int, ny: c_int, type_: cufftType) -> Result {
    planned(plan, &Request::basic(&[nx, ny], type_, 1)?)
}

pub fn cufftPlan3d(plan: Out<'_, cufftHandle>, nx: c_int, ny: c_int, nz: c_int, type_: cufftType) -> Result {
    planned(plan, &Request::basic(&[nx, ny, nz], type_, 1)?)
}

/// # Safety
/// `n`, and `inembed` and `onembed` if they are not NULL, have `rank` numbers.
pub unsafe fn cufftPlanMany(
    plan: Out<'_, cufftHandle>,
    rank: c_int,
    n: *mut c_int,
    inembed: *mut c_int,
    istride: c_int,
    idist: c_int,
    onembed: *mut c_int,
    ostride: c_int,
    odist: c_int,
    type_: cufftType,
    batch: c_int,
) -> Result {
    let (input, output) = ((inembed.cast_const(), istride, idist), (onembed.cast_const(), ostride, odist));
    // SAFETY: the caller's promise.
    planned(plan, &unsafe { Request::many(rank, n, input, output, of_type(type_)?, batch) }?)
}

pub fn cufftMakePlan1d(
    plan: cufftHandle,
    nx: c_int,
    type_: cufftType,
    batch: c_int,
    workSize: Out<'_, usize>,
) -> Result {
    made(plan, &Request::basic(&[nx], type_, batch)?, workSize)
}

pub fn cufftMakePlan2d(
    plan: cufftHandle,
    nx: c_int,
    ny: c_int,
    type_: cufftType,
    workSize: Out<'_, usize>,
) -> Result {
    made(plan, &Request::basic(&[nx, ny], type_, 1)?, workSize)
}

pub fn cufftMakePlan3d(
    plan: cufftHandle,
    nx: c_int,
    ny: c_int,
    nz: c_int,
    type_: cufftType,
    workSize: Out<'_, usize>,
) -> Result {
    made(plan, &Request::basic(&[nx, ny, nz], type_, 1)?, workSize)
}

/// # Safety
/// As [`cufftPlanMany`].
pub unsafe fn cufftMakePlanMany(
    plan: cufftHandle,
    rank: c_int,
    n: *mut c_int,
    inembed: *mut c_int,
    istride: c_int,
    idist: c_int,
    onembed: *mut c_int,
    ostride: c_int,
    odist: c_int,
    type_: cufftType,
    batch: c_int,
    workSize: Out<'_, usize>,
) -> Result {
    let (input, output) = ((inembed.cast_const(), istride, idist), (onembed.cast_const(), ostride, odist));
    // SAFETY: the caller's promise.
    made(plan, &unsafe { Request::many(rank, n, input, output, of_type(type_)?, batch) }?, workSize)
}

/// # Safety
/// As [`cufftPlanMany`].
pub unsafe fn cufftMakePlanMany64(
    plan: cufftHandle,
    rank: c_int,
    n: *mut c_longlong,
    inembed: *mut c_longlong,
    istride: c_longlong,
    idist: c_longlong,
    onembed: *mut c_longlong,
    ostride: c_longlong,
    odist: c_longlong,
    type_: cufftType,
    batch: c_longlong,
    workSize: Out<'_, usize>,
) -> Result {
    let (input, output) = ((inembed.cast_const(), istride, idist), (onembed.cast_const(), ostride, odist));
    // SAFETY: the caller's promise.
    made(plan, &unsafe { Request::many(rank, n, input, output, of_type(type_)?, batch) }?, workSize)
}

/// Half, bfloat16, single or double: all three types of one precision. Lengths of 16-bit types need not be powers of two here.
///
/// # Safety
/// As [`cufftPlanMany`].
pub unsafe fn cufftXtMakePlanMany(
    plan: cufftHandle,
    rank: c_int,
    n: *mut c_longlong,
    inembed: *mut c_longlong,
    istride: c_longlong,
    idist: c_longlong,
    inputtype: cudaDataType,
    onembed: *mut c_longlong,
    ostride: c_longlong,
    odist: c_longlong,
    outputtype: cudaDataType,
    batch: c_longlong,
    workSize: Out<'_, usize>,
    executiontype: cudaDataType,
) -> Result {
    let types = of_types(inputtype, outputtype, executiontype)?;
    let (input, output) = ((inembed.cast_const(), istride, idist), (onembed.cast_const(), ostride, odist));
    // SAFETY: the caller's promise.
    made(plan, &unsafe { Request::many(rank, n, input, output, types, batch) }?, workSize)
}

/// Where 1-D data of several devices lies after a transform.
pub fn cufftXtQueryPlan(
    plan: cufftHandle,
    queryStruct: *mut core::ffi::c_void,
    queryType: cufftXtQueryType,
) -> Result {
    plan::get(plan)?.bytes()?;
    if queryStruct.is_null() {
        return Err(Error::Value("queryStruct"));
    }
    if queryType != cufftXtQueryType::CUFFT_QUERY_1D_FACTORS {
        return Err(Error::Value("queryType"));
    }
    Err(Error::NotSupported("factors of 1-D transforms on several devices"))
}
