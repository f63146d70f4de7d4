//! Convolutions and their gradients: api/kernels/convolutions.cu.

use cudnn_cpu::convolution::Geometry;

use super::tensor::{Operand, Tensor, five, small, three};
use super::{Call, Part};
use crate::Result;
use crate::hip::convolution::Direction;

/// `Convolution` of convolutions.cu.
#[repr(C)]
struct Convolution {
    x: Tensor,
    w: Tensor,
    y: Tensor,
    images: u32,
    groups: u32,
    channels: u32,
    filters: u32,
    input: [u32; 3],
    taps: [u32; 3],
    output: [u32; 3],
    padding: [i32; 3],
    stride: [u32; 3],
    dilation: [u32; 3],
    is_flipped: u32,
    by: f32,
    before: f32,
}

const TILE: u32 = 64;
const THREADS: u32 = 256;
/// Blocks of a launch at most along its second and third size.
const MOST: u32 = 65_535;

impl Call {
    /// Images, filters and results in this order, each with its sizes; of filters whether taps are turned round.
    pub fn convolve(
        &self,
        direction: Direction,
        (of, is_flipped): (&Geometry, bool),
        operands: [(&Operand, &[usize]); 3],
        given: [f32; 2],
    ) -> Result<bool> {
        let Some(module) = self.module(Part::Convolutions) else { return Ok(false) };
        let (written, read) = match direction {
            Direction::Forward => (2, [0, 1]),
            Direction::Data => (0, [1, 2]),
            Direction::Filter => (1, [0, 2]),
        };
        let (to, sizes) = operands[written];
        if !read.iter().all(|&from| to.is_apart(sizes, operands[from])) {
            return Ok(false);
        }
        let Some(mut how) = convolution(of, is_flipped, operands.map(|(it, _)| it), given) else {
            return Ok(false);
        };
        let count = |sizes: [usize; 3]| sizes.iter().product::<usize>();
        let (name, rows, columns, depth) = match direction {
            Direction::Forward => {
                (c"forward", of.filters, of.images * count(of.output), of.channels * count(of.filter))
            }
            Direction::Data => {
                (c"backward_data", of.channels, of.images * count(of.input), of.filters * count(of.filter))
            }
            Direction::Filter => {
                (c"backward_filter", of.filters, of.channels * count(of.filter), of.images * count(of.output))
            }
        };
        let (Some(rows), Some(columns), Some(_)) = (small(rows), small(columns), small(depth)) else {
            return Ok(false);
        };
        let blocks = [columns.div_ceil(TILE), rows.div_ceil(TILE), how.groups];
        if blocks[1] > MOST || blocks[2] > MOST || blocks.contains(&0) {
            return Ok(false);
        }
        // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { self.launch(module, name, blocks, THREADS, &mut how) }?;
        Ok(true)
    }
}

fn convolution(
    of: &Geometry,
    is_flipped: bool,
    operands: [&Operand; 3],
    given: [f32; 2],
) -> Option<Convolution> {
    let [x, w, y] = operands.map(five);
    let padding = of.padding.map(|padding| i32::try_from(padding).ok());
    Some(Convolution {
        x: x?,
        w: w?,
        y: y?,
        images: small(of.images)?,
        groups: small(of.groups)?,
        channels: small(of.channels)?,
        filters: small(of.filters)?,
        input: three(of.input)?,
        taps: three(of.filter)?,
        output: three(of.output)?,
        padding: [padding[0]?, padding[1]?, padding[2]?],
        stride: three(of.stride)?,
        dilation: three(of.dilation)?,
        is_flipped: is_flipped.into(),
        by: given[0],
        before: given[1],
    })
}
