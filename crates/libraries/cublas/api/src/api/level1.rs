//! Vectors with vectors. Source: cuBLAS manual, "cuBLAS Level-1 Function Reference". `n` below 1 is an empty vector.

use cublas_cpu::rotation::Param;
use cublas_cpu::{Real, Scalar, level1, rotation};
use kit::Addresses;

use crate::handle::Handle;
use crate::{Error, Result, cublasPointerMode_t, require};

/// What an index is written as: from 1, 0 for none.
pub trait Index: Copy + 'static {
    fn of(index: i64) -> Self;
}

impl Index for i64 {
    fn of(index: i64) -> i64 {
        index
    }
}

impl Index for i32 {
    /// `n` was an `i32`, so the index is one.
    fn of(index: i64) -> i32 {
        index as i32
    }
}

/// A factor of vectors of `T`: of the same type, or real.
pub trait Factor<T>: Copy + Send + Sync + 'static {
    /// x = factor · x
    ///
    /// # Safety
    /// As [`level1::scal`].
    unsafe fn scale(self, n: i64, x: *mut T, incx: i64);

    fn as_element(self) -> T;
}

macro_rules! factors {
    ($($factor:ty, $element:ty: $scale:ident, $as_element:expr;)*) => {$(
        impl Factor<$element> for $factor {
            unsafe fn scale(self, n: i64, x: *mut $element, incx: i64) {
                // SAFETY: the caller's promise.
                unsafe { level1::$scale(n, self, x, incx) }
            }

            fn as_element(self) -> $element {
                $as_element(self)
            }
        }
    )*};
}

factors! {
    f32, f32: scal, |value| value;
    f64, f64: scal, |value| value;
    crate::cuComplex, crate::cuComplex: scal, |value| value;
    crate::cuDoubleComplex, crate::cuDoubleComplex: scal, |value| value;
    f32, crate::cuComplex: scal_real, Scalar::from_real;
    f64, crate::cuDoubleComplex: scal_real, Scalar::from_real;
}

/// # Safety
/// The pointers are good for what cuBLAS's manual says of them: those to the host's memory during the call, those to the
/// device's until the routine has run.
pub unsafe fn axpy<T: Scalar>(
    handle: &Handle,
    n: i64,
    alpha: *const T,
    x: *const T,
    incx: i64,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle.enqueue((x, y), move |(x, y)| unsafe { level1::axpy(n, alpha.get(), x, incx, y, incy) })
}

/// # Safety
/// As [`axpy`].
pub unsafe fn copy<T: Scalar>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    y: *mut T,
    incy: i64,
) -> Result {
    // SAFETY: the caller's promise.
    handle.enqueue((x, y), move |(x, y)| unsafe { level1::copy(n, x, incx, y, incy) })
}

/// # Safety
/// As [`axpy`].
pub unsafe fn swap<T: Scalar>(handle: &Handle, n: i64, x: *mut T, incx: i64, y: *mut T, incy: i64) -> Result {
    // SAFETY: the caller's promise.
    handle.enqueue((x, y), move |(x, y)| unsafe { level1::swap(n, x, incx, y, incy) })
}

/// # Safety
/// As [`axpy`].
pub unsafe fn scal<T: Scalar, F: Factor<T>>(
    handle: &Handle,
    n: i64,
    alpha: *const F,
    x: *mut T,
    incx: i64,
) -> Result {
    // SAFETY: the caller's promise.
    let alpha = unsafe { handle.scalar(alpha)? };
    // SAFETY: the caller's promise.
    handle.enqueue(x, move |x| unsafe { alpha.get().scale(n, x, incx) })
}

/// The product of real vectors.
///
/// # Safety
/// As [`axpy`].
pub unsafe fn dot<T: Real>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    result: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { dotu(handle, n, x, incx, y, incy, result) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn dotu<T: Scalar>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    result: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { answer(handle, result, (x, y), move |(x, y)| level1::dotu::<T, T, T>(n, x, incx, y, incy)) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn dotc<T: Scalar>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    y: *const T,
    incy: i64,
    result: *mut T,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { answer(handle, result, (x, y), move |(x, y)| level1::dotc::<T, T, T>(n, x, incx, y, incy)) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn nrm2<T: Scalar>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut T::Real,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { answer(handle, result, x, move |x| level1::nrm2::<T, T>(n, x, incx)) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn asum<T: Scalar>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut T::Real,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { answer(handle, result, x, move |x| level1::asum::<T, T>(n, x, incx)) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn amax<T: Scalar, I: Index>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut I,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { answer(handle, result, x, move |x| I::of(level1::iamax::<T, T>(n, x, incx))) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn amin<T: Scalar, I: Index>(
    handle: &Handle,
    n: i64,
    x: *const T,
    incx: i64,
    result: *mut I,
) -> Result {
    // SAFETY: the caller's promise.
    unsafe { answer(handle, result, x, move |x| I::of(level1::iamin::<T, T>(n, x, incx))) }
}

/// # Safety
/// As [`axpy`].
pub unsafe fn rot<T: Scalar, F: Factor<T>>(
    handle: &Handle,
    n: i64,
    x: *mut T,
    incx: i64,
    y: *mut T,
    incy: i64,
    c: *const T::Real,
    s: *const F,
) -> Result {
    // SAFETY: the caller's promise.
    let (c, s) = unsafe { (handle.scalar(c)?, handle.scalar(s)?) };
    // SAFETY: the caller's promise.
    handle.enqueue((x, y), move |(x, y)| unsafe {
        rotation::rot(n, x, incx, y, incy, c.get(), s.get().as_element())
    })
}

/// Scalars in, scalars out: with the host's it is done at once.
///
/// # Safety
/// As [`axpy`].
pub unsafe fn rotg<T: Scalar>(handle: &Handle, a: *mut T, b: *mut T, c: *mut T::Real, s: *mut T) -> Result {
    require([a.is_null(), b.is_null(), c.is_null(), s.is_null()] == [false; 4], "a scalar is NULL")?;
    now_or_in_order(handle, (a, b, c, s), move |(a, b, c, s)| {
        // SAFETY: the caller's promise; scalars of the host are the caller's for the call.
        unsafe {
            let found = rotation::rotg(a.read_unaligned(), b.read_unaligned());
            a.write_unaligned(found.r);
            b.write_unaligned(found.z);
            c.write_unaligned(found.c);
            s.write_unaligned(found.s);
        }
    })
}

/// # Safety
/// As [`axpy`].
pub unsafe fn rotm<T: Real>(
    handle: &Handle,
    n: i64,
    x: *mut T,
    incx: i64,
    y: *mut T,
    incy: i64,
    param: *const T,
) -> Result {
    // SAFETY: the caller's promise.
    let param = unsafe { handle.scalars::<5, T>(param)? };
    // SAFETY: the caller's promise.
    handle.enqueue((x, y), move |(x, y)| unsafe {
        rotation::rotm::<T, T, T>(n, x, incx, y, incy, param.get() as Param<T>)
    })
}

/// # Safety
/// As [`axpy`].
pub unsafe fn rotmg<T: Real>(
    handle: &Handle,
    d1: *mut T,
    d2: *mut T,
    x1: *mut T,
    y1: *const T,
    param: *mut T,
) -> Result {
    let all = [d1.cast_const(), d2, x1, y1, param];
    require(!all.contains(&std::ptr::null()), "a scalar is NULL")?;
    now_or_in_order(handle, (d1, d2, x1, y1, param), move |(d1, d2, x1, y1, param)| {
        // SAFETY: as in `rotg`; `param` has five elements.
        unsafe {
            let found = rotation::rotmg(
                d1.read_unaligned(),
                d2.read_unaligned(),
                x1.read_unaligned(),
                y1.read_unaligned(),
            );
            d1.write_unaligned(found.d1);
            d2.write_unaligned(found.d2);
            x1.write_unaligned(found.x1);
            for (at, value) in found.param.into_iter().enumerate() {
                if let Some(value) = value {
                    param.add(at).write_unaligned(value);
                }
            }
        }
    })
}

/// A routine's one result, on the host or in device memory, of what lies at some addresses.
///
/// # Safety
/// `result` is NULL or may be written, and `value` called with the addresses, until the routine has run.
pub(super) unsafe fn answer<R: Copy + 'static, A: Addresses + 'static>(
    handle: &Handle,
    result: *mut R,
    at: A,
    value: impl Fn(A) -> R + Send + Sync + 'static,
) -> Result {
    if result.is_null() {
        return Err(Error::InvalidValue("result is NULL"));
    }
    // SAFETY: cuBLAS's contract: it may be written when the routine runs, which a result on the host waits for.
    handle.enqueue_result((result, at), move |(result, at)| unsafe { result.write_unaligned(value(at)) })
}

pub(super) fn now_or_in_order<A: Addresses + 'static>(
    handle: &Handle,
    at: A,
    work: impl Fn(A) + Send + Sync + 'static,
) -> Result {
    match handle.state().pointer_mode {
        cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE => handle.enqueue(at, work),
        _ => {
            work(at);
            Ok(())
        }
    }
}
