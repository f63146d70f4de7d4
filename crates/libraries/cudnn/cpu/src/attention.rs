//! Scaled dot-product attention: `softmax(scale · q · kᵀ) · v` for each head, and its gradients.
//!
//! Scores are made for some of the queries at a time, so that they stay in a core's cache.

use cublas_cpu::{Op, gemm};
use rayon::prelude::*;

use crate::value::Value;

/// Queries whose scores are made together.
const TILE: usize = 64;

/// Heads of keys and values are each for as many of the queries' as there are more of them.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    pub batch: usize,
    pub heads: usize,
    pub key_heads: usize,
    pub value_heads: usize,
    pub queries: usize,
    pub keys: usize,
    /// Of a query and a key.
    pub depth: usize,
    /// Of a value.
    pub width: usize,
}

/// Arrays `batch × heads × queries or keys × depth or width`, and how many queries and keys each of the batch has.
#[derive(Clone, Copy)]
pub struct Inputs<'i, V> {
    pub q: &'i [V],
    pub k: &'i [V],
    pub v: &'i [V],
    pub scale: V,
    pub lengths: Option<(&'i [usize], &'i [usize])>,
}

impl Shape {
    /// Queries and keys of one of the batch.
    fn lengths<V>(&self, of: &Inputs<V>, batch: usize) -> (usize, usize) {
        let all = (self.queries, self.keys);
        of.lengths.map_or(all, |(queries, keys)| (queries[batch].min(all.0), keys[batch].min(all.1)))
    }

    /// The parts of a head: its queries, keys and values.
    fn parts<'i, V>(&self, of: &Inputs<'i, V>, batch: usize, head: usize) -> (&'i [V], &'i [V], &'i [V]) {
        let key = batch * self.key_heads + head / (self.heads / self.key_heads);
        let value = batch * self.value_heads + head / (self.heads / self.value_heads);
        (
            &of.q[(batch * self.heads + head) * self.queries * self.depth..][..self.queries * self.depth],
            &of.k[key * self.keys * self.depth..][..self.keys * self.depth],
            &of.v[value * self.keys * self.width..][..self.keys * self.width],
        )
    }
}

/// `c = alpha · op(a) · op(b) + beta · c` of matrices by rows without gaps.
fn product<V: Value>(
    ops: (Op, Op),
    (m, n, k): (usize, usize, usize),
    alpha: V,
    (a, b): (&[V], &[V]),
    beta: V,
    c: &mut [V],
) {
    assert!(a.len() >= m * k && b.len() >= k * n && c.len() >= m * n);
    let (lda, ldb) = (if ops.0 == Op::N { k } else { m }, if ops.1 == Op::N { n } else { k });
    let (m, n, k) = (m as i64, n as i64, k as i64);
    // By columns it is the product of the transposed ones.
    // SAFETY: the sizes were looked at, and c is borrowed alone.
    unsafe {
        gemm(
            ops.1,
            ops.0,
            n,
            m,
            k,
            alpha,
            b.as_ptr(),
            ldb as i64,
            a.as_ptr(),
            lda as i64,
            beta,
            c.as_mut_ptr(),
            n,
        );
    }
}

/// Scores of all queries and keys, by head.
pub fn scores<V: Value>(shape: &Shape, of: &Inputs<V>) -> Vec<V> {
    let mut all = vec![V::zero(); shape.batch * shape.heads * shape.queries * shape.keys];
    let (queries, keys) = (shape.queries, shape.keys);
    crate::pieces(&mut all, queries * keys, queries * keys * shape.depth, |number, scores| {
        let (q, k, _) = shape.parts(of, number / shape.heads, number % shape.heads);
        product((Op::N, Op::T), (queries, keys, shape.depth), of.scale, (q, k), V::zero(), scores);
    });
    all
}

/// Changes the scores of some queries.
pub type Change<'o, V> = &'o (dyn Fn(usize, usize, &mut Vec<V>) + Sync);

/// Gives a number of a smaller type.
pub type Rounding<V> = fn(V) -> V;

/// What a way forward has beside its inputs.
#[derive(Clone, Copy)]
pub struct Options<'o, V> {
    /// Scores in place of the products.
    pub scores: Option<&'o [V]>,
    /// What scores of all keys become: of which head of which batch, by its number, and from which query on.
    pub change: Option<Change<'o, V>>,
    /// For each head a score that has no key: it takes its part of the chances and gives no value.
    pub sink: Option<&'o [V]>,
    /// Whether a chance is kept, by its number among all, and what it is multiplied by then.
    pub kept: Option<(&'o (dyn Fn(usize) -> bool + Sync), f64)>,
    /// What chances are multiplied by before they are made numbers of a smaller type, and that.
    pub rounded: Option<(V, Rounding<V>)>,
}

impl<V> Default for Options<'_, V> {
    fn default() -> Self {
        Options { scores: None, change: None, sink: None, kept: None, rounded: None }
    }
}

/// What a way forward gives: the values' weighted means, and for each query the logarithm of its scores' exponentials' sum, the largest score
/// and that sum beside it.
pub struct Given<V> {
    pub o: Vec<V>,
    pub statistics: Vec<V>,
    pub most: Vec<V>,
    pub sums: Vec<V>,
    /// The largest chance, where they are rounded.
    pub largest: V,
}

/// Queries behind a sequence's end give 0, and minus infinity, as do those whose scores all are that.
pub fn forward<V: Value>(shape: &Shape, of: &Inputs<V>, options: &Options<V>) -> Given<V> {
    let head = |number: usize| {
        let (batch, head) = (number / shape.heads, number % shape.heads);
        let (queries, keys) = shape.lengths(of, batch);
        let (q, k, v) = shape.parts(of, batch, head);
        let sink = options.sink.map_or(V::neg_infinity(), |sink| sink[head]);
        let mut o = vec![V::zero(); shape.queries * shape.width];
        let mut statistics = vec![V::neg_infinity(); shape.queries];
        let (mut most_of, mut sums) = (statistics.clone(), vec![V::zero(); shape.queries]);
        let mut scores = vec![V::zero(); TILE * keys];
        let mut changed = Vec::new();
        let mut largest = V::zero();
        for first in (0..if keys == 0 { 0 } else { queries }).step_by(TILE) {
            let n = TILE.min(queries - first);
            let scores = &mut scores[..n * keys];
            let rows = (number * shape.queries + first) * shape.keys;
            let given = options.scores.map(|given| &given[rows..rows + n * shape.keys]);
            if given.is_some() || options.change.is_some() {
                changed.clear();
                match given {
                    Some(given) => changed.extend_from_slice(given),
                    None => {
                        changed.resize(n * shape.keys, V::zero());
                        let (q, k) = (&q[first * shape.depth..], k);
                        let sizes = (n, shape.keys, shape.depth);
                        product((Op::N, Op::T), sizes, of.scale, (q, k), V::zero(), &mut changed);
                    }
                }
                if let Some(change) = options.change {
                    change(number, first, &mut changed);
                }
                for (to, from) in scores.chunks_mut(keys).zip(changed.chunks(shape.keys)) {
                    to.copy_from_slice(&from[..keys]);
                }
            } else {
                let q = &q[first * shape.depth..];
                product((Op::N, Op::T), (n, keys, shape.depth), of.scale, (q, k), V::zero(), scores);
            }
            for (row, scores) in scores.chunks_mut(keys).enumerate() {
                let most = scores.iter().fold(sink, |most, score| most.max(*score));
                if most == V::neg_infinity() {
                    scores.fill(V::zero());
                    continue;
                }
                let mut sum = (sink - most).exp();
                for score in scores.iter_mut() {
                    *score = (*score - most).exp();
                    sum += *score;
                }
                scores.iter_mut().for_each(|score| *score /= sum);
                (statistics[first + row], most_of[first + row], sums[first + row]) =
                    (most + sum.ln(), most, sum);
                if let Some((is_kept, factor)) = options.kept {
                    let place = (number * shape.queries + first + row) * shape.keys;
                    for (at, score) in scores.iter_mut().enumerate() {
                        let factor = if is_kept(place + at) { V::of(factor) } else { V::zero() };
                        *score *= factor;
                    }
                }
                if let Some((factor, rounded)) = options.rounded {
                    largest = scores.iter().fold(largest, |largest, score| largest.max(*score));
                    scores.iter_mut().for_each(|score| *score = rounded(*score * factor));
                }
            }
            let o = &mut o[first * shape.width..];
            product((Op::N, Op::N), (n, shape.width, keys), V::one(), (scores, v), V::zero(), o);
        }
        Given { o, statistics, most: most_of, sums, largest }
    };
    let heads: Vec<Given<V>> = (0..shape.batch * shape.heads).into_par_iter().map(head).collect();
    let mut all = Given {
        o: Vec::new(),
        statistics: Vec::new(),
        most: Vec::new(),
        sums: Vec::new(),
        largest: V::zero(),
    };
    for head in heads {
        all.o.extend(head.o);
        all.statistics.extend(head.statistics);
        all.most.extend(head.most);
        all.sums.extend(head.sums);
        all.largest = all.largest.max(head.largest);
    }
    all
}

fn common(a: usize, b: usize) -> usize {
    if b == 0 { a } else { common(b, a % b) }
}

/// The gradients of queries, keys and values from that of the result, which is given with its statistics.
pub fn backward<V: Value>(
    shape: &Shape,
    of: &Inputs<V>,
    (o, statistics, d_o): (&[V], &[V], &[V]),
) -> (Vec<V>, Vec<V>, Vec<V>) {
    // What is added to the same keys or values is one core's.
    let groups = common(shape.key_heads, shape.value_heads);
    let (heads, key_heads, value_heads) =
        (shape.heads / groups, shape.key_heads / groups, shape.value_heads / groups);
    let group = |number: usize| {
        let (batch, group) = (number / groups, number % groups);
        let (queries, keys) = shape.lengths(of, batch);
        let (of_q, of_k, of_v) =
            (shape.queries * shape.depth, shape.keys * shape.depth, shape.keys * shape.width);
        let mut dq = vec![V::zero(); heads * of_q];
        let mut dk = vec![V::zero(); key_heads * of_k];
        let mut dv = vec![V::zero(); value_heads * of_v];
        let (mut chances, mut slopes) = (vec![V::zero(); TILE * keys], vec![V::zero(); TILE * keys]);
        for own in 0..if keys == 0 { 0 } else { heads } {
            let head = group * heads + own;
            let (q, k, v) = shape.parts(of, batch, head);
            let dk = &mut dk[own / (heads / key_heads) * of_k..][..of_k];
            let dv = &mut dv[own / (heads / value_heads) * of_v..][..of_v];
            let row = (batch * shape.heads + head) * shape.queries;
            for first in (0..queries).step_by(TILE) {
                let n = TILE.min(queries - first);
                let (chances, slopes) = (&mut chances[..n * keys], &mut slopes[..n * keys]);
                let q = &q[first * shape.depth..];
                let results = (row + first) * shape.width..(row + first + n) * shape.width;
                let (o, d_o) = (&o[results.clone()], &d_o[results]);
                product((Op::N, Op::T), (n, keys, shape.depth), of.scale, (q, k), V::zero(), chances);
                for (at, chances) in chances.chunks_mut(keys).enumerate() {
                    let statistic = statistics[row + first + at];
                    chances.iter_mut().for_each(|chance| *chance = (*chance - statistic).exp());
                }
                product((Op::T, Op::N), (keys, shape.width, n), V::one(), (chances, d_o), V::one(), dv);
                product((Op::N, Op::T), (n, keys, shape.width), V::one(), (d_o, v), V::zero(), slopes);
                let rows = o.chunks(shape.width).zip(d_o.chunks(shape.width));
                for ((o, d_o), (slopes, chances)) in
                    rows.zip(slopes.chunks_mut(keys).zip(chances.chunks(keys)))
                {
                    let mean = o.iter().zip(d_o).fold(V::zero(), |sum, (o, d_o)| sum + *o * *d_o);
                    slopes
                        .iter_mut()
                        .zip(chances)
                        .for_each(|(slope, chance)| *slope = *chance * (*slope - mean));
                }
                let dq = &mut dq[own * of_q + first * shape.depth..];
                product((Op::N, Op::N), (n, shape.depth, keys), of.scale, (slopes, k), V::zero(), dq);
                product((Op::T, Op::N), (keys, shape.depth, n), of.scale, (slopes, q), V::one(), dk);
            }
        }
        (dq, dk, dv)
    };
    let found: Vec<_> = (0..shape.batch * groups).into_par_iter().map(group).collect();
    let (mut dq, mut dk, mut dv) = (Vec::new(), Vec::new(), Vec::new());
    for (of_q, of_k, of_v) in found {
        dq.extend(of_q);
        dk.extend(of_k);
        dv.extend(of_v);
    }
    (dq, dk, dv)
}
