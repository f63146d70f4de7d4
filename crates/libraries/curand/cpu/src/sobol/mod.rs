//! Sobol's sequences with the direction numbers of Joe and Kuo, in Gray code's order: point i is the exclusive or of the
//! direction vectors that the bits of i ^ (i >> 1) name.

mod directions;

use std::ops::{BitXor, BitXorAssign};

pub(crate) use directions::table;
pub use directions::{DIMENSIONS, directions32, directions64, scramble32, scramble64};

use crate::draw::{self, Draw};
use crate::lanes;

/// Points that differ in their lowest bits only, which are made together.
const WIDTH: usize = 64;

/// Points of a job for one core.
const JOB: usize = 1 << 16;

/// A word of a sequence.
pub(crate) trait Word:
    Copy + Default + BitXor<Output = Self> + BitXorAssign + Send + Sync + 'static
{
    fn narrowed(word: u64) -> Self;
}

impl Word for u32 {
    fn narrowed(word: u64) -> u32 {
        (word >> 32) as u32
    }
}

impl Word for u64 {
    fn narrowed(word: u64) -> u64 {
        word
    }
}

#[derive(Clone)]
pub(crate) struct Sobol<W> {
    dimensions: Vec<Dimension<W>>,
    position: u64,
}

#[derive(Clone)]
struct Dimension<W> {
    vectors: Vec<W>,
    shift: W,
    /// What the lowest bits of a point's number add to it.
    low: [W; WIDTH],
}

impl<W: Word> Sobol<W> {
    pub(crate) fn new(dimensions: u32, scrambled: bool, position: u64) -> Sobol<W> {
        let dimension = |vectors: [u64; 64], shift: u64| {
            let vectors: Vec<W> =
                vectors[..8 * size_of::<W>()].iter().map(|&vector| W::narrowed(vector)).collect();
            let low = std::array::from_fn(|i| gray(&vectors, i as u64));
            Dimension { vectors, shift: W::narrowed(shift), low }
        };
        let dimensions =
            directions::all(scrambled).take(dimensions as usize).map(|(v, s)| dimension(v, s)).collect();
        Sobol { dimensions, position }
    }

    /// Fills `out`, which has the same number of points for each dimension, with what `draw` makes of each word.
    pub(crate) fn fill<T: Send>(&mut self, out: &mut [T], draw: impl Draw<W, T>) {
        let points = out.len() / self.dimensions.len();
        let bytes = size_of_val(out);
        if points == 0 {
            return;
        }
        let first = self.position;
        let parts = out.chunks_exact_mut(points).zip(&self.dimensions);
        let jobs = parts.flat_map(|(out, dimension)| {
            let starts = (first..).step_by(JOB);
            out.chunks_mut(JOB).zip(starts).map(move |(out, start)| (dimension, start, out))
        });
        lanes::each(jobs.collect(), bytes, |(dimension, start, out)| {
            lanes::vectorized(
                #[inline(always)]
                || dimension.points(start, out, draw),
            );
        });
        self.position = first.wrapping_add(points as u64);
    }
}

impl<W: Word> Dimension<W> {
    #[inline(always)]
    fn points<T>(&self, mut number: u64, mut out: &mut [T], draw: impl Draw<W, T>) {
        while !out.is_empty() {
            let start = (number % WIDTH as u64) as usize;
            let here = out.len().min(WIDTH - start);
            let (now, later) = out.split_at_mut(here);
            let high = self.shift ^ gray(&self.vectors, number - start as u64);
            if let Ok(now) = <&mut [T; WIDTH]>::try_from(&mut *now) {
                draw::put(
                    now,
                    #[inline(always)]
                    |i| high ^ self.low[i],
                    draw,
                );
            } else {
                draw::put(
                    now,
                    #[inline(always)]
                    |i| high ^ self.low[start + i],
                    draw,
                );
            }
            number = number.wrapping_add(here as u64);
            out = later;
        }
    }
}

/// Point `number`, less its shift. Bits that have no direction vector count for nothing.
fn gray<W: Word>(vectors: &[W], number: u64) -> W {
    // A sequence of 32-bit words begins again after 2^32 points.
    let number = if vectors.len() < 64 { number & ((1 << vectors.len()) - 1) } else { number };
    let (mut bits, mut point) = (number ^ (number >> 1), W::default());
    while bits != 0 {
        point ^= vectors[bits.trailing_zeros() as usize];
        bits &= bits - 1;
    }
    point
}
