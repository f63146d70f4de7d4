//! Contexts: one primary per device, any number of created ones, and each thread's stack of them.
//!
//! HIP differs: it has one context per device. Ours keep what CUDA keeps per context (resources, limits, flags) and
//! share the device. A context's memory is never given back, so a stale one is recognised, not a dangling pointer.

use core::ffi::{c_int, c_uint};
use std::cell::{Cell, RefCell};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use cuda_abi::{CUcontext, CUctx_flags, CUfunc_cache, CUsharedconfig};
use hip_sys::Hip;
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::device::Target;
use super::{Device, array, event, gfx, graph, library, memory, module, stream, texture};
use crate::handle::Registry;
use crate::process::{driver, not_gone};
use crate::{Error, Result};

static CONTEXTS: Registry<&'static Context, CUcontext> = Registry::new(1);

pub struct Context {
    pub device: &'static Device,
    handle: OnceLock<u64>,
    is_primary: bool,
    alive: AtomicBool,
    /// Unique in the process; a primary context gets a new one when it comes back after a reset.
    id: AtomicU64,
    flags: AtomicU32,
    cache_config: AtomicU32,
    shared_config: AtomicU32,
    api_version: c_uint,
    /// How often a created context was attached to, its creation included.
    attached: AtomicU32,
    /// `CUlimit`s that were set, by number; the provider or CUDA's defaults answer for the rest.
    limits: Mutex<Vec<(c_uint, usize)>>,
    /// The error of a kernel that failed; set before `is_faulty`.
    fault: Mutex<Option<Error>>,
    is_faulty: AtomicBool,
}

/// A device's primary context and how often it was retained.
pub struct Primary {
    context: OnceLock<&'static Context>,
    state: Mutex<PrimaryState>,
    /// Signalled when the context has been emptied; no lock is held while it is.
    emptied: Condvar,
    flags: AtomicU32,
}

#[derive(Default)]
struct PrimaryState {
    retained: u32,
    is_emptying: bool,
}

impl Primary {
    #[must_use]
    pub fn new() -> Primary {
        Primary {
            context: OnceLock::new(),
            state: Mutex::default(),
            emptied: Condvar::new(),
            flags: AtomicU32::new(0),
        }
    }

    pub fn flags(&self) -> c_uint {
        self.flags.load(Ordering::Relaxed)
    }

    /// Takes effect at once: scheduling flags are hints here.
    pub fn set_flags(&self, flags: c_uint) {
        self.flags.store(flags, Ordering::Relaxed);
        if let Some(context) = self.context.get() {
            context.flags.store(flags, Ordering::Relaxed);
        }
    }

    pub fn is_active(&self) -> bool {
        self.state.lock().retained > 0
    }

    /// The state, once nobody is emptying the context.
    fn settled(&self) -> MutexGuard<'_, PrimaryState> {
        let mut state = self.state.lock();
        self.emptied.wait_while(&mut state, |state| state.is_emptying);
        state
    }

    /// Empties the context while retains and releases of other threads wait.
    fn empty(&self, context: &'static Context, mut state: MutexGuard<'_, PrimaryState>) {
        state.is_emptying = true;
        drop(state);
        context.empty();
        let mut state = self.state.lock();
        if state.retained > 0 {
            context.revive();
        }
        state.is_emptying = false;
        self.emptied.notify_all();
    }
}

impl Default for Primary {
    fn default() -> Self {
        Primary::new()
    }
}

/// What every call reads of its thread: one variable, since looking one up costs, and without a destructor.
struct Thread {
    /// The current context.
    current: Cell<Option<&'static Context>>,
    /// The provider (by address) and device that the thread's HIP calls go to.
    bound: Cell<(usize, c_int)>,
    /// The context that they are made for, which is of that device.
    bound_for: Cell<Option<&'static Context>>,
}

thread_local! {
    static THREAD: Thread =
        const { Thread { current: Cell::new(None), bound: Cell::new((0, -1)), bound_for: Cell::new(None) } };
    /// The contexts below the current one.
    static BELOW: RefCell<Vec<&'static Context>> = const { RefCell::new(Vec::new()) };
}

pub fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Context {
    fn make(
        device: &'static Device,
        flags: c_uint,
        is_primary: bool,
        api_version: c_uint,
    ) -> Result<&'static Context> {
        let context: &'static Context = Box::leak(Box::new(Context {
            device,
            handle: OnceLock::new(),
            is_primary,
            alive: AtomicBool::new(!is_primary),
            id: AtomicU64::new(next_id()),
            flags: AtomicU32::new(flags),
            cache_config: AtomicU32::new(0),
            shared_config: AtomicU32::new(0),
            api_version,
            attached: AtomicU32::new(1),
            limits: Mutex::new(Vec::new()),
            fault: Mutex::new(None),
            is_faulty: AtomicBool::new(false),
        }));
        let handle = CONTEXTS.insert(context).ok_or(Error::OutOfMemory)?;
        // Nobody else has seen the context yet, so this is the first and only write.
        let _ = context.handle.set(crate::handle::Handle::bits(handle));
        Ok(context)
    }

    /// `cuCtxCreate`: a new context, current on the calling thread.
    pub fn create(device: &'static Device, flags: c_uint, api_version: c_uint) -> Result<&'static Context> {
        check_flags(flags)?;
        let context = Context::make(device, flags, false, api_version)?;
        context.push();
        Ok(context)
    }

    /// The device's primary context, retained or not.
    pub fn primary(device: &'static Device) -> Result<&'static Context> {
        if let Some(context) = device.primary.context.get() {
            return Ok(context);
        }
        let _only_one = device.primary.settled();
        if let Some(context) = device.primary.context.get() {
            return Ok(context);
        }
        let context = Context::make(device, device.primary.flags(), true, DEFAULT_API_VERSION)?;
        Ok(device.primary.context.get_or_init(|| context))
    }

    pub fn retain_primary(device: &'static Device) -> Result<&'static Context> {
        let context = Context::primary(device)?;
        let mut state = device.primary.settled();
        state.retained += 1;
        context.revive();
        Ok(context)
    }

    pub fn release_primary(device: &'static Device) -> Result {
        let context = Context::primary(device)?;
        let mut state = device.primary.settled();
        state.retained = state.retained.checked_sub(1).ok_or(Error::InvalidContext)?;
        if state.retained == 0 {
            device.primary.empty(context, state);
        }
        Ok(())
    }

    /// `cuDevicePrimaryCtxReset`: the context loses everything in it; retains stay as they are.
    pub fn reset_primary(device: &'static Device) -> Result {
        let context = Context::primary(device)?;
        device.primary.empty(context, device.primary.settled());
        Ok(())
    }

    /// Makes an empty context usable (again).
    fn revive(&self) {
        if !self.alive.swap(true, Ordering::AcqRel) {
            self.id.store(next_id(), Ordering::Relaxed);
        }
    }

    /// `cuCtxDestroy`: takes it off this thread's stack if it is on top, then destroys everything in it.
    pub fn destroy(&'static self) -> Result {
        if self.is_primary {
            return Err(Error::InvalidContext);
        }
        CONTEXTS.remove(self.handle()).ok_or(Error::InvalidContext)?;
        if THREAD.with(|thread| thread.current.get()).is_some_and(|current| core::ptr::eq(current, self)) {
            pop();
        }
        self.empty();
        Ok(())
    }

    /// Waits for the device, then destroys the context's resources.
    fn empty(&'static self) {
        let bound = self.bind_device();
        if !self.alive.swap(false, Ordering::AcqRel) {
            return;
        }
        let id = self.id();
        if bound.is_ok() {
            // SAFETY: a plain call. Whatever it says, nothing of this context can be used any more.
            let _ = unsafe { self.hip().hipDeviceSynchronize() };
            if self.device.target == Target::Cpu {
                // HIP differs: ROCm's reset takes the other contexts' memory as well; the CPU device's only forgets the fault.
                // SAFETY: as above.
                let _ = unsafe { self.hip().hipDeviceReset() };
            }
        }
        gfx::services::forget_context(id);
        gfx::heap::forget_context(self);
        gfx::queue::forget_context(id);
        gfx::graphs::forget_context(self);
        self.is_faulty.store(false, Ordering::Release);
        *self.fault.lock() = None;
        graph::capture::forget_context(id);
        stream::destroy_all(id);
        event::destroy_all(id);
        texture::destroy_all(id);
        array::destroy_all(id);
        library::forget_context(id);
        module::unload_all(id);
        graph::allocation::forget_context(id);
        memory::free_all(id);
        self.limits.lock().clear();
    }

    /// The context behind a handle, if it is alive.
    pub fn from_handle(handle: CUcontext) -> Result<&'static Context> {
        driver()?;
        CONTEXTS.get(handle).ok_or(Error::InvalidContext)
    }

    pub fn handle(&self) -> CUcontext {
        crate::handle::Handle::from_bits(self.handle.get().copied().unwrap_or(0))
    }

    /// The calling thread's current context, with HIP's calls of this thread going to its device.
    #[inline]
    pub fn current() -> Result<&'static Context> {
        THREAD.with(|thread| {
            let Some(context) = thread.current.get() else {
                return Err(driver().err().unwrap_or(Error::InvalidContext));
            };
            not_gone()?;
            context.bind_in(thread)?;
            context.check_fault()?;
            Ok(context)
        })
    }

    /// The calling thread's current context whatever state it is in.
    pub fn current_raw() -> Result<Option<&'static Context>> {
        driver()?;
        Ok(THREAD.with(|thread| thread.current.get()))
    }

    /// Points this thread's HIP calls at the context's device. A context whose kernel failed answers with that error.
    #[inline]
    pub fn bind(&'static self) -> Result {
        self.bind_device()?;
        self.check_fault()
    }

    #[inline]
    fn bind_device(&'static self) -> Result {
        THREAD.with(|thread| self.bind_in(thread))
    }

    #[inline]
    fn bind_in(&'static self, thread: &Thread) -> Result {
        if !self.alive.load(Ordering::Acquire) {
            return Err(Error::ContextIsDestroyed);
        }
        if thread.bound_for.get().is_some_and(|bound| core::ptr::eq(bound, self)) {
            return Ok(());
        }
        self.bind_anew(thread)
    }

    #[cold]
    fn bind_anew(&'static self, thread: &Thread) -> Result {
        let device = self.device;
        let wanted = (core::ptr::from_ref(device.provider).addr(), device.hip_ordinal);
        if thread.bound.get() != wanted {
            thread.bound_for.set(None);
            // SAFETY: a plain call with a number the provider counted.
            unsafe { device.hip().hipSetDevice(device.hip_ordinal) }?;
            thread.bound.set(wanted);
        }
        if device.target == Target::Cpu {
            let number = core::ptr::without_provenance_mut(self.number());
            // SAFETY: the CPU provider takes any number as a context. Another one of that kind may not have the call; then
            // its contexts share their errors.
            let _ = unsafe { self.hip().hipCtxSetCurrent(number) };
        }
        thread.bound_for.set(Some(self));
        Ok(())
    }

    /// What the call that just failed leaves behind: after a kernel's fault the context answers every call with it.
    pub fn note(error: Error) {
        if error.is_sticky()
            && let Some(context) = THREAD.with(|thread| thread.bound_for.get())
            && context.is_alive()
        {
            context.fault.lock().get_or_insert(error);
            context.is_faulty.store(true, Ordering::Release);
        }
    }

    /// A kernel of this context failed with `error`: every call answers with it from now on.
    pub fn fail(&self, error: Error) {
        if self.is_alive() {
            self.fault.lock().get_or_insert(error);
            self.is_faulty.store(true, Ordering::Release);
        }
    }

    /// Tells it from others; never 0.
    fn number(&self) -> usize {
        core::ptr::from_ref(self).addr()
    }

    /// Whether the context is as good as new, else the fault of its kernel.
    #[inline]
    pub fn check_fault(&self) -> Result {
        if !self.is_faulty.load(Ordering::Acquire) {
            return Ok(());
        }
        self.fault.lock().map_or(Ok(()), Err)
    }

    #[inline]
    pub fn hip(&self) -> &'static Hip {
        self.device.hip()
    }

    #[inline]
    pub fn id(&self) -> u64 {
        self.id.load(Ordering::Relaxed)
    }

    pub fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    pub fn is_primary(&self) -> bool {
        self.is_primary
    }

    pub fn api_version(&self) -> c_uint {
        self.api_version
    }

    pub fn flags(&self) -> c_uint {
        self.flags.load(Ordering::Relaxed)
    }

    pub fn set_flags(&self, flags: c_uint) -> Result {
        check_flags(flags)?;
        self.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    pub fn cache_config(&self) -> CUfunc_cache {
        CUfunc_cache(self.cache_config.load(Ordering::Relaxed))
    }

    pub fn set_cache_config(&self, config: CUfunc_cache) {
        self.cache_config.store(config.0, Ordering::Relaxed);
    }

    pub fn shared_config(&self) -> CUsharedconfig {
        CUsharedconfig(self.shared_config.load(Ordering::Relaxed))
    }

    pub fn set_shared_config(&self, config: CUsharedconfig) {
        self.shared_config.store(config.0, Ordering::Relaxed);
    }

    pub fn limit(&self, number: c_uint) -> Option<usize> {
        self.limits.lock().iter().find(|(known, _)| *known == number).map(|(_, value)| *value)
    }

    pub fn set_limit(&self, number: c_uint, value: usize) {
        let mut limits = self.limits.lock();
        match limits.iter_mut().find(|(known, _)| *known == number) {
            Some(entry) => entry.1 = value,
            None => limits.push((number, value)),
        }
    }

    /// Puts the context on top of this thread's stack.
    pub fn push(&'static self) {
        if let Some(below) = THREAD.with(|thread| thread.current.replace(Some(self))) {
            BELOW.with_borrow_mut(|stack| stack.push(below));
        }
    }

    pub fn attach(&self) {
        self.attached.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether that was the last one.
    pub fn detach(&self) -> bool {
        self.attached.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Waits for everything in the context.
    pub fn synchronize(&'static self) -> Result {
        self.bind()?;
        // SAFETY: a plain call.
        Ok(unsafe { self.hip().hipDeviceSynchronize() }?)
    }
}

/// What `cuCtxGetApiVersion` answers for a context of the newest `cuCtxCreate` and for primary ones (measured on
/// drivers since 3.2: the API version is 3020).
pub const DEFAULT_API_VERSION: c_uint = 3020;

/// The same of contexts made by `cuCtxCreate` before CUDA 3.2 (`api/old.rs`).
pub const OLD_API_VERSION: c_uint = 3010;

pub fn check_flags(flags: c_uint) -> Result {
    let sched = flags & CUctx_flags::CU_CTX_SCHED_MASK.0;
    // CUDA: one scheduling flag at most, and no bit beyond the mask.
    if flags & !CUctx_flags::CU_CTX_FLAGS_MASK.0 != 0 || sched.count_ones() > 1 {
        return Err(Error::InvalidValue("flags"));
    }
    Ok(())
}

/// Takes the current context off this thread's stack.
pub fn pop() -> Option<&'static Context> {
    let below = BELOW.with_borrow_mut(Vec::pop);
    THREAD.with(|thread| thread.current.replace(below))
}

/// `cuCtxSetCurrent`: replaces the top of the stack; `None` takes it off.
pub fn set_current(context: Option<&'static Context>) {
    match context {
        Some(context) => THREAD.with(|thread| thread.current.set(Some(context))),
        None => {
            pop();
        }
    }
}
