//! Names what becomes of the translator's IR: a hash of the sources that decide it. With `compiler::TRANSLATOR` it is part
//! of every key of object code, so a changed translator never runs code that another one made.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};

fn main() {
    // SipHash with fixed keys: equal for equal sources.
    let mut hasher = DefaultHasher::new();
    for file in ["src/jit.rs", "src/kernel.rs"] {
        println!("cargo:rerun-if-changed={file}");
        std::fs::read(file).unwrap_or_default().hash(&mut hasher);
    }
    println!("cargo:rustc-env=CUDAWAY_GENERATOR={:016x}", hasher.finish());
    // A test may end while kernels are compiled behind it: src/at_exit.rs.
    println!("cargo:rustc-link-arg-tests=-Wl,--defsym=__cxa_atexit=cudaway_no_exit_handler");
}
