//! Code for programs that will run later, maybe elsewhere: what `cudaway compile --target cpu` has made.
//!
//! The cache's keys are those that launches look for, of code for this machine or for a level of x86-64.

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};

use cache::Cache;
use compiler::back::cpu::{Options, Setting};
use compiler::program::Header;
use compiler::{Program, Source};
use hip_sys::*;
use parking_lot::Mutex;

use crate::budget;
use crate::device;
use crate::exec::{self, CompiledShape};
use crate::jit::{self, Target};
use crate::kernel;
use crate::module::{self, Blocks, Facts, Refusal, Variant};
use crate::thread;

/// What is to be made.
pub struct Request {
    pub sources: Vec<Source>,
    pub target: Target,
    /// The cache that gets the code.
    pub folder: PathBuf,
    /// None: what [`variants`] says.
    pub blocks: Vec<[u32; 3]>,
}

/// What became of a kernel for certain blocks.
pub struct Told<'t> {
    pub kernel: &'t str,
    pub blocks: Option<Blocks>,
    pub made: &'t Result<Made, String>,
}

/// Code that the cache has now.
#[derive(Clone, Copy)]
pub struct Made {
    pub setting: Setting,
    pub width: u32,
    /// Of the code.
    pub bytes: usize,
    /// It was there already.
    pub was_there: bool,
}

/// Flat blocks that have code of their own where one code for all is not as good: the lengths that are launched most.
const FLAT: [[u32; 3]; 2] = [[256, 1, 1], [128, 1, 1]];
/// Blocks of kernels that ask for two or three numbers of their threads, where nobody says how they are launched.
const TILES: [[u32; 3]; 4] = [[16, 16, 1], [32, 8, 1], [32, 32, 1], [8, 8, 1]];

/// Makes code for every kernel, on all cores; `told` gets one after the other.
pub fn compile(request: &Request, told: &(dyn Fn(&Told) + Sync)) -> Result<(), Refusal> {
    let digest = module::digest(&request.sources);
    let linked = compiler::Module::link(request.sources.clone()).map_err(|diagnostics| {
        let text: String = diagnostics.iter().map(|diagnostic| format!("{diagnostic}\n")).collect();
        Refusal { error: hipErrorInvalidKernelFile, text }
    })?;
    let work = Work {
        request,
        digest,
        linked,
        cache: Cache::to_ship(request.folder.clone()),
        told,
        one: Mutex::new(()),
    };
    let next = AtomicUsize::new(0);
    let n = work.linked.kernels().len();
    let all = || {
        while let Some(index) = Some(next.fetch_add(1, Ordering::Relaxed)).filter(|&index| index < n) {
            work.kernel(index);
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..exec::pool::workers().min(n).max(1) {
            let worker =
                std::thread::Builder::new().name("cudaway-jit".to_owned()).stack_size(thread::STACK_BYTES);
            if worker.spawn_scoped(scope, all).is_err() {
                all();
            }
        }
    });
    work.remember_what_is_right();
    Ok(())
}

struct Work<'r> {
    request: &'r Request,
    digest: [u8; 32],
    linked: compiler::Module,
    cache: Cache,
    told: &'r (dyn Fn(&Told) + Sync),
    /// Who tells.
    one: Mutex<()>,
}

impl Work<'_> {
    fn tell(&self, kernel: &str, blocks: Option<Blocks>, made: &Result<Made, String>) {
        let _one = self.one.lock();
        (self.told)(&Told { kernel, blocks, made });
    }

    fn kernel(&self, index: usize) {
        let program = self.linked.lower(index);
        let kernel = &program.kernels[0];
        let facts = match &kernel.body {
            Ok(_) => self.facts(&program),
            Err(diagnostics) => Err(diagnostics.iter().map(|it| format!("{it}\n")).collect()),
        };
        let facts = match facts {
            Ok(facts) => facts,
            Err(why) => return self.tell(&kernel.name, None, &Err(why)),
        };
        for variant in variants(kernel, &facts, &self.request.blocks) {
            self.tell(&kernel.name, Some(variant.blocks), &self.code(&program, variant));
        }
    }

    /// What launches and programs ask of the program's only kernel.
    fn facts(&self, program: &Program) -> Result<Facts, String> {
        let kernel = &program.kernels[0];
        let facts = Facts::of(kernel);
        let key = kernel::facts_key(&self.digest, &kernel.name);
        self.cache.store(&key, &facts.pack()).map_err(|error| error.to_string())?;
        Ok(facts)
    }

    /// Code for the program's only kernel, and code in groups of the width that would be tried beside it.
    fn code(&self, program: &Program, variant: Variant) -> Result<Made, String> {
        let chosen = kernel::options(variant, &self.request.target);
        let (made, rival) = self.code_of(program, &chosen)?;
        if rival.is_some() {
            self.code_of(program, &Options { width: rival, ..chosen })?;
        }
        Ok(made)
    }

    /// Also the width that would be tried beside it.
    fn code_of(&self, program: &Program, options: &Options) -> Result<(Made, Option<u32>), String> {
        let kernel = &program.kernels[0];
        let target = &self.request.target;
        let key = kernel::key(&self.digest, &kernel.name, options, target);
        let made = |shape: &CompiledShape, bytes, was_there| {
            (Made { setting: shape.setting, width: shape.width, bytes, was_there }, shape.rival)
        };
        if let Some((shape, object)) =
            self.cache.get(&key, &kernel.name).and_then(|bytes| kernel::unpack(&bytes))
        {
            return Ok(made(&shape, object.len(), true));
        }
        let (compiled, effort) = budget::emit(program, kernel, options)
            .map_err(|diagnostics| diagnostics.iter().map(|it| format!("{it}\n")).collect::<String>())?;
        let shape = CompiledShape::from(&compiled);
        let object =
            jit::compile(&kernel.name, &compiled.text, target, effort).map_err(|error| error.to_string())?;
        self.cache.store(&key, &kernel::pack(&shape, &object)).map_err(|error| error.to_string())?;
        Ok(made(&shape, object.len(), false))
    }

    /// A program's driver then need not look.
    fn remember_what_is_right(&self) {
        let sources = &self.request.sources;
        let n_bytes: usize = sources.iter().map(|source| source.text.len()).sum();
        if n_bytes <= cache::SHORT_BYTES && self.linked.lower_all().diagnostics.is_empty() {
            let key = cache::nothing_wrong(compiler::TRANSLATOR, sources.iter().map(|it| it.text.as_bytes()));
            self.cache.put(&key, &[]);
        }
    }
}

/// What code is made for: the block that the kernel requires; else the blocks that were asked for; else one code for all flat blocks
/// and the usual ones beside it where that is better; else the usual tiles.
fn variants(header: &Header, facts: &Facts, asked: &[[u32; 3]]) -> Vec<Variant> {
    let most = header.max_threads().unwrap_or(device::MAX_THREADS);
    let fits = |block: &&[u32; 3]| block.iter().fold(1, |all: u32, &side| all.saturating_mul(side)) <= most;
    let clustered = module::is_clustered(header);
    let ahead = module::variant_ahead(header, facts);
    let likely = match (header.req_ntid, facts.flat) {
        (Some(_), _) => &[][..],
        _ if !asked.is_empty() => asked,
        (_, Some(flat)) if flat.is_as_good => &[],
        (_, Some(_)) => &FLAT,
        _ => &TILES,
    };
    let of = |block: &[u32; 3]| Variant { blocks: Blocks::Of(*block), clustered };
    // Where one code is as good, launches take no other for flat blocks.
    let is_served = |variant: &Variant| {
        let is_flat = ahead.is_some_and(
            |it| matches!((it.blocks, variant.blocks), (open, Blocks::Of(block)) if open.has(block)),
        );
        !(is_flat && facts.flat.is_some_and(|flat| flat.is_as_good))
    };
    ahead.into_iter().chain(likely.iter().filter(fits).map(of).filter(is_served)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEAD: &str = ".version 8.0\n.target sm_80\n.address_size 64\n";

    fn of(kernel: &str, asked: &[[u32; 3]]) -> Vec<String> {
        let sources = vec![Source { name: "k".to_owned(), text: format!("{HEAD}{kernel}") }];
        let linked = compiler::Module::link(sources).unwrap();
        let program = linked.lower(0);
        let facts = Facts::of(&program.kernels[0]);
        variants(&program.kernels[0], &facts, asked).iter().map(|it| it.blocks.to_string()).collect()
    }

    #[test]
    fn blocks_are_the_kernels_own_the_askers_or_the_likely_ones() {
        let required = ".visible .entry k() .reqntid 8, 4\n{\nret;\n}\n";
        assert_eq!(of(required, &[]), ["block [8, 4, 1]"]);
        assert_eq!(of(required, &[[64, 1, 1]]), ["block [8, 4, 1]"]);
        let of_tids = |bound: &str, numbers: &str| {
            format!(
                ".visible .entry k(.param .u64 p) {bound}\n{{\n.reg .b32 %t;\n.reg .b64 %p;\nld.param.u64 %p, [p];\n\
                 mov.u32 %t, {numbers};\nst.global.u32 [%p], %t;\nret;\n}}\n"
            )
        };
        let tile = of_tids(".maxntid 256", "%tid.y");
        assert_eq!(of(&tile, &[]), ["block [16, 16, 1]", "block [32, 8, 1]", "block [8, 8, 1]"]);
        assert_eq!(of(&tile, &[[4, 4, 4], [32, 32, 1]]), ["block [4, 4, 4]"]);
        // A short kernel runs better by code for its block, and any row of warps may have to do with one code at first.
        let flat = of_tids("", "%tid.x");
        assert_eq!(of(&flat, &[]), ["blocks of 32 to 1024", "block [256, 1, 1]", "block [128, 1, 1]"]);
        assert_eq!(of(&flat, &[[64, 1, 1]]), ["blocks of 32 to 1024", "block [64, 1, 1]"]);
        // A long one does not, and has no other for rows of warps.
        let work = "ld.global.u32 %t, [%p];\nst.global.u32 [%p+4], %t;\n".repeat(150) + "ret;";
        let long = flat.replace("ret;", &work);
        assert_eq!(of(&long, &[[64, 1, 1], [33, 1, 1]]), ["blocks of 32 to 1024", "block [33, 1, 1]"]);
    }
}
