//! Events: a point in a stream, with the time at which it was reached.
//!
//! An interprocess event keeps its counts in a page that every process with the event sees; it has no times.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;

use hip_sys::*;
use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::handle::Registry;
use crate::memory::mapped;
use crate::ticket::{self, Ticket};

#[derive(Default)]
struct State {
    /// Times it was recorded, and the last of these that was reached.
    recorded: u64,
    reached: u64,
    at: Option<Instant>,
}

pub struct Event {
    flags: u32,
    counts: Counts,
    /// It was recorded, and nobody has asked for a time between it and another since.
    is_unread: AtomicBool,
}

/// Events that are unread. Where there are none, a program that has measured before begins anew with the next that it records.
static N_UNREAD: AtomicUsize = AtomicUsize::new(0);
/// The program has asked for the time between two events.
static IS_MEASURING: AtomicBool = AtomicBool::new(false);

/// Whether the program measures how long its work takes.
pub fn is_measuring() -> bool {
    IS_MEASURING.load(Ordering::Relaxed)
}

impl Drop for Event {
    fn drop(&mut self) {
        self.set_read();
    }
}

enum Counts {
    Own { state: Mutex<State>, reached: Condvar },
    Shared(Page),
}

/// The counts of an interprocess event. Only the layout is agreed on between processes of one build; the ticket's mark tells builds
/// apart that would differ.
#[repr(C)]
struct SharedState {
    recorded: AtomicU64,
    reached: AtomicU64,
    /// Changes with `reached`: what waiting threads sleep on.
    turn: AtomicU32,
}

/// A view of a page with a `SharedState` at its start.
struct Page {
    at: usize,
    file: OwnedFd,
}

const PAGE: usize = 4096;

impl Page {
    fn of(file: OwnedFd) -> Result<Page> {
        if mapped::len_of(&file)? != PAGE {
            return Err(hipErrorInvalidValue);
        }
        Ok(Page { at: mapped::view_anywhere(&file, 0, PAGE)?, file })
    }

    fn state(&self) -> &SharedState {
        // SAFETY: the page stays mapped as long as `self`, begins zeroed, and is only used through atomics.
        unsafe { &*(self.at as *const SharedState) }
    }

    fn complete(&self, number: u64) {
        let state = self.state();
        state.reached.fetch_max(number, Ordering::AcqRel);
        state.turn.fetch_add(1, Ordering::AcqRel);
        // SAFETY: a word of our page; all who sleep on it are woken, in every process.
        unsafe { libc::syscall(libc::SYS_futex, &state.turn, libc::FUTEX_WAKE, i32::MAX) };
    }

    fn wait_for(&self, number: u64) {
        let state = self.state();
        loop {
            let turn = state.turn.load(Ordering::Acquire);
            if state.reached.load(Ordering::Acquire) >= number {
                return;
            }
            let forever = std::ptr::null::<libc::timespec>();
            // SAFETY: a word of our page; it returns at once if the word has changed.
            unsafe { libc::syscall(libc::SYS_futex, &state.turn, libc::FUTEX_WAIT, turn, forever) };
        }
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped.
        unsafe { libc::munmap(self.at as *mut _, PAGE) };
    }
}

static EVENTS: Registry<Event> = Registry::new();

/// Events that were not destroyed.
pub fn left() -> usize {
    EVENTS.n_live()
}

pub fn create(flags: u32) -> Result<hipEvent_t> {
    if flags & !(hipEventBlockingSync | hipEventDisableTiming | hipEventInterprocess) != 0 {
        return Err(hipErrorInvalidValue);
    }
    let counts = if flags & hipEventInterprocess != 0 {
        // HIP: such an event cannot tell the time.
        if flags & hipEventDisableTiming == 0 {
            return Err(hipErrorInvalidValue);
        }
        Counts::Shared(Page::of(mapped::file(PAGE)?)?)
    } else {
        Counts::Own { state: Mutex::default(), reached: Condvar::new() }
    };
    Ok(EVENTS.add(Event::new(flags, counts)) as hipEvent_t)
}

/// Another process's event.
pub fn open(file: OwnedFd) -> Result<hipEvent_t> {
    let counts = Counts::Shared(Page::of(file)?);
    let flags = hipEventDisableTiming | hipEventInterprocess;
    Ok(EVENTS.add(Event::new(flags, counts)) as hipEvent_t)
}

pub fn of_handle(handle: hipEvent_t) -> Result<Arc<Event>> {
    EVENTS.get(handle as usize)
}

/// The work that records it goes on; who waits for it is still released.
pub fn destroy(handle: hipEvent_t) -> Result {
    EVENTS.remove(handle as usize).map(drop)
}

impl Event {
    fn new(flags: u32, counts: Counts) -> Arc<Event> {
        Arc::new(Event { flags, counts, is_unread: AtomicBool::new(false) })
    }

    fn has_time(&self) -> bool {
        self.flags & hipEventDisableTiming == 0
    }

    /// Whether a measurement begins with its next record: the program measures, and all that it recorded has been read. Else work may be
    /// under way whose time would be longer for a wait.
    pub fn begins_measuring(&self) -> bool {
        self.has_time() && is_measuring() && N_UNREAD.load(Ordering::Relaxed) == 0
    }

    fn set_read(&self) {
        if self.is_unread.swap(false, Ordering::Relaxed) {
            N_UNREAD.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// The event means the next point from now on; answers its number.
    pub fn record(&self) -> u64 {
        if self.has_time() && !self.is_unread.swap(true, Ordering::Relaxed) {
            N_UNREAD.fetch_add(1, Ordering::Relaxed);
        }
        match &self.counts {
            Counts::Own { state, .. } => {
                let mut state = state.lock();
                state.recorded += 1;
                state.recorded
            }
            Counts::Shared(page) => page.state().recorded.fetch_add(1, Ordering::AcqRel) + 1,
        }
    }

    /// A stream reached point `number`.
    pub fn complete(&self, number: u64) {
        match &self.counts {
            Counts::Own { state, reached } => {
                let mut state = state.lock();
                if number > state.reached {
                    state.reached = number;
                    if self.has_time() {
                        state.at = Some(Instant::now());
                    }
                }
                reached.notify_all();
            }
            Counts::Shared(page) => page.complete(number),
        }
    }

    /// Number of the last record; 0 when there was none.
    pub fn last(&self) -> u64 {
        match &self.counts {
            Counts::Own { state, .. } => state.lock().recorded,
            Counts::Shared(page) => page.state().recorded.load(Ordering::Acquire),
        }
    }

    pub fn wait_for(&self, number: u64) {
        match &self.counts {
            Counts::Own { state, reached } => {
                let mut state = state.lock();
                while state.reached < number {
                    reached.wait(&mut state);
                }
            }
            Counts::Shared(page) => page.wait_for(number),
        }
    }

    /// An event that was never recorded counts as reached.
    pub fn is_reached(&self) -> bool {
        match &self.counts {
            Counts::Own { state, .. } => {
                let state = state.lock();
                state.reached >= state.recorded
            }
            Counts::Shared(page) => {
                let state = page.state();
                // In this order: a record between the two is not yet reached.
                let recorded = state.recorded.load(Ordering::Acquire);
                state.reached.load(Ordering::Acquire) >= recorded
            }
        }
    }

    /// What another process opens it by.
    pub fn ticket(&self) -> Result<Ticket> {
        match &self.counts {
            Counts::Own { .. } => Err(hipErrorInvalidHandle),
            Counts::Shared(page) => Ticket::new(ticket::Kind::Event, &page.file, 0, PAGE),
        }
    }

    /// When the last record was reached.
    fn time(&self) -> Result<Instant> {
        let Counts::Own { state, .. } = &self.counts else { return Err(hipErrorInvalidHandle) };
        let state = state.lock();
        if !self.has_time() || state.recorded == 0 {
            return Err(hipErrorInvalidHandle);
        }
        if state.reached < state.recorded {
            return Err(hipErrorNotReady);
        }
        state.at.ok_or(hipErrorInvalidHandle)
    }
}

/// Milliseconds from `start` to `stop`; negative when they came the other way round.
pub fn elapsed_ms(start: &Event, stop: &Event) -> Result<f32> {
    let (from, to) = (start.time()?, stop.time()?);
    IS_MEASURING.store(true, Ordering::Relaxed);
    start.set_read();
    stop.set_read();
    let seconds = match to.checked_duration_since(from) {
        Some(forward) => forward.as_secs_f64(),
        None => -from.duration_since(to).as_secs_f64(),
    };
    Ok((seconds * 1e3) as f32)
}
