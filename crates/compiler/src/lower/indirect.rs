//! Calls through pointers become comparisons with every function they can mean.
//!
//! A device function's address is a number of ours, not a place in memory: whatever a program can have in a pointer is
//! the address of a function whose address it takes somewhere, in code or in a variable. So a call through a pointer is
//! a chain of "is it this one?" with ordinary calls behind, and no back end needs function pointers. A pointer that is
//! none of them is a fault, as jumping to nowhere is.

use super::builder::empty_block;
use crate::ir::{Block, BlockId, Cmp, Edge, Fault, FuncId, Function, Inst, Op, Pos, Term, Ty, U64, Value};

/// The number that stands for the function's address: never null, 16 apart.
pub(crate) fn address(id: FuncId) -> u64 {
    0x00f0_0000_0000_0000 + (u64::from(id.0) + 1) * 16
}

/// The number that stands for a kernel's address. Nothing can be called through it: only the device runtime takes it.
pub(crate) fn kernel_address(index: u32) -> u64 {
    0x00e0_0000_0000_0000 + (u64::from(index) + 1) * 16
}

/// The kernel, by its index, whose address the number stands for.
pub fn kernel_of_address(address: u64) -> Option<usize> {
    let number = address.checked_sub(kernel_address(0))?;
    (number % 16 == 0).then(|| usize::try_from(number / 16).ok()).flatten()
}

/// A function that a call through a pointer may reach.
pub(crate) struct Candidate {
    pub(crate) id: FuncId,
    pub(crate) args: Vec<Ty>,
    pub(crate) results: Vec<Ty>,
}

/// The bits of all arguments and results: what a call and a function must agree on.
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Signature {
    takes: Vec<u32>,
    gives: Vec<u32>,
}

impl Candidate {
    pub(crate) fn signature(&self) -> Signature {
        let bits = |types: &[Ty]| types.iter().map(|ty| ty.bits()).collect();
        Signature { takes: bits(&self.args), gives: bits(&self.results) }
    }
}

/// The signatures of a function's calls through pointers.
pub(crate) fn signatures(function: &Function) -> impl Iterator<Item = Signature> {
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    insts.filter(|inst| inst.op == Op::CallIndirect).map(|inst| signature(function, inst))
}

fn signature(function: &Function, call: &Inst) -> Signature {
    let bits = |values: &[Value]| values.iter().map(|&it| function.ty(it).bits()).collect();
    // The pointer comes first.
    Signature { takes: bits(call.args.get(1..).unwrap_or_default()), gives: bits(&call.results) }
}

/// Replaces every [`Op::CallIndirect`] by a chain over the candidates with its signature.
pub(crate) fn resolve(function: &mut Function, candidates: &[Candidate]) {
    let mut at = 0;
    // The rest of a block behind a call is a new block at the end, and is looked at in its turn.
    while at < function.blocks.len() {
        let call = function.blocks[at].insts.iter().position(|inst| inst.op == Op::CallIndirect);
        if let Some(call) = call {
            let tail = function.blocks[at].insts.split_off(call + 1);
            if let Some(inst) = function.blocks[at].insts.pop() {
                chain(function, BlockId(at as u32), &inst, tail, candidates);
            }
        }
        at += 1;
    }
}

fn chain(function: &mut Function, at: BlockId, call: &Inst, tail: Vec<Inst>, candidates: &[Candidate]) {
    let Some((&pointer, args)) = call.args.split_first() else { return };
    let wanted = signature(function, call);
    let result_types: Vec<Ty> = call.results.iter().map(|&it| function.ty(it)).collect();

    let mut last = empty_block();
    last.params = call.results.clone();
    last.insts = tail;
    last.term = std::mem::replace(&mut function.blocks[at.index()].term, Term::Exit);
    let behind = push(function, last);
    let mut current = at;
    for candidate in candidates.iter().filter(|it| it.signature() == wanted) {
        let (block, results) = call_block(function, candidate, args, &result_types, call.pos);
        function.blocks[block.index()].term = Term::Jump(Edge { block: behind, args: results });
        let block = Edge { block, args: vec![] };
        let next = push(function, empty_block());
        let number = emit(function, current, Op::Const(address(candidate.id).into()), &[], Ty::B64, call.pos);
        let cond = emit(function, current, Op::Icmp(Cmp::Eq, U64), &[pointer, number], Ty::Pred, call.pos);
        function.blocks[current.index()].term =
            Term::Branch { cond, then: block, otherwise: Edge { block: next, args: vec![] } };
        current = next;
    }
    function.blocks[current.index()].insts.push(Inst {
        op: Op::Fault(Fault::InvalidPc),
        args: vec![],
        results: vec![],
        pos: call.pos,
    });
    let zeros =
        result_types.iter().map(|&ty| emit(function, current, Op::Const(0), &[], ty, call.pos)).collect();
    function.blocks[current.index()].term = Term::Jump(Edge { block: behind, args: zeros });
}

/// A block that calls the candidate, and what comes back in the types that the caller expects.
fn call_block(
    function: &mut Function,
    candidate: &Candidate,
    args: &[Value],
    result_types: &[Ty],
    pos: Pos,
) -> (BlockId, Vec<Value>) {
    let block = push(function, empty_block());
    let args: Vec<Value> =
        args.iter().zip(&candidate.args).map(|(&arg, &ty)| cast(function, block, arg, ty, pos)).collect();
    let results: Vec<Value> = candidate.results.iter().map(|&ty| function.new_value(ty)).collect();
    let inst = Inst { op: Op::Call(candidate.id), args, results: results.clone(), pos };
    function.blocks[block.index()].insts.push(inst);
    let results =
        results.into_iter().zip(result_types).map(|(it, &ty)| cast(function, block, it, ty, pos)).collect();
    (block, results)
}

fn cast(function: &mut Function, block: BlockId, value: Value, ty: Ty, pos: Pos) -> Value {
    if function.ty(value) == ty { value } else { emit(function, block, Op::Bitcast, &[value], ty, pos) }
}

fn emit(function: &mut Function, block: BlockId, op: Op, args: &[Value], ty: Ty, pos: Pos) -> Value {
    let value = function.new_value(ty);
    let inst = Inst { op, args: args.to_vec(), results: vec![value], pos };
    function.blocks[block.index()].insts.push(inst);
    value
}

fn push(function: &mut Function, block: Block) -> BlockId {
    function.blocks.push(block);
    BlockId(function.blocks.len() as u32 - 1)
}

/// Puts numbers in the place of the functions' addresses.
pub(crate) fn number_addresses(function: &mut Function) {
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let Op::FuncAddr(id) = inst.op {
            inst.op = Op::Const(address(id).into());
        }
    }
}
