//! Symmetric matrices of three diagonals: residuals, orthogonality and order of what `stedc` finds, beside the bound of LAPACK's tests, of
//! matrices whose halves have no, some and all eigenvalues in common.

use cusolver_cpu::eigen::{self, Tridiagonal};
use cusolver_cpu::{Field, Matrix, Real};
use num_traits::NumCast;

const BOUND: f64 = 30.0;

fn wide<R: Real>(value: R) -> f64 {
    value.to_f64().unwrap()
}

/// The diagonal's and the other's elements, by the matrix's name.
fn element(kind: &str, n: usize, i: usize, draw: &mut impl FnMut() -> f64) -> (f64, f64) {
    let size = n as f64;
    match kind {
        "random" => (draw(), draw()),
        // All halves are the same matrix.
        "second differences" => (0.5, -0.25),
        // Pairs that are as good as equal.
        "Wilkinson's" => ((size / 2.0 - i as f64).abs() / size, 1.0 / size),
        "glued" => ((10.0 - (i % 21) as f64).abs() / 10.0, if i % 21 == 20 { 1e-9 } else { 0.1 }),
        "graded" => (0.5_f64.powi(i as i32), 0.5_f64.powi(i as i32) * draw()),
        "near the identity" => (1.0, 1e-9 * draw()),
        "zeros" => (0.0, 0.0),
        "in parts" => (draw(), if i.is_multiple_of(7) { 0.0 } else { draw() }),
        "without a diagonal" => (0.0, 1.0),
        _ => unreachable!("{kind}"),
    }
}

const KINDS: [&str; 9] = [
    "random",
    "second differences",
    "Wilkinson's",
    "glued",
    "graded",
    "near the identity",
    "zeros",
    "in parts",
    "without a diagonal",
];

fn solve<R: Field + Real>(n: usize, kind: &str, scale: f64) {
    let what = &format!("{kind} {n} times {scale}");
    let mut state = 0x2545_f491_4f6c_dd1d_u64 ^ n as u64;
    let mut draw = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
    };
    let (mut d, mut e) = (vec![], vec![]);
    for i in 0..n {
        let (own, beside) = element(kind, n, i, &mut draw);
        d.push(<R as NumCast>::from(own * scale).unwrap());
        e.push(<R as NumCast>::from(beside * scale).unwrap());
    }
    let before = d.clone();
    let mut v = vec![R::zero(); n * n];
    let own = Tridiagonal::Own(Matrix::new(v.as_mut_ptr(), n as i64));
    // SAFETY: arrays of these sizes.
    assert_eq!(unsafe { eigen::stedc::<R, R>(n as i64, d.as_mut_ptr(), e.as_ptr(), own) }, 0, "{what}");
    assert!(d.is_sorted_by(|one, next| one <= next), "{what}: order");
    let beside = |i: usize| if i < n { wide(e[i - 1]) } else { 0.0 };
    let norm = (0..n)
        .map(|i| wide(before[i]).abs() + if i > 0 { beside(i).abs() } else { 0.0 } + beside(i + 1).abs());
    let unit = norm.fold(f64::MIN_POSITIVE, f64::max) * n as f64 * wide(R::epsilon());
    for j in 0..n {
        let column = &v[j * n..(j + 1) * n];
        let at = |i: usize| wide(column[i]);
        let residual: f64 = (0..n)
            .map(|i| {
                let above = if i > 0 { beside(i) * at(i - 1) } else { 0.0 };
                let below = if i + 1 < n { beside(i + 1) * at(i + 1) } else { 0.0 };
                ((wide(before[i]) - wide(d[j])) * at(i) + above + below).abs()
            })
            .sum();
        assert!(residual < BOUND * unit, "{what}: {} of value {j}", residual / unit);
        for other in 0..=j {
            let along: f64 =
                v[other * n..(other + 1) * n].iter().enumerate().map(|(i, x)| wide(*x) * at(i)).sum();
            let off = (along - if other == j { 1.0 } else { 0.0 }).abs() / (n as f64 * wide(R::epsilon()));
            assert!(off < BOUND, "{what}: {off} between {other} and {j}");
        }
    }
    // The values alone are the same.
    let mut alone = before;
    // SAFETY: as above.
    let info = unsafe { eigen::stedc::<R, R>(n as i64, alone.as_mut_ptr(), e.as_ptr(), Tridiagonal::None) };
    assert_eq!(info, 0, "{what}");
    for (alone, with) in alone.iter().zip(&d) {
        assert!((wide(*alone) - wide(*with)).abs() < BOUND * unit, "{what}: a value without vectors");
    }
}

fn all<R: Field + Real>() {
    for n in [1, 2, 3, 5, 31, 32, 33, 63, 64, 65, 100, 197, 300] {
        for kind in KINDS {
            solve::<R>(n, kind, 1.0);
        }
    }
    for kind in KINDS {
        // Far from 1, where squares leave the type's range.
        let far = wide(R::max_value()).sqrt();
        solve::<R>(70, kind, far * 16.0);
        solve::<R>(70, kind, 1.0 / far / 16.0);
    }
}

#[test]
fn eigenvectors_of_three_diagonals_are_orthogonal_and_belong_to_their_values() {
    all::<f64>();
}

#[test]
fn so_are_those_of_single_precision() {
    all::<f32>();
}

#[test]
fn what_is_no_number_has_no_eigenvalues_and_nothing_is_written() {
    let (mut d, e) = (vec![1.0, f64::NAN, 2.0], [0.5, 0.5]);
    // SAFETY: arrays of these sizes.
    let info = unsafe { eigen::stedc::<f64, f64>(3, d.as_mut_ptr(), e.as_ptr(), Tridiagonal::None) };
    assert!(info > 0 && d[0] == 1.0 && d[2] == 2.0);
}
