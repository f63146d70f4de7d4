//! How the warps of a block lie in waves.
//!
//! Where waves have 64 lanes, two warps share one, and as long as one of them waits in a loop the other stands still.
//! Kernels whose warps may wait for each other get a wave for each warp there, with half of its lanes idle.

use super::code::Code;
use super::{Function, Target, barrier};
use crate::back::llvm::{Type, Val};
use crate::pass::release;
use crate::pass::waves::Waits;
use crate::program::Header;

/// Lanes of a warp, and of a wave that holds two.
const WARP: u32 = 32;
const WAVE: u32 = 64;
/// Threads of a block, idle ones included.
const MOST: u32 = 1024;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Packing {
    /// As many warps in a wave as it has lanes for. The launch has CUDA's block.
    #[default]
    Dense,
    /// A warp in a wave of 64 lanes, of which the upper half is idle. The launch has a row of as many waves.
    Alone,
}

impl Packing {
    /// The block that the launch has for CUDA's.
    pub fn block(self, block: [u32; 3]) -> [u32; 3] {
        match self {
            Packing::Dense => block,
            Packing::Alone => [self.threads(threads_of(block)), 1, 1],
        }
    }

    /// The threads that a launch has for so many of CUDA's.
    pub fn threads(self, threads: u32) -> u32 {
        match self {
            Packing::Dense => threads,
            Packing::Alone => threads.div_ceil(WARP).saturating_mul(WAVE),
        }
    }

    /// Threads of CUDA's that a block can have.
    pub fn most_threads(self) -> u32 {
        match self {
            Packing::Dense => MOST,
            Packing::Alone => MOST / WAVE * WARP,
        }
    }
}

/// Threads of a block.
pub fn threads_of(block: [u32; 3]) -> u32 {
    block.iter().fold(1, |all, &n| all.saturating_mul(n))
}

/// The blocks that code is made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Blocks {
    /// Of what the kernel declares.
    Declared,
    /// Of more threads than there is room for with each warp in a wave of its own.
    Large,
}

/// What a kernel asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wish {
    /// Its warps may wait for each other.
    alone: bool,
    /// They surely do.
    only: bool,
    /// Lanes of one warp may wait for each other: no packing helps them.
    pub lanes_may_wait: bool,
}

impl Wish {
    /// What the kernel's body asks for, or a function that it calls. Its loops take in what lanes wait for.
    pub fn add(&mut self, function: &mut Function, kernel: &Header, target: &Target) {
        let mut waits = Waits::of(function, kernel.req_ntid);
        if waits.lanes {
            release::run(function);
            waits = Waits::of(function, kernel.req_ntid);
        }
        let shares_wave = target.wave() == WAVE;
        self.alone |= shares_wave && waits.warps;
        self.only |= shares_wave && barrier::has_partial(function);
        self.lanes_may_wait |= waits.lanes;
    }

    /// Warps that may wait for each other are packed where the block has no room otherwise: most of them never do.
    pub fn packing(self, kernel: &Header, blocks: Blocks) -> Packing {
        let declared = kernel.max_ntid.or(kernel.req_ntid).map_or(0, threads_of);
        let is_large = blocks == Blocks::Large || declared > Packing::Alone.most_threads();
        match self.only || (self.alone && !is_large) {
            true => Packing::Alone,
            false => Packing::Dense,
        }
    }

    /// Threads that a block can have.
    pub fn most_threads(self) -> u32 {
        if self.only { Packing::Alone.most_threads() } else { MOST }
    }
}

impl Code<'_> {
    /// The thread's number in its block, x fastest: lanes and warps count by it.
    pub fn linear_thread(&mut self) -> Val {
        let word = Type::int(32, 1);
        if self.unit.packing == Packing::Dense {
            let [x, y, z] = [0, 1, 2].map(|axis| self.hardware("workitem", axis));
            let [nx, ny] = [0, 1].map(|axis| self.block_dim(axis));
            let rows = self.b.mul(&z, &ny);
            let row = self.b.add(&rows, &y);
            let first = self.b.mul(&row, &nx);
            return self.b.add(&first, &x);
        }
        let place = self.hardware("workitem", 0);
        let warp = self.b.bin_int("lshr", &place, i128::from(WAVE.trailing_zeros()));
        let first = self.b.bin_int("shl", &warp, i128::from(WARP.trailing_zeros()));
        let lane = self.b.bin_int("and", &place, i128::from(WAVE - 1));
        debug_assert_eq!(lane.ty, word);
        self.b.add(&first, &lane)
    }

    /// `%tid`.
    pub fn thread(&mut self, axis: u8) -> Val {
        if self.unit.packing == Packing::Dense {
            return self.hardware("workitem", axis);
        }
        let mut rest = self.linear_thread();
        for before in 0..axis {
            let n = self.block_dim(before);
            rest = self.b.bin("udiv", &rest, &n);
        }
        match axis {
            2 => rest,
            _ => {
                let n = self.block_dim(axis);
                self.b.bin("urem", &rest, &n)
            }
        }
    }

    /// Ends the threads that CUDA's block does not have.
    pub fn end_idle_lanes(&mut self) {
        if self.unit.packing == Packing::Dense {
            return;
        }
        let place = self.hardware("workitem", 0);
        let lane = self.b.bin_int("and", &place, i128::from(WAVE - 1));
        let is_lower = self.b.icmp_int("ult", &lane, i128::from(WARP));
        let (thread, threads) = (self.linear_thread(), self.block_threads());
        let is_there = self.b.icmp("ult", &thread, &threads);
        let runs = self.b.and(&is_lower, &is_there);
        let [idle, busy] = ["idle", "busy"].map(|hint| self.b.label(hint));
        self.b.cond_br(&runs, &busy, &idle);
        self.b.start_block(&idle);
        self.b.inst("ret void");
        self.b.start_block(&busy);
    }

    /// Whether two warps share a wave.
    pub fn shares_wave(&self) -> bool {
        self.unit.target.wave() == WAVE && self.unit.packing == Packing::Dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warp_alone_takes_a_whole_wave() {
        assert_eq!(Packing::Alone.block([33, 2, 1]), [192, 1, 1]);
        assert_eq!(Packing::Alone.block([512, 1, 1]), [1024, 1, 1]);
        assert_eq!(Packing::Dense.block([33, 2, 1]), [33, 2, 1]);
        assert_eq!(Packing::Alone.most_threads(), 512);
    }
}
