//! Every range of memory CUDA handed out or registered: what a pointer is, and how it is given back.
//!
//! A device pointer that lies in no range here is an error before any device sees it.

pub mod low;

use core::ffi::{c_uint, c_void};
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_abi::{CUdeviceptr, CUmemoryPool};
use parking_lot::RwLock;

use super::{Context, Shared};
use crate::{Error, Result};

type Ranges = BTreeMap<u64, Allocation>;

static MEMORY: RwLock<Ranges> = RwLock::new(BTreeMap::new());

/// How a range came to be, which is how it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Device,
    Managed,
    /// Device memory below 2 GiB (`low`).
    Low,
    /// Page-locked memory of ours (`cuMemHostAlloc`).
    Host,
    /// The program's memory, registered.
    Registered,
    /// From a pool, ordered by a stream.
    Pooled,
    /// A module's variable: goes with the module.
    Global {
        managed: bool,
    },
    /// An allocation node's.
    Graph,
    /// Another process's memory, opened by handle.
    Ipc,
    /// A view of memory of `cuMemCreate`'s (`api/virtual_memory.rs`).
    Mapped,
    /// Memory of another API (`api/external.rs`).
    External,
}

#[derive(Clone, Copy)]
pub struct Allocation {
    /// Address under which CUDA knows the range; for host memory the host's.
    pub base: u64,
    pub len_bytes: usize,
    pub kind: Kind,
    pub context: &'static Context,
    context_id: u64,
    /// `CU_POINTER_ATTRIBUTE_BUFFER_ID`, once it is entered.
    pub id: u64,
    /// Flags the program gave when it allocated or registered.
    pub flags: c_uint,
    /// Copies and fills that do not name a stream have ended when they return.
    pub is_synchronous: bool,
    /// The device's address of host memory; equal to `base` for the rest.
    pub device_base: u64,
    pub pool: Shared<CUmemoryPool>,
}

impl Allocation {
    #[must_use]
    pub fn new(base: u64, len_bytes: usize, kind: Kind, context: &'static Context) -> Allocation {
        Allocation {
            base,
            len_bytes,
            kind,
            context,
            context_id: context.id(),
            id: 0,
            flags: 0,
            is_synchronous: false,
            device_base: base,
            pool: Shared(core::ptr::null_mut()),
        }
    }

    /// A range that no context owns: it stays when contexts go.
    #[must_use]
    pub fn of_no_context(base: u64, len_bytes: usize, kind: Kind, device: &'static Context) -> Allocation {
        Allocation { context_id: 0, ..Allocation::new(base, len_bytes, kind, device) }
    }

    pub fn is_host(&self) -> bool {
        matches!(self.kind, Kind::Host | Kind::Registered)
    }

    /// Whether the host waits for a copy or a fill that names no stream: memory that it sees itself, and memory that was
    /// asked to be so.
    pub fn is_waited_for(&self) -> bool {
        self.is_host() || self.is_managed() || self.is_synchronous
    }

    pub fn is_managed(&self) -> bool {
        matches!(self.kind, Kind::Managed | Kind::Global { managed: true })
    }
}

/// A device pointer as HIP takes it.
#[inline]
pub fn raw(pointer: CUdeviceptr) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(pointer as usize)
}

/// A HIP pointer as CUDA gives it.
#[inline]
pub fn device_pointer<T>(pointer: *mut T) -> CUdeviceptr {
    pointer.expose_provenance() as CUdeviceptr
}

pub fn enter(mut allocation: Allocation) {
    static LAST_ID: AtomicU64 = AtomicU64::new(0);
    let mut memory = MEMORY.write();
    // Nobody else is here.
    allocation.id = LAST_ID.load(Ordering::Relaxed) + 1;
    LAST_ID.store(allocation.id, Ordering::Relaxed);
    memory.insert(allocation.base, allocation);
}

/// The range that holds `address`.
pub fn find(address: u64) -> Option<Allocation> {
    holding(&MEMORY.read(), address).copied()
}

fn holding(memory: &Ranges, address: u64) -> Option<&Allocation> {
    let (_, range) = memory.range(..=address).next_back()?;
    (address - range.base < range.len_bytes.max(1) as u64).then_some(range)
}

/// Whether `range` goes on for `len_bytes` from `address` on, which is in it.
fn reaches(memory: &Ranges, range: &Allocation, address: u64, len_bytes: usize) -> bool {
    let left = range.len_bytes - (address - range.base) as usize;
    if len_bytes <= left {
        return true;
    }
    // Views that lie side by side are one range; whether it may be accessed the provider knows.
    let end = address + left as u64;
    let next = memory.get(&end).filter(|next| range.kind == Kind::Mapped && next.kind == Kind::Mapped);
    next.is_some_and(|next| reaches(memory, next, end, len_bytes - left))
}

/// Changes the range that holds `address`; false when there is none.
pub fn change(address: u64, change: impl FnOnce(&mut Allocation)) -> bool {
    let mut memory = MEMORY.write();
    let range = memory.range_mut(..=address).next_back().map(|(_, range)| range);
    range.filter(|range| address - range.base < range.len_bytes.max(1) as u64).map(change).is_some()
}

/// Takes the range that begins at `base` out, if `wanted` agrees.
pub fn take(base: u64, wanted: impl Fn(&Allocation) -> bool) -> Option<Allocation> {
    match MEMORY.write().entry(base) {
        Entry::Occupied(range) if wanted(range.get()) => {
            // Copied where it lies: what `remove` gives was moved just now, and to read that at once stalls.
            let taken = *range.get();
            range.remove();
            Some(taken)
        }
        _ => None,
    }
}

/// Checks that `len_bytes` from `pointer` on are CUDA's: device, managed or page-locked host memory.
///
/// CUDA: an address it does not know, or a range that runs over the end of its allocation, is
/// `CUDA_ERROR_INVALID_VALUE`.
#[inline]
pub fn check(pointer: CUdeviceptr, len_bytes: usize, parameter: &'static str) -> Result {
    check_and(pointer, len_bytes, parameter, |_| ())
}

/// As [`check`], with a look at the range that `pointer` lies in.
#[inline]
pub fn check_and<R>(
    pointer: CUdeviceptr,
    len_bytes: usize,
    parameter: &'static str,
    look: impl FnOnce(&Allocation) -> R,
) -> Result<R> {
    let memory = MEMORY.read();
    match holding(&memory, pointer) {
        Some(range) if reaches(&memory, range, pointer, len_bytes) => Ok(look(range)),
        _ => Err(Error::InvalidValue(parameter)),
    }
}

/// Which of some ranges of `len_bytes` are CUDA's; each of those is checked for its end.
#[inline]
pub fn known<const N: usize>(
    ranges: [(CUdeviceptr, &'static str); N],
    len_bytes: usize,
) -> Result<[bool; N]> {
    let memory = MEMORY.read();
    let mut known = [false; N];
    for (known, (pointer, parameter)) in known.iter_mut().zip(ranges) {
        let Some(range) = holding(&memory, pointer) else { continue };
        if !reaches(&memory, range, pointer, len_bytes) {
            return Err(Error::InvalidValue(parameter));
        }
        *known = true;
    }
    Ok(known)
}

/// Gives back what a context that ends still holds.
pub fn free_all(context_id: u64) {
    let doomed: Vec<Allocation> = {
        let mut memory = MEMORY.write();
        let bases: Vec<u64> =
            memory.values().filter(|range| range.context_id == context_id).map(|range| range.base).collect();
        bases.iter().filter_map(|base| memory.remove(base)).collect()
    };
    for range in doomed {
        // The context ends whatever HIP says.
        let _ = release(&range);
    }
}

/// Gives the range back to HIP; it must be out of the registry already.
pub fn release(range: &Allocation) -> Result {
    let hip = range.context.hip();
    let at = raw(range.base);
    match range.kind {
        // SAFETY: the range left the registry, so this is its only release.
        Kind::Device | Kind::Managed | Kind::Pooled => unsafe { hip.hipFree(at) }?,
        // SAFETY: the range left the registry, so this is its only release.
        Kind::Host => unsafe { hip.hipHostFree(at) }?,
        // SAFETY: the range left the registry, so this is its only release.
        Kind::Registered => unsafe { hip.hipHostUnregister(at) }?,
        // SAFETY: the range left the registry, so this is its only release.
        Kind::Ipc => unsafe { hip.hipIpcCloseMemHandle(at) }?,
        Kind::Low => low::release(range)?,
        // SAFETY: the range left the registry, so this is its only release.
        Kind::External => unsafe { hip.hipFree(at) }?,
        // Unmapping is `cuMemUnmap`'s, and graphs have arenas (`graph::storage`).
        Kind::Global { .. } | Kind::Mapped | Kind::Graph => {}
    }
    Ok(())
}
