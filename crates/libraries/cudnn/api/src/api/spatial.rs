//! Spatial transformers. Source: cuDNN manual, "cudnn_ops library", `cudnnSpatialTfGridGeneratorForward` and so on.

use core::ffi::{c_int, c_void};

use border::Out;
use cudnn_cpu::spatial::{self, Shape};
use cudnn_cpu::{Value, View};

use crate::Result;
use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{compute, computing};
use crate::tensor::{Tensor, at, factor, kind, list};
use crate::types::*;

/// The sizes are those of what is sampled.
#[derive(Clone, Debug, Default)]
struct Settings {
    kind: cudnnDataType_t,
    sizes: Vec<c_int>,
}

static TRANSFORMERS: Descriptors<Settings> = Descriptors::new();

pub fn cudnnCreateSpatialTransformerDescriptor(
    stDesc: Out<'_, cudnnSpatialTransformerDescriptor_t>,
) -> Result {
    stDesc.write(TRANSFORMERS.add());
    Ok(())
}

pub fn cudnnDestroySpatialTransformerDescriptor(stDesc: cudnnSpatialTransformerDescriptor_t) -> Result {
    TRANSFORMERS.remove(stDesc)
}

/// Sizes are looked at when they are used, as NVIDIA's library does.
///
/// # Safety
/// As [`cudnnSpatialTfGridGeneratorForward`].
pub unsafe fn cudnnSetSpatialTransformerNdDescriptor(
    stDesc: cudnnSpatialTransformerDescriptor_t,
    samplerType: cudnnSamplerType_t,
    dataType: cudnnDataType_t,
    nbDims: c_int,
    dimA: *const c_int,
) -> Result {
    TRANSFORMERS.get(stDesc)?;
    require(samplerType == cudnnSamplerType_t::CUDNN_SAMPLER_BILINEAR, "there is no such sampler")?;
    kind(dataType)?;
    let is_float = matches!(
        dataType,
        cudnnDataType_t::CUDNN_DATA_FLOAT
            | cudnnDataType_t::CUDNN_DATA_DOUBLE
            | cudnnDataType_t::CUDNN_DATA_HALF
    );
    supports(is_float, "a spatial transformer of this type")?;
    require((1..=8).contains(&nbDims), "the number of sizes is out of bounds")?;
    // SAFETY: the caller's promise.
    TRANSFORMERS.set(stDesc, Settings { kind: dataType, sizes: unsafe { list(dimA, nbDims) }?.to_vec() })
}

/// N, C, H and W of what is sampled.
fn settings(of: cudnnSpatialTransformerDescriptor_t) -> Result<(Settings, [usize; 4])> {
    let settings = TRANSFORMERS.get(of)?;
    require(!settings.sizes.is_empty(), "the descriptor was not set")?;
    supports(settings.sizes.len() == 4, "a spatial transformer of other than four sizes")?;
    require(settings.sizes.iter().all(|size| *size > 0), "a size is not positive")?;
    let sizes = core::array::from_fn(|at| settings.sizes[at] as usize);
    Ok((settings, sizes))
}

impl Settings {
    /// An array of the descriptor's type.
    ///
    /// # Safety
    /// As [`cudnnSetSpatialTransformerNdDescriptor`].
    unsafe fn array(&self, at: *const c_void, sizes: &[usize]) -> Result<View> {
        let sizes: Vec<c_int> = sizes.iter().map(|&size| size as c_int).collect();
        // SAFETY: the caller's promise.
        unsafe { Tensor::of_format(cudnnTensorFormat_t::CUDNN_TENSOR_NCHW, self.kind, &sizes)?.view(at) }
    }

    fn is_double(&self) -> bool {
        self.kind == cudnnDataType_t::CUDNN_DATA_DOUBLE
    }
}

/// The grid has x and y for each pixel, from -1 to 1 over an image.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnSpatialTfGridGeneratorForward(
    handle: cudnnHandle_t,
    stDesc: cudnnSpatialTransformerDescriptor_t,
    theta: *const c_void,
    grid: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (settings, [n, _, h, w]) = settings(stDesc)?;
    // SAFETY: the caller's promise.
    let (from, to) =
        (unsafe { settings.array(theta, &[n, 2, 3]) }?, unsafe { settings.array(grid, &[n, h, w, 2]) }?);
    compute!(context, settings.is_double(), V => {
        // SAFETY: cuDNN's contract: the arrays are there until the stream has come here.
        unsafe { to.store(&spatial::grid(n, [h, w], &from.dense::<V>()), V::of(1.0), V::of(0.0)) };
    })
}

/// # Safety
/// As [`cudnnSetSpatialTransformerNdDescriptor`].
pub unsafe fn cudnnSpatialTfGridGeneratorBackward(
    handle: cudnnHandle_t,
    stDesc: cudnnSpatialTransformerDescriptor_t,
    dgrid: *const c_void,
    dtheta: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (settings, [n, _, h, w]) = settings(stDesc)?;
    // SAFETY: the caller's promise.
    let (from, to) =
        (unsafe { settings.array(dgrid, &[n, h, w, 2]) }?, unsafe { settings.array(dtheta, &[n, 2, 3]) }?);
    compute!(context, settings.is_double(), V => {
        // SAFETY: as above.
        unsafe { to.store(&spatial::grid_backward(n, [h, w], &from.dense::<V>()), V::of(1.0), V::of(0.0)) };
    })
}

/// Images and what is sampled of them.
fn shape(settings: &Settings, [n, c, h, w]: [usize; 4], x: &Tensor, y: &Tensor) -> Result<Shape> {
    require(x.kind == settings.kind && y.kind == settings.kind, "the tensors' types differ")?;
    require(y.sizes == settings.sizes, "the sampled tensor has not the descriptor's sizes")?;
    let fits = x.sizes.len() == 4 && x.sizes[..2] == settings.sizes[..2];
    require(fits, "the images' number or channels are not the descriptor's")?;
    Ok(Shape { images: n, channels: c, input: [x.sizes[2] as usize, x.sizes[3] as usize], output: [h, w] })
}

/// # Safety
/// As [`cudnnSpatialTfGridGeneratorForward`].
pub unsafe fn cudnnSpatialTfSamplerForward(
    handle: cudnnHandle_t,
    stDesc: cudnnSpatialTransformerDescriptor_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    grid: *const c_void,
    beta: *const c_void,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (settings, sizes) = settings(stDesc)?;
    // SAFETY: the caller's promise.
    let ((x, from), (y, to)) = (unsafe { at(xDesc, x) }?, unsafe { at(yDesc, y) }?);
    let shape = shape(&settings, sizes, &x, &y)?;
    // SAFETY: the caller's promise.
    let grid = unsafe { settings.array(grid, &[sizes[0], sizes[2], sizes[3], 2]) }?;
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, y.kind) }?, unsafe { factor(beta, y.kind) }?);
    compute!(context, settings.is_double(), V => {
        // SAFETY: as above.
        unsafe {
            let values = spatial::sample(&shape, &from.dense::<V>(), &grid.dense::<V>());
            to.store(&values, V::of(alpha), V::of(beta));
        }
    })
}

/// # Safety
/// As [`cudnnSpatialTfGridGeneratorForward`].
pub unsafe fn cudnnSpatialTfSamplerBackward(
    handle: cudnnHandle_t,
    stDesc: cudnnSpatialTransformerDescriptor_t,
    alpha: *const c_void,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    beta: *const c_void,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
    alphaDgrid: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    grid: *const c_void,
    betaDgrid: *const c_void,
    dgrid: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let (settings, sizes) = settings(stDesc)?;
    // SAFETY: the caller's promise.
    let ((x, from), (dx, dx_at), (dy, dy_at)) =
        (unsafe { at(xDesc, x) }?, unsafe { at(dxDesc, dx) }?, unsafe { at(dyDesc, dy) }?);
    let shape = shape(&settings, sizes, &x, &dy)?;
    require(x.sizes == dx.sizes && x.kind == dx.kind, "the tensors' sizes or types differ")?;
    let grids = [sizes[0], sizes[2], sizes[3], 2];
    // SAFETY: the caller's promise.
    let (grid, dgrid) = (unsafe { settings.array(grid, &grids) }?, unsafe { settings.array(dgrid, &grids) }?);
    // SAFETY: the caller's promise.
    let (alpha, beta) = (unsafe { factor(alpha, x.kind) }?, unsafe { factor(beta, x.kind) }?);
    // SAFETY: the caller's promise.
    let (alpha_grid, beta_grid) =
        (unsafe { factor(alphaDgrid, x.kind) }?, unsafe { factor(betaDgrid, x.kind) }?);
    compute!(context, settings.is_double(), V => {
        // SAFETY: as above.
        unsafe {
            let (x, places, dy) = (from.dense::<V>(), grid.dense::<V>(), dy_at.dense::<V>());
            let (of_x, of_grid) = spatial::sample_backward(&shape, &x, &places, &dy);
            dx_at.store(&of_x, V::of(alpha), V::of(beta));
            dgrid.store(&of_grid, V::of(alpha_grid), V::of(beta_grid));
        }
    })
}
