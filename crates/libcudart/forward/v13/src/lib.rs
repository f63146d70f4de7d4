//! `libcudart.so.13`: the names of CUDA 13's runtime on their version node, each a jump into `libcudaway_cudart.so`.
//! The rule: no state of its own, nothing runs until the first call.

#![cfg_attr(not(test), no_std)]

mod shell;

trampoline::end_at_panic!();
