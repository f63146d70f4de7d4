//! Plane rotations, Givens' and the modified ones.

use num_traits::Float;

use crate::level1::{Written, each_pair};
use crate::vector::Vector;
use crate::{Real, Scalar, Stored};

/// x, y = c x + s y, c y − s̄ x
///
/// # Safety
/// The vectors have `n` elements, `inc` apart, that may be read and written until this returns.
pub unsafe fn rot<S: Scalar, X: Stored<S>, Y: Stored<S>>(
    n: i64,
    x: *mut X,
    incx: i64,
    y: *mut Y,
    incy: i64,
    c: S::Real,
    s: S,
) {
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    let turned = move |x: X, y: Y| {
        let (x, y): (S, S) = (x.load(), y.load());
        (X::store(x.times_real(c) + s * y), Y::store(y.times_real(c) - s.conj() * x))
    };
    each_pair(x, y, turned, Written::Both);
}

/// What [`rotg`] finds; `r` and `z` take the places of a and b. Of complex numbers `z` is b.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rotation<S: Scalar> {
    pub r: S,
    pub z: S,
    pub c: S::Real,
    pub s: S,
}

/// The rotation that takes (a, b) to (r, 0).
pub fn rotg<S: Scalar>(a: S, b: S) -> Rotation<S> {
    if S::IS_COMPLEX { rotg_complex(a, b) } else { rotg_real(a, b) }
}

/// `z` is s or 1/c, from which both can be had again.
fn rotg_real<S: Scalar>(a: S, b: S) -> Rotation<S> {
    let (zero, one) = (S::Real::rounded(0.0), S::Real::rounded(1.0));
    let (a, b) = (a.real(), b.real());
    if b == zero {
        return Rotation { r: S::from_real(a), z: S::zero(), c: one, s: S::zero() };
    }
    if a == zero {
        return Rotation { r: S::from_real(b), z: S::one(), c: zero, s: S::one() };
    }
    let larger = if a.abs() > b.abs() { a } else { b };
    let r = norm(a, b).copysign(larger);
    let (c, s) = (a / r, b / r);
    let z = if a.abs() > b.abs() {
        s
    } else if c == zero {
        one
    } else {
        one / c
    };
    Rotation { r: S::from_real(r), z: S::from_real(z), c, s: S::from_real(s) }
}

fn rotg_complex<S: Scalar>(a: S, b: S) -> Rotation<S> {
    let size = a.modulus();
    if size == S::Real::rounded(0.0) {
        return Rotation { r: b, z: b, c: size, s: S::one() };
    }
    let norm = norm(size, b.modulus());
    let direction = a.over_real(size);
    let s = direction * b.over_real(norm).conj();
    Rotation { r: direction.times_real(norm), z: b, c: size / norm, s }
}

/// √(a² + b²), of numbers scaled so that the larger's square is one.
fn norm<R: Real>(a: R, b: R) -> R {
    let scale = a.abs().max(b.abs()).max(R::min_positive_value());
    let (a, b) = (a / scale, b / scale);
    scale * (a * a + b * b).sqrt()
}

/// A modified rotation's `param`: what it looks like, and h11, h21, h12, h22.
pub type Param<R> = [R; 5];

/// H from `param`: by its first element some of its elements are ones, minus ones or zeros.
/// `None` is the identity.
fn modified<R: Real>([flag, h11, h21, h12, h22]: Param<R>) -> Option<[R; 4]> {
    let one = R::rounded(1.0);
    if flag == R::rounded(-2.0) {
        None
    } else if flag < R::rounded(0.0) {
        Some([h11, h21, h12, h22])
    } else if flag == R::rounded(0.0) {
        Some([one, h21, h12, one])
    } else {
        Some([h11, -one, one, h22])
    }
}

/// (x, y) = H (x, y)
///
/// # Safety
/// The vectors have `n` elements, `inc` apart, that may be read and written until this returns.
pub unsafe fn rotm<R: Real, X: Stored<R>, Y: Stored<R>>(
    n: i64,
    x: *mut X,
    incx: i64,
    y: *mut Y,
    incy: i64,
    param: Param<R>,
) {
    let Some([h11, h21, h12, h22]) = modified(param) else { return };
    // SAFETY: this function's caller promises it.
    let (x, y) = unsafe { (Vector::new(n, x, incx), Vector::new(n, y, incy)) };
    let turned = move |x: X, y: Y| {
        let (x, y): (R, R) = (x.load(), y.load());
        (X::store(h11 * x + h12 * y), Y::store(h21 * x + h22 * y))
    };
    each_pair(x, y, turned, Written::Both);
}

/// What [`rotmg`] finds; `d1`, `d2` and `x1` replace what it was given.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ModifiedRotation<R> {
    pub d1: R,
    pub d2: R,
    pub x1: R,
    /// Elements that its first one says nobody reads are `None`: reference BLAS leaves what lies there.
    pub param: [Option<R>; 5],
}

/// The modified rotation that makes the second element of (√d1 x1, √d2 y1) zero.
pub fn rotmg<R: Real>(d1: R, d2: R, x1: R, y1: R) -> ModifiedRotation<R> {
    let (zero, one) = (R::rounded(0.0), R::rounded(1.0));
    let p2 = d2 * y1;
    let (p1, q2) = (d1 * x1, p2 * y1);
    let q1 = p1 * x1;
    if d1 >= zero && p2 == zero {
        return ModifiedRotation { d1, d2, x1, param: [Some(R::rounded(-2.0)), None, None, None, None] };
    }
    let mut found = Modified { d1, d2, x1, form: Form::Full, h: [zero; 4] };
    if d1 >= zero && q1.abs() > q2.abs() {
        let (h21, h12) = (-y1 / x1, p2 / p1);
        let u = one - h12 * h21;
        if u > zero {
            found = Modified {
                d1: d1 / u,
                d2: d2 / u,
                x1: x1 * u,
                form: Form::OnesOnDiagonal,
                h: [one, h21, h12, one],
            };
        } else {
            found.clear();
        }
    } else if d1 >= zero && q2 >= zero {
        let (h11, h22) = (p1 / p2, x1 / y1);
        let u = one + h11 * h22;
        found =
            Modified { d1: d2 / u, d2: d1 / u, x1: y1 * u, form: Form::OnesBeside, h: [h11, -one, one, h22] };
    } else {
        found.clear();
    }
    found.rescale();
    found.finish()
}

/// Which of H's elements `param` has.
#[derive(Clone, Copy, PartialEq)]
enum Form {
    Full,
    OnesOnDiagonal,
    OnesBeside,
}

struct Modified<R> {
    d1: R,
    d2: R,
    x1: R,
    form: Form,
    /// h11, h21, h12, h22
    h: [R; 4],
}

impl<R: Real> Modified<R> {
    /// There is no such rotation.
    fn clear(&mut self) {
        let zero = R::rounded(0.0);
        *self = Self { d1: zero, d2: zero, x1: zero, form: Form::Full, h: [zero; 4] };
    }

    /// Keeps `d1` and |`d2`| between γ⁻² and γ², where there are such numbers.
    fn rescale(&mut self) {
        let gamma = R::rounded(4096.0);
        let square = gamma * gamma;
        let small = |d: R| d.abs() <= R::rounded(5.960_464_5e-8);
        let out = |d: R| d != R::rounded(0.0) && d.is_finite() && (small(d) || d.abs() >= square);
        while out(self.d1) {
            let (factor, by) = if small(self.d1) { (square, gamma.recip()) } else { (square.recip(), gamma) };
            self.form = Form::Full;
            self.d1 *= factor;
            self.x1 *= by;
            self.h[0] *= by;
            self.h[2] *= by;
        }
        while out(self.d2) {
            let (factor, by) = if small(self.d2) { (square, gamma.recip()) } else { (square.recip(), gamma) };
            self.form = Form::Full;
            self.d2 *= factor;
            self.h[1] *= by;
            self.h[3] *= by;
        }
    }

    fn finish(self) -> ModifiedRotation<R> {
        let [h11, h21, h12, h22] = self.h.map(Some);
        let param = match self.form {
            Form::Full => [Some(R::rounded(-1.0)), h11, h21, h12, h22],
            Form::OnesOnDiagonal => [Some(R::rounded(0.0)), None, h21, h12, None],
            Form::OnesBeside => [Some(R::rounded(1.0)), h11, None, None, h22],
        };
        ModifiedRotation { d1: self.d1, d2: self.d2, x1: self.x1, param }
    }
}
