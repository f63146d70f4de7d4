//! What programs register before `main` and what becomes of it: fat binaries, kernels, variables.
//! The rule: registering only records. A fat binary is loaded by the first call that needs something of it, once per process;
//! the driver gives each context its own copy.

use core::ffi::{CStr, c_char, c_int, c_void};
use std::collections::HashMap;
use std::ffi::CString;
use std::hash::{BuildHasherDefault, Hasher};
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock};

use cuda_abi::runtime::cudaKernel_t;
use cuda_abi::{CUdeviceptr, CUkernel, CUlibrary, CUmodule, CUmoduleLoadingMode, CUresult};
use once_cell::sync::OnceCell;
use parking_lot::{Mutex, RwLock};

use crate::{Error, Result, device};

/// By an address of the program, which nobody chooses to collide.
type ByAddress<T> = HashMap<usize, T, BuildHasherDefault<AddressHasher>>;

#[derive(Default)]
struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_usize(usize::from(byte));
        }
    }

    fn write_usize(&mut self, address: usize) {
        // The golden ratio's odd multiplier, its high bits folded down: the table takes its slot from the low ones.
        let mixed = (self.0 ^ address as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        self.0 = mixed ^ (mixed >> 32);
    }
}

#[derive(Default)]
struct Registry {
    binaries: ByAddress<Arc<Binary>>,
    /// By the host function's address.
    functions: ByAddress<Arc<Function>>,
    /// By the handle that __cudaGetKernel gave; kept for the process's life.
    handles: ByAddress<Arc<Function>>,
    /// By the host variable's address.
    variables: ByAddress<Arc<Variable>>,
    /// By the host variable's address.
    references: ByAddress<Arc<Reference>>,
}

static REGISTRY: LazyLock<RwLock<Registry>> = LazyLock::new(Default::default);
/// How often something came up that may have to be loaded before it is used, and how much of that is done: every managed
/// variable's pointer is stored and, with eager loading, every binary loaded.
static WANTED_AHEAD: AtomicUsize = AtomicUsize::new(0);
static LOADED_AHEAD: AtomicUsize = AtomicUsize::new(0);

/// One fat binary. Its address is the handle that the program holds, and `*handle` is the wrapper.
#[repr(C)]
pub struct Binary {
    wrapper: *const c_void,
    library: OnceCell<Library>,
    managed: Mutex<Vec<Managed>>,
}

// SAFETY: the wrapper is constant data of the program; everything else has its own lock.
unsafe impl Send for Binary {}
// SAFETY: as above.
unsafe impl Sync for Binary {}

#[derive(Clone, Copy)]
struct Library(CUlibrary);
// SAFETY: a library handle may be used from any thread.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

/// A kernel: where its code is, and the driver's handle once somebody asked.
pub struct Function {
    binary: Arc<Binary>,
    name: CString,
    kernel: OnceCell<Kernel>,
    /// The log has its name: there is no code of it that we could run.
    is_told: AtomicBool,
}

#[derive(Clone, Copy)]
struct Kernel(CUkernel);
// SAFETY: a kernel handle may be used from any thread.
unsafe impl Send for Kernel {}
// SAFETY: as above.
unsafe impl Sync for Kernel {}

/// A `__device__`, `__constant__` or `__managed__` variable.
pub struct Variable {
    binary: Arc<Binary>,
    name: CString,
    is_managed: bool,
}

/// A texture or surface reference (CUDA 11).
pub struct Reference {
    binary: Arc<Binary>,
    pub name: CString,
    kind: Kind,
    /// For a bound texture: how far its first element lies behind the address that the device took.
    bound: Mutex<Option<usize>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whether integers are read as floats between 0 and 1, or -1 and 1.
    Texture {
        normalizes: bool,
    },
    Surface,
}

#[derive(Clone)]
struct Managed {
    variable: Arc<Variable>,
    /// The program's pointer, into which the variable's address goes.
    pointer: *mut *mut c_void,
}

/// `__cudaRegisterFatBinary`
pub fn add_binary(wrapper: *const c_void) -> *mut *mut c_void {
    let binary = Arc::new(Binary { wrapper, library: OnceCell::new(), managed: Mutex::new(Vec::new()) });
    let handle = Arc::as_ptr(&binary);
    REGISTRY.write().binaries.insert(handle.addr(), binary);
    // Whether loading is eager is asked for when there is a driver.
    load_again();
    handle.cast_mut().cast()
}

/// `__cudaUnregisterFatBinary`: its kernels and variables are unknown from now on. Nothing happens for an unknown handle.
pub fn remove_binary(handle: *mut *mut c_void) {
    let mut registry = REGISTRY.write();
    let Some(binary) = registry.binaries.remove(&handle.addr()) else { return };
    registry.functions.retain(|_, function| !Arc::ptr_eq(&function.binary, &binary));
    registry.variables.retain(|_, variable| !Arc::ptr_eq(&variable.binary, &binary));
    registry.references.retain(|_, reference| !Arc::ptr_eq(&reference.binary, &binary));
    drop(registry);
    binary.managed.lock().clear();
    if let (Some(library), Ok(driver)) = (binary.library.get(), crate::driver::get())
        && let Err(error) = driver.cuLibraryUnload(library.0)
    {
        tracing::debug!(target: "cudaway::runtime", "unloading a fat binary: {error}");
    }
}

fn binary(handle: *mut *mut c_void) -> Option<Arc<Binary>> {
    REGISTRY.read().binaries.get(&handle.addr()).cloned()
}

/// `__cudaRegisterFunction`
///
/// # Safety
/// `name` is a C string.
pub unsafe fn add_function(handle: *mut *mut c_void, host: *const c_char, name: *const c_char) {
    let Some(binary) = binary(handle) else { return };
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let function =
        Arc::new(Function { binary, name, kernel: OnceCell::new(), is_told: AtomicBool::new(false) });
    let mut registry = REGISTRY.write();
    registry.handles.insert(Arc::as_ptr(&function).addr(), Arc::clone(&function));
    registry.functions.insert(host.addr(), function);
}

/// `__cudaRegisterVar`
///
/// # Safety
/// `name` is a C string.
pub unsafe fn add_variable(handle: *mut *mut c_void, host: *const c_char, name: *const c_char) {
    let Some(binary) = binary(handle) else { return };
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let variable = Arc::new(Variable { binary, name, is_managed: false });
    REGISTRY.write().variables.insert(host.addr(), variable);
}

/// `__cudaRegisterManagedVar`
///
/// # Safety
/// `name` is a C string; `pointer` stays writable until the binary is unregistered.
pub unsafe fn add_managed_variable(handle: *mut *mut c_void, pointer: *mut *mut c_void, name: *const c_char) {
    let Some(binary) = binary(handle) else { return };
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let variable = Arc::new(Variable { binary: Arc::clone(&binary), name, is_managed: true });
    REGISTRY.write().variables.insert(pointer.addr(), Arc::clone(&variable));
    binary.managed.lock().push(Managed { variable, pointer });
    load_again();
}

/// `__cudaRegisterTexture`, `__cudaRegisterSurface`
///
/// # Safety
/// `name` is a C string.
pub unsafe fn add_reference(handle: *mut *mut c_void, host: *const c_void, name: *const c_char, kind: Kind) {
    let Some(binary) = binary(handle) else { return };
    // SAFETY: the caller's promise.
    let name = unsafe { CStr::from_ptr(name) }.to_owned();
    let reference = Arc::new(Reference { binary, name, kind, bound: Mutex::new(None) });
    REGISTRY.write().references.insert(host.addr(), reference);
}

/// The texture reference at an address of the program's.
pub fn texture(host: *const c_void) -> Option<Arc<Reference>> {
    REGISTRY.read().references.get(&host.addr()).filter(|it| it.kind != Kind::Surface).cloned()
}

/// The surface reference at an address of the program's.
pub fn surface(host: *const c_void) -> Option<Arc<Reference>> {
    REGISTRY.read().references.get(&host.addr()).filter(|it| it.kind == Kind::Surface).cloned()
}

impl Reference {
    /// Its module in the current context.
    pub fn module(&self) -> Result<CUmodule> {
        let mut module: CUmodule = ptr::null_mut();
        crate::driver::get()?.cuLibraryGetModule(&mut module, self.binary.library()?)?;
        Ok(module)
    }

    pub fn normalizes(&self) -> bool {
        self.kind == Kind::Texture { normalizes: true }
    }

    pub fn bind(&self, offset: Option<usize>) {
        *self.bound.lock() = offset;
    }

    pub fn offset(&self) -> Option<usize> {
        *self.bound.lock()
    }
}

pub fn is_loaded_ahead() -> bool {
    LOADED_AHEAD.load(Ordering::Acquire) == WANTED_AHEAD.load(Ordering::Acquire)
}

/// There is a binary, a managed variable or a context that [`load_ahead`] has not seen.
pub fn load_again() {
    WANTED_AHEAD.fetch_add(1, Ordering::AcqRel);
}

/// Loads what is not loaded at its first use: binaries that have managed variables, whose addresses are stored in the
/// program's pointers so that host code can use them; with eager loading every binary. A context is current.
pub fn load_ahead() -> Result {
    // Held while loading, so that a second thread waits for the addresses. No code of the program runs meanwhile.
    static LOADING: Mutex<()> = Mutex::new(());
    if is_loaded_ahead() {
        return Ok(());
    }
    let _loading = LOADING.lock();
    if is_loaded_ahead() {
        return Ok(());
    }
    // What comes up from here on is looked at the next time.
    let wanted = WANTED_AHEAD.load(Ordering::Acquire);
    load_all_ahead()?;
    LOADED_AHEAD.store(wanted, Ordering::Release);
    Ok(())
}

fn load_all_ahead() -> Result {
    let driver = crate::driver::get()?;
    let mut mode = CUmoduleLoadingMode::CU_MODULE_LAZY_LOADING;
    // A driver without the call has no eager loading either.
    let is_eager = driver.cuModuleGetLoadingMode(&mut mode).is_ok()
        && mode == CUmoduleLoadingMode::CU_MODULE_EAGER_LOADING;
    let binaries: Vec<_> = REGISTRY.read().binaries.values().cloned().collect();
    for binary in binaries {
        if is_eager && let Ok(library) = binary.library() {
            let mut module: CUmodule = ptr::null_mut();
            // What cannot be loaded is an error when it is used; the driver's log says why.
            let _ = driver.cuLibraryGetModule(&mut module, library);
        }
        let managed = binary.managed.lock().clone();
        for Managed { variable, pointer } in managed {
            let (address, _) = variable.locate().inspect_err(|error| {
                tracing::warn!(target: "cudaway::runtime", "managed variable {:?}: {error}", variable.name);
            })?;
            let address = ptr::with_exposed_provenance_mut::<c_void>(usize::try_from(address).unwrap_or(0));
            // SAFETY: the program registered this pointer to be written.
            unsafe { pointer.write(address) };
            // `&variable` in the program's code is the variable's address itself.
            REGISTRY.write().variables.insert(address.addr(), variable);
        }
    }
    Ok(())
}

/// `__cudaInitModule`: whether the binary is loaded (it is loaded if it can be).
pub fn init_module(handle: *mut *mut c_void) -> bool {
    let Some(binary) = binary(handle) else { return false };
    device::attach().and_then(|_| binary.library()).is_ok()
}

/// The kernel behind a host function's address.
pub fn function(host: *const c_void) -> Option<Arc<Function>> {
    REGISTRY.read().functions.get(&host.addr()).cloned()
}

/// The lasting handle of a registered function, usable in place of the driver's kernel in this runtime's calls.
pub fn handle_of(host: *const c_void) -> Result<cudaKernel_t> {
    let function = function(host).ok_or(Error::InvalidDeviceFunction)?;
    Ok(Arc::as_ptr(&function).cast_mut().cast())
}

/// The driver's kernel for what a program may pass as a function: a host function's address or a kernel handle.
/// A context is current.
pub fn kernel(function: *const c_void) -> Result<CUkernel> {
    if function.is_null() {
        return Err(Error::InvalidDeviceFunction);
    }
    let registry = REGISTRY.read();
    let found = registry.functions.get(&function.addr()).or_else(|| registry.handles.get(&function.addr()));
    // Every launch comes by here.
    if let Some(known) = found.and_then(|function| function.kernel.get()) {
        return Ok(known.0);
    }
    let found = found.cloned();
    drop(registry);
    match found {
        Some(function) => function.kernel(),
        None => crate::api::library::known_kernel(function.cast_mut().cast()).ok_or(Error::NoKernel),
    }
}

/// The host function that a driver's kernel was registered for.
pub fn host_of(kernel: CUkernel) -> Option<*mut c_void> {
    let registry = REGISTRY.read();
    let is_meant = |function: &Function| function.kernel.get().is_some_and(|known| known.0 == kernel);
    let (host, _) = registry.functions.iter().find(|(_, function)| is_meant(function))?;
    Some(ptr::with_exposed_provenance_mut(*host))
}

/// The variable behind a host symbol: its address and size in the current context.
pub fn symbol(host: *const c_void) -> Result<(CUdeviceptr, usize)> {
    let variable = REGISTRY.read().variables.get(&host.addr()).cloned().ok_or(Error::InvalidSymbol)?;
    device::attach()?;
    variable.locate()
}

impl Binary {
    /// The driver's library of this binary, loaded on first use. A context is current.
    fn library(&self) -> Result<CUlibrary> {
        let driver = crate::driver::get()?;
        let library = self.library.get_or_try_init(|| {
            let mut library: CUlibrary = ptr::null_mut();
            driver.cuLibraryLoadData(
                &mut library,
                self.wrapper,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
                ptr::null_mut(),
                ptr::null_mut(),
                0,
            )?;
            Ok::<_, Error>(Library(library))
        })?;
        Ok(library.0)
    }
}

impl Function {
    fn kernel(&self) -> Result<CUkernel> {
        let kernel = self.kernel.get_or_try_init(|| {
            let library = self.binary.library()?;
            let mut kernel: CUkernel = ptr::null_mut();
            crate::driver::get()?.cuLibraryGetKernel(&mut kernel, library, self.name.as_ptr()).map_err(
                |error| match error {
                    Error::Driver(CUresult::CUDA_ERROR_NOT_FOUND) => Error::InvalidDeviceFunction,
                    other => other,
                },
            )?;
            Ok::<_, Error>(Kernel(kernel))
        });
        let kernel = kernel.inspect_err(|error| self.tell(error))?;
        Ok(kernel.0)
    }

    /// The driver says that an image has no PTX; whose kernel it was asked for says which of a program's operators needs it.
    #[cold]
    fn tell(&self, error: &Error) {
        let has_no_code = matches!(error, Error::Driver(CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU));
        if has_no_code && !self.is_told.swap(true, Ordering::Relaxed) {
            let name = demangled(&self.name);
            tracing::error!(target: "cudaway::runtime", "the program has no PTX of its kernel {name}, so that its launch fails");
        }
    }
}

/// A C++ name as the source has it, in a program that has C++'s own library.
fn demangled(name: &CStr) -> String {
    type Demangle = unsafe extern "C" fn(*const c_char, *mut c_char, *mut usize, *mut c_int) -> *mut c_char;
    let mangled = || name.to_string_lossy().into_owned();
    // SAFETY: what is in the process already is found, and nothing is opened; the name has that type in every C++ library. It gives
    // a string of C's allocator, or NULL.
    unsafe {
        let library = libc::dlopen(c"libstdc++.so.6".as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD);
        if library.is_null() {
            return mangled();
        }
        let address = libc::dlsym(library, c"__cxa_demangle".as_ptr());
        let text = if address.is_null() {
            ptr::null_mut()
        } else {
            let demangle = std::mem::transmute::<*mut c_void, Demangle>(address);
            demangle(name.as_ptr(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut())
        };
        libc::dlclose(library);
        if text.is_null() {
            return mangled();
        }
        let plain = CStr::from_ptr(text).to_string_lossy().into_owned();
        libc::free(text.cast());
        plain
    }
}

impl Variable {
    fn locate(&self) -> Result<(CUdeviceptr, usize)> {
        let library = self.binary.library()?;
        let driver = crate::driver::get()?;
        let (mut address, mut len_bytes) = (0, 0);
        let found = if self.is_managed {
            driver.cuLibraryGetManaged(&mut address, &mut len_bytes, library, self.name.as_ptr())
        } else {
            driver.cuLibraryGetGlobal(&mut address, &mut len_bytes, library, self.name.as_ptr())
        };
        found.map_err(|error| match error {
            Error::Driver(CUresult::CUDA_ERROR_NOT_FOUND) => Error::InvalidSymbol,
            other => other,
        })?;
        Ok((address, len_bytes))
    }
}
