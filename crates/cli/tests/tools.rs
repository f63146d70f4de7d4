//! The tools that `cudaway` is under other names, started as programs start them.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const GOOD: &str = "\
.version 8.0
.target sm_80
.address_size 64
.extern .func other();
.visible .entry store(.param .u64 to)
{
    .shared .b32 words[16];
    .reg .b64 %to;
    ld.param.u64 %to, [to];
    st.global.u32 [%to], 7;
    ret;
}
";

/// An installed tree, with an empty library in place of the driver.
struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        let own = tree.path("bin/cudaway");
        // By another process: a file that this one wrote cannot be run while another test's child still has it open.
        let mut cp = Command::new("cp");
        assert!(cp.arg(env!("CARGO_BIN_EXE_cudaway")).arg(own).status().unwrap().success());
        for (name, target) in [
            ("tools/ptxas", "../bin/cudaway"),
            ("tools/nvidia-smi", "../bin/cudaway"),
            ("tools/compiler/nvcc", "../../bin/cudaway"),
            ("tools/toolkit/bin/ptxas", "../../../bin/cudaway"),
        ] {
            symlink(target, tree.path(name)).unwrap();
        }
        let (library, source) = (tree.path("lib/libcuda.so.1"), tree.path("empty.c"));
        std::fs::write(&source, "").unwrap();
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-Wl,-soname,libcuda.so.1", "-o"]).arg(library).arg(source);
        assert!(cc.status().unwrap().success());
        tree
    }

    fn path(&self, name: &str) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        path
    }

    /// A file of that text.
    fn file(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        std::fs::write(&path, text).unwrap();
        path
    }

    /// A compiler that writes its own words to the file that it shall make.
    fn compiler(&self, name: &str) -> PathBuf {
        let text = "#!/bin/sh\nall=\"$*\"\nwhile [ $# -gt 0 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n\
                    echo \"real $all\" > \"${out:-/dev/stdout}\"\nexit 3\n";
        let (written, path) = (self.file("compiler.sh", text), self.path(name));
        // By another process, as above.
        let mut install = Command::new("install");
        install.args(["-m", "755"]).args([written, path.clone()]);
        assert!(install.status().unwrap().success());
        path
    }

    /// A command with an environment in which no toolkit is named.
    fn command(&self, program: &str) -> Command {
        let mut command = Command::new(self.path(program));
        for name in [
            "CUDA_HOME",
            "CUDA_PATH",
            "NVCC",
            "LD_PRELOAD",
            "LD_LIBRARY_PATH",
            "TRITON_PTXAS_PATH",
            "CUDA_ROOT",
            "XLA_FLAGS",
        ] {
            command.env_remove(name);
        }
        command.env("CUDAWAY_CACHE_DIR", self.path("cache")).env("PATH", "/usr/bin:/bin");
        command.current_dir(self.0.path());
        command
    }

    fn ptxas(&self, words: &[&str]) -> Output {
        self.command("tools/ptxas").args(words).output().unwrap()
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn str(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn ptx_is_handed_on_and_ends_with_a_zero() {
    let tree = Tree::new();
    let input = tree.file("k.ptx", GOOD);
    let (output, text_of) = (tree.path("k.cubin"), |output: &Output| text(&output.stderr));
    let ran = tree.ptxas(&["-lineinfo", "-v", "--gpu-name=sm_90a", str(&input), "-o", str(&output)]);
    assert!(ran.status.success(), "{}", text_of(&ran));
    assert_eq!(std::fs::read(&output).unwrap(), [GOOD.as_bytes(), b"\0"].concat());
    let said = text_of(&ran);
    assert!(said.contains("Compiling entry function 'store' for 'sm_90a'"), "{said}");
    assert!(said.contains("0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads"), "{said}");
    // Nobody allotted registers, and nobody reads that somebody did.
    assert!(!said.contains("Used "), "{said}");
    // What was handed on is handed on again.
    let again = tree.path("again");
    assert!(tree.ptxas(&[str(&output), "-o", str(&again)]).status.success());
    assert_eq!(std::fs::read(&again).unwrap(), std::fs::read(&output).unwrap());
    assert_eq!(text_of(&tree.ptxas(&[str(&input), "-o", str(&output)])), "");
}

#[test]
fn a_mistake_is_told_with_its_line() {
    let tree = Tree::new();
    let input =
        tree.file("bad.ptx", &GOOD.replace("    ret;", "    no.such %to;\n    st.global.u32 [%from], 7;"));
    let output = tree.path("bad.cubin");
    let ran = tree.ptxas(&[str(&input), "-o", str(&output)]);
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(255));
    assert!(said.contains(&format!("ptxas {}, line 11; error   : ", str(&input))), "{said}");
    assert!(said.contains(&format!("ptxas {}, line 12; error   : ", str(&input))), "{said}");
    assert!(said.lines().last().unwrap().starts_with("ptxas fatal   : "), "{said}");
    assert!(!output.exists());
    let missing = tree.ptxas(&["/no/such.ptx"]);
    assert_eq!(missing.status.code(), Some(255));
    assert!(text(&missing.stderr).contains("ptxas fatal   : /no/such.ptx"), "{}", text(&missing.stderr));
}

#[test]
fn only_a_part_may_call_what_it_does_not_define() {
    let tree = Tree::new();
    let input = tree.file("part.ptx", &GOOD.replace("    ret;", "    call other;\n    ret;"));
    let output = tree.path("part.cubin");
    let whole = tree.ptxas(&[str(&input), "-o", str(&output)]);
    assert!(text(&whole.stderr).contains("other"), "{}", text(&whole.stderr));
    assert_eq!(whole.status.code(), Some(255));
    let part = tree.ptxas(&["-c", str(&input), "-o", str(&output)]);
    assert!(part.status.success(), "{}", text(&part.stderr));
}

/// Triton looks for `release (\d+\.\d+)`, XLA for `V(\d+)\.(\d+)\.(\d+)`.
#[test]
fn the_version_has_the_words_that_callers_look_for() {
    let tree = Tree::new();
    let said = text(&tree.ptxas(&["--version"]).stdout);
    let release = said.split("release ").nth(1).unwrap().split(',').next().unwrap();
    let (major, minor) = release.split_once('.').unwrap();
    // A Triton of before CUDA 13 takes no later major.
    assert_eq!(major, "12");
    assert!(minor.parse::<u32>().is_ok(), "{said}");
    assert!(said.contains(&format!("V{release}.")), "{said}");
    // The same, as a command.
    let mut command = tree.command("bin/cudaway");
    assert_eq!(text(&command.args(["ptxas", "--version"]).output().unwrap().stdout), said);
}

#[test]
fn nvcc_asks_the_real_one_for_ptx() {
    let tree = Tree::new();
    let real = tree.compiler("toolkit/bin/nvcc");
    let path = format!("{}:{}:/usr/bin:/bin", str(&tree.path("tools/compiler")), str(real.parent().unwrap()));
    let run = |words: &[&str]| {
        let output = tree.command("tools/compiler/nvcc").env("PATH", &path).args(words).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "the real one's: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert_eq!(run(&["--version"]), "real --version\n");
    assert_eq!(run(&["-c", "a b.cu"]), "real -c a b.cu\n");
    run(&["--cubin", "-arch", "sm_90", "kernel.cu"]);
    assert_eq!(
        std::fs::read_to_string(tree.path("kernel.cubin")).unwrap(),
        "real --ptx -arch sm_90 kernel.cu -o kernel.cubin\n"
    );
    // The toolkit that the user names, where PATH has none.
    let mut command = tree.command("tools/compiler/nvcc");
    let output = command.env("CUDA_HOME", tree.path("toolkit")).arg("--version").output().unwrap();
    assert_eq!(text(&output.stdout), "real --version\n");
}

#[test]
fn without_a_compiler_nvcc_says_so() {
    if Path::new("/usr/local/cuda/bin/nvcc").exists() {
        return testkit::skip!("there is a compiler in /usr/local/cuda");
    }
    let tree = Tree::new();
    let path = tree.path("tools/compiler");
    let output = tree.command("tools/compiler/nvcc").env("PATH", &path).arg("--cubin").output().unwrap();
    assert_eq!(output.status.code(), Some(127));
    assert!(text(&output.stderr).contains("there is none in PATH"), "{}", text(&output.stderr));
    // And programs are not made to believe that there is one.
    let all = tree.command("bin/cudaway").args(["run", "env"]).output().unwrap();
    let all = text(&all.stdout);
    assert!(all.contains(&format!("PATH={}:/usr/bin:/bin\n", str(&tree.path("tools")))), "{all}");
    assert!(!all.contains("\nNVCC="), "{all}");
}

#[test]
fn a_run_puts_the_tools_in_front_and_keeps_what_the_user_set() {
    let tree = Tree::new();
    let real = tree.compiler("toolkit/bin/nvcc");
    std::fs::write(tree.path("toolkit/include/cuda.h"), "").unwrap();
    let tools = tree.path("tools");
    let path = format!("{}:/usr/bin:/bin", str(real.parent().unwrap()));
    let run = |mut command: Command, words: &[&str]| {
        let output = command.args(["run", "--"]).args(words).env("PATH", &path).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let all = run(tree.command("bin/cudaway"), &["env"]);
    let value = |name: &str| {
        let line = all.lines().find_map(|line| line.strip_prefix(&format!("{name}=")));
        line.unwrap_or_else(|| panic!("{name} is not in\n{all}")).to_owned()
    };
    for name in ["TRITON_PTXAS_PATH", "TRITON_PTXAS_BLACKWELL_PATH"] {
        assert_eq!(value(name), format!("{}/ptxas", str(&tools)));
    }
    assert!(Path::new(&value("PYCUDA_CACHE_DIR")).starts_with(tree.path("cache")));
    assert!(Path::new(&value("PYCUDA_CACHE_DIR")).is_dir(), "PyCUDA makes none");
    // Where programs look for the rest of the toolkit.
    let nvcc = PathBuf::from(value("NVCC"));
    let bin = nvcc.parent().unwrap();
    assert!(bin.join("../include/cuda.h").exists());
    assert_eq!(value("PATH"), format!("{}:{}:{path}", str(bin), str(&tools)));
    let output = Command::new(&nvcc).env("PATH", value("PATH")).arg("--version").output().unwrap();
    assert_eq!(text(&output.stdout), "real --version\n");
    // A run in a run is one run, and the program is looked for where it will be.
    assert_eq!(run(tree.command("bin/cudaway"), &[str(&tree.path("bin/cudaway")), "run", "env"]), all);
    assert!(run(tree.command("bin/cudaway"), &["ptxas", "--version"]).contains("release"));

    let mut command = tree.command("bin/cudaway");
    command.env("TRITON_PTXAS_PATH", "/mine").env("NVCC", "/mine");
    let all = run(command, &["env"]);
    for name in ["TRITON_PTXAS_PATH", "NVCC"] {
        assert!(all.lines().any(|it| it == format!("{name}=/mine")), "{all}");
    }
}

#[test]
fn xla_takes_our_ptxas_beside_the_flags_that_the_user_set() {
    let tree = Tree::new();
    let run = |flags: Option<&str>, words: &[&str]| {
        let mut command = tree.command("bin/cudaway");
        flags.map(|flags| command.env("XLA_FLAGS", flags));
        let output = command.args(["run", "--"]).args(words).output().unwrap();
        assert!(output.stderr.is_empty(), "{}", text(&output.stderr));
        text(&output.stdout)
    };
    let toolkit = tree.path("tools/toolkit");
    let ours = format!("--xla_gpu_cuda_data_dir={}", str(&toolkit));
    let has = |all: &str, line: &str| assert!(all.lines().any(|it| it == line), "{line} is not in\n{all}");
    let all = run(None, &["env"]);
    has(&all, &format!("CUDA_ROOT={}", str(&toolkit)));
    has(&all, &format!("XLA_FLAGS={ours}"));
    has(&run(Some("--xla_dump_to=/tmp/x"), &["env"]), &format!("XLA_FLAGS=--xla_dump_to=/tmp/x {ours}"));
    has(&run(Some("--xla_gpu_cuda_data_dir=/mine"), &["env"]), "XLA_FLAGS=--xla_gpu_cuda_data_dir=/mine");
    // A run in a run says it once.
    has(&run(None, &[str(&tree.path("bin/cudaway")), "run", "env"]), &format!("XLA_FLAGS={ours}"));
}
