//! Offsets in the structures of docs/architecture.md.

pub mod launch {
    pub const PARAMS: i64 = 0;
    pub const GLOBALS: i64 = 8;
    pub const SERVICES: i64 = 16;
    pub const GRID: i64 = 24;
    pub const BLOCK: i64 = 36;
    pub const DYNAMIC_SHARED: i64 = 48;
    pub const N_WORKERS: i64 = 52;
    pub const GRID_ID: i64 = 56;
    pub const FUNCTIONS: i64 = 64;
    pub const WORKSPACE: i64 = 72;
    pub const CLUSTER: i64 = 80;
    pub const EXPLICIT_CLUSTER: i64 = 92;
    pub const GRAPH: i64 = 104;
}

pub mod worker {
    pub const SHARED: i64 = 0;
    pub const LOCALS: i64 = 16;
    pub const NUMBER: i64 = 24;
    pub const SHARED_BYTES: i64 = 28;
    pub const BLOCK: i64 = 32;
    pub const LOCALS_BYTES: i64 = 48;
    pub const CLUSTER_RANK: i64 = 56;
    pub const GATE: i64 = 72;
}

pub mod thread {
    pub const RESUME: i64 = 0;
    pub const TID: i64 = 4;
    pub const LINEAR: i64 = 16;
    pub const LOCAL: i64 = 24;
    /// The flags follow.
    pub const KIND: i64 = 32;
    pub const ARGS: i64 = 40;
    pub const RESULTS: i64 = 72;
    /// The position follows.
    pub const SITE: i64 = 88;
    pub const SAVED: u64 = 96;
}

pub mod service {
    pub const VPRINTF: i64 = 0;
    pub const MALLOC: i64 = 1;
    pub const FREE: i64 = 2;
    pub const ASSERT_FAIL: i64 = 3;
    pub const GLOBAL_TIMER: i64 = 4;
    pub const SUSPEND: i64 = 6;
    pub const CHECK: i64 = 7;
    pub const TEXTURE: i64 = 8;
    pub const TENSOR: i64 = 9;
    pub const COMMIT: i64 = 11;
    pub const DEVICE_RUNTIME: i64 = 12;
    pub const TENSOR_MEMORY: i64 = 13;
    pub const CANCEL_CLUSTER: i64 = 14;
}

/// What `cudaway_step` returns.
pub mod status {
    pub const DONE: i32 = 0;
    pub const WAITS: i32 = 1;
    pub const YIELDS: i32 = 2;
    pub const TRAP: i32 = -1;
    pub const ASSERTION: i32 = -2;
    pub const NO_MEMORY: i32 = -4;
    pub const INVALID_PC: i32 = -5;
    /// Between functions of one step only: the callee came to its end.
    pub const RETURNED: i32 = 3;
}
