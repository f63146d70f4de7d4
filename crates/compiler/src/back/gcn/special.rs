//! Special registers.

use super::code::{Code, Result};
use super::launch::field;
use super::target::Family;
use crate::back::llvm::{self, Builder, Type, Unsupported, Val};
use crate::ir::Special;

const AXES: [&str; 3] = ["x", "y", "z"];

impl Code<'_> {
    pub fn special(&mut self, special: Special, to: Type) -> Result<Val> {
        let word = Type::int(32, 1);
        let wide = Type::int(64, 1);
        let number = |value: u64| Builder::int(word, i128::from(value));
        let value = match special {
            // The fourth component of every vector register is 0.
            Special::Tid(3..)
            | Special::Ntid(3..)
            | Special::Ctaid(3..)
            | Special::Nctaid(3..)
            | Special::ClusterId(3..)
            | Special::NClusterId(3..)
            | Special::ClusterCtaid(_)
            | Special::ClusterNctaid(3..) => number(0),
            Special::Tid(axis) => self.thread(axis),
            // A block is a cluster of its own: launches of larger ones are refused.
            Special::Ctaid(axis) | Special::ClusterId(axis) => self.hardware("workgroup", axis),
            Special::Ntid(axis) => self.block_dim(axis),
            Special::Nctaid(axis) | Special::NClusterId(axis) => {
                self.launch(field::GRID + 4 * u32::from(axis), word)
            }
            Special::ClusterNctaid(_) | Special::ClusterNctaRank => number(1),
            Special::ClusterCtaRank | Special::IsExplicitCluster => number(0),
            Special::EnvReg(1) => self.launch(field::WORKSPACE + 4, word),
            Special::EnvReg(2) => self.launch(field::WORKSPACE, word),
            Special::EnvReg(_) => number(0),
            Special::LaneId => self.lane(),
            Special::WarpId => {
                let linear = self.linear_thread();
                self.b.bin_int("lshr", &linear, 5)
            }
            Special::NSmId => self.launch(field::MULTIPROCESSORS, word),
            Special::SmId => self.multiprocessor(),
            Special::GridId => self.launch(field::GRID_ID, wide),
            Special::CurrentGraph => self.launch(field::GRAPH, wide),
            Special::LaneMaskEq
            | Special::LaneMaskLe
            | Special::LaneMaskLt
            | Special::LaneMaskGe
            | Special::LaneMaskGt => {
                let lane = self.lane();
                llvm::lane::mask(&mut self.b, special, &lane)
            }
            // A block's has 256 KiB, its LDS 64 KiB.
            Special::TensorMemory => {
                return Err(Unsupported("there is no room for tensor memory".to_owned()));
            }
            Special::DynamicSmemSize => self.launch(field::DYNAMIC_SHARED, word),
            Special::TotalSmemSize | Special::AggrSmemSize => {
                let dynamic = self.launch(field::DYNAMIC_SHARED, word);
                self.b.bin_int("add", &dynamic, i128::from(self.unit.shared.bytes()))
            }
            Special::Clock | Special::Clock64 => self.cycles(),
            Special::ClockHi => {
                let ticks = self.cycles();
                self.b.bin_int("lshr", &ticks, 32)
            }
            Special::GlobalTimer | Special::GlobalTimerLo => self.nanoseconds(),
            Special::GlobalTimerHi => {
                let time = self.nanoseconds();
                self.b.bin_int("lshr", &time, 32)
            }
        };
        Ok(self.b.resize(&value, to.bits(), false))
    }

    pub fn hardware(&mut self, of: &str, axis: u8) -> Val {
        let name = format!("amdgcn.{of}.id.{}", AXES[usize::from(axis)]);
        self.b.intrinsic(&name, &[], Type::int(32, 1), &[])
    }

    pub fn block_dim(&mut self, axis: u8) -> Val {
        self.launch(field::BLOCK + 4 * u32::from(axis), Type::int(32, 1))
    }

    pub fn block_threads(&mut self) -> Val {
        let [x, y, z] = [0, 1, 2].map(|axis| self.block_dim(axis));
        let layer = self.b.mul(&x, &y);
        self.b.mul(&layer, &z)
    }

    /// Below `%nsmid`, as programs expect that have an array of so many. The hardware numbers engines and what is in them,
    /// with gaps, so two multiprocessors may have one number.
    fn multiprocessor(&mut self) -> Val {
        let family = self.unit.target.family();
        let xcc = match self.unit.target.has_several_dies() {
            // XCC_ID
            true => self.register(20, 0, 4),
            false => Builder::int(Type::int(32, 1), 0),
        };
        let fields = match family {
            // HW_ID: CU_ID, SH_ID, SE_ID
            Family::Gfx9 => [(4, 8, 4), (4, 12, 1), (4, 13, 3)],
            // HW_ID1: WGP_ID, SA_ID, SE_ID
            Family::Gfx10 => [(23, 10, 4), (23, 16, 1), (23, 18, 2)],
            Family::Gfx11 | Family::Gfx12 => [(23, 10, 4), (23, 16, 1), (23, 18, 3)],
        };
        let mut number = xcc;
        for (register, first, bits) in fields.into_iter().rev() {
            let field = self.register(register, first, bits);
            let above = self.b.bin_int("shl", &number, i128::from(bits));
            number = self.b.or(&above, &field);
        }
        let all = self.launch(field::MULTIPROCESSORS, Type::int(32, 1));
        self.b.bin("urem", &number, &all)
    }

    /// Bits of a hardware register.
    fn register(&mut self, number: u32, first: u32, bits: u32) -> Val {
        let word = Type::int(32, 1);
        self.b.declare("llvm.amdgcn.s.getreg", "declare i32 @llvm.amdgcn.s.getreg(i32 immarg)");
        let which = number | first << 6 | (bits - 1) << 11;
        self.b.assign(word, format_args!("call i32 @llvm.amdgcn.s.getreg(i32 {which})"))
    }

    /// `%clock64`.
    fn cycles(&mut self) -> Val {
        match self.unit.target.family() {
            // HIP differs: of gfx11's cycles only 20 bits can be read, and a loop that waits for more would have no end. Its
            // `%clock64` counts nanoseconds, in steps of the GPU's constant clock.
            Family::Gfx11 => self.nanoseconds(),
            _ => self.b.intrinsic("readcyclecounter", &[], Type::int(64, 1), &[]),
        }
    }

    /// The constant clock in nanoseconds.
    fn nanoseconds(&mut self) -> Val {
        let wide = Type::int(64, 1);
        let ticks = if self.unit.target.family() >= Family::Gfx11 {
            // MSG_RTN_GET_REALTIME
            let message = Builder::int(Type::int(32, 1), 131);
            self.b.intrinsic("amdgcn.s.sendmsg.rtn", &[wide], wide, &[&message])
        } else {
            self.b.intrinsic("amdgcn.s.memrealtime", &[], wide, &[])
        };
        let tick = self.launch(field::TICK, wide);
        let (ticks, tick) = (self.b.resize(&ticks, 128, false), self.b.resize(&tick, 128, false));
        let time = self.b.mul(&ticks, &tick);
        let time = self.b.bin_int("lshr", &time, 32);
        self.b.resize(&time, 64, false)
    }
}
