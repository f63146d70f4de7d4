//! Runs a compiled kernel over a grid: the structures of docs/architecture.md, one arena per OS thread, all cores.
//!
//! The thread that calls [`run`] works on the grid itself; the pool's threads help. No lock is held while blocks run.

pub mod arena;
mod baseline;
mod cancel;
pub mod children;
pub mod cluster;
mod fiber;
mod gate;
pub mod guard;
pub mod lane;
pub mod pool;
pub mod printf;
pub mod sanitize;
pub mod services;
pub mod strand;
mod tensor;
mod tensor_memory;
#[cfg(test)]
mod tests;
pub mod texture;
pub mod trial;

use std::cell::Cell;
use std::ffi::c_void;
use std::mem::offset_of;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use compiler::back::cpu::steps::{self, Steps};
use compiler::back::cpu::{Compiled, ENTRY_LANE, ENTRY_SIMD, ENTRY_WARP, Setting, Weight};

use crate::jit;
use arena::{Arena, Mapping};
use baseline::Baseline;
pub use baseline::{Ask, Foresee, Heat, Keep};
use gate::Gate;
use guard::Guard;
use trial::{Trial, Turn};

/// What ended a grid early.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("the kernel executed a trap")]
    Trap,
    #[error("a device-side assertion failed")]
    Assert,
    #[error("a warp collective met lanes that setting `simd` cannot order")]
    Collective,
    #[error("the local memory or the stack is used up")]
    Stack,
    #[error("the kernel called what is no function")]
    InvalidPc,
    #[error("a block ended with tensor memory that it had not given back")]
    TensorMemoryLeak,
    #[error("every thread of a block waits for another: {0}")]
    Deadlock(lane::Stuck),
    #[error("the kernel accessed memory at {0:#x}, which it may not")]
    Address(usize),
    #[error("the kernel divided by zero or the like")]
    Arithmetic,
    #[error("the arena for {0} bytes could not be mapped")]
    Memory(u64),
    #[error("the kernel answered the unknown status {0}")]
    Status(i32),
}

impl Fault {
    fn of_status(status: i32) -> Fault {
        match status {
            -1 => Fault::Trap,
            -2 => Fault::Assert,
            -3 => Fault::Collective,
            -4 => Fault::Stack,
            -5 => Fault::InvalidPc,
            tensor_memory::LEAK => Fault::TensorMemoryLeak,
            guard::ILLEGAL_ADDRESS => Fault::Address(guard::address()),
            guard::ARITHMETIC => Fault::Arithmetic,
            guard::STACK_OVERFLOW => Fault::Stack,
            other => Fault::Status(other),
        }
    }
}

/// Read-only for kernels, one per launch; what lies behind `functions` is the host's own.
#[repr(C)]
pub struct Launch {
    pub params: *const u8,
    pub globals: *const *mut u8,
    pub services: *const services::Services,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    pub dynamic_shared: u32,
    pub workers: u32,
    pub grid_id: u64,
    /// Null: the address of a device function is a number that the code knows.
    pub functions: *const *const c_void,
    /// A cooperative grid's [`Workspace`], else null.
    pub workspace: *const Workspace,
    /// Blocks of a cluster.
    pub cluster: [u32; 3],
    /// 1 when the kernel or the launch said how large a cluster is.
    pub explicit_cluster: u32,
    /// Takes what the grid asks of the device runtime; null where it cannot ask.
    pub children: *const children::Children,
    /// The handle of the graph for the device that the grid is part of, or 0.
    pub graph: u64,
}

/// A piece of a parameter buffer. Parameters such as tensor maps are aligned to as much as this.
#[repr(C, align(128))]
#[derive(Clone, Copy)]
pub struct ParamLine([u8; 128]);

impl ParamLine {
    pub fn bytes(lines: &[ParamLine]) -> &[u8] {
        // SAFETY: a line is so many bytes and nothing else.
        unsafe { std::slice::from_raw_parts(lines.as_ptr().cast(), size_of_val(lines)) }
    }

    pub fn bytes_mut(lines: &mut [ParamLine]) -> &mut [u8] {
        // SAFETY: as above, and any bytes make a line.
        unsafe { std::slice::from_raw_parts_mut(lines.as_mut_ptr().cast(), size_of_val(lines)) }
    }
}

impl Default for ParamLine {
    fn default() -> ParamLine {
        ParamLine([0; 128])
    }
}

/// What a cooperative grid finds at the address in `%envreg1` and `%envreg2`: CUDA's cooperative groups meet there, all
/// blocks adding to `barrier`.
#[repr(C)]
#[derive(Debug)]
pub struct Workspace {
    /// Bytes of this structure.
    pub bytes: u32,
    pub barrier: AtomicU32,
}

impl Workspace {
    pub fn new() -> Workspace {
        Workspace { bytes: size_of::<Workspace>() as u32, barrier: AtomicU32::new(0) }
    }
}

impl Default for Workspace {
    fn default() -> Workspace {
        Workspace::new()
    }
}

/// One per OS thread that runs blocks.
#[derive(Clone, Copy)]
#[repr(C)]
pub struct Worker {
    pub shared: *mut u8,
    pub context: *mut u8,
    pub local: *mut u8,
    pub number: u32,
    pub shared_bytes: u32,
    pub block: [u32; 3],
    pub linear: u32,
    pub local_bytes: u64,
    pub cluster_rank: u32,
    pub pad: u32,
    /// Null unless the sanitizer watches this launch; kernel code does not read it.
    pub sanitizer: *mut sanitize::Block,
    /// Of baseline code's block; else nobody reads it.
    pub gate: *const Gate,
}

/// One per CUDA thread in setting `lane`; the emitter's saved values follow.
#[repr(C)]
pub struct Thread {
    pub resume: u32,
    pub tid: [u32; 3],
    pub linear: u32,
    pub zero: u32,
    pub local: *mut u8,
    pub kind: u32,
    pub flags: u32,
    pub args: [u64; 4],
    pub results: [u64; 2],
    pub site: u32,
    /// Where the request stands in the PTX ([`compiler::lines::Lines`]); the top bit: `.aligned`.
    pub position: u32,
}

/// One per warp in setting `warp`; the emitter's saved values follow. What is asked for lies where a [`Thread`] has it.
#[repr(C)]
pub struct Warp {
    pub resume: u32,
    pub index: u32,
    pub alive: u32,
    pub zero: u32,
    pub linear: u32,
    pub pad: u32,
    pub local: *mut u8,
    pub kind: u32,
    pub flags: u32,
    pub args: [u64; 4],
    pub results: [u64; 2],
    pub site: u32,
    pub position: u32,
    pub reserved: [u32; 8],
}

const _: () = {
    assert!(offset_of!(Warp, alive) == 8 && offset_of!(Warp, linear) == 16 && offset_of!(Warp, local) == 24);
    assert!(offset_of!(Warp, kind) == offset_of!(Thread, kind));
    assert!(offset_of!(Warp, args) == offset_of!(Thread, args));
    assert!(offset_of!(Warp, results) == offset_of!(Thread, results));
    assert!(offset_of!(Warp, position) == offset_of!(Thread, position));
    assert!(size_of::<Warp>() == 128);
    assert!(offset_of!(Launch, grid) == 24 && offset_of!(Launch, block) == 36);
    assert!(offset_of!(Launch, dynamic_shared) == 48 && offset_of!(Launch, workers) == 52);
    assert!(offset_of!(Launch, grid_id) == 56 && offset_of!(Launch, functions) == 64);
    assert!(offset_of!(Launch, workspace) == 72 && offset_of!(Launch, cluster) == 80);
    assert!(offset_of!(Launch, explicit_cluster) == 92 && offset_of!(Launch, graph) == 104);
    assert!(offset_of!(Worker, cluster_rank) == 56);
    assert!(offset_of!(Worker, number) == 24 && offset_of!(Worker, block) == 32);
    assert!(offset_of!(Worker, gate) == 72);
    assert!(offset_of!(Worker, linear) == 44 && offset_of!(Worker, local_bytes) == 48);
    assert!(offset_of!(Thread, linear) == 16 && offset_of!(Thread, local) == 24);
    assert!(offset_of!(Thread, kind) == 32 && offset_of!(Thread, args) == 40);
    assert!(offset_of!(Thread, results) == 72 && offset_of!(Thread, site) == 88);
    assert!(size_of::<Thread>() == 96);
};

/// `i32 cudaway_run(ptr launch, ptr worker, i64 first, i64 count)`
#[derive(Clone, Copy)]
struct RunFn(*const c_void);

/// `i32 cudaway_step(ptr launch, ptr worker, ptr thread)`; in setting `warp` the last is a warp's record.
#[derive(Clone, Copy)]
pub(crate) struct StepFn(*const c_void);

impl RunFn {
    /// # Safety
    /// The structures are those that the code was made for.
    unsafe fn call(self, guard: &Guard, launch: &Launch, worker: &Worker, first: u64, count: u64) -> i32 {
        let arguments = [std::ptr::from_ref(launch) as u64, std::ptr::from_ref(worker) as u64, first, count];
        // SAFETY: the entry's signature; kernel code owns nothing.
        unsafe { guard.call(self.0, arguments) }
    }
}

impl StepFn {
    /// # Safety
    /// As for [`RunFn::call`].
    unsafe fn call(self, guard: &Guard, launch: &Launch, worker: &Worker, thread: *mut Thread) -> i32 {
        let arguments =
            [std::ptr::from_ref(launch) as u64, std::ptr::from_ref(worker) as u64, thread as u64, 0];
        // SAFETY: as above.
        unsafe { guard.call(self.0, arguments) }
    }
}

#[derive(Clone, Copy)]
enum Entry {
    Simd(RunFn),
    /// A thread (`lane`) or a warp (`warp`).
    Step(StepFn),
}

// SAFETY: code addresses, alive as long as the kernel's code.
unsafe impl Send for Entry {}
// SAFETY: as above.
unsafe impl Sync for Entry {}

/// A kernel ready to run for one block shape.
pub struct Kernel {
    entry: Entry,
    pub setting: Setting,
    pub width: u32,
    pub context_bytes: u64,
    pub local_bytes: u64,
    /// Threads (`lane`) or blocks (`simd`) need stacks of their own: [`fiber`].
    pub stackful: bool,
    /// Blocks ask before others see anything of them: [`gate`].
    is_gated: bool,
    /// Why it does not run in `simd`, and why not in `warp`.
    pub why_not: [Option<String>; 2],
    /// Nanoseconds one block took on average lately; 0 before the first launch.
    block_ns: AtomicU32,
    /// Of code that stands in for better code.
    baseline: Option<Baseline>,
    /// Code that took longer to compile, and runs in the place of this since it is there.
    better: OnceLock<Box<Kernel>>,
    /// Width of the code that may be as fast as this.
    rival: Option<u32>,
    is_rival_asked_for: AtomicBool,
    /// Nanoseconds of all blocks so far.
    spent_ns: AtomicU64,
    trial: OnceLock<Box<Trial>>,
    // Behind `entry`.
    code: Arc<jit::Code>,
}

impl Kernel {
    /// Links object code made from `compiled`'s text (now or in another run).
    pub fn load(object: &[u8], compiled: &CompiledShape) -> Result<Kernel, jit::Error> {
        let code = jit::Code::load(object)?;
        let entry = match compiled.setting {
            Setting::Simd => Entry::Simd(RunFn(code.function(ENTRY_SIMD)?)),
            Setting::Warp => Entry::Step(StepFn(code.function(ENTRY_WARP)?)),
            Setting::Lane => Entry::Step(StepFn(code.function(ENTRY_LANE)?)),
        };
        Ok(Kernel::new(entry, compiled.clone(), Arc::new(code)))
    }

    /// Of which no grid has run yet.
    fn new(entry: Entry, shape: CompiledShape, code: Arc<jit::Code>) -> Kernel {
        let CompiledShape { setting, width, context_bytes, local_bytes, stackful, is_gated, why_not, rival } =
            shape;
        Kernel {
            entry,
            setting,
            width,
            context_bytes,
            local_bytes,
            stackful,
            is_gated,
            why_not,
            block_ns: AtomicU32::new(0),
            baseline: None,
            better: OnceLock::new(),
            rival,
            is_rival_asked_for: AtomicBool::new(false),
            spent_ns: AtomicU64::new(0),
            trial: OnceLock::new(),
            code,
        }
    }

    /// The same code, as if it had just been loaded.
    pub fn again(&self) -> Kernel {
        let shape = CompiledShape {
            setting: self.setting,
            width: self.width,
            context_bytes: self.context_bytes,
            local_bytes: self.local_bytes,
            stackful: self.stackful,
            is_gated: self.is_gated,
            why_not: self.why_not.clone(),
            rival: self.rival,
        };
        Kernel::new(self.entry, shape, self.code.clone())
    }

    /// The same code, in whose place better one can be asked for.
    pub fn as_baseline(&self, weight: Weight, ask: Ask) -> Kernel {
        Kernel { baseline: Some(Baseline::new(weight, ask)), ..self.again() }
    }

    /// Of baseline code: asks for better code before any grid needs it.
    pub fn improve(&self) {
        if let Some(baseline) = &self.baseline {
            baseline.ask_for_better(0);
        }
    }

    /// Of baseline code: where threads of a launch go, as far as that can be known, how the code is kept, and how the kernel is
    /// foreseen.
    pub fn follow(&mut self, steps: Option<Arc<Steps>>, keep: Option<Keep>, foresee: Option<Foresee>) {
        if let Some(baseline) = &mut self.baseline {
            baseline.follow(steps, keep, foresee);
        }
    }

    pub fn steps(&self) -> Option<&Arc<Steps>> {
        self.baseline.as_ref()?.steps()
    }

    /// Of baseline code that nothing has replaced: a launch stands in its stream. Nanoseconds that its longest block takes; `None` where
    /// nobody knows.
    pub fn queue(&self, launch: &steps::Launch<'_>) -> Option<u64> {
        let baseline = self.baseline.as_ref().filter(|_| self.better.get().is_none())?;
        let block_ns = baseline.foretell(launch);
        baseline.queue(grid_ns(block_ns, launch.grid));
        block_ns
    }

    /// Of baseline code: what its kernel weighs.
    pub fn baseline_weight(&self) -> Option<Weight> {
        self.baseline.as_ref().map(Baseline::weight)
    }

    /// From now on, from the next blocks of running grids on too, `better`, which does the same, runs in the place of this.
    pub fn replace_by(&self, better: Kernel) {
        let _ = self.made().better.set(Box::new(better));
    }

    /// The code that runs: this, or what has replaced it.
    pub fn best(&self) -> &Kernel {
        let made = self.made();
        made.trial.get().and_then(|trial| trial.winner()).unwrap_or(made)
    }

    /// What this code takes of a stack for its frames.
    fn stack_bytes(&self) -> usize {
        self.code.stack_bytes()
    }

    /// What a grid may take of its thread's stack for frames: those of the code that runs, and as much again where better code may
    /// come meanwhile.
    pub fn most_stack_bytes(&self) -> usize {
        let made = self.made();
        let rival = made.trial.get().map_or(0, |trial| trial.rival_stack_bytes());
        let may_change = made.baseline.is_some() || made.rival.is_some();
        made.stack_bytes().max(rival) * if may_change { 2 } else { 1 }
    }

    /// The code that took longest to make so far.
    fn made(&self) -> &Kernel {
        let mut made = self;
        while let Some(better) = made.better.get() {
            made = better;
        }
        made
    }

    /// The code for the next chunk of blocks.
    fn next(&self) -> (&Kernel, Option<Turn<'_>>) {
        let made = self.made();
        made.trial.get().map_or((made, None), |trial| trial.next(made))
    }

    /// Once, when so much time has gone into this code that a trial is worth it: the width of its rival.
    pub fn rival_due(&self) -> Option<u32> {
        let made = self.made();
        let width = made.rival?;
        let is_due = made.spent_ns.load(Ordering::Relaxed) >= trial::WORTH.as_nanos() as u64;
        (is_due && !made.is_rival_asked_for.swap(true, Ordering::Relaxed)).then_some(width)
    }

    /// From its next chunk of blocks on, `rival`, which does the same, takes turns with this code until one is known to
    /// be faster.
    pub fn try_beside(&self, rival: Kernel, told: trial::Told) {
        let made = self.made();
        if matches!((&made.entry, &rival.entry), (Entry::Simd(_), Entry::Simd(_))) {
            let _ = made.trial.set(Box::new(Trial::new(rival, told)));
        }
    }
}

/// What of a [`Compiled`] is needed after its text became object code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledShape {
    pub setting: Setting,
    pub width: u32,
    pub context_bytes: u64,
    pub local_bytes: u64,
    pub stackful: bool,
    /// Blocks ask before others see anything of them.
    pub is_gated: bool,
    /// Why not in `simd`, and why not in `warp`.
    pub why_not: [Option<String>; 2],
    /// Another width that may be as fast.
    pub rival: Option<u32>,
}

impl From<&Compiled> for CompiledShape {
    fn from(compiled: &Compiled) -> CompiledShape {
        CompiledShape {
            setting: compiled.setting,
            width: compiled.width,
            context_bytes: compiled.context_bytes,
            local_bytes: compiled.local_bytes,
            stackful: compiled.stackful,
            is_gated: compiled.is_gated,
            why_not: [compiled.why_not_simd.clone(), compiled.why_not_warp.clone()],
            rival: compiled.rival,
        }
    }
}

/// One grid to run.
pub struct Grid<'a> {
    pub kernel: &'a Kernel,
    pub launch: &'a Launch,
    /// Static and dynamic shared bytes of a block.
    pub shared_bytes: u32,
    /// Blocks have tensor memory.
    pub tensor_memory: bool,
    /// Code made with `Options::sanitize` is watched by it.
    pub sanitizer: Option<&'a sanitize::Run<'a>>,
    /// Nanoseconds that the longest block takes in baseline code; `None` where nobody knows.
    pub block_ns: Option<u64>,
}

impl Grid<'_> {
    /// Bytes to map for a block of its own: its shared memory, and far behind it tensor memory.
    fn window_bytes(&self) -> u64 {
        if self.tensor_memory { tensor_memory::END as u64 } else { self.shared_bytes.into() }
    }

    /// At the end of a block whose part of the window begins at `shared`.
    fn check_for_leak(&self, shared: *mut u8) -> Result<(), Fault> {
        // SAFETY: a window of `window_bytes`, whose block has ended.
        match self.tensor_memory && unsafe { tensor_memory::is_left(shared) } {
            true => Err(Fault::TensorMemoryLeak),
            false => Ok(()),
        }
    }
}

/// How an OS thread that steps blocks goes on: the next block of the grid, whether the grid failed elsewhere, and whether
/// other code is to run the blocks that are left.
struct Turns<'a, N, S, O> {
    next: N,
    stopped: S,
    is_outdated: O,
    /// Takes blocks that are to be begun anew; `None`: blocks end as they began.
    anew: Option<&'a dyn Fn(u64)>,
}

/// A grid being run by several OS threads.
pub(crate) struct Job<'a> {
    grid: &'a Grid<'a>,
    next: AtomicU64,
    total: u64,
    /// Blocks that were given up, to be begun anew in better code, or in any where `is_any_code` says that there is none to come.
    anew: parking_lot::Mutex<Vec<u64>>,
    n_anew: AtomicUsize,
    is_any_code: AtomicBool,
    n_workers: u64,
    /// Blocks handed out at once, at most and at least.
    chunk: u64,
    least: u64,
    status: AtomicI32,
    fault: parking_lot::Mutex<Option<Fault>>,
}

impl Job<'_> {
    /// Whether blocks are left to hand out.
    fn has_work(&self) -> bool {
        self.next.load(Ordering::Relaxed) < self.total
            || (self.n_anew.load(Ordering::Acquire) > 0 && !self.is_first(self.grid.kernel.made()))
    }

    /// Workers that help the thread whose grid it is, at most. A core is left to the compiler that better code is waited for from:
    /// that code makes up for it many times.
    fn most_helpers(&self) -> usize {
        let kernel = self.grid.kernel;
        let is_left =
            kernel.baseline.as_ref().is_some_and(Baseline::is_waiting) && kernel.better.get().is_none();
        (self.total - 1).min(self.n_workers - 1 - u64::from(is_left)) as usize
    }

    /// Whether it is code that blocks may be given up in.
    fn is_first(&self, kernel: &Kernel) -> bool {
        std::ptr::eq(kernel, self.grid.kernel)
            && kernel.is_gated
            && kernel.baseline.is_some()
            && !self.is_any_code.load(Ordering::Acquire)
    }

    /// The block is given up.
    fn begin_anew(&self, block: u64) {
        let mut anew = self.anew.lock();
        anew.push(block);
        anew.sort_unstable_by_key(|&block| std::cmp::Reverse(block));
        self.n_anew.store(anew.len(), Ordering::Release);
    }

    /// The first of those that were given up.
    fn given_up(&self) -> Option<u64> {
        if self.n_anew.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut anew = self.anew.lock();
        let block = anew.pop();
        self.n_anew.store(anew.len(), Ordering::Release);
        block
    }

    /// After a block was given up: until there is better code, or none to come.
    fn wait_for_better(&self) {
        let kernel = self.grid.kernel;
        let has_better = || kernel.better.get().is_some();
        if let Some(baseline) = &kernel.baseline {
            baseline.wait(|| has_better() || self.status.load(Ordering::Relaxed) != 0);
        }
        if !has_better() {
            self.is_any_code.store(true, Ordering::Release);
        }
    }

    /// Takes chunks, in increasing order, until none is left.
    fn work(&self, number: u32) {
        arena::with(|arena| {
            if let Err(fault) = self.work_in(arena, number) {
                // No other block starts after a fault.
                self.next.store(self.total, Ordering::Relaxed);
                self.anew.lock().clear();
                self.n_anew.store(0, Ordering::Release);
                self.fault.lock().get_or_insert(fault);
                self.status.store(1, Ordering::Release);
            }
        });
    }

    fn work_in(&self, arena: &mut Arena, number: u32) -> Result<(), Fault> {
        let _rounding = Rounding::ptx();
        let _queue = cancel::Queue { next: &self.next, total: self.total }.offered();
        let guard = Guard::new();
        let fresh = || {
            let linear = self.next.fetch_add(1, Ordering::Relaxed);
            (linear < self.total).then_some(linear)
        };
        let stopped = || self.status.load(Ordering::Relaxed) != 0;
        // Each round runs what is best when it begins, until better code is there.
        loop {
            let kernel = self.grid.kernel.made();
            let grid = &Grid { kernel, ..*self.grid };
            let is_first = self.is_first(kernel);
            let next = || if is_first { fresh() } else { self.given_up().or_else(fresh) };
            let has_given_up = Cell::new(false);
            let give_up = |block| {
                self.begin_anew(block);
                has_given_up.set(true);
            };
            let is_outdated = || !std::ptr::eq(self.grid.kernel.made(), kernel);
            match kernel.entry {
                Entry::Simd(run) if kernel.stackful => {
                    strand::run_blocks(run, &guard, grid, number, &mut arena.strands, &next, stopped)?;
                }
                Entry::Simd(_) => self.run_chunks(&guard, arena, number)?,
                Entry::Step(step) if grid.launch.cluster != [1; 3] => {
                    let turns = Turns { next, stopped, is_outdated, anew: None };
                    cluster::run_clusters((step, &guard), grid, number, &mut arena.clusters, turns)?;
                }
                Entry::Step(step) => {
                    // All blocks of a cooperative grid have to be begun.
                    let may = is_first && grid.launch.workspace.is_null();
                    let anew = may.then_some(&give_up as &dyn Fn(u64));
                    let turns = Turns { next, stopped, is_outdated, anew };
                    lane::run_blocks((step, &guard), grid, number, &mut arena.residents, turns)?;
                }
            }
            if has_given_up.get() && !stopped() {
                self.wait_for_better();
            }
            if !self.has_work() || stopped() {
                return Ok(());
            }
            // For the core that was the compiler's.
            pool::invite();
        }
    }

    fn run_chunks(&self, guard: &Guard, arena: &mut Arena, number: u32) -> Result<(), Fault> {
        let mut kernel = self.grid.kernel.made();
        let Arena { shared, context, local, .. } = arena;
        let mut room_for = |kernel| worker(kernel, self.grid, [shared, context, local], number);
        let mut worker = room_for(kernel)?;
        while let Some((first, count)) = self.take() {
            let (next, turn) = self.grid.kernel.next();
            if !std::ptr::eq(next, kernel) {
                kernel = next;
                worker = room_for(kernel)?;
            }
            let Entry::Simd(run) = kernel.entry else { return Ok(()) };
            // Each block begins with nothing allocated.
            let at_once = if self.grid.tensor_memory { 1 } else { count };
            for first in (first..first + count).step_by(at_once as usize) {
                if self.grid.tensor_memory {
                    // SAFETY: the worker has a window of `window_bytes`, and begins a block.
                    unsafe { tensor_memory::clear(worker.shared) };
                }
                // SAFETY: the emitter's code with the structures it was made for, alive for the call.
                let status = unsafe { run.call(guard, self.grid.launch, &worker, first, at_once) };
                if status != 0 {
                    return Err(Fault::of_status(status));
                }
                self.grid.check_for_leak(worker.shared)?;
            }
            if let Some(turn) = turn {
                turn.end(count);
            }
        }
        Ok(())
    }

    /// The next blocks of setting `simd`: first and count. Chunks get smaller towards the end, so that all workers end together.
    fn take(&self) -> Option<(u64, u64)> {
        if let Some(block) = self.given_up() {
            return Some((block, 1));
        }
        let count = |first: u64| {
            let left = self.total.saturating_sub(first);
            (left / (2 * self.n_workers)).clamp(self.least, self.chunk).min(left)
        };
        let taken = self.next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |first| {
            (first < self.total).then(|| first + count(first))
        });
        taken.ok().map(|first| (first, count(first)))
    }
}

/// What code in setting `simd` finds, with room for a block in these: shared memory, context, local windows.
fn worker(
    kernel: &Kernel,
    grid: &Grid<'_>,
    [shared, context, local]: [&mut Mapping; 3],
    number: u32,
) -> Result<Worker, Fault> {
    let Grid { launch, shared_bytes, .. } = *grid;
    let n_threads: u64 = launch.block.iter().map(|&n| u64::from(n)).product();
    let local_bytes = kernel.local_bytes * n_threads;
    shared.ensure(grid.window_bytes())?;
    context.ensure(kernel.context_bytes)?;
    local.ensure(local_bytes)?;
    Ok(Worker {
        shared: shared.base(),
        context: context.base(),
        local: local.base(),
        number,
        shared_bytes,
        block: [0; 3],
        linear: 0,
        local_bytes,
        cluster_rank: 0,
        pad: 0,
        sanitizer: std::ptr::null_mut(),
        gate: std::ptr::null(),
    })
}

fn block_index(linear: u64, grid: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = grid.map(u64::from);
    [(linear % x) as u32, (linear / x % y) as u32, (linear / (x * y)) as u32]
}

/// Of the thread with this number in a block of that shape.
pub fn thread_index(linear: u32, block: [u32; 3]) -> [u32; 3] {
    let [x, y, _] = block.map(|n| n.max(1));
    [linear % x, linear / x % y, linear / (x * y)]
}

/// Below this a grid is done before a parked thread would have woken.
const INLINE_NS: u64 = 6_000;

/// Blocks handed out together take at least about this long.
const CHUNK_NS: u64 = 5_000;

/// Blocks for each worker, at most, of a grid that may be made of few long blocks, which end in the code that they began in: of one
/// of more the blocks that are left when better code comes are most of it.
const FEW_BLOCKS: u64 = 16;

/// Of all blocks, if they are as long as the longest.
fn grid_ns(block_ns: Option<u64>, grid: [u32; 3]) -> Option<u64> {
    let blocks = grid.iter().fold(1, |blocks: u64, &side| blocks.saturating_mul(side.into()));
    Some(block_ns?.saturating_mul(blocks))
}

/// Runs the whole grid; returns when its last block has ended.
pub fn run(grid: &Grid<'_>) -> Result<(), Fault> {
    // Blocks of a cluster stay together.
    let units = |axis: usize| u64::from(grid.launch.grid[axis] / grid.launch.cluster[axis]);
    let total = units(0) * units(1) * units(2);
    let n_workers = pool::workers() as u64;
    // Of code that takes more than one block at a time.
    let chunk = (total / (8 * n_workers)).clamp(1, 1 << 16);
    let known = u64::from(grid.kernel.block_ns.load(Ordering::Relaxed));
    let job = Job {
        grid,
        next: AtomicU64::new(0),
        total,
        anew: parking_lot::Mutex::default(),
        n_anew: AtomicUsize::new(0),
        is_any_code: AtomicBool::new(false),
        n_workers,
        chunk,
        least: CHUNK_NS.checked_div(known).map_or(chunk, |blocks| blocks.clamp(1, chunk)),
        status: AtomicI32::new(0),
        fault: parking_lot::Mutex::new(None),
    };
    let has_better = || grid.kernel.better.get().is_some();
    // Launches that better code is there for have nothing to do with what it replaced.
    let baseline = grid.kernel.baseline.as_ref().filter(|_| !has_better());
    let expected = grid_ns(grid.block_ns, grid.launch.grid);
    if let Some(baseline) = baseline {
        baseline.begin(expected);
        // What a block turns out to take cannot tell how long these are.
        let weight = baseline.weight();
        let is_unknown = if grid.kernel.is_gated && grid.launch.workspace.is_null() {
            weight.has_long_tail
        } else {
            weight.loops
        };
        if is_unknown && grid.block_ns.is_none() && total <= FEW_BLOCKS * n_workers {
            let _lent = crate::pending::lend_core();
            baseline.wait(has_better);
        }
    }
    let alone = total == 1 || n_workers == 1 || (known > 0 && known * total < INLINE_NS);
    let start = std::time::Instant::now();
    if alone {
        job.work(0);
    } else {
        pool::share(&job);
    }
    let spent = start.elapsed().as_nanos() as u64 * if alone { 1 } else { n_workers.min(total) };
    grid.kernel.made().spent_ns.fetch_add(spent, Ordering::Relaxed);
    if let Some(baseline) = baseline {
        baseline.end(spent, expected);
    }
    grid.kernel.block_ns.store((spent / total).clamp(1, u64::from(u32::MAX)) as u32, Ordering::Relaxed);
    if job.status.load(Ordering::Acquire) == 0 {
        return Ok(());
    }
    let fault = job.fault.lock().take();
    Err(fault.unwrap_or(Fault::Status(1)))
}

/// Round to nearest, subnormals kept, exceptions masked while kernels or libraries of ours run; the caller's mode comes back on drop.
/// (A host program built with -ffast-math starts with subnormals flushed.)
pub struct Rounding(u32);

static MXCSR_DEFAULT: u32 = 0x1f80;

impl Rounding {
    pub fn ptx() -> Rounding {
        let mut before = 0u32;
        // SAFETY: stores and loads this thread's SSE control word through valid pointers.
        unsafe {
            std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut before, options(nostack));
            std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const MXCSR_DEFAULT, options(nostack, readonly));
        }
        Rounding(before)
    }
}

impl Drop for Rounding {
    fn drop(&mut self) {
        // SAFETY: restores what `ptx` stored.
        unsafe { std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const self.0, options(nostack, readonly)) }
    }
}

/// Bytes of a block's shared window: the static part, then the dynamic part at the layout's alignment.
pub fn shared_bytes(layout: &compiler::ir::SharedLayout, dynamic: u32) -> u32 {
    let fixed = layout.bytes.next_multiple_of(layout.align.max(16));
    u32::try_from(fixed + u64::from(dynamic)).unwrap_or(u32::MAX)
}
