//! Which entries of a matrix are kept: those that are not zero, or greater than a threshold.

use crate::{Dense, Element, Index};

/// A matrix whose entries are looked at row by row.
#[derive(Clone, Copy)]
pub enum Entries<'a, E> {
    Dense(Dense<'a, E>),
    /// Where only entries are counted there may be no column numbers.
    Rows {
        offsets: &'a [i32],
        indices: &'a [i32],
        values: &'a [E],
        base: usize,
    },
}

/// It is not zero.
pub fn is_entry<E: Element>(value: E) -> bool {
    value.wide() != num_complex::Complex::new(0.0, 0.0)
}

impl<E: Element> Entries<'_, E> {
    pub fn rows(&self) -> usize {
        match self {
            Entries::Dense(a) => a.layout.rows,
            Entries::Rows { offsets, .. } => offsets.len().saturating_sub(1),
        }
    }

    fn row(&self, row: usize, mut each: impl FnMut(usize, E)) {
        match *self {
            Entries::Dense(a) => (0..a.layout.cols).for_each(|column| each(column, a.get(row, column))),
            Entries::Rows { offsets, indices, values, base } => {
                let range = offsets[row].place(base)..offsets[row + 1].place(base);
                for (at, value) in range.clone().zip(&values[range]) {
                    each(indices.get(at).map_or(0, |index| index.place(base)), *value);
                }
            }
        }
    }

    /// How many entries of each row are kept.
    pub fn count(&self, keep: impl Fn(E) -> bool) -> Vec<usize> {
        let count_row = |row| {
            let mut count = 0;
            self.row(row, |_, value| count += usize::from(keep(value)));
            count
        };
        (0..self.rows()).map(count_row).collect()
    }

    /// Calls `each` with the row, the column and the value of every entry that is kept, by rows.
    pub fn each(&self, keep: impl Fn(E) -> bool, mut each: impl FnMut(usize, usize, E)) {
        for row in 0..self.rows() {
            self.row(row, |column, value| {
                if keep(value) {
                    each(row, column, value);
                }
            });
        }
    }

    /// The size of the entry that so many per cent of all are not greater than. Nothing where there are no entries.
    pub fn percentile(&self, percentage: f32) -> Option<f64> {
        let mut sizes = Vec::new();
        self.each(|_| true, |_, _, value| sizes.push(value.wide().norm()));
        let last = sizes.len().checked_sub(1)?;
        let at = (sizes.len() as f64 * (f64::from(percentage) / 100.0)).ceil() as usize;
        let (_, size, _) = sizes.select_nth_unstable_by(at.saturating_sub(1).min(last), f64::total_cmp);
        Some(*size)
    }
}

/// Row offsets of the counts of rows. The sum.
pub fn offsets_of<O: Index>(counts: &[usize], base: usize, offsets: &mut [O]) -> usize {
    let mut sum = 0;
    for (offset, count) in offsets.iter_mut().zip(counts.iter().chain([&0])) {
        *offset = O::number(sum, base);
        sum += count;
    }
    sum
}
