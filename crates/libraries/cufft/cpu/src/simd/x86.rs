//! Vectors of AVX2 with FMA (`S4`, `D2`) and of AVX-512 (`S8`, `D4`).

use std::arch::x86_64::*;

use num_complex::Complex;

use super::Vector;

/// Calls of instructions.
macro_rules! instruction {
    ($call:expr) => {
        // SAFETY: only functions compiled for such vectors use these types, and `Isa::detect` chooses among those.
        unsafe { $call }
    };
}

macro_rules! vector {
    (
        $(#[$attribute:meta])*
        $name:ident, $register:ty, $real:ty, $lanes:literal,
        pairs: |$first:ident, $second:ident| $pairs:expr,
        $load:ident, $store:ident, $splat:ident, $add:ident, $sub:ident, $mul:ident,
        $fma:ident, $fnmadd:ident, $fmaddsub:ident,
        conjugate: $xor:ident, swap: |$to_swap:ident| $swap:expr,
        real: |$of_real:ident| $re:expr, imaginary: |$of_imaginary:ident| $im:expr,
        reverse: |$to_reverse:ident| $reverse:expr,
        transpose: |$rows:ident| $transpose:block
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Copy)]
        #[repr(transparent)]
        pub(crate) struct $name($register);

        impl Vector<$real> for $name {
            const LANES: usize = $lanes;

            #[inline(always)]
            unsafe fn load(from: *const Complex<$real>) -> Self {
                // The caller promises the numbers.
                Self(instruction!($load(from.cast())))
            }

            #[inline(always)]
            unsafe fn store(self, to: *mut Complex<$real>) {
                // The caller promises the room.
                instruction!($store(to.cast(), self.0))
            }

            #[inline(always)]
            fn pairs(re: $real, im: $real) -> Self {
                let ($first, $second) = (re, im);
                Self(instruction!($pairs))
            }

            #[inline(always)]
            fn splat(value: $real) -> Self {
                Self(instruction!($splat(value)))
            }

            #[inline(always)]
            fn add(self, other: Self) -> Self {
                Self(instruction!($add(self.0, other.0)))
            }

            #[inline(always)]
            fn sub(self, other: Self) -> Self {
                Self(instruction!($sub(self.0, other.0)))
            }

            #[inline(always)]
            fn scale(self, factors: Self) -> Self {
                Self(instruction!($mul(self.0, factors.0)))
            }

            #[inline(always)]
            fn scale_add(self, factors: Self, more: Self) -> Self {
                Self(instruction!($fma(self.0, factors.0, more.0)))
            }

            #[inline(always)]
            fn scale_sub(self, factors: Self, more: Self) -> Self {
                Self(instruction!($fnmadd(self.0, factors.0, more.0)))
            }

            #[inline(always)]
            fn scale_alternate(self, factors: Self, more: Self) -> Self {
                Self(instruction!($fmaddsub(self.0, factors.0, more.0)))
            }

            #[inline(always)]
            fn conjugate(self) -> Self {
                Self(instruction!($xor(self.0, Self::pairs(0.0, -0.0).0)))
            }

            #[inline(always)]
            fn swap(self) -> Self {
                let $to_swap = self.0;
                Self(instruction!($swap))
            }

            #[inline(always)]
            fn real(self) -> Self {
                let $of_real = self.0;
                Self(instruction!($re))
            }

            #[inline(always)]
            fn imaginary(self) -> Self {
                let $of_imaginary = self.0;
                Self(instruction!($im))
            }

            #[inline(always)]
            fn reverse(self) -> Self {
                let $to_reverse = self.0;
                Self(instruction!($reverse))
            }

            #[inline(always)]
            fn transpose($rows: &mut [Self]) $transpose
        }
    };
}

vector! {
    /// Eight complex `f32`.
    S8, __m512, f32, 8,
    pairs: |re, im| _mm512_setr4_ps(re, im, re, im),
    _mm512_loadu_ps, _mm512_storeu_ps, _mm512_set1_ps, _mm512_add_ps, _mm512_sub_ps, _mm512_mul_ps,
    _mm512_fmadd_ps, _mm512_fnmadd_ps, _mm512_fmaddsub_ps,
    conjugate: _mm512_xor_ps, swap: |a| _mm512_permute_ps::<0b10_11_00_01>(a),
    real: |a| _mm512_moveldup_ps(a), imaginary: |a| _mm512_movehdup_ps(a),
    reverse: |a| _mm512_castpd_ps(_mm512_permutexvar_pd(_mm512_setr_epi64(7, 6, 5, 4, 3, 2, 1, 0), _mm512_castps_pd(a))),
    transpose: |rows| {
        let mut halves = [D4(instruction!(_mm512_setzero_pd())); 8];
        for i in 0..4 {
            let (even, odd) = instruction!((_mm512_castps_pd(rows[2 * i].0), _mm512_castps_pd(rows[2 * i + 1].0)));
            halves[i] = D4(instruction!(_mm512_unpacklo_pd(even, odd)));
            halves[4 + i] = D4(instruction!(_mm512_unpackhi_pd(even, odd)));
        }
        let (low, high) = halves.split_at_mut(4);
        D4::transpose(low);
        D4::transpose(high);
        for i in 0..4 {
            rows[2 * i] = Self(instruction!(_mm512_castpd_ps(low[i].0)));
            rows[2 * i + 1] = Self(instruction!(_mm512_castpd_ps(high[i].0)));
        }
    }
}

vector! {
    /// Four complex `f64`.
    D4, __m512d, f64, 4,
    pairs: |re, im| _mm512_setr4_pd(re, im, re, im),
    _mm512_loadu_pd, _mm512_storeu_pd, _mm512_set1_pd, _mm512_add_pd, _mm512_sub_pd, _mm512_mul_pd,
    _mm512_fmadd_pd, _mm512_fnmadd_pd, _mm512_fmaddsub_pd,
    conjugate: _mm512_xor_pd, swap: |a| _mm512_permute_pd::<0b0101_0101>(a),
    real: |a| _mm512_movedup_pd(a), imaginary: |a| _mm512_permute_pd::<0b1111_1111>(a),
    reverse: |a| _mm512_shuffle_f64x2::<0b00_01_10_11>(a, a),
    transpose: |rows| {
        let [a, b, c, d] = [rows[0].0, rows[1].0, rows[2].0, rows[3].0];
        let (ab_low, cd_low) = instruction!((_mm512_shuffle_f64x2::<0x44>(a, b), _mm512_shuffle_f64x2::<0x44>(c, d)));
        let (ab_high, cd_high) = instruction!((_mm512_shuffle_f64x2::<0xEE>(a, b), _mm512_shuffle_f64x2::<0xEE>(c, d)));
        rows[0] = Self(instruction!(_mm512_shuffle_f64x2::<0x88>(ab_low, cd_low)));
        rows[1] = Self(instruction!(_mm512_shuffle_f64x2::<0xDD>(ab_low, cd_low)));
        rows[2] = Self(instruction!(_mm512_shuffle_f64x2::<0x88>(ab_high, cd_high)));
        rows[3] = Self(instruction!(_mm512_shuffle_f64x2::<0xDD>(ab_high, cd_high)));
    }
}

vector! {
    /// Four complex `f32`.
    S4, __m256, f32, 4,
    pairs: |re, im| _mm256_setr_ps(re, im, re, im, re, im, re, im),
    _mm256_loadu_ps, _mm256_storeu_ps, _mm256_set1_ps, _mm256_add_ps, _mm256_sub_ps, _mm256_mul_ps,
    _mm256_fmadd_ps, _mm256_fnmadd_ps, _mm256_fmaddsub_ps,
    conjugate: _mm256_xor_ps, swap: |a| _mm256_permute_ps::<0b10_11_00_01>(a),
    real: |a| _mm256_moveldup_ps(a), imaginary: |a| _mm256_movehdup_ps(a),
    reverse: |a| _mm256_castpd_ps(_mm256_permute4x64_pd::<0b00_01_10_11>(_mm256_castps_pd(a))),
    transpose: |rows| {
        let (a, b) = instruction!((_mm256_castps_pd(rows[0].0), _mm256_castps_pd(rows[1].0)));
        let (c, d) = instruction!((_mm256_castps_pd(rows[2].0), _mm256_castps_pd(rows[3].0)));
        let (ab_even, ab_odd) = instruction!((_mm256_unpacklo_pd(a, b), _mm256_unpackhi_pd(a, b)));
        let (cd_even, cd_odd) = instruction!((_mm256_unpacklo_pd(c, d), _mm256_unpackhi_pd(c, d)));
        rows[0] = Self(instruction!(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x20>(ab_even, cd_even))));
        rows[1] = Self(instruction!(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x20>(ab_odd, cd_odd))));
        rows[2] = Self(instruction!(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x31>(ab_even, cd_even))));
        rows[3] = Self(instruction!(_mm256_castpd_ps(_mm256_permute2f128_pd::<0x31>(ab_odd, cd_odd))));
    }
}

vector! {
    /// Two complex `f64`.
    D2, __m256d, f64, 2,
    pairs: |re, im| _mm256_setr_pd(re, im, re, im),
    _mm256_loadu_pd, _mm256_storeu_pd, _mm256_set1_pd, _mm256_add_pd, _mm256_sub_pd, _mm256_mul_pd,
    _mm256_fmadd_pd, _mm256_fnmadd_pd, _mm256_fmaddsub_pd,
    conjugate: _mm256_xor_pd, swap: |a| _mm256_permute_pd::<0b0101>(a),
    real: |a| _mm256_movedup_pd(a), imaginary: |a| _mm256_permute_pd::<0b1111>(a),
    reverse: |a| _mm256_permute2f128_pd::<0x01>(a, a),
    transpose: |rows| {
        let (a, b) = (rows[0].0, rows[1].0);
        rows[0] = Self(instruction!(_mm256_permute2f128_pd::<0x20>(a, b)));
        rows[1] = Self(instruction!(_mm256_permute2f128_pd::<0x31>(a, b)));
    }
}
