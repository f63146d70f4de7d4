//! Work of the CPU as nodes of a graph that the program has made.

use core::ffi::c_void;

use cuda_abi::{CUgraph, CUgraphNode, CUstream, CUstreamCaptureMode};

use crate::driver::{Number, check, driver};
use crate::{Error, Result};

/// `CU_STREAM_NON_BLOCKING`: a capture waits for no other stream.
const APART: u32 = 1;

/// Puts what is enqueued into the graph, behind nothing that it has.
pub fn fill(graph: CUgraph, enqueue: impl FnOnce(CUstream) -> Result) -> Result {
    let driver = driver()?;
    let capture = driver.cuStreamBeginCaptureToGraph;
    let capture =
        capture.ok_or(Error::NotSupported("captures into graphs: CUDA's driver is older than 12.3"))?;
    let mut stream = CUstream::default();
    // SAFETY: `stream` outlives the call.
    check("cuStreamCreate", unsafe { (driver.cuStreamCreate)(&mut stream, APART) })?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    let (none, nothing) = (core::ptr::null(), core::ptr::null::<c_void>());
    // SAFETY: the driver looks at the graph itself; there are no nodes in front.
    let begun = check("cuStreamBeginCaptureToGraph", unsafe {
        capture(stream, Number(graph), none, nothing, 0, mode)
    });
    let filled = begun.and_then(|()| {
        let enqueued = enqueue(stream);
        let mut captured = graph;
        // SAFETY: the stream is capturing; `captured` outlives the call.
        let ended =
            check("cuStreamEndCapture", unsafe { (driver.cuStreamEndCapture)(stream, &mut captured) });
        enqueued.and(ended)
    });
    // SAFETY: the stream is this call's own, and captures no more.
    let destroyed = check("cuStreamDestroy_v2", unsafe { (driver.cuStreamDestroy_v2)(stream) });
    filled.and(destroyed)
}

/// `CU_USER_OBJECT_NO_DESTRUCTOR_SYNC`: the end may come at any time.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// `CU_GRAPH_USER_OBJECT_MOVE`: the reference becomes the graph's.
const MOVE: u32 = 1;

/// Has the graph, and those that are made of it, keep a thing until they are gone. The thing's end may not call the driver.
pub fn keep<T: Send + Sync + 'static>(graph: CUgraph, thing: T) -> Result {
    extern "C" fn end<T>(thing: *mut c_void) {
        // SAFETY: of `keep`, which gave it away.
        drop(unsafe { Box::from_raw(thing.cast::<T>()) });
    }
    let driver = driver()?;
    let (Some(create), Some(retain)) = (driver.cuUserObjectCreate, driver.cuGraphRetainUserObject) else {
        return Err(Error::NotSupported("things that graphs keep: CUDA's driver is older than 11.3"));
    };
    let mut object = core::ptr::null_mut();
    let thing = Box::into_raw(Box::new(thing)).cast::<c_void>();
    // SAFETY: `object` outlives the call; the end takes what it is given.
    let created = unsafe { create(&mut object, thing, Some(end::<T>), 1, NO_DESTRUCTOR_SYNC) };
    if let Err(error) = check("cuUserObjectCreate", created) {
        end::<T>(thing);
        return Err(error);
    }
    // SAFETY: the driver looks at the graph itself; the object's one reference is given away.
    check("cuGraphRetainUserObject", unsafe { retain(Number(graph), object, 1, MOVE) })
}

pub fn nodes(of: CUgraph) -> Result<Vec<CUgraphNode>> {
    let driver = driver()?;
    let mut count = 0;
    // SAFETY: the driver looks at the graph itself; `count` outlives the call.
    check("cuGraphGetNodes", unsafe {
        (driver.cuGraphGetNodes)(Number(of), core::ptr::null_mut(), &mut count)
    })?;
    let mut nodes = vec![core::ptr::null_mut(); count];
    // SAFETY: room for so many.
    check("cuGraphGetNodes", unsafe {
        (driver.cuGraphGetNodes)(Number(of), nodes.as_mut_ptr(), &mut count)
    })?;
    nodes.truncate(count);
    Ok(nodes)
}

pub fn remove(node: CUgraphNode) -> Result {
    // SAFETY: the driver looks at the node itself.
    check("cuGraphDestroyNode", unsafe { (driver()?.cuGraphDestroyNode)(Number(node)) })
}
