//! The auditor before C programs. Libraries of one function stand in for ours (42) and for those that a program brings along (7).

use std::path::{Path, PathBuf};

const LINKED: &str =
    "#include <stdio.h>\nint cuInit(void);\nint main(void) { printf(\"%d\", cuInit()); return 0; }\n";
const OPENING: &str = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <unistd.h>
int main(int n, char **words) {
    if (chdir("/")) return 1;
    void *library = n > 2 ? dlmopen(LM_ID_NEWLM, words[1], RTLD_NOW) : dlopen(words[1], RTLD_NOW);
    int (*found)(void) = library ? (int (*)(void))dlsym(library, "cuInit") : 0;
    printf("%d", found ? found() : -1);
    return 0;
}
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let tests = std::env::current_exe().unwrap();
        let audit = tests.ancestors().nth(2).unwrap().join("examples/libaudit_alone.so");
        std::fs::create_dir(folder.0.path().join("lib")).unwrap();
        std::fs::copy(audit, folder.0.path().join("lib/libcudaway_audit.so")).unwrap();
        folder.library("lib/libcuda.so.1", 42, &["-Wl,-soname,libcuda.so.1"]);
        folder
    }

    fn library(&self, name: &str, answer: i32, options: &[&str]) -> PathBuf {
        let source = format!("int cuInit(void) {{ return {answer}; }}\n");
        self.cc(name, &source, &[&["-shared", "-fPIC"], options].concat())
    }

    fn cc(&self, name: &str, text: &str, options: &[&str]) -> PathBuf {
        let (out, source) = (self.0.path().join(name), self.0.path().join("source.c"));
        std::fs::create_dir_all(out.parent().unwrap()).unwrap();
        std::fs::write(&source, text).unwrap();
        let mut command = testkit::target::c_compiler();
        let output = command.arg("-o").arg(&out).arg(&source).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    }

    fn run(&self, program: &Path, words: &[&str]) -> String {
        self.run_by(self.0.path().join("lib/libcudaway_audit.so").to_str().unwrap(), program, words)
    }

    fn run_by(&self, audit: &str, program: &Path, words: &[&str]) -> String {
        let mut command = testkit::target::program(program, &[("LD_AUDIT", audit)]);
        let output = command.args(words).current_dir(self.0.path()).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        String::from_utf8(output.stdout).unwrap()
    }
}

#[test]
fn copies_that_a_program_brings_along_are_passed_by() {
    let folder = Folder::new();
    let bundled = folder.library("bundle/libcuda.so.1", 7, &["-Wl,-soname,libcuda.so.1"]);
    let bundled = bundled.to_str().unwrap();
    for (name, tags) in [("rpath", "-Wl,--disable-new-dtags"), ("runpath", "-Wl,--enable-new-dtags")] {
        let rpath = format!("-Wl,-rpath,{}/bundle", folder.0.path().display());
        let program = folder.cc(name, LINKED, &[bundled, tags, &rpath]);
        assert_eq!(testkit::target::program(&program, &[]).output().unwrap().stdout, b"7");
        assert_eq!(folder.run(&program, &[]), "42");
    }
    let nameless = folder.library("nameless/libcuda.so.1", 7, &[]);
    let program = folder.cc("by-path", LINKED, &[nameless.to_str().unwrap()]);
    assert_eq!(folder.run(&program, &[]), "42");
}

#[test]
fn every_spelling_and_namespace_gets_ours_and_other_names_their_own() {
    let folder = Folder::new();
    let program = folder.cc("opening", OPENING, &[]);
    let real = folder.library("real/libcuda.so.99.0", 7, &[]);
    let near = folder.library("real/libcudadebugger.so.1", 7, &[]);
    // We have no runtime here.
    let runtime = folder.library("real/libcudart.so.12", 7, &[]);
    let real = real.to_str().unwrap();
    for name in ["libcuda.so.1", "libcuda.so", "/no/such/../libcuda.so", real] {
        assert_eq!(folder.run(&program, &[name]), "42", "{name}");
        // glibc asks no auditor for a path that is to be opened in a namespace of its own (measured on 2.36).
        let answer = if name == real {
            "7"
        } else if name.contains('/') {
            "-1"
        } else {
            "42"
        };
        if has_namespaces() {
            assert_eq!(folder.run(&program, &[name, "dlmopen"]), answer, "{name}");
        }
    }
    for name in [near, runtime] {
        assert_eq!(folder.run(&program, &[name.to_str().unwrap()]), "7");
    }
    assert_eq!(folder.run(&program, &["libno.so"]), "-1");
}

#[test]
fn ours_are_beside_the_auditor_wherever_the_program_goes() {
    let folder = Folder::new();
    let program = folder.cc("opening", OPENING, &[]);
    for audit in ["lib/libcudaway_audit.so", "./lib/../lib/libcudaway_audit.so"] {
        assert_eq!(folder.run_by(audit, &program, &["libcuda.so"]), "42", "{audit}");
    }
}

/// glibc 2.31 crashes in `dlmopen` with any auditor (measured with one that has `la_version` alone).
fn has_namespaces() -> bool {
    // SAFETY: libc's string.
    let version = unsafe { std::ffi::CStr::from_ptr(libc::gnu_get_libc_version()) };
    let minor = version.to_str().unwrap().split('.').nth(1).unwrap();
    minor.parse::<u32>().unwrap() > 31
}

#[test]
fn older_loaders_are_answered_in_their_version() {
    assert_eq!([1, 2, 3].map(|version| libcudaway_audit::la_version(version)), [1, 2, 2]);
}
