//! The rows: one kind of kernel each, and how close to native code it has to be.

use super::programs::Peer;

/// What a row's work is, which says how close to native code it has to be.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Reads and writes every element once, in order.
    Streaming,
    Reduction,
    Histogram,
    /// Computes far more than it reads.
    Compute,
    /// Computes options' prices, for which Intel has vectors of its own.
    Options,
    /// Integer hashes, PoCL's best work.
    Hash,
    /// Samples an image or a volume.
    Texture,
    MatrixVector,
    /// One of CUB's device-wide algorithms.
    Cub,
    Other,
    /// Nothing to do: the way to the device and back.
    Latency,
}

pub struct Row {
    /// The programs' name for it.
    pub name: &'static str,
    /// What it is, for the page.
    pub what: &'static str,
    kind: Kind,
}

/// An empty launch and the wait for it, in microseconds of the clock on the wall.
pub const LATENCY_GOAL_US: f64 = 2.0;

impl Row {
    pub fn is_latency(&self) -> bool {
        self.kind == Kind::Latency
    }

    /// Its time is the cores', not the memory's: more threads make it faster.
    pub fn computes(&self) -> bool {
        matches!(self.kind, Kind::Compute | Kind::Options | Kind::Hash)
    }

    /// How many times native code's time is still good.
    pub fn native_goal(&self) -> f64 {
        match self.kind {
            Kind::Cub => 1.0,
            Kind::Streaming => 1.15,
            Kind::Reduction => 1.25,
            Kind::Histogram => 1.3,
            Kind::MatrixVector => 1.5,
            Kind::Compute | Kind::Options | Kind::Hash | Kind::Texture | Kind::Other | Kind::Latency => 2.0,
        }
    }

    /// The peer that this row's goal names: without its time, the goal is not known to be met.
    pub fn named_peer(&self) -> Option<Peer> {
        match self.kind {
            Kind::Options => Some(Peer::Intel),
            Kind::Hash => Some(Peer::Pocl),
            _ => None,
        }
    }
}

const fn row(name: &'static str, what: &'static str, kind: Kind) -> Row {
    Row { name, what, kind }
}

pub const ROWS: &[Row] = &[
    row("vecadd", "16 M floats", Kind::Streaming),
    row("saxpy", "16 M floats", Kind::Streaming),
    row("sgemm_tiled", "1024³, 16×16 tiles in shared memory", Kind::Compute),
    row("sgemm_blocked", "1024³, 64×64 tiles, 4×4 elements a thread", Kind::Compute),
    row("reduce_barrier", "16 M floats, a tree of barriers per block", Kind::Reduction),
    row("reduce_shuffle", "16 M floats, shuffles per warp", Kind::Reduction),
    row("nbody", "8192 bodies, tiles in shared memory", Kind::Compute),
    row("black_scholes", "4 M options", Kind::Options),
    row("stencil", "4096², five points", Kind::Other),
    row("histogram", "16 MB into 256 bins, shared atomics", Kind::Histogram),
    row("mandelbrot", "1024², at most 256 steps", Kind::Compute),
    row("transpose", "4096² floats, 32×32 tiles", Kind::Other),
    row("scan", "16 M words, one pass with look-back", Kind::Other),
    row("sort", "1 M words, bitonic in shared memory, chunks of 1024", Kind::Other),
    row("spmv", "1 M rows of 0 to 15 entries, CSR, a thread a row", Kind::Other),
    row("hgemm_mma", "1024³ halves, mma.sync m16n8k16", Kind::Compute),
    row("tex_bilinear", "2048² samples of an image of floats, linear filter", Kind::Texture),
    row("tex_point", "2048² samples of an image of uchar4, nearest element", Kind::Texture),
    row("tex_trilinear", "4 M samples of a volume of 128³ floats, linear filter, normalised", Kind::Texture),
    row("md5", "4 M messages of a block, straight code", Kind::Hash),
    row("sha256", "2 M messages of a block", Kind::Hash),
    row("sha512", "1 M messages of a block, 64-bit words", Kind::Hash),
    row("matvec_half", "4096² halves by 4096 floats, a block a row, shuffles", Kind::MatrixVector),
    row(
        "matvec_q4",
        "4096² weights of 4 bits in blocks of 32, as llama.cpp's q4_0, products of bytes",
        Kind::MatrixVector,
    ),
    row("matvec_q4k", "the same in blocks of 256, as its q4_K", Kind::MatrixVector),
    row("softmax", "8192 rows of 1024 floats, a block a row", Kind::MatrixVector),
    row(
        "attention",
        "32 heads' queries, one each, by 2048 keys and values of 128 halves",
        Kind::MatrixVector,
    ),
    row("segmented_sort", "CUB, 4096 segments of 0 to 127 words, one in eight of 0 to 4095", Kind::Cub),
    row("sort_pairs", "CUB's radix sort, 1 M words with a word each", Kind::Cub),
    row("histogram_even", "CUB, 16 M floats into 256 bins", Kind::Cub),
    row("topk", "CUB, the largest 1024 of 16 M floats", Kind::Cub),
    row("empty", "launch and synchronise", Kind::Latency),
];
