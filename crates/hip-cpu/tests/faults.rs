//! What a kernel does wrong ends its grid with the same fault in settings `lane`, `warp` and `simd`, and the next launch is as good as ever.

use hip_cpu::exec::Fault;
use hip_cpu::harness::{Arg, Error, How, load, run};

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[3] = {33, 33, 0};
.func (.param .b32 r) twice(.param .b32 a)
{
    .reg .b32 %r<2>;
    ld.param.u32 %r1, [a];
    add.u32 %r1, %r1, %r1;
    st.param.b32 [r], %r1;
    ret;
}
.global .align 8 .u64 table[2] = {twice, 0};
.visible .entry traps(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 40;
    @%p ret;
    trap;
}
.visible .entry stops(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    mov.u32 %r1, %tid.x;
    setp.eq.u32 %p, %r1, 40;
    @%p brkpt;
    ret;
}
.visible .entry asserts(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<3>;
    .reg .b64 %rd<3>;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 41;
    @%p ret;
    mov.u64 %rd1, text;
    cvta.global.u64 %rd2, %rd1;
    mov.u32 %r2, 7;
    {
    .param .b64 m;
    .param .b64 f;
    .param .b32 l;
    .param .b64 n;
    .param .b64 s;
    st.param.b64 [m], %rd2;
    st.param.b64 [f], %rd2;
    st.param.b32 [l], %r2;
    st.param.b64 [n], %rd2;
    st.param.b64 [s], 1;
    call __assertfail, (m, f, l, n, s);
    }
    ret;
}
.visible .entry stores(.param .u64 out)
{
    .reg .pred %p;
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    mov.u32 %r1, %tid.x;
    setp.ne.u32 %p, %r1, 42;
    @%p ret;
    mov.u64 %rd1, 24;
    st.global.u32 [%rd1], %r1;
    ret;
}
.visible .entry calls(.param .u64 out)
{
    .reg .b32 %r<3>;
    .reg .b64 %rd<4>;
    mov.u32 %r1, %tid.x;
    shr.u32 %r2, %r1, 5;
    mov.u64 %rd1, table;
    mul.wide.u32 %rd2, %r2, 8;
    add.u64 %rd1, %rd1, %rd2;
    ld.global.u64 %rd3, [%rd1];
    {
    .param .b32 a;
    .param .b32 r;
    st.param.b32 [a], %r1;
    prototype: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (r), %rd3, (a), prototype;
    ld.param.b32 %r2, [r];
    }
    ret;
}
.visible .entry works(.param .u64 out)
{
    .reg .b32 %r<2>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, 77;
    st.global.u32 [%rd1], %r1;
    ret;
}
";

#[test]
fn a_fault_is_the_same_in_every_setting_and_the_next_launch_works() {
    let program = load(PTX).unwrap();
    let expected = [
        ("traps", Fault::Trap),
        // No debugger is there to take it.
        ("stops", Fault::Trap),
        ("asserts", Fault::Assert),
        ("stores", Fault::Address(24)),
        ("calls", Fault::InvalidPc),
    ];
    for (kernel, fault) in expected {
        for how in [How::new(2, 64).lane(), How::new(2, 64).warp(), How::new(2, 64).simd(16)] {
            let mut out = [0u8; 4];
            match run(&program, kernel, &how, &mut [Arg::Buffer(&mut out)]) {
                Err(Error::Fault(got)) => assert_eq!(got, fault, "{kernel} in {:?}", how.setting),
                other => panic!("{kernel} in {:?}: {other:?}", how.setting),
            }
            run(&program, "works", &how, &mut [Arg::Buffer(&mut out)]).unwrap();
            assert_eq!(out, [77, 0, 0, 0]);
        }
    }
}
