//! `cublasHandle_t`: a number that is looked up, never a pointer that is followed.

use std::sync::Arc;

use cuda_abi::{CUcontext, CUstream};
use kit::{Address, Addresses, Registry, driver, stream};
use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use crate::api::emulation::Emulation;
use crate::hip::HipHandle;
use crate::lt::handle::LtEngine;
use crate::stream::Scalar;
use crate::{Error, Result, cublasAtomicsMode_t, cublasHandle_t, cublasMath_t, cublasPointerMode_t};

/// Who does the work of a handle.
pub enum Engine {
    /// `cublas_cpu`, on the CPU device.
    Cpu,
    /// hipBLAS, on an AMD GPU.
    Hip(HipHandle),
}

pub struct Handle {
    pub engine: Engine,
    pub context: CUcontext,
    /// hipBLASLt's side of it, made at its first product.
    lt: OnceCell<Arc<LtEngine>>,
    state: Mutex<State>,
}

// SAFETY: contexts and streams are the driver's numbers, good on every thread.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// What the program has set.
#[derive(Clone, Copy, Debug)]
pub struct State {
    pub stream: CUstream,
    pub pointer_mode: cublasPointerMode_t,
    pub atomics_mode: cublasAtomicsMode_t,
    pub math_mode: cublasMath_t,
    /// The program's workspace: address and bytes. Ours needs none.
    pub workspace: (usize, usize),
    pub sm_count_target: i32,
    pub emulation: Emulation,
}

impl Handle {
    /// For the calling thread's device.
    pub fn new() -> Result<Handle> {
        let context = driver::context(None)?;
        let engine = Engine::of_current_device()?;
        let state = State {
            stream: CUstream::default(),
            pointer_mode: cublasPointerMode_t::CUBLAS_POINTER_MODE_HOST,
            atomics_mode: cublasAtomicsMode_t::CUBLAS_ATOMICS_NOT_ALLOWED,
            math_mode: cublasMath_t::CUBLAS_DEFAULT_MATH,
            workspace: (0, 0),
            sm_count_target: 0,
            emulation: Emulation::default(),
        };
        Ok(Handle { engine, context, lt: OnceCell::new(), state: Mutex::new(state) })
    }

    /// As a `cublasLtHandle_t`, which the manual lets it stand for.
    pub fn lt(&self) -> Result<Arc<LtEngine>> {
        self.lt.get_or_try_init(|| LtEngine::of(&self.engine).map(Arc::new)).cloned()
    }

    pub fn state(&self) -> State {
        *self.state.lock()
    }

    pub fn set(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.state.lock());
    }

    /// The hipBLAS handle behind it, unless it is the CPU's.
    pub fn hip(&self) -> Option<&HipHandle> {
        match &self.engine {
            Engine::Cpu => None,
            Engine::Hip(hip) => Some(hip),
        }
    }

    /// A factor as the pointer mode says: read now from the host, or from device memory when the routine runs.
    ///
    /// # Safety
    /// NULL, or a value where the pointer mode says: on the host now, or in device memory until the routine has run.
    pub unsafe fn scalar<T: Copy>(&self, at: *const T) -> Result<Scalar<T>> {
        // SAFETY: the caller's promise.
        unsafe { self.scalars::<1, T>(at) }.map(|scalar| scalar.map_host(|[value]| value))
    }

    /// As [`Self::scalar`], of `N` values that follow each other.
    ///
    /// # Safety
    /// As [`Self::scalar`].
    pub unsafe fn scalars<const N: usize, T: Copy>(&self, at: *const T) -> Result<Scalar<[T; N], T>> {
        if at.is_null() {
            return Err(Error::InvalidValue("a factor is NULL"));
        }
        Ok(match self.state().pointer_mode {
            cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE => Scalar::Device(Address(at)),
            // SAFETY: cuBLAS's contract in this mode: it points to the host's value.
            _ => Scalar::Host(unsafe { at.cast::<[T; N]>().read_unaligned() }),
        })
    }

    /// Puts work of the CPU's on these addresses in stream order. A graph may run it again and again.
    pub fn enqueue<A: Addresses + 'static>(&self, at: A, work: impl Fn(A) + Send + Sync + 'static) -> Result {
        Ok(stream::enqueue(self.stream()?, at, work)?)
    }

    /// As [`Self::enqueue`], for a routine that writes a result for the caller: with results on the host it has ended when
    /// the call returns.
    pub fn enqueue_result<A: Addresses + 'static>(
        &self,
        at: A,
        work: impl Fn(A) + Send + Sync + 'static,
    ) -> Result {
        let stream = self.stream()?;
        stream::enqueue(stream, at, work)?;
        match self.state().pointer_mode {
            cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE => Ok(()),
            _ => Ok(stream::synchronize(stream)?),
        }
    }

    /// Waits for all work of the handle's context. If that has ended or failed there is nothing to wait for.
    pub fn synchronize(&self) {
        if let Ok(driver) = driver::driver() {
            // SAFETY: the driver looks at the context itself.
            _ = unsafe { (driver.cuCtxSynchronize_v2)(self.context) };
        }
    }

    /// The handle's stream; the calling thread has a context then.
    pub fn stream(&self) -> Result<CUstream> {
        driver::context(Some(self.context))?;
        Ok(self.state().stream)
    }
}

static HANDLES: Registry<Handle> = Registry::new();

pub fn add(handle: Handle) -> cublasHandle_t {
    HANDLES.add(handle)
}

pub fn get(handle: cublasHandle_t) -> Result<Arc<Handle>> {
    Ok(HANDLES.get(handle)?)
}

pub fn remove(handle: cublasHandle_t) -> Result<Arc<Handle>> {
    Ok(HANDLES.remove(handle)?)
}
