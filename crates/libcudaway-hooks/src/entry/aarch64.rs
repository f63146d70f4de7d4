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
        "adrp x16, {relocated}",
        "ldr x16, [x16, :lo12:{relocated}]",
        "adrp x17, {decide}",
        "add x17, x17, :lo12:{decide}",
        "cmp x16, x17",
        "mov x16, xzr",
        "b.ne 2f",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "mov x2, x30", // who asks
        "bl {decide}",
        "mov x16, x0",
        "ldp x0, x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "cbnz x16, 2f",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 2f",
        "br x16",
        "2: mov x0, x16",
        "ret",
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
        "adrp x16, {relocated}",
        "ldr x16, [x16, :lo12:{relocated}]",
        "adrp x17, {symbol}",
        "add x17, x17, :lo12:{symbol}",
        "cmp x16, x17",
        "b.ne 2f",
        "stp x29, x30, [sp, #-32]!",
        "mov x29, sp",
        "str x1, [sp, #16]",
        "mov x1, x30",  // who asks
        "bl {decide}",  // the file to open, `file` or another
        "ldr x1, [sp, #16]",
        "ldp x29, x30, [sp], #32",
        "adrp x16, {real}",
        "ldr x16, [x16, :lo12:{real}]",
        "cbz x16, 2f",
        "br x16",
        "2: mov x0, xzr",
        "ret",
        relocated = sym RELOCATED,
        symbol = sym decide::symbol,
        decide = sym decide::file,
        real = sym real::DLOPEN,
    )
}
