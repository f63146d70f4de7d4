//! Cuts a kernel at its barriers: each region runs from the start or from behind one barrier to the next barriers.
//!
//! A region is a function of its own. Its entry block's parameters are the values saved at the barrier; a block that
//! ends in a barrier returns what the next region needs. Values that are the same for the whole block and cheap
//! functions of the thread are not saved.

use super::acting::{self, Acting};
use super::aside;
use super::bases::Bases;
use super::bits::BitSet;
use super::cfg;
use super::classify::{PARTIAL, View, classify, loses_threads};
use super::common_subexpressions;
use super::disjoint;
use super::divergence::{Among, Divergence, Divergences, analyse, is_short_side, structure, together};
use super::dominators::{Dominators, successors};
use super::flatten;
use super::fold;
use super::intake;
use super::invariant::Invariant;
use super::known::Known;
use super::layout::Layout;
use super::lcssa;
use super::liveness::live_in;
use super::loops::Loops;
use super::offsets::Offsets;
use super::per_value::PerValue;
use super::places::Places;
use super::spins;
use super::ssa::{self, Graph, rebuild};
use super::unroll;
use super::value_ranges::{Threads, ValueRanges};
use super::visit::{Definition, definitions, term_values_mut};
use super::whole_blocks;
use crate::ir::*;
use std::collections::HashMap;

/// A value that lives across a barrier.
#[derive(Clone, Debug)]
pub struct Saved {
    /// Its name in the whole kernel.
    pub value: Value,
    pub ty: Ty,
    pub divergence: Divergence,
    /// As [`Runs`] has it.
    pub in_run: Option<Divergence>,
    /// Kept once for all threads of the block, because it is the same for them.
    pub is_block_uniform: bool,
    /// What the barrier in front of the region reduced.
    pub is_reduced_here: bool,
}

pub struct Region {
    pub function: Function,
    pub dominators: Dominators,
    pub loops: Loops,
    pub layout: Layout,
    pub divergences: PerValue<Divergence>,
    pub ranges: ValueRanges,
    pub offsets: Offsets,
    /// The same while all lanes go together.
    pub offsets_together: Offsets,
    /// Of addresses, while all lanes go together.
    pub bases: Bases,
    pub divergent: Vec<bool>,
    /// What holds, and which branches may part lanes, while all lanes go together.
    pub together: Divergences,
    /// Branches that do not part lanes that go together, though one of their sides is short.
    pub whole: BitSet,
    /// Blocks that at most one lane of each warp runs.
    pub for_one_lane: BitSet,
    /// In the order of the entry block's parameters.
    pub saved: Vec<Saved>,
    /// Per block: the region behind the barrier it ends in.
    pub next: Vec<Option<usize>>,
    /// What runs of lanes have in common, where the group has not.
    pub runs: Option<Runs>,
    /// The groups that run it, where not all of a block's do.
    pub acting: Option<Acting>,
    /// Headers of loops in which a warp lets others run (`warp`), or a block other blocks (`simd`).
    pub spins: Vec<usize>,
}

/// Shapes among the lanes of a run, which are fewer than a group's: a row of a small block, or the four lanes that have
/// a row of a matrix fragment.
pub struct Runs {
    pub length: u32,
    pub divergences: PerValue<Divergence>,
}

impl Runs {
    /// The length of runs by which the most accesses go to one place or to neighbours, if any do that do not by groups.
    fn of(
        threads: Threads,
        function: &Function,
        group: &PerValue<Divergence>,
        analyse: impl Fn(Threads) -> PerValue<Divergence>,
    ) -> Option<Runs> {
        let insts = || function.blocks.iter().flat_map(|block| &block.insts);
        let accesses: Vec<(Value, i64)> = insts()
            .flat_map(|inst| {
                let of = |n: usize| inst.args[..n].to_vec();
                let (addresses, bytes) = match inst.op {
                    Op::Load { space, mem, .. } if space != Space::Local => {
                        (of(1), i64::from(mem.bits / 8) * inst.results.len() as i64)
                    }
                    Op::Store { space, mem, .. } if space != Space::Local => {
                        (of(1), i64::from(mem.bits / 8) * (inst.args.len() as i64 - 1))
                    }
                    Op::CopyAsync(copy) => (of(2), copy.size.into()),
                    _ => (vec![], 0),
                };
                let is_apart = |address: &Value| group[address.index()].is_varying();
                addresses
                    .into_iter()
                    .filter(is_apart)
                    .map(move |address| (address, bytes))
                    .collect::<Vec<_>>()
            })
            .collect();
        if accesses.is_empty() {
            return None;
        }
        let lengths = [16, 8, 4].into_iter().filter(|&length| length < threads.width);
        let tried = lengths.map(|length| {
            let divergences = analyse(Threads { width: length, ..threads });
            let is_near = |&&(address, bytes): &&(Value, i64)| {
                divergences[address.index()].line().is_some_and(|(stride, _)| Runs::are_near(stride, bytes))
            };
            let near = accesses.iter().filter(is_near).count();
            (near, Runs { length, divergences })
        });
        // Of equal ones the longest, which is the first.
        let best = tried.reduce(|best, other| if other.0 > best.0 { other } else { best })?;
        (best.0 > 0).then_some(best.1)
    }

    /// Whether lanes this far apart that access so many bytes each go to one place, or side by side.
    pub fn are_near(stride: i64, bytes: i64) -> bool {
        stride == 0 || stride == bytes
    }
}

pub struct Plan {
    /// Instructions for values that are the same for a whole block, in order.
    pub prologue: Vec<Inst>,
    /// Types of values by their name in the whole kernel.
    pub types: Vec<Ty>,
    pub is_prologue: BitSet,
    pub regions: Vec<Region>,
    /// What keeps its place in the context.
    pub places: Places,
    /// Where the barrier in front of each region stands.
    pub barriers: Vec<Pos>,
    /// Some threads of those that go from region to region together may end before others come to a barrier.
    pub loses_threads: bool,
}

/// `among`: who goes from region to region together, the block (`simd`) or each group by itself (`warp`). `Err` is the reason why
/// the kernel cannot run so.
pub fn plan(kernel: &Function, threads: Threads, local_bytes: u64, among: Among) -> Result<Plan, String> {
    let irreducible = || "its control flow is irreducible".to_owned();
    let mut body = kernel.clone();
    cfg::lower_switches(&mut body);
    cfg::clean(&mut body);
    fold::run(&mut body, threads);
    let counts_all = among == Among::Block && !threads.open && whole_blocks::run(&mut body, threads.total());
    if among == Among::Block && unroll::run(&mut body, threads) {
        cfg::clean(&mut body);
        fold::run(&mut body, threads);
    }
    let mut invariant = closed(&mut body).ok_or_else(irreducible)?;
    let (mut dominators, mut loops, mut layout) = structure(&body).ok_or_else(irreducible)?;
    let none = HashMap::new();
    let mut ranges = ValueRanges::of(&body, threads);
    disjoint::run(&mut body, &ranges);
    let mut group = analyse(&body, &loops, &layout, &ranges, threads, Among::Group, local_bytes, &none);
    if flatten::run(&mut body, &loops, &group, &ranges) {
        cfg::clean(&mut body);
        invariant = closed(&mut body).ok_or_else(irreducible)?;
        (dominators, loops, layout) = structure(&body).ok_or_else(irreducible)?;
        ranges = ValueRanges::of(&body, threads);
        group = analyse(&body, &loops, &layout, &ranges, threads, Among::Group, local_bytes, &none);
    }
    let graph = successors(&body);
    let block = analyse(&body, &loops, &layout, &ranges, threads, Among::Block, local_bytes, &none);
    let runs = Runs::of(threads, &body, &group.of, |threads| {
        let ranges = ValueRanges::of(&body, threads);
        analyse(&body, &loops, &layout, &ranges, threads, Among::Group, local_bytes, &none).of
    });
    let view = View {
        function: &body,
        graph: &graph,
        dominators: &dominators,
        loops: &loops,
        layout: &layout,
        group: &group,
        block: &block,
        ranges: &ranges,
        known: &Known::of(&body, &dominators, threads),
    };
    classify(&view, among)?;
    let loses_threads = loses_threads(&view, among);
    if counts_all && loses_threads {
        return Err(PARTIAL.to_owned());
    }

    let mut prologue = vec![];
    for id in body.reverse_post_order() {
        for inst in &body.block(id).insts {
            if !inst.results.is_empty()
                && inst.results.iter().all(|result| invariant.block.contains(result.index()))
            {
                prologue.push(inst.clone());
            }
        }
    }
    // Region k > 0 starts at the k-th block behind a barrier.
    let mut entries = vec![0];
    let mut behind: Vec<Option<usize>> = vec![None; graph.len()];
    let mut reduced: Vec<Option<Value>> = vec![None];
    let mut barriers = vec![Pos::default()];
    for (at, block) in body.blocks.iter().enumerate() {
        let barrier = block.insts.last().filter(|inst| inst.op.is_barrier());
        if let Some(barrier) = barrier.filter(|_| dominators.is_reachable(at)) {
            behind[at] = Some(entries.len());
            entries.push(graph[at][0]);
            reduced.push(barrier.results.first().copied());
            barriers.push(barrier.pos);
        }
    }
    let live = live_in(&body);
    let places = definitions(&body);
    let needs: Vec<Needs> = entries
        .iter()
        .zip(&reduced)
        .map(|(&entry, &reduced)| {
            let mut needs = Needs::at(&body, &live[entry], &invariant, &places, &group.of, &block.of);
            for saved in &mut needs.saved {
                saved.in_run = runs.as_ref().map(|runs| runs.divergences[saved.value.index()]);
                saved.is_block_uniform &= among == Among::Block;
                saved.is_reduced_here = reduced == Some(saved.value);
            }
            needs
        })
        .collect();
    let mut regions = vec![];
    for (&entry, need) in entries.iter().zip(&needs) {
        regions.push(cut(
            &body,
            &graph,
            &behind,
            entry,
            need,
            &needs,
            &invariant,
            &prologue,
            threads,
            local_bytes,
            among,
            runs.as_ref().map(|runs| runs.length),
        )?);
    }
    let places = Places::of(&regions);
    if among == Among::Block && !loses_threads {
        for at in 0..regions.len() {
            regions[at].acting = acting::of(&regions, at, &places, threads);
        }
    }
    Ok(Plan {
        prologue,
        types: body.values.clone(),
        is_prologue: invariant.block,
        places,
        regions,
        barriers,
        loses_threads,
    })
}

/// Barriers end blocks, loops are closed. `None` when the graph is not reducible.
fn closed(body: &mut Function) -> Option<Invariant> {
    cfg::isolate_barriers(body);
    common_subexpressions::run(body);
    cfg::canonical_loops(body)?;
    let invariant = Invariant::of(body);
    lcssa::run(body, &invariant.thread)?;
    Some(invariant)
}

/// What a region has to find at its start.
struct Needs {
    saved: Vec<Saved>,
    /// Instructions computed again, in order.
    again: Vec<Inst>,
}

/// More operations than this are saved rather than done again.
const CHEAP: usize = 12;

impl Needs {
    fn at(
        body: &Function,
        live: &BitSet,
        invariant: &Invariant,
        places: &[Definition],
        group: &PerValue<Divergence>,
        block: &PerValue<Divergence>,
    ) -> Needs {
        let mut needs = Needs { saved: vec![], again: vec![] };
        let mut done = BitSet::new(body.values.len());
        for index in live.iter().filter(|&index| !invariant.block.contains(index)) {
            let value = Value(index as u32);
            let mut chain = vec![];
            if invariant.thread.contains(index)
                && collect(body, invariant, places, value, &mut chain)
                && chain.len() <= CHEAP
            {
                for (at, nth) in chain {
                    if done.insert(body.blocks[at].insts[nth].results[0].index()) {
                        needs.again.push(body.blocks[at].insts[nth].clone());
                    }
                }
                continue;
            }
            // One thread agrees with itself, and still its group's idle lanes may hold anything.
            let agreed = block[index].is_uniform() && group[index].is_uniform();
            needs.saved.push(Saved {
                value,
                ty: body.ty(value),
                divergence: group[index],
                in_run: None,
                is_block_uniform: agreed || is_reduction(body, places, value),
                is_reduced_here: false,
            });
        }
        needs
    }
}

fn is_reduction(body: &Function, places: &[Definition], value: Value) -> bool {
    matches!(places[value.index()], Definition::Inst(at, nth, _)
        if matches!(body.blocks[at].insts[nth].op, Op::Barrier { .. }))
}

/// The cheap instructions that make `value` from the thread's number; false when one is not cheap.
fn collect(
    body: &Function,
    invariant: &Invariant,
    places: &[Definition],
    value: Value,
    chain: &mut Vec<(usize, usize)>,
) -> bool {
    if invariant.block.contains(value.index()) {
        return true;
    }
    let Definition::Inst(at, nth, _) = places[value.index()] else { return false };
    if chain.contains(&(at, nth)) {
        return true;
    }
    let inst = &body.blocks[at].insts[nth];
    let cheap = match &inst.op {
        Op::Int(op, _) => !matches!(op, IntBin::Div | IntBin::Rem),
        Op::Special(_) | Op::Cvta { .. } | Op::Bitcast | Op::Zext | Op::Sext | Op::Trunc => true,
        Op::IntUn(..) | Op::MulWide(_) | Op::Icmp(..) | Op::Bool(_) | Op::Not | Op::Select | Op::Lop3(_) => {
            true
        }
        Op::Shf { .. } | Op::Bfe(_) => true,
        _ => false,
    };
    if !cheap || chain.len() > CHEAP {
        return false;
    }
    if !inst.args.iter().all(|&arg| collect(body, invariant, places, arg, chain)) {
        return false;
    }
    chain.push((at, nth));
    true
}

#[expect(clippy::too_many_arguments, reason = "all parts of one plan")]
fn cut(
    body: &Function,
    graph: &[Vec<usize>],
    behind: &[Option<usize>],
    entry: usize,
    need: &Needs,
    needs: &[Needs],
    invariant: &Invariant,
    prologue: &[Inst],
    threads: Threads,
    local_bytes: u64,
    among: Among,
    run: Option<u32>,
) -> Result<Region, String> {
    // Blocks up to the next barriers.
    let mut chosen: Vec<usize> = vec![entry];
    let mut at = 0;
    while let Some(&block) = chosen.get(at) {
        at += 1;
        if behind[block].is_some() {
            continue;
        }
        for &to in &graph[block] {
            if !chosen.contains(&to) {
                chosen.push(to);
            }
        }
    }
    let index: HashMap<usize, usize> = chosen.iter().enumerate().map(|(new, &old)| (old, new + 1)).collect();
    // All of the body's values, so that their numbers stay, and none of its blocks.
    let mut function = Function {
        name: body.name.clone(),
        args: body.args.clone(),
        results: body.results.clone(),
        blocks: vec![],
        values: body.values.clone(),
        locals: body.locals.clone(),
    };
    let start = function.new_block();
    for &old in &chosen {
        let mut block = body.blocks[old].clone();
        block.insts.retain(|inst| {
            inst.results.is_empty()
                || !inst.results.iter().all(|result| invariant.block.contains(result.index()))
        });
        match behind[old] {
            Some(next) => {
                // The barrier itself stays as a mark, with the region behind it as its position.
                if let Some(barrier) = block.insts.last_mut() {
                    barrier.pos = Pos { source: u32::MAX, offset: next as u32 };
                }
                block.term = Term::Return(needs[next].saved.iter().map(|saved| saved.value).collect());
            }
            None => {
                for edge in block.term.edges_mut() {
                    edge.block = BlockId(index[&edge.block.index()] as u32);
                }
            }
        }
        function.blocks.push(block);
    }
    function.blocks[start.index()].term = Term::Jump(Edge { block: BlockId(1), args: vec![] });
    if entry != 0 {
        debug_assert!(body.blocks[entry].params.is_empty());
    }
    // What the whole block has in common stays for the analyses; it is emitted once per block.
    // New names for what comes in, and SSA form where the region also defines it.
    function.blocks[0].insts = prologue.to_vec();
    let mut thread = invariant.thread.clone();
    let mut renamed: HashMap<Value, Value> = HashMap::new();
    for inst in &need.again {
        let mut inst = inst.clone();
        for arg in &mut inst.args {
            *arg = renamed.get(arg).copied().unwrap_or(*arg);
        }
        for result in &mut inst.results {
            let new = function.new_value(body.ty(*result));
            thread.insert(new.index());
            renamed.insert(*result, new);
            *result = new;
        }
        function.blocks[0].insts.push(inst);
    }
    for block in &mut function.blocks[1..] {
        let rename = |value: &mut Value| {
            if let Some(new) = renamed.get(value) {
                *value = *new;
            }
        };
        for inst in &mut block.insts {
            inst.args.iter_mut().for_each(rename);
        }
        term_values_mut(&mut block.term, rename);
    }
    let incoming: Vec<(Value, Value)> =
        need.saved.iter().map(|saved| (saved.value, function.new_value(saved.ty))).collect();
    function.blocks[0].params = incoming.iter().map(|&(_, new)| new).collect();
    let graph = Graph::of(&function);
    let mut places = ssa::Places::of(&function);
    for &(old, new) in &incoming {
        rebuild(&mut function, &graph, &mut places, old, &[(0, new)], &[]);
    }
    remove_dead(&mut function);
    cfg::clean(&mut function);
    let known = Context { need, thread: &thread, threads, local_bytes, among, run };
    let as_it_is = spins::may_wait(&function).then(|| function.clone());
    analysed(function, &known).or_else(|why| {
        // Lanes in step may wait in vain for what others of them do behind the loop, or beside it.
        let as_it_is = as_it_is.ok_or_else(|| why.clone())?;
        let taken_in = intake::run(&as_it_is).and_then(|changed| analysed(changed, &known).ok());
        taken_in
            .or_else(|| aside::run(&as_it_is).and_then(|changed| analysed(changed, &known).ok()))
            .ok_or(why)
    })
}

/// What is known of a region besides its code.
struct Context<'a> {
    need: &'a Needs,
    /// Values that never change for a thread.
    thread: &'a BitSet,
    threads: Threads,
    local_bytes: u64,
    among: Among,
    run: Option<u32>,
}

fn analysed(mut function: Function, known: &Context<'_>) -> Result<Region, String> {
    let Context { need, thread, threads, local_bytes, among, run } = *known;
    let irreducible = || "a region between barriers has irreducible control flow".to_owned();
    cfg::canonical_loops(&mut function).ok_or_else(irreducible)?;
    lcssa::run(&mut function, thread).ok_or_else(irreducible)?;
    let given: HashMap<Value, Divergence> = function.blocks[0]
        .params
        .iter()
        .zip(&need.saved)
        .map(|(&param, saved)| (param, saved.divergence))
        .collect();
    loop {
        let (dominators, loops, layout) = structure(&function).ok_or_else(irreducible)?;
        let ranges = ValueRanges::of(&function, threads);
        let divergences =
            analyse(&function, &loops, &layout, &ranges, threads, Among::Group, local_bytes, &given);
        let runs = run.map(|length| {
            let threads = Threads { width: length, ..threads };
            let params = function.blocks[0].params.iter().zip(&need.saved);
            let given = params.filter_map(|(&param, saved)| Some((param, saved.in_run?))).collect();
            let ranges = ValueRanges::of(&function, threads);
            let divergences =
                analyse(&function, &loops, &layout, &ranges, threads, Among::Group, local_bytes, &given).of;
            Runs { length, divergences }
        });
        let together = |whole: &BitSet| {
            together(&function, &loops, &layout, &ranges, threads, local_bytes, &given, &divergences, whole)
        };
        let with_sides = together(&BitSet::new(function.blocks.len()));
        let whole = whole_branches(&function, &loops, &layout, &ranges, &with_sides, threads.width);
        let together = if whole.iter().next().is_none() { with_sides } else { together(&whole) };
        let offsets = |found: &Divergences, checks: bool| {
            let is_mixed = |block: usize| found.mixed[block];
            Offsets::of(&function, &ranges, &found.of, is_mixed, threads.width, checks)
        };
        // Lanes part in any case: the code that a check leads to is there.
        let checks = threads.assumes && together.divergent.contains(&true);
        let (offsets, offsets_together) = (offsets(&divergences, false), offsets(&together, checks));
        if split_checks(&mut function, &together.of, &offsets_together, runs.as_ref()) {
            continue;
        }
        let next = function
            .blocks
            .iter()
            .map(|block| {
                let last = block.insts.last().filter(|inst| inst.op.is_barrier());
                last.map(|inst| inst.pos.offset as usize)
            })
            .collect();
        let known = Known::of(&function, &dominators, threads);
        let for_one_lane = known.blocks_for_one_lane(|at| together.divergent[at]);
        let parts = spins::Parts {
            function: &function,
            graph: &successors(&function),
            dominators: &dominators,
            loops: &loops,
            layout: &layout,
            divergent: &divergences.divergent,
            known: &known,
        };
        let spins = match among {
            Among::Block => spins::of_blocks(&parts, threads.width)?,
            Among::Group => spins::of_warps(&parts)?,
        };
        return Ok(Region {
            runs,
            acting: None,
            spins,
            dominators,
            loops,
            layout,
            offsets,
            bases: bases(&function, &ranges, &together.of, &offsets_together, threads.width),
            offsets_together,
            divergences: divergences.of,
            ranges,
            divergent: divergences.divergent,
            together,
            whole,
            for_one_lane,
            saved: need.saved.clone(),
            next,
            function,
        });
    }
}

/// Branches with a short side that lanes had better pass all together: a trip that stands alone in front of a loop, behind which the
/// loop's loads are at constant distances if all lanes made that trip, or none did. Lanes that do not agree go their own way there.
fn whole_branches(
    function: &Function,
    loops: &Loops,
    layout: &Layout,
    ranges: &ValueRanges,
    together: &Divergences,
    width: u32,
) -> BitSet {
    let mut whole = BitSet::new(function.blocks.len());
    let loads =
        |block: &Block| block.insts.iter().any(|inst| matches!(inst.op, Op::Load { order: Order::Weak, .. }));
    let mut candidates: Vec<(usize, usize)> = vec![];
    for (at, block) in function.blocks.iter().enumerate() {
        let Term::Branch { then, otherwise, .. } = &block.term else { continue };
        for (side, other) in [(then, otherwise), (otherwise, then)] {
            let is_candidate = together.divergent[at]
                && loads(function.block(side.block))
                && is_short_side(function, layout, at, side, other);
            if is_candidate {
                candidates.push((at, other.block.index()));
            }
        }
    }
    if candidates.is_empty() {
        return whole;
    }
    let is_join = |block: usize| candidates.iter().any(|&(_, join)| join == block);
    let offsets =
        |is_mixed: &dyn Fn(usize) -> bool| Offsets::of(function, ranges, &together.of, is_mixed, width, true);
    let own = offsets(&|block| together.mixed[block]);
    let open = offsets(&|block| together.mixed[block] && !is_join(block));
    let is_gained = |value: Value| own.get(value).is_none() && open.get(value).is_some();
    for (at, join) in candidates {
        let is_load_of_loop =
            |block: usize| loops.of[block].is_some_and(|index| !loops.all[index].blocks.contains(&at));
        let gains = function.blocks.iter().enumerate().any(|(block, of)| {
            is_load_of_loop(block)
                && of.insts.iter().any(|inst| {
                    matches!(inst.op, Op::Load { order: Order::Weak, .. }) && is_gained(inst.args[0])
                })
        });
        if gains && function.blocks[join].params.iter().any(|&param| is_gained(param)) {
            whole.insert(at);
        }
    }
    whole
}

/// Only where lanes lie at constant distances without being a line.
fn bases(
    function: &Function,
    ranges: &ValueRanges,
    together: &PerValue<Divergence>,
    offsets: &Offsets,
    width: u32,
) -> Bases {
    let mut insts = function.blocks.iter().flat_map(|block| &block.insts);
    if !insts.any(|inst| matches!(inst.op, Op::Load { .. }) && offsets.get(inst.args[0]).is_some()) {
        return Bases::default();
    }
    Bases::of(function, ranges, together, offsets, width)
}

/// Widenings whose result is a straight line only if the narrow one did not wrap.
pub fn is_checked(inst: &Inst, divergences: &PerValue<Divergence>) -> bool {
    matches!(inst.op, Op::Zext | Op::Sext | Op::MulWide(_))
        && divergences[inst.results[0].index()].is_assumed()
}

/// A checked widening stands before every effect of its block, so the block can be started again.
fn split_checks(
    function: &mut Function,
    divergences: &PerValue<Divergence>,
    offsets: &Offsets,
    runs: Option<&Runs>,
) -> bool {
    let is_checked = |inst: &Inst, divergences: &PerValue<Divergence>| {
        is_checked(inst, divergences) || offsets.is_checked(inst)
    };
    let in_rows = |inst: &Inst| runs.is_some_and(|runs| is_checked(inst, &runs.divergences));
    for at in 0..function.blocks.len() {
        let mut effects = false;
        let position = function.blocks[at].insts.iter().position(|inst| {
            effects |= !inst.op.is_pure()
                && !matches!(inst.op, Op::Load { order: Order::Weak, .. } | Op::Special(_));
            effects && (is_checked(inst, divergences) || in_rows(inst))
        });
        if let Some(position) = position {
            let rest = function.new_block();
            let block = &mut function.blocks[at];
            let tail = block.insts.split_off(position);
            let term = std::mem::replace(&mut block.term, Term::Jump(Edge { block: rest, args: vec![] }));
            function.blocks[rest.index()] = Block { params: vec![], insts: tail, term };
            return true;
        }
    }
    false
}

/// Whether an operation whose result nobody uses need not be done.
pub fn is_removable(op: &Op) -> bool {
    op.is_pure() || matches!(op, Op::Special(_) | Op::Load { order: Order::Weak, .. })
}

/// Drops pure instructions nobody uses.
fn remove_dead(function: &mut Function) {
    let places = definitions(function);
    let mut live = BitSet::new(function.values.len());
    let mut work: Vec<Value> = vec![];
    for block in &function.blocks {
        for inst in block.insts.iter().filter(|inst| !is_removable(&inst.op)) {
            work.extend(&inst.args);
        }
        work.extend(super::visit::term_values(&block.term));
    }
    while let Some(value) = work.pop() {
        if live.insert(value.index())
            && let Definition::Inst(at, nth, _) = places[value.index()]
        {
            work.extend(&function.blocks[at].insts[nth].args);
        }
    }
    for block in &mut function.blocks {
        block.insts.retain(|inst| {
            !is_removable(&inst.op) || inst.results.iter().any(|it| live.contains(it.index()))
        });
    }
}
