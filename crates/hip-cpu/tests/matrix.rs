//! Every matrix instruction up to sm_90: fragments are filled by the formulas of the PTX manual ("Matrix Fragments for
//! mma.…", "Sparse matrix storage"), the product is a plain one of small whole numbers, so no order of sums matters.

use std::fmt::Write;

use hip_cpu::harness::{self, Arg, How};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum T {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    F32,
    F64,
    S4,
    U4,
    S8,
    U8,
    S32,
    B1,
}
use T::*;

impl T {
    fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    fn bits(self) -> usize {
        match self {
            B1 => 1,
            S4 | U4 => 4,
            E4m3 | E5m2 | S8 | U8 => 8,
            F16 | Bf16 => 16,
            Tf32 | F32 | S32 => 32,
            F64 => 64,
        }
    }

    /// Bytes of its register.
    fn bytes(self) -> usize {
        if self == F64 { 8 } else { 4 }
    }

    fn per_register(self) -> usize {
        self.bytes() * 8 / self.bits()
    }

    /// Register prefix in the texts here.
    fn register(self) -> &'static str {
        match self {
            F32 => "%f",
            F64 => "%d",
            _ => "%r",
        }
    }

    /// Bits of a whole number that the type has.
    fn encode(self, value: i64) -> u64 {
        let single = |value: i64| u64::from((value as f32).to_bits());
        // Sign, exponent with its own bias, the mantissa's upper bits.
        let float = |exponent_bits: u32, mantissa_bits: u32| {
            let bits = single(value);
            let sign = bits >> 31 << (exponent_bits + mantissa_bits);
            if value == 0 {
                return sign;
            }
            let exponent = (bits >> 23 & 0xff) + (1 << (exponent_bits - 1)) - 1 - 127;
            let mantissa = (bits & 0x7f_ffff) >> (23 - mantissa_bits);
            assert_eq!(mantissa << (23 - mantissa_bits), bits & 0x7f_ffff, "{value} in {self:?}");
            sign | exponent << mantissa_bits | mantissa
        };
        match self {
            F16 => float(5, 10),
            Bf16 => float(8, 7),
            E4m3 => float(4, 3),
            E5m2 => float(5, 2),
            Tf32 | F32 => single(value),
            F64 => (value as f64).to_bits(),
            S4 | U4 => value as u64 & 0xf,
            S8 | U8 => value as u64 & 0xff,
            S32 => u64::from(value as u32),
            B1 => value as u64 & 1,
        }
    }

    /// Numbers to fill matrices with.
    fn some(self, seed: &mut u64) -> i64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let random = (*seed >> 33) as i64;
        match self {
            B1 => random & 1,
            U4 => random & 15,
            S4 => (random & 15) - 8,
            U8 => random & 255,
            S8 => (random & 255) - 128,
            // Near the ends too, where sums wrap or saturate.
            S32 => match random % 3 {
                0 => i64::from(i32::MAX) - (random >> 2 & 0xffff),
                1 => i64::from(i32::MIN) + (random >> 2 & 0xffff),
                _ => random - (1 << 30),
            },
            _ => random % 9 - 4,
        }
    }
}

/// Row and column of element `i` of a lane, as the manual writes it.
type Place = fn(usize, usize) -> (usize, usize);

/// `mma.sync` or `mma.sp.sync` with its fragments.
#[derive(Clone)]
struct Case {
    /// What stands between `mma` and the types.
    head: String,
    tail: String,
    size: [usize; 3],
    types: [T; 4],
    a: Place,
    b: Place,
    c: Place,
    saturates: bool,
    selector: Option<usize>,
    /// `mma.m8n8k4` of `.f16` has four, one below the other here.
    products: usize,
}

impl Case {
    /// C's places, or D's where those differ.
    fn c_of(&self, ty: T) -> Place {
        match (self.products, ty) {
            (4, F16) => quad_half,
            (4, _) => quad_single,
            _ => self.c,
        }
    }
}

fn group(lane: usize) -> usize {
    lane >> 2
}

fn four(lane: usize) -> usize {
    lane % 4
}

/// `groupID` where it holds, else 8 below.
fn row(lane: usize, upper: bool) -> usize {
    if upper { group(lane) } else { group(lane) + 8 }
}

fn c8(lane: usize, i: usize) -> (usize, usize) {
    (group(lane), four(lane) * 2 + (i & 1))
}

fn c16(lane: usize, i: usize) -> (usize, usize) {
    (row(lane, i < 2), four(lane) * 2 + (i & 1))
}

/// "Matrix Fragments for mma.mMnNkK": A and B.
fn dense_places(size: [usize; 3], a: T) -> (Place, Place) {
    match (size, a.bits()) {
        ([8, 8, 4], 64) => (|l, _| (group(l), four(l)), |l, _| (four(l), group(l))),
        ([8, 8, 16], 8) => (|l, i| (group(l), four(l) * 4 + i), |l, i| (four(l) * 4 + i, group(l))),
        ([8, 8, 32], 4) => (|l, i| (group(l), four(l) * 8 + i), |l, i| (four(l) * 8 + i, group(l))),
        ([8, 8, 128], 1) => (|l, i| (group(l), four(l) * 32 + i), |l, i| (four(l) * 32 + i, group(l))),
        ([16, 8, 4], _) => (|l, i| (row(l, i == 0), four(l)), |l, _| (four(l), group(l))),
        ([16, 8, 8], 16) => {
            (|l, i| (row(l, i < 2), four(l) * 2 + (i & 1)), |l, i| (four(l) * 2 + i, group(l)))
        }
        ([16, 8, 8], _) => (
            |l, i| (row(l, i == 0 || i == 2), if i < 2 { four(l) } else { four(l) + 4 }),
            |l, i| (if i == 0 { four(l) } else { four(l) + 4 }, group(l)),
        ),
        ([16, 8, 16], 16) => (
            |l, i| {
                let column = four(l) * 2 + (i & 1);
                (row(l, i < 2 || (4..6).contains(&i)), if i < 4 { column } else { column + 8 })
            },
            |l, i| (four(l) * 2 + (i & 1) + if i < 2 { 0 } else { 8 }, group(l)),
        ),
        ([16, 8, 16], 64) => {
            (|l, i| (row(l, i % 2 == 0), i / 2 * 4 + four(l)), |l, i| (four(l) + i * 4, group(l)))
        }
        ([16, 8, 16], 8) => {
            (|l, i| (row(l, i < 4), four(l) * 4 + (i & 3)), |l, i| (four(l) * 4 + i, group(l)))
        }
        ([16, 8, 32], 4) => {
            (|l, i| (row(l, i < 8), four(l) * 8 + (i & 7)), |l, i| (four(l) * 8 + i, group(l)))
        }
        ([16, 8, 32], 8) => (
            |l, i| {
                let column = four(l) * 4 + (i & 3);
                (row(l, i < 4 || (8..12).contains(&i)), if i < 8 { column } else { column + 16 })
            },
            |l, i| (four(l) * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, group(l)),
        ),
        ([16, 8, 64], 4) => (
            |l, i| {
                let column = four(l) * 8 + (i & 7);
                (row(l, i < 8 || (16..24).contains(&i)), if i < 16 { column } else { column + 32 })
            },
            |l, i| (four(l) * 8 + (i & 7) + if i < 8 { 0 } else { 32 }, group(l)),
        ),
        ([16, 8, 128], 1) => {
            (|l, i| (row(l, i < 32), four(l) * 32 + (i & 31)), |l, i| (four(l) * 32 + i, group(l)))
        }
        ([16, 8, 256], 1) => (
            |l, i| {
                let column = four(l) * 32 + (i & 31);
                (row(l, i < 32 || (64..96).contains(&i)), if i < 64 { column } else { column + 128 })
            },
            |l, i| (four(l) * 32 + (i & 31) + if i < 32 { 0 } else { 128 }, group(l)),
        ),
        other => panic!("{other:?}"),
    }
}

fn dense(size: [usize; 3], types: [T; 4]) -> Case {
    let [m, n, k] = size;
    let (a, b) = dense_places(size, types[1]);
    let head = format!("sync.aligned.m{m}n{n}k{k}.row.col");
    let c = if m == 8 { c8 } else { c16 };
    Case { head, tail: String::new(), size, types, a, b, c, saturates: false, selector: None, products: 1 }
}

/// Matrix of elements' bits.
type Bits = Vec<Vec<u64>>;

/// Elements of a fragment per lane, `products` of them.
fn count(ty: T, size: (usize, usize), products: usize) -> usize {
    assert_eq!(size.0 * size.1 * products % (32 * ty.per_register()), 0);
    size.0 * size.1 * products / 32
}

/// A fragment's registers: `[register][lane]`.
fn fragment(ty: T, matrix: &Bits, products: usize, place: Place) -> Vec<u8> {
    let count = count(ty, (matrix.len() / products, matrix[0].len()), products);
    let mut words = vec![0u64; count / ty.per_register() * 32];
    for lane in 0..32 {
        for i in 0..count {
            let (row, column) = place(lane, i);
            let word = &mut words[i / ty.per_register() * 32 + lane];
            *word |= matrix[row][column] << (i % ty.per_register() * ty.bits());
        }
    }
    words.iter().flat_map(|word| word.to_le_bytes()[..ty.bytes()].to_vec()).collect()
}

/// The matrix that the registers hold.
fn gathered(ty: T, size: (usize, usize), products: usize, place: Place, bytes: &[u8]) -> Bits {
    let words: Vec<u64> = bytes
        .chunks(ty.bytes())
        .map(|word| word.iter().rev().fold(0, |all, &byte| all << 8 | u64::from(byte)))
        .collect();
    let mask = u64::MAX >> (64 - ty.bits());
    let mut matrix = vec![vec![u64::MAX; size.1]; size.0 * products];
    for lane in 0..32 {
        for i in 0..count(ty, size, products) {
            let (row, column) = place(lane, i);
            let word = words[i / ty.per_register() * 32 + lane];
            matrix[row][column] = word >> (i % ty.per_register() * ty.bits()) & mask;
        }
    }
    matrix
}

/// The kernel that runs one instruction on registers from memory; sizes are in registers.
fn text(instruction: &str, inputs: &[(T, usize)], output: (T, usize), tail: &str) -> String {
    let mut text = String::from(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 from, .param .u64 to)\n{\n\
         .reg .b32 %r<80>, %l;\n.reg .f32 %f<80>;\n.reg .f64 %d<80>;\n.reg .b64 %from, %to, %o;\n\
         ld.param.u64 %from, [from];\nld.param.u64 %to, [to];\nmov.u32 %l, %laneid;\n",
    );
    let bytes = output.0.bytes();
    writeln!(text, "mul.wide.u32 %o, %l, {bytes};\nadd.u64 %from, %from, %o;\nadd.u64 %to, %to, %o;")
        .unwrap();
    let mut number = 0;
    let mut lists = vec![];
    for &(ty, count) in inputs {
        let names: Vec<String> = (number..number + count).map(|n| format!("{}{n}", ty.register())).collect();
        for name in &names {
            let kind = if ty == F32 {
                "f32"
            } else if ty == F64 {
                "f64"
            } else {
                "b32"
            };
            writeln!(text, "ld.global.{kind} {name}, [%from+{}];", number * 32 * bytes).unwrap();
            number += 1;
        }
        lists.push(format!("{{{}}}", names.join(", ")));
    }
    let names: Vec<String> = (0..output.1).map(|n| format!("{}{}", output.0.register(), 60 + n)).collect();
    let operands = lists.join(", ");
    writeln!(text, "{instruction} {{{}}}, {operands}{tail};", names.join(", ")).unwrap();
    for (n, name) in names.iter().enumerate() {
        let kind = if output.0 == F32 {
            "f32"
        } else if output.0 == F64 {
            "f64"
        } else {
            "b32"
        };
        writeln!(text, "st.global.{kind} [%to+{}], {name};", n * 32 * bytes).unwrap();
    }
    text + "ret;\n}\n"
}

fn settings() -> Vec<How> {
    vec![How::new(1, 32).lane(), How::new(1, 32).simd(32)]
}

fn run(text: &str, how: &How, input: &[u8], out_bytes: usize) -> Vec<u8> {
    let program = harness::load(text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let mut input = input.to_vec();
    let mut output = vec![0xaa; out_bytes];
    let mut args = [Arg::Buffer(&mut input), Arg::Buffer(&mut output)];
    harness::run(&program, "kernel", how, &mut args).unwrap_or_else(|error| panic!("{error}\n{text}"));
    output
}

/// Which columns of the whole A a row's elements stand in.
struct Sparse {
    /// `[row][element]`
    columns: Vec<Vec<usize>>,
    /// Per lane.
    metadata: [u32; 32],
}

/// Random places, and the metadata as the figures of "Sparse matrix storage" have it.
fn sparse(case: &Case, selector: usize, seed: &mut u64) -> Sparse {
    let [m, _, k] = case.size;
    let a = case.types[1];
    let mut columns = vec![vec![]; m];
    // Per row: bits of metadata, first column lowest.
    let mut rows = vec![0u64; m];
    for row in 0..m {
        let mut at = 0;
        let pairs = [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]];
        for chunk in 0.. {
            // Columns of a chunk, and elements that stand together.
            let (width, size) = match a {
                Tf32 => (2, 1),
                S4 | U4 => (8, 2),
                _ => (4, 1),
            };
            if chunk * width == k {
                break;
            }
            let random = U8.some(seed) as usize;
            if a == Tf32 {
                // One of two: 0b0100 is the first, 0b1110 the second.
                let second = random % 2;
                columns[row].push(chunk * 2 + second);
                rows[row] |= [0b0100, 0b1110][second] << at;
            } else {
                let pair = pairs[random % 6];
                for index in pair {
                    columns[row].extend((0..size).map(|nth| chunk * width + index * size + nth));
                }
                rows[row] |= ((pair[0] | pair[1] << 2) as u64) << at;
            }
            at += 4;
        }
    }
    let mut metadata = [0xffff_ffff; 32];
    for g in 0..8 {
        let (upper, lower) = (rows[g], rows[g + 8]);
        let lane = |thread: usize| 4 * g + thread;
        match (a.bits(), k) {
            // One thread has the rows g (low half) and g + 8 (high half).
            (16, 16) | (32, 8) => metadata[lane(selector)] = (upper | lower << 16) as u32,
            // Two threads: the first has the first 16 bits of both rows, the second the others.
            (16, 32) | (32, 16) => {
                for half in 0..2 {
                    let part = |row: u64| row >> (16 * half) & 0xffff;
                    metadata[lane(2 * selector + half)] = (part(upper) | part(lower) << 16) as u32;
                }
            }
            // Two threads: one row each.
            (8, 32) | (4, 64) => {
                metadata[lane(2 * selector)] = upper as u32;
                metadata[lane(2 * selector + 1)] = lower as u32;
            }
            // Four threads: rows g and g + 8 of the first half of k, then of the second.
            (8, 64) | (4, 128) => {
                for half in 0..2 {
                    metadata[lane(2 * half)] = (upper >> (32 * half)) as u32;
                    metadata[lane(2 * half + 1)] = (lower >> (32 * half)) as u32;
                }
            }
            other => panic!("{other:?}"),
        }
    }
    Sparse { columns, metadata }
}

/// Runs the instruction in every setting on these elements' bits; the result's.
fn product(case: &Case, [a, b, c]: [&Bits; 3], metadata: Option<&[u32; 32]>) -> Bits {
    let [m, n, k] = case.size;
    let [dt, at, bt, ct] = case.types;
    let held = if metadata.is_some() { k / 2 } else { k };
    let mut input = fragment(at, a, case.products, case.a);
    input.extend(fragment(bt, b, case.products, case.b));
    input.extend(fragment(ct, c, case.products, case.c));
    let registers = |ty: T, rows: usize, columns: usize| {
        (ty, count(ty, (rows, columns), case.products) / ty.per_register())
    };
    let types: Vec<String> = case.types.iter().map(|ty| ty.name()).collect();
    let kind = if metadata.is_some() { "mma.sp::ordered_metadata" } else { "mma" };
    let saturation = if case.saturates { ".satfinite" } else { "" };
    let instruction = format!("{kind}.{}{saturation}.{}{}", case.head, types.join("."), case.tail);
    let mut inputs = vec![registers(at, m, held), registers(bt, k, n), registers(ct, m, n)];
    let result = registers(dt, m, n);
    let out_bytes = result.1 * dt.bytes() * 32;
    let mut tail = String::new();
    if let (Some(metadata), Some(selector)) = (metadata, case.selector) {
        input.extend(metadata.iter().flat_map(|word| word.to_le_bytes()));
        inputs.push((S32, 1));
        tail = format!(", {selector}");
    }
    let mut text = text(&instruction, &inputs, result, &tail);
    if metadata.is_some() {
        // The metadata is a register and no list.
        let number: usize = inputs.iter().take(3).map(|(_, count)| count).sum();
        text = text.replace(&format!("{{%r{number}}}, "), &format!("%r{number}, "));
    }
    let results: Vec<Bits> = settings()
        .iter()
        .map(|how| gathered(dt, (m, n), case.products, case.c_of(dt), &run(&text, how, &input, out_bytes)))
        .collect();
    for (how, result) in settings().iter().zip(&results) {
        assert!(*result == results[0], "{instruction} in {:?}", how.setting);
    }
    results.into_iter().next().unwrap()
}

fn check(case: &Case, seed: u64) {
    let mut seed = seed;
    let [m, n, k] = case.size;
    let [dt, at, bt, ct] = case.types;
    let structure = case.selector.map(|selector| sparse(case, selector, &mut seed));
    let held = if structure.is_some() { k / 2 } else { k };
    let mut matrix = |ty: T, rows: usize, columns: usize| -> Vec<Vec<i64>> {
        (0..rows * case.products).map(|_| (0..columns).map(|_| ty.some(&mut seed)).collect()).collect()
    };
    let (a, b, c) = (matrix(at, m, held), matrix(bt, k, n), matrix(ct, m, n));
    let expected = |row: usize, column: usize| -> i64 {
        let products = (0..held).map(|j| {
            let from = structure.as_ref().map_or(j, |it| it.columns[row][j]);
            let (x, y) = (a[row][j], b[row / m * k + from][column]);
            match (at, case.tail.as_str()) {
                (B1, ".xor.popc") => x ^ y,
                (B1, ".and.popc") => x & y,
                _ => x * y,
            }
        });
        let sum = c[row][column] + products.sum::<i64>();
        match (dt, case.saturates) {
            (S32, true) => sum.clamp(i32::MIN.into(), i32::MAX.into()),
            (S32, false) => i64::from(sum as i32),
            _ => sum,
        }
    };
    let bits = |ty: T, matrix: &[Vec<i64>]| -> Bits {
        matrix.iter().map(|row| row.iter().map(|&value| ty.encode(value)).collect()).collect()
    };
    let metadata = structure.as_ref().map(|it| &it.metadata);
    let got = product(case, [&bits(at, &a), &bits(bt, &b), &bits(ct, &c)], metadata);
    let all: Vec<Vec<i64>> =
        (0..m * case.products).map(|row| (0..n).map(|column| expected(row, column)).collect()).collect();
    let expected = bits(dt, &all);
    assert!(got == expected, "{} {:?}\n{got:x?}\n{expected:x?}", case.head, case.types);
}

#[test]
fn float_products() {
    for size in [[16, 8, 8], [16, 8, 16]] {
        for c in [F16, F32] {
            check(&dense(size, [c, F16, F16, c]), 1);
        }
        check(&dense(size, [F32, Bf16, Bf16, F32]), 2);
    }
    for size in [[16, 8, 4], [16, 8, 8]] {
        check(&dense(size, [F32, Tf32, Tf32, F32]), 3);
    }
    for size in [[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]] {
        check(&dense(size, [F64; 4]), 4);
    }
}

#[test]
fn small_float_products() {
    for size in [[16, 8, 16], [16, 8, 32]] {
        for (a, b) in [(E4m3, E4m3), (E4m3, E5m2), (E5m2, E4m3), (E5m2, E5m2)] {
            check(&dense(size, [F32, a, b, F32]), 5);
            check(&dense(size, [F16, a, b, F16]), 5);
        }
    }
}

#[test]
fn integer_products() {
    for (types, sizes) in [
        ([U8, S8], [[8, 8, 16], [16, 8, 16], [16, 8, 32]]),
        ([U4, S4], [[8, 8, 32], [16, 8, 32], [16, 8, 64]]),
    ] {
        for size in sizes {
            for a in types {
                for b in types {
                    let saturates = a == b;
                    check(&Case { saturates, ..dense(size, [S32, a, b, S32]) }, 6);
                }
            }
        }
    }
}

#[test]
fn bit_products() {
    for size in [[8, 8, 128], [16, 8, 128], [16, 8, 256]] {
        for tail in [".xor.popc", ".and.popc"] {
            check(&Case { tail: tail.to_owned(), ..dense(size, [S32, B1, B1, S32]) }, 7);
        }
    }
}

/// "Matrix Fragments for sparse mma.mMnNkK": A's elements by their number in the row, four or so to a lane; B.
fn sparse_places(k: usize, a: T) -> (Place, Place) {
    match (k, a.bits()) {
        (16, 16) => (
            |l, i| (row(l, i < 2), four(l) * 2 + (i & 1)),
            |l, i| (four(l) * 2 + (i & 1) + if i < 2 { 0 } else { 8 }, group(l)),
        ),
        (32, 16) => (
            |l, i| {
                let column = four(l) * 2 + (i & 1);
                (row(l, i < 2 || (4..6).contains(&i)), if i < 4 { column } else { column + 8 })
            },
            |l, i| (four(l) * 2 + (i & 1) + i / 2 * 8, group(l)),
        ),
        (8, 32) => {
            (|l, i| (row(l, i == 0), four(l)), |l, i| (if i == 0 { four(l) } else { four(l) + 4 }, group(l)))
        }
        (16, 32) => (
            |l, i| (row(l, i == 0 || i == 2), if i < 2 { four(l) } else { four(l) + 4 }),
            |l, i| (four(l) + 4 * i, group(l)),
        ),
        (32, 8) => (
            |l, i| (row(l, i < 4), four(l) * 4 + (i & 3)),
            |l, i| (four(l) * 4 + (i & 3) + if i < 4 { 0 } else { 16 }, group(l)),
        ),
        (64, 8) => (
            |l, i| {
                let column = four(l) * 4 + (i & 3);
                (row(l, i < 4 || (8..12).contains(&i)), if i < 8 { column } else { column + 16 })
            },
            |l, i| (four(l) * 4 + (i & 3) + i / 4 * 16, group(l)),
        ),
        (64, 4) => (
            |l, i| (row(l, i < 8), four(l) * 8 + (i & 7)),
            |l, i| (four(l) * 8 + (i & 7) + if i < 8 { 0 } else { 32 }, group(l)),
        ),
        (128, 4) => (
            |l, i| {
                let column = four(l) * 8 + (i & 7);
                (row(l, i < 8 || (16..24).contains(&i)), if i < 16 { column } else { column + 32 })
            },
            |l, i| (four(l) * 8 + (i & 7) + i / 8 * 32, group(l)),
        ),
        other => panic!("{other:?}"),
    }
}

fn sparse_case(k: usize, types: [T; 4], selector: usize) -> Case {
    let (a, b) = sparse_places(k, types[1]);
    Case { a, b, selector: Some(selector), ..dense_shape([16, 8, k], types) }
}

/// As [`dense`], for shapes that only sparse products have.
fn dense_shape(size: [usize; 3], types: [T; 4]) -> Case {
    let [m, n, k] = size;
    let head = format!("sync.aligned.m{m}n{n}k{k}.row.col");
    Case {
        head,
        tail: String::new(),
        size,
        types,
        a: c8,
        b: c8,
        c: c16,
        saturates: false,
        selector: None,
        products: 1,
    }
}

#[test]
fn sparse_products() {
    for selector in 0..4 {
        check(&sparse_case(16, [F32, F16, F16, F32], selector), 10 + selector as u64);
        check(&sparse_case(8, [F32, Tf32, Tf32, F32], selector), 20 + selector as u64);
    }
    for selector in 0..2 {
        check(&sparse_case(32, [F16, F16, F16, F16], selector), 30);
        check(&sparse_case(32, [F32, Bf16, Bf16, F32], selector), 31);
        check(&sparse_case(16, [F32, Tf32, Tf32, F32], selector), 32);
        check(&sparse_case(32, [S32, S8, U8, S32], selector), 33);
        check(&sparse_case(64, [S32, S4, U4, S32], selector), 34);
    }
    check(&sparse_case(16, [F32, Bf16, Bf16, F32], 3), 35);
    check(&sparse_case(64, [S32, U8, S8, S32], 0), 36);
    check(&Case { saturates: true, ..sparse_case(64, [S32, S8, S8, S32], 0) }, 37);
    check(&sparse_case(128, [S32, U4, S4, S32], 0), 38);
    check(&sparse_case(64, [F32, E4m3, E5m2, F32], 0), 39);
    check(&sparse_case(64, [F32, E5m2, E5m2, F32], 0), 40);
}

/// "Matrix Fragments for mma.m8n8k4 with .f16": the product's number times 8 is added to the row (B: times 4).
fn quad(lane: usize, row: usize, column: usize, rows: usize) -> (usize, usize) {
    (lane % 16 / 4 * rows + row, column)
}

fn upper(lane: usize) -> usize {
    if lane < 16 { 0 } else { 4 }
}

fn quad_half(l: usize, i: usize) -> (usize, usize) {
    quad(l, l % 4 + upper(l), i, 8)
}

fn quad_single(l: usize, i: usize) -> (usize, usize) {
    quad(l, (l & 1) + (i & 2) + upper(l), (i & 4) + (l & 2) + (i & 1), 8)
}

#[test]
fn products_of_quad_pairs() {
    let a: [(&str, Place); 2] = [
        ("row", |l, i| quad(l, l % 4 + upper(l), i, 8)),
        ("col", |l, i| quad(l, i % 4 + upper(l), l % 4, 8)),
    ];
    let b: [(&str, Place); 2] =
        [("row", |l, i| quad(l, l % 4, i + upper(l), 4)), ("col", |l, i| quad(l, i, l % 4 + upper(l), 4))];
    for (a_layout, a) in a {
        for (b_layout, b) in b {
            for (d, c) in [(F16, F16), (F32, F32), (F32, F16)] {
                let types = [d, F16, F16, c];
                let head = format!("sync.aligned.m8n8k4.{a_layout}.{b_layout}");
                let case = Case { head, a, b, products: 4, ..dense_shape([8, 8, 4], types) };
                check(&Case { c: case.c_of(c), ..case }, 8);
            }
        }
    }
}

/// A matrix of one value but for one element.
fn filled(rows: usize, columns: usize, value: u64, (row, column): (usize, usize), special: u64) -> Bits {
    let mut matrix = vec![vec![value; columns]; rows];
    matrix[row][column] = special;
    matrix
}

#[test]
fn nan_and_infinity_reach_their_row() {
    let (one, infinity, nan) = (0x3c00, 0x7c00, 0xfe01);
    for (c, zero, inf, canonical) in [(F32, 0, 0x7f80_0000, 0x7fff_ffff), (F16, 0, 0x7c00, 0x7fff)] {
        let case = dense([16, 8, 16], [c, F16, F16, c]);
        let b = vec![vec![one; 8]; 16];
        let zeros = vec![vec![zero; 8]; 16];
        let mut expected = zeros.clone();
        let d = product(&case, [&filled(16, 16, 0, (3, 5), nan), &b, &zeros], None);
        expected[3] = vec![canonical; 8];
        assert_eq!(d, expected);
        let d = product(&case, [&filled(16, 16, 0, (3, 5), infinity), &b, &zeros], None);
        expected[3] = vec![inf; 8];
        assert_eq!(d, expected);
        // Infinity times zero.
        let d = product(&case, [&vec![vec![0; 16]; 16], &filled(16, 8, 0, (2, 7), infinity), &zeros], None);
        let expected: Bits =
            (0..16).map(|_| (0..8).map(|n| if n == 7 { canonical } else { zero }).collect()).collect();
        assert_eq!(d, expected);
    }
}

#[test]
fn what_a_sparse_matrix_does_not_have_is_not_multiplied() {
    // A has columns 0 and 1 of every four; B's infinities are in rows 2 and 3.
    let case = sparse_case(16, [F32, F16, F16, F32], 0);
    let a = vec![vec![0x3c00; 8]; 16];
    let b: Bits = (0..16).map(|k| vec![if k % 4 < 2 { 0x3c00 } else { 0x7c00 }; 8]).collect();
    let d = product(&case, [&a, &b, &vec![vec![0; 8]; 16]], Some(&[0x4444_4444; 32]));
    assert_eq!(d, vec![vec![u64::from(8f32.to_bits()); 8]; 16]);
}

#[test]
fn sums_are_rounded_where_the_documentation_says() {
    let single = |value: f32| u64::from(value.to_bits());
    let all = |value: u64, rows: usize, columns: usize| vec![vec![value; columns]; rows];
    // f32 sums one product after the other: 2^24 + 1 is 2^24 each time.
    let case = dense([16, 8, 8], [F32, F16, F16, F32]);
    let ones = (all(0x3c00, 16, 8), all(0x3c00, 8, 8));
    let d = product(&case, [&ones.0, &ones.1, &all(single(16_777_216.0), 16, 8)], None);
    assert_eq!(d, all(single(16_777_216.0), 16, 8));
    // f16 results are rounded once: 2048 + 8 × 1, though 2048 + 1 is 2048 in f16.
    let case = dense([16, 8, 8], [F16, F16, F16, F16]);
    let d = product(&case, [&ones.0, &ones.1, &all(0x6800, 16, 8)], None);
    assert_eq!(d, all(0x6804, 16, 8));
    // Subnormal halves count, and so do subnormal sums.
    let case = dense([16, 8, 8], [F32, F16, F16, F32]);
    let d = product(&case, [&all(1, 16, 8), &all(0x3c00, 8, 8), &all(1, 16, 8)], None);
    assert_eq!(d, all(single(8.0 * 2f32.powi(-24)), 16, 8));
    let case = dense([16, 8, 8], [F32, Bf16, Bf16, F32]);
    let d = product(&case, [&all(1, 16, 8), &all(0x3f80, 8, 8), &all(1, 16, 8)], None);
    assert_eq!(d, all(8 * 0x1_0000 + 1, 16, 8));
    // A tf32 has 10 bits of mantissa.
    let case = dense([16, 8, 4], [F32, Tf32, Tf32, F32]);
    let d = product(&case, [&all(0x3f80_1fff, 16, 4), &all(0x3f80_0000, 4, 8), &all(0, 16, 8)], None);
    assert_eq!(d, all(single(4.0), 16, 8));
    // e4m3 has a NaN and no infinity, e5m2 both.
    for (ty, bits, result) in
        [(E4m3, 0x7f, 0x7fff_ffff), (E4m3, 0x7e, single(448.0)), (E5m2, 0x7c, 0x7f80_0000)]
    {
        let case = dense([16, 8, 16], [F32, ty, ty, F32]);
        let one = ty.encode(1);
        let d = product(&case, [&filled(16, 16, 0, (9, 2), bits), &all(one, 16, 8), &all(0, 16, 8)], None);
        let mut expected = all(0, 16, 8);
        expected[9] = vec![result; 8];
        assert_eq!(d, expected, "{ty:?} {bits:x}");
    }
}

#[test]
fn doubles_round_as_written() {
    let tiny = 2f64.powi(-60);
    let (one, up, down) = (1f64.to_bits(), 1f64.to_bits() + 1, 1f64.to_bits() - 1);
    for (word, more, less) in
        [("", one, one), (".rn", one, one), (".rz", one, down), (".rm", one, down), (".rp", up, one)]
    {
        for (sign, expected) in [(1.0, more), (-1.0, less)] {
            let mut case = dense([8, 8, 4], [F64; 4]);
            case.head += word;
            let a = filled(8, 4, 0, (4, 1), (sign * tiny).to_bits());
            let d = product(&case, [&a, &vec![vec![one; 8]; 4], &vec![vec![one; 8]; 8]], None);
            let mut all = vec![vec![one; 8]; 8];
            all[4] = vec![expected; 8];
            assert_eq!(d, all, "{word} {sign}");
        }
    }
}
