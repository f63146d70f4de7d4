//! cuBLASLt: descriptors that are plain bytes, handles, and what a product or a transform asks of them.

pub mod algorithm;
pub mod descriptor;
pub mod epilogue;
pub mod handle;
pub mod product;
pub mod transform;
