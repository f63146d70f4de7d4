//! Pooling as an operation of a graph, and its gradients: windows of whole sizes and strides. Source: cuDNN manual, backend descriptors
//! "RESAMPLE", "RESAMPLE_FWD", "RESAMPLE_BWD".
//!
//! Places of largest elements are for the way back alone, and their form is published nowhere: here it is the place within the window, by lines.

use cudnn_cpu::Kind;
use cudnn_cpu::pooling::{Pooling, Window, backward_by_places, places};

use super::descriptor::Descriptor;
use super::kernels::Run;
use super::plan::{Layer, Operation, Tensor, Tensors, Work, described, three};
use crate::error::{require, supports};
use crate::kernels::tensor::Operand;
use crate::kernels::windows::Pooled;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Of = cudnnBackendDescriptorType_t;

/// Whether a type has the number of each place of a window, and -1.
fn are_places(of: &Tensor, y: &Tensor, window: &Window) -> Result {
    require(of.sizes == y.sizes, "places have not the result's sizes")?;
    let most = match of.kind {
        Kind::I8 => 1 << 7,
        Kind::I32 | Kind::I64 => 1 << 31,
        _ => return Err(Error::NotSupported("places of a pooling of this type")),
    };
    supports(window.window.iter().product::<usize>() <= most, "places of a window that their type has not")
}

/// The largest elements, and where they are.
struct Places(bool, Window);

pub fn forward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_XDESC)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_YDESC)?;
    let index = tensors.of(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_IDXDESC)?;
    let alpha = of.real(Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_ALPHA)?.unwrap_or(1.0);
    let beta = of.real(Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_BETA)?.unwrap_or(0.0);
    supports(beta == 0.0, "a pooling that is added to another")?;
    let by =
        described(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_FWD_DESC, Of::CUDNN_BACKEND_RESAMPLE_DESCRIPTOR)?;
    let (mode, window) = window(&by.lock(), &x, &y)?;
    let Some(index) = index else {
        let work = Work::Pool(mode, window, alpha);
        return Ok(Operation { work, takes: vec![x.uid], gives: vec![y.uid] });
    };
    let Pooling::Max(keeps_nan) = mode else {
        return Err(Error::NotSupported("places of a mean"));
    };
    supports(alpha == 1.0, "places of a pooling that is multiplied")?;
    are_places(&index, &y, &window)?;
    let work = Work::Layer(Box::new(Places(keeps_nan, window)));
    Ok(Operation { work, takes: vec![x.uid], gives: vec![y.uid, index.uid] })
}

impl Layer for Places {
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let mut y = vec![0.0; gives[0].sizes.iter().product()];
        cudnn_cpu::pooling::forward(Pooling::Max(self.0), &self.1, taken[0].1, &mut y);
        vec![y, places(self.0, &self.1, taken[0].1)]
    }

    /// Places are smaller numbers than a `float` has.
    fn exact(&self, of: &Operation) -> Vec<i64> {
        vec![of.gives[1]]
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let by = (Pooling::Max(self.0), &self.1, 1.0);
        run.pool_with_places(by, [of.takes[0], of.gives[0]], Some(of.gives[1]))
    }
}

/// The gradient goes to places that are given.
struct Back(Window, f64);

/// Where a largest element was is told by its place, or seen from the images.
pub fn backward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let dx = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DXDESC)?;
    let dy = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DYDESC)?;
    let x = tensors.of(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_XDESC)?;
    let index = tensors.of(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_IDXDESC)?;
    let alpha = of.real(Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_ALPHA)?.unwrap_or(1.0);
    let beta = of.real(Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_BETA)?.unwrap_or(0.0);
    supports(beta == 0.0, "a gradient of pooling that is added to another")?;
    let by =
        described(of, Name::CUDNN_ATTR_OPERATION_RESAMPLE_BWD_DESC, Of::CUDNN_BACKEND_RESAMPLE_DESCRIPTOR)?;
    let (mode, window) = window(&by.lock(), &dx, &dy)?;
    let is_max = matches!(mode, Pooling::Max(_));
    if let Some(index) = index.filter(|_| is_max) {
        are_places(&index, &dy, &window)?;
        let work = Work::Layer(Box::new(Back(window, alpha)));
        return Ok(Operation { work, takes: vec![dy.uid, index.uid], gives: vec![dx.uid] });
    }
    require(!is_max || x.is_some(), "the gradient of a largest element lacks its place and the images")?;
    require(x.as_ref().is_none_or(|x| x.sizes == dx.sizes), "the tensors' sizes differ")?;
    let takes = core::iter::once(dy.uid).chain(x.filter(|_| is_max).map(|x| x.uid)).collect();
    Ok(Operation { work: Work::PoolBackward(mode, window, alpha), takes, gives: vec![dx.uid] })
}

impl Layer for Back {
    fn counts(&self) -> Vec<usize> {
        vec![1]
    }

    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let mut dx = vec![0.0; gives[0].sizes.iter().product()];
        backward_by_places(&self.0, taken[1].1, taken[0].1, &mut dx);
        dx.iter_mut().for_each(|value| *value *= self.1);
        vec![dx]
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let Some(places) = run.own(of.takes[1]) else { return Ok(false) };
        let by = (Pooling::Max(false), &self.0, self.1);
        run.pool_gradient(by, [of.takes[0], of.gives[0]], (places, None))
    }
}

impl Run<'_> {
    pub fn pool(&self, by: (Pooling, &Window, f64), of: &Operation) -> Result<bool> {
        self.pool_with_places(by, [of.takes[0], of.gives[0]], None)
    }

    /// Makes the second of the first, and where the largest elements are, if that is asked for.
    fn pool_with_places(
        &self,
        (mode, window, alpha): (Pooling, &Window, f64),
        [x, y]: [i64; 2],
        places: Option<i64>,
    ) -> Result<bool> {
        let places = places.map_or_else(|| Some(Operand::none()), |uid| self.own(uid));
        let (Some(x_at), Some(y_at), Some(places)) = (self.own(x), self.own(y), places) else {
            return Ok(false);
        };
        let (x, y) = ((&x_at, self.sizes(x)), (&y_at, self.sizes(y)));
        self.call.pool(&Pooled { mode, window, x, y, places, given: [alpha as f32, 0.0] })
    }

    pub fn pool_backward(&self, by: (Pooling, &Window, f64), of: &Operation) -> Result<bool> {
        let images = of.takes.get(1).map(|uid| self.own(*uid));
        match images {
            Some(None) => Ok(false),
            images => self.pool_gradient(by, [of.takes[0], of.gives[0]], (Operand::none(), images.flatten())),
        }
    }

    /// Makes the second, the gradient of the images, of the first, by places or by what the images were.
    fn pool_gradient(
        &self,
        (mode, window, alpha): (Pooling, &Window, f64),
        [dy, dx]: [i64; 2],
        (places, images): (Operand, Option<Operand>),
    ) -> Result<bool> {
        let (Some(dx_at), Some(dy_at)) = (self.own(dx), self.own(dy)) else { return Ok(false) };
        let (x, y) = ((&dx_at, self.sizes(dx)), (&dy_at, self.sizes(dy)));
        let pooled = Pooled { mode, window, x, y, places, given: [alpha as f32, 0.0] };
        self.call.pool_backward(&pooled, images.as_ref())
    }
}

/// What a pooling of these images to these results does.
fn window(by: &Descriptor, x: &Tensor, y: &Tensor) -> Result<(Pooling, Window)> {
    let before = by.integers(Name::CUDNN_ATTR_RESAMPLE_PRE_PADDINGS)?;
    let keeps_nan = by.number(Name::CUDNN_ATTR_RESAMPLE_NAN_PROPAGATION)? == 1;
    let padding = cudnnPaddingMode_t(by.number(Name::CUDNN_ATTR_RESAMPLE_PADDING_MODE)?);
    let mode = match cudnnResampleMode_t(by.number(Name::CUDNN_ATTR_RESAMPLE_MODE)?) {
        cudnnResampleMode_t::CUDNN_RESAMPLE_MAXPOOL => {
            let is_none = padding == cudnnPaddingMode_t::CUDNN_NEG_INF_PAD
                || before.iter().all(|&padding| padding == 0);
            supports(is_none, "the largest of what is padded with zeros")?;
            Pooling::Max(keeps_nan)
        }
        cudnnResampleMode_t::CUDNN_RESAMPLE_AVGPOOL_INCLUDE_PADDING => Pooling::MeanOfAll,
        cudnnResampleMode_t::CUDNN_RESAMPLE_AVGPOOL_EXCLUDE_PADDING => Pooling::MeanOfInside,
        _ => return Err(Error::NotSupported("a resampling of this mode")),
    };
    let window = by.integers(Name::CUDNN_ATTR_RESAMPLE_WINDOW_DIMS)?;
    let stride = by.integers(Name::CUDNN_ATTR_RESAMPLE_STRIDES)?;
    let n = window.len();
    let fits = x.sizes.len() == n + 2 && y.sizes.len() == n + 2 && stride.len() == n && before.len() == n;
    require(fits && x.sizes[..2] == y.sizes[..2], "sizes are not as many as the window's")?;
    require(
        window.iter().chain(&stride).all(|&number| number > 0),
        "a window's size or stride is not positive",
    )?;
    let window = Window {
        input: three(&x.sizes[2..], 1, |size| size)?,
        output: three(&y.sizes[2..], 1, |size| size)?,
        window: three(&window, 1, |size| size as usize)?,
        padding: three(&before, 0, |padding| padding as isize)?,
        stride: three(&stride, 1, |stride| stride as usize)?,
    };
    Ok((mode, window))
}
