//! Multi-head attention of the first API. Source: cuDNN manual, "cudnn_adv library", `cudnnMultiHeadAttnForward` and so on.
//!
//! The ways back make again what the way forward made. A training's reserve space has what they are not told: windows, lengths, and from
//! where elements were dropped.

use core::ffi::{c_int, c_uint, c_void};

use border::{OptOut, Out};
use cudnn_cpu::dropout::{STATE, State};
use cudnn_cpu::multihead::{Drops, Layer, Sequence};
use cudnn_cpu::{Value, View};
use kit::Address;

use crate::api::dropout::{self, Inside};
use crate::descriptor::Descriptors;
use crate::error::{require, supports};
use crate::handle::{compute, computing};
use crate::recurrent::supported;
use crate::tensor::{TENSORS, Tensor, give, list};
use crate::types::*;
use crate::{Error, Result, memory};

/// Vectors by time, batch and beam. Sizes are in the order of `cudnnSeqDataAxis_t`, axes in that of memory.
#[derive(Clone, Debug, Default)]
struct Sequences {
    kind: cudnnDataType_t,
    sizes: [c_int; 4],
    axes: [u32; 4],
    lengths: Vec<c_int>,
}

static SEQUENCES: Descriptors<Sequences> = Descriptors::new();

const TIME: usize = 0;
const BATCH: usize = 1;
const BEAM: usize = 2;
const VECTOR: usize = 3;

pub fn cudnnCreateSeqDataDescriptor(seqDataDesc: Out<'_, cudnnSeqDataDescriptor_t>) -> Result {
    seqDataDesc.write(SEQUENCES.add());
    Ok(())
}

pub fn cudnnDestroySeqDataDescriptor(seqDataDesc: cudnnSeqDataDescriptor_t) -> Result {
    SEQUENCES.remove(seqDataDesc)
}

/// Vectors lie without gaps. What padding is filled with is reserved by NVIDIA.
///
/// # Safety
/// As [`cudnnMultiHeadAttnForward`].
pub unsafe fn cudnnSetSeqDataDescriptor(
    seqDataDesc: cudnnSeqDataDescriptor_t,
    dataType: cudnnDataType_t,
    nbDims: c_int,
    dimA: *const c_int,
    axes: *const cudnnSeqDataAxis_t,
    seqLengthArraySize: usize,
    seqLengthArray: *const c_int,
    _paddingFill: *mut c_void,
) -> Result {
    SEQUENCES.get(seqDataDesc)?;
    supports(nbDims == 4, "sequences of other than four sizes")?;
    supported(dataType)?;
    // SAFETY: the caller's promise.
    let (sizes, given) = (unsafe { list(dimA, 4) }?, unsafe { list(axes, 4) }?);
    require(sizes.iter().all(|size| *size > 0), "a size is not positive")?;
    let axes: [u32; 4] = core::array::from_fn(|at| given[at].0);
    let mut sorted = axes;
    sorted.sort_unstable();
    require(
        sorted == [0, 1, 2, 3] && axes[3] == VECTOR as u32,
        "the axes are not each once, or vectors not last",
    )?;
    let count = i64::from(sizes[BATCH]) * i64::from(sizes[BEAM]);
    require(seqLengthArraySize as i64 == count, "there is not a length for each sequence")?;
    // SAFETY: the caller's promise.
    let lengths = unsafe { list(seqLengthArray, count as c_int) }?.to_vec();
    require(lengths.iter().all(|length| (1..=sizes[TIME]).contains(length)), "a length is out of bounds")?;
    let sizes = core::array::from_fn(|at| sizes[at]);
    SEQUENCES.set(seqDataDesc, Sequences { kind: dataType, sizes, axes, lengths })
}

/// # Safety
/// As [`cudnnSetSeqDataDescriptor`].
pub unsafe fn cudnnGetSeqDataDescriptor(
    seqDataDesc: cudnnSeqDataDescriptor_t,
    dataType: OptOut<'_, cudnnDataType_t>,
    nbDims: OptOut<'_, c_int>,
    nbDimsRequested: c_int,
    dimA: *mut c_int,
    axes: *mut cudnnSeqDataAxis_t,
    seqLengthArraySize: OptOut<'_, usize>,
    seqLengthSizeRequested: usize,
    seqLengthArray: *mut c_int,
    _paddingFill: *mut c_void,
) -> Result {
    let known = SEQUENCES.get(seqDataDesc)?;
    dataType.write(known.kind);
    nbDims.write(4);
    seqLengthArraySize.write(known.lengths.len());
    if !dimA.is_null() {
        // SAFETY: the caller's promise.
        unsafe { give(dimA, nbDimsRequested, &known.sizes) }?;
    }
    if !axes.is_null() {
        // SAFETY: the caller's promise.
        unsafe { give(axes, nbDimsRequested, &known.axes.map(cudnnSeqDataAxis_t)) }?;
    }
    if !seqLengthArray.is_null() {
        let requested = c_int::try_from(seqLengthSizeRequested).unwrap_or(c_int::MAX);
        // SAFETY: the caller's promise.
        unsafe { give(seqLengthArray, requested, &known.lengths) }?;
    }
    Ok(())
}

impl Sequences {
    fn set(of: cudnnSeqDataDescriptor_t) -> Result<Sequences> {
        let known = SEQUENCES.get(of)?;
        require(known.sizes[TIME] > 0, "the sequences' descriptor was not set")?;
        Ok(known)
    }

    fn size(&self, axis: usize) -> usize {
        self.sizes[axis] as usize
    }

    /// By batch, beam, time and element.
    ///
    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn view(&self, at: *const c_void) -> Result<View> {
        let kind = supported(self.kind)?;
        require(!at.is_null(), "the memory of sequences is NULL")?;
        require(
            at.addr().is_multiple_of(kind.bytes()),
            "the memory of sequences is not aligned to its type",
        )?;
        let (mut strides, mut stride) = ([0; 4], 1);
        for axis in self.axes.iter().rev() {
            strides[*axis as usize] = stride;
            stride *= self.sizes[*axis as usize] as isize;
        }
        let order = [BATCH, BEAM, TIME, VECTOR];
        let (sizes, strides) = (order.map(|axis| self.size(axis)), order.map(|axis| strides[axis]));
        // SAFETY: cuDNN's contract: the memory has what its descriptor says until the stream has come there.
        let view = unsafe { View::new(at.cast::<u8>().cast_mut(), kind, &sizes, &strides) };
        Ok(memory::tensor(view)?)
    }
}

#[derive(Clone, Copy)]
struct Attention {
    mode: c_uint,
    heads: c_int,
    scale: f64,
    kind: cudnnDataType_t,
    precision: cudnnDataType_t,
    math: cudnnMathType_t,
    dropouts: [Address<cudnnDropoutDescriptor_t>; 2],
    /// Of queries, keys and values, then what they and the output are projected to.
    sizes: [c_int; 7],
    /// Queries, keys, batches and beams at most.
    most: [c_int; 4],
}

impl Default for Attention {
    fn default() -> Attention {
        Attention {
            mode: 0,
            heads: 0,
            scale: 0.0,
            kind: cudnnDataType_t::default(),
            precision: cudnnDataType_t::default(),
            math: cudnnMathType_t::default(),
            dropouts: [Address(core::ptr::null_mut()); 2],
            sizes: [0; 7],
            most: [0; 4],
        }
    }
}

static ATTENTIONS: Descriptors<Attention> = Descriptors::new();

/// Each beam of the queries has keys of its own.
const ONE_TO_ONE: c_uint = 1;
const BIASES: c_uint = 2;

pub fn cudnnCreateAttnDescriptor(attnDesc: Out<'_, cudnnAttnDescriptor_t>) -> Result {
    attnDesc.write(ATTENTIONS.add());
    Ok(())
}

pub fn cudnnDestroyAttnDescriptor(attnDesc: cudnnAttnDescriptor_t) -> Result {
    ATTENTIONS.remove(attnDesc)
}

/// A size of 0 is no projection. A head's queries and keys are of one size.
pub fn cudnnSetAttnDescriptor(
    attnDesc: cudnnAttnDescriptor_t,
    attnMode: c_uint,
    nHeads: c_int,
    smScaler: f64,
    dataType: cudnnDataType_t,
    computePrec: cudnnDataType_t,
    mathType: cudnnMathType_t,
    attnDropoutDesc: cudnnDropoutDescriptor_t,
    postDropoutDesc: cudnnDropoutDescriptor_t,
    qSize: c_int,
    kSize: c_int,
    vSize: c_int,
    qProjSize: c_int,
    kProjSize: c_int,
    vProjSize: c_int,
    oProjSize: c_int,
    qoMaxSeqLength: c_int,
    kvMaxSeqLength: c_int,
    maxBatchSize: c_int,
    maxBeamSize: c_int,
) -> Result {
    ATTENTIONS.get(attnDesc)?;
    let sizes = [qSize, kSize, vSize, qProjSize, kProjSize, vProjSize, oProjSize];
    let most = [qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize];
    require(attnMode <= (ONE_TO_ONE | BIASES), "there is no such mode")?;
    require(nHeads > 0 && smScaler >= 0.0, "the heads or the scale are out of bounds")?;
    require((0..4).contains(&mathType.0), "there is no such kind of products")?;
    let (float, double) = (cudnnDataType_t::CUDNN_DATA_FLOAT, cudnnDataType_t::CUDNN_DATA_DOUBLE);
    let half = cudnnDataType_t::CUDNN_DATA_HALF;
    let known = [float, double, half, cudnnDataType_t::CUDNN_DATA_BFLOAT16].contains(&dataType);
    require(known, "attention is of real numbers")?;
    let fits = match dataType {
        of if of == double => computePrec == double,
        of if of == half => [float, half].contains(&computePrec),
        _ => computePrec == float,
    };
    supports(fits, "attention of this type in this precision")?;
    require(sizes[..3].iter().all(|size| *size > 0), "a size is not positive")?;
    require(sizes[3..].iter().all(|size| *size >= 0), "a projection's size is negative")?;
    require(most.iter().all(|size| *size > 0), "a most size is not positive")?;
    let depth = |which: usize| if sizes[which + 3] > 0 { sizes[which + 3] } else { sizes[which] };
    require(depth(0) == depth(1), "a head's queries and keys are of two sizes")?;
    let dropouts = [attnDropoutDesc, postDropoutDesc];
    for dropout in dropouts {
        dropout::inside(dropout)?;
    }
    ATTENTIONS.set(
        attnDesc,
        Attention {
            mode: attnMode,
            heads: nHeads,
            scale: smScaler,
            kind: dataType,
            precision: computePrec,
            math: mathType,
            dropouts: dropouts.map(Address),
            sizes,
            most,
        },
    )
}

fn attention(of: cudnnAttnDescriptor_t) -> Result<Attention> {
    let known = ATTENTIONS.get(of)?;
    if known.heads == 0 {
        let status = cudnnStatus_t::CUDNN_STATUS_NOT_INITIALIZED;
        return Err(Error::Bad(status, "the attention's descriptor was not set"));
    }
    Ok(known)
}

pub fn cudnnGetAttnDescriptor(
    attnDesc: cudnnAttnDescriptor_t,
    attnMode: OptOut<'_, c_uint>,
    nHeads: OptOut<'_, c_int>,
    smScaler: OptOut<'_, f64>,
    dataType: OptOut<'_, cudnnDataType_t>,
    computePrec: OptOut<'_, cudnnDataType_t>,
    mathType: OptOut<'_, cudnnMathType_t>,
    attnDropoutDesc: OptOut<'_, cudnnDropoutDescriptor_t>,
    postDropoutDesc: OptOut<'_, cudnnDropoutDescriptor_t>,
    qSize: OptOut<'_, c_int>,
    kSize: OptOut<'_, c_int>,
    vSize: OptOut<'_, c_int>,
    qProjSize: OptOut<'_, c_int>,
    kProjSize: OptOut<'_, c_int>,
    vProjSize: OptOut<'_, c_int>,
    oProjSize: OptOut<'_, c_int>,
    qoMaxSeqLength: OptOut<'_, c_int>,
    kvMaxSeqLength: OptOut<'_, c_int>,
    maxBatchSize: OptOut<'_, c_int>,
    maxBeamSize: OptOut<'_, c_int>,
) -> Result {
    let known = attention(attnDesc)?;
    attnMode.write(known.mode);
    nHeads.write(known.heads);
    smScaler.write(known.scale);
    dataType.write(known.kind);
    computePrec.write(known.precision);
    mathType.write(known.math);
    attnDropoutDesc.write(known.dropouts[0].get());
    postDropoutDesc.write(known.dropouts[1].get());
    let sizes = [qSize, kSize, vSize, qProjSize, kProjSize, vProjSize, oProjSize];
    sizes.into_iter().zip(known.sizes).for_each(|(to, size)| to.write(size));
    let most = [qoMaxSeqLength, kvMaxSeqLength, maxBatchSize, maxBeamSize];
    most.into_iter().zip(known.most).for_each(|(to, size)| to.write(size));
    Ok(())
}

impl Attention {
    fn layer(&self) -> Layer {
        let projected = |at: usize| (self.sizes[at] > 0).then_some(self.sizes[at] as usize);
        Layer {
            heads: self.heads as usize,
            scale: self.scale,
            sizes: core::array::from_fn(|at| self.sizes[at] as usize),
            projected: [projected(3), projected(4), projected(5)],
            output: projected(6),
            biases: self.mode & BIASES != 0,
        }
    }

    fn bytes(&self) -> Result<usize> {
        Ok(self.layer().weights() * supported(self.kind)?.bytes())
    }

    /// # Safety
    /// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
    unsafe fn weights(&self, at: *const c_void, bytes: usize) -> Result<View> {
        let (layer, kind) = (self.layer(), supported(self.kind)?);
        let count = layer.weights();
        require(bytes >= self.bytes()?, "the weights are too few")?;
        require(count == 0 || !at.is_null(), "weights are NULL")?;
        require(at.addr().is_multiple_of(kind.bytes()), "the weights are not aligned to their type")?;
        // SAFETY: cuDNN's contract: the weights are there until the stream has come to the call.
        let view = unsafe { View::packed(at.cast::<u8>().cast_mut(), kind, &[count]) };
        Ok(memory::tensor(view)?)
    }

    /// A header, each query's window, and the lengths of queries and keys.
    fn reserve_bytes(&self) -> usize {
        let [queries, _, batch, beams] = self.most.map(|size| size as usize);
        HEADER + 4 * (2 * queries + 2 * batch * beams)
    }
}

const HEADER: usize = 64;
const MARK: u64 = 0x6375_6477_6174_746e;

/// No work space is taken; without a reserve space it is inference.
pub fn cudnnGetMultiHeadAttnBuffers(
    handle: cudnnHandle_t,
    attnDesc: cudnnAttnDescriptor_t,
    weightSizeInBytes: Out<'_, usize>,
    workSpaceSizeInBytes: Out<'_, usize>,
    reserveSpaceSizeInBytes: OptOut<'_, usize>,
) -> Result {
    computing(handle)?;
    let known = attention(attnDesc)?;
    weightSizeInBytes.write(known.bytes()?);
    workSpaceSizeInBytes.write(0);
    reserveSpaceSizeInBytes.write(known.reserve_bytes());
    Ok(())
}

/// Sizes are heads, rows and columns; what there is not has none and NULL.
pub fn cudnnGetMultiHeadAttnWeights(
    handle: cudnnHandle_t,
    attnDesc: cudnnAttnDescriptor_t,
    wKind: cudnnMultiHeadAttnWeightKind_t,
    weightSizeInBytes: usize,
    weights: *const c_void,
    wDesc: cudnnTensorDescriptor_t,
    wAddr: Out<'_, *mut c_void>,
) -> Result {
    computing(handle)?;
    let known = attention(attnDesc)?;
    require((0..8).contains(&wKind.0), "there are no such weights")?;
    require(weightSizeInBytes >= known.bytes()?, "the weights are too few")?;
    TENSORS.get(wDesc)?;
    let Some(place) = known.layer().place(wKind.0 as usize) else {
        TENSORS.set(wDesc, Tensor { kind: known.kind, ..Tensor::default() })?;
        wAddr.write(core::ptr::null_mut());
        return Ok(());
    };
    let sizes = [place.heads, place.rows, place.columns].map(|size| size as c_int);
    TENSORS.set(wDesc, Tensor::of_strides(known.kind, &sizes, &[sizes[1] * sizes[2], sizes[2], 1])?)?;
    wAddr.write(weights.cast_mut().wrapping_byte_add(place.first * supported(known.kind)?.bytes()));
    Ok(())
}

/// What a call is of: queries, keys and values where they lie.
#[derive(Clone)]
struct Call {
    layer: Layer,
    weights: View,
    inputs: [View; 3],
    /// Batches, beams of queries and of keys, queries and keys.
    sizes: [usize; 5],
    is_double: bool,
}

impl Call {
    /// # Safety
    /// As [`cudnnSetSeqDataDescriptor`].
    unsafe fn of(
        known: &Attention,
        (weights, bytes): (*const c_void, usize),
        [(q, q_at), (k, k_at), (v, v_at)]: [(cudnnSeqDataDescriptor_t, *const c_void); 3],
        o: cudnnSeqDataDescriptor_t,
    ) -> Result<([Sequences; 4], Call)> {
        let all = [Sequences::set(q)?, Sequences::set(k)?, Sequences::set(v)?, Sequences::set(o)?];
        let [q, k, v, o] = &all;
        let layer = known.layer();
        let kinds = all.iter().all(|it| it.kind == known.kind);
        require(kinds, "the sequences' type is not the attention's")?;
        let widths = [(q, layer.sizes[0]), (k, layer.sizes[1]), (v, layer.sizes[2]), (o, layer.outputs())];
        require(
            widths.iter().all(|(it, size)| it.size(VECTOR) == *size),
            "vectors have not the attention's sizes",
        )?;
        let batch = [k, v, o].iter().all(|it| it.size(BATCH) == q.size(BATCH));
        let same = q.sizes[..VECTOR] == o.sizes[..VECTOR] && k.sizes[..VECTOR] == v.sizes[..VECTOR];
        require(batch && same, "the sequences' sizes do not fit each other")?;
        let beams = if known.mode & ONE_TO_ONE != 0 { q.size(BEAM) } else { 1 };
        require(k.size(BEAM) == beams, "the keys' beams are not those that the mode says")?;
        let sizes = [q.size(TIME), k.size(TIME), q.size(BATCH), q.size(BEAM)];
        let fits = sizes.iter().zip(known.most).all(|(size, most)| *size <= most as usize);
        require(fits, "a size is more than the attention's most")?;
        let call = Call {
            layer,
            // SAFETY: the caller's promise.
            weights: unsafe { known.weights(weights, bytes) }?,
            // SAFETY: the caller's promise.
            inputs: [unsafe { q.view(q_at) }?, unsafe { k.view(k_at) }?, unsafe { v.view(v_at) }?],
            sizes: [q.size(BATCH), q.size(BEAM), beams, q.size(TIME), k.size(TIME)],
            is_double: known.kind == cudnnDataType_t::CUDNN_DATA_DOUBLE,
        };
        Ok((all, call))
    }

    fn queries(&self) -> usize {
        self.sizes[0] * self.sizes[1]
    }

    fn keys(&self) -> usize {
        self.sizes[0] * self.sizes[2]
    }
}

/// What a run knows of its sequences beside their vectors.
struct Told {
    windows: Vec<(c_int, c_int)>,
    lengths: [Vec<c_int>; 2],
    drops: [Option<(f64, State)>; 2],
}

impl Told {
    /// The windows of a sequence's queries, in the keys that there are; empty where there is no query.
    fn windows(&self, call: &Call, number: usize) -> Vec<(usize, usize)> {
        let queries = self.lengths[0][number] as usize;
        let keys = self.lengths[1][key_of(call, number)] as usize;
        let clipped = |at: usize, (first, end): (c_int, c_int)| {
            let end = (end.max(0) as usize).min(keys);
            if at < queries { ((first.max(0) as usize).min(end), end) } else { (0, 0) }
        };
        self.windows.iter().enumerate().map(|(at, window)| clipped(at, *window)).collect()
    }

    fn drops(&self, call: &Call, number: usize) -> [Option<Drops>; 2] {
        let [_, _, _, queries, keys] = call.sizes;
        let firsts = [number * call.layer.heads * queries * keys, number * queries * call.layer.outputs()];
        [0, 1].map(|at| self.drops[at].map(|(dropped, state)| Drops { dropped, state, first: firsts[at] }))
    }
}

/// The sequence of keys that one of queries meets.
fn key_of(call: &Call, number: usize) -> usize {
    if call.sizes[1] == call.sizes[2] { number } else { number / call.sizes[1] }
}

/// Calls `body` with each sequence of queries and what it meets.
///
/// # Safety
/// The tensors are there, and nobody writes them meanwhile.
unsafe fn each<V: Value, A: Send>(
    call: &Call,
    told: &Told,
    body: impl Fn(usize, Sequence<V>, &[V]) -> A + Sync,
) -> Vec<A> {
    // SAFETY: the caller's word.
    let (lists, weights) = unsafe { (call.inputs.map(|view| view.dense::<V>()), call.weights.dense::<V>()) };
    let part = |which: usize, number: usize| {
        let size = lists[which].len() / if which == 0 { call.queries() } else { call.keys() };
        &lists[which][number * size..][..size]
    };
    let results: Vec<parking_lot::Mutex<Option<A>>> =
        (0..call.queries()).map(|_| parking_lot::Mutex::new(None)).collect();
    cudnn_cpu::parallel(call.queries(), call.layer.weights() * call.sizes[3], |number| {
        let (windows, key) = (told.windows(call, number), key_of(call, number));
        let drops = told.drops(call, number);
        let (q, k, v) = (part(0, number), part(1, key), part(2, key));
        let sequence = Sequence { q, k, v, windows: &windows, drops };
        *results[number].lock() = Some(body(number, sequence, &weights));
    });
    results.into_iter().filter_map(parking_lot::Mutex::into_inner).collect()
}

/// So many numbers of the device's memory, each at least 0 and at most `most`.
///
/// # Safety
/// They are there.
unsafe fn lengths(at: *const c_int, count: usize, most: usize) -> Option<Vec<c_int>> {
    // SAFETY: the caller's word.
    let lengths = unsafe { core::slice::from_raw_parts(at, count) }.to_vec();
    lengths.iter().all(|length| (0..=most as i64).contains(&i64::from(*length))).then_some(lengths)
}

/// Without a reserve space it is inference, and one query alone is possible: of the others nothing is written. Queries behind their sequence's
/// end, and those without a key in their window, give 0.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnMultiHeadAttnForward(
    handle: cudnnHandle_t,
    attnDesc: cudnnAttnDescriptor_t,
    currIdx: c_int,
    loWinIdx: *const c_int,
    hiWinIdx: *const c_int,
    devSeqLengthsQO: *const c_int,
    devSeqLengthsKV: *const c_int,
    qDesc: cudnnSeqDataDescriptor_t,
    queries: *const c_void,
    residuals: *const c_void,
    kDesc: cudnnSeqDataDescriptor_t,
    keys: *const c_void,
    vDesc: cudnnSeqDataDescriptor_t,
    values: *const c_void,
    oDesc: cudnnSeqDataDescriptor_t,
    out: *mut c_void,
    weightSizeInBytes: usize,
    weights: *const c_void,
    _workSpaceSizeInBytes: usize,
    _workSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let known = attention(attnDesc)?;
    let inputs = [(qDesc, queries), (kDesc, keys), (vDesc, values)];
    // SAFETY: the caller's promise.
    let ([q, .., o], call) = unsafe { Call::of(&known, (weights, weightSizeInBytes), inputs, oDesc) }?;
    let n = q.size(TIME);
    require(currIdx < n as c_int, "there is no such query")?;
    let is_training = !reserveSpace.is_null();
    require(!is_training || currIdx < 0, "a training is of all queries")?;
    // SAFETY: the caller's promise.
    let windows = unsafe { windows(loWinIdx, hiWinIdx, n) }?;
    require(!devSeqLengthsQO.is_null() && !devSeqLengthsKV.is_null(), "lengths are NULL")?;
    // SAFETY: the caller's promise.
    let to = unsafe { o.view(out) }?;
    // SAFETY: the caller's promise.
    let residual = if residuals.is_null() { None } else { Some(unsafe { o.view(residuals) }?) };
    let drops = [dropout::inside(known.dropouts[0].get())?, dropout::inside(known.dropouts[1].get())?];
    let reserve =
        is_training.then(|| Reserve::of(&known, reserveSpace, reserveSpaceSizeInBytes)).transpose()?;
    let of_queries = memory::array(devSeqLengthsQO.cast_mut(), call.queries())?;
    let lengths_at = [of_queries, memory::array(devSeqLengthsKV.cast_mut(), call.keys())?];
    let one = usize::try_from(currIdx).ok();
    compute!(context, call.is_double, V => {
        // SAFETY: cuDNN's contract: all that was given is there until the stream has come here.
        unsafe {
            let list = |which: usize, count: usize, most: usize| lengths(lengths_at[which].get().cast_const(), count, most);
            let (Some(of_queries), Some(of_keys)) =
                (list(0, call.queries(), call.sizes[3]), list(1, call.keys(), call.sizes[4]))
            else {
                tracing::error!(target: "cudaway::dnn", "multi-head attention: a length is out of bounds; nothing is computed");
                return;
            };
            let counts = [
                call.queries() * call.layer.heads * call.sizes[3] * call.sizes[4],
                call.queries() * call.sizes[3] * call.layer.outputs(),
            ];
            let drops = if reserve.is_some() { [0, 1].map(|at: usize| take(drops[at], counts[at])) } else { [None; 2] };
            let told = Told { windows: windows.clone(), lengths: [of_queries, of_keys], drops };
            let mut made = each::<V, _>(&call, &told, |_, sequence, weights| sequence.forward(&call.layer, weights)).concat();
            if let Some(residual) = residual {
                made.iter_mut().zip(residual.dense::<V>().iter()).for_each(|(to, from)| *to += *from);
            }
            match one {
                Some(one) => {
                    let (width, queries) = (call.layer.outputs(), call.sizes[3]);
                    let rows: Vec<V> = made.chunks(width).skip(one).step_by(queries).flatten().copied().collect();
                    to.part(2, one).store(&rows, V::of(1.0), V::of(0.0));
                }
                None => to.store(&made, V::of(1.0), V::of(0.0)),
            }
            if let Some(reserve) = reserve {
                reserve.write(&call, &told);
            }
        }
    })
}

/// Takes so many words from the states, which go on.
///
/// # Safety
/// The states are there, and nobody else uses them meanwhile.
unsafe fn take(from: Option<Inside>, count: usize) -> Option<(f64, State)> {
    let Inside { dropped, states, .. } = from?;
    let mut bytes = [0; STATE];
    // SAFETY: the caller's word.
    unsafe { core::ptr::copy_nonoverlapping(states.get().cast_const(), bytes.as_mut_ptr(), STATE) };
    let Some(state) = State::of_bytes(bytes) else {
        tracing::error!(target: "cudaway::dnn", "multi-head attention: the states are none that cudnnSetDropoutDescriptor made, and nothing is dropped");
        return None;
    };
    let after = State { taken: state.taken.wrapping_add(count as u64), ..state }.bytes();
    // SAFETY: as above.
    unsafe { core::ptr::copy_nonoverlapping(after.as_ptr(), states.get(), STATE) };
    Some((dropped, state))
}

/// # Safety
/// As [`cudnnSetSeqDataDescriptor`].
unsafe fn windows(first: *const c_int, end: *const c_int, count: usize) -> Result<Vec<(c_int, c_int)>> {
    // SAFETY: the caller's promise.
    let (firsts, ends) = (unsafe { list(first, count as c_int) }?, unsafe { list(end, count as c_int) }?);
    let windows: Vec<_> = firsts.iter().copied().zip(ends.iter().copied()).collect();
    require(windows.iter().all(|(first, end)| 0 <= *first && first <= end), "a window is out of bounds")?;
    Ok(windows)
}

#[derive(Clone, Copy)]
struct Reserve(Address<*mut u8>);

impl Reserve {
    fn of(known: &Attention, at: *mut c_void, bytes: usize) -> Result<Reserve> {
        require(!at.is_null(), "reserveSpace")?;
        require(at.addr().is_multiple_of(8), "the reserve space is not aligned")?;
        require(bytes >= known.reserve_bytes(), "the reserve space is too small")?;
        Ok(Reserve(memory::array(at.cast(), known.reserve_bytes())?))
    }

    fn sizes(call: &Call) -> u64 {
        (call.queries() as u64) << 42 | (call.keys() as u64) << 21 | call.sizes[3] as u64
    }

    /// # Safety
    /// The space is there, and nobody else uses it meanwhile.
    unsafe fn write(&self, call: &Call, told: &Told) {
        let [attention, output] = told
            .drops
            .map(|it| it.map_or([0; 3], |(dropped, state)| [dropped.to_bits(), state.seed, state.taken]));
        let header = [
            MARK,
            Self::sizes(call),
            attention[0],
            attention[1],
            attention[2],
            output[0],
            output[1],
            output[2],
        ];
        let windows = told.windows.iter().flat_map(|(first, end)| [*first, *end]);
        let numbers: Vec<c_int> = windows.chain(told.lengths.iter().flatten().copied()).collect();
        // SAFETY: the caller's word; the room was looked at.
        unsafe {
            self.0.get().cast::<[u64; 8]>().write(header);
            let to = self.0.get().add(HEADER).cast::<c_int>();
            core::ptr::copy_nonoverlapping(numbers.as_ptr(), to, numbers.len());
        }
    }

    /// `None` where no training of the same sizes has written the space.
    ///
    /// # Safety
    /// As of [`Reserve::write`].
    unsafe fn read(&self, call: &Call) -> Option<Told> {
        // SAFETY: as above.
        let header = unsafe { self.0.get().cast::<[u64; 8]>().read() };
        if header[..2] != [MARK, Self::sizes(call)] {
            tracing::error!(target: "cudaway::dnn", "the reserve space is none that a training's way forward of this attention has written");
            return None;
        }
        let (queries, all, keys) = (call.sizes[3], call.queries(), call.keys());
        let at = self.0.get().wrapping_add(HEADER).cast::<c_int>();
        // SAFETY: as above.
        let numbers = unsafe { core::slice::from_raw_parts(at, 2 * queries + all + keys) };
        let (windows, lengths) = numbers.split_at(2 * queries);
        let drops = [&header[2..5], &header[5..8]].map(|words| {
            let state = State { seed: words[1], taken: words[2] };
            (words[0] != 0).then(|| (f64::from_bits(words[0]), state))
        });
        let windows = windows.chunks(2).map(|window| (window[0], window[1])).collect();
        Some(Told { windows, lengths: [lengths[..all].to_vec(), lengths[all..].to_vec()], drops })
    }
}

/// Windows and lengths are those of the way forward, which the reserve space has.
///
/// # Safety
/// As [`cudnnMultiHeadAttnForward`].
pub unsafe fn cudnnMultiHeadAttnBackwardData(
    handle: cudnnHandle_t,
    attnDesc: cudnnAttnDescriptor_t,
    loWinIdx: *const c_int,
    hiWinIdx: *const c_int,
    devSeqLengthsDQDO: *const c_int,
    devSeqLengthsDKDV: *const c_int,
    doDesc: cudnnSeqDataDescriptor_t,
    dout: *const c_void,
    dqDesc: cudnnSeqDataDescriptor_t,
    dqueries: *mut c_void,
    queries: *const c_void,
    dkDesc: cudnnSeqDataDescriptor_t,
    dkeys: *mut c_void,
    keys: *const c_void,
    dvDesc: cudnnSeqDataDescriptor_t,
    dvalues: *mut c_void,
    values: *const c_void,
    weightSizeInBytes: usize,
    weights: *const c_void,
    _workSpaceSizeInBytes: usize,
    _workSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let known = attention(attnDesc)?;
    let inputs = [(dqDesc, queries), (dkDesc, keys), (dvDesc, values)];
    // SAFETY: the caller's promise.
    let ([q, k, v, o], call) = unsafe { Call::of(&known, (weights, weightSizeInBytes), inputs, doDesc) }?;
    // SAFETY: the caller's promise.
    unsafe { windows(loWinIdx, hiWinIdx, q.size(TIME)) }?;
    require(!devSeqLengthsDQDO.is_null() && !devSeqLengthsDKDV.is_null(), "lengths are NULL")?;
    // SAFETY: the caller's promise.
    let (from, to) = (
        unsafe { o.view(dout) }?,
        [unsafe { q.view(dqueries) }?, unsafe { k.view(dkeys) }?, unsafe { v.view(dvalues) }?],
    );
    let reserve = Reserve::of(&known, reserveSpace, reserveSpaceSizeInBytes)?;
    compute!(context, call.is_double, V => {
        // SAFETY: as above.
        unsafe {
            let Some(told) = reserve.read(&call) else { return };
            let dy = from.dense::<V>();
            let size = dy.len() / call.queries();
            let found = each::<V, _>(&call, &told, |number, sequence, weights| {
                let mut of_weights = vec![V::of(0.0); call.layer.weights()];
                sequence.backward(&call.layer, weights, &dy[number * size..][..size], &mut of_weights)
            });
            let mut sums = to.map(|view| vec![V::of(0.0); view.len()]);
            for (number, parts) in found.into_iter().enumerate() {
                let places = [number, key_of(&call, number), key_of(&call, number)];
                for ((sum, part), place) in sums.iter_mut().zip(parts).zip(places) {
                    let sum = &mut sum[place * part.len()..][..part.len()];
                    sum.iter_mut().zip(&part).for_each(|(sum, part)| *sum += *part);
                }
            }
            for (view, sum) in to.iter().zip(&sums) {
                view.store(sum, V::of(1.0), V::of(0.0));
            }
        }
    })
}

/// Gradients are added to those in memory or replace them.
///
/// # Safety
/// As [`cudnnMultiHeadAttnForward`].
pub unsafe fn cudnnMultiHeadAttnBackwardWeights(
    handle: cudnnHandle_t,
    attnDesc: cudnnAttnDescriptor_t,
    addGrad: cudnnWgradMode_t,
    qDesc: cudnnSeqDataDescriptor_t,
    queries: *const c_void,
    kDesc: cudnnSeqDataDescriptor_t,
    keys: *const c_void,
    vDesc: cudnnSeqDataDescriptor_t,
    values: *const c_void,
    doDesc: cudnnSeqDataDescriptor_t,
    dout: *const c_void,
    weightSizeInBytes: usize,
    weights: *const c_void,
    dweights: *mut c_void,
    _workSpaceSizeInBytes: usize,
    _workSpace: *mut c_void,
    reserveSpaceSizeInBytes: usize,
    reserveSpace: *mut c_void,
) -> Result {
    let context = computing(handle)?;
    let known = attention(attnDesc)?;
    require((0..2).contains(&addGrad.0), "there is no such mode")?;
    let inputs = [(qDesc, queries), (kDesc, keys), (vDesc, values)];
    // SAFETY: the caller's promise.
    let ([.., o], call) = unsafe { Call::of(&known, (weights, weightSizeInBytes), inputs, doDesc) }?;
    // SAFETY: the caller's promise.
    let (from, to) = (unsafe { o.view(dout) }?, unsafe { known.weights(dweights, weightSizeInBytes) }?);
    let reserve = Reserve::of(&known, reserveSpace, reserveSpaceSizeInBytes)?;
    let beta = if addGrad == cudnnWgradMode_t::CUDNN_WGRAD_MODE_ADD { 1.0 } else { 0.0 };
    compute!(context, call.is_double, V => {
        // SAFETY: as above.
        unsafe {
            let Some(told) = reserve.read(&call) else { return };
            let dy = from.dense::<V>();
            let size = dy.len() / call.queries();
            let found = each::<V, _>(&call, &told, |number, sequence, weights| {
                let mut of_weights = vec![V::of(0.0); call.layer.weights()];
                sequence.backward(&call.layer, weights, &dy[number * size..][..size], &mut of_weights);
                of_weights
            });
            let mut sum = vec![V::of(0.0); call.layer.weights()];
            for part in &found {
                sum.iter_mut().zip(part).for_each(|(sum, part)| *sum += *part);
            }
            to.store(&sum, V::of(1.0), V::of(beta));
        }
    })
}
