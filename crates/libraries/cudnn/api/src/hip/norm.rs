//! Batch normalization of images by channels, with its factors 1 and 0 and parameters in single precision.

use core::ffi::c_uint;

use super::call::{HipCall, ONE, ZERO, call, done};
use super::convert;
use super::library::{Memory, Raw};
use super::objects::{self, Layout, are_there, by_channel};
use crate::Result;
use crate::tensor::{Argument, Tensor};
use crate::types::cudnnDataType_t;

/// Statistics of each channel or each place of an image, and what their arrays are.
pub struct Norm<'n> {
    pub of_channels: bool,
    pub parameters: &'n Tensor,
    pub epsilon: f64,
}

/// Scale and bias.
pub type Pair = [Memory; 2];

impl Norm<'_> {
    fn mode(&self) -> c_uint {
        if self.of_channels { convert::EACH_CHANNEL } else { convert::EACH_PLACE }
    }

    /// The tensors' type, if MIOpen has it.
    fn fitting(&self, all: &[&Argument], there: &[Memory]) -> Option<c_uint> {
        let aligned = |at: &Memory| !at.is_null() && at.cast::<f32>().is_aligned();
        let fits = (4..=5).contains(&all[0].sizes.len())
            && self.parameters.kind == cudnnDataType_t::CUDNN_DATA_FLOAT
            && by_channel(&[self.parameters])
            && all.iter().all(|tensor| by_channel(&[*tensor]))
            && are_there(all)
            && there.iter().all(aligned);
        objects::plain_type(all[0].kind).filter(|_| fits)
    }
}

impl HipCall {
    /// Calls what takes such images with a descriptor of them and one of the parameters. `apart`: it can be done again.
    fn with_norm(
        &self,
        how: &Norm<'_>,
        (images, there): (&[&Argument], &[Memory]),
        apart: bool,
        call: impl FnOnce(Raw, Raw) -> Result,
    ) -> Result<bool> {
        let Some(kind) = how.fitting(images, there) else { return Ok(false) };
        let run = || {
            let tensor =
                |kind, of: &Tensor| objects::tensor(self.library(), kind, &of.sizes, Layout::ByChannel);
            let (is, parameters) = (tensor(kind, images[0])?, tensor(convert::SINGLE, how.parameters)?);
            call(is.raw(), parameters.raw())
        };
        done(run(), "batch normalization", apart)
    }

    /// `running` and `saved` are two that are there or two that are NULL.
    pub fn normalize_training(
        &self,
        how: &Norm<'_>,
        [x, y]: [&Argument; 2],
        [scale, bias]: Pair,
        (factor, running): (f64, Pair),
        saved: Pair,
    ) -> Result<bool> {
        // Running statistics are read and written.
        let apart = x.memory != y.memory && running[0].is_null();
        self.with_norm(how, (&[x, y], &[scale, bias]), apart, |is, parameters| {
            call!(
                self.library(),
                miopenBatchNormalizationForwardTraining(
                    self.raw(),
                    how.mode(),
                    ONE,
                    ZERO,
                    is,
                    x.memory,
                    is,
                    y.memory,
                    parameters,
                    scale,
                    bias,
                    factor,
                    running[0],
                    running[1],
                    how.epsilon,
                    saved[0],
                    saved[1]
                )
            )
        })
    }

    pub fn normalize(
        &self,
        how: &Norm<'_>,
        [x, y]: [&Argument; 2],
        [scale, bias]: Pair,
        [mean, variance]: Pair,
    ) -> Result<bool> {
        let there = (&[x, y][..], &[scale, bias, mean, variance][..]);
        self.with_norm(how, there, x.memory != y.memory, |is, parameters| {
            call!(
                self.library(),
                miopenBatchNormalizationForwardInference(
                    self.raw(),
                    how.mode(),
                    ONE,
                    ZERO,
                    is,
                    x.memory,
                    is,
                    y.memory,
                    parameters,
                    scale,
                    bias,
                    mean,
                    variance,
                    how.epsilon
                )
            )
        })
    }

    /// `saved` are two that are there or two that are NULL.
    pub fn normalization_gradient(
        &self,
        how: &Norm<'_>,
        [x, dy, dx]: [&Argument; 3],
        scale: Memory,
        gradients: Pair,
        saved: Pair,
    ) -> Result<bool> {
        let apart = x.memory != dx.memory && dy.memory != dx.memory;
        let there = (&[x, dy, dx][..], &[scale, gradients[0], gradients[1]][..]);
        self.with_norm(how, there, apart, |is, parameters| {
            call!(
                self.library(),
                miopenBatchNormalizationBackward(
                    self.raw(),
                    how.mode(),
                    ONE,
                    ZERO,
                    ONE,
                    ZERO,
                    is,
                    x.memory,
                    is,
                    dy.memory,
                    is,
                    dx.memory,
                    parameters,
                    scale,
                    gradients[0],
                    gradients[1],
                    how.epsilon,
                    saved[0],
                    saved[1]
                )
            )
        })
    }
}
