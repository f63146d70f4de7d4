//! The hooks before C programs that look names up in every way that has broken an interposer before (each is a symptom
//! somebody reported). Libraries of one function stand in for ours (it answers 42) and for others (7).
//!
//! `cargo xtask test --only aarch64` runs them for AArch64.

use std::path::{Path, PathBuf};

struct Folder(tempfile::TempDir);

/// What a program printed.
struct Ran {
    out: String,
    err: String,
}

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        let tests = std::env::current_exe().unwrap();
        let hooks = tests.ancestors().nth(2).unwrap().join("examples/libhooks_alone.so");
        std::fs::copy(hooks, folder.path("libcudaway_hooks.so")).unwrap();
        folder.answering("libcuda.so.1", "cuInit", 42);
        folder.runtime("libcudart.so.12", 42);
        folder.answering("libother.so", "cuInit", 7);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// A library with one function, and its file's name as SONAME.
    fn answering(&self, name: &str, function: &str, answer: i32) -> PathBuf {
        let source = self.path("source.c");
        std::fs::write(&source, format!("int {function}(void) {{ return {answer}; }}\n")).unwrap();
        let soname = format!("-Wl,-soname,{}", name.rsplit('/').next().unwrap());
        self.compile(&source, name, &["-shared", "-fPIC", &soname])
    }

    /// As NVIDIA's: the function has the version that is called as the library is.
    fn runtime(&self, name: &str, answer: i32) {
        let script = self.path("versions");
        std::fs::write(&script, format!("{name} {{ global: cudaMalloc; local: *; }};\n")).unwrap();
        let source = self.path("runtime.c");
        std::fs::write(&source, format!("int cudaMalloc(void) {{ return {answer}; }}\n")).unwrap();
        let options = [format!("-Wl,-soname,{name}"), format!("-Wl,--version-script={}", script.display())];
        self.compile(&source, name, &["-shared", "-fPIC", &options[0], &options[1]]);
    }

    fn cc(&self, source: &str, name: &str, options: &[&str]) -> PathBuf {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source);
        self.compile(&source, name, options)
    }

    fn compile(&self, source: &Path, name: &str, options: &[&str]) -> PathBuf {
        let out = self.path(name);
        let mut command = testkit::target::c_compiler();
        command.args(["-w", "-O1", "-o"]).arg(&out).arg(source);
        let output = command.arg("-L").arg(self.0.path()).args(options).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    }

    /// Runs with ours in front, and the objects `before` and `after` the hooks.
    fn run(&self, hooks: &str, preload: &[&str], program: &Path, words: &[&str]) -> Ran {
        let preload: Vec<String> = preload.iter().map(|name| self.path(name).display().to_string()).collect();
        let (preload, folder) = (preload.join(":"), self.0.path().to_str().unwrap());
        let loader = [("LD_PRELOAD", preload.as_str()), ("LD_LIBRARY_PATH", folder)];
        let mut command = testkit::target::program(program, &loader);
        command.args(words).env("CUDAWAY_HOOKS", hooks).env_remove("CUDAWAY_LOG_FILE");
        let output = command.output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        let (out, err) = (text(output.stdout), text(output.stderr));
        assert!(output.status.success(), "{}: {out}{err}", output.status);
        Ran { out, err }
    }

    /// The answer of `name`, looked up in `library`.
    fn ask(&self, hooks: &str, words: &[&str]) -> String {
        let program = self.path("ask");
        if !program.exists() {
            self.cc("ask.c", "ask", &[]);
        }
        let ran = self.run(hooks, &OURS, &program, words);
        assert_eq!(ran.err, "");
        ran.out
    }
}

const OURS: [&str; 3] = ["libcuda.so.1", "libcudart.so.12", "libcudaway_hooks.so"];

#[test]
fn a_name_of_the_driver_is_ours_on_any_handle_and_only_when_asked_for() {
    let folder = Folder::new();
    folder.answering("libfoo.so", "cuInitFoo", 7);
    assert_eq!(folder.ask("dlsym", &["libother.so", "cuInit"]), "42");
    assert_eq!(folder.ask("dlsym", &["libm.so.6", "cuInit"]), "42");
    assert_eq!(folder.ask("", &["libother.so", "cuInit"]), "7");
    assert_eq!(folder.ask("dlopen", &["libother.so", "cuInit"]), "7");
    assert_eq!(folder.ask("dlsym", &["libfoo.so", "cuInitFoo"]), "7", "another's name");
    assert_eq!(folder.ask("dlsym", &["libother.so", "cuCtxCreate_v4"]), "-1", "our stand-in has none");
    assert_eq!(folder.ask("dlsym", &["libother.so", "cuInit", "dlmopen"]), "42");
}

#[test]
fn a_runtimes_name_is_redirected_on_a_runtime_of_its_major_alone() {
    let folder = Folder::new();
    for (file, function, answer) in [
        ("bundle/libcudart.so.12.4.127", "cudaMalloc", "42"),
        ("bundle/libcudart.so.11.0", "cudaMalloc", "7"), // ours is not in the process
        ("bundle/libtorch.so", "cudaMalloc", "7"),
        ("bundle/libcudart.so.12.9", "cudaMallocFoo", "7"),
    ] {
        let library = folder.answering(file, function, 7);
        assert_eq!(folder.ask("dlsym", &[library.to_str().unwrap(), function]), answer, "{file} {function}");
    }
}

#[test]
fn a_file_of_cudas_is_opened_as_ours() {
    let folder = Folder::new();
    let real = folder.answering("real/libcuda.so.99.0", "cuInit", 7);
    let near = folder.answering("real/libcudadebugger.so.1", "cuInit", 7);
    assert_eq!(folder.ask("dlopen", &[real.to_str().unwrap(), "cuInit"]), "42");
    assert_eq!(folder.ask("dlopen", &["/no/such/libcuda.so", "cuInit"]), "42");
    assert_eq!(folder.ask("dlopen", &[near.to_str().unwrap(), "cuInit"]), "7");
    assert_eq!(folder.ask("log", &[real.to_str().unwrap(), "cuInit"]), "7");
}

#[test]
fn rtld_next_finds_the_next_of_its_caller() {
    let folder = Folder::new();
    folder.answering("libfoo.so", "foo", 1);
    folder.cc("wrap.c", "libwrap.so", &["-shared", "-fPIC"]);
    let program = folder.cc("use_foo.c", "use_foo", &["-lfoo"]);
    for order in [["libcudaway_hooks.so", "libwrap.so"], ["libwrap.so", "libcudaway_hooks.so"]] {
        assert_eq!(folder.run("dlsym,dlopen", &order, &program, &[]).out, "101");
    }
}

#[test]
fn a_plug_in_is_found_by_its_programs_runpath() {
    let folder = Folder::new();
    folder.answering("plug/libplug.so", "foo", 1);
    let program = folder.cc("plugin.c", "plugin", &["-Wl,--enable-new-dtags,-rpath,$ORIGIN/plug"]);
    assert_eq!(folder.run("dlsym,dlopen", &OURS, &program, &[]).out, "found");
}

#[test]
fn a_library_that_looks_its_own_names_up_gets_them() {
    let folder = Folder::new();
    folder.answering("libown_impl.so", "cudnnCreate", 7);
    folder.cc("own_stub.c", "libown.so", &["-shared", "-fPIC"]);
    let program = folder.cc("use_own_stub.c", "use_own_stub", &["-lown"]);
    assert_eq!(folder.run("dlsym,dlopen", &OURS, &program, &[]).out, "7");
}

#[test]
fn lookups_at_any_moment_are_answered() {
    let folder = Folder::new();
    folder.cc("early_library.c", "libearly.so", &["-shared", "-fPIC"]);
    folder.cc("ifunc.c", "libifunc.so", &["-shared", "-fPIC", "-Wl,-z,now"]);
    folder.cc("malloc.c", "libmalloc.so", &["-shared", "-fPIC"]);
    let program = folder.cc("early.c", "early", &["-learly", "-lpthread"]);
    let all_right = "1 1 42 0 42 after";
    assert_eq!(folder.run("dlsym,dlopen", &OURS, &program, &[]).out, all_right);
    for order in [["libmalloc.so", OURS[2], OURS[0]], [OURS[2], "libmalloc.so", OURS[0]]] {
        assert_eq!(folder.run("dlsym,dlopen", &order, &program, &[]).out, all_right);
    }
    let program = folder.cc("early.c", "early_ifunc", &["-DIFUNC", "-learly", "-lifunc", "-lpthread"]);
    // Before we are relocated the lookup finds nothing, and nothing crashes.
    assert_eq!(folder.run("dlsym,dlopen", &OURS, &program, &[]).out, "1 1 42 0 42 2 after");
}

#[test]
fn the_log_names_what_was_redirected_and_who_asked() {
    let folder = Folder::new();
    let program = folder.cc("ask.c", "ask", &[]);
    let ran = folder.run("dlsym,dlopen,log", &OURS, &program, &["libother.so", "cuInit"]);
    assert_eq!(ran.out, "42");
    let line = ran.err.strip_suffix('\n').unwrap();
    assert!(line.starts_with("cudaway::hooks dlsym(0x") && line.ends_with(" is libcuda.so.1's"), "{line}");
    assert!(line.contains(", cuInit) by 0x") && line.contains(" in ask is"), "{line}");
    let ran = folder.run("dlsym,log", &OURS, &program, &["libcuda.so.1", "cuInit"]);
    assert_eq!((ran.out.as_str(), ran.err.as_str()), ("42", ""), "libc finds ours by itself");
    let ran = folder.run("dlopen,log", &OURS, &program, &["/x/libcuda.so", "cuInit"]);
    assert!(ran.err.starts_with("cudaway::hooks dlopen(/x/libcuda.so) by 0x"), "{}", ran.err);
    assert!(ran.err.ends_with(" in ask opens libcuda.so.1\n"), "{}", ran.err);
}
