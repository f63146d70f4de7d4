//! The bodies, under their C names.

pub mod execute;
pub mod fftw;
pub mod library;
pub mod plan;
pub mod settings;
pub mod size;
pub mod xt;
