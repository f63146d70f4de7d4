//! Descriptors of dense matrices. C's const forms are the same calls.

use core::ffi::{c_int, c_void};

use border::Out;

pub use self::cusparseCreateDnMat as cusparseCreateConstDnMat;
pub use self::cusparseDnMatGet as cusparseConstDnMatGet;
pub use self::cusparseDnMatGetValues as cusparseConstDnMatGetValues;
use crate::Result;
use crate::descriptor::*;
use crate::error::require;
use crate::types::*;

pub fn cusparseCreateDnMat(
    dnMatDescr: Out<'_, cusparseDnMatDescr_t>,
    rows: i64,
    cols: i64,
    ld: i64,
    values: *const c_void,
    valueType: cudaDataType,
    order: cusparseOrder_t,
) -> Result {
    let (rows, cols, ld) = (size(rows)?, size(cols)?, size(ld)?);
    check_value(valueType)?;
    check_order(order)?;
    let line = if order == cusparseOrder_t::CUSPARSE_ORDER_ROW { cols } else { rows };
    require(ld >= line, "lines are longer than the leading dimension")?;
    dnMatDescr.write(DENSE_MATRICES.add(DenseMatrix {
        rows,
        cols,
        ld,
        values: values.cast_mut(),
        value_type: valueType,
        order,
        batches: 1,
        stride: 0,
    }));
    Ok(())
}

pub fn cusparseDestroyDnMat(dnMatDescr: cusparseConstDnMatDescr_t) -> Result {
    DENSE_MATRICES.remove(dnMatDescr)
}

pub fn cusparseDnMatGet(
    dnMatDescr: cusparseDnMatDescr_t,
    rows: Out<'_, i64>,
    cols: Out<'_, i64>,
    ld: Out<'_, i64>,
    values: Out<'_, *mut c_void>,
    type_: Out<'_, cudaDataType>,
    order: Out<'_, cusparseOrder_t>,
) -> Result {
    let matrix = DENSE_MATRICES.get(dnMatDescr)?;
    rows.write(matrix.rows as i64);
    cols.write(matrix.cols as i64);
    ld.write(matrix.ld as i64);
    values.write(matrix.values);
    type_.write(matrix.value_type);
    order.write(matrix.order);
    Ok(())
}

pub fn cusparseDnMatGetValues(dnMatDescr: cusparseDnMatDescr_t, values: Out<'_, *mut c_void>) -> Result {
    values.write(DENSE_MATRICES.get(dnMatDescr)?.values);
    Ok(())
}

pub fn cusparseDnMatSetValues(dnMatDescr: cusparseDnMatDescr_t, values: *mut c_void) -> Result {
    DENSE_MATRICES.change(dnMatDescr, |matrix| matrix.values = values)
}

/// A stride of 0 is the same matrix in all of the batch.
pub fn cusparseDnMatSetStridedBatch(
    dnMatDescr: cusparseDnMatDescr_t,
    batchCount: c_int,
    batchStride: i64,
) -> Result {
    let matrix = DENSE_MATRICES.get(dnMatDescr)?;
    require(batchCount > 0, "a batch of none")?;
    let lines = if matrix.order == cusparseOrder_t::CUSPARSE_ORDER_ROW { matrix.rows } else { matrix.cols };
    let all = matrix.ld.saturating_mul(lines);
    require(batchCount == 1 || batchStride == 0 || size(batchStride)? >= all, "matrices of a batch overlap")?;
    DENSE_MATRICES.change(dnMatDescr, |matrix| (matrix.batches, matrix.stride) = (batchCount, batchStride))
}

pub fn cusparseDnMatGetStridedBatch(
    dnMatDescr: cusparseConstDnMatDescr_t,
    batchCount: Out<'_, c_int>,
    batchStride: Out<'_, i64>,
) -> Result {
    let matrix = DENSE_MATRICES.get(dnMatDescr)?;
    batchCount.write(matrix.batches);
    batchStride.write(matrix.stride);
    Ok(())
}
