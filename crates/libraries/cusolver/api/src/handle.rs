//! `cusolverDnHandle_t`: a stream, modes, and who computes.

use core::ffi::c_int;
use std::sync::Arc;

use cuda_abi::CUcontext;
use kit::engine::{self, Engine};
use kit::{Registry, driver, stream};
use parking_lot::Mutex;

use crate::types::*;
use crate::{Error, Result};

#[derive(Clone, Copy)]
pub struct State {
    pub stream: cudaStream_t,
    pub determinism: cusolverDeterministicMode_t,
    pub math: cusolverMathMode_t,
}

pub struct Context {
    context: CUcontext,
    engine: Engine,
    state: Mutex<State>,
}

// SAFETY: contexts and streams are the driver's numbers, good on every thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// For the calling thread's device.
    pub fn new() -> Result<Context> {
        let (context, engine) = engine::of_new_object(&config::get().solver)?;
        let state = State {
            stream: cudaStream_t::default(),
            determinism: cusolverDeterministicMode_t::CUSOLVER_DETERMINISTIC_RESULTS,
            math: cusolverMathMode_t::CUSOLVER_DEFAULT_MATH,
        };
        Ok(Context { context, engine, state: Mutex::new(state) })
    }

    pub fn state(&self) -> State {
        *self.state.lock()
    }

    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    /// What computes asks this first.
    pub fn can_compute(&self) -> Result {
        match self.engine {
            Engine::Cpu => Ok(()),
            Engine::Hip => Err(Error::NotSupported("cuSOLVER on AMD GPUs")),
        }
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
        self.can_compute()?;
        driver::context(Some(self.context))?;
        Ok(stream::enqueue(self.state().stream, (), move |()| work())?)
    }

    /// Waits for a result that goes to the host, as a copy to its memory does; in a graph it is there when the graph has run.
    pub fn deliver(&self) -> Result {
        if stream::is_capturing(self.state().stream)? { Ok(()) } else { self.synchronize() }
    }

    /// Waits for what the stream has to do.
    pub fn synchronize(&self) -> Result {
        self.can_compute()?;
        driver::context(Some(self.context))?;
        Ok(stream::synchronize(self.state().stream)?)
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
