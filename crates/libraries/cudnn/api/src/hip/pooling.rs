//! Pooling of images by channels, in two and three sizes.

use core::ffi::{c_int, c_uint};

use cudnn_cpu::pooling::Pooling;

use super::call::{HipCall, ONE, ZERO, call, done};
use super::convert;
use super::objects::{self, Layout, Room, are_there, by_channel};
use crate::Result;
use crate::tensor::Argument;

/// A window with its padding and strides, which is as many places as the formula gives.
pub struct Window<'w> {
    pub mode: Pooling,
    pub window: &'w [c_int],
    pub padding: &'w [c_int],
    pub stride: &'w [c_int],
}

impl Window<'_> {
    /// The mode and the tensors' type, if MIOpen has it.
    fn fitting(&self, all: &[&Argument]) -> Option<[c_uint; 2]> {
        let inside =
            self.padding.iter().zip(self.window).all(|(padding, window)| (0..*window).contains(padding));
        let fits = (2..=3).contains(&self.window.len())
            && inside
            && all.iter().all(|tensor| by_channel(&[*tensor]) && tensor.kind == all[0].kind)
            && are_there(all);
        let kind = objects::plain_type(all[0].kind).filter(|_| fits)?;
        Some([convert::pooling(self.mode)?, kind])
    }

    fn lists(&self) -> [&[c_int]; 3] {
        [self.window, self.padding, self.stride]
    }
}

impl HipCall {
    /// With alpha 1 and beta 0.
    pub fn pool(&self, how: &Window<'_>, x: &Argument, y: &Argument) -> Result<bool> {
        let Some([mode, kind]) = how.fitting(&[x, y]) else { return Ok(false) };
        let run = || {
            let library = self.library();
            let window = objects::pooling(library, mode, how.lists())?;
            let x_is = objects::tensor(library, kind, &x.sizes, Layout::ByChannel)?;
            let y_is = objects::tensor(library, kind, &y.sizes, Layout::ByChannel)?;
            let nothing = core::ptr::null_mut();
            call!(
                library,
                miopenPoolingForward(
                    self.raw(),
                    window.raw(),
                    ONE,
                    x_is.raw(),
                    x.memory,
                    ZERO,
                    y_is.raw(),
                    y.memory,
                    false,
                    nothing,
                    0
                )
            )
        };
        done(run(), "pooling", x.memory != y.memory)
    }

    /// With alpha 1 and beta 0. Where the largest are, which MIOpen's way forward tells, is looked for again; then y, which it makes, need not
    /// be given.
    pub fn pooling_gradient(
        &self,
        how: &Window<'_>,
        x: &Argument,
        y: Option<&Argument>,
        dy: &Argument,
        dx: &Argument,
    ) -> Result<bool> {
        let is_max = matches!(how.mode, Pooling::Max(_));
        let read: Vec<&Argument> = [x, dy].into_iter().chain(y).collect();
        let all: Vec<&Argument> = read.iter().copied().chain([dx]).collect();
        let Some([mode, kind]) = how.fitting(&all).filter(|_| is_max || y.is_some()) else {
            return Ok(false);
        };
        let apart = read.iter().all(|read| read.memory != dx.memory);
        let run = || {
            let library = self.library();
            let window = objects::pooling(library, mode, how.lists())?;
            let x_is = objects::tensor(library, kind, &x.sizes, Layout::ByChannel)?;
            let y_is = objects::tensor(library, kind, &dy.sizes, Layout::ByChannel)?;
            let (window, x_is, y_is) = (window.raw(), x_is.raw(), y_is.raw());
            let mut bytes = 0;
            if is_max {
                call!(library, miopenPoolingGetWorkSpaceSizeV2(window, y_is, &mut bytes))?;
            }
            let places = Room::new(self.stream, bytes)?;
            let again = Room::new(self.stream, if is_max { dy.bytes()? } else { 0 })?;
            if is_max {
                let (x, y) = (x.memory, again.at());
                call!(
                    library,
                    miopenPoolingForward(
                        self.raw(),
                        window,
                        ONE,
                        x_is,
                        x,
                        ZERO,
                        y_is,
                        y,
                        true,
                        places.at(),
                        bytes
                    )
                )?;
            }
            let y = y.map_or(again.at(), |y| y.memory);
            let [x, dy, dx] = [x, dy, dx].map(|tensor| tensor.memory);
            call!(
                library,
                miopenPoolingBackward(
                    self.raw(),
                    window,
                    ONE,
                    y_is,
                    y,
                    y_is,
                    dy,
                    x_is,
                    x,
                    ZERO,
                    x_is,
                    dx,
                    places.at()
                )
            )
        };
        done(run(), "pooling's gradient", apart)
    }
}
