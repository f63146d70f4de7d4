//! What has to know where an element is: api/kernels/moves.cu.

use core::ffi::CStr;

use super::tensor::{Operand, Sizes, Tensor, space};
use super::{Call, Part};
use crate::Result;

const MOVED: usize = 6;
const THREADS: u32 = 256;

/// `Moves` of moves.cu.
#[repr(C)]
struct Moves {
    tensors: [Tensor; MOVED],
    sizes: Sizes,
    whole: [i64; 4],
    numbers: [f64; 4],
}

/// Random numbers: a seed, an offset, and how they are spread.
pub struct Random {
    /// Numbers that the host has, or memory.
    pub seed: Whole,
    pub offset: Whole,
    pub spread: Spread,
    /// What each is multiplied by.
    pub factor: f64,
}

pub enum Whole {
    Number(i64),
    Memory(Operand),
}

#[derive(Clone, Copy)]
pub enum Spread {
    /// 1 so often, else 0.
    Bernoulli(f64),
    Uniform(f64, f64),
}

/// A turn of the last elements of rows, so many of each, whose angles lie so far from each other.
#[derive(Clone, Copy)]
pub struct Turn {
    pub turned: usize,
    pub factor: f64,
    /// 1, or -1 on the way back.
    pub direction: f64,
    pub along: i64,
}

/// So many pages of so many rows, each so far from the next, and how far pages are from each other in their table.
#[derive(Clone, Copy)]
pub struct Pages {
    pub count: usize,
    pub rows: usize,
    pub page: i64,
    pub row: i64,
    pub table: i64,
}

/// What a launch is told beside its tensors: numbers, and strides of some tensors' own.
#[derive(Default)]
struct Told {
    whole: [i64; 4],
    numbers: [f64; 4],
    inner: Vec<(usize, [i64; 2])>,
}

impl Call {
    /// Random numbers, of the elements from `first` on, by what is there if there is something; whether the kernel can do it.
    pub fn draw(
        &self,
        how: &Random,
        (sizes, first): (&[usize], usize),
        to: &Operand,
        by: &Operand,
    ) -> Result<bool> {
        let (seed, seed_at) = how.seed.parts();
        let (offset, offset_at) = how.offset.parts();
        let (a, b, is_range) = match how.spread {
            Spread::Bernoulli(chance) => (chance, 0.0, 0),
            Spread::Uniform(least, most) => (least, most, 1),
        };
        let operands = [to.clone(), by.clone(), Operand::element(sizes), seed_at, offset_at];
        let told = Told {
            whole: [first as i64, seed, offset, is_range],
            numbers: [a, b, how.factor, 0.0],
            inner: Vec::new(),
        };
        let fits = to.is_apart_or_in_place(by, sizes);
        Ok(fits && self.moved(c"draw", told, sizes, &operands)?)
    }

    /// Turns x, whose rows are its last size, by angles that have a stride along positions.
    pub fn rotate(&self, how: Turn, sizes: &[usize], [to, x, angles]: [&Operand; 3]) -> Result<bool> {
        let axis = sizes.len() - 1;
        let place = Operand::place(0, axis, sizes.len());
        let told = Told {
            whole: [sizes[axis] as i64, how.turned as i64, 0, 0],
            numbers: [how.factor, how.direction, 0.0, 0.0],
            inner: vec![(1, [x.strides[axis], 0]), (2, [how.along, 0])],
        };
        let fits = [x, angles].iter().all(|from| to.is_apart(sizes, (from, sizes)));
        Ok(fits && self.moved(c"rotate", told, sizes, &[to.clone(), x.clone(), angles.clone(), place])?)
    }

    /// Gathers rows, the places along `axis`, from pages: what is given, the pages, their table and the lengths of sequences.
    pub fn gather(
        &self,
        how: Pages,
        (sizes, axis): (&[usize], usize),
        [to, pages, table, lengths]: [&Operand; 4],
    ) -> Result<bool> {
        let row = Operand::place(0, axis, sizes.len());
        let told = Told {
            whole: [how.count as i64, how.rows as i64, 0, 0],
            numbers: [0.0; 4],
            inner: vec![(1, [how.page, how.row]), (2, [how.table, 0])],
        };
        let operands = [to, pages, table, lengths].map(Clone::clone);
        self.moved(c"gather", told, sizes, &[&operands[..], &[row]].concat())
    }

    fn moved(&self, name: &'static CStr, told: Told, sizes: &[usize], operands: &[Operand]) -> Result<bool> {
        let space = space(sizes, &vec![false; sizes.len()], operands);
        let (Some(space), Some(module)) = (space, self.module(Part::Moves)) else { return Ok(false) };
        let mut moves = Moves {
            tensors: core::array::from_fn(|at| space.tensors.get(at).copied().unwrap_or(Tensor::NONE)),
            sizes: space.outer,
            whole: told.whole,
            numbers: told.numbers,
        };
        for (at, [rows, columns]) in told.inner {
            moves.tensors[at].lie(rows, columns);
        }
        if space.outer.count > 0 {
            let blocks = [super::blocks(space.outer.count, THREADS), 1, 1];
            // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
            unsafe { self.launch(module, name, blocks, THREADS, &mut moves) }?;
        }
        Ok(true)
    }
}

impl Whole {
    fn parts(&self) -> (i64, Operand) {
        match self {
            Whole::Number(number) => (*number, Operand::none()),
            Whole::Memory(at) => (0, at.clone()),
        }
    }
}
