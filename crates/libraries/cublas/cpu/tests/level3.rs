//! Level 3 against the second opinion: every routine, type, side, triangle, operation and diagonal, sizes around the
//! blocks', padding, and the factors that hide what they multiply.

mod exact;

use cublas_cpu::level3::*;
use cublas_cpu::{Diag, Op, Real, Scalar, Side, Uplo};
use exact::{Dense, Exact, SIZES, Source, Stored, factors, inside, quarters};
use num_traits::Zero;

/// Every size for the order of the special matrix, and some for the other.
fn shapes() -> Vec<(i64, i64)> {
    let mut shapes: Vec<_> = SIZES.iter().flat_map(|&order| [(order, 1), (order, 17)]).collect();
    shapes.extend([(5, 129), (129, 64), (64, 129), (2, 0), (300, 3)]);
    shapes
}

/// Factors of pairs (alpha, beta), fewer where sizes are large.
fn pairs<S: Scalar>(size: i64) -> Vec<(S, S)> {
    let [zero, one, other] = factors::<S>();
    let pairs = vec![(other, other), (one, zero), (other, one), (zero, other), (zero, one), (zero, zero)];
    pairs.into_iter().take(if size > 64 { 2 } else { 6 }).collect()
}

fn hide<S: Scalar>(matrix: Stored<S>, factor: S) -> Stored<S> {
    if factor.is_zero() { matrix.map(|_, _, _| Stored::nan()) } else { matrix }
}

fn real_part<S: Scalar>(value: S) -> S {
    S::from_real(value.real())
}

fn symmetric<S: Scalar>() {
    for (order, other) in shapes() {
        for side in Side::ALL {
            for uplo in Uplo::ALL {
                for hermitian in [false, true] {
                    for (alpha, beta) in pairs::<S>(order) {
                        let what =
                            format!("{side:?} {uplo:?} {hermitian} {order} {other} {alpha:?} {beta:?}");
                        let (m, n) = if side == Side::Left { (order, other) } else { (other, order) };
                        let mut source = Source::new((order * 100 + other) as u64);
                        let a: Stored<S> = source.matrix(order, order);
                        let (b, c): (Stored<S>, Stored<S>) = (source.matrix(m, n), source.matrix(m, n));
                        let (full, dense_b, dense_c) = (a.symmetric(uplo, hermitian), b.dense(), c.dense());
                        let (a, b) = (hide(a.poisoned(uplo, Diag::NonUnit), alpha), hide(b, alpha));
                        let mut c = hide(c, beta);
                        let before = c.clone();
                        let routine = if hermitian { hemm } else { symm };
                        // SAFETY: the matrices are as large as said.
                        unsafe {
                            let (a, lda, b, ldb) = (a.ptr(), a.ld, b.ptr(), b.ld);
                            routine(side, uplo, m, n, alpha, a, lda, b, ldb, beta, c.mut_ptr(), c.ld);
                        }
                        let product = match side {
                            Side::Left => (alpha, &full, &dense_b),
                            Side::Right => (alpha, &dense_b, &full),
                        };
                        let exact = Exact::new(&[product], Some((beta, &dense_c)));
                        exact.assert_matrix(&what, &c, |_, _| true);
                        c.assert_rest(&before, &what, |_, _| true);
                    }
                }
            }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Update {
    Syrk,
    Syr2k,
    Syrkx,
    Herk,
    Her2k,
    Herkx,
}

fn updates<S: Scalar>(kinds: [Update; 3]) {
    use Update::*;
    for kind in kinds {
        let hermitian = matches!(kind, Herk | Her2k | Herkx);
        for (n, k) in shapes() {
            for uplo in Uplo::ALL {
                for op in [Op::N, if hermitian { Op::C } else { Op::T }] {
                    for (alpha, beta) in pairs::<S>(n) {
                        let alpha = if kind == Herk { real_part(alpha) } else { alpha };
                        let beta = if hermitian { real_part(beta) } else { beta };
                        let what = format!("{kind:?} {uplo:?} {op:?} {n} {k} {alpha:?} {beta:?}");
                        let (rows, columns) = if op == Op::N { (n, k) } else { (k, n) };
                        let mut source = Source::new((n * 100 + k) as u64);
                        let (a, b): (Stored<S>, Stored<S>) =
                            (source.matrix(rows, columns), source.matrix(rows, columns));
                        let c: Stored<S> = source.matrix(n, n);
                        let mirror = if hermitian { Op::C } else { Op::T };
                        let (left_a, left_b) = (a.dense().op(op), b.dense().op(op));
                        let (right_a, right_b) = (left_a.op(mirror), left_b.op(mirror));
                        let terms: Vec<(S, &Dense, &Dense)> = match kind {
                            Syrk | Herk => vec![(alpha, &left_a, &right_a)],
                            Syrkx | Herkx => vec![(alpha, &left_a, &right_b)],
                            Syr2k => vec![(alpha, &left_a, &right_b), (alpha, &left_b, &right_a)],
                            Her2k => vec![(alpha, &left_a, &right_b), (alpha.conj(), &left_b, &right_a)],
                        };
                        // What is on the diagonal besides a real number is not read, but stays if nothing is done.
                        let dense_c = Dense::new(n, n, |i, j| {
                            let element = c.get(i, j);
                            if hermitian && i == j { real_part(element) } else { element }
                        });
                        let exact = Exact::new(&terms, Some((beta, &dense_c)));
                        let (a, b) = (hide(a, alpha), hide(b, alpha));
                        let mut c = hide(c, beta).poisoned(uplo, Diag::NonUnit);
                        let before = c.clone();
                        let (a, lda, b, ldb, into, ldc) = (a.ptr(), a.ld, b.ptr(), b.ld, c.mut_ptr(), c.ld);
                        let (re_alpha, re_beta) = (alpha.real(), beta.real());
                        // SAFETY: the matrices are as large as said.
                        unsafe {
                            match kind {
                                Syrk => syrk(uplo, op, n, k, alpha, a, lda, beta, into, ldc),
                                Herk => herk(uplo, op, n, k, re_alpha, a, lda, re_beta, into, ldc),
                                Syr2k => syr2k(uplo, op, n, k, alpha, a, lda, b, ldb, beta, into, ldc),
                                Her2k => her2k(uplo, op, n, k, alpha, a, lda, b, ldb, re_beta, into, ldc),
                                Syrkx => syrkx(uplo, op, n, k, alpha, a, lda, b, ldb, beta, into, ldc),
                                Herkx => herkx(uplo, op, n, k, alpha, a, lda, b, ldb, re_beta, into, ldc),
                            }
                        }
                        c.assert_rest(&before, &what, |row, column| inside(uplo, row, column));
                        if (k == 0 || alpha.is_zero()) && beta.is_one() {
                            c.assert_rest(&before, &what, |_, _| false);
                            continue;
                        }
                        if kind == Herkx {
                            // The caller promises a Hermitian product; of another the diagonal's real part remains.
                            let real = c.clone().map(|_, _, value| real_part(value));
                            exact.assert_real_diagonal(&what, &real);
                            exact.assert_matrix(&what, &c, |row, column| {
                                row != column && inside(uplo, row, column)
                            });
                        } else {
                            exact.assert_matrix(&what, &c, |row, column| inside(uplo, row, column));
                        }
                        for i in 0..n {
                            assert!(!hermitian || c.get(i, i).imag().is_zero(), "{what}: diagonal {i}");
                        }
                    }
                }
            }
        }
    }
}

fn symmetric_updates<S: Scalar>() {
    updates::<S>([Update::Syrk, Update::Syr2k, Update::Syrkx]);
}

fn hermitian_updates<S: Scalar>() {
    updates::<S>([Update::Herk, Update::Her2k, Update::Herkx]);
}

/// A triangle that is far from singular.
fn triangle<S: Scalar>(source: &mut Source, order: i64, diag: Diag) -> Stored<S> {
    let small = S::from_real(S::Real::rounded(if diag == Diag::Unit { 1.0 / 64.0 } else { 0.125 }));
    source.matrix(order, order).map(|row, column, value: S| {
        if row == column { S::one() + value * quarters(1, 0) } else { value * small }
    })
}

fn triangles<S: Scalar>(body: impl Fn(Side, Uplo, Op, Diag, i64, i64, S)) {
    for (order, other) in shapes() {
        for side in Side::ALL {
            for uplo in Uplo::ALL {
                for op in Op::ALL {
                    for diag in Diag::ALL {
                        for alpha in factors::<S>().into_iter().rev().take(if order > 17 { 1 } else { 3 }) {
                            body(side, uplo, op, diag, order, other, alpha);
                        }
                    }
                }
            }
        }
    }
}

fn triangular_product<S: Scalar>() {
    triangles::<S>(|side, uplo, op, diag, order, other, alpha| {
        let what = format!("{side:?} {uplo:?} {op:?} {diag:?} {order} {other} {alpha:?}");
        let (m, n) = if side == Side::Left { (order, other) } else { (other, order) };
        let mut source = Source::new((order * 100 + other) as u64);
        let a = triangle::<S>(&mut source, order, diag);
        let b: Stored<S> = source.matrix(m, n);
        let (t, dense_b) = (a.triangular(uplo, diag).op(op), b.dense());
        let exact = match side {
            Side::Left => Exact::new(&[(alpha, &t, &dense_b)], None),
            Side::Right => Exact::new(&[(alpha, &dense_b, &t)], None),
        };
        let (a, mut b) = (hide(a.poisoned(uplo, diag), alpha), hide(b, alpha));
        let mut c = source.matrix::<S>(m, n).map(|_, _, _| Stored::nan());
        let before = c.clone();
        // SAFETY: the matrices are as large as said.
        unsafe {
            let (a, lda, b, ldb) = (a.ptr(), a.ld, b.ptr(), b.ld);
            trmm(side, uplo, op, diag, m, n, alpha, a, lda, b, ldb, c.mut_ptr(), c.ld);
        }
        exact.assert_matrix(&what, &c, |_, _| true);
        c.assert_rest(&before, &what, |_, _| true);
        let before = b.clone();
        let into = b.mut_ptr();
        // SAFETY: as above, in place.
        unsafe { trmm(side, uplo, op, diag, m, n, alpha, a.ptr(), a.ld, into, b.ld, into, b.ld) };
        exact.assert_matrix(&what, &b, |_, _| true);
        b.assert_rest(&before, &what, |_, _| true);
    });
}

/// The residual `B - A·X` is at most γ(n)·|A|·|X| (Higham, 8.1).
fn triangular_system<S: Scalar>() {
    triangles::<S>(|side, uplo, op, diag, order, other, alpha| {
        let what = format!("{side:?} {uplo:?} {op:?} {diag:?} {order} {other} {alpha:?}");
        let (m, n) = if side == Side::Left { (order, other) } else { (other, order) };
        let mut source = Source::new((order * 100 + other) as u64);
        let a = triangle::<S>(&mut source, order, diag);
        let b: Stored<S> = source.matrix(m, n);
        let (t, dense_b) = (a.triangular(uplo, diag).op(op), b.dense());
        let (a, mut x) = (hide(a.poisoned(uplo, diag), alpha), hide(b, alpha));
        let before = x.clone();
        // SAFETY: the matrices are as large as said.
        unsafe { trsm(side, uplo, op, diag, m, n, alpha, a.ptr(), a.ld, x.mut_ptr(), x.ld) };
        x.assert_rest(&before, &what, |_, _| true);
        let dense_x = x.dense();
        let product = match side {
            Side::Left => (S::one(), &t, &dense_x),
            Side::Right => (S::one(), &dense_x, &t),
        };
        let residual = Exact::new(&[product], Some((-alpha, &dense_b)));
        let zero = x.map(|_, _, _| S::zero());
        residual.assert_matrix(&what, &zero, |_, _| true);
    });
}

fn sums<S: Scalar>() {
    for (m, n) in [(0, 3), (3, 0), (1, 1), (2, 5), (17, 64), (129, 33)] {
        for op_a in Op::ALL {
            for op_b in Op::ALL {
                for (alpha, beta) in pairs::<S>(1) {
                    let what = format!("{m}x{n} {op_a:?}{op_b:?} {alpha:?} {beta:?}");
                    let mut source = Source::new((m * 100 + n) as u64);
                    let shape = |op: Op| if op.transposes() { (n, m) } else { (m, n) };
                    let a: Stored<S> = source.matrix(shape(op_a).0, shape(op_a).1);
                    let b: Stored<S> = source.matrix(shape(op_b).0, shape(op_b).1);
                    let identity =
                        Dense::new(m, m, |row, column| if row == column { S::one() } else { S::zero() });
                    let (dense_a, dense_b) = (a.dense().op(op_a), b.dense().op(op_b));
                    let exact =
                        Exact::new(&[(alpha, &identity, &dense_a), (beta, &identity, &dense_b)], None);
                    let (mut a, b) = (hide(a, alpha), hide(b, beta));
                    let mut c = source.matrix::<S>(m, n).map(|_, _, _| Stored::nan());
                    let before = c.clone();
                    let call = |a: *const S, lda, c, ldc| {
                        // SAFETY: the matrices are as large as said.
                        unsafe { geam(op_a, op_b, m, n, alpha, a, lda, beta, b.ptr(), b.ld, c, ldc) }
                    };
                    call(a.ptr(), a.ld, c.mut_ptr(), c.ld);
                    exact.assert_matrix(&what, &c, |_, _| true);
                    c.assert_rest(&before, &what, |_, _| true);
                    if op_a == Op::N {
                        let into = a.mut_ptr();
                        call(into, a.ld, into, a.ld);
                        exact.assert_matrix(&what, &a, |_, _| true);
                    }
                }
            }
        }
    }
}

fn diagonals<S: Scalar>() {
    for (m, n) in [(0, 3), (3, 0), (1, 1), (2, 5), (17, 64), (129, 33)] {
        for side in Side::ALL {
            for incx in [1, 3, -2] {
                let what = format!("{side:?} {m}x{n} {incx}");
                let mut source = Source::new((m * 100 + n) as u64);
                let mut a: Stored<S> = source.matrix(m, n);
                let length = if side == Side::Left { m } else { n };
                let x: Stored<S> = source.matrix(3 * length.max(1), 1);
                let at = |i: i64| if incx > 0 { i * incx } else { (i + 1 - length) * incx };
                let dense_x =
                    Dense::new(
                        length,
                        length,
                        |row, column| if row == column { x.get(at(row), 0) } else { S::zero() },
                    );
                let dense_a = a.dense();
                let exact = match side {
                    Side::Left => Exact::new(&[(S::one(), &dense_x, &dense_a)], None),
                    Side::Right => Exact::new(&[(S::one(), &dense_a, &dense_x)], None),
                };
                let before = a.clone();
                let into = a.mut_ptr();
                // SAFETY: the matrix and the vector are as large as said.
                unsafe { dgmm(side, m, n, into, a.ld, x.ptr(), incx, into, a.ld) };
                exact.assert_matrix(&what, &a, |_, _| true);
                a.assert_rest(&before, &what, |_, _| true);
            }
        }
    }
}

fn packed<S: Scalar>() {
    for n in SIZES {
        for uplo in Uplo::ALL {
            let what = format!("{uplo:?} {n}");
            let mut source = Source::new(n as u64);
            let a: Stored<S> = source.matrix(n, n);
            let mut list = vec![S::zero(); (n * (n + 1) / 2 + 1) as usize];
            // SAFETY: the matrix and the list are as large as said.
            unsafe { trttp(uplo, n, a.ptr(), a.ld, list.as_mut_ptr()) };
            let columns =
                (0..n).flat_map(|j| (0..n).filter(move |&i| inside(uplo, i, j)).map(move |i| (i, j)));
            let expected: Vec<S> = columns.map(|(i, j)| a.get(i, j)).chain([S::zero()]).collect();
            assert_eq!(list, expected, "{what}");
            let mut back: Stored<S> = source.matrix(n, n);
            let before = back.clone();
            // SAFETY: as above.
            unsafe { tpttr(uplo, n, list.as_ptr(), back.mut_ptr(), back.ld) };
            back.assert_rest(&before, &what, |row, column| inside(uplo, row, column));
            let triangle = |matrix: &Stored<S>, i, j| !inside(uplo, i, j) || matrix.get(i, j) == a.get(i, j);
            assert!((0..n).all(|j| (0..n).all(|i| triangle(&back, i, j))), "{what}");
        }
    }
}

all_types!(
    symmetric,
    symmetric_updates,
    hermitian_updates,
    triangular_product,
    triangular_system,
    sums,
    diagonals,
    packed
);
