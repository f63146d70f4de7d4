//! The bodies, under their C names.
#![expect(clippy::too_many_arguments, reason = "C's")]

pub mod eigen;
pub mod generic;
pub mod jacobi;
pub mod lifecycle;
pub mod mixed;
pub mod orthogonal;
pub mod sparse;
pub mod svd;
pub mod systems;
