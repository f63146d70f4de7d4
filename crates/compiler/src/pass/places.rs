//! What keeps its place in the block's context: values that only pass through a region.
//!
//! A loop's sums that one part of the loop adds to and another, behind a barrier, only hands on have a name before that
//! part and another behind it. Both names get one place where no barrier has both alive; then that part neither loads
//! nor stores the sum.

use super::divergence::Divergence;
use super::regions::{Region, Saved};
use super::visit::{Definition, definitions, for_each_use, term_values};
use crate::ir::{Edge, Inst, Ty, Value};
use crate::matrix::Sum;
use std::collections::{HashMap, HashSet};

#[derive(Default)]
pub struct Places {
    /// Of values that share another's place: that one.
    shared: HashMap<Value, Value>,
}

impl Places {
    pub fn of(regions: &[Region]) -> Places {
        let mut places = Places::default();
        let mut saved_in: HashMap<Value, HashSet<usize>> = HashMap::new();
        for (at, region) in regions.iter().enumerate() {
            for saved in &region.saved {
                saved_in.entry(saved.value).or_default().insert(at);
            }
        }
        let mut sharers: HashMap<Value, Vec<Value>> = HashMap::new();
        for region in regions {
            let kept = Kept::of(region);
            for (at, next) in region.next.iter().enumerate() {
                let Some(next) = *next else { continue };
                let saved = regions[next].saved.iter().zip(term_values(&region.function.blocks[at].term));
                for (new, value) in saved {
                    for param in kept.by_some(value) {
                        let old = &region.saved[param];
                        if is_plain(old) && is_plain(new) && old.ty == new.ty {
                            places.join(&mut saved_in, &mut sharers, old.value, new.value);
                        }
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
        let stays = |(new, value): (&Saved, Value)| self.is_there(region, origins[value.index()], new);
        next.saved.iter().zip(values).map(stays).collect()
    }

    /// Whether what comes from `origin` is in the place of `new` already.
    fn is_there(&self, region: &Region, origin: Origin, new: &Saved) -> bool {
        let Origin::Param(param) = origin else { return false };
        let old = &region.saved[param];
        is_plain(old) && is_plain(new) && self.owner(old.value) == self.owner(new.value)
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
            for inst in block.insts.iter().filter(|inst| is_once && inst.op.is_product()) {
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

    /// Gives both one place, unless a region finds both. `saved_in` and `sharers` are of owners: the regions that find one of
    /// those with the place, and these but for the owner.
    fn join(
        &mut self,
        saved_in: &mut HashMap<Value, HashSet<usize>>,
        sharers: &mut HashMap<Value, Vec<Value>>,
        old: Value,
        new: Value,
    ) {
        let (first, second) = (self.owner(old), self.owner(new));
        let count = |value: Value| saved_in.get(&value).map_or(0, HashSet::len);
        // The fewer move.
        let (few, many) = if count(first) < count(second) { (first, second) } else { (second, first) };
        let (Some(some), Some(others)) = (saved_in.get(&few), saved_in.get(&many)) else { return };
        if first == second || !some.is_disjoint(others) {
            return;
        }
        let some = saved_in.remove(&few).unwrap_or_default();
        saved_in.entry(many).or_default().extend(some);
        let mut moved = sharers.remove(&few).unwrap_or_default();
        moved.push(few);
        self.shared.extend(moved.iter().map(|&value| (value, many)));
        sharers.entry(many).or_default().extend(moved);
    }
}

/// One vector for each group, of which nothing is known.
pub fn is_plain(saved: &Saved) -> bool {
    let is_one = !saved.is_block_uniform && !saved.is_reduced_here && saved.ty != Ty::Pred;
    is_one && saved.divergence.is_varying() && saved.in_run.is_none_or(Divergence::is_varying)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    Unknown,
    /// On every way the value that the region's entry has as this parameter.
    Param(usize),
    Other,
}

/// Whether threads that take no other of the region's edges (by block and number) than these leave all that the next region finds
/// at its start as it is, or as any other thread of their block makes it.
pub fn stays_on(
    places: &Places,
    region: &Region,
    at: usize,
    next: &Region,
    taken: impl Fn(usize, usize) -> bool,
) -> bool {
    let origins = origins_on(region, taken);
    let mut values = term_values(&region.function.blocks[at].term).into_iter().zip(&next.saved);
    values.all(|(value, new)| new.is_block_uniform || places.is_there(region, origins[value.index()], new))
}

/// Where the region's values come from.
fn origins(region: &Region) -> Vec<Origin> {
    origins_on(region, |_, _| true)
}

/// The same for threads that take no other edges than these.
fn origins_on(region: &Region, taken: impl Fn(usize, usize) -> bool) -> Vec<Origin> {
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
        let edges = function.blocks.iter().enumerate().flat_map(|(at, block)| {
            let edges = block.term.edges().into_iter().enumerate();
            edges.filter(|(nth, _)| taken(at, *nth)).map(|(_, edge)| edge).collect::<Vec<_>>()
        });
        for edge in edges {
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

/// The parameters of the region's entry that a value is on every way, or else on one of those that meet where it is made: who has no
/// part in a step of a tree hands its own sum on.
struct Kept<'a> {
    origins: Vec<Origin>,
    definitions: Vec<Definition>,
    incoming: Vec<Vec<&'a Edge>>,
}

impl Kept<'_> {
    fn of(region: &Region) -> Kept<'_> {
        let function = &region.function;
        let mut incoming = vec![vec![]; function.blocks.len()];
        for edge in function.blocks.iter().flat_map(|block| block.term.edges()) {
            incoming[edge.block.index()].push(edge);
        }
        Kept { origins: origins_of_sums(region), definitions: definitions(function), incoming }
    }

    fn by_some(&self, value: Value) -> Vec<usize> {
        let param = |value: Value| match self.origins[value.index()] {
            Origin::Param(param) => Some(param),
            _ => None,
        };
        match (param(value), self.definitions[value.index()]) {
            (Some(param), _) => vec![param],
            (None, Definition::Param(at, nth)) => {
                self.incoming[at].iter().filter_map(|edge| param(edge.args[nth])).collect()
            }
            (None, _) => vec![],
        }
    }
}

/// As [`origins`], and a sum that products have added to comes from where they found it, if nobody else reads it there.
fn origins_of_sums(region: &Region) -> Vec<Origin> {
    let mut origins = origins(region);
    let function = &region.function;
    let products = || {
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts.filter_map(|inst| Some((Sum::of(inst)?.before, &inst.results)))
    };
    let mut uses: HashMap<Value, usize> = products().flat_map(|(c, _)| c).map(|&value| (value, 0)).collect();
    if uses.is_empty() {
        return origins;
    }
    for block in &function.blocks {
        for_each_use(block, |value| {
            if let Some(count) = uses.get_mut(&value) {
                *count += 1;
            }
        });
    }
    for (c, results) in products() {
        for (value, result) in c.iter().zip(results).filter(|(value, _)| uses[value] == 1) {
            origins[result.index()] = origins[value.index()];
        }
    }
    origins
}

#[cfg(test)]
mod tests {
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    /// For each region and barrier at its end: how many of the values saved there are in their place.
    fn staying(source: &str) -> Vec<usize> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
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
            "entry: t = tid; z = zext t; zero = const.b32 0; one = const.b32 1; n = ctaid; a = load z; jump head(zero,a)
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
