//! Recurrent networks by kernels: as crates/libraries/cudnn/cpu/src/recurrent has them, with the same reserve space, whose header tells what was
//! dropped. Products are products.cu's, what is between them cells.cu's.

mod backward;
mod forward;

use cudnn_cpu::recurrent::{Batches, Cell, Dropping, Network, Place};

use crate::Result;
use crate::hip::objects::Room;
use crate::kernels::Call;
use crate::kernels::cells::{Block, Told, done};
use crate::kernels::elements::How;
use crate::kernels::tensor::Operand;

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
}
