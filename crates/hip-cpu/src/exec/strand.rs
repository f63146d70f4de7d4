//! Setting `simd`, kernels with loops that wait for other blocks: a block runs on a fiber and suspends itself at each trip.
//!
//! Blocks are handed out in order and one at a time, so who waits for earlier blocks rarely waits long: its OS thread
//! looks a few times. Then it begins the next block beside the one that waits, so blocks that wait for later ones
//! advance however few cores there are.

use std::cell::Cell;

use corosensei::stack::DefaultStack;

use super::arena::Mapping;
use super::fiber::{self, Fiber};
use super::guard::Guard;
use super::lane::{patience, pause};
use super::{Fault, Grid, Launch, RunFn, Worker};

/// What a fiber answers besides the statuses of kernel code.
const WAITS: i32 = 2;
const HAS_RUN: i32 = 3;
const NONE_LEFT: i32 = 4;

/// A block's memory and stack, kept by the OS thread from block to block.
#[derive(Default)]
pub struct Strand {
    shared: Mapping,
    context: Mapping,
    local: Mapping,
    stack: Option<DefaultStack>,
    fiber: Option<Fiber>,
}

/// What an OS thread's fibers see of each other.
struct Crew<'a> {
    next: &'a dyn Fn() -> Option<u64>,
    /// Nobody waits: a fiber goes on with the next block.
    alone: Cell<bool>,
    /// Blocks that have ended.
    n_ended: Cell<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Turn {
    Waits,
    HasRun,
    NoneLeft,
}

type Run = unsafe extern "C" fn(*const Launch, *const Worker, u64, u64) -> i32;

/// Runs blocks until `next` gives no more and all have ended, or `stopped` says that the grid failed elsewhere.
pub(super) fn run_blocks(
    run: RunFn,
    guard: &Guard,
    grid: &Grid<'_>,
    number: u32,
    spare: &mut Vec<Strand>,
    next: &dyn Fn() -> Option<u64>,
    stopped: impl Fn() -> bool,
) -> Result<(), Fault> {
    let crew = Crew { next, alone: Cell::new(true), n_ended: Cell::new(0) };
    let mut waiting: Vec<Strand> = vec![];
    let (mut more, mut idle_rounds) = (true, 0u32);
    while (more || !waiting.is_empty()) && !stopped() {
        let mut advanced = false;
        let mut at = 0;
        while at < waiting.len() {
            if waiting[at].resume(guard)? == Turn::Waits {
                at += 1;
            } else {
                spare.push(waiting.swap_remove(at));
                advanced = true;
            }
        }
        let patience = patience(grid, waiting.len());
        if more && patience < u32::MAX {
            let mut strand = spare.pop().unwrap_or_default();
            crew.alone.set(waiting.is_empty());
            strand.begin(run, grid, number, &crew)?;
            match strand.resume_patiently(guard, patience, &crew, &stopped)? {
                Turn::Waits => waiting.push(strand),
                turn => {
                    more = turn == Turn::HasRun;
                    spare.push(strand);
                }
            }
            advanced = true;
        }
        idle_rounds = if advanced { 0 } else { idle_rounds + 1 };
        if !advanced {
            pause(idle_rounds);
        }
    }
    Ok(())
}

impl Strand {
    /// Prepares a fiber that runs the next block, or all that are left.
    fn begin(&mut self, run: RunFn, grid: &Grid<'_>, number: u32, crew: &Crew<'_>) -> Result<(), Fault> {
        let Grid { kernel, launch, tensor_memory, .. } = *grid;
        let worker =
            super::worker(kernel, grid, [&mut self.shared, &mut self.context, &mut self.local], number)?;
        let stack = fiber::stack(kernel.stack_bytes(), self.stack.take())?;
        // SAFETY: the emitter's entry has this signature.
        let run = unsafe { std::mem::transmute::<*const std::ffi::c_void, Run>(run.0) };
        let launch: *const Launch = launch;
        let crew: *const Crew<'static> = std::ptr::from_ref(crew).cast();
        self.fiber = Some(Fiber::new(stack, worker, move |worker| {
            // SAFETY: no fiber is resumed when its crew has gone.
            let crew = unsafe { &*crew };
            while let Some(block) = (crew.next)() {
                if tensor_memory {
                    // SAFETY: the fiber's worker has a window up to `END`, and begins a block.
                    unsafe { super::tensor_memory::clear(worker.shared) };
                }
                // SAFETY: the emitter's code with the structures it was made for, alive as long as the crew.
                let status = unsafe { run(launch, worker, block, 1) };
                if status != 0 {
                    return status;
                }
                // SAFETY: as above; the block has ended.
                if tensor_memory && unsafe { super::tensor_memory::is_left(worker.shared) } {
                    return super::tensor_memory::LEAK;
                }
                crew.n_ended.set(crew.n_ended.get() + 1);
                if !crew.alone.get() {
                    return HAS_RUN;
                }
            }
            NONE_LEFT
        }));
        Ok(())
    }

    fn resume(&mut self, guard: &Guard) -> Result<Turn, Fault> {
        let Some(fiber) = &mut self.fiber else { return Ok(Turn::NoneLeft) };
        let turn = match fiber.resume(guard) {
            WAITS => return Ok(Turn::Waits),
            HAS_RUN => Ok(Turn::HasRun),
            NONE_LEFT => Ok(Turn::NoneLeft),
            status => Err(Fault::of_status(status)),
        };
        self.stack = self.fiber.take().map(Fiber::into_stack);
        turn
    }

    /// Until it has waited `patience` times in one block.
    fn resume_patiently(
        &mut self,
        guard: &Guard,
        patience: u32,
        crew: &Crew<'_>,
        stopped: &impl Fn() -> bool,
    ) -> Result<Turn, Fault> {
        let mut idle = 0;
        loop {
            let before = crew.n_ended.get();
            let turn = self.resume(guard)?;
            idle = if crew.n_ended.get() == before { idle + 1 } else { 1 };
            if turn != Turn::Waits || idle >= patience || stopped() {
                return Ok(turn);
            }
            pause(idle);
        }
    }
}

impl Drop for Strand {
    fn drop(&mut self) {
        // A grid that failed leaves fibers in the middle of a block.
        self.stack = self.fiber.take().map(Fiber::into_stack);
    }
}
