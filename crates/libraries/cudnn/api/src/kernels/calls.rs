//! Calls of the legacy API by kernels.

use core::ffi::c_void;

use cudnn_cpu::Kind;
use cudnn_cpu::activation::Activation;
use cudnn_cpu::convolution::Geometry;
use cudnn_cpu::pooling::{Pooling, Window};
use cudnn_cpu::reduction::Reduction;

use super::after::After;
use super::elements::How;
use super::norm::{Gradients, Normal, Running, Statistics};
use super::rows::{self, Over};
use super::tensor::Operand;
use super::windows::Pooled;
use super::{Call, elements};
use crate::Result;
use crate::hip::convolution::Direction;
use crate::hip::objects::Room;
use crate::tensor::{self, Argument, Tensor};
use crate::types::*;

fn sizes_of(of: &Tensor) -> Vec<usize> {
    of.sizes.iter().map(|&size| size as usize).collect()
}

impl Operand {
    /// A call's tensor over these sizes, along which its own of 1 are repeated; none where kernels cannot follow it.
    pub fn of(of: &Argument, sizes: &[usize]) -> Option<Operand> {
        let kind = tensor::kind(of.kind).ok().filter(|(_, vector)| *vector == 1)?.0;
        let is_aligned = of.memory.addr().is_multiple_of(kind.bytes());
        if of.memory.is_null() || !is_aligned || tensor::is_double(kind) || of.sizes.len() != sizes.len() {
            return None;
        }
        let strides = of.sizes.iter().zip(&of.strides).zip(sizes);
        let strides =
            strides.map(|((own, stride), size)| if *own as usize == *size { (*stride).into() } else { 0 });
        Operand::memory(of.memory.cast(), kind, strides.collect())
    }

    /// Nothing where the memory is NULL.
    pub fn or_none(of: &Argument, sizes: &[usize]) -> Option<Operand> {
        if of.memory.is_null() { Some(Operand::none()) } else { Operand::of(of, sizes) }
    }
}

impl Call {
    /// Each element of `to` by the elements of others, which are repeated along their sizes of 1; whether the kernel can do it.
    pub fn map(&self, how: elements::How, to: &Argument, from: &[&Argument]) -> Result<bool> {
        let sizes = sizes_of(to);
        let all: Option<Vec<Operand>> = from.iter().map(|from| Operand::of(from, &sizes)).collect();
        match (Operand::of(to, &sizes), all) {
            (Some(to), Some(from)) => self.elements(how, &sizes, &to, &from),
            _ => Ok(false),
        }
    }

    /// One number everywhere.
    pub fn fill(&self, to: &Argument, value: f64) -> Result<bool> {
        let sizes = sizes_of(to);
        match Operand::of(to, &sizes) {
            Some(to) => self.elements(elements::How::copy(), &sizes, &to, &[Operand::number(value)]),
            None => Ok(false),
        }
    }

    pub fn reduce_tensor(
        &self,
        by: (Reduction, bool),
        given: [f32; 2],
        [from, to]: [&Argument; 2],
    ) -> Result<bool> {
        let sizes = sizes_of(from);
        let is_inner: Vec<bool> = sizes.iter().zip(sizes_of(to)).map(|(from, to)| *from != to).collect();
        match (Operand::of(from, &sizes), Operand::of(to, &sizes)) {
            (Some(x), Some(y)) => {
                let over = Over { sizes: &sizes, is_inner: &is_inner };
                self.reduce(by.0, by.1, given, over, [&x, &y])
            }
            _ => Ok(false),
        }
    }

    pub fn softmax_tensor(
        &self,
        (algorithm, mode): (cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t),
        given: [f32; 2],
        [x, y]: [&Argument; 2],
    ) -> Result<bool> {
        let code = match algorithm {
            cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG => 1,
            cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_FAST => 2,
            _ => 0,
        };
        let how = rows::How { given, ..rows::How::new(code) };
        let sizes = sizes_of(x);
        let (Some(x), Some(y)) = (Operand::of(x, &sizes), Operand::of(y, &sizes)) else { return Ok(false) };
        if !y.is_apart_or_in_place(&x, &sizes) {
            return Ok(false);
        }
        let none = Operand::none;
        let operands = [x, y, none(), none(), none(), none()];
        self.rows(c"softmax", how, Over { sizes: &sizes, is_inner: &along(mode, sizes.len()) }, &operands)
    }

    /// The result and its gradient, and that of the argument.
    pub fn softmax_gradient(
        &self,
        (algorithm, mode): (cudnnSoftmaxAlgorithm_t, cudnnSoftmaxMode_t),
        given: [f32; 2],
        all: [&Argument; 3],
    ) -> Result<bool> {
        let code = u32::from(algorithm == cudnnSoftmaxAlgorithm_t::CUDNN_SOFTMAX_LOG);
        let how = rows::How { given, ..rows::How::new(code) };
        let sizes = sizes_of(all[0]);
        let [Some(y), Some(dy), Some(dx)] = all.map(|it| Operand::of(it, &sizes)) else { return Ok(false) };
        if ![&y, &dy].iter().all(|from| dx.is_apart_or_in_place(from, &sizes)) {
            return Ok(false);
        }
        let over = Over { sizes: &sizes, is_inner: &along(mode, sizes.len()) };
        self.rows(c"softmax_backward", how, over, &[y, dy, dx])
    }
}

impl Call {
    pub fn pool_tensor(
        &self,
        (mode, window): (Pooling, &Window),
        given: [f32; 2],
        [x, y]: [&Argument; 2],
    ) -> Result<bool> {
        let [x_sizes, y_sizes] = [x, y].map(|it| sizes_of(it));
        let (Some(x), Some(y)) = (Operand::of(x, &x_sizes), Operand::of(y, &y_sizes)) else {
            return Ok(false);
        };
        let (x, y) = ((&x, &x_sizes[..]), (&y, &y_sizes[..]));
        self.pool(&Pooled { mode, window, x, y, places: Operand::none(), given })
    }

    /// The images, and the gradients of what was made of them and of themselves.
    pub fn pool_gradient(
        &self,
        (mode, window): (Pooling, &Window),
        given: [f32; 2],
        all: [&Argument; 3],
    ) -> Result<bool> {
        let sizes = all.map(|it| sizes_of(it));
        let [Some(x), Some(dy), Some(dx)] = [0, 1, 2].map(|at: usize| Operand::of(all[at], &sizes[at]))
        else {
            return Ok(false);
        };
        let (of_dx, of_dy) = ((&dx, &sizes[2][..]), (&dy, &sizes[1][..]));
        let pooled = Pooled { mode, window, x: of_dx, y: of_dy, places: Operand::none(), given };
        self.pool_backward(&pooled, Some(&x))
    }

    /// Images, filters and results in this order.
    pub fn convolve_tensors(
        &self,
        direction: Direction,
        how: (&Geometry, bool),
        all: [&Argument; 3],
        given: [f32; 2],
    ) -> Result<bool> {
        let sizes = all.map(|it| sizes_of(it));
        let operands = [0, 1, 2].map(|at: usize| Operand::of(all[at], &sizes[at]));
        // Sums of bytes are exact, which those in `float` are not.
        let are_floats = all.iter().all(|it| it.element().is_ok_and(is_float));
        match operands {
            [Some(x), Some(w), Some(y)] if are_floats => {
                self.convolve(direction, how, [(&x, &sizes[0]), (&w, &sizes[1]), (&y, &sizes[2])], given)
            }
            _ => Ok(false),
        }
    }
}

impl Call {
    /// A convolution with what is added, each with its factor, and an activation behind it. Images, filters and results in this order.
    pub fn convolve_and_finish(
        &self,
        how: (&Geometry, bool),
        all: [&Argument; 3],
        by: f32,
        (added, function): (&[(f32, &Argument)], Activation),
    ) -> Result<bool> {
        let sizes = all.map(|it| sizes_of(it));
        let [Some(x), Some(w), Some(y)] = [0, 1, 2].map(|at: usize| Operand::of(all[at], &sizes[at])) else {
            return Ok(false);
        };
        let added = added.iter().map(|(by, it)| Some((*by, Operand::of(it, &sizes[2])?)));
        let added = added.collect::<Option<Vec<_>>>();
        let (Some(added), true) = (added, all.iter().all(|it| it.element().is_ok_and(is_float))) else {
            return Ok(false);
        };
        let after = After { added, function };
        self.finished(&after, (&y, &sizes[2]), [1.0, 0.0], |y, given| {
            let operands = [(&x, &sizes[0][..]), (&w, &sizes[1][..]), (y, &sizes[2][..])];
            self.convolve(Direction::Forward, how, operands, [by * given[0], given[1]])
        })
    }
}

/// Whether convolutions by kernels are of the type.
pub fn is_float(of: Kind) -> bool {
    matches!(of, Kind::F32 | Kind::F16 | Kind::Bf16)
}

/// A batch norm's tensor, and the tensor that scale, bias and statistics lie as.
pub struct BatchNorm<'t> {
    pub x: &'t Argument,
    pub parameters: &'t Tensor,
    pub scale: *const c_void,
    pub epsilon: f64,
    /// What is added before the activation, or, on the way back, where its gradient goes.
    pub added: Option<&'t Argument>,
    pub function: Activation,
}

impl BatchNorm<'_> {
    /// Scale, bias or statistics; nothing where the memory is NULL.
    fn parameter(&self, memory: *const c_void, sizes: &[usize]) -> Option<Operand> {
        Operand::or_none(&Argument::new(self.parameters.clone(), memory), sizes)
    }

    fn both(&self, memory: [*const c_void; 2], sizes: &[usize]) -> Option<[Operand; 2]> {
        Some([self.parameter(memory[0], sizes)?, self.parameter(memory[1], sizes)?])
    }

    /// Which sizes one statistic is of.
    fn is_inner(&self, sizes: &[usize]) -> Vec<bool> {
        sizes.iter().zip(sizes_of(self.parameters)).map(|(size, own)| *size != own).collect()
    }

    fn after(&self, sizes: &[usize]) -> Option<After> {
        let added = self.added.map(|z| Operand::of(z, sizes).map(|z| (1.0, z)));
        let added = added.into_iter().collect::<Option<Vec<_>>>()?;
        Some(After { added, function: self.function })
    }

    fn normal<'s>(&self, over: Over<'s>) -> Option<Normal<'s>> {
        Some(Normal {
            over,
            is_centered: true,
            epsilon: self.epsilon,
            x: Operand::of(self.x, over.sizes)?,
            scale: Operand::of(&Argument::new(self.parameters.clone(), self.scale), over.sizes)?,
        })
    }
}

/// What a batch norm on the way forward has of statistics.
pub enum Averages {
    /// Means and variances over runs.
    Estimated([*const c_void; 2]),
    /// They are x's own: the new averages' factor and the averages, and where a way back finds them.
    Own { factor: f64, running: [*const c_void; 2], saved: [*const c_void; 2] },
}

impl Call {
    pub fn batch_norm(
        &self,
        of: &BatchNorm,
        (y, bias): (&Argument, *const c_void),
        averages: &Averages,
        given: [f32; 2],
    ) -> Result<bool> {
        let sizes = sizes_of(of.x);
        let is_inner = of.is_inner(&sizes);
        let over = Over { sizes: &sizes, is_inner: &is_inner };
        let statistics = || {
            Some(match averages {
                Averages::Estimated(both) => (Statistics::Estimated(of.both(*both, &sizes)?), None),
                Averages::Own { factor, running, saved } => {
                    let both = of.both(*running, &sizes)?;
                    let running = Running { factor: *factor, before: both.clone(), after: both };
                    (Statistics::Own(of.both(*saved, &sizes)?), Some(running))
                }
            })
        };
        let y_and_bias = Operand::of(y, &sizes).zip(of.parameter(bias, &sizes));
        let Some(after) = of.after(&sizes) else { return Ok(false) };
        match (of.normal(over), y_and_bias, statistics()) {
            (Some(normal), Some((y, bias)), Some((statistics, running))) => {
                self.finished(&after, (&y, &sizes), given, |y, given| {
                    self.normalize(&normal, (y, &bias), statistics, running, given)
                })
            }
            _ => Ok(false),
        }
    }

    /// Of dy and dx, the gradients of scale and bias, and the statistics that a way forward saved; with y where an activation made it.
    pub fn batch_norm_gradient(
        &self,
        of: &BatchNorm,
        (y, [dy, dx]): (Option<&Argument>, [&Argument; 2]),
        [parameters, saved]: [[*const c_void; 2]; 2],
        given: [[f32; 2]; 2],
    ) -> Result<bool> {
        let sizes = sizes_of(of.x);
        let is_inner = of.is_inner(&sizes);
        let over = Over { sizes: &sizes, is_inner: &is_inner };
        let Some(dy) = Operand::of(dy, &sizes) else { return Ok(false) };
        let (_room, dy) = match y {
            Some(y) => match self.behind_activation(of, (y, &dy), &sizes, given[0])? {
                Some((room, dy)) => (Some(room), dy),
                None => return Ok(false),
            },
            None => (None, dy),
        };
        let gradients = || {
            Some(Gradients {
                dy,
                dx: Operand::of(dx, &sizes)?,
                parameters: of.both(parameters, &sizes)?,
                is_repeated: is_inner.clone(),
                given,
            })
        };
        let statistics = (!saved[0].is_null()).then(|| of.both(saved, &sizes));
        match (of.normal(over), gradients(), statistics) {
            (Some(normal), Some(gradients), None) => self.normalize_backward(&normal, None, &gradients),
            (Some(normal), Some(gradients), Some(Some(both))) => {
                self.normalize_backward(&normal, Some(both), &gradients)
            }
            _ => Ok(false),
        }
    }

    /// The gradient of what an activation made y of, which is that of what was added, too.
    fn behind_activation(
        &self,
        of: &BatchNorm,
        (y, dy): (&Argument, &Operand),
        sizes: &[usize],
        given: [f32; 2],
    ) -> Result<Option<(Room, Operand)>> {
        let (Some(y), Some(after)) = (Operand::of(y, sizes), of.after(sizes)) else { return Ok(None) };
        let Some((room, made)) = self.floats(sizes)? else { return Ok(None) };
        // The function is 0 or at its ceiling where its argument is not between.
        let from = [y.clone(), y, dy.clone()];
        if !self.elements(How::gradient(of.function), sizes, &made, &from)? {
            return Ok(None);
        }
        for (_, dz) in &after.added {
            let copy = How::copy().blended(given[0].into(), given[1].into());
            if !self.elements(copy, sizes, dz, core::slice::from_ref(&made))? {
                return Ok(None);
            }
        }
        Ok(Some((room, made)))
    }
}

/// Which sizes are normalized together.
fn along(mode: cudnnSoftmaxMode_t, n: usize) -> Vec<bool> {
    let is_channel = mode == cudnnSoftmaxMode_t::CUDNN_SOFTMAX_MODE_CHANNEL;
    (0..n).map(|at| if is_channel { at == 1 } else { at > 0 }).collect()
}
