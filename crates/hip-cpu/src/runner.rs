//! Threads for what kernels start and do not do themselves: graphs that run beside them, and what needs a thread with a large stack.
//!
//! A thread that has nothing to do waits a little for more and ends. Errands may wait for others: none is left without a thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::thread;

/// How long a thread waits for another errand.
const IDLE: Duration = Duration::from_secs(1);

type Errand = Box<dyn FnOnce() + Send>;

#[derive(Default)]
struct Runners {
    waiting: VecDeque<Errand>,
    n_idle: usize,
}

static RUNNERS: Mutex<Runners> = Mutex::new(Runners { waiting: VecDeque::new(), n_idle: 0 });
static WORK: Condvar = Condvar::new();

/// There is no thread, and the errand was not begun.
#[derive(Debug)]
pub struct NoThread;

/// Has an idle thread run it, or a new one.
pub fn run_beside(errand: impl FnOnce() + Send + 'static) -> Result<(), NoThread> {
    let mut runners = RUNNERS.lock();
    runners.waiting.push_back(Box::new(errand));
    if runners.waiting.len() <= runners.n_idle {
        WORK.notify_one();
        return Ok(());
    }
    drop(runners);
    let Err(error) = thread::spawn("cudaway-runner".to_owned(), serve) else { return Ok(()) };
    tracing::error!(target: "cudaway::cpu", "no thread for what a kernel starts: {error}");
    let mut runners = RUNNERS.lock();
    // A thread that came back meanwhile takes all that waits.
    let unserved = (runners.n_idle == 0).then(|| runners.waiting.pop_back()).flatten();
    drop(runners);
    unserved.map_or(Ok(()), |_| Err(NoThread))
}

/// Runs it on such a thread, and waits for what it gives.
pub fn run_and_wait<T: Send + 'static>(errand: impl FnOnce() -> T + Send + 'static) -> Result<T, NoThread> {
    let answer = Arc::new((Mutex::new(None), Condvar::new()));
    let given = answer.clone();
    run_beside(move || {
        let value = errand();
        *given.0.lock() = Some(value);
        given.1.notify_one();
    })?;
    let mut value = answer.0.lock();
    loop {
        match value.take() {
            Some(value) => return Ok(value),
            None => answer.1.wait(&mut value),
        }
    }
}

fn serve() {
    let mut runners = RUNNERS.lock();
    loop {
        while let Some(errand) = runners.waiting.pop_front() {
            drop(runners);
            errand();
            runners = RUNNERS.lock();
        }
        runners.n_idle += 1;
        let is_over = WORK.wait_for(&mut runners, IDLE).timed_out();
        runners.n_idle -= 1;
        if is_over && runners.waiting.is_empty() {
            return;
        }
    }
}
