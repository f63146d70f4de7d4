//! Operations that give elements other places: transposes, and keys and values that are gathered from pages.

use super::descriptor::Descriptor;
use super::kernels::Run;
use super::plan::{Layer, Operation, Tensor, Tensors, Work};
use crate::error::require;
use crate::kernels::elements::How;
use crate::kernels::moves;
use crate::types::*;
use crate::{Error, Result};

type Name = cudnnBackendAttributeName_t;

/// The size of x that each size of y is.
struct Transpose(Vec<usize>);

pub fn transpose(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let x = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_TRANSPOSE_XDESC)?;
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_TRANSPOSE_YDESC)?;
    let order = of.integers(Name::CUDNN_ATTR_OPERATION_TRANSPOSE_PERMUTATION)?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    let is_order = sorted.iter().copied().eq(0..x.sizes.len() as i64);
    require(is_order, "a transpose's order has not each size once")?;
    let order: Vec<usize> = order.into_iter().map(|at| at as usize).collect();
    let fits = y.sizes.iter().copied().eq(order.iter().map(|&at| x.sizes[at]));
    require(fits, "the result's sizes are others")?;
    Ok(Operation { work: Work::Layer(Box::new(Transpose(order))), takes: vec![x.uid], gives: vec![y.uid] })
}

/// The distance in an array without gaps to the next along each size.
fn distances(sizes: &[usize]) -> Vec<usize> {
    let mut distances = vec![1; sizes.len()];
    for at in (1..sizes.len()).rev() {
        distances[at - 1] = distances[at] * sizes[at];
    }
    distances
}

impl Layer for Transpose {
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let (tensor, x) = taken[0];
        let (from, to) = (distances(&tensor.sizes), distances(&gives[0].sizes));
        let place = |number: usize| {
            let places = self.0.iter().enumerate();
            places.map(|(at, &size)| number / to[at] % gives[0].sizes[at] * from[size]).sum::<usize>()
        };
        vec![(0..x.len()).map(|number| x[place(number)]).collect()]
    }

    fn only_moves(&self) -> bool {
        true
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        let along = &run.tensor(of.takes[0]).strides;
        let strides = self.0.iter().map(|&at| along[at] as i64).collect();
        let from = run.strided(of.takes[0], strides).map(|from| vec![from]);
        run.elements(How::copy(), of.gives[0], from)
    }
}

/// Whether rows and columns of each page are exchanged, as keys have them.
struct Pages {
    is_turned: bool,
}

pub fn pages(of: &Descriptor, tensors: &mut Tensors) -> Result<Operation> {
    let y = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_YDESC)?;
    let container = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_CONTAINER_DESC)?;
    let table = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_PAGE_TABLE_DESC)?;
    let lengths = tensors.needed(of, Name::CUDNN_ATTR_OPERATION_PAGED_CACHE_LOAD_SEQUENCE_DESC)?;
    let four = |it: &Tensor| <[usize; 4]>::try_from(&it.sizes[..]).ok();
    let (Some(y_sizes), Some([_, heads, size, depth]), Some([batch, one, count, last])) =
        (four(&y), four(&container), four(&table))
    else {
        return Err(Error::BadParam("a tensor of pages has not four sizes"));
    };
    // Keys are given as the columns that a product takes: sizes tell, or strides where both would fit.
    let is_within = |rows: usize| rows <= count * size;
    let is_turned =
        match (y_sizes[3] == depth && is_within(y_sizes[2]), y_sizes[2] == depth && is_within(y_sizes[3])) {
            (true, true) => y.strides[2] == 1 && y_sizes[2] != 1,
            (_, is_turned) => is_turned,
        };
    let (rows, columns) = if is_turned { (y_sizes[3], y_sizes[2]) } else { (y_sizes[2], y_sizes[3]) };
    let fits = (y_sizes[0], y_sizes[1], columns) == (batch, heads, depth) && (one, last) == (1, 1);
    require(fits && is_within(rows), "pages, their table and the result do not fit each other")?;
    require(lengths.sizes.iter().product::<usize>() == batch, "there is not a length for each sequence")?;
    let takes = [&container, &table, &lengths].map(|it| it.uid).to_vec();
    Ok(Operation { work: Work::Layer(Box::new(Pages { is_turned })), takes, gives: vec![y.uid] })
}

impl Layer for Pages {
    fn counts(&self) -> Vec<usize> {
        vec![1, 2]
    }

    /// What is behind a sequence's end is 0, and so is a page that there is not.
    fn run(&self, gives: &[&Tensor], taken: &[(&Tensor, &[f64])]) -> Vec<Vec<f64>> {
        let [(container, values), (table, pages), (_, lengths)] = [taken[0], taken[1], taken[2]];
        let [count, heads, size, depth] = [0, 1, 2, 3].map(|at: usize| container.sizes[at]);
        let to = &gives[0].sizes;
        let rows = if self.is_turned { to[3] } else { to[2] };
        let mut y = vec![0.0; to.iter().product()];
        for (number, y) in y.chunks_exact_mut(rows * depth).enumerate() {
            let (batch, head) = (number / heads, number % heads);
            for row in 0..rows.min(lengths[batch].max(0.0) as usize) {
                let page = pages[batch * table.sizes[2] + row / size];
                if page < 0.0 || page as usize >= count {
                    continue;
                }
                let from = &values[((page as usize * heads + head) * size + row % size) * depth..][..depth];
                for (column, value) in from.iter().enumerate() {
                    y[if self.is_turned { column * rows + row } else { row * depth + column }] = *value;
                }
            }
        }
        vec![y]
    }

    fn has_kernels(&self) -> bool {
        true
    }

    fn run_on_kernels(&self, run: &Run, of: &Operation) -> Result<bool> {
        if !run.is_apart(of) {
            return Ok(false);
        }
        let [pages, table, lengths] = [0, 1, 2].map(|at: usize| run.tensor(of.takes[at]));
        let stride = |of: &Tensor, at: usize| of.strides[at] as i64;
        let along_columns = [0, stride(pages, 1), 0, stride(pages, 3)];
        let (axis, along_pages) = match self.is_turned {
            false => (2, along_columns.to_vec()),
            true => (3, [0, 1, 3, 2].map(|at: usize| along_columns[at]).to_vec()),
        };
        let operands = [
            run.own(of.gives[0]),
            run.strided(pages.uid, along_pages),
            run.strided(table.uid, vec![stride(table, 0), 0, 0, 0]),
            run.of_sequences(lengths.uid, 4),
        ];
        let [Some(to), Some(from), Some(table_at), Some(lengths)] = operands else { return Ok(false) };
        let how = moves::Pages {
            count: pages.sizes[0],
            rows: pages.sizes[2],
            page: stride(pages, 0),
            row: stride(pages, 2),
            table: stride(table, 2),
        };
        run.call.gather(how, (run.sizes(of.gives[0]), axis), [&to, &from, &table_at, &lengths])
    }
}
