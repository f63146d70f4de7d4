//! `libcudaway_audit.so`, for `LD_AUDIT`: whoever asks for a library of CUDA's by any name or path is shown ours, before the
//! loader looks for anything. For programs that bring their own copies along and search them in ways that a preload and its
//! claims do not reach, `dlmopen` among them. It costs a second C library in every process, so it is never the default.
//!
//! The loader gives auditors a namespace of their own: nothing of the program's is reached from here. No allocation, no locks.

use core::ffi::{CStr, c_char, c_uint};
use core::sync::atomic::{AtomicBool, Ordering};

use beside::PATH_BYTES;

/// `link.h`: the newest version that we were written for.
const LAV_CURRENT: c_uint = 2;
/// `link.h`: the name as it was asked for, not one that the search has made of it.
const LA_SER_ORIG: c_uint = 1;

/// glibc before 2.35 speaks version 1 and refuses an auditor that answers with a higher one.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub extern "C" fn la_version(version: c_uint) -> c_uint {
    version.min(LAV_CURRENT)
}

/// The name that is looked for in place of `name`; a null pointer would mean that there is no such library.
///
/// # Safety
/// The loader's call: `name` is a C string.
#[cfg_attr(not(test), unsafe(no_mangle))]
pub unsafe extern "C" fn la_objsearch(
    name: *const c_char,
    _cookie: *mut usize,
    flag: c_uint,
) -> *const c_char {
    if flag != LA_SER_ORIG || name.is_null() {
        return name;
    }
    // SAFETY: the caller's promise.
    match namesake::of_path(unsafe { CStr::from_ptr(name) }.to_bytes()) {
        Some(ours) => PLACES.iter().find(|place| place.file == ours).and_then(Place::path).unwrap_or(name),
        None => name,
    }
}

/// Where a library of ours lies; found out when it is first asked for.
struct Place {
    file: &'static CStr,
    path: Path,
    is_known: AtomicBool,
}

struct Path(core::cell::UnsafeCell<[c_char; PATH_BYTES]>);

// SAFETY: the loader calls auditors with its lock held.
unsafe impl Sync for Path {}

static PLACES: [Place; 13] = [
    Place::new(namesake::DRIVER),
    Place::new(namesake::NVML),
    Place::new(namesake::RUNTIMES[0]),
    Place::new(namesake::RUNTIMES[1]),
    Place::new(namesake::RUNTIMES[2]),
    Place::new(namesake::NVJITLINKS[0]),
    Place::new(namesake::NVJITLINKS[1]),
    Place::new(namesake::CUBLAS[0]),
    Place::new(namesake::CUBLAS[1]),
    Place::new(namesake::CUBLAS[2]),
    Place::new(namesake::CUBLAS_LT[0]),
    Place::new(namesake::CUBLAS_LT[1]),
    Place::new(namesake::CUBLAS_LT[2]),
];

impl Place {
    const fn new(file: &'static CStr) -> Place {
        Place {
            file,
            path: Path(core::cell::UnsafeCell::new([0; PATH_BYTES])),
            is_known: AtomicBool::new(false),
        }
    }

    /// Beside this object, if it is there.
    fn path(&self) -> Option<*const c_char> {
        // SAFETY: one thread at a time, as `Path` says; nothing else holds the reference.
        let path = unsafe { &mut *self.path.0.get() };
        if !self.is_known.load(Ordering::Acquire) {
            beside::join(la_version as *const _, self.file, path)?;
            // SAFETY: `join` ends it with a zero.
            if unsafe { libc::access(path.as_ptr(), libc::R_OK) } != 0 {
                return None;
            }
            self.is_known.store(true, Ordering::Release);
        }
        Some(path.as_ptr())
    }
}
