//! Scaled dot-product attention as one operation of a graph, and its gradients.

use std::sync::Arc;

use cudnn_cpu::Value;
use cudnn_cpu::attention::{self, Inputs, Shape};

use super::descriptor::Descriptor;
use super::layers::Takes;
use super::plan::{Graph, Operation, Tensor, Tensors, Work};
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Taken<'t, V> = (&'t Tensor, &'t [V]);

/// Queries, keys and values are the first three that are taken.
pub struct Attention {
    shape: Shape,
    scale: Option<usize>,
    /// Of queries and of keys, by sequence.
    lengths: Option<(usize, usize)>,
    /// Where keys and values lie in pages, the tables that say in which.
    pages: [Option<usize>; 2],
    /// What scores become before softmax.
    scores: Option<Scores>,
    gives_statistics: bool,
    /// Whether statistics are logarithms to the base 2.
    is_binary: bool,
}

/// A graph that takes scores and gives others, and where the first of what else it takes is.
struct Scores {
    graph: Arc<Graph>,
    input: i64,
    output: i64,
    first: usize,
    given: Vec<i64>,
}

impl Scores {
    fn of(
        of: &Descriptor,
        tensors: &mut Tensors,
        takes: &mut Takes,
        shape: &Shape,
    ) -> Result<Option<Scores>> {
        let name = Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH;
        let Some(node) =
            of.node(name, cudnnBackendDescriptorType_t::CUDNN_BACKEND_OPERATIONGRAPH_DESCRIPTOR)?
        else {
            return Ok(None);
        };
        let graph =
            node.lock().graph.clone().ok_or(Error::BadParam("a descriptor that is set has no graph"))?;
        let uid = |name: Name| -> Result<i64> {
            of.integer(name)?.ok_or(Error::BadParam("the scores' graph lacks the number of a tensor"))
        };
        let input = uid(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_INPUT_UID)?;
        let output = uid(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SUBGRAPH_OUTPUT_UID)?;
        let sizes = [shape.batch, shape.heads, shape.queries, shape.keys];
        let fits = graph.lacks() == Some(input) && graph.gives(output);
        let same = [input, output].iter().all(|uid| graph.sizes(*uid) == Some(&sizes));
        require(fits && same, "the scores' graph does not take scores and give others")?;
        let given = tensors.adopt(&graph)?;
        let first = takes.0.len();
        given.iter().for_each(|tensor| _ = takes.add(tensor));
        let given = given.iter().map(|tensor| tensor.uid).collect();
        Ok(Some(Scores { graph, input, output, first, given }))
    }

    fn run<V: Value>(&self, scores: Vec<V>, taken: &[Taken<V>]) -> Vec<V> {
        let others =
            self.given.iter().zip(&taken[self.first..]).map(|(uid, (_, values))| (*uid, values.to_vec()));
        self.graph.result(others.chain([(self.input, scores)]).collect(), self.output)
    }
}

/// Behind the first three: the result, its statistics and its gradient.
pub struct AttentionBackward(Attention);

fn four(of: &Tensor) -> Result<[usize; 4]> {
    require(of.sizes.len() == 4, "a tensor of attention has four sizes")?;
    Ok(core::array::from_fn(|at| of.sizes[at]))
}

/// Sizes that go together; `keys` is how many there are.
fn shape(
    q: &Tensor,
    k: &Tensor,
    v: &Tensor,
    o: &Tensor,
    keys: [usize; 2],
    is_paged: [bool; 2],
) -> Result<Shape> {
    let ([b, h, s, d], [kb, kh, _, kd], [vb, vh, _, width]) = (four(q)?, four(k)?, four(v)?);
    let whole = (is_paged[0] || kb == b) && (is_paged[1] || vb == b) && kd == d && keys[0] == keys[1];
    require(whole && o.sizes == [b, h, s, width], "queries, keys, values and results do not fit each other")?;
    require(
        h.is_multiple_of(kh) && h.is_multiple_of(vh),
        "the heads of queries are no multiple of the others",
    )?;
    Ok(Shape {
        batch: b,
        heads: h,
        key_heads: kh,
        value_heads: vh,
        queries: s,
        keys: keys[0],
        depth: d,
        width,
    })
}

fn refused(of: &Descriptor, names: &[(Name, &'static str)]) -> Result {
    names.iter().try_for_each(|(name, what)| supports(!of.knows(*name), what))
}

/// Where lengths are, if both are given.
fn lengths(takes: &mut Takes, of: [Option<Tensor>; 2], batch: usize) -> Result<Option<(usize, usize)>> {
    for tensor in of.iter().flatten() {
        require(tensor.sizes.iter().product::<usize>() == batch, "there is not a length for each sequence")?;
    }
    Ok(match of {
        [Some(queries), Some(keys)] => Some((takes.add(&queries), takes.add(&keys))),
        _ => None,
    })
}

fn scale(takes: &mut Takes, of: Option<Tensor>) -> Result<Option<usize>> {
    let is_one = of.as_ref().is_none_or(|it| it.sizes.iter().all(|&size| size == 1));
    require(is_one, "the scale is one number")?;
    Ok(takes.add_if(of.as_ref()))
}

/// How many keys or values there are: as many as the tensor has, or as the tables of its pages name.
fn counted(of: &Tensor, table: Option<&Tensor>, batch: usize) -> Result<usize> {
    let [_, _, size, _] = four(of)?;
    let Some(table) = table else { return Ok(size) };
    let [b, one, count, last] = four(table)?;
    require(b == batch && one == 1 && last == 1, "a table of pages has not a row for each sequence")?;
    Ok(count * size)
}

impl Attention {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        refused(
            of,
            &[
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC, "attention with a mask of blocks"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_SEED_DESC, "attention that drops"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY, "attention that drops"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_QDESC, "attention of summed lengths"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_KVDESC, "attention of summed lengths"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_QDESC, "attention in 8 bits"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_ODESC, "attention in 8 bits"),
            ],
        )?;
        let q = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC)?;
        let k = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC)?;
        let v = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC)?;
        let o = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC)?;
        let mut statistics = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC)?;
        let mut is_binary = false;
        let name = Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC;
        if let Some(node) =
            of.node(name, cudnnBackendDescriptorType_t::CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR)?
        {
            let softmax = node.lock();
            refused(
                &softmax,
                &[
                    (Name::CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC, "attention with a sink"),
                    (Name::CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC, "attention that gives its largest scores"),
                    (Name::CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC, "attention that gives its sums"),
                ],
            )?;
            statistics = statistics.or(tensors.of(&softmax, Name::CUDNN_ATTR_OPERATION_SOFTMAX_STATS_DESC)?);
            is_binary = softmax.number(Name::CUDNN_ATTR_OPERATION_SOFTMAX_STATS_LOG2)? != 0;
        }
        let factor = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SCALEDESC)?;
        let sequences = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_QDESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SEQ_LEN_KVDESC)?,
        ];
        let tables = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_KDESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_PAGE_TABLE_VDESC)?,
        ];
        let is_paged = [tables[0].is_some(), tables[1].is_some()];
        let both = sequences.iter().all(Option::is_some);
        require(both || is_paged == [false; 2], "pages are given without lengths")?;
        let batch = four(&q)?[0];
        let keys = [counted(&k, tables[0].as_ref(), batch)?, counted(&v, tables[1].as_ref(), batch)?];
        let shape = shape(&q, &k, &v, &o, keys, is_paged)?;
        let rows = [shape.batch, shape.heads, shape.queries, 1];
        require(
            statistics.as_ref().is_none_or(|it| it.sizes == rows),
            "statistics are not one for each query",
        )?;
        let mut takes = Takes(vec![q.uid, k.uid, v.uid]);
        let scale = scale(&mut takes, factor)?;
        let lengths = lengths(&mut takes, sequences, shape.batch)?;
        let pages = tables.map(|table| takes.add_if(table.as_ref()));
        let scores = Scores::of(of, tensors, &mut takes, &shape)?;
        let gives = core::iter::once(o.uid).chain(statistics.iter().map(|it| it.uid)).collect();
        let gives_statistics = statistics.is_some();
        let work = Attention { shape, scale, lengths, pages, scores, gives_statistics, is_binary };
        Ok(Operation { work: Work::Attention(work), takes: takes.0, gives })
    }

    /// What is taken and counts others, which is exact in any type.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.lengths
            .into_iter()
            .flat_map(|(queries, keys)| [queries, keys])
            .chain(self.pages.into_iter().flatten())
    }

    fn scale<V: Value>(&self, taken: &[Taken<V>]) -> V {
        self.scale.map_or(V::of(1.0), |place| taken[place].1[0])
    }

    fn lengths<V: Value>(&self, taken: &[Taken<V>]) -> Option<(Vec<usize>, Vec<usize>)> {
        let list =
            |place: usize| taken[place].1.iter().map(|length| length.get().max(0.0) as usize).collect();
        self.lengths.map(|(queries, keys)| (list(queries), list(keys)))
    }

    /// Keys or values as they follow each other; a page that there is not is zeros.
    fn gathered<V: Value>(&self, place: usize, taken: &[Taken<V>]) -> Vec<V> {
        let (tensor, values) = taken[place];
        let Some(table) = self.pages[place - 1] else { return values.to_vec() };
        let (heads, size, width) = (tensor.sizes[1], tensor.sizes[2], tensor.sizes[3]);
        let table = taken[table].1;
        let pages = table.len() / self.shape.batch;
        let mut all = vec![V::of(0.0); self.shape.batch * heads * pages * size * width];
        for (number, rows) in all.chunks_mut(size * width).enumerate() {
            let (batch, head, page) = (number / pages / heads, number / pages % heads, number % pages);
            let from = table[batch * pages + page].get();
            if from >= 0.0 && (from as usize) < tensor.sizes[0] {
                rows.copy_from_slice(
                    &values[(from as usize * heads + head) * size * width..][..size * width],
                );
            }
        }
        all
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<Vec<V>> {
        let (k, v) = (self.gathered(1, taken), self.gathered(2, taken));
        let lengths = self.lengths(taken);
        let lengths = lengths.as_ref().map(|(queries, keys)| (&queries[..], &keys[..]));
        let inputs = Inputs { q: taken[0].1, k: &k, v: &v, scale: self.scale(taken), lengths };
        let scores = self.scores.as_ref().map(|by| by.run(attention::scores(&self.shape, &inputs), taken));
        let (o, mut statistics) = attention::forward(&self.shape, &inputs, scores.as_deref());
        if self.is_binary {
            let factor = V::of(core::f64::consts::LOG2_E);
            statistics.iter_mut().for_each(|statistic| *statistic *= factor);
        }
        if self.gives_statistics { vec![o, statistics] } else { vec![o] }
    }
}

impl AttentionBackward {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        refused(
            of,
            &[
                (Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH, "attention with a graph for its scores"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SINK_DESC, "attention with a sink"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_BWD_DSINK_DESC, "attention with a sink"),
            ],
        )?;
        let q = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_QDESC)?;
        let k = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_KDESC)?;
        let v = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_VDESC)?;
        let o = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_ODESC)?;
        let statistics = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_STATSDESC)?;
        let d_o = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_DODDESC)?;
        let dq = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_DQDESC)?;
        let dk = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_DKDESC)?;
        let dv = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_DVDESC)?;
        let factor = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SCALEDESC)?;
        let sequences = [
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_QDESC)?,
            tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SEQ_LEN_KVDESC)?,
        ];
        let keys = [counted(&k, None, 0)?, counted(&v, None, 0)?];
        let shape = shape(&q, &k, &v, &o, keys, [false; 2])?;
        let rows = [shape.batch, shape.heads, shape.queries, 1];
        require(statistics.sizes == rows, "statistics are not one for each query")?;
        let same = [(&q, &dq), (&k, &dk), (&v, &dv), (&o, &d_o)].iter().all(|(a, b)| a.sizes == b.sizes);
        require(same, "a gradient has not the sizes of what it is of")?;
        let mut takes = Takes(vec![q.uid, k.uid, v.uid, o.uid, statistics.uid, d_o.uid]);
        let scale = scale(&mut takes, factor)?;
        let lengths = lengths(&mut takes, sequences, shape.batch)?;
        let work = Attention {
            shape,
            scale,
            lengths,
            pages: [None; 2],
            scores: None,
            gives_statistics: false,
            is_binary: false,
        };
        let gives = vec![dq.uid, dk.uid, dv.uid];
        Ok(Operation { work: Work::AttentionBackward(AttentionBackward(work)), takes: takes.0, gives })
    }

    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.0.counts()
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<Vec<V>> {
        let lengths = self.0.lengths(taken);
        let lengths = lengths.as_ref().map(|(queries, keys)| (&queries[..], &keys[..]));
        let inputs =
            Inputs { q: taken[0].1, k: taken[1].1, v: taken[2].1, scale: self.0.scale(taken), lengths };
        let (dq, dk, dv) = attention::backward(&self.0.shape, &inputs, (taken[3].1, taken[4].1, taken[5].1));
        vec![dq, dk, dv]
    }
}
