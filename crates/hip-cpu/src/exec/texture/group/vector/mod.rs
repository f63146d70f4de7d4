//! Vectors that the sampler is written in: 16 lanes of AVX-512, 8 of AVX2, or one.
//!
//! Every operation rounds as Rust's own on numbers does, so that all of them give the same bits.

use std::arch::asm;
use std::arch::x86_64::*;

mod avx2;
mod avx512;
mod one;

pub use avx2::Avx2;
pub use avx512::Avx512;
pub use one::One;

/// Lanes of 32-bit integers, of `f32`, and of `f64`.
///
/// # Safety
/// Of all operations: the processor has the instructions (which a caller's `target_feature` says, too, so that they
/// become part of it), and pointers are to as much as is read or written.
pub trait Vector {
    const LANES: usize;
    type Int: Copy;
    type Float: Copy;
    type Double: Copy;
    type Mask: Copy;

    unsafe fn load(from: *const u32) -> Self::Int;
    /// Bytes and pairs of bytes, one after the other, with zeros above them.
    unsafe fn load_bytes(from: *const u8) -> Self::Int;
    unsafe fn load_pairs(from: *const u16) -> Self::Int;
    unsafe fn store(to: *mut u32, value: Self::Int);
    /// Reads 32 bits at `base + offset`.
    unsafe fn gather(base: *const u8, offset: Self::Int) -> Self::Int;
    /// The same for the 64 bits, and for the 128 bits there: the words one after the other.
    unsafe fn gather_two(base: *const u8, offset: Self::Int) -> [Self::Int; 2];
    unsafe fn gather_four(base: *const u8, offset: Self::Int) -> [Self::Int; 4];

    unsafe fn first(value: Self::Int) -> i32;
    unsafe fn last(value: Self::Int) -> i32;
    /// Of each lane, the item that `places` says.
    unsafe fn permuted(items: Self::Int, places: Self::Int) -> Self::Int;
    /// The same of twice as many items.
    unsafe fn permuted_of_two(items: [Self::Int; 2], places: Self::Int) -> Self::Int;
    /// Whether each lane's number is `stride` more than the one's before.
    unsafe fn is_line(value: Self::Int, stride: i32) -> bool;
    unsafe fn are_equal(a: Self::Int, b: Self::Int) -> bool;
    unsafe fn splat(value: i32) -> Self::Int;
    unsafe fn add(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn sub(a: Self::Int, b: Self::Int) -> Self::Int;
    /// The low half of the product.
    unsafe fn mul(a: Self::Int, b: Self::Int) -> Self::Int;
    /// The product of numbers from 0 to 32767, which is sooner there.
    unsafe fn mul_short(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn and(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn or(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn min(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn max(a: Self::Int, b: Self::Int) -> Self::Int;
    unsafe fn min_unsigned(a: Self::Int, b: Self::Int) -> Self::Int;
    /// Shifts by as much as each lane of `by` says, below 32.
    unsafe fn left(a: Self::Int, by: Self::Int) -> Self::Int;
    unsafe fn right(a: Self::Int, by: Self::Int) -> Self::Int;
    unsafe fn right_signed(a: Self::Int, by: Self::Int) -> Self::Int;
    unsafe fn equal(a: Self::Int, b: Self::Int) -> Self::Mask;
    unsafe fn different(a: Self::Int, b: Self::Int) -> Self::Mask;
    unsafe fn less(a: Self::Int, b: Self::Int) -> Self::Mask;

    unsafe fn no_lane() -> Self::Mask;
    unsafe fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask;
    unsafe fn select(mask: Self::Mask, yes: Self::Int, no: Self::Int) -> Self::Int;
    unsafe fn lanes(mask: Self::Mask) -> u64;

    unsafe fn float(bits: Self::Int) -> Self::Float;
    unsafe fn bits(value: Self::Float) -> Self::Int;
    unsafe fn splat_float(value: f32) -> Self::Float;
    unsafe fn mul_float(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn div_float(a: Self::Float, b: Self::Float) -> Self::Float;
    /// Neither is NaN, nor are both zeros.
    unsafe fn min_float(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn max_float(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn sub_float(a: Self::Float, b: Self::Float) -> Self::Float;
    unsafe fn floor_float(a: Self::Float) -> Self::Float;
    /// |a| < limit; NaN is not.
    unsafe fn within(a: Self::Float, limit: f32) -> Self::Mask;
    unsafe fn is_number(a: Self::Float) -> Self::Mask;
    /// The whole number below, which an `i32` can be.
    unsafe fn floor_to_int(a: Self::Float) -> Self::Int;
    unsafe fn to_float(a: Self::Int) -> Self::Float;

    unsafe fn splat_double(value: f64) -> Self::Double;
    unsafe fn widen(a: Self::Float) -> Self::Double;
    unsafe fn widen_int(a: Self::Int) -> Self::Double;
    unsafe fn narrow(a: Self::Double) -> Self::Float;
    unsafe fn add_double(a: Self::Double, b: Self::Double) -> Self::Double;
    unsafe fn sub_double(a: Self::Double, b: Self::Double) -> Self::Double;
    unsafe fn mul_double(a: Self::Double, b: Self::Double) -> Self::Double;
    /// `a * b + c`, where the product is exact.
    unsafe fn fused(a: Self::Double, b: Self::Double, c: Self::Double) -> Self::Double;
    /// Neither is NaN, nor are both zeros.
    unsafe fn min_double(a: Self::Double, b: Self::Double) -> Self::Double;
    unsafe fn max_double(a: Self::Double, b: Self::Double) -> Self::Double;
    unsafe fn floor_double(a: Self::Double) -> Self::Double;
    /// The whole number below, which an `i32` can be.
    unsafe fn floor_double_to_int(a: Self::Double) -> Self::Int;
}

/// The same, of which the compiler does not know that it is the same each time.
#[inline(always)]
pub fn anew<T>(of: &T) -> &T {
    let mut at = std::ptr::from_ref(of);
    // SAFETY: no instructions.
    unsafe { asm!("/* {0} */", inout(reg) at, options(readonly, nostack, preserves_flags)) }
    // SAFETY: a reference's.
    unsafe { &*at }
}

/// Says that memory will be read soon, of which there need not be any.
#[inline(always)]
pub fn ahead(at: *const u8) {
    // SAFETY: every processor has it, and it reads nothing that is not there.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
}

/// Has what stands at `items` in memory: taking lanes out of a vector one by one costs more than loads do, and the
/// compiler would.
#[inline(always)]
fn in_memory<const N: usize>(items: &mut [i32; N]) {
    // SAFETY: no instructions.
    unsafe { asm!("/* {0} */", in(reg) items.as_mut_ptr(), options(nostack, preserves_flags)) }
}

#[inline(always)]
unsafe fn place(base: *const u8, offsets: *const i32, nth: usize) -> *const u8 {
    // SAFETY: `Vector`'s.
    unsafe { base.offset(*offsets.add(nth) as isize) }
}

/// 32 bits at each of four offsets, loaded one by one: the instruction for it takes several times as long on many
/// processors.
#[inline(always)]
unsafe fn words(base: *const u8, offsets: *const i32) -> __m128i {
    // SAFETY: `Vector`'s.
    unsafe {
        let word = |nth: usize| place(base, offsets, nth).cast::<i32>().read_unaligned();
        let words = _mm_cvtsi32_si128(word(0));
        let words = _mm_insert_epi32::<1>(words, word(1));
        let words = _mm_insert_epi32::<2>(words, word(2));
        _mm_insert_epi32::<3>(words, word(3))
    }
}

/// 64 bits at each of two offsets.
#[inline(always)]
unsafe fn doubles(base: *const u8, offsets: *const i32) -> __m128 {
    // SAFETY: `Vector`'s.
    unsafe {
        let low = _mm_loadl_epi64(place(base, offsets, 0).cast());
        _mm_castpd_ps(_mm_loadh_pd(_mm_castsi128_pd(low), place(base, offsets, 1).cast()))
    }
}

/// 128 bits at an offset.
#[inline(always)]
unsafe fn quad(base: *const u8, offsets: *const i32, nth: usize) -> __m128 {
    // SAFETY: `Vector`'s.
    unsafe { _mm_loadu_ps(place(base, offsets, nth).cast()) }
}
