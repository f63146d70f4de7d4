//! `cudaway install` into a folder that stands for `/`.

use std::fs;
use std::io::Read as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;

/// A tree as it is shipped, as far as installing looks at it, and an empty system.
struct Setting {
    folder: TempDir,
}

impl Setting {
    fn new() -> Setting {
        let setting = Setting { folder: tempfile::tempdir().unwrap() };
        fs::create_dir_all(setting.tree().join("bin")).unwrap();
        fs::create_dir_all(setting.tree().join("lib")).unwrap();
        fs::create_dir_all(setting.root()).unwrap();
        // By another process: a file that this one wrote cannot be run while another test's child still has it open.
        let mut cp = Command::new("cp");
        cp.arg(env!("CARGO_BIN_EXE_cudaway")).arg(setting.tree().join("bin/cudaway"));
        assert!(cp.status().unwrap().success());
        library(&setting.tree().join("lib/libcuda.so.1"));
        symlink("libcuda.so.1", setting.tree().join("lib/libcuda.so")).unwrap();
        setting
    }

    fn tree(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    fn root(&self) -> PathBuf {
        self.folder.path().join("root")
    }

    fn installed(&self, below: &str) -> PathBuf {
        self.root().join("opt/cudaway").join(below)
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new(self.tree().join("bin/cudaway"));
        command.args(arguments).arg("--root").arg(self.root()).output().unwrap()
    }

    fn succeed(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }
}

/// A shared library with CUDA's SONAME.
fn library(at: &Path) {
    cc(at, "int x;\n", &["-shared", "-Wl,-soname,libcuda.so.1"]);
}

fn cc(at: &Path, text: &str, options: &[&str]) {
    fs::create_dir_all(at.parent().unwrap()).unwrap();
    let source = at.with_extension("c");
    fs::write(&source, text).unwrap();
    let status = Command::new("cc").arg("-o").arg(at).arg(&source).args(options).status().unwrap();
    assert!(status.success());
    fs::remove_file(source).unwrap();
}

#[test]
fn what_was_installed_is_removed_again() {
    let setting = Setting::new();
    setting.succeed(&["install"]);
    assert_eq!(
        fs::read(setting.installed("lib/libcuda.so.1")).unwrap(),
        fs::read(setting.tree().join("lib/libcuda.so.1")).unwrap()
    );
    assert_eq!(fs::read_link(setting.installed("lib/libcuda.so")).unwrap(), Path::new("libcuda.so.1"));
    assert!(!setting.root().join("etc").exists(), "only --system touches the system");
    setting.succeed(&["uninstall"]);
    assert!(!setting.root().join("opt").exists(), "nothing is left, empty folders neither");
}

#[test]
fn folders_that_were_there_before_are_left() {
    let setting = Setting::new();
    for folder in ["opt", "usr/local/bin"] {
        fs::create_dir_all(setting.root().join(folder)).unwrap();
    }
    setting.succeed(&["install", "--system"]);
    assert!(
        setting.root().join("usr/local/bin/cudaway").is_symlink() && setting.root().join("etc/cdi").exists()
    );
    // The second installation finds the folders of the first, which are CUDAway's all the same.
    setting.succeed(&["install", "--system"]);
    setting.succeed(&["uninstall"]);
    for folder in ["opt", "usr/local/bin"] {
        assert_eq!(fs::read_dir(setting.root().join(folder)).unwrap().count(), 0, "{folder}");
    }
    // ldconfig has made its cache.
    assert!(!setting.root().join("etc/cdi").exists() && !setting.root().join("etc/ld.so.conf.d").exists());
}

#[test]
fn an_update_replaces_files_and_removes_those_that_went() {
    let setting = Setting::new();
    fs::write(setting.tree().join("lib/gone.txt"), "1").unwrap();
    setting.succeed(&["install"]);
    let before = fs::metadata(setting.installed("lib/libcuda.so.1")).unwrap();
    fs::remove_file(setting.tree().join("lib/gone.txt")).unwrap();
    setting.succeed(&["install"]);
    let after = fs::metadata(setting.installed("lib/libcuda.so.1")).unwrap();
    assert_ne!(before.ino(), after.ino(), "a running program keeps the file that it has mapped");
    assert!(!setting.installed("lib/gone.txt").exists());
}

/// A driver of megabytes whose first and last function both tell its release.
fn release(at: &Path, number: u32) {
    let text = format!(
        "int first(void) {{ return {number}; }}\nconst char filling[8 << 20] = {{{number}}};\n\
         int last(void) {{ return {number} + filling[(8 << 20) - 1]; }}\n"
    );
    cc(at, &text, &["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1"]);
}

/// Loads the driver, waits for the end of its input, and asks both functions.
const PROGRAM: &str = "#include <dlfcn.h>\n#include <stdio.h>\n\
int main(void) {\n\
    void *driver = dlopen(\"libcuda.so.1\", RTLD_LAZY);\n\
    puts(driver ? \"loaded\" : dlerror());\n\
    fflush(stdout);\n\
    while (getchar() != EOF) {}\n\
    int (*first)(void) = (int (*)(void))dlsym(driver, \"first\"), (*last)(void) = (int (*)(void))dlsym(driver, \"last\");\n\
    printf(\"%d %d\\n\", first(), last());\n\
    return 0;\n\
}\n";

/// interposition.md, R14: updates write anew and rename.
#[test]
fn no_program_fails_while_an_update_replaces_its_driver() {
    let setting = Setting::new();
    let driver = setting.tree().join("lib/libcuda.so.1");
    let program = setting.folder.path().join("program");
    cc(&program, PROGRAM, &["-ldl"]);
    let start = || {
        let mut command = Command::new(&program);
        command
            .env("LD_LIBRARY_PATH", setting.installed("lib"))
            .env("LD_PRELOAD", setting.installed("lib/libcuda.so.1"));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    let said = |child: Child| {
        let output = child.wait_with_output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(
            output.status.success() && output.stderr.is_empty(),
            "{}: {}",
            output.status,
            text(&output.stderr)
        );
        text(&output.stdout)
    };
    release(&driver, 1);
    setting.succeed(&["install"]);
    let mut old = start();
    let mut loaded = [0; 7];
    old.stdout.as_mut().unwrap().read_exact(&mut loaded).unwrap();

    let is_over = AtomicBool::new(false);
    let n_runs = std::thread::scope(|scope| {
        let runs = [0, 1].map(|_| {
            scope.spawn(|| {
                let mut n_runs = 0;
                while !is_over.load(Ordering::Relaxed) {
                    let answer = said(start());
                    assert!(["loaded\n1 1\n", "loaded\n2 2\n"].contains(&answer.as_str()), "{answer}");
                    n_runs += 1;
                }
                n_runs
            })
        });
        for number in [2, 1, 2] {
            release(&driver, number);
            setting.succeed(&["install"]);
        }
        is_over.store(true, Ordering::Relaxed);
        runs.map(|run| run.join().unwrap()).iter().sum::<u32>()
    });
    assert!(n_runs > 0, "no program ran meanwhile");
    assert_eq!(said(start()), "loaded\n2 2\n");
    // What it had mapped is what it keeps.
    assert_eq!(said(old), "1 1\n");
}

#[test]
fn a_file_that_somebody_changed_is_left_and_named() {
    let setting = Setting::new();
    setting.succeed(&["install"]);
    fs::write(setting.installed("lib/libcuda.so.1"), "mine").unwrap();
    let said = setting.succeed(&["uninstall"]);
    assert!(said.contains("lib/libcuda.so.1"), "{said}");
    assert_eq!(fs::read(setting.installed("lib/libcuda.so.1")).unwrap(), b"mine");
    assert!(!setting.installed("bin/cudaway").exists());
}

#[test]
fn what_cannot_be_written_is_said_and_nothing_is_half_there() {
    let setting = Setting::new();
    fs::create_dir_all(setting.installed("lib/libcuda.so.1/in_the_way")).unwrap();
    let output = setting.run(&["install"]);
    assert!(!output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains("lib/libcuda.so.1"));
    let left: Vec<_> =
        fs::read_dir(setting.installed("lib")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(left.iter().all(|name| !name.to_string_lossy().starts_with('.')), "{left:?}");
    fs::remove_dir_all(setting.installed("lib/libcuda.so.1")).unwrap();
    setting.succeed(&["uninstall"]);
    assert!(!setting.installed("bin").exists(), "what was written before the failure is known");
}

#[test]
fn nothing_to_uninstall_is_an_error() {
    let setting = Setting::new();
    assert!(!setting.run(&["uninstall"]).status.success());
}

/// The command is found by its name after that, with its pages and completions; what is another's is not touched.
#[test]
fn a_system_gets_the_command_and_keeps_what_is_anothers() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        return testkit::skip!("ldconfig for another root needs to be root");
    }
    let setting = Setting::new();
    let mut share = Command::new(setting.tree().join("bin/cudaway"));
    assert!(share.arg("share").arg(setting.tree().join("share")).status().unwrap().success());
    let local = setting.root().join("usr/local");
    let (page, anothers) =
        (local.join("share/man/man1/cudaway-run.1"), local.join("share/zsh/site-functions"));
    fs::create_dir_all(setting.root().join("etc")).unwrap();
    fs::create_dir_all(&anothers).unwrap();
    fs::write(anothers.join("_cudaway"), "another's").unwrap();
    for _ in 0..2 {
        let said = setting.succeed(&["install", "--system"]);
        assert!(
            said.contains("left, it is another's: ") && said.contains("site-functions/_cudaway"),
            "{said}"
        );
        assert_eq!(said.matches("another's").count(), 1, "{said}");
        assert_eq!(fs::read_link(local.join("bin/cudaway")).unwrap(), Path::new("/opt/cudaway/bin/cudaway"));
        assert_eq!(fs::read_link(&page).unwrap(), Path::new("/opt/cudaway/share/man/man1/cudaway-run.1"));
    }
    setting.succeed(&["uninstall"]);
    assert!(!local.join("bin").exists() && !page.exists());
    assert_eq!(fs::read(anothers.join("_cudaway")).unwrap(), b"another's");
}

/// The loader's cache lists ours before a library of the same SONAME in a folder that is read earlier.
#[test]
fn the_system_finds_ours_first() {
    // SAFETY: a plain call.
    if unsafe { libc::geteuid() } != 0 {
        return testkit::skip!("ldconfig for another root needs to be root");
    }
    let setting = Setting::new();
    let root = setting.root();
    library(&root.join("usr/lib/other/libcuda.so.1"));
    fs::create_dir_all(root.join("etc/ld.so.conf.d")).unwrap();
    fs::write(root.join("etc/ld.so.conf"), "include /etc/ld.so.conf.d/*.conf\n").unwrap();
    fs::write(root.join("etc/ld.so.conf.d/00-another.conf"), "/usr/lib/other\n").unwrap();
    setting.succeed(&["install", "--system"]);
    let cache = Command::new("/sbin/ldconfig")
        .arg("-p")
        .arg("-C")
        .arg(root.join("etc/ld.so.cache"))
        .output()
        .unwrap();
    let cache = String::from_utf8(cache.stdout).unwrap();
    let first = cache.lines().find(|line| line.contains("libcuda.so.1 ")).unwrap();
    assert!(first.contains("/opt/cudaway/lib/"), "{cache}");
    assert!(cache.contains("/usr/lib/other/libcuda.so.1"), "the test's rival is there: {cache}");
    let spec: serde_json::Value =
        serde_json::from_slice(&fs::read(root.join("etc/cdi/cudaway.json")).unwrap()).unwrap();
    assert_eq!(spec["kind"], "cudaway.dev/gpu");
    setting.succeed(&["uninstall"]);
    assert!(!root.join("etc/ld.so.conf.d/00-cudaway.conf").exists() && !root.join("etc/cdi").exists());
    let cache = Command::new("/sbin/ldconfig")
        .arg("-p")
        .arg("-C")
        .arg(root.join("etc/ld.so.cache"))
        .output()
        .unwrap();
    assert!(!String::from_utf8(cache.stdout).unwrap().contains("cudaway"));
}

/// A kernel of Jupyter's is made for a Python that can be one, where Jupyter looks, and removed again.
#[test]
fn a_kernel_for_jupyter_is_written_and_removed() {
    let setting = Setting::new();
    let python = |name: &str, answer: &str| {
        let path = setting.folder.path().join(name);
        let mut shell = Command::new("sh");
        let script = format!("printf '#!/bin/sh\\necho {answer}\\n' > \"$0\" && chmod +x \"$0\"");
        assert!(shell.arg("-c").arg(script).arg(&path).status().unwrap().success());
        path
    };
    let (home, environment) = (setting.folder.path().join("home"), setting.folder.path().join("environment"));
    let run = |words: &[&str], variables: &[(&str, &Path)]| {
        let mut command = Command::new(setting.tree().join("bin/cudaway"));
        command.args(words).env_remove("JUPYTER_DATA_DIR").env_remove("XDG_DATA_HOME").env("HOME", &home);
        command.envs(variables.iter().copied()).output().unwrap()
    };
    let (fit, unfit) = (python("fit", "/x/python"), python("unfit", ""));
    let data = setting.folder.path().join("data");
    for (words, variables, folder) in [
        (&[][..], &[][..], home.join(".local/share/jupyter")),
        (&[], &[("XDG_DATA_HOME", data.as_path())], data.join("jupyter")),
        (&[], &[("JUPYTER_DATA_DIR", data.as_path()), ("XDG_DATA_HOME", home.as_path())], data.clone()),
        (&["--prefix", environment.to_str().unwrap()], &[], environment.join("share/jupyter")),
    ] {
        let install = |python: &Path| {
            let python = ["install", "--jupyter", "--python", python.to_str().unwrap()];
            run(&[&python[..], words].concat(), variables)
        };
        let refused = install(&unfit);
        assert_eq!(refused.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&refused.stderr).contains("has no ipykernel"));
        assert!(!folder.exists(), "nothing is written for a Python that is no kernel");
        // The second time it is the same.
        for _ in 0..2 {
            let done = install(&fit);
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let kernel = fs::read(folder.join("kernels/cudaway/kernel.json")).unwrap();
        let kernel: serde_json::Value = serde_json::from_slice(&kernel).unwrap();
        let program = setting.tree().join("bin/cudaway").canonicalize().unwrap();
        let starts = [
            program.to_str().unwrap(),
            "run",
            "--",
            "/x/python",
            "-m",
            "ipykernel_launcher",
            "-f",
            "{connection_file}",
        ];
        assert_eq!(kernel["argv"], serde_json::json!(starts));
        assert_eq!(kernel["display_name"], "Python (CUDAway)");
        let undone = run(&[&["uninstall", "--jupyter"], words].concat(), variables);
        assert!(undone.status.success(), "{}", String::from_utf8_lossy(&undone.stderr));
        assert!(!folder.exists(), "nothing is left, empty folders neither");
        assert!(!run(&[&["uninstall", "--jupyter"], words].concat(), variables).status.success());
    }
}
