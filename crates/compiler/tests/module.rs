//! Kernels lowered one by one are the kernels that the whole program has, and share its functions and variables.

use std::path::{Path, PathBuf};

use compiler::ir::{Function, Op};
use compiler::lower::verify::verify;
use compiler::{Cause, Module, Source};

const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

fn module(text: &str) -> Module {
    let source = Source { name: "m.ptx".to_owned(), text: format!("{HEAD}{text}") };
    Module::link(vec![source]).unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"))
}

fn index(module: &Module, kernel: &str) -> usize {
    module.kernels().iter().position(|it| it.name == kernel).unwrap_or_else(|| panic!("no kernel {kernel}"))
}

#[track_caller]
fn body(module: &Module, kernel: &str) -> Function {
    let program = module.lower(index(module, kernel));
    assert_eq!(program.kernels.len(), 1);
    let body = program.kernels[0].body.clone().unwrap_or_else(|diagnostics| panic!("{diagnostics:?}"));
    verify(&body).unwrap_or_else(|error| panic!("{error}\n{body}"));
    body
}

fn ops(function: &Function) -> impl Iterator<Item = &Op> {
    function.blocks.iter().flat_map(|block| &block.insts).map(|inst| &inst.op)
}

fn ptx_files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            ptx_files(&path, found);
        } else if path.extension().is_some_and(|it| it == "ptx") {
            found.push(path);
        }
    }
}

/// Shared variables and called functions are numbered as they come.
fn without_numbers(body: &Function) -> String {
    let mut text = body.to_string();
    for what in ["SharedAddr(@s", "Call(@f"] {
        let parts: Vec<&str> = text.split(what).collect();
        text = parts
            .iter()
            .map(|part| part.trim_start_matches(|c: char| c.is_ascii_digit()))
            .collect::<Vec<_>>()
            .join(what);
    }
    text
}

#[test]
fn a_kernel_lowered_alone_is_the_kernel_of_the_whole_program() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = vec![];
    ptx_files(&root.join("tests"), &mut files);
    ptx_files(&root.join("../hip-cpu/tests/run"), &mut files);
    let mut n_kernels = 0;
    for path in files {
        let text = std::fs::read_to_string(&path).unwrap();
        let source = Source { name: path.display().to_string(), text };
        let Ok(module) = Module::link(vec![source]) else { continue };
        let whole = module.lower_all();
        // Backwards, so that what is shared comes in another order.
        for (index, together) in whole.kernels.iter().enumerate().rev() {
            let alone = module.lower(index);
            let [kernel] = &alone.kernels[..] else { panic!("one kernel was asked for") };
            assert_eq!(kernel.header, module.kernels()[index]);
            assert_eq!(kernel.header, together.header);
            match (&kernel.body, &together.body) {
                (Ok(kernel), Ok(together)) => {
                    assert_eq!(without_numbers(kernel), without_numbers(together), "{}", path.display())
                }
                (kernel, together) => assert_eq!(kernel, together, "{}", path.display()),
            }
            n_kernels += 1;
        }
    }
    assert!(n_kernels > 500, "{n_kernels} kernels were compared");
}

const POINTERS: &str = ".global .u64 pointer;
.func (.reg .b32 r) twice(.reg .b32 a) { add.u32 r, a, a; ret; }
.func (.reg .b32 r) never(.reg .b32 a) { foo.bar r, a; ret; }
.func (.reg .b32 r) thrice(.reg .b32 a) { mad.lo.u32 r, a, 2, a; ret; }
.func (.reg .b32 r) unreached(.reg .b32 a) { .reg .b64 %rd<2>; mov.u64 %rd1, never; mov.b32 r, a; ret; }
.visible .entry calls(.param .u64 out) {
  .reg .b64 %rd<4>; .reg .b32 %r<4>;
  ld.global.u64 %rd1, [pointer];
  mov.u32 %r1, 5;
  P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
  call (%r2), %rd1, (%r1), P;
  ld.param.u64 %rd2, [out];
  st.global.u32 [%rd2], %r2;
  ret;
}
.visible .entry stores() { .reg .b64 %rd<2>; mov.u64 %rd1, thrice; st.global.u64 [pointer], %rd1; ret; }
.visible .entry direct(.param .u64 out) { .reg .b32 %r<3>; mov.u32 %r1, 1; call (%r2), twice, (%r1); ret; }
";

#[test]
fn a_call_through_a_pointer_reaches_what_another_kernel_wrote_into_it() {
    let module = module(POINTERS);
    let constants = |function: &Function| -> Vec<u128> {
        let large =
            |op: &Op| if let Op::Const(value) = op { Some(*value).filter(|&it| it > 1 << 40) } else { None };
        ops(function).filter_map(large).collect()
    };
    let calls = body(&module, "calls");
    let stored = constants(&body(&module, "stores"));
    assert_eq!(stored.len(), 1);
    // One address is compared: of the function whose address a kernel takes, no other.
    assert_eq!(constants(&calls), stored);
}

/// What a call through a pointer reaches may call through pointers of another signature; what has none of the signatures
/// is not looked into.
#[test]
fn functions_of_other_signatures_are_not_lowered_for_a_call_through_a_pointer() {
    let module = module(
        ".func (.reg .b32 r) inner(.reg .b64 a) { cvt.u32.u64 r, a; ret; }
.func (.reg .b32 r) other(.reg .b16 a) { foo.bar r, a; ret; }
.func (.reg .b32 r) outer(.reg .b32 a) {
  .reg .b64 %rd<3>; ld.global.u64 %rd1, [table+8]; mov.u64 %rd2, 9;
  P: .callprototype (.reg .b32 _) _ (.reg .b64 _);
  call (r), %rd1, (%rd2), P;
  ret;
}
.global .u64 table[3] = {outer, inner, other};
.visible .entry k() {
  .reg .b64 %rd<2>; .reg .b32 %r<3>; ld.global.u64 %rd1, [table]; mov.u32 %r1, 9;
  P: .callprototype (.reg .b32 _) _ (.reg .b32 _);
  call (%r2), %rd1, (%r1), P;
  st.global.u32 [table], %r2;
  ret;
}
",
    );
    let k = body(&module, "k");
    let compared = |op: &&Op| matches!(op, Op::Const(value) if *value > 1 << 40);
    assert_eq!(ops(&k).filter(compared).count(), 2, "{k}");
}

#[test]
fn a_variable_of_a_body_is_the_same_for_every_kernel_in_any_order() {
    let text = ".func (.reg .b32 r) count() {
  .global .u32 calls = 7;
  { .global .u32 calls = 8; .const .align 8 .u64 table[2] = {calls, outer}; }
  .reg .b64 %rd<2>;
  mov.u64 %rd1, calls;
  atom.global.add.u32 r, [%rd1], 1;
  ret;
}
.global .u32 outer;
.visible .entry a() { .reg .b32 %r<2>; call (%r1), count, (); ret; }
.visible .entry b() { .global .u32 own; .reg .b32 %r<2>; st.global.u32 [own], 1; call (%r1), count, (); ret; }
";
    let globals = |module: &Module, kernel: &str| -> Vec<usize> {
        let global = |op: &Op| if let Op::GlobalAddr(id) = op { Some(id.index()) } else { None };
        ops(&body(module, kernel)).filter_map(global).collect()
    };
    for order in [["a", "b"], ["b", "a"]] {
        let text = text.replace("{calls, outer}", "{1, outer}");
        let module = module(&text);
        let seen = order.map(|kernel| (kernel, globals(&module, kernel)));
        let of = |kernel: &str| seen.iter().find(|it| it.0 == kernel).map(|it| it.1.clone()).unwrap();
        let variables = module.globals();
        assert_eq!(of("a").len(), 1);
        assert_eq!(
            (&*variables[of("a")[0]].name, &*variables[of("a")[0]].init),
            ("count::calls", &[7, 0, 0, 0][..])
        );
        assert!(of("b").contains(&of("a")[0]) && of("b").len() == 2);
        let names: Vec<&str> = variables.iter().map(|it| &*it.name).collect();
        assert_eq!(names, ["outer", "count::calls", "count::calls", "count::table", "b::own"]);
        assert_eq!(variables[3].relocations.len(), 1);
    }
    // A name of the body is no constant address.
    let module = module(text);
    let failed = module.lower(0).kernels[0].body.clone().unwrap_err();
    assert_eq!(failed[0].to_string(), "m.ptx:6:62: error: 'calls' is not defined");
}

#[test]
fn a_broken_kernel_fails_when_it_is_lowered_and_alone() {
    let module = module(
        ".func f() { call nowhere, (); ret; }\n.extern .func nowhere();\n.visible .entry good() { ret; } // }\n\
         .visible .entry bad() { /* } */ add.s32 ]; ret; }\n.visible .entry far() { .pragma \"}\"; call f, (); ret; }\n",
    );
    body(&module, "good");
    let errors = |kernel: &str| module.lower(index(&module, kernel)).kernels[0].body.clone().unwrap_err();
    assert_eq!(errors("bad")[0].to_string(), "m.ptx:7:41: error: expected a value, found `]`");
    assert_eq!(errors("bad")[0].function.as_deref(), Some("bad"));
    assert_eq!(errors("far")[0].cause, Cause::Undefined("nowhere".to_owned()));
    assert_eq!(module.lower_all().diagnostics.len(), errors("bad").len() + 1);
}

#[test]
fn a_body_whose_braces_do_not_match_is_told_where_it_opens() {
    let open = ".visible .entry good() { ret; }\n.visible .entry k() { { ret; }\n";
    for behind in ["", ".func f() { ret; }\n"] {
        let module = module(&format!("{open}{behind}"));
        body(&module, "good");
        let failed = module.lower(index(&module, "k")).kernels[0].body.clone().unwrap_err();
        assert_eq!(failed[0].to_string(), "m.ptx:5:21: error: `{` is never closed");
    }
    let source = |text: &str| vec![Source { name: "m.ptx".to_owned(), text: format!("{HEAD}{text}") }];
    let refused = Module::link(source(".visible .entry k() { ret; } }\n")).err().unwrap();
    assert_eq!(refused[0].to_string(), "m.ptx:4:30: error: expected a directive, found `}`");
}

#[test]
fn threads_lower_at_once() {
    let module = module(POINTERS);
    let expected = module.lower_all();
    std::thread::scope(|scope| {
        for at in 0..8 {
            let (module, expected) = (&module, &expected);
            scope.spawn(move || {
                let index = at % module.kernels().len();
                let (alone, together) = (&module.lower(index).kernels[0].body, &expected.kernels[index].body);
                assert_eq!(alone.as_ref().unwrap().to_string(), together.as_ref().unwrap().to_string());
            });
        }
    });
}

/// nvlink does not compare declarations: Numba declares a result for every C function it calls.
#[test]
fn a_result_that_the_definition_in_another_source_lacks_is_no_error() {
    let source = |name: &str, text: &str| Source { name: name.to_owned(), text: format!("{HEAD}{text}") };
    let calls = ".extern .func (.param .b64 r) f(.param .b32 a);
        .visible .entry k(.param .u64 out) { .reg .b64 %o, %v; ld.param.u64 %o, [out];
        { .param .b32 a; .param .b64 r; st.param.b32 [a], 1; call.uni (r), f, (a); ld.param.b64 %v, [r]; }
        st.global.u64 [%o], %v; ret; }\n";
    let defines = ".visible .func f(.param .b32 a) { ret; }\n";
    let apart = Module::link(vec![source("a.ptx", calls), source("b.ptx", defines)]).unwrap();
    assert!(apart.lower(0).kernels[0].body.is_ok());
    // Within one source the declaration is a mistake that ptxas would tell.
    let together = module(&format!("{defines}{}", calls.split_once(";\n").unwrap().1));
    assert!(together.lower(0).kernels[0].body.is_err());
}
