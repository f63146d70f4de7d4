//! One body per `hip*` function, named like it, by chapter. `libcudaway-cpu` exports them.
//!
//! A body checks, finds its objects, does one thing and writes its results last. Every call that needs the device
//! answers with the sticky error when there is one.
#![allow(clippy::too_many_arguments, reason = "signatures are HIP's")]
#![allow(non_snake_case, reason = "names are HIP's")]

mod ahead;
mod array;
mod copy;
mod device;
mod event;
mod graph;
mod ipc;
mod launch;
mod memory;
mod module;
mod pool;
mod stream;
mod texture;
mod virtual_memory;

pub use ahead::*;
pub use array::*;
pub use copy::*;
pub use device::*;
pub use event::*;
pub use graph::*;
pub use ipc::*;
pub use launch::*;
pub use memory::*;
pub use module::*;
pub use pool::*;
pub use stream::*;
pub use texture::*;
pub use virtual_memory::*;
