//! A launch allocates nothing once it is warm: neither in the thread that asks for it nor in those that run it. A stream
//! is warm when as many launches have once been in flight on it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::{CString, c_void};
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

use border::Out;
use hip_cpu::api::*;
use hip_sys::*;

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
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

/// Shared and local memory, so that every arena is in use.
const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry work(.param .u64 p)
{
    .reg .b32 %r<4>;
    .shared .b32 part[256];
    .local .b32 own[4];
    mov.u32 %r1, %tid.x;
    shl.b32 %r2, %r1, 2;
    st.shared.u32 [part], %r1;
    st.local.u32 [own], %r2;
    bar.sync 0;
    ld.shared.u32 %r3, [part];
    ret;
}
";

/// Tries, one of which allocates nothing.
const ROUNDS: usize = 100;

#[test]
fn a_warm_launch_allocates_nothing() {
    let text = CString::new(PTX).unwrap();
    let (mut module, mut function) = (std::ptr::null_mut(), std::ptr::null_mut());
    // SAFETY: PTX text that ends with a NUL.
    unsafe { hipModuleLoadData(Out::from(&mut module), text.as_ptr().cast()) }.unwrap();
    hipModuleGetFunction(Out::from(&mut function), module, c"work").unwrap();
    for flags in [hipStreamDefault, hipStreamNonBlocking] {
        let mut stream = std::ptr::null_mut();
        hipStreamCreateWithFlags(Out::from(&mut stream), flags).unwrap();
        let launch = |grid: u32| {
            let mut argument = 0u64;
            let mut arguments = [(&raw mut argument).cast::<c_void>()];
            let (at, none) = (arguments.as_mut_ptr(), std::ptr::null_mut());
            for _ in 0..8 {
                hipModuleLaunchKernel(function, grid, 1, 1, 256, 1, 1, 64, stream, at, none).unwrap();
            }
        };
        let mut gate = std::ptr::null_mut();
        hipHostMalloc(Out::from(&mut gate), size_of::<AtomicU32>(), 0).unwrap();
        // SAFETY: fresh memory of that size.
        let opened = unsafe { gate.cast::<AtomicU32>().as_ref().unwrap() };
        opened.store(0, Ordering::SeqCst);
        let equal = 1;
        hipStreamWaitValue32(stream, gate, 1, equal, u32::MAX).unwrap();
        launch(1);
        opened.store(1, Ordering::SeqCst);
        // Who only asks leaves the work to the stream's own thread, which starts with it.
        while hipStreamQuery(stream).is_err() {
            std::thread::yield_now();
        }
        for grid in [1, 4000] {
            // Allocations of some rounds; workers map their arenas when they first get blocks.
            let rounds = || {
                let before = ALLOCATIONS.load(Ordering::Relaxed);
                for _ in 0..50 {
                    launch(grid);
                    hipStreamSynchronize(stream).unwrap();
                }
                ALLOCATIONS.load(Ordering::Relaxed) - before
            };
            // Threads of ours that the machine runs late allocate then; what launches allocate, each round has.
            let counts: Vec<usize> = (0..ROUNDS).map(|_| rounds()).take_while(|&n| n > 0).collect();
            assert!(counts.len() < ROUNDS, "flags {flags}, {grid} blocks: {counts:?}");
        }
    }
}
