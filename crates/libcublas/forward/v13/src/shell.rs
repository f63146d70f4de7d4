//! The library but for what an object has once; crates/trampoline/preload has it too.

#[rustfmt::skip]
#[path = "generated/names.rs"]
mod generated;

// CUBLAS_STATUS_NOT_SUPPORTED
trampoline::shell!(c"libcudaway_blas.so", c"CUDAWAY_BLAS", major: 13, not_supported: 15);
