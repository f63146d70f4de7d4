//! What the settings share: LLVM IR text of each pure operation, scalar or W lanes wide.
//!
//! [`Builder`] writes text, [`inst::emit_pure`] writes one operation with PTX's result for every input. Predicates are
//! `i1` / `<W x i1>`. The text needs LLVM 19; it names no symbol besides LLVM's own intrinsics.

mod builder;
pub mod inst;
pub mod lane;
pub mod memory;
pub mod nan;
pub mod texture;
mod ty;

pub use builder::{Builder, ROLLED_IS, Val};
pub use inst::{Unsupported, emit_pure};
pub use ty::{Scalar, Type};
