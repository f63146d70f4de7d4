//! Real compilers: Debian's comgr 2.4, and LLVM 19 with lld.

mod support;

use std::path::Path;
use std::process::Command;

use comgr::{Compiler, Error, Setup};
use config::Config;
use support::{FATAL, Rig, library, request, store, tools};

/// Offsets and sizes by AMD's ABI: a pointer, an integer behind it, and the segment's end a multiple of 4.
fn check_store(code: &comgr::CodeObject, target: &str, wave: u32) {
    assert_eq!(code.target, format!("amdgcn-amd-amdhsa--{target}"));
    let kernel = code.kernel("store").unwrap();
    assert_eq!(kernel.symbol, "store.kd");
    let args: Vec<_> = kernel.explicit_args().map(|it| (it.offset, it.bytes)).collect();
    assert_eq!(args, [(0, 8), (8, 4)]);
    assert_eq!((kernel.kernarg_bytes, kernel.lds_bytes, kernel.scratch_bytes), (12, 256, 0));
    assert_eq!((kernel.wave, kernel.max_threads), (wave, 64));
    assert!(kernel.vgprs > 0 && kernel.sgprs > 0);
}

#[test]
fn debians_comgr_makes_a_code_object() {
    let rig = Rig::new();
    let code = rig.compiler(library()).compile(&request("gfx90a", &store(1))).unwrap();
    check_store(&code, "gfx90a", 64);
    let code = rig.compiler(library()).compile(&request("gfx1030", &store(1))).unwrap();
    check_store(&code, "gfx1030", 32);
    let code = rig.compiler(library()).compile(&request("gfx90a:sramecc+:xnack-", &store(1))).unwrap();
    check_store(&code, "gfx90a:sramecc+:xnack-", 64);
}

#[test]
fn the_tools_make_one_too() {
    let rig = Rig::new();
    for (target, wave) in
        [("gfx900", 64), ("gfx90a", 64), ("gfx942", 64), ("gfx1030", 32), ("gfx1100", 32), ("gfx1201", 32)]
    {
        let code = rig.compiler(tools()).compile(&request(target, &store(2))).unwrap();
        check_store(&code, target, wave);
    }
    let code = rig.compiler(tools()).compile(&request("gfx90a:sramecc+:xnack-", &store(2))).unwrap();
    check_store(&code, "gfx90a:sramecc+:xnack-", 64);
}

#[test]
fn a_target_that_one_does_not_know_is_the_next_ones() {
    let rig = Rig::new();
    let both = || [library(), tools()].concat();
    let code = rig.compiler(both()).compile(&request("gfx1100", &store(3))).unwrap();
    check_store(&code, "gfx1100", 32);
    // Known to the cache: another process asks neither.
    let setup = Setup { helper: Err("not this time".to_owned()), ..rig.setup(both()) };
    check_store(&Compiler::new(setup).compile(&request("gfx1100", &store(3))).unwrap(), "gfx1100", 32);
    let error = rig.compiler(both()).compile(&request("gfx9999", &store(3))).unwrap_err();
    let Error::NoCompiler { target, tried } = error else { panic!("{error}") };
    assert_eq!(target, "gfx9999");
    assert!(tried.contains("libamd_comgr.so.2") && tried.contains("clang"), "{tried}");
    // Another process knows it from the cache, with the reasons.
    let again = rig.compiler(both()).compile(&request("gfx9999", &store(3))).unwrap_err();
    assert_eq!(again, Error::NoCompiler { target, tried });
    assert!(again.to_string().contains("libamd-comgr2") && again.to_string().contains("lld-19"), "{again}");
}

#[test]
fn another_text_target_or_translator_is_another_entry() {
    let rig = Rig::new();
    rig.compiler(library()).compile(&request("gfx90a", &store(4))).unwrap();
    let setup = || Setup { helper: Err("none".to_owned()), ..rig.setup(library()) };
    let ask = |target, text: &str, translator| {
        let request = comgr::Request { translator, ..request(target, text) };
        Compiler::new(setup()).compile(&request).map(drop)
    };
    assert_eq!(ask("gfx90a", &store(4), support::TRANSLATOR), Ok(()));
    let none = Err(Error::NoHelper("none".to_owned()));
    assert_eq!(ask("gfx90a", &store(5), support::TRANSLATOR), none);
    assert_eq!(ask("gfx908", &store(4), support::TRANSLATOR), none);
    assert_eq!(ask("gfx90a", &store(4), "another"), none);
}

#[test]
fn what_the_compiler_refuses_comes_with_its_words() {
    let rig = Rig::new();
    let text = store(6).replace("icmp ult i32 %i, %n", "icmp ult i64 %i, %n");
    for backends in [library(), tools()] {
        let error = rig.compiler(backends).compile(&request("gfx90a", &text)).unwrap_err();
        let Error::Refused { log, .. } = error else { panic!("{error}") };
        assert!(log.contains("'%i' defined with type 'i32' but expected 'i64'"), "{log}");
    }
}

#[test]
fn a_compiler_that_ends_its_process_fails_that_request_only() {
    let rig = Rig::new();
    let compiler = rig.compiler(library());
    for n in 0..2 {
        let error = compiler.compile(&request("gfx90a", FATAL)).unwrap_err();
        let Error::Crashed { words, .. } = error else { panic!("{error}") };
        assert!(words.contains("LLVM ERROR") || words.contains("unsupported"), "{words}");
        check_store(&compiler.compile(&request("gfx90a", &store(7 + n))).unwrap(), "gfx90a", 64);
    }
    // The tools' crash is a refusal with the same words.
    let error = rig.compiler(tools()).compile(&request("gfx90a", FATAL)).unwrap_err();
    assert!(matches!(error, Error::Refused { .. }), "{error}");
}

#[test]
fn a_name_that_nobody_defines_is_an_error_of_every_linker() {
    let rig = Rig::new();
    let text = store(9)
        .replace("declare i32", "declare void @nobody(ptr addrspace(1))\ndeclare i32")
        .replace("yes:\n", "yes:\n  call void @nobody(ptr addrspace(1) %out)\n");
    for backends in [library(), tools()] {
        let error = rig.compiler(backends).compile(&request("gfx90a", &text)).unwrap_err().to_string();
        assert!(error.contains("nobody"), "{error}");
    }
}

#[test]
fn threads_share_a_few_helpers() {
    let rig = Rig::new();
    let compiler = rig.compiler(library());
    std::thread::scope(|scope| {
        for thread in 0..6 {
            let (compiler, rig) = (&compiler, &rig);
            scope.spawn(move || {
                let code = compiler.compile(&request("gfx90a", &store(10 + thread))).unwrap();
                check_store(&code, "gfx90a", 64);
                assert!(rig.processes().len() <= 2);
            });
        }
    });
    // They end without us.
    drop(compiler);
}

#[test]
fn without_compilers_or_helper_the_error_says_what_was_looked_for() {
    let rig = Rig::new();
    let error = rig.compiler(vec![]).compile(&request("gfx90a", &store(1))).unwrap_err();
    let said = error.to_string();
    let begins = "nothing here compiles for gfx90a (no libamd_comgr, no clang with ld.lld); install ";
    assert!(said.starts_with(begins) && said.contains("libamd-comgr2") && said.contains("lld-19"), "{said}");
    let setup = Setup { helper: Ok("/nowhere/cudaway-comgr".into()), ..rig.setup(library()) };
    let error = Compiler::new(setup).compile(&request("gfx90a", &store(1))).unwrap_err();
    let Error::NoHelper(why) = error else { panic!("{error}") };
    assert!(why.contains("/nowhere/cudaway-comgr: No such file"), "{why}");
    // A program that is no helper says nothing that could be a reply.
    let setup = Setup { helper: Ok("/bin/true".into()), ..rig.setup(library()) };
    let error = Compiler::new(setup).compile(&request("gfx90a", &store(1))).unwrap_err();
    assert!(matches!(error, Error::Crashed { .. }), "{error}");
}

/// Neither the helper nor the compiler that it started are there any more, and the next kernel has a new one.
#[test]
fn a_compiler_that_never_returns_is_ended() {
    let rig = Rig::new();
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("llvm/bin");
    std::fs::create_dir_all(&bin).unwrap();
    let place = root.path().join("process");
    let never = format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000\n", place.display());
    for (name, text) in [("llc", never.as_str()), ("ld.lld", "#!/bin/sh\nexit 1\n")] {
        let written = root.path().join(name);
        std::fs::write(&written, text).unwrap();
        // By another process: a file that this one wrote cannot be run while another test's child still has it open.
        let mut install = Command::new("install");
        assert!(install.args(["-m", "755"]).args([written, bin.join(name)]).status().unwrap().success());
    }
    let config = Config::read(1000, |name| match name {
        "CUDAWAY_ROCM_ROOT" => Some(root.path().display().to_string()),
        "CUDAWAY_GFX_COMPILER" => Some("tools".into()),
        _ => None,
    });
    // Time enough for a slow machine to start the compiler.
    let setup = Setup { limit_s: 4, ..rig.setup(comgr::backends(&config)) };
    let error = Compiler::new(setup).compile(&request("gfx90a", &store(1))).unwrap_err();
    let compiler = bin.join("llc").display().to_string();
    assert!(matches!(&error, Error::TimedOut { compiler: it, seconds: 4 } if *it == compiler), "{error}");
    let process = std::fs::read_to_string(&place).unwrap();
    let at = Path::new("/proc").join(process.trim());
    let is_there = || std::fs::read_to_string(at.join("stat")).is_ok_and(|it| !it.contains(") Z "));
    let begun = std::time::Instant::now();
    while is_there() {
        assert!(begun.elapsed().as_secs() < 20, "the compiler goes on");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    assert!(rig.processes().is_empty());
}
