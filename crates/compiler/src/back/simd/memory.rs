//! Loads and stores. One address for all lanes is one access, a line with the element's stride one vector, anything
//! else lane by lane.

use super::{Copy, Emitter};
use crate::back::llvm::memory::offset_pointer;
use crate::back::llvm::{Builder, Scalar, Type, Val};
use crate::ir::{CopyAsync, Inst, Mem, Op, Order, Scope, Space, Ty, Value};
use crate::pass::divergence::Divergence;
use crate::pass::visit::Definition;

/// Where the lanes of an access go, as byte offsets from the space's base.
#[derive(Clone)]
pub(super) enum Lanes {
    One(Val),
    Line { base: Val, stride: i64, assumed: bool },
    Each(Val),
}

/// What of an access does not depend on the lanes.
#[derive(Clone, Copy)]
pub(super) struct Access {
    pub(super) space: Space,
    pub(super) mem: Mem,
    pub(super) offset: i64,
    pub(super) order: Order,
    /// Elements per lane.
    pub(super) n: usize,
    /// A store that goes past the caches in large grids.
    streams: bool,
}

impl Access {
    /// That of a load or a store, if it reads or writes anything.
    pub(super) fn of(inst: &Inst) -> Option<Access> {
        let (space, mem, offset, order, n) = match inst.op {
            Op::Load { space, mem, offset, order, .. } => (space, mem, offset, order, inst.results.len()),
            Op::Store { space, mem, offset, order, .. } => {
                (space, mem, offset, order, inst.args.len().checked_sub(1)?)
            }
            _ => return None,
        };
        (n > 0).then_some(Access { space, mem, offset, order, n, streams: false })
    }

    /// The two of a copy: what is written, and what is read.
    pub(super) fn of_copy(copy: &CopyAsync) -> [Access; 2] {
        [(Space::Shared, copy.to), (Space::Global, copy.from)].map(|(space, offset)| {
            let mem = Mem { bits: 32, signed: false };
            Access { space, mem, offset, order: Order::Weak, n: usize::from(copy.size / 4), streams: false }
        })
    }

    pub(super) fn bytes(self) -> i64 {
        i64::from(self.mem.bits / 8)
    }

    /// Bytes of one lane.
    pub(super) fn step(self) -> i64 {
        self.bytes() * self.n as i64
    }

    /// Tells accesses apart that need different code, apart from where they go.
    pub(super) fn name(self) -> String {
        format!("{:?}.{}x{}", self.order, self.mem.bits, self.n)
    }

    fn is_atomic(self) -> bool {
        !matches!(self.order, Order::Weak | Order::Volatile)
    }

    /// Several elements of a lane that may be one access.
    fn is_tuple(self) -> bool {
        self.n.is_power_of_two() && self.n > 1 && self.order == Order::Weak && self.mem.bits <= 64
    }

    fn volatile(self) -> &'static str {
        if self.order == Order::Volatile { "volatile " } else { "" }
    }
}

impl Emitter<'_> {
    pub(super) fn lanes_of(&mut self, address: Value, space: Space) -> Lanes {
        let lanes = match self.divergence(address) {
            Divergence::Uniform => Lanes::One(self.scalar(address)),
            Divergence::Affine { stride, assumed } => {
                Lanes::Line { base: self.scalar(address), stride, assumed }
            }
            Divergence::Varying => Lanes::Each(self.vector(address)),
        };
        if space != Space::Local {
            return lanes;
        }
        // Thread t's window starts at t × local_bytes.
        let bytes = self.local_bytes as i64;
        let first = self.first_name();
        let start = self.b.assign(Type::int(64, 1), format_args!("mul i64 {first}, {bytes}"));
        match lanes {
            Lanes::One(base) if self.lanes == 1 => Lanes::One(self.b.add(&base, &start)),
            Lanes::One(base) => {
                Lanes::Line { base: self.b.add(&base, &start), stride: bytes, assumed: false }
            }
            Lanes::Line { base, stride, assumed } => {
                Lanes::Line { base: self.b.add(&base, &start), stride: stride + bytes, assumed }
            }
            Lanes::Each(each) => {
                let starts = self.splat(&start);
                let steps = self.iota(64, bytes);
                let starts = self.b.add(&starts, &steps);
                Lanes::Each(self.b.add(&each, &starts))
            }
        }
    }

    /// The base a space's offsets count from, and whether addresses are absolute.
    pub(super) fn pointer(&mut self, space: Space, address: &Val, offset: i64) -> Val {
        let base = match space {
            Space::Shared => Some("%shared"),
            Space::Local => Some("%local"),
            Space::Param => Some("%params"),
            Space::Generic | Space::Global | Space::Const => None,
        };
        let ty = Type::new(Scalar::Ptr, address.ty.lanes);
        let at = match base {
            Some(base) => {
                self.b.assign(ty, format_args!("getelementptr i8, ptr {base}, {}", address.typed()))
            }
            None => self.b.cast("inttoptr", address, ty),
        };
        if offset == 0 {
            return at;
        }
        self.b.assign(ty, format_args!("getelementptr i8, {}, i64 {offset}", at.typed()))
    }

    /// Kernel parameters are the same for the whole launch.
    pub(super) fn load_params(&mut self, address: &Val, offset: i64, mem: Mem, tys: &[Ty]) -> Vec<Val> {
        let mut all = vec![];
        for (nth, &ty) in tys.iter().enumerate() {
            let bytes = i64::from(mem.bits / 8);
            let at = self.pointer(Space::Param, address, offset + nth as i64 * bytes);
            let read = Self::memory_ty(ty, mem, 1);
            let val = self.b.assign(
                read,
                format_args!("load {read}, ptr {}, align {bytes}, !invariant.load !0", at.text),
            );
            all.push(self.register_value(val, mem, ty));
        }
        all
    }

    /// The type an element is loaded and stored as.
    pub(super) fn memory_ty(ty: Ty, mem: Mem, lanes: u32) -> Type {
        if ty.bits() == u32::from(mem.bits) { Type::of(ty, lanes) } else { Type::int(mem.bits.into(), lanes) }
    }

    pub(super) fn register_value(&mut self, val: Val, mem: Mem, ty: Ty) -> Val {
        let to = Type::of(ty, val.ty.lanes);
        if val.ty == to {
            return val;
        }
        let wide = self.b.resize(&val, ty.bits(), mem.signed);
        self.b.bitcast(&wide, to)
    }

    pub(super) fn memory_value(&mut self, val: &Val, mem: Mem, ty: Ty) -> Val {
        let to = Self::memory_ty(ty, mem, val.ty.lanes);
        if val.ty == to {
            return val.clone();
        }
        let bits = self.b.to_bits(val);
        self.b.resize(&bits, mem.bits.into(), false)
    }

    fn memory_values(&mut self, values: &[Value], mem: Mem, ty: Ty) -> Vec<Val> {
        let vectors = self.vectors_of(values);
        vectors.iter().map(|val| self.memory_value(val, mem, ty)).collect()
    }

    /// The distance of lanes within rows, where the address is no line of the group.
    pub(super) fn rows_of(&self, address: Value, access: Access) -> Option<i64> {
        if self.divergence(address).is_varying() { self.stride_in_rows(address, access) } else { None }
    }

    fn ordering(order: Order, store: bool) -> &'static str {
        match order {
            Order::SeqCst => "seq_cst",
            Order::Acquire if !store => "acquire",
            Order::Release if store => "release",
            Order::AcqRel => {
                if store {
                    "release"
                } else {
                    "acquire"
                }
            }
            _ => "monotonic",
        }
    }

    /// Two ways to the same results, by a flag.
    pub(super) fn fork(
        &mut self,
        flag: &Val,
        yes: impl FnOnce(&mut Self) -> Vec<Val>,
        no: impl FnOnce(&mut Self) -> Vec<Val>,
    ) -> Vec<Val> {
        let (a, b, end) = (self.b.label("way"), self.b.label("way"), self.b.label("met"));
        self.b.cond_br(flag, &a, &b);
        self.b.start_block(&a);
        let from_a = yes(self);
        let last_a = self.b.current_block().to_owned();
        self.b.br(&end);
        self.b.start_block(&b);
        let from_b = no(self);
        let last_b = self.b.current_block().to_owned();
        self.b.br(&end);
        self.b.start_block(&end);
        from_a
            .into_iter()
            .zip(from_b)
            .map(|(x, y)| {
                let ty = x.ty;
                self.b
                    .assign(ty, format_args!("phi {ty} [ {}, %{last_a} ], [ {}, %{last_b} ]", x.text, y.text))
            })
            .collect()
    }

    // ---- loads ----

    pub(super) fn load(&mut self, at: usize, inst: &Inst) -> Result<(), String> {
        let Op::Load { space, mem, offset, .. } = inst.op else { return Err("not a load".to_owned()) };
        let Some(access) = Access::of(inst) else { return Ok(()) };
        let ty = self.ty(inst.results[0]);
        if let Some(stride) = self.rows_of(inst.args[0], access) {
            let vals = self.load_rows(access, ty, inst.args[0], stride);
            for (&result, val) in inst.results.iter().zip(vals) {
                let val = self.register_value(val, mem, ty);
                self.define_vector(result, val);
            }
            return Ok(());
        }
        if let Some(vals) = self.load_from_either(at, access, ty, inst.args[0]) {
            for (&result, val) in inst.results.iter().zip(vals) {
                let val = self.register_value(val, mem, ty);
                self.define_vector(result, val);
            }
            return Ok(());
        }
        let lanes = self.lanes_of(inst.args[0], space);
        if let Lanes::One(base) = &lanes {
            for (nth, &result) in inst.results.iter().enumerate() {
                let at = self.pointer(space, base, offset + nth as i64 * access.bytes());
                let val = self.load_one(access, ty, &at.text);
                let val = self.register_value(val, mem, ty);
                self.define_from_scalar(result, val);
            }
            return Ok(());
        }
        let vals = match lanes {
            Lanes::Line { base, stride, assumed } => {
                if assumed && self.copy == Copy::Masked {
                    let each = self.vector(inst.args[0]);
                    let straight = self.load_flag();
                    self.fork(
                        &straight,
                        |me| me.load_line(access, ty, &base, stride),
                        |me| me.gather(access, ty, &each),
                    )
                } else {
                    self.load_line(access, ty, &base, stride)
                }
            }
            Lanes::Each(each) => self.gather(access, ty, &each),
            Lanes::One(_) => vec![],
        };
        for (&result, val) in inst.results.iter().zip(vals) {
            let val = self.register_value(val, mem, ty);
            self.define_vector(result, val);
        }
        Ok(())
    }

    /// Each lane reads from one of two lines, as where two arrays are read one behind the other: mostly all lanes from the same.
    fn load_from_either(&mut self, at: usize, access: Access, ty: Ty, address: Value) -> Option<Vec<Val>> {
        if self.copy != Copy::Unmasked
            || self.mask.is_some()
            || self.lanes == 1
            || access.order != Order::Weak
        {
            return None;
        }
        let Definition::Inst(block, nth, _) = self.definitions[address.index()] else { return None };
        let select = &self.here().function.blocks[block].insts[nth];
        if block != at || !matches!(select.op, Op::Select) || access.space == Space::Local {
            return None;
        }
        let (cond, sides) = (select.args[0], [select.args[1], select.args[2]]);
        let step = access.step();
        let is_line = |side: Value| matches!(self.divergence(side), Divergence::Affine { stride, .. } if stride == step);
        if !self.divergence(cond).is_varying() || !sides.into_iter().all(is_line) {
            return None;
        }
        let (cond, each) = (self.vector(cond), self.vector(address));
        let [first, second] = sides.map(|side| self.scalar(side));
        let prefetches = std::mem::replace(&mut self.prefetches, false);
        let all = self.all(&cond);
        let vals = self.fork(
            &all,
            |me| me.load_line(access, ty, &first, step),
            |me| {
                let some = me.any(&cond);
                me.fork(
                    &some,
                    |me| me.gather(access, ty, &each),
                    |me| me.load_line(access, ty, &second, step),
                )
            },
        );
        self.prefetches = prefetches;
        Some(vals)
    }

    pub(super) fn load_one(&mut self, access: Access, ty: Ty, at: &str) -> Val {
        let bytes = access.bytes();
        if access.is_atomic() {
            let int = Type::int(access.mem.bits.into(), 1);
            let ordering = Self::ordering(access.order, false);
            let val =
                self.b.assign(int, format_args!("load atomic {int}, ptr {at} {ordering}, align {bytes}"));
            return self.b.bitcast(&val, Self::memory_ty(ty, access.mem, 1));
        }
        let read = Self::memory_ty(ty, access.mem, 1);
        self.b.assign(read, format_args!("load {}{read}, ptr {at}, align {bytes}", access.volatile()))
    }

    /// One vector per element, in the memory's type.
    pub(super) fn load_line(&mut self, access: Access, ty: Ty, base: &Val, stride: i64) -> Vec<Val> {
        if stride != access.step() || access.is_atomic() {
            return self.gather_line(access, ty, base, stride);
        }
        let at = self.pointer(access.space, base, access.offset);
        self.prefetch_tile(access, std::slice::from_ref(&at), access.step() * i64::from(self.lanes));
        self.prefetch_block(access, base);
        let wide = Self::memory_ty(ty, access.mem, self.lanes * access.n as u32);
        let align = access.step();
        let all = match self.mask.clone() {
            None => self.b.assign(
                wide,
                format_args!("load {}{wide}, ptr {}, align {align}", access.volatile(), at.text),
            ),
            Some(_) if access.order == Order::Weak && self.active_run().is_some() => {
                self.load_run(access, wide, &at)
            }
            Some(mask) => {
                if access.order == Order::Volatile
                    || (self.wide_masks && access.mem.bits < 32)
                    || access.mem.bits > 64
                {
                    return self.gather_line(access, ty, base, stride);
                }
                let mask = self.repeat(&mask, access.n);
                let align = Val::new(Type::int(32, 1), align.to_string());
                let zero = Builder::bits(wide, 0);
                let name = format!("llvm.masked.load.{}.p0", wide.suffix());
                self.b.declare(&name, format!("declare {wide} @{name}(ptr, i32, {}, {wide})", mask.ty));
                self.b.assign(
                    wide,
                    format_args!(
                        "call {wide} @{name}({}, {}, {}, {})",
                        at.typed(),
                        align.typed(),
                        mask.typed(),
                        zero.typed()
                    ),
                )
            }
        };
        self.split(&all, access.n)
    }

    /// The active lanes' elements, side by side, by a load of so many; the others get 0.
    fn load_run(&mut self, access: Access, wide: Type, at: &Val) -> Val {
        let Some((first, count)) = self.active_run() else { return Builder::bits(wide, 0) };
        let n = access.n as u32;
        let some = Type::new(wide.scalar, count * n);
        let from = self.b.assign(
            Type::ptr(),
            format_args!("getelementptr i8, ptr {}, i64 {}", at.text, i64::from(first) * access.step()),
        );
        let vals =
            self.b.assign(some, format_args!("load {some}, ptr {}, align {}", from.text, access.step()));
        if some.lanes == 1 {
            return self.insert(&Builder::bits(wide, 0), &first.to_string(), &vals);
        }
        // Behind the run's elements stands 0.
        let place = |at: u32| at.checked_sub(first * n).filter(|place| *place < some.lanes);
        let picks: Vec<Option<usize>> =
            (0..wide.lanes).map(|at| Some(place(at).unwrap_or(some.lanes) as usize)).collect();
        let zero = Builder::bits(some, 0);
        self.shuffle(&vals, Some(&zero), &picks)
    }

    /// Every `n`-th element, from each of the first `n`.
    pub(super) fn split(&mut self, all: &Val, n: usize) -> Vec<Val> {
        if n == 1 {
            return vec![all.clone()];
        }
        let ty = Type::new(all.ty.scalar, self.lanes);
        (0..n)
            .map(|nth| {
                let picks: Vec<String> =
                    (0..self.lanes as usize).map(|lane| format!("i32 {}", lane * n + nth)).collect();
                self.b.assign(
                    ty,
                    format_args!(
                        "shufflevector {}, {} poison, <{} x i32> <{}>",
                        all.typed(),
                        all.ty,
                        self.lanes,
                        picks.join(", ")
                    ),
                )
            })
            .collect()
    }

    /// Each lane's bit for each of its `n` elements.
    fn repeat(&mut self, mask: &Val, n: usize) -> Val {
        if n == 1 {
            return mask.clone();
        }
        let count = self.lanes as usize * n;
        let picks: Vec<String> = (0..count).map(|at| format!("i32 {}", at / n)).collect();
        self.b.assign(
            Type::int(1, count as u32),
            format_args!(
                "shufflevector {}, {} poison, <{count} x i32> <{}>",
                mask.typed(),
                mask.ty,
                picks.join(", ")
            ),
        )
    }

    fn gather_line(&mut self, access: Access, ty: Ty, base: &Val, stride: i64) -> Vec<Val> {
        if self.mask.is_some() {
            let start = self.splat(base);
            let steps = self.iota(64, stride);
            let each = self.b.add(&start, &steps);
            return self.gather(access, ty, &each);
        }
        let at = self.pointer(access.space, base, access.offset);
        if self.is_native(access) || self.is_narrow(access) {
            let each = self.steps_from(&at, stride);
            return self.gather_native(access, ty, &each);
        }
        if self.compact {
            let name = format!("load_line{stride}.{}", access.name());
            let results = vec![Self::memory_ty(ty, access.mem, self.lanes); access.n];
            return self.outlined(&name, &[at], &results, |me, params| {
                let pointers = me.pointers_of_line(&params[0], stride);
                me.load_each(access, ty, &pointers)
            });
        }
        let pointers = self.pointers_of_line(&at, stride);
        self.load_each(access, ty, &pointers)
    }

    /// Whether an instruction of the CPU's reads or writes what the lanes have anywhere: a lane's elements together are a word of 32 or 64
    /// bits.
    pub(super) fn is_native(&self, access: Access) -> bool {
        let is_word = matches!(access.step(), 4 | 8) && access.n.is_power_of_two();
        self.wide_gathers && is_word && access.order == Order::Weak
    }

    /// Whether the same goes for a part of a word, which is read as a whole.
    fn is_narrow(&self, access: Access) -> bool {
        self.wide_gathers && matches!(access.step(), 1 | 2) && access.order == Order::Weak
    }

    /// A vector of pointers, `stride` bytes apart.
    fn steps_from(&mut self, first: &Val, stride: i64) -> Val {
        // The CPU adds offsets of 32 bits to a pointer by itself.
        let is_near = i32::try_from(stride.saturating_mul(i64::from(self.lanes))).is_ok();
        let steps = self.iota(if is_near { 32 } else { 64 }, stride);
        let ty = Type::new(Scalar::Ptr, self.lanes);
        self.b.assign(ty, format_args!("getelementptr i8, {}, {}", first.typed(), steps.typed()))
    }

    fn gather_native(&mut self, access: Access, ty: Ty, at: &Val) -> Vec<Val> {
        if access.n == 1 && access.step() >= 4 {
            return vec![self.gather_from(at, Self::memory_ty(ty, access.mem, self.lanes))];
        }
        let words = if access.step() >= 4 {
            self.gather_from(at, Type::int(8 * access.step() as u32, self.lanes))
        } else {
            self.gather_parts(at, 8 * access.step() as u32)
        };
        let all = self.b.bitcast(&words, Self::memory_ty(ty, access.mem, self.lanes * access.n as u32));
        self.split(&all, access.n)
    }

    /// `bits` of a word each, at most half of one: the aligned word that has them is in the same page.
    fn gather_parts(&mut self, at: &Val, bits: u32) -> Val {
        let address = self.b.cast("ptrtoint", at, Type::int(64, self.lanes));
        let low = self.b.resize(&address, 32, false);
        let skip = self.b.bin_int("and", &low, 3);
        let back = self.b.bin_int("and", &address, 3);
        let back = self.b.sub(&Builder::int(back.ty, 0), &back);
        let start = self.b.assign(at.ty, format_args!("getelementptr i8, {}, {}", at.typed(), back.typed()));
        let words = self.gather_from(&start, Type::int(32, self.lanes));
        let skip = self.b.bin_int("shl", &skip, 3);
        let words = self.b.bin("lshr", &words, &skip);
        self.b.resize(&words, bits, false)
    }

    fn scatter_native(&mut self, access: Access, at: &Val, vals: &[Val]) {
        let words = self.words_of(access, vals);
        self.scatter_to(at, &words);
    }

    /// All that a lane stores as one word.
    fn words_of(&mut self, access: Access, vals: &[Val]) -> Val {
        if let [val] = vals {
            return val.clone();
        }
        let all = self.weave(vals);
        self.b.bitcast(&all, Type::int(8 * access.step() as u32, self.lanes))
    }

    /// Each lane's pointer, `stride` bytes after the one before: constant distances, which LLVM folds into the addresses.
    fn pointers_of_line(&mut self, first: &Val, stride: i64) -> Vec<String> {
        let step = |lane: u32| i64::from(lane) * stride;
        let ty = Type::ptr();
        (0..self.lanes)
            .map(|lane| {
                self.b
                    .assign(ty, format_args!("getelementptr i8, {}, i64 {}", first.typed(), step(lane)))
                    .text
            })
            .collect()
    }

    /// What a function is given of the lanes' places: their pointers, or of shared memory, whose addresses have 32 bits, a pointer and
    /// a vector half as long.
    fn places(&mut self, access: Access, each: &Val) -> Vec<Val> {
        if access.space != Space::Shared {
            return vec![self.pointer(access.space, each, access.offset)];
        }
        let zero = self.i64(0);
        let base = self.pointer(access.space, &zero, access.offset);
        vec![base, self.b.resize(each, 32, false)]
    }

    /// The vector of pointers that [`Emitter::places`] stands for.
    fn pointers_of_places(&mut self, places: &[Val]) -> Val {
        let [base, offsets] = places else { return places[0].clone() };
        let wide = self.b.resize(offsets, 64, false);
        let ty = Type::new(Scalar::Ptr, offsets.ty.lanes);
        self.b.assign(ty, format_args!("getelementptr i8, {}, {}", base.typed(), wide.typed()))
    }

    /// The same, each by itself.
    fn each_of_places(&mut self, places: &[Val]) -> Vec<String> {
        let [base, offsets] = places else { return self.pointers_of_vector(&places[0]) };
        (0..offsets.ty.lanes)
            .map(|lane| {
                let offset = self.extract(offsets, &lane.to_string());
                let offset = self.b.resize(&offset, 64, false);
                let ty = Type::ptr();
                self.b.assign(ty, format_args!("getelementptr i8, {}, {}", base.typed(), offset.typed())).text
            })
            .collect()
    }

    pub(super) fn pointers_of_vector(&mut self, pointers: &Val) -> Vec<String> {
        (0..pointers.ty.lanes).map(|lane| self.extract(pointers, &lane.to_string()).text).collect()
    }

    fn gather(&mut self, access: Access, ty: Ty, each: &Val) -> Vec<Val> {
        if self.is_native(access) || self.is_narrow(access) {
            let at = self.pointer(access.space, each, access.offset);
            return self.gather_native(access, ty, &at);
        }
        if self.mask.is_some() && access.is_tuple() && !self.compact {
            return self.load_active(access, ty, each);
        }
        // As `places` has them, and the choice below is of fewer registers.
        let is_short = self.compact && access.space == Space::Shared;
        let each = &if is_short { self.b.resize(each, 32, false) } else { each.clone() };
        // Lanes without work read what the first active one reads.
        let each = match self.mask.clone() {
            None => each.clone(),
            Some(mask) => {
                let first = self.first_active();
                let safe = self.extract(each, &first.text.clone());
                let safe = self.splat(&safe);
                self.blend(&mask, each, &safe)
            }
        };
        if self.compact {
            let places = self.places(access, &each);
            let name = format!("load_each.{}", access.name());
            let results = vec![Self::memory_ty(ty, access.mem, self.lanes); access.n];
            return self.outlined(&name, &places, &results, |me, params| {
                let pointers = me.each_of_places(params);
                me.load_each(access, ty, &pointers)
            });
        }
        let mut pointers = vec![];
        for lane in 0..self.lanes {
            let address = self.extract(&each, &lane.to_string());
            pointers.push(self.pointer(access.space, &address, access.offset).text);
        }
        self.load_each(access, ty, &pointers)
    }

    /// The active lanes read by an instruction of the CPU's; the others get 0.
    pub(super) fn gather_from(&mut self, at: &Val, read: Type) -> Val {
        let mask = self.active();
        let name = format!("llvm.masked.gather.{}.v{}p0", read.suffix(), self.lanes);
        self.b.declare(&name, format!("declare {read} @{name}({}, i32, {}, {read})", at.ty, mask.ty));
        let zero = Builder::bits(read, 0);
        self.b.assign(
            read,
            format_args!(
                "call {read} @{name}({}, i32 {}, {}, {})",
                at.typed(),
                read.bits() / 8,
                mask.typed(),
                zero.typed()
            ),
        )
    }

    /// A loop over the active lanes, each of which reads all of its elements at once. Often few are active: those that
    /// copy a tile for all.
    fn load_active(&mut self, access: Access, ty: Ty, each: &Val) -> Vec<Val> {
        let pointers = self.pointer(access.space, each, access.offset);
        let places = self.spill(0, &pointers);
        let wide = Self::memory_ty(ty, access.mem, self.lanes * access.n as u32);
        let few = Self::memory_ty(ty, access.mem, access.n as u32);
        // The others hold something, and the same for everybody who looks.
        let buffer = self.spill(1, &Builder::bits(wide, 0));
        self.for_lanes(|me, lane| {
            let place = me.item(&places, pointers.ty, lane);
            let vals =
                me.b.assign(few, format_args!("load {few}, ptr {}, align {}", place.text, access.step()));
            let to =
                me.b.assign(Type::ptr(), format_args!("getelementptr {few}, ptr {buffer}, {}", lane.typed()));
            me.b.inst(format_args!("store {}, ptr {}, align {}", vals.typed(), to.text, access.step()));
        });
        let all = self.reload(&buffer, wide);
        self.split(&all, access.n)
    }

    fn load_each(&mut self, access: Access, ty: Ty, pointers: &[String]) -> Vec<Val> {
        let vector = Self::memory_ty(ty, access.mem, self.lanes);
        let mut all = vec![Val::new(vector, "poison"); access.n];
        for (lane, pointer) in pointers.iter().enumerate() {
            if access.n == 1 || access.is_atomic() {
                for (nth, whole) in all.iter_mut().enumerate() {
                    let at = self.b.assign(
                        Type::ptr(),
                        format_args!("getelementptr i8, ptr {pointer}, i64 {}", nth as i64 * access.bytes()),
                    );
                    let val = self.load_one(access, ty, &at.text);
                    *whole = self.insert(whole, &lane.to_string(), &val);
                }
                continue;
            }
            let few = Self::memory_ty(ty, access.mem, access.n as u32);
            let vals = self.b.assign(
                few,
                format_args!("load {}{few}, ptr {pointer}, align {}", access.volatile(), access.step()),
            );
            for (nth, whole) in all.iter_mut().enumerate() {
                let val = self.extract(&vals, &nth.to_string());
                *whole = self.insert(whole, &lane.to_string(), &val);
            }
        }
        all
    }

    // ---- stores ----

    pub(super) fn store(&mut self, inst: &Inst) -> Result<(), String> {
        let Op::Store { space, mem, offset, .. } = inst.op else { return Err("not a store".to_owned()) };
        let streams = self.streams.has(self.region, inst.args[0]);
        let Some(access) = Access::of(inst).map(|access| Access { streams, ..access }) else { return Ok(()) };
        let ty = self.ty(inst.args[1]);
        if let Some(stride) = self.rows_of(inst.args[0], access).filter(|&stride| stride != 0) {
            let vals = self.memory_values(&inst.args[1..], mem, ty);
            self.store_rows(access, inst.args[0], stride, &vals);
            return Ok(());
        }
        let lanes = self.lanes_of(inst.args[0], space);
        if let Lanes::One(base) = &lanes {
            // All lanes write one place: the last one stays.
            let last = self.last_active();
            for (nth, &arg) in inst.args[1..].iter().enumerate() {
                let val = if self.divergence(arg).is_uniform() {
                    self.scalar(arg)
                } else {
                    let vector = self.vector(arg);
                    self.extract(&vector, &last)
                };
                let val = self.memory_value(&val, mem, ty);
                let at = self.pointer(space, base, offset + nth as i64 * access.bytes());
                self.store_one(access, &val, &at.text);
            }
            return Ok(());
        }
        let vals = self.memory_values(&inst.args[1..], mem, ty);
        match lanes {
            Lanes::Line { base, stride, assumed } => {
                if assumed && self.copy == Copy::Masked {
                    let each = self.vector(inst.args[0]);
                    let straight = self.load_flag();
                    self.fork(
                        &straight,
                        |me| {
                            me.store_line(access, &base, stride, &vals);
                            vec![]
                        },
                        |me| {
                            me.scatter(access, &each, &vals);
                            vec![]
                        },
                    );
                } else {
                    self.store_line(access, &base, stride, &vals);
                }
            }
            Lanes::Each(each) if self.is_in_pieces(access, inst.args[0]) => {
                let at = self.pointer(space, &each, offset);
                let words = self.words_of(access, &vals);
                self.store_pieces(access, &at, &words);
            }
            Lanes::Each(each) => self.scatter(access, &each, &vals),
            Lanes::One(_) => {}
        }
        Ok(())
    }

    /// Index of the last active lane.
    fn last_active(&mut self) -> String {
        match self.mask.clone() {
            None => (self.lanes - 1).to_string(),
            Some(mask) => {
                let bits = self.bits_of(&mask);
                let yes = Val::new(Type::int(1, 1), "true");
                let zeros = self.b.intrinsic("ctlz", &[bits.ty], bits.ty, &[&bits, &yes]);
                let top = Builder::int(bits.ty, i128::from(self.lanes - 1));
                let index = self.b.sub(&top, &zeros);
                self.b.resize(&index, 64, false).text
            }
        }
    }

    fn store_one(&mut self, access: Access, val: &Val, at: &str) {
        let bytes = access.bytes();
        if access.is_atomic() {
            let val = self.b.to_bits(val);
            let ordering = Self::ordering(access.order, true);
            self.b.inst(format_args!("store atomic {}, ptr {at} {ordering}, align {bytes}", val.typed()));
        } else {
            self.b.inst(format_args!("store {}{}, ptr {at}, align {bytes}", access.volatile(), val.typed()));
        }
    }

    pub(super) fn store_line(&mut self, access: Access, base: &Val, stride: i64, vals: &[Val]) {
        let contiguous = stride == access.step() && !access.is_atomic();
        let at = self.pointer(access.space, base, access.offset);
        let Some(mask) = self.mask.clone() else {
            if contiguous && access.streams {
                let all = self.weave(vals);
                self.store_streamed(access, &all, &at);
            } else if contiguous {
                let all = self.weave(vals);
                self.store_whole(access, &all, &at);
            } else if self.is_native(access) && !access.streams {
                let each = self.steps_from(&at, stride);
                self.scatter_native(access, &each, vals);
            } else if self.compact {
                let name = format!("store_line{stride}.{}", access.name());
                let params = [&[at], vals].concat();
                self.outlined(&name, &params, &[], |me, params| {
                    let pointers = me.pointers_of_line(&params[0], stride);
                    me.store_each(access, &pointers, &params[1..]);
                    vec![]
                });
            } else {
                let pointers = self.pointers_of_line(&at, stride);
                self.store_each(access, &pointers, vals);
            }
            return;
        };
        if !contiguous {
            let start = self.splat(base);
            let steps = self.iota(64, stride);
            let each = self.b.add(&start, &steps);
            self.scatter(access, &each, vals);
            return;
        }
        if let (Order::Weak, Some((first, count))) = (access.order, self.active_run()) {
            let all = self.weave(vals);
            let (skip, count) = (first * access.n as u32, count * access.n as u32);
            let some = if count == 1 {
                self.extract(&all, &skip.to_string())
            } else {
                let picks: Vec<Option<usize>> = (skip..skip + count).map(|at| Some(at as usize)).collect();
                self.shuffle(&all, None, &picks)
            };
            let to = self.b.assign(
                Type::ptr(),
                format_args!("getelementptr i8, ptr {}, i64 {}", at.text, i64::from(first) * access.step()),
            );
            self.store_whole(access, &some, &to);
            return;
        }
        let full = self.all(&mask);
        let all = self.weave(vals);
        self.fork(
            &full,
            |me| {
                me.store_whole(access, &all, &at);
                vec![]
            },
            |me| {
                let native = access.order == Order::Weak
                    && access.mem.bits <= 64
                    && (!me.wide_masks || access.mem.bits >= 32);
                if native {
                    let mask = me.repeat(&mask, access.n);
                    me.store_under(&mask, access.step(), &at, &all);
                } else {
                    let start = me.splat(base);
                    let steps = me.iota(64, stride);
                    let each = me.b.add(&start, &steps);
                    me.scatter(access, &each, vals);
                }
                vec![]
            },
        );
    }

    /// The words of `all` that the mask names.
    pub(super) fn store_under(&mut self, mask: &Val, align: i64, at: &Val, all: &Val) {
        let name = format!("llvm.masked.store.{}.p0", all.ty.suffix());
        self.b.declare(&name, format!("declare void @{name}({}, ptr, i32, {})", all.ty, mask.ty));
        self.b.inst(format_args!(
            "call void @{name}({}, {}, i32 {align}, {})",
            all.typed(),
            at.typed(),
            mask.typed()
        ));
    }

    fn store_each(&mut self, access: Access, pointers: &[String], vals: &[Val]) {
        for (lane, pointer) in pointers.iter().enumerate() {
            for (nth, val) in vals.iter().enumerate() {
                let step = nth as i64 * access.bytes();
                let to =
                    self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {pointer}, i64 {step}"));
                let item = self.extract(val, &lane.to_string());
                self.store_one(access, &item, &to.text);
            }
        }
    }

    pub(super) fn store_whole(&mut self, access: Access, all: &Val, at: &Val) {
        let is_of_several_lanes = all.ty.lanes as usize > access.n;
        if access.space == Space::Shared
            && access.order == Order::Weak
            && is_of_several_lanes
            && self.next_takes_less()
        {
            return self.store_halves(access, all, at);
        }
        self.b.inst(format_args!(
            "store {}{}, ptr {}, align {}",
            access.volatile(),
            all.typed(),
            at.text,
            access.step()
        ));
    }

    /// Whether one group runs the region and only some of its lanes act in the next: a step of a tree, which reads halves of what is
    /// stored here.
    fn next_takes_less(&self) -> bool {
        let acting = self.here().acting.as_ref();
        let n_groups = acting.map_or(self.groups, |acting| acting.groups.end - acting.groups.start);
        let takes_less = |&next: &usize| {
            self.plan.regions[next].acting.as_ref().is_some_and(|acting| !acting.lanes.is_empty())
        };
        n_groups == 1 && self.here().next.iter().flatten().any(takes_less)
    }

    /// By two stores. LLVM hands a store's value on to a load of the same type; a load of half of it becomes shifts of one
    /// integer as wide as the vector, which it takes to pieces by words (`llvm::VNCoercion`).
    fn store_halves(&mut self, access: Access, all: &Val, at: &Val) {
        let half = all.ty.lanes as usize / 2;
        for first in [0, half] {
            let part = if half == 1 {
                self.extract(all, &first.to_string())
            } else {
                let picks: Vec<Option<usize>> = (first..first + half).map(Some).collect();
                self.shuffle(all, None, &picks)
            };
            let to = offset_pointer(&mut self.b, at, first as i64 * access.bytes());
            self.b.inst(format_args!("store {}, {}, align {}", part.typed(), to.typed(), access.step()));
        }
    }

    /// The lanes' elements in memory order.
    pub(super) fn weave(&mut self, vals: &[Val]) -> Val {
        let mut parts = vals.to_vec();
        while parts.len() > 1 {
            let mut joined = vec![];
            for pair in parts.chunks(2) {
                let count = pair[0].ty.lanes * 2;
                let ty = Type::new(pair[0].ty.scalar, count);
                let picks: Vec<String> = (0..count).map(|at| format!("i32 {at}")).collect();
                joined.push(self.b.assign(
                    ty,
                    format_args!(
                        "shufflevector {}, {}, <{count} x i32> <{}>",
                        pair[0].typed(),
                        pair[1].typed(),
                        picks.join(", ")
                    ),
                ));
            }
            parts = joined;
        }
        let all = parts.remove(0);
        let n = vals.len() as u32;
        if n == 1 {
            return all;
        }
        let count = all.ty.lanes;
        let picks: Vec<String> =
            (0..count).map(|at| format!("i32 {}", at % n * self.lanes + at / n)).collect();
        self.b.assign(
            all.ty,
            format_args!(
                "shufflevector {}, {} poison, <{count} x i32> <{}>",
                all.typed(),
                all.ty,
                picks.join(", ")
            ),
        )
    }

    fn scatter(&mut self, access: Access, each: &Val, vals: &[Val]) {
        if self.is_native(access) {
            let at = self.pointer(access.space, each, access.offset);
            self.scatter_native(access, &at, vals);
            return;
        }
        if self.compact {
            self.call_scatter(access, each, vals);
            return;
        }
        let at = self.pointer(access.space, each, access.offset);
        if self.mask.is_some() {
            self.store_active(access, &at, vals);
        } else {
            let pointers = self.pointers_of_vector(&at);
            self.store_each(access, &pointers, vals);
        }
    }

    /// As a call of a function for all or for the active lanes.
    fn call_scatter(&mut self, access: Access, each: &Val, vals: &[Val]) {
        let places = self.places(access, each);
        let n = places.len();
        let Some(mask) = self.mask.clone() else {
            let name = format!("store_each.{}", access.name());
            self.outlined(&name, &[&places, vals].concat(), &[], |me, params| {
                let pointers = me.each_of_places(&params[..n]);
                me.store_each(access, &pointers, &params[n..]);
                vec![]
            });
            return;
        };
        let name = format!("store_active.{}", access.name());
        let bits = self.bits_of(&mask);
        let params = [&[bits], places.as_slice(), vals].concat();
        self.outlined(&name, &params, &[], |me, params| {
            me.mask = Some(me.b.bitcast(&params[0], mask.ty));
            let pointers = me.pointers_of_places(&params[1..=n]);
            me.store_active(access, &pointers, &params[n + 1..]);
            vec![]
        });
    }

    /// The active lanes write by an instruction of the CPU's, in their order.
    pub(super) fn scatter_to(&mut self, at: &Val, val: &Val) {
        let mask = self.active();
        let name = format!("llvm.masked.scatter.{}.v{}p0", val.ty.suffix(), self.lanes);
        self.b.declare(&name, format!("declare void @{name}({}, {}, i32, {})", val.ty, at.ty, mask.ty));
        self.b.inst(format_args!(
            "call void @{name}({}, {}, i32 {}, {})",
            val.typed(),
            at.typed(),
            val.ty.bits() / 8,
            mask.typed()
        ));
    }

    /// A loop over the active lanes.
    fn store_active(&mut self, access: Access, pointers: &Val, vals: &[Val]) {
        let places = self.spill(0, pointers);
        if access.is_tuple() {
            let all = self.weave(vals);
            let few = Type::new(all.ty.scalar, access.n as u32);
            let buffer = self.spill(1, &all);
            self.for_lanes(|me, lane| {
                let place = me.item(&places, pointers.ty, lane);
                let from = me
                    .b
                    .assign(Type::ptr(), format_args!("getelementptr {few}, ptr {buffer}, {}", lane.typed()));
                let vals =
                    me.b.assign(few, format_args!("load {few}, ptr {}, align {}", from.text, access.step()));
                me.b.inst(format_args!(
                    "store {}, ptr {}, align {}",
                    vals.typed(),
                    place.text,
                    access.step()
                ));
            });
            return;
        }
        let buffers: Vec<String> =
            vals.iter().enumerate().map(|(nth, val)| self.spill(nth + 1, val)).collect();
        self.for_lanes(|me, lane| {
            let place = me.item(&places, pointers.ty, lane);
            for (nth, (buffer, val)) in buffers.iter().zip(vals).enumerate() {
                let item = me.item(buffer, val.ty, lane);
                let step = nth as i64 * access.bytes();
                let to = me
                    .b
                    .assign(Type::ptr(), format_args!("getelementptr i8, ptr {}, i64 {step}", place.text));
                me.store_one(access, &item, &to.text);
            }
        });
    }

    pub(super) fn fence(&mut self, order: Order, scope: Scope) {
        let ordering = if order == Order::SeqCst { "seq_cst" } else { "acq_rel" };
        // One OS thread runs the whole block.
        let scope = if scope == Scope::Cta { "syncscope(\"singlethread\") " } else { "" };
        self.b.inst(format_args!("fence {scope}{ordering}"));
    }
}
