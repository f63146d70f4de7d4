//! What a thread asks of the others: barriers and warp collectives.

use super::code::Code;
use super::layout::thread;
use super::plan;
use crate::back::llvm::{Builder, Type, Unsupported, Val};
use crate::exchange::Exchange;
use crate::ir::{BarrierKind, Inst, Op, ReduxOp, ShflMode, Value, VoteMode};
use crate::matrix::Wgmma;

/// Kind and flags as docs/architecture.md numbers them.
fn number(op: &Op) -> Option<(u32, u32)> {
    Some(match op {
        Op::Barrier { kind, .. } => (
            1,
            match kind {
                BarrierKind::Sync => 0,
                BarrierKind::Arrive => 1,
                BarrierKind::RedPopc => 2,
                BarrierKind::RedAnd => 3,
                BarrierKind::RedOr => 4,
            },
        ),
        Op::Shfl(mode) => (
            2,
            match mode {
                ShflMode::Up => 0,
                ShflMode::Down => 1,
                ShflMode::Bfly => 2,
                ShflMode::Idx => 3,
            },
        ),
        Op::Vote(mode) => (
            3,
            match mode {
                VoteMode::All => 0,
                VoteMode::Any => 1,
                VoteMode::Uni => 2,
                VoteMode::Ballot => 3,
            },
        ),
        Op::Match { all, .. } => (4, u32::from(*all)),
        Op::Redux(op, int) => {
            let flag = match op {
                ReduxOp::Add => 0,
                ReduxOp::Min => 1,
                ReduxOp::Max => 2,
                ReduxOp::And => 3,
                ReduxOp::Or => 4,
                ReduxOp::Xor => 5,
            };
            (5, flag + if int.signed { 8 } else { 0 })
        }
        Op::ActiveMask => (6, 0),
        Op::Elect => (7, 0),
        Op::WarpSync => (8, 0),
        Op::ClusterBarrier { wait: false } => (9, 0),
        Op::ClusterBarrier { wait: true } => (10, 0),
        Op::Mma(mma) => (11, mma.register_bytes()),
        Op::Wgmma(wgmma) => (11, wgmma.mma.register_bytes()),
        Op::MatrixRows(_) => (11, 4),
        _ => return None,
    })
}

/// Writes the request into the thread record.
pub fn ask(code: &mut Code<'_>, inst: &Inst) -> Result<(), Unsupported> {
    let (kind, mut flags) = number(&inst.op).ok_or_else(|| Unsupported(format!("{:?}", inst.op)))?;
    if plan::exchanges(&inst.op) && code.is_baseline() {
        flags |= IS_SHARED;
    }
    let args = match &inst.op {
        Op::Mma(mma) => {
            let function = function(code, Exchange::Mma(*mma))?;
            let mut brought = Brought::default();
            for &register in &inst.args[..mma.lane_words().len()] {
                brought.register(code, register)?;
            }
            brought.exchange(code, &function, inst)
        }
        Op::Wgmma(wgmma) => {
            let function = function(code, Exchange::Wgmma(*wgmma))?;
            let brought = warpgroup_words(code, wgmma, inst)?;
            brought.exchange(code, &function, inst)
        }
        Op::MatrixRows(moved) => {
            let function = function(code, Exchange::Rows(*moved))?;
            let mut brought = Brought::default();
            let (base, offset) = (inst.args[0], Builder::int(Type::int(32, 1), moved.offset.into()));
            // An offset in the shared window fits 32 bits.
            brought.halves(code, base)?;
            brought.offsets.pop();
            brought.write(code, &offset);
            for &register in &inst.args[1..inst.args.len() - 1] {
                brought.register(code, register)?;
            }
            brought.exchange(code, &function, inst)
        }
        _ => code.args(inst)?,
    };
    if args.len() > 4 {
        return Err(Unsupported(format!("{:?} with {} arguments", inst.op, args.len())));
    }
    // The top bit: every thread of the warp must come to this very instruction.
    let is_barrier = matches!(inst.op, Op::Barrier { .. });
    let aligned = matches!(inst.op, Op::Barrier { aligned: true, .. });
    let position = code.program.lines.number(inst.pos) | u32::from(aligned) << 31;
    let site = pair(code.site(), position);
    let what = pair(kind, flags);
    if !code.is_baseline() {
        write(code, &what, &site, &args, is_barrier);
        return Ok(());
    }
    // The same request at each of its places.
    let name = format!("ask {kind} {flags}");
    let given: Vec<Val> = std::iter::once(site).chain(args).collect();
    code.told(&name, &given, |code, params| write(code, &what, &params[0], &params[1..], is_barrier));
    Ok(())
}

/// Writes the fields of the record.
fn write(code: &mut Code<'_>, what: &Val, site: &Val, args: &[Val], is_barrier: bool) {
    let wide = Type::int(64, 1);
    let mut fields: [Option<Val>; 4] = [const { None }; 4];
    if is_barrier {
        fields[1] = Some(Builder::int(wide, 0));
    }
    for (i, arg) in args.iter().enumerate() {
        // A reduction's predicate is its last argument and always goes to the third place.
        let is_predicate = is_barrier && arg.ty.bits() == 1;
        let place = if is_predicate { 2 } else { i };
        let bits = code.b.to_bits(arg);
        fields[place] = Some(code.b.resize(&bits, 64, false));
    }
    code.store_field(thread::KIND, what);
    for (i, field) in fields.iter().enumerate() {
        if let Some(field) = field {
            code.store_field(thread::ARGS + 8 * i as i64, field);
        }
    }
    code.store_field(thread::SITE, site);
}

/// Two fields that follow each other.
fn pair(first: u32, second: u32) -> Val {
    Builder::int(Type::int(64, 1), i128::from(u64::from(second) << 32 | u64::from(first)))
}

/// Where the address of the exchange's function stands: baseline code finds that in the process, other code brings both along.
fn function(code: &mut Code<'_>, exchange: Exchange) -> Result<String, Unsupported> {
    if code.is_baseline() {
        let name = format!("@{}", exchange.name());
        code.b.declare(&name, format!("{name} = external constant ptr"));
        return Ok(name);
    }
    let function = exchange.function(&mut code.b)?;
    let name = format!("@slot.{}", exchange.name());
    code.b.declare(&name, format!("{name} = internal constant ptr {function}"));
    Ok(name)
}

/// A flag of exchanges: the function is the process's.
const IS_SHARED: u32 = 1 << 8;

/// What a lane brings to an exchange: where the registers are in its record.
#[derive(Default)]
struct Brought {
    /// [`ZERO`] for a register that is zero.
    offsets: Vec<u64>,
    /// Those without places of their own.
    n_written: u64,
}

/// In the place of an offset.
const ZERO: u64 = u32::MAX as u64;

impl Brought {
    fn register(&mut self, code: &mut Code<'_>, value: Value) -> Result<(), Unsupported> {
        match code.place(value.index()) {
            Some(offset) => self.offsets.push(offset),
            None => {
                let val = code.get(value)?;
                self.write(code, &val);
            }
        }
        Ok(())
    }

    /// A number of 64 bits as two registers.
    fn halves(&mut self, code: &mut Code<'_>, value: Value) -> Result<(), Unsupported> {
        match code.place(value.index()) {
            Some(offset) => self.offsets.extend([offset, offset + 4]),
            None => {
                let val = code.get(value)?;
                self.write_halves(code, &val);
            }
        }
        Ok(())
    }

    fn write_halves(&mut self, code: &mut Code<'_>, val: &Val) {
        self.write(code, val);
        let low = self.offsets[self.offsets.len() - 1];
        self.offsets.push(if low == ZERO { ZERO } else { low + 4 });
    }

    fn write(&mut self, code: &mut Code<'_>, val: &Val) {
        if Builder::constant_int(val) == Some(0) {
            self.offsets.push(ZERO);
            return;
        }
        let offset = self.next(code);
        code.store_field(offset as i64, val);
        self.offsets.push(offset);
    }

    /// Memory for a register without a place.
    fn next(&mut self, code: &Code<'_>) -> u64 {
        self.n_written += 1;
        code.plan.exchange + (self.n_written - 1) * plan::EXCHANGED
    }

    /// The arguments of the request: where the function for all lanes' registers is, the table of where they lie in the
    /// record and where the results go, how many there are, and how many it gives.
    fn exchange(mut self, code: &mut Code<'_>, function: &str, inst: &Inst) -> Vec<Val> {
        let n_in = self.offsets.len();
        // What has no place is fetched from there.
        self.n_written = 0;
        for &result in &inst.results {
            let offset = code.place(result.index()).unwrap_or_else(|| self.next(code));
            self.offsets.push(offset);
        }
        let (n_out, site) = (inst.results.len(), code.site());
        let of = code.device_function.map_or(String::new(), |id| format!(".f{}", id.index()));
        let table = format!("@exchange.{site}{of}");
        let items: Vec<String> =
            self.offsets.iter().map(|offset| format!("i32 {}", *offset as u32 as i32)).collect();
        let constant = format!("{table} = internal constant [{} x i32] [{}]", items.len(), items.join(", "));
        code.b.declare(&table, constant);
        let wide = Type::int(64, 1);
        let [function, table] =
            [function, &table].map(|it| Val::new(wide, format!("ptrtoint (ptr {it} to i64)")));
        let numbers = [n_in, n_out].map(|it| Builder::int(wide, it as i128));
        [function, table].into_iter().chain(numbers).collect()
    }
}

/// What a lane brings to a product of four warps.
fn warpgroup_words(code: &mut Code<'_>, wgmma: &Wgmma, inst: &Inst) -> Result<Brought, Unsupported> {
    let given = wgmma.operands(inst);
    let mut brought = Brought::default();
    for &register in given.registers() {
        brought.register(code, register)?;
    }
    match wgmma.a {
        Some(_) => brought.halves(code, given.a[0])?,
        None => brought.write_halves(code, &Builder::int(Type::int(64, 1), 0)),
    }
    brought.halves(code, given.b)?;
    brought.register(code, given.window)?;
    brought.register(code, given.warp)?;
    let keeps = code.get(given.keeps)?;
    let keeps = code.b.resize(&keeps, 32, false);
    brought.write(code, &keeps);
    for &register in given.d {
        brought.register(code, register)?;
    }
    Ok(brought)
}

/// Takes the results out of the thread record.
pub fn answer(code: &mut Code<'_>, inst: &Inst) {
    if plan::exchanges(&inst.op) {
        let without = inst.results.iter().filter(|result| code.place(result.index()).is_none());
        let without: Vec<Value> = without.copied().collect();
        for (nth, result) in (0..).zip(without) {
            let to = Type::of(code.function.ty(result), 1);
            let value = code.load_field("%thread", (code.plan.exchange + nth * plan::EXCHANGED) as i64, to);
            code.set(result, &value);
        }
        return;
    }
    for (i, result) in inst.results.iter().enumerate() {
        if !code.used.contains(result.index()) {
            continue;
        }
        let to = Type::of(code.function.ty(*result), 1);
        let raw = code.load_field("%thread", thread::RESULTS + 8 * i as i64, Type::int(64, 1));
        let bits = code.b.resize(&raw, to.bits(), false);
        let value = code.b.bitcast(&bits, to);
        code.set(*result, &value);
    }
}
