//! Products of matrices whose elements are stored as one type and summed as another, with an epilogue.
//!
//! Panels are converted and given to [`gemm`](crate::gemm()). Bytes are exact: sums of 1024 products of two of them
//! are integers that an f32 holds, and those are added up as integers.

use crate::epilogue::{BiasGradient, Epilogue, Place, largest, raise};
use crate::lanes::vectorized;
use crate::matrix::Matrix;
use crate::storage::{Compute, Storage};
use crate::{Op, Real, Scalar, gemm, parallel};

/// Rows, columns and depth of the panels.
const PANEL: i64 = 1024;

/// The factor of the product.
#[derive(Clone, Copy, Debug)]
pub enum Alpha<S> {
    One(S),
    /// One for each row, times a number for all.
    Rows(*const S, S),
}

// SAFETY: an address that is only read.
unsafe impl<S: Send> Send for Alpha<S> {}
// SAFETY: as above.
unsafe impl<S: Sync> Sync for Alpha<S> {}

impl<S: Scalar> Alpha<S> {
    unsafe fn of(self, row: i64) -> S {
        match self {
            Alpha::One(alpha) => alpha,
            // SAFETY: the caller's word.
            Alpha::Rows(factors, times) => unsafe { *factors.offset(row as isize) * times },
        }
    }

    fn is_zero(self) -> bool {
        matches!(self, Alpha::One(alpha) if alpha.is_zero())
    }
}

/// `D = epilogue(alpha·op(A)·op(B) + beta·C)`; D has m rows and n columns. D may be C.
///
/// Scale factors of A, B and C belong into `alpha` and `beta`.
#[derive(Clone, Copy, Debug)]
pub struct Product<S> {
    pub op_a: Op,
    pub op_b: Op,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub alpha: Alpha<S>,
    pub a: Place,
    pub b: Place,
    pub beta: S,
    pub c: Place,
    pub d: Place,
    pub epilogue: Epilogue,
}

/// # Safety
/// Everything is there; D overlaps neither A nor B, and is C or does not overlap it. `S` takes every storage.
pub unsafe fn product<S: Compute>(p: &Product<S>) {
    let plain = [p.a, p.b, p.d].iter().all(|place| place.storage == S::OWN) && p.epilogue.is_none();
    let in_place = p.beta.is_zero() || (p.c.at == p.d.at && p.c.ld == p.d.ld && p.c.storage == S::OWN);
    // SAFETY: the caller's word.
    unsafe {
        if let (true, true, Alpha::One(alpha)) = (plain, in_place, p.alpha) {
            let (a, b, d) = (p.a.at.cast::<S>(), p.b.at.cast::<S>(), p.d.at.cast::<S>());
            return gemm(p.op_a, p.op_b, p.m, p.n, p.k, alpha, a, p.a.ld, b, p.b.ld, p.beta, d, p.d.ld);
        }
        let mut totals = Totals::new(p);
        let mut sums = Vec::new();
        for_panels(p.m, p.n, |rows, columns| {
            sum(p, rows, columns, &mut sums);
            finish(p, rows, columns, &mut sums);
            totals.add(rows, &sums);
        });
        totals.write(p);
    }
}

/// Products of bytes, exact; sums wrap as those of 32-bit integers do.
#[derive(Clone, Copy, Debug)]
pub struct IntegerProduct {
    pub op_a: Op,
    pub op_b: Op,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub alpha: i32,
    pub a: Place,
    pub b: Place,
    pub beta: i32,
    pub c: *const i32,
    pub ldc: i64,
    pub d: *mut i32,
    pub ldd: i64,
}

/// # Safety
/// As [`product`]; A and B are bytes.
pub unsafe fn integer_product(p: &IntegerProduct) {
    let (c, d) = (Matrix::read(p.c, p.ldc), Matrix::new(p.d, p.ldd));
    let mut sums = Vec::new();
    for_panels(p.m, p.n, |rows, columns| {
        let k = if p.alpha == 0 { 0 } else { p.k };
        // SAFETY: the caller's word.
        unsafe { sum_bytes((p.op_a, p.a), (p.op_b, p.b), rows, columns, k, &mut sums) };
        for (at, sum) in sums.iter().enumerate() {
            let (row, column) = (rows.0 + at as i64 % rows.1, columns.0 + at as i64 / rows.1);
            let value = p.alpha.wrapping_mul(*sum as i32);
            // SAFETY: the caller's word.
            unsafe {
                let old = if p.beta == 0 { 0 } else { p.beta.wrapping_mul(c.get(row, column)) };
                d.set(row, column, value.wrapping_add(old));
            }
        }
    });
}

/// Calls `body` with the panels of the result: (first row, rows), (first column, columns).
fn for_panels(m: i64, n: i64, mut body: impl FnMut((i64, i64), (i64, i64))) {
    for column in (0..n).step_by(PANEL as usize) {
        for row in (0..m).step_by(PANEL as usize) {
            body((row, PANEL.min(m - row)), (column, PANEL.min(n - column)));
        }
    }
}

/// A part of a matrix, converted: (elements, leading dimension).
unsafe fn converted<S: Compute>(
    place: Place,
    row: i64,
    column: i64,
    rows: i64,
    columns: i64,
    room: &mut Vec<S>,
) -> Matrix<S> {
    if place.storage == S::OWN {
        return Matrix::new(place.address(row, column).cast(), place.ld);
    }
    room.resize((rows * columns) as usize, S::zero());
    let panel = Matrix::new(room.as_mut_ptr(), rows);
    parallel(columns, rows, |j| {
        // SAFETY: the caller's word; a column for each call.
        unsafe { S::read(place.storage, place.address(row, column + j), panel.column_mut(j, rows)) }
    });
    panel
}

/// The part of A or B that rows (or columns) of the result and a range of k need.
unsafe fn operand<S: Compute>(
    place: Place,
    transposed: bool,
    outer: (i64, i64),
    depth: (i64, i64),
    room: &mut Vec<S>,
) -> Matrix<S> {
    let ((row, rows), (column, columns)) = if transposed { (depth, outer) } else { (outer, depth) };
    // SAFETY: the caller's word.
    unsafe { converted(place, row, column, rows, columns, room) }
}

/// `op(A)·op(B)` of a panel, column after column.
unsafe fn sum<S: Compute>(p: &Product<S>, rows: (i64, i64), columns: (i64, i64), sums: &mut Vec<S>) {
    sums.clear();
    sums.resize((rows.1 * columns.1) as usize, S::zero());
    if p.alpha.is_zero() {
        return;
    }
    if p.a.storage == Storage::I8 && p.b.storage == Storage::I8 {
        let mut integers = Vec::new();
        // SAFETY: the caller's word.
        unsafe { sum_bytes((p.op_a, p.a), (p.op_b, p.b), rows, columns, p.k, &mut integers) };
        let real = |integer: &i64| S::from_real(S::Real::rounded(*integer as f64));
        return sums.iter_mut().zip(&integers).for_each(|(sum, integer)| *sum = real(integer));
    }
    let (mut room_a, mut room_b) = (Vec::new(), Vec::new());
    for start in (0..p.k).step_by(PANEL as usize) {
        let depth = (start, PANEL.min(p.k - start));
        let beta = if start == 0 { S::zero() } else { S::one() };
        // SAFETY: the caller's word.
        unsafe {
            let a = operand(p.a, p.op_a.transposes(), rows, depth, &mut room_a);
            let b = operand(p.b, !p.op_b.transposes(), columns, depth, &mut room_b);
            let (a, lda, b, ldb) = (a.start(), a.ld(), b.start(), b.ld());
            let (m, n, k) = (rows.1, columns.1, depth.1);
            gemm(p.op_a, p.op_b, m, n, k, S::one(), a, lda, b, ldb, beta, sums.as_mut_ptr(), m);
        }
    }
}

unsafe fn sum_bytes(
    (op_a, a): (Op, Place),
    (op_b, b): (Op, Place),
    rows: (i64, i64),
    columns: (i64, i64),
    k: i64,
    sums: &mut Vec<i64>,
) {
    sums.clear();
    sums.resize((rows.1 * columns.1) as usize, 0);
    let (mut room_a, mut room_b) = (Vec::<f32>::new(), Vec::<f32>::new());
    let mut part = vec![0.0_f32; sums.len()];
    // 1024 products of at most 2¹⁴ are at most 2²⁴, up to which an f32 has every integer.
    const _: () = assert!(PANEL <= 1024);
    for start in (0..k).step_by(PANEL as usize) {
        let depth = (start, PANEL.min(k - start));
        // SAFETY: the caller's word.
        unsafe {
            let a = operand(a, op_a.transposes(), rows, depth, &mut room_a);
            let b = operand(b, !op_b.transposes(), columns, depth, &mut room_b);
            let (a, lda, b, ldb) = (a.start(), a.ld(), b.start(), b.ld());
            let (m, n, k) = (rows.1, columns.1, depth.1);
            gemm(op_a, op_b, m, n, k, 1.0, a, lda, b, ldb, 0.0, part.as_mut_ptr(), m);
        }
        vectorized(|| sums.iter_mut().zip(&part).for_each(|(sum, part)| *sum += i64::from(*part as i32)));
    }
}

/// Makes results of a panel's sums and stores them; `sums` then has the results before the last scaling.
unsafe fn finish<S: Compute>(p: &Product<S>, rows: (i64, i64), columns: (i64, i64), sums: &mut [S]) {
    let ((row, m), (first, n)) = (rows, columns);
    let sums = Matrix::new(sums.as_mut_ptr(), m);
    parallel(n, m, |j| {
        let (column, mut room) = (first + j, Vec::new());
        // SAFETY: the caller's word; a column for each call.
        unsafe {
            let values = sums.column_mut(j, m);
            for (i, value) in values.iter_mut().enumerate() {
                let alpha = p.alpha.of(row + i as i64);
                // A factor of zero hides what it multiplies.
                *value = if alpha.is_zero() { S::zero() } else { alpha * *value };
            }
            if !p.beta.is_zero() {
                room.resize(m as usize, S::zero());
                S::read(p.c.storage, p.c.address(row, column), &mut room);
                values.iter_mut().zip(&room).for_each(|(value, old)| *value += p.beta * *old);
            }
            p.epilogue.activate(row, column, values, &mut room);
            let to = p.d.address(row, column);
            match p.epilogue.scale {
                None => S::write(p.d.storage, values, to),
                Some(scale) => {
                    let scale = S::Real::rounded(scale.into());
                    room.clear();
                    room.extend(values.iter().map(|value| value.times_real(scale)));
                    S::write(p.d.storage, &room, to);
                }
            }
        }
    });
}

/// What is known when the last panel is done.
struct Totals<S: Scalar> {
    largest: f32,
    rows: Vec<S>,
    of_result: bool,
    wants_largest: bool,
}

impl<S: Compute> Totals<S> {
    fn new(p: &Product<S>) -> Self {
        let of_result = matches!(p.epilogue.bias_gradient, Some((BiasGradient::Result, _)));
        let rows = if of_result { vec![S::zero(); p.m.max(0) as usize] } else { Vec::new() };
        Self { largest: 0.0, rows, of_result, wants_largest: p.epilogue.largest.is_some() }
    }

    fn add(&mut self, rows: (i64, i64), results: &[S]) {
        if self.wants_largest {
            self.largest = self.largest.max(largest(results));
        }
        if self.of_result {
            for column in results.chunks_exact(rows.1 as usize) {
                let sums = &mut self.rows[rows.0 as usize..][..rows.1 as usize];
                sums.iter_mut().zip(column).for_each(|(sum, result)| *sum += *result);
            }
        }
    }

    unsafe fn write(self, p: &Product<S>) {
        if let Some(at) = p.epilogue.largest {
            // SAFETY: the caller's word.
            unsafe { raise(at, self.largest) };
        }
        // SAFETY: the caller's word.
        unsafe {
            match p.epilogue.bias_gradient {
                None => {}
                Some((BiasGradient::Result, to)) => S::write(to.storage, &self.rows, to.at),
                Some((BiasGradient::A, to)) => {
                    S::write(to.storage, &sums(p.a, p.op_a.transposes(), p.m, p.k), to.at)
                }
                Some((BiasGradient::B, to)) => {
                    S::write(to.storage, &sums(p.b, !p.op_b.transposes(), p.n, p.k), to.at)
                }
            }
        }
    }
}

/// The sums over k of a factor's rows (or columns).
unsafe fn sums<S: Compute>(place: Place, transposed: bool, outer: i64, k: i64) -> Vec<S> {
    let mut totals = vec![S::zero(); outer.max(0) as usize];
    let mut line = vec![S::zero(); if transposed { k } else { outer }.max(0) as usize];
    let columns = if transposed { outer } else { k };
    for column in 0..columns {
        // SAFETY: the caller's word.
        unsafe { S::read(place.storage, place.address(0, column), &mut line) };
        if transposed {
            totals[column as usize] = line.iter().fold(S::zero(), |sum, value| sum + *value);
        } else {
            totals.iter_mut().zip(&line).for_each(|(sum, value)| *sum += *value);
        }
    }
    totals
}
