//! Back ends: LLVM IR text for a target. `llvm` is what they share, `lane` (`lane`) and `simd` (`simd`) are the CPU's settings.

pub mod cpu;
pub mod gcn;
pub mod lane;
pub mod llvm;
pub mod simd;
