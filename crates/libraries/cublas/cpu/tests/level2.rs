//! Level 2 against dense sums in numbers of twice the length: what is stored as a triangle, a band or packed is made
//! from a dense matrix, with guards (NaN) wherever a routine must not look.
#![expect(clippy::undocumented_unsafe_blocks, reason = "what a test gives is as long as it says")]

mod reference;

use cublas_cpu::level2::*;
use cublas_cpu::{Diag, Op, Real, Stored, Uplo, bf16, f16};
use reference::{Exact, INCREMENTS, Laid, Numbers, SIZES, Sample, assert_close, guard, increments};

in_all_types!(
    products_with_general_matrices,
    products_with_bands,
    products_with_one_triangle_of_symmetric_matrices,
    products_with_triangles,
    solutions_of_triangles,
    updates_by_outer_products,
    updates_of_one_triangle,
    large_products_are_shared_out,
    factors_of_zero_read_nothing,
    empty_sizes_do_nothing,
);

/// A matrix of all its elements, column after column.
#[derive(Clone)]
struct Dense<S> {
    m: usize,
    n: usize,
    elements: Vec<S>,
}

impl<S: Sample> Dense<S> {
    fn new(m: usize, n: usize, mut element: impl FnMut(usize, usize) -> S) -> Self {
        let elements = (0..m * n).map(|at| element(at % m, at / m)).collect();
        Self { m, n, elements }
    }

    fn at(&self, i: usize, j: usize) -> S {
        self.elements[i + j * self.m]
    }

    /// Exactly op(A)[i][j].
    fn op(&self, op: Op, i: usize, j: usize) -> Exact {
        match op {
            Op::N => self.at(i, j).exact(),
            Op::T => self.at(j, i).exact(),
            Op::C => self.at(j, i).exact().conj(),
        }
    }

    fn rows(&self, op: Op) -> usize {
        if op == Op::N { self.m } else { self.n }
    }

    /// op(A) x, and the sums of its terms' moduli.
    fn times(&self, op: Op, x: &[S]) -> Vec<(Exact, f64)> {
        let row = |i: usize| {
            let terms = x.iter().enumerate().map(|(j, x)| (self.op(op, i, j), x.exact()));
            terms.fold((Exact::ZERO, 0.0), |(sum, size), (a, x)| (sum + a * x, size + a.abs() * x.abs()))
        };
        (0..self.rows(op)).map(row).collect()
    }
}

/// How a square matrix lies in memory.
#[derive(Clone, Copy, Debug)]
enum Shape {
    Full,
    Band(usize),
    Packed,
}

const SHAPES: [Shape; 5] = [Shape::Full, Shape::Packed, Shape::Band(0), Shape::Band(3), Shape::Band(40)];

impl Shape {
    /// Whether the element is stored, or is one that the shape takes to be zero.
    fn has(self, uplo: Uplo, i: usize, j: usize) -> bool {
        let in_triangle = if uplo == Uplo::Upper { i <= j } else { i >= j };
        let near = if let Shape::Band(k) = self { i.abs_diff(j) <= k } else { true };
        in_triangle && near
    }

    /// The array that holds the triangle, and its leading dimension.
    fn lay<S: Sample>(self, uplo: Uplo, dense: &Dense<S>) -> (Vec<S>, i64) {
        let n = dense.n;
        let places =
            || (0..n).flat_map(|j| (0..n).map(move |i| (i, j))).filter(|&(i, j)| self.has(uplo, i, j));
        match self {
            // Packed is: one column's elements behind the other's.
            Shape::Packed => (places().map(|(i, j)| dense.at(i, j)).collect(), 0),
            Shape::Full => {
                let ld = n + 2;
                let mut array = vec![guard(); ld * n];
                places().for_each(|(i, j)| array[i + j * ld] = dense.at(i, j));
                (array, ld as i64)
            }
            Shape::Band(k) => {
                let ld = k + 3;
                let mut array = vec![guard(); ld * n];
                let row = |i, j| if uplo == Uplo::Upper { k + i - j } else { i - j };
                places().for_each(|(i, j)| array[row(i, j) + j * ld] = dense.at(i, j));
                (array, ld as i64)
            }
        }
    }

    /// A matrix of this shape without the other triangle, which is zeros.
    fn triangle<S: Sample>(self, uplo: Uplo, n: usize, numbers: &mut Numbers) -> Dense<S> {
        Dense::new(n, n, |i, j| if self.has(uplo, i, j) { numbers.scalar() } else { S::zero() })
    }
}

/// The triangle with its mirror image, or its conjugate, on the other side.
fn mirrored<S: Sample>(triangle: &Dense<S>, uplo: Uplo, hermitian: bool) -> Dense<S> {
    Dense::new(triangle.n, triangle.n, |i, j| {
        let stored = if uplo == Uplo::Upper { i <= j } else { i >= j };
        match (stored, hermitian) {
            (true, true) if i == j => S::from_real(triangle.at(i, i).real()),
            (true, _) => triangle.at(i, j),
            (false, true) => triangle.at(j, i).conj(),
            (false, false) => triangle.at(j, i),
        }
    })
}

/// The same with imaginary parts on the diagonal that nobody may read.
fn with_odd_diagonal<S: Sample>(matrix: &Dense<S>) -> Dense<S> {
    let odd = |a: S| S::new(a.real().to_f64(), f64::NAN);
    Dense::new(matrix.n, matrix.n, |i, j| if i == j { odd(matrix.at(i, i)) } else { matrix.at(i, j) })
}

trait ToF64 {
    fn to_f64(self) -> f64;
}

impl<R: Real> ToF64 for R {
    fn to_f64(self) -> f64 {
        num_traits::ToPrimitive::to_f64(&self).unwrap()
    }
}

/// Does y = α op(A) x + β y with `call(α, x, incx, β, y, incy)` for all increments and for a β of zero, one and another.
fn check_products<S: Sample>(
    a: &Dense<S>,
    op: Op,
    what: &str,
    call: impl Fn(S, *const S, i64, S, *mut S, i64),
) {
    let n_y = a.rows(op);
    let n_x = if op == Op::N { a.n } else { a.m };
    let mut numbers = Numbers::new((n_x * 64 + n_y) as u64);
    for (turn, (incx, incy)) in increments().enumerate() {
        let (alpha, x, y): (S, Vec<S>, Vec<S>) = (numbers.scalar(), numbers.vector(n_x), numbers.vector(n_y));
        let beta = [S::zero(), S::one(), numbers.scalar()][turn % 3];
        // A β of zero means that y is not read.
        let before = if beta.is_zero() { vec![guard(); n_y] } else { y.clone() };
        let (mut laid_x, mut laid_y) = (Laid::new(&x, incx), Laid::new(&before, incy));
        call(alpha, laid_x.pointer(), incx, beta, laid_y.pointer(), incy);
        let exact = a.times(op, &x);
        for (i, found) in laid_y.values().into_iter().enumerate() {
            let (sum, size) = exact[i];
            let (alpha, rest) = (alpha.exact(), beta.exact() * y[i].exact());
            let magnitude = alpha.abs() * size + rest.abs();
            let place = || format!("{what} {op:?} {}×{} {incx} {incy} [{i}]", a.m, a.n);
            assert_close(found, alpha * sum + rest, n_x + 4, magnitude, place);
        }
    }
}

fn products_with_general_matrices<S: Sample>() {
    for m in SIZES.into_iter().skip(1) {
        for n in SIZES.into_iter().skip(1) {
            let mut numbers = Numbers::new((m + n) as u64);
            let a = Dense::<S>::new(m, n, |_, _| numbers.scalar());
            let ld = m + 3;
            let mut array = vec![guard::<S>(); ld * n];
            (0..m * n).for_each(|at| array[at % m + at / m * ld] = a.elements[at]);
            for op in Op::ALL {
                check_products(&a, op, "gemv", |alpha, x, incx, beta, y, incy| unsafe {
                    let (m, n, ld) = (m as i64, n as i64, ld as i64);
                    gemv(op, m, n, alpha, array.as_ptr(), ld, x, incx, beta, y, incy);
                });
            }
        }
    }
}

fn products_with_bands<S: Sample>() {
    for (m, n) in [(1, 1), (7, 7), (33, 7), (7, 33), (2, 9)] {
        for (kl, ku) in [(0, 0), (1, 2), (3, 0), (0, 4), (40, 40)] {
            let mut numbers = Numbers::new((m + n) as u64);
            let inside = |i: usize, j: usize| i <= j + kl && j <= i + ku;
            let a = Dense::<S>::new(m, n, |i, j| if inside(i, j) { numbers.scalar() } else { S::zero() });
            let ld = kl + ku + 2;
            let mut array = vec![guard::<S>(); ld * n];
            let places = (0..m * n).map(|at| (at % m, at / m)).filter(|&(i, j)| inside(i, j));
            places.for_each(|(i, j)| array[ku + i - j + j * ld] = a.at(i, j));
            for op in Op::ALL {
                check_products(&a, op, "gbmv", |alpha, x, incx, beta, y, incy| unsafe {
                    let [m, n, kl, ku, ld] = [m, n, kl, ku, ld].map(|size| size as i64);
                    gbmv(op, m, n, kl, ku, alpha, array.as_ptr(), ld, x, incx, beta, y, incy);
                });
            }
        }
    }
}

fn products_with_one_triangle_of_symmetric_matrices<S: Sample>() {
    for shape in SHAPES {
        for uplo in Uplo::ALL {
            for n in SIZES.into_iter().skip(1) {
                let triangle = shape.triangle::<S>(uplo, n, &mut Numbers::new(n as u64));
                let n = n as i64;

                let (array, ld) = shape.lay(uplo, &triangle);
                let a = array.as_ptr();
                let what = format!("symmetric {shape:?} {uplo:?}");
                let symmetric = mirrored(&triangle, uplo, false);
                check_products(&symmetric, Op::N, &what, |alpha, x, incx, beta, y, incy| unsafe {
                    match shape {
                        Shape::Full => symv(uplo, n, alpha, a, ld, x, incx, beta, y, incy),
                        Shape::Packed => spmv(uplo, n, alpha, a, x, incx, beta, y, incy),
                        Shape::Band(k) => sbmv(uplo, n, k as i64, alpha, a, ld, x, incx, beta, y, incy),
                    }
                });

                let (array, ld) = shape.lay(uplo, &with_odd_diagonal(&triangle));
                let a = array.as_ptr();
                let what = format!("Hermitian {shape:?} {uplo:?}");
                let hermitian = mirrored(&triangle, uplo, true);
                check_products(&hermitian, Op::N, &what, |alpha, x, incx, beta, y, incy| unsafe {
                    match shape {
                        Shape::Full => hemv(uplo, n, alpha, a, ld, x, incx, beta, y, incy),
                        Shape::Packed => hpmv(uplo, n, alpha, a, x, incx, beta, y, incy),
                        Shape::Band(k) => hbmv(uplo, n, k as i64, alpha, a, ld, x, incx, beta, y, incy),
                    }
                });
            }
        }
    }
}

/// A triangle as a routine gets it.
struct Case<S> {
    shape: Shape,
    uplo: Uplo,
    op: Op,
    diag: Diag,
    /// What it means: with ones on the diagonal where `diag` says so.
    a: Dense<S>,
    array: Vec<S>,
    ld: i64,
    inc: i64,
}

impl<S: Sample> Case<S> {
    fn all(mut check: impl FnMut(&Case<S>, Vec<S>)) {
        for shape in SHAPES {
            for (uplo, op, diag) in Uplo::ALL.into_iter().flat_map(|uplo| {
                Op::ALL
                    .into_iter()
                    .flat_map(move |op| Diag::ALL.into_iter().map(move |diag| (uplo, op, diag)))
            }) {
                for (n, inc) in SIZES.into_iter().flat_map(|n| INCREMENTS.map(|inc| (n, inc))) {
                    let mut numbers = Numbers::new(n as u64);
                    let mut a = shape.triangle::<S>(uplo, n, &mut numbers);
                    let diagonal =
                        |a: &mut Dense<S>, value: S| (0..n).for_each(|i| a.elements[i * n + i] = value);
                    if diag == Diag::Unit {
                        diagonal(&mut a, guard());
                    }
                    let (array, ld) = shape.lay(uplo, &a);
                    if diag == Diag::Unit {
                        diagonal(&mut a, S::one());
                    }
                    check(&Case { shape, uplo, op, diag, a, array, ld, inc }, numbers.vector(n));
                }
            }
        }
    }

    fn what(&self, name: &str) -> String {
        let Self { shape, uplo, op, diag, a, inc, .. } = self;
        format!("{name} {shape:?} {uplo:?} {op:?} {diag:?} of {}, {inc}", a.n)
    }
}

fn products_with_triangles<S: Sample>() {
    Case::<S>::all(|case, x| {
        let Case { shape, uplo, op, diag, ref array, ld, inc, .. } = *case;
        let mut laid = Laid::new(&x, inc);
        let (n, a, p) = (x.len() as i64, array.as_ptr(), laid.pointer());
        match shape {
            Shape::Full => unsafe { trmv(uplo, op, diag, n, a, ld, p, inc) },
            Shape::Packed => unsafe { tpmv(uplo, op, diag, n, a, p, inc) },
            Shape::Band(k) => unsafe { tbmv(uplo, op, diag, n, k as i64, a, ld, p, inc) },
        }
        for (found, (exact, size)) in laid.values().into_iter().zip(case.a.times(op, &x)) {
            assert_close(found, exact, x.len(), size, || case.what("product"));
        }
    });
}

/// |b − op(A) x| ≤ γ |op(A)| |x| (Higham, theorem 8.5, and a few roundings for complex quotients).
fn solutions_of_triangles<S: Sample>() {
    Case::<S>::all(|case, b| {
        let Case { shape, uplo, op, diag, ref array, ld, inc, .. } = *case;
        let mut laid = Laid::new(&b, inc);
        let (n, a, p) = (b.len() as i64, array.as_ptr(), laid.pointer());
        match shape {
            Shape::Full => unsafe { trsv(uplo, op, diag, n, a, ld, p, inc) },
            Shape::Packed => unsafe { tpsv(uplo, op, diag, n, a, p, inc) },
            Shape::Band(k) => unsafe { tbsv(uplo, op, diag, n, k as i64, a, ld, p, inc) },
        }
        let found = laid.values();
        for (b, (product, size)) in b.iter().zip(case.a.times(op, &found)) {
            assert_close(*b, product, found.len() + 6, size, || case.what("solution"));
        }
    });
}

fn updates_by_outer_products<S: Sample>() {
    for (m, n) in [(1, 1), (2, 7), (7, 2), (33, 7), (7, 33)] {
        for (incx, incy) in increments() {
            let mut numbers = Numbers::new((m * n) as u64);
            let (alpha, x, y): (S, Vec<S>, Vec<S>) = (numbers.scalar(), numbers.vector(m), numbers.vector(n));
            let ld = m + 1;
            let before = Dense::<S>::new(ld, n, |i, _| if i < m { numbers.scalar() } else { guard() });
            for conjugates in [false, true] {
                let mut after = before.clone();
                let (mut laid_x, mut laid_y) = (Laid::new(&x, incx), Laid::new(&y, incy));
                let (px, py, a) = (laid_x.pointer(), laid_y.pointer(), after.elements.as_mut_ptr());
                let call = if conjugates { gerc } else { geru };
                unsafe { call(m as i64, n as i64, alpha, px, incx, py, incy, a, ld as i64) };
                for (i, j) in (0..ld * n).map(|at| (at % ld, at / ld)) {
                    if i == m {
                        assert!(after.at(i, j).has_nan(), "below the matrix");
                        continue;
                    }
                    let other = if conjugates { y[j].exact().conj() } else { y[j].exact() };
                    let product = alpha.exact() * x[i].exact() * other;
                    let old = before.at(i, j).exact();
                    let place = || format!("ger {conjugates} {m}×{n} {incx} {incy} [{i}, {j}]");
                    assert_close(after.at(i, j), old + product, 4, old.abs() + product.abs(), place);
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Update {
    Symmetric,
    Hermitian,
    SymmetricOfTwo,
    HermitianOfTwo,
}

impl Update {
    const ALL: [Self; 4] = [Self::Symmetric, Self::Hermitian, Self::SymmetricOfTwo, Self::HermitianOfTwo];

    fn hermitian(self) -> bool {
        matches!(self, Self::Hermitian | Self::HermitianOfTwo)
    }

    /// The terms that are added to the element in row i and column j.
    fn terms<S: Sample>(self, alpha: S, x: &[S], y: &[S], i: usize, j: usize) -> [Exact; 2] {
        let [xi, xj, yi, yj] = [x[i], x[j], y[i], y[j]].map(S::exact);
        let alpha = alpha.exact();
        match self {
            Self::Symmetric => [alpha * xi * xj, Exact::ZERO],
            Self::Hermitian => [alpha.real_part() * xi * xj.conj(), Exact::ZERO],
            Self::SymmetricOfTwo => [alpha * xi * yj, alpha * yi * xj],
            Self::HermitianOfTwo => [alpha * xi * yj.conj(), alpha.conj() * yi * xj.conj()],
        }
    }
}

fn updates_of_one_triangle<S: Sample>() {
    for update in Update::ALL {
        for (shape, uplo, n) in [Shape::Full, Shape::Packed]
            .into_iter()
            .flat_map(|shape| Uplo::ALL.into_iter().flat_map(move |uplo| SIZES.map(|n| (shape, uplo, n))))
        {
            for (incx, incy) in increments() {
                check_update::<S>(update, shape, uplo, n, incx, incy);
            }
        }
    }
}

fn check_update<S: Sample>(update: Update, shape: Shape, uplo: Uplo, n: usize, incx: i64, incy: i64) {
    let mut numbers = Numbers::new(n as u64);
    let before = shape.triangle::<S>(uplo, n, &mut numbers);
    let given = if update.hermitian() { with_odd_diagonal(&before) } else { before.clone() };
    let (mut array, ld) = shape.lay(uplo, &given);
    let (alpha, x, y): (S, Vec<S>, Vec<S>) = (numbers.scalar(), numbers.vector(n), numbers.vector(n));
    let (mut laid_x, mut laid_y) = (Laid::new(&x, incx), Laid::new(&y, incy));
    let (n_, px, py, a, real) =
        (n as i64, laid_x.pointer(), laid_y.pointer(), array.as_mut_ptr(), alpha.real());
    unsafe {
        match (shape, update) {
            (Shape::Packed, Update::Symmetric) => spr(uplo, n_, alpha, px, incx, a),
            (Shape::Packed, Update::Hermitian) => hpr(uplo, n_, real, px, incx, a),
            (Shape::Packed, Update::SymmetricOfTwo) => spr2(uplo, n_, alpha, px, incx, py, incy, a),
            (Shape::Packed, Update::HermitianOfTwo) => hpr2(uplo, n_, alpha, px, incx, py, incy, a),
            (_, Update::Symmetric) => syr(uplo, n_, alpha, px, incx, a, ld),
            (_, Update::Hermitian) => her(uplo, n_, real, px, incx, a, ld),
            (_, Update::SymmetricOfTwo) => syr2(uplo, n_, alpha, px, incx, py, incy, a, ld),
            (_, Update::HermitianOfTwo) => her2(uplo, n_, alpha, px, incx, py, incy, a, ld),
        }
    }
    // The array that would hold the exact matrix tells where each element lies, and what is not touched.
    let (places, _) = shape.lay(uplo, &Dense::new(n, n, |i, j| S::new((i + j * n) as f64, 0.0)));
    for (found, place) in array.into_iter().zip(places) {
        if place.has_nan() {
            assert!(found.has_nan(), "{update:?} {shape:?} {uplo:?} writes beside the triangle");
            continue;
        }
        let (i, j) = (place.real().to_f64() as usize % n, place.real().to_f64() as usize / n);
        let mut old = before.at(i, j).exact();
        if update.hermitian() && i == j {
            old = old.real_part();
            assert!(!S::IS_COMPLEX || found.imag().to_f64() == 0.0, "{update:?}: {found:?} on the diagonal");
        }
        let terms = update.terms(alpha, &x, &y, i, j);
        let magnitude = old.abs() + terms[0].abs() + terms[1].abs();
        let what = || format!("{update:?} {shape:?} {uplo:?} of {n} {incx} {incy} [{i}, {j}]");
        assert_close(found, old + terms[0] + terms[1], 6, magnitude, what);
    }
}

/// Whole numbers, whose sums are exact in any order.
fn large_products_are_shared_out<S: Sample>() {
    let (m, n) = (701, 211);
    let a = Dense::<S>::new(m, n, |i, j| S::new(((i * 7 + j) % 5) as f64 - 2.0, ((i + j) % 3) as f64));
    for op in Op::ALL {
        let (n_x, n_y) = if op == Op::N { (n, m) } else { (m, n) };
        let x: Vec<S> = (0..n_x).map(|i| S::new((i % 4) as f64, 1.0)).collect();
        let mut y = vec![S::one(); n_y];
        let (m, n) = (m as i64, n as i64);
        let two = S::new(2.0, 0.0);
        unsafe { gemv(op, m, n, S::one(), a.elements.as_ptr(), m, x.as_ptr(), 1, two, y.as_mut_ptr(), 1) };
        for (found, (exact, _)) in y.into_iter().zip(a.times(op, &x)) {
            assert_eq!((found.exact() - exact - Exact::real(2.0)).abs(), 0.0, "{op:?}");
        }
    }
    let n = 601;
    let a = Dense::<S>::new(n, n, |i, j| S::new(((i * 7 + j) % 5) as f64 - 2.0, ((i + j) % 3) as f64));
    let x: Vec<S> = (0..n).map(|i| S::new((i % 4) as f64, 1.0)).collect();
    for (uplo, hermitian) in Uplo::ALL.into_iter().flat_map(|uplo| [(uplo, false), (uplo, true)]) {
        let mut y = vec![S::one(); n];
        let (size, at, two) = (n as i64, a.elements.as_ptr(), S::new(2.0, 0.0));
        let product = if hermitian { hemv } else { symv };
        unsafe { product(uplo, size, S::one(), at, size, x.as_ptr(), 1, two, y.as_mut_ptr(), 1) };
        let whole = mirrored(&a, uplo, hermitian);
        for (found, (exact, _)) in y.into_iter().zip(whole.times(Op::N, &x)) {
            assert_eq!((found.exact() - exact - Exact::real(2.0)).abs(), 0.0, "{uplo:?} {hermitian}");
        }
    }
}

fn factors_of_zero_read_nothing<S: Sample>() {
    let (nan, zero) = ([guard::<S>(); 9], S::zero());
    let (p, two) = (nan.as_ptr(), S::new(2.0, 0.0));
    type Call<'a, S> = &'a dyn Fn(S, *mut S);
    let calls: [(&str, Call<S>); 7] = [
        ("gemv", &|beta, y| unsafe { gemv(Op::N, 3, 3, zero, p, 3, p, 1, beta, y, 1) }),
        ("gbmv", &|beta, y| unsafe { gbmv(Op::T, 3, 3, 1, 1, zero, p, 3, p, 1, beta, y, 1) }),
        ("symv", &|beta, y| unsafe { symv(Uplo::Upper, 3, zero, p, 3, p, 1, beta, y, 1) }),
        ("hemv", &|beta, y| unsafe { hemv(Uplo::Lower, 3, zero, p, 3, p, 1, beta, y, 1) }),
        ("sbmv", &|beta, y| unsafe { sbmv(Uplo::Lower, 3, 1, zero, p, 3, p, 1, beta, y, 1) }),
        ("spmv", &|beta, y| unsafe { spmv(Uplo::Lower, 3, zero, p, p, 1, beta, y, 1) }),
        ("hpmv", &|beta, y| unsafe { hpmv(Uplo::Lower, 3, zero, p, p, 1, beta, y, 1) }),
    ];
    for (name, call) in calls {
        let mut y = [S::one(); 3];
        call(two, y.as_mut_ptr());
        assert_eq!(y, [two; 3], "{name}");
        let mut y = [guard::<S>(); 3];
        call(zero, y.as_mut_ptr());
        assert_eq!(y, [zero; 3], "{name}");
    }

    let before = [S::one(); 9];
    let mut a = before;
    let to = a.as_mut_ptr();
    let nothing = S::zero().real();
    unsafe {
        geru(3, 3, zero, p, 1, p, 1, to, 3);
        gerc(3, 3, zero, p, 1, p, 1, to, 3);
        syr(Uplo::Upper, 3, zero, p, 1, to, 3);
        her(Uplo::Upper, 3, nothing, p, 1, to, 3);
        hpr(Uplo::Upper, 3, nothing, p, 1, to);
        syr2(Uplo::Upper, 3, zero, p, 1, p, 1, to, 3);
        her2(Uplo::Upper, 3, zero, p, 1, p, 1, to, 3);
        spr2(Uplo::Upper, 3, zero, p, 1, p, 1, to);
    }
    assert_eq!(a, before);
}

fn empty_sizes_do_nothing<S: Sample>() {
    let (none, one) = (std::ptr::NonNull::<S>::dangling().as_ptr(), S::one());
    let mut y = [one; 2];
    let py = y.as_mut_ptr();
    unsafe {
        // As reference BLAS: without columns y is left as it is, whatever β says.
        gemv(Op::N, 2, 0, one, none, 2, none, 1, S::zero(), py, 1);
        gemv(Op::T, 0, 2, one, none, 1, none, 1, S::zero(), py, 1);
        gbmv(Op::N, 2, 0, 1, 1, one, none, 3, none, 1, S::zero(), py, 1);
        gemv(Op::N, 0, 0, one, none, 1, none, 1, one, none, 1);
        hemv(Uplo::Upper, 0, one, none, 1, none, 1, one, none, 1);
        trsv(Uplo::Upper, Op::N, Diag::Unit, 0, none, 1, none, 1);
        geru(0, 2, one, none, 1, none, 1, none, 1);
        syr(Uplo::Upper, 0, one, none, 1, none, 1);
        her2(Uplo::Lower, 0, one, none, 1, none, 1, none, 1);
    }
    assert_eq!(y, [one; 2]);
}

#[test]
fn gemv_of_halves_sums_in_f32_and_rounds_once() {
    fn check<H: Stored<f32>, Y: Stored<f32>>(unit: f64) {
        let (m, n) = (33, 70);
        let mut numbers = Numbers::new(11);
        let a: Vec<H> = (0..m * n).map(|_| H::store(numbers.scalar())).collect();
        for op in Op::ALL {
            let (n_x, n_y) = if op == Op::N { (n, m) } else { (m, n) };
            let x: Vec<H> = (0..n_x).map(|_| H::store(numbers.scalar())).collect();
            let before: Vec<Y> = (0..n_y).map(|_| Y::store(numbers.scalar())).collect();
            let mut y = before.clone();
            let (m, n) = (m as i64, n as i64);
            unsafe { gemv(op, m, n, 0.5f32, a.as_ptr(), m, x.as_ptr(), 1, 2.0, y.as_mut_ptr(), 1) };
            let dense =
                Dense { m: m as usize, n: n as usize, elements: a.iter().map(|a| a.load()).collect() };
            let wide: Vec<f32> = x.iter().map(|x| x.load()).collect();
            for (i, (sum, size)) in dense.times(op, &wide).into_iter().enumerate() {
                let exact = Exact::real(0.5) * sum + Exact::real(2.0) * Exact::real(before[i].load().into());
                let found = Exact::real(y[i].load().into());
                let bound = 80.0 * f64::from(f32::EPSILON) * (size + 2.0) + unit * exact.abs() * 1.001;
                assert!((found - exact).abs() <= bound, "{op:?} [{i}]: {found:?} {exact:?}");
            }
        }
    }
    check::<f16, f16>(2f64.powi(-11));
    check::<f16, f32>(0.0);
    check::<bf16, bf16>(2f64.powi(-8));
    check::<bf16, f32>(0.0);
}

#[test]
fn an_infinity_in_the_matrix_is_seen_through_a_zero() {
    let a = [f64::INFINITY, 1.0];
    let mut y = [0.0; 2];
    unsafe { gemv(Op::N, 2, 1, 1.0, a.as_ptr(), 2, [0.0].as_ptr(), 1, 0.0, y.as_mut_ptr(), 1) };
    assert!(y[0].is_nan() && y[1] == 0.0);
}
