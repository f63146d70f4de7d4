//! What is made of many elements: api/kernels/rows.cu.

use core::ffi::CStr;

use cudnn_cpu::Kind;
use cudnn_cpu::reduction::Reduction;
use kit::kernels::Module;

use super::tensor::{Operand, Sizes, Space, Tensor, packed, space};
use super::{BLOCKS, Call, Part};
use crate::Result;

const TENSORS: usize = 12;
const THREADS: u32 = 256;

/// `Rows` of rows.cuh.
#[repr(C)]
struct Rows {
    tensors: [Tensor; TENSORS],
    outer: Sizes,
    inner: Sizes,
    numbers: [f64; 4],
    code: u32,
    by: f32,
    before: f32,
}

/// A kernel's settings: its code and numbers; factors of the result and of what lay there before.
#[derive(Clone, Copy, Debug)]
pub struct How {
    pub code: u32,
    pub numbers: [f64; 4],
    pub given: [f32; 2],
}

impl How {
    pub fn new(code: u32) -> How {
        How { code, numbers: [0.0; 4], given: [1.0, 0.0] }
    }
}

/// Sizes that a launch goes over, and which of them one result is of.
#[derive(Clone, Copy)]
pub struct Over<'s> {
    pub sizes: &'s [usize],
    pub is_inner: &'s [bool],
}

/// Elements of one result from which on several blocks make it together, if there are few results.
const LONG: u32 = 1 << 14;
/// Results from which on the device is busy with one block each.
const MANY: u32 = 256;

impl Call {
    /// Runs a kernel for each result: whether it can do it.
    pub fn rows(&self, name: &'static CStr, how: How, over: Over, operands: &[Operand]) -> Result<bool> {
        match (space(over.sizes, over.is_inner, operands), self.module(Part::Rows)) {
            (Some(space), Some(module)) => self.run_rows((module, name), how, &space),
            _ => Ok(false),
        }
    }

    /// Runs a kernel that takes `Rows`.
    pub(super) fn run_rows(
        &self,
        (module, name): (&Module, &'static CStr),
        how: How,
        space: &Space,
    ) -> Result<bool> {
        if space.outer.count == 0 {
            return Ok(true);
        }
        let mut rows = Rows {
            tensors: core::array::from_fn(|at| space.tensors.get(at).copied().unwrap_or(Tensor::NONE)),
            outer: space.outer,
            inner: space.inner,
            numbers: how.numbers,
            code: how.code,
            by: how.given[0],
            before: how.given[1],
        };
        let blocks = [space.outer.count.min(BLOCKS), 1, 1];
        // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { self.launch(module, name, blocks, THREADS, &mut rows) }?;
        Ok(true)
    }

    /// The sums of x and of its squares along the inner sizes.
    pub fn sums(&self, over: Over, x: &Operand, to: [&Operand; 2]) -> Result<bool> {
        if !to.iter().all(|to| to.is_apart(over.sizes, (x, over.sizes))) {
            return Ok(false);
        }
        let numbers = [1.0, 0.0, 0.0, 0.0];
        for (square, to) in to.into_iter().enumerate() {
            let how = How { numbers, ..How::new(if square == 1 { SQUARES } else { 0 }) };
            if !self.rows(c"reduce", how, over, &[x.clone(), to.clone()])? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Reduces x to y along the inner sizes.
    pub fn reduce(
        &self,
        of: Reduction,
        keeps_nan: bool,
        given: [f32; 2],
        over: Over,
        [x, y]: [&Operand; 2],
    ) -> Result<bool> {
        if !y.is_apart(over.sizes, (x, over.sizes)) {
            return Ok(false);
        }
        let Some(space) = space(over.sizes, over.is_inner, &[x.clone(), y.clone()]) else { return Ok(false) };
        let (take, fold, give) = parts(of);
        let numbers = [f64::from(u8::from(keeps_nan)), f64::from(space.inner.count), 0.0, 0.0];
        let is_split = space.inner.count > LONG && space.outer.count < MANY;
        if let Some((axis, count)) = is_split.then(|| split(over, x)).flatten() {
            return self.reduce_in_parts(of, (numbers, given), over, [x, y], (axis, count));
        }
        let how = How { code: take | fold << 4 | give << 8, numbers, given };
        match self.module(Part::Rows) {
            Some(module) => self.run_rows((module, c"reduce"), how, &space),
            None => Ok(false),
        }
    }

    /// Along one of the inner sizes, parts of it first, each to a number in `double`.
    fn reduce_in_parts(
        &self,
        of: Reduction,
        (numbers, given): ([f64; 4], [f32; 2]),
        over: Over,
        [x, y]: [&Operand; 2],
        (axis, count): (usize, usize),
    ) -> Result<bool> {
        // The size is two: parts, and what is in each.
        let (mut sizes, mut is_inner) = (over.sizes.to_vec(), over.is_inner.to_vec());
        sizes[axis] /= count;
        sizes.insert(axis, count);
        is_inner.insert(axis, false);
        let two = |of: &Operand| {
            let mut of = of.clone();
            of.strides.insert(axis, of.strides[axis] * sizes[axis + 1] as i64);
            of
        };
        let (strides, n_parts) = packed(&sizes, &is_inner);
        let room = self.room(8 * n_parts)?;
        let Some(parts_at) = Operand::memory(room.at().cast(), Kind::F64, strides) else { return Ok(false) };
        let (take, fold, give) = parts(of);
        let first = How { code: take | fold << 4, numbers, given: [1.0, 0.0] };
        let over_parts = Over { sizes: &sizes, is_inner: &is_inner };
        if !self.rows(c"reduce", first, over_parts, &[two(x), parts_at.clone()])? {
            return Ok(false);
        }
        // Then the parts; what else was inner is done.
        let left: Vec<usize> =
            sizes.iter().zip(&is_inner).map(|(size, inner)| if *inner { 1 } else { *size }).collect();
        let is_inner: Vec<bool> = (0..sizes.len()).map(|at| at == axis).collect();
        let second = How { code: fold << 4 | give << 8, numbers, given };
        let over_left = Over { sizes: &left, is_inner: &is_inner };
        self.rows(c"reduce", second, over_left, &[parts_at, two(y)])
    }
}

/// The longest inner size and in how many parts it goes.
fn split(over: Over, x: &Operand) -> Option<(usize, usize)> {
    let inner = (0..over.sizes.len()).filter(|&at| over.is_inner[at] && at < x.strides.len());
    let axis = inner.max_by_key(|&at| over.sizes[at])?;
    let count = (2..=MANY as usize).rev().find(|count| over.sizes[axis].is_multiple_of(*count))?;
    Some((axis, count))
}

/// Squares are added.
const SQUARES: u32 = 2;

/// How elements are taken, put together and given, by rows.cu's numbers.
fn parts(of: Reduction) -> (u32, u32, u32) {
    match of {
        Reduction::Add => (0, 0, 0),
        Reduction::Mul => (0, 1, 0),
        Reduction::Min => (0, 2, 0),
        Reduction::Max => (0, 3, 0),
        Reduction::Amax => (1, 3, 0),
        Reduction::Mean => (0, 0, 2),
        Reduction::Norm1 => (1, 0, 0),
        Reduction::Norm2 => (2, 0, 1),
        Reduction::MulNoZeros => (0, 4, 0),
    }
}
