//! User objects: things of the program's that graphs keep alive.

use core::ffi::{c_uint, c_void};

use border::Out;
use cuda_abi::{CUgraph, CUhostFn, CUuserObject};

use crate::object::graph::Graph;
use crate::object::user_object;
use crate::{Error, Result};

/// A thing of the program's that graphs keep alive; `destroy` runs when the last reference goes.
pub fn cuUserObjectCreate(
    object_out: Out<'_, CUuserObject>,
    ptr: *mut c_void,
    destroy: CUhostFn,
    initialRefcount: c_uint,
    flags: c_uint,
) -> Result {
    crate::process::driver()?;
    // CUDA: the one flag there is (the destructor may run at any time) has to be given.
    if destroy.is_none() || initialRefcount == 0 || initialRefcount > i32::MAX as c_uint || flags != 1 {
        return Err(Error::InvalidValue("destroy, initialRefcount or flags"));
    }
    object_out.write(user_object::create(ptr, destroy, initialRefcount)?);
    Ok(())
}

pub fn cuUserObjectRetain(object: CUuserObject, count: c_uint) -> Result {
    crate::process::driver()?;
    if count == 0 {
        return Err(Error::InvalidValue("count"));
    }
    user_object::retain(object, count)
}

pub fn cuUserObjectRelease(object: CUuserObject, count: c_uint) -> Result {
    crate::process::driver()?;
    if count == 0 {
        return Err(Error::InvalidValue("count"));
    }
    user_object::release(object, count)
}

/// With CU_GRAPH_USER_OBJECT_MOVE the caller's references become the graph's.
pub fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) -> Result {
    if count == 0 || flags > 1 {
        return Err(Error::InvalidValue("count or flags"));
    }
    Graph::from_handle(graph)?.hold(object, count, flags == 1)
}

pub fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint) -> Result {
    Graph::from_handle(graph)?.let_go(object, count)
}
