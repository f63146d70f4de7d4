//! Where lanes that parted come together again, all of them, whichever way each went: code that all lanes run together can go on
//! there, and what a part of them runs ends there.

use std::collections::HashSet;

use super::bits::BitSet;
use super::dominators::post_dominators;
use super::layout::Layout;
use super::liveness::made;
use super::loops::Loops;
use crate::ir::{Function, Value};

/// Steps from block to block that are looked at for each block of the function, in the mean; a function that takes more has no meetings.
const EFFORT: usize = 32;

pub struct Meetings {
    /// Blocks that a part of the lanes may run.
    pub apart: BitSet,
    /// Blocks in front of which all lanes come together again, none of which is run by lanes that do not.
    pub at: BitSet,
}

/// What is looked at.
pub struct View<'a> {
    pub function: &'a Function,
    pub graph: &'a [Vec<usize>],
    pub loops: &'a Loops,
    pub layout: &'a Layout,
    /// Values that are read from each block on.
    pub live: &'a [BitSet],
    /// Blocks at whose ends lanes may part.
    pub parts: Vec<usize>,
    /// Blocks that all lanes may begin as if they had parted in front of them.
    pub leaves: Vec<usize>,
}

impl Meetings {
    /// `is_same`: the value has the same form for lanes that are together as for those that are not. `may_be_at`: whether a block is a place
    /// to meet. `None` where that takes too long to find out.
    pub fn of(
        view: &View<'_>,
        is_same: impl Fn(Value) -> bool,
        may_be_at: impl Fn(usize) -> bool,
    ) -> Option<Meetings> {
        let View { function, graph, live, ref parts, ref leaves, .. } = *view;
        let behind = post_dominators(graph);
        let has_other = |block: usize| !function.blocks[block].params.iter().all(|&it| is_same(it));
        let mut refused: HashSet<usize> =
            (0..graph.len()).filter(|&block| !may_be_at(block) || has_other(block)).collect();
        let mut effort = EFFORT * graph.len();
        loop {
            let mut found = Meetings { apart: BitSet::new(graph.len()), at: BitSet::new(graph.len()) };
            // What lanes run that do not meet again.
            let mut for_good = BitSet::new(graph.len());
            leaves.iter().for_each(|&block| {
                found.apart.insert(block);
            });
            let before = refused.len();
            for &part in parts.iter().chain(leaves) {
                let up = |&at: &usize| behind.immediate(at);
                let meeting = std::iter::successors(behind.immediate(part), up)
                    .find(|block| !refused.contains(block))
                    .filter(|&block| block < graph.len());
                let Some(meeting) = meeting else {
                    view.from(part, &mut for_good, &mut effort)?;
                    continue;
                };
                if view.between(part, meeting, &mut found.apart, &mut effort)? {
                    found.at.insert(meeting);
                } else {
                    refused.insert(meeting);
                }
            }
            found.apart.union(&for_good);
            let mut others = BitSet::new(function.values.len());
            for block in found.apart.iter() {
                made(&function.blocks[block]).filter(|&it| !is_same(it)).for_each(|it| {
                    others.insert(it.index());
                });
            }
            let reads_other = |block: usize| live[block].iter().any(|value| others.contains(value));
            refused.extend(found.at.iter().filter(|&block| for_good.contains(block) || reads_other(block)));
            effort = effort.checked_sub(found.at.iter().count())?;
            if refused.len() == before {
                return Some(found);
            }
        }
    }
}

impl View<'_> {
    /// Adds all blocks that lanes may come to from the end of one.
    fn from(&self, from: usize, apart: &mut BitSet, effort: &mut usize) -> Option<()> {
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            for &next in &self.graph[block] {
                *effort = effort.checked_sub(1)?;
                if apart.insert(next) {
                    work.push(next);
                }
            }
        }
        Some(())
    }

    /// Adds the blocks that lanes may run between the end of one and the start of another that all of them come to. False where some may
    /// still be on their way when the layout comes to the other.
    fn between(&self, from: usize, to: usize, apart: &mut BitSet, effort: &mut usize) -> Option<bool> {
        let position = &self.layout.position;
        let mut seen = HashSet::new();
        let mut work = vec![from];
        while let Some(block) = work.pop() {
            for &next in &self.graph[block] {
                *effort = effort.checked_sub(1)?;
                let goes_back = position[next] <= position[block];
                let stays_in = |index: usize| self.loops.contains(index, to);
                if goes_back && self.loops.of[next].is_none_or(stays_in) {
                    return Some(false);
                }
                if next == to || !seen.insert(next) {
                    continue;
                }
                if position[next] >= position[to] {
                    return Some(false);
                }
                apart.insert(next);
                work.push(next);
            }
        }
        Some(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::divergence::structure;
    use crate::pass::dominators::successors;
    use crate::pass::liveness::live_in;
    use crate::pass::testing::function;

    /// The blocks that lanes run which part at the end of these, and those that they meet in front of. `others`: values, by their number,
    /// that have another form.
    fn meetings(source: &str, parts: &[usize], leaves: &[usize], others: &[u32]) -> (Vec<usize>, Vec<usize>) {
        let function = function(source);
        let (_, loops, layout) = structure(&function).unwrap();
        let view = View {
            function: &function,
            graph: &successors(&function),
            loops: &loops,
            layout: &layout,
            live: &live_in(&function),
            parts: parts.to_vec(),
            leaves: leaves.to_vec(),
        };
        let found = Meetings::of(&view, |value| !others.contains(&value.0), |_| true).unwrap();
        (found.apart.iter().collect(), found.at.iter().collect())
    }

    /// A diamond behind another.
    const TWO: &str = "entry: t = tid; n = const.b32 7; p = lt t n; branch p a b\n a: jump c\n b: jump c\n \
                       c: q = lt n t; branch q d e\n d: jump f\n e: jump f\n f: store t t; exit";

    #[test]
    fn sides_meet_behind_them() {
        assert_eq!(meetings(TWO, &[0], &[], &[]), (vec![1, 2], vec![3]));
        assert_eq!(meetings(TWO, &[0, 3], &[], &[]), (vec![1, 2, 4, 5], vec![3, 6]));
    }

    #[test]
    fn lanes_that_begin_a_block_apart_meet_behind_it() {
        assert_eq!(meetings(TWO, &[0, 3], &[3], &[]), (vec![1, 2, 3, 4, 5], vec![3, 6]));
        assert_eq!(meetings(TWO, &[0], &[4], &[]), (vec![1, 2, 4], vec![3, 6]));
        assert_eq!(meetings(TWO, &[], &[6], &[]), (vec![6], vec![]));
    }

    /// Lanes go round as often as each of them wants to.
    const ROUND: &str = "entry: t = tid; z = const.b32 0; jump head(z)\n head(i:b32): p = lt i t; branch p body out(i)\n \
                         body: o = const.b32 1; j = add i o; jump head(j)\n out(k:b32): store k k; exit";

    #[test]
    fn lanes_meet_behind_a_loop_that_each_leaves_in_its_trip() {
        assert_eq!(meetings(ROUND, &[1], &[], &[]), (vec![1, 2], vec![3]));
    }

    #[test]
    fn where_some_end_nobody_waits_for_them() {
        let source =
            "entry: t = tid; n = const.b32 7; p = lt t n; branch p a b\n a: exit\n b: store t t; exit";
        assert_eq!(meetings(source, &[0], &[], &[]), (vec![1, 2], vec![]));
    }

    #[test]
    fn lanes_go_on_apart_where_what_they_bring_has_another_form() {
        // The parameter of `out`, the last value but those that instructions make.
        let k = function(ROUND).blocks[3].params[0].0;
        assert_eq!(meetings(ROUND, &[1], &[], &[k]), (vec![1, 2, 3], vec![]));
        let source = "entry: t = tid; n = const.b32 7; p = lt t n; branch p a b\n a: jump c(t)\n b: jump c(n)\n \
                      c(x:b32): jump d\n d: store x x; exit";
        let x = function(source).blocks[3].params[0].0;
        assert_eq!(meetings(source, &[0], &[], &[]), (vec![1, 2], vec![3]));
        assert_eq!(meetings(source, &[0], &[], &[x]), (vec![1, 2, 3, 4], vec![]));
    }

    #[test]
    fn lanes_that_part_at_the_end_of_a_trip_meet_behind_the_loop() {
        let source = "entry: t = tid; z = const.b32 0; jump head(z)\n head(i:b32): o = const.b32 1; j = add i o; \
                      p = lt t j; branch p a b\n a: jump last\n b: store j j; jump last\n \
                      last: q = lt j t; branch q head(j) out\n out: store t t; exit";
        // Those of one trip meet at its end, and then part there.
        assert_eq!(meetings(source, &[1], &[], &[]), (vec![2, 3], vec![4]));
        assert_eq!(meetings(source, &[1, 4], &[], &[]), (vec![1, 2, 3, 4], vec![4, 5]));
    }
}
