//! From descriptors to slices and matrices, when the stream has come to the work, and which types go together.
//!
//! The rule: what a descriptor says of memory is the caller's promise; here, and nowhere else, it becomes slices. Calls check first that
//! no array with entries is NULL or out of line ([`check_matrix`] and the like).

use core::ffi::{c_int, c_void};
use std::borrow::Cow;

use cusparse_cpu::{Complex, Dense, DenseMut, Element, Index, Layout, Matrix, Offsets, Operation, Scalar};
use half::{bf16, f16};
use kit::Addresses;
use kit::far::{self, Extent};

use crate::descriptor::*;
use crate::error::require;
use crate::types::*;
use crate::{Error, Result};

/// So many values of so many bytes as the host can follow them, the first array of a batch at a distance of so many values.
fn near(
    at: *mut c_void,
    (count, bytes): (usize, usize),
    (batches, stride): (c_int, i64),
) -> kit::Result<*mut c_void> {
    let extent = Extent::bytes(count.saturating_mul(bytes));
    for number in 1..usize::try_from(batches).unwrap_or(0) {
        far::near(in_batch(at, number, stride, bytes), extent)?;
    }
    far::near(at, extent)
}

const ONE: (c_int, i64) = (1, 0);

fn bytes_of(ty: cudaDataType) -> usize {
    value_bytes(ty).unwrap_or(1)
}

// SAFETY: addresses and numbers.
unsafe impl Addresses for SparseVector {
    fn near(mut self) -> kit::Result<Self> {
        let index_bytes = index_bytes(self.index_type).unwrap_or(8);
        self.indices = near(self.indices, (self.nnz, index_bytes), ONE)?;
        self.values = near(self.values, (self.nnz, bytes_of(self.value_type)), ONE)?;
        Ok(self)
    }
}
// SAFETY: as above.
unsafe impl Addresses for DenseVector {
    fn near(mut self) -> kit::Result<Self> {
        self.values = near(self.values, (self.size, bytes_of(self.value_type)), ONE)?;
        Ok(self)
    }
}
// SAFETY: as above.
unsafe impl Addresses for SparseMatrix {
    fn near(mut self) -> kit::Result<Self> {
        let (offsets, indices, values) = counts(&self).unwrap_or_default();
        let bytes = |ty| index_bytes(ty).unwrap_or(8);
        let [of_offsets, of_indices, of_values] =
            [self.strides.offsets, self.strides.indices, self.strides.values]
                .map(|stride| (self.batches, stride));
        self.offsets = near(self.offsets, (offsets, bytes(self.offset_type)), of_offsets)?;
        self.indices = near(self.indices, (indices, bytes(self.index_type)), of_indices)?;
        self.values = near(self.values, (values, bytes_of(self.value_type)), of_values)?;
        Ok(self)
    }
}
// SAFETY: as above.
unsafe impl Addresses for DenseMatrix {
    fn near(mut self) -> kit::Result<Self> {
        let (layout, bytes) = (self.layout(), bytes_of(self.value_type));
        let (lines, width) = if layout.row_major { (self.rows, self.cols) } else { (self.cols, self.rows) };
        let extent = Extent::lines_of(lines, width, self.ld, bytes);
        for number in 1..usize::try_from(self.batches).unwrap_or(0) {
            far::near(batch_place(&self, number), extent)?;
        }
        self.values = far::near(self.values, extent)?;
        Ok(self)
    }
}
// SAFETY: as above.
unsafe impl Addresses for Factor {
    fn near(mut self) -> kit::Result<Self> {
        let extent = Extent::bytes(bytes_of(self.ty));
        self.at = far::near(self.at.cast_mut(), extent)?.cast_const();
        Ok(self)
    }
}

/// A type that is computed with.
pub trait Computed: Scalar {
    const TYPE: cudaDataType;
}

macro_rules! computed {
    ($($ty:ty, $name:ident;)*) => {$(
        impl Computed for $ty {
            const TYPE: cudaDataType = cudaDataType::$name;
        }
    )*};
}

computed! {
    i32, CUDA_R_32I;
    f32, CUDA_R_32F;
    f64, CUDA_R_64F;
    Complex<f32>, CUDA_C_32F;
    Complex<f64>, CUDA_C_64F;
}

/// Runs a body with `$C` as the type that a call computes with.
macro_rules! compute {
    ($ty:expr, $C:ident => $body:expr) => {{
        use $crate::types::cudaDataType as Type;
        match $ty {
            Type::CUDA_R_32I => {
                type $C = i32;
                $body
            }
            Type::CUDA_R_32F => {
                type $C = f32;
                $body
            }
            Type::CUDA_R_64F => {
                type $C = f64;
                $body
            }
            Type::CUDA_C_32F => {
                type $C = cusparse_cpu::Complex<f32>;
                $body
            }
            _ => {
                type $C = cusparse_cpu::Complex<f64>;
                $body
            }
        }
    }};
}

/// Runs a body with `$E` as the type of values in memory.
macro_rules! element {
    ($ty:expr, $E:ident => $body:expr) => {{
        use $crate::types::cudaDataType as Type;
        match $ty {
            Type::CUDA_R_8I => {
                type $E = i8;
                $body
            }
            Type::CUDA_R_16F => {
                type $E = half::f16;
                $body
            }
            Type::CUDA_R_16BF => {
                type $E = half::bf16;
                $body
            }
            Type::CUDA_C_16F => {
                type $E = cusparse_cpu::Complex<half::f16>;
                $body
            }
            Type::CUDA_C_16BF => {
                type $E = cusparse_cpu::Complex<half::bf16>;
                $body
            }
            ty => $crate::memory::compute!(ty, $E => $body),
        }
    }};
}

/// Runs a body with `$I` as the type of indices.
macro_rules! index {
    ($ty:expr, $I:ident => $body:expr) => {
        if $ty == $crate::types::cusparseIndexType_t::CUSPARSE_INDEX_32I {
            type $I = i32;
            $body
        } else {
            type $I = i64;
            $body
        }
    };
}

pub(crate) use {compute, element, index};

/// # Safety
/// `count` values that nobody writes to meanwhile, or none at all.
pub unsafe fn slice<'a, T>(at: *const c_void, count: usize) -> &'a [T] {
    // SAFETY: the caller's promise.
    if count == 0 { &[] } else { unsafe { core::slice::from_raw_parts(at.cast(), count) } }
}

/// # Safety
/// `count` values that nobody else uses meanwhile, or none at all.
pub unsafe fn slice_mut<'a, T>(at: *mut c_void, count: usize) -> &'a mut [T] {
    // SAFETY: the caller's promise.
    if count == 0 { &mut [] } else { unsafe { core::slice::from_raw_parts_mut(at.cast(), count) } }
}

/// Values of any type as they are computed with; where they lie so, without a copy.
///
/// # Safety
/// As [`slice`], of values of the type.
pub unsafe fn values<'a, C: Computed>(at: *const c_void, count: usize, ty: cudaDataType) -> Cow<'a, [C]> {
    if ty == C::TYPE {
        // SAFETY: the caller's promise.
        return Cow::Borrowed(unsafe { slice(at, count) });
    }
    // SAFETY: as above.
    Cow::Owned(element!(ty, E => cusparse_cpu::widen(unsafe { slice::<E>(at, count) })))
}

/// `to = alpha · computed + beta · to`, of values one behind the other.
///
/// # Safety
/// As [`slice_mut`], of values of the type.
pub unsafe fn blend<C: Computed>(
    at: *mut c_void,
    ty: cudaDataType,
    layout: Layout,
    computed: &[C],
    (alpha, beta): (C, C),
) {
    element!(ty, E => {
        // SAFETY: the caller's promise.
        let values = unsafe { slice_mut::<E>(at, layout.len()) };
        DenseMut { layout, values }.blend(computed, alpha, beta);
    });
}

/// `to = alpha · op(A) · x + beta · to`
///
/// # Safety
/// As [`slice_mut`], of values of the vector.
pub unsafe fn multiply<C: Computed, I: Index>(
    a: &Matrix<'_, C, I>,
    operation: Operation,
    x: &[C],
    factors: (C, C),
    to: &DenseVector,
) {
    if to.value_type == C::TYPE {
        // SAFETY: the caller's promise.
        let to = unsafe { slice_mut::<C>(to.values, to.size) };
        return cusparse_cpu::spmv(a, operation, x, factors, to);
    }
    let mut computed = vec![C::ZERO; to.size];
    cusparse_cpu::spmv(a, operation, x, (C::ONE, C::ZERO), &mut computed);
    // SAFETY: as above.
    unsafe { blend(to.values, to.value_type, column(to.size), &computed, factors) };
}

/// `to = alpha · op(A) · B + beta · to`, of values of a type that lie so; `b` is by rows without gaps.
///
/// # Safety
/// As [`slice_mut`], of values of the layout.
pub unsafe fn multiply_dense<C: Computed, I: Index>(
    a: &Matrix<'_, C, I>,
    operation: Operation,
    b: &[C],
    factors: (C, C),
    (at, ty, layout): (*mut c_void, cudaDataType, Layout),
) {
    if ty == C::TYPE {
        // SAFETY: the caller's promise.
        let values = unsafe { slice_mut::<C>(at, layout.len()) };
        return cusparse_cpu::spmm(a, operation, b, factors, DenseMut { layout, values });
    }
    let rows = Layout { ld: layout.cols, row_major: true, ..layout };
    let mut values = vec![C::ZERO; rows.len()];
    let computed = DenseMut { layout: rows, values: &mut values };
    cusparse_cpu::spmm(a, operation, b, (C::ONE, C::ZERO), computed);
    // SAFETY: as above.
    unsafe { blend(at, ty, layout, &values, factors) };
}

/// A vector as a matrix of one column.
pub fn column(count: usize) -> Layout {
    Layout { rows: count, cols: 1, ld: count.max(1), row_major: false }
}

/// A number that a call takes, or gives, by its address.
#[derive(Clone, Copy)]
pub struct Factor {
    /// NULL: it was read when the call was made.
    at: *const c_void,
    value: Complex<f64>,
    ty: cudaDataType,
}

impl Factor {
    /// # Errors
    /// It is NULL.
    ///
    /// # Safety
    /// A value of the type is there: of the host's memory now, of the device's when it is asked for.
    pub unsafe fn new(at: *const c_void, ty: cudaDataType, on_host: bool) -> Result<Factor> {
        require(!at.is_null(), "alpha or beta is NULL")?;
        let factor = Factor { at, value: Complex::default(), ty };
        match on_host {
            // SAFETY: the caller's promise.
            true => Ok(Factor { at: core::ptr::null(), value: unsafe { factor.read() }, ty }),
            false => Ok(factor),
        }
    }

    /// Two of a type, as `alpha` and `beta` are.
    ///
    /// # Errors
    /// One is NULL.
    ///
    /// # Safety
    /// As [`Factor::new`].
    pub unsafe fn pair(at: [*const c_void; 2], ty: cudaDataType, on_host: bool) -> Result<(Factor, Factor)> {
        let [alpha, beta] = at;
        // SAFETY: the caller's promise.
        unsafe { Ok((Factor::new(alpha, ty, on_host)?, Factor::new(beta, ty, on_host)?)) }
    }

    /// Where a number of the type goes.
    pub fn to(at: *mut c_void, ty: cudaDataType) -> Factor {
        Factor { at, value: Complex::default(), ty }
    }

    /// # Safety
    /// There is room for a number of the type, which is `C`.
    pub unsafe fn write<C: Scalar>(&self, value: C) {
        // SAFETY: the caller's promise.
        unsafe { self.at.cast_mut().cast::<C>().write_unaligned(value) };
    }

    /// # Safety
    /// A value of the type is there.
    unsafe fn read(&self) -> Complex<f64> {
        // SAFETY: the caller's promise.
        element!(self.ty, E => unsafe { self.at.cast::<E>().read_unaligned() }.wide())
    }

    /// The number when the stream has come here.
    ///
    /// # Safety
    /// One on the device is still there.
    pub unsafe fn get<C: Scalar>(&self) -> C {
        // SAFETY: the caller's promise.
        C::narrow(if self.at.is_null() { self.value } else { unsafe { self.read() } })
    }
}

fn index_bytes(ty: cusparseIndexType_t) -> Result<usize> {
    match ty {
        cusparseIndexType_t::CUSPARSE_INDEX_32I => Ok(4),
        cusparseIndexType_t::CUSPARSE_INDEX_64I => Ok(8),
        _ => Err(Error::NotSupported("indices of 16 bits")),
    }
}

/// An array that the work follows.
pub fn check_array(at: *const c_void, count: usize, alignment: usize) -> Result {
    require(count == 0 || !at.is_null(), "an array is NULL")?;
    require(count == 0 || at.addr().is_multiple_of(alignment), "an array is not aligned to its type")
}

/// How values of a type are aligned.
fn alignment(ty: cudaDataType) -> usize {
    element!(ty, E => align_of::<E>())
}

pub fn check_values(at: *const c_void, count: usize, ty: cudaDataType) -> Result {
    check_array(at, count, alignment(ty))
}

pub fn check_dense_vector(vector: &DenseVector) -> Result {
    check_values(vector.values, vector.size, vector.value_type)
}

pub fn check_sparse_vector(vector: &SparseVector) -> Result {
    check_array(vector.indices, vector.nnz, index_bytes(vector.index_type)?)?;
    check_values(vector.values, vector.nnz, vector.value_type)
}

pub fn check_dense_matrix(matrix: &DenseMatrix) -> Result {
    check_values(matrix.values, matrix.layout().len(), matrix.value_type)
}

/// How many offsets, indices and values a matrix has; of coordinates row numbers for offsets.
pub fn counts(matrix: &SparseMatrix) -> Result<(usize, usize, usize)> {
    let nnz = matrix.nnz;
    Ok(match matrix.format {
        Format::Csr => (matrix.rows + 1, nnz, nnz),
        Format::Csc => (matrix.cols + 1, nnz, nnz),
        Format::Coo => (nnz, nnz, nnz),
        Format::CooAoS => (0, 2 * nnz, nnz),
        Format::Bsr { size, .. } => (matrix.rows / size + 1, nnz / size / size, nnz),
        Format::BlockedEll { size, ell_cols } => {
            (0, (matrix.rows / size.max(1)) * (ell_cols / size.max(1)), nnz)
        }
        Format::SlicedEll { slice, values } => {
            require(slice > 0, "slices of no rows")?;
            (matrix.rows.div_ceil(slice) + 1, values, values)
        }
    })
}

pub fn check_matrix(matrix: &SparseMatrix) -> Result {
    let (offsets, indices, values) = counts(matrix)?;
    // A matrix without rows needs no offsets.
    let offsets = if matrix.rows == 0 && matrix.nnz == 0 { 0 } else { offsets };
    check_array(matrix.offsets, offsets, index_bytes(matrix.offset_type)?)?;
    check_array(matrix.indices, indices, index_bytes(matrix.index_type)?)?;
    check_values(matrix.values, values, matrix.value_type)
}

/// # Safety
/// As [`slice`]: so many offsets of the type, or none at all.
pub unsafe fn offsets<'a>(
    at: *const c_void,
    count: usize,
    ty: cusparseIndexType_t,
    base: usize,
) -> Offsets<'a> {
    if at.is_null() {
        return Offsets::Wide(vec![base as i64; count].into(), base);
    }
    if ty == cusparseIndexType_t::CUSPARSE_INDEX_32I {
        // SAFETY: the caller's promise.
        Offsets::Narrow(unsafe { slice(at, count) }, base)
    } else {
        // SAFETY: as above.
        Offsets::Wide(Cow::Borrowed(unsafe { slice(at, count) }), base)
    }
}

/// One matrix of a batch, whose indices are of type `I`, and whether it is the transposed one.
///
/// # Safety
/// The descriptor is true: nobody writes to its arrays meanwhile.
pub unsafe fn matrix<C: Computed, I: Index>(
    of: &SparseMatrix,
    number: usize,
) -> (Matrix<'static, C, I>, bool) {
    let (n_offsets, n_indices, n_values) = counts(of).unwrap_or_default();
    let bytes = |ty| index_bytes(ty).unwrap_or(8);
    let base = of.base.0 as usize;
    let (rows, cols) = (of.rows, of.cols);
    let at = in_batch(of.offsets, number, of.strides.offsets, bytes(of.offset_type));
    let indices = in_batch(of.indices, number, of.strides.indices, bytes(of.index_type));
    let value_bytes = value_bytes(of.value_type).unwrap_or(1);
    let value_place = in_batch(of.values, number, of.strides.values, value_bytes);
    // SAFETY: the caller's promise; `counts` says how many there are.
    let (indices, values) =
        unsafe { (slice::<I>(indices, n_indices), values::<C>(value_place, n_values, of.value_type)) };
    if of.format == Format::Coo {
        // SAFETY: as above; row numbers are of the same type.
        let numbers = unsafe { slice::<I>(at, n_offsets) };
        return (cusparse_cpu::group_coordinates((rows, cols), base, numbers, indices.into(), values), false);
    }
    if of.format == Format::CooAoS {
        let pairs = indices.chunks_exact(2);
        let (numbers, indices): (Vec<I>, Vec<I>) = pairs.map(|pair| (pair[0], pair[1])).unzip();
        return (
            cusparse_cpu::group_coordinates((rows, cols), base, &numbers, indices.into(), values),
            false,
        );
    }
    // SAFETY: as above.
    let offsets = unsafe { offsets(at, n_offsets, of.offset_type, base) };
    let indices = Cow::Borrowed(indices);
    match of.format {
        Format::Csr | Format::Coo | Format::CooAoS => {
            (Matrix::Csr { rows, cols, base, offsets, indices, values }, false)
        }
        Format::Csc => (Matrix::Csr { rows: cols, cols: rows, base, offsets, indices, values }, true),
        Format::Bsr { size, row_major } => {
            let (block_rows, block_cols) = (rows / size, cols / size);
            (Matrix::Bsr { block_rows, block_cols, size, base, row_major, offsets, indices, values }, false)
        }
        Format::BlockedEll { size, ell_cols } => {
            (Matrix::BlockedEll { rows, cols, size: size.max(1), ell_cols, base, indices, values }, false)
        }
        Format::SlicedEll { slice, .. } => {
            (Matrix::SlicedEll { rows, cols, slice, base, offsets, indices, values }, false)
        }
    }
}

/// A dense matrix of a batch by rows without gaps, as it is computed with; where it lies so, without a copy.
///
/// # Safety
/// As [`matrix`].
pub unsafe fn packed<'a, C: Computed>(
    of: &DenseMatrix,
    number: usize,
    transposed: bool,
    conjugated: bool,
) -> Cow<'a, [C]> {
    let layout = of.layout();
    let at = batch_place(of, number);
    if of.value_type == C::TYPE {
        // SAFETY: the caller's promise.
        let dense = Dense { layout, values: unsafe { slice::<'a, C>(at, layout.len()) } };
        return if transposed { dense.transposed() } else { dense }.by_rows(conjugated);
    }
    Cow::Owned(element!(of.value_type, E => {
        // SAFETY: as above.
        let dense = Dense { layout, values: unsafe { slice::<E>(at, layout.len()) } };
        if transposed { dense.transposed() } else { dense }.packed(conjugated)
    }))
}

/// Where a matrix of a batch begins.
pub fn batch_place(of: &DenseMatrix, number: usize) -> *mut c_void {
    in_batch(of.values, number, of.stride, value_bytes(of.value_type).unwrap_or(1))
}

/// Where an array of a batch begins; strides count values of so many bytes.
pub fn in_batch(at: *mut c_void, number: usize, stride: i64, bytes: usize) -> *mut c_void {
    at.wrapping_byte_offset((stride as isize).wrapping_mul((number * bytes) as isize))
}

/// What a call's operation says.
pub fn operation(operation: cusparseOperation_t) -> Result<cusparse_cpu::Operation> {
    let (transposed, conjugated) = match operation {
        cusparseOperation_t::CUSPARSE_OPERATION_NON_TRANSPOSE => (false, false),
        cusparseOperation_t::CUSPARSE_OPERATION_TRANSPOSE => (true, false),
        cusparseOperation_t::CUSPARSE_OPERATION_CONJUGATE_TRANSPOSE => (true, true),
        _ => return Err(Error::InvalidValue("there is no such operation")),
    };
    Ok(cusparse_cpu::Operation { transposed, conjugated })
}

/// Types of two factors, of the result and of the computation that the manual's tables have in one row.
pub fn types_go_together(
    (a, b): (cudaDataType, cudaDataType),
    c: cudaDataType,
    compute: cudaDataType,
    regular_with_complex: bool,
) -> bool {
    const R32F: cudaDataType = cudaDataType::CUDA_R_32F;
    const R64F: cudaDataType = cudaDataType::CUDA_R_64F;
    const C32F: cudaDataType = cudaDataType::CUDA_C_32F;
    const C64F: cudaDataType = cudaDataType::CUDA_C_64F;
    let uniform = [R32F, R64F, C32F, C64F];
    if a == b && b == c && c == compute && uniform.contains(&compute) {
        return true;
    }
    match (a, b, c, compute) {
        (
            cudaDataType::CUDA_R_8I,
            cudaDataType::CUDA_R_8I,
            cudaDataType::CUDA_R_32I,
            cudaDataType::CUDA_R_32I,
        )
        | (cudaDataType::CUDA_R_8I, cudaDataType::CUDA_R_8I, R32F, R32F)
        | (cudaDataType::CUDA_R_16F, cudaDataType::CUDA_R_16F, R32F | cudaDataType::CUDA_R_16F, R32F)
        | (cudaDataType::CUDA_R_16BF, cudaDataType::CUDA_R_16BF, R32F | cudaDataType::CUDA_R_16BF, R32F)
        | (cudaDataType::CUDA_C_16F, cudaDataType::CUDA_C_16F, cudaDataType::CUDA_C_16F, C32F)
        | (cudaDataType::CUDA_C_16BF, cudaDataType::CUDA_C_16BF, cudaDataType::CUDA_C_16BF, C32F) => true,
        (R32F, C32F, C32F, C32F) | (R64F, C64F, C64F, C64F) | (R32F, R64F, R64F, R64F) => {
            regular_with_complex
        }
        _ => false,
    }
}

/// The type that is computed with where a call does not say it.
pub fn natural_compute(ty: cudaDataType) -> Option<cudaDataType> {
    Some(match ty {
        cudaDataType::CUDA_R_16F | cudaDataType::CUDA_R_16BF | cudaDataType::CUDA_R_32F => {
            cudaDataType::CUDA_R_32F
        }
        cudaDataType::CUDA_C_16F | cudaDataType::CUDA_C_16BF | cudaDataType::CUDA_C_32F => {
            cudaDataType::CUDA_C_32F
        }
        cudaDataType::CUDA_R_64F | cudaDataType::CUDA_C_64F => ty,
        cudaDataType::CUDA_R_8I | cudaDataType::CUDA_R_32I => cudaDataType::CUDA_R_32I,
        _ => return None,
    })
}

const _: () = assert!(size_of::<Complex<f16>>() == 4 && size_of::<Complex<bf16>>() == 4);
