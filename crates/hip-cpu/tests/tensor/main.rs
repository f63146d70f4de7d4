//! `cp.async.bulk.tensor` against a model that goes through boxes element by element, by the manual's definitions: tiles of
//! one to five dimensions, steps, bounds, fills, swizzles, im2col, stores and reductions, and maps in every state space.
//! `forms` goes through every way to write the instructions, `replace` changes maps in kernels, `settings` copies by many lanes in every
//! setting. `SHOW=tools/data/ptx/shown` writes down the list for docs/ptx.md.

mod forms;
mod replace;
mod settings;

use compiler::Program;
use compiler::tensor_map::{Element, Im2col, Swizzle, TensorMap};
use hip_cpu::harness::{Arg, How, load, run};

const HEADER: &str = ".version 8.6\n.target sm_90a\n.address_size 64\n";

/// Shared memory that the kernels have.
const SHARED: usize = 32768;

fn coordinates(rank: usize) -> String {
    let list: Vec<String> = (0..rank).map(|axis| format!("%c{axis}")).collect();
    format!("{{{}}}", list.join(", "))
}

/// How a load is written.
#[derive(Clone, Copy)]
struct Load<'a> {
    /// `shared::cluster`, `shared::cta`
    space: &'a str,
    /// `.tile`, `.im2col`, or nothing, which is a tile.
    mode: &'a str,
    /// With a cache policy.
    hint: bool,
    /// Instructions before it.
    before: &'a str,
}

const TILE: Load<'static> = Load { space: "shared::cluster", mode: ".tile", hint: false, before: "" };

/// The part of a name and the operand that a cache policy is.
fn policy(hint: bool) -> (&'static str, &'static str) {
    if hint { (".L2::cache_hint", ", %policy") } else { ("", "") }
}

/// A kernel that loads a box into shared memory filled with 0xa5, waits, and gives all of it back.
fn loading(rank: usize, how: Load<'_>) -> Program {
    let Load { space, mode, hint, before } = how;
    let (hint, policy) = policy(hint);
    let list: Vec<String> = (0..rank.saturating_sub(2)).map(|axis| format!("%o{axis}")).collect();
    let offsets = if mode == ".im2col" { format!(", {{{}}}", list.join(", ")) } else { String::new() };
    let loads: String =
        (0..rank).map(|axis| format!("ld.param.s32 %c{axis}, [coords+{}];\n", 4 * axis)).collect();
    let im2col: String =
        (0..3).map(|axis| format!("ld.param.u16 %o{axis}, [coords+{}];\n", 20 + 2 * axis)).collect();
    // Pairs of blocks are sm_100a's.
    let target = if space.starts_with("cta_group") { "sm_100a" } else { "sm_90a" };
    let header = HEADER.replace("sm_90a", target);
    let text = format!(
        "{header}.visible .entry copy(.param .u64 out, .param .u32 bytes, .param .align 64 .b8 map[128], .param .align 4 .b8 coords[28])
{{
    .shared .align 1024 .b8 tile[{SHARED}];
    .shared .align 8 .b64 bar;
    .reg .pred %p; .reg .b16 %o<3>; .reg .b32 %r<8>, %c<5>; .reg .b64 %rd<8>, %policy;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [bytes];
    {loads}{im2col}
    mov.u32 %r2, 0;
FILL:
    mov.u32 %r3, tile;
    add.u32 %r3, %r3, %r2;
    st.shared.u32 [%r3], 0xa5a5a5a5;
    add.u32 %r2, %r2, 4;
    setp.lt.u32 %p, %r2, {SHARED};
    @%p bra FILL;
    mbarrier.init.shared.b64 [bar], 1;
    mov.b64 %rd2, map;
    cvta.param.u64 %rd2, %rd2;
    prefetch.tensormap [%rd2];
    createpolicy.fractional.L2::evict_first.b64 %policy;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], %r1;
    {before}
    cp.async.bulk.tensor.{rank}d.{space}.global{mode}.mbarrier::complete_tx::bytes{hint} [tile], [%rd2, {}], [bar]{offsets}{policy};
WAIT:
    mbarrier.try_wait.shared.b64 %p, [bar], %rd3;
    @!%p bra WAIT;
    cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], {SHARED};
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}",
        coordinates(rank)
    );
    load(&text).unwrap()
}

/// A kernel that fills shared memory from `from` and stores a box of it, by `instruction` with all its modifiers.
fn storing(rank: usize, instruction: &str) -> Program {
    let (_, policy) = policy(instruction.ends_with("cache_hint"));
    let loads: String =
        (0..rank).map(|axis| format!("ld.param.s32 %c{axis}, [coords+{}];\n", 4 * axis)).collect();
    let text = format!(
        "{HEADER}.visible .entry copy(.param .u64 from, .param .u32 bytes, .param .u64 map, .param .align 4 .b8 coords[28])
{{
    .shared .align 1024 .b8 tile[{SHARED}];
    .shared .align 8 .b64 bar;
    .reg .pred %p; .reg .b32 %r<8>, %c<5>; .reg .b64 %rd<8>, %policy;
    ld.param.u64 %rd1, [from];
    ld.param.u32 %r1, [bytes];
    ld.param.u64 %rd2, [map];
    {loads}
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], %r1;
    cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [tile], [%rd1], %r1, [bar];
WAIT:
    mbarrier.try_wait.shared.b64 %p, [bar], %rd3;
    @!%p bra WAIT;
    createpolicy.fractional.L2::evict_first.b64 %policy;
    {instruction} [%rd2, {}], [tile]{policy};
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 0;
    ret;
}}",
        coordinates(rank)
    );
    load(&text).unwrap()
}

/// A tensor in memory: its bytes, with a gap behind each row.
struct Tensor {
    memory: Vec<u64>,
    map: TensorMap,
}

impl Tensor {
    fn new(element: Element, dims: &[u64]) -> Tensor {
        let mut map =
            TensorMap { element, rank: dims.len() as u8, dims: [1; 5], steps: [1; 5], ..Default::default() };
        map.dims[..dims.len()].copy_from_slice(dims);
        let mut stride = dims[0] * element.bytes() as u64;
        for axis in 0..dims.len() - 1 {
            stride = stride.next_multiple_of(16) + 16;
            map.strides[axis] = stride;
            stride *= dims[axis + 1];
        }
        let words = stride.div_ceil(8) as usize + 8;
        let mut memory: Vec<u64> =
            (0..words as u64).map(|i| (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        // A 16-byte boundary inside.
        let offset = memory.as_ptr().align_offset(16);
        map.address = memory.as_mut_ptr().wrapping_add(offset) as u64;
        Tensor { memory, map }
    }

    fn bytes(&self) -> usize {
        self.map.element.bytes()
    }

    /// The byte offset of an element, if it is in bounds.
    fn offset(&self, at: [i64; 5]) -> Option<usize> {
        let rank = usize::from(self.map.rank);
        if (0..rank).any(|axis| at[axis] < 0 || at[axis] >= self.map.dims[axis] as i64) {
            return None;
        }
        let rows: i64 = (1..rank).map(|axis| at[axis] * self.map.strides[axis - 1] as i64).sum();
        let start = self.map.address as usize - self.memory.as_ptr() as usize;
        Some(start + rows as usize + at[0] as usize * self.bytes())
    }

    fn memory(&self) -> &[u8] {
        let bytes = self.memory.len() * 8;
        // SAFETY: the same memory as bytes.
        unsafe { std::slice::from_raw_parts(self.memory.as_ptr().cast(), bytes) }
    }

    fn element(&self, at: [i64; 5]) -> Vec<u8> {
        match self.offset(at) {
            Some(offset) => self.memory()[offset..offset + self.bytes()].to_vec(),
            // The pattern that `fma.oob` looks for, in every 16 bits.
            None if self.map.nan_fill => [0xf7, 0x7f].repeat(self.bytes() / 2),
            None => vec![0; self.bytes()],
        }
    }
}

/// The elements of a tile in the order of their places: dimension 0 fastest.
fn tile(map: &TensorMap, first: [i64; 5]) -> Vec<[i64; 5]> {
    let mut all = vec![first];
    for axis in 0..usize::from(map.rank) {
        let step = if axis == 0 { 1 } else { i64::from(map.steps[axis]) };
        let count = (i64::from(map.box_dims[axis]) + step - 1) / step;
        all = (0..count)
            .flat_map(|i| {
                all.iter().map(move |at| {
                    let mut at = *at;
                    at[axis] += i * step;
                    at
                })
            })
            .collect();
    }
    all
}

/// The elements of a column of pixels: W, H, D of the pixel box, then images; the kernel's position is added at the end.
fn column(map: &TensorMap, first: [i64; 5], offsets: [i64; 3]) -> Vec<[i64; 5]> {
    let im2col = map.im2col.unwrap();
    let n_axes = usize::from(map.rank) - 2;
    let sizes: Vec<i64> = (0..n_axes)
        .map(|axis| {
            let span =
                map.dims[axis + 1] as i64 - 1 + i64::from(im2col.upper[axis]) - i64::from(im2col.lower[axis]);
            span / i64::from(map.steps[axis + 1]) + 1
        })
        .collect();
    // Pixels are counted by their number in the box: the first one's number, and so many more.
    let digit =
        |axis: usize| (first[axis + 1] - i64::from(im2col.lower[axis])) / i64::from(map.steps[axis + 1]);
    let mut number = first[n_axes + 1];
    for axis in (0..n_axes).rev() {
        number = number * sizes[axis] + digit(axis);
    }
    let mut all = vec![];
    for pixel in number..number + i64::from(im2col.pixels_per_column) {
        let mut rest = pixel;
        let mut at = first;
        for axis in 0..n_axes {
            let place = rest % sizes[axis] * i64::from(map.steps[axis + 1]) + i64::from(im2col.lower[axis]);
            at[axis + 1] = place + offsets[axis];
            rest /= sizes[axis];
        }
        at[n_axes + 1] = rest;
        for channel in 0..i64::from(im2col.channels_per_pixel) {
            all.push([first[0] + channel, at[1], at[2], at[3], at[4]]);
        }
    }
    all
}

/// Where element number `n` of rows with so many elements lies in shared memory, as the manual draws the patterns: rows of
/// the swizzle's span, 16-byte pieces exchanged by the number of the 128-byte line they are in; or pieces of 32 or 64 bytes, and of
/// those of 32 perhaps the halves of 16 bytes in each second line.
fn place(map: &TensorMap, row_elements: usize, n: usize) -> usize {
    let bytes = map.element.bytes();
    let span = map.swizzle.span();
    if span == 0 {
        return n * bytes;
    }
    let (row, column) = (n / row_elements, n % row_elements * bytes);
    let linear = row * span + column;
    let (line, piece, within) = (linear / 128, linear % 128 / 16, linear % 16);
    match map.swizzle {
        Swizzle::Bytes128By32 => {
            return line * 128 + ((piece / 2) ^ (line % 4)) * 32 + piece % 2 * 16 + within;
        }
        Swizzle::Bytes128By32Flipped => {
            let within = if line % 2 == 1 { (within + 8) % 16 } else { within };
            return line * 128 + ((piece / 2) ^ (line % 4)) * 32 + piece % 2 * 16 + within;
        }
        Swizzle::Bytes128By64 => {
            return line * 128 + ((piece / 4) ^ (line % 2)) * 64 + piece % 4 * 16 + within;
        }
        _ => {}
    }
    let pieces = span / 16;
    let moved = piece / pieces * pieces + ((piece % pieces) ^ (line % pieces));
    line * 128 + moved * 16 + within
}

fn arguments(coords: [i64; 5], offsets: [i64; 3]) -> Vec<u8> {
    let mut bytes: Vec<u8> = coords.iter().flat_map(|c| (*c as i32).to_le_bytes()).collect();
    bytes.extend(offsets.iter().flat_map(|o| (*o as u16).to_le_bytes()));
    bytes.resize(28, 0);
    bytes
}

fn row_elements(map: &TensorMap) -> usize {
    map.im2col.map_or(map.box_dims[0], |im2col| im2col.channels_per_pixel).into()
}

fn check_load(what: &str, tensor: &Tensor, coords: [i64; 5], offsets: Option<[i64; 3]>) {
    let mode = if offsets.is_some() { ".im2col" } else { ".tile" };
    check_load_as(what, tensor, coords, offsets, Load { mode, ..TILE });
}

fn check_load_as(what: &str, tensor: &Tensor, coords: [i64; 5], offsets: Option<[i64; 3]>, how: Load<'_>) {
    let map = &tensor.map;
    let elements = match offsets {
        Some(offsets) => column(map, coords, offsets),
        None => tile(map, coords),
    };
    let mut wanted = vec![0xa5u8; SHARED];
    for (n, at) in elements.iter().enumerate() {
        let to = place(map, row_elements(map), n);
        wanted[to..to + tensor.bytes()].copy_from_slice(&tensor.element(*at));
    }
    let program = loading(map.rank.into(), how);
    let mut got = vec![0u128; SHARED / 16];
    // SAFETY: the same memory as bytes.
    let got = unsafe { std::slice::from_raw_parts_mut(got.as_mut_ptr().cast::<u8>(), SHARED) };
    let bytes = (elements.len() * tensor.bytes()) as u32;
    let mut args = [
        Arg::Buffer(got),
        Arg::u32(bytes),
        Arg::Value(map.encode().to_vec()),
        Arg::Value(arguments(coords, offsets.unwrap_or_default())),
    ];
    run(&program, "copy", &How::new(1, 1), &mut args).unwrap_or_else(|error| panic!("{what}: {error}"));
    let Arg::Buffer(got) = &args[0] else { unreachable!() };
    let different = got.iter().zip(&wanted).position(|(a, b)| a != b);
    assert_eq!(different, None, "{what}: byte {different:?} differs");
}

#[test]
fn tiles_of_one_to_five_dimensions_are_loaded_with_what_is_out_of_bounds_filled() {
    let dims = [20u64, 7, 5, 4, 3];
    for rank in 1..=5 {
        let mut tensor = Tensor::new(Element::F32, &dims[..rank]);
        tensor.map.box_dims = [8, 3, 2, 2, 2];
        check_load(&format!("{rank}d inside"), &tensor, [4, 1, 2, 1, 1], None);
        check_load(&format!("{rank}d beyond the end"), &tensor, [16, 6, 4, 3, 2], None);
        check_load(&format!("{rank}d before the start"), &tensor, [-3, -1, -1, -1, -1], None);
        check_load(&format!("{rank}d far away"), &tensor, [1000, -1000, 7, 8, 9], None);
        tensor.map.nan_fill = true;
        check_load(&format!("{rank}d, NaN outside"), &tensor, [-2, 5, 4, -1, 2], None);
    }
}

#[test]
fn every_element_width_and_step_is_loaded() {
    for (element, width) in [
        (Element::U8, 48),
        (Element::U16, 24),
        (Element::U32, 12),
        (Element::S32, 12),
        (Element::U64, 6),
        (Element::S64, 6),
        (Element::F16, 8),
        (Element::Bf16, 16),
        (Element::F64, 4),
    ] {
        let mut tensor = Tensor::new(element, &[50, 20, 6]);
        tensor.map.box_dims = [width, 7, 3, 0, 0];
        tensor.map.steps = [1, 3, 2, 1, 1];
        check_load(&format!("{element:?}"), &tensor, [5, 4, 1, 0, 0], None);
        tensor.map.nan_fill = element.is_float();
        check_load(&format!("{element:?} beyond"), &tensor, [45, 15, 4, 0, 0], None);
    }
}

#[test]
fn swizzles_exchange_pieces_of_sixteen_bytes() {
    for (swizzle, width) in [
        (Swizzle::Bytes32, 8u16),
        (Swizzle::Bytes64, 16),
        (Swizzle::Bytes128, 32),
        (Swizzle::Bytes128, 8),
        (Swizzle::Bytes64, 4),
        (Swizzle::Bytes128By32, 32),
        (Swizzle::Bytes128By32Flipped, 32),
        (Swizzle::Bytes128By32Flipped, 12),
        (Swizzle::Bytes128By64, 32),
        (Swizzle::Bytes128By64, 20),
    ] {
        let mut tensor = Tensor::new(Element::U32, &[64, 40]);
        tensor.map.swizzle = swizzle;
        tensor.map.box_dims = [width, 19, 0, 0, 0];
        check_load(&format!("{swizzle:?}, rows of {width}"), &tensor, [3, 2, 0, 0, 0], None);
    }
}

#[test]
fn im2col_goes_along_the_pixels_of_a_box_and_on_in_the_next_image() {
    for (rank, dims, lower, upper) in [
        (3usize, vec![16u64, 9, 4], [-1, 0, 0], [-1, 0, 0]),
        (4, vec![16, 9, 7, 3], [-1, -1, 0], [-1, -1, 0]),
        (4, vec![16, 9, 7, 3], [0, 0, 0], [-2, -2, 0]),
        (5, vec![16, 6, 5, 4, 3], [-1, -1, -1], [-1, -1, -1]),
    ] {
        let mut tensor = Tensor::new(Element::F16, &dims);
        let im2col = Im2col { lower, upper, channels_per_pixel: 8, pixels_per_column: 50 };
        tensor.map.im2col = Some(im2col);
        // The kernel's positions, and a start in the middle of the box.
        for (start, offsets) in [([0i64; 3], [0i64; 3]), ([2, 1, 1], [0, 1, 0]), ([1, 2, 0], [2, 2, 2])] {
            let mut coords = [4i64, 0, 0, 0, 0];
            for axis in 0..rank - 2 {
                coords[axis + 1] = i64::from(lower[axis]) + start[axis];
            }
            check_load(&format!("{rank}d {start:?} {offsets:?}"), &tensor, coords, Some(offsets));
            tensor.map.nan_fill = !tensor.map.nan_fill;
        }
        tensor.map.steps = [1, 2, 2, 1, 1];
        let mut coords = [0i64; 5];
        for axis in 0..rank - 2 {
            coords[axis + 1] = lower[axis].into();
        }
        check_load(&format!("{rank}d in steps of two"), &tensor, coords, Some([1, 0, 1]));
    }
}

/// Stores shared memory, as far as the box needs it, and gives the tensor's bytes before and after.
fn store(tensor: &mut Tensor, instruction: &str, coords: [i64; 5], from: &mut [u128], bytes: u32) -> Vec<u8> {
    #[repr(align(64))]
    struct Aligned([u8; 128]);
    let mut map = Aligned(tensor.map.encode());
    let before = tensor.memory().to_vec();
    let program = storing(tensor.map.rank.into(), instruction);
    // SAFETY: the same memory as bytes.
    let from = unsafe { std::slice::from_raw_parts_mut(from.as_mut_ptr().cast::<u8>(), bytes as usize) };
    let mut args =
        [Arg::Buffer(from), Arg::u32(bytes), Arg::Buffer(&mut map.0), Arg::Value(arguments(coords, [0; 3]))];
    run(&program, "copy", &How::new(1, 1), &mut args).unwrap();
    before
}

fn pattern(words: usize) -> Vec<u128> {
    (0..words as u128).map(|i| (i + 3).wrapping_mul(0x1234_5678_9abc_def0_0fed_cba9_8765_4321)).collect()
}

#[test]
fn a_store_writes_what_is_in_bounds() {
    for (swizzle, coords) in [(Swizzle::None, [-1i64, 2, 3, 0, 0]), (Swizzle::Bytes64, [12, 5, -1, 0, 0])] {
        let mut tensor = Tensor::new(Element::U32, &[18, 7, 5]);
        tensor.map.box_dims = [16, 3, 2, 0, 0];
        tensor.map.swizzle = swizzle;
        let mut from = pattern(64);
        let source: Vec<u8> = from.iter().flat_map(|word| word.to_le_bytes()).collect();
        let instruction = "cp.async.bulk.tensor.3d.global.shared::cta.tile.bulk_group";
        let mut wanted = store(&mut tensor, instruction, coords, &mut from, 1024);
        for (n, at) in tile(&tensor.map, coords).into_iter().enumerate() {
            if let Some(offset) = tensor.offset(at) {
                let place = place(&tensor.map, 16, n);
                wanted[offset..offset + 4].copy_from_slice(&source[place..place + 4]);
            }
        }
        assert!(tensor.memory() == wanted, "{swizzle:?}");
    }
}

/// One element's reduction by plain arithmetic; the values are small enough for every type to hold the results.
fn check_reduction(op: &str, element: Element, old: [f64; 4], new: [f64; 4], wanted: [f64; 4]) {
    let bytes = element.bytes();
    let bits = |value: f64| -> Vec<u8> {
        match element {
            Element::F64 => value.to_le_bytes().to_vec(),
            Element::F32 => (value as f32).to_le_bytes().to_vec(),
            // A small integer's half by its definition: exponent of the leading one, then the rest.
            Element::F16 | Element::Bf16 => {
                let single = (value as f32).to_bits();
                let (sign, exponent, fraction) = (single >> 31, single >> 23 & 255, single & 0x7f_ffff);
                let half = match (element, value == 0.0) {
                    (_, true) => sign << 15,
                    (Element::Bf16, _) => single >> 16,
                    _ => sign << 15 | (exponent - 112) << 10 | fraction >> 13,
                };
                (half as u16).to_le_bytes().to_vec()
            }
            _ => (value as i64).to_le_bytes()[..bytes].to_vec(),
        }
    };
    let elements = 16 / bytes * 4;
    let mut tensor = Tensor::new(element, &[elements as u64]);
    tensor.map.box_dims[0] = elements as u16;
    let start = tensor.offset([0; 5]).unwrap();
    let fill = |values: [f64; 4]| -> Vec<u8> { (0..elements).flat_map(|n| bits(values[n % 4])).collect() };
    // SAFETY: the tensor lies inside its memory.
    unsafe {
        let at = tensor.map.address as *mut u8;
        at.copy_from_nonoverlapping(fill(old).as_ptr(), elements * bytes);
    }
    let mut from: Vec<u128> =
        fill(new).chunks(16).map(|chunk| u128::from_le_bytes(chunk.try_into().unwrap())).collect();
    let instruction = format!("cp.reduce.async.bulk.tensor.1d.global.shared::cta.{op}.tile.bulk_group");
    store(&mut tensor, &instruction, [0; 5], &mut from, (elements * bytes) as u32);
    let got = &tensor.memory()[start..start + elements * bytes];
    assert_eq!(got, fill(wanted), "{op} of {element:?}");
}

#[test]
fn reductions_are_of_the_maps_type() {
    let (old, new) = ([1.0, -5.0, 7.0, 0.0], [2.0, 3.0, -7.0, 4.0]);
    for element in [Element::S32, Element::S64, Element::F32, Element::F64, Element::F16, Element::Bf16] {
        check_reduction("add", element, old, new, [3.0, -2.0, 0.0, 4.0]);
    }
    for element in [Element::S32, Element::S64, Element::F16, Element::Bf16] {
        check_reduction("min", element, old, new, [1.0, -5.0, -7.0, 0.0]);
        check_reduction("max", element, old, new, [2.0, 3.0, 7.0, 4.0]);
    }
    // -5 and -7 are large numbers without a sign.
    for element in [Element::U32, Element::U64] {
        check_reduction("min", element, old, new, [1.0, 3.0, 7.0, 0.0]);
        check_reduction("max", element, old, new, [2.0, -5.0, -7.0, 4.0]);
        check_reduction("and", element, [12.0, 3.0, -1.0, 0.0], [10.0, 1.0, 6.0, 5.0], [8.0, 1.0, 6.0, 0.0]);
        check_reduction("or", element, [12.0, 3.0, -1.0, 0.0], [10.0, 1.0, 6.0, 5.0], [14.0, 3.0, -1.0, 5.0]);
        check_reduction("xor", element, [12.0, 3.0, -1.0, 0.0], [10.0, 1.0, 0.0, 5.0], [6.0, 2.0, -1.0, 5.0]);
    }
    check_reduction("inc", Element::U32, [0.0, 3.0, 4.0, 9.0], [4.0, 4.0, 4.0, 4.0], [1.0, 4.0, 0.0, 0.0]);
    check_reduction("dec", Element::U32, [0.0, 3.0, 4.0, 9.0], [4.0, 4.0, 4.0, 4.0], [4.0, 2.0, 3.0, 4.0]);
}

#[test]
fn a_map_that_does_not_fit_the_instruction_traps() {
    let mut tensor = Tensor::new(Element::U32, &[64, 40]);
    tensor.map.box_dims = [16, 2, 0, 0, 0];
    let program = loading(3, TILE);
    let mut out = vec![0u8; SHARED + 16];
    let mut launch = |map: [u8; 128]| {
        let start = out.as_ptr().align_offset(16);
        let mut args = [
            Arg::Buffer(&mut out[start..]),
            Arg::u32(128),
            Arg::Value(map.to_vec()),
            Arg::Value(arguments([0; 5], [0; 3])),
        ];
        run(&program, "copy", &How::new(1, 1), &mut args).unwrap_err().to_string()
    };
    assert!(launch(tensor.map.encode()).contains("trap"), "two dimensions, and the instruction has three");
    assert!(launch([0; 128]).contains("trap"), "not a map");
}

/// Rank 2 of a cluster of four copies 64 bytes to the blocks 1 and 3, by `cp.async.bulk.tensor`, `{rank}d`, and the rest;
/// the first element is that at 1, 2, 0 ….
fn check_multicast(tensor: &Tensor, instruction: &str, offsets: &str) {
    let (hint, policy) = policy(instruction.ends_with("cache_hint"));
    assert!(instruction.ends_with(hint));
    let zeros = ", %r7".repeat(usize::from(tensor.map.rank) - 2);
    // PTX 9.4 has masks of 32 bits, for one family of targets.
    let is_wide = instruction.contains("::32b");
    let mask = if is_wide { "%r1" } else { "%h" };
    let header =
        if is_wide { HEADER.replace("8.6", "9.4").replace("sm_90a", "sm_107a") } else { HEADER.to_owned() };
    let text = format!(
        "{header}.visible .entry copy(.param .u64 out, .param .align 64 .b8 map[128], .param .u32 mask)
{{
    .shared .align 128 .b8 tile[64];
    .shared .align 8 .b64 bar;
    .reg .pred %p, %q; .reg .b16 %h, %o<3>; .reg .b32 %r<8>; .reg .b64 %rd<8>, %policy;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [mask];
    cvt.u16.u32 %h, %r1;
    mov.u32 %r2, %cluster_ctarank;
    mov.u32 %r7, 0;
    st.shared.u32 [tile], %r7;
    mbarrier.init.shared.b64 [bar], 1;
    mbarrier.arrive.expect_tx.shared.b64 %rd3, [bar], 64;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mov.b64 %rd2, map;
    cvta.param.u64 %rd2, %rd2;
    setp.eq.u32 %p, %r2, 2;
    mov.u32 %r3, 1;
    mov.u32 %r4, 2;
    mov.u16 %o0, 0;
    mov.u16 %o1, 0;
    mov.u16 %o2, 0;
    createpolicy.fractional.L2::evict_first.b64 %policy;
    @%p {instruction} [tile], [%rd2, {{%r3, %r4{zeros}}}], [bar]{offsets}, {mask}{policy};
    barrier.cluster.arrive;
    barrier.cluster.wait;
    mbarrier.test_wait.shared.b64 %q, [bar], %rd3;
    selp.b32 %r5, 1, 0, %q;
    ld.shared.u32 %r6, [tile];
    mul.wide.u32 %rd4, %r2, 8;
    add.u64 %rd5, %rd1, %rd4;
    st.global.v2.u32 [%rd5], {{%r6, %r5}};
    ret;
}}"
    );
    let program = load(&text).unwrap();
    let first = u32::from_le_bytes(tensor.element([1, 2, 0, 0, 0]).try_into().unwrap());
    let mut how = How::new(4, 1);
    how.cluster = [4, 1, 1];
    for how in [how.clone().lane(), how.warp()] {
        let mut out = vec![0u64; 4];
        // SAFETY: the same memory as bytes.
        let bytes = unsafe { std::slice::from_raw_parts_mut(out.as_mut_ptr().cast::<u8>(), 32) };
        let mut args = [Arg::Buffer(bytes), Arg::Value(tensor.map.encode().to_vec()), Arg::u32(0b1010)];
        run(&program, "copy", &how, &mut args).unwrap();
        let come = u64::from(first) | 1 << 32;
        assert_eq!(out, [0, come, 0, come], "{instruction} in {:?}", how.setting);
    }
}

#[test]
fn a_multicast_reaches_the_blocks_of_the_mask() {
    let mut tensor = Tensor::new(Element::U32, &[64, 40]);
    tensor.map.box_dims = [16, 1, 0, 0, 0];
    let instruction =
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster";
    check_multicast(&tensor, instruction, "");
    check_multicast(&tensor, &format!("{instruction}::32b"), "");
    check_multicast(&tensor, &format!("{instruction}.L2::cache_hint"), "");
    let mut tensor = Tensor::new(Element::U32, &[64, 6, 5, 4, 3]);
    let im2col = Im2col { lower: [0; 3], upper: [0; 3], channels_per_pixel: 16, pixels_per_column: 1 };
    tensor.map.im2col = Some(im2col);
    let instruction = "cp.async.bulk.tensor.5d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint";
    check_multicast(&tensor, instruction, ", {%o0, %o1, %o2}");
}
