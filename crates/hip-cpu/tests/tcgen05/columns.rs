//! Columns are allocated and given back.

use hip_cpu::harness::{self, How};

use super::{in_settings, kernel, refusal};

/// Warp `w` of four allocates `128 >> w` columns, so that they cannot come in another order than they ask in.
#[test]
fn a_warp_has_the_columns_that_it_asked_for() {
    let text = kernel(
        ".param .u64 to",
        "ld.param.u64 %rd1, [to];\nmov.u32 %r9, 256;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], %r9;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd3], 64;\n\
         ld.shared.u32 %r1, [tile];\nld.shared.u32 %r2, [tile+64];\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 256;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile+128], 32;\n\
         ld.shared.u32 %r3, [tile+128];\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r3, 32;\n\
         tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r2, 64;\n\
         tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;\n\
         mul.wide.u32 %rd2, %t, 12;\nadd.u64 %rd1, %rd1, %rd2;\n\
         st.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r2;\nst.global.u32 [%rd1+8], %r3;",
    )
    .replace(
        "mov.u32 %r9, 256;\n",
        "mov.u32 %r9, 256;\nmov.u64 %rd3, tile;\nadd.u64 %rd3, %rd3, 64;\ncvta.shared.u64 %rd3, %rd3;\n",
    );
    for given in in_settings(&text, &How::new(3, 32), 96, &[]) {
        assert_eq!(given, [0, 256, 0].repeat(32));
    }
}

/// Four warps want all of it; each counts up what the others left in shared memory, which only works one after the other.
#[test]
fn who_finds_no_room_waits_for_it() {
    let text = kernel(
        ".param .u64 to",
        "ld.param.u64 %rd1, [to];\nsetp.ne.u32 %p1, %t, 0;\n@%p1 bra BEGIN;\nst.shared.u32 [tile+512], 0;\nBEGIN:\nbar.sync 0;\n\
         shl.b32 %at, %w, 2;\nmov.u32 %r1, tile;\nadd.u32 %at, %at, %r1;\n\
         tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%at], 512;\n\
         ld.shared.u32 %r2, [tile+512];\nbar.warp.sync -1;\n\
         and.b32 %r3, %t, 31;\nsetp.ne.u32 %p2, %r3, 0;\nadd.u32 %r4, %r2, 1;\n@!%p2 st.shared.u32 [tile+512], %r4;\nbar.warp.sync -1;\n\
         ld.shared.u32 %r5, [%at];\ntcgen05.dealloc.cta_group::1.sync.aligned.b32 %r5, 512;\n\
         mul.wide.u32 %rd2, %t, 4;\nadd.u64 %rd1, %rd1, %rd2;\nst.global.u32 [%rd1], %r2;",
    );
    for given in in_settings(&text, &How::new(1, 128), 128, &[]) {
        let mut warps: Vec<u32> = given.chunks(32).map(|warp| warp[0]).collect();
        assert!(given.chunks(32).all(|warp| warp.iter().all(|&turn| turn == warp[0])), "{given:?}");
        warps.sort_unstable();
        assert_eq!(warps, [0, 1, 2, 3]);
    }
}

/// The blocks of a pair ask together; the odd one gives back late, and the even one waits for that.
#[test]
fn the_blocks_of_a_pair_have_the_same_columns() {
    let text = kernel(
        ".param .u64 to",
        "ld.param.u64 %rd1, [to];\nmov.u32 %r8, %cluster_ctarank;\nmov.u32 %r9, %ctaid.x;\n\
         tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tile], 256;\n\
         tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tile+4], 128;\n\
         ld.shared.u32 %r1, [tile];\nld.shared.u32 %r2, [tile+4];\n\
         tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 256;\n\
         tcgen05.alloc.cta_group::2.sync.aligned.shared::cta.b32 [tile+8], 256;\n\
         ld.shared.u32 %r3, [tile+8];\n\
         tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r3, 256;\n\
         tcgen05.dealloc.cta_group::2.sync.aligned.b32 %r2, 128;\n\
         tcgen05.relinquish_alloc_permit.cta_group::2.sync.aligned;\n\
         mad.lo.u32 %at, %r9, 32, %t;\nmul.wide.u32 %rd2, %at, 12;\nadd.u64 %rd1, %rd1, %rd2;\n\
         st.global.u32 [%rd1], %r1;\nst.global.u32 [%rd1+4], %r2;\nst.global.u32 [%rd1+8], %r3;",
    );
    let mut how = How::new(4, 32);
    how.cluster = [4, 1, 1];
    let program = hip_cpu::harness::load(&text).unwrap();
    for how in [how.clone().lane(), how.clone().baseline(), how.clone().warp(), how] {
        let mut to = vec![0xaa; 4 * 3 * 128];
        hip_cpu::harness::run(&program, "kernel", &how, &mut [hip_cpu::harness::Arg::Buffer(&mut to)])
            .unwrap();
        let given: Vec<u32> = to.chunks(4).map(|word| u32::from_le_bytes(word.try_into().unwrap())).collect();
        assert_eq!(given, [0, 256, 0].repeat(128));
    }
}

/// In a block and in a pair, of which each block has to give back.
#[test]
fn memory_that_is_not_given_back_is_an_error() {
    for (group, back) in [
        (1, ""),
        (
            2,
            "setp.ne.u32 %p1, %r8, 0;\n@%p1 bra GONE;\nld.shared.u32 %r1, [tile];\ntcgen05.dealloc.cta_group::2.sync.aligned.b32 %r1, 64;\nGONE:",
        ),
    ] {
        let text = kernel(
            "",
            &format!(
                "mov.u32 %r8, %cluster_ctarank;\ntcgen05.alloc.cta_group::{group}.sync.aligned.shared::cta.b32 [tile], 64;\n{back}"
            ),
        );
        let program = harness::load(&text).unwrap();
        let mut how = How::new(group, 32);
        how.cluster = [group, 1, 1];
        let hows = [how.clone().lane(), how.clone().baseline(), how.clone().warp(), how];
        for how in hows {
            let error = harness::run(&program, "kernel", &how, &mut []).expect_err("a leak").to_string();
            assert!(error.contains("tensor memory"), "{error}");
        }
    }
}

#[test]
fn what_the_manual_does_not_have_is_refused() {
    for good in [
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;",
        "tcgen05.alloc.sync.aligned.cta_group::2.b32 [%rd1], %r2;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 512;",
        "@%p1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;",
    ] {
        assert_eq!(refusal(good), None, "{good}");
    }
    for wrong in [
        "tcgen05.alloc.cta_group::1.sync.aligned.b32 [tile], 48;",
        "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], 16;",
        "tcgen05.alloc.cta_group::1.sync.aligned.b32 [%rd1], 1024;",
        "tcgen05.alloc.sync.aligned.b32 [%rd1], 32;",
        "tcgen05.alloc.cta_group::3.sync.aligned.b32 [%rd1], 32;",
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cluster.b32 [%r1], 32;",
        "tcgen05.alloc.cta_group::1.aligned.b32 [%rd1], 32;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r1, 33;",
        "tcgen05.dealloc.cta_group::2.sync.aligned.b32 [%r1], 32;",
        "tcgen05.dealloc.cta_group::1.sync.aligned.shared::cta.b32 %r1, 32;",
        "tcgen05.relinquish_alloc_permit.sync.aligned;",
        "tcgen05.alloc.exclusive.cta_group::1.sync.aligned.b32 [%rd1], 32;",
    ] {
        assert!(refusal(wrong).is_some(), "{wrong}");
    }
}
