//! Work of libraries of ours that streams and graphs own: it is let go of once, whatever becomes of them.

mod null;

use core::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use cuda_abi::*;
use driver::Error;
use driver::api::cudaway::launch_host_function;
use driver::api::{capture, context, graph, graph_exec, stream};

/// How often work ran, and how often it was let go of.
#[derive(Default)]
struct Counts {
    runs: AtomicUsize,
    ends: AtomicUsize,
}

impl Counts {
    fn now(&self) -> (usize, usize) {
        (self.runs.load(Ordering::SeqCst), self.ends.load(Ordering::SeqCst))
    }
}

struct Work {
    counts: Arc<Counts>,
    has_ended: AtomicBool,
}

unsafe extern "C" fn run(data: *mut c_void) {
    // SAFETY: `enqueue` made it. What was let go of is kept, so that a wrong run is seen.
    let work = unsafe { &*data.cast::<Work>() };
    assert!(!work.has_ended.load(Ordering::SeqCst), "it ran after its end");
    work.counts.runs.fetch_add(1, Ordering::SeqCst);
}

unsafe extern "C" fn end(data: *mut c_void) {
    // SAFETY: as above.
    let work = unsafe { &*data.cast::<Work>() };
    assert!(!work.has_ended.swap(true, Ordering::SeqCst), "it ended twice");
    work.counts.ends.fetch_add(1, Ordering::SeqCst);
}

fn enqueue(stream: CUstream, counts: &Arc<Counts>) -> driver::Result {
    let work = Box::leak(Box::new(Work { counts: Arc::clone(counts), has_ended: AtomicBool::new(false) }));
    // SAFETY: both functions take it, on any thread.
    unsafe { launch_host_function(stream, Some(run), core::ptr::from_mut(work).cast(), Some(end)) }
}

fn created<T>(make: impl FnOnce(border::Out<'_, *mut T>) -> driver::Result) -> *mut T {
    let mut handle: *mut T = core::ptr::null_mut();
    make((&mut handle).into()).unwrap();
    handle
}

const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;

fn end_capture(stream: CUstream) -> CUgraph {
    let mut graph: CUgraph = core::ptr::null_mut();
    capture::cuStreamEndCapture(stream, (&mut graph).into()).unwrap();
    graph
}

#[test]
fn a_streams_work_ends_with_its_run_and_a_graphs_with_its_last_graph() {
    null::start();
    created(|made| context::cuCtxCreate_v2(made, 0, 0));
    let stream = created(|made| stream::cuStreamCreate(made, 1));
    let counts = Arc::new(Counts::default());
    enqueue(stream, &counts).unwrap();
    assert_eq!(counts.now(), (1, 1));

    capture::cuStreamBeginCapture_v2(stream, RELAXED).unwrap();
    enqueue(stream, &counts).unwrap();
    let captured = end_capture(stream);
    let exec = created(|made| graph_exec::cuGraphInstantiateWithFlags(made, captured, 0));
    let copy = created(|made| graph::cuGraphClone(made, captured));
    graph::cuGraphDestroy(captured).unwrap();
    for runs in 2..5 {
        graph_exec::cuGraphLaunch(exec, stream).unwrap();
        assert_eq!(counts.now(), (runs, 1));
    }
    graph_exec::cuGraphExecDestroy(exec).unwrap();
    assert_eq!(counts.now(), (4, 1));
    graph::cuGraphDestroy(copy).unwrap();
    assert_eq!(counts.now(), (4, 2));

    // What could not be enqueued has ended too.
    let nobody = core::ptr::without_provenance_mut(0x1234);
    assert_eq!(enqueue(nobody, &counts), Err(Error::InvalidHandle("hStream")));
    assert_eq!(counts.now(), (4, 3));
    capture::cuStreamBeginCapture_v2(stream, RELAXED).unwrap();
    enqueue(stream, &counts).unwrap();
    stream::cuStreamDestroy_v2(stream).unwrap();
    assert_eq!(counts.now(), (4, 4), "with a capture that nobody can end");
}

/// cuBLAS asked whether the stream was being captured, and enqueued: a capture that began in between had work that every
/// launch let go of.
#[test]
fn a_capture_may_begin_at_any_time() {
    null::start();
    let context = created(|made| context::cuCtxCreate_v2(made, 0, 0)) as usize;
    let stream = created(|made| stream::cuStreamCreate(made, 1)) as usize;
    let counts = Arc::new(Counts::default());
    const N: usize = 20_000;
    std::thread::scope(|scope| {
        let enqueues = scope.spawn(|| {
            context::cuCtxSetCurrent(context as CUcontext).unwrap();
            (0..N).for_each(|_| enqueue(stream as CUstream, &counts).unwrap());
        });
        let stream = stream as CUstream;
        while !enqueues.is_finished() {
            capture::cuStreamBeginCapture_v2(stream, RELAXED).unwrap();
            std::thread::yield_now();
            let captured = end_capture(stream);
            let exec = created(|made| graph_exec::cuGraphInstantiateWithFlags(made, captured, 0));
            graph_exec::cuGraphLaunch(exec, stream).unwrap();
            graph_exec::cuGraphLaunch(exec, stream).unwrap();
            graph_exec::cuGraphExecDestroy(exec).unwrap();
            graph::cuGraphDestroy(captured).unwrap();
        }
        enqueues.join().unwrap();
    });
    assert_eq!(counts.now().1, N);
}
