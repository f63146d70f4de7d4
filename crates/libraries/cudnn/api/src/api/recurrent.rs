//! Recurrent networks. Source: cuDNN manual, "cudnn_adv library", `cudnnSetRNNDescriptor_v8`, `cudnnRNNForward` and so on.

use core::ffi::{c_int, c_void};

use border::{OptOut, Out};
use kit::Address;

use crate::api::dropout;
use crate::error::{require, supports};
use crate::handle::{Context, computing};
use crate::recurrent::{
    self, Call, NETWORKS, Recurrent, Reserve, SEQUENCES, Sequences, States, network, supported, whole,
};
use crate::tensor::{TENSORS, Tensor, give, kind, list};
use crate::types::*;
use crate::{Error, Result};

pub fn cudnnCreateRNNDescriptor(rnnDesc: Out<'_, cudnnRNNDescriptor_t>) -> Result {
    rnnDesc.write(NETWORKS.add());
    Ok(())
}

pub fn cudnnDestroyRNNDescriptor(rnnDesc: cudnnRNNDescriptor_t) -> Result {
    NETWORKS.remove(rnnDesc)
}

/// What both APIs' descriptors may not be.
pub(crate) fn looked_at(of: &Recurrent) -> Result {
    require((0..4).contains(&of.algo.0), "there is no such algorithm")?;
    require((0..4).contains(&of.cell.0), "there is no such cell")?;
    require((0..4).contains(&of.bias.0), "there is no such kind of biases")?;
    require((0..2).contains(&of.direction.0), "there is no such direction")?;
    require((0..2).contains(&of.input_mode.0), "there is no such input")?;
    require((0..4).contains(&of.math.0), "there is no such kind of products")?;
    require(of.hidden > 0 && of.layers > 0, "a size is not positive")
}

/// A type and the precision that it may be computed in.
fn go_together(of: cudnnDataType_t, precision: cudnnDataType_t) -> Result {
    let goes = matches!(
        (of, precision),
        (cudnnDataType_t::CUDNN_DATA_FLOAT, cudnnDataType_t::CUDNN_DATA_FLOAT)
            | (cudnnDataType_t::CUDNN_DATA_DOUBLE, cudnnDataType_t::CUDNN_DATA_DOUBLE)
            | (cudnnDataType_t::CUDNN_DATA_HALF, cudnnDataType_t::CUDNN_DATA_HALF)
            | (cudnnDataType_t::CUDNN_DATA_HALF, cudnnDataType_t::CUDNN_DATA_FLOAT)
            | (cudnnDataType_t::CUDNN_DATA_BFLOAT16, cudnnDataType_t::CUDNN_DATA_FLOAT)
    );
    supports(goes, "a network of this type in this precision")
}

/// An LSTM's projection is smaller than its state, which the same size turns off. The algorithms mean the same here.
pub fn cudnnSetRNNDescriptor_v8(
    rnnDesc: cudnnRNNDescriptor_t,
    algo: cudnnRNNAlgo_t,
    cellMode: cudnnRNNMode_t,
    biasMode: cudnnRNNBiasMode_t,
    dirMode: cudnnDirectionMode_t,
    inputMode: cudnnRNNInputMode_t,
    dataType: cudnnDataType_t,
    mathPrec: cudnnDataType_t,
    mathType: cudnnMathType_t,
    inputSize: i32,
    hiddenSize: i32,
    projSize: i32,
    numLayers: i32,
    dropoutDesc: cudnnDropoutDescriptor_t,
    auxFlags: u32,
) -> Result {
    let known = NETWORKS.get(rnnDesc)?;
    let new = Recurrent {
        algo,
        cell: cellMode,
        bias: biasMode,
        direction: dirMode,
        input_mode: inputMode,
        kind: dataType,
        precision: mathPrec,
        math: mathType,
        input: inputSize,
        hidden: hiddenSize,
        projected: projSize,
        layers: numLayers,
        dropout: Address(dropoutDesc),
        flags: auxFlags,
        ..known
    };
    looked_at(&new)?;
    require(inputSize > 0 && projSize > 0, "a size is not positive")?;
    require(auxFlags & !1 == 0, "there is no such flag")?;
    kind(dataType)?;
    go_together(dataType, mathPrec)?;
    let is_projected = projSize != hiddenSize;
    let may_be = cellMode == cudnnRNNMode_t::CUDNN_LSTM && algo == cudnnRNNAlgo_t::CUDNN_RNN_ALGO_STANDARD;
    supports(projSize <= hiddenSize, "a projection that is larger than the state")?;
    supports(!is_projected || may_be, "a projection of anything but an LSTM of the standard algorithm")?;
    dropout::inside(dropoutDesc)?;
    NETWORKS.set(rnnDesc, new)
}

pub fn cudnnGetRNNDescriptor_v8(
    rnnDesc: cudnnRNNDescriptor_t,
    algo: OptOut<'_, cudnnRNNAlgo_t>,
    cellMode: OptOut<'_, cudnnRNNMode_t>,
    biasMode: OptOut<'_, cudnnRNNBiasMode_t>,
    dirMode: OptOut<'_, cudnnDirectionMode_t>,
    inputMode: OptOut<'_, cudnnRNNInputMode_t>,
    dataType: OptOut<'_, cudnnDataType_t>,
    mathPrec: OptOut<'_, cudnnDataType_t>,
    mathType: OptOut<'_, cudnnMathType_t>,
    inputSize: OptOut<'_, i32>,
    hiddenSize: OptOut<'_, i32>,
    projSize: OptOut<'_, i32>,
    numLayers: OptOut<'_, i32>,
    dropoutDesc: OptOut<'_, cudnnDropoutDescriptor_t>,
    auxFlags: OptOut<'_, u32>,
) -> Result {
    let network = whole(rnnDesc)?;
    algo.write(network.algo);
    cellMode.write(network.cell);
    biasMode.write(network.bias);
    dirMode.write(network.direction);
    inputMode.write(network.input_mode);
    dataType.write(network.kind);
    mathPrec.write(network.precision);
    mathType.write(network.math);
    inputSize.write(network.input);
    hiddenSize.write(network.hidden);
    projSize.write(network.projected);
    numLayers.write(network.layers);
    dropoutDesc.write(network.dropout.get());
    auxFlags.write(network.flags);
    Ok(())
}

/// The mode is looked at when it is used, as NVIDIA's library does.
pub(crate) fn clip(
    rnnDesc: cudnnRNNDescriptor_t,
    mode: cudnnRNNClipMode_t,
    nan: cudnnNanPropagation_t,
    low: f64,
    high: f64,
) -> Result {
    NETWORKS.get(rnnDesc)?;
    require(low <= high, "the bounds are not in order")?;
    NETWORKS.change(rnnDesc, |network| network.clip = (mode, nan, low, high))
}

pub fn cudnnRNNSetClip_v8(
    rnnDesc: cudnnRNNDescriptor_t,
    clipMode: cudnnRNNClipMode_t,
    clipNanOpt: cudnnNanPropagation_t,
    lclip: f64,
    rclip: f64,
) -> Result {
    clip(rnnDesc, clipMode, clipNanOpt, lclip, rclip)
}

/// A NaN stays one.
pub fn cudnnRNNSetClip_v9(
    rnnDesc: cudnnRNNDescriptor_t,
    clipMode: cudnnRNNClipMode_t,
    lclip: f64,
    rclip: f64,
) -> Result {
    clip(rnnDesc, clipMode, cudnnNanPropagation_t::CUDNN_PROPAGATE_NAN, lclip, rclip)
}

pub fn cudnnRNNGetClip_v8(
    rnnDesc: cudnnRNNDescriptor_t,
    clipMode: OptOut<'_, cudnnRNNClipMode_t>,
    clipNanOpt: OptOut<'_, cudnnNanPropagation_t>,
    lclip: OptOut<'_, f64>,
    rclip: OptOut<'_, f64>,
) -> Result {
    let (mode, nan, low, high) = NETWORKS.get(rnnDesc)?.clip;
    clipMode.write(mode);
    clipNanOpt.write(nan);
    lclip.write(low);
    rclip.write(high);
    Ok(())
}

pub fn cudnnRNNGetClip_v9(
    rnnDesc: cudnnRNNDescriptor_t,
    clipMode: OptOut<'_, cudnnRNNClipMode_t>,
    lclip: OptOut<'_, f64>,
    rclip: OptOut<'_, f64>,
) -> Result {
    let (mode, _, low, high) = NETWORKS.get(rnnDesc)?.clip;
    clipMode.write(mode);
    lclip.write(low);
    rclip.write(high);
    Ok(())
}

/// There is nothing to compile for a size of batches: networks of that algorithm run as they are.
pub fn cudnnBuildRNNDynamic(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    miniBatch: c_int,
) -> Result {
    computing(handle)?;
    let network = network(rnnDesc)?;
    require(miniBatch > 0, "a batch has at least one sequence")?;
    let is_dynamic = network.algo == cudnnRNNAlgo_t::CUDNN_RNN_ALGO_PERSIST_DYNAMIC;
    require(is_dynamic, "the network's algorithm is not the one that is compiled")
}

pub fn cudnnCreateRNNDataDescriptor(rnnDataDesc: Out<'_, cudnnRNNDataDescriptor_t>) -> Result {
    rnnDataDesc.write(SEQUENCES.add());
    Ok(())
}

pub fn cudnnDestroyRNNDataDescriptor(rnnDataDesc: cudnnRNNDataDescriptor_t) -> Result {
    SEQUENCES.remove(rnnDataDesc)
}

/// Sequences that are packed are sorted, the longest first.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnSetRNNDataDescriptor(
    rnnDataDesc: cudnnRNNDataDescriptor_t,
    dataType: cudnnDataType_t,
    layout: cudnnRNNDataLayout_t,
    maxSeqLength: c_int,
    batchSize: c_int,
    vectorSize: c_int,
    seqLengthArray: *const c_int,
    paddingFill: *mut c_void,
) -> Result {
    SEQUENCES.get(rnnDataDesc)?;
    require((0..3).contains(&layout.0), "there is no such layout")?;
    require(maxSeqLength > 0 && batchSize > 0 && vectorSize > 0, "a size is not positive")?;
    let bytes = supported(dataType)?.bytes();
    // SAFETY: the caller's promise.
    let lengths = unsafe { list(seqLengthArray, batchSize) }?;
    require(lengths.iter().all(|length| (0..=maxSeqLength).contains(length)), "a length is out of bounds")?;
    let is_packed = layout == cudnnRNNDataLayout_t::CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
    require(!is_packed || lengths.is_sorted_by(|a, b| a >= b), "packed sequences are not sorted")?;
    let count = i64::from(maxSeqLength) * i64::from(batchSize);
    supports(
        count.checked_mul(vectorSize.into()).is_some_and(|count| count < 1 << 31),
        "sequences of 2^31 elements",
    )?;
    let fill = (!paddingFill.is_null()).then(|| {
        let mut fill = [0; 8];
        // SAFETY: cuDNN's contract: one number of the type in the host's memory.
        unsafe { core::ptr::copy_nonoverlapping(paddingFill.cast::<u8>(), fill.as_mut_ptr(), bytes) };
        fill
    });
    SEQUENCES.set(
        rnnDataDesc,
        Sequences {
            kind: dataType,
            layout,
            steps: maxSeqLength,
            batch: batchSize,
            width: vectorSize,
            lengths: lengths.to_vec(),
            fill,
        },
    )
}

/// Lengths that were asked for behind the batch's are 0; a fill is written if there is one.
///
/// # Safety
/// As [`cudnnSetRNNDataDescriptor`].
pub unsafe fn cudnnGetRNNDataDescriptor(
    rnnDataDesc: cudnnRNNDataDescriptor_t,
    dataType: Out<'_, cudnnDataType_t>,
    layout: Out<'_, cudnnRNNDataLayout_t>,
    maxSeqLength: Out<'_, c_int>,
    batchSize: Out<'_, c_int>,
    vectorSize: Out<'_, c_int>,
    arrayLengthRequested: c_int,
    seqLengthArray: *mut c_int,
    paddingFill: *mut c_void,
) -> Result {
    let known = SEQUENCES.get(rnnDataDesc)?;
    let requested =
        usize::try_from(arrayLengthRequested).map_err(|_| Error::BadParam("arrayLengthRequested"))?;
    dataType.write(known.kind);
    layout.write(known.layout);
    maxSeqLength.write(known.steps);
    batchSize.write(known.batch);
    vectorSize.write(known.width);
    if requested > 0 {
        let mut lengths = known.lengths.clone();
        lengths.resize(requested, 0);
        // SAFETY: the caller's promise.
        unsafe { give(seqLengthArray, arrayLengthRequested, &lengths) }?;
    }
    if let (Some(fill), false) = (known.fill, paddingFill.is_null()) {
        let bytes = supported(known.kind)?.bytes();
        // SAFETY: cuDNN's contract: room for one number of the type.
        unsafe { core::ptr::copy_nonoverlapping(fill.as_ptr(), paddingFill.cast::<u8>(), bytes) };
    }
    Ok(())
}

/// Elements' bytes, the weights' and whether numbers are `f64`.
fn sizes(network: &Recurrent) -> Result<(usize, usize, bool)> {
    let element = supported(network.kind)?.bytes();
    let is_double = network.kind == cudnnDataType_t::CUDNN_DATA_DOUBLE;
    Ok((element, network.shape(network.input)?.weights() * element, is_double))
}

pub fn cudnnGetRNNWeightSpaceSize(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    weightSpaceSize: Out<'_, usize>,
) -> Result {
    computing(handle)?;
    weightSpaceSize.write(sizes(&whole(rnnDesc)?)?.1);
    Ok(())
}

/// No work space is taken; a training's reserve space has gates, states and their gradients.
pub fn cudnnGetRNNTempSpaceSizes(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    fwdMode: cudnnForwardMode_t,
    xDesc: cudnnRNNDataDescriptor_t,
    workSpaceSize: OptOut<'_, usize>,
    reserveSpaceSize: OptOut<'_, usize>,
) -> Result {
    computing(handle)?;
    let (network, x) = (whole(rnnDesc)?, SEQUENCES.get(xDesc)?);
    require((0..2).contains(&fwdMode.0), "there is no such mode")?;
    require(x.steps > 0, "the sequences' descriptor was not set")?;
    workSpaceSize.write(0);
    reserveSpaceSize.write(match fwdMode {
        cudnnForwardMode_t::CUDNN_FWD_MODE_TRAINING => {
            recurrent::reserve_bytes(&network.shape(network.input)?, x.most_rows(), sizes(&network)?.2)
        }
        _ => 0,
    });
    Ok(())
}

/// A matrix has sizes 1, rows and columns, a bias 1, rows and 1; what there is not has no sizes and NULL.
pub fn cudnnGetRNNWeightParams(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    pseudoLayer: i32,
    weightSpaceSize: usize,
    weightSpace: *const c_void,
    linLayerID: i32,
    mDesc: cudnnTensorDescriptor_t,
    mAddr: OptOut<'_, *mut c_void>,
    bDesc: cudnnTensorDescriptor_t,
    bAddr: OptOut<'_, *mut c_void>,
) -> Result {
    computing(handle)?;
    let known = whole(rnnDesc)?;
    let (element, bytes, _) = sizes(&known)?;
    require(weightSpaceSize >= bytes, "the weight space is too small")?;
    let network = known.shape(known.input)?;
    let (pseudo, linear) = which(&known, pseudoLayer, linLayerID)?;
    for (place, descriptor, to) in
        [(network.matrix(pseudo, linear), mDesc, mAddr), (network.bias(pseudo, linear), bDesc, bAddr)]
    {
        let Some(place) = place else {
            if !descriptor.is_null() {
                TENSORS.set(descriptor, Tensor { kind: known.kind, ..Tensor::default() })?;
            }
            to.write(core::ptr::null_mut());
            continue;
        };
        if !descriptor.is_null() {
            let (rows, columns) = (place.rows as c_int, place.columns as c_int);
            let strides = [rows * columns, columns, 1];
            TENSORS.set(descriptor, Tensor::of_strides(known.kind, &[1, rows, columns], &strides)?)?;
        }
        to.write(weightSpace.cast_mut().wrapping_byte_add(place.first * element));
    }
    Ok(())
}

/// The numbers of a pseudo layer and of a matrix in it, where there may be such.
pub(crate) fn which(of: &Recurrent, pseudo: i32, linear: i32) -> Result<(usize, usize)> {
    let network = of.shape(if of.input == 0 { of.hidden } else { of.input })?;
    let matrices = 2 * network.cell.gates() + usize::from(of.cell == cudnnRNNMode_t::CUDNN_LSTM);
    let pseudo = usize::try_from(pseudo).ok().filter(|pseudo| *pseudo < network.pseudo_layers());
    let linear = usize::try_from(linear).ok().filter(|linear| *linear < matrices);
    pseudo.zip(linear).ok_or(Error::BadParam("there is no such matrix"))
}

/// The weights, and a call over the sequences of two descriptors.
fn call(
    network: &Recurrent,
    (x, y): (&Sequences, &Sequences),
    (weights, bytes): (*const c_void, usize),
) -> Result<Call> {
    require(x.steps > 0 && y.steps > 0, "the sequences' descriptor was not set")?;
    x.goes_with(y)?;
    require(x.kind == network.kind, "the sequences' type is not the network's")?;
    require(x.width == network.input, "the vectors of x have not the network's input size")?;
    let shape = network.shape(network.input)?;
    let output = shape.directions * shape.output();
    require(y.width as usize == output, "the vectors of y have not the network's output size")?;
    let is_whole = x.is_packed() || x.lengths.iter().all(|length| *length == x.steps);
    require(network.is_padded() || is_whole, "the network's flags say that there is no padding")?;
    let (_, needed, _) = sizes(network)?;
    require(!weights.is_null() && bytes >= needed, "the weight space is NULL or too small")?;
    let kind = supported(network.kind)?;
    require(weights.addr().is_multiple_of(kind.bytes()), "the weight space is not aligned to its type")?;
    // SAFETY: cuDNN's contract: the weights are there until the stream has come to the call.
    unsafe { Call::new(shape, x.batches(), weights, kind) }
}

/// # Safety
/// As [`cudnnSetRNNDataDescriptor`].
unsafe fn states<const N: usize>(
    call: &Call,
    network: &Recurrent,
    (hidden, of_hidden): (cudnnTensorDescriptor_t, [*const c_void; N]),
    (cell, of_cell): (cudnnTensorDescriptor_t, [*const c_void; N]),
) -> Result<([States; N], [States; N])> {
    let [h, c] = call.states();
    let is_lstm = network.cell == cudnnRNNMode_t::CUDNN_LSTM;
    // SAFETY: the caller's promise.
    let nothing = unsafe { States::of(cell, core::ptr::null(), network.kind, [0; 3]) }?;
    let (mut hs, mut cs) = ([nothing; N], [nothing; N]);
    for at in 0..N {
        // SAFETY: the caller's promise.
        hs[at] = unsafe { States::of(hidden, of_hidden[at], network.kind, h) }?;
        if is_lstm {
            // SAFETY: the caller's promise.
            cs[at] = unsafe { States::of(cell, of_cell[at], network.kind, c) }?;
        }
    }
    Ok((hs, cs))
}

fn begin(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
) -> Result<(std::sync::Arc<Context>, Recurrent)> {
    Ok((computing(handle)?, whole(rnnDesc)?))
}

/// Sequences' lengths are those of the descriptors: the copy of them in the device's memory is not read, as in NVIDIA's library since 8.9.1.
///
/// # Safety
/// As [`cudnnSetRNNDataDescriptor`].
pub unsafe fn cudnnRNNForward(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    fwdMode: cudnnForwardMode_t,
    _devSeqLengths: *const i32,
    xDesc: cudnnRNNDataDescriptor_t,
    x: *const c_void,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *mut c_void,
    hDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    hy: *mut c_void,
    cDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    cy: *mut c_void,
    weightSpaceSize: usize,
    weightSpace: *const c_void,
    _workSpaceSize: usize,
    _workSpace: *mut c_void,
    reserveSpaceSize: usize,
    reserveSpace: *mut c_void,
) -> Result {
    let (context, network) = begin(handle, rnnDesc)?;
    require((0..2).contains(&fwdMode.0), "there is no such mode")?;
    let (from, to) = (SEQUENCES.get(xDesc)?, SEQUENCES.get(yDesc)?);
    let call = call(&network, (&from, &to), (weightSpace, weightSpaceSize))?;
    // SAFETY: the caller's promise.
    let ([hx, hy], [cx, cy]) = unsafe { states(&call, &network, (hDesc, [hx, hy]), (cDesc, [cx, cy])) }?;
    let is_training = fwdMode == cudnnForwardMode_t::CUDNN_FWD_MODE_TRAINING;
    let dropout = dropout::inside(network.dropout.get())?;
    let reserve = is_training
        .then(|| Reserve::of(&call, from.most_rows(), reserveSpace, reserveSpaceSize))
        .transpose()?;
    recurrent::forward(&context, call, (from.at(x)?, to.at(y)?), (hx, hy), (cx, cy), dropout, reserve)
}

/// # Safety
/// As [`cudnnSetRNNDataDescriptor`].
pub unsafe fn cudnnRNNBackwardData_v8(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    _devSeqLengths: *const i32,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *const c_void,
    dy: *const c_void,
    xDesc: cudnnRNNDataDescriptor_t,
    dx: *mut c_void,
    hDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    dhy: *const c_void,
    dhx: *mut c_void,
    cDesc: cudnnTensorDescriptor_t,
    cx: *const c_void,
    dcy: *const c_void,
    dcx: *mut c_void,
    weightSpaceSize: usize,
    weightSpace: *const c_void,
    _workSpaceSize: usize,
    _workSpace: *mut c_void,
    reserveSpaceSize: usize,
    reserveSpace: *mut c_void,
) -> Result {
    let (context, network) = begin(handle, rnnDesc)?;
    let (to, from) = (SEQUENCES.get(xDesc)?, SEQUENCES.get(yDesc)?);
    require(!y.is_null(), "y is NULL")?;
    let call = call(&network, (&to, &from), (weightSpace, weightSpaceSize))?;
    let ([hx, dhy, dhx], [cx, dcy, dcx]) =
        // SAFETY: the caller's promise.
        unsafe { states(&call, &network, (hDesc, [hx, dhy, dhx]), (cDesc, [cx, dcy, dcx])) }?;
    let reserve = Reserve::of(&call, to.most_rows(), reserveSpace, reserveSpaceSize)?;
    let sequences = (from.at(dy)?, to.at(dx)?);
    recurrent::backward_data(&context, call, sequences, (hx, dhy, dhx), (cx, dcy, dcx), reserve)
}

/// Behind the way back of data. Gradients are added to those in memory, the only mode that the manual has.
///
/// # Safety
/// As [`cudnnSetRNNDataDescriptor`].
pub unsafe fn cudnnRNNBackwardWeights_v8(
    handle: cudnnHandle_t,
    rnnDesc: cudnnRNNDescriptor_t,
    addGrad: cudnnWgradMode_t,
    _devSeqLengths: *const i32,
    xDesc: cudnnRNNDataDescriptor_t,
    x: *const c_void,
    hDesc: cudnnTensorDescriptor_t,
    hx: *const c_void,
    yDesc: cudnnRNNDataDescriptor_t,
    y: *const c_void,
    weightSpaceSize: usize,
    dweightSpace: *mut c_void,
    _workSpaceSize: usize,
    _workSpace: *mut c_void,
    reserveSpaceSize: usize,
    reserveSpace: *mut c_void,
) -> Result {
    let (context, network) = begin(handle, rnnDesc)?;
    require((0..2).contains(&addGrad.0), "there is no such mode")?;
    supports(addGrad == cudnnWgradMode_t::CUDNN_WGRAD_MODE_ADD, "gradients that replace those in memory")?;
    let (from, to) = (SEQUENCES.get(xDesc)?, SEQUENCES.get(yDesc)?);
    require(!y.is_null(), "y is NULL")?;
    let call = call(&network, (&from, &to), (dweightSpace, weightSpaceSize))?;
    // SAFETY: the caller's promise.
    let ([hx], _) =
        unsafe { states(&call, &network, (hDesc, [hx]), (core::ptr::null_mut(), [core::ptr::null()])) }?;
    let reserve = Reserve::of(&call, from.most_rows(), reserveSpace, reserveSpaceSize)?;
    recurrent::backward_weights(&context, call, from.at(x)?, hx, reserve)
}
