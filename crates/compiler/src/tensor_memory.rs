//! What `tcgen05` asks the host side for ([`crate::ir::Syscall::TensorMemory`]): the first word says what is to be done and
//! how, eight more are its operands.
//!
//! | operation | words |
//! |---|---|
//! | [`ALLOC`], [`DEALLOC`] | number of columns; address |
//! | [`RELINQUISH`] | |
//! | [`MMA`] | address of D, instruction descriptor; A's address or descriptor; B's descriptor; address of the metadata, 1 where D is added; then 32-bit words: lanes that D is not written to, or the addresses of A's and B's scales, or of [`WS`] the zero-column mask |
//! | [`COPY`] | address; descriptor |
//! | [`SHIFT`] | address |
//!
//! The answer is 0 or, of [`ALLOC`], the address; [`NOT_YET`] where a warp has to ask again; anything else below zero is an
//! instruction that the manual does not have.

/// Bits 0 to 7 of the first word.
pub const ALLOC: u64 = 0;
pub const DEALLOC: u64 = 1;
pub const RELINQUISH: u64 = 2;
pub const MMA: u64 = 3;
pub const COPY: u64 = 4;
pub const SHIFT: u64 = 5;

/// `.cta_group::2`
pub const PAIR: u64 = 1 << 8;
/// Of [`MMA`]; what it does not say the instruction descriptor does.
pub const A_IN_TENSOR_MEMORY: u64 = 1 << 9;
pub const SPARSE: u64 = 1 << 10;
pub const WS: u64 = 1 << 11;
/// A scale is for 16 elements along k, not for 32.
pub const BLOCK_16: u64 = 1 << 12;
/// A [`Kind`], or of [`COPY`] one of [`SHAPES`], 4 bits; the logarithm of what D is divided by, 4 bits.
pub const KIND_SHIFT: u32 = 16;
pub const SCALE_D_SHIFT: u32 = 20;
/// Of [`COPY`]: bits of an element that becomes a byte, or 0, 4 bits.
pub const FORMAT_SHIFT: u32 = 20;
/// The block's rank in its cluster, 16 bits, and the cluster's number of blocks, 16 bits.
pub const RANK_SHIFT: u32 = 32;
pub const RANKS_SHIFT: u32 = 48;

pub const N_WORDS: usize = 8;

/// Columns are not there yet, or the other block of the pair is not.
pub const NOT_YET: i32 = -1;
/// What the manual does not have.
pub const WRONG: i32 = -2;

/// `.kind::…`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    F16,
    Tf32,
    F8f6f4,
    I8,
    Mxf8f6f4,
    Mxf4,
    Mxf4nvf4,
}

impl Kind {
    pub const ALL: [Kind; 7] =
        [Kind::F16, Kind::Tf32, Kind::F8f6f4, Kind::I8, Kind::Mxf8f6f4, Kind::Mxf4, Kind::Mxf4nvf4];

    /// The kind that a modifier names.
    pub fn of_name(word: &str) -> Option<Kind> {
        Some(match word.strip_prefix("kind::")? {
            "f16" => Kind::F16,
            "tf32" => Kind::Tf32,
            "f8f6f4" => Kind::F8f6f4,
            "i8" => Kind::I8,
            "mxf8f6f4" => Kind::Mxf8f6f4,
            "mxf4" => Kind::Mxf4,
            "mxf4nvf4" => Kind::Mxf4nvf4,
            _ => return None,
        })
    }

    /// A and B have scales.
    pub fn is_scaled(self) -> bool {
        matches!(self, Kind::Mxf8f6f4 | Kind::Mxf4 | Kind::Mxf4nvf4)
    }
}

/// `.shape` and `.multicast` of `tcgen05.cp`.
pub const SHAPES: [(&str, Option<&str>); 6] = [
    ("128x256b", None),
    ("4x256b", None),
    ("128x128b", None),
    ("64x128b", Some("warpx2::02_13")),
    ("64x128b", Some("warpx2::01_23")),
    ("32x128b", Some("warpx4")),
];
