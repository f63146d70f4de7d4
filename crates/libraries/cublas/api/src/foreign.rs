//! What cuBLAS's headers take from elsewhere.

use core::ffi::c_void;

pub use cuda_abi::runtime::v13::{cudaDataType, cudaDataType_t, cudaStream_t};

pub type cuComplex = num_complex::Complex<f32>;
pub type cuDoubleComplex = num_complex::Complex<f64>;
pub type __half = half::f16;
pub type __nv_bfloat16 = half::bf16;
/// C's `FILE`, opaque.
pub type FILE = c_void;
