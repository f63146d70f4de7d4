//! From inputs to outputs.

use std::borrow::Cow;

use cublas_cpu::{Op, vectorized};

use super::{Batches, Cell, Clip, Dropping, Network, Rows, beside, both, product, rows};
use crate::activation::sigmoid;
use crate::convolution::{single, single_mut};
use crate::onednn::{self, Lstm};
use crate::value::Value;

/// Outputs by rows, and the last states by pseudo layer and sequence.
#[derive(Clone, Debug)]
pub struct Results<V> {
    pub y: Vec<V>,
    pub h: Vec<V>,
    pub c: Vec<V>,
}

/// `x` has rows in the batches' order, `h` and `c` are the first states; a training's `reserve` has [`Network::reserve`] elements.
pub fn forward<V: Value>(
    of: &Network,
    batches: &Batches,
    weights: &[V],
    x: &[V],
    (h, c): (&[V], &[V]),
    dropping: Option<Dropping>,
    mut reserve: Option<&mut [V]>,
) -> Results<V> {
    let (count, output, hidden) = (batches.size(), of.output(), of.hidden);
    let ahead = of.ahead(batches.rows);
    let record = ahead + of.back(batches.rows);
    let is_kept = reserve.is_some();
    let mut results = Results { y: Vec::new(), h: vec![V::zero(); h.len()], c: vec![V::zero(); c.len()] };
    let mut inputs = Cow::Borrowed(x);
    for layer in 0..of.layers {
        let first = layer * of.directions;
        // What is not kept for a way back lies in memory of this layer's own.
        let mut own = Vec::new();
        let (records, size) = match &mut reserve {
            Some(reserve) => (&mut reserve[first * record..][..of.directions * record], record),
            None => {
                own.resize(of.directions * ahead, V::zero());
                (&mut own[..], ahead)
            }
        };
        let slots: Vec<_> =
            records.chunks_mut(size.max(1)).take(of.directions).map(std::sync::Mutex::new).collect();
        let work = batches.rows * hidden * output;
        let states = both(of.directions, work, |direction| {
            let pseudo = first + direction;
            let mut state = batches.sorted(&h[pseudo * count * output..][..count * output], output);
            let mut cells = match of.cell {
                Cell::Lstm => batches.sorted(&c[pseudo * count * hidden..][..count * hidden], hidden),
                _ => Vec::new(),
            };
            if let Some(slot) = slots.get(direction)
                && let Ok(mut record) = slot.lock()
            {
                let (states, record) = ((&mut state[..], &mut cells[..]), &mut record[..ahead]);
                way(of, batches, pseudo, weights, &inputs, states, record, is_kept);
            }
            (state, cells)
        });
        drop(slots);
        for (direction, (state, cells)) in states.iter().enumerate() {
            let pseudo = first + direction;
            batches.unsorted(state, output, &mut results.h[pseudo * count * output..][..count * output]);
            if of.cell == Cell::Lstm {
                batches.unsorted(cells, hidden, &mut results.c[pseudo * count * hidden..][..count * hidden]);
            }
        }
        if batches.rows == 0 {
            continue;
        }
        let outputs: Vec<&[V]> = records
            .chunks(size)
            .map(|record| of.split_ahead(batches.rows, &record[..ahead]).outputs)
            .collect();
        let mut next = beside(&outputs, output);
        if let (Some(dropping), true) = (&dropping, layer + 1 < of.layers) {
            dropping.apply(layer, &mut next);
        }
        inputs = Cow::Owned(next);
    }
    if batches.rows > 0 {
        results.y = inputs.into_owned();
    }
    results
}

/// Inputs of a layer for the ways back: what was given, or outputs of the layer below with what was dropped.
pub(super) fn inputs_of<V: Value>(
    of: &Network,
    batches: &Batches,
    layer: usize,
    dropping: Option<&Dropping>,
    reserve: &[V],
) -> Vec<V> {
    let record = of.ahead(batches.rows) + of.back(batches.rows);
    let records = &reserve[(layer - 1) * of.directions * record..][..of.directions * record];
    let outputs: Vec<&[V]> = records
        .chunks(record)
        .map(|record| of.split_ahead(batches.rows, &record[..of.ahead(batches.rows)]).outputs)
        .collect();
    let mut inputs = beside(&outputs, of.output());
    if let Some(dropping) = dropping {
        dropping.apply(layer - 1, &mut inputs);
    }
    inputs
}

/// One pseudo layer by oneDNN, if it is in front and has it: whether it was done. What a way back needs it has in an order of its own.
fn is_done_elsewhere<V: Value>(
    of: &Network,
    batches: &Batches,
    pseudo: usize,
    weights: &[V],
    inputs: &[V],
    (state, cells): (&mut [V], &mut [V]),
    outputs: &mut [V],
) -> bool {
    let Some(one) = onednn::current::<V>() else { return false };
    let are_alike = batches.counts.iter().all(|count| *count == batches.size());
    if of.cell != Cell::Lstm || of.projected.is_some() || of.clip.is_some() || !are_alike {
        return false;
    }
    let Some(of_input) = of.of_input(weights, pseudo) else { return false };
    let layer = Lstm {
        steps: batches.counts.len(),
        batch: batches.size(),
        input: inputs.len() / batches.rows.max(1),
        hidden: of.hidden,
        is_reversed: pseudo % of.directions == 1,
    };
    let biases = biases(of, pseudo, weights);
    let read = [inputs, of_input, of.of_state(weights, pseudo), &biases].map(single);
    onednn::lstm(one, layer, read, (single_mut(state), single_mut(cells)), single_mut(outputs))
}

/// One pseudo layer; what it makes on the way is kept if there is a way back.
#[expect(clippy::too_many_arguments, reason = "a layer's own")]
fn way<V: Value>(
    of: &Network,
    batches: &Batches,
    pseudo: usize,
    weights: &[V],
    inputs: &[V],
    (state, cells): (&mut [V], &mut [V]),
    record: &mut [V],
    is_kept: bool,
) {
    let (hidden, output, gates) = (of.hidden, of.output(), of.cell.gates());
    let (width, all) = (gates * hidden, batches.rows);
    let kept = of.cell.kept() * hidden;
    let record = of.split_ahead_mut(all, record);
    if !is_kept && is_done_elsewhere(of, batches, pseudo, weights, inputs, (state, cells), record.outputs) {
        return;
    }
    begin(of, pseudo, weights, record.gates);
    let size = inputs.len() / all.max(1);
    match of.of_input(weights, pseudo) {
        Some(matrix) => {
            let to = Rows(&mut *record.gates, kept);
            product((Op::N, Op::T), (all, width, size), Rows(inputs, size), Rows(matrix, size), V::one(), to);
        }
        None => {
            for (gates, x) in record.gates.chunks_mut(kept).zip(inputs.chunks(size.max(1))) {
                gates[..width].chunks_mut(hidden).for_each(|gate| add(gate, x));
            }
        }
    }
    let matrix = of.of_state(weights, pseudo);
    let projection = of.projection(weights, pseudo);
    let of_state = of.vector(weights, pseudo, gates + 2);
    let mut wide = vec![V::zero(); batches.size() * width.max(hidden)];
    for step in batches.steps(pseudo % of.directions == 1) {
        let these = batches.step(step);
        let n = these.len();
        let gates = &mut record.gates[these.start * kept..these.end * kept];
        let (before, factor) = (Rows(&state[..n * output], output), Rows(matrix, output));
        let work = 16 * n * hidden;
        match of.cell {
            Cell::Relu | Cell::Tanh => {
                product(
                    (Op::N, Op::T),
                    (n, width, output),
                    before,
                    factor,
                    V::one(),
                    Rows(&mut *gates, kept),
                );
                let is_relu = of.cell == Cell::Relu;
                rows!(work, [(gates, hidden), (state[..n * hidden], hidden)], |_number, gates, state| {
                    for (gate, state) in gates.iter_mut().zip(state.iter_mut()) {
                        *gate = if is_relu { gate.max(V::zero()) } else { gate.tangent() };
                        *state = *gate;
                    }
                });
            }
            Cell::Lstm => {
                product(
                    (Op::N, Op::T),
                    (n, width, output),
                    before,
                    factor,
                    V::one(),
                    Rows(&mut *gates, kept),
                );
                let kept_cells = &mut record.cells[these.start * hidden..these.end * hidden];
                let full = match projection {
                    Some(_) => &mut wide[..n * hidden],
                    None => &mut state[..n * hidden],
                };
                let lists = cells[..n * hidden].as_mut();
                rows!(
                    work,
                    [(gates, kept), (lists, hidden), (kept_cells, hidden), (full, hidden)],
                    |_number, gates, cells, kept, full| { lstm(gates, cells, kept, full, of.clip) }
                );
                if let Some(projection) = projection {
                    let from = Rows(&wide[..n * hidden], hidden);
                    let to = Rows(&mut state[..n * output], output);
                    product(
                        (Op::N, Op::T),
                        (n, output, hidden),
                        from,
                        Rows(projection, hidden),
                        V::zero(),
                        to,
                    );
                }
            }
            Cell::Gru => {
                let wide = &mut wide[..n * width];
                product(
                    (Op::N, Op::T),
                    (n, width, output),
                    before,
                    factor,
                    V::zero(),
                    Rows(&mut *wide, width),
                );
                let state = state[..n * hidden].as_mut();
                rows!(
                    work,
                    [(gates, kept), (wide, width), (state, hidden)],
                    |_number, gates, wide, state| { gru(gates, wide, of_state, state) }
                );
            }
        }
        record.outputs[these.start * output..these.end * output].copy_from_slice(&state[..n * output]);
    }
}

fn add<V: Value>(to: &mut [V], from: &[V]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
}

/// Gates begin as biases: all of both, but for the one that the GRU's reset gate is multiplied with.
fn begin<V: Value>(of: &Network, pseudo: usize, weights: &[V], to: &mut [V]) {
    let biases = biases(of, pseudo, weights);
    to.chunks_mut(biases.len()).for_each(|row| row.copy_from_slice(&biases));
}

fn biases<V: Value>(of: &Network, pseudo: usize, weights: &[V]) -> Vec<V> {
    let (hidden, gates) = (of.hidden, of.cell.gates());
    let mut biases = vec![V::zero(); of.cell.kept() * hidden];
    for (gate, biases) in biases.chunks_mut(hidden).take(gates).enumerate() {
        if let Some(bias) = of.vector(weights, pseudo, gate) {
            add(biases, bias);
        }
        if let (Some(bias), false) =
            (of.vector(weights, pseudo, gates + gate), of.cell == Cell::Gru && gate == 2)
        {
            add(biases, bias);
        }
    }
    biases
}

vectorized! {
/// A row of gates gets their values, a row of cells the new ones.
    fn lstm[V: Value](gates: &mut [V], cells: &mut [V], kept: &mut [V], output: &mut [V], clip: Option<Clip>) {
        let n = cells.len();
        let (i, rest) = gates.split_at_mut(n);
        let (f, rest) = rest.split_at_mut(n);
        let (g, o) = rest.split_at_mut(n);
        for gate in [&mut *i, &mut *f, &mut *o] {
            for value in gate {
                *value = sigmoid(*value);
            }
        }
        for (((g, i), f), cell) in g.iter_mut().zip(&*i).zip(&*f).zip(&mut *cells) {
            *g = g.tangent();
            *cell = *f * *cell + *i * *g;
        }
        if let Some(clip) = clip {
            let (low, high) = (V::of(clip.low), V::of(clip.high));
            for cell in &mut *cells {
                *cell = match *cell {
                    cell if cell > high => high,
                    cell if cell < low || (cell.is_nan() && !clip.keeps_nan) => low,
                    cell => cell,
                };
            }
        }
        kept.copy_from_slice(cells);
        for ((output, o), cell) in output.iter_mut().zip(&*o).zip(&*cells) {
            *output = *o * cell.tangent();
        }
    }
}

vectorized! {
    /// A row of gates gets their values and the state's share of the new memory, a row of the state becomes the new one.
    fn gru[V: Value](gates: &mut [V], of_state: &[V], bias: Option<&[V]>, state: &mut [V]) {
        let n = state.len();
        let (r, rest) = gates.split_at_mut(n);
        let (z, rest) = rest.split_at_mut(n);
        let (new, share) = rest.split_at_mut(n);
        for (gates, of_state) in [(&mut *r, &of_state[..n]), (&mut *z, &of_state[n..])] {
            for (gate, of_state) in gates.iter_mut().zip(of_state) {
                *gate = sigmoid(*gate + *of_state);
            }
        }
        share.copy_from_slice(&of_state[2 * n..3 * n]);
        if let Some(bias) = bias {
            for (share, bias) in share.iter_mut().zip(bias) {
                *share += *bias;
            }
        }
        for ((((new, share), r), z), state) in new.iter_mut().zip(&*share).zip(&*r).zip(&*z).zip(state) {
            *new = (*new + *r * *share).tangent();
            *state = (V::one() - *z) * *new + *z * *state;
        }
    }
}
