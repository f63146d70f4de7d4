//! Pooling and its gradients: api/kernels/windows.cu.

use core::ffi::CStr;

use cudnn_cpu::Kind;
use cudnn_cpu::pooling::{Pooling, Window};

use super::tensor::{Operand, Tensor, five, packed, small, three};
use super::{Call, Part};
use crate::Result;

/// `Windows` of windows.cu.
#[repr(C)]
#[derive(Clone, Copy)]
struct Windows {
    x: Tensor,
    y: Tensor,
    places: Tensor,
    mode: u32,
    images: u32,
    channels: u32,
    input: [u32; 3],
    output: [u32; 3],
    window: [u32; 3],
    padding: [i32; 3],
    stride: [u32; 3],
    by: f32,
    before: f32,
}

const THREADS: u32 = 256;

/// Images and what is pooled of them, with the sizes of both.
pub struct Pooled<'p> {
    pub mode: Pooling,
    pub window: &'p Window,
    pub x: (&'p Operand, &'p [usize]),
    pub y: (&'p Operand, &'p [usize]),
    /// Where in their windows the largest elements are, by lines.
    pub places: Operand,
    /// Factors of the result, and of what lay there before.
    pub given: [f32; 2],
}

impl Pooled<'_> {
    /// None where the kernels count in fewer bits than it has places.
    fn windows(&self) -> Option<Windows> {
        let Window { input, output, window, padding, stride } = *self.window;
        // Places are told as floats, and windows may begin before and end behind the images.
        let is_counted = |n: usize| n < 1 << 24;
        let fits = (0..3).all(|at| is_counted(input[at] + window[at] + padding[at].unsigned_abs()))
            && is_counted(window.iter().product());
        let [x, y] = [self.x, self.y].map(|(_, sizes)| sizes.iter().product::<usize>());
        small(x)?;
        small(y)?;
        fits.then_some(())?;
        Some(Windows {
            x: five(self.x.0)?,
            y: five(self.y.0)?,
            places: if self.places.is_none() { Tensor::NONE } else { five(&self.places)? },
            mode: match self.mode {
                Pooling::Max(keeps_nan) => keeps_nan.into(),
                Pooling::MeanOfAll => 2,
                Pooling::MeanOfInside => 3,
            },
            images: small(self.x.1[0])?,
            channels: small(self.x.1[1])?,
            input: three(input)?,
            output: three(output)?,
            window: three(window)?,
            padding: padding.map(|padding| padding as i32),
            stride: three(stride)?,
            by: self.given[0],
            before: self.given[1],
        })
    }
}

impl Call {
    /// Makes y, and places if there are to be any; whether the kernel can do it.
    pub fn pool(&self, of: &Pooled) -> Result<bool> {
        let (x, y) = (of.x, of.y);
        let is_apart = y.0.is_apart(y.1, x) && of.places.is_apart(y.1, x);
        match of.windows().filter(|_| is_apart) {
            Some(windows) => self.run_windows(c"pool", windows, y.1),
            None => Ok(false),
        }
    }

    /// Makes x, which is the gradient of the images, of the gradient of y; `images` are where the largest elements are to be looked for.
    pub fn pool_backward(&self, of: &Pooled, images: Option<&Operand>) -> Result<bool> {
        let (x, y) = (of.x, of.y);
        let is_apart = x.0.is_apart(x.1, y) && x.0.is_apart(x.1, (&of.places, y.1));
        let is_apart = is_apart && images.is_none_or(|images| x.0.is_apart(x.1, (images, x.1)));
        let Some(windows) = of.windows().filter(|_| is_apart) else { return Ok(false) };
        let Some(images) = images.filter(|_| matches!(of.mode, Pooling::Max(_))) else {
            return self.run_windows(c"pool_backward", windows, x.1);
        };
        let (strides, count) = packed(y.1, &vec![false; y.1.len()]);
        let room = self.room(4 * count)?;
        let places = Operand::memory(room.at().cast(), Kind::I32, strides);
        let Some(places) = places.as_ref().and_then(five) else { return Ok(false) };
        let Some(images) = five(images) else { return Ok(false) };
        let looked = Windows { x: images, y: Tensor::NONE, places, ..windows };
        Ok(self.run_windows(c"pool", looked, y.1)?
            && self.run_windows(c"pool_backward", Windows { places, ..windows }, x.1)?)
    }

    fn run_windows(&self, name: &'static CStr, mut windows: Windows, sizes: &[usize]) -> Result<bool> {
        let Some(module) = self.module(Part::Windows) else { return Ok(false) };
        // Of so many elements as 32 bits count.
        let count = sizes.iter().product::<usize>() as u32;
        if count > 0 {
            // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
            unsafe {
                self.launch(module, name, [super::blocks(count, THREADS), 1, 1], THREADS, &mut windows)
            }?;
        }
        Ok(true)
    }
}
