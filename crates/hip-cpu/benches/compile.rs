//! PTX text → object code, for kernels of about 1,000 instructions: parsing and lowering, IR text, LLVM, object code made
//! callable; and what a module of 500 kernels costs to load.

#[path = "../tests/many/mod.rs"]
mod many;

use std::ffi::CString;
use std::fmt::Write;

use border::Out;
use compiler::{Module, Source};
use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use hip_cpu::api::{hipModuleLoadData, hipModuleUnload};
use hip_cpu::exec;
use hip_cpu::harness::{self, How};
use hip_cpu::jit::{self, Effort, Target};

/// A loop over a long straight line of mixed integer and float work.
fn program(n_instructions: usize) -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry work(.param .u64 out, .param .u32 n)\n{\n\
         .reg .pred %p;\n.reg .b32 %r<64>;\n.reg .f32 %f<64>;\n.reg .b64 %rd<8>;\n\
         ld.param.u64 %rd1, [out];\nld.param.u32 %r0, [n];\nmov.u32 %r1, %tid.x;\ncvt.rn.f32.u32 %f0, %r1;\n\
         mul.wide.u32 %rd2, %r1, 4;\nadd.s64 %rd3, %rd1, %rd2;\n",
    );
    for i in 2..32 {
        let _ = writeln!(text, "add.u32 %r{i}, %r1, {i};\nadd.f32 %f{i}, %f0, 0f3F800000;");
    }
    text.push_str("mov.u32 %r32, 0;\nAGAIN:\n");
    for i in 0..n_instructions / 4 {
        let (a, b, d) = (2 + i % 30, 2 + (i * 7 + 3) % 30, 2 + (i * 11 + 5) % 30);
        let _ = writeln!(
            text,
            "mad.lo.s32 %r{d}, %r{a}, %r{b}, %r1;\nfma.rn.f32 %f{d}, %f{a}, %f{b}, %f0;\n\
             xor.b32 %r{a}, %r{b}, %r{d};\nadd.f32 %f{a}, %f{b}, %f{d};",
        );
    }
    text.push_str(
        "add.u32 %r32, %r32, 1;\nsetp.lt.u32 %p, %r32, %r0;\n@%p bra AGAIN;\n\
         cvt.rn.f32.s32 %f32, %r5;\nadd.f32 %f33, %f32, %f7;\nst.global.f32 [%rd3], %f33;\nret;\n}\n",
    );
    text
}

fn compiles(c: &mut Criterion) {
    let text = program(1000);
    let mut group = c.benchmark_group("1000 instructions");
    group.sample_size(10);
    group.bench_function("PTX to IR of the translator", |b| b.iter(|| harness::load(&text).unwrap()));
    let program = harness::load(&text).unwrap();
    for (name, how) in [("lane", How::new(1, 256).lane()), ("simd, 16 lanes", How::new(1, 256).simd(16))] {
        let compiled = match harness::emit(&program, "work", &how) {
            Ok(compiled) => compiled,
            Err(error) => {
                println!("{name}: {error}");
                continue;
            }
        };
        group.bench_function(format!("LLVM IR text, {name}"), |b| {
            b.iter(|| harness::emit(&program, "work", &how).unwrap());
        });
        group.bench_function(format!("LLVM to object code, {name}"), |b| {
            b.iter(|| jit::compile("work", &compiled.text, Target::host(), Effort::Best).unwrap());
        });
        let object = jit::compile("work", &compiled.text, Target::host(), Effort::Best).unwrap();
        group.bench_function(format!("object code to callable code, {name}"), |b| {
            b.iter(|| exec::Kernel::load(&object, &(&compiled).into()).unwrap());
        });
    }
    group.finish();
}

fn loads(c: &mut Criterion) {
    let text = many::text(500);
    let mut group = c.benchmark_group(format!("500 kernels, {} KB", text.len() >> 10));
    group.sample_size(20);
    let sources = || vec![Source { name: "many.ptx".to_owned(), text: text.clone() }];
    group.bench_function("skim and link", |b| {
        b.iter_batched(sources, |sources| Module::link(sources).unwrap(), BatchSize::LargeInput);
    });
    let module = Module::link(sources()).unwrap();
    group.bench_function("one kernel lowered", |b| b.iter(|| module.lower(250)));
    group.bench_function("all kernels lowered", |b| b.iter(|| module.lower_all()));
    let image = CString::new(text.clone()).unwrap();
    group.bench_function("hipModuleLoadData and hipModuleUnload", |b| {
        b.iter(|| {
            let mut module: hip_sys::hipModule_t = std::ptr::null_mut();
            // SAFETY: PTX text that ends with a NUL.
            unsafe { hipModuleLoadData(Out::from(&mut module), image.as_ptr().cast()) }.unwrap();
            hipModuleUnload(module).unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, compiles, loads);
criterion_main!(benches);
