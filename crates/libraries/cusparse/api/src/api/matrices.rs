//! Descriptors of sparse matrices. C's const forms are the same calls.

use core::ffi::{c_int, c_void};

use border::Out;

pub use self::cusparseBlockedEllGet as cusparseConstBlockedEllGet;
pub use self::cusparseCooGet as cusparseConstCooGet;
pub use self::cusparseCreateBlockedEll as cusparseCreateConstBlockedEll;
pub use self::cusparseCreateBsr as cusparseCreateConstBsr;
pub use self::cusparseCreateCoo as cusparseCreateConstCoo;
pub use self::cusparseCreateCsc as cusparseCreateConstCsc;
pub use self::cusparseCreateCsr as cusparseCreateConstCsr;
pub use self::cusparseCreateSlicedEll as cusparseCreateConstSlicedEll;
pub use self::cusparseCscGet as cusparseConstCscGet;
pub use self::cusparseCsrGet as cusparseConstCsrGet;
pub use self::cusparseSpMatGetValues as cusparseConstSpMatGetValues;
use crate::descriptor::*;
use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

/// Takes the matrix up with where it lies.
fn add(matrix: SparseMatrix, to: Out<'_, cusparseSpMatDescr_t>) -> Result {
    check_index(matrix.offset_type)?;
    check_index(matrix.index_type)?;
    check_base(matrix.base)?;
    check_value(matrix.value_type)?;
    to.write(SPARSE_MATRICES.add(matrix));
    Ok(())
}

/// A matrix of so many entries: their offsets (or the other numbers of coordinates), indices and values.
fn create(
    format: Format,
    sizes: (i64, i64, i64),
    [offsets, indices, values]: [*const c_void; 3],
    (offset_type, index_type): (cusparseIndexType_t, cusparseIndexType_t),
    base: cusparseIndexBase_t,
    value_type: cudaDataType,
    to: Out<'_, cusparseSpMatDescr_t>,
) -> Result {
    let matrix = SparseMatrix::new(format, sizes)?;
    check_entries(matrix.nnz, matrix.rows, matrix.cols)?;
    let matrix = SparseMatrix {
        offsets: offsets.cast_mut(),
        indices: indices.cast_mut(),
        values: values.cast_mut(),
        offset_type,
        index_type,
        base,
        value_type,
        ..matrix
    };
    add(matrix, to)
}

/// One of a format that has offsets (or the other numbers of coordinates), indices and values.
fn of_format(spMatDescr: cusparseSpMatDescr_t, format: cusparseFormat_t) -> Result<SparseMatrix> {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    matrix.require_format(format)?;
    Ok(matrix)
}

/// Its sizes and arrays.
fn tell(
    matrix: &SparseMatrix,
    [rows, cols, nnz]: [Out<'_, i64>; 3],
    [offsets, indices, values]: [Out<'_, *mut c_void>; 3],
    base: Out<'_, cusparseIndexBase_t>,
    value_type: Out<'_, cudaDataType>,
) {
    rows.write(matrix.rows as i64);
    cols.write(matrix.cols as i64);
    nnz.write(matrix.nnz as i64);
    offsets.write(matrix.offsets);
    indices.write(matrix.indices);
    values.write(matrix.values);
    base.write(matrix.base);
    value_type.write(matrix.value_type);
}

fn set_pointers(
    spMatDescr: cusparseSpMatDescr_t,
    format: cusparseFormat_t,
    pointers: (*mut c_void, *mut c_void, *mut c_void),
) -> Result {
    of_format(spMatDescr, format)?;
    SPARSE_MATRICES.change(spMatDescr, |matrix| (matrix.offsets, matrix.indices, matrix.values) = pointers)
}

pub fn cusparseDestroySpMat(spMatDescr: cusparseConstSpMatDescr_t) -> Result {
    SPARSE_MATRICES.remove(spMatDescr)
}

pub fn cusparseSpMatGetFormat(
    spMatDescr: cusparseConstSpMatDescr_t,
    format: Out<'_, cusparseFormat_t>,
) -> Result {
    format.write(SPARSE_MATRICES.get(spMatDescr)?.format.number());
    Ok(())
}

pub fn cusparseSpMatGetIndexBase(
    spMatDescr: cusparseConstSpMatDescr_t,
    idxBase: Out<'_, cusparseIndexBase_t>,
) -> Result {
    idxBase.write(SPARSE_MATRICES.get(spMatDescr)?.base);
    Ok(())
}

pub fn cusparseSpMatGetValues(spMatDescr: cusparseSpMatDescr_t, values: Out<'_, *mut c_void>) -> Result {
    values.write(SPARSE_MATRICES.get(spMatDescr)?.values);
    Ok(())
}

pub fn cusparseSpMatSetValues(spMatDescr: cusparseSpMatDescr_t, values: *mut c_void) -> Result {
    SPARSE_MATRICES.change(spMatDescr, |matrix| matrix.values = values)
}

pub fn cusparseSpMatGetSize(
    spMatDescr: cusparseConstSpMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    nnz: Out<'_, i64>,
) -> Result {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    rows.write(matrix.rows as i64);
    cols.write(matrix.cols as i64);
    nnz.write(matrix.nnz as i64);
    Ok(())
}

pub fn cusparseSpMatGetStridedBatch(
    spMatDescr: cusparseConstSpMatDescr_t,
    batchCount: Out<'_, c_int>,
) -> Result {
    batchCount.write(SPARSE_MATRICES.get(spMatDescr)?.batches);
    Ok(())
}

/// Strides of 0 are the same array in all of the batch.
fn set_batch(
    spMatDescr: cusparseSpMatDescr_t,
    format: cusparseFormat_t,
    batches: c_int,
    strides: Strides,
    least: impl FnOnce(&SparseMatrix) -> Strides,
) -> Result {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    matrix.require_format(format)?;
    require(batches > 0, "a batch of none")?;
    let least = least(&matrix);
    let fits = |stride: i64, least: i64| batches == 1 || stride == 0 || stride >= least;
    require(fits(strides.offsets, least.offsets), "offsets of a batch overlap")?;
    require(fits(strides.indices, least.indices), "indices of a batch overlap")?;
    require(fits(strides.values, least.values), "values of a batch overlap")?;
    SPARSE_MATRICES.change(spMatDescr, |matrix| (matrix.batches, matrix.strides) = (batches, strides))
}

pub fn cusparseCooSetStridedBatch(
    spMatDescr: cusparseSpMatDescr_t,
    batchCount: c_int,
    batchStride: i64,
) -> Result {
    let strides = Strides { offsets: batchStride, indices: batchStride, values: batchStride };
    let format = cusparseFormat_t::CUSPARSE_FORMAT_COO;
    set_batch(spMatDescr, format, batchCount, strides, |matrix| {
        let nnz = matrix.nnz as i64;
        Strides { offsets: nnz, indices: nnz, values: nnz }
    })
}

pub fn cusparseCsrSetStridedBatch(
    spMatDescr: cusparseSpMatDescr_t,
    batchCount: c_int,
    offsetsBatchStride: i64,
    columnsValuesBatchStride: i64,
) -> Result {
    let strides = Strides {
        offsets: offsetsBatchStride,
        indices: columnsValuesBatchStride,
        values: columnsValuesBatchStride,
    };
    let format = cusparseFormat_t::CUSPARSE_FORMAT_CSR;
    set_batch(spMatDescr, format, batchCount, strides, |matrix| {
        let nnz = matrix.nnz as i64;
        Strides { offsets: matrix.rows as i64 + 1, indices: nnz, values: nnz }
    })
}

pub fn cusparseBsrSetStridedBatch(
    spMatDescr: cusparseSpMatDescr_t,
    batchCount: c_int,
    offsetsBatchStride: i64,
    columnsBatchStride: i64,
    ValuesBatchStride: i64,
) -> Result {
    let strides =
        Strides { offsets: offsetsBatchStride, indices: columnsBatchStride, values: ValuesBatchStride };
    let format = cusparseFormat_t::CUSPARSE_FORMAT_BSR;
    set_batch(spMatDescr, format, batchCount, strides, |matrix| {
        let size = if let Format::Bsr { size, .. } = matrix.format { size } else { 1 };
        Strides {
            offsets: (matrix.rows / size) as i64 + 1,
            indices: (matrix.nnz / size / size) as i64,
            values: matrix.nnz as i64,
        }
    })
}

/// The place of an attribute, and a value's bytes.
fn attribute(attribute: cusparseSpMatAttribute_t, data: *const c_void, bytes: usize) -> Result<usize> {
    require(
        attribute <= cusparseSpMatAttribute_t::CUSPARSE_SPMAT_SYMMETRY_TYPE,
        "there is no such attribute",
    )?;
    require(!data.is_null(), "data is NULL")?;
    require(bytes == size_of::<c_int>(), "an attribute of another size")?;
    Ok(attribute.0 as usize)
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseSpMatGetAttribute(
    spMatDescr: cusparseConstSpMatDescr_t,
    attribute_: cusparseSpMatAttribute_t,
    data: *mut c_void,
    dataSize: usize,
) -> Result {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    let value = matrix.attributes[attribute(attribute_, data, dataSize)?];
    // SAFETY: cuSPARSE's contract: `dataSize` bytes, which is an `int`.
    unsafe { data.cast::<c_int>().write_unaligned(value) };
    Ok(())
}

/// # Safety
/// As [`cusparseSpMatGetAttribute`].
pub unsafe fn cusparseSpMatSetAttribute(
    spMatDescr: cusparseSpMatDescr_t,
    attribute_: cusparseSpMatAttribute_t,
    data: *mut c_void,
    dataSize: usize,
) -> Result {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    let place = attribute(attribute_, data, dataSize)?;
    // SAFETY: as above.
    let value = unsafe { data.cast::<c_int>().read_unaligned() };
    // Symmetric and Hermitian.
    let is_square_only = attribute_ == cusparseSpMatAttribute_t::CUSPARSE_SPMAT_SYMMETRY_TYPE;
    require(
        !is_square_only || !(1..=2).contains(&value) || matrix.rows == matrix.cols,
        "a matrix that is not square has no symmetry",
    )?;
    SPARSE_MATRICES.change(spMatDescr, |matrix| matrix.attributes[place] = value)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateCsr(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    rows: i64,
    cols: i64,
    nnz: i64,
    csrRowOffsets: *const c_void,
    csrColInd: *const c_void,
    csrValues: *const c_void,
    csrRowOffsetsType: cusparseIndexType_t,
    csrColIndType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let arrays = [csrRowOffsets, csrColInd, csrValues];
    create(
        Format::Csr,
        (rows, cols, nnz),
        arrays,
        (csrRowOffsetsType, csrColIndType),
        idxBase,
        valueType,
        spMatDescr,
    )
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCsrGet(
    spMatDescr: cusparseSpMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    nnz: Out<'_, i64>,
    csrRowOffsets: Out<'_, *mut c_void>,
    csrColInd: Out<'_, *mut c_void>,
    csrValues: Out<'_, *mut c_void>,
    csrRowOffsetsType: Out<'_, cusparseIndexType_t>,
    csrColIndType: Out<'_, cusparseIndexType_t>,
    idxBase: Out<'_, cusparseIndexBase_t>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let matrix = of_format(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_CSR)?;
    tell(&matrix, [rows, cols, nnz], [csrRowOffsets, csrColInd, csrValues], idxBase, valueType);
    csrRowOffsetsType.write(matrix.offset_type);
    csrColIndType.write(matrix.index_type);
    Ok(())
}

pub fn cusparseCsrSetPointers(
    spMatDescr: cusparseSpMatDescr_t,
    csrRowOffsets: *mut c_void,
    csrColInd: *mut c_void,
    csrValues: *mut c_void,
) -> Result {
    set_pointers(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_CSR, (csrRowOffsets, csrColInd, csrValues))
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateCsc(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    rows: i64,
    cols: i64,
    nnz: i64,
    cscColOffsets: *const c_void,
    cscRowInd: *const c_void,
    cscValues: *const c_void,
    cscColOffsetsType: cusparseIndexType_t,
    cscRowIndType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let arrays = [cscColOffsets, cscRowInd, cscValues];
    create(
        Format::Csc,
        (rows, cols, nnz),
        arrays,
        (cscColOffsetsType, cscRowIndType),
        idxBase,
        valueType,
        spMatDescr,
    )
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCscGet(
    spMatDescr: cusparseSpMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    nnz: Out<'_, i64>,
    cscColOffsets: Out<'_, *mut c_void>,
    cscRowInd: Out<'_, *mut c_void>,
    cscValues: Out<'_, *mut c_void>,
    cscColOffsetsType: Out<'_, cusparseIndexType_t>,
    cscRowIndType: Out<'_, cusparseIndexType_t>,
    idxBase: Out<'_, cusparseIndexBase_t>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let matrix = of_format(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_CSC)?;
    tell(&matrix, [rows, cols, nnz], [cscColOffsets, cscRowInd, cscValues], idxBase, valueType);
    cscColOffsetsType.write(matrix.offset_type);
    cscRowIndType.write(matrix.index_type);
    Ok(())
}

pub fn cusparseCscSetPointers(
    spMatDescr: cusparseSpMatDescr_t,
    cscColOffsets: *mut c_void,
    cscRowInd: *mut c_void,
    cscValues: *mut c_void,
) -> Result {
    set_pointers(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_CSC, (cscColOffsets, cscRowInd, cscValues))
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateCoo(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    rows: i64,
    cols: i64,
    nnz: i64,
    cooRowInd: *const c_void,
    cooColInd: *const c_void,
    cooValues: *const c_void,
    cooIdxType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let arrays = [cooRowInd, cooColInd, cooValues];
    create(Format::Coo, (rows, cols, nnz), arrays, (cooIdxType, cooIdxType), idxBase, valueType, spMatDescr)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCooGet(
    spMatDescr: cusparseSpMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    nnz: Out<'_, i64>,
    cooRowInd: Out<'_, *mut c_void>,
    cooColInd: Out<'_, *mut c_void>,
    cooValues: Out<'_, *mut c_void>,
    idxType: Out<'_, cusparseIndexType_t>,
    idxBase: Out<'_, cusparseIndexBase_t>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let matrix = of_format(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_COO)?;
    tell(&matrix, [rows, cols, nnz], [cooRowInd, cooColInd, cooValues], idxBase, valueType);
    idxType.write(matrix.index_type);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateCooAoS(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    rows: i64,
    cols: i64,
    nnz: i64,
    cooInd: *mut c_void,
    cooValues: *mut c_void,
    cooIdxType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let arrays = [core::ptr::null(), cooInd.cast_const(), cooValues.cast_const()];
    let types = (cooIdxType, cooIdxType);
    create(Format::CooAoS, (rows, cols, nnz), arrays, types, idxBase, valueType, spMatDescr)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCooAoSGet(
    spMatDescr: cusparseSpMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    nnz: Out<'_, i64>,
    cooInd: Out<'_, *mut c_void>,
    cooValues: Out<'_, *mut c_void>,
    idxType: Out<'_, cusparseIndexType_t>,
    idxBase: Out<'_, cusparseIndexBase_t>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let matrix = of_format(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_COO_AOS)?;
    let mut none = core::ptr::null_mut();
    // SAFETY: a place of ours.
    let offsets = unsafe { Out::new(&raw mut none, "offsets") }?;
    tell(&matrix, [rows, cols, nnz], [offsets, cooInd, cooValues], idxBase, valueType);
    idxType.write(matrix.index_type);
    Ok(())
}

pub fn cusparseCooSetPointers(
    spMatDescr: cusparseSpMatDescr_t,
    cooRows: *mut c_void,
    cooColumns: *mut c_void,
    cooValues: *mut c_void,
) -> Result {
    set_pointers(spMatDescr, cusparseFormat_t::CUSPARSE_FORMAT_COO, (cooRows, cooColumns, cooValues))
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateBsr(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    brows: i64,
    bcols: i64,
    bnnz: i64,
    rowBlockSize: i64,
    colBlockSize: i64,
    bsrRowOffsets: *const c_void,
    bsrColInd: *const c_void,
    bsrValues: *const c_void,
    bsrRowOffsetsType: cusparseIndexType_t,
    bsrColIndType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
    order: cusparseOrder_t,
) -> Result {
    let (block_rows, block_cols, blocks) = (size(brows)?, size(bcols)?, size(bnnz)?);
    require(rowBlockSize > 0 && colBlockSize > 0, "blocks of no size")?;
    require(rowBlockSize == colBlockSize, "blocks that are not square")?;
    check_entries(blocks, block_rows, block_cols)?;
    check_order(order)?;
    let block = size(rowBlockSize)?;
    let times = |a: usize, b: usize| a.checked_mul(b).ok_or(Error::InvalidValue("a matrix too large"));
    let row_major = order == cusparseOrder_t::CUSPARSE_ORDER_ROW;
    let matrix = SparseMatrix {
        rows: times(block_rows, block)?,
        cols: times(block_cols, block)?,
        nnz: times(times(blocks, block)?, block)?,
        offsets: bsrRowOffsets.cast_mut(),
        indices: bsrColInd.cast_mut(),
        values: bsrValues.cast_mut(),
        offset_type: bsrRowOffsetsType,
        index_type: bsrColIndType,
        base: idxBase,
        value_type: valueType,
        ..SparseMatrix::new(Format::Bsr { size: block, row_major }, (0, 0, 0))?
    };
    if bsrRowOffsetsType != bsrColIndType {
        return Err(Error::NotSupported("offsets and columns of blocks of different types"));
    }
    add(matrix, spMatDescr)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateBlockedEll(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    rows: i64,
    cols: i64,
    ellBlockSize: i64,
    ellCols: i64,
    ellColInd: *const c_void,
    ellValue: *const c_void,
    ellIdxType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let (block, ell_cols) = (size(ellBlockSize)?, size(ellCols)?);
    let matrix = SparseMatrix::new(Format::BlockedEll { size: block, ell_cols }, (rows, cols, 0))?;
    require(ell_cols <= matrix.cols, "more columns of blocks than columns")?;
    require(block > 0 || ell_cols == 0, "blocks of no size")?;
    require(block <= matrix.rows, "blocks larger than the matrix")?;
    let whole = |length: usize| block == 0 || length.is_multiple_of(block);
    require(whole(matrix.rows) && whole(matrix.cols) && whole(ell_cols), "not a number of whole blocks")?;
    let nnz = matrix.rows.checked_mul(ell_cols).ok_or(Error::InvalidValue("a matrix too large"))?;
    let matrix = SparseMatrix {
        nnz,
        indices: ellColInd.cast_mut(),
        values: ellValue.cast_mut(),
        offset_type: ellIdxType,
        index_type: ellIdxType,
        base: idxBase,
        value_type: valueType,
        ..matrix
    };
    add(matrix, spMatDescr)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseBlockedEllGet(
    spMatDescr: cusparseSpMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    ellBlockSize: Out<'_, i64>,
    ellCols: Out<'_, i64>,
    ellColInd: Out<'_, *mut c_void>,
    ellValue: Out<'_, *mut c_void>,
    ellIdxType: Out<'_, cusparseIndexType_t>,
    idxBase: Out<'_, cusparseIndexBase_t>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    let Format::BlockedEll { size, ell_cols } = matrix.format else {
        return Err(Error::InvalidValue("the matrix is of another format"));
    };
    rows.write(matrix.rows as i64);
    cols.write(matrix.cols as i64);
    ellBlockSize.write(size as i64);
    ellCols.write(ell_cols as i64);
    ellColInd.write(matrix.indices);
    ellValue.write(matrix.values);
    ellIdxType.write(matrix.index_type);
    idxBase.write(matrix.base);
    valueType.write(matrix.value_type);
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateSlicedEll(
    spMatDescr: Out<'_, cusparseSpMatDescr_t>,
    rows: i64,
    cols: i64,
    nnz: i64,
    sellValuesSize: i64,
    sliceSize: i64,
    sellSliceOffsets: *const c_void,
    sellColInd: *const c_void,
    sellValues: *const c_void,
    sellSliceOffsetsType: cusparseIndexType_t,
    sellColIndType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let (slice, values) = (size(sliceSize)?, size(sellValuesSize)?);
    let matrix = SparseMatrix::new(Format::SlicedEll { slice, values }, (rows, cols, nnz))?;
    check_entries(matrix.nnz, matrix.rows, matrix.cols)?;
    require(values >= matrix.nnz, "fewer values than entries")?;
    let matrix = SparseMatrix {
        offsets: sellSliceOffsets.cast_mut(),
        indices: sellColInd.cast_mut(),
        values: sellValues.cast_mut(),
        offset_type: sellSliceOffsetsType,
        index_type: sellColIndType,
        base: idxBase,
        value_type: valueType,
        ..matrix
    };
    add(matrix, spMatDescr)
}
