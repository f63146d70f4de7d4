//! Every type, level and component of `tex` and `tld4`, for every geometry: the first form's values are the model's,
//! and in the kernel the others are compared with it, bit by bit.

use super::model;
use super::support::*;
use super::*;

struct Shape {
    geometry: &'static str,
    size: [usize; 3],
    flags: u32,
    /// Coordinates as floats in `%c0` …, as integers in `%c4` …, the layer in `%c8`, and derivatives.
    float: &'static str,
    integer: &'static str,
    gradient: &'static str,
}

const SHAPES: [Shape; 9] = [
    Shape { geometry: "1d", size: [7, 0, 0], flags: 0, float: "{%c0}", integer: "{%c4}", gradient: "{%c9}" },
    Shape {
        geometry: "2d",
        size: [7, 5, 0],
        flags: 0,
        float: "{%c0,%c1}",
        integer: "{%c4,%c5}",
        gradient: "{%c9,%c9}",
    },
    Shape {
        geometry: "3d",
        size: [7, 5, 4],
        flags: 0,
        float: "{%c0,%c1,%c2,%c2}",
        integer: "{%c4,%c5,%c6,%c6}",
        gradient: "{%c9,%c9,%c9,%c9}",
    },
    Shape {
        geometry: "a1d",
        size: [7, 0, 4],
        flags: hipArrayLayered,
        float: "{%c8,%c0}",
        integer: "{%c8,%c4}",
        gradient: "{%c9}",
    },
    Shape {
        geometry: "a2d",
        size: [7, 5, 4],
        flags: hipArrayLayered,
        float: "{%c8,%c0,%c1,%c1}",
        integer: "{%c8,%c4,%c5,%c5}",
        gradient: "{%c9,%c9}",
    },
    Shape {
        geometry: "cube",
        size: [4, 4, 6],
        flags: hipArrayCubemap,
        float: "{%c0,%c1,%c2,%c2}",
        integer: "",
        gradient: "{%c9,%c9,%c9,%c9}",
    },
    Shape {
        geometry: "acube",
        size: [4, 4, 12],
        flags: hipArrayCubemap | hipArrayLayered,
        float: "{%c8,%c0,%c1,%c2}",
        integer: "",
        gradient: "{%c9,%c9,%c9,%c9}",
    },
    Shape {
        geometry: "2dms",
        size: [7, 5, 0],
        flags: 0,
        float: "",
        integer: "{%c8,%c4,%c5,%c5}",
        gradient: "",
    },
    Shape {
        geometry: "a2dms",
        size: [7, 5, 4],
        flags: hipArrayLayered,
        float: "",
        integer: "{%c9,%c8,%c4,%c5}",
        gradient: "",
    },
];

/// `%o4` gets the bits in which `{%x0 … %x3}` differ from `{%o0 … %o3}`.
fn differ() -> String {
    (0..4).map(|n| format!("xor.b32 %x{n}, %x{n}, %o{n};\nor.b32 %o4, %o4, %x{n};\n")).collect()
}

/// The fetch `tex{level}.{geometry}` of a type, compared with the first.
fn fetch(name: &str, dtype: &str, ctype: &str, operands: &str) -> String {
    let words = |from: &str| {
        (0..4).map(|n| format!("cvt.f32.f16 %v, {from}{n};\nmov.b32 %x{n}, %v;\n")).collect::<String>()
    };
    match dtype {
        "f16" => {
            format!("{name}.v4.f16.{ctype} {{%h0,%h1,%h2,%h3}}, {operands};\n{}{}", words("%h"), differ())
        }
        "f16x2" => format!(
            "{name}.v2.f16x2.{ctype} {{%x0,%x1}}, {operands};\nmov.b32 {{%h0,%h1}}, %x0;\nmov.b32 {{%h2,%h3}}, %x1;\n{}{}",
            words("%h"),
            differ()
        ),
        _ => format!("{name}.v4.{dtype}.{ctype} {{%x0,%x1,%x2,%x3}}, {operands};\n{}", differ()),
    }
}

/// All fetches of a geometry with coordinates of a type.
fn fetches(shape: &Shape, ctype: &str) -> String {
    let geometry = shape.geometry;
    let at = if ctype == "f32" { shape.float } else { shape.integer };
    let mut text =
        format!("{{\n.reg .f32 %v;\ntex.{geometry}.v4.f32.{ctype} {{%o0,%o1,%o2,%o3}}, [%t, {at}];\n");
    let mut levels = vec![("tex".to_owned(), String::new())];
    if !shape.geometry.ends_with("ms") {
        levels.push(("tex.base".to_owned(), String::new()));
        // Level 0, as a float and as an integer; steps of no length.
        levels.push(("tex.level".to_owned(), ", %c9".to_owned()));
        levels.push(("tex.grad".to_owned(), format!(", {}, {}", shape.gradient, shape.gradient)));
    }
    for (name, more) in levels {
        for dtype in ["u32", "s32", "f32", "f16", "f16x2"] {
            text += &fetch(&format!("{name}.{geometry}"), dtype, ctype, &format!("[%t, {at}]{more}"));
        }
    }
    text + "}"
}

fn gathers(shape: &Shape, component: &str) -> String {
    let (geometry, at) = (shape.geometry, shape.float);
    let mut text = format!("tld4.{component}.{geometry}.v4.f32.f32 {{%o0,%o1,%o2,%o3}}, [%t, {at}];\n");
    for dtype in ["u32", "s32"] {
        text += &format!(
            "tld4.{component}.{geometry}.v4.{dtype}.f32 {{%x0,%x1,%x2,%x3}}, [%t, {at}];\n{}",
            differ()
        );
    }
    text
}

#[test]
fn all_types_levels_and_components_give_the_same_texels() {
    let mut kernels = vec![];
    for shape in &SHAPES {
        for (ctype, at) in [("f32", shape.float), ("s32", shape.integer)] {
            if !at.is_empty() {
                kernels.push((format!("t{}{ctype}", shape.geometry), fetches(shape, ctype)));
            }
        }
        if matches!(shape.geometry, "2d" | "a2d" | "cube" | "acube") {
            for component in ["r", "g", "b", "a"] {
                kernels.push((format!("g{}{component}", shape.geometry), gathers(shape, component)));
            }
        }
    }
    let list: Vec<(&str, &str)> = kernels.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
    // The settings differ in how many words go to the host, which other tests see.
    let mut bench = Bench::new("", "", &list).in_lanes();
    for shape in &SHAPES {
        // Halves, so that every type holds the values.
        let format = Format(HIP_AD_FORMAT_HALF, 4);
        let case =
            Case::new(shape.size, format, shape.flags, sampler(hipAddressModeClamp, hipFilterModePoint, 0));
        let is_cube = shape.flags & hipArrayCubemap != 0;
        let mut numbers = Numbers(5);
        let inputs: Vec<[u32; IN]> = (0..32)
            .map(|_| {
                let mut input = if is_cube {
                    words(&[(); 3].map(|()| numbers.between(-2.0, 2.0)))
                } else {
                    words(&[(); 3].map(|()| numbers.between(-1.0, 8.0)))
                };
                for word in &mut input[4..7] {
                    *word = (numbers.next() as u32 % 10).wrapping_sub(1);
                }
                input[8] = numbers.next() as u32 % 4;
                input
            })
            .collect();
        let layers = case.model.size[2] as i64 / if is_cube { 6 } else { 1 };
        for (name, _) in kernels.iter().filter(|(name, _)| {
            let rest = &name[1..];
            ["f32", "s32", "r", "g", "b", "a"]
                .iter()
                .any(|end| rest.strip_suffix(end) == Some(shape.geometry))
        }) {
            let results = bench.run(name, case.handle(), 0, &inputs).unwrap();
            for (input, result) in inputs.iter().zip(&results) {
                assert_eq!(result[4], 0, "{name}: {input:x?}");
                let float: [f64; 3] = std::array::from_fn(|nth| f64::from(f32::from_bits(input[nth])));
                let integer: [f64; 3] =
                    std::array::from_fn(|nth| f64::from(input[4 + nth].cast_signed()) + 0.5);
                let mut layer =
                    if shape.flags & hipArrayLayered != 0 { i64::from(input[8]).min(layers - 1) } else { 0 };
                let mut at = if name.ends_with("s32") { integer } else { float };
                let mut model = case.model.clone();
                if is_cube {
                    let (face, [s, t]) = model::face(float);
                    layer = 6 * layer + face;
                    at = [s, t, 0.0];
                    model.desc.flags |= HIP_TRSF_NORMALIZED_COORDINATES;
                }
                let want = match name.as_bytes() {
                    [b'g', .., component] => {
                        let component = b"rgba".iter().position(|it| it == component).unwrap();
                        model.gather([at[0], at[1]], layer, [0; 3], component)
                    }
                    _ => model.fetch(at, layer, [0; 3]),
                };
                agree(bits(result, true, false), want, true, &|| format!("{name}: {input:x?}"));
            }
        }
    }
}
