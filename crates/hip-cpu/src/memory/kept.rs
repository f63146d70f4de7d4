//! Large blocks that were freed, for the next allocation of the same size: the system clears fresh pages when they are first written,
//! which takes longer than what a short sort does with its work area. As on a GPU a block holds what device memory of this process
//! held before.
//!
//! A kept block cannot be read or written, so a kernel that uses freed memory faults as ever.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::device;

/// What is kept at most, and as a part of the device's memory.
const MOST_BYTES: usize = 128 << 20;
const MOST_PART: usize = 64;

/// A mapping: start and size.
type Block = (usize, usize);

/// The oldest first.
static KEPT: Mutex<VecDeque<Block>> = Mutex::new(VecDeque::new());
/// The sum of their sizes, which who holds the lock writes.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Bytes that are given back when somebody needs them.
pub fn bytes() -> usize {
    BYTES.load(Ordering::Relaxed)
}

fn may_be_accessed((base, bytes): Block, protection: i32) -> bool {
    // SAFETY: a mapping of ours that is no allocation's.
    unsafe { libc::mprotect(base as *mut _, bytes, protection) == 0 }
}

fn unmap((base, bytes): Block) {
    // SAFETY: exactly what was mapped, and nobody's.
    unsafe { libc::munmap(base as *mut _, bytes) };
}

/// Takes a private mapping that nobody uses any more, from `base` on; older ones make room for it.
pub(super) fn keep(base: usize, bytes: usize) {
    let most = MOST_BYTES.min(device::get().memory_bytes / MOST_PART);
    if bytes > most || !may_be_accessed((base, bytes), libc::PROT_NONE) {
        return unmap((base, bytes));
    }
    let mut gone = vec![];
    let mut kept = KEPT.lock();
    while bytes + BYTES.load(Ordering::Relaxed) > most
        && let Some(oldest) = kept.pop_front()
    {
        BYTES.fetch_sub(oldest.1, Ordering::Relaxed);
        gone.push(oldest);
    }
    kept.push_back((base, bytes));
    BYTES.fetch_add(bytes, Ordering::Relaxed);
    drop(kept);
    gone.into_iter().for_each(unmap);
}

/// The start of a mapping of this size, the one that was freed last.
pub(super) fn take(bytes: usize) -> Option<usize> {
    let block = {
        let mut kept = KEPT.lock();
        let nth = kept.iter().rposition(|block| block.1 == bytes)?;
        BYTES.fetch_sub(bytes, Ordering::Relaxed);
        kept.remove(nth)?
    };
    if may_be_accessed(block, libc::PROT_READ | libc::PROT_WRITE) {
        return Some(block.0);
    }
    unmap(block);
    None
}

/// Gives all of it back to the system.
pub fn empty() {
    let gone = {
        let mut kept = KEPT.lock();
        BYTES.store(0, Ordering::Relaxed);
        std::mem::take(&mut *kept)
    };
    gone.into_iter().for_each(unmap);
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, allocate, find, release, take as take_allocation};
    use super::*;

    /// Tests that count what is kept.
    static ALONE: Mutex<()> = Mutex::new(());

    fn can_be_read(address: usize) -> bool {
        let mut ends = [0; 2];
        // SAFETY: a pipe of our own; the system looks at the address and answers `EFAULT`.
        unsafe {
            assert_eq!(libc::pipe(ends.as_mut_ptr()), 0);
            let written = libc::write(ends[1], address as *const _, 1);
            ends.iter().for_each(|&end| assert_eq!(libc::close(end), 0));
            written == 1
        }
    }

    #[test]
    fn a_freed_block_comes_back_and_cannot_be_touched_before() {
        let _alone = ALONE.lock();
        // A size that no other test asks for.
        let bytes = 37 << 20;
        let first = allocate(bytes, Kind::Device, 0).unwrap();
        // SAFETY: the allocation's own bytes.
        unsafe { std::ptr::write_bytes(first.base as *mut u8, 1, bytes) };
        release(&take_allocation(first.base, &[Kind::Device]).unwrap());
        assert!(find(first.base).is_none() && !can_be_read(first.base + 5));
        let second = allocate(bytes, Kind::Device, 0).unwrap();
        assert_eq!(second.base, first.base);
        assert_ne!(second.id, first.id);
        // SAFETY: as above.
        unsafe { std::ptr::write_bytes(second.base as *mut u8, 2, bytes) };
        release(&take_allocation(second.base, &[Kind::Device]).unwrap());
        empty();
        // Host memory begins as zeros, so it is never one of these.
        let host = allocate(bytes, Kind::Host, 0).unwrap();
        // SAFETY: as above.
        assert_eq!(unsafe { *(host.base as *const u8) }, 0);
        release(&take_allocation(host.base, &[Kind::Host]).unwrap());
        assert!(take((39 << 20) + (2 << 20)).is_none());
    }

    #[test]
    fn what_is_kept_has_a_bound() {
        let _alone = ALONE.lock();
        let most = MOST_BYTES.min(device::get().memory_bytes / MOST_PART);
        let bytes = most / 3 + (1 << 20);
        let all: Vec<_> = (0..5).map(|_| allocate(bytes, Kind::Device, 0).unwrap()).collect();
        for allocation in all {
            release(&take_allocation(allocation.base, &[Kind::Device]).unwrap());
            assert!(super::bytes() <= most);
        }
        assert!(super::bytes() >= bytes);
        let large = allocate(most + 1, Kind::Device, 0).unwrap();
        release(&take_allocation(large.base, &[Kind::Device]).unwrap());
        assert!(super::bytes() <= most && !can_be_read(large.base));
        empty();
    }
}
