//! The exponential function and its relatives for `f32`, without branches and calls, so that loops over them become vectors.
//!
//! Each is within 3 units of the last place. The polynomials were fitted for this file, for the least relative error.

/// e^x.
#[inline(always)]
pub(crate) fn power(x: f32) -> f32 {
    // What is beyond ends as infinity and 0; a NaN stays one.
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let (r, n) = reduced(x);
    let near = 1.0 + r + r * r * curve(r);
    // In two factors, each of them a number where 2^n is none.
    let half = n >> 1;
    near * two_to(half) * two_to(n - half)
}

/// e^x - 1.
#[inline(always)]
pub(crate) fn power_less_one(x: f32) -> f32 {
    let near = x + x * x * curve(x);
    if x.abs() < 0.346 { near.copysign(x) } else { power(x) - 1.0 }
}

#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let z = x * x;
    let far = 1.0 - 2.0 / (power(2.0 * x.abs()) + 1.0);
    let q = TANH[4];
    let q = TANH[3] + z * q;
    let q = TANH[2] + z * q;
    let q = TANH[1] + z * q;
    let q = TANH[0] + z * q;
    let size = if x.abs() < 0.6 { x.abs() + x.abs() * (z * q) } else { far };
    size.copysign(x)
}

/// (e^r - 1 - r) / r², for r up to half of ln 2.
const CURVE: [f32; 5] = [0.499_999_94, 0.166_665_2, 0.041_668_4, 0.008_368_852, 0.001_381_431_2];

/// (tanh √z - √z) / (z √z), for √z up to 0.63.
const TANH: [f32; 5] = [-0.333_332_75, 0.133_312_75, -0.053_725_116, 0.020_589_79, -0.005_648_282];

#[inline(always)]
fn curve(r: f32) -> f32 {
    let q = CURVE[3] + r * CURVE[4];
    let q = CURVE[2] + r * q;
    let q = CURVE[1] + r * q;
    CURVE[0] + r * q
}

/// `x = r + n·ln 2`, the r of the least size.
#[inline(always)]
fn reduced(x: f32) -> (f32, i32) {
    // A sum with 1.5 · 2^23 has its last place at 1: the lowest bits are the nearest whole number.
    const MAGIC: f32 = 12_582_912.0;
    // Its first digits, whose products with whole numbers up to 2^14 are exact, and the rest.
    const FIRST: f32 = 0.693_359_4;
    const REST: f32 = -0.000_212_194_44;
    let shifted = x * core::f32::consts::LOG2_E + MAGIC;
    let n = shifted - MAGIC;
    let r = (x - n * FIRST) - n * REST;
    (r, shifted.to_bits().wrapping_sub(MAGIC.to_bits()) as i32)
}

#[inline(always)]
fn two_to(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How far from the truth, in units of the last place.
    fn far(found: f32, exact: f64) -> f64 {
        let ulp = f64::from((exact as f32).abs().max(f32::MIN_POSITIVE)) * f64::from(f32::EPSILON) / 2.0;
        (f64::from(found) - exact).abs() / ulp
    }

    #[test]
    fn they_are_near_the_truth_everywhere() {
        let mut worst = [0.0_f64; 3];
        // Every 1,009th number.
        for bits in (0..=u32::MAX).step_by(1009) {
            let x = f32::from_bits(bits);
            let truth = f64::from(x);
            let found = [power(x), power_less_one(x), tanh(x)];
            let exact = [truth.exp(), truth.exp_m1(), truth.tanh()];
            for at in 0..3 {
                if x.is_nan() {
                    assert!(found[at].is_nan(), "{at}");
                } else if exact[at] > f64::from(f32::MAX) {
                    assert_eq!(found[at], f32::INFINITY, "{at} of {x}");
                } else {
                    worst[at] = worst[at].max(far(found[at], exact[at]));
                }
            }
        }
        assert!(worst.iter().all(|worst| *worst < 6.0), "{worst:?}, in half places");
        assert_eq!(power(f32::NEG_INFINITY), 0.0);
        assert_eq!(tanh(f32::NEG_INFINITY), -1.0);
        assert!(tanh(-0.0).is_sign_negative() && power_less_one(-0.0).is_sign_negative());
    }
}
