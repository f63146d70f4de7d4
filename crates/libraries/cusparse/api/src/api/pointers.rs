//! Sizes and arrays of a sparse matrix of any format, as CUDA 13's cusparse.h has them in structures of the format's own fields.

use border::Out;

use crate::Result;
use crate::descriptor::*;
use crate::error::require;
use crate::types::*;

pub fn cusparseSpMatGetSizes(
    spMatDescr: cusparseConstSpMatDescr_t,
    sizes: Out<'_, cusparseSpMatSizes_t>,
) -> Result {
    let matrix = SPARSE_MATRICES.get(spMatDescr)?;
    let (rows, cols, nnz) = (matrix.rows, matrix.cols, matrix.nnz);
    let told: &[usize] = match matrix.format {
        Format::Csr | Format::Csc | Format::Coo | Format::CooAoS => &[rows, cols, nnz],
        Format::Bsr { size, .. } => &[rows / size, cols / size, nnz / size / size, size, size],
        Format::BlockedEll { size, ell_cols } => &[rows, cols, size, ell_cols],
        Format::SlicedEll { slice, values } => &[rows, cols, nnz, values, slice],
    };
    let mut data = [0; 8];
    data.iter_mut().zip(told).for_each(|(to, size)| *to = *size as i64);
    sizes.write(cusparseSpMatSizes_t { format: matrix.format.number(), data });
    Ok(())
}

pub fn cusparseSpMatGetPointers(
    spMatDescr: cusparseSpMatDescr_t,
    pointers: Out<'_, cusparseSpMatPointers_t>,
) -> Result {
    let SparseMatrix { format, offsets, indices, values, .. } = SPARSE_MATRICES.get(spMatDescr)?;
    let mut data = [core::ptr::null_mut(); 8];
    match format {
        Format::BlockedEll { .. } => data[..2].copy_from_slice(&[indices, values]),
        _ => data[..3].copy_from_slice(&[offsets, indices, values]),
    }
    pointers.write(cusparseSpMatPointers_t { format: format.number(), data });
    Ok(())
}

/// The structure has to be of the matrix's format.
pub fn cusparseSpMatSetPointers(
    spMatDescr: cusparseSpMatDescr_t,
    pointers: &cusparseSpMatPointers_t,
) -> Result {
    let known = SPARSE_MATRICES.get(spMatDescr)?;
    require(pointers.format == known.format.number(), "the matrix is of another format")?;
    let data = pointers.data;
    SPARSE_MATRICES.change(spMatDescr, |matrix| match matrix.format {
        Format::BlockedEll { .. } => [matrix.indices, matrix.values] = [data[0], data[1]],
        _ => [matrix.offsets, matrix.indices, matrix.values] = [data[0], data[1], data[2]],
    })
}
