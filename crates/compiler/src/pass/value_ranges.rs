//! What is known of integers at compile time: their range over all threads, and powers of two that divide them.

use super::evaluate::evaluate_known;
use super::per_value::PerValue;
use crate::ir::{
    BlockId, CLUSTER_SHIFT, Cmp, Edge, Function, Inst, Int, IntBin, Op, Special, Term, Ty, Value,
};

/// The threads a kernel is specialised for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Threads {
    pub block: [u32; 3],
    /// As in [`Options`](crate::back::cpu::Options): `block` is flat, and the largest.
    pub open: bool,
    /// Lanes per group.
    pub width: u32,
    /// Narrow indices whose lanes lie at one distance are taken not to wrap when they are made wider, and code checks it. Otherwise only
    /// what is known not to wrap keeps its form.
    pub assumes: bool,
}

impl Threads {
    /// Of an open block the most there can be.
    pub fn total(self) -> u64 {
        self.block.iter().map(|&n| u64::from(n)).product()
    }

    /// `%ntid`, where it is always the same.
    pub fn ntid(self, d: u8) -> Option<u32> {
        let known = self.block.get(usize::from(d)).copied();
        known.filter(|_| d != 0 || !self.open)
    }

    /// How `tid` runs along the lanes of a group in dimension `d`: `None` when neither the same nor one more per lane.
    pub fn tid_stride(self, d: usize) -> Option<i64> {
        let below: u64 = self.block[..d].iter().map(|&n| u64::from(n)).product();
        let above: u64 = self.block[d + 1..].iter().map(|&n| u64::from(n)).product();
        let width = u64::from(self.width);
        match u64::from(self.block[d]) {
            1 => Some(0),
            n if below == 1 && (n.is_multiple_of(width) || above == 1) => Some(1),
            _ if below.is_multiple_of(width) => Some(0),
            _ => None,
        }
    }
}

/// Facts about every value of a function that a chain of pure operations makes.
#[derive(Clone, Debug)]
pub struct ValueRanges {
    types: Vec<Ty>,
    constants: PerValue<Option<u128>>,
    /// Where more is known than the type says.
    ranges: PerValue<Option<Range>>,
    divisors: PerValue<u32>,
}

/// Smallest and largest, if they are known.
type Range = Option<(u64, u64)>;

struct Finder<'a> {
    function: &'a Function,
    threads: Threads,
    found: ValueRanges,
    way: Way,
}

/// Where control can come, as far as is known.
struct Way {
    order: Vec<BlockId>,
    /// Place of each block in `order`.
    place: Vec<usize>,
    incoming: Vec<Vec<BlockId>>,
    /// Edges that nobody takes, by block they leave: to `then` or to `otherwise`.
    closed: Vec<Option<usize>>,
    reached: Vec<bool>,
    /// Blocks to which control comes back.
    loops: Vec<bool>,
}

impl Way {
    fn of(function: &Function) -> Way {
        let n = function.blocks.len();
        let order = function.reverse_post_order();
        let mut place = vec![usize::MAX; n];
        for (at, id) in order.iter().enumerate() {
            place[id.index()] = at;
        }
        let incoming = function.predecessors();
        Way { order, place, incoming, closed: vec![None; n], reached: vec![false; n], loops: vec![false; n] }
    }

    /// The edges of `from` that control takes to `to`.
    fn edges<'f>(&self, function: &'f Function, from: BlockId, to: BlockId) -> Vec<&'f Edge> {
        if !self.reached[from.index()] {
            return vec![];
        }
        let closed = self.closed[from.index()];
        let edges = function.block(from).term.edges().into_iter().enumerate();
        edges.filter(|(nth, edge)| edge.block == to && closed != Some(*nth)).map(|(_, edge)| edge).collect()
    }
}

impl ValueRanges {
    pub fn of(function: &Function, threads: Threads) -> ValueRanges {
        let n = function.values.len();
        let blank = || ValueRanges {
            types: function.values.clone(),
            constants: PerValue::new(n, None),
            ranges: PerValue::new(n, None),
            divisors: PerValue::new(n, 0),
        };
        let mut finder = Finder { function, threads, found: blank(), way: Way::of(function) };
        // A loop is first taken to end after its first trip; where that turns out wrong, what comes round is not known.
        while finder.walk() {
            finder.found = blank();
        }
        finder.found
    }

    /// The bits of a constant.
    pub fn constant(&self, value: Value) -> Option<u128> {
        self.constants[value.index()]
    }

    /// The log2 of a power of two that divides lane 0's value in every group. Exact zero gives 64.
    pub fn divisor(&self, value: Value) -> u32 {
        self.divisors[value.index()]
    }

    /// Smallest and largest value over all threads, read as unsigned.
    pub fn range(&self, value: Value) -> Option<(u64, u64)> {
        self.ranges[value.index()].unwrap_or_else(|| {
            let bits = self.bits(value);
            (bits < 64).then(|| (0, mask(bits) as u64))
        })
    }

    pub fn bits(&self, value: Value) -> u32 {
        self.types[value.index()].bits()
    }

    /// It is the same number for all threads.
    fn set_constant(&mut self, value: Value, number: u128) {
        self.constants[value.index()] = Some(number);
        self.divisors[value.index()] = if number == 0 { 64 } else { number.trailing_zeros() };
    }

    fn set_range(&mut self, value: Value, range: Range) {
        self.ranges[value.index()] = Some(range);
    }
}

impl Finder<'_> {
    /// Looks at everything that is reached, once; true when a loop goes round that was not known to.
    fn walk(&mut self) -> bool {
        self.way.closed.fill(None);
        self.way.reached.fill(false);
        for id in self.way.order.clone() {
            let at = id.index();
            let forward: Vec<BlockId> = self.way.incoming[at].clone();
            let place = self.way.place[at];
            let before = |from: &&BlockId| self.way.place[from.index()] < place;
            let edges: Vec<&Edge> = forward
                .iter()
                .filter(before)
                .flat_map(|&from| self.way.edges(self.function, from, id))
                .collect();
            if place > 0 && edges.is_empty() {
                continue;
            }
            self.way.reached[at] = true;
            if !self.way.loops[at] {
                self.meet(id, &edges);
            }
            for inst in self.function.block(id).insts.iter().filter(|inst| inst.results.len() == 1) {
                self.look_at(inst);
            }
            if let Term::Branch { cond, .. } = self.function.block(id).term {
                self.way.closed[at] = self.found.constant(cond).map(|holds| usize::from(holds == 1));
            }
        }
        let goes_round = |to: &BlockId| {
            let back = self.way.incoming[to.index()].iter();
            let mut back = back.filter(|from| self.way.place[from.index()] >= self.way.place[to.index()]);
            back.any(|&from| !self.way.edges(self.function, from, *to).is_empty())
        };
        let found: Vec<BlockId> = self.way.order.iter().copied().filter(goes_round).collect();
        let new: Vec<BlockId> = found.into_iter().filter(|to| !self.way.loops[to.index()]).collect();
        for to in &new {
            self.way.loops[to.index()] = true;
        }
        !new.is_empty()
    }

    /// A parameter is within the ranges of all that comes in.
    fn meet(&mut self, id: BlockId, edges: &[&Edge]) {
        for (nth, &param) in self.function.block(id).params.iter().enumerate() {
            let ranges: Option<Vec<(u64, u64)>> =
                edges.iter().map(|edge| self.found.range(edge.args[nth])).collect();
            let Some(range) = ranges.and_then(|all| all.into_iter().reduce(union)) else { continue };
            self.found.set_range(param, Some(range));
            if range.0 == range.1 {
                self.found.set_constant(param, range.0.into());
            }
        }
    }

    fn look_at(&mut self, inst: &Inst) {
        let result = inst.results[0];
        let bits = self.function.ty(result).bits();
        if let Some(value) = self.constant(inst, bits) {
            self.found.set_constant(result, value);
            self.found.set_range(result, u64::try_from(value).ok().map(|value| (value, value)));
            return;
        }
        let range = self.range(inst, bits).filter(|&(_, high)| u128::from(high) <= mask(bits));
        if let Some(range) = range {
            self.found.set_range(result, Some(range));
            if range.0 == range.1 {
                self.found.set_constant(result, range.0.into());
                return;
            }
        }
        let divisor = self.divisor(inst);
        if divisor != 0 {
            self.found.divisors[result.index()] = divisor;
        }
    }

    fn constant(&self, inst: &Inst, bits: u32) -> Option<u128> {
        if let Op::Special(Special::Ntid(d)) = inst.op {
            return self.threads.ntid(d).map(u128::from);
        }
        let from = inst.args.first().map_or(0, |&arg| self.function.ty(arg).bits());
        let of = |index: usize| self.found.constant(inst.args[index]);
        evaluate_known(&inst.op, 0, inst.args.len(), of, from, bits)
    }

    fn divisor(&self, inst: &Inst) -> u32 {
        let of = |index: usize| self.found.divisor(inst.args[index]);
        match &inst.op {
            Op::Special(Special::Tid(d)) => match self.threads.tid_stride(usize::from(*d)) {
                Some(1) => self.threads.width.trailing_zeros(),
                _ => 0,
            },
            // Only an open block's is not a constant.
            Op::Special(Special::Ntid(0)) => 5,
            Op::Special(Special::LaneId) => {
                if self.threads.width == 32 {
                    64
                } else {
                    self.threads.width.trailing_zeros()
                }
            }
            Op::Zext | Op::Sext | Op::Bitcast | Op::Trunc => of(0),
            Op::Int(op, _) => match op {
                IntBin::Add | IntBin::Sub | IntBin::Or | IntBin::Xor | IntBin::Min | IntBin::Max => {
                    of(0).min(of(1))
                }
                IntBin::And => {
                    // Of a multiple of 32 nothing is left below 32.
                    let clears = |index: usize, other: usize| {
                        let high = self.found.range(inst.args[other]).map_or(u64::MAX, |(_, high)| high);
                        high.checked_shr(of(index)).unwrap_or(0) == 0
                    };
                    if clears(0, 1) || clears(1, 0) { 64 } else { of(0).max(of(1)) }
                }
                IntBin::Mul => (of(0) + of(1)).min(64),
                IntBin::Shl => match self.found.constant(inst.args[1]) {
                    Some(count) if count < 64 => (of(0) + count as u32).min(64),
                    _ => of(0),
                },
                IntBin::Shr => match (of(0), self.found.constant(inst.args[1])) {
                    (64, _) => 64,
                    (zeros, Some(count)) => zeros.saturating_sub(u32::try_from(count).unwrap_or(64)),
                    _ => 0,
                },
                _ => 0,
            },
            Op::MulWide(_) => (of(0) + of(1)).min(64),
            _ => 0,
        }
    }

    fn range(&self, inst: &Inst, bits: u32) -> Option<(u64, u64)> {
        let of = |index: usize| self.found.range(inst.args[index]);
        match &inst.op {
            Op::Special(register) => match register {
                Special::Tid(d) => {
                    Some((0, u64::from(*self.threads.block.get(usize::from(*d))?).saturating_sub(1)))
                }
                Special::Ntid(0) if self.threads.open => Some((32, self.threads.block[0].into())),
                Special::LaneId | Special::WarpId => Some((0, 31)),
                Special::Ctaid(0) => Some((0, (1 << 31) - 2)),
                Special::Nctaid(0) => Some((0, (1 << 31) - 1)),
                Special::Ctaid(_) | Special::Nctaid(_) => Some((0, 65535)),
                _ => None,
            },
            // The window is no larger.
            // In the window of a cluster of 16 blocks.
            Op::SharedAddr(_) => Some((0, 16 << CLUSTER_SHIFT)),
            Op::Zext | Op::Bitcast => of(0),
            Op::Sext => {
                let from = self.function.ty(inst.args[0]).bits();
                of(0).filter(|&(_, high)| u128::from(high) <= mask(from) >> 1)
            }
            Op::Trunc => of(0).filter(|&(_, high)| u128::from(high) <= mask(bits)),
            Op::Int(op, int) => self.binary(*op, *int, inst),
            Op::Icmp(cmp, int) => {
                let holds = self.decided(*cmp, *int, inst)?;
                Some((u64::from(holds), u64::from(holds)))
            }
            Op::Select => match of(0)? {
                (1, 1) => of(1),
                (0, 0) => of(2),
                _ => Some(union(of(1)?, of(2)?)),
            },
            Op::MulWide(int) => {
                let positive =
                    |range: &(u64, u64)| !int.signed || range.1 <= (mask(u32::from(int.bits)) >> 1) as u64;
                let (a, b) = (of(0).filter(positive)?, of(1).filter(positive)?);
                Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
            }
            _ => None,
        }
    }

    /// What a comparison gives for all values in the ranges of its sides, if that is one answer.
    fn decided(&self, cmp: Cmp, int: Int, inst: &Inst) -> Option<bool> {
        let half = (mask(u32::from(int.bits)) >> 1) as u64;
        // As signed numbers both sides keep their order only on one side of the sign.
        let of = |index: usize| {
            let (low, high) = self.found.range(inst.args[index])?;
            let is_one_sign = high <= half || low > half;
            let number =
                |bits: u64| if int.signed { signed(bits.into(), int.bits.into()) } else { bits.into() };
            (!int.signed || is_one_sign).then(|| (number(low), number(high)))
        };
        let (a, b) = (of(0)?, of(1)?);
        let (below, above) = (a.1 < b.0, a.0 > b.1);
        let (not_above, not_below) = (a.1 <= b.0, a.0 >= b.1);
        let answer = |yes: bool, no: bool| if yes { Some(true) } else { no.then_some(false) };
        match cmp {
            Cmp::Lt => answer(below, not_below),
            Cmp::Le => answer(not_above, above),
            Cmp::Gt => answer(above, not_above),
            Cmp::Ge => answer(not_below, below),
            Cmp::Eq => answer(a.0 == a.1 && a == b, below || above),
            Cmp::Ne => answer(below || above, a.0 == a.1 && a == b),
        }
    }

    fn binary(&self, op: IntBin, int: Int, inst: &Inst) -> Option<(u64, u64)> {
        let of = |index: usize| self.found.range(inst.args[index]);
        let constant =
            |index: usize| self.found.constant(inst.args[index]).and_then(|n| u64::try_from(n).ok());
        let half = (mask(u32::from(int.bits)) >> 1) as u64;
        let known_positive = |range: &(u64, u64)| !int.signed || range.1 <= half;
        match op {
            IntBin::Sub => {
                let (a, b) = (of(0)?, of(1)?);
                Some((a.0.checked_sub(b.1)?, a.1 - b.0))
            }
            IntBin::Add => {
                let (a, b) = (of(0)?, of(1)?);
                // A negative constant takes away.
                if let (Some(by), true) = (constant(1).filter(|&by| by > half), int.bits <= 32) {
                    let by = (1u64 << int.bits) - by;
                    return Some((a.0.checked_sub(by)?, a.1 - by));
                }
                Some((a.0.checked_add(b.0)?, a.1.checked_add(b.1)?))
            }
            IntBin::Mul => {
                let (a, b) = (of(0)?, of(1)?);
                Some((a.0.checked_mul(b.0)?, a.1.checked_mul(b.1)?))
            }
            IntBin::Shl => {
                let count = constant(1).filter(|&count| count < u64::from(int.bits).min(63))? as u32;
                let a = of(0)?;
                Some((a.0.checked_mul(1 << count)?, a.1.checked_mul(1 << count)?))
            }
            IntBin::Shr => {
                let count = constant(1).filter(|&count| count < u64::from(int.bits).min(64))? as u32;
                let a = of(0).filter(known_positive)?;
                Some((a.0 >> count, a.1 >> count))
            }
            IntBin::And => match (of(0), of(1)) {
                (Some(a), Some(b)) => Some((0, a.1.min(b.1))),
                (a, b) => a.or(b).map(|a| (0, a.1)),
            },
            IntBin::Or | IntBin::Xor => {
                let (a, b) = (of(0)?, of(1)?);
                Some((0, (a.1 | b.1).checked_add(1)?.checked_next_power_of_two()? - 1))
            }
            IntBin::Div => {
                let by = constant(1).filter(|&by| by != 0)?;
                let a = of(0).filter(known_positive)?;
                (!int.signed || by <= half).then_some((a.0 / by, a.1 / by))
            }
            IntBin::Rem => {
                let by = constant(1).filter(|&by| by != 0)?;
                let a = of(0).filter(known_positive)?;
                (!int.signed || by <= half).then_some((0, a.1.min(by - 1)))
            }
            IntBin::Min => {
                let (a, b) = (of(0).filter(known_positive)?, of(1).filter(known_positive)?);
                Some((a.0.min(b.0), a.1.min(b.1)))
            }
            IntBin::Max => {
                let (a, b) = (of(0).filter(known_positive)?, of(1).filter(known_positive)?);
                Some((a.0.max(b.0), a.1.max(b.1)))
            }
            _ => None,
        }
    }
}

fn union(a: (u64, u64), b: (u64, u64)) -> (u64, u64) {
    (a.0.min(b.0), a.1.max(b.1))
}

pub fn mask(bits: u32) -> u128 {
    if bits >= 128 { u128::MAX } else { (1 << bits) - 1 }
}

/// Sign-extends the low `bits`.
pub fn signed(value: u128, bits: u32) -> i128 {
    let shift = 128 - bits;
    ((value << shift) as i128) >> shift
}
