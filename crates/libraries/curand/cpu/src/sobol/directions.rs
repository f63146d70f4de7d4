//! Direction vectors: Joe and Kuo, "Constructing Sobol sequences with better two-dimensional projections" (2008), the
//! first 20,000 dimensions of their set new-joe-kuo-6.21201, and scrambles of our own.

use std::sync::OnceLock;

/// Dimensions that there are direction vectors for.
pub const DIMENSIONS: usize = 20_000;

/// Of each dimension but the first, as bits from the lowest of each byte on: the degree s of its primitive polynomial
/// (5 bits), the polynomial's inner coefficients (s - 1 bits), and its first s direction numbers, which are odd and below
/// 2, 4, 8 and so on, without their lowest bits.
static PACKED: &[u8] = include_bytes!("joe-kuo-6.bin");

/// Reads numbers of a few bits.
struct Bits {
    at: usize,
}

impl Bits {
    fn take(&mut self, bits: usize) -> u64 {
        let bytes = &PACKED[self.at / 8..PACKED.len().min(self.at / 8 + 4)];
        let word = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        let taken = word >> (self.at % 8) & ((1 << bits) - 1);
        self.at += bits;
        taken
    }
}

/// Of each dimension its direction vectors and its shift, in words of 64 bits; those of 32 bits are their upper halves.
pub(super) fn all(scrambled: bool) -> impl Iterator<Item = ([u64; 64], u64)> {
    let mut bits = Bits { at: 0 };
    (0..DIMENSIONS).map(move |dimension| {
        let vectors =
            if dimension == 0 { std::array::from_fn(|i| 1 << (63 - i)) } else { vectors(&mut bits) };
        if scrambled { scramble(dimension as u64, vectors) } else { (vectors, 0) }
    })
}

fn vectors(bits: &mut Bits) -> [u64; 64] {
    let degree = bits.take(5) as usize;
    let inner = bits.take(degree - 1);
    let mut vectors = [0; 64];
    for (i, vector) in vectors[..degree].iter_mut().enumerate() {
        *vector = (bits.take(i) << 1 | 1) << (63 - i);
    }
    for i in degree..64 {
        let oldest = vectors[i - degree];
        let mut vector = oldest ^ (oldest >> degree);
        for back in 1..degree {
            vector ^= vectors[i - back] & (inner >> (degree - 1 - back) & 1).wrapping_neg();
        }
        vectors[i] = vector;
    }
    vectors
}

/// A random linear scramble and a digital shift (Matousek, "On the L2-discrepancy for anchored boxes", 1998): a bit of a
/// vector also turns, or does not, each bit below it. Its random words are SplitMix64's, whose seed is the dimension.
/// cuRAND's scrambles are of this kind, but their numbers are published nowhere: these are others.
fn scramble(dimension: u64, vectors: [u64; 64]) -> ([u64; 64], u64) {
    let mut seed = dimension << 32;
    let mut random = || {
        seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let shift = random();
    let columns: [u64; 64] = std::array::from_fn(|bit| 1 << bit | random() & ((1 << bit) - 1));
    let scrambled = vectors.map(|vector| {
        let (mut left, mut sum) = (vector, 0);
        while left != 0 {
            sum ^= columns[left.trailing_zeros() as usize];
            left &= left - 1;
        }
        sum
    });
    (scrambled, shift)
}

/// Direction vectors and shift of each of the first dimensions, words of 32 bits or halves of those of 64, the lower one first.
pub(crate) fn table(dimensions: usize, scrambled: bool, is_wide: bool) -> Vec<u32> {
    let upper = |word: u64| (word >> 32) as u32;
    let mut words = Vec::with_capacity(dimensions * if is_wide { 130 } else { 33 });
    for (vectors, shift) in all(scrambled).take(dimensions) {
        if is_wide {
            words.extend(vectors.into_iter().chain([shift]).flat_map(|word| [word as u32, upper(word)]));
        } else {
            words.extend(vectors[..32].iter().copied().chain([shift]).map(upper));
        }
    }
    words
}

/// A table that is made when it is first asked for.
type Table<T> = [OnceLock<T>; 2];

/// The 32 direction vectors of each dimension, as `curandGetDirectionVectors32` gives them: Joe and Kuo's, or scrambled.
pub fn directions32(scrambled: bool) -> &'static [[u32; 32]] {
    static TABLE: Table<Vec<[u32; 32]>> = [OnceLock::new(), OnceLock::new()];
    let upper = |(v, _): ([u64; 64], u64)| std::array::from_fn(|i| (v[i] >> 32) as u32);
    TABLE[usize::from(scrambled)].get_or_init(|| all(scrambled).map(upper).collect())
}

/// The 64 direction vectors of each dimension, as `curandGetDirectionVectors64` gives them.
pub fn directions64(scrambled: bool) -> &'static [[u64; 64]] {
    static TABLE: Table<Vec<[u64; 64]>> = [OnceLock::new(), OnceLock::new()];
    TABLE[usize::from(scrambled)].get_or_init(|| all(scrambled).map(|(vectors, _)| vectors).collect())
}

/// The first point of each dimension of the scrambled sequence, as `curandGetScrambleConstants32` gives them. These are
/// not NVIDIA's.
pub fn scramble32() -> &'static [u32] {
    static TABLE: OnceLock<Vec<u32>> = OnceLock::new();
    TABLE.get_or_init(|| scramble64().iter().map(|constant| (constant >> 32) as u32).collect())
}

/// The same of 64 bits.
pub fn scramble64() -> &'static [u64] {
    static TABLE: OnceLock<Vec<u64>> = OnceLock::new();
    TABLE.get_or_init(|| all(true).map(|(_, shift)| shift).collect())
}
