//! What setting `lane` promises about recursion beyond values: depth within reason works, endless depth is an error.

use hip_cpu::harness::{self, Arg, Error, How};

const DEPTH: &str = "
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 result) down(.param .b32 n)
{
    .local .align 4 .b8 frame[64];
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<2>;
    ld.param.u32 %r1, [n];
    mov.u64 %rd1, frame;
    st.local.u32 [%rd1], %r1;
    mov.u32 %r3, 0;
    setp.eq.u32 %p, %r1, 0;
    @%p bra END;
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 p0;
        .param .b32 r0;
        st.param.b32 [p0], %r2;
        call.uni (r0), down, (p0);
        ld.param.b32 %r3, [r0];
    }
    ld.local.u32 %r4, [%rd1];
    add.u32 %r3, %r3, %r4;
END:
    st.param.b32 [result], %r3;
    ret;
}
.visible .entry sum(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<2>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    {
        .param .b32 p0;
        .param .b32 r0;
        st.param.b32 [p0], %r1;
        call.uni (r0), down, (p0);
        ld.param.b32 %r2, [r0];
    }
    st.global.u32 [%rd1], %r2;
    ret;
}";

fn sum(n: u32) -> Result<u32, Error> {
    let program = harness::load(DEPTH)?;
    let mut out = [0u8; 4];
    harness::run(&program, "sum", &How::new(1, 1), &mut [Arg::Buffer(&mut out), Arg::u32(n)])?;
    Ok(u32::from_le_bytes(out))
}

#[test]
fn a_thousand_levels_fit() {
    assert_eq!(sum(1000).unwrap(), 500_500);
}

#[test]
fn endless_recursion_is_an_error_and_not_a_crash() {
    // 0 - 1 goes round through all 2^32 numbers.
    let error = sum(u32::MAX).unwrap_err();
    assert!(matches!(&error, Error::Fault(hip_cpu::exec::Fault::Stack)), "{error}");
    assert_eq!(sum(3).unwrap(), 6, "the next launch works");
}

/// Threads go `n` levels down and wait at each; on the way back the last one to come up touches address 8.
const WAITING: &str = "
.version 8.0
.target sm_80
.address_size 64
.func (.param .b32 result) down(.param .b32 n, .param .b32 bad)
{
    .reg .pred %p;
    .reg .b32 %r<6>;
    .reg .b64 %rd<2>;
    ld.param.u32 %r1, [n];
    ld.param.u32 %r4, [bad];
    mov.u32 %r3, 0;
    setp.eq.u32 %p, %r1, 0;
    @%p bra END;
    bar.sync 0;
    sub.u32 %r2, %r1, 1;
    {
        .param .b32 p0;
        .param .b32 p1;
        .param .b32 r0;
        st.param.b32 [p0], %r2;
        st.param.b32 [p1], %r4;
        call.uni (r0), down, (p0, p1);
        ld.param.b32 %r3, [r0];
    }
    add.u32 %r3, %r3, 1;
    setp.ne.u32 %p, %r3, %r4;
    mov.u64 %rd1, 8;
    @!%p st.global.u32 [%rd1], %r3;
    bar.sync 0;
END:
    st.param.b32 [result], %r3;
    ret;
}
.visible .entry wait(.param .u64 out, .param .u32 n, .param .u32 bad)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r1, [n];
    ld.param.u32 %r2, [bad];
    {
        .param .b32 p0;
        .param .b32 p1;
        .param .b32 r0;
        st.param.b32 [p0], %r1;
        st.param.b32 [p1], %r2;
        call.uni (r0), down, (p0, p1);
        ld.param.b32 %r3, [r0];
    }
    st.global.u32 [%rd1], %r3;
    ret;
}";

#[test]
fn a_fault_among_waiting_recursions_ends_the_grid_and_nothing_else() {
    let program = harness::load(WAITING).unwrap();
    let wait = |n: u32, bad: u32| {
        let mut out = [0u8; 4];
        let arguments = &mut [Arg::Buffer(&mut out), Arg::u32(n), Arg::u32(bad)];
        harness::run(&program, "wait", &How::new(8, 64), arguments).map(|()| u32::from_le_bytes(out))
    };
    for _ in 0..3 {
        assert_eq!(wait(50, 0).unwrap(), 50);
        let error = wait(50, 20).unwrap_err();
        assert!(matches!(&error, Error::Fault(hip_cpu::exec::Fault::Address(8))), "{error}");
    }
    let error = wait(u32::MAX, 0).unwrap_err();
    assert!(matches!(&error, Error::Fault(hip_cpu::exec::Fault::Stack)), "{error}");
    assert_eq!(wait(7, 0).unwrap(), 7);
}
