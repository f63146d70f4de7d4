//! Atomic operations, lane by lane in order. Shared memory belongs to the OS thread that runs the block, so there an
//! atomic is a load, an operation and a store; where no two lanes have the same word there it is a gather, an operation
//! and a scatter.

use super::Emitter;
use super::memory::Lanes;
use super::value::{ByLane, PURE};
use crate::back::llvm::{Builder, Scalar, Type, Val, memory};
use crate::ir::{AtomOp, AtomTy, Float, Inst, Op, Order, Scope, Space, Ty, Value};
use crate::pass::apart::View;
use crate::pass::regions::{Plan, Region};
use crate::pass::visit::Definition;
use std::cell::RefCell;

/// Atomics on shared memory at places of the lanes' own from which on they are calls.
const MANY: usize = 4;

/// Active lanes of 32 up to which only they do an atomic on shared memory: more are done as fast together with the others, which costs
/// no decision of the CPU's.
const FEW: u32 = 8;

/// An atomic that lanes which are not active do too.
struct Diverted {
    op: AtomOp,
    signed: bool,
    /// Offsets in shared memory.
    own: Val,
    arg: Val,
}

impl Diverted {
    /// The operand that changes nothing.
    fn nothing(&self) -> u128 {
        neutral(self.op, self.signed, 32).map_or(0, |(_, nothing)| nothing)
    }
}

/// What LLVM calls the operation among a vector's lanes, and the operand that changes nothing.
fn neutral(op: AtomOp, signed: bool, bits: u32) -> Option<(&'static str, u128)> {
    let ones = if bits >= 128 { u128::MAX } else { (1u128 << bits) - 1 };
    Some(match (op, signed) {
        (AtomOp::Add, _) => ("add", 0),
        (AtomOp::And, _) => ("and", ones),
        (AtomOp::Or, _) => ("or", 0),
        (AtomOp::Xor, _) => ("xor", 0),
        (AtomOp::Max, false) => ("umax", 0),
        (AtomOp::Min, false) => ("umin", ones),
        (AtomOp::Max, true) => ("smax", 1 << (bits - 1)),
        (AtomOp::Min, true) => ("smin", ones >> 1),
        _ => return None,
    })
}

pub(super) fn are_many(plan: &Plan) -> bool {
    let regions = plan.regions.iter();
    let is_apart = |region: &Region, inst: &&Inst| {
        matches!(inst.op, Op::Atomic { space: Space::Shared, .. })
            && region.divergences[inst.args[0].index()].is_varying()
    };
    let all = regions.flat_map(|region| {
        let insts = region.function.blocks.iter().flat_map(|block| &block.insts);
        insts.filter(move |inst| is_apart(region, inst))
    });
    all.take(MANY).count() == MANY
}

impl Emitter<'_> {
    pub(super) fn atomic(&mut self, at: usize, inst: &Inst) -> Result<(), String> {
        let Op::Atomic { space, op, ty, offset, order, .. } = inst.op else {
            return Err("not an atomic".to_owned());
        };
        let is_simple = matches!(op, AtomOp::Add | AtomOp::Exch | AtomOp::Cas);
        let (scalar, signed) = match ty {
            AtomTy::Int(int) => (Type::int(int.bits.into(), 1), int.signed),
            AtomTy::Float(Float::F32) if is_simple => (Type::new(Scalar::Float, 1), false),
            AtomTy::Float(Float::F64) if is_simple => (Type::new(Scalar::Double, 1), false),
            AtomTy::B128 if space == Space::Shared => (Type::int(128, 1), false),
            // As setting `lane` does it, lane by lane.
            AtomTy::Float(float) => (Type::int(float.ty().bits(), 1), false),
            AtomTy::B128 => (Type::int(128, 1), false),
        };
        let one_by_one = match ty {
            AtomTy::Int(_) => false,
            AtomTy::Float(float) => scalar.is_int() || !matches!(float, Float::F32 | Float::F64),
            AtomTy::B128 => space != Space::Shared,
        };
        let vector = Type::new(scalar.scalar, self.lanes);
        let mut args = vec![];
        for &arg in &inst.args[1..] {
            let val = self.vector(arg);
            args.push(self.operand(&val, vector));
        }
        if args.len() != if op == AtomOp::Cas { 2 } else { 1 } {
            return Err(format!("an atomic {op:?} with {} operands", args.len()));
        }
        let lanes = self.lanes_of(inst.args[0], space);
        let unused = inst.results.is_empty();
        if let (Lanes::One(base), true, AtomTy::Int(_)) = (&lanes, unused, ty)
            && let Some(whole) = self.reduce(op, signed, &args[0])
        {
            let at = self.pointer(space, base, offset);
            self.atomic_one(space, op, signed, order, &at, &[whole]);
            return Ok(());
        }
        if let (Lanes::One(base), AtomOp::Add, AtomTy::Int(_)) = (&lanes, op, ty)
            && self.lanes > 1
            && space != Space::Local
        {
            let at = self.pointer(space, base, offset);
            let old = self.add_in_turn((space, order), &at, &args[0]);
            self.define_old(inst, Some(old), vector);
            return Ok(());
        }
        let one = if let Lanes::One(base) = &lanes { Some(base.clone()) } else { None };
        let each = match lanes {
            Lanes::Each(each) => each,
            _ if space == Space::Local => {
                return Err("setting `simd` does not have atomics on local memory".to_owned());
            }
            _ => self.vector(inst.args[0]),
        };
        if space == Space::Shared && scalar.is_int() && !one_by_one {
            if self.is_apart(at, inst, scalar.bits()) {
                let old = self.atomic_at_once((op, signed), (&each, offset), &args);
                self.define_old(inst, Some(old), vector);
                return Ok(());
            }
            if self.mask.is_none() && self.calls_atomics && self.lanes > 1 {
                let old = self.atomic_by_call((op, signed), inst, (&each, offset), &args);
                self.define_old(inst, old, vector);
                return Ok(());
            }
            if self.is_diverted(inst) && self.mask.is_some() {
                self.atomic_diverted((op, signed), (&each, offset), &args[0]);
                return Ok(());
            }
        }
        let addresses = match one {
            Some(base) => ByLane::Same(base),
            None => ByLane::Own(self.spill(0, &each), each.ty),
        };
        let operands = inst.args[1..].iter().zip(&args).enumerate();
        let operands: Vec<ByLane> = operands
            .map(|(nth, (&arg, val))| match self.divergence(arg).is_uniform() {
                true => {
                    let same = self.scalar(arg);
                    ByLane::Same(self.operand(&same, scalar))
                }
                false => ByLane::Own(self.spill(nth + 1, val), val.ty),
            })
            .collect();
        let zero = Builder::bits(vector, 0);
        let out = (!unused).then(|| self.spill(3, &zero));
        let into = out.clone();
        let missing: RefCell<Option<String>> = RefCell::default();
        self.for_lanes_unrolled(|me, lane| {
            let address = me.of_lane(&addresses, lane);
            let at = me.pointer(space, &address, offset);
            let items: Vec<Val> = operands.iter().map(|operand| me.of_lane(operand, lane)).collect();
            let old = if one_by_one {
                match memory::atomic(&mut me.b, &at, op, ty, (order, Scope::Sys), &items, scalar) {
                    Ok(old) => old,
                    Err(reason) => {
                        missing.replace(Some(reason.to_string()));
                        return;
                    }
                }
            } else {
                me.atomic_one(space, op, signed, order, &at, &items)
            };
            if let Some(into) = &into {
                me.set_item(into, lane, &old);
            }
        });
        if let Some(reason) = missing.into_inner() {
            return Err(reason);
        }
        if let Some(out) = out {
            let old = self.reload(&out, vector);
            self.define_old(inst, Some(old), vector);
        }
        Ok(())
    }

    /// The low bits of a register, as what the operation is done with.
    fn operand(&mut self, val: &Val, to: Type) -> Val {
        match val.ty.bits() > to.bits() {
            true => self.b.resize(val, to.bits(), false),
            false => self.b.bitcast(val, to),
        }
    }

    fn define_old(&mut self, inst: &Inst, old: Option<Val>, vector: Type) {
        let (Some(old), Some(&result)) = (old, inst.results.first()) else { return };
        debug_assert_eq!(old.ty, vector, "what the lanes found");
        let to = self.vector_ty(self.ty(result));
        let old = if to.bits() > old.ty.bits() { self.b.resize(&old, to.bits(), false) } else { old };
        let old = self.b.bitcast(&old, to);
        self.define_vector(result, old);
    }

    /// Whether the CPU can do the active lanes' operations at once: no two lanes have the same word.
    fn is_apart(&self, at: usize, inst: &Inst, bits: u32) -> bool {
        self.wide_gathers && matches!(bits, 32 | 64) && self.view().holds(at, inst.args[0], bits / 8)
    }

    pub(super) fn view(&self) -> View<'_> {
        let here = self.here();
        View {
            function: &here.function,
            definitions: &self.definitions,
            loops: &here.loops,
            divergences: &here.divergences,
            is_prologue: &self.plan.is_prologue,
            ranges: &here.ranges,
        }
    }

    /// All lanes read, then all write.
    fn atomic_at_once(
        &mut self,
        (op, signed): (AtomOp, bool),
        (each, offset): (&Val, i64),
        args: &[Val],
    ) -> Val {
        let at = self.pointer(Space::Shared, each, offset);
        let old = self.gather_from(&at, args[0].ty);
        let new = self.combined(op, signed, &old, args);
        self.scatter_to(&at, &new);
        old
    }

    /// Whether lanes that are not active do the atomic too, on the first words of the kernel's shared variables, with an operand that
    /// leaves them as they are: then no branch depends on which. Only the OS thread that runs the block could see it.
    pub(super) fn is_diverted(&self, inst: &Inst) -> bool {
        let Op::Atomic { space: Space::Shared, op, ty: AtomTy::Int(int), .. } = inst.op else { return false };
        self.lanes > 1
            && int.bits == 32
            && inst.results.is_empty()
            && self.divergence(inst.args[0]).is_varying()
            && neutral(op, int.signed, 32).is_some()
            && 4 * u64::from(self.lanes) <= self.kernel.shared.bytes
    }

    /// All lanes one after the other, in a function that all such atomics call; or only the active ones, brought together, where they are
    /// few.
    fn atomic_diverted(&mut self, (op, signed): (AtomOp, bool), (each, offset): (&Val, i64), arg: &Val) {
        let mask = self.active();
        let own = self.b.resize(each, 32, false);
        let own = self.b.bin_int("add", &own, offset.into());
        let way = Diverted { op, signed, own, arg: arg.clone() };
        if !self.wide_gathers || self.lanes != 32 {
            return self.diverted_all(&mask, &way);
        }
        let bits = self.bits_of(&mask);
        let count = self.b.same("ctpop", &[&bits]);
        let are_few = self.b.icmp_int("ule", &count, FEW.into());
        self.fork(
            &are_few,
            |me| {
                me.diverted_few(&bits, &way);
                vec![]
            },
            |me| {
                me.diverted_all(&mask, &way);
                vec![]
            },
        );
    }

    fn diverted_all(&mut self, mask: &Val, way: &Diverted) {
        let base = Val::new(Type::ptr(), "%shared");
        let first = self.iota(32, 4);
        let place = self.blend(mask, &way.own, &first);
        let nothing = Builder::bits(way.arg.ty, way.nothing());
        let operand = self.blend(mask, &way.arg, &nothing);
        let (op, signed) = (way.op, way.signed);
        let pairs = self.pairs(&place, &operand, self.lanes as usize);
        self.outlined(&format!("atomic_pairs.{op:?}.{signed}"), &[base, pairs], &[], |me, params| {
            me.pairs_in_turn((op, signed), &params[0], &params[1]);
            vec![]
        });
    }

    /// Of 32 lanes, at most `FEW` of which are active.
    fn diverted_few(&mut self, bits: &Val, way: &Diverted) {
        let base = Val::new(Type::ptr(), "%shared");
        let (op, signed, nothing) = (way.op, way.signed, way.nothing());
        let params = [base, bits.clone(), way.own.clone(), way.arg.clone()];
        self.outlined(&format!("atomic_few.{op:?}.{signed}"), &params, &[], |me, params| {
            let [base, bits, own, arg] = params else { return vec![] };
            let first = me.iota(32, 4);
            let nothing = Builder::bits(arg.ty, nothing);
            let place = me.active_first(bits, own, &first);
            let operand = me.active_first(bits, arg, &nothing);
            let pairs = me.pairs(&place, &operand, FEW as usize);
            me.pairs_in_turn((op, signed), base, &pairs);
            vec![]
        });
    }

    /// The lanes of `a` that have a bit, lowest first, in the first 16; behind them `rest`'s. There are at most 16.
    fn active_first(&mut self, bits: &Val, a: &Val, rest: &Val) -> Val {
        let name = "llvm.x86.avx512.mask.compress.v16i32";
        let (half, flags) = (Type::int(32, 16), Type::int(1, 16));
        self.b.declare(name, format!("declare {half} @{name}({half}, {half}, {flags})"));
        let high_bits = self.b.bin_int("lshr", bits, 16);
        let halves = [(bits.clone(), 0), (high_bits, 16)].map(|(bits, first)| {
            let bits = self.b.resize(&bits, 16, false);
            let flags = self.b.bitcast(&bits, flags);
            let (own, rest) = (self.half(a, first), self.half(rest, 0));
            let all = [own.typed(), rest.typed(), flags.typed()].join(", ");
            (bits, self.b.assign(half, format_args!("call {half} @{name}({all})")))
        });
        let [(low_bits, low), (_, high)] = halves;
        // Behind those of the lower half come those of the upper.
        let count = self.b.same("ctpop", &[&low_bits]);
        let count = self.b.resize(&count, 32, false);
        let (count, lanes) = (self.splat(&count), self.iota(32, 1));
        let [count, lanes] = [count, lanes].map(|all| self.half(&all, 0));
        let is_low = self.b.icmp("ult", &lanes, &count);
        let from_high = self.b.sub(&lanes, &count);
        let from_high = self.b.bin_int("add", &from_high, 16);
        let from = self.b.select(&is_low, &lanes, &from_high);
        self.picked(&low, &from, &high)
    }

    /// The first `n` lanes' places and operands: what a lane needs leaves the vector as one word.
    fn pairs(&mut self, place: &Val, operand: &Val, n: usize) -> Val {
        let lanes = place.ty.lanes as usize;
        let order: Vec<Option<usize>> = (0..n).flat_map(|lane| [Some(lane), Some(lane + lanes)]).collect();
        let pairs = self.shuffle(place, Some(operand), &order);
        self.b.bitcast(&pairs, Type::int(64, n as u32))
    }

    fn pairs_in_turn(&mut self, (op, signed): (AtomOp, bool), base: &Val, pairs: &Val) {
        for lane in 0..pairs.ty.lanes {
            let pair = self.extract(pairs, &lane.to_string());
            let place = self.b.bin_int("and", &pair, 0xffff_ffff);
            let operand = self.b.bin_int("lshr", &pair, 32);
            let operand = self.b.resize(&operand, 32, false);
            let at = self
                .b
                .assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", base.typed(), place.typed()));
            self.atomic_one(Space::Shared, op, signed, Order::Relaxed, &at, &[operand]);
        }
    }

    /// One lane after the other in a function that all such operations call: of code that stands once for each of many
    /// operations a CPU takes longer to decode the instructions than to run them.
    fn atomic_by_call(
        &mut self,
        (op, signed): (AtomOp, bool),
        inst: &Inst,
        (each, offset): (&Val, i64),
        args: &[Val],
    ) -> Option<Val> {
        let base = self.pointer(Space::Shared, &self.i64(0), offset);
        let each = self.narrowed(inst.args[0], each);
        let mut params = vec![base, each];
        for (arg, &value) in args.iter().zip(&inst.args[1..]) {
            let is_one = self.divergence(value).is_uniform();
            params.push(if is_one { self.extract(arg, "0") } else { arg.clone() });
        }
        let (vector, unused) = (args[0].ty, inst.results.is_empty());
        let results = if unused { vec![] } else { vec![vector] };
        let name = format!("atomic.{op:?}.{signed}");
        let old = self.outlined(&name, &params, &results, |me, params| {
            me.each_in_turn((op, signed), &params[0], &params[1], &params[2..], vector, unused)
        });
        old.into_iter().next()
    }

    /// Offsets in 32 bits where they were widened from so many.
    pub(super) fn narrowed(&mut self, address: Value, each: &Val) -> Val {
        let narrow = match self.definitions[address.index()] {
            Definition::Inst(block, nth, _) => {
                let inst = &self.here().function.blocks[block].insts[nth];
                matches!(inst.op, Op::Zext) && self.ty(inst.args[0]) == Ty::B32
            }
            _ => false,
        };
        if narrow { self.b.resize(each, 32, false) } else { each.clone() }
    }

    /// The body of such a function. Operands are a vector each, or one number for all lanes.
    fn each_in_turn(
        &mut self,
        (op, signed): (AtomOp, bool),
        base: &Val,
        each: &Val,
        args: &[Val],
        vector: Type,
        unused: bool,
    ) -> Vec<Val> {
        let places = self.lane_offsets(each);
        let buffers: Vec<Option<String>> = (args.iter().enumerate())
            .map(|(nth, arg)| (arg.ty.lanes > 1).then(|| self.spill(nth + 1, arg)))
            .collect();
        let out = (!unused).then(|| self.scratch(3, vector));
        for (lane, place) in places.iter().enumerate() {
            let lane = self.i64(lane as u64);
            let at = self
                .b
                .assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", base.typed(), place.typed()));
            let items: Vec<Val> = (buffers.iter().zip(args))
                .map(|(buffer, arg)| match buffer {
                    Some(buffer) => self.item(buffer, arg.ty, &lane),
                    None => arg.clone(),
                })
                .collect();
            let old = self.atomic_one(Space::Shared, op, signed, Order::Relaxed, &at, &items);
            if let Some(out) = &out {
                self.set_item(out, &lane, &old);
            }
        }
        out.iter().map(|out| self.reload(out, vector)).collect()
    }

    /// Each lane's offset as `i64`. Offsets of 32 bits leave the vector in pairs, which the CPU takes apart elsewhere than it does vectors.
    pub(super) fn lane_offsets(&mut self, each: &Val) -> Vec<Val> {
        let lanes = each.ty.lanes;
        if each.ty.bits() != 32 || !lanes.is_multiple_of(2) {
            return (0..lanes).map(|lane| self.extract(each, &lane.to_string())).collect();
        }
        let pairs = self.b.bitcast(each, Type::int(64, lanes / 2));
        let mut all = vec![];
        for nth in 0..lanes / 2 {
            let pair = self.extract(&pairs, &nth.to_string());
            // Else LLVM finds the two in the vector again.
            let pair =
                self.b.assign(pair.ty, format_args!("call i64 asm \"\", \"=r,0\"({}) {PURE}", pair.typed()));
            let low = self.b.bin_int("and", &pair, 0xffff_ffff);
            let high = self.b.bin_int("lshr", &pair, 32);
            all.extend([low, high]);
        }
        all
    }

    /// All active lanes add to one word at once; each finds what it would if they came one after the other, lowest first.
    fn add_in_turn(&mut self, (space, order): (Space, Order), at: &Val, vals: &Val) -> Val {
        let zero = Builder::bits(vals.ty, 0);
        let vals = match self.mask.clone() {
            None => vals.clone(),
            Some(mask) => self.blend(&mask, vals, &zero),
        };
        // Sums up to each lane, of twice as many lanes each time.
        let mut sums = vals.clone();
        let (lanes, mut reach) = (self.lanes as usize, 1);
        while reach < lanes {
            let from: Vec<Option<usize>> =
                (0..lanes).map(|lane| Some(if lane < reach { lane } else { lanes + lane - reach })).collect();
            let before = self.shuffle(&zero, Some(&sums), &from);
            sums = self.b.add(&sums, &before);
            reach *= 2;
        }
        let whole = self.extract(&sums, &(self.lanes - 1).to_string());
        let first = self.atomic_one(space, AtomOp::Add, false, order, at, &[whole]);
        let first = self.splat(&first);
        let before = self.b.sub(&sums, &vals);
        self.b.add(&first, &before)
    }

    /// All active lanes' operands as one, where the operation allows it.
    fn reduce(&mut self, op: AtomOp, signed: bool, vals: &Val) -> Option<Val> {
        let (name, nothing) = neutral(op, signed, vals.ty.bits())?;
        let vals = match self.mask.clone() {
            None => vals.clone(),
            Some(mask) => {
                let nothing = Builder::bits(vals.ty, nothing);
                self.blend(&mask, vals, &nothing)
            }
        };
        if self.lanes == 1 {
            return Some(vals);
        }
        let scalar = Type::new(vals.ty.scalar, 1);
        Some(self.b.intrinsic(&format!("vector.reduce.{name}"), &[vals.ty], scalar, &[&vals]))
    }

    /// One atomic operation; gives the old value.
    fn atomic_one(
        &mut self,
        space: Space,
        op: AtomOp,
        signed: bool,
        order: Order,
        at: &Val,
        args: &[Val],
    ) -> Val {
        let ty = args[0].ty;
        let is_float = !ty.is_int();
        let bytes = ty.bits() / 8;
        if space == Space::Shared {
            let old = self.b.assign(ty, format_args!("load {ty}, ptr {}, align {bytes}", at.text));
            let new = self.combined(op, signed, &old, args);
            self.b.inst(format_args!("store {}, ptr {}, align {bytes}", new.typed(), at.text));
            return old;
        }
        let ordering = match order {
            Order::SeqCst => "seq_cst",
            Order::AcqRel => "acq_rel",
            Order::Acquire => "acquire",
            Order::Release => "release",
            _ => "monotonic",
        };
        if op == AtomOp::Cas {
            let int = ty.ints(ty.bits());
            let (compare, new) = (self.b.to_bits(&args[0]), self.b.to_bits(&args[1]));
            let failure = match order {
                Order::SeqCst => "seq_cst",
                Order::AcqRel | Order::Acquire => "acquire",
                _ => "monotonic",
            };
            let pair = self.b.fresh();
            self.b.inst(format_args!(
                "{pair} = cmpxchg {}, {}, {} {ordering} {failure}, align {bytes}",
                at.typed(),
                compare.typed(),
                new.typed()
            ));
            let old = self.b.assign(int, format_args!("extractvalue {{ {int}, i1 }} {pair}, 0"));
            return self.b.bitcast(&old, ty);
        }
        let name = match op {
            AtomOp::Add if is_float => "fadd",
            AtomOp::Add => "add",
            AtomOp::Min => {
                if signed {
                    "min"
                } else {
                    "umin"
                }
            }
            AtomOp::Max => {
                if signed {
                    "max"
                } else {
                    "umax"
                }
            }
            AtomOp::And => "and",
            AtomOp::Or => "or",
            AtomOp::Xor => "xor",
            AtomOp::Exch | AtomOp::Cas => "xchg",
            AtomOp::Inc => "uinc_wrap",
            AtomOp::Dec => "udec_wrap",
        };
        self.b.assign(
            ty,
            format_args!("atomicrmw {name} {}, {} {ordering}, align {bytes}", at.typed(), args[0].typed()),
        )
    }

    /// What the operation leaves in memory.
    fn combined(&mut self, op: AtomOp, signed: bool, old: &Val, args: &[Val]) -> Val {
        let arg = &args[0];
        let sign = if signed { "s" } else { "u" };
        match op {
            AtomOp::Add if !old.ty.is_int() => self.b.fadd(old, arg),
            AtomOp::Add => self.b.add(old, arg),
            AtomOp::Min => self.b.same(&format!("{sign}min"), &[old, arg]),
            AtomOp::Max => self.b.same(&format!("{sign}max"), &[old, arg]),
            AtomOp::And => self.b.and(old, arg),
            AtomOp::Or => self.b.or(old, arg),
            AtomOp::Xor => self.b.xor(old, arg),
            AtomOp::Exch => arg.clone(),
            AtomOp::Cas => {
                let (was, compare) = (self.b.to_bits(old), self.b.to_bits(arg));
                let equal = self.b.icmp("eq", &was, &compare);
                self.b.select(&equal, &args[1], old)
            }
            AtomOp::Inc => {
                let wraps = self.b.icmp("uge", old, arg);
                let more = self.b.bin_int("add", old, 1);
                let zero = Builder::bits(old.ty, 0);
                self.b.select(&wraps, &zero, &more)
            }
            AtomOp::Dec => {
                let above = self.b.icmp("ugt", old, arg);
                let zero = self.b.icmp_int("eq", old, 0);
                let wraps = self.b.or(&above, &zero);
                let less = self.b.bin_int("sub", old, 1);
                self.b.select(&wraps, arg, &less)
            }
        }
    }
}
