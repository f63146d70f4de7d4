//! The log of failed calls that `cuLogs*` reads, and those who want to hear of each.
//!
//! Bound: `MOST_BYTES` of text; the oldest messages go first. No lock is held while a callback runs.

use core::ffi::{c_char, c_void};
use std::cell::Cell;
use std::collections::VecDeque;
use std::ffi::CString;
use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use cuda_abi::{CUlogLevel, CUlogsCallback, CUlogsCallbackHandle};
use parking_lot::Mutex;

use crate::handle::Registry;
use crate::{Error, Result};

/// CUDA's own buffer is as large.
pub const MOST_BYTES: usize = 25_600;

static LOG: Mutex<Log> = Mutex::new(Log { first: 0, lines: VecDeque::new(), len_bytes: 0 });
static CALLBACKS: Registry<Callback, CUlogsCallbackHandle> = Registry::new(17);

#[derive(Clone, Copy)]
struct Callback {
    function: CUlogsCallback,
    data: *mut c_void,
}

// SAFETY: CUDA's contract: the function may be called with its data from any thread.
unsafe impl Send for Callback {}
// SAFETY: as above.
unsafe impl Sync for Callback {}

/// Lines with their newlines; `first` is the number of the oldest one kept.
struct Log {
    first: u32,
    lines: VecDeque<String>,
    len_bytes: usize,
}

thread_local! {
    /// A callback that makes a failing call is not called for it.
    static IS_TELLING: Cell<bool> = const { Cell::new(false) };
}

/// Notes a failure: `[hours:minutes:seconds.milliseconds][thread][CUDA][E] call: reason`.
pub fn note(call: &'static str, reason: impl fmt::Display) {
    if IS_TELLING.replace(true) {
        return;
    }
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let (seconds, thousandths) = (now.as_secs(), now.subsec_millis());
    let (hours, minutes) = (seconds / 3600 % 24, seconds / 60 % 60);
    let thread = trace::thread();
    let line = format!(
        "[{hours:02}:{minutes:02}:{:02}.{thousandths:03}][{thread}][CUDA][E] {call}: {reason}\n",
        seconds % 60
    );
    tell(&line);
    LOG.lock().add(line);
    IS_TELLING.set(false);
}

fn tell(line: &str) {
    let wanted = Mutex::new(Vec::new());
    CALLBACKS.for_each(|callback| wanted.lock().push(*callback));
    let wanted = wanted.into_inner();
    if wanted.is_empty() {
        return;
    }
    let text = line.trim_end_matches('\n');
    let Ok(text) = CString::new(text) else { return };
    for Callback { function, data } in wanted {
        if let Some(function) = function {
            let message = text.as_ptr().cast_mut();
            // SAFETY: CUDA's contract with whoever registered it; the message lives through the call.
            unsafe { function(data, CUlogLevel::CU_LOG_LEVEL_ERROR, message, text.as_bytes().len()) };
        }
    }
}

impl Log {
    fn add(&mut self, line: String) {
        self.len_bytes += line.len();
        self.lines.push_back(line);
        while self.len_bytes > MOST_BYTES {
            let Some(oldest) = self.lines.pop_front() else { break };
            self.len_bytes -= oldest.len();
            self.first += 1;
        }
    }

    fn next(&self) -> u32 {
        self.first.wrapping_add(u32::try_from(self.lines.len()).unwrap_or(u32::MAX))
    }

    /// The lines from number `from` on that fit into `room` bytes, newest kept, and a line before them when some are missing.
    fn read(&self, from: u32, room: usize) -> String {
        const CUT: &str = "[CUDA][W] older messages are missing\n";
        let skip = from.saturating_sub(self.first) as usize;
        let wanted: Vec<&String> = self.lines.iter().skip(skip).collect();
        let is_lost = from < self.first;
        let all: usize = wanted.iter().map(|line| line.len()).sum();
        if !is_lost && all <= room {
            return wanted.into_iter().map(String::as_str).collect();
        }
        let Some(mut left) = room.checked_sub(CUT.len()) else { return String::new() };
        let fitting = wanted.iter().rev().take_while(|line| match left.checked_sub(line.len()) {
            Some(rest) => {
                left = rest;
                true
            }
            None => false,
        });
        let kept = fitting.count();
        if kept == 0 && !wanted.is_empty() {
            return String::new();
        }
        let tail = wanted[wanted.len() - kept..].iter().map(|line| line.as_str());
        core::iter::once(CUT).chain(tail).collect()
    }
}

pub fn next() -> u32 {
    LOG.lock().next()
}

/// What was logged from number `from` on, in at most `room` bytes; whether there was anything; the number of the next line.
pub fn read(from: u32, room: usize) -> (String, bool, u32) {
    let log = LOG.lock();
    let next = log.next();
    (log.read(from, room), next > from, next)
}

pub fn register(function: CUlogsCallback, data: *mut c_void) -> Result<CUlogsCallbackHandle> {
    CALLBACKS.insert(Callback { function, data }).ok_or(Error::OutOfMemory)
}

pub fn unregister(handle: CUlogsCallbackHandle) -> Result {
    CALLBACKS.remove(handle).map(|_| ()).ok_or(Error::InvalidValue("callback"))
}

/// Writes a text and its terminator; `room` counts both.
///
/// # Safety
/// `at` has `room` writable bytes, at least one.
pub unsafe fn write_text(text: &str, at: *mut c_char, room: usize) {
    let len_bytes = text.len().min(room.saturating_sub(1));
    // SAFETY: the caller's promise: `room` writable bytes, at least one.
    unsafe {
        at.cast::<u8>().copy_from_nonoverlapping(text.as_ptr(), len_bytes);
        at.cast::<u8>().add(len_bytes).write(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn log_of(lines: &[&str]) -> Log {
        let mut log = Log { first: 0, lines: VecDeque::new(), len_bytes: 0 };
        lines.iter().for_each(|line| log.add((*line).to_owned()));
        log
    }

    #[test]
    fn a_reader_gets_what_came_after_its_place() {
        let log = log_of(&["one\n", "two\n", "three\n"]);
        assert_eq!(log.read(0, 100), "one\ntwo\nthree\n");
        assert_eq!(log.read(2, 100), "three\n");
        assert_eq!((log.read(3, 100).as_str(), log.next()), ("", 3));
    }

    #[test]
    fn too_little_room_keeps_the_newest_and_says_so() {
        let log = log_of(&[&"a".repeat(60), "two\n", "three\n"]);
        assert_eq!(log.read(0, 50), "[CUDA][W] older messages are missing\ntwo\nthree\n");
        assert_eq!(log.read(0, 5), "");
    }

    #[test]
    fn the_oldest_lines_go_when_the_buffer_is_full() {
        let line = format!("{}\n", "x".repeat(999));
        let log = log_of(&vec![line.as_str(); 30]);
        assert_eq!((log.first, log.next()), (5, 30), "25 lines of 1000 bytes fit into 25600");
        assert!(log.read(0, MOST_BYTES).starts_with("[CUDA][W]"));
    }
}
