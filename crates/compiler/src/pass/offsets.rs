//! Values whose lanes lie at constant distances from lane 0's without being a line: `2·t - (t & 3)`, the row and column
//! of a tile. Their accesses are vectors of the memory in between, with constant shuffles (`back/simd/window.rs`).
//!
//! Lane `k` has lane 0's value plus its offset, modulo 2^bits, in every group alike. Chains of pure operations are followed, whose
//! values all lanes of the vector have, also those that are not active; and the parameters of blocks that lanes come to together,
//! first of all of loops, in which an address takes the same step in all lanes: those hold among active lanes alone.

use std::rc::Rc;

use super::bits::BitSet;
use super::divergence::{Divergence, window_offsets};
use super::intervals::{Interval, Intervals};
use super::per_value::PerValue;
use super::value_ranges::{ValueRanges, signed};
use crate::ir::*;

/// One offset per lane; lane 0's is 0.
pub type Lanes = Rc<[i64]>;

pub struct Offsets {
    of: PerValue<Option<Lanes>>,
    /// Values that have passed a block's parameter: lanes that are not active may have others.
    carried: BitSet,
    /// Widenings that keep the distances unless a number wraps between two lanes, which code has to check.
    checked: BitSet,
    intervals: Rc<Intervals>,
    /// Values that are only used as addresses in the shared or local window.
    windows: BitSet,
}

struct Finder<'a> {
    function: &'a Function,
    ranges: &'a ValueRanges,
    divergences: &'a PerValue<Divergence>,
    width: u32,
    /// Whether code may check.
    checks: bool,
    found: Offsets,
}

/// Lanes are only worth a check where they stay close together.
const FAR: i64 = 1 << 16;

/// By block: the edges that lead there, the first one from a block before it.
pub type Incoming<'a> = Vec<Vec<&'a Edge>>;

pub fn incoming<'a>(function: &'a Function, order: &[BlockId]) -> Incoming<'a> {
    let mut incoming: Incoming<'a> = vec![vec![]; function.blocks.len()];
    for edge in order.iter().flat_map(|&id| function.block(id).term.edges()) {
        incoming[edge.block.index()].push(edge);
    }
    incoming
}

/// How often parameters are looked at again without those that did not hold; then all are left out.
const MOST_ROUNDS: usize = 6;

/// What `attempt` finds without the parameters that are refused, once none is broken by what it takes the others for.
pub fn until_all_hold<T>(
    function: &Function,
    mut refused: BitSet,
    mut attempt: impl FnMut(&BitSet) -> (T, Vec<Value>),
) -> T {
    for round in 0.. {
        let (found, broken) = attempt(&refused);
        if broken.is_empty() {
            return found;
        }
        let all = function.blocks.iter().flat_map(|block| &block.params);
        let more: Vec<Value> = if round < MOST_ROUNDS { broken } else { all.copied().collect() };
        more.iter().for_each(|param| {
            refused.insert(param.index());
        });
    }
    unreachable!("a round without parameters is the last")
}

impl Offsets {
    /// `is_mixed`: whether lanes that come to a block have come different ways; `checks`: whether code may check what is not proven.
    pub fn of(
        function: &Function,
        ranges: &ValueRanges,
        divergences: &PerValue<Divergence>,
        is_mixed: impl Fn(usize) -> bool,
        width: u32,
        checks: bool,
    ) -> Offsets {
        let order = function.reverse_post_order();
        let incoming = incoming(function, &order);
        // Parameters whose lanes lie anywhere.
        let mut refused = BitSet::new(function.values.len());
        for (at, block) in function.blocks.iter().enumerate() {
            if at == 0 || is_mixed(at) {
                block.params.iter().for_each(|param| {
                    refused.insert(param.index());
                });
            }
        }
        let windows = window_offsets(function);
        let intervals = Rc::new(Intervals::of(function, &order, ranges));
        until_all_hold(function, refused, |refused| {
            let values = function.values.len();
            let found = Offsets {
                of: PerValue::new(values, None),
                carried: BitSet::new(values),
                checked: BitSet::new(values),
                intervals: intervals.clone(),
                windows: windows.clone(),
            };
            let mut finder = Finder { function, ranges, divergences, width, checks, found };
            finder.run(&order, &incoming, refused);
            let broken = finder.broken(&incoming);
            (finder.found, broken)
        })
    }

    /// Of a value that is neither the same in all lanes nor a line, among lanes that are there together.
    pub fn get(&self, value: Value) -> Option<&Lanes> {
        self.of[value.index()].as_ref()
    }

    /// The same where lanes that are not active have their part of it too.
    pub fn of_all_lanes(&self, value: Value) -> Option<&Lanes> {
        self.get(value).filter(|_| !self.carried.contains(value.index()))
    }

    /// Between which numbers all lanes' values lie, with their sign.
    pub fn interval(&self, value: Value, ranges: &ValueRanges) -> Option<Interval> {
        self.intervals.get(value, ranges)
    }

    /// Whether it is a widening that has to be checked.
    pub fn is_checked(&self, inst: &Inst) -> bool {
        inst.results.iter().any(|result| self.checked.contains(result.index()))
    }

    /// Where a value's lanes lie from lane 0, also where they are a line. Nothing that is assumed.
    pub fn with_lines(&self, value: Value, divergence: Divergence, width: u32) -> Option<Lanes> {
        let line = |stride: i64| (0..i64::from(width)).map(|lane| lane.wrapping_mul(stride)).collect();
        match divergence {
            Divergence::Uniform => Some(line(0)),
            Divergence::Affine { stride, assumed: false } => Some(line(stride)),
            Divergence::Affine { .. } => None,
            Divergence::Varying => self.of[value.index()].clone(),
        }
    }

    /// Whether the value is only used as an address in the shared or local window.
    pub fn is_in_window(&self, value: Value) -> bool {
        self.windows.contains(value.index())
    }
}

impl Finder<'_> {
    /// Parameters are taken to have what is known of their arguments so far.
    fn run(&mut self, order: &[BlockId], incoming: &[Vec<&Edge>], refused: &BitSet) {
        for &id in order {
            let block = self.function.block(id);
            for (nth, &param) in block.params.iter().enumerate() {
                if self.divergences[param.index()].is_varying() && !refused.contains(param.index()) {
                    let mut args = incoming[id.index()].iter().map(|edge| edge.args[nth]);
                    let lanes = args.find_map(|arg| self.lanes(arg));
                    self.found.carried.insert(param.index());
                    self.found.of[param.index()] = lanes;
                }
            }
            for inst in &block.insts {
                if let [result] = inst.results[..]
                    && self.divergences[result.index()].is_varying()
                    && inst.op.is_pure()
                    && let Some(lanes) = self.look_at(inst, result)
                {
                    if inst.args.iter().any(|arg| self.found.carried.contains(arg.index())) {
                        self.found.carried.insert(result.index());
                    }
                    self.found.of[result.index()] = Some(lanes);
                }
            }
        }
    }

    /// Parameters with an argument of other distances.
    fn broken(&self, incoming: &[Vec<&Edge>]) -> Vec<Value> {
        let mut broken = vec![];
        for (block, incoming) in self.function.blocks.iter().zip(incoming) {
            for (nth, &param) in block.params.iter().enumerate() {
                let Some(own) = self.found.get(param) else { continue };
                if incoming.iter().any(|edge| self.lanes(edge.args[nth]).is_none_or(|lanes| lanes != *own)) {
                    broken.push(param);
                }
            }
        }
        broken
    }

    fn bits(&self, value: Value) -> u32 {
        self.function.ty(value).bits()
    }

    fn lanes(&self, value: Value) -> Option<Lanes> {
        self.found.with_lines(value, self.divergences[value.index()], self.width)
    }

    fn constant(&self, value: Value) -> Option<u128> {
        self.ranges.constant(value)
    }

    /// Whether code that checks it may take the widening of `value` to keep the distances: an index of lanes that lie close together.
    fn may_check(&mut self, value: Value, result: Value) -> bool {
        let near = |lanes: Lanes| lanes.iter().all(|offset| offset.abs() < FAR);
        let may = self.checks
            && self.bits(value) == 32
            && self.divergences[value.index()].is_varying()
            && self.lanes(value).is_some_and(near);
        if may {
            self.found.checked.insert(result.index());
        }
        may
    }

    fn look_at(&mut self, inst: &Inst, result: Value) -> Option<Lanes> {
        let bits = self.bits(result);
        if !(8..=64).contains(&bits) {
            return None;
        }
        // The same modulo 2^bits, nearest to zero.
        let near = |offset: i128| signed(offset as u128, bits) as i64;
        let each = |lanes: &Lanes, change: &dyn Fn(i128) -> i128| -> Option<Lanes> {
            Some(lanes.iter().map(|&offset| near(change(offset.into()))).collect())
        };
        match &inst.op {
            Op::Bitcast | Op::Cvta { space: Space::Shared | Space::Global | Space::Const, .. } => {
                self.lanes(inst.args[0])
            }
            Op::Trunc => each(&self.lanes(inst.args[0])?, &|offset| offset),
            Op::Zext | Op::Sext => {
                let window = matches!(inst.op, Op::Zext) && self.found.is_in_window(result);
                let keeps = window
                    || self.widens(inst.args[0], matches!(inst.op, Op::Sext))
                    || self.may_check(inst.args[0], result);
                if keeps { self.lanes(inst.args[0]) } else { None }
            }
            Op::MulWide(int) => {
                let (value, by) = match (self.constant(inst.args[0]), self.constant(inst.args[1])) {
                    (_, Some(by)) => (inst.args[0], by),
                    (Some(by), _) => (inst.args[1], by),
                    _ => return None,
                };
                if !self.widens(value, int.signed) && !self.may_check(value, result) {
                    return None;
                }
                let by = if int.signed { signed(by, int.bits.into()) } else { by as i128 };
                each(&self.lanes(value)?, &|offset| offset * by)
            }
            Op::IntUn(IntUn::Neg | IntUn::Not, _) => each(&self.lanes(inst.args[0])?, &|offset| -offset),
            Op::Int(op, int) => self.binary(*op, *int, inst, &near),
            _ => None,
        }
    }

    fn binary(&self, op: IntBin, int: Int, inst: &Inst, near: &dyn Fn(i128) -> i64) -> Option<Lanes> {
        let (a, b) = (inst.args[0], inst.args[1]);
        let both = |change: &dyn Fn(i128, i128) -> i128| -> Option<Lanes> {
            let (a, b) = (self.lanes(a)?, self.lanes(b)?);
            Some(a.iter().zip(b.iter()).map(|(&a, &b)| near(change(a.into(), b.into()))).collect())
        };
        let by_constant = |value: Value, change: &dyn Fn(i128) -> i128| -> Option<Lanes> {
            Some(self.lanes(value)?.iter().map(|&offset| near(change(offset.into()))).collect())
        };
        match op {
            IntBin::Add => both(&|a, b| a + b),
            IntBin::Sub => both(&|a, b| a - b),
            IntBin::Mul => {
                let (value, by) = match (self.constant(a), self.constant(b)) {
                    (_, Some(by)) => (a, by),
                    (Some(by), _) => (b, by),
                    _ => return None,
                };
                let by = signed(by, int.bits.into());
                by_constant(value, &|offset| offset.wrapping_mul(by))
            }
            IntBin::Shl => {
                let count = self.constant(b).filter(|&count| count < u128::from(int.bits))?;
                by_constant(a, &|offset| offset << count)
            }
            // Lanes differ in low bits only, which are clear in lane 0: what is done to a bit is done by itself.
            IntBin::And | IntBin::Or | IntBin::Xor => {
                let (value, bits) = match (self.constant(a), self.constant(b)) {
                    (_, Some(bits)) => (a, bits as i128),
                    (Some(bits), _) => (b, bits as i128),
                    _ => return None,
                };
                let low = self.low(value)?;
                by_constant(value, &|offset| match op {
                    IntBin::And => offset & bits,
                    IntBin::Or => (offset | (bits & low)) - (bits & low),
                    _ => (offset ^ (bits & low)) - (bits & low),
                })
            }
            IntBin::Shr => {
                let count = self.constant(b).filter(|&count| count < u128::from(int.bits))?;
                self.low(a)?;
                by_constant(a, &|offset| offset >> count)
            }
            IntBin::Div | IntBin::Rem => {
                let by =
                    self.constant(b).filter(|by| by.is_power_of_two() && by.trailing_zeros() < 31)? as i128;
                let positive = |(_, high): (u64, u64)| high < 1 << (u32::from(int.bits) - 1);
                self.low(a)?;
                if int.signed && !self.ranges.range(a).is_some_and(positive) {
                    return None;
                }
                by_constant(a, &|offset| if op == IntBin::Div { offset / by } else { offset % by })
            }
            _ => None,
        }
    }

    /// The bits in which lanes may differ, when lane 0 has none of them.
    fn low(&self, value: Value) -> Option<i128> {
        let clear = self.ranges.divisor(value).min(40);
        let lanes = self.lanes(value)?;
        lanes.iter().all(|offset| (0..1i64 << clear).contains(offset)).then_some((1 << clear) - 1)
    }

    /// Whether widening keeps the distances: no lane's number wraps between lane 0's and its own.
    fn widens(&self, value: Value, is_signed: bool) -> bool {
        let half = 1u64 << (self.bits(value).min(64) - 1);
        if is_signed
            && self.found.interval(value, self.ranges).is_some_and(|(low, high)| high.abs_diff(low) < half)
        {
            return true;
        }
        self.ranges.range(value).is_some_and(|(low, high)| high - low < half && (!is_signed || high < half))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::divergence::Among;
    use crate::pass::regions::plan;
    use crate::pass::testing::function;
    use crate::pass::value_ranges::Threads;

    /// Of the last store's address: of all lanes, of those that are there, and where all go together.
    fn offsets_in_all(source: &str) -> [Option<Vec<i64>>; 3] {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
        let plan = plan(&function(source), threads, 0, Among::Block).unwrap();
        let region = &plan.regions[0];
        let mut insts = region.function.blocks.iter().flat_map(|block| &block.insts);
        let address = insts.rfind(|inst| matches!(inst.op, Op::Store { .. })).unwrap().args[0];
        let (any, together) = (&region.offsets, &region.offsets_together);
        [any.of_all_lanes(address), any.get(address), together.get(address)]
            .map(|lanes| lanes.map(|lanes| lanes.to_vec()))
    }

    fn offsets(source: &str) -> Option<Vec<i64>> {
        let [all, ..] = offsets_in_all(source);
        all
    }

    const TILE: &str = "t = tid; two = const.b32 2; m = const.b32 3; r = shr t two; c = and t m; w = const.b32 48; e = const.b32 4;";

    #[test]
    fn rows_and_columns_of_a_tile_are_constant_distances() {
        let source =
            format!("entry: {TILE} x = mul r w; y = mul c e; o = add x y; z = zext o; store z t; exit");
        assert_eq!(offsets(&source), Some(vec![0, 4, 8, 12, 48, 52, 56, 60]));
    }

    #[test]
    fn a_mask_that_lane_0_may_have_bits_of_is_unknown() {
        let source =
            format!("entry: {TILE} s = add t two; d = and s m; o = mul d e; z = zext o; store z t; exit");
        assert_eq!(offsets(&source), None);
    }

    /// Each lane's address goes on by `step` in each trip; lanes leave one by one.
    fn loop_by(step: &str) -> String {
        format!(
            "entry: {TILE} x = mul r w; y = mul c e; o = add x y; a = zext o; s = {step}; i = const.b32 1; jump head(a,i)\n \
             head(p:b64, n:b32): store p t; q = add64 p s; k = add n n; g = lt k t; branch g head(q,k) out\n out: exit"
        )
    }

    #[test]
    fn a_step_of_all_lanes_keeps_their_distances_among_those_that_are_there() {
        let [all, any, together] = offsets_in_all(&loop_by("const.b64 96"));
        assert_eq!((all, &any), (None, &together));
        assert_eq!(together, Some(vec![0, 4, 8, 12, 48, 52, 56, 60]));
    }

    #[test]
    fn a_step_that_each_lane_has_for_itself_does_not() {
        assert_eq!(offsets_in_all(&loop_by("zext y")), [None, None, None]);
    }

    #[test]
    fn an_index_that_goes_round_keeps_them_where_code_checks_that_it_does_not_wrap() {
        let source = format!(
            "entry: {TILE} x = mul r w; y = mul c e; o = add x y; i = const.b32 1; jump head(o,i)\n \
             head(p:b32, n:b32): a = sext p; store a t; q = add p w; k = add n n; g = lt k t; branch g head(q,k) out\n out: exit"
        );
        let [all, any, together] = offsets_in_all(&source);
        assert_eq!((all, any), (None, None));
        assert_eq!(together, Some(vec![0, 4, 8, 12, 48, 52, 56, 60]));
    }

    #[test]
    fn an_index_made_of_a_number_of_any_size_keeps_them_by_a_check_where_lanes_part_in_any_case() {
        let made = "b = ctaid; f = mul b b; x = mul r w; g = add x f; y = mul c e; o = add g y; z = sext o; store z t";
        let [all, any, together] = offsets_in_all(&format!("entry: {TILE} {made}; exit"));
        assert_eq!([all, any, together], [None, None, None]);
        let parts = "v = load q; g2 = lt v t; branch g2 one two\n one: exit\n two: store z t; exit";
        let [all, any, together] = offsets_in_all(&format!("entry: {TILE} {made}; q = zext t; {parts}"));
        assert_eq!((all, any), (None, None));
        assert_eq!(together, Some(vec![0, 4, 8, 12, 48, 52, 56, 60]));
    }

    #[test]
    fn what_a_group_shifts_and_masks_of_its_first_threads_number_begins_at_0() {
        // Of a group of eight: a row of four, two of them, and which of these.
        let source = format!(
            "entry: {TILE} s = const.b32 7; k = and t s; h = shr k two; g = add h h; f = and g two; u = shr f two; o = add f u; z = zext o; store z t; exit"
        );
        assert_eq!(offsets(&source), Some(vec![0, 0, 0, 0, 2, 2, 2, 2]));
    }

    #[test]
    fn lanes_of_two_sides_have_no_distances() {
        let source = format!(
            "entry: {TILE} x = mul r w; y = mul c e; o = add x y; a = zext o; f = const.b64 96; b = add64 a f; g = lt t e; \
             branch g one two\n one: jump out(a)\n two: store b t; jump out(b)\n out(p:b64): store p t; exit"
        );
        let [all, any, _] = offsets_in_all(&source);
        assert_eq!((all, any), (None, None));
    }

    #[test]
    fn a_row_picked_at_run_time_only_moves_lane_0() {
        let source = format!(
            "entry: {TILE} b = ctaid; k = const.b32 1023; n = and b k; f = mul n w; x = mul r w; g = add x f; y = mul c e; o = add g y; z = sext o; store z t; exit"
        );
        assert_eq!(offsets(&source), Some(vec![0, 4, 8, 12, 48, 52, 56, 60]));
    }
}
