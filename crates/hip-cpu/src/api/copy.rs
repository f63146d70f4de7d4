//! Copies and sets: of a range, of rows, of boxes; at once or in a stream.

use std::ffi::{c_int, c_uchar, c_uint, c_ushort, c_void};
use std::sync::Arc;

use hip_sys::*;

use crate::array;
use crate::device::healthy;
use crate::error::Result;
use crate::exec::printf;
use crate::memory::{self, Allocation, Kind};
use crate::stream::{self, Op, Place, Shape, Stream};

/// Pageable memory up to this size is copied aside at enqueue; larger copies wait. Copies of no more are short.
const STAGED_BYTES: usize = 64 << 10;

/// Whether a copy waits until it is done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    Now,
    InStream,
}

/// What lies at the two ends.
struct Ends {
    to: Option<Allocation>,
    from: Option<Allocation>,
}

impl Ends {
    /// Checks both ranges against the allocations and the direction the program names.
    fn check(
        to: usize,
        to_bytes: usize,
        from: usize,
        from_bytes: usize,
        kind: hipMemcpyKind,
    ) -> Result<Ends> {
        if to == 0 || from == 0 {
            return Err(hipErrorInvalidValue);
        }
        let (to, from) = (memory::target(to, to_bytes)?, memory::range(from, from_bytes)?);
        let needs = |end: &Option<Allocation>| if end.is_some() { Ok(()) } else { Err(hipErrorInvalidValue) };
        match kind {
            hipMemcpyHostToHost | hipMemcpyDefault => {}
            hipMemcpyHostToDevice => needs(&to)?,
            hipMemcpyDeviceToHost => needs(&from)?,
            hipMemcpyDeviceToDevice => {
                needs(&to)?;
                needs(&from)?;
            }
            _ => return Err(hipErrorInvalidMemcpyDirection),
        }
        Ok(Ends { to, from })
    }

    /// Both ends stay where they are until the program is told otherwise.
    fn are_pinned(&self) -> bool {
        self.to.is_some() && self.from.is_some()
    }
}

fn submit(stream: &Arc<Stream>, op: Op, when: When) -> Result {
    if when == When::InStream {
        let is_short = match &op {
            Op::Staged { .. } => true,
            Op::Copy { bytes, .. } => *bytes <= STAGED_BYTES,
            // `set` has checked that the product is no more than the memory.
            Op::Set { shape, .. } => shape.width * shape.height * shape.depth <= STAGED_BYTES,
            _ => false,
        };
        if is_short {
            stream.enqueue_short(op);
        } else {
            stream.enqueue(op);
        }
        return Ok(());
    }
    stream.run(op);
    printf::flush();
    healthy()
}

fn copy(
    to: usize,
    from: usize,
    bytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
    when: When,
) -> Result {
    healthy()?;
    let stream = stream::of_handle(stream)?;
    if bytes == 0 {
        return Ok(());
    }
    let ends = Ends::check(to, bytes, from, bytes, kind)?;
    let op = Op::Copy { to, from, bytes };
    if when == When::Now || ends.are_pinned() {
        return submit(&stream, op, when);
    }
    // CUDA: from pageable memory the call returns when the source may change; to pageable memory when it is done.
    if ends.to.is_some() && bytes <= STAGED_BYTES {
        // SAFETY: HIP's contract: the source is readable for `bytes`.
        let staged = unsafe { std::slice::from_raw_parts(from as *const u8, bytes) }.into();
        return submit(&stream, Op::Staged { to, bytes: staged }, when);
    }
    submit(&stream, op, When::Now)
}

pub fn hipMemcpy(dst: *mut c_void, src: *const c_void, sizeBytes: usize, kind: hipMemcpyKind) -> Result {
    copy(dst as usize, src as usize, sizeBytes, kind, hipStreamLegacy, When::Now)
}

pub fn hipMemcpyWithStream(
    dst: *mut c_void,
    src: *const c_void,
    sizeBytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result {
    copy(dst as usize, src as usize, sizeBytes, kind, stream, When::Now)
}

pub fn hipMemcpyAsync(
    dst: *mut c_void,
    src: *const c_void,
    sizeBytes: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result {
    copy(dst as usize, src as usize, sizeBytes, kind, stream, When::InStream)
}

pub fn hipMemcpyHtoD(dst: hipDeviceptr_t, src: *mut c_void, sizeBytes: usize) -> Result {
    hipMemcpy(dst, src, sizeBytes, hipMemcpyHostToDevice)
}

pub fn hipMemcpyDtoH(dst: *mut c_void, src: hipDeviceptr_t, sizeBytes: usize) -> Result {
    hipMemcpy(dst, src, sizeBytes, hipMemcpyDeviceToHost)
}

pub fn hipMemcpyDtoD(dst: hipDeviceptr_t, src: hipDeviceptr_t, sizeBytes: usize) -> Result {
    hipMemcpy(dst, src, sizeBytes, hipMemcpyDeviceToDevice)
}

pub fn hipMemcpyHtoDAsync(
    dst: hipDeviceptr_t,
    src: *mut c_void,
    sizeBytes: usize,
    stream: hipStream_t,
) -> Result {
    hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyHostToDevice, stream)
}

pub fn hipMemcpyDtoHAsync(
    dst: *mut c_void,
    src: hipDeviceptr_t,
    sizeBytes: usize,
    stream: hipStream_t,
) -> Result {
    hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDeviceToHost, stream)
}

pub fn hipMemcpyDtoDAsync(
    dst: hipDeviceptr_t,
    src: hipDeviceptr_t,
    sizeBytes: usize,
    stream: hipStream_t,
) -> Result {
    hipMemcpyAsync(dst, src, sizeBytes, hipMemcpyDeviceToDevice, stream)
}

/// One device, so a copy between peers is one on it.
pub fn hipMemcpyPeer(
    dst: *mut c_void,
    dstDevice: c_int,
    src: *const c_void,
    srcDevice: c_int,
    size: usize,
) -> Result {
    crate::device::check(dstDevice)?;
    crate::device::check(srcDevice)?;
    hipMemcpy(dst, src, size, hipMemcpyDeviceToDevice)
}

pub fn hipMemcpyPeerAsync(
    dst: *mut c_void,
    dstDevice: c_int,
    src: *const c_void,
    srcDevice: c_int,
    size: usize,
    stream: hipStream_t,
) -> Result {
    crate::device::check(dstDevice)?;
    crate::device::check(srcDevice)?;
    hipMemcpyAsync(dst, src, size, hipMemcpyDeviceToDevice, stream)
}

// ---- rows and boxes ----

/// Bytes from the first to the last byte of a box.
fn extent(place: &Place, shape: &Shape) -> Result<usize> {
    let last = |n: usize, step: usize| (n - 1).checked_mul(step);
    let rows = if shape.height > 1 { last(shape.height, place.pitch) } else { Some(0) };
    let slices = if shape.depth > 1 { last(shape.depth, place.slice) } else { Some(0) };
    rows.zip(slices)
        .and_then(|(rows, slices)| rows.checked_add(slices)?.checked_add(shape.width))
        .ok_or(hipErrorInvalidValue)
}

pub(super) fn copy_box(
    to: Place,
    from: Place,
    shape: Shape,
    kind: hipMemcpyKind,
    stream: hipStream_t,
    when: When,
) -> Result {
    healthy()?;
    let stream = stream::of_handle(stream)?;
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    for place in [&to, &from] {
        if shape.height > 1 && place.pitch < shape.width {
            return Err(hipErrorInvalidPitchValue);
        }
        if shape.depth > 1 && place.slice < place.pitch.saturating_mul(shape.height - 1) + shape.width {
            return Err(hipErrorInvalidValue);
        }
    }
    let ends = Ends::check(to.at, extent(&to, &shape)?, from.at, extent(&from, &shape)?, kind)?;
    let when = if ends.are_pinned() { when } else { When::Now };
    submit(&stream, Op::CopyBox { to, from, shape }, when)
}

pub fn hipMemcpy2D(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
) -> Result {
    copy_2d(dst, dpitch, src, spitch, width, height, kind, hipStreamLegacy, When::Now)
}

pub fn hipMemcpy2DAsync(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
) -> Result {
    copy_2d(dst, dpitch, src, spitch, width, height, kind, stream, When::InStream)
}

fn copy_2d(
    dst: *mut c_void,
    dpitch: usize,
    src: *const c_void,
    spitch: usize,
    width: usize,
    height: usize,
    kind: hipMemcpyKind,
    stream: hipStream_t,
    when: When,
) -> Result {
    let to = Place { at: dst as usize, pitch: dpitch, slice: 0 };
    let from = Place { at: src as usize, pitch: spitch, slice: 0 };
    if dpitch < width || spitch < width {
        return Err(hipErrorInvalidPitchValue);
    }
    copy_box(to, from, Shape { width, height, depth: 1 }, kind, stream, when)
}

/// One end of a descriptor's copy.
struct End {
    kind: hipMemoryType,
    host: usize,
    device: usize,
    array: hipArray_t,
    /// In bytes, rows and slices.
    from: [usize; 3],
    pitch: usize,
    /// Rows between two slices; 0 for none besides the box's own.
    height: usize,
}

impl End {
    fn place(&self, shape: Shape) -> Result<Place> {
        let base = match self.kind {
            hipMemoryTypeHost => self.host,
            hipMemoryTypeDevice | hipMemoryTypeManaged | hipMemoryTypeUnified => self.device,
            hipMemoryTypeArray => {
                return array::of_handle(self.array)?
                    .corner(self.from, [shape.width, shape.height, shape.depth]);
            }
            _ => return Err(hipErrorInvalidValue),
        };
        // 0 means rows or slices without gaps.
        let dense = |given: usize, own: usize| if given == 0 { own } else { given };
        let pitch = dense(self.pitch, shape.width);
        let slice = pitch.checked_mul(dense(self.height, shape.height)).ok_or(hipErrorInvalidValue)?;
        if pitch < shape.width {
            return Err(hipErrorInvalidPitchValue);
        }
        let [x, y, z] = self.from;
        Ok(Place { at: corner(base, x, y, z, pitch, slice)?, pitch, slice })
    }
}

fn direction(to: hipMemoryType, from: hipMemoryType) -> hipMemcpyKind {
    let is_device = |kind| matches!(kind, hipMemoryTypeDevice | hipMemoryTypeArray);
    match (is_device(to), is_device(from)) {
        (true, true) => hipMemcpyDeviceToDevice,
        (true, false) if from == hipMemoryTypeHost => hipMemcpyHostToDevice,
        (false, true) if to == hipMemoryTypeHost => hipMemcpyDeviceToHost,
        // Unified: as the addresses say.
        _ => hipMemcpyDefault,
    }
}

/// `base + x + y * pitch + z * slice`
fn corner(base: usize, x: usize, y: usize, z: usize, pitch: usize, slice: usize) -> Result<usize> {
    let at = || base.checked_add(x)?.checked_add(y.checked_mul(pitch)?)?.checked_add(z.checked_mul(slice)?);
    if base == 0 { Err(hipErrorInvalidValue) } else { at().ok_or(hipErrorInvalidValue) }
}

fn copy_ends(to: &End, from: &End, shape: Shape, stream: hipStream_t, when: When) -> Result {
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return healthy();
    }
    copy_box(to.place(shape)?, from.place(shape)?, shape, direction(to.kind, from.kind), stream, when)
}

fn copy_param_2d(c: &hip_Memcpy2D, stream: hipStream_t, when: When) -> Result {
    let from = End {
        kind: c.srcMemoryType,
        host: c.srcHost as usize,
        device: c.srcDevice as usize,
        array: c.srcArray,
        from: [c.srcXInBytes, c.srcY, 0],
        pitch: c.srcPitch,
        height: 0,
    };
    let to = End {
        kind: c.dstMemoryType,
        host: c.dstHost as usize,
        device: c.dstDevice as usize,
        array: c.dstArray,
        from: [c.dstXInBytes, c.dstY, 0],
        pitch: c.dstPitch,
        height: 0,
    };
    copy_ends(&to, &from, Shape { width: c.WidthInBytes, height: c.Height, depth: 1 }, stream, when)
}

pub fn hipMemcpyParam2D(pCopy: &hip_Memcpy2D) -> Result {
    copy_param_2d(pCopy, hipStreamLegacy, When::Now)
}

pub fn hipMemcpyParam2DAsync(pCopy: &hip_Memcpy2D, stream: hipStream_t) -> Result {
    copy_param_2d(pCopy, stream, When::InStream)
}

pub fn hipDrvMemcpy2DUnaligned(pCopy: &hip_Memcpy2D) -> Result {
    copy_param_2d(pCopy, hipStreamLegacy, When::Now)
}

fn copy_3d(c: &HIP_MEMCPY3D, stream: hipStream_t, when: When) -> Result {
    let from = End {
        kind: c.srcMemoryType,
        host: c.srcHost as usize,
        device: c.srcDevice as usize,
        array: c.srcArray,
        from: [c.srcXInBytes, c.srcY, c.srcZ],
        pitch: c.srcPitch,
        height: c.srcHeight,
    };
    let to = End {
        kind: c.dstMemoryType,
        host: c.dstHost as usize,
        device: c.dstDevice as usize,
        array: c.dstArray,
        from: [c.dstXInBytes, c.dstY, c.dstZ],
        pitch: c.dstPitch,
        height: c.dstHeight,
    };
    copy_ends(&to, &from, Shape { width: c.WidthInBytes, height: c.Height, depth: c.Depth }, stream, when)
}

pub fn hipDrvMemcpy3D(pCopy: &HIP_MEMCPY3D) -> Result {
    copy_3d(pCopy, hipStreamLegacy, When::Now)
}

pub fn hipDrvMemcpy3DAsync(pCopy: &HIP_MEMCPY3D, stream: hipStream_t) -> Result {
    copy_3d(pCopy, stream, When::InStream)
}

// ---- sets ----

fn set(to: Place, shape: Shape, value: u32, unit: usize, stream: hipStream_t, when: When) -> Result {
    healthy()?;
    let stream = stream::of_handle(stream)?;
    if shape.width == 0 || shape.height == 0 || shape.depth == 0 {
        return Ok(());
    }
    let rows_fit = shape.height <= 1 || to.pitch.is_multiple_of(unit) && to.pitch >= shape.width;
    if to.at == 0 || !to.at.is_multiple_of(unit) || !rows_fit {
        return Err(hipErrorInvalidValue);
    }
    let found = memory::device_target(to.at, extent(&to, &shape)?)?;
    // CUDA: asynchronous unless the memory is the host's.
    let when = if matches!(found.kind, Kind::Device | Kind::Mapped) && when == When::Now {
        When::InStream
    } else {
        when
    };
    submit(&stream, Op::Set { to, shape, value, unit }, when)
}

fn set_row(
    dst: *mut c_void,
    value: u32,
    unit: usize,
    count: usize,
    stream: hipStream_t,
    when: When,
) -> Result {
    let width = count.checked_mul(unit).ok_or(hipErrorInvalidValue)?;
    let to = Place { at: dst as usize, pitch: width, slice: 0 };
    set(to, Shape { width, height: 1, depth: 1 }, value, unit, stream, when)
}

pub fn hipMemset(dst: *mut c_void, value: c_int, sizeBytes: usize) -> Result {
    set_row(dst, value.cast_unsigned(), 1, sizeBytes, hipStreamLegacy, When::Now)
}

pub fn hipMemsetAsync(dst: *mut c_void, value: c_int, sizeBytes: usize, stream: hipStream_t) -> Result {
    set_row(dst, value.cast_unsigned(), 1, sizeBytes, stream, When::InStream)
}

pub fn hipMemsetD8(dest: hipDeviceptr_t, value: c_uchar, count: usize) -> Result {
    set_row(dest, value.into(), 1, count, hipStreamLegacy, When::Now)
}

pub fn hipMemsetD8Async(dest: hipDeviceptr_t, value: c_uchar, count: usize, stream: hipStream_t) -> Result {
    set_row(dest, value.into(), 1, count, stream, When::InStream)
}

pub fn hipMemsetD16(dest: hipDeviceptr_t, value: c_ushort, count: usize) -> Result {
    set_row(dest, value.into(), 2, count, hipStreamLegacy, When::Now)
}

pub fn hipMemsetD16Async(dest: hipDeviceptr_t, value: c_ushort, count: usize, stream: hipStream_t) -> Result {
    set_row(dest, value.into(), 2, count, stream, When::InStream)
}

pub fn hipMemsetD32(dest: hipDeviceptr_t, value: c_int, count: usize) -> Result {
    set_row(dest, value.cast_unsigned(), 4, count, hipStreamLegacy, When::Now)
}

pub fn hipMemsetD32Async(dst: hipDeviceptr_t, value: c_int, count: usize, stream: hipStream_t) -> Result {
    set_row(dst, value.cast_unsigned(), 4, count, stream, When::InStream)
}

fn set_2d(
    dst: *mut c_void,
    pitch: usize,
    value: u32,
    unit: usize,
    count: usize,
    height: usize,
    stream: hipStream_t,
    when: When,
) -> Result {
    let width = count.checked_mul(unit).ok_or(hipErrorInvalidValue)?;
    let to = Place { at: dst as usize, pitch, slice: 0 };
    set(to, Shape { width, height, depth: 1 }, value, unit, stream, when)
}

pub fn hipMemset2D(dst: *mut c_void, pitch: usize, value: c_int, width: usize, height: usize) -> Result {
    set_2d(dst, pitch, value.cast_unsigned(), 1, width, height, hipStreamLegacy, When::Now)
}

pub fn hipMemset2DAsync(
    dst: *mut c_void,
    pitch: usize,
    value: c_int,
    width: usize,
    height: usize,
    stream: hipStream_t,
) -> Result {
    set_2d(dst, pitch, value.cast_unsigned(), 1, width, height, stream, When::InStream)
}

macro_rules! sets_2d {
    ($($now:ident $later:ident $ty:ty: $unit:literal;)*) => {$(
        pub fn $now(dst: hipDeviceptr_t, dstPitch: usize, value: $ty, width: usize, height: usize) -> Result {
            set_2d(dst, dstPitch, value.into(), $unit, width, height, hipStreamLegacy, When::Now)
        }

        pub fn $later(
            dst: hipDeviceptr_t,
            dstPitch: usize,
            value: $ty,
            width: usize,
            height: usize,
            stream: hipStream_t,
        ) -> Result {
            set_2d(dst, dstPitch, value.into(), $unit, width, height, stream, When::InStream)
        }
    )*};
}

sets_2d! {
    hipMemsetD2D8 hipMemsetD2D8Async c_uchar: 1;
    hipMemsetD2D16 hipMemsetD2D16Async c_ushort: 2;
    hipMemsetD2D32 hipMemsetD2D32Async c_uint: 4;
}

fn set_3d(
    pitched: hipPitchedPtr,
    value: c_int,
    extent: hipExtent,
    stream: hipStream_t,
    when: When,
) -> Result {
    let slice = pitched.pitch.checked_mul(pitched.ysize).ok_or(hipErrorInvalidValue)?;
    let to = Place { at: pitched.ptr as usize, pitch: pitched.pitch, slice };
    let shape = Shape { width: extent.width, height: extent.height, depth: extent.depth };
    set(to, shape, value.cast_unsigned(), 1, stream, when)
}

pub fn hipMemset3D(pitchedDevPtr: hipPitchedPtr, value: c_int, extent: hipExtent) -> Result {
    set_3d(pitchedDevPtr, value, extent, hipStreamLegacy, When::Now)
}

pub fn hipMemset3DAsync(
    pitchedDevPtr: hipPitchedPtr,
    value: c_int,
    extent: hipExtent,
    stream: hipStream_t,
) -> Result {
    set_3d(pitchedDevPtr, value, extent, stream, When::InStream)
}
