//! User objects: things of the program's that live as long as a graph needs them.

use core::ffi::{c_uint, c_void};
use std::sync::Arc;

use cuda_abi::{CUhostFn, CUuserObject};
use parking_lot::Mutex;

use super::Shared;
use crate::handle::Registry;
use crate::{Error, Result};

static OBJECTS: Registry<Arc<UserObject>, CUuserObject> = Registry::new(13);

pub struct UserObject {
    pointer: Shared<*mut c_void>,
    destroy: CUhostFn,
    references: Mutex<u32>,
}

pub fn create(pointer: *mut c_void, destroy: CUhostFn, references: c_uint) -> Result<CUuserObject> {
    let object = UserObject { pointer: Shared(pointer), destroy, references: Mutex::new(references) };
    OBJECTS.insert(Arc::new(object)).ok_or(Error::OutOfMemory)
}

fn find(handle: CUuserObject) -> Result<Arc<UserObject>> {
    OBJECTS.get(handle).ok_or(Error::InvalidValue("object"))
}

pub fn retain(handle: CUuserObject, count: c_uint) -> Result {
    let object = find(handle)?;
    let mut references = object.references.lock();
    *references = references.checked_add(count).ok_or(Error::InvalidValue("count"))?;
    Ok(())
}

/// Drops references; the last one calls the program's destructor.
pub fn release(handle: CUuserObject, count: c_uint) -> Result {
    let object = find(handle)?;
    {
        let mut references = object.references.lock();
        *references = references.checked_sub(count).ok_or(Error::InvalidValue("count"))?;
        if *references > 0 {
            return Ok(());
        }
    }
    if OBJECTS.remove(handle).is_some()
        && let Some(destroy) = object.destroy
    {
        // SAFETY: the program's destructor, called once with its own pointer.
        unsafe { destroy(object.pointer.0) };
    }
    Ok(())
}

/// References that a graph holds; they go with it and with what was instantiated from it.
pub struct Held {
    pub object: Shared<CUuserObject>,
    pub count: c_uint,
}

impl Drop for Held {
    fn drop(&mut self) {
        // The object is alive while it is held; there is nobody to tell otherwise.
        let _ = release(self.object.0, self.count);
    }
}
