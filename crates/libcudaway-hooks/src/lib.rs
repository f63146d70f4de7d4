//! `libcudaway_hooks.so`: `dlsym` and `dlopen` in front of libc's, for programs that neither a SONAME nor a claim reaches.
//!
//! Preloaded and switched on by `CUDAWAY_HOOKS=dlsym`, `dlopen`, or both; `log` in that list tells of each redirection. The
//! rules: what is not redirected jumps on to libc with the caller's own registers and return address, since libc looks at that
//! address to know who asks (`RTLD_NEXT`, `RUNPATH`); only names that CUDA's libraries export are redirected, by the whole
//! name; nothing here allocates, takes a lock of ours, or can panic, for the first caller may be a constructor, a signal handler
//! or `malloc` itself.

mod decide;
mod entry;
#[rustfmt::skip]
mod generated;
mod options;
mod ours;
mod real;
mod say;

pub use entry::{dlopen, dlsym};
