//! Convolutions. Source: cuDNN manual, "cudnn_cnn library".
//!
//! An algorithm is a hint: by our own code all give the same numbers, the same again on as many cores, and take no work area. On AMD GPUs
//! MIOpen chooses one of its deterministic ones.

use core::ffi::{c_int, c_void};

use border::{OptOut, Out};
use cudnn_cpu::activation::Activation;
use cudnn_cpu::convolution::{self, Geometry};
use cudnn_cpu::reduction::{Reduction, reduce};
use cudnn_cpu::{Kind, Value, View};

use super::activation::function;
use super::algorithms::Algorithm;
use super::operation::repeated;
use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{compute, computing, on_hip, on_kernels};
use crate::hip;
use crate::hip::convolution::{Area, Direction};
use crate::hip::objects::are_there;
use crate::tensor::{
    Argument, Filter, MOST, Tensor, argument, at, factor, filter, give, is_double, is_plain, list, tensor,
    three,
};
use crate::types::*;
use crate::{Result, memory};

#[derive(Clone)]
pub(super) struct Settings {
    padding: Vec<c_int>,
    stride: Vec<c_int>,
    dilation: Vec<c_int>,
    mode: cudnnConvolutionMode_t,
    computed: cudnnDataType_t,
    groups: c_int,
    pub(super) math: cudnnMathType_t,
    reorder: cudnnReorderType_t,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            padding: Vec::new(),
            stride: Vec::new(),
            dilation: Vec::new(),
            mode: cudnnConvolutionMode_t::default(),
            computed: cudnnDataType_t::default(),
            groups: 1,
            math: cudnnMathType_t::default(),
            reorder: cudnnReorderType_t::default(),
        }
    }
}

pub(super) static CONVOLUTIONS: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreateConvolutionDescriptor(descriptor: Out<'_, cudnnConvolutionDescriptor_t>) -> Result {
    descriptor.write(CONVOLUTIONS.add());
    Ok(())
}

pub fn cudnnDestroyConvolutionDescriptor(descriptor: cudnnConvolutionDescriptor_t) -> Result {
    CONVOLUTIONS.remove(descriptor)
}

fn set(
    convDesc: cudnnConvolutionDescriptor_t,
    [padding, stride, dilation]: [&[c_int]; 3],
    mode: cudnnConvolutionMode_t,
    computed: cudnnDataType_t,
) -> Result {
    require(padding.iter().all(|&padding| padding >= 0), "a padding is negative")?;
    require(stride.iter().all(|&stride| stride > 0), "a stride is not positive")?;
    require(dilation.iter().all(|&dilation| dilation > 0), "a dilation is not positive")?;
    require(mode <= cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION, "there is no such mode")?;
    crate::tensor::kind(computed)?;
    let (padding, stride, dilation) = (padding.to_vec(), stride.to_vec(), dilation.to_vec());
    CONVOLUTIONS.change(convDesc, |settings| {
        *settings = Settings { padding, stride, dilation, mode, computed, ..settings.clone() };
    })
}

pub fn cudnnSetConvolution2dDescriptor(
    convDesc: cudnnConvolutionDescriptor_t,
    pad_h: c_int,
    pad_w: c_int,
    u: c_int,
    v: c_int,
    dilation_h: c_int,
    dilation_w: c_int,
    mode: cudnnConvolutionMode_t,
    computeType: cudnnDataType_t,
) -> Result {
    set(convDesc, [&[pad_h, pad_w], &[u, v], &[dilation_h, dilation_w]], mode, computeType)
}

pub fn cudnnGetConvolution2dDescriptor(
    convDesc: cudnnConvolutionDescriptor_t,
    pad_h: OptOut<'_, c_int>,
    pad_w: OptOut<'_, c_int>,
    u: OptOut<'_, c_int>,
    v: OptOut<'_, c_int>,
    dilation_h: OptOut<'_, c_int>,
    dilation_w: OptOut<'_, c_int>,
    mode: OptOut<'_, cudnnConvolutionMode_t>,
    computeType: OptOut<'_, cudnnDataType_t>,
) -> Result {
    let settings = CONVOLUTIONS.get(convDesc)?;
    require(settings.padding.len() == 2, "the convolution is not one of two sizes")?;
    for (to, number) in [
        (pad_h, settings.padding[0]),
        (pad_w, settings.padding[1]),
        (u, settings.stride[0]),
        (v, settings.stride[1]),
        (dilation_h, settings.dilation[0]),
        (dilation_w, settings.dilation[1]),
    ] {
        to.write(number);
    }
    mode.write(settings.mode);
    computeType.write(settings.computed);
    Ok(())
}

/// # Safety
/// As [`cudnnIm2Col`].
pub unsafe fn cudnnSetConvolutionNdDescriptor(
    convDesc: cudnnConvolutionDescriptor_t,
    arrayLength: c_int,
    padA: *const c_int,
    filterStrideA: *const c_int,
    dilationA: *const c_int,
    mode: cudnnConvolutionMode_t,
    computeType: cudnnDataType_t,
) -> Result {
    require(arrayLength > 0, "a convolution has a size")?;
    supports(arrayLength <= MOST as c_int - 2, "a convolution of more than six sizes")?;
    // SAFETY: the caller's promise.
    let arrays =
        [unsafe { list(padA, arrayLength) }?, unsafe { list(filterStrideA, arrayLength) }?, unsafe {
            list(dilationA, arrayLength)
        }?];
    set(convDesc, arrays, mode, computeType)
}

/// # Safety
/// As [`cudnnSetConvolutionNdDescriptor`].
pub unsafe fn cudnnGetConvolutionNdDescriptor(
    convDesc: cudnnConvolutionDescriptor_t,
    arrayLengthRequested: c_int,
    arrayLength: OptOut<'_, c_int>,
    padA: *mut c_int,
    strideA: *mut c_int,
    dilationA: *mut c_int,
    mode: OptOut<'_, cudnnConvolutionMode_t>,
    computeType: OptOut<'_, cudnnDataType_t>,
) -> Result {
    let settings = CONVOLUTIONS.get(convDesc)?;
    arrayLength.write(settings.padding.len() as c_int);
    mode.write(settings.mode);
    computeType.write(settings.computed);
    // SAFETY: the caller's promise.
    unsafe { give(padA, arrayLengthRequested, &settings.padding) }?;
    // SAFETY: the caller's promise.
    unsafe { give(strideA, arrayLengthRequested, &settings.stride) }?;
    // SAFETY: the caller's promise.
    unsafe { give(dilationA, arrayLengthRequested, &settings.dilation) }
}

pub fn cudnnSetConvolutionGroupCount(convDesc: cudnnConvolutionDescriptor_t, groupCount: c_int) -> Result {
    require(groupCount > 0, "there is at least one group")?;
    CONVOLUTIONS.change(convDesc, |settings| settings.groups = groupCount)
}

pub fn cudnnGetConvolutionGroupCount(
    convDesc: cudnnConvolutionDescriptor_t,
    groupCount: Out<'_, c_int>,
) -> Result {
    groupCount.write(CONVOLUTIONS.get(convDesc)?.groups);
    Ok(())
}

/// Kept: what is computed has the precision of its type, or more.
pub fn cudnnSetConvolutionMathType(
    convDesc: cudnnConvolutionDescriptor_t,
    mathType: cudnnMathType_t,
) -> Result {
    require(mathType <= cudnnMathType_t::CUDNN_FMA_MATH, "there is no such type")?;
    CONVOLUTIONS.change(convDesc, |settings| settings.math = mathType)
}

pub fn cudnnGetConvolutionMathType(
    convDesc: cudnnConvolutionDescriptor_t,
    mathType: Out<'_, cudnnMathType_t>,
) -> Result {
    mathType.write(CONVOLUTIONS.get(convDesc)?.math);
    Ok(())
}

pub fn cudnnSetConvolutionReorderType(
    convDesc: cudnnConvolutionDescriptor_t,
    reorderType: cudnnReorderType_t,
) -> Result {
    require(reorderType <= cudnnReorderType_t::CUDNN_NO_REORDER, "there is no such type")?;
    CONVOLUTIONS.change(convDesc, |settings| settings.reorder = reorderType)
}

pub fn cudnnGetConvolutionReorderType(
    convDesc: cudnnConvolutionDescriptor_t,
    reorderType: Out<'_, cudnnReorderType_t>,
) -> Result {
    reorderType.write(CONVOLUTIONS.get(convDesc)?.reorder);
    Ok(())
}

/// A convolution's images, filters and results, looked at together.
pub(super) struct Problem {
    pub(super) geometry: Geometry,
    /// Sizes of the filter that are turned round.
    flipped: usize,
    pub(super) is_double: bool,
}

impl Settings {
    fn output(&self, x: &Tensor, w: &Filter) -> Result<Vec<c_int>> {
        let n = self.padding.len();
        require(n > 0, "the convolution's descriptor was not set")?;
        require(
            x.sizes.len() == n + 2 && w.sizes.len() == n + 2,
            "sizes are not as many as the convolution's",
        )?;
        require(x.sizes[1] == self.groups * w.sizes[1], "the images' channels are not those of the filters")?;
        require(w.sizes[0] % self.groups == 0, "the filters do not fill their groups")?;
        let mut output = vec![x.sizes[0], w.sizes[0]];
        for at in 0..n {
            let (size, filter) = (x.sizes[at + 2], (w.sizes[at + 2] - 1) * self.dilation[at] + 1);
            let places = size + 2 * self.padding[at] - filter;
            require(places >= 0, "a filter is larger than the image with its padding")?;
            output.push(1 + places / self.stride[at]);
        }
        Ok(output)
    }

    pub(super) fn problem(&self, x: &Tensor, w: &Filter, y: &Tensor) -> Result<Problem> {
        require(self.output(x, w)? == y.sizes, "the result's sizes are others")?;
        supports(self.padding.len() <= 3, "a convolution of more than three sizes")?;
        let (images, channels, input) = x.images()?;
        let (_, filters, output) = y.images()?;
        let groups = self.groups as usize;
        let (from, by, to) = (x.element()?, crate::tensor::kind(w.kind)?.0, y.element()?);
        let is_integer = |kind| matches!(kind, Kind::I8 | Kind::U8);
        let fits = if is_integer(from) {
            by == Kind::I8 && matches!(to, Kind::I8 | Kind::U8 | Kind::F32 | Kind::I32)
        } else {
            from == by && from == to && matches!(from, Kind::F32 | Kind::F64 | Kind::F16 | Kind::Bf16)
        };
        supports(fits, "a convolution of these types")?;
        let computed = match from {
            Kind::F64 => self.computed == cudnnDataType_t::CUDNN_DATA_DOUBLE,
            Kind::F32 | Kind::Bf16 => self.computed == cudnnDataType_t::CUDNN_DATA_FLOAT,
            Kind::F16 => {
                matches!(self.computed, cudnnDataType_t::CUDNN_DATA_FLOAT | cudnnDataType_t::CUDNN_DATA_HALF)
            }
            _ => self.computed == cudnnDataType_t::CUDNN_DATA_INT32,
        };
        supports(computed, "a convolution of this type computed in that one")?;
        let padding = three(&self.padding, 0).map(|padding| padding as isize);
        let geometry = Geometry {
            images,
            groups,
            channels: channels / groups,
            filters: filters / groups,
            input,
            filter: three(&w.sizes[2..], 1),
            output,
            padding,
            stride: three(&self.stride, 1),
            dilation: three(&self.dilation, 1),
        };
        let flips = self.mode == cudnnConvolutionMode_t::CUDNN_CONVOLUTION;
        let flipped = if flips { self.padding.len() } else { 0 };
        Ok(Problem { geometry, flipped, is_double: is_double(from) || is_double(to) })
    }
}

impl Problem {
    /// As our own kernels take it.
    fn on_kernels(&self) -> (&Geometry, bool) {
        (&self.geometry, self.flipped > 0)
    }
}

impl Settings {
    /// As MIOpen takes it: filters are not turned round, and sums are made in single precision.
    pub(super) fn on_hip(
        &self,
        direction: Direction,
        x: &Tensor,
        w: &Filter,
        y: &Tensor,
    ) -> Option<hip::convolution::Problem> {
        let fits = self.mode == cudnnConvolutionMode_t::CUDNN_CROSS_CORRELATION
            && self.computed == cudnnDataType_t::CUDNN_DATA_FLOAT;
        let window = hip::convolution::Window {
            padding: &self.padding,
            stride: &self.stride,
            dilation: &self.dilation,
            groups: self.groups,
        };
        if fits { hip::convolution::Problem::new(direction, &window, x, &w.tensor().ok()?, y) } else { None }
    }
}

impl Problem {
    /// The filter, turned round where the mode is a convolution's proper.
    ///
    /// # Safety
    /// As [`cudnnSetConvolutionNdDescriptor`].
    pub(super) unsafe fn filter(&self, of: &Filter, at: *const c_void) -> Result<View> {
        // SAFETY: the caller's promise.
        let view = unsafe { of.view(at) }?;
        let n = view.sizes().len();
        Ok((n - self.flipped..n).fold(view, View::reversed))
    }
}

pub fn cudnnGetConvolution2dForwardOutputDim(
    convDesc: cudnnConvolutionDescriptor_t,
    inputTensorDesc: cudnnTensorDescriptor_t,
    filterDesc: cudnnFilterDescriptor_t,
    n: Out<'_, c_int>,
    c: Out<'_, c_int>,
    h: Out<'_, c_int>,
    w: Out<'_, c_int>,
) -> Result {
    let sizes = CONVOLUTIONS.get(convDesc)?.output(&tensor(inputTensorDesc)?, &filter(filterDesc)?)?;
    require(sizes.len() == 4, "the convolution is not one of two sizes")?;
    [n, c, h, w].into_iter().zip(sizes).for_each(|(to, size)| to.write(size));
    Ok(())
}

/// # Safety
/// As [`cudnnSetConvolutionNdDescriptor`].
pub unsafe fn cudnnGetConvolutionNdForwardOutputDim(
    convDesc: cudnnConvolutionDescriptor_t,
    inputTensorDesc: cudnnTensorDescriptor_t,
    filterDesc: cudnnFilterDescriptor_t,
    nbDims: c_int,
    tensorOuputDimA: *mut c_int,
) -> Result {
    let sizes = CONVOLUTIONS.get(convDesc)?.output(&tensor(inputTensorDesc)?, &filter(filterDesc)?)?;
    require(nbDims as usize >= sizes.len(), "the convolution has more sizes")?;
    // SAFETY: the caller's promise.
    unsafe { give(tensorOuputDimA, nbDims, &sizes) }
}

/// The matrix whose product with the filters is a convolution: a row for each channel and tap, a column for each element of a result.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnIm2Col(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    colBuffer: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(wDesc)?);
    // SAFETY: the caller's promise.
    let (x, from) = unsafe { at(xDesc, x) }?;
    supports(settings.groups == 1, "the columns of several groups")?;
    let kind = x.element()?;
    supports(
        filter.kind == x.kind && matches!(kind, Kind::F32 | Kind::F64 | Kind::F16 | Kind::Bf16),
        "columns of these types",
    )?;
    let y =
        Tensor::of_format(cudnnTensorFormat_t::CUDNN_TENSOR_NCHW, x.kind, &settings.output(&x, &filter)?)?;
    let geometry = settings.problem(&x, &filter, &y)?.geometry;
    require(!colBuffer.is_null(), "colBuffer")?;
    require(colBuffer.addr().is_multiple_of(kind.bytes()), "the columns are not aligned to their type")?;
    let rows: usize = filter.sizes[1..].iter().map(|&size| size as usize).product();
    let sizes = [rows, y.count() / filter.sizes[0] as usize];
    // SAFETY: cuDNN's contract: room for the columns until the stream has come here.
    let to = memory::tensor(unsafe { View::packed(colBuffer.cast::<u8>(), kind, &sizes) })?;
    compute!(context, kind == Kind::F64, V => {
        // SAFETY: as above.
        unsafe { to.store(&convolution::columns(&geometry, &from.dense::<V>()), V::of(1.0), V::of(0.0)) };
    })
}

/// # Safety
/// As [`cudnnIm2Col`].
pub unsafe fn cudnnConvolutionForward(
    handle: cudnnHandle_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    algo: cudnnConvolutionFwdAlgo_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(wDesc)?);
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    let problem = settings.problem(&x, &filter, &y)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    if let Some(on_hip) = settings.on_hip(Direction::Forward, &x, &filter, &y)
        && is_plain(alpha, beta)
        && are_apart(&[&x, &filter.at(w)?], &y)
    {
        let (at, area) = ([x.memory, w.cast_mut(), y.memory], Area::new(workSpace, workSpaceSizeInBytes));
        on_hip!(context, hip => hip.convolve(&on_hip, at, area));
    }
    let (by, factors) = (filter.at(w)?, [alpha as f32, beta as f32]);
    on_kernels!(context, kernels => {
        kernels.convolve_tensors(Direction::Forward, problem.on_kernels(), [&x, &by, &y], factors)
    });
    // SAFETY: the caller's promise.
    let (from, by, to) = (unsafe { x.view() }?, unsafe { problem.filter(&filter, w) }?, unsafe { y.view() }?);
    let geometry = problem.geometry;
    compute!(context, problem.is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here, and y is apart from the others.
        unsafe { forward::<V>(&geometry, alpha, from, by, beta, to) };
    })
}

/// # Safety
/// The tensors are there, and y is apart from the others.
pub(super) unsafe fn forward<V: Value>(of: &Geometry, alpha: f64, x: View, w: View, beta: f64, y: View) {
    // SAFETY: the caller's word.
    unsafe {
        let (x, w) = (x.dense::<V>(), w.dense::<V>());
        y.update(V::of(beta), |y, beta| convolution::forward(of, V::of(alpha), &x, &w, beta, y));
    }
}

/// `y = the activation of (alpha1·(x * w) + alpha2·z + bias)`
///
/// # Safety
/// As [`cudnnIm2Col`].
pub unsafe fn cudnnConvolutionBiasActivationForward(
    handle: cudnnHandle_t,
    alpha1: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    algo: cudnnConvolutionFwdAlgo_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
    alpha2: *const c_void,
    zDesc: cudnnTensorDescriptor_t,
    z: *const c_void,
    biasDesc: cudnnTensorDescriptor_t,
    bias: *const c_void,
    activationDesc: cudnnActivationDescriptor_t,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(wDesc)?);
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    let problem = settings.problem(&x, &filter, &y)?;
    // SAFETY: the caller's promise.
    let (alpha1, alpha2) = (unsafe { factor(alpha1, y.kind) }?, unsafe { factor(alpha2, y.kind) }?);
    // What is taken times 0 need not be there.
    let added = if alpha2 == 0.0 {
        None
    } else {
        let z = argument(zDesc, z)?;
        require(z.sizes == y.sizes, "z's sizes are not y's")?;
        Some(z)
    };
    let bias = argument(biasDesc, bias)?;
    require(is_bias(&bias, &y), "a bias has a number for each channel of the result")?;
    let function = function(activationDesc)?;
    let mut read = vec![&x, &bias];
    read.extend(&added);
    let w_there = filter.at(w)?;
    read.push(&w_there);
    if let Some(on_hip) = settings.on_hip(Direction::Forward, &x, &filter, &y)
        && alpha1 == 1.0
        && hip::convert::activation(function).is_some()
        && are_apart(&read, &y)
    {
        let (at, area) = ([x.memory, w.cast_mut(), y.memory], Area::new(workSpace, workSpaceSizeInBytes));
        let added = added.as_ref().map(|z| (alpha2, z));
        on_hip!(context, hip => hip.convolve_and_finish(&on_hip, at, area, (&y, added, &bias, function)));
    }
    on_kernels!(context, kernels => {
        let behind: Vec<(f32, &Argument)> =
            added.iter().map(|z| (alpha2 as f32, z)).chain([(1.0, &bias)]).collect();
        let all = [&x, &w_there, &y];
        kernels.convolve_and_finish(problem.on_kernels(), all, alpha1 as f32, (&behind, function))
    });
    // SAFETY: the caller's promise.
    let (from, by, to, bias_at) =
        (unsafe { x.view() }?, unsafe { problem.filter(&filter, w) }?, unsafe { y.view() }?, unsafe {
            bias.view()
        }?);
    // SAFETY: the caller's promise.
    let added = added.map(|z| unsafe { z.view() }).transpose()?;
    let geometry = problem.geometry;
    compute!(context, problem.is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here; z may be y.
        unsafe {
            let (x, w) = (from.dense::<V>(), by.dense::<V>());
            let mut values = match added {
                Some(z) => z.load::<V>(),
                None => vec![V::of(0.0); to.len()],
            };
            convolution::forward(&geometry, V::of(alpha1), &x, &w, V::of(alpha2), &mut values);
            add_bias(&geometry, &bias_at.load::<V>(), function, &mut values);
            to.store(&values, V::of(1.0), V::of(0.0));
        }
    })
}

/// Whether it has a number for each channel of the result.
fn is_bias(bias: &Tensor, result: &Tensor) -> bool {
    bias.sizes.len() == result.sizes.len()
        && bias.sizes.iter().enumerate().all(|(at, &size)| size == if at == 1 { result.sizes[1] } else { 1 })
}

/// Adds a number to each channel and makes the function of it.
fn add_bias<V: Value>(of: &Geometry, bias: &[V], function: Activation, values: &mut [V]) {
    let pixels: usize = of.output.iter().product();
    cudnn_cpu::pieces(values, pixels, 4 * pixels, |number, piece| {
        let bias = bias[number % bias.len()];
        piece.iter_mut().for_each(|value| *value += bias);
        if function != Activation::Identity {
            piece.iter_mut().for_each(|value| *value = function.of(*value));
        }
    });
}

/// # Safety
/// As [`cudnnIm2Col`].
pub unsafe fn cudnnConvolutionBackwardData(
    handle: cudnnHandle_t,
    alpha: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    algo: cudnnConvolutionBwdDataAlgo_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
    beta: *const c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(wDesc)?);
    let (dy, dx) = (argument(dyDesc, dy)?, argument(dxDesc, dx)?);
    let problem = settings.problem(&dx, &filter, &dy)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, dx.kind) }?, unsafe { factor(beta, dx.kind) }?);
    if let Some(on_hip) = settings.on_hip(Direction::Data, &dx, &filter, &dy)
        && is_plain(alpha, beta)
        && are_apart(&[&filter.at(w)?, &dy], &dx)
    {
        let (at, area) = ([dx.memory, w.cast_mut(), dy.memory], Area::new(workSpace, workSpaceSizeInBytes));
        on_hip!(context, hip => hip.convolve(&on_hip, at, area));
    }
    let (by, factors) = (filter.at(w)?, [alpha as f32, beta as f32]);
    on_kernels!(context, kernels => {
        kernels.convolve_tensors(Direction::Data, problem.on_kernels(), [&dx, &by, &dy], factors)
    });
    // SAFETY: the caller's promise.
    let (from, by, to) =
        (unsafe { dy.view() }?, unsafe { problem.filter(&filter, w) }?, unsafe { dx.view() }?);
    let geometry = problem.geometry;
    compute!(context, problem.is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here, and dx is apart from the others.
        unsafe { backward_data::<V>(&geometry, alpha, by, from, beta, to) };
    })
}

/// # Safety
/// The tensors are there, and dx is apart from the others.
pub(super) unsafe fn backward_data<V: Value>(
    of: &Geometry,
    alpha: f64,
    w: View,
    dy: View,
    beta: f64,
    dx: View,
) {
    // SAFETY: the caller's word.
    unsafe {
        let (w, dy) = (w.dense::<V>(), dy.dense::<V>());
        dx.update(V::of(beta), |dx, beta| convolution::backward_data(of, V::of(alpha), &w, &dy, beta, dx));
    }
}

/// # Safety
/// As [`cudnnIm2Col`].
pub unsafe fn cudnnConvolutionBackwardFilter(
    handle: cudnnHandle_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    algo: cudnnConvolutionBwdFilterAlgo_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
    beta: *const c_void,
    dwDesc: cudnnFilterDescriptor_t,
    dw: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(dwDesc)?);
    let (x, dy) = (argument(xDesc, x)?, argument(dyDesc, dy)?);
    let problem = settings.problem(&x, &filter, &dy)?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, filter.kind) }?, unsafe { factor(beta, filter.kind) }?);
    if let Some(on_hip) = settings.on_hip(Direction::Filter, &x, &filter, &dy)
        && is_plain(alpha, beta)
        && are_apart(&[&x, &dy], &filter.at(dw)?)
    {
        let (at, area) = ([x.memory, dw, dy.memory], Area::new(workSpace, workSpaceSizeInBytes));
        on_hip!(context, hip => hip.convolve(&on_hip, at, area));
    }
    let (by, factors) = (filter.at(dw)?, [alpha as f32, beta as f32]);
    on_kernels!(context, kernels => {
        kernels.convolve_tensors(Direction::Filter, problem.on_kernels(), [&x, &by, &dy], factors)
    });
    // SAFETY: the caller's promise.
    let (x_at, dy_at, to) =
        (unsafe { x.view() }?, unsafe { dy.view() }?, unsafe { problem.filter(&filter, dw) }?);
    let geometry = problem.geometry;
    compute!(context, problem.is_double, V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here, and dw is apart from the others.
        unsafe { backward_filter::<V>(&geometry, alpha, x_at, dy_at, beta, to) };
    })
}

/// # Safety
/// The tensors are there, and dw is apart from the others.
pub(super) unsafe fn backward_filter<V: Value>(
    of: &Geometry,
    alpha: f64,
    x: View,
    dy: View,
    beta: f64,
    dw: View,
) {
    // SAFETY: the caller's word.
    unsafe {
        let (x, dy) = (x.dense::<V>(), dy.dense::<V>());
        dw.update(V::of(beta), |dw, beta| convolution::backward_filter(of, V::of(alpha), &x, &dy, beta, dw));
    }
}

/// # Safety
/// As [`cudnnIm2Col`].
pub unsafe fn cudnnConvolutionBackwardBias(
    handle: cudnnHandle_t,
    alpha: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    beta: *const c_void,
    dbDesc: cudnnTensorDescriptor_t,
    db: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (dy, db) = (argument(dyDesc, dy)?, argument(dbDesc, db)?);
    require(
        is_bias(&db, &dy) && db.kind == dy.kind,
        "a bias has a number for each channel, of the result's type",
    )?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, db.kind) }?, unsafe { factor(beta, db.kind) }?);
    if is_plain(alpha, beta) {
        on_hip!(context, hip => hip.bias_gradient(&dy, &db));
    }
    let (by, factors) = ((Reduction::Add, true), [alpha as f32, beta as f32]);
    on_kernels!(context, kernels => kernels.reduce_tensor(by, factors, [&dy, &db]));
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { dy.view() }?, unsafe { db.view() }?);
    repeated(to, &from)?;
    compute!(context, is_double(from.kind()), V => {
        // SAFETY: as above.
        unsafe {
            let (values, _) = reduce(Reduction::Add, true, from.sizes(), to.sizes(), &from.dense::<V>());
            to.store(&values, V::of(alpha), V::of(beta));
        }
    })
}

/// Whether MIOpen can follow the memory of all, and what is written is none of what is read.
pub(crate) fn are_apart(read: &[&Argument], written: &Argument) -> bool {
    are_there(read) && are_there(&[written]) && read.iter().all(|one| one.memory != written.memory)
}
