//! Launches and occupancy.

use std::ffi::{c_int, c_uint, c_void};

use border::Out;
use hip_sys::*;

use crate::device::{self, healthy};
use crate::error::Result;
use crate::launch::{Arguments, Shape, blocks_per_core, launch};
use crate::module::{Function, function_of_handle};
use crate::stream;

pub fn hipModuleLaunchKernel(
    f: hipFunction_t,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    stream: hipStream_t,
    kernelParams: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    let shape = Shape {
        grid: [gridDimX, gridDimY, gridDimZ],
        block: [blockDimX, blockDimY, blockDimZ],
        dynamic_shared: sharedMemBytes,
        ..Shape::default()
    };
    launch_shape(f, shape, stream, Arguments { params: kernelParams, extra })
}

fn launch_shape(f: hipFunction_t, shape: Shape, stream: hipStream_t, arguments: Arguments) -> Result {
    healthy()?;
    let function = function_of_handle(f)?;
    let stream = stream::of_handle(stream)?;
    // HIP: one or the other.
    if !arguments.params.is_null() && !arguments.extra.is_null() {
        return Err(hipErrorInvalidValue);
    }
    // SAFETY: HIP's contract for the arguments.
    unsafe { launch(&function, shape, &stream, arguments) }
}

/// All blocks are resident together and may wait for each other.
pub fn hipModuleLaunchCooperativeKernel(
    f: hipFunction_t,
    gridDimX: c_uint,
    gridDimY: c_uint,
    gridDimZ: c_uint,
    blockDimX: c_uint,
    blockDimY: c_uint,
    blockDimZ: c_uint,
    sharedMemBytes: c_uint,
    stream: hipStream_t,
    kernelParams: *mut *mut c_void,
) -> Result {
    let shape = Shape {
        grid: [gridDimX, gridDimY, gridDimZ],
        block: [blockDimX, blockDimY, blockDimZ],
        dynamic_shared: sharedMemBytes,
        cooperative: true,
        cluster: None,
    };
    launch_shape(f, shape, stream, Arguments { params: kernelParams, extra: std::ptr::null_mut() })
}

/// A launch with attributes: cooperative, cluster size. The others that ROCm has are hints.
///
/// # Safety
/// `config` is NULL, or a structure with as many attributes as it says; the arguments are those of the kernel.
pub unsafe fn hipDrvLaunchKernelEx(
    config: *const HIP_LAUNCH_CONFIG,
    f: hipFunction_t,
    params: *mut *mut c_void,
    extra: *mut *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    let config = unsafe { config.as_ref() }.ok_or(hipErrorInvalidValue)?;
    let attributes = match config.numAttrs as usize {
        0 => &[],
        _ if config.attrs.is_null() => return Err(hipErrorInvalidValue),
        // SAFETY: HIP's contract: `numAttrs` entries.
        n => unsafe { std::slice::from_raw_parts(config.attrs.cast_const(), n) },
    };
    let mut shape = Shape {
        grid: [config.gridDimX, config.gridDimY, config.gridDimZ],
        block: [config.blockDimX, config.blockDimY, config.blockDimZ],
        dynamic_shared: config.sharedMemBytes,
        ..Shape::default()
    };
    for attribute in attributes {
        match attribute.id {
            hipLaunchAttributeCooperative => {
                // SAFETY: the member that belongs to the id is the one set.
                shape.cooperative = unsafe { attribute.value.cooperative } != 0;
            }
            hipLaunchAttributeClusterDimension => {
                // SAFETY: as above.
                shape.cluster = Some(unsafe { attribute.value.clusterDim });
            }
            _ => {}
        }
    }
    launch_shape(f, shape, config.hStream, Arguments { params, extra })
}

fn occupancy(function: &Function, n_threads: c_int, dynamic_shared: usize) -> Result<c_int> {
    let n_threads = u32::try_from(n_threads).ok().filter(|&n| n > 0).ok_or(hipErrorInvalidValue)?;
    Ok(blocks_per_core(function, n_threads, u32::try_from(dynamic_shared).unwrap_or(u32::MAX)) as c_int)
}

pub fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: Out<'_, c_int>,
    f: hipFunction_t,
    blockSize: c_int,
    dynSharedMemPerBlk: usize,
) -> Result {
    numBlocks.write(occupancy(&*function_of_handle(f)?, blockSize, dynSharedMemPerBlk)?);
    Ok(())
}

pub fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: Out<'_, c_int>,
    f: hipFunction_t,
    blockSize: c_int,
    dynSharedMemPerBlk: usize,
    flags: c_uint,
) -> Result {
    if flags > 1 {
        return Err(hipErrorInvalidValue);
    }
    hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, f, blockSize, dynSharedMemPerBlk)
}

pub fn hipModuleOccupancyMaxPotentialBlockSize(
    gridSize: Out<'_, c_int>,
    blockSize: Out<'_, c_int>,
    f: hipFunction_t,
    dynSharedMemPerBlk: usize,
    blockSizeLimit: c_int,
) -> Result {
    let function = function_of_handle(f)?;
    let limit = u32::try_from(blockSizeLimit).map_err(|_| hipErrorInvalidValue)?;
    let most = if limit == 0 { function.max_threads() } else { function.max_threads().min(limit) };
    // The largest block among those that fill a core best.
    let (mut best, mut best_blocks, mut filled) = (0, 0, 0);
    let mut n = (most.next_multiple_of(32)).min(most);
    while n > 0 {
        let blocks = occupancy(&function, n as c_int, dynSharedMemPerBlk)?;
        let threads = blocks as u32 * n;
        if threads > filled {
            (best, best_blocks, filled) = (n, blocks, threads);
        }
        n = if n % 32 == 0 { n - 32 } else { n - n % 32 };
    }
    if best == 0 {
        return Err(hipErrorInvalidValue);
    }
    blockSize.write(best as c_int);
    gridSize.write(best_blocks * device::get().n_cores as c_int);
    Ok(())
}

pub fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
    gridSize: Out<'_, c_int>,
    blockSize: Out<'_, c_int>,
    f: hipFunction_t,
    dynSharedMemPerBlk: usize,
    blockSizeLimit: c_int,
    flags: c_uint,
) -> Result {
    if flags > 1 {
        return Err(hipErrorInvalidValue);
    }
    hipModuleOccupancyMaxPotentialBlockSize(gridSize, blockSize, f, dynSharedMemPerBlk, blockSizeLimit)
}
