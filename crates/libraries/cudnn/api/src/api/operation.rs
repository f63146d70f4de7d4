//! What is done to tensors element by element. Source: cuDNN manual, "cudnn_ops library", `cudnnAddTensor` and so on.

use core::ffi::c_void;

use border::{OptOut, Out};
use cudnn_cpu::pointwise::{self, Mix};
use cudnn_cpu::{Value, View};

use crate::descriptor::Descriptors;
use crate::error::require;
use crate::handle::{compute, computing, on_hip, on_kernels};
use crate::hip::convert;
use crate::kernels::elements::How;
use crate::tensor::{Tensor, argument, factor, is_double};
use crate::types::*;
use crate::{Error, Result};

/// Each size is the other's or 1, of as many.
fn repeats(of: &Tensor, into: &Tensor) -> Result {
    let fits = |(a, c): (&i32, &i32)| a == c || *a == 1;
    let same = of.sizes.len() == into.sizes.len() && of.sizes.iter().zip(&into.sizes).all(fits);
    require(same, "a tensor's size is neither the result's nor 1")
}

fn same_sizes(a: &Tensor, b: &Tensor) -> Result {
    require(a.sizes == b.sizes, "the tensors' sizes differ")
}

/// `y = alpha·x + beta·y` in y's type and layout.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnTransformTensor(
    handle: cudnnHandle_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    // SAFETY: the caller's promise.
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    same_sizes(&x, &y)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    on_kernels!(context, kernels => kernels.map(How::copy().blended(alpha, beta), &y, &[&x]));
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
    let is_double = is_double(from.kind()) || is_double(to.kind());
    compute!(context, is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { to.each::<V, 1>([from], V::of(alpha), V::of(beta), |_| ()) };
    })
}

/// `c = alpha·a + beta·c`, where sizes of 1 of a are repeated.
///
/// # Safety
/// As [`cudnnTransformTensor`].
pub unsafe fn cudnnAddTensor(
    handle: cudnnHandle_t,
    alpha: *const c_void,
    aDesc: cudnnTensorDescriptor_t,
    A: *const c_void,
    beta: *const c_void,
    cDesc: cudnnTensorDescriptor_t,
    C: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (a, c) = (argument(aDesc, A)?, argument(cDesc, C)?);
    repeats(&a, &c)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, c.kind) }?, unsafe { factor(beta, c.kind) }?);
    // With 0 what is there may not be read.
    if beta != 0.0 {
        on_hip!(context, hip => hip.mix(convert::ADD, [(beta, &c), (alpha, &a)], (0.0, &c), false));
    }
    on_kernels!(context, kernels => kernels.map(How::copy().blended(alpha, beta), &c, &[&a]));
    // SAFETY: the caller's promise.
    let to = unsafe { c.view() }?;
    // SAFETY: the caller's promise.
    let from = repeated(unsafe { a.view() }?, &to)?;
    let is_double = is_double(from.kind()) || is_double(to.kind());
    compute!(context, is_double, V => {
        // SAFETY: as above.
        unsafe { to.each::<V, 1>([from], V::of(alpha), V::of(beta), |_| ()) };
    })
}

/// A view over as many elements as the other's.
pub(super) fn repeated(of: View, to: &View) -> Result<View> {
    require(of.sizes().len() == to.sizes().len(), "vectors of channels in one tensor alone")?;
    Ok(of.repeated(to.sizes()))
}

/// # Safety
/// As [`cudnnTransformTensor`].
pub unsafe fn cudnnSetTensor(
    handle: cudnnHandle_t,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    valuePtr: *const c_void,
) -> Result {
    let context = computing(handle)?;
    let y = argument(yDesc, y)?;
    require(!valuePtr.is_null(), "valuePtr")?;
    on_hip!(context, hip => hip.fill(&y, valuePtr));
    // SAFETY: the caller's promise.
    let to = unsafe { y.view() }?;
    let mut room = 0_u64;
    // SAFETY: cuDNN's contract: an element of the tensor's type, of at most eight bytes.
    unsafe {
        core::ptr::copy_nonoverlapping(valuePtr.cast::<u8>(), (&raw mut room).cast::<u8>(), to.kind().bytes())
    };
    // SAFETY: one element in `room`.
    let value = unsafe { View::new((&raw mut room).cast(), to.kind(), &[1], &[1]).load::<f64>() }[0];
    on_kernels!(context, kernels => kernels.fill(&y, value));
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: as above.
        unsafe { to.update(V::of(0.0), |values, _| values.fill(V::of(value))) };
    })
}

/// # Safety
/// As [`cudnnTransformTensor`].
pub unsafe fn cudnnScaleTensor(
    handle: cudnnHandle_t,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    alpha: *const c_void,
) -> Result {
    let context = computing(handle)?;
    let y = argument(yDesc, y)?;
    // SAFETY: the caller's promise.
    let alpha = unsafe { factor(alpha, y.kind) }?;
    on_hip!(context, hip => hip.scale(&y, alpha));
    on_kernels!(context, kernels => kernels.map(How::copy().blended(alpha, 0.0), &y, &[&y]));
    // SAFETY: the caller's promise.
    let to = unsafe { y.view() }?;
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: as above.
        unsafe { to.each::<V, 1>([to], V::of(alpha), V::of(0.0), |_| ()) };
    })
}

#[derive(Clone, Copy, Default)]
struct OpTensor {
    op: cudnnOpTensorOp_t,
    computed: cudnnDataType_t,
    nan: cudnnNanPropagation_t,
}

static OPERATIONS: Descriptors<OpTensor> = Descriptors::new();

pub fn cudnnCreateOpTensorDescriptor(descriptor: Out<'_, cudnnOpTensorDescriptor_t>) -> Result {
    descriptor.write(OPERATIONS.add());
    Ok(())
}

pub fn cudnnDestroyOpTensorDescriptor(descriptor: cudnnOpTensorDescriptor_t) -> Result {
    OPERATIONS.remove(descriptor)
}

pub fn cudnnSetOpTensorDescriptor(
    opTensorDesc: cudnnOpTensorDescriptor_t,
    opTensorOp: cudnnOpTensorOp_t,
    opTensorCompType: cudnnDataType_t,
    opTensorNanOpt: cudnnNanPropagation_t,
) -> Result {
    require(opTensorOp <= cudnnOpTensorOp_t::CUDNN_OP_TENSOR_NOT, "there is no such operation")?;
    require(opTensorNanOpt <= cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN, "there is no such propagation")?;
    let operation = OpTensor { op: opTensorOp, computed: opTensorCompType, nan: opTensorNanOpt };
    OPERATIONS.set(opTensorDesc, operation)
}

pub fn cudnnGetOpTensorDescriptor(
    opTensorDesc: cudnnOpTensorDescriptor_t,
    opTensorOp: OptOut<'_, cudnnOpTensorOp_t>,
    opTensorCompType: OptOut<'_, cudnnDataType_t>,
    opTensorNanOpt: OptOut<'_, cudnnNanPropagation_t>,
) -> Result {
    let operation = OPERATIONS.get(opTensorDesc)?;
    opTensorOp.write(operation.op);
    opTensorCompType.write(operation.computed);
    opTensorNanOpt.write(operation.nan);
    Ok(())
}

/// `c = op(alpha1·a, alpha2·b) + beta·c`, where sizes of 1 of b are repeated. The manual does not say what NOT makes of a number:
/// it is not supported.
///
/// # Safety
/// As [`cudnnTransformTensor`].
pub unsafe fn cudnnOpTensor(
    handle: cudnnHandle_t,
    opTensorDesc: cudnnOpTensorDescriptor_t,
    alpha1: *const c_void,
    aDesc: cudnnTensorDescriptor_t,
    A: *const c_void,
    alpha2: *const c_void,
    bDesc: cudnnTensorDescriptor_t,
    B: *const c_void,
    beta: *const c_void,
    cDesc: cudnnTensorDescriptor_t,
    C: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let OpTensor { op, computed, nan } = OPERATIONS.get(opTensorDesc)?;
    let (a, c) = (argument(aDesc, A)?, argument(cDesc, C)?);
    repeats(&a, &c)?;
    // SAFETY: the caller's promise.
    let alpha1 = unsafe { factor(alpha1, computed) }?;
    // SAFETY: the caller's promise.
    let beta = unsafe { factor(beta, computed) }?;
    let is_unary = op == cudnnOpTensorOp_t::CUDNN_OP_TENSOR_SQRT;
    let second = if is_unary {
        None
    } else {
        let b = argument(bDesc, B)?;
        repeats(&b, &c)?;
        // SAFETY: the caller's promise.
        Some((b, unsafe { factor(alpha2, computed) }?))
    };
    if let Some((b, alpha2)) = &second
        && computed == cudnnDataType_t::CUDNN_DATA_FLOAT
        && nan == cudnnNanPropagation_t::CUDNN_NOT_PROPAGATE_NAN
        && let Some(op) = convert::number(op, &convert::OPERATIONS)
    {
        let apart = beta == 0.0 && a.memory != c.memory && b.memory != c.memory;
        on_hip!(context, hip => hip.mix(op, [(alpha1, &a), (*alpha2, b)], (beta, &c), apart));
    }
    let mix = match op {
        cudnnOpTensorOp_t::CUDNN_OP_TENSOR_ADD => Mix::Add,
        cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MUL => Mix::Mul,
        cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MIN => Mix::Min(nan == cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN),
        cudnnOpTensorOp_t::CUDNN_OP_TENSOR_MAX => Mix::Max(nan == cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN),
        cudnnOpTensorOp_t::CUDNN_OP_TENSOR_SQRT => Mix::Sqrt,
        _ => return Err(Error::NotSupported("CUDNN_OP_TENSOR_NOT")),
    };
    if computed != cudnnDataType_t::CUDNN_DATA_DOUBLE {
        let (b, alpha2) = second.as_ref().map_or((&a, 0.0), |(b, alpha2)| (b, *alpha2));
        let how = How::mix(mix, [alpha1 as f32, alpha2 as f32]).blended(1.0, beta);
        on_kernels!(context, kernels => kernels.map(how, &c, &[&a, b]));
    }
    // SAFETY: the caller's promise.
    let to = unsafe { c.view() }?;
    // SAFETY: the caller's promise.
    let from = repeated(unsafe { a.view() }?, &to)?;
    let (second, alpha2) = match second {
        // SAFETY: the caller's promise.
        Some((b, alpha2)) => (repeated(unsafe { b.view() }?, &to)?, alpha2),
        None => (from, 0.0),
    };
    let is_double = [from, second, to].iter().any(|view| is_double(view.kind()))
        || computed == cudnnDataType_t::CUDNN_DATA_DOUBLE;
    compute!(context, is_double, V => {
        let factors = (V::of(alpha1), V::of(alpha2));
        let mixed = |[a, b]: [&mut [V]; 2]| pointwise::mix(mix, factors, a, b);
        // SAFETY: as above.
        unsafe { to.each([from, second], V::of(1.0), V::of(beta), mixed) };
    })
}
