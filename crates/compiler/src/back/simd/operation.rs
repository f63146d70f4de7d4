//! One instruction in either copy: scalar where its results are uniform or affine, else a vector.

use super::value::ByLane;
use super::{Copy, Emitter};
use crate::back::lane::layout::{service, status};
use crate::back::llvm::{Builder, Type, Val, emit_pure, texture};
use crate::ir::{Fault, Inst, Op, TensorCopy, Ty, Value};
use crate::pass::divergence::Divergence;
use crate::pass::regions::is_checked;
use crate::texture::Access;

impl Emitter<'_> {
    /// A pure operation on `lanes` lanes.
    pub(super) fn pure(
        &mut self,
        op: &Op,
        args: &[Val],
        arg_tys: &[Ty],
        result_tys: &[Ty],
        lanes: u32,
    ) -> Result<Vec<Val>, String> {
        let texts: Vec<&str> = args.iter().map(|arg| arg.text.as_str()).collect();
        let results = emit_pure(&mut self.b, op, &texts, arg_tys, result_tys, lanes)
            .map_err(|missing| missing.to_string())?;
        Ok(results
            .into_iter()
            .zip(result_tys)
            .map(|(text, &ty)| Val::new(Type::of(ty, lanes), text))
            .collect())
    }

    pub(super) fn types(&self, values: &[Value]) -> Vec<Ty> {
        values.iter().map(|&value| self.ty(value)).collect()
    }

    pub(super) fn instruction(&mut self, at: usize, inst: &Inst) -> Result<(), String> {
        let is_prologue = |value: &Value| self.plan.is_prologue.contains(value.index());
        if !inst.results.is_empty() && inst.results.iter().all(is_prologue) {
            return Ok(());
        }
        match &inst.op {
            Op::Special(_) | Op::LocalAddr(_) | Op::Cvta { .. } | Op::IsSpace(_) => self.special(inst),
            Op::Load { .. } => self.load(at, inst),
            Op::Store { .. } => self.store(inst),
            Op::Atomic { .. } => self.atomic(at, inst),
            Op::Fence { order, scope } => {
                self.fence(*order, *scope);
                Ok(())
            }
            op if op.is_warp_collective() => self.collective(inst),
            // The region ends behind it.
            op if op.is_barrier() => Ok(()),
            Op::Syscall(call) => self.syscall(*call, inst),
            Op::Texture(access) => self.texture(*access, inst),
            Op::CopyAsync(copy) => {
                self.copy_async(copy, inst);
                Ok(())
            }
            Op::TensorCopy(copy) => {
                self.tensor_copy(*copy, inst);
                Ok(())
            }
            // PTX: any time from 0 to twice what is asked; other warps of the block could not run meanwhile.
            Op::NanoSleep if self.per_warp => Ok(()),
            Op::NanoSleep => {
                self.sleep(inst);
                Ok(())
            }
            Op::Trap | Op::Breakpoint | Op::Fault(_) => {
                self.b.inst(match &inst.op {
                    Op::Fault(Fault::InvalidPc) => "ret i32 -5",
                    Op::Fault(Fault::Stack) => "ret i32 -4",
                    _ => "ret i32 -1",
                });
                let dead = self.b.label("dead");
                self.b.start_block(&dead);
                Ok(())
            }
            Op::Call(_) | Op::CallIndirect => Err("it calls a function".to_owned()),
            op if op.is_pure() => self.compute(at, inst),
            op => Err(format!("setting `simd` does not have {op:?}")),
        }
    }

    /// Lanes at known distances from lane 0's address in the shared or local window are found from there. Where lane 0 has no part in
    /// the access its address may lie below the window, so what widens it is its sign.
    fn widening<'a>(&self, inst: &'a Inst) -> &'a Op {
        if !matches!(inst.op, Op::Zext) || !self.here().offsets.is_in_window(inst.results[0]) {
            return &inst.op;
        }
        let from_lane_0 = match self.divergence(inst.results[0]) {
            Divergence::Uniform => false,
            Divergence::Affine { .. } => true,
            // The sign makes no difference within the window, and what gathers takes numbers with signs.
            Divergence::Varying => self.wide_gathers || self.offsets(inst.results[0]).is_some(),
        };
        if from_lane_0 { &Op::Sext } else { &inst.op }
    }

    fn compute(&mut self, at: usize, inst: &Inst) -> Result<(), String> {
        if self.define_counted(inst) {
            return Ok(());
        }
        let (arg_tys, result_tys) = (self.types(&inst.args), self.types(&inst.results));
        let varying = inst.results.iter().any(|&result| self.divergence(result).is_varying());
        if varying && self.copy == Copy::Unmasked {
            self.check_offsets(at, inst);
        }
        if varying && self.compute_by_rows(at, inst)? {
            return Ok(());
        }
        if varying {
            if self.copy == Copy::Masked {
                self.bend_unless_rows_hold(inst);
            }
            let args = self.vectors_of(&inst.args);
            let results = self.pure(self.widening(inst), &args, &arg_tys, &result_tys, self.lanes)?;
            for (&value, val) in inst.results.iter().zip(results) {
                if self.divergence(value).is_varying() {
                    self.define_vector(value, val);
                } else {
                    let first = self.extract(&val, "0");
                    self.define_scalar(value, first);
                }
            }
            return Ok(());
        }
        if inst.args.iter().any(|&arg| self.divergence(arg).is_varying()) {
            // One value in spite of what the lanes bring: its range is one number.
            let result = inst.results[0];
            let found = self.here().ranges.range(result).filter(|(low, high)| low == high);
            let (low, _) = found.ok_or("a uniform result of varying operands")?;
            let val = crate::back::llvm::Builder::bits(Type::of(self.ty(result), 1), low.into());
            self.define_scalar(result, val);
            return Ok(());
        }
        // Only in M, and only behind a line that may bend, the vector is computed too.
        let bends = self.copy == Copy::Masked
            && inst.results.iter().any(|&result| self.divergence(result).is_assumed());
        let truth = if bends {
            let args = self.vectors_of(&inst.args);
            Some(self.pure(&inst.op, &args, &arg_tys, &result_tys, self.lanes)?)
        } else {
            None
        };
        if is_checked(inst, self.divergences(self.copy)) {
            self.check(at, inst);
        }
        let args: Vec<Val> = inst.args.iter().map(|&arg| self.scalar(arg)).collect();
        let results = self.pure(self.widening(inst), &args, &arg_tys, &result_tys, 1)?;
        for (&value, val) in inst.results.iter().zip(results) {
            self.define_scalar(value, val);
        }
        for (&value, val) in inst.results.iter().zip(truth.into_iter().flatten()) {
            self.define_vector(value, val);
        }
        Ok(())
    }

    /// A widening takes a line of narrow numbers for a line of wide ones: it is, if no lane's number wraps.
    fn check(&mut self, at: usize, inst: &Inst) {
        let line = inst.args.iter().copied().find(|&arg| !self.divergence(arg).is_uniform());
        let (Some(arg), false) = (line, inst.args.is_empty()) else { return };
        let Divergence::Affine { stride, .. } = self.divergence(arg) else { return };
        let signed = matches!(inst.op, Op::Sext) || matches!(inst.op, Op::MulWide(int) if int.signed);
        let base = self.scalar(arg);
        let last = stride.wrapping_mul(i64::from(self.lanes) - 1);
        let name = if signed {
            "sadd.with.overflow"
        } else if last >= 0 {
            "uadd.with.overflow"
        } else {
            "usub.with.overflow"
        };
        let step = Val::new(base.ty, if signed { last } else { last.abs() }.to_string());
        let bits = base.ty.suffix();
        self.b.declare(
            &format!("llvm.{name}.{bits}"),
            format!("declare {{ {bits}, i1 }} @llvm.{name}.{bits}({bits}, {bits})"),
        );
        let pair = self.b.fresh();
        self.b.inst(format_args!(
            "{pair} = call {{ {bits}, i1 }} @llvm.{name}.{bits}({}, {})",
            base.typed(),
            step.typed()
        ));
        let wraps = self.b.assign(Type::int(1, 1), format_args!("extractvalue {{ {bits}, i1 }} {pair}, 1"));
        let holds = self.b.not(&wraps);
        match self.copy {
            Copy::Unmasked => self.leave_unless(at, &holds),
            Copy::Masked => self.bend_unless(&holds),
        }
    }

    /// A widening takes distances of narrow numbers for those of wide ones: they are, if no lane's number wraps.
    fn check_offsets(&mut self, at: usize, inst: &Inst) {
        if !self.here().offsets_together.is_checked(inst) {
            return;
        }
        let arg = inst.args.iter().copied().find(|&arg| self.divergence(arg).is_varying());
        let Some((arg, lanes)) = arg.and_then(|arg| Some((arg, self.offsets(arg)?.clone()))) else { return };
        let signed = matches!(inst.op, Op::Sext) || matches!(inst.op, Op::MulWide(int) if int.signed);
        let all = self.vector(arg);
        let first = self.extract(&all, "0");
        let wide = self.b.resize(&first, 64, signed);
        let ends = [lanes.iter().min(), lanes.iter().max()].map(|end| i128::from(*end.unwrap_or(&0)));
        let [low, high] = ends.map(|end| {
            let last = self.b.bin_int("add", &wide, end);
            let narrow = self.b.resize(&last, first.ty.bits(), false);
            let again = self.b.resize(&narrow, 64, signed);
            self.b.icmp("eq", &again, &last)
        });
        let holds = self.b.and(&low, &high);
        self.leave_unless(at, &holds);
    }

    fn sleep(&mut self, inst: &Inst) {
        let time = self.vector(inst.args[0]);
        let lane = self.first_active();
        let time = self.extract(&time, &lane.text.clone());
        let call = self.service(5);
        self.b.inst(format_args!("call void {call}({})", time.typed()));
    }

    /// The address of a service.
    pub(super) fn service(&mut self, slot: u64) -> String {
        let at =
            self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %services, i64 {}", slot * 8));
        self.b.assign(Type::ptr(), format_args!("load ptr, ptr {}", at.text)).text
    }

    fn syscall(&mut self, call: crate::ir::Syscall, inst: &Inst) -> Result<(), String> {
        use crate::ir::Syscall;
        let wanted = match call {
            Syscall::Vprintf | Syscall::DeviceRuntime => 2,
            Syscall::Malloc | Syscall::Free => 1,
            Syscall::AssertFail => 5,
            Syscall::TensorMemory => 10,
            Syscall::CancelCluster => 0,
        };
        if inst.args.len() != wanted {
            return Err(format!("{call:?} with {} arguments", inst.args.len()));
        }
        let vectors = self.vectors_of(&inst.args);
        let buffers: Vec<(String, Type)> =
            vectors.iter().enumerate().map(|(number, val)| (self.spill(number, val), val.ty)).collect();
        let result = inst.results.first().copied();
        let out = result.map(|value| {
            let ty = self.vector_ty(self.ty(value));
            let zero = crate::back::llvm::Builder::bits(ty, 0);
            (value, self.spill(wanted, &zero), ty)
        });
        let service = self.service(match call {
            Syscall::Vprintf => 0,
            Syscall::Malloc => 1,
            Syscall::Free => 2,
            Syscall::AssertFail => 3,
            Syscall::DeviceRuntime => 12,
            Syscall::TensorMemory => 13,
            Syscall::CancelCluster => 14,
        });
        let into = out.as_ref().map(|(_, buffer, _)| buffer.clone());
        self.for_lanes(|me, lane| {
            let mut args: Vec<Val> = buffers.iter().map(|(buffer, ty)| me.item(buffer, *ty, lane)).collect();
            let pointers = match call {
                Syscall::Vprintf => 2,
                Syscall::Malloc | Syscall::CancelCluster => 0,
                Syscall::Free | Syscall::DeviceRuntime | Syscall::TensorMemory => 1,
                Syscall::AssertFail => 3,
            };
            let mut words = vec!["ptr %launch".to_owned()];
            // message, file, line, function, char size: the line stands between pointers.
            for (nth, arg) in args.iter_mut().enumerate() {
                let is_pointer =
                    if call == Syscall::AssertFail { nth != 2 && nth != 4 } else { nth < pointers };
                if is_pointer {
                    *arg = me.b.cast("inttoptr", arg, Type::ptr());
                } else {
                    let bits = if call == Syscall::AssertFail && nth == 2 { 32 } else { 64 };
                    *arg = me.b.resize(arg, bits, false);
                }
                words.push(arg.typed());
            }
            if call == Syscall::AssertFail {
                let number = me.b.resize(lane, 32, false);
                let first = Val::new(Type::int(32, 1), me.linear_name());
                let thread = me.b.add(&first, &number);
                words.extend(["x", "y", "z"].map(|axis| format!("i32 %ctaid.{axis}")));
                words.push(thread.typed());
            }
            let list = words.join(", ");
            match call {
                Syscall::Vprintf
                | Syscall::DeviceRuntime
                | Syscall::TensorMemory
                | Syscall::CancelCluster => {
                    let is_long = matches!(call, Syscall::DeviceRuntime | Syscall::CancelCluster);
                    let to = Type::int(if is_long { 64 } else { 32 }, 1);
                    let val = me.b.assign(to, format_args!("call {to} {service}({list})"));
                    if let Some(into) = &into {
                        me.set_item(into, lane, &val);
                    }
                }
                Syscall::Malloc => {
                    let val = me.b.assign(Type::ptr(), format_args!("call ptr {service}({list})"));
                    let val = me.b.cast("ptrtoint", &val, Type::int(64, 1));
                    if let Some(into) = &into {
                        me.set_item(into, lane, &val);
                    }
                }
                Syscall::Free => me.b.inst(format_args!("call void {service}({list})")),
                Syscall::AssertFail => me.b.inst(format_args!("call void {service}({list})")),
            }
        });
        if call == Syscall::AssertFail {
            // Every lane that fails has its line first.
            let mask = self.active();
            let bits = self.bits_of(&mask);
            let some = self.b.icmp_int("ne", &bits, 0);
            let [stop, on] = ["failed", "on"].map(|hint| self.b.label(hint));
            self.b.cond_br(&some, &stop, &on);
            self.b.start_block(&stop);
            self.b.inst("ret i32 -2");
            self.b.start_block(&on);
        }
        if let Some((value, buffer, ty)) = out {
            let val = self.reload(&buffer, ty);
            self.define_vector(value, val);
        }
        Ok(())
    }

    /// A copy for each active lane, lowest first: mostly one elected lane asks for one. A map that does not fit the instruction
    /// traps, when the lanes below have made their copies.
    fn tensor_copy(&mut self, copy: TensorCopy, inst: &Inst) {
        let mut args = vec![];
        for (number, &arg) in inst.args.iter().enumerate() {
            args.push(if self.divergence(arg).is_uniform() {
                ByLane::Same(self.scalar(arg))
            } else {
                let val = self.vector(arg);
                ByLane::Own(self.spill(number, &val), val.ty)
            });
        }
        let (word, result) = (Type::int(32, 1), inst.results[0]);
        let out = self.vector_ty(self.ty(result));
        let bytes = self.spill(args.len(), &Builder::bits(out, 0));
        let service = self.service(service::TENSOR as u64);
        self.for_lanes(|me, lane| {
            let mut words = vec![];
            for (nth, arg) in args.iter().enumerate() {
                let val = me.of_lane(arg, lane);
                // The map and shared memory.
                words.push(if nth < 2 { me.b.cast("inttoptr", &val, Type::ptr()) } else { val }.typed());
            }
            let (list, flags) = (words.join(", "), copy.flags());
            let copied = me.b.assign(word, format_args!("call i32 {service}({list}, i32 {flags})"));
            let fits = me.b.icmp_int("sge", &copied, 0);
            let [on, stop] = ["on", "stop"].map(|hint| me.b.label(hint));
            me.b.cond_br(&fits, &on, &stop);
            me.b.start_block(&stop);
            me.b.inst(format_args!("ret i32 {}", status::TRAP));
            me.b.start_block(&on);
            me.set_item(&bytes, lane, &copied);
        });
        let val = self.reload(&bytes, out);
        self.define_vector(result, val);
    }

    /// One call of the host's sampler for the active lanes.
    fn texture(&mut self, access: Access, inst: &Inst) -> Result<(), String> {
        let mut args = self.vectors_of(&inst.args[1..]);
        let handle = inst.args[0];
        let handle =
            if self.divergence(handle).is_uniform() { self.scalar(handle) } else { self.vector(handle) };
        args.insert(0, handle);
        let results = self.types(&inst.results);
        if self.lanes == 1 {
            let service = self.service(8);
            let words = Val::new(Type::ptr(), self.scratch(0, texture::words_ty()));
            texture::call(&mut self.b, &service, &words, access, &args);
            for (nth, (&value, ty)) in inst.results.iter().zip(results).enumerate() {
                let val = texture::result(&mut self.b, &words, nth, Type::of(ty, 1));
                self.define_vector(value, val);
            }
            return Ok(());
        }
        let service = self.service(10);
        let bytes = texture::columns_bytes(access, self.lanes);
        let columns = Val::new(Type::ptr(), self.registers("texture", bytes));
        let mask = self.active();
        let bits = self.bits_of(&mask);
        let active = self.b.resize(&bits, 64, false);
        texture::call_group(&mut self.b, &service, &columns, access, &args, self.lanes, &active);
        for (nth, (&value, ty)) in inst.results.iter().zip(results).enumerate() {
            let to = self.vector_ty(ty);
            let val = texture::group_result(&mut self.b, &columns, access, nth, to);
            self.define_vector(value, val);
        }
        Ok(())
    }
}
