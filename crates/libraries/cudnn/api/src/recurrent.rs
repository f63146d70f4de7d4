//! What descriptors say of recurrent networks and of their sequences, and the work of both APIs' calls.
//!
//! A training's reserve space begins with a header: what was dropped, and for how many rows and weights it was written. The ways back look
//! at it before they believe the rest.

use core::ffi::{c_int, c_void};

use cudnn_cpu::dropout::{self, STATE, State};
use cudnn_cpu::recurrent::{self, Batches, Cell, Clip, Dropping, Network};
use cudnn_cpu::{Kind, Value, View};
use kit::Address;

use crate::api::dropout::Inside;
use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{Context, compute, on_kernels};
use crate::kernels::cells::Block;
use crate::kernels::networks::{Begun, Problem, Training, Vectors};
use crate::tensor::{kind, tensor};
use crate::types::*;
use crate::{Error, Result};

pub static NETWORKS: Descriptors<Recurrent> = Descriptors::new();
pub static SEQUENCES: Descriptors<Sequences> = Descriptors::new();

/// A network. The first API's knows neither its type nor its input's size, which calls tell.
#[derive(Clone, Copy)]
pub struct Recurrent {
    pub algo: cudnnRNNAlgo_t,
    pub cell: cudnnRNNMode_t,
    pub bias: cudnnRNNBiasMode_t,
    pub direction: cudnnDirectionMode_t,
    pub input_mode: cudnnRNNInputMode_t,
    pub kind: cudnnDataType_t,
    pub precision: cudnnDataType_t,
    pub math: cudnnMathType_t,
    /// 0 where the first API has set it.
    pub input: c_int,
    pub hidden: c_int,
    pub projected: c_int,
    /// 0 before the descriptor was set.
    pub layers: c_int,
    pub dropout: Address<cudnnDropoutDescriptor_t>,
    pub flags: u32,
    pub clip: (cudnnRNNClipMode_t, cudnnNanPropagation_t, f64, f64),
}

impl Default for Recurrent {
    fn default() -> Recurrent {
        Recurrent {
            algo: cudnnRNNAlgo_t::default(),
            cell: cudnnRNNMode_t::default(),
            bias: cudnnRNNBiasMode_t::CUDNN_RNN_DOUBLE_BIAS,
            direction: cudnnDirectionMode_t::default(),
            input_mode: cudnnRNNInputMode_t::default(),
            kind: cudnnDataType_t::default(),
            precision: cudnnDataType_t::default(),
            math: cudnnMathType_t::default(),
            input: 0,
            hidden: 0,
            projected: 0,
            layers: 0,
            dropout: Address(core::ptr::null_mut()),
            flags: 0,
            clip: (cudnnRNNClipMode_t::default(), cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN, 0.0, 0.0),
        }
    }
}

const UNSET: Error =
    Error::Bad(cudnnStatus_t::CUDNN_STATUS_NOT_INITIALIZED, "the network's descriptor was not set");

/// One that was set, by either API.
pub fn network(of: cudnnRNNDescriptor_t) -> Result<Recurrent> {
    let network = NETWORKS.get(of)?;
    if network.layers == 0 { Err(UNSET) } else { Ok(network) }
}

/// One that knows its input, which the first API's does not.
pub fn whole(of: cudnnRNNDescriptor_t) -> Result<Recurrent> {
    let network = network(of)?;
    if network.input == 0 { Err(UNSET) } else { Ok(network) }
}

impl Recurrent {
    /// With an input of that size.
    pub fn shape(&self, input: c_int) -> Result<Network> {
        let skips_input = self.input_mode == cudnnRNNInputMode_t::CUDNN_SKIP_INPUT;
        require(
            !skips_input || input == self.hidden,
            "an input that is not multiplied has the state's size",
        )?;
        let bias = self.bias;
        let of_input = bias == cudnnRNNBiasMode_t::CUDNN_RNN_SINGLE_INP_BIAS;
        let of_state = bias == cudnnRNNBiasMode_t::CUDNN_RNN_SINGLE_REC_BIAS;
        let both = bias == cudnnRNNBiasMode_t::CUDNN_RNN_DOUBLE_BIAS;
        let (mode, nan, low, high) = self.clip;
        let clip = Clip { low, high, keeps_nan: nan == cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN };
        let cell = match self.cell {
            cudnnRNNMode_t::CUDNN_RNN_RELU => Cell::Relu,
            cudnnRNNMode_t::CUDNN_RNN_TANH => Cell::Tanh,
            cudnnRNNMode_t::CUDNN_LSTM => Cell::Lstm,
            _ => Cell::Gru,
        };
        let is_projected = cell == Cell::Lstm && self.projected > 0 && self.projected < self.hidden;
        Ok(Network {
            cell,
            input: input as usize,
            hidden: self.hidden as usize,
            projected: is_projected.then_some(self.projected as usize),
            layers: self.layers as usize,
            directions: 1 + usize::from(self.direction == cudnnDirectionMode_t::CUDNN_BIDIRECTIONAL),
            skips_input,
            biases: (both || of_input, both || of_state),
            clip: (mode == cudnnRNNClipMode_t::CUDNN_RNN_CLIP_MINMAX).then_some(clip),
        })
    }

    /// Whether padded sequences may be given.
    pub fn is_padded(&self) -> bool {
        self.flags & 1 != 0
    }
}

/// A type that networks compute with.
pub fn supported(of: cudnnDataType_t) -> Result<Kind> {
    let (kind, _) = kind(of)?;
    let is_float = matches!(kind, Kind::F32 | Kind::F64 | Kind::F16 | Kind::Bf16);
    supports(is_float, "a network of this type")?;
    Ok(kind)
}

/// Vectors of a batch's sequences.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Sequences {
    pub kind: cudnnDataType_t,
    pub layout: cudnnRNNDataLayout_t,
    pub steps: c_int,
    pub batch: c_int,
    pub width: c_int,
    pub lengths: Vec<c_int>,
    /// What is written where a sequence has no more steps.
    pub fill: Option<[u8; 8]>,
}

impl Sequences {
    pub fn batches(&self) -> Batches {
        let lengths: Vec<usize> = self.lengths.iter().map(|&length| length as usize).collect();
        Batches::new(&lengths)
    }

    /// Rows that a network of these sizes may have.
    pub fn most_rows(&self) -> usize {
        self.steps as usize * self.batch as usize
    }

    pub fn is_packed(&self) -> bool {
        self.layout == cudnnRNNDataLayout_t::CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
    }

    /// The other's vectors may have another size and fill.
    pub fn goes_with(&self, other: &Sequences) -> Result {
        let same = (self.kind, self.layout, self.steps) == (other.kind, other.layout, other.steps);
        require(same && self.lengths == other.lengths, "the sequences' types, layouts or lengths differ")
    }

    pub fn at(&self, memory: *const c_void) -> Result<Lying> {
        let kind = supported(self.kind)?;
        require(!memory.is_null(), "the memory of sequences is NULL")?;
        require(
            memory.addr().is_multiple_of(kind.bytes()),
            "the memory of sequences is not aligned to its type",
        )?;
        let vectors = if self.is_packed() { self.batches().rows } else { self.most_rows() };
        let own = memory.cast::<u8>().cast_mut();
        Ok(Lying {
            own: Address(own),
            at: crate::memory::array(own, vectors * self.width as usize * kind.bytes())?,
            kind,
            layout: self.layout,
            steps: self.steps as usize,
            batch: self.batch as usize,
            width: self.width as usize,
            fill: self.fill,
        })
    }
}

/// Sequences in memory.
#[derive(Clone, Copy)]
pub struct Lying {
    /// The program's own address.
    own: Address<*mut u8>,
    at: Address<*mut u8>,
    kind: Kind,
    layout: cudnnRNNDataLayout_t,
    steps: usize,
    batch: usize,
    width: usize,
    fill: Option<[u8; 8]>,
}

impl Lying {
    fn is_packed(&self) -> bool {
        self.layout == cudnnRNNDataLayout_t::CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED
    }

    /// The vector's number of a step of a sequence where there is padding.
    fn place(&self, (step, sequence): (usize, usize)) -> usize {
        if self.layout == cudnnRNNDataLayout_t::CUDNN_RNN_DATA_LAYOUT_BATCH_MAJOR_UNPACKED {
            sequence * self.steps + step
        } else {
            step * self.batch + sequence
        }
    }

    /// # Safety
    /// Memory has so many vectors from there.
    unsafe fn vectors(&self, first: usize, count: usize) -> View {
        let at = self.at.get().wrapping_add(first * self.width * self.kind.bytes());
        // SAFETY: the caller's word.
        unsafe { View::packed(at, self.kind, &[count * self.width]) }
    }

    /// # Safety
    /// The sequences are there, and nobody writes them meanwhile.
    unsafe fn load<V: Value>(&self, batches: &Batches) -> Vec<V> {
        // SAFETY: the caller's word.
        unsafe {
            if self.is_packed() {
                return self.vectors(0, batches.rows).load();
            }
            let all = self.vectors(0, self.steps * self.batch);
            let all = all.dense::<V>();
            let rows = batches.places().map(|place| &all[self.place(place) * self.width..][..self.width]);
            rows.flatten().copied().collect()
        }
    }

    /// # Safety
    /// The sequences' memory is there, and nobody else uses it meanwhile.
    unsafe fn store<V: Value>(&self, batches: &Batches, rows: &[V]) {
        // SAFETY: the caller's word.
        unsafe {
            if self.is_packed() {
                return self.vectors(0, batches.rows).store(rows, V::one(), V::zero());
            }
            let mut is_padding = vec![true; self.steps * self.batch];
            for (row, place) in rows.chunks(self.width).zip(batches.places()) {
                is_padding[self.place(place)] = false;
                self.vectors(self.place(place), 1).store(row, V::one(), V::zero());
            }
            let Some(fill) = self.fill else { return };
            let bytes = self.kind.bytes();
            for place in (0..is_padding.len()).filter(|place| is_padding[*place]) {
                for element in place * self.width..(place + 1) * self.width {
                    core::ptr::copy_nonoverlapping(fill.as_ptr(), self.at.get().add(element * bytes), bytes);
                }
            }
        }
    }
}

impl Lying {
    /// As kernels take them.
    fn on_kernels(&self, batches: &Batches) -> Vectors {
        let all = self.steps * self.batch;
        let numbers: Vec<u32> = batches.places().map(|place| self.place(place) as u32).collect();
        let is_in_order = self.is_packed() || numbers.iter().copied().eq(0..batches.rows as u32);
        let has_padding = !self.is_packed() && batches.rows < all;
        let fill = self.fill.filter(|_| has_padding).map(|mut fill| {
            // SAFETY: a number of the type lies there.
            let number = unsafe { View::packed(fill.as_mut_ptr(), self.kind, &[1]).load::<f64>() };
            number[0]
        });
        Vectors {
            at: Block::new(self.own.get(), self.kind, self.width),
            width: self.width,
            numbers: (!is_in_order).then_some(numbers),
            padding: fill.map(|fill| (all, fill)),
        }
    }
}

/// First or last states: where they lie, if anywhere, and how many numbers they are.
#[derive(Clone, Copy)]
pub struct States {
    view: Option<View>,
    /// The program's own address.
    own: Address<*mut u8>,
    count: usize,
}

impl States {
    /// Packed, with these sizes; NULL is none.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    pub unsafe fn of(
        descriptor: cudnnTensorDescriptor_t,
        memory: *const c_void,
        of: cudnnDataType_t,
        sizes: [usize; 3],
    ) -> Result<States> {
        let (count, own) = (sizes.iter().product(), Address(memory.cast::<u8>().cast_mut()));
        if memory.is_null() {
            return Ok(States { view: None, own, count });
        }
        let tensor = tensor(descriptor)?;
        let has: Vec<usize> = tensor.sizes.iter().map(|&size| size as usize).collect();
        require(has == sizes && tensor.kind == of, "a state's sizes or type are not the network's")?;
        // SAFETY: the caller's promise.
        let view = unsafe { tensor.view(memory) }?;
        let packed = [(sizes[1] * sizes[2]) as isize, sizes[2] as isize, 1];
        let is_packed = (0..3).all(|at| sizes[at] == 1 || view.strides()[at] == packed[at]);
        supports(is_packed, "states with gaps between them")?;
        Ok(States { view: Some(view), own, count })
    }

    /// As kernels take them.
    fn on_kernels(&self) -> Option<Block> {
        self.view.map(|view| Block::new(self.own.get(), view.kind(), 1))
    }

    /// # Safety
    /// They are there, and nobody writes them meanwhile.
    unsafe fn load<V: Value>(&self) -> Vec<V> {
        match self.view {
            // SAFETY: the caller's word.
            Some(view) => unsafe { view.load() },
            None => vec![V::zero(); self.count],
        }
    }

    /// # Safety
    /// They are there, and nobody else uses them meanwhile.
    unsafe fn store<V: Value>(&self, values: &[V]) {
        if let (Some(view), false) = (self.view, values.is_empty()) {
            // SAFETY: the caller's word.
            unsafe { view.store(values, V::one(), V::zero()) };
        }
    }
}

/// A call's network, sequences and weights.
#[derive(Clone)]
pub struct Call {
    pub network: Network,
    pub batches: Batches,
    pub is_double: bool,
    pub weights: View,
    /// The weights' own address in the program.
    pub own_weights: Address<*mut u8>,
}

impl Call {
    /// # Safety
    /// The weights are there until the stream has come to the call.
    pub unsafe fn new(
        network: Network,
        batches: Batches,
        weights: *const c_void,
        kind: Kind,
    ) -> Result<Call> {
        let at = weights.cast::<u8>().cast_mut();
        // SAFETY: the caller's promise.
        let weights = crate::memory::tensor(unsafe { View::packed(at, kind, &[network.weights()]) })?;
        Ok(Call { network, batches, is_double: kind == Kind::F64, weights, own_weights: Address(at) })
    }

    /// Sizes of states: of the hidden ones, and of an LSTM's cells.
    pub fn states(&self) -> [[usize; 3]; 2] {
        let (pseudo, batch) = (self.network.pseudo_layers(), self.batches.size());
        [[pseudo, batch, self.network.output()], [pseudo, batch, self.network.hidden]]
    }

    /// As kernels take it.
    fn on_kernels(&self) -> Problem<'_> {
        let weights = Block::new(self.own_weights.get(), self.weights.kind(), 1);
        Problem { network: &self.network, batches: &self.batches, weights }
    }
}

/// In front of a reserve space's numbers.
const HEADER: usize = 64;
/// So that memory that no training has written is told.
const MARK: u64 = 0x6375_6477_6179_726e;

/// Bytes of a reserve space.
pub fn reserve_bytes(network: &Network, rows: usize, is_double: bool) -> usize {
    HEADER + network.reserve(rows) * if is_double { 8 } else { 4 }
}

/// Where a reserve space lies for our own code, and the program's own address.
#[derive(Clone, Copy)]
pub struct Reserve(Address<*mut u8>, Address<*mut u8>);

impl Reserve {
    pub fn of(call: &Call, rows: usize, memory: *const c_void, bytes: usize) -> Result<Reserve> {
        require(!memory.is_null(), "reserveSpace")?;
        require(memory.addr().is_multiple_of(8), "the reserve space is not aligned")?;
        let needed = reserve_bytes(&call.network, rows, call.is_double);
        require(bytes >= needed, "the reserve space is too small")?;
        let own = memory.cast::<u8>().cast_mut();
        Ok(Reserve(crate::memory::array(own, needed)?, Address(own)))
    }

    /// As kernels take it.
    fn on_kernels(&self) -> Training {
        let at = self.1.get();
        let numbers = Block::new(at.wrapping_add(HEADER), Kind::F32, 1);
        Training { header: Block::new(at, Kind::F32, 1), numbers }
    }

    /// # Safety
    /// The space is there, and nobody else uses it meanwhile.
    unsafe fn numbers<'m, V>(&self, call: &Call) -> &'m mut [V] {
        let count = call.network.reserve(call.batches.rows);
        // SAFETY: the caller's word; the size was looked at, for no fewer rows.
        unsafe { core::slice::from_raw_parts_mut(self.0.get().add(HEADER).cast::<V>(), count) }
    }

    fn header(call: &Call, dropping: Option<Dropping>) -> [u64; 6] {
        let dropped = dropping.map_or([0; 3], |it| [it.dropped.to_bits(), it.state.seed, it.state.taken]);
        let sizes = [call.batches.rows as u64, call.network.weights() as u64];
        [MARK, sizes[0], sizes[1], dropped[0], dropped[1], dropped[2]]
    }

    /// # Safety
    /// As of [`Reserve::numbers`].
    unsafe fn begin(&self, call: &Call, dropping: Option<Dropping>) {
        // SAFETY: the caller's word; the header has room, and its address was looked at.
        unsafe { self.0.get().cast::<[u64; 6]>().write(Self::header(call, dropping)) };
    }

    /// What was dropped; `None` where no training of the same sizes has written the space.
    ///
    /// # Safety
    /// As of [`Reserve::numbers`].
    unsafe fn dropping(&self, call: &Call) -> Option<Option<Dropping>> {
        // SAFETY: as above.
        let header = unsafe { self.0.get().cast::<[u64; 6]>().read() };
        if header[..3] != Self::header(call, None)[..3] {
            tracing::error!(target: "cudaway::dnn", "the reserve space is none that a training's way forward of this network has written");
            return None;
        }
        let state = State { seed: header[4], taken: header[5] };
        Some((header[3] != 0).then(|| Dropping { dropped: f64::from_bits(header[3]), state }))
    }
}

/// Takes what a training's call drops from the states, which go on.
///
/// # Safety
/// The states are there, and nobody else uses them meanwhile.
unsafe fn take(from: Option<Inside>, call: &Call) -> Option<Dropping> {
    let Inside { dropped, states, .. } = from?;
    let mut bytes = [0; STATE];
    // SAFETY: the caller's word.
    unsafe { core::ptr::copy_nonoverlapping(states.get().cast_const(), bytes.as_mut_ptr(), STATE) };
    let Some(state) = State::of_bytes(bytes) else {
        tracing::error!(target: "cudaway::dnn", "dropout between layers: the states are none that cudnnSetDropoutDescriptor made, and nothing is dropped");
        return None;
    };
    let taken = state.taken.wrapping_add(Dropping::taken(&call.network, call.batches.rows));
    let after = State { taken, ..state }.bytes();
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(after.as_ptr(), states.get(), STATE) };
    Some(Dropping { dropped, state })
}

/// Outputs and last states; with a reserve space it is a training.
pub fn forward(
    context: &Context,
    call: Call,
    (x, y): (Lying, Lying),
    (hx, hy): (States, States),
    (cx, cy): (States, States),
    dropout: Option<Inside>,
    reserve: Option<Reserve>,
) -> Result {
    if !call.is_double {
        on_kernels!(context, kernels => {
            let training = reserve.map(|reserve| {
                let drops = dropout.map(|it| (it.dropped, Block::new(it.own.get(), Kind::F32, 1)));
                let [mark, rows, weights, ..] = Reserve::header(&call, None);
                let begun = Begun { header: [mark, rows, weights], drops, states_mark: dropout::MARK };
                (reserve.on_kernels(), begun)
            });
            let vectors = (&x.on_kernels(&call.batches), &y.on_kernels(&call.batches));
            let states = [[hx, hy], [cx, cy]].map(|both| both.map(|it| it.on_kernels()));
            kernels.network_forward(&call.on_kernels(), vectors, states.into(), training)
        });
    }
    compute!(context, call.is_double, V => {
        // SAFETY: cuDNN's contract: all that was given is there until the stream has come here.
        unsafe {
            let dropping = reserve.and_then(|_| take(dropout, &call));
            let kept = reserve.map(|reserve| {
                reserve.begin(&call, dropping);
                reserve.numbers::<V>(&call)
            });
            let (h, c, weights) = (hx.load::<V>(), cx.load::<V>(), call.weights.dense::<V>());
            let inputs = x.load::<V>(&call.batches);
            let found =
                recurrent::forward(&call.network, &call.batches, &weights, &inputs, (&h, &c), dropping, kept);
            y.store(&call.batches, &found.y);
            hy.store(&found.h);
            cy.store(&found.c);
        }
    })
}

/// Gradients of inputs and first states.
pub fn backward_data(
    context: &Context,
    call: Call,
    (dy, dx): (Lying, Lying),
    (hx, dhy, dhx): (States, States, States),
    (cx, dcy, dcx): (States, States, States),
    reserve: Reserve,
) -> Result {
    if !call.is_double {
        on_kernels!(context, kernels => {
            let vectors = (&dy.on_kernels(&call.batches), &dx.on_kernels(&call.batches));
            let first = (hx.on_kernels(), cx.on_kernels());
            let states = [[dhy, dhx], [dcy, dcx]].map(|both| both.map(|it| it.on_kernels()));
            kernels.network_backward(&call.on_kernels(), vectors, first, states.into(), reserve.on_kernels())
        });
    }
    compute!(context, call.is_double, V => {
        // SAFETY: as above.
        unsafe {
            let Some(dropping) = reserve.dropping(&call) else { return };
            let (h, c) = (hx.load::<V>(), cx.load::<V>());
            let (dh, dc) = (dhy.load::<V>(), dcy.load::<V>());
            let (weights, kept) = (call.weights.dense::<V>(), reserve.numbers::<V>(&call));
            let dy = dy.load::<V>(&call.batches);
            let states = ((&h[..], &c[..]), (&dh[..], &dc[..]));
            let found = recurrent::data(
                &call.network, &call.batches, &weights, &dy, states.0, states.1, (dropping, kept)
            );
            dx.store(&call.batches, &found.x);
            dhx.store(&found.h);
            dcx.store(&found.c);
        }
    })
}

/// The weights' gradients are added to those in memory.
pub fn backward_weights(context: &Context, call: Call, x: Lying, hx: States, reserve: Reserve) -> Result {
    if !call.is_double {
        on_kernels!(context, kernels => {
            let (x, h) = (x.on_kernels(&call.batches), hx.on_kernels());
            kernels.network_weights(&call.on_kernels(), &x, h, reserve.on_kernels())
        });
    }
    compute!(context, call.is_double, V => {
        // SAFETY: as above.
        unsafe {
            let Some(dropping) = reserve.dropping(&call) else { return };
            let (inputs, h) = (x.load::<V>(&call.batches), hx.load::<V>());
            call.weights.update(V::of(1.0), |to, _| {
                recurrent::weights(&call.network, &call.batches, &inputs, &h, dropping, reserve.numbers::<V>(&call), to);
            });
        }
    })
}
