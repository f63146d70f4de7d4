//! From the outputs' gradients to those of inputs, first states and weights.

use cublas_cpu::Op;

use super::forward::inputs_of;
use super::{Batches, Cell, Clip, Dropping, Network, Rows, both, product, rows};
use crate::value::Value;

/// Of the inputs by rows, and of the first states by pseudo layer and sequence.
#[derive(Clone, Debug)]
pub struct Gradients<V> {
    pub x: Vec<V>,
    pub h: Vec<V>,
    pub c: Vec<V>,
}

/// Gradients of what is not a weight; the reserve space keeps what [`weights`] needs.
pub fn data<V: Value>(
    of: &Network,
    batches: &Batches,
    weights: &[V],
    dy: &[V],
    (h, c): (&[V], &[V]),
    (dh, dc): (&[V], &[V]),
    (dropping, reserve): (Option<Dropping>, &mut [V]),
) -> Gradients<V> {
    let (count, output, hidden) = (batches.size(), of.output(), of.hidden);
    let record = of.ahead(batches.rows) + of.back(batches.rows);
    let mut found = Gradients { x: dy.to_vec(), h: vec![V::zero(); dh.len()], c: vec![V::zero(); dc.len()] };
    for layer in (0..of.layers).rev() {
        let first = layer * of.directions;
        let records = &mut reserve[first * record..][..of.directions * record];
        let slots: Vec<_> = records.chunks_mut(record.max(1)).map(std::sync::Mutex::new).collect();
        let gradient = &found.x;
        let states = both(of.directions, batches.rows * hidden * output, |direction| {
            let pseudo = first + direction;
            let state = |of: &[V], width: usize| {
                batches.sorted(&of[pseudo * count * width..][..count * width], width)
            };
            let cells = |list: &[V]| if of.cell == Cell::Lstm { state(list, hidden) } else { Vec::new() };
            let (mut dstate, mut dcells) = (state(dh, output), cells(dc));
            if let Some(slot) = slots.get(direction)
                && let Ok(mut record) = slot.lock()
            {
                let before = (&state(h, output)[..], &cells(c)[..]);
                way(
                    of,
                    batches,
                    (pseudo, weights),
                    gradient,
                    before,
                    (&mut dstate, &mut dcells),
                    &mut record,
                );
            }
            (dstate, dcells)
        });
        drop(slots);
        for (direction, (dstate, dcells)) in states.iter().enumerate() {
            let pseudo = first + direction;
            batches.unsorted(dstate, output, &mut found.h[pseudo * count * output..][..count * output]);
            if of.cell == Cell::Lstm {
                batches.unsorted(dcells, hidden, &mut found.c[pseudo * count * hidden..][..count * hidden]);
            }
        }
        if batches.rows == 0 {
            continue;
        }
        found.x = of_inputs(of, batches, layer, weights, records);
        if let (Some(dropping), true) = (&dropping, layer > 0) {
            dropping.apply(layer - 1, &mut found.x);
        }
    }
    found
}

/// The gradient of a layer's inputs, of both directions together.
fn of_inputs<V: Value>(
    of: &Network,
    batches: &Batches,
    layer: usize,
    weights: &[V],
    records: &[V],
) -> Vec<V> {
    let (all, hidden) = (batches.rows, of.hidden);
    let (width, kept, size) = (of.cell.gates() * hidden, of.cell.kept() * hidden, of.inputs(layer));
    let mut dx = vec![V::zero(); all * size];
    for (direction, record) in records.chunks(of.ahead(all) + of.back(all)).enumerate() {
        let dgates = &record[of.ahead(all)..][..all * kept];
        match of.of_input(weights, layer * of.directions + direction) {
            Some(matrix) => {
                let beta = if direction == 0 { V::zero() } else { V::one() };
                let to = Rows(&mut dx[..], size);
                product((Op::N, Op::N), (all, size, width), Rows(dgates, kept), Rows(matrix, size), beta, to);
            }
            None => {
                for (dx, dgates) in dx.chunks_mut(size).zip(dgates.chunks(kept)) {
                    for dgate in dgates[..width].chunks(hidden) {
                        dx.iter_mut().zip(dgate).for_each(|(dx, dgate)| *dx += *dgate);
                    }
                }
            }
        }
    }
    dx
}

/// A row in front of a step: what was kept of the step before, or the first state's.
fn before<'r, V>(
    batches: &Batches,
    is_reversed: bool,
    (step, place): (usize, usize),
    (kept, first): (&'r [V], &'r [V]),
    width: usize,
) -> &'r [V] {
    match batches.before(is_reversed, step, place) {
        Some(row) => &kept[row * width..][..width],
        None => &first[place * width..][..width],
    }
}

/// One pseudo layer.
fn way<V: Value>(
    of: &Network,
    batches: &Batches,
    (pseudo, weights): (usize, &[V]),
    dy: &[V],
    (first_h, first_c): (&[V], &[V]),
    (dstate, dcells): (&mut [V], &mut [V]),
    record: &mut [V],
) {
    let (hidden, output, directions, all) = (of.hidden, of.output(), of.directions, batches.rows);
    let kept = of.cell.kept() * hidden;
    let is_reversed = pseudo % directions == 1;
    let (ahead, back) = record.split_at_mut(of.ahead(all));
    let ahead = of.split_ahead(all, ahead);
    let (dgates, dprojected) = back.split_at_mut(all * kept);
    let matrix = of.of_state(weights, pseudo);
    let projection = of.projection(weights, pseudo);
    let mut full = vec![V::zero(); batches.size() * hidden];
    for step in batches.steps(!is_reversed) {
        let these = batches.step(step);
        let n = these.len();
        // What comes from the output of this step and from the next one's state.
        for (place, row) in these.clone().enumerate() {
            let from = &dy[(row * directions + pseudo % directions) * output..][..output];
            let to = &mut dstate[place * output..][..output];
            to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
        }
        if let Some(projection) = projection {
            dprojected[these.start * output..these.end * output].copy_from_slice(&dstate[..n * output]);
            let from = Rows(&dstate[..n * output], output);
            let to = Rows(&mut full[..n * hidden], hidden);
            product((Op::N, Op::N), (n, hidden, output), from, Rows(projection, hidden), V::zero(), to);
        } else {
            full[..n * hidden].copy_from_slice(&dstate[..n * hidden]);
        }
        let dgates = &mut dgates[these.start * kept..these.end * kept];
        let (gates, full) = (&ahead.gates[these.start * kept..these.end * kept], &mut full[..n * hidden]);
        let work = 16 * n * hidden;
        match of.cell {
            Cell::Relu | Cell::Tanh => {
                let is_relu = of.cell == Cell::Relu;
                rows!(work, [(dgates, hidden), (full, hidden)], |number, dgates, full| {
                    let gates = &gates[number * hidden..][..hidden];
                    for ((dgate, gate), full) in dgates.iter_mut().zip(gates).zip(full.iter()) {
                        let slope = match is_relu {
                            true if *gate > V::zero() => V::one(),
                            true => V::zero(),
                            false => V::one() - *gate * *gate,
                        };
                        *dgate = *full * slope;
                    }
                });
            }
            Cell::Lstm => {
                let dcells = dcells[..n * hidden].as_mut();
                rows!(
                    work,
                    [(dgates, kept), (full, hidden), (dcells, hidden)],
                    |number, dgates, full, dcells| {
                        let cells = &ahead.cells[(these.start + number) * hidden..][..hidden];
                        let before =
                            before(batches, is_reversed, (step, number), (ahead.cells, first_c), hidden);
                        lstm(&gates[number * kept..][..kept], (cells, before), of.clip, full, dcells, dgates);
                    }
                );
            }
            Cell::Gru => {
                rows!(work, [(dgates, kept), (full, hidden)], |number, dgates, full| {
                    let before =
                        before(batches, is_reversed, (step, number), (ahead.outputs, first_h), hidden);
                    gru(&gates[number * kept..][..kept], before, full, dgates);
                });
            }
        }
        // What the state in front of the step gets.
        let to = &mut dstate[..n * output];
        let width = of.cell.gates() * hidden;
        if of.cell == Cell::Gru {
            to.copy_from_slice(full);
            let (two, one) = (Rows(&*dgates, kept), Rows(&dgates[3 * hidden..], kept));
            let (upper, lower) = matrix.split_at(2 * hidden * output);
            product(
                (Op::N, Op::N),
                (n, output, 2 * hidden),
                two,
                Rows(upper, output),
                V::one(),
                Rows(&mut *to, output),
            );
            product(
                (Op::N, Op::N),
                (n, output, hidden),
                one,
                Rows(lower, output),
                V::one(),
                Rows(to, output),
            );
        } else {
            let to = Rows(to, output);
            product(
                (Op::N, Op::N),
                (n, output, width),
                Rows(&*dgates, kept),
                Rows(matrix, output),
                V::zero(),
                to,
            );
        }
    }
}

/// A row of gradients in front of the gates' functions; the cells' gradient becomes that of the ones before.
fn lstm<V: Value>(
    gates: &[V],
    (cells, before): (&[V], &[V]),
    clip: Option<Clip>,
    full: &[V],
    dcells: &mut [V],
    dgates: &mut [V],
) {
    let (n, one) = (cells.len(), V::one());
    for at in 0..n {
        let (i, f, g, o) = (gates[at], gates[n + at], gates[2 * n + at], gates[3 * n + at]);
        let bent = cells[at].tanh();
        let mut dcell = dcells[at] + full[at] * o * (one - bent * bent);
        if let Some(clip) = clip {
            let cell = f * before[at] + i * g;
            if cell < V::of(clip.low) || cell > V::of(clip.high) {
                dcell = V::zero();
            }
        }
        dgates[at] = dcell * g * i * (one - i);
        dgates[n + at] = dcell * before[at] * f * (one - f);
        dgates[2 * n + at] = dcell * i * (one - g * g);
        dgates[3 * n + at] = full[at] * bent * o * (one - o);
        dcells[at] = dcell * f;
    }
}

/// As above; the state's gradient becomes the share that goes by the update gate alone.
fn gru<V: Value>(gates: &[V], before: &[V], full: &mut [V], dgates: &mut [V]) {
    let (n, one) = (before.len(), V::one());
    for at in 0..n {
        let (r, z, new, share) = (gates[at], gates[n + at], gates[2 * n + at], gates[3 * n + at]);
        let dnew = full[at] * (one - z) * (one - new * new);
        dgates[at] = dnew * share * r * (one - r);
        dgates[n + at] = full[at] * (before[at] - new) * z * (one - z);
        dgates[2 * n + at] = dnew;
        dgates[3 * n + at] = dnew * r;
        full[at] *= z;
    }
}

/// Adds the weights' gradients to `to`, from what [`data`] has left in the reserve space.
pub fn weights<V: Value>(
    of: &Network,
    batches: &Batches,
    x: &[V],
    h: &[V],
    dropping: Option<Dropping>,
    reserve: &[V],
    to: &mut [V],
) {
    let (hidden, output, all, count) = (of.hidden, of.output(), batches.rows, batches.size());
    let (gates, kept) = (of.cell.gates(), of.cell.kept() * hidden);
    if all == 0 {
        return;
    }
    let record = of.ahead(all) + of.back(all);
    for layer in 0..of.layers {
        let own = (layer > 0).then(|| inputs_of(of, batches, layer, dropping.as_ref(), reserve));
        let (inputs, size) = (own.as_deref().unwrap_or(x), of.inputs(layer));
        for pseudo in layer * of.directions..(layer + 1) * of.directions {
            let (ahead, back) = reserve[pseudo * record..][..record].split_at(of.ahead(all));
            let ahead = of.split_ahead(all, ahead);
            let (dgates, dprojected) = back.split_at(all * kept);
            let sum = (Op::T, Op::N);
            if let Some(place) = of.matrix(pseudo, 0) {
                let to = Rows(&mut to[place.first..], size);
                product(
                    sum,
                    (gates * hidden, size, all),
                    Rows(dgates, kept),
                    Rows(inputs, size),
                    V::one(),
                    to,
                );
            }
            let first = batches.sorted(&h[pseudo * count * output..][..count * output], output);
            let is_reversed = pseudo % of.directions == 1;
            let mut states = Vec::with_capacity(all * output);
            for step in 0..batches.counts.len() {
                for place in 0..batches.counts[step] {
                    let lists = (ahead.outputs, &first[..]);
                    states.extend_from_slice(before(batches, is_reversed, (step, place), lists, output));
                }
            }
            let states = Rows(&states[..], output);
            if let Some(place) = of.matrix(pseudo, gates) {
                let to = &mut to[place.first..];
                // The GRU's new memory has a gradient of its own for the state's share.
                let together = if of.cell == Cell::Gru { 2 } else { gates };
                let (upper, lower) = to.split_at_mut(together * hidden * output);
                product(
                    sum,
                    (together * hidden, output, all),
                    Rows(dgates, kept),
                    states,
                    V::one(),
                    Rows(upper, output),
                );
                if of.cell == Cell::Gru {
                    let from = Rows(&dgates[3 * hidden..], kept);
                    product(sum, (hidden, output, all), from, states, V::one(), Rows(lower, output));
                }
            }
            if let Some(place) = of.matrix(pseudo, 2 * gates) {
                let full: Vec<V> = (0..all)
                    .flat_map(|row| (0..hidden).map(move |at| (row, at)))
                    .map(|(row, at)| {
                        ahead.gates[row * kept + 3 * hidden + at] * ahead.cells[row * hidden + at].tanh()
                    })
                    .collect();
                let to = Rows(&mut to[place.first..], hidden);
                let from = Rows(dprojected, output);
                product(sum, (output, hidden, all), from, Rows(&full[..], hidden), V::one(), to);
            }
            for linear in 0..2 * gates {
                let Some(place) = of.bias(pseudo, linear) else { continue };
                let gate = if of.cell == Cell::Gru && linear == gates + 2 { 3 } else { linear % gates };
                let to = &mut to[place.first..][..hidden];
                for row in dgates.chunks(kept) {
                    to.iter_mut().zip(&row[gate * hidden..]).for_each(|(to, from)| *to += *from);
                }
            }
        }
    }
}
