//! Work of the CPU in stream order: a host function of the driver's, so that events, other streams and captured graphs
//! see it as they see every other operation.

use core::ffi::c_void;

use cuda_abi::{CUstream, CUstreamCaptureStatus};

use crate::driver::{Number, check, driver};
use crate::{Address, Addresses, Error, Result};

type Work = Box<dyn Fn() + Send + Sync>;

/// The driver owns the work from here on, and lets go of it when it runs no more: behind the one run, or with the last
/// graph that the stream was captured into.
pub fn enqueue<A: Addresses + 'static>(
    stream: CUstream,
    at: A,
    work: impl Fn(A) + Send + Sync + 'static,
) -> Result {
    let at = Address(at);
    hand_over(stream, Box::new(move || work(at.get())))
}

/// Not part of [`enqueue`], of which each routine has its own.
fn hand_over(stream: CUstream, work: Work) -> Result {
    let launch = driver()?.cudaway_launch_host_function;
    let launch =
        launch.ok_or(Error::NotSupported("work of the CPU in stream order: not CUDAway's libcuda.so.1"))?;
    // Twice boxed: what the driver hands back is one thin pointer.
    let data = Box::into_raw(Box::new(work)).cast::<c_void>();
    // SAFETY: both functions take what `data` is; it may be used on any thread.
    check("cudaway_launch_host_function", unsafe { launch(stream, Some(run), data, Some(free)) })
}

pub fn synchronize(stream: CUstream) -> Result {
    // SAFETY: the driver looks at the stream itself.
    check("cuStreamSynchronize", unsafe { (driver()?.cuStreamSynchronize)(Number(stream)) })
}

/// Whether what is enqueued goes into a graph: waiting would end the capture.
pub fn is_capturing(stream: CUstream) -> Result<bool> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: the driver looks at the stream itself; `status` outlives the call.
    check("cuStreamIsCapturing", unsafe { (driver()?.cuStreamIsCapturing)(Number(stream), &mut status) })?;
    Ok(status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
}

unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: `enqueue` made it, and the driver has not let go of it yet.
    let work = unsafe { &*data.cast::<Work>() };
    // The thread is the device's: a panic is said and ends here.
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        tracing::error!(target: "cudaway::library", "a library's routine on the CPU panicked");
    }
}

unsafe extern "C" fn free(data: *mut c_void) {
    // SAFETY: made by `Box::into_raw` of this type; the driver lets go of it once.
    drop(unsafe { Box::from_raw(data.cast::<Work>()) });
}
