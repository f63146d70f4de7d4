//! MT19937: Matsumoto and Nishimura, "Mersenne Twister" (1998), with the initialisation of 2002.

use crate::lanes;

const STATE: usize = 624;
const MIDDLE: usize = 397;

#[derive(Clone)]
pub(crate) struct Mt19937 {
    state: [u32; STATE],
    words: [u32; STATE],
    /// How many of the words are given away.
    given: usize,
}

impl Mt19937 {
    /// Only the lower half of a seed counts.
    pub(crate) fn new(seed: u64) -> Mt19937 {
        let mut state = [seed as u32; STATE];
        for i in 1..STATE {
            let last = state[i - 1];
            state[i] = 1_812_433_253u32.wrapping_mul(last ^ (last >> 30)).wrapping_add(i as u32);
        }
        Mt19937 { state, words: [0; STATE], given: STATE }
    }

    /// Fills `out` with what `draw` makes of a word each.
    pub(crate) fn fill<T>(&mut self, out: &mut [T], draw: impl Fn(u32) -> T + Copy) {
        let mut out = out;
        lanes::vectorized(|| {
            while !out.is_empty() {
                if self.given == STATE {
                    self.twist();
                    self.given = 0;
                }
                let here = out.len().min(STATE - self.given);
                let (now, later) = std::mem::take(&mut out).split_at_mut(here);
                for (out, &word) in now.iter_mut().zip(&self.words[self.given..]) {
                    *out = draw(word);
                }
                self.given += here;
                out = later;
            }
        });
    }

    #[inline(always)]
    fn twist(&mut self) {
        let s = &mut self.state;
        // In three parts, in each of which no word depends on another of it.
        let (front, back) = s.split_at_mut(STATE - MIDDLE);
        for i in 0..STATE - MIDDLE - 1 {
            front[i] = mixed(front[i], front[i + 1], back[i + 2 * MIDDLE - STATE]);
        }
        let last = STATE - MIDDLE - 1;
        front[last] = mixed(front[last], back[0], back[MIDDLE - 1]);
        // Here the middle word is one that was just made, 227 words back.
        let (near, far) = s.split_at_mut(2 * (STATE - MIDDLE));
        let (made, near) = near.split_at_mut(STATE - MIDDLE);
        for i in 0..STATE - MIDDLE - 1 {
            near[i] = mixed(near[i], near[i + 1], made[i]);
        }
        near[last] = mixed(near[last], far[0], made[last]);
        for i in 0..far.len() - 1 {
            far[i] = mixed(far[i], far[i + 1], near[i]);
        }
        s[STATE - 1] = mixed(s[STATE - 1], s[0], s[MIDDLE - 1]);
        for i in 0..STATE {
            let mut y = self.state[i];
            y ^= y >> 11;
            y ^= (y << 7) & 0x9d2c_5680;
            y ^= (y << 15) & 0xefc6_0000;
            self.words[i] = y ^ (y >> 18);
        }
    }
}

#[inline(always)]
fn mixed(this: u32, next: u32, middle: u32) -> u32 {
    let y = (this & 0x8000_0000) | (next & 0x7fff_ffff);
    middle ^ (y >> 1) ^ (0x9908_b0df & (y & 1).wrapping_neg())
}
