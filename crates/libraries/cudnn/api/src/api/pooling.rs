//! Pooling. Source: cuDNN manual, "cudnn_ops library", `cudnnPoolingForward` and so on.

use core::ffi::{c_int, c_void};

use border::{OptOut, Out};
use cudnn_cpu::Value;
use cudnn_cpu::pooling::{self, Pooling, Window};

use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{compute, computing, on_hip, on_kernels};
use crate::hip;
use crate::tensor::{MOST, Tensor, argument, factor, give, is_double, is_plain, list, tensor, three};
use crate::types::*;
use crate::{Error, Result};

#[derive(Clone, Default)]
struct Settings {
    mode: cudnnPoolingMode_t,
    nan: cudnnNanPropagation_t,
    window: Vec<c_int>,
    padding: Vec<c_int>,
    stride: Vec<c_int>,
}

static POOLINGS: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreatePoolingDescriptor(descriptor: Out<'_, cudnnPoolingDescriptor_t>) -> Result {
    descriptor.write(POOLINGS.add());
    Ok(())
}

pub fn cudnnDestroyPoolingDescriptor(descriptor: cudnnPoolingDescriptor_t) -> Result {
    POOLINGS.remove(descriptor)
}

impl Settings {
    fn looked_at(self) -> Result<Settings> {
        require(self.mode <= cudnnPoolingMode_t::CUDNN_POOLING_MAX_DETERMINISTIC, "there is no such mode")?;
        require(self.nan <= cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN, "there is no such propagation")?;
        require(self.window.iter().all(|&size| size > 0), "a window's size is not positive")?;
        require(self.stride.iter().all(|&stride| stride > 0), "a stride is not positive")?;
        Ok(self)
    }

    fn mode(&self) -> Pooling {
        match self.mode {
            cudnnPoolingMode_t::CUDNN_POOLING_AVERAGE_COUNT_INCLUDE_PADDING => Pooling::MeanOfAll,
            cudnnPoolingMode_t::CUDNN_POOLING_AVERAGE_COUNT_EXCLUDE_PADDING => Pooling::MeanOfInside,
            _ => Pooling::Max(self.nan == cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN),
        }
    }

    /// As MIOpen takes it, which has no places beyond what the formula gives.
    fn on_hip(&self, input: &Tensor, output: &Tensor) -> Option<hip::pooling::Window<'_>> {
        let Settings { window, padding, stride, .. } = self;
        let window = hip::pooling::Window { mode: self.mode(), window, padding, stride };
        Some(window).filter(|_| self.output(input).is_ok_and(|sizes| sizes == output.sizes))
    }

    /// Sizes of what is made of such a tensor.
    fn output(&self, input: &Tensor) -> Result<Vec<c_int>> {
        require(input.sizes.len() == self.window.len() + 2, "the tensor has other sizes than the window")?;
        let mut output = input.sizes.clone();
        for (at, size) in output[2..].iter_mut().enumerate() {
            *size = 1 + (*size + 2 * self.padding[at] - self.window[at]) / self.stride[at];
        }
        Ok(output)
    }

    /// The manual refuses other numbers of images and channels only: an output may have more places than the formula gives, as Caffe's
    /// rounding up makes them, whose windows reach beyond the input.
    fn geometry(&self, input: &Tensor, output: &Tensor) -> Result<Window> {
        require(input.sizes.len() == self.window.len() + 2, "the tensor has other sizes than the window")?;
        require(input.sizes.len() == output.sizes.len(), "the output has other sizes than the tensor")?;
        require(input.sizes[..2] == output.sizes[..2], "the output's images or channels are others")?;
        require(input.kind == output.kind, "the tensors' types differ")?;
        Ok(Window {
            input: input.images()?.2,
            output: output.images()?.2,
            window: three(&self.window, 1),
            padding: {
                let mut padding = [0; 3];
                let given = self.padding.iter().map(|&padding| padding as isize);
                padding[3 - self.padding.len()..].iter_mut().zip(given).for_each(|(to, from)| *to = from);
                padding
            },
            stride: three(&self.stride, 1),
        })
    }
}

pub fn cudnnSetPooling2dDescriptor(
    poolingDesc: cudnnPoolingDescriptor_t,
    mode: cudnnPoolingMode_t,
    maxpoolingNanOpt: cudnnNanPropagation_t,
    windowHeight: c_int,
    windowWidth: c_int,
    verticalPadding: c_int,
    horizontalPadding: c_int,
    verticalStride: c_int,
    horizontalStride: c_int,
) -> Result {
    let settings = Settings {
        mode,
        nan: maxpoolingNanOpt,
        window: vec![windowHeight, windowWidth],
        padding: vec![verticalPadding, horizontalPadding],
        stride: vec![verticalStride, horizontalStride],
    };
    POOLINGS.set(poolingDesc, settings.looked_at()?)
}

pub fn cudnnGetPooling2dDescriptor(
    poolingDesc: cudnnPoolingDescriptor_t,
    mode: OptOut<'_, cudnnPoolingMode_t>,
    maxpoolingNanOpt: OptOut<'_, cudnnNanPropagation_t>,
    windowHeight: OptOut<'_, c_int>,
    windowWidth: OptOut<'_, c_int>,
    verticalPadding: OptOut<'_, c_int>,
    horizontalPadding: OptOut<'_, c_int>,
    verticalStride: OptOut<'_, c_int>,
    horizontalStride: OptOut<'_, c_int>,
) -> Result {
    let settings = POOLINGS.get(poolingDesc)?;
    require(matches!(settings.window.len(), 0 | 2), "the window has not two sizes")?;
    mode.write(settings.mode);
    maxpoolingNanOpt.write(settings.nan);
    let number = |of: &[c_int], at: usize| of.get(at).copied().unwrap_or(0);
    for (at, (window, padding, stride)) in
        [(windowHeight, verticalPadding, verticalStride), (windowWidth, horizontalPadding, horizontalStride)]
            .into_iter()
            .enumerate()
    {
        window.write(number(&settings.window, at));
        padding.write(number(&settings.padding, at));
        stride.write(number(&settings.stride, at));
    }
    Ok(())
}

/// # Safety
/// As [`cudnnPoolingForward`].
pub unsafe fn cudnnSetPoolingNdDescriptor(
    poolingDesc: cudnnPoolingDescriptor_t,
    mode: cudnnPoolingMode_t,
    maxpoolingNanOpt: cudnnNanPropagation_t,
    nbDims: c_int,
    windowDimA: *const c_int,
    paddingA: *const c_int,
    strideA: *const c_int,
) -> Result {
    POOLINGS.get(poolingDesc)?;
    require(nbDims > 0, "a window has a size")?;
    supports(nbDims <= MOST as c_int - 2, "a window of more than six sizes")?;
    let settings = Settings {
        mode,
        nan: maxpoolingNanOpt,
        // SAFETY: the caller's promise.
        window: unsafe { list(windowDimA, nbDims) }?.to_vec(),
        // SAFETY: the caller's promise.
        padding: unsafe { list(paddingA, nbDims) }?.to_vec(),
        // SAFETY: the caller's promise.
        stride: unsafe { list(strideA, nbDims) }?.to_vec(),
    };
    POOLINGS.set(poolingDesc, settings.looked_at()?)
}

/// # Safety
/// As [`cudnnSetPoolingNdDescriptor`].
pub unsafe fn cudnnGetPoolingNdDescriptor(
    poolingDesc: cudnnPoolingDescriptor_t,
    nbDimsRequested: c_int,
    mode: OptOut<'_, cudnnPoolingMode_t>,
    maxpoolingNanOpt: OptOut<'_, cudnnNanPropagation_t>,
    nbDims: OptOut<'_, c_int>,
    windowDimA: *mut c_int,
    paddingA: *mut c_int,
    strideA: *mut c_int,
) -> Result {
    let settings = POOLINGS.get(poolingDesc)?;
    mode.write(settings.mode);
    maxpoolingNanOpt.write(settings.nan);
    nbDims.write(settings.window.len() as c_int);
    // SAFETY: the caller's promise.
    unsafe { give(windowDimA, nbDimsRequested, &settings.window) }?;
    // SAFETY: the caller's promise.
    unsafe { give(paddingA, nbDimsRequested, &settings.padding) }?;
    // SAFETY: the caller's promise.
    unsafe { give(strideA, nbDimsRequested, &settings.stride) }
}

pub fn cudnnGetPooling2dForwardOutputDim(
    poolingDesc: cudnnPoolingDescriptor_t,
    inputTensorDesc: cudnnTensorDescriptor_t,
    n: Out<'_, c_int>,
    c: Out<'_, c_int>,
    h: Out<'_, c_int>,
    w: Out<'_, c_int>,
) -> Result {
    let sizes = POOLINGS.get(poolingDesc)?.output(&tensor(inputTensorDesc)?)?;
    require(sizes.len() == 4, "the tensor has not four sizes")?;
    [n, c, h, w].into_iter().zip(sizes).for_each(|(to, size)| to.write(size));
    Ok(())
}

/// # Safety
/// As [`cudnnSetPoolingNdDescriptor`].
pub unsafe fn cudnnGetPoolingNdForwardOutputDim(
    poolingDesc: cudnnPoolingDescriptor_t,
    inputTensorDesc: cudnnTensorDescriptor_t,
    nbDims: c_int,
    outputTensorDimA: *mut c_int,
) -> Result {
    let sizes = POOLINGS.get(poolingDesc)?.output(&tensor(inputTensorDesc)?)?;
    require(nbDims as usize == sizes.len(), "the tensor has other sizes")?;
    // SAFETY: the caller's promise.
    unsafe { give(outputTensorDimA, nbDims, &sizes) }
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnPoolingForward(
    handle: cudnnHandle_t,
    poolingDesc: cudnnPoolingDescriptor_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let settings = POOLINGS.get(poolingDesc)?;
    let (x, y) = (argument(xDesc, x)?, argument(yDesc, y)?);
    let window = settings.geometry(&x, &y)?;
    let mode = settings.mode();
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    if let Some(how) = settings.on_hip(&x, &y).filter(|_| is_plain(alpha, beta)) {
        on_hip!(context, hip => hip.pool(&how, &x, &y));
    }
    let factors = [alpha as f32, beta as f32];
    on_kernels!(context, kernels => kernels.pool_tensor((mode, &window), factors, [&x, &y]));
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { x.view() }?, unsafe { y.view() }?);
    compute!(context, is_double(to.kind()), V => {
        // SAFETY: cuDNN's contract: the tensors are there until the stream has come here.
        unsafe {
            let images = from.dense::<V>();
            to.make(V::of(alpha), V::of(beta), &[from], |y| pooling::forward(mode, &window, &images, y));
        }
    })
}

/// The gradient of a largest element goes to the first of those that are equal.
///
/// # Safety
/// As [`cudnnPoolingForward`].
pub unsafe fn cudnnPoolingBackward(
    handle: cudnnHandle_t,
    poolingDesc: cudnnPoolingDescriptor_t,
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
    let settings = POOLINGS.get(poolingDesc)?;
    let (y, dy) = (argument(yDesc, y)?, argument(dyDesc, dy)?);
    let (x, dx) = (argument(xDesc, x)?, argument(dxDesc, dx)?);
    let window = settings.geometry(&x, &y)?;
    if (&y.sizes, y.kind) != (&dy.sizes, dy.kind) || (&x.sizes, x.kind) != (&dx.sizes, dx.kind) {
        return Err(Error::BadParam("a gradient is unlike its tensor"));
    }
    let mode = settings.mode();
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, dx.kind) }?, unsafe { factor(beta, dx.kind) }?);
    if let Some(how) = settings.on_hip(&x, &y).filter(|_| is_plain(alpha, beta)) {
        on_hip!(context, hip => hip.pooling_gradient(&how, &x, Some(&y), &dy, &dx));
    }
    let factors = [alpha as f32, beta as f32];
    on_kernels!(context, kernels => kernels.pool_gradient((mode, &window), factors, [&x, &dy, &dx]));
    // SAFETY: the caller's promise.
    unsafe { y.view() }?;
    // SAFETY: the caller's promise.
    let (x_at, dy_at, dx_at) = (unsafe { x.view() }?, unsafe { dy.view() }?, unsafe { dx.view() }?);
    compute!(context, is_double(dx_at.kind()), V => {
        // SAFETY: as above.
        unsafe {
            let (x, dy) = (x_at.dense::<V>(), dy_at.dense::<V>());
            let write = |dx: &mut [V]| pooling::backward(mode, &window, &x, &dy, dx);
            dx_at.make(V::of(alpha), V::of(beta), &[x_at, dy_at], write);
        }
    })
}
