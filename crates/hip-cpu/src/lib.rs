//! The CPU as a HIP provider: memory, streams, modules, LLVM's JIT and the block scheduler.

pub mod exec;
#[doc(hidden)]
pub mod harness;
pub mod jit;
