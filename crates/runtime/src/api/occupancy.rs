//! Occupancy.

use core::ffi::{c_int, c_uint, c_void};

use border::Out;

use super::execution::function;
use crate::{Result, driver};

pub fn cudaOccupancyMaxActiveBlocksPerMultiprocessor(
    numBlocks: Out<'_, c_int>,
    func: *const c_void,
    blockSize: c_int,
    dynamicSMemSize: usize,
) -> Result {
    cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(numBlocks, func, blockSize, dynamicSMemSize, 0)
}

pub fn cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
    numBlocks: Out<'_, c_int>,
    func: *const c_void,
    blockSize: c_int,
    dynamicSMemSize: usize,
    flags: c_uint,
) -> Result {
    let function = function(func)?;
    let mut found = 0;
    driver::get()?.cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        &mut found,
        function,
        blockSize,
        dynamicSMemSize,
        flags,
    )?;
    numBlocks.write(found);
    Ok(())
}

pub fn cudaOccupancyAvailableDynamicSMemPerBlock(
    dynamicSmemSize: Out<'_, usize>,
    func: *const c_void,
    numBlocks: c_int,
    blockSize: c_int,
) -> Result {
    let function = function(func)?;
    let mut found = 0;
    driver::get()?.cuOccupancyAvailableDynamicSMemPerBlock(&mut found, function, numBlocks, blockSize)?;
    dynamicSmemSize.write(found);
    Ok(())
}
