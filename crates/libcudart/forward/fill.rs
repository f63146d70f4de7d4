// The part of a forwarder that is the same for every major: binding its slots, once, at the first call of any name.
// Included by each forwarder's shell.rs, so that three libraries share no state and no code.
// The rule: libc only, no constructor, no allocation, and no call crashes when the implementation is missing.

use core::ffi::{CStr, c_char, c_void};
use core::ptr;
use core::sync::atomic::Ordering;

use generated::{NAMES, SLOTS};
use trampoline::{Answer, Errno, one, place, zero};

const IMPLEMENTATION: &CStr = c"libcudaway_cudart.so";

/// `libcudaway_cudart.so`'s one export: a major's functions, in the order of the major's names.
type RuntimeTable = unsafe extern "C" fn(major: u32, n: *mut usize) -> *const *const c_void;

/// Stores an address in every slot. Threads that come at the same time store the same ones.
pub extern "C" fn fill() {
    let errno = Errno::saved();
    let table = implementation();
    for (index, (slot, (name, answer))) in SLOTS.iter().zip(NAMES.iter()).enumerate() {
        let target = match table {
            // SAFETY: `implementation` saw that the table has an entry for each slot.
            Some(table) => unsafe { *table.add(index) },
            None => unavailable(name, answer),
        };
        slot.store(target.cast_mut(), Ordering::Release);
    }
    drop(errno);
}

/// The table of our major, from the library that lies beside this one.
fn implementation() -> Option<*const *const c_void> {
    let library = trampoline::open_beside(ptr::from_ref(&SLOTS).cast(), IMPLEMENTATION);
    if library.is_null() {
        return None;
    }
    // SAFETY: a live handle and a literal name.
    let function = unsafe { libc::dlsym(library, c"cudaway_runtime_table".as_ptr()) };
    if function.is_null() {
        return None;
    }
    // SAFETY: the name belongs to our own library, whose export has this type.
    let function: RuntimeTable = unsafe { core::mem::transmute(function) };
    let mut n = 0;
    // SAFETY: `n` outlives the call.
    let table = unsafe { function(MAJOR, &mut n) };
    // Another count means that the two libraries are of different builds, and an index of ours means something else there.
    (!table.is_null() && n == SLOTS.len()).then_some(table)
}

/// What a call does when the implementation cannot be opened: cudaErrorInitializationError, and a name for it.
fn unavailable(name: &CStr, answer: Answer) -> *const c_void {
    match answer {
        _ if name == c"cudaGetErrorName" => error_name as *const c_void,
        _ if name == c"cudaGetErrorString" => error_string as *const c_void,
        Answer::Status => initialization_error as *const c_void,
        Answer::Zero => zero as *const c_void,
        Answer::One => one as *const c_void,
        Answer::Place => place as *const c_void,
    }
}

extern "C" fn initialization_error() -> usize {
    3
}

extern "C" fn error_name() -> *const c_char {
    c"cudaErrorInitializationError".as_ptr()
}

extern "C" fn error_string() -> *const c_char {
    c"initialization error".as_ptr()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(name: &CStr) -> *const c_void {
        let index = NAMES.iter().position(|(known, _)| known == name).unwrap();
        SLOTS[index].load(Ordering::Acquire)
    }

    /// The test program has no implementation beside it.
    #[test]
    fn without_an_implementation_calls_fail_and_nothing_crashes() {
        fill();
        // SAFETY: without an implementation every slot holds one of the functions above.
        let call =
            |name| unsafe { core::mem::transmute::<*const c_void, extern "C" fn() -> usize>(bound(name)) }();
        assert_eq!(call(c"cudaMalloc"), 3);
        assert_eq!(call(c"cudaGetLastError"), 3);
        assert_eq!(call(c"__cudaRegisterFatBinary"), 0);
        assert_eq!(call(c"__cudaPushCallConfiguration"), 1);
        let text = ptr::with_exposed_provenance(call(c"cudaGetErrorString"));
        // SAFETY: the function gives a literal.
        assert_eq!(unsafe { CStr::from_ptr(text) }, c"initialization error");
    }

    /// `cudaChannelFormatDesc`: five numbers, which the ABI returns in memory.
    #[repr(C)]
    struct Channels([i32; 5]);

    #[test]
    fn a_structure_that_is_returned_in_memory_is_where_the_caller_wanted_it() {
        fill();
        // SAFETY: without an implementation the slot holds a function that takes the place and gives it back.
        let create = unsafe {
            core::mem::transmute::<*const c_void, extern "C" fn(*mut Channels, i32) -> *mut Channels>(bound(
                c"cudaCreateChannelDesc",
            ))
        };
        let mut channels = Channels([7; 5]);
        let at = &raw mut channels;
        assert_eq!(create(at, 32), at);
        assert_eq!(channels.0, [7; 5]);
    }

    #[test]
    fn names_are_told_apart() {
        let mut names: Vec<_> = NAMES.iter().map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), SLOTS.len());
    }
}
