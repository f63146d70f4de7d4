//! Work of the CPU in stream order: a host function of the driver's, so that events, other streams and captured graphs
//! see it as they see every other operation.

use core::ffi::c_void;

use cuda_abi::{
    CUgraph, CUresult, CUstream, CUstreamCaptureStatus, CUuserObject, CUuserObject_flags,
    CUuserObjectRetain_flags,
};

use crate::driver::{Driver, check, driver};
use crate::{Error, Result};

/// A factor: its value, or where in device memory it will be when the routine runs.
#[derive(Clone, Copy, Debug)]
pub enum Scalar<T, D = T> {
    Host(T),
    Device(*const D),
}

impl<T: Copy, D> Scalar<T, D> {
    /// The value, at the time when the routine runs.
    pub fn get(&self) -> T {
        match *self {
            Scalar::Host(value) => value,
            // SAFETY: cuBLAS's contract: device memory, which on the CPU device is the host's, good until the routine has run.
            Scalar::Device(at) => unsafe { at.cast::<T>().read_unaligned() },
        }
    }

    pub fn map_host<U>(self, change: impl FnOnce(T) -> U) -> Scalar<U, D> {
        match self {
            Scalar::Host(value) => Scalar::Host(change(value)),
            Scalar::Device(at) => Scalar::Device(at),
        }
    }
}

type Work = Box<dyn Fn()>;

pub fn enqueue(stream: CUstream, work: impl Fn() + 'static) -> Result {
    let driver = driver()?;
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    // SAFETY: `status` outlives the call.
    check("cuStreamIsCapturing", unsafe { (driver.cuStreamIsCapturing)(stream, &mut status) })?;
    // Twice boxed: what the driver hands back is one thin pointer.
    let data = Box::into_raw(Box::new(Box::new(work) as Work)).cast::<c_void>();
    let is_captured = status == CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE;
    if is_captured {
        keep_with_graph(driver, stream, data)?;
    }
    let run = if is_captured { run_again } else { run_once };
    // SAFETY: `data` is what the function takes, and lives until it ran, or as long as the graph.
    let code = unsafe { (driver.cuLaunchHostFunc)(stream, Some(run), data) };
    if code != CUresult::CUDA_SUCCESS && !is_captured {
        drop_work(data);
    }
    check("cuLaunchHostFunc", code)
}

/// The graph that is being captured owns the work from here on.
fn keep_with_graph(driver: &Driver, stream: CUstream, data: *mut c_void) -> Result {
    let (mut status, mut graph) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, CUgraph::default());
    let mut object = CUuserObject::default();
    use core::ptr::null_mut;
    let no_sync = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
    let hands_over = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
    // SAFETY: every place outlives the calls; `free` takes what `data` is.
    unsafe {
        let code = (driver.cuUserObjectCreate)(&mut object, data, Some(free), 1, no_sync);
        if code != CUresult::CUDA_SUCCESS {
            drop_work(data);
            return check("cuUserObjectCreate", code);
        }
        let code = (driver.cuStreamGetCaptureInfo_v2)(
            stream,
            &mut status,
            null_mut(),
            &mut graph,
            null_mut(),
            null_mut(),
        );
        check("cuStreamGetCaptureInfo", code)?;
        check("cuGraphRetainUserObject", (driver.cuGraphRetainUserObject)(graph, object, 1, hands_over))
    }
}

pub fn synchronize(stream: CUstream) -> Result {
    // SAFETY: the driver looks at the stream itself.
    check("cuStreamSynchronize", unsafe { (driver()?.cuStreamSynchronize)(stream) })
}

fn drop_work(data: *mut c_void) {
    // SAFETY: made by `Box::into_raw` of this type, and not dropped yet.
    drop(unsafe { Box::from_raw(data.cast::<Work>()) });
}

fn run(work: &Work) {
    // The thread is the device's: a panic is said and ends here.
    if std::panic::catch_unwind(std::panic::AssertUnwindSafe(work)).is_err() {
        tracing::error!(target: "cudaway::blas", "{}", Error::Internal("a routine on the CPU"));
    }
}

unsafe extern "C" fn run_once(data: *mut c_void) {
    // SAFETY: `enqueue` made it; a host function runs once.
    run(&*unsafe { Box::from_raw(data.cast::<Work>()) });
}

unsafe extern "C" fn run_again(data: *mut c_void) {
    // SAFETY: the graph keeps it.
    run(unsafe { &*data.cast::<Work>() });
}

unsafe extern "C" fn free(data: *mut c_void) {
    drop_work(data);
}
