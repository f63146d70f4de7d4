//! The bodies, under their C names.

pub mod generate;
pub mod lifecycle;
pub mod settings;
pub mod tables;
