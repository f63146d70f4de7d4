//! Handles: opaque numbers that name our objects and are checked before anything is looked at.
//!
//! A handle is never an address. It holds a tag for its type, a slot number and the slot's generation, so a foreign
//! pointer, a handle of another type and a handle of something destroyed are all told apart from a live one
//! without touching memory behind it.

use core::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use parking_lot::{Mutex, RwLock};

/// Layout of a handle, from bit 0: 3 zero bits (handles look aligned), 24 bits of slot, 16 of generation, 5 of tag.
const SLOT_SHIFT: u32 = 3;
const SLOT_BITS: u32 = 24;
const GENERATION_SHIFT: u32 = SLOT_SHIFT + SLOT_BITS;
const TAG_SHIFT: u32 = GENERATION_SHIFT + 16;

/// Chunk `k` holds `FIRST << k` slots; slots never move.
const FIRST: usize = 64;
const CHUNKS: usize = 18;

struct Slot<T> {
    inner: RwLock<(u16, Option<T>)>,
}

/// The live objects of one C handle type.
pub struct Registry<T, H> {
    tag: u64,
    chunks: [OnceLock<Box<[Slot<T>]>>; CHUNKS],
    free: Mutex<Vec<u32>>,
    n_slots: AtomicU32,
    handle: PhantomData<fn() -> H>,
}

/// What a C handle type is to us: a pointer-sized number.
pub trait Handle: Copy {
    fn from_bits(bits: u64) -> Self;
    fn bits(self) -> u64;
}

impl<O> Handle for *mut O {
    fn from_bits(bits: u64) -> Self {
        core::ptr::without_provenance_mut(bits as usize)
    }
    fn bits(self) -> u64 {
        self.addr() as u64
    }
}

/// `CUmemGenericAllocationHandle`
impl Handle for u64 {
    fn from_bits(bits: u64) -> Self {
        bits
    }
    fn bits(self) -> u64 {
        self
    }
}

impl<T, H: Handle> Registry<T, H> {
    /// `tag` is 1 to 31, one per handle type.
    #[must_use]
    pub const fn new(tag: u8) -> Self {
        assert!(tag > 0 && tag < 32);
        Registry {
            tag: tag as u64,
            chunks: [const { OnceLock::new() }; CHUNKS],
            free: Mutex::new(Vec::new()),
            n_slots: AtomicU32::new(0),
            handle: PhantomData,
        }
    }

    fn slot(&self, index: u32) -> Option<&Slot<T>> {
        let shifted = index as usize + FIRST;
        let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
        self.chunks.get(chunk)?.get()?.get(shifted - (FIRST << chunk))
    }

    fn make_slot(&self, index: u32) -> Option<&Slot<T>> {
        let shifted = index as usize + FIRST;
        let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
        let slots = self
            .chunks
            .get(chunk)?
            .get_or_init(|| (0..FIRST << chunk).map(|_| Slot { inner: RwLock::new((0, None)) }).collect());
        slots.get(shifted - (FIRST << chunk))
    }

    /// Enters an object made with its own handle; `None` when 16 million are alive.
    pub fn insert_with(&self, make: impl FnOnce(H) -> T) -> Option<H> {
        let reused = self.free.lock().pop();
        let index = reused.unwrap_or_else(|| self.n_slots.fetch_add(1, Ordering::Relaxed));
        if index >> SLOT_BITS != 0 {
            return None;
        }
        let mut slot = self.make_slot(index)?.inner.write();
        slot.0 = slot.0.wrapping_add(1);
        let handle = self.name(index, slot.0);
        slot.1 = Some(make(handle));
        Some(handle)
    }

    pub fn insert(&self, object: T) -> Option<H> {
        self.insert_with(|_| object)
    }

    fn find(&self, handle: H) -> Option<(u32, u16, &Slot<T>)> {
        let bits = handle.bits();
        if bits >> TAG_SHIFT != self.tag || bits & ((1 << SLOT_SHIFT) - 1) != 0 {
            return None;
        }
        let index = ((bits >> SLOT_SHIFT) & ((1 << SLOT_BITS) - 1)) as u32;
        let generation = ((bits >> GENERATION_SHIFT) & 0xffff) as u16;
        Some((index, generation, self.slot(index)?))
    }

    /// A copy of the live object, or `None`.
    pub fn get(&self, handle: H) -> Option<T>
    where
        T: Clone,
    {
        let (_, generation, slot) = self.find(handle)?;
        let slot = slot.inner.read();
        if slot.0 == generation { slot.1.clone() } else { None }
    }

    /// What `look` sees in the live object, or `None`. The slot is locked meanwhile, so `look` does little.
    #[inline]
    pub fn with<R>(&self, handle: H, look: impl FnOnce(&T) -> R) -> Option<R> {
        let (_, generation, slot) = self.find(handle)?;
        let slot = slot.inner.read();
        if slot.0 == generation { slot.1.as_ref().map(look) } else { None }
    }

    /// Calls `visit` for every live object, one after the other.
    pub fn for_each(&self, visit: impl Fn(&T)) {
        for index in 0..self.n_slots.load(Ordering::Relaxed) {
            let Some(slot) = self.slot(index) else { continue };
            if let Some(object) = slot.inner.read().1.as_ref() {
                visit(object);
            }
        }
    }

    /// The handle of the first live object that `wanted` picks.
    pub fn find_where(&self, wanted: impl Fn(&T) -> bool) -> Option<H> {
        (0..self.n_slots.load(Ordering::Relaxed)).find_map(|index| {
            let slot = self.slot(index)?.inner.read();
            slot.1.as_ref().is_some_and(&wanted).then(|| self.name(index, slot.0))
        })
    }

    fn name(&self, index: u32, generation: u16) -> H {
        H::from_bits(
            (self.tag << TAG_SHIFT)
                | (u64::from(generation) << GENERATION_SHIFT)
                | (u64::from(index) << SLOT_SHIFT),
        )
    }

    /// Takes the object out: from here on its handle is dead.
    pub fn remove(&self, handle: H) -> Option<T> {
        let (index, generation, slot) = self.find(handle)?;
        let mut slot = slot.inner.write();
        if slot.0 != generation {
            return None;
        }
        let object = slot.1.take()?;
        drop(slot);
        self.free.lock().push(index);
        Some(object)
    }

    /// Takes out every object that `doomed` picks.
    pub fn remove_where(&self, doomed: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for index in 0..self.n_slots.load(Ordering::Relaxed) {
            let Some(slot) = self.slot(index) else { continue };
            let mut slot = slot.inner.write();
            if slot.1.as_ref().is_some_and(&doomed)
                && let Some(object) = slot.1.take()
            {
                drop(slot);
                removed.push(object);
                self.free.lock().push(index);
            }
        }
        removed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type H = *mut u8;

    #[test]
    fn a_live_handle_finds_its_object_and_a_dead_one_nothing() {
        let registry = Registry::<u32, H>::new(1);
        let a = registry.insert(7).unwrap();
        let b = registry.insert(8).unwrap();
        assert_eq!(registry.get(a), Some(7));
        assert_eq!(registry.remove(a), Some(7));
        assert_eq!(registry.get(a), None);
        assert_eq!(registry.remove(a), None);
        let c = registry.insert(9).unwrap();
        assert_ne!(a, c, "the reused slot has a new generation");
        assert_eq!(registry.get(a), None);
        assert_eq!((registry.get(b), registry.get(c)), (Some(8), Some(9)));
    }

    #[test]
    fn foreign_numbers_are_refused() {
        let registry = Registry::<u32, H>::new(1);
        let other = Registry::<u32, H>::new(2);
        let a = registry.insert(7).unwrap();
        let mut local = 0u8;
        for foreign in [core::ptr::null_mut(), 1 as H, 2 as H, &raw mut local, usize::MAX as H] {
            assert_eq!(registry.get(foreign), None);
        }
        assert_eq!(other.get(a), None);
    }

    #[test]
    fn many_objects_keep_their_places() {
        let registry = Registry::<usize, H>::new(3);
        let handles: Vec<H> = (0..5000).map(|i| registry.insert(i).unwrap()).collect();
        assert!(handles.iter().enumerate().all(|(i, &h)| registry.get(h) == Some(i)));
        assert_eq!(registry.remove_where(|i| i % 2 == 0).len(), 2500);
        assert!(handles.iter().enumerate().all(|(i, &h)| registry.get(h) == (i % 2 == 1).then_some(i)));
    }
}
