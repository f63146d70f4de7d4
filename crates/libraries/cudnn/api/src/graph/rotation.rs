//! Rotary position embedding: pairs of elements turned by an angle that a position has for them. Source: cuDNN manual, "RoPE".

use super::descriptor::Descriptor;
use super::kernels::Run;
use super::plan::{Layer, Operation, Tensor, Tensors, Work};
use crate::error::require;
use crate::kernels::moves::Turn;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;

/// The last of a row's elements are turned, each of their first half with its like of the second, and all are multiplied.
struct Rotation {
    /// Elements that are turned.
    turned: usize,
    factor: f64,
    /// 1, or -1 on the way back, which is the inverse.
    direction: f64,
}

pub fn forward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_ROPE_FWD_XDESC)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_ROPE_FWD_YDESC)?;
    let angles = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_ROPE_FWD_FREQSDESC)?;
    let turned = of.integer(Name::CUDNN_ATTR_OPERATION_ROPE_FWD_ROPE_DIM)?;
    let factor = of.real(Name::CUDNN_ATTR_OPERATION_ROPE_FWD_OUTPUT_SCALE)?;
    Rotation::operation([&x, &y, &angles], turned, factor, 1.0)
}

pub fn backward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let dy = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_ROPE_BWD_DYDESC)?;
    let dx = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_ROPE_BWD_DXDESC)?;
    let angles = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_ROPE_BWD_FREQSDESC)?;
    let turned = of.integer(Name::CUDNN_ATTR_OPERATION_ROPE_BWD_ROPE_DIM)?;
    let factor = of.real(Name::CUDNN_ATTR_OPERATION_ROPE_BWD_OUTPUT_SCALE)?;
    Rotation::operation([&dy, &dx, &angles], turned, factor, -1.0)
}

impl Rotation {
    fn operation(
        [from, to, angles]: [&Tensor; 3],
        turned: Option<i64>,
        factor: Option<f64>,
        direction: f64,
    ) -> Result<Operation> {
        let [_, _, positions, depth] = from.sizes[..] else {
            return Err(Error::BadParam("a tensor of a rotation has not four sizes"));
        };
        require(to.sizes == from.sizes, "the result of a rotation has other sizes")?;
        // 0 is all of them, as cudnn-frontend says it.
        let turned = match turned.unwrap_or(0) {
            0 => depth,
            turned => {
                usize::try_from(turned).map_err(|_| Error::BadParam("a rotation's width is negative"))?
            }
        };
        require(turned <= depth && turned.is_multiple_of(2), "a rotation's width is odd or too large")?;
        // There may be angles for more positions than there are.
        let fits = matches!(angles.sizes[..], [rows, 1, 1, width] if rows >= positions && width == turned);
        require(fits, "a rotation has not an angle for each element of each position")?;
        let work = Work::Layer(Box::new(Rotation { turned, factor: factor.unwrap_or(1.0), direction }));
        Ok(Operation { work, takes: vec![from.uid, angles.uid], gives: vec![to.uid] })
    }
}

impl Layer for Rotation {
    fn run(&self, _: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let [(tensor, from), (_, angles)] = [taken[0], taken[1]];
        let (positions, depth) = (tensor.sizes[2], tensor.sizes[3]);
        let half = self.turned / 2;
        let turns: Vec<(f64, f64)> = angles
            .chunks(self.turned.max(1))
            .take(positions)
            .flat_map(|row| &row[..half])
            .map(|angle| (self.factor * angle.cos(), self.factor * self.direction * angle.sin()))
            .collect();
        let mut to: Vec<f64> = from.iter().map(|value| self.factor * value).collect();
        for (number, (to, from)) in to.chunks_mut(depth).zip(from.chunks(depth)).enumerate() {
            let turns = &turns[number % positions * half..][..half];
            let (low, high) = to[depth - self.turned..].split_at_mut(half);
            let (from_low, from_high) = from[depth - self.turned..].split_at(half);
            for (at, (cosine, sine)) in turns.iter().enumerate() {
                low[at] = from_low[at] * cosine - from_high[at] * sine;
                high[at] = from_high[at] * cosine + from_low[at] * sine;
            }
        }
        vec![to]
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let strides = &run.tensor(of.takes[1]).strides;
        let angles = run.strided(of.takes[1], vec![0, 0, strides[0] as i64, 0]);
        let (Some(to), Some(from), Some(angles)) = (run.own(of.gives[0]), run.own(of.takes[0]), angles)
        else {
            return Ok(false);
        };
        let along = strides[3] as i64;
        let how = Turn { turned: self.turned, factor: self.factor, direction: self.direction, along };
        run.call.rotate(how, run.sizes(of.gives[0]), [&to, &from, &angles])
    }
}
