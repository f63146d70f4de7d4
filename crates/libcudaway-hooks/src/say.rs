//! The log of redirections: one line each, by one `write`, to `CUDAWAY_LOG_FILE` or stderr.

use core::ffi::{CStr, c_int, c_void};
use core::fmt::{self, Write};

pub fn symbol(handle: *mut c_void, name: &CStr, caller: *const c_void, ours: &CStr) {
    say(format_args!("dlsym({handle:?}, {}) by {} is {}'s", Shown(name), Caller(caller), Shown(ours)));
}

pub fn file(asked: &CStr, caller: *const c_void, path: &CStr) {
    say(format_args!("dlopen({}) by {} opens {}", Shown(asked), Caller(caller), Shown(path)));
}

fn say(what: fmt::Arguments) {
    let mut line = Line { bytes: [0; 1024], len_bytes: 0 };
    // What does not fit is cut off.
    let _ = writeln!(line, "cudaway::hooks {what}");
    let file = secure::variable(c"CUDAWAY_LOG_FILE").map(|path| {
        // SAFETY: a C string; it allocates nothing.
        unsafe {
            libc::open(
                path.as_ptr(),
                libc::O_WRONLY | libc::O_APPEND | libc::O_CREAT | libc::O_CLOEXEC,
                0o600,
            )
        }
    });
    let out: c_int = file.filter(|&file| file >= 0).unwrap_or(libc::STDERR_FILENO);
    // SAFETY: bytes of our own.
    let _ = unsafe { libc::write(out, line.bytes.as_ptr().cast(), line.len_bytes) };
    if out != libc::STDERR_FILENO {
        // SAFETY: opened above.
        unsafe { libc::close(out) };
    }
}

struct Line {
    bytes: [u8; 1024],
    len_bytes: usize,
}

impl Write for Line {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let room = self.bytes.get_mut(self.len_bytes..).unwrap_or_default();
        for (to, &from) in room.iter_mut().zip(text.as_bytes()) {
            *to = from;
            self.len_bytes += 1;
        }
        Ok(())
    }
}

/// A C string, as far as it is text.
struct Shown<'s>(&'s CStr);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        self.0.to_bytes().utf8_chunks().try_for_each(|chunk| out.write_str(chunk.valid()))
    }
}

/// An address, and the object it is in.
struct Caller(*const c_void);

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        write!(out, "{:?}", self.0)?;
        loader::place::file_name(self.0).map_or(Ok(()), |name| write!(out, " in {}", Shown(name)))
    }
}
