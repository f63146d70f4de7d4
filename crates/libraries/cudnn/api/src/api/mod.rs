//! One file per chapter of cuDNN's manual.

pub mod activation;
pub mod algorithms;
pub mod attention;
pub mod backend;
pub mod causal;
pub mod convolution;
pub mod dropout;
pub mod lifecycle;
pub mod loss;
pub mod normalization;
pub mod operation;
pub mod pooling;
pub mod recurrent;
pub mod recurrent_first;
pub mod reduction;
pub mod spatial;
pub mod tensors;
pub mod transform;
