//! Who does the work: the caller says over which threads it is split.

use rayon::prelude::*;

use crate::area::Areas;

/// Threads that pieces of work are given to.
pub trait Cores: Sync {
    /// How many pieces are worked on at the same time.
    fn count(&self) -> usize;

    /// Calls `work` once with each number below `pieces`, and returns when all calls have.
    fn each(&self, pieces: usize, work: &(dyn Fn(usize) + Sync));
}

/// The thread that asks.
pub struct Alone;

impl Cores for Alone {
    fn count(&self) -> usize {
        1
    }

    fn each(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..pieces).for_each(work);
    }
}

/// The threads of the pool that the caller is in, or else of rayon's global one.
pub struct Rayon;

impl Cores for Rayon {
    fn count(&self) -> usize {
        rayon::current_num_threads()
    }

    fn each(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        (0..pieces).into_par_iter().with_max_len(1).for_each(work);
    }
}

/// What an execution may use.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) cores: &'a dyn Cores,
    pub(crate) areas: &'a Areas,
}

impl<'a> Context<'a> {
    /// The same on one core.
    pub(crate) fn alone(self) -> Self {
        Self { cores: &Alone, ..self }
    }
}
