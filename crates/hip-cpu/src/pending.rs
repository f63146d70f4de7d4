//! Better code that is made while kernels run what there is: the most wanted first, by as many threads as half of the cores.
//! What nobody waits for is made at low priority. A program that ends waits a little for what has been begun, so that the
//! cache has it the next time.

use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Once};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::exec::pool;
use crate::{at_exit, thread};

/// How much some code is wanted: nanoseconds that grids have run without it, and will as far as is known.
pub type Heat = Arc<AtomicU64>;

/// Heat of code that is made at the program's own priority.
const HOT: u64 = 5_000_000;

/// Of threads that make what is not hot: Linux gives them a tenth of a core that others want too.
const NICE: c_int = 10;

struct Work {
    /// What it is, for the log.
    what: String,
    heat: Heat,
    make: Box<dyn FnOnce() + Send>,
}

struct Queue {
    waiting: Vec<Work>,
    /// Threads at work, and those of them whose code is hot.
    n_making: usize,
    n_hot: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: vec![], n_making: 0, n_hot: 0 });
static CHANGED: Condvar = Condvar::new();

/// Has `make` called on a thread of ours when its turn comes.
pub fn ask(what: String, heat: Heat, make: impl FnOnce() + Send + 'static) {
    static ONCE: Once = Once::new();
    if config::get().cache_dir.is_some() {
        ONCE.call_once(|| at_exit::register(wait));
    }
    let mut queue = QUEUE.lock();
    queue.waiting.push(Work { what, heat, make: Box::new(make) });
    queue.dispatch();
}

impl Queue {
    /// Starts what may be made now.
    fn dispatch(&mut self) {
        while let Some((work, is_hot)) = self.take() {
            self.n_making += 1;
            self.n_hot += usize::from(is_hot);
            let Work { what, make, .. } = work;
            let make = move || {
                let _done = Done { is_hot };
                if !is_hot {
                    thread::yield_to_others(NICE);
                }
                make();
            };
            if let Err(error) = thread::spawn("cudaway-jit".to_owned(), make) {
                self.n_making -= 1;
                self.n_hot -= usize::from(is_hot);
                tracing::warn!(target: "cudaway::cpu", "{what} stays as it is: no thread to compile it: {error}");
            }
        }
    }

    /// The most wanted, if there is room for it: hot code does not wait for code that is not.
    fn take(&mut self) -> Option<(Work, bool)> {
        let most = (pool::workers() / 2).max(1);
        let heat = |work: &Work| work.heat.load(Ordering::Relaxed);
        let at = (0..self.waiting.len()).max_by_key(|&at| heat(&self.waiting[at]))?;
        let is_hot = heat(&self.waiting[at]) >= HOT;
        let has_room = self.n_making < most || (is_hot && self.n_hot < most);
        has_room.then(|| (self.waiting.swap_remove(at), is_hot))
    }
}

/// A thread at work, until it is dropped.
struct Done {
    is_hot: bool,
}

impl Drop for Done {
    fn drop(&mut self) {
        let mut queue = QUEUE.lock();
        queue.n_making -= 1;
        queue.n_hot -= usize::from(self.is_hot);
        queue.dispatch();
        CHANGED.notify_all();
    }
}

extern "C" fn wait(_: c_int, _: *mut c_void) {
    // A fork has the counts, and none of the threads.
    if thread::is_forked() {
        return;
    }
    let patience = config::get().exit_wait;
    let until = Instant::now() + patience;
    let Some(mut queue) = QUEUE.try_lock_until(until) else { return };
    if patience <= config::DEFAULT_EXIT_WAIT {
        queue.waiting.clear();
    }
    while queue.n_making > 0 && !CHANGED.wait_until(&mut queue, until).timed_out() {}
}
