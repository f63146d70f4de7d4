//! Conditional nodes: bodies that run, or run again, as a number in memory says.
//!
//! A condition's handle is the number's address in page-locked memory, so kernels set it by a plain store
//! (`cudaGraphSetConditional`) and the host reads it once the stream is done.

use core::ffi::c_uint;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use cuda_abi::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUcontext, CUgraph, CUgraphConditionalHandle, CUgraphConditionalNodeType,
    CUstream,
};

use super::Child;
use crate::object::memory::raw;
use crate::object::{Context, Shared, Stream};
use crate::{Error, Result};

/// A condition of a graph.
pub struct Condition {
    pub handle: CUgraphConditionalHandle,
    pub context: &'static Context,
    default: c_uint,
    assigns_default: bool,
    /// Whether a node uses it. CUDA: one node per handle.
    is_used: AtomicBool,
}

impl Condition {
    pub fn make(context: &'static Context, default: c_uint, flags: c_uint) -> Result<Arc<Condition>> {
        // CUDA: CU_GRAPH_COND_ASSIGN_DEFAULT or nothing.
        if flags > 1 {
            return Err(Error::InvalidValue("flags"));
        }
        context.bind()?;
        let mut word = core::ptr::null_mut();
        // SAFETY: `word` is writable.
        unsafe { context.hip().hipHostMalloc(&mut word, 64, 0) }?;
        let handle = word.expose_provenance() as CUgraphConditionalHandle;
        let condition =
            Condition { handle, context, default, assigns_default: flags == 1, is_used: false.into() };
        condition.word().store(default, Ordering::Release);
        Ok(Arc::new(condition))
    }

    fn word(&self) -> &AtomicU32 {
        let at = core::ptr::with_exposed_provenance_mut(self.handle as usize);
        // SAFETY: the condition owns the memory; kernels write it as one aligned word.
        unsafe { AtomicU32::from_ptr(at) }
    }

    /// Claims the condition for a node.
    pub fn claim(&self) -> Result {
        if self.is_used.swap(true, Ordering::Relaxed) {
            return Err(Error::InvalidValue("conditional.handle: used by another node"));
        }
        Ok(())
    }

    pub fn is_used(&self) -> bool {
        self.is_used.load(Ordering::Relaxed)
    }

    /// Every launch begins with the default value, if there is one.
    pub fn reset(&self, stream: CUstream) -> Result {
        if !self.assigns_default {
            return Ok(());
        }
        let stream = Stream::from_handle(stream)?;
        let value = self.default.cast_signed();
        // SAFETY: one word of memory that lives as long as the graph; the stream is alive.
        Ok(unsafe { stream.hip().hipMemsetD32Async(raw(self.handle), value, 1, stream.hip.0) }?)
    }

    /// The value behind everything queued so far.
    pub fn wait(&self, stream: CUstream) -> Result<c_uint> {
        Stream::from_handle(stream)?.synchronize()?;
        Ok(self.word().load(Ordering::Acquire))
    }
}

impl Drop for Condition {
    fn drop(&mut self) {
        let word = core::ptr::with_exposed_provenance_mut(self.handle as usize);
        if self.context.is_alive() && self.context.bind().is_ok() {
            // SAFETY: nobody has the condition any more. What HIP says changes nothing.
            let _ = unsafe { self.context.hip().hipHostFree(word) };
        }
    }
}

/// A conditional node.
pub struct Conditional {
    pub condition: Arc<Condition>,
    pub kind: CUgraphConditionalNodeType,
    pub bodies: Vec<Child>,
    /// The bodies' handles, where the program reads them.
    handles: Vec<Shared<CUgraph>>,
}

impl Conditional {
    pub fn new(
        condition: Arc<Condition>,
        kind: CUgraphConditionalNodeType,
        bodies: Vec<Child>,
    ) -> Conditional {
        let handles = bodies.iter().map(|body| body.0.handle).collect();
        Conditional { condition, kind, bodies, handles }
    }

    pub fn describe(&self) -> CUDA_CONDITIONAL_NODE_PARAMS {
        CUDA_CONDITIONAL_NODE_PARAMS {
            handle: self.condition.handle,
            type_: self.kind,
            size: c_uint::try_from(self.bodies.len()).unwrap_or(c_uint::MAX),
            phGraph_out: self.handles.as_ptr().cast_mut().cast::<CUgraph>(),
            ctx: self.condition.context.handle(),
        }
    }
}

/// How many bodies a node of a type can have.
pub fn check_size(kind: CUgraphConditionalNodeType, size: c_uint) -> Result {
    let is_good = match kind {
        CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF => matches!(size, 1 | 2),
        CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE => size == 1,
        CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH => size > 0,
        _ => return Err(Error::InvalidValue("conditional.type")),
    };
    if is_good { Ok(()) } else { Err(Error::InvalidValue("conditional.size")) }
}

/// The body to run for a value.
pub fn chosen(kind: CUgraphConditionalNodeType, value: c_uint, n_bodies: usize) -> Option<usize> {
    let body = match kind {
        CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF => usize::from(value == 0),
        CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE if value != 0 => 0,
        CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH => value as usize,
        _ => return None,
    };
    (body < n_bodies).then_some(body)
}

/// The condition's context, or the current one.
pub fn context_of(ctx: CUcontext) -> Result<&'static Context> {
    if ctx.is_null() { Context::current() } else { Context::from_handle(ctx) }
}
