//! What lies behind descriptors' handles: a value that a call sets whole and others copy.

use std::sync::Arc;

use kit::Registry;
use parking_lot::Mutex;

use crate::Result;

/// The descriptors of one kind.
pub struct Descriptors<T>(Registry<Mutex<T>>);

impl<T: Clone + Default> Descriptors<T> {
    pub const fn new() -> Descriptors<T> {
        Descriptors(Registry::new())
    }

    pub fn add<Handle>(&self) -> *mut Handle {
        self.0.add(Arc::new(Mutex::new(T::default())))
    }

    pub fn get<Handle>(&self, handle: *mut Handle) -> Result<T> {
        Ok(self.0.get(handle)?.lock().clone())
    }

    pub fn set<Handle>(&self, handle: *mut Handle, value: T) -> Result {
        *self.0.get(handle)?.lock() = value;
        Ok(())
    }

    pub fn change<Handle>(&self, handle: *mut Handle, change: impl FnOnce(&mut T)) -> Result {
        change(&mut self.0.get(handle)?.lock());
        Ok(())
    }

    /// NULL is taken and nothing.
    pub fn remove<Handle>(&self, handle: *mut Handle) -> Result {
        if !handle.is_null() {
            self.0.remove(handle)?;
        }
        Ok(())
    }
}
