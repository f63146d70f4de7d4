//! `suld`, `sust`, `sured` on the emulator: bytes by their place, by the manual's rules.

use compiler::gcn::services::Fault;

use super::emulator::{Batch, Kind, NO_EMULATOR, Object};
use super::forms::{IN, OUT, SHAPES, access_name, accesses, reduction_name, reductions};
use super::module;
use super::support::{Format, contents};
use hip_sys::*;

fn surface(geometry: &str, format: Format) -> Object {
    let size = match geometry {
        "1d" => [12, 1, 1],
        "2d" => [12, 5, 1],
        "a1d" => [12, 1, 4],
        _ => [12, 5, 4],
    };
    let desc = HIP_TEXTURE_DESC { flags: HIP_TRSF_READ_AS_INTEGER, ..HIP_TEXTURE_DESC::default() };
    Object { bytes: contents(format, size.iter().product()), format, size, kind: Kind::of(geometry), desc }
}

/// Where an access of `bytes` is among the elements; `None` for nowhere.
fn place(object: &Object, at: [i64; 3], bytes: usize, bounds: &str) -> Option<usize> {
    let row = object.size[0] * object.format.bytes();
    let most = [row as i64 - bytes as i64, object.size[1] as i64 - 1, object.size[2] as i64 - 1];
    let inside = (0..3).all(|axis| (0..=most[axis]).contains(&at[axis]));
    let at = match bounds {
        _ if inside => at,
        "clamp" if most[0] >= 0 => std::array::from_fn(|axis| at[axis].max(0).min(most[axis])),
        _ => return None,
    };
    // Low bits of the place are masked off.
    let x = at[0] as usize / bytes * bytes;
    Some((at[2] as usize * object.size[1] + at[1] as usize) * row + x)
}

/// Bytes along x, row, slice or layer; what the geometry lacks is 0.
fn places(geometry: &str, bytes: usize, row: usize) -> Vec<[i64; 3]> {
    let (bytes, last) = (bytes as i64, (row / bytes) as i64 - 1);
    let all = [
        [0, 0, 0],
        [2 * bytes, 3, 1],
        [last * bytes, 4, 3],
        [-bytes, 1, 2],
        [99 * bytes, 2, 0],
        [bytes, -1, 3],
        [bytes, 5, 1],
        [bytes, 1, 4],
        [bytes, 1, -1],
        [i64::from(i32::MIN), 0, 0],
    ];
    let has_rows = matches!(geometry, "2d" | "3d" | "a2d");
    let has_slices = matches!(geometry, "3d" | "a1d" | "a2d");
    all.map(|[x, y, z]| [x, if has_rows { y } else { 0 }, if has_slices { z } else { 0 }]).to_vec()
}

fn input(geometry: &str, [x, y, z]: [i64; 3]) -> [u32; IN] {
    let mut input = [0; IN];
    input[..3].copy_from_slice(&[x as u32, y as u32, z as u32]);
    // PTX: layers have no sign.
    if geometry.starts_with('a') {
        input[3] = z as u32;
    }
    input[4..8].copy_from_slice(&[0x8403_0201, 0x0807_c605, 0xfcfb_faf9, 0x4432_2110]);
    input
}

/// A layer without its sign.
fn seen(geometry: &str, [x, y, z]: [i64; 3]) -> [i64; 3] {
    [x, y, if geometry.starts_with('a') { i64::from(z as u32) } else { z }]
}

/// The registers' bytes that a value of this shape has, where `rest` is the words behind a thread's four.
fn bytes_of(words: &[u32], bits: u32, lanes: usize, rest: &[u32]) -> Vec<u8> {
    let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    match bits {
        // Each in a register of 2 bytes.
        8 => bytes(&rest[4..6]).chunks(2).take(lanes).map(|it| it[0]).collect(),
        16 => bytes(&rest[4..6])[..2 * lanes].to_vec(),
        32 => bytes(words)[..4 * lanes].to_vec(),
        _ => bytes(&rest[..4])[..8 * lanes].to_vec(),
    }
}

/// What `sust` is given: the low bytes of `%c4` …, as the kernel takes them.
fn given(input: &[u32; IN], bits: u32, lanes: usize) -> Vec<u8> {
    let words = &input[4..8];
    match bits {
        64 => words.iter().flat_map(|word| word.to_le_bytes()).take(8 * lanes).collect(),
        _ => {
            words[..lanes].iter().flat_map(|word| word.to_le_bytes()[..bits as usize / 8].to_vec()).collect()
        }
    }
}

const ELEMENTS: [Format; 7] = [
    Format(HIP_AD_FORMAT_UNSIGNED_INT8, 1),
    Format(HIP_AD_FORMAT_HALF, 1),
    Format(HIP_AD_FORMAT_SIGNED_INT8, 4),
    Format(HIP_AD_FORMAT_FLOAT, 1),
    Format(HIP_AD_FORMAT_FLOAT, 2),
    Format(HIP_AD_FORMAT_UNSIGNED_INT16, 4),
    Format(HIP_AD_FORMAT_FLOAT, 4),
];

/// All widths in an image; elsewhere those of its elements.
fn of_interest(geometry: &str, format: Format, bytes: usize) -> bool {
    geometry == "2d" || format.bytes() == bytes && format.1 != 2
}

#[test]
fn every_width_is_loaded_from_its_place() {
    let Some(mut batch) =
        Batch::new("loads", &module(), |name| name.starts_with("suld") && !name.contains("trap"))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for shape in SHAPES {
        for format in ELEMENTS {
            let object = surface(shape.name, format);
            for (bits, lanes, _) in accesses(shape.name) {
                let bytes = bits as usize / 8 * lanes;
                if !of_interest(shape.name, format, bytes) {
                    continue;
                }
                for bounds in ["clamp", "zero"] {
                    let places = places(shape.name, bytes, object.size[0] * format.bytes());
                    let inputs: Vec<[u32; IN]> = places.iter().map(|&at| input(shape.name, at)).collect();
                    let (kernel, object_) =
                        (access_name("suld", shape.name, bounds, bits, lanes), object.clone());
                    let what = format!("{kernel} of {format:?}");
                    batch.add(&kernel, &[&object], &inputs, move |outcome| {
                        for (&at, result) in places.iter().zip(&outcome.results) {
                            let want = match place(&object_, seen(shape.name, at), bytes, bounds) {
                                Some(at) => object_.bytes[at..at + bytes].to_vec(),
                                None => vec![0; bytes],
                            };
                            let got = bytes_of(&result[..4], bits, lanes, &result[4..]);
                            assert_eq!(got, want, "{what} at {at:?}");
                        }
                        assert_eq!((outcome.fault, &outcome.image), (0, &object_.bytes), "{what}");
                    });
                }
            }
        }
    }
    batch.run();
}

/// A part of an element cannot be stored without the rest.
#[test]
fn every_width_is_stored_at_its_place() {
    let Some(mut batch) =
        Batch::new("stores", &module(), |name| name.starts_with("sust") && !name.contains("trap"))
    else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for shape in SHAPES {
        for format in ELEMENTS {
            let object = surface(shape.name, format);
            for (bits, lanes, _) in accesses(shape.name) {
                let bytes = bits as usize / 8 * lanes;
                if !of_interest(shape.name, format, bytes) {
                    continue;
                }
                for bounds in ["clamp", "zero"] {
                    let places = places(shape.name, bytes, object.size[0] * format.bytes());
                    let inputs: Vec<[u32; IN]> = places.iter().map(|&at| input(shape.name, at)).collect();
                    let mut memory = object.bytes.clone();
                    let is_part = bytes < format.bytes();
                    for (&at, input) in places.iter().zip(&inputs).filter(|_| !is_part) {
                        if let Some(at) = place(&object, seen(shape.name, at), bytes, bounds) {
                            memory[at..at + bytes].copy_from_slice(&given(input, bits, lanes));
                        }
                    }
                    let fault = if is_part { Fault::Trap as u32 } else { 0 };
                    let kernel = access_name("sust", shape.name, bounds, bits, lanes);
                    let what = format!("{kernel} of {format:?}");
                    batch.add(&kernel, &[&object], &inputs, move |outcome| {
                        assert_eq!((outcome.fault, &outcome.image), (fault, &memory), "{what}");
                    });
                }
            }
        }
    }
    batch.run();
}

/// `.trap`: the threads inside go on, one outside ends, and the fault is noted.
#[test]
fn an_access_outside_traps_where_it_says_so() {
    let Some(mut batch) = Batch::new("traps", &module(), |name| name.contains("trap_32x1")) else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    let word = Format(HIP_AD_FORMAT_UNSIGNED_INT32, 1);
    for shape in SHAPES {
        let object = surface(shape.name, word);
        for what in ["suld", "sust"] {
            let places = places(shape.name, 4, 48);
            let inputs: Vec<[u32; IN]> = places.iter().map(|&at| input(shape.name, at)).collect();
            let (object_, geometry) = (object.clone(), shape.name);
            batch.add(
                &access_name(what, geometry, "trap", 32, 1),
                &[&object],
                &inputs.clone(),
                move |outcome| {
                    assert_eq!(outcome.fault, Fault::Trap as u32, "{what} {geometry}");
                    let mut memory = object_.bytes.clone();
                    for ((&at, input), result) in places.iter().zip(&inputs).zip(&outcome.results) {
                        let inside = place(&object_, seen(geometry, at), 4, "trap");
                        // Who ended stored no results.
                        let done = result != &[0; OUT];
                        assert_eq!(done, inside.is_some(), "{what} {geometry} {at:?}");
                        let Some(at) = inside else { continue };
                        match what {
                            "suld" => {
                                assert_eq!(result[0].to_le_bytes(), object_.bytes[at..at + 4], "{geometry}")
                            }
                            _ => memory[at..at + 4].copy_from_slice(&given(input, 32, 1)),
                        }
                    }
                    assert_eq!(outcome.image, memory, "{what} {geometry}");
                },
            );
        }
    }
    batch.run();
}

/// What an operation makes of two numbers of a width.
fn reduced(form: &str, signed: bool, bits: u32, a: u64, b: u64) -> u64 {
    let wide = |it: u64| {
        if signed { i128::from((it << (64 - bits)).cast_signed() >> (64 - bits)) } else { i128::from(it) }
    };
    let value = match form.split('.').next().unwrap() {
        "add" => wide(a) + wide(b),
        "min" => wide(a).min(wide(b)),
        "max" => wide(a).max(wide(b)),
        "and" => wide(a) & wide(b),
        _ => wide(a) | wide(b),
    };
    value as u64 & (u64::MAX >> (64 - bits))
}

#[test]
fn every_reduction_has_its_place_in_every_geometry() {
    let Some(mut batch) = Batch::new("reductions", &module(), |name| name.starts_with("red_")) else {
        return testkit::skip!("{NO_EMULATOR}");
    };
    for geometry in ["1d", "2d", "3d"] {
        for bounds in ["clamp", "zero"] {
            for (form, by_element, bits) in reductions(geometry) {
                for signed in [false, true] {
                    // By sample, the surface's format says what the numbers are.
                    let of_format =
                        if signed { HIP_AD_FORMAT_SIGNED_INT32 } else { HIP_AD_FORMAT_UNSIGNED_INT32 };
                    let is_signed = if by_element { signed } else { form.contains(".s") };
                    let object = surface(geometry, Format(of_format, bits / 32));
                    let bytes = bits as usize / 8;
                    let scale = if by_element { bytes as i64 } else { 1 };
                    let places: Vec<[i64; 3]> = places(geometry, bytes, 12 * bytes)
                        .into_iter()
                        .filter(|[x, ..]| *x > i64::from(i32::MIN))
                        .collect();
                    let mut inputs = vec![];
                    let mut memory = object.bytes.clone();
                    for &[x, y, z] in &places {
                        let input = input(geometry, [x / scale, y, z]);
                        if let Some(at) = place(&object, [x, y, z], bytes, bounds) {
                            let value = |bytes: &[u8]| {
                                bytes.iter().rev().fold(0u64, |sum, &byte| sum << 8 | u64::from(byte))
                            };
                            let given = value(&given(&input, bits, 1));
                            let after = reduced(form, is_signed, bits, value(&memory[at..at + bytes]), given);
                            memory[at..at + bytes].copy_from_slice(&after.to_le_bytes()[..bytes]);
                        }
                        inputs.push(input);
                    }
                    let kernel = reduction_name(geometry, bounds, form, by_element);
                    let what = format!("{kernel} signed {signed}");
                    batch.add(&kernel, &[&object], &inputs, move |outcome| {
                        assert_eq!((outcome.fault, &outcome.image), (0, &memory), "{what}");
                    });
                }
            }
        }
    }
    batch.run();
}
