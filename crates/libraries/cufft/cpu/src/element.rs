//! What numbers are stored as and computed in.

use half::{bf16, f16};
use num_complex::Complex;
use rustfft::FftNum;

use crate::error::{Error, Result};
use crate::isa::{Isa, Kernels};

/// What a transform computes in: `f32` or `f64`.
pub trait Real: FftNum + std::ops::Neg<Output = Self> + sealed::Real {}

impl Real for f32 {}
impl Real for f64 {}

pub(crate) mod sealed {
    use super::{Isa, Kernels};

    /// What the crate needs to know of a number and nobody outside implements.
    #[expect(private_interfaces, reason = "sealed: named in this crate only")]
    pub trait Real: Sized + 'static {
        const BYTES: usize = size_of::<Self>();
        fn of(value: f64) -> Self;
        fn kernels(isa: Isa) -> &'static Kernels<Self>;
        /// The processor's kernels of half the width, if it has such.
        fn narrow_kernels(isa: Isa) -> Option<&'static Kernels<Self>>;
    }
}

/// The types that cuFFT stores and computes in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Precision {
    /// Stored as `f16`, computed in `f32`.
    Half,
    /// Stored as `bf16`, computed in `f32`.
    Bfloat,
    Single,
    Double,
}

impl Precision {
    /// Bytes of a real number in memory.
    pub fn bytes(self) -> usize {
        match self {
            Self::Half | Self::Bfloat => 2,
            Self::Single => 4,
            Self::Double => 8,
        }
    }
}

/// Which side is complex.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Complex to complex, in either direction.
    C2C,
    /// Real to the first half of its (Hermitian) transform; forward.
    R2C,
    /// The first half of a Hermitian array to real; inverse.
    C2R,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Direction {
    Forward,
    Inverse,
}

/// One `cudaDataType` of those that `cufftXtMakePlanMany` takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Element {
    pub complex: bool,
    pub precision: Precision,
}

impl Kind {
    /// What `cufftXtMakePlanMany`'s three types ask for. Both sides and the execution have one precision, and the
    /// execution is complex.
    pub fn of(input: Element, output: Element, execution: Element) -> Result<(Self, Precision)> {
        let precision = execution.precision;
        if !execution.complex || input.precision != precision || output.precision != precision {
            return Err(Error::InvalidType);
        }
        match (input.complex, output.complex) {
            (true, true) => Ok((Self::C2C, precision)),
            (false, true) => Ok((Self::R2C, precision)),
            (true, false) => Ok((Self::C2R, precision)),
            (false, false) => Err(Error::InvalidType),
        }
    }
}

/// A real number as it lies in memory, computed in `T`.
pub(crate) trait Stored<T>: Copy + Send + Sync + 'static {
    fn load(self) -> T;
    fn store(value: T) -> Self;
}

impl<T: Real> Stored<T> for T {
    fn load(self) -> T {
        self
    }

    fn store(value: T) -> T {
        value
    }
}

macro_rules! narrow {
    ($($narrow:ty),*) => {
        $(
            impl Stored<f32> for $narrow {
                fn load(self) -> f32 {
                    self.to_f32()
                }

                fn store(value: f32) -> Self {
                    Self::from_f32(value)
                }
            }
        )*
    };
}
narrow!(f16, bf16);

/// `exp(-2 pi i k / n)`, or its conjugate for the inverse direction, rounded once.
pub(crate) fn root<T: Real>(k: u64, n: u64, direction: Direction) -> Complex<T> {
    let k = k % n;
    // Within the first eighth of the circle, where both parts are as exact as `f64` allows.
    let eighths = (8 * u128::from(k) / u128::from(n)) as u64;
    let angle = |numerator: u128| std::f64::consts::TAU * (numerator as f64 / n as f64);
    let (k, n) = (u128::from(k), u128::from(n));
    // Quarter turns are exact: what is left lies within an eighth on either side of an axis.
    let quarter = eighths.div_ceil(2);
    let rest = (4 * k) as i128 - (u128::from(quarter) * n) as i128;
    let (sin, cos) = (angle(rest.unsigned_abs()) / 4.0).sin_cos();
    let sin = if rest < 0 { -sin } else { sin };
    let (cos, sin) = match quarter % 4 {
        0 => (cos, sin),
        1 => (-sin, cos),
        2 => (-cos, -sin),
        _ => (sin, -cos),
    };
    let sin = if direction == Direction::Forward { -sin } else { sin };
    Complex::new(T::of(cos), T::of(sin))
}
