//! Blocks that may be begun anew. Baseline code asks before the first thing that anybody but the block's own threads can see
//! (`compiler::pass::effects`). Until then the block can be given up, since nothing of it is left, and begun in better code: at once
//! where that is there, and where the block is so long that waiting for better code is the shorter way. How long it is follows
//! from what the asking thread has taken: each thread of the block has that before it.

use std::cell::Cell;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use super::{Grid, Kernel, Worker, guard};

/// What a step answers whose block is given up; kernel code never does.
pub const BEGIN_ANEW: i32 = 3;

/// A block's, on the OS thread that runs it.
#[repr(C)]
pub struct Gate {
    /// What kernel code reads: 0 while nobody has seen anything of the block, and may not yet.
    is_open: AtomicU32,
    n_threads: Cell<u32>,
    /// When this pass over a warp's threads began, and how many of them have been stepped in it.
    pass: Cell<Instant>,
    n_stepped: Cell<u32>,
    /// The code that the block runs, while the gate is closed.
    kernel: Cell<*const Kernel>,
}

// SAFETY: a block is one OS thread's at any time.
unsafe impl Send for Gate {}

impl Default for Gate {
    fn default() -> Gate {
        Gate {
            is_open: AtomicU32::new(1),
            n_threads: Cell::default(),
            pass: Cell::new(Instant::now()),
            n_stepped: Cell::default(),
            kernel: Cell::new(std::ptr::null()),
        }
    }
}

impl Gate {
    /// A block of the grid begins.
    pub fn close(&self, grid: &Grid<'_>, n_threads: usize) {
        self.n_threads.set(n_threads as u32);
        self.kernel.set(grid.kernel);
        self.is_open.store(0, Ordering::Relaxed);
    }

    /// The block goes on in any case.
    pub fn open(&self) {
        self.is_open.store(1, Ordering::Relaxed);
    }

    pub fn is_closed(&self) -> bool {
        self.is_open.load(Ordering::Relaxed) == 0
    }

    pub fn begin_pass(&self) {
        if self.is_closed() {
            self.pass.set(Instant::now());
            self.n_stepped.set(0);
        }
    }

    /// A thread was stepped.
    pub fn stepped(&self) {
        self.n_stepped.set(self.n_stepped.get() + 1);
    }

    /// Whether the block is better begun anew.
    fn is_refused(&self) -> bool {
        let kernel = self.kernel.get();
        // SAFETY: the grid's kernel outlives its blocks.
        let Some(kernel) = (unsafe { kernel.as_ref() }) else { return false };
        let each = self.pass.get().elapsed() / (self.n_stepped.get() + 1);
        kernel.is_worth_waiting(each * self.n_threads.get())
    }
}

impl Kernel {
    /// Whether better code than this is there, or will be sooner than baseline code has run for so long.
    fn is_worth_waiting(&self, expected: Duration) -> bool {
        let Some(baseline) = &self.baseline else { return false };
        self.better.get().is_some() || (baseline.is_waiting() && expected > baseline.patience())
    }
}

/// A thread of the block is about to do the first thing that others see.
pub unsafe extern "C" fn commit(worker: *const Worker) {
    // SAFETY: kernel code passes the worker that it was called with, whose gate is its block's.
    let gate = unsafe { &*(*worker).gate };
    if gate.is_refused() {
        // SAFETY: below the step's call, with nothing to drop.
        unsafe { guard::abandon(BEGIN_ANEW) }
    }
    gate.open();
}
