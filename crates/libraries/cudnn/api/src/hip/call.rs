//! The MIOpen handle behind a cuDNN handle, made ready for one call.

use core::ffi::c_void;
use core::ptr;
use std::collections::HashMap;
use std::sync::Arc;

use kit::hip::LastStream;
use parking_lot::Mutex;

use super::convert::{REFUSALS, UNCLEAR};
use super::convolution::{Problem, Searched};
use super::library::{Factor, Library, Raw};
use crate::types::cudaStream_t;
use crate::{Error, Result};

/// A MIOpen handle, what it was last told, and what it has found of convolutions.
pub struct HipHandle {
    pub library: &'static Library,
    raw: Raw,
    stream: LastStream,
    pub searches: Mutex<HashMap<Problem, Arc<Mutex<Searched>>>>,
}

// SAFETY: MIOpen's handles may be used by any thread; the rest is numbers.
unsafe impl Send for HipHandle {}
// SAFETY: as above. As with cuDNN, threads that use one handle at one time do not know on which of their streams.
unsafe impl Sync for HipHandle {}

/// A function of MIOpen's with these arguments: what a release lacks is not supported.
macro_rules! call {
    ($library:expr, $name:ident($($argument:expr),* $(,)?)) => {
        {
            use $crate::Error;
            kit::hip_call!($library.functions, $name($($argument),*), lacks: [])
        }
    };
}
pub(super) use call;

/// 1, which most of MIOpen's calls take alone for alpha.
pub const ONE: Factor = &1.0;
/// 0, which they take for beta.
pub const ZERO: Factor = &0.0;

impl HipHandle {
    /// For HIP's current device.
    pub fn of(library: &'static Library) -> Result<HipHandle> {
        let mut raw = ptr::null_mut();
        call!(library, miopenCreate(&mut raw))?;
        let handle =
            HipHandle { library, raw, stream: LastStream::default(), searches: Mutex::new(HashMap::new()) };
        let (mut major, mut minor, mut patch) = (0, 0, 0);
        if call!(library, miopenGetVersion(&mut major, &mut minor, &mut patch)).is_ok() {
            tracing::debug!(target: "cudaway::dnn", "MIOpen {major}.{minor}.{patch}");
        }
        Ok(handle)
    }

    /// Sets the stream if it is another one than before; a new handle's is HIP's default stream.
    pub fn tell(&self, stream: *mut c_void) -> Result {
        self.stream.tell(stream, |stream| call!(self.library, miopenSetStream(self.raw, stream)))
    }
}

impl Drop for HipHandle {
    fn drop(&mut self) {
        if let Err(error) = call!(self.library, miopenDestroy(self.raw)) {
            tracing::info!(target: "cudaway::dnn", "{error}");
        }
    }
}

/// MIOpen's handle during a call, bound to the stream of cuDNN's.
pub struct HipCall {
    pub handle: Arc<HipHandle>,
    pub stream: cudaStream_t,
}

impl HipCall {
    pub fn library(&self) -> &'static Library {
        self.handle.library
    }

    pub fn raw(&self) -> Raw {
        self.handle.raw
    }
}

/// What MIOpen refuses is our own code's: that does it, or says of the arguments what cuDNN says. `apart`: what is written has not been
/// read, so that the call can be done again whatever MIOpen has begun.
pub fn settle<T>(answer: Result<T>, what: &str, apart: bool) -> Result<Option<T>> {
    match answer {
        Ok(answer) => Ok(Some(answer)),
        Err(error) if is_refusal(error, apart) => {
            tracing::debug!(target: "cudaway::dnn", "{what} is our own code's: {error}");
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

fn is_refusal(error: Error, apart: bool) -> bool {
    match error {
        Error::NotSupported(_) => true,
        Error::Hip { code, .. } => REFUSALS.contains(&code) || (apart && UNCLEAR.contains(&code)),
        _ => false,
    }
}

/// Whether MIOpen has done it.
pub fn done(answer: Result, what: &str, apart: bool) -> Result<bool> {
    Ok(settle(answer, what, apart)?.is_some())
}
