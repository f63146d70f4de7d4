//! Device memory is host memory: every allocation with its bounds, so that a bad pointer is an error and not a crash.
//!
//! It begins as zeros, as a GPU's pages do when a process gets them, or with what device memory of this process held before ([`kept`]):
//! what the program's heap held is never seen by kernels.

pub mod kept;
pub mod mapped;
pub mod room;
pub mod shared;
pub mod watched;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use hip_sys::*;
use parking_lot::RwLock;

use crate::device;
use crate::error::Result;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Device,
    /// Pinned by `hipHostMalloc`.
    Host,
    /// The program's own memory, announced by `hipHostRegister`.
    Registered,
    Managed,
    /// A view of memory that `hipMemCreate` made; `flags` is what may be done with it.
    Mapped,
}

#[derive(Clone, Copy, Debug)]
pub struct Allocation {
    pub base: usize,
    pub bytes: usize,
    pub kind: Kind,
    pub flags: u32,
    /// Never used again for another allocation (`HIP_POINTER_ATTRIBUTE_BUFFER_ID`).
    pub id: u64,
    /// Pool it counts to, 0 for none.
    pub pool: usize,
    /// A variable of a module: only unloading the module frees it.
    pub is_global: bool,
    layout: Backing,
}

#[derive(Clone, Copy, Debug)]
enum Backing {
    Heap {
        align: usize,
    },
    /// From the heap too, but with no other allocation in its pages: they can become shared.
    Pages {
        start: usize,
        bytes: usize,
    },
    Mapped {
        base: usize,
        bytes: usize,
    },
    /// Pages of another process's file.
    View {
        start: usize,
        bytes: usize,
    },
    /// A part of a shared pool's file.
    Stored {
        store: usize,
        offset: usize,
        bytes: usize,
    },
    Foreign,
}

static ALL: RwLock<BTreeMap<usize, Allocation>> = RwLock::new(BTreeMap::new());
static USED: AtomicUsize = AtomicUsize::new(0);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

/// How many allocations the program did not free, and their bytes; the variables of modules go with those.
pub fn left() -> (usize, usize) {
    let all = ALL.read();
    let own = all.values().filter(|allocation| !allocation.is_global);
    own.fold((0, 0), |(n, bytes), allocation| (n + 1, bytes + allocation.bytes))
}

/// As on NVIDIA; kernels may count on it. Sizes are rounded up to it as well: a kernel that steps over the end of a
/// small array by less than that harms nobody there, so it must not hit the program's heap here.
const ALIGN: usize = 512;
const HUGE: usize = 2 << 20;
const PAGE: usize = 4096;

/// Counts `bytes` as used, if the device has them.
fn take_from_the_device(bytes: usize) -> Result {
    let total = device::get().memory_bytes;
    let more = |used: usize| used.checked_add(bytes).filter(|&sum| sum <= total);
    let before =
        USED.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).map_err(|_| hipErrorOutOfMemory)?;
    if kept::bytes() > total - before - bytes {
        kept::empty();
    }
    if room::is_there(bytes, before) {
        return Ok(());
    }
    USED.fetch_sub(bytes, Ordering::Relaxed);
    Err(hipErrorOutOfMemory)
}

/// Allocates `bytes` (not 0) of the given kind.
pub fn allocate(bytes: usize, kind: Kind, flags: u32) -> Result<Allocation> {
    allocate_in(bytes, kind, flags, 0, false)
}

pub fn allocate_in(bytes: usize, kind: Kind, flags: u32, pool: usize, is_global: bool) -> Result<Allocation> {
    debug_assert!(bytes > 0 && kind != Kind::Registered);
    // Host memory is not the device's, though it comes out of the same store.
    let counts = kind != Kind::Host;
    if counts {
        take_from_the_device(bytes)?;
    } else if !room::is_there(bytes, USED.load(Ordering::Relaxed)) {
        return Err(hipErrorOutOfMemory);
    }
    let own_pages = kind == Kind::Device && pool == 0 && !is_global;
    let may_be_used = kind == Kind::Device && !is_global;
    let Some((base, layout)) = obtain(bytes, kind, own_pages, may_be_used) else {
        if counts {
            USED.fetch_sub(bytes, Ordering::Relaxed);
        }
        return Err(hipErrorOutOfMemory);
    };
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let allocation = Allocation { base, bytes, kind, flags, id, pool, is_global, layout };
    ALL.write().insert(base, allocation);
    watched::add(base, bytes);
    Ok(allocation)
}

/// How many small allocations may have pages for themselves; each wastes half a page or more.
const MOST_OWN_PAGES: usize = 1 << 14;
static OWN_PAGES: AtomicUsize = AtomicUsize::new(0);

/// A small allocation in pages of its own. Where it begins in its first page changes from one to the next, so that those that
/// are used together do not all fall into the same lines of a cache.
fn in_own_pages(bytes: usize) -> Option<(usize, Backing)> {
    let number = OWN_PAGES.fetch_add(1, Ordering::Relaxed);
    if number >= MOST_OWN_PAGES {
        OWN_PAGES.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    let before = number % (PAGE / ALIGN) * ALIGN;
    let all = (before + bytes).next_multiple_of(PAGE);
    let layout = std::alloc::Layout::from_size_align(all, PAGE).ok()?;
    // SAFETY: the size is not 0.
    let start = unsafe { std::alloc::alloc_zeroed(layout) } as usize;
    if start == 0 {
        OWN_PAGES.fetch_sub(1, Ordering::Relaxed);
        return None;
    }
    Some((start + before, Backing::Pages { start, bytes: all }))
}

/// `may_be_used`: it need not begin as zeros.
fn obtain(bytes: usize, kind: Kind, own_pages: bool, may_be_used: bool) -> Option<(usize, Backing)> {
    if bytes < HUGE / 2 {
        if own_pages && let Some(found) = in_own_pages(bytes) {
            return Some(found);
        }
        let align = if kind == Kind::Host { PAGE } else { ALIGN };
        // SAFETY: the size is not 0.
        let base = unsafe { std::alloc::alloc_zeroed(granules(bytes, align)?) };
        return (!base.is_null()).then_some((base as usize, Backing::Heap { align }));
    }
    // Whole 2 MiB pages, and room to begin at one.
    let mapped = bytes.checked_next_multiple_of(HUGE)?.checked_add(HUGE)?;
    if may_be_used && let Some(base) = kept::take(mapped) {
        return Some((base.next_multiple_of(HUGE), Backing::Mapped { base, bytes: mapped }));
    }
    // SAFETY: a fresh private mapping; the result is checked.
    let at = unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        libc::mmap(std::ptr::null_mut(), mapped, libc::PROT_READ | libc::PROT_WRITE, flags, -1, 0)
    };
    if at == libc::MAP_FAILED {
        return None;
    }
    let base = (at as usize).next_multiple_of(HUGE);
    // SAFETY: advice about our own mapping; a refusal costs speed only.
    unsafe { libc::madvise(base as *mut _, bytes.next_multiple_of(HUGE), libc::MADV_HUGEPAGE) };
    Some((base, Backing::Mapped { base: at as usize, bytes: mapped }))
}

/// What the heap is asked for.
fn granules(bytes: usize, align: usize) -> Option<std::alloc::Layout> {
    std::alloc::Layout::from_size_align(bytes.checked_next_multiple_of(align)?, align).ok()
}

/// Announces memory of the program's own.
pub fn register(base: usize, bytes: usize, flags: u32) -> Result {
    let mut all = ALL.write();
    let end = base.checked_add(bytes).ok_or(hipErrorInvalidValue)?;
    if all.range(..end).next_back().is_some_and(|(_, other)| other.base + other.bytes > base) {
        return Err(hipErrorHostMemoryAlreadyRegistered);
    }
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let layout = Backing::Foreign;
    all.insert(
        base,
        Allocation { base, bytes, kind: Kind::Registered, flags, id, pool: 0, is_global: false, layout },
    );
    watched::add(base, bytes);
    Ok(())
}

/// Takes the allocation that starts at `base` and is one of `kinds` out of the list; the memory stays until
/// [`release`].
pub fn take(base: usize, kinds: &[Kind]) -> Option<Allocation> {
    let mut all = ALL.write();
    let found = all.get(&base).filter(|found| kinds.contains(&found.kind))?;
    let found = *found;
    all.remove(&base);
    if found.kind == Kind::Registered {
        watched::remove(base);
    }
    Some(found)
}

/// Looks at the allocation that starts at `base`.
pub fn at(base: usize) -> Option<Allocation> {
    ALL.read().get(&base).copied()
}

/// Gives the memory of a taken allocation back.
pub fn release(allocation: &Allocation) {
    let is_ours = !matches!(allocation.layout, Backing::View { .. } | Backing::Foreign);
    if is_ours && allocation.kind != Kind::Host {
        USED.fetch_sub(allocation.bytes, Ordering::Relaxed);
    }
    for allocation in watched::hold(allocation) {
        give_back(&allocation);
    }
}

fn give_back(allocation: &Allocation) {
    let was_shared = shared::unshare(allocation);
    match allocation.layout {
        Backing::Pages { start, bytes } => {
            let layout = std::alloc::Layout::from_size_align(bytes, PAGE).expect("as allocated");
            // SAFETY: allocated with this layout and out of the list, so no one frees it again.
            unsafe { std::alloc::dealloc(start as *mut u8, layout) };
            OWN_PAGES.fetch_sub(1, Ordering::Relaxed);
        }
        // SAFETY: exactly what was mapped.
        Backing::View { start, bytes } => unsafe {
            libc::munmap(start as *mut _, bytes);
        },
        Backing::Stored { store, offset, bytes } => {
            // SAFETY: exactly what was mapped; a view of the store begins where its allocation does.
            unsafe { libc::munmap(allocation.base as *mut _, bytes) };
            shared::give_back(store, offset, bytes);
        }
        Backing::Heap { align } => {
            let layout = granules(allocation.bytes, align).expect("as allocated");
            // SAFETY: allocated with this layout and out of the list, so no one frees it again.
            unsafe { std::alloc::dealloc(allocation.base as *mut u8, layout) }
        }
        // With the sanitizer its place was held, and its pages are gone.
        Backing::Mapped { base, bytes }
            if allocation.kind == Kind::Device && !was_shared && !watched::is_on() =>
        {
            kept::keep(base, bytes);
        }
        // SAFETY: exactly what was mapped.
        Backing::Mapped { base, bytes } => unsafe {
            libc::munmap(base as *mut _, bytes);
        },
        Backing::Foreign => {}
    }
}

/// The allocation that holds the address.
pub fn find(address: usize) -> Option<Allocation> {
    let all = ALL.read();
    let (_, found) = all.range(..=address).next_back()?;
    (address - found.base < found.bytes).then_some(*found)
}

/// Bytes of the device in use.
pub fn used() -> usize {
    USED.load(Ordering::Relaxed)
}

/// Whether `bytes` from `address` on are one allocation's, or views side by side; `None` when the address is in no
/// allocation, so the program's own memory. A range that leaves its allocation is an error.
pub fn range(address: usize, bytes: usize) -> Result<Option<Allocation>> {
    may(address, bytes, mapped::ACCESS_READ)
}

/// The same for what will be written.
pub fn target(address: usize, bytes: usize) -> Result<Option<Allocation>> {
    may(address, bytes, mapped::ACCESS_READ_WRITE)
}

fn may(address: usize, bytes: usize, access: u32) -> Result<Option<Allocation>> {
    let Some(found) = find(address) else {
        return if mapped::is_reserved(address) { Err(hipErrorInvalidValue) } else { Ok(None) };
    };
    let end = address.checked_add(bytes).ok_or(hipErrorInvalidValue)?;
    for part in side_by_side(found) {
        if part.kind == Kind::Mapped && part.flags & access != access {
            return Err(hipErrorInvalidValue);
        }
        if end <= part.base + part.bytes {
            return Ok(Some(found));
        }
    }
    Err(hipErrorInvalidValue)
}

/// An allocation, and what belongs to it behind it: only views have such neighbours.
fn side_by_side(first: Allocation) -> impl Iterator<Item = Allocation> {
    std::iter::successors(Some(first), |part| {
        let beside = if part.kind == Kind::Mapped { at(part.base + part.bytes) } else { None };
        beside.filter(|beside| beside.kind == Kind::Mapped)
    })
}

/// How many of `bytes` from `address` on are one allocation's, or views' side by side.
pub fn reach(address: usize, bytes: usize) -> usize {
    let parts = find(address).into_iter().flat_map(side_by_side);
    let mut lengths = parts.map(|part| part.base + part.bytes - address);
    let mut reached = 0;
    while reached < bytes
        && let Some(length) = lengths.next()
    {
        reached = length;
    }
    bytes.min(reached)
}

/// The range is memory that kernels were given.
pub fn device_range(address: usize, bytes: usize) -> Result<Allocation> {
    range(address, bytes)?.ok_or(hipErrorInvalidValue)
}

/// The same for what will be written.
pub fn device_target(address: usize, bytes: usize) -> Result<Allocation> {
    target(address, bytes)?.ok_or(hipErrorInvalidValue)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_of_a_granule_is_nobody_elses() {
        // In pages of its own, and in a pool's part of the heap.
        for pool in [0, 7] {
            let a = allocate_in(40, Kind::Device, 0, pool, false).unwrap();
            let end = match a.layout {
                Backing::Pages { start, bytes } => start + bytes,
                // SAFETY: a block of the heap.
                Backing::Heap { .. } => a.base + unsafe { libc::malloc_usable_size(a.base as *mut _) },
                _ => unreachable!("neither mapped nor foreign"),
            };
            assert!(a.base + ALIGN <= end);
            assert_eq!(a.bytes, 40);
            assert_eq!(range(a.base, 41).unwrap_err(), hipErrorInvalidValue);
            release(&take(a.base, &[Kind::Device]).unwrap());
        }
    }

    #[test]
    fn memory_begins_as_zeros_or_as_device_memory_whatever_the_heap_held() {
        let kinds = [Kind::Device, Kind::Host, Kind::Managed];
        for bytes in [1, 40, 512, 4096, 70_000, 600_000, HUGE / 2, 3 << 20] {
            // What a heap holds that was used: blocks of about the same size, and allocations of before.
            let held: Vec<Vec<u8>> = (0..64).map(|_| vec![0xaa; bytes.next_multiple_of(ALIGN)]).collect();
            drop(held);
            for (kind, pool) in kinds.map(|kind| (kind, 0)).into_iter().chain([(Kind::Device, 7)]) {
                let all: Vec<_> = (0..8).map(|_| allocate_in(bytes, kind, 0, pool, false).unwrap()).collect();
                for allocation in all {
                    // SAFETY: the allocation's own bytes.
                    let own = unsafe { std::slice::from_raw_parts_mut(allocation.base as *mut u8, bytes) };
                    // Large blocks may be some that were freed before, here or by another test; `0xaa` is the heap's.
                    let is_kept = kind == Kind::Device && bytes >= HUGE / 2;
                    let is_fine = |byte: &u8| if is_kept { *byte != 0xaa } else { *byte == 0 };
                    assert!(own.iter().all(is_fine), "{bytes} bytes, {kind:?}");
                    own.fill(0xbb);
                    release(&take(allocation.base, &kinds).unwrap());
                }
            }
        }
    }

    #[test]
    fn bounds_are_exact() {
        let a = allocate(1000, Kind::Device, 0).unwrap();
        assert_eq!(a.base % ALIGN, 0);
        assert!(device_range(a.base + 999, 1).is_ok());
        assert_eq!(device_range(a.base + 999, 2).unwrap_err(), hipErrorInvalidValue);
        assert!(find(a.base + 1000).is_none_or(|other| other.id != a.id));
        assert!(take(a.base + 1, &[Kind::Device]).is_none());
        assert!(take(a.base, &[Kind::Host]).is_none());
        let taken = take(a.base, &[Kind::Device]).unwrap();
        assert!(take(a.base, &[Kind::Device]).is_none());
        // From here on another test's allocation may lie there.
        release(&taken);
    }

    #[test]
    fn large_blocks_start_at_a_huge_page() {
        let a = allocate(5 << 20, Kind::Device, 0).unwrap();
        assert_eq!(a.base % HUGE, 0);
        // SAFETY: the last byte of the allocation.
        unsafe { ((a.base + a.bytes - 1) as *mut u8).write(1) };
        release(&take(a.base, &[Kind::Device]).unwrap());
    }

    #[test]
    fn more_than_the_device_has_is_out_of_memory() {
        let total = device::get().memory_bytes;
        assert_eq!(allocate(total + 1, Kind::Device, 0).unwrap_err(), hipErrorOutOfMemory);
        assert_eq!(allocate(usize::MAX, Kind::Device, 0).unwrap_err(), hipErrorOutOfMemory);
    }

    #[test]
    fn registered_memory_may_not_overlap() {
        let mut own = vec![0u8; 4096];
        let base = own.as_mut_ptr() as usize;
        register(base, 2048, 0).unwrap();
        assert_eq!(register(base + 1024, 2048, 0), Err(hipErrorHostMemoryAlreadyRegistered));
        register(base + 2048, 2048, 0).unwrap();
        for at in [base, base + 2048] {
            take(at, &[Kind::Registered]).unwrap();
        }
    }
}
