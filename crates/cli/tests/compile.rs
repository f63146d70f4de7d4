//! `cudaway compile` as a packager runs it, with the compilers that are there.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use comgr::CodeObject;

const PTX: &str = "
.version 8.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 p)
{
    .reg .b32 %r<4>;
    .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [p];
    mov.u32 %r1, %tid.x;
    mul.wide.u32 %rd2, %r1, 4;
    add.u64 %rd3, %rd1, %rd2;
    ld.global.u32 %r2, [%rd3];
    add.u32 %r3, %r2, %r2;
    st.global.u32 [%rd3], %r3;
    ret;
}
.visible .entry nothing() { ret; }
";

const BAD: &str = ".visible .entry bad() { frobnicate.u32 %r1; ret; }\n";

/// The helper as `cargo xtask build` laid it out, else as cargo built it.
fn helper() -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
    let shipped = root.join("target/cudaway/lib/cudaway-comgr");
    let built = Path::new(env!("CARGO_BIN_EXE_cudaway")).with_file_name("cudaway-comgr");
    let found = [shipped, built].into_iter().find(|path| path.exists());
    found.expect("cargo xtask build --only cudaway-comgr, or cargo build -p comgr")
}

fn cudaway(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cudaway"));
    command.current_dir(folder).env("CUDAWAY_COMGR_HELPER", helper());
    command.env("CUDAWAY_CACHE_DIR", folder.join("cache"));
    command.arg("compile").args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn every_kernel_gets_a_code_object_and_a_row() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.ptx"), PTX).unwrap();
    let output = cudaway(folder.path(), &["--target", "gfx1100,gfx90a", "-o", "made", "a.ptx"]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    let table = text(&output.stdout);
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["kernel", "target", "VGPRs", "SGPRs", "LDS", "scratch", "bytes"]);
    assert_eq!(rows.len(), 5);
    for (row, (name, target)) in rows[1..].iter().zip([
        ("twice", "gfx1100"),
        ("nothing", "gfx1100"),
        ("twice", "gfx90a"),
        ("nothing", "gfx90a"),
    ]) {
        let bytes = std::fs::read(folder.path().join(format!("made/{name}.{target}.co"))).unwrap();
        assert_eq!(row[6], bytes.len().to_string());
        let object = CodeObject::read(bytes).unwrap();
        assert_eq!(object.target, format!("amdgcn-amd-amdhsa--{target}"));
        let kernel = object.kernel(name).unwrap();
        let facts = [kernel.vgprs, kernel.sgprs, kernel.lds_bytes, kernel.scratch_bytes];
        assert_eq!(row[..2], [name, target]);
        assert_eq!(row[2..6], facts.map(|fact| fact.to_string()));
        assert_eq!((facts[2], facts[3]), (0, 0));
    }
}

#[test]
fn a_kernel_that_cannot_be_had_is_named_and_the_others_are_made() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b.ptx"), format!("{PTX}{BAD}")).unwrap();
    let output = cudaway(folder.path(), &["--target", "gfx1100", "b.ptx"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(&output.stdout).lines().count(), 3);
    assert!(folder.path().join("twice.gfx1100.co").exists());
    let said = text(&output.stderr);
    assert!(said.contains("bad cannot be had for gfx1100") && said.contains("frobnicate"), "{said}");
    assert!(said.ends_with("1 failed\n"), "{said}");
}

#[test]
fn what_is_no_cuda_program_is_said_so() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("c.txt"), "hello").unwrap();
    for (file, words) in [
        ("c.txt", "neither PTX, a fat binary, nor a program with fat binaries"),
        (env!("CARGO_BIN_EXE_cudaway"), "has no device code"),
        ("missing", "No such file"),
    ] {
        let output = cudaway(folder.path(), &["--target", "gfx1100", file]);
        assert_eq!(output.status.code(), Some(1));
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
    let output = cudaway(folder.path(), &["--target", "sm_80", "c.txt"]);
    assert!(text(&output.stderr).contains("sm_80 is no AMD GPU"), "{}", text(&output.stderr));
}
