//! Checks the rules of [`crate::ir`]: types of arguments and results, one definition that dominates every use, edges
//! that carry what their target takes. Tests and the fuzzers run it on everything that is lowered.

use crate::ir::{
    AtomOp, AtomTy, BarrierKind, Edge, Float, FloatBin, Function, Inst, Int, IntBin, IntUn, Num, Op, ReduxOp,
    Special, Syscall, Term, Ty, Value, VoteMode,
};

/// What is wrong with the function, if something is.
pub fn verify(function: &Function) -> Result<(), String> {
    let mut defined_in: Vec<Option<(usize, usize)>> = vec![None; function.values.len()];
    let mut define = |value: Value, block: usize, at: usize| {
        let slot = defined_in.get_mut(value.index()).ok_or(format!("{value} has no type"))?;
        if slot.replace((block, at)).is_some() { Err(format!("{value} is defined twice")) } else { Ok(()) }
    };
    for (at, block) in function.blocks.iter().enumerate() {
        for &param in &block.params {
            define(param, at, 0)?;
        }
        for (nth, inst) in block.insts.iter().enumerate() {
            for &result in &inst.results {
                define(result, at, nth + 1)?;
            }
        }
    }
    let entry: Vec<Ty> = function.blocks[0].params.iter().map(|&it| function.ty(it)).collect();
    if entry != function.args {
        return Err(format!("the entry takes {entry:?}, the function {:?}", function.args));
    }
    if function.blocks.iter().any(|block| block.term.edges().iter().any(|edge| edge.block.index() == 0)) {
        return Err("the entry block has a predecessor".to_owned());
    }
    let dominators = dominators(function);
    for (at, block) in function.blocks.iter().enumerate() {
        let visible = |value: Value, before: usize| {
            let Some((home, place)) = defined_in.get(value.index()).copied().flatten() else {
                return Err(format!("bb{at}: {value} has no definition"));
            };
            let dominated = if home == at { place <= before } else { dominates(&dominators, home, at) };
            if dominated {
                Ok(())
            } else {
                Err(format!("bb{at}: {value} of bb{home} does not dominate its use"))
            }
        };
        for (nth, inst) in block.insts.iter().enumerate() {
            for &arg in &inst.args {
                visible(arg, nth)?;
            }
            types(function, inst).map_err(|error| format!("bb{at}: {:?}: {error}", inst.op))?;
        }
        for value in block.term.own_values() {
            visible(value, usize::MAX)?;
        }
        for edge in block.term.edges() {
            for &arg in &edge.args {
                visible(arg, usize::MAX)?;
            }
            edge_types(function, edge).map_err(|error| format!("bb{at}: {error}"))?;
        }
        match &block.term {
            Term::Branch { cond, .. } if function.ty(*cond) != Ty::Pred => {
                return Err(format!("bb{at}: the condition is no predicate"));
            }
            Term::Switch { index, .. } if function.ty(*index) != Ty::B32 => {
                return Err(format!("bb{at}: the index is no b32"));
            }
            Term::Return(values) => {
                let types: Vec<Ty> = values.iter().map(|&it| function.ty(it)).collect();
                if types != function.results {
                    return Err(format!("bb{at}: returns {types:?}, not {:?}", function.results));
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn edge_types(function: &Function, edge: &Edge) -> Result<(), String> {
    let Some(block) = function.blocks.get(edge.block.index()) else {
        return Err(format!("{} does not exist", edge.block));
    };
    let types = |values: &[Value]| values.iter().map(|&it| function.ty(it)).collect::<Vec<_>>();
    let (given, taken) = (types(&edge.args), types(&block.params));
    if given == taken { Ok(()) } else { Err(format!("{} takes {taken:?}, not {given:?}", edge.block)) }
}

/// Immediate dominators by block (Cooper, Harvey, Kennedy); unreachable blocks have none.
fn dominators(function: &Function) -> Vec<Option<usize>> {
    let order = function.reverse_post_order();
    let predecessors = function.predecessors();
    let mut rank = vec![usize::MAX; function.blocks.len()];
    for (nth, block) in order.iter().enumerate() {
        rank[block.index()] = nth;
    }
    let mut idom: Vec<Option<usize>> = vec![None; function.blocks.len()];
    idom[0] = Some(0);
    loop {
        let mut changed = false;
        for block in order.iter().skip(1).map(|it| it.index()) {
            let mut new: Option<usize> = None;
            for from in predecessors[block].iter().map(|it| it.index()).filter(|&it| idom[it].is_some()) {
                new = Some(match new {
                    None => from,
                    Some(mut a) => {
                        let mut b = from;
                        while a != b {
                            while rank[a] > rank[b] {
                                a = idom[a].unwrap_or(0);
                            }
                            while rank[b] > rank[a] {
                                b = idom[b].unwrap_or(0);
                            }
                        }
                        a
                    }
                });
            }
            if idom[block] != new {
                idom[block] = new;
                changed = true;
            }
        }
        if !changed {
            return idom;
        }
    }
}

fn dominates(idom: &[Option<usize>], above: usize, mut block: usize) -> bool {
    loop {
        if block == above {
            return true;
        }
        match idom[block] {
            Some(next) if next != block => block = next,
            _ => return false,
        }
    }
}

fn bits(int: Int) -> Ty {
    Ty::of_bits(u32::from(int.bits))
}

fn num_ty(num: Num) -> Ty {
    match num {
        Num::Int(int) => bits(int),
        Num::Float(float) => float.ty(),
        Num::Tf32 => Ty::B32,
        Num::E4m3x2 | Num::E5m2x2 => Ty::B16,
    }
}

/// Whether arguments and results have the types the operation says.
fn types(function: &Function, inst: &Inst) -> Result<(), String> {
    let args: Vec<Ty> = inst.args.iter().map(|&it| function.ty(it)).collect();
    let results: Vec<Ty> = inst.results.iter().map(|&it| function.ty(it)).collect();
    let expect = |takes: &[Ty], gives: &[Ty]| {
        if args == takes && results == gives {
            Ok(())
        } else {
            Err(format!("takes {args:?} and gives {results:?}, not {takes:?} and {gives:?}"))
        }
    };
    let check = |good: bool| if good { Ok(()) } else { Err(format!("takes {args:?} and gives {results:?}")) };
    use Ty::{B32, B64, Pred};
    match &inst.op {
        Op::Const(_) => check(args.is_empty() && results.len() == 1),
        Op::Special(Special::GridId | Special::CurrentGraph | Special::Clock64 | Special::GlobalTimer) => {
            expect(&[], &[B64])
        }
        Op::Special(Special::IsExplicitCluster) => expect(&[], &[Pred]),
        Op::Special(_) => expect(&[], &[B32]),
        Op::GlobalAddr(_) | Op::SharedAddr(_) | Op::LocalAddr(_) | Op::ParamAddr(_) | Op::FuncAddr(_) => {
            expect(&[], &[B64])
        }
        Op::Cvta { .. } => expect(&[B64], &[B64]),
        Op::IsSpace(_) => expect(&[B64], &[Pred]),
        Op::Bitcast => check(args.len() == 1 && results.len() == 1 && args[0].bits() == results[0].bits()),
        Op::Zext | Op::Sext => {
            check(args.len() == 1 && results.len() == 1 && args[0].bits() < results[0].bits())
        }
        Op::Trunc => check(args.len() == 1 && results.len() == 1 && args[0].bits() > results[0].bits()),
        Op::Pack => {
            check(results.len() == 1 && args.iter().map(|it| it.bits()).sum::<u32>() == results[0].bits())
        }
        Op::Unpack => {
            check(args.len() == 1 && results.iter().map(|it| it.bits()).sum::<u32>() == args[0].bits())
        }
        Op::Int(IntBin::Shl | IntBin::Shr, int) => expect(&[bits(*int), B32], &[bits(*int)]),
        Op::Int(_, int) => expect(&[bits(*int), bits(*int)], &[bits(*int)]),
        Op::IntUn(IntUn::Popc | IntUn::Clz | IntUn::Bfind { .. }, int) => expect(&[bits(*int)], &[B32]),
        Op::IntUn(_, int) => expect(&[bits(*int)], &[bits(*int)]),
        Op::MulWide(int) => expect(&[bits(*int), bits(*int)], &[Ty::of_bits(u32::from(int.bits) * 2)]),
        Op::AddCarry(int) | Op::SubCarry(int) => {
            let ty = bits(*int);
            let takes: &[Ty] = if args.len() == 3 { &[ty, ty, Pred] } else { &[ty, ty] };
            expect(takes, &[ty, Pred])
        }
        Op::Bfe(int) => expect(&[bits(*int), B32, B32], &[bits(*int)]),
        Op::Bfi(int) => expect(&[bits(*int), bits(*int), B32, B32], &[bits(*int)]),
        Op::Lop3(_) | Op::Shf { .. } | Op::Prmt(_) | Op::Dp4a { .. } | Op::Dp2a { .. } | Op::Fns => {
            expect(&[B32; 3], &[B32])
        }
        Op::Sad(int) => expect(&[bits(*int); 3], &[bits(*int)]),
        Op::Szext { .. } | Op::Bmsk { .. } => expect(&[B32; 2], &[B32]),
        Op::Float(FloatBin::Add | FloatBin::Sub | FloatBin::Mul, float, _) | Op::Float(_, float, _) => {
            expect(&[float.ty(); 2], &[float.ty()])
        }
        Op::FloatUn(_, float, _) => expect(&[float.ty()], &[float.ty()]),
        Op::Fma(float, _) => expect(&[float.ty(); 3], &[float.ty()]),
        Op::TestP(_, float) => expect(&[float.ty()], &[Pred]),
        Op::Icmp(_, int) => expect(&[bits(*int); 2], &[Pred]),
        Op::Fcmp { ty: Float::F16x2 | Float::Bf16x2, .. } => {
            Err("pairs are compared half by half".to_owned())
        }
        Op::Fcmp { ty, .. } => expect(&[ty.ty(); 2], &[Pred]),
        Op::Bool(_) => expect(&[Pred; 2], &[Pred]),
        Op::Not => expect(&[Pred], &[Pred]),
        Op::Select => check(args.len() == 3 && args[0] == Pred && args[1] == args[2] && results == [args[1]]),
        Op::Cvt { from, to, .. } => expect(&[num_ty(*from)], &[num_ty(*to)]),
        Op::RoundInt { ty, .. } => expect(&[ty.ty()], &[ty.ty()]),
        Op::CvtPack { from, to, .. } => expect(&[from.ty(); 2], &[num_ty(*to)]),
        Op::Load { mem, .. } => check(
            args == [B64]
                && matches!(results.len(), 1 | 2 | 4 | 8)
                && results.iter().all(|it| it.bits() >= u32::from(mem.bits) && *it != Pred),
        ),
        Op::Store { mem, .. } => check(
            args.first() == Some(&B64)
                && results.is_empty()
                && matches!(args.len(), 2 | 3 | 5 | 9)
                && args[1..].iter().all(|it| it.bits() >= u32::from(mem.bits) && *it != Pred),
        ),
        Op::Atomic { op, ty, .. } => {
            let ty = match ty {
                AtomTy::Int(int) => bits(*int),
                AtomTy::Float(float) => float.ty(),
                AtomTy::B128 => Ty::B128,
            };
            let takes: &[Ty] = if *op == AtomOp::Cas { &[B64, ty, ty] } else { &[B64, ty] };
            check(args == takes && (results.is_empty() || results == [ty]))
        }
        Op::Fence { .. } | Op::Trap | Op::Breakpoint | Op::Fault(_) => expect(&[], &[]),
        Op::Shfl(_) => expect(&[B32; 4], &[B32, Pred]),
        Op::Vote(VoteMode::Ballot) => expect(&[Pred, B32], &[B32]),
        Op::Vote(_) => expect(&[Pred, B32], &[Pred]),
        Op::Match { all, bits } => {
            let ty = if *bits == 64 { B64 } else { B32 };
            if *all { expect(&[ty, B32], &[B32, Pred]) } else { expect(&[ty, B32], &[B32]) }
        }
        Op::Redux(
            ReduxOp::Add | ReduxOp::Min | ReduxOp::Max | ReduxOp::And | ReduxOp::Or | ReduxOp::Xor,
            _,
        ) => expect(&[B32, B32], &[B32]),
        Op::ActiveMask => expect(&[], &[B32]),
        Op::Elect => expect(&[B32], &[B32, Pred]),
        Op::WarpSync | Op::NanoSleep => expect(&[B32], &[]),
        Op::Mma(mma) => expect(&mma.arguments(), &mma.results()),
        Op::Wgmma(wgmma) => expect(&wgmma.arguments(), &wgmma.results()),
        Op::MatrixRows(rows) => expect(&rows.arguments(), &rows.results()),
        Op::Barrier { kind, .. } => {
            let predicate = usize::from(kind.is_reduction());
            let ids = args.len().saturating_sub(predicate);
            let gives: &[Ty] = match kind {
                BarrierKind::Sync | BarrierKind::Arrive => &[],
                BarrierKind::RedPopc => &[B32],
                BarrierKind::RedAnd | BarrierKind::RedOr => &[Pred],
            };
            let tail: &[Ty] = if predicate == 1 { &[Pred] } else { &[] };
            check(
                (1..=2).contains(&ids)
                    && args[..ids].iter().all(|&it| it == B32)
                    && args[ids..] == *tail
                    && results == gives,
            )
        }
        Op::Call(_) => Ok(()),
        Op::CallIndirect => check(args.first() == Some(&B64)),
        Op::Texture(access) => check(
            args.len() == access.arguments()
                && args[0] == B64
                && args[1..].iter().all(|it| matches!(it, Ty::B16 | B32 | B64))
                && results == access.results().into_iter().map(Ty::of_bits).collect::<Vec<_>>(),
        ),
        Op::Syscall(Syscall::Vprintf) => expect(&[B64, B64], &[B32]),
        Op::Syscall(Syscall::Malloc) => expect(&[B64], &[B64]),
        Op::Syscall(Syscall::TensorMemory) => expect(&[B64; 10], &[B32]),
        Op::Syscall(Syscall::CancelCluster) => expect(&[], &[B64]),
        Op::Syscall(Syscall::Free) => expect(&[B64], &[]),
        Op::Syscall(Syscall::DeviceRuntime) => expect(&[B64, B32], &[B64]),
        Op::ClusterBarrier { .. } => expect(&[], &[]),
        Op::CopyAsync(copy) => expect(&[B64, B64, if copy.is_ignored { Pred } else { B32 }], &[]),
        Op::TensorCopy(_) => expect(&[B64, B64, B32, B32, B32, B32, B32, B64], &[B32]),
        Op::Syscall(Syscall::AssertFail) => expect(&[B64, B64, B32, B64, B64], &[]),
    }
}
