//! `cp.async` of fewer bytes than all: nearly always all bytes are asked for, or none; fewer are copied one at a time.

use super::{Writer, load, store};
use crate::ir::{BlockId, Cmp, CopyAsync, Edge, Inst, IntBin, Op, Space, Term, Ty, U32, U64, Value};

impl Writer<'_> {
    pub(super) fn copy(&mut self, copy: &CopyAsync, inst: &Inst) {
        let (to, from, much) = (inst.args[0], inst.args[1], inst.args[2]);
        let size = u32::from(copy.size);
        let is_whole = if copy.is_ignored {
            self.emit1(Op::Not, &[much], Ty::Pred)
        } else {
            let size = self.word(size);
            self.emit1(Op::Icmp(Cmp::Ge, U32), &[much, size], Ty::Pred)
        };
        let [whole, fewer, behind] = std::array::from_fn(|_| self.function.new_block());
        let branch =
            |cond, then, otherwise| Term::Branch { cond, then: edge(then), otherwise: edge(otherwise) };
        self.end(branch(is_whole, whole, fewer), whole.index());
        let words = vec![Ty::B32; (size / 4) as usize];
        let words = self.emit(load(Space::Global, 32, copy.from), &[from], &words);
        self.emit(store(Space::Shared, 32, copy.to), &[&[to], &words[..]].concat(), &[]);
        self.end(Term::Jump(edge(behind)), fewer.index());
        let zeros = vec![self.word(0); (size / 4) as usize];
        self.emit(store(Space::Shared, 32, copy.to), &[&[to], &zeros[..]].concat(), &[]);
        if copy.is_ignored {
            self.end(Term::Jump(edge(behind)), behind.index());
            return;
        }
        let [head, body] = std::array::from_fn(|_| self.function.new_block());
        let start = self.emit1(Op::Const(0), &[], Ty::B64);
        let end = self.emit1(Op::Zext, &[much], Ty::B64);
        let index = self.function.new_value(Ty::B64);
        self.function.blocks[head.index()].params.push(index);
        let again = |index: Value| Term::Jump(Edge { block: head, args: vec![index] });
        self.end(again(start), head.index());
        let more = self.emit1(Op::Icmp(Cmp::Lt, U64), &[index, end], Ty::Pred);
        self.end(branch(more, body, behind), body.index());
        let source = self.emit1(Op::Int(IntBin::Add, U64), &[from, index], Ty::B64);
        let byte = self.emit1(load(Space::Global, 8, copy.from), &[source], Ty::B16);
        let target = self.emit1(Op::Int(IntBin::Add, U64), &[to, index], Ty::B64);
        self.emit(store(Space::Shared, 8, copy.to), &[target, byte], &[]);
        let one = self.emit1(Op::Const(1), &[], Ty::B64);
        let next = self.emit1(Op::Int(IntBin::Add, U64), &[index, one], Ty::B64);
        self.end(again(next), behind.index());
    }
}

fn edge(block: BlockId) -> Edge {
    Edge { block, args: vec![] }
}
