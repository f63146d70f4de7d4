//! What each `cu*` call means: NVIDIA's driver API over any HIP provider.
//!
//! `api/` holds one body per call, named like the call; `object/` what outlives a call. Lock order: a registry slot or
//! an object's own lock is taken alone, and no lock is held over a HIP call that may block or over a user's callback.
#![allow(non_snake_case, reason = "bodies have C's names")]
#![allow(clippy::too_many_arguments, reason = "signatures are CUDA's")]

pub mod api;
mod entry;
mod error;
pub mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod proc_address;
}
pub mod handle;
mod image;
mod jit;
pub mod object;
pub mod process;
mod shown;
mod visible;

pub use border::is_news;
pub use entry::{entry, entry_per_thread, missing, on_news, start};
pub use error::{Error, Result, describe};
