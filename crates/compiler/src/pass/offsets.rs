//! Values whose lanes lie at constant distances from lane 0's without being a line: `2·t - (t & 3)`, the row and column
//! of a tile. Their accesses are vectors of the memory in between, with constant shuffles (`back/simd/window.rs`).
//!
//! Lane `k` has lane 0's value plus its offset, modulo 2^bits, in every group alike. Only chains of pure operations are
//! followed, so all lanes of the vector hold what the chain says, also those that are not active.

use std::rc::Rc;

use super::bits::BitSet;
use super::divergence::{Divergence, window_offsets};
use super::per_value::PerValue;
use super::value_ranges::{ValueRanges, signed};
use crate::ir::*;

/// One offset per lane; lane 0's is 0.
pub type Lanes = Rc<[i64]>;

pub struct Offsets {
    of: PerValue<Option<Lanes>>,
    /// Values that are only used as addresses in the shared or local window.
    windows: BitSet,
}

struct Finder<'a> {
    function: &'a Function,
    ranges: &'a ValueRanges,
    divergences: &'a PerValue<Divergence>,
    width: i64,
    found: Offsets,
}

impl Offsets {
    pub fn of(
        function: &Function,
        ranges: &ValueRanges,
        divergences: &PerValue<Divergence>,
        width: u32,
    ) -> Offsets {
        let found =
            Offsets { of: PerValue::new(function.values.len(), None), windows: window_offsets(function) };
        let mut finder = Finder { function, ranges, divergences, width: width.into(), found };
        for id in function.reverse_post_order() {
            for inst in &function.block(id).insts {
                if let [result] = inst.results[..]
                    && divergences[result.index()].is_varying()
                    && inst.op.is_pure()
                    && let Some(lanes) = finder.look_at(inst, result)
                {
                    finder.found.of[result.index()] = Some(lanes);
                }
            }
        }
        finder.found
    }

    /// Of a value that is neither the same in all lanes nor a line.
    pub fn get(&self, value: Value) -> Option<&Lanes> {
        self.of[value.index()].as_ref()
    }

    /// Whether the value is only used as an address in the shared or local window.
    pub fn is_in_window(&self, value: Value) -> bool {
        self.windows.contains(value.index())
    }
}

impl Finder<'_> {
    fn bits(&self, value: Value) -> u32 {
        self.function.ty(value).bits()
    }

    fn lanes(&self, value: Value) -> Option<Lanes> {
        let line = |stride: i64| (0..self.width).map(|lane| lane.wrapping_mul(stride)).collect();
        match self.divergences[value.index()] {
            Divergence::Uniform => Some(line(0)),
            Divergence::Affine { stride, assumed: false } => Some(line(stride)),
            Divergence::Affine { .. } => None,
            Divergence::Varying => self.found.of[value.index()].clone(),
        }
    }

    fn constant(&self, value: Value) -> Option<u128> {
        self.ranges.constant(value)
    }

    fn look_at(&self, inst: &Inst, result: Value) -> Option<Lanes> {
        let bits = self.bits(result);
        if !(8..=64).contains(&bits) {
            return None;
        }
        // The same modulo 2^bits, nearest to zero.
        let near = |offset: i128| signed(offset as u128, bits) as i64;
        let each = |lanes: &Lanes, change: &dyn Fn(i128) -> i128| -> Option<Lanes> {
            Some(lanes.iter().map(|&offset| near(change(offset.into()))).collect())
        };
        let arg = |nth: usize| self.lanes(inst.args[nth]);
        match &inst.op {
            Op::Bitcast | Op::Cvta { space: Space::Shared | Space::Global | Space::Const, .. } => arg(0),
            Op::Trunc => each(&arg(0)?, &|offset| offset),
            Op::Zext | Op::Sext => {
                let window = matches!(inst.op, Op::Zext) && self.found.is_in_window(result);
                let keeps = window || self.widens(inst.args[0], matches!(inst.op, Op::Sext));
                if keeps { arg(0) } else { None }
            }
            Op::MulWide(int) => {
                let (value, by) = match (self.constant(inst.args[0]), self.constant(inst.args[1])) {
                    (_, Some(by)) => (inst.args[0], by),
                    (Some(by), _) => (inst.args[1], by),
                    _ => return None,
                };
                if !self.widens(value, int.signed) {
                    return None;
                }
                let by = if int.signed { signed(by, int.bits.into()) } else { by as i128 };
                each(&self.lanes(value)?, &|offset| offset * by)
            }
            Op::IntUn(IntUn::Neg | IntUn::Not, _) => each(&arg(0)?, &|offset| -offset),
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

    /// Of the last store's address.
    fn offsets(source: &str) -> Option<Vec<i64>> {
        let threads = Threads { block: [256, 1, 1], open: false, width: 8, assumes: true };
        let plan = plan(&function(source), threads, 0, Among::Block).unwrap();
        let region = &plan.regions[0];
        let mut insts = region.function.blocks.iter().flat_map(|block| &block.insts);
        let store = insts.rfind(|inst| matches!(inst.op, Op::Store { .. })).unwrap();
        region.offsets.get(store.args[0]).map(|lanes| lanes.to_vec())
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

    #[test]
    fn a_row_picked_at_run_time_only_moves_lane_0() {
        let source = format!(
            "entry: {TILE} b = ctaid; k = const.b32 1023; n = and b k; f = mul n w; x = mul r w; g = add x f; y = mul c e; o = add g y; z = sext o; store z t; exit"
        );
        assert_eq!(offsets(&source), Some(vec![0, 4, 8, 12, 48, 52, 56, 60]));
    }
}
