//! Values that depend on nothing but the launch, the block and the thread: the same wherever they are computed.

use super::bits::BitSet;
use crate::ir::{Function, Op, Order, Space, Special};

pub struct Invariant {
    /// The same for every thread of a block, and free to compute at its start.
    pub block: BitSet,
    /// A pure function of the thread; contains `block`.
    pub thread: BitSet,
}

/// Who sees the same value of a special register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Same {
    Block,
    Thread,
    /// Changes with time.
    Never,
}

pub fn special(register: Special) -> Same {
    use Special::*;
    match register {
        Tid(_) | LaneId | WarpId | LaneMaskEq | LaneMaskLe | LaneMaskLt | LaneMaskGe | LaneMaskGt => {
            Same::Thread
        }
        Clock | ClockHi | Clock64 | GlobalTimer | GlobalTimerLo | GlobalTimerHi => Same::Never,
        _ => Same::Block,
    }
}

impl Invariant {
    pub fn of(function: &Function) -> Invariant {
        let mut block = BitSet::new(function.values.len());
        let mut thread = BitSet::new(function.values.len());
        for id in function.reverse_post_order() {
            for inst in &function.block(id).insts {
                let of = match &inst.op {
                    Op::Special(register) => special(*register),
                    Op::LocalAddr(_) => Same::Block,
                    Op::Cvta { space: Space::Local, .. } | Op::IsSpace(_) => Same::Thread,
                    Op::Load { space: Space::Param, order: Order::Weak, .. } => Same::Block,
                    op if op.is_pure() => Same::Block,
                    _ => Same::Never,
                };
                let all = |set: &BitSet| inst.args.iter().all(|arg| set.contains(arg.index()));
                for result in &inst.results {
                    if of == Same::Block && all(&block) {
                        block.insert(result.index());
                    }
                    if of != Same::Never && all(&thread) && !matches!(inst.op, Op::Load { .. }) {
                        thread.insert(result.index());
                    }
                    if block.contains(result.index()) {
                        thread.insert(result.index());
                    }
                }
            }
        }
        Invariant { block, thread }
    }
}
