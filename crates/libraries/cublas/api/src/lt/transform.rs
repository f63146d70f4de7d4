//! C = α·op(A) + β·op(B), from one memory order and type to another.

use core::ffi::c_void;

use cublas_cpu::storage::{Compute, Storage};
use cublas_cpu::{Complex, Op, parallel};
use kit::Address;

use super::descriptor::Descriptor;
use crate::mixed::{Factor, storage};
use crate::{Error, Result, convert, cublasLtOrder_t, cublasOperation_t, cudaDataType, require};

/// A matrix with its rows and columns as the program counts them.
#[derive(Clone, Copy)]
struct Matrix {
    storage: Storage,
    order: cublasLtOrder_t,
    rows: i64,
    columns: i64,
    ld: i64,
    batch: i64,
    stride: i64,
}

impl Matrix {
    fn of(layout: Descriptor<'_>) -> Result<Matrix> {
        let order = cublasLtOrder_t(layout.number(1) as u32);
        if order.0 > cublasLtOrder_t::CUBLASLT_ORDER_COL32.0 || layout.number(7) != 0 || layout.number(8) != 0
        {
            return Err(Error::NotSupported(
                "this order of elements, planes, or batches that are no strides",
            ));
        }
        let storage = storage(cudaDataType(layout.number(0) as u32))?;
        let [rows, columns, ld, stride, batch] = [2, 3, 4, 6, 5].map(|number| layout.number(number));
        require(rows >= 0 && columns >= 0 && batch >= 1, "a layout's size is negative")?;
        Ok(Matrix { storage, order, rows, columns, ld, batch, stride })
    }

    /// Where an element is, in elements.
    fn index(&self, row: i64, column: i64) -> i64 {
        match self.order {
            cublasLtOrder_t::CUBLASLT_ORDER_COL => row + column * self.ld,
            cublasLtOrder_t::CUBLASLT_ORDER_ROW => column + row * self.ld,
            // Tiles of 32 columns, each in order of rows; `ld` from one tile to the next.
            _ => column / 32 * self.ld + row * 32 + column % 32,
        }
    }

    fn address(&self, base: *const c_void, batch: i64, row: i64, column: i64) -> *mut u8 {
        let at = if self.batch == 1 { 0 } else { batch * self.stride } + self.index(row, column);
        base.cast_mut().cast::<u8>().wrapping_offset(at as isize * self.storage.size() as isize)
    }
}

/// A matrix that is added, its operation, factor and address.
#[derive(Clone, Copy)]
struct Term {
    matrix: Matrix,
    op: Op,
    factor: Factor,
    at: Address<*const c_void>,
}

#[derive(Clone, Copy)]
struct Sum {
    terms: [Option<Term>; 2],
    to: Matrix,
    at: Address<*mut c_void>,
}

/// The work, for the stream; every column of C is written by one thread. `matrices` are A, B and C; a NULL B is none.
///
/// # Safety
/// The factors and matrices are as the descriptors say: on the host now, in device memory whenever the work runs.
pub unsafe fn work(
    transform: Descriptor<'_>,
    factors: [*const c_void; 2],
    matrices: [(Option<Descriptor<'_>>, *const c_void); 2],
    (to, at): (Descriptor<'_>, *mut c_void),
) -> Result<Box<dyn Fn() + Send + Sync>> {
    let scale = storage(cudaDataType(transform.number(0) as u32))?;
    let is_device = transform.number(1) != 0;
    require(transform.number(1) <= 1, "there is no such pointer mode")?;
    let to = Matrix::of(to)?;
    let mut terms = [None; 2];
    for (i, (layout, at)) in matrices.into_iter().enumerate() {
        let Some(layout) = layout.filter(|_| !at.is_null()) else { continue };
        let op = convert::op(cublasOperation_t(transform.number(2 + i as u32) as u32))?;
        let matrix = Matrix::of(layout)?;
        let (rows, columns) =
            if op.transposes() { (matrix.columns, matrix.rows) } else { (matrix.rows, matrix.columns) };
        require((rows, columns) == (to.rows, to.columns), "a matrix has another size than C")?;
        // SAFETY: the caller's promise.
        let factor = unsafe { Factor::at(factors[i], scale, is_device)? };
        terms[i] = Some(Term { matrix, op, factor, at: Address(at) });
    }
    require(terms[0].is_some() && !at.is_null(), "A or C is NULL")?;
    let sum = Sum { terms, to, at: Address(at) };
    let all = |takes: fn(Storage) -> bool| {
        takes(to.storage) && terms.iter().flatten().all(|term| takes(term.matrix.storage))
    };
    let run: unsafe fn(&Sum) = match scale {
        Storage::F32 | Storage::F16 if all(f32::takes) => run::<f32>,
        Storage::F64 if all(f64::takes) => run::<f64>,
        Storage::C32 if all(Complex::<f32>::takes) => run::<Complex<f32>>,
        Storage::C64 if all(Complex::<f64>::takes) => run::<Complex<f64>>,
        _ => return Err(Error::NotSupported("a transform between these types")),
    };
    // SAFETY: the caller's promise.
    Ok(Box::new(move || unsafe { run(&sum) }))
}

/// # Safety
/// The matrices and factors are there.
unsafe fn run<S: Compute>(sum: &Sum) {
    let factors = sum.terms.map(|term| term.map_or(S::zero(), |term| term.factor.get::<S>()));
    parallel(sum.to.batch * sum.to.columns, sum.to.rows, |index| {
        let (batch, column) = (index / sum.to.columns, index % sum.to.columns);
        for row in 0..sum.to.rows {
            let mut total = S::zero();
            for (term, factor) in sum.terms.iter().zip(factors) {
                // A factor of 0 reads nothing.
                let Some(term) = term.filter(|_| !factor.is_zero()) else { continue };
                let (r, c) = if term.op.transposes() { (column, row) } else { (row, column) };
                let mut value = [S::zero()];
                // SAFETY: the caller's promise.
                unsafe {
                    S::read(term.matrix.storage, term.matrix.address(term.at.get(), batch, r, c), &mut value)
                };
                total += factor * value[0].conj_if(term.op.conjugates());
            }
            // SAFETY: as above.
            unsafe {
                S::write(
                    sum.to.storage,
                    &[total],
                    sum.to.address(sum.at.get().cast_const(), batch, row, column),
                )
            };
        }
    });
}
