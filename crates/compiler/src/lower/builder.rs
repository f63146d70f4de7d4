//! SSA construction after Braun et al., "Simple and Efficient Construction of SSA Form" (CC 2013).
//!
//! A PTX register is a [`Var`]: written and read any number of times while blocks are filled. A read that its own block
//! cannot answer becomes a block parameter; [`Builder::finish`] connects the parameters once all edges are known and
//! removes those that turn out to be copies. A register read before any write is zero.

use std::collections::{HashSet, VecDeque};

use foldhash::{HashMap, HashMapExt as _};

use crate::ir::{Block, BlockId, Edge, Function, Inst, Op, Pos, Term, Ty, Value};

/// A mutable register of the PTX text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Var(u32);

pub(crate) struct Builder {
    function: Function,
    current: BlockId,
    /// The current block has its terminator; what follows without a label is unreachable.
    closed: bool,
    /// Type of each variable.
    vars: Vec<Ty>,
    /// Per block: the value each variable has at its end, as far as asked or written.
    ends: Vec<HashMap<Var, Value>>,
    /// Per block: the variables its parameters stand for, in parameter order.
    asked: Vec<Vec<Var>>,
    /// Zeros for undefined reads; they are put in front of the entry block.
    zeros: Vec<(Ty, Value)>,
    /// Position of the instruction being lowered.
    pub(crate) pos: Pos,
}

impl Builder {
    /// A function whose entry block takes `args`; their values are returned.
    pub(crate) fn new(name: &str, args: &[Ty], results: &[Ty]) -> (Self, Vec<Value>) {
        let mut function = Function {
            name: name.to_owned(),
            args: args.to_vec(),
            results: results.to_vec(),
            blocks: vec![],
            values: vec![],
            locals: vec![],
        };
        let entry = function.new_block();
        let params: Vec<Value> = args.iter().map(|&ty| function.new_value(ty)).collect();
        function.blocks[0].params = params.clone();
        let builder = Builder {
            function,
            current: entry,
            closed: false,
            vars: vec![],
            ends: vec![HashMap::new()],
            asked: vec![vec![]],
            zeros: vec![],
            pos: Pos::default(),
        };
        (builder, params)
    }

    pub(crate) fn new_var(&mut self, ty: Ty) -> Var {
        self.vars.push(ty);
        Var(self.vars.len() as u32 - 1)
    }

    pub(crate) fn var_ty(&self, var: Var) -> Ty {
        self.vars[var.0 as usize]
    }

    pub(crate) fn ty(&self, value: Value) -> Ty {
        self.function.ty(value)
    }

    pub(crate) fn locals(&mut self) -> &mut Vec<crate::ir::Local> {
        &mut self.function.locals
    }

    pub(crate) fn new_block(&mut self) -> BlockId {
        self.ends.push(HashMap::new());
        self.asked.push(vec![]);
        self.function.new_block()
    }

    /// Ends the current block with a jump to `block`, if it is still open, and goes on there.
    pub(crate) fn enter(&mut self, block: BlockId) {
        if !self.closed {
            self.jump(block);
        }
        self.current = block;
        self.closed = false;
    }

    pub(crate) fn edge(block: BlockId) -> Edge {
        Edge { block, args: vec![] }
    }

    pub(crate) fn jump(&mut self, block: BlockId) {
        self.terminate(Term::Jump(Self::edge(block)));
    }

    pub(crate) fn branch(&mut self, cond: Value, then: BlockId, otherwise: BlockId) {
        self.terminate(Term::Branch { cond, then: Self::edge(then), otherwise: Self::edge(otherwise) });
    }

    pub(crate) fn terminate(&mut self, term: Term) {
        self.open();
        self.function.blocks[self.current.index()].term = term;
        self.closed = true;
    }

    /// Whether control can come to the next instruction by falling through.
    pub(crate) fn is_open(&self) -> bool {
        !self.closed
    }

    /// Code behind a terminator goes to a block that nothing jumps to.
    fn open(&mut self) {
        if self.closed {
            self.current = self.new_block();
            self.closed = false;
        }
    }

    pub(crate) fn emit(&mut self, op: Op, args: &[Value], results: &[Ty]) -> Vec<Value> {
        let results: Vec<Value> = results.iter().map(|&ty| self.function.new_value(ty)).collect();
        self.push(op, args, results.clone());
        results
    }

    pub(crate) fn emit1(&mut self, op: Op, args: &[Value], result: Ty) -> Value {
        let result = self.function.new_value(result);
        self.push(op, args, vec![result]);
        result
    }

    fn push(&mut self, op: Op, args: &[Value], results: Vec<Value>) {
        self.open();
        let inst = Inst { op, args: args.to_vec(), results, pos: self.pos };
        self.function.blocks[self.current.index()].insts.push(inst);
    }

    pub(crate) fn constant(&mut self, ty: Ty, bits: u128) -> Value {
        let mask = if ty.bits() == 128 { u128::MAX } else { (1 << ty.bits()) - 1 };
        self.emit1(Op::Const(bits & mask), &[], ty)
    }

    pub(crate) fn write(&mut self, var: Var, value: Value) {
        self.open();
        debug_assert_eq!(self.var_ty(var), self.ty(value));
        self.ends[self.current.index()].insert(var, value);
    }

    pub(crate) fn read(&mut self, var: Var) -> Value {
        self.open();
        self.read_in(self.current, var)
    }

    fn read_in(&mut self, block: BlockId, var: Var) -> Value {
        if let Some(&value) = self.ends[block.index()].get(&var) {
            return value;
        }
        let ty = self.var_ty(var);
        let value = if block == BlockId(0) {
            self.zero(ty)
        } else {
            let value = self.function.new_value(ty);
            self.function.blocks[block.index()].params.push(value);
            self.asked[block.index()].push(var);
            value
        };
        self.ends[block.index()].insert(var, value);
        value
    }

    fn zero(&mut self, ty: Ty) -> Value {
        if let Some(&(_, value)) = self.zeros.iter().find(|(of, _)| *of == ty) {
            return value;
        }
        let value = self.function.new_value(ty);
        self.zeros.push((ty, value));
        value
    }

    /// The function in SSA form: reachable blocks only, no dead pure code, values numbered in order.
    pub(crate) fn finish(mut self) -> Function {
        self.drop_unreachable();
        self.connect();
        let zeros = self.zeros.iter().map(|&(_, value)| Inst {
            op: Op::Const(0),
            args: vec![],
            results: vec![value],
            pos: Pos::default(),
        });
        self.function.blocks[0].insts.splice(0..0, zeros);
        let mut function = self.function;
        super::simplify::run(&mut function);
        function
    }

    fn drop_unreachable(&mut self) {
        let reachable: HashSet<BlockId> = self.function.reverse_post_order().into_iter().collect();
        let mut renamed = vec![BlockId(0); self.function.blocks.len()];
        let mut next = 0;
        for (old, new) in renamed.iter_mut().enumerate() {
            if reachable.contains(&BlockId(old as u32)) {
                *new = BlockId(next);
                next += 1;
            }
        }
        let keep = |index: usize| reachable.contains(&BlockId(index as u32));
        fn retain<T>(list: &mut Vec<T>, keep: impl Fn(usize) -> bool) {
            let mut index = 0;
            list.retain(|_| {
                index += 1;
                keep(index - 1)
            });
        }
        retain(&mut self.function.blocks, keep);
        retain(&mut self.ends, keep);
        retain(&mut self.asked, keep);
        for block in &mut self.function.blocks {
            for edge in block.term.edges_mut() {
                edge.block = renamed[edge.block.index()];
            }
        }
    }

    /// Gives every edge the arguments its target's parameters ask for.
    fn connect(&mut self) {
        let mut incoming: Vec<Vec<(usize, usize)>> = vec![vec![]; self.function.blocks.len()];
        for (from, block) in self.function.blocks.iter().enumerate() {
            for (nth, edge) in block.term.edges().into_iter().enumerate() {
                incoming[edge.block.index()].push((from, nth));
            }
        }
        // Asking a predecessor may give it a parameter of its own: the queue grows while it is worked on.
        let mut done: Vec<usize> = vec![0; self.function.blocks.len()];
        let mut queue: VecDeque<usize> = (1..self.function.blocks.len()).collect();
        while let Some(block) = queue.pop_front() {
            while let Some(&var) = self.asked[block].get(done[block]) {
                done[block] += 1;
                for &(from, nth) in &incoming[block] {
                    let before = self.asked[from].len();
                    let value = self.read_in(BlockId(from as u32), var);
                    if self.asked[from].len() > before && from != block {
                        queue.push_back(from);
                    }
                    let mut edges = self.function.blocks[from].term.edges_mut();
                    edges[nth].args.push(value);
                }
            }
        }
    }
}

/// An empty body that only ends: for functions that could not be lowered.
pub(crate) fn trapping(name: &str, args: &[Ty], results: &[Ty]) -> Function {
    let (mut builder, _) = Builder::new(name, args, results);
    builder.emit(Op::Trap, &[], &[]);
    builder.terminate(Term::Exit);
    builder.finish()
}

/// A new block of `function` that is not connected yet.
pub(crate) fn empty_block() -> Block {
    Block { params: vec![], insts: vec![], term: Term::Exit }
}
