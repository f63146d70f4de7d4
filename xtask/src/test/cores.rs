//! Jobs beside each other.

use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

/// Does all jobs, begun in their order, as many at a time as there are cores; what each gives, in their order.
pub fn on_cores<J: Send, R: Send>(jobs: Vec<J>, work: impl Fn(J) -> R + Sync) -> Vec<R> {
    const POISONED: &str = "no worker panics";
    let queue = Mutex::new(jobs.into_iter().enumerate());
    let ended = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(2, NonZero::get) {
            scope.spawn(|| {
                loop {
                    let job = queue.lock().expect(POISONED).next();
                    let Some((nth, job)) = job else { return };
                    let given = work(job);
                    ended.lock().expect(POISONED).push((nth, given));
                }
            });
        }
    });
    let mut ended = ended.into_inner().expect(POISONED);
    ended.sort_by_key(|(nth, _)| *nth);
    ended.into_iter().map(|(_, given)| given).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_is_done_once_and_keeps_its_place() {
        let squares = on_cores((0..100).collect(), |n: u64| n * n);
        assert!(squares.into_iter().eq((0..100).map(|n| n * n)));
    }
}
