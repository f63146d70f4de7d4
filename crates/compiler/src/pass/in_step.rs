//! Whether a kernel counts on the lanes of a warp going in step: one stores what another then loads, and nothing in between
//! lets them meet. CUDA has not promised that since Volta, but programs do it, and hardware gives it to them: all lanes of a
//! warp store before one of them goes on to the load. Only code that runs whole warps together gives the same.
//!
//! What is looked for are addresses below one pointer that are made of the thread's number, not of what memory holds. Of each,
//! the part that lanes differ in is compared (`Lanes`): where store and load have the same, each lane reads what it wrote
//! itself, as columns and rows of one's own are used, unless one is some lanes further on than the other, or the part changes
//! from trip to trip of a loop that leads from the store to the load.

use std::collections::{HashMap, HashSet};

use super::dominators::{Dominators, successors};
use super::loops::Loops;
use super::value_ranges::signed;
use super::visit::{Definition, definitions};
use crate::ir::*;

/// Sweeps over the function until what is known of values no longer changes; where there are more, nothing is found.
const SWEEPS: usize = 8;
/// Pairs of a store and a load that are compared; behind them nothing is found.
const PAIRS: usize = 1 << 20;
/// Steps in which an address is written out as a sum.
const WRITTEN_OUT: usize = 64;
/// The lane's number among [`Term::Own`], behind the three of a thread.
const LANE: u8 = 3;
/// Lanes of a warp.
const LANES: i128 = 32;
/// Bytes between two places whose lanes differ in other ways, up to which they are taken for places in one array.
const NEAR: i128 = 512;

/// What lanes may differ in.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Term {
    /// The thread's own number.
    Own(u8),
    /// A number that is made of others in no linear way, by its place in `Values::made`.
    Made(u32),
    /// What differs because of what memory holds.
    Data,
}

/// The lanes' part of a number: a sum of terms in order, each so many times. Empty: the lanes have the same.
type Lanes = Vec<(Term, i128)>;

/// What an address is an offset from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Root {
    /// The pointer at this place among the kernel's parameters.
    Parameter(i64),
    Shared(SharedId),
    Global(GlobalId),
}

/// How a number that is not linear in others is made: two that are made alike, of numbers whose lanes differ alike, differ
/// alike themselves, to what a division or a mask may do with the rest.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Made {
    Op(Op, Vec<Part>),
    Met(Value),
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    Same(Value),
    Lanes(Lanes),
}

struct Values<'a> {
    function: &'a Function,
    loops: &'a Loops,
    definitions: Vec<Definition>,
    lanes: Vec<Option<Lanes>>,
    roots: Vec<Option<Option<Root>>>,
    made: HashMap<Made, u32>,
    /// By number in `made`: the innermost loop from whose trip to trip it changes.
    changes: Vec<Option<usize>>,
    /// The same of values.
    changes_in: Vec<Option<usize>>,
}

impl<'a> Values<'a> {
    /// `None` where nothing is both stored to and loaded from, or what lanes hold does not settle.
    fn of(function: &'a Function, loops: &'a Loops) -> Option<Values<'a>> {
        let n = function.values.len();
        let mut values = Values {
            function,
            loops,
            definitions: definitions(function),
            lanes: vec![None; n],
            roots: vec![None; n],
            made: HashMap::new(),
            changes: vec![],
            changes_in: vec![None; n],
        };
        let order = function.reverse_post_order();
        let mut arriving: Vec<Vec<&[Value]>> = vec![vec![]; function.blocks.len()];
        for id in &order {
            for edge in function.block(*id).term.edges() {
                arriving[edge.block.index()].push(&edge.args);
            }
        }
        (0..SWEEPS).find(|_| !values.sweep_roots(&order, &arriving))?;
        if roots_of_both(&values).is_empty() {
            return None;
        }
        (0..SWEEPS).find(|_| !values.sweep(&order, &arriving)).map(|_| values)
    }

    /// Whether anything has changed.
    fn sweep_roots(&mut self, order: &[BlockId], arriving: &[Vec<&[Value]>]) -> bool {
        let mut has_changed = false;
        let mut set = |known: &mut Option<Option<Root>>, new| {
            has_changed |= *known != new;
            *known = new;
        };
        for id in order {
            let block = self.function.block(*id);
            for (nth, &param) in block.params.iter().enumerate() {
                let from = arriving[id.index()].iter().map(|args| args[nth]);
                let root = self.common_root(from);
                set(&mut self.roots[param.index()], root);
            }
            for inst in &block.insts {
                for &result in &inst.results {
                    let root = self.root_of(inst);
                    set(&mut self.roots[result.index()], root);
                }
            }
        }
        has_changed
    }

    /// Whether anything has changed.
    fn sweep(&mut self, order: &[BlockId], arriving: &[Vec<&[Value]>]) -> bool {
        let mut has_changed = false;
        for id in order {
            let at = id.index();
            let block = self.function.block(*id);
            for (nth, &param) in block.params.iter().enumerate() {
                let from: Vec<Value> = arriving[at].iter().map(|args| args[nth]).collect();
                self.changes_in[param.index()] = self.loops.of[at];
                let lanes = self.met(at, param, &from);
                has_changed |= self.set(param, lanes);
            }
            for inst in &block.insts {
                let inner = inst.args.iter().filter_map(|arg| self.around(self.changes_in[arg.index()], at));
                let mut innermost = inner.max_by_key(|&index| self.depth(index));
                if !inst.op.is_pure() && !is_parameter(&inst.op) {
                    innermost = self.loops.of[at];
                }
                for &result in &inst.results {
                    self.changes_in[result.index()] = innermost;
                    let lanes = self.lanes_of(inst);
                    has_changed |= self.set(result, lanes);
                }
            }
        }
        has_changed
    }

    fn set(&mut self, value: Value, lanes: Option<Lanes>) -> bool {
        let known = &mut self.lanes[value.index()];
        let has_changed = *known != lanes;
        *known = lanes;
        has_changed
    }

    fn depth(&self, index: usize) -> usize {
        std::iter::successors(Some(index), |&at| self.loops.all[at].parent).count()
    }

    /// The innermost of the loop and those around it that block `at` lies in.
    fn around(&self, index: Option<usize>, at: usize) -> Option<usize> {
        std::iter::successors(index, |&outer| self.loops.all[outer].parent)
            .find(|&outer| self.loops.contains(outer, at))
    }

    /// A block's parameter. Lanes that come from elsewhere, or with other trips behind them, are not told apart.
    fn met(&mut self, at: usize, param: Value, from: &[Value]) -> Option<Lanes> {
        let known: Vec<&Lanes> = from.iter().filter_map(|it| self.lanes[it.index()].as_ref()).collect();
        let first = known.first()?;
        if known.iter().all(|it| it == first) {
            return Some((*first).clone());
        }
        if known.iter().any(|it| is_data(it)) {
            return Some(vec![(Term::Data, 1)]);
        }
        let changes = self.loops.of[at];
        Some(self.one(Made::Met(param), changes))
    }

    fn common_root(&self, from: impl Iterator<Item = Value>) -> Option<Option<Root>> {
        let mut known = from.filter_map(|it| self.roots[it.index()]);
        let first = known.next()?;
        Some(if known.all(|it| it == first) { first } else { None })
    }

    fn one(&mut self, made: Made, changes: Option<usize>) -> Lanes {
        let next = self.changes.len() as u32;
        let number = *self.made.entry(made).or_insert(next);
        if number == next {
            self.changes.push(changes);
        } else if let Some(inner) = changes
            && self.changes[number as usize].is_none_or(|known| self.depth(known) < self.depth(inner))
        {
            self.changes[number as usize] = changes;
        }
        vec![(Term::Made(number), 1)]
    }

    fn lanes_of(&mut self, inst: &Inst) -> Option<Lanes> {
        match &inst.op {
            Op::Special(Special::Tid(d)) => return Some(vec![(Term::Own(*d), 1)]),
            Op::Special(Special::LaneId) => return Some(vec![(Term::Own(LANE), 1)]),
            Op::Special(Special::WarpId) => return Some(Lanes::new()),
            op if is_parameter(op) => return Some(Lanes::new()),
            _ => {}
        }
        let args: Vec<&Lanes> =
            inst.args.iter().map(|arg| self.lanes[arg.index()].as_ref()).collect::<Option<_>>()?;
        let is_same = args.iter().all(|lanes| lanes.is_empty());
        if is_same && (inst.op.is_pure() || matches!(inst.op, Op::Load { .. })) {
            return Some(Lanes::new());
        }
        if !inst.op.is_pure() || args.iter().any(|lanes| is_data(lanes)) {
            return Some(vec![(Term::Data, 1)]);
        }
        if let Some(terms) = self.linear(inst) {
            let lanes = |(value, by): (Value, i128)| Some(times(self.lanes[value.index()].as_ref()?, by));
            return terms.into_iter().map(lanes).try_fold(Lanes::new(), |all, next| Some(sum(all, &next?)));
        }
        let by_warps =
            |of: fn(i128) -> bool| is_thread(args[0]) && self.constant(inst.args[1]).is_some_and(of);
        match &inst.op {
            // The warp's number, or its first thread's; and the lane's.
            Op::Int(IntBin::Shr, _) if by_warps(|by| by >= 5) => return Some(Lanes::new()),
            Op::Int(IntBin::Div | IntBin::And, _) if by_warps(|by| by != 0 && by % LANES == 0) => {
                return Some(Lanes::new());
            }
            Op::Int(IntBin::And, _) if by_warps(|by| by == LANES - 1) => {
                return Some(vec![(Term::Own(LANE), 1)]);
            }
            Op::Select if args[0].is_empty() && args[1] == args[2] => return Some(args[1].clone()),
            _ => {}
        }
        let part = |(arg, lanes): (&Value, &&Lanes)| match lanes.is_empty() {
            true => Part::Same(*arg),
            false => Part::Lanes((*lanes).clone()),
        };
        let parts = inst.args.iter().zip(&args).map(part).collect();
        let own = args.iter().flat_map(|lanes| self.changing(lanes));
        let same = inst.args.iter().zip(&args).filter(|(_, lanes)| lanes.is_empty());
        let inner = same.filter_map(|(arg, _)| self.changes_in[arg.index()]).chain(own);
        let innermost = inner.max_by_key(|&index| self.depth(index));
        Some(self.one(Made::Op(inst.op.clone(), parts), innermost))
    }

    /// Loops in which what lanes differ in changes.
    fn changing(&self, lanes: &Lanes) -> impl Iterator<Item = usize> {
        lanes.iter().filter_map(|(term, _)| match term {
            Term::Made(number) => self.changes[*number as usize],
            _ => None,
        })
    }

    fn root_of(&self, inst: &Inst) -> Option<Option<Root>> {
        match &inst.op {
            Op::Load { space: Space::Param, offset, .. } => {
                let is_pointer = inst.results.len() == 1 && self.function.ty(inst.results[0]) == Ty::B64;
                let base = inst.args.first().and_then(|&arg| match self.instruction(arg)?.op {
                    Op::ParamAddr(at) => Some(i64::from(at)),
                    _ => None,
                });
                Some(base.filter(|_| is_pointer).map(|base| Root::Parameter(base + offset)))
            }
            Op::SharedAddr(id) => Some(Some(Root::Shared(*id))),
            Op::GlobalAddr(id) => Some(Some(Root::Global(*id))),
            Op::Int(IntBin::Add | IntBin::Sub, _) => {
                let roots = [self.roots[inst.args[0].index()]?, self.roots[inst.args[1].index()]?];
                Some(match roots {
                    [root, None] => root,
                    [None, root] if matches!(inst.op, Op::Int(IntBin::Add, _)) => root,
                    _ => None,
                })
            }
            op if is_transparent(op) => self.roots[inst.args[0].index()],
            _ => Some(None),
        }
    }

    fn instruction(&self, value: Value) -> Option<&'a Inst> {
        match self.definitions[value.index()] {
            Definition::Inst(block, at, _) => Some(&self.function.blocks[block].insts[at]),
            _ => None,
        }
    }

    fn constant(&self, value: Value) -> Option<i128> {
        match self.instruction(value)?.op {
            Op::Const(bits) => Some(signed(bits, self.function.ty(value).bits())),
            _ => None,
        }
    }

    /// The result as a sum of arguments, each so many times.
    fn linear(&self, inst: &Inst) -> Option<Vec<(Value, i128)>> {
        let constant = |nth: usize| self.constant(inst.args[nth]);
        match (&inst.op, &inst.args[..]) {
            (Op::Int(IntBin::Add, _), &[a, b]) => Some(vec![(a, 1), (b, 1)]),
            (Op::Int(IntBin::Sub, _), &[a, b]) => Some(vec![(a, 1), (b, -1)]),
            (Op::Int(IntBin::Mul, _) | Op::MulWide(_), &[a, b]) => match (constant(0), constant(1)) {
                (_, Some(by)) => Some(vec![(a, by)]),
                (Some(by), _) => Some(vec![(b, by)]),
                _ => None,
            },
            (Op::Int(IntBin::Shl, _), &[a, _]) => {
                constant(1).filter(|by| (0..64).contains(by)).map(|by| vec![(a, 1 << by)])
            }
            (op, &[a]) if is_transparent(op) => Some(vec![(a, 1)]),
            _ => None,
        }
    }

    /// `value` as a sum of others, each so many times, and a constant; if it `wraps`, a remainder is what it is of, which it is in all
    /// lanes but those behind the end of a ring.
    fn written_out(&self, value: Value, wraps: bool) -> (HashMap<Value, i128>, i128) {
        let (mut terms, mut constant) = (HashMap::new(), 0);
        let mut work = vec![(value, 1i128)];
        for steps in 0.. {
            let Some((value, by)) = work.pop() else { break };
            let inst = self.instruction(value).filter(|_| steps < WRITTEN_OUT);
            if let Some(number) = inst.and_then(|_| self.constant(value)) {
                constant += number.saturating_mul(by);
            } else if let Some(inst) = inst.filter(|inst| wraps && matches!(inst.op, Op::Int(IntBin::Rem, _)))
            {
                work.push((inst.args[0], by));
            } else if let Some(parts) = inst.and_then(|inst| self.linear(inst)) {
                work.extend(parts.into_iter().map(|(part, times)| (part, by.saturating_mul(times))));
            } else {
                *terms.entry(value).or_default() += by;
            }
        }
        terms.retain(|_, by| *by != 0);
        (terms, constant)
    }

    /// Bytes from the store to the load, if they are the same in all lanes and trips; of `only_same`, what lanes differ in is
    /// left out.
    fn distance(&self, store: &Access, load: &Access, only_same: bool) -> Option<i128> {
        let (mut terms, constant) = self.written_out(store.address, false);
        let (others, other) = self.written_out(load.address, false);
        for (value, by) in others {
            *terms.entry(value).or_default() -= by;
        }
        let is_same = |value: &Value| self.lanes[value.index()].as_ref().is_some_and(Vec::is_empty);
        let mut left = terms.iter().filter(|&(value, by)| *by != 0 && (!only_same || is_same(value)));
        left.next().is_none().then(|| other - constant + i128::from(load.offset - store.offset))
    }

    /// Whether the load is of a place some lanes on in a ring: `(i + 1) % n` beside `i`.
    fn is_neighbour_in_ring(&self, store: &Access, load: &Access) -> bool {
        let (own, constant) = self.written_out(store.address, true);
        let (other, other_constant) = self.written_out(load.address, true);
        let lanes = own.iter().try_fold(Lanes::new(), |all, (value, &by)| {
            Some(sum(all, &times(self.lanes[value.index()].as_ref()?, by)))
        });
        let bytes = other_constant - constant + i128::from(load.offset - store.offset);
        own == other && lanes.is_some_and(|lanes| is_some_lanes_on(&lanes, bytes))
    }

    /// Whether some lane's load is of what another has stored.
    fn is_exchange(&self, store: &Access, load: &Access, is_around: bool) -> bool {
        if store.lanes != load.lanes {
            return self.distance(store, load, true).is_some_and(|bytes| bytes.abs() <= NEAR)
                || self.is_neighbour_in_ring(store, load);
        }
        let distance = self.distance(store, load, false);
        if let (&[(Term::Own(0 | LANE), _)], Some(bytes)) = (&store.lanes[..], distance) {
            return is_some_lanes_on(&store.lanes, bytes);
        }
        let holds =
            |index: usize| self.loops.contains(index, store.block) && self.loops.contains(index, load.block);
        is_around && distance.is_none() && self.changing(&store.lanes).any(holds)
    }
}

fn is_parameter(op: &Op) -> bool {
    matches!(op, Op::Load { space: Space::Param | Space::Const, .. })
}

/// The result is the argument, as an address.
fn is_transparent(op: &Op) -> bool {
    matches!(
        op,
        Op::Bitcast
            | Op::Zext
            | Op::Sext
            | Op::Trunc
            | Op::Cvta { .. }
            | Op::Cvt { from: Num::Int(_), to: Num::Int(_), .. }
    )
}

/// Whether the lanes of a warp hold 32 numbers in a row, one above the other.
fn is_thread(lanes: &Lanes) -> bool {
    lanes.first() == Some(&(Term::Own(0), 1))
}

/// Whether so many bytes lead from a lane's place to another lane's.
fn is_some_lanes_on(lanes: &Lanes, bytes: i128) -> bool {
    match lanes[..] {
        [(Term::Own(0 | LANE), stride)] => {
            bytes != 0 && bytes % stride == 0 && bytes.abs() < LANES * stride.abs()
        }
        _ => false,
    }
}

fn is_data(lanes: &Lanes) -> bool {
    lanes.iter().any(|(term, _)| *term == Term::Data)
}

fn sum(mut sum: Lanes, more: &Lanes) -> Lanes {
    for (term, by) in more {
        match sum.binary_search_by(|(known, _)| known.cmp(term)) {
            Ok(at) => sum[at].1 += by,
            Err(at) => sum.insert(at, (term.clone(), *by)),
        }
    }
    sum.retain(|(_, by)| *by != 0);
    sum
}

fn times(lanes: &Lanes, by: i128) -> Lanes {
    let product = lanes.iter().map(|(term, times)| (term.clone(), times.saturating_mul(by)));
    product.filter(|(_, times)| *times != 0).collect()
}

struct Access {
    block: usize,
    /// Between which of the block's meetings.
    segment: usize,
    /// Among the block's instructions.
    at: usize,
    is_store: bool,
    address: Value,
    offset: i64,
    root: Root,
    lanes: Lanes,
}

/// Whether lanes of a warp are known to wait for each other there.
fn is_meeting(op: &Op) -> bool {
    op.is_warp_collective() || matches!(op, Op::Barrier { .. } | Op::ClusterBarrier { .. })
}

/// Of an access to memory that lanes share: whether it stores, and its offset.
fn shared_access(op: &Op) -> Option<(bool, i64)> {
    let (is_store, space, offset) = match *op {
        Op::Load { space, offset, .. } => (false, space, offset),
        Op::Store { space, offset, .. } => (true, space, offset),
        Op::CopyAsync(copy) => (true, Space::Shared, copy.to),
        _ => return None,
    };
    (!matches!(space, Space::Local | Space::Param | Space::Const)).then_some((is_store, offset))
}

/// What is both stored to and loaded from.
fn roots_of_both(values: &Values) -> HashSet<Root> {
    let (mut stored, mut loaded) = (HashSet::new(), HashSet::new());
    for inst in values.function.blocks.iter().flat_map(|block| &block.insts) {
        if let Some((is_store, _)) = shared_access(&inst.op)
            && let Some(Some(root)) = values.roots[inst.args[0].index()]
        {
            if is_store { &mut stored } else { &mut loaded }.insert(root);
        }
    }
    &stored & &loaded
}

/// All accesses whose places the lanes' numbers decide, below pointers that are stored to and loaded from.
fn accesses(values: &Values) -> Vec<Access> {
    let roots = roots_of_both(values);
    let mut all = vec![];
    for (block, of) in values.function.blocks.iter().enumerate() {
        let mut segment = 0;
        for (at, inst) in of.insts.iter().enumerate() {
            segment += usize::from(is_meeting(&inst.op));
            let Some((is_store, offset)) = shared_access(&inst.op) else { continue };
            let address = inst.args[0];
            let known = (values.roots[address.index()], &values.lanes[address.index()]);
            let (Some(Some(root)), Some(lanes)) = known else { continue };
            if roots.contains(&root) && !lanes.is_empty() && !is_data(lanes) {
                let lanes = lanes.clone();
                all.push(Access { block, segment, at, is_store, address, offset, root, lanes });
            }
        }
    }
    all
}

/// Whether the function counts on a warp's lanes going in step.
pub fn counts_on_it(function: &Function) -> bool {
    let graph = successors(function);
    let dominators = Dominators::of_graph(&graph, 0);
    let Some(loops) = Loops::of_graph(&graph, &dominators) else { return false };
    let Some(values) = Values::of(function, &loops) else { return false };
    let accesses = accesses(&values);
    if accesses.is_empty() {
        return false;
    }
    let meetings: Vec<usize> = function
        .blocks
        .iter()
        .map(|block| block.insts.iter().filter(|inst| is_meeting(&inst.op)).count())
        .collect();
    let is_back = |from: usize, to: usize| dominators.dominates(to, from);
    let mut left = PAIRS;
    let mut stores: Vec<&Access> = accesses.iter().filter(|it| it.is_store).collect();
    stores.sort_by_key(|it| it.block);
    for of_block in stores.chunk_by(|a, b| a.block == b.block) {
        let from = of_block[0].block;
        // Blocks whose beginnings are come to without a meeting, and in no loop's next trip.
        let forward = reached(&graph, &meetings, from, |from, to| !is_back(from, to));
        let around = reached(&graph, &meetings, from, |_, _| true);
        for store in of_block {
            let leaves = store.segment == meetings[from];
            for load in accesses.iter().filter(|it| !it.is_store && it.root == store.root) {
                if left == 0 {
                    return false;
                }
                left -= 1;
                let is_next = load.block == from && load.segment == store.segment && load.at > store.at;
                let is_first = leaves && load.segment == 0;
                let is_straight = is_next || (is_first && forward[load.block]);
                let is_around = is_first && around[load.block];
                if (is_straight || is_around) && values.is_exchange(store, load, is_around) {
                    return true;
                }
            }
        }
    }
    false
}

/// Blocks to whose beginnings control comes from the end of `from`, on these edges and without a meeting.
fn reached(
    graph: &[Vec<usize>],
    meetings: &[usize],
    from: usize,
    edge: impl Fn(usize, usize) -> bool,
) -> Vec<bool> {
    let mut reached = vec![false; graph.len()];
    let mut work = vec![from];
    while let Some(at) = work.pop() {
        for &to in graph[at].iter().filter(|&&to| edge(at, to)) {
            if !std::mem::replace(&mut reached[to], true) && meetings[to] == 0 {
                work.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    /// A kernel over words in global memory (`%p`) and 4 KiB of shared memory (`%s`); `%t` is the thread, `%own` and `%mine`
    /// its places in both.
    fn counts(body: &str) -> bool {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words, .param .u64 others, .param .u32 n) {{\n\
             .shared .align 4 .b8 own[4096];\n.reg .b32 %t, %n, %s, %mine, %x, %y, %i, %w, %a, %b;\n\
             .reg .b64 %p, %other, %own, %q, %r;\n.reg .pred %more, %is;\n\
             ld.param.u64 %p, [words];\nld.param.u64 %other, [others];\nld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\n\
             mov.u32 %s, own;\nshl.b32 %a, %t, 2;\nadd.s32 %mine, %s, %a;\nmad.wide.u32 %own, %t, 4, %p;\n{body}ret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        counts_on_it(program.kernel("k").unwrap().body.as_ref().unwrap())
    }

    /// `inside` for `%w` = 1, 2, 4 up to `%n`.
    fn doubling(inside: &str) -> String {
        format!(
            "mov.u32 %w, 1;\nAGAIN:\n{inside}shl.b32 %w, %w, 1;\nsetp.lt.u32 %more, %w, %n;\n@%more bra AGAIN;\n"
        )
    }

    #[test]
    fn sums_of_the_last_warp_without_meetings_count_on_it() {
        let step = |offset: u32| {
            format!(
                "ld.shared.u32 %x, [%mine];\nld.shared.u32 %y, [%mine+{offset}];\nadd.u32 %x, %x, %y;\nst.shared.u32 [%mine], %x;\n"
            )
        };
        assert!(counts(&(step(64) + &step(32))));
        assert!(!counts(&step(64)), "all that is loaded was stored before");
        assert!(!counts(&(step(64) + "bar.warp.sync 0xffffffff;\n" + &step(32))));
        assert!(!counts(&(step(64) + "bar.sync 0;\n" + &step(32))));
        assert!(!counts(&(step(1024) + &step(512))), "of other warps: no hardware does that");
    }

    #[test]
    fn exchanges_at_a_distance_that_changes_count_on_it() {
        // The places of a bitonic sort's step, and of Batcher's.
        for partner in
            ["xor.b32 %b, %t, %w;\n", "neg.s32 %b, %w;\nand.b32 %b, %t, %b;\nadd.u32 %b, %b, %t;\n"]
        {
            let step = |meeting: &str| {
                let place = "mad.wide.u32 %q, %b, 4, %p;\nmul.wide.u32 %r, %w, 4;\nadd.u64 %r, %q, %r;\n";
                let swap = "ld.global.u32 %x, [%q];\nld.global.u32 %y, [%r];\nst.global.u32 [%q], %y;\nst.global.u32 [%r], %x;\n";
                doubling(&format!("{partner}{place}{swap}{meeting}"))
            };
            assert!(counts(&step("")), "{partner}");
            assert!(!counts(&step("bar.warp.sync 0xffffffff;\n")), "{partner}");
            assert!(!counts(&step("bar.sync 0;\n")), "{partner}");
        }
    }

    #[test]
    fn neighbours_in_a_ring_count_on_it() {
        // A shift register: each lane takes the next one's word, the last one the first one's.
        let step = |on: u32, meeting: &str| {
            doubling(&format!(
                "mov.u32 %a, %ctaid.x;\nmov.u32 %b, %ntid.x;\nmad.lo.s32 %i, %a, %b, %t;\nadd.s32 %a, %i, {on};\n\
                 rem.s32 %a, %a, %n;\nmad.wide.s32 %q, %a, 4, %p;\nmad.wide.s32 %r, %i, 4, %p;\n\
                 ld.global.u32 %x, [%q];\n{meeting}st.global.u32 [%r], %x;\n{meeting}"
            ))
        };
        assert!(counts(&step(1, "")) && counts(&step(31, "")));
        assert!(!counts(&step(1, "bar.warp.sync 0xffffffff;\n")));
        assert!(!counts(&step(0, "")), "its own word");
        assert!(!counts(&step(32, "")), "of another warp");
    }

    #[test]
    fn what_is_a_threads_own_does_not() {
        let by = |place: &str, step: u32| {
            doubling(&format!(
                "{place}ld.global.u32 %x, [%q];\nadd.u32 %x, %x, 1;\nst.global.u32 [%q+{step}], %x;\n"
            ))
        };
        let column = "mad.lo.u32 %b, %w, %n, %t;\nmad.wide.u32 %q, %b, 4, %p;\n";
        let row = "mad.lo.u32 %b, %t, %n, %w;\nmad.wide.u32 %q, %b, 4, %p;\n";
        let short_row = "mad.lo.u32 %b, %t, 8, %w;\nmad.wide.u32 %q, %b, 4, %p;\n";
        assert!(!counts(&by(column, 0)) && !counts(&by(row, 4)) && !counts(&by(short_row, 4)));
        // Where memory says which.
        let found = "ld.global.u32 %b, [%own];\nadd.u32 %b, %b, %w;\nmad.wide.u32 %q, %b, 4, %p;\n";
        assert!(!counts(&by(found, 4)));
        // Elements by row and column, some on in each trip.
        let element = "add.u32 %i, %t, %w;\nrem.u32 %a, %i, %n;\ndiv.u32 %b, %i, %n;\nmad.lo.u32 %b, %b, 100, %a;\nmad.wide.u32 %q, %b, 4, %p;\n";
        assert!(!counts(&by(element, 0)));
        // A word of each warp's.
        let warp = "shr.u32 %b, %t, 5;\nadd.u32 %a, %b, 1;\nmad.wide.u32 %q, %b, 4, %p;\nmad.wide.u32 %r, %a, 4, %p;\n";
        assert!(!counts(
            &(warp.to_owned()
                + "st.global.u32 [%q], %t;\nld.global.u32 %x, [%r];\nst.global.u32 [%other], %x;\n")
        ));
        // One array into another.
        let between = "xor.b32 %b, %t, %w;\nmad.wide.u32 %q, %b, 4, %p;\nld.global.u32 %x, [%q];\n\
                       mad.wide.u32 %q, %t, 4, %other;\nst.global.u32 [%q], %x;\n";
        assert!(!counts(&doubling(between)));
    }
}
