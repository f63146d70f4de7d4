//! Which engine a device's handles get.

use config::BlasChoice;
use cuda_abi::CUstream;

use crate::handle::Engine;
use crate::hip::call::hip_stream;
use crate::{Error, Result};

impl Engine {
    /// `CUDAWAY_BLAS`, or what the calling thread's device is: memory of the CPU device is the CPU's, and of no other.
    pub fn of_current_device() -> Result<Engine> {
        crate::driver::context(None)?;
        // NULL is the default stream of the current device.
        let is_cpu = hip_stream(CUstream::default(), false)?.is_cpu != 0;
        // A path adds a library to the choice and leaves out nothing.
        let engines: Vec<_> =
            config::get().blas.iter().filter(|choice| !matches!(choice, BlasChoice::Path(_))).collect();
        let wants = |engine: BlasChoice| {
            engines.is_empty() || engines.contains(&&engine) || engines.contains(&&BlasChoice::Auto)
        };
        match is_cpu {
            true if wants(BlasChoice::Cpu) => {
                use_cblas();
                Ok(Engine::Cpu)
            }
            true => Err(Error::NoDevice("CUDAWAY_BLAS leaves out the CPU, which this device is")),
            false if wants(BlasChoice::Hip) => crate::hip::engine(),
            false => Err(Error::NoDevice("CUDAWAY_BLAS leaves out hipBLAS, and this device is a GPU")),
        }
    }
}

/// The first of `CUDAWAY_BLAS`'s paths that is a CBLAS multiplies for the CPU. Others are for hipBLAS and the trampolines.
fn use_cblas() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for choice in &config::get().blas {
            let BlasChoice::Path(path) = choice else { continue };
            match blas_cpu::cblas::open(&path.to_string_lossy()) {
                Ok(found) => {
                    tracing::info!(target: "cudaway::blas", "{} multiplies: {found:?}", path.display());
                    return;
                }
                Err(error) => tracing::info!(target: "cudaway::blas", "{}: {error}", path.display()),
            }
        }
    });
}
