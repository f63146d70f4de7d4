//! The HIP ABI: types, error codes, the function table, and where providers are found.
//!
//! Names here are HIP's own. ROCm's library and our `libcudaway_cpu.so` are opened the same way; whatever differs
//! between ROCm 5, 6 and 7 is known to `negotiate` only.
#![allow(non_camel_case_types, non_snake_case, non_upper_case_globals, reason = "names are HIP's")]

pub mod attribute;
pub mod error;
#[macro_use]
mod generated {
    //! Made by `cargo xtask codegen`.
    #[macro_use]
    #[rustfmt::skip]
    pub mod functions;
}
pub mod negotiate;
pub mod provider;
pub mod table;
pub mod texture;
pub mod types;

pub use attribute::*;
pub use error::*;
pub use negotiate::{DeviceIdentity, Layout};
pub use provider::Provider;
pub use table::{Graph, Hip, HipError, Prepare, Work, graph};
pub use texture::*;
pub use types::*;
