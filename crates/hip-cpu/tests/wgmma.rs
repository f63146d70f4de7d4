//! Products of four warps (`wgmma`): factors are laid into shared memory, core matrix by core matrix, as the PTX manual
//! describes "Matrices in shared memory" and the swizzles' patterns; registers follow "Register Fragments"; the product is
//! a plain one of small whole numbers, so no order of sums matters. Shapes, types and layouts are drawn anew in each run.
//! Of a sparse A ("Sparse matrix storage") half of the elements are there, and metadata says which columns they stand in.

mod elements;

use std::fmt::Write;

use elements::T::{self, *};
use elements::{Random, seed};
use hip_cpu::harness::{self, Arg, Draw, How};

/// D, A and B.
const TYPES: [[T; 3]; 17] = [
    [F32, F16, F16],
    [F16, F16, F16],
    [F32, Bf16, Bf16],
    [F32, Tf32, Tf32],
    [F32, E4m3, E4m3],
    [F32, E4m3, E5m2],
    [F32, E5m2, E4m3],
    [F32, E5m2, E5m2],
    [F16, E4m3, E4m3],
    [F16, E4m3, E5m2],
    [F16, E5m2, E4m3],
    [F16, E5m2, E5m2],
    [S32, S8, S8],
    [S32, S8, U8],
    [S32, U8, S8],
    [S32, U8, U8],
    [S32, B1, B1],
];

/// How a factor lies in shared memory.
#[derive(Clone, Copy, Debug)]
struct Layout {
    /// Neighbours along k are neighbours in memory.
    k_major: bool,
    /// Bytes of a row of the swizzle's pattern; 16 is none.
    width: usize,
    leading: usize,
    stride: usize,
    /// Where the descriptor's start is.
    start: usize,
    /// Where the matrix with the pattern begins; the descriptor is so many bytes further along k.
    begin: usize,
    base: usize,
}

impl Layout {
    /// A layout of `rows` (along m or n) times `depth` (32 or 64) bytes along k that fits in front of `end`, which it moves.
    fn draw(random: &mut Random, bits: usize, rows: usize, depth: usize, end: &mut usize) -> Layout {
        let k_major = bits != 16 || random.below(2) == 0;
        // What lies along k has to fit into a row of the pattern.
        let width = match k_major && depth == 64 {
            true => random.of(&[16, 64, 128]),
            false => random.of(&[16, 32, 64, 128]),
        };
        let times = depth / 32;
        let (units, wide) = (rows / 8, random.below(2) == 0);
        let pattern = 8 * width;
        let mut begin = end.next_multiple_of(1024);
        let (leading, stride) = match (k_major, width) {
            (true, 16) if wide => (128, 256 * times),
            (true, 16) => (128 * units, 128),
            (true, _) => (16, pattern * (1 + random.below(2))),
            (false, 16) if wide => (128, 256 * times),
            (false, 16) => (128 * units, 128),
            (false, _) if wide => (2 * times * pattern, pattern),
            (false, _) => (pattern, pattern * units.div_ceil(width / 16)),
        };
        // Kernels step through a row of the pattern by what one product takes.
        let step = if k_major && width > depth { depth * random.below(width / depth) } else { 0 };
        let base = if width == 128 { random.below(8) } else { 0 };
        begin += 128 * base;
        *end = begin + 2 * leading.max(stride) * (units + 2) + 2048;
        Layout { k_major, width, leading, stride, start: begin + step, begin, base }
    }

    /// The byte where the element of row `row`, whose k-th byte of its row along k is meant, lies.
    fn place(&self, bits: usize, row: usize, k: usize) -> usize {
        let turned = |row: usize| match self.width {
            128 => row % 8,
            64 => row / 2 % 4,
            32 => row / 4 % 2,
            _ => 0,
        };
        if self.k_major {
            let byte = k * bits / 8 + (self.start - self.begin);
            let (unit, within) = (byte / 16, byte % 16);
            let core = self.begin + row / 8 * self.stride + row % 8 * self.width;
            return match self.width {
                16 => core + unit * self.leading + within,
                _ => core + (unit ^ turned(row % 8)) * 16 + within,
            };
        }
        let (unit, within) = (row / 8, row % 8 * 2);
        if self.width == 16 {
            return self.begin + unit * self.stride + k / 8 * self.leading + k % 8 * 16 + within;
        }
        let units = self.width / 16;
        let core = self.begin + unit / units * self.leading + k / 8 * self.stride + k % 8 * self.width;
        core + ((unit % units) ^ turned(k % 8)) * 16 + within
    }

    /// The descriptor, but for its start.
    fn descriptor(&self) -> u64 {
        let swizzle =
            [(16, 0), (128, 1), (64, 2), (32, 3)].into_iter().find(|it| it.0 == self.width).unwrap().1;
        let field = |bytes: usize| (bytes as u64 >> 4) & 0x3fff;
        field(self.leading) << 16 | field(self.stride) << 32 | (self.base as u64) << 49 | swizzle << 62
    }
}

fn put(memory: &mut Vec<u8>, ty: T, layout: &Layout, matrix: &[Vec<i64>]) {
    for (row, numbers) in matrix.iter().enumerate() {
        for (k, &number) in numbers.iter().enumerate() {
            let at = layout.place(ty.bits(), row, k);
            let bits = ty.encode(number) << if ty.bits() < 8 { k % 8 } else { 0 };
            let bytes = ty.bits().div_ceil(8);
            if memory.len() < at + bytes {
                memory.resize(at + bytes, 0);
            }
            for (byte, value) in memory[at..at + bytes].iter_mut().zip(bits.to_le_bytes()) {
                *byte |= value;
            }
        }
    }
}

/// Row and column of the `nth` element in a register, counted as the manual's figures of A do, or of D for pairs in rows.
fn place(warp: usize, lane: usize, register: usize, nth: usize, per: usize) -> (usize, usize) {
    let row = 16 * warp + lane / 4 + 8 * (register % 2);
    (row, register / 2 * 4 * per + lane % 4 * per + nth)
}

/// As many columns as the manual allows, most often few.
fn columns(random: &mut Random, a: T) -> usize {
    loop {
        let most = random.of(&[32, 6, 6, 6]);
        let n = 8 * (1 + random.below(most));
        if !matches!(a, S8 | U8 | B1) || n == 8 || n == 24 || n.is_multiple_of(16) {
            return n;
        }
    }
}

/// Where the elements of a sparse A stand, and the metadata that says so.
struct Sparse {
    /// Of each row's elements the columns.
    columns: Vec<Vec<usize>>,
    selector: usize,
    /// Of each lane of the four warps.
    metadata: Vec<u32>,
}

impl Sparse {
    /// Two of four neighbours, or of tf32 one of two. "Sparsity selector": of four lanes a pair has the metadata of 16-bit and
    /// tf32 elements, half of a row and half of that eight rows down in a word; of bytes all have, half of one row each.
    fn draw(random: &mut Random, a: T) -> Sparse {
        let held = 256 / a.bits();
        let selector = if a.bits() == 8 { 0 } else { random.below(2) };
        let (mut columns, mut bits) = (vec![], vec![]);
        for _ in 0..64 {
            let (mut places, mut row) = (vec![], 0u64);
            if a == Tf32 {
                for at in 0..held {
                    let place = random.below(2);
                    places.push(2 * at + place);
                    row |= [0b0100, 0b1110][place] << (4 * at);
                }
            } else {
                for four in 0..held / 2 {
                    let [low, high] = random.of(&[[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
                    places.extend([4 * four + low, 4 * four + high]);
                    row |= ((low | high << 2) as u64) << (4 * four);
                }
            }
            columns.push(places);
            bits.push(row);
        }
        let metadata = (0..128)
            .map(|thread| {
                let (first, four) = (16 * (thread / 32) + thread % 32 / 4, thread % 4);
                match a.bits() == 8 {
                    true => (bits[first + 8 * (four % 2)] >> (32 * (four / 2))) as u32,
                    // Nobody looks at the other two lanes' words.
                    false if four / 2 != selector => random.below(1 << 30) as u32,
                    false => {
                        let half = |row: usize| (bits[row] >> (16 * (four % 2))) as u16;
                        u32::from(half(first)) | u32::from(half(first + 8)) << 16
                    }
                }
            })
            .collect();
        Sparse { columns, selector, metadata }
    }
}

fn one(random: &mut Random, [d, a, b]: [T; 3], n: usize, saturates: bool, is_sparse: bool) {
    let held = 256 / a.bits();
    let k = if is_sparse { 2 * held } else { held };
    let sparse = is_sparse.then(|| Sparse::draw(random, a));
    let (rows, columns) = (random.matrix(a, 64, held), random.matrix(b, n, k));
    let mut before = random.matrix(if d == S32 { S32 } else { F16 }, 64, n);
    let in_registers = random.below(2) == 0;
    let keeps = random.below(3) != 0;
    let signs = [random.of(&[1, -1]), random.of(&[1, -1])];
    let mut end = 64;
    let a_layout = Layout::draw(random, a.bits(), 64, 32, &mut end);
    let b_layout = Layout::draw(random, b.bits(), n, k * b.bits() / 8, &mut end);
    let mut memory = vec![];
    if !in_registers {
        put(&mut memory, a, &a_layout, &rows);
    }
    put(&mut memory, b, &b_layout, &columns);
    memory.resize(memory.len().next_multiple_of(4), 0);

    // The instruction.
    let sign = if d == S32 { 1 } else { signs[0] * signs[1] };
    let mut flags = String::new();
    if d != S32 {
        write!(flags, ", {}, {}", signs[0], signs[1]).unwrap();
    }
    if a.bits() == 16 {
        let lies = [&a_layout, &b_layout].map(|layout| u32::from(!layout.k_major));
        let lies = if in_registers { &lies[1..] } else { &lies[..] };
        lies.iter().for_each(|flag| write!(flags, ", {flag}").unwrap());
    }
    let product = if a == B1 { ".and.popc" } else { "" };
    let satfinite = if saturates { ".satfinite" } else { "" };
    let pairs = d.bits() == 16;
    let n_registers = if pairs { n / 4 } else { n / 2 };
    // LLVM's PTX has no other registers than untyped ones.
    let kind = if d == F32 && random.below(2) == 0 { "f32" } else { "b32" };
    let list = |name: &str, count: usize| {
        let names: Vec<String> = (0..count).map(|at| format!("{name}{at}")).collect();
        format!("{{{}}}", names.join(", "))
    };
    let from = if in_registers { list("%a", 4) } else { "%da".to_owned() };
    let (sp, structure) = match &sparse {
        Some(sparse) => (".sp", format!("%meta, {}, ", sparse.selector)),
        None => ("", String::new()),
    };
    let instruction = format!(
        "wgmma.mma_async{sp}.sync.aligned.m64n{n}k{k}{satfinite}.{}.{}.{}{product} {}, {from}, %db, {structure}%keeps{flags};\n",
        d.name(),
        a.name(),
        b.name(),
        list("%d", n_registers)
    );

    // A kernel of one warpgroup or two, which do the same. Of a cluster's blocks the last computes, and has memory of its own.
    let threads = 128 << random.below(2);
    let words = memory.len() / 4;
    let mut text = format!(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 1024 .b8 memory[];\n\
         .visible .entry kernel(.param .u64 shared, .param .u64 a, .param .u64 c, .param .u64 to, .param .u64 da, .param .u64 db, .param .u32 keeps, .param .u64 meta)\n\
         {{\n.reg .pred %keeps, %more;\n.reg .b32 %t, %s, %x, %a<4>, %at, %k, %meta;\n.reg .{kind} %d<{n_registers}>;\n\
         .reg .b64 %p, %q, %da, %db, %o;\nmov.u32 %k, %cluster_ctarank;\nmov.u32 %x, %cluster_nctarank;\nsub.u32 %x, %x, 1;\nsetp.ne.u32 %more, %k, %x;\n@%more ret;\n\
         mov.u32 %t, %tid.x;\nld.param.u32 %k, [keeps];\nsetp.ne.u32 %keeps, %k, 0;\n\
         ld.param.u64 %p, [shared];\nmov.u32 %s, memory;\nmov.u32 %x, %t;\nCOPY:\nsetp.lt.u32 %more, %x, {words};\n@!%more bra COPIED;\n\
         mul.wide.u32 %o, %x, 4;\nadd.u64 %q, %p, %o;\nld.global.b32 %a0, [%q];\nshl.b32 %at, %x, 2;\nadd.u32 %at, %at, %s;\n\
         st.shared.b32 [%at], %a0;\nadd.u32 %x, %x, {threads};\nbra COPY;\nCOPIED:\n"
    );
    for (name, layout) in [("da", &a_layout), ("db", &b_layout)] {
        write!(
            text,
            "add.u32 %at, %s, {};\nshr.u32 %at, %at, 4;\nand.b32 %at, %at, 0x3fff;\ncvt.u64.u32 %o, %at;\n\
             ld.param.u64 %{name}, [{name}];\nor.b64 %{name}, %{name}, %o;\n",
            layout.start
        )
        .unwrap();
    }
    let mut fetch = |from: &str, name: &str, kind: &str, count: usize| {
        write!(
            text,
            "ld.param.u64 %p, [{from}];\nmul.wide.u32 %o, %t, {};\nadd.u64 %p, %p, %o;\n",
            4 * count
        )
        .unwrap();
        for at in 0..count {
            writeln!(text, "ld.global.{kind} {name}{at}, [%p+{}];", 4 * at).unwrap();
        }
    };
    fetch("a", "%a", "b32", 4);
    fetch("c", "%d", kind, n_registers);
    // Both warpgroups have the same metadata.
    text += "ld.param.u64 %p, [meta];\nand.b32 %at, %t, 127;\nmul.wide.u32 %o, %at, 4;\nadd.u64 %p, %p, %o;\nld.global.b32 %meta, [%p];\n";
    text += "setmaxnreg.dec.sync.aligned.u32 96;\nsetmaxnreg.inc.sync.aligned.u32 96;\nfence.proxy.async;\nbar.sync 0;\nwgmma.fence.sync.aligned;\n";
    // Products that add to the same registers follow each other in a row, in a loop, in one that all wait in, or with somebody
    // who keeps one of the sums that are added to.
    let chain = if d == F16 || saturates { 0 } else { random.below(5) };
    let times = [1, 2, 3, 3, 2][chain];
    let wait = "wgmma.commit_group.sync.aligned;\nwgmma.wait_group.sync.aligned 0;\n";
    let always = "setp.eq.u32 %keeps, 0, 0;\n";
    text += &match chain {
        0 => instruction.clone(),
        1 => format!("{instruction}{always}{instruction}"),
        2 | 3 => {
            let wait = if chain == 3 { format!("{wait}bar.sync 0;\n") } else { String::new() };
            format!(
                "mov.u32 %x, 0;\nAGAIN:\n{instruction}{always}{wait}add.u32 %x, %x, 1;\nsetp.lt.u32 %more, %x, 3;\n@%more bra AGAIN;\n"
            )
        }
        _ => format!("{instruction}{always}mov.b32 %x, %d0;\n{instruction}mov.b32 %d0, %x;\n"),
    };
    text += wait;
    // Whoever waited for the product may write over its factors.
    text += "st.shared.b32 [%s], 0;\n";
    write!(text, "ld.param.u64 %p, [to];\nmul.wide.u32 %o, %t, {};\nadd.u64 %p, %p, %o;\n", 4 * n_registers)
        .unwrap();
    for at in 0..n_registers {
        writeln!(text, "st.global.{kind} [%p+{}], %d{at};", 4 * at).unwrap();
    }
    text += "ret;\n}\n";

    // What it is to give.
    let sum = |row: usize, column: usize| -> i64 {
        let other = |at: usize| sparse.as_ref().map_or(at, |it| it.columns[row][at]);
        let products = rows[row].iter().enumerate().map(|(at, a)| a * columns[column][other(at)]);
        sign * products.sum::<i64>()
    };
    let mut expected = vec![];
    let (mut a_words, mut c_words) = (vec![0u32; 4 * threads], vec![0u32; n_registers * threads]);
    for thread in 0..threads {
        let (warp, lane) = (thread / 32 % 4, thread % 32);
        for register in 0..4 {
            let per = 32 / a.bits();
            for nth in 0..per {
                let (row, column) = place(warp, lane, register, nth, per);
                a_words[4 * thread + register] |= (a.encode(rows[row][column]) as u32) << (nth * a.bits());
            }
        }
        for register in 0..n_registers {
            let mut word = 0;
            for nth in 0..32 / d.bits() {
                let (row, column) = match pairs {
                    true => place(warp, lane, register, nth, 2),
                    false => place(warp, lane, register / 2, register % 2, 2),
                };
                let old = &mut before[row][column];
                let shift = nth * d.bits();
                c_words[n_registers * thread + register] |= (d.encode(*old) as u32) << shift;
                let times = if chain == 4 && register == 0 { 1 } else { times };
                let new = times * sum(row, column) + if keeps { *old } else { 0 };
                let new = match (d == S32, saturates) {
                    (true, true) => new.clamp(i64::from(i32::MIN), i64::from(i32::MAX)),
                    (true, false) => i64::from(new as i32),
                    _ => new,
                };
                word |= (d.encode(new) as u32) << shift;
            }
            expected.push(word);
        }
    }

    let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let bytes = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let mut how = How::new(1, threads as u32);
    how.dynamic_shared = memory.len() as u32 + 2048;
    let mut refused = 0;
    let mut clustered = How::new(2, threads as u32);
    clustered.dynamic_shared = how.dynamic_shared;
    clustered.cluster = [2, 1, 1];
    let hows = [how.clone().lane(), how.clone().baseline(), how.clone().warp(), how];
    let mut hows = Draw::now().ways(&text, hows);
    if random.below(3) == 0 {
        hows.push(clustered.lane());
    }
    for how in hows {
        let (mut a_words, mut c_words, mut shared) = (bytes(&a_words), bytes(&c_words), memory.clone());
        let mut metadata = bytes(sparse.as_ref().map_or(&[0; 128][..], |sparse| &sparse.metadata));
        let mut to = vec![0xaa; 4 * expected.len()];
        let mut args = [
            Arg::Buffer(&mut shared),
            Arg::Buffer(&mut a_words),
            Arg::Buffer(&mut c_words),
            Arg::Buffer(&mut to),
            Arg::u64(a_layout.descriptor()),
            Arg::u64(b_layout.descriptor()),
            Arg::u32(u32::from(keeps)),
            Arg::Buffer(&mut metadata),
        ];
        match harness::run(&program, "kernel", &how, &mut args) {
            Err(harness::Error::Refused { .. }) => {
                refused += 1;
                continue;
            }
            other => other.unwrap_or_else(|error| panic!("{error}\n{text}")),
        }
        if to == bytes(&expected) {
            continue;
        }
        let got: Vec<u32> = to.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        let at = got.iter().zip(&expected).position(|(got, expected)| got != expected).unwrap();
        panic!(
            "{:?}: thread {}, register {}: {:#x}, expected {:#x}\nA {:?}\nB {:?}\n{instruction}",
            how.setting,
            at / n_registers,
            at % n_registers,
            got[at],
            expected[at],
            (!in_registers).then_some(a_layout),
            b_layout
        );
    }
    assert!(refused <= 1, "{refused} settings do not run it");
}

#[test]
fn products_of_warpgroups_are_as_the_manual_says() {
    let mut random = Random(seed());
    every_type(&mut random, false);
}

#[test]
fn products_of_sparse_matrices_multiply_what_is_there() {
    let mut random = Random(seed());
    every_type(&mut random, true);
}

/// All types, and then some of all there is.
fn every_type(random: &mut Random, sparse: bool) {
    // Bits are never sparse.
    let types: Vec<[T; 3]> = TYPES.into_iter().filter(|&[_, a, _]| !sparse || a != B1).collect();
    for &[d, a, b] in &types {
        one(random, [d, a, b], 8, false, sparse);
        if d == S32 && a != B1 {
            one(random, [d, a, b], 8, true, sparse);
        }
    }
    // Lists of forms (`SHOW`) are the same in each run.
    let more = if std::env::var_os("SHOW").is_some() { 0 } else { 8 };
    for _ in 0..more {
        let [d, a, b] = random.of(&types);
        let n = columns(random, a);
        let saturates = d == S32 && a != B1 && random.below(2) == 0;
        one(random, [d, a, b], n, saturates, sparse);
    }
}

#[test]
fn what_the_manual_does_not_have_is_refused() {
    let text = |instruction: &str| {
        format!(
            ".version 8.4\n.target sm_90a\n.address_size 64\n.visible .entry kernel()\n{{\n.reg .pred %p;\n\
             .reg .f32 %f<4>;\n.reg .b32 %r<4>;\n.reg .b64 %a, %b;\n{instruction}\nret;\n}}\n"
        )
    };
    let product = "wgmma.mma_async.sync.aligned";
    let f4 = "{%f0, %f1, %f2, %f3}";
    let sparse = "wgmma.mma_async.sp.sync.aligned";
    for good in [
        format!("{product}.m64n8k16.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{sparse}.m64n8k32.f32.f16.f16 {f4}, %a, %b, %r0, 1, %p, 1, 1, 0, 0;"),
    ] {
        harness::load(&text(&good))
            .and_then(|program| harness::emit(&program, "kernel", &How::new(1, 128)))
            .unwrap();
    }
    for wrong in [
        format!("{product}.m64n12k16.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{product}.m64n8k8.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{product}.m32n8k16.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{product}.m64n8k16.f32.f16.bf16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{product}.m64n8k16.f32.f16.f16 {f4}, %a, %b, %p, 2, 1, 0, 0;"),
        format!("{product}.m64n8k16.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 2;"),
        format!("{product}.m64n8k16.f32.f16.f16 {f4}, %a, %b, %p, 1, 1;"),
        format!("{product}.m64n16k16.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{product}.m64n8k8.f32.tf32.tf32 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{sparse}.m64n8k16.f32.f16.f16 {f4}, %a, %b, %r0, 0, %p, 1, 1, 0, 0;"),
        format!("{sparse}.m64n8k32.f32.f16.f16 {f4}, %a, %b, %r0, 2, %p, 1, 1, 0, 0;"),
        format!("{sparse}.m64n8k32.f32.f16.f16 {f4}, %a, %b, %r0, %r1, %p, 1, 1, 0, 0;"),
        format!("{sparse}.m64n8k32.f32.f16.f16 {f4}, %a, %b, %p, 1, 1, 0, 0;"),
        format!("{sparse}.m64n8k16.f32.tf32.tf32 {f4}, %a, %b, %r0, 2, %p, 1, 1;"),
        format!("{sparse}.m64n8k64.f32.e4m3.e4m3 {f4}, %a, %b, %r0, 1, %p, 1, 1;"),
        format!("{sparse}.m64n8k512.s32.b1.b1.and.popc {{%r0, %r1, %r2, %r3}}, %a, %b, %r0, 0, %p;"),
        format!("{product}.m64n8k32.f32.f16.f16 {f4}, %a, %b, %r0, 0, %p, 1, 1, 0, 0;"),
        "wgmma.fence.sp.sync.aligned;".to_owned(),
        "wgmma.fence.aligned;".to_owned(),
        "setmaxnreg.inc.sync.aligned.u32 100;".to_owned(),
    ] {
        let emitted = harness::load(&text(&wrong))
            .and_then(|program| harness::emit(&program, "kernel", &How::new(1, 128)).map(|_| ()));
        assert!(emitted.is_err(), "{wrong}");
    }
}
