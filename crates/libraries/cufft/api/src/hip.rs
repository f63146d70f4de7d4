//! hipFFT, which computes on AMD GPUs: its statuses, types and directions have cuFFT's numbers, its handles are pointers.

use core::ffi::{c_int, c_longlong, c_uint, c_void};
use core::ptr;
use std::ffi::OsStr;
use std::sync::OnceLock;

use cufft_cpu::{Description, Direction, Embedding, Kind, Precision};
use kit::hip::{Object, Wanted};

use crate::types::*;
use crate::{Error, Result};

type Raw = *mut c_void;

type Long = c_longlong;

kit::hip_functions! {
    hipfftCreate(*mut Raw);
    hipfftDestroy(Raw);
    hipfftSetStream(Raw, *mut c_void);
    hipfftSetAutoAllocation(Raw, c_int);
    hipfftSetWorkArea(Raw, *mut c_void);
    hipfftMakePlanMany64(
        Raw, c_int, *const Long, *const Long, Long, Long, *const Long, Long, Long, c_uint, Long, *mut usize
    );
    hipfftGetSizeMany64(
        Raw, c_int, *const Long, *const Long, Long, Long, *const Long, Long, Long, c_uint, Long, *mut usize
    );
    hipfftXtMakePlanMany(
        Raw, c_int, *const Long, *const Long, Long, Long, c_uint, *const Long, Long, Long, c_uint, Long, *mut usize, c_uint
    );
    hipfftXtGetSizeMany(
        Raw, c_int, *const Long, *const Long, Long, Long, c_uint, *const Long, Long, Long, c_uint, Long, *mut usize, c_uint
    );
    hipfftExecC2C(Raw, *const c_void, *mut c_void, c_int);
    hipfftExecR2C(Raw, *const c_void, *mut c_void);
    hipfftExecC2R(Raw, *const c_void, *mut c_void);
    hipfftExecZ2Z(Raw, *const c_void, *mut c_void, c_int);
    hipfftExecD2Z(Raw, *const c_void, *mut c_void);
    hipfftExecZ2D(Raw, *const c_void, *mut c_void);
    hipfftXtExec(Raw, *const c_void, *mut c_void, c_int);
}

/// One of the functions above, with arguments that are hipFFT's: handles are alive, and places for answers outlive the call.
macro_rules! call {
    ($functions:expr, $name:ident($($argument:expr),* $(,)?)) => {
        kit::hip_call!($functions, $name($($argument),*), lacks: [])
    };
}

const HIPFFT: Wanted =
    Wanted { names: &["libhipfft.so.0", "libhipfft.so"], stands_for: "cuFFT", variable: "CUDAWAY_FFT" };

impl Functions {
    fn get() -> Result<&'static Functions> {
        static FUNCTIONS: OnceLock<Option<Functions>> = OnceLock::new();
        let found = FUNCTIONS.get_or_init(|| HIPFFT.first(&config::get().fft, Functions::open));
        found.as_ref().ok_or(Error::NotSupported("libhipfft.so is not found, which works on AMD GPUs"))
    }

    /// The library stays in the process.
    fn open(path: &OsStr) -> core::result::Result<Functions, String> {
        let library = Object::<0>::open(path)?;
        let functions = Functions::of(&library);
        if functions.hipfftCreate.is_none() {
            return Err(format!("{} has no hipfftCreate", path.display()));
        }
        core::mem::forget(library);
        Ok(functions)
    }
}

/// hipFFT's plan behind one of cuFFT's.
pub struct Handle {
    functions: &'static Functions,
    raw: Raw,
}

// SAFETY: hipFFT's handles may be used by any thread.
unsafe impl Send for Handle {}
// SAFETY: as above. As with cuFFT, threads that execute one plan at one time do not know on which of their streams.
unsafe impl Sync for Handle {}

impl Handle {
    /// For the calling thread's device.
    pub fn new() -> Result<Handle> {
        let functions = Functions::get()?;
        kit::hip::stream(cudaStream_t::default(), false)?;
        Handle::of(functions)
    }

    fn of(functions: &'static Functions) -> Result<Handle> {
        let mut raw = ptr::null_mut();
        call!(functions, hipfftCreate(&mut raw))?;
        Ok(Handle { functions, raw })
    }

    /// Makes the plan, and says how large its work area is.
    pub fn make(&self, description: &Description) -> Result<usize> {
        let mut size = 0;
        let Parts { rank, n, input, output, batch } = Parts::of(description);
        let (from, to) = (input.embed, output.embed);
        match types(description) {
            Types::One(ty) => call!(
                self.functions,
                hipfftMakePlanMany64(
                    self.raw,
                    rank,
                    n,
                    from,
                    input.stride,
                    input.distance,
                    to,
                    output.stride,
                    output.distance,
                    ty,
                    batch,
                    &mut size,
                )
            )?,
            Types::Three([input_type, output_type, execution]) => call!(
                self.functions,
                hipfftXtMakePlanMany(
                    self.raw,
                    rank,
                    n,
                    from,
                    input.stride,
                    input.distance,
                    input_type,
                    to,
                    output.stride,
                    output.distance,
                    output_type,
                    batch,
                    &mut size,
                    execution,
                )
            )?,
        }
        Ok(size)
    }

    /// How large the work area of such a plan would be.
    pub fn size(&self, description: &Description) -> Result<usize> {
        let mut size = 0;
        let Parts { rank, n, input, output, batch } = Parts::of(description);
        let (from, to) = (input.embed, output.embed);
        match types(description) {
            Types::One(ty) => call!(
                self.functions,
                hipfftGetSizeMany64(
                    self.raw,
                    rank,
                    n,
                    from,
                    input.stride,
                    input.distance,
                    to,
                    output.stride,
                    output.distance,
                    ty,
                    batch,
                    &mut size,
                )
            )?,
            Types::Three([input_type, output_type, execution]) => call!(
                self.functions,
                hipfftXtGetSizeMany(
                    self.raw,
                    rank,
                    n,
                    from,
                    input.stride,
                    input.distance,
                    input_type,
                    to,
                    output.stride,
                    output.distance,
                    output_type,
                    batch,
                    &mut size,
                    execution,
                )
            )?,
        }
        Ok(size)
    }

    pub fn set_work_area(&self, at: *mut c_void) -> Result {
        call!(self.functions, hipfftSetWorkArea(self.raw, at))
    }

    pub fn set_auto_allocation(&self, on: bool) -> Result {
        call!(self.functions, hipfftSetAutoAllocation(self.raw, on.into()))
    }

    /// `stream` is HIP's.
    pub fn execute(
        &self,
        stream: *mut c_void,
        of: (Kind, Precision),
        input: *const c_void,
        output: *mut c_void,
        direction: Direction,
    ) -> Result {
        let sign = match direction {
            Direction::Forward => CUFFT_FORWARD,
            Direction::Inverse => CUFFT_INVERSE,
        };
        let (functions, raw) = (self.functions, self.raw);
        call!(functions, hipfftSetStream(raw, stream))?;
        match of {
            (Kind::C2C, Precision::Single) => call!(functions, hipfftExecC2C(raw, input, output, sign)),
            (Kind::R2C, Precision::Single) => call!(functions, hipfftExecR2C(raw, input, output)),
            (Kind::C2R, Precision::Single) => call!(functions, hipfftExecC2R(raw, input, output)),
            (Kind::C2C, Precision::Double) => call!(functions, hipfftExecZ2Z(raw, input, output, sign)),
            (Kind::R2C, Precision::Double) => call!(functions, hipfftExecD2Z(raw, input, output)),
            (Kind::C2R, Precision::Double) => call!(functions, hipfftExecZ2D(raw, input, output)),
            _ => call!(functions, hipfftXtExec(raw, input, output, sign)),
        }
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        if let Err(error) = call!(self.functions, hipfftDestroy(self.raw)) {
            tracing::info!(target: "cudaway::fft", "hipfftDestroy: {error}");
        }
    }
}

/// One side as C has it.
struct Side {
    embed: *const Long,
    stride: Long,
    distance: Long,
}

struct Parts {
    rank: c_int,
    n: *const Long,
    input: Side,
    output: Side,
    batch: Long,
}

impl Parts {
    /// Its addresses are the description's.
    fn of(description: &Description) -> Parts {
        let side = |side: &Option<Embedding>| match side {
            Some(side) => Side { embed: side.embed.as_ptr(), stride: side.stride, distance: side.distance },
            None => Side { embed: ptr::null(), stride: 1, distance: 0 },
        };
        Parts {
            rank: description.n.len() as c_int,
            n: description.n.as_ptr(),
            input: side(&description.input),
            output: side(&description.output),
            batch: description.batch,
        }
    }
}

/// What a plan is of: one of cuFFT's old types, or input, output and execution apart.
enum Types {
    One(c_uint),
    Three([c_uint; 3]),
}

fn types(description: &Description) -> Types {
    let one = match (description.kind, description.precision) {
        (Kind::C2C, Precision::Single) => cufftType::CUFFT_C2C,
        (Kind::R2C, Precision::Single) => cufftType::CUFFT_R2C,
        (Kind::C2R, Precision::Single) => cufftType::CUFFT_C2R,
        (Kind::C2C, Precision::Double) => cufftType::CUFFT_Z2Z,
        (Kind::R2C, Precision::Double) => cufftType::CUFFT_D2Z,
        (Kind::C2R, Precision::Double) => cufftType::CUFFT_Z2D,
        (kind, precision) => {
            let (real, complex) = match precision {
                Precision::Half => (cudaDataType::CUDA_R_16F.0, cudaDataType::CUDA_C_16F.0),
                _ => (cudaDataType::CUDA_R_16BF.0, cudaDataType::CUDA_C_16BF.0),
            };
            return Types::Three(match kind {
                Kind::C2C => [complex; 3],
                Kind::R2C => [real, complex, complex],
                Kind::C2R => [complex, real, complex],
            });
        }
    };
    Types::One(one.0)
}

#[cfg(test)]
#[path = "hip/tests.rs"]
mod tests;
