//! A program may call CUDA from exit handlers and static destructors, when the main thread's own values are already gone.
//! Without libtest, which runs tests on other threads: the program's main thread is the one that matters.

use std::process::Command;

use cuda_abi::runtime::cudaError_t;
use runtime::api::{memory, registration};
use runtime::{entry, entry_value};

const CHILD: &str = "CUDAWAY_TEST_CHILD";

fn main() {
    if std::env::var_os(CHILD).is_some() {
        // Whatever the answer (there may be no driver here): the log is used, on this thread.
        free();
        // SAFETY: a function without preconditions.
        unsafe { libc::atexit(at_exit) };
        return;
    }
    let mut child = Command::new(std::env::current_exe().unwrap());
    let output = child.env(CHILD, "1").env("CUDAWAY_LOG", "trace").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "still here", "{output:?}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("cudaFree"), "the log was on: {output:?}");
    println!("test result: ok. 1 passed; 0 failed");
}

fn free() -> cudaError_t {
    entry("cudaFree", || memory::cudaFree(core::ptr::null_mut()))
}

extern "C" fn at_exit() {
    free();
    entry_value("__cudaUnregisterFatBinary", (), || {
        registration::__cudaUnregisterFatBinary(core::ptr::null_mut())
    });
    let said = b"still here";
    // SAFETY: a slice of its own length.
    unsafe { libc::write(1, said.as_ptr().cast(), said.len()) };
}
