//! Groups that are several runs of lanes, here called rows: of a two-dimensional block, of a matrix fragment; where all
//! lanes are together. What is a line within each row is computed by the rows' first lanes, and an access whose addresses
//! are such is one place or one line for each row.

use super::memory::Access;
use super::{Copy, Emitter};
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{Inst, Op, Order, Space, Ty, Value};
use crate::pass::divergence::Divergence;
use crate::pass::regions::{Runs, Saved, is_checked};
use std::collections::HashMap;

impl Emitter<'_> {
    /// What the lanes of each row have in common, where the group has not.
    pub(super) fn in_row(&self, value: Value) -> Option<Divergence> {
        let runs = self.here().runs.as_ref()?;
        let divergence = runs.divergences[value.index()];
        (self.is_whole() && !divergence.is_varying()).then_some(divergence)
    }

    /// All lanes run the block being written, and together.
    fn is_whole(&self) -> bool {
        self.copy == Copy::Unmasked && self.mask.is_none()
    }

    /// Lanes of a row.
    pub(super) fn row(&self) -> u32 {
        self.here().runs.as_ref().map_or(self.lanes, |runs| runs.length)
    }

    /// Writes code for so many lanes.
    pub(super) fn with_lanes<T>(&mut self, lanes: u32, write: impl FnOnce(&mut Self) -> T) -> T {
        let before = std::mem::replace(&mut self.lanes, lanes);
        let written = write(self);
        self.lanes = before;
        written
    }

    /// The values of the rows' first lanes.
    pub(super) fn firsts(&mut self, value: Value) -> Val {
        if let Some(known) = self.rows.get(&value) {
            return known.clone();
        }
        let (row, count) = (self.row(), self.lanes / self.row());
        let firsts = match self.divergence(value) {
            Divergence::Varying if self.by_rows.contains_key(&value) => self.kept_firsts(value),
            Divergence::Uniform => {
                let scalar = self.scalar(value);
                self.with_lanes(count, |me| me.splat(&scalar))
            }
            Divergence::Affine { stride, .. } => {
                let scalar = self.scalar(value);
                self.with_lanes(count, |me| me.line(&scalar, stride * i64::from(row)))
            }
            Divergence::Varying => {
                let all = self.vector(value);
                let picks: Vec<_> = (0..count as usize).map(|nth| Some(nth * row as usize)).collect();
                self.shuffle(&all, None, &picks)
            }
        };
        self.rows.insert(value, firsts.clone());
        firsts
    }

    /// The group's lanes, from the rows' first ones.
    pub(super) fn spread_firsts(&mut self, value: Value) -> Option<Val> {
        let stride = self.in_row(value)?.line()?.0;
        if self.by_rows.contains_key(&value) {
            self.firsts(value);
        }
        let firsts = self.rows.get(&value)?.clone();
        Some(self.spread(&firsts, stride))
    }

    /// All lanes of rows with these first lanes.
    fn spread(&mut self, firsts: &Val, stride: i64) -> Val {
        let row = self.row() as usize;
        let picks: Vec<_> = (0..self.lanes as usize).map(|lane| Some(lane / row)).collect();
        let starts = self.shuffle(firsts, None, &picks);
        if stride == 0 {
            return starts;
        }
        let steps = self.steps(starts.ty.bits(), stride);
        self.b.add(&starts, &steps)
    }

    /// How far each lane's number is from its row's first.
    fn steps(&self, bits: u32, stride: i64) -> Val {
        let row = self.row() as usize;
        let step =
            |lane: usize| Builder::int(Type::int(bits, 1), (lane % row) as i128 * i128::from(stride)).typed();
        let steps = (0..self.lanes as usize).map(step).collect::<Vec<_>>().join(", ");
        Val::new(Type::int(bits, self.lanes), format!("<{steps}>"))
    }

    // ---- from region to region ----

    /// Of a line within each row the rows' first lanes are kept; all lanes' values only by the masked copy.
    pub(super) fn is_by_rows(&self, saved: &Saved) -> bool {
        let is_number = matches!(saved.ty, Ty::B16 | Ty::B32 | Ty::B64);
        let is_line = saved.in_run.is_some_and(|divergence| !divergence.is_varying());
        is_number
            && is_line
            && saved.divergence.is_varying()
            && !saved.is_block_uniform
            && !saved.is_reduced_here
    }

    /// Whether what is kept of it stands for all lanes only while assumed lines hold.
    pub(super) fn is_assumed(&self, saved: &Saved) -> bool {
        let in_rows = self.is_by_rows(saved) && saved.in_run.is_some_and(Divergence::is_assumed);
        saved.divergence.is_assumed() || in_rows
    }

    pub(super) fn firsts_bytes(&self, saved: &Saved) -> u64 {
        u64::from(saved.ty.bits() / 8 * (self.lanes / self.row()))
    }

    /// The region's parameters that are kept so, with their numbers.
    pub(super) fn kept_by_rows(&self) -> HashMap<Value, usize> {
        let here = self.here();
        let params = here.function.blocks[0].params.iter().zip(&here.saved).enumerate();
        params
            .filter(|(_, (_, saved))| self.is_by_rows(saved))
            .map(|(nth, (&param, _))| (param, nth))
            .collect()
    }

    /// Whether the group began the region in the unmasked copy; only where the masked one has to know.
    pub(super) fn whole_slot(&self) -> Option<String> {
        (!self.by_rows.is_empty()).then(|| format!("%whole{}", self.region))
    }

    fn kept_firsts(&mut self, param: Value) -> Val {
        let saved = self.here().saved[self.by_rows[&param]].clone();
        let at = self.places[&saved.value].firsts.unwrap_or_default();
        let ty = Type::of(saved.ty, self.lanes / self.row());
        let bytes = self.firsts_bytes(&saved);
        let from = self.in_context(at, bytes);
        self.b.assign(ty, format_args!("load {ty}, ptr {from}, align {}", bytes.min(64)))
    }

    /// All lanes of a value that the region finds by rows.
    pub(super) fn spread_kept_firsts(&mut self, param: Value) -> Option<Val> {
        let saved = self.here().saved[*self.by_rows.get(&param)?].clone();
        let stride = saved.in_run?.line()?.0;
        let firsts = self.kept_firsts(param);
        let spread = self.spread(&firsts, stride);
        if self.copy == Copy::Unmasked {
            return Some(spread);
        }
        let all = self.vector_in_context(&saved)?;
        let slot = self.whole_slot()?;
        let bit = Type::int(1, 1);
        let whole = self.b.assign(bit, format_args!("load {bit}, ptr {slot}"));
        let picked = format!("select {}, {}, {}", whole.typed(), spread.typed(), all.typed());
        Some(self.b.assign(all.ty, picked))
    }

    /// What is kept of a value for the next region.
    pub(super) fn firsts_to_keep(&mut self, value: Value) -> Val {
        if self.copy == Copy::Unmasked {
            return self.firsts(value);
        }
        // Right where the whole group is alive; otherwise the next region takes all lanes' values.
        let all = self.vector(value);
        let row = self.row() as usize;
        let picks: Vec<_> = (0..self.lanes as usize / row).map(|nth| Some(nth * row)).collect();
        self.shuffle(&all, None, &picks)
    }

    // ---- operations ----

    /// Computes a result that varies by its rows' first lanes; false when it has to be by all lanes.
    pub(super) fn compute_by_rows(&mut self, at: usize, inst: &Inst) -> Result<bool, String> {
        let [result] = inst.results[..] else { return Ok(false) };
        let is_number = |ty: Ty| matches!(ty, Ty::B16 | Ty::B32 | Ty::B64);
        let is_line = |value: Value| self.in_row(value).is_some() && is_number(self.ty(value));
        let fits = is_line(result) && inst.args.iter().all(|&arg| is_line(arg));
        let is_checked = self.here().runs.as_ref().is_some_and(|runs| is_checked(inst, &runs.divergences));
        if !fits {
            return match is_checked && self.is_whole() {
                true => Err("a row's index is widened in a way that is not checked".to_owned()),
                false => Ok(false),
            };
        }
        if is_checked {
            self.check_rows(at, inst);
        }
        let (arg_tys, result_tys) = (self.types(&inst.args), self.types(&inst.results));
        let args: Vec<Val> = inst.args.iter().map(|&arg| self.firsts(arg)).collect();
        let count = self.lanes / self.row();
        let firsts = self.pure(&inst.op, &args, &arg_tys, &result_tys, count)?.remove(0);
        self.rows.insert(result, firsts);
        if self.crossing.contains(result.index()) {
            let all = self.vector(result);
            self.define_vector(result, all);
        }
        Ok(true)
    }

    /// In no row may the number that is widened wrap.
    fn check_rows(&mut self, at: usize, inst: &Inst) {
        let line = inst.args.iter().copied().find(|&arg| self.in_row(arg).is_some_and(|it| !it.is_uniform()));
        let Some(arg) = line else { return };
        let Some((stride, _)) = self.in_row(arg).and_then(Divergence::line) else { return };
        let signed = matches!(inst.op, Op::Sext) || matches!(inst.op, Op::MulWide(int) if int.signed);
        let firsts = self.firsts(arg);
        let wide = self.b.resize(&firsts, 64, signed);
        let last = self.b.bin_int("add", &wide, i128::from(stride) * i128::from(self.row() - 1));
        let narrow = self.b.resize(&last, firsts.ty.bits(), false);
        let again = self.b.resize(&narrow, 64, signed);
        let same = self.b.icmp("eq", &again, &last);
        let count = self.lanes / self.row();
        let holds = self.with_lanes(count, |me| me.all(&same));
        self.leave_unless(at, &holds);
    }

    /// The same in the masked copy, where a row's first lane may not be active: each lane asks for its row.
    pub(super) fn bend_unless_rows_hold(&mut self, inst: &Inst) {
        let Some(runs) = self.here().runs.as_ref().filter(|runs| is_checked(inst, &runs.divergences)) else {
            return;
        };
        let lines = inst.args.iter().map(|&arg| (arg, runs.divergences[arg.index()]));
        let Some((arg, Divergence::Affine { stride, .. })) =
            lines.into_iter().find(|(_, it)| !it.is_uniform())
        else {
            return;
        };
        let signed = matches!(inst.op, Op::Sext) || matches!(inst.op, Op::MulWide(int) if int.signed);
        let own = self.vector(arg);
        let steps = self.steps(own.ty.bits(), stride);
        let firsts = self.b.sub(&own, &steps);
        let wide = self.b.resize(&firsts, 64, signed);
        let last = self.b.bin_int("add", &wide, i128::from(stride) * i128::from(self.row() - 1));
        let narrow = self.b.resize(&last, own.ty.bits(), false);
        let again = self.b.resize(&narrow, 64, signed);
        let wraps = self.b.icmp("ne", &again, &last);
        let active = self.active();
        let wraps = self.b.and(&wraps, &active);
        let some = self.any(&wraps);
        let holds = self.b.not(&some);
        self.bend_unless(&holds);
    }

    /// The distance of a row's lanes in memory, if an access is better done row by row.
    pub(super) fn stride_in_rows(&self, address: Value, access: Access) -> Option<i64> {
        let (stride, _) = self.in_row(address)?.line()?;
        let is_near = Runs::are_near(stride, access.step());
        let is_plain = access.order == Order::Weak && access.space != Space::Local;
        // The functions that are called in long code have one place or one line for each row.
        let has_function = stride == 0 || stride == access.step();
        (is_near && is_plain && (has_function || !self.compact)).then_some(stride)
    }

    pub(super) fn load_rows(&mut self, access: Access, ty: Ty, address: Value, stride: i64) -> Vec<Val> {
        if self.compact {
            return self.call_rows(access, ty, address, stride);
        }
        let starts = self.starts(address);
        if stride != 0 {
            let firsts: Vec<Val> =
                starts.iter().map(|start| self.pointer(access.space, start, access.offset)).collect();
            self.prefetch_tile(access, &firsts, access.step() * i64::from(self.row()));
        }
        let asks = std::mem::take(&mut self.prefetches);
        let mut rows = vec![];
        for start in starts {
            let row = self.row();
            rows.push(self.with_lanes(row, |me| {
                if stride != 0 {
                    return me.load_line(access, ty, &start, stride);
                }
                let elements = 0..access.n as i64;
                let one = |nth: i64| {
                    let at = me.pointer(access.space, &start, access.offset + nth * access.bytes());
                    let val = me.load_one(access, ty, &at.text);
                    me.splat(&val)
                };
                elements.map(one).collect()
            }));
        }
        self.prefetches = asks;
        (0..access.n).map(|nth| self.stacked(rows.iter().map(|row| row[nth].clone()).collect())).collect()
    }

    /// As a call of a function that gets the rows' first places.
    fn call_rows(&mut self, access: Access, ty: Ty, address: Value, stride: i64) -> Vec<Val> {
        let row = self.row();
        let firsts = self.firsts(address);
        let at = self.pointer(access.space, &firsts, access.offset);
        let name = format!("load_rows{row}.{stride}.{}", access.name());
        let results = vec![Self::memory_ty(ty, access.mem, self.lanes); access.n];
        self.outlined(&name, &[at], &results, |me, params| {
            let mut rows = vec![];
            for pointer in me.pointers_of_vector(&params[0]) {
                rows.push(me.with_lanes(row, |me| me.load_row(access, ty, &pointer, stride)));
            }
            (0..access.n).map(|nth| me.stacked(rows.iter().map(|row| row[nth].clone()).collect())).collect()
        })
    }

    /// One place, or elements side by side.
    fn load_row(&mut self, access: Access, ty: Ty, at: &str, stride: i64) -> Vec<Val> {
        let lanes = if stride == 0 { 1 } else { self.lanes };
        let all = Self::memory_ty(ty, access.mem, lanes * access.n as u32);
        let all = self.b.assign(all, format_args!("load {all}, ptr {at}, align {}", access.bytes()));
        if stride != 0 {
            return self.split(&all, access.n);
        }
        (0..access.n)
            .map(|nth| {
                let item = self.extract(&all, &nth.to_string());
                self.splat(&item)
            })
            .collect()
    }

    pub(super) fn store_rows(&mut self, access: Access, address: Value, stride: i64, vals: &[Val]) {
        if self.compact {
            let firsts = self.firsts(address);
            let at = self.pointer(access.space, &firsts, access.offset);
            let row = self.row();
            let name = format!("store_rows{row}.{}", access.name());
            self.outlined(&name, &[&[at], vals].concat(), &[], |me, params| {
                for (nth, pointer) in me.pointers_of_vector(&params[0]).iter().enumerate() {
                    let own = me.lanes_of_row(&params[1..], row, nth);
                    let at = Val::new(Type::ptr(), pointer.clone());
                    me.with_lanes(row, |me| {
                        let all = me.weave(&own);
                        me.store_whole(access, &all, &at);
                    });
                }
                vec![]
            });
            return;
        }
        for (nth, start) in self.starts(address).iter().enumerate() {
            let row = self.row();
            let own = self.lanes_of_row(vals, row, nth);
            self.with_lanes(row, |me| me.store_line(access, start, stride, &own));
        }
    }

    fn lanes_of_row(&mut self, vals: &[Val], row: u32, nth: usize) -> Vec<Val> {
        let first = nth * row as usize;
        let picks: Vec<_> = (first..first + row as usize).map(Some).collect();
        vals.iter().map(|val| self.shuffle(val, None, &picks)).collect()
    }

    /// Each row's first address.
    fn starts(&mut self, address: Value) -> Vec<Val> {
        let firsts = self.firsts(address);
        (0..firsts.ty.lanes).map(|nth| self.extract(&firsts, &nth.to_string())).collect()
    }
}
