//! Softmax over the middle of three sizes: an array `outer × count × inner`.

use crate::value::Value;

/// The logarithm of it, or itself; `shifted`: the largest is taken off first, so that nothing overflows.
pub fn forward<V: Value>(
    (outer, count, inner): (usize, usize, usize),
    (is_log, shifted): (bool, bool),
    x: &[V],
) -> Vec<V> {
    let mut y = vec![V::zero(); x.len()];
    crate::pieces(&mut y, (count * inner).max(1), 8 * count * inner, |number, y| {
        debug_assert!(number < outer);
        let x = &x[number * count * inner..][..count * inner];
        let (mut most, mut sums) = (vec![V::zero(); inner], vec![V::zero(); inner]);
        if shifted || is_log {
            most.fill(V::neg_infinity());
            for x in x.chunks(inner) {
                // NaN goes on to the sum.
                most.iter_mut().zip(x).for_each(|(most, x)| {
                    if *x > *most {
                        *most = *x
                    }
                });
            }
        }
        for (y, x) in y.chunks_mut(inner).zip(x.chunks(inner)) {
            for i in 0..inner {
                let power = (x[i] - most[i]).exp();
                y[i] = if is_log { x[i] - most[i] } else { power };
                sums[i] += power;
            }
        }
        for y in y.chunks_mut(inner) {
            y.iter_mut().zip(&sums).for_each(|(y, sum)| *y = if is_log { *y - sum.ln() } else { *y / *sum });
        }
    });
    y
}

pub fn backward<V: Value>(
    (outer, count, inner): (usize, usize, usize),
    is_log: bool,
    y: &[V],
    dy: &[V],
) -> Vec<V> {
    let mut dx = vec![V::zero(); y.len()];
    crate::pieces(&mut dx, (count * inner).max(1), 8 * count * inner, |number, dx| {
        debug_assert!(number < outer);
        let (y, dy) = (&y[number * count * inner..], &dy[number * count * inner..]);
        let mut sums = vec![V::zero(); inner];
        for at in 0..count * inner {
            sums[at % inner] += if is_log { dy[at] } else { dy[at] * y[at] };
        }
        for (at, dx) in dx.iter_mut().enumerate() {
            let sum = sums[at % inner];
            *dx = if is_log { dy[at] - y[at].exp() * sum } else { y[at] * (dy[at] - sum) };
        }
    });
    dx
}
