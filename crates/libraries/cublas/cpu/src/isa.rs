//! Loops compiled for the vectors that the processor has, for the numerics of all libraries.

/// A function compiled for AVX-512, AVX2 and any processor; its generics stand in brackets. What it calls is inlined
/// (`#[inline(always)]`), or it is compiled for the oldest processor. Products and sums are not fused, so the numbers are the same on every
/// processor.
#[macro_export]
macro_rules! vectorized {
    (
        $(#[$attribute:meta])*
        $visibility:vis fn $name:ident[$($generics:tt)*]($($argument:ident: $ty:ty),* $(,)?) $(-> $out:ty)? $body:block
    ) => {
        $(#[$attribute])*
        $visibility fn $name<$($generics)*>($($argument: $ty),*) $(-> $out)? {
            #[inline(always)]
            fn plain<$($generics)*>($($argument: $ty),*) $(-> $out)? $body

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn avx512<$($generics)*>($($argument: $ty),*) $(-> $out)? {
                plain($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn avx2<$($generics)*>($($argument: $ty),*) $(-> $out)? {
                plain($($argument),*)
            }

            #[cfg(target_arch = "x86_64")]
            match $crate::isa::best() {
                // SAFETY: the processor has them.
                $crate::isa::Isa::Avx512 => return unsafe { avx512($($argument),*) },
                // SAFETY: as above.
                $crate::isa::Isa::Avx2 => return unsafe { avx2($($argument),*) },
                $crate::isa::Isa::Plain => {}
            }
            plain($($argument),*)
        }
    };
}

/// The vectors that are there: AVX-512 with F, BW, DQ and VL, or AVX2 with FMA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Isa {
    Avx512,
    Avx2,
    Plain,
}

#[must_use]
pub fn best() -> Isa {
    #[cfg(target_arch = "x86_64")]
    {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if has_512 {
            return Isa::Avx512;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            return Isa::Avx2;
        }
    }
    Isa::Plain
}
