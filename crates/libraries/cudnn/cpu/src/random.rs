//! Philox 4x32-10 as PyTorch's `PhiloxRNGEngine` counts it, which cuDNN's manual names as its generator.

use curand_cpu::philox;

/// The first word of a subsequence behind so many groups of four.
pub fn word(seed: u64, subsequence: u64, offset: u64) -> u32 {
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    let ([a, b], [c, d]) = (halves(offset), halves(subsequence));
    philox([a, b, c, d], halves(seed))[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subsequence_is_the_counters_upper_half() {
        assert_eq!(word(0xa4, 7, 9), philox([9, 0, 7, 0], [0xa4, 0])[0]);
        // The authors' vector for zeros.
        assert_eq!(word(0, 0, 0), 0x6627_e8d5);
    }
}
