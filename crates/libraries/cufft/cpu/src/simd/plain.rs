//! Vectors of any processor: arrays, which LLVM puts into what vectors there are.

use num_complex::Complex;

use super::Vector;
use crate::Real;

#[derive(Clone, Copy)]
#[repr(C, align(32))]
pub(crate) struct Plain<T>([T; 8]);

impl<T: Real> Plain<T> {
    #[inline(always)]
    fn each(f: impl Fn(usize) -> T) -> Self {
        Self(std::array::from_fn(f))
    }
}

impl<T: Real> Vector<T> for Plain<T> {
    const LANES: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const Complex<T>) -> Self {
        // SAFETY: the caller promises four complex numbers, which are eight real ones.
        Self(unsafe { from.cast::<[T; 8]>().read_unaligned() })
    }

    #[inline(always)]
    unsafe fn store(self, to: *mut Complex<T>) {
        // SAFETY: as above.
        unsafe { to.cast::<[T; 8]>().write_unaligned(self.0) }
    }

    #[inline(always)]
    fn pairs(re: T, im: T) -> Self {
        Self::each(|i| if i % 2 == 0 { re } else { im })
    }

    #[inline(always)]
    fn splat(value: T) -> Self {
        Self([value; 8])
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        Self::each(|i| self.0[i] + other.0[i])
    }

    #[inline(always)]
    fn sub(self, other: Self) -> Self {
        Self::each(|i| self.0[i] - other.0[i])
    }

    #[inline(always)]
    fn scale(self, factors: Self) -> Self {
        Self::each(|i| self.0[i] * factors.0[i])
    }

    #[inline(always)]
    fn scale_add(self, factors: Self, more: Self) -> Self {
        Self::each(|i| self.0[i] * factors.0[i] + more.0[i])
    }

    #[inline(always)]
    fn scale_sub(self, factors: Self, more: Self) -> Self {
        Self::each(|i| more.0[i] - self.0[i] * factors.0[i])
    }

    #[inline(always)]
    fn scale_alternate(self, factors: Self, more: Self) -> Self {
        Self::each(|i| {
            let product = self.0[i] * factors.0[i];
            if i % 2 == 0 { product - more.0[i] } else { product + more.0[i] }
        })
    }

    #[inline(always)]
    fn conjugate(self) -> Self {
        Self::each(|i| if i % 2 == 0 { self.0[i] } else { -self.0[i] })
    }

    #[inline(always)]
    fn swap(self) -> Self {
        Self::each(|i| self.0[i ^ 1])
    }

    #[inline(always)]
    fn real(self) -> Self {
        Self::each(|i| self.0[i & !1])
    }

    #[inline(always)]
    fn imaginary(self) -> Self {
        Self::each(|i| self.0[i | 1])
    }

    #[inline(always)]
    fn reverse(self) -> Self {
        Self::each(|i| self.0[(6 - (i & !1)) | (i & 1)])
    }

    #[inline(always)]
    fn transpose(rows: &mut [Self]) {
        for i in 0..4 {
            for j in 0..i {
                for part in 0..2 {
                    let upper = rows[j].0[2 * i + part];
                    rows[j].0[2 * i + part] = rows[i].0[2 * j + part];
                    rows[i].0[2 * j + part] = upper;
                }
            }
        }
    }
}
