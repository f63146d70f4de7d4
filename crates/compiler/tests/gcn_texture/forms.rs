//! PTX kernels with one texture or surface instruction each.

/// Words that a thread has: its inputs are `%c0` …, its outputs `%x0` to `%x3`, `%d0`, `%d1` (8 bytes), `%h0` to `%h3` (2).
pub const IN: usize = 12;
pub const OUT: usize = 16;

/// Coordinates are `%c0` to `%c2`, a layer is `%c3`, levels and data `%c4` to `%c7`, offsets `%c8` to `%c10`.
pub struct Shape {
    pub name: &'static str,
    pub at: &'static str,
    offsets: &'static str,
    gradients: &'static str,
}

pub const SHAPES: [Shape; 5] = [
    Shape { name: "1d", at: "{%c0}", offsets: "{%c8}", gradients: "{%c4}, {%c5}" },
    Shape { name: "2d", at: "{%c0,%c1}", offsets: "{%c8,%c9}", gradients: "{%c4,%c5}, {%c6,%c7}" },
    Shape {
        name: "3d",
        at: "{%c0,%c1,%c2,%c2}",
        offsets: "{%c8,%c9,%c10,%c10}",
        gradients: "{%c4,%c5,%c6,%c6}, {%c7,%c8,%c9,%c9}",
    },
    Shape { name: "a1d", at: "{%c3,%c0}", offsets: "{%c8}", gradients: "{%c4}, {%c5}" },
    Shape { name: "a2d", at: "{%c3,%c0,%c1,%c1}", offsets: "{%c8,%c9}", gradients: "{%c4,%c5}, {%c6,%c7}" },
];

/// Bits and number of the values that a surface access moves, and where they are.
const ACCESSES: [(u32, usize, &str); 11] = [
    (8, 1, "%h0"),
    (8, 2, "{%h0,%h1}"),
    (8, 4, "{%h0,%h1,%h2,%h3}"),
    (16, 1, "%h0"),
    (16, 2, "{%h0,%h1}"),
    (16, 4, "{%h0,%h1,%h2,%h3}"),
    (32, 1, "%x0"),
    (32, 2, "{%x0,%x1}"),
    (32, 4, "{%x0,%x1,%x2,%x3}"),
    (64, 1, "%d0"),
    (64, 2, "{%d0,%d1}"),
];

/// Form, whether coordinates count elements, bits.
const REDUCTIONS: [(&str, bool, u32); 20] = [
    ("add.u32", false, 32),
    ("min.u32", false, 32),
    ("max.u32", false, 32),
    ("add.s32", false, 32),
    ("min.s32", false, 32),
    ("max.s32", false, 32),
    ("and.b32", false, 32),
    ("or.b32", false, 32),
    ("add.u64", false, 64),
    ("min.u64", false, 64),
    ("max.u64", false, 64),
    ("min.s64", false, 64),
    ("max.s64", false, 64),
    ("add.b32", true, 32),
    ("min.b32", true, 32),
    ("max.b32", true, 32),
    ("and.b32", true, 32),
    ("or.b32", true, 32),
    ("min.b64", true, 64),
    ("max.b64", true, 64),
];

/// Everything for images; elsewhere one of each kind.
pub fn accesses(shape: &str) -> impl Iterator<Item = (u32, usize, &'static str)> {
    let all = shape == "2d";
    ACCESSES
        .into_iter()
        .filter(move |(bits, lanes, _)| all || [(8, 1), (32, 1), (32, 4)].contains(&(*bits, *lanes)))
}

pub fn reductions(shape: &str) -> impl Iterator<Item = (&'static str, bool, u32)> {
    let some = ["add.u32", "max.s64", "min.b32"];
    let (all, none) = (shape == "2d", shape.starts_with('a'));
    REDUCTIONS.into_iter().filter(move |(form, ..)| !none && (all || some.contains(form)))
}

pub const BOUNDS: [&str; 3] = ["trap", "clamp", "zero"];
pub const QUERIES: [&str; 14] = [
    "width",
    "height",
    "depth",
    "channel_data_type",
    "channel_order",
    "normalized_coords",
    "array_size",
    "num_mipmap_levels",
    "num_samples",
    "force_unnormalized_coords",
    "filter_mode",
    "addr_mode_0",
    "addr_mode_1",
    "addr_mode_2",
];

fn vector(lanes: usize) -> &'static str {
    ["", ".v2", ".v4"][lanes.ilog2() as usize]
}

pub fn access_name(what: &str, shape: &str, bounds: &str, bits: u32, lanes: usize) -> String {
    format!("{what}_{shape}_{bounds}_{bits}x{lanes}")
}

pub fn reduction_name(shape: &str, bounds: &str, form: &str, by_element: bool) -> String {
    format!("red_{shape}_{bounds}_{}_{by_element}", form.replace('.', "_"))
}

/// All names with their instructions.
pub fn all() -> Vec<(String, String)> {
    let four = "{%x0,%x1,%x2,%x3}";
    let mut list = vec![];
    for Shape { name, at, offsets, gradients } in SHAPES {
        for c in ["f32", "s32"] {
            list.push((format!("tex_{name}_{c}"), format!("tex.{name}.v4.f32.{c} {four}, [%t, {at}];")));
            list.push((
                format!("off_{name}_{c}"),
                format!("tex.{name}.v4.u32.{c} {four}, [%t, {at}], {offsets};"),
            ));
            list.push((
                format!("level_{name}_{c}"),
                format!("tex.level.{name}.v4.s32.{c} {four}, [%t, {at}], %c7;"),
            ));
        }
        list.push((
            format!("grad_{name}"),
            format!("tex.grad.{name}.v4.f32.f32 {four}, [%t, {at}], {gradients};"),
        ));
        list.push((
            format!("half_{name}"),
            format!("tex.{name}.v4.f16.f32 {{%h0,%h1,%h2,%h3}}, [%t, {at}];"),
        ));
        list.push((format!("pair_{name}"), format!("tex.{name}.v2.f16x2.f32 {{%x0,%x1}}, [%t, {at}];")));
        if name.ends_with("2d") {
            for c in ["r", "g", "b", "a"] {
                list.push((
                    format!("tld4_{name}_{c}"),
                    format!("tld4.{c}.{name}.v4.f32.f32 {four}, [%t, {at}];"),
                ));
            }
            list.push((
                format!("tld4off_{name}"),
                format!("tld4.r.{name}.v4.f32.f32 {four}, [%t, {at}], {offsets};"),
            ));
        }
        for bounds in BOUNDS {
            for (bits, lanes, values) in accesses(name) {
                let v = vector(lanes);
                list.push((
                    access_name("suld", name, bounds, bits, lanes),
                    format!("suld.b.{name}{v}.b{bits}.{bounds} {values}, [%t, {at}];"),
                ));
                list.push((
                    access_name("sust", name, bounds, bits, lanes),
                    format!("{TAKE} sust.b.{name}{v}.b{bits}.{bounds} [%t, {at}], {values};"),
                ));
            }
            for (form, by_element, bits) in reductions(name) {
                let (op, ty) = form.split_once('.').unwrap();
                let (kind, value) =
                    (if by_element { "p" } else { "b" }, if bits == 64 { "%d0" } else { "%x0" });
                list.push((
                    reduction_name(name, bounds, form, by_element),
                    format!("{TAKE} sured.{kind}.{op}.{name}.{ty}.{bounds} [%t, {at}], {value};"),
                ));
            }
        }
    }
    for query in QUERIES {
        list.push((format!("txq_{query}"), format!("txq.{query}.b32 %x0, [%t];")));
    }
    list.push(("txq_level".to_owned(), "txq.level.width.b32 %x0, [%t], %c0;".to_owned()));
    for query in
        ["width", "height", "depth", "channel_data_type", "channel_order", "array_size", "memory_layout"]
    {
        list.push((format!("suq_{query}"), format!("suq.{query}.b32 %x0, [%t];")));
    }
    list.push(("named".to_owned(), format!("tex.2d.v4.f32.f32 {four}, [named_texture, {{%c0,%c1}}];")));
    list.push(("canvas".to_owned(), "suld.b.2d.b32.clamp %x0, [named_surface, {%c0,%c1}];".to_owned()));
    // Odd threads have the handle behind the first.
    list.push((
        "divergent".to_owned(),
        format!(
            "and.b32 %x0, %id, 1; mul.wide.u32 %off, %x0, 256; add.u64 %t, %t, %off;\n\
             tex.2d.v4.f32.f32 {four}, [%t, {{%c0,%c1}}];"
        ),
    ));
    list
}

/// `%c4` to `%c7` as values of every width.
const TAKE: &str = "mov.b32 %x0, %c4; mov.b32 %x1, %c5; mov.b32 %x2, %c6; mov.b32 %x3, %c7;\n\
    mov.b64 %d0, {%c4,%c5}; mov.b64 %d1, {%c6,%c7};\n\
    cvt.u16.u32 %h0, %c4; cvt.u16.u32 %h1, %c5; cvt.u16.u32 %h2, %c6; cvt.u16.u32 %h3, %c7;\n";

pub fn module() -> String {
    let kernels: String = all().iter().map(|(name, instruction)| kernel(name, instruction)).collect();
    format!(
        ".version 8.5\n.target sm_80\n.address_size 64\n.global .u32 before;\n.global .texref named_texture;\n\
         .global .surfref named_surface;\n{kernels}"
    )
}

fn kernel(name: &str, instruction: &str) -> String {
    format!(
        ".visible .entry {name}(.param .u64 out, .param .u64 texture, .param .u64 in) {{\n\
         .reg .b64 %t, %out, %in, %off, %d<2>; .reg .b32 %c<12>, %x<4>, %id; .reg .b16 %h<4>;\n\
         ld.param.u64 %out, [out]; ld.param.u64 %t, [texture]; ld.param.u64 %in, [in];\n\
         mov.u32 %id, %ctaid.x; shl.b32 %id, %id, 5; mov.u32 %x0, %tid.x; add.u32 %id, %id, %x0;\n\
         mul.wide.u32 %off, %id, {}; add.u64 %in, %in, %off; mul.wide.u32 %off, %id, {}; add.u64 %out, %out, %off;\n\
         ld.global.v4.u32 {{%c0,%c1,%c2,%c3}}, [%in]; ld.global.v4.u32 {{%c4,%c5,%c6,%c7}}, [%in+16];\n\
         ld.global.v4.u32 {{%c8,%c9,%c10,%c11}}, [%in+32];\n\
         mov.u32 %x0, 0; mov.u32 %x1, 0; mov.u32 %x2, 0; mov.u32 %x3, 0; mov.u64 %d0, 0; mov.u64 %d1, 0;\n\
         mov.u16 %h0, 0; mov.u16 %h1, 0; mov.u16 %h2, 0; mov.u16 %h3, 0;\n\
         {instruction}\n\
         st.global.v4.u32 [%out], {{%x0,%x1,%x2,%x3}}; st.global.v2.u64 [%out+16], {{%d0,%d1}};\n\
         st.global.v4.u16 [%out+32], {{%h0,%h1,%h2,%h3}};\n\
         ret; }}\n",
        4 * IN,
        4 * OUT
    )
}
