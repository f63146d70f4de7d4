//! ROCm's MIOpen behind cuDNN on AMD GPUs. A body that has looked at its arguments asks a function of this folder to do the work, with
//! MIOpen's descriptors made of ours.
//!
//! The rule: what MIOpen lacks, computes by other rules than cuDNN's or refuses is our own code's, on copies. MIOpen's factors are 1 and 0
//! in most calls; its tensors lie densely, by channels unless a function says otherwise; and bfloat16 is for convolutions and fills alone.

pub mod activation;
pub mod call;
pub mod convert;
pub mod convolution;
pub mod elements;
pub mod library;
pub mod norm;
pub mod objects;
pub mod pooling;
#[cfg(test)]
mod tests;

pub use call::{HipCall, HipHandle};
