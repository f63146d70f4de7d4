//! Handles: numbers that are looked up, never pointers that are followed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicUsize, Ordering};

use parking_lot::RwLock;

use crate::{Error, Result};

/// What lies behind the handles of one kind. No two handles of the process are equal, whatever their kinds.
pub struct Registry<T>(RwLock<BTreeMap<usize, Arc<T>>>);

impl<T> Registry<T> {
    #[expect(clippy::new_without_default, reason = "a constant of statics")]
    pub const fn new() -> Registry<T> {
        Registry(RwLock::new(BTreeMap::new()))
    }

    pub fn add<Handle>(&self, value: impl Into<Arc<T>>) -> *mut Handle {
        // Looks like the address that programs expect, and is never 0.
        static NEXT: AtomicUsize = AtomicUsize::new(0xcb1a_0000);
        let number = NEXT.fetch_add(16, Ordering::Relaxed);
        self.0.write().insert(number, value.into());
        std::ptr::without_provenance_mut(number)
    }

    pub fn get<Handle>(&self, handle: *mut Handle) -> Result<Arc<T>> {
        self.0.read().get(&handle.addr()).cloned().ok_or(Error::Handle)
    }

    pub fn remove<Handle>(&self, handle: *mut Handle) -> Result<Arc<T>> {
        self.0.write().remove(&handle.addr()).ok_or(Error::Handle)
    }
}

/// The same for handles that are C's `int`s: 1 and up, and none of them twice.
pub struct Numbered<T> {
    next: AtomicI32,
    known: RwLock<BTreeMap<i32, Arc<T>>>,
}

impl<T> Numbered<T> {
    #[expect(clippy::new_without_default, reason = "a constant of statics")]
    pub const fn new() -> Numbered<T> {
        Numbered { next: AtomicI32::new(1), known: RwLock::new(BTreeMap::new()) }
    }

    /// # Errors
    /// All numbers have been given out.
    pub fn add(&self, value: impl Into<Arc<T>>) -> Result<i32> {
        let next = |number: i32| number.checked_add(1);
        let number = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next);
        let number = number.map_err(|_| Error::Handle)?;
        self.known.write().insert(number, value.into());
        Ok(number)
    }

    pub fn get(&self, handle: i32) -> Result<Arc<T>> {
        self.known.read().get(&handle).cloned().ok_or(Error::Handle)
    }

    pub fn remove(&self, handle: i32) -> Result<Arc<T>> {
        self.known.write().remove(&handle).ok_or(Error::Handle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_of_one_kind_is_none_of_another_and_ends_once() {
        let (numbers, texts) = (Registry::<i32>::new(), Registry::<&str>::new());
        let number: *mut u8 = numbers.add(7);
        let text: *mut u8 = texts.add("seven");
        assert_ne!(number, text);
        assert_eq!(*numbers.get(number).unwrap(), 7);
        assert!(matches!(texts.get(number), Err(Error::Handle)));
        numbers.remove(number).unwrap();
        assert!(matches!(numbers.remove(number), Err(Error::Handle)));
        assert!(matches!(numbers.get(number), Err(Error::Handle)));
    }

    #[test]
    fn a_number_is_not_given_out_again() {
        let values = Numbered::<&str>::new();
        assert_eq!(values.add("a").unwrap(), 1);
        values.remove(1).unwrap();
        assert_eq!(values.add("b").unwrap(), 2);
        assert!(matches!(values.get(1), Err(Error::Handle)));
        assert_eq!(*values.get(2).unwrap(), "b");
        let last = Numbered::<&str> { next: AtomicI32::new(i32::MAX), ..Numbered::new() };
        assert!(matches!(last.add("c"), Err(Error::Handle)));
    }
}
