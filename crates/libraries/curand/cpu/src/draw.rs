//! What distributions make of random words, in the arithmetic of cuRAND's host generators.

#![expect(clippy::excessive_precision, reason = "constants as they are published")]

use std::f32::consts::{PI as PI_32, SQRT_2 as SQRT_2_32};
use std::f64::consts::{PI, SQRT_2};

use crate::math;

/// 2^-32 and 2^-53.
const INV_32: f64 = 1.0 / 4_294_967_296.0;
const INV_32F: f32 = 1.0 / 4_294_967_296.0;
const INV_53: f64 = 1.0 / 9_007_199_254_740_992.0;

/// What makes a value of a word: for most words without branches, so that a loop of it goes by vectors.
pub(crate) trait Draw<W: Copy, T>: Copy + Send + Sync {
    fn usual(self, word: W) -> T;

    /// Whether `rare` makes the word's value.
    #[inline(always)]
    fn is_rare(self, _: W) -> bool {
        false
    }

    #[inline(always)]
    fn rare(self, word: W) -> T {
        self.usual(word)
    }
}

impl<W: Copy, T, F: Fn(W) -> T + Copy + Send + Sync> Draw<W, T> for F {
    #[inline(always)]
    fn usual(self, word: W) -> T {
        self(word)
    }
}

/// Writes the values of as many words.
#[inline(always)]
pub(crate) fn put<W: Copy, T>(out: &mut [T], word: impl Fn(usize) -> W, draw: impl Draw<W, T>) {
    for (i, out) in out.iter_mut().enumerate() {
        *out = draw.usual(word(i));
    }
    for (i, out) in out.iter_mut().enumerate() {
        if draw.is_rare(word(i)) {
            *out = draw.rare(word(i));
        }
    }
}

/// (0, 1] by a word.
#[inline(always)]
pub(crate) fn uniform_f32(x: u32) -> f32 {
    x as f32 * INV_32F + INV_32F / 2.0
}

/// The same, rounded once.
#[inline(always)]
pub(crate) fn uniform_f32_exact(x: u32) -> f32 {
    uniform_f64_middle(x) as f32
}

#[inline(always)]
pub(crate) fn uniform_f64(x: u32) -> f64 {
    f64::from(x) * INV_32 + INV_32
}

#[inline(always)]
pub(crate) fn uniform_f64_middle(x: u32) -> f64 {
    f64::from(x) * INV_32 + INV_32 / 2.0
}

#[inline(always)]
pub(crate) fn uniform_f64_wide(x: u64) -> f64 {
    (x >> 11) as f64 * INV_53 + INV_53 / 2.0
}

/// 53 bits of two words.
#[inline(always)]
fn mixed(x: u32, y: u32) -> f64 {
    (u64::from(x) ^ u64::from(y) << 21) as f64
}

#[inline(always)]
pub(crate) fn uniform_f64_pair(x: u32, y: u32) -> f64 {
    mixed(x, y) * INV_53 + INV_53 / 2.0
}

/// MRG32k3a's words are 1 to its first modulus.
const MRG_NORM: f64 = 2.328_306_549_837_828_8e-10;

#[inline(always)]
pub(crate) fn mrg_u32(z: u32) -> u32 {
    (f64::from(z) * 1.000_000_048_662) as u64 as u32
}

#[inline(always)]
pub(crate) fn mrg_f64(z: u32) -> f64 {
    f64::from(z) * MRG_NORM
}

#[inline(always)]
pub(crate) fn mrg_f32(z: u32) -> f32 {
    mrg_f64(z) as f32
}

/// What Box and Muller's two normal values are made of: a uniform number and an angle.
#[inline(always)]
pub(crate) fn polar_f32(x: u32, y: u32) -> [f32; 2] {
    const TURN: f32 = INV_32F * (2.0 * PI_32);
    [uniform_f32(x), y as f32 * TURN + TURN / 2.0]
}

#[inline(always)]
pub(crate) fn mrg_polar_f32(x: u32, y: u32) -> [f32; 2] {
    [mrg_f32(x), mrg_f32(y) * (2.0 * PI_32)]
}

/// Two normal values of each of such pairs.
#[inline(always)]
pub(crate) fn box_muller_f32(pairs: &mut [f32]) {
    for [first, second] in pairs.as_chunks_mut::<2>().0 {
        let length = (-2.0 * math::ln(*first)).sqrt();
        let [sin, cos] = math::sin_cos(*second);
        [*first, *second] = [sin * length, cos * length];
    }
}

#[inline(always)]
pub(crate) fn polar_f64(words: [u32; 4]) -> [f64; 2] {
    let half_turns = mixed(words[2], words[3]) * (INV_53 * 2.0) + INV_53;
    [uniform_f64_pair(words[0], words[1]), half_turns * PI]
}

#[inline(always)]
pub(crate) fn mrg_polar_f64(x: u32, y: u32) -> [f64; 2] {
    [mrg_f64(x), mrg_f64(y) * 2.0 * PI]
}

/// As [`box_muller_f32`], one by one.
#[inline(always)]
pub(crate) fn box_muller_f64(pairs: &mut [f64]) {
    for [first, second] in pairs.as_chunks_mut::<2>().0 {
        // The C library's, to the bit.
        let length = (-2.0 * first.ln()).sqrt();
        [*first, *second] = [second.sin() * length, second.cos() * length];
    }
}

/// The normal values that words stand for: the inverse of the distribution at the middle of their share, by the same steps as in NVIDIA's
/// host generators, whose bits these are. `.0` tells what of erfc is asked for and whether the value is above 0, `.1` finishes it.
#[derive(Clone, Copy)]
pub(crate) struct Inverse<A, F>(A, F);

impl<W: Copy, T, A, F> Draw<W, T> for Inverse<A, F>
where
    A: Fn(W) -> (f64, bool) + Copy + Send + Sync,
    F: Fn(f64, bool) -> T + Copy + Send + Sync,
{
    #[inline(always)]
    fn usual(self, word: W) -> T {
        let (y, upper) = self.0(word);
        self.1(inverse_erfc_near(y), upper)
    }

    #[inline(always)]
    fn is_rare(self, word: W) -> bool {
        1.0 - self.0(word).0 >= FAR
    }

    #[inline(always)]
    fn rare(self, word: W) -> T {
        let (y, upper) = self.0(word);
        self.1(inverse_erfc_far(y), upper)
    }
}

/// `finish` makes something of the values.
#[inline(always)]
pub(crate) fn inverse_f32<T>(finish: impl Fn(f32) -> T + Copy + Send + Sync) -> impl Draw<u32, T> {
    inverse_of_f32(
        #[inline(always)]
        |x: u32| x,
        finish,
    )
}

/// Of the upper half of words of 64 bits.
#[inline(always)]
pub(crate) fn inverse_f32_wide<T>(finish: impl Fn(f32) -> T + Copy + Send + Sync) -> impl Draw<u64, T> {
    inverse_of_f32(
        #[inline(always)]
        |x: u64| (x >> 32) as u32,
        finish,
    )
}

#[inline(always)]
fn inverse_of_f32<W: Copy, T>(
    word: impl Fn(W) -> u32 + Copy + Send + Sync,
    finish: impl Fn(f32) -> T + Copy + Send + Sync,
) -> impl Draw<W, T> {
    Inverse(
        #[inline(always)]
        move |x| {
            let x = word(x);
            let upper = x > 0x8000_0000;
            (f64::from(2.0 * uniform_f32(if upper { !x } else { x })), upper)
        },
        #[inline(always)]
        move |value: f64, upper| {
            let value = SQRT_2_32 * value as f32;
            finish(if upper { value } else { -value })
        },
    )
}

#[inline(always)]
pub(crate) fn inverse_f64<T>(finish: impl Fn(f64) -> T + Copy + Send + Sync) -> impl Draw<u32, T> {
    Inverse(
        #[inline(always)]
        |x: u32| {
            let upper = x > 0x8000_0000;
            (2.0 * uniform_f64_middle(if upper { !x } else { x }), upper)
        },
        finished_f64(finish),
    )
}

#[inline(always)]
pub(crate) fn inverse_f64_wide<T>(finish: impl Fn(f64) -> T + Copy + Send + Sync) -> impl Draw<u64, T> {
    Inverse(
        #[inline(always)]
        |x: u64| {
            const HALF: u64 = 1 << 52;
            let x = x >> 11;
            let upper = x > HALF;
            let x = if upper { (HALF * 2 - 1) - x } else { x };
            (2.0 * (x as f64 * INV_53 + INV_53 / 2.0), upper)
        },
        finished_f64(finish),
    )
}

#[inline(always)]
fn finished_f64<T>(
    finish: impl Fn(f64) -> T + Copy + Send + Sync,
) -> impl Fn(f64, bool) -> T + Copy + Send + Sync {
    #[inline(always)]
    move |value: f64, upper| {
        let value = SQRT_2 * value;
        finish(if upper { value } else { -value })
    }
}

/// From where on the inverse of erfc goes by a logarithm, in `1 - y`.
const FAR: f64 = 0.9375;

#[inline(always)]
fn ratio<const N: usize, const M: usize>(t: f64, over: &[f64; N], under: &[f64; M]) -> f64 {
    // Products and sums are rounded one by one: with fused ones the values are others, by up to 10 ulp.
    let (mut above, mut below) = (0.0, 0.0);
    for c in over {
        above = above * t + c;
    }
    for c in under {
        below = below * t + c;
    }
    above / below
}

/// The inverse of erfc where words of 64 bits lead to, above 1e-100 and not far above 1: Blair, Edwards and Johnson, "Rational
/// Chebyshev Approximations for the Inverse of the Error Function" (Mathematics of Computation 30, 1976), tables 18 and 39. Each value goes
/// by both, so that there is no branch.
#[inline(always)]
fn inverse_erfc_near(y: f64) -> f64 {
    let x = 1.0 - y;
    let near = ratio(x * x - 0.5625, &TABLE_18.0, &TABLE_18.1);
    let farther = ratio(x * x - 0.878_906_25, &TABLE_39.0, &TABLE_39.1);
    x * if x < 0.75 { near } else { farther }
}

/// The same where `1 - y` is [`FAR`] or more, by table 59.
fn inverse_erfc_far(y: f64) -> f64 {
    let t = 1.0 / (-y.ln()).sqrt();
    ratio(t, &TABLE_59.0, &TABLE_59.1)
}

/// Coefficients of a numerator and of a denominator, the highest power's first.
type Ratio<const N: usize, const M: usize> = ([f64; N], [f64; M]);

#[rustfmt::skip]
const TABLE_18: Ratio<7, 8> = (
    [-2.388_624_010_430_875_590_0e1, 4.556_020_427_268_912_817_0e2, -2.297_746_717_660_714_488_7e3, 4.663_143_353_343_433_128_7e3,
     -4.379_965_230_838_692_616_1e3, 1.900_715_359_052_813_475_3e3, -3.078_687_264_231_369_528_0e2],
    [1.0, -8.328_832_790_193_657_000_0e1, 9.274_131_916_093_531_880_0e2, -3.508_897_638_387_726_409_8e3,
     5.903_934_813_484_366_562_6e3, -4.848_163_543_004_887_210_2e3, 1.899_776_918_645_305_781_0e3, -2.838_651_472_536_662_112_9e2],
);

#[rustfmt::skip]
const TABLE_39: Ratio<9, 9> = (
    [2.148_918_500_730_706_200_0e-1, -6.420_007_150_720_944_865_5, 2.963_133_150_587_630_812_3e1, -4.764_436_712_978_718_180_3e1,
     3.481_005_774_935_750_087_3e1, -1.295_419_898_064_677_150_2e1, 2.534_938_922_071_489_391_7, -2.475_824_236_282_335_548_6e-1,
     9.489_736_280_868_108_002_0e-3],
    [1.0, -1.283_138_383_395_322_649_9e1, 4.140_999_177_842_888_871_6e1, -5.371_537_344_886_214_334_9e1,
     3.388_017_677_959_514_268_5e1, -1.131_536_062_423_805_487_6e1, 2.036_929_504_721_635_116_0, -1.861_165_062_737_217_851_1e-1,
     6.754_451_277_885_094_594_0e-3],
);

/// Of its denominator every power is one higher.
#[rustfmt::skip]
const TABLE_59: Ratio<11, 12> = (
    [2.783_401_035_374_700_106_0e-3, 8.603_009_752_628_026_058_0e-1, 2.137_121_499_726_551_551_5, 3.159_851_960_113_209_020_6,
     3.578_040_256_908_599_675_8, 1.533_529_752_398_989_080_4, 3.483_920_713_965_752_257_2e-1, 5.364_486_114_715_364_836_6e-2,
     4.383_670_987_712_609_566_5e-3, 1.385_851_811_349_671_880_8e-4, 1.173_835_250_999_166_668_0e-6],
    [1.0, 2.285_998_127_242_290_541_2, 4.385_904_525_644_955_465_4, 4.663_296_034_873_663_533_1,
     3.984_660_818_467_175_729_6, 1.606_837_770_971_901_760_9, 3.560_908_730_590_026_556_0e-1, 5.396_355_030_320_081_674_4e-2,
     4.387_342_402_270_693_502_3e-3, 1.385_876_216_553_224_605_9e-4, 1.173_831_387_239_777_752_9e-6, 0.0],
);
