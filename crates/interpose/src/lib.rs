//! Taking the place of a CUDA runtime that is linked statically into a program or a library.
//!
//! nvcc links the runtime statically by default. The functions then still have their names in the file's symbol table, and
//! this crate, linked into `libcuda.so.1` and run from its constructor, writes jumps over them: the program calls `cudaMalloc`
//! in itself and arrives in our `libcudart`. The rule: what runs before `main` uses libc alone: no allocation, no logging,
//! no locks, no threads, and no library is opened (the first call into the runtime does that).
//!
//! - [`at_load`]: the constructor.
//! - [`records`], [`news`]: what was found and done, for diagnosis and for the log.
//! - [`instance_of`]: which of the runtimes taken over a caller belongs to.
//! - [`release_without_names`]: the release of a runtime whose names were stripped.
//! - [`has_runtime`]: whether there is one in a file at all.
//! - [`tell_by`]: who is told when NVRTC and its like give PTX where machine code is asked for (`compilers`).
//!
//! `CUDAWAY_TAKEOVER=0` turns all of it off.

mod compilers;
mod elf;
mod generated {
    #[rustfmt::skip]
    pub mod signatures;
}
mod instance;
mod memory;
mod names;
mod patch;
mod prologue;
mod recognise;
mod record;
mod signature;
mod slots;
mod takeover;
mod watch;

pub use compilers::tell_by;
pub use instance::{any as any_instance, of as instance_of};
pub use record::{Outcome, Record, news, records};
pub use signature::{hash as masked_hash, release_in as release_without_names};

use core::ffi::{CStr, c_char, c_int, c_void};

/// Whether a file has a CUDA runtime inside, with its names or without them, or is one.
#[must_use]
pub fn has_runtime(bytes: &[u8]) -> bool {
    let is_one = |file| recognise::kind(file) != recognise::Kind::Other;
    elf::File::parse(bytes).is_some_and(is_one) || release_without_names(bytes).is_some()
}

/// An ELF constructor. The object that has it is linked with `-z initfirst`, so that it runs before the constructors of the
/// program's own libraries, which may carry a static runtime too. It redirects the static CUDA runtimes of the program and of
/// its libraries, and of libraries opened later.
///
/// # Safety
/// To be called by the loader as an `.init_array` entry (glibc passes it the program's arguments and environment), once.
pub unsafe extern "C" fn at_load(
    _argc: c_int,
    _argv: *const *const c_char,
    environment: *const *const c_char,
) {
    // SAFETY: glibc passes the environment, a list of strings that ends with a null pointer.
    if !secure::is_secure_execution() && unsafe { is_turned_off(environment) } {
        return;
    }
    let from_the_start = is_global();
    // What is loaded at the start is never unloaded. (And before libc's own constructor, dlopen would break it: after one,
    // `environ` stays NULL, measured on glibc 2.36.)
    if from_the_start || pin() {
        watch::start(from_the_start, program_runs());
    }
}

/// # Safety
/// `environment` is null, or a list of strings that ends with a null pointer.
unsafe fn is_turned_off(environment: *const *const c_char) -> bool {
    let mut at = environment;
    // SAFETY: the caller's promise.
    while !at.is_null() && !unsafe { *at }.is_null() {
        // SAFETY: the caller's promise.
        if unsafe { CStr::from_ptr(*at) } == c"CUDAWAY_TAKEOVER=0" {
            return true;
        }
        // SAFETY: not past the final null pointer.
        at = unsafe { at.add(1) };
    }
    false
}

/// Makes this object stay for the life of the process: jumps lead into it.
fn pin() -> bool {
    let Some(info) = own_info() else { return false };
    // SAFETY: dladdr's name is a string; NOLOAD only finds the object that is running this.
    !unsafe { libc::dlopen(info.dli_fname, libc::RTLD_NOW | libc::RTLD_NOLOAD | libc::RTLD_NODELETE) }
        .is_null()
}

/// Whether this object is in the program's own scope (preloaded or linked), so that it was loaded before the program began.
/// One that the program's runtime opens with `dlopen` is not, and then the program itself is already running.
fn is_global() -> bool {
    // SAFETY: dlsym with a literal name.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"cuInit".as_ptr()) };
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: dladdr accepts any address.
    let known = !found.is_null() && unsafe { libc::dladdr(found, &mut info) } != 0;
    known && own_info().is_some_and(|own| own.dli_fbase == info.dli_fbase)
}

/// Whether the C library has begun, which gives the program its name; where we are there from the start, we come before it.
fn program_runs() -> bool {
    // SAFETY: dlsym with a literal name.
    let name = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"program_invocation_name".as_ptr()) };
    // SAFETY: glibc's variable, a string that is empty at first.
    let name = unsafe { name.cast::<*const c_char>().as_ref() };
    // SAFETY: as above.
    name.is_none_or(|&name| !name.is_null() && unsafe { *name } != 0)
}

fn own_info() -> Option<libc::Dl_info> {
    // SAFETY: all-zero is a valid Dl_info.
    let mut info: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: an address of our own.
    let known = unsafe { libc::dladdr(at_load as *const c_void, &mut info) } != 0;
    (known && !info.dli_fname.is_null()).then_some(info)
}
