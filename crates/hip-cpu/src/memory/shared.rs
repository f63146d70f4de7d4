//! Allocations that other processes see: those that were asked about (`hipIpcGetMemHandle`), those of shared pools, and the views
//! of other processes' memory here.
//!
//! An allocation is private memory until somebody asks to share it; its pages then move into a file, at the same addresses. Lock
//! order: `SHARED` and a pool's extents are taken alone.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use hip_sys::*;
use parking_lot::Mutex;

use super::mapped;
use super::{ALL, Allocation, Backing, Kind, NEXT_ID, PAGE, USED, take_from_the_device, watched};
use crate::error::Result;
use crate::ticket::{self, Ticket};
use std::sync::atomic::Ordering;

/// The files of allocations of ours that were shared, by start of the allocation.
static SHARED: Mutex<BTreeMap<usize, OwnedFd>> = Mutex::new(BTreeMap::new());

/// The pages that an allocation has for itself: start and size.
fn pages(allocation: &Allocation) -> Option<(usize, usize)> {
    match allocation.layout {
        Backing::Pages { start, bytes } => Some((start, bytes)),
        // It begins at a page, and its mapping has room behind it.
        Backing::Mapped { .. } => Some((allocation.base, allocation.bytes.next_multiple_of(PAGE))),
        _ => None,
    }
}

/// What another process opens the allocation by. No work may be using it meanwhile.
pub fn share(allocation: &Allocation) -> Result<Ticket> {
    let (start, bytes) = pages(allocation).ok_or(hipErrorNotSupported)?;
    let mut shared = SHARED.lock();
    let file = match shared.entry(allocation.base) {
        Entry::Occupied(shared) => shared.into_mut(),
        Entry::Vacant(place) => {
            let file = mapped::file(bytes)?;
            move_into(&file, start, bytes)?;
            place.insert(file)
        }
    };
    Ticket::new(ticket::Kind::Memory, file, allocation.base - start, allocation.bytes)
}

fn move_into(file: &OwnedFd, start: usize, bytes: usize) -> Result {
    let copy = mapped::view_anywhere(file, 0, bytes)?;
    // SAFETY: pages that are the allocation's own, into a mapping of the same size made just now.
    unsafe {
        (copy as *mut u8).copy_from_nonoverlapping(start as *const u8, bytes);
        libc::munmap(copy as *mut _, bytes);
    }
    let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED | libc::MAP_FIXED);
    // SAFETY: the pages are the allocation's own, and hold the same bytes afterwards.
    let at = unsafe { libc::mmap(start as *mut _, bytes, protection, flags, file.as_raw_fd(), 0) };
    if at == libc::MAP_FAILED { Err(hipErrorOutOfMemory) } else { Ok(()) }
}

/// The allocation goes: its pages are private again, so that they can be given back as they were got, but for a mapping's, which goes
/// as it is. Whether it was shared.
pub(super) fn unshare(allocation: &Allocation) -> bool {
    let Some(file) = SHARED.lock().remove(&allocation.base) else { return false };
    drop(file);
    if let Backing::Pages { start, bytes } = allocation.layout {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the allocation's own pages, which nobody uses any more.
        unsafe { libc::mmap(start as *mut _, bytes, protection, flags, -1, 0) };
    }
    true
}

/// Shows another process's memory here.
pub fn open(file: &OwnedFd, ticket: &Ticket, pool: usize) -> Result<Allocation> {
    let wrong = |_| hipErrorInvalidValue;
    let offset = usize::try_from(ticket.offset).map_err(wrong)?;
    let bytes = usize::try_from(ticket.bytes).map_err(wrong)?;
    let first = offset / PAGE * PAGE;
    let all = (offset - first + bytes).next_multiple_of(PAGE);
    let start = mapped::view_anywhere(file, first, all)?;
    let base = start + (offset - first);
    Ok(enter(base, bytes, pool, Backing::View { start, bytes: all }))
}

/// Shows memory of another API here; it stays mapped when the allocation goes.
pub fn lend(base: usize, bytes: usize) -> Allocation {
    enter(base, bytes, 0, Backing::Foreign)
}

fn enter(base: usize, bytes: usize, pool: usize, layout: Backing) -> Allocation {
    let id = NEXT_ID.fetch_add(1, Ordering::Relaxed);
    let (kind, flags, is_global) = (Kind::Device, 0, false);
    let allocation = Allocation { base, bytes, kind, flags, id, pool, is_global, layout };
    ALL.write().insert(base, allocation);
    watched::add(base, bytes);
    allocation
}

/// Whether it is another process's memory.
pub fn is_view(allocation: &Allocation) -> bool {
    matches!(allocation.layout, Backing::View { .. })
}

/// The file of a pool that processes share, and what of it is free.
pub struct Store {
    pub file: OwnedFd,
    /// Bytes by offset, and the length of the file.
    free: Mutex<(BTreeMap<usize, usize>, usize)>,
}

/// Stores by number, for the allocations in them.
static STORES: Mutex<BTreeMap<usize, Arc<Store>>> = Mutex::new(BTreeMap::new());

impl Store {
    pub fn create() -> Result<Arc<Store>> {
        Ok(Arc::new(Store { file: mapped::file(0)?, free: Mutex::default() }))
    }

    /// Another process's: nothing is allocated in it here.
    pub fn import(descriptor: i32) -> Result<Arc<Store>> {
        Ok(Arc::new(Store { file: mapped::duplicate(descriptor)?, free: Mutex::default() }))
    }

    pub fn allocate(self: &Arc<Store>, bytes: usize, pool: usize) -> Result<Allocation> {
        let all = bytes.checked_next_multiple_of(PAGE).ok_or(hipErrorOutOfMemory)?;
        take_from_the_device(bytes)?;
        let made = self.take(all).and_then(|offset| {
            let start = mapped::view_anywhere(&self.file, offset, all)?;
            Ok((offset, start))
        });
        let (offset, start) = made.inspect_err(|_| {
            USED.fetch_sub(bytes, Ordering::Relaxed);
        })?;
        let store = Arc::as_ptr(self) as usize;
        STORES.lock().entry(store).or_insert_with(|| self.clone());
        Ok(enter(start, bytes, pool, Backing::Stored { store, offset, bytes: all }))
    }

    /// A free part, the first that is large enough; else the file grows.
    fn take(&self, bytes: usize) -> Result<usize> {
        let mut free = self.free.lock();
        let (parts, length) = &mut *free;
        if let Some((offset, size)) =
            parts.iter().find(|(_, size)| **size >= bytes).map(|(offset, size)| (*offset, *size))
        {
            parts.remove(&offset);
            if size > bytes {
                parts.insert(offset + bytes, size - bytes);
            }
            return Ok(offset);
        }
        let offset = *length;
        mapped::grow(&self.file, offset.checked_add(bytes).ok_or(hipErrorOutOfMemory)?)?;
        *length += bytes;
        Ok(offset)
    }

    fn put_back(&self, offset: usize, bytes: usize) {
        let hole = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        if let (Ok(at), Ok(size)) = (libc::off_t::try_from(offset), libc::off_t::try_from(bytes)) {
            // SAFETY: a part of a file of ours that nobody uses; a refusal costs memory only.
            unsafe { libc::fallocate(self.file.as_raw_fd(), hole, at, size) };
        }
        let mut free = self.free.lock();
        let parts = &mut free.0;
        let after = parts.remove(&(offset + bytes)).unwrap_or(0);
        let before = parts.range(..offset).next_back().map(|(start, size)| (*start, *size));
        match before.filter(|(start, size)| start + size == offset) {
            Some((start, size)) => parts.insert(start, size + bytes + after),
            None => parts.insert(offset, bytes + after),
        };
    }
}

/// What another process opens an allocation of a shared pool by.
pub fn pointer_ticket(allocation: &Allocation) -> Result<Ticket> {
    let Backing::Stored { store, offset, .. } = allocation.layout else { return Err(hipErrorInvalidValue) };
    let store = STORES.lock().get(&store).cloned().ok_or(hipErrorInvalidValue)?;
    Ticket::new(ticket::Kind::PoolPointer, &store.file, offset, allocation.bytes)
}

/// Gives an allocation of a store back.
pub(super) fn give_back(store: usize, offset: usize, bytes: usize) {
    let found = STORES.lock().get(&store).cloned();
    if let Some(found) = found {
        found.put_back(offset, bytes);
    }
}

/// The pool is gone: its store goes with its last allocation's process end. Bound: shared pools that were destroyed in use.
pub fn forget_store(store: &Arc<Store>) {
    let number = Arc::as_ptr(store) as usize;
    let in_use =
        ALL.read().values().any(|it| matches!(it.layout, Backing::Stored { store, .. } if store == number));
    if !in_use {
        STORES.lock().remove(&number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory;

    #[test]
    fn sharing_keeps_address_and_contents_for_small_and_large() {
        for bytes in [40, 5000, 3 << 20] {
            let a = memory::allocate(bytes, Kind::Device, 0).unwrap();
            let words = a.base as *mut u32;
            // SAFETY: inside the allocation.
            unsafe { words.add(bytes / 4 - 1).write(0xfeed) };
            let ticket = share(&a).unwrap();
            assert_eq!(share(&a), Ok(ticket), "the second time it is the same file");
            // SAFETY: as above.
            assert_eq!(unsafe { words.add(bytes / 4 - 1).read() }, 0xfeed);
            let file = SHARED.lock().get(&a.base).unwrap().try_clone().unwrap();
            let b = open(&file, &ticket, 0).unwrap();
            let seen = b.base as *mut u32;
            // SAFETY: both show the same bytes.
            unsafe {
                assert_eq!(seen.add(bytes / 4 - 1).read(), 0xfeed);
                words.write(7);
                assert_eq!(seen.read(), 7);
            }
            for gone in [b, a] {
                memory::release(&memory::take(gone.base, &[Kind::Device]).unwrap());
            }
            assert!(!SHARED.lock().contains_key(&a.base));
        }
    }

    #[test]
    fn a_store_uses_again_what_was_freed() {
        let store = Store::create().unwrap();
        let parts: Vec<_> = (1..=3).map(|n| store.allocate(n * PAGE, 1).unwrap()).collect();
        assert_eq!(store.free.lock().1, 6 * PAGE);
        for part in &parts[..2] {
            memory::release(&memory::take(part.base, &[Kind::Device]).unwrap());
        }
        assert_eq!(*store.free.lock().0.first_key_value().unwrap().1, 3 * PAGE, "neighbours became one");
        let again = store.allocate(3 * PAGE - 5, 1).unwrap();
        assert_eq!(store.free.lock().1, 6 * PAGE, "the file did not grow");
        for gone in [again, parts[2]] {
            memory::release(&memory::take(gone.base, &[Kind::Device]).unwrap());
        }
        forget_store(&store);
    }
}
