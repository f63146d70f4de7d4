//! Groups beside single lanes: the same bits for random objects, accesses, coordinates and masks.

use compiler::texture::{Access, Bounds, Geometry, Level as Lod, MAX_LANES, Sampler, Texel, column, mark};

use super::vector::One;
use super::*;
use crate::exec::texture::texel::*;
use crate::exec::texture::{Level, MAX_LEVELS, flag};

struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 32) as u32
    }

    fn below(&mut self, limit: u32) -> u32 {
        self.next() % limit
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// Around the texture, at its edges, or anything else that a register may have.
    fn coordinate(&mut self, side: u32, normalized: bool) -> u32 {
        let side = if normalized { 1.0 } else { side as f32 };
        let at = (self.next() as f32 / 4_294_967_296.0 * 3.0 - 1.0) * side;
        match self.below(16) {
            0 => self.next(),
            1 => self
                .of(&[f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.0, 0.0, f32::MAX, 1e-40, -1e-30])
                .to_bits(),
            2 => self
                .of(&[4_194_303.5f32, -4_194_303.8, 4_194_304.0, 8_388_609.0, -4_194_304.5, 1e9, -1e9])
                .to_bits(),
            3..7 => ((at * 512.0).floor() / 512.0).to_bits(),
            7 => side.to_bits(),
            8 => (at * 1000.0).to_bits(),
            _ => at.to_bits(),
        }
    }

    fn index(&mut self, side: u32) -> u32 {
        match self.below(8) {
            0 => self.next(),
            1 => self.of(&[i32::MAX, i32::MIN, -1, 0]).cast_unsigned(),
            _ => self.below(3 * side).wrapping_sub(side),
        }
    }
}

const FORMATS: [u32; 8] = [UNSIGNED_8, UNSIGNED_16, UNSIGNED_32, SIGNED_8, SIGNED_16, SIGNED_32, HALF, FLOAT];

/// An object of any kind over `memory`, which is as long as the largest needs.
fn object(numbers: &mut Numbers, memory: &mut [u32], is_surface: bool) -> Image {
    let sides = [(); 3].map(|()| 1 + numbers.below(9));
    let (format, channels) = (numbers.of(&FORMATS), numbers.of(&[1, 2, 4]));
    object_of(numbers, memory, is_surface, sides, (format, channels))
}

fn object_of(
    numbers: &mut Numbers,
    memory: &mut [u32],
    is_surface: bool,
    [width, height, depth]: [u32; 3],
    (format, channels): (u32, u32),
) -> Image {
    let mut image = Image {
        mark: if is_surface { mark::SURFACE } else { mark::TEXTURE },
        format,
        channels,
        flags: numbers.next() & (flag::LAYERED | flag::LINEAR | flag::NORMALIZED_FLOAT | flag::SEAMLESS),
        n_levels: numbers.of(&[1, 1, 1, 2]),
        dimensions: 3,
        mipmapped: 0,
        sampler: Sampler {
            normalized: numbers.below(2),
            filter: numbers.below(2),
            address: [(); 3].map(|()| numbers.below(5)),
            mip_filter: numbers.below(2),
            max_level: 1.0,
            border: numbers.of(&[[0.25, -0.5, 3.0, 0.75], [0.0; 4], [f32::INFINITY, -0.0, 1e-40, 2.0]]),
            ..Sampler::default()
        },
        levels: [Level::NONE; MAX_LEVELS],
        plans: [None; 2],
    };
    if numbers.below(8) == 0 {
        image.flags |= flag::SRGB;
    }
    let pitch = (u64::from(width) * image.element_bytes()).next_multiple_of(32);
    let slice = pitch * u64::from(height);
    for level in &mut image.levels[..2] {
        *level = Level { data: memory.as_mut_ptr().cast(), pitch, slice, width, height, depth, zero: 0 };
    }
    image.plans = Image::plans(&image);
    let is_special = numbers.below(4) == 0;
    for word in memory.iter_mut() {
        *word = match numbers.below(8) {
            0 if is_special => {
                numbers.of(&[0x7f80_0000, 0xff80_0000, 0x8000_0000, 1, 0x7fc1_2345, 0x7c00_fc00])
            }
            _ if format == FLOAT => (numbers.below(2000) as f32 / 7.0 - 100.0).to_bits(),
            _ => numbers.next(),
        };
    }
    image
}

const GEOMETRIES: [Geometry; 7] = [
    Geometry::D1,
    Geometry::D2,
    Geometry::D3,
    Geometry::Layered1,
    Geometry::Layered2,
    Geometry::Cube,
    Geometry::LayeredCube,
];

/// The arguments of a group: one column after the other.
fn arguments(numbers: &mut Numbers, access: Access, lanes: usize, images: &[&Image]) -> Vec<u64> {
    let image = images[0];
    let sides = [image.levels[0].width, image.levels[0].height, image.levels[0].depth];
    let mut words = vec![0; (access.arguments() + access.results().len()) * lanes];
    let several = numbers.below(4) == 0;
    let (geometry, float) = match access {
        Access::Fetch { geometry, float, .. } => (geometry, float),
        Access::Gather { geometry, .. } => (geometry, true),
        Access::Load { geometry, .. } | Access::Store { geometry, .. } => (geometry, false),
        _ => (Geometry::D1, false),
    };
    for lane in 0..lanes {
        let handle = if several { numbers.of(images) } else { image };
        words[lane] = std::ptr::from_ref(handle) as u64;
        for nth in 1..access.arguments() {
            let dimension = nth.wrapping_sub(1 + geometry.indices());
            words[nth * lanes + lane] = match dimension {
                0..3 if float => numbers.coordinate(sides[dimension], image.sampler.normalized != 0).into(),
                0..3 => {
                    let row = if dimension == 0 { image.element_bytes() as u32 } else { 1 };
                    let row =
                        if matches!(access, Access::Load { .. } | Access::Store { .. }) { row } else { 1 };
                    numbers.index(sides[dimension] * row).into()
                }
                _ => numbers.index(sides[2]).into(),
            };
        }
    }
    if numbers.below(3) == 0 {
        put_in_rows(numbers, access, lanes, geometry, float, &mut words);
    }
    words
}

/// Lanes go on from the first one along x, as those of images do.
fn put_in_rows(
    numbers: &mut Numbers,
    access: Access,
    lanes: usize,
    geometry: Geometry,
    float: bool,
    words: &mut [u64],
) {
    let step = numbers.of(&[1.0, 0.5, 0.25, 0.125, 1.0 / 64.0, -0.25]);
    for nth in 1..access.arguments() {
        let (first, rest) = words[nth * lanes..][..lanes].split_at_mut(1);
        for (before, word) in rest.iter_mut().enumerate() {
            let along = before + 1;
            *word = match first[0] as u32 {
                at if nth != 1 + geometry.indices() => at,
                at if float => (f32::from_bits(at) + along as f32 * step).to_bits(),
                at => at.wrapping_add(along as u32),
            }
            .into();
        }
    }
}

/// What single lanes make of a group's arguments: the status, and the columns after it.
fn one_by_one(access: Access, lanes: usize, active: u64, words: &[u64]) -> (i32, Vec<u64>) {
    let mut after = words.to_vec();
    for lane in lanes_of(active) {
        let mut own = [0; MAX_WORDS];
        for nth in 0..access.arguments() {
            own[nth] = words[nth * lanes + lane];
        }
        if let Err(fault) = run(access, &mut own) {
            return (status(&fault), after);
        }
        for nth in 0..access.n_results() {
            after[(access.arguments() + nth) * lanes + lane] = own[nth];
        }
    }
    (0, after)
}

/// The same by the service for one lane.
fn apart(access: Access, lanes: usize, active: u64, words: &[u64]) -> (i32, Vec<u64>) {
    let mut after = words.to_vec();
    for lane in lanes_of(active) {
        let mut own = [0; MAX_WORDS];
        for nth in 0..access.arguments() {
            own[nth] = words[nth * lanes + lane];
        }
        // SAFETY: the words are the access's arguments.
        let status = unsafe { super::super::access(std::ptr::null(), access.code(), own.as_mut_ptr()) };
        if status != 0 {
            return (status, after);
        }
        for nth in 0..access.n_results() {
            after[(access.arguments() + nth) * lanes + lane] = own[nth];
        }
    }
    (0, after)
}

/// The same by one call.
fn together(access: Access, lanes: usize, active: u64, words: &[u64]) -> (i32, Vec<u64>) {
    let mut columns = vec![0u64; words.len()];
    let at = columns.as_mut_ptr().cast::<u8>();
    let item = |nth: usize, lane: usize, wide: bool| {
        // SAFETY: inside of the columns, as the layout says.
        unsafe { at.add(column(nth, lanes) + lane * if wide { 8 } else { 4 }) }
    };
    for nth in 0..access.arguments() {
        let wide = access.is_wide_argument(nth);
        for lane in 0..lanes {
            let bytes = words[nth * lanes + lane].to_le_bytes();
            let size = if wide { 8 } else { 4 };
            // SAFETY: as above.
            unsafe { item(nth, lane, wide).copy_from_nonoverlapping(bytes.as_ptr(), size) }
        }
    }
    let one_handle = (1..lanes).all(|lane| words[lane] == words[0]) && active & 1 == 1;
    let group = lanes as u32 | if one_handle { group::ONE_HANDLE } else { 0 };
    // SAFETY: the columns are the access's.
    let status = unsafe { access_group(std::ptr::null(), access.code(), at, active, group) };
    let mut after = words.to_vec();
    for nth in 0..access.n_results() {
        let wide = access.has_wide_results();
        for lane in lanes_of(active) {
            let mut bytes = [0; 8];
            let size = if wide { 8 } else { 4 };
            // SAFETY: as above.
            unsafe {
                item(access.arguments() + nth, lane, wide).copy_to_nonoverlapping(bytes.as_mut_ptr(), size)
            }
            after[(access.arguments() + nth) * lanes + lane] = u64::from_le_bytes(bytes);
        }
    }
    (status, after)
}

fn mask(numbers: &mut Numbers, lanes: usize) -> u64 {
    let all = if lanes == 64 { u64::MAX } else { (1 << lanes) - 1 };
    let random = u64::from(numbers.next()) << 32 | u64::from(numbers.next());
    let one = 1 << numbers.below(lanes as u32);
    all & numbers.of(&[u64::MAX, random, random & random.rotate_left(7), one])
}

#[test]
fn fetches_of_a_group_are_those_of_its_lanes() {
    let mut numbers = Numbers(3);
    let mut memory = [vec![0u32; 9 * 9 * 40], vec![0u32; 9 * 9 * 40]];
    for round in 0..8_000 {
        let [first, second] = &mut memory;
        let images = [object(&mut numbers, first, false), object(&mut numbers, second, false)];
        let access = Access::Fetch {
            geometry: numbers.of(&GEOMETRIES),
            float: numbers.below(3) != 0,
            level: numbers.of(&[Lod::Base, Lod::Base, Lod::Explicit, Lod::Gradient]),
            texel: numbers.of(&[Texel::Words, Texel::Words, Texel::Words, Texel::Halves, Texel::Pairs]),
            sampler: false,
            offset: numbers.below(8) == 0,
            compare: numbers.below(8) == 0,
        };
        let lanes = numbers.of(&[2, 4, 8, 16, 32, 64]);
        let active = mask(&mut numbers, lanes);
        let words = arguments(&mut numbers, access, lanes, &images.each_ref());
        let want = one_by_one(access, lanes, active, &words);
        for way in [together, apart] {
            let got = way(access, lanes, active, &words);
            assert!(want == got, "{round}: {access:?} of {images:?}: {want:x?}, not {got:x?}");
        }
    }
}

/// The vectors that this machine has, and the one that every machine has: what they do not leave is right, and they
/// leave little.
#[test]
fn all_vectors_give_the_same_texels() {
    let mut numbers = Numbers(5);
    let mut memory = vec![0u32; 9 * 9 * 40];
    let (mut asked, mut done) = ([0u32; 3], [0u32; 3]);
    for round in 0..4_000 {
        let image = object(&mut numbers, &mut memory, false);
        let geometry = numbers.of(&GEOMETRIES[..5]);
        let float = numbers.below(3) != 0;
        let Some(plan) = Plan::of(&image, float) else { continue };
        let access = words_of(geometry, float, Lod::Base);
        let words = arguments(&mut numbers, access, MAX_LANES, &[&image]);
        let want = one_by_one(access, MAX_LANES, u64::MAX, &words).1;
        let items: Vec<u32> = words.iter().map(|&word| word as u32).collect();
        let columns = |nth: usize| items[nth * MAX_LANES..].as_ptr();
        for (nth, vectors) in [1, 8, 16].into_iter().enumerate() {
            if vectors > plan.widest {
                continue;
            }
            let mut results = [[0u32; MAX_LANES]; 4];
            let lanes = Lanes {
                n: MAX_LANES,
                layer: geometry.is_layered().then(|| columns(1)),
                coordinates: columns(1 + geometry.indices()),
                step: MAX_LANES,
                results: results.as_mut_ptr().cast(),
                results_step: MAX_LANES,
            };
            // SAFETY: the lanes have columns of that length; the processor was asked.
            let left = unsafe {
                match vectors {
                    16 => by_sixteen::fetch(&plan, geometry.coordinates(), float, &lanes),
                    8 => by_eight::fetch(&plan, geometry.coordinates(), float, &lanes),
                    _ => fetch::one_by_one::fetch(&plan, geometry.coordinates(), float, &lanes),
                }
            };
            asked[nth] += MAX_LANES as u32;
            for lane in lanes_of(!left) {
                done[nth] += 1;
                for (column, items) in results.iter().enumerate() {
                    let want = want[(access.arguments() + column) * MAX_LANES + lane];
                    let got = u64::from(items[lane]);
                    assert_eq!(got, want, "{round}: {vectors} lanes, {lane}: {access:?} of {image:?}");
                }
            }
        }
    }
    assert!(asked.iter().zip(done).all(|(&asked, done)| done >= asked / 5 * 3), "{done:?} of {asked:?}");
}

/// Elements of 32 bits at coordinates along lines that lie across the image in any direction, so that lanes are near to
/// each other in one row, in two or in more, inside and across the edges.
#[test]
fn lines_through_images_have_the_texels_of_their_lanes() {
    let mut numbers = Numbers(11);
    let mut memory = vec![0u32; 80 * 40 * 4];
    for round in 0..400 {
        let sides = [
            numbers.of(&[3, 20, 33, 64, 70, 80]),
            numbers.of(&[1, 2, 3, 16, 29, 32, 40]),
            numbers.of(&[1, 2, 3, 4]),
        ];
        let element = numbers.of(&[
            (FLOAT, 1),
            (FLOAT, 1),
            (FLOAT, 1),
            (UNSIGNED_8, 4),
            (UNSIGNED_16, 2),
            (SIGNED_32, 1),
            (HALF, 2),
        ]);
        let mut image = object_of(&mut numbers, &mut memory, false, sides, element);
        image.flags &= !(flag::LAYERED | flag::SRGB);
        image.n_levels = 1;
        if numbers.below(8) == 0 {
            // Products and sums that are no floats, and ones of which little is left.
            for word in &mut memory {
                *word = numbers.of(&[0x7f7f_ffff, 0xff7f_ffff, 0x7f00_0001, 0x8000_0000, 1, 0x8000_0003]);
            }
        }
        image.plans = Image::plans(&image);
        for _ in 0..20 {
            let geometry = numbers.of(&[Geometry::D2, Geometry::D2, Geometry::D3, Geometry::D1]);
            let float = numbers.below(4) != 0;
            let access = words_of(geometry, float, Lod::Base);
            let lanes = numbers.of(&[4, 8, 16, 32, 64]);
            let words = line(&mut numbers, access, lanes, &image);
            let active = mask(&mut numbers, lanes);
            let want = one_by_one(access, lanes, active, &words);
            assert!(want == together(access, lanes, active, &words), "{round}: {access:?} of {image:?}");
            let items: Vec<u32> = words.iter().map(|&word| word as u32).collect();
            let mut results = vec![0u32; 4 * MAX_LANES];
            for vectors in [8, 16] {
                let Some(plan) = image.plans[usize::from(float)].filter(|plan| plan.widest >= vectors) else {
                    continue;
                };
                if lanes < vectors {
                    continue;
                }
                let fetched = Lanes {
                    n: lanes,
                    layer: None,
                    coordinates: items[lanes..].as_ptr(),
                    step: lanes,
                    results: results.as_mut_ptr(),
                    results_step: MAX_LANES,
                };
                // SAFETY: the lanes have columns of that length; the plan says what the processor has.
                let left = unsafe {
                    match vectors {
                        16 => by_sixteen::fetch(&plan, geometry.coordinates(), float, &fetched),
                        _ => by_eight::fetch(&plan, geometry.coordinates(), float, &fetched),
                    }
                };
                for lane in lanes_of(!left & active) {
                    for column in 0..4 {
                        let want = want.1[(access.arguments() + column) * lanes + lane];
                        let got = u64::from(results[column * MAX_LANES + lane]);
                        assert_eq!(got, want, "{round}: {vectors} lanes, {lane}: {access:?} of {image:?}");
                    }
                }
            }
        }
    }
}

/// Coordinates in elements by `f32` are those by `f64`, where a plan says so.
#[test]
fn short_coordinates_are_exact() {
    let mut numbers = Numbers(13);
    for round in 0..40_000 {
        let (side, mode) = (1 << numbers.below(18), numbers.of(&[0, 1, 3]));
        let mut memory = [0u32; 8];
        let mut image = object_of(&mut numbers, &mut memory, false, [1, 1, 1], (UNSIGNED_8, 1));
        image.flags = 0;
        image.sampler = Sampler { normalized: 1, address: [mode; 3], ..Sampler::default() };
        image.levels[0] = Level { width: side, pitch: side.next_multiple_of(32).into(), ..image.levels[0] };
        let axis = Plan::of(&image, true).unwrap().axes[0];
        let at = match numbers.below(3) {
            0 => f32::from_bits(numbers.next()),
            1 => (numbers.next() as f32 / 4_294_967_296.0 - 0.5) * 16.0,
            _ => f32::from_bits(axis.limit.to_bits() - 1 - numbers.below(4)) * numbers.of(&[1.0, -1.0]),
        };
        if at.abs() < axis.limit {
            // SAFETY: every processor's vectors, and no memory.
            let (short, long) =
                unsafe { (fetch::short::<One>(&axis, at), fetch::elements::<One>(&axis, at)) };
            assert_eq!(short.is_some(), side <= 1 << 15, "{round}: {axis:?}");
            assert!(short.is_none_or(|short| f64::from(short) == long), "{round}: {at} of {axis:?}");
        }
    }
}

/// A fetch's arguments: coordinates that go on from lane to lane by the same steps.
fn line(numbers: &mut Numbers, access: Access, lanes: usize, image: &Image) -> Vec<u64> {
    let Access::Fetch { geometry, float, .. } = access else { unreachable!() };
    let sides = [image.levels[0].width, image.levels[0].height, image.levels[0].depth];
    let mut words = vec![0; (access.arguments() + access.results().len()) * lanes];
    words[..lanes].fill(std::ptr::from_ref(image) as u64);
    for nth in 0..geometry.coordinates() {
        let side = sides[nth] as f32;
        let part = numbers.next() as f32 / 4_294_967_296.0;
        let mut step = match nth {
            0 => numbers.of(&[1.0, 0.75, 0.5, 1.5, 1.9, 0.3 * part, 1.0 + part, -0.75, -1.25]),
            1 => numbers.of(&[0.0, 0.0, 0.0625, -0.0625, 0.02, -0.03, 0.5]),
            _ => numbers.of(&[0.0, 0.0, 0.0, 0.1]),
        };
        let mut first = (1.3 * numbers.next() as f32 / 4_294_967_296.0 - 0.15) * side;
        match numbers.below(4) {
            // Weights of 0 and of next to all.
            0 => first = first.floor() + 0.5,
            1 => first = first.floor() + 0.5 - 1.0 / 256.0,
            _ => {}
        }
        if !float {
            (first, step) = (first.floor(), step.round());
        }
        for lane in 0..lanes {
            let at = first + lane as f32 * step;
            words[(1 + nth) * lanes + lane] = if !float {
                (at as i32).cast_unsigned().into()
            } else if image.sampler.normalized != 0 {
                (at / side).to_bits().into()
            } else {
                at.to_bits().into()
            };
        }
    }
    words
}

#[test]
fn surfaces_of_a_group_are_those_of_its_lanes() {
    let mut numbers = Numbers(9);
    let mut memory = vec![0u32; 9 * 9 * 40 + 16];
    for round in 0..8_000 {
        let image = object(&mut numbers, &mut memory, true);
        let geometry = numbers.of(&GEOMETRIES[..5]);
        let bounds = numbers.of(&[Bounds::Trap, Bounds::Clamp, Bounds::Zero, Bounds::Zero]);
        let (bits, n) =
            numbers.of(&[(8, 1), (16, 1), (32, 1), (64, 1), (8, 4), (16, 4), (32, 4), (64, 2), (32, 2)]);
        let formatted = numbers.below(2) == 0;
        let access = match numbers.below(2) {
            0 => Access::Load { geometry, bits, lanes: n, bounds },
            _ => Access::Store {
                geometry,
                bits: if formatted { 32 } else { bits },
                lanes: n,
                bounds,
                formatted,
            },
        };
        let lanes = numbers.of(&[2, 4, 8, 16, 32, 64]);
        let active = mask(&mut numbers, lanes);
        let words = arguments(&mut numbers, access, lanes, &[&image]);
        let before = memory.clone();
        let want = one_by_one(access, lanes, active, &words);
        let stored = std::mem::take(&mut memory);
        memory = stored.clone();
        // The object is over the same memory, as it was.
        let mut own = Image {
            levels: image.levels.map(|level| Level { data: memory.as_mut_ptr().cast(), ..level }),
            ..image
        };
        own.plans = Image::plans(&own);
        memory.copy_from_slice(&before);
        let words: Vec<u64> = words
            .iter()
            .map(|&word| {
                if word == std::ptr::from_ref(&image) as u64 { std::ptr::from_ref(&own) as u64 } else { word }
            })
            .collect();
        let got = together(access, lanes, active, &words);
        assert!(want.0 == got.0 && memory == stored, "{round}: {access:?} of {image:?}");
        if want.0 == 0 {
            assert_eq!(want.1[lanes..], got.1[lanes..], "{round}: {access:?} of {image:?}");
        }
    }
}

#[test]
fn a_group_without_a_lane_asks_nothing() {
    let access = Access::Load { geometry: Geometry::D1, bits: 32, lanes: 1, bounds: Bounds::Trap };
    let plain = Access::of_code(0).unwrap();
    for access in [access, plain] {
        let words = vec![8u64; (access.arguments() + access.n_results()) * 8];
        assert_eq!(together(access, 8, 0, &words).0, 0);
    }
}
