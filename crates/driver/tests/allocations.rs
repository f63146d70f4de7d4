//! Launches, asynchronous copies, fills and events allocate nothing after their first call. One test: the counter is
//! the process's, and a lock that another thread holds may make the lock itself allocate.

mod null;

use core::ffi::c_void;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use driver::api::{
    capture, context, copy, event, execution, graph_exec, library, memory, memset, module, stream,
};
use driver::{entry, entry_per_thread};

struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn hot_calls_allocate_nothing_after_the_first() {
    null::start();
    let none = core::ptr::null_mut();
    let mut ctx: cuda_abi::CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut ctx).into(), 0, 0).unwrap();
    let mut loaded: cuda_abi::CUmodule = core::ptr::null_mut();
    // SAFETY: an image, which lives as long as the test.
    unsafe { module::cuModuleLoadData((&mut loaded).into(), null::PTX.as_ptr().cast()) }.unwrap();
    let mut function: cuda_abi::CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut function).into(), loaded, c"good").unwrap();
    let mut lib: cuda_abi::CUlibrary = core::ptr::null_mut();
    let (no_options, no_values) = (core::ptr::null_mut(), core::ptr::null_mut());
    let image = null::PTX.as_ptr().cast();
    let (no_library_options, n) = (core::ptr::null_mut(), 0);
    // SAFETY: what the arguments point to is this test's.
    unsafe {
        library::cuLibraryLoadData(
            (&mut lib).into(),
            image,
            no_options,
            no_values,
            n,
            no_library_options,
            no_values,
            n,
        )
    }
    .unwrap();
    let mut kernel: cuda_abi::CUkernel = core::ptr::null_mut();
    library::cuLibraryGetKernel((&mut kernel).into(), lib, c"good").unwrap();
    let mut own_stream: cuda_abi::CUstream = core::ptr::null_mut();
    stream::cuStreamCreate((&mut own_stream).into(), 1).unwrap();
    let mut own_event: cuda_abi::CUevent = core::ptr::null_mut();
    event::cuEventCreate((&mut own_event).into(), 0).unwrap();
    let mut dptr = 0;
    memory::cuMemAlloc_v2((&mut dptr).into(), 256).unwrap();
    let mut managed = 0;
    memory::cuMemAllocManaged((&mut managed).into(), 256, 1).unwrap();
    let mut host = [0u8; 64];
    let at = host.as_mut_ptr().cast::<c_void>();
    let mut argument = dptr;
    let mut parameters = [(&raw mut argument).cast::<c_void>()];
    let parameters = parameters.as_mut_ptr();

    let mut attributes = [cuda_abi::CUlaunchAttribute::default(); 2];
    attributes[0].id = cuda_abi::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY;
    attributes[1].id = cuda_abi::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION;
    let config = cuda_abi::CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: own_stream,
        attrs: attributes.as_mut_ptr(),
        numAttrs: 2,
        ..Default::default()
    };

    let mut cluster = [cuda_abi::CUlaunchAttribute::default(); 2];
    cluster[0].id = cuda_abi::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster[0].value.clusterDim = cuda_abi::CUlaunchAttributeValue_union__bindgen_ty_1 { x: 2, y: 1, z: 1 };
    cluster[1].id = cuda_abi::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    cluster[1].value.cooperative = 1;
    let clustered = cuda_abi::CUlaunchConfig { gridDimX: 2, attrs: cluster.as_mut_ptr(), ..config };

    let mut captured: cuda_abi::CUgraph = core::ptr::null_mut();
    let mut exec: cuda_abi::CUgraphExec = core::ptr::null_mut();
    let mode = cuda_abi::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    capture::cuStreamBeginCapture_v2(own_stream, mode).unwrap();
    // SAFETY: the parameters are the kernel's, or none.
    unsafe { execution::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, own_stream, parameters, none) }
        .unwrap();
    capture::cuStreamEndCapture(own_stream, (&mut captured).into()).unwrap();
    graph_exec::cuGraphInstantiateWithFlags((&mut exec).into(), captured, 0).unwrap();

    let default = core::ptr::null_mut();
    let host_address = at.expose_provenance() as cuda_abi::CUdeviceptr;
    let calls: &[(&str, &dyn Fn() -> driver::Result)] = &[
        ("cuLaunchKernelEx, a cooperative cluster", &|| {
            // SAFETY: the parameters are the kernel's, or none.
            unsafe { execution::cuLaunchKernelEx(&clustered, function, parameters, none) }
        }),
        ("cuLaunchKernelEx of a CUkernel, a cooperative cluster", &|| {
            // SAFETY: the parameters are the kernel's, or none.
            unsafe { execution::cuLaunchKernelEx(&clustered, kernel.cast(), parameters, none) }
        }),
        ("cuLaunchCooperativeKernel", &|| {
            // SAFETY: the parameters are the kernel's, or none.
            unsafe {
                execution::cuLaunchCooperativeKernel(function, 1, 1, 1, 32, 1, 1, 0, own_stream, parameters)
            }
        }),
        ("cuGraphLaunch", &|| graph_exec::cuGraphLaunch(exec, own_stream)),
        ("cuMemcpyAsync, host to device", &|| copy::cuMemcpyAsync(dptr, host_address, 64, own_stream)),
        ("cuMemcpyDtoDAsync_v2", &|| copy::cuMemcpyDtoDAsync_v2(dptr, dptr + 64, 64, own_stream)),
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        ("cuMemcpyHtoD_v2", &|| unsafe { copy::cuMemcpyHtoD_v2(dptr, at, 64) }),
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        ("cuMemcpyDtoH_v2", &|| unsafe { copy::cuMemcpyDtoH_v2(at, dptr, 64) }),
        ("cuMemcpyDtoD_v2", &|| copy::cuMemcpyDtoD_v2(dptr, dptr + 64, 64)),
        ("cuMemcpy", &|| copy::cuMemcpy(dptr, host_address, 64)),
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        ("cuMemcpyHtoDAsync_v2, default stream", &|| unsafe {
            copy::cuMemcpyHtoDAsync_v2(dptr, at, 64, default)
        }),
        ("cuMemsetD8_v2", &|| memset::cuMemsetD8_v2(dptr, 5, 16)),
        ("cuMemsetD8_v2 of managed memory", &|| memset::cuMemsetD8_v2(managed, 5, 16)),
        ("cuMemsetD8Async", &|| memset::cuMemsetD8Async(dptr, 5, 16, own_stream)),
        ("cuMemsetD16Async", &|| memset::cuMemsetD16Async(dptr, 5, 16, own_stream)),
        ("cuMemsetD2D8Async", &|| memset::cuMemsetD2D8Async(dptr, 16, 5, 16, 4, own_stream)),
        ("cuEventRecord, default stream", &|| event::cuEventRecord(own_event, default)),
        ("cuEventSynchronize", &|| event::cuEventSynchronize(own_event)),
        ("cuEventElapsedTime_v2", &|| {
            let mut ms = 0.0;
            event::cuEventElapsedTime_v2((&mut ms).into(), own_event, own_event)
        }),
        ("cuStreamWaitEvent, default stream", &|| stream::cuStreamWaitEvent(default, own_event, 0)),
        ("cuStreamSynchronize, default stream", &|| stream::cuStreamSynchronize(default)),
        ("cuLaunchKernel", &|| {
            // SAFETY: the parameters are the kernel's, or none.
            unsafe { execution::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, own_stream, parameters, none) }
        }),
        ("cuLaunchKernel of a CUkernel", &|| {
            // SAFETY: the parameters are the kernel's, or none.
            unsafe {
                execution::cuLaunchKernel(
                    kernel.cast(),
                    1,
                    1,
                    1,
                    32,
                    1,
                    1,
                    0,
                    core::ptr::null_mut(),
                    parameters,
                    none,
                )
            }
        }),
        // SAFETY: the parameters are the kernel's, or none.
        ("cuLaunchKernelEx", &|| unsafe { execution::cuLaunchKernelEx(&config, function, parameters, none) }),
        ("cuMemAlloc_v2 and cuMemFree_v2", &|| {
            let mut other = 0;
            memory::cuMemAlloc_v2((&mut other).into(), 64)?;
            memory::cuMemFree_v2(other)
        }),
        ("cuMemcpyAsync", &|| copy::cuMemcpyAsync(dptr, dptr + 64, 64, own_stream)),
        ("cuEventQuery", &|| event::cuEventQuery(own_event)),
        ("cuCtxGetCurrent", &|| {
            let mut current: cuda_abi::CUcontext = core::ptr::null_mut();
            context::cuCtxGetCurrent((&mut current).into())
        }),
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        ("cuMemcpyHtoDAsync_v2", &|| unsafe { copy::cuMemcpyHtoDAsync_v2(dptr, at, 64, own_stream) }),
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        ("cuMemcpyDtoHAsync_v2", &|| unsafe { copy::cuMemcpyDtoHAsync_v2(at, dptr, 64, own_stream) }),
        ("cuMemsetD32Async", &|| memset::cuMemsetD32Async(dptr, 5, 16, own_stream)),
        ("cuEventRecord", &|| event::cuEventRecord(own_event, own_stream)),
        ("cuStreamWaitEvent", &|| stream::cuStreamWaitEvent(own_stream, own_event, 0)),
        ("cuStreamSynchronize", &|| stream::cuStreamSynchronize(own_stream)),
        ("cuCtxSynchronize", &|| context::cuCtxSynchronize()),
    ];
    for &(name, call) in calls {
        // The first entry gave panics to the log; here they are for whoever reads the test.
        let _ = std::panic::take_hook();
        assert_eq!(call(), Ok(()), "{name}");
        let before = ALLOCATIONS.get();
        for _ in 0..10 {
            assert_eq!(entry("test", call).0, 0);
            assert_eq!(entry_per_thread("test", call).0, 0);
        }
        let _ = std::panic::take_hook();
        assert_eq!(ALLOCATIONS.get() - before, 0, "{name} allocates");
    }
}
