//! PTX in, LLVM IR text out. Safe code, no I/O, no panic on any input.
//!
//! [`program`] parses and links PTX sources into a [`Program`]; [`lower`] turns each body into the SSA of [`ir`];
//! [`pass`] analyses and rewrites it; [`back`] emits LLVM IR for a target. docs/architecture.md has the seams.

#![forbid(unsafe_code)]

pub mod back;
pub mod image;
pub mod ir;
pub mod lines;
pub mod lower;
pub mod matrix;
pub mod pass;
pub mod program;
pub mod tensor_map;
pub mod texture;

pub use program::{Cause, Diagnostic, Program, Source};
