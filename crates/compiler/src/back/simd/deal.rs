//! Which loads and shuffles bring the words of a window (`window.rs`) to lanes, and lanes' words to a window: they are counted before any
//! is written, and of several ways the cheapest is taken.

use std::collections::HashMap;

/// What a vector holds: for each element the number of the word, or none.
pub(super) type Words = Vec<Option<usize>>;

/// A vector that a step makes, and what it holds.
#[derive(Clone)]
pub(super) struct Part {
    pub(super) step: usize,
    pub(super) words: Words,
}

#[derive(Clone, PartialEq, Eq, Hash)]
pub(super) enum Step {
    /// A vector of the words from this one on.
    Load(usize),
    /// A vector that was there before.
    Given(usize),
    /// Elements of one vector or of two, or nothing in particular.
    Shuffle { a: usize, b: Option<usize>, picks: Vec<Option<usize>> },
}

#[derive(Clone, Default)]
pub(super) struct Deal {
    pub(super) steps: Vec<Step>,
    /// Elements of each step's vector.
    pub(super) lengths: Vec<usize>,
    numbers: HashMap<Step, usize>,
}

impl Deal {
    /// Loads are two in a cycle, shuffles of whole vectors one.
    pub(super) fn cost(&self) -> usize {
        let of = |step: &Step| match step {
            Step::Load(_) => 1,
            Step::Given(_) => 0,
            Step::Shuffle { .. } => 2,
        };
        self.steps.iter().map(of).sum()
    }

    /// The number of the step, which is made once.
    fn step(&mut self, step: Step, length: usize) -> usize {
        if let Some(&number) = self.numbers.get(&step) {
            return number;
        }
        let number = self.steps.len();
        self.numbers.insert(step.clone(), number);
        self.steps.push(step);
        self.lengths.push(length);
        number
    }

    pub(super) fn load(&mut self, first: usize, length: usize) -> Part {
        let step = self.step(Step::Load(first), length);
        Part { step, words: (first..first + length).map(Some).collect() }
    }

    /// As [`Self::load`], by loads of `segment` words.
    pub(super) fn load_segments(&mut self, first: usize, length: usize, segment: usize) -> Part {
        let firsts = (first..first + length).step_by(segment);
        let segments = firsts.map(|first| self.load(first, segment).step).collect();
        Part { step: self.stacked(segments), words: (first..first + length).map(Some).collect() }
    }

    pub(super) fn given(&mut self, number: usize, length: usize) -> usize {
        self.step(Step::Given(number), length)
    }

    fn shuffle(&mut self, a: usize, b: Option<usize>, picks: Vec<Option<usize>>) -> usize {
        let is_same = picks.iter().enumerate().all(|(at, pick)| pick.is_none_or(|pick| pick == at));
        if is_same && picks.len() == self.lengths[a] {
            return a;
        }
        let length = picks.len();
        self.step(Step::Shuffle { a, b, picks }, length)
    }

    /// Gives each of `elements` its lanes' `words`, in vectors of `size`. With each step half of the elements go their own way.
    pub(super) fn deal(
        &mut self,
        words: &[Vec<usize>],
        elements: &[usize],
        parts: &[Part],
        size: usize,
        found: &mut [Option<usize>],
    ) {
        if let [element] = *elements {
            found[element] = Some(self.pick(parts, &words[element], size));
            return;
        }
        let (low, high) = elements.split_at(elements.len() / 2);
        for half in [low, high] {
            let packed = self.pack(half.iter().flat_map(|&element| &words[element]), parts);
            self.deal(words, half, &packed, size, found);
        }
    }

    /// These words alone, in as few vectors.
    fn pack<'a>(&mut self, words: impl Iterator<Item = &'a usize> + Clone, parts: &[Part]) -> Vec<Part> {
        let mut needed = vec![false; words.clone().max().map_or(0, |last| last + 1)];
        for &word in words {
            needed[word] = true;
        }
        let mut packed: Vec<Part> = vec![];
        let mut at = 0;
        while at < parts.len() {
            let size = parts[at].words.len();
            let pair = &parts[at..(at + 2).min(parts.len())];
            let mut wanted: Vec<usize> = vec![];
            for part in pair {
                let is_wanted = |&&word: &&usize| needed.get_mut(word).is_some_and(std::mem::take);
                wanted.extend(part.words.iter().flatten().filter(is_wanted));
            }
            if wanted.len() <= size && pair.len() == 2 {
                if !wanted.is_empty() {
                    let step = self.pick_piece(pair, &wanted, size);
                    let mut words: Words = wanted.into_iter().map(Some).collect();
                    words.resize(size, None);
                    packed.push(Part { step, words });
                }
                at += 2;
                continue;
            }
            // The first stays as it is; what the second has is still wanted.
            let held: Vec<usize> = parts[at].words.iter().flatten().copied().collect();
            for word in wanted.iter().filter(|word| !held.contains(word)) {
                needed[*word] = true;
            }
            packed.push(parts[at].clone());
            at += 1;
        }
        packed
    }

    /// A vector of these words, from whichever part has them.
    pub(super) fn pick(&mut self, parts: &[Part], words: &[usize], size: usize) -> usize {
        let pieces = words.chunks(size).map(|words| self.pick_piece(parts, words, size)).collect();
        self.stacked(pieces)
    }

    /// Vectors one behind the other; their number is a power of two.
    pub(super) fn stacked(&mut self, mut pieces: Vec<usize>) -> usize {
        while pieces.len() > 1 {
            let picks: Vec<Option<usize>> = (0..2 * self.lengths[pieces[0]]).map(Some).collect();
            let join = |pair: &[usize]| self.shuffle(pair[0], pair.get(1).copied(), picks.clone());
            pieces = pieces.chunks(2).map(join).collect();
        }
        pieces.remove(0)
    }

    /// `size` elements, the first of which are these words: shuffles of two parts at a time, then of their results.
    pub(super) fn pick_piece(&mut self, parts: &[Part], words: &[usize], size: usize) -> usize {
        let place = |word: usize| {
            let held = parts.iter().enumerate().find_map(|(part, each)| {
                Some((part, each.words.iter().position(|&held| held == Some(word))?))
            });
            held.unwrap_or_default()
        };
        let places: Vec<(usize, usize)> = words.iter().map(|&word| place(word)).collect();
        let mut sources: Vec<usize> = places.iter().map(|&(part, _)| part).collect();
        sources.sort_unstable();
        sources.dedup();
        // Each with the elements of the result that it has.
        let mut made: Vec<(usize, Vec<bool>)> = vec![];
        for pair in sources.chunks(2) {
            let mut has = vec![false; size];
            let picks: Vec<Option<usize>> = (0..size)
                .map(|at| {
                    let &(part, index) = places.get(at)?;
                    let side = pair.iter().position(|&source| source == part)?;
                    has[at] = true;
                    Some(side * parts[pair[0]].words.len() + index)
                })
                .collect();
            let second = pair.get(1).map(|&part| parts[part].step);
            made.push((self.shuffle(parts[pair[0]].step, second, picks), has));
        }
        while made.len() > 1 {
            let join = |pair: &[(usize, Vec<bool>)]| match pair {
                [(a, in_a), (b, in_b)] => {
                    let picks: Vec<Option<usize>> = (0..size)
                        .map(|at| if in_a[at] { Some(at) } else { in_b[at].then_some(size + at) })
                        .collect();
                    let has = in_a.iter().zip(in_b).map(|(a, b)| *a || *b).collect();
                    (self.shuffle(*a, Some(*b), picks), has)
                }
                _ => pair[0].clone(),
            };
            made = made.chunks(2).map(join).collect();
        }
        made.remove(0).0
    }

    /// The words of `elements` in the order of the window, without gaps; `given`: each element's vector.
    pub(super) fn merge(
        &mut self,
        words: &[Vec<usize>],
        elements: &[usize],
        given: &[usize],
        size: usize,
    ) -> Vec<Part> {
        let mut order: Vec<usize> = elements.iter().flat_map(|&element| &words[element]).copied().collect();
        order.sort_unstable();
        let parts = if let [element] = *elements {
            let own = &words[element];
            let mut parts = vec![];
            for (nth, words) in own.chunks(size).enumerate() {
                let picks: Vec<Option<usize>> = (0..size).map(|at| Some(nth * size + at)).collect();
                let step = self.shuffle(given[element], None, picks);
                parts.push(Part { step, words: words.iter().copied().map(Some).collect() });
            }
            if order == *own {
                return parts;
            }
            parts
        } else {
            let (low, high) = elements.split_at(elements.len() / 2);
            let mut parts = self.merge(words, low, given, size);
            parts.extend(self.merge(words, high, given, size));
            parts
        };
        let in_order = |words: &[usize]| {
            let step = self.pick_piece(&parts, words, size);
            let mut words: Words = words.iter().copied().map(Some).collect();
            words.resize(size, None);
            Part { step, words }
        };
        order.chunks(size).map(in_order).collect()
    }

    /// As [`Self::pick_piece`], with elements that nobody wants.
    pub(super) fn pick_holes(&mut self, parts: &[Part], words: &Words, size: usize) -> usize {
        let wanted: Vec<usize> = words.iter().flatten().copied().collect();
        let close = self.pick_piece(parts, &wanted, size);
        if wanted.len() == words.len() {
            return close;
        }
        let mut next = 0..;
        let picks: Vec<Option<usize>> = words.iter().map(|word| word.and_then(|_| next.next())).collect();
        self.shuffle(close, None, picks)
    }
}

/// Places from which vectors of `size` words have every word that is used, and which of theirs nobody had before; none goes behind word
/// `end`.
pub(super) fn cover(used: &[bool], size: usize, end: usize) -> Vec<(usize, Words)> {
    let mut all = vec![];
    let mut next = 0;
    while let Some(more) = used[next..].iter().position(|&used| used) {
        let first = (next + more).min(end.saturating_sub(size));
        let words = (first..first + size)
            .map(|word| (word >= next && used.get(word) == Some(&true)).then_some(word))
            .collect();
        all.push((first, words));
        next = (first + size).min(used.len());
    }
    all
}
