//! What a call costs above the bare HIP call, as programs meet it: through the shipped `libcudart.so.13` and
//! `libcuda.so.1`, over a HIP library that answers at once (crates/hip-null).
//!
//! `cargo xtask build && cargo bench -p runtime --bench overhead [-- WORD…]`; with words, rows whose name has one of them.
//! `LIB=DIR` measures the objects of another build. Every number is the least of many short rounds, the bare call's among
//! them, so other work of the machine hardly shows; nothing is asserted.

use core::ffi::{c_char, c_int, c_uint, c_void};
use std::path::{Path, PathBuf};
use std::ptr;
use std::time::Instant;

use cuda_abi::runtime::{
    cudaError_t, cudaEvent_t, cudaGraph_t, cudaGraphExec_t, cudaMemcpyKind, cudaStream_t, dim3, v13,
};
use cuda_abi::*;
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};

/// Goals in nanoseconds above the bare call.
const CALL: f64 = 50.0;
const LAUNCH: f64 = 150.0;

/// Functions of a library by their names.
macro_rules! functions {
    ($Table:ident { $($name:ident($($parameter:ty),*) -> $answer:ty;)* }) => {
        #[expect(non_snake_case, reason = "C's names")]
        struct $Table {
            $($name: extern "C" fn($($parameter),*) -> $answer,)*
        }

        impl $Table {
            fn of(library: &Library) -> Self {
                // SAFETY: the names have these types in CUDA's and HIP's headers, the libraries stay open, and `rows` passes
                // what the calls ask for.
                $Table { $($name: *unsafe { library.get(concat!(stringify!($name), "\0")) }.unwrap(),)* }
            }
        }
    };
}

type Arguments = *mut *mut c_void;

functions! { Bare {
    hipModuleLaunchKernel(*mut c_void, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, *mut c_void, Arguments, Arguments) -> c_int;
    hipMemcpyAsync(*mut c_void, *const c_void, usize, c_int, *mut c_void) -> c_int;
    hipMemcpy(*mut c_void, *const c_void, usize, c_int) -> c_int;
    hipMemsetD8Async(*mut c_void, u8, usize, *mut c_void) -> c_int;
    hipMalloc(*mut *mut c_void, usize) -> c_int;
    hipFree(*mut c_void) -> c_int;
    hipEventRecord(*mut c_void, *mut c_void) -> c_int;
    hipEventQuery(*mut c_void) -> c_int;
    hipEventSynchronize(*mut c_void) -> c_int;
    hipEventElapsedTime(*mut f32, *mut c_void, *mut c_void) -> c_int;
    hipEventCreateWithFlags(*mut *mut c_void, c_uint) -> c_int;
    hipEventDestroy(*mut c_void) -> c_int;
    hipStreamCreateWithFlags(*mut *mut c_void, c_uint) -> c_int;
    hipStreamDestroy(*mut c_void) -> c_int;
    hipStreamSynchronize(*mut c_void) -> c_int;
    hipStreamQuery(*mut c_void) -> c_int;
    hipStreamWaitEvent(*mut c_void, *mut c_void, c_uint) -> c_int;
    hipDeviceSynchronize() -> c_int;
} }

functions! { Driver {
    cuLaunchKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, Arguments, Arguments) -> CUresult;
    cuLaunchKernelEx(*const CUlaunchConfig, CUfunction, Arguments, Arguments) -> CUresult;
    cuLaunchCooperativeKernel(CUfunction, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, c_uint, CUstream, Arguments) -> CUresult;
    cuKernelGetFunction(*mut CUfunction, CUkernel) -> CUresult;
    cuGraphLaunch(CUgraphExec, CUstream) -> CUresult;
    cuMemAlloc_v2(*mut CUdeviceptr, usize) -> CUresult;
    cuMemFree_v2(CUdeviceptr) -> CUresult;
    cuMemcpyHtoD_v2(CUdeviceptr, *const c_void, usize) -> CUresult;
    cuMemcpyHtoDAsync_v2(CUdeviceptr, *const c_void, usize, CUstream) -> CUresult;
    cuMemcpyDtoHAsync_v2(*mut c_void, CUdeviceptr, usize, CUstream) -> CUresult;
    cuMemcpyDtoDAsync_v2(CUdeviceptr, CUdeviceptr, usize, CUstream) -> CUresult;
    cuMemcpyAsync(CUdeviceptr, CUdeviceptr, usize, CUstream) -> CUresult;
    cuMemsetD8Async(CUdeviceptr, u8, usize, CUstream) -> CUresult;
    cuStreamSynchronize(CUstream) -> CUresult;
    cuStreamQuery(CUstream) -> CUresult;
    cuStreamWaitEvent(CUstream, CUevent, c_uint) -> CUresult;
    cuEventRecord(CUevent, CUstream) -> CUresult;
    cuEventQuery(CUevent) -> CUresult;
    cuEventSynchronize(CUevent) -> CUresult;
    cuCtxSynchronize() -> CUresult;
} }

functions! { Runtime {
    __cudaRegisterFatBinary(*const c_void) -> *mut *mut c_void;
    __cudaRegisterFatBinaryEnd(*mut *mut c_void) -> ();
    __cudaRegisterFunction(*mut *mut c_void, *const c_void, *mut c_char, *const c_char, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> ();
    __cudaPushCallConfiguration(dim3, dim3, usize, cudaStream_t) -> c_uint;
    __cudaPopCallConfiguration(*mut dim3, *mut dim3, *mut usize, *mut cudaStream_t) -> cudaError_t;
    cudaGetKernel(*mut CUkernel, *const c_void) -> cudaError_t;
    cudaLaunchKernel(*const c_void, dim3, dim3, Arguments, usize, cudaStream_t) -> cudaError_t;
    cudaLaunchKernelExC(*const v13::cudaLaunchConfig_t, *const c_void, Arguments) -> cudaError_t;
    cudaLaunchCooperativeKernel(*const c_void, dim3, dim3, Arguments, usize, cudaStream_t) -> cudaError_t;
    cudaMalloc(*mut *mut c_void, usize) -> cudaError_t;
    cudaFree(*mut c_void) -> cudaError_t;
    cudaMemcpy(*mut c_void, *const c_void, usize, cudaMemcpyKind) -> cudaError_t;
    cudaMemcpyAsync(*mut c_void, *const c_void, usize, cudaMemcpyKind, cudaStream_t) -> cudaError_t;
    cudaMemcpyAsync_ptsz(*mut c_void, *const c_void, usize, cudaMemcpyKind, cudaStream_t) -> cudaError_t;
    cudaMemset(*mut c_void, c_int, usize) -> cudaError_t;
    cudaMemsetAsync(*mut c_void, c_int, usize, cudaStream_t) -> cudaError_t;
    cudaStreamCreateWithFlags(*mut cudaStream_t, c_uint) -> cudaError_t;
    cudaStreamDestroy(cudaStream_t) -> cudaError_t;
    cudaStreamSynchronize(cudaStream_t) -> cudaError_t;
    cudaStreamQuery(cudaStream_t) -> cudaError_t;
    cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, c_uint) -> cudaError_t;
    cudaStreamBeginCapture(cudaStream_t, c_int) -> cudaError_t;
    cudaStreamEndCapture(cudaStream_t, *mut cudaGraph_t) -> cudaError_t;
    cudaGraphInstantiate(*mut cudaGraphExec_t, cudaGraph_t, u64) -> cudaError_t;
    cudaGraphLaunch(cudaGraphExec_t, cudaStream_t) -> cudaError_t;
    cudaEventCreate(*mut cudaEvent_t) -> cudaError_t;
    cudaEventCreateWithFlags(*mut cudaEvent_t, c_uint) -> cudaError_t;
    cudaEventDestroy(cudaEvent_t) -> cudaError_t;
    cudaEventRecord(cudaEvent_t, cudaStream_t) -> cudaError_t;
    cudaEventQuery(cudaEvent_t) -> cudaError_t;
    cudaEventSynchronize(cudaEvent_t) -> cudaError_t;
    cudaEventElapsedTime(*mut f32, cudaEvent_t, cudaEvent_t) -> cudaError_t;
    cudaDeviceSynchronize() -> cudaError_t;
    cudaGetLastError() -> cudaError_t;
} }

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    // Cargo builds it beside this program.
    let null = std::env::current_exe().unwrap().with_file_name("libhip_null.so");
    // SAFETY: nothing else runs in this process yet.
    unsafe { std::env::set_var("CUDAWAY_DEVICE", &null) };
    let lib = std::env::var_os("LIB").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/cudaway/lib"),
        PathBuf::from,
    );
    let bare = Bare::of(open(&null));
    let driver = Driver::of(open(&lib.join("libcuda.so.1")));
    let runtime = Runtime::of(open(&lib.join("libcudart.so.13")));
    println!("{:<44} {:>8} {:>8} {:>6} {:>6}", "ns", "bare HIP", "CUDAway", "above", "goal");
    let table = Table { words };
    rows(&table, &bare, &driver, &runtime);
}

/// Opens a library for good.
fn open(path: &Path) -> &'static Library {
    // SAFETY: our own libraries, which need no preparation.
    let library = unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
        .unwrap_or_else(|error| panic!("{error}; `cargo xtask build` makes our libraries"));
    Box::leak(Box::new(library))
}

struct Table {
    words: Vec<String>,
}

impl Table {
    /// Measures by turns what `call` and what `bare` take.
    fn row<B, C>(&self, name: &str, goal: f64, bare: impl Fn() -> B, call: impl Fn() -> C) {
        if !self.words.is_empty() && !self.words.iter().any(|word| name.contains(&**word)) {
            return;
        }
        let (mut least_bare, mut least) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..400 {
            least_bare = least_bare.min(round(&bare));
            least = least.min(round(&call));
        }
        let above = least - least_bare;
        let verdict = if above < goal { "" } else { "  missed" };
        println!("{name:<44} {least_bare:8.1} {least:8.1} {above:6.1} {goal:6.0}{verdict}");
    }
}

/// Nanoseconds of one call, of a round short enough to be left alone now and then.
fn round<A>(call: &impl Fn() -> A) -> f64 {
    const CALLS: u32 = 300;
    let start = Instant::now();
    for _ in 0..CALLS {
        std::hint::black_box(call());
    }
    start.elapsed().as_nanos() as f64 / f64::from(CALLS)
}

/// A fat binary with one kernel, as nvcc's generated code registers it.
fn fat_binary() -> *const c_void {
    const PTX: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry good(.param .u64 p)\n{\n    ret;\n}\n";
    let mut text = PTX.as_bytes().to_vec();
    text.resize(PTX.len().next_multiple_of(8) + 8, 0);
    let mut entry = [0u8; 64];
    entry[0..2].copy_from_slice(&1u16.to_le_bytes());
    entry[2..4].copy_from_slice(&0x101u16.to_le_bytes());
    entry[4..8].copy_from_slice(&64u32.to_le_bytes());
    entry[8..16].copy_from_slice(&(text.len() as u64).to_le_bytes());
    entry[0x1a..0x1c].copy_from_slice(&8u16.to_le_bytes());
    entry[0x1c..0x20].copy_from_slice(&80u32.to_le_bytes());
    let mut container = 0xba55_ed50u32.to_le_bytes().to_vec();
    container.extend([1, 0, 16, 0]);
    container.extend(((entry.len() + text.len()) as u64).to_le_bytes());
    container.extend(entry);
    container.extend(text);
    let container = Box::leak(container.into_boxed_slice());
    let wrapper = Box::leak(Box::new([0x1_4662_43b1, container.as_ptr().expose_provenance() as u64, 0u64]));
    ptr::from_ref(wrapper).cast()
}

/// All rows. The null provider looks at nothing but the places it is passed, which are valid.
fn rows(table: &Table, bare: &Bare, driver: &Driver, runtime: &Runtime) {
    let none: *mut c_void = ptr::null_mut();
    let no_arguments: Arguments = ptr::null_mut();
    let ok = |code: cudaError_t| assert_eq!(code.0, 0);
    let (one, block) = (dim3 { x: 1, y: 1, z: 1 }, dim3 { x: 32, y: 1, z: 1 });

    // What the program has: a kernel, a stream, events, memory, a graph of one kernel.
    let host = Box::leak(Box::new(0u8));
    let symbol: *const c_void = ptr::from_ref(host).cast();
    let binary = (runtime.__cudaRegisterFatBinary)(fat_binary());
    let name = c"good".as_ptr();
    let nil = ptr::null_mut();
    (runtime.__cudaRegisterFunction)(binary, symbol, name.cast_mut(), name, -1, none, none, none, none, nil);
    (runtime.__cudaRegisterFatBinaryEnd)(binary);
    let (mut stream, mut event, mut memory) = (nil.cast(), nil.cast(), none);
    ok((runtime.cudaStreamCreateWithFlags)(&mut stream, 1));
    ok((runtime.cudaEventCreate)(&mut event));
    ok((runtime.cudaMalloc)(&mut memory, 4096));
    let at = memory.expose_provenance() as CUdeviceptr;
    let (mut kernel, mut function) = (nil.cast(), nil.cast());
    ok((runtime.cudaGetKernel)(&mut kernel, symbol));
    assert_eq!((driver.cuKernelGetFunction)(&mut function, kernel).0, 0);
    let mut argument = at;
    let mut arguments = [(&raw mut argument).cast::<c_void>()];
    let arguments = arguments.as_mut_ptr();
    let (mut graph, mut exec) = (nil.cast(), nil.cast());
    ok((runtime.cudaStreamBeginCapture)(stream, 0));
    ok((runtime.cudaLaunchKernel)(symbol, one, block, arguments, 0, stream));
    ok((runtime.cudaStreamEndCapture)(stream, &mut graph));
    ok((runtime.cudaGraphInstantiate)(&mut exec, graph, 0));
    let mut bytes = [0u8; 8];
    let bytes: *mut c_void = bytes.as_mut_ptr().cast();

    let launch = || (bare.hipModuleLaunchKernel)(none, 1, 1, 1, 32, 1, 1, 0, none, arguments, no_arguments);
    let mut cluster = [CUlaunchAttribute::default()];
    cluster[0].id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    cluster[0].value.clusterDim = CUlaunchAttributeValue_union__bindgen_ty_1 { x: 1, y: 1, z: 1 };
    let plain = CUlaunchConfig {
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 32,
        blockDimY: 1,
        blockDimZ: 1,
        hStream: stream,
        ..Default::default()
    };
    let clustered = CUlaunchConfig { attrs: cluster.as_mut_ptr(), numAttrs: 1, ..plain };
    let plain_rt = v13::cudaLaunchConfig_t { gridDim: one, blockDim: block, stream, ..Default::default() };
    let clustered_rt =
        v13::cudaLaunchConfig_t { attrs: cluster.as_mut_ptr().cast(), numAttrs: 1, ..plain_rt };
    let as_function = kernel.cast();

    table.row("cuLaunchKernel", LAUNCH, launch, || {
        (driver.cuLaunchKernel)(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, no_arguments)
    });
    table.row("cuLaunchKernel of a CUkernel", LAUNCH, launch, || {
        (driver.cuLaunchKernel)(as_function, 1, 1, 1, 32, 1, 1, 0, stream, arguments, no_arguments)
    });
    table.row("cuLaunchKernelEx", LAUNCH, launch, || {
        (driver.cuLaunchKernelEx)(&plain, function, arguments, no_arguments)
    });
    table.row("cuLaunchKernelEx, a cluster", LAUNCH, launch, || {
        (driver.cuLaunchKernelEx)(&clustered, function, arguments, no_arguments)
    });
    table.row("cuLaunchCooperativeKernel", LAUNCH, launch, || {
        (driver.cuLaunchCooperativeKernel)(function, 1, 1, 1, 32, 1, 1, 0, stream, arguments)
    });
    table.row("cuGraphLaunch, one kernel", LAUNCH, launch, || (driver.cuGraphLaunch)(exec, stream));
    table.row("cudaLaunchKernel", LAUNCH, launch, || {
        (runtime.cudaLaunchKernel)(symbol, one, block, arguments, 0, stream)
    });
    table.row("cudaLaunchKernel, stream 0", LAUNCH, launch, || {
        (runtime.cudaLaunchKernel)(symbol, one, block, arguments, 0, nil.cast())
    });
    table.row("kernel<<<1, 32, 0, stream>>>", LAUNCH, launch, || {
        (runtime.__cudaPushCallConfiguration)(one, block, 0, stream);
        let (mut grid, mut block, mut shared, mut stream) = (one, one, 0, nil.cast());
        (runtime.__cudaPopCallConfiguration)(&mut grid, &mut block, &mut shared, &mut stream);
        (runtime.cudaLaunchKernel)(symbol, grid, block, arguments, shared, stream)
    });
    table.row("cudaLaunchKernelExC", LAUNCH, launch, || {
        (runtime.cudaLaunchKernelExC)(&plain_rt, symbol, arguments)
    });
    table.row("cudaLaunchKernelExC, a cluster", LAUNCH, launch, || {
        (runtime.cudaLaunchKernelExC)(&clustered_rt, symbol, arguments)
    });
    table.row("cudaLaunchCooperativeKernel", LAUNCH, launch, || {
        (runtime.cudaLaunchCooperativeKernel)(symbol, one, block, arguments, 0, stream)
    });
    table.row("cudaGraphLaunch, one kernel", LAUNCH, launch, || (runtime.cudaGraphLaunch)(exec, stream));

    let copy = || (bare.hipMemcpyAsync)(memory, bytes, 8, 1, none);
    table.row("cuMemcpyHtoDAsync_v2, 8 bytes", CALL, copy, || {
        (driver.cuMemcpyHtoDAsync_v2)(at, bytes, 8, stream)
    });
    table.row("cuMemcpyDtoHAsync_v2, 8 bytes", CALL, copy, || {
        (driver.cuMemcpyDtoHAsync_v2)(bytes, at, 8, stream)
    });
    table.row("cuMemcpyDtoDAsync_v2, 8 bytes", CALL, copy, || {
        (driver.cuMemcpyDtoDAsync_v2)(at, at + 64, 8, stream)
    });
    table.row("cuMemcpyAsync, device to device, 8 bytes", CALL, copy, || {
        (driver.cuMemcpyAsync)(at, at + 64, 8, stream)
    });
    for (name, to, from, kind) in [
        ("host to device", memory, bytes, cudaMemcpyKind::cudaMemcpyHostToDevice),
        ("device to host", bytes, memory, cudaMemcpyKind::cudaMemcpyDeviceToHost),
        ("device to device", memory, memory.wrapping_byte_add(64), cudaMemcpyKind::cudaMemcpyDeviceToDevice),
        ("default", memory, bytes, cudaMemcpyKind::cudaMemcpyDefault),
        ("default, both known", memory, memory.wrapping_byte_add(64), cudaMemcpyKind::cudaMemcpyDefault),
    ] {
        table.row(&format!("cudaMemcpyAsync, {name}, 8 bytes"), CALL, copy, || {
            (runtime.cudaMemcpyAsync)(to, from, 8, kind, stream)
        });
    }
    table.row("cudaMemcpyAsync_ptsz, stream 0, 8 bytes", CALL, copy, || {
        let kind = cudaMemcpyKind::cudaMemcpyHostToDevice;
        (runtime.cudaMemcpyAsync_ptsz)(memory, bytes, 8, kind, nil.cast())
    });
    let copy = || (bare.hipMemcpy)(memory, bytes, 8, 1);
    table.row("cuMemcpyHtoD_v2, 8 bytes", CALL, copy, || (driver.cuMemcpyHtoD_v2)(at, bytes, 8));
    table.row("cudaMemcpy, host to device, 8 bytes", CALL, copy, || {
        let kind = cudaMemcpyKind::cudaMemcpyHostToDevice;
        (runtime.cudaMemcpy)(memory, bytes, 8, kind)
    });
    table.row("cudaMemcpy, default, 8 bytes", CALL, copy, || {
        (runtime.cudaMemcpy)(memory, bytes, 8, cudaMemcpyKind::cudaMemcpyDefault)
    });

    let fill = || (bare.hipMemsetD8Async)(memory, 1, 8, none);
    table.row("cuMemsetD8Async, 8 bytes", CALL, fill, || (driver.cuMemsetD8Async)(at, 1, 8, stream));
    table.row("cudaMemsetAsync, 8 bytes", CALL, fill, || (runtime.cudaMemsetAsync)(memory, 1, 8, stream));
    table.row("cudaMemset, 8 bytes", CALL, fill, || (runtime.cudaMemset)(memory, 1, 8));
    let allocation = || {
        let mut at = none;
        ((bare.hipMalloc)(&mut at, 64), (bare.hipFree)(at))
    };
    // Two calls.
    table.row("cuMemAlloc_v2 and cuMemFree_v2", 2.0 * CALL, allocation, || {
        let mut at = 0;
        ((driver.cuMemAlloc_v2)(&mut at, 64), (driver.cuMemFree_v2)(at))
    });
    table.row("cudaMalloc and cudaFree", 2.0 * CALL, allocation, || {
        let mut at = none;
        ((runtime.cudaMalloc)(&mut at, 64), (runtime.cudaFree)(at))
    });

    let query = || (bare.hipStreamQuery)(none);
    table.row("cuStreamQuery, not ready", CALL, query, || (driver.cuStreamQuery)(stream));
    table.row("cudaStreamQuery, not ready", CALL, query, || (runtime.cudaStreamQuery)(stream));
    (runtime.cudaGetLastError)();
    let wait = || (bare.hipStreamSynchronize)(none);
    table.row("cuStreamSynchronize", CALL, wait, || (driver.cuStreamSynchronize)(stream));
    table.row("cudaStreamSynchronize", CALL, wait, || (runtime.cudaStreamSynchronize)(stream));
    let wait = || (bare.hipStreamWaitEvent)(none, none, 0);
    table.row("cuStreamWaitEvent", CALL, wait, || (driver.cuStreamWaitEvent)(stream, event, 0));
    table.row("cudaStreamWaitEvent", CALL, wait, || (runtime.cudaStreamWaitEvent)(stream, event, 0));
    let wait = || (bare.hipDeviceSynchronize)();
    table.row("cuCtxSynchronize", CALL, wait, || (driver.cuCtxSynchronize)());
    table.row("cudaDeviceSynchronize", CALL, wait, || (runtime.cudaDeviceSynchronize)());
    let both = || {
        let mut stream = none;
        ((bare.hipStreamCreateWithFlags)(&mut stream, 1), (bare.hipStreamDestroy)(stream))
    };
    table.row("cudaStreamCreateWithFlags, cudaStreamDestroy", 2.0 * CALL, both, || {
        let mut stream = nil.cast();
        ((runtime.cudaStreamCreateWithFlags)(&mut stream, 1), (runtime.cudaStreamDestroy)(stream))
    });

    let record = || (bare.hipEventRecord)(none, none);
    table.row("cuEventRecord", CALL, record, || (driver.cuEventRecord)(event, stream));
    table.row("cudaEventRecord", CALL, record, || (runtime.cudaEventRecord)(event, stream));
    let query = || (bare.hipEventQuery)(none);
    table.row("cuEventQuery", CALL, query, || (driver.cuEventQuery)(event));
    table.row("cudaEventQuery", CALL, query, || (runtime.cudaEventQuery)(event));
    let wait = || (bare.hipEventSynchronize)(none);
    table.row("cuEventSynchronize", CALL, wait, || (driver.cuEventSynchronize)(event));
    table.row("cudaEventSynchronize", CALL, wait, || (runtime.cudaEventSynchronize)(event));
    let elapsed = || {
        let mut ms = 0.0;
        (bare.hipEventElapsedTime)(&mut ms, none, none)
    };
    table.row("cudaEventElapsedTime", CALL, elapsed, || {
        let mut ms = 0.0;
        (runtime.cudaEventElapsedTime)(&mut ms, event, event)
    });
    let both = || {
        let mut event = none;
        ((bare.hipEventCreateWithFlags)(&mut event, 2), (bare.hipEventDestroy)(event))
    };
    table.row("cudaEventCreateWithFlags, cudaEventDestroy", 2.0 * CALL, both, || {
        let mut event = nil.cast();
        ((runtime.cudaEventCreateWithFlags)(&mut event, 2), (runtime.cudaEventDestroy)(event))
    });
}
