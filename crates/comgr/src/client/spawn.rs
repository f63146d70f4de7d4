//! Starts the helper so that the program does not notice: no child that its `wait` could find, no `SIGCHLD`, no handler.
//!
//! A child of a child is nobody's: when the one in between ends, the system's first process takes it over. The one in between
//! ends without a signal (its exit signal is 0) and plain `wait`s do not see it. Both run in this process's memory while
//! the calling thread stands still, as `vfork` does it, so nothing is copied however large the program is.

use core::ffi::{c_char, c_int, c_void};
use std::ffi::CString;
use std::io;
use std::os::fd::RawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;
use std::sync::atomic::{AtomicI32, Ordering};

use crate::protocol;

/// What the processes on the way need; they call nothing but the system.
struct Start {
    program: *const c_char,
    arguments: *const *const c_char,
    environment: *const *const c_char,
    socket: RawFd,
    output: RawFd,
    /// For the second process.
    stack: *mut c_void,
    process: AtomicI32,
    error: AtomicI32,
}

/// Room for a few calls into the C library, and for a signal frame that never comes.
const STACK_BYTES: usize = 64 << 10;

#[repr(C, align(64))]
struct Stack([u8; STACK_BYTES]);

impl Stack {
    fn new() -> Box<[Stack]> {
        (0..1).map(|_| Stack([0; STACK_BYTES])).collect()
    }

    /// Stacks grow down.
    fn top(stack: &mut [Stack]) -> *mut c_void {
        stack.as_mut_ptr_range().end.cast()
    }
}

/// Starts `program` with `socket` as its input and `output` as its output; gives its process number.
pub fn start(program: &Path, socket: RawFd, output: RawFd) -> io::Result<libc::pid_t> {
    let name = CString::new(program.as_os_str().as_bytes())?;
    let argument = CString::new(protocol::ARGUMENT)?;
    let arguments = [name.as_ptr(), argument.as_ptr(), core::ptr::null()];
    let variables = variables();
    let mut environment: Vec<*const c_char> = variables.iter().map(|variable| variable.as_ptr()).collect();
    environment.push(core::ptr::null());
    let (mut first, mut second) = (Stack::new(), Stack::new());
    let mut start = Start {
        program: name.as_ptr(),
        arguments: arguments.as_ptr(),
        environment: environment.as_ptr(),
        socket,
        output,
        stack: Stack::top(&mut second),
        process: AtomicI32::new(0),
        error: AtomicI32::new(0),
    };
    // A handler of the program must not run in a process that shares its memory. The helper sets its own mask.
    let signals = Blocked::all();
    let flags = libc::CLONE_VM | libc::CLONE_VFORK;
    // SAFETY: the function calls the system only, on a stack of its own; what it is given outlives it, since this thread
    // stands still until it has ended.
    let between = unsafe { libc::clone(in_between, Stack::top(&mut first), flags, (&raw mut start).cast()) };
    let refused = io::Error::last_os_error();
    drop(signals);
    if between < 0 {
        return Err(refused);
    }
    // SAFETY: a plain call; only this names a process without an exit signal.
    while unsafe { libc::waitpid(between, core::ptr::null_mut(), libc::__WALL) } < 0
        && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
    {}
    match start.error.into_inner() {
        0 => Ok(start.process.into_inner()),
        error => Err(io::Error::from_raw_os_error(error)),
    }
}

/// The environment without what would load us into the helper; where it is a stranger's, nothing of it. (The helper could not tell:
/// what a set-user-ID program starts after `setuid(0)` is an ordinary program of root's.)
fn variables() -> Vec<CString> {
    if secure::is_secure_execution() {
        return Vec::new();
    }
    let keep = std::env::vars_os().filter(|(name, _)| name != "LD_PRELOAD");
    keep.filter_map(|(name, value)| {
        let mut variable = name.into_vec();
        variable.push(b'=');
        variable.extend(value.into_vec());
        CString::new(variable).ok()
    })
    .collect()
}

/// The process in between: starts the helper and ends.
extern "C" fn in_between(start: *mut c_void) -> c_int {
    // SAFETY: `start` gave its own structure, and waits.
    let start = unsafe { &*start.cast::<Start>() };
    let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
    let argument = core::ptr::from_ref(start).cast_mut().cast();
    // SAFETY: as for the first one.
    let process = unsafe { libc::clone(become_helper, start.stack, flags, argument) };
    if process < 0 {
        start.fail();
    } else {
        start.process.store(process, Ordering::Relaxed);
    }
    0
}

extern "C" fn become_helper(start: *mut c_void) -> c_int {
    // SAFETY: as above.
    let start = unsafe { &*start.cast::<Start>() };
    // SAFETY: plain calls; both files are open and none of the three.
    unsafe {
        libc::dup2(start.socket, libc::STDIN_FILENO);
        libc::dup2(start.output, libc::STDOUT_FILENO);
        libc::dup2(start.output, libc::STDERR_FILENO);
    }
    // SAFETY: C strings and lists that end with null. It comes back only when it failed.
    unsafe { libc::execve(start.program, start.arguments, start.environment) };
    start.fail();
    127
}

impl Start {
    fn fail(&self) {
        // SAFETY: the calling thread's errno, which stands still.
        let error = unsafe { *libc::__errno_location() };
        self.error.store(error, Ordering::Relaxed);
    }
}

/// All signals blocked in this thread, until it is dropped.
struct Blocked(libc::sigset_t);

impl Blocked {
    fn all() -> Blocked {
        // SAFETY: all-zero is a valid set.
        let (mut all, mut before): (libc::sigset_t, libc::sigset_t) =
            unsafe { (core::mem::zeroed(), core::mem::zeroed()) };
        // SAFETY: both are writable sets.
        unsafe {
            libc::sigfillset(&mut all);
            libc::pthread_sigmask(libc::SIG_BLOCK, &all, &mut before);
        }
        Blocked(before)
    }
}

impl Drop for Blocked {
    fn drop(&mut self) {
        // SAFETY: the set that was there before.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &self.0, core::ptr::null_mut()) };
    }
}
