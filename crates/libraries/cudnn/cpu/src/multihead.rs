//! Multi-head attention with projections: what a layer's weights are, and its way forward and back for one sequence of queries.
//!
//! Each head projects queries, keys and values, weighs values by softmax over the keys of a query's window, and what the heads give is
//! projected together or stands beside each other.

use cublas_cpu::{Op, gemm};

use crate::dropout::{State, keeps};
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Layer {
    pub heads: usize,
    pub scale: f64,
    /// Of queries, keys and values.
    pub sizes: [usize; 3],
    /// What a head projects them to, if it does.
    pub projected: [Option<usize>; 3],
    /// What all heads together are projected to, if they are.
    pub output: Option<usize>,
    pub biases: bool,
}

/// Where matrices or vectors lie among the weights, in elements: one for each head, by rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub first: usize,
    pub heads: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Place {
    fn len(&self) -> usize {
        self.heads * self.rows * self.columns
    }

    fn of<'w, V>(&self, weights: &'w [V], head: usize) -> &'w [V] {
        let size = self.rows * self.columns;
        &weights[self.first + head * size..][..size]
    }

    fn of_mut<'w, V>(&self, weights: &'w mut [V], head: usize) -> &'w mut [V] {
        let size = self.rows * self.columns;
        &mut weights[self.first + head * size..][..size]
    }
}

impl Layer {
    /// What a head has of queries (and keys), keys, and values.
    fn width(&self, which: usize) -> usize {
        self.projected[which].unwrap_or(self.sizes[which])
    }

    pub fn outputs(&self) -> usize {
        self.output.unwrap_or(self.heads * self.width(2))
    }

    /// Heads, rows and columns: matrices of queries, keys, values and outputs, then the vectors beside them.
    fn shape(&self, which: usize) -> Option<(usize, usize, usize)> {
        match which {
            0..3 => Some((self.heads, self.projected[which]?, self.sizes[which])),
            3 => Some((self.heads, self.output?, self.width(2))),
            _ if !self.biases => None,
            4..7 => Some((self.heads, self.projected[which - 4]?, 1)),
            7 => Some((1, self.output?, 1)),
            _ => None,
        }
    }

    pub fn place(&self, which: usize) -> Option<Place> {
        let size =
            |which: usize| self.shape(which).map_or(0, |(heads, rows, columns)| heads * rows * columns);
        let (heads, rows, columns) = self.shape(which)?;
        Some(Place { first: (0..which).map(size).sum(), heads, rows, columns })
    }

    /// Elements of all weights.
    pub fn weights(&self) -> usize {
        (0..8).filter_map(|which| self.place(which)).map(|place| place.len()).sum()
    }
}

/// What drops elements, counted from `first`.
#[derive(Clone, Copy, Debug)]
pub struct Drops {
    pub dropped: f64,
    pub state: State,
    pub first: usize,
}

impl Drops {
    /// The factor of an element.
    fn factors<V: Value>(of: Option<Drops>, count: usize) -> Option<Vec<V>> {
        let Drops { dropped, mut state, first } = of?;
        state.taken = state.taken.wrapping_add(first as u64);
        let word = state.take(count);
        let kept = V::of(1.0 / (1.0 - dropped));
        Some((0..count).map(|at| if keeps(word(at), dropped) { kept } else { V::zero() }).collect())
    }
}

/// A sequence of queries, with the keys and values that it meets. A query's window is where its keys begin and end.
#[derive(Clone, Copy)]
pub struct Sequence<'s, V> {
    pub q: &'s [V],
    pub k: &'s [V],
    pub v: &'s [V],
    pub windows: &'s [(usize, usize)],
    /// Of the weights of values, and of what is given.
    pub drops: [Option<Drops>; 2],
}

/// `c = op(a) · op(b) + beta · c` of matrices by rows without gaps but for `ldc`.
fn product<V: Value>(
    ops: (Op, Op),
    (m, n, k): (usize, usize, usize),
    (alpha, beta): (V, V),
    (a, b): (&[V], &[V]),
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

/// What a head makes on its way forward.
struct Head<V> {
    q: Vec<V>,
    k: Vec<V>,
    v: Vec<V>,
    chances: Vec<V>,
    /// The chances with some dropped.
    weights: Vec<V>,
    factors: Option<Vec<V>>,
    made: Vec<V>,
}

impl<V: Value> Sequence<'_, V> {
    fn queries(&self) -> usize {
        self.windows.len()
    }

    fn keys(&self, of: &Layer) -> usize {
        self.k.len() / of.sizes[1]
    }

    fn head(&self, of: &Layer, weights: &[V], head: usize) -> Head<V> {
        let (queries, keys) = (self.queries(), self.keys(of));
        let project = |which: usize, from: &[V], rows: usize| {
            let Some(place) = of.place(which) else { return from.to_vec() };
            let mut to = vec![V::zero(); rows * place.rows];
            if let Some(bias) = of.place(which + 4) {
                to.chunks_mut(place.rows).for_each(|row| row.copy_from_slice(bias.of(weights, head)));
            }
            let sizes = (rows, place.rows, place.columns);
            product((Op::N, Op::T), sizes, (V::one(), V::one()), (from, place.of(weights, head)), &mut to);
            to
        };
        let (q, k, v) = (project(0, self.q, queries), project(1, self.k, keys), project(2, self.v, keys));
        let (depth, width) = (of.width(0), of.width(2));
        let mut chances = vec![V::zero(); queries * keys];
        let factors = (V::of(of.scale), V::zero());
        product((Op::N, Op::T), (queries, keys, depth), factors, (&q, &k), &mut chances);
        for (row, window) in chances.chunks_mut(keys.max(1)).zip(self.windows) {
            let (first, end) = *window;
            let most = row[first..end].iter().fold(V::neg_infinity(), |most, score| most.max(*score));
            let mut sum = V::zero();
            for (at, score) in row.iter_mut().enumerate() {
                *score = if (first..end).contains(&at) { (*score - most).exp() } else { V::zero() };
                sum += *score;
            }
            if end > first {
                row.iter_mut().for_each(|score| *score /= sum);
            }
        }
        let drops = self.drops[0].map(|drops| Drops { first: drops.first + head * queries * keys, ..drops });
        let factors = Drops::factors::<V>(drops, queries * keys);
        let mut weights = chances.clone();
        if let Some(factors) = &factors {
            weights.iter_mut().zip(factors).for_each(|(weight, factor)| *weight *= *factor);
        }
        let mut made = vec![V::zero(); queries * width];
        product((Op::N, Op::N), (queries, width, keys), (V::one(), V::zero()), (&weights, &v), &mut made);
        Head { q, k, v, chances, weights, factors, made }
    }

    /// What the layer gives for each query.
    pub fn forward(&self, of: &Layer, weights: &[V]) -> Vec<V> {
        let (queries, width, outputs) = (self.queries(), of.width(2), of.outputs());
        let mut y = vec![V::zero(); queries * outputs];
        if let Some(bias) = of.place(7) {
            y.chunks_mut(outputs).for_each(|row| row.copy_from_slice(bias.of(weights, 0)));
        }
        for head in 0..of.heads {
            let made = self.head(of, weights, head).made;
            match of.place(3) {
                Some(place) => {
                    let sizes = (queries, outputs, width);
                    let factors = (V::one(), V::one());
                    product((Op::N, Op::T), sizes, factors, (&made, place.of(weights, head)), &mut y);
                }
                None => {
                    for (y, made) in y.chunks_mut(outputs).zip(made.chunks(width)) {
                        y[head * width..][..width].copy_from_slice(made);
                    }
                }
            }
        }
        if let Some(factors) = Drops::factors::<V>(self.drops[1], y.len()) {
            y.iter_mut().zip(&factors).for_each(|(y, factor)| *y *= *factor);
        }
        for (y, (first, end)) in y.chunks_mut(outputs).zip(self.windows) {
            if first == end {
                y.fill(V::zero());
            }
        }
        y
    }

    /// Gradients of queries, keys and values; those of the weights are added to `dweights`.
    pub fn backward(&self, of: &Layer, weights: &[V], dy: &[V], dweights: &mut [V]) -> [Vec<V>; 3] {
        let (queries, keys) = (self.queries(), self.keys(of));
        let (depth, width, outputs) = (of.width(0), of.width(2), of.outputs());
        let mut dy = dy.to_vec();
        if let Some(factors) = Drops::factors::<V>(self.drops[1], dy.len()) {
            dy.iter_mut().zip(&factors).for_each(|(dy, factor)| *dy *= *factor);
        }
        for (dy, (first, end)) in dy.chunks_mut(outputs).zip(self.windows) {
            if first == end {
                dy.fill(V::zero());
            }
        }
        let sums = |rows: &[V], to: &mut [V]| {
            for row in rows.chunks(to.len().max(1)) {
                to.iter_mut().zip(row).for_each(|(to, from)| *to += *from);
            }
        };
        if let Some(bias) = of.place(7) {
            sums(&dy, bias.of_mut(dweights, 0));
        }
        let (one, zero) = (V::one(), V::zero());
        let given = [self.q, self.k, self.v];
        let mut found = given.map(|of| vec![zero; of.len()]);
        for number in 0..of.heads {
            let head = self.head(of, weights, number);
            let mut dmade = vec![zero; queries * width];
            match of.place(3) {
                Some(place) => {
                    let matrix = place.of(weights, number);
                    product(
                        (Op::N, Op::N),
                        (queries, width, outputs),
                        (one, zero),
                        (&dy, matrix),
                        &mut dmade,
                    );
                    let to = place.of_mut(dweights, number);
                    product((Op::T, Op::N), (outputs, width, queries), (one, one), (&dy, &head.made), to);
                }
                None => {
                    for (dmade, dy) in dmade.chunks_mut(width).zip(dy.chunks(outputs)) {
                        dmade.copy_from_slice(&dy[number * width..][..width]);
                    }
                }
            }
            let mut dv = vec![zero; keys * width];
            product((Op::T, Op::N), (keys, width, queries), (one, zero), (&head.weights, &dmade), &mut dv);
            let mut slopes = vec![zero; queries * keys];
            product((Op::N, Op::T), (queries, keys, width), (one, zero), (&dmade, &head.v), &mut slopes);
            if let Some(factors) = &head.factors {
                slopes.iter_mut().zip(factors).for_each(|(slope, factor)| *slope *= *factor);
            }
            for (slopes, chances) in slopes.chunks_mut(keys.max(1)).zip(head.chances.chunks(keys.max(1))) {
                let mean =
                    slopes.iter().zip(chances).fold(zero, |sum, (slope, chance)| sum + *slope * *chance);
                slopes.iter_mut().zip(chances).for_each(|(slope, chance)| *slope = *chance * (*slope - mean));
            }
            let (mut dq, mut dk) = (vec![zero; queries * depth], vec![zero; keys * depth]);
            let scale = V::of(of.scale);
            product((Op::N, Op::N), (queries, depth, keys), (scale, zero), (&slopes, &head.k), &mut dq);
            product((Op::T, Op::N), (keys, depth, queries), (scale, zero), (&slopes, &head.q), &mut dk);
            for (which, (gradient, rows)) in [(dq, queries), (dk, keys), (dv, keys)].into_iter().enumerate() {
                let Some(place) = of.place(which) else {
                    sums(&gradient, &mut found[which]);
                    continue;
                };
                let matrix = place.of(weights, number);
                let sizes = (rows, place.columns, place.rows);
                product((Op::N, Op::N), sizes, (one, one), (&gradient, matrix), &mut found[which]);
                let to = place.of_mut(dweights, number);
                let sizes = (place.rows, place.columns, rows);
                product((Op::T, Op::N), sizes, (one, one), (&gradient, given[which]), to);
                if let Some(bias) = of.place(which + 4) {
                    sums(&gradient, bias.of_mut(dweights, number));
                }
            }
        }
        found
    }
}
