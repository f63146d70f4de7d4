//! Many threads at once: streams, events, copies and memory of the CPU device. No kernels, so that it runs under
//! ThreadSanitizer, which cannot see into code that LLVM makes:
//! `RUSTFLAGS=-Zsanitizer=thread cargo +nightly test -Zbuild-std --target x86_64-unknown-linux-gnu -p hip-cpu --test threads`.

use std::ffi::c_void;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};

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
    cudaway_work(own, Some(called), null_mut()).unwrap();
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
    assert!(CALLED.load(Ordering::Relaxed) >= before + 2 * 64 * 4);
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

/// How many of a hundred calls, each in a new stream that is waited for at once, the waiting thread has run itself. It has so much stack.
fn run_by_who_waits(
    launch: fn(hipStream_t, hipHostFn_t, *mut c_void) -> Result<(), hipError_t>,
    stack: usize,
) -> usize {
    unsafe extern "C" fn notes(data: *mut c_void) {
        // SAFETY: the thread below gives this, and waits.
        unsafe { *data.cast::<Option<ThreadId>>() = Some(thread::current().id()) };
    }
    let all = move || {
        let round = |_: &i32| {
            let (own, mut ran) = (stream(hipStreamNonBlocking), None::<ThreadId>);
            launch(own, Some(notes), (&raw mut ran).cast()).unwrap();
            hipStreamSynchronize(own).unwrap();
            hipStreamDestroy(own).unwrap();
            ran.expect("it was called") == thread::current().id()
        };
        (0..100).filter(round).count()
    };
    thread::Builder::new().stack_size(stack).spawn(all).unwrap().join().unwrap()
}

/// A stream's thread has to be woken first; who waits is there. CUDA's own rule for the program's functions is a thread of the driver's.
#[test]
fn who_waits_runs_what_libraries_compute_where_there_is_room_and_never_the_programs_functions() {
    assert!(run_by_who_waits(cudaway_work, 16 << 20) > 0);
    assert_eq!(run_by_who_waits(cudaway_work, 1 << 20), 0);
    assert_eq!(run_by_who_waits(hipLaunchHostFunc, 16 << 20), 0);
}

/// A program built with -ffast-math flushes subnormals on its own threads; what libraries compute there is the same all the same.
#[test]
fn libraries_compute_with_subnormals_whoever_waits() {
    unsafe extern "C" fn halves(data: *mut c_void) {
        // SAFETY: the test gives this.
        let value = unsafe { &mut *data.cast::<f32>() };
        *value = std::hint::black_box(*value) * 0.5;
    }
    let control = |set: Option<u32>| {
        let mut word = 0u32;
        // SAFETY: this thread's SSE control word, through valid pointers.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut word);
            if let Some(set) = &set {
                std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const *set);
            }
        }
        word
    };
    let flushing = move || {
        let before = control(None);
        for _ in 0..100 {
            let (own, mut value) = (stream(hipStreamNonBlocking), f32::MIN_POSITIVE);
            cudaway_work(own, Some(halves), (&raw mut value).cast()).unwrap();
            control(Some(before | 0x8040));
            hipStreamSynchronize(own).unwrap();
            assert_eq!(control(Some(before)) & 0x8040, 0x8040, "the program's mode came back");
            hipStreamDestroy(own).unwrap();
            assert_eq!(value.to_bits(), 0x0040_0000);
        }
    };
    thread::Builder::new().stack_size(16 << 20).spawn(flushing).unwrap().join().unwrap();
}
