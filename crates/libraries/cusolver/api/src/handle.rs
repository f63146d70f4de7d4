//! `cusolverDnHandle_t`: a stream, modes, and who computes.

use core::ffi::c_int;
use std::sync::Arc;

use kit::{Place, Registry};
use parking_lot::Mutex;

use crate::Result;
use crate::types::*;

#[derive(Clone, Copy)]
pub struct State {
    pub stream: cudaStream_t,
    pub determinism: cusolverDeterministicMode_t,
    pub math: cusolverMathMode_t,
}

pub struct Context {
    place: Place,
    state: Mutex<State>,
}

// SAFETY: streams are the driver's numbers, good on every thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// For the calling thread's device.
    pub fn new() -> Result<Context> {
        let place = Place::of_current_device(&config::get().solver, "cuSOLVER on AMD GPUs")?;
        let state = State {
            stream: cudaStream_t::default(),
            determinism: cusolverDeterministicMode_t::CUSOLVER_DETERMINISTIC_RESULTS,
            math: cusolverMathMode_t::CUSOLVER_DEFAULT_MATH,
        };
        Ok(Context { place, state: Mutex::new(state) })
    }

    pub fn state(&self) -> State {
        *self.state.lock()
    }

    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    /// What computes asks this first.
    pub fn can_compute(&self) -> Result {
        Ok(self.place.can_compute()?)
    }

    /// Runs the work when the stream has come to it, and writes the info that it answers.
    pub fn run(&self, info: *mut c_int, work: impl Fn() -> i64 + Send + Sync + 'static) -> Result {
        let info = crate::arguments::place(info)?;
        self.enqueue(move || {
            let found = c_int::try_from(work()).unwrap_or(c_int::MAX);
            // SAFETY: cuSOLVER's contract: a number's place in memory that the device writes.
            unsafe { info.get().write(found) };
        })
    }

    /// Runs the work when the stream has come to it.
    pub fn enqueue(&self, work: impl Fn() + Send + Sync + 'static) -> Result {
        Ok(self.place.enqueue(self.state().stream, (), move |()| work())?)
    }

    /// Waits for a result that goes to the host, as a copy to its memory does; in a graph it is there when the graph has run.
    pub fn deliver(&self) -> Result {
        Ok(self.place.deliver(self.state().stream)?)
    }

    /// Waits for what the stream has to do.
    pub fn synchronize(&self) -> Result {
        Ok(self.place.synchronize(self.state().stream)?)
    }
}

static CONTEXTS: Registry<Context> = Registry::new();

pub fn add(context: Context) -> cusolverDnHandle_t {
    CONTEXTS.add(context)
}

/// One that is NULL or was destroyed is not initialized.
pub fn get(handle: cusolverDnHandle_t) -> Result<Arc<Context>> {
    Ok(CONTEXTS.get(handle)?)
}

/// For a call that computes.
pub fn computing(handle: cusolverDnHandle_t) -> Result<Arc<Context>> {
    let context = get(handle)?;
    context.can_compute()?;
    Ok(context)
}

/// What it was asked for is still done.
pub fn remove(handle: cusolverDnHandle_t) -> Result {
    CONTEXTS.remove(handle)?;
    Ok(())
}
