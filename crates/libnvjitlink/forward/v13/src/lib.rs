//! `libnvJitLink.so.13`: its names on their version node, each a jump into the backend that has it.
//! The rule: no state of its own but the slots, nothing runs until the first call.

#![cfg_attr(not(test), no_std)]

#[rustfmt::skip]
#[path = "generated/names.rs"]
mod generated;

// NVJITLINK_ERROR_INTERNAL
trampoline::shell!(c"libcudaway_nvjitlink.so", c"CUDAWAY_NVJITLINK", not_supported: 6);
