//! Loops with a barrier whose number of trips follows from the block's size, as those of a sum by halves
//! (`for (half = blockDim.x / 2; half > 0; half /= 2)`), become their trips, one behind the other.
//!
//! Each trip is then a region of its own, of which it is known at compile time who has something to do in it.

use super::bits::BitSet;
use super::dominators::{Dominators, reversed, successors};
use super::evaluate::evaluate_known;
use super::loops::{Loop, Loops};
use super::ssa::{self, Graph, Places, rebuild};
use super::value_ranges::{Threads, ValueRanges};
use super::visit::for_each_use;
use crate::ir::*;
use std::collections::HashMap;

/// A block of 1024 is halved ten times.
const MOST_TRIPS: usize = 12;
/// Instructions of all trips of a loop.
const MOST_OF_LOOP: usize = 400;
/// Each takes a look at the whole kernel.
const MOST_LOOPS: usize = 8;

/// Whether a loop was unrolled.
pub fn run(function: &mut Function, threads: Threads) -> bool {
    let has_barrier = |block: &Block| block.insts.iter().any(|inst| inst.op.is_barrier());
    if !function.blocks.iter().any(has_barrier) || !super::loops::any(function) {
        return false;
    }
    let graph = successors(function);
    let dominators = Dominators::of_graph(&graph, 0);
    let Some(loops) = Loops::of_graph(&graph, &dominators) else { return false };
    let mut is_inner = vec![true; loops.all.len()];
    loops.all.iter().filter_map(|each| each.parent).for_each(|parent| is_inner[parent] = false);
    let inner = loops.all.iter().zip(is_inner).filter(|(_, is_inner)| *is_inner).map(|(each, _)| each);
    let size = |each: &Loop| each.blocks.iter().map(|&at| function.blocks[at].insts.len()).sum::<usize>();
    let small: Vec<(&Loop, usize)> = inner
        .filter(|each| each.blocks.iter().any(|&at| has_barrier(&function.blocks[at])))
        .map(|each| (each, size(each)))
        .filter(|(_, size)| 2 * size <= MOST_OF_LOOP)
        .collect();
    if small.is_empty() {
        return false;
    }
    let ranges = ValueRanges::of(function, threads);
    let from = reversed(&graph);
    let decided: Vec<(&Loop, Vec<Trip>)> = small
        .into_iter()
        .filter_map(|(each, size)| {
            let order = in_order(each, &dominators);
            let most = MOST_TRIPS.min(MOST_OF_LOOP / size.max(1));
            let trips = trips(function, each, &order, &ranges, &from, most)?;
            Some((each, trips))
        })
        .take(MOST_LOOPS)
        .collect();
    for (each, trips) in &decided {
        unroll(function, each, trips);
    }
    !decided.is_empty()
}

/// The loop's blocks, each behind those that lead to it in the same trip.
fn in_order(each: &Loop, dominators: &Dominators) -> Vec<usize> {
    let mut order = each.blocks.clone();
    order.sort_unstable_by_key(|&at| dominators.position(at));
    order
}

/// The sides that all threads take in one trip, by block: whether the branch's condition holds.
type Trip = HashMap<usize, bool>;

/// `from`: where control comes from to each block. `None`: whether a trip is the last one is not known, or there are more than
/// `most`.
fn trips(
    function: &Function,
    each: &Loop,
    order: &[usize],
    ranges: &ValueRanges,
    from: &[Vec<usize>],
    most: usize,
) -> Option<Vec<Trip>> {
    let mut arriving: Option<Vec<Option<u128>>> = None;
    for &from in from[each.header].iter().filter(|from| !each.blocks.contains(from)) {
        for edge in function.blocks[from].term.edges() {
            if edge.block.index() == each.header {
                meet(&mut arriving, edge.args.iter().map(|&arg| ranges.constant(arg)).collect());
            }
        }
    }
    let mut trips = vec![];
    while trips.len() < most {
        let mut trip = Trip::new();
        let mut numbers: HashMap<Value, u128> = HashMap::new();
        let mut at_start: HashMap<usize, Option<Vec<Option<u128>>>> = HashMap::new();
        at_start.insert(each.header, arriving.take());
        let mut may_end = false;
        for &at in order {
            let Some(Some(params)) = at_start.remove(&at) else { continue };
            let block = &function.blocks[at];
            let given = block.params.iter().zip(params);
            numbers.extend(given.filter_map(|(&param, number)| Some((param, number?))));
            for inst in &block.insts {
                for (nth, &result) in inst.results.iter().enumerate() {
                    let of = |arg: usize| number(&numbers, ranges, inst.args[arg]);
                    let from = inst.args.first().map_or(0, |&arg| function.ty(arg).bits());
                    let bits = function.ty(result).bits();
                    if let Some(made) = evaluate_known(&inst.op, nth, inst.args.len(), of, from, bits) {
                        numbers.insert(result, made);
                    }
                }
            }
            may_end |= matches!(block.term, Term::Exit | Term::Return(_));
            let edges = block.term.edges();
            let taken = match &block.term {
                Term::Branch { cond, then, otherwise } => match number(&numbers, ranges, *cond) {
                    Some(holds) => {
                        trip.insert(at, holds & 1 != 0);
                        vec![if holds & 1 != 0 { then } else { otherwise }]
                    }
                    None => edges,
                },
                _ => edges,
            };
            for edge in taken {
                let args = edge.args.iter().map(|&arg| number(&numbers, ranges, arg)).collect();
                let to = edge.block.index();
                if to == each.header {
                    meet(&mut arriving, args);
                } else if each.blocks.contains(&to) {
                    meet(at_start.entry(to).or_default(), args);
                } else {
                    may_end = true;
                }
            }
        }
        let may_go_on = arriving.is_some();
        trips.push(trip);
        match (may_go_on, may_end) {
            // Somebody may go round and somebody may not.
            (true, true) => return None,
            (false, _) => return (trips.len() > 1).then_some(trips),
            (true, false) => {}
        }
    }
    None
}

fn number(numbers: &HashMap<Value, u128>, ranges: &ValueRanges, value: Value) -> Option<u128> {
    numbers.get(&value).copied().or_else(|| ranges.constant(value))
}

/// Keeps of what is known at a place what holds for those who come with `args` too.
fn meet(place: &mut Option<Vec<Option<u128>>>, args: Vec<Option<u128>>) {
    match place {
        Some(known) => {
            for (known, arg) in known.iter_mut().zip(args) {
                *known = known.filter(|_| *known == arg);
            }
        }
        None => *place = Some(args),
    }
}

fn unroll(function: &mut Function, each: &Loop, trips: &[Trip]) {
    let mut defined = vec![];
    for &at in &each.blocks {
        let block = &function.blocks[at];
        let results = block.insts.iter().flat_map(|inst| &inst.results);
        defined.extend(block.params.iter().chain(results).map(|&value| (at, value)));
    }
    let mut escaping = BitSet::new(function.values.len());
    for (_, block) in function.blocks.iter().enumerate().filter(|(at, _)| !each.blocks.contains(at)) {
        for_each_use(block, |value| {
            escaping.insert(value.index());
        });
    }
    let first_copy = function.blocks.len();
    let size = each.blocks.len();
    let place = |at: usize| each.blocks.iter().position(|&block| block == at);
    let copy_of = |trip: usize, place: usize| match trip {
        0 => each.blocks[place],
        trip => first_copy + (trip - 1) * size + place,
    };
    let header = place(each.header).unwrap_or_default();
    let mut others: HashMap<Value, Vec<(usize, Value)>> = HashMap::new();
    for trip in 1..trips.len() {
        let renamed = ssa::copy(function, &each.blocks);
        for &(at, value) in defined.iter().filter(|(_, value)| escaping.contains(value.index())) {
            let copy = copy_of(trip, place(at).unwrap_or_default());
            others.entry(value).or_default().push((copy, renamed[&value]));
        }
    }
    for (trip, decided) in trips.iter().enumerate() {
        for (nth, at) in each.blocks.iter().enumerate() {
            let term = &mut function.blocks[copy_of(trip, nth)].term;
            if let (Some(holds), Term::Branch { then, otherwise, .. }) = (decided.get(at), &*term) {
                *term = Term::Jump(if *holds { then } else { otherwise }.clone());
            }
            for edge in term.edges_mut() {
                if let Some(to) = place(edge.block.index()) {
                    let next = if to == header { trip + 1 } else { trip };
                    // Nobody goes round from the last trip.
                    edge.block = BlockId(copy_of(next.min(trips.len() - 1), to) as u32);
                }
            }
        }
    }
    let graph = Graph::of(function);
    let mut places = Places::of(function);
    for (_, value) in defined {
        if let Some(others) = others.get(&value) {
            rebuild(function, &graph, &mut places, value, others, &[]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::{function, text};
    use crate::pass::{cfg, fold};

    const THREADS: Threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };

    fn unrolled(source: &str) -> Function {
        let mut f = function(source);
        if run(&mut f, THREADS) {
            cfg::clean(&mut f);
            fold::run(&mut f, THREADS);
        }
        f
    }

    fn barriers(f: &Function) -> usize {
        f.blocks.iter().flat_map(|block| &block.insts).filter(|inst| inst.op.is_barrier()).count()
    }

    /// A loop that halves a number as long as it is above `last`; `behind` stands behind it.
    fn halving(from: u32, last: u32, behind: &str) -> String {
        format!(
            "entry: t = tid; z = const.b32 0; one = const.b32 1; last = const.b32 {last}; n = const.b32 {from}; jump head(n)
             head(h:b32): p = lt t h; branch p some next
             some: store t h; jump next
             next: barrier z; k = shr h one; q = lt last h; branch q head(k) done
             done: {behind} exit"
        )
    }

    #[test]
    fn a_tree_of_barriers_becomes_its_steps() {
        let f = unrolled(&halving(128, 1, ""));
        // 128, 64, 32, 16, 8, 4, 2, 1.
        assert_eq!(barriers(&f), 8, "{}", text(&f));
        assert!(!crate::pass::loops::any(&f), "{}", text(&f));
        let stored = f.blocks.iter().flat_map(|block| &block.insts).filter(|inst| !inst.op.is_pure());
        assert_eq!(stored.filter(|inst| matches!(inst.op, Op::Store { .. })).count(), 8);
    }

    #[test]
    fn what_is_used_behind_the_loop_is_the_last_trips() {
        let f = unrolled(&halving(64, 16, "store t k;"));
        assert_eq!(barriers(&f), 3, "{}", text(&f));
        let ranges = ValueRanges::of(&f, THREADS);
        let last = f.blocks.iter().flat_map(|block| &block.insts).rfind(|inst| !inst.op.is_pure()).unwrap();
        assert_eq!(ranges.constant(last.args[1]), Some(8), "{}", text(&f));
    }

    #[test]
    fn loops_of_a_number_of_trips_that_is_not_known_or_high_stay() {
        // All of 32 bits, a trip each.
        assert_eq!(barriers(&unrolled(&halving(1 << 30, 0, ""))), 1);
        let by_grid = "entry: n = ctaid; z = const.b32 0; one = const.b32 1; jump head(n)\n head(h:b32): barrier z; k = shr h one; q = lt z h; branch q head(k) done\n done: exit";
        assert_eq!(barriers(&unrolled(by_grid)), 1);
        let by_thread = by_grid.replace("ctaid", "tid");
        assert_eq!(barriers(&unrolled(&by_thread)), 1);
    }
}
