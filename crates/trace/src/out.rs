//! The file. Each of our libraries in a process appends to the same one, a line in one write, so lines never mix; a forked
//! process begins its own.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt as _;
use std::sync::atomic::{AtomicU64, Ordering};

/// The process that opened the file (high half) and its descriptor there, negative when it cannot be opened.
/// No lock: a process may be forked at any time.
static OPEN: AtomicU64 = AtomicU64::new(0);

/// Since the machine was started: the same clock in all processes.
pub fn nanoseconds() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is writable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

pub fn write(line: &str) {
    let descriptor = descriptor();
    if descriptor >= 0 {
        // SAFETY: so many bytes are readable. What cannot be written is lost: the program must not notice.
        unsafe { libc::write(descriptor, line.as_ptr().cast(), line.len()) };
    }
}

fn descriptor() -> i32 {
    // SAFETY: it has no parameters and cannot fail.
    let process = unsafe { libc::getpid() }.cast_unsigned();
    let halves = |word: u64| ((word >> 32) as u32, (word as u32).cast_signed());
    let known = OPEN.load(Ordering::Acquire);
    if halves(known).0 == process {
        return halves(known).1;
    }
    // A parent's descriptor stays its own.
    let opened = open(process);
    let word = u64::from(process) << 32 | u64::from(opened.cast_unsigned());
    match OPEN.compare_exchange(known, word, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => opened,
        Err(first) => {
            // SAFETY: ours; another thread was faster.
            unsafe { libc::close(opened) };
            halves(first).1
        }
    }
}

fn open(process: u32) -> i32 {
    let Some(prefix) = &config::get().trace else { return -1 };
    let mut name = prefix.as_os_str().as_bytes().to_vec();
    name.extend(format!(".{process}").bytes());
    let Ok(name) = CString::new(name) else { return -1 };
    // Whoever may write in that folder could guess the name: a link there leads nowhere.
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_APPEND | libc::O_CLOEXEC | libc::O_NOFOLLOW;
    // SAFETY: a C string, and a mode as the flags want one.
    unsafe { libc::open(name.as_ptr(), flags, 0o600) }
}
