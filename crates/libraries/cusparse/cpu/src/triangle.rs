//! A triangle of a sparse matrix, and systems with it.

#[cfg(target_arch = "x86_64")]
use crate::avx512;
#[cfg(target_arch = "x86_64")]
use crate::isa::Avx512;
use crate::isa::{Loop, vectors};
use crate::parts::on_cores;
use crate::product::add_scaled;
use crate::{Index, Matrix, Scalar, SharedRows};

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

    /// `to = alpha · op(A)⁻¹ · from`, of matrices of right sides by rows, which may be the same one.
    pub fn solve_all(&self, alpha: C, from: SharedRows<C>, to: SharedRows<C>) {
        on_cores(to.columns_in_lines(TOGETHER), |columns| {
            vectors(Several { triangle: self, alpha, from, to, columns });
        });
    }
}

/// What a row's rest becomes a solution by.
pub(crate) enum Diagonal<C> {
    Ones,
    Times(C),
    Over(C),
}

impl<C: Scalar> Triangle<C> {
    /// One division for all right sides, but where it leaves what numbers there are.
    #[inline(always)]
    fn diagonal_of(&self, row: usize) -> Diagonal<C> {
        if self.shape.unit {
            return Diagonal::Ones;
        }
        let (value, inverse) = (self.diagonal[row], C::ONE / self.diagonal[row]);
        let wide = inverse.wide();
        let usual = f64::from(f32::MIN_POSITIVE)..f64::from(f32::MAX);
        let is_usual = usual.contains(&wide.re.abs().max(wide.im.abs()));
        if is_usual { Diagonal::Times(inverse) } else { Diagonal::Over(value) }
    }
}

/// Right sides that are solved together.
const TOGETHER: usize = 16;

type Columns = core::ops::Range<usize>;

struct Several<'a, C> {
    triangle: &'a Triangle<C>,
    alpha: C,
    from: SharedRows<C>,
    to: SharedRows<C>,
    columns: Columns,
}

impl<C: Scalar> Several<'_, C> {
    /// `W` right sides, whose values of a row stay in registers.
    #[inline(always)]
    fn columns<const W: usize>(&self, first: usize) {
        let Several { triangle, alpha, from, to, .. } = self;
        for row in triangle.order() {
            let mut rest: [[C; W]; 1] = [from.read(row, first)];
            rest[0].iter_mut().for_each(|rest| *rest = *alpha * *rest);
            for (column, value) in triangle.entries_of(row) {
                add_scaled(&mut rest, -*value, &[to.read(*column as usize, first)]);
            }
            match triangle.diagonal_of(row) {
                Diagonal::Ones => {}
                Diagonal::Times(inverse) => rest[0].iter_mut().for_each(|rest| *rest *= inverse),
                Diagonal::Over(value) => rest[0].iter_mut().for_each(|rest| *rest = *rest / value),
            }
            to.write(row, first, rest[0]);
        }
    }
}

impl<C: Scalar> Loop for Several<'_, C> {
    type Out = ();

    #[inline(always)]
    fn run(self) {
        let mut first = self.columns.start;
        while first < self.columns.end {
            first += match self.columns.end - first {
                16.. => {
                    self.columns::<16>(first);
                    16
                }
                8.. => {
                    self.columns::<8>(first);
                    8
                }
                4.. => {
                    self.columns::<4>(first);
                    4
                }
                _ => {
                    self.columns::<1>(first);
                    1
                }
            };
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn run_avx512(self, has: Avx512) {
        if !avx512::fills_vectors::<C>() {
            return self.run();
        }
        let Several { triangle, alpha, from, to, columns: sides } = self;
        for row in triangle.order() {
            let range = triangle.offsets[row]..triangle.offsets[row + 1];
            let (columns, values) = (&triangle.columns[range.clone()], &triangle.values[range]);
            let diagonal = triangle.diagonal_of(row);
            avx512::RowOfSystem { row, columns, values, diagonal, alpha, from, to }.solve(has, sides.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Offsets;

    #[test]
    fn systems_of_several_right_sides_are_those_of_each() {
        // Entry (i, j) below the diagonal, where i + j is a multiple of 3.
        let n = 29;
        let (mut offsets, mut indices, mut values) = (vec![0_i32], Vec::new(), Vec::new());
        for row in 0..n {
            for column in (0..=row).filter(|column| *column == row || (row + column) % 3 == 0) {
                indices.push(column as i32);
                values.push(if column == row { 4.0 } else { 0.25 * (row - column) as f64 });
            }
            offsets.push(indices.len() as i32);
        }
        let a = Matrix::Csr {
            rows: n,
            cols: n,
            base: 0,
            offsets: Offsets::Narrow(&offsets, 0),
            indices: indices.into(),
            values: values.into(),
        };
        let shape = Shape { upper: false, unit: false, transposed: false, conjugated: false };
        let triangle = Triangle::new(&a, shape);
        for count in [1, 3, 16, 39] {
            let ld = count + 2;
            let sides: Vec<f64> = (0..n * ld).map(|at| (at * 7 % 11) as f64 - 5.0).collect();
            let mut solved = vec![-1.0; n * ld];
            #[expect(unsafe_code, reason = "two arrays of n rows, which nobody else uses")]
            // SAFETY: as said.
            let (from, to) = unsafe {
                let from = SharedRows::new(sides.as_ptr().cast_mut(), (n, count), ld);
                (from, SharedRows::new(solved.as_mut_ptr(), (n, count), ld))
            };
            triangle.solve_all(2.0, from, to);
            for column in 0..count {
                let mut x: Vec<f64> = (0..n).map(|row| 2.0 * sides[row * ld + column]).collect();
                triangle.solve(&mut x);
                for row in 0..n {
                    let (one, other) = (x[row], solved[row * ld + column]);
                    assert!((one - other).abs() <= 1e-12 * one.abs().max(1.0), "{one} {other}");
                }
            }
            assert!((0..n).all(|row| solved[row * ld + count..][..2] == [-1.0; 2]));
        }
    }
}
