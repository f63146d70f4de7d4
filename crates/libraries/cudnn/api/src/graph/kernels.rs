//! Operations of a graph by kernels of ours, on the memory of an AMD GPU: what is computed for each element, moved, reduced, normalized or
//! multiplied, of any types that kernels have and any strides.
//!
//! Strides and sizes are looked at when a run has all tensors' memory: what kernels cannot do then is our own code's, on copies.

use cudnn_cpu::pointwise::{Pointwise, Two};
use cudnn_cpu::reduction::Reduction;

use super::device::{Places, Step, Tensors};
use super::layers::{Band, Norm, NormBackward, Slice, Softmax};
use super::layout::Layout;
use super::plan::{Convolution, Given, Limits, Operation, Tensor, Work};
use crate::Result;
use crate::hip::convolution::Direction;
use crate::kernels::Call;
use crate::kernels::moves::Whole;
use crate::kernels::norm::{Gradients, Normal, Running, Statistics};
use crate::kernels::product::Matrices;
use crate::kernels::rows::Over;
use crate::kernels::tensor::{self, Operand};
use crate::kernels::{calls, elements, rows};

/// Whether it lies so that kernels can follow it; what is virtual lies in a type that they have.
fn is_known(of: &Tensor) -> bool {
    of.layout == Layout::Strided && (of.is_virtual || tensor::kind(of.kind).is_some())
}

/// A run's tensors, where they are.
#[derive(Clone, Copy)]
pub struct Run<'r> {
    pub call: &'r Call,
    pub tensors: &'r Tensors,
    pub places: &'r Places,
}

impl<'r> Run<'r> {
    pub fn tensor(&self, uid: i64) -> &'r Tensor {
        &self.tensors[&uid]
    }

    pub fn sizes(&self, uid: i64) -> &'r [usize] {
        &self.tensor(uid).sizes
    }

    /// Over the tensor's own sizes.
    pub fn own(&self, uid: i64) -> Option<Operand> {
        self.strided(uid, self.tensor(uid).strides.iter().map(|stride| *stride as i64).collect())
    }

    pub fn strided(&self, uid: i64, strides: Vec<i64>) -> Option<Operand> {
        let tensor = self.tensor(uid);
        match (tensor.constant, self.places.get(&uid)) {
            (None, Some(Given::Memory(at))) => Operand::memory(at.get(), tensor.kind, strides),
            (None, Some(Given::Made(at, kind))) => Operand::memory(at.get(), *kind, strides),
            (None, Some(Given::Value(value))) => Some(Operand::number(*value)),
            (constant, _) => constant.map(Operand::number),
        }
    }

    /// Over these sizes, along which those of 1 are repeated.
    pub fn over(&self, uid: i64, sizes: &[usize]) -> Option<Operand> {
        let tensor = self.tensor(uid);
        let strides = tensor.sizes.iter().zip(&tensor.strides).zip(sizes);
        let strides = strides.map(|((own, stride), size)| if own == size { *stride as i64 } else { 0 });
        self.strided(uid, strides.collect())
    }

    /// One number for all, or one for each of the first of so many sizes.
    pub fn of_sequences(&self, uid: i64, n: usize) -> Option<Operand> {
        let mut strides = vec![0; n];
        let tensor = self.tensor(uid);
        let axis = (0..tensor.sizes.len()).find(|&at| tensor.sizes[at] > 1);
        strides[0] = axis.map_or(0, |axis| tensor.strides[axis] as i64);
        self.strided(uid, strides)
    }

    /// Nothing, where there is no tensor.
    pub fn over_or_none(&self, uid: Option<i64>, sizes: &[usize]) -> Option<Operand> {
        uid.map_or_else(|| Some(Operand::none()), |uid| self.over(uid, sizes))
    }

    /// Whether nothing that the operation gives lies in what it takes: its launches read again what others have written.
    pub fn is_apart(&self, of: &Operation) -> bool {
        let all = |uids: &[i64]| {
            uids.iter().map(|uid| Some((self.own(*uid)?, self.sizes(*uid)))).collect::<Option<Vec<_>>>()
        };
        let (Some(given), Some(taken)) = (all(&of.gives), all(&of.takes)) else { return false };
        given
            .iter()
            .all(|(to, sizes)| taken.iter().all(|(from, of_from)| to.is_apart(sizes, (from, of_from))))
    }

    /// A number that the host has.
    pub fn number(&self, uid: i64) -> Option<f64> {
        match (self.tensor(uid).constant, self.places.get(&uid)) {
            (None, Some(Given::Value(value))) => Some(*value),
            (constant, _) => constant,
        }
    }

    /// A whole number that the host has, or where it lies.
    pub fn whole(&self, uid: i64) -> Option<Whole> {
        match self.number(uid) {
            Some(number) => Some(Whole::Number(number as i64)),
            None => self.strided(uid, Vec::new()).map(Whole::Memory),
        }
    }

    /// Enqueues the operation's launches; whether kernels can do it.
    pub fn operation(&self, of: &Operation) -> Result<bool> {
        match &of.work {
            Work::Pointwise(function, alpha, beta) => self.pointwise((*function, *alpha, *beta), of),
            Work::Matmul(by) => self.product(by, of),
            Work::Reduce(by) => self.reduce(*by, of),
            Work::Softmax(by) => self.softmax(by, of),
            Work::Norm(by) => self.norm(by, of),
            Work::NormBackward(by) => self.norm_gradient(by, of),
            Work::Slice(by) => self.slice(by, of),
            Work::Concat(axis) => self.concat(*axis, of),
            Work::Reshape(is_view) => self.reshape(*is_view, of),
            Work::Band(by) => self.band(by, of),
            Work::Forward(by) => {
                self.convolution(by, Direction::Forward, [of.takes[0], of.takes[1], of.gives[0]])
            }
            Work::BackwardData(by) => {
                self.convolution(by, Direction::Data, [of.gives[0], of.takes[0], of.takes[1]])
            }
            Work::BackwardFilter(by) => {
                self.convolution(by, Direction::Filter, [of.takes[0], of.gives[0], of.takes[1]])
            }
            Work::Attention(by) => by.run_on_kernels(*self, of),
            Work::AttentionBackward(by) => by.run_on_kernels(*self, of),
            Work::Pool(mode, window, alpha) => self.pool((*mode, window, *alpha), of),
            Work::PoolBackward(mode, window, alpha) => self.pool_backward((*mode, window, *alpha), of),
            Work::Layer(by) => by.run_on_kernels(self, of),
        }
    }

    pub fn elements(&self, how: elements::How, to: i64, from: Option<Vec<Operand>>) -> Result<bool> {
        match (self.own(to), from) {
            (Some(to_), Some(from)) => self.call.elements(how, self.sizes(to), &to_, &from),
            _ => Ok(false),
        }
    }

    fn pointwise(&self, by: (Pointwise, f64, f64), of: &Operation) -> Result<bool> {
        let (to, sizes) = (of.gives[0], self.sizes(of.gives[0]));
        let (function, alpha, beta) = by;
        if let Pointwise::Index(axis) = function {
            let first = self.tensor(to).first.get(axis).copied().unwrap_or(0);
            let place = Operand::place(first, axis, sizes.len());
            return self.elements(elements::How::copy(), to, Some(vec![place]));
        }
        let Some(how) = elements::How::of(function, (alpha, beta)) else { return Ok(false) };
        let mut from: Option<Vec<Operand>> = of.takes.iter().map(|uid| self.over(*uid, sizes)).collect();
        if let (true, Some(from)) = (how.is_gradient(), &mut from) {
            // The result is made again of the argument, or is what is told of it.
            from.insert(1, from[0].clone());
        }
        self.elements(how, to, from)
    }

    /// Images, filters and results in this order. What is virtual lies nowhere before it is given.
    fn convolution(&self, by: &Convolution, direction: Direction, uids: [i64; 3]) -> Result<bool> {
        let operands = uids.map(|uid| self.own(uid));
        let [Some(x), Some(w), Some(y)] = operands else { return Ok(false) };
        let sizes = uids.map(|uid| self.sizes(uid));
        let written = match direction {
            Direction::Forward => uids[2],
            Direction::Data => uids[0],
            Direction::Filter => uids[1],
        };
        let before = if self.tensor(written).is_virtual { 0.0 } else { by.beta as f32 };
        let operands = [(&x, sizes[0]), (&w, sizes[1]), (&y, sizes[2])];
        let how = (&by.geometry, by.flipped > 0);
        self.call.convolve(direction, how, operands, [by.alpha as f32, before])
    }

    fn slice(&self, by: &Slice, of: &Operation) -> Result<bool> {
        let tensor = self.tensor(of.takes[0]);
        let (first, step) = by.places();
        let along = |at: usize| (tensor.strides[at] as i64 * step[at] as i64, first[at] as i64);
        let strides: Vec<i64> = (0..first.len()).map(|at| along(at).0).collect();
        let begin: i64 = (0..first.len()).map(|at| tensor.strides[at] as i64 * along(at).1).sum();
        let from = self.strided(of.takes[0], strides).map(|from| vec![from.moved(begin)]);
        self.elements(elements::How::copy(), of.gives[0], from)
    }

    fn concat(&self, axis: usize, of: &Operation) -> Result<bool> {
        let Some(to) = self.own(of.gives[0]) else { return Ok(false) };
        let mut begin = 0;
        for uid in &of.takes {
            let Some(from) = self.own(*uid) else { return Ok(false) };
            let to = to.clone().moved(begin * to.strides[axis]);
            if !self.call.elements(elements::How::copy(), self.sizes(*uid), &to, &[from])? {
                return Ok(false);
            }
            begin += self.sizes(*uid)[axis] as i64;
        }
        Ok(true)
    }

    fn reshape(&self, is_view: bool, of: &Operation) -> Result<bool> {
        let (from, to) = (self.tensor(of.takes[0]), self.tensor(of.gives[0]));
        if is_view && !(from.is_packed() && to.is_packed()) {
            // What lies where the result's strides lead.
            let strides = to.strides.iter().map(|stride| *stride as i64).collect();
            let from = self.strided(from.uid, strides).map(|from| vec![from]);
            return self.elements(elements::How::copy(), to.uid, from);
        }
        let Some((sizes, of_from, of_to)) = refined(from, to) else { return Ok(false) };
        match (self.strided(from.uid, of_from), self.strided(to.uid, of_to)) {
            (Some(from), Some(to)) => self.call.elements(elements::How::copy(), &sizes, &to, &[from]),
            _ => Ok(false),
        }
    }

    fn band(&self, by: &Band, of: &Operation) -> Result<bool> {
        let sizes = self.sizes(of.gives[0]);
        let bounds = by.bounds();
        let number = |place: Option<usize>| match place {
            Some(place) => self.of_sequences(of.takes[place], sizes.len()),
            None => Some(Operand::number(0.0)),
        };
        let first = self.tensor(of.gives[0]).first[2];
        let from: Option<Vec<Operand>> = [
            self.over(of.takes[0], sizes),
            number(Some(bounds.otherwise)),
            number(bounds.lengths[0]),
            number(bounds.lengths[1]),
            number(bounds.left.or(bounds.shift)),
            Some(Operand::place(first, 2, 4)),
            Some(Operand::place(0, 3, 4)),
        ]
        .into_iter()
        .collect();
        let comparison =
            [Two::Equal, Two::NotEqual, Two::Greater, Two::GreaterEqual, Two::Less, Two::LessEqual];
        let comparison = comparison[(bounds.comparison as usize - 300).min(5)];
        self.elements(elements::How::band(comparison, bounds.left.is_some()), of.gives[0], from)
    }

    fn reduce(&self, by: Reduction, of: &Operation) -> Result<bool> {
        let (from, to) = (self.tensor(of.takes[0]), self.tensor(of.gives[0]));
        // A size of which a part is reduced is two.
        let (mut sizes, mut is_inner) = (Vec::new(), Vec::new());
        let (mut of_from, mut of_to) = (Vec::new(), Vec::new());
        for at in 0..from.sizes.len() {
            let (size, kept) = (from.sizes[at], to.sizes[at]);
            let (from, to) = (from.strides[at] as i64, to.strides[at] as i64);
            let part = size / kept;
            sizes.extend([kept, part]);
            is_inner.extend([false, true]);
            of_from.extend([from * part as i64, from]);
            of_to.extend([to, 0]);
        }
        let over = Over { sizes: &sizes, is_inner: &is_inner };
        match (self.strided(from.uid, of_from), self.strided(to.uid, of_to)) {
            (Some(from), Some(to)) => self.call.reduce(by, true, [1.0, 0.0], over, [&from, &to]),
            _ => Ok(false),
        }
    }

    fn softmax(&self, by: &Softmax, of: &Operation) -> Result<bool> {
        let sizes = self.sizes(of.takes[0]);
        let last = sizes.len() - 1;
        let is_inner: Vec<bool> = (0..=last).map(|at| at == last).collect();
        let (gives, mut given) = (by.gives(), of.gives[1..].iter());
        let mut operands = vec![self.over(of.takes[0], sizes), self.over(of.gives[0], sizes)];
        let mut next = |gives: bool| if gives { given.next() } else { None };
        operands.extend(gives.map(|gives| self.over_or_none(next(gives).copied(), sizes)));
        operands.push(self.over_or_none(of.takes.get(1).copied(), sizes));
        let Some(operands) = operands.into_iter().collect::<Option<Vec<_>>>() else { return Ok(false) };
        let mut how = rows::How::new(0);
        how.numbers[0] = if by.is_binary() { core::f64::consts::LOG2_E } else { 1.0 };
        let is_apart = |to: &Operand| to.is_apart_or_in_place(&operands[0], sizes);
        if !operands[1..5].iter().all(is_apart) {
            return Ok(false);
        }
        self.call.rows(c"softmax", how, Over { sizes, is_inner: &is_inner }, &operands)
    }

    /// A tensor that the operation takes, by its place; nothing where it does not.
    fn taken(&self, of: &Operation, place: Option<usize>, sizes: &[usize]) -> Option<Operand> {
        self.over_or_none(place.map(|place| of.takes[place]), sizes)
    }

    /// Given statistics: the mean is 0 where it is not taken off.
    fn statistics(&self, by: &Norm, of: &Operation, sizes: &[usize]) -> Option<[Operand; 2]> {
        let (mean, inverse) = by.given()?;
        let mean = mean.map_or_else(|| Some(Operand::number(0.0)), |at| self.over(of.takes[at], sizes));
        Some([mean?, self.over(of.takes[inverse], sizes)?])
    }

    fn normal<'s>(&self, by: &Norm, of: &Operation, over: Over<'s>) -> Option<Normal<'s>> {
        let number = |place: Option<usize>| place.map_or(Some(0.0), |place| self.number(of.takes[place]));
        Some(Normal {
            over,
            is_centered: by.is_centered(),
            epsilon: number(by.epsilon())?,
            x: self.over(of.takes[0], over.sizes)?,
            scale: self.over(of.takes[by.scale()], over.sizes)?,
        })
    }

    fn norm(&self, by: &Norm, of: &Operation) -> Result<bool> {
        let sizes = self.sizes(of.takes[0]);
        let is_inner = by.is_inner(sizes);
        let over = Over { sizes, is_inner: &is_inner };
        match self.prepared(by, of, over) {
            Some((normal, [y, bias], statistics, running)) => {
                self.call.normalize(&normal, (&y, &bias), statistics, running, [1.0, 0.0])
            }
            None => Ok(false),
        }
    }

    /// What a normalization takes and gives, y and bias apart.
    fn prepared<'s>(
        &self,
        by: &Norm,
        of: &Operation,
        over: Over<'s>,
    ) -> Option<(Normal<'s>, [Operand; 2], Statistics, Option<Running>)> {
        let sizes = over.sizes;
        let mut given = of.gives[1..].iter().copied();
        let mut next = |is_given: bool| self.over_or_none(if is_given { given.next() } else { None }, sizes);
        let [mean, inverse] = by.gives();
        let own = [next(mean)?, next(inverse)?];
        let statistics = match by.given() {
            Some(_) => Statistics::Given(self.statistics(by, of, sizes)?),
            None => Statistics::Own(own),
        };
        let running = match by.running() {
            Some([factor, mean, variance]) => Some(Running {
                factor: self.number(of.takes[factor])?,
                before: [self.taken(of, Some(mean), sizes)?, self.taken(of, Some(variance), sizes)?],
                after: [next(true)?, next(true)?],
            }),
            None => None,
        };
        let both = [self.over(of.gives[0], sizes)?, self.taken(of, by.bias(), sizes)?];
        Some((self.normal(by, of, over)?, both, statistics, running))
    }

    fn norm_gradient(&self, by: &NormBackward, of: &Operation) -> Result<bool> {
        let (norm, sizes) = (by.norm(), self.sizes(of.takes[0]));
        let is_inner = norm.is_inner(sizes);
        let over = Over { sizes, is_inner: &is_inner };
        let statistics = self.statistics(norm, of, sizes);
        if statistics.is_none() && norm.given().is_some() {
            return Ok(false);
        }
        let of_scale = self.sizes(of.takes[norm.scale()]);
        let gradients = || {
            Some(Gradients {
                dy: self.over(of.takes[2], sizes)?,
                dx: self.over(of.gives[0], sizes)?,
                parameters: [
                    self.over(of.gives[1], sizes)?,
                    self.over_or_none(of.gives.get(2).copied(), sizes)?,
                ],
                is_repeated: sizes.iter().zip(of_scale).map(|(size, own)| size != own).collect(),
                given: [[1.0, 0.0]; 2],
            })
        };
        match (self.normal(norm, of, over), gradients()) {
            (Some(normal), Some(gradients)) => self.call.normalize_backward(&normal, statistics, &gradients),
            _ => Ok(false),
        }
    }

    fn product(&self, by: &Limits, of: &Operation) -> Result<bool> {
        let (a, b, c) = (self.tensor(of.takes[0]), self.tensor(of.takes[1]), self.tensor(of.gives[0]));
        let n = c.sizes.len() - 2;
        let mut matrices =
            Matrices { batch: Vec::new(), rows: c.sizes[n], columns: c.sizes[n + 1], depth: a.sizes[n + 1] };
        let mut strides = [const { Vec::new() }; 3];
        for axis in 0..n {
            let Some(sizes) = shared(c.sizes[axis], [a.sizes[axis], b.sizes[axis]]) else { return Ok(false) };
            for (strides, tensor) in strides.iter_mut().zip([a, b, c]) {
                // One of a batch serves so many of the result's.
                let (mut share, own) = (c.sizes[axis] / tensor.sizes[axis], tensor.strides[axis] as i64);
                let mut along: Vec<i64> = Vec::new();
                let mut step = own;
                for size in sizes.iter().rev() {
                    if share > 1 {
                        along.push(0);
                        share /= size;
                    } else {
                        along.push(step);
                        step *= *size as i64;
                    }
                }
                strides.extend(along.into_iter().rev());
            }
            matrices.batch.extend(sizes);
        }
        // Limits are one for each of the first size, which no matrix repeats.
        let first = matrices.batch.len();
        let limit = |place: Option<usize>| {
            let Some(place) = place else { return Some(Operand::none()) };
            let mut strides = vec![0; first];
            if c.sizes[0] > 1 {
                strides[0] = self.tensor(of.takes[place]).strides[0] as i64;
            }
            self.strided(of.takes[place], strides)
        };
        for (strides, tensor) in strides.iter_mut().zip([a, b, c]) {
            strides.extend(tensor.strides[n..].iter().map(|stride| *stride as i64));
        }
        let [a_at, b_at, c_at] = strides;
        let matrices_at =
            [(a, a_at), (b, b_at), (c, c_at)].map(|(it, strides)| self.strided(it.uid, strides));
        let limits = by.places().map(limit);
        match (matrices_at, limits) {
            ([Some(a), Some(b), Some(c)], [Some(rows), Some(columns), Some(depth)]) => {
                self.call.product(&matrices, [&a, &b, &c], [&rows, &columns, &depth], [1.0, 0.0])
            }
            _ => Ok(false),
        }
    }
}

/// The sizes of which each of the factors' shares of a size is made, the outermost first: one share has to divide the other.
fn shared(size: usize, of: [usize; 2]) -> Option<Vec<usize>> {
    let mut shares = of.map(|own| size / own);
    shares.sort_unstable();
    let [small, large] = shares;
    let sizes = large.is_multiple_of(small).then(|| vec![size / large, large / small, small])?;
    Some(sizes.into_iter().filter(|size| *size > 1).collect())
}

/// Sizes that both tensors' elements have in their order, and the strides of both along them; none where sizes cross each other.
fn refined(from: &Tensor, to: &Tensor) -> Option<(Vec<usize>, Vec<i64>, Vec<i64>)> {
    let (mut sizes, mut of_from, mut of_to) = (Vec::new(), Vec::new(), Vec::new());
    // What is left of the two innermost sizes, and the strides there.
    let mut both = [from, to].map(|tensor| {
        let axes = tensor.sizes.iter().zip(&tensor.strides).rev();
        axes.filter(|(size, _)| **size > 1)
            .map(|(size, stride)| (*size, *stride as i64))
            .collect::<Vec<_>>()
            .into_iter()
    });
    let (mut a, mut b) = (both[0].next(), both[1].next());
    while let (Some((a_size, a_stride)), Some((b_size, b_stride))) = (a, b) {
        let size = a_size.min(b_size);
        if !a_size.is_multiple_of(size) || !b_size.is_multiple_of(size) {
            return None;
        }
        sizes.push(size);
        of_from.push(a_stride);
        of_to.push(b_stride);
        let left = |own: usize, stride: i64| (own > size).then_some((own / size, stride * size as i64));
        a = left(a_size, a_stride).or_else(|| both[0].next());
        b = left(b_size, b_stride).or_else(|| both[1].next());
    }
    sizes.reverse();
    of_from.reverse();
    of_to.reverse();
    Some((sizes, of_from, of_to))
}

/// Whether kernels have the operation, of these tensors.
pub fn is_there(tensors: &Tensors, of: &Operation) -> bool {
    let has_work = match &of.work {
        Work::Attention(by) => by.is_for_kernels(),
        Work::Forward(_) | Work::BackwardData(_) | Work::BackwardFilter(_) => {
            let is_float = |uid: &i64| tensors[uid].is_virtual || calls::is_float(tensors[uid].kind);
            of.takes.iter().chain(&of.gives).all(is_float)
        }
        Work::AttentionBackward(_)
        | Work::Pointwise(..)
        | Work::Matmul(_)
        | Work::Reduce(_)
        | Work::Softmax(_)
        | Work::Norm(_)
        | Work::NormBackward(_)
        | Work::Slice(_)
        | Work::Concat(_)
        | Work::Reshape(_)
        | Work::Band(_)
        | Work::Pool(..)
        | Work::PoolBackward(..) => true,
        Work::Layer(by) => by.has_kernels(),
    };
    has_work && of.takes.iter().chain(&of.gives).all(|uid| is_known(&tensors[uid]))
}

/// The operation by kernels, if they have it.
pub fn step<'g>(call: &'g Call, tensors: &'g Tensors, of: &'g Operation) -> Option<Step<'g>> {
    is_there(tensors, of)
        .then(|| -> Step<'g> { Box::new(move |places| Run { call, tensors, places }.operation(of)) })
}
