//! Loops for the vectors and the cores that this machine has.

use rayon::prelude::*;

/// What a fill has to write, in bytes, before a second core is worth waking.
const SHARED: usize = 1 << 18;

/// Runs `work` compiled for the widest vectors of this processor. What it calls is to be `#[inline(always)]`, and so is `work` itself:
/// LLVM inlines no long closure by itself, which is compiled for the oldest processor then.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
}

/// Element `nth` of each row. `array::from_fn` is not inlined everywhere.
#[inline(always)]
pub(crate) fn nth<T: Copy, const ROWS: usize, const WIDTH: usize>(
    rows: &[[T; WIDTH]; ROWS],
    nth: usize,
) -> [T; ROWS] {
    let mut column = [rows[0][nth]; ROWS];
    for row in 1..ROWS {
        column[row] = rows[row][nth];
    }
    column
}

/// As an array's own `map`, which is not inlined everywhere either.
#[inline(always)]
pub(crate) fn mapped<T: Copy, U: Copy, const N: usize>(values: [T; N], each: impl Fn(T) -> U) -> [U; N] {
    let mut all = [each(values[0]); N];
    for i in 1..N {
        all[i] = each(values[i]);
    }
    all
}

/// How many pieces a fill of `bytes` is cut into.
pub(crate) fn pieces(bytes: usize) -> usize {
    if bytes < SHARED { 1 } else { rayon::current_num_threads() }
}

/// Does all jobs, on all cores where they write many `bytes`.
pub(crate) fn each<J: Send>(jobs: Vec<J>, bytes: usize, work: impl Fn(J) + Sync + Send) {
    if pieces(bytes) == 1 {
        jobs.into_iter().for_each(work);
    } else {
        jobs.into_par_iter().for_each(work);
    }
}
