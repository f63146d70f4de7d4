//! The graph API: descriptors that are lists of attributes (`descriptor.rs`), and what a graph of them does (`plan.rs`).

pub mod attention;
pub mod descriptor;
pub mod layers;
pub mod plan;
