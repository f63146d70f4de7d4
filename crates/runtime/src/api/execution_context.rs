//! Execution Context Management: a device's primary context or a green context, under one handle type.
//!
//! A handle is the driver's own. Which of the two it is only we know, because we gave it out.

use core::ffi::{c_int, c_uint, c_ulonglong};
use std::ptr;

use border::{OptOut, Out};
use cuda_abi::runtime::{
    cudaDevResource, cudaDevResourceDesc_t, cudaDevResourceType, cudaDevSmResourceGroupParams, cudaEvent_t,
    cudaExecutionContext_t, cudaStream_t,
};
use cuda_abi::{CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceType, CUgreenCtx};
use parking_lot::Mutex;

use crate::driver::{self, Driver};
use crate::{Error, Result, device, stream};

/// What a handle given out stands for.
#[derive(Clone, Copy)]
enum Context {
    Primary(c_int),
    Green(c_int),
}

/// Handle and meaning. Bound: the devices, and the green contexts that are alive.
static GIVEN_OUT: Mutex<Vec<(usize, Context)>> = Mutex::new(Vec::new());

fn meaning(handle: cudaExecutionContext_t) -> Result<Context> {
    let given_out = GIVEN_OUT.lock();
    let found = given_out.iter().find(|(known, _)| *known == handle.addr());
    found.map(|(_, context)| *context).ok_or(Error::InvalidValue("ctx"))
}

fn primary(handle: cudaExecutionContext_t) -> CUcontext {
    handle.cast()
}

fn green(handle: cudaExecutionContext_t) -> CUgreenCtx {
    handle.cast()
}

/// The driver's context behind a handle; without one the current context.
pub fn driver_context(driver: &Driver, handle: cudaExecutionContext_t) -> Result<CUcontext> {
    let mut context = ptr::null_mut();
    if handle.is_null() {
        driver.cuCtxGetCurrent(&mut context)?;
        return Ok(context);
    }
    match meaning(handle)? {
        Context::Primary(_) => Ok(primary(handle)),
        Context::Green(_) => {
            driver.cuCtxFromGreenCtx(&mut context, green(handle))?;
            Ok(context)
        }
    }
}

fn give_out(handle: usize, context: Context) {
    let mut given_out = GIVEN_OUT.lock();
    given_out.retain(|(known, _)| *known != handle);
    given_out.push((handle, context));
}

// The runtime's structures are the driver's under other names.
const _: () = {
    assert!(size_of::<cudaDevResource>() == size_of::<CUdevResource>());
    assert!(size_of::<cudaDevSmResourceGroupParams>() == size_of::<CU_DEV_SM_RESOURCE_GROUP_PARAMS>());
};

/// Asks the driver for a resource and hands it on.
fn resource(
    answer: Out<'_, cudaDevResource>,
    ask: impl FnOnce(&'static Driver, *mut CUdevResource) -> Result,
) -> Result {
    let mut found = CUdevResource::default();
    ask(device::attach()?, &mut found)?;
    // SAFETY: the same structure under two names, as asserted above.
    answer.write(unsafe { core::mem::transmute::<CUdevResource, cudaDevResource>(found) });
    Ok(())
}

pub fn cudaDeviceGetDevResource(
    device: c_int,
    resource: Out<'_, cudaDevResource>,
    type_: cudaDevResourceType,
) -> Result {
    let handle = device::at(device)?.handle;
    self::resource(resource, |driver, found| {
        driver.cuDeviceGetDevResource(handle, found, CUdevResourceType(type_.0))
    })
}

pub fn cudaStreamGetDevResource(
    hStream: cudaStream_t,
    resource: Out<'_, cudaDevResource>,
    type_: cudaDevResourceType,
) -> Result {
    self::resource(resource, |driver, found| {
        driver.cuStreamGetDevResource(stream::meant(hStream), found, CUdevResourceType(type_.0))
    })
}

pub fn cudaExecutionCtxGetDevResource(
    ctx: cudaExecutionContext_t,
    resource: Out<'_, cudaDevResource>,
    type_: cudaDevResourceType,
) -> Result {
    let meaning = meaning(ctx)?;
    let kind = CUdevResourceType(type_.0);
    self::resource(resource, |driver, found| match meaning {
        Context::Primary(_) => driver.cuCtxGetDevResource(primary(ctx), found, kind),
        Context::Green(_) => driver.cuGreenCtxGetDevResource(green(ctx), found, kind),
    })
}

pub fn cudaDevSmResourceSplitByCount(
    result: *mut cudaDevResource,
    nbGroups: *mut c_uint,
    input: &cudaDevResource,
    remaining: OptOut<'_, cudaDevResource>,
    flags: c_uint,
    minCount: c_uint,
) -> Result {
    let rest = remaining.wanted().map_or(ptr::null_mut(), |rest| rest.as_ptr().cast());
    let input = ptr::from_ref(input).cast();
    device::attach()?.cuDevSmResourceSplitByCount(result.cast(), nbGroups, input, rest, flags, minCount)
}

pub fn cudaDevSmResourceSplit(
    result: *mut cudaDevResource,
    nbGroups: c_uint,
    input: &cudaDevResource,
    remainder: OptOut<'_, cudaDevResource>,
    flags: c_uint,
    groupParams: *mut cudaDevSmResourceGroupParams,
) -> Result {
    let rest = remainder.wanted().map_or(ptr::null_mut(), |rest| rest.as_ptr().cast());
    let input = ptr::from_ref(input).cast();
    let driver = device::attach()?;
    driver.cuDevSmResourceSplit(result.cast(), nbGroups, input, rest, flags, groupParams.cast())
}

pub fn cudaDevResourceGenerateDesc(
    phDesc: Out<'_, cudaDevResourceDesc_t>,
    resources: *mut cudaDevResource,
    nbResources: c_uint,
) -> Result {
    let mut made = ptr::null_mut();
    device::attach()?.cuDevResourceGenerateDesc(&mut made, resources.cast(), nbResources)?;
    phDesc.write(made.cast());
    Ok(())
}

/// The primary context of a device, which need not be destroyed.
pub fn cudaDeviceGetExecutionCtx(ctx: Out<'_, cudaExecutionContext_t>, device: c_int) -> Result {
    let handle = device::at(device)?.context()?;
    give_out(handle.addr(), Context::Primary(device));
    ctx.write(handle.cast());
    Ok(())
}

/// CUDA: the runtime's green contexts always have the flag that the driver's may have.
pub fn cudaGreenCtxCreate(
    phCtx: Out<'_, cudaExecutionContext_t>,
    desc: cudaDevResourceDesc_t,
    device: c_int,
    flags: c_uint,
) -> Result {
    // CUDA: no flags exist.
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    const DEFAULT_STREAM: c_uint = 1;
    let handle = device::at(device)?.handle;
    let mut made: CUgreenCtx = ptr::null_mut();
    driver::get()?.cuGreenCtxCreate(&mut made, desc.cast(), handle, DEFAULT_STREAM)?;
    give_out(made.addr(), Context::Green(device));
    phCtx.write(made.cast());
    Ok(())
}

/// CUDA: a device's own context is destroyed by cudaDeviceReset alone.
pub fn cudaExecutionCtxDestroy(ctx: cudaExecutionContext_t) -> Result {
    match meaning(ctx)? {
        Context::Primary(_) => return Err(Error::InvalidValue("ctx: a device's own")),
        Context::Green(_) => driver::get()?.cuGreenCtxDestroy(green(ctx))?,
    }
    GIVEN_OUT.lock().retain(|(known, _)| *known != ctx.addr());
    Ok(())
}

pub fn cudaExecutionCtxGetDevice(device: Out<'_, c_int>, ctx: cudaExecutionContext_t) -> Result {
    let (Context::Primary(ordinal) | Context::Green(ordinal)) = meaning(ctx)?;
    device.write(ordinal);
    Ok(())
}

pub fn cudaExecutionCtxGetId(ctx: cudaExecutionContext_t, ctxId: Out<'_, c_ulonglong>) -> Result {
    let mut id = 0;
    let driver = driver::get()?;
    match meaning(ctx)? {
        Context::Primary(_) => driver.cuCtxGetId(primary(ctx), &mut id),
        Context::Green(_) => driver.cuGreenCtxGetId(green(ctx), &mut id),
    }?;
    ctxId.write(id);
    Ok(())
}

/// CUDA: the stream never waits for the default stream, whatever the flags say.
pub fn cudaExecutionCtxStreamCreate(
    phStream: Out<'_, cudaStream_t>,
    ctx: cudaExecutionContext_t,
    flags: c_uint,
    priority: c_int,
) -> Result {
    const NON_BLOCKING: c_uint = 1;
    let mut made = ptr::null_mut();
    match meaning(ctx)? {
        Context::Green(_) if flags & !NON_BLOCKING != 0 => return Err(Error::InvalidValue("flags")),
        Context::Green(_) => {
            driver::get()?.cuGreenCtxStreamCreate(&mut made, green(ctx), NON_BLOCKING, priority)?;
        }
        Context::Primary(_) => {
            let driver = device::attach()?;
            let mut before: CUcontext = ptr::null_mut();
            driver.cuCtxGetCurrent(&mut before)?;
            driver.cuCtxSetCurrent(primary(ctx))?;
            let created = driver.cuStreamCreateWithPriority(&mut made, flags, priority);
            driver.cuCtxSetCurrent(before)?;
            created?;
        }
    }
    phStream.write(made);
    Ok(())
}

/// Waits for everything that the context's streams have been given.
pub fn cudaExecutionCtxSynchronize(ctx: cudaExecutionContext_t) -> Result {
    let driver = device::attach()?;
    match meaning(ctx)? {
        Context::Primary(_) => driver.cuCtxSynchronize_v2(primary(ctx)),
        Context::Green(_) => {
            // The driver has no call for it: an event behind all of the context's work.
            const DISABLE_TIMING: c_uint = 2;
            let mut mark = ptr::null_mut();
            driver.cuEventCreate(&mut mark, DISABLE_TIMING)?;
            let waited =
                driver.cuGreenCtxRecordEvent(green(ctx), mark).and_then(|()| driver.cuEventSynchronize(mark));
            waited.and(driver.cuEventDestroy_v2(mark))
        }
    }
}

pub fn cudaExecutionCtxRecordEvent(ctx: cudaExecutionContext_t, event: cudaEvent_t) -> Result {
    let driver = device::attach()?;
    match meaning(ctx)? {
        Context::Primary(_) => driver.cuCtxRecordEvent(primary(ctx), event),
        Context::Green(_) => driver.cuGreenCtxRecordEvent(green(ctx), event),
    }
}

pub fn cudaExecutionCtxWaitEvent(ctx: cudaExecutionContext_t, event: cudaEvent_t) -> Result {
    let driver = device::attach()?;
    match meaning(ctx)? {
        Context::Primary(_) => driver.cuCtxWaitEvent(primary(ctx), event),
        Context::Green(_) => driver.cuGreenCtxWaitEvent(green(ctx), event),
    }
}
