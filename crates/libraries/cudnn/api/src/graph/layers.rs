//! Normalization, softmax, gradients of pooling, joined and reshaped tensors as operations of a graph.

use cudnn_cpu::normal::{self, Shape};
use cudnn_cpu::{Value, View};

use super::descriptor::Descriptor;
use super::plan::{Operation, Tensor, Tensors, Work};
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Taken<'t, V> = (&'t Tensor, &'t [V]);

/// What an operation takes, by place.
#[derive(Default)]
pub struct Takes(pub Vec<i64>);

impl Takes {
    pub fn add(&mut self, tensor: &Tensor) -> usize {
        self.0.push(tensor.uid);
        self.0.len() - 1
    }

    pub fn add_if(&mut self, tensor: Option<&Tensor>) -> Option<usize> {
        tensor.map(|tensor| self.add(tensor))
    }
}

/// A normalization: where its factors and statistics are among what it takes.
pub struct Norm {
    is_batch: bool,
    shape: Shape,
    /// The sizes that statistics have.
    statistic_sizes: Vec<usize>,
    is_centered: bool,
    scale: usize,
    bias: Option<usize>,
    epsilon: Option<usize>,
    /// Mean (none where it is not taken off) and one over the deviation, where they are given.
    statistics: Option<(Option<usize>, usize)>,
    /// The factor of averages over runs, and the averages so far.
    running: Option<[usize; 3]>,
    /// Whether statistics are given to others: mean, one over the deviation.
    gives: [bool; 2],
}

/// A batch norm's tensors on the way forward: x and y; scale and bias; the factor of averages over runs, those so far and those behind it;
/// mean and one over the deviation.
pub struct Training {
    pub images: [i64; 2],
    pub factors: [i64; 2],
    pub epsilon: i64,
    pub running: Option<(i64, [i64; 2], [i64; 2])>,
    pub saved: Option<[i64; 2]>,
}

/// And on the way back: x, dy and dx; the scale and the gradients of scale and bias.
pub struct OfBatch {
    pub images: [i64; 3],
    pub parameters: [i64; 3],
    pub epsilon: Option<i64>,
    pub saved: Option<[i64; 2]>,
}

/// A way back: as above; whether the bias has a gradient.
pub struct NormBackward(Norm, bool);

/// Sizes that statistics have, by the mode.
fn statistics(mode: u32, x: &Tensor, scale: &Tensor) -> Result<(Vec<usize>, bool)> {
    require(scale.sizes.len() == x.sizes.len(), "the scale has not the tensor's number of sizes")?;
    let channels = |keeps_images: bool| {
        let keeps = |at: usize| at == 1 || (at == 0 && keeps_images);
        x.sizes.iter().enumerate().map(|(at, &size)| if keeps(at) { size } else { 1 }).collect()
    };
    let of_others =
        || x.sizes.iter().zip(&scale.sizes).map(|(x, scale)| if *scale == 1 { *x } else { 1 }).collect();
    match cudnnBackendNormMode_t(mode) {
        cudnnBackendNormMode_t::CUDNN_LAYER_NORM => Ok((of_others(), true)),
        // Each of a batch has factors of its own.
        cudnnBackendNormMode_t::CUDNN_ADA_LAYER_NORM => {
            let mut sizes: Vec<usize> = of_others();
            sizes[0] = x.sizes[0];
            Ok((sizes, true))
        }
        cudnnBackendNormMode_t::CUDNN_RMS_NORM => Ok((of_others(), false)),
        cudnnBackendNormMode_t::CUDNN_INSTANCE_NORM => Ok((channels(true), true)),
        cudnnBackendNormMode_t::CUDNN_BATCH_NORM => Ok((channels(false), true)),
        _ => Err(Error::NotSupported("a normalization of this mode")),
    }
}

/// A normalization's sizes; all statistics have the same ones, and all factors.
fn shape(
    mode: u32,
    x: &Tensor,
    scale: &Tensor,
    others: (&[&Option<Tensor>], &[&Option<Tensor>]),
) -> Result<(Shape, Vec<usize>, bool)> {
    let (sizes, centered) = statistics(mode, x, scale)?;
    let are = |of: &[&Option<Tensor>], sizes: &[usize]| {
        of.iter().all(|it| it.as_ref().is_none_or(|it| it.sizes == sizes))
    };
    require(are(others.0, &sizes), "statistics have not the sizes that are not normalized")?;
    require(are(others.1, &scale.sizes), "the bias has not the scale's sizes")?;
    let shape = Shape::new(&x.sizes, &sizes, &scale.sizes, centered);
    let shape = shape.ok_or(Error::BadParam("a scale's size is neither the tensor's nor 1"))?;
    Ok((shape, sizes, centered))
}

impl Norm {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        supports(
            !of.knows(Name::CUDNN_ATTR_OPERATION_NORM_FWD_PEER_STAT_DESCS),
            "statistics of several GPUs",
        )?;
        let mode = of.number(Name::CUDNN_ATTR_OPERATION_NORM_FWD_MODE)?;
        let phase = cudnnBackendNormFwdPhase_t(of.number(Name::CUDNN_ATTR_OPERATION_NORM_FWD_PHASE)?);
        let trains = phase == cudnnBackendNormFwdPhase_t::CUDNN_NORM_FWD_TRAINING;
        let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_XDESC)?;
        let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_YDESC)?;
        let scale = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_SCALE_DESC)?;
        let bias = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_BIAS_DESC)?;
        let mean = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_MEAN_DESC)?;
        let inverse = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_INV_VARIANCE_DESC)?;
        let epsilon = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_EPSILON_DESC)?;
        let factor = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_EXP_AVG_FACTOR_DESC)?;
        let before = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_MEAN_DESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_INPUT_RUNNING_VAR_DESC)?,
        ];
        let after = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_MEAN_DESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_FWD_OUTPUT_RUNNING_VAR_DESC)?,
        ];
        require(x.sizes == y.sizes, "the tensors' sizes differ")?;
        let averages = [&mean, &inverse, &before[0], &before[1], &after[0], &after[1]];
        let (shape, statistic_sizes, is_centered) = shape(mode, &x, &scale, (&averages, &[&bias]))?;
        let mut takes = Takes::default();
        takes.add(&x);
        let (scale, bias) = (takes.add(&scale), takes.add_if(bias.as_ref()));
        let epsilon = takes.add_if(epsilon.as_ref());
        let is_given = !trains && inverse.is_some();
        require(epsilon.is_some() || is_given, "a normalization lacks its epsilon")?;
        let is_batch = cudnnBackendNormMode_t(mode) == cudnnBackendNormMode_t::CUDNN_BATCH_NORM;
        supports(trains || is_given || !is_batch, "statistics of a batch that is not trained on")?;
        let given =
            is_given.then(|| (takes.add_if(mean.as_ref()), inverse.as_ref().map_or(0, |it| takes.add(it))));
        let mut gives = vec![y.uid];
        let own = [mean, inverse].map(|it| it.filter(|_| trains));
        gives.extend(own.iter().flatten().map(|it| it.uid));
        let running = match (factor, before, after) {
            (Some(factor), [Some(mean), Some(variance)], [Some(to_mean), Some(to_variance)]) if trains => {
                gives.extend([to_mean.uid, to_variance.uid]);
                Some([takes.add(&factor), takes.add(&mean), takes.add(&variance)])
            }
            (_, before, after) => {
                let none = before.iter().chain(&after).all(Option::is_none);
                require(none || !trains, "averages over runs lack a tensor")?;
                None
            }
        };
        let gives_own = [own[0].is_some(), own[1].is_some()];
        let work = Norm {
            is_batch,
            shape,
            statistic_sizes,
            is_centered,
            scale,
            bias,
            epsilon,
            statistics: given,
            running,
            gives: gives_own,
        };
        Ok(Operation { work: Work::Norm(work), takes: takes.0, gives })
    }

    /// Its tensors where it is a batch's that is trained on, with a bias, and both or none of its statistics are given to others.
    pub fn training(&self, of: &Operation) -> Option<Training> {
        let [mean, inverse] = self.gives;
        if !self.is_batch || self.statistics.is_some() || mean != inverse {
            return None;
        }
        let after = if mean { 3 } else { 1 };
        let running = self.running.map(|[factor, mean, variance]| {
            let before = [mean, variance].map(|place| of.takes[place]);
            (of.takes[factor], before, [of.gives[after], of.gives[after + 1]])
        });
        Some(Training {
            images: [of.takes[0], of.gives[0]],
            factors: [of.takes[self.scale], of.takes[self.bias?]],
            epsilon: of.takes[self.epsilon?],
            running,
            saved: mean.then(|| [of.gives[1], of.gives[2]]),
        })
    }

    /// Which sizes of the tensor one statistic is of.
    pub fn is_inner(&self, sizes: &[usize]) -> Vec<bool> {
        sizes.iter().zip(&self.statistic_sizes).map(|(size, own)| size != own).collect()
    }

    /// Whether the mean is taken off.
    pub fn is_centered(&self) -> bool {
        self.is_centered
    }

    /// Where each is among what is taken.
    pub fn scale(&self) -> usize {
        self.scale
    }

    pub fn bias(&self) -> Option<usize> {
        self.bias
    }

    pub fn epsilon(&self) -> Option<usize> {
        self.epsilon
    }

    /// Mean, one over the deviation.
    pub fn given(&self) -> Option<(Option<usize>, usize)> {
        self.statistics
    }

    /// The factor of averages over runs, those of means and those of variances.
    pub fn running(&self) -> Option<[usize; 3]> {
        self.running
    }

    /// Whether the mean and one over the deviation are given.
    pub fn gives(&self) -> [bool; 2] {
        self.gives
    }

    fn one<V: Value>(&self, place: Option<usize>, taken: &[Taken<V>]) -> f64 {
        place.map_or(0.0, |place| taken[place].1[0].get())
    }

    /// Means, variances where they are the array's own, and one over the deviations.
    fn statistics<V: Value>(&self, taken: &[Taken<V>]) -> (Vec<f64>, Vec<f64>, Vec<f64>) {
        let list = |place: usize| -> Vec<f64> { taken[place].1.iter().map(|value| value.get()).collect() };
        if let Some((mean, inverse)) = self.statistics {
            let inverses = list(inverse);
            return (mean.map_or_else(|| vec![0.0; inverses.len()], list), Vec::new(), inverses);
        }
        let (means, variances) = normal::statistics(&self.shape, taken[0].1);
        let epsilon = self.one(self.epsilon, taken);
        let inverses = variances.iter().map(|variance| 1.0 / (variance + epsilon).sqrt()).collect();
        (means, variances, inverses)
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<Vec<V>> {
        let (means, variances, inverses) = self.statistics(taken);
        let bias = self.bias.map(|place| taken[place].1);
        let y = normal::forward(&self.shape, taken[0].1, (&means, &inverses), taken[self.scale].1, bias);
        let mut made = vec![y];
        for (list, gives) in [(&means, self.gives[0]), (&inverses, self.gives[1])] {
            if gives {
                made.push(list.iter().map(|value| V::of(*value)).collect());
            }
        }
        if let Some([factor, mean, variance]) = self.running {
            let (factor, count) = (taken[factor].1[0].get(), self.shape.count() as f64);
            // The average is of variances as they are estimated from so many.
            let corrected = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
            for (place, list, by) in [(mean, &means, 1.0), (variance, &variances, corrected)] {
                let old = taken[place].1.iter();
                let average = |(old, new): (&V, &f64)| V::of((1.0 - factor) * old.get() + factor * new * by);
                made.push(old.zip(list).map(average).collect());
            }
        }
        made
    }
}

impl NormBackward {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        supports(
            !of.knows(Name::CUDNN_ATTR_OPERATION_NORM_BWD_PEER_STAT_DESCS),
            "statistics of several GPUs",
        )?;
        let mode = of.number(Name::CUDNN_ATTR_OPERATION_NORM_BWD_MODE)?;
        let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_XDESC)?;
        let dy = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_DYDESC)?;
        let dx = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_DXDESC)?;
        let scale = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_SCALE_DESC)?;
        let dscale = Some(tensors.needed(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_DSCALE_DESC)?);
        let dbias = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_DBIAS_DESC)?;
        let mean = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_MEAN_DESC)?;
        let inverse = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_INV_VARIANCE_DESC)?;
        let epsilon = tensors.of(of, Name::CUDNN_ATTR_OPERATION_NORM_BWD_EPSILON_DESC)?;
        require(x.sizes == dy.sizes && x.sizes == dx.sizes, "the tensors' sizes differ")?;
        let (shape, statistic_sizes, is_centered) =
            shape(mode, &x, &scale, (&[&mean, &inverse], &[&dscale, &dbias]))?;
        let mode = cudnnBackendNormMode_t(mode);
        let is_batch = mode == cudnnBackendNormMode_t::CUDNN_BATCH_NORM;
        let centered = mode != cudnnBackendNormMode_t::CUDNN_RMS_NORM;
        require(
            !centered || mean.is_some() == inverse.is_some(),
            "one of the two statistics is given alone",
        )?;
        require(inverse.is_some() || epsilon.is_some(), "neither statistics nor epsilon are given")?;
        let mut takes = Takes::default();
        takes.add(&x);
        let scale = takes.add(&scale);
        takes.add(&dy);
        let epsilon = takes.add_if(epsilon.as_ref());
        let statistics = match (takes.add_if(mean.as_ref()), takes.add_if(inverse.as_ref())) {
            (mean, Some(inverse)) => Some((mean.filter(|_| centered), inverse)),
            _ => None,
        };
        let mut gives = vec![dx.uid];
        gives.extend(dscale.iter().chain(&dbias).map(|it| it.uid));
        let (bias, running, gives_own) = (None, None, [false; 2]);
        let norm = Norm {
            is_batch,
            shape,
            statistic_sizes,
            is_centered,
            scale,
            bias,
            epsilon,
            statistics,
            running,
            gives: gives_own,
        };
        Ok(Operation { work: Work::NormBackward(NormBackward(norm, dbias.is_some())), takes: takes.0, gives })
    }

    pub fn norm(&self) -> &Norm {
        &self.0
    }

    /// Its tensors where it is a batch's and the bias has a gradient.
    pub fn of_batch(&self, of: &Operation) -> Option<OfBatch> {
        let NormBackward(norm, true) = self else { return None };
        let saved = match norm.statistics {
            Some((mean, inverse)) => Some([of.takes[mean?], of.takes[inverse]]),
            None => None,
        };
        let parameters = [of.takes[norm.scale], of.gives[1], *of.gives.get(2)?];
        norm.is_batch.then_some(OfBatch {
            images: [of.takes[0], of.takes[2], of.gives[0]],
            parameters,
            epsilon: norm.epsilon.map(|place| of.takes[place]),
            saved,
        })
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<Vec<V>> {
        let (means, _, inverses) = self.0.statistics(taken);
        let (x, scale, dy) = (taken[0].1, taken[1].1, taken[2].1);
        let (dx, dscale, dbias) = normal::backward(&self.0.shape, x, dy, (&means, &inverses), scale);
        if self.1 { vec![dx, dscale, dbias] } else { vec![dx, dscale] }
    }
}

/// Over the last size: what it gives beside the result.
pub struct Softmax {
    /// Whether statistics are logarithms to the base 2.
    is_binary: bool,
    /// Whether scores that have no place are taken too, one for each place of the second size.
    has_sink: bool,
    gives: [bool; 3],
}

impl Softmax {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        let sink = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC)?;
        let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SOFTMAX_XDESC)?;
        let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SOFTMAX_YDESC)?;
        let others = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC)?,
        ];
        require(x.sizes == y.sizes, "the tensors' sizes differ")?;
        let (last, rows) = x.sizes.split_last().ok_or(Error::BadParam("a tensor has no sizes"))?;
        let fits = |it: &Tensor| it.sizes.split_last().is_some_and(|(one, sizes)| *one == 1 && sizes == rows);
        require(
            *last > 0 && others.iter().flatten().all(fits),
            "statistics have not one number for each row",
        )?;
        require(
            sink.as_ref().is_none_or(|it| x.sizes.len() == 4 && it.sizes == [1, x.sizes[1], 1, 1]),
            "a sink is not one score for each head",
        )?;
        let gives = [0, 1, 2].map(|at: usize| others[at].is_some());
        let is_binary = of.number(Name::CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2)? != 0;
        let given = core::iter::once(y.uid).chain(others.iter().flatten().map(|it| it.uid)).collect();
        let work = Work::Softmax(Softmax { is_binary, has_sink: sink.is_some(), gives });
        let takes = core::iter::once(x.uid).chain(sink.map(|it| it.uid)).collect();
        Ok(Operation { work, takes, gives: given })
    }

    /// Whether statistics are logarithms to the base 2.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Whether statistics, the largest scores and the sums are given.
    pub fn gives(&self) -> [bool; 3] {
        self.gives
    }

    /// Whether it gives the result alone.
    pub fn is_alone(&self) -> bool {
        !self.has_sink && self.gives == [false; 3]
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<Vec<V>> {
        let (tensor, x) = taken[0];
        let count = tensor.sizes.last().copied().unwrap_or(1);
        let mut y = vec![<V as Value>::of(0.0); x.len()];
        cudnn_cpu::softmax::forward((x.len() / count, count, 1), (false, true), x, &mut y);
        let mut lists = [Vec::new(), Vec::new(), Vec::new()];
        for (number, (row, y)) in x.chunks(count).zip(y.chunks_mut(count)).enumerate() {
            let head = |sizes: &[usize]| number / sizes[2] % sizes[1];
            let sink = if self.has_sink { taken[1].1[head(&tensor.sizes)] } else { V::neg_infinity() };
            let most = row.iter().fold(sink, |most, value| most.max(*value));
            let own: f64 = row.iter().map(|value| (*value - most).get().exp()).sum();
            let sum = own + (sink - most).get().exp();
            if self.has_sink {
                y.iter_mut().zip(row).for_each(|(y, x)| *y = V::of((*x - most).get().exp() / sum));
            }
            let statistic = most.get() + sum.ln();
            let factor = if self.is_binary { core::f64::consts::LOG2_E } else { 1.0 };
            for (list, value) in lists.iter_mut().zip([statistic * factor, most.get(), sum]) {
                list.push(V::of(value));
            }
        }
        let others = lists.into_iter().zip(self.gives).filter(|(_, gives)| *gives).map(|(list, _)| list);
        core::iter::once(y).chain(others).collect()
    }
}

/// Tensors behind each other along a size.
pub fn concat(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let parts = tensors.all(of, Name::CUDNN_ATTR_OPERATION_CONCAT_INPUT_DESCS)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_CONCAT_OUTPUT_DESC)?;
    let axis = of.integer(Name::CUDNN_ATTR_OPERATION_CONCAT_AXIS)?.unwrap_or(-1);
    let axis = usize::try_from(axis).ok().filter(|axis| *axis < y.sizes.len());
    let axis = axis.ok_or(Error::BadParam("the tensor has no such axis"))?;
    require(!parts.is_empty(), "there is nothing to join")?;
    if let Some(own) = of.integer(Name::CUDNN_ATTR_OPERATION_CONCAT_INPLACE_INDEX)? {
        require((-1..parts.len() as i64).contains(&own), "there is no such part")?;
    }
    let fits = |part: &Tensor| {
        part.sizes.len() == y.sizes.len()
            && (0..y.sizes.len()).all(|at| at == axis || part.sizes[at] == y.sizes[at])
    };
    let along: usize = parts.iter().map(|part| part.sizes.get(axis).copied().unwrap_or(0)).sum();
    require(parts.iter().all(fits) && along == y.sizes[axis], "the parts' sizes are not the result's")?;
    let takes = parts.iter().map(|part| part.uid).collect();
    Ok(Operation { work: Work::Concat(axis), takes, gives: vec![y.uid] })
}

pub fn join<V: Value>(axis: usize, taken: &[Taken<V>]) -> Vec<V> {
    let length = |tensor: &Tensor| tensor.sizes[axis..].iter().product::<usize>();
    let outer: usize = taken[0].0.sizes[..axis].iter().product();
    let parts = |at: usize| {
        taken.iter().map(move |(tensor, values)| &values[at * length(tensor)..][..length(tensor)])
    };
    (0..outer).flat_map(parts).flatten().copied().collect()
}

/// The same elements with other sizes: in their order, or (a view) as they lie in memory by the strides of both.
/// A part of a tensor: the first place along each size, and how far the next is.
pub struct Slice {
    first: Vec<usize>,
    stride: Vec<usize>,
}

impl Slice {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SLICE_XDESC)?;
        let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SLICE_YDESC)?;
        let n = x.sizes.len();
        let numbers = |name: Name, otherwise: Option<i64>| {
            let numbers = of.integers(name)?;
            let numbers = match otherwise {
                Some(number) if numbers.is_empty() => vec![number; n],
                _ => numbers,
            };
            require(numbers.len() == n, "numbers are not as many as the tensor's sizes")?;
            Ok::<_, Error>(numbers)
        };
        let first = numbers(Name::CUDNN_ATTR_OPERATION_SLICE_START_INDICES, None)?;
        let end = numbers(Name::CUDNN_ATTR_OPERATION_SLICE_LIMIT_INDICES, None)?;
        let stride = numbers(Name::CUDNN_ATTR_OPERATION_SLICE_STRIDES, Some(1))?;
        require(y.sizes.len() == n, "the part has not as many sizes")?;
        for at in 0..n {
            let is_inside = 0 <= first[at] && first[at] < end[at] && end[at] <= x.sizes[at] as i64;
            require(is_inside && stride[at] > 0, "a part is not inside its tensor")?;
            let count = (end[at] - first[at] + stride[at] - 1) / stride[at];
            require(count == y.sizes[at] as i64, "the part's sizes are others")?;
        }
        let whole = |numbers: Vec<i64>| numbers.into_iter().map(|number| number as usize).collect();
        let slice = Slice { first: whole(first), stride: whole(stride) };
        Ok(Operation { work: Work::Slice(slice), takes: vec![x.uid], gives: vec![y.uid] })
    }

    /// The first place along each size, and how far the next is.
    pub fn places(&self) -> (&[usize], &[usize]) {
        (&self.first, &self.stride)
    }

    pub fn run<V: Value>(&self, to: &Tensor, (from, values): Taken<V>) -> Vec<V> {
        let mut strides: Vec<isize> = vec![1; from.sizes.len()];
        for at in (1..strides.len()).rev() {
            strides[at - 1] = strides[at] * from.sizes[at] as isize;
        }
        let first: usize =
            self.first.iter().zip(&strides).map(|(first, stride)| first * *stride as usize).sum();
        strides.iter_mut().zip(&self.stride).for_each(|(stride, step)| *stride *= *step as isize);
        let at = values[first..].as_ptr().cast_mut().cast::<u8>();
        // SAFETY: the part is inside, as was looked at.
        unsafe { View::new(at, V::KIND, &to.sizes, &strides).load() }
    }
}

pub fn reshape(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RESHAPE_XDESC)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_RESHAPE_YDESC)?;
    let mode = cudnnBackendReshapeMode_t(of.number(Name::CUDNN_ATTR_OPERATION_RESHAPE_MODE)?);
    require(mode <= cudnnBackendReshapeMode_t::CUDNN_RESHAPE_LOGICAL, "there is no such way to reshape")?;
    let count = |of: &Tensor| of.sizes.iter().product::<usize>();
    require(count(&x) == count(&y), "the tensors have not as many elements")?;
    let is_view = mode == cudnnBackendReshapeMode_t::CUDNN_RESHAPE_VIEW_ONLY;
    require(!is_view || x.span() == y.span(), "the tensors do not lie in the same memory")?;
    Ok(Operation { work: Work::Reshape(is_view), takes: vec![x.uid], gives: vec![y.uid] })
}

pub fn reshaped<V: Value>(is_view: bool, to: &Tensor, (from, values): Taken<V>) -> Vec<V> {
    if !is_view || (from.is_packed() && to.is_packed()) {
        return values.to_vec();
    }
    let mut memory = vec![V::of(0.0); from.span()];
    // SAFETY: the memory has a place wherever the strides of either lead.
    unsafe {
        let at = memory.as_mut_ptr().cast::<u8>();
        View::new(at, V::KIND, &from.sizes, &from.strides).store(values, V::of(1.0), V::of(0.0));
        View::new(at, V::KIND, &to.sizes, &to.strides).load()
    }
}

/// A mask along a diagonal: where places compare so, elements stay; elsewhere they are another number.
pub struct Band(Bounds);

/// Of a mask, by place among what is taken.
#[derive(Clone, Copy)]
pub struct Bounds {
    pub comparison: u32,
    pub otherwise: usize,
    /// Of queries and keys by batch, which move the diagonal to the sequences' ends.
    pub lengths: [Option<usize>; 2],
    /// What is added to rows, or to columns, which are compared with rows then.
    pub shift: Option<usize>,
    pub left: Option<usize>,
}

impl Band {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        let summed = of.knows(Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_KVDESC)
            || of.knows(Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_CU_SEQ_LEN_QDESC);
        supports(!summed, "a diagonal mask of summed lengths")?;
        let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_XDESC)?;
        let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_YDESC)?;
        let otherwise = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_BDESC)?;
        let lengths = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_QDESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SEQ_LEN_KVDESC)?,
        ];
        let left = tensors.of(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_LEFT_BOUND_DESC)?;
        let shift = tensors.of(of, Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_SHIFT_RIGHT_BOUND_DESC)?;
        let comparison = of.number(Name::CUDNN_ATTR_OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE)?;
        require(x.sizes == y.sizes && x.sizes.len() == 4, "the tensors' sizes differ or are not four")?;
        let count = |of: &Tensor| of.sizes.iter().product::<usize>();
        let ones = [Some(&otherwise), left.as_ref(), shift.as_ref()];
        require(ones.into_iter().flatten().all(|it| count(it) == 1), "a bound is not one number")?;
        let are = |it: &Tensor| [1, x.sizes[0]].contains(&count(it));
        require(
            lengths.iter().flatten().all(are),
            "there is not a length for each sequence, or one for all",
        )?;
        require(left.is_none() || shift.is_none(), "a diagonal mask has one bound")?;
        require((300..=305).contains(&comparison), "the mode compares nothing")?;
        let mut takes = Takes(vec![x.uid]);
        let otherwise = takes.add(&otherwise);
        let lengths = lengths.map(|it| takes.add_if(it.as_ref()));
        let (shift, left) = (takes.add_if(shift.as_ref()), takes.add_if(left.as_ref()));
        let work = Work::Band(Band(Bounds { comparison, otherwise, lengths, shift, left }));
        Ok(Operation { work, takes: takes.0, gives: vec![y.uid] })
    }

    pub fn bounds(&self) -> Bounds {
        self.0
    }

    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.0.lengths.into_iter().chain([self.0.shift, self.0.left]).flatten()
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<V> {
        let (tensor, x) = taken[0];
        let [_, heads, rows, columns] = [0, 1, 2, 3].map(|at: usize| tensor.sizes[at]);
        // One for all, or one for each sequence.
        let number = |place: Option<usize>, at: usize| {
            place.map_or(0.0, |place| taken[place].1[at.min(taken[place].1.len() - 1)].get())
        };
        let otherwise = taken[self.0.otherwise].1[0];
        let mut y = x.to_vec();
        for (number_, y) in y.chunks_mut(columns).enumerate() {
            let (row, batch) = ((tensor.first[2] + number_ % rows) as f64, number_ / rows / heads);
            let ends = number(self.0.lengths[1], batch) - number(self.0.lengths[0], batch);
            for (column, y) in y.iter_mut().enumerate() {
                let (a, b) = match self.0.left {
                    Some(_) => (column as f64 + number(self.0.left, 0) - ends, row),
                    None => (row + ends + number(self.0.shift, 0), column as f64),
                };
                let stays = match self.0.comparison {
                    300 => a == b,
                    301 => a != b,
                    302 => a > b,
                    303 => a >= b,
                    304 => a < b,
                    _ => a <= b,
                };
                if !stays {
                    *y = otherwise;
                }
            }
        }
        y
    }
}
