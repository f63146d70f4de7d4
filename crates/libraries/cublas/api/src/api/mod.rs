//! The bodies. One that stands under its C name takes what C hands over; a routine that all types share (`gemv`) takes a
//! [`Handle`](crate::handle::Handle) and `i64` for every integer, and serves every C name of the routine: the generated
//! exports leave the type to inference (xtask/src/codegen/blas.rs).

pub mod batched;
pub mod emulation;
pub mod first;
pub mod gemm_ex;
pub mod level1;
pub mod level1_ex;
pub mod level2;
pub mod level3;
pub mod lifecycle;
pub mod logger;
pub mod lt;
pub mod mode;
mod operand;
pub mod release;
pub mod vector;
pub mod xt;
