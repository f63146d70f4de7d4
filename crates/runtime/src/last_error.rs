//! The last error of each host thread, one per instance of the runtime.
//!
//! CUDA's manual (Error Handling): "Multiple instances of the CUDA Runtime library can be present in an application when
//! using a library that statically links the CUDA Runtime", and each has its own last error. All of them lead here, so the
//! caller's object tells the instance: the taken-over runtime that its code lies in, or the shared one. It is looked up
//! only when there is an error to keep or to hand out.

use core::ffi::{c_int, c_void};
use std::cell::Cell;

use cuda_abi::runtime::cudaError_t;

use crate::driver;

/// Instances with an error on one thread; the oldest goes when a further one comes.
const CAPACITY: usize = 8;

#[derive(Clone, Copy)]
struct Kept {
    /// What `cudaway_runtime_instance` says: 0 for the shared runtime.
    instance: usize,
    code: cudaError_t,
}

impl Kept {
    fn is_error(&self) -> bool {
        self.code != cudaError_t::cudaSuccess
    }
}

const NONE: Kept = Kept { instance: 0, code: cudaError_t::cudaSuccess };

thread_local! {
    static KEPT: [Cell<Kept>; CAPACITY] = const { [const { Cell::new(NONE) }; CAPACITY] };
}

/// Keeps `code` for the instance that called; `cudaSuccess` forgets what it had.
pub fn set_last_error(code: cudaError_t) {
    KEPT.with(|kept| {
        if code == cudaError_t::cudaSuccess && is_empty(kept) {
            return;
        }
        let instance = calling_instance();
        let of_instance = |one: &&Cell<Kept>| one.get().instance == instance && one.get().is_error();
        let own = kept.iter().find(of_instance);
        let free = || kept.iter().find(|one| !one.get().is_error());
        let at = own.or_else(free).or_else(|| {
            for pair in kept.windows(2) {
                pair[0].set(pair[1].get());
            }
            kept.last()
        });
        if let Some(place) = at {
            place.set(Kept { instance, code });
        }
    });
}

/// The error kept for the instance that called.
pub fn last_error() -> cudaError_t {
    KEPT.with(|kept| {
        if is_empty(kept) {
            return cudaError_t::cudaSuccess;
        }
        let instance = calling_instance();
        let own = kept.iter().map(Cell::get).find(|one| one.instance == instance && one.is_error());
        own.map_or(cudaError_t::cudaSuccess, |one| one.code)
    })
}

fn is_empty(kept: &[Cell<Kept>]) -> bool {
    !kept.iter().any(|one| one.get().is_error())
}

/// The instance of the first caller outside this library.
fn calling_instance() -> usize {
    let Some(instance_of) = driver::instance_of() else { return 0 };
    // Where nothing was taken over, everybody uses the shared runtime, and programs that ask a stream over and over need not
    // pay for the walk.
    // SAFETY: the function accepts any address, NULL too.
    if unsafe { instance_of(core::ptr::null()) }.is_null() {
        return 0;
    }
    let mut walk = Walk { own: object_of(calling_instance as *const c_void), outside: core::ptr::null() };
    // SAFETY: the callback takes what is passed here and does not unwind.
    unsafe { _Unwind_Backtrace(step, (&raw mut walk).cast()) };
    // SAFETY: the function accepts any address.
    unsafe { instance_of(walk.outside) }.addr()
}

struct Walk {
    own: *const c_void,
    outside: *const c_void,
}

const GO_ON: c_int = 0;
const STOP: c_int = 5;

unsafe extern "C" {
    fn _Unwind_Backtrace(
        step: unsafe extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        data: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(frame: *mut c_void) -> usize;
}

/// # Safety
/// Called by the unwinder with a frame of its own, and the [`Walk`] of [`calling_instance`].
unsafe extern "C" fn step(frame: *mut c_void, walk: *mut c_void) -> c_int {
    // SAFETY: the unwinder's frame.
    let address = core::ptr::without_provenance::<c_void>(unsafe { _Unwind_GetIP(frame) });
    // SAFETY: the walk outlives the unwinding, which is its only user meanwhile.
    let walk = unsafe { &mut *walk.cast::<Walk>() };
    if object_of(address) == walk.own {
        return GO_ON;
    }
    walk.outside = address;
    STOP
}

/// The start of the object mapped at `address`.
fn object_of(address: *const c_void) -> *const c_void {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: dladdr accepts any address.
    if unsafe { libc::dladdr(address, &mut info) } == 0 { core::ptr::null() } else { info.dli_fbase }
}
