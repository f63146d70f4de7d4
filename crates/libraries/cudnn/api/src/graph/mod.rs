//! The graph API: descriptors that are lists of attributes (`descriptor.rs`), and what a graph of them does (`plan.rs`). `layers.rs`, `attention.rs`
//! and the others are its operations; `layout.rs` is how tensors lie in memory; `hip.rs` is which of them MIOpen does.

pub mod attention;
mod blocks;
pub mod descriptor;
mod grouped;
mod hip;
pub mod layers;
mod layout;
mod moves;
pub mod overrides;
mod parts;
pub mod plan;
mod pooling;
mod random;
mod rotation;
mod statistics;
pub mod written;
