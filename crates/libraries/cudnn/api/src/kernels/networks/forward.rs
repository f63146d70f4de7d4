//! From inputs to outputs.

use cudnn_cpu::recurrent::Cell;

use super::{Record, Run, States, Training, Vectors};
use crate::Result;
use crate::kernels::cells::{Block, Told};

impl Run<'_> {
    pub(super) fn forward(
        &self,
        (x, y): (&Vectors, &Vectors),
        (h, c): (States, States),
        training: Option<Training>,
        drops: Option<Block>,
    ) -> Result {
        let (network, rows) = (self.network(), self.batches().rows);
        let (room, mut inputs) = self.gathered(x)?;
        // What the layer below has made is there until this one is enqueued.
        let mut below = vec![room];
        for layer in 0..network.layers {
            let (mut rooms, mut records) = (Vec::new(), Vec::new());
            for pseudo in layer * network.directions..(layer + 1) * network.directions {
                let record = match training {
                    Some(training) => self.kept_record(training, pseudo),
                    None => {
                        let (room, own) = self.call.block(network.ahead(rows), 1)?;
                        rooms.push(room);
                        self.record(own)
                    }
                };
                self.layer_forward(pseudo, (inputs, network.inputs(layer)), record, (h, c))?;
                records.push(record);
            }
            let drops = drops.filter(|_| layer + 1 < network.layers);
            let (room, next) = self.beside(layer, &records, drops)?;
            rooms.extend(room);
            (inputs, below) = (next, rooms);
        }
        self.given(y, inputs)?;
        drop(below);
        Ok(())
    }

    fn layer_forward(
        &self,
        pseudo: usize,
        (inputs, size): (Block, usize),
        record: Record,
        (h, c): (States, States),
    ) -> Result {
        let (network, batches) = (self.network(), self.batches());
        let (hidden, output, gates) = (network.hidden, network.output(), network.cell.gates());
        let (width, kept) = (gates * hidden, network.cell.kept() * hidden);
        let of_input = self.weight(network.matrix(pseudo, 0));
        let biases = [0, gates].map(|linear| self.weight(network.bias(pseudo, linear)));
        let skipped = if of_input.is_none() { Some(inputs) } else { None };
        let told =
            Told { count: hidden, whole: [gates as u64, 0, 0, 0, 0], ..Told::cell(network.cell, None) };
        let tensors = [Some(record.gates), biases[0], biases[1], skipped];
        self.call.cells(c"begin", [batches.rows, kept], &tensors, told)?;
        if let Some(matrix) = of_input {
            let sizes = [batches.rows, width, size];
            self.call.multiply(sizes, (inputs, false), (matrix, true), (record.gates, 1.0))?;
        }
        let (_state_room, state) = self.states(h[0], pseudo, output)?;
        let (_cells_room, cells) = self.states(c[0], pseudo, hidden)?;
        let (_wide_room, wide) = self.call.block(batches.size(), width.max(hidden))?;
        for step in batches.steps(pseudo % network.directions == 1) {
            self.step_forward(pseudo, batches.step(step), record, [state, cells, wide])?;
        }
        self.give_states(h[1], pseudo, output, state)?;
        if network.cell == Cell::Lstm {
            self.give_states(c[1], pseudo, hidden, cells)?;
        }
        Ok(())
    }

    fn step_forward(
        &self,
        pseudo: usize,
        rows: core::ops::Range<usize>,
        record: Record,
        [state, cells, wide]: [Block; 3],
    ) -> Result {
        let network = self.network();
        let (hidden, output, gates) = (network.hidden, network.output(), network.cell.gates());
        let (n, width) = (rows.len(), gates * hidden);
        let own = record.gates.row(rows.start);
        let is_gru = network.cell == Cell::Gru;
        let wide = wide.with_pitch(if is_gru { width } else { hidden });
        if let Some(matrix) = self.weight(network.matrix(pseudo, gates)) {
            let to = if is_gru { (wide, 0.0) } else { (own, 1.0) };
            self.call.multiply([n, width, output], (state, false), (matrix, true), to)?;
        }
        let projection = self.weight(network.matrix(pseudo, 2 * gates));
        let outputs = record.outputs.row(rows.start);
        let is_lstm = network.cell == Cell::Lstm;
        let tensors = [
            Some(own),
            is_gru.then_some(wide),
            self.weight(network.bias(pseudo, gates + 2)).filter(|_| is_gru),
            is_lstm.then_some(cells),
            is_lstm.then_some(record.cells.row(rows.start)),
            Some(if projection.is_some() { wide } else { state }),
            projection.is_none().then_some(outputs),
        ];
        self.call.cells(c"step", [n, hidden], &tensors, Told::cell(network.cell, network.clip))?;
        if let Some(projection) = projection {
            let sizes = [n, output, hidden];
            self.call.multiply(sizes, (wide, false), (projection, true), (state, 0.0))?;
            self.copy([n, output], outputs, Some(state))?;
        }
        Ok(())
    }
}
