//! One format to another. Source: cuSPARSE manual, "Format Conversion", `cusparseSparseToDense`, `cusparseDenseToSparse`,
//! `cusparseCsr2cscEx2`.

use core::ffi::{c_int, c_void};

use border::Out;
use cusparse_cpu::{Dense, Entries, Index, Scalar, is_entry};
use kit::far::{self, Extent};

use crate::descriptor::*;
use crate::error::require;
use crate::handle;
use crate::hip::generic::Conversion;
use crate::hip::objects::Kept;
use crate::memory::*;
use crate::types::*;
use crate::{Error, Result};

/// A work area of this size tells a call that computes from one that asks for it: `cudaMalloc` of 0 bytes gives NULL.
pub const SOME: usize = 16;

#[derive(Clone, Copy)]
struct Pair {
    sparse: SparseMatrix,
    dense: DenseMatrix,
}

kit::addresses! { Pair { sparse, dense } }

fn conversion<'a>(kept: &'a Kept, Pair { sparse, dense }: &'a Pair) -> Conversion<'a> {
    Conversion { kept, sparse, dense }
}

fn pair(sparse: cusparseSpMatDescr_t, dense: cusparseDnMatDescr_t) -> Result<Pair> {
    let (sparse, dense) = (SPARSE_MATRICES.get(sparse)?, DENSE_MATRICES.get(dense)?);
    require(sparse.rows == dense.rows && sparse.cols == dense.cols, "matrices of different sizes")?;
    require(sparse.value_type == dense.value_type, "matrices of different types")?;
    if sparse.batches > 1 || dense.batches > 1 {
        return Err(Error::NotSupported("conversions of batches"));
    }
    check_dense_matrix(&dense)?;
    Ok(Pair { sparse, dense })
}

fn to_dense(
    matA: cusparseSpMatDescr_t,
    matB: cusparseDnMatDescr_t,
    alg: cusparseSparseToDenseAlg_t,
) -> Result<Pair> {
    let pair = pair(matA, matB)?;
    let default = cusparseSparseToDenseAlg_t::CUSPARSE_SPARSETODENSE_ALG_DEFAULT;
    require(alg == default, "there is no such algorithm")?;
    if matches!(pair.sparse.format, Format::SlicedEll { .. } | Format::CooAoS) {
        return Err(Error::NotSupported("this format to dense"));
    }
    check_matrix(&pair.sparse)?;
    Ok(pair)
}

pub fn cusparseSparseToDense_bufferSize(
    handle: cusparseHandle_t,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseDnMatDescr_t,
    alg: cusparseSparseToDenseAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let pair = to_dense(matA, matB, alg)?;
    let entry = SPARSE_MATRICES.entry(matA)?;
    let bytes = |hip| conversion(&entry.kept, &pair).dense_bytes(&hip);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), bytes)?);
    Ok(())
}

/// # Safety
/// The arrays are there as the manual says of them: those of the device's until the stream has done the work, those of the host's while
/// the call lasts.
pub unsafe fn cusparseSparseToDense(
    handle: cusparseHandle_t,
    matA: cusparseConstSpMatDescr_t,
    matB: cusparseDnMatDescr_t,
    alg: cusparseSparseToDenseAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let pair = to_dense(matA, matB, alg)?;
    let compute =
        natural_compute(pair.sparse.value_type).ok_or(Error::NotSupported("this type of values"))?;
    if let Some(hip) = context.hip(true)? {
        let entry = SPARSE_MATRICES.entry(matA)?;
        if conversion(&entry.kept, &pair).to_dense(&hip, externalBuffer)? {
            return Ok(());
        }
    }
    context.enqueue(pair, move |Pair { sparse, dense }| {
        compute!(compute, C => index!(sparse.index_type, I => {
            // SAFETY: cuSPARSE's contract: what the descriptors say is there until the stream has come here.
            unsafe {
                let (a, is_transposed) = matrix::<C, I>(&sparse, 0);
                let sums = cusparse_cpu::to_dense(&a, is_transposed);
                blend(dense.values, dense.value_type, dense.layout(), &sums, (C::ONE, C::ZERO));
            }
        }))
    })
}

fn to_sparse(
    matA: cusparseDnMatDescr_t,
    matB: cusparseSpMatDescr_t,
    alg: cusparseDenseToSparseAlg_t,
) -> Result<Pair> {
    let pair = pair(matB, matA)?;
    let default = cusparseDenseToSparseAlg_t::CUSPARSE_DENSETOSPARSE_ALG_DEFAULT;
    require(alg == default, "there is no such algorithm")?;
    match pair.sparse.format {
        Format::SlicedEll { .. } | Format::Bsr { .. } | Format::CooAoS => {
            Err(Error::NotSupported("dense to this format"))
        }
        // Which blocks there are is the caller's, and is there already.
        Format::BlockedEll { .. } => check_matrix(&pair.sparse).map(|()| pair),
        _ => Ok(pair),
    }
}

pub fn cusparseDenseToSparse_bufferSize(
    handle: cusparseHandle_t,
    matA: cusparseConstDnMatDescr_t,
    matB: cusparseSpMatDescr_t,
    alg: cusparseDenseToSparseAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    let context = handle::get(handle)?;
    context.can_compute()?;
    let pair = to_sparse(matA, matB, alg)?;
    let entry = SPARSE_MATRICES.entry(matB)?;
    let bytes = |hip| conversion(&entry.kept, &pair).sparse_bytes(&hip);
    bufferSize.write(context.hip(false)?.map_or(Ok(0), bytes)?.max(SOME));
    Ok(())
}

/// Waits for the stream: the count of entries is the descriptor's from here on.
///
/// # Safety
/// As [`cusparseSparseToDense`].
pub unsafe fn cusparseDenseToSparse_analysis(
    handle: cusparseHandle_t,
    matA: cusparseConstDnMatDescr_t,
    matB: cusparseSpMatDescr_t,
    alg: cusparseDenseToSparseAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let pair = to_sparse(matA, matB, alg)?;
    let Pair { sparse, dense } = pair;
    if matches!(sparse.format, Format::BlockedEll { .. }) {
        return context.can_compute();
    }
    if let Some(hip) = context.hip(true)? {
        let entry = SPARSE_MATRICES.entry(matB)?;
        if let Some(nnz) = conversion(&entry.kept, &pair).count(&hip, externalBuffer)? {
            return SPARSE_MATRICES.change(matB, |matrix| matrix.nnz = nnz);
        }
    }
    let nnz = context.now(dense, |dense| {
        element!(dense.value_type, E => {
            let layout = dense.layout();
            // SAFETY: cuSPARSE's contract: the matrix is there; the stream has nothing to do any more.
            let values = unsafe { slice::<E>(dense.values, layout.len()) };
            Entries::Dense(Dense { layout, values }).count(is_entry).iter().sum()
        })
    })?;
    SPARSE_MATRICES.change(matB, |matrix| matrix.nnz = nnz)
}

/// # Safety
/// As [`cusparseSparseToDense`].
pub unsafe fn cusparseDenseToSparse_convert(
    handle: cusparseHandle_t,
    matA: cusparseConstDnMatDescr_t,
    matB: cusparseSpMatDescr_t,
    alg: cusparseDenseToSparseAlg_t,
    externalBuffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let pair = to_sparse(matA, matB, alg)?;
    check_matrix(&pair.sparse)?;
    if let Some(hip) = context.hip(true)? {
        let entry = SPARSE_MATRICES.entry(matB)?;
        if conversion(&entry.kept, &pair).to_sparse(&hip, externalBuffer)? {
            return Ok(());
        }
    }
    context.enqueue(pair, |pair| {
        element!(pair.dense.value_type, E => index!(pair.sparse.index_type, I => {
            // SAFETY: as in `cusparseSparseToDense`.
            unsafe { write_sparse::<E, I>(&pair) }
        }))
    })
}

/// # Safety
/// As [`matrix`], and nobody else uses the sparse one's arrays.
unsafe fn write_sparse<E: cusparse_cpu::Element, I: Index>(Pair { sparse, dense }: &Pair) {
    let layout = dense.layout();
    // SAFETY: the caller's promise.
    let dense = Dense { layout, values: unsafe { slice::<E>(dense.values, layout.len()) } };
    let (n_offsets, n_indices, n_values) = counts(sparse).unwrap_or_default();
    // SAFETY: as above.
    let values = unsafe { slice_mut::<E>(sparse.values, n_values) };
    let base = sparse.base.0 as usize;
    if let Format::BlockedEll { size, ell_cols } = sparse.format {
        // SAFETY: as above.
        let indices = unsafe { slice::<I>(sparse.indices, n_indices) };
        for (at, value) in values.iter_mut().enumerate() {
            let (row, within) = (at / ell_cols, at % ell_cols);
            let block = indices[row / size * (ell_cols / size) + within / size].place(base);
            let is_padding = (block as isize) < 0;
            let column = || block * size + within % size;
            *value = if is_padding { E::default() } else { dense.get(row, column()) };
        }
        return;
    }
    // By columns it is the transposed matrix by rows.
    let dense = if sparse.format == Format::Csc { dense.transposed() } else { dense };
    // SAFETY: as above.
    let indices = unsafe { slice_mut::<I>(sparse.indices, n_indices) };
    if sparse.format == Format::Coo {
        // SAFETY: as above.
        let rows = unsafe { slice_mut::<I>(sparse.offsets, n_offsets) };
        let mut at = 0;
        Entries::Dense(dense).each(is_entry, |row, column, value| {
            (rows[at], indices[at], values[at]) = (I::number(row, base), I::number(column, base), value);
            at += 1;
        });
        return;
    }
    let mut at = 0;
    Entries::Dense(dense).each(is_entry, |_, column, value| {
        (indices[at], values[at]) = (I::number(column, base), value);
        at += 1;
    });
    index!(sparse.offset_type, O => {
        // SAFETY: as above.
        let offsets = unsafe { slice_mut::<O>(sparse.offsets, n_offsets) };
        cusparse_cpu::offsets_of(&Entries::Dense(dense).count(is_entry), base, offsets);
    });
}

/// What CSR to CSC is of.
#[derive(Clone, Copy)]
pub(super) struct Turn {
    sizes: (usize, usize, usize),
    values: *const c_void,
    offsets: *const c_int,
    indices: *const c_int,
    to_values: *mut c_void,
    to_offsets: *mut c_int,
    to_indices: *mut c_int,
    bytes: usize,
    is_numeric: bool,
    base: usize,
}

// SAFETY: addresses and numbers.
unsafe impl kit::Addresses for Turn {
    fn near(mut self) -> kit::Result<Self> {
        let (rows, cols, count) = self.sizes;
        let (row_offsets, column_offsets) = (Extent::of::<c_int>(rows + 1), Extent::of::<c_int>(cols + 1));
        let (indices, values) = (Extent::of::<c_int>(count), Extent::bytes(count * self.bytes));
        self.offsets = far::near(self.offsets.cast_mut(), row_offsets)?.cast_const();
        self.to_offsets = far::near(self.to_offsets, column_offsets)?;
        self.indices = far::near(self.indices.cast_mut(), indices)?.cast_const();
        self.to_indices = far::near(self.to_indices, indices)?;
        if self.is_numeric {
            self.values = far::near(self.values.cast_mut(), values)?.cast_const();
            self.to_values = far::near(self.to_values, values)?;
        }
        Ok(self)
    }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
fn turn(
    (m, n, nnz): (c_int, c_int, c_int),
    csrVal: *const c_void,
    csrRowPtr: *const c_int,
    csrColInd: *const c_int,
    cscVal: *mut c_void,
    cscColPtr: *mut c_int,
    cscRowInd: *mut c_int,
    valType: cudaDataType,
    copyValues: cusparseAction_t,
    idxBase: cusparseIndexBase_t,
) -> Result<Turn> {
    let sizes @ (rows, cols, count) = (size(m.into())?, size(n.into())?, size(nnz.into())?);
    let bytes = value_bytes(valType).ok_or(Error::InvalidValue("there is no such type of values"))?;
    require(copyValues <= cusparseAction_t::CUSPARSE_ACTION_NUMERIC, "there is no such action")?;
    check_base(idxBase)?;
    let is_numeric = copyValues == cusparseAction_t::CUSPARSE_ACTION_NUMERIC;
    check_array(csrRowPtr.cast(), if rows == 0 { 0 } else { rows + 1 }, 4)?;
    check_array(cscColPtr.cast(), if cols == 0 { 0 } else { cols + 1 }, 4)?;
    check_array(csrColInd.cast(), count, 4)?;
    check_array(cscRowInd.cast(), count, 4)?;
    if is_numeric {
        check_values(csrVal, count, valType)?;
        check_values(cscVal, count, valType)?;
    }
    let base = idxBase.0 as usize;
    Ok(Turn {
        sizes,
        values: csrVal,
        offsets: csrRowPtr,
        indices: csrColInd,
        to_values: cscVal,
        to_offsets: cscColPtr,
        to_indices: cscRowInd,
        bytes,
        is_numeric,
        base,
    })
}

impl Turn {
    /// Of where entries are alone.
    pub(super) fn of_pattern(
        sizes: (c_int, c_int, c_int),
        (offsets, indices): (*const c_int, *const c_int),
        (to_offsets, to_indices): (*mut c_int, *mut c_int),
        base: cusparseIndexBase_t,
    ) -> Result<Turn> {
        let (from, to) = (core::ptr::null(), core::ptr::null_mut());
        let symbolic = cusparseAction_t::CUSPARSE_ACTION_SYMBOLIC;
        turn(
            sizes,
            from,
            offsets,
            indices,
            to,
            to_offsets,
            to_indices,
            cudaDataType::CUDA_R_32F,
            symbolic,
            base,
        )
    }

    /// # Safety
    /// All that it says is there, and nobody else uses what is written.
    unsafe fn run<T: Copy>(self) {
        let nnz = self.sizes.2;
        // SAFETY: the caller's promise.
        unsafe {
            let values = self.is_numeric.then(|| slice::<T>(self.values, nnz));
            self.run_with(values, self.is_numeric.then(|| slice_mut::<T>(self.to_values, nnz)));
        }
    }

    /// The same with values of the caller's.
    ///
    /// # Safety
    /// As [`Turn::run`].
    pub(super) unsafe fn run_with<T: Copy>(self, values: Option<&[T]>, to_values: Option<&mut [T]>) {
        let (rows, cols, nnz) = self.sizes;
        let none = vec![self.base as c_int; rows + 1];
        // SAFETY: the caller's promise.
        unsafe {
            let offsets = if self.offsets.is_null() { &none } else { slice(self.offsets.cast(), rows + 1) };
            let to_offsets =
                slice_mut(self.to_offsets.cast(), if self.to_offsets.is_null() { 0 } else { cols + 1 });
            cusparse_cpu::transpose_arrays(
                (rows, cols, self.base),
                (offsets, slice::<c_int>(self.indices.cast(), nnz), values),
                (to_offsets, slice_mut(self.to_indices.cast(), nnz), to_values),
            );
        }
    }
}

#[expect(clippy::too_many_arguments, reason = "C's")]
pub fn cusparseCsr2cscEx2_bufferSize(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    csrVal: *const c_void,
    csrRowPtr: *const c_int,
    csrColInd: *const c_int,
    cscVal: *mut c_void,
    cscColPtr: *mut c_int,
    cscRowInd: *mut c_int,
    valType: cudaDataType,
    copyValues: cusparseAction_t,
    idxBase: cusparseIndexBase_t,
    _alg: cusparseCsr2CscAlg_t,
    bufferSize: Out<'_, usize>,
) -> Result {
    handle::get(handle)?.can_compute()?;
    let sizes = (m, n, nnz);
    turn(sizes, csrVal, csrRowPtr, csrColInd, cscVal, cscColPtr, cscRowInd, valType, copyValues, idxBase)?;
    bufferSize.write(SOME);
    Ok(())
}

/// # Safety
/// As [`cusparseSparseToDense`].
#[expect(clippy::too_many_arguments, reason = "C's")]
pub unsafe fn cusparseCsr2cscEx2(
    handle: cusparseHandle_t,
    m: c_int,
    n: c_int,
    nnz: c_int,
    csrVal: *const c_void,
    csrRowPtr: *const c_int,
    csrColInd: *const c_int,
    cscVal: *mut c_void,
    cscColPtr: *mut c_int,
    cscRowInd: *mut c_int,
    valType: cudaDataType,
    copyValues: cusparseAction_t,
    idxBase: cusparseIndexBase_t,
    _alg: cusparseCsr2CscAlg_t,
    _buffer: *mut c_void,
) -> Result {
    let context = handle::get(handle)?;
    let sizes = (m, n, nnz);
    let turn = turn(
        sizes, csrVal, csrRowPtr, csrColInd, cscVal, cscColPtr, cscRowInd, valType, copyValues, idxBase,
    )?;
    // A copy knows values by their bytes and alignment alone.
    context.enqueue(turn, |turn| {
        // SAFETY: cuSPARSE's contract: the arrays are there until the stream has come here.
        unsafe {
            match turn.bytes {
                1 => turn.run::<u8>(),
                2 => turn.run::<u16>(),
                4 => turn.run::<[u16; 2]>(),
                8 => turn.run::<[u32; 2]>(),
                _ => turn.run::<[u64; 2]>(),
            }
        }
    })
}
