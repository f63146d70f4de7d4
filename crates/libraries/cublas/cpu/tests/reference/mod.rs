//! The second opinion: plain sums over dense vectors and matrices in numbers of twice f64's length, the errors that the
//! literature allows, and vectors laid out with guards between their elements.
#![allow(dead_code, reason = "each test file uses a part")]

use std::ops::{Add, Mul, Neg, Sub};

use cublas_cpu::{Complex, Scalar};

/// hi + lo, of which lo is what rounding to hi left over: some 106 bits (Dekker, Knuth).
#[derive(Clone, Copy, Debug, Default)]
pub struct Twice {
    hi: f64,
    lo: f64,
}

impl Twice {
    fn of_sum(a: f64, b: f64) -> Self {
        let hi = a + b;
        let part = hi - a;
        Self { hi, lo: (a - (hi - part)) + (b - part) }
    }
}

impl From<f64> for Twice {
    fn from(value: f64) -> Self {
        Self { hi: value, lo: 0.0 }
    }
}

impl Add for Twice {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        let high = Self::of_sum(self.hi, other.hi);
        let low = Self::of_sum(self.lo, other.lo);
        let all = Self::of_sum(high.hi, high.lo + low.hi);
        Self::of_sum(all.hi, all.lo + low.lo)
    }
}

impl Neg for Twice {
    type Output = Self;
    fn neg(self) -> Self {
        Self { hi: -self.hi, lo: -self.lo }
    }
}

impl Mul for Twice {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        let hi = self.hi * other.hi;
        let lo = self.hi.mul_add(other.hi, -hi) + (self.hi * other.lo + self.lo * other.hi);
        Self::of_sum(hi, lo)
    }
}

/// A complex number that is exact for all that the tests care.
#[derive(Clone, Copy, Debug, Default)]
pub struct Exact {
    re: Twice,
    im: Twice,
}

impl Exact {
    pub const ZERO: Self = Self { re: Twice { hi: 0.0, lo: 0.0 }, im: Twice { hi: 0.0, lo: 0.0 } };

    pub fn real(value: f64) -> Self {
        Self { re: value.into(), im: 0.0.into() }
    }

    pub fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    pub fn real_part(self) -> Self {
        Self { re: self.re, im: 0.0.into() }
    }

    pub fn abs(self) -> f64 {
        self.re.hi.hypot(self.im.hi)
    }

    pub fn abs1(self) -> f64 {
        self.re.hi.abs() + self.im.hi.abs()
    }
}

impl Add for Exact {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }
}

impl Sub for Exact {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self { re: self.re + -other.re, im: self.im + -other.im }
    }
}

impl Mul for Exact {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self { re: self.re * other.re + -(self.im * other.im), im: self.re * other.im + self.im * other.re }
    }
}

/// A type that tests run in.
pub trait Sample: Scalar {
    const NAME: &str;
    /// Half the distance from one to the next number.
    const U: f64;
    /// The smallest number above zero: what a product that underflows may be wrong by.
    const LEAST: f64;
    fn new(re: f64, im: f64) -> Self;
    fn exact(self) -> Exact;
}

macro_rules! sample {
    ($real:ty, $name:literal, $complex_name:literal) => {
        impl Sample for $real {
            const NAME: &str = $name;
            const U: f64 = <$real>::EPSILON as f64 / 2.0;
            const LEAST: f64 = <$real>::from_bits(1) as f64;
            fn new(re: f64, _: f64) -> Self {
                re as Self
            }
            fn exact(self) -> Exact {
                Exact::real(f64::from(self))
            }
        }
        impl Sample for Complex<$real> {
            const NAME: &str = $complex_name;
            const U: f64 = <$real>::EPSILON as f64 / 2.0;
            const LEAST: f64 = <$real>::from_bits(1) as f64;
            fn new(re: f64, im: f64) -> Self {
                Self { re: re as $real, im: im as $real }
            }
            fn exact(self) -> Exact {
                Exact { re: f64::from(self.re).into(), im: f64::from(self.im).into() }
            }
        }
    };
}
sample!(f32, "S", "C");
sample!(f64, "D", "Z");

/// Runs a generic test in the four types.
#[macro_export]
macro_rules! in_all_types {
    ($($test:ident),* $(,)?) => {$(
        mod $test {
            use cublas_cpu::Complex;

            #[test]
            fn s() {
                super::$test::<f32>();
            }
            #[test]
            fn d() {
                super::$test::<f64>();
            }
            #[test]
            fn c() {
                super::$test::<Complex<f32>>();
            }
            #[test]
            fn z() {
                super::$test::<Complex<f64>>();
            }
        }
    )*};
}

/// γ(k) = k u / (1 − k u) of sums of `k` terms; a complex product's error is at most √2 γ(2) (Higham, 3.6).
pub fn gamma<S: Sample>(k: usize) -> f64 {
    let (k, factor) = if S::IS_COMPLEX { (k + 2, std::f64::consts::SQRT_2) } else { (k, 1.0) };
    let ku = k as f64 * S::U;
    factor * ku / (1.0 - ku)
}

/// Fails where `found` is farther from `exact` than γ(k) times the sum of the moduli of what was added up.
#[track_caller]
pub fn assert_close<S: Sample>(found: S, exact: Exact, k: usize, magnitude: f64, what: impl Fn() -> String) {
    let error = (found.exact() - exact).abs();
    let bound = gamma::<S>(k) * magnitude + k as f64 * S::LEAST;
    assert!(error <= bound, "{} {}: {found:?} for {exact:?}, error {error:e} > {bound:e}", S::NAME, what());
}

/// Numbers that look random and are the same in every run (SplitMix64).
pub struct Numbers(u64);

impl Numbers {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// In (−1, 1).
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }

    pub fn scalar<S: Sample>(&mut self) -> S {
        S::new(self.unit(), self.unit())
    }

    pub fn vector<S: Sample>(&mut self, n: usize) -> Vec<S> {
        (0..n).map(|_| self.scalar()).collect()
    }
}

/// What stands where no routine may read or write.
pub fn guard<S: Sample>() -> S {
    S::new(f64::NAN, f64::NAN)
}

/// A vector in memory: guards before, between and behind its elements.
#[derive(Clone)]
pub struct Laid<S> {
    cells: Vec<S>,
    n: usize,
    inc: i64,
}

impl<S: Sample> Laid<S> {
    pub fn new(values: &[S], inc: i64) -> Self {
        let (n, step) = (values.len(), inc.unsigned_abs() as usize);
        let mut laid = Self { cells: vec![guard(); 3 + n * step], n, inc };
        for (i, value) in values.iter().enumerate() {
            let place = laid.place(i);
            laid.cells[place] = *value;
        }
        laid
    }

    fn place(&self, i: usize) -> usize {
        let step = self.inc.unsigned_abs() as usize;
        1 + step * if self.inc < 0 { self.n - 1 - i } else { i }
    }

    pub fn pointer(&mut self) -> *mut S {
        self.cells[1..].as_mut_ptr()
    }

    /// The elements, when nothing else was written.
    #[track_caller]
    pub fn values(&self) -> Vec<S> {
        let places: Vec<usize> = (0..self.n).map(|i| self.place(i)).collect();
        for (i, cell) in self.cells.iter().enumerate() {
            assert!(
                places.contains(&i) || cell.has_nan(),
                "cell {i} beside the vector was written: {cell:?}"
            );
        }
        places.into_iter().map(|place| self.cells[place]).collect()
    }
}

pub const SIZES: [usize; 5] = [0, 1, 2, 7, 33];
pub const INCREMENTS: [i64; 4] = [1, 3, -1, -2];

pub fn increments() -> impl Iterator<Item = (i64, i64)> {
    INCREMENTS.into_iter().flat_map(|x| INCREMENTS.into_iter().map(move |y| (x, y)))
}
