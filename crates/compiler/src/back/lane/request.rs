//! What a thread asks of the others: barriers and warp collectives.

use super::code::Code;
use super::layout::thread;
use crate::back::llvm::inst::matrix::{self, warpgroup};
use crate::back::llvm::{Builder, Type, Unsupported, Val};
use crate::ir::{BarrierKind, Inst, Op, ReduxOp, ShflMode, Space, VoteMode};
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
        _ => return None,
    })
}

/// Writes the request into the thread record.
pub fn ask(code: &mut Code<'_>, inst: &Inst) -> Result<(), Unsupported> {
    let (kind, flags) = number(&inst.op).ok_or_else(|| Unsupported(format!("{:?}", inst.op)))?;
    let args = match &inst.op {
        Op::Mma(mma) => {
            let function = matrix::function(&mut code.b, mma)?;
            let registers: Vec<Val> = inst.args[..mma.lane_words().len()]
                .iter()
                .map(|&arg| code.get(arg))
                .collect::<Result<_, _>>()?;
            bring(code, function, &registers, mma.register_bytes(), inst)
        }
        Op::Wgmma(wgmma) => {
            let function = warpgroup::exchange(&mut code.b, wgmma)?;
            let registers = warpgroup_words(code, wgmma, inst)?;
            bring(code, function, &registers, wgmma.mma.register_bytes(), inst)
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

/// Writes the lane's registers behind its saved values. The arguments: the function for all lanes' registers, where
/// they lie in the record, how many there are, and how many it gives.
fn bring(code: &mut Code<'_>, function: String, registers: &[Val], bytes: u32, inst: &Inst) -> Vec<Val> {
    let at = code.plan.exchange as i64;
    for (nth, val) in (0..).zip(registers) {
        code.store_field(at + nth * i64::from(bytes), val);
    }
    let wide = Type::int(64, 1);
    let function = Val::new(Type::ptr(), function);
    let function = code.b.cast("ptrtoint", &function, wide);
    let numbers = [at as usize, registers.len(), inst.results.len()];
    std::iter::once(function).chain(numbers.map(|it| Builder::int(wide, it as i128))).collect()
}

/// What a lane brings to a product of four warps.
fn warpgroup_words(code: &mut Code<'_>, wgmma: &Wgmma, inst: &Inst) -> Result<Vec<Val>, Unsupported> {
    let given = wgmma.operands(inst);
    let mut words = vec![];
    for &register in given.registers() {
        words.push(code.get(register)?);
    }
    let (wide, window) = (Type::int(64, 1), code.get(given.window)?);
    let a = match wgmma.a {
        Some(_) => code.get(given.a[0])?,
        None => Builder::int(wide, 0),
    };
    let b = code.get(given.b)?;
    let shared = code.pointer(Space::Shared, &window, 0);
    let shared = code.b.cast("ptrtoint", &shared, wide);
    for long in [a, b, shared] {
        words.push(code.b.resize(&long, 32, false));
        let high = code.b.bin_int("lshr", &long, 32);
        words.push(code.b.resize(&high, 32, false));
    }
    words.push(code.get(given.warp)?);
    let keeps = code.get(given.keeps)?;
    words.push(code.b.resize(&keeps, 32, false));
    for &register in given.d {
        words.push(code.get(register)?);
    }
    Ok(words)
}

/// Takes the results out of the thread record.
pub fn answer(code: &mut Code<'_>, inst: &Inst) {
    let product = match &inst.op {
        Op::Mma(mma) => Some(mma),
        Op::Wgmma(wgmma) => Some(&wgmma.mma),
        _ => None,
    };
    if let Some(mma) = product {
        let (at, bytes) = (code.plan.exchange as i64, i64::from(mma.register_bytes()));
        for (i, result) in inst.results.iter().enumerate() {
            let to = Type::of(code.function.ty(*result), 1);
            let value = code.load_field("%thread", at + i as i64 * bytes, to);
            code.set(*result, &value);
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
