//! `curandGenerator_t`: a sequence of `curand_cpu`'s, and who writes its numbers where.
//!
//! The rule: a sequence goes on in stream order. So a setting is looked at when it is made, and takes hold in the stream, in
//! front of the next numbers that are asked for.

use std::sync::Arc;

use config::LibraryChoice;
use cuda_abi::CUcontext;
use curand_cpu::{Kind, Ordering};
use kit::engine::{self, Engine};
use kit::{Addresses, Registry, driver, stream};
use parking_lot::Mutex;

use crate::draw::Draw;
use crate::hip;
use crate::kernels::{Device, Inside};
use crate::types::*;
use crate::{Error, Result};

/// The manual: greater means are out of range.
const MAX_LAMBDA: f64 = 400_000.0;

/// Where numbers are written, and who makes them.
enum Place {
    Host,
    Device(CUcontext, Maker),
}

enum Maker {
    /// `curand_cpu`, in stream order: memory of the CPU device is the host's.
    Cpu,
    Kernels(Box<Mutex<Device>>),
    HipRand(Mutex<hip::Handle>),
}

impl Maker {
    fn new(kind: Kind, engine: Engine) -> Result<Maker> {
        let choices = &config::get().rand;
        Ok(match engine {
            Engine::Hip if choices.contains(&LibraryChoice::Hip) => {
                Maker::HipRand(Mutex::new(hip::Handle::new(kind)?))
            }
            Engine::Cpu if !choices.contains(&LibraryChoice::Kernels) => Maker::Cpu,
            Engine::Cpu | Engine::Hip => Maker::Kernels(Box::default()),
        })
    }
}

/// What a program sets.
#[derive(Clone, Copy, Debug)]
pub enum Setting {
    Seed(u64),
    Offset(u64),
    Ordering(Ordering),
    Dimensions(u32),
    /// `curandGenerateSeeds`: the state is made now.
    Seeds,
}

impl Setting {
    fn apply(self, sequence: &mut curand_cpu::Generator) -> curand_cpu::Result {
        match self {
            Setting::Seed(seed) => sequence.set_seed(seed),
            Setting::Offset(offset) => sequence.set_offset(offset),
            Setting::Ordering(ordering) => sequence.set_ordering(ordering),
            Setting::Dimensions(dimensions) => sequence.set_dimensions(dimensions),
            Setting::Seeds => {
                sequence.generate_seeds();
                Ok(())
            }
        }
    }
}

struct State {
    stream: cudaStream_t,
    dimensions: u32,
    /// Says whether a setting is allowed; it is never asked for numbers.
    judge: curand_cpu::Generator,
    /// What takes hold with the next numbers.
    settings: Vec<Setting>,
}

pub struct Generator {
    pub kind: Kind,
    place: Place,
    state: Mutex<State>,
    /// Where the stream has come to.
    sequence: Arc<Mutex<curand_cpu::Generator>>,
}

// SAFETY: contexts and streams are the driver's numbers, good on every thread.
unsafe impl Send for Generator {}
// SAFETY: as above.
unsafe impl Sync for Generator {}

impl Generator {
    pub fn on_host(kind: Kind) -> Generator {
        Generator::new(kind, Place::Host)
    }

    /// For the calling thread's device.
    pub fn on_device(kind: Kind) -> Result<Generator> {
        let (context, engine) = engine::of_new_object(&config::get().rand)?;
        Ok(Generator::new(kind, Place::Device(context, Maker::new(kind, engine)?)))
    }

    fn new(kind: Kind, place: Place) -> Generator {
        let sequence = curand_cpu::Generator::new(kind);
        let state = State {
            stream: cudaStream_t::default(),
            dimensions: 1,
            judge: sequence.clone(),
            settings: Vec::new(),
        };
        Generator { kind, place, state: Mutex::new(state), sequence: Arc::new(Mutex::new(sequence)) }
    }

    pub fn is_on_host(&self) -> bool {
        matches!(self.place, Place::Host)
    }

    pub fn set_stream(&self, stream: cudaStream_t) {
        self.state.lock().stream = stream;
    }

    pub fn set(&self, setting: Setting) -> Result {
        let setting = match setting {
            // Of a device's MT19937 the default is the best; the host's refuses the word. So do NVIDIA's.
            Setting::Ordering(Ordering::Best) if self.kind == Kind::Mt19937 && !self.is_on_host() => {
                Setting::Ordering(Ordering::Default)
            }
            setting => setting,
        };
        let mut state = self.state.lock();
        // Making a state takes its time, and says nothing.
        if !matches!(setting, Setting::Seeds) {
            setting.apply(&mut state.judge)?;
        }
        if let Setting::Dimensions(dimensions) = setting {
            state.dimensions = dimensions;
        }
        if self.is_on_host() {
            return Ok(setting.apply(&mut self.sequence.lock())?);
        }
        if let Place::Device(context, Maker::HipRand(handle)) = &self.place {
            drop(state);
            driver::context(Some(*context))?;
            return handle.lock().set(setting);
        }
        state.settings.push(setting);
        Ok(())
    }

    /// Writes `n` numbers, in stream order where they are a device's.
    ///
    /// # Safety
    /// `at` is NULL, or has room for `n` numbers, which nobody else uses until they have been written.
    pub unsafe fn write<T: Copy + Default>(
        &self,
        at: *mut T,
        n: usize,
        draw: Draw,
        fill: impl Fn(&mut curand_cpu::Generator, &mut [T]) -> curand_cpu::Result + Send + Sync + 'static,
    ) -> Result
    where
        *mut T: Addresses + 'static,
    {
        let State { stream, dimensions, .. } = *self.state.lock();
        if self.kind.is_quasi() && !n.is_multiple_of(dimensions as usize) {
            return Err(Error::LengthNotMultiple("the dimensions"));
        }
        if n == 0 {
            return Ok(());
        }
        if at.is_null() || !at.is_aligned() {
            return Err(Error::Launch("no place for numbers of this type"));
        }
        match &self.place {
            Place::Host => {
                // SAFETY: the caller's promise: the place has room for `n` numbers, which nobody else uses during the call.
                let numbers = unsafe { core::slice::from_raw_parts_mut(at, n) };
                Ok(fill(&mut self.sequence.lock(), numbers)?)
            }
            Place::Device(context, Maker::Cpu) => {
                driver::context(Some(*context))?;
                let sequence = self.sequence.clone();
                // A graph runs the work again and again, and the settings hold from the first time on.
                let settings = Mutex::new(core::mem::take(&mut self.state.lock().settings));
                let work = move |at: *mut T| {
                    let mut sequence = sequence.lock();
                    apply(core::mem::take(&mut settings.lock()), &mut sequence);
                    // SAFETY: as above, until the stream has come here; device memory of the CPU device is the host's.
                    let numbers = unsafe { core::slice::from_raw_parts_mut(at, n) };
                    said(fill(&mut sequence, numbers));
                };
                Ok(stream::enqueue(stream, at, work)?)
            }
            Place::Device(context, Maker::Kernels(device)) => {
                let _inside = Inside::enter(*context)?;
                let mut device = device.lock();
                let mut sequence = self.sequence.lock();
                apply(core::mem::take(&mut self.state.lock().settings), &mut sequence);
                device.write(stream, &mut sequence, draw, at.addr() as u64, n)
            }
            Place::Device(context, Maker::HipRand(handle)) => {
                driver::context(Some(*context))?;
                let stream = kit::hip::stream(stream, true)?.stream;
                handle.lock().write(stream, draw, at.cast(), n)
            }
        }
    }
}

fn apply(settings: Vec<Setting>, sequence: &mut curand_cpu::Generator) {
    settings.into_iter().for_each(|setting| said(setting.apply(sequence)));
}

/// What was allowed when it was asked for cannot fail in the stream, where nobody could be told.
fn said(result: curand_cpu::Result) {
    if let Err(error) = result {
        tracing::error!(target: "cudaway::rand", "in the stream: {error}");
    }
}

/// Normal numbers come in pairs from the generators that make a pair of each two words.
pub fn check_pairs(kind: Kind, n: usize) -> Result {
    let makes_pairs = matches!(kind, Kind::Xorwow | Kind::Mrg32k3a);
    if makes_pairs && !n.is_multiple_of(2) { Err(Error::LengthNotMultiple("two")) } else { Ok(()) }
}

pub fn check_lambda(lambda: f64) -> Result {
    if lambda > 0.0 && lambda <= MAX_LAMBDA { Ok(()) } else { Err(Error::OutOfRange("lambda")) }
}

pub fn kind(rng_type: curandRngType_t) -> Result<Kind> {
    Ok(match rng_type {
        curandRngType_t::CURAND_RNG_PSEUDO_DEFAULT | curandRngType_t::CURAND_RNG_PSEUDO_XORWOW => {
            Kind::Xorwow
        }
        curandRngType_t::CURAND_RNG_PSEUDO_MRG32K3A => Kind::Mrg32k3a,
        curandRngType_t::CURAND_RNG_PSEUDO_MTGP32 => Kind::Mtgp32,
        curandRngType_t::CURAND_RNG_PSEUDO_MT19937 => Kind::Mt19937,
        curandRngType_t::CURAND_RNG_PSEUDO_PHILOX4_32_10 => Kind::Philox4x32,
        curandRngType_t::CURAND_RNG_QUASI_DEFAULT | curandRngType_t::CURAND_RNG_QUASI_SOBOL32 => {
            Kind::Sobol32
        }
        curandRngType_t::CURAND_RNG_QUASI_SCRAMBLED_SOBOL32 => {
            note_scrambles();
            Kind::ScrambledSobol32
        }
        curandRngType_t::CURAND_RNG_QUASI_SOBOL64 => Kind::Sobol64,
        curandRngType_t::CURAND_RNG_QUASI_SCRAMBLED_SOBOL64 => {
            note_scrambles();
            Kind::ScrambledSobol64
        }
        _ => return Err(Error::Type("there is no such generator")),
    })
}

/// Says once that the numbers of scrambled sequences are not NVIDIA's.
pub fn note_scrambles() {
    if border::is_news("scrambled Sobol", "") {
        tracing::warn!(
            target: "cudaway::rand",
            "the scrambles of Sobol's sequences are CUDAway's own: NVIDIA's are published nowhere (docs/libraries.md)"
        );
    }
}

static GENERATORS: Registry<Generator> = Registry::new();

pub fn add(generator: Generator) -> curandGenerator_t {
    GENERATORS.add(generator)
}

pub fn get(generator: curandGenerator_t) -> Result<Arc<Generator>> {
    Ok(GENERATORS.get(generator)?)
}

/// What it was asked for is still written.
pub fn remove(generator: curandGenerator_t) -> Result {
    GENERATORS.remove(generator)?;
    Ok(())
}
