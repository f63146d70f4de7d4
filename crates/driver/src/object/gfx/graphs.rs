//! What kernels on AMD GPUs know of graphs that they launch and of nodes that they change (`compiler::gcn::children::graphs`): a block
//! of host memory for each context that has such graphs or nodes.
//!
//! Kernels count launches and write nodes' states; who reads either has waited for them.
//! Rule: no lock is held while HIP is asked.

use core::sync::atomic::Ordering;

use compiler::gcn::children::graphs::{
    ARGUMENTS, BYTES, GRID, IS_ENABLED, N_LAUNCHES, NODES, STATE_AT, entry,
};
use parking_lot::Mutex;

use super::super::Context;
use super::host_memory::HostMemory;
use crate::{Error, Result};

struct Table {
    context_id: u64,
    memory: HostMemory,
}

static TABLES: Mutex<Vec<Table>> = Mutex::new(Vec::new());

fn of(context_id: u64) -> Option<HostMemory> {
    TABLES.lock().iter().find(|table| table.context_id == context_id).map(|table| table.memory)
}

/// Where kernels of the context find it, or 0.
pub fn address(context: &Context) -> u64 {
    of(context.id()).map_or(0, |memory| memory.device)
}

/// The context's, which it has from now on.
fn made(context: &'static Context) -> Result<HostMemory> {
    if let Some(memory) = of(context.id()) {
        return Ok(memory);
    }
    let memory = HostMemory::new(context, BYTES as usize)?;
    let mut tables = TABLES.lock();
    let other = tables.iter().find(|table| table.context_id == context.id()).map(|table| table.memory);
    if other.is_none() {
        tables.push(Table { context_id: context.id(), memory });
    }
    drop(tables);
    // Another thread was faster.
    if other.is_some() {
        memory.give_back(context);
    }
    Ok(other.unwrap_or(memory))
}

/// Kernels may launch the graph.
pub fn show_graph(context: &'static Context, graph: u64) -> Result {
    made(context)?.show(entry(graph), graph, None)
}

/// They may no more.
pub fn hide_graph(context: &Context, graph: u64) {
    if let Some(memory) = of(context.id()) {
        memory.hide(entry(graph), graph);
    }
}

/// A launch by a kernel has ended.
pub fn has_ended(context: &Context, graph: u64) {
    let Some(memory) = of(context.id()) else { return };
    let at = entry(graph);
    if memory.wide(at).load(Ordering::Acquire) == graph {
        memory.word(at + N_LAUNCHES).fetch_sub(1, Ordering::AcqRel);
    }
}

/// A context ends, and its device is idle.
pub fn forget_context(context: &Context) {
    let mut tables = TABLES.lock();
    let own = tables.iter().position(|table| table.context_id == context.id());
    let gone = own.map(|index| tables.swap_remove(index));
    drop(tables);
    if let Some(table) = gone {
        table.memory.give_back(context);
    }
}

impl HostMemory {
    /// Names an entry; a node's has an address. CUDA names no such bound: it is refused as what has no room.
    fn show(&self, at: u64, handle: u64, state: Option<u64>) -> Result {
        match self.wide(at).load(Ordering::Acquire) {
            0 => self.wide(at + N_LAUNCHES).store(state.unwrap_or(0), Ordering::Release),
            known if known != handle => return Err(Error::OutOfMemory),
            _ => {
                if let Some(state) = state {
                    self.wide(at + STATE_AT).store(state, Ordering::Release);
                }
            }
        }
        self.wide(at).store(handle, Ordering::Release);
        Ok(())
    }

    fn hide(&self, at: u64, handle: u64) {
        let _ = self.wide(at).compare_exchange(handle, 0, Ordering::AcqRel, Ordering::Relaxed);
    }
}

/// A node that kernels change, as they have it.
pub struct Node {
    handle: u64,
    context: &'static Context,
    /// What it is now, and what kernels may still see of larger and smaller arguments.
    states: Mutex<Vec<HostMemory>>,
}

/// A launch, but for what kernels cannot change.
pub struct Launch {
    pub grid: [u32; 3],
    pub arguments: Vec<u8>,
}

impl Node {
    pub fn new(handle: u64, context: &'static Context) -> Node {
        Node { handle, context, states: Mutex::default() }
    }

    /// Whether the device has it.
    pub fn is_there(&self) -> bool {
        !self.states.lock().is_empty()
    }

    /// The host's state takes the place of what kernels have made of it.
    pub fn set(&self, launch: &Launch, is_enabled: bool) -> Result {
        let wanted = ARGUMENTS as usize + launch.arguments.len();
        let last = self.states.lock().last().copied();
        let (state, is_new) = match last.filter(|state| state.bytes >= wanted) {
            Some(state) => (state, false),
            None => (HostMemory::new(self.context, wanted.next_multiple_of(256))?, true),
        };
        let len = u32::try_from(launch.arguments.len()).unwrap_or(u32::MAX);
        state.word(0).store(len, Ordering::Relaxed);
        state.word(IS_ENABLED).store(is_enabled.into(), Ordering::Relaxed);
        for (at, &side) in (GRID..).step_by(4).zip(&launch.grid) {
            state.word(at).store(side, Ordering::Relaxed);
        }
        let to = state.place(ARGUMENTS, launch.arguments.len());
        // SAFETY: the arguments' place in memory of this node's.
        unsafe { to.copy_from_nonoverlapping(launch.arguments.as_ptr(), launch.arguments.len()) };
        if is_new {
            self.states.lock().push(state);
        }
        made(self.context)?.show(NODES + entry(self.handle), self.handle, Some(state.device))
    }

    /// What is to run, if anything.
    pub fn get(&self) -> Option<Launch> {
        let state = self.states.lock().last().copied()?;
        if state.word(IS_ENABLED).load(Ordering::Acquire) == 0 {
            return None;
        }
        let grid = [0, 4, 8].map(|axis| state.word(GRID + axis).load(Ordering::Relaxed));
        let len = state.word(0).load(Ordering::Relaxed) as usize;
        let mut arguments = vec![0; len.min(state.bytes - ARGUMENTS as usize)];
        let from = state.place(ARGUMENTS, arguments.len());
        // SAFETY: the arguments' place in memory of this node's.
        unsafe { arguments.as_mut_ptr().copy_from_nonoverlapping(from, arguments.len()) };
        Some(Launch { grid, arguments })
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(memory) = of(self.context.id()) {
            memory.hide(NODES + entry(self.handle), self.handle);
        }
        let states = core::mem::take(self.states.get_mut());
        if self.context.is_alive() && self.context.bind().is_ok() {
            states.into_iter().for_each(|state| state.give_back(self.context));
        }
    }
}
