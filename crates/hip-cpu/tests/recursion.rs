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

/// Each level multiplies matrices with all lanes, and loads one: rows of A are all 1, all 2 and so on, B is ones.
const PRODUCTS: &str = "
.version 8.0
.target sm_80
.address_size 64
.shared .align 16 .b8 tile[128];
.func (.param .b32 result) down(.param .b32 n)
{
    .reg .pred %p;
    .reg .b32 %n, %a, %ones, %zero, %d<2>, %w, %at, %tile, %sum, %below;
    ld.param.u32 %n, [n];
    mov.u32 %at, %laneid;
    shr.u32 %a, %at, 2;
    add.u32 %a, %a, 1;
    mul.lo.u32 %a, %a, 0x01010101;
    mov.u32 %ones, 0x01010101;
    mov.u32 %zero, 0;
    mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%d0, %d1}, {%a}, {%ones}, {%zero, %n};
    and.b32 %at, %at, 7;
    shl.b32 %at, %at, 4;
    mov.u32 %tile, tile;
    add.u32 %at, %at, %tile;
    ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%w}, [%at];
    add.u32 %sum, %d0, %d1;
    add.u32 %sum, %sum, %w;
    setp.eq.u32 %p, %n, 0;
    @%p bra END;
    sub.u32 %below, %n, 1;
    {
        .param .b32 p0;
        .param .b32 r0;
        st.param.b32 [p0], %below;
        call.uni (r0), down, (p0);
        ld.param.b32 %below, [r0];
    }
    add.u32 %sum, %sum, %below;
END:
    st.param.b32 [result], %sum;
    ret;
}
.visible .entry products(.param .u64 out, .param .u32 n)
{
    .reg .b32 %r<4>;
    .reg .b64 %out, %at;
    ld.param.u64 %out, [out];
    ld.param.u32 %r1, [n];
    mov.u32 %r0, %tid.x;
    mul.wide.u32 %at, %r0, 4;
    add.u64 %out, %out, %at;
    mul.lo.u32 %r2, %r0, 1000;
    mov.u32 %r3, tile;
    mad.lo.u32 %r3, %r0, 4, %r3;
    st.shared.u32 [%r3], %r2;
    bar.sync 0;
    {
        .param .b32 p0;
        .param .b32 r0;
        st.param.b32 [p0], %r1;
        call.uni (r0), down, (p0);
        ld.param.b32 %r2, [r0];
    }
    st.global.u32 [%out], %r2;
    ret;
}";

#[test]
fn what_a_warp_does_together_may_be_in_recursions() {
    let program = harness::load(PRODUCTS).unwrap();
    let depth = 9;
    // At each level two elements of 16 products, one with the level's number, and the word that is the lane's own.
    let of = |lane: u32| (0..=depth).map(|n| 2 * 16 * (lane / 4 + 1) + n + 1000 * lane).sum::<u32>();
    let expected: Vec<u32> = (0..32).map(of).collect();
    for how in [How::new(1, 32), How::new(1, 32).baseline()] {
        let mut out = [0u8; 128];
        let mut args = [Arg::Buffer(&mut out), Arg::u32(depth)];
        harness::run(&program, "products", &how, &mut args).unwrap();
        let found: Vec<u32> =
            out.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(found, expected);
    }
}
