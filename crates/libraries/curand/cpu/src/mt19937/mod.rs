//! MT19937: Matsumoto and Nishimura, "Mersenne Twister" (1998), with the initialisation of 2002, in NVIDIA's order: of 8,192
//! generators, each 2^2048 words of the twister behind the one before, each gives eight words by turns. Which eight of its state is
//! in [`place`]. NVIDIA publishes none of this; it was found by looking for the words of its host generator in the twister's
//! sequence, and the tests compare with that generator.

mod jumps;

use crate::draw::{self, Draw};
use crate::lanes;

const STATE: usize = 624;
const MIDDLE: usize = 397;

const GENERATORS: usize = 8192;
/// Words that a generator gives at a time.
const EACH: usize = 8;
/// Words of all generators, each by turns.
const ROW: usize = GENERATORS * EACH;
/// Rows for which a state has words.
const ROWS: usize = STATE / EACH;
/// Words that all states have.
const BLOCK: usize = ROWS * ROW;

/// Words of all states, for kernels.
pub(crate) const IMAGE: usize = GENERATORS * STATE;

/// Generators that are made from the first of them.
const GROUP: usize = 64;

/// The first row's places in a state.
const FIRST: [usize; EACH] = [0, 113, 170, 283, 340, 397, 510, 567];
/// Rows that share 56 places behind each other, from which each takes every seventh.
const TOGETHER: usize = 7;

type State = [u32; STATE];

#[derive(Clone)]
pub(crate) struct Mt19937 {
    /// Made when they are first needed: short fills ask few of them.
    states: Vec<State>,
    /// The first generators of the groups that were made, as their seed left them; the last is that of the next one.
    heads: Vec<State>,
    /// How often the states were twisted.
    twisted: usize,
    /// Words given away.
    given: usize,
}

/// A row's part of a fill.
struct Part<'a, T> {
    /// Where in a state its words are.
    places: [usize; EACH],
    /// The row's first word that is asked for.
    start: usize,
    out: &'a mut [T],
}

impl Mt19937 {
    /// Only the lower half of a seed counts.
    pub(crate) fn new(seed: u64) -> Mt19937 {
        let mut state = [seed as u32; STATE];
        for i in 1..STATE {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Mt19937 { states: vec![], heads: vec![state], twisted: 0, given: 0 }
    }

    /// Fills `out` with what `draw` makes of a word each.
    pub(crate) fn fill<T: Send>(&mut self, out: &mut [T], draw: impl Draw<u32, T>) {
        let mut out = out;
        while !out.is_empty() {
            let start = self.given % BLOCK;
            let here = out.len().min(BLOCK - start);
            self.prepare(self.given / BLOCK, start + here);
            let (now, later) = std::mem::take(&mut out).split_at_mut(here);
            self.write(start, now, draw);
            self.given += here;
            out = later;
        }
    }

    /// Has the states of a block of the sequence, as many as give its words up to `end`.
    fn prepare(&mut self, block: usize, end: usize) {
        let needed = if end >= ROW { GENERATORS } else { end.div_ceil(EACH) };
        self.make(needed);
        while self.twisted <= block {
            // Only the first block can lack states, which are twisted once when they are made.
            if self.twisted > 0 {
                let bytes = size_of_val(&self.states[..]);
                lanes::each(self.states.chunks_mut(GROUP).collect(), bytes, |states| {
                    lanes::vectorized(
                        #[inline(always)]
                        || states.iter_mut().for_each(twist),
                    );
                });
            }
            self.twisted += 1;
        }
    }

    /// Makes states until there are `needed`.
    fn make(&mut self, needed: usize) {
        let first = self.heads.len() - 1;
        let groups = needed.div_ceil(GROUP);
        if groups <= first {
            return;
        }
        for _ in first..groups {
            let last = &self.heads[self.heads.len() - 1];
            self.heads.push(lanes::vectorized(
                #[inline(always)]
                || jumped(last, &jumps::GROUP),
            ));
        }
        self.states.resize(groups * GROUP, [0; STATE]);
        let heads = &self.heads[first..];
        let jobs: Vec<_> = heads.iter().zip(self.states[first * GROUP..].chunks_mut(GROUP)).collect();
        // Each costs as much as a fill of many bytes.
        lanes::each(jobs, usize::MAX, |(head, states)| {
            lanes::vectorized(
                #[inline(always)]
                || {
                    let mut own = *head;
                    for (nth, state) in states.iter_mut().enumerate() {
                        if nth > 0 {
                            own = jumped(&own, &jumps::ONE);
                        }
                        *state = own;
                        twist(state);
                    }
                },
            );
        });
    }

    /// All states of a twister that has given no word yet, as they give the first.
    pub(crate) fn image(&mut self) -> &[u32] {
        self.prepare(0, ROW);
        self.states.as_flattened()
    }

    /// The words of a block from `start` on.
    fn write<T: Send>(&self, start: usize, out: &mut [T], draw: impl Draw<u32, T>) {
        let bytes = size_of_val(out);
        // Rows that share places go together: the first row, then seven at a time.
        let mut jobs: Vec<Vec<Part<'_, T>>> = (0..=(ROWS - 1) / TOGETHER).map(|_| vec![]).collect();
        let (mut at, mut rest) = (start, out);
        while !rest.is_empty() {
            let (row, from) = (at / ROW, at % ROW);
            let here = rest.len().min(ROW - from);
            let (out, later) = std::mem::take(&mut rest).split_at_mut(here);
            let places = std::array::from_fn(|nth| place(row, nth));
            jobs[row.div_ceil(TOGETHER)].push(Part { places, start: from, out });
            at += here;
            rest = later;
        }
        jobs.retain(|parts| !parts.is_empty());
        lanes::each(jobs, bytes, |mut parts| {
            lanes::vectorized(
                #[inline(always)]
                || self.write_rows(&mut parts, draw),
            )
        });
    }

    #[inline(always)]
    fn write_rows<T>(&self, parts: &mut [Part<'_, T>], draw: impl Draw<u32, T>) {
        for (generator, state) in self.states.iter().enumerate() {
            let first = generator * EACH;
            for Part { places, start, out } in parts.iter_mut() {
                if first >= *start && first + EACH <= *start + out.len() {
                    let own = &mut out[first - *start..][..EACH];
                    let words = tempered_at(state, places);
                    draw::put(
                        own,
                        #[inline(always)]
                        |i| words[i],
                        draw,
                    );
                    continue;
                }
                let (skipped, at) = (start.saturating_sub(first), first.saturating_sub(*start));
                if skipped < EACH && at < out.len() {
                    let words = tempered_at(state, places);
                    let here = (EACH - skipped).min(out.len() - at);
                    draw::put(
                        &mut out[at..at + here],
                        #[inline(always)]
                        |i| words[skipped + i],
                        draw,
                    );
                }
            }
        }
    }
}

/// Where in its state a generator has word `nth` of a row. The first row takes eight places; what is left of the others, in
/// order, is eleven times 56, of which each of seven rows takes every seventh.
#[inline(always)]
fn place(row: usize, nth: usize) -> usize {
    if row == 0 {
        return FIRST[nth];
    }
    let at = (row - 1) / TOGETHER * (TOGETHER * EACH) + (row - 1) % TOGETHER + TOGETHER * nth;
    // Behind as many of the first row's places as lie before it.
    let mut before = 1;
    while before < EACH && FIRST[before] <= at + before {
        before += 1;
    }
    at + before
}

/// The next words of a state.
#[inline(always)]
fn twist(s: &mut State) {
    // In three parts, in each of which no word depends on another of it.
    let (front, back) = s.split_at_mut(STATE - MIDDLE);
    for i in 0..STATE - MIDDLE - 1 {
        front[i] = mixed(front[i], front[i + 1], back[i + 2 * MIDDLE - STATE]);
    }
    let last = STATE - MIDDLE - 1;
    front[last] = mixed(front[last], back[0], back[MIDDLE - 1]);
    // Here the middle word is one that was just made, 227 words back.
    let (near, far) = s.split_at_mut(2 * (STATE - MIDDLE));
    let (made, near) = near.split_at_mut(STATE - MIDDLE);
    for i in 0..STATE - MIDDLE - 1 {
        near[i] = mixed(near[i], near[i + 1], made[i]);
    }
    near[last] = mixed(near[last], far[0], made[last]);
    for i in 0..far.len() - 1 {
        far[i] = mixed(far[i], far[i + 1], near[i]);
    }
    s[STATE - 1] = mixed(s[STATE - 1], s[0], s[MIDDLE - 1]);
}

#[inline(always)]
fn mixed(this: u32, next: u32, middle: u32) -> u32 {
    let y = (this & 0x8000_0000) | (next & 0x7fff_ffff);
    middle ^ (y >> 1) ^ (0x9908_b0df & (y & 1).wrapping_neg())
}

/// The words of some places of a state.
#[inline(always)]
fn tempered_at(state: &State, places: &[usize; EACH]) -> [u32; EACH] {
    let mut words = [0; EACH];
    for i in 0..EACH {
        words[i] = state[places[i]];
    }
    for word in &mut words {
        *word = tempered(*word);
    }
    words
}

#[inline(always)]
fn tempered(mut y: u32) -> u32 {
    y ^= y >> 11;
    y ^= (y << 7) & 0x9d2c_5680;
    y ^= (y << 15) & 0xefc6_0000;
    y ^ (y >> 18)
}

/// Bits of a polynomial that are looked at together.
const WINDOW: usize = 7;
/// Windows of a polynomial of degree 19,936 at most.
const WINDOWS: usize = 19_937usize.div_ceil(WINDOW);

/// The state behind so many words as the power of x says that `polynomial` is: its value at "the next word", by Horner's scheme,
/// seven coefficients at a time.
#[inline(always)]
fn jumped(state: &State, polynomial: &[u64; 312]) -> State {
    // The next few states, and the sums of each of their subsets.
    let mut next = [0; STATE + WINDOW];
    next[..STATE].copy_from_slice(state);
    for i in 0..WINDOW {
        next[STATE + i] = mixed(next[i], next[i + 1], next[i + MIDDLE]);
    }
    let mut sums = vec![[0u32; STATE]; 1 << WINDOW];
    for subset in 1..1usize << WINDOW {
        let low = subset.trailing_zeros() as usize;
        let (made, rest) = sums.split_at_mut(subset);
        for ((sum, other), word) in rest[0].iter_mut().zip(&made[subset & (subset - 1)]).zip(&next[low..]) {
            *sum = other ^ word;
        }
    }
    let bit = |at: usize| polynomial.get(at / 64).map_or(0, |word| (word >> (at % 64)) as usize & 1);
    let mut line = vec![0u32; STATE + WINDOWS * WINDOW];
    let mut at = 0;
    for window in (0..WINDOWS).rev() {
        for i in at..at + WINDOW {
            line[i + STATE] = mixed(line[i], line[i + 1], line[i + MIDDLE]);
        }
        at += WINDOW;
        let subset = (0..WINDOW).fold(0, |all, nth| all | bit(window * WINDOW + nth) << nth);
        for (word, sum) in line[at..at + STATE].iter_mut().zip(&sums[subset]) {
            *word ^= sum;
        }
    }
    let mut found = [0; STATE];
    found.copy_from_slice(&line[at..]);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_place_of_a_state_is_taken_once() {
        let mut taken = [false; STATE];
        for row in 0..ROWS {
            for nth in 0..EACH {
                assert!(!std::mem::replace(&mut taken[place(row, nth)], true), "row {row}, word {nth}");
            }
        }
    }

    #[test]
    fn a_power_of_x_goes_on_by_so_many_words() {
        let mut generator = Mt19937::new(5489);
        let mut polynomial = [0; 312];
        polynomial[1000 / 64] = 1 << (1000 % 64);
        let far = jumped(&generator.heads[0], &polynomial);
        let mut line = generator.heads.remove(0).to_vec();
        for i in 0..1000 {
            line.push(mixed(line[i], line[i + 1], line[i + MIDDLE]));
        }
        // Of the first word only the highest bit counts.
        assert_eq!(far[1..], line[1001..]);
        assert_eq!(far[0] >> 31, line[1000] >> 31);
    }

    /// The first words for seed 0, and the second generator's, as NVIDIA's 10.4.4 gives them.
    #[test]
    fn the_second_generator_comes_behind_eight_words() {
        let mut words = [0; 16];
        Mt19937::new(0).fill(&mut words, |x| x);
        assert_eq!(words[0], 0x8c7f_0aac);
        let second = [
            0xece3_1bc8,
            0xe73f_7104,
            0xe3a4_807e,
            0x6612_f60e,
            0x60ef_7aa0,
            0xc728_d82a,
            0x51b9_da83,
            0x7cc3_c35f,
        ];
        assert_eq!(words[8..], second);
    }
}
