//! A product as cuBLASLt describes it, looked at once for heuristics and for the product itself.

use core::ffi::c_void;

use cublas_cpu::epilogue::Place;
use cublas_cpu::mixed::{Alpha, IntegerProduct, Product, integer_product, product};
use cublas_cpu::storage::{Compute, Storage};
use cublas_cpu::{Complex, Op, parallel};
use kit::Address;

use super::algorithm;
use super::descriptor::Descriptor;
use super::epilogue::{self, Steps};
use crate::mixed::{Factor, Sums, storage};
use crate::{
    Error, Result, convert, cublasComputeType_t, cublasLtBatchMode_t, cublasLtMatmulAlgo_t, cublasLtOrder_t,
    cublasLtPointerMode_t, cublasOperation_t, cudaDataType, require,
};

/// Where the matrices of a batch are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Batch {
    /// So many elements apart.
    Strides(i64),
    /// In device memory, at the operand's own address.
    Pointers,
    /// As pointers, each with sizes of its own in device memory.
    Groups(Sizes),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sizes {
    rows: *const c_void,
    columns: *const c_void,
    ld: *const c_void,
    are_wide: bool,
    has_wide_ld: bool,
}

/// A matrix, with what lies in order of rows seen as its transpose in order of columns.
#[derive(Clone, Copy, Debug)]
pub struct Matrix {
    pub storage: Storage,
    pub is_row_major: bool,
    pub rows: i64,
    pub columns: i64,
    pub ld: i64,
    pub batch: i64,
    lies: Batch,
}

impl Matrix {
    pub fn of(layout: Descriptor<'_>) -> Result<Matrix> {
        let is_row_major = match cublasLtOrder_t(layout.number(1) as u32) {
            cublasLtOrder_t::CUBLASLT_ORDER_COL => false,
            cublasLtOrder_t::CUBLASLT_ORDER_ROW => true,
            _ => return Err(Error::NotSupported("a product of matrices in tiles")),
        };
        if layout.number(7) != 0 {
            return Err(Error::NotSupported("planar complex matrices"));
        }
        let lies = match cublasLtBatchMode_t(layout.number(8) as u32) {
            cublasLtBatchMode_t::CUBLASLT_BATCH_MODE_STRIDED => Batch::Strides(layout.number(6)),
            cublasLtBatchMode_t::CUBLASLT_BATCH_MODE_POINTER_ARRAY => Batch::Pointers,
            cublasLtBatchMode_t::CUBLASLT_BATCH_MODE_GROUPED => Batch::Groups(Sizes {
                rows: layout.pointer(9),
                columns: layout.pointer(10),
                ld: layout.pointer(11),
                are_wide: layout.number(12) != 0,
                has_wide_ld: layout.number(13) != 0,
            }),
            _ => return Err(Error::InvalidValue("there is no such mode of a batch")),
        };
        let storage = storage(cudaDataType(layout.number(0) as u32))?;
        let (rows, columns, ld, batch) =
            (layout.number(2), layout.number(3), layout.number(4), layout.number(5));
        require(batch >= 1, "a layout's batch is empty")?;
        let matrix = Matrix { storage, is_row_major, rows: 0, columns: 0, ld, batch, lies };
        match lies {
            Batch::Groups(Sizes { rows, columns, ld, .. }) => {
                require(!rows.is_null() && !columns.is_null() && !ld.is_null(), "a group's sizes are NULL")?;
                Ok(matrix)
            }
            _ => matrix.sized(rows, columns, ld),
        }
    }

    fn sized(self, rows: i64, columns: i64, ld: i64) -> Result<Matrix> {
        let (rows, columns) = if self.is_row_major { (columns, rows) } else { (rows, columns) };
        require(rows >= 0 && columns >= 0, "a layout's size is negative")?;
        require(ld >= rows.max(1), "a layout's leading dimension is too small")?;
        Ok(Matrix { rows, columns, ld, ..self })
    }

    fn is_grouped(&self) -> bool {
        matches!(self.lies, Batch::Groups(_))
    }

    /// The matrix of a group, when the product runs.
    ///
    /// # Safety
    /// The groups' sizes are where the layout says.
    unsafe fn of_group(self, index: i64) -> Result<Matrix> {
        let Batch::Groups(sizes) = self.lies else { return Ok(self) };
        let read = |at: *const c_void, is_wide: bool| {
            let index = index as usize;
            // SAFETY: the caller's promise.
            unsafe {
                match is_wide {
                    true => at.cast::<i64>().add(index).read_unaligned(),
                    false => at.cast::<i32>().add(index).read_unaligned().into(),
                }
            }
        };
        let size = |at| read(at, sizes.are_wide);
        self.sized(size(sizes.rows), size(sizes.columns), read(sizes.ld, sizes.has_wide_ld))
    }

    /// # Safety
    /// `at` is a matrix, or the array of the matrices' addresses, as the layout says, when this is called.
    unsafe fn place(&self, at: *const c_void, index: i64) -> Place {
        let index = if self.batch == 1 { 0 } else { index };
        let at = match self.lies {
            Batch::Strides(stride) => {
                at.wrapping_byte_offset((index * stride) as isize * self.storage.size() as isize)
            }
            // SAFETY: the caller's promise.
            Batch::Pointers | Batch::Groups(_) => unsafe {
                at.cast::<*const c_void>().add(index as usize).read_unaligned()
            },
        };
        Place::new(self.storage, at, self.ld)
    }
}

/// The operation on a matrix that is seen transposed.
fn seen(op: Op, matrix: &Matrix) -> Result<Op> {
    match (op, matrix.is_row_major) {
        (op, false) => Ok(op),
        (Op::N, true) => Ok(Op::T),
        (Op::T, true) => Ok(Op::N),
        (Op::C, true) => Err(Error::NotSupported("conjugates of matrices in order of rows")),
    }
}

/// What is known of a product before its matrices are.
#[derive(Clone, Copy)]
pub struct Plan {
    m: i64,
    n: i64,
    k: i64,
    a: (Op, Matrix),
    b: (Op, Matrix),
    c: Matrix,
    d: Matrix,
    /// D is in order of rows: its transpose is computed, from B and A.
    is_swapped: bool,
    sums: Sums,
    scale: Storage,
    mode: cublasLtPointerMode_t,
    alpha_stride: i64,
    steps: Steps,
    /// Of A, B and C, one number each.
    scales: [*const f32; 3],
}

/// Where the matrices are.
#[derive(Clone, Copy)]
pub struct Operands {
    pub alpha: *const c_void,
    pub a: *const c_void,
    pub b: *const c_void,
    pub beta: *const c_void,
    pub c: *const c_void,
    pub d: *mut c_void,
}

// SAFETY: addresses; what is done with them is for the products to keep apart.
unsafe impl Send for Plan {}
// SAFETY: as above.
unsafe impl Sync for Plan {}
// SAFETY: as above.
unsafe impl Send for Operands {}
// SAFETY: as above.
unsafe impl Sync for Operands {}

pub fn plan(operation: Descriptor<'_>, [a, b, c, d]: [Descriptor<'_>; 4]) -> Result<Plan> {
    let [a, b, c, d] = [Matrix::of(a)?, Matrix::of(b)?, Matrix::of(c)?, Matrix::of(d)?];
    let op = |number: u32| convert::op(cublasOperation_t(operation.number(number) as u32));
    // Of real numbers the conjugate transpose is the transpose.
    let of = |number: u32, matrix: &Matrix| -> Result<Op> {
        let op = op(number)?;
        Ok(if op == Op::C && !matrix.storage.is_complex() { Op::T } else { op })
    };
    let (op_a, op_b) = (seen(of(3, &a)?, &a)?, seen(of(4, &b)?, &b)?);
    require(op(5)? == Op::N, "C has no operation")?;
    if operation.number(6) != 0 && operation.number(6) != 2 {
        return Err(Error::NotSupported("products of which a triangle is stored"));
    }
    epilogue::refuse_other_scales(operation)?;
    let steps = epilogue::of(operation, c.storage, d.storage)?;
    let is_swapped = d.is_row_major;
    require(c.is_row_major == d.is_row_major, "C and D are in different orders")?;
    let other = |op: Op| if op.transposes() { Op::N } else { Op::T };
    let (a, b) = match is_swapped {
        false => ((op_a, a), (op_b, b)),
        true if op_a == Op::C || op_b == Op::C => {
            return Err(Error::NotSupported("conjugates where D is in order of rows"));
        }
        true => ((other(op_b), b), (other(op_a), a)),
    };
    let count = d.batch;
    let fits = |matrix: &Matrix| matrix.batch == count || matrix.batch == 1;
    require([a.1, b.1, c].iter().all(fits), "the batches have different lengths")?;
    let grouped = [a.1, b.1, c, d].iter().filter(|matrix| matrix.is_grouped()).count();
    require(grouped == 0 || grouped == 4, "some layouts are of groups, and some are not")?;

    let mode = cublasLtPointerMode_t(operation.number(2) as u32);
    require(mode.0 <= 4, "there is no such pointer mode")?;
    let compute = cublasComputeType_t(operation.number(0) as u32);
    let scale_type = cudaDataType(operation.number(1) as u32);
    let (sums, scale) = sums(compute, scale_type, [a.1.storage, b.1.storage, c.storage, d.storage])?;
    let has_vectors = steps.has_vectors() || mode.0 >= 2;
    let is_of_integers = sums == Sums::I32 && (!steps.is_none() || mode.0 >= 2);
    if has_vectors && (is_swapped || grouped > 0) || is_of_integers {
        return Err(Error::NotSupported("this epilogue or pointer mode for these orders and types"));
    }
    let alpha_stride = operation.number(14);
    let scales = [17, 18, 19].map(|number| operation.pointer::<f32>(number).cast_const());
    let (m, n, k) = (0, 0, 0);
    let plan = Plan { m, n, k, a, b, c, d, is_swapped, sums, scale, mode, alpha_stride, steps, scales };
    if grouped > 0 { Ok(plan) } else { plan.sized() }
}

/// The CPU's algorithm for these types.
pub fn algorithm(
    compute: cublasComputeType_t,
    scale: cudaDataType,
    matrices: [cudaDataType; 4],
) -> Result<cublasLtMatmulAlgo_t> {
    let [a, b, c, d] = matrices.map(storage);
    let matrices = [a?, b?, c?, d?];
    let (sums, _) = sums(compute, scale, matrices)?;
    Ok(algorithm::of_cpu(sums, matrices))
}

/// What sums are made in and factors lie in memory as; the table of cublasLtMatmul, widened to what costs nothing.
fn sums(
    compute: cublasComputeType_t,
    scale: cudaDataType,
    matrices: [Storage; 4],
) -> Result<(Sums, Storage)> {
    use cublasComputeType_t as T;
    let scale = storage(scale)?;
    let sums = match (compute, scale) {
        (T::CUBLAS_COMPUTE_16F | T::CUBLAS_COMPUTE_16F_PEDANTIC, Storage::F16) => Sums::F32,
        (T::CUBLAS_COMPUTE_32I | T::CUBLAS_COMPUTE_32I_PEDANTIC, Storage::I32) => Sums::I32,
        (T::CUBLAS_COMPUTE_32I | T::CUBLAS_COMPUTE_32I_PEDANTIC, Storage::F32) => Sums::F32,
        (
            T::CUBLAS_COMPUTE_64F
            | T::CUBLAS_COMPUTE_64F_PEDANTIC
            | T::CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT,
            Storage::F64,
        ) => Sums::F64,
        (
            T::CUBLAS_COMPUTE_64F
            | T::CUBLAS_COMPUTE_64F_PEDANTIC
            | T::CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT,
            Storage::C64,
        ) => Sums::C64,
        (
            T::CUBLAS_COMPUTE_32F
            | T::CUBLAS_COMPUTE_32F_PEDANTIC
            | T::CUBLAS_COMPUTE_32F_FAST_16F
            | T::CUBLAS_COMPUTE_32F_FAST_16BF
            | T::CUBLAS_COMPUTE_32F_FAST_TF32
            | T::CUBLAS_COMPUTE_32F_EMULATED_16BFX9,
            Storage::F32 | Storage::C32,
        ) => match scale {
            Storage::C32 => Sums::C32,
            _ => Sums::F32,
        },
        _ => return Err(Error::NotSupported("this combination of compute type and scale type")),
    };
    let [a, b, c, d] = matrices;
    let takes = match sums {
        Sums::F32 => matrices.iter().all(|&storage| f32::takes(storage)),
        Sums::F64 => matrices.iter().all(|&storage| f64::takes(storage)),
        Sums::C32 => matrices.iter().all(|&storage| Complex::<f32>::takes(storage)),
        Sums::C64 => matrices.iter().all(|&storage| Complex::<f64>::takes(storage)),
        Sums::I32 => (a, b, c, d) == (Storage::I8, Storage::I8, Storage::I32, Storage::I32),
    };
    if takes { Ok((sums, scale)) } else { Err(Error::NotSupported("this combination of types")) }
}

/// The factors, read now or when the product runs.
#[derive(Clone, Copy)]
struct Factors {
    alpha: Factor,
    /// One for each row of D instead.
    rows: Option<Address<*const u8>>,
    beta: Option<Factor>,
}

impl Plan {
    /// With the sizes of its matrices, which must fit.
    fn sized(self) -> Result<Plan> {
        let size = |(op, matrix): (Op, Matrix)| match op.transposes() {
            false => (matrix.rows, matrix.columns),
            true => (matrix.columns, matrix.rows),
        };
        let ((m, k), (k_of_b, n)) = (size(self.a), size(self.b));
        require(
            k == k_of_b && (self.d.rows, self.d.columns) == (m, n),
            "the sizes of A, B and D do not fit",
        )?;
        require((self.c.rows, self.c.columns) == (m, n), "C has another size than D")?;
        Ok(Plan { m, n, k, ..self })
    }

    /// One group's product, when it runs.
    ///
    /// # Safety
    /// As [`Matrix::of_group`], of all layouts.
    unsafe fn of_group(self, index: i64) -> Result<Plan> {
        // SAFETY: the caller's promise.
        let group = |matrix: Matrix| unsafe { matrix.of_group(index) };
        let (a, b) = ((self.a.0, group(self.a.1)?), (self.b.0, group(self.b.1)?));
        Plan { a, b, c: group(self.c)?, d: group(self.d)?, ..self }.sized()
    }

    /// The CPU's, as heuristics give it.
    pub fn algorithm(&self) -> cublasLtMatmulAlgo_t {
        let (a, b) = if self.is_swapped { (self.b, self.a) } else { (self.a, self.b) };
        algorithm::of_cpu(self.sums, [a.1.storage, b.1.storage, self.c.storage, self.d.storage])
    }

    /// # Safety
    /// As [`Self::work`].
    unsafe fn factors(&self, at: &Operands) -> Result<Factors> {
        use cublasLtPointerMode_t as M;
        let is_device = |mode: M| !matches!(mode, M::CUBLASLT_POINTER_MODE_HOST);
        // SAFETY: the caller's promise.
        let factor = |at: *const c_void, is_device: bool| unsafe { Factor::at(at, self.scale, is_device) };
        let alpha = factor(at.alpha, is_device(self.mode))?;
        let beta = match self.mode {
            M::CUBLASLT_POINTER_MODE_HOST => Some(factor(at.beta, false)?),
            M::CUBLASLT_POINTER_MODE_DEVICE => Some(factor(at.beta, true)?),
            M::CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_ZERO => None,
            M::CUBLASLT_POINTER_MODE_ALPHA_DEVICE_VECTOR_BETA_HOST => Some(factor(at.beta, false)?),
            _ => return Err(Error::NotSupported("a vector of beta")),
        };
        let rows = (self.mode.0 >= 2).then(|| Address(at.alpha.cast()));
        Ok(Factors { alpha, rows, beta })
    }

    /// The work, for the stream.
    ///
    /// # Safety
    /// The operands, and what the descriptors have addresses of, are as those say: on the host now, in device memory whenever the
    /// work runs.
    pub unsafe fn work(self, at: Operands) -> Result<impl Fn() + Send + Sync + 'static> {
        // SAFETY: the caller's promise.
        let factors = unsafe { self.factors(&at)? };
        let needs_c = factors.beta.is_some() && at.c.is_null() && self.m * self.n > 0;
        require(!needs_c || !at.d.is_null(), "C is NULL")?;
        let plan = self;
        Ok(move || {
            // SAFETY: the caller's promise.
            unsafe { plan.steps.forget_largest() };
            let work = match plan.d.is_grouped() {
                // Nobody knows before.
                true => i64::MAX,
                false => plan.m.saturating_mul(plan.n).saturating_mul(plan.k),
            };
            parallel(plan.d.batch, work, |index| {
                // SAFETY: the caller's promise.
                match if plan.d.is_grouped() { unsafe { plan.of_group(index) } } else { Ok(plan) } {
                    // SAFETY: the caller's promise.
                    Ok(plan) => unsafe { plan.run(index, &at, &factors) },
                    // The call has returned long ago.
                    Err(error) => {
                        tracing::error!(target: "cudaway::blas", "group {index} is left out: {error}")
                    }
                }
            });
        })
    }

    /// # Safety
    /// The matrices are there.
    unsafe fn run(&self, index: i64, at: &Operands, factors: &Factors) {
        // SAFETY: the caller's promise; the sums take every storage.
        unsafe {
            match self.sums {
                Sums::F32 => self.run_as::<f32>(index, at, factors),
                Sums::F64 => self.run_as::<f64>(index, at, factors),
                Sums::C32 => self.run_as::<Complex<f32>>(index, at, factors),
                Sums::C64 => self.run_as::<Complex<f64>>(index, at, factors),
                Sums::I32 => self.run_integers(index, at, factors),
            }
        }
    }

    /// The two factors of the product as they are computed.
    fn operands(&self, at: &Operands) -> (*const c_void, *const c_void) {
        if self.is_swapped { (at.b, at.a) } else { (at.a, at.b) }
    }

    /// # Safety
    /// As [`Self::run`].
    unsafe fn run_as<S: Compute>(&self, index: i64, at: &Operands, factors: &Factors) {
        // SAFETY: device memory, of the descriptor's promise.
        let scale = |at: *const f32| if at.is_null() { 1.0 } else { unsafe { at.read_unaligned() } };
        let real = |value: f32| S::from_real(<S::Real as cublas_cpu::Real>::rounded(value.into()));
        let of_product = real(scale(self.scales[0]) * scale(self.scales[1]));
        let alpha = match factors.rows {
            None => Alpha::One(factors.alpha.get::<S>() * of_product),
            Some(rows) => {
                let rows = rows.get().cast::<S>().wrapping_offset((index * self.alpha_stride) as isize);
                Alpha::Rows(rows, of_product)
            }
        };
        let beta = factors.beta.map_or(S::zero(), |beta| beta.get::<S>() * real(scale(self.scales[2])));
        let (a, b) = self.operands(at);
        // SAFETY: the caller's promise.
        let d = unsafe { self.d.place(at.d, index) };
        // SAFETY: the caller's promise.
        let c = if at.c.is_null() { d } else { unsafe { self.c.place(at.c, index) } };
        // SAFETY: the caller's promise.
        unsafe {
            product(&Product {
                op_a: self.a.0,
                op_b: self.b.0,
                m: self.m,
                n: self.n,
                k: self.k,
                alpha,
                a: self.a.1.place(a, index),
                b: self.b.1.place(b, index),
                beta,
                c,
                d,
                epilogue: self.steps.for_product(index),
            })
        }
    }

    /// # Safety
    /// As [`Self::run`].
    unsafe fn run_integers(&self, index: i64, at: &Operands, factors: &Factors) {
        let (a, b) = self.operands(at);
        // SAFETY: the caller's promise.
        let (c, d) = unsafe { (self.c.place(at.c, index), self.d.place(at.d, index)) };
        // SAFETY: the caller's promise.
        unsafe {
            integer_product(&IntegerProduct {
                op_a: self.a.0,
                op_b: self.b.0,
                m: self.m,
                n: self.n,
                k: self.k,
                alpha: factors.alpha.integer(),
                a: self.a.1.place(a, index),
                b: self.b.1.place(b, index),
                beta: factors.beta.map_or(0, |beta| beta.integer()),
                c: c.at.cast(),
                ldc: self.c.ld,
                d: d.at.cast(),
                ldd: self.d.ld,
            })
        }
    }
}
