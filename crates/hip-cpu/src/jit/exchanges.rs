//! Functions that baseline code finds in the process: what a warp's lanes do together on registers that they bring to each other
//! ([`compiler::exchange`]). Each is made once for all kernels: at once, without passes, and once it is called often as best code,
//! which the disk cache keeps. Their code stays until the process ends.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};

use cache::{Cache, Key};
use compiler::back::cpu::{ANY_BLOCK, Options};
use compiler::exchange::{ENTRY, Exchange};
use config::CpuTier;
use parking_lot::Mutex;

use super::{Code, Effort, Error, Target, compile};
use crate::exec::Heat;
use crate::{kernel, pending};

/// Where code says that the function is, in its first word: code that brings its own has a constant there.
#[repr(C)]
struct Slot {
    code: AtomicUsize,
    n_calls: AtomicU32,
    exchange: Exchange,
}

/// Calls from which on the best code is wanted: of the shortest function they take about a millisecond.
const MANY: u32 = 256;

/// A function that somebody has asked for: nothing where it could not be made.
type Asked = Arc<OnceLock<Option<&'static Slot>>>;

/// By what they do.
static ALL: LazyLock<Mutex<HashMap<Exchange, Asked>>> = LazyLock::new(Mutex::default);

/// The address of the slot for which a name stands; `None` for other names, and where the function cannot be made.
pub fn address(name: &str) -> Option<usize> {
    let exchange = Exchange::of(name)?;
    let place = ALL.lock().entry(exchange).or_default().clone();
    let slot = *place.get_or_init(|| {
        let made = first(exchange);
        made.inspect_err(|error| tracing::warn!(target: "cudaway::cpu", "no code for {exchange:?}: {error}"))
            .ok()
    });
    slot.map(|slot| std::ptr::from_ref(slot).expose_provenance())
}

/// Calls the function of a slot; `is_shared` where it is one of those here.
///
/// # Safety
/// The code that gave the slot's address is still there, and `arguments` are what its function takes.
pub unsafe fn call(slot: usize, is_shared: bool, arguments: [*mut u8; 3]) {
    // SAFETY: the first word of either is the function's address, says the caller.
    let function =
        unsafe { &*std::ptr::with_exposed_provenance::<AtomicUsize>(slot) }.load(Ordering::Acquire);
    let [all_in, all_out, shared] = arguments;
    // SAFETY: says the caller.
    unsafe {
        let function: extern "C" fn(*mut u8, *mut u8, *mut u8) -> i32 = std::mem::transmute(function);
        function(all_in, all_out, shared);
    }
    if is_shared {
        // SAFETY: slots of ours live until the process ends.
        let slot = unsafe { &*std::ptr::with_exposed_provenance::<Slot>(slot) };
        if slot.n_calls.load(Ordering::Relaxed) < MANY
            && slot.n_calls.fetch_add(1, Ordering::Relaxed) == MANY - 1
        {
            improve(slot);
        }
    }
}

/// The cache's best code, else what is there at once.
fn first(exchange: Exchange) -> Result<&'static Slot, Error> {
    let known = Cache::global().get_quietly(&key(&exchange), &exchange.name());
    let known = known.and_then(|object| load(&object).ok());
    let (code, n_calls) = match known {
        Some(code) => (code, MANY),
        None => (load(&object(&exchange, Effort::Baseline)?)?, 0),
    };
    let (code, n_calls) = (AtomicUsize::new(code), AtomicU32::new(n_calls));
    Ok(Box::leak(Box::new(Slot { code, n_calls, exchange })))
}

/// The slot's best code takes the place of what it has, when there is time to make it.
fn improve(slot: &'static Slot) {
    if config::get().cpu_tier == CpuTier::Baseline {
        return;
    }
    let name = slot.exchange.name();
    pending::ask_idly(name.clone(), Arc::new(Heat::default()), move || {
        let made = object(&slot.exchange, Effort::Best).and_then(|object| {
            slot.code.store(load(&object)?, Ordering::Release);
            Cache::global().put(&key(&slot.exchange), &object);
            Ok(())
        });
        if let Err(error) = made {
            tracing::warn!(target: "cudaway::cpu", "{name} stays as it is: {error}");
        }
    });
}

fn key(exchange: &Exchange) -> Key {
    let target = Target::host();
    let options = Options::new(ANY_BLOCK, target.vector_bits);
    kernel::key_of("cpu exchange", &[0; 32], &exchange.name(), &options, target)
}

fn object(exchange: &Exchange, effort: Effort) -> Result<Vec<u8>, Error> {
    let target = Target::host();
    let text = exchange.text(target.vector_bits).map_err(|missing| Error::Generate(missing.to_string()))?;
    compile(&exchange.name(), &text, target, effort)
}

fn load(object: &[u8]) -> Result<usize, Error> {
    let code = Box::leak(Box::new(Code::load(object)?));
    Ok(code.function(ENTRY)?.expose_provenance())
}
