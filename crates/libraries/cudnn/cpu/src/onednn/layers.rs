//! Layers that oneDNN has as cuDNN means them, and which of them it computes sooner.
//!
//! Not here are those whose results would be others: its softmax makes zeros of a row with a NaN, its largest elements do not say what becomes
//! of one, and its way back from them needs what only its own way forward keeps. Batch norms are done sooner by our own code.

use core::ffi::c_int;
use core::ptr::null_mut;

use super::OneDnn;
use super::program::{Given, Owned, Program, dims};
use crate::convolution::Geometry;
use crate::pooling::{Pooling, Window};

/// What a program is kept by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Layer {
    Convolution(Way, Geometry),
    Mean { is_forward: bool, counts_all: bool, planes: usize, window: Window },
    Lstm(Lstm),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Way {
    Forward,
    Data,
    Filter,
}

/// One layer in one direction, of sequences that are all as long.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Lstm {
    pub steps: usize,
    pub batch: usize,
    pub input: usize,
    pub hidden: usize,
    pub is_reversed: bool,
}

const SRC: c_int = 1;
const DST: c_int = 17;
const WEIGHTS: c_int = 33;
const BIAS: c_int = 41;
const DIFF_SRC: c_int = 129;
const DIFF_DST: c_int = 145;
const DIFF_WEIGHTS: c_int = 161;

const TRAINING: c_int = 64;
const INFERENCE: c_int = 96;
const DIRECT: c_int = 1;
/// The next is right to left.
const LEFT_TO_RIGHT: c_int = 1;
const MEAN_OF_ALL: c_int = 0x2ff;
const MEAN_OF_INSIDE: c_int = 0x3ff;

/// The last sizes that are not trivial: 3, 2 or 1.
fn rank(trivial: impl Fn(usize) -> bool) -> usize {
    if !trivial(0) {
        3
    } else if !trivial(1) {
        2
    } else {
        1
    }
}

/// What is behind the last of a size, so that there are as many places: less than nothing where some of it is not met.
fn behind(output: usize, stride: usize, reach: usize, input: usize, before: isize) -> isize {
    (output.max(1) - 1) as isize * stride as isize + reach as isize - input as isize - before
}

fn offsets(of: &[isize]) -> super::Dims {
    let mut all = [0; 12];
    all.iter_mut().zip(of).for_each(|(to, from)| *to = *from as i64);
    all
}

impl Geometry {
    /// Where our own code is as fast or faster: windows of one element are products of matrices, groups of several channels, gradients of
    /// images of few channels, and channels by themselves where planes are large.
    fn is_ours(&self, way: Way) -> bool {
        let taps: usize = self.filter.iter().product();
        let is_depthwise = self.channels == 1 && self.filters == 1;
        let outputs: usize = self.output.iter().product();
        taps == 1
            || (self.groups > 1 && !is_depthwise)
            || (way == Way::Data && self.groups == 1 && self.channels <= 4)
            || (is_depthwise && (outputs > 1024 || (way == Way::Filter && taps > 9)))
    }

    fn program(&self, one: &OneDnn, way: Way) -> Option<Program> {
        let is_trivial = |axis: usize| {
            self.input[axis] == 1
                && self.filter[axis] == 1
                && self.output[axis] == 1
                && self.padding[axis] == 0
        };
        let axes = 3 - rank(is_trivial)..3;
        let sizes = |first: &[usize], of: &[usize; 3]| [first, &of[axes.clone()]].concat();
        let x = sizes(&[self.images, self.groups * self.channels], &self.input);
        let y = sizes(&[self.images, self.groups * self.filters], &self.output);
        let w = if self.groups == 1 {
            sizes(&[self.filters, self.channels], &self.filter)
        } else {
            sizes(&[self.groups, self.filters, self.channels], &self.filter)
        };
        let strides = dims(&self.stride[axes.clone()]);
        let between: Vec<usize> = self.dilation[axes.clone()].iter().map(|dilation| dilation - 1).collect();
        let (between, before) = (dims(&between), offsets(&self.padding[axes.clone()]));
        let after: Vec<isize> = axes
            .clone()
            .map(|axis| {
                let reach = (self.filter[axis] - 1) * self.dilation[axis] + 1;
                behind(self.output[axis], self.stride[axis], reach, self.input[axis], self.padding[axis])
            })
            .collect();
        let after = offsets(&after);
        let sides = [one.any(&x)?, one.any(&w)?, one.any(&y)?];
        let [a, b, c] = sides.each_ref().map(Owned::at);
        let (functions, engine, attributes) = (one.functions(), one.engine(), one.attributes());
        let rest = (strides.as_ptr(), between.as_ptr(), before.as_ptr(), after.as_ptr());
        // SAFETY: the descriptions were made, and each list has as many numbers as there are sizes.
        let forward = one.described(|at| unsafe {
            (functions.convolution_forward_primitive_desc_create)(
                at,
                engine,
                TRAINING,
                DIRECT,
                a,
                b,
                null_mut(),
                c,
                rest.0,
                rest.1,
                rest.2,
                rest.3,
                attributes,
            )
        })?;
        let given = |number: c_int, sizes: &[usize], is_read: bool| {
            Some(Given { number, lies: one.dense(sizes)?, is_read })
        };
        match way {
            Way::Forward => {
                let all = vec![given(SRC, &x, true)?, given(WEIGHTS, &w, true)?, given(DST, &y, false)?];
                Program::new(one, forward, all)
            }
            Way::Data => {
                // SAFETY: as above.
                let back = one.described(|at| unsafe {
                    (functions.convolution_backward_data_primitive_desc_create)(
                        at,
                        engine,
                        DIRECT,
                        a,
                        b,
                        c,
                        rest.0,
                        rest.1,
                        rest.2,
                        rest.3,
                        forward.at(),
                        attributes,
                    )
                })?;
                let all =
                    vec![given(WEIGHTS, &w, true)?, given(DIFF_DST, &y, true)?, given(DIFF_SRC, &x, false)?];
                Program::new(one, back, all)
            }
            Way::Filter => {
                // SAFETY: as above.
                let back = one.described(|at| unsafe {
                    (functions.convolution_backward_weights_primitive_desc_create)(
                        at,
                        engine,
                        DIRECT,
                        a,
                        b,
                        null_mut(),
                        c,
                        rest.0,
                        rest.1,
                        rest.2,
                        rest.3,
                        forward.at(),
                        attributes,
                    )
                })?;
                let all =
                    vec![given(SRC, &x, true)?, given(DIFF_DST, &y, true)?, given(DIFF_WEIGHTS, &w, false)?];
                Program::new(one, back, all)
            }
        }
    }
}

/// A convolution's result from both that it is made of, in the order in which cuDNN's calls have them: whether it was done.
pub(crate) fn convolution(
    one: &OneDnn,
    way: Way,
    of: &Geometry,
    alpha: f32,
    [first, second]: [&[f32]; 2],
    beta: f32,
    to: &mut [f32],
) -> bool {
    if of.is_ours(way) || of.images == 0 || first.is_empty() || second.is_empty() || to.is_empty() {
        return false;
    }
    let Some(program) = one.programs.get(Layer::Convolution(way, *of), || of.program(one, way)) else {
        return false;
    };
    let (first, second) = (first.as_ptr().cast_mut(), second.as_ptr().cast_mut());
    if (alpha, beta) == (1.0, 0.0) {
        // SAFETY: the arrays are as long as the geometry says.
        return unsafe { program.run(one, &[first, second, to.as_mut_ptr()]) };
    }
    let mut made = vec![0.0; to.len()];
    // SAFETY: as above.
    if !unsafe { program.run(one, &[first, second, made.as_mut_ptr()]) } {
        return false;
    }
    for (to, made) in to.iter_mut().zip(made) {
        *to = if beta == 0.0 { alpha * made } else { alpha * made + beta * *to };
    }
    true
}

impl Window {
    fn program(&self, one: &OneDnn, is_forward: bool, counts_all: bool, planes: usize) -> Option<Program> {
        let is_trivial = |axis: usize| {
            self.input[axis] == 1
                && self.window[axis] == 1
                && self.output[axis] == 1
                && self.padding[axis] == 0
        };
        let axes = 3 - rank(is_trivial)..3;
        // Channels lie behind each other as images' do.
        let sizes = |of: &[usize; 3]| [&[1, planes], &of[axes.clone()]].concat();
        let (x, y) = (sizes(&self.input), sizes(&self.output));
        let (strides, window) = (dims(&self.stride[axes.clone()]), dims(&self.window[axes.clone()]));
        let (between, before) = (dims(&[]), offsets(&self.padding[axes.clone()]));
        let after: Vec<isize> = axes
            .clone()
            .map(|axis| {
                let (reach, input) = (self.window[axis], self.input[axis]);
                behind(self.output[axis], self.stride[axis], reach, input, self.padding[axis])
            })
            .collect();
        let after = offsets(&after);
        let sides = [one.dense(&x)?, one.dense(&y)?];
        let [a, b] = sides.each_ref().map(Owned::at);
        let (functions, engine, attributes) = (one.functions(), one.engine(), one.attributes());
        let mean = if counts_all { MEAN_OF_ALL } else { MEAN_OF_INSIDE };
        let rest = (strides.as_ptr(), window.as_ptr(), between.as_ptr(), before.as_ptr(), after.as_ptr());
        // SAFETY: the descriptions were made, and each list has as many numbers as there are sizes.
        let forward = one.described(|at| unsafe {
            (functions.pooling_forward_primitive_desc_create)(
                at, engine, TRAINING, mean, a, b, rest.0, rest.1, rest.2, rest.3, rest.4, attributes,
            )
        })?;
        let [x, y] = sides;
        if is_forward {
            let all = vec![
                Given { number: SRC, lies: x, is_read: true },
                Given { number: DST, lies: y, is_read: false },
            ];
            return Program::new(one, forward, all);
        }
        // SAFETY: as above.
        let back = one.described(|at| unsafe {
            (functions.pooling_backward_primitive_desc_create)(
                at,
                engine,
                mean,
                a,
                b,
                rest.0,
                rest.1,
                rest.2,
                rest.3,
                rest.4,
                forward.at(),
                attributes,
            )
        })?;
        let all = vec![
            Given { number: DIFF_DST, lies: y, is_read: true },
            Given { number: DIFF_SRC, lies: x, is_read: false },
        ];
        Program::new(one, back, all)
    }

    /// A window that has nothing inside has no mean.
    fn meets_all(&self) -> bool {
        (0..3).all(|axis| (0..self.output[axis]).all(|place| self.is_met(axis, place)))
    }
}

fn mean(one: &OneDnn, mode: Pooling, of: &Window, is_forward: bool, from: &[f32], to: &mut [f32]) -> bool {
    let counts_all = match mode {
        Pooling::Max(_) => return false,
        // It divides by the whole window.
        Pooling::MeanOfAll if of.is_padded_enough() => true,
        Pooling::MeanOfAll => return false,
        Pooling::MeanOfInside => false,
    };
    let inputs: usize = of.input.iter().product();
    let planes = if is_forward { from.len() } else { to.len() } / inputs.max(1);
    if from.is_empty() || to.is_empty() || !of.meets_all() {
        return false;
    }
    let layer = Layer::Mean { is_forward, counts_all, planes, window: *of };
    let program = one.programs.get(layer, || of.program(one, is_forward, counts_all, planes));
    // SAFETY: the arrays are as long as the window says.
    program.is_some_and(|program| unsafe { program.run(one, &[from.as_ptr().cast_mut(), to.as_mut_ptr()]) })
}

/// Means of windows: whether it was done.
pub(crate) fn mean_forward(one: &OneDnn, mode: Pooling, of: &Window, x: &[f32], y: &mut [f32]) -> bool {
    mean(one, mode, of, true, x, y)
}

/// Their way back.
pub(crate) fn mean_backward(one: &OneDnn, mode: Pooling, of: &Window, dy: &[f32], dx: &mut [f32]) -> bool {
    mean(one, mode, of, false, dy, dx)
}

impl Lstm {
    fn program(&self, one: &OneDnn) -> Option<Program> {
        let Lstm { steps, batch, input, hidden, is_reversed } = *self;
        // Layers, directions, the input's element, the gate and its row: in memory the gate, its row and the element.
        let layer = [1, 1, input, 4, hidden];
        let state = [1, 1, hidden, 4, hidden];
        let (x, y) = ([steps, batch, input], [steps, batch, hidden]);
        let (states, bias) = ([1, 1, batch, hidden], [1, 1, 4, hidden]);
        let by = |size: usize| [4 * hidden * size, 4 * hidden * size, 1, hidden * size, size];
        let wanted = [
            one.dense(&x)?,
            one.dense(&states)?,
            one.any(&layer)?,
            one.any(&state)?,
            one.dense(&bias)?,
            one.dense(&y)?,
        ];
        let [tx, th, wx, wh, tb, ty] = wanted.each_ref().map(Owned::at);
        let (functions, engine, attributes) = (one.functions(), one.engine(), one.attributes());
        let none = null_mut();
        // SAFETY: the descriptions were made.
        let forward = one.described(|at| unsafe {
            (functions.lstm_forward_primitive_desc_create)(
                at,
                engine,
                INFERENCE,
                LEFT_TO_RIGHT + c_int::from(is_reversed),
                tx,
                th,
                th,
                wx,
                wh,
                none,
                none,
                tb,
                ty,
                th,
                th,
                0,
                attributes,
            )
        })?;
        let given = |number: c_int, lies: Owned, is_read: bool| Given { number, lies, is_read };
        let all = vec![
            given(SRC, one.dense(&x)?, true),
            given(SRC + 1, one.dense(&states)?, true),
            given(SRC + 2, one.dense(&states)?, true),
            given(WEIGHTS, one.lying(&layer, &by(input))?, true),
            given(WEIGHTS + 1, one.lying(&state, &by(hidden))?, true),
            given(BIAS, one.dense(&bias)?, true),
            given(DST, one.dense(&y)?, false),
            given(DST + 1, one.dense(&states)?, false),
            given(DST + 2, one.dense(&states)?, false),
        ];
        Program::new(one, forward, all)
    }
}

/// One layer in one direction, of which nothing is kept for a way back: whether it was done. Weights are of four gates each, the biases are
/// sums of both that cuDNN has.
pub(crate) fn lstm(
    one: &OneDnn,
    of: Lstm,
    [x, of_input, of_state, bias]: [&[f32]; 4],
    (h, c): (&mut [f32], &mut [f32]),
    y: &mut [f32],
) -> bool {
    // Single rows are vectors times matrices, which our own code does as fast.
    if of.batch < 4 || of.steps == 0 {
        return false;
    }
    let Some(program) = one.programs.get(Layer::Lstm(of), || of.program(one)) else { return false };
    let (mut next, mut cells) = (vec![0.0_f32; h.len()], vec![0.0_f32; c.len()]);
    let read = |of: &[f32]| of.as_ptr().cast_mut();
    let arrays = [
        read(x),
        read(h),
        read(c),
        read(of_input),
        read(of_state),
        read(bias),
        y.as_mut_ptr(),
        next.as_mut_ptr(),
        cells.as_mut_ptr(),
    ];
    // SAFETY: the arrays are as long as the sizes say.
    if !unsafe { program.run(one, &arrays) } {
        return false;
    }
    h.copy_from_slice(&next);
    c.copy_from_slice(&cells);
    true
}
