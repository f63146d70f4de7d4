//! NVIDIA's f32 arithmetic gives one NaN, `0x7fffffff`; x86 gives several. They differ only to who looks at the bits, so
//! a result is made canonical where it is defined, and only if its bits reach a store, a cast, another thread….

use crate::ir::{Float, FloatBin, FloatUn, Function, Inst, Num, Op, Ty, Value};

/// The function with the choice of the canonical NaN written behind each arithmetic result whose bits are observed.
pub fn canonical(function: &Function) -> Function {
    let observed = observed(function);
    let mut function = function.clone();
    for at in 0..function.blocks.len() {
        let insts = std::mem::take(&mut function.blocks[at].insts);
        let mut out = Vec::with_capacity(insts.len());
        for mut inst in insts {
            let wanted =
                inst.results.first().copied().filter(|result| observed[result.index()] && computes(&inst.op));
            let Some(result) = wanted else {
                out.push(inst);
                continue;
            };
            let [raw, is_nan, nan] = [Ty::F32, Ty::Pred, Ty::F32].map(|ty| function.new_value(ty));
            inst.results[0] = raw;
            let pos = inst.pos;
            out.push(inst);
            let test = Op::Fcmp { cmp: crate::ir::FloatCmp::Nan, ty: Float::F32, ftz: false };
            out.push(Inst { op: test, args: vec![raw, raw], results: vec![is_nan], pos });
            out.push(Inst { op: Op::Const(0x7fff_ffff), args: vec![], results: vec![nan], pos });
            out.push(Inst { op: Op::Select, args: vec![is_nan, nan, raw], results: vec![result], pos });
        }
        function.blocks[at].insts = out;
    }
    function
}

/// An operation whose f32 result may be a NaN of the CPU's choice.
fn computes(op: &Op) -> bool {
    match op {
        Op::Float(bin, Float::F32, mode) => *bin != FloatBin::CopySign && !mode.sat,
        Op::FloatUn(_, Float::F32, mode) | Op::Fma(Float::F32, mode) => !mode.sat,
        Op::RoundInt { ty: Float::F32, mode } => !mode.sat,
        Op::Cvt { from: Num::Float(_), to: Num::Float(Float::F32), mode } => !mode.sat,
        _ => false,
    }
}

/// An operation that only sees whether an argument is NaN, not which.
fn is_blind(op: &Op) -> bool {
    match op {
        Op::Float(bin, Float::F32, _) => *bin != FloatBin::CopySign,
        // Sign changes are bit operations; their result counts as computed, their argument as any other.
        Op::FloatUn(un, Float::F32, _) => !matches!(un, FloatUn::Neg | FloatUn::Abs) || computes(op),
        Op::Fma(Float::F32, _) | Op::RoundInt { ty: Float::F32, .. } => true,
        Op::Fcmp { ty: Float::F32, .. } | Op::TestP(_, Float::F32) => true,
        Op::Cvt { from: Num::Float(Float::F32), to, .. } => *to != Num::Float(Float::F64),
        Op::CvtPack { from: Float::F32, .. } => true,
        _ => false,
    }
}

fn observed(function: &Function) -> Vec<bool> {
    let mut observed = vec![false; function.values.len()];
    let mut work: Vec<Value> = vec![];
    // What a select, a change of type, a shuffle or an edge hands on is observed when the receiver is.
    let mut sources: Vec<Vec<Value>> = vec![vec![]; function.values.len()];
    for block in &function.blocks {
        for inst in &block.insts {
            match (&inst.op, inst.results.first()) {
                (Op::Select, Some(result)) => sources[result.index()].extend(inst.args.iter().skip(1)),
                (Op::Bitcast, Some(result)) => sources[result.index()].extend(&inst.args),
                // To other lanes, whose bits count as this one's.
                (Op::Shfl(_), Some(result)) => {
                    sources[result.index()].push(inst.args[0]);
                    work.extend(&inst.args[1..]);
                }
                (op, _) if is_blind(op) => {}
                _ => work.extend(&inst.args),
            }
        }
        work.extend(block.term.own_values());
        for edge in block.term.edges() {
            for (param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                sources[param.index()].push(*arg);
            }
        }
    }
    while let Some(value) = work.pop() {
        if !std::mem::replace(&mut observed[value.index()], true) {
            work.extend(&sources[value.index()]);
        }
    }
    observed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Block, BlockId, Edge, FloatMode, Mem, Order, Scope, Space, Term};

    /// A loop that sums f32 and stores the sum once behind it.
    #[test]
    fn a_sum_in_a_loop_is_made_canonical_where_it_is_added_only_if_it_is_stored() {
        for stored in [false, true] {
            let mut f = Function {
                name: "sum".into(),
                args: vec![],
                results: vec![],
                blocks: vec![],
                values: vec![],
                locals: vec![],
            };
            let [zero, address, sum, next] = [Ty::F32, Ty::B64, Ty::F32, Ty::F32].map(|ty| f.new_value(ty));
            let more = f.new_value(Ty::Pred);
            let inst = |op, args: &[Value], results: &[Value]| Inst {
                op,
                args: args.to_vec(),
                results: results.to_vec(),
                pos: crate::ir::Pos::default(),
            };
            let add = Op::Float(FloatBin::Add, Float::F32, FloatMode::default());
            let below = Op::Fcmp { cmp: crate::ir::FloatCmp::Num, ty: Float::F32, ftz: false };
            let store = Op::Store {
                space: Space::Global,
                mem: Mem { bits: 32, signed: false },
                offset: 0,
                order: Order::Weak,
                scope: Scope::Sys,
            };
            let to = |block, args: &[Value]| Edge { block: BlockId(block), args: args.to_vec() };
            f.blocks = vec![
                Block {
                    params: vec![],
                    insts: vec![inst(Op::Const(0), &[], &[zero]), inst(Op::ParamAddr(0), &[], &[address])],
                    term: Term::Jump(to(1, &[zero])),
                },
                Block {
                    params: vec![sum],
                    insts: vec![inst(add, &[sum, sum], &[next]), inst(below, &[next, next], &[more])],
                    term: Term::Branch { cond: more, then: to(1, &[next]), otherwise: to(2, &[]) },
                },
                Block {
                    params: vec![],
                    insts: if stored { vec![inst(store, &[address, next], &[])] } else { vec![] },
                    term: Term::Exit,
                },
            ];
            let selects = canonical(&f).blocks[1].insts.iter().filter(|inst| inst.op == Op::Select).count();
            assert_eq!(selects, usize::from(stored));
        }
    }
}
