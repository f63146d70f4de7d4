//! What is computed for each element by itself: api/kernels/elements.cu.

use cudnn_cpu::activation::Activation;
use cudnn_cpu::pointwise::{Mix, One, Pointwise, Two};

use super::tensor::{Operand, Sizes, Tensor, space};
use super::{Call, Part};
use crate::Result;

const TAKEN: usize = 7;
const THREADS: u32 = 256;

/// `Elements` of elements.cu.
#[repr(C)]
struct Elements {
    to: Tensor,
    from: [Tensor; TAKEN],
    sizes: Sizes,
    code: u32,
    numbers: [f32; 4],
    keeps_nan: u32,
    alpha: f32,
    beta: f32,
    by: f32,
    before: f32,
}

/// What is done: by its code, with its settings and factors.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct How {
    code: u32,
    numbers: [f32; 4],
    keeps_nan: bool,
    /// Of the first two that are taken.
    pub factors: [f32; 2],
    /// Of the result, and of what lay there before.
    pub given: [f32; 2],
}

/// The first codes of each kind, in elements.cu's order.
const ADD: u32 = 15;
const SELECT: u32 = 34;
const SIGMOID: u32 = 35;
const SIGMOID_BACKWARD: u32 = 41;
const IDENTITY: u32 = 12;
const IDENTITY_BACKWARD: u32 = 47;
const CLIP: u32 = 48;
const LEAST: u32 = 56;
const BAND: u32 = 58;

impl How {
    fn new(code: u32) -> How {
        How { code, numbers: [0.0; 4], keeps_nan: false, factors: [1.0; 2], given: [1.0, 0.0] }
    }

    /// Elements as they are, in another type or place.
    pub fn copy() -> How {
        How::new(IDENTITY)
    }

    /// An operation of a graph; none for that which takes nothing.
    pub fn of(of: Pointwise, (alpha, beta): (f64, f64)) -> Option<How> {
        let with = |code: u32, numbers: &[f64]| {
            let mut how = How::new(code);
            how.numbers.iter_mut().zip(numbers).for_each(|(to, from)| *to = *from as f32);
            how
        };
        let mut how = match of {
            Pointwise::One(one) => How::new(one_code(one)),
            Pointwise::Two(two) => How::new(ADD + two_code(two)),
            Pointwise::Select => How::new(SELECT),
            Pointwise::Activation(function) => How::activation(function),
            Pointwise::Backward(function) => {
                let mut how = How::gradient(function);
                how.numbers[3] = 1.0;
                how
            }
            Pointwise::BackwardOfResult(function) => How::gradient(function),
            Pointwise::Clip(clip) | Pointwise::ClipBackward(clip) => {
                let code = if of.is_backward() { CLIP + 1 } else { CLIP };
                let mut how = with(code, &[clip.lower, clip.upper, clip.slope]);
                how.keeps_nan = clip.keeps_nan;
                how
            }
            Pointwise::Softplus(factor) => with(CLIP + 2, &[factor]),
            Pointwise::SoftplusBackward(factor) => with(CLIP + 3, &[factor]),
            Pointwise::Gelu => How::new(CLIP + 4),
            Pointwise::GeluBackward => How::new(CLIP + 5),
            Pointwise::GeluByTanh => How::new(CLIP + 6),
            Pointwise::GeluByTanhBackward => How::new(CLIP + 7),
            Pointwise::Index(_) => return None,
        };
        // Gradients have no factors.
        if !of.is_backward() {
            how.factors = [alpha as f32, beta as f32];
        }
        Some(how)
    }

    pub fn activation(of: Activation) -> How {
        match settings(of) {
            Some((at, setting, keeps_nan)) => {
                let mut how = How::new(SIGMOID + at);
                (how.numbers[0], how.keeps_nan) = (setting, keeps_nan);
                how
            }
            None => How::copy(),
        }
    }

    /// Of the argument, the result and the gradient.
    pub fn gradient(of: Activation) -> How {
        match settings(of) {
            Some((at, setting, _)) => {
                let mut how = How::new(SIGMOID_BACKWARD + at);
                how.numbers[0] = setting;
                how
            }
            None => How::new(IDENTITY_BACKWARD),
        }
    }

    /// Of `cudnnOpTensor`.
    pub fn mix(of: Mix, factors: [f32; 2]) -> How {
        let (code, keeps_nan) = match of {
            Mix::Add => (ADD + two_code(Two::Add), false),
            Mix::Mul => (ADD + two_code(Two::Mul), false),
            Mix::Min(keeps_nan) => (LEAST, keeps_nan),
            Mix::Max(keeps_nan) => (LEAST + 1, keeps_nan),
            Mix::Sqrt => (one_code(One::Sqrt), false),
        };
        How { keeps_nan, factors, ..How::new(code) }
    }

    /// A mask along a diagonal, whose comparison is one of two numbers.
    pub fn band(comparison: Two, is_left: bool) -> How {
        let comparison = (ADD + two_code(comparison)) as f32;
        How { numbers: [f32::from(u8::from(is_left)), comparison, 0.0, 0.0], ..How::new(BAND) }
    }

    /// With factors of the result and of what lay there before.
    #[must_use]
    pub fn blended(self, by: f64, before: f64) -> How {
        How { given: [by as f32, before as f32], ..self }
    }

    /// Whether it is a gradient of an activation, which takes argument, result and gradient.
    pub fn is_gradient(&self) -> bool {
        (SIGMOID_BACKWARD..=IDENTITY_BACKWARD).contains(&self.code)
            || [CLIP + 1, CLIP + 3, CLIP + 5, CLIP + 7].contains(&self.code)
    }
}

/// The place among activations, the setting, and whether a NaN stays one; none of the identity.
fn settings(of: Activation) -> Option<(u32, f32, bool)> {
    Some(match of {
        Activation::Identity => return None,
        Activation::Sigmoid => (0, 0.0, false),
        Activation::Relu(keeps_nan) => (1, 0.0, keeps_nan),
        Activation::Tanh => (2, 0.0, false),
        Activation::ClippedRelu(ceiling, keeps_nan) => (3, ceiling as f32, keeps_nan),
        Activation::Elu(factor) => (4, factor as f32, false),
        Activation::Swish(factor) => (5, factor as f32, false),
    })
}

fn one_code(of: One) -> u32 {
    of as u32
}

fn two_code(of: Two) -> u32 {
    of as u32
}

impl Call {
    /// Makes each element of `to`, over these sizes; whether the kernel can do it.
    pub fn elements(&self, how: How, sizes: &[usize], to: &Operand, from: &[Operand]) -> Result<bool> {
        let reads_before = how.given[1] != 0.0;
        let mut operands = vec![to.clone()];
        operands.extend_from_slice(from);
        operands.resize(1 + TAKEN, Operand::none());
        if !from.iter().all(|from| to.is_apart_or_in_place(from, sizes)) {
            return Ok(false);
        }
        let space = space(sizes, &vec![false; sizes.len()], &operands);
        let (Some(space), Some(module)) = (space, self.module(Part::Elements)) else { return Ok(false) };
        if space.outer.count == 0 {
            return Ok(true);
        }
        let mut elements = Elements {
            to: space.tensors[0],
            from: core::array::from_fn(|at| space.tensors[1 + at]),
            sizes: space.outer,
            code: how.code,
            numbers: how.numbers,
            keeps_nan: how.keeps_nan.into(),
            alpha: how.factors[0],
            beta: how.factors[1],
            by: how.given[0],
            before: if reads_before { how.given[1] } else { 0.0 },
        };
        let blocks = [super::blocks(space.outer.count, THREADS), 1, 1];
        // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { self.launch(module, c"elements", blocks, THREADS, &mut elements) }?;
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codes of elements.cu, in its order.
    #[test]
    fn codes_are_the_sources() {
        let source = include_str!("../../kernels/elements.cu");
        let list = source.split("enum Code {").nth(1).and_then(|rest| rest.split("};").next()).unwrap();
        let names: Vec<&str> = list
            .lines()
            .filter(|line| !line.trim_start().starts_with("//"))
            .flat_map(|line| line.split(','))
            .map(str::trim)
            .filter(|name| !name.is_empty())
            .collect();
        let number = |name: &str| names.iter().position(|it| *it == name).unwrap() as u32;
        for (name, code) in [
            ("SQRT", one_code(One::Sqrt)),
            ("NOT", one_code(One::Not)),
            ("IDENTITY", IDENTITY),
            ("ADD", ADD),
            ("OR", ADD + two_code(Two::Or)),
            ("SELECT", SELECT),
            ("SIGMOID", SIGMOID),
            ("SWISH", How::activation(Activation::Swish(1.0)).code),
            ("SIGMOID_BACKWARD", SIGMOID_BACKWARD),
            ("SWISH_BACKWARD", How::gradient(Activation::Swish(1.0)).code),
            ("IDENTITY_BACKWARD", IDENTITY_BACKWARD),
            ("CLIP", CLIP),
            ("GELU_BY_TANH_BACKWARD", CLIP + 7),
            ("LEAST", LEAST),
            ("BAND", BAND),
        ] {
            assert_eq!(number(name), code, "{name}");
        }
    }
}
