//! Setting `warp`: the frame of a function that runs one warp from one meeting point to the next.
//!
//! The body of a region is setting `simd`'s. Around it, the warp's record takes the place of the block's context: a region
//! ends for this warp alone, with the barrier as a request to the scheduler. A loop that may wait for other warps is
//! left at its back edge and entered again there: every value that crosses blocks has a slot, so the slots that are
//! still read are kept in the record meanwhile.

use super::Emitter;
use crate::back::lane::layout::{launch, service, status, worker};
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{BarrierKind, CLUSTER_SHIFT, Inst, Op, Value};
use crate::pass::bits::BitSet;
use crate::pass::liveness::live_in;

/// Offsets in the `Warp` of docs/architecture.md; those of the request are `Thread`'s.
pub(super) mod warp {
    pub const RESUME: u64 = 0;
    pub const ALIVE: u64 = 8;
    pub const LINEAR: u64 = 16;
    pub const KIND: u64 = 32;
    pub const FLAGS: u64 = 36;
    pub const ARGS: u64 = 40;
    pub const RESULTS: u64 = 72;
    pub const POSITION: u64 = 92;
    pub const SAVED: u64 = 128;
}

// Kinds of requests.
const BARRIER: u32 = 1;
const CLUSTER_ARRIVE: u32 = 9;
const CLUSTER_WAIT: u32 = 10;

/// Where a warp leaves a loop that waits, and comes back.
#[derive(Clone, Copy, Debug)]
struct Rest {
    header: usize,
    masked: bool,
}

impl Rest {
    fn label(self, what: &str, region: usize) -> String {
        let copy = if self.masked { "m" } else { "u" };
        format!("{copy}{what}{region}_{}", self.header)
    }
}

impl Emitter<'_> {
    pub(super) fn whole_step(&mut self) -> Result<(), String> {
        self.lay_out_context();
        // What regions save is read before a loop rests, so the two may share their place.
        self.context_bytes = self.context_bytes.next_multiple_of(64);
        let base = self.context_bytes;
        let mut resumes: Vec<String> =
            (0..self.plan.regions.len()).map(|region| format!("r{region}.start")).collect();
        self.step_start()?;
        for region in 0..self.plan.regions.len() {
            self.region(region)?;
            for rest in self.rests() {
                self.rest(rest, resumes.len(), base);
                resumes.push(rest.label("resume", region));
            }
        }
        self.b.start_block("dispatch");
        self.b.inst("%resume = load i32, ptr %warp");
        self.b.inst("switch i32 %resume, label %nowhere [");
        for (number, label) in resumes.iter().enumerate() {
            self.b.inst(format_args!("  i32 {number}, label %{label}"));
        }
        self.b.inst("]");
        self.b.start_block("nowhere");
        self.b.inst("unreachable");
        self.b.line("}");
        Ok(())
    }

    fn step_start(&mut self) -> Result<(), String> {
        self.alloca("%next", Type::int(32, 1));
        self.b.start_block("start");
        self.fields();
        self.b.inst(format_args!("%warp.linear.at = getelementptr i8, ptr %warp, i64 {}", warp::LINEAR));
        self.b.inst("%warp.linear = load i32, ptr %warp.linear.at");
        self.b.inst("%warp.first = zext i32 %warp.linear to i64");
        self.field("%ctaid.x", "i32", "%worker", 32);
        self.field("%ctaid.y", "i32", "%worker", 36);
        self.field("%ctaid.z", "i32", "%worker", 40);
        if self.clustered {
            self.cluster();
        }
        self.prologue()?;
        self.b.br("dispatch");
        Ok(())
    }

    /// The cluster's size, the block's rank, and where its own shared memory starts in the cluster's window.
    fn cluster(&mut self) {
        for (name, at) in [("%cluster.x", 0), ("%cluster.y", 4), ("%cluster.z", 8)] {
            self.field(name, "i32", "%launch", launch::CLUSTER as u64 + at);
        }
        self.field("%cluster.rank", "i32", "%worker", worker::CLUSTER_RANK as u64);
        self.b.inst("%cluster.row = mul i32 %cluster.x, %cluster.y");
        self.b.inst("%cluster.blocks = mul i32 %cluster.row, %cluster.z");
        self.b.inst("%cluster.rank64 = zext i32 %cluster.rank to i64");
        self.b.inst(format_args!("%shared.first = shl i64 %cluster.rank64, {CLUSTER_SHIFT}"));
        self.b.inst("%shared.own = getelementptr i8, ptr %shared, i64 %shared.first");
    }

    fn in_record(&mut self, offset: u64) -> String {
        self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %warp, i64 {offset}")).text
    }

    fn put(&mut self, offset: u64, val: &Val) {
        let at = self.in_record(offset);
        self.b.inst(format_args!("store {}, ptr {at}", val.typed()));
    }

    /// The warp comes to the barrier in front of its next region.
    pub(super) fn request(&mut self, barrier: &Inst) {
        match barrier.op {
            Op::Barrier { kind, .. } => self.block_barrier(kind, barrier),
            Op::ClusterBarrier { wait } => self.ask(if wait { CLUSTER_WAIT } else { CLUSTER_ARRIVE }, 0),
            _ => {}
        }
    }

    fn ask(&mut self, kind: u32, flags: u32) {
        let word = Type::int(32, 1);
        self.put(warp::KIND, &Builder::int(word, kind.into()));
        self.put(warp::FLAGS, &Builder::int(word, flags.into()));
    }

    fn block_barrier(&mut self, kind: BarrierKind, barrier: &Inst) {
        let flags = match kind {
            BarrierKind::Sync => 0,
            BarrierKind::Arrive => 1,
            BarrierKind::RedPopc => 2,
            BarrierKind::RedAnd => 3,
            BarrierKind::RedOr => 4,
        };
        self.ask(BARRIER, flags);
        // The mark's position is the number of the region behind it.
        let pos = self.plan.barriers.get(barrier.pos.offset as usize).copied().unwrap_or_default();
        let position = self.lines.map_or(0, |lines| lines.number(pos));
        self.put(warp::POSITION, &Builder::int(Type::int(32, 1), position.into()));
        let (numbers, predicate) = match (kind, barrier.args.split_last()) {
            (BarrierKind::Sync | BarrierKind::Arrive, _) | (_, None) => (&barrier.args[..], None),
            (_, Some((&predicate, numbers))) => (numbers, Some(predicate)),
        };
        for nth in 0..2 {
            let number = match numbers.get(nth) {
                Some(&number) => {
                    let number = self.scalar(number);
                    self.b.resize(&number, 64, false)
                }
                None => self.i64(0),
            };
            self.put(warp::ARGS + 8 * nth as u64, &number);
        }
        if let Some(predicate) = predicate {
            let predicate = self.vector(predicate);
            let bits = self.bits_of(&predicate);
            let bits = self.b.resize(&bits, 64, false);
            self.put(warp::ARGS + 16, &bits);
        }
    }

    /// What the barrier in front of the region reduced.
    pub(super) fn reduced(&mut self, ty: Type) -> Val {
        let at = self.in_record(warp::RESULTS);
        let val = self.b.assign(Type::int(64, 1), format_args!("load i64, ptr {at}"));
        self.b.resize(&val, ty.bits(), false)
    }

    /// The end of a region: the warp waits at its barrier, or has ended.
    pub(super) fn step_end(&mut self, has_barrier: bool) {
        let region = self.region;
        if has_barrier {
            let (wait, end) = (format!("r{region}.wait"), format!("r{region}.ended"));
            let next = self.b.assign(Type::int(32, 1), "load i32, ptr %next");
            let some = self.b.icmp_int("sge", &next, 0);
            self.b.cond_br(&some, &wait, &end);
            self.b.start_block(&wait);
            self.put(warp::RESUME, &next);
            self.b.inst("ret i32 1");
            self.b.start_block(&end);
        }
        self.b.inst("ret i32 0");
    }

    /// The label to go to for another trip of the loop with this header.
    pub(super) fn again(&self, header: usize, masked: bool, directly: String) -> String {
        if self.here().spins.contains(&header) {
            Rest { header, masked }.label("rest", self.region)
        } else {
            directly
        }
    }

    /// Leaves the loop with its slots in the record, and comes back.
    fn rest(&mut self, rest: Rest, number: usize, base: u64) {
        let region = self.region;
        let kept = self.kept(rest);
        self.b.start_block(&rest.label("rest", region));
        let mut at = base;
        let mut places = vec![];
        for (slot, ty) in kept {
            let bytes = u64::from(ty.bits().div_ceil(8)) * u64::from(ty.lanes);
            at = at.next_multiple_of(bytes.next_power_of_two().min(64));
            let val = self.b.assign(ty, format_args!("load {ty}, ptr {slot}"));
            let to = self.in_record(at);
            self.b.inst(format_args!("store {}, ptr {to}", val.typed()));
            places.push((slot, ty, at));
            at += bytes;
        }
        self.context_bytes = self.context_bytes.max(at.next_multiple_of(64));
        self.put(warp::RESUME, &Builder::int(Type::int(32, 1), number as i128));
        self.b.inst("ret i32 2");

        self.b.start_block(&rest.label("resume", region));
        // No barrier has been reached yet: all lanes come to one together.
        self.b.inst("store i32 -1, ptr %next");
        self.clear_slots();
        for (slot, ty, at) in places {
            let from = self.in_record(at);
            let val = self.b.assign(ty, format_args!("load {ty}, ptr {from}"));
            self.b.inst(format_args!("store {}, ptr {slot}", val.typed()));
        }
        self.go_round(rest);
    }

    fn go_round(&mut self, rest: Rest) {
        let region = self.region;
        if rest.masked {
            let position = self.here().layout.position[rest.header];
            self.b.br(&format!("mb{region}_{position}"));
        } else {
            self.b.br(&format!("u{region}_{}", rest.header));
        }
    }

    /// Setting `simd`: the loops of the region that wait for other blocks let them run at each trip.
    pub(super) fn block_rests(&mut self) {
        for rest in self.rests() {
            self.b.start_block(&rest.label("rest", self.region));
            let suspend = self.service(service::SUSPEND as u64);
            self.b.inst(format_args!("call void {suspend}(i32 {})", status::YIELDS));
            self.go_round(rest);
        }
    }

    /// Those of the region's loops, in each copy that has the loop.
    fn rests(&self) -> Vec<Rest> {
        let both =
            self.here().spins.iter().flat_map(|&header| [false, true].map(|masked| Rest { header, masked }));
        let is_there = |rest: &Rest| match rest.masked {
            true => self.masked_used && self.is_in_masked(rest.header),
            false => !self.is_for_few(rest.header),
        };
        both.filter(is_there).collect()
    }

    /// Slots that may be read from the header on.
    fn kept(&self, rest: Rest) -> Vec<(String, Type)> {
        let here = self.here();
        let live = live_in(&here.function);
        let head = here.layout.position[rest.header];
        let is_nested =
            here.loops.of[rest.header].is_some_and(|index| here.loops.all[index].parent.is_some());
        let blocks: Vec<usize> = (0..here.function.blocks.len())
            .filter(|&block| {
                let position = here.layout.position[block];
                if rest.masked {
                    // Lanes of the warp stand before blocks further down, or before the next trip of an outer loop.
                    position != usize::MAX && (position >= head || is_nested)
                } else {
                    block == rest.header
                }
            })
            .collect();
        let mut values = BitSet::new(here.function.values.len());
        for &block in &blocks {
            values.union(&live[block]);
            for param in &here.function.blocks[block].params {
                values.insert(param.index());
            }
        }
        let mut slots = vec![];
        for index in values.iter().filter(|&index| self.crossing.contains(index)) {
            slots.extend(self.slots_of(Value(index as u32), rest.masked));
        }
        if rest.masked {
            slots.extend(blocks.iter().map(|&block| (self.mask_slot(block), self.slot_ty(self.mask_ty()))));
            let flags = [Some(self.flag_slot()), self.whole_slot()];
            slots.extend(flags.into_iter().flatten().map(|flag| (flag, Type::int(1, 1))));
        }
        slots
    }
}
