//! The second opinion on products of matrices: written from the definition, on dense matrices, in integers, so exact.
//!
//! An element is kept as an integer times 2⁻⁵⁶, a product of two times 2⁻¹¹², and with a factor, which is some quarters,
//! times 2⁻¹¹⁴: 128 bits hold sums of 200 such products of numbers below one.

#![allow(dead_code, reason = "each test file uses its part")]

use cublas_cpu::{Complex, Diag, Op, Real, Scalar, Uplo};

pub const SIZES: [i64; 7] = [0, 1, 2, 5, 17, 64, 129];

const ELEMENT: f64 = (1_u64 << 56) as f64;
const QUARTERS: f64 = 4.0;
const RESULT: f64 = ELEMENT * ELEMENT * QUARTERS;

/// Numbers that look random and are the same each time.
pub struct Source(u64);

impl Source {
    pub fn new(seed: u64) -> Self {
        Self(seed ^ 0x9E37_79B9_7F4A_7C15)
    }

    /// All 53 bits, between -1 and 1.
    pub fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let mut bits = self.0;
        bits ^= bits >> 33;
        bits = bits.wrapping_mul(0xff51_afd7_ed55_8ccd);
        bits ^= bits >> 33;
        ((bits >> 10) as i64 - (1 << 53)) as f64 / (1_u64 << 53) as f64
    }

    pub fn scalar<S: Scalar>(&mut self) -> S {
        let (re, im) = (self.next(), self.next());
        S::from_real(S::Real::rounded(re)).with_imag(S::Real::rounded(im))
    }

    /// A matrix in memory, with two rows of padding that nobody may touch.
    pub fn matrix<S: Scalar>(&mut self, rows: i64, columns: i64) -> Stored<S> {
        let ld = rows + 2;
        let elements = (0..ld * columns + 3).map(|_| self.scalar()).collect();
        Stored { rows, columns, ld, elements }
    }
}

/// A matrix as it lies in memory.
#[derive(Clone, PartialEq, Debug)]
pub struct Stored<S> {
    pub rows: i64,
    pub columns: i64,
    pub ld: i64,
    pub elements: Vec<S>,
}

impl<S: Scalar> Stored<S> {
    pub fn get(&self, row: i64, column: i64) -> S {
        self.elements[(row + column * self.ld) as usize]
    }

    pub fn set(&mut self, row: i64, column: i64, value: S) {
        self.elements[(row + column * self.ld) as usize] = value;
    }

    pub fn ptr(&self) -> *const S {
        self.elements.as_ptr()
    }

    pub fn mut_ptr(&mut self) -> *mut S {
        self.elements.as_mut_ptr()
    }

    pub fn map(mut self, value: impl Fn(i64, i64, S) -> S) -> Self {
        for column in 0..self.columns {
            for row in 0..self.rows {
                let old = self.get(row, column);
                self.set(row, column, value(row, column, old));
            }
        }
        self
    }

    pub fn nan() -> S {
        S::from_real(S::Real::rounded(f64::NAN))
    }

    pub fn dense(&self) -> Dense {
        Dense::new(self.rows, self.columns, |row, column| self.get(row, column))
    }

    /// The triangular matrix that one triangle stores.
    pub fn triangular(&self, uplo: Uplo, diag: Diag) -> Dense {
        Dense::new(self.rows, self.columns, |row, column| match diag {
            Diag::Unit if row == column => S::one(),
            _ if inside(uplo, row, column) => self.get(row, column),
            _ => S::zero(),
        })
    }

    /// The symmetric, or Hermitian, matrix of which one triangle is stored.
    pub fn symmetric(&self, uplo: Uplo, hermitian: bool) -> Dense {
        Dense::new(self.rows, self.columns, |row, column| {
            let there = inside(uplo, row, column);
            let element = if there { self.get(row, column) } else { self.get(column, row) };
            match hermitian {
                true if row == column => S::from_real(element.real()),
                true if !there => element.conj(),
                _ => element,
            }
        })
    }

    /// NaN everywhere outside of the triangle (and on its diagonal if that is ones): nobody may read it.
    pub fn poisoned(self, uplo: Uplo, diag: Diag) -> Self {
        self.map(|row, column, value| {
            let hidden = !inside(uplo, row, column) || (diag == Diag::Unit && row == column);
            if hidden { Self::nan() } else { value }
        })
    }

    /// Asserts that elements outside of `changes` hold the bits that `before` has, padding included.
    pub fn assert_rest(&self, before: &Self, what: &str, changes: impl Fn(i64, i64) -> bool) {
        for (at, (now, then)) in self.elements.iter().zip(&before.elements).enumerate() {
            let (row, column) = (at as i64 % self.ld, at as i64 / self.ld);
            let ours = row < self.rows && column < self.columns && changes(row, column);
            let same = now == then || (now.has_nan() && then.has_nan());
            assert!(ours || same, "{what}: touched ({row}, {column})");
        }
    }
}

pub fn inside(uplo: Uplo, row: i64, column: i64) -> bool {
    match uplo {
        Uplo::Lower => row >= column,
        Uplo::Upper => row <= column,
    }
}

/// A matrix of integers times 2⁻⁵⁶, real and imaginary parts.
#[derive(Clone)]
pub struct Dense {
    pub rows: i64,
    pub columns: i64,
    elements: Vec<(i64, i64)>,
}

impl Dense {
    pub fn new<S: Scalar>(rows: i64, columns: i64, element: impl Fn(i64, i64) -> S) -> Self {
        let fixed = |value: S::Real| (num(value) * ELEMENT).round() as i64;
        let elements = (0..rows * columns)
            .map(|at| {
                let value = element(at % rows, at / rows);
                (fixed(value.real()), fixed(value.imag()))
            })
            .collect();
        Self { rows, columns, elements }
    }

    fn get(&self, row: i64, column: i64) -> (i64, i64) {
        self.elements[(row + column * self.rows) as usize]
    }

    pub fn op(&self, op: Op) -> Self {
        if op == Op::N {
            return self.clone();
        }
        let (rows, columns) = (self.columns, self.rows);
        let sign = if op == Op::C { -1 } else { 1 };
        let elements = (0..rows * columns)
            .map(|at| {
                let (re, im) = self.get(at / rows, at % rows);
                (re, sign * im)
            })
            .collect();
        Self { rows, columns, elements }
    }
}

fn num<R: Real>(value: R) -> f64 {
    // f32 and f64 are f64s.
    num_traits::ToPrimitive::to_f64(&value).unwrap()
}

/// A factor of some quarters, which the second opinion knows exactly.
pub fn quarters<S: Scalar>(re: i64, im: i64) -> S {
    S::from_real(S::Real::rounded(re as f64 / QUARTERS)).with_imag(S::Real::rounded(im as f64 / QUARTERS))
}

/// `sum of factor·left·right + beta·c`, and beside each element how far off it may be in units of the roundoff.
pub struct Exact {
    pub rows: i64,
    elements: Vec<((i128, i128), f64)>,
    /// How many times the bound is allowed: where a routine is more than one product.
    pub slack: f64,
}

impl Exact {
    /// The bound is γ's number of roundings times the sum of the terms' sizes (Higham, Accuracy and Stability, 3.5 and
    /// 3.6): of n real terms n roundings; a complex product is two products and a sum for each part.
    pub fn new<S: Scalar>(terms: &[(S, &Dense, &Dense)], c: Option<(S, &Dense)>) -> Self {
        let (rows, columns) = match terms.first() {
            Some((_, left, right)) => (left.rows, right.columns),
            None => c.as_ref().map_or((0, 0), |(_, c)| (c.rows, c.columns)),
        };
        let fixed = |factor: S| {
            let part = |value: S::Real| {
                let exact = num(value) * QUARTERS;
                assert_eq!(exact, exact.round(), "a factor is some quarters");
                exact as i128
            };
            (part(factor.real()), part(factor.imag()))
        };
        let mut elements = Vec::new();
        for column in 0..columns {
            for row in 0..rows {
                let (mut sum, mut size, mut roundings) = ((0_i128, 0_i128), 0.0_f64, 4.0_f64);
                for (factor, left, right) in terms {
                    assert_eq!(left.columns, right.rows);
                    let (mut product, mut sizes) = ((0_i128, 0_i128), 0.0_f64);
                    for k in 0..left.columns {
                        let (a, b) = (left.get(row, k), right.get(k, column));
                        product.0 += i128::from(a.0) * i128::from(b.0) - i128::from(a.1) * i128::from(b.1);
                        product.1 += i128::from(a.0) * i128::from(b.1) + i128::from(a.1) * i128::from(b.0);
                        sizes += abs1(a) * abs1(b);
                    }
                    let factor = fixed(*factor);
                    sum = add(sum, times(factor, product));
                    size += sizes * (factor.0.abs() + factor.1.abs()) as f64 / QUARTERS;
                    roundings += left.columns as f64;
                }
                if let Some((beta, c)) = &c {
                    let (beta, c) = (fixed(*beta), c.get(row, column));
                    let wide = (i128::from(c.0) << 56, i128::from(c.1) << 56);
                    sum = add(sum, times(beta, wide));
                    size += abs1(c) * (beta.0.abs() + beta.1.abs()) as f64 / QUARTERS;
                }
                let roundings = if S::IS_COMPLEX { 2.0 * roundings + 4.0 } else { roundings };
                elements.push((sum, roundings * size));
            }
        }
        Self { rows, elements, slack: 1.0 }
    }

    /// Asserts that `got` is the element at this place.
    pub fn assert<S: Scalar>(&self, what: &str, row: i64, column: i64, got: S) {
        let ((re, im), bound) = self.elements[(row + column * self.rows) as usize];
        // The elements' own rounding to 2⁻⁵⁶ is where the small number comes from.
        let bound = self.slack * bound * num(S::Real::unit_roundoff()) * 1.01
            + 1e-15 * f64::from(u8::from(bound > 0.0));
        for (exact, got) in [(re, num(got.real())), (im, num(got.imag()))] {
            let off = ((got * RESULT) as i128).wrapping_sub(exact) as f64 / RESULT;
            assert!(
                !got.is_nan() && off.abs() <= bound,
                "{what}: ({row}, {column}) is {got}, {off:e} off, which may be {bound:e}",
            );
        }
    }

    /// Asserts the real parts of the diagonal.
    pub fn assert_real_diagonal<S: Scalar>(&self, what: &str, got: &Stored<S>) {
        let real = |((re, _), bound): &((i128, i128), f64)| ((*re, 0), *bound);
        let real = Self { rows: self.rows, elements: self.elements.iter().map(real).collect(), slack: 1.0 };
        real.assert_matrix(what, got, |row, column| row == column);
    }

    /// Asserts that `got` is this matrix wherever `there` says.
    pub fn assert_matrix<S: Scalar>(&self, what: &str, got: &Stored<S>, there: impl Fn(i64, i64) -> bool) {
        for column in 0..got.columns {
            for row in (0..got.rows).filter(|row| there(*row, column)) {
                self.assert(what, row, column, got.get(row, column));
            }
        }
    }
}

fn abs1(element: (i64, i64)) -> f64 {
    (element.0.abs() as f64 + element.1.abs() as f64) / ELEMENT
}

fn add(left: (i128, i128), right: (i128, i128)) -> (i128, i128) {
    (left.0 + right.0, left.1 + right.1)
}

fn times(factor: (i128, i128), value: (i128, i128)) -> (i128, i128) {
    (factor.0 * value.0 - factor.1 * value.1, factor.0 * value.1 + factor.1 * value.0)
}

/// Runs a generic test for all four types.
#[macro_export]
macro_rules! all_types {
    ($($name:ident),* $(,)?) => {$(
        mod $name {
            #[test]
            fn s() { super::$name::<f32>() }
            #[test]
            fn d() { super::$name::<f64>() }
            #[test]
            fn c() { super::$name::<cublas_cpu::Complex<f32>>() }
            #[test]
            fn z() { super::$name::<cublas_cpu::Complex<f64>>() }
        }
    )*};
}

/// The factors worth trying: none, one, and another, complex where the type is.
pub fn factors<S: Scalar>() -> [S; 3] {
    [S::zero(), S::one(), quarters(-5, 3)]
}

pub type C32 = Complex<f32>;
