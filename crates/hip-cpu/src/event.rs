//! Events: a point in a stream, with the time at which it was reached.

use std::sync::Arc;
use std::time::Instant;

use hip_sys::*;
use parking_lot::{Condvar, Mutex};

use crate::error::Result;
use crate::handle::Registry;

#[derive(Default)]
struct State {
    /// Times it was recorded, and the last of these that was reached.
    recorded: u64,
    reached: u64,
    at: Option<Instant>,
}

pub struct Event {
    flags: u32,
    state: Mutex<State>,
    reached: Condvar,
}

static EVENTS: Registry<Event> = Registry::new();

pub fn create(flags: u32) -> Result<hipEvent_t> {
    // Interprocess events need a shared page that we do not have.
    if flags & hipEventInterprocess != 0 {
        return Err(hipErrorNotSupported);
    }
    if flags & !(hipEventBlockingSync | hipEventDisableTiming) != 0 {
        return Err(hipErrorInvalidValue);
    }
    let event = Event { flags, state: Mutex::default(), reached: Condvar::new() };
    Ok(EVENTS.add(Arc::new(event)) as hipEvent_t)
}

pub fn of_handle(handle: hipEvent_t) -> Result<Arc<Event>> {
    EVENTS.get(handle as usize)
}

/// The work that records it goes on; who waits for it is still released.
pub fn destroy(handle: hipEvent_t) -> Result {
    EVENTS.remove(handle as usize).map(drop)
}

impl Event {
    /// The event means the next point from now on; answers its number.
    pub fn record(&self) -> u64 {
        let mut state = self.state.lock();
        state.recorded += 1;
        state.recorded
    }

    /// A stream reached point `number`.
    pub fn complete(&self, number: u64) {
        let mut state = self.state.lock();
        if number > state.reached {
            state.reached = number;
            if self.flags & hipEventDisableTiming == 0 {
                state.at = Some(Instant::now());
            }
        }
        self.reached.notify_all();
    }

    /// Number of the last record; 0 when there was none.
    pub fn last(&self) -> u64 {
        self.state.lock().recorded
    }

    pub fn wait_for(&self, number: u64) {
        let mut state = self.state.lock();
        while state.reached < number {
            self.reached.wait(&mut state);
        }
    }

    /// An event that was never recorded counts as reached.
    pub fn is_reached(&self) -> bool {
        let state = self.state.lock();
        state.reached >= state.recorded
    }

    /// When the last record was reached.
    fn time(&self) -> Result<Instant> {
        let state = self.state.lock();
        if self.flags & hipEventDisableTiming != 0 || state.recorded == 0 {
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
    let (start, stop) = (start.time()?, stop.time()?);
    let seconds = match stop.checked_duration_since(start) {
        Some(forward) => forward.as_secs_f64(),
        None => -start.duration_since(stop).as_secs_f64(),
    };
    Ok((seconds * 1e3) as f32)
}
