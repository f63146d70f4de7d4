//! The calls as C makes them. No panic crosses them, and handles are numbers, never followed.

use core::ffi::{CStr, c_char, c_uint, c_void};
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Once;

use border::{Library, Sort, Voice};
use kit::Registry;
use parking_lot::Mutex;

use crate::input::Kind;
use crate::link::Link;
use crate::result::{Error, Release, Result};

/// `nvJitLinkHandle`
type Handle = *mut c_void;

static LINKS: Registry<Mutex<Link>> = Registry::new();

/// The version of before CUDA 12.3, from which on programs with a choice (Numba, cuda.core) hand over LTO IR. With an older one
/// they make PTX and let the driver link it.
const VERSION: (c_uint, c_uint) = (12, 2);

/// The border (`crates/border`), in the result codes of a release.
struct NvJitLink(Release);

impl Library for NvJitLink {
    type Status = i32;
    type Error = Error;

    const VOICE: Voice = border::voice!("cudaway::nvjitlink", "nvjitlink");
    const SUCCESS: i32 = 0;

    fn start(&self) {
        static START: Once = Once::new();
        START.call_once(|| {
            (Self::VOICE.start)();
            // Our shell has no log: what it did not open is told of here.
            for path in config::var("CUDAWAY_NVJITLINK")
                .iter()
                .flat_map(|list| list.as_bytes().split(|&byte| byte == b','))
            {
                _ = config::named::library(Path::new(OsStr::from_bytes(path.trim_ascii())));
            }
        });
    }

    fn sort<'a>(&self, error: &'a Error) -> Sort<'a> {
        if *error == Error::Internal { Sort::Internal } else { Sort::Failure }
    }

    fn failed(&self, _name: &'static str, error: &Error) -> i32 {
        error.code(self.0)
    }

    fn broken(&self, _name: &'static str) -> i32 {
        Error::Internal.code(self.0)
    }
}

fn entry(name: &'static str, release: Release, mut body: impl FnMut() -> Result) -> i32 {
    guarded(name, release, &mut body)
}

/// [`entry`], once for all bodies.
fn guarded(name: &'static str, release: Release, body: &mut dyn FnMut() -> Result) -> i32 {
    border::call(&NvJitLink(release), name, body)
}

fn with<T>(handle: Handle, act: impl FnOnce(&mut Link) -> Result<T>) -> Result<T> {
    if handle.is_null() {
        return Err(Error::NullInput);
    }
    let link = LINKS.get(handle).map_err(|_| Error::InvalidInput)?;
    let mut link = link.lock();
    act(&mut link)
}

/// # Safety
/// `text` is NULL or a C string.
unsafe fn string(text: *const c_char) -> Option<String> {
    // SAFETY: the caller's promise.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}

/// # Safety
/// `handle` is NULL or writable; `options` has `count` C strings.
pub unsafe fn create(
    release: Release,
    handle: *mut Handle,
    count: u32,
    options: *const *const c_char,
) -> i32 {
    entry("nvJitLinkCreate", release, || {
        if handle.is_null() || (options.is_null() && count > 0) {
            return Err(Error::NullInput);
        }
        let at = |index: u32| options.wrapping_add(index as usize);
        // SAFETY: the caller's promise.
        let words: Option<Vec<String>> = (0..count).map(|index| unsafe { string(*at(index)) }).collect();
        let (link, answer) = Link::new(&words.ok_or(Error::NullInput)?);
        // SAFETY: the caller's promise. Also when the options are refused: its log is asked why.
        unsafe { handle.write(LINKS.add(Mutex::new(link))) };
        answer
    })
}

/// # Safety
/// `handle` is NULL or good to read and write.
pub unsafe fn destroy(release: Release, handle: *mut Handle) -> i32 {
    entry("nvJitLinkDestroy", release, || {
        if handle.is_null() {
            return Err(Error::NullInput);
        }
        // SAFETY: the caller's promise.
        let link = unsafe { *handle };
        if link.is_null() {
            return Err(Error::NullInput);
        }
        LINKS.remove(link).map_err(|_| Error::InvalidInput)?;
        // SAFETY: the caller's promise.
        unsafe { handle.write(core::ptr::null_mut()) };
        Ok(())
    })
}

/// # Safety
/// `len_bytes` are readable at `data`; `name` is NULL or a C string.
pub unsafe fn add_data(
    release: Release,
    handle: Handle,
    kind: i32,
    data: *const c_void,
    len_bytes: usize,
    name: *const c_char,
) -> i32 {
    entry("nvJitLinkAddData", release, || {
        if data.is_null() || len_bytes == 0 {
            return Err(Error::InvalidInput);
        }
        let kind = Kind::new(kind).ok_or(Error::IncorrectInputType)?;
        // SAFETY: the caller's promise.
        let (bytes, name) = unsafe {
            (core::slice::from_raw_parts(data.cast::<u8>(), len_bytes), string(name).unwrap_or_default())
        };
        with(handle, |link| link.add(kind, bytes, &name))
    })
}

/// # Safety
/// `path` is NULL or a C string.
pub unsafe fn add_file(release: Release, handle: Handle, kind: i32, path: *const c_char) -> i32 {
    entry("nvJitLinkAddFile", release, || {
        // SAFETY: the caller's promise.
        let path = unsafe { string(path) }.ok_or(Error::NullInput)?;
        let kind = Kind::new(kind).ok_or(Error::IncorrectInputType)?;
        let bytes = std::fs::read(&path);
        with(handle, |link| match bytes {
            Ok(bytes) => link.add(kind, &bytes, &path),
            Err(why) => link.no_such_file(&path, &why),
        })
    })
}

/// # Safety
/// None: `handle` is a number.
pub unsafe fn complete(release: Release, handle: Handle) -> i32 {
    entry("nvJitLinkComplete", release, || with(handle, Link::complete))
}

/// Writes how many bytes the value of `get` takes.
unsafe fn size(
    name: &'static str,
    release: Release,
    handle: Handle,
    size: *mut usize,
    get: impl Fn(&Link) -> Result<usize>,
) -> i32 {
    entry(name, release, || {
        if size.is_null() {
            return Err(Error::NullInput);
        }
        let len_bytes = with(handle, |link| get(link))?;
        // SAFETY: C's contract: it is writable.
        unsafe { size.write(len_bytes) };
        Ok(())
    })
}

/// Copies the bytes that `get` gives.
unsafe fn copy(
    name: &'static str,
    release: Release,
    handle: Handle,
    to: *mut u8,
    get: impl Fn(&Link) -> Result<Vec<u8>>,
) -> i32 {
    entry(name, release, || {
        if to.is_null() {
            return Err(Error::NullInput);
        }
        let bytes = with(handle, |link| get(link))?;
        // SAFETY: C's contract: there is room for what the size call said.
        unsafe { core::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        Ok(())
    })
}

/// # Safety
/// `to` is NULL or writable.
pub unsafe fn linked_cubin_size(release: Release, handle: Handle, to: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { size("nvJitLinkGetLinkedCubinSize", release, handle, to, |link| link.image().map(<[u8]>::len)) }
}

/// # Safety
/// `to` is NULL or has room for what [`linked_cubin_size`] says.
pub unsafe fn linked_cubin(release: Release, handle: Handle, to: *mut c_void) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        copy("nvJitLinkGetLinkedCubin", release, handle, to.cast(), |link| link.image().map(<[u8]>::to_vec))
    }
}

/// PTX or LTO IR of a link, which LTO IR alone would give.
///
/// # Safety
/// `to` is NULL or writable.
pub unsafe fn not_linked_size(release: Release, handle: Handle, to: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { size("nvJitLinkGetLinkedPtxSize", release, handle, to, |link| link.other().map(|()| 0)) }
}

/// # Safety
/// None: nothing is written.
pub unsafe fn not_linked(release: Release, handle: Handle, _to: *mut c_void) -> i32 {
    entry("nvJitLinkGetLinkedPtx", release, || with(handle, |link| link.other()))
}

/// A log and the zero behind it; nothing at all of an empty one.
fn terminated(log: &str) -> Vec<u8> {
    if log.is_empty() { Vec::new() } else { [log.as_bytes(), b"\0"].concat() }
}

/// # Safety
/// `to` is NULL or writable.
pub unsafe fn error_log_size(release: Release, handle: Handle, to: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe {
        size("nvJitLinkGetErrorLogSize", release, handle, to, |link| Ok(terminated(&link.errors).len()))
    }
}

/// # Safety
/// `to` is NULL or has room for what [`error_log_size`] says.
pub unsafe fn error_log(release: Release, handle: Handle, to: *mut c_char) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { copy("nvJitLinkGetErrorLog", release, handle, to.cast(), |link| Ok(terminated(&link.errors))) }
}

/// # Safety
/// `to` is NULL or writable.
pub unsafe fn info_log_size(release: Release, handle: Handle, to: *mut usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { size("nvJitLinkGetInfoLogSize", release, handle, to, |link| Ok(terminated(&link.infos).len())) }
}

/// # Safety
/// `to` is NULL or has room for what [`info_log_size`] says.
pub unsafe fn info_log(release: Release, handle: Handle, to: *mut c_char) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { copy("nvJitLinkGetInfoLog", release, handle, to.cast(), |link| Ok(terminated(&link.infos))) }
}

/// # Safety
/// Both are NULL or writable.
pub unsafe fn version(release: Release, major: *mut c_uint, minor: *mut c_uint) -> i32 {
    entry("nvJitLinkVersion", release, || {
        if major.is_null() || minor.is_null() {
            return Err(Error::NullInput);
        }
        // SAFETY: the caller's promise.
        unsafe {
            major.write(VERSION.0);
            minor.write(VERSION.1);
        }
        Ok(())
    })
}
