//! `libcudaway_refused.so`: libraries of NVIDIA's that programs link and of which CUDAway has nothing (NCCL, cuSPARSELt, cuFile,
//! CUPTI, NVSHMEM), so that such a program starts where they are not installed.
//!
//! The rule: no call succeeds but those that give a text or a version, and none is silent. Each answers with the status that its library has for that, and the log tells of
//! the first of each name. What gives nothing can say no more than that; NVSHMEM allows such calls after its initialisation only,
//! which is refused.

use core::ffi::{CStr, c_char, c_int};
use core::fmt;

use border::{Library, Sort, Voice};

/// An export that is refused. It takes no parameters: none is looked at, and in C's calls the caller takes them back.
macro_rules! refuse {
    ($name:ident, $text:literal, $library:literal, $answer:literal) => {
        #[unsafe(no_mangle)]
        pub extern "C" fn $name() -> isize {
            ::trace::call_value!($text, (), { $crate::refused($text, $library, $answer) })
        }
    };
}

mod generated {
    //! Made by `cargo xtask codegen`.
    #[rustfmt::skip]
    pub mod exports;
}

pub use generated::exports::*;

/// The border (`crates/border`) of a call that is refused, and its answer.
struct Refused(i32);

/// The library that there is nothing of.
struct Absent(&'static str);

impl fmt::Display for Absent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CUDAway has nothing of lib{}, and NVIDIA's is not installed where the program looks",
            self.0
        )
    }
}

impl Library for Refused {
    type Status = isize;
    type Error = Absent;

    const VOICE: Voice = border::voice!("cudaway::refused");
    const SUCCESS: isize = 0;
    const REPEATS: bool = false;

    fn sort<'a>(&self, absent: &'a Absent) -> Sort<'a> {
        Sort::Unsupported { news: absent.0, why: absent }
    }

    /// In an answer of 32 bits the upper half is zero or its sign: cuFile's has the driver's status there, of which there is none.
    fn failed(&self, _name: &'static str, _absent: &Absent) -> isize {
        self.0 as isize
    }

    fn broken(&self, _name: &'static str) -> isize {
        self.0 as isize
    }
}

/// Tells the log of a call that is refused, once for each name.
#[cold]
fn refused(name: &'static str, library: &'static str, answer: i32) -> isize {
    border::call(&Refused(answer), name, || Err(Absent(library)))
}

const TEXT: &CStr = c"not supported: CUDAway has nothing of this library";

/// The text of every status: there is one reason.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetErrorString(_: c_int) -> *const c_char {
    TEXT.as_ptr()
}

/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn pncclGetErrorString(_: c_int) -> *const c_char {
    TEXT.as_ptr()
}

/// The last call that failed did so for this reason.
#[unsafe(no_mangle)]
pub extern "C" fn ncclGetLastError(_: *const c_char) -> *const c_char {
    TEXT.as_ptr()
}

/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn pncclGetLastError(_: *const c_char) -> *const c_char {
    TEXT.as_ptr()
}

/// The release whose functions are here, 2.30.7: programs that only write down what they run on ask for it (`cupy.show_config`).
///
/// # Safety
/// `version` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ncclGetVersion(version: *mut c_int) -> c_int {
    const NCCL_VERSION_CODE: c_int = 2 * 10_000 + 30 * 100 + 7;
    const NCCL_INVALID_ARGUMENT: c_int = 4;
    if version.is_null() {
        return NCCL_INVALID_ARGUMENT;
    }
    // SAFETY: not NULL, and the caller's promise.
    unsafe { version.write(NCCL_VERSION_CODE) };
    0
}

/// As above.
///
/// # Safety
/// As [`ncclGetVersion`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pncclGetVersion(version: *mut c_int) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { ncclGetVersion(version) }
}

/// The status that calls get; others nobody was given.
#[unsafe(no_mangle)]
pub extern "C" fn cusparseLtGetErrorName(_: c_int) -> *const c_char {
    c"CUSPARSE_STATUS_NOT_SUPPORTED".as_ptr()
}

/// As above.
#[unsafe(no_mangle)]
pub extern "C" fn cusparseLtGetErrorString(_: c_int) -> *const c_char {
    TEXT.as_ptr()
}

/// The name of the status that calls get. It gives what it is asked for, so it succeeds.
///
/// # Safety
/// `text` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetResultString(_: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { give(text, c"CUPTI_ERROR_NOT_SUPPORTED") }
}

/// What it means.
///
/// # Safety
/// `text` is NULL or writable.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cuptiGetErrorMessage(_: c_int, text: *mut *const c_char) -> c_int {
    // SAFETY: the caller's promise.
    unsafe { give(text, TEXT) }
}

/// # Safety
/// `to` is NULL or writable.
unsafe fn give(to: *mut *const c_char, text: &'static CStr) -> c_int {
    const CUPTI_ERROR_INVALID_PARAMETER: c_int = 1;
    if to.is_null() {
        return CUPTI_ERROR_INVALID_PARAMETER;
    }
    // SAFETY: not NULL, and the caller's promise.
    unsafe { to.write(text.as_ptr()) };
    0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_has_its_librarys_status() {
        assert_eq!(ncclCommInitRank(), 2);
        assert_eq!(cuptiSubscribe(), 27);
        assert_eq!(cusparseLtInit(), 10);
        assert_eq!(nvshmemx_hostlib_init_attr(), 3);
        assert_eq!(nvshmem_malloc(), 0);
        assert_eq!(cuFileRead(), -5007);
        // Two numbers of 32 bits: cuFile's, and the driver's.
        assert_eq!(cuFileDriverOpen(), 5007);
    }

    #[test]
    fn nccl_says_its_release() {
        let mut version = 0;
        // SAFETY: writable; and NULL is looked at.
        unsafe {
            assert_eq!(pncclGetVersion(&raw mut version), 0);
            assert_eq!(ncclGetVersion(core::ptr::null_mut()), 4);
        }
        let list = include_str!("../../../../../tools/data/refused/nccl.txt");
        let release = format!("{}.{}.{}", version / 10_000, version / 100 % 100, version % 100);
        assert!(list.lines().next().unwrap().contains(&format!(" {release}'s ")), "{release}");
    }

    #[test]
    fn a_text_names_the_reason() {
        let mut text = core::ptr::null();
        // SAFETY: writable; and NULL is looked at.
        unsafe {
            assert_eq!(cuptiGetResultString(27, &raw mut text), 0);
            assert_eq!(CStr::from_ptr(text), c"CUPTI_ERROR_NOT_SUPPORTED");
            assert_eq!(cuptiGetResultString(27, core::ptr::null_mut()), 1);
        }
    }
}
