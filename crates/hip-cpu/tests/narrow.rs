//! `CUDAWAY_CPU_TARGET`: code for a level of x86-64 that may lie below this machine's.

mod flat;

use hip_cpu::jit::Target;

#[test]
fn code_is_made_for_the_level_that_is_asked_for() {
    // SAFETY: the only test of this process.
    let mut loaded = unsafe {
        std::env::set_var("CUDAWAY_CPU_TARGET", "x86-64-v3");
        flat::Loaded::with_a_cache_of_its_own("narrow")
    };
    let target = Target::host();
    if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("movbe") {
        assert_eq!((target.cpu.as_str(), target.vector_bits), ("x86-64-v3", 256));
        assert_eq!(Target::usable().len(), 1, "nothing for the machine itself is looked for");
    } else {
        assert_ne!(target.cpu, "x86-64-v3", "this machine has not that level");
    }
    let before = loaded.n_cached();
    loaded.fill(c"long", 80, [128, 1, 1]);
    assert!(loaded.n_cached() > before);
    loaded.fill(c"tall", 2, [1, 64, 1]);
}
