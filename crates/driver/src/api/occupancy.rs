//! Occupancy: how many blocks fit.

use core::ffi::{c_int, c_uint};
use std::sync::atomic::Ordering;

use border::Out;
use cuda_abi::{CUfunction, CUlaunchConfig, CUoccupancyB2DSize};
use hip_sys as hip;

use crate::object::Function;
use crate::object::device::WARP_SIZE;
use crate::{Error, Result};

pub fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: Out<'_, c_int>,
    func: CUfunction,
    blockSize: c_int,
    dynamicSMemSize: usize,
) -> Result {
    let function = Function::from_handle(func)?;
    numBlocks.write(active_blocks(&function, blockSize, dynamicSMemSize)?);
    Ok(())
}

/// The one flag is about caching, which does not cost occupancy here.
pub fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: Out<'_, c_int>,
    func: CUfunction,
    blockSize: c_int,
    dynamicSMemSize: usize,
    flags: c_uint,
) -> Result {
    if flags > 1 {
        return Err(Error::InvalidValue("flags"));
    }
    cuOccupancyMaxActiveBlocksPerMultiprocessor(numBlocks, func, blockSize, dynamicSMemSize)
}

pub(super) fn active_blocks(function: &Function, block_size: c_int, shared_bytes: usize) -> Result<c_int> {
    if block_size <= 0 {
        return Err(Error::InvalidValue("blockSize"));
    }
    // CUDA: a block that may not have so much shared memory does not fit at all.
    if shared_bytes > most_shared(function)? {
        return Ok(0);
    }
    let block_size = match &function.gfx {
        Some(kernel) => match kernel.launched_threads(block_size.unsigned_abs()) {
            Some(threads) => threads.cast_signed(),
            None => return Ok(0),
        },
        None => block_size,
    };
    let mut n = 0;
    // SAFETY: `n` is writable; the function is alive.
    unsafe {
        function.context.hip().hipModuleOccupancyMaxActiveBlocksPerMultiprocessor(
            &mut n,
            function.hip.0,
            block_size,
            shared_bytes,
        )
    }?;
    Ok(n)
}

/// Dynamic shared memory that a block of the function can have: what the device gives every block, or, once the function was allowed
/// more than that, what the device has.
pub(super) fn most_shared(function: &Function) -> Result<usize> {
    let bounds = &function.context.device.bounds;
    let fixed = function.attribute(hip::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES.cast_unsigned())?;
    let fixed = u32::try_from(fixed).unwrap_or(0);
    let allowed = function.settings.dynamic_shared.load(Ordering::Relaxed).saturating_add(fixed);
    let most = if allowed > bounds.shared_per_block {
        bounds.shared_per_block_optin
    } else {
        bounds.shared_per_block
    };
    Ok(most.saturating_sub(fixed) as usize)
}

/// The block size with the most resident threads, and the grid that fills the device with it.
pub fn cuOccupancyMaxPotentialBlockSize(
    minGridSize: Out<'_, c_int>,
    blockSize: Out<'_, c_int>,
    func: CUfunction,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
    dynamicSMemSize: usize,
    blockSizeLimit: c_int,
) -> Result {
    let function = Function::from_handle(func)?;
    let device = function.context.device;
    let most = c_int::try_from(device.bounds.threads_per_block).unwrap_or(c_int::MAX);
    let most =
        function.most_threads().and_then(|n| c_int::try_from(n).ok()).map_or(most, |own| own.min(most));
    // CUDA: 0 means no limit of the caller's.
    let limit = if blockSizeLimit > 0 { blockSizeLimit.min(most) } else { most };
    let mut best = (0, 0, 0);
    let mut size = limit;
    while size > 0 {
        let shared_bytes = match blockSizeToDynamicSMemSize {
            // SAFETY: the program's function, called as CUDA says.
            Some(bytes_for) => unsafe { bytes_for(size) },
            None => dynamicSMemSize,
        };
        let n_blocks = active_blocks(&function, size, shared_bytes)?;
        if n_blocks * size > best.0 {
            best = (n_blocks * size, size, n_blocks);
        }
        // Whole warps below the limit.
        size = (size - 1) / WARP_SIZE * WARP_SIZE;
    }
    if best.0 == 0 {
        return Err(Error::InvalidValue("dynamicSMemSize"));
    }
    let n_processors = device.hip_attribute(hip::hipDeviceAttributeMultiprocessorCount).unwrap_or(1);
    minGridSize.write(best.2 * n_processors);
    blockSize.write(best.1);
    Ok(())
}

pub fn cuOccupancyMaxPotentialBlockSizeWithFlags(
    minGridSize: Out<'_, c_int>,
    blockSize: Out<'_, c_int>,
    func: CUfunction,
    blockSizeToDynamicSMemSize: CUoccupancyB2DSize,
    dynamicSMemSize: usize,
    blockSizeLimit: c_int,
    flags: c_uint,
) -> Result {
    if flags > 1 {
        return Err(Error::InvalidValue("flags"));
    }
    cuOccupancyMaxPotentialBlockSize(
        minGridSize,
        blockSize,
        func,
        blockSizeToDynamicSMemSize,
        dynamicSMemSize,
        blockSizeLimit,
    )
}

/// The dynamic shared memory that is left when `numBlocks` blocks share a multiprocessor.
pub fn cuOccupancyAvailableDynamicSMemPerBlock(
    dynamicSmemSize: Out<'_, usize>,
    func: CUfunction,
    numBlocks: c_int,
    blockSize: c_int,
) -> Result {
    let function = Function::from_handle(func)?;
    let n_blocks =
        usize::try_from(numBlocks).ok().filter(|&n| n > 0).ok_or(Error::InvalidValue("numBlocks"))?;
    if blockSize <= 0 {
        return Err(Error::InvalidValue("blockSize"));
    }
    let device = function.context.device;
    let total = device
        .hip_attribute(hip::hipDeviceAttributeSharedMemPerMultiprocessor)
        .and_then(|bytes| usize::try_from(bytes).ok())
        .unwrap_or(device.bounds.shared_per_block as usize);
    let fixed = function.attribute(hip::HIP_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES.cast_unsigned())?;
    let share = (total / n_blocks).saturating_sub(usize::try_from(fixed).unwrap_or(0));
    dynamicSmemSize.write(share.min(most_shared(&function)?));
    Ok(())
}

/// The largest cluster that a launch of this shape may ask for.
pub fn cuOccupancyMaxPotentialClusterSize(
    clusterSize: Out<'_, c_int>,
    func: CUfunction,
    config: &CUlaunchConfig,
) -> Result {
    let function = Function::from_handle(func)?;
    let resident = resident_blocks(&function, config)?;
    let most = if has_clusters(&function) { function.most_in_cluster() } else { 1 };
    clusterSize.write(resident.min(c_int::try_from(most).unwrap_or(c_int::MAX)));
    Ok(())
}

/// How many clusters of the size that the launch asks for can be resident at once.
pub fn cuOccupancyMaxActiveClusters(
    numClusters: Out<'_, c_int>,
    func: CUfunction,
    config: &CUlaunchConfig,
) -> Result {
    let function = Function::from_handle(func)?;
    let size = super::execution::cluster_of(config)?.or_else(|| function.cluster()).unwrap_or([1; 3]);
    let n_blocks = size.iter().fold(1u32, |n, &size| n.saturating_mul(size));
    let most = if has_clusters(&function) { function.most_in_cluster() } else { 1 };
    if n_blocks == 0 || n_blocks > most {
        return Err(Error::InvalidClusterSize);
    }
    let n_blocks = c_int::try_from(n_blocks).map_err(|_| Error::InvalidClusterSize)?;
    numClusters.write(resident_blocks(&function, config)? / n_blocks);
    Ok(())
}

fn has_clusters(function: &Function) -> bool {
    super::device::has_clusters(function.context.device)
}

/// Blocks of a launch that the whole device holds at once.
fn resident_blocks(function: &Function, config: &CUlaunchConfig) -> Result<c_int> {
    let n_threads = config.blockDimX.saturating_mul(config.blockDimY).saturating_mul(config.blockDimZ);
    let n_threads = c_int::try_from(n_threads).map_err(|_| Error::InvalidValue("config.blockDim"))?;
    let n_blocks = active_blocks(function, n_threads, config.sharedMemBytes as usize)?;
    let device = function.context.device;
    Ok(n_blocks * device.hip_attribute(hip::hipDeviceAttributeMultiprocessorCount).unwrap_or(1))
}
