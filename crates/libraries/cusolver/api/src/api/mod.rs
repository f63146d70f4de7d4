//! The bodies, under their C names.
#![expect(clippy::too_many_arguments, reason = "C's")]

pub mod approximate;
pub mod eigen;
pub mod emulation;
pub mod first;
pub mod generalised;
pub mod generic;
pub mod indefinite;
pub mod jacobi;
pub mod lifecycle;
pub mod lowlevel;
pub mod mixed;
pub mod multi_device;
pub mod ordering;
pub mod orthogonal;
pub mod polar;
pub mod refactorisation;
pub mod refinement;
pub mod reflections;
pub mod sparse;
pub mod spectrum;
pub mod svd;
pub mod systems;
pub mod tridiagonal;
