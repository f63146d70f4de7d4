//! A generator: its kind, its settings, and how its fills follow each other.

use crate::draw;
use crate::interleaved::Interleaved;
use crate::lanes;
use crate::mrg::{self, Mrg};
use crate::mt19937::Mt19937;
use crate::mtgp::Mtgp;
use crate::philox::Philox;
use crate::poisson::{self, Poisson};
use crate::sobol::{DIMENSIONS, Sobol};
use crate::xorwow::{self, Xorwow};

/// A kind of generator, `curandRngType_t` without its two defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Xorwow,
    Mrg32k3a,
    Mtgp32,
    /// In NVIDIA's order, in which 8,192 parts of its seed's sequence lie side by side.
    Mt19937,
    Philox4x32,
    Sobol32,
    ScrambledSobol32,
    Sobol64,
    ScrambledSobol64,
}

impl Kind {
    /// Whether it is a quasirandom sequence, which has dimensions and no seed.
    pub fn is_quasi(self) -> bool {
        matches!(self, Kind::Sobol32 | Kind::ScrambledSobol32 | Kind::Sobol64 | Kind::ScrambledSobol64)
    }

    /// Whether its words have 64 bits: it fills `u64` and no `u32`.
    pub fn is_wide(self) -> bool {
        matches!(self, Kind::Sobol64 | Kind::ScrambledSobol64)
    }
}

/// An ordering of the results, `curandOrdering_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ordering {
    Best,
    Default,
    Seeded,
    Legacy,
    /// What is best on a device, and depends on it: we serve the default. Host generators refuse it, which is the
    /// caller's to do.
    Dynamic,
    Quasi,
}

/// Why a call is refused; each is a status of cuRAND's of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("this kind of generator has no {0}")]
    Type(&'static str),
    #[error("out of range: {0}")]
    OutOfRange(&'static str),
    #[error("this kind of generator gives a multiple of {0} of these values")]
    LengthNotMultiple(u32),
}

pub type Result<T = (), E = Error> = std::result::Result<T, E>;

/// A generator of random numbers.
#[derive(Clone)]
pub struct Generator {
    kind: Kind,
    ordering: Ordering,
    pub(crate) seed: u64,
    /// Where the state begins when it is made anew. Fills move it on: what is set later does not begin again.
    pub(crate) offset: u64,
    dimensions: u32,
    engine: Option<Engine>,
    /// Whether kernels have the state.
    pub(crate) is_shown: bool,
}

#[derive(Clone)]
pub(crate) enum Engine {
    Xorwow(Interleaved),
    Mrg(Interleaved),
    Mtgp(Box<Mtgp>),
    Mt19937(Box<Mt19937>),
    Philox(Philox),
    Sobol32(Sobol<u32>),
    Sobol64(Sobol<u64>),
}

impl Generator {
    /// A generator with seed 0, offset 0, one dimension and the default ordering.
    pub fn new(kind: Kind) -> Generator {
        let ordering = if kind.is_quasi() { Ordering::Quasi } else { Ordering::Default };
        Generator { kind, ordering, seed: 0, offset: 0, dimensions: 1, engine: None, is_shown: false }
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    pub fn dimensions(&self) -> u32 {
        self.dimensions
    }

    /// `curandSetPseudoRandomGeneratorSeed`. The same seed again changes nothing; another one begins a new sequence, at
    /// the place that this one has come to (XORWOW, MRG32k3a, Philox), or at its beginning (the twisters).
    pub fn set_seed(&mut self, seed: u64) -> Result {
        if self.kind.is_quasi() {
            return Err(Error::Type("seed"));
        }
        if self.seed != seed {
            self.seed = seed;
            self.restart();
        }
        Ok(())
    }

    /// `curandSetGeneratorOffset`: the sequence goes on at its word `offset`, a quasirandom one at that point.
    pub fn set_offset(&mut self, offset: u64) -> Result {
        if matches!(self.kind, Kind::Mtgp32 | Kind::Mt19937) {
            return Err(Error::Type("offset"));
        }
        self.offset = offset;
        self.engine = None;
        self.is_shown = false;
        Ok(())
    }

    /// `curandSetGeneratorOrdering`. A refused ordering leaves the old one.
    pub fn set_ordering(&mut self, ordering: Ordering) -> Result {
        let has = match ordering {
            Ordering::Quasi => self.kind.is_quasi(),
            Ordering::Default | Ordering::Legacy | Ordering::Dynamic => !self.kind.is_quasi(),
            Ordering::Best => !self.kind.is_quasi() && self.kind != Kind::Mt19937,
            Ordering::Seeded => self.kind == Kind::Xorwow,
        };
        if !has {
            return Err(Error::OutOfRange("an ordering that this kind of generator lacks"));
        }
        if self.ordering != ordering {
            self.ordering = ordering;
            self.restart();
        }
        Ok(())
    }

    /// `curandSetQuasiRandomGeneratorDimensions`: 1 to 20,000. The sequences go on where they are.
    pub fn set_dimensions(&mut self, dimensions: u32) -> Result {
        if !self.kind.is_quasi() {
            return Err(Error::Type("dimensions"));
        }
        if !(1..=DIMENSIONS as u32).contains(&dimensions) {
            return Err(Error::OutOfRange("dimensions: 1 to 20,000"));
        }
        if self.dimensions != dimensions {
            self.dimensions = dimensions;
            self.restart();
        }
        Ok(())
    }

    /// `curandGenerateSeeds`: makes the state, which the next fill would do otherwise. XORWOW, MRG32k3a and Philox make it
    /// for the place that they have come to, the twisters for their beginning.
    pub fn generate_seeds(&mut self) {
        self.restart();
        self.engine();
    }

    /// Forgets the state.
    fn restart(&mut self) {
        // Philox knows the place within four values apart from its offset, and forgets it only when that is not 0.
        let kept = match &self.engine {
            Some(Engine::Philox(philox)) if self.offset == 0 => philox.given(),
            _ => 0,
        };
        self.is_shown = false;
        self.engine = (kept != 0).then(|| Engine::Philox(Philox::new(self.seed, kept as u64)));
    }

    pub(crate) fn engine(&mut self) -> &mut Engine {
        let (seed, offset, legacy) = (self.seed, self.offset, self.ordering == Ordering::Legacy);
        self.engine.get_or_insert_with(|| match self.kind {
            Kind::Xorwow => Engine::Xorwow(xorwow::new(seed, offset, self.ordering == Ordering::Seeded)),
            Kind::Mrg32k3a => Engine::Mrg(mrg::new(seed, offset, legacy)),
            Kind::Mtgp32 => Engine::Mtgp(Box::new(Mtgp::new(seed, legacy))),
            Kind::Mt19937 => Engine::Mt19937(Box::new(Mt19937::new(seed))),
            Kind::Philox4x32 => Engine::Philox(Philox::new(seed, offset)),
            Kind::Sobol32 => Engine::Sobol32(Sobol::new(self.dimensions, false, offset)),
            Kind::ScrambledSobol32 => Engine::Sobol32(Sobol::new(self.dimensions, true, offset)),
            Kind::Sobol64 => Engine::Sobol64(Sobol::new(self.dimensions, false, offset)),
            Kind::ScrambledSobol64 => Engine::Sobol64(Sobol::new(self.dimensions, true, offset)),
        })
    }

    /// Whether a fill of `n` values is allowed; pairs are what Box and Muller's method gives.
    pub(crate) fn check(&self, n: usize, pairs: bool) -> Result {
        if self.kind.is_quasi() && !n.is_multiple_of(self.dimensions as usize) {
            return Err(Error::LengthNotMultiple(self.dimensions));
        }
        if pairs && matches!(self.kind, Kind::Xorwow | Kind::Mrg32k3a) && !n.is_multiple_of(2) {
            return Err(Error::LengthNotMultiple(2));
        }
        Ok(())
    }

    /// The engine, and the offset moved on by what a fill of `n` values takes; `outs` of them are one draw of a lane's.
    pub(crate) fn begin(&mut self, n: usize, outs: usize) -> &mut Engine {
        let dimensions = self.dimensions as usize;
        let moved = match self.engine() {
            Engine::Xorwow(_) | Engine::Mrg(_) => n / outs,
            Engine::Philox(philox) => (philox.given() + n) / 4,
            Engine::Sobol32(_) | Engine::Sobol64(_) => n / dimensions,
            Engine::Mtgp(_) | Engine::Mt19937(_) => 0,
        };
        self.offset = self.offset.wrapping_add(moved as u64);
        self.engine()
    }

    /// `curandGenerate`: words of 32 bits.
    pub fn fill_u32(&mut self, out: &mut [u32]) -> Result {
        // Nothing is not looked into.
        if self.kind.is_wide() && !out.is_empty() {
            return Err(Error::Type("32-bit words"));
        }
        self.check(out.len(), false)?;
        match self.begin(out.len(), 1) {
            Engine::Xorwow(lanes) => lanes.fill::<Xorwow, _, 1, 1>(out, |[x]| [x]),
            Engine::Mrg(lanes) => lanes.fill::<Mrg, _, 1, 1>(out, |[z]| [draw::mrg_u32(z)]),
            Engine::Mtgp(twisters) => twisters.fill(out, |x| x),
            Engine::Mt19937(twister) => twister.fill(out, |x| x),
            Engine::Philox(philox) => philox.fill(out, |[x]| x),
            Engine::Sobol32(sobol) => sobol.fill(out, |x| x),
            Engine::Sobol64(_) => {}
        }
        Ok(())
    }

    /// `curandGenerateLongLong`: words of 64 bits, of a 64-bit Sobol sequence.
    pub fn fill_u64(&mut self, out: &mut [u64]) -> Result {
        if !self.kind.is_wide() && !out.is_empty() {
            return Err(Error::Type("64-bit words"));
        }
        self.check(out.len(), false)?;
        if let Engine::Sobol64(sobol) = self.begin(out.len(), 1) {
            sobol.fill(out, |x| x);
        }
        Ok(())
    }

    /// `curandGenerateUniform`: above 0, up to 1.
    pub fn fill_uniform_f32(&mut self, out: &mut [f32]) -> Result {
        self.check(out.len(), false)?;
        match self.begin(out.len(), 1) {
            Engine::Xorwow(lanes) => lanes.fill::<Xorwow, _, 1, 1>(out, |[x]| [draw::uniform_f32(x)]),
            Engine::Mrg(lanes) => lanes.fill::<Mrg, _, 1, 1>(out, |[z]| [draw::mrg_f32(z)]),
            Engine::Mtgp(twisters) => twisters.fill(out, draw::uniform_f32),
            Engine::Mt19937(twister) => twister.fill(out, draw::uniform_f32_exact),
            Engine::Philox(philox) => philox.fill(out, |[x]| lanes::mapped(x, draw::uniform_f32)),
            Engine::Sobol32(sobol) => sobol.fill(out, draw::uniform_f32),
            Engine::Sobol64(sobol) => sobol.fill(out, |x| draw::uniform_f32((x >> 32) as u32)),
        }
        Ok(())
    }

    /// `curandGenerateUniformDouble`: above 0, up to 1.
    pub fn fill_uniform_f64(&mut self, out: &mut [f64]) -> Result {
        self.check(out.len(), false)?;
        match self.begin(out.len(), 1) {
            Engine::Xorwow(lanes) => {
                lanes.fill::<Xorwow, _, 2, 1>(out, |[x, y]| [draw::uniform_f64_pair(x, y)])
            }
            Engine::Mrg(lanes) => lanes.fill::<Mrg, _, 1, 1>(out, |[z]| [draw::mrg_f64(z)]),
            Engine::Mtgp(twisters) => twisters.fill(out, draw::uniform_f64),
            Engine::Mt19937(twister) => twister.fill(out, draw::uniform_f64_middle),
            Engine::Philox(philox) => philox.fill(out, |blocks: [[u32; 4]; 2]| {
                let [[a, b, c, d], [e, f, g, h]] = blocks;
                lanes::mapped([(a, b), (c, d), (e, f), (g, h)], |(x, y)| draw::uniform_f64_pair(x, y))
            }),
            Engine::Sobol32(sobol) => sobol.fill(out, draw::uniform_f64),
            Engine::Sobol64(sobol) => sobol.fill(out, draw::uniform_f64_wide),
        }
        Ok(())
    }

    /// `curandGenerateNormal`.
    pub fn fill_normal_f32(&mut self, out: &mut [f32], mean: f32, stddev: f32) -> Result {
        self.normal_f32(out, |x| mean + stddev * x)
    }

    /// `curandGenerateLogNormal`.
    pub fn fill_log_normal_f32(&mut self, out: &mut [f32], mean: f32, stddev: f32) -> Result {
        self.normal_f32(out, |x| (mean + stddev * x).exp())
    }

    /// `curandGenerateNormalDouble`.
    pub fn fill_normal_f64(&mut self, out: &mut [f64], mean: f64, stddev: f64) -> Result {
        self.normal_f64(out, |x| mean + stddev * x)
    }

    /// `curandGenerateLogNormalDouble`.
    pub fn fill_log_normal_f64(&mut self, out: &mut [f64], mean: f64, stddev: f64) -> Result {
        self.normal_f64(out, |x| (mean + stddev * x).exp())
    }

    /// `curandGeneratePoisson`.
    pub fn fill_poisson(&mut self, out: &mut [u32], lambda: f64) -> Result {
        if out.is_empty() {
            return Ok(());
        }
        // What is no number passes here, as in NVIDIA's library, whose values are 0 then.
        if lambda <= 0.0 || lambda > poisson::MOST {
            return Err(Error::OutOfRange("lambda: above 0, up to 400,000"));
        }
        self.check(out.len(), false)?;
        let method = Poisson::new(self.kind, poisson::read(lambda));
        let engine = self.begin(out.len(), 1);
        if let Poisson::Normal(rounded) = method {
            match engine {
                Engine::Xorwow(lanes) => {
                    lanes.fill_halves::<Xorwow>(out, draw::polar_f32, |x| rounded.value(x))
                }
                Engine::Mrg(lanes) => {
                    lanes.fill_halves::<Mrg>(out, draw::mrg_polar_f32, |x| rounded.value(x))
                }
                Engine::Mtgp(twisters) => twisters.fill(out, draw::inverse_f32(|x| rounded.value(x))),
                Engine::Mt19937(twister) => twister.fill(out, draw::inverse_f32(|x| rounded.single_value(x))),
                Engine::Philox(philox) => {
                    // Box and Muller's method by itself, whose values are of another type.
                    philox.fill(out, |[[a, b, c, d]]| {
                        let mut pairs = [draw::polar_f32(a, b), draw::polar_f32(c, d)];
                        draw::box_muller_f32(pairs.as_flattened_mut());
                        let [[a, b], [c, d]] = pairs;
                        lanes::mapped([a, b, c, d], |x| rounded.value(x))
                    });
                }
                Engine::Sobol32(sobol) => sobol.fill(out, draw::inverse_f32(|x| rounded.value(x))),
                Engine::Sobol64(sobol) => sobol.fill(out, draw::inverse_f32_wide(|x| rounded.value(x))),
            }
            return Ok(());
        }
        let value = |uniform| method.value(uniform);
        match engine {
            Engine::Xorwow(lanes) => lanes.fill::<Xorwow, _, 1, 1>(out, |[x]| [value(draw::uniform_f64(x))]),
            // Not the state's own uniform value, which is up to 2^-32 away: beside a border, that is another bar.
            Engine::Mrg(lanes) => {
                lanes.fill::<Mrg, _, 1, 1>(out, |[z]| [value(draw::uniform_f64(draw::mrg_u32(z)))])
            }
            Engine::Mtgp(twisters) => twisters.fill(out, |x| value(draw::uniform_f64(x))),
            Engine::Mt19937(twister) => twister.fill(out, |x| value(draw::uniform_f64(x))),
            Engine::Philox(philox) => {
                philox.fill(out, |[x]| lanes::mapped(x, |x| value(draw::uniform_f64(x))))
            }
            Engine::Sobol32(sobol) => sobol.fill(out, |x| value(draw::uniform_f64(x))),
            Engine::Sobol64(sobol) => sobol.fill(out, |x| value(draw::uniform_f64_wide(x))),
        }
        Ok(())
    }

    fn normal_f32(&mut self, out: &mut [f32], finish: impl Fn(f32) -> f32 + Copy + Send + Sync) -> Result {
        self.check(out.len(), true)?;
        let normal = |pairs: &mut [f32]| {
            draw::box_muller_f32(pairs);
            for value in pairs {
                *value = finish(*value);
            }
        };
        match self.begin(out.len(), 2) {
            Engine::Xorwow(lanes) => {
                lanes.fill_then::<Xorwow, _, 2, 2>(out, |[x, y]| draw::polar_f32(x, y), normal)
            }
            Engine::Mrg(lanes) => {
                lanes.fill_then::<Mrg, _, 2, 2>(out, |[x, y]| draw::mrg_polar_f32(x, y), normal)
            }
            Engine::Mtgp(twisters) => twisters.fill(out, draw::inverse_f32(finish)),
            Engine::Mt19937(twister) => twister.fill(out, draw::inverse_f32(finish)),
            Engine::Philox(philox) => {
                let pairs = |[[a, b, c, d]]: [[u32; 4]; 1]| {
                    let ([a, b], [c, d]) = (draw::polar_f32(a, b), draw::polar_f32(c, d));
                    [a, b, c, d]
                };
                philox.fill_then(out, pairs, normal);
            }
            Engine::Sobol32(sobol) => sobol.fill(out, draw::inverse_f32(finish)),
            Engine::Sobol64(sobol) => sobol.fill(out, draw::inverse_f32_wide(finish)),
        }
        Ok(())
    }

    fn normal_f64(&mut self, out: &mut [f64], finish: impl Fn(f64) -> f64 + Copy + Send + Sync) -> Result {
        self.check(out.len(), true)?;
        let normal = |pairs: &mut [f64]| {
            draw::box_muller_f64(pairs);
            for value in pairs {
                *value = finish(*value);
            }
        };
        match self.begin(out.len(), 2) {
            Engine::Xorwow(lanes) => lanes.fill_then::<Xorwow, _, 4, 2>(out, draw::polar_f64, normal),
            Engine::Mrg(lanes) => {
                lanes.fill_then::<Mrg, _, 2, 2>(out, |[x, y]| draw::mrg_polar_f64(x, y), normal)
            }
            Engine::Mtgp(twisters) => twisters.fill(out, draw::inverse_f64(finish)),
            Engine::Mt19937(twister) => twister.fill(out, draw::inverse_f64(finish)),
            Engine::Philox(philox) => {
                let pairs = |[x, y]: [[u32; 4]; 2]| {
                    let ([a, b], [c, d]) = (draw::polar_f64(x), draw::polar_f64(y));
                    [a, b, c, d]
                };
                philox.fill_then(out, pairs, normal);
            }
            Engine::Sobol32(sobol) => sobol.fill(out, draw::inverse_f64(finish)),
            Engine::Sobol64(sobol) => sobol.fill(out, draw::inverse_f64_wide(finish)),
        }
        Ok(())
    }
}
