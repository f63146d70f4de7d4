//! Kernels of ours (api/kernels/*.cu) for what MIOpen lacks on AMD GPUs, in stream order and on the device's memory. `CUDAWAY_DNN=kernels`
//! has them on the CPU device, too.
//!
//! The rule: a call answers whether its kernel can do it; what it cannot is our own code's for the CPU, on copies. Numbers are computed in
//! `float`, sums of reductions and normalizations in `double`.

pub mod after;
pub mod attention;
pub mod calls;
pub mod cells;
pub mod convolution;
pub mod elements;
pub mod kept;
pub mod moves;
pub mod networks;
pub mod norm;
pub mod product;
pub mod rows;
pub mod tensor;
pub mod windows;

use core::ffi::{CStr, c_uint, c_void};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use kit::kernels::Module;
use once_cell::sync::OnceCell;

use self::kept::Kept;
use crate::Result;
use crate::hip::objects::Room;
use crate::types::cudaStream_t;

/// A module: its name, and what nvcc makes of its source, with C's end behind it; a test has the two belong together.
macro_rules! part {
    ($name:literal) => {
        ($name, concat!(include_str!(concat!("../../kernels/", $name, ".ptx")), "\0"))
    };
}

#[derive(Clone, Copy)]
enum Part {
    Elements,
    Rows,
    Products,
    Attention,
    Convolutions,
    Windows,
    Moves,
    Cells,
}

/// In the order of [`Part`].
static PARTS: [(&str, &str); 8] = [
    part!("elements"),
    part!("rows"),
    part!("products"),
    part!("attention"),
    part!("convolutions"),
    part!("windows"),
    part!("moves"),
    part!("cells"),
];

/// A handle's modules, each loaded when it is first asked for.
#[derive(Default)]
pub struct Kernels {
    modules: [OnceCell<Option<Module>>; PARTS.len()],
    is_captured: AtomicBool,
}

impl Kernels {
    /// A graph has launches of them, which may be run when the handle is gone: the modules stay as long as their context.
    pub fn keep(&self) {
        self.is_captured.store(true, Ordering::Relaxed);
    }
}

impl Drop for Kernels {
    fn drop(&mut self) {
        if self.is_captured.load(Ordering::Relaxed) {
            self.modules.iter_mut().for_each(|module| core::mem::forget(module.take()));
        }
    }
}

/// Blocks of a launch at most: each goes on with further work.
const BLOCKS: u32 = 1 << 16;

/// Blocks of a launch with a thread for each of so many.
fn blocks(count: u32, threads: u32) -> u32 {
    count.div_ceil(threads).min(BLOCKS)
}

/// The kernels during a call, on its stream.
pub struct Call {
    kernels: Arc<Kernels>,
    pub stream: cudaStream_t,
    /// Of launches that become nodes of a graph: their memory.
    kept: Option<Arc<Kept>>,
}

impl Call {
    pub fn new(kernels: Arc<Kernels>, stream: cudaStream_t) -> Call {
        Call { kernels, stream, kept: None }
    }

    /// The same call for a graph that keeps its memory, whose nodes are what is enqueued into the stream.
    #[must_use]
    pub fn for_graph(&self, kept: Arc<Kept>, stream: cudaStream_t) -> Call {
        self.kernels.keep();
        Call { kernels: Arc::clone(&self.kernels), stream, kept: Some(kept) }
    }

    /// Memory of the device's until it is dropped, in stream order.
    pub fn room(&self, bytes: usize) -> Result<Room> {
        match &self.kept {
            Some(kept) if bytes > 0 => Ok(Room::kept(Arc::clone(kept), kept.take(bytes)?)),
            _ => Room::new(self.stream, bytes),
        }
    }

    fn module(&self, part: Part) -> Option<&Module> {
        let (name, ptx) = PARTS[part as usize];
        self.kernels.modules[part as usize].get_or_init(|| loaded(name, ptx)).as_ref()
    }

    /// # Safety
    /// The kernel takes `how` alone; its tensors are there until the stream has done the work.
    unsafe fn launch<H>(
        &self,
        module: &Module,
        name: &'static CStr,
        blocks: [c_uint; 3],
        threads: c_uint,
        how: &mut H,
    ) -> Result {
        let mut arguments = [(&raw mut *how).cast::<c_void>()];
        // SAFETY: the caller's promise; the argument is copied by the call.
        Ok(unsafe { module.launch(name, blocks, threads, self.stream, &mut arguments) }?)
    }
}

/// The module; none, said in the log, where the device does not take it.
fn loaded(name: &str, ptx: &'static str) -> Option<Module> {
    match Module::load(ptx) {
        Ok(module) => {
            tracing::info!(target: "cudaway::dnn", "our own kernels compute on the device: {name}");
            Some(module)
        }
        Err(error) => {
            tracing::warn!(target: "cudaway::dnn", "our own code computes on the host, since its kernels cannot be loaded: {error}");
            None
        }
    }
}
