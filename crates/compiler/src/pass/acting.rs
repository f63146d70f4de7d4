//! Which groups of a block have something to do between two barriers.
//!
//! The steps of a tree in shared memory (`if (threadIdx.x < half)`) leave more and more of a block's groups with nothing but the
//! next barrier. Where that follows from the threads' numbers, those groups are not even asked.

use super::bits::BitSet;
use super::known::Known;
use super::places::{Places, stays_on};
use super::regions::{Region, is_removable};
use super::value_ranges::Threads;
use crate::ir::{BlockId, Term, Value};
use std::collections::HashMap;
use std::ops::Range;

/// The groups that run a region, the others being idle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Acting {
    pub groups: Range<u64>,
    /// Branches, by their block, that all threads of these groups take to one side: whether the condition holds.
    pub decided: HashMap<usize, bool>,
    /// Where one group runs it: other branches, by their block, and the lanes for which the condition holds.
    pub lanes: HashMap<usize, u64>,
}

/// More blocks than this are no step of a tree.
const MOST_BLOCKS: usize = 12;

/// `None`: all groups of the block run the region, for all that is known.
pub fn of(regions: &[Region], region: usize, places: &Places, threads: Threads) -> Option<Acting> {
    let here = &regions[region];
    if threads.open || !here.spins.is_empty() || here.function.blocks.len() > MOST_BLOCKS || !is_one_way(here)
    {
        return None;
    }
    let acts: Vec<bool> = (0..here.function.blocks.len()).map(|at| acts(here, at)).collect();
    if all_act(here, &acts) {
        return None;
    }
    let width = u64::from(threads.width);
    let groups = threads.total().div_ceil(width);
    let known = Known::of(&here.function, &here.dominators, threads);
    let members = |group: u64| (group * width) as usize..threads.total().min((group + 1) * width) as usize;
    let ways: Vec<Way> = (0..groups).map(|group| Way::of(here, &known, members(group), &acts)).collect();
    let mut acting = (0..groups).filter(|&group| ways[group as usize].acts);
    let first = acting.next().unwrap_or(0);
    let acting = first..acting.next_back().unwrap_or(first) + 1;
    if acting.end - acting.start == groups {
        return None;
    }
    let mut idle = Way::default();
    for (_, way) in ways.iter().enumerate().filter(|(group, _)| !acting.contains(&(*group as u64))) {
        idle.blocks.union(&way.blocks);
        idle.edges.extend(&way.edges);
    }
    let kept = |at: usize| {
        here.next[at].is_none_or(|next| {
            stays_on(places, here, at, &regions[next], |from, nth| idle.edges.contains(&(from, nth)))
        })
    };
    if !idle.blocks.iter().all(kept) {
        return None;
    }
    let all = members(acting.start).start..members(acting.end - 1).end;
    let is_one = acting.end - acting.start == 1;
    let (mut decided, mut lanes) = (HashMap::new(), HashMap::new());
    for (at, block) in here.function.blocks.iter().enumerate() {
        let Term::Branch { cond, .. } = block.term else { continue };
        match known.holds_for(cond, all.clone()) {
            Some([fails, holds]) if fails != holds => {
                decided.insert(at, holds);
            }
            Some(_) if is_one => {
                lanes.extend(known.lanes_of(cond, all.clone()).map(|lanes| (at, lanes)));
            }
            _ => {}
        }
    }
    Some(Acting { groups: acting, decided, lanes })
}

/// Whether all threads go to one next region, whose barrier tells nobody anything, or all end.
fn is_one_way(region: &Region) -> bool {
    let mut ways = region.next.iter().flatten();
    let Some(first) = ways.next() else { return true };
    let ends = region.function.blocks.iter().any(|block| block.term == Term::Exit);
    let tells =
        region.function.blocks.iter().any(|block| {
            block.insts.last().is_some_and(|inst| inst.op.is_barrier() && !inst.results.is_empty())
        });
    !ends && !tells && ways.all(|way| way == first)
}

/// Whether every thread acts before it comes to a branch.
fn all_act(region: &Region, acts: &[bool]) -> bool {
    let mut at = 0;
    while let (false, Term::Jump(edge)) = (acts[at], &region.function.blocks[at].term) {
        at = edge.block.index();
    }
    acts[at]
}

/// Whether a thread that runs the block does anything that others see, or that takes others.
fn acts(region: &Region, at: usize) -> bool {
    region.loops.of[at].is_some()
        || region.function.blocks[at]
            .insts
            .iter()
            .any(|inst| !is_removable(&inst.op) && !inst.op.is_barrier())
}

/// Where some threads of a group can come in a region.
#[derive(Default)]
struct Way {
    blocks: BitSet,
    /// Block, and which of its edges.
    edges: Vec<(usize, usize)>,
    acts: bool,
}

impl Way {
    fn of(region: &Region, known: &Known<'_>, threads: Range<usize>, acts: &[bool]) -> Way {
        let mut way = Way { blocks: BitSet::new(acts.len()), ..Way::default() };
        let mut work = vec![0];
        while let Some(at) = work.pop() {
            if !way.blocks.insert(at) {
                continue;
            }
            if acts[at] {
                way.acts = true;
                return way;
            }
            let block = &region.function.blocks[at];
            let sides = |cond: Value| known.holds_for(cond, threads.clone()).unwrap_or([true, true]);
            for (nth, edge) in block.term.edges().into_iter().enumerate() {
                let is_taken = match block.term {
                    Term::Branch { cond, .. } => sides(cond)[1 - nth],
                    _ => true,
                };
                if is_taken {
                    way.edges.push((at, nth));
                    work.push(BlockId::index(edge.block));
                }
            }
        }
        way
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;

    /// The groups of eight, of a block of 256, that each region leaves to be run: all of them are 0 to 32.
    fn groups(source: &str) -> Vec<(u64, u64)> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
        let plan = plan(&function(source), threads, 0, Among::Block).unwrap();
        let range = |acting: &Option<Acting>| {
            acting.as_ref().map_or((0, 32), |acting| (acting.groups.start, acting.groups.end))
        };
        plan.regions.iter().map(|region| range(&region.acting)).collect()
    }

    /// A step between two barriers in which some threads store.
    fn step(number: u32, compare: &str, at_start: &str, some: &str, behind: &str) -> String {
        format!(
            "entry: t = tid; n = const.b32 {number}; z = const.b32 0; a = zext t; s = load a; store a s; barrier z; jump step
             step: {at_start} p = {compare}; branch p some next
             some: {some} store a t; jump next
             next: barrier z; jump last
             last: {behind} store a z; exit"
        )
    }

    #[test]
    fn groups_above_the_bound_are_not_asked() {
        assert_eq!(groups(&step(128, "lt t n", "", "", "")), [(0, 32), (0, 16), (0, 32)]);
        assert_eq!(groups(&step(20, "lt t n", "", "", "")), [(0, 32), (0, 3), (0, 32)]);
        assert_eq!(groups(&step(200, "lt n t", "", "", "")), [(0, 32), (25, 32), (0, 32)]);
        assert_eq!(groups(&step(9, "eq t n", "", "", "")), [(0, 32), (1, 2), (0, 32)]);
    }

    #[test]
    fn who_does_something_is_asked() {
        // The bound is not known, or all have something to do.
        assert_eq!(groups(&step(0, "lt t s", "", "", "")), [(0, 32); 3]);
        assert_eq!(groups(&step(20, "lt t n", "store a n;", "", "")), [(0, 32); 3]);
        // All threads have a new number for the next region.
        let makes = step(20, "lt t n", "l = load a;", "", "store a l;");
        assert_eq!(groups(&makes), [(0, 32); 3]);
    }

    #[test]
    fn a_number_that_is_only_handed_on_keeps_its_place() {
        let keeps = step(20, "lt t n", "", "", "store a s;");
        assert_eq!(groups(&keeps), [(0, 32), (0, 3), (0, 32)]);
        let adds = "entry: t = tid; n = const.b32 20; z = const.b32 0; a = zext t; s = load a; store a s; barrier z; jump step
             step: p = lt t n; branch p some next(s)
             some: l = load a; r = add s l; store a r; jump next(r)
             next(m:b32): barrier z; jump last
             last: store a m; exit";
        assert_eq!(groups(adds), [(0, 32), (0, 3), (0, 32)]);
    }

    #[test]
    fn of_groups_that_act_branches_may_be_decided() {
        let decided = |bound: u32| {
            let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
            let source = step(bound, "lt t n", "", "", "");
            let plan = plan(&function(&source), threads, 0, Among::Block).unwrap();
            let acting = plan.regions[1].acting.clone().unwrap();
            acting.decided.values().copied().collect::<Vec<_>>()
        };
        assert_eq!(decided(16), [true]);
        assert_eq!(decided(20), [false; 0]);
    }

    #[test]
    fn of_one_group_it_is_known_which_lanes_go_where() {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
        let of = |source: &str| {
            let plan = plan(&function(source), threads, 0, Among::Block).unwrap();
            plan.regions[1].acting.clone().unwrap().lanes.into_values().collect::<Vec<_>>()
        };
        assert_eq!(of(&step(3, "lt t n", "", "", "")), [0b111]);
        assert_eq!(of(&step(250, "lt n t", "", "", "")), [0b1111_1000]);
        assert_eq!(of(&step(12, "lt t n", "", "", "")), [0; 0]);
    }
}
