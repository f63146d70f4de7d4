//! Textures and surfaces on AMD GPUs: every form of the instructions becomes a code object, and on an instruction
//! emulator it gives what an independent sampler gives. The emulator runs where `TINYGRAD` names a checkout of tinygrad.
#![allow(non_upper_case_globals, reason = "constants are HIP's")]

mod emulator;
mod forms;
#[path = "../gcn_batch/mod.rs"]
mod gcn_batch;

#[expect(dead_code, reason = "hip-cpu has cubemaps")]
#[path = "../../../hip-cpu/tests/texture/model.rs"]
mod model;
mod sampled;
mod stored;
mod support;

use std::path::PathBuf;
use std::process::Command;

use compiler::gcn::{Code, Target, compile};
use compiler::{Module, Source};
use gcn_batch::{code_object, merged, path, tool};

fn module() -> Module {
    Module::link(vec![Source { name: "texture.ptx".to_owned(), text: forms::module() }]).unwrap()
}

/// The kernels that can be made, and what is said of the others: name and message.
fn compiled(module: &Module, target: &Target) -> (Vec<Code>, Vec<(String, String)>) {
    let (mut codes, mut refused) = (vec![], vec![]);
    for (kernel, header) in module.kernels().iter().enumerate() {
        match compile(module, kernel, target) {
            Ok(code) => codes.push(code),
            Err(diagnostics) => refused.push((header.name.clone(), diagnostics[0].message.clone())),
        }
    }
    (codes, refused)
}

const WITH_IMAGES: [&str; 6] = ["gfx900", "gfx908", "gfx90a", "gfx1030", "gfx1100", "gfx1201"];

/// With LLVM 19.
#[test]
fn every_form_becomes_a_code_object_where_there_are_image_instructions() {
    let module = module();
    for name in WITH_IMAGES {
        let (codes, refused) = compiled(&module, &name.parse().unwrap());
        let needs_more = |kernel: &str| {
            name == "gfx90a"
                && (kernel.starts_with("tld4") || kernel.starts_with("off") && kernel.ends_with("f32"))
        };
        for (kernel, why) in &refused {
            assert!(needs_more(kernel), "{name} {kernel}: {why}");
        }
        assert!(codes.iter().all(|code| !needs_more(&code.symbol)), "{name}");
        let text = merged(&codes.iter().collect::<Vec<_>>());
        code_object(&folder(&format!("texture-{name}")), "all", &text, name);
    }
}

/// The same text, by the oldest LLVM that users' comgr may have.
#[test]
fn every_form_becomes_an_object_by_llvm_15_for_the_gpus_that_it_knows() {
    if Command::new("llc-15").arg("--version").output().is_err() {
        return testkit::skip!("there is no llc-15 (LLVM 15)");
    }
    let module = module();
    for name in WITH_IMAGES.iter().filter(|name| **name != "gfx1201") {
        let (codes, _) = compiled(&module, &name.parse().unwrap());
        let folder = folder(&format!("texture-{name}-llvm15"));
        let (source, object) = (folder.join("all.ll"), path(&folder.join("all.o")));
        std::fs::write(&source, merged(&codes.iter().collect::<Vec<_>>())).unwrap();
        let (cpu, source) = (format!("-mcpu={name}"), path(&source));
        tool("llc-15", &["-opaque-pointers", &cpu, "-O2", "-filetype=obj", &source, "-o", &object]);
    }
}

/// Among what cargo built.
fn folder(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn gpus_without_image_instructions_say_so() {
    let module = module();
    for name in ["gfx940", "gfx941", "gfx942", "gfx950"] {
        let (codes, refused) = compiled(&module, &name.parse().unwrap());
        assert!(codes.is_empty(), "{name}");
        assert!(
            refused.iter().all(|(_, why)| why.contains("no image instructions")),
            "{name}: {:?}",
            refused[0]
        );
    }
}

/// What no object of HIP's can be is refused, and so is the address of a reference for anything but an access.
#[test]
fn what_hip_has_no_objects_for_is_refused() {
    let (d, t) = ("{%r0,%r1,%r2,%r3}", "{%r0,%r1,%r2,%r3}");
    let forms = [
        (format!("tex.cube.v4.f32.f32 {d}, [%t, {t}]"), "no cubemaps"),
        (format!("tex.acube.v4.f32.f32 {d}, [%t, {t}]"), "no cubemaps"),
        (format!("tex.2dms.v4.f32.s32 {d}, [%t, {t}]"), "several samples"),
        (format!("tex.2d.v4.f32.f32 {d}, [%t, {{%r0,%r1}}], %f"), "no depths"),
        ("mov.u64 %t, named; st.global.u64 [%t], %t".to_owned(), "the address of"),
        (
            format!(
                "mov.u64 %t, named; tex.2d.v4.f32.f32 {d}, [%t, {{%r0,%r1}}]; mov.u64 %t, named; st.global.u64 [%t], %t"
            ),
            "the address of",
        ),
        ("sust.p.2d.b32.trap [%t, {%r0,%r1}], %r2".to_owned(), "conversions"),
        ("istypep.texref %p, %t".to_owned(), "do not say"),
    ];
    for (form, why) in forms {
        let text = format!(
            ".version 8.5\n.target sm_80\n.address_size 64\n.global .texref named;\n\
             .visible .entry k(.param .u64 t) {{ .reg .b32 %r<4>; .reg .f32 %f; .reg .b64 %t; .reg .pred %p;\n\
             ld.param.u64 %t, [t]; {form}; ret; }}\n"
        );
        let module = Module::link(vec![Source { name: "refused".to_owned(), text }]).unwrap();
        let error = compile(&module, 0, &"gfx1100".parse().unwrap()).unwrap_err();
        assert!(error[0].message.contains(why), "{form}: {}", error[0].message);
    }
}
