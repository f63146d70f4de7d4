//! A matrix of our own, column after column without gaps, for what a routine works on before anything is written.

use cublas_cpu::{Matrix, Op, Scalar, Uplo, gemm};

#[derive(Clone)]
pub struct Dense<S> {
    pub rows: i64,
    pub columns: i64,
    pub values: Vec<S>,
}

impl<S: Scalar> Dense<S> {
    pub fn zeros(rows: i64, columns: i64) -> Self {
        Self { rows, columns, values: vec![S::zero(); (rows * columns).max(0) as usize] }
    }

    pub fn identity(rows: i64, columns: i64) -> Self {
        let mut made = Self::zeros(rows, columns);
        (0..rows.min(columns)).for_each(|i| made.set(i, i, S::one()));
        made
    }

    /// # Safety
    /// The elements are there, and nobody writes to them.
    pub unsafe fn read(rows: i64, columns: i64, a: Matrix<S>) -> Self {
        let mut values = Vec::with_capacity((rows * columns).max(0) as usize);
        // SAFETY: the caller's word.
        (0..columns).for_each(|column| values.extend_from_slice(unsafe { a.column(column, rows) }));
        Self { rows, columns, values }
    }

    /// A matrix of which one triangle is stored, in full; its diagonal is taken to be real.
    ///
    /// # Safety
    /// As [`read`](Self::read), of the triangle.
    pub unsafe fn hermitian(uplo: Uplo, n: i64, a: Matrix<S>) -> Self {
        let mut made = Self::zeros(n, n);
        for column in 0..n {
            // SAFETY: the caller's word.
            made.set(column, column, S::from_real(unsafe { a.get(column, column) }.real()));
            let rows = if uplo == Uplo::Lower { column + 1..n } else { 0..column };
            for row in rows {
                // SAFETY: as above.
                let value = unsafe { a.get(row, column) };
                made.set(row, column, value);
                made.set(column, row, value.conj());
            }
        }
        made
    }

    pub fn get(&self, row: i64, column: i64) -> S {
        self.values[(row + column * self.rows) as usize]
    }

    pub fn set(&mut self, row: i64, column: i64, value: S) {
        self.values[(row + column * self.rows) as usize] = value;
    }

    pub fn column(&self, column: i64) -> &[S] {
        let start = (column * self.rows) as usize;
        &self.values[start..start + self.rows as usize]
    }

    pub fn column_mut(&mut self, column: i64) -> &mut [S] {
        let start = (column * self.rows) as usize;
        &mut self.values[start..start + self.rows as usize]
    }

    /// Two columns, of which the first stands before the second.
    pub fn pair_mut(&mut self, first: i64, second: i64) -> (&mut [S], &mut [S]) {
        let rows = self.rows as usize;
        let (before, from) = self.values.split_at_mut(second as usize * rows);
        (&mut before[first as usize * rows..][..rows], &mut from[..rows])
    }

    pub fn matrix(&mut self) -> Matrix<S> {
        Matrix::new(self.values.as_mut_ptr(), self.rows.max(1))
    }

    pub fn conjugate_transposed(&self) -> Self {
        let mut made = Self::zeros(self.columns, self.rows);
        for column in 0..self.columns {
            for row in 0..self.rows {
                made.set(column, row, self.get(row, column).conj());
            }
        }
        made
    }

    /// `op(self)·op(other)`
    pub fn times(&self, op: Op, other: &Self, op_other: Op) -> Self {
        let size =
            |op: Op, of: &Self| if op.transposes() { (of.columns, of.rows) } else { (of.rows, of.columns) };
        let ((m, k), (_, n)) = (size(op, self), size(op_other, other));
        let mut made = Self::zeros(m, n);
        let (a, b, c) = (self.values.as_ptr(), other.values.as_ptr(), made.values.as_mut_ptr());
        let ld = |of: i64| of.max(1);
        // SAFETY: three matrices of these sizes.
        unsafe {
            gemm(op, op_other, m, n, k, S::one(), a, ld(self.rows), b, ld(other.rows), S::zero(), c, ld(m));
        }
        made
    }

    /// Writes the first columns and rows.
    ///
    /// # Safety
    /// There is room for them.
    pub unsafe fn write(&self, rows: i64, columns: i64, to: Matrix<S>) {
        for column in 0..columns {
            // SAFETY: the caller's word.
            let into = unsafe { to.column_mut(column, rows) };
            into.copy_from_slice(&self.column(column)[..rows as usize]);
        }
    }

    /// Writes one triangle of a square matrix.
    ///
    /// # Safety
    /// There is room for it.
    pub unsafe fn write_triangle(&self, uplo: Uplo, to: Matrix<S>) {
        let n = self.rows;
        for column in 0..n {
            let rows = if uplo == Uplo::Lower { column..n } else { 0..column + 1 };
            // SAFETY: the caller's word.
            rows.for_each(|row| unsafe { to.set(row, column, self.get(row, column)) });
        }
    }
}
