//! The numerics of cuDNN on the CPU: what its manual says of numbers, no handles, no CUDA types, no streams.
//!
//! Callers (crate `cudnn`) have checked every argument. A tensor in memory is a [`View`]: a type, sizes and strides. Routines compute on
//! arrays in the order N, C, D, H, W of `f32`, or of `f64` where a tensor is `f64` or integers are multiplied: a tensor that lies so is
//! used where it is, any other is gathered first, and results are scattered (`view.rs`). Products are `cublas_cpu`'s.
//!
//! The rule: no two cores add to one sum, so that a result is the same again on as many cores.

pub mod activation;
pub mod attention;
pub mod causal;
pub mod convolution;
pub mod ctc;
mod direct;
pub mod dropout;
mod elementary;
mod isa;
pub mod lrn;
pub mod matmul;
pub mod multihead;
pub mod norm;
pub mod normal;
pub mod onednn;
mod packed;
pub mod pointwise;
pub mod pooling;
pub mod random;
pub mod recurrent;
pub mod reduction;
pub mod softmax;
pub mod spatial;
mod value;
mod view;

use rayon::prelude::*;

pub use cublas_cpu::{Op, gemm};
pub use value::{Kind, Value, rounded};
pub use view::{Lines, MOST, View};

/// What has to be done, in elements, before a second core is worth waking.
const WORTH: usize = 1 << 15;

/// Cores that work is done on.
#[must_use]
pub fn cores() -> usize {
    rayon::current_num_threads()
}

/// Calls `body` with `0..count`, on several cores where `count` times `work` (elements per call) is much.
pub fn parallel(count: usize, work: usize, body: impl Fn(usize) + Sync + Send) {
    if count > 1 && count.saturating_mul(work) >= WORTH {
        shared(count, &body);
    } else {
        (0..count).for_each(body);
    }
}

/// Once for all bodies: what rayon makes of a loop is a kilobyte of code, and there are hundreds.
fn shared(count: usize, body: &(dyn Fn(usize) + Sync)) {
    (0..count).into_par_iter().for_each(body);
}

/// The same with room that tasks of a core have one after the other.
pub(crate) fn shared_with_room<R: Default>(count: usize, task: &(dyn Fn(&mut R, usize) + Sync)) {
    (0..count).into_par_iter().for_each_init(R::default, task);
}

/// Calls `body` with each piece of so many elements and its number, on several cores where there is much.
pub fn pieces<T: Send>(of: &mut [T], size: usize, work: usize, body: impl Fn(usize, &mut [T]) + Sync + Send) {
    let size = size.max(1);
    if of.len() > size && (of.len() / size).saturating_mul(work) >= WORTH {
        shared_pieces(of, size, &body);
    } else {
        of.chunks_mut(size).enumerate().for_each(|(number, piece)| body(number, piece));
    }
}

fn shared_pieces<T: Send>(of: &mut [T], size: usize, body: &(dyn Fn(usize, &mut [T]) + Sync)) {
    of.par_chunks_mut(size).enumerate().for_each(|(number, piece)| body(number, piece));
}
