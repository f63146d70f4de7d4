//! Handles, parameters, and what the library says of itself. Source: cuSOLVER manual, "cuSolverDN Helper Function Reference".

use core::ffi::c_int;
use std::sync::Arc;

use border::Out;
use kit::Registry;
use parking_lot::Mutex;

use crate::error::require;
use crate::handle::{self, Context};
use crate::release::RELEASES;
use crate::types::*;
use crate::{Error, Result};

pub fn cusolverDnCreate(handle: Out<'_, cusolverDnHandle_t>) -> Result {
    handle.write(handle::add(Context::new()?));
    Ok(())
}

pub fn cusolverDnDestroy(handle: cusolverDnHandle_t) -> Result {
    handle::remove(handle)
}

pub fn cusolverDnSetStream(handle: cusolverDnHandle_t, streamId: cudaStream_t) -> Result {
    handle::get(handle)?.change(|state| state.stream = streamId);
    Ok(())
}

pub fn cusolverDnGetStream(handle: cusolverDnHandle_t, streamId: Out<'_, cudaStream_t>) -> Result {
    streamId.write(handle::get(handle)?.state().stream);
    Ok(())
}

/// All results are deterministic; the mode is kept.
pub fn cusolverDnSetDeterministicMode(
    handle: cusolverDnHandle_t,
    mode: cusolverDeterministicMode_t,
) -> Result {
    let context = handle::get(handle)?;
    require(matches!(mode.0, 1 | 2), "there is no such mode")?;
    context.change(|state| state.determinism = mode);
    Ok(())
}

pub fn cusolverDnGetDeterministicMode(
    handle: cusolverDnHandle_t,
    mode: Out<'_, cusolverDeterministicMode_t>,
) -> Result {
    mode.write(handle::get(handle)?.state().determinism);
    Ok(())
}

/// Modes allow emulations of a type by narrower ones and ask for none: what is computed has the precision of its type.
pub fn cusolverDnSetMathMode(handle: cusolverDnHandle_t, mode: cusolverMathMode_t) -> Result {
    let context = handle::get(handle)?;
    require(matches!(mode.0, 1 | 2 | 4 | 6), "there is no such mode")?;
    context.change(|state| state.math = mode);
    Ok(())
}

pub fn cusolverDnGetMathMode(handle: cusolverDnHandle_t, mode: Out<'_, cusolverMathMode_t>) -> Result {
    mode.write(handle::get(handle)?.state().math);
    Ok(())
}

fn release() -> [i32; 3] {
    let major = kit::release::major();
    RELEASES.iter().find(|(cuda, _)| *cuda == major).unwrap_or(&RELEASES[0]).1
}

/// Follows the CUDA runtime of the process: `libcusolver.so.11` is that of CUDA 11 and 12.
pub fn cusolverGetVersion(version: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    version.write(1000 * major + 100 * minor + patch);
    Ok(())
}

pub fn cusolverGetProperty(type_: libraryPropertyType, value: Out<'_, c_int>) -> Result {
    let [major, minor, patch] = release();
    value.write(match type_ {
        libraryPropertyType::MAJOR_VERSION => major,
        libraryPropertyType::MINOR_VERSION => minor,
        libraryPropertyType::PATCH_LEVEL => patch,
        _ => return Err(Error::InvalidValue("there is no such property")),
    });
    Ok(())
}

/// What `cusolverDnParams_t` keeps: algorithms by function. Each function of ours has one algorithm.
type Algorithms = Mutex<[cusolverAlgMode_t; 7]>;

static PARAMS: Registry<Algorithms> = Registry::new();

/// The parameters that a call of the 64-bit API takes; NULL is the default ones.
pub(crate) fn params(params: cusolverDnParams_t) -> Result<Option<Arc<Algorithms>>> {
    if params.is_null() { Ok(None) } else { Ok(Some(PARAMS.get(params)?)) }
}

pub fn cusolverDnCreateParams(params: Out<'_, cusolverDnParams_t>) -> Result {
    params.write(PARAMS.add(Algorithms::default()));
    Ok(())
}

pub fn cusolverDnDestroyParams(params: cusolverDnParams_t) -> Result {
    PARAMS.remove(params)?;
    Ok(())
}

pub fn cusolverDnSetAdvOptions(
    params: cusolverDnParams_t,
    function: cusolverDnFunction_t,
    algo: cusolverAlgMode_t,
) -> Result {
    let known = PARAMS.get(params)?;
    require(algo <= cusolverAlgMode_t::CUSOLVER_ALG_2, "there is no such algorithm")?;
    let mut algorithms = known.lock();
    let place = algorithms.get_mut(function.0 as usize);
    *place.ok_or(Error::InvalidValue("there is no such function"))? = algo;
    Ok(())
}
