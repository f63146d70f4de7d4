//! Loops that take an element of each grid's length by turns (`for (i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x *
//! blockDim.x)`): all groups of a block go round once before one of them goes round again. So do loops that store a row further in
//! each trip (`y[k * n + i]`).
//!
//! A group that ran such a loop to its end would read a line or two of memory, step over a grid's length or a row, and come back for
//! the lines beside them only when the next group runs: too far for the CPU to foresee, each time in another page. By rounds a block
//! reads what its threads have side by side.
//!
//! The loop is doubled. Where all threads of the block would go round, which a barrier that reduces tells, they do so in a copy
//! whose end is that barrier; once some of them would not, the others go on in the loop as it was, mostly for one trip more. CUDA
//! promises threads no order between barriers, and nobody misses these: threads that have ended do not count at a barrier.

use super::bits::BitSet;
use super::cfg;
use super::dominators::{Dominators, reversed, successors};
use super::loops::{Loop, Loops};
use super::spins;
use super::ssa::{self, Graph, Places, rebuild};
use super::visit::{Definition, definitions, for_each_use};
use crate::ir::*;
use std::collections::HashMap;

/// Instructions of a loop: its copy is compiled too.
const MOST_OF_LOOP: usize = 1000;
/// Instructions of a kernel: longer ones wait for their first code long enough.
const MOST_OF_KERNEL: usize = 20_000;
/// Values that are kept for each thread from round to round.
const MOST_CARRIED: usize = 12;
/// Instructions of a trip that only reads, from which on the CPU does not see the next trip's loads by itself.
const LONG_TRIP: usize = 48;
/// Each takes a walk through the whole kernel.
const MOST_LOOPS: usize = 4;
/// Operations between a loop's step and the grid's size, or an address and what changes it.
const DEPTH: usize = 8;
/// Bytes from trip to trip, half of a page.
const FAR: u64 = 2048;

/// The kernel with its loops over the grid in rounds; `None` where it has none.
pub fn of(kernel: &Function) -> Option<Function> {
    if !takes_turns(kernel) {
        return None;
    }
    let mut body = kernel.clone();
    cfg::lower_switches(&mut body);
    cfg::clean(&mut body);
    skip_ways_round(&mut body);
    cfg::clean(&mut body);
    let found = Found::all(&body);
    for each in &found {
        each.double(&mut body);
    }
    if found.is_empty() {
        return None;
    }
    cfg::clean(&mut body);
    Some(body)
}

/// A loop's way round may be a block that only jumps, behind the branch that ends the loop: the branch itself goes round then.
fn skip_ways_round(body: &mut Function) {
    let graph = successors(body);
    let dominators = Dominators::of_graph(&graph, 0);
    let from = reversed(&graph);
    for (at, from) in from.iter().enumerate() {
        let block = &body.blocks[at];
        let (Term::Jump(round), [before]) = (&block.term, &from[..]) else { continue };
        let goes_round = dominators.is_reachable(at) && dominators.dominates(round.block.index(), at);
        if goes_round && block.insts.is_empty() && block.params.is_empty() {
            let round = round.clone();
            let edges = body.blocks[*before].term.edges_mut();
            edges.into_iter().filter(|edge| edge.block.index() == at).for_each(|edge| *edge = round.clone());
        }
    }
}

/// Whether it asks for the grid's size or stores, and has a loop: without a look at the loops.
fn takes_turns(kernel: &Function) -> bool {
    let may = |inst: &Inst| {
        let is_store = matches!(inst.op, Op::Store { space: Space::Global | Space::Generic, .. });
        is_store || matches!(inst.op, Op::Special(Special::Nctaid(_)))
    };
    let n_insts: usize = kernel.blocks.iter().map(|block| block.insts.len()).sum();
    n_insts <= MOST_OF_KERNEL
        && kernel.blocks.iter().any(|block| block.insts.iter().any(may))
        && super::loops::any(kernel)
}

/// A loop that is entered from one block and left from its last.
struct Found {
    blocks: Vec<usize>,
    header: usize,
    latch: usize,
    /// Whether the loop goes round where the latch's condition holds.
    goes_on: bool,
    /// Where it is entered from.
    from: usize,
    /// The edge of `from` that leads to it.
    entry: usize,
}

impl Found {
    /// Loops within such loops are not among them.
    fn all(body: &Function) -> Vec<Found> {
        let graph = successors(body);
        let dominators = Dominators::of_graph(&graph, 0);
        let Some(loops) = Loops::of_graph(&graph, &dominators) else { return vec![] };
        let from = reversed(&graph);
        let places = definitions(body);
        // Who waits for what another thread does in a later trip must not be waited for at the end of this one.
        let waiting = spins::waiting(body, &graph, &dominators, &loops);
        let waits = |each: &Loop| waiting.iter().any(|&index| each.blocks.contains(&loops.all[index].header));
        let mut all: Vec<Found> = vec![];
        // Outer loops come first.
        for each in &loops.all {
            let is_inner = all.iter().any(|outer| outer.blocks.contains(&each.header));
            let found = Found::of(body, each, &from, &places);
            if let Some(found) = found.filter(|_| !is_inner && !waits(each)) {
                all.push(found);
            }
        }
        all.truncate(MOST_LOOPS);
        all
    }

    fn of(body: &Function, each: &Loop, from: &[Vec<usize>], places: &[Definition]) -> Option<Found> {
        let has = |at: usize| each.blocks.contains(&at);
        let insts = || each.blocks.iter().flat_map(|&at| &body.blocks[at].insts);
        if insts().count() > MOST_OF_LOOP || insts().any(|inst| inst.op.is_barrier()) {
            return None;
        }
        let is_memory = |inst: &Inst| match inst.op {
            Op::Load { space, .. } | Op::Store { space, .. } => {
                matches!(space, Space::Global | Space::Generic)
            }
            _ => false,
        };
        let writes = |inst: &Inst| matches!(inst.op, Op::Store { .. } | Op::Atomic { .. });
        if !insts().any(is_memory) || !insts().any(writes) && insts().count() < LONG_TRIP {
            return None;
        }
        let (back, outside): (Vec<usize>, Vec<usize>) =
            from[each.header].iter().copied().partition(|&at| has(at));
        let (&[latch], &[entered]) = (&back[..], &outside[..]) else { return None };
        // It is left by the latch alone, and nothing ends inside.
        let leaves = |&at: &usize| {
            let term = &body.blocks[at].term;
            matches!(term, Term::Exit | Term::Return(_))
                || term.edges().iter().any(|edge| !has(edge.block.index()))
        };
        if each.blocks.iter().any(|at| *at != latch && leaves(at)) {
            return None;
        }
        let Term::Branch { then, otherwise, .. } = &body.blocks[latch].term else { return None };
        let goes_on = then.block.index() == each.header;
        if goes_on == (otherwise.block.index() == each.header) {
            return None;
        }
        let edges = body.blocks[entered].term.edges();
        let entry = edges.iter().position(|edge| edge.block.index() == each.header)?;
        let back = if goes_on { then } else { otherwise };
        let params = &body.blocks[each.header].params;
        let is_turn =
            params.iter().zip(&back.args).any(|(&param, &next)| is_step_of_grid(body, places, param, next));
        let walk = Walk { body, places, inside: &each.blocks, params, next: &back.args };
        let writes_far = |inst: &Inst| match inst.op {
            Op::Store { space: Space::Global | Space::Generic, .. } => {
                walk.advance(inst.args[0], DEPTH).is_some_and(Advance::is_far)
            }
            _ => false,
        };
        // Short trips are not worth to keep anything for each thread between them but where it is.
        let is_row =
            || insts().any(writes_far) && (insts().count() >= LONG_TRIP || walk.keeps_places_alone());
        // Behind trips that stand alone in front, which an unrolled loop has, what threads keep from round to round is no line any more:
        // each may have made another number of them.
        let begins_alike = || !edges[entry].args.iter().any(|&arg| is_chosen(body, places, arg, DEPTH));
        if params.len() > MOST_CARRIED || !(is_turn || is_row() && begins_alike()) {
            return None;
        }
        let found =
            Found { blocks: each.blocks.clone(), header: each.header, latch, goes_on, from: entered, entry };
        found.guard(body, from)?;
        Some(found)
    }

    /// The branch past the loop whose other side leads to it alone, and which of its edges that is; itself `Some(None)` where
    /// everybody comes to the loop. `None`: what stands between cannot be done by those who do not come.
    #[expect(clippy::option_option)]
    fn guard(&self, body: &Function, from: &[Vec<usize>]) -> Option<Option<(usize, usize)>> {
        let entered = &body.blocks[self.from];
        if entered.term.edges().len() > 1 {
            return matches!(entered.term, Term::Branch { .. }).then_some(Some((self.from, self.entry)));
        }
        let [above] = from[self.from][..] else { return Some(None) };
        let Term::Branch { .. } = body.blocks[above].term else { return Some(None) };
        if !entered.insts.iter().all(|inst| is_for_all(&inst.op)) || !entered.params.is_empty() {
            return None;
        }
        let edges = body.blocks[above].term.edges();
        let nth = edges.iter().position(|edge| edge.block.index() == self.from)?;
        Some(Some((above, nth)))
    }

    /// Doubles the loop.
    fn double(&self, body: &mut Function) {
        let from = body.predecessors();
        let from: Vec<Vec<usize>> =
            from.iter().map(|all| all.iter().map(|id| id.index()).collect()).collect();
        let guard = self.guard(body, &from).flatten();
        let entry_args = body.blocks[self.from].term.edges()[self.entry].args.clone();
        let (meeting, rest, past) = (body.new_block(), body.new_block(), body.new_block());
        let escaping = self.escaping(body);
        // What the loop hands to its next trip is there anyhow.
        let Term::Branch { then, otherwise, .. } = &body.blocks[self.latch].term else { return };
        let handed_on = if self.goes_on { &then.args } else { &otherwise.args }.clone();
        let (known, escaping): (Vec<Value>, Vec<Value>) =
            escaping.into_iter().partition(|value| handed_on.contains(value));

        // Who comes to the loop, and with what: all do what stands in front of it.
        let at = match guard {
            Some((above, _)) if above != self.from => {
                let insts = std::mem::take(&mut body.blocks[self.from].insts);
                body.blocks[above].insts.extend(insts);
                above
            }
            _ => self.from,
        };
        let constant = |body: &mut Function, ty: Ty, bits: u128| {
            let value = body.new_value(ty);
            let pos = Pos::default();
            body.blocks[at].insts.push(Inst { op: Op::Const(bits), args: vec![], results: vec![value], pos });
            value
        };
        let yes = constant(body, Ty::Pred, 1);
        let no = constant(body, Ty::Pred, 0);
        let barrier = constant(body, Ty::B32, 0);
        let unknown: Vec<Value> = escaping.iter().map(|&value| constant(body, body.ty(value), 0)).collect();
        // The edge past the loop for those who never come to it.
        let (comes, never) = match guard {
            Some((above, nth)) => {
                let Term::Branch { cond, then, otherwise } = body.blocks[above].term.clone() else { return };
                let comes = if nth == 0 { cond } else { negated(body, above, cond) };
                (comes, Some(if nth == 0 { otherwise } else { then }))
            }
            None => (yes, None),
        };
        let mut args = entry_args;
        args.extend([comes, yes]);
        args.extend(unknown);
        body.blocks[at].term = Term::Jump(Edge { block: meeting, args });

        let (copies, renamed) = self.copied(body);
        let last = copies[&self.latch].index();
        let Term::Branch { cond, then, otherwise } = body.blocks[last].term.clone() else { return };
        let (mut again, goes_on) =
            if self.goes_on { (then, cond) } else { (otherwise, negated(body, last, cond)) };
        again.block = meeting;
        again.args.extend([goes_on, no]);
        again.args.extend(escaping.iter().map(|value| renamed[value]));
        body.blocks[last].term = Term::Jump(again);

        // Where they meet.
        let header = BlockId(self.header as u32);
        let types: Vec<Ty> = body.blocks[self.header].params.iter().map(|&param| body.ty(param)).collect();
        let carried: Vec<Value> = types.into_iter().map(|ty| body.new_value(ty)).collect();
        let (comes, first) = (body.new_value(Ty::Pred), body.new_value(Ty::Pred));
        let last_values: Vec<Value> = escaping.iter().map(|&value| body.new_value(body.ty(value))).collect();
        let all = body.new_value(Ty::Pred);
        let op = Op::Barrier { kind: BarrierKind::RedAnd, aligned: true };
        let meets = Inst { op, args: vec![barrier, comes], results: vec![all], pos: Pos::default() };
        body.blocks[meeting.index()] = Block {
            params: carried
                .iter()
                .copied()
                .chain([comes, first])
                .chain(last_values.iter().copied())
                .collect(),
            insts: vec![meets],
            term: Term::Branch {
                cond: all,
                then: Edge { block: copies[&self.header], args: carried.clone() },
                otherwise: Edge { block: rest, args: vec![] },
            },
        };
        body.blocks[rest.index()].term = Term::Branch {
            cond: comes,
            then: Edge { block: header, args: carried.clone() },
            otherwise: Edge { block: past, args: vec![] },
        };
        let Term::Branch { then, otherwise, .. } = body.blocks[self.latch].term.clone() else { return };
        let ends = if self.goes_on { otherwise } else { then };
        body.blocks[past.index()].term = match never {
            Some(never) => {
                // Each side of a branch is a block of its own.
                let (to_never, to_ends) = (body.new_block(), body.new_block());
                body.blocks[to_never.index()].term = Term::Jump(never);
                body.blocks[to_ends.index()].term = Term::Jump(ends);
                let to = |block| Edge { block, args: vec![] };
                Term::Branch { cond: first, then: to(to_never), otherwise: to(to_ends) }
            }
            None => Term::Jump(ends),
        };
        // What the loop has made is what the rounds have made, for those who end with them.
        let (graph, mut places) = (Graph::of(body), Places::of(body));
        let of_next_trip =
            |value: &Value| handed_on.iter().position(|it| it == value).map(|nth| carried[nth]);
        let known = known.iter().filter_map(|value| Some((*value, of_next_trip(value)?)));
        for (value, last) in escaping.into_iter().zip(last_values).chain(known.collect::<Vec<_>>()) {
            rebuild(body, &graph, &mut places, value, &[(meeting.index(), last)], &[]);
        }
    }

    /// The loop once more: which block is of which, and the names of values there.
    fn copied(&self, body: &mut Function) -> (HashMap<usize, BlockId>, HashMap<Value, Value>) {
        let first = body.blocks.len();
        let renamed = ssa::copy(body, &self.blocks);
        let copies: HashMap<usize, BlockId> =
            self.blocks.iter().enumerate().map(|(nth, &at)| (at, BlockId((first + nth) as u32))).collect();
        for copy in copies.values() {
            for edge in body.blocks[copy.index()].term.edges_mut() {
                if let Some(to) = copies.get(&edge.block.index()) {
                    edge.block = *to;
                }
            }
        }
        (copies, renamed)
    }

    /// Values of the loop that are used behind it, by its last edge among others.
    fn escaping(&self, body: &Function) -> Vec<Value> {
        let mut used = BitSet::new(body.values.len());
        for (_, block) in body.blocks.iter().enumerate().filter(|(at, _)| !self.blocks.contains(at)) {
            for_each_use(block, |value| {
                used.insert(value.index());
            });
        }
        for edge in body.blocks[self.latch].term.edges() {
            if edge.block.index() != self.header {
                edge.args.iter().for_each(|arg| {
                    used.insert(arg.index());
                });
            }
        }
        let defined = self.blocks.iter().flat_map(|&at| {
            let block = &body.blocks[at];
            block.params.iter().chain(block.insts.iter().flat_map(|inst| &inst.results)).copied()
        });
        defined.filter(|value| used.contains(value.index())).collect()
    }
}

/// How much more a number is in each trip than in the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Advance {
    By(i64),
    /// By what is known when the kernel runs, the same each time.
    ByGiven,
}

impl Advance {
    /// Beyond what the CPU foresees by itself, as a row of a matrix mostly is.
    fn is_far(self) -> bool {
        match self {
            Advance::By(bytes) => bytes.unsigned_abs() >= FAR,
            Advance::ByGiven => true,
        }
    }

    fn plus(self, other: Advance) -> Advance {
        match (self, other) {
            (Advance::By(a), Advance::By(b)) => Advance::By(a.wrapping_add(b)),
            _ => Advance::ByGiven,
        }
    }

    fn times(self, factor: Option<i64>) -> Advance {
        match (self, factor) {
            (Advance::By(0), _) => self,
            (Advance::By(by), Some(factor)) => Advance::By(by.wrapping_mul(factor)),
            _ => Advance::ByGiven,
        }
    }
}

/// A loop whose header has these parameters, which `next` are in the next trip.
struct Walk<'a> {
    body: &'a Function,
    places: &'a [Definition],
    inside: &'a [usize],
    params: &'a [Value],
    next: &'a [Value],
}

impl Walk<'_> {
    /// `None`: it is not the same in all trips.
    fn advance(&self, value: Value, depth: usize) -> Option<Advance> {
        if self.stays(value) {
            return Some(Advance::By(0));
        }
        if let Some(nth) = self.params.iter().position(|&param| param == value) {
            return self.step(value, self.next[nth], DEPTH);
        }
        let Definition::Inst(at, nth, _) = self.places[value.index()] else { return None };
        let inst = &self.body.blocks[at].insts[nth];
        let depth = depth.checked_sub(1)?;
        let of = |nth: usize| self.advance(inst.args[nth], depth);
        match inst.op {
            Op::Int(IntBin::Add, _) => Some(of(0)?.plus(of(1)?)),
            Op::Int(IntBin::Sub, _) => Some(of(0)?.plus(of(1)?.times(Some(-1)))),
            Op::Int(IntBin::Mul, _) | Op::MulWide(_) => match (of(0)?, of(1)?) {
                (by, Advance::By(0)) => Some(by.times(self.constant(inst.args[1]))),
                (Advance::By(0), by) => Some(by.times(self.constant(inst.args[0]))),
                _ => None,
            },
            Op::Int(IntBin::Shl, _) if of(1)? == Advance::By(0) => {
                let factor = self.constant(inst.args[1]).map(|bits| 1i64.wrapping_shl(bits as u32));
                Some(of(0)?.times(factor))
            }
            Op::Sext | Op::Zext | Op::Trunc | Op::Cvta { .. } => of(0),
            Op::Const(_) => Some(Advance::By(0)),
            _ => None,
        }
    }

    /// Whether all that is handed on counts, or is an address.
    fn keeps_places_alone(&self) -> bool {
        self.params.iter().zip(self.next).all(|(&param, &next)| self.step(param, next, DEPTH).is_some())
    }

    /// What `next` is more than `param`, by sums of it and what stays.
    fn step(&self, param: Value, next: Value, depth: usize) -> Option<Advance> {
        let next = converted_from(self.body, self.places, next);
        if next == param {
            return Some(Advance::By(0));
        }
        let Definition::Inst(at, nth, _) = self.places[next.index()] else { return None };
        let inst = &self.body.blocks[at].insts[nth];
        let depth = depth.checked_sub(1)?;
        let (Op::Int(IntBin::Add, _), [a, b]) = (&inst.op, &inst.args[..]) else { return None };
        let sum = |of: Value, by: Value| Some(self.step(param, of, depth)?.plus(self.amount(by)?));
        sum(*a, *b).or_else(|| sum(*b, *a))
    }

    fn amount(&self, by: Value) -> Option<Advance> {
        match self.constant(by) {
            Some(by) => Some(Advance::By(by)),
            None => self.stays(by).then_some(Advance::ByGiven),
        }
    }

    fn stays(&self, value: Value) -> bool {
        self.places[value.index()].block().is_none_or(|at| !self.inside.contains(&at))
    }

    fn constant(&self, value: Value) -> Option<i64> {
        let Definition::Inst(at, nth, _) = self.places[value.index()] else { return None };
        match self.body.blocks[at].insts[nth].op {
            Op::Const(bits) if self.body.ty(value).bits() == 32 => Some(i64::from(bits as u32 as i32)),
            Op::Const(bits) => Some(bits as i64),
            _ => None,
        }
    }
}

/// What a thread may do that does not come to the loop.
fn is_for_all(op: &Op) -> bool {
    op.is_pure() || matches!(op, Op::Load { space: Space::Param, .. })
}

/// The other truth, at the end of a block.
fn negated(body: &mut Function, at: usize, cond: Value) -> Value {
    let value = body.new_value(Ty::Pred);
    body.blocks[at].insts.push(Inst {
        op: Op::Not,
        args: vec![cond],
        results: vec![value],
        pos: Pos::default(),
    });
    value
}

/// Whether `next` is `param` and something that follows from the grid's size.
fn is_step_of_grid(body: &Function, places: &[Definition], param: Value, next: Value) -> bool {
    let Definition::Inst(at, nth, _) = places[next.index()] else { return false };
    let inst = &body.blocks[at].insts[nth];
    if !matches!(inst.op, Op::Int(IntBin::Add, _)) {
        return false;
    }
    let [a, b] = inst.args[..] else { return false };
    let is_param = |value| converted_from(body, places, value) == param;
    (is_param(a) && is_of_grid(body, places, b, DEPTH)) || (is_param(b) && is_of_grid(body, places, a, DEPTH))
}

/// What the value is another width of.
fn converted_from(body: &Function, places: &[Definition], mut value: Value) -> Value {
    for _ in 0..DEPTH {
        let Definition::Inst(at, nth, _) = places[value.index()] else { break };
        let inst = &body.blocks[at].insts[nth];
        if !matches!(inst.op, Op::Sext | Op::Zext | Op::Trunc) {
            break;
        }
        value = inst.args[0];
    }
    value
}

/// Whether a number is one of several, depending on the way to here.
fn is_chosen(body: &Function, places: &[Definition], value: Value, depth: usize) -> bool {
    match places[value.index()] {
        Definition::Inst(at, nth, _) => {
            let inst = &body.blocks[at].insts[nth];
            let is_number = matches!(body.ty(value), Ty::B32 | Ty::B64);
            let chosen = |&arg: &Value| is_chosen(body, places, arg, depth - 1);
            depth > 0 && is_number && inst.op.is_pure() && inst.args.iter().any(chosen)
        }
        Definition::Param(at, _) => at != 0 && matches!(body.ty(value), Ty::B32 | Ty::B64),
        Definition::None => false,
    }
}

fn is_of_grid(body: &Function, places: &[Definition], value: Value, depth: usize) -> bool {
    let Definition::Inst(at, nth, _) = places[value.index()] else { return false };
    let inst = &body.blocks[at].insts[nth];
    matches!(inst.op, Op::Special(Special::Nctaid(_)))
        || depth > 0
            && inst.op.is_pure()
            && inst.args.iter().any(|&arg| is_of_grid(body, places, arg, depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::{function, text};
    use crate::pass::value_ranges::Threads;

    const THREADS: Threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };

    /// A loop from the thread's number on by `step`, whose trips do `body`; `behind` comes behind it.
    fn over_grid(step: &str, body: &str, behind: &str) -> Function {
        function(&format!(
            "entry: t = tid; n = const.b32 100000; a = const.b64 4096; p = lt t n; branch p some done
             some: g = nctaid; w = const.b32 256; s = mul g w; c = const.b32 32; jump head(t)
             head(i:b32): v = load a; {body} j = add i {step}; q = lt j n; branch q head(j) done
             done: {behind} exit"
        ))
    }

    fn meetings(body: &Function) -> usize {
        let reduces = |inst: &&Inst| matches!(inst.op, Op::Barrier { kind: BarrierKind::RedAnd, .. });
        body.blocks.iter().flat_map(|block| &block.insts).filter(reduces).count()
    }

    #[test]
    fn a_loop_over_the_grid_goes_in_rounds() {
        let body = of(&over_grid("s", "store a v;", "")).unwrap();
        assert_eq!(meetings(&body), 1, "{}", text(&body));
        assert_eq!(plan(&body, THREADS, 0, Among::Block).unwrap().regions.len(), 2);
        // The copy, and the loop as it was.
        let stores = body.blocks.iter().flat_map(|block| &block.insts);
        assert_eq!(stores.filter(|inst| matches!(inst.op, Op::Store { .. })).count(), 2);
    }

    #[test]
    fn a_barrier_behind_the_loop_is_one_for_all() {
        let body = of(&over_grid("s", "store a v;", "z = const.b32 0; barrier z;")).unwrap();
        assert_eq!(plan(&body, THREADS, 0, Among::Block).unwrap().regions.len(), 3);
    }

    #[test]
    fn other_loops_stay() {
        assert_eq!(of(&over_grid("c", "store a v;", "")), None, "a step of the program's");
        assert_eq!(of(&over_grid("s", "", "")), None, "trips so short that the CPU sees several");
        assert_eq!(of(&over_grid("s", "store a v; barrier c;", "")), None, "they meet by themselves");
        let early = "store a v; r = lt v c; branch r done next\n next:";
        assert_eq!(of(&over_grid("s", early, "")), None, "two ways out");
        let flag = "store a v; jump wait\n wait: f = vload a; r = lt f c; branch r wait next\n next:";
        assert_eq!(of(&over_grid("s", flag, "")), None, "another thread may be a trip ahead");
        let own = "store a v; jump wait\n wait: f = add t c; r = lt f c; branch r wait next\n next:";
        assert!(of(&over_grid("s", own, "")).is_some(), "an inner loop of its own");
    }

    #[test]
    fn long_trips_that_only_read_go_in_rounds_too() {
        assert!(of(&over_grid("s", &"v = add v i; ".repeat(LONG_TRIP), "")).is_some());
    }

    /// A loop over rows of `row` words, a column for each thread, that hands on a sum of `more`.
    fn over_rows(row: &str, more: &str) -> Option<Function> {
        of(&function(&format!(
            "entry: t = tid; r = ctaid; z = const.b32 0; o = const.b32 1; n = const.b32 100; c = const.b32 {row}; jump head(z,z)
             head(k:b32, sum:b32): m = mul k {}; at = add m t; a = sext at; store a sum; next = add sum {more}; j = add k o; q = lt j n; branch q head(j,next) done
             done: exit",
            if row == "0" { "r" } else { "c" }
        )))
    }

    #[test]
    fn loops_that_store_by_rows_go_in_rounds_where_rows_are_long() {
        assert!(over_rows("0", "o").is_some(), "a length that is known as it runs");
        assert!(over_rows("2048", "o").is_some());
        assert!(over_rows("2047", "o").is_none());
        assert!(over_rows("0", "at").is_none(), "a sum of each thread's own");
    }
}
