//! One body per `cu*` name, one file per chapter of NVIDIA's manual.

pub mod array;
pub mod context;
pub mod copy;
pub mod cudaway;
pub mod device;
pub mod entry_point;
pub mod errors;
pub mod event;
pub mod execution;
pub mod graph;
pub mod init;
pub mod library;
pub mod link;
pub mod memory;
pub mod memset;
pub mod module;
pub mod occupancy;
pub mod old;
pub mod pointer;
pub mod pool;
pub mod profiler;
pub mod stream;
pub mod tensor_map;
pub mod texture;
