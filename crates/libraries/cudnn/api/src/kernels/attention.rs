//! What attention does with scores between its products: api/kernels/attention.cu.

use super::rows::{How, Over};
use super::tensor::{Operand, Space, space};
use super::{Call, Part};
use crate::Result;

/// Scores of some heads: packed, by head, query and key.
pub struct Scores {
    pub heads: usize,
    pub queries: usize,
    pub keys: usize,
    pub at: Operand,
}

impl Scores {
    fn space(&self, operands: &[Operand]) -> Option<Space> {
        let sizes = [self.heads, self.queries, self.keys];
        // Several sizes of one result are one, and queries are counted in the first's order.
        space(&sizes, &[false, false, true], operands)
    }
}

/// What a way forward gives beside results, and takes: strides are those of heads and queries.
pub struct Beside {
    /// The logarithm of the sum, the largest score and the sum.
    pub given: [Operand; 3],
    /// Scores that have no key.
    pub sink: Operand,
    /// Of queries and keys.
    pub lengths: [Operand; 2],
    /// Of the logarithm.
    pub factor: f64,
}

/// What a way back takes and gives of some heads.
pub struct Slopes {
    /// Gradients of chances, which become those of scores.
    pub at: Operand,
    pub statistics: Operand,
    /// Each query's mean gradient.
    pub means: Operand,
    /// Results and their gradients, with their strides along a row, and how long that is.
    pub results: [(Operand, i64); 2],
    pub width: usize,
    pub lengths: [Operand; 2],
}

impl Call {
    /// Makes chances of scores.
    pub fn attend(&self, scores: &Scores, by: Beside) -> Result<bool> {
        let mut how = How::new(0);
        how.numbers[..2].copy_from_slice(&[by.factor, scores.queries as f64]);
        let [statistics, most, sums] = by.given;
        let [queries, keys] = by.lengths;
        let operands = [scores.at.clone(), statistics, most, sums, by.sink, queries, keys];
        match (scores.space(&operands), self.module(Part::Attention)) {
            (Some(space), Some(module)) => self.run_rows((module, c"attend"), how, &space),
            _ => Ok(false),
        }
    }

    /// Makes chances of scores again, and of their gradients those of scores.
    pub fn attend_backward(&self, scores: &Scores, by: Slopes) -> Result<bool> {
        let mut how = How::new(0);
        how.numbers[..2].copy_from_slice(&[by.width as f64, scores.queries as f64]);
        let [(o, o_step), (d_o, d_o_step)] = by.results;
        let [queries, keys] = by.lengths;
        let operands = [scores.at.clone(), by.at, by.statistics, by.means, o, d_o, queries, keys];
        let (Some(mut space), Some(module)) = (scores.space(&operands), self.module(Part::Attention)) else {
            return Ok(false);
        };
        space.tensors[4].lie(o_step, 0);
        space.tensors[5].lie(d_o_step, 0);
        self.run_rows((module, c"attend_backward"), how, &space)
    }

    /// The gradient of scores without a key; all strides are those of sequences, heads and queries.
    pub fn sink_backward(&self, sizes: &[usize; 3], operands: &[Operand; 4]) -> Result<bool> {
        let over = Over { sizes, is_inner: &[true, false, true] };
        match (space(over.sizes, over.is_inner, operands), self.module(Part::Attention)) {
            (Some(space), Some(module)) => self.run_rows((module, c"sink_backward"), How::new(0), &space),
            _ => Ok(false),
        }
    }
}
