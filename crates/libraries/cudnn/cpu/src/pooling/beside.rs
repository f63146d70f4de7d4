//! Sixteen channels side by side: what each window meets is a vector of theirs.
//!
//! Some lines of the input are gathered, so that the channels' elements of a place lie next to each other, and what is made of them is
//! scattered: strides, windows and sizes are then loops over vectors.

#[cfg(target_arch = "x86_64")]
use cublas_cpu::isa::{Isa, best};
use cublas_cpu::vectorized;

use super::{Pooling, Window, fold, larger};
use crate::isa::{gather, scatter};
use crate::value::{Kind, Value};

/// Channels.
pub(super) const LANES: usize = 16;

/// Places of the input that are gathered at a time: half of a usual second-level cache has them and their gradients.
const PLACES: usize = 2048;

/// What is the same for all channels, and the room that is used again.
pub(super) struct Beside<V> {
    /// What is inside along a line, for each window.
    widths: Vec<(usize, usize)>,
    /// Lines of the output that are made at a time.
    lines: usize,
    x: Vec<V>,
    dx: Vec<V>,
    y: Vec<V>,
    /// The places in `x` at which the lines that a window meets begin.
    met: Vec<usize>,
    /// For each plane of the input how many of its lines have been written.
    written: Vec<usize>,
}

impl<V: Value> Beside<V> {
    pub(super) fn new(of: &Window) -> Beside<V> {
        let line = of.input[2] * of.window[0].min(of.input[0]);
        let lines = (PLACES / line.max(1)).saturating_sub(of.window[1]) / of.stride[1] + 1;
        Beside {
            widths: (0..of.output[2]).map(|place| of.inside(2, place)).collect(),
            lines: lines.min(of.output[1]).max(1),
            x: Vec::new(),
            dx: Vec::new(),
            y: Vec::new(),
            met: Vec::new(),
            written: Vec::new(),
        }
    }
}

/// Some lines of one plane of the output, and what of the input they meet.
struct Strip {
    /// Planes and lines of the input.
    planes: (usize, usize),
    rows: (usize, usize),
    /// Of the output, in which plane, and where they are in it.
    lines: (usize, usize),
    depth: usize,
    at: usize,
}

impl Strip {
    fn all(of: &Window, lines: usize) -> impl Iterator<Item = Strip> {
        let of = *of;
        let [depth, height, width] = of.output;
        (0..depth).flat_map(move |d| {
            (0..height).step_by(lines).map(move |first| {
                let end = (first + lines).min(height);
                Strip {
                    planes: of.inside(0, d),
                    rows: (of.inside(1, first).0, of.inside(1, end - 1).1),
                    lines: (first, end),
                    depth: d,
                    at: (d * height + first) * width,
                }
            })
        })
    }

    fn places(&self, of: &Window) -> usize {
        (self.rows.1 - self.rows.0) * of.input[2]
    }

    /// Gathers what it meets.
    #[inline(always)]
    fn read<V: Value>(&self, of: &Window, channels: usize, x: &[V], to: &mut Vec<V>) {
        let places = self.places(of);
        to.resize((self.planes.1 - self.planes.0) * places * LANES, V::zero());
        if places > 0 {
            for (plane, to) in (self.planes.0..self.planes.1).zip(to.chunks_exact_mut(places * LANES)) {
                let first = (plane * of.input[1] + self.rows.0) * of.input[2];
                gather(&x[first..], of.inputs(), channels, to);
            }
        }
    }

    /// The places at which the lines begin that a line of the output meets.
    fn met(&self, of: &Window, line: usize, to: &mut Vec<usize>) {
        let (first, end) = of.inside(1, line);
        to.clear();
        for plane in 0..self.planes.1 - self.planes.0 {
            let rows = self.rows.1 - self.rows.0;
            to.extend((first..end).map(|row| (plane * rows + row - self.rows.0) * of.input[2]));
        }
    }
}

vectorized! {
    /// Up to 16 channels, of which `x` and `y` have one behind the other.
    pub(super) fn forward[V: Value](mode: Pooling, of: &Window, room: &mut Beside<V>, channels: usize, x: &[V], y: &mut [V]) {
        match mode {
            Pooling::Max(false) => pooled(Pooling::Max(false), of, room, channels, x, y),
            Pooling::Max(true) => pooled(Pooling::Max(true), of, room, channels, x, y),
            // The divisor is made once for each window: it needs not be known here.
            _ => pooled(mode, of, room, channels, x, y),
        }
    }
}

#[inline(always)]
fn pooled<V: Value>(mode: Pooling, of: &Window, room: &mut Beside<V>, channels: usize, x: &[V], y: &mut [V]) {
    let is_max = matches!(mode, Pooling::Max(_));
    let start = if is_max { V::neg_infinity() } else { V::zero() };
    let Beside { widths, lines, x: from, y: to, met, .. } = room;
    for strip in Strip::all(of, *lines) {
        strip.read(of, channels, x, from);
        let count = strip.lines.1 - strip.lines.0;
        to.resize(count * widths.len() * LANES, start);
        let mut made = to.as_chunks_mut::<LANES>().0.iter_mut();
        for line in strip.lines.0..strip.lines.1 {
            strip.met(of, line, met);
            let counted = of.counted_lines(mode, strip.depth, line);
            for ((place, &(first, end)), made) in widths.iter().enumerate().zip(&mut made) {
                let mut sum = [start; LANES];
                for row in &*met {
                    for x in &from.as_chunks::<LANES>().0[row + first..row + end] {
                        for lane in 0..LANES {
                            sum[lane] = fold(mode, sum[lane], x[lane]);
                        }
                    }
                }
                if !is_max && met.len() * (end - first) > 0 {
                    let divisor = V::of((counted * of.counted(mode, 2, place)) as f64);
                    sum.iter_mut().for_each(|sum| *sum /= divisor);
                }
                *made = sum;
            }
        }
        scatter(to, &mut y[strip.at..], of.outputs(), channels, false);
    }
}

vectorized! {
    /// The way back: as many channels of `dx`, which is written as a whole.
    pub(super) fn backward[V: Value](
        mode: Pooling,
        of: &Window,
        room: &mut Beside<V>,
        channels: usize,
        x: &[V],
        dy: &[V],
        dx: &mut [V],
    ) {
        match mode {
            Pooling::Max(true) => back::<V, true>(Pooling::Max(true), of, room, channels, (x, dy), dx),
            Pooling::Max(false) => back::<V, false>(Pooling::Max(false), of, room, channels, (x, dy), dx),
            _ => back::<V, false>(mode, of, room, channels, (x, dy), dx),
        }
    }
}

#[inline(always)]
fn back<V: Value, const KEEPS_NAN: bool>(
    mode: Pooling,
    of: &Window,
    room: &mut Beside<V>,
    channels: usize,
    (x, dy): (&[V], &[V]),
    dx: &mut [V],
) {
    let is_max = matches!(mode, Pooling::Max(_));
    let Beside { widths, lines, x: from, dx: to, y: gradient, met, written } = room;
    written.clear();
    written.resize(of.input[0], 0);
    for strip in Strip::all(of, *lines) {
        if is_max {
            strip.read(of, channels, x, from);
        }
        let places = strip.places(of);
        to.clear();
        to.resize((strip.planes.1 - strip.planes.0) * places * LANES, V::zero());
        let count = strip.lines.1 - strip.lines.0;
        gradient.resize(count * widths.len() * LANES, V::zero());
        gather(&dy[strip.at..], of.outputs(), channels, gradient);
        let gradients = gradient.as_chunks::<LANES>().0.chunks_exact(widths.len());
        for (line, dy) in (strip.lines.0..strip.lines.1).zip(gradients) {
            strip.met(of, line, met);
            if is_max {
                let (x, to) = (from.as_chunks::<LANES>().0, to.as_chunks_mut::<LANES>().0);
                line_of_largest::<V, KEEPS_NAN>(x, met, widths, dy, to);
                continue;
            }
            let counted = of.counted_lines(mode, strip.depth, line);
            for ((place, &(first, end)), dy) in widths.iter().enumerate().zip(dy) {
                let (mut each, divisor) = (*dy, counted * of.counted(mode, 2, place));
                each.iter_mut().for_each(|dy| *dy /= V::of(divisor as f64));
                share(to, met, (first, end), &each);
            }
        }
        if places > 0 {
            for (plane, from) in (strip.planes.0..strip.planes.1).zip(to.chunks_exact(places * LANES)) {
                write(of, plane, strip.rows, &mut written[plane], channels, from, dx);
            }
        }
    }
    for (plane, written) in written.iter().enumerate() {
        nothing(of, plane, (*written, of.input[1]), channels, dx);
    }
}

/// A line of windows, each of which gives the first of the largest that it meets its gradient, channel by channel.
#[inline(always)]
fn line_of_largest<V: Value, const KEEPS_NAN: bool>(
    x: &[[V; LANES]],
    met: &[usize],
    widths: &[(usize, usize)],
    dy: &[[V; LANES]],
    dx: &mut [[V; LANES]],
) {
    assert_eq!(dy.len(), widths.len());
    #[cfg(target_arch = "x86_64")]
    if V::KIND == Kind::F32 && best() == Isa::Avx512 {
        let behind =
            met.iter().max().map_or(0, |row| row + widths.iter().map(|(_, end)| end).max().unwrap_or(&0));
        assert!(behind <= x.len() && behind <= dx.len());
        let (x, dy, dx) = (x.as_ptr().cast(), dy.as_ptr().cast(), dx.as_mut_ptr().cast());
        // SAFETY: the type is `f32`, and places and windows were looked at.
        return unsafe { x86::line_of_largest::<KEEPS_NAN>(x, met, widths, dy, dx) };
    }
    for (&(first, end), dy) in widths.iter().zip(dy) {
        let mut best = [V::neg_infinity(); LANES];
        for row in met {
            for x in &x[row + first..row + end] {
                for lane in 0..LANES {
                    best[lane] = larger(KEEPS_NAN, best[lane], x[lane]);
                }
            }
        }
        // What is left of a gradient: all or nothing.
        let mut left = *dy;
        for row in met {
            for (dx, x) in dx[row + first..row + end].iter_mut().zip(&x[row + first..]) {
                for lane in 0..LANES {
                    let is_it = x[lane] == best[lane] || (KEEPS_NAN && x[lane].is_nan());
                    dx[lane] += if is_it { left[lane] } else { V::zero() };
                    left[lane] = if is_it { V::zero() } else { left[lane] };
                }
            }
        }
    }
}

/// Adds to all that a window meets.
#[inline(always)]
fn share<V: Value>(to: &mut [V], met: &[usize], (first, end): (usize, usize), each: &[V; LANES]) {
    for row in met {
        for to in &mut to.as_chunks_mut::<LANES>().0[row + first..row + end] {
            for lane in 0..LANES {
                to[lane] += each[lane];
            }
        }
    }
}

/// Writes lines of a plane, of which the first may have been written by the strip before: those are added to.
#[inline(always)]
fn write<V: Value>(
    of: &Window,
    plane: usize,
    (first, end): (usize, usize),
    written: &mut usize,
    channels: usize,
    from: &[V],
    dx: &mut [V],
) {
    let width = of.input[2];
    let at = |row| (plane * of.input[1] + row) * width;
    if *written < first {
        nothing(of, plane, (*written, first), channels, dx);
    }
    let old = (*written).clamp(first, end);
    let (before, behind) = from.split_at((old - first) * width * LANES);
    scatter(before, &mut dx[at(first)..], of.inputs(), channels, true);
    scatter(behind, &mut dx[at(old).min(of.inputs())..], of.inputs(), channels, false);
    *written = end.max(*written);
}

/// No window meets these lines.
fn nothing<V: Value>(of: &Window, plane: usize, (first, end): (usize, usize), channels: usize, dx: &mut [V]) {
    let width = of.input[2];
    for dx in dx.chunks_exact_mut(of.inputs()).take(channels) {
        dx[(plane * of.input[1] + first) * width..(plane * of.input[1] + end) * width].fill(V::zero());
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    use super::LANES;

    /// [`super::line_of_largest`] in registers.
    ///
    /// # Safety
    /// Each window has a vector in `dy`, and all that they meet has one in `x` and in `dx`.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn line_of_largest<const KEEPS_NAN: bool>(
        x: *const f32,
        met: &[usize],
        widths: &[(usize, usize)],
        dy: *const f32,
        dx: *mut f32,
    ) {
        for (window, &(first, end)) in widths.iter().enumerate() {
            // SAFETY: the caller's word.
            unsafe {
                let dy = _mm512_loadu_ps(dy.add(window * LANES));
                let (x, dx) = (x.add(first * LANES), dx.add(first * LANES));
                match end - first {
                    2 => give::<KEEPS_NAN, 2>(x, met, 2, dy, dx),
                    3 => give::<KEEPS_NAN, 3>(x, met, 3, dy, dx),
                    count => give::<KEEPS_NAN, 0>(x, met, count, dy, dx),
                }
            }
        }
    }

    /// One window: so many places of each line, as `COUNT` says if it is not 0.
    ///
    /// # Safety
    /// As of [`line_of_largest`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn give<const KEEPS_NAN: bool, const COUNT: usize>(
        x: *const f32,
        met: &[usize],
        count: usize,
        dy: __m512,
        dx: *mut f32,
    ) {
        let count = if COUNT == 0 { count } else { COUNT };
        let mut best = _mm512_set1_ps(f32::NEG_INFINITY);
        for row in met {
            for place in 0..count {
                // SAFETY: the caller's word.
                let x = unsafe { _mm512_loadu_ps(x.add((row + place) * LANES)) };
                // The second one where one is a NaN.
                let larger = _mm512_max_ps(x, best);
                best = if KEEPS_NAN {
                    let are_nan = _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(x, x);
                    // A NaN that is there stays.
                    _mm512_mask_mov_ps(larger, are_nan, x)
                } else {
                    larger
                };
            }
        }
        let mut left: __mmask16 = !0;
        for row in met {
            for place in 0..count {
                let at = (row + place) * LANES;
                // SAFETY: the caller's word.
                unsafe {
                    let x = _mm512_loadu_ps(x.add(at));
                    let mut is_it = _mm512_mask_cmp_ps_mask::<_CMP_EQ_OQ>(left, x, best);
                    if KEEPS_NAN {
                        is_it |= _mm512_mask_cmp_ps_mask::<_CMP_UNORD_Q>(left, x, x);
                    }
                    left &= !is_it;
                    let old = _mm512_loadu_ps(dx.add(at));
                    _mm512_storeu_ps(dx.add(at), _mm512_mask_add_ps(old, is_it, old, dy));
                }
            }
        }
    }
}
