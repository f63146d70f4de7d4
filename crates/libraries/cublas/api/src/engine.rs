//! Which engine a device's handles get.

use crate::Result;
use crate::handle::Engine;

impl Engine {
    /// `CUDAWAY_BLAS`, or what the calling thread's device is.
    pub fn of_current_device() -> Result<Engine> {
        match kit::engine::of_current_device(&config::get().blas)? {
            kit::engine::Engine::Cpu => {
                use_cblas();
                Ok(Engine::Cpu)
            }
            kit::engine::Engine::Hip => crate::hip::engine(),
        }
    }
}

/// The first of `CUDAWAY_BLAS`'s paths that is a CBLAS multiplies for the CPU. Others are for hipBLAS and the trampolines.
fn use_cblas() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        for choice in &config::get().blas {
            let Some(path) = choice.library() else { continue };
            match cublas_cpu::cblas::open(&path.to_string_lossy()) {
                Ok(found) => {
                    tracing::info!(target: "cudaway::blas", "{} multiplies: {found:?}", path.display());
                    return;
                }
                Err(error) => tracing::info!(target: "cudaway::blas", "{}: {error}", path.display()),
            }
        }
    });
}
