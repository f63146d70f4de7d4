//! The helpers of this process: at most so many at once, kept for the next request.
//!
//! A process that was forked has pools of its own: its parent's sockets are in the middle of its parent's conversations, and
//! the parent's locks may be held for ever. So nothing of the parent's pool is touched there but its address.

use std::io;
use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::atomic::{AtomicPtr, Ordering};

use parking_lot::{Condvar, Mutex};

use super::helper::Helper;

/// The pool of the process that asks.
pub struct Pools {
    latest: AtomicPtr<Pool>,
    most: usize,
}

pub struct Pool {
    process: u32,
    most: usize,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    idle: Vec<Helper>,
    n_out: usize,
}

/// A helper that is this thread's; it ends unless it is kept.
pub struct Lent {
    pool: &'static Pool,
    helper: Option<Helper>,
}

impl Pools {
    pub const fn new(most: usize) -> Pools {
        Pools { latest: AtomicPtr::new(core::ptr::null_mut()), most }
    }

    /// Pools are never given back: a process has one, a forked one another.
    pub fn own(&self) -> &'static Pool {
        let process = std::process::id();
        let latest = self.latest.load(Ordering::Acquire);
        // SAFETY: null, or a pool that lives for ever.
        if let Some(pool) = unsafe { latest.as_ref() }
            && pool.process == process
        {
            return pool;
        }
        let own = Pool { process, most: self.most, state: Mutex::default(), returned: Condvar::new() };
        let own = Box::into_raw(Box::new(own));
        match self.latest.compare_exchange(latest, own, Ordering::AcqRel, Ordering::Acquire) {
            // SAFETY: it was just made, and nobody frees it.
            Ok(_) => unsafe { &*own },
            Err(other) => {
                // SAFETY: nobody else saw it.
                drop(unsafe { Box::from_raw(own) });
                // SAFETY: another thread of this process put it there.
                unsafe { &*other }
            }
        }
    }
}

impl Pool {
    /// A helper, when there is room for one. The lock is not held while it starts.
    pub fn take(&'static self, program: &Path) -> io::Result<Lent> {
        let idle = {
            let mut state = self.state.lock();
            self.returned.wait_while(&mut state, |state| state.n_out >= self.most);
            state.n_out += 1;
            state.idle.pop()
        };
        let mut lent = Lent { pool: self, helper: idle };
        if lent.helper.is_none() {
            lent.helper = Some(Helper::start(program)?);
        }
        Ok(lent)
    }
}

impl Lent {
    /// Gives it back for the next request.
    pub fn keep(mut self) {
        if let Some(helper) = self.helper.take() {
            self.pool.state.lock().idle.push(helper);
        }
    }
}

impl Deref for Lent {
    type Target = Helper;

    fn deref(&self) -> &Helper {
        self.helper.as_ref().expect("kept helpers are gone")
    }
}

impl DerefMut for Lent {
    fn deref_mut(&mut self) -> &mut Helper {
        self.helper.as_mut().expect("kept helpers are gone")
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        self.pool.state.lock().n_out -= 1;
        self.pool.returned.notify_one();
    }
}
