//! Each routine's result put back together: residuals and orthogonality in LAPACK's own measures, which are below 30, of random, graded,
//! singular, clustered, tiny and huge matrices with gaps between their columns; and what is never written.

use cusolver_cpu::indefinite::{self, Kind};
use cusolver_cpu::jacobi::{self, Settings};
use cusolver_cpu::svd::Wanted;
use cusolver_cpu::{Complex, Diag, Field, Matrix, Op, Real, Scalar, Side, Uplo};
use cusolver_cpu::{cholesky, eigen, lu, qr, reduction, svd};
use num_traits::{Float, NumCast, Zero};

/// LAPACK's own bound.
const BOUND: f64 = 30.0;
const POISON: f64 = 77.25;

fn wide<R: Real>(value: R) -> f64 {
    NumCast::from(value).unwrap()
}

/// Numbers of a linear congruential generator, between -1 and 1.
struct Draw(u64);

impl Draw {
    fn real(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    }

    fn number<S: Scalar>(&mut self) -> S {
        let (re, im) = (self.real(), self.real());
        S::from_real(S::Real::rounded(re)).with_imag(S::Real::rounded(im))
    }
}

/// A matrix with gaps between its columns.
#[derive(Clone)]
struct Padded<S> {
    rows: usize,
    columns: usize,
    ld: usize,
    values: Vec<S>,
}

impl<S: Scalar> Padded<S> {
    fn new(rows: usize, columns: usize, mut value: impl FnMut(usize, usize) -> S) -> Self {
        let ld = rows + 3;
        let poison = S::from_real(S::Real::rounded(POISON));
        let mut values = vec![poison; ld * columns + 5];
        for column in 0..columns {
            for row in 0..rows {
                values[row + column * ld] = value(row, column);
            }
        }
        Self { rows, columns, ld, values }
    }

    fn zeros(rows: usize, columns: usize) -> Self {
        Self::new(rows, columns, |_, _| S::zero())
    }

    fn identity(n: usize) -> Self {
        Self::new(n, n, |i, j| if i == j { S::one() } else { S::zero() })
    }

    fn get(&self, row: usize, column: usize) -> S {
        self.values[row + column * self.ld]
    }

    fn matrix(&mut self) -> Matrix<S> {
        Matrix::new(self.values.as_mut_ptr(), self.ld as i64)
    }

    /// Nothing was written between the columns or behind them.
    fn check_gaps(&self, what: &str) {
        let poison = S::from_real(S::Real::rounded(POISON));
        for (at, value) in self.values.iter().enumerate() {
            let inside = at % self.ld < self.rows && at / self.ld < self.columns;
            assert!(inside || *value == poison, "{what}: written at {at} of leading dimension {}", self.ld);
        }
    }

    fn op(&self, op: Op) -> Self {
        match op {
            Op::N => self.clone(),
            Op::T => Self::new(self.columns, self.rows, |i, j| self.get(j, i)),
            Op::C => Self::new(self.columns, self.rows, |i, j| self.get(j, i).conj()),
        }
    }

    fn times(&self, other: &Self) -> Self {
        assert_eq!(self.columns, other.rows);
        Self::new(self.rows, other.columns, |i, j| {
            (0..self.columns).fold(S::zero(), |sum, k| sum + self.get(i, k) * other.get(k, j))
        })
    }

    fn minus(&self, other: &Self) -> Self {
        Self::new(self.rows, self.columns, |i, j| self.get(i, j) - other.get(i, j))
    }

    /// The largest sum of a column's sizes.
    fn norm(&self) -> f64 {
        let sum = |j: usize| (0..self.rows).map(|i| wide(self.get(i, j).modulus())).sum::<f64>();
        (0..self.columns).map(sum).fold(0.0, |most, sum| if sum > most || sum.is_nan() { sum } else { most })
    }

    fn columns(&self, from: usize, to: usize) -> Self {
        Self::new(self.rows, to - from, |i, j| self.get(i, from + j))
    }

    fn triangle(&self, uplo: Uplo, unit: bool) -> Self {
        Self::new(self.rows, self.columns, |i, j| match (i == j, (i > j) == (uplo == Uplo::Lower)) {
            (true, _) if unit => S::one(),
            (true, _) | (false, true) => self.get(i, j),
            _ => S::zero(),
        })
    }
}

/// `|difference| / (|scale| · n · eps)`, as LAPACK's tests have it.
fn near<S: Scalar>(difference: &Padded<S>, scale: f64, n: usize, what: &str) {
    let eps = wide(S::Real::epsilon());
    let floor = wide(S::Real::min_positive_value());
    let measure = difference.norm() / (scale.max(floor) * n.max(1) as f64 * eps);
    assert!(measure < BOUND, "{what}: {measure}");
}

fn orthonormal<S: Scalar>(q: &Padded<S>, what: &str) {
    let gram = q.op(Op::C).times(q);
    near(&gram.minus(&Padded::identity(q.columns)), 1.0, q.rows, what);
}

const KINDS: [&str; 6] = ["random", "graded", "singular", "clustered", "tiny", "huge"];
/// Of which nothing, or little, is left when their eigenvalues' mean is taken off.
const PLAIN: [&str; 3] = ["zeros", "multiple of the identity", "Jordan's"];

fn general<S: Scalar>(draw: &mut Draw, kind: &str, m: usize, n: usize) -> Padded<S> {
    // Squares of these leave the type's range.
    let (tiny, huge) = if size_of::<S::Real>() == 4 { (1e-30, 1e30) } else { (1e-200, 1e200) };
    let mut a: Padded<S> = Padded::new(m, n, |_, _| draw.number());
    let scaled = |a: &Padded<S>, by: &dyn Fn(usize, usize) -> f64| {
        Padded::new(m, n, |i, j| a.get(i, j).times_real(S::Real::rounded(by(i, j))))
    };
    match kind {
        "graded" => a = scaled(&a, &|i, j| 0.5_f64.powi((i + j) as i32)),
        "singular" => a = Padded::new(m, n, |i, j| a.get(i, j % (n / 2).max(1))),
        "clustered" => {
            a = Padded::new(m, n, |i, j| {
                let one = if i == j { 1.0 } else { 0.0 };
                S::from_real(S::Real::rounded(one)) + a.get(i, j).times_real(S::Real::rounded(1e-5))
            });
        }
        "zeros" => a = Padded::zeros(m, n),
        "multiple of the identity" => {
            a = Padded::new(
                m,
                n,
                |i, j| if i == j { S::from_real(S::Real::rounded(2.5)) } else { S::zero() },
            );
        }
        "Jordan's" => {
            a = Padded::new(m, n, |i, j| {
                let element = if i == j {
                    1.5
                } else if j == i + 1 {
                    1.0
                } else {
                    0.0
                };
                S::from_real(S::Real::rounded(element))
            });
        }
        "tiny" => a = scaled(&a, &|_, _| tiny),
        "huge" => a = scaled(&a, &|_, _| huge),
        _ => {}
    }
    a
}

fn hermitian<S: Scalar>(draw: &mut Draw, kind: &str, n: usize) -> Padded<S> {
    let a = general::<S>(draw, kind, n, n);
    Padded::new(n, n, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => a.get(i, j),
        std::cmp::Ordering::Equal => S::from_real(a.get(i, i).real()),
        std::cmp::Ordering::Greater => a.get(j, i).conj(),
    })
}

/// Its other triangle is poison, which nobody reads or writes.
fn stored<S: Scalar>(a: &Padded<S>, uplo: Uplo) -> Padded<S> {
    let poison = S::from_real(S::Real::rounded(POISON));
    Padded::new(a.rows, a.columns, |i, j| {
        if i == j || (i > j) == (uplo == Uplo::Lower) { a.get(i, j) } else { poison }
    })
}

fn check_other_triangle<S: Scalar>(a: &Padded<S>, uplo: Uplo, what: &str) {
    let poison = S::from_real(S::Real::rounded(POISON));
    for j in 0..a.columns {
        for i in 0..a.rows {
            let is_other = i != j && (i > j) != (uplo == Uplo::Lower);
            assert!(!is_other || a.get(i, j) == poison, "{what}: the other triangle was written");
        }
    }
}

fn sizes() -> [usize; 7] {
    [0, 1, 2, 5, 17, 40, 70]
}

fn lu_of<S: Scalar>(draw: &mut Draw, kind: &str, m: usize, n: usize) {
    let what = &format!("getrf {kind} {m} by {n}");
    let a = general::<S>(draw, kind, m, n);
    let mut lu = a.clone();
    // SAFETY: a matrix of this size.
    let (info, pivots) = unsafe { lu::getrf(m as i64, n as i64, lu.matrix(), true) };
    lu.check_gaps(what);
    let size = m.min(n);
    let l = Padded::new(m, size, |i, j| match i.cmp(&j) {
        std::cmp::Ordering::Less => S::zero(),
        std::cmp::Ordering::Equal => S::one(),
        std::cmp::Ordering::Greater => lu.get(i, j),
    });
    let u = Padded::new(size, n, |i, j| if i <= j { lu.get(i, j) } else { S::zero() });
    let mut rows: Vec<usize> = (0..m).collect();
    for (i, pivot) in pivots.iter().enumerate() {
        rows.swap(i, *pivot as usize - 1);
    }
    let swapped = Padded::new(m, n, |i, j| a.get(rows[i], j));
    near(&l.times(&u).minus(&swapped), a.norm(), m.max(n), what);
    let zero = (0..size).find(|&i| u.get(i, i).is_zero()).map_or(0, |i| i as i64 + 1);
    assert_eq!(info, zero, "{what}");
    for i in 0..size {
        for below in i + 1..m {
            let factor = wide(l.get(below, i).abs1());
            assert!(factor <= if S::IS_COMPLEX { 2.01 } else { 1.0 }, "{what}: a factor of {factor}");
        }
    }
}

fn positive<S: Scalar>(draw: &mut Draw, n: usize) -> Padded<S> {
    let a = general::<S>(draw, "random", n, n);
    let mut made = a.times(&a.op(Op::C));
    for i in 0..n {
        made.values[i + i * made.ld] = S::from_real(made.get(i, i).real() + S::Real::rounded(0.5));
    }
    made
}

fn cholesky_of<S: Scalar>(draw: &mut Draw, n: usize, uplo: Uplo) {
    let what = &format!("potrf {n} {uplo:?}");
    let a = positive::<S>(draw, n);
    let mut factor = stored(&a, uplo);
    // SAFETY: matrices of these sizes.
    unsafe {
        assert_eq!(cholesky::potrf(uplo, n as i64, factor.matrix()), 0, "{what}");
        factor.check_gaps(what);
        check_other_triangle(&factor, uplo, what);
        let l = factor.triangle(uplo, false);
        let product = if uplo == Uplo::Lower { l.times(&l.op(Op::C)) } else { l.op(Op::C).times(&l) };
        near(&product.minus(&a), a.norm(), n, what);

        let b = general::<S>(draw, "random", n, 3);
        let mut x = b.clone();
        cholesky::potrs(uplo, n as i64, 3, factor.matrix(), x.matrix());
        x.check_gaps(what);
        near(&a.times(&x).minus(&b), a.norm() * x.norm(), n, "potrs");

        let mut inverse = factor.clone();
        assert_eq!(cholesky::potri(uplo, n as i64, inverse.matrix()), 0, "{what}");
        check_other_triangle(&inverse, uplo, what);
        let of = &inverse;
        let whole = Padded::new(n, n, |i, j| {
            let stored = i == j || (i > j) == (uplo == Uplo::Lower);
            if stored { of.get(i, j) } else { of.get(j, i).conj() }
        });
        let left = a.times(&whole).minus(&Padded::identity(n));
        near(&left, a.norm() * whole.norm(), n, "potri");

        if n > 3 {
            let mut broken = stored(&a, uplo);
            broken.values[2 + 2 * broken.ld] = -S::one();
            assert_eq!(cholesky::potrf(uplo, n as i64, broken.matrix()), 3, "{what}: not positive");
        }

        for diag in [Diag::NonUnit, Diag::Unit] {
            let triangle = Padded::new(n, n, |i, j| {
                let value = a.get(i, j).times_real(S::Real::rounded(0.2 / n as f64));
                if i == j { value + S::one() } else { value }
            });
            let mut inverse = stored(&triangle, uplo);
            assert_eq!(cholesky::trtri(uplo, diag, n as i64, inverse.matrix()), 0);
            check_other_triangle(&inverse, uplo, "trtri");
            let unit = diag == Diag::Unit;
            let (t, i) = (triangle.triangle(uplo, unit), inverse.triangle(uplo, unit));
            near(&t.times(&i).minus(&Padded::identity(n)), t.norm() * i.norm(), n, "trtri");
        }
    }
}

fn qr_of<S: Scalar>(draw: &mut Draw, kind: &str, m: usize, n: usize) {
    let what = &format!("geqrf {kind} {m} by {n}");
    let a = general::<S>(draw, kind, m, n);
    let size = m.min(n);
    let (mut made, mut tau) = (a.clone(), vec![S::zero(); size]);
    // SAFETY: matrices of these sizes.
    unsafe {
        qr::geqrf(m as i64, n as i64, made.matrix(), tau.as_mut_ptr());
        made.check_gaps(what);
        let r = Padded::new(size, n, |i, j| if i <= j { made.get(i, j) } else { S::zero() });
        let mut q = made.columns(0, size);
        qr::orgqr(m as i64, size as i64, size as i64, q.matrix(), tau.as_ptr());
        q.check_gaps(what);
        orthonormal(&q, what);
        near(&q.times(&r).minus(&a), a.norm(), m, what);
        // Qᴴ·A is R, and C·Q as Q says.
        let mut c = a.clone();
        let (k, tau) = (size as i64, tau.as_ptr());
        qr::ormqr(Side::Left, Op::C, m as i64, n as i64, k, made.matrix(), tau, c.matrix());
        let whole = Padded::new(m, n, |i, j| if i < size { r.get(i, j) } else { S::zero() });
        near(&c.minus(&whole), a.norm(), m, "ormqr");
        if m > 0 {
            let mut all = Padded::identity(m);
            let mut right = all.clone();
            qr::ormqr(Side::Left, Op::N, m as i64, m as i64, k, made.matrix(), tau, all.matrix());
            qr::ormqr(Side::Right, Op::C, m as i64, m as i64, k, made.matrix(), tau, right.matrix());
            near(&all.op(Op::C).minus(&right), 1.0, m, "ormqr from the right");
            near(&all.columns(0, size).minus(&q), 1.0, m, "ormqr and orgqr");
        }
    }
}

fn reductions<S: Scalar>(draw: &mut Draw, kind: &str, m: usize, n: usize) {
    let what = &format!("gebrd {kind} {m} by {n}");
    let a = general::<S>(draw, kind, m, n);
    let mut made = a.clone();
    let (mut d, mut e) = (vec![S::Real::zero(); n], vec![S::Real::zero(); n]);
    let (mut tauq, mut taup) = (vec![S::zero(); n], vec![S::zero(); n]);
    // SAFETY: matrices of these sizes.
    unsafe {
        let (d, e) = (d.as_mut_ptr(), e.as_mut_ptr());
        let (tauq, taup) = (tauq.as_mut_ptr(), taup.as_mut_ptr());
        reduction::gebrd(m as i64, n as i64, made.matrix(), d, e, tauq, taup);
        made.check_gaps(what);
        if n == 0 {
            return;
        }
        let bidiagonal = Padded::new(n, n, |i, j| match (i == j, i + 1 == j) {
            (true, _) => S::from_real(*d.add(i)),
            (_, true) => S::from_real(*e.add(i)),
            _ => S::zero(),
        });
        let (mut q, mut pt) = (made.clone(), Padded::new(n, n, |i, j| made.get(i, j)));
        reduction::orgbr(true, m as i64, n as i64, n as i64, q.matrix(), tauq);
        reduction::orgbr(false, n as i64, n as i64, m as i64, pt.matrix(), taup);
        orthonormal(&q, what);
        orthonormal(&pt, what);
        near(&q.times(&bidiagonal).times(&pt).minus(&a), a.norm(), m, what);
    }
    for uplo in Uplo::ALL {
        let what = &format!("sytrd {kind} {n} {uplo:?}");
        let a = hermitian::<S>(draw, kind, n);
        let mut made = stored(&a, uplo);
        let (mut d, mut e) = (vec![S::Real::zero(); n], vec![S::Real::zero(); n]);
        let mut tau = vec![S::zero(); n];
        // SAFETY: as above.
        unsafe {
            let at = tau.as_mut_ptr();
            reduction::sytrd(uplo, n as i64, made.matrix(), d.as_mut_ptr(), e.as_mut_ptr(), at);
            made.check_gaps(what);
            check_other_triangle(&made, uplo, what);
            let t = Padded::new(n, n, |i, j| match i.abs_diff(j) {
                0 => S::from_real(d[i]),
                1 => S::from_real(e[i.min(j)]),
                _ => S::zero(),
            });
            let mut q = made.clone();
            reduction::orgtr(uplo, n as i64, q.matrix(), at);
            orthonormal(&q, what);
            near(&q.times(&t).times(&q.op(Op::C)).minus(&a), a.norm(), n, what);
            let mut c = Padded::identity(n);
            let size = n as i64;
            reduction::ormtr(Side::Right, uplo, Op::C, size, size, made.matrix(), at, c.matrix());
            near(&c.minus(&q.op(Op::C)), 1.0, n, "ormtr");
        }
    }
}

fn eigenvalues<S: Field>(draw: &mut Draw, kind: &str, n: usize, uplo: Uplo) {
    let a = hermitian::<S>(draw, kind, n);
    for by in ["syevd", "syevj"] {
        let what = &format!("{by} {kind} {n} {uplo:?}");
        let (mut v, mut w) = (stored(&a, uplo), vec![S::Real::zero(); n]);
        let (mut only, mut values) = (stored(&a, uplo), w.clone());
        // SAFETY: matrices of these sizes.
        unsafe {
            let size = n as i64;
            if by == "syevd" {
                let all = eigen::Range::All;
                assert_eq!(eigen::syevdx(true, all, uplo, size, v.matrix(), w.as_mut_ptr()), (size, 0));
                assert_eq!(eigen::syevdx(false, all, uplo, size, only.matrix(), values.as_mut_ptr()).1, 0);
            } else {
                let settings = Settings::default();
                assert!(jacobi::syevj(true, uplo, size, v.matrix(), w.as_mut_ptr(), settings).converged);
                jacobi::syevj(false, uplo, size, only.matrix(), values.as_mut_ptr(), settings);
            }
        }
        v.check_gaps(what);
        assert!(w.is_sorted(), "{what}");
        orthonormal(&v, what);
        let scaled = Padded::new(n, n, |i, j| v.get(i, j).times_real(w[j]));
        near(&a.times(&v).minus(&scaled), a.norm(), n, what);
        let apart = Padded::new(n, 1, |i, _| S::from_real(w[i] - values[i]));
        near(&apart, a.norm(), n, &format!("{what}: without vectors"));
    }
}

fn generalised<S: Field>(draw: &mut Draw, n: usize, uplo: Uplo, kind: u32) {
    let what = &format!("sygvd {n} {uplo:?} {kind}");
    let (a, mut b) = (hermitian::<S>(draw, "random", n), positive::<S>(draw, n));
    // Well conditioned, as in LAPACK's tests: what is lost otherwise is B's own.
    (0..n).for_each(|i| b.values[i + i * b.ld] += S::from_real(S::Real::rounded(n as f64)));
    let (mut v, mut factor, mut w) = (stored(&a, uplo), stored(&b, uplo), vec![S::Real::zero(); n]);
    let all = eigen::Range::All;
    // SAFETY: matrices of these sizes.
    let found =
        unsafe { eigen::sygvd(kind, true, all, uplo, n as i64, v.matrix(), factor.matrix(), w.as_mut_ptr()) };
    assert_eq!(found, (n as i64, 0), "{what}");
    v.check_gaps(what);
    check_other_triangle(&factor, uplo, what);
    let scaled = |of: &Padded<S>| Padded::new(n, n, |i, j| of.get(i, j).times_real(w[j]));
    let left = match kind {
        1 => a.times(&v).minus(&scaled(&b.times(&v))),
        2 => a.times(&b.times(&v)).minus(&scaled(&v)),
        _ => b.times(&a.times(&v)).minus(&scaled(&v)),
    };
    near(&left, a.norm() * v.norm() * if kind == 1 { 1.0 } else { b.norm() }, n, what);
}

fn singular<S: Field>(draw: &mut Draw, kind: &str, m: usize, n: usize) {
    let a = general::<S>(draw, kind, m, n);
    let size = m.min(n);
    for by in ["gesvd all", "gesvd some", "gesvd in place", "gesvdj whole", "gesvdj thin"] {
        let what = &format!("{by} {kind} {m} by {n}");
        let whole = matches!(by, "gesvd all" | "gesvdj whole");
        let mut given = a.clone();
        let mut s = vec![S::Real::zero(); size];
        let mut u = Padded::<S>::zeros(m, if whole { m } else { size });
        let mut vt = Padded::<S>::zeros(if whole { n } else { size }, n);
        let mut v = Padded::<S>::zeros(n, if whole { n } else { size });
        let (rows, columns, at) = (m as i64, n as i64, s.as_mut_ptr());
        // SAFETY: matrices of these sizes.
        unsafe {
            let (to_u, to_vt) = (u.matrix(), vt.matrix());
            let info = match by {
                "gesvd all" => {
                    svd::gesvd(rows, columns, given.matrix(), at, Wanted::All(to_u), Wanted::All(to_vt))
                }
                "gesvd some" => {
                    svd::gesvd(rows, columns, given.matrix(), at, Wanted::Some(to_u), Wanted::Some(to_vt))
                }
                "gesvd in place" => {
                    let to = Wanted::Some(to_vt);
                    let info = svd::gesvd(rows, columns, given.matrix(), at, Wanted::InPlace, to);
                    u = given.columns(0, size);
                    info
                }
                _ => {
                    let to = Some((to_u, v.matrix()));
                    let thin = by == "gesvdj thin";
                    let settings = Settings::default();
                    let came = jacobi::gesvdj(thin, rows, columns, given.matrix(), at, to, settings);
                    vt = v.op(Op::C);
                    if came.converged { 0 } else { 1 }
                }
            };
            assert_eq!(info, 0, "{what}");
        }
        for made in [&u, &vt, &v, &given] {
            made.check_gaps(what);
        }
        assert!(s.is_sorted_by(|a, b| a >= b) && s.iter().all(|s| *s >= S::Real::zero()), "{what}: {s:?}");
        orthonormal(&u, what);
        orthonormal(&vt.op(Op::C), what);
        let first = Padded::new(size, n, |i, j| vt.get(i, j).times_real(s[i]));
        near(&u.columns(0, size).times(&first).minus(&a), a.norm(), m.max(n), what);
    }
}

fn any_matrix<S: Field>(draw: &mut Draw, kind: &str, n: usize) {
    let what = &format!("geev {kind} {n}");
    let a = general::<S>(draw, kind, n, n);
    let (mut given, mut v) = (a.clone(), Padded::<S>::zeros(n, n));
    let (mut re, mut im) = (vec![S::Real::zero(); n], vec![S::Real::zero(); n]);
    // SAFETY: matrices of these sizes.
    let info = unsafe { eigen::geev(n as i64, given.matrix(), (&mut re, &mut im), (None, Some(v.matrix()))) };
    assert_eq!(info, 0, "{what}");
    v.check_gaps(what);
    let mut j = 0;
    while j < n {
        let is_pair = !S::IS_COMPLEX && !im[j].is_zero();
        let column = |i: usize| match is_pair {
            true => Complex::new(wide(v.get(i, j).real()), wide(v.get(i, j + 1).real())),
            false => Complex::new(wide(v.get(i, j).real()), wide(v.get(i, j).imag())),
        };
        let element = |i, k| Complex::new(wide(a.get(i, k).real()), wide(a.get(i, k).imag()));
        let value = Complex::new(wide(re[j]), wide(im[j]));
        let mut left = 0.0_f64;
        for i in 0..n {
            let row = (0..n).fold(Complex::zero(), |sum: Complex<f64>, k| sum + element(i, k) * column(k));
            left += (row - value * column(i)).norm();
        }
        let floor = wide(S::Real::min_positive_value());
        let measure = left / (a.norm().max(floor) * n as f64 * wide(S::Real::epsilon()));
        assert!(measure < BOUND, "{what}: {measure} of eigenvalue {value}");
        let length: f64 = (0..n).map(|i| column(i).norm_sqr()).sum::<f64>().sqrt();
        assert!((length - 1.0).abs() < 30.0 * n as f64 * wide(S::Real::epsilon()), "{what}: length {length}");
        if is_pair {
            assert!(re[j] == re[j + 1] && im[j] == -im[j + 1] && im[j] > S::Real::zero(), "{what}: a pair");
        }
        j += if is_pair { 2 } else { 1 };
    }
}

fn symmetric<S: Scalar>(draw: &mut Draw, kind: &str, n: usize, uplo: Uplo) {
    let what = &format!("sytrf {kind} {n} {uplo:?}");
    let a = general::<S>(draw, kind, n, n);
    // Symmetric, not Hermitian, and with zeros on the diagonal, so that there are blocks of two.
    let a =
        Padded::new(n, n, |i, j| if i == j && i % 3 == 0 { S::zero() } else { a.get(i.min(j), i.max(j)) });
    let mut factor = stored(&a, uplo);
    // SAFETY: matrices of these sizes.
    unsafe {
        let (info, pivots) = indefinite::sytrf(Kind::Symmetric, true, uplo, n as i64, factor.matrix());
        factor.check_gaps(what);
        check_other_triangle(&factor, uplo, what);
        assert_eq!(info == 0, n != 1, "{what}: {info}");
        if info != 0 {
            return;
        }
        assert!(n < 17 || pivots.iter().any(|pivot| *pivot < 0), "{what}: {pivots:?}");
        let b = general::<S>(draw, "random", n, 3);
        let mut x = b.clone();
        indefinite::sytrs(Kind::Symmetric, uplo, n as i64, 3, factor.matrix(), &pivots, x.matrix());
        x.check_gaps(what);
        near(&a.times(&x).minus(&b), a.norm() * x.norm(), n, what);
        let mut inverse = factor.clone();
        assert_eq!(indefinite::sytri(uplo, n as i64, inverse.matrix(), &pivots), 0, "{what}");
        check_other_triangle(&inverse, uplo, what);
        let whole = Padded::new(n, n, |i, j| {
            if i == j || (i > j) == (uplo == Uplo::Lower) { inverse.get(i, j) } else { inverse.get(j, i) }
        });
        let left = a.times(&whole).minus(&Padded::identity(n));
        near(&left, a.norm() * whole.norm(), n, "sytri");
    }
}

fn all_of<S: Field>() {
    let draw = &mut Draw(42);
    for n in sizes() {
        for kind in KINDS {
            for (m, n) in [(n, n), (n + 9, n), (n, n + 9)] {
                lu_of::<S>(draw, kind, m, n);
                qr_of::<S>(draw, kind, m, n);
                singular::<S>(draw, kind, m, n);
            }
            reductions::<S>(draw, kind, n, n);
            reductions::<S>(draw, kind, n + 9, n);
            any_matrix::<S>(draw, kind, n);
            for uplo in Uplo::ALL {
                eigenvalues::<S>(draw, kind, n, uplo);
            }
        }
        for kind in PLAIN {
            any_matrix::<S>(draw, kind, n);
        }
        for uplo in Uplo::ALL {
            cholesky_of::<S>(draw, n, uplo);
            symmetric::<S>(draw, "random", n, uplo);
            (1..=3).for_each(|kind| generalised::<S>(draw, n, uplo, kind));
        }
    }
}

#[test]
fn single_precision() {
    all_of::<f32>();
}

#[test]
fn double_precision() {
    all_of::<f64>();
}

#[test]
fn complex_numbers_in_single_precision() {
    all_of::<Complex<f32>>();
}

#[test]
fn complex_numbers_in_double_precision() {
    all_of::<Complex<f64>>();
}

/// Reductions work in panels of columns, and solvers of what they leave divide it: several times here.
fn large_of<S: Field>() {
    let draw = &mut Draw(5);
    let n = 150;
    for kind in ["random", "graded", "clustered"] {
        reductions::<S>(draw, kind, n, n);
        reductions::<S>(draw, kind, n + 50, n);
        singular::<S>(draw, kind, n, n);
        for uplo in Uplo::ALL {
            eigenvalues::<S>(draw, kind, n, uplo);
        }
    }
}

#[test]
fn large_matrices() {
    large_of::<f32>();
    large_of::<f64>();
}

#[test]
fn large_complex_matrices() {
    large_of::<Complex<f32>>();
    large_of::<Complex<f64>>();
}

/// Of every size around those at which they are divided, with zeros, equal numbers and graded ones among them.
#[test]
fn bidiagonal_matrices() {
    let draw = &mut Draw(11);
    for turn in 0..600 {
        let n = 1 + turn % 75;
        let number = |draw: &mut Draw| match turn / 75 % 4 {
            0 => draw.number::<f64>(),
            1 => (draw.number::<f64>() * 2.0).round(),
            2 => draw.number::<f64>().powi(21),
            _ => 1.0,
        };
        let numbers: Vec<[f64; 2]> = (0..n).map(|_| [number(draw), number(draw)]).collect();
        let a = Padded::<f64>::new(n, n, |i, j| match (i == j, i + 1 == j) {
            (true, _) => numbers[i][0],
            (_, true) => numbers[i][1],
            _ => 0.0,
        });
        let what = &format!("bidiagonal {turn}");
        let (mut u, mut vt, mut s) = (Padded::zeros(n, n), Padded::zeros(n, n), vec![0.0; n]);
        let (mut only, size) = (s.clone(), n as i64);
        // SAFETY: matrices of this size.
        unsafe {
            let (to_u, to_vt) = (Wanted::All(u.matrix()), Wanted::All(vt.matrix()));
            assert_eq!(svd::gesvd(size, size, a.clone().matrix(), s.as_mut_ptr(), to_u, to_vt), 0, "{what}");
            let (at, none) = (only.as_mut_ptr(), Wanted::None);
            assert_eq!(svd::gesvd(size, size, a.clone().matrix(), at, none, none), 0, "{what}");
        }
        assert!(s.is_sorted_by(|a, b| a >= b) && s[n - 1] >= 0.0, "{what}: {s:?}");
        orthonormal(&u, what);
        orthonormal(&vt, what);
        let scaled = Padded::new(n, n, |i, j| vt.get(i, j) * s[i]);
        near(&u.times(&scaled).minus(&a), a.norm(), n, what);
        let apart = Padded::new(n, 1, |i, _| s[i] - only[i]);
        near(&apart, a.norm(), n, what);
    }
}

/// Graded so far that the last values are nothing in the type.
#[test]
fn values_that_come_to_nothing_are_the_last_ones() {
    let draw = &mut Draw(7);
    for n in [60, 100, 141] {
        for _ in 0..4 {
            let grade = |i: usize, j: usize| 0.7_f64.powi((i + j) as i32);
            let a = Padded::<f32>::new(n, n, |i, j| draw.number::<f32>() * grade(i, j) as f32);
            let (mut u, mut vt, mut s) = (Padded::zeros(n, n), Padded::zeros(n, n), vec![0.0; n]);
            let size = n as i64;
            // SAFETY: matrices of this size.
            let info = unsafe {
                let (to_u, to_vt) = (Wanted::All(u.matrix()), Wanted::All(vt.matrix()));
                svd::gesvd(size, size, a.clone().matrix(), s.as_mut_ptr(), to_u, to_vt)
            };
            assert_eq!(info, 0);
            assert!(s.is_sorted_by(|a, b| a >= b) && s[0] > 0.0, "{n}: {s:?}");
            orthonormal(&u, "graded beyond the type");
            orthonormal(&vt.op(Op::C), "graded beyond the type");
        }
    }
}

/// What is not a number is told by `info` and no panic.
#[test]
fn no_numbers_give_no_numbers() {
    let mut a = Padded::<f64>::new(5, 5, |i, j| if (i, j) == (3, 2) { f64::NAN } else { 1.0 });
    let mut w = vec![0.0; 5];
    // SAFETY: matrices of these sizes.
    unsafe {
        let mut b = a.clone();
        let found = eigen::syevdx(true, eigen::Range::All, Uplo::Lower, 5, b.matrix(), w.as_mut_ptr());
        assert!(found.1 > 0 && w.iter().all(|w| w.is_nan()));
        let (mut re, mut im) = (vec![0.0; 5], vec![0.0; 5]);
        assert!(eigen::geev(5, a.matrix(), (&mut re, &mut im), (None, None)) > 0);
        assert!(svd::gesvd(5, 5, a.matrix(), w.as_mut_ptr(), Wanted::None, Wanted::None) > 0);
        assert_eq!(cholesky::potrf(Uplo::Lower, 5, a.matrix()), 2);
    }
}
