//! Vectors and matrices as routines are told of them: what is wrong with their sizes, and their addresses.

use crate::{Result, require};

pub(super) fn sizes(dimensions: &[i64], increments: &[i64]) -> Result {
    require(dimensions.iter().all(|&dimension| dimension >= 0), "a size is negative")?;
    require(!increments.contains(&0), "an increment is 0")
}

pub(super) fn leading(ld: i64, rows: i64) -> Result {
    require(ld >= rows.max(1), "a leading dimension is too small")
}

/// An address that pieces of work on several threads use.
#[derive(Clone, Copy)]
pub(super) struct Address<T>(pub(super) T);

// SAFETY: what the pieces do with it is for them to keep apart.
unsafe impl<T> Send for Address<T> {}
// SAFETY: as above.
unsafe impl<T> Sync for Address<T> {}

impl<T: Copy> Address<T> {
    pub(super) fn get(&self) -> T {
        self.0
    }
}
