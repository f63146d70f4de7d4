//! Dense matrices in memory.

use std::borrow::Cow;

use crate::parts::pieces;
use crate::{Element, Scalar};

/// How a matrix lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub rows: usize,
    pub cols: usize,
    /// From a row to the next, or from a column to the next.
    pub ld: usize,
    pub row_major: bool,
}

impl Layout {
    pub fn transposed(self) -> Layout {
        Layout { rows: self.cols, cols: self.rows, ld: self.ld, row_major: !self.row_major }
    }

    /// Values from the first to the last.
    pub fn len(&self) -> usize {
        let (lines, length) = if self.row_major { (self.rows, self.cols) } else { (self.cols, self.rows) };
        if lines == 0 || length == 0 { 0 } else { (lines - 1) * self.ld + length }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    pub fn at(&self, row: usize, column: usize) -> usize {
        if self.row_major { row * self.ld + column } else { column * self.ld + row }
    }
}

#[derive(Clone, Copy)]
pub struct Dense<'a, E> {
    pub layout: Layout,
    pub values: &'a [E],
}

impl<E: Element> Dense<'_, E> {
    pub fn transposed(self) -> Self {
        Dense { layout: self.layout.transposed(), ..self }
    }

    pub fn get(&self, row: usize, column: usize) -> E {
        self.values[self.layout.at(row, column)]
    }

    /// By rows, without gaps.
    pub fn packed<C: Scalar>(&self, conjugated: bool) -> Vec<C> {
        let Layout { rows, cols, .. } = self.layout;
        let mut packed = vec![C::ZERO; rows * cols];
        if packed.is_empty() {
            return packed;
        }
        pieces(&mut packed, STRIP * cols, 4096 / (STRIP * cols) + 1, &|number, strip| {
            for column in 0..cols {
                for (row, to) in strip[column..].iter_mut().step_by(cols).enumerate() {
                    let value = self.get(number * STRIP + row, column);
                    *to = C::narrow(value.wide()).conj_if(conjugated);
                }
            }
        });
        packed
    }
}

/// Rows of which what lies by columns becomes what lies by rows at a time: they stay in the cache next to the core.
const STRIP: usize = 64;

/// Columns that are written together of what lies by columns: a line of the cache has as many values.
const LINES: usize = 16;

impl<'a, C: Scalar> Dense<'a, C> {
    /// As [`Self::packed`], without a copy where it lies so.
    pub fn by_rows(self, conjugated: bool) -> Cow<'a, [C]> {
        let Layout { cols, ld, row_major, .. } = self.layout;
        if row_major && ld == cols && !conjugated {
            Cow::Borrowed(&self.values[..self.layout.len()])
        } else {
            Cow::Owned(self.packed(conjugated))
        }
    }
}

pub struct DenseMut<'a, E> {
    pub layout: Layout,
    pub values: &'a mut [E],
}

impl<E: Element> DenseMut<'_, E> {
    /// `alpha · computed + beta · what is there`, of numbers by rows. What is there is not looked at where `beta` is 0.
    pub fn blend<C: Scalar>(&mut self, computed: &[C], alpha: C, beta: C) {
        self.each(computed, |value, computed| {
            let product = alpha * computed;
            let sum = if beta == C::ZERO { product } else { product + beta * C::narrow(value.wide()) };
            E::narrow(sum.wide())
        });
    }

    /// Numbers by rows.
    pub fn put<C: Scalar>(&mut self, computed: &[C]) {
        self.each(computed, |_, computed| E::narrow(computed.wide()));
    }

    fn each<C: Scalar>(&mut self, computed: &[C], made: impl Fn(E, C) -> E + Sync) {
        let Layout { rows, cols, ld, row_major } = self.layout;
        if rows == 0 || cols == 0 {
            return;
        }
        let len = self.layout.len();
        let values = &mut self.values[..len];
        if row_major {
            pieces(values, ld, 4096 / cols + 1, &|row, line| {
                let computed = &computed[row * cols..][..cols];
                line.iter_mut().zip(computed).for_each(|(value, computed)| *value = made(*value, *computed));
            });
            return;
        }
        pieces(values, ld * LINES, 1, &|number, columns| {
            for first in (0..rows).step_by(STRIP) {
                for (column, values) in (number * LINES..).zip(columns.chunks_mut(ld)) {
                    let values = values[first..rows.min(first + STRIP)].iter_mut();
                    let computed = computed[first * cols + column..].iter().step_by(cols);
                    values.zip(computed).for_each(|(value, computed)| *value = made(*value, *computed));
                }
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_by_columns_becomes_what_lies_by_rows_and_back() {
        for (rows, cols, gap) in [(1, 1, 0), (130, 3, 2), (5, 40, 0), (64, 17, 1)] {
            let layout = Layout { rows, cols, ld: rows + gap, row_major: false };
            let before: Vec<f32> = (0..layout.len()).map(|at| at as f32).collect();
            let packed: Vec<f32> = Dense { layout, values: &before }.packed(false);
            for (at, value) in packed.iter().enumerate() {
                assert_eq!(*value, before[layout.at(at / cols, at % cols)], "{rows} by {cols}");
            }
            let mut after = before.clone();
            DenseMut { layout, values: &mut after }.blend(&packed, 2.0, 1.0);
            for at in 0..before.len() {
                // Rows in the gap stay as they are.
                let factor = if at % layout.ld < rows { 3.0 } else { 1.0 };
                assert_eq!(after[at], factor * before[at], "{rows} by {cols}");
            }
            DenseMut { layout, values: &mut after }.put(&packed);
            let inside = |at: &usize| at % layout.ld < rows;
            assert!((0..before.len()).filter(inside).all(|at| after[at] == before[at]));
        }
    }
}
