//! Vectors with vectors. Elements lie in memory as `X` and `Y` and are computed as `S`, so the `Ex` forms are these too.
//!
//! # Safety
//! Of every function here: vectors have `n` elements, `inc` apart, that may be read, and written where they are
//! results, until it returns.
#![expect(clippy::missing_safety_doc, reason = "the module's documentation says it once for all")]

use num_traits::Float;

use crate::lanes::{for_ranges, map_ranges, sum};
use crate::vector::Vector;
use crate::{Real, Scalar, Stored, vectorized};

/// y = α x + y
pub unsafe fn axpy<S: Scalar, X: Stored<S>, Y: Stored<S>>(
    n: i64,
    alpha: S,
    x: *const X,
    incx: i64,
    y: *mut Y,
    incy: i64,
) {
    if alpha.is_zero() {
        return;
    }
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    each_pair(x, y, move |x, y| (x, Y::store(alpha * x.load() + y.load())), Written::Second);
}

/// y = x
pub unsafe fn copy<T: Copy + Send + Sync>(n: i64, x: *const T, incx: i64, y: *mut T, incy: i64) {
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    each_pair(x, y, |x, _| (x, x), Written::Second);
}

/// x, y = y, x
pub unsafe fn swap<T: Copy + Send + Sync>(n: i64, x: *mut T, incx: i64, y: *mut T, incy: i64) {
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    each_pair(x, y, |x, y| (y, x), Written::Both);
}

/// x = α x. Like reference BLAS it multiplies whatever α is: a NaN times 0 stays one.
pub unsafe fn scal<S: Scalar, X: Stored<S>>(n: i64, alpha: S, x: *mut X, incx: i64) {
    // SAFETY: this function's caller promises it.
    unsafe { scal_by(n, x, incx, move |x: S| alpha * x) }
}

/// x = α x with a real α, which leaves an infinite real part from making the imaginary one NaN.
pub unsafe fn scal_real<S: Scalar, X: Stored<S>>(n: i64, alpha: S::Real, x: *mut X, incx: i64) {
    // SAFETY: this function's caller promises it.
    unsafe { scal_by(n, x, incx, move |x: S| x.times_real(alpha)) }
}

unsafe fn scal_by<S: Scalar, X: Stored<S>>(n: i64, x: *mut X, incx: i64, scaled: impl Fn(S) -> S + Sync) {
    if incx < 1 {
        return;
    }
    // SAFETY: this function's caller promises it.
    let x = unsafe { Vector::new(n, x, incx) };
    if x.is_unit() {
        for_ranges(x.len(), |part| scal_part(x.unit(part), &scaled));
    } else {
        scal_part(x, &scaled);
    }
}

vectorized! {
    fn scal_part[S: Scalar, X: Stored<S>](x: Vector<X>, scaled: impl Fn(S) -> S) {
        if x.is_unit() { scal_loop(x.unit(0..x.len()), scaled) } else { scal_loop(x, scaled) }
    }
}

#[inline(always)]
fn scal_loop<S: Scalar, X: Stored<S>>(x: Vector<X>, scaled: impl Fn(S) -> S) {
    for i in 0..x.len() {
        x.set(i, X::store(scaled(x.get(i).load())));
    }
}

/// xᵀ y
pub unsafe fn dotu<S: Scalar, X: Stored<S>, Y: Stored<S>>(
    n: i64,
    x: *const X,
    incx: i64,
    y: *const Y,
    incy: i64,
) -> S {
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    dot(x, y, |x, y| x * y)
}

/// xᴴ y
pub unsafe fn dotc<S: Scalar, X: Stored<S>, Y: Stored<S>>(
    n: i64,
    x: *const X,
    incx: i64,
    y: *const Y,
    incy: i64,
) -> S {
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    dot(x, y, |x, y| x.conj() * y)
}

fn dot<S: Scalar, X: Stored<S>, Y: Stored<S>>(
    x: Vector<X>,
    y: Vector<Y>,
    product: impl Fn(S, S) -> S + Sync,
) -> S {
    if x.is_unit() && y.is_unit() {
        let part = |part: std::ops::Range<usize>| dot_part(x.slice(part.clone()), y.slice(part), &product);
        map_ranges(x.len(), part).into_iter().fold(S::zero(), |sum, part| sum + part)
    } else {
        sum(x.len(), |i| product(x.get(i).load(), y.get(i).load()))
    }
}

vectorized! {
    pub(crate) fn dot_part[S: Scalar, X: Stored<S>, Y: Stored<S>](
        x: &[X],
        y: &[Y],
        product: impl Fn(S, S) -> S,
    ) -> S {
        let n = x.len().min(y.len());
        // SAFETY: `sum` asks for those below `n`.
        sum(n, |i| unsafe { product(x.get_unchecked(i).load(), y.get_unchecked(i).load()) })
    }
}

/// The sum of `|re| + |im|`; 0 of an increment below 1.
pub unsafe fn asum<S: Scalar, X: Stored<S>>(n: i64, x: *const X, incx: i64) -> S::Real {
    // SAFETY: this function's caller promises it.
    unsafe { sum_of(n, x, incx, |x: S| x.abs1()) }
}

/// The Euclidean norm, whatever the elements' size; 0 of an increment below 1.
///
/// The sum of squares is right unless squares are lost below the smallest numbers or above the largest; then it is
/// taken again of elements made larger or smaller by a power of two.
pub unsafe fn nrm2<S: Scalar, X: Stored<S>>(n: i64, x: *const X, incx: i64) -> S::Real {
    // SAFETY: this function's caller promises it.
    let squares = |factor: S::Real| unsafe {
        sum_of(n, x, incx, move |x: S| {
            let x = x.times_real(factor);
            x.real() * x.real() + x.imag() * x.imag()
        })
    };
    let one = S::Real::rounded(1.0);
    let plain = squares(one);
    // Each square that underflows is wrong by less than the smallest normal number.
    let lost = S::Real::rounded(n.max(0) as f64) * S::Real::min_positive_value();
    let factor = if plain.is_infinite() {
        S::Real::SHRINKS
    } else if plain < lost / S::Real::epsilon() {
        S::Real::GROWS
    } else {
        one
    };
    if factor == one { plain.sqrt() } else { squares(factor).sqrt() / factor }
}

unsafe fn sum_of<S: Scalar, X: Stored<S>>(
    n: i64,
    x: *const X,
    incx: i64,
    term: impl Fn(S) -> S::Real + Sync,
) -> S::Real {
    if incx < 1 {
        return S::Real::rounded(0.0);
    }
    // SAFETY: this function's caller promises it.
    let x = unsafe { Vector::new(n, x, incx) };
    if x.is_unit() {
        let part = |part| sum_part(x.slice(part), &term);
        map_ranges(x.len(), part).into_iter().fold(S::Real::rounded(0.0), |sum, part| sum + part)
    } else {
        sum(x.len(), |i| term(x.get(i).load()))
    }
}

vectorized! {
    fn sum_part[S: Scalar, X: Stored<S>](x: &[X], term: impl Fn(S) -> S::Real) -> S::Real {
        // SAFETY: `sum` asks for those below the length.
        sum(x.len(), |i| term(unsafe { x.get_unchecked(i) }.load()))
    }
}

/// The index from 1 of the first largest `|re| + |im|`; 0 when there is none.
///
/// As reference BLAS compares: a NaN is never larger than another, and nothing is larger than one that comes first.
pub unsafe fn iamax<S: Scalar, X: Stored<S>>(n: i64, x: *const X, incx: i64) -> i64 {
    // SAFETY: this function's caller promises it.
    unsafe { first_extreme(n, x, incx, |new, old| new > old) }
}

/// The index from 1 of the first smallest `|re| + |im|`; 0 when there is none.
pub unsafe fn iamin<S: Scalar, X: Stored<S>>(n: i64, x: *const X, incx: i64) -> i64 {
    // SAFETY: this function's caller promises it.
    unsafe { first_extreme(n, x, incx, |new, old| new < old) }
}

unsafe fn first_extreme<S: Scalar, X: Stored<S>>(
    n: i64,
    x: *const X,
    incx: i64,
    beats: impl Fn(S::Real, S::Real) -> bool + Sync,
) -> i64 {
    if n < 1 || incx < 1 {
        return 0;
    }
    // SAFETY: this function's caller promises it.
    let x = unsafe { Vector::new(n, x, incx) };
    let first = x.get(0).load().abs1();
    let extreme = if x.is_unit() {
        let part = |part| extreme_part(x.unit(part), first, &beats);
        map_ranges(x.len(), part).into_iter().fold(first, |old, new| if beats(new, old) { new } else { old })
    } else {
        extreme_part(x, first, &beats)
    };
    let found = (0..x.len()).find(|&i| x.get(i).load().abs1() == extreme);
    // Only a NaN that comes first is not found.
    found.map_or(1, |i| i as i64 + 1)
}

vectorized! {
    fn extreme_part[S: Scalar, X: Stored<S>](
        x: Vector<X>,
        first: S::Real,
        beats: impl Fn(S::Real, S::Real) -> bool,
    ) -> S::Real {
        if x.is_unit() { extreme_loop(x.unit(0..x.len()), first, beats) } else { extreme_loop(x, first, beats) }
    }
}

/// The element that beats all others and `first`: in lanes, since which of equals it is does not matter here.
#[inline(always)]
fn extreme_loop<S: Scalar, X: Stored<S>>(
    x: Vector<X>,
    first: S::Real,
    beats: impl Fn(S::Real, S::Real) -> bool,
) -> S::Real {
    const LANES: usize = 16;
    let better = |new, old| if beats(new, old) { new } else { old };
    let mut lanes = [first; LANES];
    let whole = x.len() - x.len() % LANES;
    for start in (0..whole).step_by(LANES) {
        for (lane, old) in lanes.iter_mut().enumerate() {
            *old = better(x.get(start + lane).load().abs1(), *old);
        }
    }
    let rest = (whole..x.len()).fold(first, |old, i| better(x.get(i).load().abs1(), old));
    lanes.into_iter().fold(rest, |old, new| better(new, old))
}

/// Which vectors a loop over pairs writes.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Written {
    Second,
    Both,
}

/// Makes each pair of elements the pair that `change` gives, in the vectors' order.
pub(crate) fn each_pair<X: Copy + Send + Sync, Y: Copy + Send + Sync>(
    x: Vector<X>,
    y: Vector<Y>,
    change: impl Fn(X, Y) -> (X, Y) + Sync,
    written: Written,
) {
    if x.is_unit() && y.is_unit() {
        for_ranges(x.len(), |part| {
            pair_part(x.unit(part.clone()), y.unit(part), &change, written);
        });
    } else {
        pair_part(x, y, &change, written);
    }
}

vectorized! {
    fn pair_part[X: Copy, Y: Copy](
        x: Vector<X>,
        y: Vector<Y>,
        change: impl Fn(X, Y) -> (X, Y),
        written: Written,
    ) {
        if x.is_unit() && y.is_unit() {
            pair_loop(x.unit(0..x.len()), y.unit(0..y.len()), change, written);
        } else {
            pair_loop(x, y, change, written);
        }
    }
}

#[inline(always)]
fn pair_loop<X: Copy, Y: Copy>(
    x: Vector<X>,
    y: Vector<Y>,
    change: impl Fn(X, Y) -> (X, Y),
    written: Written,
) {
    for i in 0..x.len() {
        let (new_x, new_y) = change(x.get(i), y.get(i));
        // A vector that is only read may lie where nothing can be written.
        if written == Written::Both {
            x.set(i, new_x);
        }
        y.set(i, new_y);
    }
}
