//! Barriers of the block, and what of LDS they and static shared memory take.

use super::code::Code;
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::{BarrierKind, Function, Inst, Op, SharedLayout};

/// LDS from its start: words of ours, static shared memory, dynamic shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    /// Where static shared memory begins.
    first: u64,
    /// Where dynamic shared memory begins.
    bytes: u64,
    /// Barriers, by number, that a part of the block meets at somewhere in the kernel.
    partial: u32,
}

/// Where the threads of a block count at a barrier that reduces and that all come to.
const COUNT: u64 = 0;
/// Of each barrier that a part of the block meets at: u32 threads that have come, u32 times that all had.
const STATES: u64 = 16;
/// PTX's 16 barriers, and from 16 on those of warpgroups ([`crate::ir::WARPGROUP_BARRIERS`]).
const BARRIERS: u64 = 32;
/// What of a barrier's number tells it from the others.
const NUMBER: u8 = BARRIERS as u8 - 1;
/// Where those that come to one of these count: u32 for each.
const COUNTS: u64 = STATES + 8 * BARRIERS;

/// Who comes to a barrier.
enum Comers {
    Block,
    /// As many as `count` at barrier `id`.
    Part {
        id: Val,
        count: Val,
    },
}

impl SharedMemory {
    pub fn of<'a>(layout: &SharedLayout, functions: impl Iterator<Item = &'a Function>) -> SharedMemory {
        let (mut partial, mut reduces) = (0, false);
        for function in functions {
            let constants = constants(function);
            for inst in function.blocks.iter().flat_map(|block| &block.insts) {
                let Op::Barrier { kind, .. } = inst.op else { continue };
                reduces |= kind.is_reduction();
                if is_partial(kind, inst) {
                    partial |= match constants[inst.args[0].index()] {
                        Some(id) => 1 << (id & u128::from(NUMBER)),
                        None => u32::MAX,
                    };
                }
            }
        }
        let own = match (partial, reduces) {
            (0, false) => 0,
            (0, true) => STATES,
            (_, false) => COUNTS,
            (_, true) => COUNTS + 4 * BARRIERS,
        };
        let align = layout.align.max(16);
        let first = u64::next_multiple_of(own, align);
        SharedMemory { first, bytes: (first + layout.bytes).next_multiple_of(align), partial }
    }

    pub fn first(&self) -> u64 {
        self.first
    }

    /// Of what is static, ours included.
    pub fn bytes(&self) -> u32 {
        u32::try_from(self.bytes).unwrap_or(u32::MAX)
    }

    /// The array that makes LLVM ask for the bytes. Nothing else lies in LDS, so it begins at 0.
    pub fn declaration(&self) -> String {
        match self.bytes {
            0 => String::new(),
            bytes => format!("{SHARED} = internal addrspace(3) global [{bytes} x i8] undef, align 16\n"),
        }
    }
}

const SHARED: &str = "@cudaway_shared";
const SHARED_END: &str = "@cudaway_shared_end";

impl Code<'_> {
    /// Accesses go to LDS by number, behind the array's end where they are dynamic. That the array is used says this.
    pub fn claim_shared(&mut self) {
        if self.unit.shared.bytes > 0 {
            self.claim(SHARED);
        }
    }

    /// LLVM may lay a kernel's local variables into LDS, behind the array and so where dynamic shared memory is; not in
    /// one that uses an array of unknown length. (`unnamed_addr`: else LLVM 15 leaves its name undefined in the code object.)
    pub fn keep_locals_out_of_shared(&mut self) {
        let end = format!("{SHARED_END} = external unnamed_addr addrspace(3) global [0 x i8], align 16");
        self.b.declare(SHARED_END, &end);
        self.claim(SHARED_END);
    }

    fn claim(&mut self, array: &str) {
        self.b.inst(format_args!("call void asm sideeffect \"\", \"v\"(ptr addrspace(3) {array})"));
    }

    pub fn barrier(&mut self, kind: BarrierKind, inst: &Inst, args: &[Val]) -> Vec<Val> {
        let id = inst.args.first().and_then(|id| self.constant(*id));
        let is_shared_with_parts = id
            .map_or(self.unit.shared.partial, |id| self.unit.shared.partial >> (id & u128::from(NUMBER)) & 1)
            != 0;
        let comers = if !is_shared_with_parts {
            // Every thread of the block comes to this one, whatever its number is.
            Comers::Block
        } else {
            let count = match args.get(1).filter(|_| is_partial(kind, inst)) {
                Some(count) => count.clone(),
                None => {
                    let threads = self.block_threads();
                    let rounded = self.b.bin_int("add", &threads, 31);
                    self.b.bin_int("and", &rounded, !31)
                }
            };
            Comers::Part { id: args[0].clone(), count }
        };
        if kind.is_reduction() {
            let predicate = args.last().cloned().unwrap_or_else(|| Builder::int(Type::int(1, 1), 0));
            return vec![self.reduce(kind, &predicate, &comers)];
        }
        self.meet(&comers, kind == BarrierKind::Sync);
        vec![]
    }

    fn meet(&mut self, comers: &Comers, waits: bool) {
        match comers {
            Comers::Block => self.meet_all(),
            Comers::Part { id, count } => self.meet_some(id, count, waits),
        }
    }

    /// LDS holds anything when a block starts.
    pub fn clear_barriers(&mut self) {
        if self.unit.shared.partial == 0 {
            return;
        }
        // All threads write the same.
        for id in 0..BARRIERS {
            let at = self.barrier_state(&Builder::int(Type::int(32, 1), i128::from(id)));
            let line =
                format!("store atomic i64 0, {} syncscope(\"workgroup\") monotonic, align 8", at.typed());
            self.b.inst(line);
        }
        self.meet_all();
    }

    fn barrier_state(&mut self, id: &Val) -> Val {
        let id = self.b.bin_int("and", id, i128::from(NUMBER));
        let offset = self.b.bin_int("shl", &id, 3);
        let at = self.b.bin_int("add", &offset, i128::from(STATES));
        self.b.cast("inttoptr", &at, Type::space(3))
    }

    /// The warp's active lanes arrive together; who comes last opens the barrier for all.
    fn meet_some(&mut self, id: &Val, count: &Val, waits: bool) {
        let (word, wide) = (Type::int(32, 1), Type::int(64, 1));
        let at = self.barrier_state(id);
        let active = self.active();
        let lane = self.lane();
        let leader = self.b.same_defined("cttz", &active);
        let is_leader = self.b.icmp("eq", &lane, &leader);
        let comers = self.b.same("ctpop", &[&active]);
        self.b.inst("fence syncscope(\"workgroup\") release");
        let [arrive, again, arrived, joined] =
            ["arrive", "again", "arrived", "joined"].map(|hint| self.b.label(hint));
        let before = self.b.current_block().to_owned();
        self.b.cond_br(&is_leader, &arrive, &joined);

        self.b.start_block(&arrive);
        let load = format!("load atomic i64, {} syncscope(\"workgroup\") monotonic, align 8", at.typed());
        let first = self.b.assign(wide, &load);
        self.b.br(&again);
        self.b.start_block(&again);
        let [old, seen] = std::array::from_fn(|_| self.b.fresh());
        self.b.inst(format_args!("{old} = phi i64 [ {}, %{arrive} ], [ {seen}, %{again} ]", first.text));
        let old = Val::new(wide, old);
        let there = self.b.resize(&old, 32, false);
        let there = self.b.add(&there, &comers);
        let is_full = self.b.icmp("uge", &there, count);
        let more = self.b.resize(&comers, 64, false);
        let more = self.b.add(&old, &more);
        let turns = self.b.bin_int("lshr", &old, 32);
        let turns_on = self.b.bin_int("add", &turns, 1);
        let opened = self.b.bin_int("shl", &turns_on, 32);
        let new = self.b.select(&is_full, &opened, &more);
        let pair = format!(
            "cmpxchg {}, {}, {} syncscope(\"workgroup\") acq_rel monotonic, align 8",
            at.typed(),
            old.typed(),
            new.typed()
        );
        let pair = self.b.assign(wide, pair).text;
        self.b.inst(format_args!("{seen} = extractvalue {{ i64, i1 }} {pair}, 0"));
        let is_done = self.b.assign(Type::int(1, 1), format_args!("extractvalue {{ i64, i1 }} {pair}, 1"));
        self.b.cond_br(&is_done, &arrived, &again);

        self.b.start_block(&arrived);
        let turn = self.b.resize(&turns, 32, false);
        self.b.br(&joined);
        self.b.start_block(&joined);
        let turn =
            self.b.assign(word, format_args!("phi i32 [ 0, %{before} ], [ {}, %{arrived} ]", turn.text));
        if !waits {
            return;
        }
        let turn = self.read_lane(&turn, &leader);
        let [wait, nap, open] = ["wait", "nap", "open"].map(|hint| self.b.label(hint));
        self.b.br(&wait);
        self.b.start_block(&wait);
        let now = self.b.assign(wide, &load);
        let now = self.b.bin_int("lshr", &now, 32);
        let now = self.b.resize(&now, 32, false);
        let is_same = self.b.icmp("eq", &now, &turn);
        self.b.cond_br(&is_same, &nap, &open);
        self.b.start_block(&nap);
        self.nap();
        self.b.br(&wait);
        self.b.start_block(&open);
        self.b.inst("fence syncscope(\"workgroup\") acquire");
    }

    /// Lets other waves run.
    pub fn nap(&mut self) {
        let shortest = Builder::int(Type::int(32, 1), 1);
        self.b.call_void("llvm.amdgcn.s.sleep", "i32 immarg", &[&shortest]);
    }

    /// A block is a cluster of its own: who has arrived waits here.
    pub fn cluster_barrier(&mut self, wait: bool) {
        if wait {
            self.meet_all();
        }
    }

    fn meet_all(&mut self) {
        self.b.inst("fence syncscope(\"workgroup\") release");
        self.b.call_void("llvm.amdgcn.s.barrier", "", &[]);
        self.b.inst("fence syncscope(\"workgroup\") acquire");
    }

    fn reduce(&mut self, kind: BarrierKind, predicate: &Val, comers: &Comers) -> Val {
        let word = Type::int(32, 1);
        let at = match comers {
            Comers::Block => Builder::int(word, i128::from(COUNT)),
            Comers::Part { id, .. } => {
                let id = self.b.bin_int("and", id, i128::from(NUMBER));
                let offset = self.b.bin_int("shl", &id, 2);
                self.b.bin_int("add", &offset, i128::from(COUNTS))
            }
        };
        let at = self.b.cast("inttoptr", &at, Type::space(3));
        // Whoever reads the count of the barrier before has read it.
        self.meet(comers, true);
        // All write the same.
        self.b.inst(format_args!(
            "store atomic i32 0, {} syncscope(\"workgroup\") monotonic, align 4",
            at.typed()
        ));
        self.meet(comers, true);
        let counted = if kind == BarrierKind::RedAnd { self.b.not(predicate) } else { predicate.clone() };
        let one = self.b.cast("zext", &counted, word);
        self.b.assign(
            word,
            format_args!(
                "atomicrmw add {}, {} syncscope(\"workgroup\") monotonic, align 4",
                at.typed(),
                one.typed()
            ),
        );
        self.meet(comers, true);
        let count = self.b.assign(
            word,
            format_args!("load atomic i32, {} syncscope(\"workgroup\") monotonic, align 4", at.typed()),
        );
        match kind {
            BarrierKind::RedPopc => count,
            BarrierKind::RedAnd => self.b.icmp_int("eq", &count, 0),
            _ => self.b.icmp_int("ne", &count, 0),
        }
    }
}

/// It has a number of threads, which may be fewer than the block has.
fn is_partial(kind: BarrierKind, inst: &Inst) -> bool {
    inst.args.len() > 1 + usize::from(kind.is_reduction())
}

/// Whether it has a barrier for a part of the block.
pub fn has_partial(function: &Function) -> bool {
    let mut insts = function.blocks.iter().flat_map(|block| &block.insts);
    insts.any(|inst| matches!(inst.op, Op::Barrier { kind, .. } if is_partial(kind, inst)))
}

/// Bits of the values that are constants.
pub fn constants(function: &Function) -> Vec<Option<u128>> {
    let mut constants = vec![None; function.values.len()];
    for inst in function.blocks.iter().flat_map(|block| &block.insts) {
        if let (Op::Const(bits), Some(result)) = (&inst.op, inst.results.first()) {
            constants[result.index()] = Some(*bits);
        }
    }
    constants
}
