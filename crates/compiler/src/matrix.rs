//! Which lane of a warp holds which element of a matrix in which register.
//!
//! A matrix operand is cut into tiles of 8 rows × 4 columns of registers; lane l holds row l / 4 and register column
//! l mod 4 of every tile. A and B are cut along k (a register's elements follow each other in k), so B's "rows" are its
//! columns; the tiles of one step in k follow each other from top to bottom. C and D have two neighbouring elements per
//! lane and tile. This is the layout that the PTX manual gives for `mma.sync`; `wmma` fragments, whose layout is left
//! to the implementation, have the same. `mma.m8n8k4` of `.f16` has a layout of its own ([`Quads`]).

use crate::ir::{Function, Inst, Op, Round, Ty, Value};

pub const LANES: u32 = 32;

/// Whether warps multiply matrices in it.
pub fn multiplies(function: &Function) -> bool {
    function.blocks.iter().flat_map(|block| &block.insts).any(|inst| inst.op.is_product())
}

/// Registers that a product adds to, and gives as many of; they are laid out in memory one after the other.
pub struct Sum<'i> {
    /// What they are before, one for each of the instruction's results.
    pub before: &'i [Value],
    /// Of all lanes of one of them.
    pub register_bytes: u64,
}

impl<'i> Sum<'i> {
    /// `None` for what is no product, and where D has another type than C.
    pub fn of(inst: &'i Inst) -> Option<Sum<'i>> {
        let (before, mma) = match &inst.op {
            Op::Mma(mma) if mma.c == mma.d => (mma.operands(inst)[2], mma),
            Op::Wgmma(wgmma) => (wgmma.operands(inst).d, &wgmma.mma),
            _ => return None,
        };
        Some(Sum { before, register_bytes: u64::from(mma.register_bytes() * LANES) })
    }
}

/// What the elements of a matrix are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    F16,
    Bf16,
    Tf32,
    E4m3,
    E5m2,
    /// In a byte's lowest six bits, as `E3m2`.
    E2m3,
    E3m2,
    /// In a byte's middle four bits.
    E2m1,
    /// Two in a byte.
    PackedE2m1,
    F32,
    F64,
    S4,
    U4,
    S8,
    U8,
    S32,
    B1,
}

impl Element {
    /// From one to the next in a register.
    pub fn bits(self) -> u32 {
        match self {
            Element::B1 => 1,
            Element::S4 | Element::U4 | Element::PackedE2m1 => 4,
            Element::E4m3 | Element::E5m2 | Element::S8 | Element::U8 => 8,
            Element::E2m3 | Element::E3m2 | Element::E2m1 => 8,
            Element::F16 | Element::Bf16 => 16,
            Element::Tf32 | Element::F32 | Element::S32 => 32,
            Element::F64 => 64,
        }
    }

    /// The register that holds one or several of them.
    pub fn register(self) -> Ty {
        match self {
            Element::F32 => Ty::F32,
            Element::F64 => Ty::F64,
            _ => Ty::B32,
        }
    }

    pub fn per_register(self) -> u32 {
        self.register().bits() / self.bits()
    }

    pub fn is_int(self) -> bool {
        matches!(self, Element::S4 | Element::U4 | Element::S8 | Element::U8 | Element::S32 | Element::B1)
    }
}

/// `mma.m8n8k4` of `.f16`: four products at once; lanes 4q .. 4q+3 and 16+4q .. 16+4q+3 have the q-th.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Quads {
    pub a_by_columns: bool,
    pub b_by_columns: bool,
}

/// How bits are multiplied; the products are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitProduct {
    Xor,
    And,
}

/// `.block_scale`: a word of each lane has bytes that rows of A and columns of B are multiplied by, lowest first, one for each block
/// along k. Row r of A finds its word in lane 4 · (r mod 8) + r / 8, column c of B in lane 4 · c.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Scales {
    pub blocks: u32,
    pub kind: Scale,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Scale {
    /// Powers of two.
    Ue8m0,
    Ue4m3,
}

/// D = A × B + C of a whole warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mma {
    pub m: u32,
    pub n: u32,
    pub k: u32,
    pub a: Element,
    pub b: Element,
    pub c: Element,
    pub d: Element,
    pub quads: Option<Quads>,
    /// A has half of its elements; the lanes that the selector says tell which.
    pub selector: Option<u32>,
    pub scales: Option<Scales>,
    /// `.satfinite`
    pub saturates: bool,
    /// f64 only.
    pub round: Round,
    pub bit_product: BitProduct,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Part {
    A,
    B,
    C,
    D,
}

/// Row and column in the matrix; for B the row counts along n and the column along k.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// Which of the four products; 0 where there is one.
    pub product: u32,
    pub row: u32,
    pub column: u32,
}

/// Where a sparse matrix's element says which column it stands in: column = base + scale × (bits of the lane's word).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metadata {
    pub lane: u32,
    pub shift: u32,
    pub mask: u32,
    pub base: u32,
    pub scale: u32,
}

impl Mma {
    /// The plain product of a shape m × n × k, with elements of A, of B, and of C and D.
    pub fn plain([m, n, k]: [u32; 3], [a, b, c]: [Element; 3]) -> Mma {
        Mma {
            m,
            n,
            k,
            a,
            b,
            c,
            d: c,
            quads: None,
            selector: None,
            scales: None,
            saturates: false,
            round: Round::Nearest,
            bit_product: BitProduct::Xor,
        }
    }

    pub fn element(&self, part: Part) -> Element {
        match part {
            Part::A => self.a,
            Part::B => self.b,
            Part::C => self.c,
            Part::D => self.d,
        }
    }

    /// Rows and columns as held.
    pub fn size(&self, part: Part) -> (u32, u32) {
        match part {
            Part::A if self.selector.is_some() => (self.m, self.k / 2),
            Part::A => (self.m, self.k),
            Part::B => (self.n, self.k),
            Part::C | Part::D => (self.m, self.n),
        }
    }

    pub fn products(&self) -> u32 {
        if self.quads.is_some() { 4 } else { 1 }
    }

    /// Registers per lane.
    pub fn registers(&self, part: Part) -> u32 {
        let (rows, columns) = self.size(part);
        self.products() * rows * columns / (LANES * self.element(part).per_register())
    }

    /// What a lane brings: A, B, C, the metadata of a sparse A, the scales of A and of B, and the warp's member mask.
    pub fn arguments(&self) -> Vec<Ty> {
        let mut types = self.lane_words();
        types.push(Ty::B32);
        types
    }

    /// The registers of A, B and C among a product's arguments.
    pub fn operands<'i>(&self, inst: &'i Inst) -> [&'i [Value]; 3] {
        let (a, rest) = inst.args.split_at(self.registers(Part::A) as usize);
        let (b, rest) = rest.split_at(self.registers(Part::B) as usize);
        [a, b, &rest[..self.registers(Part::C) as usize]]
    }

    /// The arguments without the member mask.
    pub fn lane_words(&self) -> Vec<Ty> {
        let mut types = vec![];
        for part in [Part::A, Part::B, Part::C] {
            types.extend((0..self.registers(part)).map(|_| self.element(part).register()));
        }
        types.extend(self.selector.map(|_| Ty::B32));
        types.extend(self.scales.iter().flat_map(|_| [Ty::B32; 2]));
        types
    }

    pub fn results(&self) -> Vec<Ty> {
        vec![self.d.register(); self.registers(Part::D) as usize]
    }

    /// The bits that change the signs of the numbers in a register of A.
    pub fn signs(&self) -> u32 {
        match self.a.bits() {
            8 => 0x8080_8080,
            16 => 0x8000_8000,
            _ => 0x8000_0000,
        }
    }

    /// Bytes of each register, all of one size.
    pub fn register_bytes(&self) -> u32 {
        self.d.register().bits() / 8
    }

    /// Where the `nth` element of a lane's register belongs.
    pub fn position(&self, part: Part, lane: u32, register: u32, nth: u32) -> Position {
        if let Some(quads) = self.quads {
            return self.quad_position(quads, part, lane, register, nth);
        }
        let tiles_down = self.size(part).0 / 8;
        let per = self.element(part).per_register();
        let (tile, within) = match part {
            Part::A | Part::B => (register, (lane % 4) * per + nth),
            // Two neighbours, in one register or in two.
            Part::C | Part::D => (register * per / 2, (lane % 4) * 2 + register * per % 2 + nth),
        };
        let tile_columns = if matches!(part, Part::A | Part::B) { 4 * per } else { 8 };
        let row = tile % tiles_down * 8 + lane / 4;
        Position { product: 0, row, column: tile / tiles_down * tile_columns + within }
    }

    fn quad_position(&self, quads: Quads, part: Part, lane: u32, register: u32, nth: u32) -> Position {
        let product = lane % 16 / 4;
        let (four, high) = (lane % 4, lane / 16 * 4);
        let i = register * self.element(part).per_register() + nth;
        // A's columns and B's rows are k; where a lane's elements lie along k, it has one row of A or column of B.
        let (row, column) = match part {
            Part::A if quads.a_by_columns => (i + high, four),
            Part::B if !quads.b_by_columns => (i + high, four),
            Part::A | Part::B => (four + high, i),
            _ if self.element(part) == Element::F16 => (four + high, i),
            _ => ((lane & 1) + (i & 2) + high, (i & 4) + (lane & 2) + (i & 1)),
        };
        Position { product, row, column }
    }

    /// Which column of the whole A its `column`-th element of a row is. Elements come in chunks of 2 out of 4 (2:4), of
    /// 1 out of 2 (tf32), or of 2 pairs out of 4 (4-bit elements). Each has two bits (tf32: four, `1110` or `0100`),
    /// lowest column first. A row's bits fill halves or whole words: with 16 bits per lane and row a lane has row g below
    /// and row g + 8 above; with 32 a lane has one row and the next lane the row 8 further down.
    pub fn metadata(&self, row: u32, column: u32) -> Option<Metadata> {
        let selector = self.selector?;
        let (group, lower) = (row % 8, row / 8);
        let (bit, shape) = match self.a {
            Element::Tf32 => {
                (4 * column, Metadata { lane: 0, shift: 1, mask: 1, base: 2 * column, scale: 1 })
            }
            Element::S4 | Element::U4 | Element::PackedE2m1 => {
                let base = column / 4 * 8 + column % 2;
                (column / 2 * 2, Metadata { lane: 0, shift: 0, mask: 3, base, scale: 2 })
            }
            _ => (2 * column, Metadata { lane: 0, shift: 0, mask: 3, base: column / 2 * 4, scale: 1 }),
        };
        let (thread, shift) = match (self.a.bits() <= 8, self.metadata_lanes()) {
            // Half a word per row and lane.
            (false, lanes) => (selector * lanes + bit / 16, lower * 16 + bit % 16),
            // A word per row and lane.
            (true, lanes) => (selector * lanes + bit / 32 * 2 + lower, bit % 32),
        };
        Some(Metadata { lane: group * 4 + thread, shift: shape.shift + shift, ..shape })
    }

    /// The lane whose word has the scales of a row of A, or of a column of B.
    pub fn scale_lane(part: Part, row: u32) -> u32 {
        if part == Part::A { row % 8 * 4 + row / 8 } else { 4 * row }
    }

    /// Lanes of four that have the metadata: the bits of all 16 rows, in words, of the 8 groups.
    pub fn metadata_lanes(&self) -> u32 {
        let bits = match self.a {
            Element::Tf32 => 4 * self.k / 2,
            Element::S4 | Element::U4 | Element::PackedE2m1 => self.k / 2,
            _ => self.k,
        };
        (bits * self.m / (8 * 32)).max(1)
    }
}

/// `ldmatrix` and `stmatrix` of 16-bit elements: matrices of 8 × 8, of which lane l has the elements (l / 4, 2 · (l mod 4)) and the
/// one right of it in a register, or if they are transposed those below each other of the one in memory. Row r of the n-th
/// matrix begins `offset` behind what lane 8 · n + r gives. Arguments: an offset in the shared window (`B64`), the registers
/// that are stored, the member mask. Results: the registers that are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixRows {
    pub count: u8,
    pub is_transposed: bool,
    pub stores: bool,
    pub offset: i64,
}

impl MatrixRows {
    pub fn arguments(&self) -> Vec<Ty> {
        let registers = if self.stores { self.count } else { 0 };
        std::iter::once(Ty::B64).chain((0..=registers).map(|_| Ty::B32)).collect()
    }

    pub fn results(&self) -> Vec<Ty> {
        vec![Ty::B32; if self.stores { 0 } else { self.count.into() }]
    }
}

/// A warp's 16 rows of D = A × B + D, with B, and perhaps A, in shared memory as descriptors say: what `wgmma` has each of four warps
/// do. Arguments: A's registers or its descriptor, B's descriptor, the metadata of a sparse A, where the block's own memory begins in the
/// shared window (`B32`), the warp's number among the four (`B32`), whether D counts before or is taken for zero (`Pred`), D's registers,
/// the member mask. All but registers are the same in all lanes. Results: D's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wgmma {
    /// The product of the rows by eight columns.
    pub mma: Mma,
    /// Columns of D.
    pub columns: u32,
    /// How A lies in shared memory; `None` where it is in registers.
    pub a: Option<InMemory>,
    /// B's neighbours in memory are neighbours along n, not along k.
    pub b_is_transposed: bool,
}

/// How A lies in shared memory besides what its descriptor says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct InMemory {
    /// Neighbours in memory are neighbours along m, not along k.
    pub is_transposed: bool,
    /// Its numbers have their signs changed.
    pub is_negative: bool,
}

/// What is where in the arguments of a [`Wgmma`].
pub struct WgmmaArguments<'i> {
    /// A's registers, or its descriptor.
    pub a: &'i [Value],
    pub b: Value,
    pub metadata: Option<Value>,
    pub window: Value,
    pub warp: Value,
    pub keeps: Value,
    pub d: &'i [Value],
    a_is_in_memory: bool,
}

impl<'i> WgmmaArguments<'i> {
    /// Those of A that are in registers.
    pub fn registers(&self) -> &'i [Value] {
        if self.a_is_in_memory { &[] } else { self.a }
    }
}

impl Wgmma {
    /// Registers of D: four, or two of halves, for each eight columns.
    pub fn results(&self) -> Vec<Ty> {
        vec![self.mma.d.register(); (self.columns / 8 * self.mma.registers(Part::D)) as usize]
    }

    pub fn arguments(&self) -> Vec<Ty> {
        let mut types = match self.a {
            Some(_) => vec![Ty::B64],
            None => vec![self.mma.a.register(); self.mma.registers(Part::A) as usize],
        };
        types.push(Ty::B64);
        types.extend(self.mma.selector.map(|_| Ty::B32));
        types.extend([Ty::B32, Ty::B32, Ty::Pred]);
        types.extend(self.results());
        types.push(Ty::B32);
        types
    }

    pub fn operands<'i>(&self, inst: &'i Inst) -> WgmmaArguments<'i> {
        let count = if self.a.is_some() { 1 } else { self.mma.registers(Part::A) as usize };
        let (a, rest) = inst.args.split_at(count);
        let (b, rest) = (rest[0], &rest[1..]);
        let (metadata, rest) = rest.split_at(usize::from(self.mma.selector.is_some()));
        WgmmaArguments {
            a,
            b,
            metadata: metadata.first().copied(),
            window: rest[0],
            warp: rest[1],
            keeps: rest[2],
            d: &rest[3..rest.len() - 1],
            a_is_in_memory: self.a.is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mma(shape: [u32; 3], a: Element, c: Element) -> Mma {
        Mma::plain(shape, [a, a, c])
    }

    fn covers(mma: &Mma) {
        for part in [Part::A, Part::B, Part::C, Part::D] {
            let (rows, columns) = mma.size(part);
            let mut seen = vec![0; (mma.products() * rows * columns) as usize];
            for register in 0..mma.registers(part) {
                for lane in 0..LANES {
                    for nth in 0..mma.element(part).per_register() {
                        let at = mma.position(part, lane, register, nth);
                        seen[((at.product * rows + at.row) * columns + at.column) as usize] += 1;
                    }
                }
            }
            assert!(seen.iter().all(|&n| n == 1), "{part:?} of {mma:?}");
        }
    }

    #[test]
    fn every_element_is_held_once() {
        use Element::*;
        for (shape, a, c) in [
            ([16, 8, 16], F16, F32),
            ([16, 8, 8], Bf16, F32),
            ([16, 8, 4], Tf32, F32),
            ([16, 8, 16], F64, F64),
            ([8, 8, 4], F64, F64),
            ([16, 8, 64], S4, S32),
            ([16, 8, 64], PackedE2m1, F32),
            ([16, 8, 32], E3m2, F32),
            ([16, 8, 256], B1, S32),
            ([16, 16, 16], F16, F16),
            ([32, 8, 16], U8, S32),
            ([8, 32, 16], Bf16, F32),
        ] {
            covers(&mma(shape, a, c));
        }
        for (a_by_columns, b_by_columns) in [(false, false), (false, true), (true, false), (true, true)] {
            for c in [F16, F32] {
                let quads = Some(Quads { a_by_columns, b_by_columns });
                covers(&Mma { quads, ..mma([8, 8, 4], F16, c) });
            }
        }
    }

    #[test]
    fn the_metadata_of_a_sparse_matrix_fills_its_lanes() {
        use Element::*;
        for (k, a, lanes) in [
            (16, F16, 1),
            (32, Bf16, 2),
            (8, Tf32, 1),
            (16, Tf32, 2),
            (32, U8, 2),
            (64, S8, 4),
            (64, S4, 2),
            (128, U4, 4),
            (64, E4m3, 4),
            (64, E2m1, 4),
            (128, PackedE2m1, 4),
        ] {
            let mma = Mma { selector: Some(0), ..mma([16, 8, k], a, F32) };
            assert_eq!(mma.metadata_lanes(), lanes, "{a:?} k{k}");
            let columns = mma.size(Part::A).1;
            let mut words = [0u32; 32];
            for row in 0..16 {
                for column in 0..columns {
                    let at = mma.metadata(row, column).unwrap();
                    assert!(at.lane % 4 < lanes && at.base + at.scale * at.mask < k);
                    words[at.lane as usize] |= at.mask << at.shift;
                }
            }
            let used = if a == Tf32 { 0x2222_2222 } else { u32::MAX };
            for (lane, word) in words.into_iter().enumerate() {
                let expected = if (lane as u32 % 4) < lanes { used } else { 0 };
                assert_eq!(word, expected, "{a:?} k{k} lane {lane}");
            }
        }
    }
}
