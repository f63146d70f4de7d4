//! Activations, softmax and local response normalization. Source: cuDNN manual, "cudnn_ops library".

use core::ffi::{c_uint, c_void};

use border::{OptOut, Out};
use cudnn_cpu::activation::{self, Activation};
use cudnn_cpu::lrn::{self, Lrn};
use cudnn_cpu::{Value, softmax};

use crate::descriptor::Descriptors;
use crate::error::require;
use crate::handle::{compute, computing, on_hip, on_kernels};
use crate::hip::activation::Softmax;
use crate::kernels::elements::How;
use crate::tensor::{Tensor, argument, factor, is_double, is_plain};
use crate::types::*;
use crate::{Error, Result};

#[derive(Clone, Copy)]
struct Settings {
    mode: cudnnActivationMode_t,
    nan: cudnnNanPropagation_t,
    coefficient: f64,
    swish: f64,
}

impl Default for Settings {
    fn default() -> Settings {
        let (mode, nan) = (cudnnActivationMode_t::default(), cudnnNanPropagation_t::default());
        Settings { mode, nan, coefficient: 0.0, swish: 1.0 }
    }
}

static ACTIVATIONS: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreateActivationDescriptor(descriptor: Out<'_, cudnnActivationDescriptor_t>) -> Result {
    descriptor.write(ACTIVATIONS.add());
    Ok(())
}

pub fn cudnnDestroyActivationDescriptor(descriptor: cudnnActivationDescriptor_t) -> Result {
    ACTIVATIONS.remove(descriptor)
}

pub fn cudnnSetActivationDescriptor(
    activationDesc: cudnnActivationDescriptor_t,
    mode: cudnnActivationMode_t,
    reluNanOpt: cudnnNanPropagation_t,
    coef: f64,
) -> Result {
    require(mode <= cudnnActivationMode_t::CUDNN_ACTIVATION_SWISH, "there is no such function")?;
    require(reluNanOpt <= cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN, "there is no such propagation")?;
    ACTIVATIONS.change(activationDesc, |settings| {
        *settings = Settings { mode, nan: reluNanOpt, coefficient: coef, ..*settings };
    })
}

pub fn cudnnGetActivationDescriptor(
    activationDesc: cudnnActivationDescriptor_t,
    mode: OptOut<'_, cudnnActivationMode_t>,
    reluNanOpt: OptOut<'_, cudnnNanPropagation_t>,
    coef: OptOut<'_, f64>,
) -> Result {
    let settings = ACTIVATIONS.get(activationDesc)?;
    mode.write(settings.mode);
    reluNanOpt.write(settings.nan);
    coef.write(settings.coefficient);
    Ok(())
}

pub fn cudnnSetActivationDescriptorSwishBeta(
    activationDesc: cudnnActivationDescriptor_t,
    swish_beta: f64,
) -> Result {
    ACTIVATIONS.change(activationDesc, |settings| settings.swish = swish_beta)
}

pub fn cudnnGetActivationDescriptorSwishBeta(
    activationDesc: cudnnActivationDescriptor_t,
    swish_beta: OptOut<'_, f64>,
) -> Result {
    swish_beta.write(ACTIVATIONS.get(activationDesc)?.swish);
    Ok(())
}

/// The function behind a descriptor.
pub(super) fn function(of: cudnnActivationDescriptor_t) -> Result<Activation> {
    let Settings { mode, nan, coefficient, swish } = ACTIVATIONS.get(of)?;
    let keeps_nan = nan == cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN;
    Ok(match mode {
        cudnnActivationMode_t::CUDNN_ACTIVATION_SIGMOID => Activation::Sigmoid,
        cudnnActivationMode_t::CUDNN_ACTIVATION_RELU => Activation::Relu(keeps_nan),
        cudnnActivationMode_t::CUDNN_ACTIVATION_TANH => Activation::Tanh,
        cudnnActivationMode_t::CUDNN_ACTIVATION_CLIPPED_RELU => {
            Activation::ClippedRelu(coefficient, keeps_nan)
        }
        cudnnActivationMode_t::CUDNN_ACTIVATION_ELU => Activation::Elu(coefficient),
        cudnnActivationMode_t::CUDNN_ACTIVATION_SWISH => Activation::Swish(swish),
        _ => Activation::Identity,
    })
}

/// The identity is for `cudnnConvolutionBiasActivationForward` alone.
fn own_function(of: cudnnActivationDescriptor_t) -> Result<Activation> {
    let function = function(of)?;
    require(function != Activation::Identity, "the identity is a convolution's activation alone")?;
    Ok(function)
}

fn same(tensors: &[&Tensor]) -> Result {
    let first = tensors[0];
    let are = tensors.iter().all(|other| other.sizes == first.sizes && other.kind == first.kind);
    require(are, "the tensors' sizes or types differ")
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnActivationForward(
    handle: cudnnHandle_t,
    activationDesc: cudnnActivationDescriptor_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let function = own_function(activationDesc)?;
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    same(&[&x, &y])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    if is_plain(alpha, beta) {
        on_hip!(context, hip => hip.activate(function, &x, &y, x.memory != y.memory));
    }
    let how = How::activation(function).blended(alpha, beta);
    on_kernels!(context, kernels => kernels.map(how, &y, &[&x]));
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { to.each::<V, 1>([from], V::of(alpha), V::of(beta), |[x]| activation::apply(function, x)) };
    })
}

/// # Safety
/// As [`cudnnActivationForward`].
pub unsafe fn cudnnActivationBackward(
    handle: cudnnHandle_t,
    activationDesc: cudnnActivationDescriptor_t,
    alpha: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let function = own_function(activationDesc)?;
    let (dy, dx) = (argument(dyDesc, dy)?, argument(dxDesc, dx)?);
    let (y, x) = (argument(yDesc, y)?, argument(xDesc, x)?);
    same(&[&dx, &dy, &y, &x])?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, dx.kind) }?, unsafe { factor(beta, dx.kind) }?);
    if is_plain(alpha, beta) {
        on_hip!(context, hip => hip.activation_gradient(function, [&x, &y, &dy], &dx));
    }
    let how = How::gradient(function).blended(alpha, beta);
    on_kernels!(context, kernels => kernels.map(how, &dx, &[&x, &y, &dy]));
    // SAFETY: the caller's promise.
    let [x_at, y_at, dy_at, dx_at] =
        [unsafe { x.view() }?, unsafe { y.view() }?, unsafe { dy.view() }?, unsafe { dx.view() }?];
    compute!(context, is_double(dx_at.kind()), V => {
        let gradient = |[x, y, dy]: [&mut [V]; 3]| activation::gradient(function, x, y, dy);
        // SAFETY: as above.
        unsafe { dx_at.each([x_at, y_at, dy_at], V::of(alpha), V::of(beta), gradient) };
    })
}

/// What is normalized together: how often, of how many, how far apart.
fn softmax_shape(mode: cudnnSoftmaxMode_t, of: &Tensor) -> Result<(usize, usize, usize)> {
    let sizes: Vec<usize> = of.sizes.iter().map(|&size| size as usize).collect();
    match mode {
        cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_INSTANCE => Ok((sizes[0], sizes[1..].iter().product(), 1)),
        cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL => {
            Ok((sizes[0], sizes[1], sizes[2..].iter().product()))
        }
        _ => Err(Error::BadParam("there is no such mode")),
    }
}

/// # Safety
/// As [`cudnnActivationForward`].
pub unsafe fn cudnnSoftmaxForward(
    handle: cudnnHandle_t,
    algo: cudnnSoftmaxAlgorithm_t,
    mode: cudnnSoftmaxMode_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    require(algo <= cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG, "there is no such algorithm")?;
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    same(&[&x, &y])?;
    let shape = softmax_shape(mode, &x)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    on_hip!(context, hip => hip.softmax(&Softmax { algorithm: algo, mode }, (alpha, &x), (beta, &y)));
    on_kernels!(context, kernels => kernels.softmax_tensor((algo, mode), [alpha as f32, beta as f32], [&x, &y]));
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
    let is_log = algo == cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG;
    let shifted = algo != cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_FAST;
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: as above.
        unsafe {
            let x = from.dense::<V>();
            let write = |y: &mut [V]| softmax::forward(shape, (is_log, shifted), &x, y);
            to.make(V::of(alpha), V::of(beta), &[from], write);
        }
    })
}

/// # Safety
/// As [`cudnnActivationForward`].
pub unsafe fn cudnnSoftmaxBackward(
    handle: cudnnHandle_t,
    algo: cudnnSoftmaxAlgorithm_t,
    mode: cudnnSoftmaxMode_t,
    alpha: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    beta: *const c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    require(algo <= cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG, "there is no such algorithm")?;
    let (y, dy, dx) = (argument(yDesc, y)?, argument(dyDesc, dy)?, argument(dxDesc, dx)?);
    same(&[&dx, &y, &dy])?;
    let shape = softmax_shape(mode, &y)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, dx.kind) }?, unsafe { factor(beta, dx.kind) }?);
    let how = Softmax { algorithm: algo, mode };
    on_hip!(context, hip => hip.softmax_gradient(&how, (alpha, [&y, &dy]), (beta, &dx)));
    let factors = [alpha as f32, beta as f32];
    on_kernels!(context, kernels => kernels.softmax_gradient((algo, mode), factors, [&y, &dy, &dx]));
    // SAFETY: the caller's promise.
    let (y_at, dy_at, dx_at) = (unsafe { y.view() }?, unsafe { dy.view() }?, unsafe { dx.view() }?);
    let is_log = algo == cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG;
    compute!(context, is_double(dx_at.kind()), V => {
        // SAFETY: as above.
        unsafe {
            let (y, dy) = (y_at.dense::<V>(), dy_at.dense::<V>());
            let write = |dx: &mut [V]| softmax::backward(shape, is_log, &y, &dy, dx);
            dx_at.make(V::of(alpha), V::of(beta), &[y_at, dy_at], write);
        }
    })
}

static NORMS: Descriptors<Option<Lrn>> = Descriptors::new();

pub fn cudnnCreateLRNDescriptor(descriptor: Out<'_, cudnnLRNDescriptor_t>) -> Result {
    descriptor.write(NORMS.add());
    Ok(())
}

pub fn cudnnDestroyLRNDescriptor(descriptor: cudnnLRNDescriptor_t) -> Result {
    NORMS.remove(descriptor)
}

/// One to sixteen channels; k is at least 1e-5 and beta at least 0.01.
pub fn cudnnSetLRNDescriptor(
    normDesc: cudnnLRNDescriptor_t,
    lrnN: c_uint,
    lrnAlpha: f64,
    lrnBeta: f64,
    lrnK: f64,
) -> Result {
    require((1..=16).contains(&lrnN), "a window of one to sixteen channels")?;
    require(lrnK >= 1e-5 && lrnBeta >= 0.01, "k or beta is too small")?;
    NORMS.set(normDesc, Some(Lrn { n: lrnN as usize, alpha: lrnAlpha, beta: lrnBeta, k: lrnK }))
}

/// What was not set is the manual's: 5, 1e-4, 0.75 and 2.
fn norm(of: cudnnLRNDescriptor_t) -> Result<Lrn> {
    Ok(NORMS.get(of)?.unwrap_or(Lrn { n: 5, alpha: 1e-4, beta: 0.75, k: 2.0 }))
}

pub fn cudnnGetLRNDescriptor(
    normDesc: cudnnLRNDescriptor_t,
    lrnN: OptOut<'_, c_uint>,
    lrnAlpha: OptOut<'_, f64>,
    lrnBeta: OptOut<'_, f64>,
    lrnK: OptOut<'_, f64>,
) -> Result {
    let norm = norm(normDesc)?;
    lrnN.write(norm.n as c_uint);
    lrnAlpha.write(norm.alpha);
    lrnBeta.write(norm.beta);
    lrnK.write(norm.k);
    Ok(())
}

fn channels(mode: cudnnLRNMode_t, of: &Tensor) -> Result<(usize, usize)> {
    require(mode == cudnnLRNMode_t::CUDNN_LRN_CROSS_CHANNEL_DIM1, "there is no such mode")?;
    let (_, channels, pixels) = of.images()?;
    Ok((channels, pixels.iter().product()))
}

/// # Safety
/// As [`cudnnActivationForward`].
pub unsafe fn cudnnLRNCrossChannelForward(
    handle: cudnnHandle_t,
    normDesc: cudnnLRNDescriptor_t,
    lrnMode: cudnnLRNMode_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let norm = norm(normDesc)?;
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    same(&[&x, &y])?;
    let shape = channels(lrnMode, &x)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    if is_plain(alpha, beta) {
        on_hip!(context, hip => hip.lrn(norm, &x, &y));
    }
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: as above.
        let values = unsafe { lrn::forward(norm, shape, &from.dense::<V>()) };
        // SAFETY: as above.
        unsafe { to.store(&values, V::of(alpha), V::of(beta)) };
    })
}

/// # Safety
/// As [`cudnnActivationForward`].
pub unsafe fn cudnnLRNCrossChannelBackward(
    handle: cudnnHandle_t,
    normDesc: cudnnLRNDescriptor_t,
    lrnMode: cudnnLRNMode_t,
    alpha: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let norm = norm(normDesc)?;
    let (y, dy) = (argument(yDesc, y)?, argument(dyDesc, dy)?);
    let (x, dx) = (argument(xDesc, x)?, argument(dxDesc, dx)?);
    same(&[&dx, &dy, &y, &x])?;
    let shape = channels(lrnMode, &x)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, dx.kind) }?, unsafe { factor(beta, dx.kind) }?);
    if is_plain(alpha, beta) {
        on_hip!(context, hip => hip.lrn_gradient(norm, [&x, &y, &dy], &dx));
    }
    // SAFETY: the caller's promise.
    let [x_at, y_at, dy_at, dx_at] =
        [unsafe { x.view() }?, unsafe { y.view() }?, unsafe { dy.view() }?, unsafe { dx.view() }?];
    compute!(context, is_double(dx_at.kind()), V => {
        // SAFETY: as above.
        let values = unsafe {
            lrn::backward(norm, shape, &x_at.dense::<V>(), &y_at.dense::<V>(), &dy_at.dense::<V>())
        };
        // SAFETY: as above.
        unsafe { dx_at.store(&values, V::of(alpha), V::of(beta)) };
    })
}
