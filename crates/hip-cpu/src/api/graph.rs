//! Graphs that kernels launch. HIP has no such thing: the driver tells of them by one function more.

use std::ffi::c_uint;

use hip_sys::{graph as what, hipErrorInvalidValue, hipStream_t};

use crate::error::Result;
use crate::graph;
use crate::node;
use crate::stream::{self, Op};

/// See [`hip_sys::Hip::graph`].
pub fn cudaway_graph(asked: c_uint, graph: u64, stream: hipStream_t, other: hipStream_t) -> Result {
    if asked == what::FORGET {
        graph::forget(graph);
        return Ok(());
    }
    match asked & what::KINDS {
        what::NODE => {
            let is = |flag| asked & flag != 0;
            node::name_next(graph, is(what::NODE_NEW), !is(what::NODE_OFF), is(what::NODE_UPLOAD));
            return Ok(());
        }
        what::NO_NODE => {
            drop(node::take_next());
            return Ok(());
        }
        what::FORGET_NODE => {
            node::forget(graph);
            return Ok(());
        }
        _ => {}
    }
    let stream = stream::of_handle(stream)?;
    match asked {
        what::RECORD => stream.record_steps(),
        what::UPLOAD => graph::upload(graph, stream.recorded(), &stream::of_handle(other)?)?,
        what::BEGIN => stream.enqueue_behind(Op::BeginGraph(graph)),
        what::END => {
            stream.enqueue(Op::EndGraph);
        }
        _ => return Err(hipErrorInvalidValue),
    }
    Ok(())
}
