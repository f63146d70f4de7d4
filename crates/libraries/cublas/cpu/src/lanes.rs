//! Loops as fast as the processor's vectors and cores make them, with the same result on any number of cores.

use std::ops::Range;

use rayon::prelude::*;

use crate::{Number, vectorized};

/// Sums that grow beside each other: full vectors, and rounding errors that grow with n / LANES.
const LANES: usize = 32;

/// Elements per core's turn; what is not at least a few of them is done sooner alone than shared out.
const TURN: usize = 1 << 16;
const SHARED: usize = 4 * TURN;

vectorized! {
    /// Runs `work`, which LLVM inlines where it is short.
    pub(crate) fn vectorized[R](work: impl FnOnce() -> R) -> R {
        work()
    }
}

/// The sum of `term(0)` to `term(n - 1)`.
#[inline(always)]
pub(crate) fn sum<S: Number>(n: usize, term: impl Fn(usize) -> S) -> S {
    let mut sums = [S::zero(); LANES];
    let whole = n - n % LANES;
    let mut start = 0;
    while start < whole {
        // By index: through `iter_mut` LLVM leaves the sums in memory.
        #[expect(clippy::needless_range_loop, reason = "slower otherwise")]
        for lane in 0..LANES {
            sums[lane] += term(start + lane);
        }
        start += LANES;
    }
    let rest = (whole..n).fold(S::zero(), |rest, i| rest + term(i));
    if whole == 0 { rest } else { total(&sums) + rest }
}

/// A call, so that the sums lie side by side at the end: LLVM then keeps them in vectors all the time.
#[inline(never)]
fn total<S: Number>(sums: &[S; LANES]) -> S {
    let mut sums = *sums;
    let mut width = LANES / 2;
    while width > 0 {
        for lane in 0..width {
            let other = sums[lane + width];
            sums[lane] += other;
        }
        width /= 2;
    }
    sums[0]
}

/// Does `part` for ranges that together are `0..n`, on all cores where n is large.
pub(crate) fn for_ranges(n: usize, part: impl Fn(Range<usize>) + Sync) {
    if n < SHARED {
        part(0..n);
    } else {
        in_turns(n, &part);
    }
}

/// Once for all parts: what rayon makes of a loop is a kilobyte of code.
fn in_turns(n: usize, part: &(dyn Fn(Range<usize>) + Sync)) {
    (0..n.div_ceil(TURN)).into_par_iter().for_each(|turn| part(range(turn, n)));
}

/// What `part` gives for ranges that together are `0..n`, in their order.
pub(crate) fn map_ranges<R: Send>(n: usize, part: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    if n < SHARED { vec![part(0..n)] } else { map_turns(n, &part) }
}

/// Likewise for all of one result.
fn map_turns<R: Send>(n: usize, part: &(dyn Fn(Range<usize>) -> R + Sync)) -> Vec<R> {
    (0..n.div_ceil(TURN)).into_par_iter().map(|turn| part(range(turn, n))).collect()
}

fn range(turn: usize, n: usize) -> Range<usize> {
    turn * TURN..n.min((turn + 1) * TURN)
}
