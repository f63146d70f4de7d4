//! The discrete Fourier transform by its definition, axis by axis, in numbers of twice `f64`'s length.

use std::ops::{Add, Mul, Neg, Sub};

/// The sum of two `f64`, of which the second is below half a unit of the first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Double {
    pub high: f64,
    low: f64,
}

/// 2 pi.
const TURN: Double = Double { high: std::f64::consts::TAU, low: 2.4492935982947064e-16 };

impl Double {
    fn exact_sum(a: f64, b: f64) -> Self {
        let high = a + b;
        let part = high - a;
        Self { high, low: (a - (high - part)) + (b - part) }
    }

    fn over(self, divisor: f64) -> Self {
        let first = self.high / divisor;
        let rest = self - Self::from(first) * Self::from(divisor);
        Self::exact_sum(first, rest.high / divisor)
    }
}

impl From<f64> for Double {
    fn from(high: f64) -> Self {
        Self { high, low: 0.0 }
    }
}

impl Add for Double {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let sum = Self::exact_sum(self.high, other.high);
        let low = Self::exact_sum(self.low, other.low);
        let sum = Self::exact_sum(sum.high, sum.low + low.high);
        Self::exact_sum(sum.high, sum.low + low.low)
    }
}

impl Neg for Double {
    type Output = Self;

    fn neg(self) -> Self {
        Self { high: -self.high, low: -self.low }
    }
}

impl Sub for Double {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        self + -other
    }
}

impl Mul for Double {
    type Output = Self;

    fn mul(self, other: Self) -> Self {
        let high = self.high * other.high;
        let low = self.high.mul_add(other.high, -high);
        Self::exact_sum(high, low + (self.high * other.low + self.low * other.high))
    }
}

/// A complex number.
#[derive(Clone, Copy, Debug, Default)]
pub struct Number {
    pub re: Double,
    pub im: Double,
}

impl Number {
    pub fn new(re: f64, im: f64) -> Self {
        Self { re: re.into(), im: im.into() }
    }

    pub fn conj(self) -> Self {
        Self { re: self.re, im: -self.im }
    }

    pub fn plus(self, other: Self) -> Self {
        Self { re: self.re + other.re, im: self.im + other.im }
    }

    pub fn times(self, other: Self) -> Self {
        Self { re: self.re * other.re - self.im * other.im, im: self.re * other.im + self.im * other.re }
    }
}

/// `exp(2 pi i k / n)` by the exponential's series of a quarter of the angle, squared twice.
fn root(k: usize, n: usize) -> Number {
    let angle = (TURN * Double::from(k as f64)).over(4.0 * n as f64);
    let angle = Number { re: 0.0.into(), im: angle };
    let (mut term, mut sum) = (Number::new(1.0, 0.0), Number::new(1.0, 0.0));
    for i in 1..32 {
        term = term.times(angle);
        term = Number { re: term.re.over(f64::from(i)), im: term.im.over(f64::from(i)) };
        sum = sum.plus(term);
    }
    let square = sum.times(sum);
    square.times(square)
}

/// `exp(sign 2 pi i k / n)` for all `k`.
pub fn roots(n: usize, inverse: bool) -> Vec<Number> {
    (0..n).map(|k| root(k, n)).map(|root| if inverse { root } else { root.conj() }).collect()
}

/// Transforms an array of these lengths in place, unnormalised.
pub fn transform(numbers: &mut [Number], n: &[usize], inverse: bool) {
    let mut step = 1;
    for &length in n.iter().rev() {
        let roots = roots(length, inverse);
        for start in 0..numbers.len() {
            if start / step % length != 0 {
                continue;
            }
            let line: Vec<Number> = (0..length).map(|j| numbers[start + j * step]).collect();
            for k in 0..length {
                let terms = line.iter().enumerate().map(|(j, x)| x.times(roots[j * k % length]));
                numbers[start + k * step] = terms.fold(Number::default(), Number::plus);
            }
        }
        step *= length;
    }
}
