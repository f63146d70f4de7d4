//! Where a block's threads wait for each other: PTX's sixteen barriers, those of warpgroups, and the cluster's.
//!
//! A barrier is complete when as many threads as it was asked for have arrived; those that ended count.

use compiler::ir::WARPGROUP_BARRIERS;

use super::super::Fault;
use super::super::sanitize::{self, Divergence};
use super::{ALIGNED, Block, MAX_WARPS, N_BARRIERS, N_WARPGROUPS, State, WARP, bits};

/// What an arrival reads and writes stands together: kernel code that ran before has taken the core's first cache.
#[derive(Clone, Default)]
#[repr(C, align(64))]
pub(super) struct Barrier {
    /// Records: threads in `lane`, warps in `warp`.
    waiting: Vec<u32>,
    /// Threads it waits for; 0 is all of the block.
    expected: u32,
    n_arrived: u32,
    /// Arrivals of threads that had arrived already.
    again: u32,
    /// Who waits is told something of the predicates of all.
    has_predicates: bool,
    /// Lanes that arrived, per warp.
    arrived: [u32; MAX_WARPS],
}

impl Barrier {
    pub(super) fn reset(&mut self) {
        self.has_predicates = false;
        self.expected = 0;
        self.arrived = [0; MAX_WARPS];
        self.n_arrived = 0;
        self.again = 0;
        self.waiting.clear();
    }
}

impl Block<'_> {
    /// Record `t`, lanes of a warp, comes to a barrier.
    pub(super) fn arrive(
        &mut self,
        t: usize,
        (warp, lanes): (usize, u32),
        id: usize,
        count: u32,
        flags: u32,
    ) -> Result<(), Fault> {
        let id = match id.checked_sub(WARPGROUP_BARRIERS as usize) {
            Some(warpgroup) if warpgroup < N_WARPGROUPS => N_BARRIERS + warpgroup,
            // PTX has barriers 0 to 15; hardware traps on another number.
            _ if id < N_BARRIERS => id,
            _ => return Err(Fault::Trap),
        };
        let barrier = &mut self.lanes.barriers[id];
        if self.lanes.barriers_in_use >> id & 1 == 0 {
            self.lanes.barriers_in_use |= 1 << id;
            barrier.expected = count;
        }
        barrier.has_predicates |= flags >= 2;
        let arrived = &mut barrier.arrived[warp];
        barrier.n_arrived += (lanes & !*arrived).count_ones();
        barrier.again += (lanes & *arrived).count_ones();
        *arrived |= lanes;
        if flags == 1 {
            self.lanes.states[t] = State::Ready;
        } else {
            barrier.waiting.push(t as u32);
            self.lanes.states[t] = State::AtBarrier;
        }
        // At once, so that the next round's arrivals are not counted into this one.
        self.complete_barrier(id);
        Ok(())
    }

    pub(super) fn complete_barriers(&mut self) -> bool {
        bits(self.lanes.barriers_in_use).fold(false, |any, id| self.complete_barrier(id) | any)
    }

    /// Of a barrier in use.
    fn complete_barrier(&mut self, id: usize) -> bool {
        if !self.is_complete(&self.lanes.barriers[id]) {
            return false;
        }
        let waiting = std::mem::take(&mut self.lanes.barriers[id].waiting);
        if !self.sanitizer.is_null() {
            let is_full = self.lanes.barriers[id].expected == 0;
            self.judge_barrier(&waiting, is_full);
        }
        if self.lanes.barriers[id].has_predicates {
            self.tell_predicates(&waiting);
        }
        self.lanes.barriers[id].reset();
        self.lanes.barriers_in_use &= !(1 << id);
        for &t in &waiting {
            self.lanes.states[t as usize] = State::Ready;
        }
        // The allocation goes back for the next round.
        let mut waiting = waiting;
        waiting.clear();
        self.lanes.barriers[id].waiting = waiting;
        true
    }

    /// What `bar.red` asks for; who came by another instruction reads no result.
    fn tell_predicates(&mut self, waiting: &[u32]) {
        let (mut n, mut n_true) = (0u64, 0u64);
        for &t in waiting {
            let lanes = if self.per_warp { u64::from(self.warp(t as usize).alive) } else { 1 };
            let thread = self.thread(t as usize);
            if thread.flags >= 2 {
                n += u64::from(lanes.count_ones());
                n_true += u64::from((thread.args[2] & lanes).count_ones());
            }
        }
        for &t in waiting {
            let thread = self.thread(t as usize);
            thread.results[0] = match thread.flags {
                2 => n_true,
                3 => u64::from(n_true == n),
                4 => u64::from(n_true > 0),
                _ => 0,
            };
        }
    }

    /// `.aligned` says that all threads of a warp come to the same instruction, and a full barrier is for the whole block.
    #[cold]
    fn judge_barrier(&mut self, waiting: &[u32], is_full: bool) {
        // SAFETY: the resident's box, prepared for this launch, which is under way.
        let run = unsafe { (*self.sanitizer).run() };
        let index = self.index;
        let mut first_of_warp: [Option<u32>; MAX_WARPS] = [None; MAX_WARPS];
        for &t in waiting {
            let position = self.thread(t as usize).position;
            if position & ALIGNED == 0 {
                continue;
            }
            let place = position & !ALIGNED;
            let other = *first_of_warp[t as usize / WARP].get_or_insert(place);
            if other != place {
                sanitize::diverged(run, index, t, place, Divergence::Warp { other });
                return;
            }
            let ended = (0..self.n_warps()).find(|&w| self.lanes.ended[w] != 0);
            if let (true, Some(warp)) = (is_full, ended) {
                let ended = warp as u32 * WARP as u32 + self.lanes.ended[warp].trailing_zeros();
                sanitize::diverged(run, index, t, place, Divergence::Block { ended });
                return;
            }
        }
    }

    fn is_complete(&self, barrier: &Barrier) -> bool {
        // A cheap bound first: this runs at every arrival.
        let most = barrier.n_arrived + self.lanes.n_ended;
        if barrier.expected == 0 {
            // Threads that ended count as arrived.
            return most as usize >= self.n_threads
                && (0..self.n_warps()).all(|w| barrier.arrived[w] | self.lanes.ended[w] == self.present(w));
        }
        if most + barrier.again + (WARP as u32 - 1) < barrier.expected {
            return false;
        }
        // PTX differs: arrivals count in whole warps, so a warp's missing and ended lanes count with the others.
        let counted: u32 = (0..self.n_warps())
            .map(|w| match barrier.arrived[w] {
                0 => 0,
                arrived if arrived | self.lanes.ended[w] == self.present(w) => WARP as u32,
                arrived => arrived.count_ones(),
            })
            .sum();
        counted + barrier.again >= barrier.expected
    }

    /// Whether a thread waits for the others to arrive, or has arrived and goes on.
    pub fn has_cluster_arrivals(&self) -> bool {
        self.lanes.cluster_arrived.iter().any(|&lanes| lanes != 0)
    }

    /// Whether all threads have arrived; those that ended count as arrived.
    pub fn has_arrived_at_cluster(&self) -> bool {
        (0..self.n_warps()).all(|w| self.lanes.cluster_arrived[w] | self.lanes.ended[w] == self.present(w))
    }

    /// Begins the next phase.
    pub fn pass_cluster_barrier(&mut self) {
        self.lanes.cluster_arrived = [0; MAX_WARPS];
        self.lanes
            .states
            .iter_mut()
            .filter(|s| **s == State::AtClusterBarrier)
            .for_each(|s| *s = State::Ready);
        self.lanes.n_steps += 1;
    }
}
