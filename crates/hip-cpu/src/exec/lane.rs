//! Settings `lane` and `warp`: one block, each CUDA thread (`lane`) or each warp (`warp`) stepped from meeting point to meeting point.
//!
//! Threads are independent, as on NVIDIA since Volta: a lane may wait for another lane of its warp. What they wait for is in
//! [`barrier`] and [`collective`]. When every live thread waits and nothing completes, the block is stuck and the grid fails.
//!
//! A block whose threads only spin waits for another block: its OS thread keeps it and begins the next one beside it,
//! so blocks that wait for each other advance however few cores there are.

mod barrier;
mod collective;

use std::arch::x86_64::{__m128i, _mm_cmpeq_epi8, _mm_loadu_si128, _mm_movemask_epi8, _mm_set1_epi8};

use super::arena::Mapping;
use super::fiber::Fibers;
use super::gate::{BEGIN_ANEW, Gate};
use super::guard::Guard;
use super::sanitize;
use super::{Fault, Grid, StepFn, Thread, Turns, Warp, Worker, block_index, tensor_memory};
use barrier::Barrier;
use compiler::back::cpu::Setting;

/// What the threads of a stuck block wait for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stuck {
    pub at_barrier: u32,
    pub at_collective: u32,
    pub ended: u32,
    /// One that waits, and one that waits elsewhere.
    pub waiting: [Option<Waiting>; 2],
}

/// A thread that waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub block: [u32; 3],
    /// Number in the block.
    pub thread: u32,
    /// In the PTX ([`compiler::lines::Lines`]).
    pub position: u32,
}

impl std::fmt::Display for Stuck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Stuck { at_barrier, at_collective, ended, .. } = self;
        write!(f, "{at_barrier} at a barrier, {at_collective} at a warp collective, {ended} ended")
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum State {
    Ready,
    /// Ready too, but found nothing to do the last time.
    Spinning,
    AtCollective,
    AtActiveMask,
    AtBarrier,
    AtClusterBarrier,
    Ended,
}

mod request {
    pub const BARRIER: u32 = 1;
    pub const SHFL: u32 = 2;
    pub const VOTE: u32 = 3;
    pub const MATCH: u32 = 4;
    pub const REDUX: u32 = 5;
    pub const ACTIVE_MASK: u32 = 6;
    pub const ELECT: u32 = 7;
    pub const WARP_SYNC: u32 = 8;
    pub const CLUSTER_ARRIVE: u32 = 9;
    pub const CLUSTER_WAIT: u32 = 10;
    pub const EXCHANGE: u32 = 11;
}

/// Of [`Thread::position`]: the barrier is `.aligned`.
const ALIGNED: u32 = 1 << 31;

/// What a step returns after a failed assertion.
const ASSERTION: i32 = -2;

/// Threads of a warp, on every target.
const WARP: usize = 32;
const MAX_WARPS: usize = 32;
const N_BARRIERS: usize = 16;
/// Four warps each, which have a barrier of their own.
const N_WARPGROUPS: usize = MAX_WARPS / 4;
const _: () = assert!(N_BARRIERS + N_WARPGROUPS <= 32, "a bit for each");

/// Scheduling state of a block.
#[derive(Default)]
struct Lanes {
    /// One per record; in `lane` up to whole warps, of which lanes that there are not have ended.
    states: Vec<State>,
    n_threads: usize,
    /// Setting `warp`: a record is a warp's.
    per_warp: bool,
    /// Lanes that ended, per warp.
    ended: [u32; MAX_WARPS],
    n_ended: u32,
    /// Passes in which something moved.
    n_steps: u64,
    /// A thread was told that the block had better be begun anew.
    is_given_up: bool,
    barriers: Vec<Barrier>,
    /// By bit, those that somebody has arrived at.
    barriers_in_use: u32,
    /// Lanes that arrived at the cluster's barrier and that it has not let pass since, per warp.
    cluster_arrived: [u32; MAX_WARPS],
    /// Of kernels that need them.
    fibers: Fibers,
}

/// One block's memory and state, kept by the OS thread from block to block.
#[derive(Default)]
pub struct Resident {
    shared: Mapping,
    context: Mapping,
    local: Mapping,
    lanes: Lanes,
    /// In a box: the worker points to it while residents move.
    sanitizer: Box<sanitize::Block>,
    gate: Box<Gate>,
}

/// Blocks that one OS thread holds at most, but for cooperative grids.
const MAX_RESIDENT: usize = 1024;
/// Passes in which nothing moved before the OS thread begins another block.
const PATIENCE: u32 = 64;

/// Passes in which nothing moved before the OS thread that waits with `held` blocks begins another one.
pub(super) fn patience(grid: &Grid<'_>, held: usize) -> u32 {
    // All blocks of a cooperative grid must be begun, however few OS threads there are.
    let is_cooperative = !grid.launch.workspace.is_null();
    if held < MAX_RESIDENT || is_cooperative { PATIENCE } else { u32::MAX }
}

/// Runs blocks until there are no more and all have ended, the grid failed elsewhere, or other code is to go on and none of
/// these waits.
pub(super) fn run_blocks(
    step: (StepFn, &Guard),
    grid: &Grid<'_>,
    number: u32,
    residents: &mut Vec<Resident>,
    turns: Turns<'_, impl Fn() -> Option<u64>, impl Fn() -> bool, impl Fn() -> bool>,
) -> Result<(), Fault> {
    let Turns { next, stopped, is_outdated, anew } = turns;
    // Blocks that wait for other blocks; one block that runs through is the common case and stays out of here.
    let mut waiting: Vec<(Resident, Worker, u64)> = vec![];
    // Those that wait may wait for blocks that nobody else begins.
    while !(waiting.is_empty() && is_outdated()) {
        let Some(linear) = next() else { break };
        let mut resident = residents.pop().unwrap_or_default();
        let worker = resident.begin(grid, number, linear)?;
        // One that waits may wait for this one.
        if anew.is_some() && waiting.is_empty() {
            resident.gate.close(grid, resident.lanes.n_threads);
        }
        let mut block = Block::of(&mut resident, grid, &worker);
        let patience = patience(grid, waiting.len());
        match (block.run(step, grid, &worker, patience, &stopped)?, anew) {
            (Turn::BeginAnew, Some(begin_anew)) => {
                begin_anew(linear);
                residents.push(resident);
                // This OS thread waits for better code.
                break;
            }
            (Turn::Waits, _) => {
                resident.gate.open();
                waiting.push((resident, worker, linear));
            }
            _ => residents.push(resident),
        }
        if stopped() {
            return Ok(());
        }
    }
    let mut idle_rounds = 0u32;
    while !waiting.is_empty() {
        let mut advanced = false;
        let mut i = 0;
        while i < waiting.len() {
            let (resident, worker, _) = &mut waiting[i];
            let mut block = Block::of(resident, grid, worker);
            let before = block.lanes.n_steps;
            match block.run(step, grid, worker, 1, &stopped)? {
                Turn::Ended => {
                    residents.push(waiting.swap_remove(i).0);
                    advanced = true;
                }
                Turn::Waits => {
                    advanced |= block.lanes.n_steps != before;
                    i += 1;
                }
                // Their gates are open.
                Turn::BeginAnew => return Err(Fault::Status(BEGIN_ANEW)),
            }
        }
        if stopped() {
            return Ok(());
        }
        idle_rounds = if advanced { 0 } else { idle_rounds + 1 };
        pause(idle_rounds);
    }
    Ok(())
}

/// Waits a little for another block, another stream or the host; longer the longer it lasts.
pub(super) fn pause(idle: u32) {
    match idle {
        0..16 => std::hint::spin_loop(),
        16..4096 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

impl Lanes {
    fn stuck(&self) -> Stuck {
        if self.per_warp {
            // Nothing else makes a warp wait.
            let at_barrier = self.n_threads as u32 - self.n_ended;
            return Stuck { at_barrier, ended: self.n_ended, ..Stuck::default() };
        }
        let states = &self.states[..self.n_threads];
        let count = |wanted: &[State]| states.iter().filter(|s| wanted.contains(s)).count() as u32;
        Stuck {
            at_barrier: count(&[State::AtBarrier, State::AtClusterBarrier]),
            at_collective: count(&[State::AtCollective, State::AtActiveMask]),
            ended: count(&[State::Ended]),
            ..Stuck::default()
        }
    }
}

impl Resident {
    /// Whether a thread is in that state.
    pub(super) fn any(&self, state: State) -> bool {
        self.lanes.states.contains(&state)
    }

    pub(super) fn stuck(&self) -> Stuck {
        self.lanes.stuck()
    }

    /// Prepares the memory and the thread records for block `linear`.
    pub(super) fn begin(&mut self, grid: &Grid<'_>, number: u32, linear: u64) -> Result<Worker, Fault> {
        let Grid { kernel, launch, shared_bytes, sanitizer, .. } = *grid;
        let [bx, by, bz] = launch.block;
        let n_threads = (bx * by * bz) as usize;
        let n_records = if kernel.setting == Setting::Warp { n_threads.div_ceil(WARP) } else { n_threads };
        let stride = stride(grid);
        let local_bytes = kernel.local_bytes * n_threads as u64;
        // The blocks of a cluster have their part of its window.
        let is_alone = launch.cluster == [1; 3];
        self.shared.ensure(if is_alone { grid.window_bytes() } else { 0 })?;
        if is_alone && grid.tensor_memory {
            // SAFETY: `ensure` has mapped `window_bytes`, and the block has not begun.
            unsafe { tensor_memory::clear(self.shared.base()) };
        }
        self.context.ensure((stride * n_records) as u64)?;
        self.local.ensure(local_bytes)?;
        let lanes = &mut self.lanes;
        lanes.states.clear();
        lanes.states.resize(n_records, State::Ready);
        if kernel.setting == Setting::Lane {
            lanes.states.resize(n_records.next_multiple_of(WARP), State::Ended);
        }
        lanes.n_threads = n_threads;
        lanes.per_warp = kernel.setting == Setting::Warp;
        lanes.ended = [0; MAX_WARPS];
        lanes.n_ended = 0;
        lanes.is_given_up = false;
        lanes.cluster_arrived = [0; MAX_WARPS];
        lanes.barriers.resize_with(N_BARRIERS + N_WARPGROUPS, Barrier::default);
        bits(std::mem::take(&mut lanes.barriers_in_use)).for_each(|id| lanes.barriers[id].reset());
        lanes.fibers.begin(if kernel.stackful { n_threads } else { 0 }, kernel.stack_bytes());
        self.gate.open();
        let worker = Worker {
            shared: self.shared.base(),
            context: self.context.base(),
            local: self.local.base(),
            number,
            shared_bytes,
            block: block_index(linear, launch.grid),
            linear: linear as u32,
            local_bytes,
            cluster_rank: 0,
            pad: 0,
            sanitizer: match sanitizer {
                Some(run) => {
                    self.sanitizer.begin(run, shared_bytes);
                    &raw mut *self.sanitizer
                }
                None => std::ptr::null_mut(),
            },
            gate: &raw const *self.gate,
        };
        let mut block = Block::of(self, grid, &worker);
        for record in 0..n_records {
            // What lies behind a record's head is written before it is read.
            // SAFETY: the mapping has `stride` bytes for each record, the head's at least.
            unsafe { block.records.add(record * stride).write_bytes(0, HEAD_BYTES) };
        }
        if block.per_warp {
            for w in 0..n_records {
                let alive = block.present(w);
                let warp = block.warp(w);
                warp.index = w as u32;
                warp.alive = alive;
                warp.linear = (w * WARP) as u32;
                warp.local = worker.local.wrapping_add(w * WARP * kernel.local_bytes as usize);
            }
            return Ok(worker);
        }
        let mut linear = 0;
        for z in 0..bz {
            for y in 0..by {
                for x in 0..bx {
                    let thread = block.thread(linear);
                    thread.tid = [x, y, z];
                    thread.linear = linear as u32;
                    thread.local = worker.local.wrapping_add(linear * kernel.local_bytes as usize);
                    linear += 1;
                }
            }
        }
        Ok(worker)
    }
}

pub(super) enum Turn {
    Ended,
    /// Nothing moved for as many passes as patience allowed.
    Waits,
    /// Nobody has seen anything of it, and it is better begun anew.
    BeginAnew,
}

/// What became of threads in a pass over a block.
#[derive(Default)]
struct Moved {
    /// One of them got anywhere.
    advanced: bool,
    /// One of them goes round in a loop that waits.
    spinning: bool,
}

pub(super) struct Block<'a> {
    lanes: &'a mut Lanes,
    records: *mut u8,
    stride: usize,
    /// The window of its shared memory, or of its cluster's.
    shared: *mut u8,
    n_threads: usize,
    /// It is a cluster by itself.
    is_cluster: bool,
    /// Setting `warp`: a record is a warp's.
    per_warp: bool,
    index: [u32; 3],
    /// Null unless the sanitizer watches.
    sanitizer: *const sanitize::Block,
    gate: &'a Gate,
}

/// Of a record, at most: the fields before a thread's or a warp's values.
const HEAD_BYTES: usize = size_of::<Warp>();

/// Bytes from one record to the next; a warp's has vectors in it.
fn stride(grid: &Grid<'_>) -> usize {
    grid.kernel.context_bytes.next_multiple_of(64) as usize
}

impl<'a> Block<'a> {
    pub fn of(resident: &'a mut Resident, grid: &Grid<'_>, worker: &Worker) -> Block<'a> {
        Block {
            records: worker.context,
            stride: stride(grid),
            shared: worker.shared,
            n_threads: resident.lanes.n_threads,
            is_cluster: grid.launch.cluster == [1; 3],
            per_warp: resident.lanes.per_warp,
            index: worker.block,
            sanitizer: worker.sanitizer,
            gate: &resident.gate,
            lanes: &mut resident.lanes,
        }
    }

    /// Record `t`. In `warp` it is a warp's, which has a thread's request at the same place.
    fn thread(&mut self, t: usize) -> &mut Thread {
        debug_assert!(t < self.lanes.states.len());
        // SAFETY: `t` is below the number of records; `&mut self` keeps the reference alone.
        unsafe { &mut *self.records.add(t * self.stride).cast::<Thread>() }
    }

    fn warp(&mut self, w: usize) -> &mut Warp {
        debug_assert!(self.per_warp && w < self.lanes.states.len());
        // SAFETY: as above; in `warp` records are warps'.
        unsafe { &mut *self.records.add(w * self.stride).cast::<Warp>() }
    }

    fn n_warps(&self) -> usize {
        self.n_threads.div_ceil(WARP)
    }

    /// Lanes that the warp has at all.
    fn present(&self, warp: usize) -> u32 {
        match self.n_threads - warp * WARP {
            n if n >= WARP => u32::MAX,
            n => (1 << n) - 1,
        }
    }

    /// The warp's lanes in that state, in setting `lane`.
    fn lanes_in(&self, warp: usize, state: State) -> u32 {
        let states: &[State; WARP] =
            self.lanes.states[warp * WARP..].first_chunk().unwrap_or(&[State::Ended; WARP]);
        // SAFETY: SSE2 is part of x86-64; there are 32 bytes.
        unsafe {
            let at: *const __m128i = states.as_ptr().cast();
            let wanted = _mm_set1_epi8(state as i8);
            let half = |nth: usize| _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_loadu_si128(at.add(nth)), wanted));
            half(0).cast_unsigned() | half(1).cast_unsigned() << 16
        }
    }

    /// Passes in which something moved, since the block began.
    pub fn n_steps(&self) -> u64 {
        self.lanes.n_steps
    }

    /// Runs until the block has ended, or nothing moved in `patience` passes.
    pub fn run(
        &mut self,
        step: (StepFn, &Guard),
        grid: &Grid<'_>,
        worker: &Worker,
        patience: u32,
        stopped: &impl Fn() -> bool,
    ) -> Result<Turn, Fault> {
        let mut idle_passes = 0u32;
        loop {
            let mut moved = Moved::default();
            for warp in 0..self.n_warps() {
                // A warp goes on while it meets only itself; the bound lets other warps run too.
                for _ in 0..64 {
                    self.step_warp(step, grid, worker, warp, &mut moved).map_err(|fault| *fault)?;
                    if self.gate.is_closed() && (self.lanes.is_given_up || grid.kernel.better.get().is_some())
                    {
                        return Ok(Turn::BeginAnew);
                    }
                    if !self.complete_collectives(warp) {
                        break;
                    }
                    moved.advanced = true;
                }
            }
            moved.advanced |= self.complete_barriers();
            if self.is_cluster && self.has_cluster_arrivals() && self.has_arrived_at_cluster() {
                self.pass_cluster_barrier();
                moved.advanced = true;
            }
            if self.lanes.n_ended as usize == self.n_threads {
                // The blocks of a pair give back together.
                if grid.launch.cluster == [1; 3] {
                    grid.check_for_leak(worker.shared)?;
                }
                return Ok(Turn::Ended);
            }
            if moved.advanced {
                self.lanes.n_steps += 1;
                idle_passes = 0;
            } else if !moved.spinning {
                if !self.is_cluster {
                    // Another block of the cluster may be the one that moves; the cluster sees if none does.
                    return Ok(Turn::Waits);
                }
                return Err(Fault::Deadlock(self.stuck()));
            } else {
                idle_passes += 1;
                if idle_passes >= patience || stopped() {
                    return Ok(Turn::Waits);
                }
                pause(idle_passes);
            }
        }
    }

    fn stuck(&mut self) -> Stuck {
        let mut stuck = self.lanes.stuck();
        for t in 0..self.lanes.states.len() {
            if self.lanes.states[t] == State::Ended {
                continue;
            }
            let (block, position) = (self.index, self.thread(t).position & !ALIGNED);
            let thread = if self.per_warp { t * WARP } else { t };
            let waiting = Waiting { block, thread: thread as u32, position };
            match &mut stuck.waiting {
                [first @ None, _] => *first = Some(waiting),
                [Some(first), other @ None] if first.position != position => *other = Some(waiting),
                _ => {}
            }
        }
        stuck
    }

    /// Steps every lane that can run. (What becomes of them is not in the result, and a fault is boxed: a `Result<_, Fault>` is copied as
    /// words of which only a part has just been written, and the processor waits for that to reach the cache, once in every step.)
    fn step_warp(
        &mut self,
        step: (StepFn, &Guard),
        grid: &Grid<'_>,
        worker: &Worker,
        warp: usize,
        moved: &mut Moved,
    ) -> Result<(), Box<Fault>> {
        let mut failed = None;
        self.gate.begin_pass();
        let (first, able) = if self.per_warp {
            let is_able = matches!(self.lanes.states[warp], State::Ready | State::Spinning);
            (warp, u32::from(is_able))
        } else {
            (warp * WARP, self.lanes_in(warp, State::Ready) | self.lanes_in(warp, State::Spinning))
        };
        for t in bits(able).map(|lane| first + lane) {
            let (thread, launch) = (std::ptr::from_mut(self.thread(t)), grid.launch);
            // SAFETY: the emitter's code with the structures it was made for; the launch and the records outlive the
            // block.
            let status = unsafe {
                match grid.kernel.stackful {
                    true => self.lanes.fibers.step(t, step.0, step.1, launch, worker, thread)?,
                    false => step.0.call(step.1, launch, worker, thread),
                }
            };
            self.gate.stepped();
            match status {
                BEGIN_ANEW if self.gate.is_closed() => {
                    self.lanes.is_given_up = true;
                    break;
                }
                0 => {
                    self.lanes.states[t] = State::Ended;
                    let lanes = if self.per_warp { self.present(warp) } else { 1 << (t % WARP) };
                    self.end(warp, lanes);
                    moved.advanced = true;
                }
                1 => {
                    self.request(t)?;
                    moved.advanced = true;
                }
                2 => {
                    self.lanes.states[t] = State::Spinning;
                    moved.spinning = true;
                }
                // Each thread of the warp that fails the assertion has its line, as on a GPU.
                ASSERTION => failed = Some(Box::new(Fault::Assert)),
                status => return Err(Fault::of_status(status).into()),
            }
        }
        failed.map_or(Ok(()), Err)
    }

    /// These lanes of a warp end, if they have not before.
    fn end(&mut self, warp: usize, lanes: u32) {
        self.lanes.n_ended += (lanes & !self.lanes.ended[warp]).count_ones();
        self.lanes.ended[warp] |= lanes;
    }

    /// The warp of record `t`, and the lanes that come with it. In `warp` the warp's other lanes have ended.
    fn here(&mut self, t: usize) -> (usize, u32) {
        if !self.per_warp {
            return (t / WARP, 1 << (t % WARP));
        }
        let alive = self.warp(t).alive;
        self.end(t, self.present(t) & !alive);
        (t, alive)
    }

    fn request(&mut self, t: usize) -> Result<(), Box<Fault>> {
        let thread = self.thread(t);
        match thread.kind {
            request::BARRIER => {
                let (id, count, flags) =
                    (thread.args[0] as u32 as usize, thread.args[1] as u32, thread.flags);
                let here = self.here(t);
                self.arrive(t, here, id, count, flags)?;
            }
            request::ACTIVE_MASK => self.lanes.states[t] = State::AtActiveMask,
            request::SHFL..=request::REDUX | request::ELECT | request::WARP_SYNC | request::EXCHANGE => {
                self.lanes.states[t] = State::AtCollective;
            }
            request::CLUSTER_ARRIVE => {
                let (warp, lanes) = self.here(t);
                self.lanes.cluster_arrived[warp] |= lanes;
                self.lanes.states[t] = State::Ready;
            }
            request::CLUSTER_WAIT => {
                let (warp, lanes) = self.here(t);
                // The phase may have ended between the arrival and now.
                let arrived = self.lanes.cluster_arrived[warp] & lanes != 0;
                self.lanes.states[t] = if arrived { State::AtClusterBarrier } else { State::Ready };
            }
            _ => return Err(Fault::Status(1).into()),
        }
        Ok(())
    }
}

/// Set bits, lowest first.
fn bits(mask: u32) -> impl Iterator<Item = usize> {
    let mut rest = mask;
    std::iter::from_fn(move || {
        (rest != 0).then(|| {
            let bit = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            bit
        })
    })
}
