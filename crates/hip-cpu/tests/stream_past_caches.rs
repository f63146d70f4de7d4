//! A grid that writes more than the caches hold gives what a small one gives, wherever its arrays start.

use hip_cpu::harness::{Arg, How, load, run};

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 a, .param .u64 b, .param .u64 c, .param .u32 n)
{
    .reg .pred %p;
    .reg .b32 %r<8>;
    .reg .b64 %rd<8>;
    ld.param.u32 %r1, [n];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r2, 256, %r3;
    setp.ge.s32 %p, %r4, %r1;
    @%p ret;
    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [c];
    mul.wide.s32 %rd4, %r4, 4;
    add.s64 %rd1, %rd1, %rd4;
    add.s64 %rd2, %rd2, %rd4;
    add.s64 %rd3, %rd3, %rd4;
    ld.global.u32 %r5, [%rd1];
    ld.global.u32 %r6, [%rd2];
    add.u32 %r7, %r5, %r6;
    st.global.u32 [%rd3], %r7;
    ret;
}
";

/// A block has `parts` times 1024 words, takes each stripe of 256 into shared memory, and stores it the other way round.
const ROWS: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry turn(.param .u64 a, .param .u64 c, .param .u32 parts)
{
    .reg .pred %p;
    .reg .b32 %t, %row, %parts, %i, %x, %own, %other;
    .reg .b64 %a, %c, %at;
    .shared .align 16 .b8 words[4096];
    ld.param.u64 %a, [a];
    ld.param.u64 %c, [c];
    ld.param.u32 %parts, [parts];
    mov.u32 %row, %ctaid.x;
    mul.lo.u32 %row, %row, %parts;
    mov.u32 %t, %tid.x;
    mul.wide.u32 %at, %row, 4096;
    add.u64 %a, %a, %at;
    add.u64 %c, %c, %at;
    mul.wide.u32 %at, %t, 4;
    add.u64 %a, %a, %at;
    add.u64 %c, %c, %at;
    mov.u32 %own, words;
    mad.lo.u32 %own, %t, 4, %own;
    sub.u32 %t, 255, %t;
    mov.u32 %other, words;
    mad.lo.u32 %other, %t, 4, %other;
    mov.u32 %i, 0;
PART:
    ld.global.u32 %x, [%a];
    st.shared.u32 [%own], %x;
    ld.global.u32 %x, [%a+1024];
    st.shared.u32 [%own+1024], %x;
    ld.global.u32 %x, [%a+2048];
    st.shared.u32 [%own+2048], %x;
    ld.global.u32 %x, [%a+3072];
    st.shared.u32 [%own+3072], %x;
    bar.sync 0;
    ld.shared.u32 %x, [%other];
    st.global.u32 [%c], %x;
    ld.shared.u32 %x, [%other+1024];
    st.global.u32 [%c+1024], %x;
    ld.shared.u32 %x, [%other+2048];
    st.global.u32 [%c+2048], %x;
    ld.shared.u32 %x, [%other+3072];
    st.global.u32 [%c+3072], %x;
    bar.sync 0;
    add.u64 %a, %a, 4096;
    add.u64 %c, %c, 4096;
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, %parts;
    @%p bra PART;
    ret;
}
";

/// `words` words that start `shift` bytes behind a line's start.
fn place(all: &mut [u8], words: usize, shift: usize) -> &mut [u8] {
    let start = all.as_ptr().align_offset(64) + shift;
    &mut all[start..start + 4 * words]
}

#[test]
fn large_results_are_whole() {
    // 33 MiB and a part of a block.
    let n = (33 << 18) + 77;
    let program = load(PTX).unwrap();
    for shift in [0, 4, 32] {
        let word = |bytes: &[u8], at: usize| u32::from_le_bytes(bytes[4 * at..][..4].try_into().unwrap());
        let mut room = [vec![1u8; 4 * n + 192], vec![2u8; 4 * n + 192], vec![9u8; 4 * n + 192]];
        let [a, b, c] = &mut room;
        let (a, b, c) = (place(a, n, 0), place(b, n, 8), place(c, n + 1, shift));
        for (at, bytes) in a.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&(at as u32).to_le_bytes());
        }
        let how = How::new(n.div_ceil(256) as u32, 256).simd(32);
        let mut args = [Arg::Buffer(a), Arg::Buffer(b), Arg::Buffer(c), Arg::u32(n as u32)];
        run(&program, "add", &how, &mut args).unwrap();
        let [Arg::Buffer(_), _, Arg::Buffer(c), _] = &args else { unreachable!() };
        let wrong = (0..n).find(|&at| word(c, at) != at as u32 + 0x0202_0202);
        assert_eq!(wrong, None, "shift {shift}");
        assert_eq!(word(c, n), 0x0909_0909, "shift {shift}: behind the end");
    }
}

#[test]
fn large_rows_are_whole_that_loops_store_behind_barriers() {
    // A loop's stores count once, so these are 33 MiB, and in truth twice as much.
    let (parts, blocks) = (2, 33 << 8);
    let n = 1024 * parts * blocks;
    let program = load(ROWS).unwrap();
    let text = hip_cpu::harness::emit(&program, "turn", &How::new(blocks as u32, 256).simd(32)).unwrap().text;
    assert!(text.contains("!nontemporal"));
    for shift in [0, 4] {
        let mut room = [vec![1u8; 4 * n + 128], vec![9u8; 4 * n + 132]];
        let [a, c] = &mut room;
        let (a, c) = (place(a, n, 0), place(c, n + 1, shift));
        for (at, bytes) in a.chunks_exact_mut(4).enumerate() {
            bytes.copy_from_slice(&(at as u32).to_le_bytes());
        }
        let how = How::new(blocks as u32, 256).simd(32);
        let mut args = [Arg::Buffer(a), Arg::Buffer(c), Arg::u32(parts as u32)];
        run(&program, "turn", &how, &mut args).unwrap();
        let [_, Arg::Buffer(c), _] = &args else { unreachable!() };
        let word = |at: usize| u32::from_le_bytes(c[4 * at..][..4].try_into().unwrap());
        assert_eq!((0..n).find(|&at| word(at) as usize != at ^ 255), None, "shift {shift}");
        assert_eq!(word(n), 0x0909_0909, "shift {shift}: behind the end");
    }
}
