//! Lines and vectors of 16 lanes, compiled for the vectors that the processor has.

#[cfg(target_arch = "x86_64")]
use cublas_cpu::isa::{Isa, best};

use crate::value::{Kind, Value};

/// Every second element from the first on, as many as `to` has.
#[inline(always)]
pub(crate) fn evens<V: Value>(to: &mut [V], from: &[V]) {
    assert!(to.is_empty() || from.len() > 2 * (to.len() - 1));
    #[cfg(target_arch = "x86_64")]
    if V::KIND == Kind::F32 && best() == Isa::Avx512 {
        let (to_at, from_at) = (to.as_mut_ptr().cast::<f32>(), from.as_ptr().cast::<f32>());
        // SAFETY: the type is `f32`, and the lengths were looked at.
        return unsafe { x86::evens(to_at, from_at, to.len(), from.len()) };
    }
    for (at, to) in to.iter_mut().enumerate() {
        *to = from[2 * at];
    }
}

/// Lines of so many elements, one each `pitch`, of which there are up to 16, become vectors: `to` has for each place of a line the elements of
/// all lines, and what it has of lines that are not there means nothing.
#[inline(always)]
pub(crate) fn gather<V: Value>(from: &[V], pitch: usize, lines: usize, to: &mut [V]) {
    let (to, rest) = to.as_chunks_mut::<16>();
    let count = to.len();
    assert!(rest.is_empty() && (1..=16).contains(&lines));
    assert!(count == 0 || from.len() >= (lines - 1) * pitch + count);
    #[cfg(target_arch = "x86_64")]
    if V::KIND == Kind::F32 && best() == Isa::Avx512 {
        let (to, from) = (to.as_mut_ptr().cast::<f32>(), from.as_ptr().cast::<f32>());
        // SAFETY: the type is `f32`, and the lengths were looked at.
        return unsafe { x86::gather(from, pitch, lines, to, count) };
    }
    for first in (0..count).step_by(16) {
        for line in 0..lines {
            for place in first..count.min(first + 16) {
                to[place][line] = from[line * pitch + place];
            }
        }
    }
}

/// The way back from [`gather`]: lines are written, or added to.
#[inline(always)]
pub(crate) fn scatter<V: Value>(from: &[V], to: &mut [V], pitch: usize, lines: usize, adds: bool) {
    let (from, rest) = from.as_chunks::<16>();
    let count = from.len();
    assert!(rest.is_empty() && (1..=16).contains(&lines));
    assert!(count == 0 || to.len() >= (lines - 1) * pitch + count);
    #[cfg(target_arch = "x86_64")]
    if V::KIND == Kind::F32 && best() == Isa::Avx512 {
        let (to, from) = (to.as_mut_ptr().cast::<f32>(), from.as_ptr().cast::<f32>());
        // SAFETY: the type is `f32`, and the lengths were looked at.
        return unsafe { x86::scatter(from, to, pitch, lines, count, adds) };
    }
    for first in (0..count).step_by(16) {
        for line in 0..lines {
            for place in first..count.min(first + 16) {
                let to = &mut to[line * pitch + place];
                *to = if adds { *to + from[place][line] } else { from[place][line] };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use core::arch::x86_64::*;

    /// What is made of each number from 0 to 15: a loop would keep the array in memory.
    macro_rules! sixteen {
        ($i:ident => $made:expr) => {
            sixteen!($i => $made, 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15)
        };
        ($i:ident => $made:expr, $($number:literal)*) => {
            [$({
                const $i: usize = $number;
                $made
            }),*]
        };
    }

    /// Rows become columns.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn turned(rows: [__m512; 16]) -> [__m512; 16] {
        let pairs = sixteen!(I => {
            let (a, b) = (rows[I & !1], rows[I | 1]);
            if I & 1 == 0 { _mm512_unpacklo_ps(a, b) } else { _mm512_unpackhi_ps(a, b) }
        });
        // Of four rows: in each quarter of 128 bits one column of the four that are there.
        let fours = sixteen!(I => {
            let first = (I & !3) + (I >> 1 & 1);
            let (a, b) = (_mm512_castps_pd(pairs[first]), _mm512_castps_pd(pairs[first + 2]));
            let both = if I & 1 == 0 { _mm512_unpacklo_pd(a, b) } else { _mm512_unpackhi_pd(a, b) };
            _mm512_castpd_ps(both)
        });
        let eights = sixteen!(I => {
            let (a, b) = (fours[(I & 8) + (I & 3)], fours[(I & 8) + 4 + (I & 3)]);
            if I & 4 == 0 { _mm512_shuffle_f32x4::<0x88>(a, b) } else { _mm512_shuffle_f32x4::<0xdd>(a, b) }
        });
        sixteen!(I => {
            let (a, b) = (eights[I & 7], eights[8 + (I & 7)]);
            if I & 8 == 0 { _mm512_shuffle_f32x4::<0x88>(a, b) } else { _mm512_shuffle_f32x4::<0xdd>(a, b) }
        })
    }

    /// # Safety
    /// As many elements, each so far from the one before in lines of `from`, and 16 times as many in `to`; up to 16 lines.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn gather(from: *const f32, pitch: usize, lines: usize, to: *mut f32, count: usize) {
        for first in (0..count).step_by(16) {
            let n = (count - first).min(16);
            // What is not there is not read.
            let mask = |line: usize| if line < lines { (u32::MAX >> (32 - n)) as __mmask16 } else { 0 };
            // SAFETY: the caller's word.
            let rows = sixteen!(I => unsafe {
                _mm512_maskz_loadu_ps(mask(I), from.wrapping_add(I * pitch + first))
            });
            let columns = turned(rows);
            let to = to.wrapping_add(first * 16);
            sixteen!(I => if I < n {
                // SAFETY: as above.
                unsafe { _mm512_storeu_ps(to.wrapping_add(I * 16), columns[I]) };
            });
        }
    }

    /// # Safety
    /// As of [`gather`], the sides exchanged.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn scatter(
        from: *const f32,
        to: *mut f32,
        pitch: usize,
        lines: usize,
        count: usize,
        adds: bool,
    ) {
        for first in (0..count).step_by(16) {
            let n = (count - first).min(16);
            let from = from.wrapping_add(first * 16);
            // SAFETY: the caller's word.
            let rows = sixteen!(I => unsafe {
                _mm512_maskz_loadu_ps(if I < n { !0 } else { 0 }, from.wrapping_add(I * 16))
            });
            let columns = turned(rows);
            let mask = (u32::MAX >> (32 - n)) as __mmask16;
            sixteen!(I => if I < lines {
                let to = to.wrapping_add(I * pitch + first);
                // SAFETY: the masks leave out what lies behind the line.
                unsafe {
                    let column =
                        if adds { _mm512_add_ps(_mm512_maskz_loadu_ps(mask, to), columns[I]) } else { columns[I] };
                    _mm512_mask_storeu_ps(to, mask, column);
                }
            });
        }
    }

    /// # Safety
    /// `to` has `count` elements, and `from` as many as it is said to have, twice as many but one at least.
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn evens(to: *mut f32, from: *const f32, count: usize, have: usize) {
        let places = _mm512_set_epi32(30, 28, 26, 24, 22, 20, 18, 16, 14, 12, 10, 8, 6, 4, 2, 0);
        for at in (0..count).step_by(16) {
            let n = (count - at).min(16) as u32;
            // What is not there is not read.
            let left = (have - 2 * at).min(32) as u32;
            let low = (u32::MAX >> (32 - left.min(16))) as __mmask16;
            let high = if left > 16 { (u32::MAX >> (48 - left)) as __mmask16 } else { 0 };
            // SAFETY: the masks leave out what lies behind.
            unsafe {
                let first = _mm512_maskz_loadu_ps(low, from.add(2 * at));
                let second = _mm512_maskz_loadu_ps(high, from.wrapping_add(2 * at + 16));
                let both = _mm512_permutex2var_ps(first, places, second);
                _mm512_mask_storeu_ps(to.add(at), (u32::MAX >> (32 - n)) as __mmask16, both);
            }
        }
    }
}

/// Each of `to` becomes what `f` makes of it and of the other one, in vectors of 16, 8 and 4: lines are often no longer than that.
#[inline(always)]
pub(crate) fn by_lanes<V: Value>(to: &mut [V], from: &[V], f: impl Fn(V, V) -> V) {
    let from = &from[..to.len()];
    let (first, second) = (to.len() / 16 * 16, to.len() / 8 * 8);
    let third = to.len() / 4 * 4;
    some_lanes::<V, 16>(&mut to[..first], &from[..first], &f);
    some_lanes::<V, 8>(&mut to[first..second], &from[first..second], &f);
    some_lanes::<V, 4>(&mut to[second..third], &from[second..third], &f);
    some_lanes::<V, 1>(&mut to[third..], &from[third..], &f);
}

#[inline(always)]
fn some_lanes<V: Value, const N: usize>(to: &mut [V], from: &[V], f: &impl Fn(V, V) -> V) {
    for (to, from) in to.as_chunks_mut::<N>().0.iter_mut().zip(from.as_chunks::<N>().0) {
        let (old, new) = (*to, *from);
        for ((to, old), new) in to.iter_mut().zip(old).zip(new) {
            *to = f(old, new);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_second_element_is_taken_and_none_behind() {
        for count in 0..70_usize {
            for more in 0..2 {
                let from: Vec<f32> = (0..(2 * count + more).saturating_sub(1)).map(|at| at as f32).collect();
                let mut to = vec![-1.0; count];
                evens(&mut to, &from);
                assert!(to.iter().enumerate().all(|(at, to)| *to == 2.0 * at as f32), "{count}");
            }
        }
    }

    fn turns<V: Value>() {
        for (count, lines, pitch) in [(1, 1, 1), (16, 16, 16), (37, 16, 40), (50, 5, 50), (15, 9, 31)] {
            let from: Vec<V> = (0..(lines - 1) * pitch + count).map(|at| V::of(at as f64)).collect();
            let mut vectors = vec![V::of(-1.0); 16 * count];
            gather(&from, pitch, lines, &mut vectors);
            for line in 0..lines {
                assert!(
                    (0..count).all(|at| vectors[16 * at + line] == from[line * pitch + at]),
                    "{count} {lines}"
                );
            }
            for adds in [false, true] {
                let mut back = vec![V::one(); from.len()];
                scatter(&vectors, &mut back, pitch, lines, adds);
                for (at, back) in back.iter().enumerate() {
                    let more = if at % pitch >= count { 1.0 - at as f64 } else { f64::from(u8::from(adds)) };
                    assert_eq!(back.get(), at as f64 + more, "{count} {lines} {adds}");
                }
            }
        }
    }

    #[test]
    fn lines_become_vectors_and_lines_again() {
        turns::<f32>();
        turns::<f64>();
    }
}
