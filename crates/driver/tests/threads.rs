//! Many threads at once. Under ThreadSanitizer:
//! `RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p driver --test threads`.

mod null;

use std::sync::atomic::Ordering;
use std::sync::{Mutex, MutexGuard};

use driver::api::{context, copy, event, execution, memory, memset, module, stream};

/// The tests take turns: what is alive is counted for the whole process.
fn turn() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Threads share one context, its stream and its kernel; each has memory of its own.
#[test]
fn threads_that_share_everything_lose_nothing() {
    let _turn = turn();
    null::start();
    let mut primary: cuda_abi::CUcontext = core::ptr::null_mut();
    driver::api::device::cuDevicePrimaryCtxRetain((&mut primary).into(), 1).unwrap();
    let primary = primary.addr();
    let threads: Vec<_> = (0..8u8)
        .map(|number| {
            std::thread::spawn(move || {
                context::cuCtxSetCurrent(core::ptr::without_provenance_mut(primary)).unwrap();
                for round in 0..200u8 {
                    let mut dptr = 0;
                    memory::cuMemAlloc_v2((&mut dptr).into(), 128).unwrap();
                    let mut own: cuda_abi::CUstream = core::ptr::null_mut();
                    stream::cuStreamCreate((&mut own).into(), 0).unwrap();
                    memset::cuMemsetD8Async(dptr, number ^ round, 128, own).unwrap();
                    let mut host = [0u8; 128];
                    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
                    unsafe { copy::cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), dptr, 128, own) }.unwrap();
                    stream::cuStreamSynchronize(own).unwrap();
                    assert_eq!(host, [number ^ round; 128]);
                    stream::cuStreamDestroy_v2(own).unwrap();
                    memory::cuMemFree_v2(dptr).unwrap();
                }
            })
        })
        .collect();
    for thread in threads {
        thread.join().unwrap();
    }
    driver::api::device::cuDevicePrimaryCtxRelease_v2(1).unwrap();
}

/// What all of the sixty-four threads use.
struct Common {
    stream: usize,
    event: usize,
    function: usize,
}

/// Memory, copies, events and launches on each thread's own stream and on one that all share; nothing stays behind.
#[test]
fn sixty_four_threads_on_shared_and_own_streams_leave_nothing() {
    let _turn = turn();
    null::start();
    let mut primary: cuda_abi::CUcontext = core::ptr::null_mut();
    driver::api::device::cuDevicePrimaryCtxRetain((&mut primary).into(), 0).unwrap();
    context::cuCtxSetCurrent(primary).unwrap();
    let before = null::LIVE.load(Ordering::Relaxed);
    let mut loaded: cuda_abi::CUmodule = core::ptr::null_mut();
    // SAFETY: an image, which lives as long as the test.
    unsafe { module::cuModuleLoadData((&mut loaded).into(), null::PTX.as_ptr().cast()) }.unwrap();
    let mut function: cuda_abi::CUfunction = core::ptr::null_mut();
    module::cuModuleGetFunction((&mut function).into(), loaded, c"good").unwrap();
    let mut shared: cuda_abi::CUstream = core::ptr::null_mut();
    stream::cuStreamCreate((&mut shared).into(), 1).unwrap();
    let mut event: cuda_abi::CUevent = core::ptr::null_mut();
    event::cuEventCreate((&mut event).into(), 2).unwrap();
    let common = Common { stream: shared.addr(), event: event.addr(), function: function.addr() };
    let primary = primary.addr();
    std::thread::scope(|scope| {
        for number in 0..64u8 {
            let common = &common;
            scope.spawn(move || {
                context::cuCtxSetCurrent(core::ptr::without_provenance_mut(primary)).unwrap();
                for round in 0..30u8 {
                    one_round(common, number ^ round);
                }
            });
        }
    });
    event::cuEventDestroy_v2(event).unwrap();
    stream::cuStreamDestroy_v2(shared).unwrap();
    module::cuModuleUnload(loaded).unwrap();
    assert_eq!(null::LIVE.load(Ordering::Relaxed), before);
    driver::api::device::cuDevicePrimaryCtxRelease_v2(0).unwrap();
}

fn one_round(common: &Common, value: u8) {
    let all: cuda_abi::CUstream = core::ptr::without_provenance_mut(common.stream);
    let of_all: cuda_abi::CUevent = core::ptr::without_provenance_mut(common.event);
    let function: cuda_abi::CUfunction = core::ptr::without_provenance_mut(common.function);
    let mut dptr = 0;
    memory::cuMemAlloc_v2((&mut dptr).into(), 256).unwrap();
    let (mut own, mut done): (cuda_abi::CUstream, cuda_abi::CUevent) =
        (core::ptr::null_mut(), core::ptr::null_mut());
    stream::cuStreamCreate((&mut own).into(), 1).unwrap();
    event::cuEventCreate((&mut done).into(), 0).unwrap();
    memset::cuMemsetD8Async(dptr, value, 256, own).unwrap();
    event::cuEventRecord(done, own).unwrap();
    stream::cuStreamWaitEvent(all, done, 0).unwrap();
    let mut host = [!value; 256];
    // SAFETY: the host's memory is large enough, and lives until the copy has been made.
    unsafe { copy::cuMemcpyDtoHAsync_v2(host.as_mut_ptr().cast(), dptr, 256, all) }.unwrap();
    event::cuEventRecord(of_all, all).unwrap();
    let mut argument = dptr;
    let mut parameters = [(&raw mut argument).cast()];
    for on in [own, all] {
        let extra = core::ptr::null_mut();
        // SAFETY: the parameters are the kernel's, or none.
        unsafe {
            execution::cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, on, parameters.as_mut_ptr(), extra)
        }
        .unwrap();
    }
    event::cuEventQuery(of_all).unwrap();
    stream::cuStreamSynchronize(all).unwrap();
    assert_eq!(host, [value; 256]);
    event::cuEventDestroy_v2(done).unwrap();
    stream::cuStreamDestroy_v2(own).unwrap();
    memory::cuMemFree_v2(dptr).unwrap();
}
