//! The bodies, one file per chapter of the manual. A `_v11`, `_v12` or `_v13` at the end of a name is that major's ABI.

pub mod array;
pub mod channel;
pub mod device;
pub mod driver_entry;
pub mod error;
pub mod event;
pub mod execution;
pub mod ipc;
pub mod library;
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
