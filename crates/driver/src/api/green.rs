//! Green Contexts: parts of a device. There is one part here, the whole (`object::green`).

use core::ffi::{c_int, c_uint, c_ulonglong};

use border::{OptOut, Out};
use cuda_abi::{
    CU_DEV_SM_RESOURCE_GROUP_PARAMS, CUcontext, CUdevResource, CUdevResourceDesc, CUdevResourceType,
    CUdevSmResourceGroup_flags, CUdevice, CUevent, CUgreenCtx, CUgreenCtxCreate_flags, CUstream,
};

use super::context::{named_or_current, rebind_current};
use crate::object::graph::capture::{check_event, forbid_in_context};
use crate::object::green::{self, Green};
use crate::object::{Device, Stream};
use crate::process::driver;
use crate::{Error, Result};

/// The multiprocessors of a device. Its work queues are no resource here: none can be set aside.
fn resource(device: &'static Device, kind: CUdevResourceType) -> Result<CUdevResource> {
    match kind {
        CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM => Ok(green::multiprocessors(device)),
        CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE_CONFIG
        | CUdevResourceType::CU_DEV_RESOURCE_TYPE_WORKQUEUE => {
            Err(Error::NotSupported("device resources other than multiprocessors"))
        }
        _ => Err(Error::InvalidResourceType),
    }
}

pub fn cuDeviceGetDevResource(
    device: CUdevice,
    resource: Out<'_, CUdevResource>,
    type_: CUdevResourceType,
) -> Result {
    resource.write(self::resource(Device::get(device)?, type_)?);
    Ok(())
}

pub fn cuCtxGetDevResource(
    hCtx: CUcontext,
    resource: Out<'_, CUdevResource>,
    type_: CUdevResourceType,
) -> Result {
    resource.write(self::resource(named_or_current(hCtx)?.device, type_)?);
    Ok(())
}

pub fn cuGreenCtxGetDevResource(
    hCtx: CUgreenCtx,
    resource: Out<'_, CUdevResource>,
    type_: CUdevResourceType,
) -> Result {
    resource.write(self::resource(Green::from_handle(hCtx)?.context.device, type_)?);
    Ok(())
}

pub fn cuStreamGetDevResource(
    hStream: CUstream,
    resource: Out<'_, CUdevResource>,
    type_: CUdevResourceType,
) -> Result {
    resource.write(self::resource(Stream::from_handle(hStream)?.context.device, type_)?);
    Ok(())
}

/// Nothing is left over when the whole went into a group.
fn nothing() -> CUdevResource {
    CUdevResource { type_: CUdevResourceType::CU_DEV_RESOURCE_TYPE_INVALID, ..Default::default() }
}

fn count_of(all: &CUdevResource) -> c_uint {
    // SAFETY: `multiprocessors` set this member.
    unsafe { all.__bindgen_anon_1.sm }.smCount
}

/// CUDA: there may be fewer groups than asked for; here there is one.
///
/// # Safety
/// `nbGroups` is NULL, or a number that may be read and written; `result` is NULL, or has so many elements.
pub unsafe fn cuDevSmResourceSplitByCount(
    result: *mut CUdevResource,
    nbGroups: *mut c_uint,
    input: &CUdevResource,
    remainder: OptOut<'_, CUdevResource>,
    flags: c_uint,
    minCount: c_uint,
) -> Result {
    driver()?;
    let all = green::multiprocessors(green::device_of(input)?);
    // SAFETY: the caller's promise: NULL or a number.
    let Some(n_groups) = (unsafe { nbGroups.as_mut() }) else { return Err(Error::InvalidValue("nbGroups")) };
    // CUDA: two flags exist; neither can make a smaller part of one.
    if flags & !3 != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    // CUDA: a group of more than there are is no configuration (measured on driver 580).
    if minCount > count_of(&all) {
        return Err(Error::InvalidResourceConfiguration);
    }
    if result.is_null() {
        *n_groups = 1;
        return Ok(());
    }
    let is_given = *n_groups > 0;
    *n_groups = u32::from(is_given);
    if is_given {
        // SAFETY: the caller's promise: as many elements as `nbGroups` said, which is at least one.
        unsafe { result.write(all) };
    }
    remainder.write(if is_given { nothing() } else { all });
    Ok(())
}

/// What a group gets of what is left: all of it or nothing.
fn share(wanted: &CU_DEV_SM_RESOURCE_GROUP_PARAMS, left: c_uint) -> Result<c_uint> {
    let backfill = wanted.flags & CUdevSmResourceGroup_flags::CU_DEV_SM_RESOURCE_GROUP_BACKFILL.0 != 0;
    let together = wanted.coscheduledSmCount;
    let fits =
        wanted.smCount == left || (wanted.smCount == 0 && (together == 0 || together <= left || backfill));
    if fits { Ok(left) } else { Err(Error::InvalidResourceConfiguration) }
}

/// # Safety
/// `groupParams` is NULL, or has `nbGroups` elements that may be read and written, as `result` has that may be written.
pub unsafe fn cuDevSmResourceSplit(
    result: *mut CUdevResource,
    nbGroups: c_uint,
    input: &CUdevResource,
    remainder: OptOut<'_, CUdevResource>,
    flags: c_uint,
    groupParams: *mut CU_DEV_SM_RESOURCE_GROUP_PARAMS,
) -> Result {
    driver()?;
    let all = green::multiprocessors(green::device_of(input)?);
    if flags != 0 || groupParams.is_null() || nbGroups == 0 {
        return Err(Error::InvalidValue("flags, groupParams or nbGroups"));
    }
    // SAFETY: the caller's promise: `nbGroups` entries.
    let groups = unsafe { core::slice::from_raw_parts_mut(groupParams, nbGroups as usize) };
    let mut left = count_of(&all);
    let mut shares = Vec::with_capacity(groups.len());
    for group in &*groups {
        let share = share(group, left)?;
        // CUDA: a group of the result cannot be empty.
        if share == 0 && !result.is_null() {
            return Err(Error::InvalidResourceConfiguration);
        }
        shares.push(share);
        left -= share;
    }
    for (group, share) in groups.iter_mut().zip(&shares) {
        group.smCount = *share;
    }
    if !result.is_null() {
        // SAFETY: the caller's promise: `nbGroups` elements; more than one were refused above.
        unsafe { result.write(all) };
    }
    remainder.write(if left == 0 { nothing() } else { all });
    Ok(())
}

/// # Safety
/// `resources` is NULL, or has `nbResources` elements.
pub unsafe fn cuDevResourceGenerateDesc(
    phDesc: Out<'_, CUdevResourceDesc>,
    resources: *mut CUdevResource,
    nbResources: c_uint,
) -> Result {
    driver()?;
    if resources.is_null() || nbResources == 0 {
        return Err(Error::InvalidValue("resources or nbResources"));
    }
    // SAFETY: the caller's promise: `nbResources` elements.
    let resources = unsafe { core::slice::from_raw_parts(resources, nbResources as usize) };
    let devices = resources.iter().map(green::device_of).collect::<Result<Vec<_>>>()?;
    match devices[..] {
        [device] => phDesc.write(green::describe(device)?),
        // CUDA: several have to be of one split, and ours have one group.
        _ => return Err(Error::InvalidResourceConfiguration),
    }
    Ok(())
}

pub fn cuGreenCtxCreate(
    phCtx: Out<'_, CUgreenCtx>,
    desc: CUdevResourceDesc,
    dev: CUdevice,
    flags: c_uint,
) -> Result {
    let device = Device::get(dev)?;
    if flags & !CUgreenCtxCreate_flags::CU_GREEN_CTX_DEFAULT_STREAM.0 != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    phCtx.write(Green::create(desc, device)?);
    Ok(())
}

pub fn cuGreenCtxDestroy(hCtx: CUgreenCtx) -> Result {
    Green::destroy(hCtx)
}

/// The primary context, whose part this green context is: the whole. So its handle tells nobody which of the two was meant.
pub fn cuCtxFromGreenCtx(pContext: Out<'_, CUcontext>, hCtx: CUgreenCtx) -> Result {
    pContext.write(Green::from_handle(hCtx)?.context.handle());
    Ok(())
}

pub fn cuGreenCtxGetId(greenCtx: CUgreenCtx, greenCtxId: Out<'_, c_ulonglong>) -> Result {
    greenCtxId.write(Green::from_handle(greenCtx)?.id);
    Ok(())
}

pub fn cuGreenCtxStreamCreate(
    phStream: Out<'_, CUstream>,
    greenCtx: CUgreenCtx,
    flags: c_uint,
    priority: c_int,
) -> Result {
    let green = Green::from_handle(greenCtx)?;
    // CUDA: CU_STREAM_NON_BLOCKING has to be given.
    if flags != 1 {
        return Err(Error::InvalidValue("flags"));
    }
    phStream.write(green.stream(flags, priority)?);
    rebind_current()
}

/// NULL for a stream that was not made by `cuGreenCtxStreamCreate`.
pub fn cuStreamGetGreenCtx(hStream: CUstream, phCtx: Out<'_, CUgreenCtx>) -> Result {
    let green = Stream::from_handle(hStream)?.green.0;
    // CUDA: the handle of one that was destroyed is of no use.
    phCtx.write(Green::from_handle(green).map_or(core::ptr::null_mut(), |_| green));
    Ok(())
}

pub fn cuGreenCtxRecordEvent(hCtx: CUgreenCtx, hEvent: CUevent) -> Result {
    Green::from_handle(hCtx)?.record(hEvent)?;
    rebind_current()
}

/// Streams that are made later do not wait.
pub fn cuGreenCtxWaitEvent(hCtx: CUgreenCtx, hEvent: CUevent) -> Result {
    Green::from_handle(hCtx)?.wait(hEvent)?;
    rebind_current()
}

/// Records behind the work of every stream of the context.
pub fn cuCtxRecordEvent(hCtx: CUcontext, hEvent: CUevent) -> Result {
    let context = named_or_current(hCtx)?;
    forbid_in_context(context)?;
    green::record(context, &green::streams_of(context), hEvent)?;
    rebind_current()
}

/// Streams that are made later do not wait.
pub fn cuCtxWaitEvent(hCtx: CUcontext, hEvent: CUevent) -> Result {
    let context = named_or_current(hCtx)?;
    forbid_in_context(context)?;
    check_event(hEvent)?;
    green::wait(context, &green::streams_of(context), hEvent)?;
    rebind_current()
}
