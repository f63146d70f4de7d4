//! Barriers of the block, and what of LDS they and static shared memory take.

use super::code::{Code, Result};
use crate::back::llvm::{Builder, Type, Unsupported, Val};
use crate::ir::{BarrierKind, Function, Inst, Op, SharedLayout};

/// LDS from its start: words of ours, static shared memory, dynamic shared memory.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    /// Where static shared memory begins.
    first: u64,
    /// Where dynamic shared memory begins.
    bytes: u64,
}

/// Where the threads of a block count at a barrier that reduces.
const COUNT: u64 = 0;

impl SharedMemory {
    pub fn of<'a>(layout: &SharedLayout, functions: impl Iterator<Item = &'a Function>) -> SharedMemory {
        let reduces = |op: &Op| {
            matches!(
                op,
                Op::Barrier { kind: BarrierKind::RedPopc | BarrierKind::RedAnd | BarrierKind::RedOr, .. }
            )
        };
        let mut insts = functions.flat_map(|it| &it.blocks).flat_map(|block| &block.insts);
        let own = if insts.any(|inst| reduces(&inst.op)) { 4 } else { 0 };
        let align = layout.align.max(16);
        let first = u64::next_multiple_of(own, align);
        SharedMemory { first, bytes: (first + layout.bytes).next_multiple_of(align) }
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

impl Code<'_> {
    /// Accesses go to LDS by number, behind the array's end where they are dynamic. That the array is used says this.
    pub fn claim_shared(&mut self) {
        if self.unit.shared.bytes > 0 {
            self.b.inst(format_args!("call void asm sideeffect \"\", \"v\"(ptr addrspace(3) {SHARED})"));
        }
    }

    pub fn barrier(&mut self, kind: BarrierKind, inst: &Inst, args: &[Val]) -> Result<Vec<Val>> {
        let reduces = !matches!(kind, BarrierKind::Sync | BarrierKind::Arrive);
        if kind == BarrierKind::Arrive || inst.args.len() > 1 + usize::from(reduces) {
            return Err(Unsupported("a barrier for a part of the block".to_owned()));
        }
        // Every thread of the block comes to this one, whatever its number is.
        if !reduces {
            self.meet();
            return Ok(vec![]);
        }
        let predicate = args.last().cloned().unwrap_or_else(|| Builder::int(Type::int(1, 1), 0));
        Ok(vec![self.reduce(kind, &predicate)])
    }

    /// A block is a cluster of its own: who has arrived waits here.
    pub fn cluster_barrier(&mut self, wait: bool) {
        if wait {
            self.meet();
        }
    }

    fn meet(&mut self) {
        self.b.inst("fence syncscope(\"workgroup\") release");
        self.b.call_void("llvm.amdgcn.s.barrier", "", &[]);
        self.b.inst("fence syncscope(\"workgroup\") acquire");
    }

    fn reduce(&mut self, kind: BarrierKind, predicate: &Val) -> Val {
        let word = Type::int(32, 1);
        let at = self.b.cast("inttoptr", &Builder::int(word, i128::from(COUNT)), Type::space(3));
        // Whoever reads the count of the barrier before has read it.
        self.meet();
        // All write the same.
        self.b.inst(format_args!(
            "store atomic i32 0, {} syncscope(\"workgroup\") monotonic, align 4",
            at.typed()
        ));
        self.meet();
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
        self.meet();
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
