//! NVIDIA's f32 arithmetic gives one NaN, `0x7fffffff`; x86 gives several. They differ only to who looks at the bits, so
//! a result stays raw through arithmetic, selects, loops, changes of type and shuffles, and is made canonical where its
//! bits reach a store, an integer operation….

use std::borrow::Cow;
use std::ops::Range;

use foldhash::{HashMap, HashMapExt as _};

use crate::ir::{Float, FloatBin, FloatCmp, FloatUn, Function, Inst, Num, Op, Pos, Ty, Value};
use crate::pass::visit::{Definition, definitions};

/// The function with the choice of the canonical NaN written in front of whoever observes an arithmetic result.
pub fn canonical(function: &Function) -> Cow<'_, Function> {
    let raw = raw(function);
    if !raw.contains(&true) {
        return Cow::Borrowed(function);
    }
    let homes = homes(function, &raw);
    let mut function = function.clone();
    // The canonical form of values whose own block observes them: it is good wherever they are.
    let mut known: HashMap<Value, Value> = HashMap::new();
    for &value in &homes {
        known.insert(value, function.new_value(function.ty(value)));
    }
    for at in 0..function.blocks.len() {
        let insts = std::mem::take(&mut function.blocks[at].insts);
        let mut here = Choices { known: &known, own: HashMap::new(), out: Vec::with_capacity(insts.len()) };
        for mut inst in insts {
            let pos = inst.pos;
            for nth in 0..inst.args.len() {
                if observes(&function, &inst, nth, &raw) {
                    inst.args[nth] = here.choose(&mut function, inst.args[nth], pos);
                }
            }
            let results = inst.results.clone();
            here.out.push(inst);
            for value in results {
                if let Some(&chosen) = known.get(&value) {
                    here.write(&mut function, value, chosen, pos);
                }
            }
        }
        let pos = here.out.last().map(|inst| inst.pos).unwrap_or_default();
        let mut term = function.blocks[at].term.clone();
        if let crate::ir::Term::Return(values) = &mut term {
            for value in values.iter_mut().filter(|value| raw[value.index()]) {
                *value = here.choose(&mut function, *value, pos);
            }
        }
        for edge in term.edges_mut() {
            for (nth, arg) in edge.args.iter_mut().enumerate() {
                let param = function.blocks[edge.block.index()].params[nth];
                if raw[arg.index()] && !raw[param.index()] {
                    *arg = here.choose(&mut function, *arg, pos);
                }
            }
        }
        function.blocks[at].insts = here.out;
        function.blocks[at].term = term;
    }
    Cow::Owned(function)
}

/// The canonical forms that a block has, while it is rewritten.
struct Choices<'a> {
    known: &'a HashMap<Value, Value>,
    own: HashMap<Value, Value>,
    out: Vec<Inst>,
}

impl Choices<'_> {
    fn choose(&mut self, function: &mut Function, value: Value, pos: Pos) -> Value {
        if let Some(&chosen) = self.known.get(&value).or_else(|| self.own.get(&value)) {
            return chosen;
        }
        let chosen = function.new_value(function.ty(value));
        self.own.insert(value, chosen);
        self.write(function, value, chosen, pos);
        chosen
    }

    fn write(&mut self, function: &mut Function, value: Value, chosen: Value, pos: Pos) {
        let ty = function.ty(value);
        let [is_nan, nan] = [Ty::Pred, ty].map(|ty| function.new_value(ty));
        let number = if ty == Ty::F32 {
            value
        } else {
            let number = function.new_value(Ty::F32);
            self.out.push(Inst { op: Op::Bitcast, args: vec![value], results: vec![number], pos });
            number
        };
        let test = Op::Fcmp { cmp: FloatCmp::Nan, ty: Float::F32, ftz: false };
        self.out.push(Inst { op: test, args: vec![number, number], results: vec![is_nan], pos });
        self.out.push(Inst { op: Op::Const(0x7fff_ffff), args: vec![], results: vec![nan], pos });
        self.out.push(Inst { op: Op::Select, args: vec![is_nan, nan, value], results: vec![chosen], pos });
    }
}

/// An operation whose f32 result may be a NaN of the CPU's choice.
fn computes(op: &Op) -> bool {
    match op {
        Op::Float(bin, Float::F32, mode) => *bin != FloatBin::CopySign && !mode.sat,
        Op::FloatUn(_, Float::F32, mode) | Op::Fma(Float::F32, mode) => !mode.sat,
        Op::RoundInt { ty: Float::F32, mode } => !mode.sat,
        // Conversions from f64, and from bf16 without `.ftz`, keep a NaN's sign and payload on GPUs as here.
        Op::Cvt { from: Num::Float(from), to: Num::Float(Float::F32), mode } => {
            !mode.sat && *from != Float::F64 && (*from != Float::Bf16 || mode.ftz)
        }
        op => op.is_product(),
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

/// Values that may hold any NaN where PTX has the canonical one, and no other bits that matter: what is computed, and
/// what is handed on of it.
fn raw(function: &Function) -> Vec<bool> {
    let mut raw: Vec<bool> = function.values.iter().map(|&ty| matches!(ty, Ty::F32 | Ty::B32)).collect();
    // Who is not raw when this value is not.
    let mut followers: Vec<Vec<Value>> = vec![vec![]; function.values.len()];
    let mut exact: Vec<Value> = vec![];
    // Right as they are, and as they would be made.
    let mut numbers: Vec<Value> = vec![];
    let mut computed: Vec<Value> = vec![];
    for block in &function.blocks {
        for inst in &block.insts {
            match (&inst.op, inst.results.first()) {
                (op, Some(&result)) if handed_on(op).is_some() => {
                    for arg in &inst.args[handed_on(op).unwrap_or_default()] {
                        followers[arg.index()].push(result);
                    }
                    exact.extend(&inst.results[1..]);
                }
                (Op::Const(bits), Some(&result)) if !f32::from_bits(*bits as u32).is_nan() => {
                    numbers.push(result);
                }
                (op, Some(_)) if computes(op) => {
                    computed.extend(&inst.results);
                    exact.extend(inst.results.iter().filter(|&&it| function.ty(it) != Ty::F32));
                }
                _ => exact.extend(&inst.results),
            }
        }
        for edge in block.term.edges() {
            for (param, arg) in function.block(edge.block).params.iter().zip(&edge.args) {
                followers[arg.index()].push(*param);
            }
        }
    }
    let entry = function.blocks.first().map(|entry| entry.params.clone()).unwrap_or_default();
    exact.extend(entry);
    for value in &exact {
        raw[value.index()] = false;
    }
    while let Some(value) = exact.pop() {
        for &follower in &followers[value.index()] {
            if std::mem::replace(&mut raw[follower.index()], false) {
                exact.push(follower);
            }
        }
    }
    for value in numbers {
        raw[value.index()] = false;
    }
    // What nothing computed is handed on to, as a choice of two constants, has no NaN of the CPU's.
    let mut reached = vec![false; raw.len()];
    while let Some(value) = computed.pop() {
        if raw[value.index()] && !std::mem::replace(&mut reached[value.index()], true) {
            computed.extend(&followers[value.index()]);
        }
    }
    reached
}

/// The arguments whose bits are the first result's: of a shuffle to other lanes, where they count as this one's.
fn handed_on(op: &Op) -> Option<Range<usize>> {
    match op {
        Op::Select => Some(1..3),
        Op::Bitcast | Op::Shfl(_) => Some(0..1),
        _ => None,
    }
}

/// Whether the bits of this argument matter, and are not the right ones yet.
fn observes(function: &Function, inst: &Inst, nth: usize, raw: &[bool]) -> bool {
    // A product takes numbers in f32 registers; others hold parts of numbers.
    let adds = inst.op.is_product() && function.ty(inst.args[nth]) == Ty::F32;
    let hands_on = handed_on(&inst.op).is_some_and(|it| it.contains(&nth))
        && inst.results.first().is_some_and(|result| raw[result.index()]);
    raw[inst.args[nth].index()] && !hands_on && !adds && !is_blind(&inst.op)
}

/// Computed values that are observed in the block that computes them.
fn homes(function: &Function, raw: &[bool]) -> Vec<Value> {
    let definitions = definitions(function);
    let mut homes = vec![];
    for (at, block) in function.blocks.iter().enumerate() {
        let mut observe = |value: Value| {
            if matches!(definitions[value.index()], Definition::Inst(block, ..) if block == at) {
                homes.push(value);
            }
        };
        for inst in &block.insts {
            (0..inst.args.len())
                .filter(|&nth| observes(function, inst, nth, raw))
                .for_each(|nth| observe(inst.args[nth]));
        }
    }
    homes.sort_unstable();
    homes.dedup();
    homes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::{Block, BlockId, Edge, FloatMode, Mem, Order, Scope, Space, Term};

    fn inst(op: Op, args: &[Value], results: &[Value]) -> Inst {
        Inst { op, args: args.to_vec(), results: results.to_vec(), pos: Pos::default() }
    }

    fn add() -> Op {
        Op::Float(FloatBin::Add, Float::F32, FloatMode::default())
    }

    fn access(store: bool) -> Op {
        let (space, mem) = (Space::Global, Mem { bits: 32, signed: false });
        let (offset, order, scope) = (0, Order::Weak, Scope::Sys);
        if store {
            Op::Store { space, mem, offset, order, scope }
        } else {
            Op::Load { space, mem, offset, order, scope }
        }
    }

    fn to(block: u32, args: &[Value]) -> Edge {
        Edge { block: BlockId(block), args: args.to_vec() }
    }

    fn empty(name: &str) -> Function {
        let name = name.to_owned();
        Function { name, args: vec![], results: vec![], blocks: vec![], values: vec![], locals: vec![] }
    }

    /// Selects in each block.
    fn choices(function: &Function) -> Vec<usize> {
        let count = |block: &Block| block.insts.iter().filter(|inst| inst.op == Op::Select).count();
        canonical(function).blocks.iter().map(count).collect()
    }

    /// A loop that sums f32 and stores the sum once behind it.
    #[test]
    fn a_sum_in_a_loop_is_made_canonical_only_where_it_is_stored() {
        for stored in [false, true] {
            let mut f = empty("sum");
            let [zero, address, sum, next] = [Ty::F32, Ty::B64, Ty::F32, Ty::F32].map(|ty| f.new_value(ty));
            let more = f.new_value(Ty::Pred);
            let below = Op::Fcmp { cmp: FloatCmp::Num, ty: Float::F32, ftz: false };
            f.blocks = vec![
                Block {
                    params: vec![],
                    insts: vec![inst(Op::Const(0), &[], &[zero]), inst(Op::ParamAddr(0), &[], &[address])],
                    term: Term::Jump(to(1, &[zero])),
                },
                Block {
                    params: vec![sum],
                    insts: vec![inst(add(), &[sum, sum], &[next]), inst(below, &[next, next], &[more])],
                    term: Term::Branch { cond: more, then: to(1, &[next]), otherwise: to(2, &[]) },
                },
                Block {
                    params: vec![],
                    insts: if stored { vec![inst(access(true), &[address, next], &[])] } else { vec![] },
                    term: Term::Exit,
                },
            ];
            assert_eq!(choices(&f), [0, 0, usize::from(stored)]);
        }
    }

    /// The bits of a loaded NaN are the program's own, also where a computed value takes their place in the next trip.
    #[test]
    fn what_meets_a_loaded_value_is_made_canonical_on_its_way_there() {
        let mut f = empty("mixed");
        let [address, loaded, kept, next] = [Ty::B64, Ty::F32, Ty::F32, Ty::F32].map(|ty| f.new_value(ty));
        let more = f.new_value(Ty::Pred);
        let below = Op::Fcmp { cmp: FloatCmp::Num, ty: Float::F32, ftz: false };
        f.blocks = vec![
            Block {
                params: vec![],
                insts: vec![
                    inst(Op::ParamAddr(0), &[], &[address]),
                    inst(access(false), &[address], &[loaded]),
                ],
                term: Term::Jump(to(1, &[loaded])),
            },
            Block {
                params: vec![kept],
                insts: vec![
                    inst(access(true), &[address, kept], &[]),
                    inst(add(), &[kept, kept], &[next]),
                    inst(below, &[next, next], &[more]),
                ],
                term: Term::Branch { cond: more, then: to(1, &[next]), otherwise: to(2, &[]) },
            },
            Block { params: vec![], insts: vec![], term: Term::Exit },
        ];
        assert_eq!(choices(&f), [0, 1, 0]);
    }

    /// A choice of two constants, stored; or of a constant and of what the block computes.
    #[test]
    fn a_choice_of_constants_is_right_as_it_is() {
        for computed in [false, true] {
            let mut f = empty("choice");
            let [one, zero, number, sum, chosen, bits] =
                [Ty::B32, Ty::B32, Ty::F32, Ty::F32, Ty::B32, Ty::B32].map(|ty| f.new_value(ty));
            let [address, odd] = [Ty::B64, Ty::Pred].map(|ty| f.new_value(ty));
            let test = Op::Fcmp { cmp: FloatCmp::Num, ty: Float::F32, ftz: false };
            f.blocks = vec![Block {
                params: vec![],
                insts: vec![
                    inst(Op::ParamAddr(0), &[], &[address]),
                    inst(Op::Const(32), &[], &[one]),
                    inst(Op::Const(0), &[], &[zero]),
                    inst(access(false), &[address], &[number]),
                    inst(test, &[number, number], &[odd]),
                    inst(add(), &[number, number], &[sum]),
                    inst(Op::Bitcast, &[sum], &[bits]),
                    inst(Op::Select, &[odd, one, if computed { bits } else { zero }], &[chosen]),
                    inst(access(true), &[address, chosen], &[]),
                ],
                term: Term::Exit,
            }];
            assert_eq!(choices(&f), [if computed { 2 } else { 1 }]);
        }
    }

    #[test]
    fn what_several_blocks_store_is_made_canonical_once_where_it_is_computed_and_stored() {
        let mut f = empty("stored");
        let [address, loaded, sum] = [Ty::B64, Ty::F32, Ty::F32].map(|ty| f.new_value(ty));
        f.blocks = vec![
            Block {
                params: vec![],
                insts: vec![
                    inst(Op::ParamAddr(0), &[], &[address]),
                    inst(access(false), &[address], &[loaded]),
                    inst(add(), &[loaded, loaded], &[sum]),
                    inst(access(true), &[address, sum], &[]),
                ],
                term: Term::Jump(to(1, &[])),
            },
            Block { params: vec![], insts: vec![inst(access(true), &[address, sum], &[])], term: Term::Exit },
        ];
        assert_eq!(choices(&f), [1, 0]);
    }
}
