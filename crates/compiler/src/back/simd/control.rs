//! Control flow inside a region: the unmasked copy follows branches, the masked copy runs down the layout.

use std::collections::HashSet;

use super::{Copy, Emitter};
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{Block, Cmp, Edge, Inst, Op, Term, Value};
use crate::pass::bits::BitSet;
use crate::pass::divergence::Divergence;
use crate::pass::dominators::successors;
use crate::pass::layout::Item;
use crate::pass::meetings::{Meetings, View};
use crate::pass::visit::for_each_use;

/// What an edge carries to its target's parameters.
pub(super) struct Carried {
    param: Value,
    scalar: Option<Val>,
    pub(super) vector: Option<Val>,
}

impl Emitter<'_> {
    pub(super) fn block(&self, at: usize) -> Block {
        self.here().function.blocks[at].clone()
    }

    fn begin(&mut self, copy: Copy, mask: Option<Val>) {
        self.copy = copy;
        self.mask = mask;
        self.is_single = false;
        self.scalars.clear();
        self.vectors.clear();
        self.rows.clear();
        self.operands.clear();
        self.sums.clear();
        self.prefetches = false;
        self.begins = false;
    }

    pub(super) fn carried(&mut self, edge: &Edge) -> Vec<Carried> {
        let params = self.here().function.block(edge.block).params.clone();
        let mut all = vec![];
        for (param, &arg) in params.into_iter().zip(&edge.args) {
            let divergence = self.divergence(param);
            let scalar = (!divergence.is_varying()).then(|| self.scalar(arg));
            let wants_vector =
                divergence.is_varying() || (divergence.is_assumed() && self.copy == Copy::Masked);
            let vector = wants_vector.then(|| self.vector(arg));
            all.push(Carried { param, scalar, vector });
        }
        all
    }

    pub(super) fn store_carried(&mut self, carried: &[Carried]) {
        for each in carried {
            if let Some(val) = &each.scalar {
                let slot = self.scalar_slot(each.param);
                self.store_slot(&slot, val);
            }
            if let Some(val) = &each.vector {
                let slot = self.vector_slot(each.param);
                self.store_slot(&slot, val);
            }
        }
    }

    pub(super) fn instructions(&mut self, at: usize, insts: &[Inst]) -> Result<(), String> {
        let mut ahead = self.stripes(at, insts);
        for members in self.grouped(insts) {
            let n_members = members.len();
            let group: Vec<&Inst> = members.iter().map(|&member| &insts[member]).collect();
            match group[..] {
                [load @ Inst { op: Op::Load { .. }, .. }, store @ Inst { op: Op::Store { .. }, .. }] => {
                    self.move_lanes(load, store)?;
                }
                [Inst { op: Op::Mma(_), .. }, _] => self.mma(&group)?,
                _ if group.is_empty() || self.window_access(at, &group) => {}
                _ => group.iter().try_for_each(|inst| self.instruction(at, inst))?,
            }
            for member in members {
                if let Some(stripes) = ahead.remove(&member) {
                    self.prefetch_stripes(at, &stripes);
                }
            }
            self.share_ahead(at, n_members);
        }
        Ok(())
    }

    // ---- all lanes together ----

    pub(super) fn unmasked(&mut self) -> Result<(), String> {
        let region = self.region;
        let order = self.here().layout.items.clone();
        self.look_ahead();
        for item in order {
            let Item::Block(at) = item else { continue };
            if self.is_for_few(at) {
                continue;
            }
            self.b.start_block(&format!("u{region}_{at}"));
            self.begin(Copy::Unmasked, None);
            self.prefetches = self.comes_again(at);
            self.begins = !self.prefetches && self.begins(at);
            let block = self.block(at);
            self.instructions(at, &block.insts)?;
            self.end_ahead(at);
            self.unmasked_end(at, &block.term)?;
        }
        Ok(())
    }

    fn unmasked_end(&mut self, at: usize, term: &Term) -> Result<(), String> {
        let region = self.region;
        let latch = format!("r{region}.latch");
        match term {
            Term::Jump(edge) => {
                let carried = self.carried(edge);
                self.store_carried(&carried);
                self.follow(at, edge);
            }
            Term::Branch { cond, then, otherwise } => {
                let decided = self.here().acting.as_ref().and_then(|acting| acting.decided.get(&at));
                if let Some(&holds) = decided {
                    let edge = if holds { then } else { otherwise };
                    let carried = self.carried(edge);
                    self.store_carried(&carried);
                    self.follow(at, edge);
                    return Ok(());
                }
                let (yes, no) = (self.carried(then), self.carried(otherwise));
                if self.here().together.divergent[at]
                    && (self.count_in_turn(at, (*cond, true), (then, otherwise), &no)?
                        || self.count_in_turn(at, (*cond, false), (otherwise, then), &yes)?
                        || self.write_back(at, (*cond, true), (then, otherwise), &no)?
                        || self.write_back(at, (*cond, false), (otherwise, then), &yes)?)
                {
                    return Ok(());
                }
                let lanes = self.here().acting.as_ref().and_then(|acting| acting.lanes.get(&at).copied());
                if let Some(lanes) = lanes.filter(|_| self.here().together.divergent[at]) {
                    let (mask, against) = (self.mask_of(lanes), self.mask_of(!lanes));
                    return self.part_at(at, (then, &yes, mask), (otherwise, &no, against));
                }
                if self.here().together.divergent[at] {
                    for (holds, side, other, into, past) in
                        [(true, then, otherwise, &yes, &no), (false, otherwise, then, &no, &yes)]
                    {
                        if self.is_straight(side) && self.is_converted(at, side, other) {
                            return self.run_straight(at, (*cond, holds), (side, other), (into, past));
                        }
                    }
                }
                let (then_label, else_label) = (self.b.label("then"), self.b.label("else"));
                let few = [then, otherwise].map(|edge| self.is_for_few(edge.block.index()));
                if self.here().together.divergent[at] {
                    let mixed = self.b.label("mixed");
                    let ends = if few == [false; 2] { self.ends(at, *cond) } else { None };
                    let mask = match ends {
                        Some((first, second, then_first)) => {
                            let part = self.b.label("part");
                            let (near, far) = if then_first {
                                (&then_label, &else_label)
                            } else {
                                (&else_label, &then_label)
                            };
                            self.b.cond_br(&first, near, &part);
                            self.b.start_block(&part);
                            self.b.cond_br(&second, far, &mixed);
                            self.vector(*cond)
                        }
                        None => {
                            let mask = self.vector(*cond);
                            // Where never all lanes go to a side, one question is enough.
                            let is_open = few == [false; 2];
                            let part = if is_open { self.b.label("part") } else { mixed.clone() };
                            if !few[0] {
                                let all = self.all(&mask);
                                self.b.cond_br(&all, &then_label, &part);
                            }
                            if is_open {
                                self.b.start_block(&part);
                            }
                            if !few[1] {
                                let some = self.any(&mask);
                                self.b.cond_br(&some, &mixed, &else_label);
                            }
                            mask
                        }
                    };
                    self.b.start_block(&mixed);
                    let against = self.b.not(&mask);
                    self.part_at(at, (then, &yes, mask), (otherwise, &no, against))?;
                } else {
                    let cond = self.scalar(*cond);
                    self.b.cond_br(&cond, &then_label, &else_label);
                }
                let sides = [(then_label, then, &yes), (else_label, otherwise, &no)];
                for ((label, edge, carried), _) in sides.into_iter().zip(few).filter(|(_, few)| !few) {
                    self.b.start_block(&label);
                    self.store_carried(carried);
                    self.follow(at, edge);
                }
            }
            Term::Return(values) => {
                if let Some(target) = self.here().next[at] {
                    self.save(at, target, values);
                }
                self.b.br(&latch);
            }
            Term::Exit | Term::Switch { .. } => {
                if self.alive_at.is_some() {
                    self.save_alive(&Builder::bits(self.mask_ty(), 0));
                }
                self.b.br(&latch);
            }
        }
        Ok(())
    }

    /// Whether never all lanes of a group run the block.
    pub(super) fn is_for_few(&self, at: usize) -> bool {
        let here = self.here();
        self.lanes > 1 && here.acting.is_none() && here.for_one_lane.contains(at)
    }

    /// Some lanes go to the one, some to the other block at the end of `at`.
    fn part_at(
        &mut self,
        at: usize,
        (then, yes, mask): (&Edge, &[Carried], Val),
        (otherwise, no, against): (&Edge, &[Carried], Val),
    ) -> Result<(), String> {
        if self.is_converted(at, then, otherwise) {
            self.convert_if(at, then, (yes, no), mask)?;
        } else if self.is_converted(at, otherwise, then) {
            self.convert_if(at, otherwise, (no, yes), against)?;
        } else {
            self.leave((then, yes, &mask), (otherwise, no, &against));
            let to = self.behind_in_masked(at, [then, otherwise]);
            self.b.br(&to);
        }
        Ok(())
    }

    /// Where M goes on for lanes that part at the end of `at`. Where some of them come round a loop again that is its header at once: a
    /// loop that is come into by its end alone has two entries, and LLVM joins all that lives through it in each of its blocks.
    fn behind_in_masked(&mut self, at: usize, targets: [&Edge; 2]) -> String {
        let (region, next) = (self.region, self.here().layout.position[at] + 1);
        if let Some(&Item::LoopEnd(index)) = self.here().layout.items.get(next) {
            let header = self.here().loops.all[index].header;
            if targets.iter().any(|edge| edge.block.index() == header) {
                let head = self.here().layout.position[header];
                return self.again(header, true, format!("mb{region}_{head}"));
            }
        }
        self.step_of_m(next)
    }

    /// Looks for where lanes that part in the region come together again. `begins_whole`: all lanes begin it, and together.
    pub(super) fn find_meetings(&mut self, begins_whole: bool) {
        self.copy = Copy::Unmasked;
        self.meetings = if begins_whole { self.meetings_of_region() } else { None };
        let here = self.here();
        let read = self.meetings.as_ref().map(|meetings| {
            let mut read = BitSet::new(here.function.values.len());
            for at in meetings.apart.iter() {
                for_each_use(&here.function.blocks[at], |value| {
                    read.insert(value.index());
                });
            }
            read
        });
        let mut steps = vec![here.layout.items.len()];
        for (position, item) in here.layout.items.iter().enumerate().rev() {
            let is_step = match *item {
                Item::Block(at) => self.is_in_masked(at) || self.is_meeting(at),
                Item::LoopEnd(index) => self.is_in_masked(here.loops.all[index].header),
            };
            steps.push(if is_step { position } else { steps[steps.len() - 1] });
        }
        steps.reverse();
        (self.read_apart, self.steps_of_m) = (read, steps);
    }

    fn meetings_of_region(&self) -> Option<Meetings> {
        let here = self.here();
        let (mut parts, mut goes_on) = (vec![], HashSet::new());
        let is_begun_again = |&at: &usize| {
            here.layout.position[at] != usize::MAX && self.has_checks(&here.function.blocks[at])
        };
        for (at, block) in here.function.blocks.iter().enumerate() {
            let Term::Branch { then, otherwise, .. } = &block.term else { continue };
            let is_decided = here.acting.as_ref().is_some_and(|acting| acting.decided.contains_key(&at));
            if !here.together.divergent[at] || is_decided || here.layout.position[at] == usize::MAX {
                continue;
            }
            if self.is_converted(at, then, otherwise) {
                goes_on.insert(otherwise.block.index());
            } else if self.is_converted(at, otherwise, then) {
                goes_on.insert(then.block.index());
            } else {
                parts.push(at);
            }
        }
        let view = View {
            function: &here.function,
            graph: &successors(&here.function),
            loops: &here.loops,
            layout: &here.layout,
            live: &self.live,
            parts,
            leaves: (0..here.function.blocks.len()).filter(is_begun_again).collect(),
        };
        let is_same = |value: Value| {
            let [own, other] = [Copy::Unmasked, Copy::Masked].map(|it| self.divergences(it)[value.index()]);
            let is_near = here.offsets.get(value) == here.offsets_together.get(value);
            own == other && !own.is_assumed() && is_near
        };
        // What U has counted is read in U.
        Meetings::of(&view, is_same, |block| !goes_on.contains(&block) && !self.is_for_few(block))
    }

    /// Whether M has the block.
    pub(super) fn is_in_masked(&self, at: usize) -> bool {
        self.meetings.as_ref().is_none_or(|meetings| meetings.apart.contains(at))
    }

    /// Whether M goes back to U there once all lanes have come.
    pub(super) fn is_meeting(&self, at: usize) -> bool {
        self.meetings.as_ref().is_some_and(|meetings| meetings.at.contains(at))
    }

    /// Where M goes on from an item of the layout on.
    pub(super) fn step_of_m(&self, position: usize) -> String {
        format!("m{}_{}", self.region, self.steps_of_m[position])
    }

    /// Leaves U: each side of a branch gets its lanes in M.
    fn leave(&mut self, then: (&Edge, &[Carried], &Val), otherwise: (&Edge, &[Carried], &Val)) {
        self.masked_used = true;
        let mut values = BitSet::default();
        for (edge, ..) in [then, otherwise] {
            values.union(&self.live[edge.block.index()]);
        }
        if let Some(read) = &self.read_apart {
            values = values.common(read);
        }
        self.hand_over(&values);
        for (_, carried, _) in [then, otherwise] {
            self.store_carried(carried);
            for each in carried {
                let own = self.divergence(each.param).line();
                if let (Some(val), Some((stride, _)), true) = (&each.scalar, own, self.bends(each.param)) {
                    let all = if stride == 0 { self.splat(val) } else { self.line(val, stride) };
                    let slot = self.vector_slot(each.param);
                    self.store_slot(&slot, &all);
                }
            }
        }
        for (edge, _, mask) in [then, otherwise] {
            let slot = self.mask_slot(edge.block.index());
            self.store_slot(&slot, mask);
        }
        if self.alive_at.is_some() {
            self.save_alive(&Builder::bits(self.mask_ty(), 0));
        }
    }

    /// Whether M, which takes the value over from U, knows less of it.
    fn bends(&self, value: Value) -> bool {
        let is_line = |copy: Copy| !self.divergences(copy)[value.index()].is_varying();
        is_line(Copy::Unmasked) && !is_line(Copy::Masked)
    }

    /// Makes the vectors that M looks for of what in U are lines.
    fn hand_over(&mut self, values: &BitSet) {
        self.handed_over = self.handed_over.saturating_add(values.iter().count() as u32);
        let values = values.iter().filter(|&index| self.crossing.contains(index));
        let values: Vec<Value> =
            values.map(|index| Value(index as u32)).filter(|&value| self.bends(value)).collect();
        // What is computed here is not there where U goes on.
        let before = (self.scalars.clone(), self.vectors.clone());
        for value in values {
            let all = self.vector(value);
            let slot = self.vector_slot(value);
            self.store_slot(&slot, &all);
        }
        (self.scalars, self.vectors) = before;
    }

    /// All lanes go along an edge.
    pub(super) fn follow(&mut self, from: usize, edge: &Edge) {
        let to = edge.block.index();
        let directly = format!("u{}_{to}", self.region);
        let position = &self.here().layout.position;
        if position[to] <= position[from] {
            // The CUDA compiler has unrolled what is worth it; its remainder loops, unrolled once more, mispredict.
            let label = self.again(to, false, directly);
            self.b.inst(format_args!("br label %{label}, !llvm.loop !1"));
        } else {
            self.b.br(&directly);
        }
    }

    /// A bound on a line is tested at the line's two ends: whether all lanes are below it, whether all are above, and
    /// whether `below` is the condition itself.
    fn ends(&mut self, at: usize, cond: Value) -> Option<(Val, Val, bool)> {
        let block = &self.here().function.blocks[at];
        let inst = block.insts.iter().find(|inst| inst.results.first() == Some(&cond))?.clone();
        let Op::Icmp(cmp, int) = inst.op else { return None };
        if int.bits != 32 {
            return None;
        }
        let (line, bound, cmp) = match (self.divergence(inst.args[0]), self.divergence(inst.args[1])) {
            (Divergence::Affine { stride, .. }, Divergence::Uniform) => {
                ((inst.args[0], stride), inst.args[1], cmp)
            }
            (Divergence::Uniform, Divergence::Affine { stride, .. }) => {
                ((inst.args[1], stride), inst.args[0], crate::pass::divergence::mirrored(cmp))
            }
            _ => return None,
        };
        let (is_below, strict) = match cmp {
            Cmp::Lt => (true, true),
            Cmp::Le => (true, false),
            Cmp::Ge => (false, true),
            Cmp::Gt => (false, false),
            Cmp::Eq | Cmp::Ne => return None,
        };
        // In 64 bits nothing wraps; a line that leaves 32 bits on the way is left to the lanes.
        let (base, bound) = (self.scalar(line.0), self.scalar(bound));
        let start = self.b.resize(&base, 64, int.signed);
        let bound = self.b.resize(&bound, 64, int.signed);
        let end = self.b.bin_int("add", &start, i128::from(line.1) * i128::from(self.lanes - 1));
        let narrow = self.b.resize(&end, 32, false);
        let again = self.b.resize(&narrow, 64, int.signed);
        let fits = self.b.icmp("eq", &again, &end);
        let (low, high) = if line.1 > 0 { (start, end) } else { (end, start) };
        let (under, over) = if strict { ("slt", "sge") } else { ("sle", "sgt") };
        let mut below = self.b.icmp(under, &high, &bound);
        let mut above = self.b.icmp(over, &low, &bound);
        // Where the far end is within the bound it has not left 32 bits.
        if line.1 > 0 {
            above = self.b.and(&above, &fits);
        } else {
            below = self.b.and(&below, &fits);
        }
        Some((below, above, is_below))
    }

    /// In U, goes on in M at the start of block `at` unless `holds`.
    pub(super) fn leave_unless(&mut self, at: usize, holds: &Val) {
        let (stay, leave) = (self.b.label("straight"), self.b.label("bent"));
        self.b.cond_br(holds, &stay, &leave);
        self.b.start_block(&leave);
        self.masked_used = true;
        let mut values = self.live[at].clone();
        self.here().function.blocks[at].params.iter().for_each(|param| {
            values.insert(param.index());
        });
        self.hand_over(&values);
        let slot = self.mask_slot(at);
        self.store_slot(&slot, &Builder::bits(self.mask_ty(), 1));
        if self.alive_at.is_some() {
            self.save_alive(&Builder::bits(self.mask_ty(), 0));
        }
        // Past the place where lanes that have met go back.
        let position = self.here().layout.position[at];
        self.b.br(&format!("mb{}_{position}", self.region));
        self.b.start_block(&stay);
    }

    // ---- some lanes ----

    pub(super) fn masked(&mut self) -> Result<(), String> {
        let region = self.region;
        let items = self.here().layout.items.clone();
        for (position, item) in items.iter().enumerate() {
            if self.steps_of_m[position] != position {
                continue;
            }
            self.b.start_block(&format!("m{region}_{position}"));
            match *item {
                Item::LoopEnd(index) => {
                    let header = self.here().loops.all[index].header;
                    let (slot, ty) = (self.mask_slot(header), self.mask_ty());
                    let waiting = self.load_slot(&slot, ty);
                    let again = self.any(&waiting);
                    let head = self.here().layout.position[header];
                    let label = self.again(header, true, format!("mb{region}_{head}"));
                    let next = self.step_of_m(position + 1);
                    self.b.cond_br(&again, &label, &next);
                }
                Item::Block(at) => self.masked_block(at, position, &items)?,
            }
        }
        self.b.start_block(&format!("m{region}_{}", items.len()));
        self.b.br(&format!("r{region}.latch"));
        Ok(())
    }

    fn masked_block(&mut self, at: usize, position: usize, items: &[Item]) -> Result<(), String> {
        let region = self.region;
        let block = self.block(at);
        let (slot, ty) = (self.mask_slot(at), self.mask_ty());
        if self.is_meeting(at) && !self.meet_again(at, position) {
            return Ok(());
        }
        let may_run_empty = self.may_run_empty(at, &block);
        if may_run_empty {
            self.b.br(&format!("mb{region}_{position}"));
        } else {
            let mask = self.load_slot(&slot, ty);
            let some = self.any(&mask);
            let skip = self.step_of_m(self.behind(at, position, items));
            self.b.cond_br(&some, &format!("mb{region}_{position}"), &skip);
        }
        self.b.start_block(&format!("mb{region}_{position}"));
        self.begin(Copy::Masked, None);
        let mask = self.load_slot(&slot, ty);
        self.mask = Some(mask.clone());
        self.is_single = !may_run_empty && self.lanes <= 32 && self.is_for_few(at);
        self.store_slot(&slot, &Builder::bits(ty, 0));
        self.instructions(at, &block.insts)?;
        match &block.term {
            Term::Jump(edge) => {
                let carried = self.carried(edge);
                self.masked_edge(at, edge, &mask, &carried);
            }
            Term::Branch { cond, then, otherwise } => {
                let (yes, no) = (self.carried(then), self.carried(otherwise));
                let (for_yes, for_no) = if self.divergence(*cond).is_varying() {
                    let cond = self.vector(*cond);
                    let against = self.b.not(&cond);
                    (self.b.and(&mask, &cond), self.b.and(&mask, &against))
                } else {
                    let cond = self.scalar(*cond);
                    let none = Builder::bits(ty, 0);
                    (self.b.select(&cond, &mask, &none), self.b.select(&cond, &none, &mask))
                };
                self.masked_edge(at, then, &for_yes, &yes);
                self.masked_edge(at, otherwise, &for_no, &no);
            }
            Term::Return(values) => {
                if let Some(target) = self.here().next[at] {
                    self.save(at, target, values);
                }
            }
            Term::Exit | Term::Switch { .. } => {}
        }
        let next = self.step_of_m(position + 1);
        self.b.br(&next);
        Ok(())
    }

    /// Goes back to U where all lanes have come to block `at`. Whether the block stands in M too, for some of them.
    fn meet_again(&mut self, at: usize, position: usize) -> bool {
        let (slot, ty) = (self.mask_slot(at), self.mask_ty());
        let mask = self.load_slot(&slot, ty);
        let all = self.all(&mask);
        let is_here = self.is_in_masked(at);
        let (together, some) = (self.b.label("together"), self.b.label("some"));
        let next = if is_here { some.clone() } else { self.step_of_m(position + 1) };
        self.b.cond_br(&all, &together, &next);
        self.b.start_block(&together);
        self.store_slot(&slot, &Builder::bits(ty, 0));
        // No line that has bent is read behind this.
        let flag = self.flag_slot();
        self.b.inst(format_args!("store i1 true, ptr {flag}"));
        self.b.br(&format!("u{}_{at}", self.region));
        if is_here {
            self.b.start_block(&some);
        }
        is_here
    }

    /// Gives the lanes in `mask` to the edge's target, with its parameters.
    fn masked_edge(&mut self, from: usize, edge: &Edge, mask: &Val, carried: &[Carried]) {
        let to = edge.block.index();
        let first = self.is_first_edge(from, to);
        let slot = self.mask_slot(to);
        let ty = self.mask_ty();
        if first {
            self.store_slot(&slot, mask);
        } else {
            let before = self.load_slot(&slot, ty);
            let both = self.b.or(&before, mask);
            self.store_slot(&slot, &both);
        }
        if first {
            self.store_carried(carried);
            return;
        }
        let some = if carried.iter().any(|each| each.scalar.is_some()) { Some(self.any(mask)) } else { None };
        for each in carried {
            if let (Some(val), Some(some)) = (&each.scalar, &some) {
                let slot = self.scalar_slot(each.param);
                let before = self.load_slot(&slot, val.ty);
                let val = self.b.select(some, val, &before);
                self.store_slot(&slot, &val);
            }
            if let Some(val) = &each.vector {
                let slot = self.vector_slot(each.param);
                let before = self.load_slot(&slot, val.ty);
                let val = self.blend(mask, val, &before);
                self.store_slot(&slot, &val);
            }
        }
    }

    /// Whether no lane can wait at `to` yet when the edge from `from` is taken: the target holds nothing to keep.
    fn is_first_edge(&self, from: usize, to: usize) -> bool {
        let here = self.here();
        let position = |block: usize| here.layout.position[block];
        if position(to) <= position(from) {
            // The back edge: all lanes that entered have gone through the header.
            return true;
        }
        let leaves = here.loops.of[from].is_some_and(|inner| !here.loops.contains(inner, to));
        let mut sources: Vec<usize> = vec![];
        for (block, each) in here.function.blocks.iter().enumerate() {
            if position(block) == usize::MAX {
                continue;
            }
            sources.extend(each.term.edges().iter().filter(|edge| edge.block.index() == to).map(|_| block));
        }
        let forward = sources.iter().filter(|&&block| position(block) < position(to));
        !leaves
            && forward.min_by_key(|&&block| position(block)) == Some(&from)
            && sources.iter().filter(|&&block| block == from).count() == 1
    }

    /// The item to go on with when no lane runs block `at`: behind everything it dominates.
    fn behind(&self, at: usize, position: usize, items: &[Item]) -> usize {
        let here = self.here();
        let mut next = position + 1;
        while let Some(item) = items.get(next) {
            let inside = match *item {
                Item::Block(block) => here.dominators.dominates(at, block),
                Item::LoopEnd(index) => here.dominators.dominates(at, here.loops.all[index].header),
            };
            if !inside {
                break;
            }
            next += 1;
        }
        next
    }

    /// Few pure operations: cheaper to run for nobody than to jump over.
    fn may_run_empty(&self, at: usize, block: &Block) -> bool {
        let here = self.here();
        if here.loops.is_header(at) || matches!(block.term, Term::Return(_)) {
            return false;
        }
        let mut cost = 0;
        block.insts.iter().all(|inst| {
            cost += match &inst.op {
                Op::Float(..) | Op::FloatUn(..) | Op::Cvt { .. } => 3,
                _ => 1,
            };
            inst.op.is_pure()
        }) && cost <= 8
            && !block.insts.iter().any(|inst| crate::pass::regions::is_checked(inst, &here.divergences))
    }

    /// What `straight` has to hold in M where a widening's result is taken for a line: if it stops holding, the
    /// vectors behind all lines that other blocks read are made first.
    pub(super) fn bend_unless(&mut self, holds: &Val) {
        let (keep, bend) = (self.b.label("straight"), self.b.label("bent"));
        self.b.cond_br(holds, &keep, &bend);
        self.b.start_block(&bend);
        let straight = self.load_flag();
        let values: Vec<Value> = self.crossing.iter().map(|index| Value(index as u32)).collect();
        for value in values {
            let Divergence::Affine { stride, assumed: true } = self.divergence(value) else { continue };
            let ty = self.vector_ty(self.ty(value));
            let (slot, from) = (self.vector_slot(value), self.scalar_slot(value));
            let scalar = self.load_slot(&from, Type::new(ty.scalar, 1));
            let start = self.splat(&scalar);
            let steps = self.iota(ty.bits(), stride);
            let line = self.b.add(&start, &steps);
            let before = self.load_slot(&slot, ty);
            let val = self.b.assign(
                ty,
                format_args!("select {}, {}, {}", straight.typed(), line.typed(), before.typed()),
            );
            self.store_slot(&slot, &val);
        }
        let flag = self.flag_slot();
        self.b.inst(format_args!("store i1 false, ptr {flag}"));
        self.b.br(&keep);
        self.b.start_block(&keep);
    }
}
