//! What the lanes of one warp ask of each other, in setting `lane`: shuffles, votes, matches, reductions, elections, exchanges of
//! registers, and who is active.
//!
//! A collective is complete when every live lane of its member mask asks for the same thing with the same mask.

use super::{Block, State, WARP, bits, request};
use crate::jit::exchanges;

impl Block<'_> {
    /// Completes what can be in one warp; true when a lane was released.
    pub(super) fn complete_collectives(&mut self, warp: usize) -> bool {
        if self.per_warp {
            // They are in the code.
            return self.lanes.states[warp] == State::Ready;
        }
        let first = warp * WARP;
        let alive = self.present(warp) & !self.lanes.ended[warp];
        let mut waiting = self.lanes_in(warp, State::AtCollective);
        let mut released = false;
        while waiting != 0 {
            let leader = waiting.trailing_zeros() as usize;
            let key = self.key(first + leader);
            let (mut group, mut brought) = (0u32, [0u64; WARP]);
            for l in bits(waiting) {
                if self.key(first + l) == key {
                    group |= 1 << l;
                    brought[l] = self.thread(first + l).args[0];
                }
            }
            waiting &= !group;
            // Ended lanes count as arrived.
            if key.2 & alive & !group == 0 {
                self.complete(first, group, key.2, &brought);
                released = true;
            }
        }
        if released {
            return true;
        }
        let asking = self.lanes_in(warp, State::AtActiveMask);
        if asking == 0 || self.lanes_in(warp, State::Ready) != 0 {
            return false;
        }
        // Every other live lane waits or spins: who is at the same instruction is active together.
        for l in bits(asking) {
            let site = self.thread(first + l).site;
            let mask =
                bits(asking).filter(|&o| self.thread(first + o).site == site).fold(0u32, |m, o| m | 1 << o);
            self.thread(first + l).results[0] = u64::from(mask);
        }
        self.release(first, asking);
        true
    }

    fn release(&mut self, first: usize, group: u32) {
        for l in bits(group) {
            self.lanes.states[first + l] = State::Ready;
        }
    }

    /// What lanes must agree on to meet: kind, flags, member mask, function.
    fn key(&mut self, t: usize) -> (u32, u32, u32, u64) {
        let thread = self.thread(t);
        let mask = match thread.kind {
            request::SHFL => 3,
            request::ELECT | request::WARP_SYNC => 0,
            request::EXCHANGE => return (thread.kind, thread.flags, u32::MAX, thread.args[0]),
            _ => 1,
        };
        (thread.kind, thread.flags, thread.args[mask] as u32, 0)
    }

    /// `a`: what each lane of the group brings.
    fn complete(&mut self, first: usize, group: u32, mask: u32, a: &[u64; WARP]) {
        let lead = self.thread(first + group.trailing_zeros() as usize);
        let (kind, flags) = (lead.kind, lead.flags);
        // A lane outside its own mask is undefined in PTX; here it takes part without being counted.
        let members = if group & mask == 0 { group } else { group & mask };
        match kind {
            request::SHFL => {
                for l in bits(group) {
                    let thread = self.thread(first + l);
                    let (from, in_range) =
                        shfl_source(flags, l as u32, thread.args[1] as u32, thread.args[2] as u32);
                    // PTX: the value of a lane that takes no part is undefined; here it is the own value.
                    let from = if members & (1 << from) != 0 { from as usize } else { l };
                    thread.results = [a[from] & 0xffff_ffff, u64::from(in_range)];
                }
            }
            request::VOTE => {
                let votes = bits(members).filter(|&l| a[l] & 1 != 0).fold(0u32, |mask, l| mask | 1 << l);
                let result = match flags {
                    0 => u64::from(votes == members),
                    1 => u64::from(votes != 0),
                    2 => u64::from(votes == 0 || votes == members),
                    _ => u64::from(votes),
                };
                self.answer(first, group, |_| [result, 0]);
            }
            request::MATCH if flags == 0 => {
                self.answer(first, group, |l| {
                    [bits(members).filter(|&o| a[o] == a[l]).fold(0u64, |mask, o| mask | 1 << o), 0]
                });
            }
            request::MATCH => {
                let value = a[members.trailing_zeros() as usize];
                let all = bits(members).all(|l| a[l] == value);
                self.answer(first, group, |_| if all { [u64::from(members), 1] } else { [0, 0] });
            }
            request::REDUX => {
                let values = bits(members).map(|l| a[l] as u32);
                let signed = |values: &mut dyn Iterator<Item = u32>, max: bool| {
                    let values = values.map(u32::cast_signed);
                    if max { values.max() } else { values.min() }.map(i32::cast_unsigned)
                };
                let mut values = values;
                let result = match flags {
                    0 | 8 => Some(values.fold(0, u32::wrapping_add)),
                    1 => values.min(),
                    2 => values.max(),
                    9 => signed(&mut values, false),
                    10 => signed(&mut values, true),
                    3 | 11 => values.reduce(|x, y| x & y),
                    4 | 12 => values.reduce(|x, y| x | y),
                    _ => values.reduce(|x, y| x ^ y),
                };
                self.answer(first, group, |_| [u64::from(result.unwrap_or(0)), 0]);
            }
            request::ELECT => {
                let leader = members.trailing_zeros() as usize;
                self.answer(first, group, |l| [leader as u64, u64::from(l == leader)]);
            }
            request::EXCHANGE => self.exchange(first, group, flags),
            _ => {}
        }
        self.release(first, group);
    }

    /// Brings the lanes' registers together, so many bytes each as the flags' lowest byte says, lets the kernel's function work on them, and hands each
    /// lane its results. Lanes that take no part bring zeros. Where in its record a lane has each, a table of its instruction says.
    fn exchange(&mut self, first: usize, group: u32, flags: u32) {
        let (bytes, is_shared) = ((flags & 0xff) as usize, flags & IS_SHARED != 0);
        let lead = self.thread(first + group.trailing_zeros() as usize).args;
        let [slot, _, n_in, n_out] = lead;
        let (n_in, n_out) = (n_in as usize, n_out as usize);
        let mut buffers =
            [vec![0u64; (n_in * WARP * bytes).div_ceil(8)], vec![0; (n_out * WARP * bytes).div_ceil(8)]];
        let [all_in, all_out] = buffers.each_mut().map(|buffer| buffer.as_mut_ptr().cast::<u8>());
        for l in bits(group) {
            let (record, table) = self.registers(first + l);
            for n in 0..n_in {
                // SAFETY: the table has an offset for each of the registers, in the record; the buffer has 32 for each.
                unsafe {
                    let offset = *table.add(n);
                    if offset != ZERO {
                        let from = record.add(offset as usize);
                        all_in.add((n * WARP + l) * bytes).copy_from_nonoverlapping(from, bytes);
                    }
                }
            }
        }
        // SAFETY: the emitter's function, which reads and writes these buffers, and of the shared window what the registers say.
        unsafe { exchanges::call(slot as usize, is_shared, [all_in, all_out, self.shared]) };
        for l in bits(group) {
            let (record, table) = self.registers(first + l);
            for n in 0..n_out {
                // SAFETY: as above, for the results, whose offsets follow.
                unsafe {
                    let to = record.add(*table.add(n_in + n) as usize);
                    to.copy_from_nonoverlapping(all_out.add((n * WARP + l) * bytes), bytes);
                }
            }
        }
    }

    /// A thread's record, and the table that says where it has the registers it exchanges.
    fn registers(&mut self, t: usize) -> (*mut u8, *const u32) {
        let table = self.thread(t).args[1] as *const u32;
        (self.records.wrapping_add(t * self.stride), table)
    }

    fn answer(&mut self, first: usize, group: u32, result: impl Fn(usize) -> [u64; 2]) {
        for l in bits(group) {
            self.thread(first + l).results = result(l);
        }
    }
}

/// A flag of exchanges: the function is the process's, not the kernel's.
const IS_SHARED: u32 = 1 << 8;

/// In the place of an offset: the register is zero.
const ZERO: u32 = u32::MAX;

/// `shfl.sync`: source lane and whether it lies in range, as PTX writes it (b: lane or delta; c: clamp and segment mask).
fn shfl_source(mode: u32, lane: u32, b: u32, c: u32) -> (u32, bool) {
    let (b, clamp, segment) = (b & 31, c & 31, c >> 8 & 31);
    let max_lane = (lane & segment) | (clamp & !segment);
    let min_lane = lane & segment;
    let (source, in_range) = match mode {
        0 => {
            let source = lane.cast_signed() - b.cast_signed();
            (source, source >= max_lane.cast_signed())
        }
        1 => ((lane + b).cast_signed(), lane + b <= max_lane),
        2 => ((lane ^ b).cast_signed(), lane ^ b <= max_lane),
        _ => {
            let source = min_lane | (b & !segment);
            (source.cast_signed(), source <= max_lane)
        }
    };
    if in_range { (source.cast_unsigned() & 31, true) } else { (lane, false) }
}

#[cfg(test)]
mod tests {
    use super::shfl_source;

    #[test]
    fn shfl_follows_ptx_inside_segments() {
        // Width 8: c = (32 - 8) << 8 | clamp.
        let down = 0x181f;
        assert_eq!(shfl_source(1, 6, 1, down), (7, true));
        assert_eq!(shfl_source(1, 7, 1, down), (7, false));
        let up = 0x1800;
        assert_eq!(shfl_source(0, 8, 1, up), (8, false));
        assert_eq!(shfl_source(0, 9, 1, up), (8, true));
        assert_eq!(shfl_source(3, 17, 9, down), (17, true));
        assert_eq!(shfl_source(2, 5, 16, 0x1f), (21, true));
        assert_eq!(shfl_source(0, 0, 1, 0), (0, false));
    }
}
