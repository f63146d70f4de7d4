//! The bodies, under their C names.

pub mod blocking;
pub mod blocks;
pub mod conversion;
pub mod dense;
pub mod diagonals;
pub mod entries;
pub mod epilogues;
pub mod factorization;
pub mod info;
pub mod legacy;
pub mod lifecycle;
pub mod logger;
pub mod matrices;
pub mod older;
pub mod ordering;
pub mod pointers;
pub mod products;
pub mod solves;
pub mod sorting;
pub mod spgeam;
pub mod spgemm;
pub mod sums;
pub mod thinning;
pub mod triangular;
pub mod vector;
pub mod vectors;
