//! `cusolverDnHandle_t`: a stream, modes, and who computes.

use core::ffi::c_int;
use std::sync::Arc;

use kit::{Place, Registry};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use crate::Result;
use crate::error::require;
use crate::hip::library::Library;
use crate::hip::{HipCall, HipHandle};
use crate::types::*;

#[derive(Clone, Copy)]
pub struct State {
    pub stream: cudaStream_t,
    pub determinism: cusolverDeterministicMode_t,
    pub math: cusolverMathMode_t,
    pub emulation: Emulation,
}

/// How a type may be emulated by narrower ones where a math mode allows it. It is kept: what is computed has the precision of its type.
#[derive(Clone, Copy)]
pub struct Emulation {
    pub strategy: cudaEmulationStrategy_t,
    pub special_values: cudaEmulationSpecialValuesSupport_t,
    pub mantissa_control: cudaEmulationMantissaControl_t,
    pub max_mantissa_bits: c_int,
    pub mantissa_bit_offset: c_int,
}

impl Default for Emulation {
    fn default() -> Self {
        Self {
            strategy: cudaEmulationStrategy_t::CUDA_EMULATION_STRATEGY_DEFAULT,
            special_values:
                cudaEmulationSpecialValuesSupport_t::CUDA_EMULATION_SPECIAL_VALUES_SUPPORT_DEFAULT,
            mantissa_control: cudaEmulationMantissaControl_t::CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC,
            max_mantissa_bits: 0,
            mantissa_bit_offset: 0,
        }
    }
}

impl State {
    /// Where `double` is emulated, bits are only added to a mantissa whose bits are counted while it runs.
    fn check(&self) -> Result {
        let emulates_double = matches!(
            self.math,
            cusolverMathMode_t::CUSOLVER_FP64_EMULATED_FIXEDPOINT_MATH
                | cusolverMathMode_t::CUSOLVER_FP32_FP64_EMULATED_MATH
        );
        let fixed = self.emulation.mantissa_control
            != cudaEmulationMantissaControl_t::CUDA_EMULATION_MANTISSA_CONTROL_DYNAMIC;
        require(
            !(emulates_double && fixed && self.emulation.mantissa_bit_offset != 0),
            "the handle has an offset of mantissa bits whose number is fixed",
        )
    }
}

pub struct Context {
    place: Place,
    state: Mutex<State>,
    /// Made at the first call that hipSOLVER has.
    hip: OnceCell<Arc<HipHandle>>,
}

// SAFETY: streams are the driver's numbers, good on every thread.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    /// For the calling thread's device.
    pub fn new() -> Result<Context> {
        let place = Place::on_copies(&config::get().solver)?;
        let state = State {
            stream: cudaStream_t::default(),
            determinism: cusolverDeterministicMode_t::CUSOLVER_DETERMINISTIC_RESULTS,
            math: cusolverMathMode_t::CUSOLVER_DEFAULT_MATH,
            emulation: Emulation::default(),
        };
        Ok(Context { place, state: Mutex::new(state), hip: OnceCell::new() })
    }

    pub fn state(&self) -> State {
        *self.state.lock()
    }

    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    /// hipSOLVER on the handle's stream and in its modes; none on the CPU device, or where our own code computes. `enqueues`: work for
    /// the stream follows.
    pub fn hip(&self, enqueues: bool) -> Result<Option<HipCall>> {
        if !self.place.enter_hip()? {
            return Ok(None);
        }
        let Some(library) = Library::get() else { return Ok(None) };
        let state = self.state();
        if enqueues {
            state.check()?;
        }
        let stream = kit::hip::stream(state.stream, enqueues)?;
        let handle = self.hip.get_or_try_init(|| HipHandle::of(library).map(Arc::new))?;
        handle.tell(stream.stream, &state)?;
        Ok(Some(HipCall { handle: Arc::clone(handle), stream: state.stream }))
    }

    /// What computes asks this first.
    pub fn can_compute(&self) -> Result {
        Ok(self.place.can_compute()?)
    }

    /// Runs the work when the stream has come to it, and writes the info that it answers.
    ///
    /// # Safety
    /// `info` may be written whenever the work runs.
    pub unsafe fn run(&self, info: *mut c_int, work: impl Fn() -> i64 + Send + Sync + 'static) -> Result {
        let info = crate::arguments::place(info)?;
        self.enqueue(move || {
            let found = c_int::try_from(work()).unwrap_or(c_int::MAX);
            // SAFETY: the caller's word: a number's place in memory that the device writes.
            unsafe { info.get().write(found) };
        })
    }

    /// Runs the work when the stream has come to it.
    pub fn enqueue(&self, work: impl Fn() + Send + Sync + 'static) -> Result {
        let state = self.state();
        state.check()?;
        Ok(self.place.enqueue(state.stream, (), move |()| work())?)
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
