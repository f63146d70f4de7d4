//! LU of matrices that have the pattern of one that was factored, with its orders of rows and columns: no pivot is looked for.
//!
//! The rule: a pattern has room for all that elimination fills, whatever a caller left out of it, so that factors are whole ones.

use std::collections::BTreeSet;

use crate::sparse::Failure;

/// Where a square matrix has entries: line by line, rows or columns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lines {
    starts: Vec<usize>,
    indices: Vec<usize>,
}

impl Lines {
    /// Of arrays that count from 0, for `starts.len() - 1` lines.
    ///
    /// # Errors
    /// The arrays are no matrix.
    pub fn new(starts: &[i32], indices: &[i32]) -> Result<Self, Failure> {
        let numbers =
            |of: &[i32]| of.iter().map(|number| usize::try_from(*number).ok()).collect::<Option<Vec<_>>>();
        let (starts, indices) = numbers(starts)
            .zip(numbers(indices))
            .filter(|(starts, _)| !starts.is_empty())
            .ok_or(Failure::NotAMatrix)?;
        let n = starts.len() - 1;
        let holds = starts[0] == 0 && starts[n] == indices.len() && starts.is_sorted();
        if holds && indices.iter().all(|index| *index < n) {
            Ok(Self { starts, indices })
        } else {
            Err(Failure::NotAMatrix)
        }
    }

    fn count(&self) -> usize {
        self.starts.len() - 1
    }

    fn entries(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        (0..self.count()).flat_map(|line| {
            self.indices[self.starts[line]..self.starts[line + 1]].iter().map(move |at| (line, *at))
        })
    }

    /// Rows where these are columns, and the other way round, with which entry of these each is.
    #[must_use]
    pub fn transposed(&self) -> (Self, Vec<usize>) {
        let mut starts = vec![0; self.count() + 1];
        self.indices.iter().for_each(|index| starts[index + 1] += 1);
        (0..self.count()).for_each(|line| starts[line + 1] += starts[line]);
        let mut next = starts.clone();
        let (mut indices, mut from) = (vec![0; self.indices.len()], vec![0; self.indices.len()]);
        for (number, (line, index)) in self.entries().enumerate() {
            let at = &mut next[index];
            (indices[*at], from[*at]) = (line, number);
            *at += 1;
        }
        (Self { starts, indices }, from)
    }
}

/// An order of rows or columns: for each place which of them is there.
///
/// # Errors
/// One is there twice, or is none.
pub fn order(of: &[i32]) -> Result<Vec<usize>, Failure> {
    let mut is_used = vec![false; of.len()];
    of.iter()
        .map(|number| {
            let number = usize::try_from(*number).ok()?;
            let is_used = is_used.get_mut(number)?;
            (!core::mem::replace(is_used, true)).then_some(number)
        })
        .collect::<Option<_>>()
        .ok_or(Failure::NotAMatrix)
}

/// Where `M = (L - I) + U` of `A(rows, columns) = L·U` has entries, by rows whose columns ascend.
#[derive(Clone, Debug)]
pub struct Pattern {
    rows: Vec<usize>,
    columns: Vec<usize>,
    lines: Lines,
    /// The place of each row's entry on the diagonal.
    diagonal: Vec<usize>,
    /// The place of each entry of A.
    places: Vec<usize>,
}

/// What happens on the way.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// The first row whose pivot is none.
    pub zero_pivot: Option<usize>,
    pub is_boosted: bool,
}

/// A matrix line by line, as a caller takes it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    pub starts: Vec<i32>,
    pub indices: Vec<i32>,
    pub values: Vec<f64>,
}

impl Pattern {
    /// Of A by rows, and of the factors that it had, by rows, with or without their diagonals.
    ///
    /// # Errors
    /// Sizes differ, or a factor is no triangle.
    pub fn new(
        a: &Lines,
        l: &Lines,
        u: &Lines,
        rows: Vec<usize>,
        columns: Vec<usize>,
    ) -> Result<Self, Failure> {
        let n = a.count();
        let fit = [l.count(), u.count(), rows.len(), columns.len()].iter().all(|count| *count == n);
        let (lower, upper) = (l.entries().all(|(i, j)| j <= i), u.entries().all(|(i, j)| i <= j));
        if !(fit && lower && upper) {
            return Err(Failure::NotAMatrix);
        }
        let inverse = |order: &[usize]| {
            let mut inverse = vec![0; n];
            order.iter().enumerate().for_each(|(place, number)| inverse[*number] = place);
            inverse
        };
        let (row_place, column_place) = (inverse(&rows), inverse(&columns));
        let mut filled: Vec<BTreeSet<usize>> = (0..n).map(|i| BTreeSet::from([i])).collect();
        l.entries().chain(u.entries()).for_each(|(i, j)| _ = filled[i].insert(j));
        a.entries().for_each(|(i, j)| _ = filled[row_place[i]].insert(column_place[j]));
        for i in 0..n {
            let (above, rest) = filled.split_at_mut(i);
            let row = &mut rest[0];
            let mut next = 0;
            while let Some(&k) = row.range(next..i).next() {
                row.extend(above[k].range(k + 1..));
                next = k + 1;
            }
        }
        let mut lines = Lines { starts: vec![0], indices: Vec::new() };
        for row in &filled {
            lines.indices.extend(row);
            lines.starts.push(lines.indices.len());
        }
        let place = |i: usize, j: usize| {
            let (from, to) = (lines.starts[i], lines.starts[i + 1]);
            // Each is there: it was put there above.
            from + lines.indices[from..to].binary_search(&j).unwrap_or(0)
        };
        let diagonal = (0..n).map(|i| place(i, i)).collect();
        let places = a.entries().map(|(i, j)| place(row_place[i], column_place[j])).collect();
        Ok(Self { rows, columns, lines, diagonal, places })
    }

    fn row(&self, i: usize) -> (core::ops::Range<usize>, core::ops::Range<usize>) {
        let middle = self.diagonal[i];
        (self.lines.starts[i]..middle, middle + 1..self.lines.starts[i + 1])
    }

    /// M's values before anything is eliminated, of A's by rows.
    #[must_use]
    pub fn assembled(&self, values: impl Iterator<Item = f64>) -> Vec<f64> {
        let mut made = vec![0.0; self.lines.indices.len()];
        // Entries that are there twice are added.
        self.places.iter().zip(values).for_each(|(place, value)| made[*place] += value);
        made
    }

    /// Eliminates. A pivot whose size is not above `zero` becomes `boost` where that is above 0; else it is no pivot, as 0 never is, and
    /// nothing is divided by a 0.
    pub fn factor(&self, m: &mut [f64], zero: f64, boost: f64) -> Outcome {
        let mut outcome = Outcome::default();
        let mut work = vec![0.0; self.rows.len()];
        for i in 0..self.rows.len() {
            let whole = self.lines.starts[i]..self.lines.starts[i + 1];
            for at in whole.clone() {
                work[self.lines.indices[at]] = m[at];
            }
            for at in self.row(i).0 {
                let k = self.lines.indices[at];
                let pivot = m[self.diagonal[k]];
                if pivot == 0.0 {
                    continue;
                }
                let factor = work[k] / pivot;
                work[k] = factor;
                for above in self.row(k).1 {
                    work[self.lines.indices[above]] -= factor * m[above];
                }
            }
            let is_small = work[i].abs() <= zero;
            if is_small && boost > 0.0 {
                work[i] = boost;
                outcome.is_boosted = true;
            } else if is_small || work[i] == 0.0 {
                outcome.zero_pivot = outcome.zero_pivot.or(Some(i));
            }
            for at in whole {
                m[at] = work[self.lines.indices[at]];
            }
        }
        outcome
    }

    /// Solves `A x = b` in the place of b by M's factors, with orders of the caller's own.
    pub fn solve(&self, m: &[f64], (rows, columns): (&[usize], &[usize]), x: &mut [f64]) {
        let mut y: Vec<f64> = rows.iter().map(|row| x[*row]).collect();
        let sum = |y: &[f64], range: core::ops::Range<usize>| {
            range.map(|at| m[at] * y[self.lines.indices[at]]).sum::<f64>()
        };
        for i in 0..y.len() {
            y[i] -= sum(&y, self.row(i).0);
        }
        for i in (0..y.len()).rev() {
            y[i] = (y[i] - sum(&y, self.row(i).1)) / m[self.diagonal[i]];
        }
        columns.iter().zip(&y).for_each(|(column, value)| x[*column] = *value);
    }

    /// The orders of rows and columns.
    #[must_use]
    pub fn orders(&self) -> (&[usize], &[usize]) {
        (&self.rows, &self.columns)
    }

    /// M whole, line by line.
    #[must_use]
    pub fn bundled(&self, m: &[f64], by_columns: bool) -> Matrix {
        self.taken(by_columns, |at, _, _| Some(m[at]))
    }

    /// L and U. `unit_upper`: it is U whose diagonal is of ones; `stored`: ones are there.
    #[must_use]
    pub fn split(&self, m: &[f64], by_columns: bool, unit_upper: bool, stored: bool) -> (Matrix, Matrix) {
        let pivot = |i: usize| m[self.diagonal[i]];
        let one = stored.then_some(1.0);
        let lower = self.taken(by_columns, |at, i, j| match (i.cmp(&j), unit_upper) {
            (core::cmp::Ordering::Less, _) => None,
            (core::cmp::Ordering::Equal, false) => one,
            (core::cmp::Ordering::Equal, true) => Some(m[at]),
            (core::cmp::Ordering::Greater, false) => Some(m[at]),
            (core::cmp::Ordering::Greater, true) => Some(m[at] * pivot(j)),
        });
        let upper = self.taken(by_columns, |at, i, j| match (i.cmp(&j), unit_upper) {
            (core::cmp::Ordering::Greater, _) => None,
            (core::cmp::Ordering::Equal, true) => one,
            (_, false) => Some(m[at]),
            (core::cmp::Ordering::Less, true) => Some(m[at] / pivot(i)),
        });
        (lower, upper)
    }

    /// The entries, by place, row and column, of which there is something to be taken.
    fn taken(&self, by_columns: bool, of: impl Fn(usize, usize, usize) -> Option<f64>) -> Matrix {
        let mut made = Matrix { starts: vec![0], ..Matrix::default() };
        let (turned, from) =
            if by_columns { self.lines.transposed() } else { (self.lines.clone(), Vec::new()) };
        for line in 0..turned.count() {
            for number in turned.starts[line]..turned.starts[line + 1] {
                let other = turned.indices[number];
                let taken = match from.get(number) {
                    Some(at) => of(*at, other, line),
                    None => of(number, line, other),
                };
                if let Some(value) = taken {
                    made.indices.push(other as i32);
                    made.values.push(value);
                }
            }
            made.starts.push(made.indices.len() as i32);
        }
        made
    }
}
