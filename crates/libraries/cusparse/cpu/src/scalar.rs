//! What lies in memory, and what is computed with.

use core::fmt::Debug;
use core::ops::{Add, AddAssign, Div, Mul, MulAssign, Neg, Sub};

use half::{bf16, f16};
use num_complex::Complex;

/// A type of values in memory.
pub trait Element: Copy + Default + Send + Sync + 'static {
    /// Exact for each of them.
    fn wide(self) -> Complex<f64>;
    /// Rounded to the nearest; of complex numbers the real part where the type is real.
    fn narrow(wide: Complex<f64>) -> Self;
}

/// A type that is computed with.
pub trait Scalar:
    Element
    + Debug
    + PartialEq
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
    + AddAssign
    + MulAssign
{
    const ZERO: Self;
    const ONE: Self;

    fn conj(self) -> Self;

    fn conj_if(self, conjugated: bool) -> Self {
        if conjugated { self.conj() } else { self }
    }
}

macro_rules! real {
    ($($ty:ty)*) => {$(
        impl Element for $ty {
            fn wide(self) -> Complex<f64> {
                Complex::new(self.into(), 0.0)
            }

            fn narrow(wide: Complex<f64>) -> Self {
                wide.re as $ty
            }
        }
    )*};
}

real! { f32 f64 i32 i8 }

macro_rules! half {
    ($($ty:ty)*) => {$(
        impl Element for $ty {
            fn wide(self) -> Complex<f64> {
                Complex::new(self.to_f64(), 0.0)
            }

            fn narrow(wide: Complex<f64>) -> Self {
                <$ty>::from_f64(wide.re)
            }
        }
    )*};
}

half! { f16 bf16 }

macro_rules! complex {
    ($($part:ty)*) => {$(
        impl Element for Complex<$part> {
            fn wide(self) -> Complex<f64> {
                Complex::new(self.re.wide().re, self.im.wide().re)
            }

            fn narrow(wide: Complex<f64>) -> Self {
                Complex::new(<$part>::narrow(wide), <$part>::narrow(Complex::new(wide.im, 0.0)))
            }
        }
    )*};
}

complex! { f32 f64 f16 bf16 }

macro_rules! scalar {
    ($($ty:ty, $zero:expr, $one:expr, $conj:expr;)*) => {$(
        impl Scalar for $ty {
            const ZERO: Self = $zero;
            const ONE: Self = $one;

            #[inline]
            fn conj(self) -> Self {
                $conj(self)
            }
        }
    )*};
}

scalar! {
    f32, 0.0, 1.0, |it| it;
    f64, 0.0, 1.0, |it| it;
    i32, 0, 1, |it| it;
    Complex<f32>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), |it: Complex<f32>| Complex::conj(&it);
    Complex<f64>, Complex::new(0.0, 0.0), Complex::new(1.0, 0.0), |it: Complex<f64>| Complex::conj(&it);
}

/// Values as they are computed with.
pub fn widen<E: Element, C: Scalar>(values: &[E]) -> Vec<C> {
    values.iter().map(|value| C::narrow(value.wide())).collect()
}
