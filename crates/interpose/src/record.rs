//! What the takeover did, kept without allocation so that it can be written before `main` and read when logging is allowed.

use core::cell::UnsafeCell;
use core::ffi::CStr;
use core::fmt;
use core::sync::atomic::{AtomicUsize, Ordering};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// Its functions jump to ours.
    Redirected,
    /// It is a library of [`crate::compilers`]: PTX takes the place of machine code there.
    HasPtx,
    /// It is one, and its functions begin in a way that cannot be replaced, or were written to by somebody else.
    UnknownCode,
    /// A static runtime without names, of a release whose code is not known: it cannot be redirected.
    Stripped,
    /// It has already registered its kernels with its own runtime.
    TooLate,
    /// The names fit no major that we have.
    UnknownMajor,
    /// The names lie in no executable segment.
    NoCode,
    /// No free memory within 2 GiB of it.
    NoIsland,
    /// The system does not let code pages be changed.
    Protected,
    /// The object is the loader: its notification function is not the one-byte function that we know, so objects
    /// opened later are not seen.
    UnknownLoader,
}

const PATH_BYTES: usize = 232;

/// One object in which a CUDA runtime was found, or another library whose functions become ours.
#[derive(Clone, Copy)]
pub struct Record {
    path: [u8; PATH_BYTES],
    path_bytes: usize,
    pub outcome: Outcome,
    /// What was found.
    pub library: &'static str,
    pub major: u32,
    pub n_found: usize,
    pub n_redirected: usize,
    pub n_too_short: usize,
    /// Functions whose code in memory was not the file's any more.
    pub n_changed: usize,
    /// The release, where the runtime has no names and was told by its code.
    pub release: Option<&'static str>,
    /// Functions of such a runtime whose code is not the release's.
    pub n_unlike: usize,
    /// The first of them.
    unlike: [&'static [u8]; NAMED_UNLIKE],
}

const NAMED_UNLIKE: usize = 8;

impl Record {
    pub fn new(path: &CStr) -> Self {
        let mut record = Record {
            path: [0; PATH_BYTES],
            path_bytes: 0,
            outcome: Outcome::Redirected,
            library: "the CUDA runtime",
            major: 0,
            n_found: 0,
            n_redirected: 0,
            n_too_short: 0,
            n_changed: 0,
            release: None,
            n_unlike: 0,
            unlike: [b""; NAMED_UNLIKE],
        };
        record.set_path(path.to_bytes());
        record
    }

    /// Names the file behind a link such as /proc/self/exe instead of the link.
    pub fn follow_link(&mut self, path: &CStr) {
        let mut target = [0u8; 4096];
        // SAFETY: `path` ends in a zero; the buffer is as long as said.
        let len_bytes = unsafe { libc::readlink(path.as_ptr(), target.as_mut_ptr().cast(), target.len()) };
        if let Some(target) = usize::try_from(len_bytes).ok().and_then(|len_bytes| target.get(..len_bytes))
            && target.starts_with(b"/")
        {
            self.set_path(target);
        }
    }

    fn set_path(&mut self, bytes: &[u8]) {
        self.path_bytes = bytes.len().min(PATH_BYTES);
        // The end of a long path says more than its beginning.
        let tail = bytes.get(bytes.len() - self.path_bytes..).unwrap_or(&[]);
        for (to, &from) in self.path.iter_mut().zip(tail) {
            *to = from;
        }
    }

    /// A function with this name was left alone.
    pub fn add_unlike(&mut self, name: &'static [u8]) {
        if let Some(place) = self.unlike.get_mut(self.n_unlike) {
            *place = name;
        }
        self.n_unlike += 1;
    }

    /// What a runtime without names was told by, and what of it was left alone.
    fn fmt_told(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let Some(release) = self.release else { return Ok(()) };
        write!(f, "; it has no names, its code is that of {release}")?;
        for (index, name) in self.unlike.iter().take(self.n_unlike).enumerate() {
            let name = name.utf8_chunks().next().map_or("", |chunk| chunk.valid());
            write!(f, "{} {name}", if index == 0 { " but for" } else { "," })?;
        }
        match self.n_unlike.saturating_sub(NAMED_UNLIKE) {
            0 if self.n_unlike == 0 => Ok(()),
            0 => write!(f, ", left alone"),
            more => write!(f, " and {more} others, left alone"),
        }
    }

    pub fn path(&self) -> &[u8] {
        self.path.get(..self.path_bytes).unwrap_or(&[])
    }

    /// Something the user should know about, rather than a success.
    pub fn is_trouble(&self) -> bool {
        !matches!(self.outcome, Outcome::Redirected | Outcome::HasPtx)
            || self.n_too_short > 0
            || self.n_changed > 0
            || self.n_unlike > 0
    }
}

impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let path = self.path().utf8_chunks().next().map_or("", |chunk| chunk.valid());
        let (major, library) = (self.major, self.library);
        match self.outcome {
            Outcome::Redirected => {
                write!(
                    f,
                    "{path}: CUDA {major} runtime taken over, {} of {} functions redirected ({} too short, {} changed by somebody else)",
                    self.n_redirected, self.n_found, self.n_too_short, self.n_changed
                )?;
                self.fmt_told(f)
            }
            Outcome::HasPtx => write!(f, "{path}: PTX takes the place of machine code in {library}"),
            Outcome::UnknownCode => write!(
                f,
                "{path}: the functions of {library} begin in an unknown way, left alone; machine code of it cannot run"
            ),
            Outcome::Stripped => write!(
                f,
                "{path}: it seems to carry a static CUDA runtime, but its symbol names were stripped, and its code is of no release \
                 that is known here, so it cannot be taken over; use a build that is not stripped or one with a shared runtime \
                 (nvcc -cudart shared)"
            ),
            Outcome::TooLate => write!(
                f,
                "{path}: its static CUDA runtime was in use before libcuda.so.1 was loaded; start the program with \
                 LD_PRELOAD=<directory>/libcuda.so.1"
            ),
            Outcome::UnknownMajor => {
                write!(f, "{path}: a CUDA runtime of an unknown major version, left alone")
            }
            Outcome::NoCode => {
                write!(f, "{path}: the functions of {library} are in no code segment, left alone")
            }
            Outcome::NoIsland => {
                write!(f, "{path}: no free address space within 2 GiB for the jumps of {library}, left alone")
            }
            Outcome::Protected => {
                write!(f, "{path}: the system does not allow changing the code of {library}, left alone")
            }
            Outcome::UnknownLoader => write!(
                f,
                "{path}: the loader's notification function has an unknown form; static CUDA runtimes in libraries that are \
                 opened later will not be taken over"
            ),
        }
    }
}

const CAPACITY: usize = 64;

struct Log {
    entries: [UnsafeCell<Option<Record>>; CAPACITY],
    n_written: AtomicUsize,
}

// SAFETY: an entry is written once, by the holder of the loader's lock, before `n_written` passes it; then only read.
unsafe impl Sync for Log {}

static LOG: Log =
    Log { entries: [const { UnsafeCell::new(None) }; CAPACITY], n_written: AtomicUsize::new(0) };

/// The caller holds the loader's lock or is alone. Past the capacity records are dropped.
pub fn add(record: Record) {
    let is_it = |known: &Record| {
        (known.path(), known.library, known.outcome) == (record.path(), record.library, record.outcome)
    };
    if records().any(is_it) {
        // A library that is opened again and again is one line.
        return;
    }
    let n = LOG.n_written.load(Ordering::Relaxed);
    if let Some(entry) = LOG.entries.get(n) {
        // SAFETY: nobody reads an entry at or past `n_written`, and nobody else writes.
        unsafe { *entry.get() = Some(record) };
        LOG.n_written.store(n + 1, Ordering::Release);
    }
}

/// Every object in which something was found so far, in the order of loading. Cheap; safe at any time.
pub fn records() -> impl Iterator<Item = &'static Record> {
    let n = LOG.n_written.load(Ordering::Acquire);
    // SAFETY: entries before `n_written` are never written again.
    LOG.entries.iter().take(n).filter_map(|entry| unsafe { (*entry.get()).as_ref() })
}

/// The records that no earlier call of this function gave.
pub fn news() -> impl Iterator<Item = &'static Record> {
    static TOLD: AtomicUsize = AtomicUsize::new(0);
    let n = LOG.n_written.load(Ordering::Acquire);
    let told = TOLD.fetch_max(n, Ordering::AcqRel);
    records().take(n).skip(told)
}
