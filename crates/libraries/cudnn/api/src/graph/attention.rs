//! Scaled dot-product attention as one operation of a graph, and its gradients.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::Arc;

use cudnn_cpu::attention::{self, Inputs, Options, Shape};
use cudnn_cpu::{Kind, Value, rounded};

use super::blocks::Blocks;
use super::descriptor::Descriptor;
use super::layers::Takes;
use super::parts::Part;
use super::plan::{Graph, Operation, Tensor, Tensors, Work};
use super::random;
use crate::error::{require, supports};
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;
type Taken<'t, V> = (&'t Tensor, &'t [V]);

/// Queries, keys and values are the first three that are taken.
pub struct Attention {
    pub(super) shape: Shape,
    pub(super) scale: Option<usize>,
    /// Of queries and of keys, by sequence.
    pub(super) lengths: Option<(usize, usize)>,
    /// Where keys and values lie in pages, the tables that say in which.
    pub(super) pages: [Option<usize>; 2],
    /// What scores become before softmax.
    pub(super) scores: Option<Scores>,
    /// Scores that have no key, one for each head.
    pub(super) sink: Option<usize>,
    /// Which tiles of scores count, a bit for each.
    pub(super) blocks: Option<usize>,
    pub(super) drop: Option<Drop>,
    pub(super) eight: Option<Eight>,
    /// Statistics, the largest scores and their exponentials' sums, which chances are kept, the largest chance and the largest result.
    pub(super) gives: [bool; 6],
    /// Whether statistics are logarithms to the base 2.
    pub(super) is_binary: bool,
}

/// How often a chance is kept, and where the seed and the offset are.
pub(super) struct Drop {
    pub(super) kept: f64,
    pub(super) seed: Option<usize>,
    pub(super) offset: Option<usize>,
}

/// Factors of attention in 8 bits, by where they are.
pub(super) enum Eight {
    /// Of queries, keys, values and chances, by which numbers of 8 bits are multiplied; of chances and results, before they become such.
    Whole { taken: [usize; 4], made: [usize; 2], kind: Kind },
    /// Of blocks of queries, keys and values. Chances stay what they are.
    Blocks([(usize, Blocks); 3]),
}

/// Elements of a block, along a query's, a key's or a value's sequence.
const BLOCK: usize = 32;

impl Eight {
    /// The factors, and where the largest chance and the largest result go.
    fn of(
        of: &Descriptor,
        tensors: &mut Tensors,
        takes: &mut Takes,
        inputs: [&Tensor; 3],
    ) -> Result<(Option<Eight>, [Option<Tensor>; 2])> {
        let mut named = |name: Name| tensors.of(of, name);
        let factors = [
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_QDESC)?,
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_KDESC)?,
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_VDESC)?,
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DESCALE_SDESC)?,
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SCALE_SDESC)?,
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SCALE_ODESC)?,
        ];
        let largest = [
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_SDESC)?,
            named(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_AMAX_ODESC)?,
        ];
        let is_eight = |it: &&Tensor| matches!(it.kind, Kind::E4M3 | Kind::E5M2);
        if inputs.iter().filter(|it| is_eight(it)).count() != inputs.len() {
            require(
                factors.iter().chain(&largest).all(Option::is_none) && !inputs.iter().any(is_eight),
                "factors of 8-bit floats and what is of that type do not fit each other",
            )?;
            return Ok((None, largest));
        }
        let is_number = |it: &Tensor| it.kind == Kind::F32 && it.is_one_number();
        let are_numbers = largest.iter().flatten().all(is_number);
        require(are_numbers, "the largest chance or result is no number in float")?;
        if let [Some(q), Some(k), Some(v), ..] = &factors
            && q.kind == Kind::E8M0
        {
            require(largest[0].is_none(), "a largest chance that blocks have not")?;
            require(k.kind == Kind::E8M0 && v.kind == Kind::E8M0, "factors of blocks are of several types")?;
            let [of_q, of_k, of_v] = inputs;
            let blocks = [
                (takes.add(q), Blocks::along(3, BLOCK, of_q, q)?),
                (takes.add(k), Blocks::along(3, BLOCK, of_k, k)?),
                (takes.add(v), Blocks::along(2, BLOCK, of_v, v)?),
            ];
            return Ok((Some(Eight::Blocks(blocks)), largest));
        }
        let [Some(q), Some(k), Some(v), Some(s), Some(scale_s), Some(scale_o)] = &factors else {
            return Err(Error::BadParam("attention in 8 bits lacks a factor"));
        };
        require(largest[1].is_some(), "attention in 8 bits lacks where its largest result goes")?;
        let are_numbers = factors.iter().flatten().all(is_number);
        require(are_numbers, "a factor of 8-bit floats is no number in float")?;
        let taken = [q, k, v, s].map(|it| takes.add(it));
        let made = [scale_s, scale_o].map(|it| takes.add(it));
        Ok((Some(Eight::Whole { taken, made, kind: inputs[0].kind }), largest))
    }
}

/// Queries and keys that have one bit of a mask of tiles.
const MASKED: usize = 128;

/// A graph that takes scores and gives others, and where the first of what else it takes is.
pub(super) struct Scores {
    graph: Arc<Graph>,
    input: i64,
    output: i64,
    first: usize,
    given: Vec<i64>,
    /// Whether it makes each row of the same row.
    is_by_rows: bool,
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
        let is_by_rows = graph.keeps_rows([sizes[0], sizes[1], sizes[2]]);
        Ok(Some(Scores { graph, input, output, first, given, is_by_rows }))
    }

    /// The graph, and which of its tensors are what it takes and gives.
    pub fn parts(&self) -> (&Graph, i64, i64) {
        (&self.graph, self.input, self.output)
    }

    /// What it takes beside scores.
    fn others<'t, V: Value>(&self, taken: &[Taken<'t, V>]) -> Vec<(i64, &'t [V])> {
        self.given.iter().zip(&taken[self.first..]).map(|(uid, (_, values))| (*uid, *values)).collect()
    }

    /// Some rows of one head, by its number.
    fn rows<V: Value>(
        &self,
        shape: &Shape,
        number: usize,
        rows: Range<usize>,
        scores: Vec<V>,
        others: &[(i64, &[V])],
    ) -> Vec<V> {
        let (batch, head) = (number / shape.heads, number % shape.heads);
        let all = [shape.batch, shape.heads, shape.queries];
        let part = Part { all, batch, heads: head..head + 1, rows };
        self.graph.rows(&part, (self.input, scores), others, self.output)
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
    require(of.as_ref().is_none_or(Tensor::is_one_number), "the scale is one number")?;
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
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_QDESC, "attention of summed lengths"),
                (Name::CUDNN_ATTR_OPERATION_SDPA_FWD_CU_SEQ_LEN_KVDESC, "attention of summed lengths"),
            ],
        )?;
        let q = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_QDESC)?;
        let k = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_KDESC)?;
        let v = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_VDESC)?;
        let o = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_ODESC)?;
        let mut statistics = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_STATSDESC)?;
        let (mut is_binary, mut sink, mut others) = (false, None, [None, None]);
        let name = Name::CUDNN_ATTR_OPERATION_SDPA_FWD_SOFTMAX_DESC;
        if let Some(node) =
            of.node(name, cudnnBackendDescriptorType_t::CUDNN_BACKEND_OPERATION_SOFTMAX_DESCRIPTOR)?
        {
            let softmax = node.lock();
            sink = tensors.of(&softmax, Name::CUDNN_ATTR_OPERATION_SOFTMAX_SINK_DESC)?;
            others = [
                tensors.of(&softmax, Name::CUDNN_ATTR_OPERATION_SOFTMAX_MAX_DESC)?,
                tensors.of(&softmax, Name::CUDNN_ATTR_OPERATION_SOFTMAX_SUM_EXP_DESC)?,
            ];
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
        let [largest, sums] = others;
        require(
            [&statistics, &largest, &sums].into_iter().flatten().all(|it| it.sizes == rows),
            "statistics are not one for each query",
        )?;
        require(
            sink.as_ref().is_none_or(|it| it.sizes == [1, shape.heads, 1, 1]),
            "a sink is not one score for each head",
        )?;
        let blocks = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_BLOCK_MASK_DESC)?;
        let tiles = [
            shape.batch,
            shape.heads,
            shape.queries.div_ceil(MASKED),
            shape.keys.div_ceil(MASKED).div_ceil(8),
        ];
        require(
            blocks.as_ref().is_none_or(|it| it.sizes == tiles),
            "a mask of tiles has not a bit for each tile of 128 queries and keys",
        )?;
        let mut takes = Takes(vec![q.uid, k.uid, v.uid]);
        let scale = scale(&mut takes, factor)?;
        let lengths = lengths(&mut takes, sequences, shape.batch)?;
        let pages = tables.map(|table| takes.add_if(table.as_ref()));
        let (drop, kept) = Drop::of(of, tensors, &mut takes, &shape)?;
        let (eight, [largest_chance, largest_result]) = Eight::of(of, tensors, &mut takes, [&q, &k, &v])?;
        let in_blocks = matches!(eight, Some(Eight::Blocks(_)));
        supports(!in_blocks || is_paged == [false; 2], "pages of keys with factors of blocks")?;
        let (sink, blocks) = (takes.add_if(sink.as_ref()), takes.add_if(blocks.as_ref()));
        let scores = Scores::of(of, tensors, &mut takes, &shape)?;
        let given = [statistics, largest, sums, kept, largest_chance, largest_result];
        let gives = core::iter::once(o.uid).chain(given.iter().flatten().map(|it| it.uid)).collect();
        let work = Attention {
            shape,
            scale,
            lengths,
            pages,
            scores,
            sink,
            blocks,
            drop,
            eight,
            gives: given.map(|it| it.is_some()),
            is_binary,
        };
        Ok(Operation { work: Work::Attention(work), takes: takes.0, gives })
    }

    /// What is taken and counts others, which is exact in any type.
    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.lengths
            .into_iter()
            .flat_map(|(queries, keys)| [queries, keys])
            .chain(self.pages.into_iter().flatten())
            .chain(self.blocks)
    }

    /// Where the seed and the offset of what is dropped are.
    pub fn seeds(&self) -> impl Iterator<Item = usize> {
        self.drop.iter().flat_map(|drop| [drop.seed, drop.offset]).flatten()
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
        let (mut q, mut k, mut v) =
            (Cow::Borrowed(taken[0].1), self.gathered(1, taken), self.gathered(2, taken));
        let mut scale = self.scale(taken);
        // What chances are rounded by, and what results are multiplied by before and behind their largest is taken.
        let (mut by, mut factors) = (None, [V::one(); 2]);
        match &self.eight {
            Some(Eight::Blocks([of_q, of_k, of_v])) => {
                q = Cow::Owned(of_q.1.multiplied(taken[0], taken[of_q.0]));
                k = of_k.1.multiplied(taken[1], taken[of_k.0]);
                v = of_v.1.multiplied(taken[2], taken[of_v.0]);
            }
            Some(Eight::Whole { taken: places, made, kind }) => {
                let [of_q, of_k, of_v, of_s] = places.map(|place| taken[place].1[0]);
                let [scale_s, scale_o] = made.map(|place| taken[place].1[0]);
                scale *= of_q * of_k;
                by = rounded::<V>(*kind).map(|rounded| (scale_s, rounded));
                factors = [of_s * of_v, scale_o];
            }
            None => {}
        }
        let lengths = self.lengths(taken);
        let lengths = lengths.as_ref().map(|(queries, keys)| (&queries[..], &keys[..]));
        let inputs = Inputs { q: &q, k: &k, v: &v, scale, lengths };
        // A graph that needs all scores at once gets them.
        let graph = self.scores.as_ref();
        let all = graph.filter(|by| !by.is_by_rows);
        let scores = all.map(|by| by.run(attention::scores(&self.shape, &inputs), taken));
        let by_rows = graph.filter(|by| by.is_by_rows).map(|by| (by, by.others(taken)));
        let change = |number: usize, first: usize, scores: &mut Vec<V>| {
            if let Some((by, others)) = &by_rows {
                let rows = first..first + scores.len() / self.shape.keys;
                *scores = by.rows(&self.shape, number, rows, core::mem::take(scores), others);
            }
            if let Some(place) = self.blocks {
                mask(scores, &self.shape, (number, first), taken[place].1);
            }
        };
        let changes = by_rows.is_some() || self.blocks.is_some();
        let seed = |place: Option<usize>| place.map_or(0, |place| taken[place].1[0].get() as i64);
        let is_kept = |number: usize| {
            let drop = self.drop.as_ref();
            drop.is_none_or(|it| random::is_drawn(it.kept, seed(it.seed), seed(it.offset), number))
        };
        let options = Options {
            scores: scores.as_deref(),
            change: changes.then_some(&change as _),
            sink: self.sink.map(|place| taken[place].1),
            kept: self.drop.as_ref().map(|drop| (&is_kept as _, 1.0 / drop.kept)),
            rounded: by,
        };
        let mut made = attention::forward(&self.shape, &inputs, &options);
        if self.is_binary {
            let factor = V::of(core::f64::consts::LOG2_E);
            made.statistics.iter_mut().for_each(|statistic| *statistic *= factor);
        }
        let count = self.shape.batch * self.shape.heads * self.shape.queries * self.shape.keys;
        let dump = if self.gives[3] { count } else { 0 };
        let dump = (0..dump).map(|number| V::of(f64::from(u8::from(is_kept(number))))).collect();
        let mut largest = V::zero();
        if self.eight.is_some() {
            for value in &mut made.o {
                *value *= factors[0];
                largest = largest.max(value.abs());
                *value *= factors[1];
            }
        }
        let others =
            [made.statistics, made.most, made.sums, dump, vec![made.largest], vec![largest]].into_iter();
        let others = others.zip(self.gives);
        core::iter::once(made.o).chain(others.filter(|(_, gives)| *gives).map(|(list, _)| list)).collect()
    }
}

/// Scores of tiles whose bit is not set do not count.
fn mask<V: Value>(scores: &mut [V], shape: &Shape, (head, first): (usize, usize), bits: &[V]) {
    let across = shape.keys.div_ceil(MASKED).div_ceil(8);
    let down = shape.queries.div_ceil(MASKED);
    for (number, row) in scores.chunks_mut(shape.keys).enumerate() {
        let query = first + number;
        let bits = &bits[(head * down + query / MASKED) * across..][..across];
        for (tile, scores) in row.chunks_mut(MASKED).enumerate() {
            if bits[tile / 8].get() as u32 >> (tile % 8) & 1 == 0 {
                scores.fill(V::neg_infinity());
            }
        }
    }
}

impl Drop {
    /// What is dropped, and the tensor that which chances are kept is written into.
    fn of(
        of: &Descriptor,
        tensors: &mut Tensors,
        takes: &mut Takes,
        shape: &Shape,
    ) -> Result<(Option<Drop>, Option<Tensor>)> {
        let chance = of.real(Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_PROBABILITY)?;
        let seed = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_SEED_DESC)?;
        let offset = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_OFFSET_DESC)?;
        let dump = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_FWD_DROPOUT_RNG_DUMP_DESC)?;
        let Some(chance) = chance else {
            require(seed.is_none() && dump.is_none(), "a seed is given without a probability")?;
            return Ok((None, None));
        };
        require((0.0..1.0).contains(&chance), "a probability is not between 0 and 1")?;
        let are_numbers = [&seed, &offset].into_iter().flatten().all(Tensor::is_one_number);
        require(are_numbers, "a seed or an offset is not one number")?;
        let sizes = [shape.batch, shape.heads, shape.queries, shape.keys];
        require(dump.as_ref().is_none_or(|it| it.sizes == sizes), "what is kept is not one for each score")?;
        let drop = Drop {
            kept: 1.0 - chance,
            seed: takes.add_if(seed.as_ref()),
            offset: takes.add_if(offset.as_ref()),
        };
        Ok((Some(drop), dump))
    }
}

impl AttentionBackward {
    pub fn operation(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
        refused(
            of,
            &[(Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SUBGRAPH, "attention with a graph for its scores")],
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
        let sink = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_SINK_DESC)?;
        let d_sink = tensors.of(of, Name::CUDNN_ATTR_OPERATION_SDPA_BWD_DSINK_DESC)?;
        require(d_sink.is_none() || sink.is_some(), "the gradient of a sink lacks the sink")?;
        let of_heads = [1, shape.heads, 1, 1];
        let is_of_heads = [&sink, &d_sink].into_iter().flatten().all(|it| it.sizes == of_heads);
        require(is_of_heads, "a sink is not one score for each head")?;
        let work = Attention {
            shape,
            scale,
            lengths,
            pages: [None; 2],
            scores: None,
            sink: takes.add_if(sink.as_ref()),
            blocks: None,
            drop: None,
            eight: None,
            gives: [d_sink.is_some(), false, false, false, false, false],
            is_binary: false,
        };
        let gives = [&dq, &dk, &dv].into_iter().chain(&d_sink).map(|it| it.uid).collect();
        Ok(Operation { work: Work::AttentionBackward(AttentionBackward(work)), takes: takes.0, gives })
    }

    pub fn counts(&self) -> impl Iterator<Item = usize> {
        self.0.counts()
    }

    pub(super) fn attention(&self) -> &Attention {
        &self.0
    }

    pub fn run<V: Value>(&self, taken: &[Taken<V>]) -> Vec<Vec<V>> {
        let lengths = self.0.lengths(taken);
        let lengths = lengths.as_ref().map(|(queries, keys)| (&queries[..], &keys[..]));
        let inputs =
            Inputs { q: taken[0].1, k: taken[1].1, v: taken[2].1, scale: self.0.scale(taken), lengths };
        let (o, statistics, d_o) = (taken[3].1, taken[4].1, taken[5].1);
        let (dq, dk, dv) = attention::backward(&self.0.shape, &inputs, (o, statistics, d_o));
        let mut made = vec![dq, dk, dv];
        if let Some(sink) = self.0.sink.filter(|_| self.0.gives[0]) {
            made.push(d_sink(&self.0.shape, taken[sink].1, (o, statistics, d_o)));
        }
        made
    }
}

/// What a sink takes from all other chances: its own, times the mean that they have.
fn d_sink<V: Value>(shape: &Shape, sink: &[V], (o, statistics, d_o): (&[V], &[V], &[V])) -> Vec<V> {
    let mut sums = vec![0.0; shape.heads];
    let rows = o.chunks(shape.width).zip(d_o.chunks(shape.width)).zip(statistics);
    for (number, ((o, d_o), statistic)) in rows.enumerate() {
        let head = number / shape.queries % shape.heads;
        // A query that is not there gives no sink anything.
        if *statistic > V::neg_infinity() {
            let mean: f64 = o.iter().zip(d_o).map(|(o, d_o)| o.get() * d_o.get()).sum();
            sums[head] -= (sink[head] - *statistic).get().exp() * mean;
        }
    }
    sums.into_iter().map(V::of).collect()
}
