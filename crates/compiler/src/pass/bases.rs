//! Which addresses lie at constant distances from each other: lane 0's value of each is a base that it may share with others, and a
//! constant. So accesses by several pointers into one structure are found, which nvcc makes of one that goes through an array.

use std::collections::HashMap;

use super::bits::BitSet;
use super::divergence::Divergence;
use super::offsets::{Incoming, Offsets, incoming, until_all_hold};
use super::per_value::PerValue;
use super::value_ranges::ValueRanges;
use crate::ir::*;

/// What lane 0's value is a constant away from.
type Base = u32;

/// The base of constants.
const NOTHING: Base = 0;

#[derive(PartialEq, Eq, Hash)]
enum Made {
    Value(Value),
    Sum(Base, Base),
    /// What parameters of a block hold whose first arguments share that base, and which take the same steps.
    Params(usize, Base),
}

/// Lane 0's value: a base and a constant, modulo 2^64.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    base: Base,
    constant: i64,
}

#[derive(Default)]
pub struct Bases {
    of: HashMap<Value, Place>,
}

struct Finder<'a> {
    function: &'a Function,
    ranges: &'a ValueRanges,
    divergences: &'a PerValue<Divergence>,
    offsets: &'a Offsets,
    width: u32,
    made: HashMap<Made, Base>,
    found: Bases,
}

impl Bases {
    pub fn of(
        function: &Function,
        ranges: &ValueRanges,
        divergences: &PerValue<Divergence>,
        offsets: &Offsets,
        width: u32,
    ) -> Bases {
        let order = function.reverse_post_order();
        let incoming = incoming(function, &order);
        // Parameters that are refused have a base of their own.
        until_all_hold(function, BitSet::new(function.values.len()), |own| {
            let (made, found) = (HashMap::new(), Bases::default());
            let mut finder = Finder { function, ranges, divergences, offsets, width, made, found };
            finder.run(&order, &incoming, own);
            let broken = finder.broken(&incoming, own);
            (finder.found, broken)
        })
    }

    /// How far lane 0's value of `to` is from that of `from`.
    pub fn distance(&self, from: Value, to: Value) -> Option<i64> {
        let (from, to) = (self.of.get(&from)?, self.of.get(&to)?);
        (from.base == to.base).then(|| to.constant.wrapping_sub(from.constant))
    }
}

impl Finder<'_> {
    fn base(&mut self, made: Made) -> Base {
        let next = self.made.len() as Base + 1;
        *self.made.entry(made).or_insert(next)
    }

    fn place(&mut self, value: Value) -> Place {
        match self.found.of.get(&value) {
            Some(place) => *place,
            None => Place { base: self.base(Made::Value(value)), constant: 0 },
        }
    }

    fn run(&mut self, order: &[BlockId], incoming: &Incoming<'_>, own: &BitSet) {
        for &id in order {
            let block = self.function.block(id);
            for (nth, &param) in block.params.iter().enumerate() {
                let place = match incoming[id.index()].first() {
                    Some(edge) if self.is_wide(param) && !own.contains(param.index()) => {
                        let Place { base, constant } = self.place(edge.args[nth]);
                        Place { base: self.base(Made::Params(id.index(), base)), constant }
                    }
                    _ => Place { base: self.base(Made::Value(param)), constant: 0 },
                };
                self.found.of.insert(param, place);
            }
            for inst in &block.insts {
                if let [result] = inst.results[..]
                    && self.is_wide(result)
                {
                    let place = self.result(inst, result);
                    self.found.of.insert(result, place);
                }
            }
        }
    }

    /// Addresses have 64 bits.
    fn is_wide(&self, value: Value) -> bool {
        self.function.ty(value) == Ty::B64
    }

    fn result(&mut self, inst: &Inst, result: Value) -> Place {
        if let Some(constant) = self.lane_0(result) {
            return Place { base: NOTHING, constant };
        }
        if let Op::Int(op @ (IntBin::Add | IntBin::Sub), _) = inst.op {
            let (a, b) = (self.place(inst.args[0]), self.place(inst.args[1]));
            match (op, a.base, b.base) {
                (IntBin::Add, a_base, b_base) => {
                    let base = match (a_base, b_base) {
                        (NOTHING, base) | (base, NOTHING) => base,
                        (a, b) => self.base(Made::Sum(a.min(b), a.max(b))),
                    };
                    return Place { base, constant: a.constant.wrapping_add(b.constant) };
                }
                (_, base, NOTHING) => {
                    return Place { base, constant: a.constant.wrapping_sub(b.constant) };
                }
                _ => {}
            }
        }
        Place { base: self.base(Made::Value(result)), constant: 0 }
    }

    /// Lane 0's number, where its range and those of the lanes' distances leave one.
    fn lane_0(&self, value: Value) -> Option<i64> {
        let (low, high) = self.offsets.interval(value, self.ranges)?;
        if low == high {
            return Some(low);
        }
        let lanes = self.offsets.with_lines(value, self.divergences[value.index()], self.width)?;
        let (least, most) = (*lanes.iter().min()?, *lanes.iter().max()?);
        (low.checked_sub(least)? == high.checked_sub(most)?).then_some(low - least)
    }

    /// Parameters that do not go with others of their base: along some edge they take another step.
    fn broken(&mut self, incoming: &Incoming<'_>, own: &BitSet) -> Vec<Value> {
        let mut broken = vec![];
        for (at, edges) in incoming.iter().enumerate() {
            // By base: the first parameter's steps.
            let mut steps: HashMap<Base, Vec<Place>> = HashMap::new();
            for (nth, &param) in self.function.blocks[at].params.iter().enumerate() {
                let Some(&place) = self.found.of.get(&param).filter(|_| !own.contains(param.index())) else {
                    continue;
                };
                let taken: Vec<Place> = edges
                    .iter()
                    .map(|edge| {
                        let Place { base, constant } = self.place(edge.args[nth]);
                        Place { base, constant: constant.wrapping_sub(place.constant) }
                    })
                    .collect();
                if *steps.entry(place.base).or_insert_with(|| taken.clone()) != taken {
                    broken.push(param);
                }
            }
        }
        broken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    /// Between the addresses of the two stores.
    fn distance(source: &str) -> Option<i64> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
        let plan = plan(&function(source), threads, 0, Among::Block).unwrap();
        let region = &plan.regions[0];
        let insts = region.function.blocks.iter().flat_map(|block| &block.insts);
        let stores: Vec<Value> =
            insts.filter(|inst| matches!(inst.op, Op::Store { .. })).map(|inst| inst.args[0]).collect();
        let lanes = |value: Value| region.together.of[value.index()];
        let found =
            Bases::of(&region.function, &region.ranges, &region.together.of, &region.offsets_together, 8);
        assert!(stores.iter().all(|&it| !lanes(it).is_uniform()));
        found.distance(stores[0], stores[1])
    }

    /// A structure of each pair of threads: its start, and what of it is a thread's.
    const PAIR: &str = "t = tid; z = const.b32 1; r = shr t z; s = const.b32 36; x = mul r s; a = zext x; o = const.b32 1; c = and t o; \
                        e = const.b32 8; y = mul c e; b = zext y; u = ctaid; v = zext u; f = const.b64 4; h = const.b64 72; w = const.b64 36;";

    #[test]
    fn a_threads_part_begins_at_lane_0_where_the_structure_does() {
        let source =
            format!("entry: {PAIR} p = add64 v a; q = add64 p b; m = add64 q f; store p t; store m t; exit");
        assert_eq!(distance(&source), Some(4));
        let source = format!("entry: {PAIR} p = add64 v a; q = add64 a b; store p t; store q t; exit");
        assert_eq!(distance(&source), None);
    }

    /// Two addresses that go on by `one` and `other` in each trip.
    fn loop_by(one: &str, other: &str) -> String {
        format!(
            "entry: {PAIR} p = add64 v a; q = add64 p b; m = add64 q f; jump head(p,m,z)\n \
             head(i:b64, j:b64, n:b32): store i t; store j t; k = add64 i {one}; l = add64 j {other}; d = add n n; g = lt d t; \
             branch g head(k,l,d) out\n out: exit"
        )
    }

    #[test]
    fn addresses_that_take_the_same_steps_stay_as_far_apart() {
        assert_eq!(distance(&loop_by("h", "h")), Some(4));
        assert_eq!(distance(&loop_by("h", "w")), None);
        assert_eq!(distance(&loop_by("h", "a")), None);
    }
}
