//! The CPU as a HIP provider: memory, streams, modules, LLVM's JIT and the block scheduler.
//!
//! `api` holds the `hip*` bodies; `memory`, `stream`, `event`, `module`, `launch` the objects behind them; `kernel`
//! gets code from the cache or from `compiler` and `jit`; `exec` runs it. LLVM starts with the first compile.
#![allow(non_upper_case_globals, reason = "constants are HIP's")]

pub mod ahead;
pub mod api;
pub mod array;
mod at_exit;
mod baseline;
pub mod budget;
pub mod device;
pub mod error;
pub mod event;
pub mod exec;
mod foreseen;
pub mod graph;
mod handle;
#[doc(hidden)]
pub mod harness;
pub mod jit;
mod kernel;
pub mod launch;
mod leaks;
pub mod memory;
pub mod module;
pub mod node;
mod pending;
mod presence;
mod profile;
mod progress;
mod runner;
pub mod stream;
pub mod texture;
mod thread;
mod ticket;

pub use error::{entry, given};
