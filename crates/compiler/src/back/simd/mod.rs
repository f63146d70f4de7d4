//! Setting `simd`: W threads at a time in LLVM vectors, barrier regions as a state machine over the block.
//! Setting `warp`: the same code for regions, in a function that runs one warp to its next barrier (`step`).
//!
//! The function is `for block { switch (next) { region k: for group { restore; body; save } } }`. A region's body stands
//! twice: the U copy runs while all lanes of the group are alive and agree, with plain vector code; where they part it
//! jumps to the same point of the M copy, which runs every block under a mask. Where all of them surely come together
//! again M jumps back and ends there (`pass::meetings`); where some may end, or have been lost, it stays to the region's end.
//! IR values that cross blocks live in stack slots that both copies share; LLVM makes them registers.

mod ahead;
mod atomic;
mod block;
mod control;
mod deal;
mod if_conversion;
mod matrix;
mod memory;
mod operation;
mod outline;
mod pieces;
mod prefetch;
mod ranks;
mod runs;
mod special;
mod step;
mod stream;
mod sums;
mod transfer;
mod value;
mod warp;
pub(super) mod width;
mod window;

use super::cpu::{Compiled, ENTRY_SIMD, ENTRY_WARP, IN_ORDER, Options, Setting};
use super::llvm::{Builder, ROLLED_IS, Type, Val};
use crate::ir::{Function, Ty, Value};
use crate::lines::Lines;
use crate::matrix::{Mma, multiplies};
use crate::pass::bits::BitSet;
use crate::pass::divergence::Among;
use crate::pass::meetings::Meetings;
use crate::pass::regions::{Plan, Region, plan};
use crate::pass::rounds;
use crate::pass::value_ranges::Threads;
use crate::pass::visit::Definition;
use crate::program::{GlobalSpace, Kernel, Program};
use std::collections::{HashMap, HashSet};

use width::is_any_good;

/// Lines of LLVM IR from which on accesses lane by lane become calls. LLVM compiles about that many in a second.
const LONG: usize = 15_000;

/// For setting `simd`, or with `per_warp` for `warp`; `in_step`: the kernel counts on whole warps. `Err` is the reason why this kernel does not run so.
pub fn emit(
    program: &Program,
    kernel: &Kernel,
    body: &Function,
    options: &Options,
    in_step: bool,
    per_warp: bool,
) -> Result<Compiled, String> {
    let total: u64 = options.block.iter().map(|&n| u64::from(n)).product();
    if total == 0 || total > 1024 {
        return Err(format!("a block of {total} threads"));
    }
    let (locals, local_bytes) = layout_locals(body);
    let among = if per_warp { Among::Group } else { Among::Block };
    let width = if per_warp { 32 } else { width::width(body, options, total, in_step)? };
    if options.open && width > 32 {
        return Err(format!("blocks of any length are no groups of {width}"));
    }
    let mut threads = Threads { block: options.block, open: options.open, width, assumes: true };
    // What a barrier more would keep from running in step stays as it is.
    let rounds = (!per_warp && !options.open && !in_step && total > u64::from(width))
        .then(|| rounds::of(body))
        .flatten();
    let in_rounds =
        rounds.as_ref().and_then(|rounds| Some((rounds, plan(rounds, threads, local_bytes, among).ok()?)));
    let (body, mut first) = match in_rounds {
        Some(in_rounds) => in_rounds,
        None => (body, plan(body, threads, local_bytes, among)?),
    };
    let (mut rival, mut in_order) = (None, false);
    if !per_warp && options.width.is_none() && !in_step {
        let choice = width::choice(body, &first, threads, options.vector_bits);
        in_order = choice.in_order;
        rival = choice.rival.filter(|_| options.setting.is_none() && is_any_good(body));
        if choice.width != threads.width {
            threads.width = choice.width;
            first = plan(body, threads, local_bytes, among)?;
        }
    }
    let write = |plan, compact| {
        let locals = locals.clone();
        let mut emitter = Emitter::new(kernel, plan, threads, options, locals, local_bytes);
        emitter.compact = compact;
        emitter.in_order = in_order;
        emitter.calls_atomics = atomic::are_many(&emitter.plan);
        if compact {
            emitter.called = matrix::called(&emitter.plan);
        }
        emitter.constants = constants(program);
        emitter.lines = Some(&program.lines);
        if per_warp {
            emitter.per_warp = true;
            emitter.clustered = options.clustered;
            emitter.groups = 1;
        } else {
            emitter.streams = stream::Streams::of(&emitter.plan, threads.width);
        }
        emitter.whole()?;
        let waits = !per_warp && emitter.plan.regions.iter().any(|region| !region.spins.is_empty());
        Ok::<_, String>((emitter.context_bytes, waits, emitter.handed_over, emitter.finish()))
    };
    let (mut context_bytes, waits, mut handed_over, mut text) = write(first, false)?;
    if text.lines().nth(LONG).is_some() {
        // What is there for indices that wrap is up to half of the text, and matrices come and go by whole rows of 16 bytes a lane, which
        // no lane's neighbour makes faster.
        let assumes = !multiplies(body);
        let first = plan(body, Threads { assumes, ..threads }, local_bytes, among);
        let first = first.or_else(|_| plan(body, threads, local_bytes, among))?;
        (context_bytes, _, handed_over, text) = write(first, true)?;
    }
    Ok(Compiled {
        text,
        setting: if per_warp { Setting::Warp } else { Setting::Simd },
        width: threads.width,
        context_bytes,
        local_bytes,
        is_gated: false,
        stackful: waits,
        why_not_simd: None,
        why_not_warp: None,
        rival: rival.filter(|_| !waits),
        handed_over,
    })
}

/// Numbers and bytes of the program's constant variables.
fn constants(program: &Program) -> Vec<(usize, u64)> {
    let globals = program.globals.iter().enumerate();
    globals.filter(|(_, it)| it.space == GlobalSpace::Const).map(|(number, it)| (number, it.bytes)).collect()
}

/// Offset of each local variable, and the bytes of one thread's window.
fn layout_locals(body: &Function) -> (Vec<u64>, u64) {
    let mut end = 0u64;
    let mut offsets = vec![];
    for local in &body.locals {
        end = end.next_multiple_of(local.align.max(1));
        offsets.push(end);
        end += local.bytes;
    }
    (offsets, end.next_multiple_of(16))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Copy {
    /// All lanes are alive and together.
    Unmasked,
    Masked,
}

/// Where a value that lives across barriers is kept.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Offset in the context arena of one scalar per group.
    scalar: Option<u64>,
    /// One vector per group.
    vector: Option<Spot>,
    /// Offset of the rows' first lanes per group.
    firsts: Option<u64>,
}

/// A vector in the context arena.
#[derive(Clone, Copy, Debug)]
struct Spot {
    /// Offset of the first group's.
    at: u64,
    /// Bytes from group to group.
    stride: u64,
}

struct Emitter<'a> {
    kernel: &'a Kernel,
    plan: Plan,
    threads: Threads,
    lanes: u32,
    /// Setting `warp`: the function runs one warp.
    per_warp: bool,
    /// The block is one of several of a cluster (`warp`).
    clustered: bool,
    /// Groups that a context holds.
    groups: u64,
    /// Masks that cross blocks are `<W x i32>`: the CPU has no mask registers.
    wide_masks: bool,
    wide_gathers: bool,
    vector_bits: u32,
    /// Accesses lane by lane are calls: the code is so long that LLVM would take seconds.
    compact: bool,
    in_order: bool,
    /// Atomics on shared memory that all lanes do one after the other are calls: there are many.
    calls_atomics: bool,
    /// Stores that go past the caches in large grids (`simd`).
    streams: stream::Streams,
    /// Of the block that is written: what it packs into words, by the low half.
    halves: HashMap<Value, Value>,
    locals: Vec<u64>,
    local_bytes: u64,
    /// Numbers and bytes of the program's constant variables.
    constants: Vec<(usize, u64)>,
    lines: Option<&'a Lines>,
    b: Builder,
    allocas: Vec<String>,
    /// Values that are the same for a block, by name.
    prologue: HashMap<Value, Val>,
    places: HashMap<Value, Place>,
    context_bytes: u64,
    /// Offset of the alive masks in the context, when lanes can be lost before a barrier.
    alive_at: Option<u64>,
    /// Offset of the flags that say whether assumed lines still hold.
    straight_at: Option<u64>,

    // ---- the region being written ----
    region: usize,
    copy: Copy,
    crossing: BitSet,
    /// Values that are read from each block on.
    live: Vec<BitSet>,
    /// Loads of the block being written ask for what they load the next time.
    prefetches: bool,
    /// They ask for what the next thread block loads.
    begins: bool,
    ahead: ahead::Ahead,
    /// Values the region finds that are read from their places, and their numbers.
    in_place: HashMap<Value, usize>,
    /// The same for those of which the rows' first lanes are kept.
    by_rows: HashMap<Value, usize>,
    /// Results that go to their places at once, and what they are for the next region.
    written: HashMap<Value, Value>,
    definitions: Vec<Definition>,
    /// Sums that lanes which count keys together get, and their places in U.
    ranked: HashMap<Value, String>,
    /// The masked copy is reached.
    masked_used: bool,
    /// Where it goes back to U; `None` where it stays to the region's end.
    meetings: Option<Meetings>,
    /// Values that it reads, where it has not all of the region.
    read_apart: Option<BitSet>,
    /// For each item of the layout, the first one from it on that the masked copy has.
    steps_of_m: Vec<usize>,
    /// Values that are live where U is left for M, of all such places.
    handed_over: u32,
    /// The mask of the block being written, in M.
    mask: Option<Val>,
    /// Exactly one lane is active in it.
    is_single: bool,
    scalars: HashMap<Value, Val>,
    vectors: HashMap<Value, Val>,
    /// Values of the first lanes of a group's rows.
    rows: HashMap<Value, Val>,
    operands: matrix::Operands,
    /// Matrix products that are calls.
    called: HashSet<Mma>,
    sums: sums::Sums,
    transfers: transfer::Transfers,
    scratch: HashMap<String, ()>,
}

impl<'a> Emitter<'a> {
    fn new(
        kernel: &'a Kernel,
        plan: Plan,
        threads: Threads,
        options: &Options,
        locals: Vec<u64>,
        local_bytes: u64,
    ) -> Emitter<'a> {
        let vector_bits = options.vector_bits;
        Emitter {
            kernel,
            plan,
            threads,
            lanes: threads.width,
            per_warp: false,
            clustered: false,
            groups: threads.total().div_ceil(u64::from(threads.width)),
            wide_masks: vector_bits < 512,
            wide_gathers: vector_bits >= 512,
            vector_bits,
            compact: false,
            in_order: false,
            calls_atomics: false,
            streams: stream::Streams::default(),
            halves: HashMap::new(),
            locals,
            local_bytes,
            constants: vec![],
            lines: None,
            b: Builder::for_vectors(vector_bits, options.has_vnni),
            allocas: vec![],
            prologue: HashMap::new(),
            places: HashMap::new(),
            context_bytes: 0,
            alive_at: None,
            straight_at: None,
            region: 0,
            copy: Copy::Unmasked,
            crossing: BitSet::default(),
            live: vec![],
            prefetches: false,
            begins: false,
            ahead: ahead::Ahead::default(),
            in_place: HashMap::new(),
            by_rows: HashMap::new(),
            written: HashMap::new(),
            definitions: vec![],
            ranked: HashMap::new(),
            masked_used: false,
            meetings: None,
            read_apart: None,
            steps_of_m: vec![],
            handed_over: 0,
            mask: None,
            is_single: false,
            scalars: HashMap::new(),
            vectors: HashMap::new(),
            rows: HashMap::new(),
            operands: matrix::Operands::default(),
            called: HashSet::new(),
            sums: sums::Sums::default(),
            transfers: transfer::Transfers::default(),
            scratch: HashMap::new(),
        }
    }

    fn here(&self) -> &Region {
        &self.plan.regions[self.region]
    }

    fn ty(&self, value: Value) -> Ty {
        self.here().function.ty(value)
    }

    fn is_last_group_partial(&self) -> bool {
        !self.threads.total().is_multiple_of(u64::from(self.lanes))
    }

    fn finish(self) -> String {
        let mut text = String::new();
        let (entry, rest) = if self.per_warp {
            (ENTRY_WARP, "ptr noalias %warp")
        } else {
            (ENTRY_SIMD, "i64 %first, i64 %count")
        };
        let order = if self.in_order { format!(" \"{IN_ORDER}\"") } else { String::new() };
        text.push_str(&format!(
            "define i32 @{entry}(ptr noalias %launch, ptr noalias %worker, {rest}) nounwind{order} {{\nentry:\n"
        ));
        for line in &self.allocas {
            text.push_str(line);
            text.push('\n');
        }
        text.push_str("  br label %start\n");
        text.push_str(&self.b.finish());
        text.push_str(&format!("!0 = !{{}}\n{ROLLED_IS}\n!3 = !{{i32 1}}\n"));
        text
    }

    /// A stack slot made in the entry block.
    fn alloca(&mut self, name: &str, ty: Type) {
        let align = u64::from(ty.bits().max(8) / 8) * u64::from(ty.lanes);
        let align = align.next_power_of_two();
        self.allocas.push(format!("  {name} = alloca {ty}, align {align}"));
    }

    fn i64(&self, value: u64) -> Val {
        Val::new(Type::int(64, 1), value.to_string())
    }
}
