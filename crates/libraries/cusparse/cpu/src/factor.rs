//! Incomplete factorizations that have the matrix's own entries and no others, in the place of its values.

use num_complex::Complex;

use crate::{Index, Scalar};

/// What takes the place of a pivot that is not greater than a tolerance.
#[derive(Clone, Copy, Debug)]
pub struct Boost<C> {
    pub tolerance: f64,
    pub value: C,
}

/// The entries of each row by their columns, and the diagonal's.
struct Rows {
    entries: Vec<Vec<(usize, usize)>>,
    diagonal: Vec<Option<usize>>,
}

impl Rows {
    fn new<I: Index>(offsets: &[I], indices: &[I], base: usize) -> Rows {
        let mut rows = Rows { entries: Vec::new(), diagonal: Vec::new() };
        for (row, bounds) in offsets.windows(2).enumerate() {
            let range = bounds[0].place(base)..bounds[1].place(base);
            let mut entries: Vec<_> = range.map(|at| (indices[at].place(base), at)).collect();
            entries.sort_unstable();
            rows.diagonal.push(entries.iter().find(|(column, _)| *column == row).map(|(_, at)| *at));
            rows.entries.push(entries);
        }
        rows
    }
}

/// `L · U` where L's diagonal is ones. The first row without a pivot, if there is one.
pub fn lower_upper<C: Scalar, I: Index>(
    (offsets, indices, base): (&[I], &[I], usize),
    values: &mut [C],
    boost: Option<Boost<C>>,
) -> Option<usize> {
    let Rows { entries, diagonal } = Rows::new(offsets, indices, base);
    let mut zero = None;
    // Where the row that is worked on has each column.
    let mut places = vec![usize::MAX; entries.len()];
    for (row, line) in entries.iter().enumerate() {
        line.iter().for_each(|(column, at)| places[*column] = *at);
        for &(middle, at) in line.iter().take_while(|(column, _)| *column < row) {
            let Some(pivot) = diagonal[middle] else { continue };
            let factor = values[at] / values[pivot];
            values[at] = factor;
            for &(column, other) in entries[middle].iter().filter(|(column, _)| *column > middle) {
                if places[column] != usize::MAX {
                    values[places[column]] = values[places[column]] - factor * values[other];
                }
            }
        }
        line.iter().for_each(|(column, _)| places[*column] = usize::MAX);
        match (diagonal[row], boost) {
            (Some(at), Some(boost)) if values[at].wide().norm() <= boost.tolerance => {
                values[at] = boost.value
            }
            (Some(at), _) if values[at] != C::ZERO => {}
            _ => zero = zero.or(Some(row)),
        }
    }
    zero
}

/// `L · Lᴴ` in the lower triangle; the upper one is neither read nor written. The first row whose pivot is not positive, if there is one.
pub fn cholesky<C: Scalar, I: Index>(
    (offsets, indices, base): (&[I], &[I], usize),
    values: &mut [C],
) -> Option<usize> {
    let Rows { entries, diagonal } = Rows::new(offsets, indices, base);
    let mut zero = None;
    let mut places = vec![usize::MAX; entries.len()];
    for (row, line) in entries.iter().enumerate() {
        let lower = || line.iter().copied().take_while(|(column, _)| *column < row);
        lower().for_each(|(column, at)| places[column] = at);
        for (middle, at) in lower() {
            let mut rest = values[at];
            for &(column, other) in entries[middle].iter().take_while(|(column, _)| *column < middle) {
                if places[column] != usize::MAX {
                    rest = rest - values[places[column]] * values[other].conj();
                }
            }
            if let Some(pivot) = diagonal[middle] {
                values[at] = rest / values[pivot];
            }
        }
        lower().for_each(|(column, _)| places[column] = usize::MAX);
        let pivot = diagonal[row].map(|at| {
            let mut rest = values[at];
            lower().for_each(|(_, at)| rest = rest - values[at] * values[at].conj());
            (at, rest.wide().re)
        });
        match pivot {
            Some((at, square)) => {
                values[at] = C::narrow(Complex::new(square.sqrt(), 0.0));
                zero = zero.or((square.is_nan() || square <= 0.0).then_some(row));
            }
            None => zero = zero.or(Some(row)),
        }
    }
    zero
}
