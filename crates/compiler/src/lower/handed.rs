//! What blocks hand on has the type that it is read as: registers of LLVM's PTX are all `.b32` and `.b64`, so a loop's sum of
//! floats would become bits at its end and a float again at its start, and be no sum to those who look for one.

use foldhash::{HashMap, HashMapExt as _};

use crate::ir::{Function, Inst, Op, Term, Ty, Value};

/// How a parameter, or those that hand it to each other, is read.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Read {
    Nowhere,
    As(Ty),
    InSeveralWays,
}

/// Gives parameters of blocks the type that all who read them turn them into first. Conversions that undo each other then, or
/// change nothing, are left for others to drop.
pub(super) fn run(function: &mut Function) {
    let mut params = Params::of(function);
    for block in &function.blocks {
        for inst in &block.insts {
            for &arg in &inst.args {
                let ty = match (&inst.op, inst.results.as_slice()) {
                    (Op::Bitcast, [result]) => function.ty(*result),
                    _ => function.ty(arg),
                };
                params.read(arg, ty);
            }
        }
        block.term.own_values().into_iter().for_each(|value| params.read(value, function.ty(value)));
    }
    for edge in function.blocks.iter().flat_map(|block| block.term.edges()) {
        for (&param, &arg) in function.block(edge.block).params.iter().zip(&edge.args) {
            params.join(param, arg);
        }
    }
    let changed: Vec<Option<Ty>> = (0..function.values.len())
        .map(|at| match params.read_as(Value(at as u32)) {
            Some(Read::As(ty)) if ty != function.values[at] => Some(ty),
            _ => None,
        })
        .collect();
    if changed.iter().all(Option::is_none) {
        return;
    }
    for (own, changed) in function.values.iter_mut().zip(&changed) {
        *own = changed.unwrap_or(*own);
    }
    for at in 0..function.blocks.len() {
        convert_handed(function, at, &changed);
    }
}

/// At the end of block `at`, what it hands to a parameter of another type now.
fn convert_handed(function: &mut Function, at: usize, changed: &[Option<Ty>]) {
    let wanted = |value: Value| changed.get(value.index()).copied().flatten();
    let mut converted: HashMap<(Value, Ty), Value> = HashMap::new();
    let mut term = std::mem::replace(&mut function.blocks[at].term, Term::Exit);
    let pos = function.blocks[at].insts.last().map(|inst| inst.pos).unwrap_or_default();
    for edge in term.edges_mut() {
        for (nth, arg) in edge.args.iter_mut().enumerate() {
            let Some(ty) = wanted(function.block(edge.block).params[nth]).filter(|_| wanted(*arg).is_none())
            else {
                continue;
            };
            let value = converted.entry((*arg, ty)).or_insert_with(|| {
                let result = function.new_value(ty);
                let inst = Inst { op: Op::Bitcast, args: vec![*arg], results: vec![result], pos };
                function.blocks[at].insts.push(inst);
                result
            });
            *arg = *value;
        }
    }
    function.blocks[at].term = term;
}

/// Parameters of blocks but the entry's, whose types are the caller's, in sets of those that are handed to each other.
struct Params {
    /// Another one of the same set, up to one that stands for all of it; `None` for other values.
    of: Vec<Option<Value>>,
    /// How the set's are read, by the one that stands for it.
    read: Vec<Read>,
}

impl Params {
    fn of(function: &Function) -> Params {
        let mut of = vec![None; function.values.len()];
        for &param in function.blocks.iter().skip(1).flat_map(|block| &block.params) {
            of[param.index()] = Some(param);
        }
        Params { of, read: vec![Read::Nowhere; function.values.len()] }
    }

    fn read(&mut self, value: Value, ty: Ty) {
        if let Some(one) = self.one(value) {
            self.read[one.index()] = self.read[one.index()].and(Read::As(ty));
        }
    }

    fn join(&mut self, a: Value, b: Value) {
        if let (Some(a), Some(b)) = (self.one(a), self.one(b)) {
            self.read[b.index()] = self.read[b.index()].and(self.read[a.index()]);
            self.of[a.index()] = Some(b);
        }
    }

    fn read_as(&mut self, value: Value) -> Option<Read> {
        self.one(value).map(|one| self.read[one.index()])
    }

    /// The one that stands for the value's set; the way there becomes shorter.
    fn one(&mut self, mut value: Value) -> Option<Value> {
        let mut next = self.of[value.index()]?;
        while next != value {
            let beyond = self.of[next.index()]?;
            self.of[value.index()] = Some(beyond);
            (value, next) = (next, beyond);
        }
        Some(value)
    }
}

impl Read {
    fn and(self, other: Read) -> Read {
        match (self, other) {
            (Read::Nowhere, it) | (it, Read::Nowhere) => it,
            (a, b) if a == b => a,
            _ => Read::InSeveralWays,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    /// The types of what the blocks of a loop hand on that adds to `%s`, and how many conversions there are.
    fn loop_of(body: &str) -> (Vec<Ty>, usize) {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 p) {{\n.reg .pred %q;\n.reg .b32 %s, %i, %f, %x;\n\
             .reg .b64 %p;\nld.param.u64 %p, [p];\nmov.b32 %s, 0;\nmov.b32 %i, 0;\nAGAIN:\nld.global.b32 %f, [%p];\n{body}\nadd.u32 %i, %i, 1;\n\
             setp.lt.u32 %q, %i, 9;\n@%q bra AGAIN;\nst.global.f32 [%p], %s;\nret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        let body = program.kernel("k").unwrap().body.as_ref().unwrap();
        let params = body.blocks.iter().skip(1).flat_map(|block| &block.params);
        let mut types: Vec<Ty> = params.map(|&param| body.ty(param)).collect();
        types.sort_by_key(|ty| format!("{ty:?}"));
        let insts = body.blocks.iter().flat_map(|block| &block.insts);
        (types, insts.filter(|inst| matches!(inst.op, Op::Bitcast)).count())
    }

    #[test]
    fn a_sum_of_floats_in_an_untyped_register_is_a_float() {
        // The word that is added.
        assert_eq!(loop_of("add.f32 %s, %s, %f;"), (vec![Ty::B32, Ty::F32], 1));
    }

    #[test]
    fn what_is_read_in_two_ways_stays_what_it_is() {
        let both = "add.f32 %x, %s, %f;\nst.global.f32 [%p+4], %x;\nadd.u32 %s, %s, %f;";
        assert_eq!(loop_of(both).0, [Ty::B32, Ty::B32]);
    }

    #[test]
    fn a_sum_of_whole_numbers_is_none_of_floats() {
        assert_eq!(loop_of("add.u32 %s, %s, %f;").0, [Ty::B32, Ty::B32]);
    }
}
