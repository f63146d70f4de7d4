//! Lines that the next group loads, asked for while this one computes. A CPU follows a dozen lines or so at a time and stands still for
//! more, so they are asked for a few at a time: behind the instructions of the block that loads, and of those that surely follow it.

use std::collections::VecDeque;

use super::prefetch::OPEN;
use super::{Copy, Emitter};
use crate::back::llvm::Val;
use crate::ir::{Space, Term};
use crate::pass::regions::Region;

/// Bytes of a line of the caches.
pub(super) const LINE: i64 = 64;

/// Blocks that are looked at behind the one that loads.
const REACH: usize = 64;

/// Bytes behind an address.
struct Stretch {
    base: Val,
    from: i64,
    to: i64,
    /// From where on they have not been asked for.
    next: i64,
}

impl Stretch {
    fn lines(&self) -> usize {
        usize::try_from((self.to - self.next).max(0)).unwrap_or(0).div_ceil(LINE as usize)
    }
}

#[derive(Default)]
pub(super) struct Ahead {
    stretches: VecDeque<Stretch>,
    /// Lines of them all that have not been asked for.
    lines: usize,
    /// Blocks behind whose instructions lines are asked for; the first is the one that is being written, or the next.
    path: VecDeque<usize>,
    /// Instructions among which the lines are shared out.
    left: usize,
    /// Shares of a line, in parts of `left`.
    due: usize,
    /// For each block the one that surely follows it and that only it leads to.
    followers: Vec<Option<usize>>,
}

impl Ahead {
    /// Lays bytes to those that they lie at: several loads of a row ask for its lines once.
    fn add(&mut self, base: &Val, from: i64, to: i64) {
        let beside = |it: &&mut Stretch| it.base.text == base.text && from <= it.to && it.from <= to;
        match self.stretches.iter_mut().rev().take(OPEN).find(beside) {
            Some(it) if from >= it.from || it.next == it.from => {
                self.lines -= it.lines();
                if it.next == it.from {
                    it.from = it.from.min(from);
                    it.next = it.from;
                }
                it.to = it.to.max(to);
                self.lines += it.lines();
            }
            _ => {
                let new = Stretch { base: base.clone(), from, to, next: from };
                self.lines += new.lines();
                self.stretches.push_back(new);
            }
        }
    }

    fn pop(&mut self) -> Option<(Val, i64)> {
        while let Some(first) = self.stretches.front_mut() {
            if first.next < first.to {
                let at = first.next;
                first.next += LINE;
                self.lines -= 1;
                return Some((first.base.clone(), at));
            }
            self.stretches.pop_front();
        }
        None
    }
}

/// For each block the next one on every way through it, in the same loop, where no other way leads to that.
fn followers(region: &Region) -> Vec<Option<usize>> {
    let blocks = &region.function.blocks;
    let mut sources = vec![0usize; blocks.len()];
    for edge in blocks.iter().flat_map(|block| block.term.edges()) {
        sources[edge.block.index()] += 1;
    }
    let mut found: Vec<Option<usize>> = vec![None; blocks.len()];
    for at in (0..blocks.len()).filter(|&at| region.dominators.is_reachable(at)) {
        let Some(above) = region.dominators.immediate(at) else { continue };
        let is_sure = matches!(blocks[above].term, Term::Jump(_)) || sources[at] > 1;
        if is_sure && region.loops.of[at] == region.loops.of[above] && !region.loops.is_header(at) {
            let later = |other: usize| region.layout.position[other] > region.layout.position[at];
            if !found[above].is_some_and(later) {
                found[above] = Some(at);
            }
        }
    }
    found
}

impl Emitter<'_> {
    /// Before the region's blocks are written for all lanes together.
    pub(super) fn look_ahead(&mut self) {
        let mut followers = followers(self.here());
        // Lanes that meet in front of a block have not all come by the one that loads.
        for follower in &mut followers {
            *follower = follower.filter(|&at| !self.is_meeting(at));
        }
        self.ahead = Ahead { followers, ..Ahead::default() };
    }

    /// The bytes from `from` to `to` behind `base` are asked for from here on, while block `at` is written.
    pub(super) fn ask_ahead(&mut self, at: usize, base: &Val, from: i64, to: i64) {
        let is_together = self.copy == Copy::Unmasked && self.mask.is_none();
        if !is_together || self.ahead.path.front().is_some_and(|&first| first != at) {
            return self.ask_at_once(base, from, to);
        }
        self.ahead.add(base, from, to);
        let mut path = VecDeque::from([at]);
        let mut insts = self.here().function.blocks[at].insts.len();
        while let Some(next) = self.ahead.followers[path[path.len() - 1]].filter(|_| path.len() < REACH) {
            path.push_back(next);
            insts += self.here().function.blocks[next].insts.len();
        }
        // The next group begins with the first of them: half of the way is left for the last to come.
        self.ahead.left = (insts / 2).max(1);
        self.ahead.due = 0;
        self.ahead.path = path;
    }

    /// Asks for the share of so many instructions of block `at`.
    pub(super) fn share_ahead(&mut self, at: usize, insts: usize) {
        if self.ahead.path.front() != Some(&at) || self.copy != Copy::Unmasked || self.mask.is_some() {
            return;
        }
        let (lines, left) = (self.ahead.lines, self.ahead.left);
        self.ahead.due += lines * insts;
        let share = if insts >= left { lines } else { self.ahead.due / left };
        self.ahead.due %= left;
        self.ahead.left = left.saturating_sub(insts).max(1);
        self.ask_lines(share);
    }

    /// Behind block `at`.
    pub(super) fn end_ahead(&mut self, at: usize) {
        if self.ahead.path.front() == Some(&at) {
            self.ahead.path.pop_front();
            if self.ahead.path.is_empty() {
                self.ask_lines(usize::MAX);
            }
        }
    }

    pub(super) fn ask_at_once(&mut self, base: &Val, from: i64, to: i64) {
        for at in (from..to).step_by(LINE as usize) {
            self.ask_line(base, at);
        }
    }

    fn ask_line(&mut self, base: &Val, at: i64) {
        let line = self.pointer(Space::Global, base, at);
        self.prefetch(&line, 3);
    }

    fn ask_lines(&mut self, lines: usize) {
        for _ in 0..lines {
            let Some((base, at)) = self.ahead.pop() else { break };
            self.ask_line(&base, at);
        }
    }
}
