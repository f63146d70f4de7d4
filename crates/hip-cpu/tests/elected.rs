//! Atomic operations of a warp on shared memory at places that its lanes compute: those of elected lanes, one for each key, which the CPU
//! may do at once where every lane has a word of its own, or whose lanes it counts in turn, and many of all lanes, which are calls. Expected values are counted here.

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, Error, How, emit, load, run};
use hip_cpu::jit::Effort;

const BLOCK: usize = 96;
const BLOCKS: usize = 2;
const THREADS: usize = BLOCK * BLOCKS;
/// Words of a warp's table.
const WORDS: usize = 64;

fn random(i: usize) -> u32 {
    let mut x = (i as u32).wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^ x >> 15
}

/// A kernel that reads a key into `%x`, has each warp clear its table at `%base`, runs `body`, stores `%result` for each thread and then the
/// tables.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0
.target sm_80
.address_size 64
.visible .entry elected(.param .u64 keys, .param .u64 out, .param .u64 tables) {{
.reg .pred %p<9>;
.reg .b32 %x, %i, %lane, %base, %own, %m, %leader, %count, %old, %result, %trip, %at, %r<40>;
.reg .b64 %keys, %out, %tables, %wide, %rd<10>;
.shared .align 16 .b8 table[{bytes}];
ld.param.u64 %keys, [keys];
ld.param.u64 %out, [out];
ld.param.u64 %tables, [tables];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %i, %r1, %r2, %r3;
mul.wide.u32 %wide, %i, 4;
add.u64 %keys, %keys, %wide;
add.u64 %out, %out, %wide;
ld.global.u32 %x, [%keys];
mov.u32 %lane, %laneid;
shr.u32 %r4, %r3, 5;
mul.lo.u32 %r4, %r4, {warp};
mov.u32 %base, table;
add.u32 %base, %base, %r4;
shl.b32 %r5, %lane, 2;
add.u32 %own, %base, %r5;
mov.u32 %r6, 0;
st.shared.u32 [%own], %r6;
st.shared.u32 [%own+128], %r6;
mov.u32 %result, 0;
bar.sync 0;
{body}
bar.sync 0;
st.global.u32 [%out], %result;
shr.u32 %r7, %i, 5;
mul.lo.u32 %r7, %r7, {warp};
add.u32 %r7, %r7, %r5;
cvt.u64.u32 %wide, %r7;
add.u64 %tables, %tables, %wide;
ld.shared.u32 %r8, [%own];
ld.shared.u32 %r9, [%own+128];
st.global.u32 [%tables], %r8;
st.global.u32 [%tables+128], %r9;
ret;
}}
",
        bytes = BLOCK / 32 * WORDS * 4,
        warp = WORDS * 4,
    )
}

/// `%m`: the lanes that have the same bits of `%x` as this one, `%leader` the last of them, `%count` how many are not behind this one.
fn ballots(bits: &[u32]) -> String {
    let mut text = "mov.u32 %m, -1;\n".to_owned();
    for bit in bits {
        text.push_str(&format!(
            "and.b32 %r10, %x, {bit};\nsetp.ne.u32 %p1, %r10, 0;\nvote.sync.ballot.b32 %r11, %p1, 0xffffffff;\n\
             @!%p1 not.b32 %r11, %r11;\nand.b32 %m, %m, %r11;\n"
        ));
    }
    text + "clz.b32 %r12, %m;\nsub.u32 %leader, 31, %r12;\nmov.u32 %r13, %lanemask_le;\nand.b32 %r14, %r13, %m;\npopc.b32 %count, %r14;\n"
}

/// The leaders add their counts at `address`, which finds `%at`; each lane's rank among those before it with the same bits is its result.
fn ranks(bits: &[u32], address: &str) -> String {
    ranks_and(bits, address, "")
}

/// With something more that is done with `%r15`, what the leader found.
fn ranks_and(bits: &[u32], address: &str, more: &str) -> String {
    kernel(&format!(
        "{}setp.ne.u32 %p2, %lane, %leader;\nmov.u32 %old, 0;\n@%p2 bra others;\n{address}\n\
         atom.shared.add.u32 %old, [%at], %count;\nothers:\nshfl.sync.idx.b32 %r15, %old, %leader, 31, 0xffffffff;\n\
         add.u32 %result, %r15, %count;\nsub.u32 %result, %result, 1;\n{more}",
        ballots(bits)
    ))
}

/// What threads and tables are left with, in each setting that takes the kernel.
fn results(ptx: &str, keys: &[u32]) -> Vec<(String, Vec<u32>, Vec<u32>)> {
    let program = load(ptx).unwrap();
    let how = How::new(BLOCKS as u32, BLOCK as u32);
    let lane = How { setting: Some(Setting::Lane), ..how.clone() };
    let mut ways = vec![lane, How { effort: Effort::Baseline, setting: Some(Setting::Lane), ..how.clone() }];
    for setting in [Setting::Warp, Setting::Simd] {
        for bits in [None, Some(256)] {
            ways.push(How { setting: Some(setting), vector_bits: bits, ..how.clone() });
        }
    }
    let (mut found, mut vectors) = (vec![], 0);
    for how in ways {
        let bytes = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
        let words =
            |bytes: &[u8]| bytes.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        let (mut keys, mut out) = (bytes(keys), vec![0; THREADS * 4]);
        let mut tables = vec![0; THREADS / 32 * WORDS * 4];
        let mut args = [Arg::Buffer(&mut keys), Arg::Buffer(&mut out), Arg::Buffer(&mut tables)];
        let label = format!("{:?} {:?} {:?}", how.setting, how.vector_bits, how.effort);
        match run(&program, "elected", &how, &mut args) {
            Ok(_) => {}
            Err(Error::Refused { .. }) => continue,
            Err(error) => panic!("{label}: {error}"),
        }
        vectors += usize::from(how.setting != Some(Setting::Lane));
        found.push((label, words(&out), words(&tables)));
    }
    assert!(vectors >= 2, "no setting with vectors took it");
    found
}

/// Whether code for a CPU with vectors of 512 bits does an atomic of the kernel at once: it scatters more than a kernel without.
fn is_at_once(ptx: &str) -> bool {
    let how =
        How { setting: Some(Setting::Warp), vector_bits: Some(512), ..How::new(BLOCKS as u32, BLOCK as u32) };
    let scatters = |ptx: &str| {
        let text = emit(&load(ptx).unwrap(), "elected", &how).unwrap().text;
        text.matches("call void @llvm.masked.scatter.v32i32").count()
    };
    scatters(ptx) > scatters(&kernel(""))
}

/// Whether the lanes count one after the other, and nobody asks who leads.
fn is_in_turn(ptx: &str, bits: u32) -> bool {
    let how = How {
        setting: Some(Setting::Warp),
        vector_bits: Some(bits),
        ..How::new(BLOCKS as u32, BLOCK as u32)
    };
    emit(&load(ptx).unwrap(), "elected", &how).unwrap().text.contains("<32 x i32> @count.")
}

/// For each thread how many before it in its warp have the same `of(key)`, and the tables with how many have each.
fn counted(keys: &[u32], of: impl Fn(u32) -> usize) -> (Vec<u32>, Vec<u32>) {
    let (mut ranks, mut tables) = (vec![], vec![]);
    for warp in keys.chunks(32) {
        let mut table = vec![0; WORDS];
        for &key in warp {
            ranks.push(table[of(key)]);
            table[of(key)] += 1;
        }
        tables.extend(table);
    }
    (ranks, tables)
}

#[test]
fn leaders_of_keys_add_at_once() {
    let address = "shl.b32 %r16, %x, 2;\nadd.u32 %at, %base, %r16;";
    // What a leader finds is 0 here, and somebody asks for it.
    let asked = ranks_and(&[1, 2, 4, 8], address, "shl.b32 %r17, %r15, 8;\nadd.u32 %result, %result, %r17;");
    assert!(is_at_once(&asked) && !is_in_turn(&asked, 512));
    let ptx = ranks(&[1, 2, 4, 8], address);
    assert!(is_in_turn(&ptx, 512) && is_in_turn(&ptx, 256));
    for (ptx, keys) in [(&asked, 16), (&ptx, 16), (&ptx, 4), (&ptx, 1)] {
        let keys: Vec<u32> = (0..THREADS).map(|i| random(i) % keys).collect();
        let expected = counted(&keys, |key| key as usize);
        for (label, ranks, tables) in results(ptx, &keys) {
            assert_eq!((ranks, tables), expected, "{label}");
        }
    }
}

/// Keys whose other bits differ in lanes that count together: the leader's word has all of them.
#[test]
fn the_leaders_key_says_which_word_counts() {
    let ptx = ranks(&[1, 2, 8], "shl.b32 %r16, %x, 2;\nadd.u32 %at, %base, %r16;");
    assert!(is_in_turn(&ptx, 512) && is_in_turn(&ptx, 256));
    for most in [8, 64] {
        let keys: Vec<u32> = (0..THREADS).map(|i| random(i) % most).collect();
        let (expected, _) = counted(&keys, |key| key as usize & 11);
        let mut words = vec![];
        for warp in keys.chunks(32) {
            let mut table = vec![0; WORDS];
            for (lane, key) in warp.iter().enumerate() {
                let is_alike = |other: &&u32| *other & 11 == key & 11;
                if !warp[lane + 1..].iter().any(|other| is_alike(&other)) {
                    table[*key as usize] += warp.iter().filter(is_alike).count() as u32;
                }
            }
            words.extend(table);
        }
        for (label, ranks, tables) in results(&ptx, &keys) {
            assert_eq!((&ranks, &tables), (&expected, &words), "{label} {most}");
        }
    }
}

/// Words that hold something before, one count after the other, and operands the other way round.
#[test]
fn counts_go_on_from_one_to_the_next() {
    let once = |result: &str, old: &str, skip: &str| {
        format!(
            "setp.ne.s32 %p2, %leader, %lane;\nmov.u32 {old}, 7;\n@%p2 bra {skip};\n\
             atom.shared.add.u32 {old}, [%at], %count;\n{skip}:\nshfl.sync.idx.b32 %r15, {old}, %leader, 31, 0xffffffff;\n\
             add.u32 {result}, %count, %r15;\n"
        )
    };
    let ptx = kernel(&format!(
        "{}shl.b32 %r16, %x, 2;\nadd.u32 %at, %base, %r16;\n{}bar.warp.sync -1;\n{}mad.lo.u32 %result, %r20, 1000, %r21;",
        ballots(&[1, 2, 4, 8]),
        once("%r20", "%old", "first"),
        once("%r21", "%r22", "second"),
    ));
    assert!(is_in_turn(&ptx, 512));
    let keys: Vec<u32> = (0..THREADS).map(|i| random(i) % 16).collect();
    let (ranks, mut tables) = counted(&keys, |key| key as usize);
    let mut expected = vec![];
    for (warp, ranks) in ranks.chunks(32).enumerate() {
        for (lane, rank) in ranks.iter().enumerate() {
            let all = tables[warp * WORDS + keys[warp * 32 + lane] as usize];
            expected.push((rank + 1) * 1000 + all + rank + 1);
        }
    }
    tables.iter_mut().for_each(|count| *count *= 2);
    for (label, found, words) in results(&ptx, &keys) {
        assert_eq!((&found, &words), (&expected, &tables), "{label}");
    }
}

/// Whoever did these at once would lose what all but one leader of a word add.
#[test]
fn leaders_of_keys_that_share_a_word_add_in_turn() {
    let shared = "and.b32 %r16, %x, 3;\nshl.b32 %r16, %r16, 2;\nadd.u32 %at, %base, %r16;";
    // The bits that tell the keys apart leave the number on its left.
    let lost = "shl.b32 %r16, %x, 30;\nadd.u32 %at, %base, %r16;";
    let twice = "shl.b32 %r16, %x, 28;\nmul.lo.u32 %r16, %r16, 4;\nadd.u32 %at, %base, %r16;";
    for (address, bits, step) in [(shared, 15, 1), (lost, 12, 4), (twice, 12, 4)] {
        let tested: Vec<u32> = (0..4).map(|bit| 1 << bit & bits).filter(|&bit| bit != 0).collect();
        let ptx = ranks(&tested, address);
        assert!(!is_at_once(&ptx) && !is_in_turn(&ptx, 512), "{address}");
        let keys: Vec<u32> = (0..THREADS).map(|i| random(i) % (16 / step) * step).collect();
        let (_, expected) = counted(&keys, |key| key as usize & 3);
        for (label, _, tables) in results(&ptx, &keys) {
            assert_eq!(tables, expected, "{label} {address}");
        }
    }
}

/// Lanes that leave a loop when a function of their key and of the trip is their number come out together, two of a key in two trips.
#[test]
fn lanes_elected_in_different_trips_add_in_turn() {
    let ptx = kernel(
        "mov.u32 %trip, 0;\nround:\nand.b32 %r16, %x, 15;\nmul.lo.u32 %r16, %r16, 5;\nadd.u32 %r16, %r16, %trip;\n\
         and.b32 %r16, %r16, 31;\nadd.u32 %trip, %trip, 1;\nsetp.ne.u32 %p2, %lane, %r16;\n@%p2 bra round;\n\
         shl.b32 %r17, %x, 2;\nadd.u32 %at, %base, %r17;\natom.shared.add.u32 %old, [%at], 1;",
    );
    assert!(!is_at_once(&ptx));
    let keys: Vec<u32> = (0..THREADS).map(|i| random(i) % 16).collect();
    let (_, expected) = counted(&keys, |key| key as usize);
    for (label, _, tables) in results(&ptx, &keys) {
        assert_eq!(tables, expected, "{label}");
    }
}

#[test]
fn many_atomics_of_all_lanes_are_done_in_turn_by_calls() {
    let body = "shl.b32 %r16, %x, 2;\nadd.u32 %at, %base, %r16;\natom.shared.add.u32 %result, [%at], 1;\nred.shared.add.u32 [%at+16], %x;\n\
                red.shared.add.u32 [%at+16], 1000;\nred.shared.max.s32 [%at+32], %lane;\nred.shared.or.b32 [%at+48], %lane;\n\
                red.shared.xor.b32 [%at+64], %i;\natom.shared.inc.u32 %old, [%at+80], 2;\nred.shared.max.u32 [%at+96], %i;\n\
                cvt.u64.u32 %rd1, %i;\nshl.b32 %r17, %x, 3;\nadd.u32 %r18, %base, %r17;\nred.shared.add.u64 [%r18+128], %rd1;\n\
                red.shared.add.u64 [%r18+128], 0x100000000;\nmov.u32 %r19, 5;\natom.shared.cas.b32 %old, [%at+160], 0, %r19;\n\
                atom.shared.exch.b32 %old, [%at+176], %r19;";
    let ptx = kernel(body);
    let how = How { setting: Some(Setting::Warp), ..How::new(BLOCKS as u32, BLOCK as u32) };
    let text = emit(&load(&ptx).unwrap(), "elected", &how).unwrap().text;
    assert!(text.contains("<32 x i32> @atomic.Add"), "they are no calls");
    let keys: Vec<u32> = (0..THREADS).map(|i| random(i) % 4).collect();
    let mut expected = vec![];
    for (warp, keys) in keys.chunks(32).enumerate() {
        let mut table = [0u32; WORDS];
        for key in 0..4 {
            let lanes = || (0..32u32).filter(|&lane| keys[lane as usize] == key as u32);
            let threads = || lanes().map(|lane| warp as u32 * 32 + lane);
            let count = lanes().count() as u32;
            let mut sum = u64::from(count) << 32;
            threads().for_each(|thread| sum += u64::from(thread));
            table[key] = count;
            table[4 + key] = count * (1000 + key as u32);
            table[8 + key] = lanes().max().unwrap_or(0);
            table[12 + key] = lanes().fold(0, |all, lane| all | lane);
            table[16 + key] = threads().fold(0, |all, thread| all ^ thread);
            table[20 + key] = count % 3;
            table[24 + key] = threads().max().unwrap_or(0);
            table[32 + 2 * key] = sum as u32;
            table[33 + 2 * key] = (sum >> 32) as u32;
            table[40 + key] = if count > 0 { 5 } else { 0 };
            table[44 + key] = table[40 + key];
        }
        expected.extend(table);
    }
    for (label, found, tables) in results(&ptx, &keys) {
        assert_eq!(tables, expected, "{label}");
        // Each lane found another number of lanes before it.
        for (keys, found) in keys.chunks(32).zip(found.chunks(32)) {
            for key in 0..4 {
                let mut found: Vec<u32> =
                    keys.iter().zip(found).filter(|(it, _)| **it == key).map(|(_, &old)| old).collect();
                found.sort_unstable();
                assert_eq!(found, (0..found.len() as u32).collect::<Vec<_>>(), "{label}");
            }
        }
    }
}

/// Every operation that has an operand which changes nothing, done by the lanes that two branches let through: the others come to words too,
/// and leave them as they are.
#[test]
fn lanes_that_a_branch_keeps_out_change_nothing() {
    type Operation = fn(u32, u32) -> u32;
    let operations: [(&str, Operation); 8] = [
        ("add.u32", u32::wrapping_add),
        ("and.b32", |old, new| old & new),
        ("or.b32", |old, new| old | new),
        ("xor.b32", |old, new| old ^ new),
        ("min.u32", u32::min),
        ("max.u32", u32::max),
        ("min.s32", |old, new| (old as i32).min(new as i32) as u32),
        ("max.s32", |old, new| (old as i32).max(new as i32) as u32),
    ];
    let first = |lane: usize| (lane as u32).wrapping_mul(0x9123_4567);
    for (name, operation) in operations {
        // Lanes that pass by the inner branch bring another result than those that pass by the outer one.
        let ptx = kernel(&format!(
            "mul.lo.u32 %r10, %lane, 0x91234567;\nst.shared.u32 [%own], %r10;\nbar.sync 0;\n\
             shr.u32 %r11, %x, 20;\nand.b32 %r11, %r11, 63;\nshl.b32 %r11, %r11, 2;\nadd.u32 %at, %base, %r11;\n\
             and.b32 %r12, %x, 3;\nsetp.eq.u32 %p1, %r12, 0;\nmov.u32 %result, 1;\n@%p1 bra past;\n\
             setp.lt.s32 %p2, %x, 0;\nmov.u32 %result, 2;\n@%p2 bra past;\n\
             red.shared.{name} [%at], %x;\nadd.u32 %result, %x, 3;\npast:"
        ));
        let how = How {
            setting: Some(Setting::Simd),
            vector_bits: Some(256),
            ..How::new(BLOCKS as u32, BLOCK as u32)
        };
        let text = emit(&load(&ptx).unwrap(), "elected", &how).unwrap().text;
        assert!(text.contains("@atomic_pairs."), "{name}");
        // As they come, none, and all.
        let kinds: [Operation; 3] = [|x, _| x, |x, _| x & !3, |x, _| (x | 1) >> 1 | 1];
        for kind in kinds {
            let keys: Vec<u32> = (0..THREADS).map(|i| kind(random(i), 0)).collect();
            let (mut expected, mut words) = (vec![], vec![]);
            for warp in keys.chunks(32) {
                let mut table: Vec<u32> =
                    (0..WORDS).map(|word| if word < 32 { first(word) } else { 0 }).collect();
                for &key in warp {
                    expected.push(match key {
                        key if key & 3 == 0 => 1,
                        key if (key as i32) < 0 => 2,
                        key => key.wrapping_add(3),
                    });
                    if key & 3 != 0 && key as i32 >= 0 {
                        let word = &mut table[(key >> 20) as usize & 63];
                        *word = operation(*word, key);
                    }
                }
                words.extend(table);
            }
            for (label, results, tables) in results(&ptx, &keys) {
                assert_eq!((&results, &tables), (&expected, &words), "{name}, {label}");
            }
        }
    }
}

/// All lanes add to one word, and then a part of them to another: each is told what those before it have left.
#[test]
fn lanes_that_add_to_one_word_find_the_sums_before_them() {
    let ptx = kernel(
        "mov.u32 %r10, 3;\natom.shared.add.u32 %r11, [%base+4], %r10;\nmov.u32 %r12, 7;\n\
         and.b32 %r13, %x, 5;\nsetp.eq.u32 %p1, %r13, 0;\n@%p1 bra past;\n\
         atom.shared.add.u32 %r12, [%base+8], %x;\npast:\nmad.lo.u32 %result, %r11, 65537, %r12;",
    );
    let kinds: [fn(u32) -> u32; 3] = [|x| x, |x| x & !5, |x| x | 4];
    for kind in kinds {
        let keys: Vec<u32> = (0..THREADS).map(|i| kind(random(i))).collect();
        let (mut expected, mut words) = (vec![], vec![]);
        for warp in keys.chunks(32) {
            let mut table = vec![0u32; WORDS];
            for &key in warp {
                let all = table[1];
                table[1] += 3;
                let mut some = 7;
                if key & 5 != 0 {
                    some = table[2];
                    table[2] = table[2].wrapping_add(key);
                }
                expected.push(all.wrapping_mul(65537).wrapping_add(some));
            }
            words.extend(table);
        }
        for (label, results, tables) in results(&ptx, &keys) {
            assert_eq!((&results, &tables), (&expected, &words), "{label}");
        }
    }
}
