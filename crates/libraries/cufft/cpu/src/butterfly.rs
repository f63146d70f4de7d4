//! Transforms of a few numbers at once, each a vector of numbers of as many transforms.
#![expect(clippy::needless_range_loop, reason = "by index LLVM keeps the arrays in registers")]

use num_complex::Complex;

use crate::Real;
use crate::simd::Vector;

/// What the butterflies of one direction need.
pub(crate) struct Roots<V, T> {
    /// `exp(-+ 2 pi i k / R)` for `k` below the radix.
    pub(crate) table: *const Complex<T>,
    /// Times this, after a swap, is times `-i` (forward) or `i`.
    pub(crate) turn: V,
}

impl<T: Real, V: Vector<T>> Roots<V, T> {
    #[inline(always)]
    pub(crate) fn new(table: *const Complex<T>, inverse: bool) -> Self {
        let one = if inverse { -T::one() } else { T::one() };
        Self { table, turn: V::pairs(one, -one) }
    }

    #[inline(always)]
    fn root(&self, k: usize) -> Complex<T> {
        // SAFETY: the tables have as many roots as the radix, and `k` is below it.
        unsafe { *self.table.add(k) }
    }

    #[inline(always)]
    fn times_root(&self, value: V, k: usize) -> V {
        let root = self.root(k);
        value.times_parts(V::splat(root.re), V::splat(root.im))
    }
}

/// `x` becomes its transform; `R` is one of `RADICES`.
#[inline(always)]
pub(crate) fn dft<T: Real, V: Vector<T>, const R: usize>(x: &mut [V; R], roots: &Roots<V, T>) {
    match R {
        2 => {
            let (a, b) = (x[0], x[1]);
            x[0] = a.add(b);
            x[1] = a.sub(b);
        }
        4 => {
            let y = four([x[0], x[1], x[2], x[3]], roots);
            x[..4].copy_from_slice(&y);
        }
        8 => {
            let y = eight([x[0], x[1], x[2], x[3], x[4], x[5], x[6], x[7]], roots);
            x[..8].copy_from_slice(&y);
        }
        6 => composite::<T, V, 2, 3, R>(x, roots),
        9 => composite::<T, V, 3, 3, R>(x, roots),
        10 => composite::<T, V, 2, 5, R>(x, roots),
        12 => composite::<T, V, 4, 3, R>(x, roots),
        15 => composite::<T, V, 3, 5, R>(x, roots),
        16 => composite::<T, V, 4, 4, R>(x, roots),
        _ => odd::<T, V, R>(x, roots, 1),
    }
}

#[inline(always)]
fn four<T: Real, V: Vector<T>>(x: [V; 4], roots: &Roots<V, T>) -> [V; 4] {
    let (a, b) = (x[0].add(x[2]), x[0].sub(x[2]));
    let (c, d) = (x[1].add(x[3]), x[1].sub(x[3]).swap());
    [a.add(c), d.scale_add(roots.turn, b), a.sub(c), d.scale_sub(roots.turn, b)]
}

#[inline(always)]
fn eight<T: Real, V: Vector<T>>(x: [V; 8], roots: &Roots<V, T>) -> [V; 8] {
    let even = four([x[0], x[2], x[4], x[6]], roots);
    let odd = four([x[1], x[3], x[5], x[7]], roots);
    let half = V::splat(T::of(std::f64::consts::FRAC_1_SQRT_2));
    // Times the eighth root but for the factor: x + turned x; times its cube: -(x - turned x).
    let first = odd[1].swap().scale_add(roots.turn, odd[1]);
    let second = odd[2].swap();
    let third = odd[3].swap().scale_sub(roots.turn, odd[3]);
    [
        even[0].add(odd[0]),
        first.scale_add(half, even[1]),
        second.scale_add(roots.turn, even[2]),
        third.scale_sub(half, even[3]),
        even[0].sub(odd[0]),
        first.scale_sub(half, even[1]),
        second.scale_sub(roots.turn, even[2]),
        third.scale_add(half, even[3]),
    ]
}

/// An odd `R`, by sums and differences of the numbers that lie opposite; the table's roots are `step` apart.
#[inline(always)]
fn odd<T: Real, V: Vector<T>, const R: usize>(x: &mut [V; R], roots: &Roots<V, T>, step: usize) {
    let half = R / 2;
    let mut sums = [x[0]; R];
    let mut differences = [x[0]; R];
    for j in 1..=half {
        sums[j] = x[j].add(x[R - j]);
        differences[j] = x[j].sub(x[R - j]).swap();
    }
    let first = x[0];
    for j in 1..=half {
        x[0] = x[0].add(sums[j]);
    }
    // Times i, after a swap, is times (-1, 1); the roots' imaginary parts have the direction.
    for k in 1..=half {
        let root = roots.root(k * step);
        let mut even = sums[1].scale_add(V::splat(root.re), first);
        let mut odd = differences[1].scale(V::pairs(-root.im, root.im));
        for j in 2..=half {
            let root = roots.root(k * j % R * step);
            even = sums[j].scale_add(V::splat(root.re), even);
            odd = differences[j].scale_add(V::pairs(-root.im, root.im), odd);
        }
        x[k] = even.add(odd);
        x[R - k] = even.sub(odd);
    }
}

/// A part of `composite`; the table is that of `R`.
#[inline(always)]
fn part<T: Real, V: Vector<T>, const N: usize, const R: usize>(x: &mut [V; N], roots: &Roots<V, T>) {
    match N {
        2 | 4 => dft::<T, V, N>(x, roots),
        _ => odd::<T, V, N>(x, roots, R / N),
    }
}

/// `R = A * B` as `B` transforms of `A` and `A` of `B`.
#[inline(always)]
fn composite<T: Real, V: Vector<T>, const A: usize, const B: usize, const R: usize>(
    x: &mut [V; R],
    roots: &Roots<V, T>,
) {
    let mut inner = [[x[0]; A]; B];
    for b in 0..B {
        for a in 0..A {
            inner[b][a] = x[(B * a + b) % R];
        }
        part::<T, V, A, R>(&mut inner[b], roots);
        for a in 1..A {
            if b > 0 {
                inner[b][a] = roots.times_root(inner[b][a], a * b % R);
            }
        }
    }
    for a in 0..A {
        let mut outer = [x[0]; B];
        for b in 0..B {
            outer[b] = inner[b][a];
        }
        part::<T, V, B, R>(&mut outer, roots);
        for b in 0..B {
            x[(a + A * b) % R] = outer[b];
        }
    }
}
