//! Libraries and kernels: code without a context. A library loads itself into each context that uses it.

use core::ffi::CStr;
use std::sync::{Arc, Weak};

use cuda_abi::{CUdeviceptr, CUfunction, CUkernel, CUlibrary, CUmodule};
use parking_lot::{Mutex, RwLock};

use super::linked::{KernelInfo, Linked};
use super::module::Module;
use super::{Context, Shared};
use crate::handle::{Handle, Registry, Shown};
use crate::shown::shown;
use crate::{Error, Result};

static LIBRARIES: Registry<Arc<Library>, CUlibrary> = Registry::new(6);
static KERNELS: Registry<Arc<Kernel>, CUkernel, InContexts> = Registry::new(7);

pub struct Library {
    /// Its code, or what whoever needs some of it is told.
    code: Result<Arc<Linked>>,
    handle: Shared<CUlibrary>,
    /// The module in each context, by the context's id.
    modules: Mutex<Vec<InContext>>,
    kernels: Mutex<Vec<(Arc<KernelInfo>, Shared<CUkernel>)>>,
}

/// A context's id and the library's module there.
type InContext = (u64, Shared<CUmodule>, Arc<Module>);

pub struct Kernel {
    handle: Shared<CUkernel>,
    library: Weak<Library>,
    pub library_handle: Shared<CUlibrary>,
    pub info: Arc<KernelInfo>,
    /// The function in each context, by the context's id; entries of contexts that ended are dropped.
    functions: RwLock<Vec<(u64, Shared<CUfunction>)>>,
}

/// The kernel's functions in the first contexts that asked; 0 is no context's id.
#[derive(Clone, Copy)]
struct InContexts {
    contexts: [u64; 4],
    functions: [Shared<CUfunction>; 4],
}

shown!(InContexts in Cells { contexts: [u64; 4], functions: [Shared<CUfunction>; 4] });

impl Shown<Arc<Kernel>> for InContexts {
    fn of(kernel: &Arc<Kernel>) -> InContexts {
        let mut shown = InContexts { contexts: [0; 4], functions: [Shared(core::ptr::null_mut()); 4] };
        for (at, &(context, function)) in kernel.functions.read().iter().take(4).enumerate() {
            (shown.contexts[at], shown.functions[at]) = (context, function);
        }
        shown
    }
}

impl InContexts {
    #[inline]
    fn function(&self, context_id: u64) -> Option<CUfunction> {
        let at = self.contexts.iter().position(|&id| id == context_id)?;
        self.functions.get(at).map(|function| function.0)
    }
}

impl Library {
    pub fn enter(code: Result<Linked>) -> Result<CUlibrary> {
        let code = code.map(Arc::new);
        LIBRARIES
            .insert_with(|handle| {
                Arc::new(Library {
                    code,
                    handle: Shared(handle),
                    modules: Mutex::new(Vec::new()),
                    kernels: Mutex::new(Vec::new()),
                })
            })
            .ok_or(Error::OutOfMemory)
    }

    pub fn code(&self) -> Result<&Arc<Linked>> {
        self.code.as_ref().map_err(|&error| error)
    }

    pub fn from_handle(handle: CUlibrary) -> Result<Arc<Library>> {
        crate::process::driver()?;
        LIBRARIES.get(handle).ok_or(Error::InvalidHandle("library"))
    }

    pub fn unload(handle: CUlibrary) -> Result {
        Library::from_handle(handle)?;
        let library = LIBRARIES.remove(handle).ok_or(Error::InvalidHandle("library"))?;
        for (_, kernel) in library.kernels.lock().drain(..) {
            KERNELS.remove(kernel.0);
        }
        let modules: Vec<_> = library.modules.lock().drain(..).collect();
        for (_, module, _) in modules {
            Module::unload(module.0)?;
        }
        Ok(())
    }

    /// The library's module in `context`, loaded there on the first call.
    pub fn module(&self, context: &'static Context) -> Result<(CUmodule, Arc<Module>)> {
        let id = context.id();
        let known = |modules: &[InContext]| {
            modules.iter().find(|entry| entry.0 == id).map(|entry| (entry.1.0, Arc::clone(&entry.2)))
        };
        if let Some(found) = known(&self.modules.lock()) {
            return Ok(found);
        }
        // Two threads may both load; the second one's module is thrown away.
        let (handle, module) = Module::load(self.code()?, context)?;
        let mut modules = self.modules.lock();
        if let Some(found) = known(&modules) {
            drop(modules);
            Module::unload(handle)?;
            return Ok(found);
        }
        modules.push((id, Shared(handle), Arc::clone(&module)));
        Ok((handle, module))
    }

    /// The handle of a kernel; the same one every time.
    pub fn kernel(self: &Arc<Self>, name: &CStr) -> Result<CUkernel> {
        let info = self.code()?.kernel(name)?;
        self.kernel_of(info)
    }

    pub fn kernel_of(self: &Arc<Self>, info: &Arc<KernelInfo>) -> Result<CUkernel> {
        let mut kernels = self.kernels.lock();
        if let Some((_, handle)) = kernels.iter().find(|(known, _)| Arc::ptr_eq(known, info)) {
            return Ok(handle.0);
        }
        let handle = KERNELS
            .insert_with(|handle| {
                Arc::new(Kernel {
                    handle: Shared(handle),
                    library: Arc::downgrade(self),
                    library_handle: self.handle,
                    info: Arc::clone(info),
                    functions: RwLock::new(Vec::new()),
                })
            })
            .ok_or(Error::OutOfMemory)?;
        kernels.push((Arc::clone(info), Shared(handle)));
        Ok(handle)
    }

    /// Address and size of a variable in the current context.
    pub fn global(&self, name: &CStr) -> Result<(CUdeviceptr, usize)> {
        let (_, module) = self.module(Context::current()?)?;
        module.global(name)
    }
}

impl Kernel {
    pub fn from_handle(handle: CUkernel) -> Result<Arc<Kernel>> {
        crate::process::driver()?;
        KERNELS.get(handle).ok_or(Error::InvalidHandle("kernel"))
    }

    /// The kernel's function in `context`.
    pub fn function(&self, context: &'static Context) -> Result<CUfunction> {
        let id = context.id();
        let known = self.functions.read().iter().find(|entry| entry.0 == id).map(|entry| entry.1.0);
        if let Some(function) = known {
            return Ok(function);
        }
        let library = self.library.upgrade().ok_or(Error::InvalidHandle("kernel"))?;
        let (handle, module) = library.module(context)?;
        let function = module.function(handle, &self.info.name)?;
        self.remember(id, function);
        KERNELS.renew(self.handle.0);
        Ok(function)
    }

    fn remember(&self, context_id: u64, function: CUfunction) {
        let mut functions = self.functions.write();
        if !functions.iter().any(|entry| entry.0 == context_id) {
            functions.push((context_id, Shared(function)));
        }
    }
}

/// If the handle is a kernel's, its function in the current context.
#[inline]
pub fn function_of(handle: CUfunction) -> Result<Option<CUfunction>> {
    let handle = CUkernel::from_bits(handle.bits());
    let Some(known) = KERNELS.peek(handle) else { return Ok(None) };
    let context = Context::current()?;
    match known.function(context.id()) {
        Some(function) => Ok(Some(function)),
        None => Kernel::from_handle(handle)?.function(context).map(Some),
    }
}

/// Drops what libraries remember of a context that ends; its modules are unloaded by `module::unload_all`.
pub fn forget_context(context_id: u64) {
    LIBRARIES.for_each(|library| library.modules.lock().retain(|entry| entry.0 != context_id));
    KERNELS.for_each(|kernel| kernel.functions.write().retain(|entry| entry.0 != context_id));
}
