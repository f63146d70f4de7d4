//! One code for all flat blocks of a kernel that their length only scales indices of; others get code for each shape.

mod flat;

#[test]
fn a_long_kernel_is_compiled_once_for_all_flat_blocks() {
    // SAFETY: the only test of this process.
    let mut loaded = unsafe { flat::Loaded::with_a_cache_of_its_own("open") };
    loaded.fill(c"long", 80, [256, 1, 1]);
    let n_cached = loaded.n_cached();
    assert!(n_cached >= 2, "what is known of the kernel, and its code");
    for length in [32, 64, 128, 512, 1024, 96] {
        loaded.fill(c"long", 80, [length, 1, 1]);
        assert_eq!(loaded.n_cached(), n_cached, "blocks of {length}");
    }
    loaded.fill(c"long", 80, [48, 1, 1]);
    assert_eq!(loaded.n_cached(), n_cached + 1, "not a whole number of warps");

    loaded.fill(c"short", 2, [256, 1, 1]);
    let n_cached = loaded.n_cached();
    loaded.fill(c"short", 2, [128, 1, 1]);
    assert_eq!(loaded.n_cached(), n_cached + 1, "short kernels are made for their blocks");
}
