//! hipRAND, which `CUDAWAY_RAND=hip` has make an AMD GPU's numbers: other ones than cuRAND's, but for Sobol's plain sequences. Its
//! generators' types have numbers of their own; orderings and statuses have cuRAND's. Source: hiprand.h of ROCm.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use core::ptr;
use std::ffi::OsStr;
use std::sync::OnceLock;

use curand_cpu::{Kind, Ordering};
use kit::hip::{Object, Wanted};

use crate::draw::{Draw, Normal};
use crate::generator::Setting;
use crate::types::*;
use crate::{Error, Result};

type Raw = *mut c_void;

kit::hip_functions! {
    hiprandCreateGenerator(*mut Raw, c_uint);
    hiprandDestroyGenerator(Raw);
    hiprandSetStream(Raw, *mut c_void);
    hiprandSetPseudoRandomGeneratorSeed(Raw, c_ulonglong);
    hiprandSetGeneratorOffset(Raw, c_ulonglong);
    hiprandSetGeneratorOrdering(Raw, c_uint);
    hiprandSetQuasiRandomGeneratorDimensions(Raw, c_uint);
    hiprandGenerateSeeds(Raw);
    hiprandGenerate(Raw, *mut c_void, usize);
    hiprandGenerateLongLong(Raw, *mut c_void, usize);
    hiprandGenerateUniform(Raw, *mut c_void, usize);
    hiprandGenerateUniformDouble(Raw, *mut c_void, usize);
    hiprandGenerateNormal(Raw, *mut c_void, usize, f32, f32);
    hiprandGenerateNormalDouble(Raw, *mut c_void, usize, f64, f64);
    hiprandGenerateLogNormal(Raw, *mut c_void, usize, f32, f32);
    hiprandGenerateLogNormalDouble(Raw, *mut c_void, usize, f64, f64);
    hiprandGeneratePoisson(Raw, *mut c_void, usize, f64);
}

/// One of the functions above, with arguments that are hipRAND's: generators are alive, and places for answers outlive the call.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),* $(,)?)) => {
        kit::hip_call!($functions, $name($($argument),*), lacks: [NOT_IMPLEMENTED])
    };
}

/// The one status that cuRAND has no number for.
const NOT_IMPLEMENTED: c_int = 1000;

const HIPRAND: Wanted =
    Wanted { names: &["libhiprand.so.1", "libhiprand.so"], stands_for: "cuRAND", variable: "CUDAWAY_RAND" };

impl Functions {
    fn get() -> Result<&'static Functions> {
        static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
        let found = FUNCTIONS.get_or_init(|| HIPRAND.first(&config::get().rand, Functions::open));
        found
            .as_ref()
            .ok_or(Error::NotSupported("libhiprand.so is not found, which CUDAWAY_RAND=hip asks for"))
    }

    /// The library stays in the process.
    fn open(path: &OsStr) -> core::result::Result<Functions, String> {
        let library = Object::<0>::open(path)?;
        let functions = Functions::of(&library);
        if functions.hiprandCreateGenerator.is_none() {
            return Err(format!("{} has no hiprandCreateGenerator", path.display()));
        }
        core::mem::forget(library);
        Ok(functions)
    }
}

/// hipRAND's generator behind one of cuRAND's.
pub struct Handle {
    functions: &'static Functions,
    raw: Raw,
    is_wide: bool,
}

// SAFETY: hipRAND's generators may be used by any thread, by one at a time.
unsafe impl Send for Handle {}

impl Handle {
    /// For the calling thread's device.
    pub fn new(kind: Kind) -> Result<Handle> {
        let functions = Functions::get()?;
        kit::hip::stream(cudaStream_t::default(), false)?;
        Handle::of(functions, kind)
    }

    fn of(functions: &'static Functions, kind: Kind) -> Result<Handle> {
        let mut raw = ptr::null_mut();
        call!(functions, hiprandCreateGenerator(&mut raw, number(kind)))?;
        Ok(Handle { functions, raw, is_wide: kind.is_wide() })
    }

    pub fn set(&self, setting: Setting) -> Result {
        let (functions, raw) = (self.functions, self.raw);
        match setting {
            Setting::Seed(seed) => call!(functions, hiprandSetPseudoRandomGeneratorSeed(raw, seed)),
            Setting::Offset(offset) => call!(functions, hiprandSetGeneratorOffset(raw, offset)),
            Setting::Dimensions(dimensions) => {
                call!(functions, hiprandSetQuasiRandomGeneratorDimensions(raw, dimensions))
            }
            Setting::Seeds => call!(functions, hiprandGenerateSeeds(raw)),
            // Where there are no others, every generator has this one.
            Setting::Ordering(Ordering::Default | Ordering::Quasi)
                if functions.hiprandSetGeneratorOrdering.is_none() =>
            {
                Ok(())
            }
            Setting::Ordering(ordering) => {
                let number = match ordering {
                    Ordering::Best => curandOrdering_t::CURAND_ORDERING_PSEUDO_BEST,
                    Ordering::Default => curandOrdering_t::CURAND_ORDERING_PSEUDO_DEFAULT,
                    Ordering::Seeded => curandOrdering_t::CURAND_ORDERING_PSEUDO_SEEDED,
                    Ordering::Legacy => curandOrdering_t::CURAND_ORDERING_PSEUDO_LEGACY,
                    Ordering::Dynamic => curandOrdering_t::CURAND_ORDERING_PSEUDO_DYNAMIC,
                    Ordering::Quasi => curandOrdering_t::CURAND_ORDERING_QUASI_DEFAULT,
                };
                call!(functions, hiprandSetGeneratorOrdering(raw, number.0))
            }
        }
    }

    /// `stream` is HIP's.
    pub fn write(&self, stream: *mut c_void, draw: Draw, at: *mut c_void, n: usize) -> Result {
        let (functions, raw) = (self.functions, self.raw);
        call!(functions, hiprandSetStream(raw, stream))?;
        match draw {
            Draw::Bits if self.is_wide => call!(functions, hiprandGenerateLongLong(raw, at, n)),
            Draw::Bits => call!(functions, hiprandGenerate(raw, at, n)),
            Draw::UniformSingle => call!(functions, hiprandGenerateUniform(raw, at, n)),
            Draw::UniformDouble => call!(functions, hiprandGenerateUniformDouble(raw, at, n)),
            Draw::NormalSingle(Normal { mean, deviation, exponential }) => {
                // They were of 32 bits.
                let (mean, deviation) = (mean as f32, deviation as f32);
                match exponential {
                    false => call!(functions, hiprandGenerateNormal(raw, at, n, mean, deviation)),
                    true => call!(functions, hiprandGenerateLogNormal(raw, at, n, mean, deviation)),
                }
            }
            Draw::NormalDouble(Normal { mean, deviation, exponential }) => match exponential {
                false => call!(functions, hiprandGenerateNormalDouble(raw, at, n, mean, deviation)),
                true => call!(functions, hiprandGenerateLogNormalDouble(raw, at, n, mean, deviation)),
            },
            Draw::Poisson { mean } => call!(functions, hiprandGeneratePoisson(raw, at, n, mean)),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = call!(self.functions, hiprandDestroyGenerator(self.raw)) {
            tracing::info!(target: "cudaway::rand", "hiprandDestroyGenerator: {error}");
        }
    }
}

/// `hiprandRngType`.
fn number(kind: Kind) -> c_uint {
    match kind {
        Kind::Xorwow => 401,
        Kind::Mrg32k3a => 402,
        Kind::Mtgp32 => 403,
        Kind::Mt19937 => 404,
        Kind::Philox4x32 => 405,
        Kind::Sobol32 => 501,
        Kind::ScrambledSobol32 => 502,
        Kind::Sobol64 => 503,
        Kind::ScrambledSobol64 => 504,
    }
}

#[cfg(test)]
#[path = "hip/tests.rs"]
mod tests;
