//! What setting `lane` emits for every kernel of the value rows: valid LLVM IR, and an object that needs no symbol of ours.

use compiler::back::cpu::{self, ENTRY_LANE, Options, Setting};
use compiler::{Program, Source};
use std::path::{Path, PathBuf};
use std::process::Command;

fn run(program: &str, args: &[&str], folder: &Path) -> String {
    let output = Command::new(program).args(args).current_dir(folder).output();
    let output = output.unwrap_or_else(|error| panic!("{program}: {error}"));
    assert!(output.status.success(), "{program} {args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn load(path: &Path) -> Program {
    let text = std::fs::read_to_string(path).unwrap();
    let source = Source { name: path.file_name().unwrap().to_string_lossy().into_owned(), text };
    Program::load(&[source]).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"))
}

fn emit(program: &Program, name: &str) -> compiler::back::cpu::Compiled {
    let options = Options { setting: Some(Setting::Lane), ..Options::new([64, 1, 1], 256) };
    cpu::emit(program, program.kernel(name).unwrap(), &options).unwrap_or_else(|d| panic!("{name}: {d:?}"))
}

#[test]
fn objects_of_setting_l_call_nothing_by_name() {
    let rows = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-cpu/tests/run");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("step");
    std::fs::create_dir_all(&folder).unwrap();
    let mut n_kernels = 0;
    for file in [
        "atomic/atomic",
        "barrier/barrier",
        "control/control",
        "control/recursion",
        "control/waiting",
        "float/nan",
        "memory/memory",
        "warp/warp",
    ] {
        let program = load(&rows.join(file).with_extension("ptx"));
        let mut modules = vec![];
        for kernel in &program.kernels {
            let compiled = emit(&program, &kernel.name);
            assert_eq!((compiled.setting, compiled.width), (Setting::Lane, 1));
            assert!(
                compiled.context_bytes >= 96 && compiled.context_bytes.is_multiple_of(16),
                "{}",
                kernel.name
            );
            let name = format!("{}.{}.ll", file.replace('/', "."), kernel.name);
            std::fs::write(folder.join(&name), &compiled.text).unwrap();
            modules.push(name);
        }
        n_kernels += modules.len();
        for module in modules {
            let object = format!("{module}.o");
            run("clang-19", &["-w", "-O1", "-march=x86-64-v3", "-c", &module, "-o", &object], &folder);
            let defined = run("llvm-nm-19", &["--defined-only", "-g", &object], &folder);
            assert!(
                defined.trim().ends_with(&format!("T {ENTRY_LANE}")) && defined.lines().count() == 1,
                "{defined}"
            );
            let undefined = run("llvm-nm-19", &["-u", &object], &folder);
            let others: Vec<_> = undefined
                .split_whitespace()
                .filter(|w| !["U", "memset", "memcpy", "memmove"].contains(w))
                .collect();
            assert!(others.is_empty(), "{module} calls {others:?}");
        }
    }
    assert!(n_kernels > 60, "{n_kernels}");
}

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn step_of(body: &str) -> String {
    let text = format!(
        "{HEAD}.visible .entry k(.param .u64 p) {{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;\n{body}\nret; }}"
    );
    let program = Program::load(&[Source { name: "k.ptx".into(), text }]).unwrap_or_else(|d| panic!("{d:?}"));
    emit(&program, "k").text
}

/// Yields are `ret i32 2`.
fn yields(body: &str) -> usize {
    step_of(body).matches("ret i32 2").count()
}

#[test]
fn only_loops_that_may_wait_for_another_thread_yield() {
    let counting = "mov.u32 %r1, 0; L: add.u32 %r1, %r1, 1; setp.lt.u32 %p1, %r1, 9; @%p1 bra L;";
    assert_eq!(yields(counting), 0);
    let histogram = "ld.param.u64 %rd1, [p]; mov.u32 %r1, 0; L: red.global.add.u32 [%rd1], 1; add.u32 %r1, %r1, 1; \
                     setp.lt.u32 %p1, %r1, 9; @%p1 bra L;";
    assert_eq!(yields(histogram), 0);
    let data = "ld.param.u64 %rd1, [p]; L: ld.global.u32 %r1, [%rd1]; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;";
    assert_eq!(yields(data), 0, "a weak load is no way to wait");
    assert_eq!(yields(&data.replace("ld.global", "ld.volatile.global")), 1);
    assert_eq!(yields(&data.replace("ld.global", "ld.relaxed.gpu.global")), 1);
    assert_eq!(yields(&data.replace("L: ld", "L: membar.gl; ld")), 1);
    let lock = "ld.param.u64 %rd1, [p]; L: atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0; @%p1 bra L;";
    assert_eq!(yields(lock), 1);
}

#[test]
fn a_value_that_is_not_live_at_the_barrier_is_not_saved() {
    let bytes = |body: &str| {
        let text = format!(
            "{HEAD}.visible .entry k(.param .u64 p) {{ .reg .b32 %r<40>; .reg .b64 %rd<4>;\n{body}\nret; }}"
        );
        let program = Program::load(&[Source { name: "k.ptx".into(), text }]).unwrap();
        emit(&program, "k").context_bytes
    };
    let loads = "ld.param.u64 %rd1, [p]; ld.global.u32 %r1, [%rd1]; ld.global.u32 %r2, [%rd1+4]; add.u32 %r3, %r1, %r2;";
    // The address (8 bytes) and the sum (4), behind 96 bytes of named fields.
    assert_eq!(bytes(&format!("{loads} bar.sync 0; st.global.u32 [%rd1], %r3;")), 112);
    assert_eq!(bytes(&format!("{loads} st.global.u32 [%rd1], %r3; bar.sync 0;")), 96);
}
