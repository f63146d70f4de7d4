//! Handles: opaque numbers that name our objects and are checked before anything is looked at.
//!
//! A handle is never an address. It holds a tag for its type, a slot number and the slot's generation, so a foreign
//! pointer, a handle of another type and a handle of something destroyed are all told apart from a live one
//! without touching memory behind it.
//!
//! Objects that every launch or copy asks for show a few numbers of theirs beside the lock ([`Shown`]); these are read
//! without writing anything that other threads read.

use core::marker::PhantomData;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use parking_lot::{Mutex, RwLock};

/// Layout of a handle, from bit 0: 3 zero bits (handles look aligned), 24 bits of slot, 16 of generation, 5 of tag.
const SLOT_SHIFT: u32 = 3;
const SLOT_BITS: u32 = 24;
const GENERATION_SHIFT: u32 = SLOT_SHIFT + SLOT_BITS;
const TAG_SHIFT: u32 = GENERATION_SHIFT + 16;

/// Chunk `k` holds `FIRST << k` slots; slots never move.
const FIRST: usize = 64;
const CHUNKS: usize = 18;

/// Values that atomics can hold (`shown.rs`).
pub trait Numbers: Copy {
    type Cells: Default;
    fn write_numbers(self, cells: &Self::Cells);
    /// The fields may be of two values, stored one after the other.
    ///
    /// # Safety
    /// One was stored there before.
    unsafe fn read_numbers(cells: &Self::Cells) -> Self;
}

/// The part of a `T` that is read without its slot's lock.
pub trait Shown<T>: Numbers {
    fn of(object: &T) -> Self;
}

impl Numbers for () {
    type Cells = ();
    fn write_numbers(self, (): &()) {}
    unsafe fn read_numbers((): &()) {}
}

/// Nothing is shown.
impl<T> Shown<T> for () {
    fn of(_: &T) {}
}

struct Slot<T, P: Shown<T>> {
    inner: RwLock<(u16, Option<T>)>,
    /// Whether `cells` are those of a live object, and of which generation; changed with `inner` locked for writing.
    version: AtomicU64,
    cells: P::Cells,
}

/// Layout of a version, from bit 0: 16 bits of generation, 1 when the cells are good, the number of changes.
const GOOD: u64 = 1 << 16;
const CHANGES: u64 = 1 << 17;

impl<T, P: Shown<T>> Slot<T, P> {
    fn new() -> Self {
        Slot { inner: RwLock::new((0, None)), version: AtomicU64::new(0), cells: P::Cells::default() }
    }

    /// From here on no reader believes the cells.
    fn hide(&self) {
        let changes = self.version.load(Ordering::Relaxed) & !(CHANGES - 1);
        self.version.store(changes.wrapping_add(CHANGES), Ordering::Relaxed);
    }

    fn show(&self, generation: u16, object: &T) {
        // Who sees a number written here sees what `hide` wrote as well.
        fence(Ordering::Release);
        P::of(object).write_numbers(&self.cells);
        let changes = self.version.load(Ordering::Relaxed) & !(CHANGES - 1);
        self.version.store(changes | GOOD | u64::from(generation), Ordering::Release);
    }

    /// What the cells say, if they are that generation's and nobody changed them meanwhile.
    #[inline]
    fn shown(&self, generation: u16) -> Option<P> {
        let version = self.version.load(Ordering::Acquire);
        if version & (CHANGES - 1) != GOOD | u64::from(generation) {
            return None;
        }
        // SAFETY: a version with GOOD is written behind the store of the cells.
        let part = unsafe { P::read_numbers(&self.cells) };
        fence(Ordering::Acquire);
        (self.version.load(Ordering::Relaxed) == version).then_some(part)
    }
}

/// Slots that come into being together, and stay where they are.
type Chunk<T, P> = Box<[Slot<T, P>]>;

/// The live objects of one C handle type, and `P`, what they show of themselves.
pub struct Registry<T, H, P: Shown<T> = ()> {
    tag: u64,
    chunks: [OnceLock<Chunk<T, P>>; CHUNKS],
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

impl<T, H: Handle, P: Shown<T>> Registry<T, H, P> {
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

    fn slot(&self, index: u32) -> Option<&Slot<T, P>> {
        let shifted = index as usize + FIRST;
        let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
        self.chunks.get(chunk)?.get()?.get(shifted - (FIRST << chunk))
    }

    fn make_slot(&self, index: u32) -> Option<&Slot<T, P>> {
        let shifted = index as usize + FIRST;
        let chunk = (shifted.ilog2() - FIRST.ilog2()) as usize;
        let slots =
            self.chunks.get(chunk)?.get_or_init(|| (0..FIRST << chunk).map(|_| Slot::new()).collect());
        slots.get(shifted - (FIRST << chunk))
    }

    /// Enters an object made with its own handle; `None` when 16 million are alive.
    pub fn insert_with(&self, object_of: impl FnOnce(H) -> T) -> Option<H> {
        let reused = self.free.lock().pop();
        let index = reused.unwrap_or_else(|| self.n_slots.fetch_add(1, Ordering::Relaxed));
        if index >> SLOT_BITS != 0 {
            return None;
        }
        let slot = self.make_slot(index)?;
        let mut inner = slot.inner.write();
        inner.0 = inner.0.wrapping_add(1);
        let handle = self.name(index, inner.0);
        slot.show(inner.0, inner.1.insert(object_of(handle)));
        Some(handle)
    }

    pub fn insert(&self, object: T) -> Option<H> {
        self.insert_with(|_| object)
    }

    fn find(&self, handle: H) -> Option<(u32, u16, &Slot<T, P>)> {
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

    /// What the live object shows, or `None`.
    #[inline]
    pub fn peek(&self, handle: H) -> Option<P> {
        let (_, generation, slot) = self.find(handle)?;
        // Somebody may be changing it just now.
        slot.shown(generation).or_else(|| self.with(handle, P::of))
    }

    /// Has the live object show what it has become.
    pub fn renew(&self, handle: H) {
        let Some((_, generation, slot)) = self.find(handle) else { return };
        let inner = slot.inner.write();
        if inner.0 == generation
            && let Some(object) = inner.1.as_ref()
        {
            slot.hide();
            slot.show(generation, object);
        }
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
        let mut inner = slot.inner.write();
        if inner.0 != generation {
            return None;
        }
        let object = inner.1.take()?;
        slot.hide();
        drop(inner);
        self.free.lock().push(index);
        Some(object)
    }

    /// Takes out every object that `doomed` picks.
    pub fn remove_where(&self, doomed: impl Fn(&T) -> bool) -> Vec<T> {
        let mut removed = Vec::new();
        for index in 0..self.n_slots.load(Ordering::Relaxed) {
            let Some(slot) = self.slot(index) else { continue };
            let mut inner = slot.inner.write();
            if inner.1.as_ref().is_some_and(&doomed)
                && let Some(object) = inner.1.take()
            {
                slot.hide();
                drop(inner);
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

    /// A number and its negation, so that a mixture of two objects is seen.
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Twice {
        number: u64,
        negated: u64,
    }
    crate::shown::shown!(Twice in TwiceCells { number: u64, negated: u64 });

    impl Shown<u64> for Twice {
        fn of(&number: &u64) -> Self {
            Twice { number, negated: !number }
        }
    }

    impl Shown<AtomicU64> for Twice {
        fn of(object: &AtomicU64) -> Self {
            Twice::of(&object.load(Ordering::Relaxed))
        }
    }

    #[test]
    fn a_dead_object_shows_nothing() {
        let registry = Registry::<u64, H, Twice>::new(1);
        let a = registry.insert(7).unwrap();
        assert_eq!(registry.peek(a), Some(Twice::of(&7)));
        registry.remove(a);
        assert_eq!(registry.peek(a), None);
        let b = registry.insert(8).unwrap();
        assert_eq!((registry.peek(a), registry.peek(b)), (None, Some(Twice::of(&8))));
        registry.remove_where(|_| true);
        assert_eq!(registry.peek(b), None);
    }

    #[test]
    fn what_an_object_has_become_is_shown_when_it_is_renewed() {
        let registry = Registry::<AtomicU64, H, Twice>::new(1);
        let a = registry.insert(AtomicU64::new(1)).unwrap();
        registry.with(a, |counter| counter.store(2, Ordering::Relaxed));
        registry.renew(a);
        assert_eq!(registry.peek(a), Some(Twice::of(&2)));
        registry.remove(a);
        registry.renew(a);
        assert_eq!(registry.peek(a), None);
    }

    /// Readers of a handle see its object or none, whatever becomes of the slot.
    #[test]
    fn nobody_sees_parts_of_two_objects() {
        let registry = Registry::<u64, H, Twice>::new(1);
        let current = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for number in 1..200_000 {
                    let handle = registry.insert(number).unwrap();
                    current.store(handle.bits(), Ordering::Release);
                    registry.remove(handle);
                }
                current.store(u64::MAX, Ordering::Release);
            });
            for _ in 0..2 {
                scope.spawn(|| {
                    loop {
                        match current.load(Ordering::Acquire) {
                            u64::MAX => break,
                            bits => {
                                if let Some(seen) = registry.peek(H::from_bits(bits)) {
                                    assert_eq!(seen.number, !seen.negated);
                                }
                            }
                        }
                    }
                });
            }
        });
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
