//! What the generic calls take beside a handle: vectors and matrices, where they lie and how. Source: cuSPARSE manual, "Generic APIs
//! Reference"; the checks are those of NVIDIA's library, which needs no GPU for them.
//!
//! The rule: a descriptor never looks at the memory that it describes, so any pointer may be NULL.

use core::ffi::{c_int, c_void};
use std::sync::Arc;

use kit::Registry;
use parking_lot::Mutex;

use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

/// Types that a descriptor may have, and the bytes of a value.
pub fn value_bytes(ty: cudaDataType) -> Option<usize> {
    Some(match ty {
        cudaDataType::CUDA_R_8I => 1,
        cudaDataType::CUDA_R_16F | cudaDataType::CUDA_R_16BF => 2,
        cudaDataType::CUDA_R_32F
        | cudaDataType::CUDA_R_32I
        | cudaDataType::CUDA_C_16F
        | cudaDataType::CUDA_C_16BF => 4,
        cudaDataType::CUDA_R_64F | cudaDataType::CUDA_C_32F => 8,
        cudaDataType::CUDA_C_64F => 16,
        _ => return None,
    })
}

pub fn check_value(ty: cudaDataType) -> Result {
    require(value_bytes(ty).is_some(), "there is no such type of values")
}

pub fn check_index(ty: cusparseIndexType_t) -> Result {
    let known = cusparseIndexType_t::CUSPARSE_INDEX_16U..=cusparseIndexType_t::CUSPARSE_INDEX_64I;
    require(known.contains(&ty), "there is no such type of indices")
}

pub fn check_base(base: cusparseIndexBase_t) -> Result {
    require(base <= cusparseIndexBase_t::CUSPARSE_INDEX_BASE_ONE, "there is no such base")
}

pub fn check_order(order: cusparseOrder_t) -> Result {
    let known = cusparseOrder_t::CUSPARSE_ORDER_COL..=cusparseOrder_t::CUSPARSE_ORDER_ROW;
    require(known.contains(&order), "there is no such order")
}

/// A size that is not negative.
pub fn size(value: i64) -> Result<usize> {
    usize::try_from(value).map_err(|_| Error::InvalidValue("a size below 0"))
}

/// More entries than places are refused.
pub fn check_entries(entries: usize, rows: usize, cols: usize) -> Result {
    let places = rows.checked_mul(cols).ok_or(Error::InvalidValue("too many places"))?;
    require(entries <= places, "more entries than places")
}

#[derive(Clone, Copy)]
pub struct SparseVector {
    pub size: usize,
    pub nnz: usize,
    pub indices: *mut c_void,
    pub values: *mut c_void,
    pub index_type: cusparseIndexType_t,
    pub base: cusparseIndexBase_t,
    pub value_type: cudaDataType,
}

#[derive(Clone, Copy)]
pub struct DenseVector {
    pub size: usize,
    pub values: *mut c_void,
    pub value_type: cudaDataType,
}

#[derive(Clone, Copy)]
pub struct DenseMatrix {
    pub rows: usize,
    pub cols: usize,
    pub ld: usize,
    pub values: *mut c_void,
    pub value_type: cudaDataType,
    pub order: cusparseOrder_t,
    pub batches: c_int,
    pub stride: i64,
}

impl DenseMatrix {
    pub fn layout(&self) -> cusparse_cpu::Layout {
        let row_major = self.order == cusparseOrder_t::CUSPARSE_ORDER_ROW;
        cusparse_cpu::Layout { rows: self.rows, cols: self.cols, ld: self.ld, row_major }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Csr,
    Csc,
    Coo,
    /// Of 11 alone: row and column of an entry lie together.
    CooAoS,
    /// Of square blocks.
    Bsr {
        size: usize,
        row_major: bool,
    },
    BlockedEll {
        size: usize,
        ell_cols: usize,
    },
    SlicedEll {
        slice: usize,
        values: usize,
    },
}

impl Format {
    /// Entries lie row by row. Of coordinates cuSPARSE asks for it.
    pub fn has_rows_in_order(self) -> bool {
        matches!(self, Format::Csr | Format::Coo)
    }

    pub fn number(self) -> cusparseFormat_t {
        match self {
            Format::Csr => cusparseFormat_t::CUSPARSE_FORMAT_CSR,
            Format::Csc => cusparseFormat_t::CUSPARSE_FORMAT_CSC,
            Format::Coo => cusparseFormat_t::CUSPARSE_FORMAT_COO,
            Format::CooAoS => cusparseFormat_t::CUSPARSE_FORMAT_COO_AOS,
            Format::Bsr { .. } => cusparseFormat_t::CUSPARSE_FORMAT_BSR,
            Format::BlockedEll { .. } => cusparseFormat_t::CUSPARSE_FORMAT_BLOCKED_ELL,
            Format::SlicedEll { .. } => cusparseFormat_t::CUSPARSE_FORMAT_SLICED_ELLPACK,
        }
    }
}

/// From each matrix of a batch to the next.
#[derive(Clone, Copy, Default)]
pub struct Strides {
    pub offsets: i64,
    pub indices: i64,
    pub values: i64,
}

#[derive(Clone, Copy)]
pub struct SparseMatrix {
    pub format: Format,
    pub rows: usize,
    pub cols: usize,
    /// Stored entries, without the padding of slices.
    pub nnz: usize,
    /// Of rows, columns or slices; of coordinates the row numbers.
    pub offsets: *mut c_void,
    pub indices: *mut c_void,
    pub values: *mut c_void,
    pub offset_type: cusparseIndexType_t,
    pub index_type: cusparseIndexType_t,
    pub base: cusparseIndexBase_t,
    pub value_type: cudaDataType,
    pub batches: c_int,
    pub strides: Strides,
    /// By their numbers: fill mode, type of diagonal, storage, symmetry.
    pub attributes: [c_int; 4],
}

impl SparseMatrix {
    pub fn new(format: Format, (rows, cols, nnz): (i64, i64, i64)) -> Result<SparseMatrix> {
        Ok(SparseMatrix {
            format,
            rows: size(rows)?,
            cols: size(cols)?,
            nnz: size(nnz)?,
            offsets: core::ptr::null_mut(),
            indices: core::ptr::null_mut(),
            values: core::ptr::null_mut(),
            offset_type: cusparseIndexType_t::CUSPARSE_INDEX_32I,
            index_type: cusparseIndexType_t::CUSPARSE_INDEX_32I,
            base: cusparseIndexBase_t::default(),
            value_type: cudaDataType::CUDA_R_32F,
            batches: 1,
            strides: Strides::default(),
            attributes: [0; 4],
        })
    }

    pub fn require_format(&self, format: cusparseFormat_t) -> Result {
        require(self.format.number() == format, "the matrix is of another format")
    }

    pub fn is_upper(&self) -> bool {
        self.attributes[0] == cusparseFillMode_t::CUSPARSE_FILL_MODE_UPPER.0 as c_int
    }

    pub fn is_unit(&self) -> bool {
        self.attributes[1] == cusparseDiagType_t::CUSPARSE_DIAG_TYPE_UNIT.0 as c_int
    }
}

/// What lies behind descriptors and infos of one kind. Such a handle is an invalid value where it is NULL or none.
pub struct Descriptors<T>(Registry<T>);

impl<T> Descriptors<T> {
    pub const fn new() -> Descriptors<T> {
        Descriptors(Registry::new())
    }

    pub fn add<Handle>(&self, value: T) -> *mut Handle {
        self.0.add(value)
    }

    pub fn get<Handle>(&self, handle: *mut Handle) -> Result<Arc<T>> {
        require(!handle.is_null(), "a descriptor is NULL")?;
        self.0.get(handle).map_err(|_| Error::InvalidValue("a descriptor that is none"))
    }

    /// NULL is no error.
    pub fn remove<Handle>(&self, handle: *mut Handle) -> Result {
        if !handle.is_null() {
            self.0.remove(handle).map_err(|_| Error::InvalidValue("a descriptor that is none"))?;
        }
        Ok(())
    }
}

/// Those of vectors and matrices; they hold addresses of the program's, which are numbers here.
/// Beside each something may be kept, as long as it is there.
pub struct Known<T, K = ()>(Descriptors<Entry<T, K>>);

pub struct Entry<T, K> {
    value: Mutex<T>,
    pub kept: K,
}

// SAFETY: addresses are numbers until the work that was asked for follows them.
unsafe impl<T, K: Send + Sync> Sync for Known<T, K> {}

impl<T: Copy, K: Default> Known<T, K> {
    pub const fn new() -> Known<T, K> {
        Known(Descriptors::new())
    }

    pub fn add<Handle>(&self, value: T) -> *mut Handle {
        self.0.add(Entry { value: Mutex::new(value), kept: K::default() })
    }

    /// What is kept beside it.
    pub fn entry<Handle>(&self, handle: *mut Handle) -> Result<Arc<Entry<T, K>>> {
        self.0.get(handle)
    }

    pub fn get<Handle>(&self, handle: *mut Handle) -> Result<T> {
        self.change(handle, |value| *value)
    }

    pub fn change<Handle, R>(&self, handle: *mut Handle, change: impl FnOnce(&mut T) -> R) -> Result<R> {
        Ok(change(&mut self.0.get(handle)?.value.lock()))
    }

    pub fn remove<Handle>(&self, handle: *mut Handle) -> Result {
        self.0.remove(handle)
    }
}

pub static SPARSE_VECTORS: Known<SparseVector> = Known::new();
pub static DENSE_VECTORS: Known<DenseVector> = Known::new();
pub static SPARSE_MATRICES: Known<SparseMatrix, crate::hip::objects::Kept> = Known::new();
pub static DENSE_MATRICES: Known<DenseMatrix> = Known::new();
