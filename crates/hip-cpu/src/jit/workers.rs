//! Threads that LLVM works in: it recurses deeply, and a fatal error in it ends its thread's work only. A thread serves one compile
//! after the other, with what it has allocated before, and ends when it has had nothing to do for a while.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use parking_lot::Mutex;

use super::Error;
use crate::thread;

type Work = Box<dyn FnOnce() + Send>;

/// A thread that waits for work, known by its place of it. Threads run at the priority of those that they work for, which nobody
/// may raise.
struct Idle {
    own: u64,
    nice: i32,
    work: Sender<Work>,
}

static IDLE: Mutex<(u64, Vec<Idle>)> = Mutex::new((0, Vec::new()));

/// How long a thread waits for more.
const PATIENCE: Duration = Duration::from_secs(1);

/// Hands the work to a thread that runs at the caller's priority. One that never comes back from it is never given more.
pub fn run(work: impl FnOnce() + Send + 'static) -> Result<(), Error> {
    let mut work: Work = Box::new(work);
    let nice = thread::nice();
    loop {
        let idle = {
            let mut idle = IDLE.lock();
            let nth = idle.1.iter().rposition(|it| it.nice == nice);
            nth.map(|nth| idle.1.swap_remove(nth))
        };
        let Some(idle) = idle else { break };
        match idle.work.send(work) {
            Ok(()) => return Ok(()),
            Err(back) => work = back.0,
        }
    }
    let (send, receive) = channel();
    let own = {
        let mut idle = IDLE.lock();
        idle.0 += 1;
        idle.0
    };
    let serve = move || {
        let mut work = work;
        loop {
            work();
            // Its priority may have fallen meanwhile.
            let nice = thread::nice();
            IDLE.lock().1.push(Idle { own, nice, work: send.clone() });
            work = match receive.recv_timeout(PATIENCE) {
                Ok(next) => next,
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {
                    let is_idle = {
                        let mut idle = IDLE.lock();
                        let before = idle.1.len();
                        idle.1.retain(|it| it.own != own);
                        idle.1.len() < before
                    };
                    if is_idle {
                        return;
                    }
                    // Somebody has just taken it, and its work comes.
                    match receive.recv() {
                        Ok(next) => next,
                        Err(_) => return,
                    }
                }
            };
        }
    };
    match thread::spawn("cudaway-llvm".to_owned(), serve) {
        Ok(_) => Ok(()),
        Err(error) => Err(Error::Generate(format!("no thread: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn id() -> std::thread::ThreadId {
        let (send, receive) = sync_channel(1);
        run(move || send.send(std::thread::current().id()).unwrap()).unwrap();
        receive.recv().unwrap()
    }

    #[test]
    fn a_thread_serves_again_at_its_priority_only() {
        std::thread::spawn(|| {
            // A priority that no other test has.
            thread::yield_to_others(3);
            let ids: HashSet<_> = (0..20)
                .map(|_| {
                    let id = id();
                    std::thread::sleep(Duration::from_millis(5));
                    id
                })
                .collect();
            assert!(ids.len() < 10, "{}", ids.len());
            std::thread::spawn(move || {
                thread::yield_to_others(5);
                assert!(!ids.contains(&id()));
            })
            .join()
            .unwrap();
        })
        .join()
        .unwrap();
    }

    #[test]
    fn threads_that_never_come_back_stop_nobody() {
        for _ in 0..3 {
            run(|| std::thread::park_timeout(Duration::from_secs(3))).unwrap();
        }
        id();
    }
}
