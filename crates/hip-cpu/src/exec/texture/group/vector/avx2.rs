//! Eight lanes: AVX2.

use std::arch::x86_64::*;

use super::Vector;

pub struct Avx2;

impl Vector for Avx2 {
    const LANES: usize = 8;
    type Int = __m256i;
    type Float = __m256;
    type Double = [__m256d; 2];
    type Mask = __m256i;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_loadu_si256(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const u16) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, value: Self::Int) {
        // SAFETY: the trait's.
        unsafe { _mm256_storeu_si256(to.cast(), value) }
    }

    #[inline(always)]
    unsafe fn gather(base: *const u8, offset: __m256i) -> __m256i {
        // SAFETY: the trait's.
        unsafe {
            let mut offsets = [0i32; 8];
            _mm256_storeu_si256(offsets.as_mut_ptr().cast(), offset);
            let four = super::four(base, offsets.as_ptr());
            _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four), super::four(base, offsets.as_ptr().add(4)))
        }
    }

    #[inline(always)]
    unsafe fn line(offset: Self::Int, stride: i32) -> Option<i32> {
        // SAFETY: the trait's.
        unsafe {
            let first = _mm_cvtsi128_si32(_mm256_castsi256_si128(offset));
            let steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let line = _mm256_add_epi32(Self::splat(first), _mm256_mullo_epi32(steps, Self::splat(stride)));
            (_mm256_movemask_epi8(_mm256_cmpeq_epi32(line, offset)) == -1).then_some(first)
        }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn and(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_and_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn or(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_min_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_max_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn min_unsigned(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_min_epu32(a, b) }
    }

    #[inline(always)]
    unsafe fn left(a: Self::Int, by: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_sllv_epi32(a, by) }
    }

    #[inline(always)]
    unsafe fn right(a: Self::Int, by: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_srlv_epi32(a, by) }
    }

    #[inline(always)]
    unsafe fn right_signed(a: Self::Int, by: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_srav_epi32(a, by) }
    }

    #[inline(always)]
    unsafe fn equal(a: Self::Int, b: Self::Int) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm256_cmpeq_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn different(a: Self::Int, b: Self::Int) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm256_xor_si256(_mm256_cmpeq_epi32(a, b), _mm256_set1_epi32(-1)) }
    }

    #[inline(always)]
    unsafe fn less(a: Self::Int, b: Self::Int) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm256_cmpgt_epi32(b, a) }
    }

    #[inline(always)]
    unsafe fn no_lane() -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm256_setzero_si256() }
    }

    #[inline(always)]
    unsafe fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm256_or_si256(a, b) }
    }

    #[inline(always)]
    unsafe fn select(mask: Self::Mask, yes: Self::Int, no: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_blendv_epi8(no, yes, mask) }
    }

    #[inline(always)]
    unsafe fn lanes(mask: Self::Mask) -> u64 {
        // SAFETY: the trait's.
        unsafe { (_mm256_movemask_ps(_mm256_castsi256_ps(mask)) as u32).into() }
    }

    #[inline(always)]
    unsafe fn float(bits: Self::Int) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_castsi256_ps(bits) }
    }

    #[inline(always)]
    unsafe fn bits(value: Self::Float) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_castps_si256(value) }
    }

    #[inline(always)]
    unsafe fn splat_float(value: f32) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn mul_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn max_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn floor_float(a: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_floor_ps(a) }
    }

    #[inline(always)]
    unsafe fn within(a: Self::Float, limit: f32) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe {
            let size = _mm256_andnot_ps(Self::splat_float(-0.0), a);
            _mm256_castps_si256(_mm256_cmp_ps::<_CMP_LT_OQ>(size, Self::splat_float(limit)))
        }
    }

    #[inline(always)]
    unsafe fn to_int(a: Self::Float) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_cvttps_epi32(a) }
    }

    #[inline(always)]
    unsafe fn to_float(a: Self::Int) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_cvtepi32_ps(a) }
    }

    #[inline(always)]
    unsafe fn splat_double(value: f64) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_set1_pd(value); 2] }
    }

    #[inline(always)]
    unsafe fn widen(a: Self::Float) -> Self::Double {
        // SAFETY: the trait's.
        unsafe {
            [_mm256_cvtps_pd(_mm256_castps256_ps128(a)), _mm256_cvtps_pd(_mm256_extractf128_ps::<1>(a))]
        }
    }

    #[inline(always)]
    unsafe fn widen_int(a: Self::Int) -> Self::Double {
        // SAFETY: the trait's.
        unsafe {
            let [low, high] = [_mm256_castsi256_si128(a), _mm256_extracti128_si256::<1>(a)];
            [_mm256_cvtepi32_pd(low), _mm256_cvtepi32_pd(high)]
        }
    }

    #[inline(always)]
    unsafe fn narrow(a: Self::Double) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_set_m128(_mm256_cvtpd_ps(a[1]), _mm256_cvtpd_ps(a[0])) }
    }

    #[inline(always)]
    unsafe fn add_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_add_pd(a[0], b[0]), _mm256_add_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn sub_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_sub_pd(a[0], b[0]), _mm256_sub_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn mul_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_mul_pd(a[0], b[0]), _mm256_mul_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn min_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_min_pd(a[0], b[0]), _mm256_min_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn max_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_max_pd(a[0], b[0]), _mm256_max_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn floor_double(a: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm256_floor_pd(a[0]), _mm256_floor_pd(a[1])] }
    }

    #[inline(always)]
    unsafe fn double_to_int(a: Self::Double) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_set_m128i(_mm256_cvttpd_epi32(a[1]), _mm256_cvttpd_epi32(a[0])) }
    }
}
