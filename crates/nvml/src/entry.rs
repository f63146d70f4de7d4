//! NVML's border (`crates/border`): nothing but a few names works before `nvmlInit`.

use border::{Library, Sort, Voice};

use crate::types::nvmlReturn_t;
use crate::{Error, Result, session};

/// Calls that the manual lets come before `nvmlInit`.
const BEFORE_INIT: [&str; 6] = [
    "nvmlInit",
    "nvmlInit_v2",
    "nvmlInitWithFlags",
    "nvmlSystemGetNVMLVersion",
    "nvmlSystemGetCudaDriverVersion",
    "nvmlSystemGetCudaDriverVersion_v2",
];

struct Nvml;

impl Library for Nvml {
    type Status = nvmlReturn_t;
    type Error = Error;

    const VOICE: Voice = border::voice!("cudaway::nvml", "nvml");
    const SUCCESS: nvmlReturn_t = nvmlReturn_t::NVML_SUCCESS;
    /// A monitor asks again every second.
    const REPEATS: bool = false;

    fn sort<'a>(&self, error: &'a Error) -> Sort<'a> {
        match error {
            Error::Uninitialized => Sort::Answer,
            Error::NotSupported(what) => Sort::Unsupported { news: what, why: what },
            _ => Sort::Failure,
        }
    }

    fn failed(&self, _name: &'static str, &error: &Error) -> nvmlReturn_t {
        error.code()
    }

    fn broken(&self, _name: &'static str) -> nvmlReturn_t {
        nvmlReturn_t::NVML_ERROR_UNKNOWN
    }
}

/// Runs one call's body and gives its answer in C's terms.
pub fn entry(name: &'static str, mut body: impl FnMut() -> Result) -> nvmlReturn_t {
    guarded(name, &mut body)
}

/// [`entry`], once for all bodies, of which there are hundreds.
fn guarded(name: &'static str, body: &mut dyn FnMut() -> Result) -> nvmlReturn_t {
    border::call(&Nvml, name, || {
        if !BEFORE_INIT.contains(&name) && !session::is_open() {
            return Err(Error::Uninitialized);
        }
        body()
    })
}

/// As [`entry`], for a body that gives the C value itself.
pub fn entry_value<T>(name: &'static str, otherwise: T, body: impl FnOnce() -> T) -> T {
    border::value(&Nvml, name, otherwise, body)
}

/// The answer of a name that has no body.
#[cold]
pub fn missing(name: &'static str) -> nvmlReturn_t {
    entry(name, || {
        Err(Error::NotSupported("there is no such thing on CUDAway's devices, or it has no body yet"))
    })
}
