//! The graph API: descriptors that are lists of attributes (`descriptor.rs`), and what a graph of them does (`plan.rs`). `layers.rs`, `attention.rs`
//! and the others are its operations; `layout.rs` is how tensors lie in memory; `device.rs` is who does them on an AMD GPU, `hip.rs`
//! which of them MIOpen does and `kernels.rs` which our own kernels do.

mod attend;
pub mod attention;
mod blocks;
pub mod descriptor;
pub mod device;
mod grouped;
mod hip;
mod kernels;
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
