//! Launches and occupancy.

use std::ffi::{c_int, c_uint, c_void};

use hip_sys::*;

use crate::device::{self, healthy};
use crate::error::{Result, out};
use crate::exec;
use crate::launch::{Arguments, launch};
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
    healthy()?;
    let function = function_of_handle(f)?;
    let stream = stream::of_handle(stream)?;
    let (grid, block) = ([gridDimX, gridDimY, gridDimZ], [blockDimX, blockDimY, blockDimZ]);
    // HIP: one or the other.
    if !kernelParams.is_null() && !extra.is_null() {
        return Err(hipErrorInvalidValue);
    }
    let arguments = Arguments { params: kernelParams, extra };
    // SAFETY: HIP's contract for the arguments.
    unsafe { launch(&function, grid, block, sharedMemBytes, &stream, arguments) }
}

/// Blocks of this size that one core's limits would hold at once.
fn blocks_per_core(function: &Function, n_threads: c_int, dynamic_shared: usize) -> Result<c_int> {
    let n_threads = u32::try_from(n_threads).ok().filter(|&n| n > 0).ok_or(hipErrorInvalidValue)?;
    if n_threads > function.max_threads() {
        return Ok(0);
    }
    let dynamic = u32::try_from(dynamic_shared).unwrap_or(u32::MAX);
    let shared = exec::shared_bytes(&function.kernel().shared, dynamic);
    if shared > device::SHARED_OPTIN {
        return Ok(0);
    }
    let by_shared = device::SHARED_PER_CORE / (shared + device::SHARED_RESERVED);
    let by_threads = device::THREADS_PER_CORE / n_threads.next_multiple_of(32);
    Ok(by_shared.min(by_threads).min(device::BLOCKS_PER_CORE) as c_int)
}

pub fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: *mut c_int,
    f: hipFunction_t,
    blockSize: c_int,
    dynSharedMemPerBlk: usize,
) -> Result {
    let answer = out(numBlocks)?;
    answer.write(blocks_per_core(&*function_of_handle(f)?, blockSize, dynSharedMemPerBlk)?);
    Ok(())
}

pub fn hipModuleOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: *mut c_int,
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
    gridSize: *mut c_int,
    blockSize: *mut c_int,
    f: hipFunction_t,
    dynSharedMemPerBlk: usize,
    blockSizeLimit: c_int,
) -> Result {
    let (grid, block) = (out(gridSize)?, out(blockSize)?);
    let function = function_of_handle(f)?;
    let limit = u32::try_from(blockSizeLimit).map_err(|_| hipErrorInvalidValue)?;
    let most = if limit == 0 { function.max_threads() } else { function.max_threads().min(limit) };
    // The largest block among those that fill a core best.
    let (mut best, mut best_blocks, mut filled) = (0, 0, 0);
    let mut n = (most.next_multiple_of(32)).min(most);
    while n > 0 {
        let blocks = blocks_per_core(&function, n as c_int, dynSharedMemPerBlk)?;
        let threads = blocks as u32 * n;
        if threads > filled {
            (best, best_blocks, filled) = (n, blocks, threads);
        }
        n = if n % 32 == 0 { n - 32 } else { n - n % 32 };
    }
    if best == 0 {
        return Err(hipErrorInvalidValue);
    }
    block.write(best as c_int);
    grid.write(best_blocks * device::get().n_cores as c_int);
    Ok(())
}

pub fn hipModuleOccupancyMaxPotentialBlockSizeWithFlags(
    gridSize: *mut c_int,
    blockSize: *mut c_int,
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
