//! Which of its ways a test goes in this run.

use std::cell::Cell;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::LazyLock;
use std::time::{SystemTime, UNIX_EPOCH};

/// A part of what a test could try, another in each run, since each kernel of each way is compiled: `SEED=n` draws the same again,
/// `SEED=all` leaves nothing out.
#[derive(Clone, Copy, Debug)]
pub struct Draw(Option<u64>);

impl Draw {
    /// This process's. Each thread that asks tells what `SEED` has to say for the same once more: what a test prints is shown if that
    /// test fails, which has a thread of its own.
    pub fn now() -> Draw {
        static DRAW: LazyLock<Draw> = LazyLock::new(Draw::new);
        thread_local!(static IS_TOLD: Cell<bool> = const { Cell::new(false) });
        if !IS_TOLD.replace(true) {
            match DRAW.0 {
                Some(seed) => println!("SEED={seed}"),
                None => println!("SEED=all"),
            }
        }
        *DRAW
    }

    fn new() -> Draw {
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(1, |now| now.as_nanos() as u64);
        Draw(match std::env::var("SEED") {
            Ok(seed) if seed == "all" => None,
            Ok(seed) => Some(seed.parse().expect("SEED is a number, or `all`")),
            Err(_) => Some(now()),
        })
    }

    /// One time out of so many.
    pub fn takes(self, times: u64, what: impl Hash) -> bool {
        self.number(what).is_none_or(|number| number.is_multiple_of(times))
    }

    /// One of so many that follow each other.
    pub fn takes_nth(self, times: u64, nth: usize) -> bool {
        self.0.is_none_or(|seed| (seed.wrapping_add(nth as u64)).is_multiple_of(times))
    }

    /// The first way, with which the others are compared, and half of those: one at least.
    pub fn ways<T>(self, of: impl Hash, ways: impl IntoIterator<Item = T>) -> Vec<T> {
        let mut ways = ways.into_iter();
        let first = ways.next();
        let others: Vec<T> = ways.collect();
        let surely = self.number(&of).unwrap_or(0) % others.len().max(1) as u64;
        let others = others.into_iter().enumerate();
        let others = others.filter(|(nth, _)| *nth as u64 == surely || self.takes(2, (&of, nth)));
        first.into_iter().chain(others.map(|(_, way)| way)).collect()
    }

    fn number(self, what: impl Hash) -> Option<u64> {
        let seed = self.0?;
        let mut hasher = DefaultHasher::new();
        (seed, what).hash(&mut hasher);
        Some(hasher.finish())
    }
}
