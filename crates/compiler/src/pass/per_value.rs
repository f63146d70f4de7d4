//! What is known of the values of a function, most of which have nothing of their own: a region of a kernel keeps the names of the whole
//! kernel's values and has few of them, and a kernel may have some hundred regions.

use std::ops::{Index, IndexMut};

/// Values whose facts lie together.
const PAGE: usize = 32;

#[derive(Clone, Debug)]
pub struct PerValue<T> {
    /// `None`: nothing else than `rest` was said of any of them.
    pages: Vec<Option<Box<[T]>>>,
    rest: T,
}

impl<T: Clone> PerValue<T> {
    /// `rest` of each of `n` values.
    pub fn new(n: usize, rest: T) -> PerValue<T> {
        PerValue { pages: vec![None; n.div_ceil(PAGE)], rest }
    }
}

impl<T> Index<usize> for PerValue<T> {
    type Output = T;

    fn index(&self, at: usize) -> &T {
        self.pages[at / PAGE].as_ref().map_or(&self.rest, |page| &page[at % PAGE])
    }
}

/// Makes room; what is to stay as it is, is better not written.
impl<T: Clone> IndexMut<usize> for PerValue<T> {
    fn index_mut(&mut self, at: usize) -> &mut T {
        let page = self.pages[at / PAGE].get_or_insert_with(|| vec![self.rest.clone(); PAGE].into());
        &mut page[at % PAGE]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_stands_and_the_rest_takes_no_room() {
        let mut facts = PerValue::new(100, 7);
        assert_eq!((facts[0], facts[99]), (7, 7));
        facts[40] = 1;
        assert_eq!((facts[39], facts[40], facts[41], facts[99]), (7, 1, 7, 7));
        assert_eq!(facts.pages.iter().flatten().count(), 1);
    }

    #[test]
    #[should_panic(expected = "index out of bounds")]
    fn there_are_no_more_values_than_were_said() {
        let _ = PerValue::new(32, 0)[32];
    }
}
