//! One helper process: its socket, and the file that what it prints goes to.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;

use super::spawn;
use crate::protocol::{Error, LIMIT_S, Reply};

pub struct Helper {
    socket: Socket,
    /// Memory that the helper's output goes to: nobody has to read it while it runs.
    words: File,
    process: libc::pid_t,
    was_used: bool,
}

/// Why there was no reply.
#[derive(Debug)]
pub enum End {
    /// The process is gone.
    Gone,
    /// It does not answer.
    Late,
    /// It is no helper of this build.
    Form(&'static str),
}

/// Bytes of a helper's last words that are passed on.
const MAX_WORDS: u64 = 4096;

impl Helper {
    pub fn start(program: &Path) -> io::Result<Helper> {
        let (ours, theirs) = sockets()?;
        let words = File::from(memory()?);
        let process = spawn::start(program, theirs.as_raw_fd(), words.as_raw_fd())?;
        tracing::debug!(target: "cudaway::comgr", "started {} as process {process}", program.display());
        Ok(Helper { socket: Socket(ours), words, process, was_used: false })
    }

    pub fn was_used(&self) -> bool {
        self.was_used
    }

    pub fn exchange(&mut self, request: &[u8]) -> Result<Reply, End> {
        // What it said of the last request is no news.
        let _ = self.words.set_len(0);
        // Where it is gone already, reading says so, and what it said is there.
        let _ = self.socket.write_all(request);
        let reply = Reply::read(&mut self.socket).map_err(|error| match error {
            Error::Form(why) => End::Form(why),
            Error::Io(error) if error.kind() == io::ErrorKind::WouldBlock => End::Late,
            Error::Io(_) => End::Gone,
        })?;
        self.was_used = true;
        Ok(reply)
    }

    /// The end of what it printed since the last request.
    pub fn words(&self) -> String {
        let len = self.words.metadata().map_or(0, |data| data.len());
        let from = len.saturating_sub(MAX_WORDS);
        let mut bytes = vec![0; (len - from) as usize];
        let n = self.words.read_at(&mut bytes, from).unwrap_or(0);
        bytes.truncate(n);
        String::from_utf8_lossy(&bytes).trim().to_owned()
    }
}

impl Drop for Helper {
    /// Without its socket the helper ends. Its parent is the process that gathers orphans; should that be us (process 1 of a
    /// container), this takes what is left of it.
    fn drop(&mut self) {
        // SAFETY: a plain call on the socket, which is open.
        unsafe { libc::shutdown(self.socket.0.as_raw_fd(), libc::SHUT_RDWR) };
        if self.process > 0 {
            // SAFETY: a plain call; it takes no other process, and does not wait.
            unsafe { libc::waitpid(self.process, core::ptr::null_mut(), libc::WNOHANG) };
        }
    }
}

/// A socket rather than pipes: writing to one whose reader is gone raises no signal in the program.
struct Socket(OwnedFd);

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let at = bytes.as_ptr().cast();
        // SAFETY: `bytes` are readable.
        let n = unsafe { libc::send(self.0.as_raw_fd(), at, bytes.len(), libc::MSG_NOSIGNAL) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Socket {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        // SAFETY: `bytes` are writable.
        let n = unsafe { libc::recv(self.0.as_raw_fd(), bytes.as_mut_ptr().cast(), bytes.len(), 0) };
        usize::try_from(n).map_err(|_| io::Error::last_os_error())
    }
}

fn sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut pair = [-1; 2];
    let kind = libc::SOCK_STREAM | libc::SOCK_CLOEXEC;
    // SAFETY: room for two descriptors.
    checked(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, pair.as_mut_ptr()) })?;
    // SAFETY: both were just opened.
    let (ours, theirs) = unsafe { (OwnedFd::from_raw_fd(pair[0]), OwnedFd::from_raw_fd(pair[1])) };
    // Longer than the helper's own limit: when it is stopped it cannot end itself.
    let limit = libc::timeval { tv_sec: libc::time_t::from(LIMIT_S) + 10, tv_usec: 0 };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        let (at, len) = ((&raw const limit).cast(), size_of::<libc::timeval>() as libc::socklen_t);
        // SAFETY: the structure that the option takes.
        checked(unsafe { libc::setsockopt(ours.as_raw_fd(), libc::SOL_SOCKET, option, at, len) })?;
    }
    Ok((above_standard(ours)?, above_standard(theirs)?))
}

/// An unnamed file that is always appended to.
fn memory() -> io::Result<OwnedFd> {
    // SAFETY: a C string. glibc has a function for it since 2.27 only.
    let file = unsafe { libc::syscall(libc::SYS_memfd_create, c"cudaway-comgr".as_ptr(), libc::MFD_CLOEXEC) };
    // Descriptors are ints.
    let file = checked(file as libc::c_int)?;
    // SAFETY: it was just opened.
    let file = unsafe { OwnedFd::from_raw_fd(file) };
    // SAFETY: a plain call.
    checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_SETFL, libc::O_APPEND) })?;
    above_standard(file)
}

/// A program that closed its standard files would get new ones in their places, which the helper's would then replace.
fn above_standard(file: OwnedFd) -> io::Result<OwnedFd> {
    if file.as_raw_fd() > libc::STDERR_FILENO {
        return Ok(file);
    }
    // SAFETY: a plain call.
    let above = checked(unsafe { libc::fcntl(file.as_raw_fd(), libc::F_DUPFD_CLOEXEC, 3) })?;
    // SAFETY: it was just opened.
    Ok(unsafe { OwnedFd::from_raw_fd(above) })
}

fn checked(answer: RawFd) -> io::Result<RawFd> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer) }
}
