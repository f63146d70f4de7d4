//! Many threads at once: streams, events, copies and memory of the CPU device. No kernels, so that it runs under
//! ThreadSanitizer, which cannot see into code that LLVM makes:
//! `RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p hip-cpu --test threads`.

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};

use border::Out;
use hip_cpu::api::*;
use hip_sys::*;

const BYTES: usize = 4096;

static CALLED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn called(_: *mut c_void) {
    CALLED.fetch_add(1, Ordering::Relaxed);
}

fn stream(flags: u32) -> hipStream_t {
    let mut made = null_mut();
    hipStreamCreateWithFlags(Out::from(&mut made), flags).unwrap();
    made
}

fn event() -> hipEvent_t {
    let mut made = null_mut();
    hipEventCreateWithFlags(Out::from(&mut made), 0).unwrap();
    made
}

/// A thread's value goes to its own memory on its own stream, and comes back on the stream that all share, ordered by
/// an event alone.
fn one_round(shared: hipStream_t, of_all: hipEvent_t, flags: u32, value: u8) {
    let mut memory = null_mut();
    hipMalloc(Out::from(&mut memory), BYTES).unwrap();
    let (own, done) = (stream(flags), event());
    hipMemsetAsync(memory, value.into(), BYTES, own).unwrap();
    hipLaunchHostFunc(own, Some(called), null_mut()).unwrap();
    hipEventRecord(done, own).unwrap();
    hipStreamWaitEvent(shared, done, 0).unwrap();
    let mut host = vec![!value; BYTES];
    hipMemcpyAsync(host.as_mut_ptr().cast(), memory, BYTES, hipMemcpyDeviceToHost, shared).unwrap();
    hipEventRecord(of_all, shared).unwrap();
    hipEventSynchronize(of_all).unwrap();
    hipStreamSynchronize(shared).unwrap();
    assert_eq!(host, vec![value; BYTES]);
    let from = vec![value ^ 0x55; BYTES];
    hipMemcpyAsync(memory, from.as_ptr().cast(), BYTES, hipMemcpyHostToDevice, own).unwrap();
    drop(from);
    hipMemcpyAsync(host.as_mut_ptr().cast(), memory, BYTES, hipMemcpyDeviceToHost, own).unwrap();
    // The stream goes with its work still queued.
    hipStreamDestroy(own).unwrap();
    hipEventDestroy(done).unwrap();
    hipDeviceSynchronize().unwrap();
    assert_eq!(host, vec![value ^ 0x55; BYTES]);
    hipFree(memory).unwrap();
}

fn many(n_threads: u8, rounds: u8, flags: u32) {
    let (shared, of_all) = (stream(hipStreamNonBlocking) as usize, event() as usize);
    std::thread::scope(|scope| {
        for number in 0..n_threads {
            scope.spawn(move || {
                for round in 0..rounds {
                    let (shared, of_all) = (without_provenance_mut(shared), without_provenance_mut(of_all));
                    one_round(shared, of_all, flags, number ^ round);
                }
            });
        }
    });
    hipStreamDestroy(without_provenance_mut(shared)).unwrap();
    hipEventDestroy(without_provenance_mut(of_all)).unwrap();
}

#[test]
fn sixty_four_threads_share_a_stream_and_have_their_own() {
    let before = CALLED.load(Ordering::Relaxed);
    many(64, 4, hipStreamNonBlocking);
    assert!(CALLED.load(Ordering::Relaxed) >= before + 64 * 4);
}

#[test]
fn blocking_streams_and_the_legacy_stream_order_sixteen_threads() {
    let mut memory = null_mut();
    hipMalloc(Out::from(&mut memory), BYTES).unwrap();
    let legacy = memory as usize;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for round in 0..20 {
                hipMemset(without_provenance_mut(legacy), round, BYTES).unwrap();
                hipStreamSynchronize(null_mut()).unwrap();
            }
        });
        scope.spawn(|| many(16, 4, hipStreamDefault));
    });
    hipFree(memory).unwrap();
}
