//! Level 1 with types for arguments: vectors of halves are computed in `f32`, all others in their own type.
//! Source: cuBLAS manual, "cuBLAS-like Extension", the tables of types.

use core::ffi::c_void;

use cublas_cpu::{Complex, Real, Scalar, Stored, bf16, f16, level1, rotation};
use kit::{Address, Addresses};

use super::level1::{Index, answer, now_or_in_order};
use crate::handle::Handle;
use crate::{Error, Result, cublasPointerMode_t, cudaDataType, require};

const NO_SUCH_TYPES: Error = Error::NotSupported("this combination of types");

/// Does what follows with vectors of type `X`, computed in `S`, as the two data types say. A body names what it uses of them.
macro_rules! in_types {
    ($data:expr, $execution:expr, |$($name:ident),+| $body:block) => {
        match ($data, $execution) {
            (cudaDataType::CUDA_R_16F, cudaDataType::CUDA_R_32F) => in_types!(@ ($($name)+) $($name)+, f16, f32, $body),
            (cudaDataType::CUDA_R_16BF, cudaDataType::CUDA_R_32F) => in_types!(@ ($($name)+) $($name)+, bf16, f32, $body),
            (cudaDataType::CUDA_R_32F, cudaDataType::CUDA_R_32F) => in_types!(@ ($($name)+) $($name)+, f32, f32, $body),
            (cudaDataType::CUDA_R_64F, cudaDataType::CUDA_R_64F) => in_types!(@ ($($name)+) $($name)+, f64, f64, $body),
            (cudaDataType::CUDA_C_32F, cudaDataType::CUDA_C_32F) => {
                in_types!(@ ($($name)+) $($name)+, Complex<f32>, Complex<f32>, $body)
            }
            (cudaDataType::CUDA_C_64F, cudaDataType::CUDA_C_64F) => {
                in_types!(@ ($($name)+) $($name)+, Complex<f64>, Complex<f64>, $body)
            }
            _ => Err(NO_SUCH_TYPES),
        }
    };
    (@ (X S) $X:ident $S:ident, $data:ty, $computed:ty, $body:block) => {{
        type $X = $data;
        type $S = $computed;
        $body
    }};
    (@ (X) $X:ident, $data:ty, $computed:ty, $body:block) => {{
        type $X = $data;
        $body
    }};
    (@ (S) $S:ident, $data:ty, $computed:ty, $body:block) => {{
        type $S = $computed;
        $body
    }};
}

/// What vectors of a type are computed in.
fn computed(data: cudaDataType) -> cudaDataType {
    match data {
        cudaDataType::CUDA_R_16F | cudaDataType::CUDA_R_16BF => cudaDataType::CUDA_R_32F,
        other => other,
    }
}

/// Norms of complex vectors say that they are computed in real numbers.
fn of_norm(data: cudaDataType, execution: cudaDataType) -> cudaDataType {
    match (data, execution) {
        (cudaDataType::CUDA_C_32F, cudaDataType::CUDA_R_32F)
        | (cudaDataType::CUDA_C_64F, cudaDataType::CUDA_R_64F) => data,
        _ => execution,
    }
}

fn real_of(data: cudaDataType) -> cudaDataType {
    match data {
        cudaDataType::CUDA_C_32F => cudaDataType::CUDA_R_32F,
        cudaDataType::CUDA_C_64F => cudaDataType::CUDA_R_64F,
        other => other,
    }
}

fn same(x: cudaDataType, y: cudaDataType) -> Result {
    if x == y { Ok(()) } else { Err(NO_SUCH_TYPES) }
}

type Reader<S> = unsafe fn(*const c_void) -> S;
type Writer<S> = unsafe fn(*mut c_void, S);

/// How single numbers of a routine that computes in `Self` may lie in memory.
trait Lying: Scalar {
    fn reader(data: cudaDataType) -> Result<Reader<Self>>;
    fn writer(data: cudaDataType) -> Result<Writer<Self>>;
}

unsafe fn read<S: Scalar, T: Stored<S>>(at: *const c_void) -> S {
    // SAFETY: the caller's promise.
    unsafe { at.cast::<T>().read_unaligned() }.load()
}

unsafe fn read_real<S: Scalar>(at: *const c_void) -> S {
    // SAFETY: the caller's promise.
    S::from_real(unsafe { at.cast::<S::Real>().read_unaligned() })
}

unsafe fn write<S: Scalar, T: Stored<S>>(at: *mut c_void, value: S) {
    // SAFETY: the caller's promise.
    unsafe { at.cast::<T>().write_unaligned(T::store(value)) }
}

macro_rules! lying {
    ($($computed:ty: $($data:ident $stored:ty),*; $($real:ident)?;)*) => {$(
        impl Lying for $computed {
            fn reader(data: cudaDataType) -> Result<Reader<Self>> {
                match data {
                    $(cudaDataType::$data => Ok(read::<Self, $stored>),)*
                    $(cudaDataType::$real => Ok(read_real::<Self>),)?
                    _ => Err(NO_SUCH_TYPES),
                }
            }

            fn writer(data: cudaDataType) -> Result<Writer<Self>> {
                match data {
                    $(cudaDataType::$data => Ok(write::<Self, $stored>),)*
                    _ => Err(NO_SUCH_TYPES),
                }
            }
        }
    )*};
}

lying! {
    f32: CUDA_R_32F f32, CUDA_R_16F f16, CUDA_R_16BF bf16;;
    f64: CUDA_R_64F f64;;
    Complex<f32>: CUDA_C_32F Complex<f32>; CUDA_R_32F;
    Complex<f64>: CUDA_C_64F Complex<f64>; CUDA_R_64F;
}

/// A factor whose type is an argument: read now from the host, or from device memory when the routine runs.
struct Factor<S> {
    host: Option<S>,
    at: Address<*const c_void>,
    reader: Reader<S>,
}

impl<S: Lying> Factor<S> {
    /// # Safety
    /// NULL, or a number of that type where the pointer mode says: on the host now, or in device memory until the routine has
    /// run.
    unsafe fn new(handle: &Handle, at: *const c_void, data: cudaDataType) -> Result<Self> {
        require(!at.is_null(), "a factor is NULL")?;
        let reader = S::reader(data)?;
        let is_device = handle.state().pointer_mode == cublasPointerMode_t::CUBLAS_POINTER_MODE_DEVICE;
        // SAFETY: cuBLAS's contract in the host's mode.
        let host = (!is_device).then(|| unsafe { reader(at) });
        Ok(Self { host, at: Address(at), reader })
    }

    fn get(&self) -> S {
        // SAFETY: cuBLAS's contract: device memory, good until the routine has run.
        self.host.unwrap_or_else(|| unsafe { (self.reader)(self.at.get()) })
    }
}

/// A result whose type is an argument.
///
/// # Safety
/// As [`answer`]; a result has the type that `data` says.
unsafe fn answer_as<S: Lying, A: Addresses + 'static>(
    handle: &Handle,
    result: *mut c_void,
    data: cudaDataType,
    at: A,
    value: impl Fn(A) -> S + Send + Sync + 'static,
) -> Result {
    require(!result.is_null(), "result is NULL")?;
    let writer = S::writer(data)?;
    // SAFETY: cuBLAS's contract: it may be written when the routine runs, which a result on the host waits for.
    handle.enqueue_result((result, at), move |(result, at)| unsafe { writer(result, value(at)) })
}

/// # Safety
/// The pointers are good for what cuBLAS's manual says of them: those to the host's memory during the call, those to the
/// device's until the routine has run.
pub unsafe fn axpy_ex(
    handle: &Handle,
    n: i64,
    alpha: *const c_void,
    alphaType: cudaDataType,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
    executiontype: cudaDataType,
) -> Result {
    same(xType, yType)?;
    in_types!(xType, executiontype, |X, S| {
        // SAFETY: the caller's promise.
        let alpha = unsafe { Factor::<S>::new(handle, alpha, alphaType)? };
        let (x, y) = (x.cast::<X>(), y.cast::<X>());
        // SAFETY: the caller's promise.
        handle.enqueue((x, y), move |(x, y)| unsafe { level1::axpy(n, alpha.get(), x, incx, y, incy) })
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn scal_ex(
    handle: &Handle,
    n: i64,
    alpha: *const c_void,
    alphaType: cudaDataType,
    x: *mut c_void,
    xType: cudaDataType,
    incx: i64,
    executionType: cudaDataType,
) -> Result {
    in_types!(xType, executionType, |X, S| {
        let x = x.cast::<X>();
        // A real factor multiplies each part by itself.
        if alphaType == real_of(alphaType) {
            // SAFETY: the caller's promise.
            let alpha = unsafe { Factor::<<S as Scalar>::Real>::new(handle, alpha, alphaType)? };
            // SAFETY: the caller's promise.
            return handle.enqueue(x, move |x| unsafe { level1::scal_real::<S, X>(n, alpha.get(), x, incx) });
        }
        // SAFETY: the caller's promise.
        let alpha = unsafe { Factor::<S>::new(handle, alpha, alphaType)? };
        // SAFETY: the caller's promise.
        handle.enqueue(x, move |x| unsafe { level1::scal(n, alpha.get(), x, incx) })
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn dot_ex(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    y: *const c_void,
    yType: cudaDataType,
    incy: i64,
    result: *mut c_void,
    resultType: cudaDataType,
    executionType: cudaDataType,
) -> Result {
    same(xType, yType)?;
    in_types!(xType, executionType, |X, S| {
        let (x, y) = (x.cast::<X>(), y.cast::<X>());
        // SAFETY: the caller's promise.
        unsafe {
            answer_as::<S, _>(handle, result, resultType, (x, y), move |(x, y)| {
                level1::dotu(n, x, incx, y, incy)
            })
        }
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn dotc_ex(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    y: *const c_void,
    yType: cudaDataType,
    incy: i64,
    result: *mut c_void,
    resultType: cudaDataType,
    executionType: cudaDataType,
) -> Result {
    same(xType, yType)?;
    in_types!(xType, executionType, |X, S| {
        let (x, y) = (x.cast::<X>(), y.cast::<X>());
        // SAFETY: the caller's promise.
        unsafe {
            answer_as::<S, _>(handle, result, resultType, (x, y), move |(x, y)| {
                level1::dotc(n, x, incx, y, incy)
            })
        }
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn nrm2_ex(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    result: *mut c_void,
    resultType: cudaDataType,
    executionType: cudaDataType,
) -> Result {
    in_types!(xType, of_norm(xType, executionType), |X, S| {
        let x = x.cast::<X>();
        // SAFETY: the caller's promise.
        unsafe { answer_as(handle, result, resultType, x, move |x| level1::nrm2::<S, X>(n, x, incx)) }
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn asum_ex(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    result: *mut c_void,
    resultType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    in_types!(xType, of_norm(xType, executiontype), |X, S| {
        let x = x.cast::<X>();
        // SAFETY: the caller's promise.
        unsafe { answer_as(handle, result, resultType, x, move |x| level1::asum::<S, X>(n, x, incx)) }
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn iamax_ex<I: Index>(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    result: *mut I,
) -> Result {
    in_types!(xType, computed(xType), |X, S| {
        let x = x.cast::<X>();
        // SAFETY: the caller's promise.
        unsafe { answer(handle, result, x, move |x| I::of(level1::iamax::<S, X>(n, x, incx))) }
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn iamin_ex<I: Index>(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    result: *mut I,
) -> Result {
    in_types!(xType, computed(xType), |X, S| {
        let x = x.cast::<X>();
        // SAFETY: the caller's promise.
        unsafe { answer(handle, result, x, move |x| I::of(level1::iamin::<S, X>(n, x, incx))) }
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn copy_ex(
    handle: &Handle,
    n: i64,
    x: *const c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
) -> Result {
    same(xType, yType)?;
    in_types!(xType, computed(xType), |X| {
        let (x, y) = (x.cast::<X>(), y.cast::<X>());
        // SAFETY: the caller's promise.
        handle.enqueue((x, y), move |(x, y)| unsafe { level1::copy(n, x, incx, y, incy) })
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn swap_ex(
    handle: &Handle,
    n: i64,
    x: *mut c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
) -> Result {
    same(xType, yType)?;
    in_types!(xType, computed(xType), |X| {
        let (x, y) = (x.cast::<X>(), y.cast::<X>());
        // SAFETY: the caller's promise.
        handle.enqueue((x, y), move |(x, y)| unsafe { level1::swap(n, x, incx, y, incy) })
    })
}

/// Of complex vectors `c` is real and `s` as `csType` says.
///
/// # Safety
/// As [`axpy_ex`].
pub unsafe fn rot_ex(
    handle: &Handle,
    n: i64,
    x: *mut c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
    c: *const c_void,
    s: *const c_void,
    csType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    same(xType, yType)?;
    in_types!(xType, executiontype, |X, S| {
        // SAFETY: the caller's promise.
        let c = unsafe { Factor::<<S as Scalar>::Real>::new(handle, c, real_of(csType))? };
        // SAFETY: the caller's promise.
        let s = unsafe { Factor::<S>::new(handle, s, csType)? };
        let (x, y) = (x.cast::<X>(), y.cast::<X>());
        // SAFETY: the caller's promise.
        handle.enqueue((x, y), move |(x, y)| unsafe { rotation::rot(n, x, incx, y, incy, c.get(), s.get()) })
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn rotg_ex(
    handle: &Handle,
    a: *mut c_void,
    b: *mut c_void,
    abType: cudaDataType,
    c: *mut c_void,
    s: *mut c_void,
    csType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    require([a, b, c, s].iter().all(|at| !at.is_null()), "a scalar is NULL")?;
    in_types!(abType, executiontype, |S| {
        let (reader, writer, writer_of_s) = (S::reader(abType)?, S::writer(abType)?, S::writer(csType)?);
        let writer_of_c = <S as Scalar>::Real::writer(real_of(csType))?;
        now_or_in_order(handle, (a, b, c, s), move |(a, b, c, s)| {
            // SAFETY: the caller's promise; scalars of the host are the caller's for the call.
            unsafe {
                let found = rotation::rotg(reader(a), reader(b));
                writer(a, found.r);
                writer(b, found.z);
                writer_of_c(c, found.c);
                writer_of_s(s, found.s);
            }
        })
    })
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn rotm_ex(
    handle: &Handle,
    n: i64,
    x: *mut c_void,
    xType: cudaDataType,
    incx: i64,
    y: *mut c_void,
    yType: cudaDataType,
    incy: i64,
    param: *const c_void,
    paramType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    same(xType, yType)?;
    match (xType, executiontype) {
        (cudaDataType::CUDA_R_16F, cudaDataType::CUDA_R_32F) => {
            // SAFETY: the caller's promise.
            unsafe { modified::<f16, f32>(handle, n, x.cast(), incx, y.cast(), incy, param, paramType) }
        }
        (cudaDataType::CUDA_R_16BF, cudaDataType::CUDA_R_32F) => {
            // SAFETY: the caller's promise.
            unsafe { modified::<bf16, f32>(handle, n, x.cast(), incx, y.cast(), incy, param, paramType) }
        }
        (cudaDataType::CUDA_R_32F, cudaDataType::CUDA_R_32F) => {
            // SAFETY: the caller's promise.
            unsafe { modified::<f32, f32>(handle, n, x.cast(), incx, y.cast(), incy, param, paramType) }
        }
        (cudaDataType::CUDA_R_64F, cudaDataType::CUDA_R_64F) => {
            // SAFETY: the caller's promise.
            unsafe { modified::<f64, f64>(handle, n, x.cast(), incx, y.cast(), incy, param, paramType) }
        }
        _ => Err(NO_SUCH_TYPES),
    }
}

/// # Safety
/// As [`rotm_ex`].
unsafe fn modified<X: Stored<R>, R: Real + Lying>(
    handle: &Handle,
    n: i64,
    x: *mut X,
    incx: i64,
    y: *mut X,
    incy: i64,
    param: *const c_void,
    data: cudaDataType,
) -> Result {
    let mut factors = Vec::new();
    for i in 0..5 {
        let at = if param.is_null() { param } else { param.wrapping_byte_add(i * bytes(data)) };
        // SAFETY: the caller's promise.
        factors.push(unsafe { Factor::<R>::new(handle, at, data) }?);
    }
    handle.enqueue((x, y), move |(x, y)| {
        let param = std::array::from_fn(|i| factors[i].get());
        // SAFETY: the caller's promise.
        unsafe { rotation::rotm::<R, X, X>(n, x, incx, y, incy, param) }
    })
}

/// Of a real type.
fn bytes(data: cudaDataType) -> usize {
    match data {
        cudaDataType::CUDA_R_64F => 8,
        cudaDataType::CUDA_R_32F => 4,
        _ => 2,
    }
}

/// # Safety
/// As [`axpy_ex`].
pub unsafe fn rotmg_ex(
    handle: &Handle,
    d1: *mut c_void,
    d1Type: cudaDataType,
    d2: *mut c_void,
    d2Type: cudaDataType,
    x1: *mut c_void,
    x1Type: cudaDataType,
    y1: *const c_void,
    y1Type: cudaDataType,
    param: *mut c_void,
    paramType: cudaDataType,
    executiontype: cudaDataType,
) -> Result {
    for data in [d2Type, x1Type, y1Type, paramType] {
        same(d1Type, data)?;
    }
    let scalars = [d1, d2, x1, y1.cast_mut(), param];
    match executiontype {
        // SAFETY: the caller's promise.
        cudaDataType::CUDA_R_32F => unsafe { make_modified::<f32>(handle, scalars, d1Type) },
        // SAFETY: the caller's promise.
        cudaDataType::CUDA_R_64F => unsafe { make_modified::<f64>(handle, scalars, d1Type) },
        _ => Err(NO_SUCH_TYPES),
    }
}

/// # Safety
/// As [`rotmg_ex`].
unsafe fn make_modified<R: Real + Lying>(
    handle: &Handle,
    scalars: [*mut c_void; 5],
    data: cudaDataType,
) -> Result {
    require(scalars.iter().all(|at| !at.is_null()), "a scalar is NULL")?;
    let (reader, writer) = (R::reader(data)?, R::writer(data)?);
    now_or_in_order(handle, scalars, move |[d1, d2, x1, y1, param]| {
        // SAFETY: as in `rotg_ex`; `param` has five elements.
        unsafe {
            let found = rotation::rotmg(reader(d1), reader(d2), reader(x1), reader(y1));
            writer(d1, found.d1);
            writer(d2, found.d2);
            writer(x1, found.x1);
            for (i, value) in found.param.into_iter().enumerate() {
                if let Some(value) = value {
                    writer(param.byte_add(i * bytes(data)), value);
                }
            }
        }
    })
}
