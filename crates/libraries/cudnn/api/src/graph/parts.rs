//! Parts of tensors, so that a graph that works on each head by itself, or on each row of scores, has no more of them in memory at a time
//! than it computes with.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use cudnn_cpu::Value;

use super::plan::{Operation, Tensor, Work};

/// One of a batch, some of its heads, some of their rows; and how many there are of all. Of several heads it has all rows, so that its
/// elements follow each other.
#[derive(Clone, Debug)]
pub struct Part {
    pub all: [usize; 3],
    pub batch: usize,
    pub heads: Range<usize>,
    pub rows: Range<usize>,
}

impl Tensor {
    /// The part of it, and which elements that is. Along a size that is 1, or shared by several heads, it has what the part's heads share.
    pub fn part(&self, of: &Part) -> (Tensor, Range<usize>) {
        let [batches, heads, rows, ..] = self.sizes[..] else { return (self.clone(), 0..self.elements()) };
        let share = (of.all[1] / heads).max(1);
        let places = [
            if batches == 1 { 0..1 } else { of.batch..of.batch + 1 },
            of.heads.start / share..of.heads.end.div_ceil(share),
            if rows == of.all[2] { of.rows.clone() } else { 0..rows },
        ];
        let mut part = self.clone();
        let mut begin = 0;
        for (at, places) in places.iter().enumerate() {
            begin = begin * self.sizes[at] + places.start;
            (part.sizes[at], part.first[at]) = (places.len(), places.start);
        }
        begin *= self.sizes[3..].iter().product::<usize>();
        let count = part.elements();
        (part, begin..begin + count)
    }

    pub fn elements(&self) -> usize {
        self.sizes.iter().product()
    }

    /// Whether a part of it is what a part of so many needs of it.
    fn fits(&self, all: [usize; 2]) -> bool {
        self.sizes.len() == 4 && [1, all[0]].contains(&self.sizes[0]) && all[1].is_multiple_of(self.sizes[1])
    }
}

/// Whether each head of what the operation gives is made of the same head of what it takes.
fn keeps_heads(operation: &Operation, tensors: &BTreeMap<i64, Tensor>, all: [usize; 2]) -> bool {
    let takes: Vec<&Tensor> = operation.takes.iter().map(|uid| &tensors[uid]).collect();
    let gives: Vec<&Tensor> = operation.gives.iter().map(|uid| &tensors[uid]).collect();
    let fits =
        takes.iter().all(|it| it.fits(all)) && gives.iter().all(|it| it.fits(all) && it.sizes[..2] == all);
    let same = |from: &Tensor, to: &Tensor| from.sizes[..2] == to.sizes[..2];
    fits && match &operation.work {
        Work::Pointwise(..) | Work::Matmul(_) | Work::Band(_) | Work::Softmax(_) => true,
        Work::Reduce(_) => same(takes[0], gives[0]),
        // In a view, heads lie where they lay.
        Work::Reshape(is_view) => {
            let (from, to) = (takes[0], gives[0]);
            let is_kept = from.strides[..2] == to.strides[..2] || (from.is_packed() && to.is_packed());
            same(from, to) && (!is_view || is_kept)
        }
        _ => false,
    }
}

/// Operations behind each other that work on each head by itself.
pub struct Stretch {
    pub operations: Range<usize>,
    all: [usize; 2],
    /// Heads that share something.
    unit: usize,
    /// Elements of the largest tensor that it gives, by head.
    of_head: usize,
}

/// Elements of virtual tensors from which on a stretch is worth it.
const MUCH: usize = 1 << 22;

/// Elements of a part's largest tensor, for each core.
const PART: usize = 1 << 19;

fn multiple(a: usize, b: usize) -> usize {
    let (mut common, mut rest) = (a, b);
    while rest > 0 {
        (common, rest) = (rest, common % rest);
    }
    a / common * b
}

/// The stretches of a graph whose virtual tensors are large.
pub fn stretches(operations: &[Operation], tensors: &BTreeMap<i64, Tensor>) -> Vec<Stretch> {
    let mut found = Vec::new();
    let mut begin = 0;
    while begin < operations.len() {
        let first = &tensors[&operations[begin].gives[0]];
        let all = if first.sizes.len() == 4 { [first.sizes[0], first.sizes[1]] } else { [0, 0] };
        let own = |it: &&Operation| keeps_heads(it, tensors, all);
        let end = begin + operations[begin..].iter().take_while(own).count();
        if end == begin {
            begin += 1;
            continue;
        }
        let within = &operations[begin..end];
        let gives: Vec<&Tensor> = within.iter().flat_map(|it| &it.gives).map(|uid| &tensors[uid]).collect();
        let held: usize = gives.iter().filter(|it| it.is_virtual).map(|it| it.elements()).sum();
        if held >= MUCH && all[0] * all[1] > 1 {
            let takes = within.iter().flat_map(|it| &it.takes).map(|uid| all[1] / tensors[uid].sizes[1]);
            let unit = takes.filter(|share| *share < all[1]).fold(1, multiple);
            let of_head = gives.iter().map(|it| it.elements() / (all[0] * all[1])).max().unwrap_or(1).max(1);
            found.push(Stretch { operations: begin..end, all, unit, of_head });
        }
        begin = end;
    }
    found
}

impl Stretch {
    /// The parts that it is run by.
    fn parts(&self) -> impl Iterator<Item = Part> {
        let [batches, heads] = self.all;
        let wanted = PART * cudnn_cpu::cores() / self.of_head;
        let count = (wanted / self.unit * self.unit).clamp(self.unit.min(heads), heads);
        (0..batches).flat_map(move |batch| {
            (0..heads).step_by(count).map(move |head| Part {
                all: [batches, heads, 0],
                batch,
                heads: head..(head + count).min(heads),
                rows: 0..0,
            })
        })
    }

    /// Runs it; gives the tensors that are wanted behind it.
    pub fn run<V: Value>(
        &self,
        operations: &[Operation],
        tensors: &BTreeMap<i64, Tensor>,
        whole: &BTreeMap<i64, Vec<V>>,
        is_wanted: impl Fn(i64) -> bool,
    ) -> BTreeMap<i64, Vec<V>> {
        let within = &operations[self.operations.clone()];
        let gives = within.iter().flat_map(|it| &it.gives).copied().filter(|uid| is_wanted(*uid));
        let mut all: BTreeMap<i64, Vec<V>> =
            gives.map(|uid| (uid, vec![V::of(0.0); tensors[&uid].elements()])).collect();
        for part in self.parts() {
            let mut own: BTreeMap<i64, Vec<V>> = BTreeMap::new();
            for (number, operation) in within.iter().enumerate() {
                let of = |uid: &i64| tensors[uid].part(&part);
                let (takes, to): (Vec<_>, Vec<_>) =
                    (operation.takes.iter().map(of).collect(), operation.gives.iter().map(of).collect());
                let values = |(uid, (_, places)): (&i64, &(Tensor, Range<usize>))| match own.get(uid) {
                    Some(values) => &values[..],
                    None => &whole[uid][places.clone()],
                };
                let taken: Vec<&[V]> = operation.takes.iter().zip(&takes).map(values).collect();
                let taken: Vec<(&Tensor, &[V])> =
                    takes.iter().zip(taken).map(|((tensor, _), values)| (tensor, values)).collect();
                let given: Vec<&Tensor> = to.iter().map(|(tensor, _)| tensor).collect();
                let made = operation.work.run(&given, None, &taken);
                for ((uid, made), (_, places)) in operation.gives.iter().zip(made).zip(&to) {
                    if let Some(all) = all.get_mut(uid) {
                        all[places.clone()].copy_from_slice(&made);
                    }
                    own.insert(*uid, made);
                }
                let later: BTreeSet<i64> =
                    within[number + 1..].iter().flat_map(|it| &it.takes).copied().collect();
                own.retain(|uid, _| later.contains(uid));
            }
        }
        all
    }
}

/// Whether a graph for scores makes each row of what it gives of the same row of what it takes.
pub fn keeps_rows(operations: &[Operation], tensors: &BTreeMap<i64, Tensor>, all: [usize; 3]) -> bool {
    let fits = |uid: &i64| {
        let it = &tensors[uid];
        it.sizes.len() == 4 && it.sizes.iter().zip(all).all(|(size, all)| *size == 1 || *size == all)
    };
    operations.iter().all(|operation| {
        let is_by_rows = match &operation.work {
            Work::Pointwise(..) | Work::Band(_) | Work::Softmax(_) => true,
            Work::Reduce(_) => {
                tensors[&operation.takes[0]].sizes[..3] == tensors[&operation.gives[0]].sizes[..3]
            }
            _ => false,
        };
        is_by_rows && operation.takes.iter().chain(&operation.gives).all(fits)
    })
}
