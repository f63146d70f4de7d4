//! Products of a mixture of experts: rows of tokens, each group of which has its expert's weights. Source: cuDNN manual, "MoE Grouped Matmul".

use core::ops::Range;

use cudnn_cpu::matmul::product;

use super::descriptor::Descriptor;
use super::layers::Takes;
use super::plan::{Layer, Operation, Tensor, Tensors, Work};
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Routing {
    /// Tokens lie as their groups do.
    None,
    /// A row of a group is of the token that the index says.
    Gather,
    /// A row of the result goes to the token that the index says, as its so manieth expert of so many.
    Scatter { top: usize },
}

fn three(of: &Tensor) -> Result<[usize; 3]> {
    <[usize; 3]>::try_from(&of.sizes[..])
        .map_err(|_| Error::BadParam("a tensor of groups has not three sizes"))
}

/// The rows of each group, and its expert.
fn groups(offsets: &[f64], experts: usize, rows: usize) -> impl Iterator<Item = (Range<usize>, usize)> {
    let at = move |offset: f64| (offset.max(0.0) as usize).min(rows);
    (0..offsets.len()).map(move |group| {
        let first = at(offsets[group]);
        let end = offsets.get(group + 1).map_or(rows, |&next| at(next));
        (first..end.max(first), group % experts)
    })
}

/// There is an offset for each expert of each batch.
fn counted(offsets: &Tensor, experts: usize) -> Result {
    let count: usize = offsets.sizes.iter().product();
    require(
        count.is_multiple_of(experts) && count == offsets.sizes[0],
        "there is not an offset for each expert",
    )
}

struct Forward(Routing);

pub fn forward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let token = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_DESC)?;
    let weight = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_WEIGHT_DESC)?;
    let offsets =
        tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_FIRST_TOKEN_OFFSET_DESC)?;
    let output = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_OUTPUT_DESC)?;
    let index = tensors.of(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_INDEX_DESC)?;
    let nth = tensors.of(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOKEN_KS_DESC)?;
    let top = of.integer(Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_TOP_K)?.unwrap_or(0);
    let mode = cudnnMoeGroupedMatmulMode_t(of.number(Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_MODE)?);
    let routing = match mode {
        cudnnMoeGroupedMatmulMode_t::CUDNN_MOE_GROUPED_MATMUL_MODE_NONE => Routing::None,
        cudnnMoeGroupedMatmulMode_t::CUDNN_MOE_GROUPED_MATMUL_MODE_GATHER => Routing::Gather,
        cudnnMoeGroupedMatmulMode_t::CUDNN_MOE_GROUPED_MATMUL_MODE_SCATTER => {
            require(top > 0, "a product that scatters lacks its number of experts for a token")?;
            Routing::Scatter { top: top as usize }
        }
        _ => return Err(Error::NotSupported("a product of groups of this mode")),
    };
    let ([one, tokens, depth], [experts, k, n], [first, rows, columns]) =
        (three(&token)?, three(&weight)?, three(&output)?);
    require(
        (one, first, depth, columns) == (1, 1, k, n),
        "tokens, weights and results do not fit each other",
    )?;
    require(routing == Routing::Gather || tokens == rows, "the result has not a row for each token")?;
    counted(&offsets, experts)?;
    let lists = match routing {
        Routing::None => [None, None],
        Routing::Gather => [index, None],
        Routing::Scatter { .. } => [index, nth],
    };
    let is_there = lists[0].is_some() || routing == Routing::None;
    require(
        is_there && (lists[1].is_some() || !matches!(routing, Routing::Scatter { .. })),
        "tokens' indices are not given",
    )?;
    let is_list = |it: &Tensor| it.sizes.iter().product::<usize>() == rows;
    require(lists.iter().flatten().all(is_list), "there is not an index for each row")?;
    let mut takes = Takes(vec![token.uid, weight.uid, offsets.uid]);
    lists.iter().flatten().for_each(|it| _ = takes.add(it));
    Ok(Operation { work: Work::Layer(Box::new(Forward(routing))), takes: takes.0, gives: vec![output.uid] })
}

impl Layer for Forward {
    fn counts(&self) -> Vec<usize> {
        match self.0 {
            Routing::None => vec![2],
            Routing::Gather => vec![2, 3],
            Routing::Scatter { .. } => vec![2, 3, 4],
        }
    }

    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let [(tokens, token), (weights, weight), (_, offsets)] = [taken[0], taken[1], taken[2]];
        let [experts, k, n] = [0, 1, 2].map(|at: usize| weights.sizes[at]);
        let (count, rows) = (tokens.sizes[1], gives[0].sizes[1]);
        let index = |place: usize, row: usize| taken[place].1[row];
        // Where there is none, rows are 0.
        let from = |row: usize| match self.0 {
            Routing::Gather => index(3, row),
            _ => row as f64,
        };
        let to = |row: usize| match self.0 {
            Routing::Scatter { top } => index(3, row) * top as f64 + index(4, row),
            _ => row as f64,
        };
        let is_within = |place: f64, count: usize| place >= 0.0 && place < count as f64;
        let mut output = vec![0.0; rows * n];
        for (group, expert) in groups(offsets, experts, rows) {
            let mut a = vec![0.0; group.len() * k];
            for (row, a) in group.clone().zip(a.chunks_exact_mut(k)) {
                let from = from(row);
                if is_within(from, count) {
                    a.copy_from_slice(&token[from as usize * k..][..k]);
                }
            }
            let (m, mut c) = (group.len(), vec![0.0; group.len() * n]);
            if m > 0 {
                product((&a, &[m, k]), (&weight[expert * k * n..][..k * n], &[k, n]), (&mut c, &[m, n]));
            }
            for (row, c) in group.zip(c.chunks_exact(n)) {
                let to = to(row);
                if is_within(to, rows) {
                    output[to as usize * n..][..n].copy_from_slice(c);
                }
            }
        }
        vec![output]
    }
}

/// The gradient of each expert's weights.
struct Backward;

pub fn backward(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let token = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_TOKEN_DESC)?;
    let d_output = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DOUTPUT_DESC)?;
    let d_weight = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_DWEIGHT_DESC)?;
    let offsets =
        tensors.needed(of, Name::CUDNN_ATTR_OPERATION_MOE_GROUPED_MATMUL_BWD_FIRST_TOKEN_OFFSET_DESC)?;
    let ([one, rows, depth], [experts, k, n], [first, other, columns]) =
        (three(&token)?, three(&d_weight)?, three(&d_output)?);
    let fits = (one, first, rows, depth, columns) == (1, 1, other, k, n);
    require(fits, "tokens, weights and results do not fit each other")?;
    supports(experts > 0, "a mixture without experts")?;
    counted(&offsets, experts)?;
    let takes = [&token, &d_output, &offsets].map(|it| it.uid).to_vec();
    Ok(Operation { work: Work::Layer(Box::new(Backward)), takes, gives: vec![d_weight.uid] })
}

impl Layer for Backward {
    fn counts(&self) -> Vec<usize> {
        vec![2]
    }

    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let [(tokens, token), (_, d_output), (_, offsets)] = [taken[0], taken[1], taken[2]];
        let [experts, k, n] = [0, 1, 2].map(|at: usize| gives[0].sizes[at]);
        let mut d_weight = vec![0.0; experts * k * n];
        for (group, expert) in groups(offsets, experts, tokens.sizes[1]) {
            let m = group.len();
            if m == 0 {
                continue;
            }
            let rows = &token[group.start * k..][..m * k];
            let turned: Vec<f64> = (0..k * m).map(|at| rows[at % m * k + at / m]).collect();
            let mut c = vec![0.0; k * n];
            product((&turned, &[k, m]), (&d_output[group.start * n..][..m * n], &[m, n]), (&mut c, &[k, n]));
            d_weight[expert * k * n..][..k * n].iter_mut().zip(&c).for_each(|(sum, c)| *sum += c);
        }
        vec![d_weight]
    }
}
