//! Products whose types are arguments: which combinations there are, and the factors whose type follows from them.

use core::ffi::c_void;

use cublas_cpu::epilogue::{Epilogue, Place};
use cublas_cpu::mixed::{Alpha, IntegerProduct, Product, integer_product, product};
use cublas_cpu::storage::{Compute, Storage};
use cublas_cpu::{Complex, Op};
use kit::Address;

use crate::handle::Handle;
use crate::{Error, Result, cublasComputeType_t, cublasPointerMode_t, cudaDataType};

const NO_SUCH_TYPES: Error = Error::NotSupported("this combination of types");

/// What sums are made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sums {
    F32,
    F64,
    I32,
    C32,
    C64,
}

pub fn storage(data: cudaDataType) -> Result<Storage> {
    Ok(match data {
        cudaDataType::CUDA_R_16F => Storage::F16,
        cudaDataType::CUDA_R_16BF => Storage::BF16,
        cudaDataType::CUDA_R_8F_E4M3 => Storage::E4M3,
        cudaDataType::CUDA_R_8F_E5M2 => Storage::E5M2,
        cudaDataType::CUDA_R_8I => Storage::I8,
        cudaDataType::CUDA_R_32I => Storage::I32,
        cudaDataType::CUDA_R_32F => Storage::F32,
        cudaDataType::CUDA_R_64F => Storage::F64,
        cudaDataType::CUDA_C_8I => Storage::C8,
        cudaDataType::CUDA_C_16F => Storage::C16,
        cudaDataType::CUDA_C_16BF => Storage::CB16,
        cudaDataType::CUDA_C_32F => Storage::C32,
        cudaDataType::CUDA_C_64F => Storage::C64,
        _ => return Err(NO_SUCH_TYPES),
    })
}

/// How the three matrices and the factors lie in memory, and what sums are made in.
#[derive(Clone, Copy, Debug)]
pub struct Types {
    pub a: Storage,
    pub b: Storage,
    pub c: Storage,
    pub scale: Storage,
    pub sums: Sums,
}

impl Types {
    /// The manual's table of `cublasGemmEx`. Compute types that allow less precision than they name get all of it.
    pub fn of(
        a: cudaDataType,
        b: cudaDataType,
        c: cudaDataType,
        compute: cublasComputeType_t,
    ) -> Result<Types> {
        use cublasComputeType_t as T;
        let (a, b, c) = (storage(a)?, storage(b)?, storage(c)?);
        let (sums, scale) = match compute {
            T::CUBLAS_COMPUTE_16F | T::CUBLAS_COMPUTE_16F_PEDANTIC => (Sums::F32, Storage::F16),
            T::CUBLAS_COMPUTE_32I | T::CUBLAS_COMPUTE_32I_PEDANTIC => (Sums::I32, Storage::I32),
            T::CUBLAS_COMPUTE_64F
            | T::CUBLAS_COMPUTE_64F_PEDANTIC
            | T::CUBLAS_COMPUTE_64F_EMULATED_FIXEDPOINT => match c {
                Storage::C64 => (Sums::C64, Storage::C64),
                _ => (Sums::F64, Storage::F64),
            },
            T::CUBLAS_COMPUTE_32F
            | T::CUBLAS_COMPUTE_32F_PEDANTIC
            | T::CUBLAS_COMPUTE_32F_FAST_16F
            | T::CUBLAS_COMPUTE_32F_FAST_16BF
            | T::CUBLAS_COMPUTE_32F_FAST_TF32
            | T::CUBLAS_COMPUTE_32F_EMULATED_16BFX9 => match c {
                Storage::C32 => (Sums::C32, Storage::C32),
                _ => (Sums::F32, Storage::F32),
            },
            _ => return Err(Error::InvalidValue("there is no such compute type")),
        };
        let types = Types { a, b, c, scale, sums };
        if types.is_combination() { Ok(types) } else { Err(NO_SUCH_TYPES) }
    }

    fn is_combination(self) -> bool {
        use Storage::{BF16, C8, C32, C64, F16, F32, F64, I8, I32};
        self.a == self.b
            && match self.scale {
                F16 => (self.a, self.c) == (F16, F16),
                I32 => (self.a, self.c) == (I8, I32),
                F32 => {
                    matches!((self.a, self.c), (F16, F16 | F32) | (BF16, BF16 | F32) | (I8, F32) | (F32, F32))
                }
                C32 => matches!((self.a, self.c), (C8 | C32, C32)),
                F64 => (self.a, self.c) == (F64, F64),
                C64 => (self.a, self.c) == (C64, C64),
                _ => false,
            }
    }
}

/// A factor of a type that is known when the program runs.
#[derive(Clone, Copy, Debug)]
pub struct Factor {
    storage: Storage,
    from: From,
}

#[derive(Clone, Copy, Debug)]
enum From {
    Host([u8; 16]),
    Device(Address<*const u8>),
}

impl Factor {
    /// # Safety
    /// NULL, or a number of that type where the pointer mode says: on the host now, or in device memory until the routine has
    /// run.
    pub unsafe fn of(handle: &Handle, at: *const c_void, storage: Storage) -> Result<Factor> {
        let is_device = handle.state().pointer_mode == cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE;
        // SAFETY: the caller's promise.
        unsafe { Factor::at(at, storage, is_device) }
    }

    /// # Safety
    /// NULL, or a number of that type: on the host now, or in device memory when the routine runs.
    pub unsafe fn at(at: *const c_void, storage: Storage, is_device: bool) -> Result<Factor> {
        if at.is_null() {
            return Err(Error::InvalidValue("a factor is NULL"));
        }
        let at = at.cast::<u8>();
        if is_device {
            return Ok(Factor { storage, from: From::Device(Address(at)) });
        }
        let mut bytes = [0; 16];
        // SAFETY: the caller's promise; no element has more bytes.
        unsafe { at.copy_to_nonoverlapping(bytes.as_mut_ptr(), storage.size()) };
        Ok(Factor { storage, from: From::Host(bytes) })
    }

    fn bytes(&self) -> *const u8 {
        match &self.from {
            From::Host(bytes) => bytes.as_ptr(),
            From::Device(at) => at.get(),
        }
    }

    /// The number, when the routine runs; `S` takes its storage.
    pub fn get<S: Compute>(&self) -> S {
        let mut aligned = [0u64; 2];
        let mut value = [S::zero()];
        // SAFETY: as `at` was promised; copied to where every element is aligned.
        unsafe {
            self.bytes().copy_to_nonoverlapping(aligned.as_mut_ptr().cast(), self.storage.size());
            S::read(self.storage, aligned.as_ptr().cast(), &mut value);
        }
        value[0]
    }

    pub fn integer(&self) -> i32 {
        // SAFETY: as in `get`.
        unsafe { self.bytes().cast::<i32>().read_unaligned() }
    }
}

/// One product's sizes.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub op_a: Op,
    pub op_b: Op,
    pub m: i64,
    pub n: i64,
    pub k: i64,
    pub lda: i64,
    pub ldb: i64,
    pub ldc: i64,
}

impl Shape {
    /// Elements that are multiplied, for who shares out a batch.
    pub fn work(&self) -> i64 {
        self.m.saturating_mul(self.n).saturating_mul(self.k)
    }
}

/// C = alpha · op(A) · op(B) + beta · C
///
/// # Safety
/// Matrices of that shape and these types.
pub unsafe fn run(
    types: Types,
    shape: &Shape,
    alpha: &Factor,
    a: *const c_void,
    b: *const c_void,
    beta: &Factor,
    c: *mut c_void,
) {
    let (a, b) = (Place::new(types.a, a, shape.lda), Place::new(types.b, b, shape.ldb));
    let c = Place::new(types.c, c, shape.ldc);
    // SAFETY: the caller's promise; the sums take the storages, as `Types::of` saw.
    unsafe {
        match types.sums {
            Sums::F32 => run_as::<f32>(shape, alpha, a, b, beta, c),
            Sums::F64 => run_as::<f64>(shape, alpha, a, b, beta, c),
            Sums::C32 => run_as::<Complex<f32>>(shape, alpha, a, b, beta, c),
            Sums::C64 => run_as::<Complex<f64>>(shape, alpha, a, b, beta, c),
            Sums::I32 => integer_product(&IntegerProduct {
                op_a: shape.op_a,
                op_b: shape.op_b,
                m: shape.m,
                n: shape.n,
                k: shape.k,
                alpha: alpha.integer(),
                a,
                b,
                beta: beta.integer(),
                c: c.at.cast(),
                ldc: shape.ldc,
                d: c.at.cast(),
                ldd: shape.ldc,
            }),
        }
    }
}

/// # Safety
/// As [`run`]; `S` takes every storage.
unsafe fn run_as<S: Compute>(shape: &Shape, alpha: &Factor, a: Place, b: Place, beta: &Factor, c: Place) {
    // SAFETY: the caller's promise.
    unsafe {
        product(&Product {
            op_a: shape.op_a,
            op_b: shape.op_b,
            m: shape.m,
            n: shape.n,
            k: shape.k,
            alpha: Alpha::One(alpha.get::<S>()),
            a,
            b,
            beta: beta.get::<S>(),
            c,
            d: c,
            epilogue: Epilogue::default(),
        })
    }
}
