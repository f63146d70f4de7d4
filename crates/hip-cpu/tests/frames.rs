//! Code that LLVM makes in little time has a place on the stack for each vector that is alive across a branch. A block of a long
//! kernel that waits for other blocks has a stack of its own, which has to have room for all of them.

use std::fmt::Write as _;

use compiler::back::cpu::Setting;
use hip_cpu::harness::{Arg, How, emit, load, run};

const BLOCKS: usize = 3;
const THREADS: usize = 64;
/// Numbers that each thread holds while it waits.
const HELD: usize = 3_000;

/// Each thread multiplies its word by all odd numbers, waits until the block before its own is done, and adds them up.
fn text() -> String {
    let mut text = format!(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry held(.param .u64 words, .param .u64 sums, .param .u64 done) {{\n\
         .reg .b32 %word, %tid, %block, %before, %done, %at;\n.reg .b64 %x<{HELD}>, %wide, %sum, %words, %sums, %flags, %flag;\n.reg .pred %p;\n\
         ld.param.u64 %words, [words];\nld.param.u64 %sums, [sums];\nld.param.u64 %flags, [done];\n\
         mov.u32 %tid, %tid.x;\nmov.u32 %block, %ctaid.x;\nmad.wide.u32 %words, %tid, 4, %words;\n\
         ld.global.u32 %word, [%words];\ncvt.u64.u32 %wide, %word;\n"
    );
    for nth in 0..HELD {
        writeln!(text, "mul.lo.u64 %x{nth}, %wide, {};", 2 * nth + 1).unwrap();
    }
    text.push_str(
        "setp.eq.u32 %p, %block, 0;\n@%p bra add;\nsub.u32 %before, %block, 1;\nmad.wide.u32 %flag, %before, 4, %flags;\n\
         wait:\nld.acquire.gpu.global.u32 %done, [%flag];\nsetp.eq.u32 %p, %done, 0;\n@%p bra wait;\nadd:\nmov.u64 %sum, 0;\n",
    );
    for nth in 0..HELD {
        // LLVM looks at all loads of a basic block for each of them where vectors are of 256 bits, so there are many blocks.
        if nth % 100 == 0 {
            writeln!(
                text,
                "setp.gt.u32 %p, %block, {nth};\n@%p bra part{nth};\nadd.u64 %sum, %sum, 1;\npart{nth}:"
            )
            .unwrap();
        }
        writeln!(text, "mad.lo.u64 %sum, %sum, 3, %x{nth};").unwrap();
    }
    write!(
        text,
        "mad.lo.u32 %at, %block, {THREADS}, %tid;\nmad.wide.u32 %sums, %at, 8, %sums;\nbar.sync 0;\nst.global.u64 [%sums], %sum;\nbar.sync 0;\n\
         setp.ne.u32 %p, %tid, 0;\n@%p bra end;\nmad.wide.u32 %flag, %block, 4, %flags;\nmov.u32 %done, 1;\n\
         st.release.gpu.global.u32 [%flag], %done;\nend:\nret;\n}}\n"
    )
    .unwrap();
    text
}

#[test]
fn a_block_that_waits_has_room_for_all_that_it_holds() {
    let program = load(&text()).unwrap();
    let mut how = How::new(BLOCKS as u32, THREADS as u32).simd(32).thrifty();
    how.setting = Some(Setting::Simd);
    assert!(emit(&program, "held", &how).unwrap().stackful, "blocks run on stacks of their own");
    let words: Vec<u32> = (0..THREADS).map(|at| (at as u32).wrapping_mul(0x9e37_79b9)).collect();
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    let (mut sums, mut done) = (vec![0u8; 8 * BLOCKS * THREADS], vec![0u8; 4 * BLOCKS]);
    let mut args = [&mut bytes, &mut sums, &mut done].map(|buffer| Arg::Buffer(buffer));
    run(&program, "held", &how, &mut args).unwrap();
    for (at, sum) in sums.chunks(8).enumerate() {
        let word = u64::from(words[at % THREADS]);
        let block = at / THREADS;
        let expected = (0..HELD).fold(0u64, |sum, nth| {
            let sum = sum.wrapping_add(u64::from(nth % 100 == 0 && block <= nth));
            sum.wrapping_mul(3).wrapping_add(word.wrapping_mul(2 * nth as u64 + 1))
        });
        assert_eq!(u64::from_le_bytes(sum.try_into().unwrap()), expected, "thread {at}");
    }
}
