//! Loads and stores whose lanes lie at constant distances from lane 0's, but not side by side: rows of a tile, every
//! eighth word, four words per lane. The memory between the lowest and the highest lane is read or written as whole
//! vectors, and constant shuffles bring words to lanes. Accesses by one address that follow each other go together.
//!
//! What lies between the lanes is read too, which no one can tell: both ends are there, so the pages are, and the words
//! are dropped. It is never written: a vector with a gap is stored under a mask.

use super::deal::{Deal, Part, Step, Words, cover};
use super::memory::Lanes;
use super::{Copy, Emitter};
use crate::back::llvm::{Builder, Scalar, Type, Val};
use crate::ir::{Inst, IntBin, Mem, Op, Order, Space, Ty, Value};
use crate::pass::divergence::Divergence;
use crate::pass::offsets;
use crate::pass::regions::Runs;
use crate::pass::visit::Definition;

/// Accesses that go together.
pub(super) struct Window {
    space: Space,
    /// Elements of one lane, with the instruction and the place among its values.
    elements: Vec<(usize, usize)>,
    /// In bytes from lane 0's address.
    start: i64,
    /// Per element and lane: the word of the window.
    words: Vec<Vec<usize>>,
    n_words: usize,
    word: Type,
    bytes: usize,
    /// All words are loaded by segments.
    in_segments: bool,
}

/// Words of 32 bits: elements of the window, or two of 16 bits that the block packs into one.
struct Unit {
    elements: Vec<usize>,
    /// By lane: where in the window it begins, in bytes.
    places: Vec<usize>,
}

/// Words that lie in segments of memory, which are loaded as they are: no vector lies across what is between them.
struct Segments {
    of: Vec<Unit>,
    /// Per unit and lane: which of `places`.
    words: Vec<Vec<usize>>,
    /// Where in the window words lie, in bytes.
    places: Vec<usize>,
    /// How many words a segment has at least, a power of two.
    length: usize,
}

/// Accesses that go together at most.
const MOST: usize = 16;

/// Instructions among which an access looks for others that go with it.
const REACH: usize = 64;

/// Bytes of a group's load from which on the next group's is asked for.
pub(super) const PREFETCHED: usize = 512;

/// What of an access must be the same for all that go together.
struct Key {
    is_load: bool,
    space: Space,
    mem: Mem,
    address: Value,
    ty: Ty,
}

fn key(inst: &Inst, ty_of: impl Fn(Value) -> Ty) -> Option<Key> {
    let (is_load, space, mem, value) = match inst.op {
        Op::Load { space, mem, order: Order::Weak, .. } => (true, space, mem, *inst.results.first()?),
        Op::Store { space, mem, order: Order::Weak, .. } => (false, space, mem, *inst.args.get(1)?),
        _ => return None,
    };
    Some(Key { is_load, space, mem, address: inst.args[0], ty: ty_of(value) })
}

fn n_elements(inst: &Inst) -> usize {
    if inst.results.is_empty() { inst.args.len() - 1 } else { inst.results.len() }
}

impl Emitter<'_> {
    /// Which instructions of a block are written at each place of it: itself, or as one access all that go together.
    pub(super) fn grouped(&mut self, insts: &[Inst]) -> Vec<Vec<usize>> {
        self.halves =
            insts.iter().filter_map(|inst| self.packed(inst)).map(|[low, high]| (low, high)).collect();
        let mut groups: Vec<Vec<usize>> = (0..insts.len()).map(|at| vec![at]).collect();
        let mut taken = vec![false; insts.len()];
        for first in 0..insts.len() {
            if let Some(second) = self.twin(insts, first).filter(|_| !taken[first]) {
                groups[first].clear();
                groups[second] = vec![first, second];
                taken[second] = true;
                continue;
            }
            if let Some(second) = self.transfer(insts, first).filter(|&it| !taken[first] && !taken[it]) {
                groups[first].clear();
                groups[second] = vec![first, second];
                taken[first] = true;
                taken[second] = true;
                continue;
            }
            let members = self.companions(insts, first, &taken);
            let Some(members) = self.in_a_window(insts, members) else { continue };
            // Loads go as early, stores as late as any of them.
            let is_load = matches!(insts[members[0]].op, Op::Load { .. });
            let home = if is_load { members[0] } else { members[members.len() - 1] };
            for &member in &members {
                groups[member].clear();
                taken[member] = true;
            }
            groups[home] = members;
        }
        groups
    }

    /// Accesses by the address of instruction `first` with nothing in between that they could not pass.
    fn companions(&self, insts: &[Inst], first: usize, taken: &[bool]) -> Vec<usize> {
        let mut members = vec![first];
        let Some(key) = self.windowed(&insts[first]).filter(|_| !taken[first]) else { return members };
        for (at, inst) in insts.iter().enumerate().skip(first + 1).take(REACH) {
            if inst.op.is_pure() {
                continue;
            }
            let together = self.windowed(inst).filter(|_| !taken[at]).is_some_and(|other| {
                let same = (other.is_load, other.space, other.mem, other.ty)
                    == (key.is_load, key.space, key.mem, key.ty);
                same && self.between(key.address, other.address).is_some()
            });
            if members.len() == MOST {
                break;
            }
            if together {
                members.push(at);
                continue;
            }
            // Loads pass each other.
            let passes = key.is_load && matches!(inst.op, Op::Load { order: Order::Weak, .. });
            if !passes {
                break;
            }
        }
        members
    }

    /// Those of the accesses that one window has: all, or those that lie among the lanes of the first.
    fn in_a_window(&self, insts: &[Inst], members: Vec<usize>) -> Option<Vec<usize>> {
        if members.len() < 2 {
            return None;
        }
        let is_window = |members: &[usize]| {
            let all: Vec<&Inst> = members.iter().map(|&member| &insts[member]).collect();
            members.len() > 1 && self.as_window(&all).is_some()
        };
        if is_window(&members) {
            return Some(members);
        }
        let place = |member: usize| {
            let Op::Load { offset, .. } = insts[member].op else { return None };
            Some(self.between(insts[members[0]].args[0], insts[member].args[0])? + offset)
        };
        let first = place(*members.first()?)?;
        let lanes = self.distances(insts[members[0]].args[0])?;
        let span = lanes.iter().max()? - lanes.iter().min()?;
        let is_near = |member: &usize| place(*member).is_some_and(|it| (it - first).abs() < span);
        let near: Vec<usize> = members.iter().copied().filter(is_near).collect();
        if is_window(&near) {
            return Some(near);
        }
        // Neighbours whose words lie in segments together.
        let mut in_order = near;
        in_order.sort_by_key(|&member| place(member));
        let own = in_order.iter().position(|&member| member == members[0])?;
        for length in [8, 4, 2] {
            for from in own.saturating_sub(length - 1)..=own {
                let mut some = in_order.get(from..from + length).unwrap_or_default().to_vec();
                some.sort_unstable();
                if is_window(&some) {
                    return Some(some);
                }
            }
        }
        None
    }

    /// How far lane 0's address `b` is from `a`.
    fn between(&self, a: Value, b: Value) -> Option<i64> {
        if self.is_same(a, b) {
            return Some(0);
        }
        self.here().bases.distance(a, b).filter(|_| self.copy == Copy::Unmasked)
    }

    /// Whether two values are made alike, as far as a few steps show.
    pub(super) fn is_same(&self, a: Value, b: Value) -> bool {
        self.is_same_within(a, b, 8)
    }

    fn is_same_within(&self, a: Value, b: Value, steps: u32) -> bool {
        if a == b || steps == 0 {
            return a == b;
        }
        self.made(a).zip(self.made(b)).is_some_and(|(x, y)| {
            let mut args = x.args.iter().zip(&y.args);
            x.op == y.op
                && x.args.len() == y.args.len()
                && args.all(|(&a, &b)| self.is_same_within(a, b, steps - 1))
        })
    }

    /// The pure operation whose only result it is.
    fn made(&self, value: Value) -> Option<&Inst> {
        let Definition::Inst(block, at, 0) = self.definitions[value.index()] else { return None };
        let inst = &self.here().function.blocks[block].insts[at];
        (inst.op.is_pure() && inst.results.len() == 1).then_some(inst)
    }

    /// An access that may be a part of a window.
    fn windowed(&self, inst: &Inst) -> Option<Key> {
        let found = key(inst, |value| self.ty(value))?;
        let is_plain = matches!(found.space, Space::Global | Space::Shared | Space::Generic | Space::Const);
        (is_plain && matches!(found.mem.bits, 8 | 16 | 32 | 64)).then_some(found)
    }

    /// Writes the accesses as one; false when that is not possible.
    pub(super) fn window_access(&mut self, block: usize, insts: &[&Inst]) -> bool {
        let Some((key, window)) = self.as_window(insts) else { return false };
        if key.is_load {
            self.load_window(block, insts, &key, &window);
        } else {
            self.store_window(insts, &key, &window);
        }
        true
    }

    fn as_window(&self, insts: &[&Inst]) -> Option<(Key, Window)> {
        let key = self.windowed(insts[0])?;
        // Lanes without work may point anywhere; a store under a mask wants mask registers.
        if self.lanes < 2 || (self.mask.is_some() && key.is_load) || (self.wide_masks && !key.is_load) {
            return None;
        }
        let lanes = self.distances(key.address)?;
        let bytes = i64::from(key.mem.bits / 8);
        if n_elements(insts[0]) == 1 && lanes.iter().zip(0..).all(|(&place, lane)| place == lane * bytes) {
            // Side by side already.
            return None;
        }
        let is_dense_alone = self.window(&insts[..1], &key).is_some();
        let window = self.window(insts, &key)?;
        // Lanes far apart are read one by one as fast where words between them are nobody's, or without shuffles of two vectors by one
        // instruction.
        if is_dense_alone || (self.vector_bits >= 512 && window.is_nearly_full()) {
            return Some((key, window));
        }
        let step = bytes * n_elements(insts[0]) as i64;
        let is_row = |it: Divergence| it.line().is_some_and(|(stride, _)| Runs::are_near(stride, step));
        let in_segments = self.vector_bits == 256
            && key.is_load
            && !self.in_row(key.address).is_some_and(is_row)
            && self.lies_in_segments(insts, &window);
        in_segments.then_some((key, Window { in_segments, ..window }))
    }

    /// Whether all words lie in segments.
    fn lies_in_segments(&self, insts: &[&Inst], window: &Window) -> bool {
        let results = window.results(insts);
        let segments = self.segments(&results, window);
        let units = segments.iter().flat_map(|segments| &segments.of);
        units.map(|unit| unit.elements.len()).sum::<usize>() == results.len()
    }

    /// How far each lane's address is from lane 0's.
    pub(super) fn distances(&self, address: Value) -> Option<Vec<i64>> {
        match self.divergence(address) {
            Divergence::Uniform => None,
            Divergence::Affine { assumed: true, .. } if self.copy == Copy::Masked => None,
            Divergence::Affine { stride, .. } => {
                Some((0..i64::from(self.lanes)).map(|lane| lane * stride).collect())
            }
            Divergence::Varying => self.offsets(address).map(|lanes| lanes.to_vec()),
        }
    }

    /// Constant distances of a value's lanes from lane 0, which need not be active.
    pub(super) fn offsets(&self, value: Value) -> Option<&offsets::Lanes> {
        match self.copy {
            Copy::Unmasked => self.here().offsets_together.get(value),
            Copy::Masked => self.here().offsets.of_all_lanes(value),
        }
    }

    /// `None` where lanes are too far apart, or store to one place.
    fn window(&self, insts: &[&Inst], key: &Key) -> Option<Window> {
        let bytes = i64::from(key.mem.bits / 8);
        let mut elements = vec![];
        let mut places: Vec<Vec<i64>> = vec![];
        for (at, inst) in insts.iter().enumerate() {
            let (Op::Load { offset, .. } | Op::Store { offset, .. }) = inst.op else { return None };
            let lanes = self.distances(inst.args[0])?;
            let offset = offset.wrapping_add(self.between(key.address, inst.args[0])?);
            for nth in 0..n_elements(inst) {
                elements.push((at, nth));
                let place = |lane: &i64| lane.wrapping_add(offset).wrapping_add(nth as i64 * bytes);
                places.push(lanes.iter().map(place).collect());
            }
        }
        let all = || places.iter().flatten().copied();
        let (start, last) = (all().min()?, all().max()?);
        let span = usize::try_from(last.checked_sub(start)?).ok()?;
        let n_words = span / bytes as usize + 1;
        let used = elements.len() * self.lanes as usize;
        if n_words > 4 * used || n_words > 512 || all().any(|place| (place - start) % bytes != 0) {
            return None;
        }
        let words: Vec<Vec<usize>> = places
            .iter()
            .map(|places| places.iter().map(|place| ((place - start) / bytes) as usize).collect())
            .collect();
        if !key.is_load {
            let mut taken = vec![false; n_words];
            if words.iter().flatten().any(|&word| std::mem::replace(&mut taken[word], true)) {
                return None;
            }
        }
        let word = Self::memory_ty(key.ty, key.mem, 1);
        Some(Window {
            space: key.space,
            elements,
            start,
            words,
            n_words,
            word,
            bytes: bytes as usize,
            in_segments: false,
        })
    }

    /// Elements of a vector register.
    fn piece(&self, word: Type) -> usize {
        ((self.vector_bits / word.bits()) as usize).clamp(2, self.lanes as usize)
    }

    /// The first lane's address.
    fn window_base(&mut self, key: &Key) -> Val {
        match self.lanes_of(key.address, key.space) {
            Lanes::One(base) | Lanes::Line { base, .. } => base,
            Lanes::Each(each) => self.extract(&each, "0"),
        }
    }

    /// Where the window starts.
    fn window_start(&mut self, key: &Key, window: &Window) -> Val {
        let base = self.window_base(key);
        self.pointer(window.space, &base, window.start)
    }

    fn word_pointer(&mut self, start: &Val, window: &Window, word: usize) -> Val {
        self.bytes_behind(start, word * window.bytes)
    }

    fn bytes_behind(&mut self, start: &Val, bytes: usize) -> Val {
        self.b.assign(Type::ptr(), format_args!("getelementptr i8, ptr {}, i64 {bytes}", start.text))
    }

    fn load_window(&mut self, block: usize, insts: &[&Inst], key: &Key, window: &Window) {
        let start = self.window_start(key, window);
        let piece = self.piece(window.word).min(window.n_words);
        // LLVM has the numbers of a shuffle of integers as bytes, which it widens by a shuffle each time where registers do not hold them
        // (LLVM 19), those of floats as they are.
        let goes_round = self.here().loops.of[block].is_some();
        let scalar = match window.word.scalar {
            Scalar::Int(32) if goes_round => Scalar::Float,
            Scalar::Int(64) if goes_round => Scalar::Double,
            other => other,
        };
        let ty = Type::new(scalar, piece as u32);
        self.prefetch_next(block, key, window);
        let size = self.piece(window.word);
        let results = window.results(insts);
        if window.n_words == 1 {
            // All lanes read one place.
            let word = window.word;
            let one =
                self.b.assign(word, format_args!("load {word}, ptr {}, align {}", start.text, window.bytes));
            let all = self.splat(&one);
            for result in results {
                let val = self.register_value(all.clone(), key.mem, self.ty(result));
                self.define_vector(result, val);
            }
            return;
        }
        // Whole words are dealt out sooner where vectors are loaded across segments.
        let segments =
            if window.in_segments || window.bytes == 2 { self.segments(&results, window) } else { vec![] };
        let is_single = |&element: &usize| {
            let mut units = segments.iter().flat_map(|segments| &segments.of);
            !units.any(|unit| unit.elements.contains(&element))
        };
        let singles: Vec<usize> = (0..results.len()).filter(is_single).collect();
        let (deal, found) = window.dealt(&singles, piece, size);
        let made = self.make(&deal, |me, first, _| {
            let at = me.word_pointer(&start, window, first);
            me.b.assign(ty, format_args!("load {ty}, ptr {}, align {}", at.text, window.bytes))
        });
        for (&element, step) in singles.iter().zip(found) {
            let val = self.b.bitcast(&made[step], Type::new(window.word.scalar, self.lanes));
            let val = self.register_value(val, key.mem, self.ty(results[element]));
            self.define_vector(results[element], val);
        }
        for segments in &segments {
            self.load_segments(key, (&start, window), &results, segments);
        }
    }

    fn load_segments(
        &mut self,
        key: &Key,
        (start, window): (&Val, &Window),
        results: &[Value],
        segments: &Segments,
    ) {
        let (deal, found) = segments.dealt(self.piece(Type::int(32, 1)));
        let made = self.make(&deal, |me, first, length| {
            let ty = Type::new(Scalar::Float, length as u32);
            let at = me.bytes_behind(start, segments.places[first]);
            me.b.assign(ty, format_args!("load {ty}, ptr {}, align {}", at.text, window.bytes))
        });
        for (unit, step) in segments.of.iter().zip(found) {
            let words = self.b.bitcast(&made[step], Type::int(32, self.lanes));
            let vals = match unit.elements.len() {
                1 => vec![self.b.bitcast(&words, Type::new(window.word.scalar, self.lanes))],
                _ => {
                    // LLVM puts the halves together again.
                    let high = self.b.bin_int("lshr", &words, 16);
                    [words, high].iter().map(|half| self.b.resize(half, 16, false)).collect()
                }
            };
            for (&element, val) in unit.elements.iter().zip(vals) {
                let val = self.register_value(val, key.mem, self.ty(results[element]));
                self.define_vector(results[element], val);
            }
        }
    }

    /// Words that lie in segments, those of them together whose segments are long.
    fn segments(&self, results: &[Value], window: &Window) -> Vec<Segments> {
        let mut units = self.units(results, window);
        units.sort_by_key(|unit| unit.places[0]);
        let size = self.piece(Type::int(32, 1));
        let (mut all, mut rest) = (vec![], units);
        while !rest.is_empty() {
            let lengths = [8, 4, 2, 1].into_iter().filter(|&length| length <= rest.len());
            let found =
                lengths.filter_map(|length| Some((length, Segments::of(&rest[..length], size)?))).next();
            let behind = rest.split_off(found.as_ref().map_or(1, |(length, _)| *length));
            let units = std::mem::replace(&mut rest, behind);
            if let Some((_, (words, places, length))) = found {
                all.push(Segments { of: units, words, places, length });
            }
        }
        all
    }

    fn units(&self, results: &[Value], window: &Window) -> Vec<Unit> {
        let unit = |element: usize| {
            let places = window.words[element].iter().map(|word| word * window.bytes).collect();
            if window.bytes == 4 {
                return Some(Unit { elements: vec![element], places });
            }
            let high = self.halves.get(&results[element])?;
            let high = results.iter().position(|result| result == high)?;
            let both = window.words[element].iter().zip(&window.words[high]);
            let are_neighbours = both.into_iter().all(|(low, high)| low + 1 == *high);
            are_neighbours.then(|| Unit { elements: vec![element, high], places })
        };
        let is_word = window.bytes == 4 || window.bytes == 2;
        (0..results.len()).filter(|_| is_word).filter_map(unit).collect()
    }

    /// The low and the high half of a word that the instruction makes.
    fn packed(&self, inst: &Inst) -> Option<[Value; 2]> {
        let narrow = |value: Value| match self.made(value) {
            Some(Inst { op: Op::Zext, args, .. }) => args[0],
            _ => value,
        };
        let raised = |value: Value| {
            let Inst { op: Op::Int(IntBin::Shl, _), args, .. } = self.made(value)? else { return None };
            let by = self.here().ranges.constant(args[1])?;
            (by == 16).then(|| narrow(args[0]))
        };
        match (&inst.op, &inst.args[..]) {
            (Op::Pack, &[low, high]) => Some([low, high]),
            (Op::Int(IntBin::Or | IntBin::Add, _), &[a, b]) => match (raised(a), raised(b)) {
                (Some(high), _) => Some([narrow(b), high]),
                (_, Some(high)) => Some([narrow(a), high]),
                _ => None,
            },
            _ => None,
        }
    }

    /// Asks for what the next group of the block loads, where a group loads so much that the CPU does not look that far
    /// ahead by itself.
    fn prefetch_next(&mut self, block: usize, key: &Key, window: &Window) {
        let bytes = window.n_words * window.bytes;
        let Divergence::Affine { stride, .. } = self.divergence(key.address) else { return };
        let is_flat = self.threads.block[1] == 1 && self.threads.block[2] == 1;
        let one_of_many = !self.per_warp && self.groups > 1 && is_flat;
        if !one_of_many || key.space != Space::Global || bytes < PREFETCHED {
            return;
        }
        let base = self.window_base(key);
        let from = window.start + stride * i64::from(self.lanes);
        self.ask_ahead(block, &base, from, from + bytes as i64);
    }

    /// Vectors one behind the other; their number is a power of two.
    pub(super) fn stacked(&mut self, mut pieces: Vec<Val>) -> Val {
        while pieces.len() > 1 {
            let count = 2 * pieces[0].ty.lanes as usize;
            let picks: Vec<Option<usize>> = (0..count).map(Some).collect();
            pieces = pieces.chunks(2).map(|pair| self.shuffle(&pair[0], pair.get(1), &picks)).collect();
        }
        pieces.remove(0)
    }

    /// Lanes of one vector or of two, or nothing in particular.
    pub(super) fn shuffle(&mut self, a: &Val, b: Option<&Val>, picks: &[Option<usize>]) -> Val {
        let is_same = picks.iter().enumerate().all(|(at, pick)| pick.is_none_or(|pick| pick == at));
        if is_same && picks.len() == a.ty.lanes as usize {
            return a.clone();
        }
        let ty = Type::new(a.ty.scalar, picks.len() as u32);
        let picks: Vec<String> = picks
            .iter()
            .map(|pick| pick.map_or("i32 poison".to_owned(), |pick| format!("i32 {pick}")))
            .collect();
        let b = b.map_or(format!("{} poison", a.ty), Val::typed);
        self.b.assign(
            ty,
            format_args!("shufflevector {}, {b}, <{} x i32> <{}>", a.typed(), picks.len(), picks.join(", ")),
        )
    }

    /// Writes the steps; `source`: what they begin with.
    fn make(&mut self, deal: &Deal, mut source: impl FnMut(&mut Self, usize, usize) -> Val) -> Vec<Val> {
        let mut made: Vec<Val> = vec![];
        for (step, &length) in deal.steps.iter().zip(&deal.lengths) {
            let val = match step {
                Step::Load(number) | Step::Given(number) => source(self, *number, length),
                Step::Shuffle { a, b, picks } => self.shuffle(&made[*a], b.map(|b| &made[b]), picks),
            };
            made.push(val);
        }
        made
    }

    fn store_window(&mut self, insts: &[&Inst], key: &Key, window: &Window) {
        let start = self.window_start(key, window);
        let piece = self.piece(window.word);
        let vals: Vec<Val> = window
            .elements
            .iter()
            .map(|&(at, nth)| {
                let val = self.vector(insts[at].args[1 + nth]);
                self.memory_value(&val, key.mem, key.ty)
            })
            .collect();
        let all: Vec<usize> = (0..window.elements.len()).collect();
        let mut deal = Deal::default();
        let given: Vec<usize> = all.iter().map(|&nth| deal.given(nth, self.lanes as usize)).collect();
        let parts = deal.merge(&window.words, &all, &given, piece);
        let pieces = cover(&window.used(&all), piece, usize::MAX);
        let steps: Vec<usize> =
            pieces.iter().map(|(_, words)| deal.pick_holes(&parts, words, piece)).collect();
        let made = self.make(&deal, |_, nth, _| vals[nth].clone());
        for ((first, words), step) in pieces.into_iter().zip(steps) {
            let at = self.word_pointer(&start, window, first);
            self.store_piece(window, &made[step], &at, &words);
        }
    }

    /// Stores the words that lanes have, of the active ones.
    fn store_piece(&mut self, window: &Window, val: &Val, at: &Val, words: &Words) {
        let align = window.bytes;
        let is_whole = words.iter().all(Option::is_some);
        let flag_ty = Type::int(1, words.len() as u32);
        let flags = match self.mask.clone() {
            None if is_whole => {
                self.b.inst(format_args!("store {}, ptr {}, align {align}", val.typed(), at.text));
                return;
            }
            None => {
                let flags: Vec<String> = words.iter().map(|word| format!("i1 {}", word.is_some())).collect();
                Val::new(flag_ty, format!("<{}>", flags.join(", ")))
            }
            Some(mask) => {
                let lanes = self.lanes as usize;
                let lane_of = |word: usize| {
                    window.words.iter().find_map(|words| words.iter().position(|&each| each == word))
                };
                let picks: Vec<Option<usize>> =
                    words.iter().map(|word| Some(word.and_then(lane_of).unwrap_or(lanes))).collect();
                let none = Builder::bits(mask.ty, 0);
                self.shuffle(&mask, Some(&none), &picks)
            }
        };
        self.store_under(&flags, align as i64, at, val);
    }
}

impl Segments {
    /// Words, places and the length of segments, if that is four words at least, and words fill vectors of `size`.
    fn of(units: &[Unit], size: usize) -> Option<(Vec<Vec<usize>>, Vec<usize>, usize)> {
        let mut places: Vec<usize> = units.iter().flat_map(|unit| &unit.places).copied().collect();
        places.sort_unstable();
        places.dedup();
        let segments = places.chunk_by(|a, b| a + 4 == *b).map(<[usize]>::len);
        let length = segments.map(|length| 1 << length.trailing_zeros()).min()?;
        if length < 4 || !places.len().is_multiple_of(size) {
            return None;
        }
        let number = |place: &usize| places.binary_search(place).ok();
        let words = units.iter().map(|unit| unit.places.iter().filter_map(number).collect()).collect();
        Some((words, places, length.min(size)))
    }

    fn dealt(&self, size: usize) -> (Deal, Vec<usize>) {
        let mut deal = Deal::default();
        let vectors = (0..self.places.len()).step_by(size);
        let parts: Vec<Part> = vectors.map(|first| deal.load_segments(first, size, self.length)).collect();
        let all: Vec<usize> = (0..self.of.len()).collect();
        let mut found = vec![None; all.len()];
        deal.deal(&self.words, &all, &parts, size, &mut found);
        (deal, found.into_iter().flatten().collect())
    }
}

impl Window {
    /// Three words of four from the first to the last are some lane's.
    fn is_nearly_full(&self) -> bool {
        let used = self.used(&(0..self.elements.len()).collect::<Vec<_>>());
        4 * used.into_iter().filter(|&used| used).count() >= 3 * self.n_words
    }

    /// What its loads give, by element.
    fn results(&self, insts: &[&Inst]) -> Vec<Value> {
        self.elements.iter().map(|&(at, nth)| insts[at].results[nth]).collect()
    }

    /// Which words lanes have for these elements.
    fn used(&self, elements: &[usize]) -> Vec<bool> {
        self.used_of(elements.iter().flat_map(|&element| &self.words[element]))
    }

    fn used_of<'a>(&self, words: impl IntoIterator<Item = &'a usize>) -> Vec<bool> {
        let mut used = vec![false; self.n_words];
        words.into_iter().for_each(|&word| used[word] = true);
        used
    }

    /// How loads of `piece` words come to lanes' vectors of `size`, and the steps that make the elements: what they have of the window is
    /// loaded and dealt out, or, where that costs less, those whose vectors have their words in two places are loaded by themselves.
    fn dealt(&self, elements: &[usize], piece: usize, size: usize) -> (Deal, Vec<usize>) {
        let is_near = |&element: &usize| {
            let near = |words: &[usize]| cover(&self.used_of(words), piece, self.n_words).len() <= 2;
            self.words[element].chunks(size).all(near)
        };
        let together = self.dealt_by(elements, &[], piece, size);
        let alone: Vec<usize> = elements.iter().copied().filter(is_near).collect();
        if alone.is_empty() {
            return together;
        }
        let apart = self.dealt_by(elements, &alone, piece, size);
        if apart.0.cost() < together.0.cost() { apart } else { together }
    }

    fn dealt_by(&self, elements: &[usize], alone: &[usize], piece: usize, size: usize) -> (Deal, Vec<usize>) {
        let mut deal = Deal::default();
        let mut found = vec![None; self.elements.len()];
        let load = |deal: &mut Deal, used: &[bool]| {
            let places = cover(used, piece, self.n_words).into_iter();
            places.map(|(first, _)| deal.load(first, piece)).collect::<Vec<Part>>()
        };
        for &element in alone {
            let pick = |words: &[usize]| {
                let parts = load(&mut deal, &self.used_of(words));
                deal.pick_piece(&parts, words, size)
            };
            let pieces = self.words[element].chunks(size).map(pick).collect();
            found[element] = Some(deal.stacked(pieces));
        }
        let rest: Vec<usize> = elements.iter().copied().filter(|element| !alone.contains(element)).collect();
        if !rest.is_empty() {
            let parts = load(&mut deal, &self.used(&rest));
            deal.deal(&self.words, &rest, &parts, size, &mut found);
        }
        (deal, elements.iter().filter_map(|&element| found[element]).collect())
    }
}
