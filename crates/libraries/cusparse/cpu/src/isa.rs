//! Loops compiled for the vectors that the processor has.

/// A loop: `run` is inlined into a function for each kind of vector, so it is written once.
pub(crate) trait Loop {
    type Out;

    fn run(self) -> Self::Out;

    /// The same with the instructions of AVX-512, and the same numbers: only functions compiled for it call this.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn run_avx512(self, _has: Avx512) -> Self::Out
    where
        Self: Sized,
    {
        self.run()
    }
}

/// That the processor has AVX-512 (F, BW, DQ and VL), and that what is inlined here is compiled for it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy)]
pub(crate) struct Avx512(());

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
fn avx512<L: Loop>(work: L) -> L::Out {
    work.run_avx512(Avx512(()))
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn avx2<L: Loop>(work: L) -> L::Out {
    work.run()
}

/// Products and sums are not fused, so the numbers are the same on every processor.
#[cfg_attr(
    target_arch = "x86_64",
    expect(unsafe_code, reason = "functions that need what was asked for just before")
)]
pub(crate) fn vectors<L: Loop>(work: L) -> L::Out {
    #[cfg(target_arch = "x86_64")]
    {
        let has_512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512bw")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512vl");
        if has_512 {
            // SAFETY: the processor has them.
            return unsafe { avx512(work) };
        }
        if is_x86_feature_detected!("avx2") {
            // SAFETY: as above.
            return unsafe { avx2(work) };
        }
    }
    work.run()
}
