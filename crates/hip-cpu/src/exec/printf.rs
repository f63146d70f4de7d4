//! Device `printf`: formatted when the kernel runs, shown on the process's stdout when the host synchronises.
//!
//! The text goes through C's `stdout`, so it keeps its order with the program's own `printf`.

use std::ffi::{CStr, c_char, c_int};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

static PENDING: AtomicBool = AtomicBool::new(false);
static OUT: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ASSERTIONS: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// `hipLimitPrintfFifoSize`. CUDA differs: it drops the oldest text beyond this; we show it early instead.
pub static FIFO_BYTES: AtomicUsize = AtomicUsize::new(1 << 20);

unsafe extern "C" {
    static stdout: *mut libc::FILE;
    static stderr: *mut libc::FILE;
}

/// Shows what kernels printed so far. Called wherever CUDA does: at synchronisation.
pub fn flush() {
    if !PENDING.swap(false, Ordering::Acquire) {
        return;
    }
    let out = std::mem::take(&mut *OUT.lock());
    let assertions = std::mem::take(&mut *ASSERTIONS.lock());
    // SAFETY: C's own streams, with buffers of the given length.
    unsafe {
        if !out.is_empty() {
            libc::fwrite(out.as_ptr().cast(), 1, out.len(), stdout);
        }
        if !assertions.is_empty() {
            libc::fwrite(assertions.as_ptr().cast(), 1, assertions.len(), stderr);
        }
    }
}

pub fn queue_assertion(line: &str) {
    ASSERTIONS.lock().extend(line.as_bytes());
    PENDING.store(true, Ordering::Release);
}

/// `vprintf`: the number of arguments, as CUDA returns.
///
/// # Safety
/// `arguments` holds what `format` asks for, packed at natural alignment (varargs promotion as in C).
pub unsafe fn print(format: &CStr, arguments: *const u8) -> c_int {
    let mut text = Vec::with_capacity(128);
    // SAFETY: the caller's promise.
    let n = unsafe { printf::format(format.to_bytes(), arguments, &mut string, &mut text) };
    let full = {
        let mut out = OUT.lock();
        out.extend(&text);
        out.len() > FIFO_BYTES.load(Ordering::Relaxed)
    };
    PENDING.store(true, Ordering::Release);
    if full {
        flush();
    }
    n
}

/// Device memory is the process's.
fn string(address: usize) -> *const c_char {
    core::ptr::with_exposed_provenance(address)
}
