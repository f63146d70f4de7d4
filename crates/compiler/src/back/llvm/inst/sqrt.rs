//! The square root rounded to nearest.
//!
//! LLVM's intrinsic is that on CPUs. For AMD GPUs, LLVM 15 gives the bare instruction, which is 1 ulp (f32) or far more
//! (f64) away, so there the root is refined here: Goldschmidt's iteration from the reciprocal root, every step one fma.

use super::super::builder::{Builder, Val};
use super::super::ty::Scalar;

pub fn nearest(b: &mut Builder, x: &Val) -> Val {
    if !b.is_amdgcn() {
        return b.same("sqrt", &[x]);
    }
    // So that no product below is subnormal: (least, up, down), up is the square of 1 / down.
    let (least, up, down) = match x.ty.scalar {
        Scalar::Double => (2f64.powi(-767), 2f64.powi(256), 2f64.powi(-128)),
        _ => (2f64.powi(-96), 2f64.powi(32), 2f64.powi(-16)),
    };
    let is_small = b.fcmp("olt", x, &Builder::fp(x.ty, least));
    let one = Builder::fp(x.ty, 1.0);
    let up = b.select(&is_small, &Builder::fp(x.ty, up), &one);
    let down = b.select(&is_small, &Builder::fp(x.ty, down), &one);
    let scaled = b.fmul(x, &up);
    let root = refined(b, &scaled);
    let root = b.fmul(&root, &down);
    // Zeros keep their sign, and infinity is its own root: the iteration has NaN for both.
    let is_zero = b.fcmp("oeq", x, &Builder::fp(x.ty, 0.0));
    let is_infinite = b.fcmp("oeq", x, &Builder::fp(x.ty, f64::INFINITY));
    let is_own = b.or(&is_zero, &is_infinite);
    b.select(&is_own, x, &root)
}

fn refined(b: &mut Builder, x: &Val) -> Val {
    let half = Builder::fp(x.ty, 0.5);
    let seed = b.same("amdgcn.rsq", &[x]);
    let root = b.fmul(x, &seed);
    let inverse = b.fmul(&seed, &half);
    // root → √x, inverse → 1 / (2 √x)
    let minus = b.fneg(&inverse);
    let error = b.fma(&minus, &root, &half);
    let inverse = b.fma(&inverse, &error, &inverse);
    let mut root = b.fma(&root, &error, &root);
    // The f64 seed has half the digits; the last step rounds.
    let steps = if x.ty.scalar == Scalar::Double { 2 } else { 1 };
    for _ in 0..steps {
        let minus = b.fneg(&root);
        let rest = b.fma(&minus, &root, x);
        root = b.fma(&rest, &inverse, &root);
    }
    root
}
