//! Better code that is being made while a kernel runs in its quick form. A program that ends sooner waits for it once, so
//! that the cache has it the next time.

use std::ffi::{c_int, c_void};
use std::sync::Once;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::exec::pool;
use crate::{at_exit, thread};

/// Longer than any kernel should take; a program must end.
const PATIENCE: Duration = Duration::from_secs(5);

struct Counts {
    asked_for: usize,
    /// Bound: half of the cores, since the program runs meanwhile and LLVM takes its memory.
    compiling: usize,
}

static COUNTS: Mutex<Counts> = Mutex::new(Counts { asked_for: 0, compiling: 0 });
static CHANGED: Condvar = Condvar::new();

/// One kernel's, counted until it is dropped.
pub struct Pending {
    has_turn: bool,
    /// The program waits for it at its end.
    is_awaited: bool,
}

impl Pending {
    pub fn new() -> Pending {
        static ONCE: Once = Once::new();
        COUNTS.lock().asked_for += 1;
        if config::get().cache_dir.is_some() {
            ONCE.call_once(|| at_exit::register(wait));
        }
        Pending { has_turn: false, is_awaited: true }
    }

    /// What no program waits for at its end.
    pub fn of_nobody() -> Pending {
        Pending { has_turn: false, is_awaited: false }
    }

    /// Returns when not too many others compile.
    pub fn take_turn(&mut self) {
        let most = (pool::workers() / 2).max(1);
        let mut counts = COUNTS.lock();
        while counts.compiling >= most {
            CHANGED.wait(&mut counts);
        }
        counts.compiling += 1;
        self.has_turn = true;
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let mut counts = COUNTS.lock();
        counts.asked_for -= usize::from(self.is_awaited);
        counts.compiling -= usize::from(self.has_turn);
        CHANGED.notify_all();
    }
}

extern "C" fn wait(_: c_int, _: *mut c_void) {
    // A fork has the counts, and none of the threads.
    if thread::is_forked() {
        return;
    }
    let until = Instant::now() + PATIENCE;
    let Some(mut counts) = COUNTS.try_lock_until(until) else { return };
    while counts.asked_for > 0 && !CHANGED.wait_until(&mut counts, until).timed_out() {}
}
