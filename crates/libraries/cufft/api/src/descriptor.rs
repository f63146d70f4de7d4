//! `cudaLibXtDesc`: memory that a plan's data lies in, on one device or in parts on several.
//!
//! Programs read the structure, and some make their own (CuPy does): one that is not of `cufftXtMalloc` is read as it stands. With
//! several devices, which all are the CPU, a call gathers the parts, transforms and hands them out again, and returns when it is
//! done.

use core::ffi::{c_int, c_void};
use core::ops::Range;
use core::ptr;
use std::collections::BTreeMap;

use cuda_abi::{CUcontext, CUdevice};
use cufft_cpu::{Kind, Precision};
use kit::driver::{self, check, driver, primary_context};
use parking_lot::Mutex;

use crate::plan::{Plan, Shape};
use crate::types::*;
use crate::{Error, Result};

/// CUDA_XT_DESCRIPTOR_VERSION of cudalibxt.h.
const VERSION: c_int = 0x0100_0000;

/// One device's part.
#[derive(Clone, Copy)]
struct Part {
    device: c_int,
    context: CUcontext,
    at: u64,
    bytes: usize,
}

/// What lies at a descriptor's address.
struct Memory {
    inner: Box<cudaXtDesc>,
    outer: Box<cudaLibXtDesc>,
    parts: Vec<Part>,
    /// Divided by the second axis, not the first.
    shuffled: bool,
}

// SAFETY: addresses and numbers; whoever follows them has the program's promise.
unsafe impl Send for Memory {}

static DESCRIPTORS: Mutex<BTreeMap<usize, Memory>> = Mutex::new(BTreeMap::new());

const NONE: Error = Error::Value("no descriptor of cufftXtMalloc's");

/// A descriptor's parts, and whether they are shuffled.
///
/// # Safety
/// It is one of `cufftXtMalloc`'s, or a structure of the program's that is whole.
unsafe fn parts(descriptor: *const cudaLibXtDesc) -> Result<(Vec<Part>, bool)> {
    if descriptor.is_null() || !descriptor.is_aligned() {
        return Err(NONE);
    }
    if let Some(memory) = DESCRIPTORS.lock().get(&descriptor.addr()) {
        return Ok((memory.parts.clone(), memory.shuffled));
    }
    // SAFETY: the caller's promise.
    let outer = unsafe { &*descriptor };
    if outer.library != libFormat::LIB_FORMAT_CUFFT || outer.descriptor.is_null() {
        return Err(NONE);
    }
    // SAFETY: as above.
    let inner = unsafe { &*outer.descriptor };
    let count = usize::try_from(inner.nGPUs).ok().filter(|count| (1..=inner.GPUs.len()).contains(count));
    let count = count.ok_or(Error::Value("nGPUs of a descriptor"))?;
    let part = |i: usize| {
        let (device, at) = (inner.GPUs[i], inner.data[i].expose_provenance() as u64);
        Ok(Part { device, context: primary_context(device)?.0, at, bytes: inner.size[i] })
    };
    let parts = (0..count).map(part).collect::<Result<Vec<_>>>()?;
    Ok((parts, is_shuffled(cufftXtSubFormat(outer.subFormat as u32))))
}

fn is_shuffled(format: cufftXtSubFormat) -> bool {
    matches!(
        format,
        cufftXtSubFormat::CUFFT_XT_FORMAT_OUTPUT | cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE_SHUFFLED
    )
}

/// The memory of a descriptor on one device, and its size.
///
/// # Safety
/// As [`parts`].
unsafe fn lookup(descriptor: *const cudaLibXtDesc) -> Result<(u64, usize)> {
    // SAFETY: the caller's promise.
    match unsafe { parts(descriptor) }?.0[..] {
        [part] => Ok((part.at, part.bytes)),
        _ => Err(Error::Value("a descriptor of several devices, and a plan of one")),
    }
}

/// Calls `work` in a context, and goes back to the one before.
pub fn within<T>(context: CUcontext, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let before = driver::context(Some(context))?;
    let driver = driver()?;
    // SAFETY: a live context.
    check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(context) })?;
    let result = work();
    // SAFETY: as above.
    check("cuCtxSetCurrent", unsafe { (driver.cuCtxSetCurrent)(before) })?;
    result
}

/// Allocates what a plan needs of this format.
pub fn allocate(plan: &Plan, format: cufftXtSubFormat) -> Result<*mut cudaLibXtDesc> {
    let [apart, in_place] = plan.bytes()?;
    let (shape, devices) = (plan.shape()?, plan.devices());
    let is_apart =
        matches!(format, cufftXtSubFormat::CUFFT_XT_FORMAT_INPUT | cufftXtSubFormat::CUFFT_XT_FORMAT_OUTPUT);
    if is_apart && shape.is_real && !devices.is_empty() {
        return Err(Error::NotSupported("real transforms out of place on several devices"));
    }
    let bytes = match format {
        cufftXtSubFormat::CUFFT_XT_FORMAT_INPUT => apart[0],
        cufftXtSubFormat::CUFFT_XT_FORMAT_OUTPUT => apart[1],
        cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE
        | cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE_SHUFFLED
        | cufftXtSubFormat::CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED => in_place[0].max(in_place[1]),
        _ => return Err(Error::Value("format")),
    };
    plan.enter()?;
    let mut parts = Vec::new();
    if devices.is_empty() {
        let mut device = CUdevice::default();
        // SAFETY: `device` outlives the call.
        check("cuCtxGetDevice", unsafe { (driver()?.cuCtxGetDevice)(&mut device) })?;
        parts.push((device, driver::context(None)?, bytes));
    } else {
        for (at, &device) in devices.iter().enumerate() {
            let bytes = shape.largest(at, devices.len());
            parts.push((device, primary_context(device)?.0, bytes));
        }
    }
    let mut memory = Memory {
        inner: Box::new(cudaXtDesc {
            version: VERSION,
            nGPUs: parts.len() as c_int,
            GPUs: [0; 64],
            data: [ptr::null_mut(); 64],
            size: [0; 64],
            cudaXtState: ptr::null_mut(),
        }),
        outer: Box::new(cudaLibXtDesc {
            version: VERSION,
            descriptor: ptr::null_mut(),
            library: libFormat::LIB_FORMAT_CUFFT,
            subFormat: format.0 as c_int,
            libDescriptor: ptr::null_mut(),
        }),
        parts: Vec::new(),
        shuffled: is_shuffled(format),
    };
    for (device, context, bytes) in parts {
        match allocate_part(context, bytes) {
            Ok(at) => memory.parts.push(Part { device, context, at, bytes }),
            Err(error) => {
                release(&memory.parts)?;
                return Err(error);
            }
        }
    }
    for (i, part) in memory.parts.iter().enumerate() {
        memory.inner.GPUs[i] = part.device;
        memory.inner.data[i] = ptr::with_exposed_provenance_mut(part.at as usize);
        memory.inner.size[i] = part.bytes;
    }
    memory.outer.descriptor = &raw mut *memory.inner;
    let handle = &raw mut *memory.outer;
    DESCRIPTORS.lock().insert(handle.addr(), memory);
    Ok(handle)
}

fn allocate_part(context: CUcontext, bytes: usize) -> Result<u64> {
    within(context, || {
        let mut at = 0;
        // SAFETY: `at` outlives the call. Nobody asks for nothing.
        let code = unsafe { (driver()?.cuMemAlloc_v2)(&mut at, bytes.max(1)) };
        check("cuMemAlloc", code).map_err(|_| Error::Allocation(bytes))?;
        Ok(at)
    })
}

fn release(parts: &[Part]) -> Result {
    parts.iter().try_for_each(|part| {
        within(part.context, || {
            // SAFETY: allocated above, and freed once; the driver looks at the rest itself.
            Ok(check("cuMemFree", unsafe { (driver()?.cuMemFree_v2)(part.at) })?)
        })
    })
}

pub fn free(descriptor: *const cudaLibXtDesc) -> Result {
    let memory = DESCRIPTORS.lock().remove(&descriptor.addr());
    let mut memory = memory.ok_or(NONE)?;
    // Whoever uses it once more has a chance to hear of it.
    memory.outer.library = libFormat::LIB_FORMAT_UNDEFINED;
    memory.outer.descriptor = ptr::null_mut();
    release(&memory.parts)
}

/// Copies all of a descriptor's memory. On one device that is in the plan's stream, and waits where the host is on one side.
///
/// # Safety
/// The host's memory is as large as the plan's array, and a descriptor is one ([`parts`]).
pub unsafe fn copy(plan: &Plan, to: *mut c_void, from: *const c_void, kind: cufftXtCopyType) -> Result {
    if to.is_null() || from.is_null() {
        return Err(Error::Value("dstPointer or srcPointer"));
    }
    plan.enter()?;
    if !plan.devices().is_empty() {
        // SAFETY: the caller's promise.
        return unsafe { copy_parts(plan.shape()?, to, from, kind) };
    }
    let (driver, stream) = (driver()?, plan.stream());
    let code = match kind {
        cufftXtCopyType::CUFFT_COPY_HOST_TO_DEVICE => {
            // SAFETY: the caller's promise.
            let (to, bytes) = unsafe { lookup(to.cast()) }?;
            // SAFETY: as above.
            unsafe { (driver.cuMemcpyHtoDAsync_v2)(to, from, bytes, stream) }
        }
        cufftXtCopyType::CUFFT_COPY_DEVICE_TO_HOST => {
            // SAFETY: as above.
            let (from, bytes) = unsafe { lookup(from.cast()) }?;
            // SAFETY: as above.
            unsafe { (driver.cuMemcpyDtoHAsync_v2)(to, from, bytes, stream) }
        }
        cufftXtCopyType::CUFFT_COPY_DEVICE_TO_DEVICE => {
            // SAFETY: as above.
            let ((to, room), (from, bytes)) = unsafe { (lookup(to.cast())?, lookup(from.cast())?) };
            // SAFETY: both are live, and as large.
            unsafe { (driver.cuMemcpyDtoDAsync_v2)(to, from, bytes.min(room), stream) }
        }
        _ => return Err(Error::Value("type")),
    };
    check("cuMemcpyAsync", code)?;
    if kind != cufftXtCopyType::CUFFT_COPY_DEVICE_TO_DEVICE {
        kit::stream::synchronize(stream)?;
    }
    Ok(())
}

/// A copy leaves parts in natural order, whatever the order was.
///
/// # Safety
/// The host's side has the whole array.
unsafe fn copy_parts(shape: Shape, to: *mut c_void, from: *const c_void, kind: cufftXtCopyType) -> Result {
    // SAFETY: the caller's promise, and arrays of the size that is asked for.
    unsafe {
        match kind {
            cufftXtCopyType::CUFFT_COPY_HOST_TO_DEVICE => scatter(shape, to.cast(), from.cast(), false),
            cufftXtCopyType::CUFFT_COPY_DEVICE_TO_HOST => gather(shape, from.cast(), to.cast()).map(drop),
            cufftXtCopyType::CUFFT_COPY_DEVICE_TO_DEVICE => {
                let mut whole = array(shape)?;
                gather(shape, from.cast(), whole.as_mut_ptr().cast())?;
                scatter(shape, to.cast(), whole.as_ptr().cast(), false)
            }
            _ => Err(Error::Value("type")),
        }
    }
}

/// Transforms what a descriptor has into another's memory, or its own.
///
/// # Safety
/// The descriptors are such ([`parts`]).
pub unsafe fn execute(
    plan: &Plan,
    of: Option<(Kind, Precision)>,
    input: *const cudaLibXtDesc,
    output: *mut cudaLibXtDesc,
    direction: c_int,
) -> Result {
    let shape = plan.shape()?;
    if plan.devices().is_empty() {
        let at = |descriptor| -> Result<*mut c_void> {
            // SAFETY: the caller's promise.
            Ok(ptr::with_exposed_provenance_mut(unsafe { lookup(descriptor) }?.0 as usize))
        };
        let (input, output) = (at(input)?, at(output)?);
        // SAFETY: a descriptor's memory is as large as its plan's data.
        return unsafe { plan.execute(of, input, output, direction) };
    }
    plan.enter()?;
    let mut whole = array(shape)?;
    // SAFETY: the array is as large as the plan's.
    unsafe {
        let shuffled = gather(shape, input, whole.as_mut_ptr().cast())?;
        plan.execute_now(of, whole.as_mut_ptr().cast(), direction)?;
        scatter(shape, output, whole.as_ptr().cast(), !shuffled)
    }
}

/// Memory for all parts, aligned as numbers are.
fn array(shape: Shape) -> Result<Vec<u128>> {
    let (bytes, mut array) = (shape.total(), Vec::new());
    let count = bytes.div_ceil(size_of::<u128>());
    array.try_reserve_exact(count).map_err(|_| Error::Allocation(bytes))?;
    array.resize(count, 0);
    Ok(array)
}

impl Shape {
    fn total(&self) -> usize {
        self.batch * self.rows * self.columns * self.bytes
    }

    /// The bytes of a part in the array, as runs: how many, where the first begins, how far apart they are, how long.
    fn runs(&self, part: usize, parts: usize, shuffled: bool) -> [usize; 4] {
        let row = self.columns * self.bytes;
        if self.batch > 1 {
            let range = share(self.batch, part, parts);
            return [1, range.start * self.rows * row, 0, range.len() * self.rows * row];
        }
        if shuffled && self.columns > 1 {
            let range = share(self.columns, part, parts);
            return [self.rows, range.start * self.bytes, row, range.len() * self.bytes];
        }
        let range = share(self.rows, part, parts);
        [1, range.start * row, 0, range.len() * row]
    }

    /// Bytes of a part in either order.
    fn largest(&self, part: usize, parts: usize) -> usize {
        let bytes = |shuffled| {
            let [count, _, _, long] = self.runs(part, parts, shuffled);
            count * long
        };
        bytes(false).max(bytes(true))
    }
}

/// As even as can be, the first ones larger.
fn share(count: usize, part: usize, parts: usize) -> Range<usize> {
    let start = |part: usize| part * (count / parts) + part.min(count % parts);
    start(part)..start(part + 1)
}

/// Copies the parts into an array in natural order, and says what order they had.
///
/// # Safety
/// The array is as large as the plan's, and the descriptor is one ([`parts`]).
unsafe fn gather(shape: Shape, descriptor: *const cudaLibXtDesc, to: *mut u8) -> Result<bool> {
    // SAFETY: the caller's promise.
    let (parts, shuffled) = unsafe { parts(descriptor) }?;
    settle(shape, &parts, shuffled)?;
    for (i, part) in parts.iter().enumerate() {
        let [count, first, apart, long] = shape.runs(i, parts.len(), shuffled);
        let from: *const u8 = ptr::with_exposed_provenance(part.at as usize);
        for run in 0..count {
            // SAFETY: the caller's promise; the part is as large as its runs, and the host's memory.
            unsafe { to.add(first + run * apart).copy_from_nonoverlapping(from.add(run * long), long) };
        }
    }
    Ok(shuffled)
}

/// Copies an array in natural order into the parts, which have the order that is said then.
///
/// # Safety
/// As [`gather`].
unsafe fn scatter(shape: Shape, descriptor: *mut cudaLibXtDesc, from: *const u8, shuffled: bool) -> Result {
    // SAFETY: the caller's promise.
    let (parts, _) = unsafe { parts(descriptor) }?;
    settle(shape, &parts, shuffled)?;
    for (i, part) in parts.iter().enumerate() {
        let [count, first, apart, long] = shape.runs(i, parts.len(), shuffled);
        let to: *mut u8 = ptr::with_exposed_provenance_mut(part.at as usize);
        for run in 0..count {
            // SAFETY: as `gather`.
            unsafe { to.add(run * long).copy_from_nonoverlapping(from.add(first + run * apart), long) };
        }
    }
    let format = if shuffled {
        cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE_SHUFFLED
    } else {
        cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE
    };
    if let Some(memory) = DESCRIPTORS.lock().get_mut(&descriptor.addr()) {
        memory.shuffled = shuffled;
    }
    // SAFETY: the caller's promise.
    unsafe { (*descriptor).subFormat = format.0 as c_int };
    Ok(())
}

/// The parts hold the array in such order, and all that their devices were asked for is done.
fn settle(shape: Shape, parts: &[Part], shuffled: bool) -> Result {
    let holds = |(i, part): (usize, &Part)| {
        let [count, _, _, long] = shape.runs(i, parts.len(), shuffled);
        part.at != 0 && part.bytes >= count * long
    };
    if !parts.iter().enumerate().all(holds) {
        return Err(Error::Value("a descriptor with less memory than the plan takes"));
    }
    parts.iter().try_for_each(|part| {
        // SAFETY: a live context.
        Ok(check("cuCtxSynchronize", unsafe { (driver()?.cuCtxSynchronize_v2)(part.context) })?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_all_of_an_array_and_each_byte_once() {
        let shapes = [(1, 7, 5, 16), (1, 4, 1, 8), (3, 2, 2, 8), (1, 9, 8, 24), (1, 1, 3, 8)];
        for (batch, rows, columns, bytes) in shapes {
            let shape = Shape { batch, rows, columns, bytes, is_real: false };
            for (parts, shuffled) in [(2, false), (2, true), (3, true), (4, false)] {
                let mut seen = vec![0; shape.total()];
                for part in 0..parts {
                    let [count, first, apart, long] = shape.runs(part, parts, shuffled);
                    for run in 0..count {
                        seen[first + run * apart..][..long].iter_mut().for_each(|count| *count += 1);
                    }
                    assert!(count * long <= shape.largest(part, parts));
                }
                assert!(seen.iter().all(|&count| count == 1), "{shape:?} {parts} {shuffled}");
            }
        }
        assert_eq!([0, 1, 2].map(|part| share(8, part, 3)), [0..3, 3..6, 6..8]);
    }
}
