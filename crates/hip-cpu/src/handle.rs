//! Handles: opaque pointers given to the program, looked up before use, so that a stale one is an error.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use hip_sys::{hipError_t, hipErrorInvalidHandle};
use parking_lot::RwLock;

/// Objects by the address of their `Arc`'s content.
pub struct Registry<T>(LazyLock<RwLock<HashMap<usize, Arc<T>>>>);

impl<T> Registry<T> {
    pub const fn new() -> Registry<T> {
        Registry(LazyLock::new(RwLock::default))
    }

    /// The object's handle from now on.
    pub fn add(&self, object: Arc<T>) -> usize {
        let handle = Arc::as_ptr(&object).cast::<()>() as usize;
        self.0.write().insert(handle, object);
        handle
    }

    pub fn get(&self, handle: usize) -> Result<Arc<T>, hipError_t> {
        self.0.read().get(&handle).cloned().ok_or(hipErrorInvalidHandle)
    }

    pub fn remove(&self, handle: usize) -> Result<Arc<T>, hipError_t> {
        self.0.write().remove(&handle).ok_or(hipErrorInvalidHandle)
    }

    pub fn n_live(&self) -> usize {
        self.0.read().len()
    }

    pub fn for_each(&self, visit: impl FnMut(&Arc<T>)) {
        self.0.read().values().for_each(visit);
    }
}
