//! Stream Ordered Memory Allocator.
//!
//! HIP differs: providers without `hipMallocAsync` get the same order from plain allocations: memory is there at
//! once, and goes back when an event recorded behind its last use has been reached.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use border::Out;
use cuda_abi::{
    CUdevice, CUdeviceptr, CUmemAccess_flags, CUmemAccessDesc, CUmemAllocationHandleType,
    CUmemAllocationType, CUmemLocation, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps,
    CUmemPoolPtrExportData, CUmemoryPool, CUstream,
};
use hip_sys::{
    HipError, hipErrorNotReady, hipEvent_t, hipEventDisableTiming, hipMemAllocationTypePinned,
    hipMemLocation, hipMemLocationTypeDevice, hipMemPool_t, hipMemPoolProps, hipMemPoolPtrExportData,
};
use parking_lot::Mutex;

use crate::handle::Registry;
use crate::object::graph::capture::captured_into;
use crate::object::graph::{Block, Op, Params, Site};
use crate::object::memory::{self, Allocation, Kind, device_pointer, raw};
use crate::object::{Context, Device, Shared, Stream, location};
use crate::{Error, Result};

static POOLS: Registry<Arc<Pool>, CUmemoryPool> = Registry::new(9);

/// A pool: accounting and settings; the memory itself comes from the provider, for a pool that processes share from a pool of its.
struct Pool {
    device: &'static Device,
    is_default: bool,
    /// The provider's pool, where processes share it; else null.
    hip: Shared<hipMemPool_t>,
    /// Another process can have it: only then its pointers can be exported, as NVIDIA's driver has it.
    was_exported: AtomicBool,
    reuse: [AtomicU64; 3],
    release_threshold: AtomicU64,
    /// Bytes it may give out together.
    most: u64,
    used: AtomicU64,
    used_high: AtomicU64,
}

/// Each device's default pool, and the pool that `cuMemAllocAsync` takes.
struct OfDevice {
    default: CUmemoryPool,
    current: Mutex<Shared<CUmemoryPool>>,
}

// SAFETY: a handle is a number.
unsafe impl Send for OfDevice {}
// SAFETY: as above.
unsafe impl Sync for OfDevice {}

impl Pool {
    /// `max_size` 0 leaves the bound to the device.
    fn make(
        device: &'static Device,
        is_default: bool,
        hip: hipMemPool_t,
        max_size: usize,
    ) -> Result<CUmemoryPool> {
        let pool = Pool {
            device,
            is_default,
            hip: Shared(hip),
            was_exported: AtomicBool::new(false),
            reuse: [const { AtomicU64::new(1) }; 3],
            release_threshold: AtomicU64::new(0),
            most: if max_size == 0 { u64::MAX } else { max_size as u64 },
            used: AtomicU64::new(0),
            used_high: AtomicU64::new(0),
        };
        POOLS.insert(Arc::new(pool)).ok_or(Error::OutOfMemory)
    }

    fn from_handle(handle: CUmemoryPool) -> Result<Arc<Pool>> {
        crate::process::driver()?;
        POOLS.get(handle).ok_or(Error::InvalidValue("pool"))
    }

    /// Counts memory that is about to be allocated, if the pool may give so much.
    fn add(&self, len_bytes: usize) -> Result {
        let sum = |used: u64| used.checked_add(len_bytes as u64).filter(|&sum| sum <= self.most);
        let before = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
        let before = before.map_err(|_| Error::OutOfMemory)?;
        self.used_high.fetch_max(before + len_bytes as u64, Ordering::Relaxed);
        Ok(())
    }

    fn subtract(&self, len_bytes: usize) {
        self.used.fetch_sub(len_bytes as u64, Ordering::Relaxed);
    }
}

/// Counts memory that was freed, if it came from a pool that is still there.
pub(super) fn count_freed(range: &Allocation) {
    if let Some(pool) = POOLS.get(range.pool.0) {
        pool.subtract(range.len_bytes);
    }
}

fn of_device(device: &'static Device) -> Result<&'static OfDevice> {
    static ALL: OnceLock<Mutex<Vec<(CUdevice, &'static OfDevice)>>> = OnceLock::new();
    let mut all = ALL.get_or_init(|| Mutex::new(Vec::new())).lock();
    if let Some((_, pools)) = all.iter().find(|(ordinal, _)| *ordinal == device.ordinal) {
        return Ok(pools);
    }
    let default = Pool::make(device, true, core::ptr::null_mut(), 0)?;
    // One per device for the process's life.
    let pools: &'static OfDevice =
        Box::leak(Box::new(OfDevice { default, current: Mutex::new(Shared(default)) }));
    all.push((device.ordinal, pools));
    Ok(pools)
}

pub fn cuDeviceGetDefaultMemPool(pool_out: Out<'_, CUmemoryPool>, dev: CUdevice) -> Result {
    pool_out.write(of_device(Device::get(dev)?)?.default);
    Ok(())
}

/// CUDA: to the calls about a device's current pool, unlike others, a device that is not there is an invalid value
/// (measured on driver 580).
fn device_of_pool(dev: CUdevice) -> Result<&'static Device> {
    Device::get(dev).map_err(|error| match error {
        Error::InvalidDevice => Error::InvalidValue("dev"),
        other => other,
    })
}

pub fn cuDeviceGetMemPool(pool: Out<'_, CUmemoryPool>, dev: CUdevice) -> Result {
    pool.write(of_device(device_of_pool(dev)?)?.current.lock().0);
    Ok(())
}

pub fn cuDeviceSetMemPool(dev: CUdevice, pool: CUmemoryPool) -> Result {
    let device = device_of_pool(dev)?;
    if !core::ptr::eq(Pool::from_handle(pool)?.device, device) {
        return Err(Error::InvalidValue("pool: of another device"));
    }
    *of_device(device)?.current.lock() = Shared(pool);
    Ok(())
}

pub fn cuMemPoolCreate(pool: Out<'_, CUmemoryPool>, poolProps: &CUmemPoolProps) -> Result {
    crate::process::driver()?;
    if poolProps.allocType != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED {
        return Err(Error::InvalidValue("poolProps.allocType"));
    }
    if poolProps.location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return Err(Error::NotSupported("cuMemPoolCreate: pools of host memory"));
    }
    // SAFETY: a device location has its number in this member.
    let device = Device::get(unsafe { poolProps.location.__bindgen_anon_1.id })?;
    let hip = if poolProps.handleTypes.0 == 0 { core::ptr::null_mut() } else { shared(device, poolProps)? };
    pool.write(Pool::make(device, false, hip, poolProps.maxSize)?);
    Ok(())
}

/// A pool of the provider's, for other processes to import.
fn shared(device: &'static Device, properties: &CUmemPoolProps) -> Result<hipMemPool_t> {
    let wanted = hipMemPoolProps {
        allocType: hipMemAllocationTypePinned,
        handleTypes: properties.handleTypes.0.cast_signed(),
        location: hipMemLocation { r#type: hipMemLocationTypeDevice, id: device.hip_ordinal },
        win32SecurityAttributes: core::ptr::null_mut(),
        maxSize: properties.maxSize,
        reserved: [0; 56],
    };
    let mut made: hipMemPool_t = core::ptr::null_mut();
    // SAFETY: `made` is writable, the properties readable.
    unsafe { device.hip().hipMemPoolCreate(&mut made, &wanted) }?;
    Ok(made)
}

/// The pool, if processes share it.
fn shared_pool(handle: CUmemoryPool) -> Result<Arc<Pool>> {
    let pool = Pool::from_handle(handle)?;
    if pool.hip.0.is_null() { Err(Error::InvalidValue("pool: made without handle types")) } else { Ok(pool) }
}

/// # Safety
/// `handle_out` is NULL, or has room for a handle of that type.
pub unsafe fn cuMemPoolExportToShareableHandle(
    handle_out: *mut c_void,
    pool: CUmemoryPool,
    handleType: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Result {
    let pool = shared_pool(pool)?;
    let flags = c_uint::try_from(flags).map_err(|_| Error::InvalidValue("flags"))?;
    if handle_out.is_null() || flags != 0 {
        return Err(Error::InvalidValue("handle_out or flags"));
    }
    let (hip, kind) = (pool.device.hip(), handleType.0.cast_signed());
    // SAFETY: the caller's promise: room for a handle of that type; the pool is alive.
    unsafe { hip.hipMemPoolExportToShareableHandle(handle_out, pool.hip.0, kind, flags) }?;
    pool.was_exported.store(true, Ordering::Relaxed);
    Ok(())
}

pub fn cuMemPoolImportFromShareableHandle(
    pool_out: Out<'_, CUmemoryPool>,
    handle: *mut c_void,
    handleType: CUmemAllocationHandleType,
    flags: c_ulonglong,
) -> Result {
    crate::process::driver()?;
    let flags = c_uint::try_from(flags).map_err(|_| Error::InvalidValue("flags"))?;
    let device = match Context::current_raw()? {
        Some(context) => context.device,
        None => Device::get(0)?,
    };
    let mut made: hipMemPool_t = core::ptr::null_mut();
    let kind = handleType.0.cast_signed();
    // SAFETY: `made` is writable; a descriptor is a number.
    unsafe {
        device.hip().hipMemPoolImportFromShareableHandle(&mut made, raw(handle.addr() as u64), kind, flags)
    }?;
    pool_out.write(Pool::make(device, false, made, 0)?);
    Ok(())
}

pub fn cuMemPoolExportPointer(shareData_out: Out<'_, CUmemPoolPtrExportData>, ptr: CUdeviceptr) -> Result {
    crate::process::driver()?;
    let range = memory::find(ptr).filter(|range| range.kind == Kind::Pooled && range.base == ptr);
    let range = range.ok_or(Error::InvalidValue("ptr"))?;
    let pool = shared_pool(range.pool.0)?;
    if !pool.was_exported.load(Ordering::Relaxed) {
        return Err(Error::InvalidValue("ptr: its pool was not exported"));
    }
    let mut data = hipMemPoolPtrExportData { reserved: [0; 64] };
    // SAFETY: `data` is writable; the pointer is the provider's.
    unsafe { pool.device.hip().hipMemPoolExportPointer(&mut data, raw(ptr)) }?;
    shareData_out.write(CUmemPoolPtrExportData { reserved: data.reserved });
    Ok(())
}

/// CUDA: memory of another process's pool; freed here as if allocated here, before it is freed there.
pub fn cuMemPoolImportPointer(
    ptr_out: Out<'_, CUdeviceptr>,
    pool: CUmemoryPool,
    shareData: &CUmemPoolPtrExportData,
) -> Result {
    let handle = pool;
    let pool = shared_pool(handle)?;
    let context = Context::current()?;
    let mut data = hipMemPoolPtrExportData { reserved: shareData.reserved };
    let mut at = core::ptr::null_mut();
    let hip = pool.device.hip();
    // SAFETY: `at` is writable, the data readable.
    unsafe { hip.hipMemPoolImportPointer(&mut at, pool.hip.0, &mut data) }?;
    let (mut start, mut len_bytes) = (core::ptr::null_mut(), 0);
    // SAFETY: both are writable; the pointer is the provider's.
    if unsafe { hip.hipMemGetAddressRange(&mut start, &mut len_bytes, at) }.is_err() {
        len_bytes = 1;
    }
    let mut range = Allocation::new(device_pointer(at), len_bytes, Kind::Pooled, context);
    range.pool = Shared(handle);
    memory::enter(range);
    pool.add(len_bytes)?;
    ptr_out.write(range.base);
    Ok(())
}

/// Memory of the pool that is still in use stays so until it is freed.
pub fn cuMemPoolDestroy(pool: CUmemoryPool) -> Result {
    let object = Pool::from_handle(pool)?;
    // CUDA: the default pool cannot be destroyed.
    if object.is_default {
        return Err(Error::InvalidValue("pool: a default pool"));
    }
    let pools = of_device(object.device)?;
    let mut current = pools.current.lock();
    if current.0 == pool {
        *current = Shared(pools.default);
    }
    drop(current);
    POOLS.remove(pool).ok_or(Error::InvalidValue("pool"))?;
    if object.hip.0.is_null() {
        return Ok(());
    }
    // SAFETY: the pool left the registry, so this is its only destroy.
    Ok(unsafe { object.device.hip().hipMemPoolDestroy(object.hip.0) }?)
}

/// Unused memory is not kept, so there is nothing to trim but what waits for its stream.
pub fn cuMemPoolTrimTo(pool: CUmemoryPool, _minBytesToKeep: usize) -> Result {
    Pool::from_handle(pool)?;
    reap();
    Ok(())
}

/// # Safety
/// `value` is NULL, or a value of the attribute's type.
pub unsafe fn cuMemPoolSetAttribute(
    pool: CUmemoryPool,
    attr: CUmemPool_attribute,
    value: *mut c_void,
) -> Result {
    let pool = Pool::from_handle(pool)?;
    if value.is_null() {
        return Err(Error::InvalidValue("value"));
    }
    // SAFETY: the caller's promise: the value has the attribute's type.
    let int = || u64::from(unsafe { *value.cast::<c_int>() } != 0);
    // SAFETY: the caller's promise: the value has the attribute's type.
    let long = || unsafe { *value.cast::<u64>() };
    match attr {
        CUmemPool_attribute(number @ 1..=3) => {
            pool.reuse[number as usize - 1].store(int(), Ordering::Relaxed)
        }
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => {
            pool.release_threshold.store(long(), Ordering::Relaxed);
        }
        // CUDA: high-water marks can be set back to 0 only.
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
        | CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
            if long() != 0 {
                return Err(Error::InvalidValue("value"));
            }
            pool.used_high.store(pool.used.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        _ => return Err(Error::InvalidValue("attr")),
    }
    Ok(())
}

/// # Safety
/// `value` is NULL, or has room for a value of the attribute's type.
pub unsafe fn cuMemPoolGetAttribute(
    pool: CUmemoryPool,
    attr: CUmemPool_attribute,
    value: *mut c_void,
) -> Result {
    let pool = Pool::from_handle(pool)?;
    if value.is_null() {
        return Err(Error::InvalidValue("value"));
    }
    let long = |answer: &AtomicU64| {
        // SAFETY: the caller's promise: the value has the attribute's type.
        unsafe { value.cast::<u64>().write(answer.load(Ordering::Relaxed)) };
    };
    match attr {
        CUmemPool_attribute(number @ 1..=3) => {
            let answer = pool.reuse[number as usize - 1].load(Ordering::Relaxed);
            // SAFETY: as above.
            unsafe { value.cast::<c_int>().write(c_int::from(answer != 0)) };
        }
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD => long(&pool.release_threshold),
        // Nothing is reserved beyond what is used.
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT
        | CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT => long(&pool.used),
        CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH
        | CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_HIGH => {
            long(&pool.used_high);
        }
        _ => return Err(Error::InvalidValue("attr")),
    }
    Ok(())
}

/// A device always reaches its own pool.
///
/// # Safety
/// `map` is NULL, or has `count` elements.
pub unsafe fn cuMemPoolSetAccess(pool: CUmemoryPool, map: *const CUmemAccessDesc, count: usize) -> Result {
    let pool = Pool::from_handle(pool)?;
    if map.is_null() || count == 0 {
        return Err(Error::InvalidValue("map or count"));
    }
    for index in 0..count {
        // SAFETY: the caller's promise: `count` entries.
        let entry = unsafe { &*map.add(index) };
        if entry.location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
            return Err(Error::InvalidValue("map.location"));
        }
        // SAFETY: a device location has its number in this member.
        let device = Device::get(unsafe { entry.location.__bindgen_anon_1.id })?;
        if !core::ptr::eq(device, pool.device) {
            return Err(Error::NotSupported("cuMemPoolSetAccess: another device"));
        }
    }
    Ok(())
}

pub fn cuMemPoolGetAccess(
    flags: Out<'_, CUmemAccess_flags>,
    memPool: CUmemoryPool,
    location: &CUmemLocation,
) -> Result {
    let pool = Pool::from_handle(memPool)?;
    let device = device_of(location)?;
    flags.write(if core::ptr::eq(device, pool.device) {
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_READWRITE
    } else {
        CUmemAccess_flags::CU_MEM_ACCESS_FLAGS_PROT_NONE
    });
    Ok(())
}

/// The device a location names.
fn device_of(location: &CUmemLocation) -> Result<&'static Device> {
    location::device(location, "location", "memory pools of host memory")
}

/// Pools hold plain device memory.
fn pinned(kind: CUmemAllocationType) -> Result {
    match kind {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => Ok(()),
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED => {
            Err(Error::NotSupported("pools of managed memory"))
        }
        _ => Err(Error::InvalidValue("type")),
    }
}

pub fn cuMemGetDefaultMemPool(
    pool_out: Out<'_, CUmemoryPool>,
    location: &CUmemLocation,
    type_: CUmemAllocationType,
) -> Result {
    pinned(type_)?;
    cuDeviceGetDefaultMemPool(pool_out, device_of(location)?.ordinal)
}

pub fn cuMemGetMemPool(
    pool: Out<'_, CUmemoryPool>,
    location: &CUmemLocation,
    type_: CUmemAllocationType,
) -> Result {
    pinned(type_)?;
    cuDeviceGetMemPool(pool, device_of(location)?.ordinal)
}

pub fn cuMemSetMemPool(location: &CUmemLocation, type_: CUmemAllocationType, pool: CUmemoryPool) -> Result {
    pinned(type_)?;
    cuDeviceSetMemPool(device_of(location)?.ordinal, pool)
}

pub fn cuMemAllocAsync(dptr: Out<'_, CUdeviceptr>, bytesize: usize, hStream: CUstream) -> Result {
    let stream = Stream::from_handle(hStream)?;
    if let Some(address) = captured_allocation(bytesize, hStream)? {
        dptr.write(address);
        return Ok(());
    }
    let pool = of_device(stream.context.device)?.current.lock().0;
    allocate(dptr, bytesize, pool, &stream)
}

pub fn cuMemAllocFromPoolAsync(
    dptr: Out<'_, CUdeviceptr>,
    bytesize: usize,
    pool: CUmemoryPool,
    hStream: CUstream,
) -> Result {
    Pool::from_handle(pool)?;
    if let Some(address) = captured_allocation(bytesize, hStream)? {
        dptr.write(address);
        return Ok(());
    }
    allocate(dptr, bytesize, pool, &Stream::from_handle(hStream)?)
}

/// In a captured stream an allocation is a node, whose address is known at once.
fn captured_allocation(len_bytes: usize, stream: CUstream) -> Result<Option<CUdeviceptr>> {
    let mut address = None;
    let is_captured = captured_into(stream, |site| {
        let block = Block::allocate(Stream::from_handle(stream)?.context, len_bytes, site)?;
        address = Some(block.address);
        Ok(alloc_op(block))
    })?;
    Ok(address.filter(|_| is_captured))
}

/// A graph's node that hands its memory out.
pub(crate) fn alloc_op(block: Arc<Block>) -> Arc<Op> {
    Op::new(Params::Alloc(block), |params, _| match params {
        Params::Alloc(block) => block.hand_out(),
        _ => Ok(()),
    })
}

/// A graph's node that takes an allocation node's memory back.
pub(crate) fn free_op(address: CUdeviceptr, graph: u32) -> Result<Arc<Op>> {
    // CUDA: an address that no allocation node gave is an invalid value.
    let block = Block::at(address).ok_or(Error::InvalidValue("dptr: of no allocation node"))?;
    block.free_in(graph)?;
    Ok(Op::new(Params::Free(block), |params, _| match params {
        Params::Free(block) => block.take_back(),
        _ => Ok(()),
    }))
}

/// In a capture of the same work again the node that was there frees the memory.
fn captured_free(address: CUdeviceptr, site: &Site) -> Result<Arc<Op>> {
    let frees_it = |op: &&Arc<Op>| matches!(&op.params, Params::Free(block) if block.address == address);
    match site.known.as_ref().filter(frees_it) {
        Some(known) => Ok(Arc::clone(known)),
        None => free_op(address, site.graph.id),
    }
}

fn allocate(dptr: Out<'_, CUdeviceptr>, len_bytes: usize, handle: CUmemoryPool, stream: &Stream) -> Result {
    let pool = Pool::from_handle(handle)?;
    if len_bytes == 0 {
        return Err(Error::InvalidValue("bytesize"));
    }
    if !core::ptr::eq(pool.device, stream.context.device) {
        return Err(Error::InvalidValue("pool: of another device than the stream"));
    }
    pool.add(len_bytes)?;
    let at = take(&pool, len_bytes, stream).inspect_err(|_| pool.subtract(len_bytes))?;
    let mut range = Allocation::new(device_pointer(at), len_bytes, Kind::Pooled, stream.context);
    range.pool = Shared(handle);
    memory::enter(range);
    dptr.write(range.base);
    Ok(())
}

/// Memory of the provider's.
fn take(pool: &Pool, len_bytes: usize, stream: &Stream) -> Result<*mut c_void> {
    let hip = stream.hip();
    let mut at = core::ptr::null_mut();
    if !pool.hip.0.is_null() {
        // SAFETY: `at` is writable; pool and stream are alive.
        unsafe { hip.hipMallocFromPoolAsync(&mut at, len_bytes, pool.hip.0, stream.hip.0) }?;
    } else if hip.has("hipMallocAsync") {
        // SAFETY: `at` is writable; the stream is alive.
        unsafe { hip.hipMallocAsync(&mut at, len_bytes, stream.hip.0) }?;
    } else {
        reap();
        // SAFETY: `at` is writable.
        unsafe { hip.hipMalloc(&mut at, len_bytes) }?;
    }
    Ok(at)
}

/// Frees memory when the stream gets there; also memory that `cuMemAlloc` gave.
pub fn cuMemFreeAsync(dptr: CUdeviceptr, hStream: CUstream) -> Result {
    let stream = Stream::from_handle(hStream)?;
    if captured_into(hStream, |site| captured_free(dptr, site))? || dptr == 0 {
        return Ok(());
    }
    if let Some(block) = Block::at(dptr) {
        return block.free_behind(&stream);
    }
    let freeable = |range: &Allocation| matches!(range.kind, Kind::Device | Kind::Pooled);
    let range = memory::take(dptr, freeable).ok_or(Error::InvalidValue("dptr"))?;
    count_freed(&range);
    let hip = stream.hip();
    if range.kind == Kind::Pooled && hip.has("hipFreeAsync") {
        // SAFETY: the range left the registry, so this is its only release; the stream is alive.
        return Ok(unsafe { hip.hipFreeAsync(raw(dptr), stream.hip.0) }?);
    }
    reap();
    let mut event: hipEvent_t = core::ptr::null_mut();
    // SAFETY: `event` is writable; the stream is alive.
    unsafe { hip.hipEventCreateWithFlags(&mut event, hipEventDisableTiming) }?;
    // SAFETY: as above.
    unsafe { hip.hipEventRecord(event, stream.hip.0) }?;
    WAITING.lock().push(Waiting { range, event: Shared(event), context: stream.context });
    Ok(())
}

/// Memory that goes back once its event has been reached.
struct Waiting {
    range: Allocation,
    event: Shared<hipEvent_t>,
    context: &'static Context,
}

/// Bounded by the frees a program queues without waiting; every allocation and free looks through it.
static WAITING: Mutex<Vec<Waiting>> = Mutex::new(Vec::new());

/// Releases what no stream uses any more.
fn reap() {
    let done: Vec<Waiting> = {
        let mut waiting = WAITING.lock();
        let is_done = |entry: &mut Waiting| {
            // SAFETY: the event is alive until it is taken from the list.
            let answer = unsafe { entry.context.hip().hipEventQuery(entry.event.0) };
            !matches!(answer, Err(HipError::Code { code, .. }) if code == hipErrorNotReady)
        };
        waiting.extract_if(.., is_done).collect()
    };
    for Waiting { range, event, context } in done {
        // SAFETY: the event just left the list. What HIP says changes nothing: the memory is done with.
        let _ = unsafe { context.hip().hipEventDestroy(event.0) };
        let _ = memory::release(&range);
    }
}
