//! Softmax over the middle of three sizes: an array `outer × count × inner`.

use cublas_cpu::vectorized;

use crate::value::Value;

/// Sums that grow beside each other, as many as a vector has room for.
const LANES: usize = 16;

/// The logarithm of it, or itself; `shifted`: the largest is taken off first, so that nothing overflows.
pub fn forward<V: Value>(
    (outer, count, inner): (usize, usize, usize),
    (is_log, shifted): (bool, bool),
    x: &[V],
    y: &mut [V],
) {
    let size = (count * inner).max(1);
    crate::pieces(y, size, 8 * size, |number, y| {
        debug_assert!(number < outer);
        let x = &x[number * size..][..size];
        if inner == 1 { row(is_log, shifted, x, y) } else { columns(inner, is_log, shifted, x, y) }
    });
}

vectorized! {
    fn row[V: Value](is_log: bool, shifted: bool, x: &[V], y: &mut [V]) {
        let mut most = V::zero();
        if shifted || is_log {
            // NaN goes on to the sum.
            let mut largest = [V::neg_infinity(); LANES];
            let (whole, rest) = x.split_at(x.len() - x.len() % LANES);
            for x in whole.chunks_exact(LANES) {
                for lane in 0..LANES {
                    largest[lane] = if x[lane] > largest[lane] { x[lane] } else { largest[lane] };
                }
            }
            most = largest.iter().chain(rest).fold(V::neg_infinity(), |most, x| if *x > most { *x } else { most });
        }
        for (y, x) in y.iter_mut().zip(x) {
            *y = (*x - most).power();
        }
        let sum = total(y);
        if is_log {
            let log = sum.ln();
            for (y, x) in y.iter_mut().zip(x) {
                *y = *x - most - log;
            }
        } else {
            for y in y {
                *y /= sum;
            }
        }
    }
}

/// The sum of a row.
#[inline(always)]
fn total<V: Value>(of: &[V]) -> V {
    let mut sums = [V::zero(); LANES];
    let chunks = of.chunks_exact(LANES);
    let rest = chunks.remainder();
    for chunk in chunks {
        for (sum, value) in sums.iter_mut().zip(chunk) {
            *sum += *value;
        }
    }
    sums.iter().chain(rest).fold(V::zero(), |sum, value| sum + *value)
}

vectorized! {
    fn columns[V: Value](inner: usize, is_log: bool, shifted: bool, x: &[V], y: &mut [V]) {
        let (mut most, mut sums) = (vec![V::zero(); inner], vec![V::zero(); inner]);
        if shifted || is_log {
            most.fill(V::neg_infinity());
            for x in x.chunks_exact(inner) {
                for (most, x) in most.iter_mut().zip(x) {
                    *most = if *x > *most { *x } else { *most };
                }
            }
        }
        for (y, x) in y.chunks_exact_mut(inner).zip(x.chunks_exact(inner)) {
            for (((y, x), most), sum) in y.iter_mut().zip(x).zip(&most).zip(&mut sums) {
                let far = *x - *most;
                let power = far.power();
                *y = if is_log { far } else { power };
                *sum += power;
            }
        }
        if is_log {
            sums.iter_mut().for_each(|sum| *sum = sum.ln());
        }
        for y in y.chunks_exact_mut(inner) {
            for (y, sum) in y.iter_mut().zip(&sums) {
                *y = if is_log { *y - *sum } else { *y / *sum };
            }
        }
    }
}

pub fn backward<V: Value>(
    (outer, count, inner): (usize, usize, usize),
    is_log: bool,
    y: &[V],
    dy: &[V],
    dx: &mut [V],
) {
    let size = (count * inner).max(1);
    crate::pieces(dx, size, 8 * size, |number, dx| {
        debug_assert!(number < outer);
        let (y, dy) = (&y[number * size..][..size], &dy[number * size..][..size]);
        if inner == 1 { row_backward(is_log, y, dy, dx) } else { columns_backward(inner, is_log, y, dy, dx) }
    });
}

vectorized! {
    fn row_backward[V: Value](is_log: bool, y: &[V], dy: &[V], dx: &mut [V]) {
        for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
            *dx = if is_log { *dy } else { *dy * *y };
        }
        let sum = total(dx);
        for ((dx, y), dy) in dx.iter_mut().zip(y).zip(dy) {
            *dx = if is_log { *dy - y.power() * sum } else { *y * (*dy - sum) };
        }
    }
}

vectorized! {
    fn columns_backward[V: Value](inner: usize, is_log: bool, y: &[V], dy: &[V], dx: &mut [V]) {
        let mut sums = vec![V::zero(); inner];
        for (y, dy) in y.chunks_exact(inner).zip(dy.chunks_exact(inner)) {
            for ((sum, y), dy) in sums.iter_mut().zip(y).zip(dy) {
                *sum += if is_log { *dy } else { *dy * *y };
            }
        }
        for ((dx, y), dy) in dx.chunks_exact_mut(inner).zip(y.chunks_exact(inner)).zip(dy.chunks_exact(inner)) {
            for (((dx, y), dy), sum) in dx.iter_mut().zip(y).zip(dy).zip(&sums) {
                *dx = if is_log { *dy - y.power() * *sum } else { *y * (*dy - *sum) };
            }
        }
    }
}
