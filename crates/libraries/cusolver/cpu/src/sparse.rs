//! Systems of sparse matrices: `faer`'s LU, QR and Cholesky, over orderings that keep factors sparse, or none.
//!
//! The rule: a matrix that is singular for the caller's bound is told of and solved all the same, as cuSOLVER does it; there is no solution
//! only where a factorization ends early.

use std::collections::TryReserveError;

use cublas_cpu::Scalar;
use faer::sparse::{FaerError, SparseColMatRef, SymbolicSparseColMatRef};

use crate::Field;
use crate::factors::{Factored, first_small};

/// How a system is solved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Rows are exchanged so that pivots are a column's largest.
    Lu,
    Qr,
    /// Of a Hermitian matrix, whose upper triangle is not read.
    Cholesky,
}

/// Why there is nothing that could be told of a system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Rows begin and end where they cannot, or an entry is in no column.
    NotAMatrix,
    NoMemory,
    /// Numbers that are none, or a matrix that stays singular wherever it is moved.
    NoFactors,
}

/// What is found of a system.
pub struct Solved<T> {
    /// None where the factorization had to end early.
    pub x: Option<Vec<T>>,
    /// The first column whose pivot is not above the bound.
    pub singular: Option<usize>,
}

/// A matrix by columns, whose rows ascend and are in each column once.
#[derive(Clone, Debug, PartialEq)]
pub struct Columns<T> {
    /// As many as columns, where it is square.
    height: usize,
    n: usize,
    starts: Vec<usize>,
    rows: Vec<usize>,
    values: Vec<T>,
}

impl<T: Scalar> Columns<T> {
    /// Of a square matrix by rows, whose numbers count from `base`. Entries that are there twice are added.
    ///
    /// # Errors
    /// The arrays are no matrix.
    pub fn of_rows(base: i32, starts: &[i32], columns: &[i32], values: &[T]) -> Result<Self, Failure> {
        Self::of_rows_of(starts.len().saturating_sub(1), base, starts, columns, values)
    }

    /// As [`of_rows`](Self::of_rows), of `n` columns.
    ///
    /// # Errors
    /// The arrays are no matrix.
    pub fn of_rows_of(
        n: usize,
        base: i32,
        starts: &[i32],
        columns: &[i32],
        values: &[T],
    ) -> Result<Self, Failure> {
        let height = starts.len().saturating_sub(1);
        let number = |number: i32| usize::try_from(i64::from(number) - i64::from(base)).ok();
        let starts: Option<Vec<usize>> = starts.iter().map(|start| number(*start)).collect();
        let starts = starts.ok_or(Failure::NotAMatrix)?;
        let ascends = starts.windows(2).all(|pair| pair[0] <= pair[1]);
        let ends = starts.last().is_none_or(|end| *end <= columns.len().min(values.len()));
        if !ascends || !ends {
            return Err(Failure::NotAMatrix);
        }
        // Row after row, so that each column's rows ascend.
        let mut counts = vec![0; n + 1];
        let mut entries = Vec::with_capacity(columns.len());
        for row in 0..height {
            for at in starts[row]..starts[row + 1] {
                let column = number(columns[at]).filter(|column| *column < n).ok_or(Failure::NotAMatrix)?;
                counts[column + 1] += 1;
                entries.push((row, column, values[at]));
            }
        }
        Ok(Self::sorted((height, n), counts, &entries))
    }

    /// `counts[column + 1]` of the entries are in a column, and rows ascend.
    fn sorted((height, n): (usize, usize), mut counts: Vec<usize>, entries: &[(usize, usize, T)]) -> Self {
        for column in 0..n {
            counts[column + 1] += counts[column];
        }
        let (mut next, zero) = (counts.clone(), <T as num_traits::Zero>::zero());
        let mut placed = vec![(0, zero); entries.len()];
        for &(row, column, value) in entries {
            placed[next[column]] = (row, value);
            next[column] += 1;
        }
        let mut made = Self { height, n, starts: vec![0], rows: Vec::new(), values: Vec::new() };
        for column in 0..n {
            let begin = made.rows.len();
            for &(row, value) in &placed[counts[column]..counts[column + 1]] {
                match made.values.last_mut() {
                    Some(last) if made.rows.len() > begin && made.rows.last() == Some(&row) => *last += value,
                    _ => {
                        made.rows.push(row);
                        made.values.push(value);
                    }
                }
            }
            made.starts.push(made.rows.len());
        }
        made
    }

    /// Rows and columns.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        (self.height, self.n)
    }

    /// Where columns begin, the rows of entries, and their values.
    #[must_use]
    pub fn parts(&self) -> (&[usize], &[usize], &[T]) {
        (&self.starts, &self.rows, &self.values)
    }

    /// Row, column and value of each entry, column by column.
    pub fn entries(&self) -> impl Iterator<Item = (usize, usize, T)> + '_ {
        (0..self.n).flat_map(move |column| {
            (self.starts[column]..self.starts[column + 1])
                .map(move |at| (self.rows[at], column, self.values[at]))
        })
    }

    /// Of entries whose rows ascend in each column.
    pub(crate) fn with(
        (height, n): (usize, usize),
        entries: impl Iterator<Item = (usize, usize, T)>,
    ) -> Self {
        let entries: Vec<_> = entries.collect();
        let mut counts = vec![0; n + 1];
        entries.iter().for_each(|(_, column, _)| counts[column + 1] += 1);
        Self::sorted((height, n), counts, &entries)
    }

    #[must_use]
    pub fn transposed(&self) -> Self {
        Self::with((self.n, self.height), self.entries().map(|(row, column, value)| (column, row, value)))
    }

    /// Entries that are 0 count as none.
    pub(crate) fn is_hermitian(&self) -> bool {
        let zero = <T as num_traits::Zero>::zero();
        let is_there = |(_, _, value): &(usize, usize, T)| *value != zero;
        let transposed = self.transposed().map(|value| value.conj());
        self.entries().filter(is_there).eq(transposed.entries().filter(is_there))
    }

    /// The upper triangle of the Hermitian matrix that has this one's lower triangle.
    pub(crate) fn upper(&self) -> Self {
        let lower = self.entries().filter(|(row, column, _)| row >= column);
        Self::with((self.n, self.n), lower.map(|(row, column, value)| (column, row, value.conj())))
    }

    /// `A - shift·I`
    #[must_use]
    pub fn shifted(&self, shift: T) -> Self {
        let mut entries: Vec<_> = self.entries().collect();
        // Entries that are there twice are added.
        entries.extend((0..self.height.min(self.n)).map(|i| (i, i, -shift)));
        entries.sort_by_key(|(row, _, _)| *row);
        Self::with((self.height, self.n), entries.into_iter())
    }

    /// `A x`
    #[must_use]
    pub fn times(&self, x: &[T]) -> Vec<T> {
        let mut product = vec![<T as num_traits::Zero>::zero(); self.height];
        for (row, column, value) in self.entries() {
            product[row] += value * x[column];
        }
        product
    }

    #[must_use]
    pub fn map<U>(&self, of: impl Fn(T) -> U) -> Columns<U> {
        let (starts, rows) = (self.starts.clone(), self.rows.clone());
        let values = self.values.iter().map(|value| of(*value)).collect();
        Columns { height: self.height, n: self.n, starts, rows, values }
    }

    /// The chosen columns, in this order.
    #[must_use]
    pub fn chosen(&self, columns: &[usize]) -> Self {
        let entries = columns.iter().enumerate().flat_map(|(to, from)| {
            (self.starts[*from]..self.starts[from + 1]).map(move |at| (self.rows[at], to, self.values[at]))
        });
        Self::with((self.height, columns.len()), entries)
    }

    /// With rows below that have no entries, so that it is not wide.
    #[must_use]
    pub fn heightened(mut self) -> Self {
        self.height = self.height.max(self.n);
        self
    }

    pub(crate) fn pattern(&self) -> SymbolicSparseColMatRef<'_, usize> {
        SymbolicSparseColMatRef::new_checked(self.height, self.n, &self.starts, None, &self.rows)
    }

    pub(crate) fn faer(&self) -> SparseColMatRef<'_, usize, T> {
        SparseColMatRef::new(self.pattern(), &self.values)
    }
}

/// Solves `A x = b`. Columns may be taken in another order where `reorders`; which one is first among those whose pivots are not above
/// `tol` then depends on it, as it does in cuSOLVER.
///
/// # Errors
/// There is not enough memory.
pub fn solve<T: Field>(
    method: Method,
    a: &Columns<T>,
    b: &[T],
    tol: f64,
    reorders: bool,
) -> Result<Solved<T>, Failure> {
    if a.n == 0 {
        return Ok(Solved { x: Some(Vec::new()), singular: None });
    }
    Ok(match T::factored(method, a, reorders)? {
        Factored::Whole(factors) => {
            let singular = first_small(&factors.pivots(), tol);
            Solved { x: Some(factors.solve(b)?), singular }
        }
        Factored::Ended(column) => Solved { x: None, singular: Some(column) },
    })
}

impl From<TryReserveError> for Failure {
    fn from(_: TryReserveError) -> Self {
        Failure::NoMemory
    }
}

impl From<FaerError> for Failure {
    fn from(_: FaerError) -> Self {
        Failure::NoMemory
    }
}
