//! The heap of `malloc` in kernels: one for each context that has launched a kernel with it. What kernels do with it is
//! `compiler::gcn::heap`.
//!
//! Rule: no lock is held while HIP is asked.

use core::ffi::c_void;

use compiler::gcn::heap::{MOST_BYTES, header};
use hip_sys as hip;
use parking_lot::Mutex;

use super::super::{Context, memory};
use crate::Result;

/// CUDA gives at least so much, whatever the limit says.
const LEAST_BYTES: u64 = 1 << 16;

struct Heap {
    context_id: u64,
    at: u64,
    bytes: u64,
}

static HEAPS: Mutex<Vec<Heap>> = Mutex::new(Vec::new());

/// Address of the context's heap, if it has one.
pub fn known(context: &Context) -> Option<u64> {
    HEAPS.lock().iter().find(|heap| heap.context_id == context.id()).map(|heap| heap.at)
}

/// Whether so many bytes lie in the context's heap.
pub fn holds(context: &Context, at: u64, bytes: u64) -> bool {
    let is_in =
        |heap: &Heap| at >= heap.at && at - heap.at <= heap.bytes && bytes <= heap.bytes - (at - heap.at);
    HEAPS.lock().iter().any(|heap| heap.context_id == context.id() && is_in(heap))
}

/// Address of the context's heap; the first that asks decides how large it is.
pub fn of(context: &'static Context, bytes: impl FnOnce() -> Result<usize>) -> Result<u64> {
    if let Some(at) = known(context) {
        return Ok(at);
    }
    let bytes = (bytes()? as u64).clamp(LEAST_BYTES, MOST_BYTES);
    let start = header(bytes);
    let mut at: *mut c_void = core::ptr::null_mut();
    // SAFETY: `at` is writable.
    unsafe { context.hip().hipMalloc(&mut at, bytes as usize) }?;
    // SAFETY: the heap was just allocated and is longer.
    let written = unsafe {
        context.hip().hipMemcpy(at, start.as_ptr().cast(), start.len(), hip::hipMemcpyHostToDevice)
    };
    let at = memory::device_pointer(at);
    let mut heaps = HEAPS.lock();
    let other = heaps.iter().find(|heap| heap.context_id == context.id()).map(|heap| heap.at);
    if written.is_ok() && other.is_none() {
        heaps.push(Heap { context_id: context.id(), at, bytes });
        return Ok(at);
    }
    drop(heaps);
    // Another thread was faster, or nothing could be written.
    super::free(context, at)?;
    written?;
    Ok(other.unwrap_or(0))
}

/// A context ends, and its device is idle.
pub fn forget_context(context: &Context) {
    let mut heaps = HEAPS.lock();
    let own = heaps.iter().position(|heap| heap.context_id == context.id());
    let gone = own.map(|index| heaps.swap_remove(index));
    drop(heaps);
    if let Some(Heap { at, .. }) = gone {
        // There is nobody to tell of an error.
        let _ = super::free(context, at);
    }
}
