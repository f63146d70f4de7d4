//! Which columns of a tensor memory are allocated: in pieces of 32, powers of two of them, each at a multiple of its size.
//!
//! The blocks of a pair ask for the same things in the same order. Whoever comes first gets the answer for both; what is
//! given back is free when both have said so.

use compiler::tensor_memory::{NOT_YET, WRONG};

/// Columns of a piece.
const PIECE: u32 = 32;
const N_PIECES: u32 = 512 / PIECE;
/// A block of a pair may be so many requests ahead of the other.
const AHEAD: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Request {
    #[default]
    Relinquish,
    Alloc(u32),
    Dealloc {
        columns: u32,
        address: u32,
    },
}

/// What is allocated; of a pair only the even block's is used.
#[derive(Default)]
pub struct Columns {
    /// A bit for each piece.
    used: u16,
    /// The first piece of an allocation has here how many there are.
    sizes: [u8; N_PIECES as usize],
    is_relinquished: bool,
    /// Requests of each block so far, and what the last ones were answered.
    asked: [usize; 2],
    answers: Answers,
}

struct Answers([(Request, i32); AHEAD]);

impl Default for Answers {
    fn default() -> Answers {
        Answers([(Request::default(), 0); AHEAD])
    }
}

fn mask(first: u32, pieces: u32) -> u16 {
    (((1u32 << pieces) - 1) << first) as u16
}

impl Columns {
    pub fn is_left(&self) -> bool {
        self.used != 0
    }

    pub fn answer(&mut self, request: Request) -> i32 {
        match request {
            Request::Alloc(columns) => self.alloc(columns),
            Request::Dealloc { columns, address } => self.dealloc(columns, address),
            Request::Relinquish => {
                self.is_relinquished = true;
                0
            }
        }
    }

    /// The request of block `own` of a pair.
    pub fn answer_pair(&mut self, own: usize, request: Request) -> i32 {
        let [mine, others] = [self.asked[own], self.asked[1 - own]];
        if mine >= others + AHEAD {
            return NOT_YET;
        }
        let place = mine % AHEAD;
        if mine < others {
            let (expected, answer) = self.answers.0[place];
            if expected != request {
                return WRONG;
            }
            self.asked[own] += 1;
            // Only now both have said so.
            return match request {
                Request::Dealloc { columns, address } => self.dealloc(columns, address),
                _ => answer,
            };
        }
        let answer = match request {
            Request::Dealloc { .. } => 0,
            other => self.answer(other),
        };
        if answer != NOT_YET {
            self.answers.0[place] = (request, answer);
            self.asked[own] += 1;
        }
        answer
    }

    fn alloc(&mut self, columns: u32) -> i32 {
        // The manual: no allocation behind `relinquish_alloc_permit`.
        if !columns.is_power_of_two() || !(PIECE..=512).contains(&columns) || self.is_relinquished {
            return WRONG;
        }
        let pieces = columns / PIECE;
        let fits = |first: &u32| self.used & mask(*first, pieces) == 0;
        let Some(first) = (0..N_PIECES).step_by(pieces as usize).find(fits) else { return NOT_YET };
        self.used |= mask(first, pieces);
        self.sizes[first as usize] = pieces as u8;
        (first * PIECE) as i32
    }

    fn dealloc(&mut self, columns: u32, address: u32) -> i32 {
        let first = address / PIECE;
        if !address.is_multiple_of(PIECE) || first >= N_PIECES || !columns.is_multiple_of(PIECE) {
            return WRONG;
        }
        let size = &mut self.sizes[first as usize];
        if *size == 0 || u32::from(*size) != columns / PIECE {
            return WRONG;
        }
        *size = 0;
        self.used &= !mask(first, columns / PIECE);
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BACK: fn(u32, u32) -> Request = |address, columns| Request::Dealloc { columns, address };

    #[test]
    fn a_full_memory_waits_until_columns_come_back() {
        let mut columns = Columns::default();
        assert_eq!(columns.answer(Request::Alloc(256)), 0);
        assert_eq!(columns.answer(Request::Alloc(32)), 256);
        assert_eq!(columns.answer(Request::Alloc(256)), NOT_YET);
        assert_eq!(columns.answer(Request::Alloc(128)), 384);
        assert_eq!(columns.answer(BACK(0, 256)), 0);
        assert_eq!(columns.answer(Request::Alloc(256)), 0);
        for wrong in
            [Request::Alloc(16), Request::Alloc(96), Request::Alloc(1024), BACK(0, 128), BACK(288, 32)]
        {
            assert_eq!(columns.answer(wrong), WRONG, "{wrong:?}");
        }
        assert_eq!(columns.answer(Request::Relinquish), 0);
        assert_eq!(columns.answer(Request::Alloc(32)), WRONG);
    }

    #[test]
    fn a_pair_has_the_same_columns_and_frees_them_together() {
        let mut columns = Columns::default();
        assert_eq!(columns.answer_pair(1, Request::Alloc(512)), 0);
        assert_eq!(columns.answer_pair(1, BACK(0, 512)), 0);
        assert_eq!(columns.answer_pair(1, Request::Alloc(64)), NOT_YET);
        assert_eq!(columns.answer_pair(0, Request::Alloc(512)), 0);
        assert_eq!(columns.answer_pair(1, Request::Alloc(64)), NOT_YET);
        assert_eq!(columns.answer_pair(0, BACK(0, 512)), 0);
        assert_eq!(columns.answer_pair(1, Request::Alloc(64)), 0);
        assert_eq!(columns.answer_pair(0, Request::Alloc(32)), WRONG);
        assert_eq!(columns.answer_pair(0, Request::Alloc(64)), 0);
    }
}
