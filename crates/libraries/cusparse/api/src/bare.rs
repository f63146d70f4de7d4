//! Matrices in bare arrays, as the typed calls take them, become what descriptors say of matrices, and scalars what both APIs read: the
//! work behind both is the same.

use core::ffi::{c_int, c_void};

use cusparse_cpu::{Blocked, Blocks, Index, Operation};

use crate::api::legacy::Description;
use crate::descriptor::*;
use crate::error::require;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

/// What a descriptor says of a general matrix; of others nothing is computed.
pub fn general(descr: cusparseMatDescr_t) -> Result<Description> {
    let description = *crate::api::legacy::get(descr)?.lock();
    match description.kind {
        cusparseMatrixType_t::CUSPARSE_MATRIX_TYPE_GENERAL => Ok(description),
        _ => Err(Error::MatrixType("only general matrices are taken here")),
    }
}

/// A size or a count.
pub fn count(value: c_int) -> Result<usize> {
    size(value.into())
}

/// The edge of a block.
pub fn edge(value: c_int) -> Result<usize> {
    require(value > 0, "blocks of no rows or columns")?;
    count(value)
}

pub fn is_row_major(direction: cusparseDirection_t) -> Result<bool> {
    require(direction <= cusparseDirection_t::CUSPARSE_DIRECTION_COLUMN, "there is no such direction")?;
    Ok(direction == cusparseDirection_t::CUSPARSE_DIRECTION_ROW)
}

pub fn check_numbers(at: *const c_int, count: usize) -> Result {
    check_array(at.cast(), count, align_of::<c_int>())
}

/// The three arrays of a matrix.
pub type Arrays<T> = (*const T, *const c_int, *const c_int);

fn matrix<T: Computed>(
    (format, rows, cols, nnz): (Format, usize, usize, usize),
    descr: cusparseMatDescr_t,
    (values, offsets, indices): Arrays<T>,
) -> Result<SparseMatrix> {
    let description = general(descr)?;
    let matrix = SparseMatrix {
        offsets: offsets.cast_mut().cast(),
        indices: indices.cast_mut().cast(),
        values: values.cast_mut().cast(),
        base: description.base,
        value_type: T::TYPE,
        attributes: [description.fill.0 as c_int, description.diagonal.0 as c_int, 0, 0],
        ..SparseMatrix::new(format, (rows as i64, cols as i64, nnz as i64))?
    };
    check_matrix(&matrix)?;
    Ok(matrix)
}

/// A matrix by rows: rows, columns, entries.
pub fn csr<T: Computed>(
    (rows, cols, nnz): (c_int, c_int, c_int),
    descr: cusparseMatDescr_t,
    arrays: Arrays<T>,
) -> Result<SparseMatrix> {
    matrix((Format::Csr, count(rows)?, count(cols)?, count(nnz)?), descr, arrays)
}

/// A matrix of square blocks by rows: rows, columns and number of blocks, and their edge.
pub fn bsr<T: Computed>(
    direction: cusparseDirection_t,
    (rows, cols, nnzb, block): (c_int, c_int, c_int, c_int),
    descr: cusparseMatDescr_t,
    arrays: Arrays<T>,
) -> Result<SparseMatrix> {
    let size = edge(block)?;
    let format = Format::Bsr { size, row_major: is_row_major(direction)? };
    let sizes = (format, count(rows)? * size, count(cols)? * size, count(nnzb)? * size * size);
    matrix(sizes, descr, arrays)
}

/// Where a matrix by rows, of blocks or not, has entries.
///
/// # Safety
/// The descriptor is true: nobody writes to its arrays of numbers meanwhile.
pub unsafe fn pattern<'a>(a: &SparseMatrix) -> Blocked<'a, c_int> {
    let blocks = match a.format {
        Format::Bsr { size, row_major } => Blocks { rows: size, cols: size, row_major },
        _ => Blocks::SINGLE,
    };
    let (rows, nnz) = (a.rows / blocks.rows, a.nnz / blocks.area());
    // SAFETY: the caller's promise.
    unsafe { blocked((rows, nnz), (a.offsets, a.indices), a.base, blocks) }
}

/// The same of rectangular blocks: so many rows of blocks, and blocks.
///
/// # Safety
/// As [`pattern`].
pub unsafe fn blocked<'a>(
    (rows, nnz): (usize, usize),
    (offsets, indices): (*const c_void, *const c_void),
    base: cusparseIndexBase_t,
    blocks: Blocks,
) -> Blocked<'a, c_int> {
    let offsets_count = if offsets.is_null() { 0 } else { rows + 1 };
    // SAFETY: the caller's promise.
    let (offsets, indices) = unsafe { (slice(offsets, offsets_count), slice(indices, nnz)) };
    Blocked { offsets, indices, base: base.0 as usize, blocks }
}

/// A dense matrix by columns.
pub fn columns<T: Computed>(
    (rows, cols, ld): (c_int, c_int, c_int),
    values: *const T,
) -> Result<DenseMatrix> {
    let matrix = columns_of((rows, cols, ld), values.cast(), T::TYPE)?;
    check_dense_matrix(&matrix)?;
    Ok(matrix)
}

/// The same of any type, unchecked.
pub fn columns_of(
    (rows, cols, ld): (c_int, c_int, c_int),
    values: *const c_void,
    value_type: cudaDataType,
) -> Result<DenseMatrix> {
    let (rows, cols, ld) = (count(rows)?, count(cols)?, count(ld)?);
    require(ld >= rows.max(1), "columns are longer than the leading dimension")?;
    let order = cusparseOrder_t::CUSPARSE_ORDER_COL;
    Ok(DenseMatrix { rows, cols, ld, values: values.cast_mut(), value_type, order, batches: 1, stride: 0 })
}

/// The sizes of `op(A)` of a dense matrix with so many rows and columns, as they lie.
pub fn lying(operation: Operation, (rows, cols): (c_int, c_int)) -> (c_int, c_int) {
    if operation.transposed { (cols, rows) } else { (rows, cols) }
}

/// Where the conjugated transposed is not supported.
pub fn real_operation(operation: cusparseOperation_t) -> Result<Operation> {
    let operation = crate::memory::operation(operation)?;
    match operation.conjugated {
        true => Err(Error::NotSupported("the conjugated transposed of this argument")),
        false => Ok(operation),
    }
}

/// Where only the matrix as it is is supported.
pub fn plain(operation: cusparseOperation_t) -> Result {
    match crate::memory::operation(operation)?.transposed {
        true => Err(Error::NotSupported("the transposed of this argument")),
        false => Ok(()),
    }
}

/// What a call writes to the host or, where the handle says that scalars are on the device, to the device.
///
/// # Safety
/// A place for a number.
pub unsafe fn tell(at: *mut c_int, value: usize) {
    if !at.is_null() {
        // SAFETY: the caller's promise.
        unsafe { at.write(value as c_int) };
    }
}

/// A matrix by rows of which no values are given.
pub fn csr_pattern(
    (rows, cols, nnz): (c_int, c_int, c_int),
    descr: cusparseMatDescr_t,
    (offsets, indices): (*const c_int, *const c_int),
) -> Result<SparseMatrix> {
    let description = general(descr)?;
    let matrix = SparseMatrix {
        offsets: offsets.cast_mut().cast(),
        indices: indices.cast_mut().cast(),
        base: description.base,
        ..SparseMatrix::new(Format::Csr, (rows.into(), cols.into(), nnz.into()))?
    };
    check_numbers(offsets, if matrix.rows == 0 && matrix.nnz == 0 { 0 } else { matrix.rows + 1 })?;
    check_numbers(indices, matrix.nnz)?;
    Ok(matrix)
}

/// Where a matrix by rows has entries, with values that nobody asks for.
///
/// # Safety
/// As [`pattern`].
pub unsafe fn pattern_matrix<I: Index>(a: &SparseMatrix) -> cusparse_cpu::Matrix<'static, f32, I> {
    let (base, rows, cols) = (a.base.0 as usize, a.rows, a.cols);
    // SAFETY: the caller's promise.
    let (offsets, indices) =
        unsafe { (offsets(a.offsets, rows + 1, a.offset_type, base), slice::<I>(a.indices, a.nnz)) };
    let values = vec![1.0; a.nnz].into();
    cusparse_cpu::Matrix::Csr { rows, cols, base, offsets, indices: indices.into(), values }
}
