//! Better code that is made while kernels run what there is, by as many threads as half of the cores: first that of kernels whose
//! grids run now or stand in a stream, at the program's own priority (on more threads while grids do nothing but wait for code), then
//! the most wanted of what nobody waits for, at low priority, to which that falls as well whose grids have ended by the time that
//! something urgent comes. A program that ends waits a little for what has been begun, so that the cache has it the next time.

use std::ffi::{c_int, c_void};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use crate::exec::{Heat, pool};
use crate::{at_exit, thread};

/// Of threads whose work nobody waits for: Linux gives them a seventieth of a core that others want too. With 10, a tenth of one, a
/// Thrust program's first run took 0.3 s more of 3.2 s.
const NICE: c_int = 19;

struct Work {
    /// What it is, for the log.
    what: String,
    heat: Arc<Heat>,
    /// A program that ends waits for it.
    is_awaited: bool,
    make: Box<dyn FnOnce() + Send>,
}

/// What a thread makes.
struct Making {
    id: u64,
    /// Whether a grid waits for it changes meanwhile.
    heat: Arc<Heat>,
    is_awaited: bool,
}

struct Queue {
    waiting: Vec<Work>,
    making: Vec<Making>,
    n_begun: u64,
    /// Grids that do nothing but wait for code.
    n_lent: usize,
}

static QUEUE: Mutex<Queue> = Mutex::new(Queue { waiting: vec![], making: vec![], n_begun: 0, n_lent: 0 });
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

/// Something has become urgent, or is no more.
pub fn wishes_changed() {
    QUEUE.lock().dispatch();
}

impl Queue {
    /// Starts what may be made now.
    fn dispatch(&mut self) {
        while let Some(work) = self.take() {
            let Work { what, heat, is_awaited, make } = work;
            self.n_begun += 1;
            let id = self.n_begun;
            if heat.is_urgent() {
                // What nobody waits for any more gives way to it.
                for other in self.making.iter().filter(|it| !it.heat.is_urgent()) {
                    other.heat.crew.yield_to_others(NICE);
                }
            }
            self.making.push(Making { id, heat: heat.clone(), is_awaited });
            let make = move || {
                let _done = Done(id);
                // Whoever waits sees by it that this has not ended.
                let heat = heat;
                let _member = heat.crew.join();
                if !heat.is_urgent() {
                    thread::yield_to_others(NICE);
                }
                make();
            };
            if let Err(error) = thread::spawn("cudaway-jit".to_owned(), make) {
                self.end(id);
                tracing::warn!(target: "cudaway::cpu", "{what} stays as it is: no thread to compile it: {error}");
            }
        }
    }

    /// The most wanted, if there is room for it: what is urgent waits for nothing else.
    fn take(&mut self) -> Option<Work> {
        let most = (pool::workers() / 2).max(1);
        let is_running = |work: &Work| work.heat.grids.load(Ordering::Relaxed) > 0;
        let wish =
            |work: &Work| (is_running(work), work.heat.is_urgent(), work.heat.ns.load(Ordering::Relaxed));
        let at = (0..self.waiting.len()).max_by_key(|&at| wish(&self.waiting[at]))?;
        let n_urgent = self.making.iter().filter(|it| it.heat.is_urgent()).count();
        let has_room =
            self.making.len() < most || (self.waiting[at].heat.is_urgent() && n_urgent < most + self.n_lent);
        has_room.then(|| self.waiting.swap_remove(at))
    }

    /// Whether something is worth waiting for to somebody who measures; all of that is urgent then.
    fn is_awaited(&self) -> bool {
        let heats = self.waiting.iter().map(|it| &it.heat).chain(self.making.iter().map(|it| &it.heat));
        heats.filter(|heat| heat.await_it()).count() > 0
    }

    fn end(&mut self, id: u64) {
        self.making.retain(|it| it.id != id);
    }
}

/// How long a program that measures waits for better code, at most.
const SETTLED_WITHIN: Duration = Duration::from_secs(20);

/// The program begins to measure time: until the better code is there of what has run long enough for that, which has its cores until
/// then.
pub fn settle() {
    let until = Instant::now() + SETTLED_WITHIN;
    let mut queue = QUEUE.lock();
    while queue.is_awaited() {
        queue.n_lent += 1;
        queue.dispatch();
        let is_late = CHANGED.wait_until(&mut queue, until).timed_out();
        queue.n_lent -= 1;
        if is_late {
            return;
        }
    }
}

/// The caller does nothing but wait for code until it drops this: its core may make code that is urgent.
pub fn lend_core() -> Lent {
    let mut queue = QUEUE.lock();
    queue.n_lent += 1;
    queue.dispatch();
    Lent
}

pub struct Lent;

impl Drop for Lent {
    fn drop(&mut self) {
        QUEUE.lock().n_lent -= 1;
    }
}

/// A thread at work, until it is dropped.
struct Done(u64);

impl Drop for Done {
    fn drop(&mut self) {
        let mut queue = QUEUE.lock();
        queue.end(self.0);
        queue.dispatch();
        // Grids have left this core to it.
        pool::invite();
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, AtomicU64};

    use super::*;

    #[test]
    fn who_measures_waits_for_what_has_run_long_enough() {
        let (begun, ended) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let told = (begun.clone(), ended.clone());
        let made = Heat { ns: AtomicU64::new(9), awaited_at: Some(10), ..Heat::default() };
        let made = Arc::new(made);
        ask_idly("measured".to_owned(), made.clone(), move || {
            told.0.store(true, Ordering::SeqCst);
            std::thread::sleep(Duration::from_millis(300));
            told.1.store(true, Ordering::SeqCst);
        });
        settle();
        assert!(!ended.load(Ordering::SeqCst), "it is not worth it yet");
        made.ns.store(10, Ordering::Relaxed);
        settle();
        assert!(begun.load(Ordering::SeqCst) && ended.load(Ordering::SeqCst));
    }
}
