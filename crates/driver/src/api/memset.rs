//! Memory Management: filling memory. The host waits only for fills of memory that it sees itself.

use core::ffi::{c_int, c_uchar, c_uint, c_ushort};
use std::sync::Arc;

use cuda_abi::{CU_STREAM_PER_THREAD, CUDA_MEMSET_NODE_PARAMS, CUcontext, CUdeviceptr, CUstream};

use crate::object::graph::capture::captured;
use crate::object::graph::{Op, Params};
use crate::object::memory::{Allocation, check_and, raw};
use crate::object::stream::null_is_per_thread;
use crate::object::{Context, Stream};
use crate::{Error, Result};

/// The value to fill with.
#[derive(Clone, Copy)]
enum Fill {
    Byte(c_uchar),
    Half(c_ushort),
    Word(c_uint),
}

impl Fill {
    fn len_bytes(self) -> usize {
        match self {
            Fill::Byte(_) => 1,
            Fill::Half(_) => 2,
            Fill::Word(_) => 4,
        }
    }

    fn value(self) -> c_uint {
        match self {
            Fill::Byte(value) => value.into(),
            Fill::Half(value) => value.into(),
            Fill::Word(value) => value,
        }
    }

    /// A graph's node of so many rows.
    fn later(self, dst: CUdeviceptr, pitch: usize, width: usize, height: usize) -> Result<Arc<Op>> {
        let elementSize = self.len_bytes() as c_uint;
        let fill = CUDA_MEMSET_NODE_PARAMS { dst, pitch, value: self.value(), elementSize, width, height };
        node_op(&fill, Context::current()?.handle())
    }
}

/// The default stream of synchronous spellings.
fn default_stream() -> CUstream {
    if null_is_per_thread() { CU_STREAM_PER_THREAD } else { core::ptr::null_mut() }
}

fn row(stream: &Stream, at: CUdeviceptr, fill: Fill, n: usize) -> Result {
    let hip = stream.hip();
    match fill {
        // SAFETY: the range was checked; the stream is alive.
        Fill::Byte(value) => unsafe { hip.hipMemsetD8Async(raw(at), value, n, stream.hip.0) }?,
        // SAFETY: the range was checked; the stream is alive.
        Fill::Half(value) => unsafe { hip.hipMemsetD16Async(raw(at), value, n, stream.hip.0) }?,
        // HIP differs: the word is signed there.
        // SAFETY: the range was checked; the stream is alive.
        Fill::Word(value) => unsafe { hip.hipMemsetD32Async(raw(at), value.cast_signed(), n, stream.hip.0) }?,
    }
    Ok(())
}

/// Whether a fill was queued that a synchronous spelling waits for. One that was captured happens later.
type IsWaitedFor = bool;

fn linear(at: CUdeviceptr, fill: Fill, n: usize, stream: CUstream) -> Result<IsWaitedFor> {
    if captured(stream, || fill.later(at, 0, n, 1))? {
        return Ok(false);
    }
    let stream = Stream::from_handle(stream)?;
    if n == 0 {
        return Ok(false);
    }
    aligned(at, fill)?;
    let len_bytes = n.checked_mul(fill.len_bytes()).ok_or(Error::InvalidValue("N"))?;
    let is_waited_for = check_and(at, len_bytes, "dstDevice", Allocation::is_waited_for)?;
    row(&stream, at, fill, n)?;
    Ok(is_waited_for)
}

/// A synchronous spelling. CUDA: the host waits for the fill of memory that it sees itself, pinned or managed, and of memory
/// that was asked to be so (`CU_POINTER_ATTRIBUTE_SYNC_MEMOPS`).
fn now(fill: impl FnOnce(CUstream) -> Result<IsWaitedFor>) -> Result {
    let stream = default_stream();
    if fill(stream)? {
        return Stream::from_handle(stream)?.synchronize();
    }
    Ok(())
}

/// CUDA: an address that is no multiple of the element's size is an invalid value.
fn aligned(at: CUdeviceptr, fill: Fill) -> Result {
    if at.is_multiple_of(fill.len_bytes() as u64) { Ok(()) } else { Err(Error::InvalidValue("dstDevice")) }
}

/// The fill of a graph's memset node.
pub(crate) fn node_op(node: &CUDA_MEMSET_NODE_PARAMS, context: CUcontext) -> Result<Arc<Op>> {
    let CUDA_MEMSET_NODE_PARAMS { dst, pitch, value, elementSize, width, height } = *node;
    let fill = match elementSize {
        1 => Fill::Byte((value & 0xff) as c_uchar),
        2 => Fill::Half((value & 0xffff) as c_ushort),
        4 => Fill::Word(value),
        _ => return Err(Error::InvalidValue("elementSize")),
    };
    aligned(dst, fill)?;
    let params = Params::Memset { fill: *node, context };
    Ok(Op::new(params, move |_, stream| rows(dst, pitch, fill, width, height, stream).map(|_| ())))
}

fn rows(
    at: CUdeviceptr,
    pitch: usize,
    fill: Fill,
    width: usize,
    height: usize,
    stream: CUstream,
) -> Result<IsWaitedFor> {
    if captured(stream, || fill.later(at, pitch, width, height))? {
        return Ok(false);
    }
    let stream = Stream::from_handle(stream)?;
    if width == 0 || height == 0 {
        return Ok(false);
    }
    aligned(at, fill)?;
    let row_bytes = width.checked_mul(fill.len_bytes()).ok_or(Error::InvalidValue("Width"))?;
    // CUDA: with more than one row, a row fits into the pitch and the pitch keeps the alignment.
    if height > 1 && (pitch < row_bytes || !pitch.is_multiple_of(fill.len_bytes())) {
        return Err(Error::InvalidValue("dstPitch"));
    }
    let len_bytes = (height - 1)
        .checked_mul(pitch)
        .and_then(|bytes| bytes.checked_add(row_bytes))
        .ok_or(Error::InvalidValue("Height"))?;
    let is_waited_for = check_and(at, len_bytes, "dstDevice", Allocation::is_waited_for)?;
    if height == 1 || pitch == row_bytes {
        row(&stream, at, fill, width * height)?;
        return Ok(is_waited_for);
    }
    if let Fill::Byte(value) = fill {
        // SAFETY: the range was checked; the stream is alive.
        unsafe {
            stream.hip().hipMemset2DAsync(raw(at), pitch, c_int::from(value), width, height, stream.hip.0)
        }?;
        return Ok(is_waited_for);
    }
    // HIP differs: two-dimensional fills of wider elements came with ROCm 7.1 only.
    for y in 0..height {
        row(&stream, at + (y * pitch) as u64, fill, width)?;
    }
    Ok(is_waited_for)
}

pub fn cuMemsetD8_v2(dstDevice: CUdeviceptr, uc: c_uchar, N: usize) -> Result {
    Context::current()?;
    now(|stream| linear(dstDevice, Fill::Byte(uc), N, stream))
}

pub fn cuMemsetD16_v2(dstDevice: CUdeviceptr, us: c_ushort, N: usize) -> Result {
    Context::current()?;
    now(|stream| linear(dstDevice, Fill::Half(us), N, stream))
}

pub fn cuMemsetD32_v2(dstDevice: CUdeviceptr, ui: c_uint, N: usize) -> Result {
    Context::current()?;
    now(|stream| linear(dstDevice, Fill::Word(ui), N, stream))
}

pub fn cuMemsetD8Async(dstDevice: CUdeviceptr, uc: c_uchar, N: usize, hStream: CUstream) -> Result {
    linear(dstDevice, Fill::Byte(uc), N, hStream).map(|_| ())
}

pub fn cuMemsetD16Async(dstDevice: CUdeviceptr, us: c_ushort, N: usize, hStream: CUstream) -> Result {
    linear(dstDevice, Fill::Half(us), N, hStream).map(|_| ())
}

pub fn cuMemsetD32Async(dstDevice: CUdeviceptr, ui: c_uint, N: usize, hStream: CUstream) -> Result {
    linear(dstDevice, Fill::Word(ui), N, hStream).map(|_| ())
}

pub fn cuMemsetD2D8_v2(
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    uc: c_uchar,
    Width: usize,
    Height: usize,
) -> Result {
    now(|stream| rows(dstDevice, dstPitch, Fill::Byte(uc), Width, Height, stream))
}

pub fn cuMemsetD2D16_v2(
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    us: c_ushort,
    Width: usize,
    Height: usize,
) -> Result {
    now(|stream| rows(dstDevice, dstPitch, Fill::Half(us), Width, Height, stream))
}

pub fn cuMemsetD2D32_v2(
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    ui: c_uint,
    Width: usize,
    Height: usize,
) -> Result {
    now(|stream| rows(dstDevice, dstPitch, Fill::Word(ui), Width, Height, stream))
}

pub fn cuMemsetD2D8Async(
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    uc: c_uchar,
    Width: usize,
    Height: usize,
    hStream: CUstream,
) -> Result {
    rows(dstDevice, dstPitch, Fill::Byte(uc), Width, Height, hStream).map(|_| ())
}

pub fn cuMemsetD2D16Async(
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    us: c_ushort,
    Width: usize,
    Height: usize,
    hStream: CUstream,
) -> Result {
    rows(dstDevice, dstPitch, Fill::Half(us), Width, Height, hStream).map(|_| ())
}

pub fn cuMemsetD2D32Async(
    dstDevice: CUdeviceptr,
    dstPitch: usize,
    ui: c_uint,
    Width: usize,
    Height: usize,
    hStream: CUstream,
) -> Result {
    rows(dstDevice, dstPitch, Fill::Word(ui), Width, Height, hStream).map(|_| ())
}
