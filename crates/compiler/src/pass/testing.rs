//! A few words of text for a function's shape, so tests of passes can be read.
//!
//! `label: name = const.TY N; name = tid; name = add a b; store a; barrier; branch p x y` with blocks on lines of their
//! own; block parameters as `label(a:b32, …)`, edge arguments as `label(x, …)`.

use std::collections::HashMap;

use super::divergence::Among;
use super::regions::plan;
use super::value_ranges::Threads;
use crate::ir::*;
use crate::lower::verify::verify;

fn ty(name: &str) -> Ty {
    match name {
        "pred" => Ty::Pred,
        "b16" => Ty::B16,
        "b32" => Ty::B32,
        "b64" => Ty::B64,
        "f32" => Ty::F32,
        "f64" => Ty::F64,
        other => panic!("type {other}"),
    }
}

pub fn function(source: &str) -> Function {
    let mut f = Function {
        name: "test".into(),
        args: vec![],
        results: vec![],
        blocks: vec![],
        values: vec![],
        locals: vec![],
    };
    let mut names: HashMap<String, Value> = HashMap::new();
    let mut blocks: HashMap<String, BlockId> = HashMap::new();
    let lines: Vec<(&str, &str)> = source
        .lines()
        .filter_map(|line| {
            line.trim().split_once(':').filter(|_| !line.trim().is_empty()).map(|_| {
                let line = line.trim();
                let end = if let Some(open) = line.find('(').filter(|open| *open < line.find(':').unwrap()) {
                    line[open..].find(')').unwrap() + open + 1
                } else {
                    line.find(':').unwrap()
                };
                (&line[..end], line[end..].trim_start_matches(':').trim())
            })
        })
        .collect();
    for (head, _) in &lines {
        let id = f.new_block();
        let (label, params) = head.split_once('(').unwrap_or((head, ""));
        blocks.insert(label.to_owned(), id);
        for param in params.trim_end_matches(')').split(',').filter(|p| !p.is_empty()) {
            let (name, of) = param.trim().split_once(':').unwrap();
            let value = f.new_value(ty(of));
            names.insert(name.to_owned(), value);
            f.blocks[id.index()].params.push(value);
        }
    }
    let edge = |text: &str, names: &HashMap<String, Value>| {
        let (label, args) = text.split_once('(').unwrap_or((text, ""));
        let args = args.trim_end_matches(')').split(',').filter(|a| !a.is_empty());
        Edge { block: blocks[label], args: args.map(|a| names[a.trim()]).collect() }
    };
    for (at, (_, body)) in lines.iter().enumerate() {
        for statement in body.split(';').map(str::trim).filter(|s| !s.is_empty()) {
            let (result, words) = match statement.split_once(" = ") {
                Some((name, rest)) => (Some(name.trim()), rest),
                None => (None, statement),
            };
            let mut words = words.split_whitespace();
            let op = words.next().unwrap();
            let rest: Vec<&str> = words.collect();
            let value = |index: usize| names[rest[index]];
            let inst = |op: Op, args: Vec<Value>, result: Option<Ty>| (op, args, result);
            let (op, args, of) = match op {
                "exit" => {
                    f.blocks[at].term = Term::Exit;
                    continue;
                }
                "jump" => {
                    f.blocks[at].term = Term::Jump(edge(rest[0], &names));
                    continue;
                }
                "branch" => {
                    let (then, otherwise) = (edge(rest[1], &names), edge(rest[2], &names));
                    f.blocks[at].term = Term::Branch { cond: value(0), then, otherwise };
                    continue;
                }
                "switch" => {
                    let targets = rest[1..].iter().map(|t| edge(t, &names)).collect();
                    f.blocks[at].term = Term::Switch { index: value(0), targets };
                    continue;
                }
                "tid" => inst(Op::Special(Special::Tid(0)), vec![], Some(Ty::B32)),
                "nctaid" => inst(Op::Special(Special::Nctaid(0)), vec![], Some(Ty::B32)),
                "ctaid" => inst(Op::Special(Special::Ctaid(0)), vec![], Some(Ty::B32)),
                "add" => inst(Op::Int(IntBin::Add, U32), vec![value(0), value(1)], Some(Ty::B32)),
                "add64" => inst(
                    Op::Int(IntBin::Add, Int { bits: 64, signed: false }),
                    vec![value(0), value(1)],
                    Some(Ty::B64),
                ),
                "sub" => inst(Op::Int(IntBin::Sub, U32), vec![value(0), value(1)], Some(Ty::B32)),
                "mul" => inst(Op::Int(IntBin::Mul, U32), vec![value(0), value(1)], Some(Ty::B32)),
                "both" => inst(Op::Bool(Bool::And), vec![value(0), value(1)], Some(Ty::Pred)),
                "either" => inst(Op::Bool(Bool::Or), vec![value(0), value(1)], Some(Ty::Pred)),
                "and" => inst(Op::Int(IntBin::And, U32), vec![value(0), value(1)], Some(Ty::B32)),
                "or" => inst(Op::Int(IntBin::Or, U32), vec![value(0), value(1)], Some(Ty::B32)),
                "shr" => inst(Op::Int(IntBin::Shr, U32), vec![value(0), value(1)], Some(Ty::B32)),
                "lt" => inst(Op::Icmp(Cmp::Lt, S32), vec![value(0), value(1)], Some(Ty::Pred)),
                "le" => inst(Op::Icmp(Cmp::Le, S32), vec![value(0), value(1)], Some(Ty::Pred)),
                "ge" => inst(Op::Icmp(Cmp::Ge, S32), vec![value(0), value(1)], Some(Ty::Pred)),
                "eq" => inst(Op::Icmp(Cmp::Eq, U32), vec![value(0), value(1)], Some(Ty::Pred)),
                "sext" => inst(Op::Sext, vec![value(0)], Some(Ty::B64)),
                "zext" => inst(Op::Zext, vec![value(0)], Some(Ty::B64)),
                "load" | "vload" => {
                    let order = if op == "vload" { Order::Volatile } else { Order::Weak };
                    let mem = Mem { bits: 32, signed: false };
                    let op = Op::Load { space: Space::Global, mem, offset: 0, order, scope: Scope::Sys };
                    inst(op, vec![value(0)], Some(Ty::B32))
                }
                "store" | "vstore" => {
                    let mem = Mem { bits: 32, signed: false };
                    let order = if op == "vstore" { Order::Volatile } else { Order::Weak };
                    let op = Op::Store { space: Space::Global, mem, offset: 0, order, scope: Scope::Sys };
                    inst(op, vec![value(0), value(1)], None)
                }
                "cas" => {
                    let op = Op::Atomic {
                        space: Space::Global,
                        op: AtomOp::Cas,
                        ty: AtomTy::Int(U32),
                        offset: 0,
                        order: Order::Relaxed,
                        scope: Scope::Gpu,
                    };
                    inst(op, vec![value(0), value(1), value(2)], Some(Ty::B32))
                }
                "ballot" => inst(Op::Vote(VoteMode::Ballot), vec![value(0), value(1)], Some(Ty::B32)),
                "activemask" => inst(Op::ActiveMask, vec![], Some(Ty::B32)),
                "barrier" => {
                    inst(Op::Barrier { kind: BarrierKind::Sync, aligned: true }, vec![value(0)], None)
                }
                other => match other.split_once('.') {
                    Some(("const", of)) => inst(Op::Const(rest[0].parse().unwrap()), vec![], Some(ty(of))),
                    _ => panic!("operation {other}"),
                },
            };
            let results = of.map(|of| f.new_value(of)).into_iter().collect::<Vec<_>>();
            if let (Some(name), Some(&value)) = (result, results.first()) {
                names.insert(name.to_owned(), value);
            }
            f.blocks[at].insts.push(Inst { op, args, results, pos: Pos::default() });
        }
    }
    f
}

/// The function as text, for messages.
pub fn text(function: &Function) -> String {
    use std::fmt::Write;
    let mut out = String::new();
    for (at, block) in function.blocks.iter().enumerate() {
        let _ = writeln!(out, "bb{at}{:?}:", block.params);
        for inst in &block.insts {
            let _ = writeln!(out, "  {:?} = {:?} {:?}", inst.results, inst.op, inst.args);
        }
        let _ = writeln!(out, "  {:?}", block.term);
    }
    out
}

/// In how many regions warps run it in step, or why not; what `change` makes of it has to be whole.
pub fn regions_of_warps(source: &str, change: fn(&Function) -> Option<Function>) -> Result<usize, String> {
    let whole = function(source);
    if let Some(changed) = change(&whole) {
        verify(&changed).unwrap_or_else(|error| panic!("{error}\n{}", text(&changed)));
    }
    let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
    plan(&whole, threads, 0, Among::Group).map(|plan| plan.regions.len())
}
