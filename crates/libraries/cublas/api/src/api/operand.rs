//! Vectors and matrices as routines are told of them: what is wrong with their sizes.

use crate::{Result, require};

pub(super) fn sizes(dimensions: &[i64], increments: &[i64]) -> Result {
    require(dimensions.iter().all(|&dimension| dimension >= 0), "a size is negative")?;
    require(!increments.contains(&0), "an increment is 0")
}

pub(super) fn leading(ld: i64, rows: i64) -> Result {
    require(ld >= rows.max(1), "a leading dimension is too small")
}
