//! Which of the compiled forms of the loops this processor runs.

use crate::element::sealed;
use crate::kernel::{Fold, Join, Last, Pass, Shear, Small, Tile};
use crate::simd::Plain;

/// The vectors that are there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Isa {
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    Plain,
}

impl Isa {
    pub(crate) fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
            if avx2 && is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq") {
                return Self::Avx512;
            }
            if avx2 {
                return Self::Avx2;
            }
        }
        Self::Plain
    }

    /// All that this processor runs, the best one first.
    pub fn all() -> Vec<Self> {
        match Self::detect() {
            #[cfg(target_arch = "x86_64")]
            Self::Avx512 => vec![Self::Avx512, Self::Avx2, Self::Plain],
            #[cfg(target_arch = "x86_64")]
            Self::Avx2 => vec![Self::Avx2, Self::Plain],
            Self::Plain => vec![Self::Plain],
        }
    }
}

/// A pass of one radix.
pub(crate) type Run<T> = unsafe fn(&Pass<T>);

/// All lines of a short length.
pub(crate) type RunSmall<T> = unsafe fn(&Small<T>);

/// The loops for one kind of vector.
pub(crate) struct Kernels<T> {
    /// Complex numbers in a vector.
    pub(crate) lanes: usize,
    /// Radices of powers of two, as exponents, that the registers have room for.
    pub(crate) widest: u32,
    /// By radix; `None` where there is no butterfly.
    pub(crate) pass: [Option<Run<T>>; 24],
    /// By a fourth of the radix; `None` where lanes do not divide it.
    pub(crate) small: [Option<RunSmall<T>>; 5],
    pub(crate) last: unsafe fn(&Last<T>),
    pub(crate) gather: unsafe fn(&Tile<T>),
    pub(crate) scatter: unsafe fn(&Tile<T>),
    pub(crate) fold: unsafe fn(&Fold<T>),
    pub(crate) join: unsafe fn(&Join<T>),
    pub(crate) shear: unsafe fn(&Shear<T>),
}

macro_rules! kernels {
    ($module:ident, $vector:ty, $real:ty, $lanes:literal, $widest:literal $(, $features:literal)?) => {
        mod $module {
            use super::*;
            use crate::kernel;

            type V = $vector;

            $(#[target_feature(enable = $features)])?
            unsafe fn pass<const R: usize>(arguments: &Pass<$real>) {
                // SAFETY: as the caller promises.
                unsafe { kernel::pass::<$real, V, R>(arguments) }
            }

            $(#[target_feature(enable = $features)])?
            unsafe fn small<const R: usize>(arguments: &Small<$real>) {
                // SAFETY: as the caller promises.
                unsafe { kernel::small::<$real, V, $lanes, R>(arguments) }
            }

            /// 4 has a whole number of vectors but for those of eight lanes, and 12 too.
            const ODD: bool = $lanes <= 4;

            kernels!(@each $real, $($features)?, last: Last = kernel::last::<$real, V, $lanes>,
                gather: Tile = kernel::gather::<$real, V, $lanes>, scatter: Tile = kernel::scatter::<$real, V, $lanes>,
                fold: Fold = kernel::fold::<$real, V>, join: Join = kernel::join::<$real, V>,
                shear: Shear = kernel::shear::<$real, V>);

            pub(super) static KERNELS: Kernels<$real> = Kernels {
                lanes: $lanes,
                widest: $widest,
                pass: [
                    None, None, Some(pass::<2>), Some(pass::<3>), Some(pass::<4>), Some(pass::<5>), Some(pass::<6>),
                    Some(pass::<7>), Some(pass::<8>), Some(pass::<9>), Some(pass::<10>), Some(pass::<11>),
                    Some(pass::<12>), Some(pass::<13>), None, Some(pass::<15>), Some(pass::<16>), Some(pass::<17>), None, Some(pass::<19>), None, None, None, Some(pass::<23>),
                ],
                small: [None, if ODD { Some(small::<4>) } else { None }, Some(small::<8>), if ODD { Some(small::<12>) } else { None }, Some(small::<16>)],
                last, gather, scatter, fold, join, shear,
            };
        }
    };
    (@each $real:ty, $features:literal, $($name:ident: $arguments:ident = $body:expr),*) => {
        $(
            #[target_feature(enable = $features)]
            unsafe fn $name(arguments: &$arguments<$real>) {
                // SAFETY: as the caller promises.
                unsafe { $body(arguments) }
            }
        )*
    };
    (@each $real:ty, , $($name:ident: $arguments:ident = $body:expr),*) => {
        $(
            unsafe fn $name(arguments: &$arguments<$real>) {
                // SAFETY: as the caller promises.
                unsafe { $body(arguments) }
            }
        )*
    };
}

#[cfg(target_arch = "x86_64")]
use crate::simd::{D2, D4, S4, S8};
#[cfg(target_arch = "x86_64")]
kernels!(s8, S8, f32, 8, 4, "avx512f,avx512dq,avx2,fma");
#[cfg(target_arch = "x86_64")]
kernels!(d4, D4, f64, 4, 4, "avx512f,avx512dq,avx2,fma");
#[cfg(target_arch = "x86_64")]
kernels!(s4, S4, f32, 4, 3, "avx2,fma");
#[cfg(target_arch = "x86_64")]
kernels!(d2, D2, f64, 2, 3, "avx2,fma");
kernels!(s, Plain<f32>, f32, 4, 3);
kernels!(d, Plain<f64>, f64, 4, 3);

macro_rules! real {
    ($real:ty, $wide:ident, $narrow:ident, $plain:ident) => {
        #[expect(private_interfaces, reason = "sealed: named in this crate only")]
        impl sealed::Real for $real {
            fn of(value: f64) -> Self {
                value as $real
            }

            fn kernels(isa: Isa) -> &'static Kernels<Self> {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => &$wide::KERNELS,
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx2 => &$narrow::KERNELS,
                    Isa::Plain => &$plain::KERNELS,
                }
            }

            fn narrow_kernels(isa: Isa) -> Option<&'static Kernels<Self>> {
                match isa {
                    #[cfg(target_arch = "x86_64")]
                    Isa::Avx512 => Some(&$narrow::KERNELS),
                    _ => None,
                }
            }
        }
    };
}
real!(f32, s8, s4, s);
real!(f64, d4, d2, d);
