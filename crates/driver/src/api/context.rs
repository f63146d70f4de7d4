//! Context Management, Peer Context Memory Access.

use core::ffi::{c_int, c_uint, c_ulonglong};

use border::{OptOut, Out};
use cuda_abi::{
    CUcontext, CUctxCreateParams, CUdevice, CUexecAffinityParam, CUexecAffinityType, CUfunc_cache, CUlimit,
    CUsharedconfig,
};
use hip_sys as hip;

use crate::object::device::Target;
use crate::object::graph::capture::forbid_in_context;
use crate::object::{Context, Device, context, gfx, stream};
use crate::{Error, Result};

pub fn cuCtxCreate_v2(pctx: Out<'_, CUcontext>, flags: c_uint, dev: CUdevice) -> Result {
    let context = Context::create(Device::get(dev)?, flags, context::DEFAULT_API_VERSION)?;
    pctx.write(context.handle());
    Ok(())
}

pub fn cuCtxCreate(pctx: Out<'_, CUcontext>, flags: c_uint, dev: CUdevice) -> Result {
    let context = Context::create(Device::get(dev)?, flags, context::OLD_API_VERSION)?;
    pctx.write(context.handle());
    Ok(())
}

pub fn cuCtxCreate_v3(
    pctx: Out<'_, CUcontext>,
    paramsArray: *mut CUexecAffinityParam,
    numParams: c_int,
    flags: c_uint,
    dev: CUdevice,
) -> Result {
    Device::get(dev)?;
    if !paramsArray.is_null() || numParams != 0 {
        // CUDA: only under MPS, which there is not.
        return Err(Error::UnsupportedExecAffinity);
    }
    cuCtxCreate_v2(pctx, flags, dev)
}

pub fn cuCtxCreate_v4(
    pctx: Out<'_, CUcontext>,
    ctxCreateParams: Option<&CUctxCreateParams>,
    flags: c_uint,
    dev: CUdevice,
) -> Result {
    Device::get(dev)?;
    if let Some(params) = ctxCreateParams {
        if !params.execAffinityParams.is_null() {
            return Err(Error::UnsupportedExecAffinity);
        }
        if !params.cigParams.is_null() {
            return Err(Error::NotSupported("cuCtxCreate_v4: sharing with graphics"));
        }
    }
    cuCtxCreate_v2(pctx, flags, dev)
}

pub fn cuCtxDestroy_v2(ctx: CUcontext) -> Result {
    Context::from_handle(ctx)?.destroy()
}

pub fn cuCtxDestroy(ctx: CUcontext) -> Result {
    cuCtxDestroy_v2(ctx)
}

pub fn cuCtxPushCurrent_v2(ctx: CUcontext) -> Result {
    Context::from_handle(ctx)?.push();
    Ok(())
}

pub fn cuCtxPushCurrent(ctx: CUcontext) -> Result {
    cuCtxPushCurrent_v2(ctx)
}

pub fn cuCtxPopCurrent_v2(pctx: OptOut<'_, CUcontext>) -> Result {
    crate::process::driver()?;
    let popped = context::pop().ok_or(Error::InvalidContext)?;
    pctx.write(popped.handle());
    Ok(())
}

pub fn cuCtxPopCurrent(pctx: OptOut<'_, CUcontext>) -> Result {
    cuCtxPopCurrent_v2(pctx)
}

pub fn cuCtxSetCurrent(ctx: CUcontext) -> Result {
    crate::process::driver()?;
    let context = if ctx.is_null() { None } else { Some(Context::from_handle(ctx)?) };
    context::set_current(context);
    Ok(())
}

pub fn cuCtxGetCurrent(pctx: Out<'_, CUcontext>) -> Result {
    let current = Context::current_raw()?;
    pctx.write(current.map_or(core::ptr::null_mut(), Context::handle));
    Ok(())
}

pub fn cuCtxGetDevice(device: Out<'_, CUdevice>) -> Result {
    let context = Context::current_raw()?.ok_or(Error::InvalidContext)?;
    device.write(context.device.ordinal);
    Ok(())
}

/// `ctx` NULL means the current context.
pub(super) fn named_or_current(ctx: CUcontext) -> Result<&'static Context> {
    if ctx.is_null() {
        Context::current_raw()?.ok_or(Error::InvalidContext)
    } else {
        Context::from_handle(ctx)
    }
}

pub fn cuCtxGetDevice_v2(device: Out<'_, CUdevice>, ctx: CUcontext) -> Result {
    device.write(named_or_current(ctx)?.device.ordinal);
    Ok(())
}

pub fn cuCtxGetFlags(flags: Out<'_, c_uint>) -> Result {
    flags.write(Context::current()?.flags());
    Ok(())
}

pub fn cuCtxSetFlags(flags: c_uint) -> Result {
    Context::current()?.set_flags(flags)
}

pub fn cuCtxGetId(ctx: CUcontext, ctxId: Out<'_, c_ulonglong>) -> Result {
    ctxId.write(named_or_current(ctx)?.id());
    Ok(())
}

pub fn cuCtxGetApiVersion(ctx: CUcontext, version: Out<'_, c_uint>) -> Result {
    version.write(named_or_current(ctx)?.api_version());
    Ok(())
}

pub fn cuCtxSynchronize() -> Result {
    let context = Context::current()?;
    forbid_in_context(context)?;
    context.synchronize()
}

pub fn cuCtxSynchronize_v2(ctx: CUcontext) -> Result {
    let context = named_or_current(ctx)?;
    forbid_in_context(context)?;
    context.synchronize()?;
    rebind_current()
}

/// Points this thread back at its current context's device after a call that named another one.
pub(super) fn rebind_current() -> Result {
    match Context::current_raw()? {
        Some(context) if context.is_alive() => context.bind(),
        _ => Ok(()),
    }
}

pub fn cuCtxGetCacheConfig(pconfig: Out<'_, CUfunc_cache>) -> Result {
    pconfig.write(Context::current()?.cache_config());
    Ok(())
}

/// A preference; devices without a choice ignore it, as CUDA says.
pub fn cuCtxSetCacheConfig(config: CUfunc_cache) -> Result {
    let context = Context::current()?;
    if config.0 > CUfunc_cache::CU_FUNC_CACHE_PREFER_EQUAL.0 {
        return Err(Error::InvalidValue("config"));
    }
    context.set_cache_config(config);
    Ok(())
}

pub fn cuCtxGetSharedMemConfig(pConfig: Out<'_, CUsharedconfig>) -> Result {
    // CUDA: devices since Maxwell have 4-byte banks.
    let config = match Context::current()?.shared_config() {
        CUsharedconfig::CU_SHARED_MEM_CONFIG_DEFAULT_BANK_SIZE => {
            CUsharedconfig::CU_SHARED_MEM_CONFIG_FOUR_BYTE_BANK_SIZE
        }
        other => other,
    };
    pConfig.write(config);
    Ok(())
}

/// Without effect on devices whose bank size is fixed, as CUDA says.
pub fn cuCtxSetSharedMemConfig(config: CUsharedconfig) -> Result {
    Context::current()?;
    if config.0 > CUsharedconfig::CU_SHARED_MEM_CONFIG_EIGHT_BYTE_BANK_SIZE.0 {
        return Err(Error::InvalidValue("config"));
    }
    Ok(())
}

pub fn cuCtxGetLimit(pvalue: Out<'_, usize>, limit: CUlimit) -> Result {
    pvalue.write(limit_of(Context::current()?, limit)?);
    Ok(())
}

pub(super) fn limit_of(context: &'static Context, limit: CUlimit) -> Result<usize> {
    match context.limit(limit.0) {
        Some(value) => Ok(value),
        None => default_limit(context, limit),
    }
}

/// What all `malloc`s of kernels together may hold.
pub(crate) fn malloc_heap_bytes(context: &'static Context) -> Result<usize> {
    limit_of(context, CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE)
}

/// The provider's limit where HIP has the same one, else CUDA's default.
fn default_limit(context: &'static Context, limit: CUlimit) -> Result<usize> {
    let ask =
        |limit: hip::hipLimit_t, otherwise: usize| context.device.fresh_limit(limit).unwrap_or(otherwise);
    Ok(match limit {
        CUlimit::CU_LIMIT_STACK_SIZE => ask(hip::hipLimitStackSize, 1024),
        CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => ask(hip::hipLimitPrintfFifoSize, 1 << 20),
        CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => ask(hip::hipLimitMallocHeapSize, 8 << 20),
        CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => 128,
        CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => 0,
        // CPU differs: it counts what comes of one launch by the host, and of that what cannot have ended: grids inside of each other,
        // and what is in their tails. Where more have not begun they begin, and the launch waits; on AMD GPUs as many of them may wait
        // as a queue of ours holds.
        CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT if is_gpu(context) => 2048,
        CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => {
            ask(hip::hipLimitDevRuntimePendingLaunchCount, 2048)
        }
        // CUDA: of CUDA 11's device runtime, which devices have up to compute capability 8.x.
        CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH if has_old_device_runtime(context) => {
            ask(hip::hipLimitDevRuntimeSyncDepth, 2)
        }
        CUlimit(number) if number < CUlimit::CU_LIMIT_MAX.0 => return Err(Error::UnsupportedLimit),
        _ => return Err(Error::InvalidValue("limit")),
    })
}

pub fn cuCtxSetLimit(limit: CUlimit, value: usize) -> Result {
    let context = Context::current()?;
    // CUDA: the same limits can be set that can be read.
    default_limit(context, limit)?;
    // CUDA: the heap keeps the size that it had when a kernel with malloc was launched for the first time.
    if limit == CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE && gfx::heap::known(context).is_some() {
        return Err(Error::InvalidValue("limit: the heap is in use"));
    }
    // CUDA: a value that the device cannot have becomes the nearest one that it can.
    let taken = match limit {
        // Launches by kernels on an AMD GPU are ours.
        CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT if is_gpu(context) => value,
        // The heap of kernels on an AMD GPU is ours, and so is what they print into, which has one size.
        CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE if is_gpu(context) => value,
        CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE if is_gpu(context) => return Ok(()),
        CUlimit::CU_LIMIT_STACK_SIZE => set_in_provider(context, hip::hipLimitStackSize, value)?,
        CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => set_in_provider(context, hip::hipLimitPrintfFifoSize, value)?,
        CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => set_in_provider(context, hip::hipLimitMallocHeapSize, value)?,
        CUlimit::CU_LIMIT_DEV_RUNTIME_SYNC_DEPTH => {
            set_in_provider(context, hip::hipLimitDevRuntimeSyncDepth, value.min(MOST_SYNC_DEPTH))?
        }
        CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => {
            set_in_provider(context, hip::hipLimitDevRuntimePendingLaunchCount, value)?
        }
        CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => value.min(128),
        // No part of a cache can be set aside (`CU_DEVICE_ATTRIBUTE_MAX_PERSISTING_L2_CACHE_SIZE`).
        CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => 0,
        _ => value,
    };
    context.set_limit(limit.0, taken);
    gfx::queue::forget_limits(context.id());
    Ok(())
}

/// CUDA: grids inside of each other, in CUDA 11's device runtime.
const MOST_SYNC_DEPTH: usize = 24;

fn has_old_device_runtime(context: &Context) -> bool {
    !is_gpu(context) && config::get().compute_capability.0 < 9
}

fn is_gpu(context: &Context) -> bool {
    !matches!(context.device.target, Target::Cpu)
}

/// What the limit is then. HIP differs: some versions cannot set limits that CUDA can; the answer is CUDA's for those.
fn set_in_provider(context: &'static Context, limit: hip::hipLimit_t, value: usize) -> Result<usize> {
    let hip = context.hip();
    // SAFETY: a plain call.
    match unsafe { hip.hipDeviceSetLimit(limit, value) }.map_err(Error::from) {
        Err(Error::NotSupported(_)) => return Err(Error::UnsupportedLimit),
        answer => answer?,
    }
    let mut taken = value;
    // SAFETY: `taken` is writable. A provider that sets a limit and cannot tell it has taken it as it is.
    let _ = unsafe { hip.hipDeviceGetLimit(&mut taken, limit) };
    Ok(taken)
}

pub fn cuCtxGetStreamPriorityRange(
    leastPriority: OptOut<'_, c_int>,
    greatestPriority: OptOut<'_, c_int>,
) -> Result {
    let (least, greatest) = stream::priority_range(Context::current()?);
    leastPriority.write(least);
    greatestPriority.write(greatest);
    Ok(())
}

/// There is no persisting part of a cache to reset.
pub fn cuCtxResetPersistingL2Cache() -> Result {
    Context::current().map(|_| ())
}

/// Deprecated: one more `cuCtxDetach` until the context ends.
pub fn cuCtxAttach(pctx: Out<'_, CUcontext>, flags: c_uint) -> Result {
    // CUDA: flags must be 0.
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    let context = Context::current()?;
    context.attach();
    pctx.write(context.handle());
    Ok(())
}

/// Deprecated: destroys the context when it was detached as often as created and attached.
pub fn cuCtxDetach(ctx: CUcontext) -> Result {
    let context = Context::from_handle(ctx)?;
    // CUDA: only the current context can be detached.
    if !Context::current_raw()?.is_some_and(|current| core::ptr::eq(current, context)) {
        return Err(Error::InvalidContext);
    }
    if context.detach() { context.destroy() } else { Ok(()) }
}

pub fn cuCtxEnablePeerAccess(peerContext: CUcontext, Flags: c_uint) -> Result {
    let context = Context::current()?;
    let peer = Context::from_handle(peerContext)?;
    if Flags != 0 {
        return Err(Error::InvalidValue("Flags"));
    }
    // CUDA: no device is a peer of itself, so no context on it is, the current one included (measured on driver 580).
    if !core::ptr::eq(context.device.provider, peer.device.provider)
        || core::ptr::eq(context.device, peer.device)
    {
        return Err(Error::PeerAccessUnsupported);
    }
    // SAFETY: a plain call.
    Ok(unsafe { context.hip().hipDeviceEnablePeerAccess(peer.device.hip_ordinal, 0) }?)
}

pub fn cuCtxDisablePeerAccess(peerContext: CUcontext) -> Result {
    let context = Context::current()?;
    let peer = Context::from_handle(peerContext)?;
    if !core::ptr::eq(context.device.provider, peer.device.provider)
        || core::ptr::eq(context.device, peer.device)
    {
        return Err(Error::PeerAccessNotEnabled);
    }
    // SAFETY: a plain call.
    Ok(unsafe { context.hip().hipDeviceDisablePeerAccess(peer.device.hip_ordinal) }?)
}

/// Set at creation under MPS only, which there is not.
pub fn cuCtxGetExecAffinity(
    _pExecAffinity: Out<'_, CUexecAffinityParam>,
    type_: CUexecAffinityType,
) -> Result {
    Context::current()?;
    if type_.0 >= CUexecAffinityType::CU_EXEC_AFFINITY_TYPE_MAX.0 {
        return Err(Error::InvalidValue("type"));
    }
    Err(Error::UnsupportedExecAffinity)
}
