//! `mma` of floats of 4, 6 and 8 bits (`.kind::f8f6f4`) and with a scale for each block along k (`.block_scale`), dense and
//! sparse, beside exact arithmetic in every setting. Fragments and scales are filled by the formulas of the PTX manual ("Matrix
//! Fragments", "Block scaling").

mod elements;

use std::fmt::Write;

use elements::Random;
use hip_cpu::harness::{self, Arg, Draw, How};
use oracle::{Block, F16, F32, Narrow};

/// Types of A, of B and of the scales, if there are any.
#[derive(Clone, Copy, Debug)]
struct Case {
    kind: &'static str,
    a: &'static str,
    b: &'static str,
    scale: Option<&'static str>,
    /// Scales of a row.
    blocks: usize,
    /// Says how many there are.
    is_said: bool,
    sparse: bool,
    half: bool,
    /// `byte-id` and `thread-id` of A and of B.
    ids: [(usize, usize); 2],
    /// The ids stand in registers.
    by_registers: bool,
}

const FLOATS: [&str; 5] = ["e4m3", "e5m2", "e2m3", "e3m2", "e2m1"];

/// A matrix's rows of codes.
type Codes = Vec<Vec<u8>>;

struct Inputs {
    /// As held: of a sparse A half of the columns.
    a: Codes,
    /// Its columns.
    b: Codes,
    c: Vec<Vec<u32>>,
    /// Of each row of A and of each column of B, one for each block.
    scales: [Codes; 2],
    /// Which columns of the whole A a row's elements stand in.
    columns: Vec<Vec<usize>>,
    metadata: [u32; 32],
}

impl Case {
    fn dense(a: &'static str, b: &'static str) -> Case {
        Case {
            kind: "f8f6f4",
            a,
            b,
            scale: None,
            blocks: 1,
            is_said: false,
            sparse: false,
            half: false,
            ids: [(0, 0); 2],
            by_registers: false,
        }
    }

    fn scaled(
        kind: &'static str,
        a: &'static str,
        b: &'static str,
        scale: &'static str,
        blocks: usize,
    ) -> Case {
        Case { kind, scale: Some(scale), blocks, is_said: true, ..Case::dense(a, b) }
    }

    fn is_packed(&self) -> bool {
        self.kind.starts_with("mxf4")
    }

    /// Elements of a register.
    fn per(&self) -> usize {
        if self.is_packed() { 8 } else { 4 }
    }

    /// Columns of A as held.
    fn held(&self) -> usize {
        8 * self.per()
    }

    fn k(&self) -> usize {
        if self.sparse { 2 * self.held() } else { self.held() }
    }

    fn instruction(&self) -> String {
        let Case { kind, a, b, .. } = self;
        let (k, sum) = (self.k(), if self.half { "f16" } else { "f32" });
        let sparse = if self.sparse { ".sp::ordered_metadata" } else { "" };
        let size = if self.is_said { format!(".scale_vec::{}X", self.blocks) } else { String::new() };
        let (scaled, scale) = match self.scale {
            Some(scale) => (format!(".block_scale{size}"), format!(".{scale}")),
            None => (String::new(), String::new()),
        };
        format!("mma{sparse}.sync.aligned.m16n8k{k}.row.col.kind::{kind}{scaled}.{sum}.{a}.{b}.{sum}{scale}")
    }

    /// What stands in the register for an element.
    fn container(&self, ty: &str, code: u8) -> u32 {
        // In a byte of its own it is in the middle.
        u32::from(if ty == "e2m1" && !self.is_packed() { code << 2 } else { code })
    }

    /// Registers of a lane: rows in tiles of eight, along k as many elements as four lanes' registers hold.
    fn fragment(&self, ty: &str, rows: &Codes) -> Vec<[u32; 32]> {
        let (per, tiles) = (self.per(), rows.len() / 8);
        let mut registers = vec![[0; 32]; rows.len() * rows[0].len() / (32 * per)];
        for (register, words) in registers.iter_mut().enumerate() {
            for (lane, word) in words.iter_mut().enumerate() {
                for nth in 0..per {
                    let row = lane / 4 + register % tiles * 8;
                    let column = lane % 4 * per + nth + register / tiles * 4 * per;
                    *word |= self.container(ty, rows[row][column]) << (32 / per * nth);
                }
            }
        }
        registers
    }

    /// The lanes' words with the scales, and something else where there are none.
    fn scale_words(&self, nth: usize, scales: &Codes, random: &mut Random) -> [u32; 32] {
        let (byte, thread) = self.ids[nth];
        let mut words = [0; 32].map(|_: u32| random.below(1 << 31) as u32);
        for (row, scales) in scales.iter().enumerate() {
            let lane = if nth == 0 { row % 8 * 4 + row / 8 + 2 * thread } else { row * 4 + thread };
            for (nth, &scale) in scales.iter().enumerate() {
                let shift = 8 * (byte + nth);
                words[lane] = words[lane] & !(0xff << shift) | u32::from(scale) << shift;
            }
        }
        words
    }

    fn text(&self) -> String {
        let mut text = String::from(
            ".version 9.1\n.target sm_120a\n.address_size 64\n\
             .visible .entry kernel(.param .u64 from, .param .u64 to)\n{\n\
             .reg .b32 %r<40>, %l;\n.reg .f32 %f<8>;\n.reg .b16 %h<4>;\n.reg .b64 %from, %to, %o;\n\
             ld.param.u64 %from, [from];\nld.param.u64 %to, [to];\nmov.u32 %l, %laneid;\n\
             mul.wide.u32 %o, %l, 4;\nadd.u64 %from, %from, %o;\nadd.u64 %to, %to, %o;\n\
             mov.u32 %l, %ctaid.x;\nmul.wide.u32 %o, %l, 512;\nadd.u64 %to, %to, %o;\n",
        );
        let n_b = if self.sparse { 4 } else { 2 };
        let bytes = 128 * (8 + n_b + 3);
        writeln!(text, "mul.wide.u32 %o, %l, {bytes};\nadd.u64 %from, %from, %o;").unwrap();
        for nth in 0..8 + n_b + 3 {
            writeln!(text, "ld.global.b32 %r{nth}, [%from+{}];", 128 * nth).unwrap();
        }
        let list = |prefix: &str, first: usize, count: usize| {
            let names: Vec<String> = (first..first + count).map(|n| format!("{prefix}{n}")).collect();
            format!("{{{}}}", names.join(", "))
        };
        let (a, b) = (list("%r", 0, 4), list("%r", 4, n_b));
        let first = 4 + n_b;
        let (c, d) = if self.half {
            (list("%r", first, 2), list("%r", 30, 2))
        } else {
            for nth in 0..4 {
                writeln!(text, "mov.b32 %f{nth}, %r{};", first + nth).unwrap();
            }
            (list("%f", 0, 4), list("%f", 4, 4))
        };
        let mut rest = format!("{d}, {a}, {b}, {c}");
        if self.sparse {
            write!(rest, ", %r{}, 0", first + 4).unwrap();
        }
        if self.scale.is_some() {
            for (nth, (byte, thread)) in self.ids.into_iter().enumerate() {
                let word = first + 5 + nth;
                if self.by_registers {
                    let (x, y) = (2 * nth, 2 * nth + 1);
                    writeln!(text, "mov.b16 %h{x}, {byte};\nmov.b16 %h{y}, {thread};").unwrap();
                    write!(rest, ", %r{word}, {{%h{x}, %h{y}}}").unwrap();
                } else {
                    write!(rest, ", {{%r{word}}}, {{{byte}, {thread}}}").unwrap();
                }
            }
        }
        writeln!(text, "{} {rest};", self.instruction()).unwrap();
        let (register, n_d) = if self.half { ("%r3", 2) } else { ("%f", 4) };
        for nth in 0..n_d {
            let number = if self.half { nth } else { 4 + nth };
            writeln!(text, "st.global.b32 [%to+{}], {register}{number};", 128 * nth).unwrap();
        }
        text + "ret;\n}\n"
    }

    /// Row and column of a lane's `i`-th element of C or D.
    fn place(lane: usize, i: usize) -> (usize, usize) {
        (lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2)
    }

    /// The lanes' registers.
    fn registers(&self, inputs: &Inputs, random: &mut Random) -> Vec<[u32; 32]> {
        let mut registers = self.fragment(self.a, &inputs.a);
        registers.extend(self.fragment(self.b, &inputs.b));
        for register in 0..4 {
            registers.push(std::array::from_fn(|lane| {
                let at = |i: usize| {
                    let (row, column) = Case::place(lane, i);
                    inputs.c[row][column]
                };
                match (self.half, register) {
                    (false, _) => at(register),
                    (true, 0 | 1) => at(2 * register) | at(2 * register + 1) << 16,
                    (true, _) => 0,
                }
            }));
        }
        registers.push(inputs.metadata);
        for (nth, scales) in inputs.scales.iter().enumerate() {
            registers.push(self.scale_words(nth, scales, random));
        }
        registers
    }

    /// D as the instruction gives it for each block's inputs.
    fn run(&self, input: &[u8], blocks: usize, how: &How) -> Vec<Vec<Vec<u32>>> {
        let text = self.text();
        let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let (mut input, mut output) = (input.to_vec(), vec![0xaa; 512 * blocks]);
        let mut args = [Arg::Buffer(&mut input), Arg::Buffer(&mut output)];
        harness::run(&program, "kernel", how, &mut args).unwrap_or_else(|error| panic!("{error}\n{text}"));
        let words: Vec<u32> =
            output.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        let of_block = |words: &[u32]| {
            let mut d = vec![vec![0; 8]; 16];
            for lane in 0..32 {
                for i in 0..4 {
                    let (row, column) = Case::place(lane, i);
                    d[row][column] = match self.half {
                        false => words[i * 32 + lane],
                        true => words[i / 2 * 32 + lane] >> (i % 2 * 16) & 0xffff,
                    };
                }
            }
            d
        };
        words.chunks(128).map(of_block).collect()
    }

    fn expected(&self, inputs: &Inputs) -> Vec<Vec<u32>> {
        let narrow = Narrow::new(self.a, self.b, self.scale).unwrap();
        let to = if self.half { F16 } else { F32 };
        let deep = self.held() / self.blocks;
        let element = |row: usize, column: usize| {
            let pair = |j: usize| (inputs.a[row][j], inputs.b[column][inputs.columns[row][j]]);
            let pairs: Vec<(u8, u8)> = (0..self.held()).map(pair).collect();
            let [of_a, of_b] = &inputs.scales;
            let blocks = pairs.chunks(deep).enumerate();
            let blocks: Vec<Block<'_>> = blocks
                .map(|(nth, pairs)| Block { pairs, scales: (of_a[row][nth], of_b[column][nth]) })
                .collect();
            narrow.element(&blocks, inputs.c[row][column].into(), to) as u32
        };
        (0..16).map(|row| (0..8).map(|column| element(row, column)).collect()).collect()
    }

    /// In settings that are drawn, a block for each of the inputs.
    fn check(&self, inputs: &[Inputs], random: &mut Random) {
        let words = inputs.iter().flat_map(|inputs| self.registers(inputs, random)).flatten();
        let bytes: Vec<u8> = words.flat_map(u32::to_le_bytes).collect();
        let blocks = inputs.len() as u32;
        let how = How::new(blocks, 32);
        let hows = [how.clone().lane(), how.clone().warp(), how.simd(32)];
        for how in Draw::now().ways(format!("{self:?}"), hows) {
            let found = self.run(&bytes, inputs.len(), &how);
            for (nth, (found, inputs)) in found.iter().zip(inputs).enumerate() {
                let expected = self.expected(inputs);
                assert!(
                    without_zeros_sign(found) == without_zeros_sign(&expected),
                    "{self:?} in {:?}, block {nth}\n{found:x?}\n{expected:x?}",
                    how.setting
                );
            }
        }
    }

    /// Places of a row's elements, and the metadata of all rows: of four columns, or of four pairs, two.
    fn structure(&self, random: &mut Random) -> (Vec<Vec<usize>>, [u32; 32]) {
        if !self.sparse {
            return (vec![(0..self.held()).collect(); 16], [0; 32]);
        }
        let size = if self.is_packed() { 2 } else { 1 };
        let (mut columns, mut metadata) = (vec![vec![]; 16], [0; 32]);
        for (row, columns) in columns.iter_mut().enumerate() {
            let mut bits = 0u64;
            for chunk in 0..self.k() / (4 * size) {
                let pair = random.of(&[[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
                for index in pair {
                    columns.extend((0..size).map(|nth| (chunk * 4 + index) * size + nth));
                }
                bits |= ((pair[0] | pair[1] << 2) as u64) << (4 * chunk);
            }
            for half in 0..2 {
                metadata[row % 8 * 4 + row / 8 + 2 * half] = (bits >> (32 * half)) as u32;
            }
        }
        (columns, metadata)
    }

    /// Numbers whose sums need no rounding.
    fn some(&self, random: &mut Random) -> Inputs {
        let mut matrix = |ty: &str, rows: usize, columns: usize| -> Codes {
            (0..rows).map(|_| (0..columns).map(|_| near_one(ty, random)).collect()).collect()
        };
        let (a, b) = (matrix(self.a, 16, self.held()), matrix(self.b, 8, self.k()));
        let scales = [16, 8].map(|rows| match self.scale {
            Some(scale) => matrix(scale, rows, self.blocks),
            None => vec![vec![0; self.blocks]; rows],
        });
        let c = |random: &mut Random| {
            let whole = random.below(9) as i32 - 4;
            // 0, 1, 2, 3, 4 as halves.
            let half = [0, 0x3c00, 0x4000, 0x4200, 0x4400][whole.unsigned_abs() as usize];
            let sign = if whole < 0 { 0x8000 } else { 0 };
            if self.half { half | sign } else { (whole as f32).to_bits() }
        };
        let c = (0..16).map(|_| (0..8).map(|_| c(random)).collect()).collect();
        let (columns, metadata) = self.structure(random);
        Inputs { a, b, c, scales, columns, metadata }
    }
}

impl Case {
    /// In each row of A and column of B one number that is not zero: of A all in the course of 16 rounds.
    fn one_product(&self, round: usize, random: &mut Random) -> Inputs {
        let place = random.below(self.held());
        let mut inputs = self.some(random);
        for (row, codes) in inputs.a.iter_mut().enumerate() {
            codes.fill(0);
            codes[place] = ((16 * round + row) & ((1 << bits(self.a)) - 1)) as u8;
        }
        for codes in &mut inputs.b {
            codes.fill(0);
            codes[place] = random.below(1 << bits(self.b)) as u8;
        }
        for (row, scales) in inputs.scales[0].iter_mut().enumerate() {
            scales.fill((16 * round + row) as u8);
        }
        inputs.scales[1].iter_mut().flatten().for_each(|scale| *scale = random.below(256) as u8);
        inputs.c.iter_mut().flatten().for_each(|c| *c = 0);
        inputs
    }
}

/// A sum that is too small before the next block's is added loses its sign with it, which the manual leaves open.
fn without_zeros_sign(matrix: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let number = |&bits: &u32| if bits == 1 << 31 { 0 } else { bits };
    matrix.iter().map(|row| row.iter().map(number).collect()).collect()
}

/// A code of a number that is about one.
fn near_one(ty: &str, random: &mut Random) -> u8 {
    let code = match ty {
        "e2m1" => random.below(16),
        "e2m3" | "e3m2" => random.below(64),
        "e4m3" => random.below(2) << 7 | (5 + random.below(5)) << 3 | random.below(8),
        "e5m2" => random.below(2) << 7 | (13 + random.below(5)) << 2 | random.below(4),
        "ue8m0" => 125 + random.below(4),
        "ue4m3" => random.below(2) << 7 | (6 + random.below(3)) << 3 | random.below(8),
        other => panic!("{other}"),
    };
    code as u8
}

fn bits(ty: &str) -> u32 {
    match ty {
        "e2m1" => 4,
        "e2m3" | "e3m2" => 6,
        _ => 8,
    }
}

/// All forms that are scaled, with the scales in the first bytes of the first lanes.
fn forms() -> Vec<Case> {
    let mut cases = vec![];
    for a in FLOATS {
        for b in FLOATS {
            cases.push(Case::scaled("mxf8f6f4", a, b, "ue8m0", 1));
        }
    }
    let packed = |kind, scale, blocks| Case::scaled(kind, "e2m1", "e2m1", scale, blocks);
    cases.push(packed("mxf4", "ue8m0", 2));
    cases.push(packed("mxf4nvf4", "ue8m0", 2));
    cases.push(packed("mxf4nvf4", "ue8m0", 4));
    cases.push(packed("mxf4nvf4", "ue4m3", 4));
    cases
}

#[test]
fn narrow_floats_are_multiplied() {
    let mut random = Random(elements::seed());
    for a in FLOATS {
        for b in FLOATS {
            for (half, sparse) in [(false, false), (true, false), (false, true), (true, true)] {
                // The widest of the tiny sums of halves would be rounded on the way.
                let case = Case { half, sparse, ..Case::dense(a, b) };
                case.check(&[case.some(&mut random)], &mut random);
            }
        }
    }
}

#[test]
fn products_are_scaled_by_blocks() {
    let mut random = Random(elements::seed());
    for case in forms() {
        for sparse in [false, true] {
            let case = Case { sparse, ..case };
            case.check(&[case.some(&mut random)], &mut random);
        }
    }
}

#[test]
fn scales_are_found_where_the_ids_say() {
    let mut random = Random(elements::seed());
    for case in [
        Case::scaled("mxf8f6f4", "e4m3", "e3m2", "ue8m0", 1),
        Case::scaled("mxf4", "e2m1", "e2m1", "ue8m0", 2),
        Case::scaled("mxf4nvf4", "e2m1", "e2m1", "ue4m3", 4),
    ] {
        let bytes: Vec<usize> = (0..4).step_by(case.blocks).collect();
        for thread in 0..4 {
            let ids = [(random.of(&bytes), thread % 2), (random.of(&bytes), thread)];
            let is_said = case.kind == "mxf4nvf4" || thread % 2 == 0;
            for by_registers in [false, true] {
                let case = Case { ids, by_registers, is_said, sparse: thread / 2 == 1, ..case };
                case.check(&[case.some(&mut random)], &mut random);
            }
        }
    }
}

/// One product for each element of D, with every code and every scale: what is too large, too small, infinite or NaN.
#[test]
fn every_code_has_its_number() {
    let mut random = Random(elements::seed());
    for (nth, case) in forms().into_iter().enumerate() {
        if nth % 6 != 0 && nth < 25 {
            // Each type once on either side.
            continue;
        }
        let all: Vec<Inputs> = (0..16).map(|round| case.one_product(round, &mut random)).collect();
        case.check(&all, &mut random);
    }
}

#[test]
fn forms_that_are_not_there_are_refused() {
    let registers = "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5}, {%f0, %f1, %f2, %f3}";
    let wide =
        "{%f0, %f1, %f2, %f3}, {%r0, %r1, %r2, %r3}, {%r4, %r5, %r6, %r7}, {%f0, %f1, %f2, %f3}, %r8, 0";
    let scales = ", %r8, {0, 0}, %r9, {0, 0}";
    // As NVIDIA's assembler of 13.5 has it.
    for (form, registers, scales) in [
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::4X.f32.e2m1.e2m1.f32.ue8m0",
            registers,
            scales,
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::2X.f32.e2m1.e2m1.f32.ue4m3",
            registers,
            scales,
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4nvf4.block_scale.f32.e2m1.e2m1.f32.ue4m3",
            registers,
            scales,
        ),
        (
            "mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.block_scale.f32.e2m3.e2m1.f32.ue4m3",
            registers,
            scales,
        ),
        ("mma.sync.aligned.m16n8k32.row.col.kind::mxf8f6f4.f32.e2m3.e2m1.f32", registers, ""),
        ("mma.sync.aligned.m16n8k32.row.col.f32.e2m3.e2m1.f32", registers, ""),
        ("mma.sp.sync.aligned.m16n8k64.row.col.kind::f8f6f4.f32.e2m3.e2m1.f32", wide, ""),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            registers,
            ", %r8, {1, 0}, %r9, {0, 0}",
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            registers,
            ", %r8, {2, 2}, %r9, {0, 0}",
        ),
        (
            "mma.sync.aligned.m16n8k64.row.col.kind::mxf4.block_scale.f32.e2m1.e2m1.f32.ue8m0",
            registers,
            ", %r8, {2, 1}, %r9, {0, 4}",
        ),
    ] {
        let text = format!(
            ".version 9.1\n.target sm_120a\n.address_size 64\n.visible .entry kernel()\n{{\n\
             .reg .b32 %r<10>;\n.reg .f32 %f<4>;\n{form} {registers}{scales};\nret;\n}}\n"
        );
        let how = How::new(1, 32).lane();
        let found = harness::load(&text).and_then(|program| harness::run(&program, "kernel", &how, &mut []));
        assert!(found.is_err(), "{form}{scales}");
    }
}
