//! Rows for each core.

use parking_lot::Mutex;
use rayon::prelude::*;

/// What a part must have to do before another core is worth waking, in entries.
const WORTH: usize = 1 << 13;

/// The rows at which parts begin, and behind the last the number of rows: `before` says how many entries lie in front of a row.
pub fn parts(rows: usize, before: impl Fn(usize) -> usize) -> Vec<usize> {
    let work = |row: usize| before(row) + row;
    let all = work(rows);
    let most = rayon::current_num_threads() * 4;
    let count = (all / WORTH).clamp(1, most.max(1));
    let mut bounds = Vec::with_capacity(count + 1);
    bounds.push(0);
    for part in 1..count {
        // Wide: a product of two counts.
        let goal = (all as u128 * part as u128 / count as u128) as usize;
        let (mut low, mut high) = (bounds[part - 1], rows);
        while low < high {
            let middle = low.midpoint(high);
            if work(middle) < goal { low = middle + 1 } else { high = middle }
        }
        bounds.push(low);
    }
    bounds.push(rows);
    bounds
}

/// The parts of what has `width` values for each row.
pub fn split<'a, T>(mut values: &'a mut [T], bounds: &[usize], width: usize) -> Vec<&'a mut [T]> {
    bounds
        .windows(2)
        .map(|bounds| {
            let (part, rest) = core::mem::take(&mut values).split_at_mut((bounds[1] - bounds[0]) * width);
            values = rest;
            part
        })
        .collect()
}

/// What each part gives, on all cores.
pub fn on_cores<P: Send, R: Send>(parts: impl IntoIterator<Item = P>, run: impl Fn(P) -> R + Sync) -> Vec<R> {
    let parts: Vec<_> = parts.into_iter().map(|part| Mutex::new((Some(part), None))).collect();
    shared(parts.len(), &|at| {
        let mut part = parts[at].lock();
        part.1 = part.0.take().map(&run);
    });
    parts.into_iter().filter_map(|part| part.into_inner().1).collect()
}

/// Once for all bodies: what rayon makes of a loop is a kilobyte of code, and there are hundreds.
fn shared(n: usize, run: &(dyn Fn(usize) + Sync)) {
    (0..n).into_par_iter().with_max_len(1).for_each(run);
}

/// Calls `body` with each piece of so many values and its number, on all cores, for so many pieces at least at a time. Once for all
/// bodies of a type, as above.
pub fn pieces<T: Send>(
    values: &mut [T],
    size: usize,
    at_a_time: usize,
    body: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    let pieces = values.par_chunks_mut(size).with_min_len(at_a_time).enumerate();
    pieces.for_each(|(number, piece)| body(number, piece));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_have_all_rows_once_and_about_as_much_to_do() {
        // One row has nearly everything.
        let before = |row: usize| if row > 500 { 1_000_000 + row } else { row };
        let bounds = parts(1000, before);
        assert_eq!((bounds[0], *bounds.last().unwrap()), (0, 1000));
        assert!(bounds.is_sorted());
        assert_eq!(parts(0, |_| 0), [0, 0]);
        let even = parts(1 << 20, |row| row);
        let sizes: Vec<usize> = even.windows(2).map(|bounds| bounds[1] - bounds[0]).collect();
        assert!(sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 1, "{sizes:?}");
    }
}
