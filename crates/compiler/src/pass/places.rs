//! What keeps its place in the block's context: values that only pass through a region.
//!
//! A loop's sums that one part of the loop adds to and another, behind a barrier, only hands on have a name before that
//! part and another behind it. Both names get one place where no barrier has both alive; then that part neither loads
//! nor stores the sum.

use super::regions::{Region, Saved};
use super::shape::Shape;
use super::visit::{for_each_use, term_values};
use crate::ir::{Inst, Op, Ty, Value};
use std::collections::HashMap;

#[derive(Default)]
pub struct Places {
    /// Of values that share another's place: that one.
    shared: HashMap<Value, Value>,
}

impl Places {
    pub fn of(regions: &[Region]) -> Places {
        let mut places = Places::default();
        for region in regions {
            let origins = origins(region);
            for (at, next) in region.next.iter().enumerate() {
                let Some(next) = *next else { continue };
                let saved = regions[next].saved.iter().zip(term_values(&region.function.blocks[at].term));
                for (new, value) in saved {
                    if let Origin::Param(param) = origins[value.index()] {
                        places.join(regions, &region.saved[param], new);
                    }
                }
            }
        }
        places
    }

    /// The value whose place this one has.
    pub fn owner(&self, value: Value) -> Value {
        self.shared.get(&value).copied().unwrap_or(value)
    }

    /// For each value that is saved at the end of the region's block `at` for region `next`: whether it is in its place.
    pub fn stay(&self, region: &Region, at: usize, next: &Region) -> Vec<bool> {
        let origins = origins(region);
        let values = term_values(&region.function.blocks[at].term);
        let stays = |(new, value): (&Saved, Value)| match origins[value.index()] {
            Origin::Param(param) => {
                let old = &region.saved[param];
                is_plain(old) && is_plain(new) && self.owner(old.value) == self.owner(new.value)
            }
            _ => false,
        };
        next.saved.iter().zip(values).map(stays).collect()
    }

    /// The region's values that one part of it outside of loops reads, and which are read there from their place, each
    /// with its number among those the region finds.
    pub fn read_in_place(region: &Region) -> Vec<(usize, Value)> {
        let function = &region.function;
        let mut readers: HashMap<Value, Option<usize>> = HashMap::new();
        for (at, block) in function.blocks.iter().enumerate() {
            let reader = Some(at).filter(|_| region.loops.of[at].is_none());
            for_each_use(block, |value| {
                let known = readers.entry(value).or_insert(reader);
                *known = known.filter(|_| *known == reader);
            });
        }
        let params = function.blocks.first().map_or(&[][..], |entry| &entry.params);
        let is_one = |&(nth, param): &(usize, Value)| {
            is_plain(&region.saved[nth]) && !matches!(readers.get(&param), Some(None))
        };
        params.iter().copied().enumerate().filter(is_one).collect()
    }

    /// Results of matrix products that go to their places at once, with the value for the next region that each is: the
    /// region ends in one barrier, comes to the product once, and reads what was in the place in the product only.
    pub fn write_in_place(&self, region: &Region, regions: &[Region]) -> HashMap<Value, Value> {
        let mut ends = (0..region.next.len()).filter_map(|at| Some((at, region.next[at]?)));
        let (Some((end, next)), None) = (ends.next(), ends.next()) else { return HashMap::new() };
        let function = &region.function;
        let mut uses: HashMap<Value, usize> = HashMap::new();
        for block in &function.blocks {
            for_each_use(block, |value| *uses.entry(value).or_default() += 1);
        }
        let is_free = |new: &Saved, inst: &Inst| {
            let mut olds = function.blocks[0].params.iter().zip(&region.saved);
            let old = olds.find(|(_, old)| self.owner(old.value) == self.owner(new.value));
            old.is_none_or(|(param, _)| {
                let own = inst.args.iter().filter(|arg| *arg == param).count();
                uses.get(param).copied().unwrap_or_default() == own
            })
        };
        let values = term_values(&function.blocks[end].term);
        let wanted: Vec<(Value, &Saved)> = values.into_iter().zip(&regions[next].saved).collect();
        let mut all = HashMap::new();
        for (at, block) in function.blocks.iter().enumerate() {
            let is_once = region.loops.of[at].is_none() && region.dominators.dominates(at, end);
            for inst in block.insts.iter().filter(|inst| is_once && matches!(inst.op, Op::Mma(_))) {
                for &result in &inst.results {
                    let mut places = wanted.iter().filter(|(value, _)| *value == result);
                    if let (Some((_, new)), None) = (places.next(), places.next())
                        && is_plain(new)
                        && is_free(new, inst)
                    {
                        all.insert(result, new.value);
                    }
                }
            }
        }
        all
    }

    fn join(&mut self, regions: &[Region], old: &Saved, new: &Saved) {
        let (first, second) = (self.owner(old.value), self.owner(new.value));
        if first == second || !is_plain(old) || !is_plain(new) || old.ty != new.ty {
            return;
        }
        let count = |region: &Region| {
            let in_place = |saved: &&Saved| [first, second].contains(&self.owner(saved.value));
            region.saved.iter().filter(in_place).count()
        };
        if regions.iter().any(|region| count(region) > 1) {
            return;
        }
        for owner in self.shared.values_mut().filter(|owner| **owner == second) {
            *owner = first;
        }
        self.shared.insert(second, first);
    }
}

/// One vector for each group, of which nothing is known.
fn is_plain(saved: &Saved) -> bool {
    let is_one = !saved.is_block_uniform && !saved.is_reduced_here && saved.ty != Ty::Pred;
    is_one && saved.shape.is_varying() && saved.in_run.is_none_or(Shape::is_varying)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Unknown,
    /// On every way the value that the region's entry has as this parameter.
    Param(usize),
    Other,
}

/// Where the region's values come from.
fn origins(region: &Region) -> Vec<Origin> {
    let function = &region.function;
    let mut origins = vec![Origin::Other; function.values.len()];
    for param in function.blocks.iter().flat_map(|block| &block.params) {
        origins[param.index()] = Origin::Unknown;
    }
    if let Some(entry) = function.blocks.first() {
        for (nth, param) in entry.params.iter().enumerate() {
            origins[param.index()] = Origin::Param(nth);
        }
    }
    let mut changed = true;
    while changed {
        changed = false;
        for edge in function.blocks.iter().flat_map(|block| block.term.edges()) {
            for (param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                let (known, comes) = (origins[param.index()], origins[arg.index()]);
                let both = match (known, comes) {
                    (known, Origin::Unknown) => known,
                    (Origin::Unknown, comes) => comes,
                    (known, comes) if known == comes => known,
                    _ => Origin::Other,
                };
                changed |= both != known;
                origins[param.index()] = both;
            }
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use crate::pass::number::Threads;
    use crate::pass::regions::plan;
    use crate::pass::shape::Among;
    use crate::pass::testing::function;

    /// For each region and barrier at its end: how many of the values saved there are in their place.
    fn staying(source: &str) -> Vec<usize> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8 };
        let plan = plan(&function(source), threads, 0, Among::Block).unwrap();
        let mut all = vec![];
        for region in &plan.regions {
            for (at, next) in region.next.iter().enumerate() {
                let Some(next) = *next else { continue };
                let stay = plan.places.stay(region, at, &plan.regions[next]);
                all.push(stay.into_iter().filter(|stays| *stays).count());
            }
        }
        all
    }

    /// A loop that adds to a sum between its barriers; `behind` stands behind the second.
    fn summing(behind: &str, sum: &str) -> String {
        format!(
            "entry: t = tid; z = zext t; zero = const.b32 0; one = const.b32 1; n = const.b32 9; a = load z; jump head(zero,a)
             head(i:b32, s:b32): more = lt i n; branch more first done
             first: barrier zero; jump second
             second: l = load z; s2 = add s l; barrier zero; jump third
             third: {behind} i2 = add i one; jump head(i2,{sum})
             done: store z s; exit"
        )
    }

    #[test]
    fn a_sum_that_is_only_handed_on_stays_where_it_is() {
        assert_eq!(staying(&summing("", "s2")), [0, 0, 1]);
    }

    #[test]
    fn a_sum_that_both_parts_add_to_is_saved_by_both() {
        assert_eq!(staying(&summing("m = load z; s3 = add s2 m;", "s3")), [0, 0, 0]);
    }

    #[test]
    fn names_that_are_alive_together_have_places_of_their_own() {
        // The old sum is stored behind the second barrier, so both are alive there.
        assert_eq!(staying(&summing("store z s;", "s2")), [0, 1, 0]);
    }
}
