//! A group's elements: loaded, and their channels decoded as `Image::texel` does.

use super::plan::{Decode, Plan};
use super::vector::{Vector, ahead};

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

/// Elements of 32 bits that are in two rows, and so near to each other there that two vectors of each row have all of
/// them: those of an image that is turned a little. None is outside.
pub struct Near<V: Vector> {
    /// The leftmost one's place, in the first row.
    at: *const u8,
    /// Bytes from one row to the next, and from one plane to the next.
    strides: [isize; 2],
    /// How many elements lanes have theirs behind `at`, but for the row.
    places: V::Int,
    is_in_second: V::Mask,
    has_second: bool,
    /// One vector has not all of a row's.
    is_wide: bool,
}

/// Of all: `fetch`'s caller promised.
impl<V: Vector> Near<V> {
    /// Of elements that `indices` lead to, and with `more` of the ones behind in all dimensions; `None` if it is not so.
    #[inline(always)]
    pub unsafe fn of<const D: usize>(
        plan: &Plan,
        indices: &[V::Int; D],
        layer: V::Int,
        more: bool,
    ) -> Option<Near<V>> {
        if V::LANES < 4 || D < 2 {
            return None;
        }
        // SAFETY: see above.
        unsafe {
            let extra = i64::from(more);
            let [x_axis, y_axis, z_axis] = &plan.axes;
            // Lanes along a line have the least index at an end. Where that is not so, distances are negative, and large
            // as unsigned numbers.
            let (columns, rows) = (indices[0], indices[1]);
            let x = V::first(columns).min(V::last(columns));
            let y = V::first(rows).min(V::last(rows));
            let down = V::sub(rows, V::splat(y));
            let places = V::sub(columns, V::splat(x));
            let room = i64::from(x_axis.side) - 1 - extra - i64::from(x);
            if x < 0 || y < 0 || room < 0 || i64::from(y) + 1 + extra >= y_axis.side.into() {
                return None;
            }
            let (mut first, mut z) = (V::first(layer) as isize, 0);
            if D > 2 {
                z = V::first(indices[2]);
                if z < 0 || i64::from(z) + extra >= z_axis.side.into() || !V::is_line(indices[2], 0) {
                    return None;
                }
            } else if !V::is_line(layer, 0) {
                return None;
            }
            let last = V::LANES as i64 - 1 - extra;
            let within = V::splat(last.min(room) as i32);
            let is_wide = !V::are_equal(places, V::min_unsigned(places, within));
            if is_wide {
                let within = V::splat((last + V::LANES as i64).min(room) as i32);
                if !V::are_equal(places, V::min_unsigned(places, within)) {
                    return None;
                }
            }
            if !V::are_equal(V::and(down, V::splat(!1)), V::splat(0)) {
                return None;
            }
            let strides = [y_axis.stride as isize, z_axis.stride as isize];
            first += 4 * x as isize + y as isize * strides[0] + z as isize * strides[1];
            let bytes = 4 * V::LANES as isize * (1 + isize::from(is_wide));
            let rows = isize::from(more) * (strides[0] + if D > 2 { strides[1] } else { 0 });
            if (first + rows + strides[0] + bytes) as i64 > plan.bytes {
                return None;
            }
            let is_in_second = V::equal(down, V::splat(1));
            let has_second = V::lanes(is_in_second) != 0;
            let at = plan.data.offset(first);
            if D == 2 {
                // The next lanes' are to the right, as a rule, and in so many rows that processors do not foresee it.
                ahead(at.wrapping_add(8 * V::LANES));
                ahead(at.wrapping_add(12 * V::LANES));
            }
            Some(Near { at, strides, places, is_in_second, has_second, is_wide })
        }
    }

    #[inline(always)]
    unsafe fn row<const WIDE: bool>(&self, place: isize, places: V::Int) -> V::Int {
        // SAFETY: see above.
        unsafe {
            let at = self.at.offset(place);
            let low = V::load(at.cast());
            if WIDE {
                let high = V::load(at.add(4 * V::LANES).cast());
                V::permuted_of_two([low, high], places)
            } else {
                V::permuted(low, places)
            }
        }
    }

    /// What lanes have in the one or the other row.
    #[inline(always)]
    unsafe fn own(&self, first: V::Int, second: V::Int) -> V::Int {
        // SAFETY: see above.
        unsafe { V::select(self.is_in_second, second, first) }
    }

    /// The lanes' elements.
    #[inline(always)]
    pub unsafe fn elements(&self) -> V::Int {
        // SAFETY: see above.
        unsafe {
            if self.is_wide {
                self.own(self.row::<true>(0, self.places), self.row::<true>(self.strides[0], self.places))
            } else {
                self.own(self.row::<false>(0, self.places), self.row::<false>(self.strides[0], self.places))
            }
        }
    }

    /// The lanes' elements and the ones behind, in two rows of a plane.
    #[inline(always)]
    pub unsafe fn square(&self, plane: isize) -> [[V::Int; 2]; 2] {
        // SAFETY: see above.
        unsafe {
            match (self.is_wide, self.has_second) {
                (false, false) => self.square_of::<false, false>(plane),
                (false, true) => self.square_of::<false, true>(plane),
                (true, false) => self.square_of::<true, false>(plane),
                (true, true) => self.square_of::<true, true>(plane),
            }
        }
    }

    #[inline(always)]
    unsafe fn square_of<const WIDE: bool, const TWO: bool>(&self, plane: isize) -> [[V::Int; 2]; 2] {
        // SAFETY: see above.
        unsafe {
            let (front, behind) = (self.places, V::add(self.places, V::splat(1)));
            let place = plane * self.strides[1];
            let below = place + self.strides[0];
            let first = [self.row::<WIDE>(place, front), self.row::<WIDE>(place, behind)];
            let second = [self.row::<WIDE>(below, front), self.row::<WIDE>(below, behind)];
            if !TWO {
                return [first, second];
            }
            let third = below + self.strides[0];
            let third = [self.row::<WIDE>(third, front), self.row::<WIDE>(third, behind)];
            [
                [self.own(first[0], second[0]), self.own(first[1], second[1])],
                [self.own(second[0], third[0]), self.own(second[1], third[1])],
            ]
        }
    }
}
