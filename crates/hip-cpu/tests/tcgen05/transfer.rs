//! Words between registers and tensor memory. All shapes and counts: what one shape stores, `.32x32b` loads, and the other way
//! round, so that each place of a word is compared with the manual's figures.

use std::fmt::Write;

use hip_cpu::harness::How;

use super::{Random, in_settings, kernel, refusal, seed};

/// Shape, registers for each count, and lane and column of a thread's register, `half` being the distance of the second place.
type Place = fn(thread: usize, register: usize, half: usize) -> (usize, usize);
const SHAPES: [(&str, usize, Place); 5] = [
    ("32x32b", 1, |thread, register, _| (thread, register)),
    ("16x64b", 1, |thread, register, _| (thread / 4 + 8 * (thread % 2), 2 * register + thread / 2 % 2)),
    ("16x128b", 2, |thread, register, _| (thread / 4 + 8 * (register % 2), 4 * (register / 2) + thread % 4)),
    ("16x256b", 4, |thread, register, _| {
        (thread / 4 + 8 * (register / 2 % 2), 8 * (register / 4) + 2 * (thread % 4) + register % 2)
    }),
    ("16x32bx2", 1, |thread, register, half| (thread % 16, register + thread / 16 * half)),
];

fn list(prefix: &str, count: usize) -> String {
    let names: Vec<String> = (0..count).map(|at| format!("{prefix}{at}")).collect();
    format!("{{{}}}", names.join(", "))
}

/// What word stands at a place before anything is stored.
fn before(lane: usize, column: usize) -> u32 {
    ((lane * 1000 + column) as u32).wrapping_mul(0x10001)
}

const WIDE: usize = 512;

/// Four warps fill all of tensor memory by `.32x32b`, column by column; `%r0` to `%r127` are free, `%base` is their lanes' address.
fn filled() -> String {
    // before(): `lane × 1000 + column` in both halves of the word, times 0x10001.
    "ld.param.u64 %rd1, [to];\n\
     ALLOC;\n\
     ld.shared.u32 %r299, [tile];\nshl.b32 %at, %w, 21;\nadd.u32 %r299, %r299, %at;\n\
     mov.u32 %r298, 0;\nmul.lo.u32 %r297, %t, 1000;\n\
     FILL:\nadd.u32 %r296, %r297, %r298;\nmul.lo.u32 %r296, %r296, 0x10001;\nadd.u32 %r295, %r299, %r298;\n\
     tcgen05.st.sync.aligned.32x32b.x1.b32 [%r295], {%r296};\n\
     add.u32 %r298, %r298, 1;\nsetp.lt.u32 %p1, %r298, 512;\n@%p1 bra FILL;\n\
     tcgen05.wait::st.sync.aligned;\n"
        .replace("ALLOC;\n", ALLOC)
}

/// Only one warp allocates.
const ALLOC: &str = "setp.ne.u32 %p2, %w, 0;\n@%p2 bra HAVE;\n\
     tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 512;\nHAVE:\ntcgen05.fence::before_thread_sync;\nbar.sync 0;\ntcgen05.fence::after_thread_sync;\n";
const DEALLOC: &str = "bar.sync 0;\n@%p2 bra GONE;\nld.shared.u32 %r294, [tile];\n\
     tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r294, 512;\nGONE:\n";

fn results(registers: usize) -> String {
    let mut text = format!("mul.wide.u32 %rd2, %t, {};\nadd.u64 %rd1, %rd1, %rd2;\n", 4 * registers);
    for register in 0..registers {
        writeln!(text, "st.global.u32 [%rd1+{}], %r{register};", 4 * register).unwrap();
    }
    text
}

/// Every shape, packed and not, with some counts; with all of them for a list of forms (`SHOW`).
fn forms() -> Vec<(usize, usize, bool)> {
    let mut random = Random(seed());
    let mut forms = vec![];
    for (shape, (_, each, _)) in SHAPES.iter().enumerate() {
        let counts: Vec<usize> = (0..8).map(|log| each << log).filter(|&it| it <= 128).collect();
        let mut add = |registers: usize| forms.extend([(shape, registers, false), (shape, registers, true)]);
        match std::env::var_os("SHOW") {
            Some(_) => counts.into_iter().for_each(add),
            None => (0..2).for_each(|_| add(random.of(&counts))),
        }
    }
    forms
}

fn name(shape: usize, registers: usize) -> String {
    let (name, each, _) = SHAPES[shape];
    format!("{name}.x{}", registers / each)
}

#[test]
fn each_shape_loads_the_words_that_the_figures_show() {
    for (shape, registers, packed) in forms() {
        let place = SHAPES[shape].2;
        let is_halves = SHAPES[shape].0 == "16x32bx2";
        // Not at the start, and of shapes of 16 lanes in the upper ones.
        let (first, column) = (if shape == 0 { 0 } else { 16 }, if registers == 128 { 0 } else { 32 });
        let half = if is_halves { 130 } else { 0 };
        let pack = if packed { ".pack::16b" } else { "" };
        let mut body = filled();
        write!(
            body,
            "add.u32 %r293, %r299, {};\ntcgen05.ld.sync.aligned.{}{pack}.b32 {}, [%r293+{column}]{};\ntcgen05.wait::ld.sync.aligned;\n",
            first << 16,
            name(shape, registers),
            list("%r", registers),
            if is_halves { format!(", {half}") } else { String::new() }
        )
        .unwrap();
        body += DEALLOC;
        body += &results(registers);
        let text = kernel(".param .u64 to", &body);
        let mut expected = vec![];
        for thread in 0..128 {
            for register in 0..registers {
                let (lane, at) = place(thread % 32, register, 0);
                let lane = first + lane + thread / 32 * 32;
                let apart = if thread % 32 >= 16 { half } else { 0 };
                let word = |at: usize| before(lane, (column + apart + at) % WIDE);
                expected.push(match packed {
                    false => word(at),
                    true => word(2 * at) & 0xffff | word(2 * at + 1) << 16,
                });
            }
        }
        for given in in_settings(&text, &How::new(1, 128), expected.len(), &[]) {
            assert_eq!(given, expected, "{}{pack}", name(shape, registers));
        }
    }
}

#[test]
fn each_shape_stores_the_words_that_the_figures_show() {
    for (shape, registers, packed) in forms() {
        let place = SHAPES[shape].2;
        let is_halves = SHAPES[shape].0 == "16x32bx2";
        let (first, column) = (if shape == 0 { 0 } else { 16 }, if registers == 128 { 0 } else { 32 });
        let half = if is_halves { 256 } else { 0 };
        let unpack = if packed { ".unpack::16b" } else { "" };
        let mut body = filled();
        let value = |thread: usize, register: usize| {
            ((thread * 200 + register) as u32).wrapping_mul(77_777).wrapping_add(5)
        };
        writeln!(body, "mul.lo.u32 %r292, %t, {};", 200 * 77_777).unwrap();
        for register in 0..registers {
            writeln!(body, "add.u32 %r{register}, %r292, {};", register * 77_777 + 5).unwrap();
        }
        write!(
            body,
            "add.u32 %r293, %r299, {};\ntcgen05.st.sync.aligned.{}{unpack}.b32 [%r293]{}, {};\ntcgen05.wait::st.sync.aligned;\n",
            (first << 16) + column,
            name(shape, registers),
            if is_halves { format!(", {half}") } else { String::new() },
            list("%r", registers)
        )
        .unwrap();
        // All columns of all lanes.
        body += "mul.wide.u32 %rd2, %t, 2048;\nadd.u64 %rd1, %rd1, %rd2;\nmov.u32 %r298, 0;\nREAD:\n\
                 add.u32 %r295, %r299, %r298;\ntcgen05.ld.sync.aligned.32x32b.x1.b32 {%r0}, [%r295];\nst.global.u32 [%rd1], %r0;\n\
                 add.u64 %rd1, %rd1, 4;\nadd.u32 %r298, %r298, 1;\nsetp.lt.u32 %p1, %r298, 512;\n@%p1 bra READ;\n";
        body += DEALLOC;
        let text = kernel(".param .u64 to", &body);
        let mut expected: Vec<u32> = (0..128 * WIDE).map(|at| before(at / WIDE, at % WIDE)).collect();
        for thread in 0..128 {
            for register in 0..registers {
                let (lane, at) = place(thread % 32, register, 0);
                let lane = first + lane + thread / 32 * 32;
                let apart = if thread % 32 >= 16 { half } else { 0 };
                let mut put =
                    |at: usize, word: u32| expected[lane * WIDE + (column + apart + at) % WIDE] = word;
                let word = value(thread, register);
                match packed {
                    false => put(at, word),
                    true => {
                        put(2 * at, word & 0xffff);
                        put(2 * at + 1, word >> 16);
                    }
                }
            }
        }
        for given in in_settings(&text, &How::new(1, 128), expected.len(), &[]) {
            let wrong = given.iter().zip(&expected).position(|(given, expected)| given != expected);
            assert_eq!(wrong, None, "{}{unpack}", name(shape, registers));
        }
    }
}

/// Reductions of floats that have a NaN, a negative zero and both signs among them, and of whole numbers.
#[test]
fn loads_reduce_what_they_load() {
    let numbers: [u32; 8] = [
        1.5f32.to_bits(),
        (-7.25f32).to_bits(),
        f32::NAN.to_bits(),
        0x8000_0000,
        3.0f32.to_bits(),
        0x7f7f_ffff,
        0xff7f_ffff,
        0,
    ];
    let float = |op: &str, words: &[u32], absolute: bool, nan: bool| {
        let numbers: Vec<f32> = words
            .iter()
            .map(|&bits| f32::from_bits(if absolute { bits & 0x7fff_ffff } else { bits }))
            .collect();
        if nan && numbers.iter().any(|it| it.is_nan()) {
            return 0x7fff_ffff;
        }
        let numbers = numbers.into_iter().filter(|it| !it.is_nan());
        let best = if op == "min" {
            numbers.fold(f32::INFINITY, f32::min)
        } else {
            numbers.fold(f32::NEG_INFINITY, f32::max)
        };
        best.to_bits()
    };
    for (op, kind) in
        [("min", "f32"), ("max", "f32"), ("min", "u32"), ("max", "u32"), ("min", "s32"), ("max", "s32")]
    {
        for (absolute, nan) in [(false, false), (true, false), (false, true), (true, true)] {
            if kind != "f32" && (absolute || nan) {
                continue;
            }
            for count in if std::env::var_os("SHOW").is_some() { vec![2, 4, 8] } else { vec![4] } {
                for shape in ["32x32b", "16x32bx2"] {
                    let mut body = "ld.param.u64 %rd1, [to];\n".to_owned() + ALLOC;
                    body +=
                        "ld.shared.u32 %r299, [tile];\nshl.b32 %at, %w, 21;\nadd.u32 %r299, %r299, %at;\n";
                    for (at, number) in numbers.iter().enumerate() {
                        writeln!(body, "mov.u32 %r{at}, {number};").unwrap();
                    }
                    let half = if shape == "16x32bx2" { ", 4" } else { "" };
                    // As Triton writes it.
                    let target = if op == "max" { "{%r0}" } else { "%r0" };
                    write!(
                        body,
                        "tcgen05.st.sync.aligned.32x32b.x8.b32 [%r299], {};\ntcgen05.wait::st.sync.aligned;\n\
                         tcgen05.ld.red.sync.aligned.{shape}.x{count}.{op}{}{}.{kind} {}, {target}, [%r299]{half};\n",
                        list("%r", 8),
                        if absolute { ".abs" } else { "" },
                        if nan { ".NaN" } else { "" },
                        list("%r10", count),
                    )
                    .unwrap();
                    body += DEALLOC;
                    body += "mov.u32 %r1, %r101;\n";
                    body += &results(2);
                    // Not of every target that has the others.
                    let text = kernel(".param .u64 to", &body).replace("sm_100a", "sm_110a");
                    let mut expected = vec![];
                    for thread in 0..128 {
                        let first = if shape == "16x32bx2" && thread % 32 >= 16 { 4 } else { 0 };
                        // What lies behind was never written.
                        let all = if first + count > 8 { None } else { Some(&numbers[first..first + count]) };
                        let word = all.map(|all| match kind {
                            "f32" => float(op, all, absolute, nan),
                            "u32" if op == "min" => *all.iter().min().unwrap(),
                            "u32" => *all.iter().max().unwrap(),
                            _ if op == "min" => all.iter().map(|&it| it as i32).min().unwrap() as u32,
                            _ => all.iter().map(|&it| it as i32).max().unwrap() as u32,
                        });
                        expected.extend([word, Some(numbers[first + 1])]);
                    }
                    for given in in_settings(&text, &How::new(1, 128), 256, &[]) {
                        for (at, (given, expected)) in given.iter().zip(&expected).enumerate() {
                            assert!(
                                expected.is_none_or(|it| it == *given),
                                "{shape} {op} {kind} {absolute} {nan} x{count}: {at} {given:x} {expected:x?}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn what_the_manual_does_not_have_is_refused() {
    for good in [
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%f1}, [%r2];",
        "tcgen05.ld.sync.aligned.x2.32x32b.b32 {%r1, %r3}, [%r2-4];",
        "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r2], -16;",
        "tcgen05.ld.sync.aligned.32x32b.pack::16b.x1.b32 {%r1}, [%r2];",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%f1};",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%f1, %f2}, %f3, [%r2];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.abs.NaN.f32 {%r1, %r4}, %r3, [%r2];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.u32 {%f1, %f2}, {%f3}, [%r2];",
    ] {
        assert_eq!(refusal(good), None, "{good}");
    }
    for wrong in [
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 %r1, [%r2];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [16];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [tile];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%rd2];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, %r2;",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%h1}, [%r2];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%rd1}, [%r2];",
        "tcgen05.ld.sync.aligned.32x32b.x2.b32 {%r1, _}, [%r2];",
        "tcgen05.ld.sync.aligned.32x32b.x3.b32 {%r1, %r2, %r3}, [%r2];",
        "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r2], %r3;",
        "tcgen05.ld.sync.aligned.16x32bx2.x1.b32 {%r1}, [%r2];",
        "tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r1}, [%r2], 16;",
        "tcgen05.ld.sync.aligned.16x64b.x1.b32 {%r1, %r2}, [%r2];",
        "tcgen05.ld.sync.aligned.32x32b.x1.unpack::16b.b32 {%r1}, [%r2];",
        "tcgen05.ld.sync.32x32b.x1.b32 {%r1}, [%r2];",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], %r1;",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {5};",
        "tcgen05.st.sync.aligned.32x32b.x1.b32 [%r2], {%h1};",
        "tcgen05.st.sync.aligned.32x32b.x1.pack::16b.b32 [%r2], {%r1};",
        "tcgen05.st.sync.aligned.16x32bx2.x1.b32 [%r2], {%r1}, 8;",
        "tcgen05.wait::ld.sync;",
        "tcgen05.wait::mma.sync.aligned;",
        "tcgen05.fence::after_thread_sync.sync.aligned;",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.abs.s32 {%r1, %r2}, %r3, [%r2];",
        "tcgen05.ld.red.sync.aligned.32x32b.x1.min.s32 {%r1}, %r3, [%r2];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.min.s32 {%r1, %r4}, {%r3, %r5}, [%r2];",
        "tcgen05.ld.red.sync.aligned.16x64b.x2.max.s32 {%r1, %r4}, %r3, [%r2];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.pack::16b.max.s32 {%r1, %r4}, %r3, [%r2];",
        "tcgen05.ld.red.sync.aligned.32x32b.x2.max.b32 {%r1, %r4}, %r3, [%r2];",
    ] {
        assert!(refusal(wrong).is_some(), "{wrong}");
    }
}
