//! Loops over the cores that this process may use.

use rayon::prelude::*;

/// What a loop has to do, in elements, before a second core is worth waking.
const WORTH: i64 = 1 << 16;

/// Calls `body` with `0..n`, on several cores where `n` times `work` (elements per call) is much.
pub fn parallel(n: i64, work: i64, body: impl Fn(i64) + Sync + Send) {
    if n > 1 && n.saturating_mul(work) >= WORTH {
        shared(n, &body);
    } else {
        (0..n.max(0)).for_each(body);
    }
}

/// Once for all bodies: what rayon makes of a loop is a kilobyte of code.
fn shared(n: i64, body: &(dyn Fn(i64) + Sync)) {
    (0..n).into_par_iter().for_each(body);
}
