//! Stream Management, Stream Memory Operations.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use border::{OptOut, Out};
use cuda_abi::{
    CUcontext, CUdevice, CUdeviceptr, CUevent, CUgreenCtx, CUlaunchAttributeID, CUresult, CUstream,
    CUstreamAttrID, CUstreamAttrValue, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWaitValueParams_st as CUstreamMemOpWaitValue,
    CUstreamBatchMemOpParams_union_CUstreamMemOpWriteValueParams_st as CUstreamMemOpWriteValue,
    CUstreamBatchMemOpType, CUstreamCallback, CUstreamWriteValue_flags, cuuint32_t, cuuint64_t,
};
use hip_sys::{HipError, hipError_t, hipStream_t};

use crate::object::graph::capture::{captured, captured_event_wait, forbid_in_capture, forget_stream};
use crate::object::graph::{Op, Params};
use crate::object::memory::{check, raw};
use crate::object::{Context, Event, Stream};
use crate::{Error, Result};

pub fn cuStreamCreate(phStream: Out<'_, CUstream>, Flags: c_uint) -> Result {
    phStream.write(Stream::create(Flags, 0)?);
    Ok(())
}

/// A priority outside the device's range is taken as the nearest in it.
pub fn cuStreamCreateWithPriority(phStream: Out<'_, CUstream>, flags: c_uint, priority: c_int) -> Result {
    phStream.write(Stream::create(flags, priority)?);
    Ok(())
}

pub fn cuStreamDestroy_v2(hStream: CUstream) -> Result {
    let gone = Stream::destroy(hStream)?;
    forget_stream(&gone);
    attributes::forget(&gone);
    Ok(())
}

pub fn cuStreamDestroy(hStream: CUstream) -> Result {
    cuStreamDestroy_v2(hStream)
}

pub fn cuStreamSynchronize(hStream: CUstream) -> Result {
    forbid_in_capture(hStream)?;
    Stream::from_handle(hStream)?.synchronize()
}

pub fn cuStreamQuery(hStream: CUstream) -> Result {
    forbid_in_capture(hStream)?;
    let stream = Stream::from_handle(hStream)?;
    // SAFETY: the stream is alive.
    Ok(unsafe { stream.hip().hipStreamQuery(stream.hip.0) }?)
}

pub fn cuStreamWaitEvent(hStream: CUstream, hEvent: CUevent, Flags: c_uint) -> Result {
    let stream = Stream::from_handle(hStream)?;
    let event = Event::from_handle(hEvent)?;
    // CUDA: CU_EVENT_WAIT_DEFAULT or, in a capture, CU_EVENT_WAIT_EXTERNAL, which is a node.
    let is_captured = match Flags {
        0 => captured_event_wait(hEvent, hStream)?,
        1 if captured(hStream, || wait_op(hEvent))? => true,
        _ => return Err(Error::InvalidValue("Flags")),
    };
    if is_captured {
        return Ok(());
    }
    if !stream.context.device.provider.is_of_one_library(event.context.device.provider) {
        // No HIP library knows another's events: the host waits, and the stream has nothing left to wait for.
        // SAFETY: the event is alive.
        return Ok(unsafe { event.hip().hipEventSynchronize(event.hip.0) }?);
    }
    stream.context.bind()?;
    // SAFETY: both are alive.
    Ok(unsafe { stream.hip().hipStreamWaitEvent(stream.hip.0, event.hip.0, 0) }?)
}

/// A graph's node that waits for an event.
pub(crate) fn wait_op(event: CUevent) -> Result<Arc<Op>> {
    Event::from_handle(event)?;
    Ok(Op::new(Params::WaitEvent(event), |params, stream| match params {
        Params::WaitEvent(event) => cuStreamWaitEvent(stream, *event, 0),
        _ => Ok(()),
    }))
}

/// A callback of the program's with the handle it expects back.
struct Callback {
    function: unsafe extern "C" fn(CUstream, CUresult, *mut c_void),
    stream: CUstream,
    user_data: *mut c_void,
}

unsafe extern "C" fn run_callback(_stream: hipStream_t, status: hipError_t, data: *mut c_void) {
    // SAFETY: `data` is the box that `call_back` leaked; HIP calls back once.
    let callback = unsafe { Box::from_raw(data.cast::<Callback>()) };
    let result = if status == hip_sys::hipSuccess {
        CUresult::CUDA_SUCCESS
    } else {
        Error::from(HipError::Code { call: "stream callback", code: status }).result()
    };
    // SAFETY: the program's function, with the arguments it asked for.
    unsafe { (callback.function)(callback.stream, result, callback.user_data) };
}

/// Calls `callback` on a host thread when everything queued so far is done; later work of the stream waits for it.
pub fn cuStreamAddCallback(
    hStream: CUstream,
    callback: CUstreamCallback,
    userData: *mut c_void,
    flags: c_uint,
) -> Result {
    forbid_in_capture(hStream)?;
    let stream = Stream::from_handle(hStream)?;
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    let function = callback.ok_or(Error::InvalidValue("callback"))?;
    call_back(&stream, run_callback, Box::new(Callback { function, stream: hStream, user_data: userData }))
}

/// Lets HIP call `run`, once, with `data`, which is `run`'s to drop.
pub(super) fn call_back<T>(
    stream: &Stream,
    run: unsafe extern "C" fn(hipStream_t, hipError_t, *mut c_void),
    data: Box<T>,
) -> Result {
    let data = Box::into_raw(data);
    // SAFETY: the stream is alive; `data` lives until the one call of `run`.
    let added = unsafe { stream.hip().hipStreamAddCallback(stream.hip.0, Some(run), data.cast(), 0) };
    if let Err(error) = added {
        // SAFETY: HIP did not take the callback, so the box is still ours.
        drop(unsafe { Box::from_raw(data) });
        return Err(error.into());
    }
    Ok(())
}

pub fn cuStreamGetPriority(hStream: CUstream, priority: Out<'_, c_int>) -> Result {
    priority.write(Stream::from_handle(hStream)?.priority);
    Ok(())
}

pub fn cuStreamGetFlags(hStream: CUstream, flags: Out<'_, c_uint>) -> Result {
    flags.write(Stream::from_handle(hStream)?.flags);
    Ok(())
}

pub fn cuStreamGetId(hStream: CUstream, streamId: Out<'_, c_ulonglong>) -> Result {
    streamId.write(Stream::from_handle(hStream)?.id);
    Ok(())
}

pub fn cuStreamGetCtx(hStream: CUstream, pctx: Out<'_, CUcontext>) -> Result {
    pctx.write(Stream::from_handle(hStream)?.context.handle());
    Ok(())
}

pub fn cuStreamGetCtx_v2(
    hStream: CUstream,
    pCtx: OptOut<'_, CUcontext>,
    pGreenCtx: OptOut<'_, CUgreenCtx>,
) -> Result {
    let stream = Stream::from_handle(hStream)?;
    pCtx.write(stream.context.handle());
    pGreenCtx.write(core::ptr::null_mut());
    Ok(())
}

pub fn cuStreamGetDevice(hStream: CUstream, device: Out<'_, CUdevice>) -> Result {
    device.write(Stream::from_handle(hStream)?.context.device.ordinal);
    Ok(())
}

pub fn cuStreamWaitValue32_v2(
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Result {
    if captured(stream, || mem_op(&[wait_value(addr, value.into(), flags, false)], Context::current()?, 0))? {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    check(addr, 4, "addr")?;
    // SAFETY: the address was checked; the stream is alive. HIP's conditions have CUDA's numbers.
    Ok(unsafe { stream.hip().hipStreamWaitValue32(stream.hip.0, raw(addr), value, flags, u32::MAX) }?)
}

pub fn cuStreamWaitValue64_v2(
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Result {
    if captured(stream, || mem_op(&[wait_value(addr, value, flags, true)], Context::current()?, 0))? {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    check(addr, 8, "addr")?;
    // SAFETY: as above.
    Ok(unsafe { stream.hip().hipStreamWaitValue64(stream.hip.0, raw(addr), value, flags, u64::MAX) }?)
}

/// CUDA: the second version has no flags; the only one there is, to leave a barrier out, was the first version's.
fn no_write_flags(flags: c_uint) -> Result {
    if flags == 0 { Ok(()) } else { Err(Error::InvalidValue("flags")) }
}

pub fn cuStreamWriteValue32_v2(
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint32_t,
    flags: c_uint,
) -> Result {
    no_write_flags(flags)?;
    if captured(stream, || mem_op(&[write_value(addr, value.into(), flags, false)], Context::current()?, 0))?
    {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    check(addr, 4, "addr")?;
    // SAFETY: as above.
    Ok(unsafe { stream.hip().hipStreamWriteValue32(stream.hip.0, raw(addr), value, 0) }?)
}

pub fn cuStreamWriteValue64_v2(
    stream: CUstream,
    addr: CUdeviceptr,
    value: cuuint64_t,
    flags: c_uint,
) -> Result {
    no_write_flags(flags)?;
    if captured(stream, || mem_op(&[write_value(addr, value, flags, true)], Context::current()?, 0))? {
        return Ok(());
    }
    let stream = Stream::from_handle(stream)?;
    check(addr, 8, "addr")?;
    // SAFETY: as above.
    Ok(unsafe { stream.hip().hipStreamWriteValue64(stream.hip.0, raw(addr), value, 0) }?)
}

/// A wait as an entry of a batch.
fn wait_value(address: CUdeviceptr, value: u64, flags: c_uint, is_64: bool) -> CUstreamBatchMemOpParams {
    let operation = match is_64 {
        true => CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64,
        false => CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32,
    };
    let mut wait = CUstreamMemOpWaitValue { operation, address, flags, ..Default::default() };
    wait.__bindgen_anon_1.value64 = value;
    let mut entry = CUstreamBatchMemOpParams::default();
    entry.waitValue = wait;
    entry
}

/// A write as an entry of a batch.
fn write_value(address: CUdeviceptr, value: u64, flags: c_uint, is_64: bool) -> CUstreamBatchMemOpParams {
    let operation = match is_64 {
        true => CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64,
        false => CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32,
    };
    let mut write = CUstreamMemOpWriteValue { operation, address, flags, ..Default::default() };
    write.__bindgen_anon_1.value64 = value;
    let mut entry = CUstreamBatchMemOpParams::default();
    entry.writeValue = write;
    entry
}

pub fn cuStreamWaitValue32(stream: CUstream, addr: CUdeviceptr, value: cuuint32_t, flags: c_uint) -> Result {
    cuStreamWaitValue32_v2(stream, addr, value, flags)
}

pub fn cuStreamWaitValue64(stream: CUstream, addr: CUdeviceptr, value: cuuint64_t, flags: c_uint) -> Result {
    cuStreamWaitValue64_v2(stream, addr, value, flags)
}

/// What the first version of a write may leave out; a barrier more is no harm.
const NO_MEMORY_BARRIER: c_uint = CUstreamWriteValue_flags::CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER.0;

pub fn cuStreamWriteValue32(stream: CUstream, addr: CUdeviceptr, value: cuuint32_t, flags: c_uint) -> Result {
    cuStreamWriteValue32_v2(stream, addr, value, flags & !NO_MEMORY_BARRIER)
}

pub fn cuStreamWriteValue64(stream: CUstream, addr: CUdeviceptr, value: cuuint64_t, flags: c_uint) -> Result {
    cuStreamWriteValue64_v2(stream, addr, value, flags & !NO_MEMORY_BARRIER)
}

/// A batch is its operations, one after the other.
///
/// # Safety
/// `paramArray` is NULL, or has `count` elements.
pub unsafe fn cuStreamBatchMemOp_v2(
    stream: CUstream,
    count: c_uint,
    paramArray: *mut CUstreamBatchMemOpParams,
    flags: c_uint,
) -> Result {
    Stream::from_handle(stream)?;
    // SAFETY: the caller's promise.
    let operations = unsafe { batch(paramArray, count) }?;
    // CUDA: no flags.
    if flags != 0 {
        return Err(Error::InvalidValue("flags"));
    }
    if captured(stream, || mem_op(operations, Context::current()?, flags))? {
        return Ok(());
    }
    operations.iter().try_for_each(|entry| run_mem_op(stream, entry))
}

/// CUDA: at most 256 operations.
///
/// # Safety
/// `operations` is NULL, or has `count` elements for `'a`.
pub(crate) unsafe fn batch<'a>(
    operations: *const CUstreamBatchMemOpParams,
    count: c_uint,
) -> Result<&'a [CUstreamBatchMemOpParams]> {
    if operations.is_null() || count == 0 || count > 256 {
        return Err(Error::InvalidValue("paramArray or count"));
    }
    // SAFETY: the caller's promise: `count` entries.
    Ok(unsafe { core::slice::from_raw_parts(operations, count as usize) })
}

/// A graph's node of memory operations.
pub(crate) fn mem_op(
    operations: &[CUstreamBatchMemOpParams],
    context: &'static Context,
    flags: c_uint,
) -> Result<Arc<Op>> {
    operations.iter().try_for_each(check_mem_op)?;
    let params = Params::BatchMemOp { context: context.handle(), operations: operations.to_vec(), flags };
    Ok(Op::new(params, |params, stream| match params {
        Params::BatchMemOp { operations, .. } => {
            operations.iter().try_for_each(|entry| run_mem_op(stream, entry))
        }
        _ => Ok(()),
    }))
}

/// What can be done at all.
fn check_mem_op(entry: &CUstreamBatchMemOpParams) -> Result {
    // SAFETY: every member begins with the operation.
    match unsafe { entry.operation } {
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32
        | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64
        | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_BARRIER => Ok(()),
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32
        | CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
            // SAFETY: the operation says that this is the member.
            no_write_flags(unsafe { entry.writeValue }.flags)
        }
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => {
            Err(Error::NotSupported("cuStreamBatchMemOp: remote writes"))
        }
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_ATOMIC_REDUCTION => {
            Err(Error::NotSupported("cuStreamBatchMemOp: atomic reductions"))
        }
        _ => Err(Error::InvalidValue("paramArray: operation")),
    }
}

fn run_mem_op(stream: CUstream, entry: &CUstreamBatchMemOpParams) -> Result {
    check_mem_op(entry)?;
    // SAFETY: waits and writes have the same layout: operation, address, value, flags.
    let CUstreamMemOpWaitValue { operation, address, __bindgen_anon_1: value, flags, .. } =
        unsafe { entry.waitValue };
    // SAFETY: both members are numbers; the operation says which one was set.
    let (word, long) = unsafe { (value.value, value.value64) };
    match operation {
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_32 => {
            cuStreamWaitValue32_v2(stream, address, word, flags)
        }
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WAIT_VALUE_64 => {
            cuStreamWaitValue64_v2(stream, address, long, flags)
        }
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32 => {
            cuStreamWriteValue32_v2(stream, address, word, flags)
        }
        CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64 => {
            cuStreamWriteValue64_v2(stream, address, long, flags)
        }
        // A stream's operations already see all that went before them.
        _ => Ok(()),
    }
}

/// # Safety
/// `paramArray` is NULL, or has `count` elements.
pub unsafe fn cuStreamBatchMemOp(
    stream: CUstream,
    count: c_uint,
    paramArray: *mut CUstreamBatchMemOpParams,
    flags: c_uint,
) -> Result {
    Stream::from_handle(stream)?;
    // SAFETY: the caller's promise.
    let mut operations = unsafe { batch(paramArray, count) }?.to_vec();
    for entry in &mut operations {
        // SAFETY: every member begins with the operation.
        let operation = unsafe { entry.operation };
        if operation == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_32
            || operation == CUstreamBatchMemOpType::CU_STREAM_MEM_OP_WRITE_VALUE_64
        {
            // SAFETY: the operation says that this is the member.
            unsafe { entry.writeValue.flags &= !NO_MEMORY_BARRIER };
        }
    }
    // SAFETY: the copy has as many elements.
    unsafe { cuStreamBatchMemOp_v2(stream, count, operations.as_mut_ptr(), flags) }
}

/// Attributes a stream can have. All but the priority are hints that are kept and given back.
fn is_stream_attribute(attribute: CUstreamAttrID) -> bool {
    matches!(
        attribute,
        CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP
            | CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN
    )
}

pub fn cuStreamGetAttribute(
    hStream: CUstream,
    attr: CUstreamAttrID,
    value: Out<'_, CUstreamAttrValue>,
) -> Result {
    let stream = Stream::from_handle(hStream)?;
    if !is_stream_attribute(attr) {
        return Err(Error::InvalidValue("attr"));
    }
    if attr == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY {
        value.write(CUstreamAttrValue { priority: stream.priority });
        return Ok(());
    }
    value.write(attributes::get(&stream, attr).unwrap_or_default());
    Ok(())
}

pub fn cuStreamSetAttribute(hStream: CUstream, attr: CUstreamAttrID, param: &CUstreamAttrValue) -> Result {
    let stream = Stream::from_handle(hStream)?;
    if !is_stream_attribute(attr) {
        return Err(Error::InvalidValue("attr"));
    }
    if attr == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PRIORITY {
        // HIP differs: a stream's priority is fixed when it is made.
        // SAFETY: the member that belongs to the id.
        return match unsafe { param.priority } == stream.priority {
            true => Ok(()),
            false => Err(Error::NotSupported("cuStreamSetAttribute: changing the priority")),
        };
    }
    attributes::set(&stream, attr, *param);
    Ok(())
}

pub fn cuStreamCopyAttributes(dstStream: CUstream, srcStream: CUstream) -> Result {
    let (target, source) = (Stream::from_handle(dstStream)?, Stream::from_handle(srcStream)?);
    // CUDA: both streams belong to one context.
    if !core::ptr::eq(target.context, source.context) {
        return Err(Error::InvalidValue("dst or src"));
    }
    attributes::copy(&target, &source);
    Ok(())
}

mod attributes {
    //! Hints of streams, by stream id. Few streams have any, and they go with their stream.

    use std::collections::HashMap;
    use std::sync::atomic::{AtomicBool, Ordering};

    use cuda_abi::{CUstreamAttrID, CUstreamAttrValue};
    use parking_lot::Mutex;

    use crate::object::Stream;

    /// Context, stream and attribute.
    type Key = (u64, u64, u32);

    struct Hint(CUstreamAttrValue);

    // SAFETY: plain data for us; pointers inside are never followed.
    unsafe impl Send for Hint {}

    static HINTS: Mutex<Option<HashMap<Key, Hint>>> = Mutex::new(None);
    /// Whether any stream ever got one; most programs' streams never do.
    static ARE_ANY: AtomicBool = AtomicBool::new(false);

    fn key(stream: &Stream, attribute: u32) -> Key {
        (stream.context.id(), stream.id, attribute)
    }

    pub fn get(stream: &Stream, attribute: CUstreamAttrID) -> Option<CUstreamAttrValue> {
        HINTS.lock().as_ref()?.get(&key(stream, attribute.0)).map(|hint| hint.0)
    }

    pub fn set(stream: &Stream, attribute: CUstreamAttrID, value: CUstreamAttrValue) {
        ARE_ANY.store(true, Ordering::Relaxed);
        HINTS.lock().get_or_insert_default().insert(key(stream, attribute.0), Hint(value));
    }

    pub fn copy(target: &Stream, source: &Stream) {
        let mut hints = HINTS.lock();
        let Some(hints) = hints.as_mut() else { return };
        let (context, id, _) = key(source, 0);
        let copied: Vec<(u32, CUstreamAttrValue)> = hints
            .iter()
            .filter(|((of, stream, _), _)| (*of, *stream) == (context, id))
            .map(|((_, _, attribute), hint)| (*attribute, hint.0))
            .collect();
        for (attribute, value) in copied {
            hints.insert(key(target, attribute), Hint(value));
        }
    }

    pub fn forget(stream: &Stream) {
        if !ARE_ANY.load(Ordering::Relaxed) {
            return;
        }
        if let Some(hints) = HINTS.lock().as_mut() {
            let (context, id, _) = key(stream, 0);
            hints.retain(|(of, stream, _), _| (*of, *stream) != (context, id));
        }
    }
}
