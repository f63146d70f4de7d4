//! Recurrent networks by kernels: as crates/libraries/cudnn/cpu/src/recurrent has them, with the same reserve space, whose header tells what was
//! dropped. Products are products.cu's, what is between them cells.cu's.

use cudnn_cpu::recurrent::{Batches, Cell, Dropping, Network, Place};
use cudnn_cpu::reduction::Reduction;

use super::Call;
use super::cells::{Block, Told, done};
use super::elements::How;
use super::rows::Over;
use super::tensor::Operand;
use crate::Result;
use crate::hip::objects::Room;

/// A network, the sequences' lengths, and the weights or their gradients.
pub struct Problem<'p> {
    pub network: &'p Network,
    pub batches: &'p Batches,
    pub weights: Block,
}

/// Sequences' vectors, of which rows of the batches have these numbers, or their own.
pub struct Vectors {
    pub at: Block,
    pub width: usize,
    pub numbers: Option<Vec<u32>>,
    /// How many there are with those that pad, and what is written there.
    pub padding: Option<(usize, f64)>,
}

/// A training's reserve space.
#[derive(Clone, Copy)]
pub struct Training {
    pub header: Block,
    pub numbers: Block,
}

/// What the header of a reserve space is told: its mark, and how often which states drop.
pub struct Begun {
    pub header: [u64; 3],
    pub drops: Option<(f64, Block)>,
    pub states_mark: u64,
}

/// States in front of the first step and behind the last, or gradients; none are zeros, and go nowhere.
pub type States = [Option<Block>; 2];

/// A call on its way.
struct Run<'r> {
    call: &'r Call,
    of: &'r Problem<'r>,
    /// The sequence at each place, where they are not in their own order.
    order: Option<(Room, Block)>,
}

/// What the way forward keeps of a pseudo layer, and what the way back does.
#[derive(Clone, Copy)]
struct Record {
    gates: Block,
    cells: Block,
    outputs: Block,
    dgates: Block,
    dprojected: Block,
}

impl Call {
    fn run<'r>(&'r self, of: &'r Problem) -> Result<Option<Run<'r>>> {
        let Problem { network, batches, .. } = of;
        let widest = network.cell.kept() * network.hidden + network.inputs(0).max(network.inputs(1));
        let most = (batches.rows + batches.size()) * widest;
        if !self.has_networks(most.max(network.weights())) {
            return Ok(None);
        }
        let order: Vec<u32> = batches.order.iter().map(|&at| at as u32).collect();
        let order = if order.is_sorted() { None } else { Some(self.table(&order)?) };
        Ok(Some(Run { call: self, of, order }))
    }

    /// Outputs and last states; whether kernels can do it.
    pub fn network_forward(
        &self,
        of: &Problem,
        (x, y): (&Vectors, &Vectors),
        (h, c): (States, States),
        training: Option<(Training, Begun)>,
    ) -> Result<bool> {
        let Some(run) = self.run(of)? else { return Ok(false) };
        let drops = match &training {
            Some((training, begun)) => {
                run.begin_reserve(training, begun)?;
                begun.drops.is_some().then_some(training.header)
            }
            None => None,
        };
        run.forward((x, y), (h, c), training.map(|(training, _)| training), drops)?;
        Ok(true)
    }

    /// Gradients of inputs and first states, of which `h` and `c` are what was given; whether kernels can do it.
    pub fn network_backward(
        &self,
        of: &Problem,
        (dy, dx): (&Vectors, &Vectors),
        (h, c): (Option<Block>, Option<Block>),
        (dh, dc): (States, States),
        training: Training,
    ) -> Result<bool> {
        let Some(run) = self.run(of)? else { return Ok(false) };
        run.backward((dy, dx), (h, c), (dh, dc), training)?;
        Ok(true)
    }

    /// Adds the weights' gradients to those that are there; whether kernels can do it.
    pub fn network_weights(
        &self,
        of: &Problem,
        x: &Vectors,
        h: Option<Block>,
        training: Training,
    ) -> Result<bool> {
        let Some(run) = self.run(of)? else { return Ok(false) };
        run.weights(x, h, training)?;
        Ok(true)
    }
}

impl<'r> Run<'r> {
    fn network(&self) -> &'r Network {
        self.of.network
    }

    fn batches(&self) -> &'r Batches {
        self.of.batches
    }

    /// Bytes of a header are words: its rows are not numbers.
    fn begin_reserve(&self, training: &Training, begun: &Begun) -> Result {
        let taken = Dropping::taken(self.network(), self.batches().rows);
        let [mark, rows, weights] = begun.header;
        let told = Told {
            whole: [mark, rows, weights, taken, begun.states_mark],
            numbers: [begun.drops.as_ref().map_or(0.0, |drops| drops.0), 0.0],
            ..Told::default()
        };
        let states = begun.drops.as_ref().map(|drops| drops.1);
        self.call.cells(c"header", [1, 1], &[Some(training.header), states], told)
    }

    /// Copies rows, or zeros.
    fn copy(&self, [rows, width]: [usize; 2], to: Block, from: Option<Block>) -> Result {
        self.call.cells(c"arrange", [rows, width], &[Some(to), from], Told::default())
    }

    /// Vectors in the rows' order.
    fn gathered(&self, of: &Vectors) -> Result<(Room, Block)> {
        let rows = self.batches().rows;
        let (room, to) = self.call.block(rows, of.width)?;
        let table = of.numbers.as_deref().map(|numbers| self.call.table(numbers)).transpose()?;
        let tensors = [Some(to), Some(of.at), table.as_ref().map(|(_, block)| *block)];
        self.call.cells(c"arrange", [rows, of.width], &tensors, Told::default())?;
        Ok((room, to))
    }

    /// The way back, with padding.
    fn given(&self, of: &Vectors, from: Block) -> Result {
        if let Some((all, fill)) = of.padding {
            let (sizes, to) = ([all, of.width], of.at.operand([of.width, 1])?);
            done(self.call.elements(How::copy(), &sizes, &to, &[Operand::number(fill)])?)?;
        }
        let table = of.numbers.as_deref().map(|numbers| self.call.table(numbers)).transpose()?;
        let tensors = [Some(of.at), Some(from), table.as_ref().map(|(_, block)| *block)];
        let told = Told { count: 1, ..Told::default() };
        self.call.cells(c"arrange", [self.batches().rows, of.width], &tensors, told)
    }

    /// A pseudo layer's states in the sorted order.
    fn states(&self, of: Option<Block>, pseudo: usize, width: usize) -> Result<(Room, Block)> {
        let size = self.batches().size();
        let (room, to) = self.call.block(size, width)?;
        let from = of.map(|of| of.with_pitch(width).row(pseudo * size));
        let order = self.order.as_ref().map(|(_, block)| *block);
        self.call.cells(c"arrange", [size, width], &[Some(to), from, order], Told::default())?;
        Ok((room, to))
    }

    /// The way back, if they go somewhere.
    fn give_states(&self, to: Option<Block>, pseudo: usize, width: usize, from: Block) -> Result {
        let Some(to) = to else { return Ok(()) };
        let size = self.batches().size();
        let order = self.order.as_ref().map(|(_, block)| *block);
        let tensors = [Some(to.with_pitch(width).row(pseudo * size)), Some(from), order];
        let told = Told { count: 1, ..Told::default() };
        self.call.cells(c"arrange", [size, width], &tensors, told)
    }

    /// A pseudo layer's record, of which what the way back writes is there in a reserve space alone.
    fn record(&self, of: Block) -> Record {
        let (network, rows) = (self.network(), self.batches().rows);
        let kept = network.cell.kept() * network.hidden;
        let gates = of.with_pitch(kept);
        let cells = gates.row(rows).with_pitch(network.hidden);
        let has_cells = usize::from(network.cell == Cell::Lstm);
        let outputs = cells.row(has_cells * rows).with_pitch(network.output());
        let dgates = of.behind(network.ahead(rows)).with_pitch(kept);
        let dprojected = dgates.row(rows).with_pitch(network.output());
        Record { gates, cells, outputs, dgates, dprojected }
    }

    fn kept_record(&self, training: Training, pseudo: usize) -> Record {
        let (network, rows) = (self.network(), self.batches().rows);
        self.record(training.numbers.behind(pseudo * (network.ahead(rows) + network.back(rows))))
    }

    /// A matrix or a vector among the weights.
    fn weight(&self, place: Option<Place>) -> Option<Block> {
        place.map(|place| self.of.weights.behind(place.first).with_pitch(place.columns))
    }

    /// The outputs of a layer's directions beside each other, and what is dropped of them.
    fn beside(
        &self,
        layer: usize,
        records: &[Record],
        drops: Option<Block>,
    ) -> Result<(Option<Room>, Block)> {
        let (rows, output) = (self.batches().rows, self.network().output());
        if let ([one], None) = (records, drops) {
            return Ok((None, one.outputs));
        }
        let width = records.len() * output;
        let (room, all) = self.call.block(rows, width)?;
        for (direction, record) in records.iter().enumerate() {
            self.copy([rows, output], all.behind(direction * output), Some(record.outputs))?;
        }
        if let Some(header) = drops {
            self.drop(layer, all, width, header)?;
        }
        Ok((Some(room), all))
    }

    /// Drops behind a layer.
    fn drop(&self, layer: usize, of: Block, width: usize, header: Block) -> Result {
        let rows = self.batches().rows;
        let told = Told { whole: [(layer * rows * width) as u64, 0, 0, 0, 0], ..Told::default() };
        self.call.cells(c"drop", [rows, width], &[Some(of), Some(header)], told)
    }

    fn forward(
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

    fn backward(
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

    fn weights(&self, x: &Vectors, h: Option<Block>, training: Training) -> Result {
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
