//! A sequence for kernels: the state that they begin with, as crates/libraries/curand/api/kernels/rand.cu reads it, and what they
//! need of a Poisson distribution.
//!
//! The rule: [`Generator::skip`] moves the settings on as a fill does whose numbers a device makes, so that what is set later
//! begins at the same place.

use crate::generator::{Engine, Generator, Kind, Result};
use crate::poisson::{self, Histogram, Inverse, Poisson, Rounded};
use crate::sobol::table;

/// Words of a header: a ticket, how many recurrences lie side by side, where the sequence is, the seed, and room.
const HEADER: usize = 8;

fn header(n: usize, position: u64, seed: u64) -> Vec<u32> {
    let halves = |word: u64| [word as u32, (word >> 32) as u32];
    let mut words = vec![0, n as u32];
    words.extend(halves(position));
    words.extend(halves(seed));
    words.resize(HEADER, 0);
    words
}

impl Kind {
    /// The most words that its image has.
    pub fn image_words(self) -> usize {
        match self {
            Kind::Xorwow => HEADER + 7 * 4096,
            Kind::Mrg32k3a => HEADER + 7 * 81_920,
            Kind::Mtgp32 => HEADER + 192 * crate::mtgp::IMAGE,
            Kind::Mt19937 => HEADER + crate::mt19937::IMAGE,
            Kind::Philox4x32 => HEADER + 2 * 65_536,
            Kind::Sobol32 | Kind::ScrambledSobol32 | Kind::Sobol64 | Kind::ScrambledSobol64 => HEADER,
        }
    }

    /// Direction vectors and shift of each of some dimensions, in halves of words, the lower one first.
    pub fn tables(self, dimensions: u32) -> Vec<u32> {
        let scrambled = matches!(self, Kind::ScrambledSobol32 | Kind::ScrambledSobol64);
        table(dimensions as usize, scrambled, self.is_wide())
    }
}

impl Generator {
    /// The state that the next numbers come from, if it was made anew since [`Self::image_is_there`].
    pub fn image(&mut self) -> Option<Vec<u32>> {
        if self.is_shown {
            return None;
        }
        let (seed, offset) = (self.seed, self.offset);
        let words = match self.engine() {
            Engine::Xorwow(lanes) | Engine::Mrg(lanes) => {
                let (columns, at) = lanes.parts();
                let n = columns[0].len();
                let mut words = header(n, at as u64, 0);
                columns.iter().for_each(|column| words.extend(column));
                // No lane has kept a number of a pair: what it could keep is never this.
                words.resize(HEADER + 7 * n, u32::MAX);
                words
            }
            Engine::Mtgp(twisters) => {
                let (n, states) = twisters.image();
                let mut words = header(n, 0, 0);
                words.extend(states);
                words
            }
            Engine::Philox(philox) => {
                let (block, given) = philox.begins();
                let threads = 65_536;
                let mut words = header(threads, block % threads as u64 * 4 + given as u64, seed);
                words.resize(HEADER + 2 * threads, 0);
                for block in block..block + threads as u64 {
                    let at = HEADER + 2 * (block % threads as u64) as usize;
                    (words[at], words[at + 1]) = (block as u32, (block >> 32) as u32);
                }
                words
            }
            Engine::Sobol32(_) | Engine::Sobol64(_) => header(0, offset, 0),
            Engine::Mt19937(twister) => {
                let mut words = header(0, 0, 0);
                words.extend(twister.image());
                words
            }
        };
        Some(words)
    }

    /// Kernels have the image from here on.
    pub fn image_is_there(&mut self) {
        self.is_shown = true;
    }

    /// Moves on as if `n` numbers were made here, of which `pair` says that they were normal ones.
    pub fn skip(&mut self, n: usize, pair: bool) -> Result {
        self.check(n, pair)?;
        if let Engine::Philox(philox) = self.begin(n, if pair { 2 } else { 1 }) {
            philox.give(n);
        }
        Ok(())
    }
}

/// How kernels make a Poisson value of a word.
#[derive(Clone, Debug)]
pub enum Recipe {
    /// Up to where each bar is its own value's, and whose it is from there, both counted from `first`.
    Histogram { first: u32, ends: Vec<f64>, others: Vec<u32> },
    /// Sums of probabilities from value `first` on.
    Inverse { first: u32, sums: Vec<f64> },
    /// Rounded normal numbers.
    Normal { mean: f64, deviation: f64 },
}

impl Recipe {
    /// Of a mean up to 400,000.
    pub fn poisson(kind: Kind, mean: f64) -> Recipe {
        match Poisson::new(kind, poisson::read(mean)) {
            Poisson::Histogram(Histogram { first, bars }) => {
                let (ends, others) = bars.into_iter().unzip();
                Recipe::Histogram { first, ends, others }
            }
            Poisson::Inverse(Inverse { first, sums, .. }) => Recipe::Inverse { first, sums },
            Poisson::Normal(Rounded { mean, deviation }) => Recipe::Normal { mean, deviation },
        }
    }
}
