//! Copies of tensors in every setting: by each lane for itself, by some lanes of a warp, by one that is elected for all. What is
//! expected is made by the model, element by element, never by another setting.

use compiler::Program;
use compiler::back::cpu::Setting;
use compiler::tensor_map::{Element, Im2col, Swizzle};
use hip_cpu::harness::{Arg, Draw, Error, How, load, run};

use super::{Tensor, column, coordinates, place, row_elements, tile};

const FILL: u32 = 0xa5a5_a5a5;
/// Bytes of a thread's own box.
const BOX: usize = 256;
const BLOCKS: usize = 2;

fn random(i: usize) -> u32 {
    let mut x = (i as u32).wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

/// `lane`, its baseline code, `warp`, and `simd` in groups of several widths.
fn ways(how: &How) -> Vec<How> {
    let narrow = How { vector_bits: Some(256), ..how.clone() };
    let any = How { setting: Some(Setting::Simd), ..how.clone() };
    let how = || how.clone();
    let simd = [1, 4, 8, 64].map(|width| how().simd(width));
    [how().warp(), how().lane(), how().baseline(), any, narrow.simd(16)].into_iter().chain(simd).collect()
}

/// Bytes as aligned as a map has to be.
#[derive(Clone)]
struct Memory(Vec<Line>, usize);

#[derive(Clone, Copy)]
#[repr(align(128))]
#[expect(dead_code, reason = "it is looked at as bytes")]
struct Line([u8; 128]);

impl Memory {
    fn of(bytes: &[u8]) -> Memory {
        let mut memory = Memory(vec![Line([0; 128]); bytes.len().div_ceil(128)], bytes.len());
        memory.bytes().copy_from_slice(bytes);
        memory
    }

    fn words(words: &[u32]) -> Memory {
        Memory::of(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    fn maps(tensors: &[Tensor]) -> Memory {
        Memory::of(&tensors.iter().flat_map(|tensor| tensor.map.encode()).collect::<Vec<u8>>())
    }

    fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: the same memory as bytes.
        unsafe { std::slice::from_raw_parts_mut(self.0.as_mut_ptr().cast(), self.1) }
    }
}

/// Runs the kernel as `how` says on these buffers. False: `simd` does not take it, and need not.
fn launch(label: &str, program: &Program, how: &How, has_simd: bool, buffers: &mut [Memory]) -> bool {
    let mut args: Vec<Arg> = buffers.iter_mut().map(|buffer| Arg::Buffer(buffer.bytes())).collect();
    match run(program, "copy", how, &mut args) {
        // Threads that meet in groups of 32 are not run in others.
        Err(Error::Refused { setting: Setting::Simd, why }) if !has_simd || why.contains("groups of 32") => {
            false
        }
        Err(error) => panic!("{label}: {error}"),
        Ok(_) => true,
    }
}

fn label(what: &str, how: &How) -> String {
    format!("{what} in {:?}, width {:?}, {:?}", how.setting, how.width, how.effort)
}

/// Runs it in `warp` and in ways that are drawn, and looks at what becomes of the last buffer.
fn everywhere(what: &str, program: &Program, how: &How, has_simd: bool, given: &[Memory], wanted: &[u32]) {
    for how in Draw::now().ways(what, ways(how)) {
        let (label, mut buffers) = (label(what, &how), given.to_vec());
        if launch(&label, program, &how, has_simd, &mut buffers) {
            assert_same(&label, &words_of(buffers[given.len() - 1].bytes()), wanted);
        }
    }
}

fn words_of(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

fn assert_same(label: &str, found: &[u32], wanted: &[u32]) {
    let different = found.iter().zip(wanted).position(|(a, b)| a != b);
    assert_eq!(
        different,
        None,
        "{label}: word {different:?}, {:x?}",
        different.map(|at| (found[at], wanted[at]))
    );
    assert_eq!(found.len(), wanted.len(), "{label}");
}

/// Words of a thread in `asks`: whether it copies, which of two maps it takes, and five coordinates or offsets of im2col.
const ASKS: usize = 10;

/// A kernel in which each thread has a box of shared memory, filled first with [`FILL`] or with words of its own, and asks for its own
/// copy: `%want` says whether, `%map` is its map, `%c0` to `%c4` its coordinates, `%o0` to `%o2` offsets, `%tile` and `%bar` its memory and
/// mbarrier, of which `%state` waits. The boxes are given back in the end.
fn own(threads: u32, target: &str, body: &str) -> Program {
    let coordinates: String =
        (0..5).map(|axis| format!("ld.global.s32 %c{axis}, [%asks+{}];\n", 8 + 4 * axis)).collect();
    let offsets: String = (0..3)
        .map(|axis| format!("ld.global.u32 %r9, [%asks+{}];\ncvt.u16.u32 %o{axis}, %r9;\n", 28 + 4 * axis))
        .collect();
    let text = format!(
        ".version 8.6\n.target {target}\n.address_size 64
.visible .entry copy(.param .u64 maps, .param .u64 asks, .param .u64 words, .param .u64 out)
{{
    .shared .align 1024 .b8 tiles[{tiles}];
    .shared .align 8 .b64 bars[{threads}];
    .reg .pred %p, %q, %want; .reg .b16 %o<3>; .reg .b32 %t, %g, %tile, %bar, %at, %c<5>, %r<20>;
    .reg .b64 %map, %asks, %words, %out, %state, %rd<9>;
    mov.u32 %t, %tid.x;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %g, %r1, {threads}, %t;
    ld.param.u64 %rd1, [asks];
    mad.wide.u32 %asks, %g, {ask}, %rd1;
    ld.param.u64 %rd1, [words];
    mad.wide.u32 %words, %g, {BOX}, %rd1;
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %out, %g, {BOX}, %rd1;
    ld.param.u64 %rd1, [maps];
    ld.global.u32 %r2, [%asks];
    setp.ne.u32 %want, %r2, 0;
    ld.global.u32 %r3, [%asks+4];
    mad.wide.u32 %map, %r3, 128, %rd1;
    {coordinates}{offsets}
    mov.u32 %tile, tiles;
    mad.lo.u32 %tile, %t, {BOX}, %tile;
    mov.u32 %bar, bars;
    mad.lo.u32 %bar, %t, 8, %bar;
    mov.u32 %at, 0;
FILL:
    cvt.u64.u32 %rd2, %at;
    add.u64 %rd2, %words, %rd2;
    ld.global.u32 %r4, [%rd2];
    add.u32 %r5, %tile, %at;
    st.shared.u32 [%r5], %r4;
    add.u32 %at, %at, 4;
    setp.lt.u32 %p, %at, {BOX};
    @%p bra FILL;
    mbarrier.init.shared.b64 [%bar], 1;
    fence.proxy.async;
    {body}
    mov.u32 %at, 0;
BACK:
    add.u32 %r5, %tile, %at;
    ld.shared.u32 %r4, [%r5];
    cvt.u64.u32 %rd2, %at;
    add.u64 %rd2, %out, %rd2;
    st.global.u32 [%rd2], %r4;
    add.u32 %at, %at, 4;
    setp.lt.u32 %p, %at, {BOX};
    @%p bra BACK;
    ret;
}}",
        tiles = threads as usize * BOX,
        ask = 4 * ASKS,
    );
    load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// What a thread asks for.
struct Ask {
    wants: bool,
    /// Which of the maps.
    map: usize,
    at: [i64; 5],
    offsets: [i64; 3],
}

impl Ask {
    fn words(&self) -> [u32; ASKS] {
        let mut words = [0; ASKS];
        words[0] = self.wants.into();
        words[1] = self.map as u32;
        for (word, at) in words[2..7].iter_mut().zip(self.at) {
            *word = at as i32 as u32;
        }
        for (word, offset) in words[7..].iter_mut().zip(self.offsets) {
            *word = offset as u32;
        }
        words
    }
}

/// Two in three threads ask, by one map or the other, for boxes in all places; `small` are the largest coordinates and offsets.
fn asks(n: usize, small: [i64; 5], offset: i64) -> Vec<Ask> {
    let one = |i: usize| {
        let number = |nth: usize, below: i64| i64::from(random(i * 16 + nth)) % below;
        Ask {
            wants: !random(i * 16).is_multiple_of(3),
            map: random(i * 16 + 1) as usize % 2,
            at: std::array::from_fn(|axis| number(2 + axis, small[axis] + 3) - 2),
            offsets: std::array::from_fn(|nth| number(8 + nth, offset)),
        }
    };
    (0..n).map(one).collect()
}

/// Loads by lanes that are parted: those that want nothing go past, and all wait for their own behind that.
fn check_loads(what: &str, threads: u32, tensors: &[Tensor; 2], instruction: &str, asks: &[Ask]) {
    let map = &tensors[0].map;
    let rank = usize::from(map.rank);
    let (coordinates, offsets) = operands(instruction, rank);
    let elements = |tensor: &Tensor, ask: &Ask| elements(tensor, instruction, ask);
    let bytes = elements(&tensors[0], &asks[0]).len() * map.element.bytes();
    let target = if instruction.contains("gather4") { "sm_100a" } else { "sm_90a" };
    // Who wants nothing waits for its own arrival alone.
    let copies = format!(
        "@%want bra ASK;\nmbarrier.arrive.shared.b64 %state, [%bar];\nbra.uni ASKED;\nASK:\n\
         mbarrier.arrive.expect_tx.shared.b64 %state, [%bar], {bytes};\n\
         {instruction} [%tile], [%map, {coordinates}], [%bar]{offsets};\nASKED:\n"
    );
    let n = BLOCKS * threads as usize;
    let asked: Vec<u32> = asks.iter().flat_map(Ask::words).collect();
    let (before, out) = (vec![FILL; n * BOX / 4], vec![0; n * BOX / 4]);
    let given = [Memory::maps(tensors), Memory::words(&asked), Memory::words(&before), Memory::words(&out)];
    let mut wanted = vec![0xa5u8; n * BOX];
    for (ask, own) in asks.iter().zip(wanted.chunks_mut(BOX)).filter(|(ask, _)| ask.wants) {
        let tensor = &tensors[ask.map];
        for (nth, at) in elements(tensor, ask).into_iter().enumerate() {
            let to = place(&tensor.map, row_elements(&tensor.map), nth);
            own[to..to + map.element.bytes()].copy_from_slice(&tensor.element(at));
        }
    }
    // A loop that waits is none for `simd`; here a copy is done at once, so that asking for it is enough.
    for (wait, has_simd) in [
        ("mbarrier.test_wait.shared.b64 %p, [%bar], %state;\n@%p bra DONE;\ntrap;\nDONE:", true),
        ("WAIT:\nmbarrier.try_wait.shared.b64 %p, [%bar], %state;\n@!%p bra WAIT;", false),
    ] {
        let program = own(threads, target, &format!("{copies}{wait}"));
        let how = How::new(BLOCKS as u32, threads);
        everywhere(what, &program, &how, has_simd, &given, &words_of(&wanted));
    }
}

/// Coordinates and offsets as an instruction has them.
fn operands(instruction: &str, rank: usize) -> (String, String) {
    let n = if instruction.contains("gather4") || instruction.contains("scatter4") { 5 } else { rank };
    let list: Vec<String> = (0..rank.saturating_sub(2)).map(|axis| format!("%o{axis}")).collect();
    let has_offsets = instruction.contains(".im2col") && !instruction.contains("no_offs");
    (coordinates(n), if has_offsets { format!(", {{{}}}", list.join(", ")) } else { String::new() })
}

/// Of a copy, in the order of their places.
fn elements(tensor: &Tensor, instruction: &str, ask: &Ask) -> Vec<[i64; 5]> {
    if instruction.contains(".im2col") {
        return column(&tensor.map, ask.at, ask.offsets);
    }
    if instruction.contains("gather4") || instruction.contains("scatter4") {
        let width = i64::from(tensor.map.box_dims[0]);
        let row = |row: i64| (0..width).map(move |i| [ask.at[0] + i, row, 0, 0, 0]);
        return ask.at[1..].iter().flat_map(|&at| row(at)).collect();
    }
    tile(&tensor.map, ask.at)
}

fn pair(element: Element, dims: &[u64], change: impl Fn(&mut Tensor)) -> [Tensor; 2] {
    [false, true].map(|other| {
        let mut tensor = Tensor::new(element, dims);
        if other {
            tensor.memory.iter_mut().for_each(|word| *word = !*word);
        }
        change(&mut tensor);
        tensor
    })
}

#[test]
fn each_lane_loads_its_own_box() {
    for (rank, threads, box_dims) in [
        (1usize, 96u32, [64u16, 0, 0, 0, 0]),
        (2, 100, [8, 5, 0, 0, 0]),
        (3, 64, [4, 3, 5, 0, 0]),
        (5, 32, [8, 2, 1, 2, 2]),
    ] {
        let dims = [40u64, 11, 9, 4, 3];
        let tensors = pair(Element::F32, &dims[..rank], |tensor| {
            tensor.map.box_dims = box_dims;
            tensor.map.nan_fill = rank == 3;
        });
        let instruction =
            format!("cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.mbarrier::complete_tx::bytes");
        let asks = asks(BLOCKS * threads as usize, [40, 11, 9, 4, 3], 1);
        check_loads(&format!("{rank}d"), threads, &tensors, &instruction, &asks);
    }
}

#[test]
fn each_lane_loads_swizzled_rows() {
    let tensors = pair(Element::U16, &[80, 30], |tensor| {
        tensor.map.box_dims = [16, 7, 0, 0, 0];
        tensor.map.swizzle = Swizzle::Bytes32;
    });
    let instruction = "cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes";
    check_loads("swizzled", 64, &tensors, instruction, &asks(BLOCKS * 64, [80, 30, 0, 0, 0], 1));
}

#[test]
fn each_lane_loads_its_own_pixels() {
    let tensors = pair(Element::F16, &[16, 9, 7, 3], |tensor| {
        let (lower, upper) = ([-1, -1, 0], [-1, -1, 0]);
        tensor.map.im2col = Some(Im2col { lower, upper, channels_per_pixel: 8, pixels_per_column: 15 });
    });
    let instruction = "cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes";
    let mut asks = asks(BLOCKS * 96, [16, 9, 7, 3, 0], 3);
    for (i, ask) in asks.iter_mut().enumerate() {
        // A pixel of the box.
        ask.at = [8 * (i as i64 % 2), i as i64 % 8 - 1, i as i64 / 8 % 6 - 1, i as i64 / 48 % 2, 0];
    }
    check_loads("im2col", 96, &tensors, instruction, &asks);
}

#[test]
fn each_lane_gathers_its_own_rows() {
    let tensors = pair(Element::U32, &[50, 30], |tensor| tensor.map.box_dims = [16, 1, 0, 0, 0]);
    let instruction = "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4.mbarrier::complete_tx::bytes";
    check_loads("gather4", 64, &tensors, instruction, &asks(BLOCKS * 64, [50, 30, 30, 30, 30], 1));
}

/// Copies from shared memory of two in three lanes, each with its own words to its own place; `merge` is what becomes of an old and a new word.
fn check_stores(
    what: &str,
    threads: u32,
    instruction: &str,
    dims: &[u64],
    box_dims: [u16; 5],
    places: &[[i64; 5]],
    merge: fn(u32, u32) -> u32,
) {
    let rank = dims.len();
    let (coordinates, _) = operands(instruction, rank);
    let target = if instruction.contains("scatter4") { "sm_100a" } else { "sm_90a" };
    let body = format!(
        "@!%want bra STORED;\n{instruction} [%map, {coordinates}], [%tile];\ncp.async.bulk.commit_group;\n\
         STORED:\ncp.async.bulk.wait_group 0;"
    );
    let program = own(threads, target, &body);
    let n = BLOCKS * threads as usize;
    assert_eq!(places.len(), n);
    let mut asks = asks(n, [0; 5], 1);
    asks.iter_mut().zip(places).for_each(|(ask, &at)| ask.at = at);
    let words: Vec<u32> = (0..n * BOX / 4).map(|i| random(i + 77)).collect();
    let make = || pair(Element::U32, dims, |tensor| tensor.map.box_dims = box_dims);
    for how in Draw::now().ways(what, ways(&How::new(BLOCKS as u32, threads))) {
        let tensors = make();
        let mut wanted = [tensors[0].memory().to_vec(), tensors[1].memory().to_vec()];
        for (ask, own) in asks.iter().zip(words.chunks(BOX / 4)).filter(|(ask, _)| ask.wants) {
            let tensor = &tensors[ask.map];
            for (word, at) in own.iter().zip(elements(tensor, instruction, ask)) {
                let Some(offset) = tensor.offset(at) else { continue };
                let to = &mut wanted[ask.map][offset..offset + 4];
                let old = u32::from_le_bytes(to.try_into().unwrap());
                to.copy_from_slice(&merge(old, *word).to_le_bytes());
            }
        }
        let asked: Vec<u32> = asks.iter().flat_map(Ask::words).collect();
        let out = vec![0; n * BOX / 4];
        let mut buffers =
            [Memory::maps(&tensors), Memory::words(&asked), Memory::words(&words), Memory::words(&out)];
        let label = label(what, &how);
        launch(&label, &program, &how, true, &mut buffers);
        assert_same(&label, &words_of(buffers[3].bytes()), &words);
        for (tensor, wanted) in tensors.iter().zip(&wanted) {
            assert_same(&label, &words_of(tensor.memory()), &words_of(wanted));
        }
    }
}

#[test]
fn each_lane_stores_its_own_box() {
    // Boxes beside each other, the last ones beyond the end.
    let places: Vec<[i64; 5]> =
        (0..BLOCKS as i64 * 100).map(|i| [8 * (i % 5) - 4, 6 * (i / 5), 0, 0, 0]).collect();
    let instruction = "cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group";
    check_stores("stores", 100, instruction, &[33, 230], [8, 6, 0, 0, 0], &places, |_, new| new);
}

#[test]
fn each_lane_scatters_its_own_rows() {
    let places: Vec<[i64; 5]> =
        (0..BLOCKS as i64 * 64).map(|i| [16, 4 * i + 3, 4 * i, 4 * i + 1, 4 * i + 2]).collect();
    let instruction = "cp.async.bulk.tensor.2d.global.shared::cta.tile::scatter4.bulk_group";
    check_stores("scatter4", 64, instruction, &[40, 500], [16, 1, 0, 0, 0], &places, |_, new| new);
}

#[test]
fn lanes_reduce_into_the_same_words() {
    let places: Vec<[i64; 5]> = (0..BLOCKS * 96)
        .map(|i| [i64::from(random(i) % 12) - 2, i64::from(random(i + 999) % 9) - 1, 0, 0, 0])
        .collect();
    for (op, merge) in [
        ("add", (|old, new| old.wrapping_add(new)) as fn(u32, u32) -> u32),
        ("min", |old, new| old.min(new)),
        ("xor", |old, new| old ^ new),
    ] {
        let instruction = format!("cp.reduce.async.bulk.tensor.2d.global.shared::cta.{op}.tile.bulk_group");
        check_stores(op, 96, &instruction, &[16, 12], [8, 8, 0, 0, 0], &places, merge);
    }
}

/// Rows of a tile that a warp or a block reads at a time, each of 32 words, and how many tiles there are.
const ROWS: i64 = 8;
const TRIPS: i64 = 7;

/// What a thread makes of the words of its column, row by row.
fn sum(tensor: &Tensor, column: i64, first_row: i64, n_rows: i64) -> u32 {
    (0..n_rows).fold(0u32, |sum, row| {
        let word = tensor.element([column, first_row + row, 0, 0, 0]);
        sum.wrapping_mul(3).wrapping_add(u32::from_le_bytes(word.try_into().unwrap()))
    })
}

/// A kernel of blocks of `threads`, with `%w` the warp, `%lane` the thread's number in it, `%map` and `%first`, the first row of the
/// block's tiles, that gives `%sum` back.
fn tiled(threads: u32, body: &str) -> Program {
    let text = format!(
        ".version 8.6\n.target sm_90a\n.address_size 64
.visible .entry copy(.param .u64 map, .param .u64 out)
{{
    .shared .align 1024 .b8 tiles[{tiles}];
    .shared .align 8 .b64 bars[32];
    .reg .pred %p, %q, %e, %more; .reg .b32 %t, %w, %lane, %g, %tile, %bar, %at, %sum, %trip, %parity, %first, %row, %stage, %r<20>;
    .reg .b64 %map, %out, %state, %rd<9>;
    mov.u32 %t, %tid.x;
    shr.u32 %w, %t, 5;
    and.b32 %lane, %t, 31;
    mov.u32 %r1, %ctaid.x;
    mad.lo.u32 %g, %r1, {threads}, %t;
    mul.lo.u32 %first, %r1, {rows};
    ld.param.u64 %map, [map];
    ld.param.u64 %rd1, [out];
    mad.wide.u32 %out, %g, 4, %rd1;
    mov.u32 %sum, 0;
    mov.u32 %trip, 0;
    mov.u32 %parity, 0;
    {body}
    st.global.u32 [%out], %sum;
    ret;
}}",
        tiles = 32 * 4 * ROWS * 8,
        rows = ROWS * TRIPS,
    );
    load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// The words of a thread's column of the tile at `%tile` become part of `%sum`.
fn read() -> String {
    let row = |row: i64| format!("ld.shared.u32 %r9, [%r8+{}];\nmad.lo.u32 %sum, %sum, 3, %r9;\n", 128 * row);
    format!("mad.lo.u32 %r8, %lane, 4, %tile;\n{}", (0..ROWS).map(row).collect::<String>())
}

/// Tiles of a tall tensor of 32 words by row, in which the sums of `threads` threads are looked at; `column` and `first` are a
/// thread's, by its block and number.
fn check_tiles(
    what: &str,
    threads: u32,
    program: &Program,
    has_simd: bool,
    wanted: impl Fn(&Tensor, i64, i64) -> u32,
) {
    let mut tensor = Tensor::new(Element::U32, &[300, 2 * ROWS as u64 * TRIPS as u64 - 3]);
    tensor.map.box_dims = [32, ROWS as u16, 0, 0, 0];
    let n = i64::from(threads);
    let words: Vec<u32> =
        (0..BLOCKS as i64 * n).map(|i| wanted(&tensor, i / n * ROWS * TRIPS, i % n)).collect();
    let given = [Memory::maps(std::slice::from_ref(&tensor)), Memory::words(&vec![0; words.len()])];
    everywhere(what, program, &How::new(BLOCKS as u32, threads), has_simd, &given, &words);
}

#[test]
fn an_elected_lane_loads_for_its_warp() {
    let issue = format!(
        "mbarrier.arrive.expect_tx.shared.b64 %state, [%bar], {};\nmad.lo.u32 %row, %trip, {ROWS}, %first;\nmul.lo.u32 %r2, %w, 32;\n\
         cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%map, {{%r2, %row}}], [%bar];",
        128 * ROWS
    );
    for elect in ["elect.sync %r3|%e, -1;", "setp.eq.u32 %e, %lane, 5;"] {
        let program = tiled(
            96,
            &format!(
                "mad.lo.u32 %tile, %w, {bytes}, 0;\nmov.u32 %r1, tiles;\nadd.u32 %tile, %tile, %r1;\n\
                 mov.u32 %bar, bars;\nmad.lo.u32 %bar, %w, 8, %bar;\n{elect}\n@%e mbarrier.init.shared.b64 [%bar], 1;\nbar.warp.sync -1;\n\
                 AGAIN:\n@!%e bra ISSUED;\n{issue}\nISSUED:\n\
                 WAIT:\nmbarrier.try_wait.parity.shared.b64 %p, [%bar], %parity;\n@!%p bra WAIT;\n{read}\
                 xor.b32 %parity, %parity, 1;\nbar.warp.sync -1;\nadd.u32 %trip, %trip, 1;\nsetp.lt.u32 %more, %trip, {TRIPS};\n@%more bra AGAIN;",
                bytes = 128 * ROWS,
                read = read(),
            ),
        );
        check_tiles(elect, 96, &program, false, |tensor, first, thread| {
            sum(tensor, thread, first, ROWS * TRIPS)
        });
    }
}

#[test]
fn one_thread_loads_for_its_block() {
    let program = tiled(
        128,
        &format!(
            "mov.u32 %tile, tiles;\nmov.u32 %bar, bars;\nsetp.eq.u32 %e, %t, 0;\n@%e mbarrier.init.shared.b64 [%bar], 1;\nbar.sync 0;\n\
             AGAIN:\n@!%e bra ISSUED;\nmbarrier.arrive.expect_tx.shared.b64 %state, [%bar], {};\nmad.lo.u32 %row, %trip, {ROWS}, %first;\n\
             cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%map, {{%trip, %row}}], [%bar];\nISSUED:\n\
             WAIT:\nmbarrier.try_wait.parity.shared.b64 %p, [%bar], %parity;\n@!%p bra WAIT;\n{}\
             xor.b32 %parity, %parity, 1;\nbar.sync 0;\nadd.u32 %trip, %trip, 1;\nsetp.lt.u32 %more, %trip, {TRIPS};\n@%more bra AGAIN;",
            128 * ROWS,
            read(),
        ),
    );
    check_tiles("one thread", 128, &program, false, |tensor, first, thread| {
        let mut all = 0u32;
        for trip in 0..TRIPS {
            let own = sum(tensor, thread % 32 + trip, first + trip * ROWS, ROWS);
            all = all.wrapping_mul(3u32.pow(ROWS as u32)).wrapping_add(own);
        }
        all
    });
}

/// What the lanes of the loading warp do besides the elected one.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Others {
    /// They end.
    End,
    /// They store a word, as all other threads do in the end.
    Store,
    /// They arrive at a barrier that the other warps wait for before they read, once for each part of the tiles.
    Arrive,
}

/// The first warp's elected lane loads tiles into two stages, and waits until the three other warps have read what was in them.
fn check_roles(others: Others) {
    let arrives = others == Others::Arrive;
    let parts = if arrives { 2 } else { 1 };
    let place = "and.b32 %stage, %trip, 1;\nmov.u32 %r1, tiles;\nmad.lo.u32 %tile, %stage, TILE, %r1;\nmov.u32 %bar, bars;\n\
                 mad.lo.u32 %bar, %stage, 8, %bar;\nshr.u32 %parity, %trip, 1;\nand.b32 %parity, %parity, 1;\n"
        .replace("TILE", &(128 * ROWS).to_string());
    let more = "add.u32 %trip, %trip, 1;\nsetp.lt.u32 %more, %trip, %r12;\n";
    let begin = format!("mul.lo.u32 %trip, %r11, {TRIPS};\nadd.u32 %r12, %trip, {TRIPS};\n");
    let again = |label: &str| match arrives {
        true => format!("add.u32 %r11, %r11, 1;\nsetp.lt.u32 %more, %r11, {parts};\n@%more bra {label};\n"),
        false => String::new(),
    };
    let (arrive, ordered) = match arrives {
        true => (
            "@%e bra KEPT;\nmbarrier.arrive.shared.b64 %state, [bars+32];\nKEPT:\n",
            "and.b32 %parity, %r11, 1;\nORDER:\nmbarrier.try_wait.parity.shared.b64 %p, [bars+32], %parity;\n@!%p bra ORDER;\n",
        ),
        false => ("", ""),
    };
    let end = if others == Others::Store { "bra.uni END;" } else { "ret;" };
    let (load_again, read_again) = (again("PART"), again("READ"));
    let program = tiled(
        128,
        &format!(
            "setp.eq.u32 %e, %t, 64;\n@%e mbarrier.init.shared.b64 [bars], 1;\n@%e mbarrier.init.shared.b64 [bars+8], 1;\n\
             @%e mbarrier.init.shared.b64 [bars+16], 3;\n@%e mbarrier.init.shared.b64 [bars+24], 3;\n\
             @%e mbarrier.init.shared.b64 [bars+32], 31;\nbar.sync 0;\nmov.u32 %r11, 0;\n\
             setp.ne.u32 %p, %w, 0;\n@%p bra READ;\nsetmaxnreg.dec.sync.aligned.u32 40;\n\
             PART:\nelect.sync %r3|%e, -1;\n@!%e bra LOADED;\n{begin}\
             LOAD:\n{place}xor.b32 %parity, %parity, 1;\n\
             EMPTY:\nmbarrier.try_wait.parity.shared.b64 %p, [%bar+16], %parity;\n@!%p bra EMPTY;\n\
             mbarrier.arrive.expect_tx.shared.b64 %state, [%bar], {};\nmad.lo.u32 %row, %trip, {ROWS}, %first;\n\
             cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%tile], [%map, {{%trip, %row}}], [%bar];\n\
             {more}@%more bra LOAD;\nLOADED:\n{arrive}{load_again}{end}\n\
             READ:\n{ordered}{begin}\
             NEXT:\n{place}\
             FULL:\nmbarrier.try_wait.parity.shared.b64 %p, [%bar], %parity;\n@!%p bra FULL;\n{}mad.lo.u32 %sum, %sum, 1, %w;\n\
             bar.warp.sync -1;\nsetp.eq.u32 %q, %lane, 7;\n@%q mbarrier.arrive.shared.b64 %state, [%bar+16];\n{more}@%more bra NEXT;\n\
             {read_again}END:",
            128 * ROWS,
            read(),
        ),
    );
    check_tiles(&format!("{others:?}"), 128, &program, false, |tensor, first, thread| {
        let warp = (thread / 32) as u32;
        let mut all = 0u32;
        for trip in 0..if warp == 0 { 0 } else { parts * TRIPS } {
            let own = sum(tensor, thread % 32 + trip, first + trip * ROWS, ROWS);
            all = all.wrapping_mul(3u32.pow(ROWS as u32)).wrapping_add(own).wrapping_add(warp);
        }
        all
    });
}

#[test]
fn a_warp_loads_what_others_read() {
    [Others::End, Others::Store].into_iter().for_each(check_roles);
}

/// The elected lane waits for room that is not there before the other lanes have arrived.
#[test]
fn lanes_beside_the_elected_one_tell_others_that_they_may_read() {
    check_roles(Others::Arrive);
}

#[test]
fn a_lane_whose_map_does_not_fit_traps() {
    let body = "mbarrier.arrive.expect_tx.shared.b64 %state, [%bar], 256;\n\
                @%want cp.async.bulk.tensor.2d.shared::cta.global.mbarrier::complete_tx::bytes [%tile], [%map, {%c0, %c1}], [%bar];";
    let program = own(64, "sm_90a", body);
    let tensors = pair(Element::U32, &[64, 40], |tensor| tensor.map.box_dims = [16, 4, 0, 0, 0]);
    let n = BLOCKS * 64;
    let mut maps = Memory::maps(&tensors);
    // Not a map at all.
    maps.bytes()[128..].fill(0);
    let mut asks = asks(n, [40, 30, 0, 0, 0], 1);
    for (lane, ask) in asks.iter_mut().enumerate() {
        ask.map = usize::from(lane == 45);
    }
    for bad in [false, true] {
        asks[45].wants = bad;
        let asked: Vec<u32> = asks.iter().flat_map(Ask::words).collect();
        let words = vec![0; n * BOX / 4];
        for how in Draw::now().ways(bad, ways(&How::new(BLOCKS as u32, 64))) {
            let mut buffers =
                [maps.clone(), Memory::words(&asked), Memory::words(&words), Memory::words(&words)];
            let mut args = buffers.each_mut().map(|buffer| Arg::Buffer(buffer.bytes()));
            let error = run(&program, "copy", &how, &mut args).err().map(|error| error.to_string());
            assert_eq!(error.is_some_and(|error| error.contains("trap")), bad, "{}", label("a trap", &how));
        }
    }
}
