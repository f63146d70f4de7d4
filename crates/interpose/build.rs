//! The tests' preload library is linked as libcuda.so.1 is: its constructor comes before those of the program's libraries.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rustc-link-arg=-Wl,-z,initfirst");
}
