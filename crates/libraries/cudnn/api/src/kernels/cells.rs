//! What is between the products of recurrent networks: api/kernels/cells.cu.

use core::ffi::CStr;

use cudnn_cpu::Kind;
use cudnn_cpu::recurrent::{Cell, Clip};
use kit::Address;

use super::product::Matrices;
use super::tensor::{Operand, Tensor, space};
use super::{Call, Part};
use crate::hip::objects::Room;
use crate::{Error, Result};

const TENSORS: usize = 8;
const THREADS: u32 = 256;

/// `Cells` of cells.cu.
#[repr(C)]
struct Cells {
    tensors: [Tensor; TENSORS],
    rows: u32,
    width: u32,
    cell: u32,
    count: u32,
    whole: [u64; 5],
    numbers: [f64; 2],
    keeps_nan: u32,
}

/// What a launch is told beside its tensors.
#[derive(Clone, Copy, Default)]
pub struct Told {
    pub cell: u32,
    pub count: usize,
    pub whole: [u64; 5],
    pub numbers: [f64; 2],
    pub keeps_nan: bool,
}

impl Told {
    /// A cell with its bounds, if there are some.
    pub fn cell(cell: Cell, clip: Option<Clip>) -> Told {
        let told = Told { cell: cell as u32, ..Told::default() };
        clip.map_or(told, |clip| Told {
            whole: [1, 0, 0, 0, 0],
            numbers: [clip.low, clip.high],
            keeps_nan: clip.keeps_nan,
            ..told
        })
    }
}

/// Rows of numbers in the device's memory, so many numbers from each other.
#[derive(Clone, Copy)]
pub struct Block {
    at: Address<*mut u8>,
    kind: Kind,
    pitch: usize,
}

impl Block {
    pub fn new(at: *mut u8, kind: Kind, pitch: usize) -> Block {
        Block { at: Address(at), kind, pitch }
    }

    /// What begins so many numbers further on.
    #[must_use]
    pub fn behind(self, count: usize) -> Block {
        let at = self.at.get().wrapping_add(count * self.kind.bytes());
        Block { at: Address(at), ..self }
    }

    #[must_use]
    pub fn row(self, row: usize) -> Block {
        self.behind(row * self.pitch)
    }

    #[must_use]
    pub fn with_pitch(self, pitch: usize) -> Block {
        Block { pitch, ..self }
    }

    pub fn operand(self, strides: [usize; 2]) -> Result<Operand> {
        let strides = strides.map(|stride| stride as i64).to_vec();
        Operand::memory(self.at.get(), self.kind, strides).ok_or(UNKNOWN)
    }

    pub fn rows(self) -> Result<Operand> {
        self.matrix(false)
    }

    /// Its rows and columns, or those of what it is turned round.
    fn matrix(self, is_turned: bool) -> Result<Operand> {
        self.operand(if is_turned { [1, self.pitch] } else { [self.pitch, 1] })
    }

    fn tensor(self) -> Result<Tensor> {
        let operand = self.operand([self.pitch, 1])?;
        let space = space(&[], &[], &[operand]).ok_or(UNKNOWN)?;
        let mut tensor = space.tensors[0];
        tensor.go_along(&[self.pitch as i64]);
        Ok(tensor)
    }
}

/// Who begins a network has looked at its types and sizes.
const UNKNOWN: Error = Error::NotSupported("a network of these sizes by kernels");

pub fn done(is_done: bool) -> Result {
    if is_done { Ok(()) } else { Err(UNKNOWN) }
}

/// `Table` of cells.cu.
#[repr(C)]
struct Table {
    at: u64,
    count: u32,
    unused: u32,
    numbers: [u32; TABLED],
}

const TABLED: usize = 960;

impl Call {
    /// Whether kernels of networks are there, for so many numbers at most.
    pub fn has_networks(&self, most: usize) -> bool {
        let parts = [Part::Cells, Part::Products, Part::Elements, Part::Rows];
        most < 1 << 31 && parts.into_iter().all(|part| self.module(part).is_some())
    }

    /// Runs a kernel over so many rows and columns.
    pub fn cells(
        &self,
        name: &'static CStr,
        [rows, width]: [usize; 2],
        tensors: &[Option<Block>],
        told: Told,
    ) -> Result {
        let mut all = [Tensor::NONE; TENSORS];
        for (to, block) in all.iter_mut().zip(tensors) {
            if let Some(block) = block {
                *to = block.tensor()?;
            }
        }
        let mut cells = Cells {
            tensors: all,
            rows: rows as u32,
            width: width as u32,
            cell: told.cell,
            count: told.count as u32,
            whole: told.whole,
            numbers: told.numbers,
            keeps_nan: told.keeps_nan.into(),
        };
        let count = (rows * width) as u32;
        let Some(module) = self.module(Part::Cells).filter(|_| count > 0) else { return Ok(()) };
        // SAFETY: the kernel's structure; cuDNN's contract: the tensors are there until the stream has come here.
        unsafe { self.launch(module, name, [super::blocks(count, THREADS), 1, 1], THREADS, &mut cells) }
    }

    /// Floats in memory of the device's, which has to be there until the launches that read it are enqueued.
    pub fn block(&self, rows: usize, pitch: usize) -> Result<(Room, Block)> {
        let room = self.room(4 * (rows * pitch).max(1))?;
        let block = Block::new(room.at().cast(), Kind::F32, pitch);
        Ok((room, block))
    }

    /// Numbers that a kernel looks up.
    pub fn table(&self, numbers: &[u32]) -> Result<(Room, Block)> {
        let (room, block) = self.block(numbers.len(), 1)?;
        let Some(module) = self.module(Part::Cells) else { return Err(UNKNOWN) };
        for (piece, part) in numbers.chunks(TABLED).enumerate() {
            let at = block.row(piece * TABLED).at.get();
            let mut table = Table {
                at: at.expose_provenance() as u64,
                count: part.len() as u32,
                unused: 0,
                numbers: core::array::from_fn(|at| part.get(at).copied().unwrap_or(0)),
            };
            // SAFETY: the kernel's structure, and room for so many.
            unsafe { self.launch(module, c"table", [1, 1, 1], THREADS, &mut table) }?;
        }
        Ok((room, block))
    }

    /// `c = op(a) · op(b) + before · c`, where c has m rows and n columns and the sums have k terms.
    pub fn multiply(
        &self,
        [m, n, k]: [usize; 3],
        (a, a_is_turned): (Block, bool),
        (b, b_is_turned): (Block, bool),
        (c, before): (Block, f32),
    ) -> Result {
        if m * n == 0 {
            return Ok(());
        }
        let (a, b, c) = (a.matrix(a_is_turned)?, b.matrix(b_is_turned)?, c.matrix(false)?);
        let none = Operand::none();
        let of = Matrices { batch: Vec::new(), rows: m, columns: n, depth: k };
        done(self.product(&of, [&a, &b, &c], [&none, &none, &none], [1.0, before])?)
    }
}
