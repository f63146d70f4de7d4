//! Places of values in the thread's record: a linear scan over the values' lives, so that what is never live together
//! shares a place, in time that grows with what liveness knows.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::layout::thread;
use crate::ir::{Function, Value};
use crate::pass::bits::BitSet;
use crate::pass::visit::term_values;

/// Offsets by value, and where the places end.
#[derive(Debug)]
pub struct Placed {
    pub offsets: Vec<Option<u64>>,
    pub end: u64,
}

/// From the first to the last position at which the value is live, or is written for a block that takes it; blocks in
/// the order of their numbers. A place is written where the value is defined, so lives that touch are lives together.
#[derive(Clone, Copy)]
struct Life {
    value: Value,
    first: u32,
    last: u32,
}

impl Placed {
    /// Gives the values that `wanted` names their places. `live` is what is live at the start of each block.
    pub fn of(function: &Function, live: &[BitSet], wanted: impl Fn(usize) -> bool) -> Placed {
        let mut lives = lives(function, live, wanted);
        lives.sort_unstable_by_key(|life| (life.first, life.value.0));
        let mut placed = Placed { offsets: vec![None; function.values.len()], end: thread::SAVED };
        // By the logarithm of their bytes: places that are free, and those that become free behind a position.
        let mut free: [Vec<u64>; 5] = Default::default();
        let mut taken = BinaryHeap::new();
        for life in lives {
            while let Some(&Reverse((last, class, offset))) = taken.peek() {
                if last >= life.first {
                    break;
                }
                taken.pop();
                let of_class: &mut Vec<u64> = &mut free[class];
                of_class.push(offset);
            }
            let bytes = u64::from(function.ty(life.value).bits().div_ceil(8)).next_power_of_two();
            let class = (bytes.trailing_zeros() as usize).min(free.len() - 1);
            let offset = free[class].pop().unwrap_or_else(|| {
                let offset = placed.end.next_multiple_of(bytes);
                placed.end = offset + bytes;
                offset
            });
            placed.offsets[life.value.index()] = Some(offset);
            taken.push(Reverse((life.last, class, offset)));
        }
        placed
    }
}

fn lives(function: &Function, live: &[BitSet], wanted: impl Fn(usize) -> bool) -> Vec<Life> {
    let mut found: Vec<Option<Life>> = vec![None; function.values.len()];
    let mut at = |value: usize, position: u32| {
        if wanted(value) {
            let unseen = Life { value: Value(value as u32), first: position, last: position };
            let life = found[value].get_or_insert(unseen);
            life.first = life.first.min(position);
            life.last = life.last.max(position);
        }
    };
    let mut position = 0;
    for (block, live_here) in function.blocks.iter().zip(live) {
        live_here.iter().for_each(|value| at(value, position));
        block.params.iter().for_each(|param| at(param.index(), position));
        for inst in &block.insts {
            position += 1;
            inst.args.iter().chain(&inst.results).for_each(|value| at(value.index(), position));
        }
        position += 1;
        term_values(&block.term).into_iter().for_each(|value| at(value.index(), position));
        for edge in block.term.edges() {
            let target = edge.block.index();
            live[target].iter().for_each(|value| at(value, position));
            // Written here.
            function.blocks[target].params.iter().for_each(|param| at(param.index(), position));
        }
        position += 1;
    }
    found.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::liveness::live_in;
    use crate::pass::testing::function;

    /// Places of all values: parameters of blocks first, then by the order of definition.
    fn offsets(source: &str) -> Vec<u64> {
        let function = function(source);
        let live = live_in(&function);
        Placed::of(&function, &live, |_| true).offsets.into_iter().flatten().collect()
    }

    #[test]
    fn what_is_never_live_together_shares_a_place() {
        let found = offsets("entry: a = tid; b = add a a; c = add b b; d = add c c; store d d");
        // `b` is written where `a` is read.
        assert_eq!(found, [96, 100, 96, 100]);
    }

    #[test]
    fn what_is_live_together_does_not() {
        let found = offsets("entry: a = tid; b = tid; c = add a b; d = add c a; store d d");
        let (a, b, c, d) = (found[0], found[1], found[2], found[3]);
        assert!(a != b && a != c && b != c && d != c && d != a, "{found:?}");
    }

    #[test]
    fn a_loop_keeps_what_its_next_round_reads() {
        let found = offsets(
            "entry: kept = tid; first = tid; jump again(first)\n\
             again(i:b32): i2 = add i kept; p = lt i2 kept; branch p again(i2) done\n\
             done: store kept kept",
        );
        let [i, kept, first, i2, p] = found[..] else { panic!("{found:?}") };
        assert!([first, i, i2, p].iter().all(|it| *it != kept), "{found:?}");
        // The parameter is written where the argument is read, and `i2` while `i` still has its life.
        assert!(i != first && i != i2 && i2 != p, "{found:?}");
    }
}
