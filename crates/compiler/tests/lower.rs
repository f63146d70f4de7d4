//! PTX → IR: golden text, diagnostics, linking, and no panic on anything. `BLESS=1` rewrites the golden files.

use std::path::{Path, PathBuf};

use compiler::ir::{Op, Order, Space};
use compiler::lower::verify::verify;
use compiler::program::Target;
use compiler::{Program, Source};
use proptest::prelude::*;

fn source(name: &str, text: &str) -> Source {
    Source { name: name.to_owned(), text: text.to_owned() }
}

fn head(body: &str) -> String {
    format!(".version 8.0\n.target sm_80\n.address_size 64\n{body}")
}

fn load(texts: &[&str]) -> Result<Program, Vec<compiler::Diagnostic>> {
    let sources: Vec<Source> =
        texts.iter().enumerate().map(|(nth, text)| source(&format!("{nth}.ptx"), &head(text))).collect();
    Program::load(&sources)
}

/// Loads a program in which every kernel must lower, and checks all bodies.
fn works(texts: &[&str]) -> Program {
    let program = load(texts).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    check(&program);
    assert!(program.diagnostics.is_empty(), "{:?}", program.diagnostics);
    program
}

fn check(program: &Program) {
    for body in program.kernels.iter().filter_map(|it| it.body.as_ref().ok()).chain(&program.functions) {
        if let Err(error) = verify(body) {
            panic!("{error}\n{body}");
        }
    }
}

fn cases(folder: &str) -> Vec<(PathBuf, Source)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(folder);
    let mut cases: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|it| it == "ptx"))
        .map(|path| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            let text = std::fs::read_to_string(&path).unwrap();
            (path, Source { name, text })
        })
        .collect();
    cases.sort_by(|a, b| a.0.cmp(&b.0));
    assert!(!cases.is_empty(), "no cases in {}", folder.display());
    cases
}

fn compare(golden: &Path, seen: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(golden, seen).unwrap();
    }
    let expected = std::fs::read_to_string(golden).unwrap_or_default();
    assert!(seen == expected, "{} differs (BLESS=1 rewrites):\n{seen}", golden.display());
}

#[test]
fn golden_ir() {
    for (path, source) in cases("golden/lower") {
        let program = Program::load(&[source]).unwrap();
        check(&program);
        let mut seen = String::new();
        for kernel in &program.kernels {
            match &kernel.body {
                Ok(body) => seen.push_str(&format!("{body}\n")),
                Err(diagnostics) => diagnostics.iter().for_each(|it| seen.push_str(&format!("{it}\n"))),
            }
        }
        program.functions.iter().for_each(|function| seen.push_str(&format!("{function}\n")));
        compare(&path.with_extension("ir"), &seen);
    }
}

#[test]
fn diagnostics_as_a_user_sees_them() {
    for (path, source) in cases("err") {
        let mut seen = String::new();
        match Program::load(&[source]) {
            Err(diagnostics) => diagnostics.iter().for_each(|it| seen.push_str(&format!("{it}\n"))),
            Ok(program) => {
                check(&program);
                program.diagnostics.iter().for_each(|it| {
                    seen.push_str(&format!("{it} [{}]\n", it.function.as_deref().unwrap_or("-")));
                });
                for kernel in &program.kernels {
                    let state = if kernel.body.is_ok() { "works" } else { "fails" };
                    seen.push_str(&format!("{}: {state}\n", kernel.name));
                }
            }
        }
        compare(&path.with_extension("txt"), &seen);
    }
}

#[test]
fn a_bad_kernel_fails_alone() {
    let program = load(&[".visible .entry good() { ret; }\n.visible .entry bad() { .reg .b32 %r<3>;\n\tfoo.bar %r1, %r2; ret; }"])
        .unwrap();
    assert!(program.kernel("good").unwrap().body.is_ok());
    let diagnostics = program.kernel("bad").unwrap().body.as_ref().unwrap_err();
    assert_eq!(diagnostics[0].to_string(), "0.ptx:6:2: error: instruction 'foo.bar' is not supported");
    assert_eq!(program.diagnostics, *diagnostics);
}

#[test]
fn text_that_is_no_module_is_refused() {
    let message = |text: &str| Program::load(&[source("x", text)]).unwrap_err()[0].to_string();
    assert_eq!(message(""), "x:1:1: error: the '.version' directive is missing");
    assert_eq!(message(".version 8.0\n"), "x:1:1: error: the '.target' directive is missing");
    assert_eq!(message("hello"), "x:1:1: error: expected a directive, found `hello`");
    let narrow = ".version 8.0\n.target sm_80\n.address_size 32\n";
    assert_eq!(message(narrow), "x:3:1: error: 32-bit addresses are not supported");
}

#[test]
fn a_kernel_that_calls_a_bad_function_fails_with_the_functions_reason() {
    let program = load(&[
        ".func f() { foo; ret; }\n.visible .entry k() { call f; ret; }\n.visible .entry l() { ret; }",
    ])
    .unwrap();
    let diagnostics = program.kernel("k").unwrap().body.as_ref().unwrap_err();
    assert_eq!(diagnostics[0].function.as_deref(), Some("f"));
    assert!(program.kernel("l").unwrap().body.is_ok());
}

#[test]
fn an_indirect_call_fails_when_a_function_it_can_reach_is_bad() {
    let program = load(&[".func f() { foo; ret; }\n.global .u64 table[1] = {f};\n\
        .visible .entry k() { .reg .b64 %rd<3>; ld.global.u64 %rd1, [table]; p: .callprototype _ (); call %rd1, (), p; ret; }\n\
        .visible .entry l() { ret; }"])
    .unwrap();
    assert!(program.kernel("k").unwrap().body.is_err());
    assert!(program.kernel("l").unwrap().body.is_ok());
}

#[test]
fn names_are_resolved_across_sources() {
    let program = works(&[
        ".extern .global .u32 counter;\n.extern .func (.param .b32 r) next(.param .b32 a);\n\
         .visible .entry k() { .reg .b32 %r<3>; .reg .b64 %rd<2>;\n\
         { .param .b32 a; st.param.b32 [a], 3; .param .b32 r; call (r), next, (a); ld.param.b32 %r1, [r]; }\n\
         mov.u64 %rd1, counter; st.global.u32 [%rd1], %r1; ret; }",
        ".visible .global .u32 counter = 5;\n\
         .visible .func (.param .b32 r) next(.param .b32 a) { .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.s32 %r2, %r1, 1; st.param.b32 [r], %r2; ret; }",
    ]);
    let (_, counter) = program.global("counter").unwrap();
    assert_eq!(counter.init, 5u32.to_le_bytes());
    assert!(program.functions.is_empty(), "the call was inlined");
}

#[test]
fn private_names_of_two_sources_are_two_variables() {
    let program = works(&[".global .u32 x = 1;", ".global .u32 x = 2;"]);
    assert_eq!(program.globals.len(), 2);
    assert!(program.global("x").is_some(), "a private variable is found while no visible one has its name");
}

#[test]
fn two_strong_definitions_are_an_error_and_a_weak_one_gives_way() {
    let twice = load(&[".visible .global .u32 x = 1;", ".visible .global .u32 x = 2;"]).unwrap_err();
    assert_eq!(twice[0].to_string(), "1.ptx:4:23: error: 'x' is defined in more than one source");
    let weak = works(&[".weak .global .u32 x = 1;", ".weak .global .u32 x = 2;"]);
    assert_eq!(weak.globals.len(), 1);
    assert_eq!(weak.globals[0].init, 1u32.to_le_bytes());
    let strong = works(&[
        ".weak .func (.param .b32 r) f() { st.param.b32 [r], 1; ret; }\n\
         .visible .entry k(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<2>; { .param .b32 r; call (r), f; ld.param.b32 %r1, [r]; }\n\
         ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r1; ret; }",
        ".visible .func (.param .b32 r) f() { st.param.b32 [r], 2; ret; }",
    ]);
    let body = strong.kernel("k").unwrap().body.as_ref().unwrap().to_string();
    assert!(body.contains("Const(2)") && !body.contains("Const(1)"), "{body}");
}

#[test]
fn common_variables_are_one_of_the_larger_size() {
    let program = works(&[".common .global .align 4 .b8 c[8];", ".common .global .align 16 .b8 c[32];"]);
    assert_eq!(program.globals.len(), 1);
    assert_eq!((program.globals[0].bytes, program.globals[0].align), (32, 16));
}

#[test]
fn what_nobody_defines_fails_its_user_only() {
    let program = load(&[
        ".extern .func gone();\n.visible .entry k() { call gone; ret; }\n.visible .entry l() { ret; }",
    ])
    .unwrap();
    let diagnostics = program.kernel("k").unwrap().body.as_ref().unwrap_err();
    assert!(diagnostics[0].message.contains("'gone' is not defined in any source"));
    assert!(program.kernel("l").unwrap().body.is_ok());
}

#[test]
fn initialisers_become_bytes_and_relocations() {
    let program = works(&[
        ".global .align 8 .u64 p[3] = {0, generic(x)+8, f};\n.global .u16 x[2][2] = {{1}, {2, 3}};\n\
        .global .u8 bytes[2] = {0xff(x), 0xff00(x)};\n.global .f32 y = 1.5;\n.func f() { ret; }\n\
        .global .attribute(.managed) .s64 m = -1;",
    ]);
    let global = |name: &str| program.global(name).unwrap().1;
    let p = global("p");
    assert_eq!(p.bytes, 24);
    assert_eq!(p.relocations.len(), 1);
    assert_eq!((p.relocations[0].offset, p.relocations[0].addend), (8, 8));
    assert!(matches!(p.relocations[0].target, Target::Global(_)));
    assert_ne!(p.init[16..24], [0; 8], "a function's address is a number, and not null");
    assert_eq!(global("x").init, [1, 0, 0, 0, 2, 0, 3, 0]);
    assert_eq!((global("bytes").relocations[1].bytes, global("bytes").relocations[1].shift), (1, 8));
    assert_eq!(global("y").init, 1.5f32.to_le_bytes());
    assert!(global("m").managed);
    assert_eq!(global("m").init, (-1i64).to_le_bytes());
}

#[test]
fn kernel_parameters_are_laid_out_as_c_does() {
    let program =
        works(&[".visible .entry k(.param .u8 a, .param .u64 b, .param .align 4 .b8 c[6], .param .f32 d)\n\
        .maxntid 128, 2\n.minnctapersm 3\n.maxnreg 64\n{ ret; }"]);
    let kernel = program.kernel("k").unwrap();
    let layout: Vec<_> = kernel.params.iter().map(|it| (it.offset, it.bytes, it.align)).collect();
    assert_eq!(layout, [(0, 1, 1), (8, 8, 8), (16, 6, 4), (24, 4, 4)]);
    assert_eq!(kernel.params_bytes, 28);
    assert_eq!(kernel.max_ntid, Some([128, 2, 1]));
    assert_eq!(
        (kernel.min_nctapersm, kernel.max_nreg, kernel.req_ntid, kernel.target),
        (Some(3), Some(64), None, 80)
    );
}

#[test]
fn shared_variables_are_placed_per_kernel() {
    let program = works(&[".extern .shared .align 16 .b8 dynamic[];\n.shared .align 4 .b8 both[6];\n\
        .visible .entry k() { .shared .align 8 .b8 mine[8]; .reg .b32 %r<2>; mov.u32 %r1, both; st.shared.u32 [mine], %r1; st.shared.u32 [dynamic], 1; ret; }\n\
        .visible .entry l() { st.shared.u8 [both], 1; ret; }"]);
    let layout = |name: &str| program.kernel(name).unwrap().shared.clone();
    let offsets: Vec<u64> = layout("k").offsets.iter().map(|it| it.1).collect();
    assert_eq!(offsets, [0, 8, 16]);
    assert_eq!((layout("k").bytes, layout("k").align), (16, 16));
    assert_eq!((layout("l").bytes, layout("l").offsets.len()), (6, 1));
}

#[test]
fn a_call_through_a_pointer_tries_the_functions_that_fit() {
    let function = |name: &str, add: u32| {
        format!(
            ".func (.param .b32 r) {name}(.param .b32 a) {{ .reg .b32 %r<3>; ld.param.b32 %r1, [a]; add.s32 %r2, %r1, {add}; st.param.b32 [r], %r2; ret; }}\n"
        )
    };
    let program = works(&[&format!(
        "{}{}.func other(.param .b64 a) {{ ret; }}\n.global .u64 table[2] = {{one, other}};\n\
         .visible .entry k(.param .u64 p) {{ .reg .b64 %rd<4>; .reg .b32 %r<3>; .reg .pred %p;\n\
         ld.param.u64 %rd1, [p]; ld.global.u64 %rd2, [table]; ld.global.u32 %r1, [%rd1];\n\
         setp.eq.s32 %p, %r1, 0; @%p mov.u64 %rd2, two;\n\
         proto: .callprototype (.param .b32 _) _ (.param .b32 _); call (%r2), %rd2, (%r1), proto; st.global.u32 [%rd1], %r2; ret; }}",
        function("one", 111),
        function("two", 222)
    )]);
    let body = program.kernel("k").unwrap().body.as_ref().unwrap().to_string();
    assert!(body.contains("Const(111)") && body.contains("Const(222)"), "{body}");
    // Whatever else the pointer holds is no function.
    assert!(body.contains("Fault(InvalidPc)"), "{body}");
    assert!(!body.contains("Call"), "{body}");
    assert!(program.functions.is_empty());
}

#[test]
fn recursion_stays_a_call() {
    let program = works(&[
        ".func (.param .b32 r) fact(.param .b32 n) { .reg .b32 %r<5>; .reg .pred %p; ld.param.b32 %r1, [n];\n\
        setp.eq.s32 %p, %r1, 0; @%p bra DONE; sub.s32 %r2, %r1, 1;\n\
        { .param .b32 a; st.param.b32 [a], %r2; .param .b32 b; call (b), fact, (a); ld.param.b32 %r3, [b]; }\n\
        mul.lo.s32 %r4, %r3, %r1; st.param.b32 [r], %r4; ret;\nDONE: st.param.b32 [r], 1; ret; }\n\
        .visible .entry k(.param .u64 p) { .reg .b32 %r<2>; .reg .b64 %rd<2>;\n\
        { .param .b32 a; st.param.b32 [a], 5; .param .b32 b; call (b), fact, (a); ld.param.b32 %r1, [b]; }\n\
        ld.param.u64 %rd1, [p]; st.global.u32 [%rd1], %r1; ret; }",
    ]);
    assert_eq!(program.functions.len(), 1);
    assert!(program.kernel("k").unwrap().body.as_ref().unwrap().to_string().contains("Call(@f0)"));
}

const VALID: &str = include_str!("golden/lower/control.ptx");
const MORE: &str = include_str!("golden/lower/calls.ptx");

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_modules_never_panic_and_lower_to_valid_ir(
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>(), 0u8..4), 1..12),
        first in any::<bool>(),
    ) {
        let mut words: Vec<&str> = if first { VALID } else { MORE }.split_inclusive([' ', '\n', ',', ';', '.']).collect();
        for (at, other, kind) in edits {
            let (at, other) = (at.index(words.len()), other.index(words.len()));
            match kind {
                0 => words[at] = words[other],
                1 => words.insert(at, words[other]),
                2 => words.swap(at, other),
                _ => drop(words.remove(at)),
            }
        }
        if let Ok(program) = Program::load(&[source("x", &words.concat())]) {
            check(&program);
        }
    }
}

/// PTX, "Cache Operators": `.cv` fetches again at every load, so a loop may wait on one.
#[test]
fn a_load_that_fetches_again_is_volatile() {
    let orders = |load: &str| -> Vec<Order> {
        let body = format!(
            ".visible .entry k(.param .u64 p)\n{{ .reg .b64 %a; .reg .b32 %v; ld.param.u64 %a, [p]; {load} %v, [%a]; st.global.u32 [%a], %v; ret; }}"
        );
        let program = works(&[&body]);
        let function = program.kernel("k").unwrap().body.as_ref().unwrap();
        let insts = function.blocks.iter().flat_map(|block| &block.insts);
        insts
            .filter_map(|it| {
                if let Op::Load { space: Space::Global, order, .. } = it.op { Some(order) } else { None }
            })
            .collect()
    };
    assert_eq!(orders("ld.global.cv.u32"), [Order::Volatile]);
    assert_eq!(orders("ld.global.u32"), [Order::Weak]);
}
