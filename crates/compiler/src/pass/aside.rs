//! What lanes do that go past a loop that waits, they do before the others come to it.
//!
//! ```text
//! if (mine) {                              if (mine) {
//!   do {} while (it is not there);           do {} while (it is not there);
//!   work;                                    work; tell others;
//! }                                   →    } else tell others;
//! tell others;
//! rest;                                    rest;
//! ```
//!
//! For a thread both are the same. Where lanes run in step, those that do not go into the loop stand still until the others have left
//! it: on the left they tell nobody before, as where one elected lane loads for its block while it waits for room, and all lanes of
//! its warp then arrive at a barrier (CUTLASS). On the right their side comes first. What is computed on the way to the telling
//! is computed on both sides, and once more where they meet, so that it is still the same in all lanes there.

use super::bits::BitSet;
use super::cfg;
use super::dominators::{Dominators, block, post_dominators, successors};
use super::intake::{mark, meets};
use super::loops::Loops;
use super::spins;
use super::ssa::copy;
use super::visit::{for_each_use, term_values_mut};
use crate::ir::*;

/// More instructions than this stay behind where the sides meet.
const MOST: usize = 400;

/// The part between two barriers with such branches changed, if there are any.
pub fn run(region: &Function) -> Option<Function> {
    let mut function = region.clone();
    cfg::canonical_loops(&mut function)?;
    let (mut done, mut changed) = (vec![], false);
    loop {
        let view = View::of(&function)?;
        let waiting = spins::waiting(&function, &view.graph, &view.dominators, &view.loops);
        let headers: Vec<usize> = waiting.iter().map(|&index| view.loops.all[index].header).collect();
        let mut next =
            waiting.into_iter().filter_map(|index| Some((index, mark(&function, &view.loops, index)?)));
        let Some((index, mark)) = next.find(|(_, mark)| !done.contains(mark)) else { break };
        done.push(mark);
        if let Some(new) = view.branches(index).find_map(|it| parted(&function, &view, &headers, it)) {
            function = new;
            cfg::clean(&mut function);
            cfg::canonical_loops(&mut function)?;
            changed = true;
        }
    }
    changed.then_some(function)
}

struct View {
    graph: Vec<Vec<usize>>,
    dominators: Dominators,
    meeting: Dominators,
    loops: Loops,
}

impl View {
    fn of(function: &Function) -> Option<View> {
        let graph = successors(function);
        let dominators = Dominators::of_graph(&graph, 0);
        let loops = Loops::of_graph(&graph, &dominators)?;
        Some(View { meeting: post_dominators(&graph), graph, dominators, loops })
    }

    /// Branches past loop `index`, or past one of the loops around it, the nearest first: block, where its sides meet, and that loop's
    /// header.
    fn branches(&self, index: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let around = std::iter::successors(Some(index), |&inner| self.loops.all[inner].parent);
        around.flat_map(|index| self.branches_past(index))
    }

    /// Of those in the same trip of the loops around.
    fn branches_past(&self, index: usize) -> impl Iterator<Item = (usize, usize, usize)> {
        let each = &self.loops.all[index];
        let before = std::iter::successors(Some(each.header), |&at| self.dominators.immediate(at)).skip(1);
        before
            .take_while(|&at| each.parent.is_none_or(|around| self.loops.contains(around, at)))
            .filter(|&at| self.graph[at].len() > 1 && self.loops.of[at] == each.parent)
            .filter_map(|at| Some((at, self.meeting.immediate(at)?, each.header)))
            .filter(move |&(at, join, _)| {
                join < self.graph.len()
                    && self.dominators.dominates(at, join)
                    && self.loops.of[join] == each.parent
            })
    }

    /// Blocks that `from` leads to, itself among them, up to those that `ends` holds for.
    fn reached(&self, from: usize, ends: impl Fn(usize) -> bool) -> BitSet {
        let mut found = BitSet::new(self.graph.len());
        let mut work = vec![from];
        while let Some(at) = work.pop() {
            if !ends(at) && found.insert(at) {
                work.extend(&self.graph[at]);
            }
        }
        found
    }
}

/// The block's instructions from `first` on, and its end, in a block of their own.
fn split(function: &mut Function, at: usize, first: usize) -> usize {
    let rest = function.new_block();
    let of = &mut function.blocks[at];
    let insts = of.insts.split_off(first);
    let term = std::mem::replace(&mut of.term, Term::Jump(Edge { block: rest, args: vec![] }));
    function.blocks[rest.index()] = Block { params: vec![], insts, term };
    rest.index()
}

fn acts(block: &Block) -> bool {
    block.insts.iter().any(|inst| spins::is_seen(&inst.op))
}

/// Whether it is nothing but what its arguments are made into, so that it can be done again.
fn is_known(op: &Op) -> bool {
    op.is_pure() || matches!(op, Op::Load { space: Space::Param | Space::Const, .. })
}

/// The function in which threads that do not come from the loop of `header` to where the sides of branch `branch` meet do what
/// others see before they come there. `None`: they do nothing, or too much, or wait there too in loops of these headers.
fn parted(
    function: &Function,
    view: &View,
    waiting: &[usize],
    (branch, join, header): (usize, usize, usize),
) -> Option<Function> {
    let from_loop = view.reached(header, |at| at == join);
    let sides: Vec<(usize, usize)> = (0..view.graph.len())
        .filter(|&from| view.dominators.dominates(branch, from) && !from_loop.contains(from))
        .flat_map(|from| view.graph[from].iter().enumerate().map(move |(nth, &to)| (from, nth, to)))
        .filter(|&(_, _, to)| to == join)
        .map(|(from, nth, _)| (from, nth))
        .collect();
    let comes_back = |from: usize| view.dominators.dominates(join, from);
    if sides.is_empty() || sides.iter().any(|&(from, _)| comes_back(from)) {
        return None;
    }
    let (mut function, Acting { known, acting, exit }) = Acting::of(function, view, join)?;
    let first = function.blocks.len();
    let all: Vec<usize> = known.iter().chain(&acting).copied().collect();
    let insts: usize = all.iter().map(|&at| function.blocks[at].insts.len()).sum();
    if insts > MOST || waiting.iter().any(|header| all.contains(header)) {
        return None;
    }
    // What is used behind it, but for what it hands on at its end, is computed there once more.
    let names = copy(&mut function, &all);
    let behind = function.blocks.len();
    let again = copy(&mut function, &known);
    let params = function.blocks[join].params.clone();
    let place =
        |of: &[usize], start: usize, at: usize| of.iter().position(|&it| it == at).map(|nth| start + nth);
    for at in 0..behind {
        let is_original = all.contains(&at);
        if at < first && !is_original {
            let rename = |value: &mut Value| *value = again.get(value).copied().unwrap_or(*value);
            function.blocks[at].insts.iter_mut().flat_map(|inst| &mut inst.args).for_each(rename);
            term_values_mut(&mut function.blocks[at].term, rename);
            continue;
        }
        let own: Vec<Value> =
            if is_original { params.clone() } else { params.iter().map(|param| names[param]).collect() };
        for edge in function.blocks[at].term.edges_mut() {
            let to = edge.block.index();
            if Some(to) == exit {
                let args = std::mem::take(&mut edge.args);
                *edge = Edge { block: block(behind), args: own.iter().copied().chain(args).collect() };
            } else if let Some(to) = place(&all, first, to).filter(|_| !is_original) {
                edge.block = block(to);
            }
        }
    }
    if let Some(exit) = exit {
        let handed: Vec<Ty> = function.blocks[exit].params.iter().map(|&param| function.ty(param)).collect();
        let handed: Vec<Value> = handed.into_iter().map(|ty| function.new_value(ty)).collect();
        function.blocks[behind].params.extend(&handed);
        for at in behind..function.blocks.len() {
            for edge in function.blocks[at].term.edges_mut() {
                *edge = match place(&known, behind, edge.block.index()) {
                    Some(to) => Edge { block: block(to), args: std::mem::take(&mut edge.args) },
                    None => Edge { block: block(exit), args: handed.clone() },
                };
            }
        }
    } else {
        function.blocks.truncate(behind);
    }
    for (from, nth) in sides {
        lead(&mut function, from, nth, first);
    }
    Some(function)
}

/// Has an edge lead to another block, which of two is to come first.
fn lead(function: &mut Function, from: usize, nth: usize, to: usize) {
    function.blocks[from].term.edges_mut()[nth].block = block(to);
    let Term::Branch { cond, otherwise, .. } = &function.blocks[from].term else { return };
    if nth == 0 || otherwise.block != block(to) {
        return;
    }
    let cond = *cond;
    let not = function.new_value(Ty::Pred);
    let inst = Inst { op: Op::Not, args: vec![cond], results: vec![not], pos: Pos::default() };
    let of = &mut function.blocks[from];
    of.insts.push(inst);
    if let Term::Branch { cond, then, otherwise } = &mut of.term {
        *cond = not;
        std::mem::swap(then, otherwise);
    }
}

/// What threads do from some block on until they meet.
struct Acting {
    /// Blocks up to the first thing that others see, the first one first: they only compute.
    known: Vec<usize>,
    /// Blocks up to the last such thing.
    acting: Vec<usize>,
    /// Where they all lead to; `None`: threads end there.
    exit: Option<usize>,
}

impl Acting {
    /// Of the function with its blocks cut where it begins and ends.
    fn of(function: &Function, view: &View, join: usize) -> Option<(Function, Acting)> {
        if let Some(to_the_end) = Acting::to_the_end(function, view, join) {
            return Some((function.clone(), to_the_end));
        }
        let mut acts_at = Acting::until_they_meet(function, view, join);
        if acts_at.is_empty() {
            return None;
        }
        let mut whole = function.clone();
        let function = &mut whole;
        for &at in &acts_at {
            let insts = &function.blocks[at].insts;
            let first_meeting = insts.iter().position(|inst| meets(&inst.op));
            if let Some(first) = first_meeting {
                split(function, at, first);
            }
            let last = function.blocks[at].insts.iter().rposition(|inst| spins::is_seen(&inst.op))?;
            split(function, at, last + 1);
        }
        let view = View::of(function)?;
        let mut start = *acts_at.first()?;
        let is_outside = |view: &View, at: usize| view.loops.of[at] == view.loops.of[join];
        let is_start = |at: usize| {
            is_outside(&view, at)
                && view.meeting.dominates(at, join)
                && acts_at.iter().all(|&it| view.dominators.dominates(at, it))
        };
        while !is_start(start) {
            start = view.dominators.immediate(start)?;
        }
        let of = &function.blocks[start];
        let before = of.insts.iter().position(|inst| spins::is_seen(&inst.op)).unwrap_or(of.insts.len());
        let begin = split(function, start, before);
        acts_at.iter_mut().filter(|at| **at == start).for_each(|at| *at = begin);

        let view = View::of(function)?;
        let mut exit = view.meeting.immediate(begin)?;
        let stops = |at: usize| function.blocks[at].insts.iter().any(|inst| meets(&inst.op));
        let acting = loop {
            let acting = view.reached(begin, |at| at == exit);
            let is_all = || acts_at.iter().all(|&at| acting.contains(at));
            if exit == view.graph.len() {
                return None;
            }
            if is_outside(&view, exit) && is_all() {
                break acting;
            }
            exit = view.meeting.immediate(exit)?;
        };
        let known = view.reached(join, |at| at == begin);
        let stays = |at: usize| view.dominators.dominates(join, at) && !stops(at);
        let leads_on = |at: usize| view.graph[at].iter().all(|&to| to == begin || known.contains(to));
        let is_plain = |at: usize| {
            let of = &function.blocks[at];
            let is_way =
                !view.graph[at].is_empty() && leads_on(at) && view.loops.of[at] == view.loops.of[join];
            is_way && of.insts.iter().all(|inst| is_known(&inst.op))
        };
        let fits = known.iter().all(|at| stays(at) && is_plain(at) && !acting.contains(at))
            && acting.iter().all(stays)
            && !known.contains(exit)
            && !Acting::is_used_behind(function, &acting);
        // The first block is where the others come from.
        let known = std::iter::once(join).chain(known.iter().filter(|&at| at != join)).collect();
        fits.then(|| (whole, Acting { known, acting: acting.iter().collect(), exit: Some(exit) }))
    }

    /// All that threads do from `join` on, if they neither meet nor come there again.
    fn to_the_end(function: &Function, view: &View, join: usize) -> Option<Acting> {
        let all = view.reached(join, |_| false);
        let is_free = |at: usize| {
            let goes_round = at != join && view.dominators.dominates(at, join);
            !goes_round && !function.blocks[at].insts.iter().any(|inst| meets(&inst.op))
        };
        let is_it = all.iter().all(is_free) && all.iter().any(|at| acts(&function.blocks[at]));
        let others = all.iter().filter(|&at| at != join).collect();
        is_it.then_some(Acting { known: vec![join], acting: others, exit: None })
    }

    /// Blocks from `join` on, in which threads do what others see before they have to meet, or go round.
    fn until_they_meet(function: &Function, view: &View, join: usize) -> Vec<usize> {
        let (mut seen, mut found, mut work) = (BitSet::new(view.graph.len()), vec![], vec![join]);
        while let Some(at) = work.pop() {
            if !view.dominators.dominates(join, at) || !seen.insert(at) {
                continue;
            }
            let insts = &function.blocks[at].insts;
            let first = insts.iter().position(|inst| meets(&inst.op));
            if insts[..first.unwrap_or(insts.len())].iter().any(|inst| spins::is_seen(&inst.op)) {
                found.push(at);
            }
            if first.is_none() {
                work.extend(&view.graph[at]);
            }
        }
        found
    }

    /// Whether other blocks name a value that is made in one of these.
    fn is_used_behind(function: &Function, blocks: &BitSet) -> bool {
        let mut made = BitSet::new(function.values.len());
        for at in blocks.iter() {
            let of = &function.blocks[at];
            of.params.iter().chain(of.insts.iter().flat_map(|inst| &inst.results)).for_each(|value| {
                made.insert(value.index());
            });
        }
        let mut is_used = false;
        for (_, block) in function.blocks.iter().enumerate().filter(|(at, _)| !blocks.contains(*at)) {
            for_each_use(block, |value| is_used |= made.contains(value.index()));
        }
        is_used
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::{function, regions_of_warps};

    /// Whether warps may run it in step, with what is done aside changed.
    fn verdict(source: &str) -> Result<usize, String> {
        regions_of_warps(source, run)
    }

    const START: &str = "a = const.b64 0; b = const.b64 64; z = const.b32 0; o = const.b32 1; m = const.b32 4294967295; t = tid; c = ctaid;";

    /// Thread 0 waits in each trip, its warp tells others `before` and `after` what it does then, and goes on by what it has counted.
    fn turns(tell: &str, last: &str) -> String {
        format!(
            "entry: {START} q = eq t z; jump trip(z)\n trip(i:b32): v = ballot q m; branch q head join(z)\n head: w = vload a; p = lt z w; branch p leave head\n leave: jump join(o)\n join(f:b32): j = add i o; r = lt c j; branch r tell on\n tell: {tell} jump on\n on: {last} g = lt j c; branch g trip(j) done\n done: barrier z; exit"
        )
    }

    #[test]
    fn lanes_that_go_past_tell_others_first() {
        for source in [turns("vstore b j;", ""), turns("vstore b f; store b j;", ""), turns("", "store b j;")]
        {
            assert_eq!(verdict(&source), Ok(2), "{source}");
        }
    }

    #[test]
    fn what_is_told_may_be_the_last_they_do() {
        let source = format!(
            "entry: {START} q = eq t z; r = lt c o; branch r wait meet\n wait: branch q head over\n head: w = vload a; p = lt z w; branch p leave head\n leave: jump over\n over: jump meet\n meet: store b t; exit"
        );
        assert_eq!(verdict(&source), Ok(1));
    }

    #[test]
    fn what_others_have_to_be_told_of_the_loop_stays() {
        // What is read after the loop cannot be read before it once more.
        let source = turns("x = load b; vstore b x;", "").replace("r = lt c j;", "y = load b; r = lt y j;");
        assert!(run(&function(&source)).is_none() && verdict(&source).is_err());
        // They come to the loop by either side.
        let source = format!(
            "entry: {START} q = eq t z; branch q x y\n x: store b t; jump both(z)\n y: jump both(o)\n both(k:b32): jump head\n head: v = vload a; p = lt v k; branch p head leave\n leave: store b k; exit"
        );
        assert!(run(&function(&source)).is_none());
        // What is told is used behind.
        let source = turns("", "k = cas b z o; vstore b k;").replace("g = lt j c;", "g = lt k c;");
        assert!(run(&function(&source)).is_none() && verdict(&source).is_err());
    }
}
