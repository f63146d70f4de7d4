//! Products with types for arguments, and groups of batches. Source: cuBLAS manual, "cublasGemmEx()" and what follows it.

use core::ffi::c_void;

use cublas_cpu::storage::{Compute, Storage};
use cublas_cpu::{Complex, Op, level3, parallel};
use kit::Address;

use super::level3::{product, update};
use super::operand::sizes;
use crate::handle::Handle;
use crate::mixed::{Factor, Shape, Sums, Types, run, storage};
use crate::{
    Error, Result, cuComplex, cublasComputeType_t, cublasFillMode_t, cublasGemmAlgo_t, cublasOperation_t,
    cudaDataType, require,
};

/// # Safety
/// The pointers are good for what cuBLAS's manual says of them: those to the host's memory during the call, those to the
/// device's until the routine has run.
pub unsafe fn gemm_ex(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    B: *const c_void,
    Btype: cudaDataType,
    ldb: i64,
    beta: *const c_void,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
    computeType: cublasComputeType_t,
    _algo: cublasGemmAlgo_t,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    let shape = Shape { op_a, op_b, m, n, k, lda, ldb, ldc };
    // SAFETY: the caller's promise.
    unsafe { one(handle, shape, Types::of(Atype, Btype, Ctype, computeType)?, alpha, A, B, beta, C) }
}

/// `S`: factors and sums are `f32`, whatever the matrices are.
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn sgemm_ex(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const f32,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    B: *const c_void,
    Btype: cudaDataType,
    ldb: i64,
    beta: *const f32,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    let shape = Shape { op_a, op_b, m, n, k, lda, ldb, ldc };
    let types = Types::of(Atype, Btype, Ctype, cublasComputeType_t::CUBLAS_COMPUTE_32F)?;
    require(types.sums == Sums::F32, "C is not real")?;
    // SAFETY: the caller's promise.
    unsafe { one(handle, shape, types, alpha.cast(), A, B, beta.cast(), C) }
}

/// `C`: likewise of complex numbers.
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn cgemm_ex(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const cuComplex,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    B: *const c_void,
    Btype: cudaDataType,
    ldb: i64,
    beta: *const cuComplex,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    let shape = Shape { op_a, op_b, m, n, k, lda, ldb, ldc };
    let types = Types::of(Atype, Btype, Ctype, cublasComputeType_t::CUBLAS_COMPUTE_32F)?;
    require(types.sums == Sums::C32, "C is not complex")?;
    // SAFETY: the caller's promise.
    unsafe { one(handle, shape, types, alpha.cast(), A, B, beta.cast(), C) }
}

/// # Safety
/// As [`gemm_ex`].
pub unsafe fn cgemm3m_ex(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const cuComplex,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    B: *const c_void,
    Btype: cudaDataType,
    ldb: i64,
    beta: *const cuComplex,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        cgemm_ex(handle, transa, transb, m, n, k, alpha, A, Atype, lda, B, Btype, ldb, beta, C, Ctype, ldc)
    }
}

/// # Safety
/// As [`gemm_ex`].
unsafe fn one(
    handle: &Handle,
    shape: Shape,
    types: Types,
    alpha: *const c_void,
    a: *const c_void,
    b: *const c_void,
    beta: *const c_void,
    c: *mut c_void,
) -> Result {
    // SAFETY: the caller's promise.
    let (alpha, beta) =
        unsafe { (Factor::of(handle, alpha, types.scale)?, Factor::of(handle, beta, types.scale)?) };
    // SAFETY: the caller's promise.
    handle.enqueue((a, b, c), move |(a, b, c)| unsafe { run(types, &shape, &alpha, a, b, &beta, c) })
}

/// `Aarray`, `Barray` and `Carray` are themselves in device memory.
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn gemm_batched_ex(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    Aarray: *const *const c_void,
    Atype: cudaDataType,
    lda: i64,
    Barray: *const *const c_void,
    Btype: cudaDataType,
    ldb: i64,
    beta: *const c_void,
    Carray: *const *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
    batchCount: i64,
    computeType: cublasComputeType_t,
    _algo: cublasGemmAlgo_t,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    let shape = Shape { op_a, op_b, m, n, k, lda, ldb, ldc };
    let types = Types::of(Atype, Btype, Ctype, computeType)?;
    sizes(&[batchCount], &[])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) =
        unsafe { (Factor::of(handle, alpha, types.scale)?, Factor::of(handle, beta, types.scale)?) };
    let arrays = Address((Aarray, Barray, Carray));
    handle.enqueue((), move |()| {
        parallel(batchCount, shape.work(), |i| {
            let (a, b, c) = arrays.get();
            let i = i as usize;
            // SAFETY: the caller's promise, and of the arrays.
            unsafe { run(types, &shape, &alpha, a.add(i).read(), b.add(i).read(), &beta, c.add(i).read()) }
        });
    })
}

/// Strides are in elements of each matrix's type.
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn gemm_strided_batched_ex(
    handle: &Handle,
    transa: cublasOperation_t,
    transb: cublasOperation_t,
    m: i64,
    n: i64,
    k: i64,
    alpha: *const c_void,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    strideA: i64,
    B: *const c_void,
    Btype: cudaDataType,
    ldb: i64,
    strideB: i64,
    beta: *const c_void,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
    strideC: i64,
    batchCount: i64,
    computeType: cublasComputeType_t,
    _algo: cublasGemmAlgo_t,
) -> Result {
    let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
    let shape = Shape { op_a, op_b, m, n, k, lda, ldb, ldc };
    let types = Types::of(Atype, Btype, Ctype, computeType)?;
    sizes(&[batchCount], &[])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) =
        unsafe { (Factor::of(handle, alpha, types.scale)?, Factor::of(handle, beta, types.scale)?) };
    let matrices = Address((A, B, C));
    handle.enqueue((), move |()| {
        parallel(batchCount, shape.work(), |i| {
            let (a, b, c) = matrices.get();
            let bytes = |stride: i64, storage: Storage| (i * stride) as isize * storage.size() as isize;
            let (a, b) = (
                a.wrapping_byte_offset(bytes(strideA, types.a)),
                b.wrapping_byte_offset(bytes(strideB, types.b)),
            );
            // SAFETY: the caller's promise, of each matrix.
            unsafe {
                run(types, &shape, &alpha, a, b, &beta, c.wrapping_byte_offset(bytes(strideC, types.c)))
            }
        });
    })
}

/// An integer of an array on the host: `int` or `int64_t`.
pub trait Length: Copy + Into<i64> {}

impl Length for i32 {}
impl Length for i64 {}

/// What a group of products shares.
#[derive(Clone, Copy)]
struct Group {
    shape: Shape,
    alpha: Factor,
    beta: Factor,
    /// Of its first product, in the arrays of all.
    first: usize,
    count: i64,
}

/// The arrays of shapes and factors are the host's; those of matrices lie in device memory.
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn gemm_grouped_batched_ex<I: Length>(
    handle: &Handle,
    transa_array: *const cublasOperation_t,
    transb_array: *const cublasOperation_t,
    m_array: *const I,
    n_array: *const I,
    k_array: *const I,
    alpha_array: *const c_void,
    Aarray: *const *const c_void,
    Atype: cudaDataType,
    lda_array: *const I,
    Barray: *const *const c_void,
    Btype: cudaDataType,
    ldb_array: *const I,
    beta_array: *const c_void,
    Carray: *const *mut c_void,
    Ctype: cudaDataType,
    ldc_array: *const I,
    group_count: i64,
    group_size: *const I,
    computeType: cublasComputeType_t,
) -> Result {
    let types = Types::of(Atype, Btype, Ctype, computeType)?;
    let lengths = [m_array, n_array, k_array, lda_array, ldb_array, ldc_array, group_size];
    let operations = [transa_array, transb_array];
    let factors = [alpha_array, beta_array];
    // SAFETY: cuBLAS's contract: host arrays of `group_count`.
    let groups = unsafe { groups(types, operations, lengths, factors, group_count)? };
    let arrays = Address((Aarray, Barray, Carray));
    handle.enqueue((), move |()| {
        for group in &groups {
            parallel(group.count, group.shape.work(), |i| {
                let (a, b, c) = arrays.get();
                let i = group.first + i as usize;
                // SAFETY: the caller's promise, and of the arrays.
                unsafe {
                    let (a, b, c) = (a.add(i).read(), b.add(i).read(), c.add(i).read());
                    run(types, &group.shape, &group.alpha, a, b, &group.beta, c);
                }
            });
        }
    })
}

/// The groups, checked: `lengths` are m, n, k, lda, ldb, ldc and the sizes of the groups.
///
/// # Safety
/// Arrays of `count`.
unsafe fn groups<I: Length>(
    types: Types,
    operations: [*const cublasOperation_t; 2],
    lengths: [*const I; 7],
    factors: [*const c_void; 2],
    count: i64,
) -> Result<Vec<Group>> {
    sizes(&[count], &[])?;
    let is_missing = operations.iter().any(|at| at.is_null()) || lengths.iter().any(|at| at.is_null());
    require(count == 0 || !is_missing, "an array is NULL")?;
    let mut first = 0;
    let mut groups = Vec::new();
    for i in 0..count as usize {
        // SAFETY: the caller's promise.
        let ([transa, transb], [m, n, k, lda, ldb, ldc, size]) =
            unsafe { (operations.map(|at| at.add(i).read()), lengths.map(|at| at.add(i).read().into())) };
        let (op_a, op_b) = product(transa, transb, m, n, k, lda, ldb, ldc)?;
        sizes(&[size], &[])?;
        let factor = |at: *const c_void| {
            require(!at.is_null(), "a factor is NULL")?;
            // SAFETY: the caller's promise.
            unsafe { Factor::at(at.wrapping_byte_add(i * types.scale.size()), types.scale, false) }
        };
        let (alpha, beta) = (factor(factors[0])?, factor(factors[1])?);
        let shape = Shape { op_a, op_b, m, n, k, lda, ldb, ldc };
        groups.push(Group { shape, alpha, beta, first, count: size });
        first += size as usize;
    }
    Ok(groups)
}

/// As [`gemm_grouped_batched_ex`], of one type.
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn gemm_grouped_batched<T: Compute + Typed, I: Length>(
    handle: &Handle,
    transa_array: *const cublasOperation_t,
    transb_array: *const cublasOperation_t,
    m_array: *const I,
    n_array: *const I,
    k_array: *const I,
    alpha_array: *const T,
    Aarray: *const *const T,
    lda_array: *const I,
    Barray: *const *const T,
    ldb_array: *const I,
    beta_array: *const T,
    Carray: *const *mut T,
    ldc_array: *const I,
    group_count: i64,
    group_size: *const I,
) -> Result {
    let (data, compute) = (T::DATA, T::COMPUTE);
    // SAFETY: the caller's promise.
    unsafe {
        gemm_grouped_batched_ex(
            handle,
            transa_array,
            transb_array,
            m_array,
            n_array,
            k_array,
            alpha_array.cast(),
            Aarray.cast(),
            data,
            lda_array,
            Barray.cast(),
            data,
            ldb_array,
            beta_array.cast(),
            Carray.cast(),
            data,
            ldc_array,
            group_count,
            group_size,
            compute,
        )
    }
}

/// The types of a routine that has them in its name.
pub trait Typed {
    const DATA: cudaDataType;
    const COMPUTE: cublasComputeType_t;
}

impl Typed for f32 {
    const DATA: cudaDataType = cudaDataType::CUDA_R_32F;
    const COMPUTE: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_32F;
}

impl Typed for f64 {
    const DATA: cudaDataType = cudaDataType::CUDA_R_64F;
    const COMPUTE: cublasComputeType_t = cublasComputeType_t::CUBLAS_COMPUTE_64F;
}

/// What an update of a triangle by a matrix of complex numbers, or of complex bytes, is.
type Update<F> = unsafe fn(cublas_cpu::Uplo, Op, i64, i64, F, *const cuComplex, i64, F, *mut cuComplex, i64);

/// # Safety
/// As [`gemm_ex`].
unsafe fn rank_update<F: Copy + Send + Sync + 'static>(
    handle: &Handle,
    run: Update<F>,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const F,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    beta: *const F,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
    no: Op,
) -> Result {
    let (uplo, op) = update(uplo, trans, n, k, &[lda], ldc)?;
    require(op != no, "this update takes no such operation")?;
    let from = storage(Atype)?;
    if !matches!(from, Storage::C8 | Storage::C32) || storage(Ctype)? != Storage::C32 {
        return Err(Error::NotSupported("this combination of types"));
    }
    // SAFETY: the caller's promise.
    let (alpha, beta) = unsafe { (handle.scalar(alpha)?, handle.scalar(beta)?) };
    handle.enqueue((A, C), move |(A, C)| {
        let (rows, columns) = if op.transposes() { (k, n) } else { (n, k) };
        let mut wide = Vec::new();
        let (a, lda) = match from {
            Storage::C32 => (A.cast::<cuComplex>(), lda),
            _ => {
                wide.resize((rows * columns) as usize, cuComplex::default());
                for (column, to) in wide.chunks_exact_mut(rows.max(1) as usize).enumerate() {
                    let column = A.wrapping_byte_add(column * lda as usize * from.size()).cast();
                    // SAFETY: the caller's promise.
                    unsafe { Complex::<f32>::read(from, column, to) };
                }
                (wide.as_ptr(), rows.max(1))
            }
        };
        // SAFETY: the caller's promise.
        unsafe { run(uplo, op, n, k, alpha.get(), a, lda, beta.get(), C.cast(), ldc) }
    })
}

/// # Safety
/// As [`gemm_ex`].
pub unsafe fn csyrk_ex(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const cuComplex,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    beta: *const cuComplex,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        rank_update(
            handle,
            level3::syrk::<cuComplex>,
            uplo,
            trans,
            n,
            k,
            alpha,
            A,
            Atype,
            lda,
            beta,
            C,
            Ctype,
            ldc,
            Op::C,
        )
    }
}

/// As [`super::level3::gemm3m`].
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn csyrk3m_ex(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const cuComplex,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    beta: *const cuComplex,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { csyrk_ex(handle, uplo, trans, n, k, alpha, A, Atype, lda, beta, C, Ctype, ldc) }
}

/// # Safety
/// As [`gemm_ex`].
pub unsafe fn cherk_ex(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const f32,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    beta: *const f32,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe {
        rank_update(
            handle,
            level3::herk::<cuComplex>,
            uplo,
            trans,
            n,
            k,
            alpha,
            A,
            Atype,
            lda,
            beta,
            C,
            Ctype,
            ldc,
            Op::T,
        )
    }
}

/// As [`super::level3::gemm3m`].
///
/// # Safety
/// As [`gemm_ex`].
pub unsafe fn cherk3m_ex(
    handle: &Handle,
    uplo: cublasFillMode_t,
    trans: cublasOperation_t,
    n: i64,
    k: i64,
    alpha: *const f32,
    A: *const c_void,
    Atype: cudaDataType,
    lda: i64,
    beta: *const f32,
    C: *mut c_void,
    Ctype: cudaDataType,
    ldc: i64,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { cherk_ex(handle, uplo, trans, n, k, alpha, A, Atype, lda, beta, C, Ctype, ldc) }
}
