//! Which stream a program means by its stream argument.

use cuda_abi::runtime::{cudaStream_t, cudaStreamPerThread};

use crate::entry::is_per_thread;

/// Stream 0 is the legacy default stream, or in a per-thread spelling of a call the thread's own.
pub fn meant(stream: cudaStream_t) -> cudaStream_t {
    if stream.is_null() { default() } else { stream }
}

/// The default stream of the call in progress.
pub fn default() -> cudaStream_t {
    if is_per_thread() { cudaStreamPerThread } else { core::ptr::null_mut() }
}
