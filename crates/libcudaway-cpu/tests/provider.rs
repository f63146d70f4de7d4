//! What a HIP program may count on, through the shared object's own exports.

// SAFETY of every block here: HIP's contract, or a wrong call whose refusal is the test; pointers are to locals and to
// allocations of the test that are large enough and live until their streams are done.
#![allow(clippy::undocumented_unsafe_blocks, reason = "said once above")]

mod common;

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use common::*;
use hip_sys::*;

/// One test at a time: blocking streams wait for whatever another test has on the legacy stream, and what one test freed may
/// become another's.
fn turn() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

#[test]
fn vector_add_gives_the_sums() {
    let _turn = turn();
    let f = function(module(VECTOR_ADD).unwrap(), "vector_add").unwrap();
    let n = 100_003;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let (da, db, dc) = (upload(&a), upload(&b), malloc(4 * n));
    launch!(f, (n as u32).div_ceil(256), 256, std::ptr::null_mut(), da, db, dc, n as u32).unwrap();
    let c: Vec<f32> = download(dc, n);
    assert!((0..n).all(|i| c[i] == a[i] + b[i]));
    for p in [da, db, dc] {
        unsafe { hip().hipFree(p) }.unwrap();
    }
}

#[test]
fn the_packed_arguments_of_extra_do_the_same() {
    let _turn = turn();
    let f = function(module(VECTOR_ADD).unwrap(), "vector_add").unwrap();
    let (a, b, c) = (upload(&[1f32; 8]), upload(&[2f32; 8]), malloc(32));
    let mut packed = [0u8; 28];
    for (i, p) in [a, b, c].into_iter().enumerate() {
        packed[8 * i..8 * i + 8].copy_from_slice(&(p as u64).to_le_bytes());
    }
    packed[24..].copy_from_slice(&8u32.to_le_bytes());
    let size = std::cell::Cell::new(packed.len());
    let mut extra = [
        HIP_LAUNCH_PARAM_BUFFER_POINTER,
        packed.as_mut_ptr().cast(),
        HIP_LAUNCH_PARAM_BUFFER_SIZE,
        size.as_ptr().cast(),
        HIP_LAUNCH_PARAM_END,
    ];
    let none = std::ptr::null_mut();
    unsafe {
        hip().hipModuleLaunchKernel(f, 1, 1, 1, 8, 1, 1, 0, none, std::ptr::null_mut(), extra.as_mut_ptr())
    }
    .unwrap();
    assert_eq!(download::<f32>(c, 8), [3f32; 8]);
    size.set(27);
    let answer = unsafe {
        hip().hipModuleLaunchKernel(f, 1, 1, 1, 8, 1, 1, 0, none, std::ptr::null_mut(), extra.as_mut_ptr())
    };
    assert_eq!(code(answer), 1, "a packed buffer that is too short");
}

#[test]
fn a_launch_beyond_the_devices_limits_is_refused() {
    let _turn = turn();
    let f = function(module(VECTOR_ADD).unwrap(), "vector_add").unwrap();
    let p = malloc(16);
    let go = |grid: u32, block: u32| code(launch!(f, grid, block, std::ptr::null_mut(), p, p, p, 0u32));
    assert_eq!(go(1, 1025), 1);
    assert_eq!(go(0, 32), 1);
    assert_eq!(go(1, 0), 1);
    assert_eq!(go(1 << 31, 32), 1);
    assert_eq!(go(1, 1024), 0);
    let none = std::ptr::null_mut();
    let launch = |y: u32, bz: u32, shared: u32| {
        let mut n = 0u32;
        let mut q = p;
        let q = (&raw mut q).cast::<c_void>();
        let mut arguments = [q, q, q, (&raw mut n).cast()];
        code(unsafe {
            hip().hipModuleLaunchKernel(
                f,
                1,
                y,
                1,
                1,
                1,
                bz,
                shared,
                none,
                arguments.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    };
    assert_eq!(launch(65536, 1, 0), 1);
    assert_eq!(launch(1, 65, 0), 1);
    assert_eq!(launch(1, 1, 228 << 10), 1);
    assert_eq!(launch(1, 1, 100 << 10), 0);
    unsafe { hip().hipDeviceSynchronize() }.unwrap();
}

#[test]
fn copies_check_their_pointers_and_sizes() {
    let _turn = turn();
    let d = malloc(64);
    let mut host = [0u8; 128];
    let h = host.as_mut_ptr().cast::<c_void>();
    let hip = hip();
    unsafe {
        assert_eq!(code(hip.hipMemcpy(d, h, 65, hipMemcpyHostToDevice)), 1, "beyond the end");
        assert_eq!(code(hip.hipMemcpy(h, h, 16, hipMemcpyHostToDevice)), 1, "no device pointer");
        assert_eq!(code(hip.hipMemcpy(std::ptr::null_mut(), h, 16, hipMemcpyHostToDevice)), 1);
        assert_eq!(code(hip.hipMemcpy(d, h, 16, 9)), 21, "no such direction");
        assert_eq!(code(hip.hipMemcpy(d, h, 64, hipMemcpyDefault)), 0);
        assert_eq!(code(hip.hipMemsetD32(d, 1, 17)), 1);
        assert_eq!(code(hip.hipMemsetD32(d.byte_add(2), 1, 1)), 1, "not aligned");
        assert_eq!(code(hip.hipFree(d.byte_add(8))), 1, "not the start");
        assert_eq!(code(hip.hipFree(h)), 1, "not ours");
        assert_eq!(code(hip.hipHostFree(d)), 1, "the other kind");
        hip.hipFree(d).unwrap();
        assert_eq!(code(hip.hipFree(d)), 1, "twice");
        assert_eq!(code(hip.hipFree(std::ptr::null_mut())), 0);
    }
}

#[test]
fn rows_and_boxes_land_where_they_should() {
    let _turn = turn();
    let hip = hip();
    let (mut d, mut pitch) = (std::ptr::null_mut(), 0);
    unsafe { hip.hipMallocPitch(&mut d, &mut pitch, 12, 5) }.unwrap();
    assert_eq!(pitch, 512);
    let from: Vec<u8> = (0..60).collect();
    let mut back = [0u8; 60];
    unsafe {
        hip.hipMemcpy2D(d, pitch, from.as_ptr().cast(), 12, 12, 5, hipMemcpyHostToDevice).unwrap();
        hip.hipMemcpy2D(back.as_mut_ptr().cast(), 12, d, pitch, 12, 5, hipMemcpyDeviceToHost).unwrap();
        assert_eq!(back[..], from[..]);
        assert_eq!(code(hip.hipMemcpy2D(d, 8, from.as_ptr().cast(), 12, 12, 5, hipMemcpyHostToDevice)), 12);
        // Two slices of 2 x 3 bytes out of a box whose slices are 4 x 5.
        let mut copy: HIP_MEMCPY3D = std::mem::zeroed();
        copy.srcMemoryType = hipMemoryTypeHost;
        copy.srcHost = from.as_ptr().cast();
        (copy.srcXInBytes, copy.srcY, copy.srcZ, copy.srcPitch, copy.srcHeight) = (1, 1, 1, 5, 4);
        copy.dstMemoryType = hipMemoryTypeDevice;
        copy.dstDevice = d;
        (copy.dstPitch, copy.dstHeight) = (3, 2);
        (copy.WidthInBytes, copy.Height, copy.Depth) = (3, 2, 2);
        hip.hipDrvMemcpy3D(&copy).unwrap();
    }
    assert_eq!(download::<u8>(d, 12), [26, 27, 28, 31, 32, 33, 46, 47, 48, 51, 52, 53]);
    unsafe {
        hip.hipMemset2D(d, 4, 7, 2, 2).unwrap();
        assert_eq!(download::<u8>(d, 8), [7, 7, 28, 31, 7, 7, 46, 47]);
        hip.hipFree(d).unwrap();
    }
}

/// Where a stream stands until the test lets it go on; for at most ten seconds, so that who waits for it comes back too.
#[derive(Default)]
struct Gate {
    is_open: AtomicBool,
    passed: AtomicU32,
}

impl Gate {
    fn open(&self) {
        self.is_open.store(true, Ordering::SeqCst);
    }

    fn passed(&self) -> u32 {
        self.passed.load(Ordering::SeqCst)
    }

    fn data(&self) -> *mut c_void {
        (&raw const *self).cast_mut().cast()
    }
}

/// Waits for its gate, then counts.
unsafe extern "C" fn pass(gate: *mut c_void) {
    let gate = unsafe { &*gate.cast::<Gate>() };
    let start = Instant::now();
    while !gate.is_open.load(Ordering::SeqCst) && start.elapsed() < Duration::from_secs(10) {
        std::thread::sleep(Duration::from_millis(1));
    }
    gate.passed.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn a_stream_is_asynchronous_and_in_order() {
    let _turn = turn();
    let hip = hip();
    let s = stream(hipStreamNonBlocking);
    let gate = Gate::default();
    let (d, h) = (malloc(4), pinned(4).cast::<u32>());
    unsafe {
        for _ in 0..3 {
            hip.hipLaunchHostFunc(s, Some(pass), gate.data()).unwrap();
        }
        hip.hipMemsetD32Async(d, 5, 1, s).unwrap();
        hip.hipMemcpyDtoHAsync(h.cast(), d, 4, s).unwrap();
        assert_eq!(gate.passed(), 0, "enqueueing waited");
        assert_eq!(code(hip.hipStreamQuery(s)), 600);
        gate.open();
        hip.hipStreamSynchronize(s).unwrap();
        assert_eq!((gate.passed(), h.read()), (3, 5));
        assert_eq!(code(hip.hipStreamQuery(s)), 0);
        hip.hipStreamDestroy(s).unwrap();
        assert_eq!(code(hip.hipStreamSynchronize(s)), 400, "the handle is gone");
    }
}

/// Counts itself in and waits for the other one, at most ten seconds; then counts up once more.
unsafe extern "C" fn meet(counter: *mut c_void) {
    let counter = unsafe { &*counter.cast::<AtomicU32>() };
    counter.fetch_add(1, Ordering::SeqCst);
    let start = Instant::now();
    while counter.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_secs(10) {
        std::thread::yield_now();
    }
    if counter.load(Ordering::SeqCst) >= 2 {
        std::thread::sleep(Duration::from_millis(30));
        counter.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn two_streams_run_beside_each_other_and_the_legacy_stream_waits_for_blocking_ones() {
    let _turn = turn();
    let hip = hip();
    let counter = AtomicU32::new(0);
    let p = malloc(4);
    unsafe {
        for s in [stream(hipStreamDefault), stream(hipStreamDefault)] {
            hip.hipLaunchHostFunc(s, Some(meet), (&raw const counter).cast_mut().cast()).unwrap();
        }
        // The default stream's copy comes after both.
        let value = 1u32;
        hip.hipMemcpyHtoD(p, (&raw const value).cast_mut().cast(), 4).unwrap();
    }
    assert_eq!(counter.load(Ordering::SeqCst), 4);
}

#[test]
fn a_blocking_stream_waits_for_the_legacy_stream_and_a_non_blocking_one_does_not() {
    let _turn = turn();
    let hip = hip();
    let (blocking, free) = (stream(hipStreamDefault), stream(hipStreamNonBlocking));
    /// What had passed the gate when it was called, and 100.
    struct Note<'a>(&'a Gate, AtomicU32);
    unsafe extern "C" fn note(note: *mut c_void) {
        let note = unsafe { &*note.cast::<Note>() };
        note.1.store(note.0.passed() + 100, Ordering::SeqCst);
    }
    let gate = Gate::default();
    let (seen_blocking, seen_free) = (Note(&gate, AtomicU32::new(0)), Note(&gate, AtomicU32::new(0)));
    unsafe {
        hip.hipLaunchHostFunc(std::ptr::null_mut(), Some(pass), gate.data()).unwrap();
        hip.hipLaunchHostFunc(blocking, Some(note), (&raw const seen_blocking).cast_mut().cast()).unwrap();
        hip.hipLaunchHostFunc(free, Some(note), (&raw const seen_free).cast_mut().cast()).unwrap();
        hip.hipStreamSynchronize(free).unwrap();
        gate.open();
        hip.hipDeviceSynchronize().unwrap();
    }
    assert_eq!(seen_blocking.1.load(Ordering::SeqCst), 101);
    assert_eq!(seen_free.1.load(Ordering::SeqCst), 100);
}

#[test]
fn events_order_streams_and_measure_time() {
    let _turn = turn();
    let hip = hip();
    let (a, b) = (stream(hipStreamNonBlocking), stream(hipStreamNonBlocking));
    let (start, stop) = (event(), event());
    let gate = Gate::default();
    unsafe {
        assert_eq!(code(hip.hipEventElapsedTime(&mut 0.0, start, stop)), 400, "never recorded");
        assert_eq!(code(hip.hipEventQuery(start)), 0, "an event never recorded is complete");
        let begun = Instant::now();
        hip.hipEventRecord(start, a).unwrap();
        hip.hipEventSynchronize(start).unwrap();
        hip.hipLaunchHostFunc(a, Some(pass), gate.data()).unwrap();
        hip.hipEventRecord(stop, a).unwrap();
        hip.hipStreamWaitEvent(b, stop, 0).unwrap();
        assert_eq!(code(hip.hipEventQuery(stop)), 600);
        assert_eq!(code(hip.hipEventElapsedTime(&mut 0.0, start, stop)), 600);
        std::thread::sleep(Duration::from_millis(30));
        gate.open();
        hip.hipStreamSynchronize(b).unwrap();
        assert_eq!(gate.passed(), 1, "b waited for a");
        hip.hipEventSynchronize(stop).unwrap();
        let mut ms = 0.0;
        hip.hipEventElapsedTime(&mut ms, start, stop).unwrap();
        let most = begun.elapsed().as_secs_f32() * 1000.0 + 1.0;
        assert!((29.0..most).contains(&ms), "{ms} ms of {most}");
        let mut untimed = std::ptr::null_mut();
        hip.hipEventCreateWithFlags(&mut untimed, hipEventDisableTiming).unwrap();
        hip.hipEventRecord(untimed, a).unwrap();
        hip.hipEventSynchronize(untimed).unwrap();
        assert_eq!(code(hip.hipEventElapsedTime(&mut ms, start, untimed)), 400);
        hip.hipEventDestroy(untimed).unwrap();
        assert_eq!(code(hip.hipEventQuery(untimed)), 400);
    }
}

#[test]
fn a_pageable_source_may_change_as_soon_as_the_copy_call_returns() {
    let _turn = turn();
    let hip = hip();
    let s = stream(hipStreamNonBlocking);
    let gate = Gate::default();
    let d = malloc(4);
    let mut source = 41u32;
    unsafe {
        hip.hipLaunchHostFunc(s, Some(pass), gate.data()).unwrap();
        hip.hipMemcpyHtoDAsync(d, (&raw mut source).cast(), 4, s).unwrap();
        (&raw mut source).write_volatile(0);
        gate.open();
        hip.hipStreamSynchronize(s).unwrap();
    }
    assert_eq!(download::<u32>(d, 1), [41]);
}

#[test]
fn every_thread_has_its_own_per_thread_stream() {
    let _turn = turn();
    let f = function(module(VECTOR_ADD).unwrap(), "vector_add").unwrap() as usize;
    std::thread::scope(|scope| {
        for t in 0..8u32 {
            scope.spawn(move || {
                let n = 4096;
                let (a, b, c) = (upload(&vec![t as f32; n]), upload(&vec![1f32; n]), malloc(4 * n));
                for _ in 0..20 {
                    launch!(f as hipFunction_t, 16, 256, hipStreamPerThread, a, b, c, n as u32).unwrap();
                }
                unsafe { hip().hipStreamSynchronize(hipStreamPerThread) }.unwrap();
                assert_eq!(download::<f32>(c, n), vec![t as f32 + 1.0; n]);
            });
        }
    });
}

const GLOBALS: &str = r"
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 counter = 5;
.visible .const .align 4 .b8 table[8] = {1, 0, 0, 0, 2, 0, 0, 0};
.global .align 8 .u64 pointer = generic(counter);
.visible .entry bump(.param .u64 out)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    ld.global.u64 %rd2, [pointer];
    ld.u32 %r1, [%rd2];
    ld.const.u32 %r2, [table+4];
    add.u32 %r3, %r1, %r2;
    st.global.u32 [counter], %r3;
    st.u32 [%rd1], %r1;
    ret;
}
";

#[test]
fn variables_are_initialised_relocated_and_reached_from_both_sides() {
    let _turn = turn();
    let m = module(GLOBALS).unwrap();
    let f = function(m, "bump").unwrap();
    let (mut at, mut bytes) = (std::ptr::null_mut(), 0);
    unsafe { hip().hipModuleGetGlobal(&mut at, &mut bytes, m, c"counter".as_ptr()) }.unwrap();
    assert_eq!(bytes, 4);
    assert_eq!(download::<u32>(at, 1), [5]);
    let out = malloc(4);
    launch!(f, 1, 1, std::ptr::null_mut(), out).unwrap();
    assert_eq!(download::<u32>(out, 1), [5]);
    assert_eq!(download::<u32>(at, 1), [7]);
    let (mut at2, mut bytes2) = (std::ptr::null_mut(), 0);
    unsafe {
        assert_eq!(
            code(hip().hipModuleGetGlobal(&mut at2, &mut bytes2, m, c"pointer".as_ptr())),
            0,
            "static in CUDA C++"
        );
        assert_eq!(code(hip().hipModuleGetGlobal(&mut at2, &mut bytes2, m, c"nothing".as_ptr())), 500);
        assert_eq!(code(hip().hipFree(at)), 1, "a variable is not freed by hand");
        hip().hipModuleUnload(m).unwrap();
    }
    assert_eq!(code(function(m, "bump")), 400);
}

#[test]
fn one_bad_kernel_leaves_the_others_alone() {
    let _turn = turn();
    let text = format!(
        "{VECTOR_ADD}\n.visible .entry bad(.param .u64 out)\n{{\n    .reg .b32 %r<3>;\n    frobnicate.u32 %r1, %r2;\n    ret;\n}}\n"
    );
    let m = module(&text).unwrap();
    assert_eq!(code(function(m, "bad")), 218);
    assert_eq!(code(function(m, "vector_add")), 0);
    assert_eq!(code(function(m, "nothing")), 500);
}

#[test]
fn text_that_is_no_ptx_is_refused_and_the_log_buffer_says_where() {
    let _turn = turn();
    assert_eq!(code(module("\x7fELF")), 209);
    assert_eq!(code(module("")), 200);
    let text = std::ffi::CString::new(".version 8.0\n.target sm_80\n.address_size 64\n.entry {\n").unwrap();
    let mut buffer = vec![0u8; 4096];
    let mut m = std::ptr::null_mut();
    let mut options = [5, 6];
    let mut values = [buffer.as_mut_ptr().cast::<c_void>(), buffer.len() as *mut c_void];
    let answer = unsafe {
        hip().hipModuleLoadDataEx(&mut m, text.as_ptr().cast(), 2, options.as_mut_ptr(), values.as_mut_ptr())
    };
    assert_eq!(code(answer), 218);
    let log = String::from_utf8_lossy(&buffer[..values[1] as usize]).into_owned();
    assert!(log.contains(":4:"), "{log:?}");
}

#[test]
fn what_is_known_of_a_pointer_is_what_was_allocated() {
    let _turn = turn();
    let hip = hip();
    let d = malloc(100);
    let h = pinned(100);
    let mut managed = std::ptr::null_mut();
    unsafe {
        hip.hipMallocManaged(&mut managed, 100, hipMemAttachGlobal).unwrap();
        let of = |p: *mut c_void| {
            let mut a = std::mem::zeroed::<hipPointerAttribute_t>();
            hip.hipPointerGetAttributes(&mut a, p).unwrap();
            (a.r#type, a.isManaged)
        };
        assert_eq!(of(d.byte_add(50)), (hipMemoryTypeDevice, 0));
        assert_eq!(of(h), (hipMemoryTypeHost, 0));
        assert_eq!(of(managed), (hipMemoryTypeManaged, 1));
        let mut own = 0u32;
        let own = (&raw mut own).cast::<c_void>();
        assert_eq!(of(own), (hipMemoryTypeUnregistered, 0));
        hip.hipHostRegister(own, 4, 0).unwrap();
        assert_eq!(of(own), (hipMemoryTypeHost, 0));
        hip.hipHostUnregister(own).unwrap();
        assert_eq!(code(hip.hipHostUnregister(own)), 713);
        let (mut base, mut size) = (std::ptr::null_mut(), 0);
        hip.hipMemGetAddressRange(&mut base, &mut size, d.byte_add(99)).unwrap();
        assert_eq!((base, size), (d, 100));
        for p in [d, managed] {
            hip.hipFree(p).unwrap();
        }
        hip.hipHostFree(h).unwrap();
    }
}

#[test]
fn memory_of_a_stream_goes_in_its_order_and_the_pool_counts_it() {
    let _turn = turn();
    let hip = hip();
    let s = stream(hipStreamNonBlocking);
    unsafe {
        let mut pool = std::ptr::null_mut();
        hip.hipDeviceGetDefaultMemPool(&mut pool, 0).unwrap();
        let used = || {
            let mut used = 0u64;
            hip.hipMemPoolGetAttribute(pool, hipMemPoolAttrUsedMemCurrent, (&raw mut used).cast()).unwrap();
            used
        };
        let before = used();
        let mut p = std::ptr::null_mut();
        hip.hipMallocAsync(&mut p, 1 << 20, s).unwrap();
        assert_eq!(used() - before, 1 << 20);
        hip.hipMemsetAsync(p, 1, 1 << 20, s).unwrap();
        hip.hipFreeAsync(p, s).unwrap();
        assert_eq!(code(hip.hipFreeAsync(p, s)), 1);
        hip.hipStreamSynchronize(s).unwrap();
        assert_eq!(used(), before);
    }
}

#[test]
fn the_device_describes_this_machine() {
    let _turn = turn();
    let hip = hip();
    let identity = Layout::identity(hip, 0).unwrap();
    assert!(identity.name.starts_with("CUDAway CPU ("), "{}", identity.name);
    assert_eq!(identity.arch, "cpu");
    unsafe {
        let mut cores = 0;
        hip.hipDeviceGetAttribute(&mut cores, hipDeviceAttributeMultiprocessorCount, 0).unwrap();
        assert_eq!(cores as usize, std::thread::available_parallelism().unwrap().get());
        let (mut free, mut total) = (0, 0);
        hip.hipMemGetInfo(&mut free, &mut total).unwrap();
        assert!(free <= total && total > 1 << 20);
        let mut p = std::ptr::null_mut();
        assert_eq!(code(hip.hipMalloc(&mut p, total + 1)), 2);
        assert_eq!(code(hip.hipMalloc(std::ptr::null_mut(), 1)), 1);
        assert_eq!(code(hip.hipSetDevice(1)), 101);
        let mut version: c_int = 0;
        hip.hipRuntimeGetVersion(&mut version).unwrap();
        assert!(version > 0);
        assert_eq!(Layout::of(hip), Layout::Rocm6);
    }
}

#[test]
fn advice_about_managed_memory_is_kept() {
    let _turn = turn();
    let hip = hip();
    let mut p = std::ptr::null_mut();
    unsafe {
        hip.hipMallocManaged(&mut p, 4096, hipMemAttachGlobal).unwrap();
        let ask = |attribute: c_int| {
            let mut value: c_int = 99;
            hip.hipMemRangeGetAttribute((&raw mut value).cast(), 4, attribute, p, 4096).unwrap();
            value
        };
        assert_eq!([ask(1), ask(2), ask(3), ask(4)], [0, -2, -2, -2]);
        hip.hipMemAdvise(p, 4096, hipMemAdviseSetReadMostly, 0).unwrap();
        hip.hipMemAdvise(p, 4096, hipMemAdviseSetPreferredLocation, hipCpuDeviceId).unwrap();
        hip.hipMemAdvise(p, 4096, hipMemAdviseSetAccessedBy, 0).unwrap();
        hip.hipMemPrefetchAsync(p, 4096, 0, std::ptr::null_mut()).unwrap();
        assert_eq!([ask(1), ask(2), ask(3), ask(4)], [1, -1, 0, 0]);
        assert_eq!(code(hip.hipMemAdvise(p, 4097, hipMemAdviseSetReadMostly, 0)), 1);
        assert_eq!(code(hip.hipMemPrefetchAsync(p, 4096, 3, std::ptr::null_mut())), 101);
        hip.hipFree(p).unwrap();
    }
}
