//! Textures and surfaces: every instruction in every setting, against a sampler of the tests' own.
// SAFETY of every block here: HIP's contract; out-pointers are to locals.
#![allow(clippy::undocumented_unsafe_blocks, reason = "said once above")]
#![allow(non_upper_case_globals, reason = "constants are HIP's")]

mod cube_and_levels;
mod forms;
mod groups;
mod model;
mod names;
mod support;
mod surface;

use model::Model;
use support::*;

use border::Out;
use hip_cpu::api::*;
use hip_sys::*;

const MODES: [hipTextureAddressMode; 4] =
    [hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder];

fn bits(words: &[u32], floats: bool, signed: bool) -> [f64; 4] {
    std::array::from_fn(|nth| match (floats, signed) {
        (true, _) => f64::from(f32::from_bits(words[nth])),
        (false, true) => f64::from(words[nth].cast_signed()),
        (false, false) => f64::from(words[nth]),
    })
}

fn is_signed(format: Format) -> bool {
    matches!(format.0, HIP_AD_FORMAT_SIGNED_INT8 | HIP_AD_FORMAT_SIGNED_INT16 | HIP_AD_FORMAT_SIGNED_INT32)
}

/// Contents of `n` elements: small finite numbers for floats, all values for integers.
fn contents(format: Format, n: usize) -> Vec<u8> {
    let mut numbers = Numbers(7 + n as u64);
    let mut bytes = vec![];
    for _ in 0..n * format.1 as usize {
        let number = numbers.next();
        match format.0 {
            HIP_AD_FORMAT_FLOAT => {
                bytes.extend((number as f32 / (1u32 << 28) as f32 - 4.0).to_le_bytes());
            }
            // Exponents below infinity's.
            HIP_AD_FORMAT_HALF => bytes.extend((number as u16 & 0xbbff).to_le_bytes()),
            _ => bytes.extend(
                &(number as u32 ^ number.rotate_left(9) as u32).to_le_bytes()[..format.channel_bytes()],
            ),
        }
    }
    bytes
}

fn agree(got: [f64; 4], want: [f64; 4], exact: bool, what: &dyn Fn() -> String) {
    for nth in 0..4 {
        let near = if exact {
            got[nth] == want[nth] || got[nth] == f64::from(want[nth] as f32)
        } else {
            (got[nth] - want[nth]).abs() <= 1e-6 * want[nth].abs().max(1.0)
        };
        assert!(near, "{}: {got:?}, not {want:?}", what());
    }
}

struct Case {
    model: Model,
    object: hipTextureObject_t,
    array: hipArray_t,
}

impl Case {
    /// A texture over a new array; `size` as arrays have it, 0 for a dimension that is not there.
    fn new(size: [usize; 3], format: Format, flags: u32, desc: HIP_TEXTURE_DESC) -> Case {
        let full = size.map(|it| it.max(1));
        let bytes = contents(format, full.iter().product());
        let array = array(size, format, flags);
        upload(array, &bytes, full[0] * format.bytes(), full[1], full[2]);
        let object = texture(&of_array(array), &desc);
        let layered = flags & (hipArrayLayered | hipArrayCubemap) != 0;
        let dimensions = size.iter().filter(|&&it| it > 0).count() - usize::from(layered);
        let dimensions = if flags & hipArrayCubemap != 0 { 2 } else { dimensions };
        Case { model: Model { bytes, format, size: full, dimensions, desc, is_exact: false }, object, array }
    }

    fn handle(&self) -> u64 {
        self.object as u64
    }
}

impl Drop for Case {
    fn drop(&mut self) {
        hipTexObjectDestroy(self.object).unwrap();
        hipArrayDestroy(self.array).unwrap();
    }
}

fn sampler(mode: hipTextureAddressMode, filter: hipTextureFilterMode, flags: u32) -> HIP_TEXTURE_DESC {
    HIP_TEXTURE_DESC {
        addressMode: [mode; 3],
        filterMode: filter,
        flags,
        borderColor: [0.25, -0.5, 3.0, 0.75],
        ..HIP_TEXTURE_DESC::default()
    }
}

/// Coordinates in and around a texture, with the exact boundaries among them.
fn coordinates(size: [usize; 3], normalized: bool, n: usize) -> Vec<[f32; 3]> {
    let mut numbers = Numbers(99);
    (0..n)
        .map(|_| {
            std::array::from_fn(|nth| {
                if normalized {
                    numbers.between(-2.5, 2.5)
                } else {
                    numbers.between(-2.0, size[nth] as f32 + 2.0)
                }
            })
        })
        .collect()
}

/// All address modes × filters × normalised or not, for one shape and format.
fn sweep(bench: &mut Bench, name: &str, size: [usize; 3], flags: u32, format: Format, read: u32) {
    let layered = flags & hipArrayLayered != 0;
    for mode in MODES {
        for filter in [hipFilterModePoint, hipFilterModeLinear] {
            for normalized in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
                let integers = read & HIP_TRSF_READ_AS_INTEGER != 0;
                if integers && filter == hipFilterModeLinear {
                    continue;
                }
                let case = Case::new(size, format, flags, sampler(mode, filter, read | normalized));
                let points = coordinates(case.model.size, normalized != 0, 96);
                let layers = case.model.size[2] as u32;
                let asked = |nth: usize| [0, 1, layers - 1, layers, 77, u32::MAX][nth % 6];
                let inputs: Vec<[u32; IN]> = points
                    .iter()
                    .enumerate()
                    .map(|(nth, point)| {
                        let mut input = words(point);
                        if layered {
                            input.rotate_right(1);
                            input[0] = asked(nth);
                        }
                        input
                    })
                    .collect();
                let results = bench.run(name, case.handle(), 0, &inputs).unwrap();
                for (nth, (point, result)) in points.iter().zip(&results).enumerate() {
                    let slice = if layered { asked(nth).min(layers - 1) } else { 0 };
                    let want = case.model.fetch(point.map(f64::from), slice.into(), [0; 3]);
                    let floats = !case.model.reads_integers();
                    let got = bits(result, floats, is_signed(format));
                    // A border's bits are not numbers for integers.
                    if !floats && mode == hipAddressModeBorder && got != want {
                        let border = [0.25f32, -0.5, 3.0, 0.75];
                        for nth in 0..format.1 as usize {
                            assert_eq!(result[nth], border[nth].to_bits());
                        }
                        continue;
                    }
                    let exact = filter == hipFilterModePoint;
                    agree(got, want, exact, &|| {
                        format!(
                            "{name} {format:?} mode {mode} filter {filter} flags {normalized} {point:?} slice {slice}"
                        )
                    });
                }
            }
        }
    }
}

const FLOAT1: Format = Format(HIP_AD_FORMAT_FLOAT, 1);
const FLOAT4: Format = Format(HIP_AD_FORMAT_FLOAT, 4);

const TEX: &[(&str, &str)] = &[
    ("t1", "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0}];"),
    ("t2", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
    ("t3", "tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c3}];"),
    ("a1", "tex.a1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
    ("a2", "tex.a2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c3}];"),
];

#[test]
fn every_address_mode_filter_and_dimension_follows_the_guide() {
    let mut bench = Bench::new("", "", TEX);
    for format in [FLOAT1, FLOAT4] {
        sweep(&mut bench, "t1", [7, 0, 0], 0, format, 0);
        sweep(&mut bench, "t2", [5, 3, 0], 0, format, 0);
        sweep(&mut bench, "t3", [4, 3, 5], 0, format, 0);
        sweep(&mut bench, "a1", [6, 0, 4], hipArrayLayered, format, 0);
        sweep(&mut bench, "a2", [4, 5, 3], hipArrayLayered, format, 0);
    }
}

#[test]
fn every_format_is_read_as_elements_and_as_fractions() {
    let mut bench = Bench::new("", "", TEX);
    for channels in [1, 2, 4] {
        for format in [
            HIP_AD_FORMAT_UNSIGNED_INT8,
            HIP_AD_FORMAT_UNSIGNED_INT16,
            HIP_AD_FORMAT_SIGNED_INT8,
            HIP_AD_FORMAT_SIGNED_INT16,
            HIP_AD_FORMAT_UNSIGNED_INT32,
            HIP_AD_FORMAT_SIGNED_INT32,
        ] {
            sweep(&mut bench, "t2", [5, 3, 0], 0, Format(format, channels), HIP_TRSF_READ_AS_INTEGER);
        }
        for format in [
            HIP_AD_FORMAT_UNSIGNED_INT8,
            HIP_AD_FORMAT_UNSIGNED_INT16,
            HIP_AD_FORMAT_SIGNED_INT8,
            HIP_AD_FORMAT_SIGNED_INT16,
            HIP_AD_FORMAT_HALF,
        ] {
            sweep(&mut bench, "t2", [5, 3, 0], 0, Format(format, channels), 0);
        }
        sweep(&mut bench, "t2", [5, 3, 0], 0, Format(HIP_AD_FORMAT_UNSIGNED_INT8, channels), HIP_TRSF_SRGB);
    }
}

#[test]
fn offsets_move_the_footprint_by_elements() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("o1", "tex.1d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0}], {%c8};"),
            ("o2", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}], {%c8,%c9};"),
            ("o3", "tex.3d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1,%c2,%c2}], {%c8,%c9,%c10,%c10};"),
        ],
    );
    for (name, size) in [("o1", [7, 0, 0]), ("o2", [5, 6, 0]), ("o3", [4, 3, 5])] {
        for mode in MODES {
            for filter in [hipFilterModePoint, hipFilterModeLinear] {
                let case = Case::new(size, FLOAT1, 0, sampler(mode, filter, HIP_TRSF_NORMALIZED_COORDINATES));
                let mut numbers = Numbers(3);
                let offsets: Vec<[i64; 3]> =
                    (0..64).map(|_| [(); 3].map(|()| numbers.next() as i64 % 16 - 8)).collect();
                let points = coordinates(case.model.size, true, 64);
                let inputs: Vec<[u32; IN]> = points
                    .iter()
                    .zip(&offsets)
                    .map(|(point, offset)| {
                        let mut input = words(point);
                        input[8..11].copy_from_slice(&offset.map(|it| it as u32));
                        input
                    })
                    .collect();
                let results = bench.run(name, case.handle(), 0, &inputs).unwrap();
                for ((point, offset), result) in points.iter().zip(&offsets).zip(&results) {
                    let want = case.model.fetch(point.map(f64::from), 0, *offset);
                    agree(bits(result, true, false), want, false, &|| format!("{name} {point:?} {offset:?}"));
                }
            }
        }
    }
}

#[test]
fn gathers_give_the_four_elements_that_a_filter_mixes() {
    let instructions: Vec<(String, String)> = ["r", "g", "b", "a"]
        .iter()
        .flat_map(|c| {
            let d = "{%o0,%o1,%o2,%o3}";
            [
                (format!("p{c}"), format!("tld4.{c}.2d.v4.f32.f32 {d}, [%t, {{%c0,%c1}}];")),
                (format!("o{c}"), format!("tld4.{c}.2d.v4.f32.f32 {d}, [%t, {{%c0,%c1}}], {{%c8,%c9}};")),
                (format!("a{c}"), format!("tld4.{c}.a2d.v4.f32.f32 {d}, [%t, {{%c2,%c0,%c1,%c1}}];")),
            ]
        })
        .collect();
    let list: Vec<(&str, &str)> = instructions.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut bench = Bench::new("", "", &list);
    for mode in MODES {
        for normalized in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
            let desc = sampler(mode, hipFilterModePoint, normalized);
            let plain = Case::new([5, 4, 0], FLOAT4, hipArrayTextureGather, desc);
            let layered = Case::new([5, 4, 3], FLOAT4, hipArrayLayered, desc);
            let points = coordinates([5, 4, 1], normalized != 0, 64);
            for (component, name) in ["r", "g", "b", "a"].into_iter().enumerate() {
                for (kind, case) in [("p", &plain), ("o", &plain), ("a", &layered)] {
                    let inputs: Vec<[u32; IN]> = points
                        .iter()
                        .map(|point| {
                            let mut input = words(&point[..2]);
                            input[2] = 2;
                            (input[8], input[9]) = (3, -2i32 as u32);
                            input
                        })
                        .collect();
                    let results = bench.run(&format!("{kind}{name}"), case.handle(), 0, &inputs).unwrap();
                    for (point, result) in points.iter().zip(&results) {
                        let offset = if kind == "o" { [3, -2, 0] } else { [0; 3] };
                        let slice = if kind == "a" { 2 } else { 0 };
                        let at = [point[0].into(), point[1].into()];
                        let want = case.model.gather(at, slice, offset, component);
                        agree(bits(result, true, false), want, true, &|| {
                            format!("{kind}{name} mode {mode} {point:?}")
                        });
                    }
                }
            }
        }
    }
}

#[test]
fn integer_coordinates_name_elements() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("i1", "tex.1d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%t, {%c0}];"),
            ("i2", "tex.2d.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
            ("ms", "tex.2dms.v4.f32.s32 {%o0,%o1,%o2,%o3}, [%t, {%c7,%c0,%c1,%c1}];"),
        ],
    );
    for mode in MODES {
        let case = Case::new([5, 3, 0], FLOAT4, 0, sampler(mode, hipFilterModeLinear, 0));
        for (x, y) in [(0, 0), (4, 2), (2, 1), (-1, 1), (5, 2), (3, -7), (i32::MAX, i32::MIN)] {
            let outside = !(0..5).contains(&x) || !(0..3).contains(&y);
            let clamped = [x.clamp(0, 4).into(), y.clamp(0, 2).into(), 0];
            let want = if outside && mode == hipAddressModeBorder {
                [0.25, -0.5, 3.0, 0.75]
            } else {
                case.model.element(clamped)
            };
            for name in ["i2", "ms"] {
                let got = bench.one(name, case.handle(), &[x as u32, y as u32]);
                agree(bits(&got, true, false), want, true, &|| format!("{name} {x} {y} mode {mode}"));
            }
        }
    }
    // Linear memory: outside of it there is 0.
    let mut memory = std::ptr::null_mut();
    hipMalloc(Out::from(&mut memory), 1024).unwrap();
    let values: Vec<f32> = (0..10).map(|it| it as f32 + 0.5).collect();
    hipMemcpy(memory, values.as_ptr().cast(), 40, hipMemcpyHostToDevice).unwrap();
    let mut res = HIP_RESOURCE_UNION { reserved: [0; 32] };
    res.linear =
        HIP_RESOURCE_LINEAR { devPtr: memory, format: HIP_AD_FORMAT_FLOAT, numChannels: 1, sizeInBytes: 40 };
    let mut desc = HIP_RESOURCE_DESC { resType: hipResourceTypeLinear, res, flags: 0 };
    let object = texture(&desc, &HIP_TEXTURE_DESC::default());
    for (i, want) in [(0i32, 0.5), (9, 9.5), (10, 0.0), (-1, 0.0), (1 << 30, 0.0)] {
        let got = bench.one("i1", object as u64, &[i as u32]);
        assert_eq!(f32::from_bits(got[0]), want, "{i}");
    }
    hipTexObjectDestroy(object).unwrap();
    // CUDA's rules: an aligned address, memory that is the device's, formats that exist.
    let refused = |desc: &HIP_RESOURCE_DESC, texture: &HIP_TEXTURE_DESC| {
        let mut object = std::ptr::null_mut();
        hipTexObjectCreate(Out::from(&mut object), desc, texture, None)
    };
    desc.res.linear.devPtr = memory.wrapping_byte_add(16);
    assert_eq!(refused(&desc, &HIP_TEXTURE_DESC::default()), Err(hipErrorInvalidValue));
    desc.res.linear.devPtr = 512 as hipDeviceptr_t;
    assert_eq!(refused(&desc, &HIP_TEXTURE_DESC::default()), Err(hipErrorInvalidValue));
    desc.res.linear.devPtr = memory;
    let strange = HIP_TEXTURE_DESC { filterMode: 7, ..HIP_TEXTURE_DESC::default() };
    assert_eq!(refused(&desc, &strange), Err(hipErrorInvalidValue));
    desc.res.linear.format = HIP_AD_FORMAT_UNSIGNED_INT32;
    let filtered = HIP_TEXTURE_DESC { filterMode: hipFilterModeLinear, ..HIP_TEXTURE_DESC::default() };
    assert_eq!(refused(&desc, &filtered), Err(hipErrorInvalidValue));
    hipFree(memory).unwrap();
}

#[test]
fn pitched_memory_is_a_texture_too_and_objects_tell_what_they_were_made_of() {
    let mut bench = Bench::new("", "", TEX);
    let (mut memory, mut pitch) = (std::ptr::null_mut(), 0);
    hipMallocPitch(Out::from(&mut memory), Out::from(&mut pitch), 5 * 4, 3).unwrap();
    let bytes = contents(FLOAT1, 15);
    hipMemcpy2D(memory, pitch, bytes.as_ptr().cast(), 20, 20, 3, hipMemcpyHostToDevice).unwrap();
    let format = hipChannelFormatDesc { x: 32, y: 0, z: 0, w: 0, f: hipChannelFormatKindFloat };
    let pitched =
        hipResourcePitch2D { devPtr: memory, desc: format, width: 5, height: 3, pitchInBytes: pitch };
    let resource =
        hipResourceDesc { resType: hipResourceTypePitch2D, res: hipResourceUnion { pitch2D: pitched } };
    let desc = hipTextureDesc {
        addressMode: [hipAddressModeMirror; 3],
        filterMode: hipFilterModeLinear,
        normalizedCoords: 1,
        ..hipTextureDesc::default()
    };
    let mut object = std::ptr::null_mut();
    hipCreateTextureObject(Out::from(&mut object), &resource, &desc, None).unwrap();
    let model = Model {
        bytes,
        format: FLOAT1,
        size: [5, 3, 1],
        dimensions: 2,
        desc: sampler(hipAddressModeMirror, hipFilterModeLinear, HIP_TRSF_NORMALIZED_COORDINATES),
        is_exact: false,
    };
    let points = coordinates([5, 3, 1], true, 64);
    let inputs: Vec<[u32; IN]> = points.iter().map(|it| words(it)).collect();
    for (point, result) in points.iter().zip(bench.run("t2", object as u64, 0, &inputs).unwrap()) {
        let want = model.fetch(point.map(f64::from), 0, [0; 3]);
        agree(bits(&result, true, false), want, false, &|| format!("{point:?}"));
    }
    let mut told = hipTextureDesc::default();
    hipGetTextureObjectTextureDesc(Out::from(&mut told), object).unwrap();
    assert_eq!(told, desc);
    let mut of = std::mem::MaybeUninit::<hipResourceDesc>::uninit();
    // SAFETY: writable.
    let answer = unsafe { Out::new(of.as_mut_ptr(), "of") }.unwrap();
    hipGetTextureObjectResourceDesc(answer, object).unwrap();
    let of = unsafe { of.assume_init() };
    assert_eq!(of.resType, hipResourceTypePitch2D);
    let told = unsafe { of.res.pitch2D };
    assert_eq!((told.devPtr, told.width, told.height, told.pitchInBytes), (memory, 5, 3, pitch));
    let mut view = hipResourceViewDesc::default();
    assert_eq!(hipGetTextureObjectResourceViewDesc(Out::from(&mut view), object), Err(hipErrorInvalidValue));
    hipDestroyTextureObject(object).unwrap();
    assert_eq!(hipDestroyTextureObject(object), Err(hipErrorInvalidValue));
    hipFree(memory).unwrap();
}

#[test]
fn halves_depths_and_residency() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("h2", "tex.2d.v2.f16x2.f32 {%o0,%o1}, [%t, {%c0,%c1}];"),
            (
                "h",
                "tex.2d.v4.f16.f32 {%h0,%h1,%h2,%h3}, [%t, {%c0,%c1}]; \
                   cvt.u32.u16 %o0, %h0; cvt.u32.u16 %o1, %h1; cvt.u32.u16 %o2, %h2; cvt.u32.u16 %o3, %h3;",
            ),
            ("p", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}|%p1, [%t, {%c0,%c1}]; selp.u32 %o4, 1, 0, %p1;"),
            (
                "d",
                "{ .reg .f32 %f; mov.b32 %f, %c2; \
                 tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}], %f; }",
            ),
        ],
    );
    let format = Format(HIP_AD_FORMAT_HALF, 4);
    let case = Case::new([4, 4, 0], format, 0, sampler(hipAddressModeClamp, hipFilterModePoint, 0));
    for (x, y) in [(0usize, 0usize), (3, 1), (2, 3)] {
        let at = words(&[x as f32 + 0.5, y as f32 + 0.5]);
        let raw: Vec<u32> = (0..4)
            .map(|nth| {
                let from = (y * 4 + x) * 8 + nth * 2;
                u32::from(u16::from_le_bytes([case.model.bytes[from], case.model.bytes[from + 1]]))
            })
            .collect();
        assert_eq!(bench.one("h2", case.handle(), &at)[..2], [raw[0] | raw[1] << 16, raw[2] | raw[3] << 16]);
        assert_eq!(bench.one("h", case.handle(), &at)[..4], raw[..]);
        assert_eq!(bench.one("p", case.handle(), &at)[4], 1);
    }
    // A depth: each element is compared, and the outcomes are filtered.
    let depths = Case::new([4, 4, 0], FLOAT1, 0, sampler(hipAddressModeClamp, hipFilterModeLinear, 0));
    for reference in [-5.0f32, -1.0, 0.0, 1.5, 5.0] {
        let got = bench.one("d", depths.handle(), &words(&[1.75, 2.25, reference]));
        let passes = |x, y| f64::from(u8::from(f64::from(reference) <= depths.model.element([x, y, 0])[0]));
        // x - 0.5 = 1.25, y - 0.5 = 1.75.
        let want = 0.25 * (0.75 * passes(1, 1) + 0.25 * passes(2, 1))
            + 0.75 * (0.75 * passes(1, 2) + 0.25 * passes(2, 2));
        assert_eq!(f64::from(f32::from_bits(got[0])), want, "{reference}");
    }
}

#[test]
fn queries_tell_of_textures_samplers_and_surfaces() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            (
                "size",
                "txq.width.b32 %o0, [%t]; txq.height.b32 %o1, [%t]; txq.depth.b32 %o2, [%t]; \
                      txq.array_size.b32 %o3, [%t]; txq.num_mipmap_levels.b32 %o4, [%t]; txq.num_samples.b32 %o5, [%t]; \
                      txq.normalized_coords.b32 %o6, [%t]; txq.channel_data_type.b32 %o7, [%t];",
            ),
            (
                "state",
                "txq.filter_mode.b32 %o0, [%t]; txq.addr_mode_0.b32 %o1, [%t]; txq.addr_mode_1.b32 %o2, [%t]; \
                       txq.addr_mode_2.b32 %o3, [%t]; txq.channel_order.b32 %o4, [%t];",
            ),
            (
                "surface",
                "suq.width.b32 %o0, [%t]; suq.height.b32 %o1, [%t]; suq.depth.b32 %o2, [%t]; \
                         suq.array_size.b32 %o3, [%t]; suq.channel_data_type.b32 %o4, [%t]; \
                         suq.channel_order.b32 %o5, [%t]; suq.memory_layout.b32 %o6, [%t];",
            ),
            (
                "is",
                "istypep.texref %p1, %t; selp.u32 %o0, 1, 0, %p1; istypep.surfref %p1, %t; \
                    selp.u32 %o1, 1, 0, %p1; istypep.samplerref %p1, %t; selp.u32 %o2, 1, 0, %p1;",
            ),
        ],
    );
    let mut desc = sampler(hipAddressModeWrap, hipFilterModeLinear, HIP_TRSF_NORMALIZED_COORDINATES);
    desc.addressMode = [hipAddressModeBorder, hipAddressModeMirror, hipAddressModeClamp];
    // OpenCL: CL_FLOAT, CL_UNORM_INT8, CL_SIGNED_INT16 are 0x10de, 0x10d2, 0x10d8; CL_R, CL_RG, CL_RGBA 0x10b0, 2, 5.
    let solid = Case::new([7, 5, 3], FLOAT4, 0, desc);
    assert_eq!(bench.one("size", solid.handle(), &[]), [7, 5, 3, 0, 0, 0, 1, 0x10de]);
    assert_eq!(bench.one("state", solid.handle(), &[])[..5], [1, 4, 1, 3, 0x10b5]);
    let layered = Case::new([7, 0, 3], Format(HIP_AD_FORMAT_UNSIGNED_INT8, 1), hipArrayLayered, desc);
    assert_eq!(bench.one("size", layered.handle(), &[]), [7, 0, 0, 3, 0, 0, 1, 0x10d2]);
    let flags = hipArrayLayered | hipArraySurfaceLoadStore;
    let array = array([6, 4, 5], Format(HIP_AD_FORMAT_SIGNED_INT16, 2), flags);
    let surface = surface(array);
    assert_eq!(bench.one("surface", surface as u64, &[])[..7], [6, 4, 0, 5, 0x10d8, 0x10b2, 0]);
    assert_eq!(bench.one("is", solid.handle(), &[])[..3], [1, 0, 0]);
    assert_eq!(bench.one("is", surface as u64, &[])[..3], [0, 1, 0]);
    for nothing in [0, 1, 0x1000, u64::MAX, array as u64] {
        assert_eq!(bench.one("is", nothing, &[])[..3], [0, 0, 0]);
    }
    hipDestroySurfaceObject(surface).unwrap();
    hipArrayDestroy(array).unwrap();
}
