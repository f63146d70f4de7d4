//! `CUDA_MODULE_LOADING=EAGER`: kernels are compiled when their module is loaded.

mod flat;

use std::time::{Duration, Instant};

#[test]
fn what_is_loaded_is_compiled() {
    // SAFETY: the only test of this process.
    let mut loaded = unsafe {
        std::env::set_var("CUDA_MODULE_LOADING", "EAGER");
        flat::Loaded::with_a_cache_of_its_own("eager")
    };
    // What is known of each, and the code of all but `tall`, whose blocks nobody knows.
    let n_loaded = 4 + 3;
    assert_eq!(loaded.n_cached(), n_loaded);
    loaded.fill(c"fixed", 2, [96, 1, 1]);
    loaded.fill(c"long", 80, [128, 1, 1]);
    assert_eq!(loaded.n_cached(), n_loaded, "the launches found their code");

    // It begins in code for any blocks, while its own is made.
    loaded.fill(c"short", 2, [64, 1, 1]);
    let start = Instant::now();
    while loaded.n_cached() == n_loaded && start.elapsed() < Duration::from_secs(60) {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(loaded.n_cached(), n_loaded + 1);
    loaded.fill(c"short", 2, [64, 1, 1]);
    loaded.fill(c"tall", 2, [1, 64, 1]);
    // And the list of launches that were not foreseen.
    assert_eq!(loaded.n_cached(), n_loaded + 3);
}
