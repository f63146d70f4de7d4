//! `tex`, `tld4`, `txq` on the emulator.

use super::emulator::{Batch, Kind, NO_EMULATOR, Object};
use super::forms::{IN, SHAPES};
use super::model::Model;
use super::module;
use super::support::{Format, Numbers, contents};
use hip_sys::*;

const MODES: [hipTextureAddressMode; 4] =
    [hipAddressModeWrap, hipAddressModeClamp, hipAddressModeMirror, hipAddressModeBorder];
const FLOAT1: Format = Format(HIP_AD_FORMAT_FLOAT, 1);
const FLOAT4: Format = Format(HIP_AD_FORMAT_FLOAT, 4);

fn size_of(geometry: &str) -> [usize; 3] {
    match geometry {
        "1d" => [7, 1, 1],
        "2d" => [5, 3, 1],
        "3d" => [4, 3, 5],
        "a1d" => [6, 1, 4],
        _ => [4, 5, 3],
    }
}

fn texture(
    geometry: &str,
    format: Format,
    mode: hipTextureAddressMode,
    filter: hipTextureFilterMode,
    flags: u32,
) -> Object {
    let size = size_of(geometry);
    let desc =
        HIP_TEXTURE_DESC { addressMode: [mode; 3], filterMode: filter, flags, ..HIP_TEXTURE_DESC::default() };
    Object { bytes: contents(format, size.iter().product()), format, size, kind: Kind::of(geometry), desc }
}

fn model(object: &Object) -> Model {
    let dimensions = match object.kind {
        Kind::Linear | Kind::D1 | Kind::Layered1 => 1,
        Kind::D2 | Kind::Layered2 => 2,
        Kind::D3 => 3,
    };
    Model {
        bytes: object.bytes.clone(),
        format: object.format,
        size: object.size,
        dimensions,
        desc: object.desc,
        is_exact: true,
    }
}

fn is_layered(geometry: &str) -> bool {
    geometry.starts_with('a')
}

fn mirrors(object: &Object) -> bool {
    object.desc.addressMode[0] == hipAddressModeMirror
}

/// Coordinates in and around a texture. `only_first`: in a mirrored repetition, the guide's formulas turn the four elements
/// of a gather and an offset round as well, which no hardware does.
fn points(object: &Object, only_first: bool) -> Vec<[f32; 3]> {
    let mut numbers = Numbers(99);
    let normalized = object.desc.flags & HIP_TRSF_NORMALIZED_COORDINATES != 0;
    let point = |_| {
        std::array::from_fn(|axis| match normalized {
            true if only_first && mirrors(object) => numbers.between(0.01, 0.99),
            true => numbers.between(-2.5, 2.5),
            false => numbers.between(-2.0, object.size[axis] as f32 + 2.0),
        })
    };
    (0..32).map(point).collect()
}

fn input(point: &[f32; 3], layer: u32) -> [u32; IN] {
    let mut input = [0; IN];
    for (word, x) in input.iter_mut().zip(point) {
        *word = x.to_bits();
    }
    input[3] = layer;
    input
}

fn values(words: &[u32], of: &Model) -> [f64; 4] {
    std::array::from_fn(|nth| match (of.reads_integers(), of.format.is_signed()) {
        (false, _) => f64::from(f32::from_bits(words[nth])),
        (true, true) => f64::from(words[nth].cast_signed()),
        (true, false) => f64::from(words[nth]),
    })
}

fn agree(got: [f64; 4], want: [f64; 4], what: &dyn Fn() -> String) {
    near(got, want, 1e-6, what);
}

fn near(got: [f64; 4], want: [f64; 4], distance: f64, what: &dyn Fn() -> String) {
    for nth in 0..4 {
        let near = (got[nth] - want[nth]).abs() <= distance * want[nth].abs().max(1.0);
        assert!(near, "{}: {got:?}, not {want:?}", what());
    }
}

/// A texture at 32 points, with the layers beyond its own among them.
fn fetch(batch: &mut Batch, kernel: &str, geometry: &'static str, object: &Object, offsets: bool) {
    let of = model(object);
    let layers = object.size[2] as u32;
    let asked = move |nth: usize| {
        if is_layered(geometry) { [0, 1, layers - 1, layers, 77, u32::MAX][nth % 6] } else { 0 }
    };
    let points = points(object, offsets);
    let mut numbers = Numbers(3);
    let moved: Vec<[i64; 3]> = points
        .iter()
        .map(|_| [(); 3].map(|()| if offsets { i64::from(numbers.next() % 16) - 8 } else { 0 }))
        .collect();
    let inputs: Vec<[u32; IN]> = points
        .iter()
        .enumerate()
        .map(|(nth, point)| {
            let mut input = input(point, asked(nth));
            input[8..11].copy_from_slice(&moved[nth].map(|it| it as u32));
            input
        })
        .collect();
    let (kernel_, object_) = (kernel.to_owned(), object.clone());
    batch.add(kernel, &[object], &inputs, move |outcome| {
        for (nth, (point, result)) in points.iter().zip(&outcome.results).enumerate() {
            let slice = asked(nth).min(layers - 1);
            let want = of.fetch(point.map(f64::from), slice.into(), moved[nth]);
            let words: Vec<u32> = match kernel_.split('_').next() {
                Some("half") => halves(&[result[8], result[9]]),
                Some("pair") => halves(&result[..2]),
                _ => result[..4].to_vec(),
            };
            let got = values(&words, &of);
            let desc = &object_.desc;
            let what = || {
                format!(
                    "{kernel_} {:?} mode {} filter {} flags {} {point:?} slice {slice} offset {:?}",
                    object_.format, desc.addressMode[0], desc.filterMode, desc.flags, moved[nth]
                )
            };
            // A weight in the middle of two is rounded in the direction of the axis, which a mirror turns round.
            let distance =
                if mirrors(&object_) && desc.filterMode == hipFilterModeLinear { 8.0 / 256.0 } else { 1e-6 };
            near(got, want, distance, &what);
        }
    });
}

/// Four halves as the floats that they are.
fn halves(words: &[u32]) -> Vec<u32> {
    let half = |bits: u32| (super::model::half(bits as u16) as f32).to_bits();
    words.iter().flat_map(|word| [half(word & 0xffff), half(word >> 16)]).collect()
}

#[test]
fn every_address_mode_filter_and_dimension_follows_the_guide() {
    let Some(mut batch) =
        Batch::new("modes", &module(), |name| name.starts_with("tex") && name.ends_with("f32"))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for shape in SHAPES {
        for mode in MODES {
            for filter in [hipFilterModePoint, hipFilterModeLinear] {
                for flags in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
                    let format = if flags == 0 { FLOAT4 } else { FLOAT1 };
                    let object = texture(shape.name, format, mode, filter, flags);
                    fetch(&mut batch, &format!("tex_{}_f32", shape.name), shape.name, &object, false);
                }
            }
        }
    }
    batch.run();
}

#[test]
fn every_format_is_read_as_elements_and_as_fractions() {
    let Some(mut batch) =
        Batch::new("formats", &module(), |name| ["tex_2d_f32", "half_2d", "pair_2d"].contains(&name))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let normalized = HIP_TRSF_NORMALIZED_COORDINATES;
    for channels in [1, 2, 4] {
        for format in [
            HIP_AD_FORMAT_UNSIGNED_INT8,
            HIP_AD_FORMAT_UNSIGNED_INT16,
            HIP_AD_FORMAT_UNSIGNED_INT32,
            HIP_AD_FORMAT_SIGNED_INT8,
            HIP_AD_FORMAT_SIGNED_INT16,
            HIP_AD_FORMAT_SIGNED_INT32,
        ] {
            let flags = HIP_TRSF_READ_AS_INTEGER;
            let object =
                texture("2d", Format(format, channels), hipAddressModeClamp, hipFilterModePoint, flags);
            fetch(&mut batch, "tex_2d_f32", "2d", &object, false);
        }
        for format in [
            HIP_AD_FORMAT_UNSIGNED_INT8,
            HIP_AD_FORMAT_UNSIGNED_INT16,
            HIP_AD_FORMAT_SIGNED_INT8,
            HIP_AD_FORMAT_SIGNED_INT16,
            HIP_AD_FORMAT_HALF,
        ] {
            let object =
                texture("2d", Format(format, channels), hipAddressModeWrap, hipFilterModeLinear, normalized);
            fetch(&mut batch, "tex_2d_f32", "2d", &object, false);
        }
    }
    let bytes = Format(HIP_AD_FORMAT_UNSIGNED_INT8, 4);
    let object = texture("2d", bytes, hipAddressModeWrap, hipFilterModeLinear, normalized | HIP_TRSF_SRGB);
    fetch(&mut batch, "tex_2d_f32", "2d", &object, false);
    let halves = texture("2d", Format(HIP_AD_FORMAT_HALF, 4), hipAddressModeClamp, hipFilterModePoint, 0);
    for kernel in ["half_2d", "pair_2d"] {
        fetch(&mut batch, kernel, "2d", &halves, false);
    }
    batch.run();
}

#[test]
fn offsets_move_the_footprint_by_elements() {
    let Some(mut batch) =
        Batch::new("offsets", &module(), |name| name.starts_with("off") && name.ends_with("f32"))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for shape in SHAPES {
        for mode in MODES {
            for flags in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
                let object = texture(shape.name, FLOAT1, mode, hipFilterModeLinear, flags);
                fetch(&mut batch, &format!("off_{}_f32", shape.name), shape.name, &object, true);
            }
        }
    }
    batch.run();
}

/// HIP makes no textures with levels: whatever the level, it is the first.
#[test]
fn levels_and_gradients_of_a_texture_with_one_level() {
    let Some(mut batch) = Batch::new("levels", &module(), |name| {
        name.starts_with("grad") || name.starts_with("level") && name.ends_with("f32")
    }) else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for shape in SHAPES {
        for flags in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
            let object = texture(shape.name, FLOAT4, hipAddressModeClamp, hipFilterModeLinear, flags);
            for kernel in [format!("grad_{}", shape.name), format!("level_{}_f32", shape.name)] {
                fetch(&mut batch, &kernel, shape.name, &object, false);
            }
        }
    }
    batch.run();
}

#[test]
fn gathers_give_the_four_elements_that_a_filter_mixes() {
    let Some(mut batch) = Batch::new("gathers", &module(), |name| name.starts_with("tld4")) else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for geometry in ["2d", "a2d"] {
        for mode in MODES {
            for flags in [0, HIP_TRSF_NORMALIZED_COORDINATES] {
                let object = texture(geometry, FLOAT4, mode, hipFilterModePoint, flags);
                for (component, name) in ["r", "g", "b", "a", "off"].into_iter().enumerate() {
                    let (kernel, component) = match name {
                        "off" => (format!("tld4off_{geometry}"), 0),
                        _ => (format!("tld4_{geometry}_{name}"), component),
                    };
                    let offset = if name == "off" { [3, -2, 0] } else { [0; 3] };
                    let (of, points) = (model(&object), points(&object, true));
                    let inputs: Vec<[u32; IN]> = points
                        .iter()
                        .map(|point| {
                            let mut input = input(point, 2);
                            input[8..11].copy_from_slice(&offset.map(|it: i64| it as u32));
                            input
                        })
                        .collect();
                    let what = kernel.clone();
                    batch.add(&kernel, &[&object], &inputs, move |outcome| {
                        let slice = if is_layered(geometry) { 2 } else { 0 };
                        for (point, result) in points.iter().zip(&outcome.results) {
                            let at = [point[0].into(), point[1].into()];
                            let want = of.gather(at, slice, offset, component);
                            agree(values(&result[..4], &of), want, &|| {
                                format!("{what} mode {mode} {point:?}")
                            });
                        }
                    });
                }
            }
        }
    }
    batch.run();
}

#[test]
fn integer_coordinates_name_elements() {
    let Some(mut batch) =
        Batch::new("elements", &module(), |name| name.ends_with("s32") && !name.contains("32x"))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let places =
        [[0, 0, 0], [4, 2, 1], [2, 1, 3], [-1, 1, 0], [9, 2, 9], [3, -7, -1], [i32::MAX, i32::MIN, 1]];
    for shape in SHAPES {
        for mode in [hipAddressModeClamp, hipAddressModeBorder, hipAddressModeWrap] {
            let object = texture(shape.name, FLOAT4, mode, hipFilterModeLinear, 0);
            let of = model(&object);
            for (name, offset) in [("tex", 0), ("off", 2), ("level", 0)] {
                let inputs: Vec<[u32; IN]> = places
                    .iter()
                    .map(|place| {
                        let mut input = [0; IN];
                        input[..3].copy_from_slice(&place.map(|it| it as u32));
                        input[3] = place[2] as u32;
                        input[8..11].copy_from_slice(&[offset as u32; 3]);
                        // Beyond the only level.
                        input[7] = 3;
                        input
                    })
                    .collect();
                let (of, geometry, what) =
                    (of.clone(), shape.name, format!("{name} {} mode {mode}", shape.name));
                batch.add(&format!("{name}_{}_s32", shape.name), &[&object], &inputs, move |outcome| {
                    for (place, result) in places.iter().zip(&outcome.results) {
                        let mut at = [0i64; 3];
                        let mut outside = false;
                        for axis in 0..of.dimensions {
                            let i = i64::from(place[axis].wrapping_add(offset));
                            at[axis] = i.clamp(0, of.size[axis] as i64 - 1);
                            outside |= at[axis] != i;
                        }
                        if is_layered(geometry) {
                            at[2] = i64::from((place[2] as u32).min(of.size[2] as u32 - 1));
                        }
                        let want =
                            if outside && mode == hipAddressModeBorder { [0.0; 4] } else { of.element(at) };
                        agree(values(&result[..4], &of), want, &|| format!("{what} {place:?}"));
                    }
                });
            }
        }
    }
    // Linear memory: outside of it there is 0.
    for format in [FLOAT1, FLOAT4, Format(HIP_AD_FORMAT_FLOAT, 2)] {
        let mut object = texture("1d", format, hipAddressModeClamp, hipFilterModePoint, 0);
        object.kind = Kind::Linear;
        let of = model(&object);
        let places = [0i32, 3, 6, 7, -1, 1 << 30];
        let inputs = places.map(|i| {
            let mut input = [0; IN];
            input[0] = i as u32;
            input
        });
        batch.add("tex_1d_s32", &[&object], &inputs, move |outcome| {
            for (i, result) in places.into_iter().zip(&outcome.results) {
                let inside = (0..7).contains(&i);
                let want = if inside { of.element([i.into(), 0, 0]) } else { [0.0; 4] };
                agree(values(&result[..4], &of), want, &|| format!("linear {format:?} {i}"));
            }
        });
    }
    batch.run();
}

/// Lanes with handles of their own, in one instruction.
#[test]
fn threads_of_a_warp_have_different_textures() {
    let Some(mut batch) = Batch::new("divergent", &module(), |name| name == "divergent") else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let objects = [
        texture("2d", FLOAT4, hipAddressModeWrap, hipFilterModePoint, HIP_TRSF_NORMALIZED_COORDINATES),
        texture("a2d", FLOAT4, hipAddressModeClamp, hipFilterModeLinear, HIP_TRSF_NORMALIZED_COORDINATES),
    ];
    let mut second = objects[1].clone();
    (second.kind, second.size) = (Kind::D2, [4, 15, 1]);
    let models = [model(&objects[0]), model(&second)];
    let points = points(&objects[0], false);
    let inputs: Vec<[u32; IN]> = points.iter().map(|point| input(point, 0)).collect();
    batch.add("divergent", &[&objects[0], &second], &inputs, move |outcome| {
        for (thread, (point, result)) in points.iter().zip(&outcome.results).enumerate() {
            let of = &models[thread % 2];
            let want = of.fetch(point.map(f64::from), 0, [0; 3]);
            agree(values(&result[..4], of), want, &|| format!("thread {thread} {point:?}"));
        }
    });
    batch.run();
}

/// `[named_texture, …]`: the handle is what is bound to the variable.
#[test]
fn a_texture_by_its_name_is_the_one_that_is_bound() {
    let Some(mut batch) = Batch::new("named", &module(), |name| ["named", "canvas"].contains(&name)) else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let object =
        texture("2d", FLOAT1, hipAddressModeWrap, hipFilterModeLinear, HIP_TRSF_NORMALIZED_COORDINATES);
    fetch(&mut batch, "named", "2d", &object, false);
    let of = model(&object);
    let mut input = [0; IN];
    (input[0], input[1]) = (8, 2);
    batch.add("canvas", &[&object], &[input], move |outcome| {
        let want = of.element([2, 2, 0])[0] as f32;
        assert_eq!(f32::from_bits(outcome.results[0][0]), want);
    });
    batch.run();
}

#[test]
fn queries_say_what_the_object_is() {
    let Some(mut batch) =
        Batch::new("queries", &module(), |name| name.starts_with("txq") || name.starts_with("suq"))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let normalized = HIP_TRSF_NORMALIZED_COORDINATES;
    let mut linear = texture("1d", FLOAT1, hipAddressModeClamp, hipFilterModePoint, 0);
    linear.kind = Kind::Linear;
    let bytes = Format(HIP_AD_FORMAT_UNSIGNED_INT8, 2);
    let objects = [
        linear,
        texture("1d", bytes, hipAddressModeClamp, hipFilterModePoint, HIP_TRSF_READ_AS_INTEGER),
        texture("2d", bytes, hipAddressModeWrap, hipFilterModeLinear, normalized),
        texture("3d", FLOAT4, hipAddressModeMirror, hipFilterModeLinear, normalized),
        texture("a1d", Format(HIP_AD_FORMAT_HALF, 4), hipAddressModeBorder, hipFilterModePoint, 0),
        texture("a2d", Format(HIP_AD_FORMAT_SIGNED_INT32, 1), hipAddressModeClamp, hipFilterModePoint, 0),
    ];
    // Linear memory, 1D, 2D, 3D, layers of 1D and of 2D; PTX's numbers.
    let answers: [(&str, [u32; 6]); 14] = [
        ("width", [7, 7, 5, 4, 6, 4]),
        ("height", [0, 0, 3, 3, 0, 5]),
        ("depth", [0, 0, 0, 5, 0, 0]),
        ("array_size", [0, 0, 0, 0, 4, 3]),
        ("channel_data_type", [0x10de, 0x10da, 0x10d2, 0x10de, 0x10dd, 0x10d9]),
        ("channel_order", [0x10b0, 0x10b2, 0x10b2, 0x10b5, 0x10b5, 0x10b0]),
        ("normalized_coords", [0, 0, 1, 1, 0, 0]),
        ("num_mipmap_levels", [0; 6]),
        ("num_samples", [0; 6]),
        ("force_unnormalized_coords", [0; 6]),
        ("filter_mode", [0, 0, 1, 1, 0, 0]),
        ("addr_mode_0", [3, 3, 0, 1, 4, 3]),
        ("addr_mode_1", [3, 3, 0, 1, 4, 3]),
        ("addr_mode_2", [3, 3, 0, 1, 4, 3]),
    ];
    let surface = ["width", "height", "depth", "array_size", "channel_data_type", "channel_order"];
    for (query, answers) in answers {
        for (object, want) in objects.iter().zip(answers) {
            let mut kernels = vec![format!("txq_{query}")];
            if surface.contains(&query) && object.kind != Kind::Linear {
                kernels.push(format!("suq_{query}"));
            }
            for kernel in kernels {
                let what = format!("{kernel} of {:?}", object.kind);
                batch.add(&kernel, &[object], &[[0; IN]], move |outcome| {
                    assert_eq!(outcome.results[0][0], want, "{what}");
                });
            }
        }
    }
    batch.run();
}
