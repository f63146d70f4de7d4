//! LLVM's own libraries go in statically: the shipped object needs libc's family and nothing else.
//!
//! `llvm-sys` asks for libstdc++, libz and libzstd by name. A folder that holds only their archives, searched first,
//! makes the linker take these. Their exit handlers are bound to `cudaway_no_exit_handler` (hip-cpu's at_exit.rs).

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets it")).join("static");
    std::fs::create_dir_all(&folder).expect("OUT_DIR is writable");
    for name in ["libstdc++.a", "libz.a", "libzstd.a"] {
        let Some(path) = archive(name) else {
            println!(
                "cargo:warning={name} is not installed, so libcudaway_cpu.so will need the shared library"
            );
            continue;
        };
        let link = folder.join(name);
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(path, link).expect("OUT_DIR is writable");
    }
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-arg-cdylib=-Wl,--defsym=__cxa_atexit=cudaway_no_exit_handler");
}

/// Where the C compiler finds an archive.
fn archive(name: &str) -> Option<PathBuf> {
    let output = Command::new("cc").arg(format!("-print-file-name={name}")).output().ok()?;
    let path = Path::new(String::from_utf8(output.stdout).ok()?.trim()).to_path_buf();
    // Without the file the compiler answers the name alone.
    (path.is_absolute() && path.exists()).then(|| path.canonicalize().ok()).flatten()
}
