//! The takeover over real programs: C sources with the names of a static runtime, compiled here, run under a preload of the
//! takeover alone (examples/takeover_alone.rs), with libraries in the place of our libcudart.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use common::{cc, takeover_library};

/// A directory with the takeover and the libraries its jumps lead into, as installed.
struct Installed {
    directory: tempfile::TempDir,
}

/// Names that one major alone has, or two of the three.
const OWN_NAMES: [(u32, &str, &str); 3] = [
    (11, "libcudart.so.11.0", "cudaBindTexture"),
    (12, "libcudart.so.12", "cudaGetDeviceProperties_v2"),
    (13, "libcudart.so.13", "cudaLogsRegisterCallback"),
];

impl Installed {
    fn get() -> &'static Installed {
        static INSTALLED: OnceLock<Installed> = OnceLock::new();
        INSTALLED.get_or_init(|| {
            let directory = tempfile::tempdir().unwrap();
            std::fs::copy(takeover_library(), directory.path().join("libcuda.so.1")).unwrap();
            for (major, name, own_name) in OWN_NAMES {
                let defines = [format!("-DMAJOR={major}"), format!("-DMAJORS_OWN={own_name}")];
                cc(
                    &["-shared", "-fPIC", &defines[0], &defines[1]],
                    &["ours.c"],
                    &directory.path().join(name),
                );
            }
            Installed { directory }
        })
    }

    fn path(&self, file: &str) -> PathBuf {
        self.directory.path().join(file)
    }

    /// Runs a program with the takeover preloaded.
    fn run(&self, program: &Path, arguments: &[&Path]) -> Output {
        self.command(program).args(arguments).output().unwrap()
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", self.path("libcuda.so.1")).env_remove("CUDAWAY_TAKEOVER");
        command
    }
}

/// Compiles a program or library with a static runtime of the given version inside.
fn with_runtime(main: &str, version: u32, own_name: &str, options: &[&str], out: &str) -> PathBuf {
    let out = Installed::get().path(out);
    let defines = [format!("-DVERSION={version}"), format!("-DMAJORS_OWN={own_name}")];
    let mut all = vec!["-fvisibility=hidden", &defines[0], &defines[1]];
    all.extend(options);
    cc(&all, &[main, "runtime.c"], &out);
    out
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn ours(major: u32) -> String {
    format!(
        "name=ours malloc=0 pointer=0x2a version={} own={major} mixed=36.75 short=5 handle=ours\n",
        major * 1000 + 1
    )
}

#[test]
fn every_major_in_the_program_is_redirected_to_its_own_library() {
    let installed = Installed::get();
    for (major, version) in [(11, 11080), (12, 12040), (13, 13050)] {
        let (_, _, own_name) = OWN_NAMES[major - 11];
        let program = with_runtime("program.c", version, own_name, &[], &format!("program{major}"));
        let major = u32::try_from(major).unwrap();
        assert_eq!(text(&installed.run(&program, &[])), ours(major));
    }
}

#[test]
fn a_program_at_a_fixed_address_is_redirected_too() {
    let program = with_runtime("program.c", 12040, OWN_NAMES[1].2, &["-no-pie"], "fixed");
    assert_eq!(text(&Installed::get().run(&program, &[])), ours(12));
}

#[test]
fn functions_with_endbr64_and_a_read_only_got_are_redirected_too() {
    let program = with_runtime(
        "program.c",
        13000,
        OWN_NAMES[2].2,
        &["-fcf-protection=full", "-Wl,-z,now,-z,relro"],
        "cet",
    );
    assert_eq!(text(&Installed::get().run(&program, &[])), ours(13));
}

#[test]
fn a_program_started_through_the_loader_is_redirected_too() {
    let program = with_runtime("program.c", 12040, OWN_NAMES[1].2, &[], "by_loader");
    let output = Installed::get().run(Path::new("/lib64/ld-linux-x86-64.so.2"), &[&program]);
    assert_eq!(text(&output), ours(12));
}

#[test]
fn names_that_one_major_alone_has_tell_it_whatever_the_version_says() {
    for (major, _, own_name) in OWN_NAMES {
        let program = with_runtime("program.c", 0, own_name, &[], &format!("unversioned{major}"));
        assert_eq!(text(&Installed::get().run(&program, &[])), ours(major));
    }
}

#[test]
fn where_the_names_leave_a_choice_the_copy_is_asked_for_its_version() {
    for (major, _, _) in OWN_NAMES {
        let program =
            with_runtime("program.c", major * 1000 + 20, "cudaGetLastError", &[], &format!("asked{major}"));
        let out = text(&Installed::get().run(&program, &[]));
        assert!(out.contains(&format!("version={} ", major * 1000 + 1)), "{out}");
    }
}

#[test]
fn a_library_that_the_program_is_linked_with_is_redirected_before_its_constructors_run() {
    let installed = Installed::get();
    let library = with_runtime("plugin.c", 13000, OWN_NAMES[2].2, &["-shared", "-fPIC"], "libneeded.so");
    let program = installed.path("needs");
    let folder = library.parent().unwrap().display();
    cc(&[&format!("-L{folder}"), "-lneeded", &format!("-Wl,-rpath,{folder}")], &["linked.c"], &program);
    assert_eq!(text(&installed.run(&program, &[])), ours(13));
}

#[test]
fn a_library_opened_later_is_redirected_before_its_constructors_run_every_time() {
    let installed = Installed::get();
    let host = installed.path("host");
    cc(&["-ldl", "-lpthread"], &["host.c"], &host);
    let plugin = |major: usize| {
        let version = u32::try_from(major).unwrap() * 1000;
        with_runtime(
            "plugin.c",
            version,
            OWN_NAMES[major - 11].2,
            &["-shared", "-fPIC"],
            &format!("plugin{major}.so"),
        )
    };
    let (eleven, thirteen) = (plugin(11), plugin(13));
    let out = text(&installed.run(&host, &[&eleven, &thirteen]));
    // Opened twice each, hammered by threads, and once more in a namespace of its own.
    assert_eq!(out, [ours(11), ours(11), ours(13), ours(13), ours(11), "done\n".to_owned()].concat());
}

#[test]
fn a_stripped_runtime_is_left_alone_and_reported() {
    let program = with_runtime("program.c", 12040, OWN_NAMES[1].2, &["-s"], "stripped");
    let mut command = Installed::get().command(&program);
    let reporter = reporter();
    command.env(
        "LD_PRELOAD",
        format!("{}:{}", reporter.display(), Installed::get().path("libcuda.so.1").display()),
    );
    let out = text(&command.output().unwrap());
    assert!(out.contains("name=static"), "{out}");
    assert!(out.contains("stripped") && out.contains("nvcc -cudart shared"), "{out}");
}

#[test]
fn the_report_counts_what_was_redirected_and_what_was_too_short() {
    let program = with_runtime("program.c", 12040, OWN_NAMES[1].2, &[], "counted");
    let mut command = Installed::get().command(&program);
    command.env(
        "LD_PRELOAD",
        format!("{}:{}", reporter().display(), Installed::get().path("libcuda.so.1").display()),
    );
    let out = text(&command.output().unwrap());
    assert!(
        out.contains(
            "counted: CUDA 12 runtime taken over, 8 of 9 functions redirected (1 too short, 0 changed"
        ),
        "{out}"
    );
}

#[test]
fn the_switch_turns_it_off() {
    let program = with_runtime("program.c", 12040, OWN_NAMES[1].2, &[], "switched_off");
    let out = text(&Installed::get().command(&program).env("CUDAWAY_TAKEOVER", "0").output().unwrap());
    assert!(out.starts_with("name=static malloc=-1"), "{out}");
}

#[test]
fn a_program_that_is_already_running_keeps_its_runtime() {
    let installed = Installed::get();
    let program = with_runtime("late.c", 12040, OWN_NAMES[1].2, &["-ldl"], "late");
    let mut command = Command::new(&program);
    let out = text(&command.arg(installed.path("libcuda.so.1")).output().unwrap());
    assert!(out.contains("name=static"), "{out}");
    assert!(out.contains("LD_PRELOAD"), "{out}");
}

#[test]
fn without_our_runtime_library_calls_fail_and_nothing_crashes() {
    let alone = tempfile::tempdir().unwrap();
    let library = alone.path().join("libcuda.so.1");
    std::fs::copy(Installed::get().path("libcuda.so.1"), &library).unwrap();
    let program = with_runtime("program.c", 12040, OWN_NAMES[1].2, &["-DTOLERANT"], "without_ours");
    let out = text(&Command::new(&program).env("LD_PRELOAD", &library).output().unwrap());
    assert!(out.starts_with("name=cudaErrorInitializationError malloc=3"), "{out}");
}

#[test]
fn programs_without_cuda_run_as_before() {
    let installed = Installed::get();
    for (program, arguments) in [
        ("/bin/true", &[][..]),
        ("/bin/sh", &["-c", "echo hello $PATH | cat"]),
        ("env", &["-u", "LD_PRELOAD"]),
        ("python3", &["-c", "import json, ctypes; print('hello')"]),
    ] {
        let mut plain = Command::new(program);
        plain.env_remove("LD_PRELOAD");
        let Ok(expected) = plain.args(arguments).output() else { continue };
        let output = installed.command(Path::new(program)).args(arguments).output().unwrap();
        assert_eq!(output, expected, "{program}");
    }
}

#[test]
fn no_page_of_the_program_stays_writable_and_executable() {
    let program = with_runtime("maps.c", 12040, OWN_NAMES[1].2, &[], "maps");
    let out = text(&Installed::get().run(&program, &[]));
    assert!(out.contains("r-xp"), "{out}");
    assert!(!out.contains("rwxp"), "{out}");
}

/// A library that prints the takeover's report at the program's end.
fn reporter() -> PathBuf {
    static REPORTER: OnceLock<PathBuf> = OnceLock::new();
    REPORTER.get_or_init(|| common::reporter(Installed::get().directory.path())).clone()
}
