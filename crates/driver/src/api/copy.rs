//! Memory Management: copies.
//!
//! Synchronous copies go to the default stream; in their `_ptds` spellings to the thread's own.

use core::ffi::c_void;
use std::sync::Arc;

use cuda_abi::{
    CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUDA_MEMCPY3D_PEER, CUarray, CUcontext, CUdeviceptr, CUmemorytype, CUstream,
};
use hip_sys::{
    HIP_MEMCPY3D, hipArray_t, hipDeviceptr_t, hipMemcpyDefault, hipMemcpyDeviceToDevice,
    hipMemcpyDeviceToHost, hipMemcpyHostToDevice, hipMemcpyHostToHost, hipMemcpyKind, hipMemoryType,
    hipMemoryTypeArray, hipMemoryTypeDevice, hipMemoryTypeHost,
};

use crate::object::array::Array;
use crate::object::graph::capture::{captured, forbid_legacy};
use crate::object::graph::storage::Mark;
use crate::object::graph::{Op, Params};
use crate::object::memory::{self, check, raw};
use crate::object::stream::null_is_per_thread;
use crate::object::{Context, Stream};
use crate::process::driver;
use crate::{Error, Result};

/// A copy that has ended when the call returns.
///
/// # Safety
/// Host memory of either range is there for `len_bytes` until the copy has been made; device ranges were checked.
unsafe fn copy_now(
    target: *mut c_void,
    source: *const c_void,
    len_bytes: usize,
    kind: hipMemcpyKind,
) -> Result {
    let context = Context::current()?;
    let hip = context.hip();
    let stream = Stream::default_of(context, null_is_per_thread());
    if null_is_per_thread() {
        between_devices(&stream, (target, source), len_bytes, || {
            // SAFETY: the caller's promise for both ranges.
            Ok(unsafe { hip.hipMemcpyAsync(target, source, len_bytes, kind, stream.hip.0) }?)
        })?;
        return stream.synchronize();
    }
    forbid_legacy(context)?;
    between_devices(&stream, (target, source), len_bytes, || {
        // SAFETY: as above.
        Ok(unsafe { hip.hipMemcpy(target, source, len_bytes, kind) }?)
    })
}

/// Does a copy in a stream. Between the memories of two devices it begins, in a default stream, when all that either was asked for before has
/// ended, and ends before what either is asked for later begins (CUDA C++ Programming Guide, "Peer-to-Peer Memory Copy").
fn between_devices(
    stream: &Stream,
    (target, source): (*mut c_void, *const c_void),
    len_bytes: usize,
    copy: impl FnOnce() -> Result,
) -> Result {
    let Some(contexts) = two_devices([target.cast_const(), source]) else { return copy() };
    if !contexts[0].device.provider.is_of_one_library(contexts[1].device.provider) {
        // No stream orders what two libraries do: the call is over when the copy is.
        stream.synchronize()?;
        let [target, source] = [target, source.cast_mut()].map(memory::device_pointer);
        let done = staged(target, source, len_bytes, contexts);
        stream.context.bind()?;
        return done;
    }
    if !stream.is_default() {
        return copy();
    }
    let others = contexts.into_iter().filter(|it| !core::ptr::eq(it.device, stream.context.device));
    let others: Vec<Stream> = others.map(|context| Stream::default_of(context, false)).collect();
    let order = |first: &Stream, then: &Stream| {
        first.context.bind()?;
        let mark = Mark::new(first.context)?;
        mark.put(first)?;
        then.context.bind()?;
        mark.precede(then)
    };
    let mut done = others.iter().try_for_each(|other| order(other, stream)).and_then(|()| copy());
    if done.is_ok() {
        done = others.iter().try_for_each(|other| order(stream, other));
    }
    stream.context.bind()?;
    done
}

/// The contexts of a copy's ends, where these are memory of two devices.
fn two_devices(ends: [*const c_void; 2]) -> Option<[&'static Context; 2]> {
    if !driver().is_ok_and(|driver| driver.devices.len() > 1) {
        return None;
    }
    let owner = |end: *const c_void| {
        let memory = memory::find(memory::device_pointer(end.cast_mut()))?;
        Some(memory.context).filter(|_| !memory.is_host() && !memory.is_managed())
    };
    let [first, second] = ends.map(owner);
    let (first, second) = (first?, second?);
    (!core::ptr::eq(first.device, second.device)).then_some([first, second])
}

/// # Safety
/// Host memory of either range is there for `len_bytes` until the stream has done the copy; device ranges were checked.
unsafe fn copy_on(
    stream: CUstream,
    target: *mut c_void,
    source: *const c_void,
    len_bytes: usize,
    kind: hipMemcpyKind,
) -> Result {
    let later = || node_op(&row(target, source, len_bytes, kind), Context::current()?.handle());
    if captured(stream, later)? {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    let copy = || {
        // SAFETY: the caller's promise: both ranges stay valid until the stream has done the copy.
        Ok(unsafe { stream.hip().hipMemcpyAsync(target, source, len_bytes, kind, stream.hip.0) }?)
    };
    between_devices(&stream, (target, source), len_bytes, copy)
}

/// A copy between addresses that were checked.
fn copy_addresses(
    stream: CUstream,
    (target, source): (CUdeviceptr, CUdeviceptr),
    len_bytes: usize,
    kind: hipMemcpyKind,
) -> Result {
    // SAFETY: CUDA's contract: an address that is not the device's is one of the program's memory.
    unsafe { copy_on(stream, raw(target), raw(source), len_bytes, kind) }
}

/// A copy of bytes as a graph's node has it.
#[expect(non_upper_case_globals, reason = "HIP's names")]
fn row(target: *mut c_void, source: *const c_void, len_bytes: usize, kind: hipMemcpyKind) -> CUDA_MEMCPY3D {
    let (host, device) = (CUmemorytype::CU_MEMORYTYPE_HOST, CUmemorytype::CU_MEMORYTYPE_DEVICE);
    let (srcMemoryType, dstMemoryType) = match kind {
        hipMemcpyHostToDevice => (host, device),
        hipMemcpyDeviceToHost => (device, host),
        hipMemcpyDeviceToDevice => (device, device),
        hipMemcpyHostToHost => (host, host),
        _ => (CUmemorytype::CU_MEMORYTYPE_UNIFIED, CUmemorytype::CU_MEMORYTYPE_UNIFIED),
    };
    CUDA_MEMCPY3D {
        srcMemoryType,
        srcHost: source,
        srcDevice: memory::device_pointer(source.cast_mut()),
        dstMemoryType,
        dstHost: target,
        dstDevice: memory::device_pointer(target),
        WidthInBytes: len_bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    }
}

fn not_null(pointer: *const c_void, parameter: &'static str) -> Result {
    if pointer.is_null() { Err(Error::InvalidValue(parameter)) } else { Ok(()) }
}

/// Every copy needs a context, also one of no bytes.
fn is_empty(len_bytes: usize) -> Result<bool> {
    Context::current()?;
    Ok(len_bytes == 0)
}

/// # Safety
/// `srcHost` is NULL, or has `ByteCount` bytes.
pub unsafe fn cuMemcpyHtoD_v2(dstDevice: CUdeviceptr, srcHost: *const c_void, ByteCount: usize) -> Result {
    if is_empty(ByteCount)? {
        return Ok(());
    }
    not_null(srcHost, "srcHost")?;
    check(dstDevice, ByteCount, "dstDevice")?;
    // SAFETY: the caller's promise for the host's memory; the device's range was checked.
    unsafe { copy_now(raw(dstDevice), srcHost, ByteCount, hipMemcpyHostToDevice) }
}

/// # Safety
/// `dstHost` is NULL, or has `ByteCount` bytes that may be written.
pub unsafe fn cuMemcpyDtoH_v2(dstHost: *mut c_void, srcDevice: CUdeviceptr, ByteCount: usize) -> Result {
    if is_empty(ByteCount)? {
        return Ok(());
    }
    not_null(dstHost, "dstHost")?;
    check(srcDevice, ByteCount, "srcDevice")?;
    // SAFETY: the caller's promise for the host's memory; the device's range was checked.
    unsafe { copy_now(dstHost, raw(srcDevice), ByteCount, hipMemcpyDeviceToHost) }
}

pub fn cuMemcpyDtoD_v2(dstDevice: CUdeviceptr, srcDevice: CUdeviceptr, ByteCount: usize) -> Result {
    if is_empty(ByteCount)? {
        return Ok(());
    }
    check_two(dstDevice, srcDevice, ByteCount)?;
    // SAFETY: both ranges were checked.
    unsafe { copy_now(raw(dstDevice), raw(srcDevice), ByteCount, hipMemcpyDeviceToDevice) }
}

/// Host or device on either side: the address says which.
pub fn cuMemcpy(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize) -> Result {
    if is_empty(ByteCount)? {
        return Ok(());
    }
    // SAFETY: CUDA's contract: an address that is not the device's is one of the program's memory.
    unsafe { copy_now(raw(dst), raw(src), ByteCount, unified(dst, src, ByteCount)?) }
}

/// A known range is checked for its end; an unknown address is the program's own memory.
fn check_unified(pointer: CUdeviceptr, len_bytes: usize, parameter: &'static str) -> Result {
    not_null(raw(pointer), parameter)?;
    memory::known([(pointer, parameter)], len_bytes).map(|_| ())
}

/// The direction of a copy between unified addresses, which are checked as [`check_unified`] does.
///
/// HIP differs: `hipMemcpyDefault` with two unregistered host addresses is an error in some versions.
fn unified(target: CUdeviceptr, source: CUdeviceptr, len_bytes: usize) -> Result<hipMemcpyKind> {
    not_null(raw(target), "dst")?;
    not_null(raw(source), "src")?;
    Ok(match memory::known([(target, "dst"), (source, "src")], len_bytes)? {
        [false, false] => hipMemcpyHostToHost,
        _ => hipMemcpyDefault,
    })
}

/// Both ranges are the device's.
fn check_two(target: CUdeviceptr, source: CUdeviceptr, len_bytes: usize) -> Result {
    match memory::known([(target, "dstDevice"), (source, "srcDevice")], len_bytes)? {
        [true, true] => Ok(()),
        [false, _] => Err(Error::InvalidValue("dstDevice")),
        [true, false] => Err(Error::InvalidValue("srcDevice")),
    }
}

/// # Safety
/// `srcHost` is NULL, or has `ByteCount` bytes, until the stream has done the copy.
pub unsafe fn cuMemcpyHtoDAsync_v2(
    dstDevice: CUdeviceptr,
    srcHost: *const c_void,
    ByteCount: usize,
    hStream: CUstream,
) -> Result {
    if is_empty(ByteCount)? {
        return Stream::from_handle(hStream).map(|_| ());
    }
    not_null(srcHost, "srcHost")?;
    check(dstDevice, ByteCount, "dstDevice")?;
    // SAFETY: the caller's promise for the host's memory; the device's range was checked.
    unsafe { copy_on(hStream, raw(dstDevice), srcHost, ByteCount, hipMemcpyHostToDevice) }
}

/// # Safety
/// `dstHost` is NULL, or has `ByteCount` bytes that may be written, until the stream has done the copy.
pub unsafe fn cuMemcpyDtoHAsync_v2(
    dstHost: *mut c_void,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> Result {
    if is_empty(ByteCount)? {
        return Stream::from_handle(hStream).map(|_| ());
    }
    not_null(dstHost, "dstHost")?;
    check(srcDevice, ByteCount, "srcDevice")?;
    // SAFETY: the caller's promise for the host's memory; the device's range was checked.
    unsafe { copy_on(hStream, dstHost, raw(srcDevice), ByteCount, hipMemcpyDeviceToHost) }
}

pub fn cuMemcpyDtoDAsync_v2(
    dstDevice: CUdeviceptr,
    srcDevice: CUdeviceptr,
    ByteCount: usize,
    hStream: CUstream,
) -> Result {
    if is_empty(ByteCount)? {
        return Stream::from_handle(hStream).map(|_| ());
    }
    check_two(dstDevice, srcDevice, ByteCount)?;
    copy_addresses(hStream, (dstDevice, srcDevice), ByteCount, hipMemcpyDeviceToDevice)
}

pub fn cuMemcpyAsync(dst: CUdeviceptr, src: CUdeviceptr, ByteCount: usize, hStream: CUstream) -> Result {
    if is_empty(ByteCount)? {
        return Stream::from_handle(hStream).map(|_| ());
    }
    copy_addresses(hStream, (dst, src), ByteCount, unified(dst, src, ByteCount)?)
}

pub fn cuMemcpyPeer(
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    ByteCount: usize,
) -> Result {
    match apart(dstContext, srcContext)? {
        Some(contexts) if !is_empty(ByteCount)? => staged(dstDevice, srcDevice, ByteCount, contexts),
        _ => cuMemcpy(dstDevice, srcDevice, ByteCount),
    }
}

pub fn cuMemcpyPeerAsync(
    dstDevice: CUdeviceptr,
    dstContext: CUcontext,
    srcDevice: CUdeviceptr,
    srcContext: CUcontext,
    ByteCount: usize,
    hStream: CUstream,
) -> Result {
    match apart(dstContext, srcContext)? {
        Some(contexts) if !is_empty(ByteCount)? => {
            // No stream orders what two libraries do: the call is over when the copy is.
            super::stream::cuStreamSynchronize(hStream)?;
            staged(dstDevice, srcDevice, ByteCount, contexts)
        }
        _ => cuMemcpyAsync(dstDevice, srcDevice, ByteCount, hStream),
    }
}

/// The contexts of target and source, if neither's HIP library reaches the other's memory.
fn apart(target: CUcontext, source: CUcontext) -> Result<Option<[&'static Context; 2]>> {
    let (target, source) = (Context::from_handle(target)?, Context::from_handle(source)?);
    let is_one = target.device.provider.is_of_one_library(source.device.provider);
    Ok((!is_one).then_some([target, source]))
}

/// A copy through the host, between devices of two HIP libraries.
fn staged(
    dst: CUdeviceptr,
    src: CUdeviceptr,
    len_bytes: usize,
    [target, source]: [&'static Context; 2],
) -> Result {
    const PIECE_BYTES: usize = 4 << 20;
    unified(dst, src, len_bytes)?;
    [target, source].into_iter().try_for_each(forbid_legacy)?;
    let mut piece = vec![0u8; len_bytes.min(PIECE_BYTES)];
    for at in (0..len_bytes).step_by(PIECE_BYTES) {
        let piece = &mut piece[..(len_bytes - at).min(PIECE_BYTES)];
        source.bind()?;
        // SAFETY: the piece is writable; the device's range was checked.
        unsafe {
            let from = raw(src + at as u64);
            source.hip().hipMemcpy(piece.as_mut_ptr().cast(), from, piece.len(), hipMemcpyDeviceToHost)
        }?;
        target.bind()?;
        // SAFETY: as above, the other way.
        unsafe {
            let to = raw(dst + at as u64);
            target.hip().hipMemcpy(to, piece.as_ptr().cast(), piece.len(), hipMemcpyHostToDevice)
        }?;
    }
    Ok(())
}

/// One side of a 2-D or 3-D copy: linear memory, or a part of an array.
#[derive(Clone)]
struct Side {
    base: CUdeviceptr,
    is_device: bool,
    is_unified: bool,
    pitch: usize,
    /// Rows from one slice to the next.
    height: usize,
    array: Option<Part>,
}

/// A place in an array.
#[derive(Clone)]
struct Part {
    array: Arc<Array>,
    x_bytes: usize,
    y: usize,
    z: usize,
}

/// A copy of `depth` slices of `height` rows of `width_bytes` bytes.
struct Block {
    target: Side,
    source: Side,
    width_bytes: usize,
    height: usize,
    depth: usize,
}

/// The description of one side, as CUDA's three structures have it.
struct Place {
    kind: CUmemorytype,
    host: *const c_void,
    device: CUdeviceptr,
    array: CUarray,
    x_bytes: usize,
    y: usize,
    z: usize,
    pitch: usize,
    height: usize,
}

impl Place {
    fn side(&self, block: (usize, usize, usize), parameter: &'static str) -> Result<Side> {
        let (width_bytes, height, depth) = block;
        let (base, is_device, is_unified) = match self.kind {
            CUmemorytype::CU_MEMORYTYPE_HOST => (memory::device_pointer(self.host.cast_mut()), false, false),
            CUmemorytype::CU_MEMORYTYPE_DEVICE => (self.device, true, false),
            CUmemorytype::CU_MEMORYTYPE_UNIFIED => (self.device, false, true),
            CUmemorytype::CU_MEMORYTYPE_ARRAY => return self.part(block, parameter),
            _ => return Err(Error::InvalidValue(parameter)),
        };
        if base == 0 {
            return Err(Error::InvalidValue(parameter));
        }
        // CUDA: with one row the pitch is not looked at; else a row must fit into it.
        let row = self.x_bytes.checked_add(width_bytes).ok_or(Error::InvalidValue(parameter))?;
        let pitch = match self.pitch {
            0 => row,
            pitch if pitch < row && (height > 1 || depth > 1) => return Err(Error::InvalidValue(parameter)),
            pitch => pitch,
        };
        let rows = if self.height == 0 { self.y + height } else { self.height };
        if depth > 1 && rows < self.y + height {
            return Err(Error::InvalidValue(parameter));
        }
        let slice = pitch.checked_mul(rows).ok_or(Error::InvalidValue(parameter))?;
        let offset = self
            .z
            .checked_mul(slice)
            .and_then(|z| self.y.checked_mul(pitch).and_then(|y| z.checked_add(y)))
            .and_then(|offset| offset.checked_add(self.x_bytes))
            .ok_or(Error::InvalidValue(parameter))?;
        let start = base.checked_add(offset as u64).ok_or(Error::InvalidValue(parameter))?;
        let len_bytes = (depth - 1)
            .checked_mul(slice)
            .and_then(|bytes| bytes.checked_add((height - 1) * pitch + width_bytes))
            .ok_or(Error::InvalidValue(parameter))?;
        if is_device {
            check(start, len_bytes, parameter)?;
        } else if is_unified {
            check_unified(start, len_bytes, parameter)?;
        }
        Ok(Side { base: start, is_device, is_unified, pitch, height: rows, array: None })
    }

    /// CUDA: whole elements, inside the array.
    fn part(&self, block: (usize, usize, usize), parameter: &'static str) -> Result<Side> {
        let (width_bytes, height, depth) = block;
        let array = Array::from_handle(self.array)?;
        let fits = |at: usize, size: usize, most: usize| at.checked_add(size).is_some_and(|end| end <= most);
        let element = array.element_bytes();
        let is_whole = self.x_bytes.is_multiple_of(element) && width_bytes.is_multiple_of(element);
        if !is_whole
            || !fits(self.x_bytes, width_bytes, array.row_bytes())
            || !fits(self.y, height, array.rows())
            || !fits(self.z, depth, array.slices())
        {
            return Err(Error::InvalidValue(parameter));
        }
        let part = Part { array, x_bytes: self.x_bytes, y: self.y, z: self.z };
        Ok(Side { base: 0, is_device: true, is_unified: false, pitch: 0, height: 0, array: Some(part) })
    }
}

/// A side as HIP's 3-D copy names it; linear sides begin at their first byte.
struct Placed {
    kind: hipMemoryType,
    host: *mut c_void,
    device: hipDeviceptr_t,
    array: hipArray_t,
    x_bytes: usize,
    y: usize,
    z: usize,
    pitch: usize,
    height: usize,
}

impl Side {
    fn placed(&self) -> Placed {
        let null = core::ptr::null_mut();
        let nowhere = Placed {
            kind: hipMemoryTypeHost,
            host: null,
            device: null,
            array: core::ptr::null_mut(),
            x_bytes: 0,
            y: 0,
            z: 0,
            pitch: self.pitch,
            height: self.height,
        };
        if let Some(part) = &self.array {
            let Part { array, x_bytes, y, z } = part;
            let place = (*x_bytes, *y, *z);
            return Placed {
                kind: hipMemoryTypeArray,
                array: array.hip.0,
                x_bytes: place.0,
                y: place.1,
                z: place.2,
                ..nowhere
            };
        }
        // Memory that CUDA does not know is the host's.
        if self.is_device || (self.is_unified && memory::find(self.base).is_some()) {
            Placed { kind: hipMemoryTypeDevice, device: raw(self.base), ..nowhere }
        } else {
            Placed { host: raw(self.base), ..nowhere }
        }
    }
}

impl Block {
    fn read(target: &Place, source: &Place, block: (usize, usize, usize)) -> Result<Block> {
        let (width_bytes, height, depth) = block;
        Ok(Block {
            target: target.side(block, "dst")?,
            source: source.side(block, "src")?,
            width_bytes,
            height,
            depth,
        })
    }

    fn kind(&self) -> Result<hipMemcpyKind> {
        if self.source.is_unified || self.target.is_unified {
            // Each side's range was checked where it was read.
            return unified(self.target.base, self.source.base, 0);
        }
        Ok(match (self.source.is_device, self.target.is_device) {
            (false, false) => hipMemcpyHostToHost,
            (false, true) => hipMemcpyHostToDevice,
            (true, false) => hipMemcpyDeviceToHost,
            (true, true) => hipMemcpyDeviceToDevice,
        })
    }

    /// Queues the copy, slice by slice; a slice without gaps is one row.
    fn enqueue(&self, stream: &Stream) -> Result {
        if self.target.array.is_some() || self.source.array.is_some() {
            return self.enqueue_with_array(stream);
        }
        let Block { ref target, ref source, width_bytes, height, depth } = *self;
        let kind = self.kind()?;
        let hip = stream.hip();
        for slice in 0..depth as u64 {
            let to = raw(target.base + slice * (target.pitch * target.height) as u64);
            let from = raw(source.base + slice * (source.pitch * source.height) as u64);
            let is_dense = height == 1 || (target.pitch == width_bytes && source.pitch == width_bytes);
            if is_dense {
                // SAFETY: device ranges were checked; CUDA's contract for the host's.
                unsafe { hip.hipMemcpyAsync(to, from, width_bytes * height, kind, stream.hip.0) }?;
            } else {
                // SAFETY: device ranges were checked; CUDA's contract for the host's.
                unsafe {
                    hip.hipMemcpy2DAsync(
                        to,
                        target.pitch,
                        from,
                        source.pitch,
                        width_bytes,
                        height,
                        kind,
                        stream.hip.0,
                    )
                }?;
            }
        }
        Ok(())
    }

    /// Queues a copy from or to an array, which the provider alone knows how to do.
    fn enqueue_with_array(&self, stream: &Stream) -> Result {
        let (source, target) = (self.source.placed(), self.target.placed());
        let copy = HIP_MEMCPY3D {
            srcXInBytes: source.x_bytes,
            srcY: source.y,
            srcZ: source.z,
            srcLOD: 0,
            srcMemoryType: source.kind,
            srcHost: source.host,
            srcDevice: source.device,
            srcArray: source.array,
            srcPitch: source.pitch,
            srcHeight: source.height,
            dstXInBytes: target.x_bytes,
            dstY: target.y,
            dstZ: target.z,
            dstLOD: 0,
            dstMemoryType: target.kind,
            dstHost: target.host,
            dstDevice: target.device,
            dstArray: target.array,
            dstPitch: target.pitch,
            dstHeight: target.height,
            WidthInBytes: self.width_bytes,
            Height: self.height,
            Depth: self.depth,
        };
        let layout = stream.context.device.provider.layout;
        // SAFETY: arrays are alive and the parts lie in them; linear ranges were checked, or are CUDA's contract.
        Ok(unsafe { layout.memcpy_3d(stream.hip(), &copy, Some(stream.hip.0)) }?)
    }

    /// The copy on the default stream, ended on return.
    fn run(&self) -> Result {
        let stream = Stream::default_of(Context::current()?, null_is_per_thread());
        if !null_is_per_thread() {
            forbid_legacy(stream.context)?;
        }
        self.enqueue(&stream)?;
        stream.synchronize()
    }
}

/// The copy on a stream, or in the graph the stream describes.
pub(crate) fn enqueue(copy: &CUDA_MEMCPY3D, stream: CUstream) -> Result {
    let Some(block) = block_3d(copy)? else { return Stream::from_handle(stream).map(|_| ()) };
    if captured(stream, || node_op(copy, Context::current()?.handle()))? {
        return Ok(());
    }
    block.enqueue(&Stream::from_handle(stream)?)
}

/// The copy of a graph's memcpy node. Where it goes is looked up at each launch, as memory may come and go.
pub(crate) fn node_op(copy: &CUDA_MEMCPY3D, context: CUcontext) -> Result<Arc<Op>> {
    // CUDA: a node copies something.
    if block_3d(copy)?.is_none() {
        return Err(Error::InvalidValue("copyParams"));
    }
    Ok(Op::new(Params::Memcpy { copy: *copy, context }, |params, stream| match params {
        Params::Memcpy { copy, .. } => enqueue(copy, stream),
        _ => Ok(()),
    }))
}

/// A copy of one slice.
fn slice(copy: Option<&CUDA_MEMCPY2D>) -> Result<CUDA_MEMCPY3D> {
    Context::current()?;
    let copy = copy.ok_or(Error::InvalidValue("pCopy"))?;
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        srcPitch: copy.srcPitch,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        dstPitch: copy.dstPitch,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: 1,
        ..Default::default()
    })
}

pub fn cuMemcpy2D_v2(pCopy: Option<&CUDA_MEMCPY2D>) -> Result {
    block_3d(&slice(pCopy)?)?.map_or(Ok(()), |block| block.run())
}

/// As `cuMemcpy2D`: any pitch is as good as another here.
pub fn cuMemcpy2DUnaligned_v2(pCopy: Option<&CUDA_MEMCPY2D>) -> Result {
    cuMemcpy2D_v2(pCopy)
}

pub fn cuMemcpy2DAsync_v2(pCopy: Option<&CUDA_MEMCPY2D>, hStream: CUstream) -> Result {
    enqueue(&slice(pCopy)?, hStream)
}

fn block_3d(copy: &CUDA_MEMCPY3D) -> Result<Option<Block>> {
    Context::current()?;
    if copy.WidthInBytes == 0 || copy.Height == 0 || copy.Depth == 0 {
        return Ok(None);
    }
    if copy.srcLOD != 0 || copy.dstLOD != 0 {
        return Err(Error::InvalidValue("srcLOD or dstLOD"));
    }
    let source = Place {
        kind: copy.srcMemoryType,
        host: copy.srcHost,
        device: copy.srcDevice,
        array: copy.srcArray,
        x_bytes: copy.srcXInBytes,
        y: copy.srcY,
        z: copy.srcZ,
        pitch: copy.srcPitch,
        height: copy.srcHeight,
    };
    let target = Place {
        kind: copy.dstMemoryType,
        host: copy.dstHost,
        device: copy.dstDevice,
        array: copy.dstArray,
        x_bytes: copy.dstXInBytes,
        y: copy.dstY,
        z: copy.dstZ,
        pitch: copy.dstPitch,
        height: copy.dstHeight,
    };
    Block::read(&target, &source, (copy.WidthInBytes, copy.Height, copy.Depth)).map(Some)
}

pub fn cuMemcpy3D_v2(pCopy: &CUDA_MEMCPY3D) -> Result {
    block_3d(pCopy)?.map_or(Ok(()), |block| block.run())
}

pub fn cuMemcpy3DAsync_v2(pCopy: &CUDA_MEMCPY3D, hStream: CUstream) -> Result {
    enqueue(pCopy, hStream)
}

/// A 3-D copy that names the contexts of both sides; unified addresses need no such help.
fn plain(copy: &CUDA_MEMCPY3D_PEER) -> Result<CUDA_MEMCPY3D> {
    if apart(copy.dstContext, copy.srcContext)?.is_some() {
        return Err(Error::NotSupported("copies of boxes between devices of two HIP libraries"));
    }
    Ok(CUDA_MEMCPY3D {
        srcXInBytes: copy.srcXInBytes,
        srcY: copy.srcY,
        srcZ: copy.srcZ,
        srcLOD: copy.srcLOD,
        srcMemoryType: copy.srcMemoryType,
        srcHost: copy.srcHost,
        srcDevice: copy.srcDevice,
        srcArray: copy.srcArray,
        reserved0: core::ptr::null_mut(),
        srcPitch: copy.srcPitch,
        srcHeight: copy.srcHeight,
        dstXInBytes: copy.dstXInBytes,
        dstY: copy.dstY,
        dstZ: copy.dstZ,
        dstLOD: copy.dstLOD,
        dstMemoryType: copy.dstMemoryType,
        dstHost: copy.dstHost,
        dstDevice: copy.dstDevice,
        dstArray: copy.dstArray,
        reserved1: core::ptr::null_mut(),
        dstPitch: copy.dstPitch,
        dstHeight: copy.dstHeight,
        WidthInBytes: copy.WidthInBytes,
        Height: copy.Height,
        Depth: copy.Depth,
    })
}

pub fn cuMemcpy3DPeer(pCopy: &CUDA_MEMCPY3D_PEER) -> Result {
    cuMemcpy3D_v2(&plain(pCopy)?)
}

pub fn cuMemcpy3DPeerAsync(pCopy: &CUDA_MEMCPY3D_PEER, hStream: CUstream) -> Result {
    cuMemcpy3DAsync_v2(&plain(pCopy)?, hStream)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_that_does_not_fit_its_pitch_is_refused() {
        let bytes = [0u8; 64];
        let place = Place {
            kind: CUmemorytype::CU_MEMORYTYPE_HOST,
            host: bytes.as_ptr().cast(),
            device: 0,
            array: core::ptr::null_mut(),
            x_bytes: 4,
            y: 1,
            z: 0,
            pitch: 16,
            height: 0,
        };
        let side = place.side((12, 2, 1), "src").unwrap();
        assert_eq!(side.base, memory::device_pointer(bytes.as_ptr().cast_mut()) + 16 + 4);
        assert!(place.side((13, 2, 1), "src").is_err());
        assert!(place.side((13, 1, 1), "src").is_ok(), "with one row the pitch is not looked at");
    }
}
