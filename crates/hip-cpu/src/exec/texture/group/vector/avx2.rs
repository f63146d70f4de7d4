//! Eight lanes: AVX2 with FMA.

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
            let offsets = offsets(offset);
            let four = |nth: usize| super::words(base, offsets.as_ptr().add(4 * nth));
            _mm256_set_m128i(four(1), four(0))
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
    unsafe fn mul_short(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_madd_epi16(a, b) }
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
    unsafe fn sub_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm256_sub_ps(a, b) }
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
    unsafe fn floor_to_int(a: Self::Float) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm256_cvttps_epi32(Self::floor_float(a)) }
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
    unsafe fn floor_double_to_int(a: Self::Double) -> Self::Int {
        // SAFETY: the trait's.
        unsafe {
            let [low, high] = Self::floor_double(a);
            _mm256_set_m128i(_mm256_cvttpd_epi32(high), _mm256_cvttpd_epi32(low))
        }
    }

    #[inline(always)]
    unsafe fn gather_two(base: *const u8, offset: __m256i) -> [__m256i; 2] {
        // SAFETY: the trait's.
        unsafe {
            let offsets = offsets(offset);
            let two = |nth: usize| super::doubles(base, offsets.as_ptr().add(2 * nth));
            let (even, odd) = (_mm256_set_m128(two(2), two(0)), _mm256_set_m128(two(3), two(1)));
            [
                Self::bits(_mm256_shuffle_ps::<0x88>(even, odd)),
                Self::bits(_mm256_shuffle_ps::<0xdd>(even, odd)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn gather_four(base: *const u8, offset: __m256i) -> [__m256i; 4] {
        // SAFETY: the trait's.
        unsafe {
            let offsets = offsets(offset);
            let one = |nth: usize| super::quad(base, offsets.as_ptr(), nth);
            // Lanes 0 and 4, and so on; then two transpositions at once.
            let [a, b] = [_mm256_set_m128(one(4), one(0)), _mm256_set_m128(one(5), one(1))];
            let [c, d] = [_mm256_set_m128(one(6), one(2)), _mm256_set_m128(one(7), one(3))];
            let (ab, cd) = (_mm256_unpacklo_ps(a, b), _mm256_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm256_unpackhi_ps(a, b), _mm256_unpackhi_ps(c, d));
            [
                Self::bits(_mm256_shuffle_ps::<0x44>(ab, cd)),
                Self::bits(_mm256_shuffle_ps::<0xee>(ab, cd)),
                Self::bits(_mm256_shuffle_ps::<0x44>(ab_high, cd_high)),
                Self::bits(_mm256_shuffle_ps::<0xee>(ab_high, cd_high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn first(value: __m256i) -> i32 {
        // SAFETY: the trait's.
        unsafe { _mm_cvtsi128_si32(_mm256_castsi256_si128(value)) }
    }

    #[inline(always)]
    unsafe fn last(value: __m256i) -> i32 {
        // SAFETY: the trait's.
        unsafe { _mm256_extract_epi32::<7>(value) }
    }

    #[inline(always)]
    unsafe fn permuted(items: __m256i, places: __m256i) -> __m256i {
        // SAFETY: the trait's.
        unsafe { _mm256_permutevar8x32_epi32(items, places) }
    }

    #[inline(always)]
    unsafe fn permuted_of_two(items: [__m256i; 2], places: __m256i) -> __m256i {
        // SAFETY: the trait's.
        unsafe {
            let (low, high) = (Self::permuted(items[0], places), Self::permuted(items[1], places));
            Self::select(Self::less(Self::splat(7), places), high, low)
        }
    }

    #[inline(always)]
    unsafe fn is_line(value: __m256i, stride: i32) -> bool {
        // SAFETY: the trait's.
        unsafe {
            let steps = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
            let first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(value));
            Self::are_equal(value, _mm256_add_epi32(first, _mm256_mullo_epi32(steps, Self::splat(stride))))
        }
    }

    #[inline(always)]
    unsafe fn are_equal(a: __m256i, b: __m256i) -> bool {
        // SAFETY: the trait's.
        unsafe { _mm256_movemask_epi8(_mm256_cmpeq_epi32(a, b)) == -1 }
    }

    #[inline(always)]
    unsafe fn fused(a: [__m256d; 2], b: [__m256d; 2], c: [__m256d; 2]) -> [__m256d; 2] {
        // SAFETY: the trait's.
        unsafe { [_mm256_fmadd_pd(a[0], b[0], c[0]), _mm256_fmadd_pd(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    unsafe fn is_number(a: __m256) -> __m256i {
        // SAFETY: the trait's.
        unsafe { _mm256_castps_si256(_mm256_cmp_ps::<_CMP_ORD_Q>(a, a)) }
    }
}

#[inline(always)]
unsafe fn offsets(offset: __m256i) -> [i32; 8] {
    let mut offsets = [0; 8];
    // SAFETY: 32 bytes; the rest is the trait's.
    unsafe { _mm256_storeu_si256(offsets.as_mut_ptr().cast(), offset) }
    super::in_memory(&mut offsets);
    offsets
}
