//! Special registers, and addresses of the windows of a block and of a thread.

use super::Emitter;
use crate::back::lane::layout::launch;
use crate::back::llvm::{self, Builder, Type, Val};
use crate::ir::{CLUSTER_SHIFT, Inst, Op, Space, Special, TENSOR_MEMORY};
use crate::pass::divergence::Divergence;

fn i32_ty() -> Type {
    Type::int(32, 1)
}

fn named(text: &str) -> Val {
    Val::new(i32_ty(), text)
}

fn number(value: u64) -> Val {
    named(&value.to_string())
}

impl Emitter<'_> {
    /// A register or address that is the same for the whole block.
    pub(super) fn block_special(&mut self, op: &Op, arg: Option<&Val>) -> Result<Val, String> {
        let wide = Type::int(64, 1);
        Ok(match op {
            Op::Special(register) => self.block_register(*register)?,
            Op::ParamAddr(offset) => self.i64(u64::from(*offset)),
            Op::SharedAddr(id) => {
                let found = self.kernel.shared.offsets.iter().find(|(known, _)| known == id);
                let (_, offset) = found.ok_or("a shared variable has no place")?;
                if self.clustered {
                    self.b.assign(wide, format_args!("add i64 %shared.first, {offset}"))
                } else {
                    self.i64(*offset)
                }
            }
            Op::LocalAddr(id) => {
                let offset = self.locals.get(id.index()).copied().ok_or("a local variable has no place")?;
                self.i64(offset)
            }
            Op::GlobalAddr(id) => self.table("%globals", id.index()),
            Op::FuncAddr(id) => self.table("%functions", id.index()),
            Op::Cvta { space, to_generic } => {
                let arg = arg.ok_or("cvta of nothing")?.clone();
                let op = if *to_generic { "add" } else { "sub" };
                match space {
                    Space::Shared => {
                        let base = self.b.assign(wide, "ptrtoint ptr %shared to i64");
                        self.b.bin(op, &arg, &base)
                    }
                    Space::Param => {
                        let base = self.b.assign(wide, "ptrtoint ptr %params to i64");
                        self.b.bin(op, &arg, &base)
                    }
                    _ => arg,
                }
            }
            _ => return Err(format!("setting `simd` does not have {op:?}")),
        })
    }

    fn table(&mut self, table: &str, index: usize) -> Val {
        let at = self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {table}, i64 {}", index * 8));
        self.b.assign(Type::int(64, 1), format_args!("load i64, ptr {}, !invariant.load !0", at.text))
    }

    fn launch_word(&mut self, offset: i64) -> Val {
        self.launch_field(offset, i32_ty())
    }

    fn launch_field(&mut self, offset: i64, ty: Type) -> Val {
        let at = self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr %launch, i64 {offset}"));
        self.b.assign(ty, format_args!("load {ty}, ptr {}, !invariant.load !0", at.text))
    }

    /// Where the block lies in its cluster and the cluster in the grid.
    fn in_cluster(&mut self, register: Special) -> Option<Val> {
        let axes = ["x", "y", "z"];
        let of =
            |what: &str, axis: u8| axes.get(usize::from(axis)).map(|axis| named(&format!("%{what}.{axis}")));
        let divided = |me: &mut Self, op: &str, what: &str, axis: u8| {
            let (whole, size) = (of(what, axis), of("cluster", axis));
            match (whole, size) {
                (Some(whole), Some(size)) => me.b.bin(op, &whole, &size),
                _ => number(0),
            }
        };
        Some(match register {
            Special::ClusterId(axis) => divided(self, "udiv", "ctaid", axis),
            Special::NClusterId(axis) => divided(self, "udiv", "grid", axis),
            Special::ClusterCtaid(axis) => divided(self, "urem", "ctaid", axis),
            Special::ClusterNctaid(axis) => of("cluster", axis).unwrap_or_else(|| number(0)),
            Special::ClusterCtaRank => named("%cluster.rank"),
            Special::ClusterNctaRank => named("%cluster.blocks"),
            _ => return None,
        })
    }

    fn block_register(&mut self, register: Special) -> Result<Val, String> {
        if self.clustered
            && let Some(val) = self.in_cluster(register)
        {
            return Ok(val);
        }
        Ok(match register {
            Special::Ntid(0) if self.threads.open => named("%ntid.x"),
            Special::Ntid(d) => number(self.threads.ntid(d).unwrap_or(0).into()),
            Special::Tid(_) | Special::LaneId | Special::WarpId => {
                return Err("not one for the block".to_owned());
            }
            Special::Ctaid(0) | Special::ClusterId(0) => named("%ctaid.x"),
            Special::Ctaid(1) | Special::ClusterId(1) => named("%ctaid.y"),
            Special::Ctaid(2) | Special::ClusterId(2) => named("%ctaid.z"),
            Special::Nctaid(0) | Special::NClusterId(0) => named("%grid.x"),
            Special::Nctaid(1) | Special::NClusterId(1) => named("%grid.y"),
            Special::Nctaid(2) | Special::NClusterId(2) => named("%grid.z"),
            Special::Ctaid(_) | Special::ClusterId(_) => number(0),
            Special::Nctaid(_) | Special::NClusterId(_) => number(0),
            Special::SmId => named("%smid"),
            Special::NSmId => named("%workers"),
            Special::GridId => Val::new(Type::int(64, 1), "%gridid"),
            Special::CurrentGraph => self.launch_field(launch::GRAPH, Type::int(64, 1)),
            Special::DynamicSmemSize => named("%dynamic"),
            Special::TotalSmemSize | Special::AggrSmemSize => named("%shared.bytes"),
            Special::TensorMemory if self.clustered => {
                let part = self.b.bin_int("shl", &named("%cluster.rank"), CLUSTER_SHIFT.into());
                self.b.bin_int("add", &part, TENSOR_MEMORY.into())
            }
            Special::TensorMemory => number(TENSOR_MEMORY.into()),
            Special::ClusterCtaid(_) | Special::ClusterCtaRank => number(0),
            Special::ClusterNctaid(_) | Special::ClusterNctaRank => number(1),
            Special::IsExplicitCluster => {
                let word = self.launch_word(launch::EXPLICIT_CLUSTER);
                self.b.icmp_int("ne", &word, 0)
            }
            // The high and the low word of the address of the grid's workspace.
            Special::EnvReg(1) => self.launch_word(launch::WORKSPACE + 4),
            Special::EnvReg(2) => self.launch_word(launch::WORKSPACE),
            Special::EnvReg(_) => number(0),
            other => return Err(format!("setting `simd` does not have {other:?}")),
        })
    }

    /// Registers and addresses that depend on the thread or the time.
    pub(super) fn special(&mut self, inst: &Inst) -> Result<(), String> {
        let result = inst.results[0];
        match &inst.op {
            Op::Special(register) => self.register(*register, inst),
            Op::Cvta { space: Space::Local, to_generic } => {
                // Thread t's window starts at t × local_bytes.
                let bytes = self.local_bytes;
                let base = self.b.assign(Type::int(64, 1), "ptrtoint ptr %local to i64");
                let first = self.first_name();
                let step = self.b.assign(Type::int(64, 1), format_args!("mul i64 {first}, {bytes}"));
                let start = self.b.add(&base, &step);
                let op = if *to_generic { "add" } else { "sub" };
                if self.divergence(result).is_varying() || self.divergence(result).is_assumed() {
                    let arg = self.vector(inst.args[0]);
                    let starts = self.splat(&start);
                    let steps = self.iota(64, bytes as i64);
                    let starts = self.b.add(&starts, &steps);
                    let val = self.b.bin(op, &arg, &starts);
                    self.define_vector(result, val);
                }
                if !self.divergence(result).is_varying() {
                    let arg = self.scalar(inst.args[0]);
                    let val = self.b.bin(op, &arg, &start);
                    self.define_scalar(result, val);
                }
                Ok(())
            }
            Op::Cvta { .. } => {
                let arg = inst.args[0];
                if self.divergence(result).is_varying() || self.divergence(result).is_assumed() {
                    let vector = self.vector(arg);
                    let zero = Builder::bits(Type::int(64, 1), 0);
                    let base = self.block_special(&inst.op, Some(&zero))?;
                    let base = self.splat(&base);
                    let val = self.b.add(&vector, &base);
                    self.define_vector(result, val);
                }
                if !self.divergence(result).is_varying() {
                    let scalar = self.scalar(arg);
                    let val = self.block_special(&inst.op, Some(&scalar))?;
                    self.define_scalar(result, val);
                }
                Ok(())
            }
            Op::LocalAddr(_) => {
                let val = self.block_special(&inst.op, None)?;
                self.define_scalar(result, val);
                Ok(())
            }
            Op::IsSpace(space) => {
                let address = self.vector(inst.args[0]);
                let val = self.is_space(*space, &address);
                if self.divergence(result).is_varying() {
                    self.define_vector(result, val);
                } else {
                    let first = self.extract(&val, "0");
                    self.define_scalar(result, first);
                }
                Ok(())
            }
            op => Err(format!("setting `simd` does not have {op:?}")),
        }
    }

    /// Whether generic addresses lie in `window .. window + bytes`.
    fn within(&mut self, address: &Val, window: &str, bytes: &Val) -> Val {
        let base = self.b.assign(Type::int(64, 1), format_args!("ptrtoint ptr {window} to i64"));
        let (base, bytes) = (self.splat(&base), self.splat(bytes));
        let offset = self.b.sub(address, &base);
        self.b.icmp("ult", &offset, &bytes)
    }

    /// Whether generic addresses lie in the shared memory of any block of the cluster.
    fn is_cluster_shared(&mut self, address: &Val) -> Val {
        if !self.clustered {
            return self.is_space(Space::Shared, address);
        }
        let blocks = self.b.assign(Type::int(64, 1), "zext i32 %cluster.blocks to i64");
        let bytes = self.b.bin_int("shl", &blocks, i128::from(CLUSTER_SHIFT));
        self.within(address, "%shared", &bytes)
    }

    /// `each` for every thread of the block, in 64 bits.
    pub(super) fn times_threads(&mut self, each: u64) -> Val {
        if !self.threads.open {
            return self.i64(each * self.threads.total());
        }
        let n_threads = self.b.assign(Type::int(64, 1), "zext i32 %ntid.x to i64");
        self.b.bin_int("mul", &n_threads, each.into())
    }

    fn is_space(&mut self, space: Space, address: &Val) -> Val {
        match space {
            Space::Generic => Builder::bits(self.mask_ty(), 1),
            Space::Shared => {
                let own = if self.clustered { "%shared.own" } else { "%shared" };
                let bytes = self.b.assign(Type::int(64, 1), "zext i32 %shared.bytes to i64");
                self.within(address, own, &bytes)
            }
            Space::Local => {
                let bytes = self.times_threads(self.local_bytes);
                self.within(address, "%local", &bytes)
            }
            Space::Param => {
                let bytes = self.i64(self.kernel.params_bytes.into());
                self.within(address, "%params", &bytes)
            }
            Space::Const => {
                let mut any = Builder::bits(self.mask_ty(), 0);
                for (index, bytes) in self.constants.clone() {
                    let start = self.table("%globals", index);
                    let (start, bytes) = (self.splat(&start), self.i64(bytes.max(1)));
                    let (offset, bytes) = (self.b.sub(address, &start), self.splat(&bytes));
                    let inside = self.b.icmp("ult", &offset, &bytes);
                    any = self.b.or(&any, &inside);
                }
                any
            }
            // The parameters lie in the global window.
            Space::Global => {
                let mut elsewhere = self.is_space(Space::Const, address);
                let shared = self.is_cluster_shared(address);
                let local = self.is_space(Space::Local, address);
                for inside in [shared, local] {
                    elsewhere = self.b.or(&elsewhere, &inside);
                }
                self.b.not(&elsewhere)
            }
        }
    }

    /// Linear number of the group's first thread, as `i64`.
    pub(super) fn first_name(&self) -> String {
        if self.per_warp { "%warp.first".to_owned() } else { format!("%first{}", self.region) }
    }

    /// The same as `i32`.
    pub(super) fn linear_name(&self) -> String {
        if self.per_warp { "%warp.linear".to_owned() } else { format!("%lin{}", self.region) }
    }

    fn linear(&self) -> Val {
        named(&self.linear_name())
    }

    /// Linear thread numbers of all lanes.
    fn linears(&mut self) -> Val {
        let first = self.linear();
        let first = self.splat(&first);
        let steps = self.iota(32, 1);
        self.b.add(&first, &steps)
    }

    fn register(&mut self, register: Special, inst: &Inst) -> Result<(), String> {
        let result = inst.results[0];
        let [bx, by, _] = self.threads.block;
        let varying = self.divergence(result).is_varying();
        let start = if varying { self.linears() } else { self.linear() };
        let lane = |me: &mut Self| {
            let linear = me.linears();
            me.b.bin_int("and", &linear, 31)
        };
        let val = match register {
            Special::Tid(d) => {
                if matches!(self.divergence(result), Divergence::Uniform)
                    && self.threads.block.get(usize::from(d)) == Some(&1)
                {
                    number(0)
                } else {
                    let (below, size) = match d {
                        0 => (1, bx),
                        1 => (bx, by),
                        _ => (bx * by, self.threads.block[2]),
                    };
                    let over = if below == 1 { start } else { self.b.bin_int("udiv", &start, below.into()) };
                    // The last dimension needs no remainder; lanes beyond the block are never alive.
                    let is_last = u64::from(below) * u64::from(size) == self.threads.total();
                    if is_last { over } else { self.b.bin_int("urem", &over, size.into()) }
                }
            }
            Special::LaneId => self.b.bin_int("and", &start, 31),
            Special::WarpId => self.b.bin_int("lshr", &start, 5),
            Special::LaneMaskEq
            | Special::LaneMaskLt
            | Special::LaneMaskLe
            | Special::LaneMaskGe
            | Special::LaneMaskGt => {
                let lane = lane(self);
                llvm::lane::mask(&mut self.b, register, &lane)
            }
            Special::Clock | Special::ClockHi | Special::Clock64 => {
                let now = self.b.intrinsic("readcyclecounter", &[], Type::int(64, 1), &[]);
                self.part(now, register == Special::Clock, register == Special::ClockHi)
            }
            Special::GlobalTimer | Special::GlobalTimerLo | Special::GlobalTimerHi => {
                let service = self.service(4);
                let now = self.b.assign(Type::int(64, 1), format_args!("call i64 {service}()"));
                self.part(now, register == Special::GlobalTimerLo, register == Special::GlobalTimerHi)
            }
            other => {
                let val = self.block_register(other)?;
                self.define_from_scalar(result, val);
                return Ok(());
            }
        };
        if val.ty.lanes > 1 {
            self.define_vector(result, val);
        } else {
            self.define_from_scalar(result, val);
        }
        Ok(())
    }

    fn part(&mut self, now: Val, low: bool, high: bool) -> Val {
        if high {
            let shifted = self.b.bin_int("lshr", &now, 32);
            self.b.resize(&shifted, 32, false)
        } else if low {
            self.b.resize(&now, 32, false)
        } else {
            now
        }
    }
}
