//! Products of dense matrices where a sparse one has entries.

use crate::Scalar;
use crate::parts::pieces;

/// Entries that are worth a core's turn.
const PART: usize = 256;

/// `A · B` at each place. `a` is by rows and `b` by columns, so that both factors of a sum of so many products lie together.
pub fn sddmm<C: Scalar>(places: &[(usize, usize)], depth: usize, a: &[C], b: &[C]) -> Vec<C> {
    let one = |&(row, column): &(usize, usize)| {
        let (line, other) = (&a[row * depth..][..depth], &b[column * depth..][..depth]);
        let mut sum = C::ZERO;
        line.iter().zip(other).for_each(|(a, b)| sum += *a * *b);
        sum
    };
    let mut sums = vec![C::ZERO; places.len()];
    pieces(&mut sums, PART, 1, &|number, sums| {
        sums.iter_mut().zip(&places[number * PART..]).for_each(|(sum, place)| *sum = one(place));
    });
    sums
}
