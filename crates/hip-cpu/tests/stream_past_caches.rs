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
