//! The bodies, under their C names.

pub mod conversion;
pub mod dense;
pub mod factorization;
pub mod legacy;
pub mod lifecycle;
pub mod logger;
pub mod matrices;
pub mod products;
pub mod sorting;
pub mod spgemm;
pub mod triangular;
pub mod vector;
pub mod vectors;
