//! The hooks object as `cargo test` makes it, for the tests to load.

#[allow(unused_imports, reason = "its exported names are what counts")]
pub use libcudaway_hooks::*;
