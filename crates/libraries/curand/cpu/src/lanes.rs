//! Loops for the vectors and the cores that this machine has.

use rayon::prelude::*;

/// What a fill has to write, in bytes, before a second core is worth waking.
const SHARED: usize = 1 << 18;

/// Runs `work` compiled for the widest vectors of this processor; what it calls is inlined, or compiled for the oldest.
#[inline(always)]
pub(crate) fn vectorized<R>(work: impl FnOnce() -> R) -> R {
    pulp::Arch::new().dispatch(work)
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
