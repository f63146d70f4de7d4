//! Incomplete factorizations that have the matrix's own entries and no others, in the place of its values. A matrix of blocks is
//! factorized as the one whose entries are all values of its blocks.

use num_complex::Complex;

use crate::{Blocked, Index, Scalar};

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
    fn new<I: Index>(a: &Blocked<'_, I>) -> Rows {
        let mut rows = Rows { entries: Vec::new(), diagonal: Vec::new() };
        for row in 0..a.rows() {
            let mut entries = Vec::new();
            a.row(row, |column, at| entries.push((column, at)));
            entries.sort_unstable();
            rows.diagonal.push(entries.iter().find(|(column, _)| *column == row).map(|(_, at)| *at));
            rows.entries.push(entries);
        }
        rows
    }
}

/// The first row, of blocks where there are, that has no diagonal.
pub fn missing_diagonal<I: Index>(a: &Blocked<'_, I>) -> Option<usize> {
    (0..a.block_rows()).find(|row| !a.has_block(*row, *row))
}

/// `L · U` where L's diagonal is ones. The first row without a pivot, if there is one; of blocks the row of blocks.
pub fn lower_upper<C: Scalar, I: Index>(
    a: &Blocked<'_, I>,
    values: &mut [C],
    boost: Option<Boost<C>>,
) -> Option<usize> {
    let Rows { entries, diagonal } = Rows::new(a);
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
            _ => zero = zero.or(Some(row / a.blocks.rows)),
        }
    }
    zero
}

/// `L · Lᴴ` in the lower triangle; the upper one is neither read nor written. The first row whose pivot is not positive, if there is one;
/// of blocks the row of blocks.
pub fn cholesky<C: Scalar, I: Index>(a: &Blocked<'_, I>, values: &mut [C]) -> Option<usize> {
    let Rows { entries, diagonal } = Rows::new(a);
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
        let is_positive = match pivot {
            Some((at, square)) => {
                values[at] = C::narrow(Complex::new(square.sqrt(), 0.0));
                square > 0.0
            }
            None => false,
        };
        zero = zero.or((!is_positive).then_some(row / a.blocks.rows));
    }
    zero
}
