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
use crate::tensor::{Argument, Filter, argument, filter, give, tensor};
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

    /// Before anything has run.
    fn asked(context: &Context, problem: Option<&hip::convolution::Problem>) -> Result<Told> {
        Ok(Told { time: -1.0, memory: work_area(context, problem)? })
    }
}

/// What MIOpen asks for, on an AMD GPU where it computes; our own code takes nothing.
fn work_area(context: &Context, problem: Option<&hip::convolution::Problem>) -> Result<usize> {
    context.hip(false)?.map_or(Ok(0), |hip| hip.workspace(problem))
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

/// How long our own code takes, which writes y.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn time_forward(
    context: &Context,
    settings: &Settings,
    x: &Argument,
    (filter, w): (&Filter, *const c_void),
    y: &Argument,
) -> Result<f32> {
    let problem = settings.problem(x, filter, y)?;
    // SAFETY: the caller's promise.
    let (from, by, to) = (unsafe { x.view() }?, unsafe { problem.filter(filter, w) }?, unsafe { y.view() }?);
    // SAFETY: cuDNN's contract: the tensors are there, and y is apart from the others.
    timed(context, || unsafe {
        either!(problem.is_double, V => forward::<V>(&problem.geometry, 1.0, from, by, 0.0, to));
    })
}

/// The same of the gradient dx.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn time_backward_data(
    context: &Context,
    settings: &Settings,
    dx: &Argument,
    (filter, w): (&Filter, *const c_void),
    dy: &Argument,
) -> Result<f32> {
    let problem = settings.problem(dx, filter, dy)?;
    // SAFETY: the caller's promise.
    let (from, by, to) =
        (unsafe { dy.view() }?, unsafe { problem.filter(filter, w) }?, unsafe { dx.view() }?);
    // SAFETY: as above.
    timed(context, || unsafe {
        either!(problem.is_double, V => backward_data::<V>(&problem.geometry, 1.0, by, from, 0.0, to));
    })
}

/// The same of the gradient dw.
///
/// # Safety
/// The memory is there as the manual says of it: the device's until the stream has done the work, the host's while the call lasts.
unsafe fn time_backward_filter(
    context: &Context,
    settings: &Settings,
    x: &Argument,
    (filter, dw): (&Filter, *const c_void),
    dy: &Argument,
) -> Result<f32> {
    let problem = settings.problem(x, filter, dy)?;
    // SAFETY: the caller's promise.
    let (x_at, dy_at, to) =
        (unsafe { x.view() }?, unsafe { dy.view() }?, unsafe { problem.filter(filter, dw) }?);
    // SAFETY: as above.
    timed(context, || unsafe {
        either!(problem.is_double, V => backward_filter::<V>(&problem.geometry, 1.0, x_at, dy_at, 0.0, to));
    })
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
    settings.problem(&x, &w, &y)?;
    let on_hip = settings.on_hip(Direction::Forward, &x, &w, &y);
    let told = Told::asked(&context, on_hip.as_ref())?;
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
    settings.problem(&x, &w, &y)?;
    let on_hip = settings.on_hip(Direction::Data, &x, &w, &y);
    let told = Told::asked(&context, on_hip.as_ref())?;
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
    settings.problem(&x, &w, &y)?;
    let on_hip = settings.on_hip(Direction::Filter, &x, &w, &y);
    let told = Told::asked(&context, on_hip.as_ref())?;
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
    let (x, w, y) = (tensor(xDesc)?, filter(wDesc)?, tensor(yDesc)?);
    settings.problem(&x, &w, &y)?;
    let on_hip = settings.on_hip(Direction::Forward, &x, &w, &y);
    let bytes = [x.bytes()?, w.bytes()?, y.bytes()?];
    let told = match search_apart(&context, on_hip.as_ref(), bytes)? {
        Some(found) => Told::found(found),
        None => {
            let [mut x_room, mut w_room, mut y_room] = bytes.map(room);
            let (x, y) = (Argument::new(x, place(&mut x_room)), Argument::new(y, place(&mut y_room)));
            // SAFETY: the caller's promise.
            Told::ours(unsafe { time_forward(&context, &settings, &x, (&w, place(&mut w_room)), &y) }?)
        }
    };
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
    let (at_w, x, y) = (w.cast_mut(), argument(xDesc, x)?, argument(yDesc, y)?);
    settings.problem(&x, &filter, &y)?;
    let on_hip = settings.on_hip(Direction::Forward, &x, &filter, &y);
    let there = filter.at(at_w)?;
    let area = Area::new(workSpace, workSpaceSizeInBytes);
    let found = match (on_hip, context.hip(true)?) {
        (Some(problem), Some(hip)) if are_apart(&[&x, &there], &y) => {
            hip.find(&problem, [x.memory, at_w, y.memory], area)?
        }
        _ => None,
    };
    let told = match found {
        Some(found) => Told::found(found),
        // SAFETY: the caller's promise.
        None => Told::ours(unsafe { time_forward(&context, &settings, &x, (&filter, at_w), &y) }?),
    };
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
    let (x, w, y) = (tensor(dxDesc)?, filter(wDesc)?, tensor(dyDesc)?);
    settings.problem(&x, &w, &y)?;
    let on_hip = settings.on_hip(Direction::Data, &x, &w, &y);
    let bytes = [x.bytes()?, w.bytes()?, y.bytes()?];
    let told = match search_apart(&context, on_hip.as_ref(), bytes)? {
        Some(found) => Told::found(found),
        None => {
            let [mut x_room, mut w_room, mut y_room] = bytes.map(room);
            let (x, y) = (Argument::new(x, place(&mut x_room)), Argument::new(y, place(&mut y_room)));
            // SAFETY: the caller's promise.
            Told::ours(unsafe { time_backward_data(&context, &settings, &x, (&w, place(&mut w_room)), &y) }?)
        }
    };
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
    let (at_w, x, y) = (w.cast_mut(), argument(dxDesc, dx)?, argument(dyDesc, dy)?);
    settings.problem(&x, &filter, &y)?;
    let on_hip = settings.on_hip(Direction::Data, &x, &filter, &y);
    let there = filter.at(at_w)?;
    let area = Area::new(workSpace, workSpaceSizeInBytes);
    let found = match (on_hip, context.hip(true)?) {
        (Some(problem), Some(hip)) if are_apart(&[&there, &y], &x) => {
            hip.find(&problem, [x.memory, at_w, y.memory], area)?
        }
        _ => None,
    };
    let told = match found {
        Some(found) => Told::found(found),
        // SAFETY: the caller's promise.
        None => Told::ours(unsafe { time_backward_data(&context, &settings, &x, (&filter, at_w), &y) }?),
    };
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
    let (x, w, y) = (tensor(xDesc)?, filter(dwDesc)?, tensor(dyDesc)?);
    settings.problem(&x, &w, &y)?;
    let on_hip = settings.on_hip(Direction::Filter, &x, &w, &y);
    let bytes = [x.bytes()?, w.bytes()?, y.bytes()?];
    let told = match search_apart(&context, on_hip.as_ref(), bytes)? {
        Some(found) => Told::found(found),
        None => {
            let [mut x_room, mut w_room, mut y_room] = bytes.map(room);
            let (x, y) = (Argument::new(x, place(&mut x_room)), Argument::new(y, place(&mut y_room)));
            // SAFETY: the caller's promise.
            Told::ours(unsafe {
                time_backward_filter(&context, &settings, &x, (&w, place(&mut w_room)), &y)
            }?)
        }
    };
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
    let (at_w, x, y) = (dw, argument(xDesc, x)?, argument(dyDesc, y)?);
    settings.problem(&x, &filter, &y)?;
    let on_hip = settings.on_hip(Direction::Filter, &x, &filter, &y);
    let there = filter.at(at_w)?;
    let area = Area::new(workSpace, workSpaceSizeInBytes);
    let found = match (on_hip, context.hip(true)?) {
        (Some(problem), Some(hip)) if are_apart(&[&x, &y], &there) => {
            hip.find(&problem, [x.memory, at_w, y.memory], area)?
        }
        _ => None,
    };
    let told = match found {
        Some(found) => Told::found(found),
        // SAFETY: the caller's promise.
        None => Told::ours(unsafe { time_backward_filter(&context, &settings, &x, (&filter, at_w), &y) }?),
    };
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
    settings.problem(&x, &w, &y)?;
    sizeInBytes.write(work_area(&context, settings.on_hip(Direction::Forward, &x, &w, &y).as_ref())?);
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
    settings.problem(&x, &w, &y)?;
    sizeInBytes.write(work_area(&context, settings.on_hip(Direction::Data, &x, &w, &y).as_ref())?);
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
    settings.problem(&x, &w, &y)?;
    sizeInBytes.write(work_area(&context, settings.on_hip(Direction::Filter, &x, &w, &y).as_ref())?);
    Ok(())
}
