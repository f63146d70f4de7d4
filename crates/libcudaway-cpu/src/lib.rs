//! `libcudaway_cpu.so`: the CPU with HIP's ABI. Exports and wiring only; what a call does is in `hip_cpu::api`.
//!
//! LLVM is inside, static and hidden: rustc's version script makes everything local that is not exported here.
#![allow(non_snake_case, non_upper_case_globals, reason = "names are HIP's")]

mod exports;

// LLVM's and libstdc++'s global objects are never destroyed: the process may end while kernels are compiled in other
// threads, and the library is never unloaded. build.rs binds their registrations here, inside this object only.
core::arch::global_asm!(
    ".pushsection .text.cudaway_no_exit_handler,\"ax\",@progbits",
    ".globl cudaway_no_exit_handler",
    ".hidden cudaway_no_exit_handler",
    ".type cudaway_no_exit_handler,@function",
    "cudaway_no_exit_handler:",
    "xor eax, eax",
    "ret",
    ".size cudaway_no_exit_handler, . - cudaway_no_exit_handler",
    ".popsection",
);
