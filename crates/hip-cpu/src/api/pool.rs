//! Stream-ordered allocation and memory pools.
//!
//! Memory is there as soon as the call returns, and goes when its stream gets to the free. Pools count what is theirs;
//! they hold nothing back, so a release threshold changes nothing and reserved equals used.

use std::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use border::Out;
use hip_sys::*;
use parking_lot::Mutex;

use crate::device::{self, healthy};
use crate::error::Result;
use crate::handle::Registry;
use crate::memory::shared::{self, Store};
use crate::memory::{self, Allocation, Kind};
use crate::stream::{self, Op};
use crate::ticket::{self, Ticket};

struct Pool {
    used: AtomicUsize,
    high: AtomicUsize,
    threshold: Mutex<u64>,
    /// `hipMemPoolReuse…`, kept for the program; with nothing held back there is nothing to reuse.
    reuse: [Mutex<c_int>; 3],
    is_default: bool,
    /// Where its memory comes from when other processes may see it.
    store: Option<Arc<Store>>,
    /// Made by another process, which alone allocates from it.
    is_imported: bool,
}

static POOLS: Registry<Pool> = Registry::new();
static DEFAULT: LazyLock<usize> = LazyLock::new(|| POOLS.add(Arc::new(Pool::new(true))));
/// What `hipMallocAsync` takes from; 0 is the default pool.
static CURRENT: AtomicUsize = AtomicUsize::new(0);

impl Pool {
    fn new(is_default: bool) -> Pool {
        Pool {
            used: AtomicUsize::new(0),
            high: AtomicUsize::new(0),
            threshold: Mutex::new(0),
            reuse: [Mutex::new(1), Mutex::new(1), Mutex::new(1)],
            is_default,
            store: None,
            is_imported: false,
        }
    }
}

fn current() -> usize {
    match CURRENT.load(Ordering::Acquire) {
        0 => *DEFAULT,
        pool => pool,
    }
}

fn pool(handle: hipMemPool_t) -> Result<Arc<Pool>> {
    POOLS.get(handle as usize).map_err(|_| hipErrorInvalidValue)
}

/// An allocation goes: its pool, if it has one, holds less.
pub fn forget(allocation: &Allocation) {
    if allocation.pool != 0
        && let Ok(pool) = POOLS.get(allocation.pool)
    {
        pool.used.fetch_sub(allocation.bytes, Ordering::Relaxed);
    }
}

pub fn hipMallocFromPoolAsync(
    dev_ptr: Out<'_, *mut c_void>,
    size: usize,
    mem_pool: hipMemPool_t,
    stream: hipStream_t,
) -> Result {
    healthy()?;
    stream::of_handle(stream)?;
    let pool = self::pool(mem_pool)?;
    if size == 0 {
        dev_ptr.write(std::ptr::null_mut());
        return Ok(());
    }
    let allocation = match &pool.store {
        // HIP: memory of an imported pool is imported, not allocated.
        Some(_) if pool.is_imported => return Err(hipErrorInvalidValue),
        Some(store) => store.allocate(size, mem_pool as usize)?,
        None => memory::allocate_in(size, Kind::Device, 0, mem_pool as usize, false)?,
    };
    let used = pool.used.fetch_add(size, Ordering::Relaxed) + size;
    pool.high.fetch_max(used, Ordering::Relaxed);
    dev_ptr.write(allocation.base as *mut c_void);
    Ok(())
}

pub fn hipMallocAsync(dev_ptr: Out<'_, *mut c_void>, size: usize, stream: hipStream_t) -> Result {
    hipMallocFromPoolAsync(dev_ptr, size, current() as hipMemPool_t, stream)
}

pub fn hipFreeAsync(dev_ptr: *mut c_void, stream: hipStream_t) -> Result {
    healthy()?;
    let stream = stream::of_handle(stream)?;
    if dev_ptr.is_null() {
        return Err(hipErrorInvalidValue);
    }
    let is_global = memory::at(dev_ptr as usize).is_some_and(|found| found.is_global);
    if is_global {
        return Err(hipErrorInvalidValue);
    }
    let taken = memory::take(dev_ptr as usize, &[Kind::Device, Kind::Managed]).ok_or(hipErrorInvalidValue)?;
    forget(&taken);
    stream.enqueue(Op::Free(taken));
    Ok(())
}

pub fn hipDeviceGetDefaultMemPool(mem_pool: Out<'_, hipMemPool_t>, device: c_int) -> Result {
    device::check(device)?;
    mem_pool.write(*DEFAULT as hipMemPool_t);
    Ok(())
}

pub fn hipDeviceGetMemPool(mem_pool: Out<'_, hipMemPool_t>, device: c_int) -> Result {
    device::check(device)?;
    mem_pool.write(current() as hipMemPool_t);
    Ok(())
}

pub fn hipDeviceSetMemPool(device: c_int, mem_pool: hipMemPool_t) -> Result {
    device::check(device)?;
    pool(mem_pool)?;
    CURRENT.store(mem_pool as usize, Ordering::Release);
    Ok(())
}

pub fn hipMemPoolCreate(mem_pool: Out<'_, hipMemPool_t>, props: &hipMemPoolProps) -> Result {
    if props.allocType != hipMemAllocationTypePinned || props.location.r#type != hipMemLocationTypeDevice {
        return Err(hipErrorInvalidValue);
    }
    device::check(props.location.id)?;
    let store = match props.handleTypes {
        0 => None,
        DESCRIPTOR => Some(Store::create()?),
        _ => return Err(hipErrorNotSupported),
    };
    mem_pool.write(POOLS.add(Arc::new(Pool { store, ..Pool::new(false) })) as hipMemPool_t);
    Ok(())
}

pub fn hipMemPoolDestroy(mem_pool: hipMemPool_t) -> Result {
    if pool(mem_pool)?.is_default {
        return Err(hipErrorInvalidValue);
    }
    let _ = CURRENT.compare_exchange(mem_pool as usize, 0, Ordering::AcqRel, Ordering::Acquire);
    let pool = POOLS.remove(mem_pool as usize)?;
    if let Some(store) = &pool.store {
        shared::forget_store(store);
    }
    Ok(())
}

/// Nothing is held back.
pub fn hipMemPoolTrimTo(mem_pool: hipMemPool_t, min_bytes_to_hold: usize) -> Result {
    let _ = min_bytes_to_hold;
    pool(mem_pool).map(drop)
}

/// # Safety
/// `value` is NULL, or points to what the attribute is: an `int` for those of reuse, 64 bits for amounts.
pub unsafe fn hipMemPoolSetAttribute(
    mem_pool: hipMemPool_t,
    attr: hipMemPoolAttr,
    value: *mut c_void,
) -> Result {
    let pool = self::pool(mem_pool)?;
    if value.is_null() {
        return Err(hipErrorInvalidValue);
    }
    match attr {
        hipMemPoolReuseFollowEventDependencies
        | hipMemPoolReuseAllowOpportunistic
        | hipMemPoolReuseAllowInternalDependencies => {
            // SAFETY: not NULL; the caller's promise.
            *pool.reuse[attr as usize - 1].lock() = unsafe { value.cast::<c_int>().read() };
        }
        hipMemPoolAttrReleaseThreshold => {
            // SAFETY: as above.
            *pool.threshold.lock() = unsafe { value.cast::<u64>().read() };
        }
        hipMemPoolAttrReservedMemHigh | hipMemPoolAttrUsedMemHigh => {
            // CUDA: a high-water mark can only be reset.
            // SAFETY: as above.
            if unsafe { value.cast::<u64>().read() } != 0 {
                return Err(hipErrorInvalidValue);
            }
            pool.high.store(pool.used.load(Ordering::Relaxed), Ordering::Relaxed);
        }
        _ => return Err(hipErrorInvalidValue),
    }
    Ok(())
}

/// # Safety
/// As [`hipMemPoolSetAttribute`], for what is written.
pub unsafe fn hipMemPoolGetAttribute(
    mem_pool: hipMemPool_t,
    attr: hipMemPoolAttr,
    value: *mut c_void,
) -> Result {
    let pool = self::pool(mem_pool)?;
    if value.is_null() {
        return Err(hipErrorInvalidValue);
    }
    let amount = match attr {
        hipMemPoolReuseFollowEventDependencies
        | hipMemPoolReuseAllowOpportunistic
        | hipMemPoolReuseAllowInternalDependencies => {
            // SAFETY: not NULL; the caller's promise.
            unsafe { value.cast::<c_int>().write(*pool.reuse[attr as usize - 1].lock()) };
            return Ok(());
        }
        hipMemPoolAttrReleaseThreshold => *pool.threshold.lock(),
        hipMemPoolAttrReservedMemCurrent | hipMemPoolAttrUsedMemCurrent => {
            pool.used.load(Ordering::Relaxed) as u64
        }
        hipMemPoolAttrReservedMemHigh | hipMemPoolAttrUsedMemHigh => pool.high.load(Ordering::Relaxed) as u64,
        _ => return Err(hipErrorInvalidValue),
    };
    // SAFETY: as above.
    unsafe { value.cast::<u64>().write(amount) };
    Ok(())
}

/// The only device has access, read and write.
const READ_WRITE: hipMemAccessFlags = 3;

/// # Safety
/// `desc_list` is NULL, or has `count` elements.
pub unsafe fn hipMemPoolSetAccess(
    mem_pool: hipMemPool_t,
    desc_list: *const hipMemAccessDesc,
    count: usize,
) -> Result {
    pool(mem_pool)?;
    if count > 0 && desc_list.is_null() {
        return Err(hipErrorInvalidValue);
    }
    for i in 0..count {
        // SAFETY: the caller's promise.
        let desc = unsafe { desc_list.add(i).read() };
        device::check(desc.location.id)?;
        if desc.flags != READ_WRITE {
            return Err(hipErrorInvalidDevice);
        }
    }
    Ok(())
}

pub fn hipMemPoolGetAccess(
    flags: Out<'_, hipMemAccessFlags>,
    mem_pool: hipMemPool_t,
    location: &hipMemLocation,
) -> Result {
    pool(mem_pool)?;
    device::check(location.id)?;
    flags.write(READ_WRITE);
    Ok(())
}

/// `hipMemHandleTypePosixFileDescriptor`
const DESCRIPTOR: hipMemAllocationHandleType = 1;

/// The descriptor is the program's to pass on and to close.
pub fn hipMemPoolExportToShareableHandle(
    shared_handle: Out<'_, c_int>,
    mem_pool: hipMemPool_t,
    handle_type: hipMemAllocationHandleType,
    flags: c_uint,
) -> Result {
    use std::os::fd::IntoRawFd;
    let pool = pool(mem_pool)?;
    let store = pool.store.as_ref().filter(|_| !pool.is_imported).ok_or(hipErrorInvalidValue)?;
    if handle_type != DESCRIPTOR || flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    shared_handle.write(store.file.try_clone().map_err(|_| hipErrorOutOfMemory)?.into_raw_fd());
    Ok(())
}

/// HIP: the descriptor itself is passed, not a pointer to one.
pub fn hipMemPoolImportFromShareableHandle(
    mem_pool: Out<'_, hipMemPool_t>,
    shared_handle: *mut c_void,
    handle_type: hipMemAllocationHandleType,
    flags: c_uint,
) -> Result {
    healthy()?;
    let descriptor = c_int::try_from(shared_handle as usize).map_err(|_| hipErrorInvalidValue)?;
    if handle_type != DESCRIPTOR || flags != 0 {
        return Err(hipErrorInvalidValue);
    }
    let store = Some(Store::import(descriptor)?);
    mem_pool
        .write(POOLS.add(Arc::new(Pool { store, is_imported: true, ..Pool::new(false) })) as hipMemPool_t);
    Ok(())
}

pub fn hipMemPoolExportPointer(
    export_data: Out<'_, hipMemPoolPtrExportData>,
    dev_ptr: *mut c_void,
) -> Result {
    let found = memory::at(dev_ptr as usize).ok_or(hipErrorInvalidValue)?;
    export_data.write(hipMemPoolPtrExportData { reserved: shared::pointer_ticket(&found)?.write() });
    Ok(())
}

/// The pointer is given back like one that was allocated.
pub fn hipMemPoolImportPointer(
    dev_ptr: Out<'_, *mut c_void>,
    mem_pool: hipMemPool_t,
    export_data: &hipMemPoolPtrExportData,
) -> Result {
    healthy()?;
    let ticket = Ticket::read(ticket::Kind::PoolPointer, &export_data.reserved)?;
    let pool = pool(mem_pool)?;
    let store = pool.store.as_ref().filter(|_| pool.is_imported).ok_or(hipErrorInvalidValue)?;
    // The pool has the file; where it is open in the other process does not matter.
    if !ticket.is_of(&store.file) {
        return Err(hipErrorInvalidValue);
    }
    let opened = shared::open(&store.file, &ticket, mem_pool as usize)?;
    let used = pool.used.fetch_add(opened.bytes, Ordering::Relaxed) + opened.bytes;
    pool.high.fetch_max(used, Ordering::Relaxed);
    dev_ptr.write(opened.base as *mut c_void);
    Ok(())
}
