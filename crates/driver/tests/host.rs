//! Logs, core dump settings, green contexts, notifications, and what is refused, over a provider that never fails.

mod null;

use core::ffi::{CStr, c_char, c_uint, c_void};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard};

use cuda_abi::*;
use driver::Error;
use driver::api::{
    context, coredump, device, event, external, graphics, green, logs, memory, multicast, notification,
    stream, virtual_memory,
};

/// One test at a time, with a context of its own.
struct Scope(CUcontext, #[expect(dead_code, reason = "held")] MutexGuard<'static, ()>);

fn scope() -> Scope {
    static ONE: Mutex<()> = Mutex::new(());
    let guard = ONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    null::start();
    let mut handle: CUcontext = core::ptr::null_mut();
    context::cuCtxCreate_v2((&mut handle).into(), 0, 0).unwrap();
    Scope(handle, guard)
}

impl Drop for Scope {
    fn drop(&mut self) {
        let _ = context::cuCtxDestroy_v2(self.0);
    }
}

/// A call that fails as programs make it: through the border that logs.
fn fail() {
    let answer = driver::entry("cuMemFree_v2", || memory::cuMemFree_v2(0x1234));
    assert_eq!(answer, CUresult::CUDA_ERROR_INVALID_VALUE);
}

fn dump(iterator: &mut CUlogIterator, room: usize) -> (Result<(), Error>, String) {
    let mut buffer = vec![0x55u8; room];
    let mut size = room;
    // SAFETY: what the arguments point to is this test's.
    let answer = unsafe { logs::cuLogsDumpToMemory(iterator, buffer.as_mut_ptr().cast(), &mut size, 0) };
    let text = CStr::from_bytes_until_nul(&buffer).expect("always terminated").to_str().unwrap().to_owned();
    assert_eq!(size, text.len());
    (answer, text)
}

#[test]
fn failed_calls_are_logged_and_an_iterator_reads_each_once() {
    let _scope = scope();
    let mut iterator = 0;
    logs::cuLogsCurrent((&mut iterator).into(), 0).unwrap();
    assert_eq!(dump(&mut iterator, 100), (Ok(()), String::new()));
    fail();
    let before = iterator;
    assert_eq!(dump(&mut iterator, 8).0.unwrap_err().result(), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(iterator, before, "a dump that failed read nothing");
    let (answer, text) = dump(&mut iterator, 1000);
    assert_eq!(answer, Ok(()));
    assert!(text.contains("[CUDA][E] cuMemFree_v2: CUDA_ERROR_INVALID_VALUE"), "{text}");
    assert!(text.ends_with('\n') && text.lines().count() == 1);
    assert_eq!(dump(&mut iterator, 1000).1, "");
    let before = iterator;
    assert_eq!(logs::cuLogsCurrent((&mut iterator).into(), 1), Ok(()));
    assert_eq!(iterator, before, "flags are ignored");

    let path = std::env::temp_dir().join(format!("cudaway-log-{}", std::process::id()));
    let name = std::ffi::CString::new(path.to_str().unwrap()).unwrap();
    // SAFETY: what the arguments point to is this test's.
    unsafe { logs::cuLogsDumpToFile(core::ptr::null_mut(), name.as_ptr(), 0) }.unwrap();
    assert!(std::fs::read_to_string(&path).unwrap().contains(text.trim_end()));
    std::fs::remove_file(path).unwrap();
}

#[test]
fn a_callback_hears_of_failures_until_it_is_unregistered() {
    let _scope = scope();
    static HEARD: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn hear(data: *mut c_void, level: CUlogLevel, message: *mut c_char, length: usize) {
        assert_eq!((data.addr(), level), (42, CUlogLevel::CU_LOG_LEVEL_ERROR));
        // SAFETY: the driver passes a C string.
        let message = unsafe { CStr::from_ptr(message) };
        assert_eq!(message.to_bytes().len(), length);
        assert!(message.to_str().unwrap().contains("cuMemFree_v2"));
        HEARD.fetch_add(1, Ordering::Relaxed);
        // A failing call in here must not end in here again.
        fail();
    }
    let mut handle: CUlogsCallbackHandle = core::ptr::null_mut();
    let data = core::ptr::without_provenance_mut(42);
    logs::cuLogsRegisterCallback(Some(hear), data, Some(&mut handle).into()).unwrap();
    fail();
    assert_eq!(HEARD.load(Ordering::Relaxed), 1);
    logs::cuLogsUnregisterCallback(handle).unwrap();
    fail();
    assert_eq!(HEARD.load(Ordering::Relaxed), 1);
    assert!(logs::cuLogsUnregisterCallback(handle).is_err());
}

#[test]
fn core_dump_settings_are_a_contexts_own_and_nothing_turns_dumps_on() {
    let _scope = scope();
    type Settings = CUcoredumpSettings;
    let file = Settings::CU_COREDUMP_FILE;
    let get = |global: bool| {
        let (mut text, mut size) = ([0u8; 1024], 1024);
        let value = text.as_mut_ptr().cast();
        match global {
            // SAFETY: a value of the attribute's type.
            true => unsafe { coredump::cuCoredumpGetAttributeGlobal(file, value, &mut size) }.unwrap(),
            // SAFETY: a value of the attribute's type.
            false => unsafe { coredump::cuCoredumpGetAttribute(file, value, &mut size) }.unwrap(),
        }
        CStr::from_bytes_until_nul(&text[..size]).unwrap().to_str().unwrap().to_owned()
    };
    let default = get(true);
    assert!(default.starts_with("core.cuda.") && default.ends_with(&format!(".{}", std::process::id())));
    let mut own = *b"mine\0";
    // SAFETY: a value of the attribute's type.
    unsafe { coredump::cuCoredumpSetAttribute(file, own.as_mut_ptr().cast(), &mut own.len()) }.unwrap();
    assert_eq!((get(false).as_str(), get(true)), ("mine", default));

    let mut needed = 0;
    // SAFETY: a value of the attribute's type.
    unsafe { coredump::cuCoredumpGetAttribute(file, core::ptr::null_mut(), &mut needed) }.unwrap();
    assert_eq!(needed, 1024);
    let (mut on, mut one) = (true, 1);
    let enable = Settings::CU_COREDUMP_ENABLE_ON_EXCEPTION;
    // SAFETY: a value of the attribute's type.
    let answer = unsafe { coredump::cuCoredumpSetAttribute(enable, (&raw mut on).cast(), &mut one) };
    assert_eq!(answer.unwrap_err().result(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    // SAFETY: a value of the attribute's type.
    unsafe { coredump::cuCoredumpGetAttribute(enable, (&raw mut on).cast(), &mut one) }.unwrap();
    assert!(!on);
}

fn all_of(device: CUdevice) -> CUdevResource {
    let mut all = CUdevResource::default();
    let sm = CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM;
    green::cuDeviceGetDevResource(device, (&mut all).into(), sm).unwrap();
    all
}

fn count(resource: &CUdevResource) -> c_uint {
    assert_eq!(resource.type_, CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM);
    // SAFETY: the type says which member is set.
    unsafe { resource.__bindgen_anon_1.sm }.smCount
}

#[test]
fn a_device_is_one_part_and_a_green_context_has_streams_of_its_own() {
    let _scope = scope();
    let mut all = all_of(0);
    assert_eq!(count(&all), 4, "the null provider's multiprocessors");
    let (mut n_groups, mut parts, mut rest) = (3, [CUdevResource::default(); 3], CUdevResource::default());
    let ask = core::ptr::null_mut();
    // SAFETY: what the arguments point to is this test's.
    unsafe { green::cuDevSmResourceSplitByCount(ask, &mut n_groups, &all, None.into(), 0, 2) }.unwrap();
    assert_eq!(n_groups, 1);
    n_groups = 3;
    let result = parts.as_mut_ptr();
    // SAFETY: what the arguments point to is this test's.
    unsafe { green::cuDevSmResourceSplitByCount(result, &mut n_groups, &all, Some(&mut rest).into(), 0, 2) }
        .unwrap();
    assert_eq!((n_groups, count(&parts[0])), (1, 4));
    assert_eq!(rest.type_, CUdevResourceType::CU_DEV_RESOURCE_TYPE_INVALID);
    // SAFETY: what the arguments point to is this test's.
    let too_many =
        unsafe { green::cuDevSmResourceSplitByCount(result, &mut n_groups, &all, None.into(), 0, 5) };
    assert_eq!(too_many, Err(Error::InvalidResourceConfiguration));

    let mut made_up =
        CUdevResource { type_: CUdevResourceType::CU_DEV_RESOURCE_TYPE_SM, ..Default::default() };
    let mut description: CUdevResourceDesc = core::ptr::null_mut();
    // SAFETY: what the arguments point to is this test's.
    let answer = unsafe { green::cuDevResourceGenerateDesc((&mut description).into(), &mut made_up, 1) };
    assert_eq!(answer, Err(Error::InvalidResourceConfiguration));
    // SAFETY: what the arguments point to is this test's.
    unsafe { green::cuDevResourceGenerateDesc((&mut description).into(), &mut all, 1) }.unwrap();
    let mut green_context: CUgreenCtx = core::ptr::null_mut();
    let other = green::cuGreenCtxCreate((&mut green_context).into(), description, 1, 1);
    assert_eq!(other.unwrap_err().result(), CUresult::CUDA_ERROR_INVALID_VALUE, "another device's");
    green::cuGreenCtxCreate((&mut green_context).into(), description, 0, 1).unwrap();

    let mut own: CUstream = core::ptr::null_mut();
    assert!(green::cuGreenCtxStreamCreate((&mut own).into(), green_context, 0, 0).is_err(), "blocking");
    green::cuGreenCtxStreamCreate((&mut own).into(), green_context, 1, 0).unwrap();
    let mut plain: CUstream = core::ptr::null_mut();
    stream::cuStreamCreate((&mut plain).into(), 0).unwrap();
    let of = |stream| {
        let mut found: CUgreenCtx = core::ptr::null_mut();
        green::cuStreamGetGreenCtx(stream, (&mut found).into()).map(|()| found)
    };
    assert_eq!((of(own), of(plain)), (Ok(green_context), Ok(core::ptr::null_mut())));

    let mut primary: CUcontext = core::ptr::null_mut();
    green::cuCtxFromGreenCtx((&mut primary).into(), green_context).unwrap();
    context::cuCtxPushCurrent_v2(primary).unwrap();
    let mut mark: CUevent = core::ptr::null_mut();
    event::cuEventCreate((&mut mark).into(), 0).unwrap();
    context::cuCtxPopCurrent_v2(None.into()).unwrap();
    green::cuGreenCtxRecordEvent(green_context, mark).unwrap();
    green::cuGreenCtxWaitEvent(green_context, mark).unwrap();
    green::cuCtxWaitEvent(primary, mark).unwrap();
    green::cuGreenCtxDestroy(green_context).unwrap();
    assert_eq!(green::cuGreenCtxDestroy(green_context), Err(Error::InvalidContext));
    let answer = green::cuCtxFromGreenCtx((&mut primary).into(), green_context);
    assert_eq!(answer, Err(Error::InvalidContext));
}

#[test]
fn groups_of_a_split_take_everything_or_are_not_possible() {
    let _scope = scope();
    let all = all_of(0);
    let wanted = |count| CU_DEV_SM_RESOURCE_GROUP_PARAMS { smCount: count, ..Default::default() };
    let split = |groups: &mut [CU_DEV_SM_RESOURCE_GROUP_PARAMS], result: *mut CUdevResource| {
        let n_groups = groups.len() as c_uint;
        // SAFETY: what the arguments point to is this test's.
        unsafe { green::cuDevSmResourceSplit(result, n_groups, &all, None.into(), 0, groups.as_mut_ptr()) }
    };
    let mut part = CUdevResource::default();
    let mut found_out = [wanted(0)];
    split(&mut found_out, &mut part).unwrap();
    assert_eq!((found_out[0].smCount, count(&part)), (4, 4));
    assert_eq!(split(&mut [wanted(2)], &mut part), Err(Error::InvalidResourceConfiguration));
    let mut two = [wanted(4), wanted(0)];
    split(&mut two, core::ptr::null_mut()).unwrap();
    assert_eq!((two[0].smCount, two[1].smCount), (4, 0));
    let mut parts = [part; 2];
    let answer = split(&mut [wanted(4), wanted(0)], parts.as_mut_ptr());
    assert_eq!(answer, Err(Error::InvalidResourceConfiguration), "an empty group is no result");
}

#[test]
fn a_notification_is_unregistered_once_and_for_its_device() {
    let _scope = scope();
    unsafe extern "C" fn never(_: *mut CUasyncNotificationInfo, _: *mut c_void, _: CUasyncCallbackHandle) {}
    let mut handle: CUasyncCallbackHandle = core::ptr::null_mut();
    let nothing = core::ptr::null_mut();
    notification::cuDeviceRegisterAsyncNotification(0, Some(never), nothing, (&mut handle).into()).unwrap();
    assert!(notification::cuDeviceUnregisterAsyncNotification(1, handle).is_err());
    notification::cuDeviceUnregisterAsyncNotification(0, handle).unwrap();
    assert!(notification::cuDeviceUnregisterAsyncNotification(0, handle).is_err());
}

#[test]
fn atomics_with_the_host_are_native_on_a_cpu() {
    let _scope = scope();
    let operations = [CUatomicOperation::CU_ATOMIC_OPERATION_INTEGER_ADD, CUatomicOperation(99)];
    let mut bits = [0xffff; 2];
    // SAFETY: as many elements as are told, or NULL.
    unsafe { device::cuDeviceGetHostAtomicCapabilities(bits.as_mut_ptr(), operations.as_ptr(), 1, 0) }
        .unwrap();
    // Signed, unsigned, as a reduction, of 32 and of 64 bits.
    assert_eq!(bits, [0b1_1111, 0xffff]);
    // SAFETY: as many elements as are told, or NULL.
    let unknown =
        unsafe { device::cuDeviceGetHostAtomicCapabilities(bits.as_mut_ptr(), operations.as_ptr(), 2, 0) };
    assert_eq!((unknown, bits[1]), (Err(Error::InvalidValue("operations")), 0xffff));
    // SAFETY: as many elements as are told, or NULL.
    let same =
        unsafe { device::cuDeviceGetP2PAtomicCapabilities(bits.as_mut_ptr(), operations.as_ptr(), 1, 0, 0) };
    assert_eq!(same, Err(Error::InvalidDevice));
}

#[test]
fn what_a_provider_or_a_machine_does_not_have_is_refused_after_its_arguments_were_checked() {
    let _scope = scope();
    let not_supported = |answer: Result<(), Error>| {
        assert_eq!(answer.unwrap_err().result(), CUresult::CUDA_ERROR_NOT_SUPPORTED);
    };
    let mut resource: CUgraphicsResource = core::ptr::null_mut();
    not_supported(graphics::cuGraphicsGLRegisterBuffer((&mut resource).into(), 1, 0));
    assert_eq!(
        graphics::cuGraphicsUnregisterResource(resource).unwrap_err().result(),
        CUresult::CUDA_ERROR_INVALID_HANDLE
    );
    let mut granularity = 0;
    let minimum = CUmulticastGranularity_flags::CU_MULTICAST_GRANULARITY_MINIMUM;
    let object = CUmulticastObjectProp::default();
    not_supported(multicast::cuMulticastGetGranularity((&mut granularity).into(), &object, minimum));

    // The null provider has no virtual memory management and no external memory.
    let mut properties = CUmemAllocationProp::default();
    let mut handle = 0;
    assert_eq!(
        virtual_memory::cuMemCreate((&mut handle).into(), 1 << 21, &properties, 0),
        Err(Error::InvalidValue("prop.type"))
    );
    properties.type_ = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    not_supported(virtual_memory::cuMemCreate((&mut handle).into(), 1 << 21, &properties, 0));
    assert_eq!(virtual_memory::cuMemRelease(handle), Err(Error::InvalidValue("handle")));
    assert_eq!(
        virtual_memory::cuMemMap(1 << 40, 1 << 21, 0, handle, 0),
        Err(Error::InvalidValue("ptr or size: not reserved"))
    );
    let mut imported: CUexternalMemory = core::ptr::null_mut();
    let description = CUDA_EXTERNAL_MEMORY_HANDLE_DESC::default();
    not_supported(external::cuImportExternalMemory((&mut imported).into(), &description));
    assert!(external::cuDestroyExternalMemory(imported).is_err());
}

#[test]
fn a_batch_of_prefetches_takes_managed_memory_in_a_named_stream_only() {
    let _scope = scope();
    let mut at = 0;
    memory::cuMemAllocManaged((&mut at).into(), 1 << 20, 1).unwrap();
    let mut stream: CUstream = core::ptr::null_mut();
    stream::cuStreamCreate((&mut stream).into(), 0).unwrap();
    let (mut ranges, mut sizes) = ([at, at + 4096], [4096usize, 4096]);
    let mut location =
        CUmemLocation { type_: CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, ..Default::default() };
    let mut prefetch = |stream, mut start: usize| {
        let (ranges, sizes) = (ranges.as_mut_ptr(), sizes.as_mut_ptr());
        // SAFETY: what the arguments point to is this test's.
        unsafe { memory::cuMemPrefetchBatchAsync(ranges, sizes, 2, &mut location, &mut start, 1, 0, stream) }
    };
    assert_eq!(prefetch(stream, 0), Ok(()));
    assert_eq!(prefetch(stream, 1), Err(Error::InvalidValue("prefetchLocIdxs")));
    assert!(prefetch(core::ptr::null_mut(), 0).is_err());
    // SAFETY: as many elements as are told, or NULL.
    let discarded =
        unsafe { memory::cuMemDiscardBatchAsync(ranges.as_mut_ptr(), sizes.as_mut_ptr(), 2, 0, stream) };
    assert_eq!(discarded, Ok(()));
    ranges[1] = 0x1000;
    // SAFETY: as many elements as are told, or NULL.
    let discarded =
        unsafe { memory::cuMemDiscardBatchAsync(ranges.as_mut_ptr(), sizes.as_mut_ptr(), 2, 0, stream) };
    assert!(discarded.is_err());
}

#[test]
fn neighbouring_reservations_are_given_back_together_but_never_a_part_of_one() {
    let _scope = scope();
    const PIECE: usize = 2 << 20;
    let reserve = |size, wish| {
        let mut at = 0;
        virtual_memory::cuMemAddressReserve((&mut at).into(), size, 0, wish, 0).map(|()| at)
    };
    let first = reserve(PIECE, 0).unwrap();
    let second = reserve(2 * PIECE, first + PIECE as u64).unwrap();
    assert_eq!(second, first + PIECE as u64);
    let free = virtual_memory::cuMemAddressFree;
    for (at, size) in [(first, PIECE / 2), (first, 2 * PIECE), (first + 4096, PIECE), (first, 4 * PIECE)] {
        assert_eq!(free(at, size).unwrap_err().result(), CUresult::CUDA_ERROR_INVALID_VALUE);
    }
    assert_eq!(null::RESERVED.load(Ordering::Relaxed), 3 * PIECE);
    free(first, 3 * PIECE).unwrap();
    assert_eq!(null::RESERVED.load(Ordering::Relaxed), 0);
    assert!(free(second, 2 * PIECE).is_err(), "it went with the first");
}
