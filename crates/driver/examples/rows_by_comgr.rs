//! Every kernel of the value rows by one compiler of AMD's, such as the strictest that users may have: Debian's comgr of ROCm 5.2
//! (LLVM 15), in our helper processes. What newer LLVMs make of them, crates/compiler/tests/gcn.rs and the emulator see.
//!
//! `cargo run -p driver --example rows_by_comgr -- COMGR HELPER TARGET…`: the library, our `cudaway-comgr`, and one GPU or more.
//! It fails where a kernel does.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context as _, Result, ensure};
use cache::Cache;
use comgr::{Compiler, Request, Setup};
use compiler::gcn::{Code, Target, compile};
use compiler::{Module, Source};
use config::Config;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let mut next = |what: &str| arguments.next().with_context(|| format!("{what} is missing"));
    let (library, helper) = (next("the compiler's library")?, PathBuf::from(next("the helper")?));
    let modules = modules()?;
    for name in arguments {
        all(&library, &helper, &modules, &name)?;
    }
    Ok(())
}

/// The rows' files, linked.
fn modules() -> Result<Vec<Module>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../hip-cpu/tests/run");
    let mut files = ptx_files(&folder)?;
    files.sort();
    files
        .iter()
        .map(|file| {
            let name = file.strip_prefix(&folder)?.display().to_string();
            let text = fs::read_to_string(file)?;
            Module::link(vec![Source { name, text }]).map_err(|it| anyhow::anyhow!("{}", lines(&it)))
        })
        .collect()
}

fn ptx_files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![];
    for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(ptx_files(&path)?);
        } else if path.extension().is_some_and(|it| it == "ptx") {
            files.push(path);
        }
    }
    Ok(files)
}

fn all(library: &str, helper: &Path, modules: &[Module], name: &str) -> Result<()> {
    let target: Target = name.parse().map_err(|error| anyhow::anyhow!("{name}: {error}"))?;
    let config = Config::read(0, |name| (name == "CUDAWAY_GFX_COMPILER").then(|| library.to_owned()));
    // Nothing that an earlier run made counts.
    let cache = Box::leak(Box::new(Cache::new(None, 0)));
    let setup = Setup {
        helper: Ok(helper.to_owned()),
        backends: comgr::backends(&config),
        cache,
        ..Setup::of_environment()
    };
    let n_threads = setup.n_helpers;
    let compiler = Compiler::new(setup);

    let jobs: Vec<(&Module, usize)> =
        modules.iter().flat_map(|module| (0..module.kernels().len()).map(move |it| (module, it))).collect();
    let next = AtomicUsize::new(0);
    let failures = Mutex::new(vec![]);
    let work = || {
        while let Some((module, kernel)) = jobs.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(why) = one(&compiler, module, *kernel, &target) {
                failures.lock().expect("no thread panics with it").push(why);
            }
        }
    };
    std::thread::scope(|scope| (0..n_threads).for_each(|_| drop(scope.spawn(work))));
    let failures = failures.into_inner().expect("no thread panics with it");
    println!("{name}: {} of {} kernels", jobs.len() - failures.len(), jobs.len());
    ensure!(failures.is_empty(), "{} fail:\n{}", failures.len(), failures.join("\n"));
    Ok(())
}

/// A code object is made, and says of itself what the launcher is told.
fn one(compiler: &Compiler, module: &Module, kernel: usize, target: &Target) -> Result<(), String> {
    let name = format!("{}: {}", module.sources()[0].name, module.kernels()[kernel].name);
    let code = compile(module, kernel, target).map_err(|it| format!("{name}: {}", lines(&it)))?;
    built(compiler, &code, target).map_err(|error| format!("{name}: {error:#}"))
}

fn built(compiler: &Compiler, code: &Code, target: &Target) -> Result<()> {
    let (name, text) = (&*code.symbol, &*code.text);
    let request = Request { name, target: target.name(), text, translator: compiler::TRANSLATOR };
    let object = compiler.compile(&request)?;
    let kernel = object.kernel(name).context("its kernel has another name")?;
    let said = (kernel.kernarg_bytes, kernel.lds_bytes, kernel.wave);
    let told = (code.kernarg.bytes, code.shared_bytes, target.wave());
    ensure!(said == told, "kernarg, LDS and wave are {said:?}, the launcher takes {told:?}");
    Ok(())
}

fn lines(diagnostics: &[compiler::Diagnostic]) -> String {
    diagnostics.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}
