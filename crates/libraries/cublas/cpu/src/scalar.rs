//! What is computed in ([`Number`], [`Scalar`], [`Real`]) and what lies in memory ([`Stored`]).
//!
//! A product and a sum stay two operations: where the processor has no fused one, `mul_add` is a call.

use std::fmt::Debug;
use std::ops::Neg;

use half::{bf16, f16};
use num_complex::Complex;
use num_traits::{Float, NumAssign};

/// What sums of products are made of: a [`Scalar`], or `i32` for products of bytes.
pub trait Number: NumAssign + Neg<Output = Self> + Copy + Debug + Send + Sync + 'static {}

impl Number for f32 {}
impl Number for f64 {}
impl Number for Complex<f32> {}
impl Number for Complex<f64> {}
impl Number for i32 {}

/// A real or complex number that routines compute in.
pub trait Scalar: Number + Stored<Self> {
    type Real: Real;
    const IS_COMPLEX: bool;

    fn from_real(real: Self::Real) -> Self;
    fn real(self) -> Self::Real;
    fn imag(self) -> Self::Real;
    /// A real number has no imaginary part to set.
    fn with_imag(self, imag: Self::Real) -> Self;
    fn conj(self) -> Self;
    fn times_real(self, factor: Self::Real) -> Self;
    fn over_real(self, divisor: Self::Real) -> Self;

    /// The quotient, overflowing only where it is itself too large.
    fn over(self, divisor: Self) -> Self;

    /// The modulus, overflowing only where it is itself too large.
    fn modulus(self) -> Self::Real;

    /// `|re| + |im|`, the size that `asum` and `iamax` mean.
    fn abs1(self) -> Self::Real {
        self.real().abs() + self.imag().abs()
    }

    /// The conjugate where `conjugates`; decided outside of loops, it costs nothing in them.
    #[inline(always)]
    fn conj_if(self, conjugates: bool) -> Self {
        if Self::IS_COMPLEX && conjugates { self.conj() } else { self }
    }

    fn has_nan(self) -> bool {
        self.real().is_nan() || self.imag().is_nan()
    }
}

/// `f32` or `f64`.
pub trait Real: Scalar<Real = Self> + Float {
    /// A power of two that makes the squares of all numbers too large to square, or of sums of them, fit.
    const SHRINKS: Self;
    /// A power of two that makes the squares of all numbers too small to square fit.
    const GROWS: Self;

    /// The unit roundoff u: half the distance from one to the next number.
    fn unit_roundoff() -> Self {
        Self::epsilon() / Self::rounded(2.0)
    }

    /// The nearest number to one that our source has.
    fn rounded(value: f64) -> Self;
}

// The powers are given by their bits: exponent above mantissa.
macro_rules! real {
    ($($real:ty, $shrinks:expr, $grows:expr;)*) => {$(
        impl Real for $real {
            const SHRINKS: Self = <$real>::from_bits($shrinks);
            const GROWS: Self = <$real>::from_bits($grows);

            #[inline(always)]
            fn rounded(value: f64) -> Self {
                value as Self
            }
        }

        impl Scalar for $real {
            type Real = Self;
            const IS_COMPLEX: bool = false;

            #[inline(always)]
            fn from_real(real: Self) -> Self {
                real
            }
            #[inline(always)]
            fn real(self) -> Self {
                self
            }
            #[inline(always)]
            fn imag(self) -> Self {
                0.0
            }
            #[inline(always)]
            fn with_imag(self, _: Self) -> Self {
                self
            }
            #[inline(always)]
            fn conj(self) -> Self {
                self
            }
            #[inline(always)]
            fn times_real(self, factor: Self) -> Self {
                self * factor
            }
            #[inline(always)]
            fn over_real(self, divisor: Self) -> Self {
                self / divisor
            }
            #[inline(always)]
            fn over(self, divisor: Self) -> Self {
                self / divisor
            }
            #[inline(always)]
            fn modulus(self) -> Self {
                self.abs()
            }
            #[inline(always)]
            fn abs1(self) -> Self {
                self.abs()
            }
        }

        impl Scalar for Complex<$real> {
            type Real = $real;
            const IS_COMPLEX: bool = true;

            #[inline(always)]
            fn from_real(real: $real) -> Self {
                Self::new(real, 0.0)
            }
            #[inline(always)]
            fn real(self) -> $real {
                self.re
            }
            #[inline(always)]
            fn imag(self) -> $real {
                self.im
            }
            #[inline(always)]
            fn with_imag(self, imag: $real) -> Self {
                Self::new(self.re, imag)
            }
            #[inline(always)]
            fn conj(self) -> Self {
                Self::new(self.re, -self.im)
            }
            #[inline(always)]
            fn times_real(self, factor: $real) -> Self {
                Self::new(self.re * factor, self.im * factor)
            }
            #[inline(always)]
            fn over_real(self, divisor: $real) -> Self {
                Self::new(self.re / divisor, self.im / divisor)
            }
            /// Smith's: the divisor's smaller part over its larger one is at most one.
            fn over(self, divisor: Self) -> Self {
                if divisor.re.abs() >= divisor.im.abs() {
                    let ratio = divisor.im / divisor.re;
                    let whole = divisor.re + divisor.im * ratio;
                    Self::new((self.re + self.im * ratio) / whole, (self.im - self.re * ratio) / whole)
                } else {
                    let ratio = divisor.re / divisor.im;
                    let whole = divisor.re * ratio + divisor.im;
                    Self::new((self.re * ratio + self.im) / whole, (self.im * ratio - self.re) / whole)
                }
            }
            #[inline(always)]
            fn modulus(self) -> $real {
                self.re.hypot(self.im)
            }
        }
    )*};
}
real! {
    f32, (127 - 84) << 23, (127 + 90) << 23;
    f64, (1023 - 600) << 52, (1023 + 600) << 52;
}

/// An element as it lies in memory, of which routines compute in `S`.
pub trait Stored<S: Number>: Copy + Send + Sync + 'static {
    fn load(self) -> S;
    /// The nearest value there is, ties to even; integers end at their ends.
    fn store(value: S) -> Self;
}

impl<S: Number> Stored<S> for S {
    #[inline(always)]
    fn load(self) -> S {
        self
    }
    #[inline(always)]
    fn store(value: S) -> S {
        value
    }
}

macro_rules! stored {
    ($($stored:ty),*) => {$(
        impl Stored<f32> for $stored {
            #[inline(always)]
            fn load(self) -> f32 {
                self.to_f32()
            }
            #[inline(always)]
            fn store(value: f32) -> Self {
                Self::from_f32(value)
            }
        }
    )*};
}
stored!(bf16, crate::E4M3, crate::E5M2);

impl Stored<f32> for f16 {
    /// Without a branch, for loops over vectors: exponent and mantissa in their places, and a product that moves the
    /// bias, for subnormal numbers too.
    #[inline(always)]
    fn load(self) -> f32 {
        let sign = u32::from(self.to_bits() & 0x8000) << 16;
        let magnitude = u32::from(self.to_bits() & 0x7fff);
        let finite = (f32::from_bits(magnitude << 13) * f32::from_bits((127 + 112) << 23)).to_bits();
        let other = magnitude << 13 | 0x7f80_0000;
        f32::from_bits(sign | if magnitude < 0x7c00 { finite } else { other })
    }
    #[inline(always)]
    fn store(value: f32) -> Self {
        Self::from_f32(value)
    }
}

impl Stored<f32> for i8 {
    #[inline(always)]
    fn load(self) -> f32 {
        f32::from(self)
    }
    #[inline(always)]
    fn store(value: f32) -> Self {
        // The cast ends at i8's ends, and makes 0 of NaN.
        value.round_ties_even() as Self
    }
}

impl Stored<f32> for i32 {
    #[inline(always)]
    fn load(self) -> f32 {
        self as f32
    }
    #[inline(always)]
    fn store(value: f32) -> Self {
        value.round_ties_even() as Self
    }
}

impl Stored<i32> for i8 {
    #[inline(always)]
    fn load(self) -> i32 {
        i32::from(self)
    }
    #[inline(always)]
    fn store(value: i32) -> Self {
        value.clamp(i32::from(Self::MIN), i32::from(Self::MAX)) as Self
    }
}

macro_rules! complex_stored {
    ($($part:ty),*) => {$(
        impl Stored<Complex<f32>> for Complex<$part> {
            #[inline(always)]
            fn load(self) -> Complex<f32> {
                Complex::new(self.re.load(), self.im.load())
            }
            #[inline(always)]
            fn store(value: Complex<f32>) -> Self {
                Complex::new(<$part>::store(value.re), <$part>::store(value.im))
            }
        }
    )*};
}
complex_stored!(f16, bf16, i8);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_loads_as_the_half_crate_converts_it() {
        for bits in 0..=u16::MAX {
            let (ours, theirs): (f32, f32) = (f16::from_bits(bits).load(), f16::from_bits(bits).to_f32());
            assert!(ours.to_bits() == theirs.to_bits() || ours.is_nan() && theirs.is_nan(), "{bits:#x}");
        }
    }
}
