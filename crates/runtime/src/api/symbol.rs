//! Device variables named by their host symbols.

use core::ffi::c_void;

use border::Out;
use cuda_abi::runtime::{cudaMemcpyKind, cudaStream_t};

use super::memory::{cudaMemcpy, cudaMemcpyAsync, pointer};
use crate::{Error, Result, registry};

pub fn cudaGetSymbolAddress(devPtr: Out<'_, *mut c_void>, symbol: *const c_void) -> Result {
    let (address, _) = registry::symbol(symbol)?;
    devPtr.write(pointer(address));
    Ok(())
}

pub fn cudaGetSymbolSize(size: Out<'_, usize>, symbol: *const c_void) -> Result {
    let (_, len_bytes) = registry::symbol(symbol)?;
    size.write(len_bytes);
    Ok(())
}

pub fn cudaMemcpyToSymbol(
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    cudaMemcpy(part(symbol, offset, count, kind, Side::Target)?, src, count, kind)
}

pub fn cudaMemcpyToSymbolAsync(
    symbol: *const c_void,
    src: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    cudaMemcpyAsync(part(symbol, offset, count, kind, Side::Target)?, src, count, kind, stream)
}

pub fn cudaMemcpyFromSymbol(
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
) -> Result {
    cudaMemcpy(dst, part(symbol, offset, count, kind, Side::Source)?, count, kind)
}

pub fn cudaMemcpyFromSymbolAsync(
    dst: *mut c_void,
    symbol: *const c_void,
    count: usize,
    offset: usize,
    kind: cudaMemcpyKind,
    stream: cudaStream_t,
) -> Result {
    cudaMemcpyAsync(dst, part(symbol, offset, count, kind, Side::Source)?, count, kind, stream)
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Target,
    Source,
}

/// The part of a variable that a copy touches. CUDA: the symbol's side of the copy is the device.
pub fn part(
    symbol: *const c_void,
    offset: usize,
    count: usize,
    kind: cudaMemcpyKind,
    side: Side,
) -> Result<*mut c_void> {
    let (address, len_bytes) = registry::symbol(symbol)?;
    let to_host =
        matches!(kind, cudaMemcpyKind::cudaMemcpyDeviceToHost | cudaMemcpyKind::cudaMemcpyHostToHost);
    let from_host =
        matches!(kind, cudaMemcpyKind::cudaMemcpyHostToDevice | cudaMemcpyKind::cudaMemcpyHostToHost);
    if (side == Side::Target && to_host) || (side == Side::Source && from_host) {
        return Err(Error::InvalidMemcpyDirection);
    }
    if offset.checked_add(count).is_none_or(|end| end > len_bytes) {
        return Err(Error::InvalidValue("count"));
    }
    Ok(pointer(address).wrapping_byte_add(offset))
}
