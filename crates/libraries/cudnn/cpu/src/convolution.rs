//! Convolutions, as products with what the filter meets laid out in columns.
//!
//! Arrays are those of `lib.rs`: images N, C, D, H, W, filters K, C/groups, D, H, W. What the filter meets of an image is written into
//! columns for some lines of the result at a time, as much as stays in a core's cache, and each core has its own lines or channels.

use cublas_cpu::{Op, gemm};
use rayon::prelude::*;

use crate::value::Value;
use crate::view::Shared;

/// Sizes, padding, strides and dilations, in depth, height and width; 1 (and 0) where there are fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    pub images: usize,
    pub groups: usize,
    /// Of one group.
    pub channels: usize,
    /// Of one group.
    pub filters: usize,
    pub input: [usize; 3],
    pub filter: [usize; 3],
    pub output: [usize; 3],
    /// In front of the first.
    pub padding: [isize; 3],
    pub stride: [usize; 3],
    pub dilation: [usize; 3],
}

/// Elements of columns that a core works on: half of a usual second-level cache in single precision.
const COLUMNS: usize = 96 * 1024;

impl Geometry {
    fn taps(&self) -> usize {
        self.filter.iter().product()
    }

    fn inputs(&self) -> usize {
        self.input.iter().product()
    }

    fn outputs(&self) -> usize {
        self.output.iter().product()
    }

    /// Lines of one image of the result.
    fn lines(&self) -> usize {
        self.output[0] * self.output[1]
    }

    /// Each element of the result meets the one at its place.
    fn is_product(&self) -> bool {
        self.taps() == 1 && self.stride == [1; 3] && self.padding == [0; 3] && self.input == self.output
    }

    fn is_depthwise(&self) -> bool {
        self.channels == 1 && self.filters == 1
    }

    /// Which places along a size are met by the tap: their first and the end, where the result has `output` of them.
    fn met(&self, axis: usize, tap: usize) -> (usize, usize) {
        let (stride, offset) = (self.stride[axis] as isize, self.offset(axis, tap));
        // The first with `place · stride + offset` at least 0, and the first with it at least the input's size.
        let first = |at_least: isize| (at_least - offset + stride - 1).div_euclid(stride);
        let output = self.output[axis] as isize;
        let start = first(0).clamp(0, output);
        let end = first(self.input[axis] as isize).clamp(start, output);
        (start as usize, end as usize)
    }

    fn offset(&self, axis: usize, tap: usize) -> isize {
        (tap * self.dilation[axis]) as isize - self.padding[axis]
    }

    /// Calls `body` for each row of columns and line: the row's number, the channel, the line's number of those asked for, and of the
    /// image where the line is met, the places along it. Lines that are not met are called with no places.
    fn rows(
        &self,
        channels: core::ops::Range<usize>,
        lines: core::ops::Range<usize>,
        mut body: impl FnMut(usize, usize, Met),
    ) {
        let [depth, height, width] = self.filter;
        let mut row = 0;
        for channel in channels {
            for (d, h, w) in
                (0..depth).flat_map(|d| (0..height).flat_map(move |h| (0..width).map(move |w| (d, h, w))))
            {
                let (start, end) = self.met(2, w);
                for line in lines.clone() {
                    let (od, oh) = (line / self.output[1], line % self.output[1]);
                    let at = |axis: usize, place: usize, tap: usize| {
                        let at = (place * self.stride[axis]) as isize + self.offset(axis, tap);
                        (at >= 0 && at < self.input[axis] as isize).then_some(at as usize)
                    };
                    let line_of = at(0, od, d).zip(at(1, oh, h));
                    let met = line_of.filter(|_| end > start).map(|(d, h)| {
                        let begin = (d * self.input[1] + h) * self.input[2];
                        let first = (start * self.stride[2]) as isize + self.offset(2, w);
                        begin + first as usize
                    });
                    let (start, end) = if met.is_some() { (start, end) } else { (0, 0) };
                    body(row, line - lines.start, Met { channel, first: met.unwrap_or(0), start, end });
                }
                row += 1;
            }
        }
    }

    /// Columns of some channels of one image for some lines of the result: a row for each channel and tap.
    fn columns<V: Value>(
        &self,
        image: &[V],
        channels: core::ops::Range<usize>,
        lines: core::ops::Range<usize>,
        columns: &mut Vec<V>,
    ) {
        let (width, length) = (self.output[2], lines.len() * self.output[2]);
        let count = channels.len() * self.taps() * length;
        columns.clear();
        columns.resize(count, V::zero());
        let (inputs, stride) = (self.inputs(), self.stride[2]);
        self.rows(channels, lines, |row, line, met| {
            let to = &mut columns[row * length + line * width + met.start..][..met.end - met.start];
            let from = &image[met.channel * inputs + met.first..];
            if stride == 1 {
                to.copy_from_slice(&from[..to.len()]);
            } else {
                to.iter_mut().zip(from.iter().step_by(stride)).for_each(|(to, from)| *to = *from);
            }
        });
    }

    /// The way back: what stands in columns is added to where it was met.
    fn add_columns<V: Value>(&self, columns: &[V], channels: core::ops::Range<usize>, image: &mut [V]) {
        let (width, length, first) = (self.output[2], self.outputs(), channels.start);
        let (inputs, stride) = (self.inputs(), self.stride[2]);
        self.rows(channels, 0..self.lines(), |row, line, met| {
            let from = &columns[row * length + line * width + met.start..][..met.end - met.start];
            if from.is_empty() {
                return;
            }
            let to = &mut image[(met.channel - first) * inputs + met.first..];
            if stride == 1 {
                to.iter_mut().zip(from).for_each(|(to, from)| *to += *from);
            } else {
                to.iter_mut().step_by(stride).zip(from).for_each(|(to, from)| *to += *from);
            }
        });
    }

    /// As many channels as a core's columns have room for, and so few that all cores have some.
    fn channels_at_once(&self) -> usize {
        let by_room = (8 * COLUMNS / (self.taps() * self.outputs()).max(1)).max(1);
        let tasks = self.images * self.groups;
        let wanted = (2 * rayon::current_num_threads()).div_ceil(tasks.max(1));
        by_room.min(self.channels.div_ceil(wanted)).max(1)
    }
}

/// What the filter meets, of one group: a row for each channel and tap, a column for each image and element of its result.
pub fn columns<V: Value>(of: &Geometry, x: &[V]) -> Vec<V> {
    let (inputs, outputs, rows) = (of.inputs(), of.outputs(), of.channels * of.taps());
    let mut all = vec![V::zero(); rows * of.images * outputs];
    let mut columns = Vec::new();
    for (image, x) in x.chunks((of.channels * inputs).max(1)).enumerate().take(of.images) {
        of.columns(x, 0..of.channels, 0..of.lines(), &mut columns);
        for (row, from) in columns.chunks(outputs).enumerate() {
            all[(row * of.images + image) * outputs..][..outputs].copy_from_slice(from);
        }
    }
    all
}

/// Where a line of the result meets the image.
struct Met {
    channel: usize,
    /// In the channel.
    first: usize,
    /// Along the line of the result.
    start: usize,
    end: usize,
}

/// `y = alpha·(x * w) + beta·y`
pub fn forward<V: Value>(of: &Geometry, alpha: V, x: &[V], w: &[V], beta: V, y: &mut [V]) {
    let (channels, filters, taps) = (of.channels, of.filters, of.taps());
    let (inputs, outputs, depth) = (of.inputs(), of.outputs(), channels * taps);
    if of.is_depthwise() {
        return depthwise(of, alpha, x, w, beta, y);
    }
    // In columns: pixels × filters = (pixels × depth) · (depth × filters).
    let product = |pixels: usize, columns: *const V, ld: usize, w: &[V], y: *mut V| {
        let (m, n, k) = (pixels as i64, filters as i64, depth as i64);
        // SAFETY: the columns and filters are there in full, and what is written is this core's part of y.
        unsafe {
            gemm(Op::N, Op::N, m, n, k, alpha, columns, ld as i64, w.as_ptr(), k, beta, y, outputs as i64);
        }
    };
    let y = Shared(y.as_mut_ptr());
    let image = |task: usize| {
        let (image, group) = (task / of.groups, task % of.groups);
        let x = &x[(image * of.groups + group) * channels * inputs..][..channels * inputs];
        let w = &w[group * filters * depth..][..filters * depth];
        (x, w, task * filters * outputs)
    };
    if of.is_product() {
        return crate::parallel(of.images * of.groups, filters * outputs * depth, |task| {
            let (x, w, at) = image(task);
            // SAFETY: within y.
            product(outputs, x.as_ptr(), inputs, w, unsafe { y.get().add(at) });
        });
    }
    let width = of.output[2].max(1);
    let (most, least) = (COLUMNS / (depth * width).max(1), 96_usize.div_ceil(width));
    let lines = most.max(least).min(of.lines()).max(1);
    let parts = of.lines().div_ceil(lines);
    let task = |columns: &mut Vec<V>, task: usize| {
        let (x, w, at) = image(task / parts);
        let first = task % parts * lines;
        let these = first..(first + lines).min(of.lines());
        let pixels = these.len() * of.output[2];
        of.columns(x, 0..channels, these, columns);
        // SAFETY: within y.
        product(pixels, columns.as_ptr(), pixels, w, unsafe { y.get().add(at + first * of.output[2]) });
    };
    let tasks = of.images * of.groups * parts;
    if tasks > 1 {
        (0..tasks).into_par_iter().for_each_init(Vec::new, task);
    } else {
        (0..tasks).for_each(|number| task(&mut Vec::new(), number));
    }
}

/// One filter for each channel: lines times numbers.
fn depthwise<V: Value>(of: &Geometry, alpha: V, x: &[V], w: &[V], beta: V, y: &mut [V]) {
    let (inputs, outputs, taps, width) = (of.inputs(), of.outputs(), of.taps(), of.output[2]);
    let stride = of.stride[2];
    crate::pieces(y, outputs, outputs * taps, |task, y| {
        let x = &x[task * inputs..][..inputs];
        let w = &w[task % of.groups * taps..][..taps];
        y.iter_mut().for_each(|y| *y = if beta.is_zero() { V::zero() } else { beta * *y });
        of.rows(0..1, 0..of.lines(), |row, line, met| {
            let factor = alpha * w[row];
            let y = &mut y[line * width + met.start..][..met.end - met.start];
            let x = &x[met.first..];
            if stride == 1 {
                y.iter_mut().zip(x).for_each(|(y, x)| *y += factor * *x);
            } else {
                y.iter_mut().zip(x.iter().step_by(stride)).for_each(|(y, x)| *y += factor * *x);
            }
        });
    });
}

/// `dx = alpha·(the gradient of x) + beta·dx`
pub fn backward_data<V: Value>(of: &Geometry, alpha: V, w: &[V], dy: &[V], beta: V, dx: &mut [V]) {
    let (channels, filters, taps) = (of.channels, of.filters, of.taps());
    let (inputs, outputs, depth) = (of.inputs(), of.outputs(), channels * taps);
    let at_once = of.channels_at_once();
    let parts = channels.div_ceil(at_once);
    let dx = Shared(dx.as_mut_ptr());
    let task = |columns: &mut Vec<V>, task: usize| {
        let (task, first) = (task / parts, task % parts * at_once);
        let these = first..(first + at_once).min(channels);
        let count = these.len();
        let w = &w[task % of.groups * filters * depth..][..filters * depth];
        let dy = &dy[task * filters * outputs..][..filters * outputs];
        // SAFETY: each task has its own channels.
        let dx = unsafe {
            core::slice::from_raw_parts_mut(dx.get().add((task * channels + first) * inputs), count * inputs)
        };
        let (m, n, k) = (outputs as i64, (count * taps) as i64, filters as i64);
        let (w, ldw) = (w[first * taps..].as_ptr(), depth as i64);
        if of.is_product() {
            // SAFETY: all there in full.
            unsafe { gemm(Op::N, Op::T, m, n, k, alpha, dy.as_ptr(), m, w, ldw, beta, dx.as_mut_ptr(), m) };
            return;
        }
        columns.clear();
        columns.resize(count * taps * outputs, V::zero());
        // SAFETY: as above.
        unsafe {
            gemm(Op::N, Op::T, m, n, k, alpha, dy.as_ptr(), m, w, ldw, V::zero(), columns.as_mut_ptr(), m);
        }
        dx.iter_mut().for_each(|dx| *dx = if beta.is_zero() { V::zero() } else { beta * *dx });
        of.add_columns(columns, these, dx);
    };
    (0..of.images * of.groups * parts).into_par_iter().for_each_init(Vec::new, task);
}

/// `dw = alpha·(the gradient of w) + beta·dw`
pub fn backward_filter<V: Value>(of: &Geometry, alpha: V, x: &[V], dy: &[V], beta: V, dw: &mut [V]) {
    let (channels, filters, taps) = (of.channels, of.filters, of.taps());
    let (inputs, outputs, depth) = (of.inputs(), of.outputs(), channels * taps);
    if of.images == 0 {
        dw.iter_mut().for_each(|dw| *dw = if beta.is_zero() { V::zero() } else { beta * *dw });
        return;
    }
    let at_once = Geometry { images: 1, ..*of }.channels_at_once();
    let parts = channels.div_ceil(at_once);
    let dw = Shared(dw.as_mut_ptr());
    let task = |columns: &mut Vec<V>, task: usize| {
        let (group, first) = (task / parts, task % parts * at_once);
        let these = first..(first + at_once).min(channels);
        let count = these.len();
        for image in 0..of.images {
            let at = image * of.groups + group;
            let x = &x[at * channels * inputs..][..channels * inputs];
            let dy = &dy[at * filters * outputs..][..filters * outputs];
            let from = if of.is_product() {
                x[first * inputs..].as_ptr()
            } else {
                of.columns(x, these.clone(), 0..of.lines(), columns);
                columns.as_ptr()
            };
            let (m, n, k) = ((count * taps) as i64, filters as i64, outputs as i64);
            let beta = if image == 0 { beta } else { V::one() };
            // SAFETY: all there in full, and each task has its own columns of dw.
            unsafe {
                let to = dw.get().add(group * filters * depth + first * taps);
                gemm(Op::T, Op::N, m, n, k, alpha, from, k, dy.as_ptr(), k, beta, to, depth as i64);
            }
        }
    };
    (0..of.groups * parts).into_par_iter().for_each_init(Vec::new, task);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By its definition, element by element.
    fn each(of: &Geometry, mut body: impl FnMut(usize, usize, usize)) {
        let size = |sizes: [usize; 3]| sizes.iter().product::<usize>();
        for image in 0..of.images {
            for group in 0..of.groups {
                for k in 0..of.filters {
                    for c in 0..of.channels {
                        for o in 0..size(of.output) {
                            for t in 0..size(of.filter) {
                                let split = |at: usize, sizes: [usize; 3]| {
                                    [at / (sizes[1] * sizes[2]), at / sizes[2] % sizes[1], at % sizes[2]]
                                };
                                let (o3, t3) = (split(o, of.output), split(t, of.filter));
                                let mut at = 0;
                                let mut inside = true;
                                for axis in 0..3 {
                                    let i = (o3[axis] * of.stride[axis]) as isize - of.padding[axis]
                                        + (t3[axis] * of.dilation[axis]) as isize;
                                    inside &= i >= 0 && i < of.input[axis] as isize;
                                    at = at * of.input[axis] + i.max(0) as usize;
                                }
                                if inside {
                                    let at_image = image * of.groups + group;
                                    let x = (at_image * of.channels + c) * size(of.input) + at;
                                    let y = (at_image * of.filters + k) * size(of.output) + o;
                                    let w =
                                        ((group * of.filters + k) * of.channels + c) * size(of.filter) + t;
                                    body(x, w, y);
                                }
                            }
                        }
                    }
                }
            }
        }
    }

    fn drawn(count: usize, seed: u64) -> Vec<f64> {
        let mut state = seed | 1;
        (0..count)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 40) as f64 / f64::from(1 << 24) - 0.5
            })
            .collect()
    }

    #[test]
    fn three_directions_are_sums_over_the_same_triples() {
        let plain = Geometry {
            images: 3,
            groups: 1,
            channels: 5,
            filters: 7,
            input: [1, 9, 11],
            filter: [1, 3, 3],
            output: [1, 9, 11],
            padding: [0, 1, 1],
            stride: [1; 3],
            dilation: [1; 3],
        };
        let cases = [
            plain,
            Geometry { groups: 2, stride: [1, 2, 3], output: [1, 5, 4], ..plain },
            Geometry { filter: [1, 1, 1], padding: [0; 3], ..plain },
            Geometry { groups: 4, channels: 1, filters: 1, ..plain },
            Geometry { dilation: [1, 2, 3], output: [1, 7, 7], ..plain },
            Geometry { filter: [1, 5, 5], padding: [0, 4, 7], output: [1, 13, 21], ..plain },
            Geometry { input: [4, 5, 6], filter: [2, 3, 1], padding: [1, 0, 2], output: [5, 3, 10], ..plain },
            Geometry { channels: 1, filters: 9, groups: 3, ..plain },
        ];
        for of in cases {
            let size = |sizes: [usize; 3]| sizes.iter().product::<usize>();
            let x = drawn(of.images * of.groups * of.channels * size(of.input), 1);
            let w = drawn(of.groups * of.channels * of.filters * size(of.filter), 2);
            let y = drawn(of.images * of.groups * of.filters * size(of.output), 3);
            let near = |found: &[f64], expected: &[f64], what: &str| {
                let far = found.iter().zip(expected).find(|(a, b)| (*a - *b).abs() > 1e-9);
                assert!(far.is_none(), "{what}: {far:?} of {of:?}");
            };
            let (mut found, mut expected): (Vec<f64>, Vec<f64>) =
                (y.clone(), y.iter().map(|y| 0.5 * y).collect());
            each(&of, |i, j, k| expected[k] += 2.0 * x[i] * w[j]);
            forward(&of, 2.0, &x, &w, 0.5, &mut found);
            near(&found, &expected, "forward");
            let (mut found, mut expected): (Vec<f64>, Vec<f64>) =
                (x.clone(), x.iter().map(|x| 0.5 * x).collect());
            each(&of, |i, j, k| expected[i] += 2.0 * y[k] * w[j]);
            backward_data(&of, 2.0, &w, &y, 0.5, &mut found);
            near(&found, &expected, "data");
            let (mut found, mut expected): (Vec<f64>, Vec<f64>) =
                (w.clone(), w.iter().map(|w| 0.5 * w).collect());
            each(&of, |i, j, k| expected[j] += 2.0 * y[k] * x[i]);
            backward_filter(&of, 2.0, &x, &y, 0.5, &mut found);
            near(&found, &expected, "filter");
        }
    }
}
