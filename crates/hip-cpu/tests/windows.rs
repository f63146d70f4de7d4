//! Threads that have several words each behind one another, as CUB's algorithms move tiles between memory and threads. Expected memory is
//! written here, word after word.

use std::fmt::Write as _;

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, Error, How, emit, load, run};

const THREADS: usize = 96;

/// Thread `i` reads `n` words of `bits` bits from word `i * stride` on, flips their lowest bits, and writes them from there on in another
/// array, the last first. Threads whose number has a bit of `left_out` only read.
fn text(n: usize, stride: usize, bits: usize) -> String {
    let (bytes, register) = (bits / 8, bits.max(16));
    let mut text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n\
         .visible .entry tile(.param .u64 from, .param .u64 to, .param .u32 left_out) {{\n\
         .reg .pred %p;\n.reg .b32 %i, %out;\n.reg .b64 %wide, %from, %to;\n.reg .b{register} %x<{n}>;\n\
         ld.param.u64 %from, [from];\nld.param.u64 %to, [to];\nld.param.u32 %out, [left_out];\n\
         mov.u32 %i, %tid.x;\nmul.wide.u32 %wide, %i, {};\nadd.s64 %from, %from, %wide;\n\
         add.s64 %to, %to, %wide;\nand.b32 %out, %out, %i;\nsetp.ne.u32 %p, %out, 0;\n",
        stride * bytes
    );
    for at in 0..n {
        let _ = writeln!(text, "ld.global.b{bits} %x{at}, [%from+{}];", at * bytes);
    }
    for at in 0..n {
        let _ = writeln!(text, "xor.b{register} %x{at}, %x{at}, 1;");
    }
    text += "@%p bra END;\n";
    for at in 0..n {
        let _ = writeln!(text, "st.global.b{bits} [%to+{}], %x{};", at * bytes, n - 1 - at);
    }
    text + "END:\nret;\n}\n"
}

/// Words per thread, words from one thread to the next, bits of a word.
fn cases() -> Vec<(usize, usize, usize)> {
    let mut all = vec![];
    for n in [1, 3, 5, 8, 9, 15, 17] {
        all.extend([(n, n, 32), (n, n + 1, 32), (n, 2 * n + 3, 32)]);
    }
    for bits in [8, 16, 64] {
        all.extend([3, 9, 11].map(|n| (n, n, bits)));
        all.extend([3, 9, 11].map(|n| (n, n + 4, bits)));
    }
    all
}

fn bytes(of: usize) -> Vec<u8> {
    (0..of as u32).map(|at| (at.wrapping_mul(0x9e37_79b9) >> 16) as u8).collect()
}

#[test]
fn every_word_reaches_its_thread() {
    for (n, stride, bits) in cases() {
        let program = load(&text(n, stride, bits)).unwrap();
        let size = bits / 8;
        let from = bytes(THREADS * stride * size);
        for left_out in [0u32, 5] {
            let mut expected = vec![0xee; from.len()];
            for i in (0..THREADS).filter(|&i| i as u32 & left_out == 0) {
                for at in 0..n {
                    let (read, written) = (i * stride + n - 1 - at, i * stride + at);
                    expected[written * size..][..size].copy_from_slice(&from[read * size..][..size]);
                    expected[written * size] ^= 1;
                }
            }
            for how in How::new(1, THREADS as u32).in_each_setting() {
                let (mut from, mut to) = (from.clone(), vec![0xee; from.len()]);
                let left_out = Arg::Value(left_out.to_le_bytes().to_vec());
                let mut args = [Arg::Buffer(&mut from), Arg::Buffer(&mut to), left_out];
                match run(&program, "tile", &how, &mut args) {
                    Ok(_) => {}
                    Err(Error::Refused { .. }) if how.setting == Some(Setting::Warp) => continue,
                    Err(error) => panic!("{n} of {stride}, {bits} bits, {how:?}: {error}"),
                }
                let wrong = (0..to.len()).find(|&at| to[at] != expected[at]);
                assert_eq!(wrong, None, "{n} of {stride}, {bits} bits, {how:?}");
            }
        }
    }
}

#[test]
fn an_odd_number_of_words_is_read_and_written_as_whole_vectors() {
    let how = How { setting: Some(Setting::Simd), vector_bits: Some(512), ..How::new(1, THREADS as u32) };
    for n in [5, 9, 15] {
        let text = emit(&load(&text(n, n, 32)).unwrap(), "tile", &how).unwrap().text;
        assert!(!text.contains("call <32 x i32> @llvm.masked.gather"), "{n}");
    }
}
