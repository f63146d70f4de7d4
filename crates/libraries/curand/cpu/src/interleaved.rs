//! Recurrences that lie side by side: output n comes from lane n mod K. A draw takes some words of its lane, and the
//! lane's next draw, of whatever distribution, goes on behind them.

use crate::{draw, lanes};

/// Lanes that are advanced together.
pub(crate) const WIDTH: usize = 64;

/// Draws of each lane between two visits of its state.
const TILE: usize = 16;

/// Six words of state for each of some lanes.
pub(crate) type State = [[u32; WIDTH]; 6];

/// What makes words out of states.
pub(crate) trait Recurrence: Send + Sync {
    /// The next words of every lane, and the states behind them.
    fn advance(state: &mut State, words: &mut [[u32; WIDTH]]);
}

#[derive(Clone)]
pub(crate) struct Interleaved {
    /// A column for each word of the states.
    columns: [Vec<u32>; 6],
    /// The lane that draws next.
    at: usize,
    /// Of lanes that drew a pair where one value was asked for, the other one.
    halves: Vec<Option<f32>>,
}

impl Interleaved {
    pub(crate) fn new(columns: [Vec<u32>; 6], at: usize) -> Interleaved {
        Interleaved { columns, at, halves: Vec::new() }
    }

    /// The columns, and the lane that draws next.
    pub(crate) fn parts(&self) -> (&[Vec<u32>; 6], usize) {
        (&self.columns, self.at)
    }

    /// Fills `out`, a whole number of draws: `draw` makes `OUTS` values out of `WORDS` words.
    pub(crate) fn fill<R: Recurrence, T: Send, const WORDS: usize, const OUTS: usize>(
        &mut self,
        out: &mut [T],
        draw: impl Fn([u32; WORDS]) -> [T; OUTS] + Copy + Send + Sync,
    ) {
        self.fill_then::<R, T, WORDS, OUTS>(out, draw, |_| ());
    }

    /// The same; `then` makes values of whole draws into others, some dozen at once.
    pub(crate) fn fill_then<R: Recurrence, T: Send, const WORDS: usize, const OUTS: usize>(
        &mut self,
        out: &mut [T],
        draw: impl Fn([u32; WORDS]) -> [T; OUTS] + Copy + Send + Sync,
        then: impl Fn(&mut [T]) + Copy + Send + Sync,
    ) {
        let lanes = self.columns[0].len();
        let draws = out.len() / OUTS;
        let first = if self.at == 0 { 0 } else { draws.min(lanes - self.at) };
        let (head, rest) = out.split_at_mut(first * OUTS);
        let at = self.at;
        self.rows::<R, T, WORDS, OUTS>(at..at + first, head, draw, then);
        let last = (draws - first) % lanes;
        let (rows, tail) = rest.split_at_mut(rest.len() - last * OUTS);
        self.rows::<R, T, WORDS, OUTS>(0..lanes, rows, draw, then);
        self.rows::<R, T, WORDS, OUTS>(0..last, tail, draw, then);
        self.at = (at + draws) % lanes;
    }

    /// Fills `out` with one value for each lane in its turn: pairs by Box and Muller's method, of what `draw` makes, serve a lane twice,
    /// the second time whenever it is asked again for such a value, whatever it drew meanwhile.
    pub(crate) fn fill_halves<R: Recurrence>(
        &mut self,
        mut out: &mut [u32],
        draw: impl Fn(u32, u32) -> [f32; 2] + Copy + Send + Sync,
        finish: impl Fn(f32) -> u32,
    ) {
        let lanes = self.columns[0].len();
        self.halves.resize(lanes, None);
        let mut pairs = Vec::new();
        while !out.is_empty() {
            let (at, kept) = (self.at, self.halves[self.at].is_some());
            let most = out.len().min(lanes - at);
            let here = self.halves[at..at + most].iter().take_while(|half| half.is_some() == kept).count();
            let (now, later) = out.split_at_mut(here);
            if kept {
                for (out, half) in now.iter_mut().zip(&mut self.halves[at..]) {
                    *out = finish(half.take().unwrap_or_default());
                }
            } else {
                pairs.resize(2 * here, 0.0);
                self.rows::<R, f32, 2, 2>(
                    at..at + here,
                    &mut pairs,
                    |[x, y]| draw(x, y),
                    draw::box_muller_f32,
                );
                let drawn = pairs.as_chunks::<2>().0.iter();
                for ((out, half), &[first, second]) in now.iter_mut().zip(&mut self.halves[at..]).zip(drawn) {
                    *out = finish(first);
                    *half = Some(second);
                }
            }
            self.at = (at + here) % lanes;
            out = later;
        }
    }

    /// Draws row after row of the lanes in `range`.
    fn rows<R: Recurrence, T: Send, const WORDS: usize, const OUTS: usize>(
        &mut self,
        range: std::ops::Range<usize>,
        out: &mut [T],
        draw: impl Fn([u32; WORDS]) -> [T; OUTS] + Copy + Send + Sync,
        then: impl Fn(&mut [T]) + Copy + Send + Sync,
    ) {
        if out.is_empty() {
            return;
        }
        let (n, bytes) = (range.len(), size_of_val(out));
        let group = n.div_ceil(lanes::pieces(bytes)).next_multiple_of(WIDTH);
        let mut groups: Vec<Group<'_, T>> = Vec::new();
        let mut left = self.columns.each_mut().map(|column| &mut column[range.clone()]);
        while !left[0].is_empty() {
            let here = group.min(left[0].len());
            let mut states = left.map(|column| column.split_at_mut(here));
            let taken = states.each_mut().map(|(taken, _)| std::mem::take(taken));
            left = states.map(|(_, rest)| rest);
            groups.push(Group { states: taken, rows: Vec::with_capacity(out.len() / (n * OUTS)) });
        }
        for row in out.chunks_exact_mut(n * OUTS) {
            for (part, group) in row.chunks_mut(group * OUTS).zip(&mut groups) {
                group.rows.push(part);
            }
        }
        lanes::each(groups, bytes, |group| {
            lanes::vectorized(
                #[inline(always)]
                || group.draw::<R, WORDS, OUTS>(draw, then),
            );
        });
    }
}

/// Lanes of one core's, and their part of each row.
struct Group<'a, T> {
    states: [&'a mut [u32]; 6],
    rows: Vec<&'a mut [T]>,
}

impl<T> Group<'_, T> {
    #[inline(always)]
    fn draw<R: Recurrence, const WORDS: usize, const OUTS: usize>(
        mut self,
        draw: impl Fn([u32; WORDS]) -> [T; OUTS] + Copy,
        then: impl Fn(&mut [T]),
    ) {
        let n = self.states[0].len();
        let mut words = [[[0; WIDTH]; WORDS]; TILE];
        // A tile of rows stays in the second cache while all of its lanes come by.
        for rows in self.rows.chunks_mut(TILE) {
            for start in (0..n).step_by(WIDTH) {
                let here = WIDTH.min(n - start);
                let mut state = [[0; WIDTH]; 6];
                for (to, from) in state.iter_mut().zip(&self.states) {
                    to[..here].copy_from_slice(&from[start..start + here]);
                }
                R::advance(&mut state, words[..rows.len()].as_flattened_mut());
                for (from, to) in state.iter().zip(&mut self.states) {
                    to[start..start + here].copy_from_slice(&from[..here]);
                }
                for (row, words) in rows.iter_mut().zip(&words) {
                    let values = &mut row[start * OUTS..(start + here) * OUTS];
                    let (out, _) = values.as_chunks_mut::<OUTS>();
                    if let Ok(out) = <&mut [[T; OUTS]; WIDTH]>::try_from(&mut *out) {
                        for (lane, out) in out.iter_mut().enumerate() {
                            *out = draw(lanes::nth(words, lane));
                        }
                    } else {
                        for (lane, out) in out.iter_mut().enumerate() {
                            *out = draw(lanes::nth(words, lane));
                        }
                    }
                    then(values);
                }
            }
        }
    }
}
