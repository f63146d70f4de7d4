//! Linear filters of a group: footprints and their sums.

use super::element::{Near, channel, decoded, element, straight};
use super::fetch::{Lanes, addressed, bad, coordinate, elements, layers, short, steps};
use super::plan::{Axis, Edge, Plan};
use super::vector::{Vector, anew};

/// i = floor(x - 1/2) and α = frac(x - 1/2) in 256ths, as one number i·256 + α.
#[inline(always)]
unsafe fn foot<V: Vector>(axis: &Axis, at: V::Float) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        if let Some(at) = short::<V>(axis, at) {
            let at = if axis.clamped {
                V::min_float(V::max_float(at, V::splat_float(0.0)), V::splat_float(axis.side as f32))
            } else {
                at
            };
            // floor(256 (x - 1/2) + 1/2) = floor((512 x - 255) / 2), in whole numbers.
            let twice = V::floor_to_int(V::mul_float(at, V::splat_float(512.0)));
            return V::right_signed(V::sub(twice, V::splat(255)), V::splat(1));
        }
        // floor(256 (x - 1/2) + 1/2)
        let fixed = if axis.clamped {
            V::fused(elements::<V>(axis, at), V::splat_double(256.0), V::splat_double(-127.5))
        } else {
            V::fused(steps::<V>(axis, at), V::splat_double(256.0 * axis.step), V::splat_double(-127.5))
        };
        V::floor_double_to_int(fixed)
    }
}

/// A linear filter in `D` dimensions of `C` channels, `PLAIN` where elements are floats.
#[inline(always)]
pub unsafe fn corners<V: Vector, const D: usize, const C: usize, const PLAIN: bool>(
    plan: &Plan,
    lanes: &Lanes,
) -> u64 {
    let mut left = 0;
    for at in (0..lanes.n).step_by(V::LANES) {
        // A group has few vectors: what is made out for all of them in advance, for each kind of axis, costs more than it
        // saves.
        let plan = anew(plan);
        // SAFETY: `fetch`'s caller promised.
        unsafe {
            let mut feet = Feet::<V, D> {
                layer: layers::<V>(plan, lanes, at),
                indices: [V::splat(0); D],
                offsets: [[V::splat(0); 2]; D],
                places: [V::splat(0); 2],
                alphas: [V::splat(0); 3],
                weights: [[V::splat(0); 2]; 4],
                outside: [[V::no_lane(); 2]; D],
                is_exact: [false; D],
                has_outside: false,
            };
            // Written out, here and below: the compiler then knows every place in the arrays, and they are registers.
            left |= feet.set(0, plan, lanes, at);
            if D > 1 {
                left |= feet.set(1, plan, lanes, at);
            }
            if D > 2 {
                left |= feet.set(2, plan, lanes, at);
            }
            feet.weigh();
            let mut sums = [V::splat_double(0.0); C];
            if PLAIN
                && !feet.is_exact[0]
                && D > 1
                && !feet.is_exact[1]
                && let Some(near) = Near::<V>::of(plan, &feet.indices, feet.layer, true)
            {
                let rows = near.square(0);
                feet.add_plain(0, &rows, &mut sums);
                if D > 2 && !feet.is_exact[2] {
                    feet.weigh_behind();
                    let rows = near.square(1);
                    feet.add_plain(2, &rows, &mut sums);
                }
            } else {
                feet.add_all::<C, PLAIN>(anew(plan), lanes.layer.is_some(), &mut sums);
            }
            // Weights are whole numbers so far. The sums were rounded as those of fractions are.
            let scale = V::splat_double(1.0 / 256.0);
            for nth in 0..4 {
                let value = match sums.get(nth) {
                    Some(sum) => {
                        let value = V::mul_double(*sum, scale);
                        let value = if !PLAIN && plan.parts > 0.0 {
                            V::div_float(V::narrow(whole::<V>(value)), V::splat_float(plan.parts as f32))
                        } else {
                            V::narrow(value)
                        };
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

/// A part of a weight, both in 256ths. (No closure: those have not the features of the functions around them.)
#[inline(always)]
unsafe fn part<V: Vector>(of: V::Int, weight: V::Int) -> V::Int {
    // SAFETY: `fetch`'s caller promised.
    unsafe { V::right_signed(V::add(V::mul_short(of, weight), V::splat(128)), V::splat(8)) }
}

/// The weights of a plane's two rows, of which `behind` is behind in x.
#[inline(always)]
unsafe fn rows<V: Vector>(plane: V::Int, behind: V::Int, y: V::Int) -> [[V::Int; 2]; 2] {
    // SAFETY: `fetch`'s caller promised.
    unsafe {
        let front = V::sub(plane, behind);
        let behind_below = part::<V>(behind, y);
        let front_above = part::<V>(front, V::sub(V::splat(256), y));
        [[front_above, V::sub(behind, behind_below)], [V::sub(front, front_above), behind_below]]
    }
}

/// The whole number next to one, the higher one of two that are as near.
#[inline(always)]
unsafe fn whole<V: Vector>(value: V::Double) -> V::Double {
    // SAFETY: `fetch`'s caller promised.
    unsafe { V::floor_double(V::add_double(value, V::splat_double(0.5))) }
}

/// How the lanes' elements lie in a filter's rows.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    /// One after the other, in the same rows.
    Straight,
    /// So near to each other, in the same rows of elements of 32 bits, that a vector of the row has them all.
    Near,
    /// The one behind follows the one in front.
    Adjacent,
    Scattered,
}

/// A filter's footprint: in each dimension the element in front and the one behind.
struct Feet<V: Vector, const D: usize> {
    layer: V::Int,
    /// Of the elements in front, wherever that is.
    indices: [V::Int; D],
    /// Where elements are that are not outside, in bytes.
    offsets: [[V::Int; 2]; D],
    /// Where lanes' elements, in front and behind, are in a vector that begins with the first lane's, if they are
    /// [`Way::Near`].
    places: [V::Int; 2],
    /// What the elements behind have, in 256ths.
    alphas: [V::Int; 3],
    /// What a row's two elements have, in 256ths.
    weights: [[V::Int; 2]; 4],
    outside: [[V::Mask; 2]; D],
    /// No lane's element behind has a weight: it has no part, then.
    is_exact: [bool; D],
    has_outside: bool,
}

/// Of all: `fetch`'s caller promised.
impl<V: Vector, const D: usize> Feet<V, D> {
    /// A dimension's part; the lanes whose coordinates are for `sample`.
    #[inline(always)]
    unsafe fn set(&mut self, nth: usize, plan: &Plan, lanes: &Lanes, at: usize) -> u64 {
        // SAFETY: see above.
        unsafe {
            let axis = &plan.axes[nth];
            let (coordinate, good) = coordinate::<V>(axis, lanes.coordinates.add(nth * lanes.step + at));
            let foot = foot::<V>(axis, coordinate);
            let alpha = V::and(foot, V::splat(255));
            self.alphas[nth] = alpha;
            self.is_exact[nth] = V::are_equal(alpha, V::splat(0));
            self.indices[nth] = V::right_signed(foot, V::splat(8));
            bad::<V>(good) << at
        }
    }

    /// Where a dimension's elements are.
    #[inline(always)]
    unsafe fn address(&mut self, nth: usize, plan: &Plan) {
        // SAFETY: see above.
        unsafe {
            let (axis, index) = (&plan.axes[nth], self.indices[nth]);
            let (held, beyond) = addressed::<V>(axis, index, V::no_lane());
            self.outside[nth][0] = beyond;
            self.offsets[nth][0] = V::mul(held, V::splat(axis.stride));
            if !self.is_exact[nth] {
                let (held, beyond) = addressed::<V>(axis, V::add(index, V::splat(1)), V::no_lane());
                self.outside[nth][1] = beyond;
                self.offsets[nth][1] = V::mul(held, V::splat(axis.stride));
            }
        }
    }

    /// As `sample::weights` does, in the first plane, if there are planes.
    #[inline(always)]
    unsafe fn weigh(&mut self) {
        // SAFETY: see above.
        unsafe {
            let ([x, y, z], all) = (self.alphas, V::splat(256));
            if D == 1 {
                self.weights[0] = [V::sub(all, x), x];
            } else if D == 2 {
                [self.weights[0], self.weights[1]] = rows::<V>(all, x, y);
            } else {
                let before = V::sub(all, z);
                [self.weights[0], self.weights[1]] = rows::<V>(before, part::<V>(before, x), y);
            }
        }
    }

    /// The same in the plane behind.
    #[inline(always)]
    unsafe fn weigh_behind(&mut self) {
        // SAFETY: see above.
        unsafe {
            let [x, y, z] = self.alphas;
            [self.weights[2], self.weights[3]] = rows::<V>(z, part::<V>(z, x), y);
        }
    }

    #[inline(always)]
    unsafe fn way(&mut self, stride: i32, is_layered: bool) -> Way {
        // SAFETY: see above.
        unsafe {
            let [front, behind] = self.offsets[0];
            let next = V::add(front, V::splat(stride));
            let follows = self.is_exact[0] || V::are_equal(next, behind);
            let has_one_row = (!is_layered || V::is_line(self.layer, 0))
                && (D < 2 || self.is_one(1))
                && (D < 3 || self.is_one(2));
            if has_one_row {
                if follows && V::is_line(front, stride) {
                    return Way::Straight;
                }
                // At an edge the same element may be in front and behind.
                let behind = if self.is_exact[0] { front } else { behind };
                let (first, last) = (V::splat(V::first(front)), V::splat(V::LANES as i32 - 1));
                self.places[0] = V::right(V::sub(front, first), V::splat(2));
                self.places[1] = V::right(V::sub(behind, first), V::splat(2));
                if stride == 4
                    && V::are_equal(self.places[0], V::min_unsigned(self.places[0], last))
                    && V::are_equal(self.places[1], V::min_unsigned(self.places[1], last))
                {
                    return Way::Near;
                }
            }
            if follows { Way::Adjacent } else { Way::Scattered }
        }
    }

    /// Whether a dimension's elements are the same for all lanes.
    #[inline(always)]
    unsafe fn is_one(&self, nth: usize) -> bool {
        // SAFETY: see above.
        unsafe {
            let [front, behind] = self.offsets[nth];
            V::is_line(front, 0) && (self.is_exact[nth] || V::is_line(behind, 0))
        }
    }

    /// Adds what all rows give.
    #[inline(always)]
    unsafe fn add_all<const C: usize, const PLAIN: bool>(
        &mut self,
        plan: &Plan,
        is_layered: bool,
        sums: &mut [V::Double; C],
    ) {
        // SAFETY: see above.
        unsafe {
            self.has_outside = plan.axes[..D].iter().any(|axis| axis.edge == Edge::Border);
            self.address(0, plan);
            if D > 1 {
                self.address(1, plan);
            }
            if D > 2 {
                self.address(2, plan);
            }
            let way = self.way(plan.axes[0].stride, is_layered);
            if D > 2 && !self.is_exact[2] {
                self.weigh_behind();
            }
            if PLAIN {
                self.add_row::<C, PLAIN>(plan, way, 0, sums);
                if D > 1 {
                    self.add_row::<C, PLAIN>(plan, way, 1, sums);
                }
                if D > 2 {
                    self.add_row::<C, PLAIN>(plan, way, 2, sums);
                    self.add_row::<C, PLAIN>(plan, way, 3, sums);
                }
            } else {
                for row in 0..1usize << (D - 1) {
                    self.add_row::<C, PLAIN>(plan, way, row, sums);
                }
            }
        }
    }

    /// Adds what two rows of floats give, from number `first` on.
    #[inline(always)]
    unsafe fn add_plain<const C: usize>(
        &self,
        first: usize,
        rows: &[[V::Int; 2]; 2],
        sums: &mut [V::Double; C],
    ) {
        // SAFETY: see above.
        unsafe {
            for (nth, row) in rows.iter().enumerate() {
                for (value, weight) in row.iter().zip(self.weights[first + nth]) {
                    sums[0] = V::fused(V::widen_int(weight), V::widen(V::float(*value)), sums[0]);
                }
            }
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
            let mut offset = self.layer;
            let behind = [row & 1, row >> 1];
            if D > 1 {
                if behind[0] == 1 && self.is_exact[1] {
                    return;
                }
                offset = V::add(offset, self.offsets[1][behind[0]]);
            }
            if D > 2 {
                if behind[1] == 1 && self.is_exact[2] {
                    return;
                }
                offset = V::add(offset, self.offsets[2][behind[1]]);
            }
            let count = if self.is_exact[0] { 1 } else { 2 };
            let pair = pair::<V, PLAIN>(plan, way, count, offset, &self.offsets[0], &self.places);
            let mut beyond = V::no_lane();
            if D > 1 {
                beyond = V::either(beyond, self.outside[1][row & 1]);
            }
            if D > 2 {
                beyond = V::either(beyond, self.outside[2][row >> 1]);
            }
            for (behind, words) in pair.iter().enumerate().take(count) {
                let weight = V::widen_int(self.weights[row][behind]);
                let beyond = V::either(beyond, self.outside[0][behind]);
                for (nth, sum) in sums.iter_mut().enumerate() {
                    let mut value =
                        if PLAIN { words[nth] } else { decoded::<V>(plan, channel::<V>(plan, words, nth)) };
                    if self.has_outside {
                        value = V::select(beyond, V::splat(plan.outside[nth].cast_signed()), value);
                    }
                    let mut value = V::widen(V::float(value));
                    if !PLAIN && plan.parts > 0.0 {
                        value = whole::<V>(V::mul_double(value, V::splat_double(plan.parts)));
                    }
                    *sum = V::fused(weight, value, *sum);
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
    places: &[V::Int; 2],
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
        let first = V::first(front);
        if way == Way::Near && i64::from(first) + 4 * V::LANES as i64 <= plan.bytes {
            let row = V::load(plan.data.offset(first as isize).cast());
            return [[V::permuted(row, places[0]); 4], [V::permuted(row, places[1]); 4]];
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
