//! Accesses whose lanes lie too far apart for whole vectors: words, pairs of words and pairs of halves at the same distance from lane to
//! lane, as of threads with nine items each, or where an index says. A CPU with wide vectors reads and writes them by instructions of its
//! own, with all lanes and with some. Expected values are counted here.

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, Error, How, emit, load, run};

const BLOCK: usize = 96;
const BLOCKS: usize = 2;
const THREADS: usize = BLOCK * BLOCKS;
/// Pairs of words of a thread's part, in and out.
const PART: usize = 11;

/// Threads below `n` read of their part word 0, the pair in words 2 and 3, the number in words 4 and 5 and the halves of word 7, and the
/// pair that `index` says; they write word 1, the pair in words 2 and 3, the number in words 4 and 5, the halves of word 7, and the pair.
const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry spread(.param .u64 in, .param .u64 index, .param .u64 pairs, .param .u64 out, .param .u64 moved, .param .u32 n) {
.reg .pred %p;
.reg .b16 %s, %t;
.reg .b32 %i, %n, %x, %u, %v, %k, %a, %b, %r<9>;
.reg .b64 %in, %index, %pairs, %out, %moved, %wide, %w;
ld.param.u64 %in, [in];
ld.param.u64 %index, [index];
ld.param.u64 %pairs, [pairs];
ld.param.u64 %out, [out];
ld.param.u64 %moved, [moved];
ld.param.u32 %n, [n];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %i, %tid.x;
mad.lo.s32 %i, %r1, %r2, %i;
setp.ge.u32 %p, %i, %n;
@%p bra END;
mul.wide.u32 %wide, %i, 4;
add.u64 %index, %index, %wide;
ld.global.u32 %k, [%index];
mul.wide.u32 %wide, %k, 8;
add.u64 %pairs, %pairs, %wide;
add.u64 %moved, %moved, %wide;
mul.wide.u32 %wide, %i, 88;
add.u64 %in, %in, %wide;
add.u64 %out, %out, %wide;
ld.global.u32 %x, [%in];
ld.global.v2.u32 {%u, %v}, [%in+8];
ld.global.u64 %w, [%in+16];
ld.global.v2.u16 {%s, %t}, [%in+28];
ld.global.v2.u32 {%a, %b}, [%pairs];
add.u32 %x, %x, %u;
st.global.u32 [%out+4], %x;
st.global.v2.u32 [%out+8], {%v, %u};
add.u64 %w, %w, 1;
st.global.u64 [%out+16], %w;
st.global.v2.u16 [%out+28], {%t, %s};
add.u32 %a, %a, 5;
st.global.v2.u32 [%moved], {%b, %a};
END:
ret;
}
";

/// What a thread makes of its part.
fn expected(part: &[u32]) -> Vec<u32> {
    let mut out = vec![0; part.len()];
    out[1] = part[0].wrapping_add(part[2]);
    (out[2], out[3]) = (part[3], part[2]);
    let number = (u64::from(part[5]) << 32 | u64::from(part[4])).wrapping_add(1);
    (out[4], out[5]) = (number as u32, (number >> 32) as u32);
    out[7] = part[7].rotate_left(16);
    out
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect()
}

#[test]
fn lanes_far_apart_read_and_write_what_is_theirs() {
    let program = load(TEXT).unwrap();
    let parts: Vec<u32> = (0..(2 * PART * THREADS) as u32).map(|i| i.wrapping_mul(0x9e37_79b9)).collect();
    let pairs: Vec<u32> = (0..2 * THREADS as u32).map(|i| i.wrapping_mul(0x85eb_ca6b) ^ 7).collect();
    // 5 and the number of threads have no common divisor: each pair is one thread's.
    let index: Vec<u32> = (0..THREADS).map(|i| (i * 5 % THREADS) as u32).collect();
    for n in [THREADS, THREADS - 5, 1] {
        let mut out = vec![0; parts.len()];
        let mut moved = vec![0; pairs.len()];
        for (i, &k) in index.iter().enumerate().take(n) {
            let part = 2 * PART * i..2 * PART * (i + 1);
            out[part.clone()].copy_from_slice(&expected(&parts[part]));
            let k = k as usize;
            (moved[2 * k], moved[2 * k + 1]) = (pairs[2 * k + 1], pairs[2 * k].wrapping_add(5));
        }
        for how in How::new(BLOCKS as u32, BLOCK as u32).in_each_setting() {
            let (mut from, mut at, mut of) = (bytes(&parts), bytes(&index), bytes(&pairs));
            let (mut to, mut there) = (vec![0; from.len()], vec![0; of.len()]);
            let mut args = [
                Arg::Buffer(&mut from),
                Arg::Buffer(&mut at),
                Arg::Buffer(&mut of),
                Arg::Buffer(&mut to),
                Arg::Buffer(&mut there),
                Arg::u32(n as u32),
            ];
            match run(&program, "spread", &how, &mut args) {
                Ok(_) => {}
                Err(Error::Refused { .. }) if how.setting == Some(Setting::Warp) => continue,
                Err(error) => panic!("{how:?}: {error}"),
            }
            assert_eq!((words(&to), words(&there)), (out.clone(), moved.clone()), "{n} {how:?}");
        }
    }
}

#[test]
fn wide_vectors_do_them_at_once() {
    let how = How { setting: Some(Setting::Simd), width: Some(32), ..How::new(BLOCKS as u32, BLOCK as u32) };
    let text = |bits: u32| {
        let how = How { vector_bits: Some(bits), ..how.clone() };
        emit(&load(TEXT).unwrap(), "spread", &how).unwrap().text
    };
    // A lane's own access stands in the text once for each lane; single ones are of parameters and of what lanes share.
    let is_single = |line: &&str| {
        ["load i32,", "load i64,", "load <2 x", "store i32 ", "store i64 ", "store i16 "]
            .iter()
            .any(|what| line.contains(what))
    };
    let singles = |text: &str| text.lines().filter(is_single).count();
    let (wide, narrow) = (text(512), text(256));
    assert!(singles(&wide) < 32, "{} of lanes by themselves", singles(&wide));
    for what in ["gather.v32i32", "gather.v32i64", "scatter.v32i32", "scatter.v32i64"] {
        assert!(wide.contains(&format!("@llvm.masked.{what}")), "{what}");
        assert!(!narrow.contains(&format!("@llvm.masked.{what}")), "{what}");
    }
}
