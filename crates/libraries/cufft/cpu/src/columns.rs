//! Transforms along the columns of a tile, `LANES` of them in each vector, in passes of one radix each.

use num_complex::Complex;

use crate::element::{Direction, Real, root};
use crate::isa::Kernels;
use crate::kernel::Pass;

/// The radices of `n` in the order of the passes, or `None` where another prime divides it. `widest` is the exponent
/// of the largest power of two that the registers have room for.
pub(crate) fn radices(n: usize, widest: u32) -> Option<Vec<usize>> {
    let mut rest = n;
    let mut count = |prime: usize| {
        let mut times = 0u32;
        while rest.is_multiple_of(prime) {
            rest /= prime;
            times += 1;
        }
        times
    };
    let (mut twos, mut threes, mut fives) = (count(2), count(3), count(5));
    let mut radices = Vec::new();
    for prime in [7, 11, 13, 17, 19, 23] {
        radices.extend((0..count(prime)).map(|_| prime));
    }
    if rest != 1 {
        return None;
    }
    let passes = |twos: u32| twos.div_ceil(widest);
    while threes > 1 {
        radices.push(9);
        threes -= 2;
    }
    // What is left over joins another radix, where that saves a pass.
    if threes == 1 {
        if twos >= 2 && passes(twos - 2) < passes(twos) {
            radices.push(12);
            twos -= 2;
        } else if twos >= 1 && passes(twos - 1) < passes(twos) {
            radices.push(6);
            twos -= 1;
        } else if fives > 0 {
            radices.push(15);
            fives -= 1;
        } else {
            radices.push(3);
        }
    }
    while fives > 0 {
        if twos >= 1 && passes(twos - 1) < passes(twos) {
            radices.push(10);
            twos -= 1;
        } else {
            radices.push(5);
        }
        fives -= 1;
    }
    // Passes of powers of two are as even as they can be.
    let mut left = passes(twos);
    while left > 0 {
        let exponent = twos.div_ceil(left);
        radices.push(1 << exponent);
        twos -= exponent;
        left -= 1;
    }
    radices.sort_unstable_by(|a, b| b.cmp(a));
    Some(radices)
}

struct Stage<T> {
    run: unsafe fn(&Pass<T>),
    radix: usize,
    rest: usize,
    done: usize,
    factors: Vec<Complex<T>>,
    roots: Vec<Complex<T>>,
}

/// All passes of one length in one direction.
pub(crate) struct Columns<T: 'static> {
    pub(crate) n: usize,
    pub(crate) kernels: &'static Kernels<T>,
    stages: Vec<Stage<T>>,
    inverse: bool,
}

/// Rows of a tile: the first one, and how far apart they are.
pub(crate) struct Rows<P> {
    pub(crate) at: P,
    pub(crate) row: usize,
}

impl<T: Real> Columns<T> {
    pub(crate) fn new(n: usize, direction: Direction, kernels: &'static Kernels<T>) -> Option<Self> {
        let radices = radices(n, kernels.widest)?;
        let mut done = 1;
        let stages = radices.into_iter().map(|radix| {
            let left = n / done;
            let rest = left / radix;
            let factors = (0..rest)
                .flat_map(|p| (1..radix).map(move |k| root((p * k) as u64, left as u64, direction)))
                .collect();
            let roots = (0..radix).map(|k| root(k as u64, radix as u64, direction)).collect();
            let run = kernels.pass[radix].expect("`radices` gives what there is");
            let stage = Stage { run, radix, rest, done, factors, roots };
            done *= radix;
            stage
        });
        Some(Self { n, kernels, stages: stages.collect(), inverse: direction == Direction::Inverse })
    }

    /// Numbers of scratch memory that `vectors` columns take.
    pub(crate) fn scratch(&self, vectors: usize) -> usize {
        self.stages.len().saturating_sub(1).min(2) * self.n * vectors * self.kernels.lanes
    }

    /// Transforms `vectors * LANES` columns; `from` and `to` are the same or apart, and if they are the same their rows
    /// lie alike.
    ///
    /// # Safety
    /// Both have `n` rows with that many numbers, and `scratch` what `scratch()` says, apart from them.
    pub(crate) unsafe fn run(
        &self,
        from: Rows<*const Complex<T>>,
        to: Rows<*mut Complex<T>>,
        vectors: usize,
        scratch: *mut Complex<T>,
    ) {
        let dense = vectors * self.kernels.lanes;
        let halves = [scratch, scratch.wrapping_add(self.n * dense)];
        let (mut at, mut row) = (from.at, from.row);
        let count = self.stages.len();
        if count == 0 && !std::ptr::eq(from.at, to.at) {
            // SAFETY: a length of 1: one row each.
            unsafe { to.at.copy_from_nonoverlapping(from.at, dense) };
        }
        for (i, stage) in self.stages.iter().enumerate() {
            let (into, into_row) = if i + 1 == count { (to.at, to.row) } else { (halves[i % 2], dense) };
            let pass = Pass {
                from: at,
                from_row: row,
                to: into,
                to_row: into_row,
                vectors,
                rest: stage.rest,
                done: stage.done,
                factors: stage.factors.as_ptr(),
                roots: stage.roots.as_ptr(),
                inverse: self.inverse,
            };
            debug_assert_eq!(stage.radix * stage.rest * stage.done, self.n);
            // SAFETY: the tables are this length's; the caller promises the memory; passes alternate between halves.
            unsafe { (stage.run)(&pass) };
            (at, row) = (into.cast_const(), into_row);
        }
    }
}
