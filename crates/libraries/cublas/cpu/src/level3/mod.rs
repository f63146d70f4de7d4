//! Level 3: everything is cut into blocks so that nearly all work is products of general matrices ([`crate::gemm()`]).

mod elementwise;
mod packed;
mod rank;
mod small;
mod symmetric;
mod triangular;

pub use elementwise::{dgmm, geam};
pub use packed::{tpttr, trttp};
pub use rank::{her2k, herk, herkx, syr2k, syrk, syrkx};
pub use symmetric::{hemm, symm};
pub(crate) use triangular::solve;
pub use triangular::{trmm, trsm};

/// The size of diagonal blocks that are written out in full, to be multiplied as any other matrix.
const BLOCK: i64 = 128;

/// The starts and sizes of the blocks that make up `n`.
fn blocks(n: i64) -> impl Iterator<Item = (i64, i64)> {
    (0..n.max(0)).step_by(BLOCK as usize).map(move |start| (start, BLOCK.min(n - start)))
}
