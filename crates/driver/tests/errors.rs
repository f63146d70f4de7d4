//! The documented errors, over a provider that never fails: every error here is the driver's own.

mod null;

use core::ffi::c_void;
use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use cuda_abi::*;
use driver::Error;
use driver::api::{
    context, copy, device, event, execution, legacy_launch, library, link, memory, memset, module, pointer,
    pool, stream,
};

/// One test at a time: the live-object counter is the process's.
fn exclusive() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    static CACHE: std::sync::Once = std::sync::Once::new();
    CACHE.call_once(|| {
        let _ = std::fs::remove_dir_all(cache_folder());
        // SAFETY: nobody reads the environment before the first call.
        unsafe { std::env::set_var("CUDAWAY_CACHE_DIR", cache_folder()) };
    });
    null::start();
    // Threads of the test harness are reused: begin with an empty stack.
    while context::cuCtxPopCurrent_v2(None.into()).is_ok() {}
    guard
}

fn out<T>(call: impl FnOnce(border::Out<'_, T>) -> driver::Result) -> Result<T, Error>
where
    T: Default,
{
    let mut value = T::default();
    call((&mut value).into()).map(|()| value)
}

fn out_pointer<T>(call: impl FnOnce(border::Out<'_, *mut T>) -> driver::Result) -> Result<*mut T, Error> {
    let mut value: *mut T = core::ptr::null_mut();
    call((&mut value).into()).map(|()| value)
}

/// A new context, current until dropped; checks that nothing made in it outlives it.
struct Scope {
    handle: CUcontext,
    live_before: i64,
}

fn scope() -> Scope {
    let live_before = null::LIVE.load(Ordering::Relaxed);
    let handle = out_pointer(|pctx| context::cuCtxCreate_v2(pctx, 0, 0)).unwrap();
    Scope { handle, live_before }
}

impl Drop for Scope {
    fn drop(&mut self) {
        if std::thread::panicking() {
            return;
        }
        context::cuCtxDestroy_v2(self.handle).unwrap();
        assert_eq!(null::LIVE.load(Ordering::Relaxed), self.live_before, "the context left objects behind");
    }
}

fn load(ptx: &core::ffi::CStr) -> Result<CUmodule, Error> {
    // SAFETY: an image, which lives as long as the test.
    out_pointer(|module| unsafe { module::cuModuleLoadData(module, ptx.as_ptr().cast()) })
}

#[test]
fn without_a_context_calls_that_need_one_say_so() {
    let _one = exclusive();
    assert_eq!(out(|dptr| memory::cuMemAlloc_v2(dptr, 16)), Err(Error::InvalidContext));
    assert_eq!(context::cuCtxSynchronize(), Err(Error::InvalidContext));
    assert_eq!(out_pointer(|s| stream::cuStreamCreate(s, 0)), Err(Error::InvalidContext));
    assert_eq!(load(null::PTX), Err(Error::InvalidContext));
    assert_eq!(context::cuCtxPopCurrent_v2(None.into()), Err(Error::InvalidContext));
    assert_eq!(out_pointer(context::cuCtxGetCurrent), Ok(core::ptr::null_mut()));
}

#[test]
fn devices_are_numbered_from_zero_and_no_further() {
    let _one = exclusive();
    assert_eq!(out(device::cuDeviceGetCount), Ok(2));
    assert_eq!(out(|d| device::cuDeviceGet(d, 1)), Ok(1));
    assert_eq!(out(|d| device::cuDeviceGet(d, 2)), Err(Error::InvalidDevice));
    assert_eq!(out(|d| device::cuDeviceGet(d, -1)), Err(Error::InvalidDevice));
    let attribute = |number| out(|pi| device::cuDeviceGetAttribute(pi, CUdevice_attribute(number), 0));
    assert_eq!(attribute(10), Ok(32), "warp size");
    assert_eq!((attribute(75), attribute(76)), (Ok(9), Ok(0)), "compute capability");
    assert_eq!(attribute(83), Ok(1), "managed memory");
    assert_eq!(attribute(0), Err(Error::InvalidValue("attrib")));
    assert_eq!(attribute(5000), Err(Error::InvalidValue("attrib")));
}

#[test]
fn every_device_attribute_has_an_answer() {
    let _one = exclusive();
    for number in 1..=161 {
        out(|pi| device::cuDeviceGetAttribute(pi, CUdevice_attribute(number), 0)).unwrap();
    }
}

#[test]
fn handles_that_are_not_alive_are_refused_and_never_followed() {
    let _one = exclusive();
    let _scope = scope();
    let mut local = 0u64;
    let foreign = &raw mut local;
    assert_eq!(stream::cuStreamSynchronize(foreign.cast()), Err(Error::InvalidHandle("hStream")));
    assert_eq!(event::cuEventQuery(foreign.cast()), Err(Error::InvalidHandle("hEvent")));
    assert_eq!(module::cuModuleUnload(foreign.cast()), Err(Error::InvalidHandle("hmod")));
    assert_eq!(context::cuCtxSetCurrent(foreign.cast()), Err(Error::InvalidContext));
    assert_eq!(library::cuLibraryUnload(foreign.cast()), Err(Error::InvalidHandle("library")));

    let stream = out_pointer(|s| stream::cuStreamCreate(s, 0)).unwrap();
    assert_eq!(
        event::cuEventQuery(stream.cast()),
        Err(Error::InvalidHandle("hEvent")),
        "a stream is no event"
    );
    stream::cuStreamDestroy_v2(stream).unwrap();
    assert_eq!(stream::cuStreamDestroy_v2(stream), Err(Error::InvalidHandle("hStream")), "destroyed twice");
}

#[test]
fn a_pointer_cuda_never_gave_out_is_an_invalid_value() {
    let _one = exclusive();
    let _scope = scope();
    let mut host = [0u8; 16];
    let here = host.as_mut_ptr();
    let at = here.expose_provenance() as CUdeviceptr;
    assert_eq!(memory::cuMemFree_v2(at), Err(Error::InvalidValue("dptr")));
    assert_eq!(memory::cuMemFree_v2(0), Ok(()));
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    assert_eq!(unsafe { copy::cuMemcpyHtoD_v2(at, here.cast(), 16) }, Err(Error::InvalidValue("dstDevice")));
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    assert_eq!(unsafe { copy::cuMemcpyDtoH_v2(here.cast(), 0, 16) }, Err(Error::InvalidValue("srcDevice")));
    assert_eq!(memset::cuMemsetD8_v2(at, 1, 4), Err(Error::InvalidValue("dstDevice")));

    let device = out(|dptr| memory::cuMemAlloc_v2(dptr, 16)).unwrap();
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    let copied = unsafe { copy::cuMemcpyHtoD_v2(device, core::ptr::null(), 16) };
    assert_eq!(copied, Err(Error::InvalidValue("srcHost")));
    assert_eq!(
        // SAFETY: the host's memory is large enough, and lives until the copy has been made.
        unsafe { copy::cuMemcpyHtoD_v2(device, here.cast(), 17) },
        Err(Error::InvalidValue("dstDevice")),
        "too long"
    );
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    assert_eq!(unsafe { copy::cuMemcpyHtoD_v2(device + 8, here.cast(), 8) }, Ok(()));
    assert_eq!(memory::cuMemFree_v2(device + 8), Err(Error::InvalidValue("dptr")), "inside an allocation");
    assert_eq!(memory::cuMemFree_v2(device), Ok(()));
    assert_eq!(memory::cuMemFree_v2(device), Err(Error::InvalidValue("dptr")), "freed twice");
    assert_eq!(out(|dptr| memory::cuMemAlloc_v2(dptr, 0)), Err(Error::InvalidValue("bytesize")));
    assert_eq!(out(|dptr| memory::cuMemAlloc_v2(dptr, 1 << 50)), Err(Error::OutOfMemory));
}

/// Numba reads what it filled with no other call between.
#[test]
fn the_host_waits_for_a_fill_of_memory_that_it_sees() {
    let _one = exclusive();
    let _scope = scope();
    let device = out(|dptr| memory::cuMemAlloc_v2(dptr, 64)).unwrap();
    let managed = out(|dptr| memory::cuMemAllocManaged(dptr, 64, 1)).unwrap();
    let pinned = out(|p| memory::cuMemHostAlloc(p, 64, 0)).unwrap().expose_provenance() as CUdeviceptr;
    for (at, waits) in [(device, 0), (managed, 1), (pinned, 1)] {
        let fills: [&dyn Fn() -> driver::Result; 3] =
            [&|| memset::cuMemsetD8_v2(at, 1, 64), &|| memset::cuMemsetD32_v2(at, 1, 16), &|| {
                memset::cuMemsetD2D16_v2(at, 16, 1, 2, 4)
            }];
        for fill in fills {
            let before = null::WAITS.load(Ordering::Relaxed);
            fill().unwrap();
            assert_eq!(null::WAITS.load(Ordering::Relaxed) - before, waits, "{at:#x}");
        }
        let before = null::WAITS.load(Ordering::Relaxed);
        memset::cuMemsetD8Async(at, 1, 64, core::ptr::null_mut()).unwrap();
        assert_eq!(null::WAITS.load(Ordering::Relaxed), before, "an asynchronous fill never waits");
    }
}

#[test]
fn copies_and_fills_move_the_bytes_they_name() {
    let _one = exclusive();
    let _scope = scope();
    let device = out(|dptr| memory::cuMemAlloc_v2(dptr, 64)).unwrap();
    memset::cuMemsetD32_v2(device, 7, 16).unwrap();
    memset::cuMemsetD2D16_v2(device, 16, 9, 2, 2).unwrap();
    let mut host = [0u16; 32];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), device, 64) }.unwrap();
    let mut expected = [7, 0].repeat(16);
    (expected[0], expected[1], expected[8], expected[9]) = (9, 9, 9, 9);
    assert_eq!(host.as_slice(), expected);

    // Two rows of four bytes out of an 8-byte pitch.
    let source: Vec<u8> = (0..16).collect();
    let copy_2d = CUDA_MEMCPY2D {
        srcXInBytes: 2,
        srcY: 0,
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_HOST,
        srcHost: source.as_ptr().cast(),
        srcPitch: 8,
        dstXInBytes: 0,
        dstY: 1,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: device,
        dstPitch: 4,
        WidthInBytes: 4,
        Height: 2,
        ..Default::default()
    };
    copy::cuMemcpy2D_v2(Some(&copy_2d)).unwrap();
    let mut bytes = [0u8; 12];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoH_v2(bytes.as_mut_ptr().cast(), device, 12) }.unwrap();
    assert_eq!(bytes[4..], [2, 3, 4, 5, 10, 11, 12, 13]);
    let narrow = CUDA_MEMCPY2D { srcPitch: 5, ..copy_2d };
    assert!(matches!(copy::cuMemcpy2D_v2(Some(&narrow)), Err(Error::InvalidValue(_))));
    let outside = CUDA_MEMCPY2D { dstY: 15, ..copy_2d };
    assert_eq!(copy::cuMemcpy2D_v2(Some(&outside)), Err(Error::InvalidValue("dst")));
}

#[test]
fn a_module_with_a_bad_kernel_gives_its_good_one() {
    let _one = exclusive();
    let _scope = scope();
    let mut log = [0u8; 512];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), core::ptr::without_provenance_mut(log.len())];
    let module = out_pointer(|m| {
        let image = null::PTX.as_ptr().cast();
        // SAFETY: what the arguments point to is this test's.
        unsafe { module::cuModuleLoadDataEx(m, image, 2, options.as_mut_ptr(), values.as_mut_ptr()) }
    })
    .unwrap();
    let get = |name: &core::ffi::CStr| out_pointer(|f| module::cuModuleGetFunction(f, module, name));
    let good = get(c"good").unwrap();
    assert_eq!(get(c"good"), Ok(good), "the same handle every time");
    assert_eq!(get(c"bad"), Err(Error::InvalidPtx));
    assert_eq!(get(c"missing"), Err(Error::NotFound));
    let text = std::str::from_utf8(&log[..values[1].addr() - 1]).unwrap();
    assert!(text.contains("ptx:15:") && text.contains("frobnicate"), "{text:?}");

    let mut bytes = 0;
    let mut at = 0;
    module::cuModuleGetGlobal_v2(Some(&mut at).into(), Some(&mut bytes).into(), module, c"numbers").unwrap();
    assert_eq!(bytes, 16);
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    let copied = unsafe { copy::cuMemcpyHtoD_v2(at, log.as_ptr().cast(), 16) };
    assert_eq!(copied, Ok(()), "a variable is device memory");
    let none = module::cuModuleGetGlobal_v2(None.into(), None.into(), module, c"nothing");
    assert_eq!(none, Err(Error::NotFound));
    module::cuModuleUnload(module).unwrap();
    assert!(
        matches!(launch(good, [1; 3], [1; 3], 0), Err(Error::InvalidHandle(_))),
        "the kernel went with its module"
    );
}

/// A module with these kernels in it, and so much else that a load does not look into bodies.
fn long(kernels: &str) -> std::ffi::CString {
    let filler: String = (0..3000)
        .map(|n| {
            format!(".visible .entry filler_{n}(.param .u64 p)\n{{\n\t.reg .b32 %r<3>; // }}\n\tret;\n}}\n")
        })
        .collect();
    std::ffi::CString::new(format!(".version 8.0\n.target sm_80\n.address_size 64\n{filler}{kernels}"))
        .unwrap()
}

const BAD: &str = ".visible .entry bad(.param .u64 p) { frobnicate.u32 %r1, %r2; ret; }
.extern .func nowhere();
.extern .func cnpGetParameterBufferV2();
.visible .entry bad_call() { call nowhere; ret; }
.visible .entry bad_launch() { call cnpGetParameterBufferV2; ret; }
.visible .entry good(.param .u64 p) { ret; }
";

#[test]
fn a_bad_kernel_of_a_long_text_is_an_error_when_it_is_asked_for() {
    let _one = exclusive();
    let _scope = scope();
    let text = long(BAD);
    let module = load(&text).unwrap();
    let get = |name: &core::ffi::CStr| out_pointer(|f| module::cuModuleGetFunction(f, module, name));
    assert_eq!(get(c"bad"), Err(Error::InvalidPtx));
    assert_eq!(get(c"bad"), Err(Error::InvalidPtx), "the second time too");
    assert_eq!(get(c"bad_call"), Err(Error::NoBinaryForGpu), "what is defined nowhere");
    assert_eq!(get(c"bad_launch"), Err(Error::CdpNotSupported));
    let good = get(c"good").unwrap();
    assert_eq!(out(|count| module::cuModuleGetFunctionCount(count, module)), Ok(3004));
    let mut functions = [core::ptr::null_mut(); 3004];
    // SAFETY: what the arguments point to is this test's.
    unsafe { module::cuModuleEnumerateFunctions(functions.as_mut_ptr(), 3004, module) }.unwrap();
    assert_eq!(functions[3000], good, "the bad ones are left out");
    assert!(functions[3001].is_null());
    module::cuModuleUnload(module).unwrap();

    let library = out_pointer(|l| {
        let none = core::ptr::null_mut::<c_void>();
        // SAFETY: what the arguments point to is this test's.
        unsafe {
            library::cuLibraryLoadData(
                l,
                text.as_ptr().cast(),
                none.cast(),
                none.cast(),
                0,
                none.cast(),
                none.cast(),
                0,
            )
        }
    })
    .unwrap();
    let kernel = |name: &core::ffi::CStr| {
        out_pointer(|k| library::cuLibraryGetKernel(k, library, name))
            .and_then(|kernel| out_pointer(|f| library::cuKernelGetFunction(f, kernel)))
    };
    assert_eq!(kernel(c"bad"), Err(Error::InvalidPtx));
    kernel(c"good").unwrap();
    let mut kernels = [core::ptr::null_mut(); 3004];
    // SAFETY: what the arguments point to is this test's.
    unsafe { library::cuLibraryEnumerateKernels(kernels.as_mut_ptr(), 3004, library) }.unwrap();
    assert!(!kernels[3000].is_null() && kernels[3001].is_null());
    library::cuLibraryUnload(library).unwrap();
}

#[test]
fn a_library_says_what_is_wrong_with_its_code_when_some_is_needed() {
    let _one = exclusive();
    let _scope = scope();
    let load = |code: *const c_void| {
        let none = core::ptr::null_mut::<c_void>();
        out_pointer(|l| {
            // SAFETY: what the arguments point to is this test's.
            unsafe {
                library::cuLibraryLoadData(l, code, none.cast(), none.cast(), 0, none.cast(), none.cast(), 0)
            }
        })
    };
    assert_eq!(load(core::ptr::null()), Err(Error::InvalidValue("code")));
    assert_eq!(load(core::ptr::without_provenance(4096)), Err(Error::InvalidValue("image")));
    for (code, wrong) in [
        (c"this is no image", Error::InvalidImage),
        (c".version 8.0\n.target sm_80\n.visible .entry broken( {", Error::InvalidPtx),
    ] {
        let library = load(code.as_ptr().cast()).unwrap();
        assert_eq!(out_pointer(|k| library::cuLibraryGetKernel(k, library, c"broken")), Err(wrong));
        assert_eq!(out(|n| library::cuLibraryGetKernelCount(n, library)), Err(wrong));
        assert_eq!(out_pointer(|m| library::cuLibraryGetModule(m, library)), Err(wrong));
        library::cuLibraryUnload(library).unwrap();
    }
}

#[test]
fn what_is_wrong_outside_of_bodies_is_an_error_of_the_load_however_long_the_text_is() {
    let _one = exclusive();
    let _scope = scope();
    assert_eq!(load(&long(".visible .entry k( { ret; }")), Err(Error::InvalidPtx));
    assert_eq!(load(&long(".visible .entry k() { ret; } }")), Err(Error::InvalidPtx));
    assert_eq!(
        load(&long(".visible .entry k() { { ret; }\n.visible .global .u32 x;\n")),
        Err(Error::InvalidPtx)
    );
    assert_eq!(load(&long(".global .u32 x = nothing;")), Err(Error::InvalidPtx));
    load(&long(".visible .entry k() { ret; }")).unwrap();
}

/// The result of a load with a buffer for the error log, and what is in that.
fn load_with_log(text: &core::ffi::CStr) -> (Result<CUmodule, Error>, String) {
    let mut log = [0u8; 4096];
    let mut options =
        [CUjit_option::CU_JIT_ERROR_LOG_BUFFER, CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values: [*mut c_void; 2] =
        [log.as_mut_ptr().cast(), core::ptr::without_provenance_mut(log.len())];
    let loaded = out_pointer(|m| {
        // SAFETY: what the arguments point to is this test's.
        unsafe {
            module::cuModuleLoadDataEx(m, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
        }
    });
    let text = log[..values[1].addr()].strip_suffix(b"\0").unwrap_or_default();
    (loaded, String::from_utf8(text.to_vec()).unwrap())
}

#[test]
fn a_load_that_gives_a_log_buffer_looks_into_every_kernel() {
    let _one = exclusive();
    let _scope = scope();
    let (loaded, log) = load_with_log(&long(BAD));
    loaded.unwrap();
    assert!(log.contains("frobnicate") && log.contains("'nowhere' is not defined"), "{log}");
    // Made while the program runs, and wrong: the load says so, and what.
    let short =
        c".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k() {\n\tadd.s32 %r1 %r2;\n}\n";
    assert_eq!(load(short), Err(Error::InvalidPtx), "without a buffer too");
    let (loaded, log) = load_with_log(short);
    assert_eq!(loaded, Err(Error::InvalidPtx));
    assert!(log.starts_with("ptx:5:14: error: expected"), "{log}");
}

/// The cache of this test; empty when it begins.
fn cache_folder() -> &'static std::path::Path {
    std::path::Path::new(concat!(env!("CARGO_TARGET_TMPDIR"), "/driver-errors"))
}

#[test]
fn a_text_with_nothing_wrong_in_it_is_remembered_and_no_other() {
    let _one = exclusive();
    let _scope = scope();
    let text = |instruction: &str| {
        let line = format!("\t{instruction} %r1, %r1, 1;\n").repeat(400);
        let body = format!(".visible .entry k() {{\n\t.reg .b32 %r<2>;\n{line}\tret;\n}}\n");
        std::ffi::CString::new(format!(".version 8.0\n.target sm_80\n{body}")).unwrap()
    };
    let n_entries = || {
        let folders = std::fs::read_dir(cache_folder()).into_iter().flatten().flatten();
        folders.filter_map(|folder| Some(std::fs::read_dir(folder.path()).ok()?.count())).sum::<usize>()
    };
    let before = n_entries();
    for _ in 0..2 {
        let (loaded, log) = load_with_log(&text("add.s32"));
        loaded.unwrap();
        assert_eq!((log.as_str(), n_entries()), ("", before + 1));
    }
    for _ in 0..2 {
        let (loaded, log) = load_with_log(&text("add.s33"));
        assert_eq!(loaded, Err(Error::InvalidPtx));
        assert!(log.starts_with("ptx:5:2: error: instruction 'add.s33' is not supported"), "{log}");
        assert_eq!(n_entries(), before + 1);
    }
}

#[test]
fn an_image_of_no_known_kind_is_invalid_and_ptx_that_does_not_parse_is_invalid_ptx() {
    let _one = exclusive();
    let _scope = scope();
    assert_eq!(load(c"this is no image"), Err(Error::InvalidImage));
    assert_eq!(load(c".version 8.0\n.target sm_80\n.visible .entry broken( {"), Err(Error::InvalidPtx));
    let cubin = {
        let mut header = [0u8; 64];
        header[..4].copy_from_slice(b"\x7fELF");
        header[18] = 190;
        header
    };
    // SAFETY: an image, which lives as long as the test.
    let loaded = out_pointer(|m| unsafe { module::cuModuleLoadData(m, cubin.as_ptr().cast()) });
    assert_eq!(loaded, Err(Error::NoBinaryForGpu));
    let nowhere = core::ptr::without_provenance(4096);
    // SAFETY: no image: the kernel says that nothing is mapped there.
    let loaded = out_pointer(|m| unsafe { module::cuModuleLoadData(m, nowhere) });
    assert_eq!(loaded, Err(Error::InvalidValue("image")));
}

fn launch(function: CUfunction, grid: [u32; 3], block: [u32; 3], shared_bytes: u32) -> driver::Result {
    let mut argument = 0u64;
    let mut parameters = [(&raw mut argument).cast::<c_void>()];
    // SAFETY: the parameters are the kernel's, or none.
    unsafe {
        execution::cuLaunchKernel(
            function,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            shared_bytes,
            core::ptr::null_mut(),
            parameters.as_mut_ptr(),
            core::ptr::null_mut(),
        )
    }
}

#[test]
fn a_launch_beyond_the_devices_bounds_is_an_invalid_value() {
    let _one = exclusive();
    let _scope = scope();
    let module = load(null::PTX).unwrap();
    let good = out_pointer(|f| module::cuModuleGetFunction(f, module, c"good")).unwrap();
    let before = null::LAUNCHES.load(Ordering::Relaxed);
    for (grid, block, shared_bytes) in [
        ([0, 1, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1, 0, 1], 0),
        ([1, 65536, 1], [1, 1, 1], 0),
        ([1, 1, 1], [1025, 1, 1], 0),
        ([1, 1, 1], [64, 32, 1], 0),
        ([1, 1, 1], [1, 1, 65], 0),
        ([1, 1, 1], [1, 1, 1], 65537),
    ] {
        let answer = launch(good, grid, block, shared_bytes);
        assert!(
            matches!(answer, Err(Error::InvalidValue(_))),
            "{grid:?} {block:?} {shared_bytes}: {answer:?}"
        );
    }
    assert_eq!(null::LAUNCHES.load(Ordering::Relaxed), before);
    launch(good, [2, 3, 4], [8, 8, 8], 1024).unwrap();
    assert_eq!(null::LAUNCHES.load(Ordering::Relaxed), before + 1);
}

#[test]
fn more_shared_memory_than_every_block_gets_has_to_be_asked_for() {
    let _one = exclusive();
    let _scope = scope();
    let module = load(null::PTX).unwrap();
    let good = out_pointer(|f| module::cuModuleGetFunction(f, module, c"good")).unwrap();
    let one = [1, 1, 1];
    launch(good, one, one, 49152).unwrap();
    assert!(matches!(launch(good, one, one, 49153), Err(Error::InvalidValue(_))));
    let attribute = cuda_abi::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    module::cuFuncSetAttribute(good, attribute, 65536).unwrap();
    launch(good, one, one, 65536).unwrap();
    module::cuFuncSetAttribute(good, attribute, 100).unwrap();
    assert!(matches!(launch(good, one, one, 101), Err(Error::InvalidValue(_))));
}

#[test]
fn a_parameter_buffer_reaches_hip_with_hips_end_tag() {
    let _one = exclusive();
    let _scope = scope();
    let module = load(null::PTX).unwrap();
    let good = out_pointer(|f| module::cuModuleGetFunction(f, module, c"good")).unwrap();
    let (mut buffer, mut size) = ([0u8; 8], 8usize);
    let mut extra = [
        CU_LAUNCH_PARAM_BUFFER_POINTER,
        buffer.as_mut_ptr().cast(),
        CU_LAUNCH_PARAM_BUFFER_SIZE,
        (&raw mut size).cast(),
        CU_LAUNCH_PARAM_END,
    ];
    let none = core::ptr::null_mut();
    // SAFETY: the parameters are the kernel's, or none.
    unsafe {
        execution::cuLaunchKernel(good, 1, 1, 1, 1, 1, 1, 0, none, core::ptr::null_mut(), extra.as_mut_ptr())
    }
    .unwrap();
    assert_eq!(null::LAST_EXTRA_END.load(Ordering::Relaxed), 3);
    let mut no_size = [CU_LAUNCH_PARAM_BUFFER_POINTER, buffer.as_mut_ptr().cast(), CU_LAUNCH_PARAM_END];
    // SAFETY: the parameters are the kernel's, or none.
    let answer = unsafe {
        execution::cuLaunchKernel(
            good,
            1,
            1,
            1,
            1,
            1,
            1,
            0,
            none,
            core::ptr::null_mut(),
            no_size.as_mut_ptr(),
        )
    };
    assert_eq!(answer, Err(Error::InvalidValue("extra")));
}

#[test]
fn a_librarys_kernel_launches_in_whatever_context_is_current() {
    let _one = exclusive();
    let _first = scope();
    let library = out_pointer(|l| {
        let none = core::ptr::null_mut();
        // SAFETY: what the arguments point to is this test's.
        unsafe {
            library::cuLibraryLoadData(
                l,
                null::PTX.as_ptr().cast(),
                none,
                none.cast(),
                0,
                none.cast(),
                none.cast(),
                0,
            )
        }
    })
    .unwrap();
    let kernel = out_pointer(|k| library::cuLibraryGetKernel(k, library, c"good")).unwrap();
    launch(kernel.cast(), [1; 3], [1; 3], 0).unwrap();
    {
        let _second = scope();
        launch(kernel.cast(), [1; 3], [1; 3], 0).unwrap();
    }
    launch(kernel.cast(), [1; 3], [1; 3], 0).unwrap();
    let mut name: *const core::ffi::c_char = core::ptr::null();
    library::cuKernelGetName((&mut name).into(), kernel).unwrap();
    // SAFETY: the name lives as long as the library.
    assert_eq!(unsafe { core::ffi::CStr::from_ptr(name) }, c"good");
    library::cuLibraryUnload(library).unwrap();
    assert!(matches!(launch(kernel.cast(), [1; 3], [1; 3], 0), Err(Error::InvalidHandle(_))));
}

#[test]
fn linked_ptx_loads_as_a_module() {
    let _one = exclusive();
    let _scope = scope();
    let none = core::ptr::null_mut();
    // SAFETY: what the arguments point to is this test's.
    let state = out_pointer(|s| unsafe { link::cuLinkCreate_v2(0, none, none.cast(), s) }).unwrap();
    let text = null::PTX;
    let add = |kind| {
        let data = text.as_ptr().cast_mut().cast();
        let name = c"one.ptx".as_ptr();
        // SAFETY: what the arguments point to is this test's.
        unsafe {
            link::cuLinkAddData_v2(state, kind, data, text.count_bytes() + 1, name, 0, none, none.cast())
        }
    };
    add(CUjitInputType::CU_JIT_INPUT_PTX).unwrap();
    assert!(matches!(add(CUjitInputType::CU_JIT_INPUT_NVVM), Err(Error::NotSupported(_))));
    let mut size = 0;
    let image = out_pointer(|i| link::cuLinkComplete(state, i, Some(&mut size).into())).unwrap();
    assert!(size > text.count_bytes());
    // SAFETY: an image, which lives as long as the test.
    let module = out_pointer(|m| unsafe { module::cuModuleLoadData(m, image) }).unwrap();
    link::cuLinkDestroy(state).unwrap();
    out_pointer(|f| module::cuModuleGetFunction(f, module, c"good")).unwrap();
}

#[test]
fn contexts_stack_per_thread_and_a_destroyed_one_is_named() {
    let _one = exclusive();
    let first = out_pointer(|c| context::cuCtxCreate_v2(c, 0, 0)).unwrap();
    let second = out_pointer(|c| context::cuCtxCreate_v2(c, 0, 1)).unwrap();
    assert_eq!(out(context::cuCtxGetDevice), Ok(1));
    std::thread::spawn(move || {
        assert_eq!(
            out_pointer(context::cuCtxGetCurrent),
            Ok(core::ptr::null_mut()),
            "another thread's stack"
        );
        let _ = first;
    })
    .join()
    .unwrap();
    let mut popped = core::ptr::null_mut();
    context::cuCtxPopCurrent_v2(Some(&mut popped).into()).unwrap();
    assert_eq!(popped, second);
    assert_eq!(out_pointer(context::cuCtxGetCurrent), Ok(first));
    context::cuCtxSetCurrent(second).unwrap();
    assert_eq!(out(|dptr| memory::cuMemAlloc_v2(dptr, 16)).map(|_| ()), Ok(()));
    assert_eq!(null::DEVICE.load(Ordering::Relaxed), 1, "memory went to the second device");

    // Current here, destroyed by another thread.
    let address = second.addr();
    std::thread::spawn(move || context::cuCtxDestroy_v2(core::ptr::without_provenance_mut(address)).unwrap())
        .join()
        .unwrap();
    assert_eq!(out(|dptr| memory::cuMemAlloc_v2(dptr, 16)), Err(Error::ContextIsDestroyed));
    assert_eq!(context::cuCtxSetCurrent(second), Err(Error::InvalidContext));
    context::cuCtxDestroy_v2(first).unwrap();
}

#[test]
fn a_primary_context_lives_from_its_first_retain_to_its_last_release() {
    let _one = exclusive();
    let live = null::LIVE.load(Ordering::Relaxed);
    let state = || {
        let (mut flags, mut active) = (9, 9);
        device::cuDevicePrimaryCtxGetState(0, (&mut flags).into(), (&mut active).into()).unwrap();
        active
    };
    assert_eq!(state(), 0);
    let primary = out_pointer(|c| device::cuDevicePrimaryCtxRetain(c, 0)).unwrap();
    assert_eq!(out_pointer(|c| device::cuDevicePrimaryCtxRetain(c, 0)), Ok(primary));
    assert_eq!(state(), 1);
    context::cuCtxSetCurrent(primary).unwrap();
    assert_eq!(
        context::cuCtxDestroy_v2(primary),
        Err(Error::InvalidContext),
        "primary contexts are released"
    );
    out(|dptr| memory::cuMemAlloc_v2(dptr, 16)).unwrap();
    device::cuDevicePrimaryCtxRelease_v2(0).unwrap();
    assert_eq!(state(), 1);
    device::cuDevicePrimaryCtxRelease_v2(0).unwrap();
    assert_eq!(state(), 0);
    assert_eq!(null::LIVE.load(Ordering::Relaxed), live, "memory of the context went with it");
    assert_eq!(out(|dptr| memory::cuMemAlloc_v2(dptr, 16)), Err(Error::ContextIsDestroyed));
    assert_eq!(device::cuDevicePrimaryCtxRelease_v2(0), Err(Error::InvalidContext));

    // It comes back under the same handle, and a reset empties it without ending it.
    assert_eq!(out_pointer(|c| device::cuDevicePrimaryCtxRetain(c, 0)), Ok(primary));
    let at = out(|dptr| memory::cuMemAlloc_v2(dptr, 16)).unwrap();
    device::cuDevicePrimaryCtxReset_v2(0).unwrap();
    assert_eq!(memory::cuMemFree_v2(at), Err(Error::InvalidValue("dptr")));
    out(|dptr| memory::cuMemAlloc_v2(dptr, 16)).unwrap();
    device::cuDevicePrimaryCtxRelease_v2(0).unwrap();
}

#[test]
fn events_and_streams_keep_to_their_rules() {
    let _one = exclusive();
    let _scope = scope();
    let timed = out_pointer(|e| event::cuEventCreate(e, 0)).unwrap();
    let untimed = out_pointer(|e| event::cuEventCreate(e, 2)).unwrap();
    assert!(
        matches!(out_pointer(|e| event::cuEventCreate(e, 4)), Err(Error::InvalidValue(_))),
        "interprocess and timed"
    );
    assert!(matches!(out_pointer(|e| event::cuEventCreate(e, 64)), Err(Error::InvalidValue(_))));
    let elapsed = |end| {
        let mut ms = 0.0;
        event::cuEventElapsedTime((&mut ms).into(), timed, end).map(|()| ms)
    };
    assert_eq!(elapsed(timed), Ok(1.5));
    assert!(matches!(elapsed(untimed), Err(Error::InvalidHandle(_))));
    let nowhere = event::cuEventElapsedTime(None.into(), timed, timed);
    assert_eq!(nowhere, Err(Error::InvalidHandle("pMilliseconds")));
    assert!(matches!(out_pointer(|s| stream::cuStreamCreate(s, 2)), Err(Error::InvalidValue(_))));
    let stream = out_pointer(|s| stream::cuStreamCreate(s, 1)).unwrap();
    assert_eq!(stream::cuStreamQuery(stream), Err(Error::NotReady));
    event::cuEventRecord(timed, stream).unwrap();
    stream::cuStreamWaitEvent(stream, timed, 0).unwrap();

    unsafe extern "C" fn note(stream: CUstream, result: CUresult, data: *mut c_void) {
        // SAFETY: the test's own vector.
        unsafe { (*data.cast::<Vec<(usize, u32)>>()).push((stream.addr(), result.0)) };
    }
    let mut notes: Vec<(usize, u32)> = Vec::new();
    stream::cuStreamAddCallback(stream, Some(note), (&raw mut notes).cast(), 0).unwrap();
    assert_eq!(notes, [(stream.addr(), 0)], "the callback gets our handle back");
}

#[test]
fn a_pointers_attributes_say_what_it_is() {
    let _one = exclusive();
    let scope = scope();
    let device = out(|dptr| memory::cuMemAlloc_v2(dptr, 64)).unwrap();
    let mut kind = CUmemorytype(0);
    let get = |attribute, data: *mut c_void, at| pointer::cuPointerGetAttribute(data, attribute, at);
    let memory_type = CUpointer_attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    get(memory_type, (&raw mut kind).cast(), device + 5).unwrap();
    assert_eq!(kind, CUmemorytype::CU_MEMORYTYPE_DEVICE);
    let host = out_pointer(|pp| memory::cuMemHostAlloc(pp, 64, 0)).unwrap();
    get(memory_type, (&raw mut kind).cast(), host.expose_provenance() as u64).unwrap();
    assert_eq!(kind, CUmemorytype::CU_MEMORYTYPE_HOST);
    let mut owner: CUcontext = core::ptr::null_mut();
    get(CUpointer_attribute::CU_POINTER_ATTRIBUTE_CONTEXT, (&raw mut owner).cast(), device).unwrap();
    assert_eq!(owner, scope.handle);
    assert_eq!(get(memory_type, (&raw mut kind).cast(), 4096), Err(Error::InvalidValue("ptr")));

    // Several at once: an unknown pointer is no error.
    let mut attributes = [memory_type, CUpointer_attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL];
    let mut ordinal = 5;
    let mut data = [(&raw mut kind).cast::<c_void>(), (&raw mut ordinal).cast()];
    // SAFETY: what the arguments point to is this test's.
    unsafe { pointer::cuPointerGetAttributes(2, attributes.as_mut_ptr(), data.as_mut_ptr(), 4096) }.unwrap();
    assert_eq!((kind.0, ordinal), (0, -2));
    memory::cuMemFreeHost(host).unwrap();
}

#[test]
fn stream_ordered_memory_is_freed_by_either_call() {
    let _one = exclusive();
    let _scope = scope();
    let a = out(|dptr| pool::cuMemAllocAsync(dptr, 64, core::ptr::null_mut())).unwrap();
    let b = out(|dptr| pool::cuMemAllocAsync(dptr, 64, core::ptr::null_mut())).unwrap();
    pool::cuMemFreeAsync(a, core::ptr::null_mut()).unwrap();
    memory::cuMemFree_v2(b).unwrap();
    assert_eq!(pool::cuMemFreeAsync(a, core::ptr::null_mut()), Err(Error::InvalidValue("dptr")));
    let default = out_pointer(|p| pool::cuDeviceGetDefaultMemPool(p, 0)).unwrap();
    assert!(matches!(pool::cuMemPoolDestroy(default), Err(Error::InvalidValue(_))));
    pool::cuMemPoolTrimTo(default, 0).unwrap();
}

#[test]
fn the_oldest_launch_calls_set_shape_and_parameters_one_by_one() {
    let _one = exclusive();
    let _scope = scope();
    let module = load(null::PTX).unwrap();
    let good = out_pointer(|f| module::cuModuleGetFunction(f, module, c"good")).unwrap();
    assert_eq!(legacy_launch::cuLaunch(good), Err(Error::InvalidValue("f")), "no shape yet");
    legacy_launch::cuFuncSetBlockShape(good, 16, 1, 1).unwrap();
    legacy_launch::cuParamSetSize(good, 8).unwrap();
    legacy_launch::cuParamSeti(good, 4, 7).unwrap();
    let before = null::LAUNCHES.load(Ordering::Relaxed);
    legacy_launch::cuLaunchGrid(good, 2, 2).unwrap();
    assert_eq!(null::LAUNCHES.load(Ordering::Relaxed), before + 1);
    assert!(matches!(legacy_launch::cuLaunchGrid(good, 0, 2), Err(Error::InvalidValue(_))));
}

#[test]
fn a_streams_hints_are_kept_until_it_goes() {
    let _one = exclusive();
    let _scope = scope();
    let a = out_pointer(|s| stream::cuStreamCreate(s, 0)).unwrap();
    let b = out_pointer(|s| stream::cuStreamCreate(s, 0)).unwrap();
    let policy = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY;
    let get = |stream| {
        let mut value = CUstreamAttrValue::default();
        stream::cuStreamGetAttribute(stream, policy, (&mut value).into()).unwrap();
        // SAFETY: the member that belongs to the attribute.
        unsafe { value.syncPolicy.0 }
    };
    let spin = CUstreamAttrValue { syncPolicy: CUsynchronizationPolicy(2) };
    stream::cuStreamSetAttribute(a, policy, &spin).unwrap();
    assert_eq!((get(a), get(b)), (2, 0));
    stream::cuStreamCopyAttributes(b, a).unwrap();
    assert_eq!(get(b), 2);
    let cluster = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    assert_eq!(stream::cuStreamSetAttribute(a, cluster, &spin), Err(Error::InvalidValue("attr")));
}

#[test]
fn a_limit_that_the_provider_cannot_set_stays_as_it_was() {
    let _one = exclusive();
    let _scope = scope();
    for limit in [CUlimit::CU_LIMIT_STACK_SIZE, CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE] {
        let before = out(|value| context::cuCtxGetLimit(value, limit)).unwrap();
        assert_eq!(context::cuCtxSetLimit(limit, before * 2), Err(Error::UnsupportedLimit));
        assert_eq!(out(|value| context::cuCtxGetLimit(value, limit)), Ok(before));
    }
    // CUDA: what the device cannot have becomes what it can.
    let persisting = CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE;
    context::cuCtxSetLimit(persisting, 1 << 20).unwrap();
    assert_eq!(out(|value| context::cuCtxGetLimit(value, persisting)), Ok(0));
}
