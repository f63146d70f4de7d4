//! What the lanes of a group hold: one value for all, a straight line, or anything; and where control diverges.
//!
//! Lanes that share a mask are in the same trip of every loop around them, so a value is compared only among lanes that
//! execute its definition together. Values that leave a loop lanes leave one by one, or meet behind a divergent branch,
//! vary. Loops must be canonical and values loop-closed.

use super::bits::BitSet;
use super::dominators::{Dominators, successors};
use super::invariant::{Same, special};
use super::layout::{Item, Layout};
use super::loops::Loops;
use super::per_value::PerValue;
use super::value_ranges::{Threads, ValueRanges, signed};
use crate::ir::*;
use std::collections::{BTreeMap, BTreeSet, HashMap};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    Uniform,
    /// Lane `k` holds lane 0's value + `stride` × k, modulo 2^bits. `assumed`: true only where a 32-bit index did not
    /// wrap, which code has to check.
    Affine {
        stride: i64,
        assumed: bool,
    },
    Varying,
}

impl Divergence {
    fn affine(stride: i64, assumed: bool) -> Divergence {
        match (stride, assumed) {
            (0, false) => Divergence::Uniform,
            (0, true) => Divergence::Varying,
            _ => Divergence::Affine { stride, assumed },
        }
    }

    /// Stride and whether it is assumed, 0 for uniform.
    pub fn line(self) -> Option<(i64, bool)> {
        match self {
            Divergence::Uniform => Some((0, false)),
            Divergence::Affine { stride, assumed } => Some((stride, assumed)),
            Divergence::Varying => None,
        }
    }

    pub fn is_varying(self) -> bool {
        self == Divergence::Varying
    }

    pub fn is_uniform(self) -> bool {
        self == Divergence::Uniform
    }

    pub fn is_assumed(self) -> bool {
        matches!(self, Divergence::Affine { assumed: true, .. })
    }

    fn join(self, other: Divergence) -> Divergence {
        match (self, other) {
            (a, b) if a == b => a,
            (Divergence::Affine { stride: a, .. }, Divergence::Affine { stride: b, .. }) if a == b => {
                Divergence::affine(a, true)
            }
            _ => Divergence::Varying,
        }
    }
}

/// Whose values are compared: the lanes of a group, or all threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Among {
    Group,
    Block,
}

/// What the lanes that are compared may have done before.
#[derive(Clone, Copy)]
enum Past<'a> {
    /// Whatever led them here.
    Any,
    /// The same all along, but for short sides of branches; those of `whole` they pass together too.
    Together { whole: &'a BitSet },
}

#[derive(Clone)]
pub struct Divergences {
    pub of: PerValue<Divergence>,
    /// Branches whose lanes may go both ways, by block.
    pub divergent: Vec<bool>,
    /// Blocks where lanes come together that have gone different ways.
    pub mixed: Vec<bool>,
}

pub struct Analysis<'a> {
    function: &'a Function,
    graph: Vec<Vec<usize>>,
    loops: &'a Loops,
    layout: &'a Layout,
    ranges: &'a ValueRanges,
    threads: Threads,
    among: Among,
    past: Past<'a>,
    local_bytes: i64,
    /// Values that are only used as addresses in the shared or local window.
    offsets: BitSet,
    known: Vec<Option<Divergence>>,
    /// By block where lanes from different sides of a branch or different trips meet: the blocks they may come from.
    mixed: Vec<BTreeSet<usize>>,
    divergent: Vec<bool>,
}

/// A strided access is only worth its check when the lanes stay close together.
const FAR: i64 = 1 << 16;

/// `given` is what is known of the entry block's parameters.
#[expect(clippy::too_many_arguments, reason = "the function and what is known of it")]
pub fn analyse(
    function: &Function,
    loops: &Loops,
    layout: &Layout,
    ranges: &ValueRanges,
    threads: Threads,
    among: Among,
    local_bytes: u64,
    given: &HashMap<Value, Divergence>,
) -> Divergences {
    analyse_with(function, loops, layout, ranges, threads, among, Past::Any, local_bytes, given)
}

/// What holds besides `divergences` while all lanes of a group go together, as they do in the unmasked copy: those that leave a
/// loop have left it in one trip, those that meet have come the same way. `whole`: branches that do not part them, short as a side is.
#[expect(clippy::too_many_arguments, reason = "the function and what is known of it")]
pub fn together(
    function: &Function,
    loops: &Loops,
    layout: &Layout,
    ranges: &ValueRanges,
    threads: Threads,
    local_bytes: u64,
    given: &HashMap<Value, Divergence>,
    divergences: &Divergences,
    whole: &BitSet,
) -> Divergences {
    if !divergences.divergent.contains(&true) {
        return divergences.clone();
    }
    let (among, past) = (Among::Group, Past::Together { whole });
    let mut found = analyse_with(function, loops, layout, ranges, threads, among, past, local_bytes, given);
    for at in 0..function.values.len() {
        let (own, any) = (found.of[at], divergences.of[at]);
        if let Some((stride, _)) = any.line().filter(|_| own != any) {
            if own.line().is_none_or(|(own, _)| own != stride) {
                debug_assert!(false, "less is known of lanes that go together: {own:?} for {any:?}");
                return divergences.clone();
            }
            found.of[at] = any;
        }
    }
    found
}

#[expect(clippy::too_many_arguments, reason = "the function and what is known of it")]
fn analyse_with(
    function: &Function,
    loops: &Loops,
    layout: &Layout,
    ranges: &ValueRanges,
    threads: Threads,
    among: Among,
    past: Past<'_>,
    local_bytes: u64,
    given: &HashMap<Value, Divergence>,
) -> Divergences {
    if among == Among::Group && threads.width == 1 {
        // One lane agrees with itself.
        let of = PerValue::new(function.values.len(), Divergence::Uniform);
        let none = vec![false; function.blocks.len()];
        return Divergences { of, divergent: none.clone(), mixed: none };
    }
    let mut known = vec![None; function.values.len()];
    for (value, divergence) in given {
        known[value.index()] = Some(*divergence);
    }
    let mut analysis = Analysis {
        function,
        graph: successors(function),
        loops,
        layout,
        ranges,
        threads,
        among,
        past,
        local_bytes: local_bytes as i64,
        offsets: window_offsets(function),
        known,
        mixed: vec![BTreeSet::new(); function.blocks.len()],
        divergent: vec![false; function.blocks.len()],
    };
    analysis.run();
    let mut of = PerValue::new(function.values.len(), Divergence::Uniform);
    for (at, divergence) in analysis.known.iter().enumerate() {
        if let Some(divergence) = divergence.filter(|it| *it != Divergence::Uniform) {
            of[at] = divergence;
        }
    }
    let mixed = analysis.mixed.iter().map(|from| !from.is_empty()).collect();
    Divergences { of, divergent: analysis.divergent, mixed }
}

impl Analysis<'_> {
    fn run(&mut self) {
        let order: Vec<usize> = self
            .layout
            .items
            .iter()
            .filter_map(|item| if let Item::Block(block) = item { Some(*block) } else { None })
            .collect();
        let mut incoming: Vec<Vec<(usize, usize)>> = vec![vec![]; self.function.blocks.len()];
        for &from in &order {
            for (nth, &to) in self.graph[from].iter().enumerate() {
                incoming[to].push((from, nth));
            }
        }
        let mut changed = true;
        while changed {
            changed = false;
            for &at in &order {
                let block = &self.function.blocks[at];
                if at != 0 {
                    for (nth, &param) in block.params.iter().enumerate() {
                        let mut divergence: Option<Divergence> = None;
                        for &(from, edge) in &incoming[at] {
                            let arg = self.function.blocks[from].term.edges()[edge].args[nth];
                            divergence = match (divergence, self.known[arg.index()]) {
                                (divergence, None) => divergence,
                                (None, Some(other)) => Some(other),
                                (Some(divergence), Some(other)) => Some(divergence.join(other)),
                            };
                        }
                        if divergence.is_some() && !self.meet_with_one_value(at, &incoming[at], nth) {
                            divergence = Some(Divergence::Varying);
                        }
                        changed |= self.set(param, divergence);
                    }
                }
                for inst in &block.insts {
                    for (nth, &result) in inst.results.iter().enumerate() {
                        let divergence = self.result(inst, nth);
                        changed |= self.set(result, divergence);
                    }
                }
                if let Term::Branch { cond, .. } = block.term {
                    let varies = self.known[cond.index()].is_some_and(|divergence| !divergence.is_uniform());
                    if varies && !self.divergent[at] {
                        self.divergent[at] = true;
                        let (joins, apart) = match self.past {
                            Past::Any => {
                                let spread = Spread::of(&self.graph, self.loops, self.layout, at, |_| true);
                                (spread.joins, spread.apart)
                            }
                            Past::Together { whole } if whole.contains(at) => {
                                (vec![], BitSet::new(self.graph.len()))
                            }
                            Past::Together { .. } => short_sides(self.function, self.layout, at),
                        };
                        for join in joins {
                            let sources = incoming[join].iter().map(|&(from, _)| from);
                            self.mixed[join]
                                .extend(sources.filter(|&from| from == at || apart.contains(from)));
                        }
                        changed = true;
                    }
                }
            }
        }
    }

    /// Whether lanes that meet in a block by its edges `incoming` bring the same number for a parameter: none meet, or all edges by which
    /// they do carry it.
    fn meet_with_one_value(&self, at: usize, incoming: &[(usize, usize)], nth: usize) -> bool {
        let edges = incoming.iter().filter(|(from, _)| self.mixed[at].contains(from));
        let mut ranges = edges.map(|&(from, edge)| {
            self.ranges.constant(self.function.blocks[from].term.edges()[edge].args[nth])
        });
        match ranges.next() {
            None => true,
            Some(None) => false,
            Some(first) => ranges.all(|number| number == first),
        }
    }

    /// Shapes only ever go down: uniform or affine to varying.
    fn set(&mut self, value: Value, divergence: Option<Divergence>) -> bool {
        let Some(mut divergence) = divergence else { return false };
        let old = self.known[value.index()];
        if old == Some(divergence) || old == Some(Divergence::Varying) {
            return false;
        }
        if let Some(old) = old {
            divergence = match (old, divergence) {
                (Divergence::Affine { stride: a, .. }, Divergence::Affine { stride: b, .. }) if a == b => {
                    if old.is_assumed() {
                        return false;
                    }
                    divergence
                }
                _ => Divergence::Varying,
            };
        }
        self.known[value.index()] = Some(divergence);
        true
    }

    /// `None` while an argument is not known.
    fn result(&self, inst: &Inst, nth: usize) -> Option<Divergence> {
        let mut args = Vec::with_capacity(inst.args.len());
        for arg in &inst.args {
            args.push(self.known[arg.index()]?);
        }
        let divergence = match self.among {
            Among::Block => self.in_block(inst, &args),
            Among::Group => self.in_group(inst, nth, &args),
        };
        Some(divergence)
    }

    fn in_block(&self, inst: &Inst, args: &[Divergence]) -> Divergence {
        let uniform = match &inst.op {
            Op::Special(register) => special(*register) == Same::Block || self.threads.total() == 1,
            Op::Cvta { space: Space::Local, .. } => false,
            Op::Barrier { .. } => return Divergence::Uniform,
            Op::Load { space, order, .. } => {
                matches!(space, Space::Param) || (*space != Space::Local && *order == Order::Weak)
            }
            op => op.is_pure(),
        };
        if uniform && args.iter().all(|divergence| divergence.is_uniform()) {
            Divergence::Uniform
        } else {
            Divergence::Varying
        }
    }

    fn in_group(&self, inst: &Inst, nth: usize, args: &[Divergence]) -> Divergence {
        let all_uniform = args.iter().all(|divergence| divergence.is_uniform());
        let width = i64::from(self.threads.width);
        match &inst.op {
            Op::Special(register) => match register {
                Special::Tid(d) => match self.threads.tid_stride(usize::from(*d)) {
                    Some(stride) => Divergence::affine(stride, false),
                    None => Divergence::Varying,
                },
                Special::LaneId if width <= 32 => Divergence::affine(1, false),
                Special::WarpId if width <= 32 => Divergence::Uniform,
                register if special(*register) == Same::Thread => Divergence::Varying,
                _ => Divergence::Uniform,
            },
            Op::Cvta { space: Space::Local, to_generic } => {
                let bytes = if *to_generic { self.local_bytes } else { -self.local_bytes };
                args[0].line().map_or(Divergence::Varying, |(stride, assumed)| {
                    Divergence::affine(stride + bytes, assumed)
                })
            }
            Op::Cvta { .. } => args[0],
            Op::Load { space: Space::Local, .. } => Divergence::Varying,
            Op::Load { .. } if all_uniform => Divergence::Uniform,
            // Lanes with different member masks get different results.
            Op::Vote(_) | Op::Redux(..) | Op::Elect if !args[args.len() - 1].is_uniform() => {
                Divergence::Varying
            }
            Op::Vote(_) | Op::Redux(..) | Op::ActiveMask => Divergence::Uniform,
            Op::Elect if nth == 0 => Divergence::Uniform,
            // One lane's value for the whole warp.
            Op::Shfl(ShflMode::Idx)
                if args[1].is_uniform() && self.ranges.constant(inst.args[2]) == Some(31) =>
            {
                Divergence::Uniform
            }
            Op::Barrier { .. } => Divergence::Uniform,
            op if op.is_pure() && all_uniform => Divergence::Uniform,
            op if op.is_pure() && inst.results.len() == 1 => {
                let result = inst.results[0];
                if self.function.ty(result).bits() <= 64
                    && self.ranges.range(result).is_some_and(|(low, high)| low == high)
                {
                    return Divergence::Uniform;
                }
                self.line(inst, args)
            }
            _ => Divergence::Varying,
        }
    }

    /// Operations that keep a straight line straight. Not all arguments are uniform.
    fn line(&self, inst: &Inst, args: &[Divergence]) -> Divergence {
        let width = i64::from(self.threads.width);
        let bits = inst.results.first().map_or(0, |&result| self.function.ty(result).bits());
        let small = |stride: i128, assumed: bool| {
            // The same modulo 2^bits, nearest to zero.
            let shift = 128 - bits.clamp(1, 64);
            let stride = (stride << shift) >> shift;
            Divergence::affine(stride as i64, assumed)
        };
        let lines: Option<Vec<(i64, bool)>> = args.iter().map(|divergence| divergence.line()).collect();
        let assumed = args.iter().any(|divergence| divergence.is_assumed());
        let constant = |index: usize| {
            let bits = self.ranges.constant(inst.args[index])?;
            Some(signed(bits, self.function.ty(inst.args[index]).bits()) as i64)
        };
        if matches!(inst.op, Op::Select) {
            return if args[0].is_uniform() { args[1].join(args[2]) } else { Divergence::Varying };
        }
        let Some(lines) = lines else { return Divergence::Varying };
        // Lane 0's value is a multiple of the whole group's span: adding a lane's part never carries.
        let aligned = |index: usize| {
            let stride = lines[index].0;
            let span = stride.checked_mul(width)?;
            let ok = !lines[index].1
                && stride > 0
                && stride & (stride - 1) == 0
                && self.ranges.divisor(inst.args[index]) >= span.trailing_zeros();
            ok.then_some(span)
        };
        match &inst.op {
            Op::Bitcast => args[0],
            Op::Trunc => small(lines[0].0.into(), assumed),
            // A 32-bit offset in a window cannot wrap: the access would be out of bounds.
            Op::Zext if self.offsets.contains(inst.results[0].index()) => {
                Divergence::affine(lines[0].0, assumed)
            }
            Op::Zext | Op::Sext => self.widened(inst.args[0], lines[0], matches!(inst.op, Op::Sext), 1),
            Op::MulWide(int) => {
                let (line, other) = if args[0].is_uniform() { (1, 0) } else { (0, 1) };
                let by = if int.signed {
                    constant(other)
                } else {
                    self.ranges.constant(inst.args[other]).and_then(|by| i64::try_from(by).ok())
                };
                match by {
                    Some(by) => self.widened(inst.args[line], lines[line], int.signed, by),
                    None => Divergence::Varying,
                }
            }
            Op::IntUn(IntUn::Neg | IntUn::Not, _) => small(-i128::from(lines[0].0), assumed),
            Op::Int(op, int) => match op {
                IntBin::Add => small(i128::from(lines[0].0) + i128::from(lines[1].0), assumed),
                IntBin::Sub => small(i128::from(lines[0].0) - i128::from(lines[1].0), assumed),
                IntBin::Mul => match (constant(0), constant(1)) {
                    (Some(by), _) => small(i128::from(lines[1].0) * i128::from(by), assumed),
                    (_, Some(by)) => small(i128::from(lines[0].0) * i128::from(by), assumed),
                    _ => Divergence::Varying,
                },
                IntBin::Shl => match constant(1) {
                    Some(by) if (0..i64::from(int.bits)).contains(&by) => {
                        small(i128::from(lines[0].0) << by, assumed)
                    }
                    _ => Divergence::Varying,
                },
                IntBin::Or | IntBin::Xor | IntBin::And => {
                    let (line, other) = if args[1].is_uniform() { (0, 1) } else { (1, 0) };
                    if !args[other].is_uniform() {
                        return Divergence::Varying;
                    }
                    match (op, aligned(line), self.ranges.constant(inst.args[other])) {
                        (IntBin::And, Some(span), Some(mask)) => {
                            // The bits in which lanes differ are all kept, or all cleared.
                            let differing = (span - lines[line].0) as u128;
                            match mask & differing {
                                0 => Divergence::Uniform,
                                kept if kept == differing => args[line],
                                _ => Divergence::Varying,
                            }
                        }
                        // No bit of the constant meets one that the line sets: or and xor add.
                        (IntBin::Or | IntBin::Xor, Some(span), Some(bits))
                            if bits & (span - 1) as u128 & !(lines[line].0 as u128 - 1) == 0 =>
                        {
                            args[line]
                        }
                        // The other has none of the bits in which lanes differ.
                        (_, Some(span), _)
                            if self.ranges.divisor(inst.args[other]) >= span.trailing_zeros() =>
                        {
                            if *op == IntBin::And { Divergence::Uniform } else { args[line] }
                        }
                        (IntBin::Or | IntBin::Xor, None, Some(bits)) => {
                            let stride = lines[line].0;
                            let common = stride.trailing_zeros().min(self.ranges.divisor(inst.args[line]));
                            if !assumed && common < 64 && bits < 1u128 << common {
                                args[line]
                            } else {
                                Divergence::Varying
                            }
                        }
                        _ => Divergence::Varying,
                    }
                }
                IntBin::Shr | IntBin::Div | IntBin::Rem if args[1].is_uniform() => {
                    let non_negative = !int.signed || {
                        let limit = u64::MAX >> (65 - u32::from(int.bits).clamp(1, 64));
                        self.ranges.range(inst.args[0]).is_some_and(|(_, high)| high <= limit)
                    };
                    let (Some(span), Some(by)) = (aligned(0), constant(1)) else {
                        return Divergence::Varying;
                    };
                    let by = match op {
                        IntBin::Shr if (0..i64::from(int.bits).min(62)).contains(&by) => 1i64 << by,
                        IntBin::Div | IntBin::Rem if non_negative && by > 0 && by & (by - 1) == 0 => by,
                        _ => return Divergence::Varying,
                    };
                    let stride = lines[0].0;
                    match op {
                        IntBin::Rem if by >= span => args[0],
                        IntBin::Rem if by <= stride => Divergence::Uniform,
                        IntBin::Shr | IntBin::Div if by >= span => Divergence::Uniform,
                        IntBin::Shr | IntBin::Div if by <= stride => Divergence::affine(stride / by, false),
                        _ => Divergence::Varying,
                    }
                }
                _ => Divergence::Varying,
            },
            // A whole group is on one side of a bound that is a multiple of its span.
            Op::Icmp(cmp, _) => {
                let (line, other, cmp) = match (args[0].is_uniform(), args[1].is_uniform()) {
                    (false, true) => (0, 1, *cmp),
                    (true, false) => (1, 0, mirrored(*cmp)),
                    _ => return Divergence::Varying,
                };
                let Some(span) = aligned(line) else { return Divergence::Varying };
                let multiple = |exact: bool| {
                    let low = if exact {
                        self.ranges.divisor(inst.args[other])
                    } else {
                        self.ranges.constant(inst.args[other]).map_or(0, |bits| (bits + 1).trailing_zeros())
                    };
                    low >= span.trailing_zeros()
                };
                match cmp {
                    Cmp::Lt | Cmp::Ge if multiple(true) => Divergence::Uniform,
                    Cmp::Gt | Cmp::Le if multiple(false) => Divergence::Uniform,
                    _ => Divergence::Varying,
                }
            }
            _ => Divergence::Varying,
        }
    }

    /// A line made wider and multiplied by a constant: straight where it does not wrap before.
    fn widened(&self, arg: Value, (stride, assumed): (i64, bool), signed: bool, by: i64) -> Divergence {
        let bits = self.function.ty(arg).bits();
        if !(16..=32).contains(&bits) || stride.abs() > FAR {
            return Divergence::Varying;
        }
        let Some(new) = stride.checked_mul(by) else { return Divergence::Varying };
        let span = stride.unsigned_abs() * u64::from(self.threads.width);
        let limit = if signed { 1u64 << (bits - 1) } else { 1u64 << bits };
        let proven = self
            .ranges
            .range(arg)
            .is_some_and(|(low, high)| high < limit && (high - low).saturating_add(span) < 1u64 << bits);
        match assumed || !proven {
            true if !self.threads.assumes => Divergence::Varying,
            assumed => Divergence::affine(new, assumed),
        }
    }
}

pub(super) fn window_offsets(function: &Function) -> BitSet {
    let mut offsets = BitSet::new(function.values.len());
    let mut others = BitSet::new(function.values.len());
    for block in &function.blocks {
        for inst in &block.insts {
            let window = matches!(
                inst.op,
                Op::Load { space: Space::Shared | Space::Local, .. }
                    | Op::Store { space: Space::Shared | Space::Local, .. }
                    | Op::Atomic { space: Space::Shared | Space::Local, .. }
                    | Op::CopyAsync(_)
            );
            for (nth, arg) in inst.args.iter().enumerate() {
                if window && nth == 0 {
                    offsets.insert(arg.index())
                } else {
                    others.insert(arg.index())
                };
            }
        }
        for value in super::visit::term_values(&block.term) {
            others.insert(value.index());
        }
    }
    for value in others.iter() {
        offsets.remove(value);
    }
    offsets
}

/// The comparison with its sides exchanged.
pub fn mirrored(cmp: Cmp) -> Cmp {
    match cmp {
        Cmp::Lt => Cmp::Gt,
        Cmp::Gt => Cmp::Lt,
        Cmp::Le => Cmp::Ge,
        Cmp::Ge => Cmp::Le,
        Cmp::Eq | Cmp::Ne => cmp,
    }
}

/// Instructions of a side that may stand a third time, under a mask in the unmasked copy.
pub const SHORT: usize = 64;

/// Whether an edge of block `at`'s branch leads to one short block that comes out where the other edge leads at once.
pub fn is_short_side(function: &Function, layout: &Layout, at: usize, side: &Edge, other: &Edge) -> bool {
    let block = function.block(side.block);
    let Term::Jump(back) = &block.term else { return false };
    let position = |block: usize| layout.position[block];
    let mut edges = function.blocks.iter().flat_map(|block| block.term.edges());
    back.block == other.block
        && side.block != other.block
        && position(at) < position(side.block.index())
        && position(side.block.index()) < position(other.block.index())
        && block.insts.len() <= SHORT
        && !block.insts.iter().any(|inst| inst.op.is_barrier())
        && edges.by_ref().filter(|edge| edge.block == side.block).count() == 1
}

/// Where lanes meet that a branch may send through a short side, and the blocks of those sides.
fn short_sides(function: &Function, layout: &Layout, at: usize) -> (Vec<usize>, BitSet) {
    let (mut joins, mut apart) = (vec![], BitSet::new(function.blocks.len()));
    if let Term::Branch { then, otherwise, .. } = &function.blocks[at].term {
        for (side, other) in [(then, otherwise), (otherwise, then)] {
            if is_short_side(function, layout, at, side, other) {
                joins.push(other.block.index());
                apart.insert(side.block.index());
            }
        }
    }
    (joins, apart)
}

/// What a divergent branch does: where its lanes meet again, and the blocks they run apart.
pub struct Spread {
    /// Blocks where lanes from different sides, or different trips, come together.
    pub joins: Vec<usize>,
    /// Blocks that a part of the lanes runs while the others are elsewhere.
    pub apart: BitSet,
}

impl Spread {
    /// Follows the lanes that leave the branch of block `at` until all are in one place again. Blocks that do not
    /// `count` are left out, as if threads ended there.
    pub fn of(
        graph: &[Vec<usize>],
        loops: &Loops,
        layout: &Layout,
        at: usize,
        count: impl Fn(usize) -> bool,
    ) -> Spread {
        let mut spread = Spread { joins: vec![], apart: BitSet::new(graph.len()) };
        // Where lanes are, by position in the layout: (block, which way they came).
        let mut front: BTreeMap<usize, (usize, usize)> = BTreeMap::new();
        // Loops some lanes go round again in.
        let mut again: Vec<usize> = vec![];
        let step = |from: usize,
                    label: Option<usize>,
                    front: &mut BTreeMap<usize, (usize, usize)>,
                    again: &mut Vec<usize>,
                    joins: &mut Vec<usize>| {
            for &to in &graph[from] {
                if !count(to) {
                    continue;
                }
                let position = layout.position[to];
                if position <= layout.position[from] {
                    if let Some(index) = loops.of[to]
                        && !again.contains(&index)
                    {
                        again.push(index);
                    }
                    continue;
                }
                let label = label.unwrap_or(to);
                match front.get(&position).copied() {
                    None => {
                        front.insert(position, (to, label));
                    }
                    Some((_, other)) if other != label => {
                        front.insert(position, (to, to));
                        joins.push(to);
                    }
                    Some(_) => {}
                }
            }
        };
        step(at, None, &mut front, &mut again, &mut spread.joins);
        loop {
            let first = front.iter().next().map(|(_, &(block, _))| block);
            // Loops that are behind us: lanes have left them one by one.
            let done: Vec<usize> = again
                .iter()
                .copied()
                .filter(|&index| first.is_none_or(|block| !loops.contains(index, block)))
                .collect();
            again.retain(|index| !done.contains(index));
            let left = first.is_some();
            for index in done {
                if !left {
                    // All lanes go round: nobody left.
                    continue;
                }
                for &block in &loops.all[index].blocks {
                    spread.apart.insert(block);
                }
                for &from in &loops.all[index].blocks {
                    for &to in &graph[from] {
                        if loops.contains(index, to) || !count(to) {
                            continue;
                        }
                        spread.joins.push(to);
                        let position = layout.position[to];
                        if position > layout.position[from] {
                            front.insert(position, (to, to));
                        } else if let Some(outer) = loops.of[to]
                            && !again.contains(&outer)
                        {
                            again.push(outer);
                        }
                    }
                }
            }
            if again.is_empty() && front.len() <= 1 {
                return spread;
            }
            let Some((_, (block, label))) = front.pop_first() else {
                if again.is_empty() {
                    return spread;
                }
                continue;
            };
            spread.apart.insert(block);
            step(block, Some(label), &mut front, &mut again, &mut spread.joins);
        }
    }
}

/// Whether a function's loops can be found; `None` when it is irreducible.
pub fn structure(function: &Function) -> Option<(Dominators, Loops, Layout)> {
    let graph = successors(function);
    let dominators = Dominators::of_graph(&graph, 0);
    let loops = Loops::of_graph(&graph, &dominators)?;
    let layout = Layout::of(&graph, &loops, |block| dominators.is_reachable(block));
    Some((dominators, loops, layout))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pass::testing::function;

    fn divergences(source: &str, block: [u32; 3], width: u32) -> (Function, Divergences) {
        let f = function(source);
        let threads = Threads { block, open: false, width, assumes: true };
        let (_, loops, layout) = structure(&f).unwrap();
        let ranges = ValueRanges::of(&f, threads);
        let divergences = analyse(&f, &loops, &layout, &ranges, threads, Among::Group, 0, &HashMap::new());
        (f, divergences)
    }

    fn last(f: &Function, divergences: &Divergences) -> Divergence {
        divergences.of[f.blocks[0].insts.last().unwrap().results[0].index()]
    }

    #[test]
    fn a_global_index_is_a_line_that_may_wrap_when_widened() {
        let source =
            "entry: t = tid; b = ctaid; n = const.b32 256; o = mul b n; i = add o t; j = sext i; exit";
        let (f, divergences) = divergences(source, [256, 1, 1], 16);
        assert_eq!(last(&f, &divergences), Divergence::Affine { stride: 1, assumed: true });
    }

    #[test]
    fn a_thread_index_alone_never_wraps() {
        let source = "entry: t = tid; n = const.b32 4; i = mul t n; j = sext i; exit";
        let (f, divergences) = divergences(source, [256, 1, 1], 16);
        assert_eq!(last(&f, &divergences), Divergence::Affine { stride: 4, assumed: false });
    }

    #[test]
    fn the_warp_number_is_one_for_a_group_within_a_warp() {
        let source = "entry: t = tid; n = const.b32 5; i = shr t n; exit";
        for width in [8, 32] {
            let (f, divergences) = divergences(source, [256, 1, 1], width);
            assert_eq!(last(&f, &divergences), Divergence::Uniform);
        }
        let (f, divergences) = divergences(source, [256, 1, 1], 64);
        assert_eq!(last(&f, &divergences), Divergence::Varying);
    }

    #[test]
    fn a_lane_put_into_the_low_bits_of_its_warps_start_is_a_line() {
        let start = "t = tid; low = const.b32 31; high = const.b32 4294967264; items = const.b32 12; l = and t low; w = and t high; s = mul w items;";
        for width in [8, 32] {
            let (f, divergences) =
                divergences(&format!("entry: {start} i = or s l; exit"), [256, 1, 1], width);
            assert_eq!(last(&f, &divergences), Divergence::Affine { stride: 1, assumed: false });
            let (f, divergences) =
                self::divergences(&format!("entry: {start} i = and s l; exit"), [256, 1, 1], width);
            assert_eq!(last(&f, &divergences), Divergence::Uniform);
        }
        let odd = "t = tid; low = const.b32 31; b = ctaid; l = and t low; i = or b l; exit";
        let (f, divergences) = divergences(&format!("entry: {odd}"), [256, 1, 1], 32);
        assert_eq!(last(&f, &divergences), Divergence::Varying);
    }

    #[test]
    fn a_bound_at_a_groups_edge_does_not_part_it() {
        let whole = divergences("entry: t = tid; n = const.b32 64; p = lt t n; exit", [256, 1, 1], 32);
        assert_eq!(last(&whole.0, &whole.1), Divergence::Uniform);
        let parted = divergences("entry: t = tid; n = const.b32 40; p = lt t n; exit", [256, 1, 1], 32);
        assert_eq!(last(&parted.0, &parted.1), Divergence::Varying);
    }

    #[test]
    fn lanes_meet_with_different_values_behind_a_divergent_branch() {
        let source = "entry: t = tid; n = const.b32 40; m = const.b32 41; p = lt t n; branch p a b\n a: jump c(n)\n b: jump c(m)\n c(v:b32): exit";
        let (f, divergences) = divergences(source, [256, 1, 1], 32);
        assert_eq!(divergences.of[f.blocks[3].params[0].index()], Divergence::Varying);
    }

    /// `none` leads to `meet` with a number from memory, by a branch that all lanes take alike; one lane's side brings another number or not.
    #[test]
    fn lanes_meet_with_one_number_behind_a_divergent_branch() {
        let source = |own: &str| {
            format!(
                "entry: b = ctaid; z = const.b32 0; y = const.b32 {own}; q = eq b z; branch q some none\n none: a = const.b64 64; u = load a; jump meet(u)\n some: t = tid; p = eq t z; branch p one meet(z)\n one: jump meet(y)\n meet(v:b32): exit"
            )
        };
        for (own, divergence) in [("0", Divergence::Uniform), ("1", Divergence::Varying)] {
            let (f, any, together) = both(&source(own));
            let meet = f.blocks[4].params[0].index();
            assert_eq!((any.of[meet], together.of[meet]), (divergence, divergence), "{own}");
        }
    }

    #[test]
    fn a_counter_stays_uniform_in_a_loop_that_lanes_leave_one_by_one() {
        let source = "entry: t = tid; z = const.b32 0; jump head(z)\n head(i:b32): o = const.b32 1; j = add i o; p = lt j t; branch p head(j) done(i)\n done(v:b32): exit";
        let (f, divergences) = divergences(source, [256, 1, 1], 32);
        assert_eq!(divergences.of[f.blocks[1].params[0].index()], Divergence::Uniform);
        assert_eq!(divergences.of[f.blocks[2].params[0].index()], Divergence::Varying);
    }

    /// Of all lanes, and of those that have gone together.
    fn both(source: &str) -> (Function, Divergences, Divergences) {
        let (f, any) = divergences(source, [256, 1, 1], 32);
        let threads = Threads { block: [256, 1, 1], open: false, width: 32, assumes: true };
        let (_, loops, layout) = structure(&f).unwrap();
        let ranges = ValueRanges::of(&f, threads);
        let own = together(
            &f,
            &loops,
            &layout,
            &ranges,
            threads,
            0,
            &HashMap::new(),
            &any,
            &BitSet::new(f.blocks.len()),
        );
        (f, any, own)
    }

    #[test]
    fn lanes_that_go_together_leave_a_loop_in_one_trip() {
        let source = "entry: t = tid; z = const.b32 0; jump head(z)\n head(i:b32): o = const.b32 1; j = add i o; p = lt j t; branch p head(j) done(i)\n done(v:b32): w = add v t; exit";
        let (f, any, own) = both(source);
        let (left, index) = (f.blocks[2].params[0].index(), f.blocks[2].insts[0].results[0].index());
        assert_eq!((any.of[left], any.of[index]), (Divergence::Varying, Divergence::Varying));
        assert_eq!(own.of[left], Divergence::Uniform);
        assert_eq!(own.of[index], Divergence::Affine { stride: 1, assumed: false });
        assert!(own.divergent[1], "they still have to agree");
    }

    #[test]
    fn a_short_side_parts_lanes_that_go_together() {
        let source = "entry: t = tid; n = const.b32 40; p = lt t n; branch p a b(n)\n a: z = const.b32 7; jump b(z)\n b(v:b32): exit";
        let (f, _, own) = both(source);
        assert_eq!(own.of[f.blocks[2].params[0].index()], Divergence::Varying);
    }
}
