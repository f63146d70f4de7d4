//! Stores at a lane's own number behind an entry of a table, as sorts write their keys: neighbours with the same entry write side by side.
//! Expected memory is written here, thread after thread.

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, Error, How, emit, load, run};

const THREADS: usize = 192;
/// Entries of the table.
const ENTRIES: usize = 256;
/// Words of each array that is written.
const WORDS: usize = 1024;

/// Thread `i` writes at word `table[keys[i]] + i` of three arrays: a word of 32 bits, one of 64, and a pair of words.
const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry pieces(.param .u64 keys, .param .u64 table, .param .u64 words, .param .u64 longs, .param .u64 pairs) {
.reg .b32 %i, %key, %x, %y;
.reg .b64 %wide, %keys, %table, %to, %at, %long;
ld.param.u64 %keys, [keys];
ld.param.u64 %table, [table];
mov.u32 %i, %tid.x;
mul.wide.u32 %wide, %i, 4;
add.s64 %keys, %keys, %wide;
ld.global.u32 %key, [%keys];
mul.wide.u32 %wide, %key, 8;
add.s64 %table, %table, %wide;
ld.global.u64 %at, [%table];
cvt.u64.u32 %wide, %i;
add.s64 %at, %at, %wide;
mad.lo.u32 %x, %i, 77, 5;
xor.b32 %y, %x, 0x12345678;
mov.b64 %long, {%y, %x};
ld.param.u64 %to, [words];
shl.b64 %wide, %at, 2;
add.s64 %to, %to, %wide;
st.global.u32 [%to], %x;
ld.param.u64 %to, [longs];
shl.b64 %wide, %at, 3;
add.s64 %to, %to, %wide;
st.global.u64 [%to], %long;
ld.param.u64 %to, [pairs];
add.s64 %to, %to, %wide;
st.global.v2.u32 [%to], {%x, %y};
ret;
}
";

fn random(seed: usize, i: usize) -> usize {
    let mut x = (i as u32).wrapping_mul(0x9e37_79b9) ^ (seed as u32).wrapping_mul(0x85eb_ca6b);
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    (x ^ x >> 15) as usize
}

/// Keys and tables: one piece, pieces of some lengths, entries of each lane's own, and places that several threads write.
fn cases() -> Vec<(String, Vec<u32>, Vec<u64>)> {
    let apart: Vec<u64> = (0..ENTRIES).map(|entry| (random(9, entry) % (WORDS - THREADS)) as u64).collect();
    let spread: Vec<u64> = (0..ENTRIES as u64).map(|entry| entry * 3).collect();
    let back: Vec<u64> = (0..ENTRIES as u64).map(|entry| (ENTRIES as u64 - entry) / 4).collect();
    let mut all = vec![];
    let mut add = |name: String, key: &dyn Fn(usize) -> usize| {
        let keys = (0..THREADS).map(|i| (key(i) % ENTRIES) as u32).collect();
        let (table, entries) = [("apart", &apart), ("spread", &spread), ("back", &back)][all.len() % 3];
        all.push((format!("{name}, {table}"), keys, entries.clone()));
    };
    add("one".to_owned(), &|_| 7);
    add("each its own".to_owned(), &|i| i);
    add("two by turns".to_owned(), &|i| i % 2);
    for length in [1, 2, 3, 5, 8, 11, 15, 16, 17, 40] {
        add(format!("pieces of {length}"), &|i| i / length);
        add(format!("pieces of about {length}"), &|i| {
            (0..=i).filter(|&before| random(length, before).is_multiple_of(length)).count()
        });
    }
    // The first piece comes again behind the second.
    for hole in [1, 4, 9] {
        add(format!("a hole of {hole}"), &|i| usize::from((3..3 + hole).contains(&(i % 16))));
    }
    for seed in 0..20 {
        add(format!("drawn {seed}"), &|i| random(seed, i) % (1 + seed % 4));
    }
    all
}

fn bytes<T: Copy, const N: usize>(all: &[T], of: impl Fn(T) -> [u8; N]) -> Vec<u8> {
    all.iter().flat_map(|&it| of(it)).collect()
}

#[test]
fn words_go_where_the_entries_say() {
    let program = load(TEXT).unwrap();
    for (name, keys, table) in cases() {
        let (mut words, mut longs, mut pairs) = (vec![0u32; WORDS], vec![0u64; WORDS], vec![0u64; WORDS]);
        for i in 0..THREADS {
            let x = 77 * i as u32 + 5;
            let y = x ^ 0x1234_5678;
            let at = table[keys[i] as usize] as usize + i;
            words[at] = x;
            longs[at] = u64::from(x) << 32 | u64::from(y);
            pairs[at] = u64::from(y) << 32 | u64::from(x);
        }
        let expected = [
            bytes(&words, u32::to_le_bytes),
            bytes(&longs, u64::to_le_bytes),
            bytes(&pairs, u64::to_le_bytes),
        ];
        for how in How::new(1, THREADS as u32).in_each_setting() {
            let mut keys = bytes(&keys, u32::to_le_bytes);
            let mut table = bytes(&table, u64::to_le_bytes);
            let mut found = [vec![0; 4 * WORDS], vec![0; 8 * WORDS], vec![0; 8 * WORDS]];
            let [words, longs, pairs] = &mut found;
            let mut args = [&mut keys, &mut table, words, longs, pairs].map(|it| Arg::Buffer(it));
            match run(&program, "pieces", &how, &mut args) {
                Ok(_) => {}
                Err(Error::Refused { .. }) if how.setting == Some(Setting::Warp) => continue,
                Err(error) => panic!("{name} {how:?}: {error}"),
            }
            for (nth, (found, expected)) in found.iter().zip(&expected).enumerate() {
                let wrong = (0..found.len()).find(|&at| found[at] != expected[at]);
                assert_eq!(wrong, None, "{name}, array {nth} {how:?}");
            }
        }
    }
}

#[test]
fn they_are_found_by_how_the_address_is_made() {
    let program = load(TEXT).unwrap();
    for setting in [Setting::Simd, Setting::Warp] {
        let how = How { setting: Some(setting), vector_bits: Some(512), ..How::new(1, THREADS as u32) };
        let text = emit(&program, "pieces", &how).unwrap().text;
        let calls = text.lines().filter(|line| line.contains("call ") && line.contains("@store_pieces."));
        assert_eq!(calls.count(), 3, "{setting:?}");
    }
    // Lanes that write every second word are no pieces of lines.
    let text = TEXT.replace("cvt.u64.u32 %wide, %i;", "mul.wide.u32 %wide, %i, 2;");
    let how = How { setting: Some(Setting::Simd), vector_bits: Some(512), ..How::new(1, THREADS as u32) };
    assert!(!emit(&load(&text).unwrap(), "pieces", &how).unwrap().text.contains("@store_pieces."));
}
