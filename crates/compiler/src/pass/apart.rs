//! Atomic operations whose lanes all have words of their own: those of the lanes that a warp has elected, one for each key.
//!
//! A branch lets a lane through where its number is `f(x)`, a function of what the lane holds and of what all lanes have in common: the
//! leader of the lanes that have the same key, found by ballots over the key's bits. Two lanes whose `x` agree in the bits that `f` looks
//! at have the same `f(x)`, which is one lane's number, so lanes that are let through differ in those bits; and an address
//! `base + (x << s)` that keeps those bits differs as well, by a word at least.

use std::collections::HashMap;

use super::bits::BitSet;
use super::divergence::Divergence;
use super::loops::Loops;
use super::per_value::PerValue;
use super::value_ranges::ValueRanges;
use super::visit::Definition;
use crate::ir::*;

/// Values that one condition is made of, at most.
const MOST: usize = 256;

/// What the region of a kernel is asked of.
pub struct View<'a> {
    pub function: &'a Function,
    pub definitions: &'a [Definition],
    pub loops: &'a Loops,
    pub divergences: &'a PerValue<Divergence>,
    /// Values that are the same for a whole block.
    pub is_prologue: &'a BitSet,
    pub ranges: &'a ValueRanges,
}

/// A value that an address tells apart: addresses that are the same have the same low bits of it.
pub(super) struct Told {
    pub(super) value: Value,
    bits: u32,
    /// Addresses that differ do so by a multiple of `1 << shift`.
    shift: u32,
}

impl View<'_> {
    /// Whether no two active lanes access the same bytes when block `at` accesses `bytes` bytes each by `address`.
    pub fn holds(&self, at: usize, address: Value, bytes: u32) -> bool {
        let Some(number) = self.elected(at) else { return false };
        let told = self.told(address);
        let wide: Vec<&Told> = told.iter().filter(|told| 1 << told.shift.min(31) >= bytes).collect();
        !wide.is_empty() && self.is_function(number, &wide, &mut HashMap::new())
    }

    /// The value that is the lane's own number where the block is entered.
    pub(super) fn elected(&self, at: usize) -> Option<Value> {
        let mut sources = self.function.blocks.iter().enumerate().flat_map(|(from, block)| {
            block.term.edges().into_iter().filter(|edge| edge.block.index() == at).map(move |_| from)
        });
        let (Some(from), None) = (sources.next(), sources.next()) else { return None };
        // Lanes that leave a loop in different trips would be in the block together.
        if self.loops.of[from] != self.loops.of[at] || self.loops.is_header(at) {
            return None;
        }
        let Term::Branch { cond, then, .. } = &self.function.blocks[from].term else { return None };
        let inst = self.inst(*cond)?;
        let is_then = then.block.index() == at;
        match inst.op {
            Op::Icmp(Cmp::Eq, int) if is_then && int.bits == 32 => {}
            Op::Icmp(Cmp::Ne, int) if !is_then && int.bits == 32 => {}
            _ => return None,
        }
        // No two lanes' numbers are the same modulo 2^32.
        let is_number = |value: Value| {
            matches!(self.divergence(value), Divergence::Affine { stride: 1..=0xffff, assumed: false })
        };
        match inst.args[..] {
            [number, value] | [value, number] if is_number(number) && !is_number(value) => Some(value),
            _ => None,
        }
    }

    pub(super) fn inst(&self, value: Value) -> Option<&Inst> {
        match self.definitions[value.index()] {
            Definition::Inst(at, nth, 0) => Some(&self.function.blocks[at].insts[nth]),
            _ => None,
        }
    }

    fn divergence(&self, value: Value) -> Divergence {
        if self.is_prologue.contains(value.index()) {
            Divergence::Uniform
        } else {
            self.divergences[value.index()]
        }
    }

    fn is_uniform(&self, value: Value) -> bool {
        self.divergence(value).is_uniform()
    }

    /// The values on the way to an address: what is added is the same for all lanes, and what is shifted out is lost.
    pub(super) fn told(&self, address: Value) -> Vec<Told> {
        let mut all = vec![];
        let (mut value, mut shift, mut bits) = (address, 0, 64);
        loop {
            let width = self.function.ty(value).bits();
            if !matches!(width, 32 | 64) {
                return all;
            }
            bits = bits.min(width);
            all.push(Told { value, bits, shift });
            let Some(inst) = self.inst(value) else { return all };
            value = match (&inst.op, &inst.args[..]) {
                (Op::Zext | Op::Sext, &[narrow]) => narrow,
                (Op::Int(IntBin::Add, _), &[a, b]) if self.is_uniform(b) => a,
                (Op::Int(IntBin::Add, _), &[a, b]) if self.is_uniform(a) => b,
                (Op::Int(op @ (IntBin::Shl | IntBin::Mul), _), &[a, by]) => {
                    let Some(by) = self.ranges.constant(by) else { return all };
                    let count = match op {
                        IntBin::Shl => by,
                        _ if by.is_power_of_two() => by.trailing_zeros().into(),
                        _ => return all,
                    };
                    let Some(left) = u128::from(bits).checked_sub(count).filter(|&left| left > 0) else {
                        return all;
                    };
                    shift += count as u32;
                    bits = left as u32;
                    a
                }
                _ => return all,
            };
        }
    }

    /// Whether the value is the same for lanes that agree in what the address tells.
    fn is_function(&self, value: Value, told: &[&Told], known: &mut HashMap<Value, bool>) -> bool {
        if self.is_uniform(value) {
            return true;
        }
        if let Some(&known) = known.get(&value) {
            return known;
        }
        if known.len() >= MOST {
            return false;
        }
        known.insert(value, false);
        let is = self.inst(value).is_some_and(|inst| {
            let is_plain = inst.op.is_pure() && !inst.args.is_empty() && !matches!(inst.op, Op::Cvta { .. });
            is_plain
                && (self.keeps_told_bits(inst, told)
                    || inst.args.iter().all(|&arg| self.is_function(arg, told, known)))
        });
        known.insert(value, is);
        is
    }

    /// `x & c` with nothing in `c` that the address does not tell.
    fn keeps_told_bits(&self, inst: &Inst, told: &[&Told]) -> bool {
        let (Op::Int(IntBin::And, int), &[a, b]) = (&inst.op, &inst.args[..]) else { return false };
        [(a, b), (b, a)].into_iter().any(|(value, by)| {
            let kept = self.ranges.constant(by).map(|by| by & ((1u128 << int.bits) - 1));
            kept.is_some_and(|kept| told.iter().any(|told| told.value == value && kept >> told.bits == 0))
        })
    }
}
