//! Eigenvalues and eigenvectors of real matrices that are not symmetric, pairs of complex ones included, in real arithmetic: a reduction to
//! Hessenberg's form, Francis's double-shifted QR, and eigenvectors of the quasi-triangle that is left. The method is EISPACK's `hqr2`.
//! Of complex matrices likewise with one shift and a triangle, as its `comqr2`.

use cublas_cpu::lapack::larfg;
use cublas_cpu::{Complex, Op, Real, Scalar};
use num_traits::{Float as _, One as _, Zero as _};

use crate::dense::Dense;
use crate::reflection::reflect_right;

/// Steps for one eigenvalue before it is said that there is no convergence.
const PATIENCE: i64 = 60;

/// Which eigenvectors are wanted.
#[derive(Clone, Copy)]
pub struct Wanted {
    pub left: bool,
    pub right: bool,
}

/// Real and imaginary parts of eigenvalues.
type Parts<R> = (Vec<R>, Vec<R>);

/// Left and right eigenvectors.
pub type Sides<S> = (Option<Dense<S>>, Option<Dense<S>>);

/// Real and imaginary parts of the eigenvalues of n by n, and eigenvectors as they are wanted: of a pair, whose positive one comes first,
/// real and imaginary parts of the first one's. None: no convergence.
pub fn eigen<R: Real>(mut h: Dense<R>, wanted: Wanted) -> Option<(Parts<R>, Sides<R>)> {
    let n = h.rows;
    let mut v = (wanted.left || wanted.right).then(|| Dense::identity(n, n));
    hessenberg(&mut h, v.as_mut());
    let norm = (0..n).flat_map(|j| (0..n.min(j + 2)).map(move |i| (i, j)));
    let norm = norm.fold(R::zero(), |sum, (i, j)| sum + h.get(i, j).abs());
    let (re, im) = quasi_triangle(&mut h, v.as_mut(), norm)?;
    let (mut left, mut right) = (None, None);
    if let Some(v) = v {
        if wanted.left {
            let mut turned = turned(&h);
            let backwards =
                |of: &[R], sign: R| of.iter().rev().map(|value| *value * sign).collect::<Vec<R>>();
            back_substitute(&mut turned, &backwards(&re, R::one()), &backwards(&im, -R::one()), norm);
            left =
                Some(v.times(Op::N, &turned_back(&turned, |column| im[column as usize] < R::zero()), Op::N));
        }
        if wanted.right {
            back_substitute(&mut h, &re, &im, norm);
            clear_below(&mut h);
            right = Some(v.times(Op::N, &h, Op::N));
        }
    }
    Some(((re, im), (left, right)))
}

/// A triangle, mirrored in the diagonal that goes up: a triangle on the same side, of which an eigenvector is one of the transposed matrix from
/// the last element to the first.
fn turned<S: Scalar>(h: &Dense<S>) -> Dense<S> {
    let n = h.rows;
    let mut made = Dense::zeros(n, n);
    for column in 0..n {
        (0..n).for_each(|row| made.set(row, column, h.get(n - 1 - column, n - 1 - row)));
    }
    made
}

/// Left eigenvectors by the right ones of what [`turned`] makes. Of a pair of a real matrix `is_second` is the column of imaginary parts.
fn turned_back<S: Scalar>(x: &Dense<S>, is_second: impl Fn(i64) -> bool) -> Dense<S> {
    let n = x.rows;
    let mut made = Dense::zeros(n, n);
    for column in 0..n {
        let (first, second) = (column + 1 < n && is_second(column + 1), is_second(column));
        // A pair's columns stay in their order, and end in the same row.
        let last = n - 1 - column + i64::from(second);
        for row in 0..=last {
            let value = x.get(row, last - i64::from(first)).conj();
            made.set(n - 1 - row, column, if second { -value } else { value });
        }
    }
    made
}

fn clear_below<S: Scalar>(h: &mut Dense<S>) {
    for column in 0..h.columns {
        (column + 1..h.rows).for_each(|row| h.set(row, column, S::zero()));
    }
}

/// Eigenvalues and eigenvectors.
type Pairs<S> = (Vec<S>, Sides<S>);

/// Those of a complex matrix. None: no convergence.
pub fn eigen_complex<R: Real>(mut h: Dense<Complex<R>>, wanted: Wanted) -> Option<Pairs<Complex<R>>>
where
    Complex<R>: Scalar<Real = R>,
{
    let n = h.rows;
    let mut v = Dense::identity(n, n);
    hessenberg(&mut h, Some(&mut v));
    let norm = h.values.iter().fold(R::zero(), |sum, element| sum + element.abs1());
    triangle(&mut h, &mut v, norm)?;
    let values: Vec<Complex<R>> = (0..n).map(|i| h.get(i, i)).collect();
    let left = wanted.left.then(|| {
        let mut turned = turned(&h);
        triangle_vectors(&mut turned, norm);
        v.times(Op::N, &turned_back(&turned, |_| false), Op::N)
    });
    let right = wanted.right.then(|| {
        triangle_vectors(&mut h, norm);
        v.times(Op::N, &h, Op::N)
    });
    Some((values, (left, right)))
}

/// A triangle's eigenvectors in its own place.
fn triangle_vectors<R: Real>(h: &mut Dense<Complex<R>>, norm: R)
where
    Complex<R>: Scalar<Real = R>,
{
    let values: Vec<Complex<R>> = (0..h.rows).map(|i| h.get(i, i)).collect();
    let least = (R::epsilon() * norm).max(R::min_positive_value());
    for column in (0..h.rows).rev() {
        h.set(column, column, Complex::one());
        for i in (0..column).rev() {
            let sum = along(h, i, column, i + 1, column);
            let apart = values[i as usize] - values[column as usize];
            let by = if apart.abs1() < least { Complex::from_real(least) } else { apart };
            h.set(i, column, -sum.over(by));
            let most = h.get(i, column).abs1();
            if R::epsilon() * most * most > R::one() {
                (i..=column).for_each(|j| h.set(j, column, h.get(j, column).over_real(most)));
            }
        }
    }
    clear_below(h);
}

/// Where the block that ends at `n` begins: behind the last element below the diagonal that is nothing beside its neighbours, which is made
/// zero.
fn block_start<S: Scalar>(h: &mut Dense<S>, n: i64, norm: S::Real) -> i64 {
    let mut l = n;
    while l > 0 {
        let beside = h.get(l - 1, l - 1).abs1() + h.get(l, l).abs1();
        let beside = if beside.is_zero() { norm } else { beside };
        if h.get(l, l - 1).abs1() <= S::Real::epsilon() * beside {
            h.set(l, l - 1, S::zero());
            break;
        }
        l -= 1;
    }
    l
}

/// Makes Hessenberg's form a triangle.
fn triangle<R: Real>(h: &mut Dense<Complex<R>>, v: &mut Dense<Complex<R>>, norm: R) -> Option<()>
where
    Complex<R>: Scalar<Real = R>,
{
    let (mut n, mut steps) = (h.rows - 1, 0);
    while n > 0 {
        let l = block_start(h, n, norm);
        if l == n {
            n -= 1;
            steps = 0;
            continue;
        }
        if steps >= PATIENCE {
            return None;
        }
        let shift = if steps % 20 == 10 {
            Complex::from_real(h.get(n, n - 1).abs1() + h.get(n - 1, (n - 2).max(0)).abs1())
        } else {
            nearest(h, n)
        };
        steps += 1;
        single_step(h, v, (l, n), shift);
    }
    Some(())
}

/// Of the block of two that ends at `n` the eigenvalue that is nearer to the last element (Wilkinson's shift).
fn nearest<R: Real>(h: &Dense<Complex<R>>, n: i64) -> Complex<R>
where
    Complex<R>: Scalar<Real = R>,
{
    let last = h.get(n, n);
    let p = (h.get(n - 1, n - 1) - last).times_real(R::rounded(0.5));
    let q = h.get(n - 1, n) * h.get(n, n - 1);
    let root = (p * p + q).sqrt();
    let sum = if (p + root).modulus() < (p - root).modulus() { p - root } else { p + root };
    if sum.is_zero() { last } else { last - q.over(sum) }
}

/// One step of QR on the rows and columns from `l` to `n`.
fn single_step<R: Real>(
    h: &mut Dense<Complex<R>>,
    v: &mut Dense<Complex<R>>,
    (l, n): (i64, i64),
    shift: Complex<R>,
) where
    Complex<R>: Scalar<Real = R>,
{
    (l..=n).for_each(|i| h.set(i, i, h.get(i, i) - shift));
    let mut turns = vec![];
    for k in l..n {
        let (f, g) = (h.get(k, k), h.get(k + 1, k));
        let (size, length) = (f.modulus(), f.modulus().hypot(g.modulus()));
        let (c, s) = if length.is_zero() {
            (R::one(), Complex::zero())
        } else if size.is_zero() {
            (R::zero(), g.conj().over_real(length))
        } else {
            (size / length, f.over_real(size) * g.conj().over_real(length))
        };
        for column in k..h.columns {
            let (x, y) = (h.get(k, column), h.get(k + 1, column));
            h.set(k, column, x.times_real(c) + s * y);
            h.set(k + 1, column, y.times_real(c) - s.conj() * x);
        }
        h.set(k + 1, k, Complex::zero());
        turns.push((k, c, s));
    }
    for (k, c, s) in turns {
        let turn = |of: &mut Dense<Complex<R>>, rows: i64| {
            let (first, second) = of.pair_mut(k, k + 1);
            for (x, y) in first[..rows as usize].iter_mut().zip(second) {
                (*x, *y) = (x.times_real(c) + s.conj() * *y, y.times_real(c) - s * *x);
            }
        };
        turn(h, k + 2);
        turn(v, v.rows);
    }
    (l..=n).for_each(|i| h.set(i, i, h.get(i, i) + shift));
}

fn hessenberg<S: Scalar>(h: &mut Dense<S>, mut v: Option<&mut Dense<S>>) {
    let n = h.rows;
    let mut along = vec![S::zero(); n as usize];
    for k in 0..(n - 2).max(0) {
        let matrix = h.matrix();
        // SAFETY: parts of matrices of ours.
        unsafe {
            let tau = larfg(n - k - 1, matrix.at(k + 1, k), matrix.at(k + 2, k), 1);
            let mut axis = matrix.from(k + 1, k).column(0, n - k - 1).to_vec();
            axis[0] = S::one();
            cublas_cpu::lapack::reflect_columns(&axis, tau.conj(), n - k - 1, matrix.from(k + 1, k + 1));
            reflect_right(&axis, tau, &mut along, matrix.from(0, k + 1));
            if let Some(v) = v.as_deref_mut() {
                reflect_right(&axis, tau, &mut along, v.matrix().from(0, k + 1));
            }
        }
        (k + 2..n).for_each(|row| h.set(row, k, S::zero()));
    }
}

/// `(x, y) = (q·x + p·y, q·y - p·x)` of two columns.
fn turn<R: Real>(of: &mut Dense<R>, first: i64, rows: i64, (p, q): (R, R)) {
    let (x, y) = of.pair_mut(first, first + 1);
    for (x, y) in x[..rows as usize].iter_mut().zip(y) {
        (*x, *y) = (q * *x + p * *y, q * *y - p * *x);
    }
}

/// Columns `k` to `k + 2`, or `k + 1` where there are no three, less multiples of what they have in common.
fn reflect_columns<R: Real>(
    of: &mut Dense<R>,
    k: i64,
    rows: i64,
    (x, y, z): (R, R, R),
    (q, r): (R, R),
    three: bool,
) {
    for row in 0..rows {
        let mut p = x * of.get(row, k) + y * of.get(row, k + 1);
        if three {
            p += z * of.get(row, k + 2);
            of.set(row, k + 2, of.get(row, k + 2) - p * r);
        }
        of.set(row, k, of.get(row, k) - p);
        of.set(row, k + 1, of.get(row, k + 1) - p * q);
    }
}

/// Makes blocks of one and of two of Hessenberg's form; the answers are its eigenvalues.
fn quasi_triangle<R: Real>(
    h: &mut Dense<R>,
    mut v: Option<&mut Dense<R>>,
    norm: R,
) -> Option<(Vec<R>, Vec<R>)> {
    let size = h.rows;
    let (zero, half) = (R::zero(), R::rounded(0.5));
    let (mut re, mut im) = (vec![zero; size as usize], vec![zero; size as usize]);
    // What exceptional shifts have taken off the diagonal.
    let mut shifted = zero;
    let (mut n, mut steps) = (size - 1, 0);
    while n >= 0 {
        let l = block_start(h, n, norm);
        if l == n {
            h.set(n, n, h.get(n, n) + shifted);
            re[n as usize] = h.get(n, n);
            n -= 1;
            steps = 0;
            continue;
        }
        if l == n - 1 {
            split_pair(h, v.as_deref_mut(), n, shifted, (&mut re, &mut im));
            n -= 2;
            steps = 0;
            continue;
        }
        if steps >= PATIENCE {
            return None;
        }
        let (mut x, mut y) = (h.get(n, n), h.get(n - 1, n - 1));
        let mut w = h.get(n, n - 1) * h.get(n - 1, n);
        if steps % 20 == 10 {
            shifted += x;
            (0..=n).for_each(|i| h.set(i, i, h.get(i, i) - x));
            let s = h.get(n, n - 1).abs() + h.get(n - 1, n - 2).abs();
            (x, y, w) = (R::rounded(0.75) * s, R::rounded(0.75) * s, R::rounded(-0.4375) * s * s);
        }
        if steps == 30 {
            let middle = (y - x) * half;
            let s = middle * middle + w;
            if s > zero {
                let s = if y < x { -s.sqrt() } else { s.sqrt() };
                let s = x - w / (middle + s);
                (0..=n).for_each(|i| h.set(i, i, h.get(i, i) - s));
                shifted += s;
                (x, y, w) = (R::rounded(0.964), R::rounded(0.964), R::rounded(0.964));
            }
        }
        steps += 1;
        double_step(h, v.as_deref_mut(), (l, n), (x, y, w));
    }
    Some((re, im))
}

/// A block of two: two real eigenvalues, which are set apart, or a pair.
fn split_pair<R: Real>(
    h: &mut Dense<R>,
    v: Option<&mut Dense<R>>,
    n: i64,
    shifted: R,
    (re, im): (&mut [R], &mut [R]),
) {
    let (size, zero) = (h.rows, R::zero());
    let w = h.get(n, n - 1) * h.get(n - 1, n);
    let p = (h.get(n - 1, n - 1) - h.get(n, n)) * R::rounded(0.5);
    let q = p * p + w;
    let z = q.abs().sqrt();
    h.set(n, n, h.get(n, n) + shifted);
    h.set(n - 1, n - 1, h.get(n - 1, n - 1) + shifted);
    let x = h.get(n, n);
    let (first, second) = (n as usize - 1, n as usize);
    if q < zero {
        (re[first], re[second]) = (x + p, x + p);
        (im[first], im[second]) = (z, -z);
        return;
    }
    let z = if p >= zero { p + z } else { p - z };
    re[first] = x + z;
    re[second] = if z.is_zero() { re[first] } else { x - w / z };
    let below = h.get(n, n - 1);
    let s = below.abs() + z.abs();
    let (p, q) = (below / s, z / s);
    let r = p.hypot(q);
    let (p, q) = (p / r, q / r);
    for j in n - 1..size {
        let (x, y) = (h.get(n - 1, j), h.get(n, j));
        h.set(n - 1, j, q * x + p * y);
        h.set(n, j, q * y - p * x);
    }
    turn(h, n - 1, n + 1, (p, q));
    h.set(n, n - 1, zero);
    if let Some(v) = v {
        turn(v, n - 1, size, (p, q));
    }
}

/// One step of Francis's on the rows and columns from `l` to `n`, with the shifts that `x`, `y` and `w` say.
fn double_step<R: Real>(
    h: &mut Dense<R>,
    mut v: Option<&mut Dense<R>>,
    (l, n): (i64, i64),
    (mut x, mut y, w): (R, R, R),
) {
    let (size, zero, eps) = (h.rows, R::zero(), R::epsilon());
    // Two small elements below the diagonal, one behind the other.
    let mut m = n - 2;
    let (mut p, mut q, mut r);
    loop {
        let z = h.get(m, m);
        let (a, b) = (x - z, y - z);
        p = (a * b - w) / h.get(m + 1, m) + h.get(m, m + 1);
        q = h.get(m + 1, m + 1) - z - a - b;
        r = h.get(m + 2, m + 1);
        let s = p.abs() + q.abs() + r.abs();
        (p, q, r) = (p / s, q / s, r / s);
        if m == l {
            break;
        }
        let small = h.get(m, m - 1).abs() * (q.abs() + r.abs());
        let beside = h.get(m - 1, m - 1).abs() + z.abs() + h.get(m + 1, m + 1).abs();
        if small < eps * p.abs() * beside {
            break;
        }
        m -= 1;
    }
    for i in m + 2..=n {
        h.set(i, i - 2, zero);
        if i > m + 2 {
            h.set(i, i - 3, zero);
        }
    }
    for k in m..n {
        let three = k != n - 1;
        if k != m {
            (p, q) = (h.get(k, k - 1), h.get(k + 1, k - 1));
            r = if three { h.get(k + 2, k - 1) } else { zero };
            x = p.abs() + q.abs() + r.abs();
            if x.is_zero() {
                continue;
            }
            (p, q, r) = (p / x, q / x, r / x);
        }
        let s = (p * p + q * q + r * r).sqrt();
        let s = if p < zero { -s } else { s };
        if s.is_zero() {
            continue;
        }
        if k != m {
            h.set(k, k - 1, -s * x);
        } else if l != m {
            h.set(k, k - 1, -h.get(k, k - 1));
        }
        p += s;
        x = p / s;
        y = q / s;
        let z = r / s;
        q /= p;
        r /= p;
        for j in k..size {
            let mut p = h.get(k, j) + q * h.get(k + 1, j);
            if three {
                p += r * h.get(k + 2, j);
                h.set(k + 2, j, h.get(k + 2, j) - p * z);
            }
            h.set(k, j, h.get(k, j) - p * x);
            h.set(k + 1, j, h.get(k + 1, j) - p * y);
        }
        reflect_columns(h, k, n.min(k + 3) + 1, (x, y, z), (q, r), three);
        if let Some(v) = v.as_deref_mut() {
            reflect_columns(v, k, size, (x, y, z), (q, r), three);
        }
    }
}

/// `(a + ib) / (c + id)`, overflowing only where it is itself too large.
fn divide<R: Real>((a, b): (R, R), (c, d): (R, R)) -> (R, R) {
    if c.abs() > d.abs() {
        let r = d / c;
        let by = c + r * d;
        ((a + r * b) / by, (b - r * a) / by)
    } else {
        let r = c / d;
        let by = d + r * c;
        ((r * a + b) / by, (r * b - a) / by)
    }
}

/// The quasi-triangle's eigenvectors in its own place: columns, of a pair two.
fn back_substitute<R: Real>(h: &mut Dense<R>, re: &[R], im: &[R], norm: R) {
    for n in (0..h.rows).rev() {
        let (p, q) = (re[n as usize], im[n as usize]);
        if q.is_zero() {
            real_vector(h, (re, im), n, p, norm);
        } else if q < R::zero() {
            complex_vector(h, (re, im), n, (p, q), norm);
        }
    }
}

fn along<S: Scalar>(h: &Dense<S>, row: i64, column: i64, from: i64, to: i64) -> S {
    (from..=to).fold(S::zero(), |sum, j| sum + h.get(row, j) * h.get(j, column))
}

fn real_vector<R: Real>(h: &mut Dense<R>, (re, im): (&[R], &[R]), n: i64, p: R, norm: R) {
    let (zero, eps) = (R::zero(), R::epsilon());
    let mut l = n;
    let (mut z, mut s) = (zero, zero);
    h.set(n, n, R::one());
    for i in (0..n).rev() {
        let w = h.get(i, i) - p;
        let r = along(h, i, n, l, n);
        let at = i as usize;
        if im[at] < zero {
            (z, s) = (w, r);
            continue;
        }
        l = i;
        if im[at].is_zero() {
            // Of a matrix of zeros all vectors will do.
            let least = (eps * norm).max(R::min_positive_value());
            let by = if w.is_zero() { least } else { w };
            h.set(i, n, -r / by);
        } else {
            let (x, y) = (h.get(i, i + 1), h.get(i + 1, i));
            let q = (re[at] - p) * (re[at] - p) + im[at] * im[at];
            let t = (x * s - z * r) / q;
            h.set(i, n, t);
            h.set(i + 1, n, if x.abs() > z.abs() { (-r - w * t) / x } else { (-s - y * t) / z });
        }
        let most = h.get(i, n).abs();
        if eps * most * most > R::one() {
            (i..=n).for_each(|j| h.set(j, n, h.get(j, n) / most));
        }
    }
}

fn complex_vector<R: Real>(h: &mut Dense<R>, (re, im): (&[R], &[R]), n: i64, (p, q): (R, R), norm: R) {
    let (zero, eps) = (R::zero(), R::epsilon());
    let set = |h: &mut Dense<R>, row: i64, value: (R, R)| {
        h.set(row, n - 1, value.0);
        h.set(row, n, value.1);
    };
    let last = if h.get(n, n - 1).abs() > h.get(n - 1, n).abs() {
        (q / h.get(n, n - 1), -(h.get(n, n) - p) / h.get(n, n - 1))
    } else {
        divide((zero, -h.get(n - 1, n)), (h.get(n - 1, n - 1) - p, q))
    };
    set(h, n - 1, last);
    set(h, n, (zero, R::one()));
    let mut l = n - 1;
    let (mut z, mut r, mut s) = (zero, zero, zero);
    for i in (0..n - 1).rev() {
        let (ra, sa) = (along(h, i, n - 1, l, n), along(h, i, n, l, n));
        let w = h.get(i, i) - p;
        let at = i as usize;
        if im[at] < zero {
            (z, r, s) = (w, ra, sa);
            continue;
        }
        l = i;
        if im[at].is_zero() {
            let by = if w.is_zero() && q.is_zero() { eps * norm } else { w };
            set(h, i, divide((-ra, -sa), (by, q)));
        } else {
            let (x, y) = (h.get(i, i + 1), h.get(i + 1, i));
            let apart = re[at] - p;
            let mut vr = apart * apart + im[at] * im[at] - q * q;
            let vi = (apart + apart) * q;
            if vr.is_zero() && vi.is_zero() {
                vr = eps * norm * (w.abs() + q.abs() + x.abs() + y.abs() + z.abs());
            }
            let found = divide((x * r - z * ra + q * sa, x * s - z * sa - q * ra), (vr, vi));
            set(h, i, found);
            let (a, b) = found;
            let next = if x.abs() > z.abs() + q.abs() {
                ((-ra - w * a + q * b) / x, (-sa - w * b - q * a) / x)
            } else {
                divide((-r - y * a, -s - y * b), (z, q))
            };
            set(h, i + 1, next);
        }
        let most = h.get(i, n - 1).abs().max(h.get(i, n).abs());
        if eps * most * most > R::one() {
            (i..=n).for_each(|j| set_scaled(h, j, n, most));
        }
    }
}

fn set_scaled<R: Real>(h: &mut Dense<R>, row: i64, n: i64, by: R) {
    h.set(row, n - 1, h.get(row, n - 1) / by);
    h.set(row, n, h.get(row, n) / by);
}
