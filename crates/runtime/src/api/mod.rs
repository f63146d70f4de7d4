//! The bodies, one file per chapter of the manual. A `_v11`, `_v12` or `_v13` at the end of a name is that major's ABI.

pub mod array;
pub mod batch_copy;
pub mod capture;
pub mod channel;
pub mod device;
pub mod driver_entry;
pub mod error;
pub mod event;
pub mod execution;
pub mod execution_context;
pub mod external;
pub mod graph;
pub mod graph_node;
pub mod graph_params;
pub mod graph_semaphore;
pub mod graphics;
pub mod ipc;
pub mod library;
pub mod logs;
pub mod memory;
pub mod memory_pool;
pub mod occupancy;
pub mod peer;
pub mod properties;
pub mod registration;
pub mod stream;
pub mod symbol;
pub mod texture;
pub mod texture_reference;
pub mod unified;
pub mod version;

/// The end of a body that always answers not-supported: the reason goes to the log. As every call, it sets the device up first.
fn refuse(why: &'static str) -> crate::Result {
    crate::device::attach()?;
    Err(crate::Error::NotSupported(why))
}
