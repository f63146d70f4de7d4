//! Structured random kernels. Every tree is a legal kernel whose result does not depend on the order of threads: what
//! does not fit its place (a barrier in divergent code, say) is left out when the text is written, so shrinking may cut
//! wherever it likes.

pub mod emit;
pub mod forms;

use proptest::collection::vec;
use proptest::prelude::*;

/// A kernel and its launch.
#[derive(Clone, Debug)]
pub struct Kernel {
    pub block: [u32; 3],
    pub grid: u32,
    /// May have what setting `simd` refuses.
    pub wild: bool,
    /// Has warp collectives, for which setting `simd` needs groups of 32.
    pub warp: bool,
    /// Device functions; each may call those before it.
    pub functions: Vec<Vec<Stmt>>,
    pub body: Vec<Stmt>,
    pub seed: u32,
}

/// Numbers are taken modulo what there is.
#[derive(Clone, Debug)]
pub enum Stmt {
    Pure {
        row: u16,
        alternative: u16,
        operands: [u8; 6],
        immediate: Option<(u8, u64)>,
        guard: Guard,
    },
    If {
        condition: Condition,
        masked: bool,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Loop {
        trips: Trips,
        masked: bool,
        body: Vec<Stmt>,
    },
    Switch {
        index: u8,
        arms: Vec<Vec<Stmt>>,
    },
    /// Leaves the innermost loop.
    Break {
        condition: u8,
    },
    /// Ends the thread, with its results.
    Exit {
        condition: u8,
    },
    Collective {
        kind: u8,
        operands: [u8; 4],
    },
    /// Both sides of a divergent branch have the barrier.
    SplitBarrier {
        condition: u8,
        then: Vec<Stmt>,
        otherwise: Vec<Stmt>,
    },
    Barrier {
        kind: u8,
        operand: u8,
    },
    /// A word to the others of the block and one back.
    Exchange {
        kind: u8,
        operands: [u8; 3],
    },
    /// An order-independent operation on a place of all threads.
    Atomic {
        kind: u8,
        operand: u8,
        guard: Guard,
    },
    /// An operation on a place of the thread alone.
    OwnAtomic {
        kind: u8,
        operands: [u8; 4],
    },
    /// Read-only data.
    Load {
        kind: u8,
        operands: [u8; 4],
        guard: Guard,
    },
    /// The thread's own memory: `place` says which.
    Store {
        place: u8,
        kind: u8,
        operands: [u8; 5],
        guard: Guard,
    },
    Fetch {
        place: u8,
        kind: u8,
        operands: [u8; 5],
    },
    Call {
        function: u8,
        operands: [u8; 4],
    },
}

/// `@p`, `@!p` or none.
pub type Guard = Option<(u8, bool)>;

/// Who decides.
#[derive(Clone, Debug)]
pub enum Condition {
    /// A predicate of the thread.
    Own(u8),
    /// The same for the whole block.
    Uniform(u8),
    /// The same for the whole warp.
    Warp(u8),
    /// A vote of the warp.
    Vote(u8),
}

/// How often a loop runs.
#[derive(Clone, Debug)]
pub enum Trips {
    Constant(u8),
    /// The same for the whole block.
    Uniform(u8),
    /// By a register of the thread.
    Own(u8),
}

fn guard() -> impl Strategy<Value = Guard> {
    prop_oneof![4 => Just(None), 1 => any::<(u8, bool)>().prop_map(Some)]
}

/// Values at which something happens, and any.
fn immediate() -> impl Strategy<Value = u64> {
    prop_oneof![
        3 => 0u64..40,
        2 => prop::sample::select(vec![
            u64::MAX, 1 << 31, (1 << 31) - 1, 0xffff, 0x8000, 0xff, 0x80, 1 << 63, 0x3f80_0000, 0x7f80_0000,
            0x7fc0_0000, 0x3c00, 0x7c00, 0x3ff0_0000_0000_0000,
        ]),
        2 => any::<u64>(),
    ]
}

fn leaf() -> impl Strategy<Value = Stmt> {
    let pure = (any::<u16>(), any::<u16>(), any::<[u8; 6]>(), guard());
    let immediate = prop_oneof![2 => Just(None), 1 => (any::<u8>(), immediate()).prop_map(Some)];
    prop_oneof![
        20 => (pure, immediate).prop_map(|((row, alternative, operands, guard), immediate)| {
            Stmt::Pure { row, alternative, operands, immediate, guard }
        }),
        1 => any::<u8>().prop_map(|condition| Stmt::Break { condition }),
        1 => any::<u8>().prop_map(|condition| Stmt::Exit { condition }),
        4 => any::<(u8, [u8; 4])>().prop_map(|(kind, operands)| Stmt::Collective { kind, operands }),
        1 => any::<(u8, u8)>().prop_map(|(kind, operand)| Stmt::Barrier { kind, operand }),
        2 => any::<(u8, [u8; 3])>().prop_map(|(kind, operands)| Stmt::Exchange { kind, operands }),
        2 => (any::<(u8, u8)>(), guard()).prop_map(|((kind, operand), guard)| {
            Stmt::Atomic { kind, operand, guard }
        }),
        1 => any::<(u8, [u8; 4])>().prop_map(|(kind, operands)| Stmt::OwnAtomic { kind, operands }),
        3 => (any::<(u8, [u8; 4])>(), guard()).prop_map(|((kind, operands), guard)| {
            Stmt::Load { kind, operands, guard }
        }),
        3 => (any::<(u8, u8, [u8; 5])>(), guard()).prop_map(|((place, kind, operands), guard)| {
            Stmt::Store { place, kind, operands, guard }
        }),
        3 => any::<(u8, u8, [u8; 5])>().prop_map(|(place, kind, operands)| {
            Stmt::Fetch { place, kind, operands }
        }),
        1 => any::<(u8, [u8; 4])>().prop_map(|(function, operands)| Stmt::Call { function, operands }),
    ]
}

fn condition() -> impl Strategy<Value = Condition> {
    prop_oneof![
        4 => any::<u8>().prop_map(Condition::Own),
        2 => any::<u8>().prop_map(Condition::Uniform),
        1 => any::<u8>().prop_map(Condition::Warp),
        1 => any::<u8>().prop_map(Condition::Vote),
    ]
}

fn trips() -> impl Strategy<Value = Trips> {
    prop_oneof![
        1 => any::<u8>().prop_map(Trips::Constant),
        1 => any::<u8>().prop_map(Trips::Uniform),
        2 => any::<u8>().prop_map(Trips::Own),
    ]
}

fn statement() -> impl Strategy<Value = Stmt> {
    leaf().prop_recursive(3, 12, 4, |inner| {
        let list = || vec(inner.clone(), 0..4);
        prop_oneof![
            4 => (condition(), any::<bool>(), list(), list()).prop_map(|(condition, masked, then, otherwise)| {
                Stmt::If { condition, masked, then, otherwise }
            }),
            3 => (trips(), any::<bool>(), list()).prop_map(|(trips, masked, body)| {
                Stmt::Loop { trips, masked, body }
            }),
            1 => (any::<u8>(), vec(list(), 2..4)).prop_map(|(index, arms)| Stmt::Switch { index, arms }),
            1 => (any::<u8>(), list(), list()).prop_map(|(condition, then, otherwise)| {
                Stmt::SplitBarrier { condition, then, otherwise }
            }),
        ]
    })
}

fn block() -> impl Strategy<Value = [u32; 3]> {
    prop_oneof![
        4 => prop::sample::select(vec![[32, 1, 1], [64, 1, 1], [96, 1, 1], [8, 8, 1], [16, 4, 1], [4, 4, 4]]),
        2 => prop::sample::select(vec![[1, 1, 1], [7, 1, 1], [31, 1, 1], [33, 1, 1], [40, 1, 1], [5, 7, 1], [3, 5, 3]]),
    ]
}

/// Any kernel.
pub fn kernel() -> impl Strategy<Value = Kernel> {
    let parts = (block(), 1u32..4, any::<bool>(), any::<bool>(), any::<u32>());
    (parts, vec(vec(statement(), 1..4), 0..3), vec(statement(), 2..9)).prop_map(
        |((block, grid, wild, warp, seed), functions, body)| Kernel {
            block,
            grid,
            wild,
            warp,
            functions,
            body,
            seed,
        },
    )
}
