//! The worker threads: one per core this process may use, started at the first large grid, parked when idle.
//!
//! The thread that shares a job works on it too, so a job always advances even when every worker is busy elsewhere.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Job;

/// How long an idle worker looks for work before it parks.
const SPIN: Duration = Duration::from_micros(20);

/// A shared job, valid while it is in the list or `helpers` is not 0.
struct Shared {
    job: *const Job<'static>,
    helpers: *const AtomicUsize,
}

impl Shared {
    /// Whether the job has work for one helper more.
    ///
    /// # Safety
    ///
    /// The entry is in the list, whose lock the caller holds.
    unsafe fn wants_help(&self) -> bool {
        // SAFETY: what is listed is alive.
        let (job, helpers) = unsafe { (&*self.job, &*self.helpers) };
        job.has_work() && helpers.load(Ordering::Acquire) < job.most_helpers()
    }
}

// SAFETY: the poster keeps both alive until the entry is gone and the last helper has left.
unsafe impl Send for Shared {}

#[derive(Default)]
struct Pool {
    jobs: Mutex<Vec<Shared>>,
    wake: Condvar,
    /// Jobs in the list, readable without the lock.
    n_jobs: AtomicUsize,
    parked: AtomicU32,
}

/// Cores this process may use, or what `CUDAWAY_CPU_THREADS` says.
pub fn workers() -> usize {
    static WORKERS: OnceLock<usize> = OnceLock::new();
    *WORKERS.get_or_init(|| {
        let available = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        config::get().cpu_threads.unwrap_or_else(available).clamp(1, 4096)
    })
}

static POOL: OnceLock<Pool> = OnceLock::new();

fn pool() -> &'static Pool {
    static STARTED: OnceLock<()> = OnceLock::new();
    let pool = POOL.get_or_init(Pool::default);
    STARTED.get_or_init(|| {
        for number in 1..workers() {
            let started =
                crate::thread::spawn(format!("cudaway-{number}"), move || serve(pool, number as u32));
            if let Err(error) = started {
                tracing::warn!(target: "cudaway::cpu", "worker thread {number} did not start: {error}");
            }
        }
    });
    pool
}

/// Runs `job` on this thread and on as many workers as it wants; returns when all have left it.
pub(crate) fn share(job: &Job<'_>) {
    let pool = pool();
    let helpers = AtomicUsize::new(0);
    {
        let mut jobs = pool.jobs.lock();
        // The lifetime ends with this call: the entry is removed and `helpers` is 0 before it returns.
        jobs.push(Shared { job: std::ptr::from_ref(job).cast(), helpers: &raw const helpers });
        pool.n_jobs.store(jobs.len(), Ordering::Release);
    }
    for _ in 0..job.most_helpers().min(pool.parked.load(Ordering::Acquire) as usize) {
        pool.wake.notify_one();
    }
    job.work(0);
    {
        let mut jobs = pool.jobs.lock();
        jobs.retain(|shared| !std::ptr::addr_eq(shared.job, job));
        pool.n_jobs.store(jobs.len(), Ordering::Release);
    }
    let mut spins = 0u32;
    while helpers.load(Ordering::Acquire) != 0 {
        spins += 1;
        if spins < 2000 {
            std::hint::spin_loop();
        } else {
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// A parked worker looks for jobs, if there are any workers.
pub(crate) fn invite() {
    let Some(pool) = POOL.get() else { return };
    if pool.parked.load(Ordering::Acquire) > 0 {
        pool.wake.notify_one();
    }
}

fn serve(pool: &'static Pool, number: u32) {
    loop {
        let taken = {
            let mut jobs = pool.jobs.lock();
            loop {
                // SAFETY: the list is locked.
                let found = jobs.iter().find(|shared| unsafe { shared.wants_help() });
                if let Some(shared) = found {
                    // SAFETY: listed jobs are alive, and `helpers` is raised under the lock that unlists them.
                    unsafe { (*shared.helpers).fetch_add(1, Ordering::AcqRel) };
                    break Shared { job: shared.job, helpers: shared.helpers };
                }
                drop(jobs);
                let until = Instant::now() + SPIN;
                while pool.n_jobs.load(Ordering::Acquire) == 0 && Instant::now() < until {
                    std::hint::spin_loop();
                }
                jobs = pool.jobs.lock();
                // SAFETY: as above.
                if !jobs.iter().any(|shared| unsafe { shared.wants_help() }) {
                    pool.parked.fetch_add(1, Ordering::AcqRel);
                    pool.wake.wait(&mut jobs);
                    pool.parked.fetch_sub(1, Ordering::AcqRel);
                }
            }
        };
        // SAFETY: `helpers` was raised, so the poster waits for us.
        unsafe {
            (*taken.job).work(number);
            (*taken.helpers).fetch_sub(1, Ordering::AcqRel);
        }
    }
}
