//! What is loaded only to be stored, as `cp.async` and assignments of vectors do. Where the lanes of one side lie apart,
//! it goes from memory to memory in the pieces that both sides have side by side, and never becomes a vector for each
//! element.

use std::collections::HashMap;

use super::memory::Access;
use super::{Copy, Emitter};
use crate::back::llvm::{Builder, Type, Val, memory};
use crate::ir::{CopyAsync, Function, Inst, Op, Order, Space, Value};
use crate::pass::divergence::Divergence;
use crate::pass::visit::count_uses;

/// Instructions that a load waits for its store at most.
const REACH: usize = 64;

/// Bytes of a lane that are moved so.
const BYTES: std::ops::RangeInclusive<i64> = 8..=16;

/// The first results of a region's loads of which one store takes all that nobody else does, and that store's place in
/// their block.
#[derive(Default)]
pub(super) struct Transfers(HashMap<Value, usize>);

/// Where the lanes of one side are.
enum Side {
    /// At a constant distance from the first lane's.
    Line {
        first: Val,
        stride: i64,
    },
    /// The same within each row of the group.
    Rows {
        firsts: Val,
        stride: i64,
        row: u32,
    },
    Each {
        all: Val,
    },
}

impl Transfers {
    pub(super) fn of(function: &Function) -> Transfers {
        let mut found = vec![];
        for block in &function.blocks {
            for (at, inst) in block.insts.iter().enumerate() {
                if let Some(store) = taker(&block.insts, at) {
                    found.push((inst.results.clone(), store));
                }
            }
        }
        let all = found.iter().flat_map(|(results, _): &(Vec<Value>, _)| results).copied();
        let uses = count_uses(function, all);
        found.retain(|(results, _)| results.iter().all(|result| uses[result] == 1));
        Transfers(found.into_iter().map(|(results, store)| (results[0], store)).collect())
    }
}

/// The store of all that a load reads, where nothing in between could change it or be changed by it.
fn taker(insts: &[Inst], load: usize) -> Option<usize> {
    let Op::Load { space, mem, order: Order::Weak, .. } = insts[load].op else { return None };
    let results = &insts[load].results;
    let bytes = i64::from(mem.bits / 8) * results.len() as i64;
    let is_vector = results.len() > 1 && results.len().is_power_of_two();
    if !is_vector || !BYTES.contains(&bytes) || !is_shared_by_lanes(space) {
        return None;
    }
    for (at, inst) in insts.iter().enumerate().skip(load + 1).take(REACH) {
        match inst.op {
            Op::Store { space, mem: target, order: Order::Weak, .. } => {
                let is_all = inst.args[1..] == results[..] && target.bits == mem.bits;
                return (is_all && is_shared_by_lanes(space)).then_some(at);
            }
            Op::Load { order: Order::Weak, .. } => {}
            _ if inst.op.is_pure() => {}
            _ => return None,
        }
    }
    None
}

fn is_shared_by_lanes(space: Space) -> bool {
    matches!(space, Space::Generic | Space::Global | Space::Shared)
}

impl Emitter<'_> {
    /// The store that is written together with the load at `first`.
    pub(super) fn transfer(&self, insts: &[Inst], first: usize) -> Option<usize> {
        let load = &insts[first];
        let second = *self.transfers.0.get(load.results.first()?)?;
        if self.lanes < 2 || load.results.iter().any(|result| self.written.contains_key(result)) {
            return None;
        }
        let store = &insts[second];
        if self.streams.has(self.region, store.args[0]) {
            return None;
        }
        let (from, to) = (Access::of(load)?, Access::of(store)?);
        if self.divergence(load.args[0]).is_uniform() || self.divergence(store.args[0]).is_uniform() {
            return None;
        }
        let (from, to) = (self.side_by_side(load.args[0], from), self.side_by_side(store.args[0], to));
        // Two lines are two vectors.
        (from.min(to) < self.lanes).then_some(second)
    }

    /// So many lanes' elements follow each other.
    fn side_by_side(&self, address: Value, access: Access) -> u32 {
        match self.divergence(address) {
            Divergence::Affine { assumed: true, .. } if self.copy == Copy::Masked => 1,
            Divergence::Affine { stride, .. } if stride == access.step() => self.lanes,
            Divergence::Varying if self.rows_of(address, access) == Some(access.step()) => self.row(),
            _ => 1,
        }
    }

    /// Moves what the load reads to where the store writes it.
    pub(super) fn move_lanes(&mut self, load: &Inst, store: &Inst) -> Result<(), String> {
        let (Some(from), Some(to)) = (Access::of(load), Access::of(store)) else {
            return Err("not a load and its store".to_owned());
        };
        if self.mask.is_some() {
            self.move_active(from, load.args[0], to, store.args[0]);
            return Ok(());
        }
        let lanes = self.side_by_side(load.args[0], from).min(self.side_by_side(store.args[0], to));
        let source = self.side(load.args[0], from);
        let target = self.side(store.args[0], to);
        let piece = Type::int(from.mem.bits.into(), lanes * from.n as u32);
        let align = from.step();
        let write = |me: &mut Self, source: &Side, target: &Side| {
            for lane in (0..me.lanes).step_by(lanes as usize) {
                let at = me.place_on(source, lane);
                let val = me.b.assign(piece, format_args!("load {piece}, ptr {at}, align {align}"));
                let at = me.place_on(target, lane);
                me.b.inst(format_args!("store {}, ptr {at}, align {align}", val.typed()));
            }
        };
        if !self.compact {
            write(self, &source, &target);
            return Ok(());
        }
        let name = format!("move.{lanes}x{}.{}.{}", from.step(), source.name(), target.name());
        let arguments = [source.pointers().clone(), target.pointers().clone()];
        self.outlined(&name, &arguments, &[], |me, params| {
            write(me, &source.with(params[0].clone()), &target.with(params[1].clone()));
            vec![]
        });
        Ok(())
    }

    /// A loop over the active lanes.
    fn move_active(&mut self, from: Access, source: Value, to: Access, target: Value) {
        let [source, target] = [(source, from), (target, to)].map(|(address, access)| {
            let all = self.vector(address);
            self.pointer(access.space, &all, access.offset)
        });
        let piece = Type::int(from.mem.bits.into(), from.n as u32);
        let align = from.step();
        let write = |me: &mut Self, source: &Val, target: &Val| {
            let (sources, targets) = (me.spill(0, source), me.spill(1, target));
            me.for_lanes(|me, lane| {
                let at = me.item(&sources, source.ty, lane);
                let val = me.b.assign(piece, format_args!("load {piece}, ptr {}, align {align}", at.text));
                let at = me.item(&targets, target.ty, lane);
                me.b.inst(format_args!("store {}, ptr {}, align {align}", val.typed(), at.text));
            });
        };
        if !self.compact {
            return write(self, &source, &target);
        }
        let Some(mask) = self.mask.clone() else { return };
        let bits = self.bits_of(&mask);
        self.outlined(&format!("move_active.{align}"), &[bits, source, target], &[], |me, params| {
            me.mask = Some(me.b.bitcast(&params[0], mask.ty));
            write(me, &params[1], &params[2]);
            vec![]
        });
    }

    /// Where nearly always all lanes copy all, or none does anything: all at once in the first case, else one lane after the other.
    pub(super) fn copy_async(&mut self, copy: &CopyAsync, inst: &Inst) {
        let [to, from] = Access::of_copy(copy);
        let mut bytes = self.vector(inst.args[2]);
        if copy.is_ignored {
            let ty = bytes.ty.ints(32);
            let [none, all] = [0, copy.size].map(|bytes| Builder::bits(ty, bytes.into()));
            bytes = self.b.select(&bytes, &none, &all);
        }
        if self.lanes == 1 {
            let [target, source] = [(inst.args[0], to), (inst.args[1], from)].map(|(address, access)| {
                let address = self.vector(address);
                self.pointer(access.space, &address, access.offset)
            });
            return memory::copy_async(&mut self.b, copy.size, &target, &source, &bytes);
        }
        let (target, source) = (self.side(inst.args[0], to), self.side(inst.args[1], from));
        let active = self.active();
        let bits = self.bits_of(&active);
        let is_masked = self.mask.is_some();
        let kind = if is_masked { "active" } else { "all" };
        let name = format!("copy_async.{kind}.{}.{}.{}", copy.size, source.name(), target.name());
        let arguments = [bits, bytes, source.pointers().clone(), target.pointers().clone()];
        self.outlined(&name, &arguments, &[], |me, params| {
            let (source, target) = (source.with(params[2].clone()), target.with(params[3].clone()));
            let bytes = &params[1];
            let done = me.b.label("copied");
            if !is_masked {
                let size = Builder::bits(bytes.ty, copy.size.into());
                let whole = me.b.icmp("uge", bytes, &size);
                let whole = me.bits_of(&whole);
                let all = me.b.icmp_int("eq", &whole, -1);
                let [straight, parts] = ["straight", "parts"].map(|hint| me.b.label(hint));
                me.b.cond_br(&all, &straight, &parts);
                me.b.start_block(&straight);
                let piece = Type::int(32, u32::from(copy.size / 4));
                for lane in 0..me.lanes {
                    let at = me.place_on(&source, lane);
                    let val = me.b.assign(piece, format_args!("load {piece}, ptr {at}, align 4"));
                    let at = me.place_on(&target, lane);
                    me.b.inst(format_args!("store {}, ptr {at}, align 4", val.typed()));
                }
                me.b.br(&done);
                me.b.start_block(&parts);
            }
            me.mask = Some(me.b.bitcast(&params[0], Type::int(1, me.lanes)));
            let [sources, targets] = [&source, &target].map(|side| me.all_of(side));
            let (from, to, much) = (me.spill(0, &sources), me.spill(1, &targets), me.spill(2, bytes));
            me.for_lanes(|me, lane| {
                let from = me.item(&from, sources.ty, lane);
                let to = me.item(&to, targets.ty, lane);
                let bytes = me.item(&much, bytes.ty, lane);
                memory::copy_async(&mut me.b, copy.size, &to, &from, &bytes);
            });
            me.b.br(&done);
            me.b.start_block(&done);
            vec![]
        });
    }

    /// All lanes' pointers.
    fn all_of(&mut self, side: &Side) -> Val {
        let (starts, steps): (Val, Vec<i64>) = match side {
            Side::Each { all } => return all.clone(),
            Side::Line { first, stride } => {
                (self.splat(first), (0..self.lanes).map(|lane| i64::from(lane) * stride).collect())
            }
            Side::Rows { firsts, stride, row } => {
                let picks: Vec<String> = (0..self.lanes).map(|lane| format!("i32 {}", lane / row)).collect();
                let ty = Type::new(firsts.ty.scalar, self.lanes);
                let mask = format!("<{} x i32> <{}>", self.lanes, picks.join(", "));
                let text = format!("shufflevector {}, {} poison, {mask}", firsts.typed(), firsts.ty);
                let steps = (0..self.lanes).map(|lane| i64::from(lane % row) * stride).collect();
                (self.b.assign(ty, text), steps)
            }
        };
        let items: Vec<String> = steps.iter().map(|step| format!("i64 {step}")).collect();
        let steps = format!("<{} x i64> <{}>", self.lanes, items.join(", "));
        self.b.assign(starts.ty, format_args!("getelementptr i8, {}, {steps}", starts.typed()))
    }

    fn side(&mut self, address: Value, access: Access) -> Side {
        let is_line = |divergence: Divergence| match divergence {
            Divergence::Affine { assumed: true, .. } if self.copy == Copy::Masked => None,
            Divergence::Affine { stride, .. } => Some(stride),
            _ => None,
        };
        if let Some(stride) = is_line(self.divergence(address)) {
            let base = self.scalar(address);
            let first = self.pointer(access.space, &base, access.offset);
            if stride == access.step() {
                let bytes = stride * i64::from(self.lanes);
                self.prefetch_tile(access, std::slice::from_ref(&first), bytes);
            }
            return Side::Line { first, stride };
        }
        if let Some(stride) = self.rows_of(address, access) {
            let firsts = self.firsts(address);
            let firsts = self.pointer(access.space, &firsts, access.offset);
            return Side::Rows { firsts, stride, row: self.row() };
        }
        let all = self.vector(address);
        Side::Each { all: self.pointer(access.space, &all, access.offset) }
    }

    /// Where a lane is.
    fn place_on(&mut self, side: &Side, lane: u32) -> String {
        let (start, distance) = match side {
            Side::Line { first, stride } => (first.clone(), i64::from(lane) * stride),
            Side::Rows { firsts, stride, row } => {
                (self.extract(firsts, &(lane / row).to_string()), i64::from(lane % row) * stride)
            }
            Side::Each { all } => (self.extract(all, &lane.to_string()), 0),
        };
        if distance == 0 {
            return start.text;
        }
        self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {}, i64 {distance}", start.text)).text
    }
}

impl Side {
    fn pointers(&self) -> &Val {
        match self {
            Side::Line { first: it, .. } | Side::Rows { firsts: it, .. } | Side::Each { all: it } => it,
        }
    }

    fn with(&self, pointers: Val) -> Side {
        match *self {
            Side::Line { stride, .. } => Side::Line { first: pointers, stride },
            Side::Rows { stride, row, .. } => Side::Rows { firsts: pointers, stride, row },
            Side::Each { .. } => Side::Each { all: pointers },
        }
    }

    /// Tells sides apart that need different code.
    fn name(&self) -> String {
        match self {
            Side::Line { stride, .. } => format!("line{stride}"),
            Side::Rows { stride, row, .. } => format!("rows{row}by{stride}"),
            Side::Each { .. } => "each".to_owned(),
        }
    }
}
