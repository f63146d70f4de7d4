//! Made by `cargo xtask codegen`.

pub mod names;
