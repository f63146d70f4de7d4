//! Every matrix instruction up to sm_90: fragments are filled by the formulas of the PTX manual ("Matrix Fragments for
//! mma.…", "Sparse matrix storage"), the product is a plain one of small whole numbers, so no order of sums matters.

mod elements;

use std::fmt::Write;

use elements::T::{self, *};
use hip_cpu::harness::{self, Arg, Draw, How};

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
    /// In `warp` and `simd` too; `lane` always.
    vectors: bool,
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
    Case {
        head,
        tail: String::new(),
        size,
        types,
        a,
        b,
        c,
        saturates: false,
        selector: None,
        products: 1,
        vectors: true,
    }
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
    vec![How::new(1, 32).lane(), How::new(1, 32).warp(), How::new(1, 32).simd(32)]
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
    let saturation = if case.saturates { ".satfinite" } else { "" };
    let rest = format!("{}{saturation}.{}{}", case.head, types.join("."), case.tail);
    let mut inputs = vec![registers(at, m, held), registers(bt, k, n), registers(ct, m, n)];
    let result = registers(dt, m, n);
    let out_bytes = result.1 * dt.bytes() * 32;
    let mut tail = String::new();
    if let (Some(metadata), Some(selector)) = (metadata, case.selector) {
        input.extend(metadata.iter().flat_map(|word| word.to_le_bytes()));
        inputs.push((S32, 1));
        tail = format!(", {selector}");
    }
    let text = |kind: &str| {
        let text = text(&format!("{kind}.{rest}"), &inputs, result, &tail);
        if metadata.is_none() {
            return text;
        }
        // The metadata is a register and no list.
        let number: usize = inputs.iter().take(3).map(|(_, count)| count).sum();
        text.replace(&format!("{{%r{number}}}, "), &format!("%r{number}, "))
    };
    let mut runs: Vec<(String, How)> = vec![];
    let kinds: &[&str] = if metadata.is_some() { &["mma.sp::ordered_metadata", "mma.sp"] } else { &["mma"] };
    for (nth, kind) in kinds.iter().enumerate() {
        let count = if case.vectors && nth == 0 { 3 } else { 1 };
        let hows = Draw::now().ways((kind, &rest), settings().into_iter().take(count));
        runs.extend(hows.into_iter().map(|how| (text(kind), how)));
    }
    let results: Vec<Bits> = runs
        .iter()
        .map(|(text, how)| {
            gathered(dt, (m, n), case.products, case.c_of(dt), &run(text, how, &input, out_bytes))
        })
        .collect();
    for ((_, how), result) in runs.iter().zip(&results) {
        assert!(*result == results[0], "{rest} in {:?}", how.setting);
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

/// The beginning of a kernel with the fragments that [`Factors`] lays out in `%r0` to `%r11`, and so many registers for sums.
fn factors_in_registers(n_sums: usize) -> String {
    let mut kernel = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 from, .param .u64 to)\n{{\n\
         .reg .b32 %r<12>, %l;\n.reg .f32 %f<{n_sums}>;\n.reg .b64 %from, %to, %o;\n\
         ld.param.u64 %from, [from];\nld.param.u64 %to, [to];\nmov.u32 %l, %laneid;\n\
         mul.wide.u32 %o, %l, 4;\nadd.u64 %from, %from, %o;\nadd.u64 %to, %to, %o;\n",
    );
    for nth in 0..12 {
        writeln!(kernel, "ld.global.b32 %r{nth}, [%from+{}];", 128 * nth).unwrap();
    }
    kernel
}

/// Two matrices A and two B, and their fragments as [`factors_in_registers`] reads them.
struct Factors {
    a: [Vec<Vec<i64>>; 2],
    b: [Vec<Vec<i64>>; 2],
    case: Case,
    input: Vec<u8>,
}

/// The registers of each A and of each B.
const OF_A: [&str; 2] = ["{%r0, %r1, %r2, %r3}", "{%r4, %r5, %r6, %r7}"];
const OF_B: [&str; 2] = ["{%r8, %r9}", "{%r10, %r11}"];

impl Factors {
    fn some(mut seed: u64) -> Factors {
        let mut matrix = |rows: usize, columns: usize| -> Vec<Vec<i64>> {
            (0..rows).map(|_| (0..columns).map(|_| F16.some(&mut seed)).collect()).collect()
        };
        let a = [matrix(16, 16), matrix(16, 16)];
        let b = [matrix(16, 8), matrix(16, 8)];
        let case = dense([16, 8, 16], [F32, F16, F16, F32]);
        let mut input = vec![];
        for (factor, place) in [(&a[0], case.a), (&a[1], case.a), (&b[0], case.b), (&b[1], case.b)] {
            let bits = factor.iter().map(|row| row.iter().map(|&it| F16.encode(it)).collect()).collect();
            input.extend(fragment(F16, &bits, 1, place));
        }
        Factors { a, b, case, input }
    }

    /// An element of A number `x` times B number `y`.
    fn product(&self, x: usize, y: usize, row: usize, column: usize) -> i64 {
        (0..16).map(|k| self.a[x][row][k] * self.b[y][k][column]).sum()
    }
}

/// Products that follow each other with a factor in common, some of which need the sum of one before.
#[test]
fn products_that_share_a_factor() {
    let factors = Factors::some(11);
    // Which A and B, and the sum before.
    let steps: [(usize, usize, Option<usize>); 7] = [
        (0, 0, None),
        (0, 1, None),
        (1, 1, Some(0)),
        (1, 0, Some(1)),
        (0, 0, Some(3)),
        (0, 1, Some(4)),
        (1, 1, Some(5)),
    ];
    let sum = |nth: usize| {
        let names: Vec<String> = (0..4).map(|i| format!("%f{}", 4 * nth + i)).collect();
        format!("{{{}}}", names.join(", "))
    };
    let mut body = String::new();
    for (nth, &(x, y, before)) in steps.iter().enumerate() {
        let c = before.map_or("{0f00000000, 0f00000000, 0f00000000, 0f00000000}".to_owned(), sum);
        let (d, x, y) = (sum(nth), OF_A[x], OF_B[y]);
        writeln!(body, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {x}, {y}, {c};").unwrap();
    }
    for (nth, name) in (8..12).chain(24..28).enumerate() {
        writeln!(body, "st.global.f32 [%to+{}], %f{name};", 128 * nth).unwrap();
    }
    let kernel = factors_in_registers(28);
    let kernel = kernel + &body + "ret;\n}\n";
    let product = |x, y, row, column| factors.product(x, y, row, column);
    let cells = |sum: &dyn Fn(usize, usize) -> i64| -> Bits {
        (0..16).map(|row| (0..8).map(|column| F32.encode(sum(row, column))).collect()).collect()
    };
    let third = cells(&|row, column| product(0, 0, row, column) + product(1, 1, row, column));
    let last = cells(&|row, column| {
        let twice = product(0, 1, row, column) * 2;
        twice + product(1, 0, row, column) + product(0, 0, row, column) + product(1, 1, row, column)
    });
    for how in settings() {
        let output = run(&kernel, &how, &factors.input, 1024);
        for (found, expected) in output.chunks(512).zip([&third, &last]) {
            assert!(gathered(F32, (16, 8), 1, factors.case.c, found) == *expected, "{:?}", how.setting);
        }
    }
}

/// So many products that the kernel calls them: sums that go on from barrier to barrier, one of which is read on the way.
#[test]
fn products_of_a_long_kernel() {
    const ROUNDS: usize = 64;
    let factors = Factors::some(12);
    let mut kernel = factors_in_registers(16);
    for nth in 0..16 {
        writeln!(kernel, "mov.f32 %f{nth}, 0f00000000;").unwrap();
    }
    let store = |kernel: &mut String, place: usize, sum: usize| {
        for nth in 0..4 {
            let (to, register) = (128 * (4 * place + nth), 4 * sum + nth);
            writeln!(kernel, "st.global.f32 [%to+{to}], %f{register};").unwrap();
        }
    };
    for round in 0..ROUNDS {
        for (sum, (x, y)) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().enumerate() {
            let names: Vec<String> = (0..4).map(|nth| format!("%f{}", 4 * sum + nth)).collect();
            let (d, x, y) = (format!("{{{}}}", names.join(", ")), OF_A[x], OF_B[y]);
            writeln!(kernel, "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {d}, {x}, {y}, {d};")
                .unwrap();
        }
        if round == ROUNDS / 2 - 3 {
            store(&mut kernel, 4, 1);
        }
        if round % 8 == 7 {
            writeln!(kernel, "bar.sync 0;").unwrap();
        }
    }
    (0..4).for_each(|sum| store(&mut kernel, sum, sum));
    let kernel = kernel + "ret;\n}\n";
    let cells = |x: usize, y: usize, times: usize| -> Bits {
        let product = |row, column| factors.product(x, y, row, column) * times as i64;
        let row = |row| (0..8).map(|column| F32.encode(product(row, column))).collect();
        (0..16).map(row).collect()
    };
    let all = [
        cells(0, 0, ROUNDS),
        cells(0, 1, ROUNDS),
        cells(1, 0, ROUNDS),
        cells(1, 1, ROUNDS),
        cells(0, 1, ROUNDS / 2 - 2),
    ];
    let program = harness::load(&kernel).unwrap();
    let text = harness::emit(&program, "kernel", &How::new(1, 32).simd(32)).unwrap().text;
    assert!(text.contains("call void @product."), "the products are written out");
    for how in settings() {
        let output = run(&kernel, &how, &factors.input, 5 * 512);
        for (nth, (found, expected)) in output.chunks(512).zip(&all).enumerate() {
            assert!(
                gathered(F32, (16, 8), 1, factors.case.c, found) == *expected,
                "{:?}: {nth}",
                how.setting
            );
        }
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
                    for saturates in [false, true] {
                        let vectors = saturates == (a == b);
                        check(&Case { saturates, vectors, ..dense(size, [S32, a, b, S32]) }, 6);
                    }
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
        vectors: true,
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
    for k in [16, 32] {
        for types in [[F16; 4], [F32, F16, F16, F32], [F32, Bf16, Bf16, F32]] {
            for selector in 0..64 / k {
                check(&Case { vectors: false, ..sparse_case(k, types, selector) }, 50 + selector as u64);
            }
        }
    }
    for (size, types) in [([32, 64], [S8, U8]), ([64, 128], [S4, U4])] {
        for (k, selectors) in size.into_iter().zip([2, 1]) {
            for nth in 0..8 * selectors {
                let (selector, saturates) = (nth / 8, nth & 4 != 0);
                let types = [S32, types[nth / 2 % 2], types[nth % 2], S32];
                check(&Case { saturates, vectors: false, ..sparse_case(k, types, selector) }, 60);
            }
        }
    }
    for (a, b) in [(E4m3, E4m3), (E5m2, E4m3)] {
        check(&Case { vectors: false, ..sparse_case(64, [F32, a, b, F32], 0) }, 61);
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
    let words = [("", one, one), (".rn", one, one), (".rz", one, down), (".rm", one, down), (".rp", up, one)];
    for [m, n, k] in [[8, 8, 4], [16, 8, 4], [16, 8, 8], [16, 8, 16]] {
        for (word, more, less) in words {
            for (sign, expected) in [(1.0, more), (-1.0, less)] {
                let mut case = Case { vectors: m == 8, ..dense([m, n, k], [F64; 4]) };
                case.head += word;
                let a = filled(m, k, 0, (4, 1), (sign * tiny).to_bits());
                let d = product(&case, [&a, &vec![vec![one; n]; k], &vec![vec![one; n]; m]], None);
                let mut all = vec![vec![one; n]; m];
                all[4] = vec![expected; n];
                assert_eq!(d, all, "{word} {sign}");
            }
        }
    }
    // All elements of A are the same here, so each of the four products rounds.
    for layouts in ["row.row", "row.col", "col.row", "col.col"] {
        for (word, more, less) in words {
            let instruction = format!("wmma.mma.sync.aligned.{layouts}.m8n8k4{word}.f64.f64.f64.f64");
            let text = text(&instruction, &[(F64, 1), (F64, 1), (F64, 2)], (F64, 2), "");
            for (sign, once) in [(1.0, more), (-1.0, less)] {
                let expected = one.wrapping_add(once.wrapping_sub(one).wrapping_mul(4));
                let words = [[(sign * tiny).to_bits(); 32], [one; 32], [one; 32], [one; 32]].concat();
                let input: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
                let got = run(&text, &settings()[0], &input, 512);
                assert_eq!(got, expected.to_le_bytes().repeat(64), "{instruction} {sign}");
            }
        }
    }
}

/// Up to PTX 6.4 `wmma` has `.satfinite` for floats. The manual says that an infinity is then the greatest number, and NaN zero; an
/// H200 (driver 580) knows nothing of it.
#[test]
fn old_floats_do_not_saturate() {
    for (turn, [m, n, k]) in WMMA_SIZES.into_iter().enumerate() {
        for layouts in ["row.row", "row.col", "col.row", "col.col"] {
            for (d, c) in [(F16, F16), (F32, F32), (F32, F16), (F16, F32)] {
                let (d_name, c_name) = (d.name(), c.name());
                let rest = format!("{layouts}.m{m}n{n}k{k}.{d_name}.{c_name}.satfinite");
                let vectors = turn == 0 && layouts == "row.col";
                old_float_does_not_saturate(&format!("wmma.mma.sync.aligned.{rest}"), d, c, vectors);
                if vectors {
                    // Older still.
                    old_float_does_not_saturate(&format!("wmma.mma.sync.{rest}"), d, c, false);
                }
            }
        }
    }
}

fn old_float_does_not_saturate(instruction: &str, d: T, c: T, vectors: bool) {
    let registers = |ty: T| if ty == F32 { 8 } else { 4 };
    let text = text(instruction, &[(F16, 8), (F16, 8), (c, registers(c))], (d, registers(d)), "");
    let text = text
        .replace(
            ".version 8.7",
            if instruction.contains("aligned") { ".version 6.4" } else { ".version 6.2" },
        )
        .replace("sm_90", "sm_70");
    let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let [infinity, negative, nan] =
        if d == F16 { [0x7c00, 0xfc00, 0x7fff] } else { [0x7f80_0000, 0xff80_0000, 0x7fff_ffff] };
    for how in &Draw::now().ways(instruction, settings().into_iter().take(if vectors { 3 } else { 1 })) {
        let compiled = harness::emit(&program, "kernel", how).unwrap();
        let code = harness::code("kernel", &compiled, how).unwrap();
        // All elements of A and B are the same, so the fragments' layout does not matter.
        for (a, b, expected) in [
            (0x7c00u16, 0x3c00u16, infinity),
            (0x7c00, 0xbc00, negative),
            (0x7c00, 0, nan),
            (0x7e00, 0x3c00, nan),
            (0x3c00, 0x3c00, d.encode(16)),
        ] {
            let mut from: Vec<u8> = [a, b].iter().flat_map(|it| it.to_le_bytes().repeat(512)).collect();
            from.extend(vec![0; registers(c) * 128]);
            let mut to = vec![0; 256 * d.bits() / 8];
            let mut args = [Arg::Buffer(&mut from), Arg::Buffer(&mut to)];
            let mut globals = harness::Globals::place(&program);
            harness::run_code(&program, "kernel", &code, how, &mut args, &mut globals).unwrap();
            let all = expected.to_le_bytes()[..d.bits() / 8].repeat(256);
            assert_eq!(to, all, "{a:x} × {b:x} by {instruction} in {:?}", how.setting);
        }
    }
}

/// A matrix of `wmma` in memory.
#[derive(Clone, Copy)]
struct InMemory {
    ty: T,
    rows: usize,
    columns: usize,
    by_columns: bool,
    /// Elements from row to row, or column to column.
    stride: usize,
}

impl InMemory {
    fn new(ty: T, rows: usize, columns: usize, by_columns: bool, padding: usize) -> InMemory {
        InMemory { ty, rows, columns, by_columns, stride: padding + if by_columns { rows } else { columns } }
    }

    fn layout(&self) -> &'static str {
        if self.by_columns { "col" } else { "row" }
    }

    fn bytes(&self) -> usize {
        (self.stride * if self.by_columns { self.columns } else { self.rows } * self.ty.bits())
            .div_ceil(8)
            .next_multiple_of(64)
    }

    fn written(&self, value: impl Fn(usize, usize) -> i64) -> Vec<u8> {
        let mut bytes = vec![0u8; self.bytes() + 8];
        for row in 0..self.rows {
            for column in 0..self.columns {
                let element =
                    if self.by_columns { column * self.stride + row } else { row * self.stride + column };
                let bit = element * self.ty.bits();
                let bits = self.ty.encode(value(row, column)) << (bit % 8);
                for (byte, new) in bytes[bit / 8..].iter_mut().zip(bits.to_le_bytes()) {
                    *byte |= new;
                }
            }
        }
        bytes.truncate(self.bytes());
        bytes
    }
}

/// A `wmma` product from memory to memory.
struct Wmma {
    size: [usize; 3],
    types: [T; 4],
    /// A, B, C, D
    by_columns: [bool; 4],
    /// Strides are written out, and are more than needed.
    strides: bool,
    space: &'static str,
    saturation: &'static str,
    op: &'static str,
}

impl Wmma {
    fn matrices(&self) -> [InMemory; 4] {
        let [m, n, k] = self.size;
        let [d, a, b, c] = self.types;
        let padding = |ty: T| if self.strides { 2 * 128 / ty.bits() } else { 0 };
        let [ac, bc, cc, dc] = self.by_columns;
        [
            InMemory::new(a, m, k, ac, padding(a)),
            InMemory::new(b, k, n, bc, padding(b)),
            InMemory::new(c, m, n, cc, padding(c)),
            InMemory::new(d, m, n, dc, padding(d)),
        ]
    }

    /// Registers of a fragment, as the manual's table has them.
    fn registers(&self, part: usize) -> usize {
        let [m, n, k] = self.size;
        let (ty, elements) = match part {
            0 => (self.types[1], m * k),
            1 => (self.types[2], n * k),
            2 => (self.types[3], m * n),
            _ => (self.types[0], m * n),
        };
        if ty == F16 && part < 2 { 8 } else { elements / 32 / ty.per_register() }
    }

    fn text(&self) -> String {
        let [m, n, k] = self.size;
        let matrices = self.matrices();
        let list = |part: usize| {
            let ty = matrices[part].ty;
            let names: Vec<String> =
                (0..self.registers(part)).map(|n| format!("{}{}", ty.register(), 20 * part + n)).collect();
            format!("{{{}}}", names.join(", "))
        };
        let starts = [0, 1, 2, 3].map(|part| matrices[..part].iter().map(InMemory::bytes).sum::<usize>());
        let total: usize = matrices.iter().map(InMemory::bytes).sum();
        let is_shared = self.space.starts_with(".shared");
        let mut text = format!(
            ".version 8.7\n.target sm_90\n.address_size 64\n\
             .visible .entry kernel(.param .u64 from, .param .u64 to)\n{{\n\
             .shared .align 128 .b8 tile[{total}];\n\
             .reg .pred %p;\n.reg .b32 %r<80>, %i, %l, %base, %at, %word, %s;\n.reg .f32 %f<80>;\n.reg .f64 %d<80>;\n\
             .reg .b64 %from, %to, %o;\n\
             ld.param.u64 %from, [from];\nld.param.u64 %to, [to];\nmov.u32 %l, %laneid;\nmov.u32 %base, tile;\n"
        );
        // The words of `from` go to shared memory, or D's back to `to`.
        let copy = |to_shared: bool, first: usize, bytes: usize| {
            let (load, store) = if to_shared {
                ("ld.global.u32 %word, [%o];", "st.shared.u32 [%at], %word;")
            } else {
                ("ld.shared.u32 %word, [%at];", "st.global.u32 [%o], %word;")
            };
            let (label, base) = if to_shared { ("IN", "%from") } else { ("OUT", "%to") };
            let skip = if to_shared { 0 } else { first };
            format!(
                "bar.warp.sync -1;\nshl.b32 %i, %l, 2;\n{label}:\nmul.wide.u32 %o, %i, 1;\nadd.u64 %o, {base}, %o;\n\
                 add.u32 %at, %base, %i;\nadd.u32 %at, %at, {skip};\n{load}\n{store}\nadd.u32 %i, %i, 128;\n\
                 setp.lt.u32 %p, %i, {bytes};\n@%p bra {label};\nbar.warp.sync -1;\n"
            )
        };
        if is_shared {
            text += &copy(true, 0, total);
        }
        let from = if is_shared { "%base" } else { "%from" };
        let stride = |part: usize| {
            // Once as a register and once as a constant.
            match (self.strides, part % 2) {
                (false, _) => (String::new(), String::new()),
                (_, 0) => (String::new(), format!(", {}", matrices[part].stride)),
                _ => (format!("mov.u32 %s, {};\n", matrices[part].stride), ", %s".to_owned()),
            }
        };
        let space = self.space;
        for (part, letter) in ["a", "b", "c"].into_iter().enumerate() {
            let (before, stride) = stride(part);
            let InMemory { ty, .. } = matrices[part];
            writeln!(
                text,
                "{before}wmma.load.{letter}.sync.aligned.{}.m{m}n{n}k{k}{space}.{} {}, [{from}+{}]{stride};",
                matrices[part].layout(),
                ty.name(),
                list(part),
                starts[part],
            )
            .unwrap();
        }
        let [d, a, b, c] = self.types.map(T::name);
        let types = if self.types[1] == F16 { format!("{d}.{c}") } else { format!("{d}.{a}.{b}.{c}") };
        writeln!(
            text,
            "wmma.mma{}.sync.aligned.{}.{}.m{m}n{n}k{k}.{types}{} {}, {}, {}, {};",
            self.op,
            matrices[0].layout(),
            matrices[1].layout(),
            self.saturation,
            list(3),
            list(0),
            list(1),
            list(2)
        )
        .unwrap();
        let (before, stride) = stride(3);
        let to = if is_shared { format!("%base+{}", starts[3]) } else { "%to".to_owned() };
        writeln!(
            text,
            "{before}wmma.store.d.sync.aligned.{}.m{m}n{n}k{k}{space}.{d} [{to}], {}{stride};",
            matrices[3].layout(),
            list(3)
        )
        .unwrap();
        if is_shared {
            text += &copy(false, starts[3], matrices[3].bytes());
        }
        text + "ret;\n}\n"
    }

    /// Compares in setting `lane`, and in `warp` or `simd` too if `vectors` says so.
    fn check(&self, mut seed: u64, vectors: bool) {
        let [m, n, k] = self.size;
        let [dt, at, bt, ct] = self.types;
        let mut matrix = |ty: T, rows: usize, columns: usize| -> Vec<Vec<i64>> {
            (0..rows).map(|_| (0..columns).map(|_| ty.some(&mut seed)).collect()).collect()
        };
        let (a, b, c) = (matrix(at, m, k), matrix(bt, k, n), matrix(ct, m, n));
        let expected = |row: usize, column: usize| {
            let sum: i64 = (0..k)
                .map(|j| match (a[row][j], b[j][column], self.op) {
                    (x, y, ".xor.popc") => x ^ y,
                    (x, y, ".and.popc") => x & y,
                    (x, y, _) => x * y,
                })
                .sum();
            match (dt, self.saturation) {
                (S32, ".satfinite") => (c[row][column] + sum).clamp(i32::MIN.into(), i32::MAX.into()),
                (S32, _) => i64::from((c[row][column] + sum) as i32),
                _ => c[row][column] + sum,
            }
        };
        let matrices = self.matrices();
        let mut input = matrices[0].written(|row, column| a[row][column]);
        input.extend(matrices[1].written(|row, column| b[row][column]));
        input.extend(matrices[2].written(|row, column| c[row][column]));
        input.extend(vec![0; matrices[3].bytes()]);
        let output = matrices[3].written(expected);
        let text = self.text();
        // `warp` and `simd` come from one emitter: one of them, by chance.
        let [lane, warp, simd] = settings().try_into().unwrap();
        let other = if seed & 64 == 0 { warp } else { simd };
        for how in std::iter::once(lane).chain(vectors.then_some(other)) {
            let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
            let (mut from, mut to) = (input.clone(), vec![0; output.len()]);
            let mut args = [Arg::Buffer(&mut from), Arg::Buffer(&mut to)];
            harness::run(&program, "kernel", &how, &mut args)
                .unwrap_or_else(|error| panic!("{error}\n{text}"));
            assert!(to == output, "{text} in {:?}\n{to:x?}\n{output:x?}", how.setting);
        }
    }
}

const WMMA_SIZES: [[usize; 3]; 3] = [[16, 16, 16], [32, 8, 16], [8, 32, 16]];
const SPACES: [&str; 4] = ["", ".global", ".shared", ".shared::cta"];

/// Each layout of A and B, with the other choices taken in turn.
fn wmma_layouts(size: [usize; 3], all: &[[T; 4]], mut turn: usize) {
    for a in [false, true] {
        for b in [false, true] {
            turn += 1;
            for (nth, &types) in all.iter().enumerate() {
                Wmma {
                    size,
                    types,
                    by_columns: [a, b, turn & 1 != 0, turn & 2 != 0],
                    strides: (turn / 2 + turn).is_multiple_of(2),
                    space: SPACES[turn % 4],
                    saturation: if types[0] == S32 && turn & 4 != 0 { ".satfinite" } else { "" },
                    op: "",
                }
                .check(turn as u64, nth == turn % all.len());
            }
        }
    }
}

#[test]
fn wmma_of_halves() {
    for (turn, size) in WMMA_SIZES.into_iter().enumerate() {
        // Each type of C and D with one of the layouts of A and B.
        let types = [(F16, F16), (F32, F32), (F32, F16), (F16, F32)].map(|(d, c)| [d, F16, F16, c]);
        wmma_layouts(size, &types, turn);
        wmma_layouts(size, &[[F32, Bf16, Bf16, F32]], turn + 1);
    }
}

#[test]
fn wmma_of_bytes() {
    for (turn, size) in WMMA_SIZES.into_iter().enumerate() {
        let types = [[S32, S8, S8, S32], [S32, U8, U8, S32]];
        wmma_layouts(size, &types, turn);
        // With and without .satfinite.
        wmma_layouts(size, &types, turn + 4);
    }
}

#[test]
fn wmma_of_tf32_and_doubles() {
    wmma_layouts([16, 16, 8], &[[F32, Tf32, Tf32, F32]], 0);
    wmma_layouts([16, 16, 8], &[[F32, Tf32, Tf32, F32]], 1);
    wmma_layouts([8, 8, 4], &[[F64; 4]], 0);
    wmma_layouts([8, 8, 4], &[[F64; 4]], 1);
}

#[test]
fn wmma_of_less_than_bytes() {
    for (turn, space) in SPACES.into_iter().enumerate() {
        let by_columns = [false, true, turn & 1 != 0, turn & 2 != 0];
        for (ty, k, saturation, op) in [
            (S4, 32, ["", ".satfinite"][turn % 2], ""),
            (U4, 32, [".satfinite", ""][turn % 2], ""),
            (B1, 128, "", ".xor.popc"),
            (B1, 128, "", ".and.popc"),
        ] {
            let types = [S32, ty, ty, S32];
            let strides = turn >= 2;
            Wmma { size: [8, 8, k], types, by_columns, strides, space, saturation, op }
                .check(turn as u64, true);
        }
        let types = [S32, U8, U8, S32];
        let saturation = ".satfinite";
        Wmma { size: [16, 16, 16], types, by_columns, strides: true, space, saturation, op: "" }
            .check(9, true);
    }
}

/// `{ld,st}matrix`: 8×8 matrices of 16 bits; lane l has the elements (l / 4, 2·(l mod 4)) and the next of each, and the
/// row `i` of matrix `j` is at lane `8·j + i`'s address.
fn moves(load: bool, count: usize, trans: bool, space: &str, vectors: bool) {
    let address = if space.is_empty() { "%rd" } else { "%at" };
    let trans_word = if trans { ".trans" } else { "" };
    let names: Vec<String> = (0..count).map(|n| format!("%r{n}")).collect();
    let list = names.join(", ");
    let registers = |move_: &str| -> String {
        names
            .iter()
            .enumerate()
            .map(|(n, name)| {
                let at = 1024 + 128 * n;
                if move_ == "ld" {
                    format!("ld.global.b32 {name}, [%lane+{at}];\n")
                } else {
                    format!("st.global.b32 [%out+{}], {name};\n", 128 * n)
                }
            })
            .collect()
    };
    let copy = |load: &str, store: &str| -> String {
        (0..8)
            .map(|n| format!("{load} %word, [{{from}}+{0}];\n{store} [{{to}}+{0}], %word;\n", 128 * n))
            .collect()
    };
    let work = if load {
        format!("ldmatrix.sync.aligned.m8n8.x{count}{trans_word}{space}.b16 {{{list}}}, [{address}];\n")
            + &registers("st")
    } else {
        let out = copy("ld.shared.b32", "st.global.b32").replace("{from}", "%mine").replace("{to}", "%out");
        registers("ld")
            + &format!(
                "stmatrix.sync.aligned.m8n8.x{count}{trans_word}{space}.b16 [{address}], {{{list}}};\n"
            )
            + "bar.warp.sync -1;\n"
            + &out
    };
    let fill = copy("ld.global.b32", "st.shared.b32").replace("{from}", "%lane").replace("{to}", "%mine");
    // `from`: 1 KiB for shared memory, 512 bytes of registers, the rows' offsets.
    let text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n\
         .visible .entry kernel(.param .u64 from, .param .u64 to)\n{{\n.shared .align 128 .b8 tile[1024];\n\
         .reg .b32 %r<8>, %l, %at, %word, %mine, %tile;\n.reg .b64 %lane, %out, %o, %rd;\n\
         ld.param.u64 %lane, [from];\nld.param.u64 %out, [to];\nmov.u32 %l, %laneid;\nmul.wide.u32 %o, %l, 4;\n\
         add.u64 %lane, %lane, %o;\nadd.u64 %out, %out, %o;\nmov.u32 %tile, tile;\nmad.lo.u32 %mine, %l, 4, %tile;\n\
         {fill}bar.warp.sync -1;\nld.global.u32 %at, [%lane+1536];\nadd.u32 %at, %at, %tile;\n\
         cvt.u64.u32 %rd, %at;\ncvta.shared.u64 %rd, %rd;\n{work}ret;\n}}\n"
    );
    let mut seed = 77 + count as u64;
    let mut random = |bound: u64| U8.some(&mut seed) as u64 % bound;
    let mut input: Vec<u8> = (0..1536).map(|_| random(256) as u8).collect();
    // A permutation of the 64 rows of 16 bytes.
    let mut rows: Vec<usize> = (0..64).collect();
    for i in (1..64).rev() {
        rows.swap(i, random(i as u64 + 1) as usize);
    }
    input.extend(rows[..32].iter().flat_map(|&row| (16 * row as u32).to_le_bytes()));
    let half = |bytes: &[u8], at: usize| [bytes[at], bytes[at + 1]];
    let mut expected = if load { vec![0; 128 * count] } else { input[..1024].to_vec() };
    for matrix in 0..count {
        for lane in 0..32 {
            for nth in 0..2 {
                let (row, column) = (lane / 4, lane % 4 * 2 + nth);
                let (row, column) = if trans { (column, row) } else { (row, column) };
                let in_memory = 16 * rows[8 * matrix + row] + 2 * column;
                let in_register = 128 * matrix + 4 * lane + 2 * nth;
                if load {
                    expected[in_register..in_register + 2].copy_from_slice(&half(&input, in_memory));
                } else {
                    expected[in_memory..in_memory + 2].copy_from_slice(&half(&input, 1024 + in_register));
                }
            }
        }
    }
    for how in settings().into_iter().take(if vectors { 3 } else { 1 }) {
        let got = run(&text, &how, &input, expected.len());
        assert!(got == expected, "{text} in {:?}\n{got:x?}\n{expected:x?}", how.setting);
    }
}

#[test]
fn matrices_move_between_registers_and_shared_memory() {
    for load in [true, false] {
        for count in [1, 2, 4] {
            for trans in [false, true] {
                for space in ["", ".shared", ".shared::cta"] {
                    let generic = trans == (count == 2);
                    moves(load, count, trans, space, generic == space.is_empty());
                }
            }
        }
    }
}

/// A row-major or column-major matrix's bytes.
fn packed(ty: T, matrix: &[Vec<i64>], by_columns: bool) -> Vec<u8> {
    let memory = InMemory::new(ty, matrix.len(), matrix[0].len(), by_columns, 0);
    memory.written(|row, column| matrix[row][column])
}

/// What nvcc makes of `nvcuda::wmma`: kernels/wmma.cu says how.
#[test]
fn products_as_nvcc_writes_them() {
    let program = harness::load(include_str!("kernels/wmma.ptx")).unwrap();
    let [m, n, k] = [64, 64, 48];
    // Kernel, types of A, C, D's tile, A and B by columns.
    for (kernel, a, c, tile, by_columns) in [
        ("half_rows", F16, F32, 16 * 16, [false, false]),
        ("half_columns", F16, F32, 32 * 8, [true, true]),
        ("half_sums", F16, F16, 16 * 16, [false, true]),
        ("bfloat", Bf16, F32, 8 * 32, [false, true]),
        ("tf32", F32, F32, 16 * 16, [false, true]),
        ("bytes", S8, S32, 16 * 16, [false, true]),
        ("doubles", F64, F64, 8 * 8, [false, true]),
        ("half_shared", F16, F32, 16 * 16, [false, false]),
        ("half_pipeline", F16, F32, 16 * 16, [false, false]),
    ] {
        let mut seed = 5;
        let mut matrix = |rows: usize, columns: usize| -> Vec<Vec<i64>> {
            (0..rows).map(|_| (0..columns).map(|_| Tf32.some(&mut seed)).collect()).collect()
        };
        let (x, y, z) = (matrix(m, k), matrix(k, n), matrix(m, n));
        let (alpha, beta) = if matches!(kernel, "half_shared" | "half_pipeline") { (1, 1) } else { (2, 3) };
        let expected: Vec<Vec<i64>> = (0..m)
            .map(|row| {
                let sum = |column: usize| (0..k).map(|j| x[row][j] * y[j][column]).sum::<i64>();
                (0..n).map(|column| alpha * sum(column) + beta * z[row][column]).collect()
            })
            .collect();
        let expected = packed(c, &expected, false);
        let blocks = (m * n / tile / 4) as u32;
        let how = How::new(blocks, 128);
        for how in [how.clone().lane(), how.clone().warp(), how.clone().simd(32)] {
            let (mut x, mut y) = (packed(a, &x, by_columns[0]), packed(a, &y, by_columns[1]));
            let (mut z, mut d) = (packed(c, &z, false), vec![0; expected.len()]);
            let mut args = [
                Arg::Buffer(&mut x),
                Arg::Buffer(&mut y),
                Arg::Buffer(&mut z),
                Arg::Buffer(&mut d),
                Arg::u32(n as u32),
                Arg::u32(k as u32),
            ];
            let outcome = harness::run(&program, kernel, &how, &mut args);
            outcome.unwrap_or_else(|error| panic!("{kernel} in {:?}: {error}", how.setting));
            assert!(d == expected, "{kernel} in {:?}", how.setting);
        }
    }
}

/// Bytes of the matrices that [`spaces`] moves.
const MOVED: usize = 1024;

/// Loads `.a` and `.b`, or loads `.c` and stores `.d`, from and to each space in each layout, in one kernel of setting L:
/// the fragment is the same from every space, and what is stored is the matrix. What the layouts mean is the business of
/// the products above.
fn spaces(size: [usize; 3], ty: T, parts: [&str; 2]) {
    let [m, n, k] = size;
    let shape = format!("m{m}n{n}k{k}");
    let wmma = |part: usize| {
        Wmma {
            size,
            types: if parts[0] == "a" { [F32, ty, ty, F32] } else { [ty, F16, F16, ty] },
            by_columns: [false; 4],
            strides: false,
            space: "",
            saturation: "",
            op: "",
        }
        .registers(if parts[0] == "a" { part } else { 2 })
    };
    let kind = if ty == F64 {
        "f64"
    } else if ty == F32 && parts[0] == "c" {
        "f32"
    } else {
        "b32"
    };
    // `%r3`, `%f32_3`, `%f64_3`
    let name = |n: usize| if kind == "b32" { format!("%r{n}") } else { format!("%{kind}_{n}") };
    let copy = |from: &str, to: &str| -> String {
        (0..MOVED / 128).map(|n| format!("ld{from}+{0}];\nst{to}+{0}], %word;\n", 128 * n)).collect()
    };
    let mut text = format!(
        ".version 8.7\n.target sm_90\n.address_size 64\n.visible .entry kernel(.param .u64 from, .param .u64 to)\n{{\n\
         .shared .align 128 .b8 tile[{}];\n.reg .b32 %r<20>, %l, %tile, %mine, %word;\n.reg .f32 %f32_<20>;\n.reg .f64 %f64_<20>;\n\
         .reg .b64 %from, %to, %lane, %out, %o, %shared;\nld.param.u64 %from, [from];\nld.param.u64 %to, [to];\n\
         mov.u32 %l, %laneid;\nmul.wide.u32 %o, %l, 4;\nadd.u64 %lane, %from, %o;\nadd.u64 %out, %to, %o;\n\
         mov.u32 %tile, tile;\nmad.lo.u32 %mine, %l, 4, %tile;\ncvt.u64.u32 %shared, %tile;\ncvta.shared.u64 %shared, %shared;\n",
        2 * MOVED
    );
    text += &copy(".global.b32 %word, [%lane", ".shared.b32 [%mine");
    let mut slots = 0;
    let mut stored = vec![];
    for (part, letter) in parts.into_iter().enumerate() {
        let layouts: &[&str] = match (ty.bits() < 8, letter) {
            (true, "a") => &["row"],
            (true, "b") => &["col"],
            _ => &["row", "col"],
        };
        let count = wmma(part);
        let list = (0..count).map(name).collect::<Vec<_>>().join(", ");
        for layout in layouts {
            for (nth, space) in ["", "", ".global", ".shared", ".shared::cta"].into_iter().enumerate() {
                let is_shared = nth == 1 || nth >= 3;
                if letter == "d" {
                    let to = match (nth, is_shared) {
                        (1, _) => format!("%shared+{MOVED}"),
                        (_, true) => format!("%tile+{MOVED}"),
                        _ => format!("%to+{}", slots * MOVED),
                    };
                    let zero = copy(".global.b32 %word, [%out", ".shared.b32 [%mine");
                    // The part of `to` that comes next is still zero.
                    text += &zero
                        .replace("%out+", &format!("%out+{}+", slots * MOVED))
                        .replace("%mine+", &format!("%mine+{MOVED}+"));
                    writeln!(
                        text,
                        "wmma.store.d.sync.aligned.{layout}.{shape}{space}.{} [{to}], {{{list}}};",
                        ty.name()
                    )
                    .unwrap();
                    if is_shared {
                        let back = copy(".shared.b32 %word, [%mine", ".global.b32 [%out");
                        text += "bar.warp.sync -1;\n";
                        text += &back
                            .replace("%out+", &format!("%out+{}+", slots * MOVED))
                            .replace("%mine+", &format!("%mine+{MOVED}+"));
                    }
                    text += "bar.warp.sync -1;\n";
                    stored.push((slots, *layout));
                } else {
                    let from = match (nth, is_shared) {
                        (1, _) => "%shared",
                        (_, true) => "%tile",
                        _ => "%from",
                    };
                    writeln!(
                        text,
                        "wmma.load.{letter}.sync.aligned.{layout}.{shape}{space}.{} {{{list}}}, [{from}];",
                        ty.name()
                    )
                    .unwrap();
                    for n in 0..count.min(8) {
                        let bytes = if ty == F64 { 8 } else { 4 };
                        let at = slots * MOVED + 32 * bytes * n;
                        let again = if ty == F64 {
                            "mad.wide.u32 %o, %l, 8, %to;\n"
                        } else {
                            "add.u64 %o, %out, 0;\n"
                        };
                        writeln!(text, "{again}st.global.{kind} [%o+{at}], {};", name(n)).unwrap();
                    }
                }
                slots += 1;
            }
        }
        if parts[1] == "d" && part == 0 {
            writeln!(text, "wmma.load.c.sync.aligned.row.{shape}.{} {{{list}}}, [%from];", ty.name())
                .unwrap();
        }
    }
    text += "ret;\n}\n";
    let mut seed = 3;
    let input: Vec<u8> = (0..MOVED).map(|_| U8.some(&mut seed) as u8).collect();
    let program = harness::load(&text).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let (mut from, mut to) = (input.clone(), vec![0; slots * MOVED]);
    let how = How::new(1, 32).lane();
    harness::run(&program, "kernel", &how, &mut [Arg::Buffer(&mut from), Arg::Buffer(&mut to)])
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let slot = |number: usize| &to[number * MOVED..][..MOVED];
    for first in (0..slots).step_by(5) {
        for space in 1..5 {
            assert!(
                slot(first) == slot(first + space),
                "{shape} {ty:?} {parts:?}, group {first}, space {space}"
            );
        }
        assert!(slot(first).iter().any(|&byte| byte != 0), "{shape} {ty:?}: nothing moved");
    }
    for (number, layout) in stored {
        let bytes = ty.bits() / 8;
        let mut expected = vec![0; MOVED];
        for row in 0..m {
            for column in 0..n {
                let from = (row * n + column) * bytes;
                let at = if layout == "row" { from } else { (column * m + row) * bytes };
                expected[at..at + bytes].copy_from_slice(&input[from..from + bytes]);
            }
        }
        assert!(slot(number) == expected, "{shape} {ty:?} stored by {layout}");
    }
}

#[test]
fn wmma_reaches_every_space() {
    for size in WMMA_SIZES {
        for ty in [F16, Bf16, S8, U8] {
            spaces(size, ty, ["a", "b"]);
        }
        for ty in [F16, F32, S32] {
            spaces(size, ty, ["c", "d"]);
        }
    }
    for (size, ty, accumulator) in [
        ([16, 16, 8], Tf32, F32),
        ([8, 8, 4], F64, F64),
        ([8, 8, 32], S4, S32),
        ([8, 8, 32], U4, S32),
        ([8, 8, 128], B1, S32),
    ] {
        spaces(size, ty, ["a", "b"]);
        spaces(size, accumulator, ["c", "d"]);
    }
}
