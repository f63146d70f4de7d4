//! Memory that transforms work in: one piece per thread, which stays for the next transform, and work areas of plans.

use std::alloc::{Layout, alloc, dealloc};
use std::cell::Cell;
use std::ptr::NonNull;

use num_complex::Complex;

use crate::error::{Error, Result};

/// A cache line, and a vector of AVX-512.
const ALIGNMENT: usize = 64;

/// What a thread keeps between transforms, in bytes.
const KEPT: usize = 16 << 20;

/// Memory without a meaning.
pub(crate) struct Area {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: it is memory and nothing else.
unsafe impl Send for Area {}
// SAFETY: as above; whoever writes through `start` sees to it.
unsafe impl Sync for Area {}

impl Area {
    const NONE: Self = Self { start: NonNull::dangling(), bytes: 0 };

    pub(crate) fn new(bytes: usize) -> Result<Self> {
        if bytes == 0 {
            return Ok(Self::NONE);
        }
        let failed = Error::AllocFailed(bytes);
        let layout = Layout::from_size_align(bytes, ALIGNMENT).map_err(|_| failed)?;
        // SAFETY: the size is not 0.
        let start = NonNull::new(unsafe { alloc(layout) }).ok_or(failed)?;
        Ok(Self { start, bytes })
    }

    pub(crate) fn start<T>(&self) -> *mut T {
        self.start.as_ptr().cast()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Area {
    fn drop(&mut self) {
        if self.bytes > 0 {
            // SAFETY: `new` allocated it with this layout.
            unsafe { dealloc(self.start.as_ptr(), Layout::from_size_align_unchecked(self.bytes, ALIGNMENT)) };
        }
    }
}

thread_local! {
    static MINE: Cell<Area> = const { Cell::new(Area::NONE) };
}

/// Calls `work` with `count` numbers of this thread's memory, whose values mean nothing.
pub(crate) fn with<T, R>(count: usize, work: impl FnOnce(*mut Complex<T>) -> R) -> Result<R> {
    let bytes = count.checked_mul(size_of::<Complex<T>>()).ok_or(Error::InvalidSize("n"))?;
    if bytes == 0 {
        // Whoever works without it may call others that need it.
        return Ok(work(NonNull::dangling().as_ptr()));
    }
    let mut area = MINE.replace(Area::NONE);
    if area.bytes < bytes {
        drop(area);
        area = Area::new(bytes)?;
    }
    let result = work(area.start());
    if area.bytes <= KEPT {
        MINE.set(area);
    }
    Ok(result)
}
