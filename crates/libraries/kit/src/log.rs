//! Where loggers of NVIDIA's libraries write, and what their variables say. Off, they cost nothing here: who logs asks first.

use core::ffi::{c_int, c_void};
use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

/// Levels go from 1 (errors) over traces, hints and information to 5 (calls).
pub const LAST_LEVEL: c_int = 5;

/// The bit of a level in a mask.
pub const fn bit(level: c_int) -> c_int {
    1 << (level - 1)
}

/// The mask of a level and all before it.
pub const fn up_to(level: c_int) -> c_int {
    (1 << level) - 1
}

/// Where lines go, besides a callback.
#[derive(Clone, Default)]
pub enum Target {
    #[default]
    Nowhere,
    Stdout,
    Stderr,
    File(Arc<File>),
    /// The program's own `FILE`.
    Stream(*mut c_void),
}

// SAFETY: C's streams may be used by any thread.
unsafe impl Send for Target {}

impl Target {
    /// # Errors
    /// The file cannot be written.
    pub fn file(path: &Path) -> std::io::Result<Target> {
        Ok(Target::File(Arc::new(File::create(path)?)))
    }

    pub fn write(&self, line: &str) {
        // What cannot be written is lost: a logger fails no call.
        match self {
            Target::Nowhere => {}
            // SAFETY: C's own streams.
            Target::Stdout => to_stream(unsafe { stdout }, line),
            // SAFETY: as above.
            Target::Stderr => to_stream(unsafe { stderr }, line),
            Target::File(file) => _ = file.as_ref().write_all(line.as_bytes()),
            Target::Stream(file) => to_stream(*file, line),
        }
    }

    /// What nobody named a place for goes to stdout, unless a callback takes it.
    #[must_use]
    pub fn or_stdout(self, has_callback: bool) -> Target {
        match self {
            Target::Nowhere if !has_callback => Target::Stdout,
            target => target,
        }
    }
}

unsafe extern "C" {
    static stdout: *mut c_void;
    static stderr: *mut c_void;
}

/// Through C's buffer, so that lines stand between what the program prints.
fn to_stream(stream: *mut c_void, line: &str) {
    // SAFETY: the bytes are there, and the stream is C's or open by the program's promise.
    unsafe {
        libc::fwrite(line.as_ptr().cast(), 1, line.len(), stream.cast());
        libc::fflush(stream.cast());
    }
}

/// The mask and the target that `PREFIX_LOG_LEVEL`, `PREFIX_LOG_MASK` (which goes first) and `PREFIX_LOG_FILE` ask for. `%i` in the
/// file's name is the process's number.
pub fn of_variables(prefix: &str, var: impl Fn(&str) -> Option<String>) -> (c_int, Target) {
    let var = |what: &str| var(&format!("{prefix}_LOG_{what}"));
    let number = |what: &str| var(what).and_then(|value| value.trim().parse::<c_int>().ok());
    let of_level = number("LEVEL").filter(|level| (0..=LAST_LEVEL).contains(level)).map(up_to);
    let mask = number("MASK").or(of_level).unwrap_or(0);
    let path =
        var("FILE").filter(|_| mask != 0).map(|path| path.replace("%i", &std::process::id().to_string()));
    (mask, path.and_then(|path| Target::file(Path::new(&path)).ok()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_has_those_before_it_and_a_mask_goes_first() {
        let mask = |variables: &[(&str, &str)]| {
            let known = |name: &str| variables.iter().find(|(known, _)| *known == name);
            of_variables("CUBLASLT", |name| known(name).map(|(_, value)| (*value).to_owned())).0
        };
        assert_eq!(mask(&[]), 0);
        assert_eq!(mask(&[("CUBLASLT_LOG_LEVEL", "5")]), 31);
        assert_eq!(mask(&[("CUBLASLT_LOG_LEVEL", "2")]), 3);
        assert_eq!(mask(&[("CUBLASLT_LOG_LEVEL", "6")]), 0);
        assert_eq!(mask(&[("CUBLASLT_LOG_LEVEL", "5"), ("CUBLASLT_LOG_MASK", "5")]), 5);
        assert_eq!([1, 3, 5].map(bit), [1, 4, 16]);
    }
}
