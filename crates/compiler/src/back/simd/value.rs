//! IR values as LLVM values: lane 0's scalar, the vector of all lanes, masks, and the slots between blocks.

use super::{Copy, Emitter};
use crate::back::llvm::{Builder, Scalar, Type, Val};
use crate::ir::{Ty, Value};
use crate::pass::divergence::Divergence;
use crate::pass::per_value::PerValue;

/// Lanes that are taken at once where each has to be taken by itself.
const UNROLLED: u32 = 8;

/// Attributes of inline assembly that LLVM may leave out where nobody asks for its result.
pub(super) const PURE: &str = "nounwind willreturn memory(none)";

/// What lanes one after the other read.
pub(super) enum ByLane {
    /// The same in all of them.
    Same(Val),
    /// A buffer with a vector of this type.
    Own(String, Type),
}

impl Emitter<'_> {
    pub(super) fn divergence(&self, value: Value) -> Divergence {
        if self.plan.is_prologue.contains(value.index()) {
            Divergence::Uniform
        } else {
            self.divergences(self.copy)[value.index()]
        }
    }

    /// What is known of values in a copy.
    pub(super) fn divergences(&self, copy: Copy) -> &PerValue<Divergence> {
        match copy {
            Copy::Unmasked => &self.here().together.of,
            Copy::Masked => &self.here().divergences,
        }
    }

    pub(super) fn vector_ty(&self, ty: Ty) -> Type {
        Type::of(ty, self.lanes)
    }

    pub(super) fn mask_ty(&self) -> Type {
        Type::int(1, self.lanes)
    }

    /// `scalar` in every lane.
    pub(super) fn splat(&mut self, scalar: &Val) -> Val {
        if self.lanes == 1 {
            return scalar.clone();
        }
        let ty = Type::new(scalar.ty.scalar, self.lanes);
        if !scalar.text.starts_with('%') {
            return Val::new(ty, format!("splat ({})", scalar.typed()));
        }
        let one = self.b.assign(ty, format_args!("insertelement {ty} poison, {}, i64 0", scalar.typed()));
        self.b.assign(
            ty,
            format_args!(
                "shufflevector {}, {ty} poison, <{} x i32> zeroinitializer",
                one.typed(),
                self.lanes
            ),
        )
    }

    /// The constant `0, stride, 2·stride, …`
    pub(super) fn iota(&self, bits: u32, stride: i64) -> Val {
        if self.lanes == 1 {
            return Builder::bits(Type::int(bits, 1), 0);
        }
        let mask = if bits >= 64 { u64::MAX } else { (1 << bits) - 1 };
        let items: Vec<String> = (0..i64::from(self.lanes))
            .map(|lane| format!("i{bits} {}", (lane.wrapping_mul(stride) as u64) & mask))
            .collect();
        Val::new(Type::int(bits, self.lanes), format!("<{}>", items.join(", ")))
    }

    pub(super) fn line(&mut self, base: &Val, stride: i64) -> Val {
        let start = self.splat(base);
        let steps = self.iota(base.ty.bits(), stride);
        self.b.add(&start, &steps)
    }

    /// The one value of a uniform register, lane 0's of an affine one.
    pub(super) fn scalar(&mut self, value: Value) -> Val {
        if let Some(val) = self.prologue.get(&value).or_else(|| self.scalars.get(&value)) {
            return val.clone();
        }
        let ty = Type::of(self.ty(value), 1);
        let slot = self.scalar_slot(value);
        let val = self.b.assign(ty, format_args!("load {ty}, ptr {slot}"));
        self.scalars.insert(value, val.clone());
        val
    }

    /// All lanes' values.
    pub(super) fn vector(&mut self, value: Value) -> Val {
        if let Some(val) = self.vectors.get(&value) {
            return val.clone();
        }
        let val = match self.divergence(value) {
            Divergence::Uniform => {
                let scalar = self.scalar(value);
                self.splat(&scalar)
            }
            Divergence::Affine { stride, assumed } => {
                let base = self.scalar(value);
                let line = self.line(&base, stride);
                if assumed && self.copy == Copy::Masked {
                    let truth = self.load_vector(value);
                    let straight = self.load_flag();
                    self.b.assign(
                        line.ty,
                        format_args!("select {}, {}, {}", straight.typed(), line.typed(), truth.typed()),
                    )
                } else {
                    line
                }
            }
            Divergence::Varying => match self.spread_firsts(value).or_else(|| self.read_sum(value)) {
                Some(val) => val,
                None => self.load_vector(value),
            },
        };
        self.vectors.insert(value, val.clone());
        val
    }

    pub(super) fn vectors_of(&mut self, values: &[Value]) -> Vec<Val> {
        values.iter().map(|&value| self.vector(value)).collect()
    }

    /// Whether every assumed line still is one, in M.
    pub(super) fn load_flag(&mut self) -> Val {
        let name = self.flag_slot();
        self.b.assign(Type::int(1, 1), format_args!("load i1, ptr {name}"))
    }

    pub(super) fn flag_slot(&self) -> String {
        format!("%straight{}", self.region)
    }

    pub(super) fn scalar_slot(&self, value: Value) -> String {
        format!("%s{}_{}", self.region, value.0)
    }

    pub(super) fn vector_slot(&self, value: Value) -> String {
        format!("%x{}_{}", self.region, value.0)
    }

    pub(super) fn mask_slot(&self, block: usize) -> String {
        format!("%k{}_{block}", self.region)
    }

    /// The type masks and predicates have in slots.
    pub(super) fn slot_ty(&self, ty: Type) -> Type {
        if ty.scalar == Scalar::Int(1) && ty.lanes > 1 && self.wide_masks { ty.ints(32) } else { ty }
    }

    pub(super) fn store_slot(&mut self, slot: &str, val: &Val) {
        let ty = self.slot_ty(val.ty);
        let val = if ty == val.ty { val.clone() } else { self.b.cast("sext", val, ty) };
        self.b.inst(format_args!("store {}, ptr {slot}", val.typed()));
    }

    pub(super) fn load_slot(&mut self, slot: &str, ty: Type) -> Val {
        let stored = self.slot_ty(ty);
        let val = self.b.assign(stored, format_args!("load {stored}, ptr {slot}"));
        if stored == ty { val } else { self.b.icmp_int("slt", &val, 0) }
    }

    fn load_vector(&mut self, value: Value) -> Val {
        if let Some(val) = self.read_in_place(value).or_else(|| self.spread_kept_firsts(value)) {
            return val;
        }
        let (slot, ty) = (self.vector_slot(value), self.vector_ty(self.ty(value)));
        self.load_slot(&slot, ty)
    }

    /// An instruction's result as a scalar; kept where other blocks read it.
    pub(super) fn define_scalar(&mut self, value: Value, val: Val) {
        if self.crossing.contains(value.index()) {
            let slot = self.scalar_slot(value);
            self.store_slot(&slot, &val);
        }
        self.scalars.insert(value, val);
    }

    pub(super) fn define_vector(&mut self, value: Value, val: Val) {
        if self.lanes == 1 {
            return self.define_scalar(value, val);
        }
        if self.crossing.contains(value.index()) {
            let slot = self.vector_slot(value);
            self.store_slot(&slot, &val);
        }
        self.vectors.insert(value, val);
    }

    /// A result that is the same in all lanes, or a vector, as its divergence wants it.
    pub(super) fn define_from_scalar(&mut self, value: Value, val: Val) {
        if self.divergence(value).is_varying() {
            let vector = self.splat(&val);
            self.define_vector(value, vector);
        } else {
            self.define_scalar(value, val);
        }
    }

    // ---- masks ----

    /// The lanes that run the block being written.
    pub(super) fn active(&self) -> Val {
        self.mask.clone().unwrap_or_else(|| Builder::bits(self.mask_ty(), 1))
    }

    /// A mask's lanes as the bits of an integer.
    pub(super) fn bits_of(&mut self, mask: &Val) -> Val {
        self.b.bitcast(mask, Type::int(self.lanes, 1))
    }

    pub(super) fn any(&mut self, mask: &Val) -> Val {
        let bits = self.bits_of(mask);
        self.b.icmp_int("ne", &bits, 0)
    }

    pub(super) fn all(&mut self, mask: &Val) -> Val {
        let bits = self.bits_of(mask);
        self.b.icmp_int("eq", &bits, -1)
    }

    /// Index of the first active lane, as `i64`; some lane is active.
    pub(super) fn first_active(&mut self) -> Val {
        match self.mask.clone() {
            None => self.i64(0),
            Some(mask) => {
                let bits = self.bits_of(&mask);
                let yes = Val::new(Type::int(1, 1), "true");
                let index = self.b.intrinsic("cttz", &[bits.ty], bits.ty, &[&bits, &yes]);
                self.b.resize(&index, 64, false)
            }
        }
    }

    pub(super) fn extract(&mut self, vector: &Val, lane: &str) -> Val {
        if vector.ty.lanes == 1 {
            return vector.clone();
        }
        let ty = Type::new(vector.ty.scalar, 1);
        self.b.assign(ty, format_args!("extractelement {}, i64 {lane}", vector.typed()))
    }

    pub(super) fn insert(&mut self, vector: &Val, lane: &str, item: &Val) -> Val {
        if vector.ty.lanes == 1 {
            return item.clone();
        }
        self.b
            .assign(vector.ty, format_args!("insertelement {}, {}, i64 {lane}", vector.typed(), item.typed()))
    }

    /// Per lane: `yes` where the mask holds.
    pub(super) fn blend(&mut self, mask: &Val, yes: &Val, no: &Val) -> Val {
        self.b.select(mask, yes, no)
    }

    /// A mask that is written out.
    pub(super) fn mask_of(&self, lanes: u64) -> Val {
        let bits: Vec<String> =
            (0..self.lanes).map(|lane| format!("i1 {}", lanes >> lane & 1 != 0)).collect();
        Val::new(self.mask_ty(), format!("<{}>", bits.join(", ")))
    }

    /// The first of the active lanes and their number, where it is written out that they lie side by side and are a vector of
    /// fewer lanes.
    pub(super) fn active_run(&self) -> Option<(u32, u32)> {
        let bits = self.mask.as_ref()?.text.strip_prefix('<')?.strip_suffix('>')?;
        let lanes: Vec<bool> = bits.split(", ").map(|bit| bit == "i1 true").collect();
        let first = lanes.iter().position(|&lane| lane)?;
        let count = lanes.iter().filter(|&&lane| lane).count();
        let is_run = lanes[first..].iter().take(count).all(|&lane| lane);
        (is_run && count.is_power_of_two()).then_some((first as u32, count as u32))
    }

    // ---- memory of our own, for lanes picked at run time ----

    /// A buffer for one vector; buffers with the same number and type are shared by all instructions.
    pub(super) fn scratch(&mut self, number: usize, ty: Type) -> String {
        let stored = if ty.scalar == Scalar::Int(1) { ty.ints(8) } else { ty };
        let name = format!("%scratch{number}.{}", stored.suffix());
        if self.scratch.insert(name.clone(), ()).is_none() {
            self.alloca(&name, stored);
        }
        name
    }

    /// Memory for the registers of a warp, shared by all instructions that ask for as many bytes.
    pub(super) fn registers(&mut self, what: &str, bytes: u64) -> String {
        let name = format!("%registers.{what}{bytes}");
        if self.scratch.insert(name.clone(), ()).is_none() {
            self.allocas.push(format!("  {name} = alloca [{bytes} x i8], align 64"));
        }
        name
    }

    pub(super) fn spill(&mut self, number: usize, vector: &Val) -> String {
        let name = self.scratch(number, vector.ty);
        let stored = if vector.ty.scalar == Scalar::Int(1) {
            let ty = vector.ty.ints(8);
            self.b.cast("zext", vector, ty)
        } else {
            vector.clone()
        };
        self.b.inst(format_args!("store {}, ptr {name}", stored.typed()));
        name
    }

    /// Element `lane` of a buffer.
    pub(super) fn item(&mut self, buffer: &str, ty: Type, lane: &Val) -> Val {
        let scalar = Type::new(ty.scalar, 1);
        let stored = if ty.scalar == Scalar::Int(1) { scalar.ints(8) } else { scalar };
        let at = self
            .b
            .assign(Type::ptr(), format_args!("getelementptr {stored}, ptr {buffer}, {}", lane.typed()));
        let val = self.b.assign(stored, format_args!("load {stored}, ptr {}", at.text));
        if stored == scalar { val } else { self.b.cast("trunc", &val, scalar) }
    }

    pub(super) fn of_lane(&mut self, each: &ByLane, lane: &Val) -> Val {
        match each {
            ByLane::Same(val) => val.clone(),
            ByLane::Own(buffer, ty) => self.item(buffer, *ty, lane),
        }
    }

    pub(super) fn set_item(&mut self, buffer: &str, lane: &Val, val: &Val) {
        let val = if val.ty.scalar == Scalar::Int(1) {
            self.b.cast("zext", val, Type::int(8, 1))
        } else {
            val.clone()
        };
        let at = self
            .b
            .assign(Type::ptr(), format_args!("getelementptr {}, ptr {buffer}, {}", val.ty, lane.typed()));
        self.b.inst(format_args!("store {}, ptr {}", val.typed(), at.text));
    }

    /// The whole buffer as a vector.
    pub(super) fn reload(&mut self, buffer: &str, ty: Type) -> Val {
        let stored = if ty.scalar == Scalar::Int(1) { ty.ints(8) } else { ty };
        let val = self.b.assign(stored, format_args!("load {stored}, ptr {buffer}"));
        if stored == ty { val } else { self.b.cast("trunc", &val, ty) }
    }

    /// As [`Self::for_lanes`], written out where all lanes are active.
    pub(super) fn for_lanes_unrolled(&mut self, body: impl Fn(&mut Self, &Val)) {
        if self.mask.is_some() {
            return self.for_lanes(body);
        }
        if self.lanes <= UNROLLED || !self.lanes.is_multiple_of(UNROLLED) {
            for lane in 0..self.lanes {
                let lane = self.i64(lane.into());
                body(self, &lane);
            }
            return;
        }
        let (work, done) = (self.b.label("lanes"), self.b.label("lanes.done"));
        let latch = format!("{work}.end");
        let before = self.b.current_block().to_owned();
        let (first, next) = (self.b.fresh(), self.b.fresh());
        self.b.br(&work);
        self.b.start_block(&work);
        self.b.inst(format_args!("{first} = phi i64 [ 0, %{before} ], [ {next}, %{latch} ]"));
        let first = Val::new(Type::int(64, 1), first);
        for lane in 0..UNROLLED {
            let lane = self.b.bin_int("add", &first, lane.into());
            body(self, &lane);
        }
        self.b.br(&latch);
        self.b.start_block(&latch);
        self.b.inst(format_args!("{next} = add {}, {UNROLLED}", first.typed()));
        let more = self.b.assign(Type::int(1, 1), format_args!("icmp ult i64 {next}, {}", self.lanes));
        self.b.cond_br(&more, &work, &done);
        self.b.start_block(&done);
    }

    /// Runs `body` once per active lane, lowest first; it gets the lane's number as `i64`.
    pub(super) fn for_lanes(&mut self, body: impl FnOnce(&mut Self, &Val)) {
        if self.lanes == 1 {
            let lane = self.i64(0);
            return body(self, &lane);
        }
        let mask = self.active();
        let ty = Type::int(self.lanes, 1);
        let bits = self.bits_of(&mask);
        let yes = Val::new(Type::int(1, 1), "true");
        if self.is_single {
            let index = self.b.intrinsic("cttz", &[ty], ty, &[&bits, &yes]);
            let lane = self.b.resize(&index, 64, false);
            return body(self, &lane);
        }
        let (head, work, done) = (self.b.label("lanes"), self.b.label("lane"), self.b.label("lanes.done"));
        let before = self.b.current_block().to_owned();
        let left = self.b.fresh();
        let rest = self.b.fresh();
        self.b.br(&head);
        self.b.start_block(&head);
        let latch = format!("{work}.end");
        self.b.inst(format_args!("{left} = phi {ty} [ {}, %{before} ], [ {rest}, %{latch} ]", bits.text));
        let left = Val::new(ty, left);
        let some = self.b.icmp_int("ne", &left, 0);
        self.b.cond_br(&some, &work, &done);
        self.b.start_block(&work);
        let index = self.b.intrinsic("cttz", &[ty], ty, &[&left, &yes]);
        let lane = self.b.resize(&index, 64, false);
        body(self, &lane);
        self.b.br(&latch);
        self.b.start_block(&latch);
        let less = self.b.bin_int("sub", &left, 1);
        self.b.inst(format_args!("{rest} = and {}, {}", left.typed(), less.text));
        self.b.br(&head);
        self.b.start_block(&done);
    }
}
