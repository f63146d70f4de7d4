//! `malloc` and `free` of kernels. The launcher allocates the heap ([`super::Launch::heap`]) and writes [`header`] at its
//! start; kernels do the rest without locks, so that lanes that run in step cannot keep each other waiting.
//!
//! A block has a size class: four to each power of two. What is freed goes to its class's list, which is a stack; a block
//! comes from there, else from behind all others, else from the list of a larger class. Blocks are not joined again, but the
//! last one goes back to what is free behind it.
//!
//! | offset | type | what |
//! |---|---|---|
//! | 0 | u64 | bytes of the heap |
//! | 8 | u64 | offset of what never was in a block |
//! | 64 | u64 × 128 | by class the list of free blocks: low half the first one's offset / 16, 0 for none; high half counts changes |
//! | 1088 | u32 × 64 | locks of [`super::wide`], by address |
//! | 1344 | … | blocks: u32 state and class, u32 the next free one's offset / 16, u64 unused, then the program's bytes |

use super::code::Code;
use super::launch::field;
use crate::back::llvm::{Type, Val};

const LISTS: u64 = 64;
const CLASSES: u64 = 128;
/// Locks of accesses to 128 bits.
pub(super) const LOCKS: u64 = LISTS + 8 * CLASSES;
pub(super) const N_LOCKS: u64 = 64;
/// Where the first block begins.
const FIRST: u64 = LOCKS + 4 * N_LOCKS;
/// Of a block, in front of the program's bytes, which CUDA aligns to as many.
const BLOCK_HEADER: u64 = 16;
/// States; the class is in the low byte.
const LIVE: u32 = 0x6c69_7600;
const FREE: u32 = 0x6672_6500;

/// What the heap begins with when it has this many bytes. Whoever launches allocates no more than [`MOST_BYTES`].
pub fn header(bytes: u64) -> Vec<u8> {
    let mut header = vec![0; FIRST as usize];
    header[..8].copy_from_slice(&bytes.to_le_bytes());
    header[8..16].copy_from_slice(&FIRST.to_le_bytes());
    header
}

/// Offsets have 32 bits, in units of 16 bytes.
pub const MOST_BYTES: u64 = 1 << 35;

impl Code<'_> {
    pub fn malloc(&mut self, bytes: &Val) -> Val {
        let (heap, bytes) = (self.heap(), self.b.resize(bytes, 64, false));
        self.b.assign(
            Type::int(64, 1),
            format_args!("call i64 @cudaway_malloc({}, {})", heap.typed(), bytes.typed()),
        )
    }

    pub fn free(&mut self, address: &Val) {
        let (heap, address) = (self.heap(), self.b.resize(address, 64, false));
        self.b.inst(format_args!("call void @cudaway_free({}, {})", heap.typed(), address.typed()));
    }

    /// Its address.
    pub fn heap(&mut self) -> Val {
        self.unit.uses_heap.set(true);
        self.b.declare("llvm.ctlz.i32", "declare i32 @llvm.ctlz.i32(i32, i1)");
        self.launch(field::HEAP, Type::int(64, 1))
    }
}

/// Both functions, which become part of whoever calls them.
pub fn functions() -> String {
    let (live, free) = (LIVE as i32, FREE as i32);
    format!(
        r#"
define internal i64 @cudaway_malloc(i64 %heap, i64 %bytes) #2 {{
  %base = inttoptr i64 %heap to ptr addrspace(1)
  %no_heap = icmp eq i64 %heap, 0
  %nothing = icmp eq i64 %bytes, 0
  %never = or i1 %no_heap, %nothing
  br i1 %never, label %none, label %fit
fit:
  %end = load i64, ptr addrspace(1) %base, align 8
  %could_fit = icmp ult i64 %bytes, %end
  br i1 %could_fit, label %classify, label %none
classify:
  ; (units - 1) to three significant bits
  %padded = add i64 %bytes, {padding}
  %units = lshr i64 %padded, 4
  %units_less = add i64 %units, -1
  %less = trunc i64 %units_less to i32
  %at_least = or i32 %less, 4
  %leading = call i32 @llvm.ctlz.i32(i32 %at_least, i1 true)
  %shift = sub i32 29, %leading
  %leader = lshr i32 %less, %shift
  %shift4 = shl i32 %shift, 2
  %class = add i32 %shift4, %leader
  %class_end = add i32 %leader, 1
  %rounded = shl i32 %class_end, %shift
  %rounded64 = zext i32 %rounded to i64
  %size = shl i64 %rounded64, 4
  %topp = getelementptr i8, ptr addrspace(1) %base, i64 8
  br label %look
look:
  %c = phi i32 [ %class, %classify ], [ %c_next, %larger ]
  %c64 = zext i32 %c to i64
  %list = shl i64 %c64, 3
  %list_at = add i64 %list, {LISTS}
  %headp = getelementptr i8, ptr addrspace(1) %base, i64 %list_at
  %head_first = load atomic i64, ptr addrspace(1) %headp syncscope("agent") acquire, align 8
  br label %pop
pop:
  %head = phi i64 [ %head_first, %look ], [ %head_seen, %unlink ]
  %first = and i64 %head, 4294967295
  %is_empty = icmp eq i64 %first, 0
  br i1 %is_empty, label %empty, label %unlink
unlink:
  %first_at = shl i64 %first, 4
  %firstp = getelementptr i8, ptr addrspace(1) %base, i64 %first_at
  %nextp = getelementptr i8, ptr addrspace(1) %firstp, i64 4
  %next = load atomic i32, ptr addrspace(1) %nextp syncscope("agent") monotonic, align 4
  %next64 = zext i32 %next to i64
  %changes = lshr i64 %head, 32
  %changes_on = add i64 %changes, 1
  %changes_high = shl i64 %changes_on, 32
  %head_new = or i64 %changes_high, %next64
  %popped = cmpxchg ptr addrspace(1) %headp, i64 %head, i64 %head_new syncscope("agent") acq_rel acquire, align 8
  %head_seen = extractvalue {{ i64, i1 }} %popped, 0
  %is_popped = extractvalue {{ i64, i1 }} %popped, 1
  br i1 %is_popped, label %take, label %pop
empty:
  %is_own = icmp eq i32 %c, %class
  br i1 %is_own, label %behind, label %larger
behind:
  %top_first = load atomic i64, ptr addrspace(1) %topp syncscope("agent") monotonic, align 8
  br label %grow
grow:
  %top = phi i64 [ %top_first, %behind ], [ %top_seen, %claim ]
  %top_new = add i64 %top, %size
  %fits = icmp ule i64 %top_new, %end
  br i1 %fits, label %claim, label %larger
claim:
  %grown = cmpxchg ptr addrspace(1) %topp, i64 %top, i64 %top_new syncscope("agent") acq_rel monotonic, align 8
  %top_seen = extractvalue {{ i64, i1 }} %grown, 0
  %is_grown = extractvalue {{ i64, i1 }} %grown, 1
  br i1 %is_grown, label %take, label %grow
larger:
  %c_next = add i32 %c, 1
  %is_class = icmp ult i32 %c_next, {CLASSES}
  br i1 %is_class, label %look, label %none
take:
  %at = phi i64 [ %first_at, %unlink ], [ %top, %claim ]
  %blockp = getelementptr i8, ptr addrspace(1) %base, i64 %at
  %state = or i32 %c, {live}
  store atomic i32 %state, ptr addrspace(1) %blockp syncscope("agent") monotonic, align 4
  %address = add i64 %heap, %at
  %start = add i64 %address, {BLOCK_HEADER}
  ret i64 %start
none:
  ret i64 0
}}
define internal void @cudaway_free(i64 %heap, i64 %address) #2 {{
  %base = inttoptr i64 %heap to ptr addrspace(1)
  %no_heap = icmp eq i64 %heap, 0
  %is_null = icmp eq i64 %address, 0
  %never = or i1 %no_heap, %is_null
  br i1 %never, label %done, label %inside
inside:
  ; What malloc did not give out stays as it is.
  %end = load i64, ptr addrspace(1) %base, align 8
  %distance = sub i64 %address, %heap
  %at = add i64 %distance, -{BLOCK_HEADER}
  %is_behind = icmp uge i64 %at, {FIRST}
  %is_before = icmp ult i64 %at, %end
  %bits = and i64 %at, 15
  %is_aligned = icmp eq i64 %bits, 0
  %is_in = and i1 %is_behind, %is_before
  %may_be = and i1 %is_in, %is_aligned
  br i1 %may_be, label %read, label %done
read:
  %blockp = getelementptr i8, ptr addrspace(1) %base, i64 %at
  %state = load atomic i32, ptr addrspace(1) %blockp syncscope("agent") monotonic, align 4
  %class = and i32 %state, 255
  %kind = xor i32 %state, %class
  %is_live = icmp eq i32 %kind, {live}
  br i1 %is_live, label %retire, label %done
retire:
  %gone = or i32 %class, {free}
  %retired = cmpxchg ptr addrspace(1) %blockp, i32 %state, i32 %gone syncscope("agent") acq_rel monotonic, align 4
  %is_retired = extractvalue {{ i32, i1 }} %retired, 1
  br i1 %is_retired, label %measure, label %done
measure:
  %high = lshr i32 %class, 2
  %high_less = add i32 %high, -1
  %low = and i32 %class, 3
  %low_lead = or i32 %low, 4
  %is_small = icmp ult i32 %class, 8
  %shift = select i1 %is_small, i32 0, i32 %high_less
  %leader = select i1 %is_small, i32 %class, i32 %low_lead
  %class_end = add i32 %leader, 1
  %rounded = shl i32 %class_end, %shift
  %rounded64 = zext i32 %rounded to i64
  %size = shl i64 %rounded64, 4
  %behind = add i64 %at, %size
  %topp = getelementptr i8, ptr addrspace(1) %base, i64 8
  %shrunk = cmpxchg ptr addrspace(1) %topp, i64 %behind, i64 %at syncscope("agent") acq_rel monotonic, align 8
  %is_shrunk = extractvalue {{ i64, i1 }} %shrunk, 1
  br i1 %is_shrunk, label %done, label %list
list:
  %class64 = zext i32 %class to i64
  %list_of = shl i64 %class64, 3
  %list_at = add i64 %list_of, {LISTS}
  %headp = getelementptr i8, ptr addrspace(1) %base, i64 %list_at
  %nextp = getelementptr i8, ptr addrspace(1) %blockp, i64 4
  %number = lshr i64 %at, 4
  %head_first = load atomic i64, ptr addrspace(1) %headp syncscope("agent") monotonic, align 8
  br label %push
push:
  %head = phi i64 [ %head_first, %list ], [ %head_seen, %push ]
  %next = trunc i64 %head to i32
  store atomic i32 %next, ptr addrspace(1) %nextp syncscope("agent") monotonic, align 4
  %changes = lshr i64 %head, 32
  %changes_on = add i64 %changes, 1
  %changes_high = shl i64 %changes_on, 32
  %head_new = or i64 %changes_high, %number
  %pushed = cmpxchg ptr addrspace(1) %headp, i64 %head, i64 %head_new syncscope("agent") acq_rel monotonic, align 8
  %head_seen = extractvalue {{ i64, i1 }} %pushed, 0
  %is_pushed = extractvalue {{ i64, i1 }} %pushed, 1
  br i1 %is_pushed, label %done, label %push
done:
  ret void
}}
"#,
        padding = BLOCK_HEADER + 15,
    )
}
