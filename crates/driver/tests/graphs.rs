//! Graphs, built by hand and by capture, over the test's own provider.

mod null;

use core::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use cuda_abi::out::Out;
use cuda_abi::*;
use driver::Error;
use driver::api::{
    capture, context, copy, event, execution, graph, graph_exec, graph_node, memory, memset, module, stream,
    user_object,
};

struct Scene {
    _one: MutexGuard<'static, ()>,
    context: CUcontext,
    stream: CUstream,
    other: CUstream,
    function: CUfunction,
    memory: CUdeviceptr,
}

fn made<T>(make: impl FnOnce(Out<'_, *mut T>) -> driver::Result) -> *mut T {
    let mut value: *mut T = core::ptr::null_mut();
    make((&mut value).into()).unwrap();
    value
}

/// A context with two streams, a kernel and 64 bytes.
fn scene() -> Scene {
    static ONE: Mutex<()> = Mutex::new(());
    let one = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    null::start();
    let context = made(|c| context::cuCtxCreate_v2(c, 0, 0));
    let loaded = made(|m| module::cuModuleLoadData(m, null::PTX.as_ptr().cast()));
    let mut memory = 0;
    memory::cuMemAlloc_v2((&mut memory).into(), 64).unwrap();
    Scene {
        _one: one,
        context,
        stream: made(|s| stream::cuStreamCreate(s, 1)),
        other: made(|s| stream::cuStreamCreate(s, 1)),
        function: made(|f| module::cuModuleGetFunction(f, loaded, c"good".as_ptr())),
        memory,
    }
}

impl Scene {
    fn bytes(&self) -> [u8; 8] {
        let mut host = [0u8; 8];
        copy::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), self.memory, 8).unwrap();
        host
    }

    fn begin(&self) {
        let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
        capture::cuStreamBeginCapture_v2(self.stream, global).unwrap();
    }

    fn launch_kernel(&self, stream: CUstream) -> driver::Result {
        let mut argument = 0u64;
        let mut parameters = [(&raw mut argument).cast::<c_void>()];
        let none = core::ptr::null_mut();
        execution::cuLaunchKernel(self.function, 1, 1, 1, 32, 1, 1, 0, stream, parameters.as_mut_ptr(), none)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            context::cuCtxDestroy_v2(self.context).unwrap();
        }
    }
}

fn instantiate(graph: CUgraph) -> CUgraphExec {
    made(|e| graph_exec::cuGraphInstantiateWithFlags(e, graph, 0))
}

#[test]
fn a_captured_stream_does_nothing_until_its_graph_is_launched() {
    let scene = scene();
    memset::cuMemsetD8_v2(scene.memory, 0, 64).unwrap();
    let launches = null::LAUNCHES.load(Ordering::Relaxed);
    scene.begin();
    memset::cuMemsetD8Async(scene.memory, 7, 4, scene.stream).unwrap();
    copy::cuMemcpyDtoDAsync_v2(scene.memory + 4, scene.memory, 4, scene.stream).unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    let mut status = CUstreamCaptureStatus(9);
    capture::cuStreamIsCapturing(scene.stream, (&mut status).into()).unwrap();
    assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    let captured = made(|g| capture::cuStreamEndCapture(scene.stream, g));
    assert_eq!((scene.bytes(), null::LAUNCHES.load(Ordering::Relaxed)), ([0; 8], launches));

    let exec = instantiate(captured);
    graph::cuGraphDestroy(captured).unwrap();
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    assert_eq!((scene.bytes(), null::LAUNCHES.load(Ordering::Relaxed)), ([7; 8], launches + 1));
    graph_exec::cuGraphLaunch(exec, scene.other).unwrap();
    assert_eq!(null::LAUNCHES.load(Ordering::Relaxed), launches + 2);
    graph_exec::cuGraphExecDestroy(exec).unwrap();
    assert!(matches!(graph_exec::cuGraphLaunch(exec, scene.stream), Err(Error::InvalidValue(_))));
}

#[test]
fn an_event_takes_a_second_stream_into_the_capture_and_back() {
    let scene = scene();
    let (fork, join) = (made(|e| event::cuEventCreate(e, 2)), made(|e| event::cuEventCreate(e, 2)));
    scene.begin();
    scene.launch_kernel(scene.stream).unwrap();
    event::cuEventRecord(fork, scene.stream).unwrap();
    stream::cuStreamWaitEvent(scene.other, fork, 0).unwrap();
    scene.launch_kernel(scene.other).unwrap();
    event::cuEventRecord(join, scene.other).unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    stream::cuStreamWaitEvent(scene.stream, join, 0).unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    let captured = made(|g| capture::cuStreamEndCapture(scene.stream, g));
    let mut n_edges = 0;
    let none = core::ptr::null_mut();
    graph::cuGraphGetEdges(captured, none, none, &mut n_edges).unwrap();
    assert_eq!(n_edges, 4, "first to both of the middle, both to last");
    let mut n_roots = 0;
    graph::cuGraphGetRootNodes(captured, none, &mut n_roots).unwrap();
    assert_eq!(n_roots, 1);

    // Not joined again: CUDA refuses the capture.
    scene.begin();
    event::cuEventRecord(fork, scene.stream).unwrap();
    stream::cuStreamWaitEvent(scene.other, fork, 0).unwrap();
    scene.launch_kernel(scene.other).unwrap();
    let mut nothing: CUgraph = scene.context.cast();
    let answer = capture::cuStreamEndCapture(scene.stream, (&mut nothing).into());
    assert_eq!((answer, nothing), (Err(Error::StreamCaptureUnjoined), core::ptr::null_mut()));
}

#[test]
fn calls_a_capture_cannot_hold_end_it() {
    let scene = scene();
    scene.begin();
    assert_eq!(stream::cuStreamSynchronize(scene.stream), Err(Error::StreamCaptureUnsupported));
    assert_eq!(scene.launch_kernel(scene.stream), Err(Error::StreamCaptureInvalidated));
    let mut nothing: CUgraph = core::ptr::null_mut();
    let answer = capture::cuStreamEndCapture(scene.stream, (&mut nothing).into());
    assert_eq!(answer, Err(Error::StreamCaptureInvalidated));
    stream::cuStreamSynchronize(scene.stream).unwrap();
    assert_eq!(capture::cuStreamEndCapture(scene.stream, (&mut nothing).into()), Err(Error::IllegalState));
    assert_eq!(capture::cuStreamBeginCapture(core::ptr::null_mut()), Err(Error::StreamCaptureImplicit));
}

#[test]
fn nodes_run_behind_what_they_depend_on_whatever_order_they_were_added_in() {
    let scene = scene();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let fill = |value, width| CUDA_MEMSET_NODE_PARAMS {
        dst: scene.memory,
        pitch: 0,
        value,
        elementSize: 1,
        width,
        height: 1,
    };
    let none = core::ptr::null();
    // The second fill runs first.
    let last = made(|n| graph_node::cuGraphAddMemsetNode(n, by_hand, none, 0, &fill(2, 4), scene.context));
    let first = made(|n| graph_node::cuGraphAddMemsetNode(n, by_hand, none, 0, &fill(1, 8), scene.context));
    graph::cuGraphAddDependencies(by_hand, &first, &last, 1).unwrap();
    assert!(graph::cuGraphAddDependencies(by_hand, &first, &last, 1).is_err(), "the edge is there already");
    let exec = instantiate(by_hand);
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    assert_eq!(scene.bytes(), [2, 2, 2, 2, 1, 1, 1, 1]);
    graph_exec::cuGraphExecMemsetNodeSetParams(exec, last, &fill(5, 2), scene.context).unwrap();
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    assert_eq!(scene.bytes(), [5, 5, 1, 1, 1, 1, 1, 1]);

    let mut nodes = [core::ptr::null_mut(); 4];
    let mut n_nodes = 4;
    graph::cuGraphGetNodes(by_hand, nodes.as_mut_ptr(), &mut n_nodes).unwrap();
    assert_eq!((n_nodes, nodes), (2, [last, first, core::ptr::null_mut(), core::ptr::null_mut()]));
    graph::cuGraphAddDependencies(by_hand, &last, &first, 1).unwrap();
    let mut circle: CUgraphExec = core::ptr::null_mut();
    let answer = graph_exec::cuGraphInstantiateWithFlags((&mut circle).into(), by_hand, 0);
    assert_eq!(answer, Err(Error::InvalidValue("hGraph: a circle")));
}

#[test]
fn a_kernel_node_keeps_its_arguments() {
    let scene = scene();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let node = {
        let mut argument = Box::new(7u64);
        let mut parameters = [(&raw mut *argument).cast::<c_void>()];
        let params = CUDA_KERNEL_NODE_PARAMS {
            func: scene.function,
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 32,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: parameters.as_mut_ptr(),
            ..Default::default()
        };
        let too_large = CUDA_KERNEL_NODE_PARAMS { blockDimX: 4096, ..params };
        let mut refused: CUgraphNode = core::ptr::null_mut();
        let none = core::ptr::null();
        let answer = graph_node::cuGraphAddKernelNode_v2((&mut refused).into(), by_hand, none, 0, &too_large);
        assert!(matches!(answer, Err(Error::InvalidValue(_))));
        made(|n| graph_node::cuGraphAddKernelNode_v2(n, by_hand, none, 0, &params))
    };
    let mut kind = CUgraphNodeType(99);
    graph::cuGraphNodeGetType(node, (&mut kind).into()).unwrap();
    assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL);
    let exec = instantiate(by_hand);
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    assert_eq!(null::LAST_ARGUMENT.load(Ordering::Relaxed), 7);
}

#[test]
fn a_user_object_goes_with_the_last_graph_that_holds_it() {
    let scene = scene();
    unsafe extern "C" fn note(data: *mut c_void) {
        // SAFETY: the test's own counter.
        unsafe { *data.cast::<u32>() += 1 };
    }
    let mut destroyed = 0u32;
    let at = (&raw mut destroyed).cast::<c_void>();
    let object = made(|o| user_object::cuUserObjectCreate(o, at, Some(note), 1, 1));
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    user_object::cuGraphRetainUserObject(by_hand, object, 1, 1).unwrap();
    let exec = instantiate(by_hand);
    graph::cuGraphDestroy(by_hand).unwrap();
    // SAFETY: the counter is alive.
    assert_eq!(unsafe { *at.cast::<u32>() }, 0, "the instantiated graph holds it");
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    graph_exec::cuGraphExecDestroy(exec).unwrap();
    // SAFETY: the counter is alive.
    assert_eq!(unsafe { *at.cast::<u32>() }, 1);
    assert!(user_object::cuUserObjectRelease(object, 1).is_err());
}
