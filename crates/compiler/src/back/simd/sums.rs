//! Sums of matrix products that are called: the function adds to them in memory, where the next product finds them.
//!
//! Nothing is read from there before somebody asks, so a chain of products whose sums nobody else reads is calls only.
//! Where the chain begins with sums that are in the block's context, it goes on in their place there, and the region's
//! last product leaves them where the next region looks for them.

use std::collections::HashMap;

use super::{Emitter, Place, Spot};
use crate::back::llvm::Val;
use crate::ir::{Function, Inst, Op, Value};
use crate::matrix;
use crate::pass::places::is_plain;
use crate::pass::visit::count_uses;

/// Sums of the block being written that have memory of their own at a time, of each size: 64 products' of 16 × 16 are 64 KiB, and
/// more it should not be.
const MOST: usize = 64;
const MOST_BYTES: u64 = 64 << 10;

#[derive(Default)]
pub(super) struct Sums {
    /// How often the region's code names each value that is a sum.
    uses: HashMap<Value, usize>,
    /// Those of the block being written, those used last at the end.
    held: Vec<Sum>,
}

#[derive(Clone)]
struct Sum {
    place: String,
    home: Home,
    registers: Vec<Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Home {
    /// Memory of its own, by its number among those with as many bytes.
    Own { number: usize, bytes: u64 },
    /// The context, with the first register's offset there.
    Context { at: u64 },
}

impl Sums {
    /// For the region whose code this is.
    pub(super) fn of(function: &Function) -> Sums {
        let mut values = vec![];
        for inst in function.blocks.iter().flat_map(|block| &block.insts) {
            match &inst.op {
                Op::Mma(mma) => values.extend(mma.operands(inst)[2].iter().chain(&inst.results)),
                Op::Wgmma(wgmma) => values.extend(wgmma.operands(inst).d.iter().chain(&inst.results)),
                _ => {}
            }
        }
        Sums { uses: count_uses(function, values), held: vec![] }
    }

    /// Another block is written.
    pub(super) fn clear(&mut self) {
        self.held.clear();
    }
}

impl Emitter<'_> {
    /// Sums that a region finds in the context and adds to have neighbouring places there.
    pub(super) fn lay_out_sums(&mut self) {
        let mut groups: Vec<(Vec<Value>, u64)> = vec![];
        for region in &self.plan.regions {
            let Some(entry) = region.function.blocks.first() else { continue };
            let found: HashMap<Value, usize> =
                entry.params.iter().enumerate().map(|(nth, &param)| (param, nth)).collect();
            for inst in region.function.blocks.iter().flat_map(|block| &block.insts) {
                let is_called = match &inst.op {
                    Op::Mma(mma) => self.calls(mma),
                    op => matches!(op, Op::Wgmma(_)),
                };
                let Some(sum) = matrix::Sum::of(inst).filter(|_| is_called) else { continue };
                let saved = sum.before.iter().map(|value| Some(&region.saved[*found.get(value)?]));
                let Some(saved) = saved.collect::<Option<Vec<_>>>() else { continue };
                if saved.iter().all(|each| is_plain(each)) {
                    let owners = saved.iter().map(|each| self.plan.places.owner(each.value)).collect();
                    groups.push((owners, sum.register_bytes));
                }
            }
        }
        for (owners, bytes) in groups {
            let is_new = |(nth, owner): (usize, &Value)| {
                !self.places.contains_key(owner) && !owners[..nth].contains(owner)
            };
            if !owners.iter().enumerate().all(is_new) {
                continue;
            }
            let stride = bytes * owners.len() as u64;
            let first = self.reserve(stride * self.groups);
            for (nth, &owner) in (0..).zip(&owners) {
                let spot = Spot { at: first + nth * bytes, stride };
                self.places.insert(owner, Place { vector: Some(spot), ..Place::default() });
            }
        }
    }

    /// Where the function finds what a product adds to, registers `c` of so many bytes, and leaves its results, which may be more
    /// bytes in all.
    pub(super) fn sum_of(&mut self, c: &[Value], register_bytes: u64, most: u64, inst: &Inst) -> String {
        let bytes = most.max(register_bytes * c.len() as u64);
        let held = self.sums.held.iter().position(|sum| sum.registers == c);
        let adds = matrix::Sum::of(inst).is_some();
        let is_last = adds && c.iter().all(|value| self.sums.uses.get(value) == Some(&1));
        let mut sum = match held.filter(|_| is_last) {
            Some(at) => self.sums.held.remove(at),
            None => match self.sum_in_context(c, register_bytes).filter(|_| is_last) {
                Some(sum) => sum,
                None => self.new_sum(c, register_bytes, bytes),
            },
        };
        sum.registers.clone_from(&inst.results);
        let place = sum.place.clone();
        self.sums.held.push(sum);
        place
    }

    /// Sums that are side by side in the context, and read by this block only.
    fn sum_in_context(&mut self, c: &[Value], bytes: u64) -> Option<Sum> {
        let mut first: Option<Spot> = None;
        for (nth, value) in (0..).zip(c) {
            let saved = &self.here().saved[*self.in_place.get(value)?];
            let spot = self.places[&saved.value].vector?;
            let first = *first.get_or_insert(spot);
            if spot.at != first.at + nth * bytes || spot.stride != bytes * c.len() as u64 {
                return None;
            }
        }
        let Spot { at, stride } = first?;
        Some(Sum { place: self.in_context(at, stride), home: Home::Context { at }, registers: vec![] })
    }

    /// Memory with these sums in it.
    fn new_sum(&mut self, c: &[Value], register_bytes: u64, bytes: u64) -> Sum {
        let vectors = self.vectors_of(c);
        let number = self.free_number(bytes);
        let place = self.registers(&format!("sum{number}."), bytes);
        self.store_registers(&vectors, &place, register_bytes);
        Sum { place, home: Home::Own { number, bytes }, registers: vec![] }
    }

    /// Of memory that is free, or of that whose sums were not used for the longest time: they become registers.
    fn free_number(&mut self, bytes: u64) -> usize {
        let numbers = self.sums.held.iter().enumerate().filter_map(|(at, sum)| match sum.home {
            Home::Own { number, bytes: own } if own == bytes => Some((at, number)),
            _ => None,
        });
        let taken: Vec<(usize, usize)> = numbers.collect();
        let most = (MOST_BYTES / bytes).clamp(1, MOST as u64);
        if (taken.len() as u64) < most {
            return (0..).find(|number| taken.iter().all(|(_, other)| other != number)).unwrap_or_default();
        }
        let (oldest, number) = taken[0];
        let registers = self.sums.held[oldest].registers.clone();
        self.vectors_of(&registers);
        self.sums.held.remove(oldest);
        number
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
        let (sum, nth) = self.held_sum(value)?;
        let place = sum.place.clone();
        let ty = self.vector_ty(self.ty(value));
        let bytes = u64::from(ty.lanes * ty.bits() / 8);
        let at = self.register_at(&place, nth * bytes);
        Some(self.b.assign(ty, format_args!("load {ty}, ptr {at}, align 64")))
    }

    /// Whether the function has left a result in this place of the context.
    pub(super) fn is_summed_at(&self, value: Value, spot: Spot) -> bool {
        let bytes = u64::from(self.lanes * self.ty(value).bits() / 8);
        let is_there = |(sum, nth): (&Sum, u64)| match sum.home {
            Home::Context { at } => at + nth * bytes == spot.at,
            Home::Own { .. } => false,
        };
        self.held_sum(value).is_some_and(is_there)
    }

    /// The sum that has a value, and which of its registers it is.
    fn held_sum(&self, value: Value) -> Option<(&Sum, u64)> {
        self.sums.uses.get(&value)?;
        self.sums.held.iter().find_map(|sum| {
            let nth = sum.registers.iter().position(|register| *register == value)?;
            Some((sum, nth as u64))
        })
    }
}
