//! NVRTC and its like under a preload of the takeover alone: libraries with their names, compiled here, and the same names inside
//! programs. With NVIDIA's own libraries: xtask/src/test/nvrtc.rs.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use common::{cc, takeover_library};

/// What a program gets that asks for everything, with PTX in place of machine code.
const PTX: &str = "\
both: 0 35 0 .version
no cubin: 0 0 0 ........
no PTX: 0 43 0 ELF mach
wrong: 4 3 4
compiler: 1 0 5 5 0 0 23 .version 8.0
some text 0 1
fatbin: 0 cubin 90 elf 4, 0 PTX 90 text 29 none, 2 3
";

/// And what it gets without us.
const MACHINE_CODE: &str = "\
both: 0 43 0 ELF mach
no cubin: 0 0 0 ........
no PTX: 0 43 0 ELF mach
wrong: 4 3 4
compiler: 1 0 5 5 0 0 43 ELF machine code, longer than the text is 0 1
fatbin: 0 cubin 90 elf 4, 3 cubin 90 elf 4, 3 3
";

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        std::fs::copy(takeover_library(), folder.path("libcuda.so.1")).unwrap();
        folder
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// A library that exports the names.
    fn library(&self, options: &[&str]) -> PathBuf {
        let out = self.path("libcompilers.so");
        cc(&[&["-shared", "-fPIC"], options].concat(), &["compiler.c"], &out);
        out
    }

    /// A program that opens it.
    fn opener(&self) -> PathBuf {
        let out = self.path("opener");
        cc(&["-DOPENS", "-ldl", "-lpthread"], &["compile.c"], &out);
        out
    }

    /// A program with all of it inside.
    fn with_all(&self, options: &[&str]) -> PathBuf {
        let out = self.path("with_all");
        cc(&[&["-ldl", "-lpthread"], options].concat(), &["compile.c", "compiler.c"], &out);
        out
    }

    fn preloaded(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.env("LD_PRELOAD", self.path("libcuda.so.1")).env_remove("CUDAWAY_TAKEOVER");
        command
    }

    /// What a program says with the report at its end.
    fn report(&self, program: &Path, arguments: &[&str]) -> String {
        let reporter = common::reporter(self.0.path());
        let preload = format!("{}:{}", reporter.display(), self.path("libcuda.so.1").display());
        text(&self.preloaded(program).env("LD_PRELOAD", preload).args(arguments).output().unwrap())
    }
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{output:?}");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_library_that_is_opened_gives_ptx_every_time() {
    let folder = Folder::new();
    let opener = folder.opener();
    // Some compilers' older libraries have the older hash table alone, and newer processors' functions begin with a mark.
    for options in [&[][..], &["-Wl,--hash-style=sysv"], &["-fcf-protection=full"], &["-O2"], &["-O0"]] {
        let library = folder.library(options);
        let mut command = folder.preloaded(&opener);
        command.arg(&library).args(["unasked", "code", "again", "300", "code", "maps"]);
        let wanted = ["unasked: .version\n", PTX, "again: as before\n", PTX, "maps: all\n"].concat();
        assert_eq!(text(&command.output().unwrap()), wanted, "{options:?}");
    }
}

#[test]
fn a_library_that_a_program_is_linked_with_gives_ptx() {
    let folder = Folder::new();
    let (library, program) = (folder.library(&[]), folder.path("linked"));
    let rpath = format!("-Wl,-rpath,{}", folder.0.path().display());
    cc(&[library.to_str().unwrap(), &rpath, "-ldl", "-lpthread"], &["compile.c"], &program);
    assert_eq!(
        text(&folder.preloaded(&program).args(["unasked", "code", "maps"]).output().unwrap()),
        ["unasked: .version\n", PTX, "maps: all\n"].concat()
    );
    assert_eq!(text(&Command::new(&program).arg("code").output().unwrap()), MACHINE_CODE);
}

#[test]
fn the_same_inside_a_program_gives_ptx_by_its_names() {
    let folder = Folder::new();
    for options in
        [&[][..], &["-no-pie"], &["-fvisibility=hidden"], &["-rdynamic"], &["-fcf-protection=full"]]
    {
        let program = folder.with_all(options);
        let out = folder.report(&program, &["code"]);
        let (said, report) = out.split_at(PTX.len().min(out.len()));
        assert_eq!(said, PTX, "{options:?}");
        for name in ["NVRTC", "nvPTXCompiler", "nvFatbin"] {
            let line = format!("with_all: PTX takes the place of machine code in {name}\n");
            assert_eq!(report.matches(&line).count(), 1, "{options:?}: {report}");
        }
        let by_loader =
            folder.preloaded(Path::new("/lib64/ld-linux-x86-64.so.2")).arg(&program).arg("code").output();
        assert_eq!(text(&by_loader.unwrap()), PTX, "{options:?}");
    }
}

#[test]
fn without_names_it_is_left_alone() {
    let folder = Folder::new();
    let program = folder.with_all(&["-s"]);
    assert_eq!(text(&folder.preloaded(&program).arg("code").output().unwrap()), MACHINE_CODE);
}

#[test]
fn the_switch_turns_it_off() {
    let folder = Folder::new();
    let program = folder.with_all(&[]);
    let off = folder.preloaded(&program).env("CUDAWAY_TAKEOVER", "0").arg("code").output();
    assert_eq!(text(&off.unwrap()), MACHINE_CODE);
}

#[test]
fn functions_with_an_unknown_beginning_are_all_left_alone_and_named() {
    let folder = Folder::new();
    let program = folder.with_all(&["-DODD"]);
    let out = folder.report(&program, &["code"]);
    // A size of PTX and machine code for it would be written past the room that there is.
    assert!(out.starts_with("both: 0 43 0 ELF mach\n"), "{out}");
    assert!(out.contains("with_all: the functions of NVRTC begin in an unknown way, left alone"), "{out}");
    assert!(out.contains("PTX takes the place of machine code in nvFatbin"), "{out}");
}

#[test]
fn a_library_in_use_gives_ptx_from_then_on_and_to_who_has_room_for_it() {
    let folder = Folder::new();
    let (library, opener, driver) = (folder.library(&[]), folder.opener(), folder.path("libcuda.so.1"));
    let mut command = Command::new(&opener);
    command.arg(&library).arg("late").arg(&driver).args(["unasked", "code", "maps"]);
    let wanted = ["asked before: 43 ELF mach\nunasked: ELF mach\n", PTX, "maps: all\n"].concat();
    assert_eq!(text(&command.output().unwrap()), wanted);
    // Inside the program itself, too.
    let mut command = Command::new(folder.with_all(&[]));
    command.arg("late").arg(&driver).args(["unasked", "code", "maps"]);
    assert_eq!(text(&command.output().unwrap()), wanted);
}

#[test]
fn threads_may_be_in_the_library_when_its_functions_become_jumps() {
    let folder = Folder::new();
    let (library, opener, driver) = (folder.library(&[]), folder.opener(), folder.path("libcuda.so.1"));
    for _ in 0..20 {
        let mut command = Command::new(&opener);
        command.arg(&library).arg("threads").arg(&driver).arg("code");
        assert_eq!(text(&command.output().unwrap()), ["threads: done\n", PTX].concat());
    }
}
