//! Logarithms, sines and cosines of single precision without branches and calls, so that loops of them go by the processor's vectors:
//! those of kernels/rand.cu, where is said how they were found. At every number and angle that a generator's words can make their results
//! are, to the bit, the C library's (glibc 2.28 and later), by which NVIDIA's host generators make their numbers.

use std::f64::consts::{FRAC_2_PI, FRAC_PI_2, LN_2};

/// For each sixteenth of the mantissas from that of [`FIRST`] on: a place within, and the logarithm there in powers of the distance.
#[rustfmt::skip]
const LOGARITHMS: [[f64; 6]; 16] = [
    [0.714_843_75, -0.335_691_291_638_137_27, 1.398_907_103_825_566, -0.978_470_051_305_574_3, 0.912_864_189_372_518_3, -0.960_821_417_163_071_3],
    [0.746_093_75, -0.292_904_016_433_017_83, 1.340_314_136_112_96, -0.898_220_537_086_315_7, 0.802_896_188_281_216_2, -0.809_702_499_207_51],
    [0.777_343_75, -0.251_872_619_754_997_03, 1.286_432_160_804_060_3, -0.827_453_437_001_910_1, 0.709_904_992_496_131_1, -0.687_125_601_552_801_2],
    [0.808_593_75, -0.212_458_651_214_339_68, 1.236_714_975_864_388_7, -0.764_731_577_264_995, 0.630_736_993_100_195_9, -0.586_923_257_532_722_9],
    [0.839_843_75, -0.174_539_416_351_806_5, 1.190_697_674_437_214_2, -0.708_880_121_920_499, 0.562_916_527_088_699_9, -0.504_299_827_344_236_7],
    [0.871_093_75, -0.138_005_673_019_355_73, 1.147_982_062_776_420_8, -0.658_931_079_409_491_1, 0.504_481_085_474_464_7, -0.435_729_022_765_473_76],
    [0.902_343_75, -0.102_759_733_957_770_08, 1.108_225_108_226_779, -0.614_081_136_415_075_1, 0.453_861_607_529_079_8, -0.378_440_127_892_360_15],
    [0.933_593_75, -0.068_713_892_548_050_5, 1.071_129_707_122_578_5, -0.573_659_135_367_322_2, 0.409_794_043_859_972_6, -0.330_264_507_742_912_2],
    [0.964_843_75, -0.035_789_107_851_553_495, 1.036_437_246_959_004_4, -0.537_100_813_689_837_5, 0.371_251_825_958_065_05, -0.289_507_882_990_932_4],
    [1.0, 0.0, 1.0, -0.499_999_748_386_965_87, 0.333_456_776_547_423_45, -0.250_893_846_044_707_9],
    [1.054_687_5, 0.053_244_514_519_225_49, 0.948_148_149_205_19, -0.449_491_837_406_429_45, 0.284_223_112_697_428_56, -0.203_741_844_629_023_73],
    [1.117_187_5, 0.110_814_366_340_243_7, 0.895_104_895_104_294_5, -0.400_606_184_817_145_27, 0.239_145_018_153_395_92, -0.161_059_448_078_326_4],
    [1.179_687_5, 0.165_249_572_895_500_38, 0.847_682_119_205_094_5, -0.359_282_309_937_416_2, 0.203_113_421_826_129_96, -0.129_541_549_654_745_01],
    [1.242_187_5, 0.216_873_938_300_541, 0.805_031_446_541_303_5, -0.324_037_651_666_345_2, 0.173_971_475_541_016_33, -0.105_375_937_040_175_74],
    [1.304_687_5, 0.265_963_548_496_990_66, 0.766_467_065_864_685_8, -0.293_735_733_260_717_67, 0.150_148_171_535_508_44, -0.086_589_672_639_110_13],
    [1.367_187_5, 0.312_755_710_003_996_93, 0.731_428_571_427_960_3, -0.267_493_743_313_481_97, 0.130_483_411_000_801_82, -0.071_808_513_486_634_42],
];

/// 0.699 or so.
const FIRST: u32 = 0x3f33_0000;

/// The natural logarithm of a number from 2^-34 to 1. Nothing of the order of operations may change, nor be fused.
#[inline(always)]
pub(crate) fn ln(x: f32) -> f32 {
    let bits = x.to_bits();
    let above = bits.wrapping_sub(FIRST);
    let power = above.cast_signed() >> 23;
    let [place, value, first, second, third, fourth] = LOGARITHMS[(above >> 19 & 15) as usize];
    let d = f64::from(f32::from_bits(bits.wrapping_sub(power.cast_unsigned() << 23))) - place;
    ((value + f64::from(power) * LN_2) + d * (first + d * (second + d * (third + d * fourth)))) as f32
}

/// 1.5 · 2^52: a sum with it has a rounded number in its lowest bits.
const ROUNDS: f64 = 6_755_399_441_055_744.0;

/// Sine and cosine of an angle from 0 to 2 pi.
#[inline(always)]
pub(crate) fn sin_cos(angle: f32) -> [f32; 2] {
    let angle = f64::from(angle);
    let rounded = angle * FRAC_2_PI + ROUNDS;
    let (quarter, quarters) = (rounded.to_bits(), rounded - ROUNDS);
    // The product is exact: half of pi ends with three zeros here, and there are four quarters at most.
    let r = angle - quarters * FRAC_PI_2;
    let z = r * r;
    let s = r + r
        * z
        * (-0.166_666_549_437_040_07 + z * (0.008_332_178_146_180_862 + z * -0.000_195_172_989_804_048_7));
    let c = 1.0
        + z * (-0.499_999_997_250_998_4
            + z * (0.041_666_623_323_429_054
                + z * (-0.001_388_676_376_496_655_6 + z * 2.439_044_784_237_221_8e-05)));
    let is_swapped = quarter & 1 == 1;
    let (sin, cos) = (if is_swapped { c } else { s }, if is_swapped { s } else { c });
    let signed = |value: f64, quarter: u64| f64::from_bits(value.to_bits() ^ (quarter & 2) << 62);
    [signed(sin, quarter) as f32, signed(cos, quarter.wrapping_add(1)) as f32]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw;

    #[test]
    fn all_are_the_c_librarys_to_the_bit() {
        let mut state = 7_u64;
        let drawn = std::iter::repeat_with(move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 32) as u32
        });
        for x in drawn.take(1_000_000).chain(0..2000).chain(u32::MAX - 2000..=u32::MAX) {
            for [u, angle] in [draw::polar_f32(x, x), draw::mrg_polar_f32(x.max(1), x.max(1))] {
                assert_eq!(ln(u).to_bits(), u.ln().to_bits(), "ln {u}");
                let [sin, cos] = sin_cos(angle);
                assert_eq!(
                    [sin.to_bits(), cos.to_bits()],
                    [angle.sin().to_bits(), angle.cos().to_bits()],
                    "{angle}"
                );
            }
        }
    }
}
