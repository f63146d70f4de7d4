//! Tensors of few bits with a factor for each block of elements, as MXFP8 and NVFP4 have them. Source: cuDNN manual, "Block Scaling".

use cudnn_cpu::{Kind, Value};

use super::descriptor::Descriptor;
use super::layout::Layout;
use super::plan::{Layer, Operation, Tensor, Tensors, Work};
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;

/// Elements of a block along each size.
pub struct Blocks(Vec<usize>);

impl Blocks {
    /// Blocks of so many elements along one size, with a factor for each.
    pub fn along(axis: usize, count: usize, x: &Tensor, scale: &Tensor) -> Result<Blocks> {
        let mut blocks = vec![1; x.sizes.len()];
        blocks[axis] = count;
        require(fits(&x.sizes, scale, &blocks), "there is not a factor for each block")?;
        Ok(Blocks(blocks))
    }

    /// Each element times its block's factor.
    pub fn multiplied<V: Value>(&self, (x, values): (&Tensor, &[V]), (scale, by): (&Tensor, &[V])) -> Vec<V> {
        let place = factors(&x.sizes, &scale.sizes, &self.0);
        values.iter().enumerate().map(|(number, value)| *value * by[place(number)]).collect()
    }
}

/// Whether there is a factor for each block: more of them only where tiles have to be whole.
fn fits(x: &[usize], scale: &Tensor, blocks: &[usize]) -> bool {
    let is_padded = matches!(scale.layout, Layout::Tiles { .. });
    x.len() == scale.sizes.len()
        && x.iter().zip(&scale.sizes).zip(blocks).all(|((x, scale), block)| {
            let count = x.div_ceil(*block);
            *scale == count || (is_padded && *scale > count && *scale - count < 128)
        })
}

/// Where each element's factor is.
fn factors<'s>(sizes: &'s [usize], scale: &'s [usize], blocks: &'s [usize]) -> impl Fn(usize) -> usize + 's {
    move |number| {
        let (mut left, mut place, mut distance) = (number, 0, 1);
        for axis in (0..sizes.len()).rev() {
            place += left % sizes[axis] / blocks[axis] * distance;
            left /= sizes[axis];
            distance *= scale[axis];
        }
        place
    }
}

pub fn dequantize(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_XDESC)?;
    let scale = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_SCALE_DESC)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_YDESC)?;
    let is_negative = of.number(Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_NEG_SCALE)? != 0;
    supports(!is_negative, "factors of blocks that are negated")?;
    let sizes = of.integers(Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_DEQUANTIZE_BLOCK_SIZE)?;
    let n = x.sizes.len();
    require(
        (1..=n).contains(&sizes.len()) && sizes.iter().all(|&size| size > 0),
        "a block has no size, or more of them than the tensor",
    )?;
    require(x.sizes == y.sizes, "the tensors' sizes differ")?;
    let sizes: Vec<usize> = sizes.into_iter().map(|size| size as usize).collect();
    // They are the last sizes'; one that is alone, or two of a matrix that is turned, are for the size that has fewer factors.
    let behind = |sizes: Vec<usize>| [vec![1; n - sizes.len()], sizes].concat();
    let turned = if sizes.len() == 1 && n > 1 {
        [sizes.clone(), vec![1]].concat()
    } else {
        sizes.iter().rev().copied().collect()
    };
    let ways = [behind(sizes), behind(turned)];
    let blocks = ways.into_iter().find(|blocks| fits(&x.sizes, &scale, blocks));
    let blocks = blocks.ok_or(Error::BadParam("there is not a factor for each block"))?;
    let work = Work::Layer(Box::new(Dequantize(Blocks(blocks))));
    Ok(Operation { work, takes: vec![x.uid, scale.uid], gives: vec![y.uid] })
}

struct Dequantize(Blocks);

impl Layer for Dequantize {
    fn run(&self, _gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let [(tensor, x), (factor, scale)] = [taken[0], taken[1]];
        let place = factors(&tensor.sizes, &factor.sizes, &self.0.0);
        vec![x.iter().enumerate().map(|(number, x)| x * scale[place(number)]).collect()]
    }
}

/// The largest number of a type that blocks are made of.
fn most(of: Kind) -> Option<f64> {
    match of {
        Kind::E4M3 => Some(448.0),
        Kind::E5M2 => Some(57344.0),
        Kind::E2M1 => Some(6.0),
        _ => None,
    }
}

/// The least number of the factors' type that is not less; the largest, if there is none.
fn not_less(of: Kind, value: f64) -> f64 {
    match of {
        Kind::E8M0 => value.log2().ceil().clamp(-127.0, 127.0).exp2(),
        Kind::E4M3 => {
            let number = |code: u32| match code >> 3 {
                0 => f64::from(code) * 2.0_f64.powi(-9),
                exponent => f64::from(8 + (code & 7)) * 2.0_f64.powi(exponent as i32 - 10),
            };
            let (mut low, mut high) = (0, 0x7e);
            while low < high {
                let middle = (low + high) / 2;
                if number(middle) >= value { high = middle } else { low = middle + 1 }
            }
            number(low)
        }
        _ => value,
    }
}

struct Quantize {
    blocks: Blocks,
    /// The factors' type.
    kind: Kind,
    /// The largest number of the result's.
    most: f64,
}

pub fn quantize(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_XDESC)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_YDESC)?;
    let scale = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_SCALE_DESC)?;
    let size = of.integer(Name::CUDNN_ATTR_OPERATION_BLOCK_SCALE_QUANTIZE_BLOCK_SIZE)?.unwrap_or(0);
    require(size > 0, "a block has no size")?;
    require(x.sizes == y.sizes, "the tensors' sizes differ")?;
    let most = most(y.kind).ok_or(Error::NotSupported("blocks of this type"))?;
    let is_scale = matches!(scale.kind, Kind::E8M0 | Kind::E4M3 | Kind::F32);
    supports(is_scale, "factors of blocks of this type")?;
    let along = |axis: usize| {
        let mut blocks = vec![1; x.sizes.len()];
        blocks[axis] = size as usize;
        blocks
    };
    // Blocks lie along a size whose elements follow each other in memory, if several have as many factors.
    let axes: Vec<usize> = (0..x.sizes.len()).filter(|&axis| fits(&x.sizes, &scale, &along(axis))).collect();
    let axis = axes.iter().find(|&&axis| y.strides[axis] == 1).or(axes.first());
    let axis = axis.ok_or(Error::BadParam("there is not a factor for each block"))?;
    let work = Quantize { blocks: Blocks(along(*axis)), kind: scale.kind, most };
    Ok(Operation { work: Work::Layer(Box::new(work)), takes: vec![x.uid], gives: vec![y.uid, scale.uid] })
}

impl Layer for Quantize {
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let (tensor, x) = taken[0];
        let place = factors(&tensor.sizes, &gives[1].sizes, &self.blocks.0);
        let mut scale = vec![0.0_f64; gives[1].sizes.iter().product()];
        let mut is_met = vec![false; scale.len()];
        for (number, x) in x.iter().enumerate() {
            let place = place(number);
            // A NaN makes its block one.
            if x.is_nan() || x.abs() > scale[place] {
                scale[place] = x.abs();
            }
            is_met[place] = true;
        }
        for (scale, _) in scale.iter_mut().zip(is_met).filter(|(_, is_met)| *is_met) {
            *scale = if scale.is_nan() { *scale } else { not_less(self.kind, *scale / self.most) };
        }
        let quotient = |(number, x): (usize, &f64)| match scale[place(number)] {
            0.0 => 0.0,
            scale => (x / scale).clamp(-self.most, self.most),
        };
        let y = x.iter().enumerate().map(quotient).collect();
        vec![y, scale]
    }
}
