//! The frame: loop over blocks, regions as states, loop over groups, and what is kept from region to region.

use super::step::warp;
use super::sums::Sums;
use super::transfer::Transfers;
use super::{Copy, Emitter, Place, Spot};
use crate::back::llvm::{Builder, Scalar, Type, Val};
use crate::ir::{BarrierKind, Op, Space, Term, Ty, Value};
use crate::pass::divergence::Divergence;
use crate::pass::liveness::{crosses_blocks, live_in};
use crate::pass::places::Places;
use crate::pass::regions::Saved;
use crate::pass::visit::definitions;

impl Emitter<'_> {
    pub(super) fn whole(&mut self) -> Result<(), String> {
        if self.per_warp {
            return self.whole_step();
        }
        self.lay_out_context();
        self.start();
        self.block_start()?;
        for region in 0..self.plan.regions.len() {
            self.region(region)?;
        }
        self.b.start_block("block.next");
        self.b.inst("%block.after = add i64 %block, 1");
        self.b.inst("%x.more = add i32 %ctaid.x, 1");
        self.b.inst("%x.wraps = icmp eq i32 %x.more, %grid.x");
        self.b.inst("%x.after = select i1 %x.wraps, i32 0, i32 %x.more");
        self.b.inst("%x.carry = zext i1 %x.wraps to i32");
        self.b.inst("%y.more = add i32 %ctaid.y, %x.carry");
        self.b.inst("%y.wraps = icmp eq i32 %y.more, %grid.y");
        self.b.inst("%y.after = select i1 %y.wraps, i32 0, i32 %y.more");
        self.b.inst("%y.carry = zext i1 %y.wraps to i32");
        self.b.inst("%z.after = add i32 %ctaid.z, %y.carry");
        self.b.inst("%block.more = icmp ne i64 %block.after, %end");
        self.b.inst("br i1 %block.more, label %block.head, label %done");
        self.b.start_block("done");
        self.end_streams();
        self.b.inst("ret i32 0");
        self.b.line("}");
        Ok(())
    }

    /// Places for all saved values.
    pub(super) fn lay_out_context(&mut self) {
        let mut saved: Vec<Saved> = vec![];
        for region in &self.plan.regions {
            for each in &region.saved {
                if !saved.iter().any(|known| known.value == each.value) {
                    saved.push(each.clone());
                }
            }
        }
        if self.per_warp {
            // The scheduler counts who arrives.
            self.context_bytes = warp::SAVED;
            self.alive_at = Some(warp::ALIVE);
        } else if self.plan.regions.len() > 1 && self.plan.loses_threads {
            self.alive_at = Some(self.reserve(8 * self.groups));
        }
        if saved.iter().any(|each| !each.is_block_uniform && self.is_assumed(each)) {
            self.straight_at = Some(self.reserve(self.groups));
        }
        self.lay_out_sums();
        for each in saved {
            let owner = self.plan.places.owner(each.value);
            if let Some(&place) = self.places.get(&owner) {
                self.places.insert(each.value, place);
                continue;
            }
            let mut place = Place::default();
            if each.is_block_uniform {
                let ty = Type::of(each.ty, 1);
                self.alloca(&block_slot(each.value), ty);
                self.alloca(&next_slot(each.value), ty);
            } else {
                let scalar_bytes = u64::from(each.ty.bits() / 8).max(8);
                let vector_bytes = match each.ty {
                    Ty::Pred => 8,
                    ty => u64::from(ty.bits() / 8) * u64::from(self.lanes),
                };
                if !each.divergence.is_varying() {
                    place.scalar = Some(self.reserve(scalar_bytes * self.groups));
                }
                if each.divergence.is_varying() || each.divergence.is_assumed() {
                    let at = self.reserve(vector_bytes * self.groups);
                    place.vector = Some(Spot { at, stride: vector_bytes });
                }
                if self.is_by_rows(&each) {
                    place.firsts = Some(self.reserve(self.firsts_bytes(&each) * self.groups));
                }
            }
            self.places.insert(each.value, place);
            self.places.insert(owner, place);
        }
    }

    pub(super) fn reserve(&mut self, bytes: u64) -> u64 {
        let at = self.context_bytes;
        self.context_bytes = (at + bytes).next_multiple_of(64);
        at
    }

    pub(super) fn field(&mut self, name: &str, ty: &str, from: &str, offset: u64) {
        self.b.inst(format_args!("{name}.at = getelementptr i8, ptr {from}, i64 {offset}"));
        self.b.inst(format_args!("{name} = load {ty}, ptr {name}.at, !invariant.load !0"));
    }

    /// What launch and worker hold.
    pub(super) fn fields(&mut self) {
        self.field("%params", "ptr", "%launch", 0);
        self.field("%globals", "ptr", "%launch", 8);
        self.field("%services", "ptr", "%launch", 16);
        self.field("%grid.x", "i32", "%launch", 24);
        self.field("%grid.y", "i32", "%launch", 28);
        self.field("%grid.z", "i32", "%launch", 32);
        if self.threads.open {
            self.field("%ntid.x", "i32", "%launch", 36);
        }
        self.field("%dynamic", "i32", "%launch", 48);
        self.field("%workers", "i32", "%launch", 52);
        self.field("%gridid", "i64", "%launch", 56);
        self.field("%functions", "ptr", "%launch", 64);
        self.field("%shared", "ptr", "%worker", 0);
        self.field("%local", "ptr", "%worker", 16);
        self.field("%smid", "i32", "%worker", 24);
        self.field("%shared.bytes", "i32", "%worker", 28);
    }

    fn start(&mut self) {
        self.alloca("%next", Type::int(32, 1));
        self.b.start_block("start");
        self.fields();
        self.field("%context", "ptr", "%worker", 8);
        if self.threads.open {
            self.b.inst("%ntid.x64 = zext i32 %ntid.x to i64");
            self.b.inst(format_args!("%groups = udiv i64 %ntid.x64, {}", self.lanes));
        }
        self.b.inst("%end = add i64 %first, %count");
        self.b.inst("%grid.x64 = zext i32 %grid.x to i64");
        self.b.inst("%grid.y64 = zext i32 %grid.y to i64");
        self.b.inst("%first.x = urem i64 %first, %grid.x64");
        self.b.inst("%first.row = udiv i64 %first, %grid.x64");
        self.b.inst("%first.y = urem i64 %first.row, %grid.y64");
        self.b.inst("%first.z = udiv i64 %first.row, %grid.y64");
        self.b.inst("%x0 = trunc i64 %first.x to i32");
        self.b.inst("%y0 = trunc i64 %first.y to i32");
        self.b.inst("%z0 = trunc i64 %first.z to i32");
        self.start_streams();
        self.b.inst("%block.some = icmp ne i64 %count, 0");
        self.b.inst("br i1 %block.some, label %block.head, label %done");
    }

    fn block_start(&mut self) -> Result<(), String> {
        self.b.start_block("block.head");
        self.b.inst("%block = phi i64 [ %first, %start ], [ %block.after, %block.next ]");
        self.b.inst("%ctaid.x = phi i32 [ %x0, %start ], [ %x.after, %block.next ]");
        self.b.inst("%ctaid.y = phi i32 [ %y0, %start ], [ %y.after, %block.next ]");
        self.b.inst("%ctaid.z = phi i32 [ %z0, %start ], [ %z.after, %block.next ]");
        self.prologue()?;
        self.b.br("r0.start");
        Ok(())
    }

    /// What all threads of a block have in common.
    pub(super) fn prologue(&mut self) -> Result<(), String> {
        for inst in self.plan.prologue.clone() {
            let args: Vec<Val> = inst.args.iter().map(|arg| self.prologue[arg].clone()).collect();
            let tys: Vec<Ty> = inst.results.iter().map(|&result| self.plan.types[result.index()]).collect();
            let results = match &inst.op {
                Op::Load { space: Space::Param, mem, offset, .. } => {
                    self.load_params(&args[0], *offset, *mem, &tys)
                }
                Op::Special(_)
                | Op::GlobalAddr(_)
                | Op::SharedAddr(_)
                | Op::LocalAddr(_)
                | Op::ParamAddr(_)
                | Op::FuncAddr(_)
                | Op::Cvta { .. } => vec![self.block_special(&inst.op, args.first())?],
                op => {
                    let arg_tys: Vec<Ty> =
                        inst.args.iter().map(|&arg| self.plan.types[arg.index()]).collect();
                    self.pure(op, &args, &arg_tys, &tys, 1)?
                }
            };
            for (&value, val) in inst.results.iter().zip(results) {
                self.prologue.insert(value, val);
            }
        }
        Ok(())
    }

    pub(super) fn region(&mut self, region: usize) -> Result<(), String> {
        self.region = region;
        self.crossing = crosses_blocks(&self.here().function);
        self.live = live_in(&self.here().function);
        self.definitions = definitions(&self.here().function);
        self.sums = Sums::of(&self.here().function);
        self.transfers = Transfers::of(&self.here().function);
        let params: Vec<Value> =
            self.here().function.blocks.iter().flat_map(|block| block.params.clone()).collect();
        for param in params {
            self.crossing.insert(param.index());
        }
        for value in self.plan.is_prologue.clone().iter() {
            self.crossing.remove(value);
        }
        self.in_place =
            Places::read_in_place(self.here()).into_iter().map(|(nth, param)| (param, nth)).collect();
        self.by_rows = self.kept_by_rows();
        for param in self.in_place.keys().chain(self.by_rows.keys()) {
            self.crossing.remove(param.index());
        }
        self.ranked.clear();
        self.written = self.plan.places.write_in_place(self.here(), &self.plan.regions);
        let many = self.plan.regions.len() > 1 && self.only_way().is_none();
        self.b.start_block(&format!("r{region}.start"));
        if many {
            self.b.inst("store i32 -1, ptr %next");
        }
        let mut targets: Vec<usize> = self.here().next.iter().copied().flatten().collect();
        targets.sort_unstable();
        targets.dedup();
        for &target in &targets {
            if !self.per_warp && self.reduction(target).is_some() {
                self.alloca(&format!("%red{region}_{target}"), Type::int(32, 1));
                self.b.inst(format_args!("store i32 0, ptr %red{region}_{target}"));
            }
        }
        let saved = self.here().saved.clone();
        let acting = self.here().acting.as_ref().map(|acting| acting.groups.clone());
        if !self.per_warp {
            let first = acting.as_ref().map_or(0, |groups| groups.start);
            self.b.br(&format!("r{region}.group"));
            self.b.start_block(&format!("r{region}.group"));
            self.b.inst(format_args!(
                "%g{region} = phi i64 [ {first}, %r{region}.start ], [ %g{region}.after, %r{region}.latch ]"
            ));
            self.b.inst(format_args!("%first{region} = mul i64 %g{region}, {}", self.lanes));
            self.b.inst(format_args!("%lin{region} = trunc i64 %first{region} to i32"));
        }
        self.make_slots();
        self.clear_slots();
        // Who is alive.
        let alive = self.alive_at_start();
        if let (Some(alive), true) = (&alive, region > 0) {
            let some = self.any(alive);
            let (go, skip) = (format!("r{region}.alive"), format!("r{region}.latch"));
            self.b.cond_br(&some, &go, &skip);
            self.b.start_block(&go);
        }
        let straight = self.restore(&saved);
        // A group of one thread that lives is whole.
        let mut whole = alive.as_ref().filter(|_| self.lanes > 1).map(|alive| self.all(alive));
        if let Some(straight) = &straight {
            whole = Some(match whole {
                Some(whole) => self.b.and(&whole, straight),
                None => straight.clone(),
            });
        }
        self.masked_used = whole.is_some();
        self.find_meetings(whole.is_none());
        if let (Some(slot), Some(whole)) = (self.whole_slot(), &whole) {
            self.b.inst(format_args!("store {}, ptr {slot}", whole.typed()));
        }
        match &whole {
            Some(whole) => self.b.cond_br(whole, &format!("u{region}_0"), &format!("r{region}.masked")),
            None => self.b.br(&format!("u{region}_0")),
        }
        self.unmasked()?;
        if self.masked_used {
            if whole.is_some() {
                self.b.start_block(&format!("r{region}.masked"));
                self.restore_vectors(&saved);
                let mask = alive.unwrap_or_else(|| Builder::bits(self.mask_ty(), 1));
                if self.alive_at.is_some() {
                    self.save_alive(&Builder::bits(self.mask_ty(), 0));
                }
                let slot = self.mask_slot(0);
                self.store_slot(&slot, &mask);
                let first = self.step_of_m(0);
                self.b.br(&first);
            }
            self.masked()?;
        }
        if !self.per_warp {
            self.block_rests();
        }
        self.b.start_block(&format!("r{region}.latch"));
        if self.per_warp {
            self.step_end(!targets.is_empty());
            return Ok(());
        }
        self.b.inst(format_args!("%g{region}.after = add i64 %g{region}, 1"));
        let groups = match acting {
            _ if self.threads.open => "%groups".to_owned(),
            Some(groups) => groups.end.to_string(),
            None => self.groups.to_string(),
        };
        self.b.inst(format_args!("%g{region}.more = icmp ult i64 %g{region}.after, {groups}"));
        self.b.inst(format_args!("br i1 %g{region}.more, label %r{region}.group, label %r{region}.end"));
        self.b.start_block(&format!("r{region}.end"));
        if targets.is_empty() {
            self.b.br("block.next");
            return Ok(());
        }
        match self.only_way() {
            Some(target) => self.b.br(&format!("r{region}.to{target}")),
            None => self.dispatch(&targets),
        }
        for target in targets {
            self.pass_on(target);
        }
        Ok(())
    }

    /// The region behind this one, when all threads of the block go there.
    fn only_way(&self) -> Option<usize> {
        let here = self.here();
        let mut ways = here.next.iter().copied().flatten();
        let target = ways.next()?;
        let ends = here.function.blocks.iter().any(|block| block.term == Term::Exit);
        (!self.per_warp && !self.plan.loses_threads && !ends && ways.all(|way| way == target))
            .then_some(target)
    }

    /// Goes to the region that the threads have come to.
    fn dispatch(&mut self, targets: &[usize]) {
        let region = self.region;
        let cases: Vec<String> =
            targets.iter().map(|target| format!("i32 {target}, label %r{region}.to{target}")).collect();
        self.b.inst(format_args!("%go{region} = load i32, ptr %next"));
        self.b.inst(format_args!("switch i32 %go{region}, label %block.next [ {} ]", cases.join(" ")));
    }

    /// What the whole block keeps for region `target`.
    fn pass_on(&mut self, target: usize) {
        let region = self.region;
        self.b.start_block(&format!("r{region}.to{target}"));
        for each in self.plan.regions[target].saved.clone().iter().filter(|each| each.is_block_uniform) {
            let ty = Type::of(each.ty, 1);
            let val = self.b.assign(ty, format_args!("load {ty}, ptr {}", next_slot(each.value)));
            self.b.inst(format_args!("store {}, ptr {}", val.typed(), block_slot(each.value)));
        }
        if let Some((kind, result)) = self.reduction(target) {
            let i32_ty = Type::int(32, 1);
            let count = self.b.assign(i32_ty, format_args!("load i32, ptr %red{region}_{target}"));
            let val = match kind {
                BarrierKind::RedAnd => self.b.icmp_int("eq", &count, 0),
                BarrierKind::RedOr => self.b.icmp_int("ne", &count, 0),
                _ => count,
            };
            if self.places.contains_key(&result) {
                self.b.inst(format_args!("store {}, ptr {}", val.typed(), block_slot(result)));
            }
        }
        self.b.br(&format!("r{target}.start"));
    }

    /// What the barrier in front of region `target` reduces, and the result's name.
    fn reduction(&self, target: usize) -> Option<(BarrierKind, Value)> {
        let here = self.here();
        let at = here.next.iter().position(|&next| next == Some(target))?;
        let inst = here.function.blocks[at].insts.last()?;
        match (&inst.op, inst.results.first()) {
            (Op::Barrier { kind, .. }, Some(&result)) => Some((*kind, result)),
            _ => None,
        }
    }

    /// Counts the active lanes whose predicate decides a reduction.
    fn contribute(&mut self, target: usize, kind: BarrierKind, predicate: Value) {
        let predicate = self.vector(predicate);
        let active = self.active();
        let decides = if kind == BarrierKind::RedAnd { self.b.not(&predicate) } else { predicate };
        let decides = self.b.and(&decides, &active);
        let bits = self.bits_of(&decides);
        let count = self.b.same("ctpop", &[&bits]);
        let count = self.b.resize(&count, 32, false);
        let slot = format!("%red{}_{target}", self.region);
        let before = self.b.assign(Type::int(32, 1), format_args!("load i32, ptr {slot}"));
        let sum = self.b.add(&before, &count);
        self.b.inst(format_args!("store {}, ptr {slot}", sum.typed()));
    }

    /// The slots that a value has: its scalar, its vector in the masked copy or both.
    pub(super) fn slots_of(&self, value: Value, masked: bool) -> Vec<(String, Type)> {
        let ty = self.ty(value);
        let (own, other) =
            (self.divergences(Copy::Unmasked)[value.index()], self.divergences(Copy::Masked)[value.index()]);
        let mut slots = vec![];
        if !own.is_varying() {
            slots.push((self.scalar_slot(value), Type::of(ty, 1)));
        }
        if own.is_varying() || (masked && (other.is_varying() || other.is_assumed())) {
            slots.push((self.vector_slot(value), self.slot_ty(self.vector_ty(ty))));
        }
        slots
    }

    fn slots(&self) -> Vec<(String, Type)> {
        let function = &self.here().function;
        let crossing = self.crossing.iter().map(|index| Value(index as u32));
        let mut slots: Vec<(String, Type)> = crossing.flat_map(|value| self.slots_of(value, true)).collect();
        for block in 0..function.blocks.len() {
            slots.push((self.mask_slot(block), self.slot_ty(self.mask_ty())));
        }
        slots
    }

    /// Makes the slots of the region.
    fn make_slots(&mut self) {
        for (name, ty) in self.slots() {
            self.alloca(&name, ty);
        }
        for flag in [Some(self.flag_slot()), self.whole_slot()].into_iter().flatten() {
            self.alloca(&flag, Type::int(1, 1));
        }
    }

    /// Gives each slot of the region a defined content.
    pub(super) fn clear_slots(&mut self) {
        for (name, ty) in self.slots() {
            let zero = Builder::bits(ty, 0);
            self.b.inst(format_args!("store {}, ptr {name}", zero.typed()));
        }
        for flag in [Some(self.flag_slot()), self.whole_slot()].into_iter().flatten() {
            self.b.inst(format_args!("store i1 true, ptr {flag}"));
        }
    }

    pub(super) fn in_context(&mut self, offset: u64, stride: u64) -> String {
        if self.per_warp {
            return self
                .b
                .assign(Type::ptr(), format_args!("getelementptr i8, ptr %warp, i64 {offset}"))
                .text;
        }
        let region = self.region;
        let base = self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %context, i64 {offset}"));
        let step = self.b.assign(Type::int(64, 1), format_args!("mul i64 %g{region}, {stride}"));
        self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {}, {}", base.text, step.typed())).text
    }

    /// The threads of this group that have not ended; `None` when all always live.
    fn alive_at_start(&mut self) -> Option<Val> {
        let saved = self.alive_at.filter(|_| self.region > 0 && self.plan.loses_threads);
        let Some(at) = saved else {
            if !self.is_last_group_partial() {
                return None;
            }
            let total = self.threads.total();
            let left =
                self.b.assign(Type::int(32, 1), format_args!("sub i32 {total}, {}", self.linear_name()));
            let left = self.splat(&left);
            let lanes = self.iota(32, 1);
            return Some(self.b.icmp("ult", &lanes, &left));
        };
        let from = self.in_context(at, 8);
        let ty = Type::int(self.lanes, 1);
        let bits = self.b.assign(ty, format_args!("load {ty}, ptr {from}"));
        Some(self.b.bitcast(&bits, self.mask_ty()))
    }

    pub(super) fn save_alive(&mut self, mask: &Val) {
        if let Some(at) = self.alive_at {
            let bits = self.bits_of(mask);
            let to = self.in_context(at, 8);
            self.b.inst(format_args!("store {}, ptr {to}", bits.typed()));
        }
    }

    /// Fills the slots of the entry block's parameters. The flag: whether assumed lines hold.
    fn restore(&mut self, saved: &[Saved]) -> Option<Val> {
        let params = self.here().function.blocks[0].params.clone();
        let mut assumed = false;
        for (each, param) in saved.iter().zip(params) {
            let ty = Type::of(each.ty, 1);
            if each.is_block_uniform {
                let val = self.b.assign(ty, format_args!("load {ty}, ptr {}", block_slot(each.value)));
                let slot = self.scalar_slot(param);
                self.store_slot(&slot, &val);
                continue;
            }
            if each.is_reduced_here && self.per_warp {
                let val = self.reduced(ty);
                let slot = self.scalar_slot(param);
                self.store_slot(&slot, &val);
                continue;
            }
            assumed |= self.is_assumed(each);
            let place = self.places[&each.value];
            if let Some(at) = place.scalar {
                let from = self.in_context(at, u64::from(each.ty.bits() / 8).max(8));
                let val = self.b.assign(ty, format_args!("load {ty}, ptr {from}"));
                let slot = self.scalar_slot(param);
                self.store_slot(&slot, &val);
            }
            if each.divergence.is_varying() {
                self.restore_vector(each, param);
            }
        }
        let at = self.straight_at.filter(|_| assumed)?;
        let from = self.in_context(at, 1);
        let byte = self.b.assign(Type::int(8, 1), format_args!("load i8, ptr {from}"));
        let flag = self.b.icmp_int("ne", &byte, 0);
        let slot = self.flag_slot();
        self.b.inst(format_args!("store {}, ptr {slot}", flag.typed()));
        Some(flag)
    }

    /// In M also the vectors behind lines that may not hold.
    fn restore_vectors(&mut self, saved: &[Saved]) {
        let params = self.here().function.blocks[0].params.clone();
        for (each, param) in saved.iter().zip(params) {
            if !each.is_block_uniform && each.divergence.is_assumed() {
                self.restore_vector(each, param);
            }
        }
    }

    fn restore_vector(&mut self, each: &Saved, param: Value) {
        if self.in_place.contains_key(&param) || self.by_rows.contains_key(&param) {
            return;
        }
        if let Some(val) = self.vector_in_context(each) {
            let slot = self.vector_slot(param);
            self.store_slot(&slot, &val);
        }
    }

    /// A value that is read from its place where it is used.
    pub(super) fn read_in_place(&mut self, value: Value) -> Option<Val> {
        let nth = *self.in_place.get(&value)?;
        let each = self.here().saved[nth].clone();
        self.vector_in_context(&each)
    }

    pub(super) fn vector_in_context(&mut self, each: &Saved) -> Option<Val> {
        let spot = self.places[&each.value].vector?;
        let from = self.in_context(spot.at, spot.stride);
        if each.ty == Ty::Pred {
            let ty = Type::int(self.lanes, 1);
            let bits = self.b.assign(ty, format_args!("load {ty}, ptr {from}"));
            return Some(self.b.bitcast(&bits, self.mask_ty()));
        }
        let ty = self.vector_ty(each.ty);
        let bytes = u64::from(each.ty.bits() / 8) * u64::from(self.lanes);
        Some(self.b.assign(ty, format_args!("load {ty}, ptr {from}, align {}", bytes.min(64))))
    }

    /// Puts a result where the next region looks for it, if that can be done before the region's end.
    pub(super) fn write_in_place(&mut self, result: Value) {
        let Some(spot) = self.written.get(&result).and_then(|value| self.places[value].vector) else {
            return;
        };
        if !self.is_summed_at(result, spot) {
            let val = self.vector(result);
            self.put_vector(spot, &val);
        }
    }

    fn put_vector(&mut self, spot: Spot, val: &Val) {
        let to = self.in_context(spot.at, spot.stride);
        if val.ty.scalar == Scalar::Int(1) {
            let bits = self.bits_of(val);
            self.b.inst(format_args!("store {}, ptr {to}", bits.typed()));
        } else {
            let bytes = u64::from(val.ty.bits() / 8) * u64::from(val.ty.lanes);
            self.b.inst(format_args!("store {}, ptr {to}, align {}", val.typed(), bytes.min(64)));
        }
    }

    /// The block being written ends in the barrier in front of region `target`, with these values for it.
    pub(super) fn save(&mut self, at: usize, target: usize, values: &[Value]) {
        let saved = self.plan.regions[target].saved.clone();
        let barrier = self.here().function.blocks[at].insts.last().cloned();
        let results = barrier.as_ref().map(|inst| inst.results.clone()).unwrap_or_default();
        if self.per_warp {
            if let Some(barrier) = &barrier {
                self.request(barrier);
            }
        } else if let (Some((kind, _)), Some(&predicate)) =
            (self.reduction(target), barrier.as_ref().and_then(|inst| inst.args.last()))
        {
            self.contribute(target, kind, predicate);
        }
        let stay = self.plan.places.stay(self.here(), at, &self.plan.regions[target]);
        let mut assumed = false;
        let mut vectors = vec![];
        for ((each, &value), stays) in saved.iter().zip(values).zip(stay) {
            if results.contains(&value) || stays || self.written.contains_key(&value) {
                continue;
            }
            if each.is_block_uniform {
                let val = self.any_lanes(value, 0);
                self.b.inst(format_args!("store {}, ptr {}", val.typed(), next_slot(each.value)));
                continue;
            }
            assumed |= self.is_assumed(each);
            let place = self.places[&each.value];
            if let Some(at) = place.firsts {
                let firsts = self.firsts_to_keep(value);
                let stride = u64::from(firsts.ty.bits() / 8 * firsts.ty.lanes);
                vectors.push((Spot { at, stride }, firsts));
                if self.copy == Copy::Unmasked {
                    continue;
                }
            }
            if let Some(at) = place.scalar {
                let stride = if let Divergence::Affine { stride, .. } = each.divergence { stride } else { 0 };
                let val = self.any_lanes(value, stride);
                let to = self.in_context(at, u64::from(each.ty.bits() / 8).max(8));
                self.b.inst(format_args!("store {}, ptr {to}", val.typed()));
            }
            if let Some(spot) = place.vector {
                let is_there = self.is_summed_at(value, spot);
                if is_there || each.divergence.is_assumed() && self.copy == Copy::Unmasked {
                    continue;
                }
                vectors.push((spot, self.vector(value)));
            }
        }
        // Only now, as one may have been read from the other's place.
        for (spot, val) in vectors {
            self.put_vector(spot, &val);
        }
        if let Some(at) = self.straight_at.filter(|_| assumed) {
            let flag =
                if self.copy == Copy::Masked { self.load_flag() } else { Val::new(Type::int(1, 1), "true") };
            let byte = self.b.cast("zext", &flag, Type::int(8, 1));
            let to = self.in_context(at, 1);
            self.b.inst(format_args!("store {}, ptr {to}", byte.typed()));
        }
        let mask = self.active();
        self.save_alive(&mask);
        if self.only_way().is_none() {
            self.b.inst(format_args!("store i32 {target}, ptr %next"));
        }
    }

    /// Lane 0's value of a line with this stride, from any active lane.
    fn any_lanes(&mut self, value: Value, stride: i64) -> Val {
        match self.divergence(value) {
            Divergence::Uniform if stride == 0 => self.scalar(value),
            Divergence::Affine { stride: own, assumed }
                if own == stride && (!assumed || self.copy == Copy::Unmasked || stride != 0) =>
            {
                self.scalar(value)
            }
            _ => {
                let vector = self.vector(value);
                let lane = self.first_active();
                let val = self.extract(&vector, &lane.text.clone());
                if stride == 0 {
                    return val;
                }
                let lane = self.b.resize(&lane, val.ty.bits(), false);
                let part = self.b.bin_int("mul", &lane, stride.into());
                self.b.sub(&val, &part)
            }
        }
    }
}

/// A value of the whole block while a region runs, and the one for the next region.
fn block_slot(value: Value) -> String {
    format!("%b{}", value.0)
}

fn next_slot(value: Value) -> String {
    format!("%n{}", value.0)
}
