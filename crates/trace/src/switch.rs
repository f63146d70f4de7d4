//! Whether something is on, asked by every call.

use std::sync::atomic::{AtomicU8, Ordering};

const UNKNOWN: u8 = 0;
const OFF: u8 = 1;
const ON: u8 = 2;

/// Found out when it is first asked, known from then on: a relaxed load. What is set counts, whatever is found out meanwhile.
#[derive(Debug, Default)]
pub struct Switch(AtomicU8);

impl Switch {
    pub const fn new() -> Switch {
        Switch(AtomicU8::new(UNKNOWN))
    }

    /// `find_out` runs until something is known; on several threads perhaps, of which one answers for all.
    #[inline]
    pub fn is_on(&self, find_out: impl FnOnce() -> bool) -> bool {
        match self.0.load(Ordering::Relaxed) {
            OFF => false,
            state => state == ON || self.begin(find_out),
        }
    }

    pub fn set(&self, is_on: bool) {
        self.0.store(state(is_on), Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    fn begin(&self, find_out: impl FnOnce() -> bool) -> bool {
        let found = find_out();
        match self.0.compare_exchange(UNKNOWN, state(found), Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => found,
            Err(known) => known == ON,
        }
    }
}

const fn state(is_on: bool) -> u8 {
    if is_on { ON } else { OFF }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> bool {
        panic!("asked")
    }

    #[test]
    fn the_first_answer_is_kept() {
        for answer in [false, true] {
            let switch = Switch::new();
            assert_eq!(switch.is_on(|| answer), answer);
            assert_eq!(switch.is_on(asked), answer);
        }
    }

    #[test]
    fn what_is_set_is_not_asked_for() {
        let switch = Switch::new();
        for is_on in [true, false, true] {
            switch.set(is_on);
            assert_eq!(switch.is_on(asked), is_on);
        }
    }

    #[test]
    fn what_is_set_while_it_is_found_out_counts() {
        for is_on in [false, true] {
            let switch = Switch::new();
            let found = || {
                switch.set(is_on);
                !is_on
            };
            assert_eq!(switch.is_on(found), is_on);
            assert_eq!(switch.is_on(asked), is_on);
        }
    }

    #[test]
    fn threads_that_find_out_different_things_agree() {
        let (switch, both) = (Switch::new(), std::sync::Barrier::new(2));
        let ask = |answer: bool| {
            switch.is_on(|| {
                both.wait();
                answer
            })
        };
        let answers = std::thread::scope(|scope| {
            let other = scope.spawn(|| ask(true));
            [ask(false), other.join().unwrap()]
        });
        assert_eq!(answers, [switch.is_on(asked); 2]);
    }
}
