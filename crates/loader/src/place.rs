//! Where an object of ours was loaded from, so that it finds what lies beside it.
//!
//! The loader notes the directory when it maps an object, so the answer holds even when the object was named by a relative
//! path (`LD_PRELOAD=lib/libcuda.so.1`) and the program has changed its directory since. libc only, no allocation: usable
//! before `main`.

use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr::NonNull;

/// `dlfcn.h`: dladdr1 also gives the object's link map.
const RTLD_DL_LINKMAP: c_int = 2;

/// Room for any path the system takes.
pub const PATH_BYTES: usize = 4096;

/// A folder whose objects lie, by our reckoning, beside those of the folder that it is in.
const PRELOAD: &[u8] = b"/preload";

/// Writes `<directory of the object that holds address>/<file>` with a final zero.
pub fn join(address: *const c_void, file: &CStr, path: &mut [c_char; PATH_BYTES]) -> Option<()> {
    let (_, map) = object(address)?;
    // SAFETY: the link map of the object that holds the address.
    let directory_bytes = match unsafe { is_program(map) } {
        true => program_directory(path)?,
        // SAFETY: as above.
        false => unsafe { origin(map, path) }?,
    };
    let directory_bytes = without_preload(path.get(..directory_bytes)?);
    let tail = core::iter::once(&b'/').chain(file.to_bytes_with_nul());
    let room = path.get_mut(directory_bytes..directory_bytes + 1 + file.to_bytes_with_nul().len())?;
    for (to, &from) in room.iter_mut().zip(tail) {
        *to = c_char::from_ne_bytes([from]);
    }
    Some(())
}

/// The library `name`: the one already in the process, else the one beside the object that holds `address`, else the one the
/// loader finds. It stays open. `failed` hears of each path that exists and does not open, with the loader's reason.
pub fn open(
    address: *const c_void,
    name: &CStr,
    mut failed: impl FnMut(&CStr, &CStr),
) -> Option<NonNull<c_void>> {
    let mut load = |path: *const c_char, flags: c_int| {
        // SAFETY: a string; the libraries asked for have constructors that do not depend on who opens them.
        let handle = unsafe { libc::dlopen(path, libc::RTLD_NOW | libc::RTLD_LOCAL | flags) };
        if handle.is_null() && flags == 0 {
            // SAFETY: the reason is this thread's, of the call just made, and a string or NULL; `path` is a string.
            unsafe {
                let reason = libc::dlerror();
                failed(CStr::from_ptr(path), if reason.is_null() { c"" } else { CStr::from_ptr(reason) });
            }
        }
        NonNull::new(handle)
    };
    if let Some(here) = load(name.as_ptr(), libc::RTLD_NOLOAD) {
        return Some(here);
    }
    let mut path = [0; PATH_BYTES];
    let is_beside = join(address, name, &mut path).is_some()
        // SAFETY: `join` ends it with a zero.
        && unsafe { libc::access(path.as_ptr(), libc::F_OK) } == 0;
    let beside = if is_beside { load(path.as_ptr(), 0) } else { None };
    beside.or_else(|| load(name.as_ptr(), 0))
}

/// The length of the directory's name, without a final `/preload`.
fn without_preload(directory: &[c_char]) -> usize {
    let above = directory.len().saturating_sub(PRELOAD.len());
    let is_preload = directory[above..].iter().map(|&byte| byte.to_ne_bytes()[0]).eq(PRELOAD.iter().copied());
    if is_preload { above } else { directory.len() }
}

/// The directory that the loader noted for a library.
///
/// # Safety
/// `map` is the link map of an object that stays loaded.
unsafe fn origin(map: *mut c_void, path: &mut [c_char; PATH_BYTES]) -> Option<usize> {
    // SAFETY: the caller's promise: a link map, which is a handle with glibc; the origin is a path, which fits.
    if unsafe { libc::dlinfo(map, libc::RTLD_DI_ORIGIN, path.as_mut_ptr().cast()) } != 0 {
        return None;
    }
    path.iter().position(|&byte| byte == 0)
}

/// The program's own entry has an empty name, and glibc notes no origin for it.
///
/// # Safety
/// `map` is the link map of an object that stays loaded.
unsafe fn is_program(map: *mut c_void) -> bool {
    /// The start of `struct link_map`, as link.h has it.
    #[repr(C)]
    struct Start {
        bias: usize,
        name: *const c_char,
    }
    // SAFETY: the caller's promise: a link map, whose name is a string.
    unsafe { CStr::from_ptr((*map.cast::<Start>()).name) }.is_empty()
}

fn program_directory(path: &mut [c_char; PATH_BYTES]) -> Option<usize> {
    // SAFETY: a literal name, and room of the length said.
    let len_bytes = unsafe { libc::readlink(c"/proc/self/exe".as_ptr(), path.as_mut_ptr(), path.len()) };
    let target = path.get(..usize::try_from(len_bytes).ok()?)?;
    target.iter().rposition(|&byte| byte == c_char::from_ne_bytes([b'/']))
}

/// The path by which the object that holds `address` was loaded.
pub fn path(address: *const c_void) -> Option<&'static CStr> {
    object(address).map(|(path, _)| path)
}

/// The name by which the object that holds `address` was loaded, without its directory.
pub fn file_name(address: *const c_void) -> Option<&'static CStr> {
    let bytes = path(address)?.to_bytes_with_nul();
    let start = bytes.iter().rposition(|&byte| byte == b'/').map_or(0, |slash| slash + 1);
    CStr::from_bytes_with_nul(bytes.get(start..)?).ok()
}

/// The loader's name for the object that holds `address`, and its link map.
fn object(address: *const c_void) -> Option<(&'static CStr, *mut c_void)> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    let mut map: *mut c_void = core::ptr::null_mut();
    // SAFETY: dladdr1 accepts any address; both results outlive the call.
    let known = unsafe { libc::dladdr1(address, &mut info, &mut map, RTLD_DL_LINKMAP) };
    if known == 0 || map.is_null() || info.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the loader's string, which lives as long as the object; callers pass addresses of their own object.
    Some((unsafe { CStr::from_ptr(info.dli_fname) }, map))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_of_the_process_is_found_by_an_absolute_path() {
        let address = libc::getpid as *const c_void;
        let mut path = [0; PATH_BYTES];
        let name = file_name(address).unwrap();
        join(address, name, &mut path).unwrap();
        // SAFETY: `join` ends it with a zero.
        let path = unsafe { CStr::from_ptr(path.as_ptr()) }.to_str().unwrap();
        assert!(path.starts_with('/') && path.ends_with("/libc.so.6"), "{path}");
        // QEMU shows a program of another processor its own libraries where it opens them, and nowhere else.
        assert!(std::fs::File::open(path).is_ok());
    }

    #[test]
    fn what_lies_in_the_folder_preload_lies_beside_what_is_above_it() {
        let length = |text: &str| {
            let directory: Vec<c_char> = text.bytes().map(|byte| c_char::from_ne_bytes([byte])).collect();
            without_preload(&directory)
        };
        for (directory, wanted) in [
            ("/opt/lib/preload", "/opt/lib"),
            ("/preload", ""),
            ("/opt/xpreload", "/opt/xpreload"),
            ("/lib", "/lib"),
        ] {
            assert_eq!(length(directory), wanted.len(), "{directory}");
        }
    }

    #[test]
    fn the_program_itself_is_beside_its_own_file() {
        let mut path = [0; PATH_BYTES];
        join(join as *const c_void, c"x", &mut path).unwrap();
        // SAFETY: `join` ends it with a zero.
        let path = unsafe { CStr::from_ptr(path.as_ptr()) }.to_str().unwrap();
        let own = std::env::current_exe().unwrap();
        assert_eq!(std::path::Path::new(path).parent(), own.parent());
    }

    #[test]
    fn a_library_of_the_process_is_opened_again_and_what_is_nowhere_is_told_of() {
        let own = join as *const c_void;
        let mut told = Vec::new();
        assert!(open(own, c"libc.so.6", |path, _| told.push(path.to_owned())).is_some());
        assert!(told.is_empty());
        assert_eq!(
            open(own, c"libnowhere.so.7", |path, reason| told.extend([path.to_owned(), reason.to_owned()])),
            None
        );
        assert_eq!(told[0].as_c_str(), c"libnowhere.so.7");
        assert!(told[1].to_str().unwrap().contains("No such file"), "{told:?}");
        assert_eq!(told.len(), 2);
    }

    #[test]
    fn an_address_of_nothing_is_in_no_object() {
        assert_eq!(file_name(core::ptr::null()), None);
    }
}
