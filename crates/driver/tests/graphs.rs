//! Graphs, built by hand and by capture, over the test's own provider.

mod null;

use core::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use border::Out;
use cuda_abi::*;
use driver::Error;
use driver::api::{
    capture, context, copy, event, execution, graph, graph_exec, graph_node, green, memory, memset, module,
    pool, stream, user_object,
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
    // SAFETY: an image, which lives as long as the test.
    let loaded = made(|m| unsafe { module::cuModuleLoadData(m, null::PTX.as_ptr().cast()) });
    let mut memory = 0;
    memory::cuMemAlloc_v2((&mut memory).into(), 64).unwrap();
    Scene {
        _one: one,
        context,
        stream: made(|s| stream::cuStreamCreate(s, 1)),
        other: made(|s| stream::cuStreamCreate(s, 1)),
        function: made(|f| module::cuModuleGetFunction(f, loaded, c"good")),
        memory,
    }
}

impl Scene {
    fn bytes(&self) -> [u8; 8] {
        let mut host = [0u8; 8];
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        unsafe { copy::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), self.memory, 8) }.unwrap();
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
        // SAFETY: the parameters are the kernel's, or none.
        unsafe {
            execution::cuLaunchKernel(
                self.function,
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                none,
            )
        }
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            context::cuCtxDestroy_v2(self.context).unwrap();
        }
    }
}

fn end_capture(stream: CUstream) -> CUgraph {
    let mut graph: CUgraph = core::ptr::null_mut();
    capture::cuStreamEndCapture(stream, (&mut graph).into()).unwrap();
    graph
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
    let captured = end_capture(scene.stream);
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
    let captured = end_capture(scene.stream);
    let mut n_edges = 0;
    let none = core::ptr::null_mut();
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetEdges(captured, none, none, &mut n_edges) }.unwrap();
    assert_eq!(n_edges, 4, "first to both of the middle, both to last");
    let mut n_roots = 0;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetRootNodes(captured, none, &mut n_roots) }.unwrap();
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
fn the_graph_of_a_capture_into_the_programs_own_need_not_be_asked_for() {
    let scene = scene();
    let mut given: CUgraph = core::ptr::null_mut();
    graph::cuGraphCreate((&mut given).into(), 0).unwrap();
    let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    let (none, no_data) = (core::ptr::null(), core::ptr::null());
    // SAFETY: as many elements as are told, or NULL.
    unsafe { capture::cuStreamBeginCaptureToGraph(scene.stream, given, none, no_data, 0, global) }.unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    capture::cuStreamEndCapture(scene.stream, None.into()).unwrap();
    let mut n_nodes = 0;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(given, core::ptr::null_mut(), &mut n_nodes) }.unwrap();
    assert_eq!(n_nodes, 1);

    // A graph of the capture's own would be lost, so the capture goes on.
    scene.begin();
    scene.launch_kernel(scene.stream).unwrap();
    let answer = capture::cuStreamEndCapture(scene.stream, None.into());
    assert_eq!(answer, Err(Error::InvalidValue("phGraph")));
    graph::cuGraphDestroy(end_capture(scene.stream)).unwrap();
}

#[test]
fn a_stream_that_was_joined_may_be_destroyed_before_the_capture_ends() {
    let scene = scene();
    let (fork, join) = (made(|e| event::cuEventCreate(e, 2)), made(|e| event::cuEventCreate(e, 2)));
    let forked = |joins: bool| {
        let short = made(|s| stream::cuStreamCreate(s, 1));
        scene.begin();
        event::cuEventRecord(fork, scene.stream).unwrap();
        stream::cuStreamWaitEvent(short, fork, 0).unwrap();
        scene.launch_kernel(short).unwrap();
        event::cuEventRecord(join, short).unwrap();
        if joins {
            stream::cuStreamWaitEvent(scene.stream, join, 0).unwrap();
        }
        stream::cuStreamDestroy_v2(short).unwrap();
        let mut status = CUstreamCaptureStatus(9);
        capture::cuStreamIsCapturing(scene.stream, (&mut status).into()).unwrap();
        assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
        let mut graph: CUgraph = core::ptr::null_mut();
        capture::cuStreamEndCapture(scene.stream, (&mut graph).into()).map(|()| graph)
    };
    graph::cuGraphDestroy(forked(true).unwrap()).unwrap();
    assert_eq!(forked(false), Err(Error::StreamCaptureUnjoined));
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
    // SAFETY: as many dependencies as are told.
    let last = made(|n| unsafe {
        graph_node::cuGraphAddMemsetNode(n, by_hand, none, 0, &fill(2, 4), scene.context)
    });
    // SAFETY: as many dependencies as are told.
    let first = made(|n| unsafe {
        graph_node::cuGraphAddMemsetNode(n, by_hand, none, 0, &fill(1, 8), scene.context)
    });
    // SAFETY: as many elements as are told, or NULL.
    unsafe { graph::cuGraphAddDependencies(by_hand, &first, &last, 1) }.unwrap();
    // SAFETY: as many elements as are told, or NULL.
    let again = unsafe { graph::cuGraphAddDependencies(by_hand, &first, &last, 1) };
    assert!(again.is_err(), "the edge is there already");
    let exec = instantiate(by_hand);
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    assert_eq!(scene.bytes(), [2, 2, 2, 2, 1, 1, 1, 1]);
    graph_exec::cuGraphExecMemsetNodeSetParams(exec, last, &fill(5, 2), scene.context).unwrap();
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
    assert_eq!(scene.bytes(), [5, 5, 1, 1, 1, 1, 1, 1]);

    let mut nodes = [core::ptr::null_mut(); 4];
    let mut n_nodes = 4;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(by_hand, nodes.as_mut_ptr(), &mut n_nodes) }.unwrap();
    assert_eq!((n_nodes, nodes), (2, [last, first, core::ptr::null_mut(), core::ptr::null_mut()]));
    // SAFETY: as many elements as are told, or NULL.
    unsafe { graph::cuGraphAddDependencies(by_hand, &last, &first, 1) }.unwrap();
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
        // SAFETY: as many dependencies as are told.
        let answer = unsafe {
            graph_node::cuGraphAddKernelNode_v2((&mut refused).into(), by_hand, none, 0, &too_large)
        };
        assert!(matches!(answer, Err(Error::InvalidValue(_))));
        // SAFETY: as many dependencies as are told.
        made(|n| unsafe { graph_node::cuGraphAddKernelNode_v2(n, by_hand, none, 0, &params) })
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

/// A graph of its own, with a fill of 8 bytes of the scene's memory.
fn filled(scene: &Scene, value: u32) -> (CUgraph, CUgraphNode) {
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let fill = eight(scene, value);
    let none = core::ptr::null();
    // SAFETY: as many dependencies as are told.
    let node =
        made(|n| unsafe { graph_node::cuGraphAddMemsetNode(n, by_hand, none, 0, &fill, scene.context) });
    (by_hand, node)
}

fn eight(scene: &Scene, value: u32) -> CUDA_MEMSET_NODE_PARAMS {
    CUDA_MEMSET_NODE_PARAMS { dst: scene.memory, pitch: 0, value, elementSize: 1, width: 8, height: 1 }
}

/// A copy of bytes inside device memory.
fn copied(to: CUdeviceptr, from: CUdeviceptr, len_bytes: usize) -> CUDA_MEMCPY3D {
    CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: from,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: to,
        WidthInBytes: len_bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    }
}

fn launch(exec: CUgraphExec, scene: &Scene) {
    graph_exec::cuGraphLaunch(exec, scene.stream).unwrap();
}

#[test]
fn parameters_come_back_as_they_were_set_and_change_in_the_graph_alone() {
    let scene = scene();
    let (by_hand, node) = filled(&scene, 3);
    let exec = instantiate(by_hand);
    let mut found = CUDA_MEMSET_NODE_PARAMS::default();
    graph_node::cuGraphMemsetNodeGetParams(node, (&mut found).into()).unwrap();
    assert_eq!((found.dst, found.value, found.width), (scene.memory, 3, 8));
    graph_node::cuGraphMemsetNodeSetParams(node, &eight(&scene, 4)).unwrap();
    let mut node_params = CUgraphNodeParams::default();
    graph_node::cuGraphNodeGetParams(node, (&mut node_params).into()).unwrap();
    assert_eq!(node_params.type_, CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET);
    // SAFETY: the member that belongs to the type.
    assert_eq!(unsafe { node_params.__bindgen_anon_1.memset.value }, 4);
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [3; 8], "the instantiated graph keeps what it had");
    // The parameters that were read make the same node again.
    graph_exec::cuGraphExecNodeSetParams(exec, node, &node_params).unwrap();
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [4; 8]);
    let mut copy = CUDA_MEMCPY3D::default();
    assert!(graph_node::cuGraphMemcpyNodeGetParams(node, (&mut copy).into()).is_err(), "another type");
    node_params.reserved2 = 1;
    assert!(graph_node::cuGraphNodeSetParams(node, &node_params).is_err(), "reserved bytes are zero");
}

#[test]
fn an_instantiated_copy_stays_flat_and_where_its_memory_was() {
    let scene = scene();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let none = core::ptr::null();
    let copy = copied(scene.memory + 8, scene.memory, 8);
    // SAFETY: as many dependencies as are told.
    let node =
        made(|n| unsafe { graph_node::cuGraphAddMemcpyNode(n, by_hand, none, 0, &copy, scene.context) });
    let exec = instantiate(by_hand);
    let set =
        |copy: &CUDA_MEMCPY3D| graph_exec::cuGraphExecMemcpyNodeSetParams(exec, node, copy, scene.context);
    set(&copied(scene.memory + 16, scene.memory, 4)).unwrap();
    let rows = CUDA_MEMCPY3D { Height: 2, ..copied(scene.memory + 16, scene.memory, 4) };
    assert!(matches!(set(&rows), Err(Error::InvalidValue(_))), "two rows");
    let host = [0u8; 8];
    let other = CUDA_MEMCPY3D {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: host.as_ptr().cast(),
        ..copied(scene.memory, 0, 8)
    };
    assert!(matches!(set(&other), Err(Error::InvalidValue(_))), "from host memory");
    assert!(set(&copied(scene.memory, scene.memory + 60, 8)).is_err(), "beyond the allocation");
    // A node can be turned off; a host function cannot.
    graph_exec::cuGraphNodeSetEnabled(exec, node, 0).unwrap();
    let mut is_enabled = 9;
    graph_exec::cuGraphNodeGetEnabled(exec, node, (&mut is_enabled).into()).unwrap();
    assert_eq!(is_enabled, 0);
    memset::cuMemsetD8_v2(scene.memory, 6, 4).unwrap();
    memset::cuMemsetD8_v2(scene.memory + 16, 0, 8).unwrap();
    launch(exec, &scene);
    let mut moved = [9u8; 4];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(moved.as_mut_ptr().cast(), scene.memory + 16, 4) }.unwrap();
    assert_eq!(moved, [0; 4]);
    graph_exec::cuGraphNodeSetEnabled(exec, node, 1).unwrap();
    launch(exec, &scene);
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(moved.as_mut_ptr().cast(), scene.memory + 16, 4) }.unwrap();
    assert_eq!(moved, [6; 4]);
}

#[test]
fn a_clone_has_nodes_of_its_own_that_are_found_by_their_originals() {
    let scene = scene();
    let (by_hand, node) = filled(&scene, 1);
    let clone = made(|g| graph::cuGraphClone(g, by_hand));
    let twin = made(|n| graph::cuGraphNodeFindInClone(n, node, clone));
    assert_ne!(twin, node);
    let owner = made(|g| graph::cuGraphNodeGetContainingGraph(twin, g));
    assert_eq!(owner, clone);
    graph_node::cuGraphMemsetNodeSetParams(twin, &eight(&scene, 2)).unwrap();
    launch(instantiate(by_hand), &scene);
    assert_eq!(scene.bytes(), [1; 8]);
    launch(instantiate(clone), &scene);
    assert_eq!(scene.bytes(), [2; 8]);
    graph::cuGraphDestroyNode(twin).unwrap();
    let mut gone: CUgraphNode = core::ptr::null_mut();
    assert!(graph::cuGraphNodeFindInClone((&mut gone).into(), node, clone).is_err());
    assert!(graph::cuGraphDestroyNode(twin).is_err());
    let mut n_nodes = 9;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(clone, core::ptr::null_mut(), &mut n_nodes) }.unwrap();
    assert_eq!(n_nodes, 0);
}

#[test]
fn edges_go_with_their_data() {
    let scene = scene();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let none = core::ptr::null();
    // SAFETY: as many dependencies as are told.
    let empty = || made(|n| unsafe { graph_node::cuGraphAddEmptyNode(n, by_hand, none, 0) });
    let (a, b, c) = (empty(), empty(), empty());
    let programmatic = CUgraphEdgeData { from_port: 1, to_port: 0, type_: 1, reserved: [0; 5] };
    // SAFETY: as many elements as are told, or NULL.
    unsafe { graph::cuGraphAddDependencies_v2(by_hand, &a, &b, &programmatic, 1) }.unwrap();
    // SAFETY: as many elements as are told, or NULL.
    unsafe { graph::cuGraphAddDependencies(by_hand, &b, &c, 1) }.unwrap();
    let bad = CUgraphEdgeData { to_port: 1, ..programmatic };
    // SAFETY: as many elements as are told, or NULL.
    assert!(unsafe { graph::cuGraphAddDependencies_v2(by_hand, &a, &c, &bad, 1) }.is_err());
    let (mut from, mut to) = ([core::ptr::null_mut(); 2], [core::ptr::null_mut(); 2]);
    let mut n_edges = 2;
    // SAFETY: room for as many elements as are told, or none is asked for.
    let answer = unsafe { graph::cuGraphGetEdges(by_hand, from.as_mut_ptr(), to.as_mut_ptr(), &mut n_edges) };
    assert_eq!(answer, Err(Error::LossyQuery), "data that nobody asks for");
    let mut data = [CUgraphEdgeData::default(); 2];
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe {
        graph::cuGraphGetEdges_v2(
            by_hand,
            from.as_mut_ptr(),
            to.as_mut_ptr(),
            data.as_mut_ptr(),
            &mut n_edges,
        )
    }
    .unwrap();
    assert_eq!((from, to), ([a, b], [b, c]));
    assert_eq!((data[0].from_port, data[0].type_, data[1].type_), (1, 1, 0));
    // SAFETY: as many elements as are told, or NULL.
    let removed = unsafe { graph::cuGraphRemoveDependencies(by_hand, &a, &b, 1) };
    assert!(removed.is_err(), "the data belong to the edge");
    // SAFETY: as many elements as are told, or NULL.
    unsafe { graph::cuGraphRemoveDependencies_v2(by_hand, &a, &b, &programmatic, 1) }.unwrap();
    let mut n_roots = 0;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetRootNodes(by_hand, core::ptr::null_mut(), &mut n_roots) }.unwrap();
    assert_eq!(n_roots, 2);
    drop(scene);
}

#[test]
fn an_update_takes_parameters_and_says_what_does_not_fit() {
    let scene = scene();
    let (by_hand, _) = filled(&scene, 1);
    let exec = instantiate(by_hand);
    let (same, _) = filled(&scene, 5);
    let mut info = CUgraphExecUpdateResultInfo::default();
    graph_exec::cuGraphExecUpdate_v2(exec, same, (&mut info).into()).unwrap();
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [5; 8]);

    let none = core::ptr::null();
    let (larger, node) = filled(&scene, 5);
    // SAFETY: as many dependencies as are told.
    made(|n| unsafe { graph_node::cuGraphAddEmptyNode(n, larger, &node, 1) });
    let answer = graph_exec::cuGraphExecUpdate_v2(exec, larger, (&mut info).into());
    assert_eq!(answer, Err(Error::GraphExecUpdateFailure));
    assert_eq!(info.result, CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED);

    let other = made(|g| graph::cuGraphCreate(g, 0));
    // SAFETY: as many dependencies as are told.
    let empty = made(|n| unsafe { graph_node::cuGraphAddEmptyNode(n, other, none, 0) });
    graph_exec::cuGraphExecUpdate_v2(exec, other, (&mut info).into()).unwrap_err();
    assert_eq!(info.result, CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED);
    assert_eq!(info.errorNode, empty);

    let rows = made(|g| graph::cuGraphCreate(g, 0));
    let fill = CUDA_MEMSET_NODE_PARAMS { width: 4, height: 2, pitch: 8, ..eight(&scene, 5) };
    // SAFETY: as many dependencies as are told.
    let node = made(|n| unsafe { graph_node::cuGraphAddMemsetNode(n, rows, none, 0, &fill, scene.context) });
    graph_exec::cuGraphExecUpdate_v2(exec, rows, (&mut info).into()).unwrap_err();
    assert_eq!(info.result, CUgraphExecUpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED);
    assert_eq!(info.errorNode, node);
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [5; 8], "a refused update changes nothing");
}

/// An allocation node of 64 bytes on device 0: the node and its address.
fn allocated(by_hand: CUgraph) -> (CUgraphNode, CUdeviceptr) {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: 64, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    let none = core::ptr::null();
    // SAFETY: what the arguments point to is this test's.
    let node = made(|n| unsafe { graph_node::cuGraphAddMemAllocNode(n, by_hand, none, 0, &mut params) });
    (node, params.dptr)
}

fn graph_bytes(attribute: CUgraphMem_attribute) -> u64 {
    let mut bytes = 0u64;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuDeviceGetGraphMemAttribute(0, attribute, (&raw mut bytes).cast()) }.unwrap();
    bytes
}

#[test]
fn memory_nodes_hand_out_one_address_for_good() {
    let scene = scene();
    let used = || graph_bytes(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    let reserved = || graph_bytes(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    let before = (used(), reserved());
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let (node, address) = allocated(by_hand);
    let fill = CUDA_MEMSET_NODE_PARAMS { dst: address, ..eight(&scene, 9) };
    // SAFETY: as many dependencies as are told.
    let filled =
        made(|n| unsafe { graph_node::cuGraphAddMemsetNode(n, by_hand, &node, 1, &fill, scene.context) });
    // CUDA: such a graph keeps its nodes, is not cloned, and is instantiated once at a time.
    assert!(graph::cuGraphDestroyNode(filled).is_err());
    let mut nothing: CUgraph = core::ptr::null_mut();
    assert!(graph::cuGraphClone((&mut nothing).into(), by_hand).is_err());
    let exec = instantiate(by_hand);
    let mut second: CUgraphExec = core::ptr::null_mut();
    assert!(graph_exec::cuGraphInstantiateWithFlags((&mut second).into(), by_hand, 0).is_err());
    // The null provider cannot map memory, so it is there from the beginning.
    assert_eq!((used(), reserved()), (before.0 + 64, before.1 + 64));
    launch(exec, &scene);
    assert_eq!((used(), reserved()), (before.0 + 64, before.1 + 64));
    let mut host = [0u8; 8];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), address, 8) }.unwrap();
    assert_eq!(host, [9; 8]);
    // CUDA: what the last launch allocated is freed before the next one.
    assert!(matches!(graph_exec::cuGraphLaunch(exec, scene.stream), Err(Error::InvalidValue(_))));
    pool::cuMemFreeAsync(address, scene.stream).unwrap();
    assert!(memory::cuMemFree_v2(address).is_err(), "freed already");
    launch(exec, &scene);
    // A graph that frees it.
    let freeing = made(|g| graph::cuGraphCreate(g, 0));
    let none = core::ptr::null();
    // SAFETY: as many dependencies as are told.
    made(|n| unsafe { graph_node::cuGraphAddMemFreeNode(n, freeing, none, 0, address) });
    let mut refused: CUgraphNode = core::ptr::null_mut();
    // SAFETY: as many dependencies as are told.
    let own = unsafe { graph_node::cuGraphAddMemFreeNode((&mut refused).into(), by_hand, none, 0, address) };
    assert!(own.is_err(), "freed in another graph");
    // SAFETY: as many dependencies as are told.
    let foreign =
        unsafe { graph_node::cuGraphAddMemFreeNode((&mut refused).into(), freeing, none, 0, scene.memory) };
    assert!(foreign.is_err(), "of no allocation node");
    let freed = instantiate(freeing);
    launch(freed, &scene);
    for exec in [exec, freed] {
        graph_exec::cuGraphExecDestroy(exec).unwrap();
    }
    for graph in [by_hand, freeing] {
        graph::cuGraphDestroy(graph).unwrap();
    }
    assert_eq!((used(), reserved()), before);
}

#[test]
fn memory_of_graphs_ends_with_its_context() {
    let mut scene = scene();
    let reserved = || graph_bytes(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT);
    let used = || graph_bytes(CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT);
    let before = (used(), reserved());
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let (_, address) = allocated(by_hand);
    let exec = instantiate(by_hand);
    launch(exec, &scene);
    assert_eq!((used(), reserved()), (before.0 + 64, before.1 + 64));
    context::cuCtxDestroy_v2(scene.context).unwrap();
    assert_eq!((used(), reserved()), before);
    // The graph, which has no context, lives on; its memory does not.
    scene.context = made(|c| context::cuCtxCreate_v2(c, 0, 0));
    let stream = made(|s| stream::cuStreamCreate(s, 1));
    assert!(matches!(graph_exec::cuGraphLaunch(exec, stream), Err(Error::ContextIsDestroyed)));
    assert!(memory::cuMemFree_v2(address).is_err());
    // Memory that comes to lie at the same address is not the graph's.
    let others: Vec<CUdeviceptr> = (0..100)
        .map(|_| {
            let mut other = 0;
            memory::cuMemAlloc_v2((&mut other).into(), 64).unwrap();
            other
        })
        .collect();
    graph_exec::cuGraphExecDestroy(exec).unwrap();
    graph::cuGraphDestroy(by_hand).unwrap();
    for other in others {
        memory::cuMemFree_v2(other).unwrap();
    }
}

#[test]
fn memory_may_outlive_the_graph_that_allocated_it() {
    let scene = scene();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let (_, address) = allocated(by_hand);
    let auto = made(|e| graph_exec::cuGraphInstantiateWithFlags(e, by_hand, 1));
    let mut none: CUgraphExec = core::ptr::null_mut();
    let both = graph_exec::cuGraphInstantiateWithFlags((&mut none).into(), by_hand, 1 | 4);
    assert!(matches!(both, Err(Error::InvalidValue(_))), "such graphs are not launched from the device");
    launch(auto, &scene);
    launch(auto, &scene);
    graph_exec::cuGraphExecDestroy(auto).unwrap();
    graph::cuGraphDestroy(by_hand).unwrap();
    memset::cuMemsetD8_v2(address, 1, 64).unwrap();
    memory::cuMemFree_v2(address).unwrap();
    assert!(memset::cuMemsetD8_v2(address, 1, 64).is_err());
}

#[test]
fn allocations_of_a_captured_stream_are_nodes() {
    let scene = scene();
    scene.begin();
    let mut address = 0;
    pool::cuMemAllocAsync((&mut address).into(), 32, scene.stream).unwrap();
    memset::cuMemsetD8Async(address, 7, 8, scene.stream).unwrap();
    copy::cuMemcpyDtoDAsync_v2(scene.memory, address, 8, scene.stream).unwrap();
    pool::cuMemFreeAsync(address, scene.stream).unwrap();
    let captured = end_capture(scene.stream);
    let exec = instantiate(captured);
    launch(exec, &scene);
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [7; 8]);
    assert!(memory::cuMemFree_v2(address).is_err(), "its graph frees it");
}

/// A conditional node with fills as bodies: the graph and its bodies.
fn conditional(
    scene: &Scene,
    kind: CUgraphConditionalNodeType,
    default: u32,
    values: &[u32],
) -> (CUgraph, u64) {
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let mut handle = 0;
    graph::cuGraphConditionalHandleCreate((&mut handle).into(), by_hand, scene.context, default, 1).unwrap();
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL, ..Default::default() };
    params.__bindgen_anon_1.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
        handle,
        type_: kind,
        size: values.len() as u32,
        phGraph_out: core::ptr::null_mut(),
        ctx: scene.context,
    };
    let none = core::ptr::null();
    // SAFETY: what the arguments point to is this test's.
    made(|n| unsafe { graph_node::cuGraphAddNode(n, by_hand, none, 0, &mut params) });
    for (index, &value) in values.iter().enumerate() {
        // SAFETY: the driver's array has as many graphs as the node has bodies.
        let body = unsafe { *params.__bindgen_anon_1.conditional.phGraph_out.add(index) };
        let fill = eight(scene, value);
        // SAFETY: as many dependencies as are told.
        made(|n| unsafe { graph_node::cuGraphAddMemsetNode(n, body, none, 0, &fill, scene.context) });
        // CUDA: bodies have no host functions.
        let mut refused: CUgraphNode = core::ptr::null_mut();
        unsafe extern "C" fn nothing(_: *mut c_void) {}
        let host = CUDA_HOST_NODE_PARAMS { fn_: Some(nothing), userData: core::ptr::null_mut() };
        // SAFETY: as many dependencies as are told.
        let answer = unsafe { graph_node::cuGraphAddHostNode((&mut refused).into(), body, none, 0, &host) };
        assert!(answer.is_err());
        assert!(graph::cuGraphDestroy(body).is_err(), "a body goes with its node");
    }
    (by_hand, handle)
}

#[test]
fn a_condition_chooses_the_body() {
    let scene = scene();
    let kind_if = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF;
    let switch = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH;
    let whilst = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE;
    // kind, value, bodies, what the memory has in the end
    let rows: &[(_, u32, &[u32], u8)] = &[
        (kind_if, 7, &[1], 1),
        (kind_if, 0, &[1], 0),
        (kind_if, 0, &[1, 2], 2),
        (switch, 2, &[3, 4, 5], 5),
        (switch, 3, &[3, 4, 5], 0),
        (whilst, 0, &[6], 0),
    ];
    for &(kind, value, bodies, expected) in rows {
        memset::cuMemsetD8_v2(scene.memory, 0, 8).unwrap();
        let (by_hand, _) = conditional(&scene, kind, value, bodies);
        let exec = instantiate(by_hand);
        launch(exec, &scene);
        assert_eq!(scene.bytes(), [expected; 8], "{kind:?} {value}");
        let mut nothing: CUgraph = core::ptr::null_mut();
        assert!(graph::cuGraphClone((&mut nothing).into(), by_hand).is_err());
        graph_exec::cuGraphExecDestroy(exec).unwrap();
        graph::cuGraphDestroy(by_hand).unwrap();
    }
}

#[test]
fn a_loop_runs_until_its_condition_is_zero() {
    let scene = scene();
    let whilst = CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE;
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let mut handle = 0;
    graph::cuGraphConditionalHandleCreate((&mut handle).into(), by_hand, scene.context, 1, 1).unwrap();
    // CUDA: a handle without a node.
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    let mut exec: CUgraphExec = core::ptr::null_mut();
    // SAFETY: what the arguments point to is this test's.
    unsafe { graph_exec::cuGraphInstantiateWithParams((&mut exec).into(), by_hand, &mut params) }
        .unwrap_err();
    let unused = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED;
    assert_eq!(params.result_out, unused);
    let mut node =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL, ..Default::default() };
    node.__bindgen_anon_1.conditional =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, type_: whilst, size: 1, ..Default::default() };
    let none = core::ptr::null();
    // SAFETY: what the arguments point to is this test's.
    made(|n| unsafe { graph_node::cuGraphAddNode(n, by_hand, none, 0, &mut node) });
    // SAFETY: the node has one body.
    let body = unsafe { *node.__bindgen_anon_1.conditional.phGraph_out };
    // What a kernel does by cudaGraphSetConditional: a store to the handle.
    // SAFETY: as many elements as are told, or NULL.
    unsafe {
        capture::cuStreamBeginCaptureToGraph(
            scene.stream,
            body,
            none,
            core::ptr::null(),
            0,
            CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        )
    }
    .unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    let captured = end_capture(scene.stream);
    assert_eq!(captured, body);
    let exec = instantiate(by_hand);
    null::ON_LAUNCH.store(handle as usize, Ordering::Relaxed);
    let launches = null::LAUNCHES.load(Ordering::Relaxed);
    launch(exec, &scene);
    assert_eq!(null::LAUNCHES.load(Ordering::Relaxed), launches + 1, "the first round ended the loop");
    null::ON_LAUNCH.store(0, Ordering::Relaxed);
    assert_eq!(null::LAUNCHES.load(Ordering::Relaxed), launches + 1);
}

#[test]
fn kernel_nodes_keep_attributes() {
    let scene = scene();
    scene.begin();
    scene.launch_kernel(scene.stream).unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    let captured = end_capture(scene.stream);
    let mut nodes = [core::ptr::null_mut(); 2];
    let mut n_nodes = 2;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(captured, nodes.as_mut_ptr(), &mut n_nodes) }.unwrap();
    let priority = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    let value = CUlaunchAttributeValue { priority: -3 };
    // SAFETY: a value that may be read.
    unsafe { graph_node::cuGraphKernelNodeSetAttribute(nodes[0], priority, &value) }.unwrap();
    graph_node::cuGraphKernelNodeCopyAttributes(nodes[1], nodes[0]).unwrap();
    let mut found = CUlaunchAttributeValue::default();
    graph_node::cuGraphKernelNodeGetAttribute(nodes[1], priority, (&mut found).into()).unwrap();
    // SAFETY: the member that belongs to the id.
    assert_eq!(unsafe { found.priority }, -3);
    let policy = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    // SAFETY: as above.
    let of_a_stream = unsafe { graph_node::cuGraphKernelNodeSetAttribute(nodes[0], policy, &value) };
    assert!(of_a_stream.is_err(), "a stream's");
    let mut params = CUDA_KERNEL_NODE_PARAMS::default();
    graph_node::cuGraphKernelNodeGetParams_v2(nodes[0], (&mut params).into()).unwrap();
    assert_eq!((params.func, params.blockDimX), (scene.function, 32));
    // SAFETY: the kernel has one argument of 8 bytes.
    assert_eq!(unsafe { *(*params.kernelParams).cast::<u64>() }, 0);
}

#[test]
fn a_child_is_the_nodes_own_graph() {
    let scene = scene();
    let (inner, _) = filled(&scene, 1);
    let outer = made(|g| graph::cuGraphCreate(g, 0));
    let none = core::ptr::null();
    // SAFETY: as many dependencies as are told.
    let node = made(|n| unsafe { graph_node::cuGraphAddChildGraphNode(n, outer, none, 0, inner) });
    let child = made(|g| graph_node::cuGraphChildGraphNodeGetGraph(node, g));
    assert_ne!(child, inner);
    assert!(graph::cuGraphDestroy(child).is_err());
    let mut leaf: CUgraphNode = core::ptr::null_mut();
    let mut n_nodes = 1;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(child, &mut leaf, &mut n_nodes) }.unwrap();
    graph_node::cuGraphMemsetNodeSetParams(leaf, &eight(&scene, 2)).unwrap();
    let exec = instantiate(outer);
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [2; 8]);
    graph_exec::cuGraphExecMemsetNodeSetParams(exec, leaf, &eight(&scene, 3), scene.context).unwrap();
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [3; 8]);
    graph_exec::cuGraphExecChildGraphNodeSetParams(exec, node, inner).unwrap();
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [1; 8]);
    graph::cuGraphDestroy(outer).unwrap();
    // SAFETY: room for as many elements as are told, or none is asked for.
    assert!(unsafe { graph::cuGraphGetNodes(child, core::ptr::null_mut(), &mut n_nodes) }.is_err());
}

#[test]
fn a_launch_in_a_captured_stream_is_a_child() {
    let scene = scene();
    let (inner, _) = filled(&scene, 8);
    let exec = instantiate(inner);
    scene.begin();
    launch(exec, &scene);
    let captured = end_capture(scene.stream);
    let mut node: CUgraphNode = core::ptr::null_mut();
    let mut n_nodes = 1;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(captured, &mut node, &mut n_nodes) }.unwrap();
    let mut kind = CUgraphNodeType(99);
    graph::cuGraphNodeGetType(node, (&mut kind).into()).unwrap();
    assert_eq!(kind, CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH);
    memset::cuMemsetD8_v2(scene.memory, 0, 8).unwrap();
    launch(instantiate(captured), &scene);
    assert_eq!(scene.bytes(), [8; 8]);
}

#[test]
fn a_graph_is_written_as_dot() {
    let scene = scene();
    let (by_hand, node) = filled(&scene, 8);
    // SAFETY: as many dependencies as are told.
    made(|n| unsafe { graph_node::cuGraphAddEmptyNode(n, by_hand, &node, 1) });
    let path = std::env::temp_dir().join(format!("cudaway-graph-{}.dot", std::process::id()));
    let c_path = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: what the arguments point to is this test's.
    unsafe { graph::cuGraphDebugDotPrint(by_hand, c_path.as_ptr(), 1) }.unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    assert!(text.starts_with("digraph") && text.contains("MEMSET") && text.contains("EMPTY"), "{text}");
    assert_eq!(text.matches("->").count(), 1, "{text}");
    assert_eq!(text.matches('{').count(), text.matches('}').count());
    // A file has none in it, whoever asks.
    let nowhere = c"/dev/null/graph.dot";
    // SAFETY: what the arguments point to is this test's.
    let written = unsafe { graph::cuGraphDebugDotPrint(by_hand, nowhere.as_ptr(), 0) };
    assert_eq!(written, Err(Error::OperatingSystem));
}

#[test]
fn dependencies_of_a_captured_stream_can_be_changed() {
    let scene = scene();
    let (by_hand, first) = filled(&scene, 1);
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let none = core::ptr::null();
    // SAFETY: as many elements as are told, or NULL.
    unsafe { capture::cuStreamBeginCaptureToGraph(scene.stream, by_hand, &first, none, 1, relaxed) }.unwrap();
    memset::cuMemsetD8Async(scene.memory, 2, 4, scene.stream).unwrap();
    assert!(graph::cuGraphDestroy(by_hand).is_err(), "it is captured into");
    let mut again = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    // SAFETY: as many elements as are told, or NULL.
    let second =
        unsafe { capture::cuStreamBeginCaptureToGraph(scene.other, by_hand, none.cast(), none, 0, again) };
    assert_eq!(second, Err(Error::IllegalState));
    // The next one waits for nothing.
    // SAFETY: as many elements as are told, or NULL.
    unsafe { capture::cuStreamUpdateCaptureDependencies(scene.stream, core::ptr::null_mut(), 0, 1) }.unwrap();
    scene.launch_kernel(scene.stream).unwrap();
    let captured = end_capture(scene.stream);
    assert_eq!(captured, by_hand);
    let mut n_roots = 0;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetRootNodes(by_hand, core::ptr::null_mut(), &mut n_roots) }.unwrap();
    let mut n_edges = 0;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetEdges(by_hand, core::ptr::null_mut(), core::ptr::null_mut(), &mut n_edges) }
        .unwrap();
    assert_eq!((n_roots, n_edges), (2, 1));
    // SAFETY: as many elements as are told, or NULL.
    let late =
        unsafe { capture::cuStreamUpdateCaptureDependencies(scene.stream, core::ptr::null_mut(), 0, 0) };
    assert_eq!(late, Err(Error::IllegalState));
    // SAFETY: what the arguments point to is this test's.
    unsafe { capture::cuThreadExchangeStreamCaptureMode(&mut again) }.unwrap();
    assert_eq!(again, CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL);
}

#[test]
fn a_recapture_asks_about_parameters_that_changed() {
    let scene = scene();
    let work = |value| {
        memset::cuMemsetD8Async(scene.memory, value, 8, scene.stream)?;
        scene.launch_kernel(scene.stream)
    };
    scene.begin();
    work(1).unwrap();
    let captured = end_capture(scene.stream);
    unsafe extern "C" fn note(
        data: *mut c_void,
        _node: CUgraphNode,
        old: *const CUgraphNodeParams,
        new: *const CUgraphNodeParams,
        _status: CUgraphRecaptureStatus,
    ) -> CUresult {
        // SAFETY: the test's own list; both structures are fills.
        unsafe {
            let seen = ((*old).__bindgen_anon_1.memset.value, (*new).__bindgen_anon_1.memset.value);
            (*data.cast::<Vec<(u32, u32)>>()).push(seen);
        }
        CUresult::CUDA_SUCCESS
    }
    let mut seen: Vec<(u32, u32)> = vec![];
    let data = (&raw mut seen).cast::<c_void>();
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    capture::cuStreamBeginRecaptureToGraph(scene.stream, relaxed, captured, Some(note), data).unwrap();
    work(2).unwrap();
    assert_eq!(end_capture(scene.stream), captured);
    assert_eq!(seen, [(1, 2)]);
    launch(instantiate(captured), &scene);
    assert_eq!(scene.bytes(), [2; 8]);
    // Other work is no recapture.
    capture::cuStreamBeginRecaptureToGraph(scene.stream, relaxed, captured, None, data).unwrap();
    assert_eq!(scene.launch_kernel(scene.stream), Err(Error::GraphRecaptureFailure));
    let mut nothing: CUgraph = core::ptr::null_mut();
    assert!(capture::cuStreamEndCapture(scene.stream, (&mut nothing).into()).is_err());
}

/// Ends a capture that was spoiled.
fn spoiled(stream: CUstream) {
    let mut nothing: CUgraph = core::ptr::null_mut();
    let answer = capture::cuStreamEndCapture(stream, (&mut nothing).into());
    assert_eq!((answer, nothing), (Err(Error::StreamCaptureInvalidated), core::ptr::null_mut()));
}

#[test]
fn captures_neither_merge_nor_wait_for_what_is_outside() {
    let scene = scene();
    let event = made(|e| event::cuEventCreate(e, 2));
    // 905: an event of no capture.
    event::cuEventRecord(event, scene.other).unwrap();
    scene.begin();
    assert_eq!(stream::cuStreamWaitEvent(scene.stream, event, 0), Err(Error::StreamCaptureIsolation));
    spoiled(scene.stream);
    // 902: an event of another capture; both end.
    scene.begin();
    let global = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
    capture::cuStreamBeginCapture_v2(scene.other, global).unwrap();
    event::cuEventRecord(event, scene.other).unwrap();
    assert_eq!(stream::cuStreamWaitEvent(scene.stream, event, 0), Err(Error::StreamCaptureMerge));
    spoiled(scene.stream);
    spoiled(scene.other);
    // 907: the host asks for an event that was last recorded in a capture, also afterwards.
    scene.begin();
    event::cuEventRecord(event, scene.stream).unwrap();
    end_capture(scene.stream);
    assert_eq!(event::cuEventQuery(event), Err(Error::CapturedEvent));
    assert_eq!(event::cuEventSynchronize(event), Err(Error::CapturedEvent));
    assert_eq!(stream::cuStreamWaitEvent(scene.stream, event, 0), Err(Error::CapturedEvent));
    event::cuEventRecord(event, scene.stream).unwrap();
    event::cuEventQuery(event).unwrap();
    // 903: ended on a stream that joined.
    scene.begin();
    event::cuEventRecord(event, scene.stream).unwrap();
    stream::cuStreamWaitEvent(scene.other, event, 0).unwrap();
    let mut nothing: CUgraph = core::ptr::null_mut();
    let answer = capture::cuStreamEndCapture(scene.other, (&mut nothing).into());
    assert_eq!(answer, Err(Error::StreamCaptureUnmatched));
    spoiled(scene.stream);
    // 401: captured already.
    scene.begin();
    assert_eq!(capture::cuStreamBeginCapture_v2(scene.stream, global), Err(Error::IllegalState));
    end_capture(scene.stream);
    event::cuEventDestroy_v2(event).unwrap();
}

#[test]
fn the_legacy_stream_is_not_used_while_a_blocking_stream_is_captured() {
    let scene = scene();
    let blocking = made(|s| stream::cuStreamCreate(s, 0));
    let begin = || capture::cuStreamBeginCapture(blocking).unwrap();
    let null = core::ptr::null_mut();
    let mut host = [0u8; 4];
    let mut status = CUstreamCaptureStatus(9);
    begin();
    // The question spoils nothing.
    let asked = capture::cuStreamIsCapturing(null, (&mut status).into());
    assert_eq!(asked, Err(Error::StreamCaptureImplicit));
    capture::cuStreamIsCapturing(blocking, (&mut status).into()).unwrap();
    assert_eq!(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE);
    assert_eq!(memset::cuMemsetD8Async(scene.memory, 1, 4, null), Err(Error::StreamCaptureImplicit));
    spoiled(blocking);
    begin();
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    let copied = unsafe { copy::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), scene.memory, 4) };
    assert_eq!(copied, Err(Error::StreamCaptureImplicit));
    spoiled(blocking);
    begin();
    assert_eq!(context::cuCtxSynchronize(), Err(Error::StreamCaptureUnsupported));
    spoiled(blocking);
    // An event behind all of the context's work would be behind the capture too.
    let event = made(|e| event::cuEventCreate(e, 2));
    begin();
    assert_eq!(green::cuCtxRecordEvent(scene.context, event), Err(Error::StreamCaptureUnsupported));
    spoiled(blocking);
    // A stream that does not block has nothing to do with it.
    scene.begin();
    memset::cuMemsetD8Async(scene.memory, 1, 4, null).unwrap();
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), scene.memory, 4) }.unwrap();
    end_capture(scene.stream);
    stream::cuStreamDestroy_v2(blocking).unwrap();
}

#[test]
fn the_modes_say_who_may_allocate() {
    let scene = scene();
    let [global, local, relaxed] = [
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
        CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
    ];
    let allocate = || {
        let mut address = 0;
        memory::cuMemAlloc_v2((&mut address).into(), 16)?;
        memory::cuMemFree_v2(address)
    };
    // Of a thread with this mode.
    let elsewhere = |mode: CUstreamCaptureMode| {
        let context = scene.context as usize;
        std::thread::spawn(move || {
            context::cuCtxSetCurrent(context as CUcontext).unwrap();
            let mut mode = mode;
            // SAFETY: what the arguments point to is this test's.
            unsafe { capture::cuThreadExchangeStreamCaptureMode(&mut mode) }.unwrap();
            let mut address = 0;
            memory::cuMemAlloc_v2((&mut address).into(), 16)?;
            memory::cuMemFree_v2(address)
        })
        .join()
        .unwrap()
    };
    let unsupported = Err(Error::StreamCaptureUnsupported);
    // mode of the capture, of the other thread, what it gets
    let rows = [
        (global, global, unsupported),
        (global, local, Ok(())),
        (global, relaxed, Ok(())),
        (local, global, Ok(())),
        (relaxed, global, Ok(())),
    ];
    for (capturing, other, expected) in rows {
        capture::cuStreamBeginCapture_v2(scene.stream, capturing).unwrap();
        assert_eq!(elsewhere(other), expected, "{capturing:?} {other:?}");
        match expected {
            Ok(()) => drop(end_capture(scene.stream)),
            Err(_) => spoiled(scene.stream),
        }
    }
    // The capturing thread itself.
    for mode in [global, local] {
        capture::cuStreamBeginCapture_v2(scene.stream, mode).unwrap();
        assert_eq!(allocate(), unsupported);
        spoiled(scene.stream);
        capture::cuStreamBeginCapture_v2(scene.stream, mode).unwrap();
        let mut own = relaxed;
        // SAFETY: what the arguments point to is this test's.
        unsafe { capture::cuThreadExchangeStreamCaptureMode(&mut own) }.unwrap();
        assert_eq!(allocate(), Ok(()), "this thread said so");
        // SAFETY: what the arguments point to is this test's.
        unsafe { capture::cuThreadExchangeStreamCaptureMode(&mut own) }.unwrap();
        end_capture(scene.stream);
    }
    capture::cuStreamBeginCapture_v2(scene.stream, relaxed).unwrap();
    assert_eq!(allocate(), Ok(()));
    end_capture(scene.stream);
    // 908: only a relaxed capture ends on another thread.
    for (mode, expected) in [(local, Err(Error::StreamCaptureWrongThread)), (relaxed, Ok(()))] {
        capture::cuStreamBeginCapture_v2(scene.stream, mode).unwrap();
        let (context, stream) = (scene.context as usize, scene.stream as usize);
        let ended = std::thread::spawn(move || {
            context::cuCtxSetCurrent(context as CUcontext).unwrap();
            let mut graph: CUgraph = core::ptr::null_mut();
            capture::cuStreamEndCapture(stream as CUstream, (&mut graph).into())
        });
        assert_eq!(ended.join().unwrap(), expected);
        if expected.is_err() {
            end_capture(scene.stream);
        }
    }
}

#[test]
fn external_records_are_nodes_of_a_capture_only() {
    let scene = scene();
    let event = made(|e| event::cuEventCreate(e, 2));
    assert!(event::cuEventRecordWithFlags(event, scene.stream, 1).is_err());
    scene.begin();
    event::cuEventRecordWithFlags(event, scene.stream, 1).unwrap();
    stream::cuStreamWaitEvent(scene.stream, event, 1).unwrap();
    let captured = end_capture(scene.stream);
    let mut nodes = [core::ptr::null_mut(); 2];
    let mut n_nodes = 2;
    // SAFETY: room for as many elements as are told, or none is asked for.
    unsafe { graph::cuGraphGetNodes(captured, nodes.as_mut_ptr(), &mut n_nodes) }.unwrap();
    let recorded = made(|e| graph_node::cuGraphEventRecordNodeGetEvent(nodes[0], e));
    let waited = made(|e| graph_node::cuGraphEventWaitNodeGetEvent(nodes[1], e));
    assert_eq!((recorded, waited), (event, event));
    let second = made(|e| event::cuEventCreate(e, 2));
    graph_node::cuGraphEventRecordNodeSetEvent(nodes[0], second).unwrap();
    assert!(graph_node::cuGraphEventRecordNodeSetEvent(nodes[1], second).is_err(), "a wait");
    launch(instantiate(captured), &scene);
}

fn write_op(address: CUdeviceptr, value: u32) -> CUstreamBatchMemOpParams {
    let mut op = CUstreamBatchMemOpParams::default();
    op.writeValue.operation = CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32;
    op.writeValue.address = address;
    op.writeValue.__bindgen_anon_1.value = value;
    op
}

#[test]
fn memory_operations_are_nodes_by_hand_and_by_capture() {
    let scene = scene();
    memset::cuMemsetD8_v2(scene.memory, 0, 8).unwrap();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let none = core::ptr::null();
    let mut ops = [write_op(scene.memory, 1), write_op(scene.memory + 4, 2)];
    let mut params = CUDA_BATCH_MEM_OP_NODE_PARAMS {
        ctx: scene.context,
        count: 2,
        paramArray: ops.as_mut_ptr(),
        flags: 0,
    };
    // SAFETY: as many dependencies as are told.
    let node = made(|n| unsafe { graph_node::cuGraphAddBatchMemOpNode(n, by_hand, none, 0, &params) });
    let exec = instantiate(by_hand);
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [1, 0, 0, 0, 2, 0, 0, 0]);
    let mut found = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
    graph_node::cuGraphBatchMemOpNodeGetParams(node, (&mut found).into()).unwrap();
    assert_eq!(found.count, 2);
    // SAFETY: the node keeps two operations.
    assert_eq!(unsafe { (*found.paramArray.add(1)).writeValue.address }, scene.memory + 4);
    let mut other = [write_op(scene.memory, 9), ops[1]];
    params.paramArray = other.as_mut_ptr();
    graph_exec::cuGraphExecBatchMemOpNodeSetParams(exec, node, &params).unwrap();
    launch(exec, &scene);
    assert_eq!(scene.bytes()[0], 9);
    // CUDA: the number of operations stays.
    params.count = 1;
    assert!(graph_exec::cuGraphExecBatchMemOpNodeSetParams(exec, node, &params).is_err());

    scene.begin();
    stream::cuStreamWriteValue32_v2(scene.stream, scene.memory, 5, 0).unwrap();
    stream::cuStreamWaitValue32_v2(scene.stream, scene.memory, 5, 0).unwrap();
    let captured = end_capture(scene.stream);
    assert_eq!(scene.bytes()[0], 9);
    launch(instantiate(captured), &scene);
    assert_eq!(scene.bytes()[0], 5);
}

/// CUDA's header of `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`: "not supported in the v2 API".
#[test]
fn a_write_leaves_its_barrier_out_by_its_first_version_only() {
    const NO_MEMORY_BARRIER: u32 = 1;
    let scene = scene();
    let write = |flags| {
        let mut op = write_op(scene.memory, 7);
        op.writeValue.flags = flags;
        [op]
    };
    let wrong = Err(Error::InvalidValue("flags"));
    assert_eq!(stream::cuStreamWriteValue32_v2(scene.stream, scene.memory, 6, NO_MEMORY_BARRIER), wrong);
    assert_eq!(stream::cuStreamWriteValue64_v2(scene.stream, scene.memory, 6, NO_MEMORY_BARRIER), wrong);
    let mut ops = write(NO_MEMORY_BARRIER);
    // SAFETY: as many elements as are told, or NULL.
    assert_eq!(unsafe { stream::cuStreamBatchMemOp_v2(scene.stream, 1, ops.as_mut_ptr(), 0) }, wrong);
    stream::cuStreamWriteValue32(scene.stream, scene.memory, 6, NO_MEMORY_BARRIER).unwrap();
    // SAFETY: as many elements as are told, or NULL.
    unsafe { stream::cuStreamBatchMemOp(scene.stream, 1, ops.as_mut_ptr(), 0) }.unwrap();
    assert_eq!(scene.bytes()[0], 7);
    let unknown = NO_MEMORY_BARRIER << 1;
    assert_eq!(stream::cuStreamWriteValue32(scene.stream, scene.memory, 6, unknown), wrong);
    // SAFETY: as many elements as are told, or NULL.
    assert_eq!(unsafe { stream::cuStreamBatchMemOp(scene.stream, 1, write(unknown).as_mut_ptr(), 0) }, wrong);
}

#[test]
fn high_water_marks_of_graph_memory_go_back_to_what_is_there() {
    let scene = scene();
    let by_hand = made(|g| graph::cuGraphCreate(g, 0));
    let (_, address) = allocated(by_hand);
    launch(instantiate(by_hand), &scene);
    pool::cuMemFreeAsync(address, scene.stream).unwrap();
    let high = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_HIGH;
    let current = CUgraphMem_attribute::CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT;
    assert!(graph_bytes(high) >= 64);
    let set = |attribute, mut value: u64| {
        // SAFETY: a value of the attribute's type.
        unsafe { graph::cuDeviceSetGraphMemAttribute(0, attribute, (&raw mut value).cast()) }
    };
    assert!(set(current, 0).is_err(), "not a mark");
    set(high, 0).unwrap();
    assert_eq!(graph_bytes(high), graph_bytes(current));
    assert!(set(high, 1).is_err(), "to 0 only");
    graph::cuDeviceGraphMemTrim(0).unwrap();
    assert!(graph::cuDeviceGraphMemTrim(99).is_err());
}

#[test]
fn a_moved_child_is_no_longer_the_programs() {
    let scene = scene();
    let (inner, leaf) = filled(&scene, 4);
    let outer = made(|g| graph::cuGraphCreate(g, 0));
    let none = core::ptr::null();
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH, ..Default::default() };
    params.__bindgen_anon_1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS {
        graph: inner,
        ownership: CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE,
    };
    // SAFETY: what the arguments point to is this test's.
    let node = made(|n| unsafe { graph_node::cuGraphAddNode(n, outer, none, 0, &mut params) });
    assert_eq!(made(|g| graph_node::cuGraphChildGraphNodeGetGraph(node, g)), inner);
    assert!(graph::cuGraphDestroy(inner).is_err());
    let mut refused: CUgraphExec = core::ptr::null_mut();
    assert!(graph_exec::cuGraphInstantiateWithFlags((&mut refused).into(), inner, 0).is_err());
    let mut again: CUgraphNode = core::ptr::null_mut();
    // SAFETY: what the arguments point to is this test's.
    assert!(unsafe { graph_node::cuGraphAddNode((&mut again).into(), outer, none, 0, &mut params) }.is_err());
    let exec = instantiate(outer);
    launch(exec, &scene);
    assert_eq!(scene.bytes(), [4; 8]);
    graph::cuGraphDestroy(outer).unwrap();
    assert!(graph::cuGraphDestroyNode(leaf).is_err(), "it went with the outer graph");
    launch(exec, &scene);
}

#[test]
fn each_threads_default_stream_is_captured_by_itself() {
    let scene = scene();
    memset::cuMemsetD8_v2(scene.memory, 0, 8).unwrap();
    let own = CU_STREAM_PER_THREAD;
    let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    capture::cuStreamBeginCapture_v2(own, relaxed).unwrap();
    memset::cuMemsetD8Async(scene.memory, 1, 4, own).unwrap();
    let (context, memory) = (scene.context as usize, scene.memory);
    let elsewhere = std::thread::spawn(move || {
        context::cuCtxSetCurrent(context as CUcontext).unwrap();
        memset::cuMemsetD8Async(memory, 2, 8, CU_STREAM_PER_THREAD).unwrap();
    });
    elsewhere.join().unwrap();
    let captured = end_capture(own);
    assert_eq!(scene.bytes(), [2; 8], "the other thread's work was done, this one's was not");
    graph_exec::cuGraphLaunch(instantiate(captured), own).unwrap();
    assert_eq!(scene.bytes(), [1, 1, 1, 1, 2, 2, 2, 2]);
}

#[test]
fn a_context_takes_its_captures_with_it() {
    let scene = scene();
    let context = made(|c| context::cuCtxCreate_v2(c, 0, 0));
    let stream = made(|s| stream::cuStreamCreate(s, 1));
    capture::cuStreamBeginCapture(stream).unwrap();
    context::cuCtxDestroy_v2(context).unwrap();
    context::cuCtxSetCurrent(scene.context).unwrap();
    // The capture was global: nothing forbids this any more.
    let mut address = 0;
    memory::cuMemAlloc_v2((&mut address).into(), 16).unwrap();
    memory::cuMemFree_v2(address).unwrap();
}
