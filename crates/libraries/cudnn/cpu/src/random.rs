//! Philox 4x32-10 as PyTorch's `PhiloxRNGEngine` counts it, which cuDNN's manual names as its generator.
//!
//! Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011.

/// The four words of a counter by a key.
fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    const ROUNDS: usize = 10;
    for _ in 0..ROUNDS {
        let (a, b) = (u64::from(counter[0]) * 0xd251_1f53, u64::from(counter[2]) * 0xcd9e_8d57);
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
        key = [key[0].wrapping_add(0x9e37_79b9), key[1].wrapping_add(0xbb67_ae85)];
    }
    counter
}

/// The first word of a subsequence behind so many groups of four.
pub fn word(seed: u64, subsequence: u64, offset: u64) -> u32 {
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    let ([a, b], [c, d]) = (halves(offset), halves(subsequence));
    philox([a, b, c, d], halves(seed))[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the authors' Random123, `kat_vectors`.
    #[test]
    fn words_are_those_of_its_authors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        let pi = [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344];
        assert_eq!(
            philox(pi, [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
        assert_eq!(word(0xa4, 7, 9), philox([9, 0, 7, 0], [0xa4, 0])[0]);
    }
}
