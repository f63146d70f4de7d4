//! Whether the environment may be believed, and whose files may run ([`files`]): the one place that decides, for every object of
//! ours.
//!
//! A program may run with rights that whoever started it does not have: set-user-ID, set-group-ID, file capabilities, or what a
//! security module says. There the environment is a stranger's, so the rule is: no variable of ours is read, nor one that leads
//! to files (`HOME`, `TMPDIR`, `XDG_*`, `PATH`, ROCm's). libc only, no allocation: usable before `main`.

#![cfg_attr(not(test), no_std)]

pub mod files;

use core::ffi::CStr;

/// Whether the process was started with more rights than its user has: the kernel's word (`AT_SECURE`), by which the loader
/// ignores `LD_PRELOAD`.
pub fn is_secure_execution() -> bool {
    // SAFETY: it takes any number. The kernel always gives this entry.
    unsafe { libc::getauxval(libc::AT_SECURE) != 0 }
}

/// A variable of the environment, where that may be believed.
pub fn variable(name: &CStr) -> Option<&'static CStr> {
    if is_secure_execution() {
        return None;
    }
    // SAFETY: a C string; the environment is as safe to read as for any other reader, and nothing is allocated.
    let value = unsafe { libc::getenv(name.as_ptr()) };
    // SAFETY: a C string of the environment.
    (!value.is_null()).then(|| unsafe { CStr::from_ptr(value) })
}

/// The user whose rights the process has now.
pub fn effective_user() -> u32 {
    // SAFETY: it has no parameters and cannot fail.
    unsafe { libc::geteuid() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_is_started_by_its_own_user() {
        assert!(!is_secure_execution());
        assert!(variable(c"PATH").is_some_and(|path| !path.is_empty()));
        assert_eq!(variable(c"CUDAWAY_NEVER_SET"), None);
    }
}
