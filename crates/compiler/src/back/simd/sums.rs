//! Sums of matrix products that are called: the function adds to them in memory, where the next product finds them.
//!
//! Nothing is read from there before somebody asks, so a chain of products whose sums nobody else reads is calls only.

use std::collections::HashMap;

use super::Emitter;
use super::matrix::{operands, register_bytes};
use crate::back::llvm::Val;
use crate::ir::{Function, Inst, Op, Value};
use crate::matrix::{Mma, Part};
use crate::pass::visit::for_each_use;

/// Sums of the block being written that are in memory at a time: 64 products' of 16 × 16 are 64 KiB.
const MOST: usize = 64;

#[derive(Default)]
pub(super) struct Sums {
    /// How often the region's code names each result of a product.
    uses: HashMap<Value, usize>,
    /// Those used last at the end.
    held: Vec<Sum>,
}

#[derive(Clone)]
struct Sum {
    place: String,
    number: usize,
    bytes: u64,
    registers: Vec<Value>,
}

impl Sums {
    /// For the region whose code this is.
    pub(super) fn of(function: &Function) -> Sums {
        let mut uses = HashMap::new();
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        for inst in insts.filter(|inst| matches!(inst.op, Op::Mma(_))) {
            uses.extend(inst.results.iter().map(|&result| (result, 0)));
        }
        if !uses.is_empty() {
            for block in &function.blocks {
                for_each_use(block, |value| {
                    if let Some(count) = uses.get_mut(&value) {
                        *count += 1;
                    }
                });
            }
        }
        Sums { uses, held: vec![] }
    }

    /// Another block is written.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

impl Emitter<'_> {
    /// Where the function finds a product's C and leaves its D.
    pub(super) fn sum_of(&mut self, mma: &Mma, inst: &Inst) -> String {
        let [_, _, c] = operands(mma, inst);
        let bytes = register_bytes(mma) * u64::from(mma.registers(Part::C).max(mma.registers(Part::D)));
        let held = self.sums.held.iter().position(|sum| sum.registers == c && sum.bytes == bytes);
        let is_last = c.iter().all(|value| self.sums.uses.get(value) == Some(&1));
        let mut sum = match held.filter(|_| is_last) {
            Some(at) => self.sums.held.remove(at),
            None => {
                let vectors = self.vectors_of(c);
                let sum = self.new_sum(bytes);
                for (nth, val) in (0..).zip(&vectors) {
                    let at = self.register_at(&sum.place, nth * register_bytes(mma));
                    self.b.inst(format_args!("store {}, ptr {at}, align 64", val.typed()));
                }
                sum
            }
        };
        sum.registers.clone_from(&inst.results);
        let place = sum.place.clone();
        self.sums.held.push(sum);
        place
    }

    /// Memory for sums: some that is free, or that of those not used for the longest time, which become registers.
    fn new_sum(&mut self, bytes: u64) -> Sum {
        let mut same = self.sums.held.iter().enumerate().filter(|(_, sum)| sum.bytes == bytes);
        let oldest = same.next().map(|(at, _)| at);
        let count = oldest.map_or(0, |_| 1 + same.count());
        let number = match oldest.filter(|_| count >= MOST) {
            Some(at) => {
                let sum = self.sums.held[at].clone();
                self.vectors_of(&sum.registers);
                self.sums.held.remove(at);
                sum.number
            }
            None => (0..).find(|number| self.sums.held.iter().all(|sum| sum.bytes != bytes || sum.number != *number)).unwrap_or(0),
        };
        let place = self.registers(&format!("sum{number}."), bytes);
        Sum { place, number, bytes, registers: vec![] }
    }

    /// A result of the function stays in memory until it is asked for, unless another block reads it.
    pub(super) fn define_sum(&mut self, result: Value) {
        if self.crossing.contains(result.index()) {
            let val = self.vector(result);
            self.define_vector(result, val);
        }
    }

    /// What the function has left in memory for a result.
    pub(super) fn read_sum(&mut self, value: Value) -> Option<Val> {
        self.sums.uses.get(&value)?;
        let sum = self.sums.held.iter().find(|sum| sum.registers.contains(&value))?.clone();
        let nth = sum.registers.iter().position(|register| *register == value)?;
        let ty = self.vector_ty(self.ty(value));
        let bytes = u64::from(ty.lanes * ty.bits() / 8);
        let at = self.register_at(&sum.place, nth as u64 * bytes);
        Some(self.b.assign(ty, format_args!("load {ty}, ptr {at}, align 64")))
    }
}
