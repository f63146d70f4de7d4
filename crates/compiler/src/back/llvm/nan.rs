//! NVIDIA's f32 arithmetic gives one NaN, `0x7fffffff`; x86 gives several. They differ only to who looks at the bits, so
//! a result is made canonical where its bits are looked at: by a store, a cast, another thread…. A sum that a loop forms
//! is stored behind the loop, and chosen there once.

use crate::ir::{Float, FloatBin, FloatUn, Function, Inst, Num, Op, Pos, Ty, Value};
use std::collections::{HashMap, HashSet};

/// The function with the choice of the canonical NaN written before each look at the bits of an arithmetic result.
pub fn canonical(function: &Function) -> Function {
    let computed = computed(function);
    let observed = observed(function, &computed);
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    let constants: HashSet<Value> =
        insts.filter(|inst| matches!(inst.op, Op::Const(_))).flat_map(|inst| inst.results.clone()).collect();
    let mut function = function.clone();
    for at in 0..function.blocks.len() {
        let insts = std::mem::take(&mut function.blocks[at].insts);
        let (done, out) = (HashMap::new(), Vec::with_capacity(insts.len()));
        let mut looks = Looks { computed: &computed, constants: &constants, done, out };
        for mut inst in insts {
            let hands_on = matches!(inst.op, Op::Select | Op::Bitcast | Op::Shfl(_))
                && inst.results.first().is_some_and(|it| !observed[it.index()]);
            if !hands_on && !is_blind(&inst.op) {
                for arg in &mut inst.args {
                    *arg = looks.canonical(&mut function, *arg, inst.pos);
                }
            }
            looks.out.push(inst);
        }
        let mut term = function.blocks[at].term.clone();
        let pos = looks.out.last().map(|inst| inst.pos).unwrap_or_default();
        if let crate::ir::Term::Return(values) = &mut term {
            for value in values {
                *value = looks.canonical(&mut function, *value, pos);
            }
        }
        for edge in term.edges_mut() {
            let params = function.block(edge.block).params.clone();
            for (param, arg) in params.iter().zip(&mut edge.args) {
                if observed[param.index()] {
                    *arg = looks.canonical(&mut function, *arg, pos);
                }
            }
        }
        function.blocks[at].insts = looks.out;
        function.blocks[at].term = term;
    }
    function
}

/// What of a block is written so far.
struct Looks<'a> {
    computed: &'a [bool],
    constants: &'a HashSet<Value>,
    /// The canonical form of values that the block has looked at.
    done: HashMap<Value, Value>,
    out: Vec<Inst>,
}

impl Looks<'_> {
    fn canonical(&mut self, function: &mut Function, value: Value, pos: Pos) -> Value {
        if !self.computed.get(value.index()).is_some_and(|&it| it) || self.constants.contains(&value) {
            return value;
        }
        if let Some(&done) = self.done.get(&value) {
            return done;
        }
        let [is_nan, nan, result] = [Ty::Pred, Ty::F32, Ty::F32].map(|ty| function.new_value(ty));
        let test = Op::Fcmp { cmp: crate::ir::FloatCmp::Nan, ty: Float::F32, ftz: false };
        self.out.push(Inst { op: test, args: vec![value, value], results: vec![is_nan], pos });
        self.out.push(Inst { op: Op::Const(0x7fff_ffff), args: vec![], results: vec![nan], pos });
        self.out.push(Inst { op: Op::Select, args: vec![is_nan, nan, value], results: vec![result], pos });
        self.done.insert(value, result);
        result
    }
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

/// Values that hold a result of arithmetic or a number, whatever way they took: their NaNs are the CPU's.
fn computed(function: &Function) -> Vec<bool> {
    let mut computed = vec![false; function.values.len()];
    // What could hold something else, by the value that hands it on.
    let mut receivers: Vec<Vec<Value>> = vec![vec![]; function.values.len()];
    for (at, block) in function.blocks.iter().enumerate() {
        for &param in block.params.iter().filter(|_| at != 0) {
            computed[param.index()] = function.ty(param) == Ty::F32;
        }
        for inst in &block.insts {
            let Some(&result) = inst.results.first().filter(|&&it| function.ty(it) == Ty::F32) else {
                continue;
            };
            computed[result.index()] = match &inst.op {
                Op::Const(bits) => !f32::from_bits(*bits as u32).is_nan(),
                Op::Select => true,
                op => computes(op),
            };
            if inst.op == Op::Select {
                inst.args.iter().skip(1).for_each(|arg| receivers[arg.index()].push(result));
            }
        }
        for edge in block.term.edges() {
            for (param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                receivers[arg.index()].push(*param);
            }
        }
    }
    let mut others: Vec<usize> = (0..computed.len()).filter(|&value| !computed[value]).collect();
    while let Some(value) = others.pop() {
        for receiver in &receivers[value] {
            if std::mem::replace(&mut computed[receiver.index()], false) {
                others.push(receiver.index());
            }
        }
    }
    computed
}

/// Values whose bits somebody looks at, and which may hold other things than results: what is handed on to them is
/// looked at there.
fn observed(function: &Function, computed: &[bool]) -> Vec<bool> {
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
        if !computed[value.index()] && !std::mem::replace(&mut observed[value.index()], true) {
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
    fn a_sum_in_a_loop_is_made_canonical_behind_the_loop_if_it_is_stored() {
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
            let found = canonical(&f);
            let selects = |at: usize| found.blocks[at].insts.iter().filter(|it| it.op == Op::Select).count();
            assert_eq!([0, 1, 2].map(selects), [0, 0, usize::from(stored)]);
        }
    }
}
