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

/// Elements of 32 bits that are in few rows, and so near to each other there that two vectors of each row have all of
/// them: those of an image that is turned a little. None is outside.
pub struct Near<V: Vector> {
    /// The leftmost one's place, in the first row.
    at: *const u8,
    /// Bytes from one row to the next, and from one plane to the next.
    strides: [isize; 2],
    /// How many elements lanes have theirs to the right of `at`, and how many rows below.
    places: V::Int,
    down: V::Int,
    is_in_second: V::Mask,
    has_second: bool,
    /// No element is more rows below, and it is one at least.
    deepest: i32,
    /// One vector has not all of a row's.
    is_wide: bool,
}

/// Of all: `fetch`'s caller promised.
impl<V: Vector> Near<V> {
    /// With more rows than that, loading the elements one by one takes no longer.
    const DEEPEST: u32 = V::LANES as u32 / 2;

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
            // Two rows are the most usual, and asked for first: the answer needs no number made out of the lanes'.
            let in_two = V::are_equal(V::and(down, V::splat(!1)), V::splat(0));
            let deepest = if in_two {
                1
            } else {
                let deepest = V::first(rows).abs_diff(V::last(rows));
                let within = V::splat(deepest.min(Self::DEEPEST).cast_signed());
                if !V::are_equal(down, V::min_unsigned(down, within)) {
                    return None;
                }
                deepest.min(Self::DEEPEST).cast_signed()
            };
            let lowest = i64::from(y) + i64::from(deepest) + extra;
            if x < 0 || y < 0 || room < 0 || lowest >= y_axis.side.into() {
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
            let strides = [y_axis.stride as isize, z_axis.stride as isize];
            first += 4 * x as isize + y as isize * strides[0] + z as isize * strides[1];
            let bytes = 4 * V::LANES as isize * (1 + isize::from(is_wide));
            let last = deepest as isize * strides[0]
                + isize::from(more) * (strides[0] + if D > 2 { strides[1] } else { 0 });
            if (first + last + bytes) as i64 > plan.bytes {
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
            Some(Near { at, strides, places, down, is_in_second, has_second, deepest, is_wide })
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

    /// The lanes' elements.
    #[inline(always)]
    pub unsafe fn elements(&self) -> V::Int {
        // SAFETY: see above.
        unsafe { if self.is_wide { self.elements_of::<true>() } else { self.elements_of::<false>() } }
    }

    #[inline(always)]
    unsafe fn elements_of<const WIDE: bool>(&self) -> V::Int {
        // SAFETY: see above.
        unsafe {
            // No jump says whether it is one row.
            let first = self.row::<WIDE>(0, self.places);
            let second = self.row::<WIDE>(self.strides[0], self.places);
            let mut all = V::select(self.is_in_second, second, first);
            for nth in 2..=self.deepest {
                let own = V::equal(self.down, V::splat(nth));
                all = V::select(own, self.row::<WIDE>(nth as isize * self.strides[0], self.places), all);
            }
            all
        }
    }

    /// The lanes' elements and the ones behind, in two rows of a plane.
    #[inline(always)]
    pub unsafe fn square(&self, plane: isize) -> [[V::Int; 2]; 2] {
        // SAFETY: see above.
        unsafe { if self.is_wide { self.square_of::<true>(plane) } else { self.square_of::<false>(plane) } }
    }

    #[inline(always)]
    unsafe fn square_of<const WIDE: bool>(&self, plane: isize) -> [[V::Int; 2]; 2] {
        // SAFETY: see above.
        unsafe {
            let (front, behind) = (self.places, V::add(self.places, V::splat(1)));
            let mut place = plane * self.strides[1];
            let mut above = [self.row::<WIDE>(place, front), self.row::<WIDE>(place, behind)];
            place += self.strides[0];
            let mut row = [self.row::<WIDE>(place, front), self.row::<WIDE>(place, behind)];
            let mut below = row;
            if !self.has_second && self.deepest == 1 {
                return [above, below];
            }
            place += self.strides[0];
            let mut next = [self.row::<WIDE>(place, front), self.row::<WIDE>(place, behind)];
            let own = self.is_in_second;
            above = [V::select(own, row[0], above[0]), V::select(own, row[1], above[1])];
            below = [V::select(own, next[0], below[0]), V::select(own, next[1], below[1])];
            for nth in 2..=self.deepest {
                place += self.strides[0];
                row = next;
                next = [self.row::<WIDE>(place, front), self.row::<WIDE>(place, behind)];
                let own = V::equal(self.down, V::splat(nth));
                above = [V::select(own, row[0], above[0]), V::select(own, row[1], above[1])];
                below = [V::select(own, next[0], below[0]), V::select(own, next[1], below[1])];
            }
            [above, below]
        }
    }
}
