//! What elements products of matrices have under one routine's name.

use cublas_cpu::epilogue::{Epilogue, Place};
use cublas_cpu::storage::Storage;
use cublas_cpu::{Op, f16, mixed};

use crate::{cuComplex, cuDoubleComplex};

pub trait Product: Copy + Send + Sync + 'static {
    /// # Safety
    /// As [`cublas_cpu::gemm`].
    unsafe fn gemm(
        ops: (Op, Op),
        sizes: (i64, i64, i64),
        alpha: Self,
        a: (*const Self, i64),
        b: (*const Self, i64),
        beta: Self,
        c: (*mut Self, i64),
    );
}

macro_rules! products {
    ($($element:ty),*) => {$(
        impl Product for $element {
            unsafe fn gemm(
                ops: (Op, Op),
                (m, n, k): (i64, i64, i64),
                alpha: Self,
                a: (*const Self, i64),
                b: (*const Self, i64),
                beta: Self,
                c: (*mut Self, i64),
            ) {
                // SAFETY: the caller's promise.
                unsafe { cublas_cpu::gemm(ops.0, ops.1, m, n, k, alpha, a.0, a.1, b.0, b.1, beta, c.0, c.1) }
            }
        }
    )*};
}

products!(f32, f64, cuComplex, cuDoubleComplex);

/// Summed in `f32`, rounded once.
impl Product for f16 {
    unsafe fn gemm(
        ops: (Op, Op),
        (m, n, k): (i64, i64, i64),
        alpha: Self,
        a: (*const Self, i64),
        b: (*const Self, i64),
        beta: Self,
        c: (*mut Self, i64),
    ) {
        let half = |(at, ld): (*const f16, i64)| Place::new(Storage::F16, at, ld);
        let d = half((c.0, c.1));
        // SAFETY: the caller's promise.
        unsafe {
            mixed::product(&mixed::Product {
                op_a: ops.0,
                op_b: ops.1,
                m,
                n,
                k,
                alpha: mixed::Alpha::One(alpha.to_f32()),
                a: half(a),
                b: half(b),
                beta: beta.to_f32(),
                c: d,
                d,
                epilogue: Epilogue::default(),
            })
        }
    }
}
