//! A tensor where it lies in memory, and the ways between it and an array without gaps.

use std::borrow::Cow;

use crate::value::{Element, Kind, Value, with_element};

/// Sizes that a view may have: cuDNN's eight, and one more for channels that lie together in vectors.
pub const MOST: usize = 9;

/// Sizes and strides are counted in elements. A stride of 0 is a size that is repeated.
#[derive(Clone, Copy, Debug)]
pub struct View {
    at: *mut u8,
    kind: Kind,
    n: usize,
    sizes: [usize; MOST],
    strides: [isize; MOST],
}

// SAFETY: an address and numbers; what lies there is for the code that follows them.
unsafe impl Send for View {}
// SAFETY: as above.
unsafe impl Sync for View {}

/// Bytes of memory, lines of so many, from each of which to the next it is `pitch`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lines {
    pub at: *mut u8,
    pub count: usize,
    pub bytes: usize,
    pub pitch: usize,
}

/// A loop over one size: how often, and by how much each side goes on.
#[derive(Clone, Copy)]
struct Step {
    count: usize,
    dense: usize,
    stride: isize,
}

impl View {
    /// # Safety
    /// Memory has an element wherever sizes and strides lead from `at`, when it is read or written.
    pub unsafe fn new(at: *mut u8, kind: Kind, sizes: &[usize], strides: &[isize]) -> View {
        assert!(sizes.len() == strides.len() && sizes.len() <= MOST);
        let mut view = View { at, kind, n: sizes.len(), sizes: [1; MOST], strides: [0; MOST] };
        view.sizes[..sizes.len()].copy_from_slice(sizes);
        view.strides[..sizes.len()].copy_from_slice(strides);
        view
    }

    /// An array without gaps.
    ///
    /// # Safety
    /// As of [`View::new`].
    pub unsafe fn packed(at: *mut u8, kind: Kind, sizes: &[usize]) -> View {
        let mut ordered = [0; MOST];
        let mut stride = 1;
        for at in (0..sizes.len()).rev() {
            ordered[at] = stride;
            stride *= sizes[at] as isize;
        }
        // SAFETY: the caller's word.
        unsafe { View::new(at, kind, sizes, &ordered[..sizes.len()]) }
    }

    pub fn sizes(&self) -> &[usize] {
        &self.sizes[..self.n]
    }

    pub fn strides(&self) -> &[isize] {
        &self.strides[..self.n]
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn len(&self) -> usize {
        self.sizes().iter().product()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same elements with the size in the opposite direction.
    #[must_use]
    pub fn reversed(mut self, size: usize) -> View {
        let last = self.sizes[size].saturating_sub(1) as isize * self.strides[size];
        self.at = self.at.wrapping_offset(last * self.kind.bytes() as isize);
        self.strides[size] = -self.strides[size];
        self
    }

    /// A size of 1 is repeated where the other's is larger. The views have as many sizes.
    #[must_use]
    pub fn repeated(mut self, sizes: &[usize]) -> View {
        for (at, wanted) in sizes.iter().enumerate() {
            if self.sizes[at] == 1 && *wanted != 1 {
                (self.sizes[at], self.strides[at]) = (*wanted, 0);
            }
        }
        self
    }

    /// What has the place along the size, which it no longer has.
    #[must_use]
    pub fn part(mut self, size: usize, place: usize) -> View {
        assert!(size < self.n && place < self.sizes[size]);
        let offset = place as isize * self.strides[size] * self.kind.bytes() as isize;
        self.at = self.at.wrapping_offset(offset);
        self.sizes.copy_within(size + 1.., size);
        self.strides.copy_within(size + 1.., size);
        self.n -= 1;
        self
    }

    /// Sizes that follow each other without a gap are one.
    fn steps(&self) -> Vec<Step> {
        let mut steps: Vec<Step> = Vec::new();
        let mut dense = 1;
        for at in (0..self.n).rev() {
            let (count, stride) = (self.sizes[at], self.strides[at]);
            if count == 1 {
                continue;
            }
            match steps.last_mut() {
                Some(last) if last.stride * last.count as isize == stride => last.count *= count,
                _ => steps.push(Step { count, dense, stride }),
            }
            dense *= count;
        }
        if steps.is_empty() {
            steps.push(Step { count: 1, dense: 1, stride: 1 });
        }
        steps
    }

    /// Whether it is an array without gaps of the type that is computed in.
    pub fn is_dense<V: Value>(&self) -> bool {
        let steps = self.steps();
        self.kind == V::KIND && steps.len() == 1 && (steps[0].stride == 1 || steps[0].count == 1)
    }

    /// Calls `body` for runs of elements that together are all: place in the dense array, offset in memory, how many, strides of both. No
    /// two calls have an element in common, and they are shared among cores.
    fn runs(&self, body: impl Fn(usize, isize, usize, usize, isize) + Sync) {
        let steps = self.steps();
        let inner = steps[0];
        // What is next to each other in memory is read together, a block of the innermost size at a time.
        let fastest = (1..steps.len()).min_by_key(|&at| steps[at].stride.unsigned_abs());
        let fast = fastest.filter(|&at| steps[at].stride.unsigned_abs() < inner.stride.unsigned_abs());
        let rest: Vec<Step> = (1..steps.len()).filter(|at| Some(*at) != fast).map(|at| steps[at]).collect();
        let fast = fast.map_or(Step { count: 1, dense: 0, stride: 0 }, |at| steps[at]);
        let block = if fast.count > 1 { 64 } else { 1 << 14 };
        let blocks = inner.count.div_ceil(block);
        let outer: usize = rest.iter().map(|step| step.count).product();
        crate::parallel(outer * blocks, block.min(inner.count) * fast.count, |number| {
            let (mut left, first) = (number / blocks, number % blocks * block);
            let (mut dense, mut offset) = (first * inner.dense, first as isize * inner.stride);
            for step in &rest {
                let place = left % step.count;
                left /= step.count;
                dense += place * step.dense;
                offset += place as isize * step.stride;
            }
            let count = block.min(inner.count - first);
            for place in 0..fast.count {
                let dense = dense + place * fast.dense;
                body(dense, offset + place as isize * fast.stride, count, inner.dense, inner.stride);
            }
        });
    }

    /// Calls `body` with each element's place in the dense array and in memory, one after the other.
    fn places(&self, body: &mut dyn FnMut(usize, isize)) {
        let steps = self.steps();
        let (inner, rest) = (steps[0], &steps[1..]);
        for number in 0..rest.iter().map(|step| step.count).product() {
            let (mut left, mut dense, mut offset) = (number, 0, 0);
            for step in rest {
                let place = left % step.count;
                left /= step.count;
                dense += place * step.dense;
                offset += place as isize * step.stride;
            }
            for place in 0..inner.count {
                body(dense + place * inner.dense, offset + place as isize * inner.stride);
            }
        }
    }

    /// The elements in their order.
    ///
    /// # Safety
    /// Memory has them, and nobody writes them meanwhile.
    pub unsafe fn load<V: Value>(&self) -> Vec<V> {
        let count = self.len();
        if let Some(code) = self.kind.code() {
            let mut values = vec![V::zero(); count];
            self.places(&mut |dense, offset| {
                // SAFETY: the caller's word.
                values[dense] = V::of(unsafe { code.read(self.at, offset) });
            });
            return values;
        }
        let mut values: Vec<V> = Vec::with_capacity(count);
        if count > 0 {
            let to = Shared(values.as_mut_ptr());
            with_element!(self.kind, E => {
                let from = Shared(self.at.cast::<E>());
                self.runs(|dense, offset, count, step, stride| {
                    // SAFETY: the caller's word, and the places of runs are within the array's capacity.
                    unsafe { load_run(from.get().offset(offset), stride, to.get().add(dense), step, count) };
                });
            });
        }
        // SAFETY: the runs have written all.
        unsafe { values.set_len(count) };
        values
    }

    /// The elements in their order: those in memory, if they lie so.
    ///
    /// # Safety
    /// As of [`View::load`], as long as the answer is used.
    pub unsafe fn dense<'m, V: Value>(&self) -> Cow<'m, [V]> {
        if self.is_dense::<V>() && !self.is_empty() {
            // SAFETY: the caller's word.
            Cow::Borrowed(unsafe { core::slice::from_raw_parts(self.at.cast::<V>(), self.len()) })
        } else {
            // SAFETY: as above.
            Cow::Owned(unsafe { self.load() })
        }
    }

    /// Memory becomes `alpha·values + beta·memory`; it is not read where `beta` is 0.
    ///
    /// # Safety
    /// Memory has the elements, and nobody else uses them meanwhile.
    pub unsafe fn store<V: Value>(&self, values: &[V], alpha: V, beta: V) {
        assert_eq!(values.len(), self.len());
        if values.is_empty() {
            return;
        }
        if let Some(code) = self.kind.code() {
            // Cores would meet in a byte.
            self.places(&mut |dense, offset| {
                // SAFETY: the caller's word.
                unsafe {
                    let old = if beta.is_zero() { 0.0 } else { beta.get() * code.read(self.at, offset) };
                    code.write(self.at, offset, (alpha * values[dense]).get() + old);
                }
            });
            return;
        }
        let from = Shared(values.as_ptr().cast_mut());
        with_element!(self.kind, E => {
            let to = Shared(self.at.cast::<E>());
            self.runs(|dense, offset, count, step, stride| {
                // SAFETY: the caller's word.
                unsafe { store_run(to.get().offset(offset), stride, from.get().add(dense), step, count, alpha, beta) };
            });
        });
    }

    /// Has `write` give the elements their new values, which are the old ones times `beta` when it gets them, if it is not 0: in memory, if
    /// they lie there without gaps.
    ///
    /// # Safety
    /// As of [`View::store`].
    pub unsafe fn update<V: Value>(&self, beta: V, write: impl FnOnce(&mut [V], V)) {
        if self.is_empty() {
            return;
        }
        if self.is_dense::<V>() {
            // SAFETY: the caller's word.
            write(unsafe { core::slice::from_raw_parts_mut(self.at.cast::<V>(), self.len()) }, beta);
        } else {
            let mut values = vec![V::zero(); self.len()];
            write(&mut values, V::zero());
            // SAFETY: as above.
            unsafe { self.store(&values, V::one(), beta) };
        }
    }
}

/// Elements that are worked on at a time: three arrays of them stay in a core's first-level cache.
const BLOCK: usize = 2048;

impl View {
    /// The same elements in the order of memory, if they lie there without gaps and those of all the others lie in the same way.
    fn flat<const N: usize>(&self, others: &[View; N]) -> Option<usize> {
        if core::iter::once(self).chain(others).any(|view| view.kind.code().is_some()) {
            return None;
        }
        let alike = |other: &View| other.sizes() == self.sizes() && other.strides() == self.strides();
        let mut order: Vec<usize> = (0..self.n).filter(|&at| self.sizes[at] != 1).collect();
        order.sort_by_key(|&at| self.strides[at]);
        let mut count = 1;
        for at in order {
            if self.strides[at] != count as isize {
                return None;
            }
            count *= self.sizes[at];
        }
        others.iter().all(alike).then_some(count)
    }

    /// Memory becomes `alpha·f(inputs) + beta·memory`, where `f` is asked for some elements at a time: it gets those of each input, and
    /// leaves what is made of them in the first. The sizes are the same, and memory may be that of an input which lies in the same way.
    ///
    /// # Safety
    /// The views' memory is there, and nobody else writes it meanwhile.
    pub unsafe fn each<V: Value, const N: usize>(
        &self,
        inputs: [View; N],
        alpha: V,
        beta: V,
        f: impl Fn([&mut [V]; N]) + Sync + Send,
    ) {
        if self.is_empty() {
            return;
        }
        let Some(count) = self.flat(&inputs) else {
            // SAFETY: the caller's word.
            let mut arrays = inputs.map(|input| unsafe { input.load::<V>() });
            let (count, at) = (self.len(), arrays.each_mut().map(|array| Shared(array.as_mut_ptr())));
            crate::parallel(count.div_ceil(BLOCK), BLOCK, |block| {
                let (first, n) = (block * BLOCK, BLOCK.min(count - block * BLOCK));
                // SAFETY: within the arrays, and blocks have no element in common.
                f(at.each_ref().map(|at| unsafe { core::slice::from_raw_parts_mut(at.get().add(first), n) }));
            });
            // SAFETY: as above.
            return unsafe { self.store(&arrays[0], alpha, beta) };
        };
        // A core takes so many blocks at a time.
        const TURN: usize = 8;
        let blocks = count.div_ceil(BLOCK);
        crate::parallel(blocks.div_ceil(TURN), TURN * BLOCK, |turn| {
            let mut room = [[V::zero(); BLOCK]; N];
            for block in (turn * TURN..blocks).take(TURN) {
                let first = block * BLOCK;
                let n = BLOCK.min(count - first);
                for (input, room) in inputs.iter().zip(&mut room) {
                    // SAFETY: the caller's word, and the block is within what lies there.
                    unsafe { input.read_block(first, &mut room[..n]) };
                }
                f(room.each_mut().map(|room| &mut room[..n]));
                // SAFETY: as above; blocks have no element in common.
                unsafe { self.write_block(first, &room[0][..n], alpha, beta) };
            }
        });
    }

    /// # Safety
    /// So many elements lie behind the place.
    unsafe fn read_block<V: Value>(&self, first: usize, to: &mut [V]) {
        with_element!(self.kind, E => {
            // SAFETY: the caller's word.
            unsafe { load_run(self.at.cast::<E>().add(first), 1, to.as_mut_ptr(), 1, to.len()) };
        });
    }

    /// # Safety
    /// As of [`View::read_block`].
    unsafe fn write_block<V: Value>(&self, first: usize, from: &[V], alpha: V, beta: V) {
        with_element!(self.kind, E => {
            let to = self.at.cast::<E>();
            // SAFETY: the caller's word.
            unsafe { store_run(to.add(first), 1, from.as_ptr(), 1, from.len(), alpha, beta) };
        });
    }

    /// The bytes in which its elements lie, with all that is between elements of one line.
    pub fn lines(&self) -> Lines {
        let (mut first, mut steps) = (0, Vec::new());
        for (&size, &stride) in self.sizes().iter().zip(self.strides()) {
            if size == 0 {
                return Lines { at: self.at, count: 0, bytes: 0, pitch: 0 };
            }
            first += stride.min(0) * (size - 1) as isize;
            if size > 1 && stride != 0 {
                steps.push((stride.unsigned_abs(), size));
            }
        }
        steps.sort_unstable();
        // Sizes that are one in memory are one: the last is of what lies furthest apart.
        steps.dedup_by(|next, last| {
            let is_one = next.0 == last.0 * last.1;
            last.1 *= if is_one { next.1 } else { 1 };
            is_one
        });
        let bits = self.kind.bits();
        let bytes = |elements: usize| (elements * bits).div_ceil(8);
        let span =
            |steps: &[(usize, usize)]| 1 + steps.iter().map(|(by, size)| by * (size - 1)).sum::<usize>();
        let at = self.at.wrapping_offset((first * bits as isize).div_euclid(8));
        match steps.split_last() {
            Some(((pitch, count), within)) if (pitch * bits).is_multiple_of(8) && *pitch > span(within) => {
                Lines { at, count: *count, bytes: bytes(span(within)), pitch: bytes(*pitch) }
            }
            _ => Lines { at, count: 1, bytes: bytes(span(&steps)), pitch: bytes(span(&steps)) },
        }
    }

    /// The same elements where the first byte of its [`Lines`], which is at `first`, is at `to`.
    #[must_use]
    pub fn moved(mut self, first: *mut u8, to: *mut u8) -> View {
        self.at = to.wrapping_add(self.at.addr() - first.addr());
        self
    }

    /// The bytes between which its elements lie.
    fn extent(&self) -> (usize, usize) {
        let (mut low, mut high) = (self.at.addr() as isize, self.at.addr() as isize);
        for (&size, &stride) in self.sizes().iter().zip(self.strides()) {
            let far = (size.max(1) - 1) as isize * stride * self.kind.bytes() as isize;
            if far < 0 { low += far } else { high += far }
        }
        (low as usize, high as usize + self.kind.bytes())
    }

    fn meets(&self, other: &View) -> bool {
        let ((low, high), (first, end)) = (self.extent(), other.extent());
        low < end && first < high
    }

    /// Memory becomes `alpha·values + beta·memory`, where `write` gives all values, which it finds as anything: in memory, if that lies
    /// without gaps and apart from what they are made of.
    ///
    /// # Safety
    /// As of [`View::store`].
    pub unsafe fn make<V: Value>(&self, alpha: V, beta: V, of: &[View], write: impl FnOnce(&mut [V])) {
        if self.is_empty() {
            return;
        }
        let is_apart = !of.iter().any(|other| self.meets(other));
        if is_apart && alpha == V::one() && beta.is_zero() && self.is_dense::<V>() {
            // SAFETY: the caller's word.
            write(unsafe { core::slice::from_raw_parts_mut(self.at.cast::<V>(), self.len()) });
        } else {
            let mut values = vec![V::zero(); self.len()];
            write(&mut values);
            // SAFETY: as above.
            unsafe { self.store(&values, alpha, beta) };
        }
    }
}

/// An address that goes to other cores with a closure.
#[derive(Clone, Copy)]
pub(crate) struct Shared<T>(pub *mut T);

// SAFETY: an address is a number until it is followed.
unsafe impl<T> Send for Shared<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Shared<T> {}

impl<T> Shared<T> {
    pub fn get(&self) -> *mut T {
        self.0
    }
}

/// # Safety
/// Both sides have the places.
#[inline(always)]
unsafe fn load_run<E: Element, V: Value>(
    from: *const E,
    stride: isize,
    to: *mut V,
    step: usize,
    count: usize,
) {
    // SAFETY: the caller's word.
    unsafe {
        if stride == 1 && step == 1 {
            (0..count).for_each(|i| to.add(i).write(from.add(i).read().load()));
        } else {
            (0..count).for_each(|i| to.add(i * step).write(from.offset(i as isize * stride).read().load()));
        }
    }
}

/// # Safety
/// Both sides have the places.
#[inline(always)]
unsafe fn store_run<E: Element, V: Value>(
    to: *mut E,
    stride: isize,
    from: *const V,
    step: usize,
    count: usize,
    alpha: V,
    beta: V,
) {
    // SAFETY: the caller's word.
    unsafe {
        if beta.is_zero() {
            (0..count).for_each(|i| {
                to.offset(i as isize * stride).write(E::store(alpha * from.add(i * step).read()));
            });
        } else {
            (0..count).for_each(|i| {
                let place = to.offset(i as isize * stride);
                let old: V = place.read().load();
                place.write(E::store(alpha * from.add(i * step).read() + beta * old));
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(of: &mut [f32], sizes: &[usize], strides: &[isize]) -> View {
        // SAFETY: the tests' strides stay in the array.
        unsafe { View::new(of.as_mut_ptr().cast(), Kind::F32, sizes, strides) }
    }

    #[test]
    fn what_lies_in_another_order_is_gathered_and_scattered() {
        // N, H, W, C in memory.
        let (n, c, h, w) = (2, 3, 70, 2);
        let mut memory: Vec<f32> = (0..n * c * h * w).map(|i| i as f32).collect();
        let strides = [(c * h * w) as isize, 1, (c * w) as isize, c as isize];
        let tensor = view(&mut memory, &[n, c, h, w], &strides);
        assert!(!tensor.is_dense::<f32>());
        // SAFETY: the array is there.
        let values: Vec<f64> = unsafe { tensor.load() };
        let mut expected = Vec::new();
        for i in 0..n {
            for j in 0..c {
                for k in 0..h {
                    for l in 0..w {
                        expected.push((((i * h + k) * w + l) * c + j) as f64);
                    }
                }
            }
        }
        assert_eq!(values, expected);
        // SAFETY: as above.
        unsafe { tensor.store(&values, 2.0, 1.0) };
        assert!(memory.iter().enumerate().all(|(i, &value)| value == 3.0 * i as f32));
    }

    #[test]
    fn a_views_lines_are_what_lies_together() {
        let mut memory = [0.0_f32; 200];
        let start = memory.as_mut_ptr().cast::<u8>();
        let lines = |kind, sizes: &[usize], strides: &[isize]| {
            // SAFETY: nothing is followed.
            let view = unsafe { View::new(start.wrapping_add(4), kind, sizes, strides) };
            let lines = view.lines();
            assert_eq!(view.moved(lines.at, lines.at.wrapping_add(8)).lines().at, lines.at.wrapping_add(8));
            (lines.at.addr() as isize - start.addr() as isize, lines.count, lines.bytes, lines.pitch)
        };
        // In one order or the other without gaps; repeated; of one element; of none.
        assert_eq!(lines(Kind::F32, &[2, 3, 4], &[12, 4, 1]), (4, 1, 96, 96));
        assert_eq!(lines(Kind::F32, &[2, 3, 4], &[12, 1, 3]), (4, 1, 96, 96));
        assert_eq!(lines(Kind::F32, &[5, 3], &[0, 1]), (4, 1, 12, 12));
        assert_eq!(lines(Kind::F64, &[1, 1], &[7, 3]), (4, 1, 8, 8));
        assert_eq!(lines(Kind::F64, &[3, 0], &[7, 3]).1, 0);
        // Three of eight channels where these are the outer size, and where they are the inner one.
        assert_eq!(lines(Kind::F32, &[2, 3, 4], &[32, 4, 1]), (4, 2, 48, 128));
        assert_eq!(lines(Kind::F16, &[2, 3, 4], &[32, 1, 8]), (4, 8, 6, 16));
        // Gaps within lines are in them.
        assert_eq!(lines(Kind::I8, &[4, 2, 2], &[100, 20, 2]), (4, 4, 23, 100));
        // Backwards: the first byte is that of the last element.
        assert_eq!(lines(Kind::F32, &[3, 2], &[2, -1]), (0, 1, 24, 24));
        // Bits and halves of bytes: lines that begin within a byte are one.
        assert_eq!(lines(Kind::Bit, &[11], &[1]), (4, 1, 2, 2));
        assert_eq!(lines(Kind::E2M1, &[3, 2], &[3, 1]), (4, 1, 4, 4));
        assert_eq!(lines(Kind::E2M1, &[3, 2], &[4, 1]), (4, 3, 1, 2));
    }

    #[test]
    fn sizes_are_repeated_and_reversed() {
        let mut memory = [1.0f32, 2.0, 3.0];
        let row = view(&mut memory, &[1, 3], &[3, 1]);
        // SAFETY: the array is there.
        let values: Vec<f32> = unsafe { row.repeated(&[2, 3]).reversed(1).load() };
        assert_eq!(values, [3.0, 2.0, 1.0, 3.0, 2.0, 1.0]);
        // SAFETY: as above.
        assert!(matches!(unsafe { row.dense::<f32>() }, Cow::Borrowed(_)));
    }
}
