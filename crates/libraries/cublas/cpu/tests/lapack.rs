//! Factorizations, by what they are to multiply out to.

mod exact;

use cublas_cpu::lapack::{gels, geqrf, getrf, getri, getrs, matinv};
use cublas_cpu::{Diag, Op, Real, Scalar, Uplo};
use exact::{Dense, Exact, SIZES, Source, Stored};

/// A matrix of that size, near enough to a multiple of the identity that it can do without pivots.
fn dominant<S: Scalar>(source: &mut Source, n: i64) -> Stored<S> {
    let small = S::from_real(S::Real::rounded(1.0 / 256.0));
    source.matrix(n, n).map(|row, column, value: S| if row == column { S::one() } else { value * small })
}

/// The rows that a factorization swapped, swapped.
fn permuted<S: Scalar>(a: &Stored<S>, pivots: &[i32]) -> Stored<S> {
    let mut rows: Vec<i64> = (0..a.rows).collect();
    for (row, pivot) in pivots.iter().enumerate() {
        rows.swap(row, (pivot - 1) as usize);
    }
    a.clone().map(|row, column, _| a.get(rows[row as usize], column))
}

fn zeros<S: Scalar>(like: &Stored<S>) -> Stored<S> {
    like.clone().map(|_, _, _| S::zero())
}

fn identity<S: Scalar>(n: i64) -> Dense {
    Dense::new(n, n, |row, column| if row == column { S::one() } else { S::zero() })
}

/// `|P·A - L·U| ≤ γ(n)·|L|·|U|` (Higham, 9.3).
fn factors_multiply_out<S: Scalar>() {
    for n in SIZES {
        for with_pivots in [true, false] {
            let what = format!("{n}, pivots {with_pivots}");
            let mut source = Source::new(n as u64);
            let mut a: Stored<S> = if with_pivots { source.matrix(n, n) } else { dominant(&mut source, n) };
            let before = a.clone();
            let mut pivots: Vec<i32> = (1..=n as i32).collect();
            let at = if with_pivots { pivots.as_mut_ptr() } else { std::ptr::null_mut() };
            // SAFETY: the matrix and the pivots are as large as said.
            let info = unsafe { getrf(n, a.mut_ptr(), a.ld, at) };
            assert_eq!(info, 0, "{what}");
            a.assert_rest(&before, &what, |_, _| true);
            let (l, u) = (a.triangular(Uplo::Lower, Diag::Unit), a.triangular(Uplo::Upper, Diag::NonUnit));
            let original = permuted(&before, &pivots);
            let residual = Exact::new(&[(S::one(), &l, &u)], Some((-S::one(), &original.dense())));
            residual.assert_matrix(&what, &zeros(&original), |_, _| true);
            for column in 0..n {
                for row in column + 1..n {
                    // Of a complex pivot the largest |re| + |im| was chosen.
                    let limit = S::Real::rounded(if S::IS_COMPLEX { 1.4143 } else { 1.0 });
                    assert!(
                        !with_pivots || a.get(row, column).modulus() <= limit,
                        "{what}: ({row}, {column})"
                    );
                }
            }
        }
    }
}

#[test]
fn pivots_and_factors_of_a_small_matrix() {
    // Columns 1 2 4, 3 8 14, 2 6 13: the largest of the first column is in the third row, and so on.
    let mut a = [1.0, 2.0, 4.0, 3.0, 8.0, 14.0, 2.0, 6.0, 13.0];
    let mut pivots = [0; 3];
    // SAFETY: 3 by 3.
    let info = unsafe { getrf(3, a.as_mut_ptr(), 3, pivots.as_mut_ptr()) };
    assert_eq!((info, pivots), (0, [3, 2, 3]));
    assert_eq!(a, [4.0, 0.5, 0.25, 14.0, 1.0, -0.5, 13.0, -0.5, -1.5]);
}

#[test]
fn the_first_zero_on_the_diagonal_is_named() {
    // The second column is twice the first.
    let mut a = [1.0, 2.0, 4.0, 2.0, 4.0, 8.0, 1.0, 0.0, 5.0];
    let mut pivots = [0; 3];
    let (mut at_once, mut by_factors) = ([7.0_f64; 9], [7.0_f64; 9]);
    // SAFETY: 3 by 3.
    unsafe {
        assert_eq!(matinv(3, a.as_ptr(), 3, at_once.as_mut_ptr(), 3), 2);
        assert_eq!(getrf(3, a.as_mut_ptr(), 3, pivots.as_mut_ptr()), 2);
        assert_eq!(getri(3, a.as_ptr(), 3, pivots.as_ptr(), by_factors.as_mut_ptr(), 3), 2);
    }
    for inverse in [at_once, by_factors] {
        let is_lost = |column: &[f64]| column.iter().any(|it| !it.is_finite());
        assert!(inverse.chunks(3).all(is_lost), "{inverse:?}");
    }
    let mut zero = [0.0_f32; 4];
    // SAFETY: 2 by 2.
    unsafe { assert_eq!(getrf(2, zero.as_mut_ptr(), 2, std::ptr::null_mut()), 1) };
}

/// A system's residual is at most 3·γ(n)·|L|·|U|·|X| (Higham, 9.4); of these matrices |L|·|U| is little more than |A|.
fn systems<S: Scalar>() {
    for n in SIZES {
        for op in Op::ALL {
            for with_pivots in [true, false] {
                let what = format!("{op:?} {n}, pivots {with_pivots}");
                let mut source = Source::new(n as u64);
                let a: Stored<S> = dominant(&mut source, n);
                let mut b: Stored<S> = source.matrix(n, 3);
                let (before, mut lu) = (b.clone(), a.clone());
                // Rows in another order, so that there is something to swap.
                if with_pivots {
                    lu = lu.clone().map(|row, column, _| a.get(n - 1 - row, column));
                }
                let full = lu.dense().op(op);
                let mut pivots = vec![0; n as usize + 1];
                let at = if with_pivots { pivots.as_mut_ptr() } else { std::ptr::null_mut() };
                // SAFETY: everything is as large as said.
                unsafe {
                    assert_eq!(getrf(n, lu.mut_ptr(), lu.ld, at), 0, "{what}");
                    getrs(op, n, 3, lu.ptr(), lu.ld, at, b.mut_ptr(), b.ld);
                }
                b.assert_rest(&before, &what, |_, _| true);
                let x = b.dense();
                let mut residual = Exact::new(&[(S::one(), &full, &x)], Some((-S::one(), &before.dense())));
                residual.slack = 4.0;
                residual.assert_matrix(&what, &zeros(&b), |_, _| true);
            }
        }
    }
}

fn inverses<S: Scalar>() {
    for n in SIZES {
        let what = format!("{n}");
        let mut source = Source::new(n as u64);
        let straight: Stored<S> = dominant(&mut source, n);
        let a = straight.clone().map(|row, column, _| straight.get(n - 1 - row, column));
        let (mut lu, mut pivots) = (a.clone(), vec![0; n as usize + 1]);
        let first: Stored<S> = source.matrix(n, n);
        let (mut by_factors, mut at_once) = (first.clone(), first.clone());
        // SAFETY: everything is as large as said.
        unsafe {
            assert_eq!(getrf(n, lu.mut_ptr(), lu.ld, pivots.as_mut_ptr()), 0);
            assert_eq!(getri(n, lu.ptr(), lu.ld, pivots.as_ptr(), by_factors.mut_ptr(), by_factors.ld), 0);
            assert_eq!(matinv(n, a.ptr(), a.ld, at_once.mut_ptr(), at_once.ld), 0);
        }
        for inverse in [by_factors, at_once] {
            inverse.assert_rest(&first, &what, |_, _| true);
            let unit = identity::<S>(n);
            let mut residual =
                Exact::new(&[(S::one(), &a.dense(), &inverse.dense())], Some((-S::one(), &unit)));
            residual.slack = 4.0;
            residual.assert_matrix(&what, &zeros(&a), |_, _| true);
        }
    }
}

/// Q from its reflections, in f64: `H(1)·H(2)·…`, each `I - tau·v·vᴴ`.
fn multiply_out<S: Scalar>(qr: &Stored<S>, tau: &[S]) -> Vec<Vec<(f64, f64)>> {
    let (m, n) = (qr.rows as usize, qr.columns as usize);
    let pair = |value: S| {
        let part = |part: S::Real| num_traits::ToPrimitive::to_f64(&part).unwrap();
        (part(value.real()), part(value.imag()))
    };
    let times = |a: (f64, f64), b: (f64, f64)| (a.0 * b.0 - a.1 * b.1, a.0 * b.1 + a.1 * b.0);
    // R, and then the reflections on it from the last.
    let mut columns: Vec<Vec<(f64, f64)>> = (0..n)
        .map(|j| (0..m).map(|i| if i <= j { pair(qr.get(i as i64, j as i64)) } else { (0.0, 0.0) }).collect())
        .collect();
    for (k, tau) in tau.iter().enumerate().rev() {
        let v: Vec<_> =
            (k..m).map(|i| if i == k { (1.0, 0.0) } else { pair(qr.get(i as i64, k as i64)) }).collect();
        for column in &mut columns {
            let along = v.iter().zip(&column[k..]).map(|(v, c)| times((v.0, -v.1), *c));
            let along = along.fold((0.0, 0.0), |sum, term| (sum.0 + term.0, sum.1 + term.1));
            let by = times(pair(*tau), along);
            for (c, v) in column[k..].iter_mut().zip(&v) {
                let part = times(by, *v);
                *c = (c.0 - part.0, c.1 - part.1);
            }
        }
    }
    columns
}

/// Columns of `A - Q·R` are at most some m·n·u of A's (Higham, 19.4).
fn reflections<S: Scalar>() {
    for (m, n) in [(1, 1), (5, 5), (17, 2), (2, 17), (64, 17), (129, 64), (0, 3), (3, 0)] {
        let mut source = Source::new((m * 100 + n) as u64);
        let mut a: Stored<S> = source.matrix(m, n);
        let before = a.clone();
        let mut tau = vec![S::zero(); m.min(n) as usize];
        // SAFETY: everything is as large as said.
        unsafe { geqrf(m, n, a.mut_ptr(), a.ld, tau.as_mut_ptr()) };
        a.assert_rest(&before, "A", |_, _| true);
        let unit: f64 = num_traits::ToPrimitive::to_f64(&S::Real::unit_roundoff()).unwrap();
        for (j, column) in multiply_out(&a, &tau).iter().enumerate() {
            let (mut off, mut size) = (0.0, 0.0);
            for (i, (re, im)) in column.iter().enumerate() {
                let exact = before.get(i as i64, j as i64);
                let part = |part: S::Real| num_traits::ToPrimitive::to_f64(&part).unwrap();
                off += (re - part(exact.real())).powi(2) + (im - part(exact.imag())).powi(2);
                size += part(exact.modulus()).powi(2);
            }
            let bound = 8.0 * (m * n) as f64 * unit * size.sqrt();
            assert!(off.sqrt() <= bound, "{m}x{n} column {j}: {} > {bound}", off.sqrt());
        }
        // LAPACK's: the diagonal is real, tau between 1 and 2 in its real part, or nothing is reflected.
        for (k, tau) in tau.iter().enumerate() {
            assert!(num_traits::Zero::is_zero(&a.get(k as i64, k as i64).imag()), "{m}x{n}: diagonal {k}");
            let real = num_traits::ToPrimitive::to_f64(&tau.real()).unwrap();
            assert!(
                num_traits::Zero::is_zero(tau) || (0.999..=2.001).contains(&real),
                "{m}x{n}: tau {tau:?}"
            );
        }
    }
}

#[test]
fn a_reflection_in_numbers() {
    // 3, 4 has the length 5: beta -5, tau (5 + 3) / 5, v 4 / (3 + 5).
    let mut a = [3.0_f64, 4.0];
    let mut tau = 0.0;
    // SAFETY: 2 by 1.
    unsafe { geqrf(2, 1, a.as_mut_ptr(), 2, &mut tau) };
    assert_eq!((a, tau), ([-5.0, 0.5], 1.6));
}

/// The residual of the nearest X is orthogonal to A's columns.
fn least_squares<S: Scalar>() {
    for (m, n) in [(1, 1), (5, 5), (17, 2), (64, 17), (129, 64)] {
        let what = format!("{m}x{n}");
        let mut source = Source::new((m * 100 + n) as u64);
        let small = S::from_real(S::Real::rounded(1.0 / 16.0));
        let a: Stored<S> = source
            .matrix(m, n)
            .map(|row, column, value: S| if row == column { S::one() } else { value * small });
        let (mut qr, mut c) = (a.clone(), source.matrix::<S>(m, 2));
        let before = c.clone();
        // SAFETY: everything is as large as said.
        unsafe { assert_eq!(gels(m, n, 2, qr.mut_ptr(), qr.ld, c.mut_ptr(), c.ld), 0) };
        c.assert_rest(&before, &what, |_, _| true);
        // The residual, rounded once, and its products with A.
        let residual = before
            .clone()
            .map(|row, column, value| (0..n).fold(value, |sum, k| sum - a.get(row, k) * c.get(k, column)));
        // C comes in and goes out again for the bound's sake: the residual may be nothing but roundings.
        let (across, dense, into) = (a.dense().op(Op::C), residual.dense(), before.dense());
        let terms = [(S::one(), &across, &dense), (S::one(), &across, &into), (-S::one(), &across, &into)];
        let mut products = Exact::new(&terms, None);
        products.slack = n as f64;
        let zero = Stored { rows: n, columns: 2, ld: n, elements: vec![S::zero(); (2 * n) as usize] };
        products.assert_matrix(&what, &zero, |_, _| true);
    }
    let mut singular = [S::one(), S::zero(), S::zero(), S::zero()];
    let mut c = [S::one(); 2];
    // SAFETY: 2 by 2 and 2 by 1.
    unsafe { assert_eq!(gels(2, 2, 1, singular.as_mut_ptr(), 2, c.as_mut_ptr(), 2), 2) };
}

all_types!(factors_multiply_out, systems, inverses, reflections, least_squares);
