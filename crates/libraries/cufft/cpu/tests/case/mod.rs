//! One plan with memory around it: what it writes, and what it leaves alone.

use cufft_cpu::{Alone, Description, Direction, Embedding, Kind, Plan, Precision, Rayon, bf16, f16};

use crate::reference::{Number, transform};

/// One side of the array, by the manual: strides and distances in elements.
#[derive(Clone, Debug)]
pub struct Side {
    pub embed: Vec<i64>,
    pub stride: i64,
    pub distance: i64,
}

#[derive(Clone, Debug)]
pub struct Case {
    pub n: Vec<i64>,
    pub kind: Kind,
    pub precision: Precision,
    pub inverse: bool,
    pub batch: i64,
    /// `None` is the basic layout.
    pub sides: Option<[Side; 2]>,
    pub in_place: bool,
    pub alone: bool,
    pub seed: u64,
}

/// Random numbers that depend on the seed alone.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Between -1 and 1.
    pub fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// Bytes before and after each array, which nobody may touch.
const MARGIN: usize = 256;

fn bytes(precision: Precision) -> usize {
    precision.bytes()
}

fn store(memory: &mut [u8], precision: Precision, at: usize, value: f64) {
    let width = bytes(precision);
    let to = &mut memory[MARGIN + at * width..][..width];
    match precision {
        Precision::Half => to.copy_from_slice(&f16::from_f64(value).to_ne_bytes()),
        Precision::Bfloat => to.copy_from_slice(&bf16::from_f64(value).to_ne_bytes()),
        Precision::Single => to.copy_from_slice(&(value as f32).to_ne_bytes()),
        Precision::Double => to.copy_from_slice(&value.to_ne_bytes()),
    }
}

fn load(memory: &[u8], precision: Precision, at: usize) -> f64 {
    let width = bytes(precision);
    let from = &memory[MARGIN + at * width..][..width];
    match precision {
        Precision::Half => f16::from_ne_bytes(from.try_into().unwrap()).to_f64(),
        Precision::Bfloat => bf16::from_ne_bytes(from.try_into().unwrap()).to_f64(),
        Precision::Single => f64::from(f32::from_ne_bytes(from.try_into().unwrap())),
        Precision::Double => f64::from_ne_bytes(from.try_into().unwrap()),
    }
}

/// What the manual says of one side, spelled out: the place of each element in order, in real numbers.
struct Places {
    complex: bool,
    places: Vec<usize>,
}

impl Places {
    fn new(case: &Case, input: bool) -> Self {
        let n: Vec<usize> = case.n.iter().map(|&n| n as usize).collect();
        let rank = n.len();
        let complex = case.kind == Kind::C2C || (case.kind == Kind::C2R) == input;
        let mut counts = n.clone();
        if complex && case.kind != Kind::C2C {
            counts[rank - 1] = n[rank - 1] / 2 + 1;
        }
        let (embed, stride, distance) = match &case.sides {
            Some(sides) => {
                let side = &sides[usize::from(!input)];
                (
                    side.embed.iter().map(|&e| e as usize).collect(),
                    side.stride as usize,
                    side.distance as usize,
                )
            }
            None => {
                let mut embed = counts.clone();
                if !complex && case.in_place {
                    embed[rank - 1] = 2 * (n[rank - 1] / 2 + 1);
                }
                let volume = embed.iter().product();
                (embed, 1, volume)
            }
        };
        let unit = if complex { 2 } else { 1 };
        let mut places = Vec::new();
        for transform in 0..case.batch as usize {
            for element in 0..counts.iter().product() {
                let mut rest: usize = element;
                let mut index = vec![0; rank];
                for axis in (0..rank).rev() {
                    index[axis] = rest % counts[axis];
                    rest /= counts[axis];
                }
                let inner =
                    (0..rank).fold(0, |sum, axis| sum * if axis > 0 { embed[axis] } else { 1 } + index[axis]);
                places.push((transform * distance + inner * stride) * unit);
            }
        }
        Self { complex, places }
    }

    fn reals(&self) -> usize {
        self.places.iter().max().unwrap() + 2
    }
}

/// A whole Hermitian array from its half, with what is real by symmetry made real, as an inverse transform takes it.
fn whole(half: &[Number], n: &[usize]) -> Vec<Number> {
    let rank = n.len();
    let row = n[rank - 1] / 2 + 1;
    let total: usize = n.iter().product();
    (0..total)
        .map(|element| {
            let column = element % n[rank - 1];
            let outer = element / n[rank - 1];
            if column < row {
                return half[outer * row + column];
            }
            let mut rest = outer;
            let (mut mirrored, mut step) = (0, 1);
            for axis in (0..rank - 1).rev() {
                mirrored += (n[axis] - rest % n[axis]) % n[axis] * step;
                rest /= n[axis];
                step *= n[axis];
            }
            half[mirrored * row + n[rank - 1] - column].conj()
        })
        .collect()
}

impl Case {
    pub fn direction(&self) -> Direction {
        match self.kind {
            Kind::C2C if self.inverse => Direction::Inverse,
            Kind::C2C | Kind::R2C => Direction::Forward,
            Kind::C2R => Direction::Inverse,
        }
    }

    pub fn plan(&self) -> cufft_cpu::Result<Plan> {
        let embedding = |side: usize| {
            self.sides.as_ref().map(|sides| {
                let Side { embed, stride, distance } = &sides[side];
                Embedding { embed, stride: *stride, distance: *distance }
            })
        };
        Plan::new(&Description {
            n: &self.n,
            input: embedding(0),
            output: embedding(1),
            kind: self.kind,
            precision: self.precision,
            batch: self.batch,
        })
    }

    /// Executes it, and says how far off the result is, relative to its length; an error says what was touched.
    pub fn run(&self) -> Result<f64, String> {
        let plan = self.plan().map_err(|error| error.to_string())?;
        let (input, output) = (Places::new(self, true), Places::new(self, false));
        let mut random = Random(self.seed);
        let size = |places: &Places| 2 * MARGIN + places.reals() * bytes(self.precision);
        let length = if self.in_place { size(&input).max(size(&output)) } else { size(&input) };
        let mut from: Vec<u8> = (0..length).map(|_| random.next() as u8).collect();
        let mut to: Vec<u8> = (0..size(&output)).map(|_| random.next() as u8).collect();
        for &place in &input.places {
            for part in 0..1 + usize::from(input.complex) {
                store(&mut from, self.precision, place + part, random.unit());
            }
        }
        let numbers: Vec<Number> = input
            .places
            .iter()
            .map(|&place| {
                let im = if input.complex { load(&from, self.precision, place + 1) } else { 0.0 };
                Number::new(load(&from, self.precision, place), im)
            })
            .collect();

        let before = (from.clone(), to.clone());
        let cores: &dyn cufft_cpu::Cores = if self.alone { &Alone } else { &Rayon };
        let start = from[MARGIN..].as_mut_ptr();
        let end = if self.in_place { start } else { to[MARGIN..].as_mut_ptr() };
        // SAFETY: both memories have all elements that the plan has places for.
        unsafe { plan.execute(start.cast(), end.cast(), self.direction(), cores) }
            .map_err(|e| e.to_string())?;

        if !self.in_place && from != before.0 {
            return Err("the input was written to".to_owned());
        }
        let (after, before) = if self.in_place { (&from, &before.0) } else { (&to, &before.1) };
        self.untouched(before, after, &input, &output)?;
        Ok(self.error(numbers, after, &output))
    }

    /// Nothing outside of the elements was written.
    fn untouched(&self, before: &[u8], after: &[u8], input: &Places, output: &Places) -> Result<(), String> {
        let width = bytes(self.precision);
        let mut ours = vec![false; after.len()];
        // In place, the input's elements are lost too.
        let lost = if self.in_place { Some(input) } else { None };
        for places in [Some(output), lost].into_iter().flatten() {
            let numbers = 1 + usize::from(places.complex);
            for &place in &places.places {
                ours[MARGIN + place * width..][..numbers * width].fill(true);
            }
        }
        match (0..after.len()).find(|&i| !ours[i] && before[i] != after[i]) {
            Some(i) => Err(format!("byte {} was written", i as isize - MARGIN as isize)),
            None => Ok(()),
        }
    }

    fn error(&self, numbers: Vec<Number>, after: &[u8], output: &Places) -> f64 {
        let n: Vec<usize> = self.n.iter().map(|&n| n as usize).collect();
        let volume: usize = n.iter().product();
        let row = n[n.len() - 1] / 2 + 1;
        let batch = self.batch as usize;
        let (mut difference, mut length) = (0.0, 0.0);
        for transform_ in 0..batch {
            let each = numbers.len() / batch;
            let mine = &numbers[transform_ * each..][..each];
            let mut expected = if self.kind == Kind::C2R { whole(mine, &n) } else { mine.to_vec() };
            transform(&mut expected, &n, self.direction() == Direction::Inverse);
            if self.kind == Kind::R2C {
                expected = (0..volume).filter(|i| i % n[n.len() - 1] < row).map(|i| expected[i]).collect();
            }
            for (i, expected) in expected.iter().enumerate() {
                let place = output.places[transform_ * expected_len(&n, self.kind) + i];
                let mut add = |part: usize, value: crate::reference::Double| {
                    let got = load(after, self.precision, place + part);
                    difference += (crate::reference::Double::from(got) - value).high.powi(2);
                    length += value.high.powi(2);
                };
                add(0, expected.re);
                if output.complex {
                    add(1, expected.im);
                }
            }
        }
        (difference / length.max(f64::MIN_POSITIVE)).sqrt()
    }

    /// What the error may be.
    pub fn bound(&self) -> f64 {
        let bits = (self.n.iter().product::<i64>() as f64).log2().max(1.0);
        match self.precision {
            // Rounded once more when it is stored; the numbers are below 2^-24 of the largest only by chance.
            Precision::Half => 2f64.powi(-11) + 1e-6 * bits,
            Precision::Bfloat => 2f64.powi(-8) + 1e-6 * bits,
            Precision::Single => 1e-6 * bits,
            Precision::Double => 1e-15 * bits,
        }
    }
}

fn expected_len(n: &[usize], kind: Kind) -> usize {
    let volume: usize = n.iter().product();
    let last = n[n.len() - 1];
    if kind == Kind::R2C { volume / last * (last / 2 + 1) } else { volume }
}
