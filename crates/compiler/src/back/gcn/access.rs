//! Loads, stores and atomic operations.

use super::code::{Code, Result};
use super::wide::Wide;
use crate::back::llvm::{Type, Unsupported, Val, memory};
use crate::ir::{AtomTy, Inst, Mem, Op, Order, Space};

impl Code<'_> {
    pub fn access(&mut self, inst: &Inst, args: &[Val], results: &[Type]) -> Result<Vec<Val>> {
        Ok(match &inst.op {
            Op::Load { space, mem, offset, order, scope } => {
                let at = self.pointer(*space, &args[0], *offset);
                match order {
                    _ if is_wide(*mem, *order) => {
                        let value = self.wide(&at, Wide::Load);
                        vec![self.b.bitcast(&value, results[0])]
                    }
                    Order::Weak if results.len() > 1 => self.load_vector(&at, *mem, results),
                    _ => memory::load(&mut self.b, &at, *mem, (*order, *scope), results),
                }
            }
            Op::Store { space, mem, offset, order, scope } => {
                writable(*space)?;
                let at = self.pointer(*space, &args[0], *offset);
                match order {
                    _ if is_wide(*mem, *order) => {
                        self.wide(&at, Wide::Exchange(&args[1]));
                    }
                    Order::Weak if args.len() > 2 => self.store_vector(&at, *mem, &args[1..]),
                    _ => memory::store(&mut self.b, &at, *mem, (*order, *scope), &args[1..]),
                }
                vec![]
            }
            Op::Atomic { space, op, ty, offset, order, scope } => {
                writable(*space)?;
                let at = self.pointer(*space, &args[0], *offset);
                let to = results.first().copied().unwrap_or(args[1].ty);
                if *ty == AtomTy::B128 {
                    let what = match args {
                        [_, compare, new] => Wide::CompareAndSwap { compare, new },
                        _ => Wide::Exchange(&args[1]),
                    };
                    let old = self.wide(&at, what);
                    let old = self.b.bitcast(&old, to);
                    return Ok(results.first().map(|_| old).into_iter().collect());
                }
                let old = memory::atomic(&mut self.b, &at, *op, *ty, (*order, *scope), &args[1..], to)?;
                results.first().map(|_| old).into_iter().collect()
            }
            _ => return Err(Unsupported(String::new())),
        })
    }

    /// All elements by one instruction: PTX demands the alignment of the whole.
    fn load_vector(&mut self, at: &Val, mem: Mem, results: &[Type]) -> Vec<Val> {
        let vector = Type { lanes: results.len() as u32, ..Type::int(u32::from(mem.bits), 1) };
        let bytes = u32::from(mem.bits) / 8 * vector.lanes;
        let all = self.b.assign(vector, format_args!("load {vector}, {}, align {bytes}", at.typed()));
        let mut values = vec![];
        for (lane, to) in results.iter().enumerate() {
            let element = Type::int(u32::from(mem.bits), 1);
            let one = self.b.assign(element, format_args!("extractelement {}, i32 {lane}", all.typed()));
            let sized = self.b.resize(&one, to.bits(), mem.signed);
            values.push(self.b.bitcast(&sized, *to));
        }
        values
    }

    fn store_vector(&mut self, at: &Val, mem: Mem, elements: &[Val]) {
        let vector = Type { lanes: elements.len() as u32, ..Type::int(u32::from(mem.bits), 1) };
        let bytes = u32::from(mem.bits) / 8 * vector.lanes;
        let mut all = Val::new(vector, "undef");
        for (lane, element) in elements.iter().enumerate() {
            let bits = self.b.to_bits(element);
            let one = self.b.resize(&bits, u32::from(mem.bits), false);
            let inserted = format!("insertelement {}, {}, i32 {lane}", all.typed(), one.typed());
            all = self.b.assign(vector, inserted);
        }
        self.b.inst(format_args!("store {}, {}, align {bytes}", all.typed(), at.typed()));
    }
}

/// Others are to see all of it or nothing.
fn is_wide(mem: Mem, order: Order) -> bool {
    mem.bits > 64 && order != Order::Weak
}

fn writable(space: Space) -> Result {
    match space {
        Space::Const | Space::Param => Err(Unsupported(format!("a write to {space:?} memory"))),
        _ => Ok(()),
    }
}
