//! Clean-up after SSA construction and inlining: parameters that are copies, conversions that undo each other, pure code
//! that nobody uses. Values are renumbered in order of definition, so printed IR is stable.

use foldhash::{HashMap, HashMapExt as _};

use crate::ir::{BlockId, Function, Op, Term, Ty, Value};

pub(crate) fn run(function: &mut Function) {
    remove_copies(function);
    merge_blocks(function);
    super::handed::run(function);
    fold_conversions(function);
    super::widening::run(function);
    super::displacement::run(function);
    super::byte_signs::run(function);
    remove_dead(function);
    drop_unused_old_values(function);
    renumber(function);
}

/// A block that only one jump leads to becomes part of the block that jumps.
fn merge_blocks(function: &mut Function) {
    let mut predecessors = vec![0usize; function.blocks.len()];
    predecessors[0] = 1;
    for block in &function.blocks {
        for edge in block.term.edges() {
            predecessors[edge.block.index()] += 1;
        }
    }
    let mut replaced: Vec<Option<Value>> = vec![None; function.values.len()];
    let mut gone = vec![false; function.blocks.len()];
    for at in 0..function.blocks.len() {
        if gone[at] {
            continue;
        }
        while let Term::Jump(edge) = &function.blocks[at].term {
            let next = edge.block.index();
            if next == at || next == 0 || predecessors[next] != 1 {
                break;
            }
            let args = edge.args.clone();
            let block = std::mem::replace(&mut function.blocks[next], super::builder::empty_block());
            gone[next] = true;
            for (param, arg) in block.params.into_iter().zip(args) {
                replaced[param.index()] = Some(arg);
            }
            function.blocks[at].insts.extend(block.insts);
            function.blocks[at].term = block.term;
        }
    }
    let mut renamed = vec![BlockId(0); gone.len()];
    let mut next = 0;
    for (name, gone) in renamed.iter_mut().zip(&gone) {
        *name = BlockId(next);
        next += u32::from(!gone);
    }
    let mut index = 0;
    function.blocks.retain(|_| {
        index += 1;
        !gone[index - 1]
    });
    for edge in function.blocks.iter_mut().flat_map(|block| block.term.edges_mut()) {
        edge.block = renamed[edge.block.index()];
    }
    apply(function, &mut replaced);
}

/// `atom` whose old value nobody reads is `red`.
fn drop_unused_old_values(function: &mut Function) {
    let mut read = vec![false; function.values.len()];
    for block in &mut function.blocks {
        for inst in &block.insts {
            inst.args.iter().for_each(|arg| read[arg.index()] = true);
        }
        block.term.for_each_value_mut(|value| read[value.index()] = true);
    }
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if matches!(inst.op, Op::Atomic { .. }) {
            inst.results.retain(|result| read[result.index()]);
        }
    }
}

/// Follows replacements to their end and shortens the way.
fn resolve(replaced: &mut [Option<Value>], value: Value) -> Value {
    let mut end = value;
    while let Some(next) = replaced[end.index()] {
        end = next;
    }
    let mut at = value;
    while let Some(next) = replaced[at.index()] {
        replaced[at.index()] = Some(end);
        at = next;
    }
    end
}

fn apply(function: &mut Function, replaced: &mut [Option<Value>]) {
    for block in &mut function.blocks {
        for inst in &mut block.insts {
            for arg in &mut inst.args {
                *arg = resolve(replaced, *arg);
            }
        }
        block.term.for_each_value_mut(|value| *value = resolve(replaced, *value));
    }
}

/// A parameter that gets one value from everywhere (or itself) is that value.
fn remove_copies(function: &mut Function) {
    let mut replaced: Vec<Option<Value>> = vec![None; function.values.len()];
    // Per block, per incoming edge: which block, which of its edges.
    let mut incoming: Vec<Vec<(usize, usize)>> = vec![vec![]; function.blocks.len()];
    for (from, block) in function.blocks.iter().enumerate() {
        for (nth, edge) in block.term.edges().into_iter().enumerate() {
            incoming[edge.block.index()].push((from, nth));
        }
    }
    let order = function.reverse_post_order();
    loop {
        let mut changed = false;
        for &block in order.iter().filter(|block| block.index() != 0) {
            for (index, &param) in function.block(block).params.iter().enumerate() {
                if replaced[param.index()].is_some() {
                    continue;
                }
                let mut unique = None;
                let mut is_copy = true;
                for &(from, nth) in &incoming[block.index()] {
                    let arg = match &function.blocks[from].term {
                        Term::Jump(edge) => edge.args[index],
                        term => term.edges()[nth].args[index],
                    };
                    let arg = resolve(&mut replaced, arg);
                    if arg != param && *unique.get_or_insert(arg) != arg {
                        is_copy = false;
                        break;
                    }
                }
                if let (true, Some(value)) = (is_copy, unique) {
                    replaced[param.index()] = Some(value);
                    changed = true;
                }
            }
        }
        if !changed {
            break;
        }
    }
    apply(function, &mut replaced);
    keep_params(function, |value| replaced[value.index()].is_none());
}

/// Drops block parameters and the arguments that edges carry for them. The entry's stay.
fn keep_params(function: &mut Function, keep: impl Fn(Value) -> bool) {
    let kept: Vec<Vec<bool>> = function
        .blocks
        .iter()
        .enumerate()
        .map(|(index, block)| block.params.iter().map(|&param| index == 0 || keep(param)).collect())
        .collect();
    for (index, block) in function.blocks.iter_mut().enumerate() {
        let mut flags = kept[index].iter();
        block.params.retain(|_| flags.next().copied().unwrap_or(true));
        for edge in block.term.edges_mut() {
            let mut flags = kept[edge.block.index()].iter();
            edge.args.retain(|_| flags.next().copied().unwrap_or(true));
        }
    }
}

/// Conversions that change nothing: a shared or local offset made 32 bits and 64 bits again is the offset itself; a
/// bitcast there and back is the value.
fn fold_conversions(function: &mut Function) {
    let mut defined: HashMap<Value, (Op, Value)> = HashMap::new();
    let mut window: Vec<bool> = vec![false; function.values.len()];
    let mut replaced: Vec<Option<Value>> = vec![None; function.values.len()];
    for block in function.reverse_post_order() {
        for inst in &function.block(block).insts {
            let (&[result], arg) = (inst.results.as_slice(), inst.args.first().copied()) else { continue };
            if matches!(inst.op, Op::SharedAddr(_) | Op::LocalAddr(_) | Op::ParamAddr(_)) {
                window[result.index()] = true;
            }
            let Some(arg) = arg else { continue };
            let arg = resolve(&mut replaced, arg);
            match (&inst.op, defined.get(&arg)) {
                (Op::Zext, Some((Op::Trunc, origin)))
                    if window[origin.index()]
                        && function.ty(result) == Ty::B64
                        && function.ty(arg) == Ty::B32 =>
                {
                    replaced[result.index()] = Some(*origin);
                }
                (Op::Bitcast, _) if function.ty(arg) == function.ty(result) => {
                    replaced[result.index()] = Some(arg);
                }
                (Op::Bitcast, Some((Op::Bitcast, origin))) if function.ty(*origin) == function.ty(result) => {
                    replaced[result.index()] = Some(*origin);
                }
                _ => {}
            }
            if matches!(inst.op, Op::Trunc | Op::Bitcast) {
                defined.insert(result, (inst.op.clone(), arg));
            }
        }
    }
    apply(function, &mut replaced);
    type_constants(function);
}

/// A constant that is taken for another type is one of that type.
fn type_constants(function: &mut Function) {
    let insts = function.blocks.iter().flat_map(|block| &block.insts);
    let constants: HashMap<Value, u128> = insts
        .filter_map(|inst| match (&inst.op, inst.results.as_slice()) {
            (Op::Const(number), [result]) => Some((*result, *number)),
            _ => None,
        })
        .collect();
    for inst in function.blocks.iter_mut().flat_map(|block| &mut block.insts) {
        if let (Op::Bitcast, [arg]) = (&inst.op, inst.args.as_slice())
            && let Some(&number) = constants.get(arg)
        {
            inst.op = Op::Const(number);
            inst.args.clear();
        }
    }
}

/// Keeps what effects and control flow need.
fn remove_dead(function: &mut Function) {
    #[derive(Clone, Copy)]
    enum Definition {
        None,
        Inst(usize, usize),
        Param(usize, usize),
    }
    let mut definitions = vec![Definition::None; function.values.len()];
    let mut incoming: Vec<Vec<(usize, usize)>> = vec![vec![]; function.blocks.len()];
    let mut live = vec![false; function.values.len()];
    let mut work: Vec<Value> = vec![];
    for (at, block) in function.blocks.iter().enumerate() {
        for (nth, &param) in block.params.iter().enumerate() {
            definitions[param.index()] = Definition::Param(at, nth);
        }
        for (nth, inst) in block.insts.iter().enumerate() {
            for result in &inst.results {
                definitions[result.index()] = Definition::Inst(at, nth);
            }
            if !is_removable(&inst.op) {
                work.extend(&inst.args);
            }
        }
        for (nth, edge) in block.term.edges().into_iter().enumerate() {
            incoming[edge.block.index()].push((at, nth));
        }
        work.extend(block.term.own_values());
    }
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut live[value.index()], true) {
            continue;
        }
        match definitions[value.index()] {
            Definition::None => {}
            Definition::Inst(block, nth) => work.extend(&function.blocks[block].insts[nth].args),
            Definition::Param(block, nth) => {
                for &(from, edge) in &incoming[block] {
                    work.push(function.blocks[from].term.edges()[edge].args[nth]);
                }
            }
        }
    }
    for block in &mut function.blocks {
        block.insts.retain(|inst| !is_removable(&inst.op) || inst.results.iter().any(|it| live[it.index()]));
    }
    keep_params(function, |value| live[value.index()]);
}

/// Without effect for anybody when its result is not used.
fn is_removable(op: &Op) -> bool {
    op.is_pure()
        || matches!(op, Op::Special(_))
        // A weak load of a kernel parameter always succeeds.
        || matches!(op, Op::Load { space: crate::ir::Space::Param, order: crate::ir::Order::Weak, .. })
}

fn renumber(function: &mut Function) {
    let mut names: Vec<Option<Value>> = vec![None; function.values.len()];
    let mut types: Vec<Ty> = Vec::new();
    for block in &function.blocks {
        let results = block.insts.iter().flat_map(|inst| &inst.results);
        for &value in block.params.iter().chain(results) {
            names[value.index()] = Some(Value(types.len() as u32));
            types.push(function.values[value.index()]);
        }
    }
    let name = |value: &mut Value| {
        if let Some(new) = names[value.index()] {
            *value = new;
        }
    };
    for block in &mut function.blocks {
        block.params.iter_mut().for_each(name);
        for inst in &mut block.insts {
            inst.args.iter_mut().for_each(name);
            inst.results.iter_mut().for_each(name);
        }
        block.term.for_each_value_mut(name);
    }
    function.values = types;
}
