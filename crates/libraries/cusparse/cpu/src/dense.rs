//! Dense matrices in memory.

use std::borrow::Cow;

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
        let mut packed = Vec::with_capacity(rows * cols);
        for row in 0..rows {
            packed
                .extend((0..cols).map(|column| C::narrow(self.get(row, column).wide()).conj_if(conjugated)));
        }
        packed
    }
}

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
        use rayon::prelude::*;
        let Layout { rows, cols, ld, row_major } = self.layout;
        let (lines, length) = if row_major { (rows, cols) } else { (cols, rows) };
        if lines == 0 || length == 0 {
            return;
        }
        let line = |(number, line): (usize, &mut [E])| {
            for (k, value) in line.iter_mut().take(length).enumerate() {
                let at = if row_major { number * cols + k } else { k * cols + number };
                let product = alpha * computed[at];
                let sum = match beta == C::ZERO {
                    true => product,
                    false => product + beta * C::narrow(value.wide()),
                };
                *value = E::narrow(sum.wide());
            }
        };
        let len = self.layout.len();
        self.values[..len].par_chunks_mut(ld).with_min_len(4096 / length + 1).enumerate().for_each(line);
    }
}
