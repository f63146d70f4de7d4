//! Recurrent networks: what a network's weights and steps are. The way forward is `forward.rs`'s, the ways back `backward.rs`'s.
//!
//! Sequences are sorted by length, the longest first: what a step has are the first rows of the batch, and the rows of all steps lie behind
//! each other. The inputs' products of all steps are one product; what a step needs of the one before it is done step by step.

mod backward;
mod forward;

pub use backward::{Gradients, data, weights};
pub use forward::{Results, forward};

use cublas_cpu::{Op, gemm};

use crate::dropout::{State, keeps};
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cell {
    Relu,
    Tanh,
    Lstm,
    Gru,
}

impl Cell {
    /// Matrices of a layer that the input is multiplied with, and as many for the state.
    pub fn gates(self) -> usize {
        match self {
            Cell::Relu | Cell::Tanh => 1,
            Cell::Lstm => 4,
            Cell::Gru => 3,
        }
    }

    /// Numbers per row and hidden element that the way back needs: gates, and the GRU's share of the state in its new memory.
    pub fn kept(self) -> usize {
        match self {
            Cell::Gru => 4,
            _ => self.gates(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Network {
    pub cell: Cell,
    pub input: usize,
    pub hidden: usize,
    /// What an LSTM's output is projected to.
    pub projected: Option<usize>,
    pub layers: usize,
    pub directions: usize,
    /// The input is not multiplied but added to each gate.
    pub skips_input: bool,
    /// Whether there is a bias beside the input's products, and beside the state's.
    pub biases: (bool, bool),
    pub clip: Option<Clip>,
}

/// Bounds of an LSTM's cells, and whether a NaN stays one; else it becomes the lower bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clip {
    pub low: f64,
    pub high: f64,
    pub keeps_nan: bool,
}

/// Where a matrix or a vector lies among the weights, in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub first: usize,
    pub rows: usize,
    pub columns: usize,
}

impl Network {
    pub fn output(&self) -> usize {
        self.projected.unwrap_or(self.hidden)
    }

    /// A layer in one direction is a pseudo layer: two for each layer of a network of two directions.
    pub fn pseudo_layers(&self) -> usize {
        self.layers * self.directions
    }

    pub fn inputs(&self, layer: usize) -> usize {
        if layer == 0 { self.input } else { self.directions * self.output() }
    }

    /// Sizes of the matrix: the first are of the input, one for each gate, then as many of the state, then the projection.
    fn shape(&self, pseudo: usize, linear: usize) -> (usize, usize) {
        let (gates, layer) = (self.cell.gates(), pseudo / self.directions);
        if linear < gates {
            if layer == 0 && self.skips_input { (0, 0) } else { (self.hidden, self.inputs(layer)) }
        } else if linear < 2 * gates {
            (self.hidden, self.output())
        } else if let (true, Some(projected)) = (linear == 2 * gates, self.projected) {
            (projected, self.hidden)
        } else {
            (0, 0)
        }
    }

    fn matrices(&self) -> usize {
        2 * self.cell.gates() + 1
    }

    fn size(&self, pseudo: usize, linear: core::ops::Range<usize>) -> usize {
        linear.map(|linear| self.shape(pseudo, linear)).map(|(rows, columns)| rows * columns).sum()
    }

    fn all_matrices(&self) -> usize {
        (0..self.pseudo_layers()).map(|pseudo| self.size(pseudo, 0..self.matrices())).sum()
    }

    /// Where a matrix lies, if there is one: all matrices, and then all biases, by pseudo layer.
    pub fn matrix(&self, pseudo: usize, linear: usize) -> Option<Place> {
        let (rows, columns) = self.shape(pseudo, linear);
        let before: usize = (0..pseudo).map(|pseudo| self.size(pseudo, 0..self.matrices())).sum();
        let first = before + self.size(pseudo, 0..linear);
        (rows > 0).then_some(Place { first, rows, columns })
    }

    /// Where the bias beside a matrix lies, if there is one.
    pub fn bias(&self, pseudo: usize, linear: usize) -> Option<Place> {
        let gates = self.cell.gates();
        let (of_input, of_state) = (usize::from(self.biases.0) * gates, usize::from(self.biases.1) * gates);
        let at = match linear {
            linear if linear < gates => self.biases.0.then_some(linear)?,
            linear if linear < 2 * gates => self.biases.1.then_some(of_input + linear - gates)?,
            _ => return None,
        };
        let first = self.all_matrices() + (pseudo * (of_input + of_state) + at) * self.hidden;
        Some(Place { first, rows: self.hidden, columns: 1 })
    }

    /// Elements of all weights.
    pub fn weights(&self) -> usize {
        let vectors = (usize::from(self.biases.0) + usize::from(self.biases.1)) * self.cell.gates();
        self.all_matrices() + self.pseudo_layers() * vectors * self.hidden
    }

    /// The input's matrices of a pseudo layer, which lie behind each other.
    fn of_input<'w, V>(&self, weights: &'w [V], pseudo: usize) -> Option<&'w [V]> {
        let place = self.matrix(pseudo, 0)?;
        Some(&weights[place.first..][..self.cell.gates() * place.rows * place.columns])
    }

    /// The state's matrices.
    fn of_state<'w, V>(&self, weights: &'w [V], pseudo: usize) -> &'w [V] {
        let gates = self.cell.gates();
        let first = self.matrix(pseudo, gates).map_or(0, |place| place.first);
        &weights[first..][..gates * self.hidden * self.output()]
    }

    fn projection<'w, V>(&self, weights: &'w [V], pseudo: usize) -> Option<&'w [V]> {
        let place = self.matrix(pseudo, 2 * self.cell.gates())?;
        Some(&weights[place.first..][..place.rows * place.columns])
    }

    /// The vector beside a matrix.
    fn vector<'w, V>(&self, weights: &'w [V], pseudo: usize, linear: usize) -> Option<&'w [V]> {
        Some(&weights[self.bias(pseudo, linear)?.first..][..self.hidden])
    }

    /// Elements that a training's reserve space has for so many rows.
    pub fn reserve(&self, rows: usize) -> usize {
        self.pseudo_layers() * (self.ahead(rows) + self.back(rows))
    }

    /// Elements of a pseudo layer's record that the way forward writes: gates, cells and outputs.
    pub fn ahead(&self, rows: usize) -> usize {
        let cells = if self.cell == Cell::Lstm { self.hidden } else { 0 };
        rows * (self.cell.kept() * self.hidden + cells + self.output())
    }

    /// Elements that the way back writes: gradients in front of the gates' functions, and of what is projected.
    pub fn back(&self, rows: usize) -> usize {
        rows * (self.cell.kept() * self.hidden + self.projected.unwrap_or(0))
    }
}

/// What the way forward keeps of a pseudo layer.
struct Ahead<T> {
    gates: T,
    cells: T,
    outputs: T,
}

impl Network {
    fn split_ahead<'r, V>(&self, rows: usize, record: &'r [V]) -> Ahead<&'r [V]> {
        let (gates, rest) = record.split_at(rows * self.cell.kept() * self.hidden);
        let (cells, outputs) = rest.split_at(rest.len() - rows * self.output());
        Ahead { gates, cells, outputs }
    }

    fn split_ahead_mut<'r, V>(&self, rows: usize, record: &'r mut [V]) -> Ahead<&'r mut [V]> {
        let (gates, rest) = record.split_at_mut(rows * self.cell.kept() * self.hidden);
        let (cells, outputs) = rest.split_at_mut(rest.len() - rows * self.output());
        Ahead { gates, cells, outputs }
    }
}

/// The sequences of a batch, sorted by length.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batches {
    /// Which of the batch is at each place.
    pub order: Vec<usize>,
    /// How many sequences have each step, as far as one has it.
    pub counts: Vec<usize>,
    /// The first row of each step.
    pub firsts: Vec<usize>,
    pub rows: usize,
}

impl Batches {
    pub fn new(lengths: &[usize]) -> Batches {
        let mut order: Vec<usize> = (0..lengths.len()).collect();
        order.sort_by_key(|&at| core::cmp::Reverse(lengths[at]));
        let steps = lengths.iter().copied().max().unwrap_or(0);
        let counts: Vec<usize> =
            (0..steps).map(|step| lengths.iter().filter(|length| **length > step).count()).collect();
        let mut rows = 0;
        let mut firsts = Vec::with_capacity(steps);
        for count in &counts {
            firsts.push(rows);
            rows += count;
        }
        Batches { order, counts, firsts, rows }
    }

    pub fn size(&self) -> usize {
        self.order.len()
    }

    /// Step and sequence of each row.
    pub fn places(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.counts
            .iter()
            .enumerate()
            .flat_map(move |(step, &count)| self.order[..count].iter().map(move |&sequence| (step, sequence)))
    }

    /// The steps in a direction's order.
    pub fn steps(&self, is_reversed: bool) -> Vec<usize> {
        if is_reversed { (0..self.counts.len()).rev().collect() } else { (0..self.counts.len()).collect() }
    }

    pub fn step(&self, step: usize) -> core::ops::Range<usize> {
        self.firsts[step]..self.firsts[step] + self.counts[step]
    }

    /// The row that has the sequence's state in front of the step; `None` where the sequence begins.
    fn before(&self, is_reversed: bool, step: usize, place: usize) -> Option<usize> {
        let step = if is_reversed { step + 1 } else { step.checked_sub(1)? };
        (place < *self.counts.get(step)?).then(|| self.firsts[step] + place)
    }

    /// Rows of a batch in the sorted order, of one pseudo layer.
    fn sorted<V: Value>(&self, of: &[V], width: usize) -> Vec<V> {
        self.order.iter().flat_map(|&at| of[at * width..][..width].iter().copied()).collect()
    }

    /// The way back.
    fn unsorted<V: Value>(&self, from: &[V], width: usize, to: &mut [V]) {
        for (from, &at) in from.chunks(width).zip(&self.order) {
            to[at * width..][..width].copy_from_slice(from);
        }
    }
}

/// What lies between two layers, and what it drops.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropping {
    pub dropped: f64,
    pub state: State,
}

impl Dropping {
    /// Words that a call takes.
    pub fn taken(network: &Network, rows: usize) -> u64 {
        (network.layers.saturating_sub(1) * rows * network.directions * network.output()) as u64
    }

    /// Drops behind a layer.
    fn apply<V: Value>(&self, layer: usize, values: &mut [V]) {
        let mut state = self.state;
        state.taken = state.taken.wrapping_add((layer * values.len()) as u64);
        let (word, factor) = (state.take(values.len()), V::of(1.0 / (1.0 - self.dropped)));
        crate::pieces(values, 4096, 4 * 4096, |number, values| {
            for (at, value) in values.iter_mut().enumerate() {
                let is_kept = keeps(word(number * 4096 + at), self.dropped);
                *value = if is_kept { *value * factor } else { V::zero() };
            }
        });
    }
}

/// The outputs of a layer's directions beside each other.
fn beside<V: Value>(directions: &[&[V]], width: usize) -> Vec<V> {
    if let [one] = directions {
        return one.to_vec();
    }
    let rows = directions[0].len() / width;
    let mut all = Vec::with_capacity(directions.len() * directions[0].len());
    for row in 0..rows {
        directions.iter().for_each(|of| all.extend_from_slice(&of[row * width..][..width]));
    }
    all
}

/// A matrix's rows and how far apart they begin.
#[derive(Clone, Copy)]
struct Rows<T>(T, usize);

/// `c = op(a) · op(b) + beta · c` of matrices by rows, where c has m rows and n columns and the sums have k terms.
fn product<V: Value>(
    (op_a, op_b): (Op, Op),
    (m, n, k): (usize, usize, usize),
    a: Rows<&[V]>,
    b: Rows<&[V]>,
    beta: V,
    c: Rows<&mut [V]>,
) {
    if m == 0 || n == 0 {
        return;
    }
    let sizes =
        |op: Op, rows: usize, columns: usize| if op == Op::N { (rows, columns) } else { (columns, rows) };
    let fits = |len: usize, ld: usize, (rows, columns): (usize, usize)| {
        rows == 0 || columns == 0 || (ld >= columns && len >= (rows - 1) * ld + columns)
    };
    assert!(fits(a.0.len(), a.1, sizes(op_a, m, k)), "the first factor");
    assert!(fits(b.0.len(), b.1, sizes(op_b, k, n)), "the second factor");
    assert!(fits(c.0.len(), c.1, (m, n)), "the product");
    let (a_at, b_at, c_at) = (a.0.as_ptr(), b.0.as_ptr(), c.0.as_mut_ptr());
    let (lda, ldb, ldc) = (a.1 as i64, b.1 as i64, c.1 as i64);
    // By columns it is the product of the transposed ones.
    // SAFETY: the sizes were looked at, and c is borrowed alone.
    unsafe {
        gemm(op_b, op_a, n as i64, m as i64, k as i64, V::one(), b_at, ldb, a_at, lda, beta, c_at, ldc);
    }
}

/// Runs the block for zipped pieces of slices, on several cores where there is much.
macro_rules! rows {
    ($work:expr, [$(($slice:expr, $width:expr)),+], |$number:ident, $($name:ident),+| $body:block) => {{
        use rayon::prelude::*;
        let body = |($number, ($($name,)+)): (usize, ($(rows!(@type $name),)+))| $body;
        if $work >= 4 * crate::WORTH {
            ($($slice.par_chunks_mut($width),)+).into_par_iter().enumerate().for_each(body);
        } else {
            rows!(@zip [$(($slice.chunks_mut($width)))+]).enumerate().for_each(body);
        }
    }};
    (@type $name:ident) => { &mut [V] };
    (@zip [($a:expr)]) => { $a.map(|a| (a,)) };
    (@zip [($a:expr) ($b:expr)]) => { $a.zip($b) };
    (@zip [($a:expr) ($b:expr) ($c:expr)]) => { $a.zip($b).zip($c).map(|((a, b), c)| (a, b, c)) };
    (@zip [($a:expr) ($b:expr) ($c:expr) ($d:expr)]) => {
        $a.zip($b).zip($c).zip($d).map(|(((a, b), c), d)| (a, b, c, d))
    };
}
use rows;

/// Runs both where there is more than one, on two cores where there is much to do.
fn both<A: Send, F: Fn(usize) -> A + Sync>(count: usize, work: usize, body: F) -> Vec<A> {
    if count == 2 && work >= 4 * crate::WORTH {
        let (first, second) = rayon::join(|| body(0), || body(1));
        vec![first, second]
    } else {
        (0..count).map(body).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LSTM: Network = Network {
        cell: Cell::Lstm,
        input: 5,
        hidden: 4,
        projected: Some(3),
        layers: 2,
        directions: 2,
        skips_input: false,
        biases: (true, true),
        clip: None,
    };

    #[test]
    fn weights_are_matrices_by_pseudo_layer_and_then_biases() {
        let mut at = 0;
        for pseudo in 0..4 {
            for linear in 0..9 {
                let place = LSTM.matrix(pseudo, linear).unwrap();
                let inputs = if pseudo < 2 { 5 } else { 6 };
                let sizes = [(4, inputs), (4, 3), (3, 4)][linear / 4];
                assert_eq!((place.first, place.rows, place.columns), (at, sizes.0, sizes.1));
                at += sizes.0 * sizes.1;
            }
        }
        for pseudo in 0..4 {
            for linear in 0..8 {
                assert_eq!(LSTM.bias(pseudo, linear), Some(Place { first: at, rows: 4, columns: 1 }));
                at += 4;
            }
            assert_eq!(LSTM.bias(pseudo, 8), None);
        }
        assert_eq!(LSTM.weights(), at);
        let skips = Network { input: 4, skips_input: true, biases: (false, true), projected: None, ..LSTM };
        assert_eq!((skips.matrix(1, 3), skips.bias(0, 2), skips.matrix(0, 8)), (None, None, None));
        assert_eq!(skips.matrix(0, 4).unwrap().first, 0);
    }

    #[test]
    fn sequences_are_sorted_by_length() {
        let batches = Batches::new(&[1, 3, 0, 3]);
        assert_eq!(
            (&batches.order[..], &batches.counts[..], batches.rows),
            (&[1, 3, 0, 2][..], &[3, 2, 2][..], 7)
        );
        let places: Vec<_> = batches.places().collect();
        assert_eq!(places, [(0, 1), (0, 3), (0, 0), (1, 1), (1, 3), (2, 1), (2, 3)]);
        assert_eq!((batches.before(false, 0, 0), batches.before(false, 2, 1)), (None, Some(4)));
        assert_eq!(
            (batches.before(true, 2, 0), batches.before(true, 0, 2), batches.before(true, 0, 1)),
            (None, None, Some(4))
        );
    }
}
