//! Special registers.

use super::code::Code;
use super::layout::{launch, service, thread, worker};
use crate::back::cpu::ANY_BLOCK;
use crate::back::llvm::{self, Builder, Type, Val};
use crate::ir::{CLUSTER_SHIFT, Special, TENSOR_MEMORY};

pub fn read(code: &mut Code<'_>, special: Special, to: Type) -> Val {
    let word = Type::int(32, 1);
    let block = code.options.block;
    let number = |value: u64| Builder::int(word, i128::from(value));
    let value = match special {
        // The fourth component of every vector register is 0.
        Special::Tid(3..)
        | Special::Ntid(3..)
        | Special::Ctaid(3..)
        | Special::Nctaid(3..)
        | Special::ClusterId(3..)
        | Special::NClusterId(3..)
        | Special::ClusterCtaid(3..)
        | Special::ClusterNctaid(3..) => number(0),
        Special::Tid(axis) => code.load_field("%thread", thread::TID + 4 * i64::from(axis), word),
        Special::Ntid(0) if code.options.open => code.load_field("%launch", launch::BLOCK, word),
        Special::Ntid(axis) if block == ANY_BLOCK => side(code, axis),
        Special::Ntid(axis) => number(u64::from(block[usize::from(axis)])),
        Special::Ctaid(axis) => code.load_field("%worker", worker::BLOCK + 4 * i64::from(axis), word),
        Special::Nctaid(axis) => code.load_field("%launch", launch::GRID + 4 * i64::from(axis), word),
        // The high and the low word of the address of the grid's workspace; 0 unless the launch is cooperative.
        Special::EnvReg(1) => code.load_field("%launch", launch::WORKSPACE + 4, word),
        Special::EnvReg(2) => code.load_field("%launch", launch::WORKSPACE, word),
        Special::EnvReg(_) => number(0),
        Special::IsExplicitCluster => code.load_field("%launch", launch::EXPLICIT_CLUSTER, word),
        Special::ClusterId(_)
        | Special::NClusterId(_)
        | Special::ClusterCtaid(_)
        | Special::ClusterNctaid(_)
        | Special::ClusterCtaRank
        | Special::ClusterNctaRank => cluster(code, special),
        Special::LaneId => lane(code),
        Special::WarpId => {
            let linear = code.load_field("%thread", thread::LINEAR, word);
            code.b.bin_int("lshr", &linear, 5)
        }
        Special::SmId => code.load_field("%worker", worker::NUMBER, word),
        Special::NSmId => code.load_field("%launch", launch::N_WORKERS, word),
        Special::GridId => code.load_field("%launch", launch::GRID_ID, Type::int(64, 1)),
        Special::CurrentGraph => code.load_field("%launch", launch::GRAPH, Type::int(64, 1)),
        Special::LaneMaskEq
        | Special::LaneMaskLe
        | Special::LaneMaskLt
        | Special::LaneMaskGe
        | Special::LaneMaskGt => {
            let lane = lane(code);
            llvm::lane::mask(&mut code.b, special, &lane)
        }
        Special::TensorMemory => {
            let rank = cluster(code, Special::ClusterCtaRank);
            let part = code.b.bin_int("shl", &rank, CLUSTER_SHIFT.into());
            code.b.bin_int("add", &part, TENSOR_MEMORY.into())
        }
        Special::DynamicSmemSize => code.load_field("%launch", launch::DYNAMIC_SHARED, word),
        Special::TotalSmemSize | Special::AggrSmemSize => {
            code.load_field("%worker", worker::SHARED_BYTES, word)
        }
        clock => return read_clock(code, clock, to),
    };
    code.b.resize(&value, to.bits(), false)
}

/// Threads of the block along an axis, as the launch says.
fn side(code: &mut Code<'_>, axis: u8) -> Val {
    code.load_field("%launch", launch::BLOCK + 4 * i64::from(axis), Type::int(32, 1))
}

/// Where the block lies in its cluster and the cluster in the grid. Without clusters each block is one.
fn cluster(code: &mut Code<'_>, special: Special) -> Val {
    let word = Type::int(32, 1);
    let clustered = code.options.clustered;
    let number = |value: u64| Builder::int(word, i128::from(value));
    let block =
        |code: &mut Code<'_>, axis: u8| code.load_field("%worker", worker::BLOCK + 4 * i64::from(axis), word);
    let grid =
        |code: &mut Code<'_>, axis: u8| code.load_field("%launch", launch::GRID + 4 * i64::from(axis), word);
    let size = |code: &mut Code<'_>, axis: u8| match clustered {
        true => code.load_field("%launch", launch::CLUSTER + 4 * i64::from(axis), word),
        false => number(1),
    };
    match special {
        Special::ClusterId(axis) => {
            let (block, size) = (block(code, axis), size(code, axis));
            code.b.bin("udiv", &block, &size)
        }
        Special::NClusterId(axis) => {
            let (grid, size) = (grid(code, axis), size(code, axis));
            code.b.bin("udiv", &grid, &size)
        }
        Special::ClusterCtaid(axis) => {
            let (block, size) = (block(code, axis), size(code, axis));
            code.b.bin("urem", &block, &size)
        }
        Special::ClusterNctaid(axis) => size(code, axis),
        Special::ClusterCtaRank if clustered => code.load_field("%worker", worker::CLUSTER_RANK, word),
        Special::ClusterCtaRank => number(0),
        _ => {
            let [x, y, z] = [0, 1, 2].map(|axis| size(code, axis));
            let rows = code.b.bin("mul", &x, &y);
            code.b.bin("mul", &rows, &z)
        }
    }
}

fn lane(code: &mut Code<'_>) -> Val {
    let linear = code.load_field("%thread", thread::LINEAR, Type::int(32, 1));
    code.b.bin_int("and", &linear, 31)
}

/// A register that is different each time.
fn read_clock(code: &mut Code<'_>, special: Special, to: Type) -> Val {
    let wide = Type::int(64, 1);
    let is_timer = matches!(special, Special::GlobalTimer | Special::GlobalTimerLo | Special::GlobalTimerHi);
    let ticks = if is_timer {
        let function = code.service(service::GLOBAL_TIMER);
        code.b.assign(wide, format_args!("call i64 {}()", function.text))
    } else {
        code.b.intrinsic("readcyclecounter", &[], wide, &[])
    };
    let ticks = match special {
        Special::ClockHi | Special::GlobalTimerHi => code.b.bin_int("lshr", &ticks, 32),
        _ => ticks,
    };
    code.b.resize(&ticks, to.bits(), false)
}
