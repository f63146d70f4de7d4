//! Attention as one operation by kernels of ours: products with what is between them, for as many heads at a time as there is room for.

use cudnn_cpu::Kind;
use cudnn_cpu::attention::Shape;
use cudnn_cpu::pointwise::{Pointwise, Two};
use cudnn_cpu::reduction::Reduction;
use kit::Address;

use super::attention::{Attention, AttentionBackward, Drop, Scores as Changes};
use super::device::{Places, Tensors};
use super::kernels::{self, Run};
use super::parts::Part;
use super::plan::{Given, Operation, Tensor};
use crate::Result;
use crate::hip::objects::Room;
use crate::kernels::attention::{Beside, Scores, Slopes};
use crate::kernels::elements;
use crate::kernels::moves::{Random, Spread, Whole};
use crate::kernels::product::Matrices;
use crate::kernels::rows::Over;
use crate::kernels::tensor::Operand;

/// Bytes of scores that are made together.
const SCORES: usize = 1 << 28;

/// Some heads of one of the batch.
#[derive(Clone, Copy)]
struct Heads {
    batch: usize,
    first: usize,
    count: usize,
}

/// The operation's tensors with heads of queries apart from those that share keys or values.
struct Of<'r> {
    run: Run<'r>,
    shape: Shape,
    operation: &'r Operation,
    lengths: Option<(usize, usize)>,
}

/// Memory of the run's for heads, by head, row and column.
struct Made {
    room: Room,
    sizes: [usize; 3],
}

impl Made {
    fn new(run: &Run, sizes: [usize; 3]) -> Option<Made> {
        let room = run.call.room(4 * sizes.iter().product::<usize>()).ok()?;
        Some(Made { room, sizes })
    }

    /// By head, row and column; of a way back also turned.
    fn at(&self, is_turned: bool) -> Option<Operand> {
        let [_, rows, columns] = self.sizes.map(|size| size as i64);
        let within = if is_turned { [1, columns] } else { [columns, 1] };
        Operand::memory(self.room.at().cast(), Kind::F32, [&[rows * columns], &within[..]].concat())
    }
}

impl Of<'_> {
    /// Parts of heads that share keys and values, as many together as scores have room for.
    fn parts(&self) -> impl Iterator<Item = Heads> + use<> {
        let Shape { batch, heads, key_heads, value_heads, queries, keys, .. } = self.shape;
        let (of_key, of_value) = (heads / key_heads, heads / value_heads);
        let unit = if of_key.is_multiple_of(of_value) {
            of_key
        } else if of_value.is_multiple_of(of_key) {
            of_value
        } else {
            heads
        };
        let room = SCORES / (4 * queries * keys).max(1);
        let count = (room / unit * unit).clamp(unit, heads);
        (0..batch).flat_map(move |batch| {
            (0..heads).step_by(count).map(move |first| Heads {
                batch,
                first,
                count: count.min(heads - first),
            })
        })
    }

    /// A tensor's heads, rows and columns, which are turned where it is asked for; `share` heads of queries have one of it.
    fn heads(&self, uid: i64, of: Heads, share: usize, is_turned: bool) -> Option<Operand> {
        let tensor = self.run.tensor(uid);
        let [batch, head, row, column] = [0, 1, 2, 3].map(|at: usize| tensor.strides[at] as i64);
        let within = if is_turned { [column, row] } else { [row, column] };
        let along = if share == 1 { vec![head] } else { vec![head, 0] };
        let begin = of.batch as i64 * batch + (of.first / share) as i64 * head;
        Some(self.run.strided(uid, [&along[..], &within].concat())?.moved(begin))
    }

    /// A number for each head and query.
    fn of_queries(&self, uid: Option<i64>, of: Heads) -> Option<Operand> {
        let Some(uid) = uid else { return Some(Operand::none()) };
        let tensor = self.run.tensor(uid);
        let stride = |at: usize| if tensor.sizes[at] == 1 { 0 } else { tensor.strides[at] as i64 };
        let begin = of.batch as i64 * stride(0) + of.first as i64 * stride(1);
        Some(self.run.strided(uid, vec![stride(1), stride(2), 0])?.moved(begin))
    }

    /// How many queries and keys the sequence has.
    fn lengths(&self, of: Heads) -> Option<[Operand; 2]> {
        let Some((queries, keys)) = self.lengths else { return Some([Operand::none(), Operand::none()]) };
        let number = |place: usize| {
            let tensor = self.run.tensor(self.operation.takes[place]);
            let axis = (0..tensor.sizes.len()).find(|&at| tensor.sizes[at] > 1);
            let stride = axis.map_or(0, |axis| tensor.strides[axis] as i64);
            Some(self.run.strided(tensor.uid, vec![0; 3])?.moved(of.batch as i64 * stride))
        };
        Some([number(queries)?, number(keys)?])
    }

    /// `c = by · a · b` for each of the heads, of which `share` have one of the second or the result.
    fn product(
        &self,
        of: Heads,
        share: usize,
        [rows, columns, depth]: [usize; 3],
        matrices: [&Operand; 3],
        limits: [&Operand; 3],
        by: f32,
    ) -> Result<bool> {
        let batch = if share == 1 { vec![of.count] } else { vec![of.count / share, share] };
        // What has a stride for all heads has one for those that share.
        let apart = matrices.map(|it| {
            let mut it = it.clone();
            if it.strides.len() < batch.len() + 2 {
                it.strides.insert(0, it.strides[0] * share as i64);
            }
            it
        });
        let [a, b, c] = &apart;
        self.run.call.product(&Matrices { batch, rows, columns, depth }, [a, b, c], limits, [by, 0.0])
    }

    /// The heads' scores: the factor is here or, in the device's memory, multiplied behind it.
    fn scores(&self, of: Heads, scale: Option<usize>, lengths: &[Operand; 2]) -> Result<Option<Made>> {
        let Shape { queries, keys, depth, .. } = self.shape;
        let share = self.shape.heads / self.shape.key_heads;
        let takes = &self.operation.takes;
        let number = scale.map_or(Some(1.0), |place| self.run.number(takes[place]));
        let made = Made::new(&self.run, [of.count, queries, keys]);
        let both = self.heads(takes[0], of, 1, false).zip(self.heads(takes[1], of, share, true));
        let (Some(made), Some((q, k))) = (made, both) else { return Ok(None) };
        let Some(to) = made.at(false) else { return Ok(None) };
        let [rows, columns] = lengths;
        let limits = [rows, columns, &Operand::none()];
        let by = number.unwrap_or(1.0) as f32;
        if !self.product(of, share, [queries, keys, depth], [&q, &k, &to], limits, by)? {
            return Ok(None);
        }
        if let (None, Some(place)) = (number, scale) {
            let Some(factor) = self.run.strided(takes[place], vec![0; 3]) else { return Ok(None) };
            let Some(how) = elements::How::of(MULTIPLIED, (1.0, 1.0)) else { return Ok(None) };
            if !self.run.call.elements(how, &made.sizes, &to, &[to.clone(), factor])? {
                return Ok(None);
            }
        }
        Ok(Some(made))
    }

    fn packed(&self, of: Heads, made: &Made) -> Option<Scores> {
        let Shape { queries, keys, .. } = self.shape;
        Some(Scores { heads: of.count, queries, keys, at: made.at(false)? })
    }
}

const MULTIPLIED: Pointwise = Pointwise::Two(Two::Mul);

impl Attention {
    /// Whether kernels have all of it: not what is computed in 8 bits, masks of tiles and pages.
    pub fn is_for_kernels(&self) -> bool {
        self.eight.is_none()
            && self.blocks.is_none()
            && self.pages == [None; 2]
            && self.gives[4..] == [false; 2]
            && self.shape.queries * self.shape.keys > 0
    }

    pub fn run_on_kernels(&self, run: Run, operation: &Operation) -> Result<bool> {
        if !run.is_apart(operation) {
            return Ok(false);
        }
        let of = Of { run, shape: self.shape, operation, lengths: self.lengths };
        for heads in of.parts() {
            if !self.heads_on_kernels(&of, heads)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn heads_on_kernels(&self, of: &Of, heads: Heads) -> Result<bool> {
        let Shape { queries, keys, width, .. } = self.shape;
        let mut given = of.operation.gives[1..].iter().copied();
        let [statistics, most, sums, dump] =
            [0, 1, 2, 3].map(|at: usize| self.gives[at].then(|| given.next()).flatten());
        let share = self.shape.heads / self.shape.value_heads;
        let operands = || {
            Some((
                of.lengths(heads)?,
                [of.of_queries(statistics, heads)?, of.of_queries(most, heads)?, of.of_queries(sums, heads)?],
                of.of_queries(self.sink.map(|place| of.operation.takes[place]), heads)?,
                of.heads(of.operation.takes[2], heads, share, false)?,
                of.heads(of.operation.gives[0], heads, 1, false)?,
            ))
        };
        let Some((lengths, given, sink, v, o)) = operands() else { return Ok(false) };
        let Some(mut made) = of.scores(heads, self.scale, &lengths)? else { return Ok(false) };
        if let Some(changes) = &self.scores {
            match of.run.changed(changes, &self.shape, heads, made)? {
                Some(changed) => made = changed,
                None => return Ok(false),
            }
        }
        let Some(scores) = of.packed(heads, &made) else { return Ok(false) };
        let factor = if self.is_binary { core::f64::consts::LOG2_E } else { 1.0 };
        let beside = Beside { given, sink, lengths: lengths.clone(), factor };
        if !of.run.call.attend(&scores, beside)? {
            return Ok(false);
        }
        if let Some(drop) = &self.drop
            && !of.dropped(drop, heads, &made, dump)?
        {
            return Ok(false);
        }
        let [rows, depth] = &lengths;
        let limits = [rows, &Operand::none(), depth];
        of.product(heads, share, [queries, width, keys], [&scores.at, &v, &o], limits, 1.0)
    }
}

impl Of<'_> {
    /// Drops chances; what is kept is told to a tensor, if there is one for it.
    fn dropped(&self, drop: &Drop, of: Heads, chances: &Made, dump: Option<i64>) -> Result<bool> {
        let Shape { heads, queries, keys, .. } = self.shape;
        let first = (of.batch * heads + of.first) * queries * keys;
        let whole = |place: Option<usize>| match place {
            Some(place) => self.run.whole(self.operation.takes[place]),
            None => Some(Whole::Number(0)),
        };
        let (Some(seed), Some(offset), Some(at)) = (whole(drop.seed), whole(drop.offset), chances.at(false))
        else {
            return Ok(false);
        };
        let mut how = Random { seed, offset, spread: Spread::Bernoulli(drop.kept), factor: 1.0 };
        if let Some(uid) = dump {
            let Some(to) = self.heads(uid, of, 1, false) else { return Ok(false) };
            if !self.run.call.draw(&how, (&chances.sizes, first), &to, &Operand::none())? {
                return Ok(false);
            }
        }
        how.factor = 1.0 / drop.kept;
        self.run.call.draw(&how, (&chances.sizes, first), &at, &at)
    }
}

impl Run<'_> {
    /// Scores of the heads as a graph of the program's changes them.
    fn changed(&self, by: &Changes, shape: &Shape, of: Heads, scores: Made) -> Result<Option<Made>> {
        let all = [shape.batch, shape.heads, shape.queries];
        let part =
            Part { all, batch: of.batch, heads: of.first..of.first + of.count, rows: 0..shape.queries };
        let (graph, input, output) = by.parts();
        let (mut tensors, mut places) = (Tensors::new(), Places::new());
        let mut rooms = Vec::new();
        for (uid, tensor) in graph.tensors() {
            let (mut own, _) = tensor.part(&part);
            if !own.is_virtual {
                if let Some(place) = self.moved(tensor, &own) {
                    places.insert(*uid, place);
                }
                tensors.insert(*uid, own);
                continue;
            }
            own.strides = packed(&own.sizes);
            let count = own.elements();
            let room = if *uid == input { None } else { self.call.room(4 * count).ok() };
            let at = match &room {
                Some(room) => room.at(),
                None if *uid == input => scores.room.at(),
                None => return Ok(None),
            };
            places.insert(*uid, Given::Made(Address(at.cast()), Kind::F32));
            rooms.push((*uid, room));
            tensors.insert(*uid, own);
        }
        let run = Run { call: self.call, tensors: &tensors, places: &places };
        for operation in graph.operations() {
            if !kernels::is_there(&tensors, operation) || !run.operation(operation)? {
                return Ok(None);
            }
        }
        let result = rooms.into_iter().find(|(uid, _)| *uid == output).and_then(|(_, room)| room);
        Ok(result.map(|room| Made { room, sizes: scores.sizes }))
    }

    /// Where a part of a tensor begins.
    fn moved(&self, whole: &Tensor, part: &Tensor) -> Option<Given> {
        let begin: isize = (0..part.first.len().min(part.sizes.len()))
            .map(|at| {
                if whole.sizes[at] == part.sizes[at] { 0 } else { part.first[at] as isize * part.strides[at] }
            })
            .sum();
        let step = |kind: Kind| begin * kind.bytes() as isize;
        Some(match self.places.get(&whole.uid)? {
            Given::Memory(at) => Given::Memory(Address(at.get().wrapping_offset(step(whole.kind)))),
            Given::Made(at, kind) => Given::Made(Address(at.get().wrapping_offset(step(*kind))), *kind),
            Given::Value(value) => Given::Value(*value),
        })
    }
}

fn packed(sizes: &[usize]) -> Vec<isize> {
    let mut strides = vec![1; sizes.len()];
    for at in (1..sizes.len()).rev() {
        strides[at - 1] = strides[at] * sizes[at] as isize;
    }
    strides
}

impl AttentionBackward {
    pub fn run_on_kernels(&self, run: Run, operation: &Operation) -> Result<bool> {
        let by = self.attention();
        let of = Of { run, shape: by.shape, operation, lengths: by.lengths };
        if !run.is_apart(operation) {
            return Ok(false);
        }
        let Some(means) = Made::new(&run, [by.shape.batch, by.shape.heads, by.shape.queries]) else {
            return Ok(false);
        };
        for heads in of.parts() {
            if !heads_backward(&of, by.scale, heads, &means)? {
                return Ok(false);
            }
        }
        match (by.sink, operation.gives.get(3)) {
            (Some(sink), Some(d_sink)) => of.sink_backward(operation.takes[sink], *d_sink, &means),
            _ => Ok(true),
        }
    }
}

/// A way back of some heads: scores that become chances, and gradients of chances that become those of scores.
struct Back<'o, 'r> {
    of: &'o Of<'r>,
    heads: Heads,
    /// The factor of scores.
    by: f32,
    lengths: [Operand; 2],
    scores: Made,
    slopes: Made,
}

fn heads_backward(of: &Of, scale: Option<usize>, heads: Heads, means: &Made) -> Result<bool> {
    let Shape { queries, keys, .. } = of.shape;
    let by = scale.map_or(Some(1.0), |place| of.run.number(of.operation.takes[place]));
    let (Some(by), Some(lengths)) = (by, of.lengths(heads)) else { return Ok(false) };
    let scores = of.scores(heads, scale, &lengths)?;
    let slopes = Made::new(&of.run, [heads.count, queries, keys]);
    let (Some(scores), Some(slopes)) = (scores, slopes) else { return Ok(false) };
    let back = Back { of, heads, by: by as f32, lengths, scores, slopes };
    Ok(back.chances()? && back.slopes(means)? && back.gradients()?)
}

impl Back<'_, '_> {
    fn takes(&self, place: usize) -> i64 {
        self.of.operation.takes[place]
    }

    /// Gradients of chances.
    fn chances(&self) -> Result<bool> {
        let (of, Shape { queries, keys, width, .. }) = (self.of, self.of.shape);
        let share = of.shape.heads / of.shape.value_heads;
        let d_o = of.heads(self.takes(5), self.heads, 1, false);
        let v = of.heads(self.takes(2), self.heads, share, true);
        let (Some(d_o), Some(v), Some(to)) = (d_o, v, self.slopes.at(false)) else { return Ok(false) };
        let [rows, columns] = &self.lengths;
        let limits = [rows, columns, &Operand::none()];
        of.product(self.heads, share, [queries, keys, width], [&d_o, &v, &to], limits, 1.0)
    }

    /// Results or their gradients, and how far elements of a row are from each other.
    fn rows(&self, uid: i64) -> Option<(Operand, i64)> {
        let mut at = self.of.heads(uid, self.heads, 1, false)?;
        let step = core::mem::take(at.strides.last_mut()?);
        Some((at, step))
    }

    /// Makes chances of scores, and gradients of scores of those of chances.
    fn slopes(&self, means: &Made) -> Result<bool> {
        let (of, heads) = (self.of, self.heads);
        let queries = of.shape.queries;
        let means = means.at(false).map(|mut at| {
            let begin = (heads.batch * of.shape.heads + heads.first) * queries;
            at.strides = vec![queries as i64, 1, 0];
            at.moved(begin as i64)
        });
        let by = || {
            Some(Slopes {
                at: self.slopes.at(false)?,
                statistics: of.of_queries(Some(self.takes(4)), heads)?,
                means: means?,
                results: [self.rows(self.takes(3))?, self.rows(self.takes(5))?],
                width: of.shape.width,
                lengths: self.lengths.clone(),
            })
        };
        match of.packed(heads, &self.scores).zip(by()) {
            Some((scores, by)) => of.run.call.attend_backward(&scores, by),
            None => Ok(false),
        }
    }

    /// Of queries, keys and values.
    fn gradients(&self) -> Result<bool> {
        let (of, heads) = (self.of, self.heads);
        let Shape { queries, keys, depth, width, .. } = of.shape;
        let of_key = of.shape.heads / of.shape.key_heads;
        let of_value = of.shape.heads / of.shape.value_heads;
        let [dq, dk, dv] = [0, 1, 2].map(|at: usize| of.operation.gives[at]);
        let q_and_k =
            of.heads(self.takes(0), heads, 1, false).zip(of.heads(self.takes(1), heads, of_key, false));
        let slopes = self.slopes.at(false).zip(self.slopes.at(true));
        let others = self.scores.at(true).zip(of.heads(dq, heads, 1, false));
        let (Some((q, k)), Some((slopes, turned)), Some((chances, dq)), Some(d_o)) =
            (q_and_k, slopes, others, of.heads(self.takes(5), heads, 1, false))
        else {
            return Ok(false);
        };
        let [rows, columns] = &self.lengths;
        let limits = [rows, &Operand::none(), columns];
        Ok(of.product(heads, of_key, [queries, depth, keys], [&slopes, &k, &dq], limits, self.by)?
            && of.shared_product(heads, of_key, (dk, depth), [&turned, &q], &self.lengths, self.by)?
            && of.shared_product(heads, of_value, (dv, width), [&chances, &d_o], &self.lengths, 1.0)?)
    }
}

impl Of<'_> {
    /// Gradients of keys or values: sums over the queries of all heads that share them.
    fn shared_product(
        &self,
        of: Heads,
        share: usize,
        (uid, columns): (i64, usize),
        [a, b]: [&Operand; 2],
        lengths: &[Operand; 2],
        by: f32,
    ) -> Result<bool> {
        let Shape { queries, keys, .. } = self.shape;
        let [depth, rows] = lengths;
        let (sizes, limits) = ([keys, columns, queries], [rows, &Operand::none(), depth]);
        if share == 1 {
            let Some(to) = self.heads(uid, of, 1, false) else { return Ok(false) };
            return self.product(of, 1, sizes, [a, b, &to], limits, by);
        }
        let Some(made) = Made::new(&self.run, [of.count, keys, columns]) else { return Ok(false) };
        let shared = Heads { count: of.count / share, ..of };
        let tensor = self.run.tensor(uid);
        let begin =
            of.batch as i64 * tensor.strides[0] as i64 + (of.first / share) as i64 * tensor.strides[1] as i64;
        let strides = [1, 2, 3].map(|at: usize| tensor.strides[at] as i64);
        let to = self.run.strided(uid, vec![strides[0], 0, strides[1], strides[2]]);
        let (Some(from), Some(to)) = (made.at(false), to) else { return Ok(false) };
        if !self.product(of, 1, sizes, [a, b, &from], limits, by)? {
            return Ok(false);
        }
        let mut apart = from;
        apart.strides.insert(0, apart.strides[0] * share as i64);
        let over =
            Over { sizes: &[shared.count, share, keys, columns], is_inner: &[false, true, false, false] };
        let add = Reduction::Add;
        self.run.call.reduce(add, true, [1.0, 0.0], over, [&apart, &to.moved(begin)])
    }

    fn sink_backward(&self, sink: i64, d_sink: i64, means: &Made) -> Result<bool> {
        let statistics = self.run.tensor(self.operation.takes[4]);
        let head = |uid: i64| {
            let stride = self.run.tensor(uid).strides[1] as i64;
            self.run.strided(uid, vec![0, stride, 0])
        };
        let strides = [0, 1, 2].map(|at: usize| statistics.strides[at] as i64);
        let operands =
            (head(sink), self.run.strided(statistics.uid, strides.to_vec()), means.at(false), head(d_sink));
        let (Some(sink), Some(statistics), Some(means), Some(d_sink)) = operands else { return Ok(false) };
        let sizes = [self.shape.batch, self.shape.heads, self.shape.queries];
        self.run.call.sink_backward(&sizes, &[sink, statistics, means, d_sink])
    }
}
