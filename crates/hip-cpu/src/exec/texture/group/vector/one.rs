//! One lane: every processor's.

use super::Vector;

pub struct One;

impl Vector for One {
    const LANES: usize = 1;
    type Int = i32;
    type Float = f32;
    type Double = f64;
    type Mask = bool;

    #[inline(always)]
    unsafe fn load(from: *const u32) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { from.read().cast_signed() }
    }

    #[inline(always)]
    unsafe fn load_bytes(from: *const u8) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { from.read().into() }
    }

    #[inline(always)]
    unsafe fn load_pairs(from: *const u16) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { from.read_unaligned().into() }
    }

    #[inline(always)]
    unsafe fn store(to: *mut u32, value: Self::Int) {
        // SAFETY: the trait's.
        unsafe { to.write(value.cast_unsigned()) }
    }

    #[inline(always)]
    unsafe fn gather(base: *const u8, offset: Self::Int) -> Self::Int {
        // SAFETY: the trait's.
        unsafe { base.offset(offset as isize).cast::<i32>().read_unaligned() }
    }

    #[inline(always)]
    unsafe fn splat(value: i32) -> Self::Int {
        value
    }

    #[inline(always)]
    unsafe fn add(a: Self::Int, b: Self::Int) -> Self::Int {
        a.wrapping_add(b)
    }

    #[inline(always)]
    unsafe fn sub(a: Self::Int, b: Self::Int) -> Self::Int {
        a.wrapping_sub(b)
    }

    #[inline(always)]
    unsafe fn mul(a: Self::Int, b: Self::Int) -> Self::Int {
        a.wrapping_mul(b)
    }

    #[inline(always)]
    unsafe fn mul_short(a: Self::Int, b: Self::Int) -> Self::Int {
        a.wrapping_mul(b)
    }

    #[inline(always)]
    unsafe fn and(a: Self::Int, b: Self::Int) -> Self::Int {
        a & b
    }

    #[inline(always)]
    unsafe fn or(a: Self::Int, b: Self::Int) -> Self::Int {
        a | b
    }

    #[inline(always)]
    unsafe fn min(a: Self::Int, b: Self::Int) -> Self::Int {
        a.min(b)
    }

    #[inline(always)]
    unsafe fn max(a: Self::Int, b: Self::Int) -> Self::Int {
        a.max(b)
    }

    #[inline(always)]
    unsafe fn min_unsigned(a: Self::Int, b: Self::Int) -> Self::Int {
        a.cast_unsigned().min(b.cast_unsigned()).cast_signed()
    }

    #[inline(always)]
    unsafe fn left(a: Self::Int, by: Self::Int) -> Self::Int {
        a << by
    }

    #[inline(always)]
    unsafe fn right(a: Self::Int, by: Self::Int) -> Self::Int {
        (a.cast_unsigned() >> by).cast_signed()
    }

    #[inline(always)]
    unsafe fn right_signed(a: Self::Int, by: Self::Int) -> Self::Int {
        a >> by
    }

    #[inline(always)]
    unsafe fn equal(a: Self::Int, b: Self::Int) -> Self::Mask {
        a == b
    }

    #[inline(always)]
    unsafe fn different(a: Self::Int, b: Self::Int) -> Self::Mask {
        a != b
    }

    #[inline(always)]
    unsafe fn less(a: Self::Int, b: Self::Int) -> Self::Mask {
        a < b
    }

    #[inline(always)]
    unsafe fn no_lane() -> Self::Mask {
        false
    }

    #[inline(always)]
    unsafe fn either(a: Self::Mask, b: Self::Mask) -> Self::Mask {
        a | b
    }

    #[inline(always)]
    unsafe fn select(mask: Self::Mask, yes: Self::Int, no: Self::Int) -> Self::Int {
        if mask { yes } else { no }
    }

    #[inline(always)]
    unsafe fn lanes(mask: Self::Mask) -> u64 {
        mask.into()
    }

    #[inline(always)]
    unsafe fn float(bits: Self::Int) -> Self::Float {
        f32::from_bits(bits.cast_unsigned())
    }

    #[inline(always)]
    unsafe fn bits(value: Self::Float) -> Self::Int {
        value.to_bits().cast_signed()
    }

    #[inline(always)]
    unsafe fn splat_float(value: f32) -> Self::Float {
        value
    }

    #[inline(always)]
    unsafe fn mul_float(a: Self::Float, b: Self::Float) -> Self::Float {
        a * b
    }

    #[inline(always)]
    unsafe fn div_float(a: Self::Float, b: Self::Float) -> Self::Float {
        a / b
    }

    #[inline(always)]
    unsafe fn min_float(a: Self::Float, b: Self::Float) -> Self::Float {
        a.min(b)
    }

    #[inline(always)]
    unsafe fn max_float(a: Self::Float, b: Self::Float) -> Self::Float {
        a.max(b)
    }

    #[inline(always)]
    unsafe fn sub_float(a: Self::Float, b: Self::Float) -> Self::Float {
        a - b
    }

    #[inline(always)]
    unsafe fn floor_float(a: Self::Float) -> Self::Float {
        a.floor()
    }

    #[inline(always)]
    unsafe fn within(a: Self::Float, limit: f32) -> Self::Mask {
        a.abs() < limit
    }

    #[inline(always)]
    unsafe fn floor_to_int(a: Self::Float) -> Self::Int {
        a.floor() as i32
    }

    #[inline(always)]
    unsafe fn to_float(a: Self::Int) -> Self::Float {
        a as f32
    }

    #[inline(always)]
    unsafe fn splat_double(value: f64) -> Self::Double {
        value
    }

    #[inline(always)]
    unsafe fn widen(a: Self::Float) -> Self::Double {
        a.into()
    }

    #[inline(always)]
    unsafe fn widen_int(a: Self::Int) -> Self::Double {
        a.into()
    }

    #[inline(always)]
    unsafe fn narrow(a: Self::Double) -> Self::Float {
        a as f32
    }

    #[inline(always)]
    unsafe fn add_double(a: Self::Double, b: Self::Double) -> Self::Double {
        a + b
    }

    #[inline(always)]
    unsafe fn sub_double(a: Self::Double, b: Self::Double) -> Self::Double {
        a - b
    }

    #[inline(always)]
    unsafe fn mul_double(a: Self::Double, b: Self::Double) -> Self::Double {
        a * b
    }

    #[inline(always)]
    unsafe fn min_double(a: Self::Double, b: Self::Double) -> Self::Double {
        a.min(b)
    }

    #[inline(always)]
    unsafe fn max_double(a: Self::Double, b: Self::Double) -> Self::Double {
        a.max(b)
    }

    #[inline(always)]
    unsafe fn floor_double(a: Self::Double) -> Self::Double {
        a.floor()
    }

    #[inline(always)]
    unsafe fn floor_double_to_int(a: Self::Double) -> Self::Int {
        a.floor() as i32
    }

    #[inline(always)]
    unsafe fn gather_two(base: *const u8, offset: i32) -> [i32; 2] {
        // SAFETY: the trait's.
        unsafe {
            let at = base.offset(offset as isize);
            [Self::gather(at, 0), Self::gather(at, 4)]
        }
    }

    #[inline(always)]
    unsafe fn gather_four(base: *const u8, offset: i32) -> [i32; 4] {
        // SAFETY: the trait's.
        unsafe {
            let at = base.offset(offset as isize);
            [Self::gather(at, 0), Self::gather(at, 4), Self::gather(at, 8), Self::gather(at, 12)]
        }
    }

    #[inline(always)]
    unsafe fn first(value: i32) -> i32 {
        value
    }

    #[inline(always)]
    unsafe fn last(value: i32) -> i32 {
        value
    }

    #[inline(always)]
    unsafe fn permuted(items: i32, places: i32) -> i32 {
        let _ = places;
        items
    }

    #[inline(always)]
    unsafe fn permuted_of_two(items: [i32; 2], places: i32) -> i32 {
        items[(places & 1) as usize]
    }

    #[inline(always)]
    unsafe fn is_line(value: i32, stride: i32) -> bool {
        let _ = (value, stride);
        true
    }

    #[inline(always)]
    unsafe fn are_equal(a: i32, b: i32) -> bool {
        a == b
    }

    #[inline(always)]
    unsafe fn fused(a: f64, b: f64, c: f64) -> f64 {
        a * b + c
    }

    #[inline(always)]
    unsafe fn is_number(a: f32) -> bool {
        !a.is_nan()
    }
}
