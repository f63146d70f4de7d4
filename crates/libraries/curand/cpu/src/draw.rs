//! What distributions make of random words, in the arithmetic of cuRAND's host generators.

#![expect(clippy::excessive_precision, reason = "constants as they are published")]

use std::f32::consts::PI as PI_32;
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// 2^-32 and 2^-53.
const INV_32: f64 = 1.0 / 4_294_967_296.0;
const INV_32F: f32 = 1.0 / 4_294_967_296.0;
const INV_53: f64 = 1.0 / 9_007_199_254_740_992.0;

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

/// Box and Muller's two normal values.
#[inline(always)]
pub(crate) fn normal_f32_pair(x: u32, y: u32) -> [f32; 2] {
    const TURN: f32 = INV_32F * (2.0 * PI_32);
    polar_f32(uniform_f32(x), y as f32 * TURN + TURN / 2.0)
}

#[inline(always)]
pub(crate) fn mrg_normal_f32(x: u32, y: u32) -> [f32; 2] {
    polar_f32(mrg_f32(x), mrg_f32(y) * (2.0 * PI_32))
}

#[inline(always)]
fn polar_f32(u: f32, angle: f32) -> [f32; 2] {
    let length = (-2.0 * u.ln()).sqrt();
    [angle.sin() * length, angle.cos() * length]
}

#[inline(always)]
pub(crate) fn normal_f64_pair(words: [u32; 4]) -> [f64; 2] {
    let turn = mixed(words[2], words[3]) * (INV_53 * 2.0) + INV_53;
    polar_f64(uniform_f64_pair(words[0], words[1]), turn)
}

#[inline(always)]
pub(crate) fn mrg_normal_f64(x: u32, y: u32) -> [f64; 2] {
    polar_f64(mrg_f64(x), mrg_f64(y) * 2.0)
}

#[inline(always)]
fn polar_f64(u: f64, half_turns: f64) -> [f64; 2] {
    let length = (-2.0 * u.ln()).sqrt();
    let angle = half_turns * PI;
    [angle.sin() * length, angle.cos() * length]
}

/// The normal value that a word stands for: the inverse of the distribution at the middle of its share.
#[inline(always)]
pub(crate) fn inverse_f32(x: u32) -> f32 {
    let upper = x > 0x8000_0000;
    let p = uniform_f32(if upper { !x } else { x });
    let value = (below_half(f64::from(p))) as f32;
    if upper { -value } else { value }
}

#[inline(always)]
pub(crate) fn inverse_f64(x: u32) -> f64 {
    let upper = x > 0x8000_0000;
    let value = refined(uniform_f64_middle(if upper { !x } else { x }));
    if upper { -value } else { value }
}

#[inline(always)]
pub(crate) fn inverse_f64_wide(x: u64) -> f64 {
    const HALF: u64 = 1 << 52;
    let x = x >> 11;
    let upper = x > HALF;
    let x = if upper { (HALF * 2 - 1) - x } else { x };
    let value = refined(x as f64 * INV_53 + INV_53 / 2.0);
    if upper { -value } else { value }
}

/// The normal distribution's inverse for 0 < p <= 1/2: Wichura, "Algorithm AS 241" (Applied Statistics 37, 1988), PPND16.
#[inline(always)]
fn below_half(p: f64) -> f64 {
    fn ratio(x: f64, over: [f64; 8], under: [f64; 8]) -> f64 {
        let sum = |c: [f64; 8]| c.iter().rev().fold(0.0, |sum, c| sum * x + c);
        sum(over) / sum(under)
    }
    let q = p - 0.5;
    if q >= -0.425 {
        return q * ratio(0.180625 - q * q, CENTRE.0, CENTRE.1);
    }
    let r = (-p.ln()).sqrt();
    if r <= 5.0 { -ratio(r - 1.6, MIDDLE.0, MIDDLE.1) } else { -ratio(r - 5.0, TAIL.0, TAIL.1) }
}

/// The same, whose last bits a step of Newton's method sets right.
#[inline(always)]
fn refined(p: f64) -> f64 {
    let x = below_half(p);
    let z = x * FRAC_1_SQRT_2;
    let q = p - 0.5;
    let over = if q >= -0.425 { 0.5 * libm::erf(z) - q } else { 0.5 * libm::erfc(-z) - p };
    x - over * (2.0 * PI).sqrt() * (z * z).exp()
}

type Ratio = ([f64; 8], [f64; 8]);

#[rustfmt::skip]
const CENTRE: Ratio = (
    [3.387_132_872_796_366_608_0e0, 1.331_416_678_917_843_774_5e2, 1.971_590_950_306_551_442_7e3, 1.373_169_376_550_946_112_5e4,
     4.592_195_393_154_987_145_7e4, 6.726_577_092_700_870_085_3e4, 3.343_057_558_358_812_810_5e4, 2.509_080_928_730_122_672_7e3],
    [1.0, 4.231_333_070_160_091_125_2e1, 6.871_870_074_920_579_083_0e2, 5.394_196_021_424_751_107_7e3,
     2.121_379_430_158_659_586_7e4, 3.930_789_580_009_271_061_0e4, 2.872_908_573_572_194_267_4e4, 5.226_495_278_852_854_561_0e3],
);

#[rustfmt::skip]
const MIDDLE: Ratio = (
    [1.423_437_110_749_683_577_34e0, 4.630_337_846_156_545_295_90e0, 5.769_497_221_460_691_405_50e0, 3.647_848_324_763_204_605_04e0,
     1.270_458_252_452_368_382_58e0, 2.417_807_251_774_506_117_70e-1, 2.272_384_498_926_918_458_33e-2, 7.745_450_142_783_414_076_40e-4],
    [1.0, 2.053_191_626_637_758_821_87e0, 1.676_384_830_183_803_849_40e0, 6.897_673_349_851_000_045_50e-1,
     1.481_039_764_274_800_745_90e-1, 1.519_866_656_361_645_719_66e-2, 5.475_938_084_995_344_946_00e-4, 1.050_750_071_644_416_843_24e-9],
);

#[rustfmt::skip]
const TAIL: Ratio = (
    [6.657_904_643_501_103_777_20e0, 5.463_784_911_164_114_369_90e0, 1.784_826_539_917_291_335_80e0, 2.965_605_718_285_048_912_30e-1,
     2.653_218_952_657_612_309_30e-2, 1.242_660_947_388_078_438_60e-3, 2.711_555_568_743_487_578_15e-5, 2.010_334_399_292_288_132_65e-7],
    [1.0, 5.998_322_065_558_879_376_90e-1, 1.369_298_809_227_358_053_10e-1, 1.487_536_129_085_061_485_25e-2,
     7.868_691_311_456_132_591_00e-4, 1.846_318_317_510_054_681_80e-5, 1.421_511_758_316_445_888_70e-7, 2.044_263_103_389_939_785_64e-15],
);
