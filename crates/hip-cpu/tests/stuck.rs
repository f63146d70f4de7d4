//! A block whose threads all wait for what nobody will do fails with the same account of it in settings `lane` and `warp`.

use hip_cpu::exec::Fault;
use hip_cpu::harness::{Arg, Error, How, load, run};

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry half(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    mov.u32 %r1, %tid.x;
    setp.ge.u32 %p, %r1, 32;
    @%p ret;
    bar.sync 1, 64;
    ret;
}
.visible .entry apart(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<4>;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    barrier.sync %r2, 96;
    ret;
}
";

/// How many threads are at a barrier and how many have ended.
fn stuck(kernel: &str, how: How) -> (u32, u32) {
    let program = load(PTX).unwrap();
    let mut out = [0u8; 4];
    match run(&program, kernel, &how, &mut [Arg::Buffer(&mut out)]) {
        Err(Error::Fault(Fault::Deadlock(stuck))) => (stuck.at_barrier, stuck.ended),
        other => panic!("{kernel}: {other:?}"),
    }
}

#[test]
fn a_barrier_that_a_warp_never_comes_to() {
    for how in [How::new(1, 64).lane(), How::new(1, 64).warp()] {
        assert_eq!(stuck("half", how), (32, 32));
    }
}

#[test]
fn warps_at_different_barriers() {
    for how in [How::new(2, 72).lane(), How::new(2, 72).warp()] {
        assert_eq!(stuck("apart", how), (72, 0));
    }
}

/// Both settings say where the threads wait: the lines of the PTX.
#[test]
fn threads_that_wait_for_ever_are_told_with_their_lines() {
    let program = load(PTX).unwrap();
    let line = |text: &str| 1 + PTX.lines().position(|line| line.contains(text)).unwrap();
    let (half, apart) = (line("bar.sync 1, 64"), line("barrier.sync %r2, 96"));
    for (kernel, line) in [("half", half), ("apart", apart)] {
        for how in [How::new(1, 64).lane(), How::new(1, 64).warp()] {
            let mut out = [0u8; 4];
            let Err(Error::Fault(Fault::Deadlock(stuck))) =
                run(&program, kernel, &how, &mut [Arg::Buffer(&mut out)])
            else {
                panic!("{kernel} is not stuck")
            };
            let places = hip_cpu::exec::sanitize::places(stuck, &program.lines, how.block);
            let expected = format!("thread (0,0,0) in block (0,0,0) waits at PTX line {line} of test.ptx");
            assert_eq!(places, [expected], "{kernel} in {:?}", how.setting);
        }
    }
}
