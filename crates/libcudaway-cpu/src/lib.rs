//! `libcudaway_cpu.so`: the CPU with HIP's ABI. Exports and wiring only; what a call does is in `hip_cpu::api`.
//!
//! LLVM is inside, static and hidden: rustc's version script makes everything local that is not exported here.
#![allow(non_snake_case, non_upper_case_globals, reason = "names are HIP's")]

mod exports;
mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}
