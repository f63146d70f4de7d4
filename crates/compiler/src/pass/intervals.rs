//! Between which numbers values lie, read with their sign: [`ValueRanges`] reads them without one, and knows nothing of a value that is
//! negative for some threads.

use std::collections::HashMap;

use super::value_ranges::{ValueRanges, signed};
use crate::ir::*;

/// Smallest and largest.
pub type Interval = (i64, i64);

pub struct Intervals {
    /// Of values of which `ValueRanges` does not say it.
    of: HashMap<Value, Interval>,
}

impl Intervals {
    pub fn of(function: &Function, order: &[BlockId], ranges: &ValueRanges) -> Intervals {
        let mut found = Intervals { of: HashMap::new() };
        for inst in order.iter().flat_map(|&id| &function.block(id).insts) {
            if let [result] = inst.results[..]
                && matches!(function.ty(result).bits(), 32 | 64)
                && inst.op.is_pure()
                && found.get(result, ranges).is_none()
                && let Some(interval) = found.result(inst, function.ty(result).bits(), ranges)
            {
                found.of.insert(result, interval);
            }
        }
        found
    }

    /// Of a value of the function that this was made for, among all threads.
    pub fn get(&self, value: Value, ranges: &ValueRanges) -> Option<Interval> {
        if let Some(noted) = self.of.get(&value) {
            return Some(*noted);
        }
        let (low, high) = ranges.range(value)?;
        let half = 1u64 << (ranges.bits(value).clamp(1, 64) - 1);
        (high < half).then_some((low as i64, high as i64))
    }

    /// What operations make that a negative number comes from, or goes through.
    fn result(&self, inst: &Inst, bits: u32, ranges: &ValueRanges) -> Option<Interval> {
        let of = |nth: usize| self.get(inst.args[nth], ranges);
        let (low, high) = match &inst.op {
            &Op::Const(number) => {
                let number = signed(number, bits) as i64;
                (number, number)
            }
            Op::Int(IntBin::Sub, _) => {
                let ((low, high), (least, most)) = (of(0)?, of(1)?);
                (low.checked_sub(most)?, high.checked_sub(least)?)
            }
            Op::Int(IntBin::Add, _) => {
                let ((low, high), (least, most)) = (of(0)?, of(1)?);
                (low.checked_add(least)?, high.checked_add(most)?)
            }
            Op::IntUn(IntUn::Not, _) => of(0).map(|(low, high)| (!high, !low))?,
            Op::Sext => of(0)?,
            Op::MulWide(int) if int.signed => {
                let ((low, high), (by, same)) = (of(0)?, of(1)?);
                (by == same && by >= 0).then_some((low.checked_mul(by)?, high.checked_mul(by)?))?
            }
            _ => return None,
        };
        let fits = |end: i64| bits == 64 || i32::try_from(end).is_ok();
        (fits(low) && fits(high)).then_some((low, high))
    }
}
