//! Convolutions in single precision as sums over taps, by the processor's fused multiplications.
//!
//! What some lines of a result meet is laid out first: each channel with what is around it, of strides each phase by itself. Lines then lie
//! behind each other in one pitch, and a tap of the filter is an offset: vectors go over the lines as if they were one, and what they make of
//! the places between lines is thrown away. Some filters at a time have their sums in registers, over all channels and taps.
//!
//! The rule: a sum is made by one core, in the order of channels and taps, on any number of cores.

use cublas_cpu::isa::{self, Isa};
use cublas_cpu::vectorized;

use crate::isa::evens;
use crate::view::Shared;

/// One tap: which place of the input it meets, counted from `place · stride`, and where its weight is.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tap {
    pub at: [isize; 3],
    pub weight: usize,
}

/// Sums over channels and taps, for each filter and place of a result.
#[derive(Clone, Debug)]
pub(crate) struct Sums {
    pub images: usize,
    pub groups: usize,
    /// That are summed over, of one group.
    pub channels: usize,
    /// That have results, of one group.
    pub filters: usize,
    pub input: [usize; 3],
    /// Places that are computed.
    pub output: [usize; 3],
    pub stride: [usize; 3],
    pub taps: Vec<Tap>,
    /// From one group's, filter's and channel's weights to the next.
    pub weights: [usize; 3],
    /// The array of results, where the places begin in it, and how they go on.
    pub full: [usize; 3],
    pub first: [usize; 3],
    pub step: [usize; 3],
}

/// Filters that a block of sums has at most, and vectors side by side by the number of filters.
struct Shape {
    most: usize,
    lanes: usize,
    vectors: fn(usize) -> usize,
}

/// 32 registers of 16 numbers: up to 24 sums.
const WIDE: Shape = Shape {
    most: 12,
    lanes: 16,
    vectors: |filters| match filters {
        1..=3 => 8,
        4..=6 => 4,
        _ => 2,
    },
};

/// 16 registers of 8 numbers: up to 12 sums.
const NARROW: Shape = Shape {
    most: 6,
    lanes: 8,
    vectors: |filters| match filters {
        1..=3 => 4,
        _ => 2,
    },
};

/// Elements of what is laid out for a task: half of a usual second-level cache.
const ROOM: usize = 256 * 1024;

/// Places of a result that a task has at least, if there are so many: its filters are read once for all of them.
const PLACES: usize = 2048;

/// Whether the processor has what this needs.
pub(crate) fn is_there() -> bool {
    #[cfg(target_arch = "x86_64")]
    return isa::best() != Isa::Plain;
    #[cfg(not(target_arch = "x86_64"))]
    false
}

fn shape() -> &'static Shape {
    #[cfg(target_arch = "x86_64")]
    if isa::best() == Isa::Avx512 {
        return &WIDE;
    }
    &NARROW
}

/// How a task's part of the input is laid out.
struct Layout {
    /// The least place that a tap meets.
    low: [isize; 3],
    /// Of strides, those that a tap meets.
    phases: Vec<[usize; 3]>,
    /// Places behind the last of a result that are met.
    extra: [usize; 3],
    /// Lines of a result.
    lines: usize,
    pitch: usize,
    plane: usize,
    /// Of the taps.
    offsets: Vec<usize>,
}

impl Layout {
    fn new(of: &Sums) -> Layout {
        let low = [0, 1, 2].map(|axis| of.taps.iter().map(|tap| tap.at[axis]).min().unwrap_or(0));
        let split = |tap: &Tap| {
            let far = [0, 1, 2].map(|axis| (tap.at[axis] - low[axis]) as usize);
            let phase = [0, 1, 2].map(|axis| far[axis] % of.stride[axis]);
            (phase, [0, 1, 2].map(|axis| far[axis] / of.stride[axis]))
        };
        let mut phases: Vec<[usize; 3]> = of.taps.iter().map(|tap| split(tap).0).collect();
        phases.sort_unstable();
        phases.dedup();
        let extra = [0, 1, 2].map(|axis| of.taps.iter().map(|tap| split(tap).1[axis]).max().unwrap_or(0));
        let pitch = of.output[2] + extra[2];
        let by_room = ROOM / (of.channels * phases.len() * (extra[0] + 1) * pitch).max(1);
        let lines =
            by_room.saturating_sub(extra[1]).max(4).min(PLACES.div_ceil(pitch)).clamp(1, of.output[1]);
        // As many in each task.
        let lines = of.output[1].div_ceil(of.output[1].div_ceil(lines));
        let rows = lines + extra[1];
        let plane = (extra[0] + 1) * rows * pitch;
        let offset = |tap: &Tap| {
            let (phase, at) = split(tap);
            let phase = phases.binary_search(&phase).unwrap_or(0);
            phase * plane + (at[0] * rows + at[1]) * pitch + at[2]
        };
        let offsets = of.taps.iter().map(offset).collect();
        Layout { low, phases, extra, lines, pitch, plane, offsets }
    }

    /// Of one image's group.
    fn size(&self, of: &Sums) -> usize {
        of.channels * self.phases.len() * self.plane
    }
}

vectorized! {
    /// What the lines of a result from this one on meet.
    fn fill[](layout: &Layout, of: &Sums, x: &[f32], place: (usize, usize), to: &mut [f32]) {
        let (depth, line) = place;
        let [_, height, width] = of.input;
        let inputs: usize = of.input.iter().product();
        let rows = layout.lines + layout.extra[1];
        let mut to = to.chunks_exact_mut(layout.pitch);
        for x in x.chunks_exact(inputs).take(of.channels) {
            for phase in &layout.phases {
                // Of the line, the places that are inside.
                let stride = of.stride[2] as isize;
                let begin = phase[2] as isize + layout.low[2];
                let first = (-begin).max(0).div_euclid(stride) + isize::from((-begin).max(0) % stride != 0);
                let first = first.min(layout.pitch as isize);
                let end = (width as isize - begin + stride - 1)
                    .div_euclid(stride)
                    .clamp(first, layout.pitch as isize);
                let (from, first, end) =
                    ((first * stride + begin).max(0) as usize, first as usize, end as usize);
                for d in 0..=layout.extra[0] {
                    let d = ((depth + d) * of.stride[0] + phase[0]) as isize + layout.low[0];
                    for h in 0..rows {
                        let Some(to) = to.next() else { return };
                        let h = ((line + h) * of.stride[1] + phase[1]) as isize + layout.low[1];
                        let is_inside = (0..of.input[0] as isize).contains(&d)
                            && (0..height as isize).contains(&h)
                            && first < end;
                        if !is_inside {
                            to.fill(0.0);
                            continue;
                        }
                        let x = &x[(d as usize * height + h as usize) * width..][..width];
                        to[..first].fill(0.0);
                        to[end..].fill(0.0);
                        let to = &mut to[first..end];
                        match of.stride[2] {
                            1 => to.copy_from_slice(&x[from..from + to.len()]),
                            2 => evens(to, &x[from..]),
                            stride => {
                                for (to, x) in to.iter_mut().zip(x[from..].iter().step_by(stride)) {
                                    *to = *x;
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// A core's room.
#[derive(Default)]
struct Room {
    input: Vec<f32>,
    sums: Vec<f32>,
}

/// `y = alpha·sums + beta·y` at the places of the result.
pub(crate) fn run(of: &Sums, alpha: f32, x: &[f32], w: &[f32], beta: f32, y: &mut [f32]) {
    if of.taps.is_empty() || of.channels == 0 {
        return nothing(of, beta, y);
    }
    let shape = shape();
    let layout = Layout::new(of);
    let (inputs, full): (usize, usize) = (of.input.iter().product(), of.full.iter().product());
    // Filters in blocks of nearly the same size.
    let blocks = of.filters.div_ceil(shape.most);
    let begins = |block: usize| block * of.filters / blocks;
    let depth = of.channels * of.taps.len();
    let weights = packed(of, w, blocks, &begins);
    let size = layout.size(of);
    let parts = of.output[1].div_ceil(layout.lines);
    let at_once = if parts == 1 && of.output[0] == 1 {
        (ROOM / size.max(1)).min(PLACES.div_ceil(layout.lines * layout.pitch)).clamp(1, of.images)
    } else {
        1
    };
    let tasks = of.images.div_ceil(at_once) * of.groups * of.output[0] * parts;
    // Few tasks are divided by filters.
    let cores = rayon::current_num_threads();
    let shares = if cores == 1 { 1 } else { (2 * cores).div_ceil(tasks.max(1)).clamp(1, blocks) };
    let y = Shared(y.as_mut_ptr());
    let task = |room: &mut Room, task: usize| {
        let (task, share) = (task / shares, task % shares);
        let (task, part) = (task / parts, task % parts);
        let (task, plane) = (task / of.output[0], task % of.output[0]);
        let (bunch, group) = (task / of.groups, task % of.groups);
        let line = part * layout.lines;
        let lines = layout.lines.min(of.output[1] - line);
        let images = bunch * at_once..((bunch + 1) * at_once).min(of.images);
        let length = (lines - 1) * layout.pitch + of.output[2];
        // Vectors may begin at the last place.
        room.input.resize(images.len() * size + 8 * 16 + 16, 0.0);
        for (image, input) in images.clone().zip(room.input.chunks_exact_mut(size)) {
            let x = &x[(image * of.groups + group) * of.channels * inputs..];
            fill(&layout, of, x, (plane, line), input);
        }
        for block in share * blocks / shares..(share + 1) * blocks / shares {
            let (begin, filters) = (begins(block), begins(block + 1) - begins(block));
            let tile = (shape.vectors)(filters) * shape.lanes;
            let ld = length.next_multiple_of(tile);
            room.sums.resize((filters * ld).max(room.sums.len()), 0.0);
            let w = &weights[(group * of.filters + begin) * depth..][..filters * depth];
            for (nth, image) in images.clone().enumerate() {
                let at = ((image * of.groups + group) * of.filters + begin) * full
                    + ((plane * of.step[0] + of.first[0]) * of.full[1] + line * of.step[1] + of.first[1])
                        * of.full[2]
                    + of.first[2];
                let block = Block {
                    input: room.input[nth * size..].as_ptr(),
                    channel: layout.phases.len() * layout.plane,
                    channels: of.channels,
                    offsets: &layout.offsets,
                    weights: w.as_ptr(),
                    sums: room.sums.as_mut_ptr(),
                    ld,
                    pitch: layout.pitch,
                    // SAFETY: within y.
                    y: unsafe { y.get().add(at) },
                    of_filter: full,
                    of_line: of.step[1] * of.full[2],
                    step: of.step[2],
                    lines,
                    width: of.output[2],
                    factors: (alpha, beta),
                };
                // SAFETY: all is there in full: behind the input's end there is room for what vectors read and nobody uses.
                unsafe { sums(filters, &block) };
            }
        }
    };
    let tasks = tasks * shares;
    if tasks > 1 && cores > 1 {
        crate::shared_with_room(tasks, &task);
    } else {
        let mut room = Room::default();
        (0..tasks).for_each(|number| task(&mut room, number));
    }
}

/// Sums of nothing.
fn nothing(of: &Sums, beta: f32, y: &mut [f32]) {
    let full: usize = of.full.iter().product();
    crate::pieces(y, full, full, |_, y| {
        for d in 0..of.output[0] {
            for h in 0..of.output[1] {
                let line = (d * of.step[0] + of.first[0]) * of.full[1] + h * of.step[1] + of.first[1];
                let y = y[line * of.full[2] + of.first[2]..].iter_mut().step_by(of.step[2]);
                y.take(of.output[2]).for_each(|y| *y = if beta == 0.0 { 0.0 } else { beta * *y });
            }
        }
    });
}

/// The gradient of w, of sums that are a way forward's: for each filter, channel and tap the products of dy with what the tap meets. Between
/// lines dy is 0, so `None` where that met what is no number: then the answer would be another than the definition's.
pub(crate) fn gradient_of_filter(of: &Sums, x: &[f32], dy: &[f32]) -> Option<Vec<f32>> {
    let Tile { filters: at_once, taps: taps_at_once, lanes } = *tile();
    let (inputs, outputs): (usize, usize) = (of.input.iter().product(), of.output.iter().product());
    let taps = of.taps.len();
    // Each core has its own channels.
    let cores = rayon::current_num_threads();
    let wanted = (2 * cores).div_ceil(of.groups.max(1));
    let shares = if cores == 1 { 1 } else { wanted.clamp(1, of.channels) };
    let part = Sums { channels: of.channels.div_ceil(shares), ..of.clone() };
    let layout = Layout::new(&part);
    let size = layout.size(&part);
    let mut sums = vec![0.0; of.groups * of.filters * of.channels * taps];
    let to = Shared(sums.as_mut_ptr());
    crate::parallel(of.groups * shares, of.filters * part.channels * taps * of.images * outputs, |number| {
        let (group, first) = (number / shares, number % shares * part.channels);
        let channels = part.channels.min(of.channels.saturating_sub(first));
        if channels == 0 {
            return;
        }
        let length = (layout.lines * layout.pitch).next_multiple_of(lanes);
        let (mut input, mut lines) = (vec![0.0; size + layout.pitch + lanes], vec![0.0; of.filters * length]);
        for image in 0..of.images {
            let x = &x[((image * of.groups + group) * of.channels + first) * inputs..][..channels * inputs];
            let dy = &dy[(image * of.groups + group) * of.filters * outputs..][..of.filters * outputs];
            for (plane, line) in
                (0..of.output[0]).flat_map(|d| (0..of.output[1]).step_by(layout.lines).map(move |h| (d, h)))
            {
                fill(&layout, &part, x, (plane, line), &mut input[..size]);
                let these = layout.lines.min(of.output[1] - line);
                for (to, dy) in lines.chunks_exact_mut(length).zip(dy.chunks_exact(outputs)) {
                    let dy = &dy[(plane * of.output[1] + line) * of.output[2]..][..these * of.output[2]];
                    for (to, dy) in to.chunks_exact_mut(layout.pitch).zip(dy.chunks_exact(of.output[2])) {
                        to[..of.output[2]].copy_from_slice(dy);
                    }
                    to[these * layout.pitch..].fill(0.0);
                }
                let mut filter = 0;
                while filter < of.filters {
                    let filters = match of.filters - filter {
                        left if left >= at_once => at_once,
                        2.. => 2,
                        _ => 1,
                    };
                    for channel in 0..channels {
                        let mut tap = 0;
                        // Nearly as many taps each time.
                        let times = taps.div_ceil(taps_at_once);
                        for time in 0..times {
                            let end = (time + 1) * taps / times;
                            let products = Products {
                                dy: lines[filter * length..].as_ptr(),
                                ld: length,
                                x: input[channel * layout.phases.len() * layout.plane..].as_ptr(),
                                offsets: &layout.offsets[tap..end],
                                length: (these * layout.pitch).next_multiple_of(lanes),
                                // SAFETY: this core's channels.
                                sums: unsafe {
                                    let at = (group * of.filters + filter) * of.channels + first + channel;
                                    to.get().add(at * taps + tap)
                                },
                                of_filter: of.channels * taps,
                            };
                            // SAFETY: all is there; behind the input's end there is room for a line's end and a vector.
                            unsafe { add_products(filters, end - tap, &products) };
                            tap = end;
                        }
                    }
                    filter += filters;
                }
            }
        }
    });
    sums.iter().all(|sum| sum.is_finite()).then_some(sums)
}

/// How many filters and taps have their sums in registers.
struct Tile {
    filters: usize,
    taps: usize,
    lanes: usize,
}

fn tile() -> &'static Tile {
    #[cfg(target_arch = "x86_64")]
    if isa::best() == Isa::Avx512 {
        return &Tile { filters: 4, taps: 6, lanes: 16 };
    }
    &Tile { filters: 2, taps: 4, lanes: 8 }
}

/// Lines of some filters' dy, what some taps meet of a channel, and where sums are added.
struct Products<'a> {
    dy: *const f32,
    /// From one filter's lines to the next.
    ld: usize,
    x: *const f32,
    offsets: &'a [usize],
    /// A whole number of vectors.
    length: usize,
    sums: *mut f32,
    /// From one filter's sums to the next.
    of_filter: usize,
}

/// # Safety
/// All is there in full, and the processor has the vectors.
#[expect(clippy::needless_range_loop, reason = "sums are in registers, each by its numbers")]
#[inline(always)]
unsafe fn products<V: Vector, const F: usize, const T: usize>(of: &Products) {
    // SAFETY: the caller's word.
    unsafe {
        let mut sums = [[V::zero(); T]; F];
        let mut at = 0;
        while at < of.length {
            let mut dy = [V::zero(); F];
            for f in 0..F {
                dy[f] = V::load(of.dy.add(f * of.ld + at));
            }
            for t in 0..T {
                let x = V::load(of.x.add(*of.offsets.get_unchecked(t) + at));
                for f in 0..F {
                    sums[f][t] = sums[f][t].add_product(x, dy[f]);
                }
            }
            at += V::LANES;
        }
        for f in 0..F {
            for t in 0..T {
                *of.sums.add(f * of.of_filter + t) += sums[f][t].sum();
            }
        }
    }
}

/// # Safety
/// As of [`products`], but for the vectors.
unsafe fn add_products(filters: usize, taps: usize, of: &Products) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's word, and the processor has them.
    unsafe {
        if isa::best() == Isa::Avx512 {
            x86::wide_products(filters, taps, of);
        } else {
            x86::narrow_products(filters, taps, of);
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{filters} filters, {taps} taps, {:?}", of.offsets);
}

/// For each block of filters their weights, by channel, tap and filter.
fn packed(of: &Sums, w: &[f32], blocks: usize, begins: &(impl Fn(usize) -> usize + Sync)) -> Vec<f32> {
    let depth = of.channels * of.taps.len();
    let mut weights = vec![0.0; of.groups * of.filters * depth];
    let [of_group, of_filter, of_channel] = of.weights;
    let to = Shared(weights.as_mut_ptr());
    crate::parallel(of.groups * blocks, of.filters * depth / blocks.max(1), |number| {
        let (group, block) = (number / blocks, number % blocks);
        let (begin, count) = (begins(block), begins(block + 1) - begins(block));
        // SAFETY: each block has its own part.
        let to = unsafe {
            core::slice::from_raw_parts_mut(to.get().add((group * of.filters + begin) * depth), count * depth)
        };
        for filter in 0..count {
            let w = &w[group * of_group + (begin + filter) * of_filter..];
            let mut at = filter;
            for channel in 0..of.channels {
                for tap in &of.taps {
                    to[at] = w[channel * of_channel + tap.weight];
                    at += count;
                }
            }
        }
    });
    weights
}

/// What a block of sums is made of, and where it goes.
struct Block<'a> {
    input: *const f32,
    /// From one channel to the next.
    channel: usize,
    channels: usize,
    offsets: &'a [usize],
    weights: *const f32,
    sums: *mut f32,
    /// From one filter's sums to the next, a whole number of tiles.
    ld: usize,
    pitch: usize,
    y: *mut f32,
    of_filter: usize,
    of_line: usize,
    step: usize,
    lines: usize,
    width: usize,
    factors: (f32, f32),
}

trait Vector: Copy {
    const LANES: usize;
    unsafe fn zero() -> Self;
    unsafe fn load(from: *const f32) -> Self;
    unsafe fn store(self, to: *mut f32);
    unsafe fn splat(from: *const f32) -> Self;
    unsafe fn add_product(self, a: Self, b: Self) -> Self;
    /// Of all lanes.
    unsafe fn sum(self) -> f32;
}

/// Sums for places behind each other, of so many filters in so many vectors.
///
/// # Safety
/// The block is there in full, and the processor has the vectors.
#[expect(clippy::needless_range_loop, reason = "sums are in registers, each by its numbers")]
#[inline(always)]
unsafe fn tiles<V: Vector, const F: usize, const N: usize>(of: &Block) {
    let mut place = 0;
    while place < of.ld {
        // SAFETY: the caller's word.
        unsafe {
            let mut sums = [[V::zero(); N]; F];
            let mut w = of.weights;
            for channel in 0..of.channels {
                let x = of.input.add(channel * of.channel + place);
                for offset in of.offsets {
                    let x = x.add(*offset);
                    let mut row = [V::zero(); N];
                    for n in 0..N {
                        row[n] = V::load(x.add(n * V::LANES));
                    }
                    for f in 0..F {
                        let factor = V::splat(w.add(f));
                        for n in 0..N {
                            sums[f][n] = sums[f][n].add_product(row[n], factor);
                        }
                    }
                    w = w.add(F);
                }
            }
            for f in 0..F {
                for n in 0..N {
                    sums[f][n].store(of.sums.add(f * of.ld + place + n * V::LANES));
                }
            }
        }
        place += N * V::LANES;
    }
    // SAFETY: as above.
    unsafe { hand_out(of, F) };
}

/// Sums go to where they belong in y.
///
/// # Safety
/// As of [`tiles`].
#[inline(always)]
unsafe fn hand_out(of: &Block, filters: usize) {
    let (alpha, beta) = of.factors;
    for filter in 0..filters {
        for line in 0..of.lines {
            // SAFETY: the caller's word.
            unsafe {
                let from = of.sums.add(filter * of.ld + line * of.pitch);
                let to = of.y.add(filter * of.of_filter + line * of.of_line);
                if of.step == 1 && alpha == 1.0 && beta == 0.0 {
                    for at in 0..of.width {
                        to.add(at).write(from.add(at).read());
                    }
                } else if beta == 0.0 {
                    for at in 0..of.width {
                        to.add(at * of.step).write(alpha * from.add(at).read());
                    }
                } else {
                    for at in 0..of.width {
                        let to = to.add(at * of.step);
                        to.write(alpha * from.add(at).read() + beta * to.read());
                    }
                }
            }
        }
    }
}

/// # Safety
/// As of [`tiles`], but for the vectors.
unsafe fn sums(filters: usize, of: &Block) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: the caller's word, and the processor has them.
    unsafe {
        if isa::best() == Isa::Avx512 { x86::wide(filters, of) } else { x86::narrow(filters, of) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    unreachable!("{filters} filters, {:?}", of.factors);
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::{Block, Products, Vector, products, tiles};

    macro_rules! vector {
        ($name:ty, $lanes:literal, $zero:ident, $load:ident, $store:ident, $splat:ident, $fused:ident, $sum:ident) => {
            impl Vector for $name {
                const LANES: usize = $lanes;
                #[inline(always)]
                unsafe fn zero() -> Self {
                    // SAFETY: the caller's word.
                    unsafe { $zero() }
                }
                #[inline(always)]
                unsafe fn load(from: *const f32) -> Self {
                    // SAFETY: as above.
                    unsafe { $load(from) }
                }
                #[inline(always)]
                unsafe fn store(self, to: *mut f32) {
                    // SAFETY: as above.
                    unsafe { $store(to, self) }
                }
                #[inline(always)]
                unsafe fn splat(from: *const f32) -> Self {
                    // SAFETY: as above.
                    unsafe { $splat(from.read()) }
                }
                #[inline(always)]
                unsafe fn add_product(self, a: Self, b: Self) -> Self {
                    // SAFETY: as above.
                    unsafe { $fused(a, b, self) }
                }
                #[inline(always)]
                unsafe fn sum(self) -> f32 {
                    // SAFETY: as above.
                    unsafe { $sum(self) }
                }
            }
        };
    }
    vector!(
        __m512,
        16,
        _mm512_setzero_ps,
        _mm512_loadu_ps,
        _mm512_storeu_ps,
        _mm512_set1_ps,
        _mm512_fmadd_ps,
        _mm512_reduce_add_ps
    );
    vector!(
        __m256,
        8,
        _mm256_setzero_ps,
        _mm256_loadu_ps,
        _mm256_storeu_ps,
        _mm256_set1_ps,
        _mm256_fmadd_ps,
        sum_of_eight
    );

    macro_rules! by_filters {
        ($name:ident, $vector:ty, $features:literal, $($filters:literal $vectors:literal),*) => {
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(filters: usize, of: &Block) {
                // SAFETY: the caller's word.
                unsafe {
                    match filters {
                        $($filters => tiles::<$vector, $filters, $vectors>(of),)*
                        _ => unreachable!("{filters} filters in a block"),
                    }
                }
            }
        };
    }
    by_filters!(wide, __m512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
        1 8, 2 8, 3 8, 4 4, 5 4, 6 4, 7 2, 8 2, 9 2, 10 2, 11 2, 12 2);
    by_filters!(narrow, __m256, "avx2,fma", 1 4, 2 4, 3 4, 4 2, 5 2, 6 2);

    #[inline]
    #[target_feature(enable = "avx2,fma")]
    fn sum_of_eight(of: __m256) -> f32 {
        let four = _mm_add_ps(_mm256_castps256_ps128(of), _mm256_extractf128_ps::<1>(of));
        let two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        _mm_cvtss_f32(_mm_add_ss(two, _mm_shuffle_ps::<1>(two, two)))
    }

    macro_rules! by_both {
        ($name:ident, $vector:ty, $features:literal, $($filters:literal $taps:literal),*) => {
            #[target_feature(enable = $features)]
            pub(super) unsafe fn $name(filters: usize, taps: usize, of: &Products) {
                // SAFETY: the caller's word.
                unsafe {
                    match (filters, taps) {
                        $(($filters, $taps) => products::<$vector, $filters, $taps>(of),)*
                        _ => unreachable!("{filters} filters and {taps} taps at once"),
                    }
                }
            }
        };
    }
    by_both!(wide_products, __m512, "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma",
        1 1, 1 2, 1 3, 1 4, 1 5, 1 6, 2 1, 2 2, 2 3, 2 4, 2 5, 2 6, 4 1, 4 2, 4 3, 4 4, 4 5, 4 6);
    by_both!(narrow_products, __m256, "avx2,fma", 1 1, 1 2, 1 3, 1 4, 2 1, 2 2, 2 3, 2 4);
}
