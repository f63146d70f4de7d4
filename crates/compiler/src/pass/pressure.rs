//! How much a thread's code asks of the CPU's vector registers, and how much of it waits for what came just before.
//!
//! A group's values are several registers each. Many of them keep the CPU's units busy where operations wait for each
//! other; but where more live at a time than there are registers, operations come with loads and stores.

use std::collections::HashMap;

use super::bits::BitSet;
use super::liveness::live_in;
use super::regions::Region;
use super::visit::term_values;
use crate::ir::{FloatBin, FloatUn, Inst, IntBin, Op, Ty, Value};

/// Trips a loop is taken to make.
pub const TRIPS: f64 = 8.0;

/// What one lane of a group asks for. Only what differs from lane to lane counts, operations in loops by their trips.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pressure {
    pub operations: f64,
    /// Bits that the operations compute, all together.
    pub work: f64,
    /// Cycles of the operations that wait for each other.
    pub chain: f64,
    /// Bits that live at the mean operation.
    pub live: f64,
}

impl Pressure {
    /// In time that grows with the region's instructions and what lives between its blocks.
    pub fn of(region: &Region) -> Pressure {
        let live = live_in(&region.function);
        let mut sum = Pressure::default();
        for at in 0..region.function.blocks.len() {
            let block = of_block(region, at, &live);
            let mut often = 1.0;
            let mut around = region.loops.of[at];
            while let Some(index) = around {
                often *= TRIPS;
                around = region.loops.all[index].parent;
            }
            sum.operations += often * block.operations;
            sum.work += often * block.work;
            sum.chain += often * block.chain;
            sum.live += often * block.live * block.work;
        }
        sum.live /= sum.work.max(1.0);
        sum
    }

    /// Of the mean operation's result.
    pub fn bits(&self) -> f64 {
        self.work / self.operations.max(1.0)
    }
}

fn of_block(region: &Region, at: usize, live: &[BitSet]) -> Pressure {
    let block = &region.function.blocks[at];
    let bits =
        |value: Value| match (region.together.of[value.index()].is_varying(), region.function.ty(value)) {
            (false, _) => 0.0,
            // A mask has lanes as wide as what it is for.
            (true, Ty::Pred) => 32.0,
            (true, ty) => f64::from(ty.bits()),
        };
    let results = |inst: &Inst| inst.results.iter().map(|&it| bits(it)).sum::<f64>();
    let mut sum = Pressure::default();
    // When each value is there, in cycles after the start of the block.
    let mut ready: HashMap<Value, f64> = HashMap::new();
    for inst in block.insts.iter().filter(|inst| results(inst) > 0.0) {
        let (operations, cycles) = cost(inst);
        let start = inst.args.iter().filter_map(|arg| ready.get(arg)).copied().fold(0.0, f64::max);
        ready.extend(inst.results.iter().map(|&result| (result, start + cycles)));
        sum.chain = sum.chain.max(start + cycles);
        sum.operations += operations;
        sum.work += operations * results(inst);
    }
    let mut alive = BitSet::default();
    for edge in block.term.edges() {
        alive.union(&live[edge.block.index()]);
    }
    for value in term_values(&block.term) {
        alive.insert(value.index());
    }
    let mut now: f64 = alive.iter().map(|index| bits(Value(index as u32))).sum();
    for inst in block.insts.iter().rev() {
        sum.live += now * cost(inst).0 * results(inst);
        for value in &inst.results {
            if alive.remove(value.index()) {
                now -= bits(*value);
            }
        }
        for value in &inst.args {
            if alive.insert(value.index()) {
                now += bits(*value);
            }
        }
    }
    sum.live /= sum.work.max(1.0);
    sum
}

/// Operations on vectors of a CPU that has no rotates of them, and cycles until their result is there.
fn cost(inst: &Inst) -> (f64, f64) {
    match &inst.op {
        Op::Const(_) | Op::Bitcast => (0.0, 0.0),
        Op::Shf { .. } => (3.0, 2.0),
        Op::Int(IntBin::Mul | IntBin::MulHi, _) | Op::MulWide(_) => (2.0, 4.0),
        Op::Int(IntBin::Div | IntBin::Rem, _) => (20.0, 20.0),
        Op::Float(FloatBin::Div | FloatBin::DivApprox | FloatBin::DivFull, ..) => (4.0, 11.0),
        Op::FloatUn(FloatUn::Neg | FloatUn::Abs, ..) => (1.0, 1.0),
        Op::FloatUn(..) => (10.0, 20.0),
        Op::Float(..) | Op::Fma(..) => (1.0, 4.0),
        Op::Load { .. } => (1.0, 5.0),
        _ => (1.0, 1.0),
    }
}
