//! The loops over memory, generic over vectors; `crate::isa` compiles them for each kind.
//!
//! A tile has a transform in each of its columns: row `j` holds element `j` of all of them, and rows are as far apart
//! as the caller says. Passes follow Stockham: what is read in order is written in order, into other memory.
#![expect(clippy::needless_range_loop, reason = "by index LLVM keeps the arrays in registers")]

use num_complex::Complex;

use crate::Real;
use crate::butterfly::{Roots, dft};
use crate::simd::Vector;

/// One pass of one radix over a tile.
pub(crate) struct Pass<T> {
    pub(crate) from: *const Complex<T>,
    /// Numbers from row to row.
    pub(crate) from_row: usize,
    pub(crate) to: *mut Complex<T>,
    pub(crate) to_row: usize,
    /// Vectors in a row that are worked on.
    pub(crate) vectors: usize,
    /// What is left of the length after this radix.
    pub(crate) rest: usize,
    /// The product of the radices before.
    pub(crate) done: usize,
    /// For each number below `rest`, radix - 1 factors.
    pub(crate) factors: *const Complex<T>,
    pub(crate) roots: *const Complex<T>,
    pub(crate) inverse: bool,
}

/// # Safety
/// The tiles have `R * rest * done` rows, the tables what their fields say. `from` and `to` are the same or apart; they
/// may be the same with one radix only, and rows then lie alike.
#[inline(always)]
pub(crate) unsafe fn pass<T: Real, V: Vector<T>, const R: usize>(a: &Pass<T>) {
    let roots = Roots::<V, T>::new(a.roots, a.inverse);
    // Rows that follow each other without a gap are one long row.
    let dense = a.from_row == a.to_row && a.from_row == a.vectors * V::LANES;
    let (rows, vectors) = if dense { (1, a.done * a.vectors) } else { (a.done, a.vectors) };
    let (from_step, to_step) = (a.rest * a.done * a.from_row, a.done * a.to_row);
    // SAFETY: rows below R * rest * done of both tiles, and factors below (R - 1) * rest.
    unsafe {
        run::<T, V, R, false>(
            a.from, a.from_row, from_step, a.to, a.to_row, to_step, rows, vectors, a.factors, &roots,
        );
        for p in 1..a.rest {
            let from = a.from.add(p * a.done * a.from_row);
            let to = a.to.add(p * R * a.done * a.to_row);
            let factors = a.factors.add(p * (R - 1));
            run::<T, V, R, true>(
                from, a.from_row, from_step, to, a.to_row, to_step, rows, vectors, factors, &roots,
            );
        }
    }
}

/// The butterflies that have the same factors.
///
/// # Safety
/// As `pass`.
#[inline(always)]
#[expect(clippy::too_many_arguments, reason = "the loop of `pass`, taken out to have it twice")]
unsafe fn run<T: Real, V: Vector<T>, const R: usize, const FACTORS: bool>(
    from: *const Complex<T>,
    from_row: usize,
    from_step: usize,
    to: *mut Complex<T>,
    to_row: usize,
    to_step: usize,
    rows: usize,
    vectors: usize,
    factors: *const Complex<T>,
    roots: &Roots<V, T>,
) {
    for row in 0..rows {
        for vector in 0..vectors {
            // SAFETY: the caller's promise.
            unsafe {
                let from = from.add(row * from_row + vector * V::LANES);
                let to = to.add(row * to_row + vector * V::LANES);
                let mut x = [roots.turn; R];
                for j in 0..R {
                    x[j] = V::load(from.add(j * from_step));
                }
                dft::<T, V, R>(&mut x, roots);
                x[0].store(to);
                for k in 1..R {
                    let mut y = x[k];
                    if FACTORS {
                        let factor = factors.add(k - 1);
                        y = y.times_parts(V::splat((*factor).re), V::splat((*factor).im));
                    }
                    y.store(to.add(k * to_step));
                }
            }
        }
    }
}

/// The end of one contiguous transform whose tile has `LANES` columns: factors, then the columns' transform, and the
/// result in order.
pub(crate) struct Last<T> {
    pub(crate) from: *const Complex<T>,
    pub(crate) to: *mut Complex<T>,
    /// Rows, at least as many as lanes.
    pub(crate) rows: usize,
    /// A factor for each number of the tile.
    pub(crate) factors: *const Complex<T>,
    pub(crate) roots: *const Complex<T>,
    pub(crate) inverse: bool,
}

/// # Safety
/// `from`, `to` and `factors` have `rows * L` numbers; `to` is apart from the others. `L` is `V::LANES`.
#[inline(always)]
pub(crate) unsafe fn last<T: Real, V: Vector<T>, const L: usize>(a: &Last<T>) {
    let roots = Roots::<V, T>::new(a.roots, a.inverse);
    let mut row = 0;
    while row < a.rows {
        // The last block may do rows again.
        let first = row.min(a.rows - L);
        // SAFETY: `first + L` is at most `rows`.
        unsafe {
            let mut x = [roots.turn; L];
            for i in 0..L {
                let at = (first + i) * L;
                x[i] = V::load(a.from.add(at)).times(V::load(a.factors.add(at)));
            }
            V::transpose(&mut x);
            dft::<T, V, L>(&mut x, &roots);
            for i in 0..L {
                x[i].store(a.to.add(i * a.rows + first));
            }
        }
        row += L;
    }
}

/// Contiguous lines beside the columns of a tile.
pub(crate) struct Tile<T> {
    /// `LANES` lines.
    pub(crate) lines: *const *mut Complex<T>,
    pub(crate) n: usize,
    pub(crate) tile: *mut Complex<T>,
    /// Numbers from row to row of the tile.
    pub(crate) row: usize,
}

/// Lines become columns.
///
/// # Safety
/// There are `L` lines of `n` numbers, and a tile of `n` rows with `L` numbers each, apart from them.
#[inline(always)]
pub(crate) unsafe fn gather<T: Real, V: Vector<T>, const L: usize>(a: &Tile<T>) {
    let whole = a.n - a.n % L;
    // SAFETY: the caller's promise.
    unsafe {
        let lines: [*mut Complex<T>; L] = *a.lines.cast();
        let mut j = 0;
        while j < whole {
            let mut x = [V::splat(T::zero()); L];
            for i in 0..L {
                x[i] = V::load(lines[i].add(j));
            }
            V::transpose(&mut x);
            for i in 0..L {
                x[i].store(a.tile.add((j + i) * a.row));
            }
            j += L;
        }
        for j in whole..a.n {
            for i in 0..L {
                *a.tile.add(j * a.row + i) = *lines[i].add(j);
            }
        }
    }
}

/// Columns become lines.
///
/// # Safety
/// As `gather`.
#[inline(always)]
pub(crate) unsafe fn scatter<T: Real, V: Vector<T>, const L: usize>(a: &Tile<T>) {
    let whole = a.n - a.n % L;
    // SAFETY: the caller's promise.
    unsafe {
        let lines: [*mut Complex<T>; L] = *a.lines.cast();
        let mut j = 0;
        while j < whole {
            let mut x = [V::splat(T::zero()); L];
            for i in 0..L {
                x[i] = V::load(a.tile.add((j + i) * a.row));
            }
            V::transpose(&mut x);
            for i in 0..L {
                x[i].store(lines[i].add(j));
            }
            j += L;
        }
        for j in whole..a.n {
            for i in 0..L {
                *lines[i].add(j) = *a.tile.add(j * a.row + i);
            }
        }
    }
}

/// Contiguous lines of one radix that registers hold as many of as a vector has lanes.
pub(crate) struct Small<T> {
    pub(crate) from: *const Complex<T>,
    /// Numbers from line to line.
    pub(crate) from_line: usize,
    pub(crate) to: *mut Complex<T>,
    pub(crate) to_line: usize,
    /// The lines that are done, `LANES` at a time, and how many there are in all.
    pub(crate) first: usize,
    pub(crate) end: usize,
    pub(crate) lines: usize,
    pub(crate) roots: *const Complex<T>,
    pub(crate) inverse: bool,
}

/// # Safety
/// There are as many lines as said, on both sides, of `R` numbers; they are the same, or apart. `L` is `V::LANES` and
/// divides `R`.
#[inline(always)]
pub(crate) unsafe fn small<T: Real, V: Vector<T>, const L: usize, const R: usize>(a: &Small<T>) {
    let roots = Roots::<V, T>::new(a.roots, a.inverse);
    let mut first = a.first;
    while first < a.end {
        // Where there are fewer lines than lanes, the last one is there several times.
        let line = |i: usize| (first + i).min(a.lines - 1);
        let mut x = [roots.turn; R];
        // SAFETY: the caller's promise; all is loaded before anything is stored.
        unsafe {
            for i in 0..L {
                let from = a.from.add(line(i) * a.from_line);
                for block in 0..R / L {
                    x[block * L + i] = V::load(from.add(block * L));
                }
            }
            for block in 0..R / L {
                V::transpose(&mut x[block * L..(block + 1) * L]);
            }
            dft::<T, V, R>(&mut x, &roots);
            for block in 0..R / L {
                V::transpose(&mut x[block * L..(block + 1) * L]);
            }
            for i in 0..L {
                let to = a.to.add(line(i) * a.to_line);
                for block in 0..R / L {
                    x[block * L + i].store(to.add(block * L));
                }
            }
        }
        first += L;
    }
}

/// Between a real transform of `2 * half` numbers and a complex one of `half`.
pub(crate) struct Fold<T> {
    pub(crate) from: *const Complex<T>,
    pub(crate) to: *mut Complex<T>,
    pub(crate) half: usize,
    /// For `k` up to `half / 2`.
    pub(crate) factors: *const Complex<T>,
    /// 1/2 after the forward transform, 1 before the inverse one.
    pub(crate) weight: T,
}

/// `to[k]` = `weight (x[k] + conj x[half - k]) + factors[k] (x[k] - conj x[half - k])` for all `k` from 1 to `half - 1`;
/// the ends are the caller's.
///
/// # Safety
/// `from` and `to` have `half` numbers after the first one's place, and are the same or apart.
#[inline(always)]
pub(crate) unsafe fn fold<T: Real, V: Vector<T>>(a: &Fold<T>) {
    let weight = V::splat(a.weight);
    let mut k = 1;
    // SAFETY: `k` and `half - k` lie between 1 and `half - 1`.
    unsafe {
        while 2 * k + 2 * V::LANES <= a.half + 1 {
            let mirrored = a.half + 1 - k - V::LANES;
            let x = V::load(a.from.add(k));
            let y = V::load(a.from.add(mirrored)).reverse().conjugate();
            let even = x.add(y).scale(weight);
            let odd = x.sub(y).times(V::load(a.factors.add(k)));
            even.add(odd).store(a.to.add(k));
            even.sub(odd).conjugate().reverse().store(a.to.add(mirrored));
            k += V::LANES;
        }
        while 2 * k <= a.half {
            let (x, y) = (*a.from.add(k), (*a.from.add(a.half - k)).conj());
            let even = (x + y) * a.weight;
            let odd = (x - y) * *a.factors.add(k);
            *a.to.add(k) = even + odd;
            *a.to.add(a.half - k) = (even - odd).conj();
            k += 1;
        }
    }
}

/// The spectra of two real transforms in that of one complex one.
pub(crate) struct Join<T> {
    pub(crate) first: *mut Complex<T>,
    pub(crate) second: *mut Complex<T>,
    pub(crate) both: *mut Complex<T>,
    pub(crate) n: usize,
    /// From `first` and `second` into `both`, instead of out of it.
    pub(crate) inverse: bool,
}

/// `both` is the transform of `x + i y`, `first` and `second` those of `x` and `y`, for `k` from 1 to `n / 2`; the first
/// number is the caller's, and so is the middle one of an even `n`.
///
/// # Safety
/// `both` has `n` numbers, the others `n / 2 + 1`; they are apart.
#[inline(always)]
pub(crate) unsafe fn join<T: Real, V: Vector<T>>(a: &Join<T>) {
    let half = T::of(0.5);
    for k in 1..a.n.div_ceil(2) {
        // SAFETY: the caller's promise.
        unsafe {
            if a.inverse {
                let (x, y) = (*a.first.add(k), *a.second.add(k));
                *a.both.add(k) = Complex::new(x.re - y.im, x.im + y.re);
                *a.both.add(a.n - k) = Complex::new(x.re + y.im, y.re - x.im);
            } else {
                let (x, y) = (*a.both.add(k), *a.both.add(a.n - k));
                *a.first.add(k) = Complex::new((x.re + y.re) * half, (x.im - y.im) * half);
                *a.second.add(k) = Complex::new((x.im + y.im) * half, (y.re - x.re) * half);
            }
        }
    }
}

/// The factors between the two halves of a large transform: row `k` of a tile whose first column is the array's
/// column `column`, times `w^(k * column)` for that column and its neighbours.
pub(crate) struct Shear<T> {
    pub(crate) from: *const Complex<T>,
    pub(crate) from_row: usize,
    pub(crate) to: *mut Complex<T>,
    pub(crate) to_row: usize,
    pub(crate) rows: usize,
    pub(crate) vectors: usize,
    pub(crate) column: usize,
    /// `w^(k * lane)` for each row, `LANES` in a row.
    pub(crate) lanes: *const Complex<T>,
    /// `w^(low)` for `low` below `2^bits`, and `w^(high << bits)`.
    pub(crate) low: *const Complex<T>,
    pub(crate) high: *const Complex<T>,
    pub(crate) bits: u32,
}

/// # Safety
/// The tiles and the tables are as said, and `to` is apart; `(rows - 1) * (column + vectors * LANES)` is below the length.
#[inline(always)]
pub(crate) unsafe fn shear<T: Real, V: Vector<T>>(a: &Shear<T>) {
    let mask = (1usize << a.bits) - 1;
    for row in 0..a.rows {
        for vector in 0..a.vectors {
            let turns = row * (a.column + vector * V::LANES);
            // SAFETY: the caller's promise.
            unsafe {
                let factor = *a.low.add(turns & mask) * *a.high.add(turns >> a.bits);
                let factors = V::load(a.lanes.add(row * V::LANES));
                let factors = factors.times_parts(V::splat(factor.re), V::splat(factor.im));
                let x = V::load(a.from.add(row * a.from_row + vector * V::LANES));
                x.times(factors).store(a.to.add(row * a.to_row + vector * V::LANES));
            }
        }
    }
}
