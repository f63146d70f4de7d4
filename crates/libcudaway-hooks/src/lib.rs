//! `libcudaway_hooks.so`: `dlsym` and `dlopen` in front of libc's, for programs that neither a SONAME nor a claim reaches.
//!
//! Preloaded and switched on by `CUDAWAY_HOOKS=dlsym`, `dlopen`, or both; `log` in that list tells of each redirection. The
//! rules: what is not redirected jumps on to libc with the caller's own registers and return address, since libc looks at that
//! address to know who asks (`RTLD_NEXT`, `RUNPATH`); only names that CUDA's libraries export are redirected, by the whole
//! name; nothing here allocates, takes a lock of ours, or can panic, for the first caller may be a constructor, a signal handler
//! or `malloc` itself.

mod decide;
#[rustfmt::skip]
mod generated;
mod options;
mod ours;
mod real;
mod say;

use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

/// Not null once this object is relocated. Before (in the `ifunc` of a library that is relocated earlier) nothing here may
/// be called, and NULL is the only answer.
static RELOCATED: unsafe extern "C" fn(*mut c_void, *const c_char, *const c_void) -> *mut c_void =
    decide::symbol;

/// # Safety
/// As `dlsym(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void {
    naked_asm!(
        "xor eax, eax",
        "cmp qword ptr [rip + {relocated}], 0",
        "je 2f",
        "push rdi",
        "push rsi",
        "sub rsp, 8",
        "mov rdx, [rsp + 24]", // who asks
        "call {decide}",
        "add rsp, 8",
        "pop rsi",
        "pop rdi",
        "test rax, rax",
        "jnz 2f",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: ret",
        relocated = sym RELOCATED,
        decide = sym decide::symbol,
        real = sym real::DLSYM,
    )
}

/// # Safety
/// As `dlopen(3)`.
#[cfg_attr(not(test), unsafe(no_mangle))]
#[unsafe(naked)]
pub unsafe extern "C" fn dlopen(file: *const c_char, mode: c_int) -> *mut c_void {
    naked_asm!(
        "xor eax, eax",
        "cmp qword ptr [rip + {relocated}], 0",
        "je 2f",
        "push rsi",
        "mov rsi, [rsp + 8]", // who asks
        "call {decide}",      // the file to open, `file` or another
        "pop rsi",
        "mov rdi, rax",
        "mov rax, [rip + {real}]",
        "test rax, rax",
        "jz 2f",
        "jmp rax",
        "2: ret",
        relocated = sym RELOCATED,
        decide = sym decide::file,
        real = sym real::DLOPEN,
    )
}
