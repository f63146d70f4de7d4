//! Local response normalization over channels: an array `outer × channels × inner`.

use crate::value::Value;

#[derive(Clone, Copy, Debug)]
pub struct Lrn {
    pub n: usize,
    pub alpha: f64,
    pub beta: f64,
    pub k: f64,
}

impl Lrn {
    /// The channels that a channel's sum is over.
    fn window(&self, channel: usize, channels: usize) -> (usize, usize) {
        let behind = (self.n - 1) / 2;
        (channel.saturating_sub(behind), (channel + self.n - behind).min(channels))
    }
}

/// `k + alpha/n · (the sum of squares)`
fn scales<V: Value>(of: Lrn, (channels, inner): (usize, usize), x: &[V]) -> Vec<V> {
    let mut scales = vec![V::of(of.k); x.len()];
    let factor = V::of(of.alpha / of.n as f64);
    for channel in 0..channels {
        let (first, end) = of.window(channel, channels);
        for at in 0..inner {
            let squares = (first..end).fold(V::zero(), |sum, c| sum + x[c * inner + at] * x[c * inner + at]);
            scales[channel * inner + at] += factor * squares;
        }
    }
    scales
}

pub fn forward<V: Value>(of: Lrn, (channels, inner): (usize, usize), x: &[V]) -> Vec<V> {
    let mut y = vec![V::zero(); x.len()];
    let size = channels * inner;
    crate::pieces(&mut y, size, size * (of.n + 8), |number, y| {
        let x = &x[number * size..][..size];
        let scales = scales(of, (channels, inner), x);
        y.iter_mut().enumerate().for_each(|(at, y)| *y = x[at] * scales[at].powf(V::of(-of.beta)));
    });
    y
}

pub fn backward<V: Value>(of: Lrn, (channels, inner): (usize, usize), x: &[V], y: &[V], dy: &[V]) -> Vec<V> {
    let mut dx = vec![V::zero(); x.len()];
    let size = channels * inner;
    crate::pieces(&mut dx, size, size * (2 * of.n + 8), |number, dx| {
        let at = number * size;
        let (x, y, dy) = (&x[at..][..size], &y[at..][..size], &dy[at..][..size]);
        let scales = scales(of, (channels, inner), x);
        let factor = V::of(2.0 * of.alpha * of.beta / of.n as f64);
        dx.iter_mut().enumerate().for_each(|(at, dx)| *dx = dy[at] * scales[at].powf(V::of(-of.beta)));
        for channel in 0..channels {
            let (first, end) = of.window(channel, channels);
            for at in 0..inner {
                let here = channel * inner + at;
                let share = factor * dy[here] * y[here] / scales[here];
                (first..end).for_each(|c| dx[c * inner + at] -= share * x[c * inner + at]);
            }
        }
    });
    dx
}
