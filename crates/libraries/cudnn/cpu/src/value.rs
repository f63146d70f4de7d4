//! Types of memory, and the two that are computed in.

use cublas_cpu::{E4M3, E5M2, Real, Stored, bf16, f16};

use crate::elementary;
use crate::packed::{self, Code};

/// What an element is in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    F32,
    F64,
    F16,
    Bf16,
    E4M3,
    E5M2,
    I8,
    U8,
    I32,
    I64,
    /// A byte that is 0 or not.
    Bool,
    /// A bit, eight of which are a byte.
    Bit,
    /// Two of them are a byte.
    I4,
    U4,
    E2M1,
    /// A power of two, of which there is the exponent alone.
    E8M0,
    U32,
}

impl Kind {
    pub fn bytes(self) -> usize {
        self.bits().div_ceil(8)
    }

    pub fn bits(self) -> usize {
        match self {
            Kind::F64 | Kind::I64 => 64,
            Kind::F32 | Kind::I32 | Kind::U32 => 32,
            Kind::F16 | Kind::Bf16 => 16,
            Kind::E4M3 | Kind::E5M2 | Kind::E8M0 | Kind::I8 | Kind::U8 | Kind::Bool => 8,
            Kind::I4 | Kind::U4 | Kind::E2M1 => 4,
            Kind::Bit => 1,
        }
    }

    /// How it is read and written where it is no element of its own.
    pub(crate) fn code(self) -> Option<&'static Code> {
        match self {
            Kind::Bit => Some(&packed::BIT),
            Kind::I4 => Some(&packed::I4),
            Kind::U4 => Some(&packed::U4),
            Kind::E2M1 => Some(&packed::E2M1),
            Kind::E8M0 => Some(&packed::E8M0),
            Kind::U32 => Some(&packed::U32),
            _ => None,
        }
    }
}

/// What is computed in: `f32` or `f64`.
pub trait Value: Real {
    const KIND: Kind;
    fn of(value: f64) -> Self;
    fn get(self) -> f64;
    /// e to this power.
    fn power(self) -> Self;
    /// The same less 1.
    fn power_less_one(self) -> Self;
    /// The hyperbolic one.
    fn tangent(self) -> Self;
}

impl Value for f32 {
    const KIND: Kind = Kind::F32;
    #[inline(always)]
    fn of(value: f64) -> f32 {
        value as f32
    }
    #[inline(always)]
    fn get(self) -> f64 {
        f64::from(self)
    }
    #[inline(always)]
    fn power(self) -> f32 {
        elementary::power(self)
    }
    #[inline(always)]
    fn power_less_one(self) -> f32 {
        elementary::power_less_one(self)
    }
    #[inline(always)]
    fn tangent(self) -> f32 {
        elementary::tanh(self)
    }
}

impl Value for f64 {
    const KIND: Kind = Kind::F64;
    #[inline(always)]
    fn of(value: f64) -> f64 {
        value
    }
    #[inline(always)]
    fn get(self) -> f64 {
        self
    }
    #[inline(always)]
    fn power(self) -> f64 {
        self.exp()
    }
    #[inline(always)]
    fn power_less_one(self) -> f64 {
        self.exp_m1()
    }
    #[inline(always)]
    fn tangent(self) -> f64 {
        self.tanh()
    }
}

fn nearest<E: Element, V: Value>(value: V) -> V {
    E::store(value).load()
}

/// The nearest number of a float type of 8 bits; the largest for what is larger.
pub fn rounded<V: Value>(kind: Kind) -> Option<fn(V) -> V> {
    match kind {
        Kind::E4M3 => Some(nearest::<E4M3, V>),
        Kind::E5M2 => Some(nearest::<E5M2, V>),
        _ => None,
    }
}

/// An element in memory. A way over `f64` and back costs nothing: the compiler takes it out.
pub trait Element: Copy + Send + Sync + 'static {
    fn load<V: Value>(self) -> V;
    fn store<V: Value>(value: V) -> Self;
}

macro_rules! floats {
    ($($name:ty),*) => {$(
        impl Element for $name {
            #[inline(always)]
            fn load<V: Value>(self) -> V {
                V::of(f64::from(Stored::<f32>::load(self)))
            }
            #[inline(always)]
            fn store<V: Value>(value: V) -> Self {
                <Self as Stored<f32>>::store(value.get() as f32)
            }
        }
    )*};
}
floats!(f32, bf16, f16, E4M3, E5M2);

impl Element for f64 {
    #[inline(always)]
    fn load<V: Value>(self) -> V {
        V::of(self)
    }
    #[inline(always)]
    fn store<V: Value>(value: V) -> Self {
        value.get()
    }
}

macro_rules! integers {
    ($($name:ty),*) => {$(
        impl Element for $name {
            #[inline(always)]
            fn load<V: Value>(self) -> V {
                V::of(self as f64)
            }
            /// The nearest, ties to even; the cast ends at the type's ends.
            #[inline(always)]
            fn store<V: Value>(value: V) -> Self {
                value.get().round_ties_even() as Self
            }
        }
    )*};
}
integers!(i8, u8, i32, i64);

/// A byte that says yes or no.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct Yes(u8);

impl Element for Yes {
    #[inline(always)]
    fn load<V: Value>(self) -> V {
        V::of(if self.0 == 0 { 0.0 } else { 1.0 })
    }
    #[inline(always)]
    fn store<V: Value>(value: V) -> Self {
        Yes(u8::from(value.get() != 0.0))
    }
}

/// Runs the expression with `$element` being the type behind a kind.
macro_rules! with_element {
    ($kind:expr, $element:ident => $body:expr) => {
        match $kind {
            $crate::Kind::F32 => {
                type $element = f32;
                $body
            }
            $crate::Kind::F64 => {
                type $element = f64;
                $body
            }
            $crate::Kind::F16 => {
                type $element = cublas_cpu::f16;
                $body
            }
            $crate::Kind::Bf16 => {
                type $element = cublas_cpu::bf16;
                $body
            }
            $crate::Kind::E4M3 => {
                type $element = cublas_cpu::E4M3;
                $body
            }
            $crate::Kind::E5M2 => {
                type $element = cublas_cpu::E5M2;
                $body
            }
            $crate::Kind::I8 => {
                type $element = i8;
                $body
            }
            $crate::Kind::U8 => {
                type $element = u8;
                $body
            }
            $crate::Kind::I32 => {
                type $element = i32;
                $body
            }
            $crate::Kind::I64 => {
                type $element = i64;
                $body
            }
            $crate::Kind::Bool => {
                type $element = $crate::value::Yes;
                $body
            }
            // The callers have asked for a code before.
            _ => unreachable!("elements of {:?} have a code", $kind),
        }
    };
}
pub(crate) use with_element;
