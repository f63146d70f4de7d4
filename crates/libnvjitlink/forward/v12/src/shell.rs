//! The library but for what an object has once; crates/trampoline/preload has it too.

#[rustfmt::skip]
#[path = "generated/names.rs"]
mod generated;

// NVJITLINK_ERROR_INTERNAL
trampoline::shell!(c"libcudaway_nvjitlink.so", c"CUDAWAY_NVJITLINK", major: 12, not_supported: 6);
