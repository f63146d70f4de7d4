//! `tensormap.replace`: every field, in a map that lies in global or shared memory, in every setting. What comes out is the
//! map that the driver would have made of the same values, and a copy that is made by it is the model's.

use std::fmt::Write;

use compiler::tensor_map::{BYTES, Element, Im2col, Swizzle, TensorMap};
use hip_cpu::harness::{self, Arg, How, load, run};

use super::{Load, TILE, Tensor, check_load_as};

/// The manual's numbers for element types.
const ELEMENTS: [Element; 13] = [
    Element::U8,
    Element::U16,
    Element::U32,
    Element::S32,
    Element::U64,
    Element::S64,
    Element::F16,
    Element::F32,
    Element::F32Ftz,
    Element::F64,
    Element::Bf16,
    Element::Tf32,
    Element::Tf32Ftz,
];

/// Replaces every field by what `map` has. `from` is the state space as written, `at` the register with the address, and
/// numbers that may come in registers do so where `registers` is set: `%w` and `%d`.
fn replacements(map: &TensorMap, from: &str, at: &str, registers: bool) -> String {
    let mut text = String::new();
    let mut replace = |field: &str, ord: Option<usize>, value: u64, wide: bool, fixed: bool| {
        let (bits, register) = if wide { ("b64", "%d") } else { ("b32", "%w") };
        let ord = ord.map_or(String::new(), |ord| format!("{ord}, "));
        let value = match registers && !fixed {
            true => {
                writeln!(text, "mov.{bits} {register}, {value};").unwrap();
                register.to_owned()
            }
            false => value.to_string(),
        };
        writeln!(text, "tensormap.replace.tile.{field}{from}.b1024.{bits} [{at}], {ord}{value};").unwrap();
    };
    replace("global_address", None, map.address, true, false);
    replace("rank", None, u64::from(map.rank) - 1, false, false);
    for axis in 0..5 {
        replace("box_dim", Some(axis), map.box_dims[axis].into(), false, false);
        replace("global_dim", Some(axis), map.dims[axis], false, false);
        replace("element_stride", Some(axis), map.steps[axis].into(), false, false);
        // The fifth has no meaning.
        replace("global_stride", Some(axis), map.strides.get(axis).copied().unwrap_or(0x70), true, false);
    }
    let element = ELEMENTS.iter().position(|&element| element == map.element).unwrap() as u64;
    replace("elemtype", None, element, false, true);
    replace("interleave_layout", None, 0, false, true);
    replace("swizzle_mode", None, swizzle(map).0, false, true);
    replace("fill_mode", None, map.nan_fill.into(), false, true);
    text
}

/// The numbers of the mode, and of how much keeps together.
fn swizzle(map: &TensorMap) -> (u64, u64) {
    match map.swizzle {
        Swizzle::Bytes128By32 => (3, 1),
        Swizzle::Bytes128By32Flipped => (3, 2),
        Swizzle::Bytes128By64 => (3, 3),
        other => (other as u64, 0),
    }
}

#[repr(align(128))]
struct Aligned([u8; BYTES]);

/// A warp of which one lane replaces all fields of a map in that space.
fn replaced(before: [u8; BYTES], map: &TensorMap, from: &str, registers: bool) {
    let shared = from == ".shared::cta" || from == " in shared";
    let word = if from.starts_with('.') { from } else { "" };
    let (to_shared, at) = match (shared, word) {
        (true, "") => ("mov.u64 %s, map;\ncvta.shared.u64 %s, %s;\n", "%s"),
        (true, _) => ("mov.u64 %s, map;\n", "%s"),
        _ => ("", "%to"),
    };
    let mut replacements = replacements(map, word, at, registers);
    // What compute capability 10.0 has more.
    let atomicity = swizzle(map).1;
    writeln!(replacements, "tensormap.replace.tile.swizzle_atomicity{word}.b1024.b32 [{at}], {atomicity};")
        .unwrap();
    let (fill, back) = match shared {
        true => (
            "st.shared.b32 [%place], %x;",
            "tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%to], [map], 128;",
        ),
        false => ("", ""),
    };
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n.visible .entry replace(.param .u64 to)
{{
    .shared .align 128 .b8 map[128];
    .reg .pred %p; .reg .b32 %t, %x, %w, %place; .reg .b64 %to, %o, %d, %s;
    ld.param.u64 %to, [to];
    cvta.to.global.u64 %to, %to;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %o, %t, 4;
    add.u64 %o, %to, %o;
    ld.global.b32 %x, [%o];
    mov.u32 %place, map;
    mad.lo.u32 %place, %t, 4, %place;
    {fill}
    bar.warp.sync 0xffffffff;
    setp.ne.u32 %p, %t, 0;
    @%p bra JOIN;
    {to_shared}{replacements}
JOIN:
    bar.warp.sync 0xffffffff;
    {back}
    ret;
}}"
    );
    let program = load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let how = How::new(1, 32);
    let mut seen = 0;
    for how in [how.clone().lane(), how.clone().baseline(), how.clone().warp(), how] {
        let mut bytes = Aligned(before);
        match run(&program, "replace", &how, &mut [Arg::Buffer(&mut bytes.0)]) {
            Err(harness::Error::Refused { .. }) => continue,
            other => other.unwrap_or_else(|error| panic!("{error}\n{text}")),
        }
        seen += 1;
        assert_eq!(TensorMap::decode(&bytes.0), Some(*map), "{from} {:?}\n{text}", how.setting);
        assert_eq!(bytes.0, map.encode(), "{from} {:?}", how.setting);
    }
    assert!(seen >= 3, "only {seen} settings ran");
}

fn maps() -> Vec<TensorMap> {
    let tile = |element, swizzle, nan_fill| TensorMap {
        address: 0x7fff_1234_5670,
        strides: [16, 0x123_4560, (1 << 40) - 16, 32],
        dims: [1, 7, 1 << 31, u32::MAX.into(), 12],
        box_dims: [256, 1, 17, 64, 3],
        steps: [1, 8, 2, 3, 1],
        rank: 5,
        element,
        swizzle,
        nan_fill,
        im2col: None,
    };
    let mut maps: Vec<TensorMap> =
        ELEMENTS.iter().map(|&element| tile(element, Swizzle::None, element.is_float())).collect();
    for (rank, swizzle) in [
        (1, Swizzle::Bytes32),
        (2, Swizzle::Bytes64),
        (3, Swizzle::Bytes128),
        (4, Swizzle::Bytes128By32),
        (5, Swizzle::Bytes128By32Flipped),
        (2, Swizzle::Bytes128By64),
    ] {
        maps.push(TensorMap { rank, ..tile(Element::U32, swizzle, false) });
    }
    maps
}

#[test]
fn every_field_is_replaced_in_either_space() {
    let maps = maps();
    let other = TensorMap { address: 0x1000, nan_fill: true, ..maps[7] }.encode();
    for (nth, map) in maps.iter().enumerate() {
        // By names, and by generic addresses; over another map, and over bytes that are none yet.
        let spaces = [".global", ".shared::cta", "", " in shared"];
        let spaces = if nth == 0 { &spaces[..] } else { &spaces[nth % 4..][..1] };
        for (space, from) in spaces.iter().enumerate() {
            let before = if (nth + space) % 2 == 0 { [0; BYTES] } else { other };
            replaced(before, map, from, (nth + space) % 3 != 0);
        }
    }
}

#[test]
fn a_copy_follows_the_map_that_a_kernel_changed() {
    let mut tensor = Tensor::new(Element::F32, &[20, 7, 5]);
    tensor.map.box_dims = [8, 3, 2, 0, 0];
    tensor.map.nan_fill = true;
    // The kernel is given a map of a smaller tensor elsewhere, which it copies to shared memory and from there to memory.
    let given = TensorMap {
        address: 16,
        dims: [1; 5],
        strides: [0; 4],
        nan_fill: false,
        swizzle: Swizzle::Bytes32,
        ..tensor.map
    };
    let mut place = Aligned(given.encode());
    let fields = replacements(&tensor.map, ".global", "%rd2", true);
    let before = format!(
        ".reg .b32 %w; .reg .b64 %d; mov.b64 %rd2, {};\n{fields}fence.proxy.tensormap::generic.acquire.gpu [%rd2], 128;\n",
        place.0.as_mut_ptr() as u64
    );
    check_load_as("replaced", &tensor, [16, 5, 4, 0, 0], None, Load { before: &before, ..TILE });
    assert_eq!(place.0, tensor.map.encode());
}

#[test]
fn what_the_manual_does_not_have_is_refused() {
    let emitted = |instruction: &str| {
        let text = format!(
            ".version 8.8\n.target sm_103a\n.address_size 64\n.visible .entry kernel(.param .u64 map)\n{{\n\
             .reg .b32 %w;\n.reg .b64 %a, %d;\nld.param.u64 %a, [map];\n{instruction}\nret;\n}}\n"
        );
        load(&text).and_then(|program| harness::emit(&program, "kernel", &How::new(1, 32)).map(|_| ()))
    };
    emitted("tensormap.replace.tile.rank.global.b1024.b32 [%a], %w;").unwrap();
    for space in ["", ".global", ".shared::cta"] {
        emitted(&format!("tensormap.replace.tile.swizzle_atomicity{space}.b1024.b32 [%a], 0;")).unwrap();
    }
    for element in 13..=15 {
        emitted(&format!("tensormap.replace.tile.elemtype.global.b1024.b32 [%a], {element};")).unwrap();
    }
    for (wrong, why) in [
        ("tile.rank.global.b1024.b64 [%a], %d;", "not supported"),
        ("tile.global_address.global.b1024.b32 [%a], %w;", "not supported"),
        ("tile.global_dim.global.b1024.b64 [%a], 0, %d;", "not supported"),
        ("im2col.rank.global.b1024.b32 [%a], %w;", "not supported"),
        ("tile.rank.shared::cluster.b1024.b32 [%a], %w;", "not supported"),
        ("tile.rank.global.b32 [%a], %w;", "not supported"),
        ("tile.rank.global.b1024.b32 [%a], 0, %w;", "takes 2 operands"),
        ("tile.box_dim.global.b1024.b32 [%a], %w;", "takes 3 operands"),
        ("tile.box_dim.global.b1024.b32 [%a], 5, %w;", "0 to 4"),
        ("tile.box_dim.global.b1024.b32 [%a], %w, %w;", "0 to 4"),
        ("tile.elemtype.global.b1024.b32 [%a], %w;", "a constant"),
        ("tile.elemtype.global.b1024.b32 [%a], 16;", "no such value"),
        ("tile.fill_mode.global.b1024.b32 [%a], 2;", "no such value"),
        ("tile.swizzle_mode.global.b1024.b32 [%a], 5;", "no such value"),
        ("tile.swizzle_atomicity.global.b1024.b32 [%a], 4;", "no such value"),
        ("tile.interleave_layout.global.b1024.b32 [%a], 3;", "no such value"),
        // What our copies do not do.
        ("tile.interleave_layout.global.b1024.b32 [%a], 1;", "interleaved"),
        ("tile.swizzle_mode.global.b1024.b32 [%a], 4;", "swizzle"),
    ] {
        let error = emitted(&format!("tensormap.replace.{wrong}")).expect_err(wrong).to_string();
        assert!(error.contains(why), "{wrong}: {error}");
    }
}

/// The model's map has no im2col: the mode is the template's, and `.tile` is all that can be written.
#[test]
fn the_mode_of_a_map_stays() {
    let im2col = Im2col { channels_per_pixel: 8, pixels_per_column: 4, ..Im2col::default() };
    let map = TensorMap { im2col: Some(im2col), box_dims: [0; 5], rank: 3, ..maps()[2] };
    let text = ".version 8.6\n.target sm_90a\n.address_size 64\n.visible .entry replace(.param .u64 to)\n{\n.reg .b64 %a;\n\
        ld.param.u64 %a, [to];\ntensormap.replace.tile.global_address.b1024.b64 [%a], 0x4560;\nret;\n}";
    let mut bytes = Aligned(map.encode());
    run(&load(text).unwrap(), "replace", &How::new(1, 1), &mut [Arg::Buffer(&mut bytes.0)]).unwrap();
    assert_eq!(TensorMap::decode(&bytes.0), Some(TensorMap { address: 0x4560, ..map }));
}
