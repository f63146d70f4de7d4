//! `tex` and `tld4`: from coordinates to elements and their weights, after the CUDA C++ Programming Guide's appendix
//! "Texture Fetching".
//!
//! Coordinates are brought to elements in `f64`, where that is exact. A linear filter's weights have 8 fractional bits. How coordinates and
//! weights are cut to their bits is an H200's way (docs/accuracy.md).

use compiler::texture::{Access, Geometry, Level as Lod, MAX_WORDS, Sampler, Texel, address_mode};

use super::texel::to_half;
use super::{Answer, Image, Level, cube, flag, float, integer, sampler, texture};

/// Reads the words in order.
struct Words<'a>(&'a [u64; MAX_WORDS], usize);

impl Words<'_> {
    fn next(&mut self) -> u64 {
        let word = self.0.get(self.1).copied().unwrap_or(0);
        self.1 += 1;
        word
    }

    fn floats(&mut self, n: usize) -> [f64; 3] {
        std::array::from_fn(|nth| if nth < n { f64::from(float(self.next())) } else { 0.0 })
    }

    fn integers(&mut self, n: usize) -> [i64; 3] {
        std::array::from_fn(|nth| if nth < n { i64::from(integer(self.next())) } else { 0 })
    }
}

/// One fetch or gather.
struct Sample<'a> {
    image: &'a Image,
    sampler: Sampler,
    geometry: Geometry,
    /// The layer as asked for.
    layer: u32,
    offset: [i64; 3],
    compare: Option<f32>,
}

/// Where the coordinates lead to.
#[derive(Clone, Copy)]
enum Point {
    /// In the sampler's units.
    Float([f64; 3]),
    /// Elements.
    Integer([i64; 3]),
}

pub fn sample(access: Access, words: &mut [u64; MAX_WORDS]) -> Answer {
    let (geometry, float, separate, offset, compare) = match access {
        Access::Fetch { geometry, float, sampler, offset, compare, .. } => {
            (geometry, float, sampler, offset, compare)
        }
        Access::Gather { geometry, sampler, offset, compare, .. } => {
            (geometry, true, sampler, offset, compare)
        }
        _ => return Ok(()),
    };
    let mut input = Words(words, 0);
    let image = texture(input.next())?;
    let mut state = image.sampler;
    if separate {
        // PTX: in independent mode the texture's own sampler says no more than whether coordinates are normalised.
        let normalized = state.normalized;
        state = sampler(input.next())?;
        state.normalized = if state.force_unnormalized == 0 { normalized } else { 0 };
    }
    let indices: [u64; 2] =
        std::array::from_fn(|nth| if nth < geometry.indices() { input.next() } else { 0 });
    // `.a2dms` names the sample first. An array has one sample per element, whatever its number.
    let layer = if geometry == Geometry::LayeredMultisample2 { indices[1] } else { indices[0] } as u32;
    let n = geometry.coordinates();
    let mut point = if float { Point::Float(input.floats(n)) } else { Point::Integer(input.integers(n)) };
    let level = match access {
        Access::Fetch { level: Lod::Explicit, .. } if float => {
            Chosen::between(image, &state, super::float(input.next()))
        }
        Access::Fetch { level: Lod::Explicit, .. } => Chosen::one(integer(input.next()).max(0) as usize),
        Access::Fetch { level: Lod::Gradient, .. } => {
            let (dx, dy) = (input.floats(n), input.floats(n));
            let lod = gradient_level(image, &state, geometry, point, dx, dy);
            Chosen::between(image, &state, lod)
        }
        _ => Chosen::one(0),
    };
    let offset = if offset { input.integers(n) } else { [0; 3] };
    let compare = compare.then(|| super::float(input.next()));
    let mut sample = Sample { image, sampler: state, geometry, layer, offset, compare };
    if !geometry.is_layered() {
        sample.layer = 0;
    }
    if let (true, Point::Float(direction)) = (geometry.is_cube(), point) {
        // The face is a slice, and its coordinates run from 0 to 1.
        let (face, [s, t]) = cube::project(direction);
        sample.layer = sample.cube_slice(face);
        sample.sampler.normalized = 1;
        point = Point::Float([s, t, 0.0]);
    }
    match access {
        Access::Gather { component, .. } => *words = sample.gather(point, component),
        Access::Fetch { texel, .. } => *words = packed(sample.fetch(point, &level), texel),
        _ => {}
    }
    Ok(())
}

/// As the instruction gives it.
fn packed(channels: [u32; 4], texel: Texel) -> [u64; MAX_WORDS] {
    let mut words = [0; MAX_WORDS];
    let half = |nth: usize| u64::from(to_half(f32::from_bits(channels[nth])));
    match texel {
        Texel::Words => {
            for (word, channel) in words.iter_mut().zip(channels) {
                *word = channel.into();
            }
        }
        Texel::Halves => {
            for (nth, word) in words.iter_mut().enumerate().take(4) {
                *word = half(nth);
            }
        }
        Texel::Pairs => {
            words[0] = half(0) | half(1) << 16;
            words[1] = half(2) | half(3) << 16;
        }
    }
    words
}

/// Levels to read and the second one's weight in 256ths.
struct Chosen {
    first: usize,
    second: usize,
    weight: i64,
}

impl Chosen {
    fn one(level: usize) -> Chosen {
        Chosen { first: level, second: level, weight: 0 }
    }

    /// The level as the sampler has it: moved, clamped, and taken to one level or between two.
    fn between(image: &Image, sampler: &Sampler, lod: f32) -> Chosen {
        let last = f64::from(image.n_levels.max(1) - 1);
        let lod = f64::from(lod) + f64::from(sampler.mip_bias);
        let lod = lod.max(f64::from(sampler.min_level)).min(f64::from(sampler.max_level));
        // NaN is level 0.
        let lod = lod.max(0.0).min(last);
        if sampler.mip_filter == 0 {
            return Chosen::one((lod + 0.5).floor() as usize);
        }
        let fixed = (lod * 256.0).floor() as i64;
        let first = (fixed >> 8) as usize;
        Chosen { first, second: first + 1, weight: fixed & 255 }
    }
}

/// log2 of the longer of the two steps, in elements of the first level.
fn gradient_level(
    image: &Image,
    sampler: &Sampler,
    geometry: Geometry,
    point: Point,
    dx: [f64; 3],
    dy: [f64; 3],
) -> f32 {
    let level = image.level(0);
    let (mut dx, mut dy) = (dx, dy);
    let mut normalized = sampler.normalized != 0;
    if let (true, Point::Float(direction)) = (geometry.is_cube(), point) {
        (dx, dy) = (cube::derivative(direction, dx), cube::derivative(direction, dy));
        normalized = true;
    }
    let sides = [level.width, level.height, level.depth].map(f64::from);
    let length = |step: [f64; 3]| {
        let square = |nth: usize| {
            let step: f64 = step[nth] * if normalized { sides[nth] } else { 1.0 };
            step * step
        };
        (square(0) + square(1) + square(2)).sqrt()
    };
    length(dx).max(length(dy)).log2() as f32
}

/// One dimension of a footprint: the element in front, and the weight of the one behind it in 256ths.
type Foot = (i64, i64);

/// No texture has elements beyond it, and sums stay far from overflow.
const FAR: f64 = 4_294_967_296.0;

/// What a normalised coordinate is counted in, `1 / steps`: a GPU cuts it to 21 bits behind the point, or to 8 more than a wide side needs.
pub fn steps(side: u32) -> f64 {
    let bits = 32 - side.max(1).saturating_sub(1).leading_zeros();
    2f64.powi((bits + 8).max(21) as i32)
}

/// A coordinate in elements. Mirrored ones go on behind the side, to twice its length.
fn elements(coordinate: f64, side: u32, normalized: bool, mode: u32) -> f64 {
    let at = if normalized {
        let steps = steps(side);
        let cut = (coordinate * steps).floor() / steps;
        let within = |period: f64| cut - period * (cut / period).floor();
        f64::from(side)
            * match mode {
                address_mode::WRAP => within(1.0),
                address_mode::MIRROR => within(2.0),
                _ => cut,
            }
    } else {
        coordinate
    };
    let side = f64::from(side);
    let at = if mode == address_mode::CLAMP_OGL { at.clamp(0.0, side) } else { at };
    if at.is_nan() { 0.0 } else { at.clamp(-FAR, FAR) }
}

/// The element that an index means; `None` for the border.
fn addressed(index: i64, side: u32, mode: u32) -> Option<i64> {
    let side = i64::from(side.max(1));
    match mode {
        address_mode::WRAP => Some(index.rem_euclid(side)),
        address_mode::MIRROR => {
            let at = index.rem_euclid(2 * side);
            Some(if at < side { at } else { 2 * side - 1 - at })
        }
        address_mode::CLAMP_TO_BORDER => (0..side).contains(&index).then_some(index),
        _ => Some(index.clamp(0, side - 1)),
    }
}

/// The weights of a footprint's corners in 256ths, of the elements' behind in each dimension: whole numbers, 256 together, as a GPU divides
/// what a plane has between its columns, and that between its rows. The corner's bits say in which dimensions it is behind.
fn weights([x, y, z]: [i64; 3], dimensions: usize) -> [i64; 8] {
    let part = |of: i64, weight: i64| (of * weight + 128) >> 8;
    let mut weights = [0; 8];
    if dimensions == 1 {
        (weights[0], weights[1]) = (256 - x, x);
        return weights;
    }
    for (plane, own) in [256 - z, z].into_iter().enumerate() {
        let behind = part(own, x);
        let front = own - behind;
        let (behind_below, front_above) = (part(behind, y), part(front, 256 - y));
        weights[4 * plane..4 * plane + 4].copy_from_slice(&[
            front_above,
            behind - behind_below,
            front - front_above,
            behind_below,
        ]);
    }
    weights
}

impl Sample<'_> {
    /// CUDA: repeating needs normalised coordinates, and is clamping without.
    fn mode(&self, dimension: usize, float: bool) -> u32 {
        let mode = self.sampler.address[dimension];
        let repeats = matches!(mode, address_mode::WRAP | address_mode::MIRROR);
        if repeats && (self.sampler.normalized == 0 || !float) { address_mode::CLAMP_TO_EDGE } else { mode }
    }

    fn cube_slice(&self, face: u32) -> u32 {
        let cubes = self.image.level(0).depth / 6;
        6 * self.layer.min(cubes.max(1) - 1) + face
    }

    /// Dimensions that the coordinates cover; the rest of the slice is fixed.
    fn dimensions(&self) -> usize {
        if self.geometry.is_cube() { 2 } else { self.geometry.coordinates() }
    }

    fn slice(&self, level: &Level) -> i64 {
        i64::from(self.layer.min(level.depth.max(1) - 1))
    }

    fn fetch(&self, point: Point, chosen: &Chosen) -> [u32; 4] {
        let first = self.level(point, self.image.level(chosen.first));
        if chosen.weight == 0 {
            return first;
        }
        let second = self.level(point, self.image.level(chosen.second));
        if !self.gives_floats() {
            return first;
        }
        let weight = chosen.weight as f64 / 256.0;
        std::array::from_fn(|nth| {
            let [a, b] = [first[nth], second[nth]].map(|it| f64::from(f32::from_bits(it)));
            (((1.0 - weight) * a + weight * b) as f32).to_bits()
        })
    }

    fn gives_floats(&self) -> bool {
        self.compare.is_some() || self.image.reads_floats()
    }

    fn level(&self, point: Point, level: &Level) -> [u32; 4] {
        match point {
            Point::Integer(at) => self.exact(at, level),
            Point::Float(at) if self.sampler.filter != 0 && self.gives_floats() => {
                self.filtered(self.feet(at, level), level)
            }
            Point::Float(at) => {
                let sides = [level.width, level.height, level.depth];
                let index: [i64; 3] = std::array::from_fn(|nth| {
                    let normalized = self.sampler.normalized != 0;
                    let at = elements(at[nth], sides[nth], normalized, self.mode(nth, true));
                    at.floor() as i64 + self.offset[nth]
                });
                self.nearest(index, level, true)
            }
        }
    }

    /// Integer coordinates name elements; outside of the program's own memory they give 0.
    fn exact(&self, at: [i64; 3], level: &Level) -> [u32; 4] {
        let index: [i64; 3] = std::array::from_fn(|nth| at[nth] + self.offset[nth]);
        let sides = [level.width, level.height, level.depth].map(i64::from);
        let inside = (0..self.dimensions()).all(|nth| (0..sides[nth].max(1)).contains(&index[nth]));
        if self.image.is(flag::LINEAR) && !inside {
            return [0; 4];
        }
        self.nearest(index, level, false)
    }

    fn nearest(&self, index: [i64; 3], level: &Level, float: bool) -> [u32; 4] {
        let sides = [level.width, level.height, level.depth];
        let mut at = [0, 0, self.slice(level)];
        for nth in 0..self.dimensions() {
            match addressed(index[nth], sides[nth], self.mode(nth, float)) {
                Some(index) => at[nth] = index,
                None => return self.compared(self.image.border(&self.sampler.border)),
            }
        }
        self.compared(self.image.texel(level, at))
    }

    /// An element of a filter's footprint.
    fn footprint(&self, index: [i64; 3], level: &Level) -> [u32; 4] {
        if self.geometry.is_cube() && self.image.is(flag::SEAMLESS) {
            let side = i64::from(level.width.max(1));
            let slice = self.slice(level);
            let (face, x, y) = cube::neighbour(slice % 6, index[0], index[1], side);
            return self.compared(self.image.texel(level, [x, y, slice - slice % 6 + face]));
        }
        let mut at = [0, 0, self.slice(level)];
        let sides = [level.width, level.height, level.depth];
        for nth in 0..self.dimensions() {
            let mode = match self.mode(nth, true) {
                // The coordinate was clamped; half an element beyond is the border's.
                address_mode::CLAMP_OGL => address_mode::CLAMP_TO_BORDER,
                mode => mode,
            };
            match addressed(index[nth], sides[nth], mode) {
                Some(index) => at[nth] = index,
                None => return self.compared(self.image.border(&self.sampler.border)),
            }
        }
        self.compared(self.image.texel(level, at))
    }

    /// `f`: 1 where the reference is not beyond the element, else 0.
    fn compared(&self, channels: [u32; 4]) -> [u32; 4] {
        let Some(reference) = self.compare else { return channels };
        let passes = reference <= f32::from_bits(channels[0]);
        [f32::from(u8::from(passes)).to_bits(), 0, 0, 1f32.to_bits()]
    }

    /// i = floor(x - 1/2) and α = frac(x - 1/2), rounded to 8 fractional bits.
    fn feet(&self, at: [f64; 3], level: &Level) -> [Foot; 3] {
        let sides = [level.width, level.height, level.depth];
        std::array::from_fn(|nth| {
            if nth >= self.dimensions() {
                return (0, 0);
            }
            let normalized = self.sampler.normalized != 0;
            let at = elements(at[nth], sides[nth], normalized, self.mode(nth, true));
            let fixed = ((at - 0.5) * 256.0 + 0.5).floor() as i64;
            ((fixed >> 8) + self.offset[nth], fixed & 255)
        })
    }

    /// Sum of weight × element over the footprint's corners.
    fn filtered(&self, feet: [Foot; 3], level: &Level) -> [u32; 4] {
        let mut sum = [0f64; 4];
        let parts = self.image.parts().filter(|_| self.compare.is_none());
        let whole = |value: f64| (value + 0.5).floor();
        for (corner, weight) in
            weights(feet.map(|(_, alpha)| alpha), self.dimensions()).into_iter().enumerate()
        {
            // What has no weight has no part, also when it is infinite.
            if weight == 0 {
                continue;
            }
            let index = std::array::from_fn(|nth| feet[nth].0 + (corner as i64 >> nth & 1));
            for (sum, channel) in sum.iter_mut().zip(self.footprint(index, level)) {
                let value = f64::from(f32::from_bits(channel));
                *sum += weight as f64 / 256.0 * parts.map_or(value, |(parts, _)| whole(value * parts));
            }
        }
        sum.map(|channel| match parts {
            Some((parts, made)) => whole(channel * made / parts) as f32 / made as f32,
            None => channel as f32,
        })
        .map(f32::to_bits)
    }

    /// One component of the footprint's four elements, counter-clockwise from the lower left.
    fn gather(&self, point: Point, component: u8) -> [u64; MAX_WORDS] {
        let mut words = [0; MAX_WORDS];
        let Point::Float(at) = point else { return words };
        let level = self.image.level(0);
        let feet = self.feet(at, level);
        for (word, [x, y]) in words.iter_mut().zip([[0, 1], [1, 1], [1, 0], [0, 0]]) {
            let channels = self.footprint([feet[0].0 + x, feet[1].0 + y, 0], level);
            let component = if self.compare.is_some() { 0 } else { usize::from(component) & 3 };
            *word = channels[component].into();
        }
        words
    }
}
