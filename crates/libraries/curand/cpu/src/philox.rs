//! Philox4x32-10: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (2011).
//! A block of four words is a function of its number and the seed. cuRAND has 65,536 threads that take blocks in turns,
//! each 65,536 further on: values of four bytes take one block for four of them, values of eight take two.

use std::collections::VecDeque;

use crate::lanes;

/// Threads, and how far apart the blocks of one thread lie.
const THREADS: u64 = 65_536;

/// Blocks that are made together.
const WIDTH: usize = 32;

/// Blocks whose words stay in the processor's vectors over all rounds.
const GROUP: usize = 16;

#[derive(Clone)]
pub(crate) struct Philox {
    seed: u64,
    /// The next block of each thread, in the order of their turns, as runs of blocks that follow each other.
    turns: VecDeque<Run>,
    /// How many of the next turn's four values are given away.
    given: usize,
}

#[derive(Clone, Copy)]
struct Run {
    block: u64,
    len: u64,
}

impl Philox {
    pub(crate) fn new(seed: u64, offset: u64) -> Philox {
        Philox {
            seed,
            turns: VecDeque::from([Run { block: offset / 4, len: THREADS }]),
            given: (offset % 4) as usize,
        }
    }

    /// How many of the next four values are given away.
    pub(crate) fn given(&self) -> usize {
        self.given
    }

    /// The next block of the thread whose turn it is, and how many of its four values are given away.
    pub(crate) fn begins(&self) -> (u64, usize) {
        (self.turns[0].block, self.given)
    }

    /// Counts values that are made elsewhere.
    pub(crate) fn give(&mut self, n: usize) {
        self.given = (self.given + n) % 4;
    }

    /// Takes at most `most` turns, whose threads go `blocks` blocks on.
    fn take(&mut self, most: u64, blocks: u64) -> Run {
        let Some(run) = self.turns.front_mut() else { unreachable!("there are {THREADS} threads") };
        let taken = Run { block: run.block, len: run.len.min(most) };
        run.block = run.block.wrapping_add(taken.len);
        run.len -= taken.len;
        if run.len == 0 {
            self.turns.pop_front();
        }
        let next = taken.block.wrapping_add(blocks * THREADS);
        match self.turns.back_mut() {
            Some(last) if last.block.wrapping_add(last.len) == next => last.len += taken.len,
            _ => self.turns.push_back(Run { block: next, len: taken.len }),
        }
        taken
    }

    /// Fills `out`: `draw` makes four values out of `BLOCKS` blocks.
    pub(crate) fn fill<T: Copy + Default + Send, const BLOCKS: usize>(
        &mut self,
        out: &mut [T],
        draw: impl Fn([[u32; 4]; BLOCKS]) -> [T; 4] + Copy + Send + Sync,
    ) {
        self.fill_then(out, draw, |_| ());
    }

    /// The same; `then` makes values of whole blocks into others, some dozen at once.
    pub(crate) fn fill_then<T: Copy + Default + Send, const BLOCKS: usize>(
        &mut self,
        mut out: &mut [T],
        draw: impl Fn([[u32; 4]; BLOCKS]) -> [T; 4] + Copy + Send + Sync,
        then: impl Fn(&mut [T]) + Copy + Send + Sync,
    ) {
        let (seed, bytes) = (self.seed, size_of_val(out));
        if self.given != 0 && !out.is_empty() {
            let here = out.len().min(4 - self.given);
            let (head, rest) = out.split_at_mut(here);
            let mut four = [[T::default(); 4]];
            blocks(seed, self.turns[0].block, &mut four, (draw, then));
            head.copy_from_slice(&four[0][self.given..self.given + here]);
            self.given += here;
            if self.given == 4 {
                self.take(1, BLOCKS as u64);
                self.given = 0;
            }
            out = rest;
        }
        let (mut fours, tail) = out.as_chunks_mut::<4>();
        let mut jobs = Vec::new();
        while !fours.is_empty() {
            let run = self.take((fours.len() as u64).min(1 << 14), BLOCKS as u64);
            let (here, rest) = fours.split_at_mut(run.len as usize);
            jobs.push((run.block, here));
            fours = rest;
        }
        lanes::each(jobs, bytes, |(block, out)| {
            lanes::vectorized(
                #[inline(always)]
                || blocks(seed, block, out, (draw, then)),
            );
        });
        if !tail.is_empty() {
            let mut four = [[T::default(); 4]];
            blocks(seed, self.turns[0].block, &mut four, (draw, then));
            tail.copy_from_slice(&four[0][..tail.len()]);
            self.given = tail.len();
        }
    }
}

/// Values of threads whose next blocks follow each other, from `first` on.
#[inline(always)]
fn blocks<T, const BLOCKS: usize>(
    seed: u64,
    first: u64,
    out: &mut [[T; 4]],
    (draw, then): (impl Fn([[u32; 4]; BLOCKS]) -> [T; 4] + Copy, impl Fn(&mut [T])),
) {
    let mut words = [[[0; 4]; WIDTH]; BLOCKS];
    let mut first = first;
    for out in out.chunks_mut(WIDTH) {
        for (block, words) in words.iter_mut().enumerate() {
            ten_rounds(seed, first.wrapping_add(block as u64 * THREADS), words);
        }
        if let Ok(out) = <&mut [[T; 4]; WIDTH]>::try_from(&mut *out) {
            for (i, out) in out.iter_mut().enumerate() {
                *out = draw(lanes::nth(&words, i));
            }
        } else {
            for (i, out) in out.iter_mut().enumerate() {
                *out = draw(lanes::nth(&words, i));
            }
        }
        then(out.as_flattened_mut());
        first = first.wrapping_add(WIDTH as u64);
    }
}

/// The blocks `first` and following.
#[inline(always)]
fn ten_rounds(seed: u64, first: u64, words: &mut [[u32; 4]; WIDTH]) {
    let keys = keys([seed as u32, (seed >> 32) as u32]);
    let mut first = first;
    for words in words.chunks_exact_mut(GROUP) {
        let [mut a, mut b, mut c, mut d] = [[0; GROUP]; 4];
        for i in 0..GROUP {
            let block = first.wrapping_add(i as u64);
            // A thread's number is the counter's upper half.
            (a[i], b[i], c[i]) = (block / THREADS, (block / THREADS) >> 32, block % THREADS);
        }
        // Rounds outside and counters inside, so that a counter is a lane of the processor's vectors.
        for key in &keys {
            for i in 0..GROUP {
                [a[i], b[i], c[i], d[i]] = round([a[i], b[i], c[i], d[i]], key);
            }
        }
        for i in 0..GROUP {
            words[i] = [a[i] as u32, b[i] as u32, c[i] as u32, d[i] as u32];
        }
        first = first.wrapping_add(GROUP as u64);
    }
}

/// The four words of a counter by a key: Philox4x32-10 as its authors define it.
#[must_use]
pub fn philox(counter: [u32; 4], key: [u32; 2]) -> [u32; 4] {
    rounds(counter.map(u64::from), &keys(key))
}

/// The key of each round.
#[inline(always)]
fn keys(key: [u32; 2]) -> [[u64; 2]; 10] {
    std::array::from_fn(|round| {
        let bumped = |key: u32, by: u32| u64::from(key.wrapping_add(by.wrapping_mul(round as u32)));
        [bumped(key[0], 0x9e37_79b9), bumped(key[1], 0xbb67_ae85)]
    })
}

/// Words lie in the lower halves of 64-bit lanes, whose upper halves are whatever the products leave there.
#[inline(always)]
fn round([a, b, c, d]: [u64; 4], key: &[u64; 2]) -> [u64; 4] {
    const LOW: u64 = 0xffff_ffff;
    let x = (a & LOW) * 0xd251_1f53;
    let y = (c & LOW) * 0xcd9e_8d57;
    [(y >> 32) ^ b ^ key[0], y, (x >> 32) ^ d ^ key[1], x]
}

#[inline(always)]
fn rounds(counter: [u64; 4], keys: &[[u64; 2]; 10]) -> [u32; 4] {
    let [a, b, c, d] = keys.iter().fold(counter, round);
    [a as u32, b as u32, c as u32, d as u32]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the authors' Random123, `kat_vectors`.
    #[test]
    fn words_are_those_of_its_authors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(
            philox(pi, [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }
}
