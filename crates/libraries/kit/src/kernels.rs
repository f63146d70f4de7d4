//! Kernels of a library's own: a module in the context that it was loaded in, and launches of what it has.

use core::ffi::{CStr, c_uint, c_void};
use core::ptr;

use cuda_abi::{CUfunction, CUmodule, CUstream, CUstreamCaptureMode};
use parking_lot::Mutex;

use crate::Result;
use crate::driver::{self, Number, check, driver};

pub struct Module {
    context: Number<cuda_abi::CUcontext>,
    module: CUmodule,
    /// The kernels that were asked for.
    functions: Mutex<Vec<(&'static CStr, CUfunction)>>,
}

// SAFETY: the driver's numbers, good on every thread.
unsafe impl Send for Module {}
// SAFETY: as above.
unsafe impl Sync for Module {}

impl Module {
    /// Loads PTX, which has C's end behind it, in the calling thread's context, also while a stream is captured.
    pub fn load(ptx: &'static str) -> Result<Module> {
        debug_assert!(ptx.ends_with('\0'));
        let context = Number(driver::context(None)?);
        let (_relaxed, mut module) = (Relaxed::new()?, CUmodule::default());
        // SAFETY: a text with its end; the module's place outlives the call.
        let code = unsafe { (driver()?.cuModuleLoadData)(&mut module, ptx.as_ptr().cast()) };
        check("cuModuleLoadData", code)?;
        Ok(Module { context, module, functions: Mutex::default() })
    }

    fn function(&self, name: &'static CStr) -> Result<CUfunction> {
        let mut functions = self.functions.lock();
        if let Some((_, function)) = functions.iter().find(|(known, _)| *known == name) {
            return Ok(*function);
        }
        let (_relaxed, mut function) = (Relaxed::new()?, CUfunction::default());
        // SAFETY: a live module; the function's place outlives the call.
        let code = unsafe { (driver()?.cuModuleGetFunction)(&mut function, self.module, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        functions.push((name, function));
        Ok(function)
    }

    /// Enqueues a launch of so many blocks of so many threads in a row.
    ///
    /// # Safety
    /// The arguments are those of the kernel, and what they lead to is there until the stream has done the work.
    pub unsafe fn launch(
        &self,
        name: &'static CStr,
        [x, y, z]: [c_uint; 3],
        threads: c_uint,
        stream: CUstream,
        arguments: &mut [*mut c_void],
    ) -> Result {
        let function = self.function(name)?;
        // SAFETY: the caller's promise; the list outlives the call.
        let code = unsafe {
            (driver()?.cuLaunchKernel)(
                function,
                x,
                y,
                z,
                threads,
                1,
                1,
                0,
                stream,
                arguments.as_mut_ptr(),
                ptr::null_mut(),
            )
        };
        check("cuLaunchKernel", code)
    }
}

/// Waits for the context's work.
impl Drop for Module {
    fn drop(&mut self) {
        // A context that is gone has taken its modules with it. Launches that are still to run need theirs.
        let unloaded = driver::inside(self.context, || {
            let (_relaxed, driver) = (Relaxed::new()?, driver()?);
            // SAFETY: the driver looks at the context itself; the module was loaded by `load` and is unloaded once.
            let (waited, code) = unsafe {
                ((driver.cuCtxSynchronize_v2)(self.context.0), (driver.cuModuleUnload)(self.module))
            };
            check("cuCtxSynchronize", waited).and(check("cuModuleUnload", code))
        });
        if let Err(error) = unloaded {
            tracing::debug!(target: "cudaway::library", "{error}");
        }
    }
}

/// While it is there, this thread may allocate and wait although a stream is captured: none of that goes into a graph.
pub struct Relaxed(CUstreamCaptureMode);

impl Relaxed {
    pub fn new() -> Result<Relaxed> {
        let mut mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        // SAFETY: `mode` outlives the call, which exchanges it.
        let code = unsafe { (driver()?.cuThreadExchangeStreamCaptureMode)(&mut mode) };
        check("cuThreadExchangeStreamCaptureMode", code)?;
        Ok(Relaxed(mode))
    }
}

impl Drop for Relaxed {
    fn drop(&mut self) {
        if let Ok(driver) = driver() {
            // SAFETY: as above.
            unsafe { (driver.cuThreadExchangeStreamCaptureMode)(&mut self.0) };
        }
    }
}
