//! The kernel IR: typed SSA over a control-flow graph, PTX's semantics in LLVM-friendly shapes.
//!
//! Rules every producer keeps and every consumer may rely on:
//! * A value has one definition: an instruction's result or a block parameter (there are no phis; edges carry arguments).
//! * Values are bits. An operation says how it reads them; `Ty::F32`/`Ty::F64` differ from `B32`/`B64` only so that a
//!   back end can keep floats in float registers. Where an operand's type and the operation's differ there is an
//!   explicit [`Op::Bitcast`]. 16-bit floats are `B16`, packed pairs `B32`.
//! * Every operation has PTX's result for every input (shift counts clamp, division by zero is defined as what NVIDIA
//!   hardware gives, …). No undefined behaviour, no poison. Nothing traps except memory access and [`Op::Trap`].
//! * A PTX guard predicate is gone: pure operations became [`Op::Select`], the others a branch.
//! * Direct calls are inlined before a back end sees the function (`pass::inline`); [`Op::Call`] remains only for
//!   functions that cannot be, [`Op::Syscall`] for what the device runtime provides.
//! * Addresses are 64-bit: in `Generic`, `Global` and `Const` space the device's addresses; in `Shared`, `Local` and
//!   `Param` space offsets from the start of that window. A memory operation is base value + constant offset.

use crate::matrix::{MatrixRows, Mma, Wgmma};
use std::fmt;

/// Type of an SSA value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    Pred,
    B16,
    B32,
    B64,
    B128,
    F32,
    F64,
}

impl Ty {
    pub fn bits(self) -> u32 {
        match self {
            Ty::Pred => 1,
            Ty::B16 => 16,
            Ty::B32 | Ty::F32 => 32,
            Ty::B64 | Ty::F64 => 64,
            Ty::B128 => 128,
        }
    }

    /// The untyped register of that width.
    pub fn of_bits(bits: u32) -> Ty {
        match bits {
            1 => Ty::Pred,
            8 | 16 => Ty::B16,
            32 => Ty::B32,
            64 => Ty::B64,
            128 => Ty::B128,
            _ => unreachable!("no register has {bits} bits"),
        }
    }
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);
        impl $name {
            pub fn index(self) -> usize {
                self.0 as usize
            }
        }
        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($prefix, "{}"), self.0)
            }
        }
    };
}
id!(/// A value of one [`Function`].
    Value, "%");
id!(/// A block of one [`Function`]; `Block(0)` is the entry and has no parameters.
    BlockId, "bb");
id!(/// A `.global`/`.const` variable of the [`crate::Program`].
    GlobalId, "@g");
id!(/// A `.shared` variable of the program; a kernel's [`SharedLayout`] gives its offset.
    SharedId, "@s");
id!(/// A `.local` variable of one [`Function`].
    LocalId, "@l");
id!(/// A device function of the program.
    FuncId, "@f");

/// The `.shared::cluster` window has `1 << CLUSTER_SHIFT` bytes for each block of the cluster, by rank. A block's own
/// shared memory is the part that begins at its rank, so every `.shared::cta` address is a `.shared::cluster` address,
/// good in all blocks of the cluster.
pub const CLUSTER_SHIFT: u32 = 24;

/// Where a block's tensor memory (`tcgen05`) begins in its part of the window, far behind its shared memory, and its size: 512
/// columns of 128 lanes of 32 bits, column by column. The host keeps in front of it which columns are allocated.
pub const TENSOR_MEMORY: u32 = 1 << 23;
pub const TENSOR_MEMORY_BYTES: u32 = 512 * 128 * 4;

/// Integer interpretation: 8, 16, 32 or 64 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Int {
    pub bits: u8,
    pub signed: bool,
}

pub const U16: Int = Int { bits: 16, signed: false };
pub const S16: Int = Int { bits: 16, signed: true };
pub const U32: Int = Int { bits: 32, signed: false };
pub const S32: Int = Int { bits: 32, signed: true };
pub const U64: Int = Int { bits: 64, signed: false };
pub const S64: Int = Int { bits: 64, signed: true };

/// Float interpretation. `…x2` are two halves in a `B32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Float {
    F16,
    Bf16,
    F16x2,
    Bf16x2,
    F32,
    F64,
}

impl Float {
    /// The register type that holds it.
    pub fn ty(self) -> Ty {
        match self {
            Float::F16 | Float::Bf16 => Ty::B16,
            Float::F16x2 | Float::Bf16x2 => Ty::B32,
            Float::F32 => Ty::F32,
            Float::F64 => Ty::F64,
        }
    }
}

/// A number for conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Num {
    Int(Int),
    Float(Float),
    /// `tf32` in a `B32`.
    Tf32,
    /// Two 8-bit floats in a `B16`.
    E4m3x2,
    E5m2x2,
}

/// Rounding. `Nearest` is to nearest even.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Round {
    #[default]
    Nearest,
    /// To nearest, ties away from zero (`.rna`).
    NearestAway,
    Zero,
    Down,
    Up,
}

/// How a float operation rounds and ends: `.rn/.rz/.rm/.rp`, `.ftz`, `.sat`, `.relu`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct FloatMode {
    pub round: Round,
    /// Subnormal inputs and results become zero of the same sign (f32 only).
    pub ftz: bool,
    /// Result clamped to [0, 1], NaN gives +0.
    pub sat: bool,
    /// Result clamped to ≥ 0, NaN gives the canonical NaN.
    pub relu: bool,
    /// Of a product, sum or difference, and only while functions are lowered: without a rounding modifier, so it may be part of a fused
    /// multiply-add.
    pub fuses: bool,
    /// With `ftz`, and once functions are lowered: a bit for each argument, from the lowest on, that is never a subnormal f32.
    pub normal: u8,
    /// Of a fused multiply-add in f32 that does not round to nearest, and once functions are lowered: its third argument is a constant,
    /// and the sum is at least half of it and at most twice of it, so that the nearest result minus the constant is exact.
    pub near: bool,
}

impl FloatMode {
    /// Whether `.ftz` has something to do for this argument.
    pub fn flushes(self, argument: usize) -> bool {
        self.ftz && self.normal >> argument & 1 == 0
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntBin {
    Add,
    Sub,
    /// Low half of the product.
    Mul,
    /// High half of the product.
    MulHi,
    /// Division by zero gives all ones; `MIN / -1` gives `MIN`.
    Div,
    /// Remainder by zero gives all ones; `MIN % -1` gives 0.
    Rem,
    Min,
    Max,
    And,
    Or,
    Xor,
    /// The count is a `B32`; counts ≥ width give 0.
    Shl,
    /// The count is a `B32`; counts ≥ width give 0, or the sign for signed.
    Shr,
    /// Clamped to the type's range (`.sat`).
    AddSat,
    SubSat,
    /// `(a & 0xffffff) * (b & 0xffffff)` (sign-extended for signed), low 32 bits.
    Mul24Lo,
    /// Bits 47..16 of that 48-bit product.
    Mul24Hi,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum IntUn {
    Neg,
    Not,
    Abs,
    /// Result `B32` for every width, here and in the next two.
    Popc,
    Clz,
    /// Position of the most significant one (non-sign bit for signed), `0xffffffff` if none;
    /// `shiftamt` gives the left shift that brings it to the top.
    Bfind {
        shiftamt: bool,
    },
    Brev,
}

/// Integer and float comparisons; for floats these are the ordered forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Cmp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatCmp {
    /// False when either side is NaN.
    Ordered(Cmp),
    /// True when either side is NaN.
    Unordered(Cmp),
    /// Both are numbers.
    Num,
    /// Either is NaN.
    Nan,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatBin {
    Add,
    Sub,
    Mul,
    /// IEEE division, rounded as the mode says.
    Div,
    /// `div.approx.f32`: error ≤ 2 ulp for |b| in [2^-126, 2^126], 0 or NaN rules beyond as in the manual.
    DivApprox,
    /// `div.full.f32`: error ≤ 2 ulp over the full range.
    DivFull,
    /// The number when one side is NaN; -0 < +0. `nan`: NaN wins. `xorsign_abs`: of magnitudes, sign is the xor.
    Min {
        nan: bool,
        xorsign_abs: bool,
    },
    Max {
        nan: bool,
        xorsign_abs: bool,
    },
    /// `copysign.f d, a, b`: magnitude of b, sign of a.
    CopySign,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FloatUn {
    Neg,
    Abs,
    /// IEEE square root, rounded as the mode says.
    Sqrt,
    /// IEEE reciprocal, rounded as the mode says.
    Rcp,
    SqrtApprox,
    RsqrtApprox,
    RcpApprox,
    /// `rcp.approx.ftz.f64` / `rsqrt.approx.ftz.f64`: the coarse f64 seeds.
    RcpApproxFtz64,
    RsqrtApproxFtz64,
    Ex2Approx,
    Lg2Approx,
    SinApprox,
    CosApprox,
    TanhApprox,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TestP {
    Finite,
    Infinite,
    Number,
    NotANumber,
    Normal,
    Subnormal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Bool {
    And,
    Or,
    Xor,
}

/// `prmt` selection modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PrmtMode {
    Index,
    F4e,
    B4e,
    Rc8,
    Ecl,
    Ecr,
    Rc16,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    Generic,
    Global,
    Const,
    Shared,
    Local,
    Param,
}

/// What one element of a load or store is in memory. Registers wider than it are extended on load (zero, or sign
/// for `signed`) and truncated on store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Mem {
    pub bits: u8,
    pub signed: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Order {
    /// Ordinary access: no inter-thread guarantee.
    #[default]
    Weak,
    /// Like `Relaxed` at system scope, never removed or merged.
    Volatile,
    Relaxed,
    Acquire,
    Release,
    AcqRel,
    SeqCst,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scope {
    Cta,
    Cluster,
    Gpu,
    #[default]
    Sys,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomOp {
    /// Integer or float add, by [`AtomTy`].
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    /// Arguments: address, compare, new.
    Cas,
    /// `old >= b ? 0 : old + 1`
    Inc,
    /// `(old == 0 || old > b) ? b : old - 1`
    Dec,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TensorDirection {
    /// Global to shared memory.
    Load,
    /// Shared to global memory.
    Store,
    /// Shared to global memory, element by element by an atomic operation of the map's type.
    Reduce(AtomOp),
}

/// `cp.async` that is told to copy less than all: where there are fewer bytes than `size` the rest is zero, and a byte that is not
/// to be read is not touched: it may lie outside of the allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyAsync {
    /// 4, 8 or 16 bytes.
    pub size: u8,
    /// How much is a predicate that says to copy nothing, not the number of bytes (`B32`).
    pub is_ignored: bool,
    /// Added to both addresses.
    pub to: i64,
    pub from: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorCopy {
    pub direction: TensorDirection,
    /// Dimensions that the instruction names.
    pub rank: u8,
    pub im2col: bool,
    /// The coordinates are a column and four rows of a matrix (`.tile::gather4`, `.tile::scatter4`).
    pub four_rows: bool,
}

impl TensorCopy {
    /// As the host side gets it: bits 0 to 3 the rank, bit 4 im2col, bit 5 four rows, from bit 8 on 0 load, 1 store, 2 add,
    /// 3 min, 4 max, 5 inc, 6 dec, 7 and, 8 or, 9 xor.
    pub fn flags(self) -> u32 {
        let direction = match self.direction {
            TensorDirection::Load => 0,
            TensorDirection::Store => 1,
            TensorDirection::Reduce(op) => match op {
                AtomOp::Add => 2,
                AtomOp::Min => 3,
                AtomOp::Max => 4,
                AtomOp::Inc => 5,
                AtomOp::Dec => 6,
                AtomOp::And => 7,
                AtomOp::Or => 8,
                _ => 9,
            },
        };
        let modes = u32::from(self.im2col) << 4 | u32::from(self.four_rows) << 5;
        u32::from(self.rank) | modes | direction << 8
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomTy {
    Int(Int),
    Float(Float),
    /// `.b128` exchange and compare-and-swap.
    B128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ShflMode {
    Up,
    Down,
    Bfly,
    Idx,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum VoteMode {
    All,
    Any,
    Uni,
    /// Result `B32`; the others give a predicate.
    Ballot,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ReduxOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierKind {
    Sync,
    /// Arrives and goes on.
    Arrive,
    /// Result: number of threads whose predicate holds (`B32`).
    RedPopc,
    /// Result: predicate.
    RedAnd,
    RedOr,
}

impl BarrierKind {
    /// Its last argument is a predicate, and it has a result.
    pub fn is_reduction(self) -> bool {
        !matches!(self, BarrierKind::Sync | BarrierKind::Arrive)
    }
}

/// Barriers of ours, one for each warpgroup (four warps) of a block: no program can name them. Their five lowest bits are
/// 16 and up, so that they and PTX's 16 barriers are told apart by those.
pub const WARPGROUP_BARRIERS: u32 = 0x110;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    LaneId,
    WarpId,
    SmId,
    NSmId,
    /// `B64`
    GridId,
    /// `B64`: the handle of the device graph that the grid is part of, else 0
    CurrentGraph,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    Clock,
    ClockHi,
    /// `B64`
    Clock64,
    /// `B64`, nanoseconds
    GlobalTimer,
    GlobalTimerLo,
    GlobalTimerHi,
    DynamicSmemSize,
    TotalSmemSize,
    AggrSmemSize,
    ClusterId(u8),
    NClusterId(u8),
    ClusterCtaid(u8),
    ClusterNctaid(u8),
    ClusterCtaRank,
    ClusterNctaRank,
    IsExplicitCluster,
    /// Offset of the block's tensor memory in the shared window. A kernel that has it gets such memory.
    TensorMemory,
    /// `%envreg<n>`: 1 and 2 are the high and the low word of the address of a cooperative grid's workspace, the others
    /// and those of other grids 0.
    EnvReg(u8),
}

/// What the device runtime provides; each back end routes them to its host side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syscall {
    /// `vprintf(format, arguments)`: generic addresses; result `B32`.
    Vprintf,
    /// `malloc(size)`: `B64` → `B64`.
    Malloc,
    /// `free(pointer)`.
    Free,
    /// `[arguments, number]`: a call of the device runtime, by its number among [`crate::device_runtime::Call`]; generic address of what it
    /// is given → `B64`.
    DeviceRuntime,
    /// `[tensor memory, operation, eight words]`: generic address of the block's tensor memory; what `tcgen05` asks for, as
    /// [`crate::tensor_memory`] lists it; result `B32`.
    TensorMemory,
    /// `[]`: keeps a cluster that has not begun from being begun; result `B64`, laid out as `lower::launch_control` has it.
    CancelCluster,
    /// `__assertfail(message, file, line, function, char size)`: does not return.
    AssertFail,
}

/// What a program does wrong besides its memory accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// A call to what is no function.
    InvalidPc,
    /// The stack is used up.
    Stack,
}

/// Operations. Arguments are listed in order; the result types follow from the operation unless said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    // ---- constants, addresses, moves ----
    /// Bits of the result's type.
    Const(u128),
    Special(Special),
    /// Address in global space (`B64`).
    GlobalAddr(GlobalId),
    /// Offset in the shared window (`B64`).
    SharedAddr(SharedId),
    /// Offset in the thread's local window (`B64`).
    LocalAddr(LocalId),
    /// Offset in the kernel's parameter buffer (`B64`).
    ParamAddr(u32),
    FuncAddr(FuncId),
    /// `[address]`: from `space` to generic, or back.
    Cvta {
        space: Space,
        to_generic: bool,
    },
    /// `[generic address]` → `Pred`
    IsSpace(Space),
    /// Same bits, other type of the same width.
    Bitcast,
    /// Zero-extends (or truncates) bits to the result's type; `Pred` counts as 0/1.
    Zext,
    Sext,
    Trunc,
    /// Several equal parts, lowest first → one wide value.
    Pack,
    /// One wide value → its equal parts, lowest first.
    Unpack,

    // ---- integers ----
    Int(IntBin, Int),
    IntUn(IntUn, Int),
    /// Full product: result twice as wide.
    MulWide(Int),
    /// `[a, b]` or `[a, b, carry]` → `[sum, carry]`
    AddCarry(Int),
    /// `[a, b]` or `[a, b, carry]` → `[difference, carry]` of `a + ~b + carry` (1 where there is none): the carry says that
    /// nothing is borrowed. Carries are `Pred`.
    SubCarry(Int),
    /// `[a, pos, len]` (B32s)
    Bfe(Int),
    /// `[insert, base, pos, len]`
    Bfi(Int),
    /// `[a, b, c]` → any boolean function by its truth table.
    Lop3(u8),
    /// `[low, high, count]`; `wrap` takes the count modulo 32, else it clamps at 32.
    Shf {
        left: bool,
        wrap: bool,
    },
    /// `[a, b, selector]`
    Prmt(PrmtMode),
    /// `[a, b, c]`: |a-b| + c
    Sad(Int),
    /// `[a, b, c]` four-way byte dot product; signedness of a and b.
    Dp4a {
        a_signed: bool,
        b_signed: bool,
    },
    /// `[a, b, c]` two-way; `hi` takes b's upper two bytes.
    Dp2a {
        a_signed: bool,
        b_signed: bool,
        hi: bool,
    },
    /// `[mask, base, offset]`
    Fns,
    /// `[a, n]`: keeps n low bits, sign- or zero-extends; `wrap` or clamp.
    Szext {
        int: Int,
        wrap: bool,
    },
    /// `[pos, len]`
    Bmsk {
        wrap: bool,
    },

    // ---- floats ----
    Float(FloatBin, Float, FloatMode),
    FloatUn(FloatUn, Float, FloatMode),
    /// `[a, b, c]`: a × b + c with one rounding.
    Fma(Float, FloatMode),
    TestP(TestP, Float),

    // ---- comparison and choice ----
    Icmp(Cmp, Int),
    /// `ftz` flushes subnormal inputs first.
    Fcmp {
        cmp: FloatCmp,
        ty: Float,
        ftz: bool,
    },
    Bool(Bool),
    Not,
    /// `[predicate, if true, if false]`
    Select,

    // ---- conversion ----
    Cvt {
        from: Num,
        to: Num,
        mode: FloatMode,
    },
    /// Float to an integral value in the same type (`cvt.rni.f32.f32` and friends).
    RoundInt {
        ty: Float,
        mode: FloatMode,
    },
    /// `[high, low]` two floats → one packed pair (`cvt.rn.f16x2.f32 d, a, b`).
    CvtPack {
        from: Float,
        to: Num,
        mode: FloatMode,
    },

    // ---- memory ----
    /// `[address]` → 1, 2, 4 or 8 elements.
    Load {
        space: Space,
        mem: Mem,
        offset: i64,
        order: Order,
        scope: Scope,
    },
    /// `[address, element…]`
    Store {
        space: Space,
        mem: Mem,
        offset: i64,
        order: Order,
        scope: Scope,
    },
    /// `[address, b]` or `[address, compare, new]` → the old value, or nothing (`red`).
    Atomic {
        space: Space,
        op: AtomOp,
        ty: AtomTy,
        offset: i64,
        order: Order,
        scope: Scope,
    },
    Fence {
        order: Order,
        scope: Scope,
    },
    /// `[offset in the shared window, address in global memory, how much]`: copies as many bytes as [`CopyAsync`] says.
    CopyAsync(CopyAsync),
    /// `[tensor map, shared memory, five coordinates, offsets]`: both addresses generic, coordinates `B32`, offsets four
    /// times 16 bits → bytes in shared memory (`B32`).
    TensorCopy(TensorCopy),

    // ---- warps and blocks ----
    /// `[a, b, c, member mask]` → `[d, in range]`
    Shfl(ShflMode),
    /// `[predicate, member mask]`
    Vote(VoteMode),
    /// `[a, member mask]` → mask (`B32`); `all` also gives a predicate.
    Match {
        all: bool,
        bits: u8,
    },
    /// `[a, member mask]`
    Redux(ReduxOp, Int),
    ActiveMask,
    /// `[member mask]` → `[leader lane, is leader]`
    Elect,
    /// `[member mask]`
    WarpSync,
    /// `[registers of A, of B, of C, metadata of a sparse A, member mask]` → registers of D.
    Mma(Mma),
    /// A warp's part of a product of four warps, which reads shared memory: [`Wgmma`].
    Wgmma(Wgmma),
    /// A warp moves matrices between shared memory and registers.
    MatrixRows(MatrixRows),
    /// `[id]`, `[id, count]`, with the predicate last for reductions.
    Barrier {
        kind: BarrierKind,
        aligned: bool,
    },

    /// `barrier.cluster`: arrives, or waits until every thread of the cluster has arrived since this one did.
    ClusterBarrier {
        wait: bool,
    },

    // ---- the rest ----
    Call(FuncId),
    /// `[function address, argument…]`. `lower` resolves it into comparisons and direct calls (and [`Op::FuncAddr`] into
    /// a number), so no pass and no back end sees either.
    CallIndirect,
    Syscall(Syscall),
    /// A texture or surface instruction: arguments and results as [`crate::texture::Access`] lists them.
    Texture(crate::texture::Access),
    /// `[nanoseconds]`
    NanoSleep,
    Trap,
    Breakpoint,
    /// Ends the grid as a failing instruction does.
    Fault(Fault),
}

impl Op {
    /// No effect besides its results and no dependence on memory or other threads.
    pub fn is_pure(&self) -> bool {
        use Op::*;
        !self.is_warp_collective()
            && !self.is_barrier()
            && !matches!(
                self,
                Load { .. }
                    | Store { .. }
                    | Atomic { .. }
                    | Fence { .. }
                    | CopyAsync(_)
                    | TensorCopy(_)
                    | Call(_)
                    | CallIndirect
                    | Syscall(_)
                    | Texture(_)
                    | NanoSleep
                    | Trap
                    | Breakpoint
                    | Fault(_)
                    | Special(
                        self::Special::Clock
                            | self::Special::ClockHi
                            | self::Special::Clock64
                            | self::Special::GlobalTimer
                            | self::Special::GlobalTimerLo
                            | self::Special::GlobalTimerHi
                    )
            )
    }

    /// Threads of a block, or of its cluster, meet here.
    pub fn is_barrier(&self) -> bool {
        matches!(self, Op::Barrier { .. } | Op::ClusterBarrier { .. })
    }

    /// A warp multiplies matrices.
    pub fn is_product(&self) -> bool {
        matches!(self, Op::Mma(_) | Op::Wgmma(_))
    }

    /// Threads of a warp meet here.
    pub fn is_warp_collective(&self) -> bool {
        use Op::*;
        matches!(
            self,
            Shfl(_)
                | Vote(_)
                | Match { .. }
                | Redux(..)
                | ActiveMask
                | Elect
                | WarpSync
                | Mma(_)
                | Wgmma(_)
                | MatrixRows(_)
        )
    }
}

/// Byte position in one of the program's sources, for diagnostics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Pos {
    pub source: u32,
    pub offset: u32,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    pub op: Op,
    pub args: Vec<Value>,
    pub results: Vec<Value>,
    pub pos: Pos,
}

/// A control-flow edge: block and the values of its parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Edge {
    pub block: BlockId,
    pub args: Vec<Value>,
}

#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    Jump(Edge),
    Branch {
        cond: Value,
        then: Edge,
        otherwise: Edge,
    },
    /// `brx.idx`: an index beyond the table is undefined in PTX; we take the last entry.
    Switch {
        index: Value,
        targets: Vec<Edge>,
    },
    /// From a device function.
    Return(Vec<Value>),
    /// The thread ends (`ret` in a kernel, `exit` anywhere).
    Exit,
}

impl Term {
    pub fn edges(&self) -> Vec<&Edge> {
        match self {
            Term::Jump(edge) => vec![edge],
            Term::Branch { then, otherwise, .. } => vec![then, otherwise],
            Term::Switch { targets, .. } => targets.iter().collect(),
            Term::Return(_) | Term::Exit => vec![],
        }
    }

    /// The values the terminator itself reads; edge arguments are not among them.
    pub fn own_values(&self) -> Vec<Value> {
        match self {
            Term::Branch { cond, .. } => vec![*cond],
            Term::Switch { index, .. } => vec![*index],
            Term::Return(values) => values.clone(),
            Term::Jump(_) | Term::Exit => vec![],
        }
    }

    /// Visits every value: its own and those of its edges.
    pub fn for_each_value_mut(&mut self, mut visit: impl FnMut(&mut Value)) {
        match self {
            Term::Branch { cond, .. } => visit(cond),
            Term::Switch { index, .. } => visit(index),
            Term::Return(values) => values.iter_mut().for_each(&mut visit),
            Term::Jump(_) | Term::Exit => {}
        }
        for edge in self.edges_mut() {
            edge.args.iter_mut().for_each(&mut visit);
        }
    }

    pub fn edges_mut(&mut self) -> Vec<&mut Edge> {
        match self {
            Term::Jump(edge) => vec![edge],
            Term::Branch { then, otherwise, .. } => vec![then, otherwise],
            Term::Switch { targets, .. } => targets.iter_mut().collect(),
            Term::Return(_) | Term::Exit => vec![],
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    pub params: Vec<Value>,
    pub insts: Vec<Inst>,
    pub term: Term,
}

/// A `.local` variable.
#[derive(Clone, Debug, PartialEq)]
pub struct Local {
    pub name: String,
    pub bytes: u64,
    pub align: u64,
    /// Bytes of one of its declared type.
    pub element: u64,
}

/// A kernel or device function.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    pub name: String,
    /// Device functions: types of the arguments, which are the entry block's parameters. Empty for kernels.
    pub args: Vec<Ty>,
    pub results: Vec<Ty>,
    pub blocks: Vec<Block>,
    /// Type of each value.
    pub values: Vec<Ty>,
    pub locals: Vec<Local>,
}

impl Function {
    pub fn new_value(&mut self, ty: Ty) -> Value {
        self.values.push(ty);
        Value(u32::try_from(self.values.len() - 1).expect("more than 2^32 values"))
    }

    pub fn new_block(&mut self) -> BlockId {
        self.blocks.push(Block { params: vec![], insts: vec![], term: Term::Exit });
        BlockId(u32::try_from(self.blocks.len() - 1).expect("more than 2^32 blocks"))
    }

    pub fn ty(&self, value: Value) -> Ty {
        self.values[value.index()]
    }

    pub fn block(&self, id: BlockId) -> &Block {
        &self.blocks[id.index()]
    }

    /// Predecessors of every block, in block order, one entry per edge.
    pub fn predecessors(&self) -> Vec<Vec<BlockId>> {
        let mut predecessors = vec![vec![]; self.blocks.len()];
        for (i, block) in self.blocks.iter().enumerate() {
            for edge in block.term.edges() {
                predecessors[edge.block.index()].push(BlockId(i as u32));
            }
        }
        predecessors
    }

    /// Blocks reachable from the entry, in reverse post-order.
    pub fn reverse_post_order(&self) -> Vec<BlockId> {
        let mut order = Vec::with_capacity(self.blocks.len());
        let mut seen = vec![false; self.blocks.len()];
        let mut stack = vec![(BlockId(0), 0usize)];
        seen[0] = true;
        while let Some((id, next)) = stack.pop() {
            let edges = self.block(id).term.edges();
            match edges.get(next) {
                Some(edge) => {
                    stack.push((id, next + 1));
                    if !std::mem::replace(&mut seen[edge.block.index()], true) {
                        stack.push((edge.block, 0));
                    }
                }
                None => order.push(id),
            }
        }
        order.reverse();
        order
    }
}

/// Where a kernel's static shared variables lie; dynamic shared memory starts at `bytes` rounded up to `align`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SharedLayout {
    /// Offset of each shared variable the kernel reaches. An `extern .shared` array has `bytes`, rounded up.
    pub offsets: Vec<(SharedId, u64)>,
    /// Size of the static part.
    pub bytes: u64,
    /// Largest alignment, at least 16.
    pub align: u64,
    /// A block has tensor memory too.
    pub tensor_memory: bool,
}
