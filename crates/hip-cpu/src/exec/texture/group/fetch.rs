//! `tex` for a group: coordinates, elements and weights as vectors, one step after the other for all lanes.
//!
//! What `sample` says for one lane is said here again for many: every result has the same bits. Coordinates that are
//! no numbers, or far away, are left to it.

use super::element::{Near, channel, decoded, element, straight};
use super::plan::{Axis, Decode, Edge, Plan, Scale};
use super::vector::{Vector, anew};

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
                unsafe { super::super::filter::corners::<$vector, D, C, PLAIN>(plan, lanes) }
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
pub unsafe fn layers<V: Vector>(plan: &Plan, lanes: &Lanes, at: usize) -> V::Int {
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
pub unsafe fn coordinate<V: Vector>(axis: &Axis, from: *const u32) -> (V::Float, V::Mask) {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let bits = V::load(from);
        let good = V::within(V::float(bits), axis.limit);
        (V::float(V::select(good, bits, V::splat(0))), good)
    }
}

/// A coordinate in elements, where that is exact in `f32`.
#[inline(always)]
pub unsafe fn short<V: Vector>(axis: &Axis, at: V::Float) -> Option<V::Float> {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        if axis.scale == Scale::Elements {
            return Some(at);
        }
        let short = axis.short?;
        let cut = V::floor_float(V::mul_float(at, V::splat_float(short.steps)));
        if axis.scale == Scale::Side {
            return Some(V::mul_float(cut, V::splat_float(short.step)));
        }
        let periods = V::floor_float(V::mul_float(cut, V::splat_float(short.per_period)));
        let cut = V::sub_float(cut, V::mul_float(periods, V::splat_float(short.period)));
        Some(V::mul_float(cut, V::splat_float(short.step)))
    }
}

/// A normalised coordinate as so many steps, cut as `sample::elements` does.
#[inline(always)]
pub unsafe fn steps<V: Vector>(axis: &Axis, at: V::Float) -> V::Double {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let cut = V::floor_double(V::mul_double(V::widen(at), V::splat_double(axis.steps)));
        match axis.scale {
            Scale::Wrapped => within::<V>(cut, axis.steps),
            Scale::Mirrored => within::<V>(cut, 2.0 * axis.steps),
            _ => cut,
        }
    }
}

/// The same in elements.
#[inline(always)]
pub unsafe fn elements<V: Vector>(axis: &Axis, at: V::Float) -> V::Double {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let at = V::mul_double(steps::<V>(axis, at), V::splat_double(axis.step));
        if axis.clamped {
            let side = V::splat_double(axis.side.into());
            return V::min_double(V::max_double(at, V::splat_double(0.0)), side);
        }
        at
    }
}

/// What is left of a number when whole periods, a power of two, are taken away.
#[inline(always)]
unsafe fn within<V: Vector>(at: V::Double, period: f64) -> V::Double {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let periods = V::floor_double(V::mul_double(at, V::splat_double(period.recip())));
        V::sub_double(at, V::mul_double(periods, V::splat_double(period)))
    }
}

/// The element that an index means, and whether it is none.
#[inline(always)]
pub unsafe fn addressed<V: Vector>(axis: &Axis, index: V::Int, outside: V::Mask) -> (V::Int, V::Mask) {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let (zero, side, last) = (V::splat(0), V::splat(axis.side), V::splat(axis.side - 1));
        if axis.edge == Edge::Wrap {
            // No further than a side away.
            let index = V::select(V::less(index, zero), V::add(index, side), index);
            return (V::select(V::less(last, index), V::sub(index, side), index), outside);
        }
        let index = if axis.edge == Edge::Mirror {
            V::select(V::less(last, index), V::sub(V::add(side, last), index), index)
        } else {
            index
        };
        let held = V::min(V::max(index, zero), last);
        if axis.edge == Edge::Border {
            return (held, V::either(outside, V::different(held, index)));
        }
        (held, outside)
    }
}

/// A dimension's index, wherever that is; the lanes whose coordinates are for `sample`.
#[inline(always)]
unsafe fn index<V: Vector, const D: usize>(
    nth: usize,
    plan: &Plan,
    float: bool,
    lanes: &Lanes,
    at: usize,
    indices: &mut [V::Int; D],
) -> u64 {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let axis = &plan.axes[nth];
        let from = lanes.coordinates.add(nth * lanes.step + at);
        if !float {
            indices[nth] = V::load(from);
            return 0;
        }
        let (coordinate, good) = coordinate::<V>(axis, from);
        indices[nth] = match short::<V>(axis, coordinate) {
            Some(elements) => V::floor_to_int(elements),
            None => V::floor_double_to_int(elements::<V>(axis, coordinate)),
        };
        bad::<V>(good) << at
    }
}

#[inline(always)]
unsafe fn nearest<V: Vector, const D: usize>(plan: &Plan, float: bool, lanes: &Lanes) -> u64 {
    let mut left = 0;
    let has_outside = plan.axes[..D].iter().any(|axis| axis.edge == Edge::Border);
    for at in (0..lanes.n).step_by(V::LANES) {
        // SAFETY: `fetch`'s caller promised.
        unsafe {
            // As for filters.
            let plan = anew(plan);
            let mut indices = [V::splat(0); D];
            left |= index::<V, D>(0, plan, float, lanes, at, &mut indices);
            if D > 1 {
                left |= index::<V, D>(1, plan, float, lanes, at, &mut indices);
            }
            if D > 2 {
                left |= index::<V, D>(2, plan, float, lanes, at, &mut indices);
            }
            let layer = layers::<V>(plan, lanes, at);
            let mut outside = V::no_lane();
            let words = if plan.element_bytes == 4
                && let Some(near) = Near::<V>::of(plan, &indices, layer, false)
            {
                [near.elements(); 4]
            } else {
                let plan = anew(plan);
                let mut offset = layer;
                for (nth, index) in indices.iter().enumerate() {
                    let axis = &plan.axes[nth];
                    let (index, beyond) = addressed::<V>(axis, *index, outside);
                    outside = beyond;
                    offset = V::add(offset, V::mul(index, V::splat(axis.stride)));
                }
                let bytes = plan.element_bytes;
                if bytes <= 4 && V::is_line(offset, bytes as i32) {
                    straight::<V, false>(plan, plan.data.offset(V::first(offset) as isize))
                } else {
                    element::<V, false>(plan, offset)
                }
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
pub unsafe fn bad<V: Vector>(good: V::Mask) -> u64 {
    // SAFETY: `fetch`'s caller promised.
    !unsafe { V::lanes(good) } & ((1 << V::LANES) - 1)
}
