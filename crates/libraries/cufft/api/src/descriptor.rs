//! `cudaLibXtDesc`: memory that a plan's data lies in, on the one device that a plan has here.
//!
//! Programs read the structure, so its address is the handle; it is looked up, and the addresses in it are believed only
//! where they are compared.

use core::ffi::{c_int, c_void};
use core::ptr;
use std::collections::BTreeMap;

use cuda_abi::{CUcontext, CUdevice};
use kit::driver::{self, check, driver};
use parking_lot::Mutex;

use crate::plan::Plan;
use crate::types::*;
use crate::{Error, Result};

/// CUDA_XT_DESCRIPTOR_VERSION of cudalibxt.h.
const VERSION: c_int = 0x0100_0000;

/// What lies at a descriptor's address.
struct Memory {
    inner: Box<cudaXtDesc>,
    outer: Box<cudaLibXtDesc>,
    context: CUcontext,
    at: u64,
    bytes: usize,
}

// SAFETY: addresses and numbers; whoever follows them has the program's promise.
unsafe impl Send for Memory {}

static DESCRIPTORS: Mutex<BTreeMap<usize, Memory>> = Mutex::new(BTreeMap::new());

/// Memory and its size, of a live descriptor.
fn lookup(descriptor: *const cudaLibXtDesc) -> Result<(u64, usize)> {
    let known = DESCRIPTORS.lock();
    let memory = known.get(&descriptor.addr()).ok_or(Error::Value("no descriptor of cufftXtMalloc's"))?;
    Ok((memory.at, memory.bytes))
}

/// Allocates what a plan needs of this format.
pub fn allocate(plan: &Plan, format: cufftXtSubFormat) -> Result<*mut cudaLibXtDesc> {
    let [apart, in_place] = plan.bytes()?;
    let bytes = match format {
        cufftXtSubFormat::CUFFT_XT_FORMAT_INPUT => apart[0],
        cufftXtSubFormat::CUFFT_XT_FORMAT_OUTPUT => apart[1],
        // One device shuffles nothing.
        cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE
        | cufftXtSubFormat::CUFFT_XT_FORMAT_INPLACE_SHUFFLED
        | cufftXtSubFormat::CUFFT_XT_FORMAT_1D_INPUT_SHUFFLED => in_place[0].max(in_place[1]),
        _ => return Err(Error::Value("format")),
    };
    plan.enter()?;
    let context = driver::context(None)?;
    let mut device = CUdevice::default();
    // SAFETY: `device` outlives the call.
    check("cuCtxGetDevice", unsafe { (driver()?.cuCtxGetDevice)(&mut device) })?;
    let mut at = 0;
    // SAFETY: `at` outlives the call.
    let code = unsafe { (driver()?.cuMemAlloc_v2)(&mut at, bytes) };
    check("cuMemAlloc", code).map_err(|_| Error::Allocation(bytes))?;
    let mut inner = Box::new(cudaXtDesc {
        version: VERSION,
        nGPUs: 1,
        GPUs: [0; 64],
        data: [ptr::null_mut(); 64],
        size: [0; 64],
        cudaXtState: ptr::null_mut(),
    });
    inner.GPUs[0] = device;
    inner.data[0] = ptr::with_exposed_provenance_mut(at as usize);
    inner.size[0] = bytes;
    let mut outer = Box::new(cudaLibXtDesc {
        version: VERSION,
        descriptor: &raw mut *inner,
        library: libFormat::LIB_FORMAT_CUFFT,
        subFormat: format.0 as c_int,
        libDescriptor: ptr::null_mut(),
    });
    let handle = &raw mut *outer;
    DESCRIPTORS.lock().insert(handle.addr(), Memory { inner, outer, context, at, bytes });
    Ok(handle)
}

pub fn free(descriptor: *const cudaLibXtDesc) -> Result {
    let memory = DESCRIPTORS.lock().remove(&descriptor.addr());
    let memory = memory.ok_or(Error::Value("no descriptor of cufftXtMalloc's"))?;
    let Memory { inner, outer, context, at, .. } = memory;
    driver::context(Some(context))?;
    // SAFETY: allocated above, and freed once; the driver looks at the rest itself.
    check("cuMemFree", unsafe { (driver()?.cuMemFree_v2)(at) })?;
    drop((inner, outer));
    Ok(())
}

/// Copies all of a descriptor's memory, in the plan's stream, and waits where the host is on one side.
pub fn copy(plan: &Plan, to: *mut c_void, from: *const c_void, kind: cufftXtCopyType) -> Result {
    if to.is_null() || from.is_null() {
        return Err(Error::Value("dstPointer or srcPointer"));
    }
    plan.enter()?;
    let (driver, stream) = (driver()?, plan.stream());
    let code = match kind {
        cufftXtCopyType::CUFFT_COPY_HOST_TO_DEVICE => {
            let (to, bytes) = lookup(to.cast())?;
            // SAFETY: cuFFT's contract: the host's memory is as large as the descriptor's.
            unsafe { (driver.cuMemcpyHtoDAsync_v2)(to, from, bytes, stream) }
        }
        cufftXtCopyType::CUFFT_COPY_DEVICE_TO_HOST => {
            let (from, bytes) = lookup(from.cast())?;
            // SAFETY: as above.
            unsafe { (driver.cuMemcpyDtoHAsync_v2)(to, from, bytes, stream) }
        }
        cufftXtCopyType::CUFFT_COPY_DEVICE_TO_DEVICE => {
            let ((to, room), (from, bytes)) = (lookup(to.cast())?, lookup(from.cast())?);
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

/// The address of a descriptor's memory.
pub fn data(descriptor: *const cudaLibXtDesc) -> Result<*mut c_void> {
    Ok(ptr::with_exposed_provenance_mut(lookup(descriptor)?.0 as usize))
}
