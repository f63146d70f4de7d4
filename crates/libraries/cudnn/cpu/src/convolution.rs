//! Convolutions, as products with what the filter meets laid out in columns.
//!
//! Arrays are those of `lib.rs`: images N, C, D, H, W, filters K, C/groups, D, H, W. What the filter meets of an image is written into
//! columns for some lines of the result at a time, as much as stays in a core's cache, and each core has its own lines or channels.

use cublas_cpu::{Op, gemm};

use crate::direct::{self, Sums, Tap};
use crate::onednn::{self, Way};
use crate::value::{Kind, Value};
use crate::view::Shared;

/// Sizes, padding, strides and dilations, in depth, height and width; 1 (and 0) where there are fewer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

    /// Whether sums over taps are done faster directly than as products of matrices: there are several taps, in one line of a result and in
    /// the next, and vectors, which go over the lines and what is between them, are filled by a third at least.
    fn is_direct<V: Value>(&self) -> bool {
        let [_, lines, width] = self.output;
        let between = (self.filter[2].max(1) - 1) * self.dilation[2] / self.stride[2];
        let vectors = (lines * (width + between)).next_multiple_of(32);
        let is_worth = self.is_depthwise() || (self.taps() > 1 && lines > 1);
        V::KIND == Kind::F32 && is_worth && 3 * lines * width >= vectors && direct::is_there()
    }

    fn all_taps(&self) -> impl Iterator<Item = [usize; 3]> + use<> {
        let [depth, height, width] = self.filter;
        (0..depth).flat_map(move |d| (0..height).flat_map(move |h| (0..width).map(move |w| [d, h, w])))
    }

    fn sums_forward(&self) -> Sums {
        let taps = self
            .all_taps()
            .enumerate()
            .map(|(weight, tap)| Tap { at: [0, 1, 2].map(|axis| self.offset(axis, tap[axis])), weight });
        Sums {
            images: self.images,
            groups: self.groups,
            channels: self.channels,
            filters: self.filters,
            input: self.input,
            output: self.output,
            stride: self.stride,
            taps: taps.collect(),
            weights: [self.filters * self.channels * self.taps(), self.channels * self.taps(), self.taps()],
            full: self.output,
            first: [0; 3],
            step: [1; 3],
        }
    }

    /// The way back: elements of the image whose places leave the same rests by strides have the same taps.
    fn sums_backward(&self) -> Vec<Sums> {
        let [depth, height, width] = self.stride;
        let rests =
            (0..depth).flat_map(|d| (0..height).flat_map(move |h| (0..width).map(move |w| [d, h, w])));
        let sums = rests.filter_map(|rest| {
            // `place + padding = from · stride + rest`, where the first place is the least that there is.
            let from = [0, 1, 2].map(|axis| {
                let (stride, behind) = (self.stride[axis] as isize, self.padding[axis] - rest[axis] as isize);
                (behind + stride - 1).div_euclid(stride)
            });
            let first = [0, 1, 2].map(|axis| {
                from[axis] * self.stride[axis] as isize + rest[axis] as isize - self.padding[axis]
            });
            let output = [0, 1, 2].map(|axis| {
                let left = (self.input[axis] as isize - first[axis]).max(0) as usize;
                left.div_ceil(self.stride[axis])
            });
            let taps = self.all_taps().enumerate().filter(|(_, tap)| {
                (0..3).all(|axis| tap[axis] * self.dilation[axis] % self.stride[axis] == rest[axis])
            });
            let taps = taps.map(|(weight, tap)| Tap {
                at: [0, 1, 2]
                    .map(|axis| from[axis] - (tap[axis] * self.dilation[axis] / self.stride[axis]) as isize),
                weight,
            });
            let of_filter = self.channels * self.taps();
            output.iter().all(|size| *size > 0).then(|| Sums {
                images: self.images,
                groups: self.groups,
                channels: self.filters,
                filters: self.channels,
                input: self.output,
                output,
                stride: [1; 3],
                taps: taps.collect(),
                weights: [self.filters * of_filter, self.taps(), of_filter],
                full: self.input,
                first: first.map(|first| first as usize),
                step: self.stride,
            })
        });
        sums.collect()
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

/// An array of `f32`, which is what the type is.
/// By oneDNN, if it is in front.
fn is_done_elsewhere<V: Value>(
    of: &Geometry,
    way: Way,
    alpha: V,
    from: [&[V]; 2],
    beta: V,
    to: &mut [V],
) -> bool {
    let Some(one) = onednn::current::<V>() else { return false };
    let (alpha, beta) = (alpha.get() as f32, beta.get() as f32);
    onednn::convolution(one, way, of, alpha, from.map(single), beta, single_mut(to))
}

pub(crate) fn single<V: Value>(of: &[V]) -> &[f32] {
    assert_eq!(V::KIND, Kind::F32);
    // SAFETY: the same type.
    unsafe { core::slice::from_raw_parts(of.as_ptr().cast(), of.len()) }
}

pub(crate) fn single_mut<V: Value>(of: &mut [V]) -> &mut [f32] {
    assert_eq!(V::KIND, Kind::F32);
    // SAFETY: as above.
    unsafe { core::slice::from_raw_parts_mut(of.as_mut_ptr().cast(), of.len()) }
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
    if is_done_elsewhere(of, Way::Forward, alpha, [x, w], beta, y) {
        return;
    }
    let (channels, filters, taps) = (of.channels, of.filters, of.taps());
    let (inputs, outputs, depth) = (of.inputs(), of.outputs(), channels * taps);
    // All filters are read once for some places of a result.
    if of.is_direct::<V>() && (of.is_depthwise() || of.images * of.outputs() >= 512) {
        let (alpha, beta) = (alpha.get() as f32, beta.get() as f32);
        return direct::run(&of.sums_forward(), alpha, single(x), single(w), beta, single_mut(y));
    }
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
        crate::shared_with_room(tasks, &task);
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
    if is_done_elsewhere(of, Way::Data, alpha, [w, dy], beta, dx) {
        return;
    }
    let (channels, filters, taps) = (of.channels, of.filters, of.taps());
    let (inputs, outputs, depth) = (of.inputs(), of.outputs(), channels * taps);
    if of.is_direct::<V>() {
        let (alpha, beta) = (alpha.get() as f32, beta.get() as f32);
        let (w, dy, dx) = (single(w), single(dy), single_mut(dx));
        return of.sums_backward().iter().for_each(|sums| direct::run(sums, alpha, dy, w, beta, dx));
    }
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
    crate::shared_with_room(of.images * of.groups * parts, &task);
}

/// `dw = alpha·(the gradient of w) + beta·dw`
pub fn backward_filter<V: Value>(of: &Geometry, alpha: V, x: &[V], dy: &[V], beta: V, dw: &mut [V]) {
    if is_done_elsewhere(of, Way::Filter, alpha, [x, dy], beta, dw) {
        return;
    }
    let (channels, filters, taps) = (of.channels, of.filters, of.taps());
    let (inputs, outputs, depth) = (of.inputs(), of.outputs(), channels * taps);
    if of.images == 0 {
        dw.iter_mut().for_each(|dw| *dw = if beta.is_zero() { V::zero() } else { beta * *dw });
        return;
    }
    // Where lines are few, or strided and of many channels, products of matrices are as fast.
    let is_plain = of.stride == [1; 3] || of.channels <= 8;
    let is_long = of.is_depthwise() || (of.outputs() >= 600 && is_plain);
    let sums = (is_long && of.is_direct::<V>())
        .then(|| direct::gradient_of_filter(&of.sums_forward(), single(x), single(dy)));
    if let Some(sums) = sums.flatten() {
        for (dw, sum) in dw.iter_mut().zip(sums) {
            let sum = alpha * V::of(f64::from(sum));
            *dw = if beta.is_zero() { sum } else { sum + beta * *dw };
        }
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
    crate::shared_with_room(of.groups * parts, &task);
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
            three_directions::<f64>(&of, 1e-9);
            three_directions::<f32>(&of, 1e-4);
        }
    }

    /// What is done by vectors over lines: longer lines, more channels, strides and what lies far outside.
    #[test]
    fn sums_over_taps_are_those_of_the_definition() {
        let plain = Geometry {
            images: 2,
            groups: 1,
            channels: 6,
            filters: 27,
            input: [1, 12, 31],
            filter: [1, 3, 3],
            output: [1, 12, 31],
            padding: [0, 1, 1],
            stride: [1; 3],
            dilation: [1; 3],
        };
        let cases = [
            plain,
            Geometry { filters: 5, stride: [1, 2, 2], output: [1, 6, 16], ..plain },
            Geometry {
                filters: 2,
                stride: [1, 3, 2],
                filter: [1, 1, 1],
                padding: [0; 3],
                output: [1, 4, 16],
                ..plain
            },
            Geometry { filters: 13, padding: [0, 4, 5], output: [1, 18, 39], ..plain },
            Geometry { filters: 3, dilation: [1, 2, 4], output: [1, 10, 25], ..plain },
            Geometry { groups: 3, channels: 2, filters: 4, stride: [1, 2, 3], output: [1, 6, 11], ..plain },
            Geometry { groups: 9, channels: 1, filters: 1, stride: [1, 2, 2], output: [1, 6, 16], ..plain },
            Geometry { groups: 9, channels: 1, filters: 1, ..plain },
            Geometry {
                input: [5, 9, 14],
                filter: [3, 2, 3],
                padding: [1, 0, 2],
                stride: [2, 1, 2],
                output: [3, 8, 8],
                ..plain
            },
            Geometry {
                input: [1, 1, 200],
                filter: [1, 1, 5],
                padding: [0, 0, 2],
                output: [1, 1, 200],
                ..plain
            },
            Geometry { input: [1, 90, 90], output: [1, 90, 90], channels: 2, filters: 3, ..plain },
        ];
        for of in cases {
            three_directions::<f32>(&of, 1e-4);
        }
    }

    #[test]
    fn what_is_no_number_changes_what_meets_it_alone() {
        let of = Geometry {
            images: 1,
            groups: 1,
            channels: 3,
            filters: 5,
            input: [1, 30, 30],
            filter: [1, 3, 3],
            output: [1, 30, 30],
            padding: [0, 1, 1],
            stride: [1; 3],
            dilation: [1; 3],
        };
        let mut x: Vec<f32> = drawn(3 * 900, 1).into_iter().map(|x| x as f32).collect();
        let dy: Vec<f32> = drawn(5 * 900, 2).into_iter().map(|x| x as f32).collect();
        x[29] = f32::INFINITY;
        let (mut met, mut dw) = ([false; 135], [0.0; 135]);
        each(&of, |i, j, _| met[j] |= i == 29);
        backward_filter(&of, 1.0, &x, &dy, 0.0, &mut dw);
        assert!(dw.iter().zip(met).all(|(dw, met)| dw.is_finite() != met), "{dw:?}");
    }

    fn three_directions<V: Value>(of: &Geometry, bound: f64) {
        let size = |sizes: [usize; 3]| sizes.iter().product::<usize>();
        let x = drawn(of.images * of.groups * of.channels * size(of.input), 1);
        let w = drawn(of.groups * of.channels * of.filters * size(of.filter), 2);
        let y = drawn(of.images * of.groups * of.filters * size(of.output), 3);
        let near = |found: &[V], expected: &[f64], what: &str| {
            let far =
                found.iter().zip(expected).find(|(a, b)| (a.get() - *b).abs() > bound * (1.0 + b.abs()));
            assert!(far.is_none(), "{what}: {far:?} of {of:?}");
        };
        let typed = |of: &[f64]| -> Vec<V> { of.iter().map(|value| V::of(*value)).collect() };
        let (tx, tw, ty) = (typed(&x), typed(&w), typed(&y));
        for (alpha, beta) in [(1.0, 0.0), (2.0, 0.5)] {
            let start = |of: &[f64]| -> Vec<f64> { of.iter().map(|value| beta * value).collect() };
            let (mut found, mut expected) = (ty.clone(), start(&y));
            each(of, |i, j, k| expected[k] += alpha * x[i] * w[j]);
            forward(of, V::of(alpha), &tx, &tw, V::of(beta), &mut found);
            near(&found, &expected, "forward");
            let (mut found, mut expected) = (tx.clone(), start(&x));
            each(of, |i, j, k| expected[i] += alpha * y[k] * w[j]);
            backward_data(of, V::of(alpha), &tw, &ty, V::of(beta), &mut found);
            near(&found, &expected, "data");
            let (mut found, mut expected) = (tw.clone(), start(&w));
            each(of, |i, j, k| expected[j] += alpha * y[k] * x[i]);
            backward_filter(of, V::of(alpha), &tx, &ty, V::of(beta), &mut found);
            near(&found, &expected, "filter");
        }
    }
}
