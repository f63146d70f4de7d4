//! Surfaces: loads, stores and reductions, inside and outside.

use super::support::*;

use hip_cpu::api::*;
use hip_cpu::exec::Fault;
use hip_sys::*;

/// Geometries with the coordinates `%c0` … and the array's size.
const GEOMETRIES: [(&str, &str, [usize; 3], u32); 5] = [
    ("1d", "{%c0}", [12, 0, 0], 0),
    ("2d", "{%c0,%c1}", [12, 5, 0], 0),
    ("3d", "{%c0,%c1,%c2,%c2}", [12, 5, 4], 0),
    ("a1d", "{%c2,%c0}", [12, 0, 4], hipArrayLayered),
    ("a2d", "{%c2,%c0,%c1,%c1}", [12, 5, 4], hipArrayLayered),
];

/// Registers of each width, and how the words come in and go out.
fn moves(bits: u32, lanes: usize) -> (String, String, String) {
    let (mut registers, mut takes, mut gives) = (vec![], String::new(), String::new());
    for nth in 0..lanes {
        match bits {
            8 | 16 => {
                registers.push(format!("%h{nth}"));
                takes += &format!("cvt.u16.u32 %h{nth}, %c{};", 4 + nth);
                gives += &format!("cvt.u32.u16 %o{nth}, %h{nth};");
            }
            32 => {
                registers.push(format!("%x{nth}"));
                takes += &format!("mov.b32 %x{nth}, %c{};", 4 + nth);
                gives += &format!("mov.b32 %o{nth}, %x{nth};");
            }
            _ => {
                registers.push(format!("%d{nth}"));
                takes += &format!("mov.b64 %d{nth}, {{%c{}, %c{}}};", 4 + 2 * nth, 5 + 2 * nth);
                gives += &format!("mov.b64 {{%o{}, %o{}}}, %d{nth};", 2 * nth, 2 * nth + 1);
            }
        }
    }
    (format!("{{{}}}", registers.join(",")), takes, gives)
}

const SHAPES: [(u32, usize); 11] =
    [(8, 1), (8, 2), (8, 4), (16, 1), (16, 2), (16, 4), (32, 1), (32, 2), (32, 4), (64, 1), (64, 2)];

fn vector(lanes: usize) -> &'static str {
    match lanes {
        1 => "",
        2 => ".v2",
        _ => ".v4",
    }
}

/// The place that the manual's rule for the mode gives, in bytes, row, slice; `None` for nowhere.
fn place(at: [i64; 3], bytes: i64, limits: [i64; 3], mode: &str) -> Option<[i64; 3]> {
    let inside =
        at[0] >= 0 && at[0] + bytes <= limits[0] && (1..3).all(|nth| at[nth] >= 0 && at[nth] < limits[nth]);
    match mode {
        _ if inside => Some(at),
        "clamp" => Some([
            at[0].max(0).min(limits[0] - bytes),
            at[1].max(0).min(limits[1] - 1),
            at[2].max(0).min(limits[2] - 1),
        ]),
        _ => None,
    }
}

#[test]
fn every_width_is_loaded_and_stored_at_its_place() {
    for (geometry, coordinates, size, flags) in GEOMETRIES {
        let kernels: Vec<(String, String)> = SHAPES
            .iter()
            .flat_map(|&(bits, lanes)| {
                let (list, takes, gives) = moves(bits, lanes);
                let v = vector(lanes);
                ["clamp", "zero"].into_iter().flat_map(move |mode| {
                    [
                        (
                            format!("l{bits}x{lanes}{mode}"),
                            format!(
                                "suld.b.{geometry}{v}.b{bits}.{mode} {list}, [%t, {coordinates}]; {gives}"
                            ),
                        ),
                        (
                            format!("s{bits}x{lanes}{mode}"),
                            format!(
                                "{takes} sust.b.{geometry}{v}.b{bits}.{mode} [%t, {coordinates}], {list};"
                            ),
                        ),
                    ]
                })
            })
            .collect();
        let list: Vec<(&str, &str)> = kernels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let mut bench = Bench::new("", "", &list);
        if geometry != "2d" {
            bench = bench.in_lanes();
        }
        let format = Format(HIP_AD_FORMAT_UNSIGNED_INT32, 1);
        let array = array(size, format, flags | hipArraySurfaceLoadStore);
        let surface = surface(array);
        let full = size.map(|it| it.max(1));
        let (row, rows, slices) = (full[0] * 4, full[1], full[2]);
        let mut memory: Vec<u8> = (0..row * rows * slices).map(|it| (it * 37 + 11) as u8).collect();
        upload(array, &memory, row, rows, slices);
        let limits = [row as i64, rows as i64, slices as i64];
        for (bits, lanes) in SHAPES {
            let bytes = i64::from(bits) / 8 * lanes as i64;
            for mode in ["clamp", "zero"] {
                for (x, y, z) in [
                    (0, 0, 0),
                    (2, 3, 1),
                    (limits[0] / bytes - 1, 4, 3),
                    (-1, 1, 2),
                    (99, 2, 0),
                    (1, -1, 3),
                    (1, 5, 1),
                    (1, 1, 4),
                ] {
                    let used = |axis: usize| match axis {
                        1 => matches!(geometry, "2d" | "3d" | "a2d"),
                        _ => matches!(geometry, "3d" | "a1d" | "a2d"),
                    };
                    let at = [x * bytes, if used(1) { y } else { 0 }, if used(2) { z } else { 0 }];
                    let to = place(at, bytes, limits, mode);
                    let offset = to.map(|[x, y, z]| ((z * limits[1] + y) * limits[0] + x) as usize);
                    let what = format!("{geometry} b{bits} x {lanes} {mode} at {at:?}");
                    let mut input = [0u32; IN];
                    input[..3].copy_from_slice(&[(x * bytes) as u32, y as u32, z as u32]);
                    let got =
                        bench.run(&format!("l{bits}x{lanes}{mode}"), surface as u64, 0, &[input]).unwrap()[0];
                    let loaded =
                        offset.map_or(vec![0; bytes as usize], |at| memory[at..at + bytes as usize].to_vec());
                    assert_eq!(narrow(&got, bits, lanes), loaded, "{what}");
                    let data: Vec<u8> = (0..16).map(|it| (it * 29 + x + y) as u8).collect();
                    for lane in 0..lanes {
                        let part = &data[lane * bits as usize / 8..(lane + 1) * bits as usize / 8];
                        let mut wide = [0; 8];
                        wide[..part.len()].copy_from_slice(part);
                        let value = u64::from_le_bytes(wide);
                        if bits == 64 {
                            (input[4 + 2 * lane], input[5 + 2 * lane]) = (value as u32, (value >> 32) as u32);
                        } else {
                            input[4 + lane] = value as u32;
                        }
                    }
                    bench.run(&format!("s{bits}x{lanes}{mode}"), surface as u64, 0, &[input]).unwrap();
                    if let Some(at) = offset {
                        memory[at..at + bytes as usize].copy_from_slice(&data[..bytes as usize]);
                    }
                    assert_eq!(download(array, row, rows, slices), memory, "{what}");
                }
            }
        }
        hipDestroySurfaceObject(surface).unwrap();
        hipArrayDestroy(array).unwrap();
    }
}

fn narrow(words: &[u32; OUT], bits: u32, lanes: usize) -> Vec<u8> {
    match bits {
        64 => words[..2 * lanes].iter().flat_map(|it| it.to_le_bytes()).collect(),
        _ => words[..lanes].iter().flat_map(|it| it.to_le_bytes()[..bits as usize / 8].to_vec()).collect(),
    }
}

#[test]
fn formatted_stores_convert_to_the_surface() {
    let mut bench = Bench::new("", "", &[("s", "sust.p.2d.v4.b32.zero [%t, {%c0,%c1}], {%c4,%c5,%c6,%c7};")]);
    for (format, channels, words, want) in [
        (
            HIP_AD_FORMAT_FLOAT,
            2,
            [1.5f32, -2.0, 9.0, 9.0].map(f32::to_bits),
            vec![0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0],
        ),
        (HIP_AD_FORMAT_HALF, 2, [1.5f32, -2.0, 9.0, 9.0].map(f32::to_bits), vec![0, 0x3e, 0, 0xc0]),
        (HIP_AD_FORMAT_UNSIGNED_INT8, 4, [1, 2, 0x103, 255], vec![1, 2, 3, 255]),
        (HIP_AD_FORMAT_SIGNED_INT16, 1, [0xffff_fffe, 2, 3, 4], vec![0xfe, 0xff]),
        (HIP_AD_FORMAT_UNSIGNED_INT32, 4, [1, 2, 3, 4], vec![1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]),
    ] {
        let format = Format(format, channels);
        let array = array([3, 2, 0], format, hipArraySurfaceLoadStore);
        let row = 3 * format.bytes();
        upload(array, &vec![0xaa; row * 2], row, 2, 1);
        let surface = surface(array);
        let mut input = [0u32; IN];
        // Elements, not bytes.
        (input[0], input[1]) = (1, 1);
        input[4..8].copy_from_slice(&words);
        bench.run("s", surface as u64, 0, &[input]).unwrap();
        let mut expected = vec![0xaa; row * 2];
        expected[row + format.bytes()..row + 2 * format.bytes()].copy_from_slice(&want);
        assert_eq!(download(array, row, 2, 1), expected, "{format:?}");
        input[0] = 3;
        bench.run("s", surface as u64, 0, &[input]).unwrap();
        assert_eq!(download(array, row, 2, 1), expected, "{format:?}: outside");
        hipDestroySurfaceObject(surface).unwrap();
        hipArrayDestroy(array).unwrap();
    }
}

#[test]
fn reductions_of_many_threads_lose_nothing() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("addu32", "sured.b.add.2d.u32.trap [%t, {%c0,%c1}], %c2;"),
            ("adds32", "sured.b.add.2d.s32.trap [%t, {%c0,%c1}], %c2;"),
            ("minu32", "sured.b.min.2d.u32.trap [%t, {%c0,%c1}], %c2;"),
            ("mins32", "sured.b.min.2d.s32.trap [%t, {%c0,%c1}], %c2;"),
            ("maxs32", "sured.b.max.2d.s32.trap [%t, {%c0,%c1}], %c2;"),
            ("andb32", "sured.b.and.2d.b32.trap [%t, {%c0,%c1}], %c2;"),
            ("orb32", "sured.b.or.2d.b32.trap [%t, {%c0,%c1}], %c2;"),
            ("padd", "sured.p.add.2d.b32.trap [%t, {%c3,%c1}], %c2;"),
            ("pmax", "sured.p.max.2d.b32.trap [%t, {%c3,%c1}], %c2;"),
            ("addu64", "mov.b64 %d0, {%c2,%c4}; sured.b.add.2d.u64.trap [%t, {%c5,%c1}], %d0;"),
            ("mins64", "mov.b64 %d0, {%c2,%c4}; sured.b.min.2d.s64.trap [%t, {%c5,%c1}], %d0;"),
            ("pminb64", "mov.b64 %d0, {%c2,%c4}; sured.p.min.2d.b64.trap [%t, {%c3,%c1}], %d0;"),
        ],
    );
    let values: Vec<u32> = (0..96u32).map(|it| it.wrapping_mul(0x9e37_79b9)).collect();
    for (name, signed, start, wide) in [
        ("addu32", false, 5u64, false),
        ("adds32", true, 5, false),
        ("minu32", false, u64::MAX, false),
        ("mins32", true, 0x7fff_ffff, false),
        ("maxs32", true, 0x8000_0000, false),
        ("andb32", false, u64::MAX, false),
        ("orb32", false, 0, false),
        ("padd", true, 1, false),
        ("pmax", true, 0x8000_0000, false),
        ("pmax", false, 0, false),
        ("addu64", false, 77, true),
        ("mins64", true, u64::MAX >> 1, true),
        ("pminb64", false, u64::MAX, true),
    ] {
        let kind = if signed { HIP_AD_FORMAT_SIGNED_INT32 } else { HIP_AD_FORMAT_UNSIGNED_INT32 };
        let format = Format(kind, if wide { 2 } else { 1 });
        let array = array([4, 2, 0], format, hipArraySurfaceLoadStore);
        let surface = surface(array);
        let (bytes, row) = (format.bytes(), 4 * format.bytes());
        let inputs: Vec<[u32; IN]> = values
            .iter()
            .map(|&value| {
                let mut input = [0; IN];
                input[..6].copy_from_slice(&[8, 1, value, 2, value.rotate_left(7), 16]);
                input
            })
            .collect();
        let mut memory = vec![0u8; row * 2];
        memory[row + 2 * bytes..row + 3 * bytes].copy_from_slice(&start.to_le_bytes()[..bytes]);
        // Settings run one after the other over the same surface: three times each value, which only add counts.
        upload(array, &memory, row, 2, 1);
        bench.run(name, surface as u64, 0, &inputs).unwrap();
        let got = download(array, row, 2, 1);
        let all = values
            .iter()
            .map(|&it| if wide { u64::from(it) | u64::from(it.rotate_left(7)) << 32 } else { u64::from(it) });
        let of = |value: u64| match (wide, signed) {
            (false, true) => i128::from(value as u32 as i32),
            (false, false) => i128::from(value as u32),
            (true, true) => i128::from(value as i64),
            (true, false) => i128::from(value),
        };
        let want = match &name.replace('p', "")[..3] {
            "add" => 3 * all.map(of).sum::<i128>() + of(start),
            "min" => all.map(of).min().unwrap().min(of(start)),
            "max" => all.map(of).max().unwrap().max(of(start)),
            "and" => of(all.fold(start, |a, b| a & b)),
            _ => of(all.fold(start, |a, b| a | b)),
        };
        memory[row + 2 * bytes..row + 3 * bytes].copy_from_slice(&want.to_le_bytes()[..bytes]);
        assert_eq!(got, memory, "{name} signed {signed}");
        hipDestroySurfaceObject(surface).unwrap();
        hipArrayDestroy(array).unwrap();
    }
}

#[test]
fn what_is_outside_traps_when_asked_to_and_what_is_no_object_is_a_fault() {
    let mut bench = Bench::new(
        "",
        "",
        &[
            ("l", "suld.b.2d.b32.trap %o0, [%t, {%c0,%c1}];"),
            ("s", "sust.b.2d.b32.trap [%t, {%c0,%c1}], %c2;"),
            ("r", "sured.b.add.2d.u32.trap [%t, {%c0,%c1}], %c2;"),
            ("t", "tex.2d.v4.f32.f32 {%o0,%o1,%o2,%o3}, [%t, {%c0,%c1}];"),
            ("q", "txq.width.b32 %o0, [%t];"),
        ],
    );
    let format = Format(HIP_AD_FORMAT_UNSIGNED_INT32, 1);
    let array = array([4, 2, 0], format, hipArraySurfaceLoadStore);
    upload(array, &[7; 32], 16, 2, 1);
    let object = surface(array);
    for name in ["l", "s", "r"] {
        for at in [[4u32, 1], [12, 0]] {
            assert!(bench.run(name, object as u64, 0, &[words_of(&at)]).is_ok());
        }
        for at in [[16u32, 0], [u32::MAX, 0], [0, 2], [13, 0]] {
            assert_eq!(
                bench.run(name, object as u64, 0, &[words_of(&at)]),
                Err(Fault::Trap),
                "{name} {at:?}"
            );
        }
    }
    let texture = texture(&of_array(array), &HIP_TEXTURE_DESC::default());
    for name in ["l", "s", "r", "t", "q"] {
        let wrong_kind = if matches!(name, "t") { object as u64 } else { texture as u64 };
        let mut bad = vec![0, 8, 0x1234_5678_9abc, u64::MAX, array as u64];
        if name != "q" {
            bad.push(wrong_kind);
        }
        for handle in bad {
            let ran = bench.run(name, handle, 0, &[words_of(&[0, 0])]);
            assert!(matches!(ran, Err(Fault::Address(_))), "{name} {handle:#x}: {ran:?}");
        }
    }
    hipTexObjectDestroy(texture).unwrap();
    hipDestroySurfaceObject(object).unwrap();
    for (name, stale) in [("t", texture as u64), ("l", object as u64)] {
        let ran = bench.run(name, stale, 0, &[words_of(&[0, 0])]);
        assert_eq!(ran, Err(Fault::Address(stale as usize)), "{name}: a destroyed object");
    }
    // CUDA: nobody asks whether the array was made for it.
    let plain = super::support::array([4, 2, 0], format, 0);
    upload(plain, &[7; 32], 16, 2, 1);
    let object = surface(plain);
    assert!(bench.run("l", object as u64, 0, &[words_of(&[4, 1])]).is_ok());
    hipDestroySurfaceObject(object).unwrap();
    hipArrayDestroy(plain).unwrap();
    hipArrayDestroy(array).unwrap();
}

fn words_of(values: &[u32]) -> [u32; IN] {
    let mut words = [0; IN];
    words[..values.len()].copy_from_slice(values);
    words
}

#[test]
fn every_width_passes_where_nothing_traps() {
    let kernels: Vec<(String, String)> = GEOMETRIES
        .iter()
        .map(|(geometry, from, ..)| {
            let to = from.replace("%c0", "%c3");
            let mut text = String::new();
            for (bits, lanes) in SHAPES {
                let (list, ..) = moves(bits, lanes);
                let v = vector(lanes);
                text += &format!("suld.b.{geometry}{v}.b{bits}.trap {list}, [%t, {from}];\n");
                text += &format!("sust.b.{geometry}{v}.b{bits}.trap [%t, {to}], {list};\n");
            }
            for (load, store) in [("ca", "wb"), ("cg", "cg"), ("cs", "cs"), ("cv", "wt")] {
                text += &format!("suld.b.{geometry}.{load}.b32.trap %x0, [%t, {from}];\n");
                text += &format!("sust.b.{geometry}.{store}.b32.trap [%t, {to}], %x0;\n");
            }
            (format!("k{geometry}"), text)
        })
        .collect();
    let list: Vec<(&str, &str)> = kernels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut bench = Bench::new("", "", &list);
    for (geometry, _, size, flags) in GEOMETRIES {
        let array = array(size, Format(HIP_AD_FORMAT_UNSIGNED_INT32, 1), flags | hipArraySurfaceLoadStore);
        let full = size.map(|it| it.max(1));
        let (row, rows, slices) = (full[0] * 4, full[1], full[2]);
        let mut memory: Vec<u8> = (0..row * rows * slices).map(|it| (it * 37 + 11) as u8).collect();
        upload(array, &memory, row, rows, slices);
        let object = surface(array);
        // The first 16 bytes of row 1 and slice 2, as far as there are such, go to the next 16.
        let (y, z) = (1.min(rows - 1), 2.min(slices - 1));
        bench
            .run(&format!("k{geometry}"), object as u64, 0, &[words_of(&[0, y as u32, z as u32, 16])])
            .unwrap();
        let at = (z * rows + y) * row;
        memory.copy_within(at..at + 16, at + 16);
        assert_eq!(download(array, row, rows, slices), memory, "{geometry}");
        hipDestroySurfaceObject(object).unwrap();
        hipArrayDestroy(array).unwrap();
    }
}

#[test]
fn formatted_stores_reach_every_geometry() {
    // Vector, mode, element, and where that is: 12 elements in a row.
    let stores: [(usize, &str, i32, Option<usize>); 12] = [
        (1, "trap", 1, Some(1)),
        (2, "trap", 2, Some(2)),
        (4, "trap", 3, Some(3)),
        (1, "clamp", 4, Some(4)),
        (2, "clamp", -7, Some(0)),
        (4, "clamp", 99, Some(11)),
        (1, "zero", 6, Some(6)),
        (2, "zero", 7, Some(7)),
        (4, "zero", 8, Some(8)),
        (1, "zero", -1, None),
        (2, "zero", 12, None),
        (4, "zero", 99, None),
    ];
    let kernels: Vec<(String, String)> = GEOMETRIES
        .iter()
        .map(|(geometry, at, ..)| {
            let mut text = String::new();
            for (lanes, mode, x, _) in stores {
                let v = vector(lanes);
                let list = ["%c4", "%c5", "%c6", "%c7"][..lanes].join(",");
                text +=
                    &format!("mov.b32 %c0, {x};\nsust.p.{geometry}{v}.b32.{mode} [%t, {at}], {{{list}}};\n");
            }
            (format!("k{geometry}"), text)
        })
        .collect();
    let list: Vec<(&str, &str)> = kernels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    let mut bench = Bench::new("", "", &list);
    for (geometry, _, size, flags) in GEOMETRIES {
        let array = array(size, Format(HIP_AD_FORMAT_UNSIGNED_INT8, 4), flags | hipArraySurfaceLoadStore);
        let full = size.map(|it| it.max(1));
        let (row, rows, slices) = (full[0] * 4, full[1], full[2]);
        let mut memory = vec![0xee; row * rows * slices];
        upload(array, &memory, row, rows, slices);
        let object = surface(array);
        let (y, z) = (1.min(rows - 1), 2.min(slices - 1));
        let mut input = words_of(&[0, y as u32, z as u32]);
        input[4..8].copy_from_slice(&[1, 2, 3, 4]);
        bench.run(&format!("k{geometry}"), object as u64, 0, &[input]).unwrap();
        for (lanes, _, _, to) in stores {
            if let Some(x) = to {
                let at = (z * rows + y) * row + 4 * x;
                memory[at..at + lanes].copy_from_slice(&[1, 2, 3, 4][..lanes]);
            }
        }
        assert_eq!(download(array, row, rows, slices), memory, "{geometry}");
        hipDestroySurfaceObject(object).unwrap();
        hipArrayDestroy(array).unwrap();
    }
}

/// Operation and type, whether by sample, the surface's numbers, what was there, the operand, what is there then.
const REDUCTIONS: [(&str, bool, bool, u64, u64, u64); 20] = [
    ("add.u32", false, false, 0xffff_ffff, 3, 2),
    ("min.u32", false, false, 0xffff_ffff, 3, 3),
    ("max.u32", false, false, 0xffff_ffff, 3, 0xffff_ffff),
    ("add.s32", false, true, 0x7fff_ffff, 1, 0x8000_0000),
    ("min.s32", false, true, 0xffff_ffff, 3, 0xffff_ffff),
    ("max.s32", false, true, 0xffff_ffff, 3, 3),
    ("add.u64", false, false, 0xffff_ffff, 1, 0x1_0000_0000),
    ("min.u64", false, false, u64::MAX, 3, 3),
    ("max.u64", false, false, u64::MAX, 3, u64::MAX),
    ("min.s64", false, true, u64::MAX, 3, u64::MAX),
    ("max.s64", false, true, u64::MAX, 3, 3),
    ("and.b32", false, false, 0b1100, 0b1010, 0b1000),
    ("or.b32", false, false, 0b1100, 0b1010, 0b1110),
    ("add.b32", true, true, 0xffff_ffff, 3, 2),
    ("min.b32", true, true, 0xffff_ffff, 3, 0xffff_ffff),
    ("max.b32", true, false, 0xffff_ffff, 3, 0xffff_ffff),
    ("and.b32", true, false, 0b1100, 0b1010, 0b1000),
    ("or.b32", true, false, 0b1100, 0b1010, 0b1110),
    ("min.b64", true, true, u64::MAX, 3, u64::MAX),
    ("max.b64", true, true, u64::MAX, 3, 3),
];

#[test]
fn every_reduction_has_its_place_in_every_geometry() {
    for (geometry, at, size, _) in &GEOMETRIES[..3] {
        let kernels: Vec<(String, String)> = REDUCTIONS
            .iter()
            .map(|(form, by_sample, ..)| {
                let (op, ty) = form.split_once('.').unwrap();
                let (kind, value) =
                    (if *by_sample { "p" } else { "b" }, if ty.ends_with("64") { "%d0" } else { "%c8" });
                let mut text = "mov.b64 %d0, {%c8,%c9};\n".to_owned();
                // Inside, beyond the end, and nowhere.
                for (mode, x) in [("trap", "%c4"), ("clamp", "%c5"), ("zero", "%c6")] {
                    text += &format!(
                        "mov.b32 %c0, {x};\nsured.{kind}.{op}.{geometry}.{ty}.{mode} [%t, {at}], {value};\n"
                    );
                }
                (format!("{kind}{op}{ty}"), text)
            })
            .collect();
        let list: Vec<(&str, &str)> = kernels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        let mut bench = Bench::new("", "", &list).in_lanes();
        for ((form, by_sample, signed, before, operand, after), (name, _)) in REDUCTIONS.iter().zip(&kernels)
        {
            let kind = if *signed { HIP_AD_FORMAT_SIGNED_INT32 } else { HIP_AD_FORMAT_UNSIGNED_INT32 };
            let format = Format(kind, if form.ends_with("64") { 2 } else { 1 });
            let array = array(*size, format, hipArraySurfaceLoadStore);
            let full = size.map(|it| it.max(1));
            let (bytes, rows, slices) = (format.bytes(), full[1], full[2]);
            let row = full[0] * bytes;
            let mut memory: Vec<u8> =
                (0..full[0] * rows * slices).flat_map(|_| before.to_le_bytes()[..bytes].to_vec()).collect();
            upload(array, &memory, row, rows, slices);
            let object = surface(array);
            let (y, z) = (1.min(rows - 1), 2.min(slices - 1));
            let scale = if *by_sample { 1 } else { bytes as u32 };
            let mut input =
                words_of(&[0, y as u32, z as u32, 0, 3 * scale, 1000 * scale, (5 * scale).wrapping_neg()]);
            (input[8], input[9]) = (*operand as u32, (operand >> 32) as u32);
            bench.run(name, object as u64, 0, &[input]).unwrap();
            for x in [3, full[0] - 1] {
                let at = (z * rows + y) * row + x * bytes;
                memory[at..at + bytes].copy_from_slice(&after.to_le_bytes()[..bytes]);
            }
            assert_eq!(download(array, row, rows, slices), memory, "{geometry} {form} by sample {by_sample}");
            hipDestroySurfaceObject(object).unwrap();
            hipArrayDestroy(array).unwrap();
        }
    }
}
