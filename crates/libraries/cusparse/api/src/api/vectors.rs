//! Descriptors of vectors. C's const forms are the same calls.

use core::ffi::c_void;

use border::Out;

pub use self::cusparseCreateDnVec as cusparseCreateConstDnVec;
pub use self::cusparseCreateSpVec as cusparseCreateConstSpVec;
pub use self::cusparseDnVecGet as cusparseConstDnVecGet;
pub use self::cusparseDnVecGetValues as cusparseConstDnVecGetValues;
pub use self::cusparseSpVecGet as cusparseConstSpVecGet;
pub use self::cusparseSpVecGetValues as cusparseConstSpVecGetValues;
use crate::Result;
use crate::descriptor::*;
use crate::error::require;
use crate::types::*;

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCreateSpVec(
    spVecDescr: Out<'_, cusparseSpVecDescr_t>,
    size_: i64,
    nnz: i64,
    indices: *const c_void,
    values: *const c_void,
    idxType: cusparseIndexType_t,
    idxBase: cusparseIndexBase_t,
    valueType: cudaDataType,
) -> Result {
    let (size, nnz) = (size(size_)?, size(nnz)?);
    require(nnz <= size, "more entries than places")?;
    check_index(idxType)?;
    check_base(idxBase)?;
    check_value(valueType)?;
    spVecDescr.write(SPARSE_VECTORS.add(SparseVector {
        size,
        nnz,
        indices: indices.cast_mut(),
        values: values.cast_mut(),
        index_type: idxType,
        base: idxBase,
        value_type: valueType,
    }));
    Ok(())
}

pub fn cusparseDestroySpVec(spVecDescr: cusparseConstSpVecDescr_t) -> Result {
    SPARSE_VECTORS.remove(spVecDescr)
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseSpVecGet(
    spVecDescr: cusparseSpVecDescr_t,
    size: Out<'_, i64>,
    nnz: Out<'_, i64>,
    indices: Out<'_, *mut c_void>,
    values: Out<'_, *mut c_void>,
    idxType: Out<'_, cusparseIndexType_t>,
    idxBase: Out<'_, cusparseIndexBase_t>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let vector = SPARSE_VECTORS.get(spVecDescr)?;
    size.write(vector.size as i64);
    nnz.write(vector.nnz as i64);
    indices.write(vector.indices);
    values.write(vector.values);
    idxType.write(vector.index_type);
    idxBase.write(vector.base);
    valueType.write(vector.value_type);
    Ok(())
}

pub fn cusparseSpVecGetIndexBase(
    spVecDescr: cusparseConstSpVecDescr_t,
    idxBase: Out<'_, cusparseIndexBase_t>,
) -> Result {
    idxBase.write(SPARSE_VECTORS.get(spVecDescr)?.base);
    Ok(())
}

pub fn cusparseSpVecGetValues(spVecDescr: cusparseSpVecDescr_t, values: Out<'_, *mut c_void>) -> Result {
    values.write(SPARSE_VECTORS.get(spVecDescr)?.values);
    Ok(())
}

pub fn cusparseSpVecSetValues(spVecDescr: cusparseSpVecDescr_t, values: *mut c_void) -> Result {
    SPARSE_VECTORS.change(spVecDescr, |vector| vector.values = values)
}

pub fn cusparseCreateDnVec(
    dnVecDescr: Out<'_, cusparseDnVecDescr_t>,
    size_: i64,
    values: *const c_void,
    valueType: cudaDataType,
) -> Result {
    let size = size(size_)?;
    check_value(valueType)?;
    dnVecDescr.write(DENSE_VECTORS.add(DenseVector {
        size,
        values: values.cast_mut(),
        value_type: valueType,
    }));
    Ok(())
}

pub fn cusparseDestroyDnVec(dnVecDescr: cusparseConstDnVecDescr_t) -> Result {
    DENSE_VECTORS.remove(dnVecDescr)
}

pub fn cusparseDnVecGet(
    dnVecDescr: cusparseDnVecDescr_t,
    size: Out<'_, i64>,
    values: Out<'_, *mut c_void>,
    valueType: Out<'_, cudaDataType>,
) -> Result {
    let vector = DENSE_VECTORS.get(dnVecDescr)?;
    size.write(vector.size as i64);
    values.write(vector.values);
    valueType.write(vector.value_type);
    Ok(())
}

pub fn cusparseDnVecGetValues(dnVecDescr: cusparseDnVecDescr_t, values: Out<'_, *mut c_void>) -> Result {
    values.write(DENSE_VECTORS.get(dnVecDescr)?.values);
    Ok(())
}

pub fn cusparseDnVecSetValues(dnVecDescr: cusparseDnVecDescr_t, values: *mut c_void) -> Result {
    DENSE_VECTORS.change(dnVecDescr, |vector| vector.values = values)
}
