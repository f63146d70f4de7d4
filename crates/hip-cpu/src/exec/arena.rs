//! Memory that one OS thread keeps for the blocks it runs: it grows, is reused, and is never cleared.

use std::cell::RefCell;

use super::Fault;
use super::cluster::Cluster;
use super::lane::Resident;
use super::strand::Strand;

/// An anonymous mapping with an unreadable page on either side, so that a wild offset faults instead of corrupting.
#[derive(Default)]
pub struct Mapping {
    base: usize,
    bytes: usize,
}

const PAGE: usize = 4096;
const HUGE_PAGE: usize = 2 << 20;

impl Mapping {
    pub const LEAST_BYTES: usize = 64 << 10;
    /// On either side.
    pub const GUARD_BYTES: usize = PAGE;

    /// Makes room for `bytes`; the contents are undefined afterwards.
    pub fn ensure(&mut self, bytes: u64) -> Result<(), Fault> {
        let wanted = usize::try_from(bytes).map_err(|_| Fault::Memory(bytes))?;
        if wanted <= self.bytes && self.base != 0 {
            return Ok(());
        }
        let size = wanted.max(Self::LEAST_BYTES).checked_next_power_of_two().ok_or(Fault::Memory(bytes))?;
        self.release();
        // SAFETY: a fresh private mapping; the result is checked.
        let at = unsafe {
            let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
            libc::mmap(std::ptr::null_mut(), size + 2 * PAGE, libc::PROT_NONE, flags, -1, 0)
        };
        if at == libc::MAP_FAILED {
            return Err(Fault::Memory(bytes));
        }
        let base = at as usize + PAGE;
        // SAFETY: the middle of the mapping just made.
        if unsafe { libc::mprotect(base as *mut _, size, libc::PROT_READ | libc::PROT_WRITE) } != 0 {
            // SAFETY: as mapped above.
            unsafe { libc::munmap(at, size + 2 * PAGE) };
            return Err(Fault::Memory(bytes));
        }
        if size >= HUGE_PAGE {
            // SAFETY: advice about our own mapping; a refusal costs speed only.
            unsafe { libc::madvise(base as *mut _, size, libc::MADV_HUGEPAGE) };
        }
        (self.base, self.bytes) = (base, size);
        Ok(())
    }

    /// Start of the memory, at a page's start.
    pub fn base(&self) -> *mut u8 {
        self.base as *mut u8
    }

    fn release(&mut self) {
        if self.base != 0 {
            // SAFETY: exactly what `ensure` mapped; no one runs on it (the arena belongs to this thread).
            unsafe { libc::munmap((self.base - PAGE) as *mut _, self.bytes + 2 * PAGE) };
            (self.base, self.bytes) = (0, 0);
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.release();
    }
}

#[derive(Default)]
pub struct Arena {
    pub shared: Mapping,
    pub context: Mapping,
    pub local: Mapping,
    /// Setting `lane`'s blocks, which have memory of their own.
    pub residents: Vec<Resident>,
    /// Setting `simd`'s blocks that wait for others.
    pub strands: Vec<Strand>,
    /// Clusters of several blocks.
    pub clusters: Vec<Cluster>,
}

/// Lends this thread's arena. A kernel run from inside a kernel's service gets a fresh one.
pub fn with<R>(work: impl FnOnce(&mut Arena) -> R) -> R {
    thread_local!(static ARENA: RefCell<Arena> = RefCell::default());
    let mut work = Some(work);
    let taken = ARENA.try_with(|arena| {
        let mut arena = arena.try_borrow_mut().ok()?;
        Some(work.take()?(&mut arena))
    });
    match taken {
        Ok(Some(result)) => result,
        // This thread is ending, or is inside a kernel already.
        _ => work.take().expect("not run yet")(&mut Arena::default()),
    }
}
