//! Sizes of work areas: before there is a plan, for a handle, and of what was made.

use core::ffi::{c_int, c_longlong};

use border::Out;

use crate::Result;
use crate::arguments::{Request, of_type, of_types};
use crate::plan::{self, Plan};
use crate::types::*;

fn estimate(request: &Request, size: Out<'_, usize>) -> Result {
    request.description().check()?;
    size.write(Plan::new()?.size(&request.description())?);
    Ok(())
}

fn size_for(handle: cufftHandle, request: &Request, size: Out<'_, usize>) -> Result {
    size.write(plan::get(handle)?.size(&request.description())?);
    Ok(())
}

pub fn cufftEstimate1d(nx: c_int, type_: cufftType, batch: c_int, workSize: Out<'_, usize>) -> Result {
    estimate(&Request::basic(&[nx], type_, batch)?, workSize)
}

pub fn cufftEstimate2d(nx: c_int, ny: c_int, type_: cufftType, workSize: Out<'_, usize>) -> Result {
    estimate(&Request::basic(&[nx, ny], type_, 1)?, workSize)
}

pub fn cufftEstimate3d(
    nx: c_int,
    ny: c_int,
    nz: c_int,
    type_: cufftType,
    workSize: Out<'_, usize>,
) -> Result {
    estimate(&Request::basic(&[nx, ny, nz], type_, 1)?, workSize)
}

/// # Safety
/// As [`super::plan::cufftPlanMany`].
pub unsafe fn cufftEstimateMany(
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
    estimate(&unsafe { Request::many(rank, n, input, output, of_type(type_)?, batch) }?, workSize)
}

pub fn cufftGetSize1d(
    handle: cufftHandle,
    nx: c_int,
    type_: cufftType,
    batch: c_int,
    workSize: Out<'_, usize>,
) -> Result {
    size_for(handle, &Request::basic(&[nx], type_, batch)?, workSize)
}

pub fn cufftGetSize2d(
    handle: cufftHandle,
    nx: c_int,
    ny: c_int,
    type_: cufftType,
    workSize: Out<'_, usize>,
) -> Result {
    size_for(handle, &Request::basic(&[nx, ny], type_, 1)?, workSize)
}

pub fn cufftGetSize3d(
    handle: cufftHandle,
    nx: c_int,
    ny: c_int,
    nz: c_int,
    type_: cufftType,
    workSize: Out<'_, usize>,
) -> Result {
    size_for(handle, &Request::basic(&[nx, ny, nz], type_, 1)?, workSize)
}

/// # Safety
/// As [`super::plan::cufftPlanMany`].
pub unsafe fn cufftGetSizeMany(
    handle: cufftHandle,
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
    workArea: Out<'_, usize>,
) -> Result {
    let (input, output) = ((inembed.cast_const(), istride, idist), (onembed.cast_const(), ostride, odist));
    // SAFETY: the caller's promise.
    size_for(handle, &unsafe { Request::many(rank, n, input, output, of_type(type_)?, batch) }?, workArea)
}

/// # Safety
/// As [`super::plan::cufftPlanMany`].
pub unsafe fn cufftGetSizeMany64(
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
    size_for(plan, &unsafe { Request::many(rank, n, input, output, of_type(type_)?, batch) }?, workSize)
}

/// # Safety
/// As [`super::plan::cufftPlanMany`].
pub unsafe fn cufftXtGetSizeMany(
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
    size_for(plan, &unsafe { Request::many(rank, n, input, output, types, batch) }?, workSize)
}

pub fn cufftGetSize(handle: cufftHandle, workSize: Out<'_, usize>) -> Result {
    workSize.write(plan::get(handle)?.work_area()?);
    Ok(())
}
