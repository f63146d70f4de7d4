//! `cublasLtHandle_t`: a number of its own, or a `cublasHandle_t`, which the manual lets stand for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::handle::Engine;
use crate::hip::lt::LtHandle;
use crate::{Error, Result, cublasLtHandle_t, handle};

/// Who does the work of a handle.
pub enum LtEngine {
    Cpu,
    Hip(LtHandle),
}

impl LtEngine {
    fn of(engine: &Engine) -> Result<LtEngine> {
        Ok(match engine {
            Engine::Cpu => LtEngine::Cpu,
            Engine::Hip(_) => LtEngine::Hip(LtHandle::new()?),
        })
    }
}

static HANDLES: RwLock<BTreeMap<usize, Arc<LtEngine>>> = RwLock::new(BTreeMap::new());

/// For the calling thread's device.
pub fn create() -> Result<cublasLtHandle_t> {
    crate::driver::context(None)?;
    let engine = Arc::new(LtEngine::of(&Engine::of_current_device()?)?);
    static NEXT: AtomicUsize = AtomicUsize::new(0xcb17_0000);
    let number = NEXT.fetch_add(16, Ordering::Relaxed);
    HANDLES.write().insert(number, engine);
    Ok(std::ptr::without_provenance_mut(number))
}

pub fn destroy(handle: cublasLtHandle_t) -> Result {
    HANDLES.write().remove(&handle.addr()).map(drop).ok_or(Error::NotInitialized)
}

pub fn get(handle: cublasLtHandle_t) -> Result<Arc<LtEngine>> {
    if let Some(engine) = HANDLES.read().get(&handle.addr()) {
        return Ok(engine.clone());
    }
    // hipBLASLt's side of a cuBLAS handle is made at its first product.
    let engine = Arc::new(LtEngine::of(&handle::get(handle.cast())?.engine)?);
    Ok(HANDLES.write().entry(handle.addr()).or_insert(engine).clone())
}
