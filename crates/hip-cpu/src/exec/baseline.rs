//! What is known of baseline code while it runs: when better code is worth asking for, and how much it is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use compiler::back::cpu::Weight;
use compiler::back::cpu::steps::{self, Steps};
use parking_lot::Mutex;

use crate::pending;
use crate::thread::Crew;

/// How much better code is wanted; it grows while there is none.
#[derive(Debug, Default)]
pub struct Heat {
    /// Nanoseconds that grids have run without it, and will as far as is known.
    pub ns: AtomicU64,
    /// Grids that run without it now.
    pub grids: AtomicU32,
    /// A grid stands in its stream behind others, and none has begun yet.
    pub is_queued: AtomicBool,
    /// So many of `ns` are worth waiting for it before time is measured; `None`: it is not worth that.
    pub awaited_at: Option<u64>,
    /// Somebody waits who measures.
    pub is_awaited: AtomicBool,
    /// Who makes it.
    pub crew: Arc<Crew>,
}

impl Heat {
    /// Whether a grid is slower without it now, or will be as soon as those before it have ended.
    pub fn is_urgent(&self) -> bool {
        let has = |flag: &AtomicBool| flag.load(Ordering::Relaxed);
        self.grids.load(Ordering::Relaxed) > 0 || has(&self.is_queued) || has(&self.is_awaited)
    }

    /// For what takes the place of code that is nearly as fast, and of which nothing else is known.
    pub fn of_last_step() -> Heat {
        Heat { awaited_at: Some(0), ..Heat::default() }
    }

    /// Whether to wait for it before time is measured. It is urgent then.
    pub fn await_it(&self) -> bool {
        let is_worth = self.awaited_at.is_some_and(|least| self.ns.load(Ordering::Relaxed) >= least);
        if is_worth {
            self.is_awaited.store(true, Ordering::Relaxed);
        }
        is_worth
    }
}

/// Asks somebody for the better code, who keeps the heat until it is there or cannot be had.
pub type Ask = Box<dyn FnOnce(Arc<Heat>) + Send + Sync>;

/// Has the cache keep this code.
pub type Keep = Box<dyn FnOnce() + Send + Sync>;

/// Has the next run of the program foresee the kernel.
pub type Foresee = Box<dyn FnOnce() + Send + Sync>;

/// Work that makes better code worth asking for, in nanoseconds of baseline code: at least, and for each instruction, since longer code
/// takes longer to make.
const WORTH: u64 = 500_000;
const WORTH_OF_INSTRUCTION: u64 = 2_000;

/// Of that, what a run has to have spent for better code to be made when the program runs again: who is run again is run often.
const FORESEEN_AT: u64 = 4;

/// And how often it has to have launched the kernel: those that a test suite launches a few times each stay as they are.
const FORESEEN_GRIDS: u32 = 8;

/// What an instruction takes a thread in baseline code, in nanoseconds, roughly.
const INSTRUCTION: u64 = 2;

/// Some instructions take so much longer; what a grid takes beyond that went to threads that woke, or to other programs.
const BEYOND: u64 = 8;

/// What the making of better code takes for each instruction, roughly, and at least.
const MAKING: Duration = Duration::from_micros(150);
const LEAST_MAKING: Duration = Duration::from_millis(30);

/// Of that, what grids have to have taken for a program that measures time to wait for better code first.
const AWAITED_AT: u32 = 10;

/// Instructions that a thread's way is followed through, some hundred microseconds at most.
const FOLLOWED: u64 = 5_000;

/// Instructions of kernels whose better code blocks may wait for, and how long.
const WAITED_FOR: u32 = 20_000;
const PATIENCE: Duration = Duration::from_secs(20);

/// What the making of better code takes, roughly.
fn making(weight: Weight) -> Duration {
    (MAKING * weight.instructions).max(LEAST_MAKING)
}

/// Of code that was made in haste.
pub struct Baseline {
    weight: Weight,
    steps: Option<Arc<Steps>>,
    keep: Mutex<Option<Keep>>,
    foresee: Mutex<Option<Foresee>>,
    is_foreseen: AtomicBool,
    n_grids: AtomicU32,
    ask: Mutex<Option<Ask>>,
    is_asked: AtomicBool,
    heat: Arc<Heat>,
}

impl Baseline {
    pub fn new(weight: Weight, ask: Ask) -> Baseline {
        let awaited_at = u64::try_from((making(weight) / AWAITED_AT).as_nanos()).ok();
        Baseline {
            weight,
            steps: None,
            keep: Mutex::default(),
            foresee: Mutex::default(),
            is_foreseen: AtomicBool::new(false),
            n_grids: AtomicU32::new(0),
            ask: Mutex::new(Some(ask)),
            is_asked: AtomicBool::new(false),
            heat: Arc::new(Heat { awaited_at, ..Heat::default() }),
        }
    }

    pub fn weight(&self) -> Weight {
        self.weight
    }

    /// Where threads of a launch go, as far as that can be known, how this code is kept, and how the kernel is foreseen.
    pub fn follow(&mut self, steps: Option<Arc<Steps>>, keep: Option<Keep>, foresee: Option<Foresee>) {
        self.steps = steps;
        *self.keep.get_mut() = keep;
        *self.foresee.get_mut() = foresee;
    }

    pub fn steps(&self) -> Option<&Arc<Steps>> {
        self.steps.as_ref()
    }

    /// Nanoseconds that the launch's longest block takes in this code, roughly; `None` where nobody knows, or that is longer than to wait
    /// for better code.
    pub fn foretell(&self, launch: &steps::Launch<'_>) -> Option<u64> {
        let sides = launch.block.iter().fold(1, |threads: u64, &side| threads.saturating_mul(side.into()));
        let most =
            u64::try_from(self.patience().as_nanos()).unwrap_or(u64::MAX) / (INSTRUCTION * sides.max(1));
        let steps = if self.weight.loops {
            self.steps.as_ref()?.of_launch(launch, most.min(FOLLOWED))?
        } else {
            self.weight.instructions.into()
        };
        (steps <= most).then_some(steps * sides * INSTRUCTION)
    }

    /// A grid will begin when those before it in its stream have ended: what it will be worth asking for by then is asked for now.
    /// `expected`: nanoseconds that it takes in this code; `None`: nobody knows.
    pub fn queue(&self, expected: Option<u64>) {
        if self.is_worth(expected) {
            let was_urgent = self.heat.is_urgent();
            self.heat.is_queued.store(true, Ordering::Relaxed);
            if !self.is_asked.load(Ordering::Relaxed) {
                self.ask_for_better(expected.unwrap_or(0));
            } else if !was_urgent {
                self.tell_maker();
            }
        }
        let keep = self.keep.lock().take();
        // Where better code is on its way, that is kept.
        if let Some(keep) = keep.filter(|_| !self.is_asked.load(Ordering::Relaxed)) {
            keep();
        }
    }

    /// Whether all grids so far, and one that takes `expected`, make better code worth it.
    fn is_worth(&self, expected: Option<u64>) -> bool {
        let before = self.heat.ns.load(Ordering::Relaxed);
        expected.is_none_or(|expected| expected.saturating_add(before) >= self.worth())
    }

    /// Nanoseconds that make better code worth asking for.
    fn worth(&self) -> u64 {
        WORTH + WORTH_OF_INSTRUCTION * u64::from(self.weight.instructions)
    }

    /// A grid begins that takes so many nanoseconds in this code.
    pub fn begin(&self, expected: Option<u64>) {
        let was_urgent = self.heat.is_urgent();
        self.heat.grids.fetch_add(1, Ordering::Relaxed);
        self.heat.is_queued.store(false, Ordering::Relaxed);
        if self.is_asked.load(Ordering::Relaxed) {
            if !was_urgent {
                self.tell_maker();
            }
        } else if self.is_worth(expected) {
            self.ask_for_better(expected.unwrap_or(0));
        }
    }

    /// What is wanted most may have changed.
    fn tell_maker(&self) {
        if self.is_waiting() {
            pending::wishes_changed();
        }
    }

    /// A grid has ended, and ran for so long, where `expected` was foretold.
    pub fn end(&self, spent: u64, expected: Option<u64>) {
        self.heat.grids.fetch_sub(1, Ordering::Relaxed);
        let counts = expected.map_or(spent, |expected| spent.min(expected.saturating_mul(BEYOND)));
        let so_far = self.heat.ns.fetch_add(counts, Ordering::Relaxed) + counts;
        if !self.heat.is_urgent() {
            self.tell_maker();
        }
        let n_grids = self.n_grids.fetch_add(1, Ordering::Relaxed) + 1;
        let is_enough = n_grids >= FORESEEN_GRIDS && so_far >= self.worth() / FORESEEN_AT;
        if is_enough
            && !self.is_foreseen.load(Ordering::Relaxed)
            && !self.is_foreseen.swap(true, Ordering::Relaxed)
        {
            let foresee = self.foresee.lock().take();
            if let Some(foresee) = foresee {
                foresee();
            }
        }
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
        making(self.weight)
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
        code.begin(Some(10_000));
        code.end(10_000, Some(10_000));
        code.begin(Some(10_000));
        code.end(5_000_000, Some(10_000));
        code.begin(Some(60_000));
        code.end(600_000, Some(60_000));
        assert!(wishes.lock().is_empty() && !code.is_waiting(), "small grids");
        code.begin(Some(350_000));
        assert_eq!(wishes.lock().len(), 1, "with those before it a large one");
        code.begin(Some(10_000));
        assert_eq!(wishes.lock().len(), 1, "once is enough");
        assert_eq!(code.heat.grids.load(Ordering::Relaxed), 2);
        assert!(code.is_waiting());
        wishes.lock().clear();
        assert!(!code.is_waiting(), "whoever was asked has ended");

        let (code, wishes) = asked(SHORT);
        code.begin(Some(1 << 30));
        assert_eq!(wishes.lock().len(), 1, "a large grid");
        let (code, wishes) = asked(SHORT);
        code.begin(None);
        assert_eq!(wishes.lock().len(), 1, "nobody knows how long it takes");
        let (code, wishes) = asked(Weight { instructions: 10_000, ..SHORT });
        code.begin(Some(10_000_000));
        assert!(wishes.lock().is_empty(), "better code would take a second to make");
    }

    #[test]
    fn the_next_run_foresees_what_took_a_quarter_of_that_in_some_launches() {
        let after = |grids: &[u64]| {
            let (mut code, wishes) = asked(SHORT);
            let foreseen = Arc::new(AtomicU64::new(0));
            let told = foreseen.clone();
            let foresee: Foresee = Box::new(move || {
                told.fetch_add(1, Ordering::Relaxed);
            });
            code.follow(None, None, Some(foresee));
            for &spent in grids {
                code.begin(Some(spent));
                code.end(spent, Some(spent));
            }
            assert!(wishes.lock().is_empty(), "not in this run");
            foreseen.load(Ordering::Relaxed)
        };
        assert_eq!(after(&[40_000; 7]), 0, "few launches");
        assert_eq!(after(&[40_000; 8]), 1);
        let long = [[25_000; 8].as_slice(), &[24_999]].concat();
        assert_eq!(after(&long), 0, "not a quarter");
        assert_eq!(after(&[long.as_slice(), &[1, 300_000]].concat()), 1, "once");
    }

    #[test]
    fn who_measures_waits_for_better_code_that_grids_have_taken_a_tenth_of() {
        let (code, wishes) = asked(SHORT);
        code.begin(Some(2_900_000));
        assert!(!wishes.lock()[0].await_it(), "3 ms of 30 are a tenth");
        code.end(2_900_000, Some(2_900_000));
        assert!(!wishes.lock()[0].is_urgent());
        code.begin(Some(100_000));
        code.end(100_000, Some(100_000));
        assert!(wishes.lock()[0].await_it() && wishes.lock()[0].is_urgent());
        assert!(Heat::of_last_step().await_it());
        assert!(!Heat::default().await_it(), "nobody knows what it is");
    }

    #[test]
    fn better_code_is_asked_for_before_a_long_grid_begins() {
        let (code, wishes) = asked(SHORT);
        code.queue(Some(10_000));
        code.queue(Some(10_000));
        assert!(wishes.lock().is_empty(), "small grids, which may end sooner than better code comes");
        code.queue(Some(1 << 30));
        assert_eq!(wishes.lock().len(), 1, "a large one");
        assert!(code.heat.is_urgent());
        code.begin(Some(1 << 30));
        assert_eq!(wishes.lock().len(), 1, "once");
        assert!(code.heat.is_urgent());
        code.end(1_000_000, Some(1 << 30));
        assert!(!code.heat.is_urgent(), "nobody waits for it any more");
    }

    #[test]
    fn blocks_are_foretold_where_a_launch_decides_them() {
        let launch = |block: u32| steps::Launch { params: &[], grid: [1; 3], block: [block, 1, 1] };
        let (code, _) = asked(SHORT);
        assert_eq!(code.foretell(&launch(64)), Some(200 * 64 * INSTRUCTION));
        let (code, _) = asked(Weight { loops: true, ..SHORT });
        assert_eq!(code.foretell(&launch(1)), None, "nobody has followed its threads");
    }
}
