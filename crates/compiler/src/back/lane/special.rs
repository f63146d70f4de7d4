//! Special registers.

use super::code::Code;
use super::layout::{launch, service, thread, worker};
use crate::back::llvm::{Builder, Type, Val};
use crate::ir::Special;

/// A register that never changes while the thread lives.
pub fn read(code: &mut Code<'_>, special: Special, to: Type) -> Val {
    let word = Type::int(32, 1);
    let block = code.options.block;
    let n_warps = block.iter().map(|n| u64::from(*n)).product::<u64>().div_ceil(32);
    let number = |value: u64| Builder::int(word, i128::from(value));
    let value = match special {
        // The fourth component of every vector register is 0.
        Special::Tid(3..)
        | Special::Ntid(3..)
        | Special::Ctaid(3..)
        | Special::Nctaid(3..)
        | Special::ClusterId(3..)
        | Special::NClusterId(3..)
        | Special::ClusterNctaid(3..) => number(0),
        Special::Tid(axis) => code.load_field("%thread", thread::TID + 4 * i64::from(axis), word),
        Special::Ntid(axis) => number(u64::from(block[usize::from(axis)])),
        // Without clusters each block is one.
        Special::Ctaid(axis) | Special::ClusterId(axis) => {
            code.load_field("%worker", worker::BLOCK + 4 * i64::from(axis), word)
        }
        Special::Nctaid(axis) | Special::NClusterId(axis) => {
            code.load_field("%launch", launch::GRID + 4 * i64::from(axis), word)
        }
        Special::ClusterCtaid(_)
        | Special::ClusterCtaRank
        | Special::IsExplicitCluster
        | Special::EnvReg(_) => number(0),
        Special::ClusterNctaid(_) | Special::ClusterNctaRank => number(1),
        Special::LaneId => lane(code),
        Special::WarpId => {
            let linear = code.load_field("%thread", thread::LINEAR, word);
            code.b.bin_int("lshr", &linear, 5)
        }
        Special::NWarpId => number(n_warps),
        Special::SmId => code.load_field("%worker", worker::NUMBER, word),
        Special::NSmId => code.load_field("%launch", launch::N_WORKERS, word),
        Special::GridId => code.load_field("%launch", launch::GRID_ID, Type::int(64, 1)),
        Special::LaneMaskEq
        | Special::LaneMaskLe
        | Special::LaneMaskLt
        | Special::LaneMaskGe
        | Special::LaneMaskGt => lane_mask(code, special),
        Special::DynamicSmemSize => code.load_field("%launch", launch::DYNAMIC_SHARED, word),
        Special::TotalSmemSize | Special::AggrSmemSize => {
            code.load_field("%worker", worker::SHARED_BYTES, word)
        }
        clock => return read_clock(code, clock, to),
    };
    code.b.resize(&value, to.bits(), false)
}

fn lane(code: &mut Code<'_>) -> Val {
    let linear = code.load_field("%thread", thread::LINEAR, Type::int(32, 1));
    code.b.bin_int("and", &linear, 31)
}

fn lane_mask(code: &mut Code<'_>, special: Special) -> Val {
    let lane = lane(code);
    let one = Builder::int(lane.ty, 1);
    let equal = code.b.bin("shl", &one, &lane);
    let less = code.b.bin_int("sub", &equal, 1);
    match special {
        Special::LaneMaskEq => equal,
        Special::LaneMaskLt => less,
        Special::LaneMaskLe => code.b.or(&less, &equal),
        Special::LaneMaskGe => code.b.not(&less),
        _ => {
            let or_equal = code.b.or(&less, &equal);
            code.b.not(&or_equal)
        }
    }
}

/// A register that is different each time.
pub fn read_clock(code: &mut Code<'_>, special: Special, to: Type) -> Val {
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
