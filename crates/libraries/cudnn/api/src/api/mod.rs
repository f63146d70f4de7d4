//! One file per chapter of cuDNN's manual.

pub mod activation;
pub mod backend;
pub mod convolution;
pub mod dropout;
pub mod lifecycle;
pub mod normalization;
pub mod operation;
pub mod pooling;
pub mod recurrent;
pub mod recurrent_first;
pub mod reduction;
pub mod tensors;
