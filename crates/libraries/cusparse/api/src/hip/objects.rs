//! hipSPARSE's objects behind ours: those of dense matrices and of vectors are made for a call, those of sparse matrices stay, since an
//! analysis is kept by them.

use core::ffi::{c_int, c_uint, c_void};
use core::ptr;
use std::sync::Arc;

use once_cell::sync::OnceCell;
use parking_lot::Mutex;

use super::call::{call, check, must};
use super::calls;
use super::convert::{data_type, diag_type, fill_mode, index_base, index_type, matrix_type, order};
use super::library::Library;
use crate::api::legacy::Description;
use crate::descriptor::{DenseMatrix, DenseVector, Format, SparseMatrix, SparseVector};
use crate::types::*;
use crate::{Error, Result};

/// One of hipSPARSE's objects, which ends with this.
pub struct Made {
    library: &'static Library,
    raw: *mut c_void,
    destroy: usize,
}

// SAFETY: hipSPARSE's objects may be used by any thread, as cuSPARSE's one after the other.
unsafe impl Send for Made {}
// SAFETY: as above.
unsafe impl Sync for Made {}

impl Made {
    /// One that is made without arguments.
    pub fn new(library: &'static Library, create: usize, destroy: usize) -> Result<Made> {
        let found = library.find(create).ok_or(Error::NotSupported("this hipSPARSE has no such object"))?;
        // SAFETY: hipSPARSE's signature of all that make an object without arguments.
        let create: unsafe extern "C" fn(*mut *mut c_void) -> c_int = unsafe { core::mem::transmute(found) };
        // Of ROCm 5 some of them write nothing, and say that they succeeded.
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is writable.
        check(unsafe { create(&raw mut raw) })?;
        Ok(Made { library, raw, destroy })
    }

    pub fn raw(&self) -> *mut c_void {
        self.raw
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let Some(found) = self.library.find(self.destroy).filter(|_| !self.raw.is_null()) else { return };
        // SAFETY: hipSPARSE's signature of all that end an object.
        let destroy: unsafe extern "C" fn(*mut c_void) -> c_int = unsafe { core::mem::transmute(found) };
        // SAFETY: nobody else has it.
        if let Err(error) = check(unsafe { destroy(self.raw) }) {
            tracing::info!(target: "cudaway::sparse", "an object of hipSPARSE's ends: {error}");
        }
    }
}

/// An object that a function with arguments has made.
macro_rules! made {
    ($library:expr, $destroy:ident, $create:ident($($ty:ty = $value:expr),* $(,)?)) => {{
        let mut raw = ptr::null_mut();
        must!($library, $create(*mut *mut c_void = &mut raw, $($ty = $value),*))
            .map(|()| Made { library: $library, raw, destroy: calls::$destroy })
    }};
}

fn wide(size: usize) -> i64 {
    size as i64
}

pub fn dense_vector(library: &'static Library, vector: &DenseVector) -> Result<Made> {
    let ty = data_type(vector.value_type)?;
    made!(
        library,
        hipsparseDestroyDnVec,
        hipsparseCreateDnVec(i64 = wide(vector.size), *mut c_void = vector.values, c_uint = ty)
    )
}

pub fn sparse_vector(library: &'static Library, vector: &SparseVector) -> Result<Made> {
    let (indices, base) = (index_type(vector.index_type)?, index_base(vector.base)?);
    let ty = data_type(vector.value_type)?;
    made!(
        library,
        hipsparseDestroySpVec,
        hipsparseCreateSpVec(
            i64 = wide(vector.size),
            i64 = wide(vector.nnz),
            *mut c_void = vector.indices,
            *mut c_void = vector.values,
            c_uint = indices,
            c_uint = base,
            c_uint = ty
        )
    )
}

pub fn dense_matrix(library: &'static Library, matrix: &DenseMatrix) -> Result<Made> {
    let (ty, order) = (data_type(matrix.value_type)?, order(matrix.order, library.generation)?);
    let made = made!(
        library,
        hipsparseDestroyDnMat,
        hipsparseCreateDnMat(
            i64 = wide(matrix.rows),
            i64 = wide(matrix.cols),
            i64 = wide(matrix.ld),
            *mut c_void = matrix.values,
            c_uint = ty,
            c_uint = order
        )
    )?;
    if matrix.batches > 1 {
        must!(
            library,
            hipsparseDnMatSetStridedBatch(*mut c_void = made.raw(), c_int = matrix.batches, i64 = matrix.stride)
        )?;
    }
    Ok(made)
}

/// A sparse matrix, and what hipSPARSE was told of it.
pub struct Matrix {
    made: Made,
    told: Mutex<SparseMatrix>,
}

// SAFETY: addresses are numbers here.
unsafe impl Send for Matrix {}
// SAFETY: as above.
unsafe impl Sync for Matrix {}

impl Matrix {
    pub fn new(library: &'static Library, of: &SparseMatrix) -> Result<Matrix> {
        let (offsets, indices) = (index_type(of.offset_type)?, index_type(of.index_type)?);
        let (base, ty) = (index_base(of.base)?, data_type(of.value_type)?);
        let (rows, cols, nnz) = (wide(of.rows), wide(of.cols), wide(of.nnz));
        let made = match of.format {
            Format::Csr => made!(
                library,
                hipsparseDestroySpMat,
                hipsparseCreateCsr(
                    i64 = rows,
                    i64 = cols,
                    i64 = nnz,
                    *mut c_void = of.offsets,
                    *mut c_void = of.indices,
                    *mut c_void = of.values,
                    c_uint = offsets,
                    c_uint = indices,
                    c_uint = base,
                    c_uint = ty
                )
            ),
            Format::Csc => made!(
                library,
                hipsparseDestroySpMat,
                hipsparseCreateCsc(
                    i64 = rows,
                    i64 = cols,
                    i64 = nnz,
                    *mut c_void = of.offsets,
                    *mut c_void = of.indices,
                    *mut c_void = of.values,
                    c_uint = offsets,
                    c_uint = indices,
                    c_uint = base,
                    c_uint = ty
                )
            ),
            Format::Coo => made!(
                library,
                hipsparseDestroySpMat,
                hipsparseCreateCoo(
                    i64 = rows,
                    i64 = cols,
                    i64 = nnz,
                    *mut c_void = of.offsets,
                    *mut c_void = of.indices,
                    *mut c_void = of.values,
                    c_uint = indices,
                    c_uint = base,
                    c_uint = ty
                )
            ),
            Format::BlockedEll { size, ell_cols } => made!(
                library,
                hipsparseDestroySpMat,
                hipsparseCreateBlockedEll(
                    i64 = rows,
                    i64 = cols,
                    i64 = wide(size),
                    i64 = wide(ell_cols),
                    *mut c_void = of.indices,
                    *mut c_void = of.values,
                    c_uint = indices,
                    c_uint = base,
                    c_uint = ty
                )
            ),
            // Of ROCm 10 on, of which nothing was at hand to see what they mean there.
            Format::CooAoS | Format::Bsr { .. } | Format::SlicedEll { .. } => {
                return Err(Error::NotSupported("matrices of this format by hipSPARSE"));
            }
        }?;
        let matrix = Matrix { made, told: Mutex::new(*of) };
        if of.batches > 1 {
            matrix.set_batches(of)?;
        }
        matrix.set_attributes(of)?;
        Ok(matrix)
    }

    fn set_batches(&self, of: &SparseMatrix) -> Result {
        let strides = of.strides;
        match of.format {
            Format::Csr => must!(
                self.made.library,
                hipsparseCsrSetStridedBatch(
                    *mut c_void = self.raw(),
                    c_int = of.batches,
                    i64 = strides.offsets,
                    i64 = strides.values
                )
            ),
            Format::Coo => must!(
                self.made.library,
                hipsparseCooSetStridedBatch(*mut c_void = self.raw(), c_int = of.batches, i64 = strides.values)
            ),
            _ => Err(Error::NotSupported("batches of this format by hipSPARSE")),
        }
    }

    /// The triangle and its diagonal, where they are not those of a new matrix.
    fn set_attributes(&self, of: &SparseMatrix) -> Result {
        let fill = fill_mode(cusparseFillMode_t(of.attributes[0] as u32))?;
        let diagonal = diag_type(cusparseDiagType_t(of.attributes[1] as u32))?;
        for (attribute, value) in [(0, fill), (1, diagonal)] {
            if value != 0 {
                must!(
                    self.made.library,
                    hipsparseSpMatSetAttribute(
                        *mut c_void = self.raw(),
                        c_uint = attribute,
                        *const c_void = (&raw const value).cast(),
                        usize = size_of::<c_uint>()
                    )
                )?;
            }
        }
        Ok(())
    }

    pub fn raw(&self) -> *mut c_void {
        self.made.raw()
    }

    /// Whether it describes the same matrix, wherever that lies now; hipSPARSE is told where.
    pub fn follow(&self, now: &SparseMatrix) -> Result<bool> {
        let mut told = self.told.lock();
        let of = |matrix: &SparseMatrix| {
            let types = (matrix.offset_type, matrix.index_type, matrix.base, matrix.value_type);
            let strides = (matrix.strides.offsets, matrix.strides.indices, matrix.strides.values);
            let sizes = (matrix.rows, matrix.cols, matrix.nnz, matrix.batches, strides);
            (matrix.format, sizes, types, matrix.attributes)
        };
        if of(&told) != of(now) {
            return Ok(false);
        }
        let arrays = |matrix: &SparseMatrix| (matrix.offsets, matrix.indices, matrix.values);
        if arrays(&told) == arrays(now) {
            return Ok(true);
        }
        let (library, (offsets, indices, values)) = (self.made.library, arrays(now));
        let set = match now.format {
            Format::Csr => call!(
                library,
                hipsparseCsrSetPointers(
                    *mut c_void = self.raw(),
                    *mut c_void = offsets,
                    *mut c_void = indices,
                    *mut c_void = values
                )
            ),
            Format::Csc => call!(
                library,
                hipsparseCscSetPointers(
                    *mut c_void = self.raw(),
                    *mut c_void = offsets,
                    *mut c_void = indices,
                    *mut c_void = values
                )
            ),
            Format::Coo => call!(
                library,
                hipsparseCooSetPointers(
                    *mut c_void = self.raw(),
                    *mut c_void = offsets,
                    *mut c_void = indices,
                    *mut c_void = values
                )
            ),
            _ => None,
        };
        // A matrix that cannot be told is made again.
        let is_told = matches!(set, Some(Ok(())));
        if is_told {
            *told = *now;
        }
        Ok(is_told)
    }

    /// hipSPARSE has put places of its own in the arrays'.
    pub fn has_moved(&self) {
        let mut told = self.told.lock();
        // No array of a program's.
        told.offsets = ptr::dangling_mut::<u8>().cast();
    }

    /// How many entries hipSPARSE has found, which it knows from here on.
    pub fn entries(&self) -> Result<usize> {
        let (mut rows, mut cols, mut nnz) = (0, 0, 0);
        must!(
            self.made.library,
            hipsparseSpMatGetSize(
                *mut c_void = self.raw(),
                *mut i64 = &mut rows,
                *mut i64 = &mut cols,
                *mut i64 = &mut nnz
            )
        )?;
        let found = crate::descriptor::size(nnz)?;
        self.told.lock().nnz = found;
        Ok(found)
    }
}

/// What hipSPARSE's matrix is for: its analysis is of one operation in one type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Use {
    Vector(cusparseOperation_t, cudaDataType, cusparseSpMVAlg_t),
    Dense([cusparseOperation_t; 2], cudaDataType, cusparseSpMMAlg_t),
    Sampled([cusparseOperation_t; 2], cudaDataType),
    ToDense,
    FromDense,
}

/// hipSPARSE's matrices for one of ours, and the offsets of the last that an analysis has written.
#[derive(Default)]
pub struct Kept {
    matrices: Mutex<Vec<(Use, Arc<Matrix>)>>,
    /// Whose work areas have been sized for our own code: hipSPARSE would write behind their end.
    left: Mutex<Vec<Use>>,
    /// Where the offsets were of what an analysis of a dense matrix has counted, and where that lay.
    pub counted: Mutex<Option<(usize, usize)>>,
}

impl Kept {
    /// hipSPARSE has refused to say how large a work area is.
    pub fn leave(&self, what: Use) {
        let mut left = self.left.lock();
        if !left.contains(&what) {
            left.push(what);
        }
    }

    pub fn matrix(&self, library: &'static Library, what: Use, now: &SparseMatrix) -> Result<Arc<Matrix>> {
        if self.left.lock().contains(&what) {
            return Err(Error::NotSupported("hipSPARSE, which has not said how large the work area is"));
        }
        let mut matrices = self.matrices.lock();
        if let Some((_, matrix)) = matrices.iter().find(|(known, _)| *known == what)
            && matrix.follow(now)?
        {
            return Ok(Arc::clone(matrix));
        }
        let made = Arc::new(Matrix::new(library, now)?);
        matrices.retain(|(known, _)| *known != what);
        matrices.push((what, Arc::clone(&made)));
        Ok(made)
    }
}

/// hipSPARSE's descriptor behind one of typed calls, and what it was told.
#[derive(Default)]
pub struct KeptDescription {
    made: OnceCell<Made>,
    told: Mutex<Option<Description>>,
}

impl KeptDescription {
    pub fn tell(&self, library: &'static Library, now: Description) -> Result<*mut c_void> {
        let kind = matrix_type(now.kind)?;
        let (create, destroy) = (calls::hipsparseCreateMatDescr, calls::hipsparseDestroyMatDescr);
        let raw = self.made.get_or_try_init(|| Made::new(library, create, destroy))?.raw();
        let mut told = self.told.lock();
        if *told != Some(now) {
            let (fill, diagonal) = (fill_mode(now.fill)?, diag_type(now.diagonal)?);
            let base = index_base(now.base)?;
            must!(library, hipsparseSetMatType(*mut c_void = raw, c_uint = kind))?;
            must!(library, hipsparseSetMatFillMode(*mut c_void = raw, c_uint = fill))?;
            must!(library, hipsparseSetMatDiagType(*mut c_void = raw, c_uint = diagonal))?;
            must!(library, hipsparseSetMatIndexBase(*mut c_void = raw, c_uint = base))?;
            *told = Some(now);
        }
        Ok(raw)
    }
}
