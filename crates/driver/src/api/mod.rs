//! One body per `cu*` name, one file per chapter of NVIDIA's manual.

pub mod array;
pub mod batch_copy;
pub mod capture;
pub mod checkpoint;
mod children;
pub mod context;
pub mod copy;
pub mod coredump;
pub mod cudaway;
pub mod device;
pub mod entry_point;
pub mod errors;
pub mod event;
pub mod execution;
pub mod external;
pub mod fabric;
pub mod graph;
pub mod graph_exec;
pub mod graph_node;
pub mod graph_semaphore;
pub mod graphics;
pub mod green;
pub mod host_function;
pub mod init;
pub mod legacy_launch;
pub mod library;
pub mod link;
pub mod logs;
pub mod memory;
pub mod memset;
pub mod module;
pub mod multicast;
pub mod notification;
pub mod occupancy;
pub mod old;
pub mod pointer;
pub mod pool;
pub mod profiler;
pub mod stream;
pub mod tensor_map;
pub mod texture;
pub mod user_object;
pub mod virtual_memory;

/// The end of a body that always answers not-supported: the reason goes to the log. Only after `cuInit`, as for any other call.
fn refuse(why: &'static str) -> crate::Result {
    crate::process::driver()?;
    Err(crate::Error::NotSupported(why))
}
