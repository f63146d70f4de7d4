//! Better code that is made while kernels run what there is, by as many threads as half of the cores: first that of kernels whose
//! grids run now, at the program's own priority, then the most wanted of what nobody waits for, at low priority. A program
//! that ends waits a little for what has been begun, so that the cache has it the next time.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::Instant;

use parking_lot::{Condvar, Mutex};

use crate::exec::{Heat, pool};
use crate::{at_exit, thread};

/// Of threads whose work nobody waits for: Linux gives them a tenth of a core that others want too.
const NICE: c_int = 10;

struct Work {
    /// What it is, for the log.
    what: String,
    heat: Arc<Heat>,
    /// A program that ends waits for it.
    is_awaited: bool,
    make: Box<dyn FnOnce() + Send>,
}

/// What a thread makes.
#[derive(Clone, Copy)]
struct Kind {
    /// A grid waits for it.
    is_urgent: bool,
    is_awaited: bool,
}

struct Queue {
    waiting: Vec<Work>,
    making: Vec<Kind>,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: vec![], making: vec![] });
static CHANGED: Condvar = Condvar::new();

/// Has `make` called on a thread of ours when its turn comes.
pub fn ask(what: String, heat: Arc<Heat>, make: impl FnOnce() + Send + 'static) {
    static ONCE: Once = Once::new();
    if config::get().cache_dir.is_some() {
        ONCE.call_once(|| at_exit::register(wait));
    }
    enter(Work { what, heat, is_awaited: true, make: Box::new(make) });
}

/// The same for what no program waits for at its end.
pub fn ask_idly(what: String, heat: Arc<Heat>, make: impl FnOnce() + Send + 'static) {
    enter(Work { what, heat, is_awaited: false, make: Box::new(make) });
}

fn enter(work: Work) {
    let mut queue = QUEUE.lock();
    queue.waiting.push(work);
    queue.dispatch();
}

impl Queue {
    /// Starts what may be made now.
    fn dispatch(&mut self) {
        while let Some((work, kind)) = self.take() {
            self.making.push(kind);
            let Work { what, heat, make, .. } = work;
            let make = move || {
                let _done = Done(kind);
                // Whoever waits sees by it that this has not ended.
                let _heat = heat;
                if !kind.is_urgent {
                    thread::yield_to_others(NICE);
                }
                make();
            };
            if let Err(error) = thread::spawn("cudaway-jit".to_owned(), make) {
                self.end(kind);
                tracing::warn!(target: "cudaway::cpu", "{what} stays as it is: no thread to compile it: {error}");
            }
        }
    }

    /// The most wanted, if there is room for it: what is urgent waits for nothing else.
    fn take(&mut self) -> Option<(Work, Kind)> {
        let most = (pool::workers() / 2).max(1);
        let is_running = |work: &Work| work.heat.grids.load(Ordering::Relaxed) > 0;
        let wish = |work: &Work| (is_running(work), work.heat.ns.load(Ordering::Relaxed));
        let at = (0..self.waiting.len()).max_by_key(|&at| wish(&self.waiting[at]))?;
        let work = &self.waiting[at];
        let kind = Kind { is_urgent: is_running(work), is_awaited: work.is_awaited };
        let n_urgent = self.making.iter().filter(|it| it.is_urgent).count();
        let has_room = self.making.len() < most || (kind.is_urgent && n_urgent < most);
        has_room.then(|| (self.waiting.swap_remove(at), kind))
    }

    fn end(&mut self, Kind { is_urgent, is_awaited }: Kind) {
        let is_it = |it: &Kind| (it.is_urgent, it.is_awaited) == (is_urgent, is_awaited);
        if let Some(at) = self.making.iter().position(is_it) {
            self.making.swap_remove(at);
        }
    }
}

/// A thread at work, until it is dropped.
struct Done(Kind);

impl Drop for Done {
    fn drop(&mut self) {
        let mut queue = QUEUE.lock();
        queue.end(self.0);
        queue.dispatch();
        CHANGED.notify_all();
    }
}

extern "C" fn wait(_: c_int, _: *mut c_void) {
    // A fork has the list, and none of the threads.
    if thread::is_forked() {
        return;
    }
    let patience = config::get().exit_wait;
    let until = Instant::now() + patience;
    let Some(mut queue) = QUEUE.try_lock_until(until) else { return };
    let stays = |work: &Work| work.is_awaited && patience > config::DEFAULT_EXIT_WAIT;
    queue.waiting.retain(stays);
    let awaited = |queue: &Queue| !queue.waiting.is_empty() || queue.making.iter().any(|it| it.is_awaited);
    while awaited(&queue) && !CHANGED.wait_until(&mut queue, until).timed_out() {}
}
