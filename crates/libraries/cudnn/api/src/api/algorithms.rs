//! What is told of convolutions' algorithms, and how much memory they take. Source: cuDNN manual, "cudnn_cnn library".

use core::ffi::{c_int, c_void};
use std::time::Instant;

use border::{OptOut, Out};

use super::convolution::{CONVOLUTIONS, Settings, are_apart, backward_data, backward_filter, forward};
use crate::Result;
use crate::error::require;
use crate::handle::{Context, computing};
use crate::hip;
use crate::hip::convolution::{Area, Direction, Found};
use crate::hip::objects::Room;
use crate::tensor::{Argument, Filter, Tensor, argument, filter, give, tensor};
use crate::types::*;

/// What the three directions' algorithms have in common.
pub(super) trait Algorithm: Copy + Sized {
    type Perf: Copy;
    /// How many the header numbers.
    const COUNT: u32;
    /// Those that are told of, the one to be taken first.
    const TOLD: &'static [u32];

    fn number(self) -> u32;
    fn perf(number: u32, math: cudnnMathType_t, told: Told) -> Self::Perf;

    fn known(self) -> Result {
        require(self.number() < Self::COUNT, "there is no such algorithm")
    }
}

macro_rules! algorithms {
    ($($algo:ident $perf:ident $count:literal $told:expr;)*) => {$(
        impl Algorithm for $algo {
            type Perf = $perf;
            const COUNT: u32 = $count;
            const TOLD: &'static [u32] = $told;

            fn number(self) -> u32 {
                self.0
            }

            fn perf(number: u32, mathType: cudnnMathType_t, told: Told) -> $perf {
                $perf {
                    algo: $algo(number),
                    status: cudnnStatus_t::CUDNN_STATUS_SUCCESS,
                    time: told.time,
                    memory: told.memory,
                    determinism: cudnnDeterminism_t::CUDNN_DETERMINISTIC,
                    mathType,
                    reserved: [0; 3],
                }
            }
        }
    )*};
}

algorithms! {
    // Those whose work is a product of matrices.
    cudnnConvolutionFwdAlgo_t cudnnConvolutionFwdAlgoPerf_t 8 &[1, 0, 2];
    cudnnConvolutionBwdDataAlgo_t cudnnConvolutionBwdDataAlgoPerf_t 6 &[1, 0];
    cudnnConvolutionBwdFilterAlgo_t cudnnConvolutionBwdFilterAlgoPerf_t 7 &[1, 0, 3];
}

/// How long an algorithm takes, or -1, and how much memory.
#[derive(Clone, Copy)]
pub(super) struct Told {
    time: f32,
    memory: usize,
}

impl Told {
    /// Our own code's.
    fn ours(time: f32) -> Told {
        Told { time, memory: 0 }
    }

    fn found(found: Found) -> Told {
        Told { time: found.time, memory: found.memory }
    }
}

/// The search of MIOpen's with memory of its own, none where our own code computes.
fn search_apart(
    context: &Context,
    problem: Option<&hip::convolution::Problem>,
    bytes: [usize; 3],
) -> Result<Option<Found>> {
    let (Some(problem), Some(hip)) = (problem, context.hip(true)?) else { return Ok(None) };
    let area_bytes = hip.workspace(Some(problem))?;
    let area = Room::new(hip.stream, area_bytes)?;
    let [x, w, y] = bytes.map(|bytes| Room::new(hip.stream, bytes));
    let [x, w, y] = [x?, w?, y?];
    hip.find(problem, [x.at(), w.at(), y.at()], Area::new(area.at(), area_bytes))
}

/// Writes what is known of algorithms, as many as were asked for.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn tell<A: Algorithm>(
    requested: c_int,
    returned: OptOut<'_, c_int>,
    results: *mut A::Perf,
    math: cudnnMathType_t,
    told: Told,
) -> Result {
    require(requested > 0, "at least one algorithm is asked for")?;
    let told: Vec<A::Perf> = A::TOLD.iter().map(|&number| A::perf(number, math, told)).collect();
    // SAFETY: the caller's promise.
    unsafe { give(results, requested, &told) }?;
    returned.write(requested.min(told.len() as c_int));
    Ok(())
}

/// How long the work takes, in milliseconds, when the stream has done what it was asked for.
fn timed(context: &Context, work: impl FnOnce()) -> Result<f32> {
    context.synchronize()?;
    let begin = Instant::now();
    context.now(work)?;
    Ok(begin.elapsed().as_secs_f32() * 1e3)
}

/// Runs a block of either type.
macro_rules! either {
    ($is_double:expr, $value:ident => $body:expr) => {
        if $is_double {
            type $value = f64;
            $body
        } else {
            type $value = f32;
            $body
        }
    };
}

/// Memory of a tensor's for a trial.
fn room(bytes: usize) -> Vec<u64> {
    vec![0; bytes.div_ceil(8)]
}

fn place(of: &mut Vec<u64>) -> *mut c_void {
    of.as_mut_ptr().cast()
}

/// How long our own code takes, which writes the result.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn time(
    context: &Context,
    settings: &Settings,
    direction: Direction,
    x: &Argument,
    (filter, w): (&Filter, *const c_void),
    y: &Argument,
) -> Result<f32> {
    let problem = settings.problem(x, filter, y)?;
    let of = &problem.geometry;
    // SAFETY: the caller's promise.
    let (x, w, y) = (unsafe { x.view() }?, unsafe { problem.filter(filter, w) }?, unsafe { y.view() }?);
    // SAFETY: cuDNN's contract: the tensors are there, and the result is apart from the others.
    timed(context, || unsafe {
        either!(problem.is_double, V => match direction {
            Direction::Forward => forward::<V>(of, 1.0, x, w, 0.0, y),
            Direction::Data => backward_data::<V>(of, 1.0, w, y, 0.0, x),
            Direction::Filter => backward_filter::<V>(of, 1.0, x, y, 0.0, w),
        });
    })
}

/// What is known of a convolution that nobody has tried: on an AMD GPU how much memory MIOpen asks for. Our own code takes none.
fn asked(
    context: &Context,
    settings: &Settings,
    direction: Direction,
    x: &Tensor,
    w: &Filter,
    y: &Tensor,
) -> Result<Told> {
    settings.problem(x, w, y)?;
    let on_hip = settings.on_hip(direction, x, w, y);
    let memory = context.hip(false)?.map_or(Ok(0), |hip| hip.workspace(on_hip.as_ref()))?;
    Ok(Told { time: -1.0, memory })
}

/// What a trial on memory of the library's tells.
fn tried_apart(
    context: &Context,
    settings: &Settings,
    direction: Direction,
    [x, y]: [Tensor; 2],
    w: &Filter,
) -> Result<Told> {
    settings.problem(&x, w, &y)?;
    let on_hip = settings.on_hip(direction, &x, w, &y);
    let bytes = [x.bytes()?, w.bytes()?, y.bytes()?];
    if let Some(found) = search_apart(context, on_hip.as_ref(), bytes)? {
        return Ok(Told::found(found));
    }
    let [mut x_room, mut w_room, mut y_room] = bytes.map(room);
    let (x, y) = (Argument::new(x, place(&mut x_room)), Argument::new(y, place(&mut y_room)));
    // SAFETY: as much memory as the tensors have, until the work is done.
    Ok(Told::ours(unsafe { time(context, settings, direction, &x, (w, place(&mut w_room)), &y) }?))
}

/// What a trial tells that writes the result.
///
/// # Safety
/// As of [`time`].
unsafe fn tried(
    context: &Context,
    settings: &Settings,
    direction: Direction,
    [x, y]: [Argument; 2],
    (filter, w): (&Filter, *mut c_void),
    area: Area,
) -> Result<Told> {
    settings.problem(&x, filter, &y)?;
    let there = filter.at(w)?;
    if let Some(hip) = context.hip(true)?
        && let Some(problem) = settings.on_hip(direction, &x, filter, &y)
    {
        let ([a, b], written) = problem.order([&x, &there, &y]);
        if are_apart(&[a, b], written)
            && let Some(found) = hip.find(&problem, [x.memory, w, y.memory], area)?
        {
            return Ok(Told::found(found));
        }
    }
    // SAFETY: the caller's promise.
    Ok(Told::ours(unsafe { time(context, settings, direction, &x, (filter, w), &y) }?))
}

pub fn cudnnGetConvolutionForwardAlgorithmMaxCount(handle: cudnnHandle_t, count: Out<'_, c_int>) -> Result {
    computing(handle)?;
    count.write(cudnnConvolutionFwdAlgo_t::COUNT as c_int);
    Ok(())
}

pub fn cudnnGetConvolutionBackwardDataAlgorithmMaxCount(
    handle: cudnnHandle_t,
    count: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    count.write(cudnnConvolutionBwdDataAlgo_t::COUNT as c_int);
    Ok(())
}

pub fn cudnnGetConvolutionBackwardFilterAlgorithmMaxCount(
    handle: cudnnHandle_t,
    count: Out<'_, c_int>,
) -> Result {
    computing(handle)?;
    count.write(cudnnConvolutionBwdFilterAlgo_t::COUNT as c_int);
    Ok(())
}

/// No time is told: -1, as the manual has it for what was not measured.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
pub unsafe fn cudnnGetConvolutionForwardAlgorithm_v7(
    handle: cudnnHandle_t,
    srcDesc: cudnnTensorDescriptor_t,
    filterDesc: cudnnFilterDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    destDesc: cudnnTensorDescriptor_t,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionFwdAlgoPerf_t,
) -> Result {
    let context = computing(handle)?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (x, w, y) = (tensor(srcDesc)?, filter(filterDesc)?, tensor(destDesc)?);
    let told = asked(&context, &settings, Direction::Forward, &x, &w, &y)?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionFwdAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnGetConvolutionBackwardDataAlgorithm_v7(
    handle: cudnnHandle_t,
    filterDesc: cudnnFilterDescriptor_t,
    diffDesc: cudnnTensorDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    gradDesc: cudnnTensorDescriptor_t,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionBwdDataAlgoPerf_t,
) -> Result {
    let context = computing(handle)?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (x, w, y) = (tensor(gradDesc)?, filter(filterDesc)?, tensor(diffDesc)?);
    let told = asked(&context, &settings, Direction::Data, &x, &w, &y)?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionBwdDataAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnGetConvolutionBackwardFilterAlgorithm_v7(
    handle: cudnnHandle_t,
    srcDesc: cudnnTensorDescriptor_t,
    diffDesc: cudnnTensorDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    gradDesc: cudnnFilterDescriptor_t,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionBwdFilterAlgoPerf_t,
) -> Result {
    let context = computing(handle)?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (x, w, y) = (tensor(srcDesc)?, filter(gradDesc)?, tensor(diffDesc)?);
    let told = asked(&context, &settings, Direction::Filter, &x, &w, &y)?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionBwdFilterAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// The work is done once, on memory of the library's.
///
/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnFindConvolutionForwardAlgorithm(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    wDesc: cudnnFilterDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    yDesc: cudnnTensorDescriptor_t,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionFwdAlgoPerf_t,
) -> Result {
    let context = computing(handle)?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (tensors, w) = ([tensor(xDesc)?, tensor(yDesc)?], filter(wDesc)?);
    let told = tried_apart(&context, &settings, Direction::Forward, tensors, &w)?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionFwdAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// The work is done once and y written.
///
/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnFindConvolutionForwardAlgorithmEx(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    yDesc: cudnnTensorDescriptor_t,
    y: *mut c_void,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionFwdAlgoPerf_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
) -> Result {
    let context = computing(handle)?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(wDesc)?);
    let tensors = [argument(xDesc, x)?, argument(yDesc, y)?];
    let (w, area) = ((&filter, w.cast_mut()), Area::new(workSpace, workSpaceSizeInBytes));
    // SAFETY: the caller's promise.
    let told = unsafe { tried(&context, &settings, Direction::Forward, tensors, w, area) }?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionFwdAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnFindConvolutionBackwardDataAlgorithm(
    handle: cudnnHandle_t,
    wDesc: cudnnFilterDescriptor_t,
    dyDesc: cudnnTensorDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    dxDesc: cudnnTensorDescriptor_t,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionBwdDataAlgoPerf_t,
) -> Result {
    let context = computing(handle)?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (tensors, w) = ([tensor(dxDesc)?, tensor(dyDesc)?], filter(wDesc)?);
    let told = tried_apart(&context, &settings, Direction::Data, tensors, &w)?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionBwdDataAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnFindConvolutionBackwardDataAlgorithmEx(
    handle: cudnnHandle_t,
    wDesc: cudnnFilterDescriptor_t,
    w: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    dy: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    dxDesc: cudnnTensorDescriptor_t,
    dx: *mut c_void,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionBwdDataAlgoPerf_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
) -> Result {
    let context = computing(handle)?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(wDesc)?);
    let tensors = [argument(dxDesc, dx)?, argument(dyDesc, dy)?];
    let (w, area) = ((&filter, w.cast_mut()), Area::new(workSpace, workSpaceSizeInBytes));
    // SAFETY: the caller's promise.
    let told = unsafe { tried(&context, &settings, Direction::Data, tensors, w, area) }?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionBwdDataAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnFindConvolutionBackwardFilterAlgorithm(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    dyDesc: cudnnTensorDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    dwDesc: cudnnFilterDescriptor_t,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionBwdFilterAlgoPerf_t,
) -> Result {
    let context = computing(handle)?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (tensors, w) = ([tensor(xDesc)?, tensor(dyDesc)?], filter(dwDesc)?);
    let told = tried_apart(&context, &settings, Direction::Filter, tensors, &w)?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionBwdFilterAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

/// # Safety
/// As [`cudnnGetConvolutionForwardAlgorithm_v7`].
pub unsafe fn cudnnFindConvolutionBackwardFilterAlgorithmEx(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    x: *const c_void,
    dyDesc: cudnnTensorDescriptor_t,
    y: *const c_void,
    convDesc: cudnnConvolutionDescriptor_t,
    dwDesc: cudnnFilterDescriptor_t,
    dw: *mut c_void,
    requestedAlgoCount: c_int,
    returnedAlgoCount: OptOut<'_, c_int>,
    perfResults: *mut cudnnConvolutionBwdFilterAlgoPerf_t,
    workSpace: *mut c_void,
    workSpaceSizeInBytes: usize,
) -> Result {
    let context = computing(handle)?;
    let (settings, filter) = (CONVOLUTIONS.get(convDesc)?, filter(dwDesc)?);
    let tensors = [argument(xDesc, x)?, argument(dyDesc, y)?];
    let (w, area) = ((&filter, dw), Area::new(workSpace, workSpaceSizeInBytes));
    // SAFETY: the caller's promise.
    let told = unsafe { tried(&context, &settings, Direction::Filter, tensors, w, area) }?;
    // SAFETY: the caller's promise.
    unsafe {
        tell::<cudnnConvolutionBwdFilterAlgo_t>(
            requestedAlgoCount,
            returnedAlgoCount,
            perfResults,
            settings.math,
            told,
        )
    }
}

pub fn cudnnGetConvolutionForwardWorkspaceSize(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    wDesc: cudnnFilterDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    yDesc: cudnnTensorDescriptor_t,
    algo: cudnnConvolutionFwdAlgo_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (x, w, y) = (tensor(xDesc)?, filter(wDesc)?, tensor(yDesc)?);
    sizeInBytes.write(asked(&context, &settings, Direction::Forward, &x, &w, &y)?.memory);
    Ok(())
}

pub fn cudnnGetConvolutionBackwardDataWorkspaceSize(
    handle: cudnnHandle_t,
    wDesc: cudnnFilterDescriptor_t,
    dyDesc: cudnnTensorDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    dxDesc: cudnnTensorDescriptor_t,
    algo: cudnnConvolutionBwdDataAlgo_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (x, w, y) = (tensor(dxDesc)?, filter(wDesc)?, tensor(dyDesc)?);
    sizeInBytes.write(asked(&context, &settings, Direction::Data, &x, &w, &y)?.memory);
    Ok(())
}

pub fn cudnnGetConvolutionBackwardFilterWorkspaceSize(
    handle: cudnnHandle_t,
    xDesc: cudnnTensorDescriptor_t,
    dyDesc: cudnnTensorDescriptor_t,
    convDesc: cudnnConvolutionDescriptor_t,
    gradDesc: cudnnFilterDescriptor_t,
    algo: cudnnConvolutionBwdFilterAlgo_t,
    sizeInBytes: Out<'_, usize>,
) -> Result {
    let context = computing(handle)?;
    algo.known()?;
    let settings = CONVOLUTIONS.get(convDesc)?;
    let (x, w, y) = (tensor(xDesc)?, filter(gradDesc)?, tensor(dyDesc)?);
    sizeInBytes.write(asked(&context, &settings, Direction::Filter, &x, &w, &y)?.memory);
    Ok(())
}
