//! From LLVM IR text to an AMD code object, by AMD's own compiler.
//!
//! That compiler is `libamd_comgr` of the user's ROCm, whose LLVM ends the process on what it cannot select. So it runs in
//! `cudaway-comgr`, a program of its own (src/main.rs, `serve/`), a few of which are kept and spoken to over sockets
//! (`client`). Nothing that happens to them reaches the program: it gets an [`Error`] with the compiler's last words.
//!
//! Where there is no comgr, or one that does not know the GPU, the same program runs `clang` and `ld.lld`.

mod client;
pub mod code_object;
mod find;
pub mod protocol;

pub use client::{Compiler, Setup};
pub use code_object::CodeObject;
pub use find::{Backend, backends};

/// What is to be compiled.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Names it in the log and in messages.
    pub name: &'a str,
    /// `gfx1100`, or with the features that HIP says: `gfx90a:sramecc+:xnack-`.
    pub target: &'a str,
    /// LLVM IR.
    pub text: &'a str,
    /// Of what made the text: part of the cache's key.
    pub translator: &'a str,
}

/// What a person can do where nothing compiles for a GPU.
pub const INSTALL: &str = "install a compiler that knows it: ROCm's libamd_comgr (package comgr of ROCm; libamd-comgr3 or libamd-comgr2 of \
    Debian and Ubuntu), or LLVM with its linker (packages clang-19 and lld-19, or newer); CUDAWAY_ROCM_ROOT says where a ROCm lies";

/// Why there is no code object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("cudaway-comgr cannot be started: {0}")]
    NoHelper(String),
    #[error("nothing here compiles for {target} ({tried}); {INSTALL}")]
    NoCompiler { target: String, tried: String },
    #[error("{compiler} refused it: {log}")]
    Refused { compiler: String, log: String },
    #[error("{compiler} gave up: {words}")]
    Crashed { compiler: String, words: String },
    #[error("{compiler} took more than {seconds} s")]
    TimedOut { compiler: String, seconds: u64 },
    #[error("the code object uses what nobody defines: {}", .0.join(", "))]
    Undefined(Vec<String>),
    #[error("what the compiler made is no code object: {0}")]
    Damaged(String),
}
