//! PTX in, LLVM IR text out. Safe code, no I/O, no panic on any input.
//!
//! [`module`] skims and links PTX sources into a [`Module`]; [`lower`] turns the kernels asked for, and what they reach,
//! into a [`Program`] in the SSA of [`ir`];
//! [`pass`] analyses and rewrites it; [`back`] emits LLVM IR for a target. docs/architecture.md has the seams.

#![forbid(unsafe_code)]

pub mod back;
pub mod device_runtime;
pub mod exchange;
pub mod image;
pub mod ir;
pub mod lines;
pub mod lower;
pub mod matrix;
pub mod module;
pub mod pass;
pub mod program;
pub mod tensor_map;
pub mod tensor_memory;
pub mod texture;

pub use back::gcn;
pub use module::Module;
pub use program::{Cause, Diagnostic, Program, Source};

/// Names this translator (build.rs): part of every cache key of what it makes or says.
pub const TRANSLATOR: &str = env!("CUDAWAY_TRANSLATOR");
