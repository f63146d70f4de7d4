//! From a kernel of a module and a block shape to code: the disk cache, else the translator and LLVM. What the cache
//! has is neither parsed nor lowered.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cache::{Cache, Key, KeyBuilder, dump};
use compiler::Diagnostic;
use compiler::back::cpu::{self, Compiled, Options, Setting};
use compiler::ir::SharedLayout;
use compiler::program::{Kernel, Program};
use config::{CpuSetting, CpuTier};
use hip_sys::*;

use crate::baseline;
use crate::budget;
use crate::error::Result;
use crate::event;
use crate::exec::{self, CompiledShape};
use crate::jit::{self, Effort, Target};
use crate::module::{Blocks, Facts, Flat, Module, Variant};
use crate::pending;
use crate::profile::{self, Tier};
use crate::thread;

/// With the translator, what changes the code besides the program and the target (see build.rs).
const GENERATOR: &str = env!("CUDAWAY_GENERATOR");

/// What launches need to know of a kernel. The error of one that cannot be translated is told in the log.
pub fn facts(module: &Module, index: usize) -> Result<Facts> {
    let name = &module.header(index).name;
    let key = facts_key(&module.digest, name);
    if let Some(facts) = Cache::global().get(&key, name).and_then(|bytes| Facts::unpack(&bytes)) {
        return Ok(facts);
    }
    let program = module.lowered(index);
    let kernel = &program.kernels[0];
    if let Err(diagnostics) = &kernel.body {
        for diagnostic in diagnostics {
            tracing::error!(target: "cudaway::cpu", "{name}: {diagnostic}");
        }
        module.forget(index);
        return Err(hipErrorInvalidKernelFile);
    }
    let facts = Facts::of(kernel);
    Cache::global().put(&key, &facts.pack());
    Ok(facts)
}

pub fn facts_key(digest: &[u8; 32], name: &str) -> Key {
    KeyBuilder::new("cpu facts", compiler::TRANSLATOR)
        .field(GENERATOR.as_bytes())
        .field(digest)
        .field(name.as_bytes())
        .finish()
}

impl Facts {
    pub fn of(kernel: &Kernel) -> Facts {
        let SharedLayout { bytes, align, tensor_memory, .. } = kernel.shared;
        let locals = kernel.body.as_ref().map(|body| body.locals.as_slice()).unwrap_or_default();
        let local_bytes =
            locals.iter().fold(0u64, |at, local| at.next_multiple_of(local.align.max(1)) + local.bytes);
        let flat = cpu::open_block(kernel).filter(|_| cpu::is_for_flat_blocks(kernel));
        let flat = flat.map(|most| Flat { most, is_as_good: cpu::is_as_good_open(kernel, most) });
        let shared = SharedLayout { bytes, align, tensor_memory, ..SharedLayout::default() };
        Facts { shared, local_bytes, flat }
    }

    /// Shared bytes, their alignment, local bytes, threads of flat blocks or 0, whether one code is as good for them, whether there is
    /// tensor memory.
    pub fn pack(&self) -> Vec<u8> {
        let (most, is_as_good) = self.flat.map_or((0, false), |flat| (flat.most, flat.is_as_good));
        let SharedLayout { bytes, align, tensor_memory, .. } = self.shared;
        let numbers = [bytes, align, self.local_bytes, most.into(), is_as_good.into(), tensor_memory.into()];
        numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
    }

    fn unpack(bytes: &[u8]) -> Option<Facts> {
        let mut numbers = bytes.chunks_exact(8).map(|it| it.try_into().map(u64::from_le_bytes));
        let mut next = || numbers.next()?.ok();
        let (bytes, align, local_bytes) = (next()?, next()?, next()?);
        let (most, is_as_good) = (u32::try_from(next()?).ok()?, next()? == 1);
        let tensor_memory = next()? == 1;
        let flat = (most > 0).then_some(Flat { most, is_as_good });
        let shared = SharedLayout { bytes, align, tensor_memory, ..SharedLayout::default() };
        Some(Facts { shared, local_bytes, flat })
    }
}

/// What somebody waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Haste {
    /// Any code: a launch waits. Better code is made meanwhile.
    Soon,
    /// The best there is.
    Whole,
}

/// Code that a kernel of a module lacks.
#[derive(Clone)]
pub struct Wanted {
    /// The kernel's.
    pub index: usize,
    /// The first that the cache has is taken, else the first of all is made anew.
    pub variants: Vec<Variant>,
    /// The profile counts it among the launches with these.
    pub block: [u32; 3],
    pub haste: Haste,
    /// Baseline code of the same kernel, which is for all blocks.
    pub kin: Option<Arc<exec::Kernel>>,
}

pub fn build(module: &Arc<Module>, wanted: &Wanted) -> Result<(Variant, Arc<exec::Kernel>)> {
    if let Some((variant, code)) = known(module, wanted) {
        return Ok((variant, Arc::new(code)));
    }
    // LLVM recurses deeply and the program's threads may have small stacks.
    let built = std::thread::scope(|scope| {
        std::thread::Builder::new()
            .name("cudaway-jit".to_owned())
            .stack_size(thread::STACK_BYTES)
            .spawn_scoped(scope, || {
                thread::leave_signals_to_the_program();
                make(module, wanted)
            })
            .map(std::thread::ScopedJoinHandle::join)
    });
    match built {
        Ok(Ok(result)) => result,
        Ok(Err(panic)) => std::panic::resume_unwind(panic),
        Err(error) => {
            tracing::error!(target: "cudaway::cpu", "no thread to compile {}: {error}", module.header(wanted.index).name);
            Err(hipErrorOutOfMemory)
        }
    }
}

/// What the cache has.
fn known(module: &Module, wanted: &Wanted) -> Option<(Variant, exec::Kernel)> {
    let name = &module.header(wanted.index).name;
    wanted.variants.iter().find_map(|&variant| {
        let keys = Target::usable()
            .iter()
            .map(|target| key(&module.digest, name, &options(variant, target), target));
        let keys = keys.collect::<Vec<_>>();
        let code = cached(&keys, name, variant.blocks, wanted.block, Tier::Cache)?;
        Some((variant, code))
    })
}

/// Makes code for the first variant: for somebody who waits, baseline code where that is better than to wait on, and else what is there
/// sooner than the best.
fn make(module: &Arc<Module>, wanted: &Wanted) -> Result<(Variant, Arc<exec::Kernel>)> {
    let variant = *wanted.variants.first().ok_or(hipErrorInvalidValue)?;
    if wanted.haste == Haste::Whole || !baseline::is_allowed() {
        return Ok((variant, Arc::new(make_best(module, wanted, variant)?)));
    }
    if let Some(code) = known_soon(module, wanted, variant) {
        let code = Arc::new(code);
        baseline::improve_idly(module, wanted, variant, &code);
        return Ok((variant, code));
    }
    if let Some(code) = baseline::make(module, wanted, variant) {
        return Ok((variant, code));
    }
    let (code, is_best) = make_soon(module, wanted, variant)?;
    let code = Arc::new(code);
    if !is_best {
        baseline::improve_idly(module, wanted, variant, &code);
    }
    Ok((variant, code))
}

/// What an earlier run made by [`make_soon`], if it ended before it had the best code.
fn known_soon(module: &Module, wanted: &Wanted, variant: Variant) -> Option<exec::Kernel> {
    if config::get().cpu_tier == CpuTier::Baseline {
        return None;
    }
    let name = &module.header(wanted.index).name;
    let (start, key) = (Instant::now(), soon_key(module, name, variant));
    let (shape, object) = unpack(&Cache::global().get_quietly(&key, name)?)?;
    let code = loaded(name, &shape, &object)?;
    tracing::info!(target: "cudaway::cpu", "cache hit {name}, {}, made for less", variant.blocks);
    profile::made(name, wanted.block, &code, Tier::Soon, start.elapsed());
    Some(code)
}

/// Of code that is not the best.
fn soon_key(module: &Module, name: &str, variant: Variant) -> Key {
    let target = Target::host();
    key_of("cpu object for less", &module.digest, name, &options(variant, target), target)
}

/// The best code, which the cache gets too.
pub fn make_best(module: &Module, wanted: &Wanted, variant: Variant) -> Result<exec::Kernel> {
    make_by(module, wanted, variant, |_, effort| effort).map(|(code, _)| code)
}

/// What runs until the best code is there, and whether it is that already: where LLVM takes long for the best, it makes the same text into
/// code for less at first. The cache has that until it has the best. A program that measures waits for the best, and gets it at once.
pub fn make_soon(module: &Module, wanted: &Wanted, variant: Variant) -> Result<(exec::Kernel, bool)> {
    let at_first = if event::is_measuring() { |_: &Compiled, best| best } else { budget::at_first };
    make_by(module, wanted, variant, at_first)
}

/// Code by the effort that is chosen for the text, given what the best code is made by; whether it is the best. The cache gets it too.
fn make_by(
    module: &Module,
    wanted: &Wanted,
    variant: Variant,
    choose: impl Fn(&Compiled, Effort) -> Effort,
) -> Result<(exec::Kernel, bool)> {
    let (index, block, start) = (wanted.index, wanted.block, Instant::now());
    let name = &module.header(index).name;
    let target = Target::host();
    let (blocks, options) = (variant.blocks, options(variant, target));
    let program = module.lowered(index);
    let emitted = told(&program, budget::emit(&program, &program.kernels[0], &options));
    drop(program);
    module.forget(index);
    let (compiled, best) = emitted?;
    let shape = match blocks {
        Blocks::Of([x, y, z]) => format!("{x}x{y}x{z}"),
        Blocks::Flat(most) => format!("to{most}"),
    };
    dump::keep(name, &format!("{shape}.ll"), compiled.text.as_bytes());
    let effort = choose(&compiled, best);
    let (is_best, tier) = if effort == best { (true, Tier::Best) } else { (false, Tier::Soon) };
    let compiled = if is_best { compiled } else { Compiled { rival: None, ..compiled } };
    let making = Making { name: name.clone(), blocks, block, target, start, emitted: start.elapsed() };
    let (code, packed) = making.finish(&compiled, effort, tier)?;
    let soon = soon_key(module, name, variant);
    if is_best {
        Cache::global().put(&key(&module.digest, name, &options, target), &packed);
        Cache::global().forget(&soon);
    } else {
        Cache::global().put(&soon, &packed);
    }
    Ok((code, is_best))
}

/// Makes the code in groups of `width`, which takes turns with `code` until one is known to be faster. The cache has that
/// one from then on.
pub fn try_rival(
    module: &Arc<Module>,
    index: usize,
    blocks: Blocks,
    block: [u32; 3],
    code: &Arc<exec::Kernel>,
    width: u32,
) {
    let variant = Variant { blocks, clustered: false };
    let target = made_for(module, index, variant);
    let chosen = options(variant, target);
    let asked = Options { width: Some(width), ..chosen.clone() };
    let (module, code) = (module.clone(), Arc::downgrade(code));
    let what = module.header(index).name.clone();
    let work = move || {
        let name = module.header(index).name.clone();
        let [winner, loser] = [&asked, &chosen].map(|options| key(&module.digest, &name, options, target));
        let start = Instant::now();
        let made = || -> Result<exec::Kernel> {
            let program = module.lowered(index);
            let compiled = told(&program, cpu::emit(&program, &program.kernels[0], &asked))?;
            let effort = budget::affordable(&compiled).ok_or(hipErrorNotSupported)?;
            let making =
                Making { name: name.clone(), blocks, block, target, start, emitted: start.elapsed() };
            let (rival, packed) = making.finish(&compiled, effort, Tier::Rival)?;
            Cache::global().put(&winner, &packed);
            Ok(rival)
        };
        let Some(rival) = cached(&[winner], &name, blocks, block, Tier::Rival).or_else(|| made().ok()) else {
            return;
        };
        let Some(code) = code.upgrade() else { return };
        let told = move |is_faster: bool, [first, second]: [f64; 2]| {
            tracing::info!(
                target: "cudaway::cpu",
                "{name}, {blocks}: {first:.0} ns a block, in groups of {width} {second:.0} ns; {} stay",
                if is_faster { "these" } else { "the first" }
            );
            settle(if is_faster { &winner } else { &loser }, &loser, &name);
        };
        code.try_beside(rival, Box::new(told));
    };
    pending::ask(what, Arc::default(), work);
}

/// Whose code the cache gives for the variant.
fn made_for(module: &Module, index: usize, variant: Variant) -> &'static Target {
    let name = &module.header(index).name;
    let keys =
        Target::usable().iter().map(|target| key(&module.digest, name, &options(variant, target), target));
    let found = Cache::global().get_first(&keys.collect::<Vec<_>>(), name);
    found.map_or(Target::host(), |(index, _)| &Target::usable()[index])
}

/// The code under `from` is what `to` is asked for from now on, with nothing left to try.
fn settle(from: &Key, to: &Key, name: &str) {
    let Some((shape, object)) = Cache::global().get(from, name).and_then(|bytes| unpack(&bytes)) else {
        return;
    };
    Cache::global().put(to, &pack(&CompiledShape { rival: None, ..shape }, &object));
}

/// What code for such blocks is made for when the program launches it.
pub fn options(Variant { blocks, clustered }: Variant, target: &Target) -> Options {
    let (block, open) = (blocks.largest(), blocks.is_flat());
    let config = config::get();
    let setting = match config.cpu_setting {
        CpuSetting::Auto => None,
        CpuSetting::Lane => Some(Setting::Lane),
        CpuSetting::Warp => Some(Setting::Warp),
        CpuSetting::Simd => Some(Setting::Simd),
    };
    let sanitize = config.sanitize;
    let made_for = target.options(block);
    Options { open, setting, width: config.cpu_width, clustered, sanitize, ..made_for }
}

fn cached(keys: &[Key], name: &str, blocks: Blocks, block: [u32; 3], tier: Tier) -> Option<exec::Kernel> {
    let start = Instant::now();
    let (_, bytes) = Cache::global().get_first(keys, name)?;
    let (shape, object) = unpack(&bytes)?;
    let code = loaded(name, &shape, &object)?;
    tracing::info!(target: "cudaway::cpu", "cache hit {name}, {blocks}");
    profile::made(name, block, &code, tier, start.elapsed());
    Some(code)
}

/// Code that the cache had. What cannot be loaded is made anew.
pub fn loaded(name: &str, shape: &CompiledShape, object: &[u8]) -> Option<exec::Kernel> {
    let code = exec::Kernel::load(object, shape);
    let code = code.inspect_err(|error| {
        tracing::warn!(target: "cudaway::cpu", "cached code of {name}: {error}; compiling again");
    });
    code.ok()
}

/// What is wrong with the program's kernel goes to the log.
fn told<T>(program: &Program, emitted: std::result::Result<T, Vec<Diagnostic>>) -> Result<T> {
    emitted.map_err(|diagnostics| {
        for diagnostic in diagnostics {
            tracing::error!(target: "cudaway::cpu", "{}: {diagnostic}", program.kernels[0].name);
        }
        hipErrorInvalidKernelFile
    })
}

/// A kernel on its way from LLVM IR to code.
struct Making {
    name: String,
    blocks: Blocks,
    /// Whose launch asked for it.
    block: [u32; 3],
    target: &'static Target,
    start: Instant,
    emitted: Duration,
}

impl Making {
    /// The code, and what the cache keeps of it.
    fn finish(&self, compiled: &Compiled, effort: Effort, tier: Tier) -> Result<(exec::Kernel, Vec<u8>)> {
        let Making { name, blocks, block, target, start, emitted } = self;
        let shape = CompiledShape::from(compiled);
        let built = jit::compile(name, &compiled.text, target, effort).and_then(|object| {
            let code = exec::Kernel::load(&object, &shape)?;
            Ok((object, code))
        });
        let (object, code) = built.map_err(|error| {
            tracing::error!(target: "cudaway::cpu", "{name}: {error}");
            hipErrorInvalidKernelFile
        })?;
        let (setting, width) = (shape.setting, shape.width);
        tracing::info!(
            target: "cudaway::cpu",
            "compiled kernel {name}, {blocks}, setting {}{}, {} bytes of code, {:.1} ms (IR {:.1} ms)",
            if setting == Setting::Simd { format!("simd, {width} lanes") } else { setting.name().to_owned() },
            if effort == Effort::Best { "" } else { ", made for less" },
            object.len(),
            start.elapsed().as_secs_f64() * 1e3,
            emitted.as_secs_f64() * 1e3,
        );
        for (not, why) in [("simd", &shape.why_not[0]), ("warp", &shape.why_not[1])] {
            if let Some(why) = why {
                tracing::info!(target: "cudaway::cpu", "{name} does not run in setting {not}: {why}");
            }
        }
        profile::made(name, *block, &code, tier, start.elapsed());
        Ok((code, pack(&shape, &object)))
    }
}

pub fn key(digest: &[u8; 32], name: &str, options: &Options, target: &Target) -> Key {
    key_of("cpu object", digest, name, options, target)
}

/// Of what kind of code for a kernel.
pub fn key_of(kind: &str, digest: &[u8; 32], name: &str, options: &Options, target: &Target) -> Key {
    KeyBuilder::new(kind, compiler::TRANSLATOR)
        .field(GENERATOR.as_bytes())
        .field(digest)
        .field(name.as_bytes())
        .field(format!("{options:?}").as_bytes())
        .field(target.cpu.as_bytes())
        .field(target.features.as_bytes())
        .finish()
}

/// Setting, width, context bytes, local bytes, stackful, rival's width or 0, why not in `simd` and in `warp`, then the object.
pub fn pack(shape: &CompiledShape, object: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(PACKED_BYTES + object.len());
    bytes.extend(SETTINGS.iter().position(|&it| it == shape.setting).map_or(0, |at| at as u32).to_le_bytes());
    bytes.extend(shape.width.to_le_bytes());
    bytes.extend(shape.context_bytes.to_le_bytes());
    bytes.extend(shape.local_bytes.to_le_bytes());
    bytes.extend(u32::from(shape.stackful).to_le_bytes());
    bytes.extend(shape.rival.unwrap_or(0).to_le_bytes());
    for why in &shape.why_not {
        // No reason is ever empty.
        let why = why.as_deref().unwrap_or_default();
        bytes.extend((why.len() as u32).to_le_bytes());
        bytes.extend(why.as_bytes());
    }
    bytes.extend(object);
    bytes
}

const PACKED_BYTES: usize = 32;

/// By the number that stands for them in a packed shape.
const SETTINGS: [Setting; 3] = [Setting::Lane, Setting::Simd, Setting::Warp];

pub fn unpack(bytes: &[u8]) -> Option<(CompiledShape, Vec<u8>)> {
    let (header, mut rest) = bytes.split_at_checked(PACKED_BYTES)?;
    let u32_at = |at: usize| Some(u32::from_le_bytes(header[at..at + 4].try_into().ok()?));
    let u64_at = |at: usize| Some(u64::from_le_bytes(header[at..at + 8].try_into().ok()?));
    let setting = *SETTINGS.get(u32_at(0)? as usize)?;
    let mut why_not = [None, None];
    for why in &mut why_not {
        let (length, behind) = rest.split_first_chunk()?;
        let (text, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = behind;
        *why = (!text.is_empty()).then(|| String::from_utf8_lossy(text).into_owned());
    }
    let shape = CompiledShape {
        setting,
        width: u32_at(4)?,
        context_bytes: u64_at(8)?,
        local_bytes: u64_at(16)?,
        stackful: u32_at(24)? == 1,
        // Baseline code alone is, which says so itself.
        is_gated: false,
        rival: Some(u32_at(28)?).filter(|&width| width > 0),
        why_not,
    };
    Some((shape, rest.to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for setting in SETTINGS {
            let shape = CompiledShape {
                setting,
                width: 16,
                context_bytes: 1 << 40,
                local_bytes: 48,
                stackful: setting == Setting::Lane,
                is_gated: false,
                why_not: [(setting != Setting::Simd).then(|| "it waits".to_owned()), None],
                rival: (setting == Setting::Simd).then_some(8),
            };
            let packed = pack(&shape, b"elf");
            assert_eq!(unpack(&packed), Some((shape, b"elf".to_vec())));
            assert_eq!(unpack(&packed[..PACKED_BYTES + 7]), None);
        }
        assert_eq!(unpack(&[0; PACKED_BYTES - 1]), None);
        let facts = Facts {
            shared: SharedLayout { bytes: 1 << 33, align: 128, ..SharedLayout::default() },
            local_bytes: 40,
            flat: Some(Flat { most: 1024, is_as_good: true }),
        };
        assert_eq!(Facts::unpack(&facts.pack()), Some(facts.clone()));
        assert_eq!(Facts::unpack(&facts.pack()[..39]), None);
    }
}
