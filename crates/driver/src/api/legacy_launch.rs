//! Execution Control, the launch calls from before CUDA 4: shape and parameters are set on the function, one by one.

use core::ffi::{c_int, c_uint, c_void};
use std::collections::HashMap;

use cuda_abi::{
    CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE, CU_LAUNCH_PARAM_END, CUfunction, CUstream,
};
use parking_lot::Mutex;

use super::execution::{Manner, Shape, launch};
use crate::handle::Handle;
use crate::object::Function;
use crate::{Error, Result};

/// Where PTX's parameter space ends.
const PARAMETER_BYTES: usize = 32764;

#[derive(Clone, Default)]
struct Setup {
    block: [u32; 3],
    shared_bytes: u32,
    parameters: Vec<u8>,
}

/// By function handle; as many entries as a program has functions that it launches in this way.
static SETUPS: Mutex<Option<HashMap<u64, Setup>>> = Mutex::new(None);

fn change(function: CUfunction, change: impl FnOnce(&mut Setup)) {
    let mut setups = SETUPS.lock();
    change(setups.get_or_insert_default().entry(function.bits()).or_default());
}

fn get(function: CUfunction) -> Option<Setup> {
    SETUPS.lock().as_ref()?.get(&function.bits()).cloned()
}

/// Deprecated since CUDA 4.
pub fn cuFuncSetBlockShape(hfunc: CUfunction, x: c_int, y: c_int, z: c_int) -> Result {
    Function::from_handle(hfunc)?;
    let size =
        |value: c_int| u32::try_from(value).ok().filter(|&n| n > 0).ok_or(Error::InvalidValue("block shape"));
    let block = [size(x)?, size(y)?, size(z)?];
    change(hfunc, |setup| setup.block = block);
    Ok(())
}

/// Deprecated since CUDA 4.
pub fn cuFuncSetSharedSize(hfunc: CUfunction, bytes: c_uint) -> Result {
    Function::from_handle(hfunc)?;
    change(hfunc, |setup| setup.shared_bytes = bytes);
    Ok(())
}

/// Deprecated since CUDA 4.
pub fn cuParamSetSize(hfunc: CUfunction, numbytes: c_uint) -> Result {
    Function::from_handle(hfunc)?;
    let bytes = numbytes as usize;
    if bytes > PARAMETER_BYTES {
        return Err(Error::InvalidValue("numbytes"));
    }
    change(hfunc, |setup| setup.parameters.resize(bytes, 0));
    Ok(())
}

/// Deprecated since CUDA 4.
///
/// # Safety
/// `ptr` is NULL, or `numbytes` bytes that may be read.
pub unsafe fn cuParamSetv(hfunc: CUfunction, offset: c_int, ptr: *mut c_void, numbytes: c_uint) -> Result {
    if ptr.is_null() || numbytes as usize > PARAMETER_BYTES {
        return Err(Error::InvalidValue("ptr or numbytes"));
    }
    // SAFETY: the caller's promise.
    let bytes = unsafe { core::slice::from_raw_parts(ptr.cast::<u8>(), numbytes as usize) };
    set_parameter(hfunc, offset, bytes)
}

/// Deprecated since CUDA 4.
pub fn cuParamSeti(hfunc: CUfunction, offset: c_int, value: c_uint) -> Result {
    set_parameter(hfunc, offset, &value.to_ne_bytes())
}

/// Deprecated since CUDA 4.
pub fn cuParamSetf(hfunc: CUfunction, offset: c_int, value: f32) -> Result {
    set_parameter(hfunc, offset, &value.to_ne_bytes())
}

fn set_parameter(function: CUfunction, offset: c_int, bytes: &[u8]) -> Result {
    Function::from_handle(function)?;
    let offset = usize::try_from(offset).map_err(|_| Error::InvalidValue("offset"))?;
    let end = offset + bytes.len();
    if end > PARAMETER_BYTES {
        return Err(Error::InvalidValue("offset or numbytes"));
    }
    change(function, |setup| {
        let len_bytes = setup.parameters.len().max(end);
        setup.parameters.resize(len_bytes, 0);
        setup.parameters[offset..end].copy_from_slice(bytes);
    });
    Ok(())
}

/// Deprecated since CUDA 4.
pub fn cuLaunchGridAsync(f: CUfunction, grid_width: c_int, grid_height: c_int, hStream: CUstream) -> Result {
    Function::from_handle(f)?;
    // CUDA: the block shape must have been set.
    let mut setup = get(f).filter(|setup| setup.block[0] > 0).ok_or(Error::InvalidValue("f"))?;
    let size =
        |value: c_int| u32::try_from(value).map_err(|_| Error::InvalidValue("grid_width or grid_height"));
    let shape = Shape {
        grid: [size(grid_width)?, size(grid_height)?, 1],
        block: setup.block,
        shared_bytes: setup.shared_bytes,
    };
    launch_packed(f, shape, hStream, &mut setup.parameters)
}

/// The parameters come as one block of bytes.
fn launch_packed(function: CUfunction, shape: Shape, stream: CUstream, parameters: &mut [u8]) -> Result {
    let mut len_bytes = parameters.len();
    let mut extra = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        parameters.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut len_bytes).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    // SAFETY: a list that ends, of the parameters that were set.
    unsafe {
        launch(function, shape, stream, core::ptr::null_mut(), extra.as_mut_ptr(), Manner::default(), &[])
    }
}

/// Deprecated since CUDA 4.
pub fn cuLaunchGrid(f: CUfunction, grid_width: c_int, grid_height: c_int) -> Result {
    cuLaunchGridAsync(f, grid_width, grid_height, core::ptr::null_mut())
}

/// Deprecated since CUDA 4.
pub fn cuLaunch(f: CUfunction) -> Result {
    cuLaunchGrid(f, 1, 1)
}
