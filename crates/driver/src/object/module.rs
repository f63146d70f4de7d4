//! Modules and functions: PTX that was checked ([`super::linked`]), handed to a provider, and looked up by name.

use core::ffi::{CStr, c_int, c_uint};
use std::collections::HashMap;
use std::ffi::CString;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

use cache::SHORT_BYTES;
use compiler::ir::GlobalId;
use compiler::texture::Opaque;
use cuda_abi::{CUdeviceptr, CUfunction, CUfunction_attribute, CUmodule};
use hip_sys::{hipFunction_t, hipModule_t, textureReference};
use parking_lot::Mutex;

use super::device::Target;
use super::linked::{KernelInfo, Linked};
use super::memory::{self, Allocation};
use super::{Context, Shared, gfx, texture};
use crate::handle::{Registry, Shown};
use crate::image::Failure;
use crate::shown::shown;
use crate::{Error, Result};

static MODULES: Registry<Arc<Module>, CUmodule> = Registry::new(4);
static FUNCTIONS: Registry<Function, CUfunction, Launchable> = Registry::new(5);

/// A program in one context.
pub struct Module {
    pub linked: Arc<Linked>,
    pub context: &'static Context,
    context_id: u64,
    code: Code,
    /// Handles given out, by kernel name.
    functions: Mutex<HashMap<CString, Shared<CUfunction>>>,
    /// Bases of the variables that were entered as memory.
    globals: Mutex<Vec<u64>>,
}

/// Where a module's kernels and variables are.
enum Code {
    /// In a module of the provider's, which has the texts.
    Provider(Shared<hipModule_t>),
    /// In code objects that are made here.
    Gfx(Box<gfx::Code>),
}

/// A kernel of a module, ready to launch.
#[derive(Clone)]
pub struct Function {
    handle: Shared<CUfunction>,
    pub hip: Shared<hipFunction_t>,
    /// On an AMD GPU: what a launch of it needs besides.
    pub gfx: Option<gfx::Kernel>,
    pub context: &'static Context,
    pub module: Shared<CUmodule>,
    pub info: Arc<KernelInfo>,
    pub settings: Arc<Settings>,
}

/// What the program said about a function (`cuFuncSetAttribute`).
pub struct Settings {
    pub clusters: Clusters,
    /// Bytes that a launch may ask for; the program raises it.
    pub dynamic_shared: AtomicU32,
    /// In percent of what a multiprocessor has; -1: as the device likes.
    pub carveout: AtomicI32,
}

impl Settings {
    /// `left`: what a block of the device gets unasked, less the function's static shared memory.
    fn new(left: u32) -> Settings {
        Settings {
            clusters: Clusters::default(),
            dynamic_shared: AtomicU32::new(left),
            carveout: AtomicI32::new(-1),
        }
    }
}

/// What the program said about a function's clusters.
#[derive(Default)]
pub struct Clusters {
    pub allows_non_portable: AtomicBool,
    /// All of them 0, or a required size.
    pub required: [AtomicU32; 3],
}

/// CUDA: clusters of up to eight blocks run on every device that has clusters; sixteen is what the largest take.
pub const PORTABLE_CLUSTER: u32 = 8;
pub const LARGEST_CLUSTER: u32 = 16;

impl Clusters {
    fn required(&self) -> Option<[u32; 3]> {
        let size = self.required.each_ref().map(|it| it.load(Ordering::Relaxed));
        Some(size).filter(|size| *size != [0; 3])
    }
}

impl Function {
    /// The cluster it has to be launched with: compiled into it, or set by the program.
    pub fn cluster(&self) -> Option<[u32; 3]> {
        self.info.required_cluster.or_else(|| self.settings.clusters.required())
    }

    /// Blocks that a cluster of it may have.
    pub fn most_in_cluster(&self) -> u32 {
        let is_free = self.settings.clusters.allows_non_portable.load(Ordering::Relaxed);
        self.info.max_cluster_rank.min(if is_free { LARGEST_CLUSTER } else { PORTABLE_CLUSTER })
    }

    /// Threads that a block of it may have at most; `None`: as many as the device allows.
    pub fn most_threads(&self) -> Option<u32> {
        let own = self.gfx.map(|kernel| kernel.max_threads);
        self.info.max_threads.into_iter().chain(own).min()
    }

    /// On an AMD GPU: the kernel for blocks that its usual code has no room for.
    pub fn for_large_blocks(&self) -> Result<(Shared<hipFunction_t>, gfx::Kernel)> {
        let module = Module::from_handle(self.module.0)?;
        match &module.code {
            Code::Gfx(code) => code.for_large_blocks(&module.linked, &self.info, self.context),
            Code::Provider(_) => Err(Error::InvalidHandle("f")),
        }
    }

    /// Whether it uses CUDA Dynamic Parallelism.
    pub fn launches_grids(&self) -> Result<bool> {
        Ok(Module::from_handle(self.module.0)?.linked.launches_grids(&self.info))
    }

    /// What its module keeps in constant memory; which kernel uses which variable is not told apart.
    pub fn const_bytes(&self) -> usize {
        MODULES.with(self.module.0, |module| module.linked.const_bytes).unwrap_or(0)
    }
}

/// How often settings have changed.
static SETTINGS: AtomicU64 = AtomicU64::new(0);

/// The part of a function that a launch needs.
#[derive(Clone, Copy)]
pub struct Launchable {
    pub hip: Shared<hipFunction_t>,
    /// It runs on an AMD GPU, which takes more than this.
    pub is_gfx: bool,
    pub context: &'static Context,
    pub max_threads: u32,
    pub dynamic_shared: u32,
    /// The cluster it has to be launched with, or zeros.
    own_cluster: [u32; 3],
    pub must_have_cluster: bool,
    pub most_in_cluster: u32,
}

shown!(Launchable in Cells {
    hip: Shared<hipFunction_t>,
    is_gfx: bool,
    context: &'static Context,
    max_threads: u32,
    dynamic_shared: u32,
    own_cluster: [u32; 3],
    must_have_cluster: bool,
    most_in_cluster: u32,
});

impl Shown<Function> for Launchable {
    fn of(function: &Function) -> Launchable {
        Launchable {
            hip: function.hip,
            is_gfx: function.gfx.is_some(),
            context: function.context,
            max_threads: function.info.max_threads.unwrap_or(u32::MAX),
            dynamic_shared: function.settings.dynamic_shared.load(Ordering::Relaxed),
            own_cluster: function.cluster().unwrap_or_default(),
            must_have_cluster: function.info.must_have_cluster,
            most_in_cluster: function.most_in_cluster(),
        }
    }
}

impl Launchable {
    /// The cluster it has to be launched with: compiled into it, or set by the program.
    #[inline]
    pub fn cluster(&self) -> Option<[u32; 3]> {
        Some(self.own_cluster).filter(|size| *size != [0; 3])
    }
}

impl Module {
    /// Loads a checked program into a context.
    pub fn load(linked: &Arc<Linked>, context: &'static Context) -> Result<(CUmodule, Arc<Module>)> {
        let code = match context.device.target {
            Target::Cpu => Code::Provider(load_texts(linked, context)?),
            Target::Amdgcn => Code::Gfx(Box::new(gfx::Code::load(linked, context)?)),
        };
        let module = Arc::new(Module {
            linked: Arc::clone(linked),
            context,
            context_id: context.id(),
            code,
            functions: Mutex::new(HashMap::new()),
            globals: Mutex::new(Vec::new()),
        });
        let handle = MODULES.insert(Arc::clone(&module)).ok_or(Error::OutOfMemory)?;
        if config::get().eager_loading {
            // Those that cannot be had are errors when they are asked for.
            for info in &module.linked.kernels {
                let _ = module.function(handle, &info.name);
            }
        }
        Ok((handle, module))
    }

    pub fn from_handle(handle: CUmodule) -> Result<Arc<Module>> {
        crate::process::driver()?;
        let module = MODULES.get(handle).ok_or(Error::InvalidHandle("hmod"))?;
        module.context.bind()?;
        Ok(module)
    }

    /// `cuModuleUnload`: the module's functions and variables are gone with it.
    pub fn unload(handle: CUmodule) -> Result {
        Module::from_handle(handle)?;
        let module = MODULES.remove(handle).ok_or(Error::InvalidHandle("hmod"))?;
        gfx::queue::forget_kernels_of(handle);
        module.dispose()
    }

    fn dispose(&self) -> Result {
        for function in self.functions.lock().drain() {
            FUNCTIONS.remove(function.1.0);
        }
        texture::forget_module(self);
        for base in self.globals.lock().drain(..) {
            memory::take(base, |range| matches!(range.kind, memory::Kind::Global { .. }));
        }
        match &self.code {
            // SAFETY: the module just left the registry, so this is its only unload.
            Code::Provider(module) => Ok(unsafe { self.context.hip().hipModuleUnload(module.0) }?),
            Code::Gfx(code) => code.dispose(self.context),
        }
    }

    /// The provider's module, for what only that knows.
    fn provider_module(&self) -> Result<hipModule_t> {
        match &self.code {
            Code::Provider(module) => Ok(module.0),
            Code::Gfx(_) => Err(Error::NotFound),
        }
    }

    /// The kernel as the device has it.
    fn device_kernel(&self, info: &KernelInfo) -> Result<(Shared<hipFunction_t>, Option<gfx::Kernel>)> {
        let module = match &self.code {
            Code::Provider(module) => module.0,
            Code::Gfx(code) => {
                let (function, kernel) = code.function(&self.linked, info, self.context)?;
                return Ok((function, Some(kernel)));
            }
        };
        let mut hip: hipFunction_t = core::ptr::null_mut();
        // SAFETY: `hip` is a writable handle, the module is alive, the name is a C string.
        unsafe { self.context.hip().hipModuleGetFunction(&mut hip, module, info.name.as_ptr()) }
            .map_err(|error| self.linked.refused(info, error.into()))?;
        Ok((Shared(hip), None))
    }

    /// The handle of a kernel; the same one every time.
    pub fn function(&self, handle: CUmodule, name: &CStr) -> Result<CUfunction> {
        if let Some(&known) = self.functions.lock().get(name) {
            return Ok(known.0);
        }
        let info = self.linked.kernel(name)?;
        let (hip, gfx) = self.device_kernel(info)?;
        let mut function = Function {
            handle: Shared(core::ptr::null_mut()),
            hip,
            gfx,
            context: self.context,
            module: Shared(handle),
            info: Arc::clone(info),
            settings: Arc::new(Settings::new(0)),
        };
        let fixed =
            function.attribute(CUfunction_attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES.0).unwrap_or(0);
        let left = self.context.device.bounds.shared_per_block.saturating_sub(fixed.unsigned_abs());
        function.settings = Arc::new(Settings::new(left));
        let mut functions = self.functions.lock();
        if let Some(&known) = functions.get(name) {
            return Ok(known.0);
        }
        let handle = FUNCTIONS
            .insert_with(|handle| Function { handle: Shared(handle), ..function })
            .ok_or(Error::OutOfMemory)?;
        functions.insert(info.name.clone(), Shared(handle));
        Ok(handle)
    }

    /// The handle of the kernel of that number in the module's code.
    pub fn kernel_at(&self, handle: CUmodule, number: usize) -> Result<CUfunction> {
        let info = self.linked.kernels.iter().find(|info| info.index == number).ok_or(Error::NotFound)?;
        self.function(handle, &info.name)
    }

    /// On an AMD GPU: whether so many bytes are those of the module's variables.
    pub fn holds(&self, at: u64, bytes: u64) -> bool {
        matches!(&self.code, Code::Gfx(code) if code.holds(at, bytes))
    }

    /// On an AMD GPU: makes the kernels of a short text, and says what the compiler has against those that cannot be had. If
    /// none can that is an error.
    pub fn make_all(&self, handle: CUmodule) -> core::result::Result<String, Failure> {
        let Code::Gfx(code) = &self.code else { return Ok(String::new()) };
        if self.linked.n_bytes() > SHORT_BYTES {
            return Ok(String::new());
        }
        let mut message = self.linked.complaints.clone();
        let mut errors = vec![];
        for info in &self.linked.kernels {
            let Err(error) = self.function(handle, &info.name) else { continue };
            errors.push(error);
            if let Some(why) = code.refusal(&info.name) {
                let line_end = if message.is_empty() { "" } else { "\n" };
                message += &format!("{line_end}{}: error: {why}", info.name.to_string_lossy());
            }
        }
        match errors.first() {
            Some(&error) if errors.len() == self.linked.kernels.len() => Err(Failure { error, message }),
            _ => Ok(message),
        }
    }

    /// The provider's `.texref` of that name.
    pub fn texture_reference(&self, name: &CStr) -> Result<*mut textureReference> {
        let module = self.provider_module()?;
        let mut reference = core::ptr::null_mut();
        // SAFETY: a writable pointer, a live module, a C string.
        unsafe { self.context.hip().hipModuleGetTexRef(&mut reference, module, name.as_ptr()) }?;
        Ok(reference)
    }

    /// On an AMD GPU: where the reference of that name lies.
    pub fn gfx_reference(&self, opaque: Opaque, name: &CStr) -> Result<Option<CUdeviceptr>> {
        let Code::Gfx(code) = &self.code else { return Ok(None) };
        let is_it = |it: &compiler::program::Global| {
            it.opaque == Some(opaque) && it.name.as_bytes() == name.to_bytes()
        };
        let index = self.linked.globals_of_code().iter().position(is_it).ok_or(Error::NotFound)?;
        Ok(Some(code.variable(GlobalId(u32::try_from(index).map_err(|_| Error::NotFound)?))))
    }

    /// Where the `.surfref` of that name lies.
    pub fn surface_reference(&self, name: &CStr) -> Result<CUdeviceptr> {
        if !self.linked.surface_references.iter().any(|it| it.as_bytes() == name.to_bytes()) {
            return Err(Error::NotFound);
        }
        if let Some(at) = self.gfx_reference(Opaque::Surface, name)? {
            return Ok(at);
        }
        let module = self.provider_module()?;
        let mut at = core::ptr::null_mut();
        let mut len_bytes = 0;
        // SAFETY: both are writable, the module is alive, the name is a C string.
        unsafe { self.context.hip().hipModuleGetGlobal(&mut at, &mut len_bytes, module, name.as_ptr()) }?;
        Ok(memory::device_pointer(at))
    }

    /// Address and size of a variable.
    pub fn global(&self, name: &CStr) -> Result<(CUdeviceptr, usize)> {
        let info = self.linked.global(name)?;
        let (base, len_bytes) = match &self.code {
            Code::Provider(module) => self.variable(*module, name)?,
            Code::Gfx(code) => (code.variable(info.id), info.len_bytes),
        };
        let mut globals = self.globals.lock();
        if !globals.contains(&base) {
            globals.push(base);
            let kind = memory::Kind::Global { managed: info.is_managed };
            memory::enter(Allocation::new(base, len_bytes, kind, self.context));
        }
        Ok((base, len_bytes))
    }

    fn variable(&self, module: Shared<hipModule_t>, name: &CStr) -> Result<(CUdeviceptr, usize)> {
        let mut at = core::ptr::null_mut();
        let mut len_bytes = 0;
        // SAFETY: both are writable, the module is alive, the name is a C string.
        unsafe { self.context.hip().hipModuleGetGlobal(&mut at, &mut len_bytes, module.0, name.as_ptr()) }?;
        Ok((memory::device_pointer(at), len_bytes))
    }
}

/// Hands the texts to a provider that translates them itself.
fn load_texts(linked: &Linked, context: &'static Context) -> Result<Shared<hipModule_t>> {
    let image = compiler::image::encode(linked.sources());
    let mut hip: hipModule_t = core::ptr::null_mut();
    // SAFETY: `hip` is a writable handle; `image` is whole and lives through the call.
    unsafe { context.hip().hipModuleLoadData(&mut hip, image.as_ptr().cast()) }?;
    Ok(Shared(hip))
}

impl Function {
    pub fn from_handle(handle: CUfunction) -> Result<Function> {
        crate::process::driver()?;
        // CUDA: a CUkernel may stand where a CUfunction is asked for.
        let handle = super::library::function_of(handle)?.unwrap_or(handle);
        let function = FUNCTIONS.get(handle).ok_or(Error::InvalidHandle("hfunc"))?;
        function.context.bind()?;
        Ok(function)
    }

    /// What a launch needs of the function, with this thread bound to its device.
    #[inline]
    pub fn launchable(handle: CUfunction) -> Result<Launchable> {
        if let Some(launchable) = FUNCTIONS.peek(handle) {
            launchable.context.bind()?;
            return Ok(launchable);
        }
        crate::process::driver()?;
        let handle = super::library::function_of(handle)?.ok_or(Error::InvalidHandle("f"))?;
        let launchable = FUNCTIONS.peek(handle).ok_or(Error::InvalidHandle("f"))?;
        launchable.context.bind()?;
        Ok(launchable)
    }

    /// Has launches see the settings as they are now.
    pub fn settings_changed(&self) {
        SETTINGS.fetch_add(1, Ordering::Release);
        FUNCTIONS.renew(self.handle.0);
    }

    /// Another number after each change of any function's settings.
    pub fn settings_version() -> u64 {
        SETTINGS.load(Ordering::Acquire)
    }

    pub fn attribute(&self, attribute: c_uint) -> Result<c_int> {
        if let Some(value) = self.gfx.and_then(|kernel| kernel.attribute(CUfunction_attribute(attribute))) {
            return Ok(value);
        }
        let mut value = 0;
        let attribute = c_int::try_from(attribute).map_err(|_| Error::InvalidValue("attrib"))?;
        // SAFETY: `value` is a writable int; the function is alive.
        unsafe { self.context.hip().hipFuncGetAttribute(&mut value, attribute, self.hip.0) }?;
        Ok(value)
    }
}

/// Unloads every module of a context that ends.
pub fn unload_all(context_id: u64) {
    for module in MODULES.remove_where(|module| module.context_id == context_id) {
        // The context ends whatever HIP says.
        let _ = module.dispose();
    }
}
