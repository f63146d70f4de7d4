use core::arch::naked_asm;
use core::ffi::{c_char, c_int, c_void};

use super::RELOCATED;
use crate::{decide, real};

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
