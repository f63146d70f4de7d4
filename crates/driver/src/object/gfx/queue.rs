//! What kernels on AMD GPUs want done after them: grids, copies, fills and graphs (`compiler::gcn::children`).
//!
//! A launch of a kernel that asks the device runtime gets a queue, and is waited for; then the queue is read. So one that is read is
//! written by nobody, and the next launch may have it.
//! Rule: no lock is held while HIP is asked.

use compiler::device_runtime::order::{self, Standing, behind};
use compiler::device_runtime::{Call, TAIL};
use compiler::gcn::children::{
    BLOCK, CAPACITY, FIRST, GRAPHS, GRID, HANDLES, Header, IS_IN_GRAPH, IS_OWN_TAIL, MOST_HANDLES, Mode,
    N_GRAPHS, N_HANDLES, N_TAIL, OWN_GRAPH, PARAMS, PARAMS_BYTES, PLACE, PLACES, REFUSED, SHARED, STATE,
    STREAM, State, TAIL_ROOM, TAKEN, WHAT,
};
use cuda_abi::CUmodule;
use hip_sys::{self as hip, hipEvent_t};
use parking_lot::Mutex;

use super::super::graph::fired::{self, Told};
use super::super::{Context, Shared, Stream};
use super::graphs;
use super::host_memory::HostMemory;
use crate::Result;

/// Room for 70,000 launches with a few parameters, or 250 with as many as there can be.
const BYTES: usize = 8 << 20;

/// What comes after a grid.
pub enum Work {
    Launch(Launch),
    Copy { to: Place, from: Place, extent: [u64; 3] },
    Fill { to: Place, value: u8, extent: [u64; 3] },
    Graph { graph: u64, mode: Mode },
}

/// A kernel, by its number in the module, and how it is to run.
pub struct Launch {
    pub kernel: usize,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub params: Vec<u8>,
}

/// Where a box of bytes begins, and how far its rows and slices are apart.
#[derive(Clone, Copy)]
pub struct Place {
    pub at: u64,
    pub pitch: u64,
    pub slice: u64,
}

impl order::Work for Work {
    fn is_launch(&self) -> bool {
        matches!(self, Work::Launch(_))
    }
}

/// Host memory that a kernel writes to.
pub struct Queue {
    memory: HostMemory,
    /// Recorded behind the launch.
    done: Shared<hipEvent_t>,
    context: &'static Context,
    context_id: u64,
    /// Whose kernels stand in it.
    module: Shared<CUmodule>,
    /// What is told of kernels there is told as it was then, if at all.
    facts_of: Option<u64>,
}

/// Those that no launch has.
static FREE: Mutex<Vec<Queue>> = Mutex::new(Vec::new());

impl Queue {
    /// One for a launch of that module's: empty. `header` says what the kernel is told, where that is not known from launches before;
    /// what it is told of kernels may change with `settings`, if it asks.
    pub fn take(
        context: &'static Context,
        module: CUmodule,
        header: impl FnOnce() -> Header,
        settings: Option<u64>,
        room: usize,
    ) -> Result<Queue> {
        let found = {
            let mut free = FREE.lock();
            let is_own = |queue: &Queue| queue.context_id == context.id();
            let best = free.iter().position(|queue| is_own(queue) && queue.module.0 == module);
            best.or_else(|| free.iter().position(is_own)).map(|index| free.swap_remove(index))
        };
        let mut queue = match found {
            Some(queue) => queue,
            None => Queue::new(context)?,
        };
        if queue.module.0 != module || (settings.is_some() && queue.facts_of != settings) {
            let header = header().to_bytes(BYTES as u64);
            // Records are zeros before they are written.
            let stale = (queue.wide(FIRST) as usize).min(BYTES);
            // SAFETY: inside of the queue, to which nobody writes.
            unsafe { queue.memory.host.0.write_bytes(0, stale) };
            queue.put(0, &header);
            queue.module = Shared(module);
            queue.facts_of = settings;
        }
        let Told { is_in_graph, graph, is_own_tail, n_graphs } = fired::told();
        queue.put(GRAPHS, &graphs::address(context).to_le_bytes());
        queue.put(OWN_GRAPH, &graph.to_le_bytes());
        let flags = [(IS_IN_GRAPH, u32::from(is_in_graph)), (IS_OWN_TAIL, is_own_tail.into())];
        let counts = (N_GRAPHS..).step_by(4).zip(n_graphs);
        for (at, word) in flags.into_iter().chain(counts) {
            queue.put(at, &word.to_le_bytes());
        }
        queue.put(TAIL_ROOM, &u32::try_from(room).unwrap_or(u32::MAX).to_le_bytes());
        Ok(queue)
    }

    fn new(context: &'static Context) -> Result<Queue> {
        let memory = HostMemory::new(context, BYTES)?;
        let mut done: hipEvent_t = core::ptr::null_mut();
        // SAFETY: a writable handle.
        let made = unsafe { context.hip().hipEventCreateWithFlags(&mut done, hip::hipEventDisableTiming) };
        if let Err(error) = made {
            memory.give_back(context);
            return Err(error.into());
        }
        Ok(Queue {
            memory,
            done: Shared(done),
            context,
            context_id: context.id(),
            module: Shared(core::ptr::null_mut()),
            facts_of: None,
        })
    }

    /// Where the kernel finds it.
    pub fn address(&self) -> u64 {
        self.memory.device
    }

    /// Waits for the launch that writes to it, and gives what comes after the grid, whose standing this is.
    pub fn read(self, stream: &Stream, standing: Standing) -> Result<Vec<(Work, Standing)>> {
        let hip = self.context.hip();
        // SAFETY: both are alive.
        let waited = unsafe { hip.hipEventRecord(self.done.0, stream.hip.0) }
            // SAFETY: as above.
            .and_then(|()| unsafe { hip.hipEventSynchronize(self.done.0) });
        if let Err(error) = waited {
            // The kernel may still write: nobody else gets this queue, whose context cannot go on.
            tracing::error!(target: "cudaway::driver", "a kernel that launches others cannot be waited for: {error:?}");
            return Err(error.into());
        }
        self.tell_refused();
        let [children, tail] = self.records();
        fired::has_counted(Told {
            is_own_tail: self.word(IS_OWN_TAIL) != 0,
            n_graphs: [0, 4, 8].map(|mode| self.word(N_GRAPHS + mode)),
            ..Told::default()
        });
        self.put_back();
        Ok(behind(standing, children, tail))
    }

    /// Empties it, for the next launch.
    pub fn put_back(self) {
        let first = self.wide(FIRST);
        let taken = self.wide(TAKEN).min(self.wide(CAPACITY));
        let n_handles = u64::from(self.word(N_HANDLES)).min(MOST_HANDLES);
        for (offset, bytes) in [(first, taken), (HANDLES, 4 * n_handles)] {
            let (offset, bytes) =
                (offset.min(BYTES as u64), bytes.min(BYTES as u64 - offset.min(BYTES as u64)));
            // SAFETY: inside of the queue, to which nobody writes any more.
            unsafe { self.memory.host.0.add(offset as usize).write_bytes(0, bytes as usize) };
        }
        for (offset, bytes) in [(TAKEN, 8), (PLACES, 8), (N_TAIL, 4), (N_HANDLES, 4)] {
            self.put(offset, &[0; 8][..bytes]);
        }
        FREE.lock().push(self);
    }

    fn put(&self, offset: u64, bytes: &[u8]) {
        let offset = (offset as usize).min(BYTES);
        let n = bytes.len().min(BYTES - offset);
        // SAFETY: inside of the queue, to which no kernel writes now.
        unsafe { self.memory.host.0.add(offset).copy_from_nonoverlapping(bytes.as_ptr(), n) };
    }

    fn at<const N: usize>(&self, offset: u64) -> [u8; N] {
        let offset = (offset as usize).min(BYTES - N);
        // SAFETY: inside of the queue, to which nobody writes any more.
        unsafe { self.memory.host.0.add(offset).cast::<[u8; N]>().read_volatile() }
    }

    fn word(&self, offset: u64) -> u32 {
        u32::from_le_bytes(self.at(offset))
    }

    fn wide(&self, offset: u64) -> u64 {
        u64::from_le_bytes(self.at(offset))
    }

    /// Says once for each call that kernels do not have it here.
    fn tell_refused(&self) {
        static SAID: Mutex<Vec<Call>> = Mutex::new(vec![]);
        for &call in Call::ALL {
            let flag = REFUSED + 4 * call as u64;
            if self.word(flag) == 0 {
                continue;
            }
            self.put(flag, &[0; 4]);
            let mut said = SAID.lock();
            if !said.contains(&call) {
                said.push(call);
                tracing::warn!(
                    target: "cudaway::driver",
                    "a kernel calls cuda{call:?} in a way that is not supported inside of kernels on AMD GPUs"
                );
            }
        }
    }

    /// The grid's children, and its tail, in the order in which they were asked for.
    fn records(&self) -> [Vec<Work>; 2] {
        let first = self.wide(FIRST).min(BYTES as u64);
        let end = first.saturating_add(self.wide(TAKEN).min(self.wide(CAPACITY))).min(BYTES as u64);
        let mut found = vec![];
        let mut at = first;
        while at + PARAMS <= end {
            let bytes = u64::from(self.word(at)) & !15;
            // Not finished, or damaged by a kernel that writes where it may not.
            if bytes < PARAMS || at + bytes > end {
                break;
            }
            found.extend(
                self.work(at, bytes)
                    .map(|work| (self.wide(at + PLACE), self.wide(at + STREAM) == TAIL, work)),
            );
            at += bytes;
        }
        found.sort_unstable_by_key(|&(place, ..)| place);
        let (tail, children): (Vec<_>, Vec<_>) = found.into_iter().partition(|(_, is_tail, _)| *is_tail);
        [children, tail].map(|part| part.into_iter().map(|(.., work)| work).collect())
    }

    fn work(&self, at: u64, bytes: u64) -> Option<Work> {
        let wide = |nth: u64| self.wide(at + WHAT + 8 * nth);
        let place = |nth: u64| Place { at: wide(nth), pitch: wide(nth + 1), slice: wide(nth + 2) };
        let sides = |offset: u64| [0, 4, 8].map(|axis| self.word(at + offset + axis));
        match self.word(at + STATE) {
            state if state == State::Launch as u32 => {
                let n = u64::from(self.word(at + PARAMS_BYTES)).min(bytes - PARAMS);
                let mut params = vec![0; n as usize];
                // SAFETY: the record lies in the queue, to which nobody writes any more.
                unsafe {
                    let from = self.memory.host.0.add((at + PARAMS) as usize);
                    params.as_mut_ptr().copy_from_nonoverlapping(from, params.len());
                }
                Some(Work::Launch(Launch {
                    kernel: self.word(at + WHAT) as usize,
                    grid: sides(GRID),
                    block: sides(BLOCK),
                    dynamic_shared: self.word(at + SHARED),
                    params,
                }))
            }
            state if state == State::Copy as u32 => {
                Some(Work::Copy { to: place(0), from: place(3), extent: [6, 7, 8].map(wide) })
            }
            state if state == State::Fill as u32 => {
                let value = wide(3) as u8;
                Some(Work::Fill { to: place(0), value, extent: [4, 5, 6].map(wide) })
            }
            state if state == State::Graph as u32 => {
                let mode = *Mode::ALL.get(usize::try_from(wide(1)).ok()?)?;
                Some(Work::Graph { graph: wide(0), mode })
            }
            // Room that was asked for, and no launch.
            _ => None,
        }
    }

    fn release_memory(self) {
        // SAFETY: it is this queue's, and nobody uses it any more. There is nobody to tell of an error.
        let _ = unsafe { self.context.hip().hipEventDestroy(self.done.0) };
        self.memory.give_back(self.context);
    }
}

/// A module goes, whose number another may get.
pub fn forget_kernels_of(module: CUmodule) {
    for queue in FREE.lock().iter_mut().filter(|queue| queue.module.0 == module) {
        queue.module = Shared(core::ptr::null_mut());
    }
}

/// What the limits and the device say is told anew.
pub fn forget_limits(context_id: u64) {
    for queue in FREE.lock().iter_mut().filter(|queue| queue.context_id == context_id) {
        queue.module = Shared(core::ptr::null_mut());
    }
}

/// A context ends, and its device is idle.
pub fn forget_context(context_id: u64) {
    let gone: Vec<Queue> = FREE.lock().extract_if(.., |queue| queue.context_id == context_id).collect();
    gone.into_iter().for_each(Queue::release_memory);
}
