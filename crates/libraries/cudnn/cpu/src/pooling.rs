//! The largest or the mean of what a window meets.
//!
//! Arrays are images of so many channels, one behind the other, of up to three sizes.

mod beside;

use cublas_cpu::vectorized;

use self::beside::{Beside, LANES};
use crate::convolution::{single, single_mut};
use crate::isa::{by_lanes, evens};
use crate::onednn;
use crate::value::Value;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pooling {
    /// The first of those that are equal; whether a NaN is the largest of all.
    Max(bool),
    /// Divided by how many are inside or padding: a last window may reach beyond that too, as Caffe's and ONNX's rounding up makes it, and what
    /// is there does not count (cuDNN 9 on an H200).
    MeanOfAll,
    /// Divided by how many are inside.
    MeanOfInside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Window {
    pub input: [usize; 3],
    pub output: [usize; 3],
    pub window: [usize; 3],
    pub padding: [isize; 3],
    pub stride: [usize; 3],
}

impl Window {
    fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    fn outputs(&self) -> usize {
        self.output.iter().product()
    }

    /// What is inside along a size: first and end.
    fn inside(&self, axis: usize, place: usize) -> (usize, usize) {
        let begin = (place * self.stride[axis]) as isize - self.padding[axis];
        let end = (begin + self.window[axis] as isize).clamp(0, self.input[axis] as isize);
        (begin.clamp(0, end) as usize, end as usize)
    }
}

/// What is the same for all channels and images.
struct Plan<V> {
    /// For each place along a window: the places of a line of the output that have it inside, and where along the input the first has it.
    met: Vec<(usize, usize, usize)>,
    /// How many places of a window count along a line of the output, for each place of that.
    widths: Vec<usize>,
    /// Room for a line of the input, and for what is taken of it.
    line: Vec<V>,
    taken: Vec<V>,
}

impl Window {
    fn plan<V: Value>(&self, mode: Pooling) -> Plan<V> {
        let met = (0..self.window[2]).map(|nth| {
            let (stride, ahead) = (self.stride[2] as isize, nth as isize - self.padding[2]);
            // Where `w * stride + ahead` is inside: from the first that is not before it to the first that is behind it.
            let first = (stride - 1 - ahead).max(0) / stride;
            let end =
                ((self.input[2] as isize - ahead + stride - 1).max(0) / stride).min(self.output[2] as isize);
            if first < end {
                (first as usize, end as usize, (first * stride + ahead) as usize)
            } else {
                (0, 0, 0)
            }
        });
        Plan {
            met: met.filter(|(first, end, _)| first < end).collect(),
            widths: (0..self.output[2]).map(|place| self.counted(mode, 2, place)).collect(),
            line: vec![V::zero(); self.input[2]],
            taken: vec![V::zero(); self.output[2]],
        }
    }

    /// Whether the window of a place has something inside.
    pub(crate) fn is_met(&self, axis: usize, place: usize) -> bool {
        let (first, end) = self.inside(axis, place);
        first < end
    }

    /// Whether there is one window, which meets all of an image's channel.
    fn is_whole(&self) -> bool {
        self.outputs() == 1 && (0..3).all(|axis| self.inside(axis, 0) == (0, self.input[axis]))
    }

    /// How many places of a window count in a mean along a size; at least one.
    fn counted(&self, mode: Pooling, axis: usize, place: usize) -> usize {
        let (first, end) = self.inside(axis, place);
        if mode != Pooling::MeanOfAll {
            return (end - first).max(1);
        }
        let (padding, input) = (self.padding[axis], self.input[axis] as isize);
        let begin = (place * self.stride[axis]) as isize - padding;
        ((begin + self.window[axis] as isize).min(input + padding) - begin).max(1) as usize
    }

    /// The same of the lines that a window has, whose place is in this plane and line of the output.
    fn counted_lines(&self, mode: Pooling, plane: usize, line: usize) -> usize {
        self.counted(mode, 0, plane) * self.counted(mode, 1, line)
    }

    /// Whether all of each window counts in a mean of all.
    pub(crate) fn is_padded_enough(&self) -> bool {
        (0..3).all(|axis| {
            let last = self.output[axis].saturating_sub(1);
            self.counted(Pooling::MeanOfAll, axis, last) == self.window[axis]
        })
    }
}

/// The larger one. A NaN is no larger than what is there, or the largest of all.
#[inline(always)]
fn larger<V: Value>(keeps_nan: bool, best: V, x: V) -> V {
    if keeps_nan {
        if best >= x || best.is_nan() { best } else { x }
    } else if x > best {
        x
    } else {
        best
    }
}

#[inline(always)]
fn fold<V: Value>(of: Pooling, so_far: V, x: V) -> V {
    match of {
        Pooling::Max(keeps_nan) => larger(keeps_nan, so_far, x),
        _ => so_far + x,
    }
}

/// Runs the body once with `$mode` being a constant.
macro_rules! by_mode {
    ($of:expr, $mode:ident => $body:expr) => {
        match $of {
            Pooling::Max(false) => {
                let $mode = Pooling::Max(false);
                $body
            }
            Pooling::Max(true) => {
                let $mode = Pooling::Max(true);
                $body
            }
            _ => {
                let $mode = Pooling::MeanOfAll;
                $body
            }
        }
    };
}

/// `to` and `from`, element by element.
#[inline(always)]
fn fold_lines<V: Value>(of: Pooling, to: &mut [V], from: &[V]) {
    by_lanes(to, from, |to, from| fold(of, to, from));
}

/// Every so manieth of a line.
#[inline(always)]
fn take<V: Value>(to: &mut [V], from: &[V], stride: usize) {
    match stride {
        1 => to.copy_from_slice(&from[..to.len()]),
        2 => evens(to, from),
        _ => {
            for (to, from) in to.iter_mut().zip(from.iter().step_by(stride)) {
                *to = *from;
            }
        }
    }
}

/// A line of the output before it is divided, and whether it met lines: those are made one, and then the windows along it.
#[inline(always)]
fn line_of<V: Value>(
    mode: Pooling,
    of: &Window,
    (number, met): (usize, &[(usize, usize, usize)]),
    x: &[V],
    (line, taken): (&mut [V], &mut [V]),
    y: &mut [V],
) -> bool {
    let ([_, height, _], length) = (of.output, of.input[2]);
    let start = if matches!(mode, Pooling::Max(_)) { V::neg_infinity() } else { V::zero() };
    let (d, h) = (of.inside(0, number / height), of.inside(1, number % height));
    line.fill(start);
    for d in d.0..d.1 {
        for h in h.0..h.1 {
            fold_lines(mode, line, &x[(d * of.input[1] + h) * length..][..length]);
        }
    }
    y.fill(start);
    for &(first, end, at) in met {
        if of.stride[2] == 1 {
            fold_lines(mode, &mut y[first..end], &line[at..]);
        } else {
            let taken = &mut taken[..end - first];
            take(taken, &line[at..], of.stride[2]);
            fold_lines(mode, &mut y[first..end], taken);
        }
    }
    d.0 < d.1 && h.0 < h.1
}

vectorized! {
    /// One channel of one image.
    fn plane[V: Value](mode: Pooling, of: &Window, plan: &mut Plan<V>, x: &[V], y: &mut [V]) {
        let Plan { met, widths, line, taken } = plan;
        by_mode!(mode, constant => for (number, y) in y.chunks_exact_mut(of.output[2]).enumerate() {
            let has_met = line_of(constant, of, (number, met), x, (&mut *line, &mut *taken), y);
            if has_met && !matches!(constant, Pooling::Max(_)) {
                let lines = of.counted_lines(mode, number / of.output[1], number % of.output[1]);
                for (y, width) in y.iter_mut().zip(&*widths) {
                    *y /= V::of((lines * width) as f64);
                }
            }
        });
    }
}

/// Channels of images that are left over, if they are fewer, are pooled line by line: most lanes would be idle.
const FEW: usize = 6;

pub fn forward<V: Value>(mode: Pooling, of: &Window, x: &[V], y: &mut [V]) {
    if let Some(one) = onednn::current::<V>()
        && onednn::mean_forward(one, mode, of, single(x), single_mut(y))
    {
        return;
    }
    let (inputs, outputs) = (of.inputs(), of.outputs().max(1));
    // A core takes so many channels at a time.
    let at_once = ((1 << 14) / inputs.max(outputs)).max(1).next_multiple_of(LANES);
    crate::pieces(y, at_once * outputs, at_once * inputs.max(outputs) * of.window[2], |number, y| {
        let x = &x[number * at_once * inputs..];
        let mut room = Beside::new(of);
        for (y, x) in y.chunks_mut(LANES * outputs).zip(x.chunks(LANES * inputs)) {
            let channels = y.len() / outputs;
            if channels >= FEW {
                beside::forward(mode, of, &mut room, channels, x, y);
                continue;
            }
            let mut plan = of.plan(mode);
            for (y, x) in y.chunks_exact_mut(outputs).zip(x.chunks_exact(inputs)) {
                plane(mode, of, &mut plan, x, y);
            }
        }
    });
}

/// The gradient of x, written into `dx`. That of a largest element goes to the first of those that are equal.
pub fn backward<V: Value>(mode: Pooling, of: &Window, x: &[V], dy: &[V], dx: &mut [V]) {
    if let Some(one) = onednn::current::<V>()
        && onednn::mean_backward(one, mode, of, single(dy), single_mut(dx))
    {
        return;
    }
    let (inputs, outputs) = (of.inputs(), of.outputs());
    let at_once = ((1 << 14) / inputs.max(outputs).max(1)).max(1).next_multiple_of(LANES);
    crate::pieces(dx, at_once * inputs, at_once * inputs.max(outputs) * of.window[2], |number, dx| {
        let (x, dy) = (&x[number * at_once * inputs..], &dy[number * at_once * outputs..]);
        if of.is_whole() && !matches!(mode, Pooling::Max(_)) {
            let divisor: usize = (0..3).map(|axis| of.counted(mode, axis, 0)).product();
            for (dy, dx) in dy.iter().zip(dx.chunks_exact_mut(inputs)) {
                dx.fill(*dy / V::of(divisor as f64));
            }
            return;
        }
        let mut room = Beside::new(of);
        for (at, dx) in dx.chunks_mut(LANES * inputs).enumerate() {
            let (x, dy) = (&x[at * LANES * inputs..], &dy[at * LANES * outputs..]);
            beside::backward(mode, of, &mut room, dx.len() / inputs, x, dy, dx);
        }
    });
}

impl Window {
    /// Calls `body` with each place of the output's that has something inside its window, and with each of that: its place in the window and in
    /// the input. The numbers are those of one channel.
    fn each_met(&self, body: &mut dyn FnMut(usize, usize, usize)) {
        let [depth, height, width] = self.output;
        for out in 0..depth * height * width {
            let at = [out / (height * width), out / width % height, out % width];
            let inside: [(usize, usize); 3] = core::array::from_fn(|axis| self.inside(axis, at[axis]));
            let first: [isize; 3] =
                core::array::from_fn(|axis| (at[axis] * self.stride[axis]) as isize - self.padding[axis]);
            let nth = |axis: usize, place: usize| (place as isize - first[axis]) as usize;
            for d in inside[0].0..inside[0].1 {
                for h in inside[1].0..inside[1].1 {
                    for w in inside[2].0..inside[2].1 {
                        let line = nth(0, d) * self.window[1] + nth(1, h);
                        let place = (d * self.input[1] + h) * self.input[2] + w;
                        body(out, line * self.window[2] + nth(2, w), place);
                    }
                }
            }
        }
    }
}

/// Where in its window the largest element is, by lines; -1 where a window has none inside.
pub fn places(keeps_nan: bool, of: &Window, x: &[f64]) -> Vec<f64> {
    let (inputs, outputs) = (of.inputs(), of.outputs());
    let mut found = Vec::with_capacity(x.len() / inputs.max(1) * outputs);
    for x in x.chunks_exact(inputs) {
        let mut best = vec![(-1.0, f64::NEG_INFINITY); outputs];
        of.each_met(&mut |out, nth, place| {
            let (at, value) = best[out];
            let larger = larger(keeps_nan, value, x[place]);
            let is_new = larger.to_bits() != value.to_bits() && !value.is_nan();
            // The first of those that are no larger than nothing.
            let is_first = at < 0.0 && x[place] == f64::NEG_INFINITY;
            if is_new || is_first {
                best[out] = (nth as f64, larger);
            }
        });
        found.extend(best.into_iter().map(|(at, _)| at));
    }
    found
}

/// The gradient of x by the places that the way forward has found, written into `dx`.
pub fn backward_by_places(of: &Window, places: &[f64], dy: &[f64], dx: &mut [f64]) {
    let outputs = of.outputs();
    let parts = places.chunks_exact(outputs).zip(dy.chunks_exact(outputs));
    for (dx, (places, dy)) in dx.chunks_exact_mut(of.inputs()).zip(parts) {
        of.each_met(&mut |out, nth, place| {
            if places[out] == nth as f64 {
                dx[place] += dy[out];
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The places of each window, in their order.
    fn windows(of: &Window) -> Vec<Vec<usize>> {
        let [depth, height, width] = of.output;
        let mut all = Vec::new();
        for out in 0..depth * height * width {
            let at = [out / (height * width), out / width % height, out % width];
            let inside: Vec<(usize, usize)> = (0..3).map(|axis| of.inside(axis, at[axis])).collect();
            let mut places = Vec::new();
            for d in inside[0].0..inside[0].1 {
                for h in inside[1].0..inside[1].1 {
                    places
                        .extend((inside[2].0..inside[2].1).map(|w| (d * of.input[1] + h) * of.input[2] + w));
                }
            }
            all.push(places);
        }
        all
    }

    #[test]
    fn windows_are_gone_through_by_lines_as_one_by_one() {
        let plain = Window {
            input: [1, 7, 41],
            output: [1, 7, 41],
            window: [1, 3, 3],
            padding: [0, 1, 1],
            stride: [1; 3],
        };
        let cases = [
            plain,
            // More than is gathered at a time: lines that two strips meet, and some that no window does.
            Window { input: [1, 90, 41], output: [1, 90, 41], ..plain },
            Window {
                input: [3, 61, 70],
                output: [3, 13, 35],
                window: [2, 3, 2],
                padding: [1, 0, 0],
                stride: [1, 5, 2],
            },
            // Behind the input.
            Window { output: [1, 5, 23], stride: [1, 2, 2], ..plain },
            Window { output: [1, 4, 21], stride: [1, 2, 2], ..plain },
            Window { output: [1, 3, 14], stride: [1, 3, 3], padding: [0, 2, 1], ..plain },
            Window { output: [1, 1, 1], window: [1, 7, 41], padding: [0; 3], ..plain },
            Window {
                input: [4, 5, 6],
                output: [2, 2, 3],
                window: [2, 2, 2],
                padding: [0; 3],
                stride: [2; 3],
            },
        ];
        for (of, channels) in cases.into_iter().flat_map(|of| [(of, 3), (of, 23)]) {
            let inputs = of.inputs();
            // Few numbers, so that many are equal, and some that are none or the least: some windows have nothing else.
            let x: Vec<f64> = (0..channels * inputs)
                .map(|at| match (at / inputs % 7, at % 37) {
                    (3, place) => [f64::NAN, f64::NEG_INFINITY, f64::NAN][place % 3],
                    (4, _) => f64::NAN,
                    (_, 5) => f64::NAN,
                    _ => (at * 7919 % 13) as f64 - 20.0,
                })
                .collect();
            let dy: Vec<f64> = (0..channels * of.outputs()).map(|at| (at * 31 % 17) as f64).collect();
            for mode in [Pooling::Max(false), Pooling::Max(true), Pooling::MeanOfAll, Pooling::MeanOfInside] {
                let mut expected = (vec![0.0; dy.len()], vec![0.0; x.len()]);
                for channel in 0..channels {
                    for (out, places) in windows(&of).into_iter().enumerate() {
                        let (out, x) = (channel * of.outputs() + out, &x[channel * inputs..]);
                        let dx = &mut expected.1[channel * inputs..];
                        if let Pooling::Max(keeps_nan) = mode {
                            let nan = places.iter().find(|at| x[**at].is_nan()).filter(|_| keeps_nan);
                            let numbers = places.iter().filter(|at| !x[**at].is_nan());
                            let most = numbers.clone().map(|at| x[*at]).fold(f64::NEG_INFINITY, f64::max);
                            let place = nan.or_else(|| numbers.clone().find(|at| x[**at] == most));
                            expected.0[out] = place.map_or(f64::NEG_INFINITY, |at| x[*at]);
                            if let Some(at) = place {
                                dx[*at] += dy[out];
                            }
                        } else {
                            // Place by place of the window.
                            let [_, height, width] = of.output;
                            let place = out % of.outputs();
                            let at = [place / (height * width), place / width % height, place % width];
                            let counts = (0..3).map(|axis| {
                                let begin = (at[axis] * of.stride[axis]) as isize - of.padding[axis];
                                let end = of.input[axis] as isize + of.padding[axis];
                                (0..of.window[axis] as isize).filter(|k| begin + k < end).count()
                            });
                            let divisor = match mode {
                                Pooling::MeanOfAll => counts.product::<usize>().max(1) as f64,
                                _ => places.len().max(1) as f64,
                            };
                            expected.0[out] = places.iter().map(|at| x[*at]).sum::<f64>() / divisor;
                            places.iter().for_each(|at| dx[*at] += dy[out] / divisor);
                        }
                    }
                }
                let mut found = (vec![9.0; dy.len()], vec![9.0; x.len()]);
                forward(mode, &of, &x, &mut found.0);
                backward(mode, &of, &x, &dy, &mut found.1);
                if let Pooling::Max(keeps_nan) = mode {
                    let mut by_places = vec![0.0; x.len()];
                    backward_by_places(&of, &places(keeps_nan, &of, &x), &dy, &mut by_places);
                    assert_eq!(by_places, expected.1, "{mode:?} {of:?} by places");
                }
                let near = |a: f64, b: f64| a == b || (a - b).abs() < 1e-9 || (a.is_nan() && b.is_nan());
                assert!(found.0.iter().zip(&expected.0).all(|(a, b)| near(*a, *b)), "{mode:?} {of:?}");
                assert!(
                    found.1.iter().zip(&expected.1).all(|(a, b)| near(*a, *b)),
                    "{mode:?} {of:?} backward"
                );
            }
        }
    }
}
