//! Where our libraries lie: beside this object, in the directory that it was loaded from, whatever the program's own becomes.
//!
//! libc alone says so. In glibc 2.31 libdl's functions, `dladdr1` and `dlinfo` among them, jump to 0 as long as the loader
//! has not loaded the program's own libraries, which is when it asks us first.

use core::cell::UnsafeCell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Room for any path the system takes.
const PATH_BYTES: usize = 4096;
const UNKNOWN: usize = usize::MAX;

struct Path(UnsafeCell<[u8; PATH_BYTES]>);

// SAFETY: the loader calls auditors with its lock held.
unsafe impl Sync for Path {}

impl Path {
    const fn new() -> Path {
        Path(UnsafeCell::new([0; PATH_BYTES]))
    }
}

static DIRECTORY: Path = Path::new();
static DIRECTORY_BYTES: AtomicUsize = AtomicUsize::new(UNKNOWN);

/// Keeps the directory of this object. For the loader's first call, when a path that does not begin with `/` still holds.
pub fn find() {
    // SAFETY: one thread at a time, as `Path` says; nothing else holds the reference.
    let room = unsafe { &mut *DIRECTORY.0.get() };
    DIRECTORY_BYTES.store(directory(room).unwrap_or(UNKNOWN), Ordering::Release);
}

/// The path of our library `file`, if it is there; found out when it is first asked for.
pub fn path(file: &CStr) -> Option<*const c_char> {
    PLACES.iter().find(|place| place.file == file).and_then(Place::path)
}

struct Place {
    file: &'static CStr,
    path: Path,
    is_known: AtomicBool,
}

static PLACES: [Place; loader::names::ALL.len()] = {
    let mut places = [const { Place::new(loader::names::DRIVER) }; loader::names::ALL.len()];
    let mut at = 0;
    while at < places.len() {
        places[at].file = loader::names::ALL[at];
        at += 1;
    }
    places
};

impl Place {
    const fn new(file: &'static CStr) -> Place {
        Place { file, path: Path::new(), is_known: AtomicBool::new(false) }
    }

    fn path(&self) -> Option<*const c_char> {
        // SAFETY: one thread at a time, as `Path` says; nothing else holds the reference.
        let path = unsafe { &mut *self.path.0.get() };
        if !self.is_known.load(Ordering::Acquire) {
            // SAFETY: as above; `find` was before.
            let directory = unsafe { &*DIRECTORY.0.get() };
            let directory = directory.get(..DIRECTORY_BYTES.load(Ordering::Acquire))?;
            join(path, &[directory, b"/", self.file.to_bytes_with_nul()])?;
            // SAFETY: it ends with a zero.
            if unsafe { libc::access(path.as_ptr().cast(), libc::R_OK) } != 0 {
                return None;
            }
            self.is_known.store(true, Ordering::Release);
        }
        Some(path.as_ptr().cast())
    }
}

/// Writes the parts one after the other, and gives their length.
fn join(room: &mut [u8], parts: &[&[u8]]) -> Option<usize> {
    parts.iter().try_fold(0, |at, part| {
        room.get_mut(at..)?.get_mut(..part.len())?.copy_from_slice(part);
        Some(at + part.len())
    })
}

/// Writes the directory of this object without a final `/`, and gives its length.
fn directory(room: &mut [u8; PATH_BYTES]) -> Option<usize> {
    let mut name: *const c_char = ptr::null();
    // SAFETY: `name_of_ours` gets what it takes.
    unsafe { libc::dl_iterate_phdr(Some(name_of_ours), (&raw mut name).cast()) };
    if name.is_null() {
        return None;
    }
    // SAFETY: the loader's string, which lives as long as this object.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let directory = name.get(..name.iter().rposition(|&byte| byte == b'/')?)?;
    if name.first() == Some(&b'/') {
        return join(room, &[directory]);
    }
    // SAFETY: room of the length said.
    let here = unsafe { libc::getcwd(room.as_mut_ptr().cast(), room.len()) };
    let here_bytes = if here.is_null() { None } else { room.iter().position(|&byte| byte == 0) }?;
    Some(here_bytes + join(room.get_mut(here_bytes..)?, &[b"/", directory])?)
}

/// For `dl_iterate_phdr`: writes the name of the object that has this function to `name`.
unsafe extern "C" fn name_of_ours(info: *mut libc::dl_phdr_info, _: usize, name: *mut c_void) -> c_int {
    // SAFETY: libc's own.
    let info = unsafe { &*info };
    // SAFETY: as many headers as it says.
    let headers = unsafe { core::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let address = find as *const () as u64;
    let has_us = headers.iter().any(|header| {
        let start = info.dlpi_addr.wrapping_add(header.p_vaddr);
        header.p_type == libc::PT_LOAD && address.wrapping_sub(start) < header.p_memsz
    });
    if has_us {
        // SAFETY: `directory` gave the address of such a pointer.
        unsafe { name.cast::<*const c_char>().write(info.dlpi_name) };
    }
    c_int::from(has_us)
}
