//! XORWOW: Marsaglia, "Xorshift RNGs" (Journal of Statistical Software 8, 14, page 5), five words that are shifted and
//! a counter of Weyl's. cuRAND has 4096 of them, 2^67 steps from each other.

use std::sync::OnceLock;

use crate::interleaved::{Interleaved, Recurrence, State, WIDTH};
use crate::lanes;

/// Sequences that lie side by side.
const LANES: usize = 4096;

/// What the counter grows by.
const WEYL: u32 = 362_437;

pub(crate) struct Xorwow;

impl Recurrence for Xorwow {
    #[inline(always)]
    fn advance(state: &mut State, words: &mut [[u32; WIDTH]]) {
        let [v, counter] = {
            let (v, counter) = state.split_at_mut(5);
            [v, counter]
        };
        let counter = &mut counter[0];
        let mut turns = words.chunks_exact_mut(5);
        for turn in &mut turns {
            step::<0>(v, counter, &mut turn[0]);
            step::<1>(v, counter, &mut turn[1]);
            step::<2>(v, counter, &mut turn[2]);
            step::<3>(v, counter, &mut turn[3]);
            step::<4>(v, counter, &mut turn[4]);
        }
        for words in turns.into_remainder() {
            step::<0>(v, counter, words);
            v.rotate_left(1);
        }
    }
}

/// One step where the oldest of the five words stands at `OLDEST`.
#[inline(always)]
fn step<const OLDEST: usize>(v: &mut [[u32; WIDTH]], counter: &mut [u32; WIDTH], words: &mut [u32; WIDTH]) {
    let newest = v[(OLDEST + 4) % 5];
    let oldest = &mut v[OLDEST];
    for lane in 0..WIDTH {
        let t = oldest[lane] ^ (oldest[lane] >> 2);
        let new = newest[lane] ^ (newest[lane] << 4) ^ t ^ (t << 1);
        oldest[lane] = new;
        counter[lane] = counter[lane].wrapping_add(WEYL);
        words[lane] = new.wrapping_add(counter[lane]);
    }
}

/// The state that a seed stands for: five words, and the counter.
fn seeded(seed: u64) -> [u32; 6] {
    let low = (seed as u32 ^ 0xaad2_6b49).wrapping_mul(1_099_087_573);
    let high = ((seed >> 32) as u32 ^ 0xf7dc_efdd).wrapping_mul(2_591_861_531);
    [
        123_456_789u32.wrapping_add(low),
        362_436_069 ^ low,
        521_288_629u32.wrapping_add(high),
        88_675_123 ^ high,
        5_783_321u32.wrapping_add(low),
        6_615_241u32.wrapping_add(low).wrapping_add(high),
    ]
}

/// All lanes, `offset` words on: places of one sequence, or, if `each_seeded`, each of a seed of its own.
pub(crate) fn new(seed: u64, offset: u64, each_seeded: bool) -> Interleaved {
    let mut columns: [Vec<u32>; 6] = std::array::from_fn(|_| Vec::with_capacity(LANES));
    let mut state = seeded(seed);
    for lane in 0..LANES as u64 {
        for (column, word) in columns.iter_mut().zip(state) {
            column.push(word);
        }
        if each_seeded {
            state = seeded(seed.wrapping_add((lane + 1) * 3_133_713));
        } else {
            let [a, b, c, d, e, counter] = state;
            let [a, b, c, d, e] = sequence().apply([a, b, c, d, e]);
            state = [a, b, c, d, e, counter];
        }
    }
    let (rows, at) = (offset / LANES as u64, (offset % LANES as u64) as usize);
    skip(&mut columns, 0..LANES, rows);
    skip(&mut columns, 0..at, 1);
    Interleaved::new(columns, at)
}

/// Lets some lanes go `steps` on.
fn skip(columns: &mut [Vec<u32>; 6], range: std::ops::Range<usize>, steps: u64) {
    if steps == 0 || range.is_empty() {
        return;
    }
    for counter in &mut columns[5][range.clone()] {
        *counter = counter.wrapping_add(WEYL.wrapping_mul(steps as u32));
    }
    let jump = Jump::one().power(steps);
    let [a, b, c, d, e, _] = columns.each_mut().map(|column| &mut column[range.clone()]);
    lanes::vectorized(
        #[inline(always)]
        || jump.apply_all([a, b, c, d, e]),
    );
}

/// A linear map of the five words: what each of their 160 bits becomes.
#[derive(Clone)]
struct Jump([[u32; 5]; 160]);

impl Jump {
    /// One step, seen by letting single bits go it.
    fn one() -> Jump {
        Jump(std::array::from_fn(|bit| {
            let mut v = [0u32; 5];
            v[bit / 32] = 1 << (bit % 32);
            let t = v[0] ^ (v[0] >> 2);
            [v[1], v[2], v[3], v[4], v[4] ^ (v[4] << 4) ^ t ^ (t << 1)]
        }))
    }

    fn apply(&self, words: [u32; 5]) -> [u32; 5] {
        let mut sum = [0; 5];
        for (word, rows) in words.iter().zip(self.0.chunks_exact(32)) {
            for (bit, row) in rows.iter().enumerate() {
                let mask = (word >> bit & 1).wrapping_neg();
                for i in 0..5 {
                    sum[i] ^= row[i] & mask;
                }
            }
        }
        sum
    }

    /// The same for states side by side.
    #[inline(always)]
    fn apply_all(&self, mut columns: [&mut [u32]; 5]) {
        let n = columns[0].len();
        for start in (0..n).step_by(WIDTH) {
            let here = WIDTH.min(n - start);
            let mut words = [[0u32; WIDTH]; 5];
            for (to, from) in words.iter_mut().zip(&columns) {
                to[..here].copy_from_slice(&from[start..start + here]);
            }
            let mut sums = [[0u32; WIDTH]; 5];
            for (word, rows) in words.iter().zip(self.0.chunks_exact(32)) {
                for (bit, row) in rows.iter().enumerate() {
                    for lane in 0..WIDTH {
                        let mask = (word[lane] >> bit & 1).wrapping_neg();
                        for i in 0..5 {
                            sums[i][lane] ^= row[i] & mask;
                        }
                    }
                }
            }
            for (from, to) in sums.iter().zip(&mut columns) {
                to[start..start + here].copy_from_slice(&from[..here]);
            }
        }
    }

    fn then(&self, next: &Jump) -> Jump {
        Jump(std::array::from_fn(|bit| next.apply(self.0[bit])))
    }

    fn power(&self, mut steps: u64) -> Jump {
        let mut square = self.clone();
        let mut power: Option<Jump> = None;
        loop {
            if steps & 1 == 1 {
                power = Some(power.map_or_else(|| square.clone(), |power| power.then(&square)));
            }
            steps >>= 1;
            if steps == 0 {
                return power.unwrap_or(square);
            }
            square = square.then(&square);
        }
    }
}

/// From one lane to the next: 2^67 steps.
fn sequence() -> &'static Jump {
    static SEQUENCE: OnceLock<Jump> = OnceLock::new();
    SEQUENCE.get_or_init(|| {
        let mut jump = Jump::one();
        for _ in 0..67 {
            jump = jump.then(&jump);
        }
        jump
    })
}
