//! A loop that loads a tile, waits at a barrier and computes: while it computes, the next tile comes.
//!
//! The distance from one tile to the next is found as the kernel runs: a load's address less the one it had the last
//! time the group came here. A wrong guess, as at the start of a block, costs a little and changes nothing.

use super::memory::Access;
use super::{Copy, Emitter};
use crate::back::llvm::{Type, Val};
use crate::ir::{Order, Space};

/// Bytes of a line of the caches.
const LINE: usize = 64;

impl Emitter<'_> {
    /// Whether loads of block `at` are done once in each of several runs of its region.
    pub(super) fn comes_again(&self, at: usize) -> bool {
        let regions = &self.plan.regions;
        let mut seen = vec![false; regions.len()];
        let mut work = vec![self.region];
        while let Some(region) = work.pop() {
            for next in regions[region].next.iter().copied().flatten() {
                if !std::mem::replace(&mut seen[next], true) {
                    work.push(next);
                }
            }
        }
        let is_once = self.here().loops.of[at].is_none();
        is_once && seen[self.region] && self.copy == Copy::Unmasked && !self.per_warp
    }

    /// Asks for what the region's next run loads here, if it goes on like the last: as many bytes from each of the starts.
    pub(super) fn prefetch_tile(&mut self, access: Access, starts: &[Val], bytes: i64) {
        let is_plain = access.space == Space::Global && access.order == Order::Weak && self.mask.is_none();
        let Some(first) = starts.first().filter(|_| is_plain && self.prefetches) else { return };
        let long = Type::int(64, 1);
        let place = self.reserve(8 * self.groups);
        let place = self.in_context(place, 8);
        let now = self.b.assign(long, format_args!("ptrtoint {} to i64", first.typed()));
        let before = self.b.assign(long, format_args!("load i64, ptr {place}"));
        self.b.inst(format_args!("store {}, ptr {place}", now.typed()));
        let step = self.b.sub(&now, &before);
        for start in starts {
            for line in (0..bytes).step_by(LINE) {
                let at = self.b.bin_int("add", &step, line.into());
                let at = self
                    .b
                    .assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", start.typed(), at.typed()));
                // To the second level: a tile's rows often fall on one another in the first.
                self.prefetch(&at, 2);
            }
        }
    }

    /// `locality`: 3 for the first level of the caches, 2 for the second.
    pub(super) fn prefetch(&mut self, at: &Val, locality: u32) {
        let name = "llvm.prefetch.p0";
        self.b.declare(name, format!("declare void @{name}(ptr, i32, i32, i32)"));
        self.b.inst(format_args!("call void @{name}({}, i32 0, i32 {locality}, i32 1)", at.typed()));
    }
}
