//! `CUDAWAY_SANITIZE=memcheck`: every access of a kernel is judged before it is made (docs/sanitizer.md).
//!
//! Kernel code made with `Options::sanitize` asks [`check`] with the address, what it wants there, and where it stands in
//! the PTX. Bounds are exact: of allocations by their registry, of shared and local variables by the kernel's layout. What
//! is wrong is reported once for each instruction and launch, counted every time, and not done.

mod report;

use std::collections::HashMap;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

use compiler::Program;
use compiler::ir::{CLUSTER_SHIFT, Op};
use compiler::lines::Lines;
use compiler::program::Kernel;
use hip_sys::*;
use parking_lot::Mutex;

use super::arena::Mapping;
use super::guard::{self, Pause};
use super::lane::Stuck;
use super::services;
use super::tensor_memory;
use super::{Fault, Launch, Thread, Worker, Workspace, thread_index};
use crate::at_exit;
use crate::device;
use crate::memory;

/// A variable in the shared or local window.
#[derive(Clone, Debug)]
struct Extent {
    name: String,
    start: u64,
    end: u64,
}

/// What is known about one launch, and what was found in it.
pub struct Run<'a> {
    program: &'a Program,
    /// As the source calls it.
    kernel: String,
    shared: Vec<Extent>,
    locals: Vec<Extent>,
    params_bytes: u64,
    is_clustered: bool,
    /// Every write to shared memory is seen.
    tells_unwritten: bool,
    /// Threads of a block.
    block: [u32; 3],
    /// By place and complaint: what it was, and how often.
    found: Mutex<HashMap<(u32, &'static str), u64>>,
    n_errors: AtomicU64,
    code: AtomicI32,
}

/// What is known about one block.
pub struct Block {
    run: *const Run<'static>,
    /// A bit for each byte of the shared window that was written.
    written: Vec<u64>,
}

impl Default for Block {
    fn default() -> Block {
        Block { run: std::ptr::null(), written: vec![] }
    }
}

/// A complaint about a barrier, not an access.
const DIVERGENT: &str = "divergent";

/// After this many errors the rest of a launch would tell nothing new.
const MAX_ERRORS: u64 = 100_000;

impl<'a> Run<'a> {
    pub fn new(program: &'a Program, kernel: &Kernel, launch: &Launch) -> Run<'a> {
        let dynamic_shared = launch.dynamic_shared;
        let layout = &kernel.shared;
        let fixed = layout.bytes.next_multiple_of(layout.align.max(16));
        let mut shared: Vec<Extent> = vec![];
        for (id, offset) in &layout.offsets {
            let variable = &program.shared[id.index()];
            if !variable.is_extern {
                // A function's variable is named `function::variable`, both as in the PTX.
                let own = variable.name.rsplit("::").next().unwrap_or_default();
                let (name, end) = (at_exit::demangled(own), offset + variable.bytes);
                shared.push(Extent { name: format!("variable {name}"), start: *offset, end });
            }
        }
        if dynamic_shared > 0 {
            let end = fixed + u64::from(dynamic_shared);
            shared.push(Extent { name: "dynamic shared memory".to_owned(), start: fixed, end });
        }
        let mut locals = vec![];
        let mut at = 0u64;
        for local in kernel.body.as_ref().map(|body| body.locals.as_slice()).unwrap_or_default() {
            at = at.next_multiple_of(local.align.max(1));
            locals.push(Extent {
                name: format!("variable {}", local.name),
                start: at,
                end: at + local.bytes,
            });
            at += local.bytes;
        }
        report::begin();
        Run {
            program,
            kernel: at_exit::demangled(&kernel.name),
            shared,
            locals,
            params_bytes: u64::from(kernel.params_bytes),
            is_clustered: launch.cluster != [1; 3],
            tells_unwritten: launch.cluster == [1; 3] && !writes_unseen(kernel),
            block: launch.block,
            found: Mutex::default(),
            n_errors: AtomicU64::new(0),
            code: AtomicI32::new(0),
        }
    }

    /// Says how often the errors were, and which of them the launch ends with.
    pub fn finish(&self, fault: Option<Fault>) -> Option<hipError_t> {
        if let Some(Fault::Deadlock(stuck)) = fault {
            report::stuck(self, &places(stuck, &self.program.lines, self.block));
        }
        let mut found: Vec<_> = self.found.lock().drain().collect();
        found.sort_unstable();
        for ((position, what), count) in found {
            if count > 1 {
                report::repeated(self, position, what, count - 1);
            }
        }
        match self.code.load(Ordering::Acquire) {
            0 => None,
            code => Some(hipError_t(code)),
        }
    }

    /// Accesses so far that were wrong.
    pub fn n_errors(&self) -> u64 {
        self.n_errors.load(Ordering::Relaxed)
    }

    /// Counts it; true when it is the first at that place.
    fn note(&self, position: u32, what: &'static str, code: Option<hipError_t>) -> bool {
        if let Some(code) = code {
            let _ = self.code.compare_exchange(0, code.0, Ordering::AcqRel, Ordering::Acquire);
        }
        report::count();
        if what != DIVERGENT {
            self.n_errors.fetch_add(1, Ordering::Relaxed);
        }
        let mut found = self.found.lock();
        let count = found.entry((position, what)).or_default();
        *count += 1;
        *count == 1
    }
}

impl Block {
    /// Prepares for a block of the launch.
    pub fn begin(&mut self, run: &Run<'_>, shared_bytes: u32) {
        self.run = std::ptr::from_ref(run).cast();
        self.written.clear();
        self.written.resize(shared_bytes.div_ceil(64) as usize, 0);
    }

    /// Of a block that [`Block::begin`] was called for.
    ///
    /// # Safety
    /// The launch has not ended.
    pub unsafe fn run(&self) -> &Run<'static> {
        // SAFETY: set by `begin` from a reference; the caller's promise.
        unsafe { &*self.run }
    }

    fn write(&mut self, start: u64, bytes: u64) {
        for at in start..start + bytes {
            if let Some(word) = self.written.get_mut((at / 64) as usize) {
                *word |= 1 << (at % 64);
            }
        }
    }

    fn is_written(&self, start: u64, bytes: u64) -> bool {
        (start..start + bytes)
            .any(|at| self.written.get((at / 64) as usize).is_some_and(|word| word >> (at % 64) & 1 != 0))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Read,
    Write,
    Update,
}

/// What is asked for, unpacked.
#[derive(Clone, Copy, Debug)]
struct Access {
    space: Space,
    kind: Kind,
    element_bytes: u64,
    n_elements: u64,
    used: u32,
}

impl Access {
    fn unpack(what: u32) -> Access {
        Access {
            element_bytes: u64::from(what & 0xff),
            n_elements: u64::from(what >> 8 & 0xff),
            space: match what >> 16 & 0xf {
                1 => Space::Global,
                2 => Space::Const,
                3 => Space::Shared,
                4 => Space::Local,
                5 => Space::Param,
                _ => Space::Generic,
            },
            kind: match what >> 20 & 0xf {
                0 => Kind::Read,
                1 => Kind::Write,
                _ => Kind::Update,
            },
            used: what >> 24,
        }
    }

    fn bytes(self) -> u64 {
        self.element_bytes * self.n_elements
    }
}

/// Where an address points.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Block of the cluster, offset in its part of the window.
    Shared(u64, i64),
    /// Number of the thread that owns it, offset in the window of the one that asks.
    Local(u32, i64),
    /// The frame of a function that calls itself.
    Frame,
    Param(i64),
    /// What a cooperative grid meets by; offset in it.
    Workspace(u64),
    Elsewhere,
}

/// Whether the host writes shared memory for the kernel.
fn writes_unseen(kernel: &Kernel) -> bool {
    let body = kernel.body.as_ref().ok();
    let mut insts = body.into_iter().flat_map(|body| &body.blocks).flat_map(|block| &block.insts);
    insts.any(|inst| matches!(inst.op, Op::TensorCopy(_)))
}

/// What is wrong with an access.
#[derive(Debug)]
enum Problem {
    Misaligned,
    /// With what lies nearest.
    OutOfBounds(String),
    Unwritten,
}

/// `i32 (launch, worker, thread, address, what, position)`: whether the access may be made.
///
/// # Safety
/// Called by kernel code with its own structures.
pub unsafe extern "C" fn check(
    launch: *const Launch,
    worker: *const Worker,
    thread: *const Thread,
    address: *const u8,
    what: u32,
    position: u32,
) -> i32 {
    let stack = guard::stack();
    let _pause = Pause::new();
    // SAFETY: the structures of the launch that asks; its block is run by this thread alone.
    let (launch, worker, thread) = unsafe { (&*launch, &*worker, &*thread) };
    // SAFETY: as above; null when this launch is not watched.
    let Some(block) = (unsafe { worker.sanitizer.as_mut() }) else { return 1 };
    // SAFETY: the launch is under way.
    let run = unsafe { &*block.run };
    let access = Access::unpack(what);
    // Only the code of `tcgen05` makes such addresses, and it keeps them inside.
    if access.space == Space::Shared && tensor_memory::has(worker.shared, address) {
        return 1;
    }
    let place = locate(run, (launch, worker, thread), access.space, address as usize, stack);
    let Err(problem) = judge(run, block, access, place, address as usize) else { return 1 };
    let (text, code) = match &problem {
        Problem::Misaligned => ("misaligned", Some(device::MISALIGNED_ADDRESS)),
        Problem::OutOfBounds(_) => ("out of bounds", Some(hipErrorIllegalAddress)),
        Problem::Unwritten => ("uninitialized", None),
    };
    if run.note(position, text, code) {
        let [x, y, z] = thread_index(thread.linear, launch.block);
        report::access(run, access, place, &problem, address as usize, position, ([x, y, z], worker.block));
    }
    if run.n_errors.load(Ordering::Relaxed) > MAX_ERRORS {
        drop(_pause);
        // SAFETY: nothing here owns anything any more.
        unsafe { guard::abandon(guard::ILLEGAL_ADDRESS) }
    }
    i32::from(matches!(problem, Problem::Unwritten))
}

fn locate(
    run: &Run<'_>,
    (launch, worker, thread): (&Launch, &Worker, &Thread),
    space: Space,
    address: usize,
    stack: std::ops::Range<usize>,
) -> Place {
    let from = |base: *const u8| address.wrapping_sub(base as usize) as u64;
    let shared = from(worker.shared);
    let in_shared = match run.is_clustered {
        true => shared >> CLUSTER_SHIFT < launch.cluster.iter().map(|&n| u64::from(n)).product(),
        false => shared < u64::from(worker.shared_bytes),
    };
    // Offsets of a space's own instructions are meant as offsets, wherever they lead.
    if space == Space::Shared || space == Space::Generic && in_shared {
        return match run.is_clustered && in_shared {
            true => {
                let offset = shared & ((1 << CLUSTER_SHIFT) - 1);
                Place::Shared(shared >> CLUSTER_SHIFT, offset.cast_signed())
            }
            false => Place::Shared(0, shared.cast_signed()),
        };
    }
    let all_local = from(worker.local);
    let is_local = space == Space::Local || space == Space::Generic && all_local < worker.local_bytes;
    if is_local || space == Space::Generic {
        if stack.contains(&address) {
            return Place::Frame;
        }
        if is_local {
            let n_threads = launch.block.iter().map(|&n| u64::from(n)).product::<u64>().max(1);
            let each = worker.local_bytes / n_threads;
            let is_other = space == Space::Generic && each > 0;
            let owner = if is_other { (all_local / each) as u32 } else { thread.linear };
            return Place::Local(owner, from(thread.local).cast_signed());
        }
    }
    let workspace = from(launch.workspace.cast());
    if !launch.workspace.is_null() && workspace < size_of::<Workspace>() as u64 {
        return Place::Workspace(workspace);
    }
    let param = from(launch.params);
    if space == Space::Param || param < run.params_bytes {
        return Place::Param(param.cast_signed());
    }
    // A generic address that just misses a window was meant for it: nothing else lies in the window's mapping.
    let just_misses = |base: *const u8, bytes: u64| {
        let room = bytes.max(Mapping::LEAST_BYTES as u64).next_power_of_two();
        from(base).wrapping_add(Mapping::GUARD_BYTES as u64) < room + 2 * Mapping::GUARD_BYTES as u64
    };
    if space == Space::Generic && !run.is_clustered && just_misses(worker.shared, worker.shared_bytes.into())
    {
        return Place::Shared(0, shared.cast_signed());
    }
    if space == Space::Generic && just_misses(worker.local, worker.local_bytes) {
        return Place::Local(thread.linear, from(thread.local).cast_signed());
    }
    Place::Elsewhere
}

fn judge(
    run: &Run<'_>,
    block: &mut Block,
    access: Access,
    place: Place,
    address: usize,
) -> Result<(), Problem> {
    let bytes = access.bytes();
    // Windows begin where every alignment holds, offsets count from there.
    let aligned_at = match place {
        Place::Shared(_, offset) | Place::Local(_, offset) | Place::Param(offset) => offset.cast_unsigned(),
        Place::Frame | Place::Workspace(_) | Place::Elsewhere => address as u64,
    };
    if bytes.is_power_of_two() && !aligned_at.is_multiple_of(bytes) {
        return Err(Problem::Misaligned);
    }
    match place {
        Place::Shared(_, offset) => {
            inside(&run.shared, offset, bytes, "the block has no shared memory")?;
            if !run.tells_unwritten {
                return Ok(());
            }
            let offset = offset.cast_unsigned();
            if access.kind != Kind::Write {
                let element = access.element_bytes;
                let mut elements = (0..access.n_elements).filter(|nth| access.used >> nth & 1 != 0);
                if elements.any(|nth| !block.is_written(offset + nth * element, element)) {
                    if access.kind == Kind::Update {
                        block.write(offset, bytes);
                    }
                    return Err(Problem::Unwritten);
                }
            }
            if access.kind != Kind::Read {
                block.write(offset, bytes);
            }
            Ok(())
        }
        Place::Local(_, offset) => inside(&run.locals, offset, bytes, "the thread has no local memory"),
        Place::Frame => Ok(()),
        Place::Workspace(offset) if offset + bytes <= size_of::<Workspace>() as u64 => Ok(()),
        Place::Workspace(_) => {
            Err(Problem::OutOfBounds("and is beyond the end of the grid's workspace".to_owned()))
        }
        Place::Param(offset) => match offset.cast_unsigned().checked_add(bytes) {
            Some(end) if end <= run.params_bytes => Ok(()),
            _ => Err(Problem::OutOfBounds(format!(
                "and is beyond the {} bytes of the kernel's parameters",
                run.params_bytes
            ))),
        },
        Place::Elsewhere => global(address, bytes as usize),
    }
}

/// The range lies in one variable.
fn inside(extents: &[Extent], offset: i64, bytes: u64, none: &str) -> Result<(), Problem> {
    let (offset, end) = (i128::from(offset), i128::from(offset) + i128::from(bytes));
    if extents.iter().any(|it| i128::from(it.start) <= offset && end <= i128::from(it.end)) {
        return Ok(());
    }
    let distance = |it: &&Extent| (i128::from(it.start) - offset).max(offset - i128::from(it.end));
    let nearest = extents.iter().min_by_key(distance);
    Err(Problem::OutOfBounds(nearest.map_or_else(
        || format!("and {none}"),
        |it| report::relation(offset, (it.start, it.end - it.start), &it.name),
    )))
}

fn global(address: usize, bytes: usize) -> Result<(), Problem> {
    if memory::watched::is_live(address, bytes) {
        return Ok(());
    }
    let in_heap = services::nearest_heap_block(address);
    if in_heap.is_some_and(|(base, size)| address >= base && address - base + bytes <= size) {
        return Ok(());
    }
    if address == 0 {
        return Err(Problem::OutOfBounds("and is a null pointer".to_owned()));
    }
    if let Some(freed) = memory::watched::freed(address).or_else(|| services::freed_heap_block(address)) {
        let offset = address - freed.0;
        return Err(Problem::OutOfBounds(format!(
            "and is {offset} bytes inside the freed allocation at {:#x} of size {} bytes",
            freed.0, freed.1
        )));
    }
    let distance = |(base, size): (usize, usize)| match address < base {
        true => base - address,
        false => address.saturating_sub(base + size),
    };
    let mut near = vec![];
    near.extend(memory::watched::nearest(address).map(|it| (distance(it), it, "allocation")));
    near.extend(in_heap.map(|it| (distance(it), it, "block of the device's heap")));
    let relation = near
        .into_iter()
        .min()
        .map(|(_, (base, size), what)| report::relation(address as i128, (base as u64, size as u64), what));
    Err(Problem::OutOfBounds(relation.unwrap_or_else(|| "and there is no allocation".to_owned())))
}

/// Where the threads of a stuck block wait, one sentence each.
pub fn places(stuck: Stuck, lines: &Lines, block: [u32; 3]) -> Vec<String> {
    let waiting = stuck.waiting.into_iter().flatten();
    let told = waiting.filter_map(|it| Some((it, lines.place(it.position).filter(|_| it.position != 0)?)));
    told.map(|(it, place)| {
        let ([x, y, z], [bx, by, bz]) = (thread_index(it.thread, block), it.block);
        format!("thread ({x},{y},{z}) in block ({bx},{by},{bz}) waits at {place}")
    })
    .collect()
}

/// What a barrier found wrong when its threads had come.
#[derive(Clone, Copy, Debug)]
pub enum Divergence {
    /// Threads of one warp came to different instructions.
    Warp { other: u32 },
    /// Others of the block ended without coming.
    Block { ended: u32 },
}

/// A barrier that not all its threads came to in the way `.aligned` demands.
pub fn diverged(run: &Run<'_>, block: [u32; 3], thread: u32, position: u32, what: Divergence) {
    if run.note(position, DIVERGENT, None) {
        report::barrier(run, position, (thread_index(thread, run.block), block), what);
    }
}
