//! A loop that loads a tile, waits at a barrier and computes: while it computes, the next tile comes.
//!
//! The distance from one tile to the next is found as the kernel runs: a load's address less the one it had the last
//! time the group came here. A wrong guess, as at the start of a block, costs a little and changes nothing.
//!
//! And a group's part of a tile in stripes: while it works on that, the next group's comes. So it does in a loop that takes a stripe of
//! the group's out of each block's length.

use std::collections::BTreeMap;

use super::ahead::LINE;
use super::memory::Access;
use super::window::PREFETCHED;
use super::{Copy, Emitter};
use crate::back::llvm::{Type, Val};
use crate::ir::{Inst, Op, Order, Space, Value};
use crate::pass::divergence::Divergence;

/// Addresses of which stripes are told apart at a time: looking at a block takes no longer than its length asks for.
pub(super) const OPEN: usize = 8;

/// What a group loads of memory without holes, in one instruction.
struct Stripe {
    address: Value,
    offset: i64,
    bytes: i64,
}

/// Stripes of the same size from one address on, each once.
pub(super) struct Stripes {
    address: Value,
    bytes: i64,
    offsets: Vec<i64>,
    last: usize,
}

impl Stripes {
    fn all(&self) -> i64 {
        self.bytes * self.offsets.len() as i64
    }

    /// From the first to the second; 0 where there is one.
    fn distance(&self) -> i64 {
        let mut offsets = self.offsets.clone();
        offsets.sort_unstable();
        offsets.get(1).map_or(0, |second| second - offsets[0])
    }

    /// Whether there are several and each begins that many bytes behind the one before.
    fn are_apart(&self, distance: i64) -> bool {
        let mut offsets = self.offsets.clone();
        offsets.sort_unstable();
        offsets.len() > 1 && offsets.windows(2).all(|pair| pair[1] - pair[0] == distance)
    }

    /// Where the next group's begin: behind them all where they lie one behind the other, else behind each.
    fn next(&self) -> Vec<i64> {
        let ahead = if self.are_apart(self.bytes) { self.all() } else { self.bytes };
        self.offsets.iter().map(|offset| offset + ahead).collect()
    }
}

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
            for line in (0..bytes).step_by(LINE as usize) {
                let at = self.b.bin_int("add", &step, line.into());
                let at = self
                    .b
                    .assign(Type::ptr(), format_args!("getelementptr i8, {}, {}", start.typed(), at.typed()));
                // To the second level: a tile's rows often fall on one another in the first.
                self.prefetch(&at, 2);
            }
        }
    }

    /// Whether a thread block loads in block `at` of the code what it then meets about, each thread one place: the next one most likely
    /// goes on where this one ends.
    pub(super) fn begins(&self, at: usize) -> bool {
        let is_flat = self.threads.block[1] == 1 && self.threads.block[2] == 1 && !self.threads.open;
        let meets = self.region == 0 && self.plan.regions.len() > 1 && !self.per_warp;
        is_flat && meets && self.here().loops.of[at].is_none()
    }

    /// Asks for what the next thread block loads here: while the threads of this one meet, nothing else is on its way.
    pub(super) fn prefetch_block(&mut self, access: Access, base: &Val) {
        let is_plain = access.space == Space::Global && access.order == Order::Weak;
        if !is_plain || !self.begins || self.mask.is_some() {
            return;
        }
        let from = access.offset + access.step() * self.threads.total() as i64;
        self.ask_at_once(base, from, from + access.step() * i64::from(self.lanes));
    }

    /// The stripes of a block that is run for each of several groups, by the last instruction that loads one: where it is run once, those
    /// that lie one behind the other, as a warp loads its part of a tile; in a loop, those with all other groups' between them, as a block
    /// loads its threads' words by turns. One stripe of so many bytes is a window, which asks for the next by itself.
    pub(super) fn stripes(&self, at: usize, insts: &[Inst]) -> BTreeMap<usize, Stripes> {
        let one_of_many = self.per_warp || self.groups > 1;
        let is_once = self.here().loops.of[at].is_none();
        let is_whole = self.copy == Copy::Unmasked && self.mask.is_none();
        let mut found: Vec<Stripes> = vec![];
        if one_of_many && is_whole && !self.prefetches {
            for (number, inst) in insts.iter().enumerate() {
                if let Some(stripe) = self.stripe(inst, !is_once) {
                    self.lay_beside(stripe, number, &mut found);
                }
            }
        }
        let is_asked_for = |it: &Stripes| {
            // How many groups an open block has is not known.
            let row = if self.threads.open { it.distance() } else { it.bytes * self.groups as i64 };
            let is_row = row > it.bytes && row % it.bytes == 0;
            let are_laid = if is_once { it.are_apart(it.bytes) } else { is_row && it.are_apart(row) };
            are_laid && it.all() >= PREFETCHED as i64
        };
        found.into_iter().filter(is_asked_for).map(|it| (it.last, it)).collect()
    }

    /// Lays a stripe to those that it lies beside.
    fn lay_beside(&self, stripe: Stripe, number: usize, all: &mut Vec<Stripes>) {
        let beside = |it: &&mut Stripes| it.bytes == stripe.bytes && self.is_same(it.address, stripe.address);
        match all.iter_mut().rev().take(OPEN).find(beside) {
            Some(own) => {
                own.offsets.push(stripe.offset);
                own.last = number;
            }
            None => all.push(Stripes {
                address: stripe.address,
                bytes: stripe.bytes,
                offsets: vec![stripe.offset],
                last: number,
            }),
        }
    }

    /// Asks for the next group's stripes, which are further than the CPU looks ahead by itself. In a loop that takes stripes a block's length
    /// apart also for this group's of the next trip, or behind the last trip of the next block, if that goes on where this one ends: a trip
    /// may be so short that the next group's come too late.
    pub(super) fn prefetch_stripes(&mut self, at: usize, stripes: &Stripes) {
        let base = self.scalar(stripes.address);
        for start in stripes.next() {
            self.ask_ahead(at, &base, start, start + stripes.bytes);
        }
        if self.here().loops.of[at].is_some() && !self.per_warp {
            let trip = stripes.distance() * stripes.offsets.len() as i64;
            for start in stripes.offsets.iter().map(|offset| offset + trip) {
                self.ask_ahead(at, &base, start, start + stripes.bytes);
            }
        }
    }

    /// `assuming`: also where the address goes on from lane to lane only as it mostly does.
    fn stripe(&self, inst: &Inst, assuming: bool) -> Option<Stripe> {
        let access = Access::of(inst).filter(|_| matches!(inst.op, Op::Load { .. }))?;
        let is_plain = access.space == Space::Global && access.order == Order::Weak;
        let Divergence::Affine { stride, assumed } = self.divergence(inst.args[0]) else {
            return None;
        };
        if assumed && !assuming {
            return None;
        }
        let bytes = stride * i64::from(self.lanes);
        let (address, offset) = (inst.args[0], access.offset);
        (is_plain && stride == access.step()).then_some(Stripe { address, offset, bytes })
    }

    /// `locality`: 3 for the first level of the caches, 2 for the second.
    pub(super) fn prefetch(&mut self, at: &Val, locality: u32) {
        let name = "llvm.prefetch.p0";
        self.b.declare(name, format!("declare void @{name}(ptr, i32, i32, i32)"));
        self.b.inst(format_args!("call void @{name}({}, i32 0, i32 {locality}, i32 1)", at.typed()));
    }
}

#[cfg(test)]
mod tests {
    use crate::back::cpu::{Options, emit};
    use crate::program::{Program, Source};

    /// Lines that are asked for by a kernel whose warps each read words at `offsets` from its own 1024 bytes, and what comes `before`
    /// and `behind` that.
    fn lines(offsets: &[u32], before: &str, behind: &str) -> usize {
        written(offsets, before, behind).matches(LINE).count()
    }

    const LINE: &str = "call void @llvm.prefetch";

    fn written(offsets: &[u32], before: &str, behind: &str) -> String {
        written_for(Options::new([256, 1, 1], 512), offsets, before, behind)
    }

    fn written_for(options: Options, offsets: &[u32], before: &str, behind: &str) -> String {
        let loads: String = offsets
            .iter()
            .map(|offset| format!("ld.global.u32 %x, [%p+{offset}];\nadd.u32 %sum, %sum, %x;\n"))
            .collect();
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words, .param .u64 sums) {{\n\
             .reg .b32 %t, %warp, %lane, %word, %x, %sum, %a, %b, %c, %d;\n.reg .b64 %p, %q, %vector;\n.reg .pred %more;\n\
             ld.param.u64 %p, [words];\nld.param.u64 %q, [sums];\nmov.u32 %t, %tid.x;\nmov.u32 %sum, 0;\n\
             shr.u32 %warp, %t, 5;\nand.b32 %lane, %t, 31;\nmad.lo.u32 %word, %warp, 256, %lane;\n\
             mad.wide.u32 %vector, %t, 16, %p;\nmad.wide.u32 %p, %word, 4, %p;\nmad.wide.u32 %q, %t, 4, %q;\n\
             {before}{loads}{behind}st.global.u32 [%q], %sum;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let compiled = emit(&program, program.kernel("k").unwrap(), &options).unwrap();
        assert_eq!(compiled.width, 32);
        compiled.text
    }

    #[test]
    fn the_next_warps_stripes_are_asked_for_once() {
        assert_eq!(lines(&[0, 128, 256, 384, 512, 640, 768, 896], "", ""), 16);
        assert_eq!(lines(&[384, 0, 256, 128], "", ""), 8);
    }

    #[test]
    fn one_stripe_that_is_a_window_is_asked_for_once() {
        let wide = "ld.global.v4.u32 {%a, %b, %c, %d}, [%vector];\nadd.u32 %sum, %a, %b;\n";
        assert_eq!(lines(&[], wide, ""), 8);
    }

    /// Two parts of each thread's 32 bytes, which a store keeps apart.
    const PARTS: &str = "mad.wide.u32 %vector, %t, 16, %vector;\nld.global.v4.u32 {%a, %b, %c, %d}, [%vector];\n\
                         st.global.u32 [%q], %a;\nadd.u32 %sum, %a, %b;\nld.global.v4.u32 {%a, %b, %c, %d}, [%vector+16];\n\
                         add.u32 %sum, %sum, %c;\n";

    #[test]
    fn loads_of_the_same_lines_ask_for_them_once() {
        assert_eq!(lines(&[], PARTS, ""), 16);
    }

    #[test]
    fn lines_are_asked_for_a_few_at_a_time_also_behind_a_branch_that_all_come_back_from() {
        let sums = "xor.b32 %sum, %sum, %b;\nmul.lo.u32 %sum, %sum, %d;\n".repeat(30);
        let branch = "setp.lt.u32 %more, %sum, 1000000;\n@%more bra on;\nst.global.u32 [%q+4], %b;\non:\n";
        let text = written(&[], PARTS, &format!("{branch}{sums}"));
        let longest = text.split("mul <32 x i32>").map(|part| part.matches(LINE).count()).max();
        assert!(longest < Some(12), "{longest:?} of 16 in a row");
        // Half of the way is over, and the last have half of it left to come.
        let behind = text.rfind(LINE).map(|last| text[last..].matches("mul <32 x i32>").count());
        assert!(behind > Some(10), "{behind:?} operations behind the last");
        assert_eq!(text.matches(LINE).count(), 16);
    }

    #[test]
    fn neither_few_lines_nor_those_with_holes_are_asked_for() {
        assert_eq!(lines(&[0, 128, 256], "", ""), 0);
        assert_eq!(lines(&[0, 128, 256, 512], "", ""), 0);
    }

    const AGAIN: &str = "add.u64 %p, %p, 8192;\nsetp.lt.u32 %more, %sum, 1000000;\n@%more bra again;\n";

    /// The block goes around, a number of bytes further each time.
    fn lines_in_a_loop(offsets: &[u32]) -> usize {
        lines(offsets, "again:\n", AGAIN)
    }

    #[test]
    fn a_block_of_any_length_tells_its_stripes_by_their_distance() {
        let open = || Options { open: true, ..Options::new([1024, 1, 1], 512) };
        let of = |offsets: &[u32]| written_for(open(), offsets, "again:\n", AGAIN).matches(LINE).count();
        assert_eq!(of(&[0, 1024, 2048, 3072]), 16);
        assert_eq!(of(&[0, 1024, 2048, 3200]), 0);
        assert_eq!(of(&[0, 128, 256, 384]), 0);
    }

    #[test]
    fn a_block_that_meets_asks_for_what_the_next_one_loads() {
        let load = "ld.global.u32 %a, [%q];\n";
        let meet = ".shared .align 4 .u32 place;\nst.shared.u32 [place], %a;\nbar.sync 0;\nld.shared.u32 %sum, [place];\n";
        assert_eq!(lines(&[], load, meet), 2);
        assert_eq!(lines(&[], load, ""), 0);
        let again = "setp.lt.u32 %more, %a, 5;\n@%more bra again;\n";
        assert_eq!(lines(&[], &format!("again:\n{load}{again}"), meet), 0);
    }

    #[test]
    fn in_a_loop_stripes_behind_each_other_are_not_followed_by_the_next_groups() {
        assert_eq!(lines_in_a_loop(&[0, 128, 256, 384]), 0);
    }

    #[test]
    fn in_a_loop_the_next_group_and_the_next_trip_have_the_stripes_behind_those_a_block_apart() {
        assert_eq!(lines_in_a_loop(&[0, 1024, 2048, 3072]), 16);
        assert_eq!(lines_in_a_loop(&[0, 1024, 2048]), 0);
        assert_eq!(lines_in_a_loop(&[0, 2048, 4096, 6144]), 0);
        assert_eq!(lines(&[0, 1024, 2048, 3072], "", ""), 0);
    }
}
