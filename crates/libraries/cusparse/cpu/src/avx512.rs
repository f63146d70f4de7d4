//! Products of real numbers with AVX-512's instructions: gathers, and vectors whose last lanes are masked off.
//!
//! The rule: the numbers are those of the loops for any processor, sum by sum; a lane whose index points out of its slice is not read.

#![cfg(target_arch = "x86_64")]
#![expect(unsafe_code, reason = "these instructions take addresses")]

use core::any::TypeId;
use core::arch::x86_64::*;

use crate::isa::Avx512;
use crate::triangle::Diagonal;
use crate::{Index, Scalar, SharedRows};

fn same<A: 'static, B: 'static>() -> bool {
    TypeId::of::<A>() == TypeId::of::<B>()
}

/// A mask of the first lanes.
#[inline(always)]
fn first(count: usize) -> u16 {
    if count < 16 { (1 << count) - 1 } else { 0xffff }
}

/// The values that are gathered from.
pub(crate) struct Gather<'a, C> {
    x: &'a [C],
    base: usize,
    /// Lanes whose index pointed out of `x`: nothing was read for them.
    bad: __mmask8,
}

impl<'a, C: Scalar> Gather<'a, C> {
    /// None for values of a type that is not gathered.
    #[inline(always)]
    pub fn new(_has: Avx512, x: &'a [C], base: usize) -> Option<Self> {
        let is_known = same::<C, f32>() || same::<C, f64>();
        // Indices of 32 bits have a sign.
        (is_known && base <= 1 && x.len() <= i32::MAX as usize).then_some(Gather { x, base, bad: 0 })
    }

    /// For each of eight rows whose entries begin there, and end where the next one's begin, the sums of every eighth product, and then of
    /// those. Real numbers have no conjugated ones.
    #[inline(always)]
    pub fn dots<I: Index>(&mut self, begins: &[usize; 9], indices: &[I], values: &[C]) -> [C; 8] {
        let mut is_in_order = true;
        for row in 0..8 {
            is_in_order &= begins[row] <= begins[row + 1];
        }
        assert!(is_in_order && begins[8] <= indices.len().min(values.len()), "a row ends behind its begin");
        // SAFETY: `Avx512`; the rows are in the slices; types are asked for.
        unsafe {
            if same::<C, f32>() {
                let x = self.x.as_ptr().cast::<f32>();
                let mut sums = [_mm256_setzero_ps(); 8];
                for row in 0..8 {
                    let (mut at, end) = (begins[row], begins[row + 1]);
                    while at < end {
                        let lanes = first(end - at) as __mmask8;
                        let gathered = if same::<I, i32>() {
                            let (places, lanes) = self.narrow(indices.as_ptr().add(at).cast(), lanes);
                            _mm256_mmask_i32gather_ps::<4>(_mm256_setzero_ps(), lanes, places, x)
                        } else {
                            let (places, lanes) = self.wide(indices.as_ptr().add(at).cast(), lanes);
                            _mm512_mask_i64gather_ps::<4>(_mm256_setzero_ps(), lanes, places, x)
                        };
                        let factors = _mm256_maskz_loadu_ps(lanes, values.as_ptr().add(at).cast());
                        sums[row] = _mm256_add_ps(sums[row], _mm256_mul_ps(factors, gathered));
                        at += 8;
                    }
                }
                // Of each two rows the sums of lanes four apart, of each four those of lanes two apart, and of all eight the rest.
                let (mut fours, mut twos) = ([sums[0]; 4], [sums[0]; 2]);
                for pair in 0..4 {
                    let (a, b) = (sums[2 * pair], sums[2 * pair + 1]);
                    let (low, high) =
                        (_mm256_permute2f128_ps::<0x20>(a, b), _mm256_permute2f128_ps::<0x31>(a, b));
                    fours[pair] = _mm256_add_ps(low, high);
                }
                for pair in 0..2 {
                    let (a, b) = (fours[2 * pair], fours[2 * pair + 1]);
                    let low = _mm256_shuffle_ps::<0b01_00_01_00>(a, b);
                    let high = _mm256_shuffle_ps::<0b11_10_11_10>(a, b);
                    twos[pair] = _mm256_add_ps(low, high);
                }
                let even = _mm256_shuffle_ps::<0b10_00_10_00>(twos[0], twos[1]);
                let odd = _mm256_shuffle_ps::<0b11_01_11_01>(twos[0], twos[1]);
                // They lie as the rows 0, 2, 4, 6, 1, 3, 5, 7.
                let order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
                core::mem::transmute_copy(&_mm256_permutevar8x32_ps(_mm256_add_ps(even, odd), order))
            } else {
                let x = self.x.as_ptr().cast::<f64>();
                let mut sums = [_mm512_setzero_pd(); 8];
                for row in 0..8 {
                    let (mut at, end) = (begins[row], begins[row + 1]);
                    while at < end {
                        let lanes = first(end - at) as __mmask8;
                        let gathered = if same::<I, i32>() {
                            let (places, lanes) = self.narrow(indices.as_ptr().add(at).cast(), lanes);
                            _mm512_mask_i32gather_pd::<8>(_mm512_setzero_pd(), lanes, places, x)
                        } else {
                            let (places, lanes) = self.wide(indices.as_ptr().add(at).cast(), lanes);
                            _mm512_mask_i64gather_pd::<8>(_mm512_setzero_pd(), lanes, places, x)
                        };
                        let factors = _mm512_maskz_loadu_pd(lanes, values.as_ptr().add(at).cast());
                        sums[row] = _mm512_add_pd(sums[row], _mm512_mul_pd(factors, gathered));
                        at += 8;
                    }
                }
                let (mut fours, mut twos) = ([sums[0]; 4], [sums[0]; 2]);
                for pair in 0..4 {
                    let (a, b) = (sums[2 * pair], sums[2 * pair + 1]);
                    let low = _mm512_shuffle_f64x2::<0b01_00_01_00>(a, b);
                    let high = _mm512_shuffle_f64x2::<0b11_10_11_10>(a, b);
                    fours[pair] = _mm512_add_pd(low, high);
                }
                for pair in 0..2 {
                    let (a, b) = (fours[2 * pair], fours[2 * pair + 1]);
                    let even = _mm512_shuffle_f64x2::<0b10_00_10_00>(a, b);
                    let odd = _mm512_shuffle_f64x2::<0b11_01_11_01>(a, b);
                    twos[pair] = _mm512_add_pd(even, odd);
                }
                let (low, high) =
                    (_mm512_unpacklo_pd(twos[0], twos[1]), _mm512_unpackhi_pd(twos[0], twos[1]));
                // They lie as the rows 0, 4, 1, 5, 2, 6, 3, 7.
                let order = _mm512_setr_epi64(0, 2, 4, 6, 1, 3, 5, 7);
                core::mem::transmute_copy(&_mm512_permutexvar_pd(order, _mm512_add_pd(low, high)))
            }
        }
    }

    /// Places behind indices of 32 bits, and the lanes whose places are in the slice.
    ///
    /// # Safety
    /// The lanes' indices can be read.
    #[inline(always)]
    unsafe fn narrow(&mut self, at: *const i32, lanes: __mmask8) -> (__m256i, __mmask8) {
        // SAFETY: the caller's promise.
        unsafe {
            let places = _mm256_maskz_loadu_epi32(lanes, at);
            let places = _mm256_sub_epi32(places, _mm256_set1_epi32(self.base as i32));
            let inside = _mm256_mask_cmplt_epu32_mask(lanes, places, _mm256_set1_epi32(self.x.len() as i32));
            self.bad |= lanes ^ inside;
            (places, inside)
        }
    }

    /// As [`Self::narrow`], of 64 bits.
    ///
    /// # Safety
    /// The lanes' indices can be read.
    #[inline(always)]
    unsafe fn wide(&mut self, at: *const i64, lanes: __mmask8) -> (__m512i, __mmask8) {
        // SAFETY: the caller's promise.
        unsafe {
            let places = _mm512_maskz_loadu_epi64(lanes, at);
            let places = _mm512_sub_epi64(places, _mm512_set1_epi64(self.base as i64));
            let inside = _mm512_mask_cmplt_epu64_mask(lanes, places, _mm512_set1_epi64(self.x.len() as i64));
            self.bad |= lanes ^ inside;
            (places, inside)
        }
    }

    /// Ends the work with a panic where an index pointed out of the slice.
    #[inline(always)]
    pub fn end(self) {
        assert!(self.bad == 0, "an index points behind the last value");
    }
}

/// Numbers that fill vectors of 512 bits.
trait Lanes: Scalar {
    type Vector: Copy;
    const COUNT: usize;

    unsafe fn splat(self) -> Self::Vector;
    unsafe fn load(lanes: u16, at: *const Self) -> Self::Vector;
    unsafe fn store(lanes: u16, at: *mut Self, vector: Self::Vector);
    unsafe fn plus(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn times(a: Self::Vector, b: Self::Vector) -> Self::Vector;
    unsafe fn over(a: Self::Vector, b: Self::Vector) -> Self::Vector;
}

macro_rules! lanes {
    ($($ty:ty, $vector:ty, $count:expr, $mask:ty, $splat:ident, $load:ident, $store:ident, $add:ident, $multiply:ident, $divide:ident;)*) => {$(
        // SAFETY (all): who calls them has `Avx512`, and the lanes are there.
        impl Lanes for $ty {
            type Vector = $vector;
            const COUNT: usize = $count;

            #[inline(always)]
            unsafe fn splat(self) -> $vector {
                // SAFETY: as said above.
                unsafe { $splat(self) }
            }

            #[inline(always)]
            unsafe fn load(lanes: u16, at: *const $ty) -> $vector {
                // SAFETY: as said above.
                unsafe { $load(lanes as $mask, at) }
            }

            #[inline(always)]
            unsafe fn store(lanes: u16, at: *mut $ty, vector: $vector) {
                // SAFETY: as said above.
                unsafe { $store(at, lanes as $mask, vector) }
            }

            #[inline(always)]
            unsafe fn plus(a: $vector, b: $vector) -> $vector {
                // SAFETY: as said above.
                unsafe { $add(a, b) }
            }

            #[inline(always)]
            unsafe fn times(a: $vector, b: $vector) -> $vector {
                // SAFETY: as said above.
                unsafe { $multiply(a, b) }
            }

            #[inline(always)]
            unsafe fn over(a: $vector, b: $vector) -> $vector {
                // SAFETY: as said above.
                unsafe { $divide(a, b) }
            }
        }
    )*};
}

lanes! {
    f32, __m512, 16, __mmask16, _mm512_set1_ps, _mm512_maskz_loadu_ps, _mm512_mask_storeu_ps, _mm512_add_ps, _mm512_mul_ps, _mm512_div_ps;
    f64, __m512d, 8, __mmask8, _mm512_set1_pd, _mm512_maskz_loadu_pd, _mm512_mask_storeu_pd, _mm512_add_pd, _mm512_mul_pd, _mm512_div_pd;
}

/// Rows of a product of a sparse matrix with one that lies by rows without gaps.
pub(crate) struct Rows<'a, C, I> {
    pub indices: &'a [I],
    pub values: &'a [C],
    pub base: usize,
    pub b: &'a [C],
    pub width: usize,
    pub factors: (C, C),
}

impl<C: Scalar, I: Index> Rows<'_, C, I> {
    /// `to = alpha · A · B + beta · to` of the row of these entries; its type fills vectors.
    ///
    /// # Safety
    /// `E` is `C`.
    #[inline(always)]
    unsafe fn row<E: Lanes>(&self, entries: core::ops::Range<usize>, to: &mut [C]) {
        let to = &mut to[..self.width];
        let vectors = self.width.div_ceil(E::COUNT);
        let mut first = 0;
        // SAFETY: the caller's promise; `first` is a vector of the row.
        unsafe {
            while first < vectors {
                first += match vectors - first {
                    4.. => self.columns::<E, 4>(entries.clone(), first * E::COUNT, to),
                    3 => self.columns::<E, 3>(entries.clone(), first * E::COUNT, to),
                    2 => self.columns::<E, 2>(entries.clone(), first * E::COUNT, to),
                    _ => self.columns::<E, 1>(entries.clone(), first * E::COUNT, to),
                };
            }
        }
    }

    /// `N` vectors of columns, whose sums stay in registers. The last may have fewer lanes.
    ///
    /// # Safety
    /// `E` is `C`, and all vectors but the last are in a row.
    #[inline(always)]
    unsafe fn columns<E: Lanes, const N: usize>(
        &self,
        entries: core::ops::Range<usize>,
        first_column: usize,
        to: &mut [C],
    ) -> usize {
        let (indices, values) = (&self.indices[entries.clone()], &self.values[entries]);
        let (depth, b) = (self.b.len() / self.width, self.b.as_ptr().cast::<E>());
        let last = first(self.width - first_column - (N - 1) * E::COUNT);
        let lanes = |number: usize| if number + 1 == N { last } else { u16::MAX };
        // SAFETY: the caller's promise; rows of `b` are looked at before they are read.
        unsafe {
            let mut sums = [E::ZERO.splat(); N];
            for (index, value) in indices.iter().zip(values) {
                let row = index.place(self.base);
                assert!(row < depth, "an index points behind the last row");
                let (line, factor) = (b.add(row * self.width + first_column), known::<C, E>(value).splat());
                for (number, sum) in sums.iter_mut().enumerate() {
                    let line = E::load(lanes(number), line.add(number * E::COUNT));
                    *sum = E::plus(*sum, E::times(factor, line));
                }
            }
            let (alpha, beta) = (known::<C, E>(&self.factors.0), known::<C, E>(&self.factors.1));
            let to = to.as_mut_ptr().cast::<E>().add(first_column);
            for (number, sum) in sums.into_iter().enumerate() {
                let (lanes, to) = (lanes(number), to.add(number * E::COUNT));
                let mut made = E::times(alpha.splat(), sum);
                if beta != E::ZERO {
                    made = E::plus(made, E::times(beta.splat(), E::load(lanes, to)));
                }
                E::store(lanes, to, made);
            }
        }
        N
    }

    /// As `row`, for a type that fills vectors.
    #[inline(always)]
    pub fn multiply(&self, _has: Avx512, entries: core::ops::Range<usize>, to: &mut [C]) {
        // SAFETY: the types are asked for.
        unsafe {
            if same::<C, f32>() {
                self.row::<f32>(entries, to);
            } else {
                assert!(same::<C, f64>(), "a type that fills vectors");
                self.row::<f64>(entries, to);
            }
        }
    }
}

/// A row of a triangular system of several right sides.
pub(crate) struct RowOfSystem<'a, C> {
    pub row: usize,
    /// Its entries beside the diagonal.
    pub columns: &'a [u32],
    pub values: &'a [C],
    pub diagonal: Diagonal<C>,
    pub alpha: C,
    pub from: SharedRows<C>,
    pub to: SharedRows<C>,
}

impl<C: Scalar> RowOfSystem<'_, C> {
    /// Solves for some right sides, of a type that fills vectors.
    #[inline(always)]
    pub fn solve(&self, _has: Avx512, sides: core::ops::Range<usize>) {
        // SAFETY: the types are asked for.
        unsafe {
            if same::<C, f32>() {
                self.each::<f32>(sides);
            } else {
                assert!(same::<C, f64>(), "a type that fills vectors");
                self.each::<f64>(sides);
            }
        }
    }

    /// # Safety
    /// `E` is `C`.
    #[inline(always)]
    unsafe fn each<E: Lanes>(&self, sides: core::ops::Range<usize>) {
        for first in sides.clone().step_by(2 * E::COUNT) {
            let left = sides.end - first;
            // SAFETY: the caller's promise.
            unsafe {
                if left > E::COUNT {
                    self.vectors::<E, 2>(first, left.min(2 * E::COUNT));
                } else {
                    self.vectors::<E, 1>(first, left);
                }
            }
        }
    }

    /// `count` right sides in `N` vectors, of which the last may have fewer lanes.
    ///
    /// # Safety
    /// `E` is `C`.
    #[inline(always)]
    unsafe fn vectors<E: Lanes, const N: usize>(&self, first_side: usize, count: usize) {
        let last = first(count - (N - 1) * E::COUNT);
        let lanes = |number: usize| if number + 1 == N { last } else { u16::MAX };
        let line = |rows: SharedRows<C>, row: usize| rows.line(row, first_side, count).cast::<E>();
        // SAFETY: the caller's promise; lines have as many values as lanes are read and written.
        unsafe {
            let (from, alpha) = (line(self.from, self.row), known::<C, E>(&self.alpha).splat());
            let mut rest = [alpha; N];
            for (number, rest) in rest.iter_mut().enumerate() {
                *rest = E::times(alpha, E::load(lanes(number), from.add(number * E::COUNT)));
            }
            for at in 0..self.columns.len().min(self.values.len()) {
                let factor = (-known::<C, E>(&self.values[at])).splat();
                let line = line(self.to, self.columns[at] as usize);
                for (number, rest) in rest.iter_mut().enumerate() {
                    let line = E::load(lanes(number), line.add(number * E::COUNT));
                    *rest = E::plus(*rest, E::times(factor, line));
                }
            }
            let to = line(self.to, self.row);
            for (number, rest) in rest.into_iter().enumerate() {
                let made = match &self.diagonal {
                    Diagonal::Ones => rest,
                    Diagonal::Times(inverse) => E::times(rest, known::<C, E>(inverse).splat()),
                    Diagonal::Over(value) => E::over(rest, known::<C, E>(value).splat()),
                };
                E::store(lanes(number), to.add(number * E::COUNT), made);
            }
        }
    }
}

/// Whether [`Rows`] and [`RowOfSystem`] take values of a type.
pub(crate) fn fills_vectors<C: 'static>() -> bool {
    same::<C, f32>() || same::<C, f64>()
}

/// # Safety
/// `E` is `C`.
#[inline(always)]
unsafe fn known<C: Copy, E: Copy>(value: &C) -> E {
    // SAFETY: the caller's promise.
    unsafe { core::mem::transmute_copy(value) }
}
