//! Stand-ins for NVIDIA's libraries as trampolines: every export is a slot, filled at the first call of any name from
//! the chosen backends, in layers (libblastrampoline's pattern). A shell (`libcublas.so.12`, …) is generated names, slots
//! and jumps; a bound call costs one indirect jump.
//!
//! The rule: libc only, no constructor, and no call crashes when nothing can be opened. Whoever has a name first, has it:
//! libraries given to [`Library::forward`], the newest first, then the paths in the library's variable, then ours.

#![cfg_attr(not(test), no_std)]

use core::ffi::{CStr, c_char, c_int, c_void};
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};

/// What a function answers with when no backend has its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The library's status for what is not supported.
    Status,
    /// A pointer, a number or nothing: 0 says "none".
    Zero,
    /// A number where 0 means success: 1 says "no".
    One,
    /// A structure that is returned in memory: the place for it, which the caller gave and whose address it gets back.
    Place,
}

pub type Slot = AtomicPtr<c_void>;

/// A shell's names in the order of its slots, without an address that the loader would have to relocate.
pub struct Names {
    /// Each ends with a zero.
    pub text: &'static [u8],
    /// The numbers of those that do not answer with a status, in their order.
    pub others: &'static [(u16, Answer)],
    /// The numbers of those that our own backend has for each major apart, as `cublasGetProperty_v12`.
    pub of_major: &'static [u16],
}

impl Names {
    pub fn iter(&self) -> impl Iterator<Item = (&'static CStr, Answer)> {
        let (mut text, mut others) = (self.text, self.others);
        (0..).map_while(move |number: u16| {
            let name = CStr::from_bytes_until_nul(text).ok()?;
            text = &text[name.count_bytes() + 1..];
            let answer = match others {
                [(other, answer), rest @ ..] if *other == number => {
                    others = rest;
                    *answer
                }
                _ => Answer::Status,
            };
            Some((name, answer))
        })
    }
}

/// What a shell is beside its names, which codegen writes as `mod generated`: `LIBRARY`, filled from its backends by `fill`.
/// A macro, because each shell has a state of its own. What has no backend answers with the status `not_supported`.
#[macro_export]
macro_rules! shell {
    ($implementation:literal, $variable:literal, major: $major:literal, not_supported: $status:literal) => {
        pub static LIBRARY: $crate::Library = $crate::Library {
            slots: &generated::SLOTS,
            names: &generated::NAMES,
            implementation: $implementation,
            variable: $variable,
            major: $major,
            not_supported,
            layers: $crate::Layers::new(),
        };

        extern "C" fn not_supported() -> usize {
            $status
        }

        pub extern "C" fn fill() {
            LIBRARY.fill();
        }
    };
}

/// CUDAway's own two exports, about the libraries that an object has the names of.
#[macro_export]
macro_rules! forward_exports {
    ($($library:expr),+) => {
        static LIBRARIES: &[&$crate::Library] = &[$(&$library),+];

        /// Puts the library at `path` in front of what answers this object's names, for the names that it has; `clear` takes
        /// back what was put there before. Gives the number of names that are its own now, 0 when it cannot be used.
        ///
        /// # Safety
        /// `path` is NULL or a C string.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn cudaway_forward(
            path: *const core::ffi::c_char,
            clear: core::ffi::c_int,
            _verbose: core::ffi::c_int,
        ) -> core::ffi::c_int {
            // SAFETY: the caller's promise.
            LIBRARIES.iter().map(|library| unsafe { library.forward(path, clear != 0) }).sum()
        }

        /// The file that answers a name of this object's, or NULL.
        ///
        /// # Safety
        /// `name` is a C string.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn cudaway_backend_of(name: *const core::ffi::c_char) -> *const core::ffi::c_char {
            // SAFETY: the caller's promise.
            let name = unsafe { core::ffi::CStr::from_ptr(name) };
            let files = LIBRARIES.iter().map(|library| library.backend_of(name));
            files.into_iter().find(|file| !file.is_null()).unwrap_or(core::ptr::null())
        }
    };
}

/// What a shell needs in place of Rust's std: each that has std costs every program it is preloaded into twice the start-up.
/// A panic is a defect of ours that no caller could be told of, so the process ends; a shell's unit tests have std.
#[macro_export]
macro_rules! end_at_panic {
    () => {
        #[cfg(not(test))]
        #[panic_handler]
        fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
            $crate::end()
        }
    };
}

pub fn end() -> ! {
    // SAFETY: a plain call.
    unsafe { libc::abort() }
}

/// One shell.
pub struct Library {
    pub slots: &'static [Slot],
    pub names: &'static Names,
    /// Our own backend, which lies beside the shell.
    pub implementation: &'static CStr,
    pub major: u8,
    /// The environment variable that lists backends; entries with a slash are paths.
    pub variable: &'static CStr,
    /// Answers with the library's status for what is not supported.
    pub not_supported: extern "C" fn() -> usize,
    pub layers: Layers,
}

/// At most as many libraries as anyone layers by hand.
const LAYERS: usize = 16;

/// Libraries that [`Library::forward`] got, by their handles.
pub struct Layers {
    handles: [AtomicPtr<c_void>; LAYERS],
    n: AtomicUsize,
}

impl Layers {
    #[expect(clippy::new_without_default, reason = "a constant of statics")]
    pub const fn new() -> Layers {
        Layers { handles: [const { AtomicPtr::new(core::ptr::null_mut()) }; LAYERS], n: AtomicUsize::new(0) }
    }

    fn newest_first(&self) -> impl Iterator<Item = *mut c_void> {
        let n = self.n.load(Ordering::Acquire).min(LAYERS);
        self.handles[..n].iter().rev().map(|handle| handle.load(Ordering::Acquire))
    }
}

pub extern "C" fn zero() -> usize {
    0
}

pub extern "C" fn one() -> usize {
    1
}

pub extern "C" fn place(given: *mut c_void) -> *mut c_void {
    given
}

impl Library {
    /// Stores an address in every slot. Threads that come at the same time store the same ones.
    pub fn fill(&self) {
        let errno = Errno::saved();
        self.fill_from_variable();
        for layer in self.layers.newest_first() {
            // SAFETY: a library that `forward` opened, which is never closed.
            unsafe { self.bind(layer, false) };
        }
        drop(errno);
    }

    /// Puts the library at `path` in front, for the names that it has; `clear` takes back what was put there before.
    /// Gives the number of names that are its own now; 0 when it cannot be opened or has none of them.
    ///
    /// # Safety
    /// `path` is NULL or a C string.
    pub unsafe fn forward(&self, path: *const c_char, clear: bool) -> c_int {
        let errno = Errno::saved();
        // SAFETY: the caller's promise; what a user names is opened as the loader would.
        let library = if path.is_null() { core::ptr::null_mut() } else { unsafe { open(path) } };
        if clear {
            self.layers.n.store(0, Ordering::Release);
        }
        self.fill();
        if library.is_null() {
            return 0;
        }
        // SAFETY: just opened, and never closed.
        let taken = unsafe { self.bind(library, true) };
        let at = self.layers.n.load(Ordering::Acquire);
        if taken > 0 && at < LAYERS {
            self.layers.handles[at].store(library, Ordering::Release);
            self.layers.n.store(at + 1, Ordering::Release);
        }
        drop(errno);
        taken
    }

    /// Our own backend behind the variable's paths.
    fn fill_from_variable(&self) {
        let own = open_beside(self.slots.as_ptr().cast(), self.implementation);
        for (number, (slot, (name, answer))) in (0..).zip(self.slots.iter().zip(self.names.iter())) {
            let mut room = [0; NAME_BYTES];
            let is_of_major = self.names.of_major.contains(&number);
            let name = if is_of_major { with_major(name, self.major, &mut room) } else { name };
            // SAFETY: just opened, and never closed.
            let backend = unsafe { self.look_up(own, name) };
            let address = backend.unwrap_or(match answer {
                Answer::Status => self.not_supported as *mut c_void,
                Answer::Zero => zero as *mut c_void,
                Answer::One => one as *mut c_void,
                Answer::Place => place as *mut c_void,
            });
            slot.store(address, Ordering::Release);
        }
        let Some(list) = secure::variable(self.variable) else { return };
        let mut path = [0; loader::place::PATH_BYTES];
        // The list's first entry is the outermost.
        for entry in list.to_bytes().rsplit(|&byte| byte == b',') {
            let entry = entry.trim_ascii();
            if !entry.contains(&b'/') || entry.len() >= path.len() {
                continue;
            }
            path[..entry.len()].copy_from_slice(entry);
            path[entry.len()] = 0;
            // What somebody else could have put there stays closed; our own backend says so in its log (`config::named`).
            let Ok(path) = CStr::from_bytes_until_nul(&path) else { continue };
            if secure::files::may_run(path, &mut secure::files::Reached::new()).is_ok() {
                // SAFETY: a C string; what is opened is never closed.
                unsafe { self.bind(open(path.as_ptr()), false) };
            }
        }
    }

    /// Gives a backend the slots whose names it has; counts them when asked.
    ///
    /// # Safety
    /// `backend` is NULL, or a library that stays open.
    unsafe fn bind(&self, backend: *mut c_void, counts: bool) -> c_int {
        let mut taken = 0;
        for (slot, (name, _)) in self.slots.iter().zip(self.names.iter()) {
            // SAFETY: the caller's promise.
            let Some(address) = (unsafe { self.look_up(backend, name) }) else { continue };
            slot.store(address, Ordering::Release);
            taken += c_int::from(counts);
        }
        taken
    }

    /// The backend's own function of that name: never one of this shell's, which a backend that is linked against the
    /// shell would find.
    ///
    /// # Safety
    /// `backend` is NULL, or a library that stays open.
    unsafe fn look_up(&self, backend: *mut c_void, name: &CStr) -> Option<*mut c_void> {
        if backend.is_null() {
            return None;
        }
        // SAFETY: the caller's promise: a live handle; and a C string.
        let address = unsafe { libc::dlsym(backend, name.as_ptr()) };
        (!address.is_null() && object_of(address) != object_of(self.slots.as_ptr().cast())).then_some(address)
    }

    /// The file that a name's calls go to; NULL for none.
    pub fn backend_of(&self, name: &CStr) -> *const c_char {
        let slot = self.names.iter().position(|(known, _)| known == name);
        let address = slot.map_or(core::ptr::null_mut(), |slot| self.slots[slot].load(Ordering::Acquire));
        object_of(address).map_or(core::ptr::null(), |(_, path)| path)
    }
}

const NAME_BYTES: usize = 128;

/// `name_v12`; the name itself if there is no room.
fn with_major<'r>(name: &'r CStr, major: u8, room: &'r mut [u8; NAME_BYTES]) -> &'r CStr {
    let tail = [b'_', b'v', b'0' + major / 10, b'0' + major % 10, 0];
    let bytes = name.to_bytes().iter().chain(&tail);
    if name.count_bytes() + tail.len() > room.len() {
        return name;
    }
    for (to, &from) in room.iter_mut().zip(bytes) {
        *to = from;
    }
    CStr::from_bytes_until_nul(room).unwrap_or(name)
}

/// The library that lies beside the object of `place`; NULL when it cannot be opened. For a program's call, never a constructor
/// of ours, where dlopen is not allowed.
pub fn open_beside(place: *const c_void, name: &CStr) -> *mut c_void {
    let mut path = [0 as c_char; loader::place::PATH_BYTES];
    match loader::place::join(place, name, &mut path) {
        // SAFETY: `path` ends in a zero.
        Some(_) => unsafe { open(path.as_ptr()) },
        None => core::ptr::null_mut(),
    }
}

/// # Safety
/// A C string.
unsafe fn open(path: *const c_char) -> *mut c_void {
    // SAFETY: the caller's promise.
    unsafe { libc::dlopen(path, libc::RTLD_NOW | libc::RTLD_LOCAL) }
}

/// Where the object that holds `address` is mapped, and its file.
fn object_of(address: *const c_void) -> Option<(*mut c_void, *const c_char)> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` is written where the answer is not 0.
    unsafe {
        let found = libc::dladdr(address, info.as_mut_ptr()) != 0;
        found.then(|| (info.assume_init().dli_fbase, info.assume_init().dli_fname))
    }
}

/// The caller's `errno` comes back: a lookup is no business of the interrupted call's.
pub struct Errno(c_int);

impl Errno {
    pub fn saved() -> Errno {
        // SAFETY: errno's address is the thread's own and always valid.
        Errno(unsafe { *libc::__errno_location() })
    }
}

impl Drop for Errno {
    fn drop(&mut self) {
        // SAFETY: as above.
        unsafe { *libc::__errno_location() = self.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_come_in_order_each_with_its_answer() {
        let names = Names {
            text: b"first\0second\0third\0",
            others: &[(1, Answer::One), (2, Answer::Zero)],
            of_major: &[],
        };
        let wanted = [(c"first", Answer::Status), (c"second", Answer::One), (c"third", Answer::Zero)];
        assert!(names.iter().eq(wanted));
        assert_eq!(Names { text: b"", others: &[], of_major: &[] }.iter().count(), 0);
    }

    #[test]
    fn a_majors_own_name_has_the_major_behind_it() {
        let mut room = [0; NAME_BYTES];
        assert_eq!(with_major(c"cublasGetProperty", 12, &mut room), c"cublasGetProperty_v12");
        let long = CStr::from_bytes_with_nul(&{
            let mut long = [b'x'; NAME_BYTES];
            long[NAME_BYTES - 1] = 0;
            long
        })
        .unwrap()
        .to_owned();
        assert_eq!(with_major(&long, 11, &mut room), long.as_c_str());
    }
}
