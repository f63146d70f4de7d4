//! `cublasLtHandle_t`: a number of its own, or a `cublasHandle_t`, which the manual lets stand for one.

use std::sync::Arc;

use kit::Registry;

use crate::handle::Engine;
use crate::hip::lt::LtHandle;
use crate::{Result, cublasLtHandle_t, handle};

/// Who does the work of a handle.
pub enum LtEngine {
    Cpu,
    Hip(LtHandle),
}

impl LtEngine {
    pub fn of(engine: &Engine) -> Result<LtEngine> {
        Ok(match engine {
            Engine::Cpu => LtEngine::Cpu,
            Engine::Hip(_) => LtEngine::Hip(LtHandle::new()?),
        })
    }
}

static HANDLES: Registry<LtEngine> = Registry::new();

/// For the calling thread's device.
pub fn create() -> Result<cublasLtHandle_t> {
    kit::driver::context(None)?;
    Ok(HANDLES.add(LtEngine::of(&Engine::of_current_device()?)?))
}

pub fn destroy(handle: cublasLtHandle_t) -> Result {
    HANDLES.remove(handle)?;
    Ok(())
}

pub fn get(handle: cublasLtHandle_t) -> Result<Arc<LtEngine>> {
    HANDLES.get(handle).or_else(|_| handle::get(handle.cast())?.lt())
}
