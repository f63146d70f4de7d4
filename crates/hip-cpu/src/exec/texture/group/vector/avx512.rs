//! 16 lanes: AVX-512 with its extensions VL, BW and DQ.

use std::arch::x86_64::*;

use super::Vector;

pub struct Avx512;

/// How conversions to integers round.
const DOWN: i32 = _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC;

impl Vector for Avx512 {
    const LANES: usize = 16;
    type Int = __m512i;
    type Float = __m512;
    type Double = [__m512d; 2];
    type Mask = __mmask16;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_loadu_si512(from.cast()) }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_cvtepu8_epi32(_mm_loadu_si128(from.cast())) }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const u16) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_cvtepu16_epi32(_mm256_loadu_si256(from.cast())) }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, value: Self::Int) {
        // SAFETY: the trait's.
        unsafe { _mm512_storeu_si512(to.cast(), value) }
    }

    #[inline(always)]
    unsafe fn gather(base: *const u8, offset: __m512i) -> __m512i {
        // SAFETY: the trait's.
        unsafe {
            let offsets = offsets(offset);
            let four = |nth: usize| super::words(base, offsets.as_ptr().add(4 * nth));
            let low = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four(0)), four(1));
            let high = _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(four(2)), four(3));
            _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
        }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_set1_epi32(value) }
    }

    #[inline(always)]
    unsafe fn add(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_add_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_sub_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_mullo_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn mul_short(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_madd_epi16(a, b) }
    }

    #[inline(always)]
    unsafe fn and(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_and_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn or(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_or_si512(a, b) }
    }

    #[inline(always)]
    unsafe fn min(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_min_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn max(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_max_epi32(a, b) }
    }

    #[inline(always)]
    unsafe fn min_unsigned(a: Self::Int, b: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_min_epu32(a, b) }
    }

    #[inline(always)]
    unsafe fn left(a: Self::Int, by: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_sllv_epi32(a, by) }
    }

    #[inline(always)]
    unsafe fn right(a: Self::Int, by: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_srlv_epi32(a, by) }
    }

    #[inline(always)]
    unsafe fn right_signed(a: Self::Int, by: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_srav_epi32(a, by) }
    }

    #[inline(always)]
    unsafe fn equal(a: Self::Int, b: Self::Int) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm512_cmpeq_epi32_mask(a, b) }
    }

    #[inline(always)]
    unsafe fn different(a: Self::Int, b: Self::Int) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm512_cmpneq_epi32_mask(a, b) }
    }

    #[inline(always)]
    unsafe fn less(a: Self::Int, b: Self::Int) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm512_cmplt_epi32_mask(a, b) }
    }

    #[inline(always)]
    unsafe fn no_lane() -> Self::Mask {
        0
    }

    #[inline(always)]
    unsafe fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        a | b
    }

    #[inline(always)]
    unsafe fn select(mask: Self::Mask, yes: Self::Int, no: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_mask_blend_epi32(mask, no, yes) }
    }

    #[inline(always)]
    unsafe fn lanes(mask: Self::Mask) -> u64 {
        mask.into()
    }

    #[inline(always)]
    unsafe fn float(bits: Self::Int) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_castsi512_ps(bits) }
    }

    #[inline(always)]
    unsafe fn bits(value: Self::Float) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_castps_si512(value) }
    }

    #[inline(always)]
    unsafe fn splat_float(value: f32) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_set1_ps(value) }
    }

    #[inline(always)]
    unsafe fn mul_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_mul_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn div_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_div_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn min_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_min_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn max_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_max_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn sub_float(a: Self::Float, b: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_sub_ps(a, b) }
    }

    #[inline(always)]
    unsafe fn floor_float(a: Self::Float) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_roundscale_ps::<9>(a) }
    }

    #[inline(always)]
    unsafe fn within(a: Self::Float, limit: f32) -> Self::Mask {
        // SAFETY: the trait's.
        unsafe { _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(a), Self::splat_float(limit)) }
    }

    #[inline(always)]
    unsafe fn floor_to_int(a: Self::Float) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { _mm512_cvt_roundps_epi32::<DOWN>(a) }
    }

    #[inline(always)]
    unsafe fn to_float(a: Self::Int) -> Self::Float {
        // SAFETY: the trait's.
        unsafe { _mm512_cvtepi32_ps(a) }
    }

    #[inline(always)]
    unsafe fn splat_double(value: f64) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_set1_pd(value); 2] }
    }

    #[inline(always)]
    unsafe fn widen(a: Self::Float) -> Self::Double {
        // SAFETY: the trait's.
        unsafe {
            let [low, high] = [_mm512_castps512_ps256(a), _mm512_extractf32x8_ps::<1>(a)];
            [_mm512_cvtps_pd(low), _mm512_cvtps_pd(high)]
        }
    }

    #[inline(always)]
    unsafe fn widen_int(a: Self::Int) -> Self::Double {
        // SAFETY: the trait's.
        unsafe {
            let [low, high] = [_mm512_castsi512_si256(a), _mm512_extracti32x8_epi32::<1>(a)];
            [_mm512_cvtepi32_pd(low), _mm512_cvtepi32_pd(high)]
        }
    }

    #[inline(always)]
    unsafe fn narrow(a: Self::Double) -> Self::Float {
        // SAFETY: the trait's.
        unsafe {
            let [low, high] = [_mm512_cvtpd_ps(a[0]), _mm512_cvtpd_ps(a[1])];
            _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), high)
        }
    }

    #[inline(always)]
    unsafe fn add_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_add_pd(a[0], b[0]), _mm512_add_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn sub_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_sub_pd(a[0], b[0]), _mm512_sub_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn mul_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_mul_pd(a[0], b[0]), _mm512_mul_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn min_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_min_pd(a[0], b[0]), _mm512_min_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn max_double(a: Self::Double, b: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_max_pd(a[0], b[0]), _mm512_max_pd(a[1], b[1])] }
    }

    #[inline(always)]
    unsafe fn floor_double(a: Self::Double) -> Self::Double {
        // SAFETY: the trait's.
        unsafe { [_mm512_roundscale_pd::<9>(a[0]), _mm512_roundscale_pd::<9>(a[1])] }
    }

    #[inline(always)]
    unsafe fn floor_double_to_int(a: Self::Double) -> Self::Int {
        // SAFETY: the trait's.
        unsafe {
            let [low, high] =
                [_mm512_cvt_roundpd_epi32::<DOWN>(a[0]), _mm512_cvt_roundpd_epi32::<DOWN>(a[1])];
            _mm512_inserti32x8::<1>(_mm512_castsi256_si512(low), high)
        }
    }

    #[inline(always)]
    unsafe fn gather_two(base: *const u8, offset: __m512i) -> [__m512i; 2] {
        // SAFETY: the trait's.
        unsafe {
            let offsets = offsets(offset);
            let two = |nth: usize| super::doubles(base, offsets.as_ptr().add(2 * nth));
            let (even, odd) = (whole(two(0), two(2), two(4), two(6)), whole(two(1), two(3), two(5), two(7)));
            [
                Self::bits(_mm512_shuffle_ps::<0x88>(even, odd)),
                Self::bits(_mm512_shuffle_ps::<0xdd>(even, odd)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn gather_four(base: *const u8, offset: __m512i) -> [__m512i; 4] {
        // SAFETY: the trait's.
        unsafe {
            let offsets = offsets(offset);
            let one = |nth: usize| super::quad(base, offsets.as_ptr(), nth);
            // Lanes 0, 4, 8, 12, and so on; then four transpositions at once.
            let [a, b, c, d] = [
                whole(one(0), one(4), one(8), one(12)),
                whole(one(1), one(5), one(9), one(13)),
                whole(one(2), one(6), one(10), one(14)),
                whole(one(3), one(7), one(11), one(15)),
            ];
            let (ab, cd) = (_mm512_unpacklo_ps(a, b), _mm512_unpacklo_ps(c, d));
            let (ab_high, cd_high) = (_mm512_unpackhi_ps(a, b), _mm512_unpackhi_ps(c, d));
            [
                Self::bits(_mm512_shuffle_ps::<0x44>(ab, cd)),
                Self::bits(_mm512_shuffle_ps::<0xee>(ab, cd)),
                Self::bits(_mm512_shuffle_ps::<0x44>(ab_high, cd_high)),
                Self::bits(_mm512_shuffle_ps::<0xee>(ab_high, cd_high)),
            ]
        }
    }

    #[inline(always)]
    unsafe fn first(value: __m512i) -> i32 {
        // SAFETY: the trait's.
        unsafe { _mm_cvtsi128_si32(_mm512_castsi512_si128(value)) }
    }

    #[inline(always)]
    unsafe fn last(value: __m512i) -> i32 {
        // SAFETY: the trait's.
        unsafe { _mm_extract_epi32::<3>(_mm512_extracti32x4_epi32::<3>(value)) }
    }

    #[inline(always)]
    unsafe fn permuted(items: __m512i, places: __m512i) -> __m512i {
        // SAFETY: the trait's.
        unsafe { _mm512_permutexvar_epi32(places, items) }
    }

    #[inline(always)]
    unsafe fn permuted_of_two(items: [__m512i; 2], places: __m512i) -> __m512i {
        // SAFETY: the trait's.
        unsafe { _mm512_permutex2var_epi32(items[0], places, items[1]) }
    }

    #[inline(always)]
    unsafe fn is_line(value: __m512i, stride: i32) -> bool {
        // SAFETY: the trait's.
        unsafe {
            let steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
            let first = _mm512_broadcastd_epi32(_mm512_castsi512_si128(value));
            Self::are_equal(value, _mm512_add_epi32(first, _mm512_mullo_epi32(steps, Self::splat(stride))))
        }
    }

    #[inline(always)]
    unsafe fn are_equal(a: __m512i, b: __m512i) -> bool {
        // SAFETY: the trait's.
        unsafe { _mm512_cmpneq_epi32_mask(a, b) == 0 }
    }

    #[inline(always)]
    unsafe fn fused(a: [__m512d; 2], b: [__m512d; 2], c: [__m512d; 2]) -> [__m512d; 2] {
        // SAFETY: the trait's.
        unsafe { [_mm512_fmadd_pd(a[0], b[0], c[0]), _mm512_fmadd_pd(a[1], b[1], c[1])] }
    }

    #[inline(always)]
    unsafe fn is_number(a: __m512) -> __mmask16 {
        // SAFETY: the trait's.
        unsafe { _mm512_cmp_ps_mask::<_CMP_ORD_Q>(a, a) }
    }
}

#[inline(always)]
unsafe fn offsets(offset: __m512i) -> [i32; 16] {
    let mut offsets = [0; 16];
    // SAFETY: 64 bytes; the rest is the trait's.
    unsafe { _mm512_storeu_si512(offsets.as_mut_ptr().cast(), offset) }
    super::in_memory(&mut offsets);
    offsets
}

#[inline(always)]
unsafe fn whole(a: __m128, b: __m128, c: __m128, d: __m128) -> __m512 {
    // SAFETY: the trait's.
    unsafe {
        let low = _mm256_set_m128(b, a);
        _mm512_insertf32x8::<1>(_mm512_castps256_ps512(low), _mm256_set_m128(d, c))
    }
}
