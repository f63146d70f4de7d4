//! A set of small integers.

/// Words of members that lie together.
const PAGE: usize = 8;
const BITS: usize = 64 * PAGE;

/// Most sets have few members of many that there could be (what lives at the start of one of a kernel's thousands of blocks): pages
/// without one are not there.
#[derive(Clone, Debug, Default)]
pub struct BitSet {
    pages: Vec<Option<Box<[u64; PAGE]>>>,
}

impl BitSet {
    pub fn new(len: usize) -> BitSet {
        BitSet { pages: vec![None; len.div_ceil(BITS)] }
    }

    /// True when `at` was not in the set.
    pub fn insert(&mut self, at: usize) -> bool {
        if at / BITS >= self.pages.len() {
            self.pages.resize(at / BITS + 1, None);
        }
        let page = self.pages[at / BITS].get_or_insert_default();
        let (word, bit) = (&mut page[at % BITS / 64], 1 << (at % 64));
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// True when `at` was in the set.
    pub fn remove(&mut self, at: usize) -> bool {
        let Some(Some(page)) = self.pages.get_mut(at / BITS) else { return false };
        let (word, bit) = (&mut page[at % BITS / 64], 1 << (at % 64));
        let was = *word & bit != 0;
        *word &= !bit;
        was
    }

    pub fn contains(&self, at: usize) -> bool {
        let page = self.pages.get(at / BITS).and_then(Option::as_ref);
        page.is_some_and(|page| page[at % BITS / 64] >> (at % 64) & 1 == 1)
    }

    /// Adds the members of `other`; true when any was new.
    pub fn union(&mut self, other: &BitSet) -> bool {
        if self.pages.len() < other.pages.len() {
            self.pages.resize(other.pages.len(), None);
        }
        let mut changed = false;
        for (page, more) in self.pages.iter_mut().zip(&other.pages) {
            let Some(more) = more else { continue };
            let page = page.get_or_insert_default();
            for (word, more) in page.iter_mut().zip(more.iter()) {
                changed |= more & !*word != 0;
                *word |= more;
            }
        }
        changed
    }

    /// The members of both.
    pub fn common(&self, other: &BitSet) -> BitSet {
        let mut common = BitSet::default();
        self.iter().filter(|&at| other.contains(at)).for_each(|at| {
            common.insert(at);
        });
        common
    }

    pub fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        let pages =
            self.pages.iter().enumerate().filter_map(|(at, page)| Some((at * PAGE, page.as_deref()?)));
        let words =
            pages.flat_map(|(at, page)| page.iter().enumerate().map(move |(nth, &word)| (at + nth, word)));
        words.flat_map(|(at, word)| {
            // Without its lowest member, until there is none.
            let rests = std::iter::successors(Some(word), |rest| Some(rest & rest.wrapping_sub(1)));
            rests.take_while(|rest| *rest != 0).map(move |rest| at * 64 + rest.trailing_zeros() as usize)
        })
    }
}
