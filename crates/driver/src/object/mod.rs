//! State that outlives a call.

pub mod array;
pub mod context;
pub mod device;
pub mod event;
pub mod gfx;
pub mod graph;
pub mod green;
pub mod library;
pub mod linked;
pub mod location;
pub mod log;
pub mod memory;
pub mod module;
pub mod stream;
pub mod texture;
pub mod user_object;

pub use context::Context;
pub use device::Device;
pub use event::Event;
pub use library::{Kernel, Library};
pub use memory::Allocation;
pub use module::{Function, Module};
pub use stream::Stream;

/// A raw pointer or handle of the provider's that may travel between threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Shared<P>(pub P);

// SAFETY: HIP's objects may be used from any thread; what is held here is a name, never dereferenced by us.
unsafe impl<T> Send for Shared<*mut T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<*mut T> {}
