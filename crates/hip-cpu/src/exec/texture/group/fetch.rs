//! `tex` for a group: coordinates, elements and weights as vectors, one step after the other for all lanes.
//!
//! What `sample` says for one lane is said here again for many: every result has the same bits. Coordinates that are
//! no numbers, or far away, are left to it.

use super::plan::{Axis, Decode, Edge, Plan, Scale};
use super::vector::Vector;
use crate::exec::texture::sample::BELOW_ONE;

/// A group's coordinates and where its results belong: columns of 32-bit items, as many as there are lanes, and room
/// for [`Vector::LANES`] more but one.
#[derive(Clone, Copy)]
pub struct Lanes {
    pub n: usize,
    /// Of a layered texture.
    pub layer: Option<*const u32>,
    pub coordinates: *const u32,
    /// Items from one coordinate's column to the next one's.
    pub step: usize,
    pub results: *mut u32,
    pub results_step: usize,
}

/// A fetch as code for one kind of vectors, in one module for each, each of its forms a function of its own.
macro_rules! vectors {
    ($(#[$doc:meta])* $name:ident, $vector:ident, $($feature:meta)?) => {
        $(#[$doc])*
        pub mod $name {
            use super::super::plan::Plan;
            use super::super::vector::$vector;
            use super::Lanes;

            /// Results for all lanes but the ones in the answer, whose coordinates are for `sample`.
            ///
            /// # Safety
            /// The plan's memory is there, the lanes' too, and the processor has the vectors.
            pub unsafe fn fetch(plan: &Plan, dimensions: usize, float: bool, lanes: &Lanes) -> u64 {
                // SAFETY: the caller's promise.
                unsafe {
                    match (plan.linear, dimensions) {
                        (false, 1) => nearest::<1>(plan, float, lanes),
                        (false, 2) => nearest::<2>(plan, float, lanes),
                        (false, _) => nearest::<3>(plan, float, lanes),
                        (true, 1) => filtered::<1>(plan, lanes),
                        (true, 2) => filtered::<2>(plan, lanes),
                        (true, _) => filtered::<3>(plan, lanes),
                    }
                }
            }

            unsafe fn filtered<const D: usize>(plan: &Plan, lanes: &Lanes) -> u64 {
                // SAFETY: the caller's promise.
                unsafe {
                    match (plan.channels, plan.is_plain_float) {
                        (1, true) => corners::<D, 1, true>(plan, lanes),
                        (1, false) => corners::<D, 1, false>(plan, lanes),
                        (2, _) => corners::<D, 2, false>(plan, lanes),
                        _ => corners::<D, 4, false>(plan, lanes),
                    }
                }
            }

            $(#[$feature])?
            unsafe fn nearest<const D: usize>(plan: &Plan, float: bool, lanes: &Lanes) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { super::nearest::<$vector, D>(plan, float, lanes) }
            }

            $(#[$feature])?
            unsafe fn corners<const D: usize, const C: usize, const PLAIN: bool>(
                plan: &Plan,
                lanes: &Lanes,
            ) -> u64 {
                // SAFETY: the caller's promise.
                unsafe { super::corners::<$vector, D, C, PLAIN>(plan, lanes) }
            }
        }
    };
}

vectors! {
    /// AVX-512 with its extensions VL, BW and DQ.
    by_sixteen, Avx512, target_feature(enable = "avx512f,avx512vl,avx512bw,avx512dq")
}
vectors! {
    /// AVX2 with FMA.
    by_eight, Avx2, target_feature(enable = "avx2,fma")
}
vectors! {
    /// Every processor's.
    one_by_one, One,
}

/// Bytes from the level's beginning to the lanes' layers.
#[inline(always)]
unsafe fn layers<V: Vector>(plan: &Plan, lanes: &Lanes, at: usize) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        match lanes.layer {
            None => V::splat(0),
            Some(layer) => {
                let axis = &plan.axes[2];
                let layer = V::min_unsigned(V::load(layer.add(at)), V::splat(axis.side - 1));
                V::mul(layer, V::splat(axis.stride))
            }
        }
    }
}

/// A coordinate of the lanes that vectors can do, 0 for the others; which lanes those are.
#[inline(always)]
unsafe fn coordinate<V: Vector>(axis: &Axis, from: *const u32) -> (V::Float, V::Mask) {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let bits = V::load(from);
        let good = V::within(V::float(bits), axis.limit);
        (V::float(V::select(good, bits, V::splat(0))), good)
    }
}

/// A normalised coordinate in elements, rounded as `sample::elements` does.
#[inline(always)]
unsafe fn elements<V: Vector>(axis: &Axis, at: V::Float) -> V::Double {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let side = V::splat_double(axis.side.into());
        if axis.scale == Scale::Side {
            let at = V::mul_double(V::widen(at), side);
            return if axis.clamped {
                V::min_double(V::max_double(at, V::splat_double(0.0)), side)
            } else {
                at
            };
        }
        let whole = V::floor_float(at);
        let fraction = V::sub_double(V::widen(at), V::widen(whole));
        let mut fraction = V::min_double(fraction, V::splat_double(BELOW_ONE));
        if axis.scale == Scale::Mirrored {
            // 1 - fraction where the whole is odd.
            let odd = V::and(V::to_int(whole), V::splat(1));
            let sign = V::sub(V::splat(1), V::add(odd, odd));
            fraction = V::add_double(V::widen_int(odd), V::mul_double(V::widen_int(sign), fraction));
        }
        V::mul_double(fraction, side)
    }
}

/// The element that an index means, and whether it is none.
#[inline(always)]
unsafe fn addressed<V: Vector>(axis: &Axis, index: V::Int, outside: V::Mask) -> (V::Int, V::Mask) {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let (zero, side, last) = (V::splat(0), V::splat(axis.side), V::splat(axis.side - 1));
        if axis.edge == Edge::Wrap {
            // No further than a side away.
            let index = V::select(V::less(index, zero), V::add(index, side), index);
            return (V::select(V::less(last, index), V::sub(index, side), index), outside);
        }
        let held = V::min(V::max(index, zero), last);
        if axis.edge == Edge::Border {
            return (held, V::either(outside, V::different(held, index)));
        }
        (held, outside)
    }
}

#[inline(always)]
unsafe fn nearest<V: Vector, const D: usize>(plan: &Plan, float: bool, lanes: &Lanes) -> u64 {
    let mut left = 0;
    let has_outside = plan.axes[..D].iter().any(|axis| axis.edge == Edge::Border);
    for at in (0..lanes.n).step_by(V::LANES) {
        // SAFETY: `fetch`'s caller promised.
        unsafe {
            let mut offset = layers::<V>(plan, lanes, at);
            let mut outside = V::no_lane();
            for nth in 0..D {
                let axis = &plan.axes[nth];
                let from = lanes.coordinates.add(nth * lanes.step + at);
                let index = if float {
                    let (coordinate, good) = coordinate::<V>(axis, from);
                    left |= bad::<V>(good) << at;
                    match axis.scale {
                        Scale::Elements => V::to_int(V::floor_float(coordinate)),
                        _ => V::double_to_int(V::floor_double(elements::<V>(axis, coordinate))),
                    }
                } else {
                    V::load(from)
                };
                let (index, beyond) = addressed::<V>(axis, index, outside);
                outside = beyond;
                offset = V::add(offset, V::mul(index, V::splat(axis.stride)));
            }
            let bytes = plan.element_bytes;
            let words = if bytes <= 4 && V::is_line(offset, bytes as i32) {
                straight::<V, false>(plan, plan.data.offset(V::first(offset) as isize))
            } else {
                element::<V, false>(plan, offset)
            };
            match (plan.channel_bytes, plan.decode) {
                // The usual ones written out: nothing is asked for each channel.
                (4, Decode::Same) => {
                    store_texel::<V, 4>(plan, &words, has_outside.then_some(outside), lanes, at);
                }
                (1, Decode::Same) => {
                    store_texel::<V, 1>(plan, &words, has_outside.then_some(outside), lanes, at);
                }
                _ => store_texel::<V, 0>(plan, &words, has_outside.then_some(outside), lanes, at),
            }
        }
    }
    left
}

/// Stores what elements mean. `BYTES` of a channel that is given as it is, or 0: the plan says how.
#[inline(always)]
unsafe fn store_texel<V: Vector, const BYTES: u32>(
    plan: &Plan,
    words: &[V::Int; 4],
    outside: Option<V::Mask>,
    lanes: &Lanes,
    at: usize,
) {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        for nth in 0..4 {
            let mut value = if nth >= plan.channels {
                V::splat(plan.missing[nth].cast_signed())
            } else {
                match BYTES {
                    4 => words[nth],
                    1 => V::and(V::right(words[0], V::splat(8 * nth as i32)), V::splat(0xff)),
                    _ => decoded::<V>(plan, channel::<V>(plan, words, nth)),
                }
            };
            if let Some(outside) = outside {
                value = V::select(outside, V::splat(plan.outside[nth].cast_signed()), value);
            }
            V::store(lanes.results.add(nth * lanes.results_step + at), value);
        }
    }
}

/// The lanes that are not in a mask.
#[inline(always)]
unsafe fn bad<V: Vector>(good: V::Mask) -> u64 {
    // SAFETY: `fetch`'s caller promised.
    !unsafe { V::lanes(good) } & ((1 << V::LANES) - 1)
}

/// i = floor(x - 1/2) and α = frac(x - 1/2) in 256ths, as one number i·256 + α.
#[inline(always)]
unsafe fn foot<V: Vector>(axis: &Axis, at: V::Float) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        if axis.scale == Scale::Elements {
            let at = if axis.clamped {
                V::min_float(V::max_float(at, V::splat_float(0.0)), V::splat_float(axis.side as f32))
            } else {
                at
            };
            // floor(256 (x - 1/2) + 1/2) = floor((512 x - 255) / 2), in whole numbers.
            let twice = V::to_int(V::floor_float(V::mul_float(at, V::splat_float(512.0))));
            return V::right_signed(V::sub(twice, V::splat(255)), V::splat(1));
        }
        let at = V::sub_double(elements::<V>(axis, at), V::splat_double(0.5));
        let fixed = V::add_double(V::mul_double(at, V::splat_double(256.0)), V::splat_double(0.5));
        V::double_to_int(V::floor_double(fixed))
    }
}

/// A linear filter in `D` dimensions of `C` channels, `PLAIN` where elements are floats.
#[inline(always)]
unsafe fn corners<V: Vector, const D: usize, const C: usize, const PLAIN: bool>(
    plan: &Plan,
    lanes: &Lanes,
) -> u64 {
    let mut left = 0;
    let has_outside = plan.axes[..D].iter().any(|axis| axis.edge == Edge::Border);
    for at in (0..lanes.n).step_by(V::LANES) {
        // SAFETY: `fetch`'s caller promised.
        unsafe {
            let layer = layers::<V>(plan, lanes, at);
            let mut feet = Feet::<V, D> {
                layer,
                offsets: [[V::splat(0); 2]; D],
                weights: [[V::splat(0); 2]; D],
                outside: [[V::no_lane(); 2]; D],
                is_exact: [false; D],
                has_outside,
            };
            for nth in 0..D {
                let axis = &plan.axes[nth];
                let (coordinate, good) = coordinate::<V>(axis, lanes.coordinates.add(nth * lanes.step + at));
                left |= bad::<V>(good) << at;
                feet.set(nth, axis, foot::<V>(axis, coordinate));
            }
            let way = feet.way(plan.axes[0].stride, lanes.layer.is_some());
            let mut sums = [V::splat_double(0.0); C];
            if PLAIN {
                // Written out: what a row needs then stays in registers.
                feet.add_row::<C, PLAIN>(plan, way, 0, &mut sums);
                if D > 1 {
                    feet.add_row::<C, PLAIN>(plan, way, 1, &mut sums);
                }
                if D > 2 {
                    feet.add_row::<C, PLAIN>(plan, way, 2, &mut sums);
                    feet.add_row::<C, PLAIN>(plan, way, 3, &mut sums);
                }
            } else {
                for row in 0..1usize << (D - 1) {
                    feet.add_row::<C, PLAIN>(plan, way, row, &mut sums);
                }
            }
            // Weights are whole numbers so far. The sums were rounded as those of fractions are.
            let scale = V::splat_double(const { 1.0 / (1u64 << (8 * D)) as f64 });
            for nth in 0..4 {
                let value = match sums.get(nth) {
                    Some(sum) => {
                        let value = V::narrow(V::mul_double(*sum, scale));
                        // What has no weight has no part, also when it is infinite: here it is NaN.
                        left |= bad::<V>(V::is_number(value)) << at;
                        V::bits(value)
                    }
                    None => V::splat(plan.missing[nth].cast_signed()),
                };
                V::store(lanes.results.add(nth * lanes.results_step + at), value);
            }
        }
    }
    left
}

/// How the lanes' elements lie in a filter's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One after the other, in the same rows.
    Straight,
    /// The one behind follows the one in front.
    Adjacent,
    Scattered,
}

/// A filter's footprint: in each dimension the element in front and the one behind.
struct Feet<V: Vector, const D: usize> {
    layer: V::Int,
    /// In bytes.
    offsets: [[V::Int; 2]; D],
    /// In 256ths.
    weights: [[V::Int; 2]; D],
    outside: [[V::Mask; 2]; D],
    /// No lane's element behind has a weight: it has no part, then.
    is_exact: [bool; D],
    has_outside: bool,
}

/// Of all: `fetch`'s caller promised.
impl<V: Vector, const D: usize> Feet<V, D> {
    /// A dimension's part, of `foot`'s answer.
    #[inline(always)]
    unsafe fn set(&mut self, nth: usize, axis: &Axis, foot: V::Int) {
        // SAFETY: see above.
        unsafe {
            let alpha = V::and(foot, V::splat(255));
            self.weights[nth] = [V::sub(V::splat(256), alpha), alpha];
            self.is_exact[nth] = V::are_equal(alpha, V::splat(0));
            let mut index = V::right_signed(foot, V::splat(8));
            for behind in 0..if self.is_exact[nth] { 1 } else { 2 } {
                let (held, beyond) = addressed::<V>(axis, index, V::no_lane());
                self.outside[nth][behind] = beyond;
                self.offsets[nth][behind] = V::mul(held, V::splat(axis.stride));
                index = V::add(index, V::splat(1));
            }
        }
    }

    #[inline(always)]
    unsafe fn way(&self, stride: i32, is_layered: bool) -> Way {
        // SAFETY: see above.
        unsafe {
            let [front, behind] = self.offsets[0];
            let next = V::add(front, V::splat(stride));
            if !self.is_exact[0] && !V::are_equal(next, behind) {
                return Way::Scattered;
            }
            let mut is_straight = V::is_line(front, stride) && (!is_layered || V::is_line(self.layer, 0));
            for nth in 1..D {
                let [front, behind] = self.offsets[nth];
                is_straight &= V::is_line(front, 0) && (self.is_exact[nth] || V::is_line(behind, 0));
            }
            if is_straight { Way::Straight } else { Way::Adjacent }
        }
    }

    /// Adds what a row's two elements give: of row number `row`, whose bits say in which dimensions it is behind.
    #[inline(always)]
    unsafe fn add_row<const C: usize, const PLAIN: bool>(
        &self,
        plan: &Plan,
        way: Way,
        row: usize,
        sums: &mut [V::Double; C],
    ) {
        // SAFETY: see above.
        unsafe {
            let (mut offset, mut weight, mut beyond) = (self.layer, V::splat(1), V::no_lane());
            for nth in 1..D {
                let behind = row >> (nth - 1) & 1;
                if behind == 1 && self.is_exact[nth] {
                    return;
                }
                offset = V::add(offset, self.offsets[nth][behind]);
                let own = self.weights[nth][behind];
                weight = if nth == 1 { own } else { V::mul(weight, own) };
                beyond = V::either(beyond, self.outside[nth][behind]);
            }
            let count = if self.is_exact[0] { 1 } else { 2 };
            let pair = pair::<V, PLAIN>(plan, way, count, offset, &self.offsets[0]);
            for behind in 0..count {
                let own = self.weights[0][behind];
                let weight = V::widen_int(if D == 1 { own } else { V::mul(own, weight) });
                let beyond = V::either(beyond, self.outside[0][behind]);
                let words = &pair[behind];
                for (nth, sum) in sums.iter_mut().enumerate() {
                    let mut value =
                        if PLAIN { words[nth] } else { decoded::<V>(plan, channel::<V>(plan, words, nth)) };
                    if self.has_outside {
                        value = V::select(beyond, V::splat(plan.outside[nth].cast_signed()), value);
                    }
                    *sum = V::fused(weight, V::widen(V::float(value)), *sum);
                }
            }
        }
    }
}

/// The two elements of a row that `offset` leads to, or (with `count` 1) the one in front.
#[inline(always)]
unsafe fn pair<V: Vector, const PLAIN: bool>(
    plan: &Plan,
    way: Way,
    count: usize,
    offset: V::Int,
    columns: &[V::Int; 2],
) -> [[V::Int; 4]; 2] {
    // SAFETY: `fetch`'s caller promised, and the offsets are inside of the level.
    unsafe {
        let bytes = if PLAIN { 4 } else { plan.element_bytes };
        let front = V::add(offset, columns[0]);
        if way == Way::Straight && bytes <= 4 {
            let at = plan.data.offset(V::first(front) as isize);
            let one = straight::<V, PLAIN>(plan, at);
            return if count == 1 { [one; 2] } else { [one, straight::<V, PLAIN>(plan, at.add(bytes))] };
        }
        if count == 1 {
            return [element::<V, PLAIN>(plan, front); 2];
        }
        if way == Way::Adjacent && bytes == 4 {
            let [front, behind] = V::gather_two(plan.data, front);
            return [[front; 4], [behind; 4]];
        }
        [element::<V, PLAIN>(plan, front), element::<V, PLAIN>(plan, V::add(offset, columns[1]))]
    }
}

/// Elements that follow one another, of 32 bits at most.
#[inline(always)]
unsafe fn straight<V: Vector, const PLAIN: bool>(plan: &Plan, from: *const u8) -> [V::Int; 4] {
    // SAFETY: `fetch`'s caller promised, and the elements are inside of the level.
    unsafe {
        let word = match if PLAIN { 4 } else { plan.element_bytes } {
            1 => V::load_bytes(from),
            2 => V::load_pairs(from.cast()),
            _ => V::load(from.cast()),
        };
        [word; 4]
    }
}

/// The words of elements; one that is shorter than a word is the word's low end.
#[inline(always)]
unsafe fn element<V: Vector, const PLAIN: bool>(plan: &Plan, offset: V::Int) -> [V::Int; 4] {
    // SAFETY: `fetch`'s caller promised, and the offset is inside of the level.
    unsafe {
        match if PLAIN { 4 } else { plan.element_bytes } {
            1 | 2 => [narrow_word::<V>(plan, offset); 4],
            4 => [V::gather(plan.data, offset); 4],
            8 => {
                let [low, high] = V::gather_two(plan.data, offset);
                [low, high, low, high]
            }
            _ => V::gather_four(plan.data, offset),
        }
    }
}

/// The aligned word around an element, moved so that the element is its low end: nothing is read behind the memory.
#[inline(always)]
unsafe fn narrow_word<V: Vector>(plan: &Plan, offset: V::Int) -> V::Int {
    // SAFETY: `fetch`'s caller promised, and the offset is inside of the level, which is aligned to 4.
    unsafe {
        let word = V::gather(plan.data, V::and(offset, V::splat(!3)));
        V::right(word, V::left(V::and(offset, V::splat(3)), V::splat(3)))
    }
}

/// A channel's bits, zeros above them.
#[inline(always)]
unsafe fn channel<V: Vector>(plan: &Plan, words: &[V::Int; 4], nth: usize) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        match plan.channel_bytes {
            1 => V::and(V::right(words[0], V::splat(8 * nth as i32)), V::splat(0xff)),
            2 => V::and(V::right(words[nth / 2], V::splat(16 * (nth as i32 & 1))), V::splat(0xffff)),
            _ => words[nth],
        }
    }
}

/// As `Image::decoded`.
#[inline(always)]
unsafe fn decoded<V: Vector>(plan: &Plan, raw: V::Int) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        match plan.decode {
            Decode::Same => raw,
            Decode::Half => half::<V>(raw),
            Decode::Signed => signed::<V>(plan, raw),
            Decode::Fraction => V::bits(fraction::<V>(plan, raw)),
            // Two values mean -1.
            Decode::SignedFraction => {
                let fraction = fraction::<V>(plan, signed::<V>(plan, raw));
                V::bits(V::max_float(fraction, V::splat_float(-1.0)))
            }
        }
    }
}

/// With the sign of the channel's highest bit.
#[inline(always)]
unsafe fn signed<V: Vector>(plan: &Plan, raw: V::Int) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let above = V::splat(32 - 8 * plan.channel_bytes as i32);
        V::right_signed(V::left(raw, above), above)
    }
}

#[inline(always)]
unsafe fn fraction<V: Vector>(plan: &Plan, value: V::Int) -> V::Float {
    // SAFETY: `fetch`'s caller promised.
    unsafe { V::div_float(V::to_float(value), V::splat_float(plan.largest)) }
}

/// As `texel::from_half`.
#[inline(always)]
unsafe fn half<V: Vector>(raw: V::Int) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let sign = V::left(V::right(raw, V::splat(15)), V::splat(31));
        let exponent = V::and(V::right(raw, V::splat(10)), V::splat(0x1f));
        let fraction = V::and(raw, V::splat(0x3ff));
        let moved = V::left(fraction, V::splat(13));
        let small = V::bits(V::mul_float(V::to_float(fraction), V::splat_float(1.0 / 16_777_216.0)));
        let normal = V::or(V::left(V::add(exponent, V::splat(112)), V::splat(23)), moved);
        let endless = V::or(V::splat(0x7f80_0000), moved);
        let magnitude = V::select(V::equal(exponent, V::splat(0)), small, normal);
        let magnitude = V::select(V::equal(exponent, V::splat(0x1f)), endless, magnitude);
        V::or(sign, magnitude)
    }
}
