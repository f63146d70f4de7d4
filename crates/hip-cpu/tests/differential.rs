//! Every kernel of `tests/kernels` gives the same bits in settings `lane` and `warp` and in setting `simd`, at several widths, vector
//! lengths, block shapes and sizes that fill groups only partly.
//! A third of the cases runs, drawn anew in each run, each in `lane`, `warp`, `simd` and baseline code and in half of the other ways: `SEED=n` draws the
//! same again, `SEED=all` takes all of them. `KERNEL=name` runs all cases of one kernel.

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, Draw, Error, How, load, run};
use hip_cpu::jit::Effort;
use rayon::prelude::*;

const KERNELS: &str = include_str!("kernels/kernels.ptx");
const RANDOM: &str = include_str!("kernels/random.ptx");
const PARTS: &str = include_str!("kernels/parts.ptx");
const STRUCTS: &str = include_str!("kernels/structs.ptx");
const ROWS: &str = include_str!("kernels/rows.ptx");
const ROUNDS: &str = include_str!("kernels/rounds.ptx");
const TREES: &str = include_str!("kernels/trees.ptx");
const WAITS: &str = include_str!("kernels/waits.ptx");

/// A parameter of a case: a value, or the words of a buffer.
#[derive(Clone, Debug)]
enum Given {
    I(i32),
    F(f32),
    /// Words made from their index by the function.
    Words(usize, fn(usize) -> u32),
    Bytes(usize, fn(usize) -> u8),
}
use Given::*;

struct Case {
    kernel: String,
    grid: [u32; 3],
    block: [u32; 3],
    given: Vec<Given>,
    /// `simd` has to take it.
    simd: bool,
    /// `warp` has to take it.
    warp: bool,
}

fn case(kernel: &str, grid: [u32; 3], block: [u32; 3], given: Vec<Given>) -> Case {
    Case { kernel: kernel.to_owned(), grid, block, given, simd: true, warp: true }
}

fn random(i: usize) -> u32 {
    let mut x = (i as u32).wrapping_mul(0x9e37_79b9) ^ 0x85eb_ca6b;
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

fn float(i: usize) -> u32 {
    ((random(i) % 20000) as f32 / 1000.0 - 10.0).to_bits()
}

/// Halves of doubles near 1.
fn double(i: usize) -> u32 {
    if i.is_multiple_of(2) { random(i) } else { 0x3ff0_0000 | random(i) >> 12 }
}

fn small(i: usize) -> u32 {
    random(i) % 1000
}

fn zero(_: usize) -> u32 {
    0
}

fn any_byte(i: usize) -> u8 {
    random(i) as u8
}

/// A permutation of 0..1024.
fn shuffled(i: usize) -> u32 {
    (i as u32 * 389 + 17) % 1024
}

fn cases() -> Vec<Case> {
    let mut all = vec![];
    for block in [1, 32, 40, 64, 100, 256] {
        let grid = [5, 1, 1];
        let n = (5 * block - 3.min(block - 1)) as i32;
        let len = 5 * block as usize;
        let b = [block, 1, 1];
        all.push(case("vecadd", grid, b, vec![Words(len, float), Words(len, float), Words(len, zero), I(n)]));
        all.push(case(
            "saxpy_stride",
            grid,
            b,
            vec![F(1.5), Words(4 * len, float), Words(4 * len, float), I(4 * n)],
        ));
        // Threads read what their neighbour stored, so each needs one: shared memory starts undefined.
        if block % 2 == 0 {
            all.push(case("early_return", grid, b, vec![Words(len, random), Words(len, zero), I(n)]));
        }
        all.push(case("nested", grid, b, vec![Words(len, small), Words(len, zero), I(n)]));
        all.push(case("vec4", grid, b, vec![Words(4 * len, float), Words(4 * len, zero), I(n)]));
        let bytes = vec![Bytes(len, any_byte), Bytes(2 * len, |_| 0), Bytes(len, |_| 0), I(n)];
        all.push(case("bytes", grid, b, bytes));
        all.push(case("local_array", grid, b, vec![Words(len, random), Words(len, zero), I(n)]));
        all.push(case("histogram", grid, b, vec![Bytes(4000, any_byte), Words(256, zero), I(3999)]));
        let offset = |off: u32| vec![Words(len.max(8), random), Words(len, zero), I(off as i32), I(n)];
        for off in [0, 0x7fff_ffff - 37, 0xffff_ffff - 21] {
            all.push(case("wrap", grid, b, offset(off)));
        }
        let back = vec![Words(len + 64, random), Words(len, zero), I(-64), I(n)];
        all.push(case("wrap_load", grid, b, back));
        let back = vec![Words(len + 64, random), Words(len, zero), I(-30), I(n)];
        all.push(case("wrap_load", grid, b, back));
    }
    for block in [32, 64, 256, 512] {
        let len = 3 * block as usize;
        let n = len as i32 - 7;
        all.push(case(
            "reduce_tree",
            [3, 1, 1],
            [block, 1, 1],
            vec![Words(len, random), Words(3, zero), I(n)],
        ));
    }
    for block in [64, 256] {
        let n = 3 * block;
        let given = vec![Words(2 * n as usize, float), Words(2 * n as usize, zero), I(n as i32)];
        all.push(case("nbody", [3, 1, 1], [block, 1, 1], given));
    }
    let square = |n: usize| vec![Words(n * n, float), Words(n * n, float), Words(n * n, zero), I(n as i32)];
    all.push(case("matmul", [3, 3, 1], [16, 16, 1], square(48)));
    for block in [[32, 8, 1], [16, 16, 1], [8, 8, 1], [5, 7, 1]] {
        let grid = [60u32.div_ceil(block[0]), 37u32.div_ceil(block[1]), 1];
        all.push(case("mandel", grid, block, vec![Words(60 * 37, zero), I(60), I(37), I(50)]));
        all.push(case(
            "stencil",
            grid,
            block,
            vec![Words(60 * 37, float), Words(60 * 37, zero), I(60), I(37)],
        ));
    }
    let given = vec![Words(60 * 37, float), Words(60 * 37, zero), I(60), I(37)];
    all.push(case("transpose", [2, 2, 1], [32, 8, 1], given));
    for block in [32, 64, 96, 256] {
        let (grid, b, len) = ([3, 1, 1], [block, 1, 1], 3 * block as usize);
        let n = len as i32 - 9;
        for kernel in [
            "shfl_modes",
            "scan",
            "votes",
            "ballot_branch",
            "matches",
            "reduxes",
            "early_shfl",
            "warp_role",
            "loop_exit_barrier",
            "counts",
            "switches",
            "calls",
            "heap",
            "fences",
            "lanes",
            "queue",
            "shared_ops",
        ] {
            all.push(case(kernel, grid, b, vec![Words(len, small), Words(len, zero), I(n)]));
        }
        // A collective that every lane of a part of a warp's block runs; which lanes are active is up to the machine.
        all.push(case("active", grid, b, vec![Words(len, small), Words(len, zero), I(n)]));
        all.push(case("shfl_reduce", grid, b, vec![Words(len, random), Words(3, zero), I(n)]));
        let given = vec![Words(len, small), Words(len, zero), Words(1, zero), I(n)];
        all.push(case("compact", [1, 1, 1], [32, 1, 1], given));
        all.push(case("cas_add", grid, b, vec![Words(len, small), Words(4, zero), I(n)]));
        all.push(case("tickets", grid, b, vec![Words(1, zero), Words(len, zero), I(n)]));
        let given = vec![Words(len, random), Words(len, zero), Words(9, random), I(9)];
        all.push(case("uniform_barrier", grid, b, given));
        all.push(case("doubles", grid, b, vec![Words(2 * len, double), Words(2 * len, zero), I(n)]));
        all.push(case("gen_shared", grid, b, vec![Words(len, random), Words(len, zero), I(n)]));
        all.push(Case {
            simd: false,
            ..case("spin_lock", grid, b, vec![Words(1, zero), Words(1, zero), I(n)])
        });
        let given = vec![Words(len, random), Words(len, zero), I(n)];
        all.push(Case { simd: false, warp: false, ..case("divergent_barrier", grid, b, given.clone()) });
        all.push(Case { simd: false, warp: false, ..case("tid_barrier", grid, b, given) });
    }
    for block in [[4, 4, 4], [32, 2, 3], [3, 5, 7], [1, 64, 1], [2, 1, 33]] {
        let len = 2 * block.iter().product::<u32>() as usize;
        all.push(case("cube", [2, 1, 1], block, vec![Words(len, random), Words(len, zero), I(0)]));
    }
    all.push(case("bitonic", [2, 1, 1], [256, 1, 1], vec![Words(512, random), I(0)]));
    all.push(case(
        "scatter",
        [4, 1, 1],
        [256, 1, 1],
        vec![Words(1024, shuffled), Words(1024, zero), I(1000)],
    ));
    all
}

/// Groups that are several rows of a block.
fn rows() -> Vec<Case> {
    let mut all = vec![];
    for block in
        [[16, 16, 1], [16, 4, 1], [8, 8, 1], [4, 16, 1], [32, 8, 1], [64, 2, 1], [16, 5, 1], [6, 8, 1]]
    {
        let len = 2 * block.iter().product::<u32>() as usize;
        let n = len as i32;
        let mut add = |kernel, given| all.push(case(kernel, [2, 1, 1], block, given));
        for off in [0, i32::MAX - 50, -41, i32::MAX - 3 * 37 - 7] {
            let given = vec![Words(200, random), Words(len, zero), I(off), I(n - 3)];
            add("rows_wrap", given);
            for count in [n, n - 21] {
                add("rows_kept", vec![Words(200, random), Words(len, zero), I(off), I(count)]);
            }
        }
        // The kernel's tiles have 32 columns.
        if block[0] <= 32 {
            add("rows_tile", vec![Words(len, float), Words(len, zero), I(n)]);
        }
        for count in [4 * n, 4 * n - 9] {
            add("rows_structs", vec![Words(4 * len, random), Words(4 * len, zero), I(count)]);
            add("rows_found", vec![Words(4 * len, random), Words(4 * len, zero), I(count)]);
        }
    }
    for block in [32, 128, 256] {
        let given = vec![Words(300, random), Words(2 * block as usize, zero), I(300)];
        all.push(case("rows_fragment", [2, 1, 1], [block, 1, 1], given));
    }
    all
}

/// Trees of barriers, whose number of steps and idle groups follow from the block's shape.
fn trees() -> Vec<Case> {
    let mut all = vec![];
    let kernels = [
        "tree_halves",
        "tree_register",
        "tree_others",
        "tree_strewn",
        "tree_gathered",
        "tree_scan",
        "tree_parts",
        "tree_places",
        "tree_ended",
    ];
    for kernel in kernels {
        for block in [[32, 1, 1], [100, 1, 1], [256, 1, 1], [1024, 1, 1], [16, 16, 1], [6, 9, 1]] {
            let len = 2 * block.iter().product::<u32>() as usize;
            let words = Words(len, if kernel == "tree_places" { float } else { random });
            all.push(case(kernel, [2, 1, 1], block, vec![words, Words(len, zero), I(len as i32 - 9)]));
        }
    }
    all
}

/// Loops over the grid and over rows: of no element, of fewer than threads, of some trips, and of a last trip that some threads have.
fn rounds() -> Vec<Case> {
    let mut all = vec![];
    let kernels = [
        "grid_map",
        "grid_long",
        "grid_pointers",
        "grid_sum",
        "grid_bins",
        "grid_at_least_once",
        "grid_some",
        "grid_inside",
        "grid_breaks",
        "grid_twice",
        "grid_again",
    ];
    for kernel in kernels {
        for block in [32, 100, 256] {
            let threads = 3 * block as usize;
            for n in [0, threads / 2, threads, 4 * threads + 37, 5 * threads - block as usize] {
                let len = threads.max(n);
                let given = vec![Words(len, small), Words(len.max(64), zero), I(n as i32)];
                all.push(case(kernel, [3, 1, 1], [block, 1, 1], given));
            }
        }
    }
    for kernel in ["rows_map", "rows_written", "rows_long"] {
        for block in [32, 100, 256] {
            let len = 600 * 9;
            let given = vec![Words(len, small), Words(len, zero), I(len as i32)];
            all.push(case(kernel, [3, 1, 1], [block, 1, 1], given));
        }
    }
    for (grid, block) in [([1, 3, 1], [32, 4, 1]), ([2, 2, 1], [8, 16, 1]), ([1, 2, 1], [64, 3, 1])] {
        let len = 37 * 41;
        all.push(case("grid_rows", grid, block, vec![Words(len, small), Words(len, zero), I(len as i32)]));
    }
    all
}

/// Warps that wait for each other: `simd` cannot take them, `warp` has to.
fn waits() -> Vec<Case> {
    let mut all = vec![];
    for kernel in
        ["turns", "blocks", "half_waits", "own_flags", "guarded", "lines", "look_back", "own_locks", "parts"]
    {
        for block in [32, 64, 100, 256] {
            let len = 3 * block as usize;
            // Two trips and a part for every thread.
            let n = len * 2 + 7;
            let given = vec![Words(n, small), Words(n, zero), I(n as i32)];
            all.push(Case { simd: false, ..case(kernel, [3, 1, 1], [block, 1, 1], given) });
        }
    }
    all
}

/// All kernels of a text, which take (words, words, count), whether `simd` takes them or not. Those whose name has a `w`
/// need whole warps.
fn any_cases(ptx: &str) -> Vec<Case> {
    let mut all = vec![];
    for kernel in hip_cpu::harness::kernels(&load(ptx).unwrap()).into_keys() {
        for block in if kernel.contains('w') { [32, 64, 96] } else { [32, 40, 100] } {
            let len = 2 * block as usize;
            let given = vec![Words(len, small), Words(len, zero), I(len as i32 - 5)];
            all.push(Case { simd: false, warp: false, ..case(&kernel, [2, 1, 1], [block, 1, 1], given) });
        }
    }
    all
}

/// Lanes part and meet again; each has words of its own to change.
#[test]
fn lanes_that_meet_again_give_the_same_bits() {
    let mut all = vec![];
    for kernel in hip_cpu::harness::kernels(&load(PARTS).unwrap()).into_keys() {
        for block in if kernel.contains("wide") { [32, 64, 96] } else { [32, 40, 128] } {
            let len = 2 * block as usize;
            let given = vec![Words(len, random), Words(len, zero), Words(len, zero), I(len as i32 - 5)];
            all.push(case(&kernel, [2, 1, 1], [block, 1, 1], given));
        }
    }
    compare(PARTS, &all);
}

/// Lanes read parts of structures that they share.
#[test]
fn structures_of_any_size_give_the_same_bits() {
    let mut all = vec![];
    for kernel in hip_cpu::harness::kernels(&load(STRUCTS).unwrap()).into_keys() {
        for (block, len) in [([32, 1, 1], 300), ([64, 1, 1], 613), ([128, 1, 1], 144), ([40, 1, 1], 450)] {
            let threads = 2 * block[0] as usize;
            let given =
                vec![Words(len, random), Words(threads, zero), Words(4 * threads, zero), I(len as i32)];
            all.push(case(&kernel, [2, 1, 1], block, given));
        }
    }
    compare(STRUCTS, &all);
}

/// Old code counts on the lanes of a warp storing together; `simd` keeps that for volatile shared memory.
#[test]
fn volatile_shared_memory_is_in_lockstep_within_a_warp() {
    let case =
        case("volatile_reduce", [3, 1, 1], [64, 1, 1], vec![Words(192, random), Words(192, zero), I(0)]);
    let mut how = How::new(3, 64);
    how.setting = Some(Setting::Simd);
    let found = result(KERNELS, &case, &how).unwrap();
    let mut expected = vec![];
    for block in 0..3 {
        let mut s: Vec<u32> = (0..64).map(|t| random(block * 64 + t)).collect();
        for step in [32, 16] {
            let before = s.clone();
            for t in 0..32 {
                s[t] = before[t].wrapping_add(before[(t + step) % 64]);
            }
        }
        expected.extend(s.iter().flat_map(|word| word.to_le_bytes()));
    }
    assert_eq!(found[1], expected);
}

/// Every kind of access that is made lane by lane, so often that the code for groups makes them by calls.
fn long(repeats: usize) -> String {
    const HEAD: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry long(.param .u64 words, .param .u64 out, .param .u32 n) {
.reg .pred %p<3>;
.reg .b16 %h<4>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
.local .align 16 .b8 window[64];
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %rd3, %r4, 16;
add.u64 %rd3, %rd3, %rd2;
mov.u32 %r5, %r4;
mov.u64 %rd10, window;
";
    const STEP: &str = "
and.b32 %r6, %r5, 252;
mul.wide.u32 %rd4, %r6, 4;
add.u64 %rd4, %rd4, %rd1;
ld.global.u32 %r7, [%rd4];
ld.global.v2.u32 {%r8, %r9}, [%rd4];
ld.global.v4.u32 {%r10, %r11, %r12, %r13}, [%rd4];
ld.global.u8 %h1, [%rd4+3];
ld.volatile.global.s16 %r14, [%rd4+6];
ld.relaxed.gpu.global.u32 %r15, [%rd4+4];
cvt.u32.u16 %r16, %h1;
add.u32 %r7, %r7, %r8;
xor.b32 %r7, %r7, %r9;
mad.lo.u32 %r7, %r7, %r10, %r11;
sub.u32 %r7, %r7, %r12;
xor.b32 %r7, %r7, %r13;
add.u32 %r7, %r7, %r14;
mad.lo.u32 %r7, %r7, 37, %r15;
xor.b32 %r7, %r7, %r16;
and.b32 %r6, %r7, 12;
cvt.u64.u32 %rd5, %r6;
add.u64 %rd5, %rd10, %rd5;
st.local.u32 [window+STEP], %r7;
st.local.v2.u16 [%rd5], {%h1, %h1};
ld.local.u32 %r8, [window+STEP];
ld.local.u16 %r9, [%rd5];
add.u32 %r5, %r7, %r8;
add.u32 %r5, %r5, %r9;
st.global.u32 [%rd3], %r5;
setp.gt.u32 %p1, %r5, 0x70000000;
@!%p1 bra skip_STEP;
ld.global.u32 %r8, [%rd4+8];
ld.global.v2.u32 {%r9, %r10}, [%rd4];
add.u32 %r5, %r5, %r8;
xor.b32 %r5, %r5, %r10;
st.global.v2.u32 [%rd3+4], {%r5, %r9};
st.volatile.global.u8 [%rd3+13], %r8;
skip_STEP:
";
    let mut text = HEAD.to_owned();
    for step in 0..repeats {
        text.push_str(
            &STEP.replace("skip_STEP", &format!("skip{step}")).replace("STEP", &(step % 8 * 4).to_string()),
        );
    }
    text + "ret;\n}\n"
}

#[test]
fn long_kernels_give_the_same_bits() {
    let given = || vec![Words(260, random), Words(4 * 3 * 70, zero), I(0)];
    let mut cases = vec![];
    for block in [64, 70] {
        cases.push(case("long", [3, 1, 1], [block, 1, 1], given()));
    }
    let ptx = long(24);
    compare(&ptx, &cases);

    let (program, mut how) = (load(&ptx).unwrap(), How::new(3, 64));
    (how.setting, how.width) = (Some(Setting::Simd), Some(16));
    let text = hip_cpu::harness::emit(&program, "long", &how).unwrap().text;
    assert!(text.contains("define internal"), "it is not as long as this test wants it");
}

/// Lanes at constant distances from each other, in shared and in global memory: pairs, rows of a tile, several words
/// per lane with gaps, doubles; for all lanes, for some, and in a group that is not full.
const DISTANCES: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry distances(.param .u64 words, .param .u64 out, .param .u32 n) {
.reg .pred %p<3>;
.reg .b32 %r<30>;
.reg .b64 %rd<12>;
.shared .align 16 .b8 keys[4096];
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %rd3, %r4, 32;
add.u64 %rd4, %rd3, %rd1;
add.u64 %rd5, %rd3, %rd2;
ld.global.v4.u32 {%r5, %r6, %r7, %r8}, [%rd4];
ld.global.v4.u32 {%r9, %r10, %r11, %r12}, [%rd4+16];
mov.u32 %r28, keys;
shl.b32 %r13, %r3, 3;
add.u32 %r14, %r28, %r13;
st.shared.u32 [%r14], %r5;
st.shared.u32 [%r14+4], %r6;
bar.sync 0;
and.b32 %r15, %r3, 3;
shl.b32 %r16, %r3, 1;
sub.u32 %r17, %r16, %r15;
shl.b32 %r18, %r17, 2;
add.u32 %r18, %r28, %r18;
ld.shared.u32 %r19, [%r18+16];
ld.shared.u32 %r20, [%r18];
and.b32 %r21, %r7, 1;
setp.eq.u32 %p1, %r21, 0;
@%p1 bra some;
st.shared.u32 [%r18], %r19;
st.shared.u32 [%r18+16], %r20;
some:
bar.sync 0;
shr.u32 %r22, %r3, 3;
shl.b32 %r22, %r22, 5;
shl.b32 %r23, %r15, 2;
or.b32 %r24, %r22, %r23;
add.u32 %r24, %r28, %r24;
ld.shared.u32 %r25, [%r24];
ld.shared.v2.u32 {%r26, %r27}, [%r14];
add.u32 %r25, %r25, %r26;
xor.b32 %r25, %r25, %r27;
st.global.v2.u32 [%rd5], {%r25, %r19};
st.global.u32 [%rd5+12], %r20;
and.b32 %r21, %r8, 3;
setp.ne.u32 %p2, %r21, 0;
@%p2 bra rest;
st.global.u32 [%rd5+8], %r9;
st.global.v2.u32 [%rd5+16], {%r10, %r11};
rest:
ld.global.u64 %rd6, [%rd4+8];
cvt.u64.u32 %rd7, %r12;
add.u64 %rd6, %rd6, %rd7;
st.global.u64 [%rd5+24], %rd6;
ret;
}
";

#[test]
fn lanes_at_constant_distances_give_the_same_bits() {
    let mut cases = vec![];
    for block in [8, 32, 40, 64, 104, 256] {
        // Eight threads exchange words.
        let len = 3 * block as usize;
        let given = vec![Words(8 * len, random), Words(8 * len, zero), I(0)];
        cases.push(case("distances", [3, 1, 1], [block, 1, 1], given));
    }
    compare(DISTANCES, &cases);
    let (program, mut how) = (load(DISTANCES).unwrap(), How::new(3, 64));
    (how.setting, how.vector_bits) = (Some(Setting::Simd), Some(512));
    let text = hip_cpu::harness::emit(&program, "distances", &how).unwrap().text;
    assert!(text.contains("load <16 x i32>") && text.contains("masked.store.v16i32"), "lane by lane");
}

/// The buffers afterwards.
fn result(ptx: &str, case: &Case, how: &How) -> Result<Vec<Vec<u8>>, Error> {
    let program = load(ptx)?;
    let mut buffers: Vec<Vec<u8>> = case
        .given
        .iter()
        .map(|given| match given {
            Words(n, make) => (0..*n).flat_map(|i| make(i).to_le_bytes()).collect(),
            Bytes(n, make) => (0..*n).map(make).collect(),
            _ => vec![],
        })
        .collect();
    let mut args: Vec<Arg<'_>> = case
        .given
        .iter()
        .zip(&mut buffers)
        .map(|(given, buffer)| match given {
            I(value) => Arg::u32(*value as u32),
            F(value) => Arg::f32(*value),
            Words(..) | Bytes(..) => Arg::Buffer(buffer),
        })
        .collect();
    run(&program, &case.kernel, how, &mut args)?;
    // DUMP=folder keeps the LLVM IR that was run.
    if let (Ok(folder), Some(setting @ (Setting::Simd | Setting::Warp))) =
        (std::env::var("DUMP"), how.setting)
    {
        let text = hip_cpu::harness::emit(&program, &case.kernel, how)?.text;
        let [x, y, z] = case.block;
        let (width, bits) = (how.width.unwrap_or(0), how.vector_bits.unwrap_or(0));
        let setting = setting.name();
        let name = format!("{folder}/{}-{x}x{y}x{z}-{setting}{width}-v{bits}.ll", case.kernel);
        std::fs::write(name, text).expect("DUMP is a folder that can be written");
    }
    Ok(buffers)
}

/// `PTX=file` takes the kernels of that file instead; they take (words, words, count).
#[test]
fn all_settings_give_the_same_bits() {
    if let Ok(file) = std::env::var("PTX") {
        let ptx = std::fs::read_to_string(file).unwrap();
        compare(&ptx, &any_cases(&ptx));
    } else {
        compare(KERNELS, &cases());
    }
}

#[test]
fn groups_of_several_rows_give_the_same_bits() {
    compare(ROWS, &rows());
}

#[test]
fn trees_of_barriers_give_the_same_bits() {
    compare(TREES, &trees());
}

#[test]
fn loops_over_the_grid_give_the_same_bits() {
    compare(ROUNDS, &rounds());
}

#[test]
fn waiting_warps_give_the_same_bits() {
    compare(WAITS, &waits());
}

#[test]
fn what_a_loop_waits_for_may_go_through_a_local_variable() {
    for (block, warps) in [(32, 1), (100, 4), (256, 8)] {
        let len = 2 * block as usize;
        let given = vec![Words(len, small), Words(len, zero), I(0)];
        let case = case("kept", [2, 1, 1], [block, 1, 1], given);
        for setting in [None, Some(Setting::Lane)] {
            let mut how = How::new(2, block);
            how.setting = setting;
            let found = result(WAITS, &case, &how).unwrap();
            let words = (0..len).map(|i| small(i) + 1000 * (warps - 1 - i as u32 % block / 32));
            assert_eq!(found[1], words.flat_map(u32::to_le_bytes).collect::<Vec<_>>(), "{block} {setting:?}");
        }
    }
}

/// A kernel that takes a word and gives one for each thread, in three blocks of each of these lengths.
fn a_word_each(kernel: &str, blocks: &[u32]) -> Vec<Case> {
    let of = |&block: &u32| {
        let len = 3 * block as usize;
        case(kernel, [3, 1, 1], [block, 1, 1], vec![Words(len, small), Words(len, zero), I(0)])
    };
    blocks.iter().map(of).collect()
}

/// Threads of one parity sort their word and their neighbour's: all read both, so what some store others have read too.
const NEIGHBOURS: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry neighbours(.param .u64 words, .param .u64 out, .param .u32 n) {
.reg .pred %p<6>;
.reg .b32 %r<20>;
.reg .b64 %rd<8>;
.shared .align 16 .b8 keys[4112];
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mad.lo.u32 %r4, %r1, %r2, %r3;
mul.wide.u32 %rd3, %r4, 4;
add.u64 %rd4, %rd3, %rd1;
add.u64 %rd5, %rd3, %rd2;
ld.global.u32 %r5, [%rd4];
mov.u32 %r6, keys;
shl.b32 %r7, %r3, 2;
add.u32 %r8, %r6, %r7;
st.shared.u32 [%r8], %r5;
mov.u32 %r9, 0;
// The last one has a neighbour that is larger than all.
add.u32 %r12, %r3, 1;
setp.ne.u32 %p1, %r12, %r2;
@%p1 bra round;
mov.u32 %r12, 0xffffffff;
st.shared.u32 [%r8+4], %r12;
round:
bar.sync 0;
ld.shared.u32 %r10, [%r8];
ld.shared.u32 %r11, [%r8+4];
xor.b32 %r12, %r3, %r9;
and.b32 %r12, %r12, 1;
setp.eq.u32 %p1, %r12, 0;
setp.gt.u32 %p2, %r10, %r11;
and.pred %p3, %p1, %p2;
@!%p3 bra next;
st.shared.u32 [%r8], %r11;
st.shared.u32 [%r8+4], %r10;
next:
bar.sync 0;
ld.shared.u32 %r13, [%r8];
setp.gt.u32 %p4, %r13, 500;
@!%p4 bra small;
add.u32 %r13, %r13, 3;
st.shared.u32 [%r8], %r13;
small:
add.u32 %r9, %r9, 1;
setp.lt.u32 %p5, %r9, 9;
@%p5 bra round;
st.global.u32 [%rd5], %r13;
ret;
}
";

#[test]
fn what_some_lanes_store_over_what_all_have_read_stays_theirs() {
    compare(NEIGHBOURS, &a_word_each("neighbours", &[32, 40, 64, 256]));
}

/// Of the threads one in `n` or so does atomics on words of shared memory that others may have too.
const SPARSE: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry sparse(.param .u64 words, .param .u64 out, .param .u32 n) {
.reg .pred %p<4>;
.reg .b32 %r<20>;
.reg .b64 %rd<8>;
.shared .align 4 .b8 bins[1280];
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [out];
ld.param.u32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ntid.x;
mov.u32 %r4, %ctaid.x;
mad.lo.u32 %r5, %r4, %r3, %r2;
mul.wide.u32 %rd3, %r5, 4;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
ld.global.u32 %r6, [%rd4];
mov.u32 %r7, bins;
mov.u32 %r8, %r2;
first:
mul.lo.u32 %r9, %r8, 0x01030507;
mad.lo.u32 %r10, %r8, 4, %r7;
st.shared.u32 [%r10], %r9;
add.u32 %r8, %r8, %r3;
setp.lt.u32 %p1, %r8, 320;
@%p1 bra first;
bar.sync 0;
rem.u32 %r11, %r6, %r1;
setp.ne.u32 %p2, %r11, 0;
@%p2 bra none;
shr.u32 %r12, %r6, 7;
and.b32 %r12, %r12, 63;
mad.lo.u32 %r13, %r12, 4, %r7;
red.shared.add.u32 [%r13], %r6;
red.shared.min.u32 [%r13+256], %r6;
red.shared.max.s32 [%r13+512], %r6;
red.shared.xor.b32 [%r13+768], %r6;
red.shared.and.b32 [%r13+1024], %r6;
none:
bar.sync 0;
mov.u32 %r14, 0;
mov.u32 %r8, %r2;
last:
mad.lo.u32 %r10, %r8, 4, %r7;
ld.shared.u32 %r15, [%r10];
mad.lo.u32 %r14, %r14, 31, %r15;
add.u32 %r8, %r8, %r3;
setp.lt.u32 %p3, %r8, 320;
@%p3 bra last;
st.global.u32 [%rd5], %r14;
ret;
}
";

#[test]
fn atomics_of_few_lanes_and_of_many_give_the_same_bits() {
    let given = |n| vec![Words(3 * 320, random), Words(3 * 320, zero), I(n)];
    let cases: Vec<Case> =
        [1, 2, 3, 4, 5, 8, 40].map(|n| case("sparse", [3, 1, 1], [320, 1, 1], given(n))).into();
    compare(SPARSE, &cases);
}

/// Each thread reads what threads before it have, of shared memory and by 32-bit indices of global memory, where there are any: lane 0's
/// address lies before all of it. A sum over steps that double, as in scans.
const BEHIND: &str = ".version 8.0
.target sm_80
.address_size 64
.visible .entry behind(.param .u64 words, .param .u64 out, .param .u32 n) {
.reg .pred %p<4>;
.reg .b32 %r<30>;
.reg .b64 %rd<20>;
.shared .align 4 .b8 line[4096];
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [out];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mov.u32 %r4, %ntid.x;
mad.lo.u32 %r5, %r3, %r4, %r2;
mul.wide.u32 %rd3, %r5, 4;
add.u64 %rd4, %rd1, %rd3;
add.u64 %rd5, %rd2, %rd3;
ld.global.u32 %r6, [%rd4];
shl.b32 %r7, %r2, 2;
mov.u32 %r8, line;
add.u32 %r9, %r8, %r7;
st.shared.u32 [%r9], %r6;
bar.sync 0;
mov.u32 %r20, 0;
mov.u32 %r10, 1;
again:
sub.u32 %r11, %r2, %r10;
shl.b32 %r12, %r11, 2;
add.u32 %r13, %r8, %r12;
setp.lt.u32 %p1, %r2, %r10;
@%p1 bra none;
ld.shared.u32 %r14, [%r13];
add.u32 %r20, %r20, %r14;
sub.u32 %r15, %r5, %r10;
mul.wide.u32 %rd6, %r15, 4;
add.u64 %rd7, %rd1, %rd6;
ld.global.u32 %r16, [%rd7];
mad.lo.u32 %r20, %r16, 3, %r20;
none:
setp.lt.u32 %p2, %r2, 4;
@%p2 bra no4;
sub.u32 %r17, %r2, 4;
mul.wide.u32 %rd8, %r17, 4;
add.u64 %rd9, %rd1, %rd8;
ld.global.u32 %r18, [%rd9];
mad.lo.u32 %r20, %r18, 5, %r20;
shl.b32 %r21, %r17, 3;
add.u32 %r22, %r8, %r21;
shl.b32 %r24, %r17, 1;
setp.ge.u32 %p3, %r24, %r4;
@%p3 bra no4;
ld.shared.u32 %r23, [%r22];
mad.lo.u32 %r20, %r23, 7, %r20;
no4:
shl.b32 %r10, %r10, 1;
setp.lt.u32 %p2, %r10, %r4;
@%p2 bra again;
st.global.u32 [%rd5], %r20;
ret;
}
";

#[test]
fn what_threads_before_have_is_read_where_there_are_any() {
    compare(BEHIND, &a_word_each("behind", &[32, 40, 64, 69, 256]));
}

/// Blocks of one thread that matters: each waits for the block `ahead` of it and adds what that had.
fn chain(ahead: &str) -> String {
    const TEXT: &str = ".version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 flags[4096];
.visible .entry chain(.param .u64 words, .param .u64 out, .param .u32 n) {
.reg .pred %p<5>;
.reg .b32 %r<20>;
.reg .b64 %rd<12>;
.shared .align 4 .u32 carried;
ld.param.u64 %rd1, [words];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %ntid.x;
mov.u32 %r3, %tid.x;
mov.u32 %r4, %nctaid.x;
mad.lo.u32 %r5, %r1, %r2, %r3;
setp.ne.u32 %p1, %r3, 0;
@%p1 bra meet;
AHEAD
mov.u32 %r7, 1;
@%p2 bra first;
mul.wide.u32 %rd3, %r6, 4;
mov.u64 %rd4, flags;
add.u64 %rd4, %rd4, %rd3;
again:
ld.volatile.global.u32 %r7, [%rd4];
setp.eq.u32 %p3, %r7, 0;
@%p3 bra again;
first:
mul.wide.u32 %rd5, %r1, 4;
mov.u64 %rd6, flags;
add.u64 %rd6, %rd6, %rd5;
mad.lo.u32 %r8, %r7, 3, 1;
st.volatile.global.u32 [%rd6], %r8;
st.shared.u32 [carried], %r8;
meet:
bar.sync 0;
ld.shared.u32 %r9, [carried];
add.u32 %r9, %r9, %r3;
mul.wide.u32 %rd7, %r5, 4;
add.u64 %rd8, %rd2, %rd7;
st.global.u32 [%rd8], %r9;
ret;
}
";
    TEXT.replace("AHEAD", ahead)
}

#[test]
fn blocks_wait_for_blocks_before_and_behind_them() {
    for (ahead, is_back) in [
        ("sub.u32 %r6, %r1, 1; setp.eq.u32 %p2, %r1, 0;", true),
        ("add.u32 %r6, %r1, 1; setp.eq.u32 %p2, %r6, %r4;", false),
    ] {
        let ptx = chain(ahead);
        for (grid, block) in [(1u32, 32u32), (7, 100), (200, 64)] {
            let len = (grid * block) as usize;
            let given = vec![Words(1, zero), Words(len, zero), I(0)];
            let case = case("chain", [grid, 1, 1], [block, 1, 1], given);
            let mut how = How::new(grid, block);
            how.setting = Some(Setting::Simd);
            let found = result(&ptx, &case, &how).unwrap();
            let words = (0..len as u32).flat_map(|i| {
                let steps = if is_back { i / block } else { grid - 1 - i / block };
                let carried = (0..=steps).fold(1u32, |carried, _| carried.wrapping_mul(3).wrapping_add(1));
                carried.wrapping_add(i % block).to_le_bytes()
            });
            assert_eq!(found[1], words.collect::<Vec<u8>>(), "{grid} blocks of {block}");
        }
    }
}

#[test]
fn random_control_flow_gives_the_same_bits() {
    compare(RANDOM, &any_cases(RANDOM));
}

fn compare(ptx: &str, cases: &[Case]) {
    let wanted = std::env::var("KERNEL").unwrap_or_default();
    let draw = Draw::now();
    let is_drawn = |nth: usize, way: usize| draw.takes(2, (nth, way));
    // Each third one: those of a kernel follow each other, so most kernels are among them. What is asked for by name runs whole.
    let is_named = !wanted.is_empty() || std::env::var_os("PTX").is_some();
    let is_case_drawn = |nth: usize| is_named || draw.takes_nth(3, nth);
    let cases = cases.iter().filter(|case| case.kernel.contains(&wanted)).enumerate();
    let cases: Vec<(usize, &Case)> = cases.filter(|(nth, _)| is_case_drawn(*nth)).collect();
    let compare = |&(nth, case): &(usize, &Case)| {
        let mut failures: Vec<String> = vec![];
        let mut n_compared = 0;
        let mut how = How::new(1, 1);
        (how.grid, how.block) = (case.grid, case.block);
        let label = format!("{} {:?}×{:?}", case.kernel, case.grid, case.block);
        let expected = match result(ptx, case, &how.clone().lane()) {
            Ok(expected) => expected,
            Err(error) => {
                failures.push(format!("{label} in lane: {error}"));
                return (n_compared, failures);
            }
        };
        let (mut ways, mut open_ways) = (vec![], vec![]);
        let choices = [
            (Setting::Warp, None, None),
            (Setting::Simd, None, None),
            (Setting::Simd, Some(1), None),
            (Setting::Simd, Some(4), None),
            (Setting::Simd, Some(32), None),
            (Setting::Simd, Some(64), None),
            (Setting::Simd, Some(16), Some(256)),
            (Setting::Simd, Some(32), Some(256)),
            (Setting::Simd, Some(8), Some(128)),
        ];
        for (way, (setting, width, bits)) in choices.into_iter().enumerate() {
            let how = How { setting: Some(setting), width, vector_bits: bits, ..how.clone() };
            if width.is_none() || is_drawn(nth, way) {
                ways.push(how.clone());
            }
            // Of wider groups, blocks of any length are no multiple.
            if width.is_none_or(|width| width <= 32) {
                open_ways.extend(how.opened());
            }
        }
        open_ways.extend(how.clone().lane().opened());
        // By code for blocks of any length in one way a case: all have their turn.
        if !open_ways.is_empty() {
            ways.push(open_ways.swap_remove(nth % open_ways.len()));
        }
        ways.push(how.clone().baseline());
        for (way, setting) in [Setting::Warp, Setting::Simd].into_iter().enumerate() {
            if is_drawn(nth, choices.len() + way) {
                ways.push(How { setting: Some(setting), ..how.clone().thrifty() });
            }
        }
        for how in ways {
            let (setting, width, bits) = (how.setting.unwrap_or(Setting::Lane), how.width, how.vector_bits);
            let is_wanted = if setting == Setting::Warp { case.warp } else { case.simd };
            let open = if how.open { " open" } else { "" };
            let open = match how.effort {
                Effort::Baseline => " baseline",
                Effort::Thrifty => " for less",
                Effort::Best => open,
            };
            let label = format!("{label} in {}{open} width {width:?} bits {bits:?}", setting.name());
            match result(ptx, case, &how) {
                Ok(found) => {
                    n_compared += 1;
                    for (nth, (e, f)) in expected.iter().zip(&found).enumerate() {
                        if let Some(at) = (0..e.len()).find(|&at| e[at] != f[at]) {
                            let count = (0..e.len()).filter(|&at| e[at] != f[at]).count();
                            failures
                                .push(format!("{label}: buffer {nth} differs in {count} bytes, first {at}"));
                        }
                    }
                }
                Err(Error::Refused { why, .. }) if !is_wanted || why.contains("groups of 32") => {}
                Err(error) => failures.push(format!("{label}: {error}")),
            }
        }
        (n_compared, failures)
    };
    let (compared, failures): (Vec<usize>, Vec<Vec<String>>) =
        cases.par_iter().with_max_len(1).map(compare).unzip();
    println!("{} runs compared", compared.iter().sum::<usize>());
    let failures = failures.concat();
    assert!(failures.is_empty(), "{} failures:\n{}", failures.len(), failures.join("\n"));
}
