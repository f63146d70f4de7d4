//! MTGP32: Saito and Matsumoto, "Variants of Mersenne Twister suitable for graphic processors" (2013). cuRAND has 192 of
//! them (64 in its legacy ordering), each with parameters of its own, which give 256 words in turns.

mod parameters;

use crate::draw::{self, Draw};
use crate::lanes;

/// Words that a twister gives in its turn.
const TURN: usize = 256;

/// Words of a twister's state; its last word has 13 bits that count.
const STATE: usize = 351;
const MASK: u32 = 0xfff8_0000;

/// Words of a twister's image: its parameters, its state, and the words of its last turn.
pub(crate) const IMAGE: usize = 11 + STATE + TURN;

#[derive(Clone, Copy)]
struct Parameters {
    position: usize,
    left: u32,
    right: u32,
    recurrence: [u32; 4],
    tempering: [u32; 4],
}

#[derive(Clone)]
pub(crate) struct Mtgp {
    twisters: Vec<Twister>,
    /// The twister whose turn it is.
    at: usize,
    /// What is left of the last turn: its words from `given` on.
    turn: [u32; TURN],
    given: usize,
}

impl Mtgp {
    pub(crate) fn new(seed: u64, legacy: bool) -> Mtgp {
        let seed = (seed ^ (seed >> 32)) as u32;
        let sets = &parameters::SETS[..if legacy { 64 } else { 192 }];
        let twisters =
            sets.iter().zip(1..).map(|(set, number)| Twister::new(set, seed.wrapping_add(number))).collect();
        Mtgp { twisters, at: 0, turn: [0; TURN], given: TURN }
    }

    /// How many twisters there are, and their images, before any of their words is given away.
    pub(crate) fn image(&self) -> (usize, Vec<u32>) {
        let mut words = Vec::with_capacity(self.twisters.len() * IMAGE);
        for Twister { set, state, words: last } in &self.twisters {
            words.extend([set.position as u32, set.left, set.right]);
            words.extend(set.recurrence.iter().chain(&set.tempering));
            words.extend(state[..STATE].iter().chain(last));
        }
        (self.twisters.len(), words)
    }

    /// Fills `out` with what `draw` makes of a word each.
    pub(crate) fn fill<T: Send>(&mut self, out: &mut [T], draw: impl Draw<u32, T>) {
        let bytes = size_of_val(out);
        let here = out.len().min(TURN - self.given);
        let (head, rest) = out.split_at_mut(here);
        let (turn, given) = (&self.turn, self.given);
        draw::put(head, |i| turn[given + i], draw);
        self.given += here;
        let (turns, tail) = rest.as_chunks_mut::<TURN>();

        let mut jobs: Vec<(&mut Twister, Vec<&mut [T; TURN]>)> =
            self.twisters.iter_mut().map(|twister| (twister, Vec::new())).collect();
        let n = jobs.len();
        for turn in turns {
            jobs[self.at].1.push(turn);
            self.at = (self.at + 1) % n;
        }
        // A twister's turns lie far apart in memory: by some rows of all twisters it is seldom waited for.
        lanes::each(jobs, bytes, |(twister, turns)| {
            lanes::vectorized(
                #[inline(always)]
                || {
                    for out in turns {
                        twister.turn();
                        let words = twister.words();
                        draw::put(
                            out,
                            #[inline(always)]
                            |i| words[i],
                            draw,
                        );
                    }
                },
            );
        });
        if !tail.is_empty() {
            let twister = &mut self.twisters[self.at];
            lanes::vectorized(
                #[inline(always)]
                || twister.turn(),
            );
            self.turn = *twister.words();
            self.at = (self.at + 1) % n;
            let turn = &self.turn;
            draw::put(tail, |i| turn[i], draw);
            self.given = tail.len();
        }
    }
}

#[derive(Clone)]
struct Twister {
    set: &'static Parameters,
    /// The state, and room for the words that follow it.
    state: [u32; STATE + TURN],
    words: [u32; TURN],
}

impl Twister {
    fn new(set: &'static Parameters, seed: u32) -> Twister {
        let hidden = set.recurrence[2] ^ (set.recurrence[3] << 16);
        let filling = hidden.wrapping_add(hidden >> 16);
        let filling = filling.wrapping_add(filling >> 8) & 0xff;
        let mut state = [0; STATE + TURN];
        state[..STATE].fill(filling * 0x0101_0101);
        (state[0], state[1]) = (seed, hidden);
        for i in 1..STATE {
            let last = state[i - 1];
            state[i] ^= 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Twister { set, state, words: [0; TURN] }
    }

    fn words(&self) -> &[u32; TURN] {
        &self.words
    }

    /// The next words. None of them depends on another of them: positions are at most 95.
    #[inline(always)]
    fn turn(&mut self) {
        let Parameters { position, left, right, recurrence, tempering } = *self.set;
        let (old, new) = self.state.split_at_mut(STATE);
        let near: &[u32; TURN + 1] = old.first_chunk().expect("a turn is shorter than the state");
        let far: &[u32; TURN + 1] = old[position - 1..].first_chunk().expect("positions are at most 95");
        let new: &mut [u32; TURN] = new.first_chunk_mut().expect("there is room for a turn");
        for i in 0..TURN {
            let x = (near[i] & MASK) ^ near[i + 1];
            let y = (x ^ (x << left)) ^ (far[i + 1] >> right);
            new[i] = y ^ entry(&recurrence, y);
            let t = far[i] ^ (far[i] >> 16);
            self.words[i] = new[i] ^ entry(&tempering, t ^ (t >> 8));
        }
        self.state.copy_within(TURN.., 0);
    }
}

/// The entry of a linear table of 16.
#[inline(always)]
fn entry(table: &[u32; 4], index: u32) -> u32 {
    (0..4).fold(0, |sum, bit| sum ^ table[bit] & (index >> bit & 1).wrapping_neg())
}
