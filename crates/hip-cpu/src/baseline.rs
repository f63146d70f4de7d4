//! Baseline code: there at once for kernels whose best code takes long to make, for blocks of any shape, and replaced by
//! the best code when that is there.

use std::sync::{Arc, Weak};
use std::time::Instant;

use cache::{Cache, Key, dump};
use compiler::back::cpu::steps::Steps;
use compiler::back::cpu::{self, Options, Setting, Weight};
use config::{CpuSetting, CpuTier};

use crate::error::Result;
use crate::event;
use crate::exec::{self, CompiledShape, Heat};
use crate::foreseen::Launched;
use crate::jit::{self, Effort, Target};
use crate::kernel::{self, Wanted};
use crate::module::{Module, Variant};
use crate::pending;
use crate::profile::{self, Tier};

/// Baseline code for the variant, where it is better than to wait for the best code; that is asked for when the kernel turns
/// out to be worth it, and if it does not at its first launch the cache keeps the baseline code. What keeps it from being made is left to
/// the best code to tell.
pub fn make(module: &Arc<Module>, wanted: &Wanted, variant: Variant) -> Option<Arc<exec::Kernel>> {
    let First { code, weight, steps, packed } = match &wanted.kin {
        Some(kin) => {
            let (weight, steps) = (kin.baseline_weight()?, kin.steps().cloned());
            First { code: kin.clone(), weight, steps, packed: None }
        }
        None => first(module, wanted, variant)?,
    };
    let keep = packed.map(|packed| -> exec::Keep {
        let key = key(module, wanted.index, variant);
        Box::new(move || Cache::global().put(&key, &packed))
    });
    Some(Arc::new_cyclic(|own| {
        let mut code = code.as_baseline(weight, asking(module, wanted, variant, own.clone()));
        code.follow(steps, keep, foreseeing(module, wanted, variant));
        code
    }))
}

/// The list of the module's launches has the kernel, so that its better code is made when the module is loaded again.
fn foreseeing(module: &Arc<Module>, wanted: &Wanted, variant: Variant) -> Option<exec::Foresee> {
    if config::get().cpu_tier == CpuTier::Baseline {
        return None;
    }
    let kernel = module.header(wanted.index).name.clone();
    let launched = Launched { kernel, block: wanted.block, is_clustered: variant.clustered };
    let module = Arc::downgrade(module);
    Some(Box::new(move || {
        if let Some(module) = module.upgrade() {
            module.launches().add(&module.digest, launched);
        }
    }))
}

/// Whether kernels run as they are found to run best, and not as somebody asked.
pub fn is_allowed() -> bool {
    let config = config::get();
    let is_chosen = config.cpu_setting == CpuSetting::Auto && config.cpu_width.is_none() && !config.sanitize;
    is_chosen && config.cpu_tier != CpuTier::Best
}

/// A kernel's first code, what the kernel weighs, and where its threads go.
struct First {
    code: Arc<exec::Kernel>,
    weight: Weight,
    steps: Option<Arc<Steps>>,
    /// What the cache does not have.
    packed: Option<Vec<u8>>,
}

/// The kernel's first: the cache's, or made.
fn first(module: &Module, wanted: &Wanted, variant: Variant) -> Option<First> {
    known(module, wanted, variant).or_else(|| made(module, wanted, variant))
}

/// Instructions of a kernel that is lowered only to find out where its threads go.
const LOWERED_FOR_STEPS: u32 = 1000;

fn known(module: &Module, wanted: &Wanted, variant: Variant) -> Option<First> {
    let (start, name) = (Instant::now(), &module.header(wanted.index).name);
    let bytes = Cache::global().get_quietly(&key(module, wanted.index, variant), name)?;
    let (weight, shape, object) = unpack(&bytes)?;
    let code = kernel::loaded(name, &shape, &object)?;
    let is_followed = weight.loops && weight.instructions <= LOWERED_FOR_STEPS;
    let steps = is_followed.then(|| {
        let program = module.lowered(wanted.index);
        let steps = program.kernels[0].body.as_ref().ok().and_then(Steps::of);
        drop(program);
        module.forget(wanted.index);
        steps.map(Arc::new)
    });
    tracing::info!(target: "cudaway::cpu", "cache hit {name}, all blocks, baseline");
    profile::made(name, wanted.block, &code, Tier::Baseline, start.elapsed());
    Some(First { code: Arc::new(code), weight, steps: steps.flatten(), packed: None })
}

fn made(module: &Module, wanted: &Wanted, variant: Variant) -> Option<First> {
    let start = Instant::now();
    let (name, target) = (&module.header(wanted.index).name, Target::host());
    let program = module.lowered(wanted.index);
    let kernel = &program.kernels[0];
    let weight = Weight::of(kernel)?;
    let is_asked_for = config::get().cpu_tier == CpuTier::Baseline;
    if weight.in_step || !(is_asked_for || weight.is_worth_baseline(event::is_measuring())) {
        return None;
    }
    let steps = kernel.body.as_ref().ok().filter(|_| weight.loops).and_then(Steps::of).map(Arc::new);
    let compiled = cpu::emit_baseline(&program, kernel, variant.clustered, target.vector_bits).ok()?;
    drop(program);
    module.forget(wanted.index);
    dump::keep(name, "baseline.ll", compiled.text.as_bytes());
    let emitted = start.elapsed();
    let shape = CompiledShape::from(&compiled);
    let made = jit::compile(name, &compiled.text, target, Effort::Baseline).and_then(|object| {
        let code = exec::Kernel::load(&object, &shape)?;
        Ok((object, code))
    });
    let (object, code) = made
        .inspect_err(|error| tracing::warn!(target: "cudaway::cpu", "no baseline code for {name}: {error}"))
        .ok()?;
    tracing::info!(
        target: "cudaway::cpu",
        "compiled kernel {name}, all blocks, baseline, {} bytes of code, {:.1} ms (IR {:.1} ms)",
        object.len(),
        start.elapsed().as_secs_f64() * 1e3,
        emitted.as_secs_f64() * 1e3,
    );
    profile::made(name, wanted.block, &code, Tier::Baseline, start.elapsed());
    let packed = Some(pack(weight, &shape, &object));
    Some(First { code: Arc::new(code), weight, steps, packed })
}

fn key(module: &Module, index: usize, Variant { clustered, .. }: Variant) -> Key {
    let target = Target::host();
    let options = Options {
        setting: Some(Setting::Lane),
        clustered,
        ..Options::new(cpu::ANY_BLOCK, target.vector_bits)
    };
    kernel::key_of("cpu baseline", &module.digest, &module.header(index).name, &options, target)
}

/// Instructions, a byte of flags, then as the best code is packed.
fn pack(weight: Weight, shape: &CompiledShape, object: &[u8]) -> Vec<u8> {
    let Weight { instructions, loops, products, has_long_tail, in_step } = weight;
    let flags = [loops, products, has_long_tail, in_step, shape.is_gated];
    let flags = flags.iter().enumerate().fold(0, |all, (nth, flag)| all | u8::from(*flag) << nth);
    let mut bytes = instructions.to_le_bytes().to_vec();
    bytes.push(flags);
    bytes.extend(kernel::pack(shape, object));
    bytes
}

fn unpack(bytes: &[u8]) -> Option<(Weight, CompiledShape, Vec<u8>)> {
    let (instructions, rest) = bytes.split_first_chunk()?;
    let (flags, rest) = rest.split_first()?;
    let is = |nth: u32| flags >> nth & 1 == 1;
    let weight = Weight {
        instructions: u32::from_le_bytes(*instructions),
        loops: is(0),
        products: is(1),
        has_long_tail: is(2),
        in_step: is(3),
    };
    let (shape, object) = kernel::unpack(rest)?;
    Some((weight, CompiledShape { is_gated: is(4), ..shape }, object))
}

/// Asks for the best code, which takes the place of `own` if that is still wanted then.
fn asking(module: &Arc<Module>, wanted: &Wanted, variant: Variant, own: Weak<exec::Kernel>) -> exec::Ask {
    if config::get().cpu_tier == CpuTier::Baseline {
        return Box::new(|_| ());
    }
    let name = module.header(wanted.index).name.clone();
    let launched = Launched { kernel: name.clone(), block: wanted.block, is_clustered: variant.clustered };
    let module = Arc::downgrade(module);
    let wanted = Wanted { kin: None, ..wanted.clone() };
    Box::new(move |heat| {
        // The next time it is foreseen; what was never worth better code is not.
        if let Some(module) = module.upgrade() {
            module.launches().add(&module.digest, launched);
        }
        pending::ask(name.clone(), heat, move || {
            let make = |module: &Module| kernel::make_soon(module, &wanted, variant);
            if improve(&module, &own, make) == Some(false) {
                ask_for_best(name, module, wanted, variant, own);
            }
        });
    })
}

/// Nobody waits for it any more: `code`, which is not the kernel's best, gives way to that when there is time to make it.
pub fn improve_idly(module: &Arc<Module>, wanted: &Wanted, variant: Variant, code: &Arc<exec::Kernel>) {
    let name = module.header(wanted.index).name.clone();
    ask_for_best(name, Arc::downgrade(module), wanted.clone(), variant, Arc::downgrade(code));
}

fn ask_for_best(
    name: String,
    module: Weak<Module>,
    wanted: Wanted,
    variant: Variant,
    own: Weak<exec::Kernel>,
) {
    pending::ask(name, Arc::new(Heat::of_last_step()), move || {
        improve(&module, &own, |module| Ok((kernel::make_best(module, &wanted, variant)?, true)));
    });
}

/// What is made takes the place of `own`, if that is still wanted; whether it is the best code.
fn improve(
    module: &Weak<Module>,
    own: &Weak<exec::Kernel>,
    make: impl FnOnce(&Module) -> Result<(exec::Kernel, bool)>,
) -> Option<bool> {
    if own.strong_count() == 0 {
        return None;
    }
    // A failure was told; what runs stays.
    let (code, is_best) = make(&*module.upgrade()?).ok()?;
    own.upgrade()?.replace_by(code);
    Some(is_best)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_packed_comes_back() {
        for nth in 0..5 {
            let is = |flag: u32| flag == nth;
            let weight = Weight {
                instructions: 1 << 20,
                loops: is(0),
                products: is(1),
                has_long_tail: is(2),
                in_step: is(3),
            };
            let shape = CompiledShape {
                setting: Setting::Lane,
                width: 1,
                context_bytes: 96,
                local_bytes: 48,
                stackful: true,
                is_gated: is(4),
                why_not: [Some("it waits".to_owned()), None],
                rival: None,
            };
            let packed = pack(weight, &shape, b"elf");
            assert_eq!(unpack(&packed), Some((weight, shape, b"elf".to_vec())));
            assert_eq!(unpack(&packed[..12]), None);
        }
        assert_eq!(unpack(&[]), None);
    }
}
