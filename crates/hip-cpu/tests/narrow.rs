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
        let usable: Vec<&str> = Target::usable().iter().map(|it| it.cpu.as_str()).collect();
        assert_eq!(
            usable, ["x86-64-v3"; 2],
            "its own code, and what was made ahead of time for all that have the level"
        );
        assert_ne!(Target::usable()[0], Target::usable()[1], "nobody else takes its own code");
    } else {
        assert_ne!(target.cpu, "x86-64-v3", "this machine has not that level");
    }
    let before = loaded.n_cached();
    loaded.fill(c"long", 80, [128, 1, 1]);
    assert!(loaded.n_cached() > before);
    loaded.fill(c"tall", 2, [1, 64, 1]);
}
