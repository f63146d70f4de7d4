//! A batch norm in parts, as networks have it where convolutions do the sums: sums of each channel, what they say of factors and averages, and
//! what a way back needs of its own. Source: cuDNN manual, backend descriptors "GEN_STATS", "BN_FINALIZE_STATISTICS", "BN_BWD_WEIGHTS".

use core::ffi::CStr;

use super::descriptor::Descriptor;
use super::kernels::Run;
use super::layers::Takes;
use super::plan::{Layer, Operation, Tensor, Tensors, Work};
use crate::Result;
use crate::error::{require, supports};
use crate::kernels::rows::{How, Over};
use crate::kernels::tensor::Operand;
use crate::types::*;

type Name = cudnnBackendAttributeName_t;

/// The channel of each element, which is the second place.
fn channels(of: &Tensor) -> impl Iterator<Item = usize> {
    let (count, inner) = (of.sizes[1], of.sizes[2..].iter().product::<usize>());
    (0..of.sizes.iter().product()).map(move |place: usize| place / inner % count)
}

/// A number for each channel of this tensor.
fn are_of_channels<'t>(of: &Tensor, mut others: impl Iterator<Item = &'t Tensor>) -> Result {
    require(of.sizes.len() >= 2, "a tensor has no channels")?;
    let fits = |it: &Tensor| {
        it.sizes.len() == of.sizes.len()
            && it.sizes.iter().enumerate().all(|(at, &size)| size == if at == 1 { of.sizes[1] } else { 1 })
    };
    require(others.all(fits), "statistics are not one for each channel")
}

struct Sums;

pub fn sums(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    supports(of.number(Name::CUDNN_ATTR_OPERATION_GENSTATS_MODE)? == 0, "statistics of this mode")?;
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_GENSTATS_XDESC)?;
    let sum = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_GENSTATS_SUMDESC)?;
    let squares = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_GENSTATS_SQSUMDESC)?;
    are_of_channels(&x, [&sum, &squares].into_iter())?;
    Ok(Operation { work: Work::Layer(Box::new(Sums)), takes: vec![x.uid], gives: vec![sum.uid, squares.uid] })
}

impl Layer for Sums {
    fn run(&self, _gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let (tensor, x) = taken[0];
        let mut sums = vec![vec![0.0; tensor.sizes[1]]; 2];
        for (channel, x) in channels(tensor).zip(x) {
            sums[0][channel] += x;
            sums[1][channel] += x * x;
        }
        sums
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let sizes = run.sizes(of.takes[0]);
        let to = [run.over(of.gives[0], sizes), run.over(of.gives[1], sizes)];
        let (Some(x), [Some(sum), Some(squares)]) = (run.own(of.takes[0]), to) else { return Ok(false) };
        run.call.sums(Over { sizes, is_inner: &within(sizes) }, &x, [&sum, &squares])
    }
}

/// The sizes along which a channel has its elements.
fn within(sizes: &[usize]) -> Vec<bool> {
    (0..sizes.len()).map(|at| at != 1).collect()
}

/// Where each is among what is taken; what is given, in the order of [`Finalize::run`].
struct Finalize {
    trains: bool,
    scale: Option<usize>,
    bias: Option<usize>,
    epsilon: Option<usize>,
    sums: Option<[usize; 3]>,
    before: Option<[usize; 2]>,
    factor: Option<usize>,
    gives: [bool; 6],
}

pub fn finalize(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let mode = of.number(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_STATS_MODE)?;
    require(mode <= 1, "there is no such mode of statistics")?;
    let trains = mode == 0;
    let mut get = |name: Name| tensors.of(of, name);
    let scale = get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_SCALE_DESC)?;
    let bias = get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_BIAS_DESC)?;
    let epsilon = get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_EPSILON_DESC)?;
    let count = get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_ACCUM_COUNT_DESC)?;
    let factor = get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_EXP_AVERATE_FACTOR_DESC)?;
    let sums = [
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SUM_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_Y_SQ_SUM_DESC)?,
    ];
    let before = [
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_MEAN_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_PREV_RUNNING_VAR_DESC)?,
    ];
    let gives = [
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_SCALE_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_EQ_BIAS_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_MEAN_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_SAVED_INV_STD_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_MEAN_DESC)?,
        get(Name::CUDNN_ATTR_OPERATION_BN_FINALIZE_UPDATED_RUNNING_VAR_DESC)?,
    ];
    let lists = [&scale, &bias].into_iter().chain(&sums).chain(&before).chain(&gives).flatten();
    let first = lists.clone().next().cloned();
    require(
        first.is_some() && gives.iter().any(Option::is_some),
        "statistics are made of nothing or for nothing",
    )?;
    if let Some(first) = &first {
        are_of_channels(first, lists)?;
    }
    let ones = [&epsilon, &count, &factor];
    let are_numbers = ones.into_iter().flatten().all(Tensor::is_one_number);
    require(are_numbers, "epsilon, count or factor are not one number")?;
    let has_sums = sums.iter().all(Option::is_some) && count.is_some();
    let has_before = before.iter().all(Option::is_some);
    require(
        if trains { has_sums } else { has_before },
        "the sums, or the averages over runs, are not given",
    )?;
    require(epsilon.is_some(), "a normalization lacks its epsilon")?;
    require(gives[0].is_none() || scale.is_some(), "the factor is not given")?;
    require(
        gives[1].is_none() || (scale.is_some() && bias.is_some()),
        "the factor or the bias is not given",
    )?;
    let runs_on = gives[4].is_some() || gives[5].is_some();
    require(!runs_on || (trains && has_before && factor.is_some()), "averages over runs lack a tensor")?;
    supports(
        trains || gives[2..].iter().all(Option::is_none),
        "statistics of a batch that is not trained on",
    )?;
    let mut takes = Takes::default();
    let mut two = |of: &[Option<Tensor>; 2], last: Option<&Tensor>| match of {
        [Some(a), Some(b)] => Some((takes.add(a), takes.add(b), last.map(|it| takes.add(it)))),
        _ => None,
    };
    let sums = two(&sums, count.as_ref()).and_then(|(a, b, count)| Some([a, b, count?]));
    let before = two(&before, None).map(|(a, b, _)| [a, b]);
    let work = Finalize {
        trains,
        scale: takes.add_if(scale.as_ref()),
        bias: takes.add_if(bias.as_ref()),
        epsilon: takes.add_if(epsilon.as_ref()),
        factor: takes.add_if(factor.as_ref()),
        sums,
        before,
        gives: core::array::from_fn(|at| gives[at].is_some()),
    };
    let gives = gives.iter().flatten().map(|it| it.uid).collect();
    Ok(Operation { work: Work::Layer(Box::new(work)), takes: takes.0, gives })
}

impl Layer for Finalize {
    fn counts(&self) -> Vec<usize> {
        self.sums.iter().map(|sums| sums[2]).collect()
    }

    fn run(&self, _gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let list = |place: usize| taken[place].1;
        let one = |place: Option<usize>| place.map_or(0.0, |place| list(place)[0]);
        let before = self.before.map(|[mean, variance]| (list(mean), list(variance)));
        let (mut means, mut variances, mut corrected) = (Vec::new(), Vec::new(), 1.0);
        match (self.sums, before) {
            (Some([sums, squares, count]), _) if self.trains => {
                let count = list(count)[0];
                means = list(sums).iter().map(|sum| sum / count).collect();
                let variance = |(square, mean): (&f64, &f64)| (square / count - mean * mean).max(0.0);
                variances = list(squares).iter().zip(&means).map(variance).collect();
                // The average is of variances as they are estimated from so many.
                corrected = if count > 1.0 { count / (count - 1.0) } else { 1.0 };
            }
            (_, Some((mean, variance))) => (means, variances) = (mean.to_vec(), variance.to_vec()),
            _ => {}
        }
        let epsilon = one(self.epsilon);
        let inverses: Vec<f64> = variances.iter().map(|variance| 1.0 / (variance + epsilon).sqrt()).collect();
        let scales: Vec<f64> = self.scale.map_or(Vec::new(), |scale| {
            list(scale).iter().zip(&inverses).map(|(scale, inverse)| scale * inverse).collect()
        });
        let biases = self.bias.map_or(Vec::new(), |bias| {
            let shifted = means.iter().zip(&scales).map(|(mean, scale)| mean * scale);
            list(bias).iter().zip(shifted).map(|(bias, shift)| bias - shift).collect()
        });
        let factor = one(self.factor);
        let average = |old: &[f64], new: &[f64], by: f64| {
            old.iter().zip(new).map(|(old, new)| (1.0 - factor) * old + factor * new * by).collect()
        };
        let (next, next_variance) = before.map_or((Vec::new(), Vec::new()), |(mean, variance)| {
            (average(mean, &means, 1.0), average(variance, &variances, corrected))
        });
        let all = [scales, biases, means, inverses, next, next_variance];
        all.into_iter().zip(self.gives).filter(|(_, gives)| *gives).map(|(list, _)| list).collect()
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let sizes = run.sizes(of.gives[0]);
        let taken = |place: Option<usize>| run.over_or_none(place.map(|place| of.takes[place]), sizes);
        let number = |place: Option<usize>| place.map_or(Some(0.0), |place| run.number(of.takes[place]));
        let (sums, before) = (self.sums, self.before);
        let places =
            [sums.map(|it| it[0]), sums.map(|it| it[1]), before.map(|it| it[0]), before.map(|it| it[1])];
        let mut operands: Vec<Option<Operand>> =
            places.into_iter().chain([self.scale, self.bias]).map(taken).collect();
        let mut given = of.gives.iter().copied();
        let next = |gives: bool| run.over_or_none(if gives { given.next() } else { None }, sizes);
        operands.extend(self.gives.map(next));
        let operands = operands.into_iter().collect::<Option<Vec<_>>>();
        let numbers = [self.epsilon, self.factor, sums.map(|it| it[2])].map(number);
        let (Some(operands), [Some(epsilon), Some(factor), Some(count)]) = (operands, numbers) else {
            return Ok(false);
        };
        // A mean that is not trained on is that of the averages.
        let mut how = How::new((self.trains && sums.is_some()).into());
        how.numbers = [epsilon, factor, count, 0.0];
        run.of_channels(c"finalize", how, sizes, &operands)
    }
}

/// Gradients of factor and bias, and the three factors of `a · dy + b · x + c`, which is the gradient of x.
struct Backward;

pub fn backward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let mut needed = |name: Name| tensors.needed(of, name);
    let taken = [
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_X_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DY_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_MEAN_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_INVSTD_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_BN_SCALE_DESC)?,
    ];
    let given = [
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_SCALE_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_DBN_BIAS_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_DY_SCALE_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_X_SCALE_DESC)?,
        needed(Name::CUDNN_ATTR_OPERATION_BN_BWD_WEIGHTS_EQ_BIAS)?,
    ];
    require(taken[0].sizes == taken[1].sizes, "the tensors' sizes differ")?;
    are_of_channels(&taken[0], taken[2..].iter().chain(&given))?;
    let uids = |of: &[Tensor]| of.iter().map(|it| it.uid).collect();
    Ok(Operation { work: Work::Layer(Box::new(Backward)), takes: uids(&taken), gives: uids(&given) })
}

impl Layer for Backward {
    fn run(&self, _gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let (tensor, x) = taken[0];
        let [dy, mean, inverse, scale] = [1, 2, 3, 4].map(|at: usize| taken[at].1);
        let count = (x.len() / tensor.sizes[1]) as f64;
        let (mut d_scale, mut d_bias) = (vec![0.0; tensor.sizes[1]], vec![0.0; tensor.sizes[1]]);
        for ((channel, x), dy) in channels(tensor).zip(x).zip(dy) {
            d_scale[channel] += dy * (x - mean[channel]) * inverse[channel];
            d_bias[channel] += dy;
        }
        let mut factors = vec![Vec::new(), Vec::new(), Vec::new()];
        for channel in 0..tensor.sizes[1] {
            let a = scale[channel] * inverse[channel];
            let b = -a * inverse[channel] * d_scale[channel] / count;
            factors[0].push(a);
            factors[1].push(b);
            factors[2].push(-a * d_bias[channel] / count - b * mean[channel]);
        }
        [d_scale, d_bias].into_iter().chain(factors).collect()
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let sizes = run.sizes(of.takes[0]);
        let over = |uids: &[i64]| uids.iter().map(|uid| run.over(*uid, sizes)).collect::<Option<Vec<_>>>();
        let (Some(taken), Some(given)) = (over(&of.takes), over(&of.gives)) else { return Ok(false) };
        if !run.is_apart(of) {
            return Ok(false);
        }
        let [x, dy, mean, inverse, scale] = &taken[..] else { return Ok(false) };
        let gradients = [&given[0], &given[1]];
        let sums: Vec<Operand> = [x, dy, mean, inverse].into_iter().chain(gradients).cloned().collect();
        let is_inner = within(sizes);
        let all = Over { sizes, is_inner: &is_inner };
        if !run.call.rows(c"scale_backward", How::new(1), all, &sums)? {
            return Ok(false);
        }
        let factors = gradients.into_iter().chain([mean, inverse, scale]).chain(&given[2..]);
        let factors: Vec<Operand> = factors.cloned().collect();
        let count = sizes.iter().product::<usize>() / sizes[1];
        let how = How { numbers: [count as f64, 0.0, 0.0, 0.0], ..How::new(0) };
        let one: Vec<usize> = (0..sizes.len()).map(|at| if at == 1 { sizes[1] } else { 1 }).collect();
        run.of_channels(c"gradient_factors", how, &one, &factors)
    }
}

impl Run<'_> {
    /// A kernel whose results are of these sizes, one for each channel.
    fn of_channels(
        &self,
        name: &'static CStr,
        how: How,
        sizes: &[usize],
        operands: &[Operand],
    ) -> Result<bool> {
        self.call.rows(name, how, Over { sizes, is_inner: &vec![false; sizes.len()] }, operands)
    }
}
