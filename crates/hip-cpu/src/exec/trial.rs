//! Two codes that do the same, in groups of different widths, where the cost model cannot tell which is faster: the chunks
//! of a grid go to both by turns, each one's time is added up, and the faster one stays.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::Kernel;

/// What a kernel has spent before a trial is worth the compiler's time.
pub(super) const WORTH: Duration = Duration::from_millis(50);
/// Each code's chunks and time before the verdict: some blocks of a grid may have a hundred times the work of others.
const LEAST_CHUNKS: u64 = 48;
const LEAST: Duration = Duration::from_millis(15);
/// The rival has to be this much faster: both are right, and a change costs a cold cache.
const CLEARLY: f64 = 0.95;

/// Told once: whether the rival is the faster one, and nanoseconds per block of the first code and of the rival.
pub type Told = Box<dyn Fn(bool, [f64; 2]) + Send + Sync>;

pub(super) struct Trial {
    rival: Kernel,
    turn: AtomicU32,
    /// Of the kernel itself, then of the rival.
    taken: [Taken; 2],
    is_rival_faster: OnceLock<bool>,
    told: Told,
}

#[derive(Default)]
struct Taken {
    chunks: AtomicU64,
    blocks: AtomicU64,
    ns: AtomicU64,
}

impl Taken {
    /// Nanoseconds per block, once there is enough to go by.
    fn per_block(&self) -> Option<f64> {
        let ns = self.ns.load(Ordering::Relaxed);
        let enough = self.chunks.load(Ordering::Relaxed) >= LEAST_CHUNKS && ns >= LEAST.as_nanos() as u64;
        enough.then(|| ns as f64 / self.blocks.load(Ordering::Relaxed).max(1) as f64)
    }
}

/// A chunk's turn in a trial.
pub(super) struct Turn<'a> {
    trial: &'a Trial,
    is_rival: bool,
    start: Duration,
}

impl Trial {
    pub(super) fn new(rival: Kernel, told: Told) -> Trial {
        let (turn, taken) = (AtomicU32::new(0), Default::default());
        Trial { rival, turn, taken, is_rival_faster: OnceLock::new(), told }
    }

    pub(super) fn rival_stack_bytes(&self) -> usize {
        self.rival.stack_bytes()
    }

    /// The rival, once it is known to be the faster one.
    pub(super) fn winner(&self) -> Option<&Kernel> {
        self.is_rival_faster.get().is_some_and(|&is| is).then_some(&self.rival)
    }

    /// The code for a chunk that would go to `kernel`, and the turn to end when it has run, while none has won.
    pub(super) fn next<'a>(&'a self, kernel: &'a Kernel) -> (&'a Kernel, Option<Turn<'a>>) {
        if let Some(&is_rival_faster) = self.is_rival_faster.get() {
            return (if is_rival_faster { &self.rival } else { kernel }, None);
        }
        // Thue and Morse's sequence: a launch of as many chunks as the last gives each of them to the other code as often as to the same.
        let is_rival = self.turn.fetch_add(1, Ordering::Relaxed).count_ones() % 2 == 1;
        let turn = Turn { trial: self, is_rival, start: cpu_time() };
        (if is_rival { &self.rival } else { kernel }, Some(turn))
    }
}

impl Turn<'_> {
    /// The chunk has run.
    pub(super) fn end(self, n_blocks: u64) {
        let Turn { trial, is_rival, start } = self;
        let taken = &trial.taken[usize::from(is_rival)];
        let spent = cpu_time().saturating_sub(start);
        taken.ns.fetch_add(spent.as_nanos() as u64, Ordering::Relaxed);
        taken.blocks.fetch_add(n_blocks, Ordering::Relaxed);
        taken.chunks.fetch_add(1, Ordering::Relaxed);
        let [first, rival] = &trial.taken;
        let (Some(first), Some(rival)) = (first.per_block(), rival.per_block()) else { return };
        let is_rival_faster = rival < first * CLEARLY;
        if trial.is_rival_faster.set(is_rival_faster).is_ok() {
            (trial.told)(is_rival_faster, [first, rival]);
        }
    }
}

/// This thread's: what else runs on the machine does not decide.
fn cpu_time() -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is written, or left as it is.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    Duration::new(time.tv_sec.cast_unsigned(), time.tv_nsec as u32)
}
