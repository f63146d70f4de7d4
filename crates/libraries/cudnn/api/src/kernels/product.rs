//! Products of matrices: api/kernels/products.cu.

use super::tensor::{Operand, Sizes, Tensor, space};
use super::{Call, Part};
use crate::Result;

/// `Product` of products.cu.
#[repr(C)]
struct Product {
    tensors: [Tensor; 6],
    batch: Sizes,
    rows: u32,
    columns: u32,
    depth: u32,
    by: f32,
    before: f32,
}

/// Rows and columns of a block's tile, and its threads.
const TILE: u32 = 64;
const THREADS: u32 = 256;
/// Blocks of a launch at most along its second and third size.
const MOST: u32 = 65_535;

/// Matrices of a batch, and their rows, columns and the products of a sum.
#[derive(Clone, Debug)]
pub struct Matrices {
    pub batch: Vec<usize>,
    pub rows: usize,
    pub columns: usize,
    pub depth: usize,
}

impl Call {
    /// `c = by · a · b + before · c`. Strides of a, b and c are those of the batch, of rows and of columns; of the limits of rows, columns and
    /// depth those of the batch.
    pub fn product(
        &self,
        of: &Matrices,
        [a, b, c]: [&Operand; 3],
        limits: [&Operand; 3],
        given: [f32; 2],
    ) -> Result<bool> {
        let n = of.batch.len();
        let numbers = [of.rows, of.columns, of.depth].map(|size| u32::try_from(size).ok());
        let ([Some(rows), Some(columns), Some(depth)], true) = (numbers, of.rows * of.columns > 0) else {
            return Ok(false);
        };
        let sizes = |rows: usize, columns: usize| [&of.batch[..], &[rows, columns]].concat();
        let written = sizes(of.rows, of.columns);
        let read = [(a, sizes(of.rows, of.depth)), (b, sizes(of.depth, of.columns))];
        if !read.iter().all(|(read, sizes)| c.is_apart(&written, (read, sizes))) {
            return Ok(false);
        }
        let operands: Vec<Operand> = [a, b, c].into_iter().chain(limits).cloned().collect();
        let space = space(&of.batch, &vec![false; n], &operands);
        let (Some(mut space), Some(module)) = (space, self.module(Part::Products)) else { return Ok(false) };
        for (tensor, operand) in space.tensors.iter_mut().zip(&operands).take(3) {
            tensor.lie(operand.strides[n], operand.strides[n + 1]);
        }
        let blocks = [columns.div_ceil(TILE), rows.div_ceil(TILE), space.outer.count.min(MOST)];
        if blocks[1] > MOST || blocks[2] == 0 {
            return Ok(blocks[2] == 0);
        }
        let mut product = Product {
            tensors: core::array::from_fn(|at| space.tensors[at]),
            batch: space.outer,
            rows,
            columns,
            depth,
            by: given[0],
            before: given[1],
        };
        // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { self.launch(module, c"product", blocks, THREADS, &mut product) }?;
        Ok(true)
    }
}
