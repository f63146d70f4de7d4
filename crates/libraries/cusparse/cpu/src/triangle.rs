//! A triangle of a sparse matrix, and systems with it.

use rayon::prelude::*;

use crate::isa::{Loop, vectors};
use crate::product::add_scaled;
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
    columns: Vec<u32>,
    values: Vec<C>,
    diagonal: Vec<C>,
    /// Of each entry of the matrix, in its order.
    places: Vec<Place>,
}

impl<C: Scalar> Triangle<C> {
    /// Of a square matrix.
    pub fn new<I: Index>(a: &Matrix<'_, C, I>, shape: Shape) -> Triangle<C> {
        let n = a.rows();
        assert!(u32::try_from(n).is_ok(), "more rows than are solved here");
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
                    (triangle.columns[at], triangle.values[at]) = (column as u32, value);
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

    pub fn shape(&self) -> Shape {
        self.shape
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

    /// The values of a matrix with the same pattern.
    pub fn set_matrix<I: Index>(&mut self, a: &Matrix<'_, C, I>) {
        let mut values = Vec::with_capacity(self.places.len());
        (0..a.rows()).for_each(|row| a.row(row, |_, value| values.push(value)));
        self.set_values(&values);
    }

    /// The first row whose diagonal is not there.
    pub fn missing(&self) -> Option<usize> {
        let mut is_there = vec![self.shape.unit; self.size()];
        for place in &self.places {
            if let Place::Diagonal(row) = place {
                is_there[*row] = true;
            }
        }
        is_there.iter().position(|is_there| !is_there)
    }

    /// The first row whose diagonal is zero.
    pub fn zero(&self) -> Option<usize> {
        self.diagonal.iter().position(|value| *value == C::ZERO)
    }

    pub fn set_diagonal(&mut self, values: &[C]) {
        if !self.shape.unit {
            let conjugated = self.shape.conjugated;
            self.diagonal.iter_mut().zip(values).for_each(|(to, value)| *to = value.conj_if(conjugated));
        }
    }

    /// Puts the solution in the place of the right side.
    pub fn solve(&self, x: &mut [C]) {
        for row in self.order() {
            let mut rest = x[row];
            for (column, value) in self.entries_of(row) {
                rest = rest - *value * x[*column as usize];
            }
            x[row] = if self.shape.unit { rest } else { rest / self.diagonal[row] };
        }
    }

    /// The rows, each behind those that it needs.
    #[inline(always)]
    fn order(&self) -> impl Iterator<Item = usize> {
        let n = self.size();
        // The transposed of an upper triangle is a lower one.
        let backwards = self.shape.upper != self.shape.transposed;
        (0..n).map(move |step| if backwards { n - 1 - step } else { step })
    }

    #[inline(always)]
    fn entries_of(&self, row: usize) -> impl Iterator<Item = (&u32, &C)> {
        let range = self.offsets[row]..self.offsets[row + 1];
        self.columns[range.clone()].iter().zip(&self.values[range])
    }

    /// The same for several right sides, of which `sides` takes some by rows and `done` gives back as many: the number of the first, and
    /// how many there are.
    pub fn solve_all(
        &self,
        count: usize,
        sides: impl Fn(usize, usize, &mut [C]) + Sync,
        done: impl Fn(usize, usize, &[C]) + Sync,
    ) {
        if self.size() == 0 {
            return;
        }
        let firsts: Vec<usize> = (0..count).step_by(TOGETHER).collect();
        firsts.into_par_iter().with_max_len(1).for_each(|first| {
            let width = TOGETHER.min(count - first);
            let mut x = vec![C::ZERO; self.size() * width];
            sides(first, width, &mut x);
            vectors(Several { triangle: self, width, x: &mut x });
            done(first, width, &x);
        });
    }
}

/// Right sides that are solved together.
const TOGETHER: usize = 16;

struct Several<'a, C> {
    triangle: &'a Triangle<C>,
    width: usize,
    x: &'a mut [C],
}

impl<C: Scalar> Loop for Several<'_, C> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let Several { triangle, width, x } = self;
        let mut rest = [C::ZERO; TOGETHER];
        let rest = &mut rest[..width];
        for row in triangle.order() {
            rest.copy_from_slice(&x[row * width..][..width]);
            for (column, value) in triangle.entries_of(row) {
                add_scaled(rest, -*value, &x[*column as usize * width..][..width]);
            }
            if !triangle.shape.unit {
                let (diagonal, inverse) = (triangle.diagonal[row], C::ONE / triangle.diagonal[row]);
                // One division for all right sides, but where it leaves what numbers there are.
                let wide = inverse.wide();
                let usual = f64::from(f32::MIN_POSITIVE)..f64::from(f32::MAX);
                if usual.contains(&wide.re.abs().max(wide.im.abs())) {
                    rest.iter_mut().for_each(|rest| *rest *= inverse);
                } else {
                    rest.iter_mut().for_each(|rest| *rest = *rest / diagonal);
                }
            }
            x[row * width..][..width].copy_from_slice(rest);
        }
    }
}
