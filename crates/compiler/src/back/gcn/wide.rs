//! Accesses to 128 bits at once, which no instruction makes: under a lock that the address chooses. The locks lie in the
//! heap, so all kernels of a context have the same; other accesses and other devices know nothing of them.

use super::code::Code;
use super::heap::{LOCKS, N_LOCKS};
use crate::back::llvm::{Builder, Type, Val};

/// What is done with the old value.
#[derive(Clone, Copy)]
pub enum Wide<'a> {
    Load,
    Exchange(&'a Val),
    CompareAndSwap { compare: &'a Val, new: &'a Val },
}

impl Code<'_> {
    /// The 128 bits that were at the pointer.
    pub fn wide(&mut self, at: &Val, what: Wide<'_>) -> Val {
        let ty = Type::int(128, 1);
        let zero = Builder::int(ty, 0);
        let mut bits = |value: &Val| self.b.to_bits(value);
        let (mode, compare, new) = match what {
            Wide::Load => (LOAD, zero.clone(), zero),
            Wide::Exchange(new) => (EXCHANGE, zero, bits(new)),
            Wide::CompareAndSwap { compare, new } => (COMPARE, bits(compare), bits(new)),
        };
        let heap = self.heap();
        let at =
            if at.ty == Type::ptr() { at.clone() } else { self.b.cast("addrspacecast", at, Type::ptr()) };
        self.unit.uses_locks.set(true);
        self.b.declare("llvm.amdgcn.s.sleep", "declare void @llvm.amdgcn.s.sleep(i32 immarg)");
        let call = format!(
            "call i128 @cudaway_wide({}, {}, {}, {}, i32 {mode})",
            heap.typed(),
            at.typed(),
            compare.typed(),
            new.typed()
        );
        self.b.assign(ty, call)
    }
}

const LOAD: u32 = 0;
const EXCHANGE: u32 = 1;
const COMPARE: u32 = 2;

/// Becomes part of whoever calls it. A lane that has the lock lets it go before others of its wave try again (see
/// `pass/release.rs`). No compiler can know that it then leaves the loop, nor that one without the lock does not: else LLVM 15
/// makes the latter a loop within the loop, behind which the owner would wait for the others.
pub fn function() -> String {
    let last = N_LOCKS - 1;
    format!(
        r#"
define internal i128 @cudaway_wide(i64 %heap, ptr %at, i128 %compare, i128 %new, i32 %mode) #2 {{
  %base = inttoptr i64 %heap to ptr addrspace(1)
  %address = ptrtoint ptr %at to i64
  %number = lshr i64 %address, 4
  %slot = and i64 %number, {last}
  %slot4 = shl i64 %slot, 2
  %lock_at = add i64 %slot4, {LOCKS}
  %lockp = getelementptr i8, ptr addrspace(1) %base, i64 %lock_at
  %highp = getelementptr i8, ptr %at, i64 8
  %exchanges = icmp eq i32 %mode, {EXCHANGE}
  %compares = icmp eq i32 %mode, {COMPARE}
  br label %try
try:
  %taken = cmpxchg ptr addrspace(1) %lockp, i32 0, i32 1 syncscope("agent") acq_rel acquire, align 4
  %is_taken = extractvalue {{ i32, i1 }} %taken, 1
  br i1 %is_taken, label %own, label %wait
wait:
  call void @llvm.amdgcn.s.sleep(i32 1)
  %zero = call i32 asm "", "=v,0"(i32 0)
  br label %next
own:
  %low = load atomic i64, ptr %at syncscope("agent") monotonic, align 8
  %high = load atomic i64, ptr %highp syncscope("agent") monotonic, align 8
  %low_wide = zext i64 %low to i128
  %high_wide = zext i64 %high to i128
  %high_up = shl i128 %high_wide, 64
  %old = or i128 %high_up, %low_wide
  %is_equal = icmp eq i128 %old, %compare
  %swaps = and i1 %compares, %is_equal
  %writes = or i1 %exchanges, %swaps
  br i1 %writes, label %put, label %open
put:
  %new_low = trunc i128 %new to i64
  %new_up = lshr i128 %new, 64
  %new_high = trunc i128 %new_up to i64
  store atomic i64 %new_low, ptr %at syncscope("agent") monotonic, align 8
  store atomic i64 %new_high, ptr %highp syncscope("agent") monotonic, align 8
  br label %open
open:
  store atomic i32 0, ptr addrspace(1) %lockp syncscope("agent") release, align 4
  %one = call i32 asm "", "=v,0"(i32 1)
  br label %next
next:
  %done = phi i32 [ %zero, %wait ], [ %one, %open ]
  %seen = phi i128 [ 0, %wait ], [ %old, %open ]
  %leaves = icmp ne i32 %done, 0
  br i1 %leaves, label %out, label %try
out:
  ret i128 %seen
}}
"#
    )
}
