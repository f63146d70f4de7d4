//! The runtime's bodies over a driver that the test builds: which driver calls are made, and which errors come back.
//! One process has one driver, so what depends on the process's first call runs in a process of its own.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::Path;
use std::process::Command;
use std::ptr;
use std::sync::{Mutex, MutexGuard, OnceLock};

use border::Out;
use cuda_abi::runtime::{
    cudaError_t, cudaGraph_t, cudaGraphEdgeData, cudaGraphExecUpdateResult, cudaGraphExecUpdateResultInfo,
    cudaGraphNodeType, cudaKernel_t, cudaKernelNodeParams, cudaMemcpy3DParms, cudaMemcpyKind,
    cudaStreamCaptureMode, cudaStreamCaptureStatus, dim3, v12, v13,
};
use runtime::api::{
    capture, device, error, event, execution, graph, graph_node, memory, registration, stream, symbol,
};
use runtime::{entry, entry_per_thread};

/// Counts what each thread allocates.
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

/// The driver's test functions. Tests take turns: the driver's notes are one text.
struct Driver {
    trace: unsafe extern "C" fn() -> *const c_char,
    clear: unsafe extern "C" fn(),
    image_error: unsafe extern "C" fn(c_int),
}

impl Driver {
    /// Compiles the driver and opens it under the name that the runtime asks for.
    fn get() -> MutexGuard<'static, Driver> {
        static DRIVER: OnceLock<Mutex<Driver>> = OnceLock::new();
        let driver = DRIVER.get_or_init(|| {
            let directory = tempfile::tempdir().unwrap();
            let object = directory.path().join("libcuda.so.1");
            let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c/driver.c");
            let mut compile = Command::new("cc");
            compile
                .args(["-w", "-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-o"])
                .arg(&object)
                .arg(source);
            assert!(compile.status().unwrap().success());
            // SAFETY: the library of tests/c/driver.c has no constructors.
            let library = unsafe { libloading::Library::new(&object) }.unwrap();
            // SAFETY: the functions have these types in driver.c.
            let driver = unsafe {
                Driver {
                    trace: *library.get(b"test_trace\0").unwrap(),
                    clear: *library.get(b"test_clear\0").unwrap(),
                    image_error: *library.get(b"test_image_error\0").unwrap(),
                }
            };
            std::mem::forget(library);
            Mutex::new(driver)
        });
        let driver = driver.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        // SAFETY: functions of driver.c without preconditions.
        unsafe {
            (driver.clear)();
            (driver.image_error)(0);
        }
        error::cudaGetLastError();
        driver
    }

    /// The driver calls since the test began or last asked.
    fn calls(&self) -> Vec<String> {
        // SAFETY: driver.c's text ends in a zero.
        let text = unsafe { CStr::from_ptr((self.trace)()) }.to_str().unwrap().to_owned();
        // SAFETY: no preconditions.
        unsafe { (self.clear)() };
        text.split_whitespace().map(str::to_owned).collect()
    }
}

/// What nvcc's generated code does with one kernel and one variable.
struct Program {
    _wrapper: Box<[u64; 3]>,
    handle: *mut *mut c_void,
    /// Only addresses count, as for a host stub.
    kernel: Box<u8>,
    unknown_kernel: Box<u8>,
    word: Box<u32>,
}

impl Program {
    fn register() -> Program {
        let wrapper = Box::new([0x1_4662_43b1, 0, 0]);
        let handle = registration::__cudaRegisterFatBinary(ptr::from_ref(&*wrapper).cast());
        let program = Program {
            _wrapper: wrapper,
            handle,
            kernel: Box::new(0),
            unknown_kernel: Box::new(0),
            word: Box::new(0),
        };
        let function = |host: &u8, name: &CStr| {
            let (host, null) = (ptr::from_ref(host).cast(), ptr::null_mut());
            // SAFETY: names are literals.
            unsafe {
                registration::__cudaRegisterFunction(
                    handle,
                    host,
                    null,
                    name.as_ptr(),
                    -1,
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                    ptr::null_mut(),
                );
            }
        };
        function(&program.kernel, c"add");
        function(&program.unknown_kernel, c"not_in_the_image");
        let word = ptr::from_ref(&*program.word).cast_mut().cast();
        // SAFETY: the name is a literal.
        unsafe {
            registration::__cudaRegisterVar(handle, word, ptr::null_mut(), c"word".as_ptr(), 0, 4, 0, 0)
        };
        registration::__cudaRegisterFatBinaryEnd(handle);
        program
    }

    fn kernel(&self) -> *const c_void {
        ptr::from_ref(&*self.kernel).cast()
    }

    fn word(&self) -> *const c_void {
        ptr::from_ref(&*self.word).cast()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        registration::__cudaUnregisterFatBinary(self.handle);
    }
}

fn dim(x: u32) -> dim3 {
    dim3 { x, y: 1, z: 1 }
}

fn malloc(bytes: usize) -> *mut c_void {
    let mut pointer = ptr::null_mut();
    assert_eq!(memory::cudaMalloc(Out::from(&mut pointer), bytes), Ok(()));
    pointer
}

/// Launches `add` on 4 elements, so that its arguments are good.
fn launch(function: *const c_void, grid: dim3, block: dim3) -> cudaError_t {
    let (mut a, mut b, mut c, mut n) = (malloc(16), malloc(16), malloc(16), 4i32);
    let mut args: [*mut c_void; 4] =
        [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast(), (&raw mut n).cast()];
    let code = entry("cudaLaunchKernel", || {
        execution::cudaLaunchKernel(function, grid, block, args.as_mut_ptr(), 0, ptr::null_mut())
    });
    for pointer in [a, b, c] {
        assert_eq!(memory::cudaFree(pointer), Ok(()));
    }
    code
}

#[test]
fn vector_add_as_nvcc_generates_it_computes_the_sum() {
    let _driver = Driver::get();
    let program = Program::register();
    let (a, b) = ([1i32, 2, 3, 4], [10i32, 20, 30, 40]);
    let mut c = [0i32; 4];
    let (mut device_a, mut device_b, mut device_c, mut n) = (malloc(16), malloc(16), malloc(16), 4i32);
    for (to, from) in [(device_a, &a), (device_b, &b)] {
        assert_eq!(
            memory::cudaMemcpy(to, from.as_ptr().cast(), 16, cudaMemcpyKind::cudaMemcpyHostToDevice),
            Ok(())
        );
    }
    assert_eq!(registration::__cudaPushCallConfiguration(dim(1), dim(32), 0, ptr::null_mut()), 0);
    let mut kernel: cudaKernel_t = ptr::null_mut();
    assert_eq!(registration::__cudaGetKernel(Out::from(&mut kernel), program.kernel()), Ok(()));
    let (mut grid, mut block, mut shared, mut stream) = (dim(0), dim(0), 1, ptr::null_mut::<c_void>());
    // SAFETY: a stream variable, or NULL.
    let popped = unsafe {
        registration::__cudaPopCallConfiguration(
            Some(&mut grid).into(),
            Some(&mut block).into(),
            Some(&mut shared).into(),
            (&raw mut stream).cast(),
        )
    };
    assert_eq!(popped, Ok(()));
    let mut args: [*mut c_void; 4] = [
        (&raw mut device_a).cast(),
        (&raw mut device_b).cast(),
        (&raw mut device_c).cast(),
        (&raw mut n).cast(),
    ];
    assert_eq!(
        registration::__cudaLaunchKernel(kernel, grid, block, args.as_mut_ptr(), shared, stream.cast()),
        Ok(())
    );
    assert_eq!(
        memory::cudaMemcpy(c.as_mut_ptr().cast(), device_c, 16, cudaMemcpyKind::cudaMemcpyDeviceToHost),
        Ok(())
    );
    assert_eq!(c, [11, 22, 33, 44]);
}

#[test]
fn a_fat_binary_is_loaded_by_its_first_launch_and_once() {
    let driver = Driver::get();
    let program = Program::register();
    assert_eq!(driver.calls(), [""; 0], "registration asks nothing of the driver");
    malloc(16);
    assert!(!driver.calls().contains(&"cuLibraryLoadData".to_owned()));
    for _ in 0..2 {
        assert_eq!(launch(program.kernel(), dim(1), dim(32)), cudaError_t::cudaSuccess);
    }
    let calls = driver.calls();
    assert_eq!(calls.iter().filter(|call| *call == "cuLibraryLoadData").count(), 1, "{calls:?}");
    drop(program);
    assert_eq!(driver.calls(), ["cuLibraryUnload"]);
}

#[test]
fn launch_errors_have_the_documented_numbers() {
    let _driver = Driver::get();
    let program = Program::register();
    let never_registered = 0u8;
    assert_eq!(
        launch(ptr::from_ref(&never_registered).cast(), dim(1), dim(1)),
        cudaError_t::cudaErrorInvalidDeviceFunction
    );
    assert_eq!(error::cudaGetLastError(), cudaError_t::cudaErrorInvalidDeviceFunction);
    assert_eq!(error::cudaGetLastError(), cudaError_t::cudaSuccess);
    assert_eq!(launch(ptr::null(), dim(1), dim(1)), cudaError_t::cudaErrorInvalidDeviceFunction);
    assert_eq!(
        launch(ptr::from_ref(&*program.unknown_kernel).cast(), dim(1), dim(1)),
        cudaError_t::cudaErrorInvalidDeviceFunction
    );
    for (grid, block) in
        [(dim(1), dim(1025)), (dim(0), dim(1)), (dim(1), dim(0)), (dim(1), dim3 { x: 64, y: 64, z: 1 })]
    {
        assert_eq!(
            launch(program.kernel(), grid, block),
            cudaError_t::cudaErrorInvalidConfiguration,
            "{grid:?} {block:?}"
        );
    }
    let grid = dim3 { x: 1, y: 65536, z: 1 };
    assert_eq!(launch(program.kernel(), grid, dim(1)), cudaError_t::cudaErrorInvalidConfiguration);
    // CUDA 13: what is too large, and what is no kernel, the driver judges.
    let launch = |function, grid, block| {
        runtime::v13::entry("cudaLaunchKernel", || {
            execution::cudaLaunchKernel(function, grid, block, ptr::null_mut(), 0, ptr::null_mut())
        })
    };
    assert_eq!(launch(program.kernel(), grid, dim(1)), cudaError_t::cudaErrorInvalidValue);
    assert_eq!(launch(program.kernel(), dim(1), dim(1025)), cudaError_t::cudaErrorInvalidValue);
    assert_eq!(launch(program.kernel(), dim(0), dim(1)), cudaError_t::cudaErrorInvalidValue);
    let answer = launch(ptr::from_ref(&never_registered).cast(), dim(1), dim(1));
    assert_eq!(answer, cudaError_t::cudaErrorInvalidResourceHandle);
    assert_eq!(error::cudaGetLastError(), cudaError_t::cudaErrorInvalidResourceHandle);
}

/// A driver whose reset destroys the primary context wherever it is current.
#[test]
fn a_reset_device_is_used_again_by_every_thread() {
    let driver = Driver::get();
    let (malloc, free) = (|| malloc(16), |memory| assert_eq!(memory::cudaFree(memory), Ok(())));
    free(malloc());
    let (reset, has_reset) = std::sync::mpsc::channel();
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            free(malloc());
            ready.send(()).unwrap();
            has_reset.recv().unwrap();
            free(malloc());
        });
        is_ready.recv().unwrap();
        driver.calls();
        assert_eq!(device::cudaDeviceReset(), Ok(()));
        let mut ordinal = -1;
        assert_eq!(device::cudaGetDevice(Out::from(&mut ordinal)), Ok(()));
        assert_eq!(ordinal, 0);
        assert_eq!(driver.calls(), ["cuDevicePrimaryCtxReset_v2"]);
        reset.send(()).unwrap();
    });
    free(malloc());
    let retained = driver.calls().iter().filter(|call| *call == "cuDevicePrimaryCtxRetain").count();
    assert_eq!(retained, 1);
}

#[test]
fn the_drivers_word_on_a_bad_image_reaches_the_program_unchanged() {
    let driver = Driver::get();
    let program = Program::register();
    for code in [209, 218, 222] {
        // SAFETY: no preconditions.
        unsafe { (driver.image_error)(code) };
        assert_eq!(launch(program.kernel(), dim(1), dim(1)), cudaError_t(code.cast_unsigned()));
    }
    // The image may be good later: the failure was not kept.
    // SAFETY: no preconditions.
    unsafe { (driver.image_error)(0) };
    assert_eq!(launch(program.kernel(), dim(1), dim(1)), cudaError_t::cudaSuccess);
}

#[test]
fn symbols_are_copied_within_their_bounds() {
    let _driver = Driver::get();
    let program = Program::register();
    let (value, mut back) = (77u32, 0u32);
    let to = |symbol, count, offset, kind| {
        symbol::cudaMemcpyToSymbol(symbol, ptr::from_ref(&value).cast(), count, offset, kind)
            .map_err(|e| e.code())
    };
    assert_eq!(to(program.word(), 4, 0, cudaMemcpyKind::cudaMemcpyHostToDevice), Ok(()));
    let from = symbol::cudaMemcpyFromSymbol(
        (&raw mut back).cast(),
        program.word(),
        4,
        0,
        cudaMemcpyKind::cudaMemcpyDeviceToHost,
    );
    assert_eq!((from, back), (Ok(()), 77));
    let stranger = 0u32;
    assert_eq!(
        to(ptr::from_ref(&stranger).cast(), 4, 0, cudaMemcpyKind::cudaMemcpyHostToDevice),
        Err(cudaError_t::cudaErrorInvalidSymbol)
    );
    assert_eq!(
        to(program.word(), 4, 1, cudaMemcpyKind::cudaMemcpyHostToDevice),
        Err(cudaError_t::cudaErrorInvalidValue)
    );
    assert_eq!(
        to(program.word(), 4, 0, cudaMemcpyKind::cudaMemcpyDeviceToHost),
        Err(cudaError_t::cudaErrorInvalidMemcpyDirection)
    );
}

#[test]
fn a_managed_variables_pointer_is_set_before_host_code_uses_it() {
    let _driver = Driver::get();
    let program = Program::register();
    let mut pointer: *mut c_void = ptr::null_mut();
    // SAFETY: the name is a literal, the pointer this function's.
    unsafe {
        registration::__cudaRegisterManagedVar(
            program.handle,
            &mut pointer,
            ptr::null_mut(),
            c"managed".as_ptr(),
            0,
            4,
            0,
            0,
        );
    }
    assert_eq!(registration::__cudaInitModule(program.handle), 1);
    assert!(!pointer.is_null());
    let mut address = ptr::null_mut();
    assert_eq!(symbol::cudaGetSymbolAddress(Out::from(&mut address), pointer), Ok(()));
    assert_eq!(address, pointer);
}

#[test]
fn memory_calls_keep_the_runtimes_own_rules() {
    let driver = Driver::get();
    assert!(malloc(0).is_null(), "0 bytes give a null pointer and success");
    let mut pointer = ptr::null_mut();
    let too_much = memory::cudaMalloc(Out::from(&mut pointer), 1 << 50).unwrap_err();
    assert_eq!(too_much.code(), cudaError_t::cudaErrorMemoryAllocation);
    assert_eq!(memory::cudaFree(ptr::null_mut()), Ok(()));
    driver.calls();
    let word = 1u32;
    let copy = |to, kind| memory::cudaMemcpy(to, ptr::from_ref(&word).cast(), 4, kind).map_err(|e| e.code());
    assert_eq!(
        copy(ptr::null_mut(), cudaMemcpyKind::cudaMemcpyHostToDevice),
        Err(cudaError_t::cudaErrorInvalidValue)
    );
    assert_eq!(copy(ptr::null_mut(), cudaMemcpyKind(9)), Err(cudaError_t::cudaErrorInvalidMemcpyDirection));
    assert_eq!(driver.calls(), ["cuMemcpyHtoD_v2"]);
}

#[test]
fn per_thread_spellings_use_the_threads_own_stream() {
    let driver = Driver::get();
    let program = Program::register();
    let (to, word) = (malloc(4), 1u32);
    driver.calls();
    let code = entry_per_thread("cudaMemcpy_ptds", || {
        memory::cudaMemcpy(to, ptr::from_ref(&word).cast(), 4, cudaMemcpyKind::cudaMemcpyHostToDevice)
    });
    assert_eq!(code, cudaError_t::cudaSuccess);
    assert_eq!(driver.calls(), ["cuMemcpyHtoDAsync_v2(per-thread)", "cuStreamSynchronize"]);
    let mut n = 0i32;
    let mut pointer = to;
    let mut args: [*mut c_void; 4] = [
        (&raw mut pointer).cast(),
        (&raw mut pointer).cast(),
        (&raw mut pointer).cast(),
        (&raw mut n).cast(),
    ];
    let code = entry_per_thread("cudaLaunchKernel_ptsz", || {
        execution::cudaLaunchKernel(program.kernel(), dim(1), dim(1), args.as_mut_ptr(), 0, ptr::null_mut())
    });
    assert_eq!(code, cudaError_t::cudaSuccess);
    assert_eq!(driver.calls().last().map(String::as_str), Some("cuLaunchKernel(per-thread)"));
}

#[test]
fn each_thread_has_its_own_device_and_last_error() {
    let _driver = Driver::get();
    let current = || {
        let mut ordinal = -1;
        assert_eq!(device::cudaGetDevice(Out::from(&mut ordinal)), Ok(()));
        ordinal
    };
    assert_eq!(device::cudaSetDevice(1), Ok(()));
    entry("cudaStreamQuery", || stream::cudaStreamQuery(ptr::null_mut()));
    std::thread::scope(|scope| {
        scope.spawn(move || {
            assert_eq!(current(), 0);
            assert_eq!(error::cudaPeekAtLastError(), cudaError_t::cudaSuccess);
        });
    });
    assert_eq!(current(), 1);
    assert_eq!(error::cudaGetLastError(), cudaError_t::cudaErrorNotReady);
    assert_eq!(device::cudaSetDevice(7).unwrap_err().code(), cudaError_t::cudaErrorInvalidDevice);
    assert_eq!(device::cudaSetDevice(-1).unwrap_err().code(), cudaError_t::cudaErrorInvalidDevice);
    assert_eq!(device::cudaSetDevice(0), Ok(()));
}

/// The graph that the test's driver gives.
fn graph() -> cudaGraph_t {
    let mut graph = ptr::null_mut();
    assert_eq!(graph::cudaGraphCreate(Out::from(&mut graph), 0), Ok(()));
    graph
}

#[test]
fn a_kernel_node_names_the_function_that_the_program_registered() {
    let _driver = Driver::get();
    let program = Program::register();
    let (graph, mut node) = (graph(), ptr::null_mut());
    let mut params = cudaKernelNodeParams {
        func: program.kernel().cast_mut(),
        gridDim: dim(3),
        blockDim: dim3 { x: 4, y: 5, z: 6 },
        sharedMemBytes: 7,
        ..Default::default()
    };
    let mut add = |params: &cudaKernelNodeParams| {
        graph_node::cudaGraphAddKernelNode(Out::from(&mut node), graph, ptr::null(), 0, params)
    };
    assert_eq!(add(&params), Ok(()));
    let mut found = cudaKernelNodeParams::default();
    assert_eq!(graph_node::cudaGraphKernelNodeGetParams(graph.cast(), Out::from(&mut found)), Ok(()));
    assert_eq!((found.func, found.gridDim.x, found.blockDim.z), (params.func, 3, 6));
    assert_eq!(found.sharedMemBytes, 7);
    params.func = (&raw mut found).cast();
    assert_eq!(add(&params).unwrap_err().code(), cudaError_t::cudaErrorInvalidDeviceFunction);
}

#[test]
fn a_copy_to_a_symbol_is_a_node_on_the_devices_variable() {
    let _driver = Driver::get();
    let program = Program::register();
    let (graph, mut node, value) = (graph(), ptr::null_mut(), 5u16);
    let added = graph_node::cudaGraphAddMemcpyNodeToSymbol(
        Out::from(&mut node),
        graph,
        ptr::null(),
        0,
        program.word(),
        ptr::from_ref(&value).cast(),
        2,
        2,
        cudaMemcpyKind::cudaMemcpyHostToDevice,
    );
    assert_eq!(added, Ok(()));
    let mut found = cudaMemcpy3DParms::default();
    assert_eq!(graph_node::cudaGraphMemcpyNodeGetParams(node, Out::from(&mut found)), Ok(()));
    let mut variable = ptr::null_mut();
    symbol::cudaGetSymbolAddress(Out::from(&mut variable), program.word()).unwrap();
    assert_eq!(found.dstPtr.ptr.addr(), variable.addr() + 2);
    assert_eq!(found.srcPtr.ptr.cast_const().addr(), ptr::from_ref(&value).addr());
    assert_eq!((found.extent.width, found.extent.height, found.extent.depth), (2, 1, 1));
    assert_eq!(found.kind, cudaMemcpyKind::cudaMemcpyHostToDevice);
}

#[test]
fn each_major_means_its_own_by_a_graph_calls_name() {
    let driver = Driver::get();
    let (graph, mut node) = (graph(), ptr::null_mut::<c_void>());
    let program = Program::register();
    let params = cudaKernelNodeParams {
        func: program.kernel().cast_mut(),
        gridDim: dim(1),
        blockDim: dim(1),
        ..Default::default()
    };
    let at = Out::from(&mut node);
    // SAFETY: a handle under another name.
    let at = unsafe { Out::new(at.as_ptr().cast(), "node") }.unwrap();
    graph_node::cudaGraphAddKernelNode(at, graph, ptr::null(), 0, &params).unwrap();
    let other = graph.cast();
    driver.calls();
    // The source comes first in 11 and 12, the destination in 13.
    graph_node::cudaGraphKernelNodeCopyAttributes_v11(other, node.cast()).unwrap();
    graph_node::cudaGraphKernelNodeCopyAttributes_v12(other, node.cast()).unwrap();
    graph_node::cudaGraphKernelNodeCopyAttributes_v13(node.cast(), other).unwrap();
    assert_eq!(driver.calls(), ["copy_to_node"; 3]);

    let (mut exec, mut error_node, mut log) =
        (ptr::null_mut(), graph.cast(), [c_char::from_ne_bytes([b'x']); 4]);
    let instantiated = graph::cudaGraphInstantiate_v11(
        Out::from(&mut exec),
        graph,
        Some(&mut error_node).into(),
        Some(&mut log[0]).into(),
        4,
    );
    assert_eq!((instantiated, error_node.is_null(), log[0]), (Ok(()), true, 0));
    assert_eq!(graph::cudaGraphInstantiate_v13(Out::from(&mut exec), graph, 8), Ok(()));

    // What was refused is told with the error.
    let mut info = cudaGraphExecUpdateResultInfo::default();
    let updated = graph::cudaGraphExecUpdate_v13(exec, graph, Out::from(&mut info));
    assert_eq!(updated.unwrap_err().code(), cudaError_t::cudaErrorGraphExecUpdateFailure);
    let changed = cudaGraphExecUpdateResult::cudaGraphExecUpdateErrorNodeTypeChanged;
    assert_eq!((info.result, info.errorNode), (changed, node.cast()));
    let mut result = cudaGraphExecUpdateResult::cudaGraphExecUpdateSuccess;
    let updated =
        graph::cudaGraphExecUpdate_v11(exec, graph, Some(&mut error_node).into(), Out::from(&mut result));
    assert!(updated.is_err());
    assert_eq!((result, error_node), (changed, node.cast()));

    driver.calls();
    let (from, to) = ([node.cast()], [other]);
    graph::cudaGraphAddDependencies_v12(graph, from.as_ptr(), to.as_ptr(), 1).unwrap();
    let data = cudaGraphEdgeData::default();
    graph::cudaGraphAddDependencies_v13(graph, from.as_ptr(), to.as_ptr(), &data, 1).unwrap();
    assert_eq!(driver.calls(), ["cuGraphAddDependencies", "cuGraphAddDependencies_v2"]);
}

#[test]
fn a_conditional_node_gives_its_bodies_back() {
    let _driver = Driver::get();
    let (graph, mut node) = (graph(), ptr::null_mut());
    let mut params = v12::cudaGraphNodeParams {
        type_: cudaGraphNodeType::cudaGraphNodeTypeConditional,
        ..Default::default()
    };
    params.__bindgen_anon_1.conditional =
        v12::cudaConditionalNodeParams { handle: 9, size: 1, ..Default::default() };
    let added =
        // SAFETY: a structure that may be read and written.
        unsafe { graph_node::cudaGraphAddNode_v12(Out::from(&mut node), graph, ptr::null(), 0, &raw mut params) };
    assert_eq!(added, Ok(()));
    // SAFETY: the driver's array has one graph.
    assert_eq!(unsafe { *params.__bindgen_anon_1.conditional.phGraph_out }, graph);
}

#[test]
fn captures_use_the_threads_stream_and_fail_without_a_graph() {
    let driver = Driver::get();
    let null = ptr::null_mut();
    malloc(16);
    driver.calls();
    let begin = || capture::cudaStreamBeginCapture(null, cudaStreamCaptureMode(0));
    assert_eq!(entry("cudaStreamBeginCapture", begin), cudaError_t::cudaSuccess);
    assert_eq!(entry_per_thread("cudaStreamBeginCapture_ptsz", begin), cudaError_t::cudaSuccess);
    assert_eq!(driver.calls(), ["begin", "begin(per-thread)"]);
    let (mut status, mut id) = (cudaStreamCaptureStatus(9), 0);
    let asked = capture::cudaStreamGetCaptureInfo_v12(null, Out::from(&mut status), Some(&mut id).into());
    assert_eq!((asked, status.0, id), (Ok(()), 1, 42));
    assert_eq!(driver.calls(), ["info"]);
    let mut captured: cudaGraph_t = null.cast();
    let ended = capture::cudaStreamEndCapture(null, (&mut captured).into());
    assert_eq!(ended.unwrap_err().code(), cudaError_t::cudaErrorStreamCaptureUnjoined);
    assert!(captured.is_null());
}

/// CUDA: the host waits for the fill of memory that it sees itself, in the per-thread spelling too; the driver knows which
/// memory that is.
#[test]
fn a_fill_of_the_per_thread_spelling_is_the_drivers_own() {
    let driver = Driver::get();
    let at = malloc(64);
    driver.calls();
    let fill = || memory::cudaMemset(at, 7, 64);
    assert_eq!(entry_per_thread("cudaMemset_ptds", fill), cudaError_t::cudaSuccess);
    assert_eq!(entry("cudaMemset", fill), cudaError_t::cudaSuccess);
    let rows = || memory::cudaMemset2D(at, 8, 9, 4, 2);
    assert_eq!(entry_per_thread("cudaMemset2D_ptds", rows), cudaError_t::cudaSuccess);
    assert_eq!(driver.calls(), ["cuMemsetD8_v2_ptds", "cuMemsetD8_v2", "cuMemsetD2D8_v2_ptds"]);
}

/// What the runtime adds to the driver's calls; what those allocate crates/driver/tests/allocations.rs counts.
#[test]
fn hot_calls_allocate_nothing_after_the_first() {
    let _driver = Driver::get();
    let program = Program::register();
    let (device, null) = (malloc(64), ptr::null_mut());
    let mut bytes = [0u8; 64];
    let host = bytes.as_mut_ptr().cast::<c_void>();
    let mut values = [device, device, device];
    let mut n = 4i32;
    let [a, b, c] = values.each_mut().map(|value| ptr::from_mut(value).cast::<c_void>());
    let mut args = [a, b, c, (&raw mut n).cast()];
    let args = args.as_mut_ptr();
    let stream: cuda_abi::runtime::cudaStream_t = ptr::without_provenance_mut(0x1230);
    let mark: cuda_abi::runtime::cudaEvent_t = ptr::without_provenance_mut(0x4560);
    let mut attributes = [v13::cudaLaunchAttribute::default()];
    let plain = v13::cudaLaunchConfig_t { gridDim: dim(1), blockDim: dim(4), stream, ..Default::default() };
    let with_attributes = v13::cudaLaunchConfig_t { attrs: attributes.as_mut_ptr(), numAttrs: 1, ..plain };
    let copy = |to, from, kind| memory::cudaMemcpyAsync(to, from, 16, kind, stream);
    let kernel = program.kernel();

    let calls: &[(&str, &dyn Fn() -> runtime::Result)] = &[
        ("cudaLaunchKernel", &|| execution::cudaLaunchKernel(kernel, dim(1), dim(4), args, 0, stream)),
        ("cudaLaunchKernel, default stream", &|| {
            execution::cudaLaunchKernel(kernel, dim(1), dim(4), args, 0, null)
        }),
        ("cudaLaunchKernelExC", &|| execution::cudaLaunchKernelExC_v13(&plain, kernel, args)),
        ("cudaLaunchKernelExC, an attribute", &|| {
            execution::cudaLaunchKernelExC_v13(&with_attributes, kernel, args)
        }),
        ("<<<>>>", &|| {
            registration::__cudaPushCallConfiguration(dim(1), dim(4), 0, stream);
            let (mut grid, mut block, mut shared, mut on) = (dim(0), dim(0), 0, null);
            let (grid_at, block_at, shared_at) = (Some(&mut grid), Some(&mut block), Some(&mut shared));
            // SAFETY: a stream variable, or NULL.
            unsafe {
                registration::__cudaPopCallConfiguration(
                    grid_at.into(),
                    block_at.into(),
                    shared_at.into(),
                    (&raw mut on).cast(),
                )
            }?;
            execution::cudaLaunchKernel(kernel, grid, block, args, shared, on)
        }),
        ("cudaGraphLaunch", &|| graph::cudaGraphLaunch(ptr::without_provenance_mut(8), stream)),
        ("cudaMemcpyAsync, host to device", &|| copy(device, host, cudaMemcpyKind::cudaMemcpyHostToDevice)),
        ("cudaMemcpyAsync, device to host", &|| copy(host, device, cudaMemcpyKind::cudaMemcpyDeviceToHost)),
        ("cudaMemcpyAsync, device to device", &|| {
            copy(device, device, cudaMemcpyKind::cudaMemcpyDeviceToDevice)
        }),
        ("cudaMemcpyAsync, default", &|| copy(device, host, cudaMemcpyKind::cudaMemcpyDefault)),
        ("cudaMemcpy", &|| memory::cudaMemcpy(device, host, 16, cudaMemcpyKind::cudaMemcpyHostToDevice)),
        ("cudaMemset", &|| memory::cudaMemset(device, 1, 16)),
        ("cudaMemsetAsync", &|| memory::cudaMemsetAsync(device, 1, 16, stream)),
        ("cudaEventRecord", &|| event::cudaEventRecord(mark, stream)),
        ("cudaEventQuery", &|| event::cudaEventQuery(mark)),
        ("cudaEventSynchronize", &|| event::cudaEventSynchronize(mark)),
        ("cudaStreamWaitEvent", &|| stream::cudaStreamWaitEvent(stream, mark, 0)),
        ("cudaStreamSynchronize", &|| stream::cudaStreamSynchronize(stream)),
        ("cudaDeviceSynchronize", &|| device::cudaDeviceSynchronize()),
    ];
    for &(name, call) in calls {
        assert_eq!(call(), Ok(()), "{name}");
        assert_eq!(entry(name, call), cudaError_t::cudaSuccess, "{name}");
        let before = ALLOCATIONS.get();
        for _ in 0..10 {
            entry(name, call);
            entry_per_thread(name, call);
        }
        assert_eq!(ALLOCATIONS.get() - before, 0, "{name} allocates");
    }
}
