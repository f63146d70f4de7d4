//! Which elements are dropped: random words by their place in a sequence.
//!
//! A state is a seed and how many words were taken; it lies in the program's memory.

/// In front of a state, so that memory that never got one is told.
pub const MARK: u64 = 0x6375_6461_7761_7964;

/// Bytes of a state.
pub const STATE: usize = 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    pub seed: u64,
    pub taken: u64,
}

impl State {
    pub fn bytes(self) -> [u8; STATE] {
        let mut bytes = [0; STATE];
        for (to, word) in bytes.chunks_mut(8).zip([MARK, self.seed, self.taken]) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    pub fn of_bytes(bytes: [u8; STATE]) -> Option<State> {
        let word = |at: usize| u64::from_le_bytes(core::array::from_fn(|i| bytes[8 * at + i]));
        (word(0) == MARK).then(|| State { seed: word(1), taken: word(2) })
    }

    /// A random word for each of the next places, and the state behind them.
    pub fn take(&mut self, count: usize) -> impl Fn(usize) -> u32 + Sync + Send + use<> {
        let (seed, first) = (self.seed, self.taken);
        self.taken = self.taken.wrapping_add(count as u64);
        move |at| word(seed, first.wrapping_add(at as u64))
    }
}

/// Steele's and Vigna's mixing function of 64 bits, of the place and the seed.
fn word(seed: u64, place: u64) -> u32 {
    let mix = |mut z: u64| {
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    (mix(
        mix(seed.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_add(place.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    ) >> 32) as u32
}

/// Whether the word's element is kept.
pub fn keeps(word: u32, dropped: f64) -> bool {
    f64::from(word) >= dropped * 4_294_967_296.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_goes_on_and_comes_back() {
        let mut state = State { seed: 7, taken: 0 };
        let before = state;
        let first = state.take(1000);
        let second = state.take(1000);
        assert_eq!(State::of_bytes(state.bytes()), Some(state));
        assert_eq!(State::of_bytes([0; STATE]), None);
        let words: Vec<u32> = (0..1000).map(&first).chain((0..1000).map(&second)).collect();
        let again = { before }.take(2000);
        assert!(words.iter().enumerate().all(|(at, word)| *word == again(at)));
        let dropped = words.iter().filter(|word| !keeps(**word, 0.3)).count();
        assert!((500..700).contains(&dropped), "{dropped}");
    }
}
