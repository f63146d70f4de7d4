//! Poisson values out of uniform ones, by the three methods of cuRAND's host generators: which one is used depends on the
//! kind of generator and on the mean.

use crate::generator::Kind;

/// Means that cuRAND takes: above 0, up to this.
pub(crate) const MOST: f64 = 400_000.0;

/// What is no number is as good as 0.
pub(crate) fn read(mean: f64) -> f64 {
    if mean.is_nan() { f64::MIN_POSITIVE } else { mean }
}

#[derive(Clone)]
pub(crate) enum Poisson {
    /// A square histogram.
    Histogram(Histogram),
    /// The inverse of the distribution, searched for.
    Inverse(Inverse),
    /// Rounded normal values.
    Normal(Rounded),
}

/// Marsaglia, Tsang and Wang, "Fast generation of discrete random variables" (Journal of Statistical Software 11, 2004),
/// method III: as many bars of the same height as there are values, each of which has two of them.
#[derive(Clone)]
pub(crate) struct Histogram {
    pub(crate) first: u32,
    /// Up to where a bar is its own value's, and whose it is from there.
    pub(crate) bars: Vec<(f64, u32)>,
}

#[derive(Clone)]
pub(crate) struct Inverse {
    pub(crate) first: u32,
    /// How likely a value up to each is.
    pub(crate) sums: Vec<f64>,
    /// For each of as many equal parts of 0 to 1 how many sums lie below it: there a search begins.
    starts: Vec<u32>,
}

impl Inverse {
    fn new(first: u32, shares: Vec<f64>) -> Inverse {
        let mut sums = shares;
        let mut sum = 0.0;
        for share in &mut sums {
            sum += *share;
            *share = sum;
        }
        let parts = sums.len().next_power_of_two();
        let below = |part: usize| sums.partition_point(|&sum| sum < part as f64 / parts as f64) as u32;
        let starts = (0..=parts).map(below).collect();
        Inverse { first, sums, starts }
    }

    fn value(&self, uniform: f64) -> u32 {
        let parts = (self.starts.len() - 1) as f64;
        let start = self.starts[(uniform * parts) as usize] as usize;
        let steps = self.sums[start..].iter().take_while(|&&sum| sum < uniform).count();
        self.first + (start + steps).min(self.sums.len() - 1) as u32
    }
}

#[derive(Clone, Copy)]
pub(crate) struct Rounded {
    pub(crate) mean: f64,
    pub(crate) deviation: f64,
}

impl Rounded {
    #[inline(always)]
    pub(crate) fn value(self, normal: f32) -> u32 {
        (self.deviation * f64::from(normal) + self.mean + 0.5) as u32
    }

    /// In single precision, as NVIDIA's MT19937 has it.
    #[inline(always)]
    pub(crate) fn single_value(self, normal: f32) -> u32 {
        (self.deviation as f32 * normal + self.mean as f32 + 0.5) as u32
    }
}

impl Poisson {
    /// The method for a mean between 0 and [`MOST`].
    pub(crate) fn new(kind: Kind, mean: f64) -> Poisson {
        let (histogram, inverse) = match kind {
            Kind::Sobol64 | Kind::ScrambledSobol64 => (0.0, 2000.0f64.next_down()),
            Kind::Sobol32 | Kind::ScrambledSobol32 => (10.0, 8000.0),
            Kind::Mtgp32 => (32.0, 8000.0),
            Kind::Xorwow | Kind::Mrg32k3a | Kind::Mt19937 | Kind::Philox4x32 => (2000.0, 0.0),
        };
        if mean < histogram {
            let (first, shares) = shares(mean);
            Poisson::Histogram(Histogram { first, bars: bars(shares) })
        } else if mean <= inverse {
            let (first, shares) = shares(mean);
            Poisson::Inverse(Inverse::new(first, shares))
        } else {
            let deviation = match kind {
                // Its root is of single precision as well, see `Rounded::single_value`.
                Kind::Mt19937 => f64::from((mean as f32).sqrt()),
                _ => mean.sqrt(),
            };
            Poisson::Normal(Rounded { mean, deviation })
        }
    }

    /// The value of a uniform one above 0, up to 1; of normal ones it is [`Rounded::value`].
    pub(crate) fn value(&self, uniform: f64) -> u32 {
        match self {
            Poisson::Histogram(Histogram { first, bars }) => {
                let bar = ((bars.len() as f64 * uniform) as usize).min(bars.len() - 1);
                let (own, other) = bars[bar];
                first + if uniform < own { bar as u32 } else { other }
            }
            Poisson::Inverse(inverse) => inverse.value(uniform),
            Poisson::Normal(_) => 0,
        }
    }
}

/// A Poisson distribution as kernels read it (`curand_discrete` of NVIDIA's headers).
pub enum Distribution {
    Histogram {
        /// The value of the first bar.
        first: u32,
        /// Up to where a bar is its own value's, for uniform numbers above 0, up to 1.
        ends: Vec<f64>,
        /// Whose it is from there, counted from `first`.
        others: Vec<u32>,
    },
    /// Rounded normal values.
    Normal { mean: f64, deviation: f64 },
}

impl Distribution {
    /// Of a mean between 0 and 400,000, by the method that pseudorandom generators of the host use.
    #[must_use]
    pub fn poisson(mean: f64) -> Distribution {
        match Poisson::new(Kind::Xorwow, mean) {
            Poisson::Histogram(Histogram { first, bars }) => {
                let (mut ends, mut others): (Vec<f64>, Vec<u32>) = bars.into_iter().unzip();
                // A uniform number of 1 lies in the bar behind the last, which is the last one's other value.
                ends.push(0.0);
                others.extend(others.last().copied());
                Distribution::Histogram { first, ends, others }
            }
            Poisson::Normal(Rounded { mean, deviation }) => Distribution::Normal { mean, deviation },
            Poisson::Inverse(_) => unreachable!("only other kinds of generators search"),
        }
    }
}

/// The probabilities that are not 0 in 64 bits, of this value and the following ones.
fn shares(mean: f64) -> (u32, Vec<f64>) {
    let share = |value: u32| (-mean + f64::from(value) * mean.ln() - log_factorial(value)).exp();
    let middle = mean as u32;
    let first = (0..=middle).rev().take_while(|&value| share(value) > 0.0).last().unwrap_or(middle);
    (first, (first..).map(share).take_while(|&share| share > 0.0).collect())
}

/// By Stirling's series from 16 on, whose first left-out term is below 1e-16 there.
fn log_factorial(n: u32) -> f64 {
    if n < 16 {
        return (2..=n).fold(1.0, |product, i| product * f64::from(i)).ln();
    }
    let x = f64::from(n) + 1.0;
    let (r, half_log_two_pi) = (1.0 / (x * x), 0.918_938_533_204_672_8);
    let series = ((((r / 1188.0 - 1.0 / 1680.0) * r + 1.0 / 1260.0) * r - 1.0 / 360.0) * r + 1.0 / 12.0) / x;
    (x - 0.5) * x.ln() - x + half_log_two_pi + series
}

/// Evens bars out: over and over the low ones are filled up in their order, each from the last one that is high.
fn bars(mut shares: Vec<f64>) -> Vec<(f64, u32)> {
    let n = shares.len();
    let height = 1.0 / n as f64;
    let mut bars: Vec<(f64, u32)> = (0..n).map(|bar| ((bar + 1) as f64 * height, bar as u32)).collect();
    let mut filled = vec![false; n];
    let mut giver = n;
    loop {
        let mut any = false;
        for bar in 0..n {
            if filled[bar] || shares[bar] >= height {
                continue;
            }
            while giver > 0 && (filled[giver - 1] || shares[giver - 1] <= height) {
                giver -= 1;
            }
            if giver == 0 {
                return bars;
            }
            bars[bar] = (bar as f64 * height + shares[bar], giver as u32 - 1);
            shares[giver - 1] -= height - shares[bar];
            filled[bar] = true;
            any = true;
        }
        if !any {
            return bars;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_search_that_begins_within_its_part_finds_what_one_over_all_does() {
        for mean in [10.0, 55.5, 1234.0, 7999.0] {
            let (first, shares) = shares(mean);
            let inverse = Inverse::new(first, shares);
            let parts = (inverse.starts.len() - 1) as f64;
            let ends = (1..=inverse.starts.len() - 1).flat_map(|part| {
                let end = part as f64 / parts;
                [end.next_down(), end, end.next_up().min(1.0)]
            });
            let uniform = (1..5000).map(|i| f64::from(i) / 5000.0);
            for uniform in inverse.sums.iter().copied().chain(ends).chain(uniform).filter(|u| *u <= 1.0) {
                let below = inverse.sums.iter().filter(|&&sum| sum < uniform).count();
                let wanted = first + below.min(inverse.sums.len() - 1) as u32;
                assert_eq!(inverse.value(uniform), wanted, "{uniform} of {mean}");
            }
        }
    }
}
