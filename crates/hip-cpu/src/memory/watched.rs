//! What the sanitizer knows about memory: what kernels may touch right now, and what was freed not long ago.
//!
//! Kept beside the list of allocations, because `hipFreeAsync` takes an allocation out of that at the call, while kernels
//! that were queued before may use it until the stream has come to it. Does nothing unless `CUDAWAY_SANITIZE` asks.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::{Mutex, RwLock};

use super::{Allocation, Backing};

/// Size by start.
static LIVE: RwLock<BTreeMap<usize, usize>> = RwLock::new(BTreeMap::new());
/// Counts changes of it.
static CHANGES: AtomicU64 = AtomicU64::new(1);
/// Freed, and not given back yet, so that no other allocation gets the same place; oldest first.
static FREED: Mutex<(VecDeque<Allocation>, usize)> = Mutex::new((VecDeque::new(), 0));

/// How much freed memory is held back. Pages of large allocations are given back at once, and only their place is held.
const HELD_BYTES: usize = 256 << 20;
const HELD_COUNT: usize = 1 << 16;

pub fn is_on() -> bool {
    config::get().sanitize
}

pub(crate) fn add(base: usize, bytes: usize) {
    if is_on() {
        LIVE.write().insert(base, bytes);
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

pub(crate) fn remove(base: usize) {
    if is_on() {
        LIVE.write().remove(&base);
        CHANGES.fetch_add(1, Ordering::Release);
    }
}

/// Holds freed memory back; what is to be given back instead.
pub(super) fn hold(allocation: &Allocation) -> Vec<Allocation> {
    if !is_on() {
        return vec![*allocation];
    }
    remove(allocation.base);
    let cost = |allocation: &Allocation| match allocation.layout {
        Backing::Heap { .. } | Backing::Pages { .. } => allocation.bytes,
        _ => 0,
    };
    if let Backing::Mapped { base, bytes } = allocation.layout {
        // SAFETY: a mapping of ours that nobody uses any more; a refusal costs memory only.
        unsafe { libc::madvise(base as *mut _, bytes, libc::MADV_DONTNEED) };
    }
    let mut freed = FREED.lock();
    let (queue, held) = &mut *freed;
    queue.push_back(*allocation);
    *held += cost(allocation);
    let mut out = vec![];
    while *held > HELD_BYTES || queue.len() > HELD_COUNT {
        let Some(oldest) = queue.pop_front() else { break };
        *held -= cost(&oldest);
        out.push(oldest);
    }
    out
}

/// Whether the whole range lies in one allocation.
pub fn is_live(address: usize, bytes: usize) -> bool {
    thread_local! {
        /// The allocation found last, and when.
        static LAST: Cell<(u64, usize, usize)> = const { Cell::new((0, 0, 0)) };
    }
    let now = CHANGES.load(Ordering::Acquire);
    let fits = |base: usize, size: usize| {
        address >= base && address - base < size && bytes <= size - (address - base)
    };
    let (when, base, size) = LAST.get();
    if when == now && fits(base, size) {
        return true;
    }
    let live = LIVE.read();
    let Some((&base, &size)) = live.range(..=address).next_back() else { return false };
    LAST.set((now, base, size));
    // Views side by side are one range.
    fits(base, size)
        || super::find(address)
            .is_some_and(|it| it.kind == super::Kind::Mapped && super::range(address, bytes).is_ok())
}

/// The live allocation that is nearest: start and size.
pub fn nearest(address: usize) -> Option<(usize, usize)> {
    let live = LIVE.read();
    let below = live.range(..=address).next_back().map(|(&base, &bytes)| (base, bytes));
    let above = live.range(address..).next().map(|(&base, &bytes)| (base, bytes));
    let distance = |(base, bytes): (usize, usize)| match address < base {
        true => base - address,
        false => address.saturating_sub(base + bytes),
    };
    [below, above].into_iter().flatten().min_by_key(|&it| distance(it))
}

/// The freed allocation that held the address last: start and size.
pub fn freed(address: usize) -> Option<(usize, usize)> {
    let freed = FREED.lock();
    let inside = |it: &&Allocation| address >= it.base && address - it.base < it.bytes;
    freed.0.iter().rev().find(inside).map(|it| (it.base, it.bytes))
}
