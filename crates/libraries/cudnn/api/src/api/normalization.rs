//! Batch normalization, by its own calls and by those of 8's general ones. Source: cuDNN manual, "cudnn_ops library".
//!
//! No work area and no reserve space is used: what a backward pass needs are the tensors that it is given.

use core::ffi::{c_int, c_void};

use border::Out;
use cudnn_cpu::activation::Activation;
use cudnn_cpu::norm::{self, Shape};
use cudnn_cpu::pointwise::{self, Mix};
use cudnn_cpu::{Value, View};

use super::activation::function;
use crate::error::{require, supports};
use crate::handle::{compute, computing, on_hip, on_kernels};
use crate::hip::norm::Norm;
use crate::kernels::calls::{Averages, BatchNorm};
use crate::tensor::{Argument, TENSORS, Tensor, argument, factor, is_plain, tensor};
use crate::types::*;
use crate::{Error, Result};

/// Statistics for each place of an image, or for each channel.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    EachPlace,
    EachChannel,
}

fn mode_of(mode: cudnnBatchNormMode_t) -> Result<Mode> {
    match mode {
        cudnnBatchNormMode_t::CUDNN_BATCHNORM_PER_ACTIVATION => Ok(Mode::EachPlace),
        cudnnBatchNormMode_t::CUDNN_BATCHNORM_SPATIAL
        | cudnnBatchNormMode_t::CUDNN_BATCHNORM_SPATIAL_PERSISTENT => Ok(Mode::EachChannel),
        _ => Err(Error::BadParam("there is no such mode")),
    }
}

/// The general calls' mode has the same two numbers.
fn mode_of_norm(mode: cudnnNormMode_t, groups: c_int) -> Result<Mode> {
    supports(groups == 1, "normalization in groups")?;
    mode_of(cudnnBatchNormMode_t(if mode.0 > 1 { u32::MAX } else { mode.0 }))
}

impl Mode {
    /// Sizes of scale, bias and statistics.
    fn sizes(self, of: &Tensor) -> Vec<c_int> {
        let keeps = |at: usize| at == 1 || (at > 1 && self == Mode::EachPlace);
        of.sizes.iter().enumerate().map(|(at, &size)| if keeps(at) { size } else { 1 }).collect()
    }

    fn shape(self, of: &Tensor) -> Result<Shape> {
        let (images, channels, pixels) = of.images()?;
        let pixels = pixels.iter().product();
        Ok(match self {
            Mode::EachPlace => Shape { images, channels: channels * pixels, pixels: 1 },
            Mode::EachChannel => Shape { images, channels, pixels },
        })
    }

    /// Scale, bias and statistics are in `float`, of `double` tensors in `double`.
    fn derived(self, of: &Tensor) -> Result<Tensor> {
        supports(matches!(of.sizes.len(), 4 | 5), "normalization of other than four or five sizes")?;
        let kind = match of.kind {
            cudnnDataType_t::CUDNN_DATA_DOUBLE => of.kind,
            _ => cudnnDataType_t::CUDNN_DATA_FLOAT,
        };
        Tensor::of_format(cudnnTensorFormat_t::CUDNN_TENSOR_NCHW, kind, &self.sizes(of))
    }
}

pub fn cudnnDeriveBNTensorDescriptor(
    derivedBnDesc: cudnnTensorDescriptor_t,
    xDesc: cudnnTensorDescriptor_t,
    mode: cudnnBatchNormMode_t,
) -> Result {
    TENSORS.set(derivedBnDesc, mode_of(mode)?.derived(&tensor(xDesc)?)?)
}

pub fn cudnnDeriveNormTensorDescriptor(
    derivedNormScaleBiasDesc: cudnnTensorDescriptor_t,
    derivedNormMeanVarDesc: cudnnTensorDescriptor_t,
    xDesc: cudnnTensorDescriptor_t,
    mode: cudnnNormMode_t,
    groupCnt: c_int,
) -> Result {
    let derived = mode_of_norm(mode, groupCnt)?.derived(&tensor(xDesc)?)?;
    TENSORS.set(derivedNormScaleBiasDesc, derived.clone())?;
    TENSORS.set(derivedNormMeanVarDesc, derived)
}

/// Scale, bias or statistics: an array of a number each.
struct Parameters {
    tensor: Tensor,
    is_double: bool,
}

impl Parameters {
    fn new(of: cudnnTensorDescriptor_t, mode: Mode, x: &Tensor) -> Result<Parameters> {
        let tensor = tensor(of)?;
        require(tensor.sizes == mode.sizes(x), "the parameters' sizes are not those of the mode")?;
        let is_double = tensor.kind == cudnnDataType_t::CUDNN_DATA_DOUBLE;
        require(is_double == (x.kind == cudnnDataType_t::CUDNN_DATA_DOUBLE), "the parameters' type")?;
        Ok(Parameters { tensor, is_double })
    }

    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn at(&self, memory: *const c_void) -> Result<View> {
        // SAFETY: the caller's promise.
        unsafe { self.tensor.view(memory) }
    }

    /// As MIOpen takes it.
    fn on_hip(&self, mode: Mode, epsilon: f64) -> Norm<'_> {
        Norm { of_channels: mode == Mode::EachChannel, parameters: &self.tensor, epsilon }
    }

    /// As our own kernels take it.
    fn on_kernels<'t>(
        &'t self,
        x: &'t Argument,
        scale: *const c_void,
        epsilon: f64,
        (added, function): (Option<&'t Argument>, Activation),
    ) -> BatchNorm<'t> {
        BatchNorm { x, parameters: &self.tensor, scale, epsilon, added, function }
    }

    /// Two that are both there or both not.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn both(&self, a: *const c_void, b: *const c_void) -> Result<Option<(View, View)>> {
        require(a.is_null() == b.is_null(), "of two arrays that go together one is NULL")?;
        // SAFETY: the caller's promise.
        Ok(if a.is_null() { None } else { Some((unsafe { self.at(a) }?, unsafe { self.at(b) }?)) })
    }
}

fn images(x: &Tensor, others: &[&Tensor]) -> Result {
    let kind = x.element()?;
    supports(
        matches!(
            kind,
            cudnn_cpu::Kind::F32 | cudnn_cpu::Kind::F64 | cudnn_cpu::Kind::F16 | cudnn_cpu::Kind::Bf16
        ),
        "normalization of this type",
    )?;
    let same = others.iter().all(|other| other.sizes == x.sizes && other.kind == x.kind);
    require(same, "the tensors' sizes or types differ")
}

/// What is added before the activation, and the activation.
struct Behind {
    added: Option<Argument>,
    function: Activation,
}

impl Behind {
    const NOTHING: Behind = Behind { added: None, function: Activation::Identity };

    /// The operations have the numbers 0 (nothing), 1 (an activation) and 2 (a sum and an activation).
    fn new(
        ops: u32,
        z: (cudnnTensorDescriptor_t, *const c_void),
        activation: cudnnActivationDescriptor_t,
        x: &Tensor,
    ) -> Result<Behind> {
        require(ops <= 2, "there are no such operations")?;
        if ops == 0 {
            return Ok(Behind::NOTHING);
        }
        let added = (ops == 2).then(|| argument(z.0, z.1)).transpose()?;
        if let Some(z) = &added {
            images(x, &[z])?;
        }
        Ok(Behind { added, function: function(activation)? })
    }

    fn is_nothing(&self) -> bool {
        self.added.is_none() && self.function == Activation::Identity
    }

    /// As our own code takes it.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn view(&self) -> Result<After> {
        // SAFETY: the caller's promise.
        let added = self.added.as_ref().map(|added| unsafe { added.view() }).transpose()?;
        Ok(After { added, function: self.function })
    }

    /// As kernels take it.
    fn on_kernels(&self) -> (Option<&Argument>, Activation) {
        (self.added.as_ref(), self.function)
    }
}

/// The same in memory.
#[derive(Clone, Copy)]
struct After {
    added: Option<View>,
    function: Activation,
}

impl After {
    /// What is read while results are written.
    fn reads(&self, x: View) -> Vec<View> {
        core::iter::once(x).chain(self.added).collect()
    }

    /// # Safety
    /// What is added is there.
    unsafe fn apply<V: Value>(&self, values: &mut [V]) {
        if let Some(added) = self.added {
            // SAFETY: the caller's word.
            let added = unsafe { added.dense::<V>() };
            cudnn_cpu::pieces(values, 1 << 14, 1 << 16, |number, values| {
                let added = &added[number << 14..][..values.len()];
                pointwise::mix(Mix::Add, (V::of(1.0), V::of(1.0)), values, added);
            });
        }
        if self.function != Activation::Identity {
            cudnn_cpu::activation::apply(self.function, values);
        }
    }
}

fn inverse<V: Value>(variance: &[V], epsilon: f64) -> Vec<V> {
    variance.iter().map(|variance| V::of(1.0 / (variance.get() + epsilon).sqrt())).collect()
}

/// A forward pass that makes statistics.
struct Training {
    mode: Mode,
    alpha: *const c_void,
    beta: *const c_void,
    x: (cudnnTensorDescriptor_t, *const c_void),
    z: (cudnnTensorDescriptor_t, *const c_void),
    y: (cudnnTensorDescriptor_t, *mut c_void),
    parameters: cudnnTensorDescriptor_t,
    scale: *const c_void,
    bias: *const c_void,
    factor: f64,
    running: (*mut c_void, *mut c_void),
    epsilon: f64,
    saved: (*mut c_void, *mut c_void),
    ops: u32,
    activation: cudnnActivationDescriptor_t,
}

impl Training {
    /// The running variance is the corrected one.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn run(self, handle: cudnnHandle_t) -> Result {
        let context = computing(handle)?;
        require(self.epsilon >= 0.0, "epsilon is negative")?;
        let (x, y) = (argument(self.x.0, self.x.1)?, argument(self.y.0, self.y.1)?);
        images(&x, &[&y])?;
        let shape = self.mode.shape(&x)?;
        let parameters = Parameters::new(self.parameters, self.mode, &x)?;
        // SAFETY: the caller's promise.
        let (alpha, beta) = (unsafe { factor(self.alpha, x.kind) }?, unsafe { factor(self.beta, x.kind) }?);
        let pairs = [self.running, self.saved];
        if self.ops == 0 && is_plain(alpha, beta) && pairs.iter().all(|(a, b)| a.is_null() == b.is_null()) {
            let how = parameters.on_hip(self.mode, self.epsilon);
            let [running, saved] = pairs.map(<[_; 2]>::from);
            let (read, running) = ([self.scale, self.bias].map(<*const _>::cast_mut), (self.factor, running));
            on_hip!(context, hip => hip.normalize_training(&how, [&x, &y], read, running, saved));
        }
        let behind = Behind::new(self.ops, self.z, self.activation, &x)?;
        if pairs.iter().all(|(a, b)| a.is_null() == b.is_null()) {
            let [running, saved] = pairs.map(|(a, b)| [a.cast_const(), b.cast_const()]);
            let averages = Averages::Own { factor: self.factor, running, saved };
            let how = parameters.on_kernels(&x, self.scale, self.epsilon, behind.on_kernels());
            let factors = [alpha as f32, beta as f32];
            on_kernels!(context, kernels => kernels.batch_norm(&how, (&y, self.bias), &averages, factors));
        }
        // SAFETY: the caller's promise.
        let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
        // SAFETY: the caller's promise.
        let (scale, bias) = (unsafe { parameters.at(self.scale) }?, unsafe { parameters.at(self.bias) }?);
        // SAFETY: the caller's promise.
        let running = unsafe { parameters.both(self.running.0, self.running.1) }?;
        // SAFETY: the caller's promise.
        let saved = unsafe { parameters.both(self.saved.0, self.saved.1) }?;
        // SAFETY: the caller's promise.
        let after = unsafe { behind.view() }?;
        let (epsilon, average) = (self.epsilon, self.factor);
        compute!(context, parameters.is_double, V => {
            // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
            unsafe {
                let x = from.dense::<V>();
                let [mean, variance] = norm::statistics(shape, &x);
                let inverse = inverse(&variance, epsilon);
                let (scale, bias) = (scale.load::<V>(), bias.load::<V>());
                to.make(V::of(alpha), V::of(beta), &after.reads(from), |y| {
                    norm::normalized(shape, &x, (&mean, &inverse), &scale, &bias, y);
                    after.apply(y);
                });
                if let Some((running_mean, running_variance)) = running {
                    let count = shape.count() as f64;
                    let corrected = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
                    running_mean.store(&mean, V::of(average), V::of(1.0 - average));
                    running_variance.store(&variance, V::of(average * corrected), V::of(1.0 - average));
                }
                if let Some((saved_mean, saved_inverse)) = saved {
                    saved_mean.store(&mean, V::of(1.0), V::of(0.0));
                    saved_inverse.store(&inverse, V::of(1.0), V::of(0.0));
                }
            }
        })
    }
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnBatchNormalizationForwardTraining(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    alpha: *const c_void,
    beta: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    bnScaleBiasMeanVarDesc: cudnnTensorDescriptor_t,
    bnScale: *const c_void,
    bnBias: *const c_void,
    exponentialAverageFactor: f64,
    resultRunningMean: *mut c_void,
    resultRunningVariance: *mut c_void,
    epsilon: f64,
    resultSaveMean: *mut c_void,
    resultSaveInvVariance: *mut c_void,
) -> Result {
    let training = Training {
        mode: mode_of(mode)?,
        alpha,
        beta,
        x: (xDesc, x),
        z: (core::ptr::null_mut(), core::ptr::null()),
        y: (yDesc, y),
        parameters: bnScaleBiasMeanVarDesc,
        scale: bnScale,
        bias: bnBias,
        factor: exponentialAverageFactor,
        running: (resultRunningMean, resultRunningVariance),
        epsilon,
        saved: (resultSaveMean, resultSaveInvVariance),
        ops: 0,
        activation: core::ptr::null_mut(),
    };
    // SAFETY: the caller's promise.
    unsafe { training.run(handle) }
}

/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnBatchNormalizationForwardTrainingEx(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    bnOps: cudnnBatchNormOps_t,
    alpha: *const c_void,
    beta: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    xData: *const c_void,
    zDesc: cudnnTensorDescriptor_t,
    zData: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    yData: *mut c_void,
    bnScaleBiasMeanVarDesc: cudnnTensorDescriptor_t,
    bnScale: *const c_void,
    bnBias: *const c_void,
    exponentialAverageFactor: f64,
    resultRunningMean: *mut c_void,
    resultRunningVariance: *mut c_void,
    epsilon: f64,
    resultSaveMean: *mut c_void,
    resultSaveInvVariance: *mut c_void,
    activationDesc: cudnnActivationDescriptor_t,
    _workspace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    _reserveSpace: *mut c_void,
    _reserveSpaceSizeInBytes: usize,
) -> Result {
    let training = Training {
        mode: mode_of(mode)?,
        alpha,
        beta,
        x: (xDesc, xData),
        z: (zDesc, zData),
        y: (yDesc, yData),
        parameters: bnScaleBiasMeanVarDesc,
        scale: bnScale,
        bias: bnBias,
        factor: exponentialAverageFactor,
        running: (resultRunningMean, resultRunningVariance),
        epsilon,
        saved: (resultSaveMean, resultSaveInvVariance),
        ops: bnOps.0,
        activation: activationDesc,
    };
    // SAFETY: the caller's promise.
    unsafe { training.run(handle) }
}

/// Scale and bias, mean and variance may have descriptors of their own, which are equal.
///
/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnNormalizationForwardTraining(
    handle: cudnnHandle_t,
    mode: cudnnNormMode_t,
    normOps: cudnnNormOps_t,
    _algo: cudnnNormAlgo_t,
    alpha: *const c_void,
    beta: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    xData: *const c_void,
    normScaleBiasDesc: cudnnTensorDescriptor_t,
    normScale: *const c_void,
    normBias: *const c_void,
    exponentialAverageFactor: f64,
    normMeanVarDesc: cudnnTensorDescriptor_t,
    resultRunningMean: *mut c_void,
    resultRunningVariance: *mut c_void,
    epsilon: f64,
    resultSaveMean: *mut c_void,
    resultSaveInvVariance: *mut c_void,
    activationDesc: cudnnActivationDescriptor_t,
    zDesc: cudnnTensorDescriptor_t,
    zData: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    yData: *mut c_void,
    _workspace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    _reserveSpace: *mut c_void,
    _reserveSpaceSizeInBytes: usize,
    groupCnt: c_int,
) -> Result {
    equal(normScaleBiasDesc, normMeanVarDesc)?;
    let training = Training {
        mode: mode_of_norm(mode, groupCnt)?,
        alpha,
        beta,
        x: (xDesc, xData),
        z: (zDesc, zData),
        y: (yDesc, yData),
        parameters: normScaleBiasDesc,
        scale: normScale,
        bias: normBias,
        factor: exponentialAverageFactor,
        running: (resultRunningMean, resultRunningVariance),
        epsilon,
        saved: (resultSaveMean, resultSaveInvVariance),
        ops: normOps.0,
        activation: activationDesc,
    };
    // SAFETY: the caller's promise.
    unsafe { training.run(handle) }
}

fn equal(a: cudnnTensorDescriptor_t, b: cudnnTensorDescriptor_t) -> Result {
    require(tensor(a)? == tensor(b)?, "the descriptors of parameters and statistics differ")
}

/// Those of a forward pass with statistics that are there.
#[derive(Clone, Copy)]
struct Statistics {
    mean: *const c_void,
    variance: *const c_void,
    epsilon: f64,
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn infer(
    handle: cudnnHandle_t,
    mode: Mode,
    [alpha, beta]: [*const c_void; 2],
    x: (cudnnTensorDescriptor_t, *const c_void),
    y: (cudnnTensorDescriptor_t, *mut c_void),
    (descriptor, scale, bias): (cudnnTensorDescriptor_t, *const c_void, *const c_void),
    statistics: Statistics,
    behind: impl FnOnce(&Tensor) -> Result<Behind>,
) -> Result {
    let context = computing(handle)?;
    require(statistics.epsilon >= 0.0, "epsilon is negative")?;
    let (x, y) = (argument(x.0, x.1)?, argument(y.0, y.1)?);
    images(&x, &[&y])?;
    let shape = mode.shape(&x)?;
    let parameters = Parameters::new(descriptor, mode, &x)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, x.kind) }?, unsafe { factor(beta, x.kind) }?);
    let behind = behind(&x)?;
    if behind.is_nothing() && is_plain(alpha, beta) {
        let how = parameters.on_hip(mode, statistics.epsilon);
        let read = [scale, bias].map(<*const _>::cast_mut);
        let there = [statistics.mean, statistics.variance].map(<*const _>::cast_mut);
        on_hip!(context, hip => hip.normalize(&how, [&x, &y], read, there));
    }
    let averages = Averages::Estimated([statistics.mean, statistics.variance]);
    let how = parameters.on_kernels(&x, scale, statistics.epsilon, behind.on_kernels());
    let factors = [alpha as f32, beta as f32];
    on_kernels!(context, kernels => kernels.batch_norm(&how, (&y, bias), &averages, factors));
    // SAFETY: the caller's promise.
    let after = unsafe { behind.view() }?;
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
    // SAFETY: the caller's promise.
    let (scale, bias) = (unsafe { parameters.at(scale) }?, unsafe { parameters.at(bias) }?);
    // SAFETY: the caller's promise.
    let (mean, variance) =
        (unsafe { parameters.at(statistics.mean) }?, unsafe { parameters.at(statistics.variance) }?);
    let epsilon = statistics.epsilon;
    compute!(context, parameters.is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        unsafe {
            let inverse = inverse(&variance.load::<V>(), epsilon);
            let (mean, scale, bias) = (mean.load::<V>(), scale.load::<V>(), bias.load::<V>());
            let x = from.dense::<V>();
            to.make(V::of(alpha), V::of(beta), &after.reads(from), |y| {
                norm::normalized(shape, &x, (&mean, &inverse), &scale, &bias, y);
                after.apply(y);
            });
        }
    })
}

/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnBatchNormalizationForwardInference(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    alpha: *const c_void,
    beta: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    bnScaleBiasMeanVarDesc: cudnnTensorDescriptor_t,
    bnScale: *const c_void,
    bnBias: *const c_void,
    estimatedMean: *const c_void,
    estimatedVariance: *const c_void,
    epsilon: f64,
) -> Result {
    let parameters = (bnScaleBiasMeanVarDesc, bnScale, bnBias);
    let statistics = Statistics { mean: estimatedMean, variance: estimatedVariance, epsilon };
    let (x, y) = ((xDesc, x), (yDesc, y));
    // SAFETY: the caller's promise.
    unsafe {
        infer(handle, mode_of(mode)?, [alpha, beta], x, y, parameters, statistics, |_| Ok(Behind::NOTHING))
    }
}

/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnNormalizationForwardInference(
    handle: cudnnHandle_t,
    mode: cudnnNormMode_t,
    normOps: cudnnNormOps_t,
    _algo: cudnnNormAlgo_t,
    alpha: *const c_void,
    beta: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    normScaleBiasDesc: cudnnTensorDescriptor_t,
    normScale: *const c_void,
    normBias: *const c_void,
    normMeanVarDesc: cudnnTensorDescriptor_t,
    estimatedMean: *const c_void,
    estimatedVariance: *const c_void,
    zDesc: cudnnTensorDescriptor_t,
    z: *const c_void,
    activationDesc: cudnnActivationDescriptor_t,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    epsilon: f64,
    groupCnt: c_int,
) -> Result {
    equal(normScaleBiasDesc, normMeanVarDesc)?;
    let parameters = (normScaleBiasDesc, normScale, normBias);
    let statistics = Statistics { mean: estimatedMean, variance: estimatedVariance, epsilon };
    let (x, y, mode) = ((xDesc, x), (yDesc, y), mode_of_norm(mode, groupCnt)?);
    let behind = |of: &Tensor| Behind::new(normOps.0, (zDesc, z), activationDesc, of);
    // SAFETY: the caller's promise.
    unsafe { infer(handle, mode, [alpha, beta], x, y, parameters, statistics, behind) }
}

/// A backward pass.
struct Backward {
    mode: Mode,
    /// Of the tensor's gradient and the parameters'.
    factors: [*const c_void; 4],
    x: (cudnnTensorDescriptor_t, *const c_void),
    y: (cudnnTensorDescriptor_t, *const c_void),
    dy: (cudnnTensorDescriptor_t, *const c_void),
    dz: (cudnnTensorDescriptor_t, *mut c_void),
    dx: (cudnnTensorDescriptor_t, *mut c_void),
    parameters: cudnnTensorDescriptor_t,
    scale: *const c_void,
    dscale: *mut c_void,
    dbias: *mut c_void,
    epsilon: f64,
    saved: (*const c_void, *const c_void),
    ops: u32,
    activation: cudnnActivationDescriptor_t,
}

impl Backward {
    /// The result, and the activation that made it.
    fn activated(&self, x: &Tensor) -> Result<(Argument, Activation)> {
        let y = argument(self.y.0, self.y.1)?;
        images(x, &[&y])?;
        let function = function(self.activation)?;
        let is_told = matches!(
            function,
            Activation::Relu(_)
                | Activation::Sigmoid
                | Activation::Tanh
                | Activation::ClippedRelu(..)
                | Activation::Identity
        );
        supports(is_told, "the gradient of this activation behind a normalization")?;
        Ok((y, function))
    }

    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn run(self, handle: cudnnHandle_t) -> Result {
        let context = computing(handle)?;
        require(self.epsilon >= 0.0, "epsilon is negative")?;
        require(self.ops <= 2, "there are no such operations")?;
        let (x, dy) = (argument(self.x.0, self.x.1)?, argument(self.dy.0, self.dy.1)?);
        let dx = argument(self.dx.0, self.dx.1)?;
        images(&x, &[&dy, &dx])?;
        let shape = self.mode.shape(&x)?;
        let parameters = Parameters::new(self.parameters, self.mode, &x)?;
        let [alpha, beta, alpha_of, beta_of] = {
            // SAFETY: the caller's promise.
            let read = |at: usize| unsafe { factor(self.factors[at], x.kind) };
            [read(0)?, read(1)?, read(2)?, read(3)?]
        };
        let plain = is_plain(alpha, beta) && is_plain(alpha_of, beta_of);
        if self.ops == 0 && plain && self.saved.0.is_null() == self.saved.1.is_null() {
            let how = parameters.on_hip(self.mode, self.epsilon);
            let saved = <[_; 2]>::from(self.saved).map(<*const _>::cast_mut);
            let (scale, gradients) = (self.scale.cast_mut(), [self.dscale, self.dbias]);
            on_hip!(context, hip => hip.normalization_gradient(&how, [&x, &dy, &dx], scale, gradients, saved));
        }
        // Of a sum with z only y is there, which tells the derivative of some.
        let activated = (self.ops != 0).then(|| self.activated(&x)).transpose()?;
        let dz = (self.ops == 2).then(|| argument(self.dz.0, self.dz.1)).transpose()?;
        if let Some(dz) = &dz {
            images(&x, &[dz])?;
        }
        if self.saved.0.is_null() == self.saved.1.is_null() {
            let function = activated.as_ref().map_or(Activation::Identity, |(_, function)| *function);
            let how = parameters.on_kernels(&x, self.scale, self.epsilon, (dz.as_ref(), function));
            let arrays = [[self.dscale.cast_const(), self.dbias.cast_const()], self.saved.into()];
            let given = [[alpha as f32, beta as f32], [alpha_of as f32, beta_of as f32]];
            let y = activated.as_ref().map(|(y, _)| y);
            on_kernels!(context, kernels => kernels.batch_norm_gradient(&how, (y, [&dy, &dx]), arrays, given));
        }
        // SAFETY: the caller's promise.
        let (x_at, dy_at, dx_at) = (unsafe { x.view() }?, unsafe { dy.view() }?, unsafe { dx.view() }?);
        // SAFETY: the caller's promise.
        let scale = unsafe { parameters.at(self.scale) }?;
        // SAFETY: the caller's promise.
        let (dscale, dbias) = (unsafe { parameters.at(self.dscale) }?, unsafe { parameters.at(self.dbias) }?);
        // SAFETY: the caller's promise.
        let saved = unsafe { parameters.both(self.saved.0, self.saved.1) }?;
        let view = |(y, function): (Argument, Activation)| {
            // SAFETY: the caller's promise.
            let view = unsafe { y.view() }?;
            Ok::<_, Error>((view, function))
        };
        let activated = activated.map(view).transpose()?;
        // SAFETY: the caller's promise.
        let dz = dz.map(|dz| unsafe { dz.view() }).transpose()?;
        let epsilon = self.epsilon;
        compute!(context, parameters.is_double, V => {
            // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
            unsafe {
                let x = x_at.dense::<V>();
                // What is written before dx, and what was asked of dy, leaves dy as it was.
                let mut dy = if dz.is_some() { dy_at.load::<V>().into() } else { dy_at.dense::<V>() };
                if let Some((y, function)) = activated {
                    // The function is 0 or at its ceiling where its argument is not between.
                    dy = pointwise::map2(&y.dense::<V>(), &dy, |y, dy| function.backward(y, y, dy)).into();
                }
                if let Some(dz) = dz {
                    dz.store(&dy, V::of(alpha), V::of(beta));
                }
                let (mean, inverse) = match saved {
                    Some((mean, inverse)) => (mean.load::<V>(), inverse.load::<V>()),
                    None => {
                        let [mean, variance] = norm::statistics(shape, &x);
                        (mean, inverse(&variance, epsilon))
                    }
                };
                let (numbers, scale) = ((mean.as_slice(), inverse.as_slice()), scale.load::<V>());
                let gradients = norm::gradients(shape, &x, &dy, numbers);
                dx_at.make(V::of(alpha), V::of(beta), &[x_at, dy_at], |dx| {
                    norm::backward(shape, &x, &dy, numbers, &scale, &gradients, dx);
                });
                dscale.store(&gradients[0], V::of(alpha_of), V::of(beta_of));
                dbias.store(&gradients[1], V::of(alpha_of), V::of(beta_of));
            }
        })
    }
}

/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnBatchNormalizationBackward(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    alphaDataDiff: *const c_void,
    betaDataDiff: *const c_void,
    alphaParamDiff: *const c_void,
    betaParamDiff: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
    dBnScaleBiasDesc: cudnnTensorDescriptor_t,
    bnScale: *const c_void,
    dBnScaleResult: *mut c_void,
    dBnBiasResult: *mut c_void,
    epsilon: f64,
    savedMean: *const c_void,
    savedInvVariance: *const c_void,
) -> Result {
    let backward = Backward {
        mode: mode_of(mode)?,
        factors: [alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff],
        x: (xDesc, x),
        y: (core::ptr::null_mut(), core::ptr::null()),
        dy: (dyDesc, dy),
        dz: (core::ptr::null_mut(), core::ptr::null_mut()),
        dx: (dxDesc, dx),
        parameters: dBnScaleBiasDesc,
        scale: bnScale,
        dscale: dBnScaleResult,
        dbias: dBnBiasResult,
        epsilon,
        saved: (savedMean, savedInvVariance),
        ops: 0,
        activation: core::ptr::null_mut(),
    };
    // SAFETY: the caller's promise.
    unsafe { backward.run(handle) }
}

/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnBatchNormalizationBackwardEx(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    bnOps: cudnnBatchNormOps_t,
    alphaDataDiff: *const c_void,
    betaDataDiff: *const c_void,
    alphaParamDiff: *const c_void,
    betaParamDiff: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    xData: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    yData: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dyData: *const c_void,
    dzDesc: cudnnTensorDescriptor_t,
    dzData: *mut c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dxData: *mut c_void,
    dBnScaleBiasDesc: cudnnTensorDescriptor_t,
    bnScaleData: *const c_void,
    _bnBiasData: *const c_void,
    dBnScaleData: *mut c_void,
    dBnBiasData: *mut c_void,
    epsilon: f64,
    savedMean: *const c_void,
    savedInvVariance: *const c_void,
    activationDesc: cudnnActivationDescriptor_t,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    _reserveSpace: *mut c_void,
    _reserveSpaceSizeInBytes: usize,
) -> Result {
    let backward = Backward {
        mode: mode_of(mode)?,
        factors: [alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff],
        x: (xDesc, xData),
        y: (yDesc, yData),
        dy: (dyDesc, dyData),
        dz: (dzDesc, dzData),
        dx: (dxDesc, dxData),
        parameters: dBnScaleBiasDesc,
        scale: bnScaleData,
        dscale: dBnScaleData,
        dbias: dBnBiasData,
        epsilon,
        saved: (savedMean, savedInvVariance),
        ops: bnOps.0,
        activation: activationDesc,
    };
    // SAFETY: the caller's promise.
    unsafe { backward.run(handle) }
}

/// # Safety
/// As [`cudnnBatchNormalizationForwardTraining`].
pub unsafe fn cudnnNormalizationBackward(
    handle: cudnnHandle_t,
    mode: cudnnNormMode_t,
    normOps: cudnnNormOps_t,
    _algo: cudnnNormAlgo_t,
    alphaDataDiff: *const c_void,
    betaDataDiff: *const c_void,
    alphaParamDiff: *const c_void,
    betaParamDiff: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    xData: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    yData: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dyData: *const c_void,
    dzDesc: cudnnTensorDescriptor_t,
    dzData: *mut c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dxData: *mut c_void,
    dNormScaleBiasDesc: cudnnTensorDescriptor_t,
    normScaleData: *const c_void,
    _normBiasData: *const c_void,
    dNormScaleData: *mut c_void,
    dNormBiasData: *mut c_void,
    epsilon: f64,
    normMeanVarDesc: cudnnTensorDescriptor_t,
    savedMean: *const c_void,
    savedInvVariance: *const c_void,
    activationDesc: cudnnActivationDescriptor_t,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    _reserveSpace: *mut c_void,
    _reserveSpaceSizeInBytes: usize,
    groupCnt: c_int,
) -> Result {
    equal(dNormScaleBiasDesc, normMeanVarDesc)?;
    let backward = Backward {
        mode: mode_of_norm(mode, groupCnt)?,
        factors: [alphaDataDiff, betaDataDiff, alphaParamDiff, betaParamDiff],
        x: (xDesc, xData),
        y: (yDesc, yData),
        dy: (dyDesc, dyData),
        dz: (dzDesc, dzData),
        dx: (dxDesc, dxData),
        parameters: dNormScaleBiasDesc,
        scale: normScaleData,
        dscale: dNormScaleData,
        dbias: dNormBiasData,
        epsilon,
        saved: (savedMean, savedInvVariance),
        ops: normOps.0,
        activation: activationDesc,
    };
    // SAFETY: the caller's promise.
    unsafe { backward.run(handle) }
}

pub fn cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    _bnOps: cudnnBatchNormOps_t,
    _xDesc: cudnnTensorDescriptor_t,
    _zDesc: cudnnTensorDescriptor_t,
    _yDesc: cudnnTensorDescriptor_t,
    _bnScaleBiasMeanVarDesc: cudnnTensorDescriptor_t,
    _activationDesc: cudnnActivationDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    nothing(handle, mode_of(mode)?, sizeInBytes)
}

fn nothing(handle: cudnnHandle_t, _mode: Mode, size: Out<'_, usize>) -> Result {
    computing(handle)?;
    size.write(0);
    Ok(())
}

pub fn cudnnGetBatchNormalizationBackwardExWorkspaceSize(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    _bnOps: cudnnBatchNormOps_t,
    _xDesc: cudnnTensorDescriptor_t,
    _yDesc: cudnnTensorDescriptor_t,
    _dyDesc: cudnnTensorDescriptor_t,
    _dzDesc: cudnnTensorDescriptor_t,
    _dxDesc: cudnnTensorDescriptor_t,
    _dBnScaleBiasDesc: cudnnTensorDescriptor_t,
    _activationDesc: cudnnActivationDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    nothing(handle, mode_of(mode)?, sizeInBytes)
}

pub fn cudnnGetBatchNormalizationTrainingExReserveSpaceSize(
    handle: cudnnHandle_t,
    mode: cudnnBatchNormMode_t,
    _bnOps: cudnnBatchNormOps_t,
    _activationDesc: cudnnActivationDescriptor_t,
    _xDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    nothing(handle, mode_of(mode)?, sizeInBytes)
}

pub fn cudnnGetNormalizationForwardTrainingWorkspaceSize(
    handle: cudnnHandle_t,
    mode: cudnnNormMode_t,
    _normOps: cudnnNormOps_t,
    _algo: cudnnNormAlgo_t,
    _xDesc: cudnnTensorDescriptor_t,
    _zDesc: cudnnTensorDescriptor_t,
    _yDesc: cudnnTensorDescriptor_t,
    _normScaleBiasDesc: cudnnTensorDescriptor_t,
    _activationDesc: cudnnActivationDescriptor_t,
    _normMeanVarDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
    groupCnt: c_int,
) -> Result {
    nothing(handle, mode_of_norm(mode, groupCnt)?, sizeInBytes)
}

pub fn cudnnGetNormalizationBackwardWorkspaceSize(
    handle: cudnnHandle_t,
    mode: cudnnNormMode_t,
    _normOps: cudnnNormOps_t,
    _algo: cudnnNormAlgo_t,
    _xDesc: cudnnTensorDescriptor_t,
    _yDesc: cudnnTensorDescriptor_t,
    _dyDesc: cudnnTensorDescriptor_t,
    _dzDesc: cudnnTensorDescriptor_t,
    _dxDesc: cudnnTensorDescriptor_t,
    _dNormScaleBiasDesc: cudnnTensorDescriptor_t,
    _activationDesc: cudnnActivationDescriptor_t,
    _normMeanVarDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
    groupCnt: c_int,
) -> Result {
    nothing(handle, mode_of_norm(mode, groupCnt)?, sizeInBytes)
}

pub fn cudnnGetNormalizationTrainingReserveSpaceSize(
    handle: cudnnHandle_t,
    mode: cudnnNormMode_t,
    _normOps: cudnnNormOps_t,
    _algo: cudnnNormAlgo_t,
    _activationDesc: cudnnActivationDescriptor_t,
    _xDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
    groupCnt: c_int,
) -> Result {
    nothing(handle, mode_of_norm(mode, groupCnt)?, sizeInBytes)
}
