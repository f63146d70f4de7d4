//! `cufftHandle`: an empty plan from `cufftCreate` on, a made one from the first `cufftMakePlan` that succeeds.
//!
//! The rule: what is made never changes, so work that is in a stream or in a graph keeps it, whatever becomes of the handle.

use core::ffi::{c_int, c_longlong, c_void};
use std::sync::Arc;

use cuda_abi::CUcontext;
use cufft_cpu::{Description, Direction, Kind, Precision, Rayon};
use kit::engine::{self, Engine};
use kit::{Numbered, driver, stream};
use parking_lot::Mutex;

use crate::types::*;
use crate::{Error, Result, hip};

/// Who computes for the device that was current when the plan was created.
enum Maker {
    Cpu,
    Hip(Arc<hip::Handle>),
}

#[derive(Clone)]
enum Work {
    Cpu(Arc<cufft_cpu::Plan>),
    Hip(Arc<hip::Handle>),
}

/// What a made plan is.
#[derive(Clone)]
struct Made {
    work: Work,
    kind: Kind,
    precision: Precision,
    /// Bytes of the work area that the program may give.
    work_area: usize,
    /// Bytes of input and of output, apart and in the same memory.
    bytes: [[usize; 2]; 2],
    shape: Shape,
}

/// What is divided among several devices: dense arrays of complex numbers, in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub batch: usize,
    /// The outermost axis, and the one below, which a 1-D transform has not.
    pub rows: usize,
    pub columns: usize,
    /// Of one row's part in one column.
    pub bytes: usize,
    pub is_real: bool,
}

impl Shape {
    fn new(description: &Description) -> Shape {
        let natural = |n: i64| usize::try_from(n).unwrap_or_default();
        let mut counts: Vec<usize> = description.n.iter().map(|&n| natural(n)).collect();
        let is_real = description.kind != Kind::C2C;
        if let Some(last) = counts.last_mut().filter(|_| is_real) {
            *last = *last / 2 + 1;
        }
        let complex = 2 * description.precision.bytes();
        Shape {
            batch: natural(description.batch),
            rows: counts[0],
            columns: counts.get(1).copied().unwrap_or(1),
            bytes: counts.get(2).copied().unwrap_or(1) * complex,
            is_real,
        }
    }
}

#[derive(Default)]
struct State {
    stream: cudaStream_t,
    patient_jit: c_longlong,
    /// 0: the program has not said.
    host_threads: c_longlong,
    /// Several devices, or none: the one that is the plan's.
    devices: Vec<c_int>,
    made: Option<Made>,
}

pub struct Plan {
    context: CUcontext,
    maker: Maker,
    state: Mutex<State>,
}

// SAFETY: contexts and streams are the driver's numbers, good on every thread.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}

impl Plan {
    /// For the calling thread's device.
    pub fn new() -> Result<Plan> {
        let (context, engine) = engine::of_new_object(&config::get().fft)?;
        let maker = match engine {
            Engine::Cpu => Maker::Cpu,
            Engine::Hip => Maker::Hip(Arc::new(hip::Handle::new()?)),
        };
        Ok(Plan { context, maker, state: Mutex::default() })
    }

    /// Makes what the handle is a plan of, and says how large its work area is.
    pub fn make(&self, description: &Description) -> Result<usize> {
        let mut state = self.state.lock();
        if state.made.is_some() {
            return Err(Error::Plan("the handle has a plan already"));
        }
        if !state.devices.is_empty() && (description.input.is_some() || description.output.is_some()) {
            return Err(Error::NotSupported("strides in plans of several devices"));
        }
        let (work, work_area) = match &self.maker {
            Maker::Cpu => (Work::Cpu(Arc::new(cufft_cpu::Plan::new(description)?)), CPU_WORK_AREA),
            Maker::Hip(handle) => {
                description.check()?;
                (Work::Hip(handle.clone()), handle.make(description)?)
            }
        };
        let (kind, precision) = (description.kind, description.precision);
        let (bytes, shape) = (description.bytes()?, Shape::new(description));
        state.made = Some(Made { work, kind, precision, work_area, bytes, shape });
        Ok(work_area)
    }

    /// What [`Self::make`] would say.
    pub fn size(&self, description: &Description) -> Result<usize> {
        description.check()?;
        match &self.maker {
            Maker::Cpu => Ok(CPU_WORK_AREA),
            Maker::Hip(handle) => handle.size(description),
        }
    }

    pub fn work_area(&self) -> Result<usize> {
        Ok(self.made()?.work_area)
    }

    /// Bytes of a side, apart and in the memory of both.
    pub fn bytes(&self) -> Result<[[usize; 2]; 2]> {
        Ok(self.made()?.bytes)
    }

    pub fn shape(&self) -> Result<Shape> {
        Ok(self.made()?.shape)
    }

    /// Of a plan that is not made yet.
    pub fn set_devices(&self, devices: Vec<c_int>) -> Result {
        if matches!(self.maker, Maker::Hip(_)) {
            return Err(Error::NotSupported("a plan of several AMD GPUs"));
        }
        self.state.lock().devices = devices;
        Ok(())
    }

    /// Several, or none: the one that is the plan's.
    pub fn devices(&self) -> Vec<c_int> {
        self.state.lock().devices.clone()
    }

    fn made(&self) -> Result<Made> {
        self.state.lock().made.clone().ok_or(Error::Plan("no plan was made for the handle"))
    }

    pub fn set_stream(&self, stream: cudaStream_t) {
        self.state.lock().stream = stream;
    }

    pub fn stream(&self) -> cudaStream_t {
        self.state.lock().stream
    }

    /// The plan's context, which the thread gets if it has none.
    pub fn enter(&self) -> Result {
        driver::context(Some(self.context))?;
        Ok(())
    }

    pub fn is_of(&self, context: CUcontext) -> bool {
        self.context == context
    }

    /// The CPU's transforms take no memory of the program's.
    pub fn set_work_area(&self, at: *mut c_void) -> Result {
        match &self.maker {
            Maker::Cpu => Ok(()),
            Maker::Hip(handle) => handle.set_work_area(at),
        }
    }

    pub fn set_auto_allocation(&self, on: bool) -> Result {
        match &self.maker {
            Maker::Cpu => Ok(()),
            Maker::Hip(handle) => handle.set_auto_allocation(on),
        }
    }

    /// The plan and its direction, for a call that is for `expected`; `None` is any.
    fn checked(&self, expected: Option<(Kind, Precision)>, direction: c_int) -> Result<(Made, Direction)> {
        let made = self.made()?;
        if expected.is_some_and(|expected| expected != (made.kind, made.precision)) {
            return Err(Error::Type("the plan is one of another type"));
        }
        let direction = match (made.kind, direction) {
            // A real transform has one direction, and the program's is not looked at.
            (Kind::R2C, _) => Direction::Forward,
            (Kind::C2R, _) => Direction::Inverse,
            (Kind::C2C, CUFFT_FORWARD) => Direction::Forward,
            (Kind::C2C, CUFFT_INVERSE) => Direction::Inverse,
            (Kind::C2C, _) => return Err(Error::Value("direction")),
        };
        Ok((made, direction))
    }

    /// Transforms in stream order.
    ///
    /// # Safety
    /// `input` and `output` are NULL, or have room for the plan's data, and nobody else uses them, until the stream has done the work.
    pub unsafe fn execute(
        &self,
        expected: Option<(Kind, Precision)>,
        input: *const c_void,
        output: *mut c_void,
        direction: c_int,
    ) -> Result {
        let (made, direction) = self.checked(expected, direction)?;
        if !self.devices().is_empty() {
            return Err(Error::Plan("a plan of several devices takes descriptors"));
        }
        let is_good = |at: *const c_void| !at.is_null() && at.addr().is_multiple_of(made.precision.bytes());
        if !is_good(input) {
            return Err(Error::Value("idata"));
        }
        if !is_good(output) {
            return Err(Error::Value("odata"));
        }
        self.enter()?;
        let stream = self.stream();
        match made.work {
            Work::Cpu(plan) => {
                let work = move |(input, output): (*const c_void, *mut c_void)| {
                    // SAFETY: the caller's promise: until the stream has come here the memory is there; device
                    // memory of the CPU device is the host's.
                    said(unsafe { plan.execute(input, output, direction, &Rayon) });
                };
                Ok(stream::enqueue(stream, (input, output), work)?)
            }
            Work::Hip(handle) => {
                let stream = kit::hip::stream(stream, true)?.stream;
                handle.execute(stream, (made.kind, made.precision), input, output, direction)
            }
        }
    }

    /// Transforms an array in place, in the call.
    ///
    /// # Safety
    /// The array is as large as the plan's in place, and nobody else uses it.
    pub unsafe fn execute_now(
        &self,
        expected: Option<(Kind, Precision)>,
        array: *mut c_void,
        direction: c_int,
    ) -> Result {
        let (made, direction) = self.checked(expected, direction)?;
        match made.work {
            // SAFETY: the caller's promise.
            Work::Cpu(plan) => Ok(unsafe { plan.execute(array, array, direction, &Rayon) }?),
            Work::Hip(_) => Err(Error::NotSupported("a plan of several AMD GPUs")),
        }
    }

    pub fn set_property(&self, property: cufftProperty, value: c_longlong) -> Result {
        let mut state = self.state.lock();
        match property {
            _ if !is_property(property) => return Err(Error::Type("there is no such property")),
            _ if state.made.is_some() => {
                return Err(Error::NotSupported("a property of a plan that is made"));
            }
            // More patience is asked of a compiler that is not there: the plan is the same.
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT if value >= 0 => state.patient_jit = value,
            // One thread makes a plan, whatever the bound.
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS if value >= 1 => {
                state.host_threads = value;
            }
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_BLUESTEIN_ONLY
            | cufftProperty::NVFFT_PLAN_PROPERTY_INT64_DISABLE_FMA
                if value == 0 => {}
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_BLUESTEIN_ONLY if value > 0 => {
                return Err(Error::NotSupported("a plan by Bluestein's algorithm only"));
            }
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_DISABLE_FMA if value > 0 => {
                return Err(Error::NotSupported("a plan without fused multiplications"));
            }
            _ => return Err(Error::Value("inputValueInt")),
        }
        Ok(())
    }

    pub fn property(&self, property: cufftProperty) -> Result<c_longlong> {
        let state = self.state.lock();
        Ok(match property {
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_PATIENT_JIT => state.patient_jit,
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS => state.host_threads.max(1),
            cufftProperty::NVFFT_PLAN_PROPERTY_INT64_BLUESTEIN_ONLY
            | cufftProperty::NVFFT_PLAN_PROPERTY_INT64_DISABLE_FMA => 0,
            _ => return Err(Error::Type("there is no such property")),
        })
    }

    pub fn reset_property(&self, property: cufftProperty) -> Result {
        let default =
            c_longlong::from(property == cufftProperty::NVFFT_PLAN_PROPERTY_INT64_MAX_NUM_HOST_THREADS);
        self.set_property(property, default)
    }
}

fn is_property(property: cufftProperty) -> bool {
    (1..=4).contains(&property.0)
}

/// What an execution on the CPU needs of memory is the plan's own: programs that bring some bring none.
const CPU_WORK_AREA: usize = 0;

/// What was allowed when it was asked for can fail for want of memory alone, in the stream, where nobody could be told.
fn said(result: cufft_cpu::Result<()>) {
    if let Err(error) = result {
        tracing::error!(target: "cudaway::fft", "in the stream: {error}");
    }
}

static PLANS: Numbered<Plan> = Numbered::new();

pub fn add(plan: Plan) -> Result<cufftHandle> {
    PLANS.add(plan).map_err(|_| Error::Internal("all handles have been given out"))
}

pub fn get(plan: cufftHandle) -> Result<Arc<Plan>> {
    Ok(PLANS.get(plan)?)
}

/// What it was asked for is still done.
pub fn remove(plan: cufftHandle) -> Result {
    PLANS.remove(plan)?;
    Ok(())
}
