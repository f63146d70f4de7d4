//! `preload/libcudart.so.13`: all libraries of CUDA 13 that have an object each beside it, in one. Each object that is preloaded
//! costs every program that starts; this one is called as the runtime is, and has the other names because it "needs" them, where
//! they are links to itself (xtask/src/build).

// With std, the tests in its parts compile (`cargo clippy --all-targets`).
#![cfg_attr(not(test), no_std)]

#[path = "../../../../libcublas/forward/v13/src/shell.rs"]
mod cublas;
#[path = "../../../../libcublas/forward/ltv13/src/shell.rs"]
mod cublas_lt;
#[path = "../../../../libcudart/forward/v13/src/shell.rs"]
mod cudart;
#[path = "../../../../libnvjitlink/forward/v13/src/shell.rs"]
mod nvjitlink;

trampoline::end_at_panic!();
trampoline::forward_exports!(cublas::LIBRARY, cublas_lt::LIBRARY);
