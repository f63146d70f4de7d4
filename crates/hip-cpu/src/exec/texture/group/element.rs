//! A group's elements: loaded, and their channels decoded as `Image::texel` does.

use super::plan::{Decode, Plan};
use super::vector::Vector;

/// Elements that follow one another, of 32 bits at most.
#[inline(always)]
pub unsafe fn straight<V: Vector, const PLAIN: bool>(plan: &Plan, from: *const u8) -> [V::Int; 4] {
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
pub unsafe fn element<V: Vector, const PLAIN: bool>(plan: &Plan, offset: V::Int) -> [V::Int; 4] {
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
pub unsafe fn channel<V: Vector>(plan: &Plan, words: &[V::Int; 4], nth: usize) -> V::Int {
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
pub unsafe fn decoded<V: Vector>(plan: &Plan, raw: V::Int) -> V::Int {
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
