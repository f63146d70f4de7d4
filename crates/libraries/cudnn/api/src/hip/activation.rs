//! Activations, softmax and local response normalization.

use core::ffi::{c_int, c_uint};

use cudnn_cpu::activation::Activation;
use cudnn_cpu::lrn::Lrn;

use super::call::{HipCall, ONE, ZERO, call, done};
use super::convert::{self, number};
use super::objects::{self, Layout, Made, Room, are_there, by_channel};
use crate::Result;
use crate::tensor::{Argument, Tensor};
use crate::types::*;

/// Whether elements of all tensors lie one behind the other in the same order, which is then the only one there is.
fn alike(tensors: &[&Argument]) -> bool {
    Layout::common(tensors.iter().map(|tensor| (&*tensor.sizes, &*tensor.strides))).is_some()
}

/// Sizes of as many elements.
fn lines(of: &Tensor) -> [c_int; 4] {
    [of.sizes[0], of.sizes[1..].iter().product(), 1, 1]
}

/// Algorithm and mode.
pub struct Softmax {
    pub algorithm: cudnnSoftmaxAlgorithm_t,
    pub mode: cudnnSoftmaxMode_t,
}

impl Softmax {
    fn numbers(&self) -> Option<[c_uint; 2]> {
        let algorithm = number(self.algorithm, &convert::SOFTMAX_ALGORITHMS)?;
        Some([algorithm, number(self.mode, &convert::SOFTMAX_MODES)?])
    }
}

impl HipCall {
    /// With alpha 1 and beta 0. `apart`: it can be done again.
    pub fn activate(&self, function: Activation, x: &Argument, y: &Argument, apart: bool) -> Result<bool> {
        let Some((function, kind)) = convert::activation(function).zip(objects::plain_type(x.kind)) else {
            return Ok(false);
        };
        if !alike(&[x, y]) || !are_there(&[x, y]) {
            return Ok(false);
        }
        let run = || {
            let library = self.library();
            let function = objects::activation(library, function)?;
            let tensor = objects::tensor(library, kind, &lines(x), Layout::ByChannel)?;
            let (is, x, y) = (tensor.raw(), x.memory, y.memory);
            call!(library, miopenActivationForward(self.raw(), function.raw(), ONE, is, x, ZERO, is, y))
        };
        done(run(), "an activation", apart)
    }

    /// With alpha 1 and beta 0.
    pub fn activation_gradient(
        &self,
        function: Activation,
        [x, y, dy]: [&Argument; 3],
        dx: &Argument,
    ) -> Result<bool> {
        let Some((function, kind)) = convert::activation(function).zip(objects::plain_type(x.kind)) else {
            return Ok(false);
        };
        if !alike(&[x, y, dy, dx]) || !are_there(&[x, y, dy, dx]) {
            return Ok(false);
        }
        let apart = [x, y, dy].iter().all(|read| read.memory != dx.memory);
        let run = || {
            let library = self.library();
            let function = objects::activation(library, function)?;
            let tensor = objects::tensor(library, kind, &lines(x), Layout::ByChannel)?;
            let (is, [x, y, dy, dx]) = (tensor.raw(), [x, y, dy, dx].map(|tensor| tensor.memory));
            call!(
                library,
                miopenActivationBackward(self.raw(), function.raw(), ONE, is, y, is, dy, is, x, ZERO, is, dx)
            )
        };
        done(run(), "an activation's gradient", apart)
    }

    pub fn softmax(
        &self,
        how: &Softmax,
        (alpha, x): (f64, &Argument),
        (beta, y): (f64, &Argument),
    ) -> Result<bool> {
        let Some(([algorithm, mode], kind)) = how.numbers().zip(of_images(&[x, y])) else { return Ok(false) };
        let apart = beta == 0.0 && x.memory != y.memory;
        let (alpha, beta) = (alpha as f32, beta as f32);
        let run = || {
            let library = self.library();
            let tensor = objects::tensor(library, kind, &x.sizes, Layout::ByChannel)?;
            let (is, x, y) = (tensor.raw(), x.memory, y.memory);
            call!(library, miopenSoftmaxForward_V2(self.raw(), &alpha, is, x, &beta, is, y, algorithm, mode))
        };
        done(run(), "a softmax", apart)
    }

    pub fn softmax_gradient(
        &self,
        how: &Softmax,
        (alpha, [y, dy]): (f64, [&Argument; 2]),
        (beta, dx): (f64, &Argument),
    ) -> Result<bool> {
        let all = [y, dy, dx];
        let Some(([algorithm, mode], kind)) = how.numbers().zip(of_images(&all)) else { return Ok(false) };
        let apart = beta == 0.0 && y.memory != dx.memory && dy.memory != dx.memory;
        let (alpha, beta) = (alpha as f32, beta as f32);
        let run = || {
            let library = self.library();
            let tensor = objects::tensor(library, kind, &y.sizes, Layout::ByChannel)?;
            let (is, [y, dy, dx]) = (tensor.raw(), all.map(|tensor| tensor.memory));
            call!(
                library,
                miopenSoftmaxBackward_V2(self.raw(), &alpha, is, y, is, dy, &beta, is, dx, algorithm, mode)
            )
        };
        done(run(), "a softmax's gradient", apart)
    }

    /// With alpha 1 and beta 0.
    pub fn lrn(&self, of: Lrn, x: &Argument, y: &Argument) -> Result<bool> {
        let Some(kind) = of_images(&[x, y]) else { return Ok(false) };
        let run = || {
            let library = self.library();
            let norm = objects::lrn(library, of)?;
            let tensor = objects::tensor(library, kind, &x.sizes, Layout::ByChannel)?;
            let (is, x, y) = (tensor.raw(), x.memory, y.memory);
            let nothing = core::ptr::null_mut();
            call!(library, miopenLRNForward(self.raw(), norm.raw(), ONE, is, x, ZERO, is, y, false, nothing))
        };
        done(run(), "a response normalization", x.memory != y.memory)
    }

    /// With alpha 1 and beta 0. What MIOpen's way forward leaves for the way back is made again.
    pub fn lrn_gradient(&self, of: Lrn, [x, y, dy]: [&Argument; 3], dx: &Argument) -> Result<bool> {
        let all = [x, y, dy, dx];
        let Some(kind) = of_images(&all) else { return Ok(false) };
        let apart = [x, y, dy].iter().all(|read| read.memory != dx.memory);
        let run = || {
            let library = self.library();
            let norm = objects::lrn(library, of)?;
            let tensor = objects::tensor(library, kind, &x.sizes, Layout::ByChannel)?;
            let (scales, again) = self.scales(&norm, &tensor, x)?;
            let (is, [x, y, dy, dx]) = (tensor.raw(), all.map(|tensor| tensor.memory));
            drop(again);
            call!(
                library,
                miopenLRNBackward(
                    self.raw(),
                    norm.raw(),
                    ONE,
                    is,
                    y,
                    is,
                    dy,
                    is,
                    x,
                    ZERO,
                    is,
                    dx,
                    scales.at()
                )
            )
        };
        done(run(), "a response normalization's gradient", apart)
    }

    /// The sums that a gradient needs, and results as the program has them.
    fn scales(&self, norm: &Made, tensor: &Made, x: &Argument) -> Result<(Room, Room)> {
        let (library, is, mut bytes) = (self.library(), tensor.raw(), 0);
        call!(library, miopenLRNGetWorkSpaceSize(is, &mut bytes))?;
        let scales = Room::new(self.stream, bytes)?;
        let again = Room::new(self.stream, x.bytes()?)?;
        call!(
            library,
            miopenLRNForward(
                self.raw(),
                norm.raw(),
                ONE,
                is,
                x.memory,
                ZERO,
                is,
                again.at(),
                true,
                scales.at()
            )
        )?;
        Ok((scales, again))
    }
}

/// The type of images in four sizes that lie by channels, all of the same sizes.
fn of_images(all: &[&Argument]) -> Option<c_uint> {
    let fits = all.iter().all(|tensor| {
        tensor.sizes.len() == 4
            && by_channel(&[*tensor])
            && tensor.sizes == all[0].sizes
            && tensor.kind == all[0].kind
    });
    objects::plain_type(all[0].kind).filter(|_| fits && are_there(all))
}
