//! A triangle of a sparse matrix, and systems with it.

use rayon::prelude::*;

use crate::{Index, Matrix, Scalar};

/// Which entries of a matrix count, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    pub upper: bool,
    /// The diagonal is ones, whatever the matrix has there.
    pub unit: bool,
    pub transposed: bool,
    pub conjugated: bool,
}

/// Where an entry of the matrix went.
#[derive(Clone, Copy)]
enum Place {
    Outside,
    Diagonal(usize),
    Entry(usize),
}

/// `op(A)` as it is solved: its rows without the diagonal, and the diagonal.
pub struct Triangle<C> {
    shape: Shape,
    offsets: Vec<usize>,
    columns: Vec<usize>,
    values: Vec<C>,
    diagonal: Vec<C>,
    /// Of each entry of the matrix, in its order.
    places: Vec<Place>,
}

impl<C: Scalar> Triangle<C> {
    /// Of a square matrix.
    pub fn new<I: Index>(a: &Matrix<'_, C, I>, shape: Shape) -> Triangle<C> {
        let n = a.rows();
        let counts = |row: usize, column: usize| if shape.upper { column > row } else { column < row };
        let target = |row: usize, column: usize| if shape.transposed { (column, row) } else { (row, column) };
        let mut offsets = vec![0; n + 1];
        for row in 0..n {
            a.row(row, |column, _| {
                if counts(row, column) {
                    offsets[target(row, column).0 + 1] += 1;
                }
            });
        }
        (0..n).for_each(|row| offsets[row + 1] += offsets[row]);
        let mut next = offsets.clone();
        let mut triangle = Triangle {
            shape,
            columns: vec![0; offsets[n]],
            values: vec![C::ZERO; offsets[n]],
            diagonal: vec![if shape.unit { C::ONE } else { C::ZERO }; n],
            places: Vec::with_capacity(a.entries()),
            offsets,
        };
        for row in 0..n {
            a.row(row, |column, value| {
                let value = value.conj_if(shape.conjugated);
                triangle.places.push(if counts(row, column) {
                    let (row, column) = target(row, column);
                    let at = next[row];
                    next[row] += 1;
                    (triangle.columns[at], triangle.values[at]) = (column, value);
                    Place::Entry(at)
                } else if row == column && !shape.unit {
                    triangle.diagonal[row] += value;
                    Place::Diagonal(row)
                } else {
                    Place::Outside
                });
            });
        }
        triangle
    }

    pub fn size(&self) -> usize {
        self.diagonal.len()
    }

    /// How many entries the matrix had.
    pub fn entries(&self) -> usize {
        self.places.len()
    }

    /// Other values for all entries of the matrix, in its order.
    pub fn set_values(&mut self, values: &[C]) {
        if !self.shape.unit {
            self.diagonal.fill(C::ZERO);
        }
        for (place, value) in self.places.iter().zip(values) {
            let value = value.conj_if(self.shape.conjugated);
            match place {
                Place::Outside => {}
                Place::Diagonal(row) => self.diagonal[*row] += value,
                Place::Entry(at) => self.values[*at] = value,
            }
        }
    }

    pub fn set_diagonal(&mut self, values: &[C]) {
        if !self.shape.unit {
            let conjugated = self.shape.conjugated;
            self.diagonal.iter_mut().zip(values).for_each(|(to, value)| *to = value.conj_if(conjugated));
        }
    }

    /// Puts the solution in the place of the right side.
    pub fn solve(&self, x: &mut [C]) {
        let n = self.size();
        // The transposed of an upper triangle is a lower one.
        let backwards = self.shape.upper != self.shape.transposed;
        for step in 0..n {
            let row = if backwards { n - 1 - step } else { step };
            let range = self.offsets[row]..self.offsets[row + 1];
            let mut rest = x[row];
            for (column, value) in self.columns[range.clone()].iter().zip(&self.values[range]) {
                rest = rest - *value * x[*column];
            }
            x[row] = if self.shape.unit { rest } else { rest / self.diagonal[row] };
        }
    }

    /// The same for several right sides, one behind the other.
    pub fn solve_all(&self, sides: &mut [C]) {
        if self.size() > 0 {
            sides.par_chunks_mut(self.size()).for_each(|side| self.solve(side));
        }
    }
}
