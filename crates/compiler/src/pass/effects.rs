//! What of a kernel others see: up to its first such operation a block may be given up and begun anew.

use super::dominators::{Dominators, successors};
use super::loops::Loops;
use super::visit::{Definition, definitions};
use crate::ir::*;
use crate::texture::Access;

/// Whether anybody but the block's own threads may notice the operation, and it would be another thing to do it twice.
fn is_effect(op: &Op) -> bool {
    match op {
        Op::Store { space, .. } | Op::Atomic { space, .. } => {
            !matches!(space, Space::Shared | Space::Local | Space::Param)
        }
        Op::Texture(access) => matches!(access, Access::Store { .. } | Access::Reduce { .. }),
        Op::TensorCopy(_) | Op::Syscall(_) | Op::Call(_) | Op::CallIndirect => true,
        _ => false,
    }
}

/// By block: the instruction that is a thread's first effect on some way through the function.
pub fn first(function: &Function) -> Vec<Option<usize>> {
    let position = |block: &Block| block.insts.iter().position(|inst| is_effect(&inst.op));
    let all: Vec<Option<usize>> = function.blocks.iter().map(position).collect();
    let dominators = Dominators::of(function);
    let is_later = |at: usize| {
        let mut before = dominators.immediate(at);
        while let Some(block) = before {
            if all[block].is_some() {
                return true;
            }
            before = dominators.immediate(block);
        }
        false
    };
    all.iter().enumerate().map(|(at, first)| first.filter(|_| !is_later(at))).collect()
}

/// Whether behind an effect, or around it, there is a loop whose trips a launch decides by the kernel's parameters: then
/// a block that was cheap up to its first effect may be long all the same.
pub fn is_followed_by_long_loops(function: &Function) -> bool {
    let graph = successors(function);
    let dominators = Dominators::of_graph(&graph, 0);
    let Some(loops) = Loops::of_graph(&graph, &dominators) else { return true };
    let mut is_behind = vec![false; graph.len()];
    let has_effect = |at: &usize| function.blocks[*at].insts.iter().any(|inst| is_effect(&inst.op));
    let mut work: Vec<usize> =
        (0..graph.len()).filter(has_effect).flat_map(|at| graph[at].iter().copied()).collect();
    while let Some(at) = work.pop() {
        if !std::mem::replace(&mut is_behind[at], true) {
            work.extend(&graph[at]);
        }
    }
    let definitions = definitions(function);
    (0..loops.all.len())
        .filter(|&index| is_behind[loops.all[index].header])
        .any(|index| is_up_to_the_launch(function, &graph, &loops, &definitions, index))
}

/// Whether some way out of the loop is taken when the kernel's parameters say so, and not what memory holds besides.
fn is_up_to_the_launch(
    function: &Function,
    graph: &[Vec<usize>],
    loops: &Loops,
    definitions: &[Definition],
    index: usize,
) -> bool {
    loops.all[index].blocks.iter().any(|&at| match function.blocks[at].term {
        Term::Branch { cond: value, .. } | Term::Switch { index: value, .. } => {
            graph[at].iter().any(|&to| !loops.contains(index, to))
                && is_made_of_parameters(function, graph, definitions, value)
        }
        _ => false,
    })
}

/// Whether the value comes from parameters, and from nothing else that is loaded.
fn is_made_of_parameters(
    function: &Function,
    graph: &[Vec<usize>],
    definitions: &[Definition],
    value: Value,
) -> bool {
    let mut seen = vec![false; function.values.len()];
    let (mut work, mut has_parameter) = (vec![value], false);
    while let Some(value) = work.pop() {
        if std::mem::replace(&mut seen[value.index()], true) {
            continue;
        }
        match definitions[value.index()] {
            Definition::Param(block, nth) => {
                for (from, successors) in graph.iter().enumerate() {
                    let edges = function.blocks[from].term.edges();
                    let to_it = successors.iter().enumerate().filter(|&(_, &to)| to == block);
                    work.extend(to_it.map(|(edge, _)| edges[edge].args[nth]));
                }
            }
            Definition::Inst(block, at, _) => {
                let inst = &function.blocks[block].insts[at];
                match inst.op {
                    // Unoptimised code keeps all its variables in local memory.
                    Op::Load { space: Space::Param | Space::Const | Space::Local, .. } => {
                        has_parameter = true
                    }
                    Op::Load { .. } => return false,
                    // A ticket: each block takes them until there are no more.
                    Op::Atomic { .. } => {}
                    _ => work.extend(&inst.args),
                }
            }
            Definition::None => {}
        }
    }
    has_parameter
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    fn lowered(body: &str) -> Function {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words, .param .u32 n) {{\n\
             .shared .b32 own[4];\n.reg .b32 %t, %n, %x;\n.reg .pred %p;\n.reg .b64 %at;\nld.param.u64 %at, [words];\n\
             ld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\n{body}ret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        program.kernel("k").unwrap().body.clone().unwrap()
    }

    fn gates(body: &str) -> usize {
        first(&lowered(body)).iter().flatten().count()
    }

    #[test]
    fn the_first_effect_on_each_way_is_found() {
        let store = "st.global.u32 [%at], %t;\n";
        assert_eq!(
            gates("st.shared.u32 [own], %t;\natom.shared.add.u32 %x, [own], 1;\nld.global.u32 %x, [%at];\n"),
            0
        );
        assert_eq!(gates(&store.repeat(3)), 1);
        for effect in
            [store, "st.u32 [%at], %t;\n", "red.global.add.u32 [%at], 1;\n", "atom.add.u32 %x, [%at], 1;\n"]
        {
            assert_eq!(gates(effect), 1, "{effect}");
        }
        let split = |then: &str, other: &str, both: &str| {
            format!("setp.eq.u32 %p, %t, 0;\n@%p bra A;\n{other}bra.uni B;\nA:\n{then}B:\n{both}")
        };
        assert_eq!(gates(&split(store, store, "")), 2);
        // Behind one way alone it may still be the first.
        assert_eq!(gates(&split(store, "add.u32 %t, %t, 1;\n", store)), 2);
        assert_eq!(gates(&(store.to_owned() + &split(store, store, store))), 1);
    }

    fn is_long(body: &str) -> bool {
        is_followed_by_long_loops(&lowered(body))
    }

    #[test]
    fn loops_that_a_launch_decides_count_behind_an_effect() {
        let store = "st.global.u32 [%at], %t;\n";
        let around = |inside: &str, bound: &str| {
            format!("AGAIN:\n{inside}add.u32 %t, %t, 1;\nsetp.lt.u32 %p, %t, {bound};\n@%p bra AGAIN;\n")
        };
        assert!(is_long(&around(store, "%n")));
        assert!(is_long(&(store.to_owned() + &around("", "%n"))));
        assert!(!is_long(&(around("", "%n") + store)), "in front of it");
        assert!(!is_long(&around(store, "100")), "of known length");
        let load = "ld.global.u32 %x, [%at];\n";
        assert!(!is_long(&around(&(store.to_owned() + load), "%x")), "as memory says");
        assert!(!is_long(&around(&(store.to_owned() + load + "sub.u32 %x, %n, %x;\n"), "%x")));
        let ticket = format!(
            "AGAIN:\natom.global.add.u32 %x, [%at], 1;\n{store}setp.lt.u32 %p, %x, %n;\n@%p bra AGAIN;\n"
        );
        assert!(is_long(&ticket));
    }
}
