//! MRG32k3a: L'Ecuyer, "Good parameters and implementations for combined multiple recursive random number generators"
//! (1999). cuRAND has 81,920 of them (4096 in its legacy ordering), 2^76 steps from each other.

use crate::interleaved::{Interleaved, Recurrence, State, WIDTH};
use crate::lanes;

/// The two moduli, each 2^32 less a little.
const BELOW: [u64; 2] = [209, 22_853];
const M: [u64; 2] = [(1 << 32) - BELOW[0], (1 << 32) - BELOW[1]];

pub(crate) struct Mrg;

impl Recurrence for Mrg {
    /// Words from 1 to the first modulus.
    #[inline(always)]
    fn advance(state: &mut State, words: &mut [[u32; WIDTH]]) {
        for words in words {
            for lane in 0..WIDTH {
                let s = lanes::mapped(lanes::nth(state, lane), u64::from);
                // Both below 2^54.
                let first = reduced::<0>(1_403_580 * s[1] + 810_728 * (M[0] - s[0]));
                let second = reduced::<1>(527_612 * s[5] + 1_370_589 * (M[1] - s[3]));
                state[0][lane] = state[1][lane];
                state[1][lane] = state[2][lane];
                state[2][lane] = first as u32;
                state[3][lane] = state[4][lane];
                state[4][lane] = state[5][lane];
                state[5][lane] = second as u32;
                words[lane] = (first + if first <= second { M[0] } else { 0 }).wrapping_sub(second) as u32;
            }
        }
    }
}

/// What is left of a number by modulus `WHICH`.
#[inline(always)]
fn reduced<const WHICH: usize>(number: u64) -> u64 {
    let number = (number >> 32) * BELOW[WHICH] + (number & 0xffff_ffff);
    let number = (number >> 32) * BELOW[WHICH] + (number & 0xffff_ffff);
    if number >= M[WHICH] { number - M[WHICH] } else { number }
}

/// A map of three numbers, by modulus `WHICH`.
#[derive(Clone, Copy)]
struct Jump<const WHICH: usize>([[u64; 3]; 3]);

impl<const WHICH: usize> Jump<WHICH> {
    /// One step.
    fn one() -> Jump<WHICH> {
        let row = [[M[0] - 810_728, 1_403_580, 0], [M[1] - 1_370_589, 0, 527_612]][WHICH];
        Jump([[0, 1, 0], [0, 0, 1], row])
    }

    #[inline(always)]
    fn apply(&self, s: [u32; 3]) -> [u32; 3] {
        self.0.map(|row| {
            let products = std::array::from_fn::<u64, 3, _>(|i| reduced::<WHICH>(row[i] * u64::from(s[i])));
            reduced::<WHICH>(products.iter().sum()) as u32
        })
    }

    fn then(&self, next: &Jump<WHICH>) -> Jump<WHICH> {
        let columns: [[u32; 3]; 3] =
            std::array::from_fn(|c| next.apply(std::array::from_fn(|r| self.0[r][c] as u32)));
        Jump(std::array::from_fn(|r| std::array::from_fn(|c| u64::from(columns[c][r]))))
    }

    fn power(&self, mut steps: u64) -> Jump<WHICH> {
        let mut square = *self;
        let mut power = Jump([[1, 0, 0], [0, 1, 0], [0, 0, 1]]);
        while steps != 0 {
            if steps & 1 == 1 {
                power = power.then(&square);
            }
            square = square.then(&square);
            steps >>= 1;
        }
        power
    }

    /// To the power of 2^`log`.
    fn squared(&self, log: u32) -> Jump<WHICH> {
        (0..log).fold(*self, |jump, _| jump.then(&jump))
    }
}

/// All lanes, `offset` words on.
pub(crate) fn new(seed: u64, offset: u64, legacy: bool) -> Interleaved {
    let lanes = if legacy { 4096 } else { 81_920 };
    let start = if seed == 0 {
        [12345; 6]
    } else {
        let halves = [u64::from(seed as u32 ^ 0x5555_5555), (seed >> 32) ^ 0xaaaa_aaaa];
        let part = |half: usize, which: usize| (halves[half] * 12345 % M[which]) as u32;
        [part(0, 0), part(1, 0), part(0, 0), part(1, 1), part(0, 1), part(1, 1)]
    };
    let (one, two) = (Jump::<0>::one(), Jump::<1>::one());
    let (rows, at) = (offset / lanes as u64, (offset % lanes as u64) as usize);
    let mut start = pair(&one.power(rows), &two.power(rows), start);

    // The first lanes one by one, the others by those.
    let (mut one_on, mut two_on) = (one.squared(76), two.squared(76));
    let mut columns: [Vec<u32>; 6] = std::array::from_fn(|_| vec![0; lanes]);
    for lane in 0..WIDTH {
        for (column, word) in columns.iter_mut().zip(start) {
            column[lane] = word;
        }
        start = pair(&one_on, &two_on, start);
    }
    (one_on, two_on) = (one_on.power(WIDTH as u64), two_on.power(WIDTH as u64));
    lanes::vectorized(
        #[inline(always)]
        || {
            for from in (0..lanes - WIDTH).step_by(WIDTH) {
                step(&mut columns, from, from + WIDTH, &one_on, &two_on);
            }
            for from in (0..at).step_by(WIDTH) {
                let kept = columns.each_ref().map(|column| {
                    <[u32; WIDTH]>::try_from(&column[from..from + WIDTH]).expect("lanes come in whole groups")
                });
                step(&mut columns, from, from, &one, &two);
                for (column, kept) in columns.iter_mut().zip(kept) {
                    let here = WIDTH.min(at - from);
                    column[from + here..from + WIDTH].copy_from_slice(&kept[here..]);
                }
            }
        },
    );
    Interleaved::new(columns, at)
}

fn pair(one: &Jump<0>, two: &Jump<1>, s: [u32; 6]) -> [u32; 6] {
    let ([a, b, c], [d, e, f]) = (one.apply([s[0], s[1], s[2]]), two.apply([s[3], s[4], s[5]]));
    [a, b, c, d, e, f]
}

/// Writes what the lanes from `from` on become to those from `to` on.
#[inline(always)]
fn step(columns: &mut [Vec<u32>; 6], from: usize, to: usize, one: &Jump<0>, two: &Jump<1>) {
    let mut states = [[0; WIDTH]; 6];
    for (state, column) in states.iter_mut().zip(columns.iter()) {
        state.copy_from_slice(&column[from..from + WIDTH]);
    }
    for lane in 0..WIDTH {
        let next = pair(one, two, states.each_ref().map(|state| state[lane]));
        for (state, word) in states.iter_mut().zip(next) {
            state[lane] = word;
        }
    }
    for (state, column) in states.iter().zip(columns) {
        column[to..to + WIDTH].copy_from_slice(state);
    }
}
