//! `cudaway run` before small C programs. Libraries of one function stand in for ours and for NVIDIA's; it says whose it is.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// Asks for a library as it is told, and prints whose it is.
const CLIENT: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int n, char **words) {
    void *library = dlopen(words[1], RTLD_NOW);
    int (*whose)(void) = library ? (int (*)(void))dlsym(library, "cuInit") : 0;
    printf("%d", whose ? whose() : -1);
    return 3;
}
"#;
const LINKED: &str =
    "#include <stdio.h>\nint cuInit(void);\nint main(void) { printf(\"%d\", cuInit()); return 0; }\n";

const OURS: &str = "42";
const THEIRS: &str = "7";

struct Folder(tempfile::TempDir);

impl Folder {
    /// With our stand-in in `lib`.
    fn new() -> Folder {
        Folder::named("cudaway-")
    }

    fn named(prefix: &str) -> Folder {
        let folder = Folder(tempfile::Builder::new().prefix(prefix).tempdir().unwrap());
        folder.library("lib/libcuda.so.1", OURS, &["-Wl,-soname,libcuda.so.1"]);
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    fn library(&self, name: &str, answer: &str, options: &[&str]) -> PathBuf {
        let source = format!("int cuInit(void) {{ return {answer}; }}\n");
        self.cc(name, &source, &[&["-shared", "-fPIC"], options].concat()).unwrap()
    }

    fn cc(&self, name: &str, source: &str, options: &[&str]) -> Result<PathBuf, String> {
        let (out, text) = (self.path(name), self.path("source.c"));
        std::fs::write(&text, source).unwrap();
        let mut command = Command::new("cc");
        let output = command.arg("-o").arg(&out).arg(&text).args(options).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        output.status.success().then_some(out).ok_or(said)
    }

    fn run(&self, options: &[&str], command: &[&str]) -> Output {
        let mut cudaway = Command::new(env!("CARGO_BIN_EXE_cudaway"));
        cudaway.args(["run", "--lib"]).arg(self.path("lib")).args(options).arg("--").args(command);
        for name in ["LD_PRELOAD", "LD_LIBRARY_PATH", "NUMBA_CUDA_DRIVER", "TRITON_LIBCUDA_PATH"] {
            cudaway.env_remove(name);
        }
        cudaway.env("CUDAWAY_CACHE_DIR", self.path("cache")).output().unwrap()
    }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

fn out(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn err(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_library_is_ours_by_whatever_name_it_is_opened() {
    let folder = Folder::new();
    let client = folder.cc("client", CLIENT, &[]).unwrap();
    let there = folder.library("there/libcuda.so.99.0", THEIRS, &["-Wl,-soname,libcuda.so.1"]);
    for name in ["libcuda.so.1", "libcuda.so", "/usr/lib/x86_64-linux-gnu/libcuda.so.1", text(&there)] {
        let output = folder.run(&["--claim", text(&there)], &[text(&client), name]);
        assert_eq!(out(&output), OURS, "{name}: {}", err(&output));
        assert_eq!(output.status.code(), Some(3), "the program's own");
        assert_eq!(err(&output), "");
    }
    for (name, answer) in [("libcuda.so.1", OURS), ("libcuda.so", "-1"), (text(&there), THEIRS)] {
        assert_eq!(out(&folder.run(&["--no-claims"], &[text(&client), name])), answer, "{name}");
    }
}

#[test]
fn a_bundled_copy_in_an_rpath_is_beaten() {
    let folder = Folder::new();
    let bundled = folder.library("bundle/libcuda.so.1", THEIRS, &["-Wl,-soname,libcuda.so.1"]);
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", text(bundled.parent().unwrap()));
    let program = folder.cc("linked", LINKED, &[text(&bundled), &rpath]).unwrap();
    assert_eq!(Command::new(&program).output().unwrap().stdout, THEIRS.as_bytes());
    let output = folder.run(&[], &[text(&program)]);
    assert_eq!((out(&output), err(&output)), (OURS.to_owned(), String::new()));
}

#[test]
fn a_bundled_runtime_under_a_mangled_name_is_beaten_by_the_version_of_its_names() {
    let folder = Folder::new();
    let versions = folder.path("versions");
    std::fs::write(&versions, "libcudart.so.12 { global: cuInit; local: *; };\n").unwrap();
    let script = format!("-Wl,--version-script={}", text(&versions));
    folder.library("lib/libcudart.so.12", OURS, &["-Wl,-soname,libcudart.so.12", &script]);
    // As Python's wheels carry it: auditwheel gives it a name of its own.
    let mangled = "libcudart-0a1b2c3d.so.12.4.127";
    let soname = format!("-Wl,-soname,{mangled}");
    let bundled = folder.library(&format!("app/{mangled}"), THEIRS, &[&soname, &script]);
    let program = folder.cc("app/program", LINKED, &[text(&bundled), "-Wl,-rpath,$ORIGIN"]).unwrap();
    assert_eq!(Command::new(&program).output().unwrap().stdout, THEIRS.as_bytes());
    // The stand-in for the driver has the name too; it is the runtime that must answer.
    folder.library("lib/libcuda.so.1", "3", &["-Wl,-soname,libcuda.so.1", "-DcuInit=cuOther"]);
    assert_eq!(out(&folder.run(&[], &[text(&program)])), OURS);
}

/// In `lib`: a library of its own, and an object that is it and another, as `cargo xtask build` makes them.
fn several(folder: &Folder, alone: &str, together: &str) {
    folder.library("lib/libcuda.so.1", "3", &["-Wl,-soname,libcuda.so.1", "-DcuInit=cuOther"]);
    let library = folder.library("lib/libcublas.so.12", alone, &["-Wl,-soname,libcublas.so.12"]);
    folder.library("lib/libcudart.so.12", "4", &["-Wl,-soname,libcudart.so.12"]);
    let options =
        ["-Wl,-soname,libcudart.so.12,--disable-new-dtags,-rpath,$ORIGIN,--no-as-needed", text(&library)];
    folder.library("lib/preload/libcudart.so.12", together, &options);
    std::os::unix::fs::symlink("libcudart.so.12", folder.path("lib/preload/libcublas.so.12")).unwrap();
}

#[test]
fn one_object_answers_for_several_libraries() {
    let folder = Folder::new();
    several(&folder, "5", OURS);
    let client = folder.cc("client", CLIENT, &[]).unwrap();
    for name in ["libcublas.so.12", "libcudart.so.12"] {
        assert_eq!(out(&folder.run(&[], &[text(&client), name])), OURS, "{name}");
    }
    let environment = out(&folder.run(&[], &["env"]));
    let preload = environment.lines().find(|line| line.starts_with("LD_PRELOAD=")).unwrap();
    assert!(!preload.contains("libcublas") && preload.contains("/preload/libcudart.so.12"), "{preload}");
    // Among libraries that a program brings along.
    let theirs = folder.library("bundle/libcublas.so.12", THEIRS, &["-Wl,-soname,libcublas.so.12"]);
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", text(theirs.parent().unwrap()));
    let between = "int cuInit(void); int between(void) { return cuInit(); }\n";
    let options = ["-shared", "-fPIC", "-Wl,-soname,libbetween.so", text(&theirs), &rpath];
    let between = folder.cc("bundle/libbetween.so", between, &options).unwrap();
    let source = LINKED.replace("cuInit", "between");
    let program = folder.cc("linked", &source, &[text(&between), &rpath]).unwrap();
    assert_eq!(Command::new(&program).output().unwrap().stdout, THEIRS.as_bytes());
    assert_eq!(out(&folder.run(&[], &[text(&program)])), OURS);
}

#[test]
fn a_program_that_would_find_its_own_copy_gets_the_library_by_itself() {
    let folder = Folder::new();
    several(&folder, OURS, "6");
    let theirs = folder.library("bundle/libcublas.so.12", THEIRS, &["-Wl,-soname,libcublas.so.12"]);
    let rpath = format!("-Wl,--disable-new-dtags,-rpath,{}", text(theirs.parent().unwrap()));
    // The copy is asked for by name, since the names of what is loaded first come first.
    let source = format!("{CLIENT}\nint cuInit(void); int (*needed)(void) = cuInit;\n");
    let program = folder.cc("linked", &source, &[text(&theirs), &rpath]).unwrap();
    let output = Command::new(&program).arg("libcublas.so.12").output().unwrap();
    assert_eq!(output.stdout, THEIRS.as_bytes());
    let output = folder.run(&[], &[text(&program), "libcublas.so.12"]);
    assert_eq!((out(&output), err(&output)), (OURS.to_owned(), String::new()));
}

#[test]
fn a_link_to_a_program_is_the_program() {
    let folder = Folder::new();
    folder.library("app/libpart.so", THEIRS, &["-Wl,-soname,libpart.so"]);
    let (part, rpath) = (folder.path("app/libpart.so"), "-Wl,-rpath,$ORIGIN");
    let program = folder.cc("app/program", LINKED, &[text(&part), rpath]).unwrap();
    std::os::unix::fs::symlink(&program, folder.path("link")).unwrap();
    let output = folder.run(&[], &[text(&folder.path("link"))]);
    assert_eq!((out(&output), err(&output)), (OURS.to_owned(), String::new()));
}

#[test]
fn a_bundled_copy_without_a_soname_needs_a_claim() {
    let folder = Folder::new();
    // The linker writes the path into the program then.
    let bundled = folder.library("bundle/libcuda.so.1", THEIRS, &[]);
    let program = folder.cc("linked", LINKED, &[text(&bundled)]).unwrap();
    let output = folder.run(&[], &[text(&program)]);
    assert_eq!((output.status.code(), out(&output)), (Some(126), String::new()));
    assert!(err(&output).contains(&format!("--claim {}", text(&bundled))), "{}", err(&output));
    let output = folder.run(&["--claim", text(&bundled)], &[text(&program)]);
    assert_eq!(out(&output), OURS, "{}", err(&output));
}

#[test]
fn what_cannot_be_reached_is_refused_with_the_reason() {
    let folder = Folder::new();
    let program = "int main(void) { return 0; }\n";
    let fixed = folder.cc("static", program, &["-static"]).unwrap();
    let foreign = folder.cc("foreign", program, &[]).unwrap();
    let mut bytes = std::fs::read(&foreign).unwrap();
    bytes[18] = 183; // e_machine: aarch64
    std::fs::write(&foreign, bytes).unwrap();
    let mut rows = vec![(fixed.clone(), "linked statically"), (foreign, "another processor")];
    match folder.cc("short", program, &["-m32", "-nostdlib", "-Wl,-e,main"]) {
        Ok(short) => rows.push((short, "32-bit")),
        Err(why) => eprintln!("no 32-bit program was made: {why}"),
    }
    for (path, words) in rows {
        let output = folder.run(&[], &[text(&path)]);
        assert_eq!(output.status.code(), Some(126));
        assert!(err(&output).contains(words), "{}", err(&output));
    }
    let output = folder.run(&["--force"], &[text(&fixed)]);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
}

#[test]
fn the_codes_are_those_of_env() {
    let folder = Folder::new();
    let client = folder.cc("client", CLIENT, &[]).unwrap();
    let code = |output: Output| output.status.code().unwrap();
    assert_eq!(code(folder.run(&[], &["no-such-program"])), 127);
    assert_eq!(code(folder.run(&[], &["/etc/passwd"])), 126);
    assert_eq!(code(folder.run(&["--verify"], &[text(&client)])), 0);
    std::fs::remove_file(folder.path("lib/libcuda.so.1")).unwrap();
    let output = folder.run(&[], &[text(&client), "libcuda.so.1"]);
    assert!(err(&output).contains("--lib"), "{}", err(&output));
    assert_eq!(code(output), 125);
}

#[test]
fn scripts_and_what_they_start_are_reached() {
    let folder = Folder::named("with blank ");
    let client = folder.cc("client", CLIENT, &[]).unwrap();
    let (written, script) = (folder.path("written"), folder.path("script"));
    std::fs::write(&written, format!("#!/usr/bin/env sh\n'{}' \"$1\"\n", text(&client))).unwrap();
    // By another process: a file that this one wrote cannot be run while another test's child still has it open.
    let mut install = Command::new("install");
    assert!(install.args(["-m", "755"]).args([&written, &script]).status().unwrap().success());
    let output = folder.run(&[], &[text(&script), "libcuda.so"]);
    assert_eq!((out(&output), err(&output)), (OURS.to_owned(), String::new()));
}

#[test]
fn a_run_in_a_run_is_one_run() {
    let folder = Folder::new();
    let preload = |output: Output| {
        assert_eq!(err(&output), "");
        out(&output).lines().find(|line| line.starts_with("LD_PRELOAD=")).unwrap().to_owned()
    };
    let lib = folder.path("lib");
    let again = [env!("CARGO_BIN_EXE_cudaway"), "run", "--lib", text(&lib), "--", "env"];
    assert_eq!(preload(folder.run(&[], &again)), preload(folder.run(&[], &["env"])));
}

#[test]
fn the_environment_keeps_what_the_user_set() {
    let folder = Folder::named("with blank ");
    let mut cudaway = Command::new(env!("CARGO_BIN_EXE_cudaway"));
    cudaway.args(["run", "--device", "cpu", "--lib"]).arg(folder.path("lib"));
    cudaway.env("CUDAWAY_CACHE_DIR", folder.path("cache")).env("NUMBA_CUDA_DRIVER", "/mine");
    cudaway.env("LD_LIBRARY_PATH", "/theirs").env("LD_PRELOAD", "libm.so.6");
    let output = cudaway.args(["env"]).output().unwrap();
    let all = out(&output);
    let value = |name: &str| {
        let line = all.lines().find_map(|line| line.strip_prefix(&format!("{name}="))).unwrap();
        line.to_owned()
    };
    assert_eq!(value("NUMBA_CUDA_DRIVER"), "/mine");
    assert_eq!(value("CUDAWAY_DEVICE"), "cpu");
    let lib = folder.path("lib");
    assert_eq!(value("TRITON_LIBCUDA_PATH"), text(&lib));
    // The blank in our path keeps it out of LD_PRELOAD.
    assert_eq!(value("LD_PRELOAD"), "libcuda.so.1:libcudaway_claims.so:libm.so.6");
    let folders = value("LD_LIBRARY_PATH");
    assert!(folders.starts_with(text(&lib)) && folders.ends_with(":/theirs"), "{folders}");
}

#[test]
fn the_script_does_the_same_without_claims() {
    let folder = Folder::new();
    let client = folder.cc("client", CLIENT, &[]).unwrap();
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools/preload-wrapper");
    let run = |words: &[&str]| {
        let mut command = Command::new(&script);
        command.args(words).env("CUDAWAY_LIB", folder.path("lib")).env_remove("LD_PRELOAD").output().unwrap()
    };
    let output = run(&[text(&client), "libcuda.so.1"]);
    assert_eq!((out(&output), output.status.code()), (OURS.to_owned(), Some(3)), "{}", err(&output));
    assert_eq!(run(&["no-such-program"]).status.code(), Some(127));
    assert_eq!(run(&[]).status.code(), Some(125));
    std::fs::remove_file(folder.path("lib/libcuda.so.1")).unwrap();
    assert_eq!(run(&["true"]).status.code(), Some(125));
}

#[test]
fn hooks_and_the_auditor_are_put_in_when_asked_for() {
    let folder = Folder::new();
    let output = folder.run(&["--hooks", "dlsym"], &["true"]);
    assert!(err(&output).contains("libcudaway_hooks.so is missing"), "{}", err(&output));
    let (hooks, audit) = (folder.path("lib/libcudaway_hooks.so"), folder.path("lib/libcudaway_audit.so"));
    folder.library("lib/libcudaway_hooks.so", OURS, &[]);
    let auditor = "unsigned la_version(unsigned version) { return version; }\n";
    folder.cc("lib/libcudaway_audit.so", auditor, &["-shared", "-fPIC"]).unwrap();
    let all = out(&folder.run(&["--hooks", "dlsym,log", "--audit"], &["env"]));
    let has = |line: &str| all.lines().any(|it| it == line);
    assert!(has("CUDAWAY_HOOKS=dlsym,log") && has(&format!("LD_AUDIT={}", text(&audit))), "{all}");
    assert!(all.contains(&format!(":{}:", text(&hooks))), "{all}");
}

#[test]
fn what_would_be_done_is_told_as_one_object() {
    let folder = Folder::new();
    let client = folder.cc("client", CLIENT, &["-ldl"]).unwrap();
    let told = |options: &[&str], command: &[&str]| {
        let output = folder.run(&[&["--json"], options].concat(), command);
        let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        (output.status.code(), object)
    };
    let driver = folder.path("lib/libcuda.so.1");
    let (code, plan) = told(&[], &[text(&client), "libcuda.so.1"]);
    assert_eq!((code, &plan["reached"]), (Some(0), &true.into()), "{plan}");
    assert_eq!(plan["preload"][0], text(&driver));
    assert!(plan["variables"]["LD_PRELOAD"].as_str().unwrap().starts_with(text(&driver)), "{plan}");
    assert_eq!(plan["findings"], serde_json::json!([]));

    // A program that is not reached, and a process that has a runtime already: its program is one.
    let mut bytes = std::fs::read(&client).unwrap();
    bytes[4] = 1;
    let other = folder.path("other");
    std::fs::write(&other, bytes).unwrap();
    std::fs::set_permissions(&other, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let (code, plan) = told(&[], &[text(&other)]);
    assert_eq!((code, &plan["reached"]), (Some(126), &false.into()), "{plan}");
    assert!(plan["findings"][0]["why"].as_str().unwrap().contains("32-bit"), "{plan}");

    let runtime = ["cudaMalloc", "cudaFree", "cudaMemcpy", "cudaMemset"]
        .map(|name| format!("static int {name}(void) {{ return 1; }}\n"));
    let uses = "#include <stdio.h>\nint main(void) { puts(\"runs\"); fflush(stdout); getchar(); return cudaMalloc() + cudaFree() + cudaMemcpy() + cudaMemset(); }\n";
    let program = folder.cc("holder", &(runtime.concat() + uses), &[]).unwrap();
    let mut command = Command::new(&program);
    let mut child =
        command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut said = [0; 5];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut said).unwrap();
    let (code, plan) = told(&["--into", &child.id().to_string()], &[text(&client)]);
    drop(child.stdin.take());
    child.wait().unwrap();
    assert_eq!((code, &plan["reached"]), (Some(126), &false.into()), "{plan}");
    let wanted =
        format!("a CUDA runtime is in this process already, inside of {}, and stays", program.display());
    assert_eq!(plan["findings"], serde_json::json!([{ "reached": false, "why": wanted }]));
}
