//! The first API of recurrent networks, which 8 still has: types and the input's size are the calls'. Source: cuDNN 8's manual, "cudnn_adv
//! libraries", `cudnnSetRNNDescriptor_v6`, `cudnnRNNForwardTraining`, `cudnnRNNForwardTrainingEx` and so on.

use core::ffi::{c_int, c_uint, c_void};
use std::sync::Arc;

use border::{OptOut, Out};
use cudnn_cpu::recurrent::Place;
use kit::Address;

use crate::api::dropout;
use crate::api::recurrent::{clip, looked_at, which};
use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{Context, computing};
use crate::recurrent::{
    self, Call, NETWORKS, Recurrent, Reserve, SEQUENCES, Sequences, States, network, supported,
};
use crate::tensor::{FILTERS, Filter, filter, kind, list, tensor};
use crate::types::*;
use crate::{Error, Result};

/// What the descriptor had of projections, bounds and biases stays.
pub fn cudnnSetRNNDescriptor_v6(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    hiddenSize: c_int,
    numLayers: c_int,
    dropoutDesc: cudnnDropoutDescriptor_t,
    inputMode: cudnnRNNInputMode_t,
    direction: cudnnDirectionMode_t,
    cellMode: cudnnRNNMode_t,
    algo: cudnnRNNAlgo_t,
    mathPrec: cudnnDataType_t,
) -> Result {
    computing(handle)?;
    let known = NETWORKS.get(rnnDesc)?;
    let new = Recurrent {
        algo,
        cell: cellMode,
        direction,
        input_mode: inputMode,
        kind: mathPrec,
        precision: mathPrec,
        input: 0,
        hidden: hiddenSize,
        projected: 0,
        layers: numLayers,
        dropout: Address(dropoutDesc),
        ..known
    };
    looked_at(&new)?;
    kind(mathPrec)?;
    let is_precision = matches!(
        mathPrec,
        cudnnDataType_t::CUDNN_DATA_FLOAT
            | cudnnDataType_t::CUDNN_DATA_DOUBLE
            | cudnnDataType_t::CUDNN_DATA_HALF
    );
    supports(is_precision, "a network in this precision")?;
    dropout::inside(dropoutDesc)?;
    NETWORKS.set(rnnDesc, new)
}

pub fn cudnnGetRNNDescriptor_v6(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    hiddenSize: OptOut<'_, c_int>,
    numLayers: OptOut<'_, c_int>,
    dropoutDesc: OptOut<'_, cudnnDropoutDescriptor_t>,
    inputMode: OptOut<'_, cudnnRNNInputMode_t>,
    direction: OptOut<'_, cudnnDirectionMode_t>,
    cellMode: OptOut<'_, cudnnRNNMode_t>,
    algo: OptOut<'_, cudnnRNNAlgo_t>,
    mathPrec: OptOut<'_, cudnnDataType_t>,
) -> Result {
    computing(handle)?;
    let network = network(rnnDesc)?;
    hiddenSize.write(network.hidden);
    numLayers.write(network.layers);
    dropoutDesc.write(network.dropout.get());
    inputMode.write(network.input_mode);
    direction.write(network.direction);
    cellMode.write(network.cell);
    algo.write(network.algo);
    mathPrec.write(network.precision);
    Ok(())
}

pub fn cudnnSetRNNMatrixMathType(rnnDesc: cudnnRNNDescriptor_t, mType: cudnnMathType_t) -> Result {
    NETWORKS.get(rnnDesc)?;
    require((0..4).contains(&mType.0), "there is no such kind of products")?;
    NETWORKS.change(rnnDesc, |network| network.math = mType)
}

pub fn cudnnGetRNNMatrixMathType(rnnDesc: cudnnRNNDescriptor_t, mType: Out<'_, cudnnMathType_t>) -> Result {
    mType.write(NETWORKS.get(rnnDesc)?.math);
    Ok(())
}

pub fn cudnnSetRNNBiasMode(rnnDesc: cudnnRNNDescriptor_t, biasMode: cudnnRNNBiasMode_t) -> Result {
    NETWORKS.get(rnnDesc)?;
    require((0..4).contains(&biasMode.0), "there is no such kind of biases")?;
    NETWORKS.change(rnnDesc, |network| network.bias = biasMode)
}

pub fn cudnnGetRNNBiasMode(rnnDesc: cudnnRNNDescriptor_t, biasMode: Out<'_, cudnnRNNBiasMode_t>) -> Result {
    biasMode.write(NETWORKS.get(rnnDesc)?.bias);
    Ok(())
}

pub fn cudnnRNNSetClip(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    clipMode: cudnnRNNClipMode_t,
    clipNanOpt: cudnnNanPropagation_t,
    lclip: f64,
    rclip: f64,
) -> Result {
    computing(handle)?;
    clip(rnnDesc, clipMode, clipNanOpt, lclip, rclip)
}

pub fn cudnnRNNGetClip(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    clipMode: OptOut<'_, cudnnRNNClipMode_t>,
    clipNanOpt: OptOut<'_, cudnnNanPropagation_t>,
    lclip: OptOut<'_, f64>,
    rclip: OptOut<'_, f64>,
) -> Result {
    computing(handle)?;
    crate::api::recurrent::cudnnRNNGetClip_v8(rnnDesc, clipMode, clipNanOpt, lclip, rclip)
}

/// The state of an LSTM is projected, if at all; 0 or the state's size turns it off. Outputs have no projection of their own.
pub fn cudnnSetRNNProjectionLayers(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    recProjSize: c_int,
    outProjSize: c_int,
) -> Result {
    computing(handle)?;
    let known = network(rnnDesc)?;
    require((0..=known.hidden).contains(&recProjSize), "the projection's size is out of bounds")?;
    supports(outProjSize == 0, "a projection of outputs")?;
    let is_projected = recProjSize != 0 && recProjSize != known.hidden;
    let may_be =
        known.cell == cudnnRNNMode_t::CUDNN_LSTM && known.algo == cudnnRNNAlgo_t::CUDNN_RNN_ALGO_STANDARD;
    supports(!is_projected || may_be, "a projection of anything but an LSTM of the standard algorithm")?;
    NETWORKS.change(rnnDesc, |network| network.projected = recProjSize)
}

pub fn cudnnGetRNNProjectionLayers(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    recProjSize: OptOut<'_, c_int>,
    outProjSize: OptOut<'_, c_int>,
) -> Result {
    computing(handle)?;
    recProjSize.write(network(rnnDesc)?.projected);
    outProjSize.write(0);
    Ok(())
}

pub fn cudnnSetRNNPaddingMode(rnnDesc: cudnnRNNDescriptor_t, paddingMode: c_uint) -> Result {
    NETWORKS.get(rnnDesc)?;
    require(paddingMode <= 1, "there is no such mode")?;
    NETWORKS.change(rnnDesc, |network| network.flags = paddingMode)
}

pub fn cudnnGetRNNPaddingMode(rnnDesc: cudnnRNNDescriptor_t, paddingMode: Out<'_, c_uint>) -> Result {
    paddingMode.write(NETWORKS.get(rnnDesc)?.flags);
    Ok(())
}

/// A plan says for which batches and which type a dynamic network was compiled; here there is nothing to compile.
#[derive(Clone, Copy, Default)]
struct Plan {
    batch: c_int,
    kind: cudnnDataType_t,
}

static PLANS: Descriptors<Plan> = Descriptors::new();

pub fn cudnnCreatePersistentRNNPlan(
    rnnDesc: cudnnRNNDescriptor_t,
    minibatch: c_int,
    dataType: cudnnDataType_t,
    plan: Out<'_, cudnnPersistentRNNPlan_t>,
) -> Result {
    let network = network(rnnDesc)?;
    require(minibatch > 0, "a batch has at least one sequence")?;
    supported(dataType)?;
    let is_dynamic = network.algo == cudnnRNNAlgo_t::CUDNN_RNN_ALGO_PERSIST_DYNAMIC;
    require(is_dynamic, "the network's algorithm is not the one that is compiled")?;
    let made = PLANS.add();
    PLANS.set(made, Plan { batch: minibatch, kind: dataType })?;
    plan.write(made);
    Ok(())
}

pub fn cudnnDestroyPersistentRNNPlan(plan: cudnnPersistentRNNPlan_t) -> Result {
    PLANS.remove(plan)
}

pub fn cudnnSetPersistentRNNPlan(rnnDesc: cudnnRNNDescriptor_t, plan: cudnnPersistentRNNPlan_t) -> Result {
    let (network, plan) = (network(rnnDesc)?, PLANS.get(plan)?);
    let is_dynamic = network.algo == cudnnRNNAlgo_t::CUDNN_RNN_ALGO_PERSIST_DYNAMIC;
    require(is_dynamic && plan.batch > 0, "the network's algorithm is not the one that is compiled")?;
    tracing::debug!(target: "cudaway::dnn", "a plan for batches of {} of type {}", plan.batch, plan.kind.0);
    Ok(())
}

/// Vectors of each step, packed: the batches become no larger.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn steps(count: c_int, descriptors: *const cudnnTensorDescriptor_t) -> Result<Sequences> {
    require(count > 0, "there is no step")?;
    let tensors: Vec<_> =
        // SAFETY: the caller's promise.
        unsafe { list(descriptors, count) }?.iter().map(|&descriptor| tensor(descriptor)).collect::<Result<_>>()?;
    let first = &tensors[0];
    require(first.sizes.len() == 3, "a step's tensor has three sizes")?;
    let width = first.sizes[1];
    for (before, tensor) in tensors.iter().zip(&tensors[1..]) {
        let fits = tensor.kind == first.kind && tensor.sizes.len() == 3 && tensor.sizes[1] == width;
        require(
            fits && tensor.sizes[0] <= before.sizes[0],
            "steps differ in type or size, or become larger",
        )?;
    }
    for tensor in &tensors {
        let is_packed = tensor.sizes[2] == 1 && (tensor.sizes[0] == 1 || tensor.strides[0] == width);
        supports(is_packed && (width == 1 || tensor.strides[1] == 1), "steps with gaps between vectors")?;
    }
    let batch = first.sizes[0];
    let lengths =
        (0..batch).map(|at| tensors.iter().filter(|tensor| tensor.sizes[0] > at).count() as c_int).collect();
    let layout = cudnnRNNDataLayout_t::CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    Ok(Sequences { kind: first.kind, layout, steps: count, batch, width, lengths, fill: None })
}

/// A network for sequences of a type and an input size.
fn of(rnnDesc: cudnnRNNDescriptor_t, kind: cudnnDataType_t, input: c_int) -> Result<Recurrent> {
    let known = network(rnnDesc)?;
    supported(kind)?;
    let double = cudnnDataType_t::CUDNN_DATA_DOUBLE;
    let fits = (kind == double) == (known.precision == double);
    supports(fits, "a network of this type in this precision")?;
    Ok(Recurrent { kind, input, ..known })
}

/// Of a step's tensor: its type and the vectors' size.
fn of_step(rnnDesc: cudnnRNNDescriptor_t, xDesc: cudnnTensorDescriptor_t) -> Result<Recurrent> {
    let x = tensor(xDesc)?;
    require(x.sizes.len() == 3, "a step's tensor has three sizes")?;
    of(rnnDesc, x.kind, x.sizes[1])
}

/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnGetRNNWorkspaceSize(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    seqLength: c_int,
    xDesc: *const cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    network(rnnDesc)?;
    // SAFETY: the caller's promise.
    unsafe { steps(seqLength, xDesc) }?;
    sizeInBytes.write(0);
    Ok(())
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnGetRNNTrainingReserveSize(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    seqLength: c_int,
    xDesc: *const cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    // SAFETY: the caller's promise.
    let x = unsafe { steps(seqLength, xDesc) }?;
    let network = of(rnnDesc, x.kind, x.width)?.shape(x.width)?;
    let is_double = x.kind == cudnnDataType_t::CUDNN_DATA_DOUBLE;
    sizeInBytes.write(recurrent::reserve_bytes(&network, x.most_rows(), is_double));
    Ok(())
}

pub fn cudnnGetRNNParamsSize(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    xDesc: cudnnTensorDescriptor_t,
    sizeInBytes: Out<'_, usize>,
    dataType: cudnnDataType_t,
) -> Result {
    computing(handle)?;
    let network = of_step(rnnDesc, xDesc)?;
    require(dataType == network.kind, "the weights' type is not that of the input")?;
    sizeInBytes.write(network.shape(network.input)?.weights() * supported(dataType)?.bytes());
    Ok(())
}

/// A matrix or a bias has three sizes: 1, rows and columns.
fn linear(
    rnnDesc: cudnnRNNDescriptor_t,
    (pseudoLayer, linLayerID): (c_int, c_int),
    xDesc: cudnnTensorDescriptor_t,
    (wDesc, w): (cudnnFilterDescriptor_t, *const c_void),
    place: impl FnOnce(&cudnn_cpu::recurrent::Network, usize, usize) -> Option<Place>,
    descriptor: cudnnFilterDescriptor_t,
    address: Out<'_, *mut c_void>,
) -> Result {
    let known = of_step(rnnDesc, xDesc)?;
    let network = known.shape(known.input)?;
    let weights = filter(wDesc)?;
    require(weights.kind == known.kind, "the weights' type is not that of the input")?;
    let bytes = supported(known.kind)?.bytes();
    require(weights.bytes()? >= network.weights() * bytes, "the weights are too few")?;
    let (pseudo, linear) = which(&known, pseudoLayer, linLayerID)?;
    let Some(place) = place(&network, pseudo, linear) else {
        FILTERS.set(descriptor, Filter { kind: known.kind, ..Filter::default() })?;
        address.write(core::ptr::null_mut());
        return Ok(());
    };
    let sizes = [1, place.rows as c_int, place.columns as c_int];
    FILTERS.set(descriptor, Filter::new(known.kind, cudnnTensorFormat_t::CUDNN_TENSOR_NCHW, &sizes)?)?;
    address.write(w.cast_mut().wrapping_byte_add(place.first * bytes));
    Ok(())
}

pub fn cudnnGetRNNLinLayerMatrixParams(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    pseudoLayer: c_int,
    xDesc: cudnnTensorDescriptor_t,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    linLayerID: c_int,
    linLayerMatDesc: cudnnFilterDescriptor_t,
    linLayerMat: Out<'_, *mut c_void>,
) -> Result {
    computing(handle)?;
    let which = (pseudoLayer, linLayerID);
    let place = |network: &cudnn_cpu::recurrent::Network, pseudo, linear| network.matrix(pseudo, linear);
    linear(rnnDesc, which, xDesc, (wDesc, w), place, linLayerMatDesc, linLayerMat)
}

pub fn cudnnGetRNNLinLayerBiasParams(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    pseudoLayer: c_int,
    xDesc: cudnnTensorDescriptor_t,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    linLayerID: c_int,
    linLayerBiasDesc: cudnnFilterDescriptor_t,
    linLayerBias: Out<'_, *mut c_void>,
) -> Result {
    computing(handle)?;
    let which = (pseudoLayer, linLayerID);
    let place = |network: &cudnn_cpu::recurrent::Network, pseudo, linear| network.bias(pseudo, linear);
    linear(rnnDesc, which, xDesc, (wDesc, w), place, linLayerBiasDesc, linLayerBias)
}

/// A descriptor and its memory.
type State = (cudnnTensorDescriptor_t, *const c_void);

/// What calls of the first API have in common.
struct Begun {
    context: Arc<Context>,
    network: Recurrent,
    call: Call,
}

fn begin(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    (x, y): (&Sequences, &Sequences),
    (wDesc, w): (cudnnFilterDescriptor_t, *const c_void),
) -> Result<Begun> {
    let context = computing(handle)?;
    require(x.steps > 0 && y.steps > 0, "the sequences' descriptor was not set")?;
    x.goes_with(y)?;
    let network = of(rnnDesc, x.kind, x.width)?;
    let shape = network.shape(x.width)?;
    let output = shape.directions * shape.output();
    require(y.width as usize == output, "the vectors of y have not the network's output size")?;
    let is_whole = x.is_packed() || x.lengths.iter().all(|length| *length == x.steps);
    require(network.is_padded() || is_whole, "the network's padding mode says that there is no padding")?;
    let (weights, kind) = (filter(wDesc)?, supported(x.kind)?);
    require(weights.kind == x.kind, "the weights' type is not that of the input")?;
    require(weights.bytes()? >= shape.weights() * kind.bytes(), "the weights are too few")?;
    require(!w.is_null() && w.addr().is_multiple_of(kind.bytes()), "the weights are NULL or not aligned")?;
    // SAFETY: cuDNN's contract: the weights are there until the stream has come to the call.
    let call = unsafe { Call::new(shape, x.batches(), w, kind) }?;
    Ok(Begun { context, network, call })
}

impl Begun {
    /// # Safety
    /// As [`cudnnGetRNNWorkspaceSize`].
    unsafe fn hidden<const N: usize>(&self, of: [State; N]) -> Result<[States; N]> {
        // SAFETY: the caller's promise.
        unsafe { self.states(of, self.call.states()[0]) }
    }

    /// None but an LSTM's.
    ///
    /// # Safety
    /// As [`cudnnGetRNNWorkspaceSize`].
    unsafe fn cells<const N: usize>(&self, of: [State; N]) -> Result<[States; N]> {
        if self.network.cell == cudnnRNNMode_t::CUDNN_LSTM {
            // SAFETY: the caller's promise.
            unsafe { self.states(of, self.call.states()[1]) }
        } else {
            // SAFETY: the caller's promise.
            unsafe { self.states(of.map(|_| (core::ptr::null_mut(), core::ptr::null())), [0; 3]) }
        }
    }

    /// # Safety
    /// As [`cudnnGetRNNWorkspaceSize`].
    unsafe fn states<const N: usize>(&self, of: [State; N], sizes: [usize; 3]) -> Result<[States; N]> {
        // SAFETY: the caller's promise.
        let mut found =
            [unsafe { States::of(core::ptr::null_mut(), core::ptr::null(), self.network.kind, sizes) }?; N];
        for (to, (descriptor, memory)) in found.iter_mut().zip(of) {
            // SAFETY: the caller's promise.
            *to = unsafe { States::of(descriptor, memory, self.network.kind, sizes) }?;
        }
        Ok(found)
    }
}

/// A training has a reserve space.
///
/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
unsafe fn forward(
    begun: Begun,
    (x, y): ((&Sequences, *const c_void), (&Sequences, *const c_void)),
    h: [State; 2],
    c: [State; 2],
    reserve: Option<(*mut c_void, usize)>,
) -> Result {
    // SAFETY: the caller's promise.
    let ([hx, hy], [cx, cy]) = (unsafe { begun.hidden(h) }?, unsafe { begun.cells(c) }?);
    let dropout = dropout::inside(begun.network.dropout.get())?;
    let reserve = match reserve {
        Some((at, bytes)) => Some(Reserve::of(&begun.call, x.0.most_rows(), at, bytes)?),
        None => None,
    };
    let sequences = (x.0.at(x.1)?, y.0.at(y.1)?);
    recurrent::forward(&begun.context, begun.call, sequences, (hx, hy), (cx, cy), dropout, reserve)
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
unsafe fn data(
    begun: Begun,
    (dy, dx): ((&Sequences, *const c_void), (&Sequences, *const c_void)),
    h: [State; 3],
    c: [State; 3],
    (at, bytes): (*mut c_void, usize),
) -> Result {
    // SAFETY: the caller's promise.
    let ([hx, dhy, dhx], [cx, dcy, dcx]) = (unsafe { begun.hidden(h) }?, unsafe { begun.cells(c) }?);
    let reserve = Reserve::of(&begun.call, dx.0.most_rows(), at, bytes)?;
    let sequences = (dy.0.at(dy.1)?, dx.0.at(dx.1)?);
    recurrent::backward_data(&begun.context, begun.call, sequences, (hx, dhy, dhx), (cx, dcy, dcx), reserve)
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
unsafe fn weights(
    begun: Begun,
    x: (&Sequences, *const c_void),
    h: State,
    (at, bytes): (*const c_void, usize),
) -> Result {
    // SAFETY: the caller's promise.
    let [hx] = unsafe { begun.hidden([h]) }?;
    let reserve = Reserve::of(&begun.call, x.0.most_rows(), at, bytes)?;
    recurrent::backward_weights(&begun.context, begun.call, x.0.at(x.1)?, hx, reserve)
}

/// What is reserved for attention is NULL.
fn reserved(descriptors: &[cudnnRNNDataDescriptor_t], memory: &[*const c_void]) -> Result {
    let is_nothing = descriptors.iter().all(|it| it.is_null()) && memory.iter().all(|it| it.is_null());
    if is_nothing { Ok(()) } else { Err(Error::NotSupported("attention inside of a recurrent network")) }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNForwardInference(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    seqLength: c_int,
    xDesc: *const cudnnTensorDescriptor_t,
    x: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    cxDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    yDesc: *const cudnnTensorDescriptor_t,
    y: *mut c_void,
    hyDesc: cudnnTensorDescriptor_t,
    hy: *mut c_void,
    cyDesc: cudnnTensorDescriptor_t,
    cy: *mut c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { steps(seqLength, xDesc) }?, unsafe { steps(seqLength, yDesc) }?);
    let begun = begin(handle, rnnDesc, (&from, &to), (wDesc, w))?;
    let states = ([(hxDesc, hx), (hyDesc, hy.cast_const())], [(cxDesc, cx), (cyDesc, cy.cast_const())]);
    // SAFETY: the caller's promise.
    unsafe { forward(begun, ((&from, x), (&to, y)), states.0, states.1, None) }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNForwardTraining(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    seqLength: c_int,
    xDesc: *const cudnnTensorDescriptor_t,
    x: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    cxDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    yDesc: *const cudnnTensorDescriptor_t,
    y: *mut c_void,
    hyDesc: cudnnTensorDescriptor_t,
    hy: *mut c_void,
    cyDesc: cudnnTensorDescriptor_t,
    cy: *mut c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { steps(seqLength, xDesc) }?, unsafe { steps(seqLength, yDesc) }?);
    let begun = begin(handle, rnnDesc, (&from, &to), (wDesc, w))?;
    let states = ([(hxDesc, hx), (hyDesc, hy.cast_const())], [(cxDesc, cx), (cyDesc, cy.cast_const())]);
    // SAFETY: the caller's promise.
    unsafe {
        forward(
            begun,
            ((&from, x), (&to, y)),
            states.0,
            states.1,
            Some((reserveSpace, reserveSpaceSizeInBytes)),
        )
    }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNForwardInferenceEx(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    xDesc: cudnnRNNDataDescriptor_t,
    x: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    cxDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *mut c_void,
    hyDesc: cudnnTensorDescriptor_t,
    hy: *mut c_void,
    cyDesc: cudnnTensorDescriptor_t,
    cy: *mut c_void,
    kDesc: cudnnRNNDataDescriptor_t,
    keys: *const c_void,
    cDesc: cudnnRNNDataDescriptor_t,
    cAttn: *mut c_void,
    iDesc: cudnnRNNDataDescriptor_t,
    iAttn: *mut c_void,
    qDesc: cudnnRNNDataDescriptor_t,
    queries: *mut c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
) -> Result {
    reserved(&[kDesc, cDesc, iDesc, qDesc], &[keys, cAttn, iAttn, queries])?;
    let (from, to) = (SEQUENCES.get(xDesc)?, SEQUENCES.get(yDesc)?);
    let begun = begin(handle, rnnDesc, (&from, &to), (wDesc, w))?;
    let states = ([(hxDesc, hx), (hyDesc, hy.cast_const())], [(cxDesc, cx), (cyDesc, cy.cast_const())]);
    // SAFETY: the caller's promise.
    unsafe { forward(begun, ((&from, x), (&to, y)), states.0, states.1, None) }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNForwardTrainingEx(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    xDesc: cudnnRNNDataDescriptor_t,
    x: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    cxDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *mut c_void,
    hyDesc: cudnnTensorDescriptor_t,
    hy: *mut c_void,
    cyDesc: cudnnTensorDescriptor_t,
    cy: *mut c_void,
    kDesc: cudnnRNNDataDescriptor_t,
    keys: *const c_void,
    cDesc: cudnnRNNDataDescriptor_t,
    cAttn: *mut c_void,
    iDesc: cudnnRNNDataDescriptor_t,
    iAttn: *mut c_void,
    qDesc: cudnnRNNDataDescriptor_t,
    queries: *mut c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    reserved(&[kDesc, cDesc, iDesc, qDesc], &[keys, cAttn, iAttn, queries])?;
    let (from, to) = (SEQUENCES.get(xDesc)?, SEQUENCES.get(yDesc)?);
    let begun = begin(handle, rnnDesc, (&from, &to), (wDesc, w))?;
    let states = ([(hxDesc, hx), (hyDesc, hy.cast_const())], [(cxDesc, cx), (cyDesc, cy.cast_const())]);
    // SAFETY: the caller's promise.
    unsafe {
        forward(
            begun,
            ((&from, x), (&to, y)),
            states.0,
            states.1,
            Some((reserveSpace, reserveSpaceSizeInBytes)),
        )
    }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNBackwardData(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    seqLength: c_int,
    yDesc: *const cudnnTensorDescriptor_t,
    y: *const c_void,
    dyDesc: *const cudnnTensorDescriptor_t,
    dy: *const c_void,
    dhyDesc: cudnnTensorDescriptor_t,
    dhy: *const c_void,
    dcyDesc: cudnnTensorDescriptor_t,
    dcy: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    cxDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    dxDesc: *const cudnnTensorDescriptor_t,
    dx: *mut c_void,
    dhxDesc: cudnnTensorDescriptor_t,
    dhx: *mut c_void,
    dcxDesc: cudnnTensorDescriptor_t,
    dcx: *mut c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { steps(seqLength, dyDesc) }?, unsafe { steps(seqLength, dxDesc) }?);
    // SAFETY: the caller's promise.
    from.goes_with(&unsafe { steps(seqLength, yDesc) }?)?;
    require(!y.is_null(), "y is NULL")?;
    let begun = begin(handle, rnnDesc, (&to, &from), (wDesc, w))?;
    let h = [(hxDesc, hx), (dhyDesc, dhy), (dhxDesc, dhx.cast_const())];
    let c = [(cxDesc, cx), (dcyDesc, dcy), (dcxDesc, dcx.cast_const())];
    // SAFETY: the caller's promise.
    unsafe { data(begun, ((&from, dy), (&to, dx)), h, c, (reserveSpace, reserveSpaceSizeInBytes)) }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNBackwardDataEx(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *const c_void,
    dyDesc: cudnnRNNDataDescriptor_t,
    dy: *const c_void,
    dcDesc: cudnnRNNDataDescriptor_t,
    dcAttn: *const c_void,
    dhyDesc: cudnnTensorDescriptor_t,
    dhy: *const c_void,
    dcyDesc: cudnnTensorDescriptor_t,
    dcy: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    cxDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    dxDesc: cudnnRNNDataDescriptor_t,
    dx: *mut c_void,
    dhxDesc: cudnnTensorDescriptor_t,
    dhx: *mut c_void,
    dcxDesc: cudnnTensorDescriptor_t,
    dcx: *mut c_void,
    dkDesc: cudnnRNNDataDescriptor_t,
    dkeys: *mut c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    reserved(&[dcDesc, dkDesc], &[dcAttn, dkeys])?;
    let (from, to) = (SEQUENCES.get(dyDesc)?, SEQUENCES.get(dxDesc)?);
    from.goes_with(&SEQUENCES.get(yDesc)?)?;
    require(!y.is_null(), "y is NULL")?;
    let begun = begin(handle, rnnDesc, (&to, &from), (wDesc, w))?;
    let h = [(hxDesc, hx), (dhyDesc, dhy), (dhxDesc, dhx.cast_const())];
    let c = [(cxDesc, cx), (dcyDesc, dcy), (dcxDesc, dcx.cast_const())];
    // SAFETY: the caller's promise.
    unsafe { data(begun, ((&from, dy), (&to, dx)), h, c, (reserveSpace, reserveSpaceSizeInBytes)) }
}

/// Behind the way back of data. Gradients are added to those in memory.
///
/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNBackwardWeights(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    seqLength: c_int,
    xDesc: *const cudnnTensorDescriptor_t,
    x: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    yDesc: *const cudnnTensorDescriptor_t,
    y: *const c_void,
    _workSpace: *const c_void,
    _workSpaceSizeInBytes: usize,
    dwDesc: cudnnFilterDescriptor_t,
    dw: *mut c_void,
    reserveSpace: *const c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { steps(seqLength, xDesc) }?, unsafe { steps(seqLength, yDesc) }?);
    require(!y.is_null(), "y is NULL")?;
    let begun = begin(handle, rnnDesc, (&from, &to), (dwDesc, dw))?;
    // SAFETY: the caller's promise.
    unsafe { weights(begun, (&from, x), (hxDesc, hx), (reserveSpace, reserveSpaceSizeInBytes)) }
}

/// # Safety
/// As [`cudnnGetRNNWorkspaceSize`].
pub unsafe fn cudnnRNNBackwardWeightsEx(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    xDesc: cudnnRNNDataDescriptor_t,
    x: *const c_void,
    hxDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *const c_void,
    _workSpace: *mut c_void,
    _workSpaceSizeInBytes: usize,
    dwDesc: cudnnFilterDescriptor_t,
    dw: *mut c_void,
    reserveSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
) -> Result {
    let (from, to) = (SEQUENCES.get(xDesc)?, SEQUENCES.get(yDesc)?);
    require(!y.is_null(), "y is NULL")?;
    let begun = begin(handle, rnnDesc, (&from, &to), (dwDesc, dw))?;
    // SAFETY: the caller's promise.
    unsafe { weights(begun, (&from, x), (hxDesc, hx), (reserveSpace, reserveSpaceSizeInBytes)) }
}
