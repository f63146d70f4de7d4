//! Level 1 against sums in numbers of twice the length.
#![expect(clippy::undocumented_unsafe_blocks, reason = "what a test gives is as long as it says")]

mod reference;

use cublas_cpu::level1::{asum, axpy, copy, dotc, dotu, iamax, iamin, nrm2, scal, scal_real, swap};
use cublas_cpu::rotation::{rot, rotg, rotm, rotmg};
use cublas_cpu::{Complex, Real, Scalar, Stored, bf16, f16};
use num_traits::Float;
use reference::{Exact, INCREMENTS, Laid, Numbers, SIZES, Sample, assert_close, increments};

in_all_types!(
    axpy_adds_a_multiple,
    dots_are_sums_of_products,
    copy_and_swap_move_bits,
    scal_multiplies,
    sums_and_norms,
    indices_of_extremes,
    rot_turns_pairs,
    rotg_zeroes_the_second_element,
    long_vectors_are_shared_out,
    norms_neither_overflow_nor_underflow,
);

/// Calls `check` with two vectors of each size and their increments.
fn pairs<S: Sample>(mut check: impl FnMut(&mut Numbers, &[S], &[S], i64, i64)) {
    for n in SIZES {
        for (incx, incy) in increments() {
            let mut numbers = Numbers::new((n * 31) as u64);
            let (x, y) = (numbers.vector(n), numbers.vector(n));
            check(&mut numbers, &x, &y, incx, incy);
        }
    }
}

fn axpy_adds_a_multiple<S: Sample>() {
    pairs::<S>(|numbers, x, y, incx, incy| {
        let alpha: S = numbers.scalar();
        let (mut laid_x, mut laid_y) = (Laid::new(x, incx), Laid::new(y, incy));
        unsafe { axpy(x.len() as i64, alpha, laid_x.pointer(), incx, laid_y.pointer(), incy) };
        for (i, found) in laid_y.values().into_iter().enumerate() {
            let product = alpha.exact() * x[i].exact();
            let magnitude = product.abs() + y[i].exact().abs();
            assert_close(found, product + y[i].exact(), 2, magnitude, || format!("axpy {incx} {incy} [{i}]"));
        }
    });
    // A zero factor means that x is not read.
    let mut y = [S::one(); 3];
    unsafe { axpy(3, S::zero(), [reference::guard::<S>(); 3].as_ptr(), 1, y.as_mut_ptr(), 1) };
    assert_eq!(y, [S::one(); 3]);
    // An increment of zero is the same element again and again.
    let mut sum = S::zero();
    unsafe { axpy(5, S::one(), [S::one()].as_ptr(), 0, &mut sum, 0) };
    assert_eq!(sum, S::new(5.0, 0.0));
}

fn dots_are_sums_of_products<S: Sample>() {
    pairs::<S>(|_, x, y, incx, incy| {
        let n = x.len();
        let (mut laid_x, mut laid_y) = (Laid::new(x, incx), Laid::new(y, incy));
        let (px, py) = (laid_x.pointer(), laid_y.pointer());
        let found: [S; 2] =
            unsafe { [dotu(n as i64, px, incx, py, incy), dotc(n as i64, px, incx, py, incy)] };
        let products = || x.iter().zip(y).map(|(x, y)| (x.exact(), y.exact()));
        let exact = [
            products().fold(Exact::ZERO, |sum, (x, y)| sum + x * y),
            products().fold(Exact::ZERO, |sum, (x, y)| sum + x.conj() * y),
        ];
        let magnitude = products().map(|(x, y)| x.abs() * y.abs()).sum();
        for (found, exact) in found.into_iter().zip(exact) {
            assert_close(found, exact, n, magnitude, || format!("dot of {n}, {incx} {incy}"));
        }
    });
}

fn copy_and_swap_move_bits<S: Sample>() {
    pairs::<S>(|_, x, y, incx, incy| {
        let n = x.len() as i64;
        let (mut laid_x, mut laid_y) = (Laid::new(x, incx), Laid::new(y, incy));
        unsafe { swap(n, laid_x.pointer(), incx, laid_y.pointer(), incy) };
        assert_eq!((laid_x.values(), laid_y.values()), (y.to_vec(), x.to_vec()));
        unsafe { copy(n, laid_x.pointer(), incx, laid_y.pointer(), incy) };
        assert_eq!((laid_x.values(), laid_y.values()), (y.to_vec(), y.to_vec()));
    });
}

fn scal_multiplies<S: Sample>() {
    for n in SIZES {
        for inc in INCREMENTS {
            let mut numbers = Numbers::new(7);
            let (x, alpha): (Vec<S>, S) = (numbers.vector(n), numbers.scalar());
            let (mut by_alpha, mut by_real) = (Laid::new(&x, inc), Laid::new(&x, inc));
            unsafe { scal(n as i64, alpha, by_alpha.pointer(), inc) };
            unsafe { scal_real::<S, S>(n as i64, alpha.real(), by_real.pointer(), inc) };
            let real = alpha.exact().real_part();
            for (laid, alpha) in [(by_alpha, alpha.exact()), (by_real, real)] {
                for (found, x) in laid.values().into_iter().zip(&x) {
                    // A negative increment changes nothing, as reference BLAS has it.
                    let exact = if inc < 0 { x.exact() } else { alpha * x.exact() };
                    assert_close(found, exact, 1, exact.abs(), || format!("scal of {n}, {inc}"));
                }
            }
        }
    }
    let mut x = S::new(f64::INFINITY, 0.0);
    unsafe { scal_real::<S, S>(1, S::Real::rounded(2.0), &mut x, 1) };
    assert_eq!(x, S::new(f64::INFINITY, 0.0));
}

fn sums_and_norms<S: Sample>() {
    for n in SIZES {
        for inc in INCREMENTS {
            let x: Vec<S> = Numbers::new(n as u64).vector(n);
            let mut laid = Laid::new(&x, inc);
            let (sum, norm) = unsafe {
                (asum::<S, S>(n as i64, laid.pointer(), inc), nrm2::<S, S>(n as i64, laid.pointer(), inc))
            };
            if inc < 1 {
                assert_eq!((sum, norm), (S::Real::rounded(0.0), S::Real::rounded(0.0)));
                continue;
            }
            let exact_sum: f64 = x.iter().map(|x| x.exact().abs1()).sum();
            let squares = x.iter().map(|x| x.exact().conj() * x.exact());
            let exact_norm = squares.fold(Exact::ZERO, |sum, square| sum + square).abs().sqrt();
            assert_close(S::from_real(sum), Exact::real(exact_sum), 2 * n, exact_sum, || format!("asum {n}"));
            assert_close(S::from_real(norm), Exact::real(exact_norm), n + 2, exact_norm, || {
                format!("nrm2 {n}")
            });
        }
    }
}

fn norms_neither_overflow_nor_underflow<S: Sample>() {
    let norm = |x: &[S]| unsafe { nrm2::<S, S>(x.len() as i64, x.as_ptr(), 1) };
    let (tiny, huge) =
        if S::U < 1e-10 { (f64::MIN_POSITIVE, 1e308) } else { (f64::from(f32::MIN_POSITIVE), 1e38) };
    for size in [huge / 4.0, huge / 1e20, tiny * 1e20, tiny, tiny / 1024.0] {
        // 3, 4, 12: the norm is 13.
        let x = [3.0, 4.0, 12.0].map(|part| S::new(part * (size / 16.0), 0.0));
        let exact = Exact::real(13.0 * (size / 16.0));
        // Below the smallest normal number the unit in the last place is what it is.
        let magnitude = exact.abs() + tiny;
        assert_close(S::from_real(norm(&x)), exact, 5, magnitude, || format!("nrm2 of {size:e}"));
    }
    // Small ones beside a large one do not matter, and do not harm.
    let large = S::new(huge, 0.0);
    assert_eq!(norm(&[large, S::new(tiny, 0.0), S::zero()]), large.real());
    assert_eq!(norm(&[S::zero(); 40]), S::Real::rounded(0.0));
    assert_eq!(norm(&[S::one(), S::new(f64::NEG_INFINITY, 0.0)]), S::Real::rounded(f64::INFINITY));
    assert!(norm(&[S::new(f64::INFINITY, 0.0), S::new(f64::NAN, 0.0), S::one()]).has_nan());
}

fn indices_of_extremes<S: Sample>() {
    let both = |x: &[S]| unsafe {
        let n = x.len() as i64;
        (iamax::<S, S>(n, x.as_ptr(), 1), iamin::<S, S>(n, x.as_ptr(), 1))
    };
    for n in [1, 2, 7, 33, 100] {
        for inc in [1, 3] {
            let x: Vec<S> = Numbers::new(n as u64).vector(n);
            let sizes: Vec<f64> = x.iter().map(|x| x.exact().abs1()).collect();
            let index = |best: f64| sizes.iter().position(|size| *size == best).unwrap() as i64 + 1;
            let exact = (
                index(sizes.iter().copied().fold(0.0, f64::max)),
                index(sizes.iter().copied().fold(9.0, f64::min)),
            );
            let mut laid = Laid::new(&x, inc);
            let p = laid.pointer();
            let found = unsafe { (iamax::<S, S>(n as i64, p, inc), iamin::<S, S>(n as i64, p, inc)) };
            assert_eq!(found, exact);
            assert_eq!(unsafe { (iamax::<S, S>(n as i64, p, 0), iamin::<S, S>(n as i64, p, -1)) }, (0, 0));
        }
    }
    assert_eq!(both(&[]), (0, 0));
    let reals = |values: &[f64]| values.iter().map(|value| S::new(*value, 0.0)).collect::<Vec<S>>();
    // The first of equals, and of zeros.
    assert_eq!(both(&reals(&[1.0, -3.0, 3.0, -1.0, 1.0])), (2, 1));
    assert_eq!(both(&[S::zero(); 40]), (1, 1));
    // A NaN is not larger than another; nothing is larger than one that comes first.
    assert_eq!(both(&reals(&[1.0, f64::NAN, 3.0, 0.5])), (3, 4));
    assert_eq!(both(&reals(&[f64::NAN, 1.0, 3.0])), (1, 1));
    let mut long = vec![S::one(); 50];
    long[40] = S::new(f64::NEG_INFINITY, 0.0);
    long[45] = S::zero();
    assert_eq!(both(&long), (41, 46));
    if S::IS_COMPLEX {
        // |re| + |im| decides, not the modulus: 4 + 4 > 7.
        assert_eq!(both(&[S::new(7.0, 0.0), S::new(-4.0, 4.0)]), (2, 1));
    }
}

fn rot_turns_pairs<S: Sample>() {
    pairs::<S>(|numbers, x, y, incx, incy| {
        let (c, s): (S, S) = (S::from_real(numbers.scalar::<S>().real()), numbers.scalar());
        let (mut laid_x, mut laid_y) = (Laid::new(x, incx), Laid::new(y, incy));
        unsafe { rot(x.len() as i64, laid_x.pointer(), incx, laid_y.pointer(), incy, c.real(), s) };
        let found = laid_x.values().into_iter().zip(laid_y.values());
        for (i, (found_x, found_y)) in found.enumerate() {
            let (c, s, x, y) = (c.exact(), s.exact(), x[i].exact(), y[i].exact());
            let magnitude = |a: Exact, b: Exact| c.abs() * a.abs() + s.abs() * b.abs();
            assert_close(found_x, c * x + s * y, 2, magnitude(x, y), || format!("rot x {incx} {incy}"));
            assert_close(found_y, c * y - s.conj() * x, 2, magnitude(y, x), || {
                format!("rot y {incx} {incy}")
            });
        }
    });
}

fn rotg_zeroes_the_second_element<S: Sample>() {
    let mut numbers = Numbers::new(1);
    let (small, large) = if S::U < 1e-10 { (1e-300, 1e300) } else { (1e-36, 1e36) };
    for size in [1.0, small, large] {
        for skew in [1.0f64, 1e-3, 1e3] {
            let (a, b): (S, S) = (numbers.scalar(), numbers.scalar());
            let a = a.times_real(S::Real::rounded(size / 8.0));
            let b = b.times_real(S::Real::rounded(size / 8.0 * skew.min(7.0)));
            let found = rotg(a, b);
            let (c, s, r) = (S::from_real(found.c).exact(), found.s.exact(), found.r.exact());
            let what = || format!("rotg {a:?} {b:?}");
            // c a + s b = r and c b − s̄ a = 0, each to a few roundings; c² + |s|² = 1.
            assert_close(found.r, c * a.exact() + s * b.exact(), 8, r.abs(), what);
            assert_close(S::zero(), c * b.exact() - s.conj() * a.exact(), 8, r.abs(), what);
            assert_close(S::one(), c * c + s * s.conj(), 8, 1.0, what);
            if S::IS_COMPLEX {
                assert_eq!(found.z, b);
            } else if a.real().abs() > b.real().abs() {
                assert_eq!(
                    (found.z, found.r.real().is_sign_negative()),
                    (found.s, a.real() < S::zero().real())
                );
            } else {
                assert_close(S::one(), found.z.exact() * c, 2, 1.0, what);
            }
        }
    }
    let (zero, one, two) = (S::zero(), S::one(), S::new(2.0, 1.0));
    let of_nothing = rotg(two, zero);
    assert_eq!((of_nothing.r, of_nothing.c, of_nothing.s), (two, one.real(), zero));
    let of_second = rotg(zero, two);
    assert_eq!((of_second.r, of_second.c, of_second.s), (two, zero.real(), one));
}

/// H from `param`, by the manual's table.
fn h_of<R: Real + Sample>(param: [R; 5]) -> [Exact; 4] {
    let [flag, h11, h21, h12, h22] = param.map(|value| value.exact());
    let (one, minus) = (Exact::real(1.0), Exact::real(-1.0));
    match param[0].to_f64().unwrap() {
        -2.0 => [one, Exact::ZERO, Exact::ZERO, one],
        -1.0 => [h11, h21, h12, h22],
        0.0 => [one, h21, h12, one],
        1.0 => [h11, minus, one, h22],
        _ => panic!("{flag:?}"),
    }
}

fn modified_rotations<R: Real + Sample>() {
    let mut numbers = Numbers::new(5);
    for flag in [-2.0, -1.0, 0.0, 1.0] {
        let mut param: [R; 5] = std::array::from_fn(|_| numbers.scalar());
        param[0] = R::rounded(flag);
        let [h11, h21, h12, h22] = h_of(param);
        pairs::<R>(|_, x, y, incx, incy| {
            let (mut laid_x, mut laid_y) = (Laid::new(x, incx), Laid::new(y, incy));
            unsafe { rotm(x.len() as i64, laid_x.pointer(), incx, laid_y.pointer(), incy, param) };
            for (i, (found_x, found_y)) in laid_x.values().into_iter().zip(laid_y.values()).enumerate() {
                let (x, y) = (x[i].exact(), y[i].exact());
                let magnitude = |a: Exact, b: Exact| (a * x).abs() + (b * y).abs();
                assert_close(found_x, h11 * x + h12 * y, 2, magnitude(h11, h12), || "rotm x".into());
                assert_close(found_y, h21 * x + h22 * y, 2, magnitude(h21, h22), || "rotm y".into());
            }
        });
    }
}

#[test]
fn rotm_multiplies_pairs_by_h() {
    modified_rotations::<f32>();
    modified_rotations::<f64>();
}

/// H (x1, y1) = (x1', 0) and Hᵀ D' H = D, with D' within γ² of one.
fn made<R: Real + Sample>(d1: f64, d2: f64, x1: f64, y1: f64, flag: f64) {
    let [d1, d2, x1, y1] = [d1, d2, x1, y1].map(R::rounded);
    let found = rotmg(d1, d2, x1, y1);
    let what = || format!("rotmg {d1:?} {d2:?} {x1:?} {y1:?}: {found:?}");
    assert_eq!(found.param[0], Some(R::rounded(flag)), "{}", what());
    let [h11, h21, h12, h22] = h_of(found.param.map(|value| value.unwrap_or_else(reference::guard)));
    let (x, y) = (x1.exact(), y1.exact());
    assert_close(found.x1, h11 * x + h12 * y, 8, (h11 * x).abs() + (h12 * y).abs(), what);
    assert_close(R::zero(), h21 * x + h22 * y, 8, (h21 * x).abs() + (h22 * y).abs(), what);
    let (e1, e2) = (found.d1.exact(), found.d2.exact());
    for (d, a, b) in [(d1, h11, h21), (d2, h12, h22)] {
        let magnitude = (e1 * a * a).abs() + (e2 * b * b).abs();
        assert_close(d, e1 * a * a + e2 * b * b, 12, magnitude, what);
    }
    for d in [found.d1, found.d2] {
        let size = d.abs();
        assert!(size.is_zero() || size > R::rounded(5.9e-8) && size < R::rounded(16_777_216.0), "{}", what());
    }
}

#[test]
fn rotmg_finds_the_rotation_that_zeroes_the_second_element() {
    fn all<R: Real + Sample>() {
        made::<R>(2.0, 1.0, 3.0, 1.0, 0.0);
        made::<R>(1.0, 2.0, 1.0, 3.0, 1.0);
        made::<R>(3.0, -1.0, 2.0, 0.5, 0.0);
        made::<R>(1.0, 2.0, 1.0, 0.0, -2.0);
        // Weights far from one are brought near it, by several steps.
        made::<R>(1e12, 1e11, 2.0, 1.0, -1.0);
        made::<R>(1e-12, 1e-11, 1.0, 2.0, -1.0);
        made::<R>(1e-20, 1.0, 1e3, 1e-12, -1.0);
        made::<R>(1.0, 1e20, 1e-12, 1e3, -1.0);
        let nothing = rotmg(R::rounded(-1.0), R::one(), R::one(), R::one());
        let zero = R::zero();
        assert_eq!((nothing.d1, nothing.d2, nothing.x1), (zero, zero, zero));
        assert_eq!(nothing.param, [-1.0, 0.0, 0.0, 0.0, 0.0].map(|value| Some(R::rounded(value))));
        // It ends.
        rotmg(R::infinity(), R::one(), R::one(), R::one());
        rotmg(R::one(), R::nan(), R::one(), R::one());
    }
    all::<f32>();
    all::<f64>();
}

/// Whole numbers, whose sums are exact in any order.
fn long_vectors_are_shared_out<S: Sample>() {
    let n = 400_000;
    let x: Vec<S> = (0..n).map(|i| S::new(f64::from(i % 5 - 2), f64::from(i % 3))).collect();
    let mut y: Vec<S> = (0..n).map(|i| S::new(f64::from(i % 7), 0.0)).collect();
    let n = i64::from(n);
    let (px, py) = (x.as_ptr(), y.as_mut_ptr());
    let exact = x.iter().zip(&y).fold(Exact::ZERO, |sum, (x, y)| sum + x.exact() * y.exact());
    let found: S = unsafe { dotu(n, px, 1, py, 1) };
    assert_eq!((found.exact() - exact).abs(), 0.0);
    let sum: f64 = x.iter().map(|x| x.exact().abs1()).sum();
    assert_eq!(unsafe { asum::<S, S>(n, px, 1) }, S::Real::rounded(sum));
    let expected: Vec<S> = x.iter().zip(&y).map(|(x, y)| *x + *x + *y).collect();
    unsafe { axpy(n, S::new(2.0, 0.0), px, 1, py, 1) };
    assert!(y == expected);
    y[300_000] = S::new(1e4, 0.0);
    y[390_000] = S::new(1e4, 0.0);
    assert_eq!(unsafe { iamax::<S, S>(n, y.as_ptr(), 1) }, 300_001);
}

#[test]
fn halves_are_computed_in_f32_and_rounded_once() {
    fn all<H: Stored<f32>>(unit: f64) {
        let mut numbers = Numbers::new(3);
        let x: Vec<H> = (0..100).map(|_| H::store(numbers.scalar())).collect();
        let mut y: Vec<H> = (0..100).map(|_| H::store(numbers.scalar())).collect();
        let wide = |x: &[H]| -> Vec<f64> { x.iter().map(|x| f64::from(x.load())).collect() };
        let (wide_x, wide_y) = (wide(&x), wide(&y));
        let dot: f32 = unsafe { dotu(100, x.as_ptr(), 1, y.as_ptr(), 1) };
        let exact: f64 = wide_x.iter().zip(&wide_y).map(|(x, y)| x * y).sum();
        assert!((f64::from(dot) - exact).abs() < 100.0 * f64::from(f32::EPSILON), "{dot} {exact}");
        unsafe { axpy(100, 0.75f32, x.as_ptr(), 1, y.as_mut_ptr(), 1) };
        for (i, y) in wide(&y).into_iter().enumerate() {
            let exact = 0.75 * wide_x[i] + wide_y[i];
            assert!((y - exact).abs() <= exact.abs() * unit * 1.001 + 1e-7, "{y} {exact}");
        }
    }
    all::<f16>(2f64.powi(-11));
    all::<bf16>(2f64.powi(-8));
}

#[test]
fn smiths_quotient_has_no_needless_overflow() {
    let large = Complex::new(1e300, 1e300);
    assert_eq!(large.over(large), Complex::new(1.0, 0.0));
    let exact = Complex::new(-0.25, 0.5).over(Complex::new(0.0, 0.5));
    assert_eq!(exact, Complex::new(1.0, 0.5));
}
