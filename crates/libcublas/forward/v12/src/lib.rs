//! `libcublas.so.12`: its names on their version node, each a jump into the backend that has it.
//! The rule: no state of its own but the slots, nothing runs until the first call.

#![cfg_attr(not(test), no_std)]

mod shell;

trampoline::end_at_panic!();
trampoline::forward_exports!(shell::LIBRARY);
