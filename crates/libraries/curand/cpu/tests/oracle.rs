//! Generators side by side with NVIDIA's own, through settings and fills that are drawn at random each time: every number is the
//! same to the bit. Logarithms, exponentials and sines are the C library's, for NVIDIA's and for ours.
//! `CURAND_SEED=N` draws the same again, `CURAND_CASES=N` more of them.

mod nvidia;

/// NVIDIA's library makes its tables when they are first asked for, and no two threads may ask.
static ALONE: std::sync::Mutex<()> = std::sync::Mutex::new(());

use std::ffi::c_int;
use std::fmt::Debug;
use std::hash::{BuildHasher, Hasher};

use curand_cpu::{Error, Generator, Kind, Ordering, Result};
use nvidia::{Host, Nvidia};

/// Kinds whose numbers are NVIDIA's; the scrambled ones are not.
const KINDS: [(Kind, c_int); 7] = [
    (Kind::Xorwow, 101),
    (Kind::Mrg32k3a, 121),
    (Kind::Mtgp32, 141),
    (Kind::Mt19937, 142),
    (Kind::Philox4x32, 161),
    (Kind::Sobol32, 201),
    (Kind::Sobol64, 203),
];

const ORDERINGS: [(Ordering, c_int); 5] = [
    (Ordering::Best, 100),
    (Ordering::Default, 101),
    (Ordering::Seeded, 102),
    (Ordering::Legacy, 103),
    (Ordering::Quasi, 201),
];

fn status(result: Result) -> c_int {
    match result {
        Ok(()) => 0,
        Err(Error::Type(_)) => 103,
        Err(Error::OutOfRange(_)) => 104,
        Err(Error::LengthNotMultiple(_)) => 105,
    }
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, n: u64) -> u64 {
        self.word() % n
    }

    fn one<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }

    fn unit(&mut self) -> f64 {
        self.word() as f64 / 2f64.powi(64)
    }
}

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

/// A number of any type by its bits.
trait Bits: Copy + Debug + Default {
    fn bits(self) -> u64;
}

impl Bits for u32 {
    fn bits(self) -> u64 {
        self.into()
    }
}

impl Bits for u64 {
    fn bits(self) -> u64 {
        self
    }
}

impl Bits for f32 {
    fn bits(self) -> u64 {
        self.to_bits().into()
    }
}

impl Bits for f64 {
    fn bits(self) -> u64 {
        self.to_bits()
    }
}

/// Two generators that were told the same.
struct Pair<'a> {
    ours: Generator,
    theirs: Host<'a>,
    told: Vec<String>,
}

impl Pair<'_> {
    fn same_status(&self, ours: Result, theirs: c_int) {
        assert_eq!(status(ours), theirs, "{:?}: {ours:?} after {:#?}", self.ours.kind(), self.told);
    }

    fn same<T: Bits>(
        &mut self,
        n: usize,
        ours: impl FnOnce(&mut Generator, &mut [T]) -> Result,
        theirs: impl FnOnce(&Host<'_>, &mut [T]) -> c_int,
    ) {
        let (mut a, mut b) = (vec![T::default(); n], vec![T::default(); n]);
        let (ours, theirs) = (ours(&mut self.ours, &mut a), theirs(&self.theirs, &mut b));
        self.same_status(ours, theirs);
        let mut others = (0..n).filter(|&i| a[i].bits() != b[i].bits());
        if let Some(first) = others.next() {
            panic!(
                "{:?}: {} of {n} differ, the first {first}: ours {:?}, NVIDIA's {:?}; after {:#?}",
                self.ours.kind(),
                1 + others.count(),
                a[first],
                b[first],
                self.told
            );
        }
    }

    fn tell(&mut self, what: String) {
        self.told.push(what);
    }

    fn settings(&mut self, random: &mut Random) {
        match random.below(5) {
            0 => {
                let seed = match random.below(3) {
                    0 => random.below(4),
                    1 => random.below(1 << 32),
                    _ => random.word(),
                };
                self.tell(format!("seed {seed}"));
                let theirs = self.theirs.set("curandSetPseudoRandomGeneratorSeed", seed);
                let ours = self.ours.set_seed(seed);
                self.same_status(ours, theirs);
            }
            1 => {
                let offset = match random.below(5) {
                    0 => 0,
                    1 => random.below(10),
                    2 => random.below(1 << 20),
                    3 => random.below(1 << 40),
                    _ => random.word(),
                };
                self.tell(format!("offset {offset}"));
                let theirs = self.theirs.set("curandSetGeneratorOffset", offset);
                let ours = self.ours.set_offset(offset);
                self.same_status(ours, theirs);
            }
            2 => {
                let (ordering, number) = random.one(&ORDERINGS);
                self.tell(format!("ordering {ordering:?}"));
                let theirs = self.theirs.set("curandSetGeneratorOrdering", number);
                let ours = self.ours.set_ordering(ordering);
                self.same_status(ours, theirs);
            }
            3 => {
                let dimensions = match random.below(4) {
                    0 => 0,
                    1 => random.below(20) as u32,
                    2 => random.below(20_002) as u32,
                    _ => 1,
                };
                self.tell(format!("dimensions {dimensions}"));
                let theirs = self.theirs.set("curandSetQuasiRandomGeneratorDimensions", dimensions);
                let ours = self.ours.set_dimensions(dimensions);
                self.same_status(ours, theirs);
            }
            _ => {
                self.tell("seeds".to_owned());
                assert_eq!(self.theirs.call("curandGenerateSeeds"), 0);
                self.ours.generate_seeds();
            }
        }
    }

    fn fill(&mut self, random: &mut Random) {
        let dimensions = self.ours.dimensions() as u64;
        let most = if self.ours.kind() == Kind::Mrg32k3a { 400_000 } else { 600_000 };
        let points = match random.below(4) {
            0 => random.below(10),
            1 => random.below(1000),
            2 => random.below(10_000),
            _ => random.below(most),
        };
        let n = match random.below(8) {
            0 => points,
            _ if dimensions > 1 => (points / dimensions).clamp(1, 100) * dimensions,
            _ => points / 2 * 2,
        } as usize;
        let what = random.below(9);
        let (mean, stddev) = match random.below(3) {
            0 => (0.0, 1.0),
            _ => (random.unit() * 4.0 - 2.0, random.unit() * 2.0),
        };
        let (mean_f, stddev_f) = (mean as f32, stddev as f32);
        self.tell(format!("fill {what} of {n}, {mean}, {stddev}"));
        match what {
            0 => self.same(n, |g, out| g.fill_u32(out), |g, out: &mut [u32]| g.fill("curandGenerate", out)),
            1 => self.same(
                n,
                |g, out| g.fill_u64(out),
                |g, out: &mut [u64]| g.fill("curandGenerateLongLong", out),
            ),
            2 => self.same(
                n,
                |g, out| g.fill_uniform_f32(out),
                |g, out: &mut [f32]| g.fill("curandGenerateUniform", out),
            ),
            3 => self.same(
                n,
                |g, out| g.fill_uniform_f64(out),
                |g, out: &mut [f64]| g.fill("curandGenerateUniformDouble", out),
            ),
            4 => self.same(
                n,
                |g, out| g.fill_normal_f32(out, 0.0, stddev_f),
                |g, out: &mut [f32]| g.fill_normal("curandGenerateNormal", out, 0.0, stddev_f),
            ),
            5 => self.same(
                n,
                |g, out| g.fill_normal_f64(out, 0.0, stddev),
                |g, out: &mut [f64]| g.fill_normal("curandGenerateNormalDouble", out, 0.0, stddev),
            ),
            6 => self.same(
                n,
                |g, out| g.fill_log_normal_f32(out, mean_f, stddev_f),
                |g, out: &mut [f32]| g.fill_normal("curandGenerateLogNormal", out, mean_f, stddev_f),
            ),
            7 => {
                let lambda = match random.below(6) {
                    0 => random.unit() * 3.0,
                    1 => random.unit() * 40.0,
                    2 => random.unit() * 2000.0,
                    3 => random.unit() * 20_000.0,
                    4 => random.unit() * 500_000.0,
                    _ => -1.0,
                };
                self.tell(format!("lambda {lambda}"));
                self.same(
                    n,
                    |g, out| g.fill_poisson(out, lambda),
                    |g, out: &mut [u32]| g.fill_with("curandGeneratePoisson", out, lambda),
                );
            }
            _ => self.same(
                n,
                |g, out| g.fill_log_normal_f64(out, mean, stddev),
                |g, out: &mut [f64]| g.fill_normal("curandGenerateLogNormalDouble", out, mean, stddev),
            ),
        }
    }
}

#[test]
fn generators_give_the_numbers_of_nvidias() {
    let _alone = ALONE.lock();
    let nvidia = match Nvidia::open() {
        Ok(nvidia) => nvidia,
        Err(missing) => return testkit::skip!("{missing}"),
    };
    let drawn = std::hash::RandomState::new().build_hasher().finish();
    let seed = setting("CURAND_SEED").unwrap_or(drawn);
    let only = std::env::var("CURAND_KIND").ok();
    eprintln!("CURAND_SEED={seed}");
    for (kind, number) in KINDS {
        if only.as_ref().is_some_and(|only| *only != format!("{kind:?}")) {
            continue;
        }
        let mut random = Random(seed ^ number as u64);
        // NVIDIA's library takes five seconds for the states of MT19937.
        let cases = if kind == Kind::Mt19937 { 3 } else { 12 };
        for case in 0..setting("CURAND_CASES").unwrap_or(cases) {
            let told = vec![format!("CURAND_SEED={seed}, case {case}")];
            let mut pair = Pair { ours: Generator::new(kind), theirs: nvidia.generator(number), told };
            for _ in 0..random.below(4) {
                pair.settings(&mut random);
            }
            for _ in 0..random.below(8) {
                if random.below(4) == 0 {
                    pair.settings(&mut random);
                }
                pair.fill(&mut random);
            }
        }
    }
}

/// The root of a mean of single precision is another one than the mean's root, rounded: of numbers some in a million tell.
#[test]
fn large_means_have_their_root_in_nvidias_precision() {
    const N: usize = 1_000_000;
    let _alone = ALONE.lock();
    let nvidia = match Nvidia::open() {
        Ok(nvidia) => nvidia,
        Err(missing) => return testkit::skip!("{missing}"),
    };
    for kind in [Kind::Mt19937, Kind::Philox4x32] {
        let number = KINDS.iter().find(|(it, _)| *it == kind).expect("it is one of them").1;
        let told = vec![format!("{kind:?}")];
        let mut pair = Pair { ours: Generator::new(kind), theirs: nvidia.generator(number), told };
        // Of the first the two roots differ.
        for mean in [11_558.822_889_787_234f64, 123_456.789] {
            pair.tell(format!("lambda {mean}"));
            pair.same(
                N,
                |g, out| g.fill_poisson(out, mean),
                |g, out: &mut [u32]| g.fill_with("curandGeneratePoisson", out, mean),
            );
        }
    }
}

#[test]
fn direction_vectors_are_nvidias() {
    let _alone = ALONE.lock();
    let nvidia = match Nvidia::open() {
        Ok(nvidia) => nvidia,
        Err(missing) => return testkit::skip!("{missing}"),
    };
    let narrow: Vec<u32> = nvidia.directions("curandGetDirectionVectors32", 101, 20_000 * 32);
    assert!(curand_cpu::directions32(false).as_flattened() == narrow, "32 bits");
    let wide: Vec<u64> = nvidia.directions("curandGetDirectionVectors64", 103, 20_000 * 64);
    assert!(curand_cpu::directions64(false).as_flattened() == wide, "64 bits");
}
