//! The HIP stream behind a CUDA stream, as libraries of ROCm are given it.

mod null;

use std::sync::atomic::Ordering;

use cuda_abi::*;
use driver::Error;
use driver::api::cudaway::hip_stream;
use driver::api::{capture, context, stream};

fn created<T>(make: impl FnOnce(border::Out<'_, *mut T>) -> driver::Result) -> *mut T {
    let mut handle: *mut T = core::ptr::null_mut();
    make((&mut handle).into()).unwrap();
    handle
}

fn behind(stream: CUstream, enqueues: bool) -> driver::Result<CudawayHipStream> {
    let mut answer = CudawayHipStream { stream: core::ptr::null_mut(), device: -1, is_cpu: -1 };
    hip_stream(stream, enqueues, (&mut answer).into()).map(|()| answer)
}

/// One test: the devices that threads are bound to are counted process-wide.
#[test]
fn a_stream_is_its_own_hip_stream_on_its_own_device_and_a_capture_of_it_ends() {
    null::start();
    let first = created(|made| context::cuCtxCreate_v2(made, 0, 0));
    let on_first = created(|made| stream::cuStreamCreate(made, 1));
    let other = created(|made| stream::cuStreamCreate(made, 1));
    let second = created(|made| context::cuCtxCreate_v2(made, 0, 1));
    assert_ne!(first, second);

    // The context of the second device is current; the stream's own device is bound and named.
    let found = behind(on_first, true).unwrap();
    assert_eq!((found.device, null::DEVICE.load(Ordering::Relaxed)), (0, 0));
    assert!(!found.stream.is_null() && found.stream != behind(other, true).unwrap().stream);
    // The null provider is not our CPU device, whatever it calls its devices.
    assert_eq!(found.is_cpu, 0);
    // NULL is the default stream of the current context, which HIP calls NULL too.
    let found = behind(core::ptr::null_mut(), true).unwrap();
    assert_eq!((found.device, null::DEVICE.load(Ordering::Relaxed)), (1, 1));
    assert!(found.stream.is_null());
    assert_eq!(
        behind(core::ptr::without_provenance_mut(0x1234), true).err(),
        Some(Error::InvalidHandle("hStream"))
    );

    context::cuCtxSetCurrent(first).unwrap();
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    capture::cuStreamBeginCapture_v2(on_first, mode).unwrap();
    // Asking is harmless, enqueuing is not; another stream has nothing to do with it.
    behind(on_first, false).unwrap();
    behind(other, true).unwrap();
    assert_eq!(behind(on_first, true).err(), Some(Error::StreamCaptureUnsupported));
    let mut graph: CUgraph = core::ptr::null_mut();
    assert_eq!(
        capture::cuStreamEndCapture(on_first, (&mut graph).into()),
        Err(Error::StreamCaptureInvalidated)
    );
}
