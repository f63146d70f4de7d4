//! What is known of baseline code while it runs: when better code is worth asking for, and how much it is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compiler::back::cpu::Weight;
use parking_lot::Mutex;

/// How much better code is wanted; it grows while there is none.
#[derive(Debug, Default)]
pub struct Heat {
    /// Nanoseconds that grids have run without it, and will as far as is known.
    pub ns: AtomicU64,
    /// Grids that run without it now.
    pub grids: AtomicU32,
    /// A grid stands in its stream behind others, and none has begun yet.
    pub is_queued: AtomicBool,
}

impl Heat {
    /// Whether a grid is slower without it now, or will be as soon as those before it have ended.
    pub fn is_urgent(&self) -> bool {
        self.grids.load(Ordering::Relaxed) > 0 || self.is_queued.load(Ordering::Relaxed)
    }
}

/// Asks somebody for the better code, who keeps the heat until it is there or cannot be had.
pub type Ask = Box<dyn FnOnce(Arc<Heat>) + Send + Sync>;

/// Work that makes better code worth asking for, in nanoseconds of baseline code.
const WORTH: u64 = 500_000;

/// What an instruction takes a thread in baseline code, in nanoseconds, roughly.
const INSTRUCTION: u64 = 2;

/// What the making of better code takes for each instruction, roughly, and at least.
const MAKING: Duration = Duration::from_micros(150);
const LEAST_MAKING: Duration = Duration::from_millis(30);

/// Instructions of kernels whose better code blocks may wait for, and how long.
const WAITED_FOR: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// Of code that was made in haste.
pub struct Baseline {
    weight: Weight,
    ask: Mutex<Option<Ask>>,
    is_asked: AtomicBool,
    has_run: AtomicBool,
    heat: Arc<Heat>,
}

impl Baseline {
    pub fn new(weight: Weight, ask: Ask) -> Baseline {
        Baseline {
            weight,
            ask: Mutex::new(Some(ask)),
            is_asked: AtomicBool::new(false),
            has_run: AtomicBool::new(false),
            heat: Arc::default(),
        }
    }

    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// A grid of so many threads will begin when those before it in its stream have ended: what it will be worth asking for by then is
    /// asked for now.
    pub fn queue(&self, n_threads: u64) {
        let expected = self.expected(n_threads);
        if self.weight.loops || expected >= WORTH {
            self.heat.is_queued.store(true, Ordering::Relaxed);
            if !self.is_asked.load(Ordering::Relaxed) {
                self.ask_for_better(expected);
            }
        }
    }

    /// Nanoseconds that so many threads take at least.
    fn expected(&self, n_threads: u64) -> u64 {
        n_threads.saturating_mul(self.weight.instructions.into()).saturating_mul(INSTRUCTION)
    }

    /// A grid of so many threads begins.
    pub fn begin(&self, n_threads: u64) {
        self.heat.grids.fetch_add(1, Ordering::Relaxed);
        self.heat.is_queued.store(false, Ordering::Relaxed);
        if self.is_asked.load(Ordering::Relaxed) {
            return;
        }
        let expected = self.expected(n_threads);
        let is_again = self.has_run.swap(true, Ordering::Relaxed);
        // Of a loop nobody knows the trips.
        if self.weight.loops || is_again || expected >= WORTH {
            self.ask_for_better(expected);
        }
    }

    /// A grid has ended, and ran for so long.
    pub fn end(&self, spent: u64) {
        self.heat.grids.fetch_sub(1, Ordering::Relaxed);
        self.heat.ns.fetch_add(spent, Ordering::Relaxed);
    }

    /// Once; grids to come will take so many nanoseconds at least.
    pub fn ask_for_better(&self, expected: u64) {
        self.heat.ns.fetch_add(expected, Ordering::Relaxed);
        let ask = self.ask.lock().take();
        self.is_asked.store(true, Ordering::Relaxed);
        if let Some(ask) = ask {
            ask(self.heat.clone());
        }
    }

    /// If better code is not long in the making, until that `is_there`.
    pub fn wait(&self, is_there: impl Fn() -> bool) {
        let is_soon = self.weight.instructions <= WAITED_FOR;
        let until = Instant::now() + PATIENCE;
        while is_soon && self.is_waiting() && !is_there() && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(200));
        }
    }

    /// What a block may take in this code before it had better wait.
    pub fn patience(&self) -> Duration {
        (MAKING * self.weight.instructions).max(LEAST_MAKING)
    }

    /// Whether somebody is asked for better code, and has not given up.
    pub fn is_waiting(&self) -> bool {
        Arc::strong_count(&self.heat) > 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHORT: Weight =
        Weight { instructions: 200, loops: false, products: false, has_long_tail: false, in_step: false };

    /// Baseline code of that weight, and what was asked for it.
    fn asked(weight: Weight) -> (Baseline, Arc<Mutex<Vec<Arc<Heat>>>>) {
        let asked = Arc::new(Mutex::new(vec![]));
        let told = asked.clone();
        (Baseline::new(weight, Box::new(move |heat| told.lock().push(heat))), asked)
    }

    #[test]
    fn better_code_is_asked_for_once_it_is_worth_it() {
        let (code, wishes) = asked(SHORT);
        code.begin(32);
        code.end(10_000);
        assert!(wishes.lock().is_empty() && !code.is_waiting(), "one small grid");
        code.begin(32);
        assert_eq!(wishes.lock().len(), 1, "the second");
        code.begin(32);
        assert_eq!(wishes.lock().len(), 1, "once is enough");
        assert_eq!(code.heat.grids.load(Ordering::Relaxed), 2);
        assert!(code.is_waiting());
        wishes.lock().clear();
        assert!(!code.is_waiting(), "whoever was asked has ended");

        let (code, wishes) = asked(SHORT);
        code.begin(1 << 20);
        assert_eq!(wishes.lock().len(), 1, "a large grid");
        let (code, wishes) = asked(Weight { loops: true, ..SHORT });
        code.begin(1);
        assert_eq!(wishes.lock().len(), 1, "nobody knows how long it takes");
    }

    #[test]
    fn better_code_is_asked_for_before_a_long_grid_begins() {
        let (code, wishes) = asked(SHORT);
        code.queue(32);
        code.queue(32);
        assert!(wishes.lock().is_empty(), "small grids, which may end sooner than better code comes");
        code.queue(1 << 20);
        assert_eq!(wishes.lock().len(), 1, "a large one");
        assert!(code.heat.is_urgent());
        code.begin(1 << 20);
        assert_eq!(wishes.lock().len(), 1, "once");
        assert!(code.heat.is_urgent());
        code.end(1_000_000);
        assert!(!code.heat.is_urgent(), "nobody waits for it any more");
    }
}
