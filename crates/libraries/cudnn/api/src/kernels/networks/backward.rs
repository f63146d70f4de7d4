//! From the outputs' gradients to those of inputs, first states and weights.

use cudnn_cpu::recurrent::Cell;
use cudnn_cpu::reduction::Reduction;

use super::{Record, Run, States, Training, Vectors};
use crate::Result;
use crate::hip::objects::Room;
use crate::kernels::cells::{Block, Told, done};
use crate::kernels::elements::How;
use crate::kernels::rows::Over;

impl Run<'_> {
    pub(super) fn backward(
        &self,
        (dy, dx): (&Vectors, &Vectors),
        (h, c): (Option<Block>, Option<Block>),
        (dh, dc): (States, States),
        training: Training,
    ) -> Result {
        let (network, rows) = (self.network(), self.batches().rows);
        let (mut room, mut gradient) = self.gathered(dy)?;
        for layer in (0..network.layers).rev() {
            let size = network.inputs(layer);
            let (next_room, next) = self.call.block(rows, size)?;
            self.copy([rows, size], next, None)?;
            for direction in 0..network.directions {
                let pseudo = layer * network.directions + direction;
                let record = self.kept_record(training, pseudo);
                let from = gradient.behind(direction * network.output());
                self.layer_backward(pseudo, from, record, ((h, c), (dh, dc)))?;
                self.add_gradient(pseudo, record, (next, size))?;
            }
            if layer > 0 {
                self.drop(layer - 1, next, size, training.header)?;
            }
            (room, gradient) = (next_room, next);
        }
        self.given(dx, gradient)?;
        drop(room);
        Ok(())
    }

    /// Adds to the gradient of a layer's inputs.
    fn add_gradient(&self, pseudo: usize, record: Record, (to, size): (Block, usize)) -> Result {
        let (network, rows) = (self.network(), self.batches().rows);
        let (gates, hidden) = (network.cell.gates(), network.hidden);
        match self.weight(network.matrix(pseudo, 0)) {
            Some(matrix) => {
                let sizes = [rows, size, gates * hidden];
                self.call.multiply(sizes, (record.dgates, false), (matrix, false), (to, 1.0))
            }
            None => (0..gates)
                .try_for_each(|gate| self.add([rows, hidden], to, record.dgates.behind(gate * hidden))),
        }
    }

    fn add(&self, sizes: [usize; 2], to: Block, from: Block) -> Result {
        let [to, from] = [to, from].map(Block::rows);
        let (to, from) = (to?, from?);
        let how = How::copy().blended(1.0, 1.0);
        done(self.call.elements(how, &sizes, &to, &[from])?)
    }

    fn layer_backward(
        &self,
        pseudo: usize,
        dy: Block,
        record: Record,
        ((h, c), (dh, dc)): ((Option<Block>, Option<Block>), (States, States)),
    ) -> Result {
        let (network, batches) = (self.network(), self.batches());
        let (hidden, output) = (network.hidden, network.output());
        let (_first_room, first) = match network.cell {
            Cell::Lstm => self.states(c, pseudo, hidden)?,
            _ => self.states(h, pseudo, output)?,
        };
        let (_dstate_room, dstate) = self.states(dh[0], pseudo, output)?;
        let (_dcells_room, dcells) = self.states(dc[0], pseudo, hidden)?;
        let (_full_room, full) = self.call.block(batches.size(), hidden)?;
        let is_reversed = pseudo % network.directions == 1;
        for step in batches.steps(!is_reversed) {
            let rows = batches.step(step);
            self.add([rows.len(), output], dstate, dy.row(rows.start))?;
            let before = self.rows_before(is_reversed, step);
            self.step_backward(pseudo, rows, (before, first), record, [dstate, dcells, full])?;
        }
        self.give_states(dh[1], pseudo, output, dstate)?;
        if network.cell == Cell::Lstm {
            self.give_states(dc[1], pseudo, hidden, dcells)?;
        }
        Ok(())
    }

    /// The rows of the step before, of which a step's first have their own.
    fn rows_before(&self, is_reversed: bool, step: usize) -> core::ops::Range<usize> {
        let batches = self.batches();
        let before = if is_reversed { Some(step + 1) } else { step.checked_sub(1) };
        before.filter(|before| *before < batches.counts.len()).map_or(0..0, |before| batches.step(before))
    }

    fn step_backward(
        &self,
        pseudo: usize,
        rows: core::ops::Range<usize>,
        (before, first): (core::ops::Range<usize>, Block),
        record: Record,
        [dstate, dcells, full]: [Block; 3],
    ) -> Result {
        let network = self.network();
        let (hidden, output, gates) = (network.hidden, network.output(), network.cell.gates());
        let n = rows.len();
        let full = match self.weight(network.matrix(pseudo, 2 * gates)) {
            Some(projection) => {
                self.copy([n, output], record.dprojected.row(rows.start), Some(dstate))?;
                let sizes = [n, hidden, output];
                self.call.multiply(sizes, (dstate, false), (projection, false), (full, 0.0))?;
                full
            }
            None => dstate,
        };
        let is_lstm = network.cell == Cell::Lstm;
        let kept = if is_lstm { record.cells } else { record.outputs };
        let dgates = record.dgates.row(rows.start);
        let tensors = [
            Some(record.gates.row(rows.start)),
            is_lstm.then_some(record.cells.row(rows.start)),
            Some(kept.row(before.start)),
            Some(first),
            Some(full),
            is_lstm.then_some(dcells),
            Some(dgates),
        ];
        let told = Told { count: before.len(), ..Told::cell(network.cell, network.clip) };
        self.call.cells(c"step_backward", [n, hidden], &tensors, told)?;
        // What the state in front of the step gets.
        let Some(matrix) = self.weight(network.matrix(pseudo, gates)) else { return Ok(()) };
        if network.cell != Cell::Gru {
            let sizes = [n, output, gates * hidden];
            return self.call.multiply(sizes, (dgates, false), (matrix, false), (dstate, 0.0));
        }
        // The share that goes by the update gate is there.
        self.call.multiply([n, output, 2 * hidden], (dgates, false), (matrix, false), (dstate, 1.0))?;
        let (shares, lower) = (dgates.behind(3 * hidden), matrix.row(2 * hidden));
        self.call.multiply([n, output, hidden], (shares, false), (lower, false), (dstate, 1.0))
    }

    pub(super) fn weights(&self, x: &Vectors, h: Option<Block>, training: Training) -> Result {
        let network = self.network();
        let (_x_room, x) = self.gathered(x)?;
        for layer in 0..network.layers {
            let records = |layer: usize| {
                let pseudo = layer * network.directions..(layer + 1) * network.directions;
                pseudo.map(|pseudo| self.kept_record(training, pseudo)).collect::<Vec<Record>>()
            };
            let (_room, inputs) = match layer.checked_sub(1) {
                Some(below) => self.beside(below, &records(below), Some(training.header))?,
                None => (None, x),
            };
            for (direction, record) in records(layer).into_iter().enumerate() {
                let pseudo = layer * network.directions + direction;
                self.layer_weights(pseudo, (inputs, network.inputs(layer)), record, h)?;
            }
        }
        Ok(())
    }

    fn layer_weights(
        &self,
        pseudo: usize,
        (inputs, size): (Block, usize),
        record: Record,
        h: Option<Block>,
    ) -> Result {
        let (network, all) = (self.network(), self.batches().rows);
        let (hidden, output, gates) = (network.hidden, network.output(), network.cell.gates());
        if let Some(to) = self.weight(network.matrix(pseudo, 0)) {
            let sizes = [gates * hidden, size, all];
            self.call.multiply(sizes, (record.dgates, true), (inputs, false), (to, 1.0))?;
        }
        let (_room, states) = self.states_before(pseudo, record, h)?;
        if let Some(to) = self.weight(network.matrix(pseudo, gates)) {
            // The GRU's new memory has a gradient of its own for the state's share.
            let is_gru = network.cell == Cell::Gru;
            let together = if is_gru { 2 } else { gates };
            let sizes = [together * hidden, output, all];
            self.call.multiply(sizes, (record.dgates, true), (states, false), (to, 1.0))?;
            if is_gru {
                let (from, to) = (record.dgates.behind(3 * hidden), to.row(2 * hidden));
                self.call.multiply([hidden, output, all], (from, true), (states, false), (to, 1.0))?;
            }
        }
        if let Some(to) = self.weight(network.matrix(pseudo, 2 * gates)) {
            let (_room, full) = self.call.block(all, hidden)?;
            let tensors = [Some(full), Some(record.gates), Some(record.cells)];
            self.call.cells(c"outputs", [all, hidden], &tensors, Told::default())?;
            self.call.multiply([output, hidden, all], (record.dprojected, true), (full, false), (to, 1.0))?;
        }
        for linear in 0..2 * gates {
            let Some(to) = self.weight(network.bias(pseudo, linear)) else { continue };
            let is_share = network.cell == Cell::Gru && linear == gates + 2;
            let gate = if is_share { 3 } else { linear % gates };
            let from = record.dgates.behind(gate * hidden).rows()?;
            let over = Over { sizes: &[all, hidden], is_inner: &[true, false] };
            let to = to.operand([0, 1])?;
            done(self.call.reduce(Reduction::Add, true, [1.0, 1.0], over, [&from, &to])?)?;
        }
        Ok(())
    }

    /// The state in front of each row's step.
    fn states_before(&self, pseudo: usize, record: Record, h: Option<Block>) -> Result<(Room, Block)> {
        let (batches, output) = (self.batches(), self.network().output());
        let (_first_room, first) = self.states(h, pseudo, output)?;
        let (room, to) = self.call.block(batches.rows, output)?;
        let is_reversed = pseudo % self.network().directions == 1;
        for step in 0..batches.counts.len() {
            let (rows, before) = (batches.step(step), self.rows_before(is_reversed, step));
            let n = before.len().min(rows.len());
            self.copy([n, output], to.row(rows.start), Some(record.outputs.row(before.start)))?;
            self.copy([rows.len() - n, output], to.row(rows.start + n), Some(first.row(n)))?;
        }
        Ok((room, to))
    }
}
