//! Products: factors are laid into shared memory unit by unit, as the manual's canonical layouts and swizzles say, or into
//! tensor memory lane by lane; of small whole numbers, so that no order of sums matters. All of tensor memory is compared:
//! what a product may not write has to be as before.

use std::fmt::Write;

use hip_cpu::harness::{self, Arg, Draw, Error, How};

use super::elements::T::{self, *};
use super::{Random, refusal, seed};

/// How a factor lies in shared memory.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    k_major: bool,
    /// Bytes of a row of the swizzle's pattern; 16 is none.
    width: usize,
    /// 32 bytes stay together.
    pairs: bool,
    leading: usize,
    stride: usize,
    begin: usize,
    base: usize,
}

/// Elements in 16 bytes: of 4 and 6 bits 16 stand in front of padding, unless they are packed.
fn per_unit(ty: T, packed: bool) -> usize {
    match ty.bits() {
        4 if packed => 32,
        bits if bits <= 8 => 16,
        bits => 128 / bits,
    }
}

impl Layout {
    /// Of so many rows (along m or n) and elements along k, behind `end`, which it moves.
    pub fn draw(
        random: &mut Random,
        ty: T,
        packed: bool,
        rows: usize,
        k: usize,
        transposed: bool,
        end: &mut usize,
    ) -> Layout {
        let per = per_unit(ty, packed);
        let (pairs, width) = match (transposed, ty.bits()) {
            (true, 32) => (true, 128),
            (true, _) => (false, random.of(&[16, 32, 64, 128])),
            // What lies along k has to fit into a row of the pattern.
            (false, _) if k > 2 * per => (false, random.of(&[16, 64, 128])),
            (false, _) => (false, random.of(&[16, 32, 64, 128])),
        };
        let base = if width == 128 && !pairs { random.below(8) } else { 0 };
        let begin = end.next_multiple_of(1024) + 128 * base;
        let wide = 16 * (1 + random.below(3));
        let (leading, stride, size) = if !transposed {
            let units = k / per;
            let eights = rows / 8;
            match width {
                16 if random.below(2) == 0 => (128 * eights + wide, 128, (128 * eights + wide) * units),
                16 => (128, 128 * units + wide, (128 * units + wide) * eights),
                _ => (16, 8 * width * (1 + random.below(2)), 16 * width * eights),
            }
        } else {
            let (units, eights) = (rows.div_ceil(per), k / 8);
            match width {
                16 if random.below(2) == 0 => (128 * units + wide, 128, (128 * units + wide) * eights),
                16 => (128, 128 * eights + wide, (128 * eights + wide) * units),
                _ => {
                    let (rows, atom) = if pairs { (4, 512) } else { (8, 8 * width) };
                    let (across, along) = (units.div_ceil(width / 16), k / rows);
                    match random.below(2) {
                        0 => (atom, atom * across, atom * across * along),
                        _ => (atom * along, atom, atom * across * along),
                    }
                }
            }
        };
        *end = begin + size + 1024;
        Layout { k_major: !transposed, width, pairs, leading, stride, begin, base }
    }

    /// The bit where an element begins.
    pub fn place(&self, ty: T, packed: bool, row: usize, k: usize) -> usize {
        let per = per_unit(ty, packed);
        let turned = |row: usize| match self.width {
            128 if self.pairs => row % 4 * 2,
            128 => row % 8,
            64 => row / 2 % 4,
            32 => row / 4 % 2,
            _ => 0,
        };
        let (byte, nth) = if self.k_major {
            let (unit, row_start) = (k / per, self.begin + row / 8 * self.stride + row % 8 * self.width);
            let unit = if self.width == 16 { unit * self.leading } else { 16 * (unit ^ turned(row % 8)) };
            (row_start + unit, k % per)
        } else {
            let unit = row / per;
            let byte = if self.width == 16 {
                self.begin + unit * self.stride + k / 8 * self.leading + k % 8 * 16
            } else {
                let (units, rows) = (self.width / 16, if self.pairs { 4 } else { 8 });
                let atom = self.begin + unit / units * self.leading + k / rows * self.stride;
                atom + k % rows * self.width + 16 * ((unit % units) ^ turned(k % rows))
            };
            (byte, row % per)
        };
        8 * byte + nth * ty.bits()
    }

    /// Without the address of the memory that `begin` counts from.
    pub fn descriptor(&self) -> u64 {
        let swizzle = match self.width {
            16 => 0,
            32 => 6,
            64 => 4,
            _ if self.pairs => 1,
            _ => 2,
        };
        let field = |bytes: usize| (bytes as u64 >> 4) & 0x3fff;
        field(self.begin)
            | field(self.leading) << 16
            | field(self.stride) << 32
            | 1 << 46
            | (self.base as u64) << 49
            | swizzle << 61
    }
}

pub fn put(memory: &mut Vec<u8>, bit: usize, bits: usize, value: u64) {
    let end = (bit + bits).div_ceil(8);
    if memory.len() < end {
        memory.resize(end, 0);
    }
    for nth in 0..bits {
        if value >> nth & 1 == 1 {
            memory[(bit + nth) / 8] |= 1 << ((bit + nth) % 8);
        }
    }
}

/// A product to be tried.
#[derive(Clone, Debug)]
pub struct Case {
    pub kind: &'static str,
    pub d: T,
    pub a: T,
    pub b: T,
    pub m: usize,
    pub n: usize,
    pub pair: bool,
    pub ws: bool,
    pub sparse: bool,
    /// Elements along k that one scale is for, without sparsity.
    pub scale: Option<(usize, bool)>,
    pub more: &'static str,
}

impl Case {
    /// Opcode and modifiers.
    fn name(&self) -> String {
        format!(
            "tcgen05.mma{}{}.cta_group::{}.kind::{}{}",
            if self.ws { ".ws" } else { "" },
            if self.sparse { ".sp" } else { "" },
            if self.pair { 2 } else { 1 },
            self.kind,
            self.more,
        )
    }

    fn dense_k(&self) -> usize {
        match self.a {
            Tf32 => 8,
            F16 | Bf16 => 16,
            _ if self.is_packed() => 64,
            _ => 32,
        }
    }

    fn k(&self) -> usize {
        self.dense_k() * if self.sparse { 2 } else { 1 }
    }

    fn is_packed(&self) -> bool {
        self.kind.starts_with("mxf4")
    }

    /// The block of the pair, the lane and the column (from D's on) of an element of D: layouts A to G.
    fn place(&self, row: usize, column: usize, half: usize) -> (usize, usize, usize) {
        let n = self.n;
        match (self.m, self.pair, self.ws) {
            (256, true, _) => (row / 128, row % 128, column),
            (128, true, _) if self.sparse => (row / 64, half + row % 64 / 16 * 32 + row % 16, column),
            (128, true, _) => (row / 64, row % 64 + column / (n / 2) * 64, column % (n / 2)),
            (128, false, _) => (0, row, column),
            (64, false, false) => (0, half + row / 16 * 32 + row % 16, column),
            (64, false, true) => (0, row + column / (n / 2) * 64, column % (n / 2)),
            (32, false, true) => (0, row + column / (n / 4) * 32, column % (n / 4)),
            _ => unreachable!(),
        }
    }

    fn code(ty: T) -> u32 {
        match ty {
            Tf32 => 2,
            Bf16 | E5m2 | S8 => 1,
            E2m3 => 3,
            E3m2 => 4,
            E2m1 => 5,
            _ => 0,
        }
    }
}

/// Lanes × columns of each block.
pub type Tensors = Vec<Vec<[u32; 512]>>;

const A_COLUMN: usize = 256;
const METADATA: usize = 300;
const SCALES_A: usize = 320;
const SCALES_B: usize = 340;

#[expect(clippy::too_many_lines, reason = "one product after the other, as a list")]
pub fn one(random: &mut Random, case: &Case) {
    if is_shown() {
        // What is loaded is listed, whatever becomes of it.
        return drop(harness::load(&case.name()));
    }
    let Case { kind, d, a, b, m, n, pair, ws, sparse, .. } = *case;
    let (k, packed) = (case.k(), case.is_packed());
    let held = if sparse { k / 2 } else { k };
    let n_blocks = if pair { 2 } else { 1 };
    let whole = |bits: usize| matches!(bits, 8 | 16 | 32);
    let step = if pair { 32 } else { 16 };
    let transposes = [
        whole(a.bits()) && !packed && random.below(2) == 0,
        whole(b.bits()) && !packed && random.below(2) == 0 && (b.bits() != 8 || n.is_multiple_of(step)),
    ];
    let in_tensor_memory = random.below(2) == 0;
    let is_int = d == S32;
    let negates = [!is_int && random.below(3) == 0, !is_int && random.below(3) == 0];
    let saturates = is_int && random.below(2) == 0;
    let adds = random.below(4) != 0;
    let has_divisor = matches!(kind, "f16" | "tf32") && !ws && random.below(3) == 0;
    let divisor = if has_divisor { 1 + random.below(3) } else { 0 };
    let half = if random.below(2) == 0 { 0 } else { 16 };
    let is_half = !ws && (m == 64 || m == 128 && pair && sparse);
    let half = if is_half { half } else { 0 };

    let rows = random.matrix(a, m, held);
    let columns = random.matrix(b, n, k);
    // Where a sparse A's elements stand, and two bits for each place or pair of them.
    let (mut places, mut metadata) = (vec![], vec![]);
    for _ in 0..m {
        let (mut of_row, mut bits) = (vec![], 0u64);
        let chunk = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        match (sparse, a, packed) {
            (false, ..) => of_row = (0..k).collect(),
            (_, Tf32, _) => {
                for at in 0..held {
                    let place = random.below(2);
                    of_row.push(2 * at + place);
                    bits |= [0b0100, 0b1110][place] << (4 * at);
                }
            }
            (_, _, packed) => {
                let each = if packed { 2 } else { 1 };
                for four in 0..held / (2 * each) {
                    let two = random.of(&chunk);
                    for place in two {
                        of_row.extend((0..each).map(|nth| (4 * four + place) * each + nth));
                    }
                    bits |= ((two[0] | two[1] << 2) as u64) << (4 * four);
                }
            }
        }
        places.push(of_row);
        metadata.push(bits);
    }
    // Scales: of A by row, of B by column.
    let held_each = case.scale.map_or(1, |(each, _)| each);
    let each = held_each * if sparse { 2 } else { 1 };
    let n_scales = if case.scale.is_some() { k / each } else { 0 };
    let scale = |random: &mut Random, ue4m3: bool| match ue4m3 {
        true => random.of(&[(0x38u32, 1.0), (0x30, 0.5), (0x40, 2.0), (0x3c, 1.5)]),
        false => random.of(&[(127u32, 1.0), (126, 0.5), (128, 2.0), (125, 0.25)]),
    };
    let ue4m3 = case.scale.is_some_and(|(_, ue4m3)| ue4m3);
    let mut scales = |count: usize| -> Vec<Vec<(u32, f64)>> {
        (0..count).map(|_| (0..n_scales).map(|_| scale(random, ue4m3)).collect()).collect()
    };
    let (scales_a, scales_b) = (scales(m), scales(n));
    let ids: [usize; 2] = match n_scales {
        1 => [random.below(4), random.below(4)],
        2 => [2 * random.below(2), 2 * random.below(2)],
        _ => [0, 0],
    };
    let selector = if sparse && matches!(kind, "f16" | "tf32") { random.below(2) } else { 0 };

    // Tensor memory, noise where nothing is.
    let mut before: Tensors = (0..n_blocks)
        .map(|_| (0..128).map(|_| std::array::from_fn(|_| random.below(1 << 30) as u32)).collect())
        .collect();
    let mut old = random.matrix(if is_int { S32 } else { F16 }, m, n);
    if divisor > 0 {
        old.iter_mut().flatten().for_each(|it| *it <<= divisor);
    }
    for (row, numbers) in old.iter().enumerate() {
        for (column, &number) in numbers.iter().enumerate() {
            let (block, lane, at) = case.place(row, column, half);
            before[block][lane][at] = d.encode(number) as u32;
        }
    }
    for row in 0..m {
        for column in 0..n {
            // Every lane that computes with a row has it, its metadata and the scales of its 32 lanes.
            let (block, lane, first) = case.place(row, column, half);
            let memory = &mut before[block];
            if in_tensor_memory {
                let bits = if packed { 4 } else { a.bits().max(8) };
                let per = 32 / bits;
                for (at, &number) in rows[row].iter().enumerate() {
                    let shift = at % per * bits + if a == E2m1 && !packed { 2 } else { 0 };
                    let word = &mut memory[lane][A_COLUMN + at / per];
                    if at % per == 0 {
                        *word = 0;
                    }
                    *word |= (a.encode(number) as u32) << shift;
                }
            }
            if sparse && a.bits() < 16 {
                memory[lane][METADATA] = metadata[row] as u32;
                memory[lane][METADATA + 1] = (metadata[row] >> 32) as u32;
            } else if sparse {
                // Eight rows in the lower halves, eight in the upper ones; k in two halves of eight lanes each.
                let (sixteen, nth) = (lane / 16 * 16, lane % 16);
                for part in 0..2 {
                    let word = &mut memory[sixteen + nth % 8 + 8 * part][METADATA + selector];
                    let shift = 16 * (nth / 8);
                    let bits = (metadata[row] >> (16 * part)) as u32 & 0xffff;
                    *word = *word & !(0xffff << shift) | bits << shift;
                }
            }
            if first > 0 {
                continue;
            }
            // Rows and columns of this lane's part.
            let local = if pair { row % (m / 2) } else { row };
            let mut scale = |at: usize, local: usize, id: usize, which: usize, bits: u32| {
                let word = &mut memory[lane / 32 * 32 + local % 32][at + local / 32];
                let shift = 8 * (id + which);
                *word = *word & !(0xff << shift) | bits << shift;
            };
            for which in 0..n_scales {
                scale(SCALES_A, local, ids[0], which, scales_a[row][which].0);
                let of_part: Vec<usize> = (0..n)
                    .filter(|&it| case.place(row, it, half).1 == lane && case.place(row, it, half).0 == block)
                    .collect();
                for (nth, &column) in of_part.iter().enumerate() {
                    scale(SCALES_B, nth, ids[1], which, scales_b[column][which].0);
                }
            }
        }
    }

    // Shared memory of each block: its rows of A, and its columns of B.
    let mut end = 64;
    let a_layout = Layout::draw(random, a, packed, m / n_blocks, held, transposes[0], &mut end);
    let b_layout = Layout::draw(random, b, packed, n / n_blocks + 32, k, transposes[1], &mut end);
    let mut shared = vec![vec![0u8; end.next_multiple_of(16)]; n_blocks];
    let (mut zeroed, mut shift, mut mask) = (vec![false; n], 0, 0u64);
    if ws && random.below(2) == 0 {
        // Spans of zeros and of columns that are used, anew in each part of 128 ÷ m.
        shift = random.below(if m == 32 { 17 } else { 33 });
        let (zeros, used) = (1 + random.below(20), 1 + random.below(40));
        let parts = 128 / m;
        mask = 1 << 39 | (zeros as u64 - 1) << 40 | (used as u64 - 1) << 48 | (shift as u64) << 56;
        for part in 0..parts {
            let (first, skipped) = (random.below(2), random.below(10));
            mask |= (first as u64) << (32 + part) | (skipped as u64) << (8 * part);
            let mut pattern = vec![];
            while pattern.len() < skipped + n {
                let (spans, flags) =
                    if first == 1 { ([zeros, used], [true, false]) } else { ([used, zeros], [false, true]) };
                for (span, flag) in spans.into_iter().zip(flags) {
                    pattern.extend(vec![flag; span]);
                }
            }
            let each = n / parts;
            zeroed[part * each..(part + 1) * each].copy_from_slice(&pattern[skipped..skipped + each]);
        }
    }
    for (block, memory) in shared.iter_mut().enumerate() {
        for row in 0..m / n_blocks {
            for (at, &number) in rows[block * (m / n_blocks) + row].iter().enumerate() {
                if !in_tensor_memory {
                    put(memory, a_layout.place(a, packed, row, at), a.bits(), a.encode(number));
                }
            }
        }
        for column in 0..n / n_blocks {
            for (at, &number) in columns[block * (n / n_blocks) + column].iter().enumerate() {
                put(memory, b_layout.place(b, packed, column + shift, at), b.bits(), b.encode(number));
            }
        }
    }
    let shared_bytes = shared.iter().map(Vec::len).max().unwrap().next_multiple_of(16);
    shared.iter_mut().for_each(|memory| memory.resize(shared_bytes, 0));

    // The descriptor.
    let flag = |is_set: bool, bit: u32| u32::from(is_set) << bit;
    let code = |ty: T| if packed { 1 } else { Case::code(ty) };
    let mut descriptor = flag(sparse, 2)
        | code(a) << 7
        | code(b) << 10
        | flag(negates[0], 13)
        | flag(negates[1], 14)
        | flag(transposes[0], 15)
        | flag(transposes[1], 16)
        | (n as u32 / 8) << 17;
    descriptor |= match case.scale {
        Some(_) => (ids[1] as u32) << 4 | flag(!ue4m3, 23) | (m as u32 / 128) << 27 | (ids[0] as u32) << 29,
        None => {
            let d = if d == S32 { 2 } else { flag(d == F32, 0) };
            selector as u32 | flag(saturates, 3) | d << 4 | (m as u32 / 16) << 24
        }
    };

    // Lanes that are left as they are.
    let masks: Option<Vec<u64>> = (case.scale.is_none() && !ws && (divisor > 0 || random.below(3) == 0))
        .then(|| {
            (0..2 * n_blocks)
                .map(|_| (random.below(1 << 31) as u64) << 32 | random.below(1 << 31) as u64)
                .collect()
        });
    let is_disabled = |block: usize, lane: usize| {
        masks.as_ref().is_some_and(|masks| masks[2 * block + lane / 64] >> (lane % 64) & 1 == 1)
    };

    // What it is to give.
    let mut after = before.clone();
    for row in 0..m {
        for column in 0..n {
            let (block, lane, at) = case.place(row, column, half);
            if is_disabled(block, lane) {
                continue;
            }
            let mut sum = 0f64;
            for (nth, &number) in rows[row].iter().enumerate() {
                let k = places[row][nth];
                let other = if zeroed[column] { 0 } else { columns[column][k] };
                let scale =
                    if n_scales > 0 { scales_a[row][k / each].1 * scales_b[column][k / each].1 } else { 1.0 };
                sum += (number * other) as f64 * scale;
            }
            if negates[0] != negates[1] {
                sum = -sum;
            }
            if adds {
                sum += (old[row][column] >> divisor) as f64;
            }
            after[block][lane][at] = match d {
                S32 if saturates => (sum.clamp(i32::MIN.into(), i32::MAX.into()) as i32).cast_unsigned(),
                S32 => sum as i64 as u32,
                F16 => F16.encode(sum as i64) as u32,
                // No sum of ours is a negative zero.
                _ => (sum as f32 + 0.0).to_bits(),
            };
        }
    }

    // The instruction.
    let mut operands = format!("[%d], {}, %rd12", if in_tensor_memory { "[%a]" } else { "%rd11" });
    if sparse {
        operands += ", [%meta]";
    }
    operands += ", %idesc";
    if case.scale.is_some() {
        operands += ", [%sa], [%sb]";
    }
    if masks.is_some() {
        let names: Vec<String> = (0..4 * n_blocks).map(|at| format!("%m{at}")).collect();
        write!(operands, ", {{{}}}", names.join(", ")).unwrap();
    }
    operands += ", %adds";
    if divisor > 0 {
        write!(operands, ", {divisor}").unwrap();
    }
    if ws && mask != 0 {
        operands += ", %rd13";
    }
    let group = if pair { 2 } else { 1 };
    let instruction = format!("{} {operands};\n", case.name());
    let text = text(&instruction, group, shared_bytes, masks.is_some());
    let d_address = (half as u64) << 16;
    let a_word = if in_tensor_memory { d_address | A_COLUMN as u64 } else { a_layout.descriptor() };
    let mut numbers = vec![
        a_word,
        b_layout.descriptor(),
        mask,
        u64::from(descriptor),
        d_address,
        d_address | METADATA as u64,
        SCALES_A as u64,
        SCALES_B as u64,
        u64::from(adds),
    ];
    numbers.extend(masks.iter().flatten());
    run(&format!("{case:?}"), &text, &instruction, &numbers, &shared, &before, &after);
}

/// Fills shared and tensor memory, has one thread of the first block ask for the product, waits for it in all blocks, and
/// stores tensor memory.
pub fn text(instruction: &str, group: usize, shared_bytes: usize, has_masks: bool) -> String {
    let words = shared_bytes / 4;
    let commit = match group {
        1 => "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%s];",
        _ => {
            "mov.u16 %h1, 3;\ntcgen05.commit.cta_group::2.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%s], %h1;"
        }
    };
    let meet = if group == 2 { "barrier.cluster.arrive;\nbarrier.cluster.wait;\n" } else { "bar.sync 0;\n" };
    let mut text = String::from(
        ".version 9.1\n.target sm_100a\n.address_size 64\n.extern .shared .align 1024 .b8 memory[];\n\
         .visible .entry kernel(.param .u64 to, .param .u64 numbers, .param .u64 shared, .param .u64 tensors)\n{\n\
         .reg .pred %p<4>, %adds;\n.reg .b16 %h<4>;\n.reg .b32 %r<10>, %t, %w, %s, %k, %d, %a, %meta, %idesc, %sa, %sb, %m<8>, %mine, %x;\n\
         .reg .b64 %rd<20>, %o;\n\
         mov.u32 %t, %tid.x;\nshr.u32 %w, %t, 5;\nmov.u32 %k, %cluster_ctarank;\nmov.u32 %s, memory;\n\
         ld.param.u64 %rd1, [numbers];\nld.global.u64 %rd11, [%rd1];\nld.global.u64 %rd12, [%rd1+8];\nld.global.u64 %rd13, [%rd1+16];\n\
         ld.global.u32 %idesc, [%rd1+24];\nld.global.u32 %d, [%rd1+32];\nld.global.u32 %meta, [%rd1+40];\nld.global.u32 %sa, [%rd1+48];\n\
         ld.global.u32 %sb, [%rd1+56];\nld.global.u32 %x, [%rd1+64];\nsetp.ne.u32 %adds, %x, 0;\ncvt.u32.u64 %a, %rd11;\n",
    );
    if has_masks {
        for at in 0..4 * group {
            writeln!(text, "ld.global.u32 %m{at}, [%rd1+{}];", 72 + 4 * at).unwrap();
        }
    }
    write!(
        text,
        // Shared memory, behind the mbarrier.
        "setp.ne.u32 %p1, %t, 0;\n@%p1 bra INIT;\nmbarrier.init.shared.b64 [%s], 1;\nINIT:\n\
         ld.param.u64 %rd2, [shared];\nmul.wide.u32 %o, %k, {shared_bytes};\nadd.u64 %rd2, %rd2, %o;\nadd.u32 %x, %t, 16;\n\
         COPY:\nsetp.ge.u32 %p1, %x, {words};\n@%p1 bra COPIED;\nmul.wide.u32 %o, %x, 4;\nadd.u64 %rd3, %rd2, %o;\n\
         ld.global.u32 %r1, [%rd3];\nshl.b32 %r2, %x, 2;\nadd.u32 %r2, %r2, %s;\nst.shared.u32 [%r2], %r1;\nadd.u32 %x, %x, 128;\nbra COPY;\nCOPIED:\n\
         setp.ne.u32 %p2, %w, 0;\n@%p2 bra HAVE;\ntcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [%s+16], 512;\nHAVE:\n\
         fence.proxy.async;\nbar.sync 0;\n\
         shl.b32 %mine, %w, 21;\nshl.b32 %r3, %k, 7;\nadd.u32 %r3, %r3, %t;\nmul.wide.u32 %o, %r3, 2048;\n\
         ld.param.u64 %rd4, [tensors];\nadd.u64 %rd4, %rd4, %o;\nld.param.u64 %rd5, [to];\nadd.u64 %rd5, %rd5, %o;\n\
         mov.u32 %x, 0;\nFILL:\nld.global.u32 %r1, [%rd4];\nadd.u32 %r2, %mine, %x;\ntcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {{%r1}};\n\
         add.u64 %rd4, %rd4, 4;\nadd.u32 %x, %x, 1;\nsetp.lt.u32 %p1, %x, 512;\n@%p1 bra FILL;\n\
         tcgen05.wait::st.sync.aligned;\ntcgen05.fence::before_thread_sync;\n{meet}tcgen05.fence::after_thread_sync;\n\
         or.b32 %r4, %t, %k;\nsetp.ne.u32 %p1, %r4, 0;\n@%p1 bra ASKED;\n{instruction}{commit}\nASKED:\n\
         WAIT:\nmbarrier.try_wait.parity.shared.b64 %p1, [%s], 0;\n@!%p1 bra WAIT;\ntcgen05.fence::after_thread_sync;\n\
         mov.u32 %x, 0;\nREAD:\nadd.u32 %r2, %mine, %x;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {{%r1}}, [%r2];\ntcgen05.wait::ld.sync.aligned;\n\
         st.global.u32 [%rd5], %r1;\nadd.u64 %rd5, %rd5, 4;\nadd.u32 %x, %x, 1;\nsetp.lt.u32 %p1, %x, 512;\n@%p1 bra READ;\n\
         {meet}@%p2 bra GONE;\nld.shared.u32 %r1, [%s+16];\ntcgen05.dealloc.cta_group::{group}.sync.aligned.b32 %r1, 512;\n\
         tcgen05.relinquish_alloc_permit.cta_group::{group}.sync.aligned;\nGONE:\nret;\n}}\n"
    )
    .unwrap();
    text
}

fn words(tensors: &Tensors) -> Vec<u32> {
    tensors.iter().flatten().flatten().copied().collect()
}

pub fn run(
    case: &str,
    text: &str,
    instruction: &str,
    numbers: &[u64],
    shared: &[Vec<u8>],
    before: &Tensors,
    after: &Tensors,
) {
    let program = harness::load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    if is_shown() {
        return;
    }
    let bytes = |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|word| word.to_le_bytes()).collect() };
    let n_blocks = shared.len() as u32;
    let mut how = How::new(n_blocks, 128);
    how.cluster = [n_blocks, 1, 1];
    how.dynamic_shared = shared[0].len() as u32;
    let (before, expected) = (bytes(&words(before)), words(after));
    let mut refused = 0;
    let hows = [how.clone().lane(), how.clone().baseline(), how.clone().warp(), how];
    for how in Draw::now().ways(text, hows) {
        let mut to = vec![0xaa; before.len()];
        let mut numbers: Vec<u8> = numbers.iter().flat_map(|it| it.to_le_bytes()).collect();
        let (mut shared, mut tensors) = (shared.concat(), before.clone());
        let mut args = [
            Arg::Buffer(&mut to),
            Arg::Buffer(&mut numbers),
            Arg::Buffer(&mut shared),
            Arg::Buffer(&mut tensors),
        ];
        match harness::run(&program, "kernel", &how, &mut args) {
            Err(Error::Refused { .. }) => {
                refused += 1;
                continue;
            }
            other => other
                .unwrap_or_else(|error| panic!("{:?}: {error}\n{case}\n{instruction}\n{text}", how.setting)),
        }
        for (at, (given, expected)) in to.chunks(4).zip(&expected).enumerate() {
            let given = u32::from_le_bytes(given.try_into().unwrap());
            let (lane, column) = (at / 512, at % 512);
            assert!(
                given == *expected,
                "{:?}: lane {lane}, column {column}: {given:#x}, expected {expected:#x}\n{case}\n{instruction}",
                how.setting
            );
        }
    }
    assert!(refused <= 1, "{refused} settings do not run it");
}

fn plain(kind: &'static str, d: T, a: T, b: T) -> Case {
    Case { kind, d, a, b, m: 128, n: 16, pair: false, ws: false, sparse: false, scale: None, more: "" }
}

/// All there are for a list of forms (`SHOW`), which is the same in each run, else one of them, by turns.
pub fn some<E: Copy>(random: &mut Random, turn: usize, all: &[E]) -> Vec<E> {
    match is_shown() {
        true => all.to_vec(),
        false => vec![all[(turn + random.below(2)) % all.len()]],
    }
}

fn one_of<E: Copy>(random: &mut Random, all: &[E]) -> Vec<E> {
    let turn = random.below(all.len());
    some(random, turn, all)
}

fn is_shown() -> bool {
    std::env::var_os("SHOW").is_some()
}

/// Rows, and whether two blocks have them.
const SHAPES: [(usize, bool); 4] = [(64, false), (128, true), (128, false), (256, true)];

const SMALL: [T; 5] = [E4m3, E5m2, E2m3, E3m2, E2m1];
const OPS: [&str; 5] =
    ["", ".collector::a::fill", ".collector::a::use", ".collector::a::lastuse", ".collector::a::discard"];

fn kinds(random: &mut Random) -> Vec<Case> {
    let mut cases = vec![
        plain("f16", F32, F16, F16),
        plain("f16", F16, F16, F16),
        plain("f16", F32, Bf16, Bf16),
        plain("f16", F32, F16, Bf16),
        plain("tf32", F32, Tf32, Tf32),
        plain("i8", S32, S8, S8),
        plain("i8", S32, U8, S8),
        plain("i8", S32, S8, U8),
        plain("i8", S32, U8, U8),
    ];
    for a in SMALL {
        let (b, d) = (random.of(&SMALL), random.of(&[F32, F16]));
        cases.push(plain("f8f6f4", d, a, b));
    }
    cases
}

#[test]
fn products_of_a_block_and_of_a_pair() {
    let mut random = Random(seed());
    for (turn, case) in kinds(&mut random).into_iter().enumerate() {
        for (m, pair) in some(&mut random, turn, &SHAPES) {
            let step = if pair { 32 } else { 16 };
            let n = step * (1 + random.below(256 / step));
            let n = if random.below(2) == 0 { step } else { n };
            for more in one_of(&mut random, &OPS) {
                one(&mut random, &Case { m, n, pair, more, ..case.clone() });
            }
        }
    }
    // The smallest there are.
    for case in [plain("f16", F32, F16, F16), plain("i8", S32, S8, S8), plain("f8f6f4", F32, E4m3, E2m1)] {
        for (m, n) in [(64, 8), (128, 24)] {
            one(&mut random, &Case { m, n, ..case.clone() });
        }
    }
}

#[test]
fn products_of_a_sparse_a() {
    let mut random = Random(seed());
    for (turn, case) in kinds(&mut random).into_iter().enumerate() {
        for (m, pair) in some(&mut random, turn, &SHAPES) {
            let step = if pair { 32 } else { 16 };
            let n = step * random.of(&[1, 1, 3, 128 / step]);
            for more in one_of(&mut random, &OPS) {
                one(&mut random, &Case { m, n, pair, sparse: true, more, ..case.clone() });
            }
        }
    }
}

const B_OPS: [&str; 5] =
    ["", ".collector::b0::fill", ".collector::b1::use", ".collector::b2::lastuse", ".collector::b3::discard"];

#[test]
fn products_that_keep_the_weights() {
    let mut random = Random(seed());
    for (turn, case) in kinds(&mut random).into_iter().enumerate() {
        for m in some(&mut random, turn, &[32, 64, 128]) {
            for sparse in one_of(&mut random, &[false, true]) {
                let n = random.of(if sparse { &[64, 128][..] } else { &[64, 128, 256] });
                for more in one_of(&mut random, &B_OPS) {
                    one(&mut random, &Case { m, n, ws: true, sparse, more, ..case.clone() });
                }
            }
        }
    }
}

#[test]
fn products_with_scales() {
    let mut random = Random(seed());
    let forms = [
        ("mxf8f6f4", 32, false, ".block_scale"),
        ("mxf8f6f4", 32, false, ".block_scale.scale_vec::1X"),
        ("mxf8f6f4", 32, false, ".block_scale.block32.collector::a::fill"),
        ("mxf4", 32, false, ".block_scale"),
        ("mxf4", 32, false, ".block_scale.scale_vec::2X"),
        ("mxf4", 32, false, ".block_scale.block32"),
        ("mxf4nvf4", 32, false, ".block_scale.scale_vec::2X"),
        ("mxf4nvf4", 32, false, ".block_scale.block32"),
        ("mxf4nvf4", 16, false, ".block_scale.scale_vec::4X"),
        ("mxf4nvf4", 16, true, ".block_scale.scale_vec::4X"),
        ("mxf4nvf4", 16, true, ".block_scale.block16.collector::a::use"),
    ];
    let shapes =
        [(128, false, false), (128, false, true), (128, true, false), (256, true, false), (256, true, true)];
    for (turn, (kind, each, ue4m3, more)) in forms.into_iter().enumerate() {
        for (m, pair, sparse) in some(&mut random, turn, &shapes) {
            let types = if kind == "mxf8f6f4" { &SMALL[..] } else { &[E2m1] };
            let (a, b) = (random.of(types), random.of(types));
            let step = if pair { 32 } else { 16 };
            let n = step * random.of(&[1, 3, 256 / step]);
            let case =
                Case { m, n, pair, sparse, scale: Some((each, ue4m3)), more, ..plain(kind, F32, a, b) };
            one(&mut random, &case);
        }
    }
}

#[test]
fn what_the_manual_does_not_have_is_refused() {
    let mma = "tcgen05.mma.cta_group::1";
    for good in [
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;"),
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2, !%p1;"),
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2, {{%r1, %r2, %r3, %r4}}, %p1, 3;"),
        format!("{mma}.kind::f16.collector::a::lastuse [%r1], [%r3], %rd2, %r2, %p1;"),
        "tcgen05.mma.kind::i8.cta_group::2 [%r1], %rd1, %rd2, %r2, {%r1, %r2, %r3, %r4, %r1, %r2, %r3, %r4}, %p1;".to_owned(),
        format!("{mma}.kind::mxf4.block_scale [%r1], [%r3], %rd2, %r2, [%r4], [%r5], %p1;"),
        "tcgen05.mma.ws.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r6], %r2, %p1, %rd3;".to_owned(),
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.b64 [%rd1];".to_owned(),
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%rd1], 3;".to_owned(),
    ] {
        assert_eq!(refusal(&good), None, "{good}");
    }
    for wrong in [
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, 16;"),
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2, %p1, %r3;"),
        format!("{mma}.kind::f8f6f4 [%r1], %rd1, %rd2, %r2, %p1, 3;"),
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2;"),
        format!("{mma}.kind::f16 %r1, %rd1, %rd2, %r2, %p1;"),
        format!("{mma}.kind::f16 [%r1], %r3, %rd2, %r2, %p1;"),
        format!("{mma}.kind::f16 [%r1], %rd1, [%r3], %r2, %p1;"),
        format!("{mma}.kind::f16 [%r1], %rd1, %rd2, %r2, {{%r1, %r2, %r3, %r4, %r1, %r2, %r3, %r4}}, %p1;"),
        format!("{mma}.kind::f16.collector::b0::use [%r1], [%r3], %rd2, %r2, %p1;"),
        format!("{mma}.kind::f16.collector::a::keep [%r1], [%r3], %rd2, %r2, %p1;"),
        format!("{mma}.kind::f64 [%r1], %rd1, %rd2, %r2, %p1;"),
        format!("{mma}.kind::f16.ashift [%r1], %rd1, %rd2, %r2, %p1;"),
        "tcgen05.mma.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;".to_owned(),
        format!("{mma}.kind::mxf8f6f4 [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf8f6f4.block_scale.scale_vec::2X [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf8f6f4.block_scale.block16 [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf4.block_scale.scale_vec::4X [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf4nvf4.block_scale [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf4nvf4.block_scale.scale_vec::1X [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::f16.block_scale [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf4.ashift.block_scale [%r1], [%r3], %rd2, %r2, [%r4], [%r5], %p1;"),
        format!("{mma}.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, %p1;"),
        "tcgen05.mma.sp.cta_group::1.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;".to_owned(),
        "tcgen05.mma.ws.cta_group::1.kind::f16.collector::a::fill [%r1], [%r3], %rd2, %r2, %p1;".to_owned(),
        "tcgen05.mma.ws.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;".to_owned(),
        "tcgen05.mma.cta_group::1.ws.kind::f16 [%r1], %rd1, %rd2, %r2, %p1;".to_owned(),
        "tcgen05.mma.sp.ws.cta_group::1.kind::f16 [%r1], %rd1, %rd2, [%r6], %r2, %p1, %rd3;".to_owned(),
        "tcgen05.mma.ws.cta_group::1.kind::mxf4.block_scale [%r1], %rd1, %rd2, %r2, [%r4], [%r5], %p1;"
            .to_owned(),
        "tcgen05.mma.ws.cta_group::1.kind::f16.ashift [%r1], [%r3], %rd2, %r2, %p1;".to_owned(),
        "tcgen05.mma.cta_group::2.kind::f16 [%r1], %rd1, %rd2, %r2, {%r1, %r2, %r3, %r4}, %p1;".to_owned(),
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.multicast::cluster.b64 [%rd1], %r1;".to_owned(),
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cta.b64 [%r1];".to_owned(),
        "tcgen05.commit.cta_group::1.b64 [%rd1];".to_owned(),
    ] {
        assert!(refusal(&wrong).is_some(), "{wrong}");
    }
}
