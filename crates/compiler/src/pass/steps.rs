//! How many instructions a thread comes through, where a launch's parameters and sides decide that. Only what the way depends on is worked
//! out: memory besides the parameters is not known, and neither is what follows from it.
//!
//! Rule: the number is never much too small. A branch that is not known takes a thread past both of its sides, which count as if it
//! went through both; out of a loop it leads nowhere, since it may be that it is never taken.

use std::collections::HashMap;

use super::dominators::{Dominators, post_dominators, reverse_post_order, successors};
use super::evaluate::{evaluate_known, is_evaluated};
use super::loops::Loops;
use super::value_ranges::{mask, signed};
use super::visit::{Definition, definitions};
use crate::ir::*;

/// A kernel's way, as far as it can be known.
#[derive(Clone, Debug)]
pub struct Steps {
    n_values: usize,
    blocks: Vec<Stretch>,
}

/// A block: how many instructions it has, and those that decide where control goes.
#[derive(Clone, Debug)]
struct Stretch {
    instructions: u32,
    params: Vec<Option<u32>>,
    insts: Vec<Known>,
    to: Way,
}

/// An instruction by numbers that are counted for this purpose alone.
#[derive(Clone, Debug)]
struct Known {
    /// `None`: its results are not known.
    op: Option<Op>,
    args: Vec<Option<u32>>,
    /// Bits of the first argument.
    from: u32,
    results: Vec<Option<u32>>,
    bits: u32,
}

#[derive(Clone, Debug)]
struct Turn {
    block: u32,
    args: Vec<Option<u32>>,
}

#[derive(Clone, Debug)]
enum Way {
    Jump(Turn),
    Branch {
        cond: Option<u32>,
        then: Turn,
        otherwise: Turn,
        unknown: Unknown,
    },
    End,
    /// Nobody can tell.
    Lost,
}

/// Where a thread goes on of which it is not known which side it takes.
#[derive(Clone, Debug)]
enum Unknown {
    Then,
    Otherwise,
    /// Behind both sides, which have so many instructions; at the end where there is no such block.
    Past(Option<u32>, u32),
    Lost,
}

/// What a launch says.
#[derive(Clone, Copy, Debug)]
pub struct Launch<'a> {
    pub params: &'a [u8],
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

impl Steps {
    /// `None` where control can come into a loop by several ways.
    pub fn of(function: &Function) -> Option<Steps> {
        let graph = successors(function);
        let dominators = Dominators::of_graph(&graph, 0);
        let loops = Loops::of_graph(&graph, &dominators)?;
        let needed = Needed::of(function);
        let map = Map::of(function, &graph, &dominators, &loops);
        let blocks = function.blocks.iter().enumerate();
        let blocks = blocks.map(|(at, block)| needed.stretch(function, block, &map, at)).collect();
        Some(Steps { n_values: needed.numbers.len(), blocks })
    }

    /// Instructions of the thread that has most to do, of those at the corners of the grid; `None` where that is not known, or
    /// more than `most`.
    pub fn of_launch(&self, launch: &Launch<'_>, most: u64) -> Option<u64> {
        let last = |sides: [u32; 3]| sides.map(|side| side.saturating_sub(1));
        let corners =
            [([0; 3], [0; 3]), (last(launch.grid), [0; 3]), (last(launch.grid), last(launch.block))];
        let mut found = 0;
        for (ctaid, tid) in corners {
            found = found.max(self.walk(launch, ctaid, tid, most)?);
        }
        Some(found)
    }

    fn walk(&self, launch: &Launch<'_>, ctaid: [u32; 3], tid: [u32; 3], most: u64) -> Option<u64> {
        let mut values: Vec<Option<u64>> = vec![None; self.n_values];
        let (mut at, mut steps) = (0usize, 0u64);
        loop {
            let block = &self.blocks[at];
            // A block without instructions is a step too, so that every walk ends.
            steps += u64::from(block.instructions.max(1));
            if steps > most {
                return None;
            }
            for inst in &block.insts {
                inst.run(&mut values, launch, ctaid, tid);
            }
            let turn = match &block.to {
                Way::Jump(turn) => turn,
                Way::End => return Some(steps),
                Way::Lost => return None,
                Way::Branch { cond, then, otherwise, unknown } => {
                    match (cond.and_then(|cond| values[cond as usize]), unknown) {
                        (Some(1), _) | (None, Unknown::Then) => then,
                        (Some(_), _) | (None, Unknown::Otherwise) => otherwise,
                        (None, Unknown::Lost) => return None,
                        (None, Unknown::Past(to, instructions)) => {
                            steps += u64::from(*instructions);
                            let Some(to) = to else { return Some(steps).filter(|steps| *steps <= most) };
                            at = *to as usize;
                            for param in self.blocks[at].params.iter().flatten() {
                                values[*param as usize] = None;
                            }
                            continue;
                        }
                    }
                }
            };
            at = turn.block as usize;
            let args: Vec<Option<u64>> =
                turn.args.iter().map(|arg| arg.and_then(|arg| values[arg as usize])).collect();
            for (param, arg) in self.blocks[at].params.iter().zip(args) {
                if let Some(param) = param {
                    values[*param as usize] = arg;
                }
            }
        }
    }
}

/// The values that branches are decided by, and what those are made of.
struct Needed {
    numbers: HashMap<Value, u32>,
}

impl Needed {
    fn of(function: &Function) -> Needed {
        let definitions = definitions(function);
        let mut incoming: HashMap<Value, Vec<Value>> = HashMap::new();
        for edge in function.blocks.iter().flat_map(|block| block.term.edges()) {
            let params = &function.block(edge.block).params;
            for (param, arg) in params.iter().zip(&edge.args) {
                incoming.entry(*param).or_default().push(*arg);
            }
        }
        let mut numbers = HashMap::new();
        let mut work: Vec<Value> = function.blocks.iter().flat_map(|block| block.term.own_values()).collect();
        while let Some(value) = work.pop() {
            let number = numbers.len() as u32;
            if *numbers.entry(value).or_insert(number) != number {
                continue;
            }
            match definitions[value.index()] {
                Definition::Inst(block, at, _) => {
                    let inst = &function.blocks[block].insts[at];
                    if is_known(&inst.op) {
                        work.extend(&inst.args);
                    }
                }
                Definition::Param(..) => work.extend(incoming.get(&value).into_iter().flatten()),
                Definition::None => {}
            }
        }
        Needed { numbers }
    }

    fn number(&self, value: Value) -> Option<u32> {
        self.numbers.get(&value).copied()
    }

    fn numbers(&self, values: &[Value]) -> Vec<Option<u32>> {
        values.iter().map(|value| self.number(*value)).collect()
    }

    fn turn(&self, edge: &Edge) -> Turn {
        Turn { block: edge.block.0, args: self.numbers(&edge.args) }
    }

    fn stretch(&self, function: &Function, block: &Block, map: &Map, at: usize) -> Stretch {
        let is_needed = |inst: &&Inst| inst.results.iter().any(|result| self.number(*result).is_some());
        let known = |inst: &Inst| Known {
            op: is_known(&inst.op).then(|| inst.op.clone()),
            args: self.numbers(&inst.args),
            from: inst.args.first().map_or(0, |&arg| function.ty(arg).bits()),
            results: self.numbers(&inst.results),
            bits: inst.results.first().map_or(0, |&result| function.ty(result).bits()),
        };
        let to = match &block.term {
            Term::Jump(edge) => Way::Jump(self.turn(edge)),
            Term::Branch { cond, then, otherwise } => Way::Branch {
                cond: self.number(*cond),
                then: self.turn(then),
                otherwise: self.turn(otherwise),
                unknown: map.unknown(at, then.block.index(), otherwise.block.index()),
            },
            Term::Switch { .. } => Way::Lost,
            Term::Exit | Term::Return(_) => Way::End,
        };
        Stretch {
            instructions: u32::try_from(length(block)).unwrap_or(u32::MAX),
            params: self.numbers(&block.params),
            insts: block.insts.iter().filter(is_needed).map(known).collect(),
            to,
        }
    }
}

/// What lies between blocks.
struct Map<'a> {
    loops: &'a Loops,
    /// They know each block's place in reverse post-order.
    dominators: &'a Dominators,
    behind: Dominators,
    /// By place: instructions and headers of loops before it.
    instructions: Vec<u64>,
    headers: Vec<usize>,
    /// Whether a loop lies on some way from the block on.
    leads_to_loop: Vec<bool>,
}

impl<'a> Map<'a> {
    fn of(
        function: &Function,
        graph: &[Vec<usize>],
        dominators: &'a Dominators,
        loops: &'a Loops,
    ) -> Map<'a> {
        let order = reverse_post_order(graph, 0);
        let mut map = Map {
            loops,
            dominators,
            behind: post_dominators(graph),
            instructions: vec![0],
            headers: vec![0],
            leads_to_loop: vec![false; graph.len()],
        };
        let (mut instructions, mut headers) = (0, 0);
        for &at in &order {
            instructions += length(&function.blocks[at]) as u64;
            headers += usize::from(loops.is_header(at));
            map.instructions.push(instructions);
            map.headers.push(headers);
        }
        for &at in order.iter().rev() {
            map.leads_to_loop[at] = loops.is_header(at) || graph[at].iter().any(|&to| map.leads_to_loop[to]);
        }
        map
    }

    /// How a thread goes on behind block `at` whose branch is not known.
    fn unknown(&self, at: usize, then: usize, otherwise: usize) -> Unknown {
        if !self.dominators.is_reachable(at) {
            return Unknown::Lost;
        }
        let own = self.loops.of[at];
        if let Some(own) = own {
            match (self.loops.contains(own, then), self.loops.contains(own, otherwise)) {
                (true, false) => return Unknown::Then,
                (false, true) => return Unknown::Otherwise,
                _ => {}
            }
        }
        let (n_blocks, end) = (self.loops.of.len(), self.instructions.len() - 1);
        let (to, place) = match self.behind.immediate(at) {
            Some(to) if to < n_blocks && self.loops.of[to] == own => {
                (Some(to as u32), self.dominators.position(to))
            }
            Some(to) if to >= n_blocks && own.is_none() => (None, end),
            _ => return Unknown::Lost,
        };
        let from = self.dominators.position(at) + 1;
        if place < from {
            return Unknown::Lost;
        }
        if self.headers[place] == self.headers[from] {
            let between = self.instructions[place] - self.instructions[from];
            return Unknown::Past(to, u32::try_from(between).unwrap_or(u32::MAX));
        }
        // Who ends here does no more than who goes on.
        match (to, self.leads_to_loop[then], self.leads_to_loop[otherwise]) {
            (None, true, false) => Unknown::Then,
            (None, false, true) => Unknown::Otherwise,
            _ => Unknown::Lost,
        }
    }
}

/// Instructions of the block; constants are parts of others.
fn length(block: &Block) -> usize {
    block.insts.iter().map(|inst| weight(&inst.op)).sum()
}

/// Operations whose results [`Known::run`] may give.
fn is_known(op: &Op) -> bool {
    match op {
        Op::Load { space, .. } => *space == Space::Param,
        Op::Special(register) => {
            matches!(register, Special::Tid(_) | Special::Ntid(_) | Special::Ctaid(_) | Special::Nctaid(_))
        }
        Op::ParamAddr(_) => true,
        op => is_evaluated(op),
    }
}

impl Known {
    fn run(&self, values: &mut [Option<u64>], launch: &Launch<'_>, ctaid: [u32; 3], tid: [u32; 3]) {
        for (nth, result) in self.results.iter().enumerate() {
            if let Some(result) = result {
                values[*result as usize] = self.result(values, nth, launch, ctaid, tid);
            }
        }
    }

    fn result(
        &self,
        values: &[Option<u64>],
        nth: usize,
        launch: &Launch<'_>,
        ctaid: [u32; 3],
        tid: [u32; 3],
    ) -> Option<u64> {
        let of = |index: usize| self.args.get(index).copied()?.and_then(|arg| values[arg as usize]);
        if self.bits > 64 {
            return None;
        }
        let cut = |value: u64| value & mask(self.bits) as u64;
        let side = |sides: [u32; 3], d: u8| sides.get(usize::from(d)).copied().map(u64::from);
        match self.op.as_ref()? {
            Op::ParamAddr(offset) => Some(u64::from(*offset)),
            Op::Special(Special::Tid(d)) => side(tid, *d),
            Op::Special(Special::Ntid(d)) => side(launch.block, *d),
            Op::Special(Special::Ctaid(d)) => side(ctaid, *d),
            Op::Special(Special::Nctaid(d)) => side(launch.grid, *d),
            Op::Load { mem, offset, .. } => {
                let bytes = usize::from(mem.bits / 8);
                let at = usize::try_from(of(0)?.wrapping_add_signed(*offset)).ok()? + nth * bytes;
                let read = launch.params.get(at..at.checked_add(bytes)?)?;
                let mut word = [0; 8];
                word.get_mut(..bytes)?.copy_from_slice(read);
                let value = u64::from_le_bytes(word);
                let extended = signed(value.into(), mem.bits.into()) as u64;
                Some(cut(if mem.signed { extended } else { value }))
            }
            // One side may decide.
            Op::Bool(Bool::And) if of(0) == Some(0) || of(1) == Some(0) => Some(0),
            Op::Bool(Bool::Or) if of(0) == Some(1) || of(1) == Some(1) => Some(1),
            Op::Select => of(if of(0)? == 1 { 1 } else { 2 }),
            op => {
                let known = |index: usize| of(index).map(u128::from);
                let result = evaluate_known(op, nth, self.args.len(), known, self.from, self.bits)?;
                Some(result as u64)
            }
        }
    }
}

/// As how many instructions an operation counts. Of a warp's product each lane has its part, and waits for the others.
fn weight(op: &Op) -> usize {
    match op {
        Op::Const(_) => 0,
        Op::Mma(_) => 64,
        Op::Wgmma(wgmma) => 64 + 8 * wgmma.columns as usize,
        Op::MatrixRows(_) => 32,
        Op::CopyAsync(_) => 8,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::{Program, Source};

    fn steps(body: &str) -> Steps {
        let text = format!(
            ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k(.param .u64 words, .param .u32 n) {{\n\
             .reg .b32 %t, %n, %x, %i, %s;\n.reg .pred %p;\n.reg .b64 %at;\nld.param.u64 %at, [words];\n\
             ld.param.u32 %n, [n];\nmov.u32 %t, %tid.x;\nmov.u32 %x, %ntid.x;\nmov.u32 %s, %ctaid.x;\nmad.lo.u32 %i, %s, %x, %t;\n\
             mov.u32 %s, %nctaid.x;\nmul.lo.u32 %s, %s, %x;\n{body}ret;\n}}\n"
        );
        let program = Program::load(&[Source { name: "k".to_owned(), text }]).unwrap();
        Steps::of(program.kernel("k").unwrap().body.as_ref().unwrap()).unwrap()
    }

    /// Of a grid of 4 blocks of 64 threads whose `n` is this.
    fn count(body: &str, n: u32) -> Option<u64> {
        let mut params = [0; 12];
        params[8..].copy_from_slice(&n.to_le_bytes());
        steps(body).of_launch(&Launch { params: &params, grid: [4, 1, 1], block: [64, 1, 1] }, 100_000)
    }

    const STRIDE: &str = "setp.ge.u32 %p, %i, %n;\n@%p bra END;\nAGAIN:\nst.global.u32 [%at], %t;\nadd.u32 %i, %i, %s;\n\
        setp.lt.u32 %p, %i, %n;\n@%p bra AGAIN;\nEND:\n";

    #[test]
    fn a_loop_through_an_array_is_as_long_as_the_array() {
        let trips = |n: u32| count(STRIDE, n).unwrap();
        // A trip has a store, an addition, a comparison.
        assert_eq!(trips(256 * 11) - trips(256), 3 * 10);
        assert_eq!(trips(257) - trips(256), 3, "the first thread has one trip more");
        assert!(trips(0) < trips(1));
        assert_eq!(count(STRIDE, u32::MAX), None, "more than was asked for");
    }

    #[test]
    fn the_last_thread_may_have_most_to_do() {
        let triangle = "mov.u32 %x, 0;\nAGAIN:\nadd.u32 %x, %x, 1;\nst.global.u32 [%at], %x;\nsetp.lt.u32 %p, %x, %i;\n@%p bra AGAIN;\n";
        let steps = count(triangle, 0).unwrap();
        assert!((3 * 255..3 * 255 + 30).contains(&steps), "{steps}");
    }

    #[test]
    fn memory_decides_nothing_that_is_known() {
        let load = "ld.global.u32 %x, [%at];\n";
        let by_memory = format!(
            "{load}mov.u32 %t, 0;\nAGAIN:\nadd.u32 %t, %t, 1;\nst.global.u32 [%at], %t;\nsetp.lt.u32 %p, %t, %x;\n@%p bra AGAIN;\n"
        );
        assert_eq!(count(&by_memory, 5), None);
        // A way out that may be taken at once, and need not.
        let early = format!(
            "AGAIN:\n{load}setp.eq.u32 %p, %x, 7;\n@%p bra END;\nadd.u32 %i, %i, %s;\nsetp.lt.u32 %p, %i, %n;\n@%p bra AGAIN;\nEND:\n"
        );
        assert_eq!(count(&early, 256 * 11).unwrap() - count(&early, 256).unwrap(), 10 * 4);
    }

    #[test]
    fn branches_that_are_not_known_count_with_both_sides() {
        let load = "ld.global.u32 %x, [%at];\nsetp.eq.u32 %p, %x, 7;\n";
        let sides = |then: usize, other: usize| {
            let more = "add.u32 %t, %t, %x;\n";
            let sides =
                format!("@%p bra A;\n{}bra.uni B;\nA:\n{}B:\n", more.repeat(then), more.repeat(other));
            count(&format!("{load}{sides}st.global.u32 [%at], %t;\n{STRIDE}"), 0).unwrap()
        };
        assert_eq!(sides(5, 7) - sides(1, 1), 10);
        // What was chosen by memory is not known behind it either.
        let chosen = "@%p mov.u32 %n, 5;\n";
        assert_eq!(count(&format!("{load}{chosen}{STRIDE}"), 0), None);
        let done = format!("{load}@%p ret;\n{STRIDE}");
        assert_eq!(count(&done, 256 * 11).unwrap() - count(&done, 256).unwrap(), 30, "who ends does less");
        let inside = format!("{load}@%p bra END;\n{STRIDE}");
        assert!(count(&inside, 256).is_none() || count(&inside, 256).unwrap() > 10);
    }

    #[test]
    fn endless_loops_end_the_walk() {
        assert_eq!(count("AGAIN:\nbra.uni AGAIN;\n", 0), None);
    }
}
