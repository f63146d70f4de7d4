//! Baseline code: there at once for kernels whose best code takes long to make, for blocks of any shape, and replaced by
//! the best code when that is there.

use std::sync::{Arc, Weak};
use std::time::Instant;

use cache::dump;
use compiler::back::cpu::steps::Steps;
use compiler::back::cpu::{self, Weight};
use config::{CpuSetting, CpuTier};

use crate::error::Result;
use crate::exec::{self, CompiledShape};
use crate::foreseen::Launched;
use crate::jit::{self, Effort, Target};
use crate::kernel::{self, Wanted};
use crate::module::{Module, Variant};
use crate::pending;
use crate::profile::{self, Tier};

/// Baseline code for the variant, where it is better than to wait for the best code; that is asked for when the kernel turns
/// out to be worth it. What keeps it from being made is left to the best code to tell.
pub fn make(module: &Arc<Module>, wanted: &Wanted, variant: Variant) -> Option<Arc<exec::Kernel>> {
    if !is_allowed() {
        return None;
    }
    let (code, weight, steps) = match &wanted.kin {
        Some(kin) => (kin.clone(), kin.baseline_weight()?, kin.steps().cloned()),
        None => first(module, wanted, variant)?,
    };
    Some(Arc::new_cyclic(|own| {
        let mut code = code.as_baseline(weight, asking(module, wanted, variant, own.clone()));
        code.follow(steps);
        code
    }))
}

/// Whether kernels run as they are found to run best, and not as somebody asked.
fn is_allowed() -> bool {
    let config = config::get();
    let is_chosen = config.cpu_setting == CpuSetting::Auto && config.cpu_width.is_none() && !config.sanitize;
    is_chosen && config.cpu_tier != CpuTier::Best
}

/// Code, what its kernel weighs, and where its threads go.
type First = (Arc<exec::Kernel>, Weight, Option<Arc<Steps>>);

/// The kernel's first.
fn first(module: &Module, wanted: &Wanted, variant: Variant) -> Option<First> {
    let start = Instant::now();
    let (name, target) = (&module.header(wanted.index).name, Target::host());
    let program = module.lowered(wanted.index);
    let kernel = &program.kernels[0];
    let weight = Weight::of(kernel)?;
    let is_asked_for = config::get().cpu_tier == CpuTier::Baseline;
    if weight.in_step || !(is_asked_for || weight.is_worth_baseline()) {
        return None;
    }
    let steps = kernel.body.as_ref().ok().filter(|_| weight.loops).and_then(Steps::of).map(Arc::new);
    let compiled = cpu::emit_baseline(&program, kernel, variant.clustered, target.vector_bits).ok()?;
    drop(program);
    module.forget(wanted.index);
    dump::keep(name, "baseline.ll", compiled.text.as_bytes());
    let emitted = start.elapsed();
    let made = jit::compile(name, &compiled.text, target, Effort::Baseline).and_then(|object| {
        let code = exec::Kernel::load(&object, &CompiledShape::from(&compiled))?;
        Ok((object.len(), code))
    });
    let (bytes, code) = made
        .inspect_err(|error| tracing::warn!(target: "cudaway::cpu", "no baseline code for {name}: {error}"))
        .ok()?;
    tracing::info!(
        target: "cudaway::cpu",
        "compiled kernel {name}, all blocks, baseline, {bytes} bytes of code, {:.1} ms (IR {:.1} ms)",
        start.elapsed().as_secs_f64() * 1e3,
        emitted.as_secs_f64() * 1e3,
    );
    profile::made(name, wanted.block, &code, Tier::Baseline, start.elapsed());
    Some((Arc::new(code), weight, steps))
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
            let Some(is_best) = improve(&module, &own, make) else { return };
            if is_best {
                return;
            }
            // Nobody waits for the best any more.
            pending::ask(name, Arc::default(), move || {
                improve(&module, &own, |module| Ok((kernel::make_best(module, &wanted, variant)?, true)));
            });
        });
    })
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
