//! Cubemaps and mipmaps.

use super::model::{self, Model};
use super::support::*;
use super::*;

#[test]
fn cubemaps_choose_the_face_by_the_longest_axis() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("c", "tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c2}];"),
            ("ac", "tex.acube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c3,%c0,%c1,%c2}];"),
            ("g", "tld4.g.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c2}];"),
        ],
    );
    let mut numbers = Numbers(1);
    let directions: Vec<[f32; 3]> = (0..256).map(|_| [(); 3].map(|()| numbers.between(-3.0, 3.0))).collect();
    for filter in [hipFilterModePoint, hipFilterModeLinear] {
        let desc = sampler(hipAddressModeClamp, filter, HIP_TRSF_NORMALIZED_COORDINATES);
        let cube = Case::new([4, 4, 6], FLOAT4, hipArrayCubemap, desc);
        let cubes = Case::new([4, 4, 18], FLOAT4, hipArrayCubemap | hipArrayLayered, desc);
        for (name, case) in [("c", &cube), ("ac", &cubes), ("g", &cube)] {
            let asked = |nth: usize| if name == "ac" { [0u32, 1, 2, 3, u32::MAX][nth % 5] } else { 0 };
            let inputs: Vec<[u32; IN]> = directions
                .iter()
                .enumerate()
                .map(|(nth, direction)| {
                    let mut input = words(direction);
                    input[3] = asked(nth);
                    input
                })
                .collect();
            let results = bench.run(name, case.handle(), 0, &inputs).unwrap();
            for (nth, (direction, result)) in directions.iter().zip(&results).enumerate() {
                let (face, [s, t]) = model::face(direction.map(f64::from));
                let slice = i64::from(asked(nth).min(2)) * 6 + face;
                let want = match name {
                    "g" => case.model.gather([s, t], slice, [0; 3], 1),
                    _ => case.model.fetch([s, t, 0.0], slice, [0; 3]),
                };
                agree(bits(result, true, false), want, false, &|| format!("{name} {direction:?}"));
            }
        }
    }
}

#[test]
fn a_seamless_cubemap_filters_over_its_edges() {
    let mut bench =
        Bench::new("", "", &[("c", "tex.cube.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c2}];")]);
    // Every face has its own value, so a point on an edge between two is their mean.
    let side = 4;
    let array = array([side, side, 6], FLOAT1, hipArrayCubemap);
    let bytes: Vec<u8> =
        (0..6).flat_map(|face| (0..side * side).flat_map(move |_| (face as f32).to_le_bytes())).collect();
    upload(array, &bytes, side * 4, side, 6);
    let flags = HIP_TRSF_NORMALIZED_COORDINATES | 0x40;
    let object = texture(&of_array(array), &sampler(hipAddressModeClamp, hipFilterModeLinear, flags));
    let at = |x: f32, y: f32, z: f32| words(&[x, y, z]);
    let directions = [
        (at(1.0, 0.1, 0.999_999), 2.0),   // +x (0) and +z (4)
        (at(-0.999_999, 1.0, 0.1), 1.5),  // -x (1) and +y (2)
        (at(0.1, -1.0, -0.999_999), 4.0), // -y (3) and -z (5)
        (at(1.0, 0.1, 0.2), 0.0),
    ];
    let inputs: Vec<[u32; IN]> = directions.iter().map(|it| it.0).collect();
    let results = bench.run("c", object as u64, 0, &inputs).unwrap();
    for (result, (input, want)) in results.iter().zip(directions) {
        assert!((f32::from_bits(result[0]) - want).abs() < 0.01, "{input:?}: {result:?}, not {want}");
    }
    hipTexObjectDestroy(object).unwrap();
    hipArrayDestroy(array).unwrap();
}

struct Mipmaps {
    handle: hipMipmappedArray_t,
    levels: Vec<Model>,
}

impl Mipmaps {
    fn new(size: [usize; 3], n: u32, desc: HIP_TEXTURE_DESC) -> Mipmaps {
        let array_desc = HIP_ARRAY3D_DESCRIPTOR {
            Width: size[0],
            Height: size[1],
            Depth: size[2],
            Format: HIP_AD_FORMAT_FLOAT,
            NumChannels: 2,
            Flags: 0,
        };
        let mut handle = std::ptr::null_mut();
        hipMipmappedArrayCreate(Out::from(&mut handle), &array_desc, n).unwrap();
        let levels = (0..n)
            .map(|level| {
                let mut array = std::ptr::null_mut();
                hipMipmappedArrayGetLevel(Out::from(&mut array), handle, level).unwrap();
                let format = Format(HIP_AD_FORMAT_FLOAT, 2);
                let size = size.map(|it| (it >> level).max(1));
                // Different contents on each level.
                let mut bytes = contents(format, size.iter().product::<usize>() + 10 * level as usize);
                bytes.truncate(size.iter().product::<usize>() * 8);
                upload(array, &bytes, size[0] * 8, size[1], size[2]);
                Model { bytes, format, size, dimensions: 2, desc, is_exact: false }
            })
            .collect();
        Mipmaps { handle, levels }
    }

    fn texture(&self, desc: &HIP_TEXTURE_DESC, view: Option<&HIP_RESOURCE_VIEW_DESC>) -> hipTextureObject_t {
        let mut res = HIP_RESOURCE_UNION { reserved: [0; 32] };
        res.mipmap = self.handle;
        let resource = HIP_RESOURCE_DESC { resType: hipResourceTypeMipmappedArray, res, flags: 0 };
        let mut object = std::ptr::null_mut();
        hipTexObjectCreate(Out::from(&mut object), &resource, desc, view).unwrap();
        object
    }

    /// The fetch at a level of the sampler's, by the guide: nearest level, or between two.
    fn fetch(&self, x: [f64; 3], lod: f64, desc: &HIP_TEXTURE_DESC) -> [f64; 4] {
        let last = self.levels.len() - 1;
        let lod = (lod + f64::from(desc.mipmapLevelBias))
            .max(desc.minMipmapLevelClamp.into())
            .min(desc.maxMipmapLevelClamp.into())
            .max(0.0)
            .min(last as f64);
        if desc.mipmapFilterMode == hipFilterModePoint {
            return self.levels[(lod + 0.5).floor() as usize].fetch(x, 0, [0; 3]);
        }
        // A level's weight is cut, as an H200 does.
        let weight = ((lod - lod.floor()) * 256.0).floor() / 256.0;
        let first = self.levels[lod as usize].fetch(x, 0, [0; 3]);
        let second = self.levels[(lod as usize + 1).min(last)].fetch(x, 0, [0; 3]);
        std::array::from_fn(|nth| (1.0 - weight) * first[nth] + weight * second[nth])
    }
}

#[test]
fn levels_are_chosen_by_number_and_by_gradient() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("b", "tex.base.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
            ("l", "tex.level.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}], %c2;"),
            ("i", "tex.level.2d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}], %c2;"),
            ("g", "tex.grad.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}], {%c2,%c3}, {%c4,%c5};"),
            (
                "w",
                "txq.level.width.b32 %o0, [%t], %c0; txq.level.height.b32 %o1, [%t], %c0; \
                   txq.num_mipmap_levels.b32 %o2, [%t]; txq.level.depth.b32 %o3, [%t], %c0;",
            ),
        ],
    );
    for (filter, mip_filter) in [
        (hipFilterModePoint, hipFilterModePoint),
        (hipFilterModeLinear, hipFilterModePoint),
        (hipFilterModePoint, hipFilterModeLinear),
        (hipFilterModeLinear, hipFilterModeLinear),
    ] {
        for (bias, least, greatest) in [(0.0, 0.0, 10.0), (0.75, 0.5, 2.25), (-1.0, 0.0, 0.0)] {
            let desc = HIP_TEXTURE_DESC {
                mipmapFilterMode: mip_filter,
                mipmapLevelBias: bias,
                minMipmapLevelClamp: least,
                maxMipmapLevelClamp: greatest,
                ..sampler(hipAddressModeWrap, filter, HIP_TRSF_NORMALIZED_COORDINATES)
            };
            let maps = Mipmaps::new([16, 8, 0], 4, desc);
            let object = maps.texture(&desc, None);
            let mut numbers = Numbers(17);
            let points: Vec<[f32; 3]> = (0..96)
                .map(|_| [numbers.between(-1.0, 2.0), numbers.between(-1.0, 2.0), numbers.between(-1.0, 5.0)])
                .collect();
            let inputs: Vec<[u32; IN]> = points.iter().map(|it| words(it)).collect();
            let results = bench.run("l", object as u64, 0, &inputs).unwrap();
            for (point, result) in points.iter().zip(&results) {
                let x = [point[0].into(), point[1].into(), 0.0];
                let want = maps.fetch(x, point[2].into(), &desc);
                agree(bits(result, true, false), want, false, &|| format!("level {point:?} {desc:?}"));
            }
            for (point, result) in points.iter().zip(bench.run("b", object as u64, 0, &inputs).unwrap()) {
                let want = maps.levels[0].fetch([point[0].into(), point[1].into(), 0.0], 0, [0; 3]);
                agree(bits(&result, true, false), want, false, &|| format!("base {point:?}"));
            }
            // Steps along the axes, of 2^k elements: the longer one says the level.
            let steps =
                [(1.0, 0.5, 0.0), (2.0, 0.25, 1.0), (0.125, 4.0, 2.0), (8.0, 8.0, 3.0), (0.0, 0.25, -2.0)];
            let inputs: Vec<[u32; IN]> = steps
                .iter()
                .map(|&(dx, dy, _): &(f32, f32, f64)| words(&[0.3, 0.7, dx / 16.0, 0.0, 0.0, dy / 8.0]))
                .collect();
            for ((_, _, lod), result) in steps.iter().zip(bench.run("g", object as u64, 0, &inputs).unwrap())
            {
                let want = maps.fetch([f64::from(0.3f32), f64::from(0.7f32), 0.0], *lod, &desc);
                agree(bits(&result, true, false), want, false, &|| format!("gradient of level {lod}"));
            }
            hipTexObjectDestroy(object).unwrap();
            hipMipmappedArrayDestroy(maps.handle).unwrap();
        }
    }
    let desc = sampler(hipAddressModeClamp, hipFilterModePoint, 0);
    let maps = Mipmaps::new([16, 8, 0], 4, desc);
    let object = maps.texture(&desc, None);
    for level in 0..4usize {
        let got = bench.one("i", object as u64, &[1, 0, level as u32]);
        agree(bits(&got, true, false), maps.levels[level].element([1, 0, 0]), true, &|| {
            format!("level {level}")
        });
        let sizes = bench.one("w", object as u64, &[level as u32]);
        assert_eq!(sizes[..3], [16 >> level, 8 >> level, 4]);
    }
    // Levels of a volume.
    let deep = Mipmaps::new([16, 8, 4], 4, desc);
    let volume = deep.texture(&desc, None);
    for level in 0..4u32 {
        let sizes = bench.one("w", volume as u64, &[level]);
        assert_eq!(sizes[..4], [16 >> level, 8 >> level, 4, (4 >> level).max(1)]);
    }
    hipTexObjectDestroy(volume).unwrap();
    hipMipmappedArrayDestroy(deep.handle).unwrap();
    // A view of levels 1 and 2 only.
    let view = HIP_RESOURCE_VIEW_DESC {
        format: 0x17,
        width: 8,
        height: 4,
        firstMipmapLevel: 1,
        lastMipmapLevel: 2,
        ..HIP_RESOURCE_VIEW_DESC::default()
    };
    let part = maps.texture(&desc, Some(&view));
    assert_eq!(bench.one("w", part as u64, &[0])[..3], [8, 4, 2]);
    let got = bench.one("i", part as u64, &[1, 0, 1]);
    agree(bits(&got, true, false), maps.levels[2].element([1, 0, 0]), true, &|| "view".to_owned());
    for object in [object, part] {
        hipTexObjectDestroy(object).unwrap();
    }
    hipMipmappedArrayDestroy(maps.handle).unwrap();
}
